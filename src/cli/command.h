/* cli/command.h - commands and their options as rows.
 *
 * A command is a constant: its words for people, its options and arguments as tables, and one
 * function. Everything that speaks about commands (parsing, --help, man pages, completion) reads
 * these rows, so a fact about an option is written once. */
#ifndef PL_CLI_COMMAND_H
#define PL_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "cli/exit.h"
#include "cli/out.h"
#include "cli/term.h"

/* One id over all commands: the same name means the same thing, with or without a value,
 * wherever it is accepted. */
enum pl_option_id {
    OPT_FILE,
    OPT_NAMESPACE,
    OPT_OUTPUT,
    OPT_PROFILE,
    OPT_NOW,
    OPT_EXPLAIN,
    OPT_DIFF,
    OPT_EXIT_ZERO,
    OPT_COLOR,
    OPT_MAN,
    OPT_HELP,
    /* A live API. */
    OPT_LIVE,
    OPT_KUBECONFIG,
    OPT_CONTEXT,
    OPT_ALL_NAMESPACES,
    OPT_SELECTOR,
    OPT_TIMEOUT,
    OPT_WATCH,
    OPT_SHOW_CONDITIONS,
    OPT_TRACE,
    OPT_ETCD_DIAL_TIMEOUT,
    OPT_ETCD_CALL_TIMEOUT,
    OPT_ETCD_ENDPOINTS,
    /* The controller. */
    OPT_MODE,
    OPT_WATCH_FILTER,
    OPT_ALL,
    OPT_DRY_RUN,
    OPT_STOP_AFTER_STEP,
    OPT_LEADER_ELECT,
    OPT_LEASE_DURATION,
    OPT_RENEW_DEADLINE,
    OPT_RETRY_PERIOD,
    OPT_SYNC_PERIOD,
    OPT_GRACE_PERIOD,
    OPT_HEALTH_ADDR,
    OPT_DIAGNOSTICS_ADDRESS,
    OPT_INSECURE_DIAGNOSTICS,
    OPT_QPS,
    OPT_BURST,
    OPT_VERBOSITY,
    OPT_LOGGING_FORMAT,
    /* The playground. */
    OPT_CLUSTERS,
    OPT_REPLICAS,
    OPT_WORKERS,
    OPT_SHARED_ETCD,
    OPT_TOUR,
    OPT_DATA,
    OPT_PORT,
    OPT_LISTEN,
    OPT_TOKEN_FILE,
    OPT_COUNT,
};

struct pl_option {
    const char *name;           /* without the dashes */
    const char *argument;       /* "FILE"; NULL: a flag */
    const char *const *choices; /* the values allowed, NULL at the end; NULL: any */
    const char *fallback;       /* the value when it is not given; NULL: none */
    const char *help;
    enum pl_option_id id;
    char letter; /* 0: no short form */
    bool files;  /* its value is a path */
    bool hidden; /* accepted, but for the build and not for people */
};

/* What a shell may offer for an argument that is not an option. */
enum pl_complete {
    COMPLETE_NOTHING,
    COMPLETE_CHOICES,
    COMPLETE_FILES,
    COMPLETE_TABLES,
    COMPLETE_COMMANDS,
    COMPLETE_FAULTS, /* and list, clear */
};

struct pl_argument {
    const char *name; /* "MACHINE" */
    const char *help;
    enum pl_complete complete;
    const char *const *choices; /* with COMPLETE_CHOICES */
};

struct pl_example {
    const char *line;
    const char *what;
};

struct pl_cli;

struct pl_command {
    const char *name;
    const char *summary;     /* half a sentence, no full stop */
    const char *synopsis;    /* what follows the name */
    const char *description; /* paragraphs, parted by newlines; wrapped where they are shown */
    const struct pl_option *options;
    size_t option_count;
    const struct pl_argument *arguments; /* the last one repeats */
    size_t argument_count;
    const struct pl_example *examples;
    size_t example_count;
    /* 0, or -1 with cli->err. What was found goes to pl__cli_note(). */
    int (*run)(struct pl_cli *cli);
};

struct pl_words {
    const char **items;
    size_t count;
};

/* The command line as understood. */
struct pl_args {
    const struct pl_command *command;
    const char *value[OPT_COUNT]; /* as given last, else the fallback; a flag: "" or NULL */
    struct pl_words files;        /* every value of OPT_FILE */
    struct pl_words words;        /* what is not an option, in order */
};

/* What a command works with. */
struct pl_cli {
    struct pl_arena arena; /* lives as long as the command */
    struct pl_error *err;  /* the failure to report at the end */
    enum pl_outcome outcome;
    struct pl_term term;
    struct pl_out out;
    struct pl_args args;
    const char *program; /* as it was called: argv[0] */
};

/* Remembers an outcome; the worst one becomes the exit code. */
void pl__cli_note(struct pl_cli *cli, enum pl_outcome outcome);

/* A mistake on the command line, "eval: ..."; -1, with cli->err. */
#define pl__cli_usage(cli, ...) \
    (pl__error(&(cli)->arena, &(cli)->err, PL_USAGE, __VA_ARGS__), pl__cli_blame(cli))

/* Puts the name of the command, if there is one yet, before its error; returns -1. */
int pl__cli_blame(struct pl_cli *cli);

bool pl__cli_given(const struct pl_cli *cli, enum pl_option_id id);

/* The value of an option as a duration in Go's syntax, of whole seconds: a fraction would be cut without
 * a word. 0, or -1 with cli->err. `max_text` is how people write the most it may be. */
int pl__cli_seconds(struct pl_cli *cli, enum pl_option_id id, uint32_t max, const char *max_text,
                    uint32_t *seconds);

/* The Cluster that the first word names, by name or namespace/name, and the namespace: the word's, else that
 * of -n. Empty: not said. */
void pl__cli_cluster(const struct pl_cli *cli, struct pl_str *namespace_, struct pl_str *cluster);

/* True when `-o` has this value. */
bool pl__cli_output_is(const struct pl_cli *cli, const char *format);

/* All commands, in the order of the overview. */
const struct pl_command *const *pl__commands(size_t *count);
const struct pl_command *pl__command_find(const char *name);

/* The error for a name that no command has; returns -1. */
int pl__command_unknown(struct pl_cli *cli, const char *name);

/* Reads the arguments behind the program's name, the command's own word left out, into cli->args.
 * 0, or -1 with cli->err. */
int pl__args_parse(struct pl_cli *cli, const struct pl_command *command, char **argv, int argc,
                   int command_at);

/* The position of the command's word in argv, stepping over options and their values, or -1. */
int pl__args_find_command(char **argv, int argc);

/* The candidate that was probably meant, or NULL when none is near. */
struct pl_near {
    const char *wanted;
    const char *best;
    size_t distance;
};
void pl__near_offer(struct pl_near *near, const char *candidate);

/* Options that several commands share. */
#define PL_OPTION_FILE                                                                            \
    {                                                                                             \
        .id = OPT_FILE, .name = "filename", .letter = 'f', .argument = "FILE", .files = true,     \
        .help = "a file, a directory, or - for stdin; a directory stands for every *.yaml, "      \
                "*.yml, *.json and *.ndjson below it; may be repeated, and more files may follow" \
    }
#define PL_OPTION_NAMESPACE                                                                  \
    {                                                                                        \
        .id = OPT_NAMESPACE, .name = "namespace", .letter = 'n', .argument = "NS",           \
        .help = "only this namespace; default: with files any, from a live API that of the " \
                "kubeconfig context"                                                         \
    }
#define PL_OPTION_OUTPUT(choices_)                                               \
    {                                                                            \
        .id = OPT_OUTPUT, .name = "output", .letter = 'o', .argument = "FORMAT", \
        .choices = (choices_), .fallback = "table", .help = "how to print"       \
    }
#define PL_OPTION_PROFILE                                                                      \
    {                                                                                          \
        .id = OPT_PROFILE, .name = "profile", .argument = "PROFILE",                           \
        .choices = pl__profile_choices, .fallback = "tables",                                  \
        .help = "whose reasons, messages and deletion order: the documents' own, or byte for " \
                "byte those of Cluster API v1.12"                                              \
    }
#define PL_OPTION_NOW                                                                           \
    {                                                                                           \
        .id = OPT_NOW, .name = "now", .argument = "RFC3339",                                    \
        .help = "the instant of evaluation; default: the snapshot's own, else the current time" \
    }
#define PL_OPTION_EXIT_ZERO                                                   \
    {                                                                         \
        .id = OPT_EXIT_ZERO, .name = "exit-zero",                             \
        .help = "exit with 0 in place of 1 and 3: findings are not a failure" \
    }
#define PL_OPTION_COLOR                                                                     \
    {                                                                                       \
        .id = OPT_COLOR, .name = "color", .argument = "WHEN", .choices = pl__color_choices, \
        .fallback = "auto",                                                                 \
        .help = "when to use colours; auto: on a terminal; NO_COLOR in the environment "    \
                "always wins"                                                               \
    }
#define PL_OPTION_KUBECONFIG                                                                     \
    {                                                                                            \
        .id = OPT_KUBECONFIG, .name = "kubeconfig", .argument = "FILE", .files = true,           \
        .help = "how to reach the management cluster; default: $KUBECONFIG, ~/.kube/config, or " \
                "the service account of the Pod"                                                 \
    }
#define PL_OPTION_CONTEXT                                                 \
    {                                                                     \
        .id = OPT_CONTEXT, .name = "context", .argument = "NAME",         \
        .help = "the kubeconfig context to use; default: its current one" \
    }
#define PL_OPTION_ALL_NAMESPACES                                           \
    {                                                                      \
        .id = OPT_ALL_NAMESPACES, .name = "all-namespaces", .letter = 'A', \
        .help = "the Clusters of all namespaces of a live API"             \
    }
#define PL_OPTION_SELECTOR                                                                   \
    {                                                                                        \
        .id = OPT_SELECTOR, .name = "selector", .letter = 'l', .argument = "LABELS",         \
        .help = "only Clusters of a live API with these labels: env=prod,tier!=test, or env" \
    }
#define PL_OPTION_TIMEOUT                                                                  \
    {                                                                                      \
        .id = OPT_TIMEOUT, .name = "timeout", .argument = "DURATION", .fallback = "30s",   \
        .help = "how long to wait for a live management cluster; a workload cluster that " \
                "does not answer is waited for 10 seconds at most"                         \
    }
/* How the etcd of workload clusters is asked; cli/etcd_options.h reads them. */
#define PL_OPTIONS_ETCD                                                                         \
    { .id = OPT_ETCD_DIAL_TIMEOUT,                                                              \
      .name = "etcd-dial-timeout-duration",                                                     \
      .argument = "DURATION",                                                                   \
      .fallback = "10s",                                                                        \
      .help = "how long connecting to some etcd member may take; at most 1m" },                 \
        { .id = OPT_ETCD_CALL_TIMEOUT,                                                          \
          .name = "etcd-call-timeout-duration",                                                 \
          .argument = "DURATION",                                                               \
          .fallback = "15s",                                                                    \
          .help = "how long one call to etcd may take; at most 1m" },                           \
    {                                                                                           \
        .id = OPT_ETCD_ENDPOINTS, .name = "etcd-endpoints", .argument = "TEMPLATE",             \
        .help =                                                                                 \
            "connect to etcd directly instead of through the workload API server, for example " \
            "https://{address}:2379; {address} is the Node's InternalIP, {node} its name"       \
    }
/* All that a reading command takes for a live API, but -n. */
#define PL_OPTIONS_LIVE                                                                    \
    PL_OPTION_KUBECONFIG, PL_OPTION_CONTEXT, PL_OPTION_ALL_NAMESPACES, PL_OPTION_SELECTOR, \
        PL_OPTION_TIMEOUT, PL_OPTIONS_ETCD
#define PL_OPTION_HELP                                                           \
    {                                                                            \
        .id = OPT_HELP, .name = "help", .letter = 'h', .help = "print this help" \
    }

extern const char *const pl__profile_choices[];
extern const char *const pl__color_choices[];
extern const char *const pl__read_formats[]; /* table wide json yaml name */

#endif
