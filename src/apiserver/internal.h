/* apiserver/internal.h - what the files of the server share. See apiserver.h for what it is.
 *
 *   apiserver.c  opening, clusters, routing        status.c    failures, as the real server words them
 *   params.c     the query                         selector.c  label and field selectors
 *   read.c       get and list                      meta.c      names, metadata, what is set for the client
 *   write.c      create, update, patch, delete     watch.c     streams
 *   validate.c   custom kinds by their schema      shape.c     built-in kinds and metadata, as Go writes them
 *   collect.c    garbage collection, namespaces, Events that are old, compaction */
#ifndef PL_APISERVER_INTERNAL_H
#define PL_APISERVER_INTERNAL_H

#include "apiserver/apiserver.h"
#include "apiserver/kinds.h"
#include "apiserver/managed.h"
#include "apiserver/store.h"
#include "apiserver/table.h"
#include "apiserver/tree.h"
#include "base/bytequeue.h"

struct pl_cluster {
    struct pl_str name; /* on the heap, with the struct */
    int64_t id;
    struct pl_api_watch *watches;
};

/* Where the collector is. It passes over its queue, an object at a time, and a step may end anywhere. */
struct pl_collector {
    bool passing;              /* a pass has begun */
    bool failed;               /* something in it did */
    int64_t place;             /* of the queue: up to here it was passed */
    struct pl_store_key after; /* of the piece of work behind it: the last object looked at */
    struct pl_arena names;     /* what `after` points at */
    bool wrote, waits, stuck;  /* of that piece of work, so far: see struct piece in collect.c */
    int64_t retry_at_ms;       /* nothing before that: the database failed */
    size_t expiry_cluster;     /* where Events are looked through, and behind which version */
    uint64_t expiry_after;
};

struct pl_apiserver {
    struct pl_store *store;
    struct pl_apiserver_options options; /* defaults filled in */
    int64_t *kind_ids;                   /* by the place in pl__kinds */
    struct pl_tree **schemas;            /* likewise; NULL: not needed yet (validate.c) */
    struct pl_arena schema_arena;
    struct pl_cluster **clusters; /* by name */
    size_t cluster_count;
    size_t cluster_capacity;
    size_t watch_count;
    uint64_t random;
    struct pl_arena scratch; /* of one step or one read of a watch */
    int64_t next_expiry_ms;  /* when Events are looked through */
    int64_t next_watch_ms; /* when the first watch has to be woken: a bookmark, its end, a pause */
    bool work;             /* the collector has something to do: a pass over its queue */
    bool compacting;
    struct pl_collector collector;
};

/* --- one request --------------------------------------------------------------------------------- */

enum { VALUES_MAX = 64, REQUIREMENTS_MAX = 32 };

enum selector_operator {
    SELECT_EXISTS,
    SELECT_MISSING,
    SELECT_IN,     /* also = */
    SELECT_NOT_IN, /* also != ; matches when the key is not there */
};

struct requirement {
    struct pl_str key;
    enum selector_operator operator_;
    const struct pl_str *values;
    size_t value_count;
};

struct selector {
    struct requirement *items;
    size_t count;
};

struct params {
    bool watch;
    bool bookmarks;
    bool force;
    bool dry_run;
    bool orphan;
    bool has_initial_events; /* sendInitialEvents was said */
    bool initial_events;
    bool has_timeout;
    uint64_t timeout_s;
    uint64_t limit;
    struct pl_str continue_;
    struct pl_str version;
    struct pl_str version_match;
    struct pl_str field_manager;
    struct pl_str field_validation;
    struct pl_str propagation;
    struct pl_str precondition_uid;
    struct pl_str include_object;
    struct pl_str label_selector;
    struct pl_str field_selector;
    struct selector labels;
    struct selector fields;
};

struct call {
    struct pl_apiserver *s;
    const struct pl_api_request *request;
    struct pl_api_answer *answer;
    struct pl_arena *arena;
    int64_t now_ms;
    struct pl_cluster *cluster;
    const struct pl_kind *shown; /* as it was asked for, and is answered */
    const struct pl_kind *kind;  /* as it is stored; another face of the same */
    struct pl_str ns;
    struct pl_str name;
    struct pl_str subresource;
    bool applies; /* server-side apply: read by the schema, so that faults of types are its own */
    enum pl_form form;
    struct params params;
};

/* The number under which the store has the kind's objects. */
int64_t pl__kind_id(const struct pl_apiserver *s, const struct pl_kind *kind);
/* And the kind of a number; NULL: a file of another release has a kind that we do not know. */
const struct pl_kind *pl__kind_of_id(const struct pl_apiserver *s, int64_t id);
struct pl_store_key pl__call_key(const struct call *c);
uint64_t pl__api_random(struct pl_apiserver *s);
struct pl_cluster *pl__cluster_of_id(const struct pl_apiserver *s, int64_t id);
/* Forgets what is in the scratch memory; gives it back when it was uncommonly much. */
void pl__scratch_reset(struct pl_apiserver *s);

/* --- status.c: each fills the answer and returns -1 ------------------------------------------------ */

int pl__fail_status(struct call *c, int status, const char *reason, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
int pl__fail_not_found(struct call *c);
int pl__fail_exists(struct call *c, struct pl_str name, bool deleting);
int pl__fail_conflict(struct call *c, struct pl_str resource, struct pl_str why);
int pl__fail_modified(struct call *c);
int pl__fail_method(struct call *c);
int pl__fail_too_large_version(struct call *c, uint64_t wanted);
int pl__fail_store(struct call *c);
/* 409 of an apply. */
int pl__fail_conflicts(struct call *c, const struct pl_conflicts *conflicts);
/* 410 of a list; `continue_` may be empty. */
int pl__fail_expired(struct call *c, struct pl_str message, struct pl_str continue_);
/* 403, with a cause when `cause` is not NULL. */
int pl__fail_forbidden(struct call *c, struct pl_str name, struct pl_str why, const char *cause,
                       struct pl_str cause_message);

/* Faults of fields, gathered, then told in one 422. */
enum { FAULTS_MAX = 8 };
struct faults {
    struct {
        const char *reason; /* FieldValueInvalid ... */
        struct pl_str field;
        struct pl_str text; /* Invalid value: "x": ... */
    } items[FAULTS_MAX];
    size_t count;
};
void pl__fault(struct call *c, struct faults *f, const char *reason, struct pl_str field,
               const char *format, ...) __attribute__((format(printf, 5, 6)));
/* 0 when there are none. */
int pl__fail_invalid(struct call *c, struct pl_str name, const struct faults *f);
/* The same of what the query says: `options` is "ListOptions" and the like. */
int pl__fail_options(struct call *c, const char *options, const struct faults *f);
/* Of the request as a whole: a Status with empty details. */
int pl__fail_request(struct call *c, int status, const char *reason, struct pl_str message);

/* A Status as a tree; for watches and the answers of DELETE. */
struct pl_tree *pl__status_failure(struct pl_arena *a, int status, const char *reason,
                                   struct pl_str message);
struct pl_tree *pl__status_success(struct call *c, struct pl_str name, struct pl_str uid);

/* --- the rest, by file --------------------------------------------------------------------------- */

/* params.c */
int pl__params_read(struct call *c);
/* Percent-decoded, in the arena; with `plus` a '+' is a space. False when it is broken. */
bool pl__percent_decode(struct pl_arena *a, struct pl_str text, bool plus, struct pl_str *decoded);

/* selector.c: `message` says what is wrong. */
int pl__selector_read_labels(struct pl_arena *a, struct pl_str text, struct selector *s,
                             struct pl_str *message);
int pl__selector_read_fields(struct pl_arena *a, struct pl_str text, struct selector *s,
                             struct pl_str *message);
bool pl__selector_matches(const struct selector *labels, const struct selector *fields,
                          const struct pl_tree *object);
/* A copy that lives in another arena. */
struct selector pl__selector_copy(struct pl_arena *a, const struct selector *s);

/* meta.c */
/* What was sent (or patched) becomes an object of the kind: types of metadata, unknown fields, form (shape.h),
 * defaults. */
int pl__meta_decode(struct call *c, struct pl_tree *object);
int pl__meta_prepare_create(struct call *c, struct pl_tree *object);
/* Makes `object` what may be stored in place of `old`: what clients cannot change is put back. */
int pl__meta_prepare_update(struct call *c, const struct pl_tree *old, struct pl_tree *object);
int pl__meta_validate(struct call *c, const struct pl_tree *old, const struct pl_tree *object);
/* apiVersion and kind first, then metadata, then the rest. */
void pl__meta_order(struct call *c, struct pl_tree *object);
struct pl_str pl__meta_time(struct pl_arena *a, int64_t ms);
bool pl__has_finalizer(const struct pl_tree *object, const char *name);
bool pl__meta_ends(const struct pl_kind *kind, const struct pl_tree *object);
/* Between the two faces of Events, in place. */
void pl__meta_to_stored(struct pl_arena *a, const struct pl_kind *kind, struct pl_tree *object);
void pl__meta_from_stored(struct pl_arena *a, const struct pl_kind *kind, struct pl_tree *object);

/* read.c */
int pl__read_get(struct call *c);
int pl__read_list(struct call *c);
/* What the query's resourceVersion says: 0 for none (or "0"), -1 with an answer when it is no number. */
int pl__read_version(struct call *c, uint64_t *version);
/* The object of a row, as the kind that was asked for shows it. */
struct pl_tree *pl__read_row(struct pl_arena *a, const struct pl_kind *kind,
                             const struct pl_store_row *row);
/* Puts a tree into the answer, in the form that was asked for. */
void pl__answer_object(struct call *c, int status, struct pl_tree *object);

/* write.c */
int pl__write_create(struct call *c);
int pl__write_update(struct call *c);
int pl__write_patch(struct call *c);
int pl__write_delete(struct call *c);
int pl__write_delete_collection(struct call *c);
/* Stores `object` as the next revision behind `old` (NULL: none), or removes it when it is at its end. */
int pl__write_store(struct call *c, const struct pl_store_row *old, struct pl_tree *object);
int pl__write_remove(struct call *c, const struct pl_store_row *old, struct pl_tree *object);
/* Starts or finishes the deletion of what is at the call's key; for the collector. */
int pl__write_delete_background(struct call *c, const struct pl_store_row *row);

/* watch.c */
int pl__watch_open(struct call *c);
/* A revision was stored. */
void pl__watch_notify(struct pl_apiserver *s, int64_t cluster, int64_t kind, uint64_t version);
void pl__watch_end_all(struct pl_cluster *cluster);
/* Wakes those that have a bookmark or their end due, or let others go first. */
void pl__watch_step(struct pl_apiserver *s, int64_t now_ms);

/* collect.c */
void pl__collect_step(struct pl_apiserver *s, int64_t now_ms);
int64_t pl__collect_wake_at_ms(const struct pl_apiserver *s);
/* Part of its queue is gone: it starts over. */
void pl__collect_restart(struct pl_apiserver *s);

#endif
