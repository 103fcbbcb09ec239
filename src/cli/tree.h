/* cli/tree.h - a tree of text, drawn with lines. Nodes live in an arena. */
#ifndef PL_CLI_TREE_H
#define PL_CLI_TREE_H

#include "cli/term.h"

struct pl_tree {
    struct pl_str text; /* safe text; may have several lines */
    struct pl_tree *child;
    struct pl_tree *child_last;
    struct pl_tree *next; /* sibling */
    size_t depth;         /* 0: a root */
};

/* A new last child of `parent` (NULL: a root). The text is kept, not copied. */
struct pl_tree *pl__tree_add(struct pl_arena *arena, struct pl_tree *parent, struct pl_str text);

/* Columns left for the text of a child of `parent`. */
size_t pl__tree_room(const struct pl_term *term, const struct pl_tree *parent);

void pl__tree_print(struct pl_buf *out, const struct pl_term *term, struct pl_arena *scratch,
                    const struct pl_tree *root);

#endif
