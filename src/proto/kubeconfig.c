#include "proto/kubeconfig.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/base64.h"
#include "base/yaml.h"

enum {
    NAME_BYTES_SHOWN = 128, /* names of contexts come from the file: a message stays one line */
    ENTRY_COUNT_MAX = 10000,
};

/* The entries as the file has them. `source` is what their errors start with, `directory` what their
 * file names are relative to; both are filled when the file is added. */
struct cluster_entry {
    struct pl_str name, source, directory;
    struct pl_str server;
    struct pl_str ca_data, ca_file;
    bool insecure_skip_tls_verify;
    struct pl_str tls_server_name;
    struct pl_str proxy_url;
    bool disable_compression;
};

struct env_entry {
    struct pl_str name, value;
};

struct user_entry {
    struct pl_str name, source, directory;
    struct pl_str cert_data, cert_file;
    struct pl_str key_data, key_file;
    struct pl_str token, token_file;
    struct pl_str username, password;
    struct pl_str as_user, as_uid;
    PL_LIST(struct pl_str) as_groups;
    PL_LIST(struct pl_kube_extra) as_extra;
    bool auth_provider;
    struct pl_kube_exec exec;
    PL_LIST(struct env_entry) exec_env;
};

struct context_entry {
    struct pl_str name, source;
    struct pl_str cluster, user, namespace_;
};

struct file_root {
    struct pl_str kind, current_context;
    PL_LIST(struct cluster_entry) clusters;
    PL_LIST(struct user_entry) users;
    PL_LIST(struct context_entry) contexts;
};

struct pl_kubeconfig {
    struct pl_arena *arena;
    struct file_root root;
    struct pl_str sources; /* for messages: the files, joined */
};

/* A string as Kubernetes' own reader takes it: a bare `password: 123456` is a number in YAML and
 * still means the digits. It also keeps such a credential out of an error message. */
static int read_text(struct pl_json *j, void *destination)
{
    struct pl_str *text = destination;
    int type = pl__json_peek(j);

    if (type == JSON_STRING)
        return pl__json_string(j, text);
    const char *start = j->at;
    if (type != JSON_NUMBER && type != JSON_TRUE && type != JSON_FALSE)
        return pl__json_error(j, start, PL_INVALID, "must be a string");
    if (pl__json_skip(j) < 0)
        return -1;
    *text = pl__str_copy(j->arena, (struct pl_str){ start, (size_t)(j->at - start) });
    return 0;
}

/* {"key": ["value", ...], ...} as one row for each value. */
static int read_extra(struct pl_json *j, void *destination)
{
    struct {
        struct pl_kube_extra *items;
        uint32_t count;
        bool present;
    } *list = destination;
    struct pl_str key;
    int more;

    list->present = true;
    for (more = pl__json_object(j); (more = pl__json_key(j, &key)) > 0;) {
        key = pl__str_copy(j->arena, key);
        for (more = pl__json_array(j); (more = pl__json_item(j)) > 0;) {
            if (list->count == ENTRY_COUNT_MAX)
                return pl__json_error(j, j->at, PL_LIMIT, "more than %d values", ENTRY_COUNT_MAX);
            size_t size = list->count * sizeof *list->items;
            list->items = pl__arena_grow(j->arena, list->items, size, size + sizeof *list->items);
            struct pl_kube_extra *extra = &list->items[list->count++];
            extra->key = key;
            if (pl__json_string(j, &extra->value) < 0)
                return -1;
        }
        if (more < 0)
            return -1;
    }
    return more;
}

/* clang-format off */

static const struct pl_field cluster_fields[] = {
    PL_FIELD_CUSTOM("name",                             struct cluster_entry, name,            read_text),
    PL_FIELD_CUSTOM("cluster.server",                     struct cluster_entry, server,          read_text),
    PL_FIELD_CUSTOM("cluster.certificate-authority-data", struct cluster_entry, ca_data,         read_text),
    PL_FIELD_CUSTOM("cluster.certificate-authority",      struct cluster_entry, ca_file,         read_text),
    PL_FIELD("cluster.insecure-skip-tls-verify",  F_BOOL, struct cluster_entry, insecure_skip_tls_verify),
    PL_FIELD_CUSTOM("cluster.tls-server-name",            struct cluster_entry, tls_server_name, read_text),
    PL_FIELD_CUSTOM("cluster.proxy-url",                  struct cluster_entry, proxy_url,       read_text),
    PL_FIELD("cluster.disable-compression",       F_BOOL, struct cluster_entry, disable_compression),
};
static const struct pl_shape cluster_shape = {
    .fields = cluster_fields, .field_count = sizeof cluster_fields / sizeof cluster_fields[0],
    .size = sizeof(struct cluster_entry), .count_max = ENTRY_COUNT_MAX,
};

static const struct pl_field env_fields[] = {
    PL_FIELD_CUSTOM("name",  struct env_entry, name,  read_text),
    PL_FIELD_CUSTOM("value", struct env_entry, value, read_text),
};
static PL_SHAPE(env_shape, struct env_entry, env_fields);

static const struct pl_field user_fields[] = {
    PL_FIELD_CUSTOM("name",                         struct user_entry, name,       read_text),
    PL_FIELD_CUSTOM("user.client-certificate-data", struct user_entry, cert_data,  read_text),
    PL_FIELD_CUSTOM("user.client-certificate",      struct user_entry, cert_file,  read_text),
    PL_FIELD_CUSTOM("user.client-key-data",         struct user_entry, key_data,   read_text),
    PL_FIELD_CUSTOM("user.client-key",              struct user_entry, key_file,   read_text),
    PL_FIELD_CUSTOM("user.token",                   struct user_entry, token,      read_text),
    PL_FIELD_CUSTOM("user.tokenFile",               struct user_entry, token_file, read_text),
    PL_FIELD_CUSTOM("user.username",                struct user_entry, username,   read_text),
    PL_FIELD_CUSTOM("user.password",                struct user_entry, password,   read_text),
    PL_FIELD_CUSTOM("user.as",                      struct user_entry, as_user,    read_text),
    PL_FIELD_CUSTOM("user.as-uid",                  struct user_entry, as_uid,     read_text),
    PL_FIELD("user.as-groups",           F_STRINGS, struct user_entry, as_groups),
    PL_FIELD_CUSTOM("user.as-user-extra",           struct user_entry, as_extra,   read_extra),
    PL_FIELD("user.auth-provider",       F_PRESENT, struct user_entry, auth_provider),
    PL_FIELD("user.exec",                F_PRESENT, struct user_entry, exec.present),
    PL_FIELD_CUSTOM("user.exec.command",            struct user_entry, exec.command,          read_text),
    PL_FIELD_CUSTOM("user.exec.apiVersion",         struct user_entry, exec.api_version,      read_text),
    PL_FIELD_CUSTOM("user.exec.interactiveMode",    struct user_entry, exec.interactive_mode, read_text),
    PL_FIELD_CUSTOM("user.exec.installHint",        struct user_entry, exec.install_hint,     read_text),
    PL_FIELD("user.exec.provideClusterInfo", F_BOOL, struct user_entry, exec.provide_cluster_info),
    PL_FIELD("user.exec.args",            F_STRINGS, struct user_entry, exec.args),
    PL_FIELD_SHAPE("user.exec.env",          F_LIST, struct user_entry, exec_env, &env_shape),
};
static const struct pl_shape user_shape = {
    .fields = user_fields, .field_count = sizeof user_fields / sizeof user_fields[0],
    .size = sizeof(struct user_entry), .count_max = ENTRY_COUNT_MAX,
};

static const struct pl_field context_fields[] = {
    PL_FIELD_CUSTOM("name",              struct context_entry, name,       read_text),
    PL_FIELD_CUSTOM("context.cluster",   struct context_entry, cluster,    read_text),
    PL_FIELD_CUSTOM("context.user",      struct context_entry, user,       read_text),
    PL_FIELD_CUSTOM("context.namespace", struct context_entry, namespace_, read_text),
};
static const struct pl_shape context_shape = {
    .fields = context_fields, .field_count = sizeof context_fields / sizeof context_fields[0],
    .size = sizeof(struct context_entry), .count_max = ENTRY_COUNT_MAX,
};

static const struct pl_field root_fields[] = {
    PL_FIELD_CUSTOM("kind",            struct file_root, kind,            read_text),
    PL_FIELD_CUSTOM("current-context", struct file_root, current_context, read_text),
    PL_FIELD_SHAPE("clusters", F_LIST, struct file_root, clusters, &cluster_shape),
    PL_FIELD_SHAPE("users",    F_LIST, struct file_root, users,    &user_shape),
    PL_FIELD_SHAPE("contexts", F_LIST, struct file_root, contexts, &context_shape),
};
static PL_SHAPE(root_shape, struct file_root, root_fields);

/* clang-format on */

struct pl_kubeconfig *pl__kubeconfig_new(struct pl_arena *arena)
{
    struct pl_kubeconfig *k = PL_NEW(arena, struct pl_kubeconfig, 1);

    k->arena = arena;
    return k;
}

bool pl__kubeconfig_empty(const struct pl_kubeconfig *k)
{
    return k->root.clusters.count == 0 && k->root.users.count == 0 && k->root.contexts.count == 0;
}

/* --- finding entries ------------------------------------------------------------------------- */

/* All three entries start with their name. Linear: a kubeconfig has a handful. */
static const void *entry_find(const void *items, uint32_t count, size_t size, struct pl_str name)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *item = (const char *)items + i * size;
        if (pl__str_equal(*(const struct pl_str *)(const void *)item, name))
            return item;
    }
    return NULL;
}

#define FIND(list, name_) entry_find((list).items, (list).count, sizeof *(list).items, (name_))

/* Appends those of `more` whose names are not there yet. */
static void entries_merge(struct pl_arena *arena, struct pl_list *list, const struct pl_list *more,
                          size_t size)
{
    uint32_t before = list->count;
    char *merged = PL_NEW(arena, char, (before + more->count) * size);

    if (before)
        memcpy(merged, list->items, before * size);
    for (uint32_t i = 0; i < more->count; i++) {
        const char *item = (const char *)more->items + i * size;
        if (!entry_find(merged, list->count, size, *(const struct pl_str *)(const void *)item))
            memcpy(merged + (list->count++) * size, item, size);
    }
    list->items = merged;
}

#define MERGE(arena, list, more)                                               \
    do {                                                                       \
        struct pl_list to_ = { (list).items, (list).count, (list).present };   \
        struct pl_list from_ = { (more).items, (more).count, (more).present }; \
        entries_merge((arena), &to_, &from_, sizeof *(list).items);            \
        (list).items = to_.items;                                              \
        (list).count = to_.count;                                              \
    } while (0)

/* --- reading one file ------------------------------------------------------------------------ */

static int file_decode(struct pl_arena *arena, struct pl_str text, struct pl_str source,
                       struct file_root *root, struct pl_error **err)
{
    struct pl_yaml_limits limits = { .json_bytes_max = PL_KUBECONFIG_BYTES_MAX };
    struct pl_position_map positions;
    struct pl_str json;
    struct pl_json j;

    if (text.len > PL_KUBECONFIG_BYTES_MAX)
        return pl__error(arena, err, PL_LIMIT, "%.*s: larger than 16 MiB", PL_STR_ARG(source));
    if (pl__yaml_to_json(arena, text, source, limits, &json, &positions, err) < 0)
        return -1;
    pl__json_init(&j, json, source, arena, 0, err);
    j.positions = &positions;
    if (pl__json_at_end(&j))
        return 0; /* kubectl takes an empty file, too */
    if (pl__json_decode(&j, &root_shape, root) < 0)
        return -1;
    if (!pl__json_at_end(&j))
        return pl__json_error(&j, j.at, PL_INVALID, "a kubeconfig is one document, here are more");
    if (root->kind.len && !pl__str_equal(root->kind, PL_STR("Config")))
        return pl__error(
            arena, err, PL_INVALID, "%.*s: not a kubeconfig: kind is %.*s", PL_STR_ARG(source),
            (int)(root->kind.len < NAME_BYTES_SHOWN ? root->kind.len : NAME_BYTES_SHOWN),
            root->kind.ptr);
    return 0;
}

/* "NAME=value", the form that a process wants. */
static int exec_env_join(struct pl_arena *arena, struct user_entry *user, struct pl_error **err)
{
    user->exec.env.items = PL_NEW(arena, struct pl_str, user->exec_env.count);
    for (uint32_t i = 0; i < user->exec_env.count; i++) {
        const struct env_entry *env = &user->exec_env.items[i];
        if (env->name.len == 0 || memchr(env->name.ptr, '=', env->name.len))
            return pl__error(arena, err, PL_INVALID,
                             "%.*s: user \"%.*s\": exec.env[%u] has no usable name",
                             PL_STR_ARG(user->source), PL_STR_ARG(user->name), i);
        struct pl_buf pair;
        pl__buf_init(&pair, arena, SIZE_MAX / 4);
        pl__buf_add(&pair, env->name);
        pl__buf_add_char(&pair, '=');
        pl__buf_add(&pair, env->value);
        user->exec.env.items[user->exec.env.count++] = pl__buf_str(&pair);
    }
    return 0;
}

int pl__kubeconfig_add(struct pl_kubeconfig *k, struct pl_str text, struct pl_str source,
                       struct pl_str directory, struct pl_error **err)
{
    struct file_root more = { 0 };

    source = pl__str_copy(k->arena, source);
    directory = pl__str_copy(k->arena, directory);
    if (file_decode(k->arena, text, source, &more, err) < 0)
        return -1;
    for (uint32_t i = 0; i < more.clusters.count; i++) {
        more.clusters.items[i].source = source;
        more.clusters.items[i].directory = directory;
    }
    for (uint32_t i = 0; i < more.users.count; i++) {
        more.users.items[i].source = source;
        more.users.items[i].directory = directory;
        if (exec_env_join(k->arena, &more.users.items[i], err) < 0)
            return -1;
    }
    for (uint32_t i = 0; i < more.contexts.count; i++)
        more.contexts.items[i].source = source;
    MERGE(k->arena, k->root.clusters, more.clusters);
    MERGE(k->arena, k->root.users, more.users);
    MERGE(k->arena, k->root.contexts, more.contexts);
    if (k->root.current_context.len == 0)
        k->root.current_context = more.current_context;
    k->sources = k->sources.len == 0 ? source
                                     : pl__str_format(k->arena, "%.*s:%.*s", PL_STR_ARG(k->sources),
                                                      PL_STR_ARG(source));
    return 0;
}

/* --- putting a context together ---------------------------------------------------------------- */

static bool is_absolute(struct pl_str path)
{
    return path.len > 0 && path.ptr[0] == '/';
}

static struct pl_str path_join(struct pl_arena *arena, struct pl_str directory, struct pl_str path)
{
    if (path.len == 0 || is_absolute(path) || directory.len == 0)
        return path;
    return pl__str_format(arena, "%.*s%s%.*s", PL_STR_ARG(directory),
                          pl__str_ends_with(directory, PL_STR("/")) ? "" : "/", PL_STR_ARG(path));
}

__attribute__((format(printf, 4, 5))) static int cluster_error(struct pl_arena *arena,
                                                               const struct cluster_entry *c,
                                                               struct pl_error **err,
                                                               const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return pl__error(arena, err, PL_INVALID, "%.*s: cluster \"%.*s\": %s", PL_STR_ARG(c->source),
                     PL_STR_ARG(c->name), text);
}

static int user_error(struct pl_arena *arena, const struct user_entry *u, struct pl_error **err,
                      const char *text)
{
    return pl__error(arena, err, PL_INVALID, "%.*s: user \"%.*s\": %s", PL_STR_ARG(u->source),
                     PL_STR_ARG(u->name), text);
}

/* Cuts query and fragment, then the slashes at the end of the path. */
static struct pl_str url_trim(struct pl_str url)
{
    for (size_t i = 0; i < url.len; i++)
        if (url.ptr[i] == '?' || url.ptr[i] == '#')
            url.len = i;
    while (url.len > 0 && url.ptr[url.len - 1] == '/')
        url.len--;
    return url;
}

/* NULL when host, port and the rest of a server's URL can be used. */
static const char *url_fault(struct pl_str url)
{
    size_t scheme_len = pl__str_starts_with(url, PL_STR("https://"))  ? 8
                        : pl__str_starts_with(url, PL_STR("http://")) ? 7
                                                                      : 0;

    if (scheme_len == 0)
        return "server must start with https:// or http://";
    if (url.len == scheme_len || url.ptr[scheme_len] == '/' || url.ptr[scheme_len] == ':')
        return "server names no host";
    for (size_t i = scheme_len; i < url.len; i++) {
        unsigned char c = (unsigned char)url.ptr[i];
        if (c <= ' ' || c == 0x7f)
            return "server has white space or control characters in it";
    }
    const char *slash = memchr(url.ptr + scheme_len, '/', url.len - scheme_len);
    size_t authority_len = slash ? (size_t)(slash - url.ptr) - scheme_len : url.len - scheme_len;
    if (memchr(url.ptr + scheme_len, '@', authority_len))
        return "server must not carry a user name or password";
    return NULL;
}

/* Without a scheme client-go takes https when anything about TLS is configured. */
static struct pl_str server_url(struct pl_arena *arena, const struct cluster_entry *c,
                                const struct user_entry *u)
{
    struct pl_str url = url_trim(c->server);
    bool tls = c->ca_data.len || c->ca_file.len || c->insecure_skip_tls_verify ||
               (u && (u->cert_data.len || u->cert_file.len));

    if (pl__str_contains(c->server, PL_STR("://")) || url.len == 0)
        return pl__str_copy(arena, url);
    return pl__str_format(arena, "%s://%.*s", tls ? "https" : "http", PL_STR_ARG(url));
}

static bool proxy_url_ok(struct pl_str url)
{
    static const char *const schemes[] = { "http://", "https://", "socks5://", "socks5h://" };

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (pl__str_starts_with(url, pl__str(schemes[i])) && url.len > strlen(schemes[i]))
            return true;
    return false;
}

static int cluster_resolve(struct pl_arena *arena, const struct cluster_entry *c,
                           const struct user_entry *u, struct pl_kube_config *config,
                           struct pl_error **err)
{
    if (c->server.len == 0)
        return cluster_error(arena, c, err, "no server");
    config->server = server_url(arena, c, u);
    const char *fault = url_fault(config->server);
    if (fault)
        return cluster_error(arena, c, err, "%s", fault);
    if (c->insecure_skip_tls_verify && (c->ca_data.len || c->ca_file.len))
        return cluster_error(
            arena, c, err,
            "insecure-skip-tls-verify and a certificate authority exclude each other");
    if (c->ca_data.len && pl__base64_decode(arena, c->ca_data, &config->ca_pem) < 0)
        return cluster_error(arena, c, err, "certificate-authority-data is not base64");
    if (!c->ca_data.len)
        config->ca_file = path_join(arena, c->directory, c->ca_file);
    if (c->proxy_url.len && !proxy_url_ok(c->proxy_url))
        return cluster_error(arena, c, err,
                             "proxy-url must start with http://, https:// or socks5://");
    config->insecure_skip_tls_verify = c->insecure_skip_tls_verify;
    config->tls_server_name = c->tls_server_name;
    config->proxy_url = c->proxy_url;
    config->disable_compression = c->disable_compression;
    return 0;
}

static const char *exec_fault(const struct pl_kube_exec *exec)
{
    bool is_v1 = pl__str_equal(exec->api_version, PL_STR("client.authentication.k8s.io/v1"));
    bool is_v1beta1 =
        pl__str_equal(exec->api_version, PL_STR("client.authentication.k8s.io/v1beta1"));

    if (!exec->present)
        return NULL;
    if (exec->command.len == 0)
        return "exec has no command";
    if (!is_v1 && !is_v1beta1)
        return "exec.apiVersion must be client.authentication.k8s.io/v1 or v1beta1";
    if (exec->interactive_mode.len == 0)
        return is_v1 ? "exec.interactiveMode is required with client.authentication.k8s.io/v1"
                     : NULL;
    if (pl__str_equal(exec->interactive_mode, PL_STR("Always")))
        return "exec.interactiveMode is Always, but plimsoll gives a plugin no terminal";
    if (!pl__str_equal(exec->interactive_mode, PL_STR("Never")) &&
        !pl__str_equal(exec->interactive_mode, PL_STR("IfAvailable")))
        return "exec.interactiveMode must be Never, IfAvailable or Always";
    return NULL;
}

/* What cannot be meant; NULL when all is well. */
static const char *user_fault(const struct user_entry *u)
{
    bool token = u->token.len || u->token_file.len;
    bool basic = u->username.len || u->password.len;
    bool cert = u->cert_data.len || u->cert_file.len;
    bool key = u->key_data.len || u->key_file.len;

    if (token && basic)
        return "a token and a user name with password exclude each other";
    if (u->auth_provider)
        return "auth-provider is gone from Kubernetes: use exec";
    if (cert && !key)
        return "client-certificate without client-key";
    if (key && !cert)
        return "client-key without client-certificate";
    if (u->as_user.len == 0 && (u->as_uid.len || u->as_groups.count || u->as_extra.count))
        return "as-uid, as-groups and as-user-extra need as";
    return exec_fault(&u->exec);
}

static int user_resolve(struct pl_arena *arena, const struct user_entry *u,
                        struct pl_kube_config *config, struct pl_error **err)
{
    const char *fault = user_fault(u);

    if (fault)
        return user_error(arena, u, err, fault);
    if (u->cert_data.len && pl__base64_decode(arena, u->cert_data, &config->client_cert_pem) < 0)
        return user_error(arena, u, err, "client-certificate-data is not base64");
    if (u->key_data.len && pl__base64_decode(arena, u->key_data, &config->client_key_pem) < 0)
        return user_error(arena, u, err, "client-key-data is not base64");
    if (!u->cert_data.len)
        config->client_cert_file = path_join(arena, u->directory, u->cert_file);
    if (!u->key_data.len)
        config->client_key_file = path_join(arena, u->directory, u->key_file);
    config->token = u->token;
    config->token_file = path_join(arena, u->directory, u->token_file);
    config->username = u->username;
    config->password = u->password;
    config->as_user = u->as_user;
    config->as_uid = u->as_uid;
    config->as_groups.items = u->as_groups.items;
    config->as_groups.count = u->as_groups.count;
    config->as_extra.items = u->as_extra.items;
    config->as_extra.count = u->as_extra.count;
    config->exec = u->exec;
    /* A bare name is looked up in $PATH; a path is relative to the file that has it. */
    if (u->exec.present && memchr(u->exec.command.ptr, '/', u->exec.command.len))
        config->exec.command = path_join(arena, u->directory, u->exec.command);
    return 0;
}

int pl__kubeconfig_resolve(const struct pl_kubeconfig *k, struct pl_str context,
                           struct pl_kube_config *config, struct pl_error **err)
{
    const struct file_root *root = &k->root;
    struct pl_kube_config found = { 0 };

    if (context.len == 0)
        context = root->current_context;
    if (context.len == 0)
        return pl__error(k->arena, err, PL_NOT_FOUND,
                         "%.*s: no current-context is set and no context was asked for",
                         PL_STR_ARG(k->sources));
    const struct context_entry *c = FIND(root->contexts, context);
    if (!c)
        return pl__error(k->arena, err, PL_NOT_FOUND, "%.*s: no context \"%.*s\"",
                         PL_STR_ARG(k->sources), PL_STR_ARG(context));
    const struct cluster_entry *cluster = FIND(root->clusters, c->cluster);
    if (!cluster)
        return pl__error(k->arena, err, PL_NOT_FOUND, "%.*s: context \"%.*s\": no cluster \"%.*s\"",
                         PL_STR_ARG(c->source), PL_STR_ARG(c->name), PL_STR_ARG(c->cluster));
    const struct user_entry *user = c->user.len ? FIND(root->users, c->user) : NULL;
    if (c->user.len && !user)
        return pl__error(k->arena, err, PL_NOT_FOUND, "%.*s: context \"%.*s\": no user \"%.*s\"",
                         PL_STR_ARG(c->source), PL_STR_ARG(c->name), PL_STR_ARG(c->user));
    found.namespace_ = c->namespace_.len ? c->namespace_ : PL_STR("default");
    if (cluster_resolve(k->arena, cluster, user, &found, err) < 0)
        return -1;
    if (user && user_resolve(k->arena, user, &found, err) < 0)
        return -1;
    *config = found;
    return 0;
}

int pl__kubeconfig_parse(struct pl_arena *arena, struct pl_str text, struct pl_str source,
                         struct pl_str directory, struct pl_str context,
                         struct pl_kube_config *config, struct pl_error **err)
{
    struct pl_kubeconfig *k = pl__kubeconfig_new(arena);

    if (pl__kubeconfig_add(k, text, source, directory, err) < 0)
        return -1;
    return pl__kubeconfig_resolve(k, context, config, err);
}

/* --- copying ------------------------------------------------------------------------------------ */

static struct pl_str *copy_strings(struct pl_arena *arena, const struct pl_str *items,
                                   uint32_t count)
{
    struct pl_str *copies = PL_NEW(arena, struct pl_str, count);

    for (uint32_t i = 0; i < count; i++)
        copies[i] = pl__str_copy(arena, items[i]);
    return copies;
}

void pl__kube_config_copy(struct pl_arena *arena, const struct pl_kube_config *from,
                          struct pl_kube_config *to)
{
    *to = *from;
    struct pl_str *const strings[] = {
        &to->server,
        &to->namespace_,
        &to->ca_pem,
        &to->ca_file,
        &to->tls_server_name,
        &to->proxy_url,
        &to->client_cert_pem,
        &to->client_cert_file,
        &to->client_key_pem,
        &to->client_key_file,
        &to->token,
        &to->token_file,
        &to->username,
        &to->password,
        &to->as_user,
        &to->as_uid,
        &to->exec.command,
        &to->exec.api_version,
        &to->exec.interactive_mode,
        &to->exec.install_hint,
    };
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++)
        *strings[i] = pl__str_copy(arena, *strings[i]);
    to->as_groups.items = copy_strings(arena, from->as_groups.items, from->as_groups.count);
    to->exec.args.items = copy_strings(arena, from->exec.args.items, from->exec.args.count);
    to->exec.env.items = copy_strings(arena, from->exec.env.items, from->exec.env.count);
    to->as_extra.items = PL_NEW(arena, struct pl_kube_extra, from->as_extra.count);
    for (uint32_t i = 0; i < from->as_extra.count; i++)
        to->as_extra.items[i] = (struct pl_kube_extra){
            .key = pl__str_copy(arena, from->as_extra.items[i].key),
            .value = pl__str_copy(arena, from->as_extra.items[i].value),
        };
}
