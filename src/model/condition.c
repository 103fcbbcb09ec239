#include "model/condition.h"

static const struct {
    struct pl_str name;
    bool negative;
} types[COND_COUNT] = {
#define X(enumerator, name, negative) { PL_STR_INIT(name), negative },
    PL_CONDITION_TYPES(X)
#undef X
};

static int read_type(struct pl_json *j, void *destination)
{
    struct pl_str name;
    uint8_t *type = destination;

    if (pl__json_string(j, &name) < 0)
        return -1;
    *type = COND_UNKNOWN_TYPE;
    for (int i = 0; i < COND_COUNT; i++) {
        if (pl__str_equal(name, types[i].name)) {
            *type = (uint8_t)i;
            break;
        }
    }
    return 0;
}

static int read_status(struct pl_json *j, void *destination)
{
    struct pl_str name;
    uint8_t *status = destination;
    const char *where = j->at;

    if (pl__json_string(j, &name) < 0)
        return -1;
    if (pl__str_equal(name, PL_STR("True")))
        *status = PL_STATUS_TRUE;
    else if (pl__str_equal(name, PL_STR("False")))
        *status = PL_STATUS_FALSE;
    else if (pl__str_equal(name, PL_STR("Unknown")))
        *status = PL_STATUS_UNKNOWN;
    else
        return pl__json_error(j, where, PL_INVALID,
                              "condition status \"%.*s\", expected True, False or Unknown",
                              PL_STR_ARG(name));
    return 0;
}

static bool write_type(struct pl_json_writer *w, const void *value)
{
    const uint8_t *type = value;

    if (w)
        pl__json_write_str(w, types[*type].name);
    return true;
}

static bool write_status(struct pl_json_writer *w, const void *value)
{
    const uint8_t *status = value;

    if (w)
        pl__json_write_str(w, pl__str(pl_status_name((enum pl_status) * status)));
    return true;
}

static const struct pl_field condition_fields[] = {
    PL_FIELD_BOTH("type", struct pl_condition, type, read_type, write_type),
    PL_FIELD_BOTH("status", struct pl_condition, status, read_status, write_status),
    PL_FIELD("reason", F_STR, struct pl_condition, reason),
    PL_FIELD("message", F_STR, struct pl_condition, message),
    PL_FIELD("lastTransitionTime", F_TIME, struct pl_condition, last_transition_ms),
    PL_FIELD("observedGeneration", F_INT, struct pl_condition, observed_generation),
};

static bool keep_known(void *item)
{
    struct pl_condition *c = item;
    return c->type != COND_UNKNOWN_TYPE && c->status != PL_STATUS_NONE;
}

const struct pl_shape pl__condition_shape = {
    .fields = condition_fields,
    .field_count = sizeof condition_fields / sizeof condition_fields[0],
    .size = sizeof(struct pl_condition),
    .count_max = 256,
    .keep = keep_known,
};

const char *pl__condition_type_name(enum pl_condition_type type)
{
    return type < COND_COUNT ? types[type].name.ptr : "";
}

bool pl__condition_type_negative(enum pl_condition_type type)
{
    return type < COND_COUNT && types[type].negative;
}

const struct pl_condition *pl__condition_find(const struct pl_conditions *list,
                                              enum pl_condition_type type)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i].type == type)
            return &list->items[i];
    }
    return NULL;
}
