#include "proto/exec_credential.h"

#include "base/base64.h"

enum { INFO_BYTES_MAX = 4 * 1024 * 1024 };

struct reply {
    struct pl_str kind, api_version;
    bool has_status;
    struct pl_exec_credential status;
};

/* clang-format off */
static const struct pl_field reply_fields[] = {
    PL_FIELD("kind",       F_STR, struct reply, kind),
    PL_FIELD("apiVersion", F_STR, struct reply, api_version),
    PL_FIELD("status",  F_PRESENT, struct reply, has_status),
    PL_FIELD("status.token",                 F_STR,  struct reply, status.token),
    PL_FIELD("status.clientCertificateData", F_STR,  struct reply, status.client_cert_pem),
    PL_FIELD("status.clientKeyData",         F_STR,  struct reply, status.client_key_pem),
    PL_FIELD("status.expirationTimestamp",   F_TIME, struct reply, status.expires_ms),
};
static PL_SHAPE(reply_shape, struct reply, reply_fields);
/* clang-format on */

static void write_str(struct pl_json_writer *w, const char *key, struct pl_str value)
{
    if (value.len == 0)
        return;
    pl__json_write_key(w, key);
    pl__json_write_str(w, value);
}

static void write_true(struct pl_json_writer *w, const char *key, bool value)
{
    if (!value)
        return;
    pl__json_write_key(w, key);
    pl__json_write_bool(w, true);
}

static void write_cluster(struct pl_arena *arena, struct pl_json_writer *w,
                          const struct pl_kube_config *config)
{
    pl__json_write_key(w, "cluster");
    pl__json_open_object(w);
    write_str(w, "server", config->server);
    write_str(w, "tls-server-name", config->tls_server_name);
    write_true(w, "insecure-skip-tls-verify", config->insecure_skip_tls_verify);
    write_str(w, "certificate-authority-data", pl__base64_encode(arena, config->ca_pem));
    write_str(w, "proxy-url", config->proxy_url);
    write_true(w, "disable-compression", config->disable_compression);
    pl__json_write_key(w, "config");
    pl__json_write_null(w);
    pl__json_close_object(w);
}

struct pl_str pl__exec_info(struct pl_arena *arena, const struct pl_kube_config *config)
{
    struct pl_json_writer w;
    struct pl_buf out;

    pl__buf_init(&out, arena, INFO_BYTES_MAX);
    pl__json_writer_init(&w, &out, JSON_COMPACT);
    pl__json_open_object(&w);
    write_str(&w, "kind", PL_STR("ExecCredential"));
    write_str(&w, "apiVersion", config->exec.api_version);
    pl__json_write_key(&w, "spec");
    pl__json_open_object(&w);
    if (config->exec.provide_cluster_info)
        write_cluster(arena, &w, config);
    pl__json_write_key(&w, "interactive");
    pl__json_write_bool(&w, false);
    pl__json_close_object(&w);
    pl__json_close_object(&w);
    return pl__buf_str(&out);
}

static const char *reply_fault(const struct reply *reply, struct pl_str api_version)
{
    const struct pl_exec_credential *c = &reply->status;

    if (!pl__str_equal(reply->kind, PL_STR("ExecCredential")))
        return "printed something that is not an ExecCredential";
    if (!pl__str_equal(reply->api_version, api_version))
        return "printed an ExecCredential of another apiVersion than the kubeconfig asks for";
    if (!reply->has_status)
        return "printed an ExecCredential without status";
    if ((c->client_cert_pem.len > 0) != (c->client_key_pem.len > 0))
        return "printed a client certificate without its key, or a key without its certificate";
    if (c->token.len == 0 && c->client_cert_pem.len == 0)
        return "printed neither a token nor a client certificate";
    return NULL;
}

int pl__exec_credential_parse(struct pl_arena *arena, struct pl_str text, struct pl_str source,
                              struct pl_str api_version, struct pl_exec_credential *credential,
                              struct pl_error **err)
{
    struct reply reply = { 0 };
    struct pl_error *detail = NULL;
    struct pl_json j;

    /* The reader's own message may quote what it saw, which may be the token: not passed on. */
    pl__json_init(&j, text, source, arena, 0, &detail);
    if (pl__json_decode(&j, &reply_shape, &reply) < 0 || !pl__json_at_end(&j))
        return pl__error(arena, err, PL_INVALID,
                         "%.*s printed something that is not JSON as expected", PL_STR_ARG(source));
    const char *fault = reply_fault(&reply, api_version);
    if (fault)
        return pl__error(arena, err, PL_INVALID, "%.*s %s", PL_STR_ARG(source), fault);
    *credential = reply.status;
    return 0;
}
