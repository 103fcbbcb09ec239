/* cli/words.h - parts of a report put into sentences. All give safe text (cli/text.h). */
#ifndef PL_CLI_WORDS_H
#define PL_CLI_WORDS_H

#include "base/buf.h"

/* The guard of the row in words; empty when rows of different guards share the id. */
struct pl_str pl__row_guard(const char *id);

/* The evidence of a verdict, an object at a time; empty at the end. `*at` starts at 0. One fact:
 * "Pod/kube-system/etcd-0 (list): status.phase = Running", over two lines when it is wider than
 * `room`; several: a line each below the object. What is in brackets is how it was observed, and
 * when, unless that is the instant of the report. Facts that are the report's own (see below) are
 * left out. */
struct pl_str pl__evidence_next(struct pl_arena *arena, const struct pl_report *report,
                                const struct pl_verdict *verdict, size_t *at, size_t room);

/* True for a Machine's condition that this very report has judged: it speaks for itself there, and
 * text for people need not repeat it. */
bool pl__evidence_is_own(const struct pl_evidence *evidence);

/* What the next remediation or deletion step would do; empty when there is nothing to do. */
struct pl_str pl__remediation_words(struct pl_arena *arena, const struct pl_remediation *step);
struct pl_str pl__deletion_words(struct pl_arena *arena, const struct pl_deletion *step);

/* The missing evidence, each piece once with the conditions that need it. Nothing when none is. */
void pl__report_missing(struct pl_buf *out, struct pl_arena *arena, const struct pl_report *report,
                        size_t width);

#endif
