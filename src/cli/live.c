/* A question goes through four phases. SYNCING: the management cluster is being read. READING: it is
 * known which workload clusters matter, and those are being read. ASKING: some have been read but for
 * their etcd, which has deadlines of its own. SETTLED: what there is to know is known; whoever follows is
 * told of changes. */
#include "cli/live.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/secret.h"
#include "base/time.h"
#include "cli/driver.h"
#include "cli/etcd_options.h"
#include "cli/progress.h"
#include "cli/text.h"

enum {
    WORKLOADS_MS = 10 * 1000,
    TIMEOUT_S_MAX = 3600,
    FOLLOW_MS = 250,        /* at most this often ... */
    REFRESH_MS = 10 * 1000, /* ... and at least this often: ages grow */
    QPS = 100,
    BURST = 200,
    SELECTOR_BYTES_MAX = 4096,
    NAME_BYTES_MAX = 253,
};

enum phase { SYNCING, READING, ASKING, SETTLED };

/* A Cluster that the question is about. */
struct pick {
    struct pl_str namespace_;
    struct pl_str name;
    struct pl_str trouble; /* why it could not be read; empty: it could */
};

struct pl_live {
    struct pl_cli *cli;
    struct pl_live_wanted wanted;
    struct pl_driver *driver;
    struct pl_progress progress;
    struct pl_arena secrets; /* the kubeconfig */
    struct pl_arena arena;   /* the picks */
    struct pl_arena scratch; /* one snapshot */
    const char *server;
    const char *namespace_; /* NULL: all */
    enum phase phase;
    bool timed_out; /* in this phase */
    uint64_t timeout_ms;
    uint64_t etcd_ms;  /* how long etcd may take */
    uint64_t shown_ms; /* when pl__live_next() last came back ... */
    uint64_t changes;  /* ... and the controller's count of changes then */
    uint64_t hash;     /* of what was known then */
    uv_timer_t deadline;
    uv_timer_t kick; /* wakes the loop, so that it takes what was asked of the controller */
    struct pick *picks;
    size_t pick_count;
    struct pl_str last_error; /* of reading the management cluster */
};

/* --- the command line --------------------------------------------------------------------------- */

static const char *option(const struct pl_live *live, enum pl_option_id id)
{
    return live->cli->args.value[id];
}

static int take_timeout(struct pl_live *live)
{
    const char *text = option(live, OPT_TIMEOUT);
    int64_t seconds = 0;

    if (!pl__duration_parse(pl__str(text), &seconds) || seconds < 1 || seconds > TIMEOUT_S_MAX)
        return pl__cli_usage(live->cli, "--timeout \"%s\": expected a duration from 1s to 1h",
                             text);
    live->timeout_ms = (uint64_t)seconds * 1000;
    return 0;
}

/* It becomes part of a URL. */
static bool is_name(struct pl_str name)
{
    if (name.len == 0 || name.len > NAME_BYTES_MAX)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != '.')
            return false;
    }
    return true;
}

/* "namespace/name" names both. */
static void split(struct pl_live_wanted *wanted, struct pl_str *name)
{
    const char *slash = name->len ? memchr(name->ptr, '/', name->len) : NULL;

    if (!slash)
        return;
    wanted->namespace_ = (struct pl_str){ name->ptr, (size_t)(slash - name->ptr) };
    *name = (struct pl_str){ slash + 1, name->len - wanted->namespace_.len - 1 };
}

/* By the name itself, -n, -A, or the kubeconfig's context, in this order. */
static int take_namespace(struct pl_live *live, const struct pl_kube_config *config)
{
    struct pl_cli *cli = live->cli;
    bool all = pl__cli_given(cli, OPT_ALL_NAMESPACES);
    struct pl_str namespace_ = live->wanted.namespace_;

    if (all && pl__cli_given(cli, OPT_NAMESPACE))
        return pl__cli_usage(cli, "--namespace and --all-namespaces exclude each other");
    if (namespace_.len == 0 && pl__cli_given(cli, OPT_NAMESPACE))
        namespace_ = pl__str(option(live, OPT_NAMESPACE));
    else if (namespace_.len == 0 && all)
        return 0;
    else if (namespace_.len == 0)
        namespace_ = config->namespace_;
    if (!is_name(namespace_))
        return pl__cli_usage(cli, "namespace \"%.*s\": expected lower case letters, digits and -",
                             PL_STR_ARG(namespace_));
    live->namespace_ = pl__str_copy(&cli->arena, namespace_).ptr;
    return 0;
}

/* The server understands selectors; they only have to get there whole. */
static int take_selector(struct pl_live *live, const char **encoded)
{
    const char *text = option(live, OPT_SELECTOR);
    struct pl_buf out;

    if (!text)
        return 0;
    if (strlen(text) > SELECTOR_BYTES_MAX)
        return pl__cli_usage(live->cli, "--selector: longer than %d bytes", SELECTOR_BYTES_MAX);
    pl__buf_init(&out, &live->cli->arena, 4 * SELECTOR_BYTES_MAX);
    for (const char *at = text; *at; at++) {
        bool plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                     (*at >= '0' && *at <= '9') || strchr("-_.", *at);
        if (plain)
            pl__buf_add_char(&out, *at);
        else
            pl__buf_printf(&out, "%%%02X", (unsigned char)*at);
    }
    *encoded = pl__buf_str(&out).ptr;
    return 0;
}

/* Errors outlive what they are about: main speaks them when everything here is gone. */
static int fail(struct pl_live *live, const struct pl_error *cause)
{
    struct pl_cli *cli = live->cli;
    struct pl_str text = pl__error_text(&cli->arena, cause);

    return pl__error(&cli->arena, &cli->err, cause->code, "%.*s", PL_STR_ARG(text));
}

/* The world of one Cluster, or of all (`pick` NULL), in the scratch arena. */
static int take_snapshot(struct pl_live *live, const struct pick *pick, struct pl_snapshot *s,
                         size_t *pending)
{
    struct pl_controller *c = pl__driver_controller(live->driver);
    struct pl_str namespace_ = pick ? pick->namespace_ : PL_STR("");
    struct pl_str name = pick ? pick->name : PL_STR("");
    struct pl_error *cause = NULL;

    pl__arena_reset(&live->scratch);
    if (pl_controller_snapshot(c, namespace_, name, pl__driver_now(live->driver), &live->scratch, s,
                               pending, &cause) < 0)
        return fail(live, cause);
    return 0;
}

/* --- which Clusters ------------------------------------------------------------------------------ */

/* The Cluster that an object names; empty: none. */
static struct pl_str cluster_of(const struct pl_meta *meta)
{
    for (uint32_t i = 0; i < meta->owners.count; i++) {
        if (pl__str_equal(meta->owners.items[i].kind, PL_STR("Cluster")))
            return meta->owners.items[i].name;
    }
    return meta->labels.cluster_name;
}

/* True when one of these objects (all start with their metadata) is the wanted one, or none is wanted
 * in particular, and belongs to this Cluster. */
static bool any_of(const struct pl_live_wanted *wanted, struct pl_list list, size_t size,
                   const struct pick *pick)
{
    for (uint32_t i = 0; i < list.count; i++) {
        const struct pl_meta *meta = (const void *)((const char *)list.items + i * size);
        if (wanted->kind && !pl__str_equal(meta->name, wanted->name))
            continue;
        if (pl__str_equal(meta->namespace_, pick->namespace_) &&
            pl__str_equal(cluster_of(meta), pick->name))
            return true;
    }
    return false;
}

#define ANY_OF(wanted, s, list, pick)                                                          \
    any_of(wanted, (struct pl_list){ (s)->objects.list.items, (s)->objects.list.count, true }, \
           sizeof *(s)->objects.list.items, pick)

static bool is_wanted(const struct pl_live_wanted *wanted, const struct pl_snapshot *s,
                      const struct pick *pick)
{
    if (wanted->cluster.len)
        return pl__str_equal(wanted->cluster, pick->name) &&
               pl__snapshot_cluster(s, pick->namespace_, pick->name);
    if (!wanted->kind)
        return pl__snapshot_cluster(s, pick->namespace_, pick->name) ||
               ANY_OF(wanted, s, kcps, pick) || ANY_OF(wanted, s, machine_deployments, pick);
    if (strcmp(wanted->kind, "KubeadmControlPlane") == 0)
        return ANY_OF(wanted, s, kcps, pick);
    if (strcmp(wanted->kind, "MachineDeployment") == 0)
        return ANY_OF(wanted, s, machine_deployments, pick);
    return ANY_OF(wanted, s, machines, pick);
}

/* The workloads of a snapshot of everything are its Clusters, sorted. */
static int pick_clusters(struct pl_live *live)
{
    struct pl_snapshot s;
    size_t pending;

    pl__arena_reset(&live->arena);
    live->pick_count = 0;
    if (take_snapshot(live, NULL, &s, &pending) < 0)
        return -1;
    live->picks = PL_NEW(&live->arena, struct pick, s.workloads.count);
    for (uint32_t i = 0; i < s.workloads.count; i++) {
        struct pl_str joined = s.workloads.items[i].cluster;
        const char *slash = memchr(joined.ptr, '/', joined.len);
        size_t len = (size_t)(slash - joined.ptr);
        struct pick pick = { .namespace_ = { joined.ptr, len },
                             .name = { slash + 1, joined.len - len - 1 } };
        if (!is_wanted(&live->wanted, &s, &pick))
            continue;
        live->picks[live->pick_count++] =
            (struct pick){ .namespace_ = pl__str_copy(&live->arena, pick.namespace_),
                           .name = pl__str_copy(&live->arena, pick.name) };
    }
    return 0;
}

static int nothing_found(struct pl_live *live)
{
    const struct pl_live_wanted *wanted = &live->wanted;
    struct pl_cli *cli = live->cli;
    const char *where = live->namespace_ ? live->namespace_ : "";
    const char *slash = live->namespace_ ? "/" : "";

    if (wanted->cluster.len)
        return pl__error(&cli->arena, &cli->err, PL_NOT_FOUND,
                         "no Cluster %s%s%.*s at %s; plimsoll describe -A -o name lists them",
                         where, slash, PL_STR_ARG(wanted->cluster), live->server);
    if (wanted->kind)
        return pl__error(&cli->arena, &cli->err, PL_NOT_FOUND,
                         "no %s %s%s%.*s at %s; plimsoll describe -A -o name lists what is there",
                         wanted->kind, where, slash, PL_STR_ARG(wanted->name), live->server);
    return pl__error(&cli->arena, &cli->err, PL_NOT_FOUND, "no Cluster%s%s%s at %s%s",
                     option(live, OPT_SELECTOR) ? " with these labels" : "",
                     live->namespace_ ? " in namespace " : "", where, live->server,
                     live->namespace_ ? "; -A looks in all namespaces" : "");
}

/* --- phases -------------------------------------------------------------------------------------- */

static void deadline_passed(uv_timer_t *timer)
{
    struct pl_live *live = timer->data;

    live->timed_out = true;
    pl__driver_stop(live->driver);
}

static void kick_fired(uv_timer_t *timer)
{
    (void)timer;
}

static void enter(struct pl_live *live, enum phase phase, uint64_t limit_ms)
{
    live->phase = phase;
    live->timed_out = false;
    uv_timer_stop(&live->deadline);
    if (limit_ms)
        uv_timer_start(&live->deadline, deadline_passed, limit_ms, 0);
}

static void request_connections(struct pl_live *live)
{
    struct pl_controller *c = pl__driver_controller(live->driver);

    for (size_t i = 0; i < live->pick_count; i++)
        pl_controller_connect(c, live->picks[i].namespace_, live->picks[i].name,
                              pl__driver_now(live->driver));
    uv_timer_start(&live->kick, kick_fired, 0, 0);
}

/* Whether some cluster has been read but for its etcd. */
static bool etcd_awaited(struct pl_live *live)
{
    for (size_t i = 0; i < live->pick_count; i++) {
        struct pl_snapshot s;
        size_t pending = 0;
        if (take_snapshot(live, &live->picks[i], &s, &pending) == 0 && pending &&
            s.workloads.count && s.workloads.items[0].connection.state == CONNECTION_CONNECTED)
            return true;
    }
    return false;
}

static void say_progress(struct pl_live *live, size_t pending)
{
    char line[128];
    size_t done = live->pick_count > pending ? live->pick_count - pending : 0;

    if (live->phase == SYNCING)
        snprintf(line, sizeof line, "reading the management cluster ...");
    else
        snprintf(line, sizeof line, "%zu of %zu workload clusters read ...", done,
                 live->pick_count);
    pl__progress_say(&live->progress, pl__str(line));
}

/* Comes at the end of every turn of the loop. A phase that is over stops the loop; what comes next is
 * decided outside of it. */
static void turn(void *user)
{
    struct pl_live *live = user;
    const struct pl_controller *c = pl__driver_controller(live->driver);
    size_t pending = live->phase == READING || live->phase == ASKING ? pl_controller_pending(c) : 0;

    if (live->phase != SETTLED)
        say_progress(live, pending);
    if ((live->phase == SYNCING && pl_controller_synced(c)) ||
        (live->phase == READING && pending == 0) || (live->phase == ASKING && !etcd_awaited(live)))
        pl__driver_stop(live->driver);
    if (live->phase != SETTLED)
        return;
    if (pl_controller_changes(c) == live->changes)
        return;
    uint64_t since_ms = pl__driver_now(live->driver).mono_ms - live->shown_ms;
    if (since_ms >= FOLLOW_MS)
        pl__driver_stop(live->driver);
    else
        uv_timer_start(&live->kick, kick_fired, FOLLOW_MS - since_ms, 0);
}

/* "connect to 127.0.0.1:6443: connection refused" behind the name of the server: only the end. */
static struct pl_str without_peer(const struct pl_live *live, struct pl_str error)
{
    const char *scheme_end = strstr(live->server, "://");
    struct pl_str host = pl__str(scheme_end ? scheme_end + 3 : live->server);
    struct pl_str verb = PL_STR("connect to ");
    struct pl_str rest = error;

    if (pl__str_starts_with(rest, verb))
        rest = (struct pl_str){ rest.ptr + verb.len, rest.len - verb.len };
    if (!pl__str_starts_with(rest, host) || rest.len < host.len + 2 || rest.ptr[host.len] != ':')
        return error;
    return (struct pl_str){ rest.ptr + host.len + 2, rest.len - host.len - 2 };
}

/* Why the controller gave up, in the words of someone who typed a command. */
static int stopped(struct pl_live *live)
{
    static const struct pl_str unreachable =
        PL_STR_INIT("cannot reach the management API server: ");
    struct pl_cli *cli = live->cli;
    struct pl_str reason = pl__driver_stop_reason(live->driver);

    if (!pl__str_starts_with(reason, unreachable))
        return pl__error(&cli->arena, &cli->err, PL_IO, "%s: %.*s", live->server,
                         PL_STR_ARG(reason));
    reason = (struct pl_str){ reason.ptr + unreachable.len, reason.len - unreachable.len };
    reason = without_peer(live, reason);
    return pl__error(&cli->arena, &cli->err, PL_IO,
                     "cannot reach %s: %.*s; check --kubeconfig or --context", live->server,
                     PL_STR_ARG(reason));
}

static int too_late(struct pl_live *live)
{
    struct pl_cli *cli = live->cli;
    struct pl_str error = live->last_error;

    return pl__error(&cli->arena, &cli->err, PL_IO, "%s: no complete answer within %s%s%.*s",
                     live->server, option(live, OPT_TIMEOUT), error.len ? ": " : "",
                     PL_STR_ARG(error));
}

static int run(struct pl_live *live)
{
    pl__driver_run(live->driver);
    return pl__driver_stop_reason(live->driver).len ? stopped(live) : 0;
}

static int read_first(struct pl_live *live)
{
    enter(live, SYNCING, live->timeout_ms);
    if (run(live) < 0)
        return -1;
    if (live->timed_out)
        return too_late(live);
    if (pick_clusters(live) < 0)
        return -1;
    if (live->pick_count == 0)
        return nothing_found(live);
    enter(live, READING, WORKLOADS_MS < live->timeout_ms ? WORKLOADS_MS : live->timeout_ms);
    request_connections(live);
    if (run(live) < 0)
        return -1;
    if (live->timed_out && etcd_awaited(live)) {
        enter(live, ASKING, live->etcd_ms < live->timeout_ms ? live->etcd_ms : live->timeout_ms);
        if (run(live) < 0)
            return -1;
    }
    enter(live, SETTLED, 0);
    return 0;
}

static int read_again(struct pl_live *live)
{
    enter(live, SETTLED, REFRESH_MS);
    if (run(live) < 0 || pick_clusters(live) < 0)
        return -1;
    request_connections(live); /* a Cluster may be new */
    return 0;
}

/* What is known, but for the time and for when a probe or etcd last answered: those change by
 * themselves. */
static int hash_known(struct pl_live *live, uint64_t *hash)
{
    struct pl_json_writer w;
    struct pl_snapshot s;
    struct pl_buf text;
    size_t pending;

    *hash = PL_HASH_BEGIN;
    for (size_t i = 0; i < live->pick_count; i++) {
        if (take_snapshot(live, &live->picks[i], &s, &pending) < 0)
            return -1;
        s.now_ms = 0;
        for (uint32_t k = 0; k < s.workloads.count; k++)
            s.workloads.items[k].connection.last_probe_success_ms =
                s.workloads.items[k].etcd.observed_ms = 0;
        pl__buf_init(&text, &live->scratch, SIZE_MAX / 4);
        pl__json_writer_init(&w, &text, JSON_COMPACT);
        pl__snapshot_write(&w, &s);
        *hash = pl__str_hash(*hash, pl__buf_str(&text));
    }
    return 0;
}

int pl__live_next(struct pl_live *live)
{
    bool first = live->phase != SETTLED;
    uint64_t hash;
    int result = first ? read_first(live) : read_again(live);

    pl__progress_clear(&live->progress);
    if (result < 0 || hash_known(live, &hash) < 0)
        return -1;
    bool changed = first || hash != live->hash;
    live->hash = hash;
    live->changes = pl_controller_changes(pl__driver_controller(live->driver));
    live->shown_ms = pl__driver_now(live->driver).mono_ms;
    return changed;
}

/* --- what is known ------------------------------------------------------------------------------- */

/* A cluster without infrastructure or kubeconfig has no connection, and nothing to explain. */
static struct pl_str trouble_of(struct pl_arena *arena, const struct pl_workload *w, size_t pending)
{
    if (w->connection.state != CONNECTION_CONNECTED && w->connection.error.len)
        return pl__str_copy(arena, w->connection.error);
    if (pending && w->connection.state == CONNECTION_CONNECTED)
        return PL_STR("no answer from etcd in time");
    if (pending)
        return PL_STR("no complete answer within 10s");
    if (w->nodes_error.len)
        return pl__str_copy(arena, w->nodes_error);
    return w->pod_errors.count ? pl__str_copy(arena, w->pod_errors.items[0].text) : PL_STR("");
}

static int write_pick(struct pl_live *live, struct pick *pick, enum pl_json_format format,
                      struct pl_buf *out)
{
    struct pl_json_writer w;
    struct pl_snapshot s;
    size_t pending;

    if (take_snapshot(live, pick, &s, &pending) < 0)
        return -1;
    s.name = pl__str_format(&live->scratch, "%.*s/%.*s", PL_STR_ARG(pick->namespace_),
                            PL_STR_ARG(pick->name));
    if (s.workloads.count)
        pick->trouble = trouble_of(&live->arena, &s.workloads.items[0], pending);
    if (format == JSON_AS_YAML && pick != live->picks)
        pl__buf_add_lit(out, "---\n");
    pl__json_writer_init(&w, out, format);
    pl__snapshot_write(&w, &s);
    pl__buf_add_char(out, '\n');
    return 0;
}

int pl__live_write(struct pl_live *live, enum pl_json_format format, struct pl_buf *out)
{
    if (live->pick_count == 0)
        return nothing_found(live);
    for (size_t i = 0; i < live->pick_count; i++) {
        if (write_pick(live, &live->picks[i], format, out) < 0)
            return -1;
    }
    if (out->overflowed)
        return pl__error(&live->cli->arena, &live->cli->err, PL_LIMIT,
                         "more than %zu bytes; name one Cluster, or a namespace", out->max);
    return 0;
}

void pl__live_warn(struct pl_live *live)
{
    struct pl_buf line;

    for (size_t i = 0; i < live->pick_count; i++) {
        const struct pick *pick = &live->picks[i];
        if (pick->trouble.len == 0)
            continue;
        pl__buf_init(&line, &live->scratch, 4096);
        pl__text_add(&line, pick->trouble);
        fprintf(stderr, "plimsoll: Cluster %.*s/%.*s could not be read: %.*s\n",
                PL_STR_ARG(pick->namespace_), PL_STR_ARG(pick->name),
                PL_STR_ARG(pl__buf_str(&line)));
        pl__cli_note(live->cli, OUTCOME_MISSING);
    }
}

const char *pl__live_name(const struct pl_live *live)
{
    return live->server;
}

/* --- life ---------------------------------------------------------------------------------------- */

/* The controller's log is for operators of a daemon; here only its last complaint is of use, when the
 * time is over. */
static void keep_complaint(void *user, enum pl_log_level level, const char *message,
                           const struct pl_log_pair *pairs, size_t pair_count)
{
    struct pl_live *live = user;

    (void)level;
    (void)message;
    if (live->phase != SYNCING)
        return;
    for (size_t i = 0; i < pair_count; i++) {
        if (strcmp(pairs[i].key, "error") == 0)
            live->last_error = pl__str_copy(&live->cli->arena, pairs[i].value);
    }
}

static void start_timers(struct pl_live *live)
{
    uv_loop_t *uv = pl__loop_uv(pl__driver_loop(live->driver));

    uv_timer_init(uv, &live->deadline);
    uv_timer_init(uv, &live->kick);
    live->deadline.data = live->kick.data = live;
}

static int start(struct pl_live *live)
{
    struct pl_cli *cli = live->cli;
    struct pl_kube_config config = { .server = { "", 0 } };
    struct pl_error *cause = NULL;
    struct pl_controller_options controller = { .reads_only = true,
                                                .connect_on_request = true,
                                                .seed = uv_hrtime(),
                                                .log = keep_complaint,
                                                .log_user = live };

    struct pl_etcd_options etcd = { .direct = NULL };

    if (take_timeout(live) < 0 || take_selector(live, &controller.cluster_selector) < 0 ||
        pl__etcd_options_take(cli, &etcd) < 0)
        return -1;
    live->etcd_ms = (uint64_t)etcd.dial_timeout_ms + 2 * (uint64_t)etcd.call_timeout_ms;
    if (pl__kube_config_load(&live->secrets, option(live, OPT_KUBECONFIG),
                             option(live, OPT_CONTEXT), &config, &cause) < 0)
        return fail(live, cause);
    if (take_namespace(live, &config) < 0)
        return -1;
    live->server = pl__str_copy(&cli->arena, config.server).ptr;
    controller.namespace_ = live->namespace_;
    struct pl_driver_options driver = { .config = &config,
                                        .qps = QPS,
                                        .burst = BURST,
                                        .controller = controller,
                                        .etcd = etcd,
                                        .turn = turn,
                                        .user = live };
    if (pl__driver_new(&driver, &cli->arena, &live->driver, &cli->err) < 0)
        return -1;
    start_timers(live);
    return 0;
}

int pl__live_open(struct pl_live **opened, struct pl_cli *cli, const struct pl_live_wanted *wanted)
{
    struct pl_live *live = calloc(1, sizeof *live);

    if (!live)
        abort();
    *opened = live;
    live->cli = cli;
    live->wanted = *wanted;
    split(&live->wanted, &live->wanted.cluster);
    split(&live->wanted, &live->wanted.name);
    pl__arena_init(&live->secrets, &pl__secret_allocator, 0);
    pl__arena_init(&live->arena, NULL, 0);
    pl__arena_init(&live->scratch, NULL, 0);
    pl__progress_init(&live->progress);
    return start(live);
}

void pl__live_close(struct pl_live *live)
{
    if (!live)
        return;
    pl__progress_clear(&live->progress);
    pl__driver_free(live->driver);
    pl__arena_release(&live->secrets);
    pl__arena_release(&live->arena);
    pl__arena_release(&live->scratch);
    free(live);
}
