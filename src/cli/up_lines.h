/* cli/up_lines.h - a transition as text: one line for logs, one or two for a terminal. */
#ifndef PL_CLI_UP_LINES_H
#define PL_CLI_UP_LINES_H

#include "cli/term.h"
#include "cli/up_look.h"

/* Adds one line without its newline, as long as it gets: "12:00:03 KubeadmControlPlane/demo-1-cp EtcdClusterHealthy
 * True -> False NotHealthy (EtcdClusterHealthy/5, stored after 12 ms): message". */
void pl__transition_line(const struct pl_term *term, struct pl_buf *out,
                         const struct pl_transition *t);

/* The same where it fits into the terminal's width. Where it does not, two lines: who, what and the change, kinds
 * written as kubectl and plimsoll explain take them; below it reason, row and delay, and as much of the message
 * as there is room for. `more`: so many further conditions of the object changed in the same way, "(+3)". Ends with a
 * newline; the number of lines. */
size_t pl__transition_lines(const struct pl_term *term, struct pl_buf *out,
                            const struct pl_transition *t, size_t more);

/* Whether two transitions differ in nothing but the condition: those of one Machine's Pods come in fours. */
bool pl__transition_alike(const struct pl_transition *a, const struct pl_transition *b);

#endif
