/* The etcd of a cluster, or the one that all share: real members, each on the loopback address of its Node.
 *
 * The first ones are started together. Later ones join as kubeadm lets them: added as a learner, started, promoted
 * when in sync. One call at a time; what fails is tried again a little later, after looking at what is.
 *
 * What is needed to go on after a restart is on the disk before etcd knows of it: a file "ensemble" once the first
 * ones are about to start, and a file "member" for each that others list. What has neither is begun anew. */
#include "fleet/internal.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <openssl/rand.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/files.h"

enum {
    DIAL_TIMEOUT_MS = 3000,
    CALL_TIMEOUT_MS = 5000,
    RETRY_MS = 400,
    RESTART_MS = 3000,
    HOST_TRIES_MAX = 500,
    ARGUMENTS_MAX = 48,
    INITIAL_CLUSTER_BYTES_MAX = 8192,
    FILE_BYTES_MAX = 16 * 1024,
    HOSTS_MASK = 0x3fffff,
    ALARM_NOSPACE = 1,
    NOT_FOUND = 5, /* a code of gRPC */
};

/* --- where things are ----------------------------------------------------------------------------------- */

static struct pl_arena *scratch(struct ensemble *e)
{
    return &e->fleet->scratch;
}

static const char *in_ensemble(struct ensemble *e, const char *name)
{
    return pl__str_format(scratch(e), "%s/etcd/%s/%s", e->fleet->options.directory, e->name, name)
        .ptr;
}

static char *in_member(const struct member *m, const char *name)
{
    struct ensemble *e = m->ensemble;

    return strdup(pl__str_format(scratch(e), "%s/etcd/%s/%s/%s", e->fleet->options.directory,
                                 e->name, m->name, name)
                      .ptr);
}

static struct pl_str peer_url(const struct member *m)
{
    return pl__str_format(scratch(m->ensemble), "https://%s:%d", m->host,
                          m->ensemble->fleet->client_port + 1);
}

static bool can_bind(uint32_t host, uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr.s_addr = htonl(host) };

    /* As etcd's own listener: what only lingers is free. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

static struct pl_str addresses_path(struct pl_fleet *fleet)
{
    return pl__str_format(&fleet->scratch, "%s/etcd/addresses", fleet->options.directory);
}

static void addresses_keep(struct pl_fleet *fleet)
{
    if (fleet->options.keep)
        pl__file_write(addresses_path(fleet).ptr,
                       pl__str_format(&fleet->scratch, "%u %u\n", fleet->client_port,
                                      fleet->host_next & HOSTS_MASK),
                       &fleet->scratch, NULL);
}

/* Every Node has a loopback address of its own, 127.64.0.1 and up, where both ports are free. */
static int host_find(struct pl_fleet *fleet, char host[FLEET_HOST_BYTES])
{
    for (int i = 0; i < HOST_TRIES_MAX; i++) {
        uint32_t number = fleet->host_next++ & HOSTS_MASK, low = number & 0xff;
        uint32_t address = 0x7f400000u + number;
        if (low == 0 || low == 255 || !can_bind(address, fleet->client_port) ||
            !can_bind(address, (uint16_t)(fleet->client_port + 1)))
            continue;
        struct in_addr in = { .s_addr = htonl(address) };
        inet_ntop(AF_INET, &in, host, FLEET_HOST_BYTES);
        addresses_keep(fleet);
        return 0;
    }
    return -1;
}

static bool port_is_free(const struct pl_fleet *fleet, uint16_t port)
{
    uint32_t host = 0x7f400000u + (fleet->host_next & HOSTS_MASK);

    return can_bind(host, port) && can_bind(host, (uint16_t)(port + 1));
}

/* Two numbers with a space between and a line break behind. */
static bool addresses_find(struct pl_fleet *fleet)
{
    struct pl_str text = { "", 0 };
    uint64_t port, next;
    size_t at = 0;

    if (pl__file_read(&fleet->scratch, addresses_path(fleet).ptr, FILE_BYTES_MAX, &text, NULL) < 0)
        return false;
    while (at < text.len && text.ptr[at] != ' ')
        at++;
    if (at + 1 >= text.len || !pl__str_to_u64((struct pl_str){ text.ptr, at }, &port) ||
        !pl__str_to_u64((struct pl_str){ text.ptr + at + 1, text.len - at - 2 }, &next) ||
        port == 0 || port >= UINT16_MAX || next > HOSTS_MASK)
        return false;
    fleet->host_next = (uint32_t)next;
    fleet->client_port = (uint16_t)port;
    return port_is_free(fleet, (uint16_t)port);
}

void pl__etcd_port_find(struct pl_fleet *fleet)
{
    /* etcd's own first; another etcd of this machine may listen there on all addresses. */
    static const uint16_t ports[] = { 2379, 12379, 22379, 32379, 42379 };
    struct pl_str folder = pl__str_format(&fleet->scratch, "%s/etcd", fleet->options.directory);

    if (fleet->options.keep && addresses_find(fleet))
        return;
    pl__folder_remove(folder.ptr);
    pl__folder_make(folder.ptr, &fleet->scratch, NULL);
    fleet->host_next = (uint32_t)getpid() * 64 + 1;
    fleet->client_port = 0;
    for (size_t i = 0; i < sizeof ports / sizeof ports[0] && !fleet->client_port; i++)
        if (port_is_free(fleet, ports[i]))
            fleet->client_port = ports[i];
    addresses_keep(fleet);
}

/* --- certificates ------------------------------------------------------------------------------------------ */

static int pair_write(struct member *m, const char *ca_cert, const char *ca_key, const char *name)
{
    struct pl_arena *a = scratch(m->ensemble);
    char *cert = NULL, *key = NULL;
    struct pl_str names =
        pl__str_format(a, "DNS:%s,DNS:localhost,IP:%s,IP:127.0.0.1", m->name, m->host);
    char *cert_path = in_member(m, pl__str_format(a, "%s.crt", name).ptr);
    char *key_path = in_member(m, pl__str_format(a, "%s.key", name).ptr);
    int result =
        pl__pki_issue(ca_cert, ca_key, m->name, names.ptr, pl__loop_wall_ms(), &cert, &key);

    if (result == 0)
        result = pl__file_write(cert_path, pl__str(cert), a, NULL);
    if (result == 0)
        result = pl__file_write(key_path, pl__str(key), a, NULL);
    free(cert);
    free(key);
    free(cert_path);
    free(key_path);
    return result;
}

/* What it shows to clients; with the fault, a certificate of an authority that nobody knows. Its peers see another
 * one, so that the fault is the clients' alone. */
static int server_pair_write(struct member *m, bool bad)
{
    char *cert = NULL, *key = NULL;
    int result = bad ? pl__pki_authority("stranger", pl__loop_wall_ms(), &cert, &key) : 0;

    if (result == 0)
        result = pair_write(m, bad ? cert : m->ensemble->ca_cert, bad ? key : m->ensemble->ca_key,
                            "server");
    free(cert);
    free(key);
    return result;
}

/* --- processes ----------------------------------------------------------------------------------------------- */

struct arguments {
    char *items[ARGUMENTS_MAX];
    size_t count;
};

static void argument_add(struct arguments *a, struct pl_arena *arena, const char *option,
                         const char *value)
{
    if (a->count + 1 >= ARGUMENTS_MAX)
        abort();
    struct pl_str text =
        value ? pl__str_format(arena, "%s=%s", option, value) : pl__str_format(arena, "%s", option);
    a->items[a->count] = strdup(text.ptr);
    if (!a->items[a->count++])
        abort();
}

static void arguments_fill(struct arguments *a, struct member *m)
{
    static const char *const sides[] = { "", "peer-" };
    static const char *const pairs[] = { "server", "peer" };
    struct ensemble *e = m->ensemble;
    struct pl_arena *arena = scratch(e);
    struct pl_str client = pl__str_format(arena, "https://%s:%d", m->host, e->fleet->client_port);
    char *data = in_member(m, "data");

    argument_add(a, arena, e->fleet->etcd, NULL);
    argument_add(a, arena, "--name", m->name);
    argument_add(a, arena, "--data-dir", data);
    argument_add(a, arena, "--listen-client-urls", client.ptr);
    argument_add(a, arena, "--advertise-client-urls", client.ptr);
    argument_add(a, arena, "--listen-peer-urls", peer_url(m).ptr);
    argument_add(a, arena, "--initial-advertise-peer-urls", peer_url(m).ptr);
    argument_add(a, arena, "--initial-cluster", m->initial_cluster);
    argument_add(a, arena, "--initial-cluster-state", m->is_first ? "new" : "existing");
    argument_add(a, arena, "--initial-cluster-token", e->token);
    argument_add(a, arena, "--log-level", "error");
    argument_add(a, arena, "--logger", "zap");
    /* It is a playground: what the machine forgets when the power goes may be forgotten. */
    argument_add(a, arena, "--unsafe-no-fsync", NULL);
    for (int i = 0; i < 2; i++) {
        char *cert = in_member(m, pl__str_format(arena, "%s.crt", pairs[i]).ptr);
        char *key = in_member(m, pl__str_format(arena, "%s.key", pairs[i]).ptr);
        argument_add(a, arena, pl__str_format(arena, "--%scert-file", sides[i]).ptr, cert);
        argument_add(a, arena, pl__str_format(arena, "--%skey-file", sides[i]).ptr, key);
        argument_add(a, arena, pl__str_format(arena, "--%strusted-ca-file", sides[i]).ptr,
                     in_ensemble(e, "ca.crt"));
        argument_add(a, arena, pl__str_format(arena, "--%sclient-cert-auth", sides[i]).ptr, NULL);
        free(cert);
        free(key);
    }
    free(data);
}

static void member_spawn(struct member *m, uint64_t now_ms)
{
    struct arguments a = { 0 };
    char *log = in_member(m, "log");
    struct pl_error *err = NULL;

    arguments_fill(&a, m);
    m->process = pl__process_start(m->ensemble->fleet, a.items, log, m, &err);
    m->frozen = m->suspect = false;
    m->restart_ms = now_ms + RESTART_MS;
    if (!m->process)
        pl__fleet_say(m->ensemble->fleet, "etcd of %s: %s", m->name,
                      pl__error_text(scratch(m->ensemble), err).ptr);
    for (size_t i = 0; i < a.count; i++)
        free(a.items[i]);
    free(log);
}

/* It is not waited for: whoever starts the member again looks whether it has ended. */
static void member_kill(struct member *m)
{
    pl__process_signal(m->process, SIGKILL);
}

bool pl__member_runs(const struct member *m)
{
    return m->process && !m->process->exited;
}

/* Process and faults as they should be. */
static void member_tend(struct member *m, uint64_t now_ms, uint64_t *due_ms)
{
    bool bad = m->faults & FAULT_BAD_CERTIFICATE, down = m->faults & FAULT_ETCD_KILL;
    bool freeze = m->faults & (FAULT_ETCD_STOP | FAULT_NETWORK_CUT);

    if (m->state < MEMBER_STARTS)
        return;
    if (bad != m->bad_cert && server_pair_write(m, bad) == 0) {
        /* Connections that are open would not notice. */
        m->bad_cert = bad;
        member_kill(m);
        m->restart_ms = now_ms;
    }
    if (m->process && down) {
        member_kill(m);
        m->restart_ms = now_ms;
    } else if (m->process && freeze != m->frozen) {
        pl__process_signal(m->process, freeze ? SIGSTOP : SIGCONT);
        m->frozen = freeze;
    }
    if (m->process || down || (m->is_ghost && m->suspect))
        return;
    if (now_ms >= m->restart_ms)
        member_spawn(m, now_ms);
    if (!m->process)
        pl__due(due_ms, m->restart_ms);
}

/* --- calls ------------------------------------------------------------------------------------------------------ */

static void errand_add(struct ensemble *e, enum pl_etcd_call call, uint64_t id)
{
    if (id && e->errand_count < ERRANDS_MAX)
        e->errands[e->errand_count++] = (struct errand){ call, id };
}

/* The first one was tried. If it could not be done yet, it is the last now, and members come before it: what it waits
 * for may be theirs to do. */
static void errand_over(struct ensemble *e, bool done)
{
    struct errand first = e->errands[0];

    e->errand_count--;
    memmove(e->errands, e->errands + 1, e->errand_count * sizeof e->errands[0]);
    e->errand_waits = !done;
    if (!done)
        errand_add(e, first.call, first.id);
}

/* There is nothing left to be done. Other refusals (an unhealthy cluster ...) pass. */
static bool says_not_found(const struct pl_etcd_answer *answer)
{
    return answer->failure == ETCD_REFUSED && answer->grpc_code == NOT_FOUND;
}

static const struct pl_etcd_member_info *listed_find(const struct pl_etcd_answer *answer,
                                                     const struct member *m)
{
    struct pl_str url = peer_url(m);

    for (size_t i = 0; i < answer->member_count; i++)
        if (pl__str_equal(answer->members[i].peer_url, url))
            return &answer->members[i];
    return NULL;
}

/* "n1=https://...,n2=https://...": everybody by name, the one that joins included. */
static void initial_cluster_set(struct member *m, const struct pl_etcd_answer *answer)
{
    struct pl_buf text;

    pl__buf_init(&text, scratch(m->ensemble), INITIAL_CLUSTER_BYTES_MAX);
    for (size_t i = 0; i < answer->member_count; i++) {
        const struct pl_etcd_member_info *info = &answer->members[i];
        bool own = pl__str_equal(info->peer_url, peer_url(m));
        if (info->name.len == 0 && !own)
            continue;
        pl__buf_printf(&text, "%s%.*s=%.*s", text.len ? "," : "",
                       PL_STR_ARG(own ? pl__str(m->name) : info->name), PL_STR_ARG(info->peer_url));
    }
    free(m->initial_cluster);
    m->initial_cluster = strdup(pl__buf_str(&text).ptr);
}

/* For the next life. */
static void member_keep(struct member *m)
{
    struct pl_arena *a = scratch(m->ensemble);
    char *path = in_member(m, "member");

    if (m->ensemble->fleet->options.keep)
        pl__file_write(path,
                       pl__str_format(a, "%s %s %s\n", m->host,
                                      m->is_ghost   ? "ghost"
                                      : m->is_first ? "new"
                                                    : "existing",
                                      m->initial_cluster),
                       a, NULL);
    free(path);
}

static void member_forget(struct member *m)
{
    char *path = in_member(m, "member");

    unlink(path);
    free(path);
}

static void member_added(struct member *m, const struct pl_etcd_member_info *info,
                         const struct pl_etcd_answer *answer)
{
    m->id = info->id;
    m->state = info->is_learner ? MEMBER_LEARNER : MEMBER_VOTES;
    initial_cluster_set(m, answer);
    member_keep(m);
}

/* One that was there before us. Its alarm is etcd's to know. */
static void member_met(struct member *m, const struct pl_etcd_member_info *info,
                       const struct pl_etcd_answer *answer)
{
    m->id = info->id;
    m->state = info->is_learner ? MEMBER_LEARNER : MEMBER_VOTES;
    for (size_t i = 0; i < answer->alarm_count; i++)
        m->full |=
            answer->alarms[i].member_id == info->id && answer->alarms[i].alarm == ALARM_NOSPACE;
}

/* Those who voted from the beginning. */
static void starters_settle(struct ensemble *e, const struct pl_etcd_answer *answer)
{
    size_t named = 0, starting = 0;

    for (size_t i = 0; i < answer->member_count; i++)
        named += answer->members[i].name.len > 0;
    for (int i = 0; i < MEMBERS_MAX; i++)
        starting += e->members[i].state == MEMBER_STARTS;
    if (answer->leader == 0 || named < starting)
        return;
    for (int i = 0; i < MEMBERS_MAX; i++) {
        struct member *m = &e->members[i];
        const struct pl_etcd_member_info *info =
            m->state == MEMBER_STARTS ? listed_find(answer, m) : NULL;
        if (!info)
            continue;
        m->id = info->id;
        m->state = MEMBER_VOTES;
    }
    pl__fleet_say(e->fleet, "etcd of %s has %zu members", e->name, named);
}

static void data_remove(struct member *m)
{
    char *data = in_member(m, "data");

    pl__folder_remove(data);
    free(data);
}

/* It is no member any more: it begins anew, empty. */
static void member_rejoin(struct member *m)
{
    member_kill(m);
    member_forget(m);
    m->id = 0;
    m->is_first = m->full = false;
    m->state = MEMBER_WAITS;
}

static void call_send(struct ensemble *e, enum pl_etcd_call call, struct member *target,
                      uint64_t id);

/* Added for somebody who has gone before it started: nobody could take it for theirs, and while it is there
 * etcd takes no other learner. */
static void strangers_remove(struct ensemble *e, const struct pl_etcd_answer *answer)
{
    for (size_t i = 0; i < answer->member_count; i++) {
        const struct pl_etcd_member_info *info = &answer->members[i];
        bool known = info->name.len > 0 || !info->is_learner;
        for (int k = 0; k < MEMBERS_MAX && !known; k++)
            known = e->members[k].state != MEMBER_NONE &&
                    pl__str_equal(info->peer_url, peer_url(&e->members[k]));
        for (uint32_t k = 0; k < e->errand_count && !known; k++)
            known = e->errands[k].id == info->id;
        if (!known)
            errand_add(e, ETCD_MEMBER_REMOVE, info->id);
    }
}

static void observed(struct ensemble *e, struct member *m, const struct pl_etcd_answer *answer)
{
    strangers_remove(e, answer);
    if (!m) {
        starters_settle(e, answer);
        return;
    }
    const struct pl_etcd_member_info *info = listed_find(answer, m);
    if (m->state == MEMBER_WAITS && info)
        member_added(m, info, answer);
    else if (m->state == MEMBER_WAITS)
        call_send(e, ETCD_MEMBER_ADD_LEARNER, m, 0);
    else if (!info && e->is_shared)
        member_rejoin(m);
    else if (info && !m->id)
        member_met(m, info, answer);
    else if (!info)
        m->removed = true;
    m->suspect = false;
}

static void changed(struct ensemble *e, struct member *m, const struct pl_etcd_answer *answer)
{
    const struct pl_etcd_member_info *info;

    switch (e->call) {
    case ETCD_MEMBER_ADD_LEARNER:
        info = m ? listed_find(answer, m) : NULL;
        if (info)
            member_added(m, info, answer);
        strangers_remove(e, answer);
        return;
    case ETCD_MEMBER_PROMOTE:
        if (!m)
            return;
        m->state = MEMBER_VOTES;
        pl__fleet_say(e->fleet, "etcd member %s votes", m->name);
        return;
    case ETCD_MEMBER_REMOVE:
        if (m)
            member_rejoin(m);
        return;
    case ETCD_NOSPACE_RAISE:
    case ETCD_NOSPACE_CLEAR:
        if (m)
            m->full = e->call == ETCD_NOSPACE_RAISE;
        return;
    case ETCD_OBSERVE:
    case ETCD_MOVE_LEADER:
    case ETCD_MEMBER_ADD:
        return;
    }
}

static void called(void *user, const struct pl_etcd_answer *answer)
{
    struct ensemble *e = user;

    if (answer->failure == ETCD_CANCELLED)
        return; /* the ensemble is gone */
    struct member *m = e->target;

    pl__fleet_enter(e->fleet);
    e->busy = false;
    e->target = NULL;
    bool ok = answer->failure == ETCD_OK && answer->members_error.len == 0;
    if (e->is_errand)
        errand_over(e, ok || says_not_found(answer));
    e->next_call_ms = pl__loop_mono_ms(e->fleet->loop) + (ok ? 0 : RETRY_MS);
    if (ok && e->call == ETCD_OBSERVE)
        observed(e, m, answer);
    else if (ok)
        changed(e, m, answer);
    pl__ensemble_poke(e, ok);
    pl__fleet_leave(e->fleet);
}

/* Whom to ask: those that can answer, and never the one that is to be removed. */
static size_t endpoints_fill(const struct ensemble *e, const struct member *but,
                             struct pl_etcd_endpoint *endpoints)
{
    size_t count = 0;

    for (int i = 0; i < MEMBERS_MAX; i++) {
        const struct member *m = &e->members[i];
        if ((m->state != MEMBER_VOTES && m->state != MEMBER_STARTS) || m == but ||
            !pl__member_runs(m) || m->frozen || m->bad_cert || m->is_ghost)
            continue;
        endpoints[count++] =
            (struct pl_etcd_endpoint){ .node = pl__str(m->name), .address = pl__str(m->host) };
    }
    return count;
}

static void call_send(struct ensemble *e, enum pl_etcd_call call, struct member *target,
                      uint64_t id)
{
    struct pl_etcd_endpoint endpoints[MEMBERS_MAX];
    struct pl_etcd_request request = {
        .call = call,
        .endpoints = endpoints,
        .endpoint_count = endpoints_fill(e, call == ETCD_MEMBER_REMOVE ? target : NULL, endpoints),
        .member_id = id,
        .peer_url = target ? peer_url(target) : PL_STR(""),
        .done = called,
        .user = e,
    };

    /* Ours lives for a day; this makes a new one when it is time. */
    pl__etcd_credentials(e->client, pl__str(e->ca_cert), pl__str(e->ca_key), pl__loop_wall_ms(),
                         scratch(e), NULL);
    e->busy = true;
    e->call = call;
    e->target = target;
    e->is_errand = false;
    pl__etcd_send(e->client, &request);
}

/* What this member needs next. False: nothing. */
static bool member_call(struct ensemble *e, struct member *m)
{
    bool learner = m->faults & FAULT_ETCD_LEARNER, full = m->faults & FAULT_ETCD_NOSPACE;

    if (m->state == MEMBER_NONE || m->state == MEMBER_STARTS || m->removed)
        return false;
    if (m->state == MEMBER_WAITS) {
        if (m->process)
            return false; /* its former life has not ended */
        data_remove(m);
        call_send(e, ETCD_OBSERVE, m, 0);
    } else if (m->id == 0 || (m->suspect && e->is_shared && !m->faults)) {
        call_send(e, ETCD_OBSERVE, m, 0);
    } else if (m->state == MEMBER_LEARNER && !learner && pl__member_runs(m)) {
        call_send(e, ETCD_MEMBER_PROMOTE, m, m->id);
    } else if (m->state == MEMBER_VOTES && learner) {
        call_send(e, ETCD_MEMBER_REMOVE, m, m->id);
    } else if (m->state == MEMBER_VOTES && full != m->full) {
        call_send(e, full ? ETCD_NOSPACE_RAISE : ETCD_NOSPACE_CLEAR, m, m->id);
    } else {
        return false;
    }
    return true;
}

static bool errand_call(struct ensemble *e)
{
    if (e->errand_count == 0)
        return false;
    call_send(e, e->errands[0].call, NULL, e->errands[0].id);
    e->is_errand = true;
    return true;
}

static void next_call(struct ensemble *e)
{
    for (int i = 0; i < MEMBERS_MAX; i++) {
        if (e->members[i].state == MEMBER_STARTS) {
            call_send(e, ETCD_OBSERVE, NULL, 0);
            return;
        }
    }
    bool last = e->errand_waits;
    e->errand_waits = false;
    if (!last && errand_call(e))
        return;
    for (int i = 0; i < MEMBERS_MAX; i++)
        if (member_call(e, &e->members[i]))
            return;
    if (last)
        errand_call(e);
}

void pl__ensemble_step(struct ensemble *e, uint64_t now_ms, uint64_t *due_ms)
{
    if (!e || !e->has_started)
        return;
    for (int i = 0; i < MEMBERS_MAX; i++)
        member_tend(&e->members[i], now_ms, due_ms);
    if (e->busy)
        return;
    if (now_ms < e->next_call_ms)
        pl__due(due_ms, e->next_call_ms);
    else
        next_call(e);
}

/* --- its life ------------------------------------------------------------------------------------------------------ */

static void member_release(struct member *m)
{
    if (m->process)
        m->process->member = NULL;
    member_kill(m);
    free(m->initial_cluster);
    *m = (struct member){ .ensemble = m->ensemble };
}

void pl__member_abandon(struct member *m)
{
    struct ensemble *e = m->ensemble;
    char *folder = in_member(m, "");

    if (m->state == MEMBER_LEARNER || m->is_ghost)
        errand_add(e, ETCD_MEMBER_REMOVE, m->id); /* nobody else would */
    if (m->full)
        errand_add(e, ETCD_NOSPACE_CLEAR, m->id); /* an alarm outlives its member */
    if (e->target == m)
        e->target = NULL;
    member_forget(m); /* first: what is left of a folder is no member */
    member_release(m);
    pl__folder_remove(folder);
    free(folder);
}

struct member *pl__ensemble_find(struct ensemble *e, const char *name)
{
    for (int i = 0; i < MEMBERS_MAX; i++)
        if (e->members[i].state != MEMBER_NONE && strcmp(e->members[i].name, name) == 0)
            return &e->members[i];
    return NULL;
}

struct member *pl__ensemble_member(struct ensemble *e, const char *name)
{
    struct member *place = pl__ensemble_find(e, name);
    char *folder;

    if (place)
        return place;
    for (int i = MEMBERS_MAX - 1; i >= 0; i--)
        if (e->members[i].state == MEMBER_NONE)
            place = &e->members[i];
    if (!place || host_find(e->fleet, place->host) < 0)
        return NULL;
    NAME_SET(place->name, pl__str(name));
    folder = in_member(place, "");
    /* The process that had this name may still be ending; it has its folder open, and we a new one. */
    pl__folder_remove(folder);
    bool ok = pl__folder_make(folder, scratch(e), NULL) == 0 &&
              server_pair_write(place, false) == 0 &&
              pair_write(place, e->ca_cert, e->ca_key, "peer") == 0;
    free(folder);
    if (!ok) {
        pl__fleet_say(e->fleet, "etcd of %s: its folder cannot be written", name);
        return NULL;
    }
    place->state = MEMBER_WAITS;
    return place;
}

void pl__ensemble_ghost(struct ensemble *e, bool wanted)
{
    struct member *ghost = NULL;

    for (int i = 0; i < MEMBERS_MAX; i++)
        if (e->members[i].is_ghost)
            ghost = &e->members[i];
    if (wanted && !e->ghost_made && e->has_started) {
        e->ghost_made = true;
        ghost = pl__ensemble_member(e, pl__str_format(scratch(e), "%s-ghost", e->name).ptr);
        if (ghost)
            ghost->is_ghost = true;
    } else if (!wanted && ghost) {
        pl__member_abandon(ghost);
    }
    e->ghost_made &= wanted;
}

void pl__ensemble_start(struct ensemble *e)
{
    struct pl_buf text;

    pl__buf_init(&text, scratch(e), INITIAL_CLUSTER_BYTES_MAX);
    for (int i = 0; i < MEMBERS_MAX; i++) {
        struct member *m = &e->members[i];
        if (m->state == MEMBER_WAITS)
            pl__buf_printf(&text, "%s%s=%s", text.len ? "," : "", m->name, peer_url(m).ptr);
    }
    for (int i = 0; i < MEMBERS_MAX; i++) {
        struct member *m = &e->members[i];
        if (m->state != MEMBER_WAITS)
            continue;
        m->state = MEMBER_STARTS;
        m->is_first = true;
        m->initial_cluster = strdup(pl__buf_str(&text).ptr);
        member_keep(m);
    }
    e->has_started = true;
    if (e->fleet->options.keep)
        pl__file_write(in_ensemble(e, "ensemble"), pl__str_format(scratch(e), "%s\n", e->token),
                       scratch(e), NULL);
    e->next_call_ms = pl__loop_mono_ms(e->fleet->loop) + RETRY_MS;
}

/* --- a former life -------------------------------------------------------------------------------- */

/* The next word of a file, up to `end`; NULL: there is none. */
static char *word_take(struct pl_str *text, char end)
{
    for (size_t i = 0; i < text->len; i++) {
        if (text->ptr[i] != end)
            continue;
        char *word = strndup(text->ptr, i);
        *text = (struct pl_str){ text->ptr + i + 1, text->len - i - 1 };
        return word;
    }
    return NULL;
}

/* "127.64.0.1 new n1=https://...\n", as member_keep() writes it. */
static bool member_parse(struct member *m, struct pl_str text)
{
    char *host = word_take(&text, ' '), *kind = word_take(&text, ' ');

    m->initial_cluster = word_take(&text, '\n');
    bool ok = host && kind && m->initial_cluster && strlen(host) < sizeof m->host;
    if (ok) {
        memcpy(m->host, host, strlen(host) + 1);
        m->is_first = strcmp(kind, "new") == 0;
        m->is_ghost = strcmp(kind, "ghost") == 0;
    }
    free(host);
    free(kind);
    return ok;
}

/* It votes, for all that is known: who answers first will say. */
static void member_find(struct ensemble *e, struct member *m, const char *name)
{
    struct pl_str text = { "", 0 };

    NAME_SET(m->name, pl__str(name));
    char *path = in_member(m, "member"), *folder = in_member(m, "");
    bool ok = pl__file_read(scratch(e), path, FILE_BYTES_MAX, &text, NULL) == 0 &&
              member_parse(m, text) && server_pair_write(m, false) == 0;
    if (ok) {
        m->state = MEMBER_VOTES;
        e->ghost_made |= m->is_ghost;
    } else {
        pl__folder_remove(folder);
        free(m->initial_cluster);
        *m = (struct member){ .ensemble = e };
    }
    free(path);
    free(folder);
}

static void members_find(struct ensemble *e)
{
    DIR *folder = opendir(in_ensemble(e, ""));
    int count = 0;

    for (struct dirent *entry; folder && count < MEMBERS_MAX && (entry = readdir(folder));) {
        struct member *m = &e->members[count];
        if (entry->d_name[0] == '.' || entry->d_type != DT_DIR)
            continue;
        member_find(e, m, entry->d_name);
        count += m->state != MEMBER_NONE;
    }
    if (folder)
        closedir(folder);
}

/* Whether there is one that was about to start, at least. What had not come so far is removed. */
static bool ensemble_find(struct ensemble *e)
{
    struct pl_arena *a = scratch(e);
    struct pl_str token = { "", 0 }, cert = token, key = token;

    if (pl__file_read(a, in_ensemble(e, "ensemble"), FILE_BYTES_MAX, &token, NULL) < 0 ||
        token.len != sizeof e->token ||
        pl__file_read(a, in_ensemble(e, "ca.crt"), FILE_BYTES_MAX, &cert, NULL) < 0 ||
        pl__file_read(a, in_ensemble(e, "ca.key"), FILE_BYTES_MAX, &key, NULL) < 0) {
        pl__folder_remove(in_ensemble(e, ""));
        return false;
    }
    memcpy(e->token, token.ptr, sizeof e->token - 1);
    e->ca_cert = strdup(cert.ptr);
    e->ca_key = strdup(key.ptr);
    members_find(e);
    e->has_started = e->found = true;
    return true;
}

static int ensemble_make(struct ensemble *e, struct pl_error **err)
{
    struct pl_arena *a = scratch(e);
    uint64_t token = 0;

    /* Ids are hashes of addresses and token: with a new one, worlds cannot be mixed up. */
    RAND_bytes((unsigned char *)&token, sizeof token);
    snprintf(e->token, sizeof e->token, "%016llx", (unsigned long long)token);
    if (pl__pki_authority("etcd-ca", pl__loop_wall_ms(), &e->ca_cert, &e->ca_key) < 0)
        return pl__error(a, err, PL_IO, "etcd of %s: no certificate authority can be made",
                         e->name);
    if (pl__folder_make(in_ensemble(e, ""), a, err) < 0 ||
        pl__file_write(in_ensemble(e, "ca.crt"), pl__str(e->ca_cert), a, err) < 0)
        return -1;
    if (!e->fleet->options.keep)
        return 0;
    return pl__file_write(in_ensemble(e, "ca.key"), pl__str(e->ca_key), a, err);
}

static int ensemble_furnish(struct ensemble *e, struct pl_error **err)
{
    struct pl_arena *a = scratch(e);
    struct pl_str direct = pl__str_format(a, "https://{address}:%d", (int)e->fleet->client_port);

    if (!(e->fleet->options.keep && ensemble_find(e)) && ensemble_make(e, err) < 0)
        return -1;
    e->client = pl__etcd_open(e->fleet->loop, NULL,
                              &(struct pl_etcd_options){ .dial_timeout_ms = DIAL_TIMEOUT_MS,
                                                         .call_timeout_ms = CALL_TIMEOUT_MS,
                                                         .direct = direct.ptr });
    return pl__etcd_credentials(e->client, pl__str(e->ca_cert), pl__str(e->ca_key),
                                pl__loop_wall_ms(), a, err);
}

struct ensemble *pl__ensemble_new(struct pl_fleet *fleet, const char *name, bool is_shared,
                                  struct pl_error **err)
{
    struct ensemble *e = calloc(1, sizeof *e);

    if (!e)
        abort();
    e->fleet = fleet;
    e->is_shared = is_shared;
    NAME_SET(e->name, pl__str(name));
    for (int i = 0; i < MEMBERS_MAX; i++)
        e->members[i].ensemble = e;
    if (ensemble_furnish(e, err) == 0)
        return e;
    pl__ensemble_free(e);
    return NULL;
}

void pl__ensemble_free(struct ensemble *e)
{
    if (!e)
        return;
    for (int i = 0; i < MEMBERS_MAX; i++)
        member_release(&e->members[i]);
    if (!e->fleet->stopping || !e->fleet->options.keep)
        pl__folder_remove(in_ensemble(e, ""));
    free(e->ca_cert);
    free(e->ca_key);
    if (e->client)
        pl__etcd_close(e->client);
    free(e);
}
