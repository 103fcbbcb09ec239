/* controller/queue.c - what to do, and when: a heap by due time, each in it at most once.
 *
 * There are two of them: objects to reconcile, and workload clusters to look after. With thousands of
 * each, asking all of them at every step would be most of the work. */
#include "controller/internal.h"

static void place(struct pl_timers *t, struct pl_timer *timer, uint32_t at)
{
    t->heap[at] = timer;
    timer->heap_index = at;
}

static void sift_up(struct pl_timers *t, uint32_t at)
{
    struct pl_timer *timer = t->heap[at];

    while (at > 0 && t->heap[(at - 1) / 2]->due_ms > timer->due_ms) {
        place(t, t->heap[(at - 1) / 2], at);
        at = (at - 1) / 2;
    }
    place(t, timer, at);
}

static void sift_down(struct pl_timers *t, uint32_t at)
{
    struct pl_timer *timer = t->heap[at];

    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= t->count)
            break;
        if (child + 1 < t->count && t->heap[child + 1]->due_ms < t->heap[child]->due_ms)
            child++;
        if (t->heap[child]->due_ms >= timer->due_ms)
            break;
        place(t, t->heap[child], at);
        at = child;
    }
    place(t, timer, at);
}

static void grow(struct pl_controller *c, struct pl_timers *t)
{
    uint32_t capacity = t->capacity ? 2 * t->capacity : 64;
    struct pl_timer **heap = pl__alloc(c, capacity * sizeof(struct pl_timer *));

    if (t->count)
        memcpy(heap, t->heap, t->count * sizeof(struct pl_timer *));
    if (t->heap)
        pl__free(c, t->heap, t->capacity * sizeof(struct pl_timer *));
    t->heap = heap;
    t->capacity = capacity;
}

void pl__timers_set(struct pl_controller *c, struct pl_timers *t, struct pl_timer *timer,
                    uint64_t due_ms)
{
    if (due_ms == UINT64_MAX) {
        pl__timers_remove(t, timer);
        return;
    }
    if (timer->heap_index == UINT32_MAX) {
        if (t->count == t->capacity)
            grow(c, t);
        place(t, timer, t->count++);
    }
    timer->due_ms = due_ms;
    sift_up(t, timer->heap_index);
    sift_down(t, timer->heap_index);
}

void pl__timers_remove(struct pl_timers *t, struct pl_timer *timer)
{
    uint32_t at = timer->heap_index;

    timer->due_ms = UINT64_MAX;
    if (at == UINT32_MAX)
        return;
    timer->heap_index = UINT32_MAX;
    struct pl_timer *last = t->heap[--t->count];
    if (last == timer)
        return;
    place(t, last, at);
    sift_up(t, at);
    sift_down(t, last->heap_index);
}

void pl__timers_release(struct pl_controller *c, struct pl_timers *t)
{
    if (t->heap)
        pl__free(c, t->heap, t->capacity * sizeof(struct pl_timer *));
    *t = (struct pl_timers){ 0 };
}

void pl__queue_add(struct pl_controller *c, struct pl_work *w, uint64_t due_ms)
{
    if (w->timer.heap_index == UINT32_MAX) {
        w->queued_ms = c->now.mono_ms;
        c->counts.adds[w->resource == RESOURCE_MACHINE_DEPLOYMENTS]++;
    } else if (due_ms >= w->timer.due_ms) {
        return;
    }
    pl__timers_set(c, &c->queue, &w->timer, due_ms);
}

void pl__queue_remove(struct pl_controller *c, struct pl_work *w)
{
    pl__timers_remove(&c->queue, &w->timer);
}

struct pl_work *pl__queue_first(const struct pl_controller *c)
{
    return (struct pl_work *)(void *)pl__timers_first(&c->queue);
}
