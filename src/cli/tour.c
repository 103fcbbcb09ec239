/* A scene is in one of four phases.
 *
 *   READY ---------> BROKEN --------------> MENDING --------------> (next scene)
 *     the actor is     rows seen, or          rows of health at
 *     as it should be  the time is over       once, or time over
 *
 * Rows are counted by looks: a row has been reached when some look since the scene began saw it decide; the
 * actor is healed when one look saw all rows of health. */
#include "cli/tour.h"

#include <stdio.h>
#include <stdlib.h>

#include "apiserver/kinds.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/time.h"
#include "cli/text.h"

enum {
    TABLES = 5, /* the first of pl_table_info(): those of the documents */
    ROWS_MAX = 128,
    NAME_MAX_BYTES = 256,
    MESSAGE_BYTES_MAX = 32768,
    BODY_BYTES_MAX = 64 * 1024,
    LINES_BYTES_MAX = 1024 * 1024,
    NUDGE_MS = 2500,
    SCENES_MAX = 64,
    BREATH_MS = 300, /* a scene that is over rests so long, for eyes that follow */
    LABEL_INDENT = 2,
    LABEL_COLUMNS = 11, /* where the text begins, behind "  breaks   " */
};

enum phase { PHASE_BROKEN, PHASE_MENDING, PHASE_REST };

/* One row that a scene waits for. */
struct awaited {
    const struct pl_tour_row *row;
    uint64_t look;     /* the last one that saw it; 0: none */
    uint64_t after_ms; /* how long it took the first time */
    bool judged_only;  /* seen, but not stored */
    char object[NAME_MAX_BYTES];
    enum pl_status status;
    char reason[64];
};

struct result {
    bool run;
    bool reached;
    bool healed;
    bool failed; /* a write was refused */
    uint64_t reached_ms, healed_ms;
};

/* One row of the five tables. */
struct coverage {
    struct pl_row row;
    size_t table;
    const char *kind; /* of the objects */
    const char *type; /* of the condition: the table's name, without the kind before a dot */
    bool in_profile;
    bool seen;
};

struct pl_tour {
    struct pl_tour_options options;
    struct pl_arena arena; /* one step's */
    struct pl_arena lines_arena;
    struct pl_buf lines; /* what is to be told */
    size_t scene;        /* the one that is on */
    bool begun;
    enum phase phase;
    uint64_t phase_ms; /* since when, monotonic */
    uint64_t now_ms;
    uint64_t seen_ms; /* of the look that is under way */
    uint64_t look;
    struct awaited awaited[TOUR_ROWS_MAX];
    size_t awaited_count;
    struct result results[SCENES_MAX];
    struct coverage rows[ROWS_MAX];
    size_t row_count;
    uint64_t started_ms;
    /* Of the actor, at the last look. */
    char machine[NAME_MAX_BYTES], node[NAME_MAX_BYTES], last[NAME_MAX_BYTES],
        worker[NAME_MAX_BYTES];
    uint32_t machines_before; /* the actor's with a Node, when the scene began */
    uint64_t nudged_ms;
    uint32_t nudges, renewals;
};

static struct pl_buf *out(struct pl_tour *t)
{
    return &t->lines;
}

static void tell(struct pl_tour *t)
{
    if (t->lines.len)
        t->options.tell(t->options.user, pl__buf_str(&t->lines));
    pl__buf_clear(&t->lines);
}

static bool in_profile(const struct pl_tour *t, int profiles)
{
    return profiles == EVERY_TOUR ||
           (profiles == ONLY_TABLES_TOUR) == (t->options.profile == PL_PROFILE_TABLES);
}

/* --- the rows there are --------------------------------------------------------------------------- */

/* A row that sets nothing in this profile, but something in the other, is the other's. */
static bool row_in_profile(const struct pl_row *row, enum pl_profile profile)
{
    bool other = false;

    for (size_t i = 0; i < PL_PROFILE_COUNT; i++)
        other |= row->outcome[i].status[0] != '\0';
    return row->outcome[profile].status[0] != '\0' || !other;
}

static void rows_list(struct pl_tour *t)
{
    for (size_t table = 0; table < TABLES; table++) {
        struct pl_table_info info = pl_table_info(table);
        const char *dot = strchr(info.name, '.');
        for (size_t i = 0; i < info.row_count && t->row_count < ROWS_MAX; i++) {
            struct pl_row row = pl_table_row(table, i);
            t->rows[t->row_count++] =
                (struct coverage){ .row = row,
                                   .table = table,
                                   .kind = info.kind,
                                   .type = dot ? dot + 1 : info.name,
                                   .in_profile = row_in_profile(&row, t->options.profile) };
        }
    }
}

static const char *why_unreachable(const struct pl_tour *t, const struct coverage *c)
{
    for (size_t i = 0; i < pl__unreachable_count; i++) {
        const struct pl_tour_unreachable *u = &pl__unreachable[i];
        if (strcmp(u->id, c->row.id) == 0 && (!u->guard || strcmp(u->guard, c->row.guard) == 0) &&
            (!u->without_etcd || !t->options.etcd))
            return u->why;
    }
    return NULL;
}

struct pl_tour *pl__tour_new(const struct pl_tour_options *options)
{
    struct pl_tour *t = calloc(1, sizeof *t);

    if (!t || pl__scene_count > SCENES_MAX)
        abort();
    t->options = *options;
    pl__arena_init(&t->arena, NULL, 0);
    pl__arena_init(&t->lines_arena, NULL, 0);
    pl__buf_init(&t->lines, &t->lines_arena, LINES_BYTES_MAX);
    rows_list(t);
    return t;
}

void pl__tour_free(struct pl_tour *t)
{
    if (!t)
        return;
    pl__arena_release(&t->arena);
    pl__arena_release(&t->lines_arena);
    free(t);
}

/* --- who acts ------------------------------------------------------------------------------------- */

static const char *actor_name(const struct pl_tour *t, enum pl_tour_actor actor)
{
    return actor == ACTOR_STAGE   ? TOUR_STAGE
           : actor == ACTOR_FIRST ? t->options.first
                                  : t->options.second;
}

static const char *actor_namespace(const struct pl_tour *t, enum pl_tour_actor actor)
{
    return actor == ACTOR_STAGE ? TOUR_STAGE : t->options.namespace_;
}

/* Objects of a Cluster begin with its name and a dash, or have just its name. */
static bool belongs(const struct pl_tour *t, enum pl_tour_actor actor, struct pl_str namespace_,
                    struct pl_str name)
{
    struct pl_str cluster = pl__str(actor_name(t, actor));

    return pl__str_equal(namespace_, pl__str(actor_namespace(t, actor))) &&
           pl__str_starts_with(name, cluster) &&
           (name.len == cluster.len || name.ptr[cluster.len] == '-');
}

static void keep(char *to, size_t size, struct pl_str from)
{
    size_t len = from.len < size ? from.len : size - 1;

    if (len)
        memcpy(to, from.ptr, len);
    to[len] = '\0';
}

/* The Machines that placeholders stand for: the first by name, the last, the first worker. */
static void find_machines(struct pl_tour *t, const struct pl_snapshot *s)
{
    enum pl_tour_actor actor = pl__scenes[t->scene].actor;

    t->machine[0] = t->node[0] = t->last[0] = t->worker[0] = '\0';
    for (uint32_t i = 0; i < s->objects.machines.count; i++) {
        const struct pl_machine *m = &s->objects.machines.items[i];
        if (!belongs(t, actor, m->meta.namespace_, m->meta.name) || m->meta.deleted_ms)
            continue;
        if (!m->meta.labels.control_plane && !t->worker[0])
            keep(t->worker, sizeof t->worker, m->meta.name);
        if (!m->meta.labels.control_plane || !m->node_name.len)
            continue;
        if (!t->machine[0]) {
            keep(t->machine, sizeof t->machine, m->meta.name);
            keep(t->node, sizeof t->node, m->node_name);
        }
        keep(t->last, sizeof t->last, m->meta.name);
    }
}

/* How many of the actor's Machines have a Node. */
static uint32_t machines_up(const struct pl_tour *t, const struct pl_snapshot *s)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < s->objects.machines.count; i++) {
        const struct pl_machine *m = &s->objects.machines.items[i];
        count += m->node_name.len && !m->meta.deleted_ms &&
                 belongs(t, pl__scenes[t->scene].actor, m->meta.namespace_, m->meta.name);
    }
    return count;
}

/* --- writing -------------------------------------------------------------------------------------- */

static const char dead_kubeconfig[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"Config\",\"current-context\":\"dead\","
    "\"clusters\":[{\"name\":\"dead\",\"cluster\":{\"server\":\"http://127.0.0.1:1\"}}],"
    "\"users\":[{\"name\":\"dead\",\"user\":{}}],"
    "\"contexts\":[{\"name\":\"dead\",\"context\":{\"cluster\":\"dead\",\"user\":\"dead\"}}]}";

/* As long as Kubernetes lets the message of a condition be. */
static struct pl_str long_message(struct pl_tour *t)
{
    char *text = pl__arena_alloc(&t->arena, MESSAGE_BYTES_MAX + 1);

    memset(text, 'x', MESSAGE_BYTES_MAX);
    return (struct pl_str){ text, MESSAGE_BYTES_MAX };
}

/* Other bytes each time, so that everybody connects anew. */
static struct pl_str renewed_kubeconfig(struct pl_tour *t, struct pl_str cluster)
{
    struct pl_str text = t->options.kubeconfig(t->options.kubeconfig_user, cluster, &t->arena);

    return pl__str_format(&t->arena, "%.*s\n# renewed %u times\n", PL_STR_ARG(text), ++t->renewals);
}

static struct pl_str filled_value(struct pl_tour *t, struct pl_str name, struct pl_str uid,
                                  int64_t wall_ms)
{
    const char *cluster = actor_name(t, pl__scenes[t->scene].actor);
    struct pl_buf time;

    if (pl__str_equal(name, PL_STR("uid")))
        return uid;
    if (pl__str_equal(name, PL_STR("cluster")))
        return pl__str(cluster);
    if (pl__str_equal(name, PL_STR("machine")))
        return pl__str(t->machine);
    if (pl__str_equal(name, PL_STR("node")))
        return pl__str(t->node);
    if (pl__str_equal(name, PL_STR("last")))
        return pl__str(t->last);
    if (pl__str_equal(name, PL_STR("worker")))
        return pl__str(t->worker);
    if (pl__str_equal(name, PL_STR("kubeconfig")))
        return pl__base64_encode(&t->arena, renewed_kubeconfig(t, pl__str(cluster)));
    if (pl__str_equal(name, PL_STR("dead")))
        return pl__base64_encode(&t->arena, pl__str(dead_kubeconfig));
    if (pl__str_equal(name, PL_STR("long")))
        return long_message(t);
    if (pl__str_equal(name, PL_STR("garbage")))
        return pl__base64_encode(&t->arena, PL_STR("this is no kubeconfig"));
    pl__buf_init(&time, &t->arena, 64);
    pl__time_add(&time, wall_ms);
    return pl__buf_str(&time);
}

/* Braces with a lower case word in between; all others are JSON's. */
static struct pl_str fill(struct pl_tour *t, const char *from, struct pl_str uid, int64_t wall_ms)
{
    struct pl_buf to;

    pl__buf_init(&to, &t->arena, BODY_BYTES_MAX);
    while (*from) {
        size_t word = from[0] == '{' ? strspn(from + 1, "abcdefghijklmnopqrstuvwxyz") : 0;
        if (word && from[word + 1] == '}') {
            pl__buf_add(&to, filled_value(t, (struct pl_str){ from + 1, word }, uid, wall_ms));
            from += word + 2;
        } else {
            pl__buf_add_char(&to, *from++);
        }
    }
    return pl__buf_str(&to);
}

static const struct pl_kind *kind_of(const char *name)
{
    for (size_t i = 0; i < pl__kind_count; i++) {
        if (strcmp(pl__kinds[i].kind, name) == 0)
            return &pl__kinds[i];
    }
    abort(); /* the scenes are ours */
}

static enum pl_api_verb api_verb(enum pl_tour_verb verb)
{
    return verb == TOUR_CREATE   ? PL_API_CREATE
           : verb == TOUR_DELETE ? PL_API_DELETE
           : verb == TOUR_STATUS ? PL_API_APPLY
                                 : PL_API_MERGE;
}

static struct pl_str step_body(struct pl_tour *t, const struct pl_tour_step *step,
                               const struct pl_kind *kind, struct pl_str namespace_,
                               struct pl_str name, struct pl_str uid, int64_t wall_ms)
{
    struct pl_str version = pl__kind_api_version(&t->arena, kind);
    struct pl_str body, meta;

    switch (step->verb) {
    case TOUR_FAULT:
        return step->body ? pl__str_format(&t->arena,
                                           "{\"metadata\":{\"annotations\":{\"sim.plimsoll.dev/"
                                           "fault\":\"%s\"}}}",
                                           step->body)
                          : PL_STR("{\"metadata\":{\"annotations\":{\"sim.plimsoll.dev/"
                                   "fault\":null}}}");
    case TOUR_CREATE:
    case TOUR_STATUS:
        body = fill(t, step->body, uid, wall_ms);
        meta = step->meta ? fill(t, step->meta, uid, wall_ms) : PL_STR("");
        return pl__str_format(&t->arena,
                              "{\"apiVersion\":\"%.*s\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%."
                              "*s\"%s%.*s%s%s%.*s}%s%.*s}",
                              PL_STR_ARG(version), kind->kind, PL_STR_ARG(name),
                              namespace_.len ? ",\"namespace\":\"" : "", PL_STR_ARG(namespace_),
                              namespace_.len ? "\"" : "", meta.len ? "," : "", PL_STR_ARG(meta),
                              body.len ? "," : "", PL_STR_ARG(body));
    case TOUR_MERGE:
        return fill(t, step->body, uid, wall_ms);
    default:
        return PL_STR("");
    }
}

struct owner {
    struct pl_str uid;
};
static const struct pl_field owner_fields[] = {
    PL_FIELD("metadata.uid", F_STR, struct owner, uid),
};
static PL_SHAPE(owner_shape, struct owner, owner_fields);

/* Of an object of the management cluster; empty: it is not there, and the write will say so. */
static struct pl_str owner_uid(struct pl_tour *t, const char *owner, int64_t wall_ms)
{
    const char *slash = strchr(owner, '/');
    const struct pl_kind *kind =
        kind_of(pl__str_copy(&t->arena, (struct pl_str){ owner, (size_t)(slash - owner) }).ptr);
    struct pl_api_call call = {
        .cluster = t->options.management,
        .verb = PL_API_GET,
        .group_version = pl__kind_api_version(&t->arena, kind).ptr,
        .plural = kind->plural,
        .ns = pl__str(actor_namespace(t, pl__scenes[t->scene].actor)),
        .name = fill(t, slash + 1, PL_STR(""), wall_ms),
    };
    struct pl_api_answer answer = { 0 };
    struct owner found = { { 0 } };
    struct pl_json j;

    if (pl_apiserver_call(t->options.api, &call, wall_ms, &t->arena, &answer) < 0)
        return PL_STR("");
    pl__json_init(&j, answer.body, PL_STR("answer"), &t->arena, 0, NULL);
    return pl__json_decode(&j, &owner_shape, &found) == 0 ? found.uid : PL_STR("");
}

static bool step_do(struct pl_tour *t, const struct pl_tour_step *step, int64_t wall_ms)
{
    const struct pl_scene *scene = &pl__scenes[t->scene];
    const struct pl_kind *kind = kind_of(step->kind);
    struct pl_api_answer answer = { 0 };

    pl__arena_reset(&t->arena);
    struct pl_str name = fill(t, step->name, PL_STR(""), wall_ms);
    struct pl_str uid = step->owner ? owner_uid(t, step->owner, wall_ms) : PL_STR("");
    struct pl_str namespace_ = !kind->namespaced ? PL_STR("")
                               : step->workload  ? PL_STR("kube-system")
                                                 : pl__str(actor_namespace(t, scene->actor));
    struct pl_api_call call = {
        .cluster = step->workload ? pl__str(actor_name(t, scene->actor)) : t->options.management,
        .verb = api_verb(step->verb),
        .group_version = pl__kind_api_version(&t->arena, kind).ptr,
        .plural = kind->plural,
        .ns = namespace_,
        .name = step->verb == TOUR_CREATE ? PL_STR("") : name,
        .subresource = step->verb == TOUR_STATUS ? "status" : NULL,
        .manager = PL_STR("plimsoll-tour"),
        .body = step_body(t, step, kind, namespace_, name, uid, wall_ms),
    };
    if (pl_apiserver_call(t->options.api, &call, wall_ms, &t->arena, &answer) == 0)
        return true;
    pl__buf_printf(out(t), "  FAILED   %s %.*s: the API server answered %d: ", kind->kind,
                   PL_STR_ARG(name), answer.status);
    pl__text_add(out(t), answer.body);
    pl__buf_add_char(out(t), '\n');
    return false;
}

static void steps_do(struct pl_tour *t, const struct pl_tour_step *steps, int64_t wall_ms)
{
    for (size_t i = 0; i < TOUR_STEPS_MAX && steps[i].verb != TOUR_NOTHING; i++) {
        if (!step_do(t, &steps[i], wall_ms))
            t->results[t->scene].failed = true;
    }
}

/* A Machine that changes is a reason to ask etcd; what changes is nobody's. */
static void nudge(struct pl_tour *t, const struct pl_snapshot *snapshot, struct pl_now now)
{
    struct pl_tour_step touch = { .verb = TOUR_MERGE, .kind = "Machine", .name = "{machine}" };

    if (!pl__scenes[t->scene].nudges || t->now_ms - t->nudged_ms < NUDGE_MS)
        return;
    t->nudged_ms = t->now_ms;
    find_machines(t, snapshot);
    if (!t->machine[0])
        return;
    char body[128];
    snprintf(body, sizeof body,
             "{\"metadata\":{\"annotations\":{\"sim.plimsoll.dev/nudge\":\"%u\"}}}", ++t->nudges);
    touch.body = body;
    step_do(t, &touch, now.wall_ms);
}

/* --- seeing --------------------------------------------------------------------------------------- */

static bool row_matches(const char *id, const char *guard, const struct pl_verdict *v)
{
    return strcmp(id, v->row) == 0 && (!guard || strcmp(guard, v->guard) == 0);
}

/* The row of the five tables that alone says what is stored, or NULL. A row can be over before the next look; what
 * it wrote is still there, and some see more than a snapshot has (which templates are left). */
static const struct coverage *row_stored(const struct pl_tour *t, const struct pl_object *object,
                                         const struct pl_verdict *v)
{
    const struct coverage *found = NULL;

    for (size_t i = 0; v->stored_status != PL_STATUS_NONE && i < t->row_count; i++) {
        const struct coverage *c = &t->rows[i];
        const struct pl_row_outcome *says = &c->row.outcome[t->options.profile];
        if (strcmp(c->kind, object->kind) != 0 || strcmp(c->type, v->type) != 0 ||
            strcmp(says->status, pl_status_name(v->stored_status)) != 0 ||
            !pl__str_equal(pl__str(says->reason), v->stored_reason))
            continue;
        if (found)
            return NULL;
        found = c;
    }
    return found;
}

static void awaited_seen(struct pl_tour *t, struct awaited *a, const struct pl_object *object,
                         const struct pl_verdict *verdict, bool written)
{
    if (!a->look) {
        a->after_ms = t->seen_ms;
        a->judged_only = !written;
        a->status = verdict->status;
        keep(a->object, sizeof a->object,
             pl__str_format(&t->arena, "%s/%.*s %s", object->kind, PL_STR_ARG(object->name),
                            verdict->type));
        keep(a->reason, sizeof a->reason, verdict->reason);
    }
    a->look = t->look + 1; /* of the look that is under way */
}

void pl__tour_seen(struct pl_tour *t, const struct pl_object *object,
                   const struct pl_verdict *verdict, bool written, uint64_t mono_ms)
{
    const struct coverage *stored = row_stored(t, object, verdict);

    t->seen_ms = mono_ms;
    for (size_t i = 0; i < t->row_count; i++) {
        if (&t->rows[i] == stored || row_matches(t->rows[i].row.id, t->rows[i].row.guard, verdict))
            t->rows[i].seen = true;
    }
    if (!t->begun || !belongs(t, pl__scenes[t->scene].actor, object->namespace_, object->name))
        return;
    for (size_t i = 0; i < t->awaited_count; i++) {
        struct awaited *a = &t->awaited[i];
        bool by_stored = stored && a->row->guard && strcmp(a->row->id, stored->row.id) == 0 &&
                         strcmp(a->row->guard, stored->row.guard) == 0;
        bool judged = row_matches(a->row->id, a->row->guard, verdict);
        if (by_stored || (judged && (written || (a->row->flags & ROW_FLEETING))))
            awaited_seen(t, a, object, verdict, by_stored || written);
    }
}

bool pl__tour_is_eager(const struct pl_tour *t)
{
    for (size_t i = 0; t->begun && i < t->awaited_count; i++) {
        if (!t->awaited[i].look && (t->awaited[i].row->flags & ROW_FLEETING))
            return true;
    }
    return false;
}

static void await(struct pl_tour *t, const struct pl_tour_row *rows)
{
    t->awaited_count = 0;
    for (size_t i = 0; i < TOUR_ROWS_MAX && rows[i].id; i++) {
        bool asks = rows[i].flags & ROW_ETCD;
        if (in_profile(t, rows[i].profiles) && (!asks || t->options.etcd))
            t->awaited[t->awaited_count++] = (struct awaited){ .row = &rows[i] };
    }
}

/* `at_once`: by this look, all of them. */
static bool all_reached(const struct pl_tour *t, bool at_once)
{
    for (size_t i = 0; i < t->awaited_count; i++) {
        if (!t->awaited[i].look || (at_once && t->awaited[i].look != t->look))
            return false;
    }
    return true;
}

/* --- telling -------------------------------------------------------------------------------------- */

/* "12 ms", "3.4 s". */
static void add_duration(struct pl_buf *to, uint64_t ms)
{
    if (ms < 1000)
        pl__buf_printf(to, "%llu ms", (unsigned long long)ms);
    else
        pl__buf_printf(to, "%llu.%llu s", (unsigned long long)(ms / 1000),
                       (unsigned long long)(ms % 1000 / 100));
}

/* "  breaks   what is done", wrapped; further lines stand below the text, which is safe. */
static void tell_line(struct pl_tour *t, const char *label, enum pl_color color, struct pl_str text)
{
    const struct pl_term *term = t->options.term;
    struct pl_buf first;

    pl__buf_init(&first, &t->arena, 256);
    pl__text_spaces(&first, LABEL_INDENT);
    pl__term_add(term, &first, color, pl__str(label));
    size_t used = LABEL_INDENT + strlen(label);
    pl__text_spaces(&first, used + 1 < LABEL_COLUMNS ? LABEL_COLUMNS - used : 1);
    pl__text_wrap(out(t), text,
                  (struct pl_wrap){ pl__buf_str(&first), PL_STR("           "), term->width });
}

static bool is_left_out(const struct pl_tour *t, const struct pl_scene *s)
{
    return !in_profile(t, s->profiles) || (s->etcd > 0 && !t->options.etcd) ||
           (s->etcd < 0 && t->options.etcd) || !actor_name(t, s->actor);
}

/* How many of the first `count` scenes are played. */
static size_t scenes_played(const struct pl_tour *t, size_t count)
{
    size_t played = 0;

    for (size_t i = 0; i < count; i++)
        played += !is_left_out(t, &pl__scenes[i]);
    return played;
}

static void tell_begin(struct pl_tour *t)
{
    const struct pl_scene *s = &pl__scenes[t->scene];
    struct pl_buf text;

    pl__buf_init(&text, &t->arena, 4096);
    pl__buf_printf(&text, "Scene %zu of %zu, %s: %s", scenes_played(t, t->scene + 1),
                   scenes_played(t, pl__scene_count), actor_name(t, s->actor), s->title);
    pl__buf_add_char(out(t), '\n');
    pl__term_add(t->options.term, out(t), COLOR_BOLD, pl__buf_str(&text));
    pl__buf_add_char(out(t), '\n');
    pl__buf_clear(&text);
    pl__text_add(&text, fill(t, s->breaks, PL_STR(""), 0));
    tell_line(t, "breaks", COLOR_PLAIN, pl__buf_str(&text));
    tell_line(t, "expect", COLOR_PLAIN, pl__str(s->expect));
}

static void tell_rows(struct pl_tour *t)
{
    struct pl_buf text;

    pl__buf_init(&text, &t->arena, 4096);
    for (size_t i = 0; i < t->awaited_count; i++) {
        const struct awaited *a = &t->awaited[i];
        pl__buf_clear(&text);
        pl__buf_printf(&text, "%s", a->row->id);
        if (a->row->guard)
            pl__buf_printf(&text, " (%s)", a->row->guard);
        if (a->look) {
            pl__buf_add_lit(&text, " after ");
            add_duration(&text, a->after_ms - t->phase_ms);
            pl__buf_add_lit(&text, ": ");
            pl__text_add(&text, pl__str(a->object));
            pl__buf_printf(&text, " %s ", pl_status_name(a->status));
            pl__text_add(&text, pl__str(a->reason));
            if (a->judged_only)
                pl__buf_add_lit(&text, " (over before it was stored)");
        } else {
            pl__buf_add_lit(&text, " not within ");
            add_duration(&text, t->now_ms - t->phase_ms);
        }
        tell_line(t, a->look ? "reached" : "MISSED", a->look ? COLOR_GREEN : COLOR_RED,
                  pl__buf_str(&text));
    }
}

static void tell_healed(struct pl_tour *t, bool healed)
{
    struct pl_buf text;

    pl__buf_init(&text, &t->arena, 4096);
    pl__buf_printf(&text, "%s, after ", pl__scenes[t->scene].heals);
    add_duration(&text, t->now_ms - t->phase_ms);
    for (size_t i = 0; !healed && i < t->awaited_count; i++) {
        if (t->awaited[i].look != t->look)
            pl__buf_printf(&text, "; not %s", t->awaited[i].row->id);
    }
    tell_line(t, healed ? "healed" : "NOT HEALED", healed ? COLOR_GREEN : COLOR_RED,
              pl__buf_str(&text));
}

/* --- the phases ----------------------------------------------------------------------------------- */

static void enter(struct pl_tour *t, enum phase phase)
{
    t->phase = phase;
    t->phase_ms = t->now_ms;
}

static void scene_begin(struct pl_tour *t, const struct pl_snapshot *snapshot, struct pl_now now)
{
    const struct pl_scene *s = &pl__scenes[t->scene];

    t->begun = true;
    t->results[t->scene].run = true;
    enter(t, PHASE_BROKEN);
    find_machines(t, snapshot);
    t->machines_before = machines_up(t, snapshot);
    tell_begin(t);
    await(t, s->rows);
    steps_do(t, s->steps, now.wall_ms);
}

static bool time_is_over(const struct pl_tour *t)
{
    return t->now_ms - t->phase_ms > (uint64_t)pl__scenes[t->scene].timeout_s * 1000;
}

static void scene_broken(struct pl_tour *t, struct pl_now now)
{
    const struct pl_scene *s = &pl__scenes[t->scene];
    struct result *r = &t->results[t->scene];

    r->reached = all_reached(t, false);
    if (!r->reached && !time_is_over(t))
        return;
    r->reached_ms = t->now_ms - t->phase_ms;
    tell_rows(t);
    enter(t, s->heals ? PHASE_MENDING : PHASE_REST);
    r->healed = !s->heals;
    if (!s->heals)
        return;
    await(t, s->healed);
    steps_do(t, s->undo, now.wall_ms);
}

/* The rows of health hold, too, while a Machine that was replaced is gone and the next one is not there yet. */
static void scene_mending(struct pl_tour *t, const struct pl_snapshot *snapshot)
{
    struct result *r = &t->results[t->scene];

    r->healed = all_reached(t, true) && machines_up(t, snapshot) >= t->machines_before;
    if (!r->healed && !time_is_over(t))
        return;
    r->healed_ms = t->now_ms - t->phase_ms;
    tell_healed(t, r->healed);
    enter(t, PHASE_REST);
}

static bool go_on(struct pl_tour *t, const struct pl_snapshot *snapshot, struct pl_now now)
{
    t->now_ms = now.mono_ms;
    t->look++;
    pl__arena_reset(&t->arena);
    if (!t->started_ms)
        t->started_ms = now.mono_ms;
    while (t->scene < pl__scene_count && !t->begun && is_left_out(t, &pl__scenes[t->scene]))
        t->scene++;
    if (t->scene == pl__scene_count)
        return false;
    if (!t->begun) {
        scene_begin(t, snapshot, now);
        return true;
    }
    if (t->phase == PHASE_BROKEN)
        scene_broken(t, now);
    else if (t->phase == PHASE_MENDING)
        scene_mending(t, snapshot);
    if (t->phase != PHASE_REST) {
        nudge(t, snapshot, now);
    } else if (t->now_ms - t->phase_ms >= BREATH_MS) {
        t->begun = false;
        t->awaited_count = 0;
        t->scene++;
    }
    return true;
}

bool pl__tour_step(struct pl_tour *t, const struct pl_snapshot *snapshot, struct pl_now now)
{
    bool goes_on = go_on(t, snapshot, now);

    tell(t);
    return goes_on;
}

struct pl_str pl__tour_status(const struct pl_tour *t, struct pl_arena *arena)
{
    const struct pl_scene *s = t->scene < pl__scene_count ? &pl__scenes[t->scene] : NULL;

    if (!s || !t->begun)
        return PL_STR("");
    return pl__str_format(arena, "scene %zu of %zu: %s", scenes_played(t, t->scene + 1),
                          scenes_played(t, pl__scene_count), s->title);
}

/* --- the summary ---------------------------------------------------------------------------------- */

static bool is_as_expected(const struct result *r)
{
    return r->reached && r->healed && !r->failed;
}

/* Those that were played, and those that cannot be here. How many went wrong. */
static size_t tell_scenes(struct pl_tour *t)
{
    size_t missed = 0;

    for (size_t i = 0; i < pl__scene_count; i++) {
        const struct result *r = &t->results[i];
        const struct pl_scene *s = &pl__scenes[i];
        if (r->run) {
            missed += !is_as_expected(r);
            pl__buf_add_lit(out(t), "  ");
            pl__term_add(t->options.term, out(t), is_as_expected(r) ? COLOR_GREEN : COLOR_RED,
                         is_as_expected(r) ? PL_STR("as expected") : PL_STR("MISSED     "));
            pl__buf_printf(out(t), "  %s (", s->title);
            add_duration(out(t), r->reached_ms + r->healed_ms);
            pl__buf_add_lit(out(t), ")\n");
        } else if (in_profile(t, s->profiles) && s->etcd > 0 && !t->options.etcd) {
            pl__buf_printf(out(t), "  left out     %s: there is no etcd to ask\n", s->title);
        }
    }
    return missed;
}

struct rows_sum {
    size_t total, reached, unreachable, missing;
};

/* Of one table, or of all of them: NULL. */
static struct rows_sum rows_sum(const struct pl_tour *t, const struct coverage *of)
{
    struct rows_sum sum = { 0 };

    for (size_t i = 0; i < t->row_count; i++) {
        const struct coverage *c = &t->rows[i];
        if (!c->in_profile || (of && c->table != of->table))
            continue;
        bool excused = !c->seen && why_unreachable(t, c);
        sum.total++;
        sum.reached += c->seen;
        sum.unreachable += excused;
        sum.missing += !c->seen && !excused;
    }
    return sum;
}

static void tell_tables(struct pl_tour *t)
{
    pl__buf_add_lit(out(t), "Rows reached, table by table:\n");
    for (size_t i = 0; i < t->row_count; i++) {
        const struct coverage *c = &t->rows[i];
        if (i > 0 && c->table == t->rows[i - 1].table)
            continue;
        struct rows_sum sum = rows_sum(t, c);
        pl__buf_printf(out(t), "  %2zu of %2zu  %s\n", sum.reached, sum.total,
                       pl_table_info(c->table).name);
    }
}

/* Rows that were not seen: those with an excuse, or those without. */
static void tell_rows_left(struct pl_tour *t, bool excused, const char *heading)
{
    bool first = true;

    for (size_t i = 0; i < t->row_count; i++) {
        const struct coverage *c = &t->rows[i];
        const char *why = why_unreachable(t, c);
        if (!c->in_profile || c->seen || (why != NULL) != excused)
            continue;
        if (first)
            pl__buf_printf(out(t), "%s\n", heading);
        first = false;
        struct pl_str text =
            pl__str_format(&t->arena, "%s (%s): %s", c->row.id, c->row.guard, why ? why : "MISSED");
        pl__text_wrap(out(t), text,
                      (struct pl_wrap){ PL_STR("  "), PL_STR("    "), t->options.term->width });
    }
}

bool pl__tour_summary(struct pl_tour *t, struct pl_now now)
{
    struct rows_sum sum = rows_sum(t, NULL);
    bool whole = t->scene == pl__scene_count;

    pl__arena_reset(&t->arena);
    if (whole)
        pl__buf_add_lit(out(t), "\nThe tour is over.\n");
    else
        pl__buf_printf(out(t), "\nThe tour was stopped in scene %zu of %zu.\n",
                       scenes_played(t, t->scene + 1), scenes_played(t, pl__scene_count));
    if (!whole && t->begun)
        t->results[t->scene].run = false; /* it had no chance */
    size_t scenes_missed = tell_scenes(t);
    if (whole) {
        tell_tables(t);
        tell_rows_left(t, true, "Rows out of reach here:");
        tell_rows_left(t, false, "Rows that should have been reached:");
    }
    pl__buf_printf(out(t),
                   "profile %s: %zu of %zu rows of the five tables reached, %zu out of reach, %zu "
                   "%s; scenes missed: %zu; ",
                   pl_profile_name(t->options.profile), sum.reached, sum.total, sum.unreachable,
                   sum.missing, whole ? "missed" : "not yet", scenes_missed);
    add_duration(out(t), t->started_ms ? now.mono_ms - t->started_ms : 0);
    pl__buf_add_char(out(t), '\n');
    tell(t);
    return whole && scenes_missed == 0 && sum.missing == 0;
}
