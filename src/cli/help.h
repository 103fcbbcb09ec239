/* cli/help.h - help and manual pages, from the rows of the commands. */
#ifndef PL_CLI_HELP_H
#define PL_CLI_HELP_H

#include "cli/command.h"

/* Text of at most 80 columns. */
void pl__help_overview(struct pl_buf *out);
void pl__help_command(struct pl_buf *out, const struct pl_command *command);

/* Roff, for man(1). A NULL command gives plimsoll(1). */
void pl__man_page(struct pl_buf *out, const struct pl_command *command);

/* What the documentation says about the environment: name and meaning, NULL behind the last. */
const char *pl__environment(size_t index, const char **meaning);

#endif
