/* plimsoll explain - why a condition is what it is. */
#include "cli/explain.h"

#include <ctype.h>
#include <strings.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/report.h"
#include "cli/text.h"

static const struct pl_option options[] = {
    /* clang-format off */
    PL_OPTION_FILE,
    PL_OPTION_OUTPUT(pl__read_formats),
    PL_OPTION_PROFILE,
    PL_OPTION_NOW,
    PL_OPTION_NAMESPACE,
    PL_OPTIONS_LIVE,
    PL_OPTION_EXIT_ZERO,
    PL_OPTION_COLOR,
    PL_OPTION_HELP,
    /* clang-format on */
};

static const char *const kind_prefixes[] = { "kcp/", "machine/", "md/", NULL };

static const struct pl_argument arguments[] = {
    { .name = "KIND/NAME",
      .complete = COMPLETE_CHOICES,
      .choices = kind_prefixes,
      .help = "the object: kcp, machine (ma) or md, or the kind written out; KIND/NAMESPACE/NAME "
              "works, too; default: everything that calls for attention" },
    { .name = "CONDITION",
      .complete = COMPLETE_NOTHING,
      .help = "only this condition, such as EtcdClusterHealthy" },
};

static const struct pl_example examples[] = {
    { "plimsoll explain -f dump.yaml", "everything that calls for attention" },
    { "plimsoll explain kcp/prod-control-plane EtcdClusterHealthy -f dump.yaml", "one condition" },
    { "plimsoll explain machine/prod-control-plane-x7k2p -f dump.yaml", "one Machine" },
    { "plimsoll explain kcp/prod-control-plane", "a live control plane" },
};

static const struct kind {
    const char *kind;
    const char *names[4];
} kinds[] = {
    { "KubeadmControlPlane", { "kcp", "kubeadmcontrolplane", "kubeadmcontrolplanes", NULL } },
    { "Machine", { "ma", "machine", "machines", NULL } },
    { "MachineDeployment", { "md", "machinedeployment", "machinedeployments", NULL } },
};

static const char *kind_find(struct pl_str name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (const char *const *other = kinds[i].names; *other; other++)
            if (strlen(*other) == name.len && strncasecmp(*other, name.ptr, name.len) == 0)
                return kinds[i].kind;
    return NULL;
}

/* --- the words of the command line ------------------------------------------------------------- */

/* KIND/NAME or KIND/NAMESPACE/NAME. False when the word starts with no kind we know. */
static bool take_target(struct pl_explain *x, const char *word)
{
    const char *slash = strchr(word, '/');

    if (!slash || x->kind)
        return false;
    x->kind = kind_find((struct pl_str){ word, (size_t)(slash - word) });
    if (!x->kind)
        return false;
    x->name = pl__str(slash + 1);
    slash = strchr(slash + 1, '/');
    if (slash) {
        x->namespace_ = (struct pl_str){ x->name.ptr, (size_t)(slash - x->name.ptr) };
        x->name = pl__str(slash + 1);
    }
    return true;
}

static bool looks_like_condition(const char *word)
{
    for (const char *at = word; *at; at++)
        if (!isalnum((unsigned char)*at))
            return false;
    return isalpha((unsigned char)*word);
}

/* The object, the condition and further files may stand in any order: each looks like nothing
 * else. `files` has room for all words. */
static int take_words(struct pl_explain *x, struct pl_words *files)
{
    const struct pl_words *words = &x->cli->args.words;

    for (size_t i = 0; i < words->count; i++) {
        const char *word = words->items[i];
        if (take_target(x, word))
            continue;
        if (!x->condition && looks_like_condition(word)) {
            x->condition = word;
            continue;
        }
        const char *slash = strchr(word, '/');
        if (slash && !x->kind && access(word, F_OK) < 0)
            return pl__cli_usage(x->cli, "unknown kind \"%.*s\", expected kcp, machine or md",
                                 (int)(slash - word), word);
        files->items[files->count++] = word;
    }
    if (pl__cli_given(x->cli, OPT_NAMESPACE))
        x->namespace_ = pl__str(x->cli->args.value[OPT_NAMESPACE]);
    if (x->kind && x->name.len == 0)
        return pl__cli_usage(x->cli, "no name behind the kind, expected KIND/NAME");
    return 0;
}

/* --- what to show ------------------------------------------------------------------------------ */

static bool object_calls(const struct pl_object *object)
{
    for (size_t i = 0; i < object->verdict_count; i++)
        if (pl__verdict_calls(&object->verdicts[i]))
            return true;
    return false;
}

static bool is_machine(const struct pl_object *object)
{
    return strcmp(object->kind, "Machine") == 0;
}

static bool has_condition(const struct pl_explain *x, const struct pl_object *object)
{
    for (size_t i = 0; i < object->verdict_count; i++)
        if (pl__explain_wants_verdict(x, &object->verdicts[i]))
            return true;
    return false;
}

/* True when the wanted condition of this object could not be judged. */
static bool misses_condition(const struct pl_explain *x, const struct pl_object *object)
{
    struct pl_str name = pl__str_format(x->scratch, "%s/%.*s/%.*s", object->kind,
                                        PL_STR_ARG(object->namespace_), PL_STR_ARG(object->name));

    for (size_t i = 0; i < x->report->missing_count; i++) {
        const struct pl_missing *missing = &x->report->missing[i];
        if (pl__str_equal(missing->object, name) &&
            strcasecmp(missing->condition.ptr, x->condition) == 0)
            return true;
    }
    return false;
}

/* True when a condition of the KubeadmControlPlane calls for attention because of this one, or
 * together with it. */
static bool is_spoken_for(const struct pl_explain *x, const struct pl_object *machine,
                          const struct pl_verdict *verdict)
{
    for (size_t i = 0; i < x->report->object_count; i++) {
        const struct pl_object *owner = &x->report->objects[i];
        if (!pl__explain_owns(owner, machine))
            continue;
        for (size_t k = 0; k < owner->verdict_count; k++)
            if (pl__verdict_feeds(verdict, &owner->verdicts[k]) &&
                pl__verdict_calls(&owner->verdicts[k]))
                return true;
    }
    return false;
}

/* A Machine stands below its KubeadmControlPlane, unless it has something to say of its own: one
 * that is still being provisioned, for example, does not count against the control plane. */
static bool machine_calls(const struct pl_explain *x, const struct pl_object *machine)
{
    for (size_t i = 0; i < machine->verdict_count; i++)
        if (pl__verdict_calls(&machine->verdicts[i]) &&
            !is_spoken_for(x, machine, &machine->verdicts[i]))
            return true;
    return false;
}

bool pl__explain_wants_object(const struct pl_explain *x, const struct pl_object *object)
{
    if (x->namespace_.len && !pl__str_equal(x->namespace_, object->namespace_))
        return false;
    if (x->kind && (strcmp(x->kind, object->kind) != 0 || !pl__str_equal(x->name, object->name)))
        return false;
    if (x->condition)
        return has_condition(x, object) || misses_condition(x, object);
    if (x->kind)
        return true;
    if (is_machine(object))
        return machine_calls(x, object);
    return x->everything || object_calls(object);
}

bool pl__explain_wants_verdict(const struct pl_explain *x, const struct pl_verdict *verdict)
{
    return !x->condition || strcasecmp(x->condition, verdict->type) == 0;
}

bool pl__explain_wants_detail(const struct pl_explain *x, const struct pl_verdict *verdict)
{
    return x->condition || pl__verdict_calls(verdict);
}

bool pl__explain_owns(const struct pl_object *control_plane, const struct pl_object *machine)
{
    return is_machine(machine) && !is_machine(control_plane) &&
           pl__str_equal(machine->owner, control_plane->name) &&
           pl__str_equal(machine->namespace_, control_plane->namespace_);
}

bool pl__explain_contributes(const struct pl_object *control_plane,
                             const struct pl_verdict *verdict, const struct pl_object *machine,
                             const struct pl_verdict *of_machine)
{
    /* A rung of the ladder decides for all Machines at once: they are not its reason. */
    bool rung = pl__str_starts_with(pl__str(of_machine->row), PL_STR("Ladder/"));

    return !rung && pl__explain_owns(control_plane, machine) && pl__verdict_calls(of_machine) &&
           pl__verdict_feeds(of_machine, verdict);
}

const struct pl_remediation *pl__explain_remediation(const struct pl_explain *x,
                                                     const struct pl_object *object)
{
    for (size_t i = 0; i < x->report->remediation_count; i++) {
        const struct pl_remediation *step = &x->report->remediation[i];
        if (pl__str_equal(step->name, object->name) &&
            pl__str_equal(step->namespace_, object->namespace_) &&
            strcmp(object->kind, "KubeadmControlPlane") == 0)
            return step;
    }
    return NULL;
}

const struct pl_deletion *pl__explain_deletion(const struct pl_explain *x,
                                               const struct pl_object *object)
{
    for (size_t i = 0; i < x->report->deletion_count; i++) {
        const struct pl_deletion *step = &x->report->deletion[i];
        if (pl__str_equal(step->name, object->name) &&
            pl__str_equal(step->namespace_, object->namespace_) &&
            strcmp(object->kind, "KubeadmControlPlane") == 0)
            return step;
    }
    return NULL;
}

void pl__explain_names(struct pl_explain *x)
{
    for (size_t i = 0; i < x->report->object_count; i++) {
        const struct pl_object *object = &x->report->objects[i];
        if (!pl__explain_wants_object(x, object))
            continue;
        for (size_t k = 0; k < object->verdict_count; k++)
            if (pl__explain_wants_verdict(x, &object->verdicts[k]))
                pl__verdict_add_name(&x->cli->out.buf, object, &object->verdicts[k]);
    }
}

/* --- running ----------------------------------------------------------------------------------- */

/* The exit code speaks of what is shown, and of nothing else. */
static size_t note_outcome(struct pl_explain *x)
{
    size_t shown = 0;

    for (size_t i = 0; i < x->report->object_count; i++) {
        const struct pl_object *object = &x->report->objects[i];
        if (!pl__explain_wants_object(x, object))
            continue;
        shown++;
        for (size_t k = 0; k < object->verdict_count; k++)
            if (pl__explain_wants_verdict(x, &object->verdicts[k]) &&
                pl__verdict_calls(&object->verdicts[k]))
                pl__cli_note(x->cli, OUTCOME_FINDINGS);
    }
    if (x->report->missing_count && (shown || !x->kind))
        pl__cli_note(x->cli, OUTCOME_MISSING);
    return shown;
}

static void print(struct pl_explain *x)
{
    if (pl__cli_output_is(x->cli, "json") || pl__cli_output_is(x->cli, "yaml"))
        pl__explain_data(x);
    else if (pl__cli_output_is(x->cli, "name"))
        pl__explain_names(x);
    else
        pl__explain_tree(x);
}

static bool anything_calls(const struct pl_report *report)
{
    for (size_t i = 0; i < report->object_count; i++)
        if (object_calls(&report->objects[i]))
            return true;
    return false;
}

static int not_found(struct pl_explain *x)
{
    if (x->kind)
        return pl__error(
            &x->cli->arena, &x->cli->err, PL_NOT_FOUND,
            "no %s %.*s%s%.*s%s%s in the input; plimsoll eval -o name lists what is there", x->kind,
            PL_STR_ARG(x->namespace_), x->namespace_.len ? "/" : "", PL_STR_ARG(x->name),
            x->condition ? " with a condition " : "", x->condition ? x->condition : "");
    return pl__error(
        &x->cli->arena, &x->cli->err, PL_NOT_FOUND,
        "no condition \"%s\" in the input, expected KIND/NAME or the type of a condition; "
        "plimsoll eval -o name lists what is there",
        x->condition);
}

static int explain_all(struct pl_explain *x, struct pl_judge *judge)
{
    size_t shown = 0;
    int got;

    while ((got = pl__judge_next(judge)) > 0) {
        x->report = judge->report;
        x->everything = !anything_calls(judge->report);
        size_t objects = note_outcome(x);
        /* Someone who asks for one object does not want to hear of the snapshots without it. */
        if (objects || (!x->kind && !x->condition)) {
            print(x);
            x->first = false;
        }
        shown += objects;
        pl__arena_reset(x->scratch);
        if (pl__judge_flush(judge) < 0)
            return -1;
    }
    if (got == 0 && shown == 0 && (x->kind || x->condition))
        return not_found(x);
    return got;
}

static int run(struct pl_cli *cli)
{
    struct pl_arena scratch;
    struct pl_judge judge;
    struct pl_explain x = { .cli = cli, .scratch = &scratch, .first = true };
    struct pl_words files = { PL_NEW(&cli->arena, const char *, cli->args.words.count), 0 };

    if (take_words(&x, &files) < 0)
        return -1;
    if (pl__cli_output_is(cli, "wide"))
        cli->term.width = SIZE_MAX;
    pl__arena_init(&scratch, NULL, 0);
    int result = pl__judge_open(
        &judge, cli, files, true,
        &(struct pl_live_wanted){ .kind = x.kind, .namespace_ = x.namespace_, .name = x.name });
    x.ctx = judge.ctx;
    if (result == 0)
        result = explain_all(&x, &judge);
    pl__judge_close(&judge);
    pl__arena_release(&scratch);
    return result;
}

const struct pl_command pl__command_explain = {
    .name = "explain",
    .summary = "why a condition is what it is, down to the observed facts",
    .synopsis = "[KIND/NAME] [CONDITION] [OPTIONS] [-f FILE...]",
    .description =
        "Prints a tree: each condition with the row of the transition table that decided it, its "
        "status, reason, message and age. A condition that is as it should be takes one line, "
        "unless it is asked for by name. Below the others stand the guard of the row in words, "
        "the other rows that held, the Machines that contributed, and the evidence: each fact "
        "with its object, path and value and, in brackets, how it was observed, and when, if not "
        "at the instant in the heading. What the next remediation or deletion step would do "
        "follows, with the quorum arithmetic; below a control plane what mode manage does next, "
        "what that waits for and how far it has come; and at the end the evidence that is "
        "missing.\n"
        "Without KIND/NAME it explains what calls for attention, or everything when all is "
        "healthy. Without files it reads from a live API: the cluster of the named object, or all "
        "of the namespace.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments = arguments,
    .argument_count = sizeof arguments / sizeof arguments[0],
    .examples = examples,
    .example_count = sizeof examples / sizeof examples[0],
    .run = run,
};
