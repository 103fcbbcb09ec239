#include "cli/term.h"

#include <stdlib.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/text.h"

enum { WIDTH_DEFAULT = 80, WIDTH_MIN = 40, WIDTH_MAX = 1000 };

static bool environment_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

static bool wants_color(const char *mode)
{
    const char *terminal = getenv("TERM");

    if (environment_set("NO_COLOR"))
        return false;
    if (strcmp(mode, "auto") != 0)
        return strcmp(mode, "always") == 0;
    return isatty(STDOUT_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
}

/* COLUMNS comes first, so that a script or a test can choose. */
static size_t find_width(void)
{
    struct winsize size;
    uint64_t columns = 0;

    if (environment_set("COLUMNS"))
        pl__str_to_u64(pl__str(getenv("COLUMNS")), &columns);
    if (columns == 0 && isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        columns = size.ws_col;
    if (columns == 0)
        return WIDTH_DEFAULT;
    if (columns < WIDTH_MIN)
        return WIDTH_MIN;
    return columns > WIDTH_MAX ? WIDTH_MAX : (size_t)columns;
}

/* The first of these that is set names the locale; setlocale() would only change how libc works. */
static bool locale_is_utf8(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *locale = getenv(names[i]);
        if (!locale || !*locale)
            continue;
        const char *charset = strchr(locale, '.');
        return charset &&
               (strncasecmp(charset, ".UTF-8", 6) == 0 || strncasecmp(charset, ".UTF8", 5) == 0);
    }
    return false;
}

void pl__term_init(struct pl_term *term, const char *color_mode)
{
    *term = (struct pl_term){
        .width = find_width(),
        .color = wants_color(color_mode ? color_mode : "auto"),
        .utf8 = locale_is_utf8(),
    };
}

void pl__term_add(const struct pl_term *term, struct pl_buf *out, enum pl_color color,
                  struct pl_str text)
{
    static const char *const codes[] = {
        [COLOR_GREEN] = "\x1b[32m",
        [COLOR_YELLOW] = "\x1b[33m",
        [COLOR_RED] = "\x1b[31m",
        [COLOR_BOLD] = "\x1b[1m",
    };

    if (!term->color || color == COLOR_PLAIN || text.len == 0) {
        pl__text_add(out, text);
        return;
    }
    pl__buf_add(out, pl__str(codes[color]));
    pl__text_add(out, text);
    pl__buf_add_lit(out, "\x1b[0m");
}
