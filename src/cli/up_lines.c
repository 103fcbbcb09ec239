#include "cli/up_lines.h"

#include "base/time.h"
#include "cli/text.h"

enum {
    STAMP_COLUMNS = 9,    /* "12:00:03 " */
    MESSAGE_COLUMNS = 16, /* less of a message tells nobody anything */
    LINE_BYTES_MAX = 8192,
};

static enum pl_color status_color(enum pl_status status, bool negative)
{
    if (status == PL_STATUS_UNKNOWN)
        return COLOR_YELLOW;
    return (status == PL_STATUS_TRUE) != negative ? COLOR_GREEN : COLOR_RED;
}

static const char *short_kind(const char *kind)
{
    static const struct {
        const char *kind, *word;
    } words[] = { { "KubeadmControlPlane", "kcp" },
                  { "Machine", "machine" },
                  { "MachineDeployment", "md" } };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(kind, words[i].kind) == 0)
            return words[i].word;
    }
    return kind;
}

/* Of the day, in UTC. */
static void add_stamp(struct pl_buf *out, int64_t at_ms)
{
    size_t date = sizeof "2026-11-15T" - 1;
    struct pl_buf time;

    pl__buf_init(&time, out->arena, 64);
    pl__time_add(&time, at_ms);
    struct pl_str stamp = pl__buf_str(&time);
    if (stamp.len > date + 1)
        stamp = (struct pl_str){ stamp.ptr + date, stamp.len - date - 1 };
    pl__buf_printf(out, "%.*s ", PL_STR_ARG(stamp));
}

/* "True -> False", the new one in its colour. */
static void add_change(const struct pl_term *term, struct pl_buf *out,
                       const struct pl_transition *t)
{
    if (t->from != PL_STATUS_NONE && t->from != t->to)
        pl__buf_printf(out, "%s -> ", pl_status_name(t->from));
    pl__term_add(term, out, status_color(t->to, t->negative), pl__str(pl_status_name(t->to)));
}

/* "NotHealthy (EtcdClusterHealthy/5, stored after 12 ms)". */
static void add_why(struct pl_buf *out, const struct pl_transition *t)
{
    pl__text_add(out, pl__str(t->reason));
    pl__buf_printf(out, " (%s", t->row ? t->row : "changed again since");
    if (t->delay_ms >= 0)
        pl__buf_printf(out, ", stored after %lld ms", (long long)t->delay_ms);
    pl__buf_add_char(out, ')');
}

/* "12:00:03 machine/demo-1-cp-1 EtcdPodHealthy (+3)". */
static void add_who(struct pl_buf *out, const struct pl_transition *t, const char *kind,
                    size_t more)
{
    add_stamp(out, t->at_ms);
    pl__buf_printf(out, "%s/", kind);
    pl__text_add(out, pl__str(t->name));
    pl__buf_printf(out, " %s", t->type);
    if (more)
        pl__buf_printf(out, " (+%zu)", more);
}

static void add_line(const struct pl_term *term, struct pl_buf *out, const struct pl_transition *t,
                     size_t more)
{
    add_who(out, t, t->kind, more);
    pl__buf_add_char(out, ' ');
    add_change(term, out, t);
    pl__buf_add_char(out, ' ');
    add_why(out, t);
    if (t->cause[0]) {
        pl__buf_add_lit(out, ": ");
        pl__text_add(out, pl__str(t->cause));
    }
}

void pl__transition_line(const struct pl_term *term, struct pl_buf *out,
                         const struct pl_transition *t)
{
    add_line(term, out, t, 0);
}

/* The message in `room` columns, or nothing. */
static void add_message(struct pl_buf *out, const char *message, size_t room)
{
    struct pl_buf safe;

    pl__buf_init(&safe, out->arena, LINE_BYTES_MAX);
    pl__text_add(&safe, pl__str(message));
    struct pl_str text = pl__buf_str(&safe);
    bool fits = pl__text_width(text) <= room;
    if (text.len == 0 || (!fits && room < MESSAGE_COLUMNS))
        return;
    pl__buf_add_lit(out, ": ");
    if (fits) {
        pl__buf_add(out, text);
        return;
    }
    size_t at = 0;
    for (size_t columns = 0; at < text.len; at++) {
        /* A character begins here: is there room for it and the dots? */
        if (((unsigned char)text.ptr[at] & 0xc0) != 0x80 && ++columns > room - 3)
            break;
    }
    pl__buf_printf(out, "%.*s...", (int)at, text.ptr);
}

size_t pl__transition_lines(const struct pl_term *term, struct pl_buf *out,
                            const struct pl_transition *t, size_t more)
{
    struct pl_buf line, change, why;

    pl__buf_init(&line, out->arena, LINE_BYTES_MAX);
    add_line(term, &line, t, more);
    if (pl__text_width(pl__buf_str(&line)) <= term->width) {
        pl__buf_add(out, pl__buf_str(&line));
        pl__buf_add_char(out, '\n');
        return 1;
    }
    pl__buf_clear(&line);
    add_who(&line, t, short_kind(t->kind), more);
    pl__buf_init(&change, out->arena, LINE_BYTES_MAX);
    add_change(term, &change, t);
    pl__buf_init(&why, out->arena, LINE_BYTES_MAX);
    pl__text_spaces(&why, STAMP_COLUMNS);
    /* The change stands in the first line, unless long names have taken it up. */
    bool fits = pl__text_width(pl__buf_str(&line)) + 1 + pl__text_width(pl__buf_str(&change)) <=
                term->width;
    if (fits)
        pl__buf_add_char(&line, ' ');
    pl__buf_add(fits ? &line : &why, pl__buf_str(&change));
    if (!fits)
        pl__buf_add_char(&why, ' ');
    add_why(&why, t);
    size_t used = pl__text_width(pl__buf_str(&why)) + 2; /* ": " */
    add_message(&why, t->cause, used < term->width ? term->width - used : 0);
    pl__buf_add(out, pl__buf_str(&line));
    pl__buf_add_char(out, '\n');
    pl__buf_add(out, pl__buf_str(&why));
    pl__buf_add_char(out, '\n');
    return 2;
}

bool pl__transition_alike(const struct pl_transition *a, const struct pl_transition *b)
{
    return a->at_ms == b->at_ms && strcmp(a->kind, b->kind) == 0 && strcmp(a->name, b->name) == 0 &&
           strcmp(a->namespace_, b->namespace_) == 0 && a->from == b->from && a->to == b->to &&
           strcmp(a->reason, b->reason) == 0 && a->row == b->row && a->delay_ms == b->delay_ms;
}
