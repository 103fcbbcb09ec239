/* core/evaluate.h - a settled snapshot in, a report out. Pure: no clock, no I/O, no global state. */
#ifndef PL_CORE_EVALUATE_H
#define PL_CORE_EVALUATE_H

#include "model/snapshot.h"

struct pl_plans; /* core/plan.h */

struct pl_evaluate_options {
    enum pl_profile profile;
    bool explain;
    struct pl_plans *plans; /* what to do next is worked out, too, and goes here; NULL: no */
};

/* 0 with `*report` in the arena, or -1 when a bound is passed. */
int pl__evaluate(const struct pl_snapshot *s, struct pl_evaluate_options options,
                 struct pl_arena *arena, const struct pl_report **report, struct pl_error **err);

/* What removing a control plane Machine would mean. 0, or -1 when there is no such Machine. */
int pl__what_if_remove(const struct pl_snapshot *s, struct pl_evaluate_options options,
                       struct pl_str wanted, struct pl_arena *arena,
                       const struct pl_what_if **answer, struct pl_error **err);

/* core/report.c: a report as JSON (or YAML), one document. */
void pl__report_write(struct pl_json_writer *w, const struct pl_report *report);

#endif
