/* cli/eval.h - the ways in which eval prints a report. */
#ifndef PL_CLI_EVAL_H
#define PL_CLI_EVAL_H

#include "cli/judge.h"

/* What one snapshot is printed with. */
struct pl_eval {
    struct pl_cli *cli;
    struct pl_context *ctx;
    const struct pl_report *report;
    struct pl_arena *scratch; /* until the snapshot is printed */
    bool first;               /* the first that prints something */
    bool wide;
    bool explain;
};

/* Each adds to cli->out.buf. The *_diff ones show only what differs from the stored status. */
void pl__eval_table(struct pl_eval *eval);
void pl__eval_table_diff(struct pl_eval *eval);
void pl__eval_json(struct pl_eval *eval);
void pl__eval_yaml(struct pl_eval *eval);
void pl__eval_data_diff(struct pl_eval *eval); /* JSON or YAML */
void pl__eval_name(struct pl_eval *eval);
void pl__eval_name_diff(struct pl_eval *eval);

bool pl__report_differs(const struct pl_report *report);

#endif
