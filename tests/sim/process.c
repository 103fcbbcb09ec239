/* The shipped controller, as a process among others: what cli/driver.c does with sockets is done here with
 * the simulated servers. A request is handed out, arrives after a while, is carried out, and is answered
 * after another while; a crash can come between any two of these. */
#include "sim/sim.h"

enum { ETCD_TIMEOUT_MS = 15000 }; /* the client sets it, not the controller */

static void call_execute(struct sim *sim, void *what);
static void call_answer(struct sim *sim, void *what);
static void watch_deliver(struct sim *sim, void *what);

static uint64_t latency(struct sim *sim)
{
    return sim_between(sim, 1, sim->peace ? 20 : sim->faults.latency_ms);
}

static bool is_write(const struct call *call)
{
    return call->type == CALL_REQUEST && strcmp(call->method, "GET") != 0;
}

static bool is_lease(const struct call *call)
{
    return call->type == CALL_REQUEST && pl__str_contains(call->path, PL_STR("/leases"));
}

static bool is_event(const struct call *call)
{
    return pl__str_contains(call->path, PL_STR("/events"));
}

/* A write that does something, other than to report. */
static bool is_act(const struct call *call)
{
    return is_write(call) && !is_lease(call) && !is_event(call) &&
           strcmp(call->content_type, "application/apply-patch+yaml") != 0;
}

/* --- calls -------------------------------------------------------------------------------------------- */

/* By id, or NULL; those that have ended leave the list on the way. */
static struct call *call_find(struct process *p, uint64_t id)
{
    struct call **at = &p->calls, *found = NULL;

    while (*at) {
        if ((*at)->ended) {
            *at = (*at)->next;
            continue;
        }
        if ((*at)->id == id)
            found = *at;
        at = &(*at)->next;
    }
    return found;
}

static void call_end(struct call *call)
{
    call->ended = true;
    if (!call->streaming)
        return;
    struct call **at = &call->server->watches;
    while (*at != call)
        at = &(*at)->next_watch;
    *at = call->next_watch;
    call->streaming = false;
}

/* What is on its way may still arrive. */
static void call_cancel(struct sim *sim, struct call *call)
{
    call->cancelled = true;
    if (call->streaming)
        call_end(call);
    else if (!call->executed && sim_percent(sim, 50))
        call->dropped = true;
}

static struct call *call_new(struct process *p, const struct pl_action *a, enum call_type type)
{
    struct sim *sim = p->sim;
    struct call *call = PL_NEW(&sim->arena, struct call, 1);

    call->process = p;
    call->type = type;
    call->id = a->id;
    call->handle = a->server;
    call->sent_ms = sim->now.mono_ms;
    call->timeout_ms = type == CALL_ETCD ? ETCD_TIMEOUT_MS : a->timeout_ms;
    call->retry_after_s = -1;
    if (a->server < p->handle_count)
        call->server = p->handles[a->server];
    call->next = p->calls;
    p->calls = call;
    if (!a->timeout_ms && type != CALL_ETCD)
        sim_violated(sim, "every wait has a deadline", "call %" PRIu64 " has no timeout", a->id);
    sim->requests++;
    return call;
}

static void request_start(struct process *p, const struct pl_action *a)
{
    struct sim *sim = p->sim;
    struct call *call = call_new(p, a, a->type == ACTION_WATCH ? CALL_WATCH : CALL_REQUEST);

    call->method = a->method;
    call->path = pl__str_copy(&sim->arena, a->path);
    call->content_type = a->content_type ? a->content_type : "application/json";
    call->body = pl__str_copy(&sim->arena, a->body);
    if (!call->server)
        return; /* could not be opened: what is asked of it is dropped */
    if (is_act(call))
        sim_log(sim, "%s: %s %.*s %.*s", p->identity, call->method, PL_STR_ARG(call->path),
                PL_STR_ARG(call->body));
    else
        sim_note(sim, "%s: %s %.*s %.*s", p->identity, call->method, PL_STR_ARG(call->path),
                 PL_STR_ARG(call->body));
    if (is_write(call) && !is_lease(call) && !is_event(call))
        check_handed_out(call);
    sim_after(sim, latency(sim), call_execute, call);
}

static void etcd_start(struct process *p, const struct pl_action *a)
{
    static const char *const names[] = { "observe",    "move leader", "remove member",
                                         "add member", "add learner", "promote" };
    struct sim *sim = p->sim;
    struct call *call = call_new(p, a, CALL_ETCD);

    call->etcd_call = a->call;
    call->member_id = a->member_id;
    call->endpoint_count = a->endpoint_count;
    call->endpoints = PL_NEW(&sim->arena, struct pl_etcd_endpoint, a->endpoint_count + 1);
    for (size_t i = 0; i < a->endpoint_count; i++)
        call->endpoints[i].node = pl__str_copy(&sim->arena, a->endpoints[i].node);
    if (!call->server || !call->server->cluster)
        return;
    if (!p->views[call->server->cluster->index].trusted)
        sim_violated(sim, "trust before the first etcd call", "call %" PRIu64, a->id);
    if (a->call == ETCD_OBSERVE) {
        sim_note(sim, "%s: etcd %s: observe", p->identity, call->server->cluster->name);
    } else {
        sim_log(sim, "%s: etcd %s: %s %" PRIx64 ", asks %.*s", p->identity,
                call->server->cluster->name, names[a->call], a->member_id,
                PL_STR_ARG(call->endpoint_count ? call->endpoints[0].node : PL_STR("nobody")));
        check_handed_out(call);
    }
    sim_after(sim, latency(sim), call_execute, call);
}

static void call_fails(struct call *call, const char *error)
{
    call->status = 0;
    call->answer = PL_STR("");
    call->error = pl__str(error);
    call->etcd = (struct pl_etcd_answer){ .failure = ETCD_CUT, .error = call->error };
}

static void serve(struct call *call)
{
    if (call->type == CALL_ETCD)
        etcd_serve(call);
    else
        api_serve(call);
    if (call->type == CALL_ETCD && call->etcd_call != ETCD_OBSERVE)
        call->process->views[call->server->cluster->index].wrote_ms =
            call->server->sim->now.mono_ms;
}

static void call_execute(struct sim *sim, void *what)
{
    struct call *call = what;
    struct server *s = call->server;
    uint64_t wait = latency(sim);
    bool after = false;

    if (call->dropped || call->ended)
        return;
    call->executed = true;
    if (sim->now.mono_ms < s->refuses_until_ms) {
        call_fails(call, "connection refused");
        if (call->type == CALL_ETCD)
            call->etcd.failure = ETCD_UNREACHABLE;
    } else if (sim->now.mono_ms < s->hangs_until_ms) {
        call_fails(call, "timeout");
        wait = call->timeout_ms;
    } else if (fault_hits(call, &after)) {
        if (after)
            serve(call);
        if (call->streaming)
            call_end(call);
        int status = call->status;
        call_fails(call, "connection reset");
        call->ended = false;
        if (!after && sim_percent(sim, 60)) {
            static const int statuses[] = { 429, 500, 503, 504, 409 };
            status = statuses[prng_below(&sim->random, is_write(call) ? 5 : 4)];
            call->status = status;
            call->answer = PL_STR("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":"
                                  "\"Failure\",\"message\":\"a fault\",\"reason\":\"Fault\"}");
            call->error = PL_STR("");
            call->retry_after_s = status == 429 ? 1 : -1;
        }
    } else {
        serve(call);
    }
    if (call->type == CALL_ETCD && call->etcd.failure == ETCD_TIMEOUT)
        wait = call->timeout_ms;
    if (call->streaming) {
        sim_at(sim, call->ends_ms, watch_deliver, call);
        if (!call->cancelled)
            watch_schedule(call);
        else
            call_end(call);
    } else {
        sim_after(sim, wait, call_answer, call);
    }
}

/* Whether it can be told now. If it is paused, later. */
static bool can_hear(struct call *call, sim_fn *again)
{
    struct process *p = call->process;

    if (!p->alive || call->ended || call->cancelled)
        return false;
    if (p->sim->now.mono_ms < p->frozen_until_ms) {
        sim_at(p->sim, p->frozen_until_ms, again, call);
        return false;
    }
    return true;
}

static void etcd_answer(struct call *call)
{
    struct process *p = call->process;
    struct view *v = &p->views[call->server->cluster->index];
    bool sure = call->etcd.failure == ETCD_OK || call->etcd.failure == ETCD_REFUSED;

    if (call->etcd_call == ETCD_OBSERVE && call->etcd.failure == ETCD_OK) {
        uint64_t wrote = v->wrote_ms;
        *v = call->seen;
        v->wrote_ms = wrote;
        v->trusted = true;
    } else if (call->etcd_call != ETCD_OBSERVE && !sure) {
        v->wrote_ms = p->sim->now.mono_ms;
    }
    sim_note(p->sim, "%s: etcd answer %d %.*s", p->identity, (int)call->etcd.failure,
             PL_STR_ARG(call->etcd.error));
    process_step(
        p, &(struct pl_event){
               .type = EVENT_ETCD, .id = call->id, .server = call->handle, .etcd = &call->etcd });
}

static void call_answer(struct sim *sim, void *what)
{
    struct call *call = what;
    struct process *p = call->process;

    if (!can_hear(call, call_answer))
        return;
    call_end(call);
    if (call->type == CALL_ETCD) {
        etcd_answer(call);
        return;
    }
    if (is_write(call) && is_lease(call) && (call->status == 200 || call->status == 201) &&
        pl__str_contains(call->body, pl__str_format(&sim->arena, "\"%s\"", p->identity)))
        p->lease_sent_ms = call->sent_ms;
    if (is_act(call))
        sim_log(sim, "%s: answer %d to %s %.*s", p->identity, call->status, call->method,
                PL_STR_ARG(call->path));
    process_step(p, &(struct pl_event){ .type = EVENT_ANSWER,
                                        .id = call->id,
                                        .server = call->handle,
                                        .status = call->status,
                                        .retry_after_s = call->retry_after_s,
                                        .body = call->answer,
                                        .error = call->error });
}

/* --- watches ------------------------------------------------------------------------------------------ */

void watch_schedule(struct call *call)
{
    struct sim *sim = call->server->sim;

    if (call->scheduled || !call->streaming)
        return;
    call->scheduled = true;
    sim_after(sim, sim_between(sim, 1, sim->peace ? 50 : sim->faults.watch_lag_ms), watch_deliver,
              call);
}

static void watch_end(struct call *call, int status, const char *error)
{
    call_end(call);
    process_step(call->process, &(struct pl_event){ .type = EVENT_ANSWER,
                                                    .id = call->id,
                                                    .server = call->handle,
                                                    .status = status,
                                                    .retry_after_s = -1,
                                                    .error = pl__str(error) });
}

static void watch_deliver(struct sim *sim, void *what)
{
    struct call *call = what;
    bool over = sim->now.mono_ms >= call->ends_ms;

    if (!can_hear(call, watch_deliver) || !call->streaming)
        return;
    call->scheduled = false;
    if (sim->now.mono_ms < call->server->hangs_until_ms ||
        (call->server->cluster && !cluster_api_works(call->server->cluster))) {
        /* Silent, for now; what it has to say comes when it is back. */
        if (over)
            watch_end(call, 0, "timeout");
        else
            sim_after(sim, 2000, watch_deliver, call);
        return;
    }
    pl__arena_reset(&sim->scratch);
    struct pl_str lines = api_watch_lines(call);
    bool expired = call->expired;
    if (lines.len)
        process_step(call->process, &(struct pl_event){ .type = EVENT_BYTES,
                                                        .id = call->id,
                                                        .server = call->handle,
                                                        .body = lines });
    if ((over || expired) && call->process->alive && !call->ended && !call->cancelled)
        watch_end(call, 200, "");
}

void watches_cut(struct server *s)
{
    struct call *next;

    for (struct call *w = s->watches; w; w = next) {
        next = w->next_watch;
        call_end(w);
        w->ended = false;
        call_fails(w, "connection reset");
        sim_after(s->sim, latency(s->sim), call_answer, w);
    }
}

/* --- the process -------------------------------------------------------------------------------------- */

static void server_open(struct process *p, const struct pl_action *a)
{
    struct sim *sim = p->sim;
    int index = a->body.len == 5 && memcmp(a->body.ptr, "sim:", 4) == 0 ? a->body.ptr[4] - '0' : 0;

    if (a->server >= p->handle_count) {
        size_t count = 2 * (size_t)a->server + 2;
        p->handles = pl__arena_grow(&sim->arena, p->handles, p->handle_count * sizeof p->handles[0],
                                    count * sizeof p->handles[0]);
        p->handle_count = count;
    }
    if (index < 1 || index > sim->cluster_count)
        sim_violated(sim, "well-formed requests", "a server opened with %.*s", PL_STR_ARG(a->body));
    else
        p->handles[a->server] = &sim->servers[index];
    sim_note(sim, "%s: open %u", p->identity, a->server);
}

static void server_close(struct process *p, const struct pl_action *a)
{
    if (a->server >= p->handle_count || !p->handles[a->server])
        return;
    for (struct call *call = p->calls; call; call = call->next) {
        if (!call->ended && call->handle == a->server)
            call_cancel(p->sim, call);
    }
    p->views[p->handles[a->server]->cluster->index].trusted = false;
    p->handles[a->server] = NULL;
    sim_note(p->sim, "%s: close %u", p->identity, a->server);
}

static void restart(struct sim *sim, void *what)
{
    (void)what;
    for (int i = 0; i < sim->process_count; i++) {
        if (sim->processes[i]->alive && !sim->processes[i]->stopping)
            return;
    }
    process_start(sim);
}

static void process_end(struct process *p)
{
    struct sim *sim = p->sim;

    for (struct call *call = p->calls; call; call = call->next) {
        if (!call->ended)
            call_cancel(sim, call);
    }
    p->alive = false;
    pl_controller_free(p->controller);
    p->controller = NULL;
    sim_after(sim, sim_between(sim, 500, 30000), restart, NULL);
}

void process_crash(struct process *p)
{
    sim_log(p->sim, "%s crashes", p->identity);
    process_end(p);
}

void process_shut_down(struct process *p)
{
    sim_log(p->sim, "%s is told to end", p->identity);
    p->stopping = true;
    sim_after(p->sim, 1000, restart, NULL);
    process_step(p, &(struct pl_event){ .type = EVENT_SHUTDOWN });
}

static void drain(struct process *p)
{
    const struct pl_action *a;
    bool stop = false;

    while ((a = pl_controller_next_action(p->controller))) {
        switch (a->type) {
        case ACTION_OPEN:
            server_open(p, a);
            break;
        case ACTION_CLOSE:
            server_close(p, a);
            break;
        case ACTION_REQUEST:
        case ACTION_WATCH:
            request_start(p, a);
            break;
        case ACTION_CANCEL: {
            struct call *call = call_find(p, a->id);
            if (call)
                call_cancel(p->sim, call);
            break;
        }
        case ACTION_ETCD_TRUST:
            if (a->server < p->handle_count && p->handles[a->server])
                p->views[p->handles[a->server]->cluster->index].trusted = true;
            sim_note(p->sim, "%s: etcd trust for %u", p->identity, a->server);
            break;
        case ACTION_ETCD:
            etcd_start(p, a);
            break;
        case ACTION_STOP:
            sim_log(p->sim, "%s stops: %.*s", p->identity, PL_STR_ARG(a->error));
            stop = true;
            break;
        }
    }
    if (stop || (p->stopping && pl_controller_finished(p->controller)))
        process_end(p);
}

void process_step(struct process *p, const struct pl_event *event)
{
    p->sim->steps++;
    pl_controller_step(p->controller, event, p->sim->now);
    drain(p);
}

uint64_t process_wake_ms(const struct process *p)
{
    uint64_t wake = pl_controller_wake_at_ms(p->controller);

    return wake > p->frozen_until_ms ? wake : p->frozen_until_ms;
}

struct process *process_leading(struct sim *sim)
{
    for (int i = 0; i < sim->process_count; i++) {
        struct process *p = sim->processes[i];
        if (p->alive && p->lease_sent_ms && sim->now.mono_ms - p->lease_sent_ms < RENEW_MS)
            return p;
    }
    return NULL;
}

static void on_log(void *user, enum pl_log_level level, const char *message,
                   const struct pl_log_pair *pairs, size_t count)
{
    struct process *p = user;
    char text[1024];
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < count && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " %s=%.*s", pairs[i].key,
                                 PL_STR_ARG(pairs[i].value));
    sim_note(p->sim, "%s: log %d: %s%s", p->identity, (int)level, message, text);
}

void process_start(struct sim *sim)
{
    if (sim->process_count == PROCESSES_MAX)
        return;
    struct process *p = PL_NEW(&sim->arena, struct process, 1);
    sim->processes[sim->process_count] = p;
    p->sim = sim;
    p->index = sim->process_count++;
    p->alive = true;
    p->started_ms = sim->now.mono_ms;
    snprintf(p->identity, sizeof p->identity, "p%d", p->index);
    p->handle_count = 1;
    p->handles = PL_NEW(&sim->arena, struct server *, 1);
    p->handles[0] = &sim->servers[0];
    sim_log(sim, "%s starts", p->identity);
    p->controller = pl_controller_new(
        &(struct pl_controller_options){
            .mode = sim->options.manage ? MODE_MANAGE : MODE_STATUS,
            .profile = sim->profile,
            .leader_elect = true,
            .lease_namespace = NAMESPACE,
            .lease_name = "plimsoll",
            .identity = p->identity,
            .lease_duration_ms = LEASE_MS,
            .renew_deadline_ms = RENEW_MS,
            .retry_period_ms = RETRY_MS,
            .seed = prng_next(&sim->random),
            .log = on_log,
            .log_user = p,
        },
        sim->now);
    process_step(p, &(struct pl_event){ .type = EVENT_TICK });
}
