/* cli/up_view.h - what a playground shows while it runs.
 *
 * On a terminal the screen is redrawn, in the size that it has at that moment:
 *
 *   status, kubeconfig, what to try
 *   the tree of describe: Clusters that call for attention first; those that have no room for a tree of their own
 *     are a line, the rest a number
 *   the last transitions with cause and delay, alike ones as one
 *   what was said: by the fleet, by the tour
 *
 * Elsewhere, and on a terminal that cannot move its cursor, every transition and everything that is said is a line,
 * as it comes. */
#ifndef PL_CLI_UP_VIEW_H
#define PL_CLI_UP_VIEW_H

#include "cli/command.h"
#include "cli/up_look.h"

struct pl_view;

struct pl_view_options {
    const char *program;    /* as it was called, so that the commands can be copied */
    const char *kubeconfig; /* path */
    const char *note;       /* something people have to know; NULL: nothing */
    bool empty;             /* there is no Cluster to begin with */
    bool tour;              /* what is said matters most */
};

/* What `options` points at is copied. */
struct pl_view *pl__view_new(struct pl_cli *cli, const struct pl_view_options *options);

/* NULL is fine. */
void pl__view_free(struct pl_view *view);

/* The picture stays as it is; what is said from here on stands below it. */
void pl__view_leave(struct pl_view *view);

/* A transition happened; a line, or something for the next picture. */
void pl__view_changed(struct pl_view *view, const struct pl_transition *transition);

/* Something is told, one line or several, safe for a terminal; on a screen the last ones are shown. */
void pl__view_say(struct pl_view *view, struct pl_str text);

/* Draws what this look saw, with `status` as the first line of the screen. At most ten times a second. Nothing to
 * do where there is no screen. */
void pl__view_draw(struct pl_view *view, const struct pl_look *look, struct pl_str status,
                   uint64_t mono_ms);

#endif
