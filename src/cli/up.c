/* plimsoll up - the playground: an API server, a simulated fleet with real etcd, and the controller in mode
 * manage, in one process.
 *
 *   loop --- httpd --- apiserver --- fleet --- etcd processes
 *     \                    ^
 *      driver (controller) +  over loopback HTTP, as it would talk to any API server
 *
 * The controller does not know that it plays: it has a kubeconfig and nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/secret.h"
#include "cli/commands.h"
#include "cli/driver.h"
#include "cli/logs.h"
#include "cli/playground.h"
#include "cli/text.h"
#include "cli/tour.h"
#include "cli/up_look.h"
#include "cli/up_view.h"
#include "loop/files.h"

enum {
    CLUSTERS_MAX = FLEET_CLUSTERS_MAX,
    PORT_MAX = 65535,
    TOKEN_BYTES_MAX = 4096,
    TOKEN_BYTES_MIN = 16,
    TOUR_CLUSTERS_MIN = 2,
    ETCD_PERIOD_S = 5, /* what is broken in etcd alone shows soon, where there are few to ask */
    FEW_CLUSTERS = 40,
    GRACE_S = 20, /* more than two probes apart; 2 minutes would be long to watch */
    QPS = 2000,
    BURST = 4000,
    ETCD_DIAL_MS = 3000,
    ETCD_CALL_MS = 3000,
    SETTLE_MS = 90 * 1000, /* for the fleet to come up before a tour */
    DRAIN_MS = 4500,
    LOOK_AGAIN_MS = 500,
    UNREAD_BYTES_MAX = 256 * 1024, /* of output */
    LAST_WORDS_MS = 1000,          /* for somebody to read them, after a signal */
};

static const struct pl_option options[] = {
    /* clang-format off */
    { .id = OPT_CLUSTERS, .name = "clusters", .argument = "NUMBER", .fallback = "2",
      .help = "how many Clusters to make, named demo-1, demo-2, ..." },
    { .id = OPT_REPLICAS, .name = "replicas", .argument = "NUMBER", .fallback = "3",
      .help = "control plane Machines of each" },
    { .id = OPT_WORKERS, .name = "workers", .argument = "NUMBER", .fallback = "1",
      .help = "Machines of each Cluster's MachineDeployment" },
    { .id = OPT_SHARED_ETCD, .name = "shared-etcd",
      .help = "one etcd for all Clusters, in place of one for each: for many Clusters" },
    { .id = OPT_TOUR, .name = "tour",
      .help = "break and mend one thing after the other, through every row of the tables, say what should "
              "happen and what did, and end; needs two Clusters" },
    PL_OPTION_PROFILE,
    { .id = OPT_DATA, .name = "data", .argument = "DIR", .files = true,
      .help = "keep objects, etcd's data, kubeconfig and logs in this folder, and go on with what is there; "
              "default: objects in memory, the rest in a new folder that is removed at the end" },
    { .id = OPT_PORT, .name = "port", .argument = "NUMBER", .fallback = "0",
      .help = "where the API server listens; 0: any port that is free" },
    { .id = OPT_LISTEN, .name = "listen", .argument = "ADDRESS", .fallback = "127.0.0.1",
      .help = "on which address; one that others can reach needs --token-file, and serves HTTPS" },
    { .id = OPT_TOKEN_FILE, .name = "token-file", .argument = "FILE", .files = true,
      .help = "a file with the token that clients have to show, at least 16 bytes" },
    PL_OPTION_COLOR,
    PL_OPTION_HELP,
    /* clang-format on */
};

static const struct pl_example examples[] = {
    { "plimsoll up", "two Clusters, until Ctrl-C" },
    { "plimsoll up --tour", "the guided tour: everything breaks once, and heals" },
    { "plimsoll up --clusters 100 --shared-etcd", "a larger fleet" },
};

/* What the command line asks for, checked. */
struct settings {
    struct pl_playground_options playground;
    enum pl_profile profile;
    bool tour;
    char listen[128];
};

enum stage {
    STAGE_RUNNING,
    STAGE_FLEET_ENDS, /* processes are being ended */
    STAGE_DRAINING,   /* the controller finishes */
};

struct up {
    struct pl_cli *cli;
    const struct settings *settings;
    struct pl_loop *loop; /* ours until the driver has it */
    struct pl_playground *playground;
    struct pl_driver *driver;
    struct pl_logs logs;
    struct pl_look *look;
    struct pl_view *view;
    struct pl_tour *tour;
    struct pl_arena scratch;
    bool touring; /* the fleet has come up */
    bool tour_over;
    enum stage stage;
    uint32_t signals_seen;
    size_t lines_lost;  /* of output that nobody read */
    uint32_t processes; /* of etcd, when the end began */
    uint64_t started_ms;
    uv_signal_t signals[3];
    uv_timer_t drain;
    uv_timer_t again; /* the next look */
};

/* --- the command line ------------------------------------------------------------------------------ */

static const char *value_of(const struct pl_cli *cli, enum pl_option_id id)
{
    return cli->args.value[id];
}

static int take_number(struct pl_cli *cli, enum pl_option_id id, const char *name, uint64_t min,
                       uint64_t max, uint32_t *number)
{
    const char *text = value_of(cli, id);
    uint64_t value = 0;

    if (!pl__str_to_u64(pl__str(text), &value) || value < min || value > max)
        return pl__cli_usage(cli, "--%s \"%s\": expected a whole number from %llu to %llu", name,
                             text, (unsigned long long)min, (unsigned long long)max);
    *number = (uint32_t)value;
    return 0;
}

/* 127.0.0.0/8, ::1 or localhost: nobody else can reach it. */
static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0 ||
           strcmp(address, "localhost") == 0;
}

static int take_token(struct pl_cli *cli, struct pl_arena *secrets, struct pl_str *token)
{
    const char *file = value_of(cli, OPT_TOKEN_FILE);
    struct pl_error *cause = NULL;

    if (!file)
        return 0;
    if (pl__file_read(secrets, file, TOKEN_BYTES_MAX, token, &cause) < 0)
        return pl__error(&cli->arena, &cli->err, cause->code, "up: --token-file: %.*s",
                         PL_STR_ARG(pl__error_text(&cli->arena, cause)));
    while (token->len && strchr(" \t\r\n", token->ptr[token->len - 1]))
        token->len--;
    for (size_t i = 0; i < token->len; i++) {
        if (token->ptr[i] <= ' ' || token->ptr[i] > '~')
            return pl__cli_usage(cli, "--token-file %s: expected one word without spaces", file);
    }
    if (token->len < TOKEN_BYTES_MIN)
        return pl__cli_usage(cli, "--token-file %s: expected at least %d bytes", file,
                             TOKEN_BYTES_MIN);
    return 0;
}

static int take_address(struct pl_cli *cli, struct settings *s)
{
    const char *address = value_of(cli, OPT_LISTEN);
    bool v6 = strchr(address, ':') != NULL;
    uint32_t port = 0;

    if (take_number(cli, OPT_PORT, "port", 0, PORT_MAX, &port) < 0)
        return -1;
    if (!*address || strlen(address) > 64)
        return pl__cli_usage(cli, "--listen \"%s\": expected an address", address);
    if (!is_loopback(address) && s->playground.token.len == 0)
        return pl__cli_usage(cli,
                             "--listen %s can be reached by others: --token-file says what they "
                             "have to show",
                             address);
    snprintf(s->listen, sizeof s->listen, v6 ? "[%s]:%u" : "%s:%u", address, port);
    s->playground.listen = s->listen;
    return 0;
}

static int take_settings(struct pl_cli *cli, struct settings *s, struct pl_arena *secrets)
{
    struct pl_playground_options *p = &s->playground;

    if (cli->args.words.count)
        return pl__cli_usage(cli, "\"%s\": expected no argument", cli->args.words.items[0]);
    if (pl_profile_from_name(value_of(cli, OPT_PROFILE), &s->profile) < 0)
        return pl__cli_usage(cli, "--profile \"%s\": unknown", value_of(cli, OPT_PROFILE));
    if (take_number(cli, OPT_CLUSTERS, "clusters", 0, CLUSTERS_MAX, &p->clusters) < 0 ||
        take_number(cli, OPT_REPLICAS, "replicas", 1, FLEET_REPLICAS_MAX, &p->replicas) < 0 ||
        take_number(cli, OPT_WORKERS, "workers", 0, FLEET_WORKERS_MAX, &p->workers) < 0 ||
        take_token(cli, secrets, &p->token) < 0 || take_address(cli, s) < 0)
        return -1;
    p->shared_etcd = pl__cli_given(cli, OPT_SHARED_ETCD);
    p->directory = value_of(cli, OPT_DATA);
    s->tour = pl__cli_given(cli, OPT_TOUR);
    if (s->tour &&
        (p->clusters < TOUR_CLUSTERS_MIN || p->replicas != 3 || p->workers == 0 || p->shared_etcd))
        return pl__cli_usage(cli,
                             "--tour needs at least 2 Clusters of 3 replicas and a worker, each "
                             "with its own etcd");
    return 0;
}

/* --- ending ------------------------------------------------------------------------------------------ */

static void drain_over(uv_timer_t *timer)
{
    struct up *u = timer->data;

    pl__driver_stop(u->driver);
}

/* No process of ours runs any more. The controller's last words follow; then the loop ends. */
static void fleet_ended(void *user)
{
    struct up *u = user;

    if (u->stage == STAGE_DRAINING)
        return;
    u->stage = STAGE_DRAINING;
    uv_timer_start(&u->drain, drain_over, DRAIN_MS, 0);
    pl__driver_shutdown(u->driver);
}

static void end(struct up *u)
{
    if (u->stage != STAGE_RUNNING)
        return;
    u->stage = STAGE_FLEET_ENDS;
    u->processes = pl__fleet_counts(pl__playground_fleet(u->playground)).processes;
    uv_timer_stop(&u->again);
    pl__playground_stop(u->playground, fleet_ended, u);
}

/* The first one ends everything in order; the second does not wait: what still runs then is killed, and waited for. */
static void signal_came(uv_signal_t *handle, int number)
{
    struct up *u = handle->data;

    (void)number;
    if (u->signals_seen++ > 0) {
        pl__driver_stop(u->driver);
        return;
    }
    pl__view_leave(u->view);
    pl__view_say(u->view, PL_STR("Stopping; Ctrl-C again does not wait for anybody."));
    pl__out_offer(&u->cli->out, 0, &u->cli->arena, NULL); /* nobody need be there to read it */
    end(u);
}

/* Before there is anything to leave behind. They are answered once the loop runs. */
static void watch_signals(struct up *u)
{
    static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };
    uv_loop_t *uv = pl__loop_uv(u->loop);

    uv_timer_init(uv, &u->drain);
    uv_timer_init(uv, &u->again);
    u->drain.data = u->again.data = u;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        uv_signal_init(uv, &u->signals[i]);
        u->signals[i].data = u;
        uv_signal_start(&u->signals[i], signal_came, numbers[i]);
    }
}

/* --- looking ----------------------------------------------------------------------------------------- */

/* A reader who does not read, but may again, loses lines and stops nobody. */
static void flush(struct up *u)
{
    struct pl_out *out = &u->cli->out;

    if (u->lines_lost && out->buf.len < UNREAD_BYTES_MAX / 2) {
        pl__buf_printf(&out->buf, "(%zu lines left out: nobody read them)\n", u->lines_lost);
        u->lines_lost = 0;
    }
    if (pl__out_offer(out, 0, &u->cli->arena, &u->cli->err) < 0)
        end(u); /* nobody reads any more */
    else if (out->buf.len > UNREAD_BYTES_MAX)
        u->lines_lost += pl__out_drop(out);
}

static void seen(void *user, const struct pl_object *object, const struct pl_verdict *verdict,
                 bool written)
{
    struct up *u = user;

    if (u->tour)
        pl__tour_seen(u->tour, object, verdict, written, pl__driver_now(u->driver).mono_ms);
}

static void changed(void *user, const struct pl_transition *transition)
{
    struct up *u = user;

    pl__view_changed(u->view, transition);
}

static void tour_tells(void *user, struct pl_str lines)
{
    struct up *u = user;

    pl__view_say(u->view, lines);
}

static void fleet_said(void *user, struct pl_str line)
{
    struct up *u = user;
    struct pl_buf safe;

    if (!u->view)
        return;
    pl__buf_init(&safe, &u->scratch, 4096);
    pl__text_add(&safe, line);
    pl__view_say(u->view, pl__buf_str(&safe));
}

/* A tour begins when there is something to break; one that never can is a miss. */
static void tour_goes_on(struct up *u, struct pl_now now)
{
    bool settled = pl__fleet_counts(pl__playground_fleet(u->playground)).settled;

    if (u->tour_over)
        return;
    if (!u->touring && !settled && now.mono_ms - u->started_ms < SETTLE_MS)
        return;
    u->touring = true;
    u->tour_over = !pl__tour_step(u->tour, pl__look_snapshot(u->look), now);
    if (u->tour_over)
        end(u);
}

static struct pl_str status_line(struct up *u)
{
    struct pl_fleet_counts c = pl__fleet_counts(pl__playground_fleet(u->playground));
    struct pl_str tour = u->tour ? pl__tour_status(u->tour, &u->scratch) : PL_STR("");

    return pl__str_format(&u->scratch,
                          "%.*s%s%u Cluster%s, %u of %u Machines run, %u etcd processes; "
                          "Ctrl-C ends it",
                          PL_STR_ARG(tour), tour.len ? "; " : "", c.clusters,
                          c.clusters == 1 ? "" : "s", c.running, c.machines, c.processes);
}

static void again_fired(uv_timer_t *timer)
{
    (void)timer; /* the turn that follows looks */
}

/* At the end of every turn of the loop. */
static void turn(void *user)
{
    struct up *u = user;
    struct pl_controller *c = pl__driver_controller(u->driver);
    struct pl_now now = pl__driver_now(u->driver);
    uint64_t wait_ms = LOOK_AGAIN_MS;
    struct pl_error *err = NULL;

    if (u->stage != STAGE_RUNNING)
        return;
    pl__arena_reset(&u->scratch);
    if (pl__look_due(u->look, c, u->tour && pl__tour_is_eager(u->tour), now.mono_ms, &wait_ms)) {
        if (pl__look_take(u->look, c, now, &u->cli->arena, &err) < 0) {
            u->cli->err = err;
            end(u);
            return;
        }
        if (u->tour)
            tour_goes_on(u, now);
        if (u->cli->out.buf.len == 0) /* else the last picture is not drawn yet */
            pl__view_draw(u->view, u->look, status_line(u), now.mono_ms);
        wait_ms = LOOK_AGAIN_MS;
    }
    flush(u);
    if (u->stage == STAGE_RUNNING)
        uv_timer_start(&u->again, again_fired, wait_ms, 0);
}

/* --- starting ---------------------------------------------------------------------------------------- */

static int open_logs(struct up *u, struct pl_error **err)
{
    struct pl_arena *arena = &u->cli->arena;
    const char *path =
        pl__str_format(arena, "%s/controller.log", pl__playground_directory(u->playground)).ptr;

    pl__logs_init(&u->logs, "text", 0);
    u->logs.fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (u->logs.fd < 0)
        return pl__error(arena, err, PL_IO, "%s: %s", path, strerror(errno));
    return 0;
}

static int open_driver(struct up *u, struct pl_arena *secrets, struct pl_error **err)
{
    struct pl_kube_config config = { .server = { "", 0 } };
    uint64_t seed = uv_hrtime();
    bool few = u->settings->playground.clusters <= FEW_CLUSTERS;

    if (pl__kube_config_load(secrets, pl__playground_kubeconfig_path(u->playground), NULL, &config,
                             err) < 0)
        return -1;
    struct pl_driver_options driver = {
        .loop = u->loop,
        .config = &config,
        .qps = QPS,
        .burst = BURST,
        .controller = { .mode = MODE_MANAGE,
                        .profile = u->settings->profile,
                        .grace_period_s = GRACE_S,
                        .etcd_period_s = few ? ETCD_PERIOD_S : 0,
                        .seed = seed,
                        .identity = "playground",
                        .log = pl__logs_write,
                        .log_user = &u->logs },
        .etcd = { .dial_timeout_ms = ETCD_DIAL_MS, .call_timeout_ms = ETCD_CALL_MS },
        .turn = turn,
        .user = u,
    };
    return pl__driver_new(&driver, secrets, &u->driver, err);
}

static void open_tour(struct up *u)
{
    struct pl_apiserver *api = pl__playground_api(u->playground);

    if (!u->settings->tour)
        return;
    pl_apiserver_cluster_add(api, PL_STR(TOUR_STAGE), pl__loop_wall_ms());
    u->tour = pl__tour_new(&(struct pl_tour_options){
        .term = &u->cli->term,
        .tell = tour_tells,
        .api = api,
        .management = PL_STR(PLAYGROUND_MANAGEMENT),
        .profile = u->settings->profile,
        .etcd = !pl__fleet_without_etcd(pl__playground_fleet(u->playground)),
        .namespace_ = PLAYGROUND_NAMESPACE,
        .first = "demo-1",
        .second = "demo-2",
        .kubeconfig = pl__playground_kubeconfig,
        .kubeconfig_user = u->playground,
        .user = u,
    });
}

static int start(struct up *u, struct pl_arena *secrets, struct pl_error **err)
{
    struct pl_playground_options options_ = u->settings->playground;

    watch_signals(u);
    options_.said = fleet_said;
    options_.user = u;
    if (pl__playground_open(u->loop, &options_, secrets, &u->playground, err) < 0 ||
        open_logs(u, err) < 0 || open_driver(u, secrets, err) < 0)
        return -1;
    u->started_ms = pl__driver_now(u->driver).mono_ms;
    u->look = pl__look_new(&(struct pl_look_options){
        .profile = u->settings->profile, .seen = seen, .changed = changed, .user = u });
    u->view = pl__view_new(
        u->cli, &(struct pl_view_options){
                    .program = strchr(u->cli->program, '/') ? u->cli->program : "plimsoll",
                    .kubeconfig = pl__playground_kubeconfig_path(u->playground),
                    .note = pl__fleet_without_etcd(pl__playground_fleet(u->playground)),
                    .empty = u->settings->playground.clusters == 0,
                    .tour = u->settings->tour });
    open_tour(u);
    flush(u);
    return 0;
}

/* --- all of it --------------------------------------------------------------------------------------- */

/* After the screen: what stays on the terminal. */
static int finish(struct up *u)
{
    struct pl_str reason = pl__driver_stop_reason(u->driver);

    if (reason.len)
        return pl__error(&u->cli->arena, &u->cli->err, PL_IO, "up: the controller stopped: %.*s",
                         PL_STR_ARG(reason));
    pl__view_leave(u->view);
    if (!u->tour)
        return u->cli->err ? -1 : 0;
    if (!pl__tour_summary(u->tour, pl__driver_now(u->driver)))
        pl__cli_note(u->cli, OUTCOME_FINDINGS);
    return u->cli->err ? -1 : 0;
}

static void release(struct up *u)
{
    pl__tour_free(u->tour);
    pl__look_free(u->look);
    pl__view_free(u->view);
    pl__playground_close(u->playground);
    if (u->driver)
        pl__driver_free(u->driver);
    else
        pl__loop_free(u->loop);
    pl__playground_free(u->playground);
    if (u->logs.fd > STDERR_FILENO)
        close(u->logs.fd);
    pl__logs_release(&u->logs);
    pl__arena_release(&u->scratch);
}

/* The last line: what is not there any more, and what is. */
static void say_what_is_left(struct up *u, struct pl_str folder)
{
    struct pl_buf *out = &u->cli->out.buf;

    pl__buf_printf(out, "Stopped: controller, API server, %u etcd processes. ", u->processes);
    if (u->settings->playground.directory)
        pl__buf_printf(out, "Kept in %.*s, for the next one.\n", PL_STR_ARG(folder));
    else if (access(folder.ptr, F_OK) == 0)
        pl__buf_printf(out, "%.*s could not be removed.\n", PL_STR_ARG(folder));
    else
        pl__buf_add_lit(out, "Nothing is left behind.\n");
}

static int run(struct pl_cli *cli)
{
    struct settings settings = { .tour = false };
    struct up u = { .cli = cli, .settings = &settings };
    struct pl_str folder = PL_STR("");
    struct pl_arena secrets;
    struct pl_error *err = NULL;

    pl__arena_init(&secrets, &pl__secret_allocator, 0);
    if (take_settings(cli, &settings, &secrets) < 0) {
        pl__arena_release(&secrets);
        return -1;
    }
    pl__arena_init(&u.scratch, NULL, 0);
    u.loop = pl__loop_new();
    int result = start(&u, &secrets, &err);
    if (result < 0)
        pl__error(&cli->arena, &cli->err, err->code, "up: %.*s",
                  PL_STR_ARG(pl__error_text(&cli->arena, err)));
    if (result == 0) {
        folder = pl__str_copy(&cli->arena, pl__str(pl__playground_directory(u.playground)));
        pl__driver_run(u.driver);
        result = finish(&u);
    }
    release(&u);
    if (folder.len)
        say_what_is_left(&u, folder);
    /* Who was told to end does not wait for a reader. */
    if (u.signals_seen && pl__out_offer(&cli->out, LAST_WORDS_MS, &cli->arena, NULL) == 0)
        pl__buf_clear(&cli->out.buf);
    pl__arena_release(&secrets);
    return result;
}

const struct pl_command pl__command_up = {
    .name = "up",
    .summary = "a playground: a fleet of control planes on this machine, no cluster needed",
    .synopsis = "[OPTIONS]",
    .description =
        "Starts an API server that kubectl can talk to, a simulated fleet of Clusters whose "
        "control "
        "planes run real etcd processes, and the controller in mode manage, all in one process, "
        "and "
        "shows what happens: on a terminal the tree of plimsoll describe and the last transitions "
        "with their cause and how long it took to store them; elsewhere each transition is a "
        "line.\n"
        "What can be broken is listed by plimsoll fault list; kubectl works, too: faults are "
        "annotations. Without etcd in PATH, control planes have an external etcd that nobody "
        "asks.\n"
        "Ctrl-C ends it, with everything it started. Nothing is left behind, unless --data names a "
        "folder.\n"
        "With --tour it ends by itself, with 0 when everything went as it should and 1 otherwise.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .examples = examples,
    .example_count = sizeof examples / sizeof examples[0],
    .run = run,
};
