/* YAML to JSON text, one document a line.
 *
 * libyaml reads the syntax and hands out events; this file decides what they mean and writes JSON
 * as they come, without a tree. Three things need more than the current event:
 *
 *  - A mapping's keys, to refuse one that is there twice. They lie on a stack shared by all open
 *    mappings and are sorted when their mapping ends: sorting has no bad case that an input could
 *    aim for, as hashing has.
 *  - An anchor's value, for its aliases. It is kept as JSON text and copied for each alias.
 *    What is kept and what comes out are both bounded by json_bytes_max, so a few lines of aliases
 *    of aliases are refused long before they fill memory.
 *  - A merge ("<<"). Its value is written like any other, then taken out again and kept as text
 *    until the mapping ends, when it is known which keys the mapping has of its own.
 *
 * What a scalar means is in yaml_scalar.c. Everything but libyaml's own buffers lives in the arena.
 * docs/internals/yaml.md tells where we differ from Kubernetes' own reader. */
#include "base/yaml.h"

#include <assert.h>
#include <stdint.h>
#include <yaml.h>

#include "base/yaml_scalar.h"

enum {
    DEPTH_DEFAULT = 64,
    ANCHORS_MAX = 4096, /* in one document */
    NAME_SHOWN_MAX = 64 /* bytes of the user's text in a message */
};

struct anchor {
    struct pl_str name;
    bool open; /* its value has not ended yet: an alias now would contain itself */
    bool collection;
    struct pl_yaml_scalar scalar; /* unless it is a collection */
    struct pl_str json;           /* of a collection */
    uint32_t height;              /* of a collection: how many levels it has */
};

/* A key of an open mapping, as it stands in the output: quoted and escaped. */
struct key {
    const char *base; /* what `offset` counts from; NULL: the output, which may move */
    size_t offset;
    size_t len;
    size_t entry_len; /* of a merged one: key, colon and value */
    uint32_t rank;    /* 0: the mapping's own; n: from its n-th merge source */
    yaml_mark_t mark;
};

struct merge {
    struct pl_str json; /* an object */
    struct merge *next;
};

/* A mapping or sequence that has begun and not ended. */
struct frame {
    bool mapping;
    bool value_next; /* of a mapping: its key has been read */
    bool merging;    /* the value that comes next belongs to "<<" */
    bool has_merge;
    uint32_t count;   /* entries written */
    uint32_t height;  /* levels below this one, so far */
    size_t out_start; /* where its text begins in the output */
    size_t key_first; /* where its keys begin on the stack */
    size_t merge_out_start;
    size_t merge_position_count;
    yaml_mark_t merge_mark;
    struct merge *merges; /* in their order */
    struct merge *merge_last;
    struct anchor *anchor;
};

struct converter {
    struct pl_arena *arena;
    struct pl_error **err;
    struct pl_str yaml;
    struct pl_str source;
    struct pl_yaml_limits limits;
    struct pl_buf out;

    struct pl_position *positions;
    size_t position_count, position_capacity;
    struct frame *frames;
    size_t frame_count, frame_capacity;
    struct key *keys;
    size_t key_count, key_capacity;
    struct anchor **anchors; /* sorted by name */
    size_t anchor_count, anchor_capacity;
    size_t anchor_bytes;
};

/* --- errors and positions -------------------------------------------------------------------- */

/* "source:line:column: ..."; -1, said here so that compilers and analysers see it, too. */
#define fail_at(c, mark, code, format, ...)                                                    \
    (pl__error((c)->arena, (c)->err, (code), "%.*s:%zu:%zu: " format, PL_STR_ARG((c)->source), \
               (mark).line + 1, (mark).column + 1, __VA_ARGS__),                               \
     -1)

/* For "%.*s": the user's text, cut to what fits a message. */
static int shown(size_t len)
{
    return len > NAME_SHOWN_MAX ? NAME_SHOWN_MAX : (int)len;
}

/* Room for one more item in a growing array of the arena. */
static void *room_for_one(struct pl_arena *a, void *items, size_t count, size_t *capacity,
                          size_t item_size)
{
    if (count < *capacity)
        return items;
    size_t wanted = *capacity ? *capacity * 2 : 32;
    items = pl__arena_grow(a, items, *capacity * item_size, wanted * item_size);
    *capacity = wanted;
    return items;
}

static uint32_t to_u32(size_t n)
{
    return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

/* What is written next comes from here. */
static void mark_position(struct converter *c, yaml_mark_t mark)
{
    c->positions = room_for_one(c->arena, c->positions, c->position_count, &c->position_capacity,
                                sizeof *c->positions);
    c->positions[c->position_count++] = (struct pl_position){ .offset = c->out.len,
                                                              .line = to_u32(mark.line + 1),
                                                              .column = to_u32(mark.column + 1) };
}

/* The byte at a line and column as libyaml counts them (characters), or -1 behind the end. */
static int byte_at(struct pl_str yaml, yaml_mark_t mark)
{
    size_t at = 0;

    for (size_t line = 0; line < mark.line; line++) {
        const char *newline = at < yaml.len ? memchr(yaml.ptr + at, '\n', yaml.len - at) : NULL;
        if (!newline)
            return -1;
        at = (size_t)(newline - yaml.ptr) + 1;
    }
    for (size_t column = 0; column < mark.column && at < yaml.len; column++) {
        at++;
        while (at < yaml.len && ((unsigned char)yaml.ptr[at] & 0xc0) == 0x80)
            at++;
    }
    return at < yaml.len ? (unsigned char)yaml.ptr[at] : -1;
}

/* libyaml's reader knows only an offset. */
static yaml_mark_t mark_of_offset(struct pl_str yaml, size_t offset)
{
    yaml_mark_t mark = { .index = offset };

    for (size_t i = 0; i < offset && i < yaml.len; i++) {
        if (yaml.ptr[i] == '\n') {
            mark.line++;
            mark.column = 0;
        } else if (((unsigned char)yaml.ptr[i] & 0xc0) != 0x80) {
            mark.column++;
        }
    }
    return mark;
}

static int fail_parser(struct converter *c, const yaml_parser_t *parser)
{
    const char *problem = parser->problem ? parser->problem : "not valid YAML";
    yaml_mark_t mark = parser->problem_mark;

    if (parser->error == YAML_MEMORY_ERROR)
        return pl__error(c->arena, c->err, PL_LIMIT, "%.*s: out of memory while reading YAML",
                         PL_STR_ARG(c->source));
    if (parser->error == YAML_READER_ERROR) {
        mark = mark_of_offset(c->yaml, parser->problem_offset);
        if (parser->problem_value >= 0)
            return fail_at(c, mark, PL_INVALID, "not valid YAML: %s (0x%02X); expected UTF-8 text",
                           problem, (unsigned)parser->problem_value);
        return fail_at(c, mark, PL_INVALID, "not valid YAML: %s; expected UTF-8 text", problem);
    }
    if (byte_at(c->yaml, mark) == '\t')
        return fail_at(c, mark, PL_INVALID, "not valid YAML: %s: a tab; indent with spaces",
                       problem);
    if (parser->context && parser->context_mark.line != mark.line)
        return fail_at(c, mark, PL_INVALID, "not valid YAML: %s, %s that starts on line %zu",
                       problem, parser->context, parser->context_mark.line + 1);
    return fail_at(c, mark, PL_INVALID, "not valid YAML: %s", problem);
}

/* --- what a scalar means --------------------------------------------------------------------- */

/* The standard tags that say what a scalar must be. Any number may be called a float. */
static const struct {
    const char *tag;
    enum pl_yaml_kind kinds[2];
} scalar_tags[] = {
    { YAML_NULL_TAG, { PL_YAML_NULL, PL_YAML_NULL } },
    { YAML_BOOL_TAG, { PL_YAML_TRUE, PL_YAML_FALSE } },
    { YAML_INT_TAG, { PL_YAML_INT, PL_YAML_INT } },
    { YAML_FLOAT_TAG, { PL_YAML_INT, PL_YAML_FLOAT } },
};

static int fail_tag(struct converter *c, const char *tag, yaml_mark_t mark)
{
    if (strcmp(tag, "tag:yaml.org,2002:binary") == 0)
        return fail_at(c, mark, PL_INVALID,
                       "tag %s is not supported: leave it out and keep the base64 text",
                       "!!binary");
    struct pl_str text = pl__str(tag), standard = PL_STR("tag:yaml.org,2002:");
    bool short_form = pl__str_starts_with(text, standard);
    const char *rest = short_form ? tag + standard.len : tag;
    return fail_at(c, mark, PL_INVALID, "tag %s%.*s is not supported here", short_form ? "!!" : "",
                   shown(strlen(rest)), rest);
}

static int fail_not_json(struct converter *c, struct pl_str text, yaml_mark_t mark)
{
    return fail_at(c, mark, PL_INVALID, "%.*s has no form in JSON: quote it if it is text",
                   shown(text.len), text.ptr);
}

static int resolve_tagged(struct converter *c, const yaml_event_t *event, struct pl_str text,
                          struct pl_yaml_scalar *s)
{
    const char *tag = (const char *)event->data.scalar.tag;

    *s = (struct pl_yaml_scalar){ PL_YAML_STRING, text };
    /* A lone "!" says: do not resolve. */
    if (strcmp(tag, YAML_STR_TAG) == 0 || strcmp(tag, YAML_TIMESTAMP_TAG) == 0 ||
        strcmp(tag, "!") == 0)
        return 0;
    for (size_t i = 0; i < sizeof scalar_tags / sizeof scalar_tags[0]; i++) {
        if (strcmp(tag, scalar_tags[i].tag) != 0)
            continue;
        enum pl_yaml_resolved got = pl__yaml_resolve(c->arena, text, s);
        if (got == PL_YAML_IS_NOT_JSON)
            return fail_not_json(c, text, event->start_mark);
        if (got == PL_YAML_IS_SCALAR &&
            (s->kind == scalar_tags[i].kinds[0] || s->kind == scalar_tags[i].kinds[1]))
            return 0;
        return fail_at(c, event->start_mark, PL_INVALID, "\"%.*s\" does not fit its tag !!%s",
                       shown(text.len), text.ptr, tag + sizeof "tag:yaml.org,2002:" - 1);
    }
    return fail_tag(c, tag, event->start_mark);
}

/* What a scalar event means. Its text may be the event's own: valid until that is deleted. */
static int resolve(struct converter *c, const yaml_event_t *event, struct pl_yaml_scalar *s)
{
    struct pl_str text = { (const char *)event->data.scalar.value, event->data.scalar.length };

    if (text.len && memchr(text.ptr, '\0', text.len))
        return fail_at(c, event->start_mark, PL_INVALID, "a string with a NUL character (%s) in it",
                       "\\0");
    if (event->data.scalar.tag)
        return resolve_tagged(c, event, text, s);

    *s = (struct pl_yaml_scalar){ PL_YAML_STRING, text };
    if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return 0;
    switch (pl__yaml_resolve(c->arena, text, s)) {
    case PL_YAML_IS_SCALAR:
        return 0;
    case PL_YAML_IS_TEXT:
        *s = (struct pl_yaml_scalar){ PL_YAML_STRING, text };
        return 0;
    case PL_YAML_IS_NOT_JSON:
        return fail_not_json(c, text, event->start_mark);
    case PL_YAML_IS_TOO_LARGE:
        break;
    }
    return fail_at(c, event->start_mark, PL_LIMIT,
                   "number %.*s does not fit 64 bits: quote it if it is text", shown(text.len),
                   text.ptr);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void write_string(struct pl_buf *out, struct pl_str s)
{
    static const char hex[] = "0123456789abcdef";
    size_t start = 0;

    pl__buf_add_char(out, '"');
    for (size_t i = 0; i < s.len; i++) {
        unsigned char ch = (unsigned char)s.ptr[i];
        if (ch >= 0x20 && ch != '"' && ch != '\\')
            continue;
        pl__buf_add(out, (struct pl_str){ s.ptr + start, i - start });
        start = i + 1;
        pl__buf_add_char(out, '\\');
        switch (ch) {
        case '"':
        case '\\':
            pl__buf_add_char(out, (char)ch);
            break;
        case '\n':
            pl__buf_add_char(out, 'n');
            break;
        case '\t':
            pl__buf_add_char(out, 't');
            break;
        default:
            pl__buf_add_lit(out, "u00");
            pl__buf_add_char(out, hex[ch >> 4]);
            pl__buf_add_char(out, hex[ch & 15]);
        }
    }
    pl__buf_add(out, (struct pl_str){ s.ptr + start, s.len - start });
    pl__buf_add_char(out, '"');
}

/* The scalar's text where JSON has no quotes around it. */
static struct pl_str bare_text(const struct pl_yaml_scalar *s)
{
    switch (s->kind) {
    case PL_YAML_NULL:
        return PL_STR("null");
    case PL_YAML_TRUE:
        return PL_STR("true");
    case PL_YAML_FALSE:
        return PL_STR("false");
    case PL_YAML_INT:
    case PL_YAML_FLOAT:
    case PL_YAML_STRING:
        break;
    }
    return s->text;
}

static void write_scalar(struct pl_buf *out, const struct pl_yaml_scalar *s)
{
    if (s->kind == PL_YAML_STRING)
        write_string(out, s->text);
    else
        pl__buf_add(out, bare_text(s));
}

static struct frame *top_frame(struct converter *c)
{
    return c->frame_count ? &c->frames[c->frame_count - 1] : NULL;
}

static bool key_comes_next(struct converter *c)
{
    const struct frame *f = top_frame(c);
    return f && f->mapping && !f->value_next;
}

static struct pl_str out_since(const struct converter *c, size_t start)
{
    return (struct pl_str){ c->out.data + start, c->out.len - start };
}

/* --- anchors ---------------------------------------------------------------------------------- */

/* Where the name is, or would be. */
static size_t anchor_index(const struct converter *c, struct pl_str name, bool *found)
{
    size_t low = 0, high = c->anchor_count;

    *found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = pl__str_compare(c->anchors[middle]->name, name);
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The anchor that a node declares, still open; NULL in `*anchor` when it declares none. A name may
 * be used again: from there on it means the new value. */
static int anchor_declare(struct converter *c, const yaml_char_t *text, yaml_mark_t mark,
                          struct anchor **anchor)
{
    bool found;

    *anchor = NULL;
    if (!text)
        return 0;
    struct pl_str name = pl__str((const char *)text);
    size_t index = anchor_index(c, name, &found);
    if (!found) {
        if (c->anchor_count == ANCHORS_MAX)
            return fail_at(c, mark, PL_LIMIT, "more than %d anchors in one document", ANCHORS_MAX);
        c->anchors = room_for_one(c->arena, c->anchors, c->anchor_count, &c->anchor_capacity,
                                  sizeof(struct anchor *));
        memmove(&c->anchors[index + 1], &c->anchors[index],
                (c->anchor_count - index) * sizeof(struct anchor *));
        c->anchor_count++;
    }
    *anchor = PL_NEW(c->arena, struct anchor, 1);
    (*anchor)->name = pl__str_copy(c->arena, name);
    (*anchor)->open = true;
    c->anchors[index] = *anchor;
    return 0;
}

static int anchor_keep(struct converter *c, struct pl_str text, struct pl_str *kept,
                       yaml_mark_t mark)
{
    if (text.len > c->limits.json_bytes_max - c->anchor_bytes)
        return fail_at(c, mark, PL_LIMIT, "anchors hold more than %zu bytes",
                       c->limits.json_bytes_max);
    c->anchor_bytes += text.len;
    *kept = pl__str_copy(c->arena, text);
    return 0;
}

static int anchor_lookup(struct converter *c, const yaml_event_t *event,
                         const struct anchor **anchor)
{
    struct pl_str name = pl__str((const char *)event->data.alias.anchor);
    bool found;
    size_t index = anchor_index(c, name, &found);

    if (!found)
        return fail_at(c, event->start_mark, PL_INVALID, "alias *%.*s: no anchor &%.*s before it",
                       shown(name.len), name.ptr, shown(name.len), name.ptr);
    *anchor = c->anchors[index];
    if ((*anchor)->open)
        return fail_at(c, event->start_mark, PL_INVALID, "alias *%.*s stands inside its own anchor",
                       shown(name.len), name.ptr);
    return 0;
}

/* --- keys and merging ------------------------------------------------------------------------- */

static struct pl_str key_text(const struct converter *c, const struct key *k)
{
    return (struct pl_str){ (k->base ? k->base : c->out.data) + k->offset, k->len };
}

static bool key_before(const struct converter *c, const struct key *a, const struct key *b)
{
    int order = pl__str_compare(key_text(c, a), key_text(c, b));

    if (order)
        return order < 0;
    return a->rank != b->rank ? a->rank < b->rank : a->mark.index < b->mark.index;
}

/* Shell's sort: small, in place, no bad case worth aiming for, and linear on the sorted keys that
 * kubectl writes. */
static void sort_keys(const struct converter *c, struct key *keys, size_t count)
{
    size_t gap = 1;

    while (gap < count / 3)
        gap = gap * 3 + 1;
    for (; gap > 0; gap /= 3) {
        for (size_t i = gap; i < count; i++) {
            if (!key_before(c, &keys[i], &keys[i - gap]))
                continue;
            struct key k = keys[i];
            size_t j = i;
            for (; j >= gap && key_before(c, &k, &keys[j - gap]); j -= gap)
                keys[j] = keys[j - gap];
            keys[j] = k;
        }
    }
}

static void push_key(struct converter *c, struct key k)
{
    c->keys = room_for_one(c->arena, c->keys, c->key_count, &c->key_capacity, sizeof *c->keys);
    c->keys[c->key_count++] = k;
}

/* The end of the JSON value that starts at `at`. Only for text that this file wrote. */
static size_t value_end(struct pl_str json, size_t at)
{
    size_t depth = 0;

    for (; at < json.len; at++) {
        char ch = json.ptr[at];
        if (ch == '"') {
            for (at++; json.ptr[at] != '"'; at++) {
                if (json.ptr[at] == '\\')
                    at++;
            }
        } else if (ch == '{' || ch == '[') {
            depth++;
        } else if ((ch == ',' || ch == ':') && depth == 0) {
            return at;
        } else if (ch == '}' || ch == ']') {
            if (depth == 0)
                return at;
            depth--;
        }
    }
    return at;
}

/* The value of "<<" has been written: takes it out again, to be merged when the mapping ends. */
static int take_merge(struct converter *c, struct frame *f)
{
    struct pl_str json = pl__str_copy(c->arena, out_since(c, f->merge_out_start));
    size_t at = 0, end = json.len;

    c->out.len = f->merge_out_start;
    c->position_count = f->merge_position_count;
    f->merging = false;
    if (json.ptr[0] == '[') { /* the items between the brackets */
        at = 1;
        end--;
    }
    while (at < end) {
        size_t next = value_end(json, at);
        if (json.ptr[at] != '{')
            break;
        struct merge *m = PL_NEW(c->arena, struct merge, 1);
        m->json = (struct pl_str){ json.ptr + at, next - at };
        if (f->merge_last)
            f->merge_last->next = m;
        else
            f->merges = m;
        f->merge_last = m;
        at = next + (next < end);
    }
    if (at < end)
        return fail_at(c, f->merge_mark, PL_INVALID,
                       "the value of %s must be a mapping, an alias of one, or a list of those",
                       "<<");
    return 0;
}

static void push_merged_keys(struct converter *c, const struct merge *m, uint32_t rank,
                             yaml_mark_t mark)
{
    for (size_t at = 1; at < m->json.len - 1;) {
        size_t colon = value_end(m->json, at);
        size_t end = value_end(m->json, colon + 1);
        push_key(c, (struct key){ .base = m->json.ptr,
                                  .offset = at,
                                  .len = colon - at,
                                  .entry_len = end - at,
                                  .rank = rank,
                                  .mark = mark });
        at = end + 1;
    }
}

/* Sorts the keys of the mapping that ends, refuses one that is there twice, and adds what is merged
 * in and not there yet. Of several merge sources the first that has a key gives it. */
static int finish_keys(struct converter *c, struct frame *f)
{
    uint32_t rank = 0;

    for (const struct merge *m = f->merges; m; m = m->next)
        push_merged_keys(c, m, ++rank, f->merge_mark);

    size_t count = c->key_count - f->key_first;
    if (count == 0)
        return 0;
    struct key *keys = c->keys + f->key_first;
    const struct key *twice = NULL;
    sort_keys(c, keys, count);
    for (size_t i = 1; i < count; i++) {
        if (keys[i].rank == 0 && pl__str_equal(key_text(c, &keys[i - 1]), key_text(c, &keys[i])) &&
            (!twice || keys[i].mark.index < twice->mark.index))
            twice = &keys[i];
    }
    if (twice) {
        struct pl_str name = key_text(c, twice);
        return fail_at(c, twice->mark, PL_INVALID, "key %.*s is in this mapping twice",
                       shown(name.len), name.ptr);
    }
    if (rank == 0)
        return 0;

    struct pl_str last = { "", 0 };
    for (size_t i = 0; i < count; i++) {
        struct pl_str name = key_text(c, &keys[i]);
        bool known = i > 0 && pl__str_equal(last, name);
        last = name; /* stays readable when the output moves: an arena keeps what it left */
        if (known || keys[i].rank == 0)
            continue;
        if (f->count++)
            pl__buf_add_char(&c->out, ',');
        mark_position(c, f->merge_mark);
        pl__buf_add(&c->out, (struct pl_str){ name.ptr, keys[i].entry_len });
    }
    return 0;
}

/* --- events ------------------------------------------------------------------------------------ */

static bool is_merge_key(const yaml_event_t *event)
{
    const char *tag = (const char *)event->data.scalar.tag;

    if (event->data.scalar.length != 2 || memcmp(event->data.scalar.value, "<<", 2) != 0)
        return false;
    return tag ? strcmp(tag, "tag:yaml.org,2002:merge") == 0
               : event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

static int merge_begin(struct converter *c, yaml_mark_t mark)
{
    struct frame *f = top_frame(c);

    if (f->has_merge)
        return fail_at(c, mark, PL_INVALID, "key %s is in this mapping twice", "\"<<\"");
    f->has_merge = true;
    f->merging = true;
    f->value_next = true;
    f->merge_mark = mark;
    f->merge_out_start = c->out.len;
    f->merge_position_count = c->position_count;
    return 0;
}

static int write_key(struct converter *c, const struct pl_yaml_scalar *s, yaml_mark_t mark)
{
    struct frame *f = top_frame(c);

    if (s->kind == PL_YAML_NULL)
        return fail_at(c, mark, PL_INVALID,
                       "a mapping key must not be %s: write a name before the colon",
                       "null or empty");
    if (f->count++)
        pl__buf_add_char(&c->out, ',');
    mark_position(c, mark);
    size_t start = c->out.len;
    write_string(&c->out, bare_text(s));
    push_key(c, (struct key){ .offset = start, .len = c->out.len - start, .mark = mark });
    pl__buf_add_char(&c->out, ':');
    f->value_next = true;
    return 0;
}

static int fail_key(struct converter *c, yaml_mark_t mark)
{
    return fail_at(c, mark, PL_INVALID, "a mapping key must be a %s, not a list or a mapping",
                   "plain value");
}

static void value_begin(struct converter *c, yaml_mark_t mark)
{
    struct frame *f = top_frame(c);

    if (f && !f->mapping && f->count++)
        pl__buf_add_char(&c->out, ',');
    mark_position(c, mark);
}

/* A value has been written; `height` levels of nesting are in it. */
static int value_end_in_frame(struct converter *c, uint32_t height)
{
    struct frame *f = top_frame(c);

    if (!f) {
        pl__buf_add_char(&c->out, '\n');
        return 0;
    }
    if (f->height < height)
        f->height = height;
    f->value_next = false;
    if (f->merging && !c->out.overflowed)
        return take_merge(c, f);
    return 0;
}

static int on_scalar(struct converter *c, const yaml_event_t *event)
{
    struct anchor *anchor;
    struct pl_yaml_scalar s;
    bool key = key_comes_next(c);

    if (key && is_merge_key(event))
        return merge_begin(c, event->start_mark);
    if (resolve(c, event, &s) < 0)
        return -1;
    if (anchor_declare(c, event->data.scalar.anchor, event->start_mark, &anchor) < 0)
        return -1;
    if (anchor) {
        anchor->scalar.kind = s.kind;
        if (anchor_keep(c, s.text, &anchor->scalar.text, event->start_mark) < 0)
            return -1;
        anchor->open = false;
    }
    if (key)
        return write_key(c, &s, event->start_mark);
    value_begin(c, event->start_mark);
    write_scalar(&c->out, &s);
    return value_end_in_frame(c, 0);
}

static int fail_depth(struct converter *c, yaml_mark_t mark)
{
    return fail_at(c, mark, PL_LIMIT, "nested deeper than %u levels", c->limits.depth_max);
}

static int on_alias(struct converter *c, const yaml_event_t *event)
{
    const struct anchor *anchor = NULL;

    if (anchor_lookup(c, event, &anchor) < 0)
        return -1;
    if (key_comes_next(c))
        return anchor->collection ? fail_key(c, event->start_mark)
                                  : write_key(c, &anchor->scalar, event->start_mark);
    if (anchor->collection && anchor->height > c->limits.depth_max - c->frame_count)
        return fail_depth(c, event->start_mark);
    value_begin(c, event->start_mark);
    if (anchor->collection)
        pl__buf_add(&c->out, anchor->json);
    else
        write_scalar(&c->out, &anchor->scalar);
    return value_end_in_frame(c, anchor->height);
}

static int on_collection_start(struct converter *c, const yaml_event_t *event, bool mapping)
{
    const yaml_char_t *tag =
        mapping ? event->data.mapping_start.tag : event->data.sequence_start.tag;
    const yaml_char_t *name =
        mapping ? event->data.mapping_start.anchor : event->data.sequence_start.anchor;
    struct anchor *anchor;

    if (key_comes_next(c))
        return fail_key(c, event->start_mark);
    if (tag && strcmp((const char *)tag, mapping ? YAML_MAP_TAG : YAML_SEQ_TAG) != 0)
        return fail_tag(c, (const char *)tag, event->start_mark);
    if (c->frame_count >= c->limits.depth_max)
        return fail_depth(c, event->start_mark);
    if (anchor_declare(c, name, event->start_mark, &anchor) < 0)
        return -1;

    value_begin(c, event->start_mark);
    c->frames =
        room_for_one(c->arena, c->frames, c->frame_count, &c->frame_capacity, sizeof *c->frames);
    struct frame *f = &c->frames[c->frame_count++];
    *f = (struct frame){
        .mapping = mapping, .out_start = c->out.len, .key_first = c->key_count, .anchor = anchor
    };
    pl__buf_add_char(&c->out, mapping ? '{' : '[');
    return 0;
}

static int on_collection_end(struct converter *c, const yaml_event_t *event)
{
    struct frame *f = top_frame(c);

    assert(f && !f->value_next);
    if (f->mapping && finish_keys(c, f) < 0)
        return -1;
    pl__buf_add_char(&c->out, f->mapping ? '}' : ']');
    if (c->out.overflowed)
        return 0; /* the caller sees it, too; the text is not whole */

    uint32_t height = f->height + 1;
    if (f->anchor) {
        f->anchor->collection = true;
        f->anchor->height = height;
        if (anchor_keep(c, out_since(c, f->out_start), &f->anchor->json, event->start_mark) < 0)
            return -1;
        f->anchor->open = false;
    }
    c->key_count = f->key_first;
    c->frame_count--;
    return value_end_in_frame(c, height);
}

/* Nothing between two "---", or only comments. */
static bool is_empty_document(const struct converter *c, const yaml_event_t *event)
{
    return c->frame_count == 0 && event->data.scalar.length == 0 && !event->data.scalar.tag &&
           event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

static int on_event(struct converter *c, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        c->anchor_count = 0; /* anchors end with their document */
        return 0;
    case YAML_SCALAR_EVENT:
        return is_empty_document(c, event) ? 0 : on_scalar(c, event);
    case YAML_ALIAS_EVENT:
        return on_alias(c, event);
    case YAML_MAPPING_START_EVENT:
        return on_collection_start(c, event, true);
    case YAML_SEQUENCE_START_EVENT:
        return on_collection_start(c, event, false);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        return on_collection_end(c, event);
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
    return 0;
}

static int convert(struct converter *c, yaml_parser_t *parser)
{
    yaml_event_t event;
    bool more = true;

    while (more) {
        if (!yaml_parser_parse(parser, &event))
            return fail_parser(c, parser);
        int result = on_event(c, &event);
        if (result == 0 && c->out.overflowed)
            result = fail_at(c, event.start_mark, PL_LIMIT,
                             "more than %zu bytes once aliases are replaced by what they stand for",
                             c->limits.json_bytes_max);
        more = event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        if (result < 0)
            return -1;
    }
    return 0;
}

int pl__yaml_to_json(struct pl_arena *arena, struct pl_str yaml, struct pl_str source,
                     struct pl_yaml_limits limits, struct pl_str *json,
                     struct pl_position_map *positions, struct pl_error **err)
{
    yaml_parser_t parser;
    struct converter c = {
        .arena = arena, .err = err, .yaml = yaml, .source = source, .limits = limits
    };

    if (limits.depth_max == 0)
        c.limits.depth_max = DEPTH_DEFAULT;
    pl__buf_init(&c.out, arena, limits.json_bytes_max);
    /* Without its indentation a document is rarely larger as JSON: one piece, taken at once. */
    if (yaml.len > 0 && yaml.len <= limits.json_bytes_max)
        pl__buf_reserve(&c.out, yaml.len);
    if (!yaml_parser_initialize(&parser))
        return pl__error(arena, err, PL_LIMIT, "%.*s: out of memory while reading YAML",
                         PL_STR_ARG(source));
    yaml_parser_set_input_string(&parser, (const unsigned char *)yaml.ptr, yaml.len);

    int result = convert(&c, &parser);
    yaml_parser_delete(&parser);
    if (result == 0) {
        *json = pl__buf_str(&c.out);
        *positions = (struct pl_position_map){ c.positions, c.position_count };
    }
    return result;
}
