#include "cli/up_view.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/describe.h"
#include "cli/text.h"
#include "cli/up_lines.h"

enum {
    FRAME_MS = 100,
    HEIGHT_DEFAULT = 24,
    HEIGHT_ROOMY = 40, /* from here on the commands have lines of their own */
    TRANSITIONS_SHOWN = 8,
    SAID_SHOWN = 16,
    SAID_BYTES = 512,
    HEAD_BYTES_MAX = 8192,
};

struct pl_view {
    struct pl_cli *cli;
    struct pl_view_options options;
    bool screen;
    struct pl_arena arena; /* what lives as long */
    struct pl_arena scratch;
    char said[SAID_SHOWN][SAID_BYTES]; /* a ring */
    size_t said_total;
    uint64_t drawn_ms;
};

/* --- the head ------------------------------------------------------------------------------------- */

static void add_note(const struct pl_view *v, struct pl_buf *out)
{
    struct pl_wrap wrap = { PL_STR(""), PL_STR(""), v->cli->term.width };

    if (v->options.note)
        pl__text_wrap(out, pl__str(v->options.note), wrap);
}

static void add_head(const struct pl_view *v, struct pl_buf *out)
{
    const char *program = v->options.program;

    pl__buf_printf(out,
                   "The playground is up; Ctrl-C ends it. In another terminal:\n"
                   "  export KUBECONFIG=%s\n"
                   "  %s fault %s\n"
                   "  %s describe -A\n"
                   "  kubectl get kubeadmcontrolplanes -w\n",
                   v->options.kubeconfig, program,
                   v->options.empty ? "list" : "kubelet-down machine/demo-1-cp-1", program);
    add_note(v, out);
}

/* Where lines are dear. */
static void add_short_head(const struct pl_view *v, struct pl_buf *out)
{
    const char *program = v->options.program;
    static const char commands[] = "  %s fault list | %s describe -A | kubectl get kcp -w\n";

    if (2 * strlen(program) + sizeof commands - sizeof "%s%s" > v->cli->term.width + 1)
        program = "plimsoll";
    pl__buf_printf(out, "In another terminal: export KUBECONFIG=%s\n", v->options.kubeconfig);
    if (!v->options.tour)
        pl__buf_printf(out, commands, program, program);
    add_note(v, out);
}

/* --- its life ------------------------------------------------------------------------------------- */

/* One that calls itself dumb writes, and does nothing else. */
static bool is_screen(void)
{
    const char *terminal = getenv("TERM");

    return isatty(STDOUT_FILENO) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

struct pl_view *pl__view_new(struct pl_cli *cli, const struct pl_view_options *options)
{
    struct pl_view *v = calloc(1, sizeof *v);

    if (!v)
        abort();
    v->cli = cli;
    v->screen = is_screen();
    pl__arena_init(&v->arena, NULL, 0);
    pl__arena_init(&v->scratch, NULL, 0);
    v->options = (struct pl_view_options){
        .program = pl__str_copy(&v->arena, pl__str(options->program)).ptr,
        .kubeconfig = pl__str_copy(&v->arena, pl__str(options->kubeconfig)).ptr,
        .note = options->note ? pl__str_copy(&v->arena, pl__str(options->note)).ptr : NULL,
        .empty = options->empty,
        .tour = options->tour,
    };
    if (v->screen)
        pl__buf_add_lit(&cli->out.buf, "\x1b[H\x1b[2J");
    else
        add_head(v, &cli->out.buf);
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

void pl__view_leave(struct pl_view *v)
{
    if (v->screen)
        pl__buf_add_lit(&v->cli->out.buf, "\n");
    v->screen = false;
}

/* --- lines ---------------------------------------------------------------------------------------- */

void pl__view_changed(struct pl_view *v, const struct pl_transition *t)
{
    struct pl_buf line;

    if (v->screen)
        return; /* the look keeps them */
    pl__arena_reset(&v->scratch);
    pl__buf_init(&line, &v->scratch, 4096);
    if (v->options.tour)
        pl__text_spaces(&line, 4); /* below its scene */
    pl__transition_line(&v->cli->term, &line, t);
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

/* People resize windows. */
static size_t measure_screen(struct pl_view *v)
{
    struct winsize size;
    struct pl_term term;

    pl__term_init(&term, "auto");
    v->cli->term.width = term.width;
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

static size_t count_lines(struct pl_str text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.len; i++)
        count += text.ptr[i] == '\n';
    return count;
}

/* Up to `lines` lines of the text, each on a line that is empty, and cut. How many were there. */
static size_t put_lines(struct pl_view *v, struct pl_str text, size_t lines)
{
    struct pl_buf *out = &v->cli->out.buf;
    size_t count = 0;

    while (text.len && count < lines) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end ? (size_t)(end - text.ptr) : text.len;
        /* Cleared first: behind a full line the cursor stands on its last character. */
        pl__buf_add_lit(out, "\x1b[K");
        pl__buf_add(out, cut(&v->scratch, (struct pl_str){ text.ptr, len }, v->cli->term.width));
        pl__buf_add_char(out, '\n');
        text = (struct pl_str){ text.ptr + len + (end != NULL), text.len - len - (end != NULL) };
        count++;
    }
    return count;
}

/* --- the tree ------------------------------------------------------------------------------------- */

/* The Clusters of one picture, those that call for attention first. */
struct clusters {
    struct pl_describe_node **items; /* as built */
    size_t count, calling;
    size_t shown;
    size_t
        beyond; /* so many more there are, of which the look tells nothing; calm ones, if it tells of calm ones */
};

static bool is_all(const struct clusters *c)
{
    return c->shown == c->count && c->beyond == 0;
}

static bool calls(const struct pl_describe_node *node)
{
    if (node->calls)
        return true;
    for (const struct pl_describe_node *child = node->child; child; child = child->next) {
        if (calls(child))
            return true;
    }
    return false;
}

static void clusters_order(struct pl_view *v, struct pl_describe *d, size_t room,
                           struct clusters *c)
{
    size_t calm = 0;

    *c = (struct clusters){ NULL };
    for (const struct pl_describe_node *n = d->clusters; n; n = n->next)
        c->count++;
    struct pl_describe_node **late = PL_NEW(&v->scratch, struct pl_describe_node *, c->count);
    c->items = PL_NEW(&v->scratch, struct pl_describe_node *, c->count);
    for (struct pl_describe_node *n = d->clusters; n; n = n->next) {
        if (calls(n))
            c->items[c->calling++] = n;
        else
            late[calm++] = n;
    }
    for (size_t i = 0; i < calm; i++)
        c->items[c->calling + i] = late[i];
    c->shown = c->count < room ? c->count : room;
}

static bool is_all_green(const struct pl_describe_node *first)
{
    while (first && first->color == COLOR_GREEN)
        first = first->next;
    return !first;
}

/* Members of which nothing is to be said go first when lines are dear: their number stays. */
static void drop_calm_members(struct pl_describe_node *node)
{
    for (struct pl_describe_node *child = node->child; child; child = child->next) {
        if (!child->kind && pl__str_equal(child->name, PL_STR("Etcd")) &&
            is_all_green(child->child))
            child->child = child->child_last = NULL;
        drop_calm_members(child);
    }
}

/* A Cluster as one line: without what is below it, and with what that comes to. */
static struct pl_describe_node folded(const struct pl_describe_node *from)
{
    struct pl_describe_node node = *from;

    node.child = node.child_last = NULL;
    if (calls(from)) {
        node.type = node.reason = node.message = node.since = PL_STR("");
        node.status = PL_STR("Not healthy");
        node.color = COLOR_RED;
    } else if (node.status.len == 0) {
        node.status = PL_STR("Healthy");
        node.color = COLOR_GREEN;
    }
    return node;
}

/* The Clusters that are shown, the first `full` of them with all that is below them, as describe prints it. What is
 * in the output already stays out of it. */
static struct pl_str tree_text(struct pl_view *v, struct pl_describe *d, const struct clusters *c,
                               size_t full)
{
    struct pl_cli *cli = v->cli;
    struct pl_buf saved = cli->out.buf;
    struct pl_describe_node *nodes = PL_NEW(&v->scratch, struct pl_describe_node, c->shown);

    for (size_t i = 0; i < c->shown; i++) {
        nodes[i] = i < full ? *c->items[i] : folded(c->items[i]);
        nodes[i].next = i + 1 < c->shown ? &nodes[i + 1] : NULL;
    }
    d->clusters = nodes;
    d->first = true;
    pl__buf_init(&cli->out.buf, &v->scratch, SIZE_MAX / 4);
    pl__describe_table(d);
    struct pl_str text = pl__buf_str(&cli->out.buf);
    cli->out.buf = saved;
    /* Its first lines say where the snapshot came from: here. */
    for (int i = 0; i < 2; i++) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t skip = end ? (size_t)(end - text.ptr) + 1 : 0;
        text = (struct pl_str){ text.ptr + skip, text.len - skip };
    }
    return text;
}

/* Shows fewer Clusters, until they fit; one at least. Whether they do. */
static bool shrink(struct pl_view *v, struct pl_describe *d, struct clusters *c, size_t full,
                   size_t room, struct pl_str *text)
{
    size_t lines = count_lines(tree_text(v, d, c, full)) + 1;
    size_t excess = lines > room ? lines - room : 0;

    c->shown = c->shown > excess + 1 ? c->shown - excess : 1;
    *text = tree_text(v, d, c, full);
    return count_lines(*text) + !is_all(c) <= room;
}

/* As many trees as there is room for, and a line for every other. Where there is no room for that, one tree and as many
 * lines as are left; if even that is too much, the tree is cut where it calls for attention, else there are lines. */
static struct pl_str fit_tree(struct pl_view *v, struct pl_describe *d, struct clusters *c,
                              size_t room)
{
    size_t low = 0, high = c->shown; /* `low` trees fit, or none does; more than `high` do not */
    struct pl_str text = tree_text(v, d, c, high);

    if (is_all(c) && count_lines(text) <= room)
        return text;
    for (size_t i = 0; i < c->shown; i++)
        drop_calm_members(c->items[i]);
    while (low < high) {
        size_t middle = high - (high - low) / 2;
        if (count_lines(tree_text(v, d, c, middle)) + !is_all(c) <= room)
            low = middle;
        else
            high = middle - 1;
    }
    if (low > 0)
        return tree_text(v, d, c, low);
    size_t shown = c->shown;
    if (shrink(v, d, c, 1, room, &text) || c->calling > 0)
        return text;
    c->shown = shown;
    shrink(v, d, c, 0, room, &text);
    return text;
}

/* "... and 7 more Clusters, 2 of them not healthy". */
static void add_rest(struct pl_buf *text, const struct clusters *c)
{
    size_t rest = c->count - c->shown + c->beyond;
    size_t calling = c->calling > c->shown ? c->calling - c->shown : 0;

    if (rest == 0)
        return;
    pl__buf_printf(text, "... and %zu more Cluster%s, ", rest, rest == 1 ? "" : "s");
    if (c->beyond && c->calling == c->count)
        pl__buf_printf(text, "%zu of them or more not healthy\n", calling);
    else if (calling)
        pl__buf_printf(text, "%zu of them not healthy\n", calling);
    else
        pl__buf_printf(text, "%s\n", rest == 1 ? "healthy" : "all healthy");
}

static struct pl_str draw_tree(struct pl_view *v, const struct pl_look *look, size_t room)
{
    struct pl_describe d = { .cli = v->cli,
                             .scratch = &v->scratch,
                             .report = pl__look_report(look),
                             .snapshot = pl__look_snapshot(look) };
    struct clusters c;
    struct pl_buf text;

    pl__describe_build(&d);
    if (!d.clusters || room == 0)
        return PL_STR("");
    clusters_order(v, &d, room, &c);
    size_t total = pl__look_cluster_count(look);
    c.beyond = total > c.count ? total - c.count : 0;
    struct pl_str tree = fit_tree(v, &d, &c, room);
    pl__buf_init(&text, &v->scratch, SIZE_MAX / 4);
    size_t lines = is_all(&c) ? room : room - 1;
    for (size_t at = 0; lines > 0 && at < tree.len; lines--) {
        const char *end = memchr(tree.ptr + at, '\n', tree.len - at);
        size_t len = end ? (size_t)(end - tree.ptr) - at + 1 : tree.len - at;
        pl__buf_add(&text, (struct pl_str){ tree.ptr + at, len });
        at += len;
    }
    add_rest(&text, &c);
    return pl__buf_str(&text);
}

/* --- below the tree ------------------------------------------------------------------------------- */

/* The newest transitions that fit, alike ones as one, the newest last. */
static struct pl_str draw_transitions(struct pl_view *v, const struct pl_look *look, size_t room)
{
    size_t count = pl__look_transition_count(look), shown = 0, used = 0;
    struct pl_buf entries[TRANSITIONS_SHOWN], text;
    bool told[LOOK_TRANSITIONS_MAX] = { false };

    for (size_t back = 0; back < count && shown < TRANSITIONS_SHOWN; back++) {
        const struct pl_transition *newest = pl__look_transition(look, back), *t = newest;
        size_t more = 0;
        if (told[back])
            continue;
        for (size_t other = back + 1; other < count; other++) {
            if (!pl__transition_alike(newest, pl__look_transition(look, other)))
                continue;
            told[other] = true;
            t = pl__look_transition(look, other); /* the first of them has the name */
            more++;
        }
        pl__buf_init(&entries[shown], &v->scratch, SIZE_MAX / 4);
        used += pl__transition_lines(&v->cli->term, &entries[shown], t, more);
        if (used > room)
            break;
        shown++;
    }
    pl__buf_init(&text, &v->scratch, SIZE_MAX / 4);
    while (shown > 0)
        pl__buf_add(&text, pl__buf_str(&entries[--shown]));
    return pl__buf_str(&text);
}

static struct pl_str draw_said(struct pl_view *v, size_t room)
{
    size_t said = v->said_total < SAID_SHOWN ? v->said_total : SAID_SHOWN;
    struct pl_buf text;

    pl__buf_init(&text, &v->scratch, SIZE_MAX / 4);
    for (size_t i = said < room ? said : room; i > 0; i--) {
        pl__buf_printf(&text, "%s%s\n", v->said[(v->said_total - i) % SAID_SHOWN],
                       v->cli->term.color ? "\x1b[0m" : "");
    }
    return pl__buf_str(&text);
}

/* An empty line, if there is room, and the text. */
static size_t put_part(struct pl_view *v, struct pl_str text, size_t lines)
{
    if (text.len == 0 || lines < 2)
        return 0;
    pl__buf_add_lit(&v->cli->out.buf, "\x1b[K\n");
    return 1 + put_lines(v, text, lines - 1);
}

void pl__view_draw(struct pl_view *v, const struct pl_look *look, struct pl_str status,
                   uint64_t mono_ms)
{
    struct pl_buf *out = &v->cli->out.buf;
    struct pl_buf head;

    if (!v->screen || !pl__look_report(look) || (v->drawn_ms && mono_ms - v->drawn_ms < FRAME_MS))
        return;
    v->drawn_ms = mono_ms;
    pl__arena_reset(&v->scratch);
    size_t height = measure_screen(v);
    /* The last line of a screen stays free: a newline there would scroll. */
    size_t left = height > 1 ? height - 1 : 1;
    pl__buf_init(&head, &v->scratch, HEAD_BYTES_MAX);
    pl__term_add(&v->cli->term, &head, COLOR_BOLD, status);
    pl__buf_add_char(&head, '\n');
    if (height >= HEIGHT_ROOMY)
        add_head(v, &head);
    else
        add_short_head(v, &head);
    /* No wrapping by the terminal while we draw: one that is narrower than our narrowest would scroll. */
    pl__buf_add_lit(out, "\x1b[?7l\x1b[H");
    left -= put_lines(v, pl__buf_str(&head), left);
    /* The larger part is the tree's, or the story's, and what the others leave of theirs. */
    size_t below = v->options.tour ? left * 3 / 5 : left * 2 / 5;
    struct pl_str said = draw_said(v, v->options.tour ? below * 2 / 3 : below / 4);
    size_t said_lines = said.len ? count_lines(said) + 1 : 0;
    struct pl_str changed = draw_transitions(v, look, below > said_lines ? below - said_lines : 0);
    size_t below_lines = said_lines + (changed.len ? count_lines(changed) + 1 : 0);
    struct pl_str tree = draw_tree(v, look, left > below_lines + 1 ? left - below_lines - 1 : 0);
    /* What the tree has no use for shows more of what was said. */
    size_t spare = left - below_lines;
    spare -= tree.len && spare > count_lines(tree) ? count_lines(tree) + 1 : 0;
    if (spare > 0 && said_lines > 0)
        said = draw_said(v, said_lines - 1 + spare);
    left -= put_part(v, tree, left);
    left -= put_part(v, changed, left);
    put_part(v, said, left);
    pl__buf_add_lit(out, "\x1b[J\x1b[?7h");
}
