/* cli/tour.h - the guided tour of the playground: what is broken, which rows that reaches, what happened.
 *
 * The tour is a table of scenes (tour_scenes.c). Each breaks something with ordinary writes to the API server,
 * most of them a fault annotation, and names the rows that must decide then, with their conditions stored in
 * the API server; takes the cause away; and waits for the rows of health. A scene that does not get there in
 * its time is a miss, and the tour goes on.
 *
 * Scenes act on one of three Clusters. The first two are the fleet's. The stage is the tour's own: only
 * objects, no machines, to show how a control plane comes into being and how it is lost sight of.
 *
 * At the end every row of the five tables was reached, or is listed among those that no world reaches, with
 * the reason; one that is neither is a miss, too. */
#ifndef PL_CLI_TOUR_H
#define PL_CLI_TOUR_H

#include "apiserver/apiserver.h"
#include "cli/command.h"
#include "controller/controller.h"

/* The Cluster of the tour's own, and its namespace; the caller makes the workload cluster of that name. */
#define TOUR_STAGE "stage"

enum pl_tour_actor { ACTOR_STAGE, ACTOR_FIRST, ACTOR_SECOND };

enum pl_tour_verb {
    TOUR_NOTHING, /* ends a list of steps */
    TOUR_CREATE,  /* body: the object's members, less apiVersion, kind and metadata */
    TOUR_MERGE,   /* body: a merge patch */
    TOUR_STATUS,  /* body: what we say of its status, all of it, by server-side apply */
    TOUR_DELETE,
    TOUR_FAULT, /* body: the value of annotation sim.plimsoll.dev/fault; NULL: it is removed */
};

/* One write. Names and bodies are filled in: {cluster}, {now} (RFC 3339), {machine} and {node} (the first
 * control plane Machine by name, and its Node), {last} (the last one), {worker} (the first of the others),
 * {kubeconfig} (base64, of the cluster), {dead} (one to a port where nobody listens), {garbage} (none at all), {long} (a message of
 * the greatest length), {uid} (of the object named by `owner`). */
struct pl_tour_step {
    enum pl_tour_verb verb;
    bool workload; /* in the workload cluster, not the management cluster */
    const char *kind;
    const char *name;
    const char *body;
    const char *meta; /* TOUR_CREATE: more members of metadata; NULL: none */
    const char
        *owner; /* "KubeadmControlPlane/{cluster}-cp", whose uid goes in for {uid}; NULL: none */
};

enum { EVERY_TOUR = 0, ONLY_TABLES_TOUR = 1, ONLY_CLUSTER_API_TOUR = 2 };

/* A row that has to decide. */
struct pl_tour_row {
    const char *id;
    const char *guard; /* where several rows share the id; NULL: any of them */
    int profiles;      /* EVERY_TOUR ... */
    unsigned flags;
};
enum {
    ROW_FLEETING =
        1, /* over within milliseconds: having been judged is enough, if it was not stored meanwhile */
    ROW_ETCD = 2, /* not without members to ask */
};

enum { TOUR_STEPS_MAX = 6, TOUR_ROWS_MAX = 8 };

struct pl_scene {
    enum pl_tour_actor actor;
    const char *title;
    const char *breaks; /* what is done, for people */
    const char *expect; /* what should happen */
    const char *heals;  /* how it ends; NULL: it stays, the next scene goes on from there */
    struct pl_tour_step steps[TOUR_STEPS_MAX];
    struct pl_tour_row rows[TOUR_ROWS_MAX];
    struct pl_tour_step undo[TOUR_STEPS_MAX];
    struct pl_tour_row healed[TOUR_ROWS_MAX]; /* all of them at the same time */
    uint32_t timeout_s;                       /* for each half */
    int profiles;
    int etcd; /* 1: needs members to ask; -1: only where there are none; 0: all the same */
    bool
        nudges; /* etcd is asked when something changes, else every 30 s: the Machine is touched meanwhile */
};

/* A row that no scene asks for, and why. */
struct pl_tour_unreachable {
    const char *id;
    const char *guard; /* NULL: all of that id */
    const char *why;
    bool without_etcd; /* only then */
};

extern const struct pl_scene pl__scenes[];
extern const size_t pl__scene_count;
extern const struct pl_tour_unreachable pl__unreachable[];
extern const size_t pl__unreachable_count;

struct pl_tour;

struct pl_tour_options {
    const struct pl_term *term;
    void (*tell)(void *user, struct pl_str lines); /* what it has to say, colours in it */
    struct pl_apiserver *api;
    struct pl_str management; /* the API server's name of the management cluster */
    enum pl_profile profile;
    bool etcd;                  /* members are real */
    const char *namespace_;     /* of the fleet's Clusters */
    const char *first, *second; /* their names; the second NULL: scenes with it are left out */
    /* A kubeconfig for a workload cluster of that name, in the arena. */
    struct pl_str (*kubeconfig)(void *user, struct pl_str cluster, struct pl_arena *arena);
    void *kubeconfig_user;
    void *user;
};

struct pl_tour *pl__tour_new(const struct pl_tour_options *options);
void pl__tour_free(struct pl_tour *tour); /* NULL is fine */

/* Every condition of every look comes here (cli/up_look.h), with the time of that look. */
void pl__tour_seen(struct pl_tour *tour, const struct pl_object *object,
                   const struct pl_verdict *verdict, bool written, uint64_t mono_ms);

/* Whether it waits for something that is over within milliseconds: no change may go unseen then. */
bool pl__tour_is_eager(const struct pl_tour *tour);

/* After every look: goes on as far as it can. False when the tour is over. */
bool pl__tour_step(struct pl_tour *tour, const struct pl_snapshot *snapshot, struct pl_now now);

/* What it is at, for a status line: "scene 3 of 20: a static Pod crashes". */
struct pl_str pl__tour_status(const struct pl_tour *tour, struct pl_arena *arena);

/* Prints the summary. True when the tour came to its end and missed nothing. */
bool pl__tour_summary(struct pl_tour *tour, struct pl_now now);

#endif
