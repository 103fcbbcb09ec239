#include "cli/text.h"

/* C0 and DEL are one byte; the C1 controls are C2 80 to C2 9F in UTF-8. */
static bool is_control(const char *at, const char *end)
{
    unsigned char c = (unsigned char)*at;

    if (c == 0xC2 && at + 1 < end)
        return (unsigned char)at[1] >= 0x80 && (unsigned char)at[1] < 0xA0;
    return (c < 0x20 && c != '\n') || c == 0x7F;
}

void pl__text_add(struct pl_buf *out, struct pl_str text)
{
    if (text.len == 0)
        return; /* ptr may be NULL */

    const char *end = text.ptr + text.len;
    const char *start = text.ptr;

    for (const char *at = text.ptr; at < end; at++) {
        if (!is_control(at, end))
            continue;
        pl__buf_add(out, (struct pl_str){ start, (size_t)(at - start) });
        at += (unsigned char)*at == 0xC2;
        pl__buf_printf(out, "\\x%02x", (unsigned)(unsigned char)*at);
        start = at + 1;
    }
    if (start < end)
        pl__buf_add(out, (struct pl_str){ start, (size_t)(end - start) });
}

/* Behind the colour sequence that starts here, or `at` itself. */
static const char *skip_color(const char *at, const char *end)
{
    if (*at != '\x1b')
        return at;
    while (at < end && *at != 'm')
        at++;
    return at < end ? at + 1 : end;
}

size_t pl__text_width(struct pl_str text)
{
    const char *end = text.len ? text.ptr + text.len : text.ptr;
    size_t width = 0;

    for (const char *at = text.ptr; at < end;) {
        const char *behind = skip_color(at, end);
        if (behind > at) {
            at = behind;
            continue;
        }
        width += ((unsigned char)*at & 0xC0) != 0x80;
        at++;
    }
    return width;
}

void pl__text_spaces(struct pl_buf *out, size_t count)
{
    while (count--)
        pl__buf_add_char(out, ' ');
}

void pl__text_pad(struct pl_buf *out, struct pl_str text, size_t width)
{
    size_t start = out->len;

    pl__text_add(out, text);
    size_t used = pl__text_width((struct pl_str){ out->data + start, out->len - start });
    if (used < width)
        pl__text_spaces(out, width - used);
}

/* Where the first word of a line starts, behind its indentation and bullet. */
static size_t hanging_indent(struct pl_str line)
{
    size_t at = 0;

    while (at < line.len && line.ptr[at] == ' ')
        at++;
    if (at + 1 < line.len && (line.ptr[at] == '*' || line.ptr[at] == '-') &&
        line.ptr[at + 1] == ' ')
        at += 2;
    return at < line.len ? at : 0;
}

static struct pl_str cut_line(struct pl_str *text)
{
    const char *newline = text->len ? memchr(text->ptr, '\n', text->len) : NULL;
    struct pl_str line = { text->ptr, newline ? (size_t)(newline - text->ptr) : text->len };
    size_t taken = line.len + (newline != NULL);

    *text = (struct pl_str){ text->ptr + taken, text->len - taken };
    return line;
}

/* The next word with the spaces before it. */
static struct pl_str cut_word(struct pl_str *line)
{
    size_t at = 0;

    while (at < line->len && line->ptr[at] == ' ')
        at++;
    while (at < line->len && line->ptr[at] != ' ')
        at++;
    struct pl_str word = { line->ptr, at };
    *line = (struct pl_str){ line->ptr + at, line->len - at };
    return word;
}

static struct pl_str trim_left(struct pl_str s)
{
    while (s.len && *s.ptr == ' ')
        s = (struct pl_str){ s.ptr + 1, s.len - 1 };
    return s;
}

/* One line of the text onto as many as it takes. */
static void wrap_line(struct pl_buf *out, struct pl_str line, struct pl_wrap wrap)
{
    size_t hang = hanging_indent(line);
    size_t hang_width = pl__text_width((struct pl_str){ line.ptr, hang });
    size_t column = pl__text_width(wrap.first) + hang_width;
    bool fresh = true; /* no word on this output line yet */

    pl__buf_add(out, wrap.first);
    pl__buf_add(out, (struct pl_str){ line.ptr, hang });
    line = (struct pl_str){ line.ptr + hang, line.len - hang };
    while (line.len) {
        struct pl_str word = cut_word(&line);
        if (!fresh && column + pl__text_width(word) > wrap.width) {
            pl__buf_add_char(out, '\n');
            pl__buf_add(out, wrap.rest);
            pl__text_spaces(out, hang_width);
            column = pl__text_width(wrap.rest) + hang_width;
            word = trim_left(word);
        }
        pl__buf_add(out, word);
        column += pl__text_width(word);
        fresh = false;
    }
    pl__buf_add_char(out, '\n');
}

void pl__text_wrap(struct pl_buf *out, struct pl_str text, struct pl_wrap wrap)
{
    do {
        wrap_line(out, cut_line(&text), wrap);
        wrap.first = wrap.rest;
    } while (text.len);
}

static bool is_safe(struct pl_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (is_control(text.ptr + i, text.ptr + text.len))
            return false;
    return true;
}

void pl__text_block(struct pl_buf *out, struct pl_str text, size_t indent, size_t width)
{
    static const char spaces[] = "                                ";
    struct pl_str left = { spaces, indent < sizeof spaces ? indent : sizeof spaces - 1 };
    struct pl_wrap wrap = { left, left, width };
    struct pl_arena arena;
    struct pl_buf safe;

    if (is_safe(text)) {
        pl__text_wrap(out, text, wrap);
        return;
    }
    pl__arena_init(&arena, NULL, 4096);
    pl__buf_init(&safe, &arena, SIZE_MAX / 4);
    pl__text_add(&safe, text);
    pl__text_wrap(out, pl__buf_str(&safe), wrap);
    pl__arena_release(&arena);
}

void pl__text_count(struct pl_buf *out, uint64_t count)
{
    if (count >= 1000) {
        pl__text_count(out, count / 1000);
        pl__buf_printf(out, ",%03u", (unsigned)(count % 1000));
        return;
    }
    pl__buf_add_u64(out, count);
}
