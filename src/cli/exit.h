/* cli/exit.h - what a run found, and the exit code it earns. One table for both. */
#ifndef PL_CLI_EXIT_H
#define PL_CLI_EXIT_H

#include <stdbool.h>
#include <stddef.h>

#include "plimsoll.h"

enum pl_outcome {
    OUTCOME_HEALTHY,  /* nothing calls for attention */
    OUTCOME_MISSING,  /* evidence is missing, and nothing worse was found */
    OUTCOME_FINDINGS, /* a finding, a difference, a refusal */
    OUTCOME_FAILED,   /* usage, input or output error */
    OUTCOME_CLOSED,   /* the reader of our output went away: say nothing */
    OUTCOME_COUNT,
};

/* The worse of two. */
enum pl_outcome pl__outcome_worst(enum pl_outcome a, enum pl_outcome b);

/* What an error of this code makes of the run. */
enum pl_outcome pl__outcome_of_code(enum pl_code code);

/* The exit code; `exit_zero` forgives what is not an error. */
int pl__outcome_exit(enum pl_outcome outcome, bool exit_zero);

/* For the manual: what the exit codes mean, in ascending order; NULL behind the last. */
const char *pl__exit_meaning(size_t index, int *code);

#endif
