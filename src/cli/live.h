/* cli/live.h - reading live clusters: the controller's core, told to read only, until it knows enough.
 *
 * What comes out is text: one Snapshot document per Cluster, which is judged like any other input. So
 * "plimsoll snapshot X | plimsoll eval -f -" and "plimsoll eval --live" cannot differ.
 *
 * The management cluster has --timeout to answer. Of the workload clusters only those are contacted
 * that the question is about; one that does not answer within ten seconds is reported as it stands. The
 * etcd of one that does answer has its own deadlines (--etcd-dial-timeout-duration and the other). */
#ifndef PL_CLI_LIVE_H
#define PL_CLI_LIVE_H

#include "base/json.h"
#include "cli/command.h"

/* Which Clusters a question is about; all empty: every one of the namespace. */
struct pl_live_wanted {
    struct pl_str cluster;    /* the name of one, or namespace/name */
    const char *kind;         /* or the one that has an object of this kind ... */
    struct pl_str namespace_; /* ... in this namespace (empty: the command line decides) ... */
    struct pl_str name;       /* ... of this name; namespace/name will do, too */
};

struct pl_live;

/* Understands the options and finds the configuration; contacts nothing. 0, or -1 with cli->err. */
int pl__live_open(struct pl_live **opened, struct pl_cli *cli, const struct pl_live_wanted *wanted);

/* The first time: reads until everything wanted is known, or has had its time. Later: until something
 * changed (1), or until ten seconds are over and ages have grown (0). -1 with cli->err. */
int pl__live_next(struct pl_live *live);

/* Writes what is known, one document per Cluster, each with a newline at its end. 0, or -1 with
 * cli->err when nothing fits what is wanted. */
int pl__live_write(struct pl_live *live, enum pl_json_format format, struct pl_buf *out);

/* Says on standard error which workload clusters could not be read, and notes that evidence is
 * missing. Speaks of what pl__live_write() wrote last. */
void pl__live_warn(struct pl_live *live);

/* "https://127.0.0.1:6443", for headings. */
const char *pl__live_name(const struct pl_live *live);

/* NULL is fine. */
void pl__live_close(struct pl_live *live);

#endif
