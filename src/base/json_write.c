/* JSON and YAML out, as a stream of calls.
 *
 * Nothing is written before it is certain: an object or array in YAML shows only with its first
 * member, or as {} or [] when it closes without one. What is written is valid UTF-8 whatever comes
 * in. */
#include "base/json.h"

#include <assert.h>

#include "base/json_scan.h"
#include "base/time.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

void pl__json_writer_init(struct pl_json_writer *w, struct pl_buf *out, enum pl_json_format format)
{
    *w = (struct pl_json_writer){ .out = out, .format = format };
}

/* --- strings ----------------------------------------------------------------------------------- */

/* YAML allows fewer characters as they are than JSON: not DEL, the C1 controls, line and paragraph
 * separator, the byte order mark and U+FFFE, U+FFFF. */
static bool yaml_printable(uint32_t c)
{
    if (c < 0x20 || (c >= 0x7f && c < 0xa0))
        return false;
    return c != 0x2028 && c != 0x2029 && c != 0xfeff && c != 0xfffe && c != 0xffff;
}

/* The code point of the valid character of `len` bytes at `p`. */
static uint32_t utf8_get(const char *p, int len)
{
    const unsigned char *b = (const unsigned char *)p;

    if (len == 1)
        return b[0];
    uint32_t c = b[0] & (0x7fU >> len);
    for (int i = 1; i < len; i++)
        c = c << 6 | (b[i] & 0x3fU);
    return c;
}

static void add_unicode_escape(struct pl_buf *b, uint32_t c)
{
    static const char digits[] = "0123456789abcdef";
    char escape[6] = {
        '\\', 'u', digits[c >> 12 & 15], digits[c >> 8 & 15], digits[c >> 4 & 15], digits[c & 15]
    };

    pl__buf_add(b, (struct pl_str){ escape, sizeof escape });
}

static void add_ascii_escaped(struct pl_buf *b, char c)
{
    static const char named[] = "\"\\\b\f\n\r\t";
    static const char letters[] = "\"\\bfnrt";
    const char *at = c ? strchr(named, c) : NULL;

    if (!at) {
        add_unicode_escape(b, (unsigned char)c);
        return;
    }
    pl__buf_add_char(b, '\\');
    pl__buf_add_char(b, letters[at - named]);
}

/* Adds the character at `p`, which is not plain. Returns its length. */
static int add_odd_char(struct pl_buf *b, const char *p, const char *end, bool yaml)
{
    int len = pl__utf8_len(p, end);

    if (len <= 0) {
        pl__buf_add_lit(b, REPLACEMENT);
        return 1;
    }
    uint32_t c = utf8_get(p, len);
    if (len == 1)
        add_ascii_escaped(b, *p);
    else if (yaml && !yaml_printable(c))
        add_unicode_escape(b, c);
    else
        pl__buf_add(b, (struct pl_str){ p, (size_t)len });
    return len;
}

/* The first DEL before `end`, or `end`: JSON takes it as it is, YAML does not. */
static const char *find_del(const char *p, const char *end)
{
    const char *del = memchr(p, 0x7f, (size_t)(end - p));

    return del ? del : end;
}

/* Both formats escape alike; YAML has a few characters more to escape. */
static void add_quoted(struct pl_buf *b, struct pl_str s, bool yaml)
{
    const char *p = s.len ? s.ptr : "", *end = p + s.len;

    pl__buf_add_char(b, '"');
    while (p < end) {
        const char *odd = pl__scan_plain(p, yaml ? find_del(p, end) : end);
        pl__buf_add(b, (struct pl_str){ p, (size_t)(odd - p) });
        p = odd;
        if (p < end)
            p += add_odd_char(b, p, end, yaml);
    }
    pl__buf_add_char(b, '"');
}

/* --- strings as YAML --------------------------------------------------------------------------- */

/* True when all of it is printable UTF-8; line breaks count as printable when `lines`. */
static bool all_printable(struct pl_str s, bool lines)
{
    const char *p = s.ptr, *end = s.ptr + s.len;

    while (p < end) {
        int len = pl__utf8_len(p, end);
        if (len <= 0)
            return false;
        if (!yaml_printable(utf8_get(p, len)) && !(lines && *p == '\n'))
            return false;
        p += len;
    }
    return true;
}

static bool equal_ignoring_case(struct pl_str s, struct pl_str lower)
{
    if (s.len != lower.len)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c | 0x20);
        if (c != lower.ptr[i])
            return false;
    }
    return true;
}

/* Words that some version of YAML reads as something else than a string. */
static bool is_reserved_word(struct pl_str s)
{
    static const struct pl_str words[] = {
        PL_STR_INIT("null"), PL_STR_INIT("true"), PL_STR_INIT("false"),
        PL_STR_INIT("yes"),  PL_STR_INIT("no"),   PL_STR_INIT("on"),
        PL_STR_INIT("off"),  PL_STR_INIT("y"),    PL_STR_INIT("n"),
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (equal_ignoring_case(s, words[i]))
            return true;
    }
    return false;
}

/* Numbers in all bases, sexagesimals, timestamps: they start with a digit and have none but these
 * characters. ("10m0s" has others, so it stays plain.) */
static bool may_be_number(struct pl_str s)
{
    static const char number_chars[] = "0123456789abcdefABCDEFxXoOtTzZ_.:+- ";

    if (s.ptr[0] < '0' || s.ptr[0] > '9')
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (!memchr(number_chars, s.ptr[i], sizeof number_chars - 1))
            return false;
    }
    return true;
}

/* True when `s` reads back as this very string without quotes, in a block mapping or list. */
static bool is_plain_scalar(struct pl_str s)
{
    /* Indicators, and what begins numbers (+ - .), merges (<), defaults (=) or null (~). */
    static const char bad_first[] = "-?:,[]{}#&*!|>'\"%@`+.<=~ ";

    if (s.len == 0 || memchr(bad_first, s.ptr[0], sizeof bad_first - 1))
        return false;
    if (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == ':')
        return false;
    for (size_t i = 1; i < s.len; i++) {
        if (s.ptr[i] == ' ' && s.ptr[i - 1] == ':')
            return false;
        if (s.ptr[i] == '#' && s.ptr[i - 1] == ' ')
            return false;
    }
    return all_printable(s, false) && !is_reserved_word(s) && !may_be_number(s);
}

/* True when `s` has lines and can be a block scalar: the first line must show the indentation, and
 * spaces at the end of a line would be there without being seen. */
static bool is_block_scalar(struct pl_str s)
{
    if (s.len == 0 || !memchr(s.ptr, '\n', s.len) || s.ptr[0] == ' ' || s.ptr[0] == '\n')
        return false;
    if (s.ptr[s.len - 1] == ' ')
        return false;
    for (size_t i = 1; i < s.len; i++) {
        if (s.ptr[i] == '\n' && s.ptr[i - 1] == ' ')
            return false;
    }
    return all_printable(s, true);
}

static void add_newline(struct pl_buf *b, uint32_t indent)
{
    pl__buf_add_char(b, '\n');
    for (uint32_t i = 0; i < indent; i++)
        pl__buf_add_char(b, ' ');
}

/* "|" drops all newlines at the end but one, "|-" that one, too; "|+" keeps them. The last newline
 * is never written here: what follows begins with one. */
static void add_block_scalar(struct pl_buf *b, struct pl_str s, uint32_t indent)
{
    size_t newlines = 0;

    while (s.ptr[s.len - 1 - newlines] == '\n')
        newlines++;
    pl__buf_add_char(b, '|');
    if (newlines != 1)
        pl__buf_add_char(b, newlines ? '+' : '-');
    if (newlines)
        s.len--;
    for (const char *p = s.ptr, *end = s.ptr + s.len; p <= end;) {
        const char *line_end = memchr(p, '\n', (size_t)(end - p));
        if (!line_end)
            line_end = end;
        add_newline(b, line_end > p ? indent : 0);
        pl__buf_add(b, (struct pl_str){ p, (size_t)(line_end - p) });
        p = line_end + 1;
    }
}

/* --- the frame of a document ------------------------------------------------------------------- */

static bool in_array(const struct pl_json_writer *w)
{
    return w->depth && w->level[w->depth - 1].array;
}

/* How far the members of the innermost level are indented. In YAML a list under a key is not
 * indented against it, as kubectl has it. */
static uint32_t indent_of(const struct pl_json_writer *w)
{
    uint32_t indent = 0;

    if (w->format == JSON_PRETTY)
        return 2 * w->depth;
    for (uint32_t i = 1; i < w->depth; i++) {
        if (w->level[i - 1].array || !w->level[i].array)
            indent += 2;
    }
    return indent;
}

/* True when the first member stays on the line: at the top, and behind a "- ". */
static bool first_stays_on_line(const struct pl_json_writer *w)
{
    return w->depth == 1 || w->level[w->depth - 2].array;
}

/* What comes before a key or an item. */
static void start_member(struct pl_json_writer *w)
{
    bool was_empty = w->level[w->depth - 1].empty;

    w->level[w->depth - 1].empty = false;
    if (w->format == JSON_AS_YAML) {
        if (!was_empty || !first_stays_on_line(w))
            add_newline(w->out, indent_of(w));
        return;
    }
    if (!was_empty)
        pl__buf_add_char(w->out, ',');
    if (w->format == JSON_PRETTY)
        add_newline(w->out, indent_of(w));
}

/* What comes before any value; `opens` when it is an object or array. */
static void start_value(struct pl_json_writer *w, bool opens)
{
    assert(w->after_key || w->depth == 0 || in_array(w));
    if (in_array(w)) {
        start_member(w);
        if (w->format == JSON_AS_YAML)
            pl__buf_add_lit(w->out, "- ");
    } else if (w->after_key && w->format == JSON_AS_YAML && !opens) {
        pl__buf_add_char(w->out, ' ');
    }
    w->after_key = false;
}

static void open_level(struct pl_json_writer *w, bool array)
{
    start_value(w, true);
    assert(w->depth < JSON_WRITE_DEPTH_MAX);
    w->level[w->depth].array = array;
    w->level[w->depth].empty = true;
    w->depth++;
    if (w->format != JSON_AS_YAML)
        pl__buf_add_char(w->out, array ? '[' : '{');
}

static void close_level(struct pl_json_writer *w, bool array)
{
    assert(w->depth > 0 && in_array(w) == array && !w->after_key);
    bool empty = w->level[w->depth - 1].empty;
    bool on_line = first_stays_on_line(w);
    w->depth--;
    if (w->format == JSON_AS_YAML) {
        if (empty && !on_line)
            pl__buf_add_char(w->out, ' ');
        if (empty)
            pl__buf_add(w->out, array ? PL_STR("[]") : PL_STR("{}"));
        return;
    }
    if (w->format == JSON_PRETTY && !empty)
        add_newline(w->out, indent_of(w));
    pl__buf_add_char(w->out, array ? ']' : '}');
}

void pl__json_open_object(struct pl_json_writer *w)
{
    open_level(w, false);
}

void pl__json_close_object(struct pl_json_writer *w)
{
    close_level(w, false);
}

void pl__json_open_array(struct pl_json_writer *w)
{
    open_level(w, true);
}

void pl__json_close_array(struct pl_json_writer *w)
{
    close_level(w, true);
}

void pl__json_write_key(struct pl_json_writer *w, const char *key)
{
    pl__json_write_key_str(w, pl__str(key));
}

void pl__json_write_key_str(struct pl_json_writer *w, struct pl_str key)
{
    assert(w->depth > 0 && !in_array(w) && !w->after_key);
    start_member(w);
    if (w->format == JSON_AS_YAML && is_plain_scalar(key))
        pl__buf_add(w->out, key);
    else
        add_quoted(w->out, key, w->format == JSON_AS_YAML);
    pl__buf_add_char(w->out, ':');
    if (w->format == JSON_PRETTY)
        pl__buf_add_char(w->out, ' ');
    w->after_key = true;
}

/* --- values ------------------------------------------------------------------------------------ */

void pl__json_write_str(struct pl_json_writer *w, struct pl_str s)
{
    bool yaml = w->format == JSON_AS_YAML;

    start_value(w, false);
    if (yaml && is_plain_scalar(s))
        pl__buf_add(w->out, s);
    else if (yaml && is_block_scalar(s))
        add_block_scalar(w->out, s, indent_of(w) + 2);
    else
        add_quoted(w->out, s, yaml);
}

void pl__json_write_int(struct pl_json_writer *w, int64_t value)
{
    start_value(w, false);
    pl__buf_add_i64(w->out, value);
}

void pl__json_write_bool(struct pl_json_writer *w, bool value)
{
    start_value(w, false);
    pl__buf_add(w->out, value ? PL_STR("true") : PL_STR("false"));
}

void pl__json_write_null(struct pl_json_writer *w)
{
    start_value(w, false);
    pl__buf_add_lit(w->out, "null");
}

void pl__json_write_time(struct pl_json_writer *w, int64_t ms)
{
    start_value(w, false);
    pl__buf_add_char(w->out, '"');
    pl__time_add(w->out, ms);
    pl__buf_add_char(w->out, '"');
}

void pl__json_write_raw(struct pl_json_writer *w, struct pl_str value)
{
    assert(w->format != JSON_AS_YAML && value.len > 0);
    start_value(w, false);
    pl__buf_add(w->out, value);
}
