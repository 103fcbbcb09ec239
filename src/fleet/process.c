/* Child processes. Each leads a session of its own, so that Ctrl-C on the terminal ends us and not them: they
 * are ended in an orderly way. Should we be killed, the next fleet in this directory ends them: it knows them by
 * their arguments, which name the directory. */
#include "fleet/internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loop/files.h"

enum {
    COMMAND_BYTES_MAX = 64 * 1024,
    POLL_MS = 10,
    END_POLLS_MAX = 200,
};

/* --- those of a playground that crashed ----------------------------------------------------------------- */

/* Its data is below the directory, which is an absolute path: no other playground's is. */
static bool is_of(const char *directory, uint64_t pid, struct pl_arena *arena)
{
    struct pl_str path = pl__str_format(arena, "/proc/%llu/cmdline", (unsigned long long)pid);
    struct pl_str below = pl__str_format(arena, "--data-dir=%s/etcd/", directory);
    struct pl_str command = { "", 0 };

    return pl__file_read(arena, path.ptr, COMMAND_BYTES_MAX, &command, NULL) == 0 &&
           pl__str_contains(command, below);
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

static void end_old(const char *directory, uint64_t pid, struct pl_arena *arena)
{
    kill((pid_t)pid, SIGKILL);
    for (int i = 0; i < END_POLLS_MAX && is_of(directory, pid, arena); i++)
        pause_ms(POLL_MS);
}

uint32_t pl__fleet_end_left(const char *directory)
{
    DIR *all = opendir("/proc");
    struct pl_arena arena;
    uint32_t count = 0;

    if (!all)
        return 0;
    pl__arena_init(&arena, NULL, 0);
    for (struct dirent *entry; (entry = readdir(all));) {
        uint64_t pid;
        pl__arena_reset(&arena);
        if (!pl__str_to_u64(pl__str(entry->d_name), &pid) || pid <= 1 || pid > INT32_MAX ||
            !is_of(directory, pid, &arena))
            continue;
        end_old(directory, pid, &arena);
        count++;
    }
    closedir(all);
    pl__arena_release(&arena);
    return count;
}

/* --- ours --------------------------------------------------------------------------------------------------- */

static void process_closed(uv_handle_t *handle)
{
    struct process *p = handle->data;
    struct pl_fleet *fleet = p->fleet;
    struct process **at = &fleet->processes;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    free(p);
    fleet->process_count--;
    pl__fleet_process_ended(fleet);
}

static void process_exited(uv_process_t *handle, int64_t code, int signal)
{
    struct process *p = handle->data;

    (void)code;
    (void)signal;
    p->exited = true;
    if (p->member) {
        p->member->process = NULL;
        p->member->suspect = true;
        pl__ensemble_poke(p->member->ensemble, true); /* their Pods have not heard of it yet */
    }
    uv_close((uv_handle_t *)handle, process_closed);
}

struct process *pl__process_start(struct pl_fleet *fleet, char **argv, const char *log,
                                  struct member *member, struct pl_error **err)
{
    /* Nothing of ours: etcd takes options from variables, too. */
    static char threads[] = "GOMAXPROCS=2";
    char *environment[] = { threads, NULL };
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    struct process *p = calloc(1, sizeof *p);
    uv_stdio_container_t stdio[3] = { { .flags = UV_IGNORE } };

    if (!p)
        abort();
    stdio[1].flags = stdio[2].flags = fd < 0 ? UV_IGNORE : UV_INHERIT_FD;
    stdio[1].data.fd = stdio[2].data.fd = fd;
    uv_process_options_t options = { .file = argv[0],
                                     .args = argv,
                                     .env = environment,
                                     .flags = UV_PROCESS_DETACHED,
                                     .stdio_count = 3,
                                     .stdio = stdio,
                                     .exit_cb = process_exited };
    p->fleet = fleet;
    p->member = member;
    p->handle.data = p;
    p->next = fleet->processes;
    fleet->processes = p;
    fleet->process_count++;
    int failed = uv_spawn(pl__loop_uv(fleet->loop), &p->handle, &options);
    if (fd >= 0)
        close(fd);
    if (failed) {
        p->exited = true;
        uv_close((uv_handle_t *)&p->handle, process_closed);
        pl__error(&fleet->scratch, err, PL_IO, "start %s: %s", argv[0], uv_strerror(failed));
        return NULL;
    }
    p->pid = p->handle.pid;
    return p;
}

void pl__process_signal(struct process *p, int signal)
{
    if (p && !p->exited)
        uv_process_kill(&p->handle, signal);
}

void pl__processes_kill_all(struct pl_fleet *fleet)
{
    int polls = 0;

    for (struct process *p = fleet->processes; p; p = p->next)
        pl__process_signal(p, SIGKILL);
    for (struct process *p = fleet->processes; p; p = p->next) {
        while (!p->exited) {
            p->exited = waitpid(p->pid, NULL, WNOHANG) != 0;
            if (!p->exited && polls++ == END_POLLS_MAX)
                return;
            if (!p->exited)
                pause_ms(POLL_MS);
        }
    }
}

void pl__processes_close(struct pl_fleet *fleet)
{
    for (struct process *p = fleet->processes; p; p = p->next) {
        p->member = NULL;
        if (!uv_is_closing((uv_handle_t *)&p->handle))
            uv_close((uv_handle_t *)&p->handle, process_closed);
    }
}
