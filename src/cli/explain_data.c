/* explain for programs: the same tree as nested objects. */
#include "cli/explain.h"

#include "cli/data.h"
#include "cli/report.h"
#include "cli/words.h"

/* The condition without the closing brace: a KubeadmControlPlane's goes on with its Machines. */
static void write_verdict(struct pl_data *data, const struct pl_verdict *verdict)
{
    pl__data_object(data, NULL);
    pl__data_text(data, "type", verdict->type);
    pl__data_text(data, "status", pl_status_name(verdict->status));
    pl__data_str(data, "reason", verdict->reason);
    pl__data_str(data, "message", verdict->message);
    if (verdict->last_transition_ms) {
        pl__json_write_key(&data->json, "lastTransitionTime");
        pl__json_write_time(&data->json, verdict->last_transition_ms);
    }
    if (verdict->kept)
        pl__data_bool(data, "kept", true);
    pl__data_text(data, "row", verdict->row);
    pl__data_text(data, "guard", verdict->guard ? verdict->guard : "");
    pl__data_array(data, "alsoHeld");
    for (size_t i = 0; i < verdict->also_held_count; i++) {
        pl__data_object(data, NULL);
        pl__data_text(data, "row", verdict->also_held[i]);
        pl__data_str(data, "guard", pl__row_guard(verdict->also_held[i]));
        pl__data_end_object(data);
    }
    pl__data_end_array(data);
    pl__data_evidence(data, verdict);
}

static bool machine_contributes(const struct pl_object *object, const struct pl_verdict *verdict,
                                const struct pl_object *machine)
{
    for (size_t i = 0; i < machine->verdict_count; i++)
        if (pl__explain_contributes(object, verdict, machine, &machine->verdicts[i]))
            return true;
    return false;
}

static void write_machine(struct pl_data *data, const struct pl_object *object,
                          const struct pl_verdict *verdict, const struct pl_object *machine)
{
    if (!machine_contributes(object, verdict, machine))
        return;
    pl__data_object(data, NULL);
    pl__data_str(data, "name", machine->name);
    pl__data_array(data, "conditions");
    for (size_t i = 0; i < machine->verdict_count; i++) {
        if (!pl__explain_contributes(object, verdict, machine, &machine->verdicts[i]))
            continue;
        write_verdict(data, &machine->verdicts[i]);
        pl__data_end_object(data);
    }
    pl__data_end_array(data);
    pl__data_end_object(data);
}

static void write_steps(struct pl_explain *x, struct pl_data *data, const struct pl_object *object)
{
    const struct pl_remediation *remediation = pl__explain_remediation(x, object);
    const struct pl_deletion *deletion = pl__explain_deletion(x, object);

    if (remediation)
        pl__data_str(data, "remediation", pl__remediation_words(x->scratch, remediation));
    if (deletion)
        pl__data_str(data, "deletion", pl__deletion_words(x->scratch, deletion));
    pl__explain_plan_data(x, data, object);
}

static void write_object(struct pl_explain *x, struct pl_data *data, const struct pl_object *object)
{
    pl__data_object(data, NULL);
    pl__data_text(data, "kind", object->kind);
    pl__data_str(data, "namespace", object->namespace_);
    pl__data_str(data, "name", object->name);
    pl__data_array(data, "conditions");
    for (size_t i = 0; i < object->verdict_count; i++) {
        if (!pl__explain_wants_verdict(x, &object->verdicts[i]))
            continue;
        write_verdict(data, &object->verdicts[i]);
        pl__data_array(data, "machines");
        for (size_t k = 0; k < x->report->object_count; k++)
            write_machine(data, object, &object->verdicts[i], &x->report->objects[k]);
        pl__data_end_array(data);
        pl__data_end_object(data);
    }
    pl__data_end_array(data);
    write_steps(x, data, object);
    pl__data_end_object(data);
}

void pl__explain_data(struct pl_explain *x)
{
    struct pl_data data;

    pl__data_open(&data, x->cli, x->first);
    pl__data_text(&data, "profile", pl_profile_name(x->report->profile));
    pl__data_str(&data, "name", x->report->name);
    pl__data_array(&data, "objects");
    for (size_t i = 0; i < x->report->object_count; i++)
        if (pl__explain_wants_object(x, &x->report->objects[i]))
            write_object(x, &data, &x->report->objects[i]);
    pl__data_end_array(&data);
    pl__data_missing(&data, x->report);
    pl__data_close(&data);
}
