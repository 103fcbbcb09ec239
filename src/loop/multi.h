/* loop/multi.h - libcurl's multi handles, driven by the loop, each for the transfers of some clients.
 *
 * libcurl says which sockets and which timeout it wants to hear of; uv_poll and uv_timer bring the
 * news. How a transfer ended is told outside of libcurl, so from there transfers may be added and
 * removed. From the callbacks of a transfer they may not.
 *
 * A multi has one cache of connections, and libcurl walks along all of it for each new transfer and each read and
 * write of a stream: with a thousand servers in one multi that was a fifth of the time. One for each server would
 * take 40 KiB for empty tables. So a few servers share one. Which transfers may share a connection is up to their
 * options: see kube_lane.c. */
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

enum { MULTI_CLIENTS_MAX = 32 };

/* One for another client: one that has room, or a new one. It lives as long as the loop; give it back when the
 * client is gone. */
struct pl_multi *pl__loop_multi_take(struct pl_loop *loop);
void pl__multi_give_back(struct pl_multi *multi);

struct pl_multi *pl__multi_new(struct pl_loop *loop);

/* Takes a place in it. False: it is full. */
bool pl__multi_take_place(struct pl_multi *multi);

void pl__multi_add(struct pl_multi *multi, CURL *easy);
void pl__multi_remove(struct pl_multi *multi, CURL *easy);

/* Closes its connections and frees it. No transfer may be left in it. */
void pl__multi_free(struct pl_multi *multi);

#endif
