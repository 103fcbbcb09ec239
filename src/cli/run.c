/* plimsoll run - the controller.
 *
 * Everything on the command line is checked before anything is contacted. Then one loop runs the
 * controller, its connections and the diagnostics servers until a signal, a lost leadership or a
 * startup that cannot succeed. */
#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include "base/secret.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "cli/driver.h"
#include "cli/etcd_options.h"
#include "cli/logs.h"
#include "controller/election.h"

enum {
    DRAIN_MS = 4500,      /* the end comes within 5 s, with closing all connections */
    LOGS_HELD_MS = 15000, /* a start that fails does so before */
    DURATION_S_MAX = 30 * 24 * 3600,
    RATE_MAX = 100000,
    VERBOSITY_MAX = 10,
    NAMESPACE_BYTES_MAX = 63,
    LABEL_VALUE_BYTES_MAX = 63,
    EXIT_NOW = 1,         /* the second signal */
    EXIT_AFTER_STEP = 75, /* --stop-after-step, as if killed there */
    STEPS_MAX = 1000000,
};

static const char lease_name[] = "controller-leader-election-plimsoll";

static const char *const modes[] = { "shadow", "status", "manage", NULL };
static const char *const log_formats[] = { "text", "json", NULL };

#define TIME_OPTION(id_, name_, fallback_, help_)                                      \
    {                                                                                  \
        .id = (id_), .name = (name_), .argument = "DURATION", .fallback = (fallback_), \
        .help = (help_)                                                                \
    }

static const struct pl_option options[] = {
    { .id = OPT_MODE,
      .name = "mode",
      .argument = "MODE",
      .choices = modes,
      .fallback = "shadow",
      .help =
          "shadow reads, computes and measures, and writes nothing; status also writes the "
          "conditions of KubeadmControlPlanes, their Machines and MachineDeployments, and Events; "
          "manage also acts on them: it remediates and replaces Machines and takes control planes "
          "down" },
    PL_OPTION_KUBECONFIG,
    PL_OPTION_CONTEXT,
    { .id = OPT_NAMESPACE,
      .name = "namespace",
      .letter = 'n',
      .argument = "NS",
      .help = "only objects of this namespace; default: all" },
    { .id = OPT_WATCH_FILTER,
      .name = "watch-filter",
      .argument = "VALUE",
      .help = "only objects whose label cluster.x-k8s.io/watch-filter has this value; a mode that "
              "writes needs it, or --all" },
    { .id = OPT_ALL,
      .name = "all",
      .help = "write to every object: Cluster API's own controller must not run beside us" },
    { .id = OPT_DRY_RUN,
      .name = "dry-run",
      .help = "log what would be written and done, and write and do nothing" },
    { .id = OPT_STOP_AFTER_STEP,
      .name = "stop-after-step",
      .argument = "NUMBER",
      .hidden = true,
      .help = "for tests: end with 75 when so many steps of acting were answered" },
    PL_OPTION_PROFILE,
    { .id = OPT_LEADER_ELECT,
      .name = "leader-elect",
      .help = "let one of several replicas write, by a Lease named "
              "controller-leader-election-plimsoll in the namespace of the Pod ($POD_NAMESPACE, "
              "or the service account's), or else of the kubeconfig context; nothing to elect "
              "where nothing is written (shadow, --dry-run)" },
    TIME_OPTION(OPT_LEASE_DURATION, "leader-elect-lease-duration", "1m",
                "how long others wait after the last sign of a leader"),
    TIME_OPTION(OPT_RENEW_DEADLINE, "leader-elect-renew-deadline", "40s",
                "how long a leader tries to renew before it ends"),
    TIME_OPTION(OPT_RETRY_PERIOD, "leader-elect-retry-period", "5s",
                "the time between two tries to become or stay leader"),
    TIME_OPTION(OPT_SYNC_PERIOD, "sync-period", "10m",
                "look at every object again after this time though nothing changed"),
    TIME_OPTION(
        OPT_GRACE_PERIOD, "remote-conditions-grace-period", "5m",
        "how long conditions stay as they are when a workload cluster cannot be reached; at "
        "least 2m"),
    { .id = OPT_HEALTH_ADDR,
      .name = "health-addr",
      .argument = "ADDRESS",
      .fallback = ":9440",
      .help = "where to serve /healthz and /readyz over plain HTTP; 0: nowhere" },
    { .id = OPT_DIAGNOSTICS_ADDRESS,
      .name = "diagnostics-address",
      .argument = "ADDRESS",
      .fallback = ":8443",
      .help = "where to serve /metrics over HTTPS to those who may get it (TokenReview and "
              "SubjectAccessReview); 0: nowhere" },
    { .id = OPT_INSECURE_DIAGNOSTICS,
      .name = "insecure-diagnostics",
      .help = "serve /metrics over plain HTTP, to everybody" },
    PL_OPTIONS_ETCD,
    { .id = OPT_QPS,
      .name = "kube-api-qps",
      .argument = "NUMBER",
      .fallback = "100",
      .help = "requests per second to the management cluster" },
    { .id = OPT_BURST,
      .name = "kube-api-burst",
      .argument = "NUMBER",
      .fallback = "200",
      .help = "requests that may go at once before that limit holds" },
    { .id = OPT_VERBOSITY,
      .name = "v",
      .letter = 'v',
      .argument = "LEVEL",
      .fallback = "0",
      .help = "how much to log, 0 to 10; from 4 on also what is for debugging" },
    { .id = OPT_LOGGING_FORMAT,
      .name = "logging-format",
      .argument = "FORMAT",
      .choices = log_formats,
      .fallback = "text",
      .help = "how log lines look" },
    PL_OPTION_HELP,
};

static const struct pl_example examples[] = {
    { "plimsoll run --insecure-diagnostics", "watch, judge and measure; write nothing" },
    { "plimsoll run --mode status --watch-filter plimsoll --leader-elect",
      "write the conditions of labelled objects, one replica of several" },
    { "plimsoll run --mode status --all --dry-run", "see what would be written" },
    { "plimsoll run --mode manage --watch-filter plimsoll --leader-elect",
      "act on labelled control planes, too" },
};

/* What the command line asks for, checked. */
struct settings {
    struct pl_controller_options controller;
    struct pl_diagnostics_options diagnostics;
    struct pl_etcd_options etcd;
    double qps, burst;
    uint32_t verbosity;
};

/* A running controller. */
struct run {
    struct pl_cli *cli;
    struct pl_logs logs;
    struct pl_driver *driver;
    struct pl_diagnostics *diagnostics;
    uv_signal_t signals[2];
    uv_timer_t drain;
    uint64_t started_ms;
    bool stopping;
};

/* --- checking the command line ------------------------------------------------------------------- */

static const char *value_of(const struct pl_cli *cli, enum pl_option_id id)
{
    return cli->args.value[id];
}

static const char *name_of(enum pl_option_id id)
{
    size_t at = 0;

    while (options[at].id != id)
        at++;
    return options[at].name;
}

static int take_seconds(struct pl_cli *cli, enum pl_option_id id, uint32_t *seconds)
{
    return pl__cli_seconds(cli, id, DURATION_S_MAX, "720h", seconds);
}

static int take_ms(struct pl_cli *cli, enum pl_option_id id, uint32_t *ms)
{
    uint32_t seconds = 0;

    if (take_seconds(cli, id, &seconds) < 0)
        return -1;
    *ms = seconds * 1000;
    return 0;
}

static int take_number(struct pl_cli *cli, enum pl_option_id id, uint64_t min, uint64_t max,
                       uint64_t *number)
{
    const char *text = value_of(cli, id);

    if (!pl__str_to_u64(pl__str(text), number) || *number < min || *number > max)
        return pl__cli_usage(cli, "--%s \"%s\": expected a whole number from %llu to %llu",
                             name_of(id), text, (unsigned long long)min, (unsigned long long)max);
    return 0;
}

/* "100" or "12.5"; no exponents, no hexadecimal. */
static int take_rate(struct pl_cli *cli, enum pl_option_id id, double *rate)
{
    const char *text = value_of(cli, id);
    bool plain = text[0] != '\0' && strspn(text, "0123456789.") == strlen(text);
    char *end = NULL;

    *rate = plain ? strtod(text, &end) : 0;
    if (!plain || *end != '\0' || *rate <= 0 || *rate > RATE_MAX)
        return pl__cli_usage(cli, "--%s \"%s\": expected a number above 0, at most %d", name_of(id),
                             text, RATE_MAX);
    return 0;
}

static bool is_lower_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* It becomes part of a URL. */
static int check_namespace(struct pl_cli *cli, const char *name)
{
    size_t len = name ? strlen(name) : 1;
    bool fits = len >= 1 && len <= NAMESPACE_BYTES_MAX;

    for (size_t i = 0; name && fits && i < len; i++)
        fits = is_lower_or_digit(name[i]) || (name[i] == '-' && i > 0 && i + 1 < len);
    if (!fits)
        return pl__cli_usage(cli, "--namespace \"%s\": expected lower case letters, digits and -",
                             name ? name : "");
    return 0;
}

static int check_watch_filter(struct pl_cli *cli, const char *value)
{
    size_t len = value ? strlen(value) : 1;
    bool fits = len >= 1 && len <= LABEL_VALUE_BYTES_MAX;

    for (size_t i = 0; value && fits && i < len; i++) {
        bool letter = is_lower_or_digit(value[i]) || (value[i] >= 'A' && value[i] <= 'Z');
        fits = letter || (strchr("-_.", value[i]) && i > 0 && i + 1 < len);
    }
    if (!fits)
        return pl__cli_usage(
            cli,
            "--watch-filter \"%s\": expected the value of a label: 1 to 63 letters, "
            "digits, -, _ or .",
            value ? value : "");
    return 0;
}

static int take_stop(struct pl_cli *cli, struct pl_controller_options *c)
{
    uint64_t steps = 0;

    if (value_of(cli, OPT_STOP_AFTER_STEP) &&
        take_number(cli, OPT_STOP_AFTER_STEP, 1, STEPS_MAX, &steps) < 0)
        return -1;
    c->stop_after_step = (uint32_t)steps;
    return 0;
}

/* Two writers on one object flap, so a mode that writes says on which. */
static int take_mode(struct pl_cli *cli, struct pl_controller_options *c)
{
    const char *mode = value_of(cli, OPT_MODE);

    c->mode = strcmp(mode, "shadow") == 0   ? MODE_SHADOW
              : strcmp(mode, "manage") == 0 ? MODE_MANAGE
                                            : MODE_STATUS;
    c->namespace_ = value_of(cli, OPT_NAMESPACE);
    c->watch_filter = value_of(cli, OPT_WATCH_FILTER);
    c->dry_run = pl__cli_given(cli, OPT_DRY_RUN);
    if (check_namespace(cli, c->namespace_) < 0 || check_watch_filter(cli, c->watch_filter) < 0)
        return -1;
    if (c->watch_filter && pl__cli_given(cli, OPT_ALL))
        return pl__cli_usage(cli, "--watch-filter and --all exclude each other");
    if (c->mode != MODE_SHADOW && !c->watch_filter && !pl__cli_given(cli, OPT_ALL))
        return pl__cli_usage(
            cli,
            "--mode %s writes: name its objects with --watch-filter VALUE, or give "
            "--all when no other controller writes their conditions",
            mode);
    return take_stop(cli, c);
}

/* What keeps two leaders apart: a leader ends before others may start. */
static int take_election(struct pl_cli *cli, struct pl_controller_options *c)
{
    if (take_ms(cli, OPT_LEASE_DURATION, &c->lease_duration_ms) < 0 ||
        take_ms(cli, OPT_RENEW_DEADLINE, &c->renew_deadline_ms) < 0 ||
        take_ms(cli, OPT_RETRY_PERIOD, &c->retry_period_ms) < 0)
        return -1;
    if (c->lease_duration_ms <= c->renew_deadline_ms)
        return pl__cli_usage(cli, "--%s must be longer than --%s", name_of(OPT_LEASE_DURATION),
                             name_of(OPT_RENEW_DEADLINE));
    if ((uint64_t)c->renew_deadline_ms * 10 <= (uint64_t)c->retry_period_ms * 12)
        return pl__cli_usage(cli, "--%s must be longer than 1.2 times --%s",
                             name_of(OPT_RENEW_DEADLINE), name_of(OPT_RETRY_PERIOD));
    c->leader_elect = pl__cli_given(cli, OPT_LEADER_ELECT) && c->mode != MODE_SHADOW && !c->dry_run;
    return 0;
}

static int take_periods(struct pl_cli *cli, struct pl_controller_options *c)
{
    if (take_seconds(cli, OPT_SYNC_PERIOD, &c->sync_period_s) < 0 ||
        take_seconds(cli, OPT_GRACE_PERIOD, &c->grace_period_s) < 0)
        return -1;
    if (c->grace_period_s < GRACE_PERIOD_S_MIN)
        return pl__cli_usage(cli, "--%s \"%s\": expected at least 2m", name_of(OPT_GRACE_PERIOD),
                             value_of(cli, OPT_GRACE_PERIOD));
    return 0;
}

static int take_limits(struct pl_cli *cli, struct settings *s)
{
    uint64_t burst, verbosity;

    if (take_rate(cli, OPT_QPS, &s->qps) < 0 ||
        take_number(cli, OPT_BURST, 1, RATE_MAX, &burst) < 0 ||
        take_number(cli, OPT_VERBOSITY, 0, VERBOSITY_MAX, &verbosity) < 0)
        return -1;
    s->burst = (double)burst;
    s->verbosity = (uint32_t)verbosity;
    return 0;
}

static int take_address(struct pl_cli *cli, enum pl_option_id id, const char **address)
{
    const char *text = value_of(cli, id);

    *address = strcmp(text, "0") == 0 || text[0] == '\0' ? NULL : text;
    if (*address && !pl__diagnostics_address_valid(text))
        return pl__cli_usage(cli, "--%s \"%s\": expected HOST:PORT, :PORT, or 0 for none",
                             name_of(id), text);
    return 0;
}

static int take_diagnostics(struct pl_cli *cli, struct pl_diagnostics_options *d)
{
    d->insecure = pl__cli_given(cli, OPT_INSECURE_DIAGNOSTICS);
    if (take_address(cli, OPT_HEALTH_ADDR, &d->health_address) < 0)
        return -1;
    return take_address(cli, OPT_DIAGNOSTICS_ADDRESS, &d->metrics_address);
}

static int take_settings(struct pl_cli *cli, struct settings *s)
{
    struct pl_controller_options *c = &s->controller;

    if (cli->args.words.count)
        return pl__cli_usage(cli, "\"%s\": expected no argument", cli->args.words.items[0]);
    if (pl_profile_from_name(value_of(cli, OPT_PROFILE), &c->profile) < 0)
        return pl__cli_usage(cli, "--profile \"%s\": unknown", value_of(cli, OPT_PROFILE));
    if (take_mode(cli, c) < 0 || take_election(cli, c) < 0 || take_periods(cli, c) < 0)
        return -1;
    if (take_limits(cli, s) < 0 || pl__etcd_options_take(cli, &s->etcd) < 0)
        return -1;
    return take_diagnostics(cli, &s->diagnostics);
}

/* --- who we are ---------------------------------------------------------------------------------- */

/* Host and random: two processes never share one, a restarted one is new. */
static int name_ourselves(struct pl_cli *cli, const struct pl_kube_config *config,
                          struct pl_controller_options *c, struct pl_error **err)
{
    char host[HOST_NAME_MAX + 1] = "";
    uint64_t random[3];

    if (uv_random(NULL, NULL, random, sizeof random, 0, NULL) < 0)
        return pl__error(&cli->arena, err, PL_IO, "no random numbers to be had");
    if (gethostname(host, sizeof host - 1) < 0 || host[0] == '\0')
        memcpy(host, "plimsoll", sizeof "plimsoll");
    c->seed = random[0];
    c->identity = pl__str_format(&cli->arena, "%s_%016llx%016llx", host,
                                 (unsigned long long)random[1], (unsigned long long)random[2])
                      .ptr;
    c->lease_name = lease_name;
    /* In a cluster the service account's namespace is in the config; the variable is how a Pod is told
     * when a kubeconfig is used all the same. */
    const char *pod_namespace = getenv("POD_NAMESPACE");
    c->lease_namespace = pod_namespace && *pod_namespace
                             ? pod_namespace
                             : pl__str_copy(&cli->arena, config->namespace_).ptr;
    return 0;
}

/* --- signals ------------------------------------------------------------------------------------- */

static void drain_over(uv_timer_t *timer)
{
    struct run *r = timer->data;

    pl__logs_write(&r->logs, PL_LOG_ERROR, "Not everything ended in time, stopping anyway", NULL,
                   0);
    pl__driver_stop(r->driver);
}

static void signal_came(uv_signal_t *handle, int number)
{
    struct run *r = handle->data;

    if (r->stopping)
        _exit(EXIT_NOW);
    r->stopping = true;
    PL_LOGS(&r->logs, PL_LOG_INFO, "Stopping",
            { "signal", pl__str(number == SIGTERM ? "SIGTERM" : "SIGINT") });
    uv_timer_start(&r->drain, drain_over, DRAIN_MS, 0);
    pl__driver_shutdown(r->driver);
}

static void watch_signals(struct run *r)
{
    static const int numbers[] = { SIGTERM, SIGINT };
    uv_loop_t *uv = pl__loop_uv(pl__driver_loop(r->driver));

    uv_timer_init(uv, &r->drain);
    r->drain.data = r;
    for (size_t i = 0; i < 2; i++) {
        uv_signal_init(uv, &r->signals[i]);
        r->signals[i].data = r;
        uv_signal_start(&r->signals[i], signal_came, numbers[i]);
    }
}

/* --- running ------------------------------------------------------------------------------------- */

static int64_t turn_wall_ms(void *user)
{
    struct run *r = user;

    return r->driver ? pl__driver_now(r->driver).wall_ms : pl__loop_wall_ms();
}

/* Once everything was read the start has succeeded, and logs go out as they come. */
static void turn_over(void *user)
{
    struct run *r = user;

    if (!r->logs.holding)
        return;
    if (pl_controller_synced(pl__driver_controller(r->driver)) ||
        pl__driver_now(r->driver).mono_ms - r->started_ms > LOGS_HELD_MS)
        pl__logs_let_go(&r->logs, false);
}

/* The configuration and what is said about it live in an arena that is wiped. */
static int open_all(struct run *r, struct settings *s, struct pl_arena *arena,
                    struct pl_error **err)
{
    struct pl_cli *cli = r->cli;
    struct pl_kube_config config = { .server = { "", 0 } };

    if (pl__kube_config_load(arena, value_of(cli, OPT_KUBECONFIG), value_of(cli, OPT_CONTEXT),
                             &config, err) < 0)
        return -1;
    if (name_ourselves(cli, &config, &s->controller, err) < 0)
        return -1;
    s->controller.log = pl__logs_write;
    s->controller.log_user = &r->logs;
    struct pl_driver_options driver = { .config = &config,
                                        .qps = s->qps,
                                        .burst = s->burst,
                                        .controller = s->controller,
                                        .etcd = s->etcd,
                                        .turn = turn_over,
                                        .user = r };
    if (pl__driver_new(&driver, arena, &r->driver, err) < 0)
        return -1;
    return pl__diagnostics_open(r->driver, &s->diagnostics, arena, &r->diagnostics, err);
}

static int start(struct run *r, struct settings *s)
{
    struct pl_cli *cli = r->cli;
    struct pl_error *err = NULL;
    struct pl_arena arena;

    pl__arena_init(&arena, &pl__secret_allocator, 0);
    int result = open_all(r, s, &arena, &err);
    if (result < 0)
        pl__error(&cli->arena, &cli->err, err->code, "run: %.*s",
                  PL_STR_ARG(pl__error_text(&arena, err)));
    pl__arena_release(&arena);
    return result;
}

static void say_start(struct run *r, const struct settings *s)
{
    PL_LOGS(&r->logs, PL_LOG_INFO, "Starting", { "version", pl__str(pl_version()) },
            { "mode", pl__str(value_of(r->cli, OPT_MODE)) },
            { "profile", pl__str(value_of(r->cli, OPT_PROFILE)) },
            { "dryRun", s->controller.dry_run ? PL_STR("true") : PL_STR("false") },
            { "server", pl__str(pl__kube_host(pl__driver_management(r->driver))) },
            { "identity", pl__str(s->controller.identity) });
    if (pl__cli_given(r->cli, OPT_LEADER_ELECT) && !s->controller.leader_elect)
        PL_LOGS(&r->logs, PL_LOG_INFO, "Leader election is off because nothing is written",
                { "mode", pl__str(value_of(r->cli, OPT_MODE)) });
}

/* A controller that stops by itself: leadership is lost (others go on), or it could not start. */
static int judge_stop(struct run *r)
{
    struct pl_str reason = pl__driver_stop_reason(r->driver);

    if (reason.len == 0)
        return 0;
    if (pl__str_starts_with(reason, PL_STR(PL_STOPPED_AFTER_STEP)))
        _exit(EXIT_AFTER_STEP);
    if (!pl__str_starts_with(reason, PL_STR(PL_ELECTION_LOST))) {
        pl__logs_let_go(&r->logs, r->logs.verbosity < LOG_DEBUG_VERBOSITY);
        return pl__error(&r->cli->arena, &r->cli->err, PL_IO, "run: %.*s", PL_STR_ARG(reason));
    }
    PL_LOGS(&r->logs, PL_LOG_ERROR, "Leader election lost, stopping", { "err", reason });
    pl__cli_note(r->cli, OUTCOME_FINDINGS);
    return 0;
}

static int run_controller(struct run *r, struct settings *s)
{
    if (start(r, s) < 0)
        return -1;
    r->started_ms = pl__driver_now(r->driver).mono_ms;
    watch_signals(r);
    pl__logs_hold(&r->logs);
    say_start(r, s);
    pl__driver_run(r->driver);
    if (judge_stop(r) < 0)
        return -1;
    if (r->stopping)
        pl__logs_write(&r->logs, PL_LOG_INFO, "Stopped", NULL, 0);
    return 0;
}

static int run(struct pl_cli *cli)
{
    struct settings settings = { .qps = 0 };
    struct run r = { .cli = cli };

    if (take_settings(cli, &settings) < 0)
        return -1;
    pl__logs_init(&r.logs, value_of(cli, OPT_LOGGING_FORMAT), settings.verbosity);
    r.logs.wall_ms = turn_wall_ms;
    r.logs.user = &r;
    int result = run_controller(&r, &settings);
    pl__diagnostics_close(r.diagnostics);
    pl__driver_free(r.driver);
    pl__diagnostics_free(r.diagnostics);
    pl__logs_release(&r.logs);
    return result;
}

const struct pl_command pl__command_run = {
    .name = "run",
    .summary = "watch a management cluster and write conditions",
    .synopsis = "[OPTIONS]",
    .description =
        "Runs the controller: watches a management cluster and, through the kubeconfig Secrets of "
        "its "
        "Clusters, the control plane Nodes and static Pods of every workload cluster; asks its "
        "etcd, if the control plane manages it, with the CA in Secret CLUSTER-etcd; judges each "
        "change with the transition tables; in the modes that write, applies the conditions; and "
        "in mode manage acts on them, one call at a time: it moves etcd leadership, removes "
        "members, deletes and replaces Machines, and takes control planes down.\n"
        "Two writers on one object flap. A mode that writes therefore acts only on objects that "
        "--watch-filter selects, unless --all is given.\n"
        "Logs go to standard error. SIGTERM or SIGINT ends it: what is under way is finished, the "
        "Lease "
        "is given back, within five seconds; a second signal ends it at once.\n"
        "It exits with 0 after a signal, with 1 when leadership was lost (or at the second "
        "signal), "
        "and with 2 when the command line is wrong or it cannot start: no usable kubeconfig, the "
        "server does not answer, credentials or permissions are missing, or Cluster API's "
        "resources "
        "are not there.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .examples = examples,
    .example_count = sizeof examples / sizeof examples[0],
    .run = run,
};
