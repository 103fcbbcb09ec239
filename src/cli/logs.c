#include "cli/logs.h"

#include <errno.h>
#include <unistd.h>

#include "base/json.h"
#include "base/time.h"
#include "loop/loop.h"

/* The levels, as klog and as Kubernetes' JSON name them. */
static const struct {
    char letter;
    const char *name;
    int verbosity; /* -1: an error, which has none */
} levels[] = {
    [PL_LOG_ERROR] = { 'E', "error", -1 },
    [PL_LOG_INFO] = { 'I', "info", 0 },
    [PL_LOG_DEBUG] = { 'I', "debug", LOG_DEBUG_VERBOSITY },
};

static int64_t clock_now(void *user)
{
    (void)user;
    return pl__loop_wall_ms();
}

void pl__logs_init(struct pl_logs *logs, const char *format, uint32_t verbosity)
{
    *logs = (struct pl_logs){ .json = strcmp(format, "json") == 0,
                              .verbosity = verbosity,
                              .fd = STDERR_FILENO,
                              .process_id = (int)getpid(),
                              .wall_ms = clock_now };
    pl__arena_init(&logs->arena, NULL, 4096);
    pl__arena_init(&logs->held_arena, NULL, 4096);
}

void pl__logs_release(struct pl_logs *logs)
{
    pl__logs_let_go(logs, false);
    pl__arena_release(&logs->arena);
    pl__arena_release(&logs->held_arena);
}

/* --- text --------------------------------------------------------------------------------------- */

static void add_quoted(struct pl_buf *out, struct pl_str text)
{
    pl__buf_add_char(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c == '"' || c == '\\')
            pl__buf_printf(out, "\\%c", c);
        else if (c == '\n')
            pl__buf_add_lit(out, "\\n");
        else if (c == '\t')
            pl__buf_add_lit(out, "\\t");
        else if (c < 0x20 || c == 0x7f)
            pl__buf_printf(out, "\\x%02x", c);
        else
            pl__buf_add_char(out, (char)c);
    }
    pl__buf_add_char(out, '"');
}

/* "1115 02:00:00.123000": month and day, then the time in UTC, as klog has it. */
static void add_klog_time(struct pl_buf *out, int64_t wall_ms)
{
    struct pl_buf text;
    int64_t ms = wall_ms > 0 ? wall_ms : 1;

    pl__buf_init(&text, out->arena, 64);
    pl__time_add(&text, ms); /* 2026-11-15T02:00:00Z */
    const char *t = pl__buf_str(&text).ptr;
    pl__buf_printf(out, "%.2s%.2s %.8s.%03d000", t + 5, t + 8, t + 11, (int)(ms % 1000));
}

static void add_text_line(const struct pl_logs *logs, struct pl_buf *out, int64_t wall_ms,
                          enum pl_log_level level, const char *message,
                          const struct pl_log_pair *pairs, size_t pair_count)
{
    pl__buf_add_char(out, levels[level].letter);
    add_klog_time(out, wall_ms);
    pl__buf_printf(out, " %7d plimsoll] ", logs->process_id);
    add_quoted(out, pl__str(message));
    for (size_t i = 0; i < pair_count; i++) {
        pl__buf_printf(out, " %s=", pairs[i].key);
        add_quoted(out, pairs[i].value);
    }
}

/* --- JSON --------------------------------------------------------------------------------------- */

static void add_json_line(struct pl_buf *out, int64_t wall_ms, enum pl_log_level level,
                          const char *message, const struct pl_log_pair *pairs, size_t pair_count)
{
    struct pl_json_writer w;

    pl__json_writer_init(&w, out, JSON_COMPACT);
    pl__json_open_object(&w);
    pl__json_write_key(&w, "ts");
    pl__json_write_int(&w, wall_ms);
    pl__json_write_key(&w, "level");
    pl__json_write_str(&w, pl__str(levels[level].name));
    if (levels[level].verbosity >= 0) {
        pl__json_write_key(&w, "v");
        pl__json_write_int(&w, levels[level].verbosity);
    }
    pl__json_write_key(&w, "msg");
    pl__json_write_str(&w, pl__str(message));
    for (size_t i = 0; i < pair_count; i++) {
        pl__json_write_key(&w, pairs[i].key);
        pl__json_write_str(&w, pairs[i].value);
    }
    pl__json_close_object(&w);
}

/* --- lines -------------------------------------------------------------------------------------- */

void pl__logs_line(const struct pl_logs *logs, struct pl_buf *out, int64_t wall_ms,
                   enum pl_log_level level, const char *message, const struct pl_log_pair *pairs,
                   size_t pair_count)
{
    if (logs->json)
        add_json_line(out, wall_ms, level, message, pairs, pair_count);
    else
        add_text_line(logs, out, wall_ms, level, message, pairs, pair_count);
    pl__buf_add_char(out, '\n');
}

/* A log that cannot be written is nobody's to hear of. */
static void write_all(int fd, struct pl_str text)
{
    while (text.len) {
        ssize_t written = write(fd, text.ptr, text.len);
        if (written < 0 && errno != EINTR)
            return;
        if (written > 0) {
            text.ptr += written;
            text.len -= (size_t)written;
        }
    }
}

void pl__logs_hold(struct pl_logs *logs)
{
    pl__buf_init(&logs->held, &logs->held_arena, LOG_HELD_BYTES_MAX + LOG_LINE_BYTES_MAX);
    logs->holding = true;
}

void pl__logs_let_go(struct pl_logs *logs, bool drop)
{
    if (!logs->holding)
        return;
    if (!drop)
        write_all(logs->fd, pl__buf_str(&logs->held));
    logs->holding = false;
    pl__arena_release(&logs->held_arena);
}

static void emit(struct pl_logs *logs, struct pl_str line)
{
    if (!logs->holding) {
        write_all(logs->fd, line);
        return;
    }
    pl__buf_add(&logs->held, line);
    if (logs->held.len >= LOG_HELD_BYTES_MAX)
        pl__logs_let_go(logs, false);
}

void pl__logs_write(void *user, enum pl_log_level level, const char *message,
                    const struct pl_log_pair *pairs, size_t pair_count)
{
    struct pl_logs *logs = user;
    struct pl_buf line;

    if (level == PL_LOG_DEBUG && logs->verbosity < LOG_DEBUG_VERBOSITY)
        return;
    pl__arena_reset(&logs->arena);
    pl__buf_init(&line, &logs->arena, LOG_LINE_BYTES_MAX);
    int64_t wall_ms = logs->wall_ms(logs->user);
    pl__logs_line(logs, &line, wall_ms, level, message, pairs, pair_count);
    if (line.overflowed) {
        pl__buf_clear(&line);
        pl__logs_line(logs, &line, wall_ms, level, message, NULL, 0);
    }
    emit(logs, pl__buf_str(&line));
}
