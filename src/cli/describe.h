/* cli/describe.h - a snapshot as a tree of objects, and the ways in which describe prints it. */
#ifndef PL_CLI_DESCRIBE_H
#define PL_CLI_DESCRIBE_H

#include "cli/command.h"
#include "model/snapshot.h"

/* One line of the tree: an object, or something that belongs to one. */
struct pl_describe_node {
    const char *role; /* "ControlPlane", before the kind; NULL: none */
    const char *kind; /* "Machine"; NULL: no object, `name` is all there is */
    struct pl_str namespace_;
    struct pl_str name;
    struct pl_replicas replicas;
    bool is_machine; /* of one Machine there is no number wanted */
    bool deleted;    /* is being deleted */
    bool calls;      /* it, or one of its own conditions, calls for attention */
    bool optional;   /* shown when it calls for attention, or with --show-conditions */
    bool is_condition;

    /* What stands in the last columns. */
    struct pl_str type; /* of the condition shown, "Available"; empty: `status` is no condition's */
    struct pl_str status;
    struct pl_str reason;
    struct pl_str message;
    struct pl_str since; /* "5m", "new" */
    int64_t since_ms;    /* 0: not known */
    enum pl_color color;

    const struct pl_object *object; /* as judged; NULL: nothing of it is */
    struct pl_describe_node *child, *child_last;
    struct pl_describe_node *next;
};

/* One snapshot, and where it goes. */
struct pl_describe {
    struct pl_cli *cli;
    const struct pl_report *report;
    const struct pl_snapshot *snapshot;
    struct pl_arena *scratch; /* until it is printed */
    struct pl_str namespace_; /* only this one; empty: any */
    struct pl_str cluster;    /* only this one; empty: all */
    bool first;
    bool wide;
    bool show_conditions;
    struct pl_describe_node *clusters; /* the first of the roots; NULL: none that is wanted */
};

/* Fills in `clusters`. */
void pl__describe_build(struct pl_describe *d);

void pl__describe_table(struct pl_describe *d);
void pl__describe_data(struct pl_describe *d);
void pl__describe_names(struct pl_describe *d);

#endif
