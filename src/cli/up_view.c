#include "cli/up_view.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/time.h"
#include "cli/describe.h"
#include "cli/text.h"

enum {
    FRAME_MS = 100,
    HEIGHT_DEFAULT = 24,
    TRANSITIONS_SHOWN = 8,
    SAID_SHOWN = 12,
    SAID_BYTES = 256,
    CLUSTERS_SHOWN_MAX = 50, /* in a picture: more than a screen has lines for */
};

struct pl_view {
    struct pl_cli *cli;
    bool screen;
    struct pl_arena arena; /* what lives as long */
    struct pl_arena scratch;
    struct pl_str heading;
    char said[SAID_SHOWN][SAID_BYTES]; /* a ring */
    size_t said_total;
    uint64_t drawn_ms;
};

struct pl_view *pl__view_new(struct pl_cli *cli, struct pl_str heading)
{
    struct pl_view *v = calloc(1, sizeof *v);

    if (!v)
        abort();
    v->cli = cli;
    v->screen = isatty(STDOUT_FILENO);
    pl__arena_init(&v->arena, NULL, 0);
    pl__arena_init(&v->scratch, NULL, 0);
    v->heading = pl__str_copy(&v->arena, heading);
    if (v->screen)
        pl__buf_add_lit(&cli->out.buf, "\x1b[H\x1b[2J");
    else
        pl__buf_add(&cli->out.buf, heading);
    return v;
}

void pl__view_free(struct pl_view *v)
{
    if (!v)
        return;
    pl__arena_release(&v->arena);
    pl__arena_release(&v->scratch);
    free(v);
}

bool pl__view_is_screen(const struct pl_view *v)
{
    return v->screen;
}

void pl__view_leave(struct pl_view *v)
{
    v->screen = false;
}

/* --- lines ---------------------------------------------------------------------------------------- */

static enum pl_color status_color(enum pl_status status, bool negative)
{
    if (status == PL_STATUS_UNKNOWN)
        return COLOR_YELLOW;
    return (status == PL_STATUS_TRUE) != negative ? COLOR_GREEN : COLOR_RED;
}

/* "12:00:03 KubeadmControlPlane/demo-1-cp EtcdClusterHealthy True -> False EtcdClusterNotHealthy
 * (EtcdClusterHealthy/5, stored after 12 ms): message". */
static void add_transition(const struct pl_view *v, struct pl_buf *out,
                           const struct pl_transition *t)
{
    const struct pl_term *term = &v->cli->term;
    struct pl_buf time;

    pl__buf_init(&time, out->arena, 64);
    pl__time_add(&time, t->at_ms);
    struct pl_str stamp = pl__buf_str(&time);
    size_t date = sizeof "2026-11-15T" - 1;
    if (stamp.len > date + 1)
        stamp = (struct pl_str){ stamp.ptr + date, stamp.len - date - 1 };
    pl__buf_printf(out, "%.*s %s/", PL_STR_ARG(stamp), t->kind);
    pl__text_add(out, pl__str(t->name));
    pl__buf_printf(out, " %s ", t->type);
    if (t->from != PL_STATUS_NONE && t->from != t->to)
        pl__buf_printf(out, "%s -> ", pl_status_name(t->from));
    pl__term_add(term, out, status_color(t->to, t->negative), pl__str(pl_status_name(t->to)));
    pl__buf_add_char(out, ' ');
    pl__text_add(out, pl__str(t->reason));
    pl__buf_printf(out, " (%s", t->row);
    if (t->delay_ms >= 0)
        pl__buf_printf(out, ", stored after %lld ms", (long long)t->delay_ms);
    pl__buf_add_lit(out, "): ");
    pl__text_add(out, pl__str(t->cause));
}

void pl__view_changed(struct pl_view *v, const struct pl_transition *t)
{
    struct pl_buf line;

    if (v->screen)
        return; /* the look keeps them */
    pl__arena_reset(&v->scratch);
    pl__buf_init(&line, &v->scratch, 4096);
    add_transition(v, &line, t);
    pl__buf_add(&v->cli->out.buf, pl__buf_str(&line));
    pl__buf_add_char(&v->cli->out.buf, '\n');
}

void pl__view_say(struct pl_view *v, struct pl_str text)
{
    if (!v->screen) {
        pl__buf_add(&v->cli->out.buf, text);
        if (text.len && text.ptr[text.len - 1] != '\n')
            pl__buf_add_char(&v->cli->out.buf, '\n');
        return;
    }
    while (text.len) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end ? (size_t)(end - text.ptr) : text.len;
        size_t used = len + (end != NULL);
        size_t kept = len < SAID_BYTES ? len : SAID_BYTES - 1;
        char *to = v->said[v->said_total % SAID_SHOWN];
        if (len) {
            memcpy(to, text.ptr, kept);
            to[kept] = '\0';
            v->said_total++;
        }
        text = (struct pl_str){ text.ptr + used, text.len - used };
    }
}

/* --- a picture ------------------------------------------------------------------------------------ */

static size_t screen_height(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0)
        return size.ws_row;
    return HEIGHT_DEFAULT;
}

/* Cuts a line to what fits, colours not counted; what is cut off ends in plain. */
static struct pl_str cut(struct pl_arena *arena, struct pl_str line, size_t width)
{
    size_t columns = 0, at = 0;

    while (at < line.len) {
        if (line.ptr[at] == '\x1b') {
            while (at < line.len && line.ptr[at] != 'm')
                at++;
        } else if (((unsigned char)line.ptr[at] & 0xc0) != 0x80 && ++columns > width) {
            return pl__str_format(arena, "%.*s\x1b[0m", (int)at, line.ptr);
        }
        at++;
    }
    return line;
}

/* Up to `lines` lines of the text, each cut and cleared to its end. How many were there. */
static size_t put_lines(struct pl_view *v, struct pl_str text, size_t lines)
{
    struct pl_buf *out = &v->cli->out.buf;
    size_t count = 0;

    while (text.len && count < lines) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end ? (size_t)(end - text.ptr) : text.len;
        pl__buf_add(out, cut(&v->scratch, (struct pl_str){ text.ptr, len }, v->cli->term.width));
        pl__buf_add_lit(out, "\x1b[K\n");
        text = (struct pl_str){ text.ptr + len + (end != NULL), text.len - len - (end != NULL) };
        count++;
    }
    return count;
}

/* Clusters that call for attention come first: with many of them the others are not seen. */
static void order_clusters(struct pl_describe *d)
{
    struct pl_describe_node *calling = NULL, *calm = NULL;
    struct pl_describe_node **calling_end = &calling, **calm_end = &calm;
    size_t count = 0;

    for (struct pl_describe_node *n = d->clusters, *next; n; n = next) {
        struct pl_describe_node ***end = n->calls ? &calling_end : &calm_end;
        next = n->next;
        n->next = NULL;
        **end = n;
        *end = &n->next;
    }
    *calling_end = calm;
    d->clusters = calling ? calling : calm;
    for (struct pl_describe_node *n = d->clusters; n; n = n->next) {
        if (++count == CLUSTERS_SHOWN_MAX)
            n->next = NULL;
    }
}

/* The tree, as describe prints it. What is in the output already stays out of it. */
static struct pl_str draw_tree(struct pl_view *v, const struct pl_look *look)
{
    struct pl_cli *cli = v->cli;
    struct pl_buf saved = cli->out.buf;
    struct pl_describe d = { .cli = cli,
                             .scratch = &v->scratch,
                             .first = true,
                             .report = pl__look_report(look),
                             .snapshot = pl__look_snapshot(look) };

    pl__describe_build(&d);
    if (!d.clusters)
        return PL_STR("");
    order_clusters(&d);
    pl__buf_init(&cli->out.buf, &v->scratch, SIZE_MAX / 4);
    pl__describe_table(&d);
    struct pl_str text = pl__buf_str(&cli->out.buf);
    cli->out.buf = saved;
    /* Its first line says where the snapshot came from: here. */
    const char *end = memchr(text.ptr, '\n', text.len);
    size_t skip = end ? (size_t)(end - text.ptr) + 1 : 0;
    return (struct pl_str){ text.ptr + skip, text.len - skip };
}

static struct pl_str draw_below(struct pl_view *v, const struct pl_look *look, size_t room)
{
    size_t said = v->said_total < SAID_SHOWN ? v->said_total : SAID_SHOWN;
    size_t changed = pl__look_transition_count(look);
    struct pl_buf text;

    changed = changed < TRANSITIONS_SHOWN ? changed : TRANSITIONS_SHOWN;
    changed = changed < room * 2 / 3 ? changed : room * 2 / 3;
    if (said + changed + 1 > room)
        said = room > changed + 1 ? room - changed - 1 : 0;
    pl__buf_init(&text, &v->scratch, SIZE_MAX / 4);
    for (size_t i = changed; i > 0; i--) {
        add_transition(v, &text, pl__look_transition(look, i - 1));
        pl__buf_add_char(&text, '\n');
    }
    pl__buf_add_char(&text, '\n');
    for (size_t i = said; i > 0; i--) {
        pl__buf_printf(&text, "%s%s\n", v->said[(v->said_total - i) % SAID_SHOWN],
                       v->cli->term.color ? "\x1b[0m" : "");
    }
    return pl__buf_str(&text);
}

bool pl__view_draw(struct pl_view *v, const struct pl_look *look, struct pl_str status,
                   uint64_t mono_ms)
{
    struct pl_buf *out = &v->cli->out.buf;
    size_t height = screen_height();

    if (!v->screen || !pl__look_report(look))
        return true;
    if (v->drawn_ms && mono_ms - v->drawn_ms < FRAME_MS)
        return false;
    v->drawn_ms = mono_ms;
    pl__arena_reset(&v->scratch);
    status = pl__str_copy(&v->scratch, status);
    struct pl_str tree = draw_tree(v, look);
    struct pl_str below = draw_below(v, look, height / 3);
    size_t below_lines = 0;
    for (size_t i = 0; i < below.len; i++)
        below_lines += below.ptr[i] == '\n';
    /* The last line of a screen stays free: a newline there would scroll. */
    size_t left = height - 1;
    pl__buf_add_lit(out, "\x1b[H");
    left -= put_lines(v, v->heading, left);
    left -= put_lines(v, status, left);
    put_lines(v, tree, left > below_lines + 1 ? left - below_lines - 1 : 0);
    pl__buf_add_lit(out, "\x1b[K\n");
    put_lines(v, below, left);
    pl__buf_add_lit(out, "\x1b[J");
    return true;
}
