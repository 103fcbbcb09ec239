#include "loop/loop.h"

#include <assert.h>
#include <curl/curl.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "loop/multi.h"
#include "loop/sparse.h"

struct pl_loop {
    uv_loop_t uv;
    struct pl_multi **multis;
    size_t multi_count;
    uint64_t number_next;
    uint32_t held_count; /* clients and servers that are not freed yet */
};

static void *tls_malloc(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return size > 0 ? pl__sparse_malloc(size) : NULL; /* as OpenSSL's own does */
}

static void *tls_realloc(void *ptr, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return pl__sparse_realloc(ptr, size);
}

static void tls_free(void *ptr, const char *file, int line)
{
    (void)file;
    (void)line;
    pl__sparse_free(ptr);
}

/* OpenSSL takes this only before its first allocation; refusing is fine. Its buffers come and go with
 * every record (kube_request.c, on_ssl_context()), and as holes in the heap they would be filled
 * with what stays. */
static bool libraries_init(void)
{
    (void)CRYPTO_set_mem_functions(tls_malloc, tls_realloc, tls_free);
    return curl_global_init_mem(CURL_GLOBAL_DEFAULT, pl__sparse_malloc, pl__sparse_free,
                                pl__sparse_realloc, strdup, calloc) == CURLE_OK;
}

struct pl_loop *pl__loop_new(void)
{
    struct pl_loop *loop = calloc(1, sizeof *loop);

    if (!loop)
        abort();
    /* libcurl counts its calls, so every loop may do it and undo it. */
    if (!libraries_init() || uv_loop_init(&loop->uv) < 0) {
        fprintf(stderr, "plimsoll: cannot start an event loop\n");
        abort();
    }
    signal(SIGPIPE, SIG_IGN);
    return loop;
}

uv_loop_t *pl__loop_uv(struct pl_loop *loop)
{
    return &loop->uv;
}

struct pl_multi *pl__loop_multi_take(struct pl_loop *loop)
{
    for (size_t i = 0; i < loop->multi_count; i++)
        if (pl__multi_take_place(loop->multis[i]))
            return loop->multis[i];
    loop->multis =
        realloc((void *)loop->multis, (loop->multi_count + 1) * sizeof(struct pl_multi *));
    if (!loop->multis)
        abort();
    struct pl_multi *multi = loop->multis[loop->multi_count++] = pl__multi_new(loop);
    pl__multi_take_place(multi);
    return multi;
}

void pl__loop_run(struct pl_loop *loop)
{
    uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void pl__loop_stop(struct pl_loop *loop)
{
    uv_stop(&loop->uv);
}

uint64_t pl__loop_number(struct pl_loop *loop)
{
    return ++loop->number_next;
}

void pl__loop_hold(struct pl_loop *loop)
{
    loop->held_count++;
}

void pl__loop_drop(struct pl_loop *loop)
{
    assert(loop->held_count > 0);
    loop->held_count--;
}

static void close_handle(uv_handle_t *handle, void *user)
{
    (void)user;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

void pl__loop_free(struct pl_loop *loop)
{
    if (!loop)
        return;
    /* Clients end by themselves within a few turns: everything they wait for was cancelled. */
    while (loop->held_count > 0)
        uv_run(&loop->uv, UV_RUN_ONCE);
    for (size_t i = 0; i < loop->multi_count; i++)
        pl__multi_free(loop->multis[i]);
    free((void *)loop->multis);
    uv_walk(&loop->uv, close_handle, NULL);
    while (uv_run(&loop->uv, UV_RUN_DEFAULT) != 0)
        continue;
    int status = uv_loop_close(&loop->uv);
    assert(status == 0);
    (void)status;
    curl_global_cleanup();
    free(loop);
}

uint64_t pl__loop_mono_ms(struct pl_loop *loop)
{
    return uv_now(&loop->uv);
}

int64_t pl__loop_wall_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
