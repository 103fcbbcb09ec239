/* loop/kube_exec.h - runs a credential plugin, as a child process on the loop.
 *
 * It gets no terminal and no standard input; its standard error is ours, as with kubectl. It and all
 * it starts are killed when its time is up or it prints too much. */
#ifndef PL_LOOP_KUBE_EXEC_H
#define PL_LOOP_KUBE_EXEC_H

#include "loop/loop.h"
#include "proto/exec_credential.h"

struct pl_exec_run;

/* `error` is NULL on success. Both live for the call only. */
typedef void (*pl_exec_done)(void *user, const struct pl_exec_credential *credential,
                             const char *error);

/* Starts it; `done` is called once, from the loop, unless it is cancelled. NULL when it could not be
 * started, with a message in `error`. */
struct pl_exec_run *pl__exec_start(struct pl_loop *loop, const struct pl_kube_config *config,
                                   uint32_t timeout_ms, void *user, pl_exec_done done, char *error,
                                   size_t error_size);

/* Kills it. `done` does not come any more. */
void pl__exec_cancel(struct pl_exec_run *run);

#endif
