/* controller/kevents.h - Kubernetes Events: what `kubectl describe` shows below an object.
 *
 * One core v1 Event for each transition of a condition, created once and never changed. Bodies only:
 * sending is the controller's, and a lost Event is never tried again. */
#ifndef PL_CONTROLLER_KEVENTS_H
#define PL_CONTROLLER_KEVENTS_H

#include "controller/controller.h"

enum { KEVENT_MESSAGE_BYTES_MAX = 1024, KEVENT_NAME_BYTES_MAX = 253 };

/* A condition of an object went from one status to another; or, without `type`, something was decided or
 * done, which `message` says. */
struct pl_kevent {
    const char *api_version; /* of the object */
    const char *kind;
    struct pl_str namespace_, name; /* no namespace: a cluster-scoped object */
    struct pl_str uid;              /* without it `kubectl describe` does not show the Event */
    const char *type;               /* the condition's; NULL: no condition */
    bool warning;                   /* without `type`: it calls for attention */
    enum pl_status before, after;   /* PL_STATUS_NONE: it was not there */
    bool negative;                  /* negative polarity: True calls for attention */
    struct pl_str reason, message;  /* the condition's */
    const char *row;                /* the row that decided */
    const char *instance;           /* which process saw it; NULL: not said */
    uint64_t counter;               /* different for each Event of this process */
};

/* Where to POST it, in `arena`. */
struct pl_str pl__kevent_path(const struct pl_kevent *event, struct pl_arena *arena);

/* What to POST. The message names type, statuses and row; a long one loses the end of the condition's
 * own text, never the row. */
struct pl_str pl__kevent_body(const struct pl_kevent *event, struct pl_now now,
                              struct pl_arena *arena);

#endif
