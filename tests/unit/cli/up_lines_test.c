/* A transition as text: what has to be said fits 80 columns, and what is cut is the message. */
#include <stdio.h>
#include <string.h>

#include "cli/text.h"
#include "cli/up_lines.h"
#include "test.h"

enum { NOON_MS = 12 * 3600 * 1000 };

static struct pl_arena arena;

static struct pl_transition transition(const char *kind, const char *name, const char *type,
                                       const char *reason, const char *row, const char *cause)
{
    struct pl_transition t = { .at_ms = NOON_MS + 3000,
                               .kind = kind,
                               .type = type,
                               .from = PL_STATUS_TRUE,
                               .to = PL_STATUS_FALSE,
                               .row = row,
                               .delay_ms = 12 };

    snprintf(t.name, sizeof t.name, "%s", name);
    snprintf(t.reason, sizeof t.reason, "%s", reason);
    snprintf(t.cause, sizeof t.cause, "%s", cause);
    return t;
}

static struct pl_str lines(const struct pl_transition *t, size_t width, size_t more, size_t *count)
{
    struct pl_term term = { .width = width };
    struct pl_buf out;

    pl__buf_init(&out, &arena, 65536);
    *count = pl__transition_lines(&term, &out, t, more);
    return pl__buf_str(&out);
}

/* No line is wider than it may be. */
static bool fits(const char *text, size_t width)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        if (pl__text_width((struct pl_str){ text, len }) > width)
            return false;
        text += len + (text[len] == '\n');
    }
    return true;
}

static void test_lines(void)
{
    struct pl_transition pod = transition("Machine", "demo-1-cp-1", "EtcdPodHealthy", "PodFailed",
                                          "PodHealthy/6", "CrashLoopBackOff");
    struct pl_transition long_ =
        transition("KubeadmControlPlane", "demo-1-cp", "ControlPlaneComponentsHealthy",
                   "NotHealthy", "ControlPlaneComponentsHealthy/8",
                   "* Machine demo-1-cp-1:   * EtcdPodHealthy: CrashLoopBackOff");
    struct pl_term term = { .width = 80 };
    struct pl_buf line;
    size_t count;

    CASE("a log has one line, whatever its length")
    pl__buf_init(&line, &arena, 65536);
    pl__transition_line(&term, &line, &long_);
    CHECK_STR(pl__buf_str(&line),
              "12:00:03 KubeadmControlPlane/demo-1-cp ControlPlaneComponentsHealthy True -> False "
              "NotHealthy (ControlPlaneComponentsHealthy/8, stored after 12 ms): * Machine "
              "demo-1-cp-1:   * EtcdPodHealthy: CrashLoopBackOff");

    CASE("what fits is one line")
    CHECK_STR(lines(&pod, 200, 0, &count),
              "12:00:03 Machine/demo-1-cp-1 EtcdPodHealthy True -> False PodFailed (PodHealthy/6, "
              "stored after 12 ms): CrashLoopBackOff\n");
    CHECK(count == 1);

    CASE("else two, with everything but the message in 80 columns")
    CHECK_STR(lines(&pod, 80, 3, &count),
              "12:00:03 machine/demo-1-cp-1 EtcdPodHealthy (+3) True -> False\n"
              "         PodFailed (PodHealthy/6, stored after 12 ms): CrashLoopBackOff\n");
    CHECK(count == 2);
    CHECK_STR(lines(&long_, 80, 0, &count),
              "12:00:03 kcp/demo-1-cp ControlPlaneComponentsHealthy True -> False\n"
              "         NotHealthy (ControlPlaneComponentsHealthy/8, stored after 12 ms)\n");

    CASE("a message is cut where there is room for a part of it that tells something")
    CHECK_STR(
        lines(&long_, 100, 0, &count),
        "12:00:03 kcp/demo-1-cp ControlPlaneComponentsHealthy True -> False\n"
        "         NotHealthy (ControlPlaneComponentsHealthy/8, stored after 12 ms): * Machine "
        "demo-1-cp-1:...\n");

    CASE("where names are long, the change moves to the second line")
    struct pl_transition named = pod;
    snprintf(named.name, sizeof named.name, "a-cluster-with-a-long-name-cp-x7k2p");
    CHECK_STR(lines(&named, 80, 3, &count),
              "12:00:03 machine/a-cluster-with-a-long-name-cp-x7k2p EtcdPodHealthy (+3)\n"
              "         True -> False PodFailed (PodHealthy/6, stored after 12 ms)\n");

    CASE("a row that nobody saw decide is not made up, nor is a delay")
    struct pl_transition unseen = pod;
    unseen.row = NULL;
    unseen.delay_ms = -1;
    unseen.from = PL_STATUS_NONE;
    CHECK_STR(lines(&unseen, 200, 0, &count),
              "12:00:03 Machine/demo-1-cp-1 EtcdPodHealthy False PodFailed (changed again since): "
              "CrashLoopBackOff\n");
}

/* Whatever the width. */
static void test_widths(void)
{
    struct pl_transition t =
        transition("Machine", "demo-1-cp-1", "SchedulerPodHealthy", "PodFailed", "PodHealthy/6",
                   "h\xc3\xa9 h\xc3\xa9 h\xc3\xa9 h\xc3\xa9 "
                   "h\xc3\xa9 h\xc3\xa9 h\xc3\xa9 h\xc3\xa9");
    size_t count;

    for (size_t width = 70; width < 160; width++) {
        CASE("%zu columns", width)
        const char *text = lines(&t, width, 3, &count).ptr;
        CHECK(fits(text, width));
        CHECK(strstr(text, "(PodHealthy/6, stored after 12 ms)"));
        /* A character that is cut in two would end so. */
        CHECK(!strstr(text, "\xc3."));
    }
}

static void test_alike(void)
{
    struct pl_transition a =
        transition("Machine", "demo-1-cp-1", "EtcdPodHealthy", "PodFailed", "PodHealthy/6", "x");
    struct pl_transition b = a;

    CASE("conditions of one object that change in the same way are alike, and no others")
    b.type = "SchedulerPodHealthy";
    CHECK(pl__transition_alike(&a, &b));
    b.delay_ms++;
    CHECK(!pl__transition_alike(&a, &b));
    b = a;
    snprintf(b.name, sizeof b.name, "demo-1-cp-2");
    CHECK(!pl__transition_alike(&a, &b));
    b = a;
    snprintf(b.reason, sizeof b.reason, "PodGone");
    CHECK(!pl__transition_alike(&a, &b));
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    test_lines();
    test_widths();
    test_alike();
    pl__arena_release(&arena);
    return test_end("up_lines");
}
