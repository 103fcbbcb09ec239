/* One API server: queue, rate limit, credentials, deadlines, delivery.
 *
 * Callers and libcurl's callbacks only mark and queue; all the work is done by kube_pump(), which the
 * loop calls, so nothing here is ever re-entered and `done` never surprises its caller. */
#include "loop/kube_internal.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/secret.h"

enum {
    CONNECT_TIMEOUT_MS_DEFAULT = 30 * 1000,
    SILENCE_MS_DEFAULT = 30 * 1000,
    PROBE_TIMEOUT_MS_DEFAULT = 10 * 1000,
    CONFIG_BYTES = 768, /* what a configuration without its PEMs needs; there may be hundreds */
    STREAMS_MAX_DEFAULT = 90, /* servers allow 100; our own probe needs one, too */
};

/* --- lists ------------------------------------------------------------------------------------- */

void pl__kube_list_add(struct kube_list *list, struct kube_request *r)
{
    assert(!r->list);
    r->list = list;
    r->next = NULL;
    r->prev = list->last;
    if (list->last)
        list->last->next = r;
    else
        list->first = r;
    list->last = r;
    list->count++;
}

void pl__kube_list_add_first(struct kube_list *list, struct kube_request *r)
{
    assert(!r->list);
    r->list = list;
    r->prev = NULL;
    r->next = list->first;
    if (list->first)
        list->first->prev = r;
    else
        list->last = r;
    list->first = r;
    list->count++;
}

void pl__kube_list_remove(struct kube_request *r)
{
    struct kube_list *list = r->list;

    assert(list && list->count > 0);
    if (r->prev)
        r->prev->next = r->next;
    else
        list->first = r->next;
    if (r->next)
        r->next->prev = r->prev;
    else
        list->last = r->prev;
    list->count--;
    r->list = NULL;
    r->next = r->prev = NULL;
}

/* --- the pump ------------------------------------------------------------------------------------ */

static void wake_fired(uv_timer_t *timer)
{
    pl__kube_pump(timer->data);
}

static void soon_fired(uv_idle_t *idle)
{
    pl__kube_pump(idle->data);
}

void pl__kube_poke(struct pl_kube *kube)
{
    uv_idle_start(&kube->soon, soon_fired);
}

static void expire(struct kube_request *r)
{
    char text[KUBE_ERROR_BYTES];
    struct kube_lane *lane = r->lane;

    pl__kube_timeout_text(r->easy, &r->kube->peer, r->timeout_ms, text, sizeof text);
    if (r->list == &r->kube->queue)
        snprintf(text, sizeof text, "no credentials for %s within %.3g s", r->kube->peer.host,
                 (double)r->timeout_ms / 1000);
    pl__kube_request_fail(r, KUBE_TIMEOUT, "%s", text);
    if (lane && !r->probe)
        pl__kube_lane_suspect(lane, r);
    pl__kube_request_finish(r);
}

/* Expires what is due in the list; lowers `next_ms` to the nearest deadline that is left. */
static void list_expire(struct kube_list *list, uint64_t now_ms, uint64_t *next_ms)
{
    for (struct kube_request *r = list->first, *next; r; r = next) {
        next = r->next;
        if (r->deadline_ms == 0)
            continue;
        if (r->deadline_ms <= now_ms)
            expire(r);
        else if (r->deadline_ms < *next_ms)
            *next_ms = r->deadline_ms;
    }
}

static void deadlines_check(struct pl_kube *kube)
{
    uint64_t now_ms = pl__loop_mono_ms(kube->loop);
    uint64_t next_ms = UINT64_MAX;

    if (now_ms < kube->deadline_next_ms)
        return;
    list_expire(&kube->queue, now_ms, &next_ms);
    for (struct kube_lane *lane = kube->lanes; lane; lane = lane->next) {
        list_expire(&lane->held, now_ms, &next_ms);
        list_expire(&lane->open, now_ms, &next_ms);
        struct kube_request *probe = lane->probe;
        if (probe && probe->deadline_ms <= now_ms)
            expire(probe);
        else if (probe && probe->deadline_ms < next_ms)
            next_ms = probe->deadline_ms;
    }
    /* A probe that was started meanwhile has its deadline there already. */
    if (kube->deadline_next_ms > now_ms && kube->deadline_next_ms < next_ms)
        next_ms = kube->deadline_next_ms;
    kube->deadline_next_ms = next_ms;
}

static void list_cancel(struct kube_list *list, bool all)
{
    for (struct kube_request *r = list->first, *next; r; r = next) {
        next = r->next;
        if (!all && !r->cancelled)
            continue;
        pl__kube_request_fail(r, KUBE_CANCELLED, "cancelled");
        pl__kube_request_finish(r);
    }
}

static void cancels_check(struct pl_kube *kube)
{
    if (!kube->cancels && !kube->closing)
        return;
    kube->cancels = false;
    list_cancel(&kube->queue, kube->closing);
    for (struct kube_lane *lane = kube->lanes; lane; lane = lane->next) {
        if (kube->closing)
            pl__kube_lane_retire(lane);
        list_cancel(&lane->held, kube->closing);
        list_cancel(&lane->open, kube->closing);
        if (lane->probe && kube->closing) {
            pl__kube_request_fail(lane->probe, KUBE_CANCELLED, "cancelled");
            pl__kube_request_finish(lane->probe);
        }
    }
}

/* The time until the rate limit lets the request go; 0: now. Its deadline begins then. */
static uint64_t admit(struct pl_kube *kube, struct kube_request *r, uint64_t now_ms)
{
    if (r->admitted)
        return 0;
    uint64_t wait_ms = pl__ratelimit_take(&kube->ratelimit, now_ms);
    if (wait_ms > 0)
        return wait_ms;
    r->admitted = true;
    r->deadline_ms = now_ms + r->timeout_ms;
    if (r->deadline_ms < kube->deadline_next_ms)
        kube->deadline_next_ms = r->deadline_ms;
    return 0;
}

/* Starts what may start, in order. Returns the time after which to look again. */
static uint64_t queue_start(struct pl_kube *kube)
{
    uint64_t now_ms = pl__loop_mono_ms(kube->loop);

    while (kube->queue.first && !kube->closing) {
        struct kube_request *r = kube->queue.first;
        uint64_t wait_ms = admit(kube, r, now_ms);
        if (wait_ms > 0)
            return wait_ms;
        enum pl_kube_auth_state state = pl__kube_auth_prepare(&kube->auth);
        if (state == KUBE_AUTH_WAIT)
            return UINT64_MAX; /* auth_changed() comes */
        if (state == KUBE_AUTH_FAILED) {
            pl__kube_request_fail(r, KUBE_CREDENTIALS, "%s", kube->auth.error);
            pl__kube_request_finish(r);
            continue;
        }
        pl__kube_list_remove(r);
        pl__kube_lane_start(pl__kube_lane_pick(kube), r);
    }
    return UINT64_MAX;
}

static void deliver(struct kube_request *r)
{
    struct pl_kube_answer answer = {
        .failure = r->failure,
        .error = pl__str(r->failure == KUBE_OK ? NULL : r->error),
        .status = r->status,
        .retry_after_s = r->retry_after_s,
        .body = { r->answer ? r->answer : "", r->answer_size },
    };
    const char *content_type = NULL;

    if (r->cancelled) {
        answer.failure = KUBE_CANCELLED;
        answer.error = PL_STR("cancelled");
    }
    if (r->easy)
        curl_easy_getinfo(r->easy, CURLINFO_CONTENT_TYPE, &content_type);
    answer.content_type = pl__str(content_type);
    if (r->done)
        r->done(r->user, &answer);
    pl__kube_request_free(r);
}

/* What `done` sends or cancels is for the next turn: a caller that always tries again at once must
 * not keep the loop from everything else. */
static void finished_deliver(struct pl_kube *kube)
{
    for (uint32_t left = kube->finished.count; left > 0; left--) {
        struct kube_request *r = kube->finished.first;
        pl__kube_list_remove(r);
        deliver(r);
    }
}

static void handle_closed(uv_handle_t *handle)
{
    struct pl_kube *kube = handle->data;
    struct pl_loop *loop = kube->loop;

    if (--kube->handle_count > 0)
        return;
    pl__kube_auth_release(&kube->auth);
    curl_slist_free_all(kube->connect_to);
    curl_slist_free_all(kube->headers);
    pl__arena_release(&kube->arena);
    free(kube->counts);
    free(kube);
    pl__loop_drop(loop);
}

static void kube_free(struct pl_kube *kube)
{
    pl__multi_give_back(kube->multi);
    uv_close((uv_handle_t *)&kube->wake, handle_closed);
    uv_close((uv_handle_t *)&kube->soon, handle_closed);
}

void pl__kube_pump(struct pl_kube *kube)
{
    assert(!kube->pumping);
    kube->pumping = true;
    uv_timer_stop(&kube->wake);
    uv_idle_stop(&kube->soon);
    cancels_check(kube);
    deadlines_check(kube);
    pl__kube_lanes_feed(kube);
    uint64_t wait_ms = queue_start(kube);
    finished_deliver(kube);
    pl__kube_lanes_sweep(kube, kube->closing);
    kube->pumping = false;

    if (kube->closing && !kube->queue.count && !kube->finished.count && !kube->lanes) {
        kube_free(kube);
        return;
    }
    if (kube->finished.count || kube->closing)
        pl__kube_poke(kube);
    uint64_t now_ms = pl__loop_mono_ms(kube->loop);
    if (kube->deadline_next_ms != UINT64_MAX) {
        uint64_t left_ms = kube->deadline_next_ms > now_ms ? kube->deadline_next_ms - now_ms : 1;
        wait_ms = left_ms < wait_ms ? left_ms : wait_ms;
    }
    if (wait_ms != UINT64_MAX)
        uv_timer_start(&kube->wake, wake_fired, wait_ms, 0);
}

static void auth_changed(void *user)
{
    pl__kube_poke(user);
}

/* --- the interface -------------------------------------------------------------------------------- */

static bool header_value_safe(struct pl_str value)
{
    for (size_t i = 0; i < value.len; i++)
        if ((unsigned char)value.ptr[i] < ' ' || value.ptr[i] == 0x7f)
            return false;
    return true;
}

static int header_set(struct pl_kube *kube, const char *name, struct pl_str value,
                      struct pl_arena *arena, struct pl_error **err)
{
    if (value.len == 0)
        return 0;
    if (!header_value_safe(value))
        return pl__error(arena, err, PL_INVALID, "%s: control characters in the value", name);
    struct pl_str line = pl__str_format(&kube->arena, "%s: %.*s", name, PL_STR_ARG(value));
    kube->headers = curl_slist_append(kube->headers, line.ptr);
    if (!kube->headers)
        abort();
    return 0;
}

/* The key becomes part of a header's name: bytes that may not stand there are percent-encoded. */
static struct pl_str extra_name(struct pl_arena *arena, struct pl_str key)
{
    struct pl_buf name;

    pl__buf_init(&name, arena, 4096);
    pl__buf_add_lit(&name, "Impersonate-Extra-");
    for (size_t i = 0; i < key.len; i++) {
        unsigned char c = (unsigned char)key.ptr[i];
        if (isalnum(c) || (c && strchr("!#$&'*+-.^_`|~", c)))
            pl__buf_add_char(&name, (char)c);
        else
            pl__buf_printf(&name, "%%%02X", c);
    }
    return pl__buf_str(&name);
}

static int impersonation_set(struct pl_kube *kube, struct pl_arena *arena, struct pl_error **err)
{
    const struct pl_kube_config *c = &kube->config;

    if (header_set(kube, "Impersonate-User", c->as_user, arena, err) < 0 ||
        header_set(kube, "Impersonate-Uid", c->as_uid, arena, err) < 0)
        return -1;
    for (uint32_t i = 0; i < c->as_groups.count; i++)
        if (header_set(kube, "Impersonate-Group", c->as_groups.items[i], arena, err) < 0)
            return -1;
    for (uint32_t i = 0; i < c->as_extra.count; i++) {
        struct pl_str name = extra_name(&kube->arena, c->as_extra.items[i].key);
        if (header_set(kube, name.ptr, c->as_extra.items[i].value, arena, err) < 0)
            return -1;
    }
    return 0;
}

static char *url_part(CURLU *url, CURLUPart part, unsigned flags)
{
    char *text = NULL;

    return curl_url_get(url, part, &text, flags) == CURLUE_OK ? text : NULL;
}

static bool is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "[::1]") == 0;
}

/* As Go does it: what the kubeconfig says; else the environment, but never for this machine. A name
 * behind a socks5 proxy is the proxy's to resolve. */
static void proxy_set(struct pl_kube *kube, const char *host)
{
    struct pl_str proxy = kube->config.proxy_url;
    struct pl_str socks = PL_STR("socks5://");

    if (proxy.len && pl__str_starts_with(proxy, socks)) {
        struct pl_str rest = { proxy.ptr + socks.len, proxy.len - socks.len };
        kube->proxy = pl__str_format(&kube->arena, "socks5h://%.*s", PL_STR_ARG(rest)).ptr;
    } else if (proxy.len) {
        kube->proxy = proxy.ptr;
    } else if (is_loopback(host)) {
        kube->proxy = "";
    }
}

/* With tls-server-name, libcurl is given a URL with that name in it, so that it goes into SNI and is
 * what the certificate must be for, and is told to connect to the real host. The Host header stays
 * what the kubeconfig's URL says. */
static int server_name_set(struct pl_kube *kube, const char *host, const char *port,
                           const char *path, struct pl_arena *arena, struct pl_error **err)
{
    struct pl_str name = kube->config.tls_server_name;
    bool ip6 = name.len && memchr(name.ptr, ':', name.len);

    for (size_t i = 0; i < name.len; i++)
        if (!isalnum((unsigned char)name.ptr[i]) && !strchr(".-_:", name.ptr[i]))
            return pl__error(arena, err, PL_INVALID, "tls-server-name is not a host name");
    const char *shown = pl__str_format(&kube->arena, ip6 ? "[%s]" : "%s", name.ptr).ptr;
    struct pl_str target = pl__str_format(&kube->arena, "%s:%s:%s:%s", shown, port, host, port);
    struct pl_str authority = pl__str_format(&kube->arena, "%s:%s", host, port);
    kube->connect_to = curl_slist_append(NULL, target.ptr);
    if (!kube->connect_to)
        abort();
    kube->base_url = pl__str_format(&kube->arena, "https://%s:%s%s", shown, port, path).ptr;
    kube->peer.tls_name = name.ptr;
    return header_set(kube, "Host", authority, arena, err);
}

static int server_set(struct pl_kube *kube, CURLU *url, struct pl_arena *arena,
                      struct pl_error **err)
{
    char *scheme = NULL, *host = NULL, *port = NULL, *path = NULL;
    int result = -1;

    if (curl_url_set(url, CURLUPART_URL, kube->config.server.ptr, 0) == CURLUE_OK) {
        scheme = url_part(url, CURLUPART_SCHEME, 0);
        host = url_part(url, CURLUPART_HOST, 0);
        port = url_part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
        path = url_part(url, CURLUPART_PATH, 0);
    }
    bool known = scheme && (strcmp(scheme, "https") == 0 || strcmp(scheme, "http") == 0);
    if (!known || !host || !port || !path) {
        pl__error(arena, err, PL_INVALID, "server: not an http or https URL");
        goto out;
    }
    for (size_t len = strlen(path); len > 0 && path[len - 1] == '/'; len--)
        path[len - 1] = '\0';
    kube->https = strcmp(scheme, "https") == 0;
    kube->peer.host = pl__str_format(&kube->arena, "%s:%s", host, port).ptr;
    kube->peer.tls_name = pl__str_copy(&kube->arena, pl__str(host)).ptr;
    kube->peer.own_ca = kube->config.ca_pem.len > 0;
    kube->base_url = pl__str_format(&kube->arena, "%s://%s:%s%s", scheme, host, port, path).ptr;
    proxy_set(kube, host);
    result = 0;
    if (kube->https && kube->config.tls_server_name.len)
        result = server_name_set(kube, host, port, path, arena, err);
out:
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_free(path);
    return result;
}

static void options_set(struct pl_kube *kube, const struct pl_kube_options *options)
{
    struct pl_kube_options *o = &kube->options;

    if (options)
        *o = *options;
    if (!o->connect_timeout_ms)
        o->connect_timeout_ms = CONNECT_TIMEOUT_MS_DEFAULT;
    if (!o->silence_ms)
        o->silence_ms = SILENCE_MS_DEFAULT;
    if (!o->probe_timeout_ms)
        o->probe_timeout_ms = PROBE_TIMEOUT_MS_DEFAULT;
    if (!o->streams_max)
        o->streams_max = STREAMS_MAX_DEFAULT;
    const char *agent = o->user_agent ? o->user_agent : "plimsoll/" PL_VERSION;
    o->user_agent = pl__str_copy(&kube->arena, pl__str(agent)).ptr;
    pl__ratelimit_init(&kube->ratelimit, o->qps, o->burst, pl__loop_mono_ms(kube->loop));
}

/* Certificates are not copied here: pl__kube_auth_init() keeps them, and until then they are the
 * caller's. */
static void config_set(struct pl_kube *kube, const struct pl_kube_config *config)
{
    struct pl_kube_config rest = *config;

    rest.ca_pem = rest.client_cert_pem = rest.client_key_pem = PL_STR("");
    pl__kube_config_copy(&kube->arena, &rest, &kube->config);
    kube->config.ca_pem = config->ca_pem;
    kube->config.client_cert_pem = config->client_cert_pem;
    kube->config.client_key_pem = config->client_key_pem;
}

static int kube_setup(struct pl_kube *kube, struct pl_arena *arena, struct pl_error **err)
{
    CURLU *url = curl_url();

    if (!url)
        abort();
    int result = server_set(kube, url, arena, err);
    curl_url_cleanup(url);
    if (result < 0 || impersonation_set(kube, arena, err) < 0)
        return -1;
    return pl__kube_auth_init(&kube->auth, kube->loop, &kube->config, kube->https, kube,
                              auth_changed, arena, err);
}

int pl__kube_open(struct pl_loop *loop, const struct pl_kube_config *config,
                  const struct pl_kube_options *options, struct pl_arena *arena,
                  struct pl_kube **kube, struct pl_error **err)
{
    struct pl_kube *k = calloc(1, sizeof *k);

    if (!k)
        abort();
    k->loop = loop;
    k->multi = pl__loop_multi_take(loop);
    k->id_next = 1;
    k->deadline_next_ms = UINT64_MAX;
    pl__arena_init(&k->arena, &pl__secret_allocator, CONFIG_BYTES);
    config_set(k, config);
    options_set(k, options);
    uv_timer_init(pl__loop_uv(loop), &k->wake);
    uv_idle_init(pl__loop_uv(loop), &k->soon);
    k->wake.data = k->soon.data = k;
    k->handle_count = 2;
    pl__loop_hold(loop);
    if (kube_setup(k, arena, err) < 0) {
        kube_free(k);
        return -1;
    }
    if (k->options.exec_timeout_ms)
        k->auth.exec_timeout_ms = k->options.exec_timeout_ms;
    *kube = k;
    return 0;
}

uint64_t pl__kube_send(struct pl_kube *kube, const struct pl_kube_request *request)
{
    struct kube_request *r = pl__kube_request_new(kube, request);

    pl__kube_list_add(&kube->queue, r);
    pl__kube_poke(kube);
    return r->id;
}

static bool list_mark(struct kube_list *list, uint64_t id)
{
    for (struct kube_request *r = list->first; r; r = r->next) {
        if (r->id == id) {
            r->cancelled = true;
            return true;
        }
    }
    return false;
}

void pl__kube_cancel(struct pl_kube *kube, uint64_t id)
{
    bool found = list_mark(&kube->queue, id) || list_mark(&kube->finished, id);

    for (struct kube_lane *lane = kube->lanes; lane && !found; lane = lane->next)
        found = list_mark(&lane->open, id) || list_mark(&lane->held, id);
    if (!found)
        return;
    kube->cancels = true;
    pl__kube_poke(kube);
}

void pl__kube_close(struct pl_kube *kube)
{
    if (!kube || kube->closing)
        return;
    kube->closing = true;
    pl__kube_poke(kube);
}

const struct pl_kube_count *pl__kube_counts(const struct pl_kube *kube, size_t *count)
{
    *count = kube->count_rows;
    return kube->counts;
}

const char *pl__kube_host(const struct pl_kube *kube)
{
    return kube->peer.host;
}
