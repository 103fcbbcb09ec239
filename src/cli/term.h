/* cli/term.h - what the output goes to: width, colours, characters. Asked once, at the start. */
#ifndef PL_CLI_TERM_H
#define PL_CLI_TERM_H

#include "base/buf.h"

enum pl_color {
    COLOR_PLAIN,
    COLOR_GREEN,
    COLOR_YELLOW,
    COLOR_RED,
    COLOR_BOLD,
};

struct pl_term {
    size_t width; /* columns to wrap at */
    bool color;
    bool utf8; /* tree characters from Unicode, else ASCII */
};

/* `color_mode` is "auto", "always" or "never". */
void pl__term_init(struct pl_term *term, const char *color_mode);

/* Adds text in a colour; the text is made safe for a terminal (cli/text.h). */
void pl__term_add(const struct pl_term *term, struct pl_buf *out, enum pl_color color,
                  struct pl_str text);

#endif
