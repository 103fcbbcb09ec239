#include "cli/front.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/resource.h>

#include "apiserver/protobuf.h"
#include "apiserver/tree.h"
#include "base/secret.h"
#include "loop/listen.h"
#include "loop/server.h"
#include "loop/tunnel.h"

enum {
    CONNECTIONS_MAX = 20000,
    FILES_SPARED = 256,        /* for etcd, databases, the controller's own connections */
    KEEP_ALIVE_S = 120,        /* longer than Go's and curl's clients keep theirs */
    ARENA_HELD_MAX = 16 << 20, /* more is given back after the request */
    SWEEP_MS = 500,            /* how soon open streams feel that a network was cut */
    CLUSTER_BYTES = PL_API_CLUSTER_NAME_MAX + 1,
    METHOD_BYTES = 16,
};

/* An open watch or port-forward, by its cluster. */
struct open {
    struct open *next, *prev;
    struct pl_front *front;
    char cluster[CLUSTER_BYTES];
    struct pl_server_call *call; /* of a watch */
    struct pl_api_watch *watch;
    struct pl_tunnel *tunnel;
    bool nodes; /* it is a watch of Nodes */
    bool cut;
};

/* A request that is answered later, because the network is slow. */
struct held {
    struct held *next, *prev;
    struct pl_front *front;
    struct pl_server_call *call; /* NULL: gone meanwhile */
    uv_timer_t timer;
    char method[METHOD_BYTES];
    const char *target; /* the call's */
    struct pl_str body;
};

struct pl_front {
    struct pl_loop *loop;
    struct pl_front_options options;
    struct pl_arena own;   /* copies of the options */
    struct pl_arena arena; /* of one request */
    struct pl_server *server;
    uv_prepare_t prepare; /* before each wait: when is the API server due? */
    uv_timer_t step, sweep;
    struct open *opens;
    struct held *helds;
    bool closing;
};

/* What a request is about. */
struct target {
    struct pl_str cluster, path, query;
    bool management;
};

/* --- answers ---------------------------------------------------------------------------------------- */

static void answer(struct pl_front *f, struct pl_server_call *call, const struct pl_api_answer *a)
{
    if (a->retry_after_s > 0)
        pl__server_answer_header(call, "Retry-After",
                                 pl__str_format(&f->arena, "%u", a->retry_after_s));
    if (a->warning.len > 0) {
        /* Quoted as JSON is: a field's name may hold anything. */
        struct pl_str text = pl__tree_text(&f->arena, pl__tree_str(&f->arena, a->warning));
        pl__server_answer_header(call, "Warning",
                                 pl__str_format(&f->arena, "299 - %.*s", PL_STR_ARG(text)));
    }
    pl__server_answer(call, a->status, pl__str_copy(&f->arena, a->content_type).ptr, a->body);
}

static void fail(struct pl_front *f, struct pl_server_call *call, int status, const char *reason,
                 struct pl_str message)
{
    struct pl_api_answer a = { 0 };

    pl_api_answer_failure(&a, &f->arena, status, reason, message);
    answer(f, call, &a);
}

static struct pl_str refusal(void *user, int status, struct pl_arena *arena,
                             const char **content_type)
{
    struct pl_api_answer a = { 0 };

    (void)user;
    if (status == 413)
        pl_api_answer_failure(&a, arena, status, "RequestEntityTooLarge",
                              PL_STR("Request entity too large: limit is 3145728"));
    else
        pl_api_answer_failure(&a, arena, status, "TooManyRequests",
                              PL_STR("too many requests, please try again later"));
    *content_type = pl__str_copy(arena, a.content_type).ptr;
    return a.body;
}

/* --- watches and tunnels ------------------------------------------------------------------------------ */

static struct open *open_new(struct pl_front *f, struct pl_str cluster)
{
    struct open *o = calloc(1, sizeof *o);

    if (!o)
        abort();
    o->front = f;
    snprintf(o->cluster, sizeof o->cluster, "%.*s", PL_STR_ARG(cluster));
    o->next = f->opens;
    if (f->opens)
        f->opens->prev = o;
    f->opens = o;
    return o;
}

static void open_free(struct open *o)
{
    if (o->prev)
        o->prev->next = o->next;
    else
        o->front->opens = o->next;
    if (o->next)
        o->next->prev = o->prev;
    free(o);
}

static enum pl_server_stream_state watch_read(void *user, char *bytes, size_t max, size_t *count)
{
    struct open *o = user;

    if (o->cut)
        return SERVER_STREAM_CUT;
    switch (pl_api_watch_read(o->watch, pl__loop_wall_ms(), bytes, max, count)) {
    case PL_WATCH_MORE:
        return SERVER_STREAM_MORE;
    case PL_WATCH_WAIT:
        return SERVER_STREAM_WAIT;
    case PL_WATCH_END:
        break;
    }
    return SERVER_STREAM_END;
}

static void watch_woken(void *context)
{
    struct open *o = context;

    pl__server_stream_wake(o->call);
}

static void watch_closed(void *user)
{
    struct open *o = user;

    pl_api_watch_close(o->watch);
    open_free(o);
}

static bool is_nodes(struct pl_str path)
{
    return pl__str_equal(path, PL_STR("/api/v1/nodes"));
}

static void answer_watch(struct pl_front *f, struct pl_server_call *call, const struct target *t,
                         const struct pl_api_answer *a)
{
    struct open *o = open_new(f, t->cluster);

    o->call = call;
    o->nodes = is_nodes(t->path);
    o->watch = a->watch;
    pl_api_watch_own(o->watch, (struct pl_api_watch_owner){ watch_woken, o });
    pl__server_stream(call, a->status, pl__str_copy(&f->arena, a->content_type).ptr,
                      &(struct pl_server_stream){ watch_read, watch_closed, o });
}

static void tunnel_closed(void *user, struct pl_tunnel *tunnel)
{
    (void)tunnel;
    open_free(user);
}

static void open_cut(struct open *o)
{
    if (o->tunnel) {
        pl__tunnel_cut(o->tunnel);
    } else {
        o->cut = true;
        pl__server_stream_wake(o->call);
    }
}

static struct pl_fleet_gate gate_of(struct pl_front *f, struct pl_str cluster)
{
    bool management = pl__str_equal(cluster, pl__str(f->options.management));

    if (management || !f->options.gate)
        return (struct pl_fleet_gate){ 0 };
    return f->options.gate(f->options.user, cluster);
}

static void sweep(uv_timer_t *timer)
{
    struct pl_front *f = timer->data;

    for (struct open *o = f->opens, *next; o; o = next) {
        next = o->next;
        struct pl_fleet_gate gate = gate_of(f, pl__str(o->cluster));
        /* Kubernetes lets a watch go on that it would refuse now. Here nobody wants to wait for its end. */
        if (gate.cut || (gate.nodes_forbidden && o->nodes))
            open_cut(o);
    }
}

/* --- port-forward ------------------------------------------------------------------------------------- */

/* "/api/v1/namespaces/NS/pods/POD/portforward" */
static bool is_portforward(struct pl_str path, struct pl_str *ns, struct pl_str *pod)
{
    static const struct pl_str prefix = PL_STR_INIT("/api/v1/namespaces/");

    if (!pl__str_starts_with(path, prefix))
        return false;
    path.ptr += prefix.len;
    path.len -= prefix.len;
    *ns = pl__str_cut(&path, '/');
    if (!pl__str_equal(pl__str_cut(&path, '/'), PL_STR("pods")))
        return false;
    *pod = pl__str_cut(&path, '/');
    return pl__str_equal(path, PL_STR("portforward"));
}

/* The one port that is asked for; 0: none, several, or nonsense. */
static uint16_t port_of(struct pl_str query)
{
    uint64_t port = 0;

    while (query.len > 0) {
        struct pl_str value = pl__str_cut(&query, '&');
        if (!pl__str_equal(pl__str_cut(&value, '='), PL_STR("ports")))
            continue;
        if (port != 0 || !pl__str_to_u64(value, &port) || port > 65535)
            return 0;
    }
    return (uint16_t)port;
}

static void portforward(struct pl_front *f, struct pl_server_call *call, const struct target *t,
                        struct pl_str ns, struct pl_str pod)
{
    struct pl_api_answer a = { 0 };
    struct pl_api_call get = { .cluster = t->cluster,
                               .verb = PL_API_GET,
                               .group_version = "v1",
                               .plural = "pods",
                               .ns = ns,
                               .name = pod };
    struct pl_tunnel_options options = { .port = port_of(t->query), .closed = tunnel_closed };
    struct pl_fleet_target target = { 0 };
    const char *why = NULL;

    if (pl_apiserver_call(f->options.api, &get, pl__loop_wall_ms(), &f->arena, &a) < 0) {
        answer(f, call, &a);
        return;
    }
    if (pl__tunnel_wanted(call, &why) && options.port == 0)
        why = "query parameter \"ports\" must be one port";
    if (why) {
        fail(f, call, 400, "BadRequest", pl__str(why));
        return;
    }
    options.refuse = f->options.tunnel ? f->options.tunnel(f->options.user, t->cluster, pod,
                                                           options.port, &target)
                                       : "connection refused";
    options.host = target.host;
    options.host_port = target.port;
    options.delay_ms = target.delay_ms;
    struct open *o = open_new(f, t->cluster);
    options.user = o;
    o->tunnel = pl__tunnel_open(f->loop, call, &options);
}

/* --- requests ----------------------------------------------------------------------------------------- */

static struct pl_str header(const struct pl_server_call *call, const char *name)
{
    return pl__str(pl__server_header(call, name));
}

static void forward(struct pl_front *f, struct pl_server_call *call, const struct target *t,
                    const char *method, struct pl_str body)
{
    struct pl_api_request request = {
        .cluster = t->cluster,
        .method = pl__str(method),
        .path = t->path,
        .query = t->query,
        .content_type = header(call, "Content-Type"),
        .accept = header(call, "Accept"),
        .user_agent = header(call, "User-Agent"),
        .body = body,
    };
    struct pl_api_answer a = { 0 };
    struct pl_str json;

    if (pl__str_starts_with(request.content_type, PL_STR(PL_PROTOBUF_TYPE)) &&
        pl__protobuf_to_json(&f->arena, body, &json)) {
        request.content_type = PL_STR("application/json");
        request.body = json;
    }
    pl_apiserver_handle(f->options.api, &request, pl__loop_wall_ms(), &f->arena, &a);
    if (a.watch)
        answer_watch(f, call, t, &a);
    else
        answer(f, call, &a);
}

/* False: nobody has such a cluster. */
static bool target_read(struct pl_front *f, const char *text, struct target *t)
{
    static const struct pl_str prefix = PL_STR_INIT("/clusters/");

    t->query = pl__str(text);
    t->path = pl__str_cut(&t->query, '?');
    t->management = !pl__str_starts_with(t->path, prefix);
    if (t->management) {
        t->cluster = pl__str(f->options.management);
        return true;
    }
    t->path.ptr += prefix.len;
    t->path.len -= prefix.len;
    t->cluster = pl__str_cut(&t->path, '/');
    if (t->path.len > 0) { /* with the slash again */
        t->path.ptr--;
        t->path.len++;
    }
    return pl_apiserver_has_cluster(f->options.api, t->cluster);
}

static bool is_health(struct pl_str path)
{
    return pl__str_equal(path, PL_STR("/healthz")) || pl__str_equal(path, PL_STR("/livez")) ||
           pl__str_equal(path, PL_STR("/readyz"));
}

static void health(struct pl_server_call *call, struct pl_str query)
{
    bool verbose = pl__str_starts_with(query, PL_STR("verbose"));

    pl__server_answer(call, 200, "text/plain; charset=utf-8",
                      verbose ? PL_STR("[+]ping ok\n[+]storage ok\nhealthz check passed\n")
                              : PL_STR("ok"));
}

static void serve(struct pl_front *f, struct pl_server_call *call, const char *method,
                  const char *text, struct pl_str body)
{
    struct target t = { 0 };
    struct pl_str ns, pod;

    if (!target_read(f, text, &t))
        fail(f, call, 404, "NotFound", PL_STR("there is no such cluster"));
    else if (is_health(t.path))
        health(call, t.query);
    else if (gate_of(f, t.cluster).nodes_forbidden && is_nodes(t.path))
        fail(f, call, 403, "Forbidden",
             PL_STR(
                 "nodes is forbidden: User \"system:anonymous\" cannot list resource \"nodes\" in "
                 "API group \"\" at the cluster scope"));
    else if (is_portforward(t.path, &ns, &pod) && strcmp(method, "GET") != 0 &&
             strcmp(method, "POST") != 0)
        fail(f, call, 405, "MethodNotAllowed",
             PL_STR("the server does not allow this method on the requested resource"));
    else if (is_portforward(t.path, &ns, &pod))
        portforward(f, call, &t, ns, pod);
    else
        forward(f, call, &t, method, body);
    if (f->arena.held_bytes > ARENA_HELD_MAX)
        pl__arena_release(&f->arena);
    else
        pl__arena_reset(&f->arena);
}

static void held_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void held_end(struct held *h)
{
    if (h->prev)
        h->prev->next = h->next;
    else
        h->front->helds = h->next;
    if (h->next)
        h->next->prev = h->prev;
    uv_close((uv_handle_t *)&h->timer, held_closed);
}

static void held_due(uv_timer_t *timer)
{
    struct held *h = timer->data;

    serve(h->front, h->call, h->method, h->target, h->body);
    held_end(h);
}

static void hold(struct pl_front *f, struct pl_server_call *call,
                 const struct pl_server_request *request, uint32_t delay_ms)
{
    struct held *h = calloc(1, sizeof *h);

    if (!h)
        abort();
    h->front = f;
    h->call = call;
    snprintf(h->method, sizeof h->method, "%s", request->method);
    h->target = request->target;
    h->body = request->body;
    h->next = f->helds;
    if (f->helds)
        f->helds->prev = h;
    f->helds = h;
    pl__server_call_set(call, h);
    uv_timer_init(pl__loop_uv(f->loop), &h->timer);
    h->timer.data = h;
    uv_timer_start(&h->timer, held_due, delay_ms, 0);
}

/* The time to answer is over before the network was that fast. */
static void held_gone(void *user, struct pl_server_call *call)
{
    (void)user;
    held_end(pl__server_call_get(call));
}

/* Compares all of it whatever differs, so that the time it takes tells nothing. */
static bool token_is(struct pl_str given, struct pl_str wanted)
{
    unsigned differs = given.len != wanted.len;

    for (size_t i = 0; i < wanted.len; i++)
        differs |= (unsigned char)(wanted.ptr[i] ^ (i < given.len ? given.ptr[i] : 0));
    return differs == 0;
}

static bool is_allowed(const struct pl_front *f, const char *authorization)
{
    struct pl_str given = pl__str(authorization);

    if (f->options.token.len == 0)
        return true;
    struct pl_str scheme = pl__str_cut(&given, ' ');
    return scheme.len == 6 && strncasecmp(scheme.ptr, "bearer", 6) == 0 &&
           token_is(given, f->options.token);
}

/* Without a token nobody is asked who he is, and a browser on this machine asks on behalf of any page it shows: by
 * a form or a script of that page, which says where it comes from (Origin, Sec-Fetch-Site), or by a name of the
 * page's own that leads to this machine since yesterday (Host). NULL: no page; else what gives it away. */
static const char *page_behind(const struct pl_front *f, const struct pl_server_call *call)
{
    const char *host = pl__server_header(call, "Host");
    const char *origin = pl__server_header(call, "Origin");
    const char *site = pl__server_header(call, "Sec-Fetch-Site");

    if (f->options.token.len > 0)
        return NULL;
    if (host && !pl__host_is_loopback(host))
        return "Host";
    if (origin && !(host && strncmp(origin, "http://", 7) == 0 && strcmp(origin + 7, host) == 0))
        return "Origin";
    if (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
        return "Sec-Fetch-Site";
    return NULL;
}

static void asked(void *user, struct pl_server_call *call, const struct pl_server_request *request)
{
    struct pl_front *f = user;
    struct target t = { 0 };
    const char *page = page_behind(f, call);

    if (page || !is_allowed(f, request->authorization)) {
        if (page)
            fail(f, call, 403, "Forbidden",
                 pl__str_format(&f->arena,
                                "forbidden: the %s header does not name this server, as if a web "
                                "page had asked; use 127.0.0.1 or localhost, or a token",
                                page));
        else
            fail(f, call, 401, "Unauthorized", PL_STR("Unauthorized"));
        pl__arena_reset(&f->arena);
        return;
    }
    struct pl_fleet_gate gate = { 0 };
    if (target_read(f, request->target, &t))
        gate = gate_of(f, t.cluster);
    if (gate.cut)
        pl__server_drop(call);
    else if (gate.delay_ms > 0)
        hold(f, call, request, gate.delay_ms);
    else
        serve(f, call, request->method, request->target, request->body);
}

/* --- the API server's own work --------------------------------------------------------------------------- */

static void step(uv_timer_t *timer)
{
    struct pl_front *f = timer->data;

    pl_apiserver_step(f->options.api, pl__loop_wall_ms());
}

/* Whoever wrote something, by a request or from inside: what is to be done about it is done soon. */
static void prepare(uv_prepare_t *handle)
{
    struct pl_front *f = handle->data;
    int64_t wait_ms = pl_apiserver_wake_at_ms(f->options.api) - pl__loop_wall_ms();

    uv_timer_start(&f->step, step, wait_ms > 0 ? (uint64_t)wait_ms : 0, 0);
}

/* --- its life ---------------------------------------------------------------------------------------------- */

/* Every watch is a connection of its own, and each has two ends in this process. */
static uint32_t files_raise(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return CONNECTIONS_MAX;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur > 2 * CONNECTIONS_MAX + FILES_SPARED)
        return CONNECTIONS_MAX;
    return limit.rlim_cur > 2 * FILES_SPARED ? (uint32_t)(limit.rlim_cur - FILES_SPARED) / 2
                                             : FILES_SPARED / 2;
}

static void handles_open(struct pl_front *f)
{
    uv_loop_t *uv = pl__loop_uv(f->loop);

    uv_prepare_init(uv, &f->prepare);
    uv_timer_init(uv, &f->step);
    uv_timer_init(uv, &f->sweep);
    f->prepare.data = f->step.data = f->sweep.data = f;
    uv_prepare_start(&f->prepare, prepare);
    if (f->options.gate)
        uv_timer_start(&f->sweep, sweep, SWEEP_MS, SWEEP_MS);
}

int pl__front_open(struct pl_loop *loop, const struct pl_front_options *options,
                   struct pl_arena *arena, struct pl_front **front, struct pl_error **err)
{
    bool tls = options->token.len > 0;
    struct pl_server_options server = {
        .listen = options->listen,
        .tls = tls,
        .connections_max = files_raise(),
        .timeout_s = KEEP_ALIVE_S,
        .body_bytes_max = PL_API_BODY_BYTES_MAX,
        .upgrades = true,
        .handle = asked,
        .gone = held_gone,
        .refusal = refusal,
    };

    if (!tls && !pl__listen_is_loopback(options->listen))
        return pl__error(arena, err, PL_USAGE,
                         "listen on %s: others could reach it, so a token is needed",
                         options->listen);
    struct pl_front *f = calloc(1, sizeof *f);
    if (!f)
        abort();
    f->loop = loop;
    f->options = *options;
    pl__arena_init(&f->own, &pl__secret_allocator, 1024);
    pl__arena_init(&f->arena, NULL, 64 * 1024);
    f->options.management = pl__str_copy(&f->own, pl__str(options->management)).ptr;
    f->options.token = pl__str_copy(&f->own, options->token);
    server.user = f;
    if (pl__server_open(loop, &server, arena, &f->server, err) < 0) {
        pl__front_free(f);
        return -1;
    }
    handles_open(f);
    *front = f;
    return 0;
}

uint16_t pl__front_port(const struct pl_front *front)
{
    return pl__server_port(front->server);
}

struct pl_str pl__front_certificate(const struct pl_front *front)
{
    return pl__server_certificate(front->server);
}

void pl__front_close(struct pl_front *front)
{
    if (!front || front->closing)
        return;
    front->closing = true;
    uv_close((uv_handle_t *)&front->prepare, NULL);
    uv_close((uv_handle_t *)&front->step, NULL);
    uv_close((uv_handle_t *)&front->sweep, NULL);
    pl__server_close(front->server);
}

void pl__front_free(struct pl_front *front)
{
    if (!front)
        return;
    assert(!front->opens && !front->helds);
    pl__arena_release(&front->arena);
    pl__arena_release(&front->own);
    free(front);
}
