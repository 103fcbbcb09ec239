#include "cli/fault_ask.h"

#include <stdlib.h>

#include "base/secret.h"
#include "cli/playground.h"
#include "loop/kube.h"

enum { LIST_BYTES_MAX = 64 * 1024 * 1024, TIMEOUT_MS = 10 * 1000 };

/* What the playground's API server calls itself, within its version. */
#define PLAYGROUND_MARK "+plimsoll"

/* In the order of `fault list`. */
const struct pl_fault_thing pl__fault_things[] = {
    { "cluster", 'C', "Cluster", "/apis/cluster.x-k8s.io/v1beta2/namespaces/%s/clusters",
      FAULT_ON_CLUSTER, false },
    { "machine", 'M', "Machine", "/apis/cluster.x-k8s.io/v1beta2/namespaces/%s/machines",
      FAULT_ON_MACHINE, false },
    { "node", 'N', "Node", "/api/v1/nodes", FAULT_ON_NODE, true },
    { "pod", 'P', "Pod", "/api/v1/namespaces/kube-system/pods", FAULT_ON_POD, true },
};
const size_t pl__fault_thing_count = sizeof pl__fault_things / sizeof pl__fault_things[0];

const struct pl_fault_thing *pl__fault_clusters(void)
{
    return &pl__fault_things[0];
}

struct pl_fault_ask {
    struct pl_cli *cli;
    struct pl_loop *loop;
    struct pl_arena secrets; /* kubeconfigs */
    struct pl_arena answers;
    struct pl_kube *kube; /* of `open`; NULL: none yet */
    struct pl_str open;   /* whose it is: a cluster's name; empty: the management cluster's */
    /* The last answer. */
    bool failed;
    int status;
    struct pl_str body, error;
};

struct pl_fault_ask *pl__fault_ask_new(struct pl_cli *cli)
{
    struct pl_fault_ask *a = calloc(1, sizeof *a);

    if (!a)
        abort();
    a->cli = cli;
    a->loop = pl__loop_new();
    pl__arena_init(&a->secrets, &pl__secret_allocator, 0);
    pl__arena_init(&a->answers, NULL, 0);
    return a;
}

void pl__fault_ask_free(struct pl_fault_ask *a)
{
    if (a->kube)
        pl__kube_close(a->kube);
    pl__loop_free(a->loop);
    pl__arena_release(&a->secrets);
    pl__arena_release(&a->answers);
    free(a);
}

/* --- one request -------------------------------------------------------------------------------------- */

static void answered(void *user, const struct pl_kube_answer *answer)
{
    struct pl_fault_ask *a = user;

    a->failed = answer->failure != KUBE_OK;
    a->status = answer->status;
    a->error = pl__str_copy(&a->answers, answer->error);
    a->body = pl__str_copy(&a->answers, answer->body);
    pl__loop_stop(a->loop);
}

static int send_request(struct pl_fault_ask *a, const char *method, struct pl_str path,
                        struct pl_str body)
{
    struct pl_cli *cli = a->cli;

    pl__kube_send(a->kube,
                  &(struct pl_kube_request){ .method = method,
                                             .path = path.ptr,
                                             .content_type = "application/merge-patch+json",
                                             .body = body,
                                             .body_max = LIST_BYTES_MAX,
                                             .timeout_ms = TIMEOUT_MS,
                                             .done = answered,
                                             .user = a });
    pl__loop_run(a->loop);
    if (a->failed)
        return pl__error(&cli->arena, &cli->err, PL_IO,
                         "cannot reach %s: %.*s; does plimsoll up run, and is this its kubeconfig?",
                         pl__kube_host(a->kube), PL_STR_ARG(a->error));
    return 0;
}

/* --- is it a playground? ------------------------------------------------------------------------------ */

struct version {
    struct pl_str git;
};
static const struct pl_field version_fields[] = {
    PL_FIELD("gitVersion", F_STR, struct version, git),
};
static PL_SHAPE(version_shape, struct version, version_fields);

static int check_playground(struct pl_fault_ask *a)
{
    struct pl_cli *cli = a->cli;
    struct version version = { { "", 0 } };
    struct pl_json j;

    if (send_request(a, "GET", PL_STR("/version"), PL_STR("")) < 0)
        return -1;
    pl__json_init(&j, a->body, PL_STR("answer"), &a->answers, 0, NULL);
    if (a->status == 200 && pl__json_decode(&j, &version_shape, &version) == 0 && version.git.len &&
        strstr(pl__str_copy(&a->answers, version.git).ptr, PLAYGROUND_MARK))
        return 0;
    return pl__error(&cli->arena, &cli->err, PL_USAGE,
                     "%s is no playground, and nothing was changed there: plimsoll up says which "
                     "kubeconfig is its own",
                     pl__kube_host(a->kube));
}

/* Contexts are named like the clusters behind them. The management cluster's is asked for by name, too: people change
 * the current one. */
static int server_open(struct pl_fault_ask *a, struct pl_str cluster)
{
    struct pl_cli *cli = a->cli;
    struct pl_kube_config config = { .server = { "", 0 } };
    const char *context =
        cluster.len ? pl__str_copy(&cli->arena, cluster).ptr : PLAYGROUND_MANAGEMENT;
    struct pl_error *cause = NULL;

    if (a->kube && pl__str_equal(a->open, cluster))
        return 0;
    if (a->kube)
        pl__kube_close(a->kube);
    a->kube = NULL;
    if (pl__kube_config_load(&a->secrets, cli->args.value[OPT_KUBECONFIG], context, &config,
                             &cause) < 0 ||
        pl__kube_open(a->loop, &config, &(struct pl_kube_options){ 0 }, &a->secrets, &a->kube,
                      &cause) < 0)
        return pl__error(&cli->arena, &cli->err, cause->code, "%.*s; %s",
                         PL_STR_ARG(pl__error_text(&cli->arena, cause)),
                         cluster.len
                             ? "is there such a Cluster? plimsoll describe -A shows them"
                             : "expected the kubeconfig of a playground, which plimsoll up names");
    a->open = pl__str_copy(&cli->arena, cluster);
    if (check_playground(a) == 0)
        return 0;
    pl__kube_close(a->kube);
    a->kube = NULL;
    return -1;
}

/* --- asking ------------------------------------------------------------------------------------------- */

/* The words of a Status. */
struct status {
    struct pl_str message;
};
static const struct pl_field status_fields[] = {
    PL_FIELD("message", F_STR, struct status, message),
};
static PL_SHAPE(status_shape, struct status, status_fields);

static struct pl_str status_words(struct pl_fault_ask *a)
{
    struct status status = { { 0 } };
    struct pl_json j;

    pl__json_init(&j, a->body, PL_STR("answer"), &a->answers, 0, NULL);
    if (pl__json_decode(&j, &status_shape, &status) == 0 && status.message.len)
        return status.message;
    return pl__str_format(&a->answers, "the API server answered %d", a->status);
}

static int ask(struct pl_fault_ask *a, struct pl_str cluster, const char *method,
               struct pl_str path, struct pl_str body)
{
    struct pl_cli *cli = a->cli;

    if (server_open(a, cluster) < 0 || send_request(a, method, path, body) < 0)
        return -1;
    if (a->status >= 400)
        return pl__error(&cli->arena, &cli->err, a->status == 404 ? PL_NOT_FOUND : PL_IO, "%.*s%s",
                         PL_STR_ARG(status_words(a)),
                         a->status == 404 ? "; plimsoll describe -A shows what there is" : "");
    return 0;
}

static struct pl_str collection_path(struct pl_fault_ask *a, const struct pl_fault_thing *thing)
{
    /* The paths are literals of the table above. */
    const char *hole = strstr(thing->path, "%s");

    if (!hole)
        return pl__str(thing->path);
    return pl__str_format(&a->answers, "%.*s%s%s", (int)(hole - thing->path), thing->path,
                          a->cli->args.value[OPT_NAMESPACE], hole + 2);
}

static struct pl_str object_path(struct pl_fault_ask *a, const struct pl_fault_target *target)
{
    return pl__str_format(&a->answers, "%.*s/%.*s", PL_STR_ARG(collection_path(a, target->thing)),
                          PL_STR_ARG(target->name));
}

/* An item as it comes. */
struct annotations {
    struct pl_str fault;
};
static const struct pl_field annotation_fields[] = {
    PL_FIELD(FLEET_FAULT_ANNOTATION, F_STR, struct annotations, fault),
};
static PL_SHAPE(annotations_shape, struct annotations, annotation_fields);

struct labels {
    bool machine, node;
};
static const struct pl_field label_fields[] = {
    PL_FIELD("cluster.x-k8s.io/control-plane", F_PRESENT, struct labels, machine),
    PL_FIELD("node-role.kubernetes.io/control-plane", F_PRESENT, struct labels, node),
};
static PL_SHAPE(labels_shape, struct labels, label_fields);

struct item {
    struct pl_str name;
    struct annotations annotations;
    struct labels labels;
};
static const struct pl_field item_fields[] = {
    PL_FIELD("metadata.name", F_STR, struct item, name),
    PL_FIELD_SHAPE("metadata.annotations", F_MAP, struct item, annotations, &annotations_shape),
    PL_FIELD_SHAPE("metadata.labels", F_MAP, struct item, labels, &labels_shape),
};
static PL_SHAPE(item_shape, struct item, item_fields);

struct items {
    PL_LIST(struct item) items;
};
static const struct pl_field items_fields[] = {
    PL_FIELD_SHAPE("items", F_LIST, struct items, items, &item_shape),
};
static PL_SHAPE(items_shape, struct items, items_fields);

static int decode(struct pl_fault_ask *a, const struct pl_shape *shape, void *into)
{
    struct pl_cli *cli = a->cli;
    struct pl_error *cause = NULL;
    struct pl_json j;

    pl__json_init(&j, a->body, PL_STR("answer"), &a->answers, 0, &cause);
    if (pl__json_decode(&j, shape, into) < 0)
        return pl__error(&cli->arena, &cli->err, PL_INVALID, "%.*s",
                         PL_STR_ARG(pl__error_text(&cli->arena, cause)));
    return 0;
}

static struct pl_fault_item simplify(const struct item *item)
{
    return (struct pl_fault_item){ .name = item->name,
                                   .fault = item->annotations.fault,
                                   .control_plane = item->labels.machine || item->labels.node };
}

int pl__fault_list(struct pl_fault_ask *a, struct pl_str cluster,
                   const struct pl_fault_thing *thing, struct pl_fault_items *found)
{
    struct items items = { { 0 } };

    *found = (struct pl_fault_items){ { 0 } };
    if (ask(a, cluster, "GET", collection_path(a, thing), PL_STR("")) < 0 ||
        decode(a, &items_shape, &items) < 0)
        return -1;
    found->items.items = PL_NEW(&a->answers, struct pl_fault_item, items.items.count);
    for (uint32_t i = 0; i < items.items.count; i++)
        found->items.items[found->items.count++] = simplify(&items.items.items[i]);
    return 0;
}

int pl__fault_get(struct pl_fault_ask *a, const struct pl_fault_target *target,
                  struct pl_fault_item *found)
{
    struct item item = { .name = { "", 0 } };

    *found = (struct pl_fault_item){ .name = { "", 0 } };
    if (ask(a, target->cluster, "GET", object_path(a, target), PL_STR("")) < 0 ||
        decode(a, &item_shape, &item) < 0)
        return -1;
    *found = simplify(&item);
    return 0;
}

int pl__fault_put(struct pl_fault_ask *a, const struct pl_fault_target *target, const char *fault)
{
    const char *quote = fault ? "\"" : "";
    struct pl_str body = pl__str_format(
        &a->answers, "{\"metadata\":{\"annotations\":{\"" FLEET_FAULT_ANNOTATION "\":%s%s%s}}}",
        quote, fault ? fault : "null", quote);

    return ask(a, target->cluster, "PATCH", object_path(a, target), body);
}
