/* A turn of the loop: answers come in and are told to the controller; then, before the loop sleeps, the
 * prepare handle takes what the controller hands out. When a batch is not enough an idle handle keeps the
 * loop from sleeping, and the rest follows after the next look at the sockets. */
#include "cli/driver.h"

#ifdef __linux__
#include <malloc.h>
#endif
#include <assert.h>
#include <stdlib.h>

#include "base/secret.h"

enum {
    TRIM_REQUESTS = 256,
    TRIM_PERIOD_MS = 2000,
    BATCH_ACTIONS_MAX = 64,
    BATCH_NS_MAX = 5 * 1000 * 1000,
    WORKLOAD_QPS = 20,
    WORKLOAD_BURST = 40,
    CALL_BUCKETS = 1024, /* a power of two */
    SPINS_MAX = 1000, /* wake-ups at once in a row: more is a mistake, which shall not burn a CPU */
};

static const char user_agent[] = "plimsoll/" PL_VERSION;

/* One request, watch or call to etcd on its way. */
struct call {
    struct call *next; /* in its bucket */
    struct pl_driver *driver;
    uint64_t id;        /* the controller's */
    uint64_t client_id; /* the Kubernetes client's, or the etcd client's */
    uint32_t server;
    bool etcd;
    bool dropped; /* cancelled, or its server is closed: nobody waits for it */
};

struct server {
    uint32_t id;
    struct pl_kube *kube;
    struct pl_etcd *etcd; /* behind it; NULL: not asked for yet */
    char *trust_error;    /* why the CA of that etcd cannot be used; NULL: it can */
};

struct pl_driver {
    struct pl_loop *loop;
    struct pl_controller *controller;
    uv_prepare_t prepare;
    uv_idle_t idle;
    uv_timer_t timer;
    struct server *servers; /* by id, ascending; the first is the management cluster */
    size_t server_count, server_capacity;
    struct call *calls[CALL_BUCKETS];
    struct pl_now now; /* of this turn, when `now_known` */
    bool now_known;
    uint32_t spins; /* how often in a row it wanted to be woken at once */
    bool closing;
    bool shutting_down;
    struct pl_arena arena;
    struct pl_str stop_reason;
    uint64_t turn_start_ns, turn_idle_ns, turn_max_ns;
    int64_t started_ms; /* wall clock */
    uint64_t sent;      /* requests since memory was last given back */
    uint64_t trimmed_ms;
    struct pl_etcd_options etcd_options;
    void (*turn)(void *user);
    void *user;
};

static void *allocate(size_t size)
{
    void *p = calloc(1, size);

    if (!p)
        abort();
    return p;
}

/* --- time --------------------------------------------------------------------------------------- */

struct pl_now pl__driver_now(struct pl_driver *d)
{
    if (!d->now_known)
        d->now = (struct pl_now){ pl__loop_mono_ms(d->loop), pl__loop_wall_ms() };
    d->now_known = true;
    return d->now;
}

/* How long the loop was busy since it last went to sleep. */
static void measure_turn(struct pl_driver *d)
{
    uint64_t now_ns = uv_hrtime();
    uint64_t idle_ns = uv_metrics_idle_time(pl__loop_uv(d->loop));
    uint64_t busy_ns = now_ns - d->turn_start_ns;

    busy_ns -= idle_ns - d->turn_idle_ns < busy_ns ? idle_ns - d->turn_idle_ns : busy_ns;
    if (d->turn_start_ns && busy_ns > d->turn_max_ns)
        d->turn_max_ns = busy_ns;
    d->turn_start_ns = now_ns;
    d->turn_idle_ns = idle_ns;
}

static void step(struct pl_driver *d, const struct pl_event *event)
{
    if (!d->closing)
        pl_controller_step(d->controller, event, pl__driver_now(d));
}

static void timer_fired(uv_timer_t *timer)
{
    step(timer->data, &(struct pl_event){ .type = EVENT_TICK, .retry_after_s = -1 });
}

static void arm_timer(struct pl_driver *d)
{
    uint64_t at = pl_controller_wake_at_ms(d->controller);
    uint64_t now = pl__loop_mono_ms(d->loop);

    d->spins = at > now ? 0 : d->spins + 1;
    if (at == UINT64_MAX)
        uv_timer_stop(&d->timer);
    else
        uv_timer_start(&d->timer, timer_fired, at > now ? at - now : d->spins > SPINS_MAX, 0);
}

/* --- servers ------------------------------------------------------------------------------------ */

/* The place of this id, or where it belongs. */
static size_t server_place(const struct pl_driver *d, uint32_t id)
{
    size_t low = 0, high = d->server_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (d->servers[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Or NULL. It may move when a server is opened or closed. */
static struct server *server_find(const struct pl_driver *d, uint32_t id)
{
    size_t at = server_place(d, id);

    return at < d->server_count && d->servers[at].id == id ? &d->servers[at] : NULL;
}

static void server_add(struct pl_driver *d, uint32_t id, struct pl_kube *kube)
{
    size_t at = server_place(d, id);

    assert(at == d->server_count || d->servers[at].id != id);
    if (d->server_count == d->server_capacity) {
        d->server_capacity = d->server_capacity ? d->server_capacity * 2 : 16;
        d->servers = realloc(d->servers, d->server_capacity * sizeof d->servers[0]);
        if (!d->servers)
            abort();
    }
    memmove(&d->servers[at + 1], &d->servers[at], (d->server_count - at) * sizeof d->servers[0]);
    d->servers[at] = (struct server){ .id = id, .kube = kube };
    d->server_count++;
}

static void drop_calls(struct pl_driver *d, uint32_t server)
{
    for (size_t i = 0; i < CALL_BUCKETS; i++)
        for (struct call *call = d->calls[i]; call; call = call->next)
            if (call->server == server)
                call->dropped = true;
}

/* The etcd first: its tunnel goes through the other. */
static void clients_close(struct server *s)
{
    if (s->etcd)
        pl__etcd_close(s->etcd);
    pl__kube_close(s->kube);
    free(s->trust_error);
}

static void server_close(struct pl_driver *d, uint32_t id)
{
    size_t at = server_place(d, id);

    if (id == 0 || at == d->server_count || d->servers[at].id != id)
        return;
    drop_calls(d, id);
    clients_close(&d->servers[at]);
    d->server_count--;
    memmove(&d->servers[at], &d->servers[at + 1], (d->server_count - at) * sizeof d->servers[0]);
}

/* A workload cluster's kubeconfig comes from a Secret, so whoever may write Secrets writes it: it must
 * not make us read our own files or start programs. */
static int check_remote(const struct pl_kube_config *config, struct pl_arena *arena,
                        struct pl_error **err)
{
    if (config->exec.present)
        return pl__error(
            arena, err, PL_INVALID,
            "kubeconfig: a credential plugin (exec) is not run for a workload cluster");
    if (config->ca_file.len || config->client_cert_file.len || config->client_key_file.len ||
        config->token_file.len)
        return pl__error(arena, err, PL_INVALID,
                         "kubeconfig: files are not read for a workload cluster; put the data in");
    return 0;
}

int pl__workload_open(struct pl_loop *loop, struct pl_str kubeconfig, struct pl_arena *arena,
                      struct pl_kube **kube, struct pl_error **err)
{
    struct pl_kube_options options = { .qps = WORKLOAD_QPS,
                                       .burst = WORKLOAD_BURST,
                                       .user_agent = user_agent };
    struct pl_kube_config config = { .server = { "", 0 } };

    if (pl__kubeconfig_parse(arena, kubeconfig, PL_STR("kubeconfig"), PL_STR("/"), PL_STR(""),
                             &config, err) < 0)
        return -1;
    if (check_remote(&config, arena, err) < 0)
        return -1;
    return pl__kube_open(loop, &config, &options, arena, kube, err);
}

static void do_open(struct pl_driver *d, const struct pl_action *action)
{
    struct pl_error *err = NULL;
    struct pl_kube *kube = NULL;
    struct pl_arena arena;
    uint32_t server = action->server;

    pl__arena_init(&arena, &pl__secret_allocator, 0);
    server_close(d, server);
    if (pl__workload_open(d->loop, action->body, &arena, &kube, &err) == 0) {
        server_add(d, server, kube);
    } else {
        struct pl_event event = { .type = EVENT_OPEN_FAILED,
                                  .server = server,
                                  .retry_after_s = -1,
                                  .error = pl__error_text(&arena, err) };
        step(d, &event);
    }
    pl__arena_release(&arena);
}

/* --- calls -------------------------------------------------------------------------------------- */

static struct call **bucket_of(struct pl_driver *d, uint64_t id)
{
    return &d->calls[id & (CALL_BUCKETS - 1)];
}

static void call_remove(struct call *call)
{
    struct call **at = bucket_of(call->driver, call->id);

    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    free(call);
}

static void call_chunk(void *user, const char *bytes, size_t size)
{
    struct call *call = user;
    struct pl_event event = { .type = EVENT_BYTES,
                              .id = call->id,
                              .server = call->server,
                              .status = 200,
                              .retry_after_s = -1,
                              .body = { bytes, size } };

    if (!call->dropped)
        step(call->driver, &event);
}

static void call_done(void *user, const struct pl_kube_answer *answer)
{
    struct call *call = user;
    struct pl_event event = { .type = EVENT_ANSWER,
                              .id = call->id,
                              .server = call->server,
                              .status = answer->status,
                              .retry_after_s = answer->retry_after_s,
                              .body = answer->body,
                              .error = answer->error };

    /* An answer that broke off is none: half a list must not pass for a whole one. */
    if (answer->failure != KUBE_OK) {
        event.status = 0;
        event.body = PL_STR("");
    }
    if (!call->dropped)
        step(call->driver, &event);
    call_remove(call);
}

/* The controller was told that the server is open; it may have been closed since. */
static void answer_closed(struct pl_driver *d, const struct pl_action *action)
{
    struct pl_event event = { .type = EVENT_ANSWER,
                              .id = action->id,
                              .server = action->server,
                              .retry_after_s = -1,
                              .error = PL_STR("the connection is closed") };

    step(d, &event);
}

static struct call *call_add(struct pl_driver *d, const struct pl_action *action)
{
    struct call *call = allocate(sizeof *call);

    d->sent++;
    *call = (struct call){
        .driver = d, .id = action->id, .server = action->server, .etcd = action->type == ACTION_ETCD
    };
    call->next = *bucket_of(d, call->id);
    *bucket_of(d, call->id) = call;
    return call;
}

static void do_send(struct pl_driver *d, const struct pl_action *action)
{
    const struct server *server = server_find(d, action->server);
    struct pl_arena arena;

    if (!server) {
        answer_closed(d, action);
        return;
    }
    struct call *call = call_add(d, action);

    pl__arena_init(&arena, NULL, 1024);
    struct pl_kube_request request = {
        .method = action->method,
        .path = pl__str_copy(&arena, action->path).ptr,
        .content_type = action->content_type,
        .body = action->body,
        .timeout_ms = action->timeout_ms,
        .stream = action->type == ACTION_WATCH,
        .chunk = call_chunk,
        .done = call_done,
        .user = call,
    };
    call->client_id = pl__kube_send(server->kube, &request);
    pl__arena_release(&arena);
}

static void do_cancel(struct pl_driver *d, const struct pl_action *action)
{
    struct call *call = *bucket_of(d, action->id);

    while (call && call->id != action->id)
        call = call->next;
    if (!call || call->dropped)
        return;
    call->dropped = true;
    const struct server *server = server_find(d, call->server);
    if (server && call->etcd)
        pl__etcd_cancel(server->etcd, call->client_id);
    else if (server)
        pl__kube_cancel(server->kube, call->client_id);
}

/* --- etcd --------------------------------------------------------------------------------------- */

/* Clusters whose etcd is external never come here, and so cost nothing. */
static void do_trust(struct pl_driver *d, const struct pl_action *action)
{
    struct server *server = server_find(d, action->server);
    struct pl_error *err = NULL;
    struct pl_arena arena;

    if (!server)
        return;
    if (!server->etcd)
        server->etcd = pl__etcd_open(d->loop, server->kube, &d->etcd_options);
    free(server->trust_error);
    server->trust_error = NULL;
    pl__arena_init(&arena, &pl__secret_allocator, 0);
    if (pl__etcd_credentials(server->etcd, action->body, action->key, pl__driver_now(d).wall_ms,
                             &arena, &err) < 0) {
        struct pl_str text = pl__error_text(&arena, err);
        server->trust_error = allocate(text.len + 1);
        memcpy(server->trust_error, text.ptr, text.len);
    }
    pl__arena_release(&arena);
}

static void etcd_done(void *user, const struct pl_etcd_answer *answer)
{
    struct call *call = user;
    struct pl_event event = { .type = EVENT_ETCD,
                              .id = call->id,
                              .server = call->server,
                              .retry_after_s = -1,
                              .etcd = answer };

    if (!call->dropped)
        step(call->driver, &event);
    call_remove(call);
}

/* A call that cannot even be made. */
static void etcd_refuse(struct pl_driver *d, const struct pl_action *action,
                        enum pl_etcd_failure failure, struct pl_str error)
{
    struct pl_etcd_answer answer = { .failure = failure, .error = error };

    step(d, &(struct pl_event){ .type = EVENT_ETCD,
                                .id = action->id,
                                .server = action->server,
                                .retry_after_s = -1,
                                .etcd = &answer });
}

static void do_etcd(struct pl_driver *d, const struct pl_action *action)
{
    const struct server *server = server_find(d, action->server);

    if (!server || !server->etcd) {
        etcd_refuse(d, action, ETCD_UNREACHABLE, PL_STR("the connection is closed"));
        return;
    }
    if (server->trust_error) {
        etcd_refuse(d, action, ETCD_UNTRUSTED, pl__str(server->trust_error));
        return;
    }
    struct call *call = call_add(d, action);
    struct pl_etcd_request request = { .call = action->call,
                                       .endpoints = action->endpoints,
                                       .endpoint_count = action->endpoint_count,
                                       .member_id = action->member_id,
                                       .done = etcd_done,
                                       .user = call };
    call->client_id = pl__etcd_send(server->etcd, &request);
}

/* --- actions ------------------------------------------------------------------------------------ */

static void do_stop(struct pl_driver *d, const struct pl_action *action)
{
    struct pl_str reason = action->error.len ? action->error : PL_STR("stopped");

    d->stop_reason = pl__str_copy(&d->arena, reason);
    pl__loop_stop(d->loop);
}

static void do_action(struct pl_driver *d, const struct pl_action *action)
{
    switch (action->type) {
    case ACTION_OPEN:
        do_open(d, action);
        break;
    case ACTION_CLOSE:
        server_close(d, action->server);
        break;
    case ACTION_REQUEST:
    case ACTION_WATCH:
        do_send(d, action);
        break;
    case ACTION_CANCEL:
        do_cancel(d, action);
        break;
    case ACTION_ETCD_TRUST:
        do_trust(d, action);
        break;
    case ACTION_ETCD:
        do_etcd(d, action);
        break;
    case ACTION_STOP:
        do_stop(d, action);
        break;
    }
}

/* True when the controller has nothing more. */
static bool take_batch(struct pl_driver *d)
{
    uint64_t start_ns = uv_hrtime();

    for (int i = 0; i < BATCH_ACTIONS_MAX && !d->stop_reason.len; i++) {
        const struct pl_action *action = pl_controller_next_action(d->controller);
        if (!action)
            return true;
        do_action(d, action);
        if (uv_hrtime() - start_ns > BATCH_NS_MAX)
            return false;
    }
    return d->stop_reason.len > 0;
}

static void stay_awake(uv_idle_t *idle)
{
    (void)idle;
}

/* Bursts of requests (a start, the end of an outage) leave holes in the heap that only the allocator
 * sees. Now and then they go back to the system: 42 MiB became 37 with 150 clusters. */
static void memory_return(struct pl_driver *d)
{
#ifdef __GLIBC__
    if (d->sent < TRIM_REQUESTS || d->now.mono_ms - d->trimmed_ms < TRIM_PERIOD_MS)
        return;
    malloc_trim(0);
    d->sent = 0;
    d->trimmed_ms = d->now.mono_ms;
#else
    (void)d;
#endif
}

static void before_sleep(uv_prepare_t *prepare)
{
    struct pl_driver *d = prepare->data;

    pl__driver_now(d);
    if (!take_batch(d)) {
        uv_idle_start(&d->idle, stay_awake);
    } else {
        uv_idle_stop(&d->idle);
        arm_timer(d);
        memory_return(d);
        if (d->turn)
            d->turn(d->user);
        if (d->shutting_down && pl_controller_finished(d->controller))
            pl__loop_stop(d->loop);
    }
    d->now_known = false;
    measure_turn(d);
}

/* --- life --------------------------------------------------------------------------------------- */

static int open_management(struct pl_driver *d, const struct pl_driver_options *options,
                           struct pl_arena *arena, struct pl_error **err)
{
    struct pl_kube_options kube_options = { .qps = options->qps,
                                            .burst = options->burst,
                                            .user_agent = user_agent };
    struct pl_kube *kube;

    if (pl__kube_open(d->loop, options->config, &kube_options, arena, &kube, err) < 0)
        return -1;
    server_add(d, 0, kube);
    return 0;
}

static void start_handles(struct pl_driver *d)
{
    uv_loop_t *uv = pl__loop_uv(d->loop);

    uv_loop_configure(uv, UV_METRICS_IDLE_TIME);
    uv_prepare_init(uv, &d->prepare);
    uv_idle_init(uv, &d->idle);
    uv_timer_init(uv, &d->timer);
    d->prepare.data = d->idle.data = d->timer.data = d;
    uv_prepare_start(&d->prepare, before_sleep);
}

int pl__driver_new(const struct pl_driver_options *options, struct pl_arena *arena,
                   struct pl_driver **driver, struct pl_error **err)
{
    struct pl_driver *d = allocate(sizeof *d);

    d->loop = options->loop ? options->loop : pl__loop_new();
    d->started_ms = pl__loop_wall_ms();
    d->etcd_options = options->etcd;
    d->turn = options->turn;
    d->user = options->user;
    pl__arena_init(&d->arena, NULL, 1024);
    if (open_management(d, options, arena, err) < 0) {
        if (!options->loop)
            pl__loop_free(d->loop);
        pl__arena_release(&d->arena);
        free(d);
        return -1;
    }
    start_handles(d);
    d->controller = pl_controller_new(&options->controller, pl__driver_now(d));
    *driver = d;
    return 0;
}

void pl__driver_free(struct pl_driver *d)
{
    if (!d)
        return;
    d->closing = true;
    uv_prepare_stop(&d->prepare);
    uv_idle_stop(&d->idle);
    uv_timer_stop(&d->timer);
    for (size_t i = 0; i < d->server_count; i++)
        clients_close(&d->servers[i]);
    /* The calls that were cut short end in there, so the driver must still be whole. */
    pl__loop_free(d->loop);
    if (d->controller)
        pl_controller_free(d->controller);
    free(d->servers);
    pl__arena_release(&d->arena);
    free(d);
}

void pl__driver_run(struct pl_driver *d)
{
    if (!d->stop_reason.len)
        pl__loop_run(d->loop);
}

void pl__driver_stop(struct pl_driver *d)
{
    pl__loop_stop(d->loop);
}

void pl__driver_shutdown(struct pl_driver *d)
{
    d->shutting_down = true;
    step(d, &(struct pl_event){ .type = EVENT_SHUTDOWN, .retry_after_s = -1 });
}

struct pl_str pl__driver_stop_reason(const struct pl_driver *d)
{
    return d->stop_reason;
}

struct pl_loop *pl__driver_loop(struct pl_driver *d)
{
    return d->loop;
}

struct pl_controller *pl__driver_controller(struct pl_driver *d)
{
    return d->controller;
}

struct pl_kube *pl__driver_management(struct pl_driver *d)
{
    return d->servers[0].kube;
}

double pl__driver_started_s(const struct pl_driver *d)
{
    return (double)d->started_ms / 1000;
}

/* --- metrics ------------------------------------------------------------------------------------ */

/* One line of rest_client_requests_total. */
struct count {
    const char *host;
    const char *method;
    int status;
    uint64_t count;
};

static int compare_counts(const void *a, const void *b)
{
    const struct count *x = a, *y = b;
    int order = strcmp(x->host, y->host);

    if (order == 0)
        order = strcmp(x->method, y->method);
    return order ? order : (x->status > y->status) - (x->status < y->status);
}

static size_t gather_counts(const struct pl_driver *d, struct count *counts)
{
    size_t total = 0;

    for (size_t i = 0; i < d->server_count; i++) {
        size_t count;
        const struct pl_kube_count *rows = pl__kube_counts(d->servers[i].kube, &count);
        for (size_t k = 0; k < count; k++, total++) {
            if (counts)
                counts[total] = (struct count){ pl__kube_host(d->servers[i].kube), rows[k].method,
                                                rows[k].status, rows[k].count };
        }
    }
    return total;
}

/* Several clusters can be behind one host and differ by a path: those are one line. */
static void add_counts(struct pl_buf *out, struct count *counts, size_t total)
{
    qsort(counts, total, sizeof counts[0], compare_counts);
    for (size_t i = 0; i < total; i++) {
        uint64_t sum = counts[i].count;
        for (; i + 1 < total && compare_counts(&counts[i], &counts[i + 1]) == 0; i++)
            sum += counts[i + 1].count;
        pl__buf_add_lit(out, "rest_client_requests_total{code=\"");
        if (counts[i].status)
            pl__buf_add_i64(out, counts[i].status);
        else
            pl__buf_add_lit(out, "<error>");
        pl__buf_printf(out, "\",host=\"%s\",method=\"%s\"} ", counts[i].host, counts[i].method);
        pl__buf_add_u64(out, sum);
        pl__buf_add_char(out, '\n');
    }
}

void pl__driver_metrics(struct pl_driver *d, struct pl_buf *out)
{
    size_t total = gather_counts(d, NULL);
    struct count *counts = PL_NEW(out->arena, struct count, total + 1);

    pl__buf_add_lit(out,
                    "# HELP rest_client_requests_total Number of HTTP requests, partitioned by "
                    "status code, method, and host.\n"
                    "# TYPE rest_client_requests_total counter\n");
    gather_counts(d, counts);
    add_counts(out, counts, total);
    pl__buf_printf(out,
                   "# HELP plimsoll_loop_turn_seconds_max The longest turn of the event loop.\n"
                   "# TYPE plimsoll_loop_turn_seconds_max gauge\n"
                   "plimsoll_loop_turn_seconds_max %.6f\n",
                   (double)d->turn_max_ns / 1e9);
}
