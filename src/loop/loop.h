/* loop/loop.h - the event loop: libuv, with libcurl's multi interface on it.
 *
 * The only folder that knows sockets, TLS, files, clocks and processes. One loop, one thread. Making
 * the first loop sets SIGPIPE to ignored for the whole process: TLS libraries write to sockets that
 * may be gone, and only the process can say that this is no reason to die. */
#ifndef PL_LOOP_LOOP_H
#define PL_LOOP_LOOP_H

#include <stdint.h>
#include <uv.h>

#include "base/error.h"

struct pl_loop;
struct pl_multi; /* loop/multi.h */

struct pl_loop *pl__loop_new(void);

/* The uv loop, for timers and signals of the caller. */
uv_loop_t *pl__loop_uv(struct pl_loop *loop);

/* Runs until pl__loop_stop(), or until nothing is left to wait for. */
void pl__loop_run(struct pl_loop *loop);
void pl__loop_stop(struct pl_loop *loop);

/* Closes everything still open and frees the loop. All pl_kube and pl_server of this loop must have
 * been told to close; what they still have to say (`done`) is said from here. */
void pl__loop_free(struct pl_loop *loop);

/* Milliseconds since some start, never going back; and since 1970. */
uint64_t pl__loop_mono_ms(struct pl_loop *loop);
int64_t pl__loop_wall_ms(void);

/* A number that no earlier call gave. */
uint64_t pl__loop_number(struct pl_loop *loop);

/* For loop/ itself: things that are being closed and need more turns of the loop to end. */
void pl__loop_hold(struct pl_loop *loop);
void pl__loop_drop(struct pl_loop *loop);

#endif
