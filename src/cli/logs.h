/* cli/logs.h - structured logs on stderr: a fixed message and typed pairs, one line each.
 *
 * As text in klog's manner, or as JSON with the keys of Kubernetes' own components. The time of a line is
 * that of the turn it was written in, given from outside. One write a line, so lines of several processes
 * do not mix. */
#ifndef PL_CLI_LOGS_H
#define PL_CLI_LOGS_H

#include "base/buf.h"
#include "controller/controller.h"

enum { LOG_LINE_BYTES_MAX = 65536, LOG_HELD_BYTES_MAX = 1 << 20, LOG_DEBUG_VERBOSITY = 4 };

struct pl_logs {
    bool json;
    uint32_t verbosity; /* PL_LOG_DEBUG lines from LOG_DEBUG_VERBOSITY on */
    int fd;
    int process_id;
    int64_t (*wall_ms)(void *user); /* the time of a line */
    void *user;
    struct pl_arena arena; /* one line */
    struct pl_arena held_arena;
    struct pl_buf held; /* lines that wait, see pl__logs_hold() */
    bool holding;
};

/* To stderr; `format` is "text" or "json". */
void pl__logs_init(struct pl_logs *logs, const char *format, uint32_t verbosity);
void pl__logs_release(struct pl_logs *logs);

/* From here on lines wait, until they are let go: written, or, with `drop`, forgotten. A start that fails
 * is told by one clear line; what led to it would only bury that. Past LOG_HELD_BYTES_MAX they go by
 * themselves. */
void pl__logs_hold(struct pl_logs *logs);
void pl__logs_let_go(struct pl_logs *logs, bool drop);

/* Writes one line; a pl_log_fn whose `user` is a struct pl_logs. */
void pl__logs_write(void *user, enum pl_log_level level, const char *message,
                    const struct pl_log_pair *pairs, size_t pair_count);

#define PL_LOGS(logs, level, message, ...)                                                  \
    pl__logs_write((logs), (level), (message), (const struct pl_log_pair[]){ __VA_ARGS__ }, \
                   sizeof((const struct pl_log_pair[]){ __VA_ARGS__ }) /                    \
                       sizeof(struct pl_log_pair))

/* The line itself, with its newline; for pl__logs_write() and its tests. */
void pl__logs_line(const struct pl_logs *logs, struct pl_buf *out, int64_t wall_ms,
                   enum pl_log_level level, const char *message, const struct pl_log_pair *pairs,
                   size_t pair_count);

#endif
