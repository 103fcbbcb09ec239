#include "cli/playground.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/json.h"
#include "cli/front.h"
#include "loop/files.h"

enum {
    EVENTS_MAX = 256,          /* told to the fleet in one turn; the rest waits for the next */
    KUBECONFIG_DELAY_MS = 200, /* clusters come in crowds, the file is written once for all */
    KUBECONFIG_BYTES_MAX = 64 * 1024 * 1024,
    FEED_RETRY_MS = 1000,
    FOLDERS_MAX = 16,
    PATH_ROOM = 64, /* for the names below it */
    FILES_SPARED = 64,
    FILES_PER_CLUSTER = 6, /* both ends of its watches */
    FILES_PER_MEMBER = 3,  /* a tunnel to etcd has three */
};

/* Something that the fleet watches. */
struct feed {
    struct feed *next, *next_ready;
    struct pl_playground *playground;
    struct pl_api_watch *watch; /* NULL: to be opened */
    char *cluster;
    const char *group_version, *plural;
    bool ready; /* in the list of those that have something to tell */
    bool told;  /* everything that was there */
    bool gone;  /* its cluster is: to be freed when nobody is at it */
};

struct pl_playground {
    struct pl_loop *loop;
    struct pl_apiserver *api;
    struct pl_front *front;
    struct pl_fleet *fleet;
    char directory[PLAYGROUND_PATH_BYTES];
    char kubeconfig[PLAYGROUND_PATH_BYTES];
    bool temporary;  /* the folder is ours to remove */
    char **clusters; /* workload clusters, in the order they came */
    size_t cluster_count, cluster_capacity;
    struct feed *feeds;
    bool feeds_gone; /* some of them are to be freed */
    struct feed *ready, **ready_end;
    uv_async_t tell;   /* feeds have something */
    uv_timer_t write;  /* of the kubeconfig */
    uv_timer_t reopen; /* of feeds whose watch could not be opened */
    int lock;
    struct pl_str token; /* the caller's */
    char host[72];       /* in URLs */
    bool stopped;        /* the fleet is told nothing any more */
};

static void *allocate(size_t count, size_t size)
{
    void *p = calloc(count, size);

    if (!p)
        abort();
    return p;
}

static char *copy_of(struct pl_str text)
{
    char *copy = allocate(1, text.len + 1);

    if (text.len)
        memcpy(copy, text.ptr, text.len);
    return copy;
}

/* The fleet's name of the management cluster is the empty one. */
static struct pl_str api_name(struct pl_str cluster)
{
    return cluster.len ? cluster : PL_STR(PLAYGROUND_MANAGEMENT);
}

/* --- kubeconfigs ----------------------------------------------------------------------------------- */

static void write_pair(struct pl_json_writer *w, const char *key, struct pl_str value)
{
    pl__json_write_key(w, key);
    pl__json_write_str(w, value);
}

/* The items of one of the three lists, each a name and an object below `key`. */
static void open_item(struct pl_json_writer *w, struct pl_str name, const char *key)
{
    pl__json_open_object(w);
    write_pair(w, "name", name);
    pl__json_write_key(w, key);
    pl__json_open_object(w);
}

static void close_item(struct pl_json_writer *w)
{
    pl__json_close_object(w);
    pl__json_close_object(w);
}

/* The management cluster is at the root. */
static struct pl_str url_of(const struct pl_playground *p, struct pl_str cluster,
                            struct pl_arena *arena)
{
    bool root = pl__str_equal(cluster, PL_STR(PLAYGROUND_MANAGEMENT));

    return pl__str_format(arena, "%s://%s:%u%s%.*s",
                          pl__front_certificate(p->front).len ? "https" : "http", p->host,
                          pl__front_port(p->front), root ? "" : "/clusters/",
                          root ? 0 : (int)cluster.len, cluster.ptr);
}

static void write_clusters(struct pl_playground *p, struct pl_json_writer *w,
                           const struct pl_str *names, size_t count, struct pl_arena *arena)
{
    struct pl_str ca = pl__front_certificate(p->front);

    pl__json_write_key(w, "clusters");
    pl__json_open_array(w);
    for (size_t i = 0; i < count; i++) {
        open_item(w, names[i], "cluster");
        write_pair(w, "server", url_of(p, names[i], arena));
        if (ca.len) {
            write_pair(w, "certificate-authority-data", pl__base64_encode(arena, ca));
            write_pair(w, "tls-server-name", PL_STR("localhost"));
        }
        close_item(w);
    }
    pl__json_close_array(w);
}

static void write_contexts(struct pl_json_writer *w, const struct pl_str *names, size_t count)
{
    pl__json_write_key(w, "contexts");
    pl__json_open_array(w);
    for (size_t i = 0; i < count; i++) {
        open_item(w, names[i], "context");
        write_pair(w, "cluster", names[i]);
        write_pair(w, "user", PL_STR("playground"));
        write_pair(w, "namespace", PL_STR(PLAYGROUND_NAMESPACE));
        close_item(w);
    }
    pl__json_close_array(w);
}

/* The first name is that of the current context. */
static struct pl_str kubeconfig_text(struct pl_playground *p, const struct pl_str *names,
                                     size_t count, struct pl_arena *arena)
{
    struct pl_json_writer w;
    struct pl_buf text;

    pl__buf_init(&text, arena, KUBECONFIG_BYTES_MAX);
    pl__json_writer_init(&w, &text, JSON_AS_YAML);
    pl__json_open_object(&w);
    write_pair(&w, "apiVersion", PL_STR("v1"));
    write_pair(&w, "kind", PL_STR("Config"));
    write_pair(&w, "current-context", names[0]);
    write_clusters(p, &w, names, count, arena);
    write_contexts(&w, names, count);
    pl__json_write_key(&w, "users");
    pl__json_open_array(&w);
    open_item(&w, PL_STR("playground"), "user");
    if (p->token.len)
        write_pair(&w, "token", p->token);
    close_item(&w);
    pl__json_close_array(&w);
    pl__json_close_object(&w);
    pl__buf_add_char(&text, '\n');
    return pl__buf_str(&text);
}

struct pl_str pl__playground_kubeconfig(void *playground, struct pl_str cluster,
                                        struct pl_arena *arena)
{
    return kubeconfig_text(playground, &cluster, 1, arena);
}

static int kubeconfig_write(struct pl_playground *p, struct pl_arena *arena, struct pl_error **err)
{
    struct pl_str *names = PL_NEW(arena, struct pl_str, p->cluster_count + 1);
    size_t count = 0;

    names[count++] = PL_STR(PLAYGROUND_MANAGEMENT);
    for (size_t i = 0; i < p->cluster_count; i++)
        names[count++] = pl__str(p->clusters[i]);
    return pl__file_write(p->kubeconfig, kubeconfig_text(p, names, count, arena), arena, err);
}

/* A file that cannot be written leaves the old one: its contexts still work. */
static void write_fired(uv_timer_t *timer)
{
    struct pl_playground *p = timer->data;
    struct pl_arena arena;

    pl__arena_init(&arena, NULL, 0);
    kubeconfig_write(p, &arena, NULL);
    pl__arena_release(&arena);
}

static void kubeconfig_later(struct pl_playground *p)
{
    if (!uv_is_active((uv_handle_t *)&p->write))
        uv_timer_start(&p->write, write_fired, KUBECONFIG_DELAY_MS, 0);
}

/* --- what the fleet watches -------------------------------------------------------------------------- */

/* From inside of any call to the API server: only notes it. */
static void feed_wake(void *context)
{
    struct feed *f = context;
    struct pl_playground *p = f->playground;

    if (f->ready)
        return;
    f->ready = true;
    f->next_ready = NULL;
    *p->ready_end = f;
    p->ready_end = &f->next_ready;
    uv_async_send(&p->tell);
}

static void reopen_fired(uv_timer_t *timer)
{
    struct pl_playground *p = timer->data;

    for (struct feed *f = p->feeds; f; f = f->next) {
        if (!f->watch && !f->gone)
            feed_wake(f);
    }
}

/* Without a version: everything that is there comes first. */
static void feed_open(struct feed *f)
{
    struct pl_playground *p = f->playground;
    struct pl_api_answer answer = { 0 };
    struct pl_arena arena;
    struct pl_api_call call = { .cluster = api_name(pl__str(f->cluster)),
                                .verb = PL_API_WATCH,
                                .group_version = f->group_version,
                                .plural = f->plural };

    pl__arena_init(&arena, NULL, 0);
    if (pl_apiserver_call(p->api, &call, pl__loop_wall_ms(), &arena, &answer) == 0 &&
        answer.watch) {
        f->watch = answer.watch;
        pl_api_watch_own(f->watch, (struct pl_api_watch_owner){ feed_wake, f });
        feed_wake(f);
    } else if (!uv_is_active((uv_handle_t *)&p->reopen)) {
        uv_timer_start(&p->reopen, reopen_fired, FEED_RETRY_MS, 0);
    }
    pl__arena_release(&arena);
}

static void feed_free(struct feed *f)
{
    pl_api_watch_close(f->watch);
    free(f->cluster);
    free(f);
}

static void feeds_sweep(struct pl_playground *p)
{
    p->feeds_gone = false;
    for (struct feed **at = &p->feeds; *at;) {
        struct feed *f = *at;
        if (!f->gone || f->ready) {
            p->feeds_gone |= f->gone;
            at = &f->next;
            continue;
        }
        *at = f->next;
        feed_free(f);
    }
}

/* How many events were told. */
static size_t feed_tell(struct feed *f, size_t max, struct pl_arena *arena)
{
    struct pl_playground *p = f->playground;
    size_t count = 0;

    while (count < max && !f->gone && !p->stopped) {
        struct pl_str line = { "", 0 };
        pl__arena_reset(arena);
        enum pl_api_watch_state state =
            f->watch ? pl_api_watch_next(f->watch, pl__loop_wall_ms(), arena, &line) : PL_WATCH_END;
        if (state == PL_WATCH_WAIT) {
            if (!f->told)
                pl__fleet_told(p->fleet, pl__str(f->cluster));
            f->told = true;
            return count;
        }
        if (state == PL_WATCH_END) {
            pl_api_watch_close(f->watch);
            f->watch = NULL;
            feed_open(f);
            return count + 1; /* a watch that ends at once must not keep us here */
        }
        pl__fleet_event(p->fleet, pl__str(f->cluster), line);
        count++;
    }
    if (count == max)
        feed_wake(f);
    return count;
}

static void tell_fleet(uv_async_t *async)
{
    struct pl_playground *p = async->data;
    size_t left = EVENTS_MAX;
    struct pl_arena arena;

    pl__arena_init(&arena, NULL, 0);
    while (p->ready && left > 0) {
        struct feed *f = p->ready;
        p->ready = f->next_ready;
        if (!p->ready)
            p->ready_end = &p->ready;
        f->ready = false;
        size_t told = feed_tell(f, left, &arena);
        left -= told < left ? told : left;
    }
    pl__arena_release(&arena);
    if (p->feeds_gone)
        feeds_sweep(p);
    if (p->ready)
        uv_async_send(&p->tell);
}

/* --- what the fleet asks for ------------------------------------------------------------------------- */

static int fleet_call(void *user, const struct pl_fleet_call *call, struct pl_arena *arena,
                      struct pl_str *body)
{
    static const enum pl_api_verb verbs[] = { [FLEET_CREATE] = PL_API_CREATE,
                                              [FLEET_MERGE] = PL_API_MERGE,
                                              [FLEET_APPLY] = PL_API_APPLY,
                                              [FLEET_DELETE] = PL_API_DELETE };
    struct pl_playground *p = user;
    struct pl_api_answer answer = { 0 };
    struct pl_api_call api = { .cluster = api_name(call->cluster),
                               .verb = verbs[call->verb],
                               .group_version = call->group_version,
                               .plural = call->plural,
                               .ns = call->ns,
                               .name = call->name,
                               .subresource = call->subresource,
                               .manager = call->manager,
                               .body = call->body };

    /* As the kubelet deletes its Pods: nobody is there to wait for a grace period. */
    if (call->verb == FLEET_DELETE)
        api.query = PL_STR("gracePeriodSeconds=0&propagationPolicy=Background");
    pl_apiserver_call(p->api, &api, pl__loop_wall_ms(), arena, &answer);
    *body = answer.body;
    return answer.status;
}

static void fleet_watch(void *user, struct pl_str cluster, const char *group_version,
                        const char *plural)
{
    struct pl_playground *p = user;
    struct feed *f = allocate(1, sizeof *f);

    *f = (struct feed){ .next = p->feeds,
                        .playground = p,
                        .cluster = copy_of(cluster),
                        .group_version = group_version,
                        .plural = plural };
    p->feeds = f;
    feed_open(f);
}

/* Workload clusters and the management cluster stand side by side in the API server. */
static bool fleet_cluster_add(void *user, struct pl_str cluster)
{
    struct pl_playground *p = user;

    if (pl__str_equal(cluster, PL_STR(PLAYGROUND_MANAGEMENT)) ||
        pl_apiserver_cluster_add(p->api, cluster, pl__loop_wall_ms()) < 0)
        return false;
    for (size_t i = 0; i < p->cluster_count; i++) {
        if (pl__str_equal(pl__str(p->clusters[i]), cluster))
            return true;
    }
    if (p->cluster_count == p->cluster_capacity) {
        p->cluster_capacity = p->cluster_capacity ? p->cluster_capacity * 2 : 16;
        p->clusters = realloc(p->clusters, p->cluster_capacity * sizeof p->clusters[0]);
        if (!p->clusters)
            abort();
    }
    p->clusters[p->cluster_count++] = copy_of(cluster);
    kubeconfig_later(p);
    return true;
}

static void fleet_cluster_remove(void *user, struct pl_str cluster)
{
    struct pl_playground *p = user;
    size_t kept = 0;

    for (struct feed *f = p->feeds; f; f = f->next)
        f->gone |= pl__str_equal(pl__str(f->cluster), cluster);
    for (size_t i = 0; i < p->cluster_count; i++) {
        if (pl__str_equal(pl__str(p->clusters[i]), cluster))
            free(p->clusters[i]);
        else
            p->clusters[kept++] = p->clusters[i];
    }
    p->cluster_count = kept;
    p->feeds_gone = true;
    /* When the disk is full it stays; every write says so, and nobody is shown the way to this cluster any more. */
    (void)pl_apiserver_cluster_remove(p->api, cluster);
    kubeconfig_later(p);
    uv_async_send(&p->tell);
}

/* --- handles ----------------------------------------------------------------------------------------- */

static void handles_start(struct pl_playground *p)
{
    uv_loop_t *uv = pl__loop_uv(p->loop);

    uv_async_init(uv, &p->tell, tell_fleet);
    uv_timer_init(uv, &p->write);
    uv_timer_init(uv, &p->reopen);
    p->tell.data = p->write.data = p->reopen.data = p;
}

/* --- its folder -------------------------------------------------------------------------------------- */

/* A folder that somebody else made, or can write to, is not ours. */
static bool folder_is_ours(const char *path)
{
    struct stat found;

    return lstat(path, &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == geteuid() &&
           (found.st_mode & 077) == 0;
}

/* One playground a folder, for as long as the process lives. */
static bool folder_lock(struct pl_playground *p)
{
    char path[PLAYGROUND_PATH_BYTES + 8];
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    snprintf(path, sizeof path, "%s/lock", p->directory);
    p->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (p->lock >= 0 && fcntl(p->lock, F_SETLK, &lock) == 0)
        return true;
    if (p->lock >= 0)
        close(p->lock);
    p->lock = -1;
    return false;
}

/* The one name that all ways to write it lead to: what is left of a playground is known by it. 0, or libuv's reason. */
static int folder_name(struct pl_playground *p, const char *path)
{
    uv_fs_t found;
    int failed = uv_fs_realpath(NULL, &found, path, NULL);
    size_t len = failed ? 0 : strlen(found.ptr);

    if (!failed && len >= sizeof p->directory - PATH_ROOM)
        failed = UV_ENAMETOOLONG;
    if (!failed)
        memcpy(p->directory, found.ptr, len + 1);
    uv_fs_req_cleanup(&found);
    return failed;
}

static const char *fleet_directory(const struct pl_playground *p, struct pl_arena *arena)
{
    return pl__str_format(arena, "%s/fleet", p->directory).ptr;
}

static bool folder_temporary_name(struct pl_playground *p, const char *base, int number)
{
    int len = snprintf(p->directory, sizeof p->directory, "%s/plimsoll-%u-%d", base,
                       (unsigned)geteuid(), number);

    return len >= 0 && (size_t)len < sizeof p->directory - PATH_ROOM;
}

/* What a crashed playground left in a folder that is not taken up again: its processes, and the folder. */
static void folders_sweep(const char *base, int mine, struct pl_arena *arena)
{
    for (int i = 1; i <= FOLDERS_MAX; i++) {
        struct pl_playground other = { .lock = -1 };
        if (i == mine || !folder_temporary_name(&other, base, i) ||
            !folder_is_ours(other.directory) || !folder_lock(&other))
            continue;
        pl__fleet_end_left(fleet_directory(&other, arena));
        pl__folder_remove(other.directory);
        close(other.lock);
    }
}

/* The same names each time, so that what a crashed one left is found and ended; others when several run. */
static int folder_temporary(struct pl_playground *p, struct pl_arena *arena, struct pl_error **err)
{
    const char *base = getenv("TMPDIR");

    base = base && *base ? base : "/tmp";
    int failed = folder_name(p, base);
    if (failed)
        return pl__error(arena, err, PL_IO, "TMPDIR %s: %s", base, uv_strerror(failed));
    base = pl__str_copy(arena, pl__str(p->directory)).ptr;
    for (int i = 1; i <= FOLDERS_MAX; i++) {
        if (!folder_temporary_name(p, base, i))
            return pl__error(arena, err, PL_LIMIT, "TMPDIR is too long");
        if (mkdir(p->directory, 0700) < 0 && errno != EEXIST)
            return pl__error(arena, err, PL_IO, "%s: %s", p->directory, strerror(errno));
        p->temporary = true;
        if (folder_is_ours(p->directory) && folder_lock(p)) {
            folders_sweep(base, i, arena);
            return 0;
        }
    }
    p->temporary = false;
    return pl__error(arena, err, PL_IO,
                     "%s: no folder to be had for a playground; --data names one", base);
}

static int folder_given(struct pl_playground *p, const char *path, struct pl_arena *arena,
                        struct pl_error **err)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return pl__error(arena, err, PL_IO, "%s: %s", path, strerror(errno));
    int failed = folder_name(p, path);
    if (failed)
        return pl__error(arena, err, PL_IO, "%s: %s", path, uv_strerror(failed));
    if (!folder_lock(p))
        return pl__error(arena, err, PL_IO,
                         "%s: another playground has it, or it cannot be written", path);
    return 0;
}

/* --- its life ---------------------------------------------------------------------------------------- */

static int open_api(struct pl_playground *p, bool keep, struct pl_arena *arena,
                    struct pl_error **err)
{
    struct pl_apiserver_options options = { .file = NULL };

    if (uv_random(NULL, NULL, &options.seed, sizeof options.seed, 0, NULL) < 0)
        return pl__error(arena, err, PL_IO, "no random numbers to be had");
    if (keep)
        options.file = pl__str_format(arena, "%s/objects.db", p->directory).ptr;
    p->api = pl_apiserver_open(&options, arena, err);
    if (!p->api)
        return -1;
    if (pl_apiserver_cluster_add(p->api, PL_STR(PLAYGROUND_MANAGEMENT), pl__loop_wall_ms()) < 0)
        return pl__error(arena, err, PL_IO, "the database cannot be written");
    return 0;
}

static int open_fleet(struct pl_playground *p, const struct pl_playground_options *o,
                      struct pl_arena *arena, struct pl_error **err)
{
    struct pl_fleet_options options = { .directory = fleet_directory(p, arena),
                                        .ns = PLAYGROUND_NAMESPACE,
                                        .cluster_count = o->clusters,
                                        .replicas = o->replicas,
                                        .workers = o->workers,
                                        .shared_etcd = o->shared_etcd,
                                        .keep = o->directory != NULL,
                                        .api = { .user = p,
                                                 .call = fleet_call,
                                                 .watch = fleet_watch,
                                                 .cluster_add = fleet_cluster_add,
                                                 .cluster_remove = fleet_cluster_remove,
                                                 .kubeconfig = pl__playground_kubeconfig },
                                        .said = o->said,
                                        .said_user = o->user };

    if (pl__folder_make(options.directory, arena, err) < 0)
        return -1;
    return pl__fleet_open(p->loop, &options, arena, &p->fleet, err);
}

/* --- the way in -------------------------------------------------------------------------------------- */

static struct pl_fleet_gate front_gate(void *user, struct pl_str cluster)
{
    const struct pl_playground *p = user;

    return p->fleet ? pl__fleet_gate(p->fleet, cluster) : (struct pl_fleet_gate){ .cut = true };
}

static const char *front_tunnel(void *user, struct pl_str cluster, struct pl_str pod, uint16_t port,
                                struct pl_fleet_target *target)
{
    const struct pl_playground *p = user;

    return p->fleet ? pl__fleet_tunnel(p->fleet, cluster, pod, port, target)
                    : "the playground has ended";
}

/* What listens everywhere is reached from here by loopback. */
static void host_take(struct pl_playground *p, const char *listen)
{
    size_t len = strlen(listen);

    while (len && listen[len - 1] != ':')
        len--;
    len -= len > 0;
    if (len == 0 || len >= sizeof p->host || (len == 7 && memcmp(listen, "0.0.0.0", 7) == 0))
        memcpy(p->host, "127.0.0.1", sizeof "127.0.0.1");
    else if (len == 4 && memcmp(listen, "[::]", 4) == 0)
        memcpy(p->host, "[::1]", sizeof "[::1]");
    else
        snprintf(p->host, sizeof p->host, "%.*s", (int)len, listen);
}

static int open_front(struct pl_playground *p, const struct pl_playground_options *o,
                      struct pl_arena *arena, struct pl_error **err)
{
    struct pl_front_options options = { .api = p->api,
                                        .management = PLAYGROUND_MANAGEMENT,
                                        .listen = o->listen,
                                        .token = o->token,
                                        .gate = front_gate,
                                        .tunnel = front_tunnel,
                                        .user = p };

    p->token = o->token;
    host_take(p, o->listen);
    return pl__front_open(p->loop, &options, arena, &p->front, err);
}

/* With too few, some conditions would never come: better to say so now. The front raises the limit as far as it
 * goes. */
static int files_check(const struct pl_playground_options *o, struct pl_arena *arena,
                       struct pl_error **err)
{
    uint64_t wanted =
        FILES_SPARED + (uint64_t)o->clusters * (FILES_PER_CLUSTER + FILES_PER_MEMBER * o->replicas);
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_max == RLIM_INFINITY ||
        limit.rlim_max >= wanted)
        return 0;
    return pl__error(arena, err, PL_LIMIT,
                     "%u Clusters need about %llu open files, and this process may have %llu: "
                     "raise the limit (ulimit -Hn), or make fewer (--clusters)",
                     o->clusters, (unsigned long long)wanted, (unsigned long long)limit.rlim_max);
}

static int open_all(struct pl_playground *p, const struct pl_playground_options *o,
                    struct pl_arena *arena, struct pl_error **err)
{
    if (files_check(o, arena, err) < 0)
        return -1;
    /* Tokens and keys are in most of what is made here, by SQLite and etcd, too. */
    umask(077);
    if ((o->directory ? folder_given(p, o->directory, arena, err)
                      : folder_temporary(p, arena, err)) < 0)
        return -1;
    snprintf(p->kubeconfig, sizeof p->kubeconfig, "%.*s/kubeconfig",
             (int)(sizeof p->kubeconfig - PATH_ROOM), p->directory);
    handles_start(p);
    /* The fleet writes kubeconfigs as soon as it begins, so the port has to be known; nobody can ask before
     * the loop runs. */
    if (open_api(p, o->directory != NULL, arena, err) < 0 || open_front(p, o, arena, err) < 0 ||
        open_fleet(p, o, arena, err) < 0)
        return -1;
    return kubeconfig_write(p, arena, err);
}

int pl__playground_open(struct pl_loop *loop, const struct pl_playground_options *options,
                        struct pl_arena *arena, struct pl_playground **playground,
                        struct pl_error **err)
{
    struct pl_playground *p = allocate(1, sizeof *p);

    p->loop = loop;
    p->lock = -1;
    p->ready_end = &p->ready;
    *playground = p;
    return open_all(p, options, arena, err);
}

struct pl_apiserver *pl__playground_api(struct pl_playground *p)
{
    return p->api;
}

struct pl_fleet *pl__playground_fleet(struct pl_playground *p)
{
    return p->fleet;
}

const char *pl__playground_kubeconfig_path(const struct pl_playground *p)
{
    return p->kubeconfig;
}

const char *pl__playground_directory(const struct pl_playground *p)
{
    return p->directory;
}

void pl__playground_stop(struct pl_playground *p, void (*done)(void *user), void *user)
{
    p->stopped = true;
    pl__fleet_stop(p->fleet, done, user);
}

void pl__playground_close(struct pl_playground *p)
{
    if (!p)
        return;
    p->stopped = true;
    pl__front_close(p->front);
    pl__fleet_free(p->fleet);
    p->fleet = NULL;
}

void pl__playground_free(struct pl_playground *p)
{
    if (!p)
        return;
    pl__front_free(p->front);
    while (p->feeds) {
        struct feed *f = p->feeds;
        p->feeds = f->next;
        feed_free(f);
    }
    pl_apiserver_close(p->api);
    for (size_t i = 0; i < p->cluster_count; i++)
        free(p->clusters[i]);
    free(p->clusters);
    if (p->temporary)
        pl__folder_remove(p->directory);
    if (p->lock >= 0)
        close(p->lock);
    free(p);
}
