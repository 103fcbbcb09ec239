/* plimsoll fault - breaks something in a playground, and mends it.
 *
 * A fault is an annotation on a Cluster, a Machine, a Node or a Pod; kubectl annotate does the same. What it
 * does is the fleet's business (fleet/fleet.h). */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/secret.h"
#include "cli/commands.h"
#include "cli/text.h"
#include "fleet/fleet.h"
#include "loop/kube.h"

enum { NAME_BYTES_MAX = 253, LIST_BYTES_MAX = 64 * 1024 * 1024 };

static const struct pl_option options[] = {
    /* clang-format off */
    { .id = OPT_NAMESPACE, .name = "namespace", .letter = 'n', .argument = "NS", .fallback = "default",
      .help = "of the Clusters and Machines" },
    { .id = OPT_KUBECONFIG, .name = "kubeconfig", .argument = "FILE", .files = true,
      .help = "the one that plimsoll up has written; default: $KUBECONFIG, ~/.kube/config" },
    PL_OPTION_COLOR,
    PL_OPTION_HELP,
    /* clang-format on */
};

static const struct pl_argument arguments[] = {
    { .name = "FAULT",
      .complete = COMPLETE_NOTHING,
      .help = "what to break, or list: what can be broken and what is; or clear: mend it" },
    { .name = "TARGET",
      .complete = COMPLETE_NOTHING,
      .help = "cluster/NAME, machine/NAME, node/CLUSTER/NAME or pod/CLUSTER/NAME; with clear, "
              "default: all" },
};

static const struct pl_example examples[] = {
    { "plimsoll fault list", "what can be broken, and what is" },
    { "plimsoll fault network-cut cluster/demo-1", "a cluster cannot be reached" },
    { "plimsoll fault kubelet-down machine/demo-1-cp-1",
      "a machine dies; its replacement follows" },
    { "plimsoll fault clear", "mend everything" },
};

/* --- what a fault is put on ------------------------------------------------------------------------ */

/* The kinds, in the order of `fault list`. */
static const struct thing {
    const char *word; /* on the command line */
    const char *kind;
    const char *path; /* of all of them; %s: the namespace */
    unsigned on;
    bool workload;
} things[] = {
    { "cluster", "Cluster", "/apis/cluster.x-k8s.io/v1beta2/namespaces/%s/clusters",
      FAULT_ON_CLUSTER, false },
    { "machine", "Machine", "/apis/cluster.x-k8s.io/v1beta2/namespaces/%s/machines",
      FAULT_ON_MACHINE, false },
    { "node", "Node", "/api/v1/nodes", FAULT_ON_NODE, true },
    { "pod", "Pod", "/api/v1/namespaces/kube-system/pods", FAULT_ON_POD, true },
};
enum { THING_COUNT = sizeof things / sizeof things[0], CLUSTER_THING = 0 };

struct target {
    const struct thing *thing;
    struct pl_str cluster; /* of a Node or a Pod; empty: the management cluster's */
    struct pl_str name;
};

/* Names become part of a URL. */
static bool is_name(struct pl_str name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";

    return name.len && name.len <= NAME_BYTES_MAX &&
           strspn(name.ptr, allowed) >= name.len; /* what follows it may be a slash */
}

static int take_target(struct pl_cli *cli, const char *text, struct target *target)
{
    const char *slash = strchr(text, '/');

    *target = (struct target){ .thing = NULL };
    for (size_t i = 0; slash && i < THING_COUNT; i++) {
        if (pl__str_equal((struct pl_str){ text, (size_t)(slash - text) }, pl__str(things[i].word)))
            target->thing = &things[i];
    }
    if (target->thing && target->thing->workload) {
        const char *second = strchr(slash + 1, '/');
        if (second) {
            target->cluster = (struct pl_str){ slash + 1, (size_t)(second - slash - 1) };
            target->name = pl__str(second + 1);
        }
    } else if (target->thing) {
        target->name = pl__str(slash + 1);
    }
    if (!target->thing || !is_name(target->name) ||
        (target->cluster.len && !is_name(target->cluster))) {
        pl__cli_usage(cli,
                      "\"%s\": expected cluster/NAME, machine/NAME, node/CLUSTER/NAME or "
                      "pod/CLUSTER/NAME",
                      text);
        return -1;
    }
    return 0;
}

static void add_places(struct pl_buf *out, unsigned on)
{
    bool first = true;

    for (size_t i = 0; i < THING_COUNT; i++) {
        if (!(on & things[i].on))
            continue;
        pl__buf_printf(out, "%s%s", first ? "" : ", ", things[i].word);
        first = false;
    }
}

/* "network-slow:500" is checked as a whole by the fleet's own rule; here we say what is wrong with it. */
static int check_fault(struct pl_cli *cli, const char *fault, const struct target *target)
{
    struct pl_near near = { .wanted = fault };
    struct pl_str word;

    if (pl__fleet_fault_check(pl__str(fault), target->thing->on, &word))
        return 0;
    size_t len = strcspn(fault, ":,");
    for (size_t i = 0; i < pl__fleet_fault_count; i++) {
        const struct pl_fleet_fault *f = &pl__fleet_faults[i];
        if (strlen(f->name) == len && memcmp(f->name, fault, len) == 0) {
            struct pl_buf places;
            pl__buf_init(&places, &cli->arena, 256);
            add_places(&places, f->on);
            return pl__cli_usage(cli, "%.*s cannot be put on a %s: expected %s", PL_STR_ARG(word),
                                 target->thing->kind, pl__buf_str(&places).ptr);
        }
        pl__near_offer(&near, f->name);
    }
    if (near.best)
        return pl__cli_usage(cli, "no fault \"%s\", did you mean \"%s\"?", fault, near.best);
    return pl__cli_usage(cli, "no fault \"%s\"; plimsoll fault list shows them", fault);
}

/* --- asking the API server, one request after the other ---------------------------------------------- */

struct ask {
    struct pl_cli *cli;
    struct pl_loop *loop;
    struct pl_arena secrets; /* kubeconfigs */
    struct pl_arena answers;
    struct pl_kube *kube; /* of `open`; NULL: none yet */
    struct pl_str open;   /* whose it is: a cluster's name; empty: the management cluster's */
    bool failed;
    int status;
    struct pl_str body, error;
};

static void answered(void *user, const struct pl_kube_answer *answer)
{
    struct ask *a = user;

    a->failed = answer->failure != KUBE_OK;
    a->status = answer->status;
    a->error = pl__str_copy(&a->answers, answer->error);
    a->body = pl__str_copy(&a->answers, answer->body);
    pl__loop_stop(a->loop);
}

/* Contexts are named like the clusters behind them; the current one is the management cluster. */
static int server_open(struct ask *a, struct pl_str cluster)
{
    struct pl_cli *cli = a->cli;
    struct pl_kube_config config = { .server = { "", 0 } };
    const char *context = cluster.len ? pl__str_copy(&cli->arena, cluster).ptr : NULL;
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
        return pl__error(&cli->arena, &cli->err, cause->code, "%.*s",
                         PL_STR_ARG(pl__error_text(&cli->arena, cause)));
    a->open = pl__str_copy(&cli->arena, cluster);
    return 0;
}

/* The words of a Status, or the beginning of whatever came. */
struct status {
    struct pl_str message;
};
static const struct pl_field status_fields[] = {
    PL_FIELD("message", F_STR, struct status, message),
};
static PL_SHAPE(status_shape, struct status, status_fields);

static struct pl_str status_words(struct ask *a)
{
    struct status status = { { 0 } };
    struct pl_json j;

    pl__json_init(&j, a->body, PL_STR("answer"), &a->answers, 0, NULL);
    if (pl__json_decode(&j, &status_shape, &status) == 0 && status.message.len)
        return status.message;
    return pl__str_format(&a->answers, "the API server answered %d", a->status);
}

static int ask(struct ask *a, struct pl_str cluster, const char *method, struct pl_str path,
               struct pl_str body)
{
    struct pl_cli *cli = a->cli;

    if (server_open(a, cluster) < 0)
        return -1;
    pl__kube_send(a->kube,
                  &(struct pl_kube_request){ .method = method,
                                             .path = path.ptr,
                                             .content_type = "application/merge-patch+json",
                                             .body = body,
                                             .body_max = LIST_BYTES_MAX,
                                             .done = answered,
                                             .user = a });
    pl__loop_run(a->loop);
    if (a->failed)
        return pl__error(&cli->arena, &cli->err, PL_IO,
                         "cannot reach %s: %.*s; does plimsoll up run, and is this its kubeconfig?",
                         pl__kube_host(a->kube), PL_STR_ARG(a->error));
    if (a->status >= 400)
        return pl__error(&cli->arena, &cli->err, a->status == 404 ? PL_NOT_FOUND : PL_IO, "%.*s",
                         PL_STR_ARG(status_words(a)));
    return 0;
}

static const char *namespace_of(const struct pl_cli *cli)
{
    return cli->args.value[OPT_NAMESPACE];
}

static struct pl_str collection_path(struct ask *a, const struct thing *thing)
{
    /* The paths are literals of the table above. */
    const char *hole = strstr(thing->path, "%s");

    if (!hole)
        return pl__str(thing->path);
    return pl__str_format(&a->answers, "%.*s%s%s", (int)(hole - thing->path), thing->path,
                          namespace_of(a->cli), hole + 2);
}

static int put(struct ask *a, const struct target *target, const char *fault)
{
    struct pl_str path = collection_path(a, target->thing);
    const char *quote = fault ? "\"" : "";
    struct pl_str body = pl__str_format(
        &a->answers, "{\"metadata\":{\"annotations\":{\"" FLEET_FAULT_ANNOTATION "\":%s%s%s}}}",
        quote, fault ? fault : "null", quote);

    path = pl__str_format(&a->answers, "%.*s/%.*s", PL_STR_ARG(path), PL_STR_ARG(target->name));
    return ask(a, target->cluster, "PATCH", path, body);
}

/* --- what is broken ---------------------------------------------------------------------------------- */

struct annotations {
    struct pl_str fault;
};
static const struct pl_field annotation_fields[] = {
    PL_FIELD(FLEET_FAULT_ANNOTATION, F_STR, struct annotations, fault),
};
static PL_SHAPE(annotations_shape, struct annotations, annotation_fields);

struct item {
    struct pl_str name;
    struct annotations annotations;
};
static const struct pl_field item_fields[] = {
    PL_FIELD("metadata.name", F_STR, struct item, name),
    PL_FIELD_SHAPE("metadata.annotations", F_MAP, struct item, annotations, &annotations_shape),
};
static PL_SHAPE(item_shape, struct item, item_fields);

struct items {
    PL_LIST(struct item) items;
};
static const struct pl_field items_fields[] = {
    PL_FIELD_SHAPE("items", F_LIST, struct items, items, &item_shape),
};
static PL_SHAPE(items_shape, struct items, items_fields);

static int list(struct ask *a, struct pl_str cluster, const struct thing *thing,
                struct items *found)
{
    struct pl_cli *cli = a->cli;
    struct pl_error *cause = NULL;
    struct pl_json j;

    *found = (struct items){ { 0 } };
    if (ask(a, cluster, "GET", collection_path(a, thing), PL_STR("")) < 0)
        return -1;
    pl__json_init(&j, a->body, PL_STR("answer"), &a->answers, 0, &cause);
    if (pl__json_decode(&j, &items_shape, found) < 0)
        return pl__error(&cli->arena, &cli->err, PL_INVALID, "%.*s",
                         PL_STR_ARG(pl__error_text(&cli->arena, cause)));
    return 0;
}

/* What to do with each object that has a fault. */
typedef int fault_fn(struct ask *a, const struct target *target, struct pl_str fault,
                     size_t *count);

static int each_of(struct ask *a, struct pl_str cluster, const struct thing *thing, fault_fn *fn,
                   size_t *count)
{
    struct items found;

    if (list(a, cluster, thing, &found) < 0)
        return -1;
    for (uint32_t i = 0; i < found.items.count; i++) {
        const struct item *item = &found.items.items[i];
        struct target target = { thing, cluster, item->name };
        if (item->annotations.fault.len && fn(a, &target, item->annotations.fault, count) < 0)
            return -1;
    }
    return 0;
}

/* A cluster that is cut off, or of which the kubeconfig knows nothing, cannot be asked; the others can. */
static void each_in_workload(struct ask *a, struct pl_str cluster, fault_fn *fn, size_t *count)
{
    struct pl_cli *cli = a->cli;

    for (size_t i = 0; i < THING_COUNT; i++) {
        if (!things[i].workload || each_of(a, cluster, &things[i], fn, count) == 0)
            continue;
        struct pl_buf text;
        pl__buf_init(&text, &cli->arena, 4096);
        pl__text_add(&text, pl__error_text(&cli->arena, cli->err));
        fprintf(stderr, "plimsoll: Cluster %.*s could not be asked: %.*s\n", PL_STR_ARG(cluster),
                PL_STR_ARG(pl__buf_str(&text)));
        pl__cli_note(cli, OUTCOME_MISSING);
        cli->err = NULL;
        return;
    }
}

static int each_fault(struct ask *a, fault_fn *fn, size_t *count)
{
    struct items clusters;

    for (size_t i = 0; i < THING_COUNT; i++) {
        if (!things[i].workload && each_of(a, PL_STR(""), &things[i], fn, count) < 0)
            return -1;
    }
    if (list(a, PL_STR(""), &things[CLUSTER_THING], &clusters) < 0)
        return -1;
    for (uint32_t i = 0; i < clusters.items.count; i++)
        each_in_workload(a, clusters.items.items[i].name, fn, count);
    return 0;
}

static void add_target(struct pl_buf *out, const struct target *t)
{
    pl__buf_printf(out, "%s/", t->thing->word);
    if (t->cluster.len) {
        pl__text_add(out, t->cluster);
        pl__buf_add_char(out, '/');
    }
    pl__text_add(out, t->name);
}

static int show(struct ask *a, const struct target *target, struct pl_str fault, size_t *count)
{
    struct pl_buf *out = &a->cli->out.buf;

    pl__buf_add_lit(out, "  ");
    add_target(out, target);
    pl__buf_add_lit(out, ": ");
    pl__text_add(out, fault);
    pl__buf_add_char(out, '\n');
    ++*count;
    return 0;
}

static int mend(struct ask *a, const struct target *target, struct pl_str fault, size_t *count)
{
    struct pl_buf *out = &a->cli->out.buf;

    if (put(a, target, NULL) < 0)
        return -1;
    add_target(out, target);
    pl__buf_add_lit(out, ": ");
    pl__text_add(out, fault);
    pl__buf_add_lit(out, " is taken off\n");
    ++*count;
    return 0;
}

/* --- the three forms ----------------------------------------------------------------------------------- */

static void print_faults(struct pl_cli *cli)
{
    struct pl_buf *out = &cli->out.buf;
    struct pl_buf line;

    for (size_t i = 0; i < pl__fleet_fault_count; i++) {
        const struct pl_fleet_fault *f = &pl__fleet_faults[i];
        pl__term_add(&cli->term, out, COLOR_BOLD, pl__str(f->name));
        pl__buf_add_lit(out, " (");
        add_places(out, f->on);
        pl__buf_add_lit(out, ")\n");
        pl__buf_init(&line, &cli->arena, 4096);
        pl__buf_printf(&line, "%s; undone: %s", f->does, f->undone);
        pl__text_wrap(out, pl__buf_str(&line),
                      (struct pl_wrap){ PL_STR("    "), PL_STR("    "), cli->term.width });
    }
}

static int run_list(struct ask *a)
{
    struct pl_cli *cli = a->cli;
    size_t count = 0;

    print_faults(cli);
    pl__buf_add_lit(&cli->out.buf, "\nBroken now:\n");
    if (each_fault(a, show, &count) < 0)
        return -1;
    if (count == 0)
        pl__buf_add_lit(&cli->out.buf, "  nothing\n");
    return 0;
}

static int run_clear(struct ask *a)
{
    struct pl_cli *cli = a->cli;
    const struct pl_words *words = &cli->args.words;
    struct target target;
    size_t count = 0;

    if (words->count == 1)
        return each_fault(a, mend, &count);
    if (take_target(cli, words->items[1], &target) < 0 || put(a, &target, NULL) < 0)
        return -1;
    add_target(&cli->out.buf, &target);
    pl__buf_add_lit(&cli->out.buf, ": no fault any more\n");
    return 0;
}

static int run_put(struct ask *a)
{
    struct pl_cli *cli = a->cli;
    const struct pl_words *words = &cli->args.words;
    struct target target;

    if (words->count < 2)
        return pl__cli_usage(cli,
                             "%s on what? Expected cluster/NAME, machine/NAME, "
                             "node/CLUSTER/NAME or pod/CLUSTER/NAME",
                             words->items[0]);
    if (take_target(cli, words->items[1], &target) < 0 ||
        check_fault(cli, words->items[0], &target) < 0 || put(a, &target, words->items[0]) < 0)
        return -1;
    add_target(&cli->out.buf, &target);
    pl__buf_printf(&cli->out.buf, ": %s; plimsoll fault clear %s mends it\n", words->items[0],
                   words->items[1]);
    return 0;
}

static int run(struct pl_cli *cli)
{
    const struct pl_words *words = &cli->args.words;
    struct ask a = { .cli = cli };

    if (words->count == 0)
        return pl__cli_usage(cli, "expected a fault and a target, list, or clear");
    if (words->count > 2)
        return pl__cli_usage(cli, "\"%s\": one fault and one target at a time", words->items[2]);
    if (!is_name(pl__str(namespace_of(cli))))
        return pl__cli_usage(cli, "--namespace \"%s\": expected lower case letters, digits and -",
                             namespace_of(cli));
    a.loop = pl__loop_new();
    pl__arena_init(&a.secrets, &pl__secret_allocator, 0);
    pl__arena_init(&a.answers, NULL, 0);
    int result = strcmp(words->items[0], "list") == 0    ? run_list(&a)
                 : strcmp(words->items[0], "clear") == 0 ? run_clear(&a)
                                                         : run_put(&a);
    if (a.kube)
        pl__kube_close(a.kube);
    pl__loop_free(a.loop);
    pl__arena_release(&a.secrets);
    pl__arena_release(&a.answers);
    return result;
}

const struct pl_command pl__command_fault = {
    .name = "fault",
    .summary = "break something in a playground, or mend it",
    .synopsis = "FAULT TARGET | list | clear [TARGET]",
    .description =
        "Puts a fault on something in the playground that plimsoll up runs: it writes the "
        "annotation sim.plimsoll.dev/fault, which kubectl annotate can do as well. The fault stays "
        "until it is cleared. list shows what can be broken, where, and what is broken now.\n"
        "Nodes and Pods are in the workload cluster, which is named before them; the kubeconfig "
        "of plimsoll up has a context for each.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments = arguments,
    .argument_count = sizeof arguments / sizeof arguments[0],
    .examples = examples,
    .example_count = sizeof examples / sizeof examples[0],
    .run = run,
};
