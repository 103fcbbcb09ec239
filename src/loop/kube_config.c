/* Where the configuration comes from: files, the environment, the cluster we run in. */
#include <stdlib.h>

#include "base/secret.h"
#include "loop/files.h"
#include "loop/kube.h"
#include "loop/kube_config.h"

enum { PEM_BYTES_MAX = 4 * 1024 * 1024, NAMESPACE_BYTES_MAX = 1024, LIST_FILE_COUNT_MAX = 100 };

static const char in_cluster_directory[] = "/var/run/secrets/kubernetes.io/serviceaccount";

static struct pl_str directory_of(struct pl_arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return PL_STR(".");
    if (slash == path)
        return PL_STR("/");
    return pl__str_copy(arena, (struct pl_str){ path, (size_t)(slash - path) });
}

static int add_file(struct pl_kubeconfig *k, struct pl_arena *arena, const char *path,
                    struct pl_error **err)
{
    struct pl_str text;

    if (pl__file_read(arena, path, PL_KUBECONFIG_BYTES_MAX, &text, err) < 0)
        return -1;
    return pl__kubeconfig_add(k, text, pl__str(path), directory_of(arena, path), err);
}

/* One of several files may be missing, as with kubectl: it is where a tool would write later. */
static int add_optional_file(struct pl_kubeconfig *k, struct pl_arena *arena, struct pl_str path,
                             struct pl_error **err)
{
    struct pl_error *cause = NULL;

    if (path.len == 0)
        return 0;
    if (add_file(k, arena, pl__str_copy(arena, path).ptr, &cause) == 0 ||
        cause->code == PL_NOT_FOUND)
        return 0;
    if (err)
        *err = cause;
    return -1;
}

static int add_list(struct pl_kubeconfig *k, struct pl_arena *arena, const char *list,
                    struct pl_error **err)
{
    for (int i = 0; i < LIST_FILE_COUNT_MAX; i++) {
        size_t len = strcspn(list, ":");
        if (add_optional_file(k, arena, (struct pl_str){ list, len }, err) < 0)
            return -1;
        if (list[len] == '\0')
            return 0;
        list += len + 1;
    }
    return pl__error(arena, err, PL_LIMIT, "KUBECONFIG names more than %d files",
                     LIST_FILE_COUNT_MAX);
}

static int read_pem(struct pl_arena *arena, struct pl_str file, struct pl_str *pem,
                    const char *what, struct pl_error **err)
{
    struct pl_error *cause = NULL;

    if (file.len == 0)
        return 0;
    if (pl__file_read(arena, pl__str_copy(arena, file).ptr, PEM_BYTES_MAX, pem, &cause) < 0)
        return pl__fail(arena, err, cause, "%s", what);
    return 0;
}

int pl__kube_config_read_files(struct pl_arena *arena, struct pl_kube_config *config,
                               struct pl_error **err)
{
    if (read_pem(arena, config->ca_file, &config->ca_pem, "certificate authority", err) < 0 ||
        read_pem(arena, config->client_cert_file, &config->client_cert_pem, "client certificate",
                 err) < 0 ||
        read_pem(arena, config->client_key_file, &config->client_key_pem, "client key", err) < 0)
        return -1;
    return 0;
}

static struct pl_str trimmed(struct pl_str s)
{
    while (s.len > 0 && (unsigned char)s.ptr[s.len - 1] <= ' ')
        s.len--;
    while (s.len > 0 && (unsigned char)s.ptr[0] <= ' ') {
        s.ptr++;
        s.len--;
    }
    return s;
}

int pl__kube_config_in_cluster(struct pl_arena *arena, const char *directory,
                               struct pl_kube_config *config, struct pl_error **err)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");
    bool bracket = host && strchr(host, ':') && host[0] != '[';
    struct pl_error *ignored = NULL;
    struct pl_str name;

    if (!host || !*host || !port || !*port)
        return pl__error(arena, err, PL_NOT_FOUND,
                         "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
    *config = (struct pl_kube_config){
        .server = pl__str_format(arena, "https://%s%s%s:%s", bracket ? "[" : "", host,
                                 bracket ? "]" : "", port),
        .namespace_ = PL_STR("default"),
        .ca_file = pl__str_format(arena, "%s/ca.crt", directory),
        .token_file = pl__str_format(arena, "%s/token", directory),
    };
    /* Only the token cannot be done without; client-go runs without the CA file, too, and trusts
     * the system's then. */
    if (pl__file_read(arena, config->token_file.ptr, PEM_BYTES_MAX, &name, err) < 0)
        return -1;
    if (pl__file_mark(config->ca_file.ptr).inode == 0)
        config->ca_file = (struct pl_str){ 0 };
    struct pl_str file = pl__str_format(arena, "%s/namespace", directory);
    if (pl__file_read(arena, file.ptr, NAMESPACE_BYTES_MAX, &name, &ignored) == 0 &&
        trimmed(name).len > 0)
        config->namespace_ = trimmed(name);
    return pl__kube_config_read_files(arena, config, err);
}

/* Nothing named a cluster: the one that we run in, or a message that says what was looked for. */
static int load_in_cluster(struct pl_arena *arena, struct pl_kube_config *config,
                           struct pl_error **err)
{
    struct pl_error *cause = NULL;

    if (!getenv("KUBERNETES_SERVICE_HOST"))
        return pl__error(
            arena, err, PL_NOT_FOUND,
            "no kubeconfig: looked at --kubeconfig, $KUBECONFIG and ~/.kube/config, and "
            "this is not a Pod");
    if (pl__kube_config_in_cluster(arena, in_cluster_directory, config, &cause) < 0)
        return pl__fail(arena, err, cause, "in-cluster configuration");
    return 0;
}

static int load(struct pl_arena *arena, const char *path, const char *context,
                struct pl_kube_config *config, struct pl_error **err)
{
    struct pl_kubeconfig *k = pl__kubeconfig_new(arena);
    const char *list = getenv("KUBECONFIG");
    const char *home = getenv("HOME");
    int result = 0;

    if (path && *path)
        result = add_file(k, arena, path, err);
    else if (list && *list)
        result = add_list(k, arena, list, err);
    else if (home && *home)
        result = add_optional_file(k, arena, pl__str_format(arena, "%s/.kube/config", home), err);
    if (result < 0)
        return -1;
    if (pl__kubeconfig_empty(k) && !(path && *path) && !(context && *context))
        return load_in_cluster(arena, config, err);
    if (pl__kubeconfig_empty(k))
        return pl__error(arena, err, PL_NOT_FOUND, "%s: no cluster in it",
                         path && *path   ? path
                         : list && *list ? list
                                         : "~/.kube/config");
    if (pl__kubeconfig_resolve(k, pl__str(context), config, err) < 0)
        return -1;
    return pl__kube_config_read_files(arena, config, err);
}

/* The whole of the files is read into memory that is wiped; what is asked for is copied out. */
int pl__kube_config_load(struct pl_arena *arena, const char *path, const char *context,
                         struct pl_kube_config *config, struct pl_error **err)
{
    struct pl_kube_config found = { 0 };
    struct pl_error *cause = NULL;
    struct pl_arena scratch;

    pl__arena_init(&scratch, &pl__secret_allocator, 0);
    int result = load(&scratch, path, context, &found, &cause);
    if (result == 0)
        pl__kube_config_copy(arena, &found, config);
    else
        pl__error(arena, err, cause->code, "%s", pl__error_text(&scratch, cause).ptr);
    pl__arena_release(&scratch);
    return result;
}
