/* eval's report for programs: JSON lines, YAML documents, names. */
#include "cli/eval.h"

#include <ctype.h>

#include "cli/data.h"
#include "cli/report.h"
#include "cli/text.h"
#include "cli/transcode.h"

void pl__eval_json(struct pl_eval *eval)
{
    pl__buf_add(&eval->cli->out.buf, pl_report_json(eval->ctx, eval->report));
    pl__buf_add_char(&eval->cli->out.buf, '\n');
}

void pl__eval_yaml(struct pl_eval *eval)
{
    if (!eval->first)
        pl__buf_add_lit(&eval->cli->out.buf, "---\n");
    pl__json_to_yaml(&eval->cli->out.buf, eval->scratch, pl_report_json(eval->ctx, eval->report));
}

static void write_difference(struct pl_data *data, const struct pl_verdict *verdict)
{
    pl__data_object(data, NULL);
    pl__data_text(data, "type", verdict->type);
    pl__data_text(data, "status", pl_status_name(verdict->status));
    pl__data_str(data, "reason", verdict->reason);
    pl__data_str(data, "message", verdict->message);
    pl__data_text(data, "row", verdict->row);
    if (verdict->stored_status == PL_STATUS_NONE) {
        pl__json_write_key(&data->json, "stored");
        pl__json_write_null(&data->json);
    } else {
        pl__data_object(data, "stored");
        pl__data_text(data, "status", pl_status_name(verdict->stored_status));
        pl__data_str(data, "reason", verdict->stored_reason);
        pl__data_str(data, "message", verdict->stored_message);
        pl__data_end_object(data);
    }
    pl__data_end_object(data);
}

static bool object_differs(const struct pl_object *object)
{
    for (size_t i = 0; i < object->verdict_count; i++)
        if (pl__verdict_differs(&object->verdicts[i]))
            return true;
    return false;
}

static void write_object(struct pl_data *data, const struct pl_object *object)
{
    pl__data_object(data, NULL);
    pl__data_text(data, "kind", object->kind);
    pl__data_str(data, "namespace", object->namespace_);
    pl__data_str(data, "name", object->name);
    pl__data_array(data, "conditions");
    for (size_t i = 0; i < object->verdict_count; i++)
        if (pl__verdict_differs(&object->verdicts[i]))
            write_difference(data, &object->verdicts[i]);
    pl__data_end_array(data);
    pl__data_end_object(data);
}

/* A snapshot without a difference prints its line all the same: line N is snapshot N. */
void pl__eval_data_diff(struct pl_eval *eval)
{
    struct pl_data data;

    pl__data_open(&data, eval->cli, eval->first);
    pl__data_text(&data, "profile", pl_profile_name(eval->report->profile));
    pl__data_str(&data, "name", eval->report->name);
    pl__data_array(&data, "objects");
    for (size_t i = 0; i < eval->report->object_count; i++)
        if (object_differs(&eval->report->objects[i]))
            write_object(&data, &eval->report->objects[i]);
    pl__data_end_array(&data);
    pl__data_missing(&data, eval->report);
    pl__data_close(&data);
}

static void add_names(struct pl_eval *eval, bool only_differences)
{
    struct pl_buf *out = &eval->cli->out.buf;

    for (size_t i = 0; i < eval->report->object_count; i++) {
        const struct pl_object *object = &eval->report->objects[i];
        for (size_t k = 0; k < object->verdict_count; k++)
            if (!only_differences || pl__verdict_differs(&object->verdicts[k]))
                pl__verdict_add_name(out, object, &object->verdicts[k]);
    }
}

/* "machine/default/cp-0 EtcdMemberHealthy - Missing workloads[default/alpha].etcd" */
static void add_missing_names(struct pl_eval *eval)
{
    struct pl_buf *out = &eval->cli->out.buf;

    for (size_t i = 0; i < eval->report->missing_count; i++) {
        const struct pl_missing *missing = &eval->report->missing[i];
        const char *slash = memchr(missing->object.ptr, '/', missing->object.len);
        size_t kind_len = slash ? (size_t)(slash - missing->object.ptr) : 0;
        for (size_t k = 0; k < kind_len; k++)
            pl__buf_add_char(out, (char)tolower((unsigned char)missing->object.ptr[k]));
        pl__text_add(
            out, (struct pl_str){ missing->object.ptr + kind_len, missing->object.len - kind_len });
        pl__buf_add_char(out, ' ');
        pl__text_add(out, missing->condition);
        pl__buf_add_lit(out, " - Missing ");
        pl__text_add(out, missing->evidence);
        pl__buf_add_char(out, '\n');
    }
}

void pl__eval_name(struct pl_eval *eval)
{
    add_names(eval, false);
    add_missing_names(eval);
}

void pl__eval_name_diff(struct pl_eval *eval)
{
    add_names(eval, true);
    add_missing_names(eval);
}
