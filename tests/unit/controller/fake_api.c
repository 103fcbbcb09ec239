#include "fake_api.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/base64.h"
#include "base/time.h"

/* A request or a watch under way. */
struct fake_call {
    uint64_t id;
    uint32_t handle;
    int server;
    bool watch, etcd, dropped, executed, ended;
    char *method, *path, *body;
    uint32_t timeout_ms;
    int status, retry_after_s;
    char *answer;
    const char *error;
    struct fake_object *patched; /* whose write this is */
    /* A watch: */
    struct fake_call *next_watch;
    int resource;
    char namespace_[64];
    size_t position;  /* in the history */
    uint64_t ends_ms; /* its timeoutSeconds */
    char *out;
    size_t out_len, out_capacity;
    bool scheduled, streaming, mute;
    bool end_after; /* when all bytes are out */
    const char *end_error;
    char endpoints[512]; /* of a call to etcd: Nodes, in order */
    enum pl_etcd_call etcd_call;
    uint64_t member_id;
};

struct fake_due {
    uint64_t at, order;
    struct fake_call *call;
};

/* The rest of a list that is read in pages. */
struct fake_frozen {
    struct fake_frozen *next;
    uint64_t token, version;
    char **texts;
    size_t count;
};

/* --- small things --------------------------------------------------------------------------------- */

static char *copy_text(const char *text, size_t size)
{
    char *copy = malloc(size + 1);

    if (!copy)
        abort();
    if (size)
        memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

__attribute__((format(printf, 2, 3))) static void offence(struct fake_api *api, const char *format,
                                                          ...)
{
    va_list args;

    api->offences++;
    va_start(args, format);
    vsnprintf(api->offence, sizeof api->offence, format, args);
    va_end(args);
}

void fake_set(char **text, const char *format, ...)
{
    char room[8192];
    va_list args;

    va_start(args, format);
    int size = vsnprintf(room, sizeof room, format, args);
    va_end(args);
    if (size < 0 || (size_t)size >= sizeof room)
        abort();
    free(*text);
    *text = copy_text(room, (size_t)size);
}

/* --- the allocator that counts ------------------------------------------------------------------- */

struct header {
    size_t size;
    uint64_t magic;
};

static void *count_alloc(void *user, size_t size)
{
    struct fake_api *api = user;
    struct header *h = malloc(sizeof *h + size);

    if (!h)
        abort();
    memset(h + 1, 0xa5, size);
    *h = (struct header){ size, 0x706c696d736f6c6c };
    api->blocks++;
    api->bytes += size;
    if (api->bytes > api->bytes_max)
        api->bytes_max = api->bytes;
    return h + 1;
}

static void count_free(void *user, void *p, size_t size)
{
    struct fake_api *api = user;

    if (!p)
        return;
    struct header *h = (struct header *)p - 1;
    if (h->magic != 0x706c696d736f6c6c || h->size != size) {
        fprintf(stderr, "freed with %zu bytes what was taken with %zu\n", size, h->size);
        abort();
    }
    for (size_t i = 0; i < 2; i++) {
        if (api->secrets[i] &&
            pl__str_contains((struct pl_str){ p, size }, pl__str(api->secrets[i])))
            offence(api, "%zu bytes with \"%s\" in them are given back", size, api->secrets[i]);
    }
    h->magic = 0;
    api->blocks--;
    api->bytes -= size;
    free(h);
}

/* --- when what happens ---------------------------------------------------------------------------- */

static bool before(const struct fake_due *a, const struct fake_due *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void schedule(struct fake_api *api, struct fake_call *call, uint64_t at)
{
    if (api->heap_count == api->heap_capacity) {
        api->heap_capacity = api->heap_capacity ? 2 * api->heap_capacity : 256;
        api->heap = realloc(api->heap, api->heap_capacity * sizeof *api->heap);
        if (!api->heap)
            abort();
    }
    uint64_t order = ++api->sequence;
    if (api->options.shuffled)
        order = prng_next(&api->random);
    struct fake_due due = { at, order, call };
    size_t i = api->heap_count++;
    while (i > 0 && before(&due, &api->heap[(i - 1) / 2])) {
        api->heap[i] = api->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    api->heap[i] = due;
}

static struct fake_due unschedule(struct fake_api *api)
{
    struct fake_due first = api->heap[0], last = api->heap[--api->heap_count];
    size_t i = 0;

    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= api->heap_count)
            break;
        if (child + 1 < api->heap_count && before(&api->heap[child + 1], &api->heap[child]))
            child++;
        if (!before(&api->heap[child], &last))
            break;
        api->heap[i] = api->heap[child];
        i = child;
    }
    api->heap[i] = last;
    return first;
}

static uint64_t latency(struct fake_api *api)
{
    if (!api->options.shuffled)
        return api->options.latency_ms;
    return prng_below(&api->random, api->options.latency_ms + 1);
}

static void watch_schedule(struct fake_api *api, struct fake_call *call)
{
    if (call->scheduled || call->ended || !call->executed || (call->mute && !call->dropped))
        return;
    call->scheduled = true;
    schedule(api, call, api->now.mono_ms + latency(api));
}

/* --- objects as text ------------------------------------------------------------------------------- */

static const char *api_version(int resource, bool v1beta1)
{
    const struct pl_resource *r = &pl__resources[resource];
    static char text[128];

    if (!r->group[0])
        return "v1";
    snprintf(text, sizeof text, "%s/%s", r->group, v1beta1 ? r->fallback : r->version);
    return text;
}

static void time_text(int64_t ms, char text[40])
{
    char room[256];
    struct pl_arena arena;
    struct pl_buf b;

    pl__arena_init(&arena, NULL, 256);
    pl__buf_init(&b, &arena, 64);
    pl__time_add(&b, ms);
    snprintf(room, sizeof room, "%.*s", PL_STR_ARG(pl__buf_str(&b)));
    memcpy(text, room, 40);
    pl__arena_release(&arena);
}

static void conditions_render(struct pl_buf *b, const struct fake_object *o)
{
    char since[40];
    struct pl_json_writer w;

    pl__buf_add_lit(b, "\"conditions\":");
    pl__json_writer_init(&w, b, JSON_COMPACT);
    pl__json_open_array(&w);
    for (int i = 0; i < o->condition_count; i++) {
        const struct fake_condition *c = &o->conditions[i];
        pl__json_open_object(&w);
        pl__json_write_key(&w, "type");
        pl__json_write_str(&w, pl__str(c->type));
        pl__json_write_key(&w, "status");
        pl__json_write_str(&w, pl__str(c->status));
        pl__json_write_key(&w, "reason");
        pl__json_write_str(&w, pl__str(c->reason));
        pl__json_write_key(&w, "message");
        pl__json_write_str(&w, pl__str(c->message));
        time_text(c->since_ms, since);
        pl__json_write_key(&w, "lastTransitionTime");
        pl__json_write_str(&w, pl__str(since));
        if (c->generation) {
            pl__json_write_key(&w, "observedGeneration");
            pl__json_write_int(&w, c->generation);
        }
        pl__json_close_object(&w);
    }
    pl__json_close_array(&w);
}

static void render(struct fake_api *api, struct pl_buf *b, const struct fake_object *o,
                   bool with_kind)
{
    const struct pl_resource *r = &pl__resources[o->resource];
    bool v1beta1 = api->servers[o->server].v1beta1 && r->group[0];
    char created[40], deleted[40];

    pl__buf_add_char(b, '{');
    if (with_kind)
        pl__buf_printf(b, "\"apiVersion\":\"%s\",\"kind\":\"%s\",",
                       api_version(o->resource, v1beta1), r->kind);
    time_text(o->created_ms, created);
    pl__buf_printf(b, "\"metadata\":{\"name\":\"%s\",", o->name);
    if (!r->cluster_scoped)
        pl__buf_printf(b, "\"namespace\":\"%s\",", o->namespace_);
    pl__buf_printf(
        b, "\"uid\":\"%s\",\"resourceVersion\":\"%" PRIu64 "\",\"creationTimestamp\":\"%s\"",
        o->uid, o->version, created);
    if (o->generation)
        pl__buf_printf(b, ",\"generation\":%" PRId64, o->generation);
    if (o->deleted_ms) {
        time_text(o->deleted_ms, deleted);
        pl__buf_printf(b, ",\"deletionTimestamp\":\"%s\"", deleted);
    }
    if (o->labels)
        pl__buf_printf(b, ",\"labels\":{%s}", o->labels);
    if (o->annotations)
        pl__buf_printf(b, ",\"annotations\":{%s}", o->annotations);
    if (o->owners)
        pl__buf_printf(b, ",\"ownerReferences\":[%s]", o->owners);
    if (o->finalizers)
        pl__buf_printf(b, ",\"finalizers\":[%s]", o->finalizers);
    pl__buf_add_lit(b, ",\"managedFields\":[{\"manager\":\"x\",\"fieldsV1\":{\"f:a\":{}}}]}");
    if (o->data)
        pl__buf_printf(b, ",\"data\":{%s}", o->data);
    if (o->spec)
        pl__buf_printf(b, ",\"spec\":{%s}", o->spec);
    if (o->status || o->condition_count) {
        pl__buf_add_lit(b, ",\"status\":{");
        if (o->status)
            pl__buf_printf(b, "%s", o->status);
        if (o->condition_count) {
            if (o->status && o->status[0])
                pl__buf_add_char(b, ',');
            if (v1beta1)
                pl__buf_add_lit(b, "\"v1beta2\":{");
            conditions_render(b, o);
            if (v1beta1)
                pl__buf_add_char(b, '}');
        }
        pl__buf_add_char(b, '}');
    }
    pl__buf_add_char(b, '}');
}

static char *rendered(struct fake_api *api, const struct fake_object *o, bool with_kind)
{
    struct pl_arena arena;
    struct pl_buf b;

    pl__arena_init(&arena, NULL, 4096);
    pl__buf_init(&b, &arena, SIZE_MAX);
    render(api, &b, o, with_kind);
    char *text = copy_text(pl__buf_str(&b).ptr, b.len);
    pl__arena_release(&arena);
    return text;
}

static bool is_selected(const struct fake_object *o)
{
    static const char *const keys[RESOURCE_COUNT] = {
        [RESOURCE_SECRETS] = "cluster.x-k8s.io/cluster-name",
        [RESOURCE_NODES] = "node-role.kubernetes.io/control-plane",
        [RESOURCE_PODS] = "\"tier\":\"control-plane\"",
    };
    return !keys[o->resource] || (o->labels && strstr(o->labels, keys[o->resource]));
}

/* --- storage --------------------------------------------------------------------------------------- */

static size_t bucket_of(const struct fake_server *s, int resource, const char *namespace_,
                        const char *name)
{
    uint64_t h = pl__hash(pl__str(namespace_), pl__str(name)) * 31 + (uint64_t)resource;
    return (size_t)(h & (s->bucket_count - 1));
}

struct fake_object *fake_find(struct fake_api *api, int server, int resource,
                              const char *namespace_, const char *name)
{
    struct fake_server *s = &api->servers[server];

    if (!s->bucket_count)
        return NULL;
    for (struct fake_object *o = s->buckets[bucket_of(s, resource, namespace_, name)]; o;
         o = o->next_in_bucket) {
        if (o->resource == resource && strcmp(o->name, name) == 0 &&
            strcmp(o->namespace_, namespace_) == 0)
            return o;
    }
    return NULL;
}

static void server_grow(struct fake_server *s)
{
    size_t count = s->bucket_count ? 4 * s->bucket_count : 64;

    free(s->buckets);
    s->buckets = calloc(count, sizeof(struct fake_object *));
    if (!s->buckets)
        abort();
    s->bucket_count = count;
    for (struct fake_object *o = s->first; o; o = o->next) {
        size_t at = bucket_of(s, o->resource, o->namespace_, o->name);
        o->next_in_bucket = s->buckets[at];
        s->buckets[at] = o;
    }
}

struct fake_object *fake_make(struct fake_api *api, int server, int resource,
                              const char *namespace_, const char *name)
{
    struct fake_server *s = &api->servers[server];
    struct fake_object *o = calloc(1, sizeof *o);

    if (!o || fake_find(api, server, resource, namespace_, name))
        abort();
    o->server = server;
    o->resource = resource;
    snprintf(o->namespace_, sizeof o->namespace_, "%s", namespace_);
    snprintf(o->name, sizeof o->name, "%s", name);
    snprintf(o->uid, sizeof o->uid, "uid-%d-%" PRIu64, server, ++api->sequence);
    o->created_ms = api->now.wall_ms - 3600 * 1000;
    o->generation = pl__resources[resource].group[0] ? 1 : 0;
    o->next = s->first;
    if (s->first)
        s->first->previous = o;
    s->first = o;
    if (++s->object_count > s->bucket_count) {
        server_grow(s);
    } else {
        size_t at = bucket_of(s, resource, o->namespace_, o->name);
        o->next_in_bucket = s->buckets[at];
        s->buckets[at] = o;
    }
    return o;
}

static void object_free(struct fake_object *o)
{
    for (int i = 0; i < o->condition_count; i++)
        free(o->conditions[i].message);
    free(o->labels);
    free(o->annotations);
    free(o->owners);
    free(o->finalizers);
    free(o->spec);
    free(o->status);
    free(o->data);
    free(o->last_patch);
    free(o);
}

static void history_add(struct fake_api *api, struct fake_object *o, const char *type)
{
    struct fake_server *s = &api->servers[o->server];

    if (s->history_count == s->history_capacity) {
        s->history_capacity = s->history_capacity ? 2 * s->history_capacity : 64;
        s->history = realloc(s->history, s->history_capacity * sizeof *s->history);
        if (!s->history)
            abort();
    }
    struct fake_event *e = &s->history[s->history_count++];
    *e = (struct fake_event){ o->version, o->resource, "", type, rendered(api, o, true) };
    memcpy(e->namespace_, o->namespace_, sizeof e->namespace_);
    for (struct fake_call *w = s->watches; w; w = w->next_watch) {
        if (w->resource == o->resource)
            watch_schedule(api, w);
    }
}

void fake_put(struct fake_api *api, struct fake_object *o)
{
    bool is_new = o->version == 0, selected = is_selected(o);

    o->version = ++api->servers[o->server].version;
    if (selected)
        history_add(api, o, is_new || !o->was_selected ? "ADDED" : "MODIFIED");
    else if (o->was_selected)
        history_add(api, o, "DELETED");
    o->was_selected = selected;
}

void fake_delete(struct fake_api *api, struct fake_object *o)
{
    struct fake_server *s = &api->servers[o->server];
    struct fake_object **at = &s->buckets[bucket_of(s, o->resource, o->namespace_, o->name)];

    while (*at != o)
        at = &(*at)->next_in_bucket;
    *at = o->next_in_bucket;
    if (o->next)
        o->next->previous = o->previous;
    if (o->previous)
        o->previous->next = o->next;
    else
        s->first = o->next;
    s->object_count--;
    o->version = ++s->version;
    if (o->was_selected)
        history_add(api, o, "DELETED");
    for (size_t i = 0; i < api->call_count; i++) {
        if (api->calls[i] && api->calls[i]->patched == o)
            api->calls[i]->patched = NULL;
    }
    object_free(o);
}

struct fake_condition *fake_condition(struct fake_object *o, const char *type)
{
    for (int i = 0; o && i < o->condition_count; i++) {
        if (strcmp(o->conditions[i].type, type) == 0)
            return &o->conditions[i];
    }
    return NULL;
}

static struct fake_condition *condition_make(struct fake_object *o, const char *type)
{
    struct fake_condition *c = fake_condition(o, type);

    if (!c) {
        if (o->condition_count == FAKE_CONDITIONS_MAX)
            abort();
        c = &o->conditions[o->condition_count++];
        memset(c, 0, sizeof *c);
        snprintf(c->type, sizeof c->type, "%s", type);
    }
    return c;
}

void fake_condition_set(struct fake_api *api, struct fake_object *o, const char *type,
                        const char *status, const char *reason, const char *message)
{
    struct fake_condition *c = condition_make(o, type);

    if (strcmp(c->status, status) != 0)
        c->since_ms = api->now.wall_ms - api->now.wall_ms % 1000;
    snprintf(c->status, sizeof c->status, "%s", status);
    snprintf(c->reason, sizeof c->reason, "%s", reason);
    free(c->message);
    c->message = copy_text(message, strlen(message));
    c->generation = o->generation;
}

const char *fake_said(struct fake_object *o, const char *type)
{
    static char text[4][1024];
    static int at;
    struct fake_condition *c = fake_condition(o, type);
    char *to = text[at = (at + 1) % 4];

    if (!c)
        return "-";
    snprintf(to, sizeof text[0], "%s %s%s%s", c->status, c->reason, c->message[0] ? " " : "",
             c->message);
    return to;
}

/* --- objects in a word ----------------------------------------------------------------------------- */

struct fake_object *fake_cluster(struct fake_api *api, const char *name)
{
    struct fake_object *o = fake_make(api, 0, RESOURCE_CLUSTERS, "default", name);

    fake_set(&o->spec, "\"controlPlaneEndpoint\":{\"host\":\"10.0.0.1\",\"port\":6443}");
    fake_set(
        &o->status,
        "\"initialization\":{\"infrastructureProvisioned\":true},\"infrastructureReady\":true");
    fake_put(api, o);
    return o;
}

struct fake_object *fake_kcp(struct fake_api *api, const char *name, const char *cluster, int flags)
{
    struct fake_object *o = fake_make(api, 0, RESOURCE_KCPS, "default", name);
    struct fake_object *owner = fake_find(api, 0, RESOURCE_CLUSTERS, "default", cluster);
    const char *yes = flags & FAKE_NOT_INITIALIZED ? "false" : "true";

    fake_set(&o->labels, "\"cluster.x-k8s.io/cluster-name\":\"%s\"", cluster);
    if (owner)
        fake_set(&o->owners, "{\"kind\":\"Cluster\",\"name\":\"%s\",\"uid\":\"%s\"}", cluster,
                 owner->uid);
    if (flags & FAKE_EXTERNAL_ETCD)
        fake_set(
            &o->spec,
            "\"version\":\"v1.34.0\",\"kubeadmConfigSpec\":{\"clusterConfiguration\":{\"etcd\":"
            "{\"external\":{\"endpoints\":[\"https://10.0.0.9:2379\"]}}}}");
    else
        fake_set(&o->spec, "\"version\":\"v1.34.0\"");
    fake_set(&o->status, "\"initialization\":{\"controlPlaneInitialized\":%s},\"initialized\":%s",
             yes, yes);
    if (!(flags & FAKE_NOT_INITIALIZED)) {
        fake_condition_set(api, o, "Initialized", "True", "Initialized", "");
        fake_condition(o, "Initialized")->since_ms -= 3000 * 1000;
    }
    fake_put(api, o);
    return o;
}

struct fake_object *fake_machine(struct fake_api *api, const char *name, const char *cluster,
                                 const char *kcp, const char *node)
{
    struct fake_object *o = fake_make(api, 0, RESOURCE_MACHINES, "default", name);
    struct fake_object *owner = fake_find(api, 0, RESOURCE_KCPS, "default", kcp);

    fake_set(&o->labels,
             "\"cluster.x-k8s.io/cluster-name\":\"%s\",\"cluster.x-k8s.io/control-plane\":\"\"",
             cluster);
    if (owner)
        fake_set(
            &o->owners,
            "{\"kind\":\"KubeadmControlPlane\",\"name\":\"%s\",\"uid\":\"%s\",\"controller\":true}",
            kcp, owner->uid);
    fake_set(&o->spec, "\"clusterName\":\"%s\",\"providerID\":\"x://%s\"", cluster, name);
    if (node)
        fake_set(&o->status, "\"nodeRef\":{\"name\":\"%s\"}", node);
    fake_put(api, o);
    return o;
}

struct fake_object *fake_worker(struct fake_api *api, const char *name, const char *cluster,
                                const char *set, const char *deployment)
{
    struct fake_object *md = fake_find(api, 0, RESOURCE_MACHINE_DEPLOYMENTS, "default", deployment);
    struct fake_object *ms = fake_find(api, 0, RESOURCE_MACHINE_SETS, "default", set);

    if (!md) {
        md = fake_make(api, 0, RESOURCE_MACHINE_DEPLOYMENTS, "default", deployment);
        fake_set(&md->labels, "\"cluster.x-k8s.io/cluster-name\":\"%s\"", cluster);
        fake_set(&md->spec, "\"clusterName\":\"%s\"", cluster);
        fake_put(api, md);
    }
    if (!ms) {
        ms = fake_make(api, 0, RESOURCE_MACHINE_SETS, "default", set);
        fake_set(&ms->labels, "\"cluster.x-k8s.io/cluster-name\":\"%s\"", cluster);
        fake_set(
            &ms->owners,
            "{\"kind\":\"MachineDeployment\",\"name\":\"%s\",\"uid\":\"%s\",\"controller\":true}",
            deployment, md->uid);
        fake_put(api, ms);
    }
    struct fake_object *o = fake_make(api, 0, RESOURCE_MACHINES, "default", name);
    fake_set(&o->labels,
             "\"cluster.x-k8s.io/cluster-name\":\"%s\",\"cluster.x-k8s.io/deployment-name\":\"%s\"",
             cluster, deployment);
    fake_set(&o->owners,
             "{\"kind\":\"MachineSet\",\"name\":\"%s\",\"uid\":\"%s\",\"controller\":true}", set,
             ms->uid);
    fake_set(&o->spec, "\"clusterName\":\"%s\"", cluster);
    fake_put(api, o);
    return o;
}

struct fake_object *fake_secret(struct fake_api *api, const char *cluster, const char *kubeconfig)
{
    char name[96];

    snprintf(name, sizeof name, "%s-kubeconfig", cluster);
    struct fake_object *o = fake_find(api, 0, RESOURCE_SECRETS, "default", name);
    if (!o)
        o = fake_make(api, 0, RESOURCE_SECRETS, "default", name);
    pl__arena_reset(&api->arena);
    fake_set(&o->labels, "\"cluster.x-k8s.io/cluster-name\":\"%s\"", cluster);
    fake_set(&o->data, "\"value\":\"%s\"",
             kubeconfig[0] == '!' ? kubeconfig
                                  : pl__base64_encode(&api->arena, pl__str(kubeconfig)).ptr);
    fake_put(api, o);
    return o;
}

struct fake_object *fake_etcd_secret(struct fake_api *api, const char *cluster, const char *key)
{
    char name[96];

    snprintf(name, sizeof name, "%s-etcd", cluster);
    struct fake_object *o = fake_find(api, 0, RESOURCE_SECRETS, "default", name);
    if (!o)
        o = fake_make(api, 0, RESOURCE_SECRETS, "default", name);
    pl__arena_reset(&api->arena);
    fake_set(&o->labels, "\"cluster.x-k8s.io/cluster-name\":\"%s\"", cluster);
    fake_set(&o->data, "\"tls.crt\":\"%s\"%s%s%s",
             pl__base64_encode(&api->arena, PL_STR("certificates")).ptr,
             key ? ",\"tls.key\":\"" : "",
             key ? pl__base64_encode(&api->arena, pl__str(key)).ptr : "", key ? "\"" : "");
    fake_put(api, o);
    return o;
}

struct fake_object *fake_node(struct fake_api *api, int server, const char *name)
{
    struct fake_object *o = fake_make(api, server, RESOURCE_NODES, "", name);

    fake_set(&o->labels, "\"node-role.kubernetes.io/control-plane\":\"\"");
    fake_set(&o->status,
             "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"KubeletReady\","
             "\"message\":\"\",\"lastTransitionTime\":\"2026-11-01T00:00:00Z\"}],"
             "\"addresses\":[{\"type\":\"Hostname\",\"address\":\"%s\"},"
             "{\"type\":\"InternalIP\",\"address\":\"10.0.0.%s\"},"
             "{\"type\":\"InternalIP\",\"address\":\"fd00::1\"}]",
             name, name + 1);
    fake_put(api, o);
    return o;
}

struct fake_object *fake_pod(struct fake_api *api, int server, const char *component,
                             const char *node, const char *phase)
{
    char name[96];
    bool crash = strcmp(phase, "Crash") == 0, running = strcmp(phase, "Running") == 0;

    snprintf(name, sizeof name, "%s-%s", component, node);
    struct fake_object *o = fake_find(api, server, RESOURCE_PODS, "kube-system", name);
    if (!o)
        o = fake_make(api, server, RESOURCE_PODS, "kube-system", name);
    fake_set(&o->labels, "\"component\":\"%s\",\"tier\":\"control-plane\"", component);
    fake_set(
        &o->status,
        "\"phase\":\"%s\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\"},"
        "{\"type\":\"Initialized\",\"status\":\"True\"},{\"type\":\"Ready\",\"status\":\"%s\"}]%s",
        crash ? "Running" : phase, running ? "True" : "False",
        crash
            ? ",\"containerStatuses\":[{\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}},"
              "\"lastState\":{\"terminated\":{\"exitCode\":1}}}]"
            : "");
    fake_put(api, o);
    return o;
}

static const char *const components[] = { "kube-apiserver", "kube-controller-manager",
                                          "kube-scheduler", "etcd" };

void fake_healthy(struct fake_api *api, const char *name, int server, int machines, int flags)
{
    char kcp[96], machine[96], node[64], kubeconfig[64];

    fake_cluster(api, name);
    snprintf(kcp, sizeof kcp, "%s-cp", name);
    fake_kcp(api, kcp, name, flags);
    for (int i = 0; i < machines; i++) {
        snprintf(machine, sizeof machine, "%s-m%d", name, i);
        snprintf(node, sizeof node, "n%d", i);
        fake_machine(api, machine, name, kcp, node);
        fake_node(api, server, node);
        for (int k = 0; k < (flags & FAKE_EXTERNAL_ETCD ? 3 : 4); k++)
            fake_pod(api, server, components[k], node, "Running");
    }
    if (flags & FAKE_WORKERS) {
        char ms[96], md[96];
        snprintf(ms, sizeof ms, "%s-ms", name);
        snprintf(md, sizeof md, "%s-md", name);
        snprintf(machine, sizeof machine, "%s-w0", name);
        fake_worker(api, machine, name, ms, md);
    }
    snprintf(kubeconfig, sizeof kubeconfig, "fake:%d", server);
    if (!(flags & FAKE_NO_SECRET))
        fake_secret(api, name, kubeconfig);
    if (!(flags & FAKE_EXTERNAL_ETCD))
        fake_etcd_secret(api, name, "key of the CA");
}

/* --- answering ------------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void answer_set(struct fake_call *call, int status,
                                                             const char *format, ...)
{
    char room[4096];
    va_list args;

    va_start(args, format);
    vsnprintf(room, sizeof room, format, args);
    va_end(args);
    call->status = status;
    free(call->answer);
    call->answer = copy_text(room, strlen(room));
}

static void answer_status(struct fake_call *call, int status, const char *reason,
                          const char *message)
{
    answer_set(call, status,
               "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
               "\"message\":\"%s\",\"reason\":\"%s\",\"code\":%d}",
               message, reason, status);
}

struct route {
    int resource; /* -1: none of ours */
    bool v1beta1, status;
    char namespace_[64], name[96];
};

static bool query(const char *path, const char *key, char *value, size_t size)
{
    const char *at = strchr(path, '?');
    size_t length = strlen(key);

    while (at) {
        at++;
        if (strncmp(at, key, length) == 0 && at[length] == '=') {
            size_t n = strcspn(at + length + 1, "&");
            snprintf(value, size, "%.*s", (int)n, at + length + 1);
            return true;
        }
        at = strchr(at, '&');
    }
    value[0] = '\0';
    return false;
}

static struct route route_of(const char *path)
{
    struct route r = { .resource = -1 };
    char text[512], *parts[16], *save = NULL;
    int count = 0, at;

    snprintf(text, sizeof text, "%.*s", (int)strcspn(path, "?"), path);
    for (char *p = strtok_r(text, "/", &save); p && count < 16; p = strtok_r(NULL, "/", &save))
        parts[count++] = p;
    if (count < 3)
        return r;
    bool core = strcmp(parts[0], "api") == 0;
    const char *group = core ? "" : parts[1], *version = parts[core ? 1 : 2];
    at = core ? 2 : 3;
    if (at + 1 < count && strcmp(parts[at], "namespaces") == 0) {
        snprintf(r.namespace_, sizeof r.namespace_, "%s", parts[at + 1]);
        at += 2;
    }
    for (int i = 0; at < count && i < RESOURCE_COUNT; i++) {
        if (strcmp(pl__resources[i].plural, parts[at]) == 0 &&
            strcmp(pl__resources[i].group, group) == 0)
            r.resource = i;
    }
    if (at + 1 < count)
        snprintf(r.name, sizeof r.name, "%s", parts[at + 1]);
    r.status = at + 2 < count && strcmp(parts[at + 2], "status") == 0;
    r.v1beta1 = strcmp(version, "v1beta1") == 0;
    return r;
}

static int by_name(const void *a, const void *b)
{
    const struct fake_object *x = *(struct fake_object *const *)a,
                             *y = *(struct fake_object *const *)b;
    int order = strcmp(x->namespace_, y->namespace_);

    return order ? order : strcmp(x->name, y->name);
}

/* All that a list or a watch would show, sorted. */
static struct fake_object **all_of(struct fake_api *api, int server, const struct route *r,
                                   size_t *count)
{
    struct fake_server *s = &api->servers[server];
    struct fake_object **all = calloc(s->object_count + 1, sizeof(struct fake_object *));

    *count = 0;
    for (struct fake_object *o = s->first; o; o = o->next) {
        if (o->resource == r->resource && is_selected(o) &&
            (!r->namespace_[0] || strcmp(r->namespace_, o->namespace_) == 0))
            all[(*count)++] = o;
    }
    qsort(all, *count, sizeof(struct fake_object *), by_name);
    return all;
}

static void list_serve(struct fake_api *api, struct fake_call *call, const struct route *r)
{
    struct fake_server *s = &api->servers[call->server];
    char limit_text[32], token_text[64];
    size_t limit, count = 0, from = 0;
    uint64_t version = s->version, token = 0;
    char **texts = NULL;
    struct fake_frozen *frozen = NULL;
    bool core = !pl__resources[r->resource].group[0];

    query(call->path, "limit", limit_text, sizeof limit_text);
    limit = limit_text[0] ? (size_t)strtoul(limit_text, NULL, 10) : SIZE_MAX;
    if (api->page_size)
        limit = (size_t)api->page_size;
    api->pages++;
    if (query(call->path, "continue", token_text, sizeof token_text)) {
        uint64_t wanted = strtoull(token_text + 4, NULL, 10);
        struct fake_frozen **at = &api->frozen;
        while (*at && (*at)->token != wanted)
            at = &(*at)->next;
        if (!*at || (*at)->version < s->compacted) {
            answer_status(call, 410, "Expired", "The provided continue parameter is too old");
            return;
        }
        frozen = *at;
        *at = frozen->next;
        texts = frozen->texts;
        count = frozen->count;
        version = frozen->version;
    } else {
        struct fake_object **all = all_of(api, call->server, r, &count);
        api->lists++;
        texts = calloc(count + 1, sizeof(char *));
        for (size_t i = 0; i < count; i++)
            texts[i] = rendered(api, all[i], !core);
        free(all);
    }
    if (count > limit) {
        struct fake_frozen *rest = calloc(1, sizeof *rest);
        rest->token = token = ++api->sequence;
        rest->version = version;
        rest->count = count - limit;
        rest->texts = calloc(rest->count, sizeof(char *));
        memcpy(rest->texts, texts + limit, rest->count * sizeof(char *));
        rest->next = api->frozen;
        api->frozen = rest;
        count = limit;
    }
    struct pl_arena arena;
    struct pl_buf b;
    pl__arena_init(&arena, NULL, 0);
    pl__buf_init(&b, &arena, SIZE_MAX);
    pl__buf_printf(
        &b,
        "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"%" PRIu64
        "\"",
        pl__resources[r->resource].kind, api_version(r->resource, s->v1beta1), version);
    if (token)
        pl__buf_printf(&b, ",\"continue\":\"tok-%" PRIu64 "\"", token);
    pl__buf_add_lit(&b, "},\"items\":[");
    for (size_t i = from; i < count; i++) {
        pl__buf_printf(&b, "%s%s", i ? "," : "", texts[i]);
        free(texts[i]);
    }
    pl__buf_add_lit(&b, "]}\n");
    free(texts);
    free(frozen);
    call->status = 200;
    call->answer = copy_text(pl__buf_str(&b).ptr, b.len);
    pl__arena_release(&arena);
}

static void get_serve(struct fake_api *api, struct fake_call *call, const struct route *r)
{
    const struct fake_object *o = fake_find(api, call->server, r->resource, r->namespace_, r->name);

    if (!o) {
        answer_status(call, 404, "NotFound", "not found");
        return;
    }
    call->status = 200;
    call->answer = rendered(api, o, true);
}

static void out_add(struct fake_call *call, const char *text, size_t size)
{
    if (call->out_len + size + 1 > call->out_capacity) {
        call->out_capacity = 2 * (call->out_len + size + 1);
        call->out = realloc(call->out, call->out_capacity);
        if (!call->out)
            abort();
    }
    memcpy(call->out + call->out_len, text, size);
    call->out_len += size;
}

static void out_line(struct fake_call *call, const char *type, const char *object)
{
    char head[64];

    out_add(call, head, (size_t)snprintf(head, sizeof head, "{\"type\":\"%s\",\"object\":", type));
    out_add(call, object, strlen(object));
    out_add(call, "}\n", 2);
}

static const char gone_status[] =
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
    "\"message\":\"too old resource version\",\"reason\":\"Expired\",\"code\":410}";

static void bookmark(struct fake_api *api, struct fake_call *call, bool initial)
{
    char text[256];

    snprintf(text, sizeof text,
             "{\"kind\":\"%s\",\"metadata\":{\"resourceVersion\":\"%" PRIu64
             "\",\"creationTimestamp\":null%s}}",
             pl__resources[call->resource].kind, api->servers[call->server].version,
             initial ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" : "");
    out_line(call, "BOOKMARK", text);
}

static void watch_serve(struct fake_api *api, struct fake_call *call, const struct route *r)
{
    struct fake_server *s = &api->servers[call->server];
    char text[64];

    api->watches++;
    call->resource = r->resource;
    memcpy(call->namespace_, r->namespace_, sizeof call->namespace_);
    if (query(call->path, "sendInitialEvents", text, sizeof text)) {
        size_t count;
        if (s->without_watchlist) {
            answer_status(call, 422, "Invalid", "sendInitialEvents: Forbidden: not supported");
            return;
        }
        struct fake_object **all = all_of(api, call->server, r, &count);
        for (size_t i = 0; i < count; i++) {
            char *object = rendered(api, all[i], true);
            out_line(call, "ADDED", object);
            free(object);
        }
        free(all);
        call->position = s->history_count;
        if (!s->without_end_mark)
            bookmark(api, call, true);
    } else {
        query(call->path, "resourceVersion", text, sizeof text);
        uint64_t from = strtoull(text, NULL, 10);
        if (!from) {
            offence(api, "watch without a version: %s", call->path);
        } else if (from > s->version) {
            answer_status(call, 504, "Timeout", "Too large resource version");
            return;
        } else if (from < s->compacted) {
            if (s->gone_by_status) {
                answer_status(call, 410, "Expired", "too old resource version");
                return;
            }
            out_line(call, "ERROR", gone_status);
            call->end_after = true;
        }
        call->position = 0;
        size_t low = 0, high = s->history_count;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (s->history[middle].version <= from)
                low = middle + 1;
            else
                high = middle;
        }
        call->position = low;
    }
    query(call->path, "timeoutSeconds", text, sizeof text);
    call->ends_ms = api->now.mono_ms + strtoull(text, NULL, 10) * 1000;
    schedule(api, call, call->ends_ms);
    call->streaming = true;
    call->next_watch = s->watches;
    s->watches = call;
}

/* --- apply ----------------------------------------------------------------------------------------- */

struct applied {
    struct pl_str type, status, reason, message;
    int64_t since_ms, generation;
    bool has_message;
};

static const struct pl_field applied_fields[] = {
    PL_FIELD("type", F_STR, struct applied, type),
    PL_FIELD("status", F_STR, struct applied, status),
    PL_FIELD("reason", F_STR, struct applied, reason),
    PL_FIELD("message", F_STR, struct applied, message),
    PL_FIELD("lastTransitionTime", F_TIME, struct applied, since_ms),
    PL_FIELD("observedGeneration", F_INT, struct applied, generation),
};
static PL_SHAPE(applied_shape, struct applied, applied_fields);

struct apply {
    struct pl_str version, kind, name, resource_version;
    PL_LIST(struct applied) conditions;
};

static const struct pl_field apply_fields[] = {
    PL_FIELD("apiVersion", F_STR, struct apply, version),
    PL_FIELD("kind", F_STR, struct apply, kind),
    PL_FIELD("metadata.name", F_STR, struct apply, name),
    PL_FIELD("metadata.resourceVersion", F_STR, struct apply, resource_version),
    PL_FIELD_SHAPE("status.conditions", F_LIST, struct apply, conditions, &applied_shape),
};
static PL_SHAPE(apply_shape, struct apply, apply_fields);

static const struct applied *applied_find(const struct apply *a, const char *type)
{
    for (uint32_t i = 0; i < a->conditions.count; i++) {
        if (pl__str_equal(a->conditions.items[i].type, pl__str(type)))
            return &a->conditions.items[i];
    }
    return NULL;
}

static bool reason_ok(struct pl_str reason)
{
    for (size_t i = 0; i < reason.len; i++) {
        char ch = reason.ptr[i];
        bool letter = (ch >= 'A' && ch <= 'Z') || (ch >= 'a' && ch <= 'z');
        if (!letter && (i == 0 || !((ch >= '0' && ch <= '9') || strchr("_,:", ch))))
            return false;
    }
    return reason.len > 0;
}

static bool apply_merge(struct fake_object *o, const struct apply *a)
{
    bool changed = false;

    for (int i = 0; i < o->condition_count;) {
        if (!o->conditions[i].ours || applied_find(a, o->conditions[i].type)) {
            i++;
            continue;
        }
        free(o->conditions[i].message);
        memmove(&o->conditions[i], &o->conditions[i + 1],
                (size_t)(o->condition_count - i - 1) * sizeof o->conditions[0]);
        o->condition_count--;
        changed = true;
    }
    for (uint32_t i = 0; i < a->conditions.count; i++) {
        const struct applied *from = &a->conditions.items[i];
        struct fake_condition *c = condition_make(o, from->type.ptr);
        bool same = c->message && pl__str_equal(from->status, pl__str(c->status)) &&
                    pl__str_equal(from->reason, pl__str(c->reason)) &&
                    pl__str_equal(from->message, pl__str(c->message)) &&
                    from->since_ms == c->since_ms && from->generation == c->generation;
        c->ours = true;
        if (same)
            continue;
        snprintf(c->status, sizeof c->status, "%s", from->status.ptr);
        snprintf(c->reason, sizeof c->reason, "%s", from->reason.ptr);
        free(c->message);
        c->message = copy_text(from->message.ptr, from->message.len);
        c->since_ms = from->since_ms;
        c->generation = from->generation;
        changed = true;
    }
    return changed;
}

static void apply_serve(struct fake_api *api, struct fake_call *call, const struct route *r)
{
    struct fake_object *o = fake_find(api, 0, r->resource, r->namespace_, r->name);
    struct apply a = { 0 };
    struct pl_error *error = NULL;
    struct pl_json j;
    char manager[64], force[16];

    query(call->path, "fieldManager", manager, sizeof manager);
    query(call->path, "force", force, sizeof force);
    pl__arena_reset(&api->arena);
    pl__json_init(&j, pl__str(call->body), PL_STR("apply"), &api->arena, 0, &error);
    if (pl__json_decode(&j, &apply_shape, &a) < 0 || strcmp(manager, "plimsoll") != 0 ||
        strcmp(force, "true") != 0 || !r->status || !pl__str_equal(a.name, pl__str(r->name)) ||
        !pl__str_equal(a.kind, pl__str(pl__resources[r->resource].kind)) ||
        !pl__str_equal(a.version, pl__str(api_version(r->resource, false)))) {
        offence(api, "bad apply %s: %.300s", call->path, call->body);
        answer_status(call, 400, "BadRequest", "bad apply");
        return;
    }
    for (uint32_t i = 0; i < a.conditions.count; i++) {
        const struct applied *c = &a.conditions.items[i];
        if (!reason_ok(c->reason) || !c->since_ms || c->message.len > 32768 || c->since_ms % 1000) {
            offence(api, "invalid condition in %s: %.300s", call->path, call->body);
            answer_status(call, 422, "Invalid", "invalid condition");
            return;
        }
    }
    if (a.conditions.count == 0 || strstr(call->body, "\"message\"") == NULL)
        offence(api, "empty apply %s", call->path);
    if (!o) {
        answer_status(call, 404, "NotFound", "not found");
        return;
    }
    if (a.resource_version.len &&
        !pl__str_equal(a.resource_version, pl__str_format(&api->arena, "%" PRIu64, o->version))) {
        answer_status(call, 409, "Conflict", "the object has been modified");
        return;
    }
    if (apply_merge(o, &a))
        fake_put(api, o);
    call->status = 200;
    call->answer = rendered(api, o, true);
}

/* --- one request ------------------------------------------------------------------------------------ */

static bool fault_hits(struct fake_api *api, const struct fake_call *call, struct fake_fault *hit)
{
    for (int i = 0; i < api->fault_count; i++) {
        struct fake_fault *f = &api->faults[i];
        if (f->count <= 0 || (f->server >= 0 && f->server != call->server) ||
            (f->method && strcmp(f->method, call->method) != 0) ||
            (f->part && !strstr(call->path, f->part)))
            continue;
        f->count--;
        *hit = *f;
        return true;
    }
    if (api->chaos_percent && (int)prng_below(&api->random, 100) < api->chaos_percent) {
        static const int statuses[] = { 0, 429, 500, 503, 504, 0 };
        bool patch = strcmp(call->method, "PATCH") == 0;
        size_t pick = prng_below(&api->random, patch ? 8 : 6);
        *hit = (struct fake_fault){ .status = pick < 6 ? statuses[pick] : 409,
                                    .retry_after_s = prng_one_in(&api->random, 4) ? 1 : 0,
                                    .after = patch && prng_one_in(&api->random, 2) };
        return true;
    }
    return false;
}

static void fail(struct fake_call *call, const struct fake_fault *f)
{
    free(call->answer);
    call->answer = NULL;
    call->status = f->status;
    call->retry_after_s = f->retry_after_s ? f->retry_after_s : -1;
    if (f->status == 0)
        call->error = "connection reset";
    else if (f->status == 429)
        answer_set(call, 429, "Too many requests, please try again later.");
    else
        answer_status(call, f->status, "Fault", "a fault");
}

static void serve(struct fake_api *api, struct fake_call *call)
{
    struct route r = route_of(call->path);

    if (strcmp(call->path, "/") == 0) {
        api->probes++;
        answer_set(call, 200, "{\"paths\":[]}");
        return;
    }
    if (strcmp(call->method, "POST") == 0 && strstr(call->path, "/events")) {
        api->events_posted++;
        free(api->last_event_body);
        api->last_event_body = copy_text(call->body, strlen(call->body));
        answer_set(call, 201, "{}");
        return;
    }
    if (api->others &&
        api->others(
            api, &(struct fake_request){ call->method, call->path, call->body ? call->body : "" },
            &call->status, &call->answer))
        return;
    if (r.resource < 0) {
        answer_set(call, 404, "404 page not found");
        return;
    }
    if (api->servers[call->server].absent[r.resource]) {
        answer_status(call, api->servers[call->server].absent[r.resource], "Absent",
                      api->servers[call->server].absent[r.resource] == 403
                          ? "machines is forbidden: User cannot list resource"
                          : "the server says no");
        return;
    }
    if (pl__resources[r.resource].group[0] && r.v1beta1 != api->servers[call->server].v1beta1) {
        answer_set(call, 404, "404 page not found");
        return;
    }
    if (strcmp(call->method, "PATCH") == 0)
        apply_serve(api, call, &r);
    else if (call->watch)
        watch_serve(api, call, &r);
    else if (r.name[0])
        get_serve(api, call, &r);
    else
        list_serve(api, call, &r);
}

static void execute(struct fake_api *api, struct fake_call *call)
{
    struct fake_server *s = &api->servers[call->server];
    struct fake_fault fault;

    call->retry_after_s = -1;
    if (s->refuses) {
        call->error = "connection refused";
    } else if (fault_hits(api, call, &fault)) {
        if (fault.after && !call->watch)
            serve(api, call);
        fail(call, &fault);
    } else {
        serve(api, call);
    }
}

/* --- etcd ------------------------------------------------------------------------------------------- */

/* Whether `name` is one of the words in `names`. */
static bool is_among(const char *names, const char *name, size_t size)
{
    for (const char *at = names; at && *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        if (n == size && strncmp(at, name, n) == 0)
            return true;
        at += n;
    }
    return false;
}

static int by_id(const void *a, const void *b)
{
    const struct fake_member *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Its members, sorted by id; as many as there is room for. */
static size_t members_of(struct fake_api *api, int server, struct fake_member *members, size_t room)
{
    const struct fake_etcd *etcd = &api->servers[server].etcd;
    size_t count = 0;

    for (int i = 0; i < etcd->member_count; i++)
        members[count++] = etcd->members[i];
    if (!etcd->member_count && !etcd->empty) {
        for (struct fake_object *o = api->servers[server].first; o && count < room; o = o->next) {
            if (o->resource != RESOURCE_NODES)
                continue;
            struct fake_member *m = &members[count++];
            *m = (struct fake_member){ .id = pl__hash(pl__str(o->name), PL_STR("member")) | 1 };
            snprintf(m->name, sizeof m->name, "%.63s", o->name);
        }
    }
    qsort(members, count, sizeof *members, by_id);
    return count;
}

enum { MEMBERS_ROOM = 64 };

struct etcd_lists {
    struct fake_member members[MEMBERS_ROOM];
    struct pl_etcd_member_info infos[MEMBERS_ROOM];
    struct pl_etcd_alarm_info alarms[MEMBERS_ROOM];
    struct pl_str status_error;
};

static void etcd_fill(struct fake_api *api, int server, struct etcd_lists *l,
                      struct pl_etcd_answer *a)
{
    const struct fake_etcd *etcd = &api->servers[server].etcd;
    size_t count = members_of(api, server, l->members, MEMBERS_ROOM);

    a->leader = etcd->leader ? etcd->leader : count ? l->members[0].id : 0;
    l->status_error = pl__str(etcd->status_error);
    a->errors = &l->status_error;
    a->error_count = etcd->status_error ? 1 : 0;
    a->members_error = pl__str(etcd->members_error);
    a->alarms_error = pl__str(etcd->alarms_error);
    a->members = l->infos;
    a->alarms = l->alarms;
    for (size_t i = 0; i < count && !etcd->members_error; i++)
        l->infos[a->member_count++] =
            (struct pl_etcd_member_info){ .id = l->members[i].id,
                                          .name = pl__str(l->members[i].name),
                                          .is_learner = l->members[i].learner };
    for (size_t i = 0; i < count && !etcd->alarms_error; i++) {
        if (l->members[i].alarm)
            l->alarms[a->alarm_count++] =
                (struct pl_etcd_alarm_info){ l->members[i].id, l->members[i].alarm };
    }
}

/* What the etcd behind a server says to a call, as it is now. */
static struct pl_etcd_answer etcd_serve(struct fake_api *api, struct fake_call *call,
                                        struct etcd_lists *lists)
{
    const struct fake_server *s = &api->servers[call->server];
    const struct fake_etcd *etcd = &s->etcd;
    struct pl_etcd_answer a = { .failure = etcd->failure, .error = pl__str(etcd->error) };
    struct fake_fault fault;

    if (s->refuses || s->hangs)
        a = (struct pl_etcd_answer){ .failure = ETCD_UNREACHABLE,
                                     .error = PL_STR("the API server does not answer") };
    else if (etcd->key && strcmp(etcd->key, etcd->trusted_key) != 0)
        a = (struct pl_etcd_answer){ .failure = ETCD_UNTRUSTED,
                                     .error = PL_STR("certificate signed by unknown authority") };
    else if (a.failure == ETCD_OK && fault_hits(api, call, &fault))
        a = (struct pl_etcd_answer){ .failure = ETCD_CUT, .error = PL_STR("connection reset") };
    for (const char *at = call->endpoints; a.failure == ETCD_OK && !a.node.len && *at;
         at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        if (!is_among(etcd->down, at, n))
            a.node = (struct pl_str){ at, n };
        at += n;
    }
    if (a.failure == ETCD_OK && !a.node.len)
        a = (struct pl_etcd_answer){ .failure = ETCD_UNREACHABLE,
                                     .error = PL_STR("no member answers") };
    if (a.failure == ETCD_OK && call->etcd_call != ETCD_OBSERVE && api->etcd_change) {
        struct pl_etcd_endpoint node = { .node = a.node };
        api->etcd_change(api,
                         &(struct pl_action){ .server = (uint32_t)call->server,
                                              .call = call->etcd_call,
                                              .member_id = call->member_id,
                                              .endpoints = &node,
                                              .endpoint_count = 1 },
                         &a);
    } else if (a.failure == ETCD_OK) {
        etcd_fill(api, call->server, lists, &a);
    }
    return a;
}

/* --- delivering ------------------------------------------------------------------------------------- */

static uint64_t clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void drain(struct fake_api *api);

void fake_step(struct fake_api *api, const struct pl_event *event)
{
    uint64_t start = clock_ns();

    api->steps++;
    pl_controller_step(api->controller, event, api->now);
    (void)pl_controller_wake_at_ms(api->controller);
    uint64_t spent = clock_ns() - start;
    api->nanoseconds += spent;
    if (spent > api->step_ns_max)
        api->step_ns_max = spent;
    drain(api);
}

static void call_end(struct fake_api *api, struct fake_call *call)
{
    if (call->ended)
        return;
    call->ended = true;
    if (call->patched)
        call->patched->patches_under_way--;
    call->patched = NULL;
    if (call->streaming) {
        struct fake_call **at = &api->servers[call->server].watches;
        while (*at != call)
            at = &(*at)->next_watch;
        *at = call->next_watch;
        call->streaming = false;
    }
    free(call->body);
    free(call->out);
    call->body = call->out = NULL;
    call->out_len = call->out_capacity = 0;
}

static void answer_deliver(struct fake_api *api, struct fake_call *call)
{
    struct pl_event e = { .type = EVENT_ANSWER,
                          .id = call->id,
                          .server = call->handle,
                          .status = call->status,
                          .retry_after_s = call->retry_after_s,
                          .body = pl__str(call->answer ? call->answer : ""),
                          .error = pl__str(call->error ? call->error : "") };
    struct etcd_lists lists = { .status_error = { 0 } };
    struct pl_etcd_answer etcd = { .failure = ETCD_CANCELLED };
    char *answer = call->answer;

    if (call->etcd) {
        e.type = EVENT_ETCD;
        if (!call->dropped)
            etcd = etcd_serve(api, call, &lists);
        e.etcd = &etcd;
    }
    if (strcmp(call->method, "PATCH") == 0 && call->status >= 0 && call->status < 600)
        api->patches_with_status[call->status]++;
    call->answer = NULL;
    call_end(api, call);
    fake_step(api, &e);
    free(answer);
}

/* What happened since, as lines. */
static void watch_fill(struct fake_api *api, struct fake_call *call)
{
    struct fake_server *s = &api->servers[call->server];

    while (!call->end_after && call->position < s->history_count) {
        const struct fake_event *e = &s->history[call->position++];
        if (e->resource != call->resource ||
            (call->namespace_[0] && strcmp(call->namespace_, e->namespace_) != 0))
            continue;
        out_line(call, e->type, e->text);
        api->events_delivered++;
        if (api->options.shuffled && prng_one_in(&api->random, 20) &&
            call->position == s->history_count)
            bookmark(api, call, false);
    }
}

static void watch_deliver(struct fake_api *api, struct fake_call *call)
{
    struct fake_server *s = &api->servers[call->server];

    if (s->hangs) { /* what it has to say comes when it thaws */
        call->scheduled = true;
        schedule(api, call, api->now.mono_ms + 1000);
        return;
    }
    if (!call->end_after)
        watch_fill(api, call);
    call->end_after |= api->now.mono_ms >= call->ends_ms;
    if (call->out_len) {
        size_t size = call->out_len;
        if (api->options.piece_max && size > api->options.piece_max)
            size = 1 + prng_below(&api->random, api->options.piece_max);
        char *piece =
            copy_text(call->out, size); /* of its own, so that a sanitizer sees reads past it */
        call->out_len -= size;
        memmove(call->out, call->out + size, call->out_len);
        if (call->out_len || call->end_after)
            watch_schedule(api, call);
        fake_step(api, &(struct pl_event){ .type = EVENT_BYTES,
                                           .id = call->id,
                                           .server = call->handle,
                                           .body = { piece, size } });
        free(piece);
        return;
    }
    if (call->end_after) {
        /* A client may tell a stream that broke as an answer that never was whole. */
        call->status = call->end_error && prng_one_in(&api->random, 2) ? 0 : 200;
        call->error = call->end_error;
        answer_deliver(api, call);
    }
}

static void call_due(struct fake_api *api, struct fake_call *call)
{
    call->scheduled = false;
    if (call->ended)
        return;
    if (call->dropped) {
        bool speaks = prng_below(&api->random, 100) < api->options.answers_cancelled_percent;
        call->error = "cancelled";
        call->status = 0;
        if (speaks)
            answer_deliver(api, call);
        else
            call_end(api, call);
        return;
    }
    if (!call->executed) {
        call->executed = true;
        if (api->servers[call->server].hangs) {
            call->error = "timeout";
            call->retry_after_s = -1;
            schedule(api, call, api->now.mono_ms + call->timeout_ms);
            return;
        }
        if (call->etcd) {
            call->mute = api->servers[call->server].etcd.mute;
            schedule(api, call,
                     api->now.mono_ms + latency(api) + api->servers[call->server].etcd.slow_ms);
            return;
        }
        execute(api, call);
        if (call->streaming)
            watch_schedule(api, call);
        else
            schedule(api, call, api->now.mono_ms + latency(api));
        return;
    }
    if (call->mute)
        return;
    if (call->streaming)
        watch_deliver(api, call);
    else
        answer_deliver(api, call);
}

/* --- actions ---------------------------------------------------------------------------------------- */

static struct fake_call *call_start(struct fake_api *api, const struct pl_action *a,
                                    const char *method)
{
    struct fake_call *call = calloc(1, sizeof *call);

    if (!call)
        abort();
    call->id = a->id;
    call->handle = a->server;
    call->watch = a->type == ACTION_WATCH;
    call->etcd = a->type == ACTION_ETCD;
    call->etcd_call = a->call;
    call->member_id = a->member_id;
    call->method = copy_text(method, strlen(method));
    call->path = copy_text(a->path.ptr, a->path.len);
    call->body = copy_text(a->body.ptr, a->body.len);
    call->timeout_ms = a->timeout_ms;
    call->resource = -1;
    if (a->id != api->call_count + 1)
        offence(api, "id %" PRIu64 " after %zu", a->id, api->call_count);
    if ((api->call_count & (api->call_count + 1)) == 0 || api->call_count == 0) {
        size_t capacity = 2 * (api->call_count + 1);
        api->calls = realloc(api->calls, capacity * sizeof(struct fake_call *));
        if (!api->calls)
            abort();
    }
    api->calls[api->call_count++] = call;
    if (a->server < api->handle_count && api->handles[a->server] == -2) {
        call->dropped = true;
    } else if (a->server >= api->handle_count || api->handles[a->server] < 0) {
        offence(api, "request to a closed server %u: %s", a->server, call->path);
        call->dropped = true;
    } else {
        call->server = api->handles[a->server];
    }
    return call;
}

static void request_start(struct fake_api *api, const struct pl_action *a)
{
    struct fake_call *call = call_start(api, a, a->method);

    if (!a->timeout_ms)
        offence(api, "no timeout: %s", call->path);
    if (strcmp(a->method, "PATCH") == 0) {
        struct route r = route_of(call->path);
        struct fake_object *o =
            r.resource >= 0 ? fake_find(api, 0, r.resource, r.namespace_, r.name) : NULL;
        api->patches++;
        if (o) {
            if (o->patches_under_way++ && !o->left)
                offence(api, "two writes under way: %s", call->path);
            o->patches++;
            call->patched = o;
            free(o->last_patch);
            o->last_patch = copy_text(a->body.ptr, a->body.len);
        }
        bool applies = strstr(call->path, "force=true") != NULL;
        const char *type = applies                              ? "application/apply-patch+yaml"
                           : a->body.len && *a->body.ptr == '[' ? "application/json-patch+json"
                                                                : "application/merge-patch+json";
        if (!a->content_type || strcmp(a->content_type, type) != 0)
            offence(api, "content type of %s", call->path);
    }
    schedule(api, call, api->now.mono_ms + latency(api));
}

static void etcd_start(struct fake_api *api, const struct pl_action *a)
{
    struct fake_call *call = call_start(api, a, "ETCD");
    struct fake_server *s = &api->servers[call->server];
    size_t len = 0;

    for (size_t i = 0; i < a->endpoint_count && len < sizeof call->endpoints; i++)
        len += (size_t)snprintf(call->endpoints + len, sizeof call->endpoints - len, "%s%.*s",
                                i ? " " : "", PL_STR_ARG(a->endpoints[i].node));
    if (!a->endpoint_count)
        offence(api, "nobody to ask");
    if (!call->dropped) {
        if (s->etcd.trusted != a->server)
            offence(api, "a call to the etcd of server %u without a CA", a->server);
        for (size_t i = 0; i + 1 < api->call_count; i++) {
            const struct fake_call *other = api->calls[i];
            if (other->etcd && other->handle == a->server && !other->ended && !other->dropped)
                offence(api, "two calls to one etcd");
        }
        s->etcd.observations++;
        s->etcd.asked_ms = api->now.mono_ms;
        memcpy(s->etcd.asked, call->endpoints, sizeof s->etcd.asked);
        if (a->endpoint_count)
            snprintf(s->etcd.address, sizeof s->etcd.address, "%.*s",
                     PL_STR_ARG(a->endpoints[0].address));
    }
    schedule(api, call, api->now.mono_ms + latency(api));
}

static void etcd_trust(struct fake_api *api, const struct pl_action *a)
{
    if (a->server >= api->handle_count || api->handles[a->server] < 0) {
        offence(api, "a CA for a closed server");
        return;
    }
    struct fake_etcd *etcd = &api->servers[api->handles[a->server]].etcd;
    etcd->trusts++;
    etcd->trusted = a->server;
    snprintf(etcd->trusted_key, sizeof etcd->trusted_key, "%.*s", PL_STR_ARG(a->key));
    if (!pl__str_equal(a->body, PL_STR("certificates")))
        offence(api, "the CA is not the Secret's");
}

static void server_open(struct fake_api *api, const struct pl_action *a)
{
    if (a->server >= api->handle_count) {
        size_t count = 2 * ((size_t)a->server + 1);
        api->handles = realloc(api->handles, count * sizeof(int));
        for (size_t i = api->handle_count; i < count; i++)
            api->handles[i] = -1;
        api->handle_count = count;
    }
    if (api->handles[a->server] != -1)
        offence(api, "server %u opened twice", a->server);
    if (a->body.len > 5 && memcmp(a->body.ptr, "fake:", 5) == 0) {
        int server = (int)strtol(a->body.ptr + 5, NULL, 10);
        api->handles[a->server] = server;
        api->servers[server].opened++;
        return;
    }
    api->handles[a->server] = -2; /* known, and of no use: what is asked of it is dropped */
    fake_step(api, &(struct pl_event){ .type = EVENT_OPEN_FAILED,
                                       .server = a->server,
                                       .error = PL_STR("kubeconfig: no current-context") });
}

static void server_close(struct fake_api *api, const struct pl_action *a)
{
    if (a->server >= api->handle_count || api->handles[a->server] == -1)
        return;
    if (api->handles[a->server] >= 0)
        api->servers[api->handles[a->server]].closed++;
    for (size_t i = 0; i < api->call_count; i++) {
        struct fake_call *call = api->calls[i];
        if (call && call->handle == a->server && !call->ended) {
            call->dropped = true;
            if (!call->scheduled && call->executed)
                watch_schedule(api, call);
        }
    }
    api->handles[a->server] = -1;
}

static void drain(struct fake_api *api)
{
    const struct pl_action *a;

    while ((a = pl_controller_next_action(api->controller))) {
        switch (a->type) {
        case ACTION_OPEN: {
            struct pl_action kept = *a; /* a failure steps, and that ends the life of `a` */
            char *body = copy_text(a->body.ptr, a->body.len);
            kept.body.ptr = body;
            server_open(api, &kept);
            free(body);
            break;
        }
        case ACTION_CLOSE:
            server_close(api, a);
            break;
        case ACTION_REQUEST:
        case ACTION_WATCH:
            request_start(api, a);
            break;
        case ACTION_CANCEL:
            if (a->id == 0 || a->id > api->call_count) {
                offence(api, "cancel of unknown id");
            } else if (!api->calls[a->id - 1]->ended) {
                struct fake_call *call = api->calls[a->id - 1];
                call->dropped = true;
                if (!call->scheduled)
                    watch_schedule(api, call);
            }
            break;
        case ACTION_ETCD_TRUST:
            etcd_trust(api, a);
            break;
        case ACTION_ETCD:
            etcd_start(api, a);
            break;
        case ACTION_STOP:
            if (api->stopped)
                offence(api, "stopped twice");
            api->stopped = true;
            snprintf(api->stop, sizeof api->stop, "%.*s", PL_STR_ARG(a->error));
            break;
        }
    }
}

/* --- running ---------------------------------------------------------------------------------------- */

void fake_run(struct fake_api *api, uint64_t ms)
{
    uint64_t end = api->now.mono_ms + ms, at_once = 0;

    drain(api);
    for (;;) {
        uint64_t wake = pl_controller_wake_at_ms(api->controller);
        uint64_t due = api->heap_count ? api->heap[0].at : UINT64_MAX;
        uint64_t next = wake < due ? wake : due;

        if (next > end) {
            api->now.wall_ms += (int64_t)(end - api->now.mono_ms);
            api->now.mono_ms = end;
            return;
        }
        if (next > api->now.mono_ms) {
            api->now.wall_ms += (int64_t)(next - api->now.mono_ms);
            api->now.mono_ms = next;
            at_once = 0;
        } else if (++at_once > 2000000) {
            offence(api, "busy for ever at %" PRIu64, api->now.mono_ms);
            return;
        }
        if (due <= api->now.mono_ms)
            call_due(api, unschedule(api).call);
        else
            fake_step(api, &(struct pl_event){ .type = EVENT_TICK });
    }
}

void fake_jump(struct fake_api *api, int64_t ms)
{
    api->now.wall_ms += ms;
}

static void on_log(void *user, enum pl_log_level level, const char *message,
                   const struct pl_log_pair *pairs, size_t count)
{
    struct fake_api *api = user;

    if (level == PL_LOG_ERROR) {
        api->log_errors++;
        snprintf(api->last_error_log, sizeof api->last_error_log, "%s", message);
    }
    /* Every value is read: a sanitizer sees what is not alive any more. */
    size_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < pairs[i].value.len; k++)
            sum += (unsigned char)pairs[i].value.ptr[k];
    }
    if (getenv("FAKE_LOG")) {
        fprintf(stderr, "%8" PRIu64 " %s", api->now.mono_ms, message);
        for (size_t i = 0; i < count; i++)
            fprintf(stderr, " %s=\"%.*s\"", pairs[i].key, PL_STR_ARG(pairs[i].value));
        fprintf(stderr, "\n");
    }
    api->sequence += sum & 0; /* used */
}

struct fake_api *fake_new(const struct fake_options *options)
{
    struct fake_api *api = calloc(1, sizeof *api);

    if (!api)
        abort();
    api->options = *options;
    api->server_count = options->servers + 1;
    api->servers = calloc((size_t)api->server_count, sizeof *api->servers);
    for (int i = 0; i < api->server_count; i++) {
        api->servers[i].index = i;
        api->servers[i].version = 100;
    }
    api->random.state = options->seed;
    api->now =
        (struct pl_now){ .mono_ms = 1000000, .wall_ms = 1794708000000 }; /* 2026-11-15T02:00:00Z */
    api->handle_count = 1;
    api->handles = calloc(1, sizeof(int));
    pl__arena_init(&api->arena, NULL, 0);
    api->allocator = (struct pl_allocator){ api, count_alloc, count_free };
    return api;
}

void fake_start(struct fake_api *api, const struct pl_controller_options *options)
{
    struct pl_controller_options o = *options;

    o.allocator = &api->allocator;
    o.log = on_log;
    o.log_user = api;
    o.seed = api->options.seed + 1;
    api->controller = pl_controller_new(&o, api->now);
}

size_t fake_end(struct fake_api *api)
{
    if (api->controller)
        pl_controller_free(api->controller);
    api->controller = NULL;
    return api->blocks;
}

static void frozen_free(struct fake_frozen *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->texts[i]);
    free(f->texts);
    free(f);
}

static void calls_free(struct fake_api *api)
{
    for (size_t i = 0; i < api->call_count; i++) {
        struct fake_call *call = api->calls[i];
        free(call->method);
        free(call->path);
        free(call->body);
        free(call->answer);
        free(call->out);
        free(call);
    }
    api->call_count = 0;
}

size_t fake_crash(struct fake_api *api)
{
    size_t blocks;

    for (size_t i = 0; i < api->call_count; i++)
        call_end(api, api->calls[i]);
    blocks = fake_end(api);
    calls_free(api);
    free(api->calls);
    api->calls = NULL;
    api->heap_count = 0;
    api->handle_count = 1;
    api->stopped = false;
    return blocks;
}

void fake_free(struct fake_api *api)
{
    fake_end(api);
    for (int i = 0; i < api->server_count; i++) {
        struct fake_server *s = &api->servers[i];
        for (struct fake_object *o = s->first, *next; o; o = next) {
            next = o->next;
            object_free(o);
        }
        for (size_t k = 0; k < s->history_count; k++)
            free(s->history[k].text);
        free(s->history);
        free(s->buckets);
    }
    calls_free(api);
    for (struct fake_frozen *f = api->frozen, *next; f; f = next) {
        next = f->next;
        frozen_free(f);
    }
    free(api->calls);
    free(api->handles);
    free(api->heap);
    free(api->servers);
    free(api->last_event_body);
    pl__arena_release(&api->arena);
    free(api);
}

/* --- faults ----------------------------------------------------------------------------------------- */

void fake_fail(struct fake_api *api, struct fake_fault fault)
{
    for (int i = 0; i < api->fault_count; i++) {
        if (api->faults[i].count <= 0) {
            api->faults[i] = fault;
            return;
        }
    }
    if (api->fault_count == FAKE_FAULTS_MAX)
        abort();
    api->faults[api->fault_count++] = fault;
}

void fake_cut(struct fake_api *api, int server, const char *error)
{
    for (struct fake_call *w = api->servers[server].watches; w; w = w->next_watch) {
        w->end_after = true;
        w->end_error = error;
        if (error) /* what was under way is lost, mostly in the middle of a line */
            w->out_len = w->out_len ? prng_below(&api->random, w->out_len) : 0;
        watch_schedule(api, w);
    }
}

void fake_mute(struct fake_api *api, int server)
{
    for (struct fake_call *w = api->servers[server].watches; w; w = w->next_watch)
        w->mute = true;
}

void fake_expire(struct fake_api *api, int server, bool running)
{
    struct fake_server *s = &api->servers[server];

    s->compacted = s->version + 1; /* even who has seen all of it is too late */
    s->version++;
    for (struct fake_call *w = s->watches; running && w; w = w->next_watch) {
        w->out_len = 0;
        out_line(w, "ERROR", gone_status);
        w->end_after = true;
        watch_schedule(api, w);
    }
}

void fake_restore(struct fake_api *api, int server)
{
    struct fake_server *s = &api->servers[server];

    for (size_t i = 0; i < s->history_count; i++)
        free(s->history[i].text);
    s->history_count = 0;
    s->version = 10;
    for (struct fake_object *o = s->first; o; o = o->next)
        o->version = ++s->version;
    for (struct fake_call *w = s->watches; w; w = w->next_watch)
        w->position = 0;
    fake_cut(api, server, "connection reset");
}

void fake_inject(struct fake_api *api, int server, int resource, const char *bytes)
{
    for (struct fake_call *w = api->servers[server].watches; w; w = w->next_watch) {
        if (w->resource != resource)
            continue;
        out_add(w, bytes, strlen(bytes));
        watch_schedule(api, w);
    }
}

/* --- the truth --------------------------------------------------------------------------------------- */

static void objects_add(struct fake_api *api, struct pl_buf *b, int server, int resource)
{
    struct route r = { .resource = resource };
    size_t count;
    struct fake_object **all = all_of(api, server, &r, &count);

    for (size_t i = 0; i < count; i++) {
        if (b->data[b->len - 1] != '[')
            pl__buf_add_char(b, ',');
        render(api, b, all[i], true);
    }
    free(all);
}

/* The server behind a Cluster that can be reached through its Secret, or 0. */
static int server_behind(struct fake_api *api, const struct fake_object *cluster)
{
    char name[160];
    struct pl_str text;

    snprintf(name, sizeof name, "%s-kubeconfig", cluster->name);
    struct fake_object *secret = fake_find(api, 0, RESOURCE_SECRETS, cluster->namespace_, name);
    if (!secret || !secret->data || !strstr(cluster->status, "infrastructureProvisioned\":true"))
        return 0;
    pl__arena_reset(&api->arena);
    const char *value = secret->data + strlen("\"value\":\"");
    if (pl__base64_decode(&api->arena, (struct pl_str){ value, strlen(value) - 1 }, &text) < 0)
        return 0;
    return text.len > 5 && memcmp(text.ptr, "fake:", 5) == 0 ? (int)strtol(text.ptr + 5, NULL, 10)
                                                             : 0;
}

/* What the controller should know of the etcd behind a server, with its comma. */
static void truth_etcd(struct fake_api *api, struct pl_buf *b, int server)
{
    const struct fake_etcd *etcd = &api->servers[server].etcd;
    struct fake_member members[MEMBERS_ROOM];
    size_t count = members_of(api, server, members, MEMBERS_ROOM);
    bool first = true;

    if (etcd->failure != ETCD_OK) {
        pl__buf_printf(b, ",\"etcd\":{\"connectError\":\"%s\"}", etcd->error);
        return;
    }
    pl__buf_add_lit(b, ",\"etcd\":{\"endpoint\":\"\",\"members\":[");
    for (size_t i = 0; i < count; i++)
        pl__buf_printf(b, "%s{\"ID\":\"%" PRIu64 "\",\"name\":\"%s\",\"isLearner\":%s}",
                       i ? "," : "", members[i].id, members[i].name,
                       members[i].learner ? "true" : "false");
    pl__buf_add_lit(b, "],\"alarms\":[");
    for (size_t i = 0; i < count; i++) {
        if (!members[i].alarm)
            continue;
        pl__buf_printf(b, "%s{\"memberID\":\"%" PRIu64 "\",\"alarm\":\"%s\"}", first ? "" : ",",
                       members[i].id, members[i].alarm == 1 ? "NOSPACE" : "CORRUPT");
        first = false;
    }
    pl__buf_add_lit(b, "]}");
}

static struct pl_str truth_text(struct fake_api *api, struct pl_arena *arena)
{
    struct pl_buf b;
    char now[40];
    bool first = true;

    time_text(api->now.wall_ms, now);
    pl__buf_init(&b, arena, SIZE_MAX);
    pl__buf_printf(
        &b,
        "{\"apiVersion\":\"plimsoll.dev/v1\",\"kind\":\"Snapshot\",\"now\":\"%s\",\"objects\":[",
        now);
    for (int i = 0; i < RESOURCE_SECRETS; i++)
        objects_add(api, &b, 0, i);
    pl__buf_add_lit(&b, "],\"workloads\":[");
    for (struct fake_object *o = api->servers[0].first; o; o = o->next) {
        if (o->resource != RESOURCE_CLUSTERS)
            continue;
        int server = server_behind(api, o);
        pl__buf_printf(&b, "%s{\"cluster\":\"%s/%s\",\"connection\":", first ? "" : ",",
                       o->namespace_, o->name);
        first = false;
        if (!server) {
            pl__buf_add_lit(&b, "{\"state\":\"NotConnected\",\"consecutiveFailures\":0}}");
            continue;
        }
        pl__buf_printf(
            &b,
            "{\"state\":\"Connected\",\"lastProbeSuccessTime\":\"%s\",\"consecutiveFailures\":0},"
            "\"nodes\":[",
            now);
        objects_add(api, &b, server, RESOURCE_NODES);
        pl__buf_add_lit(&b, "],\"pods\":[");
        objects_add(api, &b, server, RESOURCE_PODS);
        pl__buf_add_char(&b, ']');
        truth_etcd(api, &b, server);
        pl__buf_add_char(&b, '}');
    }
    pl__buf_add_lit(&b, "]}");
    return pl__buf_str(&b);
}

static int resource_named(const char *kind)
{
    for (int i = 0; i < RESOURCE_MANAGEMENT_COUNT; i++) {
        if (strcmp(pl__resources[i].kind, kind) == 0)
            return i;
    }
    return -1;
}

int fake_disagreements(struct fake_api *api, enum pl_profile profile, bool print)
{
    struct pl_context *ctx = pl_context_new(&(struct pl_options){ .profile = profile });
    const struct pl_report *report;
    struct pl_arena arena;
    int differ = 0;

    pl__arena_init(&arena, NULL, 0);
    struct pl_str text = truth_text(api, &arena);
    pl_context_add(ctx, "truth", text.ptr, text.len);
    if (pl_context_next(ctx, &report) != 1) {
        printf("truth: %s\n", pl_context_error(ctx));
        differ = 1000;
        report = NULL;
    }
    for (size_t i = 0; report && i < report->object_count; i++) {
        const struct pl_object *o = &report->objects[i];
        char namespace_[64], name[96];
        snprintf(namespace_, sizeof namespace_, "%.*s", PL_STR_ARG(o->namespace_));
        snprintf(name, sizeof name, "%.*s", PL_STR_ARG(o->name));
        struct fake_object *stored = fake_find(api, 0, resource_named(o->kind), namespace_, name);
        for (size_t k = 0; k < o->verdict_count && !o->paused; k++) {
            const struct pl_verdict *v = &o->verdicts[k];
            struct fake_condition *c = fake_condition(stored, v->type);
            if (v->kept)
                continue;
            if (c && strcmp(c->status, pl_status_name(v->status)) == 0 &&
                pl__str_equal(v->reason, pl__str(c->reason)) &&
                pl__str_equal(v->message, pl__str(c->message)) &&
                (!v->has_observed_generation || c->generation == v->observed_generation))
                continue;
            differ++;
            if (print)
                printf("%s %s %s: stored %s, should be %s %.*s %.*s (%s)\n", o->kind, name, v->type,
                       fake_said(stored, v->type), pl_status_name(v->status), PL_STR_ARG(v->reason),
                       PL_STR_ARG(v->message), v->row);
        }
    }
    pl_context_free(ctx);
    pl__arena_release(&arena);
    return differ;
}
