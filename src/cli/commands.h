/* cli/commands.h - the commands, one file each. */
#ifndef PL_CLI_COMMANDS_H
#define PL_CLI_COMMANDS_H

#include "cli/command.h"

extern const struct pl_command pl__command_eval;
extern const struct pl_command pl__command_explain;
extern const struct pl_command pl__command_describe;
extern const struct pl_command pl__command_etcd;
extern const struct pl_command pl__command_what_if;
extern const struct pl_command pl__command_snapshot;
extern const struct pl_command pl__command_tables;
extern const struct pl_command pl__command_run;
extern const struct pl_command pl__command_up;
extern const struct pl_command pl__command_fault;
extern const struct pl_command pl__command_completion;
extern const struct pl_command pl__command_version;
extern const struct pl_command pl__command_help;

#endif
