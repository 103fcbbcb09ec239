/* base/json.h - JSON in, straight into structs; JSON (or YAML) out, as a stream.
 *
 * Reading is one pass over bytes that the caller holds. What to keep is said by tables of fields;
 * the rest is checked and skipped without being stored. Strings are copied into the arena, so the
 * bytes may go away afterwards.
 *
 * Strict RFC 8259: UTF-8 only, no BOM, no NUL, no trailing commas, no leading zeros, no lone
 * surrogates, no control characters in strings. A key that a table knows may appear only once in
 * its object. null counts as absent. The one exception to checking everything is F_SKIP_FAST, for
 * managedFields: there only nesting and strings are checked, at memory speed. */
#ifndef PL_BASE_JSON_H
#define PL_BASE_JSON_H

#include "base/error.h"

enum pl_json_type {
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL
};

struct pl_json {
    const char *start; /* of the whole text, for positions */
    const char *at;    /* the next byte to read */
    const char *end;
    struct pl_arena *arena; /* where what is read lives */
    struct pl_error **err;  /* where the first error goes */
    uint32_t depth;
    uint32_t depth_max;
    /* Turns an offset into "line:column" when the text was made from something else (YAML). */
    const struct pl_position_map *positions; /* NULL: the text is what the user wrote */
    struct pl_str source;                    /* for messages: a file's name */
    const struct pl_json_path *path; /* the field being read, for messages; kept by the decoder */
    bool first;                      /* just entered: no comma is due before the next key or item */
    bool failed; /* an error was reported; every further read fails and reports nothing */
};

/* One step on the way to a field, innermost first. */
struct pl_json_path {
    const struct pl_json_path *parent;
    struct pl_str name; /* empty: no field at this level yet */
    uint32_t index;
    bool is_index; /* "[index]" in place of a name */
};

/* Where things stood in the text that this JSON was made from, sorted by offset. */
struct pl_position {
    size_t offset; /* in the JSON */
    uint32_t line; /* from 1 */
    uint32_t column;
};
struct pl_position_map {
    const struct pl_position *items;
    size_t count;
};

enum { JSON_DEPTH_LIMIT = 1024 };

/* `depth_max` 0 means 64; more than JSON_DEPTH_LIMIT means that. */
void pl__json_init(struct pl_json *j, struct pl_str text, struct pl_str source,
                   struct pl_arena *arena, uint32_t depth_max, struct pl_error **err);

/* An error "source:line:column: field.path: ..." at byte `where` of the text; returns -1. Lines
 * and columns count from 1, columns in characters (code points). Only the first error is kept, and
 * after it nothing more is read. */
int pl__json_error(struct pl_json *j, const char *where, enum pl_code code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Steps over white space. True when nothing is left. */
bool pl__json_at_end(struct pl_json *j);

/* The type of the value that comes next, by its first byte; -1 with an error when none can start. */
int pl__json_peek(struct pl_json *j);

/* Each reads one value of that type. 0, or -1 with an error. */
int pl__json_string(struct pl_json *j, struct pl_str *value); /* copied into the arena */
int pl__json_int(struct pl_json *j, int64_t *value);          /* a whole number that fits */
int pl__json_bool(struct pl_json *j, bool *value);

/* Checks and skips one value. */
int pl__json_skip(struct pl_json *j);

/* Checks and skips one value, and gives its bytes as they stand: a view of the text, without the white
 * space around it. For what is carried over untouched. */
int pl__json_raw(struct pl_json *j, struct pl_str *value);

/* Skips one value, at memory speed: inside of an object or array only the balance of brackets and
 * the ends of strings are checked. It takes all that pl__json_skip() takes, and ends where that
 * ends. */
int pl__json_skip_fast(struct pl_json *j);

/* Walks an object: enter, then next until it returns 0 (1: `key` is set and its value comes next;
 * -1: error). The key is a view that lives until the next call, or in the arena if it had escapes.
 *     for (int more = pl__json_object(j); (more = pl__json_key(j, &key)) > 0;) ...
 * pl__json_object returns 0 or -1; after -1 pl__json_key returns -1 too. */
int pl__json_object(struct pl_json *j);
int pl__json_key(struct pl_json *j, struct pl_str *key);

/* Walks an array the same way. */
int pl__json_array(struct pl_json *j);
int pl__json_item(struct pl_json *j);

/* --- tables of fields ------------------------------------------------------------------------ */

enum pl_field_kind {
    F_STR,     /* struct pl_str */
    F_BOOL,    /* bool */
    F_INT,     /* int64_t */
    F_TIME,    /* int64_t, milliseconds: an RFC 3339 string */
    F_PRESENT, /* bool: true when the key is there and not null; the value is skipped */
    F_PREFIX, /* in an F_MAP: bool, true when some key starts with `path` and no row before is its own */
    F_OBJECT,    /* a nested struct at this offset, by `shape` */
    F_MAP,       /* like F_OBJECT, but keys are literal (labels): dots in them mean nothing */
    F_LIST,      /* a PL_LIST of structs, by `shape` */
    F_STRINGS,   /* a PL_LIST of struct pl_str */
    F_CUSTOM,    /* `read` decides; `shape`, if there is one, says what it leaves there */
    F_SKIP_FAST, /* known and unwanted: nesting is all that is checked */
};

/* A list as decoded. `present` tells an empty one from an absent (or null) one. Any PL_LIST(type)
 * has the layout of struct pl_list. */
#define PL_LIST(type)   \
    struct {            \
        type *items;    \
        uint32_t count; \
        bool present;   \
    }
struct pl_list {
    void *items;
    uint32_t count;
    bool present;
};

struct pl_shape;
struct pl_json_writer;

/* One wanted field. `path` may have several steps ("status.nodeRef.name"); rows that share a step
 * stand together, at each level. A row whose path others continue must be F_PRESENT and stand
 * before them ("status.nodeRef", then "status.nodeRef.name"). */
struct pl_field {
    const char *path;
    uint32_t path_len;
    enum pl_field_kind kind;
    uint32_t offset;
    const struct pl_shape *shape; /* F_OBJECT, F_MAP, F_LIST; F_CUSTOM with pointers */
    int (*read)(struct pl_json *j, void *destination); /* F_CUSTOM: reads one value (not null) */
    /* F_CUSTOM: writes the value; false when there is nothing to write. With a NULL writer it only
     * tells. NULL: read, but never written. */
    bool (*write)(struct pl_json_writer *w, const void *value);
};

/* A struct and its fields; at most 64 of them. */
struct pl_shape {
    const struct pl_field *fields;
    uint32_t field_count;
    uint32_t size;            /* of the struct */
    uint32_t count_max;       /* of a list of these; 0: 100,000 */
    bool (*keep)(void *item); /* for lists: false drops the item just read; NULL keeps all */
};

#define PL_FIELD(path_, kind_, type_, member_)                           \
    {                                                                    \
        .path = (path_), .path_len = sizeof(path_) - 1, .kind = (kind_), \
        .offset = offsetof(type_, member_)                               \
    }
#define PL_FIELD_SHAPE(path_, kind_, type_, member_, shape_)             \
    {                                                                    \
        .path = (path_), .path_len = sizeof(path_) - 1, .kind = (kind_), \
        .offset = offsetof(type_, member_), .shape = (shape_)            \
    }
#define PL_FIELD_CUSTOM(path_, type_, member_, read_)                     \
    {                                                                     \
        .path = (path_), .path_len = sizeof(path_) - 1, .kind = F_CUSTOM, \
        .offset = offsetof(type_, member_), .read = (read_)               \
    }
#define PL_FIELD_CUSTOM_SHAPE(path_, type_, member_, read_, shape_)            \
    {                                                                          \
        .path = (path_), .path_len = sizeof(path_) - 1, .kind = F_CUSTOM,      \
        .offset = offsetof(type_, member_), .shape = (shape_), .read = (read_) \
    }
#define PL_FIELD_BOTH(path_, type_, member_, read_, write_)                    \
    {                                                                          \
        .path = (path_), .path_len = sizeof(path_) - 1, .kind = F_CUSTOM,      \
        .offset = offsetof(type_, member_), .read = (read_), .write = (write_) \
    }
#define PL_FIELD_BOTH_SHAPE(path_, type_, member_, read_, write_, shape_)                         \
    {                                                                                             \
        .path = (path_), .path_len = sizeof(path_) - 1, .kind = F_CUSTOM,                         \
        .offset = offsetof(type_, member_), .shape = (shape_), .read = (read_), .write = (write_) \
    }
#define PL_FIELD_SKIP(path_)                                                \
    {                                                                       \
        .path = (path_), .path_len = sizeof(path_) - 1, .kind = F_SKIP_FAST \
    }
#define PL_SHAPE(name_, type_, fields_)                                                    \
    const struct pl_shape name_ = { .fields = (fields_),                                   \
                                    .field_count = sizeof(fields_) / sizeof((fields_)[0]), \
                                    .size = sizeof(type_) }

/* Reads one object into a zeroed struct. 0, or -1 with an error that names the field. null leaves
 * a field as it is; as an item of a list it is an error. */
int pl__json_decode(struct pl_json *j, const struct pl_shape *shape, void *destination);

/* --- writing ----------------------------------------------------------------------------------- */

enum pl_json_format {
    JSON_COMPACT, /* one line, no spaces */
    JSON_PRETTY,  /* two spaces, as kubectl -o json */
    JSON_AS_YAML, /* block style, as kubectl -o yaml */
};

enum { JSON_WRITE_DEPTH_MAX = 32 };

/* A stream of calls makes a document: object/array open and close, key before each value inside an
 * object. The caller keeps that order; it is asserted. Bytes that are not UTF-8 become U+FFFD. No
 * format ends with a newline: whoever joins or prints documents adds one (YAML needs exactly one
 * when the last value is a text of several lines). */
struct pl_json_writer {
    struct pl_buf *out;
    enum pl_json_format format;
    uint32_t depth;
    struct {
        bool array;
        bool empty; /* nothing written inside yet */
    } level[JSON_WRITE_DEPTH_MAX];
    bool after_key;
};

void pl__json_writer_init(struct pl_json_writer *w, struct pl_buf *out, enum pl_json_format format);
void pl__json_open_object(struct pl_json_writer *w);
void pl__json_close_object(struct pl_json_writer *w);
void pl__json_open_array(struct pl_json_writer *w);
void pl__json_close_array(struct pl_json_writer *w);
void pl__json_write_key(struct pl_json_writer *w, const char *key);
void pl__json_write_key_str(struct pl_json_writer *w, struct pl_str key);
void pl__json_write_str(struct pl_json_writer *w, struct pl_str s);
void pl__json_write_int(struct pl_json_writer *w, int64_t value);
void pl__json_write_bool(struct pl_json_writer *w, bool value);
void pl__json_write_null(struct pl_json_writer *w);
void pl__json_write_time(struct pl_json_writer *w, int64_t ms); /* as an RFC 3339 string */

/* One value as pl__json_raw() gave it, byte for byte. Not in YAML: those bytes are JSON. */
void pl__json_write_raw(struct pl_json_writer *w, struct pl_str value);

/* Writes a struct by its table (json_encode.c): what decoding it again reads. The second one writes
 * only the members, into an object that is open. */
void pl__json_encode(struct pl_json_writer *w, const struct pl_shape *shape, const void *object);
void pl__json_encode_members(struct pl_json_writer *w, const struct pl_shape *shape,
                             const void *object);

#endif
