#include "cli/data.h"

void pl__data_open(struct pl_data *data, struct pl_cli *cli, bool first)
{
    bool yaml = pl__cli_output_is(cli, "yaml");

    data->out = &cli->out.buf;
    if (yaml && !first)
        pl__buf_add_lit(data->out, "---\n");
    pl__json_writer_init(&data->json, data->out, yaml ? JSON_AS_YAML : JSON_COMPACT);
    pl__json_open_object(&data->json);
}

void pl__data_close(struct pl_data *data)
{
    pl__json_close_object(&data->json);
    struct pl_str written = pl__buf_str(data->out);
    if (!pl__str_ends_with(written, PL_STR("\n")))
        pl__buf_add_char(data->out, '\n');
}

void pl__data_str(struct pl_data *data, const char *key, struct pl_str value)
{
    if (key)
        pl__json_write_key(&data->json, key);
    pl__json_write_str(&data->json, value);
}

void pl__data_text(struct pl_data *data, const char *key, const char *value)
{
    pl__data_str(data, key, pl__str(value));
}

void pl__data_int(struct pl_data *data, const char *key, int64_t value)
{
    pl__json_write_key(&data->json, key);
    pl__json_write_int(&data->json, value);
}

void pl__data_bool(struct pl_data *data, const char *key, bool value)
{
    pl__json_write_key(&data->json, key);
    pl__json_write_bool(&data->json, value);
}

void pl__data_array(struct pl_data *data, const char *key)
{
    pl__json_write_key(&data->json, key);
    pl__json_open_array(&data->json);
}

void pl__data_object(struct pl_data *data, const char *key)
{
    if (key)
        pl__json_write_key(&data->json, key);
    pl__json_open_object(&data->json);
}

void pl__data_end_array(struct pl_data *data)
{
    pl__json_close_array(&data->json);
}

void pl__data_end_object(struct pl_data *data)
{
    pl__json_close_object(&data->json);
}

void pl__data_evidence(struct pl_data *data, const struct pl_verdict *verdict)
{
    pl__data_array(data, "evidence");
    for (size_t i = 0; i < verdict->evidence_count; i++) {
        pl__data_object(data, NULL);
        pl__data_str(data, "object", verdict->evidence[i].object);
        pl__data_str(data, "path", verdict->evidence[i].path);
        pl__data_str(data, "value", verdict->evidence[i].value);
        pl__data_str(data, "observed", verdict->evidence[i].observed);
        pl__data_end_object(data);
    }
    pl__data_end_array(data);
}

void pl__data_missing(struct pl_data *data, const struct pl_report *report)
{
    pl__data_array(data, "missing");
    for (size_t i = 0; i < report->missing_count; i++) {
        pl__data_object(data, NULL);
        pl__data_str(data, "object", report->missing[i].object);
        pl__data_str(data, "condition", report->missing[i].condition);
        pl__data_str(data, "evidence", report->missing[i].evidence);
        pl__data_end_object(data);
    }
    pl__data_end_array(data);
}

void pl__data_quorum(struct pl_data *data, const char *key, const struct pl_quorum *quorum)
{
    pl__data_object(data, key);
    pl__data_int(data, "members", quorum->members);
    pl__data_int(data, "voters", quorum->voters);
    pl__data_int(data, "healthy", quorum->healthy);
    pl__data_int(data, "quorum", quorum->quorum);
    pl__data_int(data, "tolerance", quorum->tolerance);
    pl__data_end_object(data);
}
