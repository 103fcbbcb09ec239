#include "cli/exit.h"

#include <assert.h>
#include <signal.h>

/* Later rows are worse. */
static const struct {
    int exit;
    bool forgiven; /* by --exit-zero */
    const char *meaning;
} outcomes[OUTCOME_COUNT] = {
    /* clang-format off */
    [OUTCOME_HEALTHY]  = { 0, false, "all healthy" },
    [OUTCOME_MISSING]  = { 3, true,  "evidence is missing, and nothing worse was found" },
    [OUTCOME_FINDINGS] = { 1, true,  "findings: a health condition is False or Unknown, Remediating or "
                                     "Deleting is True, unhealthy Machines are named; a difference with "
                                     "--diff; a refused what-if" },
    [OUTCOME_FAILED]   = { 2, false, "usage, input, output or connection error" },
    [OUTCOME_CLOSED]   = { 128 + SIGPIPE, false, NULL },
    /* clang-format on */
};

static const enum pl_outcome code_outcomes[] = {
    /* clang-format off */
    [PL_OK]        = OUTCOME_HEALTHY,
    [PL_USAGE]     = OUTCOME_FAILED,
    [PL_INVALID]   = OUTCOME_FAILED,
    [PL_LIMIT]     = OUTCOME_FAILED,
    [PL_NOT_FOUND] = OUTCOME_FAILED,
    [PL_IO]        = OUTCOME_FAILED,
    /* clang-format on */
};

enum pl_outcome pl__outcome_worst(enum pl_outcome a, enum pl_outcome b)
{
    return a > b ? a : b;
}

enum pl_outcome pl__outcome_of_code(enum pl_code code)
{
    assert((size_t)code < sizeof code_outcomes / sizeof code_outcomes[0]);
    return code_outcomes[code];
}

int pl__outcome_exit(enum pl_outcome outcome, bool exit_zero)
{
    assert(outcome < OUTCOME_COUNT);
    return exit_zero && outcomes[outcome].forgiven ? 0 : outcomes[outcome].exit;
}

const char *pl__exit_meaning(size_t index, int *code)
{
    static const enum pl_outcome shown[] = { OUTCOME_HEALTHY, OUTCOME_FINDINGS, OUTCOME_FAILED,
                                             OUTCOME_MISSING };

    if (index >= sizeof shown / sizeof shown[0])
        return NULL;
    *code = outcomes[shown[index]].exit;
    return outcomes[shown[index]].meaning;
}
