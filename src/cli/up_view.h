/* cli/up_view.h - what a playground shows while it runs.
 *
 * On a terminal the screen is redrawn: the tree of describe, cut to what fits, the last transitions below it with
 * cause and delay, and a line on top. Elsewhere every transition and everything that is said is a line, as it
 * comes. */
#ifndef PL_CLI_UP_VIEW_H
#define PL_CLI_UP_VIEW_H

#include "cli/command.h"
#include "cli/up_look.h"

struct pl_view;

/* `heading`: lines that stay on top of the screen; copied. */
struct pl_view *pl__view_new(struct pl_cli *cli, struct pl_str heading);

/* NULL is fine. */
void pl__view_free(struct pl_view *view);

bool pl__view_is_screen(const struct pl_view *view);

/* The picture stays as it is; what is said from here on stands below it. */
void pl__view_leave(struct pl_view *view);

/* A transition happened; a line, or something for the next picture. */
void pl__view_changed(struct pl_view *view, const struct pl_transition *transition);

/* Something is told, one line or several, safe for a terminal; on a screen the last ones are shown. */
void pl__view_say(struct pl_view *view, struct pl_str text);

/* Draws what this look saw, with `status` as the second line of the screen. At most ten times a second; false when
 * it was too early. Nothing to do where there is no screen. */
bool pl__view_draw(struct pl_view *view, const struct pl_look *look, struct pl_str status,
                   uint64_t mono_ms);

#endif
