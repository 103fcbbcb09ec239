#include "loop/kube_exec.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"

extern char **environ;

enum { OUTPUT_BYTES_MAX = 1024 * 1024, ERROR_BYTES_MAX = 512 };

struct pl_exec_run {
    struct pl_loop *loop;
    struct pl_arena arena; /* wiped at the end: arguments, environment, output */
    struct pl_str name;    /* for messages: the command without its folder */
    struct pl_str api_version;
    uv_process_t process;
    uv_pipe_t output_pipe;
    uv_timer_t deadline;
    uint32_t handle_count; /* not closed yet */
    struct pl_buf output;
    char read_room[4096];
    bool exited, output_ended, done_called;
    int64_t exit_status;
    int signal;
    void *user;
    pl_exec_done done;
};

static struct pl_str base_name(struct pl_str path)
{
    for (size_t i = path.len; i > 0; i--)
        if (path.ptr[i - 1] == '/')
            return (struct pl_str){ path.ptr + i, path.len - i };
    return path;
}

static void run_free(struct pl_exec_run *run)
{
    struct pl_loop *loop = run->loop;

    pl__secret_wipe(run->read_room, sizeof run->read_room);
    pl__arena_release(&run->arena);
    free(run);
    pl__loop_drop(loop);
}

static void handle_closed(uv_handle_t *handle)
{
    struct pl_exec_run *run = handle->data;

    if (--run->handle_count == 0)
        run_free(run);
}

static void handle_close(uv_handle_t *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, handle_closed);
}

/* The process itself is waited for, whatever happens to its output: no zombies. */
static void run_close(struct pl_exec_run *run)
{
    handle_close((uv_handle_t *)&run->output_pipe);
    handle_close((uv_handle_t *)&run->deadline);
    if (run->exited)
        handle_close((uv_handle_t *)&run->process);
}

static void run_kill(struct pl_exec_run *run)
{
    /* It leads a process group of its own, so this takes its children, too. */
    if (!run->exited)
        uv_kill(-run->process.pid, SIGKILL);
}

/* Says how it went, once, and ends the run. */
static void run_done(struct pl_exec_run *run, const struct pl_exec_credential *credential,
                     const char *error)
{
    if (!run->done_called) {
        run->done_called = true;
        run->done(run->user, credential, error);
    }
    run_close(run);
}

static void run_failed(struct pl_exec_run *run, const char *what)
{
    char text[ERROR_BYTES_MAX];

    snprintf(text, sizeof text, "credential plugin %.*s: %s", PL_STR_ARG(run->name), what);
    run_done(run, NULL, text);
}

static void run_parse(struct pl_exec_run *run)
{
    struct pl_exec_credential credential = { 0 };
    struct pl_error *err = NULL;
    struct pl_str source =
        pl__str_format(&run->arena, "credential plugin %.*s", PL_STR_ARG(run->name));

    if (pl__exec_credential_parse(&run->arena, pl__buf_str(&run->output), source, run->api_version,
                                  &credential, &err) < 0)
        run_done(run, NULL, pl__error_text(&run->arena, err).ptr);
    else
        run_done(run, &credential, NULL);
}

/* Its answer is complete when it has ended and its output, too. */
static void run_check(struct pl_exec_run *run)
{
    char text[64];

    if (!run->exited || !run->output_ended || run->done_called)
        return;
    if (run->signal) {
        snprintf(text, sizeof text, "killed by signal %d", run->signal);
        run_failed(run, text);
    } else if (run->exit_status) {
        snprintf(text, sizeof text, "exited with code %d", (int)run->exit_status);
        run_failed(run, text);
    } else {
        run_parse(run);
    }
}

static void process_exited(uv_process_t *process, int64_t exit_status, int signal)
{
    struct pl_exec_run *run = process->data;

    run->exited = true;
    run->exit_status = exit_status;
    run->signal = signal;
    if (run->done_called)
        handle_close((uv_handle_t *)process);
    else
        run_check(run);
}

static void output_room(uv_handle_t *handle, size_t suggested, uv_buf_t *room)
{
    struct pl_exec_run *run = handle->data;

    (void)suggested;
    *room = uv_buf_init(run->read_room, sizeof run->read_room);
}

static void output_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *room)
{
    struct pl_exec_run *run = stream->data;

    if (got < 0) {
        uv_read_stop(stream);
        run->output_ended = true;
        run_check(run);
        return;
    }
    pl__buf_add(&run->output, (struct pl_str){ room->base, (size_t)got });
    if (run->output.overflowed) {
        run_kill(run);
        run_failed(run, "printed more than 1 MiB");
    }
}

static void deadline_passed(uv_timer_t *timer)
{
    struct pl_exec_run *run = timer->data;

    run_kill(run);
    run_failed(run, "gave no answer in time");
}

/* --- starting ---------------------------------------------------------------------------------- */

/* True when the entry sets a variable that the plugin's own settings set, too. */
static bool env_overridden(const struct pl_kube_exec *exec, const char *entry)
{
    size_t name_len = strcspn(entry, "=");

    if (name_len == strlen("KUBERNETES_EXEC_INFO") &&
        memcmp(entry, "KUBERNETES_EXEC_INFO", name_len) == 0)
        return true;
    for (uint32_t i = 0; i < exec->env.count; i++) {
        struct pl_str own = exec->env.items[i];
        if (own.len > name_len && own.ptr[name_len] == '=' && memcmp(own.ptr, entry, name_len) == 0)
            return true;
    }
    return false;
}

static char *arena_text(struct pl_arena *arena, struct pl_str s)
{
    char *text = PL_NEW(arena, char, s.len + 1);

    if (s.len)
        memcpy(text, s.ptr, s.len);
    return text;
}

static char **environment(struct pl_arena *arena, const struct pl_kube_config *config)
{
    const struct pl_kube_exec *exec = &config->exec;
    size_t count = 0, at = 0;

    while (environ && environ[count])
        count++;
    char **env = PL_NEW(arena, char *, count + exec->env.count + 2);
    for (size_t i = 0; i < count; i++)
        if (!env_overridden(exec, environ[i]))
            env[at++] = arena_text(arena, pl__str(environ[i]));
    for (uint32_t i = 0; i < exec->env.count; i++)
        env[at++] = arena_text(arena, exec->env.items[i]);
    struct pl_str info = pl__exec_info(arena, config);
    env[at] =
        arena_text(arena, pl__str_format(arena, "KUBERNETES_EXEC_INFO=%.*s", PL_STR_ARG(info)));
    return env;
}

static char **arguments(struct pl_arena *arena, const struct pl_kube_exec *exec)
{
    char **args = PL_NEW(arena, char *, exec->args.count + 2);

    args[0] = arena_text(arena, exec->command);
    for (uint32_t i = 0; i < exec->args.count; i++)
        args[i + 1] = arena_text(arena, exec->args.items[i]);
    return args;
}

static int run_spawn(struct pl_exec_run *run, const struct pl_kube_config *config)
{
    uv_stdio_container_t stdio[3] = {
        { .flags = UV_IGNORE },
        { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
          .data.stream = (uv_stream_t *)&run->output_pipe },
        { .flags = UV_INHERIT_FD, .data.fd = 2 },
    };
    char **args = arguments(&run->arena, &config->exec);
    uv_process_options_t options = {
        .exit_cb = process_exited,
        .file = args[0],
        .args = args,
        .env = environment(&run->arena, config),
        .flags =
            UV_PROCESS_DETACHED, /* a process group of its own, so that all of it can be killed */
        .stdio_count = 3,
        .stdio = stdio,
    };

    return uv_spawn(pl__loop_uv(run->loop), &run->process, &options);
}

static void spawn_error(const struct pl_kube_exec *exec, int code, char *error, size_t error_size)
{
    struct pl_str hint = exec->install_hint;

    snprintf(error, error_size, "credential plugin %.*s: %s%s%.*s", PL_STR_ARG(exec->command),
             code == UV_ENOENT ? "not found" : uv_strerror(code), hint.len ? ": " : "",
             (int)(hint.len < 200 ? hint.len : 200), hint.ptr ? hint.ptr : "");
}

struct pl_exec_run *pl__exec_start(struct pl_loop *loop, const struct pl_kube_config *config,
                                   uint32_t timeout_ms, void *user, pl_exec_done done, char *error,
                                   size_t error_size)
{
    struct pl_exec_run *run = calloc(1, sizeof *run);

    if (!run)
        abort();
    run->loop = loop;
    run->user = user;
    run->done = done;
    pl__loop_hold(loop);
    pl__arena_init(&run->arena, &pl__secret_allocator, 0);
    pl__buf_init(&run->output, &run->arena, OUTPUT_BYTES_MAX);
    run->name = pl__str_copy(&run->arena, base_name(config->exec.command));
    run->api_version = pl__str_copy(&run->arena, config->exec.api_version);
    uv_pipe_init(pl__loop_uv(loop), &run->output_pipe, 0);
    uv_timer_init(pl__loop_uv(loop), &run->deadline);
    run->output_pipe.data = run->deadline.data = run->process.data = run;
    run->handle_count = 3;
    int status = run_spawn(run, config);
    if (status < 0) {
        spawn_error(&config->exec, status, error, error_size);
        run->done_called = run->exited = true;
        run_close(run);
        return NULL;
    }
    uv_timer_start(&run->deadline, deadline_passed, timeout_ms, 0);
    uv_read_start((uv_stream_t *)&run->output_pipe, output_room, output_read);
    return run;
}

void pl__exec_cancel(struct pl_exec_run *run)
{
    run->done_called = true;
    run_kill(run);
    run_close(run);
}
