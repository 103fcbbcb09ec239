/* cli/fault_ask.h - what can carry a fault in a playground, and its API servers, asked one thing after the other.
 *
 * Every server is first asked what it is: one that is no playground's is refused, and nothing was written. Each call
 * is 0, or -1 with cli->err; each waits for its answer, for ten seconds at most. */
#ifndef PL_CLI_FAULT_ASK_H
#define PL_CLI_FAULT_ASK_H

#include "base/json.h"
#include "cli/command.h"

/* A kind of object. */
struct pl_fault_thing {
    const char *word; /* on the command line: "machine" */
    char letter;      /* where there is little room */
    const char *kind;
    const char *path; /* of all of them; %s: the namespace */
    unsigned on;      /* FAULT_ON_... */
    bool workload;    /* it is in a workload cluster */
};

extern const struct pl_fault_thing pl__fault_things[];
extern const size_t pl__fault_thing_count;

/* The Clusters' row. */
const struct pl_fault_thing *pl__fault_clusters(void);

struct pl_fault_target {
    const struct pl_fault_thing *thing;
    struct pl_str cluster; /* of a Node or a Pod; empty: the management cluster's */
    struct pl_str name;
};

/* An object as far as faults go. */
struct pl_fault_item {
    struct pl_str name;
    struct pl_str fault; /* empty: it has none */
    bool control_plane;  /* a Machine or a Node that says it is one's */
};

struct pl_fault_items {
    PL_LIST(struct pl_fault_item) items;
};

struct pl_fault_ask;

struct pl_fault_ask *pl__fault_ask_new(struct pl_cli *cli);
void pl__fault_ask_free(struct pl_fault_ask *ask);

/* All objects of that kind; `cluster` as in a target. What is found lives as long as `ask`. */
int pl__fault_list(struct pl_fault_ask *ask, struct pl_str cluster,
                   const struct pl_fault_thing *thing, struct pl_fault_items *found);

int pl__fault_get(struct pl_fault_ask *ask, const struct pl_fault_target *target,
                  struct pl_fault_item *found);

/* Writes the annotation; NULL takes it off. `fault` has no character that JSON would have to escape. */
int pl__fault_put(struct pl_fault_ask *ask, const struct pl_fault_target *target,
                  const char *fault);

#endif
