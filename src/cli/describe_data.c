#include <ctype.h>

#include "base/time.h"
#include "cli/data.h"
#include "cli/describe.h"
#include "cli/text.h"

static void write_count(struct pl_data *data, const char *key, int32_t count)
{
    if (count)
        pl__data_int(data, key, count - 1);
}

static void write_replicas(struct pl_data *data, const struct pl_describe_node *node)
{
    const struct pl_replicas *r = &node->replicas;

    if (node->is_machine || (!r->desired && !r->current))
        return;
    pl__data_object(data, "replicas");
    write_count(data, "desired", r->desired);
    write_count(data, "current", r->current);
    write_count(data, "ready", r->ready);
    write_count(data, "available", r->available);
    write_count(data, "upToDate", r->up_to_date);
    pl__data_end_object(data);
}

static void write_state(struct pl_data *data, const struct pl_describe_node *node)
{
    if (node->type.len)
        pl__data_str(data, "type", node->type);
    pl__data_str(data, "status", node->status);
    pl__data_str(data, "reason", node->reason);
    pl__data_str(data, "message", node->message);
    if (node->since_ms) {
        pl__json_write_key(&data->json, "since");
        pl__json_write_time(&data->json, node->since_ms);
    }
}

/* Conditions and other children of a node, each under a key of its own. */
static void write_children(struct pl_data *data, const struct pl_describe_node *node,
                           const char *key, bool conditions);

static void write_node(struct pl_data *data, const struct pl_describe_node *node)
{
    pl__data_object(data, NULL);
    if (node->is_condition) {
        pl__data_str(data, "type", node->name);
        write_state(data, node);
        pl__data_end_object(data);
        return;
    }
    if (node->kind) {
        pl__data_text(data, "kind", node->kind);
        pl__data_str(data, "namespace", node->namespace_);
    }
    pl__data_str(data, "name", node->name);
    if (node->role)
        pl__data_text(data, "role", node->role);
    if (node->deleted)
        pl__data_bool(data, "deleted", true);
    write_replicas(data, node);
    if (node->status.len) {
        pl__data_object(data, "state");
        write_state(data, node);
        pl__data_end_object(data);
    }
    write_children(data, node, "conditions", true);
    write_children(data, node, "children", false);
    pl__data_end_object(data);
}

static void write_children(struct pl_data *data, const struct pl_describe_node *node,
                           const char *key, bool conditions)
{
    bool any = false;

    for (const struct pl_describe_node *child = node->child; child; child = child->next)
        any |= child->is_condition == conditions;
    if (!any)
        return;
    pl__data_array(data, key);
    for (const struct pl_describe_node *child = node->child; child; child = child->next) {
        if (child->is_condition == conditions)
            write_node(data, child);
    }
    pl__data_end_array(data);
}

void pl__describe_data(struct pl_describe *d)
{
    struct pl_data data;

    pl__data_open(&data, d->cli, d->first);
    pl__data_text(&data, "profile", pl_profile_name(d->report->profile));
    pl__data_str(&data, "name", d->report->name);
    pl__json_write_key(&data.json, "now");
    pl__json_write_time(&data.json, d->report->now_ms);
    pl__data_array(&data, "clusters");
    for (const struct pl_describe_node *root = d->clusters; root; root = root->next)
        write_node(&data, root);
    pl__data_end_array(&data);
    pl__data_missing(&data, d->report);
    pl__data_close(&data);
}

static void add_names(struct pl_buf *out, const struct pl_describe_node *node)
{
    for (const char *at = node->kind; at && *at; at++)
        pl__buf_add_char(out, (char)tolower((unsigned char)*at));
    if (node->kind) {
        pl__buf_add_char(out, '/');
        pl__text_add(out, node->namespace_);
        pl__buf_add_char(out, '/');
        pl__text_add(out, node->name);
        pl__buf_add_char(out, '\n');
    }
    for (const struct pl_describe_node *child = node->child; child; child = child->next)
        add_names(out, child);
}

void pl__describe_names(struct pl_describe *d)
{
    for (const struct pl_describe_node *root = d->clusters; root; root = root->next)
        add_names(&d->cli->out.buf, root);
}
