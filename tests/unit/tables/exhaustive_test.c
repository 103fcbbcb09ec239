/* tests/unit/tables/exhaustive_test.c - order decides, exhaustion proves.
 *
 * Walks every combination of facts of every table, in both profiles: some row decides each, and each
 * row decides at least one. Which rows hold together, and which of the two goes first, is written to
 * tests/golden/overlaps.txt, so that a change of precedence shows in review. UPDATE_GOLDEN=1 rewrites
 * that file. */
#include "test.h"

#include <stdlib.h>

#include "source.h"
#include "tables/tables.h"

#define GOLDEN "tests/golden/overlaps.txt"

static const char header[] = "# Rows that can hold together. The one on the left decides when no "
                             "row above both does; the other\n"
                             "# is listed as \"also held\". Made by "
                             "tests/unit/tables/exhaustive_test.c: UPDATE_GOLDEN=1 rewrites\n"
                             "# it, the difference is reviewed.\n";

/* What a walk over one table in one profile finds. */
struct walk {
    bool decides[PL_RULE_COUNT_MAX];
    uint32_t together[PL_RULE_COUNT_MAX]; /* bit b of [a], a < b: both guards hold somewhere */
    uint64_t combinations, undecided, out_of_order;
    uint32_t first_undecided, first_out_of_order;
};

/* The number of a document's row: "EtcdClusterHealthy/5". */
static uint64_t row_number(const char *id)
{
    uint64_t number = 0;

    return pl__str_to_u64(pl__str(strrchr(id, '/') + 1), &number) ? number : UINT64_MAX;
}

/* Section 12: among the rows of the status that results, the lowest number decides. */
static bool lowest_decides(const struct pl_table *t, struct pl_judgement j, enum pl_profile profile)
{
    for (uint32_t i = 0; i < t->rule_count; i++) {
        if (j.held >> i & 1 && t->rules[i].says[profile].status == j.rule->says[profile].status &&
            row_number(t->rules[i].id) < row_number(j.rule->id))
            return false;
    }
    return true;
}

static void walk(const struct pl_table *t, enum pl_profile profile, struct walk *w)
{
    for (uint32_t facts = 0; facts < 1u << t->fact_count; facts++) {
        if (t->possible && !t->possible(facts))
            continue;
        struct pl_judgement j = pl__judge(t, facts, profile);
        w->combinations++;
        if (!j.rule) {
            if (!w->undecided++)
                w->first_undecided = facts;
            continue;
        }
        if (!lowest_decides(t, j, profile) && !w->out_of_order++)
            w->first_out_of_order = facts;
        w->decides[j.rule - t->rules] = true;
        for (uint32_t a = 0; a < t->rule_count; a++) {
            if (j.held >> a & 1)
                w->together[a] |= j.held & ~((2u << a) - 1);
        }
    }
}

static void facts_print(const struct pl_table *t, uint32_t facts)
{
    for (uint32_t i = 0; i < t->fact_count; i++)
        printf("    %c %s\n", facts >> i & 1 ? 'Y' : 'N', t->fact_names[i]);
}

static bool exists_in(const struct pl_rule *rule, enum pl_profile profile)
{
    return rule->profiles == EVERY_PROFILE || (rule->profiles & 1u << profile);
}

static void walk_check(const struct pl_table *t, enum pl_profile profile, const struct walk *w)
{
    const char *profile_name = pl_profile_name(profile);

    CASE("%s (%s): some row decides each combination", t->name, profile_name)
    CHECK(w->combinations > 0);
    CHECK_INT(w->undecided, 0);
    if (w->undecided)
        facts_print(t, w->first_undecided);
    for (uint32_t i = 0; i < t->rule_count; i++) {
        if (!exists_in(&t->rules[i], profile))
            continue;
        CASE("%s (%s): \"%s\" decides some combination", t->rules[i].id, profile_name,
             t->rules[i].when)
        CHECK(w->decides[i]);
    }
    if (t == &pl__etcd_healthy || t == &pl__components_healthy) {
        CASE("%s (%s): the lowest number of a status decides", t->name, profile_name)
        CHECK_INT(w->out_of_order, 0);
        if (w->out_of_order)
            facts_print(t, w->first_out_of_order);
    }
    printf("%s (%s): %" PRIu64 " combinations\n", t->name, profile_name, w->combinations);
}

static void table_check(const struct pl_table *t)
{
    CASE("%s: guards look at facts that exist, and at nothing twice", t->name)
    CHECK(t->fact_count <= PL_FACT_COUNT_MAX);
    CHECK(t->rule_count <= PL_RULE_COUNT_MAX);
    for (uint32_t i = 0; i < t->rule_count; i++) {
        CHECK((t->rules[i].guard.care >> t->fact_count) == 0);
        CHECK((t->rules[i].guard.want & ~t->rules[i].guard.care) == 0);
    }
}

/* --- overlaps ------------------------------------------------------------------------------------ */

/* "A + B -> A decides"; rows that share their id are told apart by their guards. */
static void pair_text(const struct pl_rule *a, const struct pl_rule *b, char *text, size_t size)
{
    if (strcmp(a->id, b->id) == 0)
        snprintf(text, size, "%s (%s) + (%s) -> the first decides", a->id, a->when, b->when);
    else
        snprintf(text, size, "%s + %s -> %s decides", a->id, b->id, a->id);
}

/* One line a pair, those of one pair of ids once. */
static void overlaps_add(struct pl_buf *out, const struct pl_table *t, const struct walk *walks)
{
    char seen[256][256], text[256];
    size_t seen_count = 0;

    pl__buf_printf(out, "\n%s\n", t->name);
    for (uint32_t a = 0; a < t->rule_count; a++) {
        for (uint32_t b = a + 1; b < t->rule_count; b++) {
            bool here[PL_PROFILE_COUNT], known = false;
            for (int p = 0; p < PL_PROFILE_COUNT; p++)
                here[p] = walks[p].together[a] >> b & 1;
            /* Passing the ladder is no row: it is what is left when none decides. */
            if ((!here[0] && !here[1]) || (t == &pl__ladder && b == RUNG_PASSED))
                continue;
            pair_text(&t->rules[a], &t->rules[b], text, sizeof text);
            for (size_t i = 0; i < seen_count; i++)
                known |= strcmp(seen[i], text) == 0;
            if (known)
                continue;
            snprintf(seen[seen_count++], sizeof seen[0], "%s", text);
            pl__buf_printf(out, "  %s%s%s%s\n", text, here[0] && here[1] ? "" : " (only in ",
                           here[0] && here[1] ? "" : pl_profile_name((enum pl_profile)(!here[0])),
                           here[0] && here[1] ? "" : ")");
        }
    }
    if (seen_count == 0)
        pl__buf_add_lit(out, "  none\n");
}

static void golden_check(struct pl_str got)
{
    char path[1024];
    const char *update = getenv("UPDATE_GOLDEN");

    CASE("overlaps are those of " GOLDEN)
    if (update && strcmp(update, "1") == 0) {
        FILE *f = fopen(source_path(path, sizeof path, GOLDEN), "wb");
        CHECK(f);
        if (f) {
            CHECK(fwrite(got.ptr, 1, got.len, f) == got.len);
            fclose(f);
        }
        return;
    }
    char *want = source_read(GOLDEN);
    CHECK(want);
    if (want)
        CHECK_STR(got, want);
    free(want);
}

int main(void)
{
    struct pl_arena arena;
    struct pl_buf overlaps;

    pl__arena_init(&arena, NULL, 0);
    pl__buf_init(&overlaps, &arena, SIZE_MAX);
    pl__buf_add(&overlaps, pl__str(header));
    for (size_t i = 0; i < pl__table_count; i++) {
        const struct pl_table *t = pl__tables[i];
        struct walk walks[PL_PROFILE_COUNT] = { 0 };
        table_check(t);
        for (int p = 0; p < PL_PROFILE_COUNT; p++) {
            walk(t, (enum pl_profile)p, &walks[p]);
            walk_check(t, (enum pl_profile)p, &walks[p]);
        }
        overlaps_add(&overlaps, t, walks);
    }
    golden_check(pl__buf_str(&overlaps));
    pl__arena_release(&arena);
    return test_end("exhaustive");
}
