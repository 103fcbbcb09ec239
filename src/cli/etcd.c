/* plimsoll etcd - the etcd of a cluster: its members, its quorum, and what does not match. */
#include "cli/commands.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/time.h"
#include "cli/data.h"
#include "cli/etcd_trace.h"
#include "cli/judge.h"
#include "cli/report.h"
#include "cli/text.h"
#include "core/etcd_overview.h"
#include "lib/context.h"

static const struct pl_option options[] = {
    /* clang-format off */
    PL_OPTION_FILE,
    { .id = OPT_TRACE, .name = "trace",
      .help = "walk the way to every member hop by hop, with times, and name the likely cause where it "
              "ends; needs a live API" },
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

static const struct pl_argument arguments[] = {
    { .name = "CLUSTER",
      .complete = COMPLETE_NOTHING,
      .help = "a Cluster, by name or namespace/name; with files it may be left out" },
    { .name = "FILE", .complete = COMPLETE_FILES, .help = "more files, as with -f" },
};

static const struct pl_example examples[] = {
    { "plimsoll etcd prod", "members, alarms, quorum and tolerance of a live cluster" },
    { "plimsoll etcd prod --trace", "where the way to its members ends, and why" },
    { "plimsoll etcd -f dump.yaml", "the same from a Snapshot" },
};

/* One control plane, and where it goes. */
struct view {
    struct pl_cli *cli;
    const struct pl_report *report;
    struct pl_etcd_overview o;
    struct pl_arena *scratch;
    struct pl_str namespace_, cluster; /* empty: any */
    bool first;
};

/* --- words --------------------------------------------------------------------------------------- */

static const char *role_of(const struct pl_etcd_row *row)
{
    if (row->leads)
        return "leader";
    if (row->member->name.len == 0)
        return "unstarted";
    return row->member->is_learner ? "learner" : "voter";
}

static enum pl_color health_color(enum pl_status status)
{
    switch (status) {
    case PL_STATUS_TRUE:
        return COLOR_GREEN;
    case PL_STATUS_FALSE:
        return COLOR_RED;
    default:
        return COLOR_YELLOW;
    }
}

/* What an alarm means for whoever has to get rid of it. */
static struct pl_str remedy_of(struct pl_str alarm)
{
    if (pl__str_equal(alarm, PL_STR("NOSPACE")))
        return PL_STR("its database reached the quota and etcd takes no more writes: compact, "
                      "defragment, then disarm the alarm (etcdctl alarm disarm)");
    if (pl__str_equal(alarm, PL_STR("CORRUPT")))
        return PL_STR("its data differ from the others': replace the member");
    return PL_STR("see etcdctl alarm list");
}

/* --- for people ---------------------------------------------------------------------------------- */

enum column {
    COLUMN_NAME,
    COLUMN_ID,
    COLUMN_ROLE,
    COLUMN_HEALTHY,
    COLUMN_ALARMS,
    COLUMN_MACHINE,
    COLUMN_COUNT
};

static const char *const headings[COLUMN_COUNT] = { "NAME",    "ID",     "ROLE",
                                                    "HEALTHY", "ALARMS", "MACHINE" };

static struct pl_str cell(const struct view *v, const struct pl_etcd_row *row, enum column column)
{
    switch (column) {
    case COLUMN_NAME:
        return row->member->name.len ? row->member->name : PL_STR("(no name yet)");
    case COLUMN_ID:
        return pl__str_format(v->scratch, "%" PRIx64, row->member->id);
    case COLUMN_ROLE:
        return pl__str(role_of(row));
    case COLUMN_HEALTHY:
        return row->healthy ? pl__str(pl_status_name(row->healthy)) : PL_STR("-");
    case COLUMN_ALARMS:
        return row->alarms.len ? row->alarms : PL_STR("-");
    default:
        return row->machine.len ? row->machine : PL_STR("(none)");
    }
}

static size_t column_width(const struct view *v, enum column column)
{
    size_t width = strlen(headings[column]);

    for (size_t i = 0; i < v->o.row_count; i++) {
        size_t wanted = pl__text_width(cell(v, &v->o.rows[i], column));
        if (wanted > width)
            width = wanted;
    }
    return width;
}

static bool machines_are_named_alike(const struct view *v)
{
    for (size_t i = 0; i < v->o.row_count; i++) {
        if (!pl__str_equal(v->o.rows[i].machine, v->o.rows[i].member->name))
            return false;
    }
    return true;
}

/* Where a terminal is too narrow the Machines go that say nothing new, then the ids. */
static void fit(const struct view *v, size_t widths[COLUMN_COUNT])
{
    enum column first = machines_are_named_alike(v) ? COLUMN_MACHINE : COLUMN_ID;
    enum column order[] = { first, first == COLUMN_ID ? COLUMN_MACHINE : COLUMN_ID };
    size_t sum = 0;

    for (int c = 0; c < COLUMN_COUNT; c++)
        sum += (widths[c] = column_width(v, (enum column)c)) + 2;
    for (size_t i = 0; i < 2 && sum - 2 > v->cli->term.width; i++) {
        sum -= widths[order[i]] + 2;
        widths[order[i]] = 0;
    }
}

static void add_cell(const struct view *v, const struct pl_etcd_row *row, enum column column,
                     size_t width)
{
    struct pl_buf *out = &v->cli->out.buf;
    struct pl_str text = cell(v, row, column);
    size_t before = out->len;

    if (column == COLUMN_HEALTHY)
        pl__term_add(&v->cli->term, out, health_color(row->healthy), text);
    else if (column == COLUMN_ALARMS && row->alarms.len)
        pl__term_add(&v->cli->term, out, COLOR_RED, text);
    else
        pl__text_add(out, text);
    size_t taken = pl__text_width((struct pl_str){ out->data + before, out->len - before });
    pl__text_spaces(out, width > taken ? width - taken + 2 : 2);
}

static void trim_line(struct pl_buf *out)
{
    while (out->len && out->data[out->len - 1] == ' ')
        out->len--;
    pl__buf_add_char(out, '\n');
}

static void add_table(const struct view *v)
{
    struct pl_buf *out = &v->cli->out.buf;
    size_t widths[COLUMN_COUNT];

    fit(v, widths);
    pl__buf_add_char(out, '\n');
    for (int c = 0; c < COLUMN_COUNT; c++) {
        if (widths[c])
            pl__text_pad(out, pl__str(headings[c]), widths[c] + 2);
    }
    trim_line(out);
    for (size_t i = 0; i < v->o.row_count; i++) {
        for (int c = 0; c < COLUMN_COUNT; c++) {
            if (widths[c])
                add_cell(v, &v->o.rows[i], (enum column)c, widths[c]);
        }
        trim_line(out);
    }
}

/* A line below the table, wrapped; "* " before findings. */
static void add_line(const struct view *v, const char *bullet, struct pl_str text)
{
    struct pl_wrap wrap = { pl__str(bullet), PL_STR("  "), v->cli->term.width };
    struct pl_buf safe;

    if (!*bullet)
        wrap.rest = PL_STR("");
    pl__buf_init(&safe, v->scratch, SIZE_MAX / 4);
    pl__text_add(&safe, text);
    pl__text_wrap(&v->cli->out.buf, pl__buf_str(&safe), wrap);
}

static void add_quorum(const struct view *v)
{
    const struct pl_quorum *q = &v->o.quorum;
    struct pl_buf text;

    pl__buf_init(&text, v->scratch, 512);
    pl__buf_printf(&text, "Quorum: %u of %u voter%s needed, %u healthy; ", q->quorum, q->voters,
                   q->voters == 1 ? "" : "s", q->healthy);
    if (q->tolerance < 0)
        pl__buf_add_lit(&text, "it is lost, or about to be");
    else if (q->tolerance == 0)
        pl__buf_add_lit(&text, "no further loss can be borne");
    else
        pl__buf_printf(&text, "%d more can be lost", q->tolerance);
    add_line(v, "", pl__buf_str(&text));
    if (!v->o.view->leader)
        add_line(v, "* ", PL_STR("No leader is known"));
}

static void add_strays(const struct view *v)
{
    const struct pl_etcd_overview *o = &v->o;

    for (size_t i = 0; i < o->stray_member_count; i++)
        add_line(v, "* ",
                 pl__str_format(v->scratch, "Member %.*s has no Machine",
                                PL_STR_ARG(o->stray_members[i])));
    for (size_t i = 0; i < o->bare_machine_count; i++)
        add_line(v, "* ",
                 pl__str_format(v->scratch, "Machine %.*s has a Node, but no member",
                                PL_STR_ARG(o->bare_machines[i])));
    for (size_t i = 0; i < o->bare_node_count; i++)
        add_line(v, "* ",
                 pl__str_format(v->scratch, "Control plane Node %.*s has no Machine",
                                PL_STR_ARG(o->bare_nodes[i])));
}

static void add_alarms(const struct view *v)
{
    const struct pl_etcd_view *etcd = v->o.view;

    for (size_t i = 0; i < v->o.row_count; i++) {
        const struct pl_etcd_row *row = &v->o.rows[i];
        for (uint32_t a = 0; row->alarms.len && a < etcd->alarms.count; a++) {
            if (etcd->alarms.items[a].member_id != row->member->id ||
                pl__str_equal(etcd->alarms.items[a].alarm, PL_STR("NONE")))
                continue;
            struct pl_str alarm = etcd->alarms.items[a].alarm, remedy = remedy_of(alarm);
            add_line(v, "* ",
                     pl__str_format(v->scratch, "%.*s on %.*s: %.*s", PL_STR_ARG(alarm),
                                    PL_STR_ARG(row->label), PL_STR_ARG(remedy)));
        }
    }
    for (size_t i = 0; i < v->o.stray_alarm_count; i++)
        add_line(v, "* ",
                 pl__str_format(v->scratch,
                                "%.*s of member %" PRIx64 ", which is gone: an alarm outlives its "
                                "member and keeps etcd from writing until it is disarmed",
                                PL_STR_ARG(v->o.stray_alarms[i].alarm),
                                v->o.stray_alarms[i].member_id));
}

/* Alarms stand among the errors as well; the list of alarms says more. */
static void add_errors(const struct view *v)
{
    const struct pl_etcd_view *etcd = v->o.view;

    for (uint32_t i = 0; etcd && i < etcd->errors.count; i++) {
        if (etcd->alarms.present && pl__str_contains(etcd->errors.items[i], PL_STR("alarm:")))
            continue;
        add_line(v, "* ",
                 pl__str_format(v->scratch, "%.*s reports: %.*s", PL_STR_ARG(etcd->endpoint),
                                PL_STR_ARG(etcd->errors.items[i])));
    }
    if (etcd && etcd->alarms_error.len)
        add_line(v, "* ",
                 pl__str_format(v->scratch, "Alarms could not be read: %.*s",
                                PL_STR_ARG(etcd->alarms_error)));
}

static void add_source(const struct view *v)
{
    const struct pl_etcd_view *etcd = v->o.view;
    struct pl_buf text;

    if (!etcd || !etcd->endpoint.len)
        return;
    pl__buf_init(&text, v->scratch, 1024);
    pl__buf_printf(&text, "Told by %.*s", PL_STR_ARG(etcd->endpoint));
    if (etcd->observed_ms) {
        pl__buf_add_lit(&text, ", ");
        pl__age_add(&text, v->report->now_ms - etcd->observed_ms);
        pl__buf_add_lit(&text, " ago");
    }
    add_line(v, "", pl__buf_str(&text));
}

static void add_verdict(const struct view *v)
{
    const struct pl_verdict *verdict = v->o.verdict;
    struct pl_buf *out = &v->cli->out.buf;

    if (verdict->status == PL_STATUS_NONE)
        return;
    pl__buf_printf(out, "%s ", verdict->type);
    pl__term_add(&v->cli->term, out, pl__verdict_color(verdict),
                 pl__str(pl_status_name(verdict->status)));
    pl__buf_add_char(out, ' ');
    pl__text_add(out, verdict->reason);
    pl__buf_printf(out, " (%s)\n", verdict->row);
}

static void print_text(struct view *v)
{
    struct pl_buf *out = &v->cli->out.buf;

    if (!v->first)
        pl__buf_add_char(out, '\n');
    pl__buf_add_lit(out, "etcd of Cluster ");
    pl__text_add(out, v->o.namespace_);
    pl__buf_add_char(out, '/');
    pl__term_add(&v->cli->term, out, COLOR_BOLD, v->o.cluster);
    pl__buf_add_lit(out, ", KubeadmControlPlane ");
    pl__text_add(out, v->o.control_plane);
    pl__buf_add_char(out, '\n');
    pl__report_heading(out, v->scratch, &v->cli->term, v->report);
    if (!v->o.managed) {
        pl__buf_add_lit(out, "\nThe etcd of this cluster is external: plimsoll does not ask it.\n");
        return;
    }
    add_verdict(v);
    if (v->o.unknown.len) {
        pl__buf_add_char(out, '\n');
        add_line(v, "",
                 pl__str_format(v->scratch, "Its members are not known: %.*s%s",
                                PL_STR_ARG(v->o.unknown), v->o.missing ? " is missing" : ""));
        add_errors(v);
        return;
    }
    add_table(v);
    pl__buf_add_char(out, '\n');
    add_quorum(v);
    add_strays(v);
    add_alarms(v);
    add_errors(v);
    add_source(v);
}

/* --- for programs -------------------------------------------------------------------------------- */

static void write_names(struct pl_data *data, const char *key, const struct pl_str *names,
                        size_t count)
{
    pl__data_array(data, key);
    for (size_t i = 0; i < count; i++)
        pl__data_str(data, NULL, names[i]);
    pl__data_end_array(data);
}

static void write_id(const struct view *v, struct pl_data *data, const char *key, uint64_t id)
{
    pl__data_str(data, key, pl__str_format(v->scratch, "%" PRIu64, id));
}

static void write_members(const struct view *v, struct pl_data *data)
{
    pl__data_array(data, "members");
    for (size_t i = 0; i < v->o.row_count; i++) {
        const struct pl_etcd_row *row = &v->o.rows[i];
        pl__data_object(data, NULL);
        write_id(v, data, "id", row->member->id);
        pl__data_str(data, "name", row->member->name);
        pl__data_bool(data, "isLearner", row->member->is_learner);
        pl__data_bool(data, "isLeader", row->leads);
        pl__data_bool(data, "hasStarted", row->member->name.len > 0);
        pl__data_str(data, "machine", row->machine);
        pl__data_text(data, "healthy", pl_status_name(row->healthy));
        pl__data_str(data, "alarms", row->alarms);
        pl__data_end_object(data);
    }
    pl__data_end_array(data);
}

static void write_known(const struct view *v, struct pl_data *data)
{
    pl__data_str(data, "endpoint", v->o.view->endpoint);
    if (v->o.view->observed_ms) {
        struct pl_buf time;
        pl__buf_init(&time, v->scratch, 64);
        pl__time_add(&time, v->o.view->observed_ms);
        pl__data_str(data, "observed", pl__buf_str(&time));
    }
    if (v->o.view->leader)
        write_id(v, data, "leader", v->o.view->leader);
    write_members(v, data);
    pl__data_quorum(data, "quorum", &v->o.quorum);
    write_names(data, "membersWithoutMachine", v->o.stray_members, v->o.stray_member_count);
    write_names(data, "machinesWithoutMember", v->o.bare_machines, v->o.bare_machine_count);
    write_names(data, "nodesWithoutMachine", v->o.bare_nodes, v->o.bare_node_count);
    write_names(data, "errors", v->o.view->errors.items, v->o.view->errors.count);
}

static void print_data(struct view *v)
{
    struct pl_data data;

    pl__data_open(&data, v->cli, v->first);
    pl__data_text(&data, "profile", pl_profile_name(v->report->profile));
    pl__data_str(&data, "namespace", v->o.namespace_);
    pl__data_str(&data, "cluster", v->o.cluster);
    pl__data_str(&data, "kubeadmControlPlane", v->o.control_plane);
    pl__data_bool(&data, "managed", v->o.managed);
    pl__data_str(&data, "unknown", v->o.unknown);
    pl__data_text(&data, "status", pl_status_name(v->o.verdict->status));
    if (v->o.managed && !v->o.unknown.len)
        write_known(v, &data);
    pl__data_close(&data);
}

/* "etcdmember/default/prod/node-0 leader True", one line a member. */
static void print_names(struct view *v)
{
    struct pl_buf *out = &v->cli->out.buf;

    for (size_t i = 0; i < v->o.row_count; i++) {
        const struct pl_etcd_row *row = &v->o.rows[i];
        pl__buf_add_lit(out, "etcdmember/");
        pl__text_add(out, v->o.namespace_);
        pl__buf_add_char(out, '/');
        pl__text_add(out, v->o.cluster);
        pl__buf_printf(out, "/%" PRIx64 " ", row->member->id);
        pl__text_add(out, row->member->name.len ? row->member->name : PL_STR("-"));
        pl__buf_printf(out, " %s %s\n", role_of(row),
                       row->healthy ? pl_status_name(row->healthy) : "-");
    }
}

/* --- running ------------------------------------------------------------------------------------- */

/* External etcd is nobody's finding. */
static enum pl_outcome outcome_of(const struct pl_etcd_overview *o)
{
    if (!o->managed)
        return OUTCOME_HEALTHY;
    if (o->unknown.len)
        return o->missing ? OUTCOME_MISSING : OUTCOME_FINDINGS;
    bool fine =
        o->verdict->status == PL_STATUS_TRUE && o->quorum.tolerance >= 0 && !o->stray_alarm_count;
    return fine ? OUTCOME_HEALTHY : OUTCOME_FINDINGS;
}

static bool is_wanted(const struct view *v, const struct pl_kcp *kcp, struct pl_str cluster)
{
    return (!v->cluster.len || pl__str_equal(v->cluster, cluster)) &&
           (!v->namespace_.len || pl__str_equal(v->namespace_, kcp->meta.namespace_));
}

static void print(struct view *v)
{
    if (pl__cli_output_is(v->cli, "json") || pl__cli_output_is(v->cli, "yaml"))
        print_data(v);
    else if (pl__cli_output_is(v->cli, "name"))
        print_names(v);
    else
        print_text(v);
    v->first = false;
}

static int show_snapshot(struct view *v, struct pl_judge *judge)
{
    const struct pl_snapshot *s = pl__context_snapshot(judge->ctx);
    struct pl_cli *cli = v->cli;

    for (uint32_t i = 0; i < s->objects.kcps.count; i++) {
        const struct pl_kcp *kcp = &s->objects.kcps.items[i];
        struct pl_error *cause = NULL;
        struct pl_evaluate_options how = { .profile = judge->report->profile };
        if (pl__etcd_overview(s, kcp, how, v->scratch, &v->o, &cause) < 0)
            return pl__error(&cli->arena, &cli->err, cause->code, "%.*s",
                             PL_STR_ARG(cause->message));
        if (!is_wanted(v, kcp, v->o.cluster))
            continue;
        v->report = judge->report;
        pl__cli_note(cli, outcome_of(&v->o));
        print(v);
    }
    pl__arena_reset(v->scratch);
    return pl__judge_flush(judge);
}

static int show_all(struct view *v, struct pl_judge *judge)
{
    struct pl_cli *cli = v->cli;
    int got;

    while ((got = pl__judge_next(judge)) > 0) {
        if (show_snapshot(v, judge) < 0)
            return -1;
    }
    if (got == 0 && v->first && v->cluster.len)
        return pl__error(&cli->arena, &cli->err, PL_NOT_FOUND,
                         "no KubeadmControlPlane of Cluster %.*s in the input; plimsoll describe "
                         "shows what is there",
                         PL_STR_ARG(v->cluster));
    if (got == 0 && v->first)
        return pl__error(&cli->arena, &cli->err, PL_NOT_FOUND,
                         "no KubeadmControlPlane in the input");
    return got;
}

static int run(struct pl_cli *cli)
{
    const struct pl_words *words = &cli->args.words;
    struct pl_words more = { words->items + 1, words->count ? words->count - 1 : 0 };
    bool files = cli->args.files.count > 0;
    struct pl_arena scratch;
    struct pl_judge judge;
    struct view v = { .cli = cli, .scratch = &scratch, .first = true };

    if (words->count == 0 && !files)
        return pl__cli_usage(cli, "expected the name of a Cluster; plimsoll describe -A -o name "
                                  "lists them");
    if (pl__cli_output_is(cli, "wide"))
        cli->term.width = SIZE_MAX;
    pl__cli_cluster(cli, &v.namespace_, &v.cluster);
    struct pl_live_wanted wanted = { .cluster = v.cluster, .namespace_ = v.namespace_ };
    if (pl__cli_given(cli, OPT_TRACE)) {
        if (files)
            return pl__cli_usage(cli, "--trace walks a live cluster and takes no files");
        return pl__etcd_trace(cli, &wanted);
    }
    pl__arena_init(&scratch, NULL, 0);
    int result = pl__judge_open(&judge, cli, more, false, &wanted);
    if (result == 0)
        result = show_all(&v, &judge);
    pl__judge_close(&judge);
    pl__arena_release(&scratch);
    return result;
}

const struct pl_command pl__command_etcd = {
    .name = "etcd",
    .summary = "etcd's members, alarms, quorum and tolerance, and the way to them",
    .synopsis = "CLUSTER [--trace] [OPTIONS] [-f FILE...]",
    .description =
        "Prints the etcd members of a cluster with their role (leader, voter, learner, or "
        "unstarted: it has no name yet), the Machine each belongs to, what EtcdMemberHealthy says "
        "of it and its alarms; then the quorum and how many more members can be lost, members "
        "without Machine, Machines without member, Nodes without Machine, and what to do about "
        "alarms. Where the terminal is too narrow ids are left out; wide prints all columns.\n"
        "With --trace it goes the way to every member hop by hop: management API, kubeconfig "
        "Secret, workload API, permission, etcd's CA, then for each Node the tunnel through the "
        "kubelet, TLS and gRPC. Every hop is printed with its time, and where one fails the likely "
        "cause and what to do.\n"
        "The exit code is 0 when etcd is healthy, 1 when something is to be looked at, 2 when the "
        "cluster could not be reached and 3 when the input does not say enough to tell.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments = arguments,
    .argument_count = sizeof arguments / sizeof arguments[0],
    .examples = examples,
    .example_count = sizeof examples / sizeof examples[0],
    .run = run,
};
