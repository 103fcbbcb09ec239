/* cli/report.h - reading a report the way people do: what calls for attention, in which colour, how
 * an object and a condition are called. Sentences are in cli/words.h. */
#ifndef PL_CLI_REPORT_H
#define PL_CLI_REPORT_H

#include "cli/command.h"

/* True for what a person should look at: a health condition that is not True, a condition of
 * negative polarity that is not False, or one that names unhealthy Machines. */
bool pl__verdict_calls(const struct pl_verdict *verdict);

/* True when the stored condition says something else. Kept conditions never differ. */
bool pl__verdict_differs(const struct pl_verdict *verdict);

enum pl_color pl__verdict_color(const struct pl_verdict *verdict);

/* "EtcdClusterHealthy/5", or with a row of another name "APIServerPodHealthy PodHealthy/6". */
struct pl_str pl__verdict_label(struct pl_arena *arena, const struct pl_verdict *verdict);

/* How long the condition has been so, "4m30s"; "new" when the stored status is another; empty when
 * it is not known. */
struct pl_str pl__verdict_age(struct pl_arena *arena, const struct pl_report *report,
                              const struct pl_verdict *verdict);

/* True when a Machine's condition is one of those that this condition of its KubeadmControlPlane
 * sums up. */
bool pl__verdict_feeds(const struct pl_verdict *machine, const struct pl_verdict *control_plane);

/* "kubeadmcontrolplane/default/cp": lower case, as kubectl -o name writes objects. */
void pl__object_add_name(struct pl_buf *out, const struct pl_object *object);

/* One line for grep and awk: "kubeadmcontrolplane/default/cp EtcdClusterHealthy EtcdClusterHealthy/5
 * False EtcdClusterNotHealthy"; "-" stands for an empty reason. */
void pl__verdict_add_name(struct pl_buf *out, const struct pl_object *object,
                          const struct pl_verdict *verdict);

/* What a snapshot makes of the run. */
enum pl_outcome pl__report_outcome(const struct pl_report *report);

/* "dump.yaml: name, profile tables, at 2026-11-15T02:00:00Z"; no name when the file is called so. */
void pl__report_heading(struct pl_buf *out, struct pl_arena *scratch, const struct pl_term *term,
                        const struct pl_report *report);

#endif
