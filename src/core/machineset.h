/* core/machineset.h - remediation of the Machines of a MachineDeployment (semantics section 9, its last
 * paragraph), as Cluster API's MachineSet controller does it.
 *
 * Two halves. Judging says for each Machine that is marked for remediation what is to become of it; it goes
 * into the report. Planning picks the one call to make next; like core/plan.h it remembers nothing. */
#ifndef PL_CORE_MACHINESET_H
#define PL_CORE_MACHINESET_H

#include "core/pass.h"

struct pl_plan;

/* A Machine with the MachineDeployment and the MachineSet it belongs to. */
struct pl_owned_machine {
    const struct pl_machine_deployment *md;
    const struct pl_machine_set *set;
    const struct pl_machine *machine;
};

/* What is to become of one Machine. */
struct pl_machine_set_decision {
    const struct pl_machine *machine;
    enum pl_machine_set_action action;
    struct pl_machine_set_step shown; /* for the report */
};

/* Judges the Machines of one MachineDeployment, grouped by MachineSet, each group in the order of
 * remediation. Only those that are marked have a decision; their number is returned. `cluster` may be
 * NULL: then nothing is done. */
size_t pl__machine_sets_judge(struct pl_pass *p, const struct pl_machine_deployment *md,
                              const struct pl_cluster *cluster,
                              const struct pl_owned_machine *machines, size_t machine_count,
                              const struct pl_machine_set_decision **decisions);

/* Fills a zeroed plan with the next call: marks that are gone or say something else first, the mark
 * MachineDeleting before its deletion. So a crash in between leaves a Machine that the next pass decides
 * on again, and one that is being deleted always says why. */
void pl__machine_sets_plan(struct pl_pass *p, const struct pl_machine_deployment *md,
                           const struct pl_cluster *cluster,
                           const struct pl_machine_set_decision *decisions, size_t count,
                           struct pl_plan *plan);

#endif
