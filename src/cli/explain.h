/* cli/explain.h - which objects and conditions explain speaks about, and the ways it prints them. */
#ifndef PL_CLI_EXPLAIN_H
#define PL_CLI_EXPLAIN_H

#include "cli/data.h"
#include "cli/judge.h"
#include "cli/tree.h"

struct pl_explain {
    struct pl_cli *cli;
    struct pl_context *ctx;
    const struct pl_report *report;
    struct pl_arena *scratch; /* until the snapshot is printed */
    bool first;

    /* What was asked for. */
    const char *kind;         /* "KubeadmControlPlane"; NULL: whatever calls for attention */
    struct pl_str name;       /* with `kind` */
    struct pl_str namespace_; /* empty: any */
    const char *condition;    /* NULL: all */

    bool everything; /* nothing in this report calls for attention: explain it all */
};

/* True when this object, or this condition of an object that is shown, is to be printed. */
bool pl__explain_wants_object(const struct pl_explain *x, const struct pl_object *object);
bool pl__explain_wants_verdict(const struct pl_explain *x, const struct pl_verdict *verdict);

/* True when it deserves its rows and evidence, and not just a line: it calls for attention, or was
 * asked for by name. */
bool pl__explain_wants_detail(const struct pl_explain *x, const struct pl_verdict *verdict);

/* True for a Machine of this KubeadmControlPlane. */
bool pl__explain_owns(const struct pl_object *control_plane, const struct pl_object *machine);

/* True when a Machine's condition is part of the reason for one of its KubeadmControlPlane. */
bool pl__explain_contributes(const struct pl_object *control_plane,
                             const struct pl_verdict *verdict, const struct pl_object *machine,
                             const struct pl_verdict *of_machine);

/* The steps of this KubeadmControlPlane, or NULL. */
const struct pl_remediation *pl__explain_remediation(const struct pl_explain *x,
                                                     const struct pl_object *object);
const struct pl_deletion *pl__explain_deletion(const struct pl_explain *x,
                                               const struct pl_object *object);

/* explain_plan.c: what is done next for this KubeadmControlPlane; NULL: it is none, or there is nothing to
 * say. And its part of the tree, and of the data. */
const struct pl_next_step *pl__explain_plan(const struct pl_explain *x,
                                            const struct pl_object *object);
void pl__explain_plan_tree(struct pl_explain *x, struct pl_tree *root,
                           const struct pl_object *object);
void pl__explain_plan_data(struct pl_explain *x, struct pl_data *data,
                           const struct pl_object *object);

/* Each prints the wanted part of the report to cli->out.buf. */
void pl__explain_tree(struct pl_explain *x);
void pl__explain_data(struct pl_explain *x); /* JSON or YAML */
void pl__explain_names(struct pl_explain *x);

#endif
