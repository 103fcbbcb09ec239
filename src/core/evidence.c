#include "core/pass.h"

#include "base/time.h"

enum { GROWING_FIRST = 8 };

void *pl__growing_add(struct pl_pass *p, struct pl_growing *g, size_t item_size)
{
    if (g->count == g->capacity) {
        size_t capacity = g->capacity ? 2 * g->capacity : GROWING_FIRST;
        g->items =
            pl__arena_grow(p->arena, g->items, g->capacity * item_size, capacity * item_size);
        g->capacity = capacity;
    }
    return (char *)g->items + g->count++ * item_size;
}

/* How and when. Everything was read when the snapshot was taken, but for the last successful probe,
 * which is its own time, and for etcd, which a live controller asks less often. */
static struct pl_str observed(struct pl_pass *p, enum pl_source source, struct pl_str value)
{
    static const char *const how[] = { [SOURCE_LIST] = "list at ",
                                       [SOURCE_PROBE] = "probe at ",
                                       [SOURCE_CONNECTION] = "connection at ",
                                       [SOURCE_ETCD] = "etcd call at " };
    struct pl_buf text;

    pl__buf_init(&text, p->arena, 64);
    pl__buf_add(&text, pl__str(how[source]));
    if (source == SOURCE_PROBE && value.len)
        pl__buf_add(&text, value);
    else if (source == SOURCE_ETCD && p->etcd_observed_ms)
        pl__time_add(&text, p->etcd_observed_ms);
    else
        pl__time_add(&text, p->snapshot->now_ms);
    return pl__buf_str(&text);
}

void pl__evidence(struct pl_pass *p, struct pl_verdict *v, struct pl_str object, const char *path,
                  struct pl_str value, enum pl_source source)
{
    size_t count = v->evidence_count;

    if (!p->explain)
        return;
    /* Room for the next power of two; what is there already is copied over. */
    if ((count & (count - 1)) == 0) {
        struct pl_evidence *roomier = PL_NEW(p->arena, struct pl_evidence, count ? 2 * count : 1);
        if (count)
            memcpy(roomier, v->evidence, count * sizeof *roomier);
        v->evidence = roomier;
    }
    struct pl_evidence *all; /* ours while it is built; readers of the report see it const */
    memcpy(&all, &v->evidence, sizeof all);
    all[count] = (struct pl_evidence){ .object = object,
                                       .path = pl__str(path),
                                       .value = value,
                                       .observed = observed(p, source, value) };
    v->evidence_count = count + 1;
}

struct pl_str pl__object_ref(struct pl_pass *p, const char *kind, struct pl_str namespace_,
                             struct pl_str name)
{
    if (!p->explain)
        return (struct pl_str){ "", 0 };
    struct pl_buf text;
    pl__buf_init(&text, p->arena, SIZE_MAX);
    pl__buf_add(&text, pl__str(kind));
    pl__buf_add_char(&text, '/');
    if (namespace_.len) {
        pl__buf_add(&text, namespace_);
        pl__buf_add_char(&text, '/');
    }
    pl__buf_add(&text, name);
    return pl__buf_str(&text);
}

void pl__missing_add(struct pl_pass *p, const char *kind, const struct pl_meta *meta,
                     const char *condition, struct pl_str evidence)
{
    struct pl_missing *m = pl__growing_add(p, &p->missing, sizeof *m);

    m->object = pl__str_format(p->arena, "%s/%.*s/%.*s", kind, PL_STR_ARG(meta->namespace_),
                               PL_STR_ARG(meta->name));
    m->condition = pl__str(condition);
    m->evidence = evidence;
}

struct pl_str pl__missing_workload(struct pl_pass *p, const struct pl_control_plane *cp,
                                   const char *part)
{
    return pl__str_format(p->arena, "workloads[%.*s/%.*s]%s%s",
                          PL_STR_ARG(cp->kcp->meta.namespace_), PL_STR_ARG(cp->cluster_name),
                          cp->workload ? "." : "", cp->workload ? part : "");
}
