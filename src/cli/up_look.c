/* Two looks are compared by merging two sorted lists of conditions, each in an arena of its own: this look's
 * and the last one's, in turn. */
#include "cli/up_look.h"

#include <stdlib.h>
#include <uv.h>

#include "cli/report.h"
#include "core/evaluate.h"

enum {
    REFRESH_MS = 500,
    UNSEEN_MAX = 64, /* looks; then it is forgotten */
    SHARE = 10,      /* a look may cost one part in so many of the time */
};

/* One condition of one object at one look. */
struct state {
    const struct pl_object *object;
    const struct pl_verdict *verdict;
    struct pl_str namespace_, name; /* copies: the object's own do not outlive the look */
    const char *kind;
    const char *type;
    enum pl_status stored_status;
    struct pl_str stored_reason;
    /* What was judged then: it is stored later, and by that time another row may decide. */
    const char *row;
    enum pl_status status;
    struct pl_str reason;
    int64_t differs_ms; /* since when what is judged is not what is stored; 0: it is */
    uint32_t unseen;    /* looks that did not judge it: evidence can be missing for a while */
};

struct states {
    struct pl_arena arena;
    struct state *items; /* sorted */
    size_t count;
};

struct pl_look {
    struct pl_look_options options;
    struct pl_arena arena; /* of the report */
    struct pl_snapshot snapshot;
    const struct pl_report *report;
    struct states states[2];
    int turn;
    uint64_t changes; /* the controller's count at the last look */
    uint64_t taken_ms, cost_ms;
    struct pl_transition transitions[LOOK_TRANSITIONS_MAX];
    size_t transition_total;
};

struct pl_look *pl__look_new(const struct pl_look_options *options)
{
    struct pl_look *look = calloc(1, sizeof *look);

    if (!look)
        abort();
    look->options = *options;
    pl__arena_init(&look->arena, NULL, 0);
    pl__arena_init(&look->states[0].arena, NULL, 0);
    pl__arena_init(&look->states[1].arena, NULL, 0);
    return look;
}

void pl__look_free(struct pl_look *look)
{
    if (!look)
        return;
    pl__arena_release(&look->arena);
    pl__arena_release(&look->states[0].arena);
    pl__arena_release(&look->states[1].arena);
    free(look);
}

bool pl__look_due(const struct pl_look *look, const struct pl_controller *controller,
                  uint64_t mono_ms, uint64_t *wait_ms)
{
    uint64_t since_ms = mono_ms - look->taken_ms;
    bool changed = !look->report || pl_controller_changes(controller) != look->changes;
    uint64_t pause_ms = look->cost_ms * SHARE;

    if (!changed && pause_ms < REFRESH_MS)
        pause_ms = REFRESH_MS;
    *wait_ms = since_ms < pause_ms ? pause_ms - since_ms : 0;
    return *wait_ms == 0;
}

/* --- comparing ----------------------------------------------------------------------------------- */

static int compare_states(const void *a, const void *b)
{
    const struct state *x = a, *y = b;
    int order = strcmp(x->kind, y->kind);

    if (order == 0)
        order = pl__str_compare(x->namespace_, y->namespace_);
    if (order == 0)
        order = pl__str_compare(x->name, y->name);
    return order ? order : strcmp(x->type, y->type);
}

static void states_fill(struct states *states, const struct pl_report *report, size_t more)
{
    size_t room = more;

    pl__arena_reset(&states->arena);
    states->count = 0;
    for (size_t i = 0; i < report->object_count; i++)
        room += report->objects[i].verdict_count;
    states->items = PL_NEW(&states->arena, struct state, room);
    for (size_t i = 0; i < report->object_count; i++) {
        const struct pl_object *o = &report->objects[i];
        struct pl_str namespace_ = pl__str_copy(&states->arena, o->namespace_);
        struct pl_str name = pl__str_copy(&states->arena, o->name);
        for (size_t k = 0; k < o->verdict_count; k++) {
            const struct pl_verdict *v = &o->verdicts[k];
            states->items[states->count++] =
                (struct state){ .object = o,
                                .verdict = v,
                                .namespace_ = namespace_,
                                .name = name,
                                .kind = o->kind,
                                .type = v->type,
                                .stored_status = v->stored_status,
                                .stored_reason = pl__str_copy(&states->arena, v->stored_reason),
                                .row = v->row,
                                .status = v->status,
                                .reason = pl__str_copy(&states->arena, v->reason) };
        }
    }
    if (states->count > 1)
        qsort(states->items, states->count, sizeof states->items[0], compare_states);
}

static void copy_text(char *to, size_t size, struct pl_str from)
{
    size_t len = from.len < size ? from.len : size - 1;

    /* Never half a character. */
    while (len < from.len && len && ((unsigned char)from.ptr[len] & 0xc0) == 0x80)
        len--;
    if (len)
        memcpy(to, from.ptr, len);
    to[len] = '\0';
    for (size_t i = 0; i < len; i++) {
        if (to[i] == '\n')
            to[i] = ' ';
    }
}

/* Which row said what is stored now: the one that decides, or the one that did at the last look; NULL: one that was
 * over before any look. */
static const char *row_of_stored(const struct state *now, const struct state *before)
{
    if (!pl__verdict_differs(now->verdict))
        return now->row;
    if (before && before->row && before->status == now->stored_status &&
        pl__str_equal(before->reason, now->stored_reason))
        return before->row;
    return NULL;
}

/* `before` NULL: it is new. */
static void transition_add(struct pl_look *look, const struct state *now,
                           const struct state *before)
{
    int64_t since_ms = before ? before->differs_ms : 0;
    struct pl_transition *t = &look->transitions[look->transition_total++ % LOOK_TRANSITIONS_MAX];
    const struct pl_verdict *v = now->verdict;
    int64_t at_ms = look->report->now_ms;

    *t = (struct pl_transition){ .at_ms = at_ms,
                                 .kind = now->kind,
                                 .type = now->type,
                                 .from = before ? before->stored_status : PL_STATUS_NONE,
                                 .to = v->stored_status,
                                 .negative = v->negative,
                                 .row = row_of_stored(now, before),
                                 .delay_ms = since_ms ? at_ms - since_ms : -1 };
    copy_text(t->namespace_, sizeof t->namespace_, now->namespace_);
    copy_text(t->name, sizeof t->name, now->name);
    copy_text(t->reason, sizeof t->reason, v->stored_reason);
    copy_text(t->cause, sizeof t->cause,
              v->stored_message.len ? v->stored_message : pl__str(v->guard));
    if (look->options.changed)
        look->options.changed(look->options.user, t);
}

/* A condition beside itself at the last look; `before` NULL: it is new. */
static void compare(struct pl_look *look, struct state *now, const struct state *before)
{
    bool differs = pl__verdict_differs(now->verdict);
    enum pl_status from = before ? before->stored_status : PL_STATUS_NONE;
    bool changed =
        now->stored_status != PL_STATUS_NONE &&
        (from != now->stored_status || !pl__str_equal(before->stored_reason, now->stored_reason));

    if (changed)
        transition_add(look, now, before);
    if (differs && !changed && before && before->differs_ms)
        now->differs_ms = before->differs_ms;
    else if (differs)
        now->differs_ms = look->report->now_ms;
    if (look->options.seen)
        look->options.seen(look->options.user, now->object, now->verdict, !differs);
}

/* Behind those that were judged: the order is made before the next look. */
static void carry(struct states *to, const struct state *from)
{
    if (from->unseen >= UNSEEN_MAX)
        return;
    struct state *kept = &to->items[to->count++];
    *kept = (struct state){ .namespace_ = pl__str_copy(&to->arena, from->namespace_),
                            .name = pl__str_copy(&to->arena, from->name),
                            .kind = from->kind,
                            .type = from->type,
                            .stored_status = from->stored_status,
                            .stored_reason = pl__str_copy(&to->arena, from->stored_reason),
                            .unseen = from->unseen + 1 };
}

static void compare_all(struct pl_look *look)
{
    const struct states *before = &look->states[look->turn];
    struct states *now = &look->states[look->turn ^= 1];
    size_t old = 0;

    states_fill(now, look->report, before->count);
    size_t judged = now->count;
    for (size_t i = 0; i < judged; i++) {
        for (; old < before->count && compare_states(&before->items[old], &now->items[i]) < 0;
             old++)
            carry(now, &before->items[old]);
        bool same = old < before->count && compare_states(&before->items[old], &now->items[i]) == 0;
        compare(look, &now->items[i], same ? &before->items[old] : NULL);
        old += same;
    }
    for (; old < before->count; old++)
        carry(now, &before->items[old]);
    if (now->count > judged)
        qsort(now->items, now->count, sizeof now->items[0], compare_states);
}

/* --- looking ------------------------------------------------------------------------------------- */

int pl__look_take(struct pl_look *look, struct pl_controller *controller, struct pl_now now,
                  struct pl_arena *arena, struct pl_error **err)
{
    struct pl_evaluate_options options = { .profile = look->options.profile };
    uint64_t start_ns = uv_hrtime();
    struct pl_error *cause = NULL;
    size_t pending;

    pl__arena_reset(&look->arena);
    look->report = NULL;
    if (pl_controller_snapshot(controller, PL_STR(""), PL_STR(""), now, &look->arena,
                               &look->snapshot, &pending, &cause) < 0 ||
        pl__evaluate(&look->snapshot, options, &look->arena, &look->report, &cause) < 0)
        return pl__error(arena, err, cause->code, "%.*s", PL_STR_ARG(pl__error_text(arena, cause)));
    compare_all(look);
    look->changes = pl_controller_changes(controller);
    look->taken_ms = now.mono_ms;
    look->cost_ms = (uv_hrtime() - start_ns) / 1000000;
    return 0;
}

const struct pl_report *pl__look_report(const struct pl_look *look)
{
    return look->report;
}

const struct pl_snapshot *pl__look_snapshot(const struct pl_look *look)
{
    return look->report ? &look->snapshot : NULL;
}

size_t pl__look_transition_count(const struct pl_look *look)
{
    return look->transition_total < LOOK_TRANSITIONS_MAX ? look->transition_total : LOOK_TRANSITIONS_MAX;
}

const struct pl_transition *pl__look_transition(const struct pl_look *look, size_t back)
{
    return &look->transitions[(look->transition_total - 1 - back) % LOOK_TRANSITIONS_MAX];
}

size_t pl__look_cluster_count(const struct pl_look *look)
{
    return look->report ? look->snapshot.objects.clusters.count : 0;
}
