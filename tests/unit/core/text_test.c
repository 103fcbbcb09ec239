/* tests/unit/core/text_test.c - texts that are put together: merged conditions, names, messages with
 * placeholders. The rows of Remediating merge only False conditions; the rest of semantics section 7 is
 * shown here. */
#include "test.h"

#include "core/pass.h"

enum { MACHINES_MAX = 16 };

static struct pl_arena arena;
static struct pl_machine machines[MACHINES_MAX];
static struct pl_condition conditions[MACHINES_MAX];
static size_t machine_count;

static void begin(void)
{
    pl__arena_reset(&arena);
    memset(machines, 0, sizeof machines);
    memset(conditions, 0, sizeof conditions);
    machine_count = 0;
}

/* A Machine whose UpToDate has that status and message, since so many seconds. Status none: not there. */
static struct pl_machine *machine(const char *name, enum pl_status status, const char *message,
                                  int64_t since_s)
{
    struct pl_machine *m = &machines[machine_count];
    struct pl_condition *c = &conditions[machine_count++];

    m->meta.name = pl__str(name);
    *c = (struct pl_condition){ .type = COND_UP_TO_DATE,
                                .status = (uint8_t)status,
                                .message = pl__str(message),
                                .last_transition_ms = since_s * 1000 };
    m->conditions.items = c;
    m->conditions.count = status != PL_STATUS_NONE;
    return m;
}

static bool merge(struct pl_str *text)
{
    struct pl_snapshot snapshot = { .now_ms = 1 };
    struct pl_pass pass = { .arena = &arena, .snapshot = &snapshot };
    const struct pl_machine *list[MACHINES_MAX];

    for (size_t i = 0; i < machine_count; i++)
        list[i] = &machines[i];
    return pl__merge_conditions(&pass, list, machine_count, COND_UP_TO_DATE, text);
}

static void merge_is(const char *file, int line, const char *want)
{
    struct pl_str text = { 0 };

    if (!merge(&text))
        test_fail(file, line, "too long");
    test_str(file, line, "merged", text, pl__str(want));
}
#define MERGE_IS(want) merge_is(__FILE__, __LINE__, want)

static void merge_test(void)
{
    CASE("merge: nothing")
    begin();
    MERGE_IS("");

    CASE("merge: a missing condition counts as unknown")
    begin();
    machine("a", PL_STATUS_NONE, "", 0);
    MERGE_IS("* Machine a: Condition UpToDate not yet reported");

    CASE("merge: infos only when there is nothing else, and none that is empty")
    begin();
    machine("a", PL_STATUS_TRUE, "", 1);
    machine("b", PL_STATUS_TRUE, "new", 1);
    MERGE_IS("* Machine b: new");

    CASE("merge: only empty infos")
    begin();
    machine("a", PL_STATUS_TRUE, "", 1);
    MERGE_IS("");

    CASE("merge: an unknown silences infos")
    begin();
    machine("a", PL_STATUS_TRUE, "new", 1);
    machine("b", PL_STATUS_UNKNOWN, "who knows", 1);
    MERGE_IS("* Machine b: who knows");

    CASE("merge: issues, then unknowns, whatever their number")
    begin();
    machine("a", PL_STATUS_UNKNOWN, "who knows", 1);
    machine("b", PL_STATUS_UNKNOWN, "who knows", 1);
    machine("c", PL_STATUS_FALSE, "old", 1);
    MERGE_IS("* Machine c: old\n* Machines a, b: who knows");

    CASE("merge: the highest priority seen for a message is its group's")
    begin();
    machine("a", PL_STATUS_UNKNOWN, "same", 1);
    machine("b", PL_STATUS_FALSE, "same", 1);
    machine("c", PL_STATUS_FALSE, "other", 1);
    MERGE_IS("* Machines a, b: same\n* Machine c: other");

    CASE("merge: a group with a control plane Machine goes first, its names do too")
    begin();
    machine("a", PL_STATUS_FALSE, "many", 1);
    machine("b", PL_STATUS_FALSE, "many", 1);
    machine("c", PL_STATUS_UNKNOWN, "few", 1);
    machine("d", PL_STATUS_UNKNOWN, "few", 1)->meta.labels.control_plane = true;
    MERGE_IS("* Machines d, c: few\n* Machines a, b: many");

    CASE("merge: equal groups go by their names in the order of their transitions")
    begin();
    machine("a", PL_STATUS_FALSE, "x", 9);
    machine("b", PL_STATUS_FALSE, "y", 2);
    machine("c", PL_STATUS_FALSE, "y", 3);
    machine("d", PL_STATUS_FALSE, "x", 1);
    MERGE_IS("* Machines b, c: y\n* Machines a, d: x");

    CASE("merge: the order given decides between transitions at the same time")
    begin();
    machine("d", PL_STATUS_FALSE, "x", 1);
    machine("a", PL_STATUS_FALSE, "x", 1);
    machine("b", PL_STATUS_FALSE, "y", 1);
    machine("c", PL_STATUS_FALSE, "y", 1);
    MERGE_IS("* Machines b, c: y\n* Machines a, d: x");

    CASE("merge: three groups are shown, the rest is counted by kind")
    begin();
    machine("a", PL_STATUS_FALSE, "1", 1);
    machine("b", PL_STATUS_FALSE, "2", 1);
    machine("c", PL_STATUS_FALSE, "3", 1);
    machine("d", PL_STATUS_FALSE, "4", 1);
    machine("e", PL_STATUS_UNKNOWN, "5", 1);
    machine("f", PL_STATUS_UNKNOWN, "6", 1);
    MERGE_IS("* Machine a: 1\n* Machine b: 2\n* Machine c: 3\n"
             "And 1 Machine with other issues\nAnd 2 Machines with status unknown");

    CASE("merge: infos beyond three groups")
    begin();
    machine("a", PL_STATUS_TRUE, "1", 1);
    machine("b", PL_STATUS_TRUE, "2", 1);
    machine("c", PL_STATUS_TRUE, "3", 1);
    machine("d", PL_STATUS_TRUE, "4", 1);
    machine("e", PL_STATUS_TRUE, "4", 1);
    machine("f", PL_STATUS_TRUE, "5", 1);
    MERGE_IS("* Machines d, e: 4\n* Machine a: 1\n* Machine b: 2\n"
             "And 2 Machines with additional info");

    CASE("merge: a bullet anywhere makes a list")
    begin();
    machine("a", PL_STATUS_FALSE, "see:\t* this", 1);
    MERGE_IS("* Machine a:\n  see:\t* this");

    CASE("merge: an asterisk at the end, or before a letter, is no bullet")
    begin();
    machine("a", PL_STATUS_FALSE, "a*", 1);
    machine("b", PL_STATUS_FALSE, "*b", 1);
    MERGE_IS("* Machine a: a*\n* Machine b: *b");

    CASE("merge: empty lines are lines")
    begin();
    machine("a", PL_STATUS_FALSE, "* x\n", 1);
    MERGE_IS("* Machine a:\n    * x\n  * ");
}

static void limit_test(void)
{
    static char text[40000];
    struct pl_str merged;
    size_t own = strlen("* Machine a: ");

    memset(text, 'x', sizeof text - 1);
    CASE("merge: 32,768 bytes are the most")
    text[32768 - own] = '\0';
    begin();
    machine("a", PL_STATUS_FALSE, text, 1);
    CHECK(merge(&merged));
    CHECK_INT(merged.len, 32768);

    CASE("merge: one byte more is too long")
    text[32768 - own] = 'x';
    text[32769 - own] = '\0';
    begin();
    machine("a", PL_STATUS_FALSE, text, 1);
    CHECK(!merge(&merged));
}

static void names_is(const char *file, int line, size_t count, size_t max, const char *want)
{
    struct pl_str names[] = { PL_STR("e"), PL_STR("c"), PL_STR("d"), PL_STR("a-1"), PL_STR("a") };
    struct pl_buf text;

    pl__buf_init(&text, &arena, SIZE_MAX);
    pl__names_sort(names, count);
    pl__names_add(&text, names, count, max);
    test_str(file, line, "names", pl__buf_str(&text), pl__str(want));
}
#define NAMES_ARE(count, max, want) names_is(__FILE__, __LINE__, count, max, want)

static void names_test(void)
{
    CASE("names: sorted, comma-joined, the rest counted")
    begin();
    NAMES_ARE(0, 3, "");
    NAMES_ARE(1, 3, "e");
    NAMES_ARE(3, 3, "c, d, e");
    NAMES_ARE(4, 3, "a-1, c, d, ... (1 more)");
    NAMES_ARE(5, 3, "a, a-1, c, ... (2 more)");
    NAMES_ARE(5, 5, "a, a-1, c, d, e");
}

static void fill_test(void)
{
    const struct pl_text texts[] = { { "a", PL_STR_INIT("1") }, { "b c", PL_STR_INIT("<a>") } };

    CASE("placeholders: filled from the texts, not from what was filled in")
    begin();
    CHECK_STR(pl__message_fill(&arena, "plain", texts, 2), "plain");
    CHECK_STR(pl__message_fill(&arena, "<a>", texts, 2), "1");
    CHECK_STR(pl__message_fill(&arena, "x <a> y <b c>", texts, 2), "x 1 y <a>");
    CHECK_STR(pl__message_fill(&arena, "<a><b c>!", texts, 2), "1<a>!");
    CASE("placeholders: one that is not given becomes empty")
    CHECK_STR(pl__message_fill(&arena, "<z>", texts, 2), "");
    CHECK_STR(pl__message_fill(&arena, "x<z>y", texts, 2), "xy");
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    merge_test();
    limit_test();
    names_test();
    fill_test();
    pl__arena_release(&arena);
    return test_end("text");
}
