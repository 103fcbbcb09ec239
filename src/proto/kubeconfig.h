/* proto/kubeconfig.h - how to reach and be known to one Kubernetes API server.
 *
 * Bytes in, a struct out: parsing only. Files that it names are read by loop/, which then fills the
 * `_pem` fields. Never log or print one of these: it holds credentials. An arena made with
 * pl__secret_allocator (base/secret.h) wipes them when it is released. */
#ifndef PL_PROTO_KUBECONFIG_H
#define PL_PROTO_KUBECONFIG_H

#include "base/error.h"
#include "base/json.h"

/* A credential plugin (reference 1.3). */
struct pl_kube_exec {
    bool present;
    struct pl_str command; /* a path, or a name to be found in $PATH */
    struct pl_str api_version;
    struct pl_str interactive_mode;
    struct pl_str install_hint; /* what to tell whoever does not have the command */
    bool provide_cluster_info;
    PL_LIST(struct pl_str) args;
    PL_LIST(struct pl_str) env; /* "NAME=value" */
};

/* One value of `as-user-extra`; keys repeat. */
struct pl_kube_extra {
    struct pl_str key;
    struct pl_str value;
};

/* One context of a kubeconfig, put together. PEM where it says PEM: already decoded from base64. Of
 * a `_pem` and its `_file` at most one is set by parsing: embedded data wins. */
struct pl_kube_config {
    struct pl_str server;     /* https://host:port[/prefix], no slash at the end */
    struct pl_str namespace_; /* of the context; "default" when it has none */
    struct pl_str ca_pem, ca_file;
    bool insecure_skip_tls_verify;
    struct pl_str tls_server_name;
    struct pl_str proxy_url;
    bool disable_compression;
    struct pl_str client_cert_pem, client_cert_file;
    struct pl_str client_key_pem, client_key_file;
    struct pl_str token, token_file; /* with both, the last successful read of the file wins */
    struct pl_str username, password;
    struct pl_str as_user, as_uid;
    PL_LIST(struct pl_str) as_groups;
    PL_LIST(struct pl_kube_extra) as_extra;
    struct pl_kube_exec exec;
};

enum { PL_KUBECONFIG_BYTES_MAX = 16 * 1024 * 1024 };

/* Parses kubeconfig text (YAML or JSON) and resolves `context` (empty: the current one). File names
 * that are relative are made absolute with `directory`. 0, or -1 with an error that never quotes a
 * credential. */
int pl__kubeconfig_parse(struct pl_arena *arena, struct pl_str text, struct pl_str source,
                         struct pl_str directory, struct pl_str context,
                         struct pl_kube_config *config, struct pl_error **err);

/* The same in two steps, for several files as $KUBECONFIG names them: of entries with one name, and
 * of current contexts, the first that was added stays. All in the arena. */
struct pl_kubeconfig;
struct pl_kubeconfig *pl__kubeconfig_new(struct pl_arena *arena);
int pl__kubeconfig_add(struct pl_kubeconfig *k, struct pl_str text, struct pl_str source,
                       struct pl_str directory, struct pl_error **err);
int pl__kubeconfig_resolve(const struct pl_kubeconfig *k, struct pl_str context,
                           struct pl_kube_config *config, struct pl_error **err);

/* True when no file had a cluster, a user or a context: as good as no kubeconfig. */
bool pl__kubeconfig_empty(const struct pl_kubeconfig *k);

/* A copy that shares nothing with the original. */
void pl__kube_config_copy(struct pl_arena *arena, const struct pl_kube_config *from,
                          struct pl_kube_config *to);

#endif
