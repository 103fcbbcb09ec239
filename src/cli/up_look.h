/* cli/up_look.h - the playground looks at itself: the controller's own world, judged again.
 *
 * A look takes the snapshot that the controller has of everything, judges it by the same tables, and
 * compares with the look before. What a row decided and the API server has stored is *written*; a stored
 * condition that is another than before is a *transition*. So what is told here is what came out at the far
 * end, and not what somebody intended.
 *
 * A small fleet is judged whole, each time. Of a large one only those clusters are judged that have changed, a few
 * milliseconds' worth a look; and the report is of LOOK_CLUSTERS_MAX clusters, those first that are unwell. pl__look_due()
 * keeps the cost of looking to a tenth of the time. */
#ifndef PL_CLI_UP_LOOK_H
#define PL_CLI_UP_LOOK_H

#include "controller/controller.h"

enum {
    LOOK_CLUSTERS_MAX = 32,
    LOOK_NAME_BYTES = 256,
    LOOK_TEXT_BYTES = 256,
    LOOK_TRANSITIONS_MAX = 64
};

/* A condition changed in the API server. */
struct pl_transition {
    int64_t at_ms; /* wall clock */
    const char *kind;
    char namespace_[LOOK_NAME_BYTES];
    char name[LOOK_NAME_BYTES];
    const char *type;
    enum pl_status from, to; /* from none: it was not there */
    bool negative;
    char reason[LOOK_NAME_BYTES];
    const char *row;             /* that said so; NULL: it was over before anybody looked */
    char cause[LOOK_TEXT_BYTES]; /* its message, else its row's guard: one line, cut */
    int64_t
        delay_ms; /* from when the world was first seen so to when it was stored; -1: not known */
};

struct pl_look;

struct pl_look_options {
    enum pl_profile profile;
    /* For every condition of every object that is judged, each time. `written`: it is stored, or kept, as judged. */
    void (*seen)(void *user, const struct pl_object *object, const struct pl_verdict *verdict,
                 bool written);
    /* For every transition, oldest first. */
    void (*changed)(void *user, const struct pl_transition *transition);
    void *user;
};

struct pl_look *pl__look_new(const struct pl_look_options *options);
void pl__look_free(struct pl_look *look); /* NULL is fine */

/* Whether it is time: something changed, or half a second passed (some rows go by the clock alone). When not,
 * `*wait_ms` is when to ask again. `eager`: every change, whatever looking costs. */
bool pl__look_due(const struct pl_look *look, const struct pl_controller *controller, bool eager,
                  uint64_t mono_ms, uint64_t *wait_ms);

/* Looks. 0, or -1 with an error in `arena`. */
int pl__look_take(struct pl_look *look, struct pl_controller *controller, struct pl_now now,
                  struct pl_arena *arena, struct pl_error **err);

/* What the last look saw, of LOOK_CLUSTERS_MAX clusters at most. Valid until the controller's next step; NULL before the first. */
const struct pl_report *pl__look_report(const struct pl_look *look);
const struct pl_snapshot *pl__look_snapshot(const struct pl_look *look);
size_t pl__look_cluster_count(
    const struct pl_look *look); /* also those that are not in the report */

/* How many of these transitions are kept, LOOK_TRANSITIONS_MAX at most, and the one that is `back` places from the newest (0: itself). */
size_t pl__look_transition_count(const struct pl_look *look);
const struct pl_transition *pl__look_transition(const struct pl_look *look, size_t back);

#endif
