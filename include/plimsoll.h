/* plimsoll.h - judge the health of Cluster API control planes.
 *
 * The engine turns a snapshot of the world (Machines, Nodes, static Pods, etcd members and alarms,
 * the state of the connection) into conditions, and says for each of them which row of which
 * transition table decided and on what evidence. It opens nothing, reads no clock and gives the
 * same answer for the same input.
 *
 *     struct pl_context *ctx = pl_context_new(&(struct pl_options){ .explain = true });
 *     const struct pl_report *report;
 *     int got;
 *
 *     pl_context_add(ctx, "dump.yaml", bytes, size);
 *     while ((got = pl_context_next(ctx, &report)) > 0)
 *         puts(pl_report_json(ctx, report).ptr);
 *     if (got < 0)
 *         fprintf(stderr, "%s\n", pl_context_error(ctx));
 *     pl_context_free(ctx);
 *
 * A context belongs to one thread at a time; different contexts share nothing, so several threads
 * may each use their own. Everything a context hands out lives until the call named with it. The
 * library never prints, exits, or installs signal handlers; when memory runs out it aborts.
 *
 * The ABI: a struct passed in may be zeroed for defaults and is given by designated initialisers;
 * fields are only ever added at its end within one major version. */
#ifndef PLIMSOLL_H
#define PLIMSOLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PL_API __attribute__((visibility("default")))

/* The version of the library, "0.1.0". */
PL_API const char *pl_version(void);

/* Bytes owned by someone else. What this library hands out has a NUL behind the last byte, which
 * `len` does not count, so `ptr` can be printed where no NUL is expected inside. */
struct pl_str {
    const char *ptr;
    size_t len;
};

/* What kind of failure it was; the text is for people, this is for programs. */
enum pl_code {
    PL_OK = 0,
    PL_USAGE,     /* the call or the command line is wrong */
    PL_INVALID,   /* the input is not what it should be */
    PL_LIMIT,     /* the input is larger or deeper than allowed */
    PL_NOT_FOUND, /* the named thing is not in the input */
    PL_IO,        /* a file could not be read or written */
};

/* Whose strings and deletion order: the documents' own, or byte for byte Cluster API v1.12. */
enum pl_profile {
    PL_PROFILE_TABLES = 0,
    PL_PROFILE_CLUSTER_API_1_12,
};
#define PL_PROFILE_COUNT 2

/* "tables" or "cluster-api-1.12". */
PL_API const char *pl_profile_name(enum pl_profile profile);

/* The profile of that name. 0, or -1 when there is none. */
PL_API int pl_profile_from_name(const char *name, enum pl_profile *profile);

enum pl_status {
    PL_STATUS_NONE = 0, /* the condition is not there */
    PL_STATUS_TRUE,
    PL_STATUS_FALSE,
    PL_STATUS_UNKNOWN,
};

/* "True", "False", "Unknown", or "" for none. */
PL_API const char *pl_status_name(enum pl_status status);

/* Memory from somewhere else than malloc. `alloc` returns memory aligned to 16 bytes; `free` gets
 * the size that was asked for. Both must stay valid as long as the context does. */
struct pl_allocator {
    void *user;
    void *(*alloc)(void *user, size_t size);
    void (*free)(void *user, void *ptr, size_t size);
};

struct pl_options {
    enum pl_profile profile;
    bool explain;       /* collect evidence, too */
    int64_t now_ms;     /* the instant of evaluation, in place of the input's; 0: the input's */
    int64_t clock_ms;   /* the instant for input that names none; 0: such input is an error */
    uint32_t depth_max; /* nesting of the input; 0: 64 */
    size_t bytes_max;   /* of one source; 0: 1 GiB */
    size_t objects_max; /* in one snapshot; 0: 1,000,000 */
    const struct pl_allocator *allocator; /* NULL: malloc and free */
};

/* One observed fact. */
struct pl_evidence {
    struct pl_str object;   /* "Machine/default/cp-0", "etcd/default/alpha" */
    struct pl_str path;     /* "status.nodeRef.name" */
    struct pl_str value;    /* what stood there; empty when it was absent */
    struct pl_str observed; /* how and when: "list at 2026-11-15T02:00:00Z" */
};

/* One condition as judged. */
struct pl_verdict {
    const char *type;
    enum pl_status status;
    const char *row;   /* the row that decided: "EtcdClusterHealthy/5" */
    const char *guard; /* its guard in words; rows may share an id, these tell which */
    struct pl_str reason;
    struct pl_str message;
    bool kept;     /* left as it was stored; `row` says by which rule */
    bool negative; /* negative polarity: True is what calls for attention */
    bool has_observed_generation;
    int64_t observed_generation;
    int64_t last_transition_ms;   /* 0: not known (a kept condition stored without one) */
    const char *const *also_held; /* other rows whose guard held, in table order */
    size_t also_held_count;
    const struct pl_evidence *evidence; /* with options.explain */
    size_t evidence_count;

    /* The same condition as it is stored in the object, for comparing. Status none: not there. */
    enum pl_status stored_status;
    struct pl_str stored_reason;
    struct pl_str stored_message;
    int64_t stored_transition_ms;
};

/* A KubeadmControlPlane, one of its Machines, or a MachineDeployment. */
struct pl_object {
    const char *kind;
    struct pl_str namespace_;
    struct pl_str name;
    struct pl_str owner;               /* of a Machine: the name of its KubeadmControlPlane */
    bool paused;                       /* computed all the same, never written live */
    bool requeue_with_error;           /* the table asks to try again, as after an error */
    const struct pl_verdict *verdicts; /* sorted by type */
    size_t verdict_count;
};

struct pl_owner_remediated {
    struct pl_str machine;
    enum pl_status status;
    struct pl_str reason;
    struct pl_str message;
};

/* What the next remediation step of a KubeadmControlPlane would do. */
struct pl_remediation {
    struct pl_str namespace_;
    struct pl_str name;
    const char *row;       /* the rule that stopped it or let it go: "Remediation/8" */
    const char *guard;     /* that rule in words */
    struct pl_str machine; /* the Machine it is about; empty: none */
    struct pl_str deleted; /* the Machine it deletes; empty: none */
    struct pl_str leadership_forwarded_to;
    bool requeue;
    bool in_progress; /* a record is written, or resumed, by this step */
    struct pl_str in_progress_machine;
    int64_t in_progress_retry_count;
    bool stale_annotation_dropped;
    const struct pl_owner_remediated *owner_remediated; /* sorted by Machine */
    size_t owner_remediated_count;
    bool quorum_known; /* the arithmetic of the quorum check, where it was reached */
    uint32_t voters_after;
    uint32_t healthy_after;
    uint32_t quorum_after;
};

/* What the MachineSets of a MachineDeployment would do about one Machine that is marked for remediation. */
struct pl_machine_set_step {
    struct pl_str namespace_;
    struct pl_str machine_deployment;
    struct pl_str machine_set;
    struct pl_str machine;
    const char *row;   /* "MachineSetRemediation/4" */
    const char *guard; /* that rule in words */
    enum pl_status
        status; /* of its OwnerRemediated afterwards; none: it is removed, or left alone */
    struct pl_str reason;
    struct pl_str message;
    bool recovered;           /* the mark is removed: it is healthy again */
    bool deleted;             /* it is deleted */
    int64_t requeue_after_ms; /* 0: none asked for */
};

/* What the next deletion step of a KubeadmControlPlane would do. */
struct pl_deletion {
    struct pl_str namespace_;
    struct pl_str name;
    const char *phase;            /* the reason of its Deleting condition */
    const struct pl_str *deleted; /* Machines, sorted */
    size_t deleted_count;
    struct pl_str member_removed;
    int64_t requeue_after_ms; /* 0: none asked for */
    bool gave_up_on_member; /* the member could not be removed for so long that we go on without */
};

/* A condition that could not be judged for want of evidence. */
struct pl_missing {
    struct pl_str object;    /* "KubeadmControlPlane/default/cp" */
    struct pl_str condition; /* "EtcdClusterHealthy"; "remediation" for that step */
    struct pl_str evidence;  /* "workloads[default/alpha].etcd" */
};

/* All that one snapshot gives. Lists are sorted, so equal worlds give equal bytes. */
struct pl_report {
    struct pl_str source; /* where it came from: the name given with the input */
    struct pl_str name;   /* the snapshot's own name, often empty */
    enum pl_profile profile;
    int64_t now_ms;
    bool requeue_with_error;
    const struct pl_object *objects;
    size_t object_count;
    const struct pl_remediation *remediation;
    size_t remediation_count;
    const struct pl_deletion *deletion;
    size_t deletion_count;
    const struct pl_machine_set_step
        *machine_sets;        /* by MachineDeployment and MachineSet, in the order */
    size_t machine_set_count; /* in which they are remediated; not in the JSON */
    const struct pl_missing *missing;
    size_t missing_count;
    bool has_findings; /* something calls for attention: exit code 1 */
};

struct pl_context;

/* A new context; `options` may be NULL. */
PL_API struct pl_context *pl_context_new(const struct pl_options *options);
PL_API void pl_context_free(struct pl_context *ctx);

/* Adds input: a Snapshot, a List, manifests, YAML or JSON, one or many documents. `name` is for
 * error messages and is copied; the bytes are borrowed until pl_context_next() returns 0 or -1, or
 * the context is cleared. 0, or -1 with pl_context_error(). */
PL_API int pl_context_add(struct pl_context *ctx, const char *name, const void *bytes, size_t size);

/* Judges the next snapshot: 1 with `*report`, 0 when there is no more, -1 on error. Snapshots come
 * in the order of the input; objects that stand outside any Snapshot are gathered over all of it
 * and judged last, as one. The report lives until the next call on this context. */
PL_API int pl_context_next(struct pl_context *ctx, const struct pl_report **report);

/* Forgets input, results and errors; keeps memory for the next use. */
PL_API void pl_context_clear(struct pl_context *ctx);

/* The last failure, for people ("dump.yaml:12:7: ...") and for programs. Lives until the context is
 * cleared or fails again. */
PL_API const char *pl_context_error(const struct pl_context *ctx);
PL_API enum pl_code pl_context_error_code(const struct pl_context *ctx);

/* The report as one line of JSON, without a newline. Lives as long as the report. */
PL_API struct pl_str pl_report_json(struct pl_context *ctx, const struct pl_report *report);

/* What removing one control plane Machine would mean, by the numbers and by the rules. */
struct pl_quorum {
    uint32_t members;  /* all that etcd lists */
    uint32_t voters;   /* without learners */
    uint32_t healthy;  /* voters whose Machine says EtcdMemberHealthy True */
    uint32_t quorum;   /* voters needed: floor(voters / 2) + 1 */
    int32_t tolerance; /* further losses that leave a quorum; negative: it is lost */
};

struct pl_what_if_rule {
    enum pl_profile profile;
    bool allowed;
    const char *row;      /* "Remediation/8" */
    const char *guard;    /* that rule in words */
    struct pl_str reason; /* "CannotBeRemediated"; empty when allowed */
    struct pl_str message;
};

struct pl_what_if {
    struct pl_str machine;
    struct pl_str namespace_;
    struct pl_str control_plane;
    bool etcd_managed;
    struct pl_str etcd_unknown; /* why there is no arithmetic; empty: there is */
    struct pl_str member;       /* its etcd member; empty: none of that name */
    bool member_is_leader;
    struct pl_quorum before;
    struct pl_quorum after;
    bool keeps_quorum;
    struct pl_what_if_rule rules[PL_PROFILE_COUNT]; /* would remediation of it go ahead */
    struct pl_str leadership_to; /* who would lead instead; empty: nobody, or not needed */
};

/* Asks it of the snapshot that pl_context_next() judged last. `machine` is a name, or
 * namespace/name. 0, or -1 when there is no such control plane Machine (or several). The answer
 * lives as long as the report. */
PL_API int pl_what_if_remove(struct pl_context *ctx, const char *machine,
                             const struct pl_what_if **answer);

/* How far a line of a checklist is. */
enum pl_line_state {
    PL_LINE_DONE,    /* it is so */
    PL_LINE_NOW,     /* the next step */
    PL_LINE_WAITING, /* under way elsewhere */
    PL_LINE_NEXT,    /* its turn comes */
};

struct pl_checklist_line {
    enum pl_line_state state;
    struct pl_str text;
    int64_t since_ms; /* done, or waiting, since; 0: not known */
};

/* Something that is not done, and why. */
struct pl_note {
    struct pl_str machine; /* the Machine it is about; empty: the control plane */
    const char *reason;    /* "CannotBeRemediated" */
    struct pl_str text;    /* "not remediating Machine m2: removing it would leave ..." */
};

/* What `plimsoll run --mode manage` does next for a KubeadmControlPlane: one call to the API or to etcd,
 * or a wait. */
struct pl_next_step {
    struct pl_str namespace_;
    struct pl_str name;
    bool paused;             /* nothing is done meanwhile */
    struct pl_str step;      /* "remove etcd member n1 of Machine m1"; empty: none now */
    struct pl_str waits_for; /* why there is none, or what it is held up by; empty: nothing */
    int64_t
        retry_after_ms; /* when it is looked at again though nothing changed; 0: not asked for */
    struct pl_str
        procedure; /* of the checklist: "remediation of Machine m1", "deletion"; empty: none */
    const struct pl_checklist_line *lines;
    size_t line_count;
    const struct pl_note *notes;
    size_t note_count;
};

/* Asks it of the snapshot that pl_context_next() judged last. `control_plane` is namespace/name. 0, or -1
 * when there is no such KubeadmControlPlane. The answer lives as long as the report. */
PL_API int pl_plan(struct pl_context *ctx, const char *control_plane,
                   const struct pl_next_step **answer);

/* The tables that the engine executes, row by row. */
struct pl_row_outcome {
    const char *status; /* "True", "False", "Unknown"; empty: not set by this row */
    const char *reason;
    const char *message; /* with <placeholders> */
};

struct pl_row {
    const char *id;
    const char *guard; /* in words */
    const char *next;  /* "none", "requeue (error)", ... */
    const char *mode;  /* "overwrite", "keep if set", "leave" */
    struct pl_row_outcome outcome[PL_PROFILE_COUNT];
};

struct pl_table_info {
    const char *name;    /* "EtcdClusterHealthy" */
    const char *kind;    /* the object it is set on; empty for a step */
    const char *summary; /* one sentence */
    size_t row_count;
};

PL_API size_t pl_table_count(void);
PL_API struct pl_table_info pl_table_info(size_t table_index);
PL_API struct pl_row pl_table_row(size_t table_index, size_t row_index);

#ifdef __cplusplus
}
#endif

#endif
