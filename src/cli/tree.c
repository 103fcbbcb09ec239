#include "cli/tree.h"

#include "cli/text.h"

/* The lines of a tree, as clusterctl draws them, and for terminals without Unicode. */
struct lines {
    const char *fork;   /* before a child that has siblings below it */
    const char *corner; /* before the last child */
    const char *bar;    /* past a child that has siblings below it */
    const char *blank;
};

static const struct lines lines_utf8 = { "├─ ", "└─ ", "│  ", "   " };
static const struct lines lines_ascii = { "|- ", "`- ", "|  ", "   " };

struct pl_tree *pl__tree_add(struct pl_arena *arena, struct pl_tree *parent, struct pl_str text)
{
    struct pl_tree *node = PL_NEW(arena, struct pl_tree, 1);

    node->text = text;
    if (!parent)
        return node;
    node->depth = parent->depth + 1;
    if (parent->child_last)
        parent->child_last->next = node;
    else
        parent->child = node;
    parent->child_last = node;
    return node;
}

size_t pl__tree_room(const struct pl_term *term, const struct pl_tree *parent)
{
    size_t lines = 3 * (parent->depth + 1);

    return term->width > lines ? term->width - lines : 0;
}

struct drawing {
    struct pl_buf *out;
    struct pl_arena *scratch;
    const struct lines *lines;
    size_t width;
};

static struct pl_str join(struct drawing *d, struct pl_str left, const char *right)
{
    return pl__str_format(d->scratch, "%.*s%s", PL_STR_ARG(left), right);
}

/* `here` stands before the node's own first line, `below` before all that hangs under it. */
static void draw(struct drawing *d, const struct pl_tree *node, struct pl_str here,
                 struct pl_str below)
{
    const char *under = node->child ? d->lines->bar : d->lines->blank;
    struct pl_wrap wrap = { here, join(d, below, under), d->width };

    pl__text_wrap(d->out, node->text, wrap);
    for (const struct pl_tree *child = node->child; child; child = child->next) {
        bool last = !child->next;
        draw(d, child, join(d, below, last ? d->lines->corner : d->lines->fork),
             join(d, below, last ? d->lines->blank : d->lines->bar));
    }
}

void pl__tree_print(struct pl_buf *out, const struct pl_term *term, struct pl_arena *scratch,
                    const struct pl_tree *root)
{
    struct drawing d = { out, scratch, term->utf8 ? &lines_utf8 : &lines_ascii, term->width };

    draw(&d, root, PL_STR(""), PL_STR(""));
}
