/* loop/multi.h - libcurl's multi handle, driven by the loop. One for all transfers of a loop.
 *
 * libcurl says which sockets and which timeout it wants to hear of; uv_poll and uv_timer bring the
 * news. How a transfer ended is told outside of libcurl, so from there transfers may be added and
 * removed. From the callbacks of a transfer they may not.
 *
 * All transfers share one cache of connections (a multi for each server would take 40 KiB for empty
 * tables). Which of them may share a connection is up to their options: see kube_lane.c. */
#ifndef PL_LOOP_MULTI_H
#define PL_LOOP_MULTI_H

#include <curl/curl.h>
#include <stdbool.h>

#include "loop/loop.h"

/* What CURLOPT_PRIVATE of every transfer points to. */
struct pl_transfer {
    /* It has ended by itself and was removed. */
    void (*ended)(void *user, CURLcode result);
    void *user;
    bool
        stays; /* it was not removed, which its owner has to do: removing it would close a stream */
};

/* The loop's own; made when it is first asked for. */
struct pl_multi *pl__loop_multi(struct pl_loop *loop);

struct pl_multi *pl__multi_new(struct pl_loop *loop);

void pl__multi_add(struct pl_multi *multi, CURL *easy);
void pl__multi_remove(struct pl_multi *multi, CURL *easy);

/* Closes its connections and frees it. No transfer may be left in it. */
void pl__multi_free(struct pl_multi *multi);

#endif
