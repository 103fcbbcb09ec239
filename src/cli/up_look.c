/* A cluster is judged by itself, so that memory and time of a look go with what has changed and not with the fleet.
 * Two looks at it are compared by merging two sorted lists of conditions, each in an arena of its own. */
#include "cli/up_look.h"

#include <stdlib.h>
#include <uv.h>

#include "cli/report.h"
#include "core/evaluate.h"

enum {
    REFRESH_MS = 500,
    UNSEEN_MAX = 64, /* looks; then it is forgotten */
    SHARE = 10,      /* a look may cost one part in so many of the time */
    STATES_BYTES = 8 * 1024,
    JUDGE_NS_MAX = 4 * 1000 * 1000, /* then the rest waits for the next look */
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

/* What is remembered of a cluster. */
struct subject {
    char *namespace_, *name;
    struct states states; /* of the last time that it was judged */
    bool stale;           /* it has changed since */
    bool unwell;          /* something about it calls for attention */
    bool there;
};

struct pl_look {
    struct pl_look_options options;
    struct subject **subjects; /* sorted */
    size_t subject_count, subject_capacity, subject_next;
    size_t stale_count;
    struct states spare;    /* those that are being made */
    struct pl_arena judged; /* of one cluster */
    int64_t now_ms;         /* of this look, wall clock */
    struct pl_arena arena;  /* of the report */
    struct pl_snapshot snapshot;
    const struct pl_report *report;
    uint64_t changes; /* the controller's count at the last look */
    uint64_t taken_ms, cost_us;
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
    pl__arena_init(&look->judged, NULL, 0);
    pl__arena_init(&look->spare.arena, NULL, STATES_BYTES);
    return look;
}

static void subject_free(struct subject *s)
{
    pl__arena_release(&s->states.arena);
    free(s->namespace_);
    free(s->name);
    free(s);
}

void pl__look_free(struct pl_look *look)
{
    if (!look)
        return;
    pl__arena_release(&look->arena);
    for (size_t i = 0; i < look->subject_count; i++)
        subject_free(look->subjects[i]);
    free((void *)look->subjects);
    pl__arena_release(&look->judged);
    pl__arena_release(&look->spare.arena);
    free(look);
}

bool pl__look_due(const struct pl_look *look, const struct pl_controller *controller, bool eager,
                  uint64_t mono_ms, uint64_t *wait_ms)
{
    uint64_t since_ms = mono_ms - look->taken_ms;
    bool changed =
        !look->report || look->stale_count || pl_controller_changes(controller) != look->changes;
    uint64_t pause_ms = eager && changed ? 0 : look->cost_us * SHARE / 1000;

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
    int64_t at_ms = look->now_ms;

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
        now->differs_ms = look->now_ms;
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

static void compare_all(struct pl_look *look, struct subject *subject,
                        const struct pl_report *report)
{
    const struct states *before = &subject->states;
    struct states *now = &look->spare;
    size_t old = 0;

    states_fill(now, report, before->count);
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
    struct states swapped = look->spare;
    look->spare = subject->states;
    subject->states = swapped;
}

/* --- the clusters -------------------------------------------------------------------------------- */

static char *text_copy(struct pl_str text)
{
    char *copy = calloc(1, text.len + 1);

    if (!copy)
        abort();
    if (text.len)
        memcpy(copy, text.ptr, text.len);
    return copy;
}

static struct pl_cluster_name subject_name(const struct subject *s)
{
    return (struct pl_cluster_name){ pl__str(s->namespace_), pl__str(s->name) };
}

/* Its place, or where it belongs. */
static size_t subject_place(const struct pl_look *look, struct pl_cluster_name name, bool *found)
{
    size_t low = 0, high = look->subject_count;

    *found = false;
    while (low < high && !*found) {
        size_t middle = low + (high - low) / 2;
        struct pl_cluster_name other = subject_name(look->subjects[middle]);
        int order = pl__str_compare(other.namespace_, name.namespace_);
        order = order ? order : pl__str_compare(other.name, name.name);
        *found = order == 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return high;
}

static struct subject *subject_add(struct pl_look *look, size_t at, struct pl_cluster_name name)
{
    struct subject *s = calloc(1, sizeof *s);

    if (look->subject_count == look->subject_capacity) {
        look->subject_capacity = look->subject_capacity ? look->subject_capacity * 2 : 16;
        look->subjects =
            realloc((void *)look->subjects, look->subject_capacity * sizeof(struct subject *));
    }
    if (!s || !look->subjects)
        abort();
    memmove((void *)(look->subjects + at + 1), (void *)(look->subjects + at),
            (look->subject_count - at) * sizeof(struct subject *));
    look->subjects[at] = s;
    look->subject_count++;
    s->namespace_ = text_copy(name.namespace_);
    s->name = text_copy(name.name);
    pl__arena_init(&s->states.arena, NULL, STATES_BYTES);
    return s;
}

static void mark_changed(void *user, struct pl_cluster_name name)
{
    struct pl_look *look = user;
    bool found;
    size_t at = subject_place(look, name, &found);
    struct subject *s = found ? look->subjects[at] : subject_add(look, at, name);

    look->stale_count += !s->stale;
    s->stale = true;
}

static void mark_there(void *user, struct pl_cluster_name name)
{
    struct pl_look *look = user;
    bool found;
    size_t at = subject_place(look, name, &found);

    if (found)
        look->subjects[at]->there = true;
}

/* Drops those that the controller knows no more. */
static void subjects_sweep(struct pl_look *look, const struct pl_controller *controller)
{
    size_t kept = 0;

    pl_controller_each_cluster(controller, 0, mark_there, look);
    for (size_t i = 0; i < look->subject_count; i++) {
        struct subject *s = look->subjects[i];
        if (s->there) {
            s->there = false;
            look->subjects[kept++] = s;
            continue;
        }
        look->stale_count -= s->stale;
        subject_free(s);
    }
    look->subject_count = kept;
}

static void subjects_update(struct pl_look *look, const struct pl_controller *controller)
{
    uint64_t since = look->changes;

    look->changes = pl_controller_changes(controller);
    size_t count = pl_controller_each_cluster(controller, since, mark_changed, look);
    if (count < look->subject_count)
        subjects_sweep(look, controller);
}

/* --- looking ------------------------------------------------------------------------------------- */

static bool is_unwell(const struct pl_report *report)
{
    for (size_t i = 0; i < report->object_count; i++) {
        const struct pl_object *o = &report->objects[i];
        for (size_t k = 0; k < o->verdict_count; k++)
            if (o->verdicts[k].status !=
                (o->verdicts[k].negative ? PL_STATUS_FALSE : PL_STATUS_TRUE))
                return true;
    }
    return false;
}

static int judge(struct pl_look *look, struct subject *s, struct pl_controller *controller,
                 struct pl_now now, struct pl_error **err)
{
    struct pl_evaluate_options options = { .profile = look->options.profile };
    struct pl_cluster_name name = subject_name(s);
    const struct pl_report *report;
    struct pl_snapshot snapshot;

    look->stale_count -= s->stale;
    s->stale = false;
    pl__arena_reset(&look->judged);
    if (pl_controller_snapshot_some(controller, &name, 1, now, &look->judged, &snapshot, err) < 0 ||
        pl__evaluate(&snapshot, options, &look->judged, &report, err) < 0)
        return -1;
    s->unwell = is_unwell(report);
    compare_all(look, s, report);
    return 0;
}

/* All of a small fleet; of a large one those that have changed, as far as the time goes. */
static int judge_some(struct pl_look *look, struct pl_controller *controller, struct pl_now now,
                      struct pl_error **err)
{
    uint64_t end_ns = uv_hrtime() + JUDGE_NS_MAX;
    size_t count = look->subject_count;
    bool all = count <= LOOK_CLUSTERS_MAX;

    for (size_t i = 0; i < count && (all || look->stale_count); i++) {
        struct subject *s = look->subjects[look->subject_next++ % count];
        if ((all || s->stale) && judge(look, s, controller, now, err) < 0)
            return -1;
        if (!all && uv_hrtime() > end_ns)
            break;
    }
    return 0;
}

/* The report is of as many clusters as somebody may want to see; in a large fleet those first that are unwell. */
static int picture(struct pl_look *look, struct pl_controller *controller, struct pl_now now,
                   struct pl_error **err)
{
    struct pl_evaluate_options options = { .profile = look->options.profile };
    struct pl_cluster_name names[LOOK_CLUSTERS_MAX];
    size_t count = 0;

    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < look->subject_count && count < LOOK_CLUSTERS_MAX; i++)
            if (look->subjects[i]->unwell == (pass == 0))
                names[count++] = subject_name(look->subjects[i]);
    pl__arena_reset(&look->arena);
    look->report = NULL;
    if (pl_controller_snapshot_some(controller, names, count, now, &look->arena, &look->snapshot,
                                    err) < 0)
        return -1;
    return pl__evaluate(&look->snapshot, options, &look->arena, &look->report, err);
}

int pl__look_take(struct pl_look *look, struct pl_controller *controller, struct pl_now now,
                  struct pl_arena *arena, struct pl_error **err)
{
    uint64_t start_ns = uv_hrtime();
    struct pl_error *cause = NULL;

    look->now_ms = now.wall_ms;
    subjects_update(look, controller);
    if (judge_some(look, controller, now, &cause) < 0 || picture(look, controller, now, &cause) < 0)
        return pl__error(arena, err, cause->code, "%.*s", PL_STR_ARG(pl__error_text(arena, cause)));
    look->taken_ms = now.mono_ms;
    look->cost_us = (uv_hrtime() - start_ns) / 1000;
    return 0;
}

size_t pl__look_cluster_count(const struct pl_look *look)
{
    return look->subject_count;
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
    return look->transition_total < LOOK_TRANSITIONS_MAX ? look->transition_total
                                                         : LOOK_TRANSITIONS_MAX;
}

const struct pl_transition *pl__look_transition(const struct pl_look *look, size_t back)
{
    return &look->transitions[(look->transition_total - 1 - back) % LOOK_TRANSITIONS_MAX];
}
