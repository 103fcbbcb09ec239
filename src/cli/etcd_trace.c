/* plimsoll etcd --trace: the connection doctor.
 *
 * Everything is asked one after the other, so that the times mean something, and printed as it comes:
 * whoever waits for a deadline sees what is being waited for. */
#include "cli/etcd_trace.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/secret.h"
#include "base/time.h"
#include "cli/data.h"
#include "cli/driver.h"
#include "cli/etcd_causes.h"
#include "cli/etcd_options.h"
#include "cli/text.h"
#include "loop/etcd.h"

enum { ASK_MS = 10 * 1000, HOPS_MAX = 512, NODES_MAX = 64, WHAT_WIDTH = 22 };

/* One line of the result. */
struct hop {
    const char *node; /* NULL: not about one member */
    enum pl_trace_hop kind;
    bool ok;
    uint64_t took_us;
    struct pl_str text; /* what was found, or the error */
};

struct trace {
    struct pl_cli *cli;
    struct pl_loop *loop;
    struct pl_arena secrets; /* configurations and keys: wiped */
    struct pl_kube *management, *workload;
    struct pl_etcd *etcd;
    const char *namespace_, *cluster;
    struct hop *hops;
    size_t hop_count;
    bool failed;
    const char *node; /* whose hops are coming in */

    /* The answer to what was asked last. */
    bool answered;
    int status;
    enum pl_kube_failure failure;
    struct pl_str body, error;
    uint64_t took_us;
};

/* --- printing ------------------------------------------------------------------------------------ */

static bool for_people(const struct trace *t)
{
    return !pl__cli_output_is(t->cli, "json") && !pl__cli_output_is(t->cli, "yaml");
}

static void add_took(struct pl_buf *out, uint64_t took_us)
{
    if (took_us < 10 * 1000)
        pl__buf_printf(out, "%4.1f ms  ", (double)took_us / 1000);
    else if (took_us < 10 * 1000 * 1000)
        pl__buf_printf(out, "%4" PRIu64 " ms  ", took_us / 1000);
    else
        pl__buf_printf(out, "%5.1f s  ", (double)took_us / 1e6);
}

static void add_cause(const struct trace *t, const struct hop *hop)
{
    const struct pl_trace_cause *cause = pl__trace_cause(hop->kind, hop->text);
    struct pl_buf *out = &t->cli->out.buf;
    size_t width = t->cli->term.width;

    if (!cause)
        return;
    pl__text_wrap(out, pl__str(cause->cause),
                  (struct pl_wrap){ PL_STR("      likely: "), PL_STR("              "), width });
    pl__text_wrap(out, pl__str(cause->remedy),
                  (struct pl_wrap){ PL_STR("      do:     "), PL_STR("              "), width });
}

static void print_hop(const struct trace *t, const struct hop *hop)
{
    struct pl_buf *out = &t->cli->out.buf;
    struct pl_buf line;
    struct pl_arena arena;

    pl__arena_init(&arena, NULL, 1024);
    pl__buf_init(&line, &arena, SIZE_MAX / 4);
    pl__text_spaces(&line, hop->node ? 4 : 2);
    pl__term_add(&t->cli->term, &line, hop->ok ? COLOR_GREEN : COLOR_RED,
                 hop->ok ? PL_STR("ok  ") : PL_STR("FAIL"));
    pl__buf_add_lit(&line, "  ");
    add_took(&line, hop->took_us);
    pl__text_pad(&line, pl__str(pl__trace_hop_name(hop->kind)), WHAT_WIDTH - (hop->node ? 2 : 0));
    pl__text_add(&line, hop->text);
    pl__text_wrap(out, pl__buf_str(&line),
                  (struct pl_wrap){ PL_STR(""), PL_STR("                "), t->cli->term.width });
    if (!hop->ok)
        add_cause(t, hop);
    pl__arena_release(&arena);
}

static void flush(struct trace *t)
{
    struct pl_error *ignored = NULL; /* a failing stdout is met again, and reported, at the end */

    pl__out_flush(&t->cli->out, &t->cli->arena, &ignored);
}

static void add_hop(struct trace *t, enum pl_trace_hop kind, bool ok, uint64_t took_us,
                    struct pl_str text)
{
    if (t->hop_count == HOPS_MAX)
        return;
    struct hop *hop = &t->hops[t->hop_count++];
    *hop = (struct hop){ t->node, kind, ok, took_us, pl__str_copy(&t->cli->arena, text) };
    t->failed |= !ok;
    if (!for_people(t))
        return;
    print_hop(t, hop);
    flush(t);
}

static void write_hops(struct trace *t)
{
    struct pl_data data;

    pl__data_open(&data, t->cli, true);
    pl__data_text(&data, "namespace", t->namespace_);
    pl__data_text(&data, "cluster", t->cluster);
    pl__data_bool(&data, "ok", !t->failed);
    pl__data_array(&data, "hops");
    for (size_t i = 0; i < t->hop_count; i++) {
        const struct hop *hop = &t->hops[i];
        const struct pl_trace_cause *cause = hop->ok ? NULL : pl__trace_cause(hop->kind, hop->text);
        pl__data_object(&data, NULL);
        if (hop->node)
            pl__data_text(&data, "node", hop->node);
        pl__data_text(&data, "hop", pl__trace_hop_name(hop->kind));
        pl__data_bool(&data, "ok", hop->ok);
        pl__data_int(&data, "microseconds", (int64_t)hop->took_us);
        pl__data_str(&data, hop->ok ? "found" : "error", hop->text);
        if (cause) {
            pl__data_text(&data, "likelyCause", cause->cause);
            pl__data_text(&data, "remedy", cause->remedy);
        }
        pl__data_end_object(&data);
    }
    pl__data_end_array(&data);
    pl__data_close(&data);
}

/* --- asking -------------------------------------------------------------------------------------- */

/* A Status object, of which the words are enough. */
struct status_text {
    struct pl_str message;
};
static const struct pl_field status_fields[] = { PL_FIELD("message", F_STR, struct status_text,
                                                          message) };
static PL_SHAPE(status_shape, struct status_text, status_fields);

static bool decode(struct trace *t, const struct pl_shape *shape, void *to)
{
    struct pl_json j;

    pl__json_init(&j, t->body, PL_STR("answer"), &t->secrets, 0, NULL);
    return pl__json_decode(&j, shape, to) == 0;
}

static void answer_came(void *user, const struct pl_kube_answer *answer)
{
    struct trace *t = user;

    t->answered = true;
    t->failure = answer->failure;
    t->status = answer->status;
    t->body = pl__str_copy(&t->secrets, answer->body);
    t->error = pl__str_copy(&t->secrets, answer->error);
    pl__loop_stop(t->loop);
}

/* Why it failed, in words; empty: it did not. */
static struct pl_str failure_text(struct trace *t)
{
    struct status_text status = { .message = { 0 } };

    if (t->failure != KUBE_OK)
        return t->error;
    if (t->status >= 200 && t->status < 300)
        return PL_STR("");
    if (decode(t, &status_shape, &status) && status.message.len)
        return pl__str_format(&t->secrets, "%d: %.*s", t->status, PL_STR_ARG(status.message));
    return pl__str_format(&t->secrets, "the server answered %d", t->status);
}

/* True when there is a good answer in t->body. */
static bool ask(struct trace *t, struct pl_kube *kube, const char *method, const char *path,
                struct pl_str body)
{
    uint64_t start_ns = uv_hrtime();

    t->answered = false;
    pl__kube_send(kube, &(struct pl_kube_request){ .method = method,
                                                   .path = path,
                                                   .body = body,
                                                   .timeout_ms = ASK_MS,
                                                   .done = answer_came,
                                                   .user = t });
    while (!t->answered)
        pl__loop_run(t->loop);
    t->took_us = (uv_hrtime() - start_ns) / 1000;
    return failure_text(t).len == 0;
}

static bool fail(struct trace *t, enum pl_trace_hop kind, struct pl_str text)
{
    add_hop(t, kind, false, t->took_us, text);
    return false;
}

static bool fine(struct trace *t, enum pl_trace_hop kind, struct pl_str text)
{
    add_hop(t, kind, true, t->took_us, text);
    return true;
}

/* --- the hops to the workload cluster -------------------------------------------------------------- */

struct version_text {
    struct pl_str version;
};
static const struct pl_field version_fields[] = { PL_FIELD("gitVersion", F_STR, struct version_text,
                                                           version) };
static PL_SHAPE(version_shape, struct version_text, version_fields);

static bool walk_api(struct trace *t, struct pl_kube *kube, enum pl_trace_hop kind)
{
    struct version_text v = { .version = { 0 } };

    if (!ask(t, kube, "GET", "/version", PL_STR("")))
        return fail(t, kind, failure_text(t));
    decode(t, &version_shape, &v);
    return fine(t, kind,
                pl__str_format(&t->secrets, "%s, %.*s", pl__kube_host(kube),
                               PL_STR_ARG(v.version.len ? v.version : PL_STR("version unknown"))));
}

static const char *cluster_path(struct trace *t)
{
    return pl__str_format(&t->secrets, "/apis/cluster.x-k8s.io/v1beta2/namespaces/%s/clusters/%s",
                          t->namespace_, t->cluster)
        .ptr;
}

static bool walk_cluster(struct trace *t)
{
    if (!ask(t, t->management, "GET", cluster_path(t), PL_STR("")))
        return fail(t, TRACE_CLUSTER, failure_text(t));
    return fine(t, TRACE_CLUSTER,
                pl__str_format(&t->secrets, "Cluster %s/%s", t->namespace_, t->cluster));
}

/* A Secret's parts that lead on. */
struct secret_parts {
    struct pl_str value, certificate, key;
};
struct secret {
    struct secret_parts parts;
};
/* clang-format off */
static const struct pl_field parts_fields[] = {
    PL_FIELD("value",   F_STR, struct secret_parts, value),
    PL_FIELD("tls.crt", F_STR, struct secret_parts, certificate),
    PL_FIELD("tls.key", F_STR, struct secret_parts, key),
};
static PL_SHAPE(parts_shape, struct secret_parts, parts_fields);
static const struct pl_field secret_fields[] = {
    PL_FIELD_SHAPE("data", F_MAP, struct secret, parts, &parts_shape),
};
/* clang-format on */
static PL_SHAPE(secret_shape, struct secret, secret_fields);

static bool read_secret(struct trace *t, const char *suffix, enum pl_trace_hop kind,
                        struct secret_parts *parts)
{
    const char *path = pl__str_format(&t->secrets, "/api/v1/namespaces/%s/secrets/%s-%s",
                                      t->namespace_, t->cluster, suffix)
                           .ptr;

    struct secret secret = { .parts = { .value = { 0 } } };
    if (!ask(t, t->management, "GET", path, PL_STR("")))
        return fail(t, kind, failure_text(t));
    if (!decode(t, &secret_shape, &secret))
        return fail(t, kind, PL_STR("the Secret could not be read"));
    *parts = secret.parts;
    return true;
}

static bool walk_kubeconfig(struct trace *t)
{
    struct secret_parts parts;
    struct pl_error *err = NULL;
    struct pl_str text = { 0 };

    if (!read_secret(t, "kubeconfig", TRACE_KUBECONFIG, &parts))
        return false;
    if (!parts.value.len || pl__base64_decode(&t->secrets, parts.value, &text) < 0)
        return fail(t, TRACE_KUBECONFIG, PL_STR("key \"value\" is missing or not base64"));
    if (pl__workload_open(t->loop, text, &t->secrets, &t->workload, &err) < 0)
        return fail(t, TRACE_KUBECONFIG, pl__error_text(&t->secrets, err));
    return fine(t, TRACE_KUBECONFIG, pl__str(pl__kube_host(t->workload)));
}

struct review {
    struct pl_str user;
    bool allowed;
    struct pl_str reason;
};
/* clang-format off */
static const struct pl_field review_fields[] = {
    PL_FIELD("status.userInfo.username", F_STR,  struct review, user),
    PL_FIELD("status.allowed",           F_BOOL, struct review, allowed),
    PL_FIELD("status.reason",            F_STR,  struct review, reason),
};
/* clang-format on */
static PL_SHAPE(review_shape, struct review, review_fields);

static struct pl_str user_name(struct trace *t)
{
    static const struct pl_str question =
        PL_STR_INIT("{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"SelfSubjectReview\"}");
    struct review r = { .allowed = false };

    if (!ask(t, t->workload, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews",
             question) ||
        !decode(t, &review_shape, &r))
        return PL_STR("");
    return r.user;
}

static bool walk_workload(struct trace *t)
{
    return walk_api(t, t->workload, TRACE_WORKLOAD);
}

/* From 1.35 a port-forward over WebSocket wants "create" besides "get". */
static bool walk_permission(struct trace *t)
{
    static const char *const verbs[] = { "get", "create" };
    struct pl_str user = user_name(t);
    uint64_t took_us = 0;

    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        struct review r = { .allowed = false };
        struct pl_str question = pl__str_format(
            &t->secrets,
            "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectAccessReview\","
            "\"spec\":{\"resourceAttributes\":{\"namespace\":\"kube-system\",\"verb\":\"%s\","
            "\"resource\":\"pods\",\"subresource\":\"portforward\"}}}",
            verbs[i]);
        if (!ask(t, t->workload, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                 question))
            return fail(t, TRACE_PERMISSION, failure_text(t));
        took_us += t->took_us;
        decode(t, &review_shape, &r);
        if (!r.allowed)
            return fail(t, TRACE_PERMISSION,
                        pl__str_format(&t->secrets,
                                       "%s pods/portforward in kube-system is not allowed%s%.*s",
                                       verbs[i], user.len ? " for " : "", PL_STR_ARG(user)));
    }
    t->took_us = took_us;
    return fine(t, TRACE_PERMISSION,
                pl__str_format(&t->secrets, "port-forward is allowed%s%.*s",
                               user.len ? " for " : "", PL_STR_ARG(user)));
}

static bool walk_trust(struct trace *t)
{
    struct secret_parts parts;
    struct pl_str certificate = { 0 }, key = { 0 };
    struct pl_error *err = NULL;

    if (!read_secret(t, "etcd", TRACE_CA, &parts))
        return false;
    if (!parts.certificate.len ||
        pl__base64_decode(&t->secrets, parts.certificate, &certificate) < 0)
        return fail(t, TRACE_CA, PL_STR("key \"tls.crt\" is missing or not base64"));
    if (!parts.key.len || pl__base64_decode(&t->secrets, parts.key, &key) < 0)
        return fail(t, TRACE_CA, PL_STR("key \"tls.key\" is missing or not base64"));
    if (pl__etcd_credentials(t->etcd, certificate, key, pl__loop_wall_ms(), &t->secrets, &err) < 0)
        return fail(t, TRACE_CA, pl__error_text(&t->secrets, err));
    return fine(t, TRACE_CA,
                pl__str_format(&t->secrets, "Secret %s/%s-etcd", t->namespace_, t->cluster));
}

/* --- the hops to a member -------------------------------------------------------------------------- */

static void hop_came(void *user, const struct pl_etcd_hop *hop)
{
    static const enum pl_trace_hop kinds[] = { [ETCD_HOP_CONNECT] = TRACE_CONNECT,
                                               [ETCD_HOP_UPGRADE] = TRACE_KUBELET,
                                               [ETCD_HOP_TLS] = TRACE_TLS,
                                               [ETCD_HOP_GRPC] = TRACE_GRPC };
    struct trace *t = user;

    if (!hop->ok)
        add_hop(t, kinds[hop->kind], false, hop->took_us, hop->error);
    else if (hop->kind != ETCD_HOP_GRPC) /* the answer itself has more to say */
        add_hop(t, kinds[hop->kind], true, hop->took_us, PL_STR(""));
}

struct member_answer {
    struct trace *t;
    bool done;
    size_t hops_before;
    uint64_t start_ns;
};

static struct pl_str status_text(struct trace *t, const struct pl_etcd_answer *a)
{
    struct pl_buf text;

    pl__buf_init(&text, &t->secrets, 4096);
    pl__buf_printf(&text, "etcd %.*s, %s", PL_STR_ARG(a->version),
                   a->is_learner               ? "learner"
                   : !a->leader                ? "no leader is known"
                   : a->leader == a->member_id ? "leader"
                                               : "follower");
    if (a->members_error.len)
        pl__buf_printf(&text, "; member list: %.*s", PL_STR_ARG(a->members_error));
    if (a->alarms_error.len)
        pl__buf_printf(&text, "; alarms: %.*s", PL_STR_ARG(a->alarms_error));
    for (size_t i = 0; i < a->error_count && i < 4; i++)
        pl__buf_printf(&text, "; reports: %.*s", PL_STR_ARG(a->errors[i]));
    return pl__buf_str(&text);
}

static void member_answered(void *user, const struct pl_etcd_answer *a)
{
    struct member_answer *m = user;
    struct trace *t = m->t;
    bool told = t->hop_count > m->hops_before && !t->hops[t->hop_count - 1].ok;

    t->took_us = (uv_hrtime() - m->start_ns) / 1000;
    if (a->failure == ETCD_OK) {
        bool well = a->leader && !a->error_count && !a->members_error.len && !a->alarms_error.len;
        add_hop(t, TRACE_GRPC, well, t->took_us, status_text(t, a));
    } else if (!told) {
        add_hop(t, TRACE_GRPC, false, t->took_us, a->error);
    }
    m->done = true;
    pl__loop_stop(t->loop);
}

static void walk_member(struct trace *t, const struct pl_etcd_endpoint *endpoint)
{
    struct member_answer m = { .t = t, .hops_before = t->hop_count, .start_ns = uv_hrtime() };

    t->node = pl__str_copy(&t->cli->arena, endpoint->node).ptr;
    if (for_people(t)) {
        pl__buf_add_lit(&t->cli->out.buf, "  Node ");
        pl__text_add(&t->cli->out.buf, endpoint->node);
        pl__buf_add_char(&t->cli->out.buf, '\n');
        flush(t);
    }
    pl__etcd_send(t->etcd, &(struct pl_etcd_request){ .call = ETCD_OBSERVE,
                                                      .endpoints = endpoint,
                                                      .endpoint_count = 1,
                                                      .done = member_answered,
                                                      .user = &m });
    while (!m.done)
        pl__loop_run(t->loop);
    t->node = NULL;
}

struct node_address {
    struct pl_str type, address;
};
struct node_item {
    struct pl_str name;
    PL_LIST(struct node_address) addresses;
};
struct node_list {
    PL_LIST(struct node_item) items;
};
/* clang-format off */
static const struct pl_field address_fields[] = {
    PL_FIELD("type",    F_STR, struct node_address, type),
    PL_FIELD("address", F_STR, struct node_address, address),
};
static PL_SHAPE(address_shape, struct node_address, address_fields);
static const struct pl_field node_fields[] = {
    PL_FIELD("metadata.name", F_STR, struct node_item, name),
    PL_FIELD_SHAPE("status.addresses", F_LIST, struct node_item, addresses, &address_shape),
};
static PL_SHAPE(node_shape, struct node_item, node_fields);
static const struct pl_field node_list_fields[] = {
    PL_FIELD_SHAPE("items", F_LIST, struct node_list, items, &node_shape),
};
/* clang-format on */
static PL_SHAPE(node_list_shape, struct node_list, node_list_fields);

static struct pl_str internal_ip(const struct node_item *node)
{
    for (uint32_t i = 0; i < node->addresses.count; i++) {
        if (pl__str_equal(node->addresses.items[i].type, PL_STR("InternalIP")))
            return node->addresses.items[i].address;
    }
    return PL_STR("");
}

static bool walk_members(struct trace *t)
{
    struct node_list nodes = { .items = { 0 } };

    if (!ask(t, t->workload, "GET",
             "/api/v1/nodes?labelSelector=node-role.kubernetes.io%2Fcontrol-plane", PL_STR("")))
        return fail(t, TRACE_NODES, failure_text(t));
    if (!decode(t, &node_list_shape, &nodes) || nodes.items.count == 0)
        return fail(t, TRACE_NODES, PL_STR("no Node has the control plane label"));
    fine(t, TRACE_NODES,
         pl__str_format(&t->secrets, "%u control plane Node%s", nodes.items.count,
                        nodes.items.count == 1 ? "" : "s"));
    for (uint32_t i = 0; i < nodes.items.count && i < NODES_MAX; i++) {
        struct pl_etcd_endpoint endpoint = { nodes.items.items[i].name,
                                             internal_ip(&nodes.items.items[i]) };
        walk_member(t, &endpoint);
    }
    return true;
}

/* --- the walk -------------------------------------------------------------------------------------- */

static int open_management(struct trace *t, const struct pl_live_wanted *wanted)
{
    struct pl_cli *cli = t->cli;
    struct pl_kube_config config = { .server = { 0 } };
    struct pl_error *cause = NULL;

    if (pl__kube_config_load(&t->secrets, cli->args.value[OPT_KUBECONFIG],
                             cli->args.value[OPT_CONTEXT], &config, &cause) < 0 ||
        pl__kube_open(t->loop, &config, &(struct pl_kube_options){ .connect_timeout_ms = ASK_MS },
                      &t->secrets, &t->management, &cause) < 0) {
        struct pl_str text = pl__error_text(&cli->arena, cause);
        return pl__error(&cli->arena, &cli->err, cause->code, "%.*s", PL_STR_ARG(text));
    }
    struct pl_str namespace_ = wanted->namespace_.len ? wanted->namespace_ : config.namespace_;
    t->namespace_ = pl__str_copy(&cli->arena, namespace_).ptr;
    t->cluster = pl__str_copy(&cli->arena, wanted->cluster).ptr;
    return 0;
}

static bool walk_permission_or_direct(struct trace *t)
{
    return t->cli->args.value[OPT_ETCD_ENDPOINTS] || walk_permission(t);
}

/* True when the workload cluster was reached; what failed behind it is in t->failed. */
static bool walk(struct trace *t, const struct pl_etcd_options *options)
{
    struct pl_etcd_options traced = *options;

    if (!walk_api(t, t->management, TRACE_MANAGEMENT) || !walk_cluster(t) || !walk_kubeconfig(t) ||
        !walk_workload(t))
        return false;
    traced.trace = hop_came;
    traced.trace_user = t;
    t->etcd = pl__etcd_open(t->loop, t->workload, &traced);
    if (walk_permission_or_direct(t) && walk_trust(t))
        walk_members(t);
    return true;
}

int pl__etcd_trace(struct pl_cli *cli, const struct pl_live_wanted *wanted)
{
    struct trace t = { .cli = cli, .hops = PL_NEW(&cli->arena, struct hop, HOPS_MAX) };
    struct pl_etcd_options options = { 0 };

    if (pl__etcd_options_take(cli, &options) < 0)
        return -1;
    pl__arena_init(&t.secrets, &pl__secret_allocator, 0);
    t.loop = pl__loop_new();
    int result = open_management(&t, wanted);
    if (result == 0) {
        if (for_people(&t))
            pl__buf_printf(&cli->out.buf, "The way to the etcd members of Cluster %s/%s\n",
                           t.namespace_, t.cluster);
        if (!walk(&t, &options))
            pl__cli_note(cli, OUTCOME_FAILED);
        else if (t.failed)
            pl__cli_note(cli, OUTCOME_FINDINGS);
        if (!for_people(&t))
            write_hops(&t);
        result = pl__out_flush(&cli->out, &cli->arena, &cli->err);
    }
    if (t.etcd)
        pl__etcd_close(t.etcd);
    if (t.workload)
        pl__kube_close(t.workload);
    if (t.management)
        pl__kube_close(t.management);
    pl__loop_free(t.loop);
    pl__arena_release(&t.secrets);
    return result;
}
