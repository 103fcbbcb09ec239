#include "cli/transcode.h"

#include <assert.h>

#include "base/json.h"

static int copy_value(struct pl_json *j, struct pl_json_writer *w);

static int copy_object(struct pl_json *j, struct pl_json_writer *w)
{
    struct pl_str key;
    int more = pl__json_object(j);

    if (more < 0)
        return -1;
    pl__json_open_object(w);
    while ((more = pl__json_key(j, &key)) > 0) {
        pl__json_write_key(w, pl__str_copy(j->arena, key).ptr);
        if (copy_value(j, w) < 0)
            return -1;
    }
    pl__json_close_object(w);
    return more;
}

static int copy_array(struct pl_json *j, struct pl_json_writer *w)
{
    int more = pl__json_array(j);

    if (more < 0)
        return -1;
    pl__json_open_array(w);
    while ((more = pl__json_item(j)) > 0)
        if (copy_value(j, w) < 0)
            return -1;
    pl__json_close_array(w);
    return more;
}

static int copy_scalar(struct pl_json *j, struct pl_json_writer *w, int type)
{
    struct pl_str text;
    int64_t number;
    bool truth;

    switch (type) {
    case JSON_STRING:
        if (pl__json_string(j, &text) < 0)
            return -1;
        pl__json_write_str(w, text);
        return 0;
    case JSON_NUMBER:
        if (pl__json_int(j, &number) < 0)
            return -1;
        pl__json_write_int(w, number);
        return 0;
    case JSON_TRUE:
    case JSON_FALSE:
        if (pl__json_bool(j, &truth) < 0)
            return -1;
        pl__json_write_bool(w, truth);
        return 0;
    default:
        pl__json_write_null(w);
        return pl__json_skip(j);
    }
}

static int copy_value(struct pl_json *j, struct pl_json_writer *w)
{
    int type = pl__json_peek(j);

    if (type < 0)
        return -1;
    if (type == JSON_OBJECT)
        return copy_object(j, w);
    if (type == JSON_ARRAY)
        return copy_array(j, w);
    return copy_scalar(j, w, type);
}

void pl__json_to_yaml(struct pl_buf *out, struct pl_arena *scratch, struct pl_str json)
{
    struct pl_error *err = NULL;
    struct pl_json_writer w;
    struct pl_json j;

    pl__json_init(&j, json, PL_STR("report"), scratch, JSON_WRITE_DEPTH_MAX, &err);
    pl__json_writer_init(&w, out, JSON_AS_YAML);
    int result = copy_value(&j, &w);
    assert(result == 0 && "our own JSON must be readable");
    if (out->len && out->data[out->len - 1] != '\n')
        pl__buf_add_char(out, '\n');
}
