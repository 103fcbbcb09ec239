/* tests/unit/tables/rows_test.c - every row of every table, one named case at least.
 *
 * The cases are in the .vec files beside this one, one file a table; what they expect is written from
 * the documents, not from what the program prints. A record:
 *
 *     an alarm on one member                          the name, at the left edge
 *       given   alarm=node-1:NOSPACE                  words of tests/world.h; may be repeated
 *       tables  cp/EtcdClusterHealthy  EtcdClusterHealthy/5  False  EtcdClusterNotHealthy
 *         | * Machine cp-1:                           the message, when it has several lines; a short
 *         |   * EtcdMemberHealthy: ...                one stands behind the reason; a backslash at the
 *                                                     end of a line keeps a blank before it visible
 *       also    EtcdClusterHealthy/6                  exactly the other rows that held
 *       kept                                          it is marked as kept
 *       error                                         a requeue with error is asked for
 *       does    deleted=cp-1 ...                      the step, for cp/Deleting and cp/remediation
 *       owners  cp-1=MachineDeleting                  every OwnerRemediated after the step
 *
 * "md-1/machine-set" is what becomes of that Machine of a MachineDeployment; "-": nothing was decided.
 *
 * "tables", "cluster-api-1.12" or "both" begin an expectation; what follows belongs to it. "-" for the
 * row means that the condition is not there; for a status, that it is not looked at.
 *
 * At the end each rule must have been reached in its profile: `tables`, the only one it is in, or both
 * for the ladder. Rules that share an id are told apart by watching pl__judge() (the linker puts
 * __wrap_pl__judge in front of it). */
#include "test.h"

#include <stdlib.h>

#include "source.h"
#include "tables/tables.h"
#include "world.h"

enum { TABLES_MAX = 16, BYTES_MAX = 8192 };

/* Rules that no Snapshot can reach. */
static const struct {
    const char *id, *reason, *why;
} unreachable[] = {
    { "Deleting/2", "DeletingInfrastructureTemplates",
      "Snapshots hold no infrastructure templates; live the step is taken from the API" },
};

/* --- watching the engine ------------------------------------------------------------------------- */

static bool decided[TABLES_MAX][PL_RULE_COUNT_MAX]; /* in the evaluation at hand */
static int reached[TABLES_MAX][PL_RULE_COUNT_MAX][PL_PROFILE_COUNT];

struct pl_judgement __real_pl__judge(const struct pl_table *table, uint32_t facts,
                                     enum pl_profile profile);
struct pl_judgement __wrap_pl__judge(const struct pl_table *table, uint32_t facts,
                                     enum pl_profile profile);

struct pl_judgement __wrap_pl__judge(const struct pl_table *table, uint32_t facts,
                                     enum pl_profile profile)
{
    struct pl_judgement j = __real_pl__judge(table, facts, profile);

    for (size_t t = 0; t < pl__table_count; t++) {
        if (pl__tables[t] == table && j.rule)
            decided[t][j.rule - table->rules] = true;
    }
    return j;
}

/* --- expectations -------------------------------------------------------------------------------- */

struct expectation {
    enum pl_profile profile;
    char object[64], condition[64], row[64], status[16], reason[64];
    char message[BYTES_MAX];
    char also[512], does[512], owners[512];
    bool has_also, has_does, has_owners, kept, error;
    int line;
};

/* Whether a text can have come from a message with <placeholders>. */
static bool fits(const char *template, struct pl_str text)
{
    if (*template == '\0')
        return text.len == 0;
    if (*template == '<') {
        const char *rest = strchr(template, '>') + 1;
        for (size_t skip = 0; skip <= text.len; skip++) {
            if (fits(rest, (struct pl_str){ text.ptr + skip, text.len - skip }))
                return true;
        }
        return false;
    }
    return text.len && *text.ptr == *template &&
           fits(template + 1, (struct pl_str){ text.ptr + 1, text.len - 1 });
}

static bool shares_id(const struct pl_table *t, uint32_t rule)
{
    for (uint32_t i = 0; i < t->rule_count; i++) {
        if (i != rule && strcmp(t->rules[i].id, t->rules[rule].id) == 0)
            return true;
    }
    return false;
}

/* Whether the rule is the one that an expectation, which was met, is about. */
static bool is_about(size_t table, uint32_t i, const struct expectation *e)
{
    const struct pl_table *t = pl__tables[table];
    const struct pl_rule *rule = &t->rules[i];
    const struct pl_outcome *says = &rule->says[e->profile];
    bool here = strcmp(rule->id, e->row) == 0;

    if (t == &pl__ladder)
        here |= strcmp(pl__components_healthy.front_ids[i], e->row) == 0;
    if (!here || !shares_id(t, i))
        return here;
    if (!decided[table][i])
        return false;
    if (rule->mode == LEAVE) /* a step that leaves OwnerRemediated as it is, or a kept condition */
        return t == &pl__kcp_remediation || t == &pl__machine_set_remediation || e->kept;
    return strcmp(pl_status_name(says->status), e->status) == 0 &&
           strcmp(says->reason, e->reason) == 0 && fits(says->message, pl__str(e->message));
}

static void cover(const struct expectation *e)
{
    for (size_t t = 0; t < pl__table_count; t++) {
        uint32_t which[PL_RULE_COUNT_MAX], count = 0;
        for (uint32_t i = 0; i < pl__tables[t]->rule_count; i++) {
            if (is_about(t, i, e))
                which[count++] = i;
        }
        if (count > 1)
            test_fail(__FILE__, e->line, "%s: it is not clear which of several rules it reached",
                      e->row);
        else if (count == 1)
            reached[t][which[0]][e->profile]++;
    }
}

static const struct pl_verdict *verdict_find(const struct pl_report *report,
                                             const struct expectation *e)
{
    for (size_t i = 0; i < report->object_count; i++) {
        const struct pl_object *o = &report->objects[i];
        if (o->name.len != strlen(e->object) || memcmp(o->name.ptr, e->object, o->name.len) != 0)
            continue;
        for (size_t k = 0; k < o->verdict_count; k++) {
            if (strcmp(o->verdicts[k].type, e->condition) == 0)
                return &o->verdicts[k];
        }
    }
    return NULL;
}

__attribute__((format(printf, 2, 3))) static void append(char *text, const char *format, ...)
{
    size_t len = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + len, 512 - len, format, args);
    va_end(args);
}

/* What a step does, as the vectors write it: only what is not empty. */
static void remediation_text(const struct pl_remediation *r, char *text)
{
    text[0] = '\0';
    if (r->machine.len)
        append(text, " machine=%.*s", PL_STR_ARG(r->machine));
    if (r->deleted.len)
        append(text, " deleted=%.*s", PL_STR_ARG(r->deleted));
    if (r->leadership_forwarded_to.len)
        append(text, " leader=%.*s", PL_STR_ARG(r->leadership_forwarded_to));
    if (r->in_progress)
        append(text, " record=%.*s:%lld", PL_STR_ARG(r->in_progress_machine),
               (long long)r->in_progress_retry_count);
    if (r->stale_annotation_dropped)
        append(text, " dropped");
    if (r->requeue)
        append(text, " requeue");
}

static void deletion_text(const struct pl_deletion *d, char *text)
{
    text[0] = '\0';
    for (size_t i = 0; i < d->deleted_count; i++)
        append(text, "%s%.*s", i ? "," : " deleted=", PL_STR_ARG(d->deleted[i]));
    if (d->member_removed.len)
        append(text, " member=%.*s", PL_STR_ARG(d->member_removed));
    if (d->gave_up_on_member)
        append(text, " gave-up");
    if (d->requeue_after_ms)
        append(text, " requeue=%llds", (long long)d->requeue_after_ms / 1000);
}

/* Blanks between words are one blank. */
static void squeeze(char *text)
{
    char *to = text;

    for (const char *from = text; *from; from++) {
        if (*from == ' ' && (to == text || to[-1] == ' '))
            continue;
        *to++ = *from;
    }
    while (to > text && to[-1] == ' ')
        to--;
    *to = '\0';
}

static void remediation_check(const struct pl_report *report, const struct expectation *e,
                              char *does)
{
    if (strcmp(e->row, "-") == 0) {
        CHECK_INT(report->remediation_count, 0);
        return;
    }
    CHECK_INT(report->remediation_count, 1);
    if (report->remediation_count != 1)
        return;
    const struct pl_remediation *r = &report->remediation[0];
    CHECK_STR(pl__str(r->row), e->row);
    for (size_t i = 0; strcmp(e->status, "-") != 0 && i < r->owner_remediated_count; i++) {
        const struct pl_owner_remediated *o = &r->owner_remediated[i];
        if (!pl__str_equal(o->machine, r->machine))
            continue;
        CHECK_STR(pl__str(pl_status_name(o->status)), e->status);
        CHECK_STR(o->reason, e->reason);
        CHECK_STR(o->message, e->message);
    }
    remediation_text(r, does);
    if (e->has_owners) {
        char owners[512] = "";
        for (size_t i = 0; i < r->owner_remediated_count; i++)
            append(owners, " %.*s=%.*s", PL_STR_ARG(r->owner_remediated[i].machine),
                   PL_STR_ARG(r->owner_remediated[i].reason));
        squeeze(owners);
        CHECK_STR(pl__str(owners), e->owners);
    }
}

static void machine_set_check(const struct pl_report *report, const struct expectation *e,
                              char *does)
{
    const struct pl_machine_set_step *s = NULL;

    for (size_t i = 0; i < report->machine_set_count; i++) {
        if (pl__str_equal(report->machine_sets[i].machine, pl__str(e->object)))
            s = &report->machine_sets[i];
    }
    CHECK((s == NULL) == (strcmp(e->row, "-") == 0));
    if (!s)
        return;
    CHECK_STR(s->machine_deployment, "md");
    CHECK_STR(s->machine_set, "md-1");
    CHECK_STR(pl__str(s->row), e->row);
    CHECK_STR(pl__str(pl_status_name(s->status)), strcmp(e->status, "-") == 0 ? "" : e->status);
    CHECK_STR(s->reason, strcmp(e->reason, "-") == 0 ? "" : e->reason);
    CHECK_STR(s->message, e->message);
    append(does, "%s%s", s->recovered ? " recovered" : "", s->deleted ? " deleted" : "");
    if (s->requeue_after_ms)
        append(does, " requeue=%llds", (long long)s->requeue_after_ms / 1000);
}

static void verdict_check(const struct pl_report *report, const struct expectation *e, char *does)
{
    const struct pl_verdict *v = verdict_find(report, e);
    char also[512] = "";

    if (strcmp(e->row, "-") == 0) {
        CHECK(!v);
        return;
    }
    CHECK(v);
    if (!v)
        return;
    CHECK_STR(pl__str(v->row), e->row);
    CHECK_STR(pl__str(pl_status_name(v->status)), e->status);
    CHECK_STR(v->reason, e->reason);
    CHECK_STR(v->message, e->message);
    CHECK_INT(v->kept, e->kept);
    for (size_t i = 0; i < v->also_held_count; i++)
        append(also, " %s", v->also_held[i]);
    squeeze(also);
    if (e->has_also)
        CHECK_STR(pl__str(also), e->also);
    if (report->deletion_count)
        deletion_text(&report->deletion[0], does);
}

static void expectation_check(struct world *w, const char *file, const char *name,
                              const struct expectation *e)
{
    struct pl_context *ctx = pl_context_new(&(struct pl_options){ .profile = e->profile });
    struct pl_str text = world_text(w, JSON_COMPACT, 0);
    const struct pl_report *report = NULL;
    char does[512] = "";

    CASE("%s:%d: %s (%s %s/%s)", file, e->line, name, pl_profile_name(e->profile), e->object,
         e->condition)
    memset(decided, 0, sizeof decided);
    pl_context_add(ctx, file, text.ptr, text.len);
    int got = pl_context_next(ctx, &report);
    if (got != 1) {
        test_fail(__FILE__, __LINE__, "%s", pl_context_error(ctx));
    } else {
        CHECK_INT(report->missing_count, 0);
        CHECK_INT(report->requeue_with_error, e->error);
        if (strcmp(e->condition, "remediation") == 0)
            remediation_check(report, e, does);
        else if (strcmp(e->condition, "machine-set") == 0)
            machine_set_check(report, e, does);
        else
            verdict_check(report, e, does);
        squeeze(does);
        if (e->has_does)
            CHECK_STR(pl__str(does), e->does);
        if (!test_state.bad)
            cover(e);
    }
    pl_context_free(ctx);
}

/* --- reading the vectors ------------------------------------------------------------------------- */

struct reader {
    const char *file;
    int line;
    struct world *world;
    char name[200], words[8192];
    struct expectation open[2]; /* "both" opens two */
    size_t open_count;
    int case_count;
};

static void broken(const struct reader *r, const char *why)
{
    CASE("%s:%d", r->file, r->line)
    test_fail(r->file, r->line, "%s", why);
}

/* Checks what is open. */
static void flush(struct reader *r)
{
    for (size_t i = 0; i < r->open_count; i++) {
        struct expectation *e = &r->open[i];
        world_reset(r->world);
        if (!world_say(r->world, r->words))
            broken(r, r->world->error);
        else
            expectation_check(r->world, r->file, r->name, e);
        r->case_count++;
    }
    r->open_count = 0;
}

static const char *field_next(const char *at, char *to, size_t size)
{
    size_t len = 0;

    while (*at == ' ')
        at++;
    while (at[len] && at[len] != ' ')
        len++;
    snprintf(to, size, "%.*s", (int)len, at);
    at += len;
    while (*at == ' ')
        at++;
    return at;
}

/* "tables  cp/EtcdClusterHealthy  EtcdClusterHealthy/5  False  NotHealthy  message" */
static void expectation_open(struct reader *r, enum pl_profile profile, const char *at)
{
    struct expectation *e = &r->open[r->open_count++];
    char subject[128];

    memset(e, 0, sizeof *e);
    e->profile = profile;
    e->line = r->line;
    at = field_next(at, subject, sizeof subject);
    char *slash = strchr(subject, '/');
    snprintf(e->object, sizeof e->object, "%.*s", slash ? (int)(slash - subject) : 0, subject);
    snprintf(e->condition, sizeof e->condition, "%.60s", slash ? slash + 1 : subject);
    at = field_next(at, e->row, sizeof e->row);
    at = field_next(at, e->status, sizeof e->status);
    at = field_next(at, e->reason, sizeof e->reason);
    snprintf(e->message, BYTES_MAX, "%s", at);
}

static void message_add(struct expectation *e, const char *line)
{
    size_t len = strlen(e->message);

    snprintf(e->message + len, BYTES_MAX - len, "%s%s", len ? "\n" : "", line);
    /* A backslash at the end keeps the blank before it from those who trim lines. */
    len = strlen(e->message);
    if (len && e->message[len - 1] == '\\')
        e->message[len - 1] = '\0';
}

static void detail_read(struct reader *r, const char *word, const char *rest)
{
    for (size_t i = 0; i < r->open_count; i++) {
        struct expectation *e = &r->open[i];
        if (strcmp(word, "|") == 0) {
            message_add(e, rest);
        } else if (strcmp(word, "also") == 0) {
            e->has_also = true;
            snprintf(e->also, sizeof e->also, "%s", rest);
            squeeze(e->also);
        } else if (strcmp(word, "does") == 0) {
            e->has_does = true;
            snprintf(e->does, sizeof e->does, "%s", rest);
            squeeze(e->does);
        } else if (strcmp(word, "owners") == 0) {
            e->has_owners = true;
            snprintf(e->owners, sizeof e->owners, "%s", rest);
            squeeze(e->owners);
        } else if (strcmp(word, "kept") == 0) {
            e->kept = true;
        } else if (strcmp(word, "error") == 0) {
            e->error = true;
        } else {
            broken(r, word);
        }
    }
    if (r->open_count == 0)
        broken(r, "nothing to belong to");
}

static void line_read(struct reader *r, const char *line)
{
    char word[32];

    if (line[0] == '\0' || line[0] == '#')
        return;
    if (line[0] != ' ') {
        flush(r);
        snprintf(r->name, sizeof r->name, "%s", line);
        r->words[0] = '\0';
        return;
    }
    const char *rest = field_next(line, word, sizeof word);
    if (strcmp(word, "given") == 0) {
        flush(r);
        size_t len = strlen(r->words);
        snprintf(r->words + len, sizeof r->words - len, " %s", rest);
    } else if (strcmp(word, "tables") == 0) {
        flush(r);
        expectation_open(r, PL_PROFILE_TABLES, rest);
    } else if (strcmp(word, "cluster-api-1.12") == 0) {
        flush(r);
        expectation_open(r, PL_PROFILE_CLUSTER_API_1_12, rest);
    } else if (strcmp(word, "both") == 0) {
        flush(r);
        expectation_open(r, PL_PROFILE_TABLES, rest);
        expectation_open(r, PL_PROFILE_CLUSTER_API_1_12, rest);
    } else {
        /* Behind the bar one blank belongs to the format, the rest to the message. */
        const char *bar = strcmp(word, "|") == 0 ? strchr(line, '|') + 1 : NULL;
        detail_read(r, word, bar ? bar + (*bar == ' ') : rest);
    }
}

static void file_read(struct world *w, const char *name)
{
    char path[256];
    struct reader r = { .file = name, .world = w };

    snprintf(path, sizeof path, "tests/unit/tables/%s", name);
    char *text = source_read(path);
    if (!text) {
        broken(&r, "cannot be read");
        return;
    }
    for (char *line = text, *end; line; line = end) {
        end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        r.line++;
        line_read(&r, line);
    }
    flush(&r);
    free(text);
    printf("%s: %d expectations\n", name, r.case_count);
}

/* --- is every rule reached? ---------------------------------------------------------------------- */

static bool is_unreachable(const struct pl_rule *rule)
{
    for (size_t i = 0; i < sizeof unreachable / sizeof unreachable[0]; i++) {
        if (strcmp(rule->id, unreachable[i].id) == 0 &&
            strcmp(rule->says[PL_PROFILE_TABLES].reason, unreachable[i].reason) == 0)
            return true;
    }
    return false;
}

static bool wanted_in(const struct pl_table *t, const struct pl_rule *rule, enum pl_profile profile)
{
    if (rule->profiles != EVERY_PROFILE)
        return rule->profiles & 1u << profile;
    return profile == PL_PROFILE_TABLES || t == &pl__ladder;
}

static void coverage_check(size_t table)
{
    const struct pl_table *t = pl__tables[table];

    for (uint32_t i = 0; i < t->rule_count; i++) {
        const struct pl_rule *rule = &t->rules[i];
        /* Passing the ladder is no row of any condition: whatever row decides shows it. */
        if (t == &pl__ladder && i == RUNG_PASSED)
            continue;
        for (int p = 0; p < PL_PROFILE_COUNT; p++) {
            if (!wanted_in(t, rule, (enum pl_profile)p))
                continue;
            CASE("%s: \"%s\" has a case (%s)", rule->id, rule->when,
                 pl_profile_name((enum pl_profile)p))
            if (is_unreachable(rule))
                CHECK_INT(reached[table][i][p], 0);
            else
                CHECK(reached[table][i][p] > 0);
        }
    }
}

int main(void)
{
    static const char *const files[] = {
        "kcp_etcd_healthy.vec", "kcp_components_healthy.vec",
        "kcp_deleting.vec",     "kcp_remediating.vec",
        "md_remediating.vec",   "ladder.vec",
        "pod_healthy.vec",      "etcd_member_healthy.vec",
        "kcp_remediation.vec",  "machine_set_remediation.vec",
    };
    struct world *w = world_new();

    CASE("one file a table")
    CHECK_INT(sizeof files / sizeof files[0], pl__table_count);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        file_read(w, files[i]);
    for (size_t t = 0; t < pl__table_count; t++)
        coverage_check(t);
    world_free(w);
    return test_end("rows");
}
