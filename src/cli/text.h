/* cli/text.h - text for people: made safe for a terminal, padded, wrapped.
 *
 * What a snapshot says may hold anything, an escape sequence that clears the screen too. It goes
 * through pl__text_add(), which writes control characters as \x1b; newlines stay. The functions
 * that measure and wrap then know that every escape sequence they meet is one of our colours. */
#ifndef PL_CLI_TEXT_H
#define PL_CLI_TEXT_H

#include "base/buf.h"

/* Adds text from outside, control characters but newlines made visible. */
void pl__text_add(struct pl_buf *out, struct pl_str text);

/* Columns that safe text takes: code points, colours not counted. */
size_t pl__text_width(struct pl_str text);

void pl__text_spaces(struct pl_buf *out, size_t count);

/* Adds text from outside and fills it up with spaces to `width` columns. */
void pl__text_pad(struct pl_buf *out, struct pl_str text, size_t width);

/* How to break lines. */
struct pl_wrap {
    struct pl_str first; /* stands before the first line */
    struct pl_str rest;  /* before every other */
    size_t width;        /* columns in all; SIZE_MAX: only at newlines */
};

/* Adds safe text, wrapped at spaces, with a newline at its end. A line that starts with spaces or a
 * bullet goes on below its first word. Words longer than a line stay whole: names get copied. */
void pl__text_wrap(struct pl_buf *out, struct pl_str text, struct pl_wrap wrap);

/* The same for text from outside, every line indented. */
void pl__text_block(struct pl_buf *out, struct pl_str text, size_t indent, size_t width);

/* 1234567 as "1,234,567". */
void pl__text_count(struct pl_buf *out, uint64_t count);

#endif
