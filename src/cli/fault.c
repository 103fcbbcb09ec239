/* plimsoll fault - breaks something in a playground, and mends it.
 *
 * A fault is an annotation on a Cluster, a Machine, a Node or a Pod; kubectl annotate does the same. What it
 * does is the fleet's business (fleet/fleet.h). The object is looked at first: what would change nothing (the etcd of
 * a worker, the certificate of a scheduler) is refused here, where somebody reads it. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/data.h"
#include "cli/fault_ask.h"
#include "cli/text.h"
#include "fleet/fleet.h"

enum { NAME_BYTES_MAX = 253, GAP = 2 };

static const char *const formats[] = { "table", "json", "yaml", "name", NULL };
static const char *const target_prefixes[] = { "cluster/", "machine/", "node/", "pod/", NULL };

static const struct pl_option options[] = {
    /* clang-format off */
    { .id = OPT_NAMESPACE, .name = "namespace", .letter = 'n', .argument = "NS", .fallback = "default",
      .help = "of the Clusters and Machines" },
    { .id = OPT_KUBECONFIG, .name = "kubeconfig", .argument = "FILE", .files = true,
      .help = "the one that plimsoll up has written; default: $KUBECONFIG, ~/.kube/config" },
    { .id = OPT_OUTPUT, .name = "output", .letter = 'o', .argument = "FORMAT", .choices = formats,
      .fallback = "table", .help = "how list prints" },
    PL_OPTION_COLOR,
    PL_OPTION_HELP,
    /* clang-format on */
};

static const struct pl_argument arguments[] = {
    { .name = "FAULT",
      .complete = COMPLETE_FAULTS,
      .help =
          "what to break, or list: what is broken and what can be; or clear: mend it; several are "
          "joined by commas" },
    { .name = "TARGET",
      .complete = COMPLETE_CHOICES,
      .choices = target_prefixes,
      .help = "cluster/NAME, machine/NAME, node/CLUSTER/NAME or pod/CLUSTER/NAME; with clear, "
              "default: all" },
};

static const struct pl_example examples[] = {
    { "plimsoll fault list", "what is broken, and what can be" },
    { "plimsoll fault network-cut cluster/demo-1", "a cluster cannot be reached" },
    { "plimsoll fault kubelet-down machine/demo-1-cp-1",
      "a machine dies; its replacement follows" },
    { "plimsoll fault pod-crash:kube-scheduler machine/demo-1-cp-1", "one of its static Pods" },
    { "plimsoll fault clear", "mend everything" },
};

/* --- what a fault is put on ------------------------------------------------------------------------ */

/* Names become part of a URL. */
static bool is_name(struct pl_str name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";

    return name.len && name.len <= NAME_BYTES_MAX &&
           strspn(name.ptr, allowed) >= name.len; /* what follows it may be a slash */
}

static const struct pl_fault_thing *find_thing(struct pl_str word)
{
    for (size_t i = 0; i < pl__fault_thing_count; i++) {
        if (pl__str_equal(word, pl__str(pl__fault_things[i].word)))
            return &pl__fault_things[i];
    }
    return NULL;
}

static int take_target(struct pl_cli *cli, const char *text, struct pl_fault_target *target)
{
    const char *slash = strchr(text, '/');

    *target = (struct pl_fault_target){ .thing = NULL };
    if (slash)
        target->thing = find_thing((struct pl_str){ text, (size_t)(slash - text) });
    if (target->thing && target->thing->workload) {
        const char *second = strchr(slash + 1, '/');
        if (second) {
            target->cluster = (struct pl_str){ slash + 1, (size_t)(second - slash - 1) };
            target->name = pl__str(second + 1);
        }
    } else if (target->thing) {
        target->name = pl__str(slash + 1);
    }
    if (target->thing && is_name(target->name) &&
        (!target->thing->workload || is_name(target->cluster)))
        return 0;
    pl__cli_usage(cli,
                  "\"%s\": expected cluster/NAME, machine/NAME, node/CLUSTER/NAME or "
                  "pod/CLUSTER/NAME",
                  text);
    return -1;
}

static void add_places(struct pl_buf *out, unsigned on)
{
    bool first = true;

    for (size_t i = 0; i < pl__fault_thing_count; i++) {
        if (!(on & pl__fault_things[i].on))
            continue;
        pl__buf_printf(out, "%s%s", first ? "" : ", ", pl__fault_things[i].word);
        first = false;
    }
}

static void add_target(struct pl_buf *out, const struct pl_fault_target *t)
{
    pl__buf_printf(out, "%s/", t->thing->word);
    if (t->cluster.len) {
        pl__text_add(out, t->cluster);
        pl__buf_add_char(out, '/');
    }
    pl__text_add(out, t->name);
}

/* --- what a fault is ------------------------------------------------------------------------------- */

static const struct pl_fleet_fault *find_fault(struct pl_str name)
{
    for (size_t i = 0; i < pl__fleet_fault_count; i++) {
        if (pl__str_equal(name, pl__str(pl__fleet_faults[i].name)))
            return &pl__fleet_faults[i];
    }
    return NULL;
}

static int unknown_fault(struct pl_cli *cli, struct pl_str name)
{
    struct pl_near near = { .wanted = pl__str_copy(&cli->arena, name).ptr };

    for (size_t i = 0; i < pl__fleet_fault_count; i++)
        pl__near_offer(&near, pl__fleet_faults[i].name);
    if (near.best)
        return pl__cli_usage(cli, "no fault \"%s\", did you mean \"%s\"?", near.wanted, near.best);
    return pl__cli_usage(cli, "no fault \"%s\"; plimsoll fault list shows them", near.wanted);
}

/* One word, "pod-crash:etcd", of what is to be put there: is it right by itself? */
static int check_word(struct pl_cli *cli, struct pl_str word, const struct pl_fault_target *target)
{
    struct pl_str name = { word.ptr, strcspn(word.ptr, ":,") }, bad;
    const struct pl_fleet_fault *f = find_fault(name);
    struct pl_buf places;

    if (!f)
        return unknown_fault(cli, name);
    if (!(f->on & target->thing->on)) {
        pl__buf_init(&places, &cli->arena, 256);
        add_places(&places, f->on);
        return pl__cli_usage(cli, "%s cannot be put on a %s: expected %s", f->name,
                             target->thing->kind, pl__buf_str(&places).ptr);
    }
    if (pl__fleet_fault_check(word, target->thing->on, &bad))
        return 0;
    if (!f->detail)
        return pl__cli_usage(cli, "\"%.*s\": nothing can stand behind %s", PL_STR_ARG(word),
                             f->name);
    return pl__cli_usage(cli, "\"%.*s\": expected behind %s: %s", PL_STR_ARG(word), f->name,
                         f->detail);
}

/* The object is there; does it have what breaks? */
static int check_on(struct pl_cli *cli, struct pl_str word, const struct pl_fault_target *target,
                    const struct pl_fault_item *item)
{
    size_t len = strcspn(word.ptr, ":,");
    const struct pl_fleet_fault *f = find_fault((struct pl_str){ word.ptr, len });
    bool on_pod = target->thing->on == FAULT_ON_POD;
    bool on_machine = target->thing->on & (FAULT_ON_MACHINE | FAULT_ON_NODE);

    if (on_machine && f->needs && !item->control_plane)
        return pl__cli_usage(cli,
                             "%s %.*s is not a control plane's: it has no static Pods and no etcd",
                             target->thing->kind, PL_STR_ARG(target->name));
    if (on_pod && f->needs == FAULT_NEEDS_MEMBER &&
        !pl__str_starts_with(target->name, PL_STR("etcd-")))
        return pl__cli_usage(cli, "%s is about etcd: expected its Pod, etcd-NODE", f->name);
    if (on_pod && len + 1 < word.len) {
        struct pl_str component = { word.ptr + len + 1, word.len - len - 1 };
        if (!pl__str_starts_with(target->name, component))
            return pl__cli_usage(cli, "\"%.*s\": Pod %.*s is another one", PL_STR_ARG(word),
                                 PL_STR_ARG(target->name));
    }
    return 0;
}

/* What stands before the next comma; moves on. */
static struct pl_str next_word(const char **text)
{
    struct pl_str word = { *text, strcspn(*text, ",") };

    *text += word.len + ((*text)[word.len] == ',');
    return word;
}

/* --- what is broken ---------------------------------------------------------------------------------- */

/* What to do with each object that has a fault. */
struct each {
    struct pl_cli *cli;
    struct pl_fault_ask *ask;
    int (*fn)(struct each *e, const struct pl_fault_target *target, struct pl_str fault);
    struct pl_data data; /* -o json, yaml */
    size_t count;
};

static int each_of(struct each *e, struct pl_str cluster, const struct pl_fault_thing *thing)
{
    struct pl_fault_items found;

    if (pl__fault_list(e->ask, cluster, thing, &found) < 0)
        return -1;
    for (uint32_t i = 0; i < found.items.count; i++) {
        const struct pl_fault_item *item = &found.items.items[i];
        struct pl_fault_target target = { thing, cluster, item->name };
        if (!item->fault.len)
            continue;
        e->count++;
        if (e->fn(e, &target, item->fault) < 0)
            return -1;
    }
    return 0;
}

/* A cluster that is cut off, or of which the kubeconfig knows nothing, cannot be asked; the others can. */
static void each_in_workload(struct each *e, struct pl_str cluster)
{
    struct pl_cli *cli = e->cli;

    for (size_t i = 0; i < pl__fault_thing_count; i++) {
        if (!pl__fault_things[i].workload || each_of(e, cluster, &pl__fault_things[i]) == 0)
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

static int each_fault(struct each *e)
{
    struct pl_fault_items clusters;

    for (size_t i = 0; i < pl__fault_thing_count; i++) {
        if (!pl__fault_things[i].workload && each_of(e, PL_STR(""), &pl__fault_things[i]) < 0)
            return -1;
    }
    if (pl__fault_list(e->ask, PL_STR(""), pl__fault_clusters(), &clusters) < 0)
        return -1;
    for (uint32_t i = 0; i < clusters.items.count; i++)
        each_in_workload(e, clusters.items.items[i].name);
    return 0;
}

/* --- list -------------------------------------------------------------------------------------------- */

static int show_line(struct each *e, const struct pl_fault_target *target, struct pl_str fault)
{
    struct pl_cli *cli = e->cli;
    struct pl_buf *out = &cli->out.buf;
    bool bare = pl__cli_output_is(cli, "name");

    if (!bare)
        pl__buf_add_lit(out, "  ");
    add_target(out, target);
    pl__buf_add_char(out, ' ');
    pl__term_add(&cli->term, out, bare ? COLOR_PLAIN : COLOR_RED, fault);
    pl__buf_add_char(out, '\n');
    return 0;
}

static int show_data(struct each *e, const struct pl_fault_target *target, struct pl_str fault)
{
    struct pl_data *data = &e->data;
    const char *rest = pl__str_copy(&e->cli->arena, fault).ptr;

    pl__data_object(data, NULL);
    pl__data_text(data, "kind", target->thing->kind);
    if (target->cluster.len)
        pl__data_str(data, "cluster", target->cluster);
    else
        pl__data_text(data, "namespace", e->cli->args.value[OPT_NAMESPACE]);
    pl__data_str(data, "name", target->name);
    pl__data_array(data, "faults");
    while (*rest)
        pl__data_str(data, NULL, next_word(&rest));
    pl__data_end_array(data);
    pl__data_end_object(data);
    return 0;
}

static void catalogue_data(struct pl_data *data)
{
    pl__data_array(data, "faults");
    for (size_t i = 0; i < pl__fleet_fault_count; i++) {
        const struct pl_fleet_fault *f = &pl__fleet_faults[i];
        pl__data_object(data, NULL);
        pl__data_text(data, "name", f->name);
        pl__data_array(data, "on");
        for (size_t k = 0; k < pl__fault_thing_count; k++) {
            if (f->on & pl__fault_things[k].on)
                pl__data_text(data, NULL, pl__fault_things[k].kind);
        }
        pl__data_end_array(data);
        if (f->detail)
            pl__data_text(data, "detail", f->detail);
        pl__data_text(data, "does", f->does);
        pl__data_text(data, "undone", f->undone);
        pl__data_end_object(data);
    }
    pl__data_end_array(data);
}

/* A line each: name, the letters of where it can be put, what it does. */
static void print_catalogue(struct pl_cli *cli)
{
    struct pl_buf *out = &cli->out.buf;
    struct pl_wrap wrap = { .width = cli->term.width };
    size_t width = 0;

    for (size_t i = 0; i < pl__fleet_fault_count; i++) {
        size_t len = strlen(pl__fleet_faults[i].name);
        width = len > width ? len : width;
    }
    pl__buf_add_lit(out, "Can be broken, on a");
    for (size_t i = 0; i < pl__fault_thing_count; i++)
        pl__buf_printf(out, "%s %c%s", i ? "," : "", pl__fault_things[i].letter,
                       pl__fault_things[i].kind + 1);
    pl__buf_add_lit(out, ":\n");
    for (size_t i = 0; i < pl__fleet_fault_count; i++) {
        const struct pl_fleet_fault *f = &pl__fleet_faults[i];
        struct pl_buf first, rest;
        pl__buf_init(&first, &cli->arena, 256);
        pl__text_spaces(&first, GAP);
        pl__text_pad(&first, pl__str(f->name), width + GAP);
        for (size_t k = 0; k < pl__fault_thing_count; k++)
            pl__buf_add_char(&first,
                             f->on & pl__fault_things[k].on ? pl__fault_things[k].letter : '-');
        pl__text_spaces(&first, GAP);
        pl__buf_init(&rest, &cli->arena, 256);
        pl__text_spaces(&rest, first.len);
        wrap.first = pl__buf_str(&first);
        wrap.rest = pl__buf_str(&rest);
        pl__text_wrap(out, pl__str(f->does), wrap);
    }
    pl__text_wrap(out,
                  PL_STR("A fault of a Pod can name it, pod-crash:kube-scheduler (default: "
                         "kube-apiserver), network-slow the milliseconds, network-slow:500."),
                  (struct pl_wrap){ PL_STR(""), PL_STR(""), cli->term.width });
}

static int list_data(struct each *e)
{
    e->fn = show_data;
    pl__data_open(&e->data, e->cli, true);
    pl__data_array(&e->data, "broken");
    int result = each_fault(e);
    pl__data_end_array(&e->data);
    catalogue_data(&e->data);
    pl__data_close(&e->data);
    return result;
}

static int run_list(struct each *e)
{
    struct pl_cli *cli = e->cli;
    struct pl_buf *out = &cli->out.buf;

    if (cli->args.words.count > 1)
        return pl__cli_usage(cli, "\"%s\": list takes no target", cli->args.words.items[1]);
    if (pl__cli_output_is(cli, "json") || pl__cli_output_is(cli, "yaml")) {
        int result = list_data(e);
        if (result < 0)
            pl__buf_clear(out); /* half of a list is none */
        return result;
    }
    e->fn = show_line;
    if (pl__cli_output_is(cli, "name"))
        return each_fault(e);
    pl__buf_add_lit(out, "Broken now:\n");
    if (each_fault(e) < 0) {
        pl__buf_clear(out);
        return -1;
    }
    if (e->count == 0)
        pl__buf_add_lit(out, "  nothing\n");
    pl__buf_add_char(out, '\n');
    print_catalogue(cli);
    return 0;
}

/* --- clear, and putting one there ---------------------------------------------------------------------- */

static int mend(struct each *e, const struct pl_fault_target *target, struct pl_str fault)
{
    struct pl_buf *out = &e->cli->out.buf;

    if (pl__fault_put(e->ask, target, NULL) < 0)
        return -1;
    add_target(out, target);
    pl__buf_add_lit(out, ": ");
    pl__text_add(out, fault);
    pl__buf_add_lit(out, " is taken off\n");
    return 0;
}

static int run_clear(struct each *e)
{
    struct pl_cli *cli = e->cli;
    const struct pl_words *words = &cli->args.words;
    struct pl_fault_target target;
    struct pl_fault_item item;

    if (words->count == 1) {
        e->fn = mend;
        int result = each_fault(e);
        if (result == 0 && e->count == 0)
            pl__buf_add_lit(&cli->out.buf, "nothing is broken\n");
        return result;
    }
    if (take_target(cli, words->items[1], &target) < 0 || pl__fault_get(e->ask, &target, &item) < 0)
        return -1;
    if (item.fault.len)
        return mend(e, &target, item.fault);
    add_target(&cli->out.buf, &target);
    pl__buf_add_lit(&cli->out.buf, ": had no fault\n");
    return 0;
}

static int run_put(struct each *e)
{
    struct pl_cli *cli = e->cli;
    const struct pl_words *words = &cli->args.words;
    const char *fault = words->items[0], *rest = fault;
    struct pl_buf *out = &cli->out.buf;
    struct pl_fault_target target;
    struct pl_fault_item item;

    if (words->count < 2)
        return pl__cli_usage(cli,
                             "%s on what? Expected cluster/NAME, machine/NAME, "
                             "node/CLUSTER/NAME or pod/CLUSTER/NAME",
                             fault);
    if (take_target(cli, words->items[1], &target) < 0)
        return -1;
    while (*rest) {
        if (check_word(cli, next_word(&rest), &target) < 0)
            return -1;
    }
    if (pl__fault_get(e->ask, &target, &item) < 0)
        return -1;
    for (rest = fault; *rest;) {
        if (check_on(cli, next_word(&rest), &target, &item) < 0)
            return -1;
    }
    if (pl__fault_put(e->ask, &target, fault) < 0)
        return -1;
    add_target(out, &target);
    pl__buf_printf(out, ": %s", fault);
    if (item.fault.len && !pl__str_equal(item.fault, pl__str(fault))) {
        pl__buf_add_lit(out, " in place of ");
        pl__text_add(out, item.fault);
    }
    pl__buf_printf(out, "; plimsoll fault clear %s mends it\n", words->items[1]);
    return 0;
}

static int run(struct pl_cli *cli)
{
    const struct pl_words *words = &cli->args.words;
    const char *namespace_ = cli->args.value[OPT_NAMESPACE];

    if (words->count == 0 || !*words->items[0])
        return pl__cli_usage(cli, "expected a fault and a target, list, or clear");
    if (words->count > 2)
        return pl__cli_usage(cli, "\"%s\": one fault and one target at a time", words->items[2]);
    if (!is_name(pl__str(namespace_)))
        return pl__cli_usage(cli, "--namespace \"%s\": expected lower case letters, digits and -",
                             namespace_);
    bool lists = strcmp(words->items[0], "list") == 0;
    if (!lists && !pl__cli_output_is(cli, "table"))
        return pl__cli_usage(cli, "--output %s: only list prints something to choose a format for",
                             cli->args.value[OPT_OUTPUT]);
    struct each e = { .cli = cli, .ask = pl__fault_ask_new(cli) };
    int result = lists                                   ? run_list(&e)
                 : strcmp(words->items[0], "clear") == 0 ? run_clear(&e)
                                                         : run_put(&e);
    pl__fault_ask_free(e.ask);
    return result;
}

const struct pl_command pl__command_fault = {
    .name = "fault",
    .summary = "break something in a playground, or mend it",
    .synopsis = "FAULT TARGET | list | clear [TARGET]",
    .description =
        "Puts a fault on something in the playground that plimsoll up runs: it writes the "
        "annotation sim.plimsoll.dev/fault, which kubectl annotate can do as well. The fault stays "
        "until it is cleared; another one takes its place. list shows what is broken now and what "
        "can be broken, where.\n"
        "Nodes and Pods are in the workload cluster, which is named before them; the kubeconfig "
        "of plimsoll up has a context for each. An API server that is no playground's is refused "
        "before anything is written.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments = arguments,
    .argument_count = sizeof arguments / sizeof arguments[0],
    .examples = examples,
    .example_count = sizeof examples / sizeof examples[0],
    .run = run,
};
