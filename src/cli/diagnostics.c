#include "cli/diagnostics.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/secret.h"
#include "loop/server.h"

enum {
    KEPT_MS = 60000, /* a decision about a token */
    KEPT_COUNT = 64,
    REVIEW_COUNT_MAX = 16,  /* questions under way */
    REVIEWS_PER_S_MAX = 20, /* strangers must not use up the controller's requests */
    REVIEW_TIMEOUT_MS = 10000,
    TOKEN_BYTES_MAX = 16384,
    METRICS_BYTES_MAX = 64 << 20,
};

/* What was decided about a token, for a while. */
struct decision {
    char *token; /* NULL: free */
    size_t token_len;
    int status; /* 200: let in; 401, 403: not */
    uint64_t until_ms;
};

struct pl_diagnostics {
    struct pl_driver *driver;
    struct pl_server *health, *metrics;
    bool insecure;
    bool closed;
    struct decision kept[KEPT_COUNT];
    size_t review_count;
    uint64_t second, reviews_in_second;
};

/* A caller who waits until we know who it is. */
struct review {
    struct pl_diagnostics *diagnostics;
    struct pl_server_call *call; /* NULL: it did not wait */
    struct pl_arena arena;       /* wiped: holds the token */
    struct pl_str token;
};

static void *allocate(size_t size)
{
    void *p = calloc(1, size);

    if (!p)
        abort();
    return p;
}

/* --- answers ------------------------------------------------------------------------------------ */

static const struct {
    int status;
    const char *text;
} plain_answers[] = {
    { 200, "ok" },
    { 401, "Unauthorized: a bearer token that the management cluster knows is needed" },
    { 403, "Forbidden: needs the verb get on the non-resource URL /metrics" },
    { 404, "not found" },
    { 405, "method not allowed" },
    { 429, "too many questions" },
    { 500, "the management cluster could not be asked who you are" },
    { 503, "not ready: the management cluster has not been read yet" },
};

static void answer_plainly(struct pl_server_call *call, int status)
{
    const char *text = "";

    for (size_t i = 0; i < sizeof plain_answers / sizeof plain_answers[0]; i++)
        if (plain_answers[i].status == status)
            text = plain_answers[i].text;
    pl__server_answer(call, status, "text/plain; charset=utf-8", pl__str(text));
}

static void answer_metrics(struct pl_diagnostics *d, struct pl_server_call *call)
{
    struct pl_arena arena;
    struct pl_buf out;

    pl__arena_init(&arena, NULL, 0);
    pl__buf_init(&out, &arena, METRICS_BYTES_MAX);
    pl__diagnostics_metrics(d->driver, &out);
    pl__server_answer(call, 200, "text/plain; version=0.0.4; charset=utf-8", pl__buf_str(&out));
    pl__arena_release(&arena);
}

/* --- decisions that are kept --------------------------------------------------------------------- */

static void forget(struct decision *k)
{
    if (k->token)
        pl__secret_wipe(k->token, k->token_len);
    free(k->token);
    *k = (struct decision){ .token = NULL };
}

/* In a time that does not tell how much of it is right. */
static bool same_token(const struct decision *k, struct pl_str token)
{
    unsigned char differs = 0;

    if (!k->token || k->token_len != token.len)
        return false;
    for (size_t i = 0; i < token.len; i++)
        differs |= (unsigned char)(k->token[i] ^ token.ptr[i]);
    return differs == 0;
}

/* 0: not known. */
static int known_status(struct pl_diagnostics *d, struct pl_str token)
{
    uint64_t now_ms = pl__driver_now(d->driver).mono_ms;

    for (size_t i = 0; i < KEPT_COUNT; i++) {
        if (d->kept[i].token && d->kept[i].until_ms <= now_ms)
            forget(&d->kept[i]);
        if (same_token(&d->kept[i], token))
            return d->kept[i].status;
    }
    return 0;
}

/* In the place of the one that ends first; free ones end at 0. */
static void keep(struct pl_diagnostics *d, struct pl_str token, int status)
{
    struct decision *place = &d->kept[0];

    for (size_t i = 1; i < KEPT_COUNT; i++)
        if (d->kept[i].until_ms < place->until_ms)
            place = &d->kept[i];
    forget(place);
    place->token = allocate(token.len + 1);
    memcpy(place->token, token.ptr, token.len);
    place->token_len = token.len;
    place->status = status;
    place->until_ms = pl__driver_now(d->driver).mono_ms + KEPT_MS;
}

/* --- asking who it is, and whether it may --------------------------------------------------------- */

/* What TokenReview and SubjectAccessReview answer. */
struct review_status {
    bool authenticated, allowed;
    struct pl_str user, uid;
    struct pl_str extra; /* JSON as it stood there */
    PL_LIST(struct pl_str) groups;
};

static int read_raw(struct pl_json *j, void *destination)
{
    struct pl_str *raw = destination;
    const char *start = j->at;

    if (pl__json_skip(j) < 0)
        return -1;
    *raw = pl__str_copy(j->arena, (struct pl_str){ start, (size_t)(j->at - start) });
    return 0;
}

static const struct pl_field review_fields[] = {
    PL_FIELD("status.authenticated", F_BOOL, struct review_status, authenticated),
    PL_FIELD("status.allowed", F_BOOL, struct review_status, allowed),
    PL_FIELD("status.user.username", F_STR, struct review_status, user),
    PL_FIELD("status.user.uid", F_STR, struct review_status, uid),
    PL_FIELD("status.user.groups", F_STRINGS, struct review_status, groups),
    PL_FIELD_CUSTOM("status.user.extra", struct review_status, extra, read_raw),
};
static PL_SHAPE(review_shape, struct review_status, review_fields);

static int read_review(const struct pl_kube_answer *answer, struct pl_arena *arena,
                       struct review_status *status)
{
    struct pl_json j;

    *status = (struct review_status){ .allowed = false };
    if (answer->failure != KUBE_OK || answer->status < 200 || answer->status > 299)
        return -1;
    pl__json_init(&j, answer->body, PL_STR("review"), arena, 0, NULL);
    return pl__json_decode(&j, &review_shape, status);
}

/* Answers the one who waits; `status` 500 is not kept. */
static void review_end(struct review *r, int status)
{
    struct pl_diagnostics *d = r->diagnostics;

    d->review_count--;
    if (!d->closed && status != 500)
        keep(d, r->token, status);
    if (r->call && status == 200)
        answer_metrics(d, r->call);
    else if (r->call)
        answer_plainly(r->call, status);
    pl__arena_release(&r->arena);
    free(r);
}

static void access_reviewed(void *user, const struct pl_kube_answer *answer)
{
    struct review *r = user;
    struct review_status status;

    if (read_review(answer, &r->arena, &status) < 0)
        review_end(r, 500);
    else
        review_end(r, status.allowed ? 200 : 403);
}

static void write_text(struct pl_json_writer *w, const char *key, struct pl_str text)
{
    pl__json_write_key(w, key);
    pl__json_write_str(w, text);
}

static void open_review(struct pl_json_writer *w, struct pl_buf *out, const char *api_version,
                        const char *kind)
{
    pl__json_writer_init(w, out, JSON_COMPACT);
    pl__json_open_object(w);
    write_text(w, "apiVersion", pl__str(api_version));
    write_text(w, "kind", pl__str(kind));
    pl__json_write_key(w, "spec");
    pl__json_open_object(w);
}

static void write_user(struct pl_json_writer *w, const struct review_status *who)
{
    write_text(w, "user", who->user);
    write_text(w, "uid", who->uid);
    pl__json_write_key(w, "groups");
    pl__json_open_array(w);
    for (uint32_t i = 0; i < who->groups.count; i++)
        pl__json_write_str(w, who->groups.items[i]);
    pl__json_close_array(w);
    if (who->extra.len) {
        pl__json_write_key(w, "extra");
        pl__buf_add(w->out, who->extra);
        w->after_key = false;
    }
}

static struct pl_str access_body(const struct review_status *who, struct pl_arena *arena)
{
    struct pl_buf out;
    struct pl_json_writer w;

    pl__buf_init(&out, arena, 1 << 20);
    open_review(&w, &out, "authorization.k8s.io/v1", "SubjectAccessReview");
    write_user(&w, who);
    pl__json_write_key(&w, "nonResourceAttributes");
    pl__json_open_object(&w);
    write_text(&w, "path", PL_STR("/metrics"));
    write_text(&w, "verb", PL_STR("get"));
    pl__json_close_object(&w);
    pl__json_close_object(&w);
    pl__json_close_object(&w);
    return pl__buf_str(&out);
}

static struct pl_str token_body(struct pl_str token, struct pl_arena *arena)
{
    struct pl_buf out;
    struct pl_json_writer w;

    pl__buf_init(&out, arena, 1 << 20);
    open_review(&w, &out, "authentication.k8s.io/v1", "TokenReview");
    write_text(&w, "token", token);
    pl__json_close_object(&w);
    pl__json_close_object(&w);
    return pl__buf_str(&out);
}

static void ask(struct review *r, const char *path, struct pl_str body,
                void (*done)(void *user, const struct pl_kube_answer *answer))
{
    struct pl_kube_request request = { .method = "POST",
                                       .path = path,
                                       .body = body,
                                       .timeout_ms = REVIEW_TIMEOUT_MS,
                                       .body_max = 1 << 20,
                                       .done = done,
                                       .user = r };

    pl__kube_send(pl__driver_management(r->diagnostics->driver), &request);
}

static void token_reviewed(void *user, const struct pl_kube_answer *answer)
{
    struct review *r = user;
    struct review_status status;

    if (r->diagnostics->closed || read_review(answer, &r->arena, &status) < 0)
        review_end(r, 500);
    else if (!status.authenticated)
        review_end(r, 401);
    else
        ask(r, "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            access_body(&status, &r->arena), access_reviewed);
}

/* Whether one more question is within bounds. */
static bool may_ask(struct pl_diagnostics *d)
{
    uint64_t second = pl__driver_now(d->driver).mono_ms / 1000;

    if (second != d->second) {
        d->second = second;
        d->reviews_in_second = 0;
    }
    if (d->review_count >= REVIEW_COUNT_MAX || d->reviews_in_second >= REVIEWS_PER_S_MAX)
        return false;
    d->reviews_in_second++;
    return true;
}

static void review_start(struct pl_diagnostics *d, struct pl_server_call *call, struct pl_str token)
{
    struct review *r = allocate(sizeof *r);

    *r = (struct review){ .diagnostics = d, .call = call };
    pl__arena_init(&r->arena, &pl__secret_allocator, 4096);
    r->token = pl__str_copy(&r->arena, token);
    pl__server_call_set(call, r);
    d->review_count++;
    ask(r, "/apis/authentication.k8s.io/v1/tokenreviews", token_body(r->token, &r->arena),
        token_reviewed);
}

/* "Bearer TOKEN"; empty when there is none. */
static struct pl_str bearer_token(struct pl_str authorization)
{
    struct pl_str scheme = PL_STR("Bearer ");

    if (!pl__str_starts_with(authorization, scheme) || authorization.len > TOKEN_BYTES_MAX)
        return PL_STR("");
    return (struct pl_str){ authorization.ptr + scheme.len, authorization.len - scheme.len };
}

static void let_in_or_not(struct pl_diagnostics *d, struct pl_server_call *call,
                          struct pl_str authorization)
{
    struct pl_str token = bearer_token(authorization);
    int status = token.len ? known_status(d, token) : 401;

    if (status == 200)
        answer_metrics(d, call);
    else if (status)
        answer_plainly(call, status);
    else if (!may_ask(d))
        answer_plainly(call, 429);
    else
        review_start(d, call, token);
}

/* --- requests ----------------------------------------------------------------------------------- */

static bool is_read(const struct pl_server_request *request)
{
    return strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
}

static void health_asked(void *user, struct pl_server_call *call,
                         const struct pl_server_request *request)
{
    struct pl_diagnostics *d = user;

    if (!is_read(request))
        answer_plainly(call, 405);
    else if (strcmp(request->path, "/healthz") == 0)
        answer_plainly(call, 200);
    else if (strcmp(request->path, "/readyz") == 0)
        answer_plainly(call, pl_controller_synced(pl__driver_controller(d->driver)) ? 200 : 503);
    else
        answer_plainly(call, 404);
}

static void metrics_asked(void *user, struct pl_server_call *call,
                          const struct pl_server_request *request)
{
    struct pl_diagnostics *d = user;

    if (strcmp(request->path, "/metrics") != 0)
        answer_plainly(call, 404);
    else if (!is_read(request))
        answer_plainly(call, 405);
    else if (d->insecure)
        answer_metrics(d, call);
    else
        let_in_or_not(d, call, pl__str(request->authorization));
}

/* The questions go on and their answer is kept; nobody waits for it any more. */
static void metrics_gone(void *user, struct pl_server_call *call)
{
    struct review *r = pl__server_call_get(call);

    (void)user;
    if (r)
        r->call = NULL;
}

/* --- life --------------------------------------------------------------------------------------- */

bool pl__diagnostics_address_valid(const char *address)
{
    const char *colon = strrchr(address, ':');
    uint64_t port;

    if (!colon || !pl__str_to_u64(pl__str(colon + 1), &port) || port == 0 || port > 65535)
        return false;
    size_t host_len = (size_t)(colon - address);
    if (host_len && address[0] == '[')
        return address[host_len - 1] == ']' && host_len > 2;
    return memchr(address, ':', host_len) == NULL && strcspn(address, " /[]") >= host_len;
}

static int open_health(struct pl_diagnostics *d, const char *address, struct pl_arena *arena,
                       struct pl_error **err)
{
    struct pl_server_options options = { .listen = address, .handle = health_asked, .user = d };

    return address ? pl__server_open(pl__driver_loop(d->driver), &options, arena, &d->health, err)
                   : 0;
}

static int open_metrics(struct pl_diagnostics *d, const char *address, struct pl_arena *arena,
                        struct pl_error **err)
{
    struct pl_server_options options = { .listen = address,
                                         .tls = !d->insecure,
                                         .handle = metrics_asked,
                                         .gone = metrics_gone,
                                         .user = d };

    return address ? pl__server_open(pl__driver_loop(d->driver), &options, arena, &d->metrics, err)
                   : 0;
}

int pl__diagnostics_open(struct pl_driver *driver, const struct pl_diagnostics_options *options,
                         struct pl_arena *arena, struct pl_diagnostics **diagnostics,
                         struct pl_error **err)
{
    struct pl_diagnostics *d = allocate(sizeof *d);
    struct pl_error *cause = NULL;

    *d = (struct pl_diagnostics){ .driver = driver, .insecure = options->insecure };
    *diagnostics = d;
    if (open_health(d, options->health_address, arena, &cause) < 0)
        return pl__fail(arena, err, cause, "--health-addr");
    if (open_metrics(d, options->metrics_address, arena, &cause) < 0)
        return pl__fail(arena, err, cause, "--diagnostics-address");
    return 0;
}

void pl__diagnostics_close(struct pl_diagnostics *d)
{
    if (!d || d->closed)
        return;
    d->closed = true;
    if (d->health)
        pl__server_close(d->health);
    if (d->metrics)
        pl__server_close(d->metrics);
}

void pl__diagnostics_free(struct pl_diagnostics *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < KEPT_COUNT; i++)
        forget(&d->kept[i]);
    free(d);
}

/* --- metrics ------------------------------------------------------------------------------------ */

static void add_metric(struct pl_buf *out, const char *name, const char *type, const char *help,
                       double value)
{
    pl__buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %.15g\n", name, help, name, type, name,
                   value);
}

static double seconds_of(uv_timeval_t t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

/* -1 when it cannot be told. */
static double open_files(void)
{
    DIR *directory = opendir("/proc/self/fd");
    double count = -3; /* ".", ".." and the directory itself */

    if (!directory)
        return -1;
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static void add_process(struct pl_buf *out, double start_s)
{
    uv_rusage_t usage;
    size_t resident = 0;
    struct rlimit files;
    double open = open_files();

    if (uv_getrusage(&usage) == 0)
        add_metric(out, "process_cpu_seconds_total", "counter",
                   "Total user and system CPU time spent in seconds.",
                   seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));
    if (uv_resident_set_memory(&resident) == 0)
        add_metric(out, "process_resident_memory_bytes", "gauge", "Resident memory size in bytes.",
                   (double)resident);
    if (open >= 0)
        add_metric(out, "process_open_fds", "gauge", "Number of open file descriptors.", open);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        add_metric(out, "process_max_fds", "gauge", "Maximum number of open file descriptors.",
                   (double)files.rlim_cur);
    add_metric(out, "process_start_time_seconds", "gauge",
               "Start time of the process since unix epoch in seconds.", start_s);
}

void pl__diagnostics_metrics(struct pl_driver *driver, struct pl_buf *out)
{
    struct pl_now now = pl__driver_now(driver);

    pl_controller_metrics(pl__driver_controller(driver), now, out);
    pl__driver_metrics(driver, out);
    add_process(out, pl__driver_started_s(driver));
}
