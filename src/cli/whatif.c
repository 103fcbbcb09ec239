/* plimsoll what-if - what removing a control plane Machine would mean. */
#include "cli/commands.h"
#include "cli/data.h"
#include "cli/judge.h"
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

static const char *const actions[] = { "remove", NULL };

static const struct pl_argument arguments[] = {
    { .name = "remove", .complete = COMPLETE_CHOICES, .choices = actions, .help = "the action" },
    { .name = "MACHINE",
      .complete = COMPLETE_NOTHING,
      .help = "a control plane Machine, by name or namespace/name" },
    { .name = "FILE", .complete = COMPLETE_FILES, .help = "more files, as with -f" },
};

static const struct pl_example examples[] = {
    { "plimsoll what-if remove prod-control-plane-x7k2p -f dump.yaml",
      "may this Machine go, and what is left then" },
    { "plimsoll what-if remove prod-control-plane-x7k2p", "the same, of a live cluster" },
};

/* One question, and where its answer goes. */
struct what_if {
    struct pl_cli *cli;
    const struct pl_report *report;
    const struct pl_what_if *answer;
    struct pl_arena *scratch;
    bool first;
};

static const struct pl_what_if_rule *chosen_rule(const struct what_if *w)
{
    for (size_t i = 0; i < PL_PROFILE_COUNT; i++)
        if (w->answer->rules[i].profile == w->report->profile)
            return &w->answer->rules[i];
    return &w->answer->rules[0];
}

/* A rule without a row could not be asked: what it needs to know is missing. */
static bool is_unknown(const struct pl_what_if_rule *rule)
{
    return *rule->row == '\0';
}

static const char *rule_word(const struct pl_what_if_rule *rule)
{
    if (is_unknown(rule))
        return "unknown";
    return rule->allowed ? "allowed" : "refused";
}

/* --- for people -------------------------------------------------------------------------------- */

static void add_word(struct what_if *w, const struct pl_what_if_rule *rule)
{
    enum pl_color color = rule->allowed ? COLOR_GREEN : COLOR_RED;

    pl__term_add(&w->cli->term, &w->cli->out.buf, is_unknown(rule) ? COLOR_YELLOW : color,
                 pl__str(rule_word(rule)));
}

static void add_verdict(struct what_if *w)
{
    struct pl_buf *out = &w->cli->out.buf;
    const struct pl_what_if_rule *rule = chosen_rule(w);

    pl__buf_add_lit(out, "Removing Machine ");
    pl__text_add(out, w->answer->namespace_);
    pl__buf_add_char(out, '/');
    pl__text_add(out, w->answer->machine);
    pl__buf_add_lit(out, ": ");
    add_word(w, rule);
    pl__buf_printf(out, " (%s)\n", is_unknown(rule) ? "evidence is missing" : rule->row);
}

static void add_count(struct pl_buf *out, const char *label, long long before, long long after)
{
    pl__buf_printf(out, "  %-12s %7lld %7lld\n", label, before, after);
}

static void add_arithmetic(struct what_if *w)
{
    struct pl_buf *out = &w->cli->out.buf;
    const struct pl_quorum *before = &w->answer->before;
    const struct pl_quorum *after = &w->answer->after;

    pl__buf_printf(out, "\n  %-12s %7s %7s\n", "ETCD", "BEFORE", "AFTER");
    add_count(out, "members", before->members, after->members);
    add_count(out, "voters", before->voters, after->voters);
    add_count(out, "healthy", before->healthy, after->healthy);
    add_count(out, "quorum", before->quorum, after->quorum);
    add_count(out, "tolerance", before->tolerance, after->tolerance);
    pl__buf_add_char(out, '\n');
    if (!w->answer->keeps_quorum)
        pl__buf_add_lit(out, "  etcd would be without quorum\n");
}

static void add_member(struct what_if *w)
{
    const struct pl_what_if *answer = w->answer;
    struct pl_buf text;

    pl__buf_init(&text, w->scratch, 4096);
    if (answer->member.len == 0)
        pl__buf_add_lit(&text, "It has no etcd member");
    else
        pl__buf_printf(&text, "Its etcd member is %.*s", PL_STR_ARG(answer->member));
    if (answer->member_is_leader)
        pl__buf_add_lit(&text, ", the leader");
    if (answer->leadership_to.len)
        pl__buf_printf(&text, "%s%.*s",
                       answer->member_is_leader ? "; leadership would go to "
                                                : "; candidate for leadership is ",
                       PL_STR_ARG(answer->leadership_to));
    pl__text_block(&w->cli->out.buf, pl__buf_str(&text), 2, w->cli->term.width);
}

static void add_etcd(struct what_if *w)
{
    struct pl_buf *out = &w->cli->out.buf;

    if (!w->answer->etcd_managed) {
        pl__buf_add_lit(out, "\n  etcd is external: its quorum is not touched\n");
        return;
    }
    if (w->answer->etcd_unknown.len) {
        /* Either a key of the Snapshot that is not there, or what the call to etcd said. */
        bool missing = pl__str_starts_with(w->answer->etcd_unknown, PL_STR("workloads["));
        struct pl_str why =
            pl__str_format(w->scratch, "The quorum is not known: %.*s%s",
                           PL_STR_ARG(w->answer->etcd_unknown), missing ? " is missing" : "");
        pl__buf_add_char(out, '\n');
        pl__text_block(out, why, 2, w->cli->term.width);
        return;
    }
    add_arithmetic(w);
    add_member(w);
}

/* The numbers above count voters. The rule counts every member, learners too, so it can refuse what
 * the numbers allow; a reader who compares the two deserves to hear why. */
static bool refused_for_learners(const struct pl_what_if *answer,
                                 const struct pl_what_if_rule *rule)
{
    return !rule->allowed && answer->keeps_quorum && answer->after.members > answer->after.voters &&
           strcmp(rule->row, "Remediation/8") == 0 && strstr(rule->guard, "quorum");
}

static void add_learner_note(struct what_if *w)
{
    const struct pl_quorum *after = &w->answer->after;
    bool refused = false;

    for (size_t i = 0; i < PL_PROFILE_COUNT; i++)
        refused |= refused_for_learners(w->answer, &w->answer->rules[i]);
    if (!refused)
        return;
    struct pl_str note = pl__str_format(
        w->scratch,
        "The voters left would keep quorum, but Remediation/8 counts learners as members: of %u "
        "left, %u would be healthy and %u needed; it refuses until the learner is promoted or "
        "gone",
        after->members, after->healthy, after->members / 2 + 1);
    pl__buf_add_char(&w->cli->out.buf, '\n');
    pl__text_block(&w->cli->out.buf, note, 2, w->cli->term.width);
}

static bool same_rule(const struct pl_what_if_rule *a, const struct pl_what_if_rule *b)
{
    return a->allowed == b->allowed && strcmp(a->row, b->row) == 0 &&
           strcmp(a->guard, b->guard) == 0 && pl__str_equal(a->reason, b->reason) &&
           pl__str_equal(a->message, b->message);
}

static void add_rule(struct what_if *w, const char *who, const struct pl_what_if_rule *rule)
{
    struct pl_buf *out = &w->cli->out.buf;
    struct pl_str why = rule->message.len ? rule->message : pl__str(rule->guard);

    if (is_unknown(rule))
        why = pl__str_format(w->scratch, "%.*s is missing", PL_STR_ARG(why));
    pl__buf_printf(out, "  %-17s ", who);
    add_word(w, rule);
    pl__buf_printf(out, "  %-15s ", is_unknown(rule) ? "-" : rule->row);
    pl__text_add(out, rule->reason);
    while (out->len && out->data[out->len - 1] == ' ')
        out->len--;
    pl__buf_add_char(out, '\n');
    if (why.len)
        pl__text_block(out, why, 6, w->cli->term.width);
}

static void add_rules(struct what_if *w)
{
    const struct pl_what_if_rule *rules = w->answer->rules;
    bool same = true;

    pl__buf_printf(&w->cli->out.buf, "\n  %-17s %-8s %-15s %s\n", "PROFILE", "REMOVAL", "ROW",
                   "REASON");
    for (size_t i = 1; i < PL_PROFILE_COUNT; i++)
        same &= same_rule(&rules[0], &rules[i]);
    if (same) {
        add_rule(w, "both", &rules[0]);
        return;
    }
    for (size_t i = 0; i < PL_PROFILE_COUNT; i++)
        add_rule(w, pl_profile_name(rules[i].profile), &rules[i]);
}

static void print_text(struct what_if *w)
{
    struct pl_buf *out = &w->cli->out.buf;

    if (!w->first)
        pl__buf_add_char(out, '\n');
    add_verdict(w);
    pl__report_heading(out, w->scratch, &w->cli->term, w->report);
    pl__buf_add_lit(out, "KubeadmControlPlane ");
    pl__text_add(out, w->answer->namespace_);
    pl__buf_add_char(out, '/');
    pl__text_add(out, w->answer->control_plane);
    pl__buf_add_char(out, '\n');
    add_etcd(w);
    add_rules(w);
    add_learner_note(w);
}

/* --- for programs ------------------------------------------------------------------------------ */

static void write_etcd(struct pl_data *data, const struct pl_what_if *answer)
{
    pl__data_object(data, "etcd");
    pl__data_bool(data, "managed", answer->etcd_managed);
    pl__data_str(data, "unknown", answer->etcd_unknown);
    if (answer->etcd_managed && answer->etcd_unknown.len == 0) {
        pl__data_str(data, "member", answer->member);
        pl__data_bool(data, "memberIsLeader", answer->member_is_leader);
        pl__data_str(data, "leadershipTo", answer->leadership_to);
        pl__data_quorum(data, "before", &answer->before);
        pl__data_quorum(data, "after", &answer->after);
        pl__data_bool(data, "keepsQuorum", answer->keeps_quorum);
    }
    pl__data_end_object(data);
}

static void print_data(struct what_if *w)
{
    struct pl_data data;

    pl__data_open(&data, w->cli, w->first);
    pl__data_text(&data, "profile", pl_profile_name(w->report->profile));
    pl__data_str(&data, "name", w->report->name);
    pl__data_text(&data, "action", "remove");
    pl__data_str(&data, "namespace", w->answer->namespace_);
    pl__data_str(&data, "machine", w->answer->machine);
    pl__data_str(&data, "kubeadmControlPlane", w->answer->control_plane);
    pl__data_bool(&data, "allowed", chosen_rule(w)->allowed);
    write_etcd(&data, w->answer);
    pl__data_array(&data, "profiles");
    for (size_t i = 0; i < PL_PROFILE_COUNT; i++) {
        const struct pl_what_if_rule *rule = &w->answer->rules[i];
        pl__data_object(&data, NULL);
        pl__data_text(&data, "profile", pl_profile_name(rule->profile));
        pl__data_bool(&data, "allowed", rule->allowed);
        pl__data_text(&data, "row", rule->row);
        pl__data_text(&data, "guard", rule->guard);
        pl__data_str(&data, "reason", rule->reason);
        pl__data_str(&data, "message", rule->message);
        pl__data_end_object(&data);
    }
    pl__data_end_array(&data);
    pl__data_close(&data);
}

/* "machine/default/cp-0 remove tables Remediation/8 refused", one line a profile. */
static void print_names(struct what_if *w)
{
    struct pl_buf *out = &w->cli->out.buf;

    for (size_t i = 0; i < PL_PROFILE_COUNT; i++) {
        const struct pl_what_if_rule *rule = &w->answer->rules[i];
        pl__buf_add_lit(out, "machine/");
        pl__text_add(out, w->answer->namespace_);
        pl__buf_add_char(out, '/');
        pl__text_add(out, w->answer->machine);
        pl__buf_printf(out, " remove %s %s %s\n", pl_profile_name(rule->profile),
                       is_unknown(rule) ? "-" : rule->row, rule_word(rule));
    }
}

/* --- running ----------------------------------------------------------------------------------- */

static void print(struct what_if *w)
{
    if (pl__cli_output_is(w->cli, "json") || pl__cli_output_is(w->cli, "yaml"))
        print_data(w);
    else if (pl__cli_output_is(w->cli, "name"))
        print_names(w);
    else
        print_text(w);
    w->first = false;
}

/* Asks each snapshot that has the Machine; it is an error when none has. */
static int ask_all(struct what_if *w, struct pl_judge *judge, const char *machine)
{
    struct pl_cli *cli = w->cli;
    int got;

    while ((got = pl__judge_next(judge)) > 0) {
        w->report = judge->report;
        if (pl_what_if_remove(judge->ctx, machine, &w->answer) < 0) {
            if (pl_context_error_code(judge->ctx) == PL_NOT_FOUND)
                continue;
            return pl__error(&cli->arena, &cli->err, pl_context_error_code(judge->ctx), "%s",
                             pl_context_error(judge->ctx));
        }
        if (!chosen_rule(w)->allowed)
            pl__cli_note(cli, is_unknown(chosen_rule(w)) ? OUTCOME_MISSING : OUTCOME_FINDINGS);
        print(w);
        pl__arena_reset(w->scratch);
        if (pl__judge_flush(judge) < 0)
            return -1;
    }
    if (got == 0 && w->first)
        return pl__error(
            &cli->arena, &cli->err, PL_NOT_FOUND,
            "no control plane Machine %s in the input; plimsoll eval -o name lists them", machine);
    return got;
}

/* -n and a bare name make namespace/name. */
static const char *full_name(struct pl_cli *cli, const char *machine)
{
    if (!pl__cli_given(cli, OPT_NAMESPACE) || strchr(machine, '/'))
        return machine;
    return pl__str_format(&cli->arena, "%s/%s", cli->args.value[OPT_NAMESPACE], machine).ptr;
}

static int run(struct pl_cli *cli)
{
    const struct pl_words *words = &cli->args.words;
    struct pl_arena scratch;
    struct pl_judge judge;
    struct what_if w = { .cli = cli, .scratch = &scratch, .first = true };

    if (words->count == 0 || strcmp(words->items[0], "remove") != 0)
        return pl__cli_usage(cli, "expected remove MACHINE%s%s%s", words->count ? ", not \"" : "",
                             words->count ? words->items[0] : "", words->count ? "\"" : "");
    if (words->count < 2)
        return pl__cli_usage(cli, "remove: expected the name of a Machine behind it");
    if (pl__cli_output_is(cli, "wide"))
        cli->term.width = SIZE_MAX;
    pl__arena_init(&scratch, NULL, 0);
    struct pl_words more = { words->items + 2, words->count - 2 };
    int result = pl__judge_open(
        &judge, cli, more, false,
        &(struct pl_live_wanted){ .kind = "Machine", .name = pl__str(words->items[1]) });
    if (result == 0)
        result = ask_all(&w, &judge, full_name(cli, words->items[1]));
    pl__judge_close(&judge);
    pl__arena_release(&scratch);
    return result;
}

const struct pl_command pl__command_what_if = {
    .name = "what-if",
    .summary = "what removing a control plane Machine would do to etcd's quorum",
    .synopsis = "remove MACHINE [OPTIONS] [-f FILE...]",
    .description =
        "Prints whether remediation of this Machine would go ahead and which rule decides, then "
        "etcd's members, voters, healthy voters, quorum and tolerance (the further losses that "
        "leave a quorum) before and after, who would lead, and what each profile would do. Without "
        "files the "
        "Machine's cluster is read from a live API.\n"
        "The exit code is 0 when the chosen profile allows the removal, 1 when it refuses, and 3 "
        "when "
        "the input does not say enough to tell.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments = arguments,
    .argument_count = sizeof arguments / sizeof arguments[0],
    .examples = examples,
    .example_count = sizeof examples / sizeof examples[0],
    .run = run,
};
