/* cli/completion.h - the scripts that teach a shell our commands, from the rows of the commands.
 *
 * All names in them are constants of ours; only help texts need quoting. */
#ifndef PL_CLI_COMPLETION_H
#define PL_CLI_COMPLETION_H

#include "cli/command.h"

void pl__completion_bash(struct pl_buf *out);
void pl__completion_zsh(struct pl_buf *out);
void pl__completion_fish(struct pl_buf *out);

/* The values that an argument can have, parted by spaces; nothing when they are not known. */
void pl__completion_words(struct pl_buf *out, const struct pl_argument *argument);

/* The values of an option, parted by spaces. */
void pl__completion_choices(struct pl_buf *out, const char *const *choices);

/* The help of an option up to its first detour: it has to fit beside the option. */
struct pl_str pl__completion_hint(const char *help);

#endif
