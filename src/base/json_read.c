/* JSON in: one pass, no tree.
 *
 * Three layers. At the bottom, json_scan.h finds the end of strings and white space many bytes at
 * a time. Above it, the walkers (object/key, array/item, string, int, skip) move `at` over one
 * token each. On top, the decoder walks an object, looks each key up in a table of fields and hands
 * the value to the reader of its kind; what no row names goes through the validating skip.
 *
 * 1. `at` never passes `end`, and nothing reads outside [start, end).
 * 2. Outside of a call, `at` is behind a whole token.
 * 3. After an error `at` is `end`: all that is called afterwards finds nothing, fails, and reports
 *    nothing because `failed` is set. So the fast paths need no check of their own.
 * 4. Every recursion goes through enter(), which counts against depth_max. */
#include "base/json.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/json_scan.h"
#include "base/time.h"

enum {
    DEPTH_DEFAULT = 64,
    COUNT_DEFAULT = 100 * 1000,
    LIST_CAPACITY_FIRST = 4,
    MESSAGE_BYTES_MAX = 512,
    NUMBER_BYTES_SHOWN = 40,
};

void pl__json_init(struct pl_json *j, struct pl_str text, struct pl_str source,
                   struct pl_arena *arena, uint32_t depth_max, struct pl_error **err)
{
    const char *start = text.len ? text.ptr : "";

    if (depth_max == 0)
        depth_max = DEPTH_DEFAULT;
    *j = (struct pl_json){
        .start = start,
        .at = start,
        .end = start + text.len,
        .arena = arena,
        .err = err,
        .depth_max = depth_max < JSON_DEPTH_LIMIT ? depth_max : JSON_DEPTH_LIMIT,
        .source = source,
    };
}

/* --- errors ------------------------------------------------------------------------------------ */

static struct pl_position position_in_text(const struct pl_json *j, const char *where)
{
    struct pl_position at = { .offset = (size_t)(where - j->start), .line = 1, .column = 1 };

    for (const char *p = j->start; p < where; p++) {
        if (*p == '\n') {
            at.line++;
            at.column = 1;
        } else if (((unsigned char)*p & 0xc0) != 0x80) {
            at.column++;
        }
    }
    return at;
}

/* The last entry that is not behind `where`. */
static struct pl_position position_in_map(const struct pl_json *j, const char *where)
{
    const struct pl_position_map *map = j->positions;
    size_t offset = (size_t)(where - j->start);
    size_t low = 0, high = map->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->items[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return (struct pl_position){ .line = 1, .column = 1 };
    return map->items[low - 1];
}

/* Names with a dot (labels) go into brackets, as Kubernetes prints them. */
static void path_add(struct pl_buf *b, const struct pl_json_path *path)
{
    if (!path)
        return;
    path_add(b, path->parent);
    if (path->is_index) {
        pl__buf_printf(b, "[%u]", (unsigned)path->index);
    } else if (path->name.len && memchr(path->name.ptr, '.', path->name.len)) {
        pl__buf_printf(b, "[%.*s]", PL_STR_ARG(path->name));
    } else if (path->name.len) {
        if (b->len)
            pl__buf_add_char(b, '.');
        pl__buf_add(b, path->name);
    }
}

int pl__json_error(struct pl_json *j, const char *where, enum pl_code code, const char *format, ...)
{
    char message[MESSAGE_BYTES_MAX];
    struct pl_buf path;
    va_list args;

    assert(where >= j->start && where <= j->end);
    if (j->failed)
        return -1;
    j->failed = true;
    j->at = j->end;
    if (!j->err)
        return -1;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    pl__buf_init(&path, j->arena, MESSAGE_BYTES_MAX);
    path_add(&path, j->path);
    struct pl_position at = j->positions ? position_in_map(j, where) : position_in_text(j, where);
    return pl__error(j->arena, j->err, code, "%.*s%s%u:%u: %.*s%s%s", PL_STR_ARG(j->source),
                     j->source.len ? ":" : "", (unsigned)at.line, (unsigned)at.column,
                     PL_STR_ARG(pl__buf_str(&path)), path.len ? ": " : "", message);
}

#define INVALID(j, where, ...) pl__json_error((j), (where), PL_INVALID, __VA_ARGS__)

static int truncated(struct pl_json *j)
{
    return INVALID(j, j->end, "unexpected end of input");
}

static bool bytes_start_with(const char *p, const char *end, struct pl_str wanted)
{
    return (size_t)(end - p) >= wanted.len && memcmp(p, wanted.ptr, wanted.len) == 0;
}

/* What stands at `p`, in words. `scratch` holds them where they are made up. */
static const char *found_name(const struct pl_json *j, const char *p, char scratch[static 32])
{
    unsigned char c = (unsigned char)*p;

    switch (c) {
    case '"':
        return "a string";
    case '{':
        return "an object";
    case '[':
        return "a list";
    case '/':
        return "'/' (JSON has no comments)";
    default:
        break;
    }
    if (c == '-' || (c >= '0' && c <= '9'))
        return "a number";
    if (bytes_start_with(p, j->end, PL_STR("null")))
        return "null";
    if (bytes_start_with(p, j->end, PL_STR("true")))
        return "true";
    if (bytes_start_with(p, j->end, PL_STR("false")))
        return "false";
    if (c == 0)
        return "a NUL byte";
    if (c > ' ' && c < 0x7f)
        snprintf(scratch, 32, "'%c'", c);
    else
        snprintf(scratch, 32, "byte 0x%02x", c);
    return scratch;
}

/* A byte order mark is the one fault in a file that its author cannot see. */
static int check_no_mark(struct pl_json *j, const char *p)
{
    if (bytes_start_with(p, j->end, PL_STR("\xef\xbb\xbf")))
        return INVALID(j, p, "byte order mark (BOM) before the JSON: save as UTF-8 without BOM");
    if (bytes_start_with(p, j->end, PL_STR("\xff\xfe")) ||
        bytes_start_with(p, j->end, PL_STR("\xfe\xff")))
        return INVALID(j, p, "byte order mark (BOM) of UTF-16: save as UTF-8 without BOM");
    return 0;
}

static int unexpected(struct pl_json *j, const char *p, const char *wanted)
{
    char scratch[32];

    if (p == j->end)
        return truncated(j);
    if (check_no_mark(j, p) < 0)
        return -1;
    return INVALID(j, p, "expected %s, found %s", wanted, found_name(j, p, scratch));
}

/* --- strings ----------------------------------------------------------------------------------- */

/* The four hex digits of a \u at `p`: the code unit; -1 with an error. `escape` is where the
 * backslash stands. */
static int32_t hex4(struct pl_json *j, const char *escape, const char *p)
{
    int32_t unit = 0;

    for (int i = 0; i < 4; i++) {
        if (p + i == j->end)
            return truncated(j);
        char c = p[i];
        int digit;
        if (c >= '0' && c <= '9')
            digit = c - '0';
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            digit = (c | 0x20) - 'a' + 10;
        else
            return INVALID(j, escape, "bad \\u escape: four hex digits needed");
        unit = unit * 16 + digit;
    }
    return unit;
}

/* The length of the \u escape at `p`, 6 or (a surrogate pair) 12, and what it stands for. 0 with an
 * error. */
static size_t unicode_escape(struct pl_json *j, const char *p, uint32_t *code_point)
{
    int32_t high = hex4(j, p, p + 2);

    if (high < 0)
        return 0;
    *code_point = (uint32_t)high;
    if (high < 0xd800 || high > 0xdfff)
        return 6;
    if (high >= 0xdc00)
        goto lone;
    for (int i = 0; i < 2; i++) {
        if (p + 6 + i == j->end)
            return truncated(j), (size_t)0;
        if (p[6 + i] != "\\u"[i])
            goto lone;
    }
    int32_t low = hex4(j, p + 6, p + 8);
    if (low < 0)
        return 0;
    if (low < 0xdc00 || low > 0xdfff)
        goto lone;
    *code_point = 0x10000 + ((uint32_t)(high - 0xd800) << 10 | (uint32_t)(low - 0xdc00));
    return 12;

lone:
    INVALID(j, p, "lone surrogate in a string");
    return 0;
}

/* The length of the escape at `p`; 0 with an error. */
static size_t escape_len(struct pl_json *j, const char *p)
{
    uint32_t code_point;

    if (p + 1 == j->end)
        return truncated(j), (size_t)0;
    switch (p[1]) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return 2;
    case 'u':
        return unicode_escape(j, p, &code_point);
    default:
        INVALID(j, p, "bad escape in a string");
        return 0;
    }
}

/* The length of the character at `p`, which is not plain; 0 with an error. */
static size_t odd_char_len(struct pl_json *j, const char *p)
{
    unsigned char c = (unsigned char)*p;

    if (c == '\\')
        return escape_len(j, p);
    if (c < 0x20) {
        INVALID(j, p, "control character 0x%02x in a string", c);
        return 0;
    }
    int len = pl__utf8_len(p, j->end);
    if (len < 0)
        truncated(j);
    else if (len == 0)
        INVALID(j, p, "invalid UTF-8 in a string");
    return len > 0 ? (size_t)len : 0;
}

/* The rest of string_close(), for strings that hold more than plain bytes. */
static const char *string_close_odd(struct pl_json *j, const char *p, bool *escaped)
{
    for (;;) {
        if (p == j->end) {
            truncated(j);
            return NULL;
        }
        if (*p == '"')
            return p;
        if (*p == '\\')
            *escaped = true;
        size_t len = odd_char_len(j, p);
        if (len == 0)
            return NULL;
        p = pl__scan_plain(p + len, j->end);
    }
}

/* The closing quote of the string whose content starts at `p`, all of it checked; NULL with an
 * error. Sets `*escaped` when there is something to decode. */
static inline const char *string_close(struct pl_json *j, const char *p, bool *escaped)
{
    p = pl__scan_plain(p, j->end);
    if (p < j->end && *p == '"')
        return p;
    return string_close_odd(j, p, escaped);
}

static char *utf8_put(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
        *to++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    } else {
        *to++ = (char)(0xf0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3f));
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    }
    return to;
}

static char unescape_char(char c)
{
    switch (c) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return c;
    }
}

/* Decodes what string_close() has checked. No escape is longer decoded than written. */
static struct pl_str unescape(struct pl_json *j, const char *p, const char *close)
{
    char *text = pl__arena_alloc(j->arena, (size_t)(close - p) + 1);
    char *to = text;

    while (p < close) {
        if (*p != '\\') {
            *to++ = *p++;
        } else if (p[1] != 'u') {
            *to++ = unescape_char(p[1]);
            p += 2;
        } else {
            uint32_t code_point;
            p += unicode_escape(j, p, &code_point);
            to = utf8_put(to, code_point);
        }
    }
    *to = '\0';
    return (struct pl_str){ text, (size_t)(to - text) };
}

/* The string at `at` (its opening quote): a view of the input, or decoded in the arena. */
static inline int string_view(struct pl_json *j, struct pl_str *value, bool *in_arena)
{
    const char *content = j->at + 1;
    const char *close;

    *in_arena = false;
    close = string_close(j, content, in_arena);
    if (!close)
        return -1;
    j->at = close + 1;
    if (*in_arena)
        *value = unescape(j, content, close);
    else
        *value = (struct pl_str){ content, (size_t)(close - content) };
    return 0;
}

/* Steps to the next value, which must be a string. */
static inline int string_start(struct pl_json *j, const char *wanted)
{
    const char *p = pl__skip_space(j->at, j->end);

    if (p == j->end || *p != '"')
        return unexpected(j, p, wanted);
    j->at = p;
    return 0;
}

int pl__json_string(struct pl_json *j, struct pl_str *value)
{
    struct pl_str read;
    bool in_arena;

    if (string_start(j, "a string") < 0 || string_view(j, &read, &in_arena) < 0)
        return -1;
    *value = in_arena ? read : pl__str_copy(j->arena, read);
    return 0;
}

/* --- numbers and literals ---------------------------------------------------------------------- */

static inline bool is_digit(const char *p, const char *end)
{
    return p < end && *p >= '0' && *p <= '9';
}

/* Behind the digits at `p`, of which there must be one; NULL with an error. */
static const char *digits_end(struct pl_json *j, const char *p)
{
    if (!is_digit(p, j->end)) {
        unexpected(j, p, "a digit");
        return NULL;
    }
    while (is_digit(p, j->end))
        p++;
    return p;
}

/* Behind the number at `p`; NULL with an error. `*whole`: no fraction, no exponent. */
static const char *number_end(struct pl_json *j, const char *p, bool *whole)
{
    const char *start = p;

    if (*p == '-')
        p++;
    const char *first = p;
    if (!(p = digits_end(j, p)))
        return NULL;
    if (*first == '0' && p - first > 1) {
        INVALID(j, start, "number with a leading zero");
        return NULL;
    }
    *whole = true;
    if (p < j->end && *p == '.') {
        *whole = false;
        if (!(p = digits_end(j, p + 1)))
            return NULL;
    }
    if (p < j->end && (*p | 0x20) == 'e') {
        *whole = false;
        p++;
        if (p < j->end && (*p == '+' || *p == '-'))
            p++;
        if (!(p = digits_end(j, p)))
            return NULL;
    }
    return p;
}

/* The whole number between `p` and `end`, checked before. False when it does not fit. */
static bool whole_to_i64(const char *p, const char *end, int64_t *value)
{
    bool negative = *p == '-';
    struct pl_str digits = { p + negative, (size_t)(end - p) - negative };
    uint64_t size;

    if (!pl__str_to_u64(digits, &size) || size > (uint64_t)INT64_MAX + negative)
        return false;
    if (!negative)
        *value = (int64_t)size;
    else
        *value = size ? -(int64_t)(size - 1) - 1 : 0;
    return true;
}

int pl__json_int(struct pl_json *j, int64_t *value)
{
    const char *p = pl__skip_space(j->at, j->end);
    bool whole;

    if (p == j->end || (*p != '-' && !is_digit(p, j->end)))
        return unexpected(j, p, "a whole number");
    const char *end = number_end(j, p, &whole);
    if (!end)
        return -1;
    int shown = end - p < NUMBER_BYTES_SHOWN ? (int)(end - p) : NUMBER_BYTES_SHOWN;
    if (!whole)
        return INVALID(j, p, "expected a whole number, found %.*s", shown, p);
    if (!whole_to_i64(p, end, value))
        return INVALID(j, p, "whole number out of range: %.*s", shown, p);
    j->at = end;
    return 0;
}

/* Behind the literal that must stand at `p`; NULL with an error. */
static const char *literal_end(struct pl_json *j, const char *p, struct pl_str literal)
{
    if (bytes_start_with(p, j->end, literal))
        return p + literal.len;
    for (size_t i = 0; i < literal.len; i++) {
        if (p + i == j->end) {
            truncated(j);
            return NULL;
        }
        if (p[i] != literal.ptr[i])
            break;
    }
    INVALID(j, p, "bad literal: \"%s\" was begun", literal.ptr);
    return NULL;
}

int pl__json_bool(struct pl_json *j, bool *value)
{
    const char *p = pl__skip_space(j->at, j->end);

    if (p == j->end || (*p != 't' && *p != 'f'))
        return unexpected(j, p, "true or false");
    bool is_true = *p == 't';
    p = literal_end(j, p, is_true ? PL_STR("true") : PL_STR("false"));
    if (!p)
        return -1;
    *value = is_true;
    j->at = p;
    return 0;
}

/* Steps over a null: 1; 0 when something else comes next; -1 with an error. */
static inline int null_take(struct pl_json *j)
{
    const char *p = pl__skip_space(j->at, j->end);

    j->at = p;
    if (p == j->end || *p != 'n')
        return 0;
    p = literal_end(j, p, PL_STR("null"));
    if (!p)
        return -1;
    j->at = p;
    return 1;
}

/* --- walking ----------------------------------------------------------------------------------- */

bool pl__json_at_end(struct pl_json *j)
{
    j->at = pl__skip_space(j->at, j->end);
    return j->at == j->end;
}

int pl__json_peek(struct pl_json *j)
{
    const char *p = pl__skip_space(j->at, j->end);

    if (p == j->end)
        return truncated(j);
    j->at = p;
    switch (*p) {
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case '"':
        return JSON_STRING;
    case 't':
        return JSON_TRUE;
    case 'f':
        return JSON_FALSE;
    case 'n':
        return JSON_NULL;
    default:
        break;
    }
    if (*p == '-' || is_digit(p, j->end))
        return JSON_NUMBER;
    return unexpected(j, p, "a value");
}

static int too_deep(struct pl_json *j, const char *p)
{
    return pl__json_error(j, p, PL_LIMIT, "nested deeper than %u levels", (unsigned)j->depth_max);
}

static inline int enter(struct pl_json *j, char bracket, const char *wanted)
{
    const char *p = pl__skip_space(j->at, j->end);

    if (p == j->end || *p != bracket)
        return unexpected(j, p, wanted);
    if (j->depth >= j->depth_max)
        return too_deep(j, p);
    j->depth++;
    j->first = true;
    j->at = p + 1;
    return 0;
}

/* Past the comma that is due, to the next key or item: 1 with `at` there, 0 when the bracket closed
 * it, -1 with an error. */
static inline int next_member(struct pl_json *j, char bracket)
{
    const char *p = pl__skip_space(j->at, j->end);

    if (p == j->end)
        return truncated(j);
    if (*p == bracket) {
        assert(j->depth > 0);
        j->depth--;
        j->first = false;
        j->at = p + 1;
        return 0;
    }
    if (!j->first) {
        if (*p != ',')
            return unexpected(j, p, bracket == '}' ? "',' or '}'" : "',' or ']'");
        p = pl__skip_space(p + 1, j->end);
        if (p < j->end && *p == bracket)
            return INVALID(j, p, "trailing comma before '%c'", bracket);
    }
    j->first = false;
    j->at = p;
    return 1;
}

/* pl__json_key(), which also tells where the key stands. */
static inline int key_next(struct pl_json *j, struct pl_str *key, const char **key_at)
{
    bool in_arena;
    int more = next_member(j, '}');

    if (more <= 0)
        return more;
    *key_at = j->at;
    if (j->at == j->end || *j->at != '"')
        return unexpected(j, j->at, "a key");
    if (string_view(j, key, &in_arena) < 0)
        return -1;
    const char *p = pl__skip_space(j->at, j->end);
    if (p == j->end || *p != ':')
        return unexpected(j, p, "':'");
    j->at = p + 1;
    return 1;
}

int pl__json_object(struct pl_json *j)
{
    return enter(j, '{', "an object");
}

int pl__json_key(struct pl_json *j, struct pl_str *key)
{
    const char *key_at;

    return key_next(j, key, &key_at);
}

int pl__json_array(struct pl_json *j)
{
    return enter(j, '[', "a list");
}

int pl__json_item(struct pl_json *j)
{
    return next_member(j, ']');
}

/* --- skipping ---------------------------------------------------------------------------------- */

/* Behind the value at `p`, which opens no object or array; NULL with an error. */
static inline const char *scalar_end(struct pl_json *j, const char *p)
{
    bool ignored;

    if (p == j->end) {
        truncated(j);
        return NULL;
    }
    switch (*p) {
    case '"':
        p = string_close(j, p + 1, &ignored);
        return p ? p + 1 : NULL;
    case 't':
        return literal_end(j, p, PL_STR("true"));
    case 'f':
        return literal_end(j, p, PL_STR("false"));
    case 'n':
        return literal_end(j, p, PL_STR("null"));
    default:
        if (*p == '-' || is_digit(p, j->end))
            return number_end(j, p, &ignored);
        unexpected(j, p, "a value");
        return NULL;
    }
}

/* From the key at `p` to its value; NULL with an error. */
static inline const char *key_skip(struct pl_json *j, const char *p)
{
    bool ignored;

    if (p == j->end || *p != '"') {
        unexpected(j, p, "a key");
        return NULL;
    }
    p = string_close(j, p + 1, &ignored);
    if (!p)
        return NULL;
    p = pl__skip_space(p + 1, j->end);
    if (p == j->end || *p != ':') {
        unexpected(j, p, "':'");
        return NULL;
    }
    return pl__skip_space(p + 1, j->end);
}

/* What is open while a container is skipped: a bit a level, set for objects. */
struct open_levels {
    uint64_t objects[JSON_DEPTH_LIMIT / 64];
    uint32_t depth;
    bool in_object; /* the innermost */
};

static inline void level_push(struct open_levels *open, bool object)
{
    uint64_t bit = UINT64_C(1) << open->depth % 64;
    uint64_t *word = &open->objects[open->depth / 64];
    uint64_t below = open->depth % 64 ? *word : 0; /* words are not cleared beforehand */

    *word = object ? below | bit : below & ~bit;
    open->depth++;
    open->in_object = object;
}

/* False when that was the outermost. */
static inline bool level_pop(struct open_levels *open)
{
    if (--open->depth == 0)
        return false;
    uint32_t outer = open->depth - 1;
    open->in_object = open->objects[outer / 64] >> outer % 64 & 1;
    return true;
}

/* `p` is behind a value: closes what closes here, takes the comma. To the next member; or, with
 * depth 0, behind the outermost bracket. NULL with an error. */
static inline const char *after_value(struct pl_json *j, struct open_levels *open, const char *p)
{
    for (;;) {
        p = pl__skip_space(p, j->end);
        if (p == j->end) {
            truncated(j);
            return NULL;
        }
        if (*p != (open->in_object ? '}' : ']'))
            break;
        p++;
        if (!level_pop(open))
            return p;
    }
    if (*p != ',') {
        unexpected(j, p, open->in_object ? "',' or '}'" : "',' or ']'");
        return NULL;
    }
    p = pl__skip_space(p + 1, j->end);
    if (p < j->end && *p == (open->in_object ? '}' : ']')) {
        INVALID(j, p, "trailing comma before '%c'", *p);
        return NULL;
    }
    return p;
}

/* Skips the object or array that opens at `p`. A loop with its own bit stack, since unknown fields
 * are most of what we read and calls a level would show. */
static int skip_container(struct pl_json *j, const char *p)
{
    struct open_levels open;
    const uint32_t levels_max = j->depth_max - j->depth;

    open.depth = 0;
    open.in_object = false;
    for (;;) {
        bool value_read; /* or what it opens has closed at once */
        if (p < j->end && (*p == '{' || *p == '[')) {
            if (open.depth >= levels_max)
                return too_deep(j, p);
            level_push(&open, *p == '{');
            p = pl__skip_space(p + 1, j->end);
            value_read = p < j->end && *p == (open.in_object ? '}' : ']');
        } else {
            p = scalar_end(j, p);
            if (!p)
                return -1;
            value_read = true;
        }
        if (value_read) {
            p = after_value(j, &open, p);
            if (!p)
                return -1;
            if (open.depth == 0)
                break;
        }
        if (open.in_object && !(p = key_skip(j, p)))
            return -1;
    }
    j->at = p;
    return 0;
}

int pl__json_skip(struct pl_json *j)
{
    const char *p = pl__skip_space(j->at, j->end);

    if (p < j->end && (*p == '{' || *p == '['))
        return skip_container(j, p);
    p = scalar_end(j, p);
    if (!p)
        return -1;
    j->at = p;
    return 0;
}

int pl__json_raw(struct pl_json *j, struct pl_str *value)
{
    const char *p = pl__skip_space(j->at, j->end);

    if (pl__json_skip(j) < 0)
        return -1;
    *value = (struct pl_str){ p, (size_t)(j->at - p) };
    return 0;
}

/* What is carried from block to block. */
struct fast_skip {
    uint64_t in_string; /* all ones when the block before ended inside a string */
    uint64_t escaped;   /* 1 when its last byte was a backslash that escapes the next */
};

/* The bytes that a backslash escapes, in a block with backslashes or after one. A run of them
 * escapes what follows when its length is odd; adding the starts of the runs at odd bits to the
 * runs carries out of each run and so tells, by the parity of where it ends, which are odd. */
static uint64_t escaped_bytes(struct fast_skip *s, uint64_t backslashes)
{
    const uint64_t even_bits = PL__EACH_BYTE(0x55);

    backslashes &= ~s->escaped;
    uint64_t follows = backslashes << 1 | s->escaped;
    uint64_t odd_starts = backslashes & ~even_bits & ~follows;
    uint64_t runs_from_even = odd_starts + backslashes;
    s->escaped = runs_from_even < odd_starts;
    return (even_bits ^ runs_from_even << 1) & follows;
}

/* The bits of a block that lie inside strings. */
static inline uint64_t string_bytes(struct fast_skip *s, const struct pl__block *b)
{
    uint64_t quotes = b->quotes;

    if (b->backslashes | s->escaped)
        quotes &= ~escaped_bytes(s, b->backslashes);
    uint64_t inside = pl__prefix_xor(quotes) ^ s->in_string;
    s->in_string = 0 - (inside >> 63);
    return inside;
}

/* Walks the brackets of the block in which the value may end. The index behind its closing bracket,
 * or 0 when it does not end here. */
static unsigned end_in_block(uint64_t opens, uint64_t closes, uint32_t *depth)
{
    for (uint64_t both = opens | closes; both; both &= both - 1) {
        if (both & (0 - both) & opens)
            ++*depth;
        else if (--*depth == 0)
            return (unsigned)__builtin_ctzll(both) + 1;
    }
    return 0;
}

/* Skips the container whose opening bracket is before `p`, 64 bytes at a time. A block with fewer
 * closing brackets than are open cannot hold the end, so its brackets need only be counted. */
static int skip_container_fast(struct pl_json *j, const char *p)
{
    struct fast_skip s = { 0, 0 };
    const uint32_t depth_max = j->depth_max - j->depth;
    uint32_t depth = 1;

    while (p < j->end) {
        char tail[PL__BLOCK_BYTES];
        size_t left = (size_t)(j->end - p);
        const char *from = p;
        if (left < sizeof tail) {
            memset(tail, ' ', sizeof tail);
            memcpy(tail, p, left);
            from = tail;
        }
        struct pl__block b = pl__block_load(from);
        uint64_t outside = ~string_bytes(&s, &b);
        uint64_t opens = b.opens & outside, closes = b.closes & outside;
        uint32_t close_count = pl__bit_count(closes);
        if (close_count < depth) {
            depth += pl__bit_count(opens) - close_count;
        } else {
            unsigned end = end_in_block(opens, closes, &depth);
            if (end) {
                j->at = p + end;
                return 0;
            }
        }
        /* Only as each block ends: exact enough to bound, and never refuses what fits. */
        if (depth > depth_max)
            return too_deep(j, p);
        p += left < sizeof tail ? left : sizeof tail;
    }
    return truncated(j);
}

int pl__json_skip_fast(struct pl_json *j)
{
    const char *p = pl__skip_space(j->at, j->end);

    if (p == j->end || (*p != '{' && *p != '['))
        return pl__json_skip(j);
    if (j->depth >= j->depth_max)
        return too_deep(j, p);
    return skip_container_fast(j, p + 1);
}

/* --- tables of fields -------------------------------------------------------------------------- */

/* The rows that an object being read may match, and from where in their paths. */
struct row_range {
    const struct pl_field *begin;
    const struct pl_field *end;
    uint32_t step; /* where in the paths the names of this level start */
    bool literal;  /* F_MAP: a path is one name, dots and all */
};

static int decode_object(struct pl_json *j, struct row_range rows, char *destination);

static int decode_shape(struct pl_json *j, const struct pl_shape *shape, bool literal,
                        void *destination)
{
    assert(shape->field_count <= 64);
    struct row_range rows = { .begin = shape->fields,
                              .end = shape->fields + shape->field_count,
                              .literal = literal };
    return decode_object(j, rows, destination);
}

/* True when the next step of the row's path is `key`. */
static inline bool row_matches(const struct pl_field *f, const struct row_range *rows,
                               struct pl_str key)
{
    const char *name = f->path + rows->step;
    size_t left = f->path_len - rows->step;

    if (f->kind == F_PREFIX)
        return key.len >= left && memcmp(name, key.ptr, left) == 0;
    if (*name != *key.ptr || left < key.len || memcmp(name, key.ptr, key.len) != 0)
        return false;
    if (rows->literal)
        return left == key.len;
    if (left > key.len && name[key.len] != '.')
        return false;
    /* A key with a dot of its own is no path of several steps. */
    return !memchr(key.ptr, '.', key.len);
}

/* The first of the rows that `key` leads to, or NULL. */
static inline const struct pl_field *row_find(const struct row_range *rows, struct pl_str key)
{
    if (key.len == 0)
        return NULL;
    for (const struct pl_field *f = rows->begin; f < rows->end; f++) {
        if (row_matches(f, rows, key))
            return f;
    }
    return NULL;
}

/* The rows whose path goes on behind the step that ends at `step_end` of f's path. */
static struct row_range rows_below(const struct row_range *rows, const struct pl_field *f,
                                   uint32_t step_end)
{
    struct row_range below = { .begin = f, .step = step_end + 1 };
    const char *prefix = f->path;

    if (f->path_len == step_end)
        below.begin++;
    for (below.end = below.begin; below.end < rows->end; below.end++) {
        const struct pl_field *row = below.end;
        if (row->path_len <= step_end || row->path[step_end] != '.' ||
            memcmp(row->path, prefix, step_end) != 0)
            break;
    }
    return below;
}

static int decode_time(struct pl_json *j, int64_t *ms)
{
    struct pl_str text;
    bool in_arena;

    if (string_start(j, "a time") < 0)
        return -1;
    const char *start = j->at;
    if (string_view(j, &text, &in_arena) < 0)
        return -1;
    if (text.len == 0)
        return 0;
    if (!pl__time_parse(text, ms))
        return INVALID(j, start, "expected a time like 2026-11-15T02:00:00Z");
    return 0;
}

/* One item of a list: by shape, or (no shape) a string. */
static int decode_item(struct pl_json *j, const struct pl_field *f, void *item)
{
    if (f->kind == F_STRINGS)
        return pl__json_string(j, item);
    return decode_shape(j, f->shape, false, item);
}

/* A list being read; `items` moves as it grows. */
struct growing {
    char *items;
    size_t item_size;
    uint32_t count;
    uint32_t capacity;
    uint32_t count_max;
};

/* A zeroed item behind the last. */
static void *item_room(struct growing *g, struct pl_arena *arena)
{
    if (g->count == g->capacity) {
        uint32_t capacity = g->capacity ? g->capacity * 2 : LIST_CAPACITY_FIRST;
        g->items =
            pl__arena_grow(arena, g->items, g->capacity * g->item_size, capacity * g->item_size);
        g->capacity = capacity;
    }
    return g->items + g->count * g->item_size;
}

static int item_add(struct pl_json *j, const struct pl_field *f, struct growing *g)
{
    if (g->count == g->count_max)
        return pl__json_error(j, j->at, PL_LIMIT, "more than %u items", (unsigned)g->count_max);
    void *item = item_room(g, j->arena);
    if (decode_item(j, f, item) < 0)
        return -1;
    if (f->shape && f->shape->keep && !f->shape->keep(item))
        memset(item, 0, g->item_size);
    else
        g->count++;
    return 0;
}

static int decode_list(struct pl_json *j, const struct pl_field *f, void *destination)
{
    struct pl_json_path here = { .parent = j->path, .is_index = true };
    struct growing g = {
        .item_size = f->kind == F_STRINGS ? sizeof(struct pl_str) : f->shape->size,
        .count_max = f->shape && f->shape->count_max ? f->shape->count_max : COUNT_DEFAULT,
    };
    int more;

    if (enter(j, '[', "a list") < 0)
        return -1;
    j->path = &here;
    while ((more = next_member(j, ']')) > 0) {
        if (item_add(j, f, &g) < 0) {
            more = -1;
            break;
        }
        here.index++;
    }
    j->path = here.parent;
    if (more < 0)
        return -1;
    /* By memcpy, for the list there has a type of its own (PL_LIST). */
    struct pl_list list = { .items = g.items, .count = g.count, .present = true };
    memcpy(destination, &list, sizeof list);
    return 0;
}

/* Reads the value of a row, which is not null. */
static int decode_value(struct pl_json *j, const struct pl_field *f, void *destination)
{
    switch (f->kind) {
    case F_STR:
        return pl__json_string(j, destination);
    case F_BOOL:
        return pl__json_bool(j, destination);
    case F_INT:
        return pl__json_int(j, destination);
    case F_TIME:
        return decode_time(j, destination);
    case F_PRESENT:
    case F_PREFIX:
        *(bool *)destination = true;
        return pl__json_skip(j);
    case F_OBJECT:
    case F_MAP:
        return decode_shape(j, f->shape, f->kind == F_MAP, destination);
    case F_LIST:
    case F_STRINGS:
        return decode_list(j, f, destination);
    case F_CUSTOM:
        return f->read(j, destination);
    case F_SKIP_FAST:
        return pl__json_skip_fast(j);
    }
    assert(f->kind <= F_SKIP_FAST);
    return -1;
}

/* Reads the value of a key that leads to row `f`: the value of that row, or an object in which the
 * path goes on. */
static int decode_row(struct pl_json *j, const struct row_range *rows, const struct pl_field *f,
                      uint32_t key_len, char *destination)
{
    uint32_t step_end = rows->step + key_len;
    bool ends_here = f->path_len == step_end;
    int was_null = null_take(j);

    if (was_null)
        return was_null < 0 ? -1 : 0;
    if (ends_here && f->kind != F_PRESENT)
        return decode_value(j, f, destination + f->offset);

    struct row_range below = rows_below(rows, f, step_end);
    if (below.begin == below.end)
        return decode_value(j, f, destination + f->offset);
    if (ends_here) {
        bool *present = (void *)(destination + f->offset);
        *present = true;
    }
    return decode_object(j, below, destination);
}

static int decode_object(struct pl_json *j, struct row_range rows, char *destination)
{
    struct pl_json_path here = { .parent = j->path };
    uint64_t seen = 0; /* a bit for each row that a key has led to first */
    struct pl_str key = { "", 0 };
    const char *key_at = j->at;
    int more;

    if (enter(j, '{', "an object") < 0)
        return -1;
    j->path = &here;
    while ((more = key_next(j, &key, &key_at)) > 0) {
        const struct pl_field *f = row_find(&rows, key);
        if (f && f->kind == F_PREFIX) {
            bool *some = (void *)(destination + f->offset);
            *some = true;
            f = NULL; /* several keys may start alike: not a row to meet only once */
        }
        if (!f) {
            if (pl__json_skip(j) < 0)
                break;
            continue;
        }
        uint64_t bit = UINT64_C(1) << (f - rows.begin);
        if (seen & bit) {
            INVALID(j, key_at, "duplicate key \"%.*s\"", PL_STR_ARG(key));
            break;
        }
        seen |= bit;
        here.name = (struct pl_str){ f->path + rows.step, key.len };
        if (decode_row(j, &rows, f, (uint32_t)key.len, destination) < 0)
            break;
        here.name.len = 0;
    }
    j->path = here.parent;
    return more == 0 ? 0 : -1;
}

int pl__json_decode(struct pl_json *j, const struct pl_shape *shape, void *destination)
{
    return decode_shape(j, shape, false, destination);
}
