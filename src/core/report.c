/* core/report.c - a report as a document (snapshot.md says which). Keys come in a fixed order. */
#include "core/evaluate.h"

static void key_str(struct pl_json_writer *w, const char *key, struct pl_str value)
{
    pl__json_write_key(w, key);
    pl__json_write_str(w, value);
}

static void key_bool(struct pl_json_writer *w, const char *key, bool value)
{
    pl__json_write_key(w, key);
    pl__json_write_bool(w, value);
}

static void evidence_write(struct pl_json_writer *w, const struct pl_verdict *v)
{
    pl__json_write_key(w, "evidence");
    pl__json_open_array(w);
    for (size_t i = 0; i < v->evidence_count; i++) {
        pl__json_open_object(w);
        key_str(w, "object", v->evidence[i].object);
        key_str(w, "path", v->evidence[i].path);
        key_str(w, "value", v->evidence[i].value);
        key_str(w, "observed", v->evidence[i].observed);
        pl__json_close_object(w);
    }
    pl__json_close_array(w);
}

static void verdict_write(struct pl_json_writer *w, const struct pl_verdict *v)
{
    pl__json_open_object(w);
    key_str(w, "type", pl__str(v->type));
    key_str(w, "status", pl__str(pl_status_name(v->status)));
    key_str(w, "reason", v->reason);
    key_str(w, "message", v->message);
    if (v->has_observed_generation) {
        pl__json_write_key(w, "observedGeneration");
        pl__json_write_int(w, v->observed_generation);
    }
    if (v->last_transition_ms) {
        pl__json_write_key(w, "lastTransitionTime");
        pl__json_write_time(w, v->last_transition_ms);
    }
    key_str(w, "row", pl__str(v->row));
    pl__json_write_key(w, "alsoHeld");
    pl__json_open_array(w);
    for (size_t i = 0; i < v->also_held_count; i++)
        pl__json_write_str(w, pl__str(v->also_held[i]));
    pl__json_close_array(w);
    if (v->kept)
        key_bool(w, "kept", true);
    if (v->evidence_count)
        evidence_write(w, v);
    pl__json_close_object(w);
}

static void object_write(struct pl_json_writer *w, const struct pl_object *o)
{
    pl__json_open_object(w);
    key_str(w, "kind", pl__str(o->kind));
    key_str(w, "namespace", o->namespace_);
    key_str(w, "name", o->name);
    if (o->paused)
        key_bool(w, "paused", true);
    key_bool(w, "requeueWithError", o->requeue_with_error);
    pl__json_write_key(w, "conditions");
    pl__json_open_array(w);
    for (size_t i = 0; i < o->verdict_count; i++)
        verdict_write(w, &o->verdicts[i]);
    pl__json_close_array(w);
    pl__json_close_object(w);
}

/* "namespace/name", without needing memory of its own: the writer copies at once. */
static void key_ref(struct pl_json_writer *w, const char *key, struct pl_str namespace_,
                    struct pl_str name)
{
    char room[512];
    struct pl_str ref = { room, namespace_.len + 1 + name.len };

    if (ref.len > sizeof room) {
        key_str(w, key, name);
        return;
    }
    if (namespace_.len)
        memcpy(room, namespace_.ptr, namespace_.len);
    room[namespace_.len] = '/';
    if (name.len)
        memcpy(room + namespace_.len + 1, name.ptr, name.len);
    key_str(w, key, ref);
}

static void owner_remediated_write(struct pl_json_writer *w, const struct pl_remediation *r)
{
    pl__json_write_key(w, "ownerRemediated");
    pl__json_open_object(w);
    for (size_t i = 0; i < r->owner_remediated_count; i++) {
        const struct pl_owner_remediated *o = &r->owner_remediated[i];
        pl__json_write_key(w, o->machine.ptr);
        pl__json_open_object(w);
        key_str(w, "status", pl__str(pl_status_name(o->status)));
        key_str(w, "reason", o->reason);
        key_str(w, "message", o->message);
        pl__json_close_object(w);
    }
    pl__json_close_object(w);
}

static void remediation_write(struct pl_json_writer *w, const struct pl_remediation *r)
{
    pl__json_open_object(w);
    key_ref(w, "kubeadmControlPlane", r->namespace_, r->name);
    key_str(w, "row", pl__str(r->row));
    key_str(w, "machine", r->machine);
    pl__json_write_key(w, "deleted");
    pl__json_open_array(w);
    if (r->deleted.len)
        pl__json_write_str(w, r->deleted);
    pl__json_close_array(w);
    key_str(w, "leadershipForwardedTo", r->leadership_forwarded_to);
    key_bool(w, "requeue", r->requeue);
    pl__json_write_key(w, "inProgress");
    if (r->in_progress) {
        pl__json_open_object(w);
        key_str(w, "machine", r->in_progress_machine);
        pl__json_write_key(w, "retryCount");
        pl__json_write_int(w, r->in_progress_retry_count);
        pl__json_close_object(w);
    } else {
        pl__json_write_null(w);
    }
    owner_remediated_write(w, r);
    key_bool(w, "staleAnnotationDropped", r->stale_annotation_dropped);
    if (r->quorum_known) {
        pl__json_write_key(w, "quorum");
        pl__json_open_object(w);
        pl__json_write_key(w, "membersLeft");
        pl__json_write_int(w, r->voters_after);
        pl__json_write_key(w, "healthyLeft");
        pl__json_write_int(w, r->healthy_after);
        pl__json_write_key(w, "needed");
        pl__json_write_int(w, r->quorum_after);
        pl__json_close_object(w);
    }
    pl__json_close_object(w);
}

static void deletion_write(struct pl_json_writer *w, const struct pl_deletion *d)
{
    pl__json_open_object(w);
    key_ref(w, "kubeadmControlPlane", d->namespace_, d->name);
    key_str(w, "phase", pl__str(d->phase));
    pl__json_write_key(w, "deleted");
    pl__json_open_array(w);
    for (size_t i = 0; i < d->deleted_count; i++)
        pl__json_write_str(w, d->deleted[i]);
    pl__json_close_array(w);
    key_str(w, "memberRemoved", d->member_removed);
    pl__json_close_object(w);
}

void pl__report_write(struct pl_json_writer *w, const struct pl_report *r)
{
    pl__json_open_object(w);
    key_str(w, "profile", pl__str(pl_profile_name(r->profile)));
    if (r->name.len)
        key_str(w, "name", r->name);
    key_bool(w, "requeueWithError", r->requeue_with_error);
    pl__json_write_key(w, "objects");
    pl__json_open_array(w);
    for (size_t i = 0; i < r->object_count; i++)
        object_write(w, &r->objects[i]);
    pl__json_close_array(w);
    pl__json_write_key(w, "remediation");
    pl__json_open_array(w);
    for (size_t i = 0; i < r->remediation_count; i++)
        remediation_write(w, &r->remediation[i]);
    pl__json_close_array(w);
    pl__json_write_key(w, "deletion");
    pl__json_open_array(w);
    for (size_t i = 0; i < r->deletion_count; i++)
        deletion_write(w, &r->deletion[i]);
    pl__json_close_array(w);
    pl__json_write_key(w, "missing");
    pl__json_open_array(w);
    for (size_t i = 0; i < r->missing_count; i++) {
        pl__json_open_object(w);
        key_str(w, "object", r->missing[i].object);
        key_str(w, "condition", r->missing[i].condition);
        key_str(w, "evidence", r->missing[i].evidence);
        pl__json_close_object(w);
    }
    pl__json_close_array(w);
    pl__json_close_object(w);
}
