/* cli/data.h - small helpers for commands that write JSON or YAML. */
#ifndef PL_CLI_DATA_H
#define PL_CLI_DATA_H

#include "base/json.h"
#include "cli/command.h"

/* One document to standard output, for "-o json" (one line) or "-o yaml". */
struct pl_data {
    struct pl_json_writer json;
    struct pl_buf *out;
};

/* `first`: no document has gone out before this one. */
void pl__data_open(struct pl_data *data, struct pl_cli *cli, bool first);
void pl__data_close(struct pl_data *data);

/* An item of an array has no key: NULL. */
void pl__data_str(struct pl_data *data, const char *key, struct pl_str value);
void pl__data_text(struct pl_data *data, const char *key, const char *value);
void pl__data_int(struct pl_data *data, const char *key, int64_t value);
void pl__data_bool(struct pl_data *data, const char *key, bool value);

/* Key and opening; an item of an array has no key. */
void pl__data_array(struct pl_data *data, const char *key);
void pl__data_object(struct pl_data *data, const char *key);
void pl__data_end_array(struct pl_data *data);
void pl__data_end_object(struct pl_data *data);

void pl__data_quorum(struct pl_data *data, const char *key, const struct pl_quorum *quorum);
void pl__data_evidence(struct pl_data *data, const struct pl_verdict *verdict);
void pl__data_missing(struct pl_data *data, const struct pl_report *report);

#endif
