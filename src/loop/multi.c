#include "loop/multi.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { IDLE_CONNECTIONS_MAX = 4096 };

struct pl_multi {
    CURLM *curl;
    uv_loop_t *uv;
    uv_timer_t timer;
    uv_idle_t
        soon; /* for a timeout of 0: a timer of 0 that starts itself again keeps libuv from polling */
    uint32_t handle_count; /* not closed yet */
    uint32_t transfer_count;
    uint32_t client_count;
    bool busy;    /* inside of a libcurl call that may call back */
    bool closing; /* curl_multi_cleanup() is about to run or has run */
};

/* A socket that libcurl wants to hear of. libcurl owns the descriptor, we own the watcher; it ends
 * when libcurl says so, which is before it closes the descriptor. */
struct watcher {
    uv_poll_t poll;
    struct pl_multi *multi;
    curl_socket_t fd;
    int events; /* what libcurl wants to hear of */
};

static void must(CURLMcode code)
{
    if (code == CURLM_OK)
        return;
    /* Wrong use or no memory: both are ours, and neither can be carried on with. */
    fprintf(stderr, "plimsoll: libcurl: %s\n", curl_multi_strerror(code));
    abort();
}

/* Hands out what ended. Messages are collected by libcurl, and both adding and removing are fine
 * between reading two of them. */
static void multi_collect(struct pl_multi *multi)
{
    CURLMsg *message;
    int left;

    if (multi->closing)
        return;
    while ((message = curl_multi_info_read(multi->curl, &left))) {
        struct pl_transfer *transfer = NULL;
        CURL *easy = message->easy_handle;
        CURLcode result = message->data.result;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
        if (!transfer->stays)
            pl__multi_remove(multi, easy); /* `message` is gone after this */
        transfer->ended(transfer->user, result);
    }
}

/* Tells libcurl that something happened. */
static void multi_act(struct pl_multi *multi, curl_socket_t fd, int events)
{
    int running;

    assert(!multi->busy);
    multi->busy = true;
    must(curl_multi_socket_action(multi->curl, fd, events, &running));
    multi->busy = false;
    multi_collect(multi);
}

static void poll_event(uv_poll_t *poll, int status, int events);

/* The socket has failed, and libuv has stopped watching it. What the peer said before it hung up (a
 * TLS alert that tells why) is still there: libcurl reads it when told that there is something, but
 * not when told that there was an error. */
static void poll_failed(struct watcher *watcher)
{
    uv_handle_t *handle = (uv_handle_t *)&watcher->poll;

    multi_act(watcher->multi, watcher->fd, CURL_CSELECT_IN | CURL_CSELECT_OUT);
    if (!uv_is_closing(handle))
        multi_act(watcher->multi, watcher->fd, CURL_CSELECT_ERR);
    if (!uv_is_closing(handle))
        uv_poll_start(&watcher->poll, watcher->events, poll_event);
}

static void poll_event(uv_poll_t *poll, int status, int events)
{
    struct watcher *watcher = poll->data;
    int flags = 0;

    if (status < 0) {
        poll_failed(watcher);
        return;
    }
    if (events & UV_READABLE)
        flags |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        flags |= CURL_CSELECT_OUT;
    multi_act(watcher->multi, watcher->fd, flags);
}

static void watcher_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static struct watcher *watcher_new(struct pl_multi *multi, curl_socket_t fd)
{
    struct watcher *watcher = calloc(1, sizeof *watcher);

    if (!watcher)
        abort();
    watcher->multi = multi;
    watcher->fd = fd;
    watcher->poll.data = watcher;
    if (uv_poll_init_socket(multi->uv, &watcher->poll, fd) < 0) {
        free(watcher);
        return NULL;
    }
    return watcher;
}

static int socket_wanted(CURL *easy, curl_socket_t fd, int what, void *user, void *slot)
{
    struct pl_multi *multi = user;
    struct watcher *watcher = slot;
    int events = 0;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (!watcher)
            return 0;
        /* Stopping takes the descriptor out of epoll at once, so it may be closed and its number
         * reused before the handle itself is gone. */
        uv_poll_stop(&watcher->poll);
        uv_close((uv_handle_t *)&watcher->poll, watcher_closed);
        curl_multi_assign(multi->curl, fd, NULL);
        return 0;
    }
    if (!watcher) {
        watcher = watcher_new(multi, fd);
        if (!watcher)
            return 0; /* saying no would make all of the multi useless; this way one transfer times out */
        curl_multi_assign(multi->curl, fd, watcher);
    }
    if (what & CURL_POLL_IN)
        events |= UV_READABLE;
    if (what & CURL_POLL_OUT)
        events |= UV_WRITABLE;
    watcher->events = events;
    (void)uv_poll_start(&watcher->poll, events, poll_event);
    return 0;
}

static void timer_fired(uv_timer_t *timer)
{
    multi_act(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static void soon_fired(uv_idle_t *idle)
{
    uv_idle_stop(idle);
    multi_act(idle->data, CURL_SOCKET_TIMEOUT, 0);
}

static int timeout_wanted(CURLM *curl, long timeout_ms, void *user)
{
    struct pl_multi *multi = user;

    (void)curl;
    uv_timer_stop(&multi->timer);
    uv_idle_stop(&multi->soon);
    if (multi->closing || timeout_ms < 0)
        return 0;
    if (timeout_ms == 0)
        uv_idle_start(&multi->soon, soon_fired);
    else
        uv_timer_start(&multi->timer, timer_fired, (uint64_t)timeout_ms, 0);
    return 0;
}

struct pl_multi *pl__multi_new(struct pl_loop *loop)
{
    struct pl_multi *multi = calloc(1, sizeof *multi);

    if (!multi || !(multi->curl = curl_multi_init()))
        abort();
    multi->uv = pl__loop_uv(loop);
    uv_timer_init(multi->uv, &multi->timer);
    uv_idle_init(multi->uv, &multi->soon);
    multi->timer.data = multi->soon.data = multi;
    multi->handle_count = 2;
    must(curl_multi_setopt(multi->curl, CURLMOPT_SOCKETFUNCTION, socket_wanted));
    must(curl_multi_setopt(multi->curl, CURLMOPT_SOCKETDATA, multi));
    must(curl_multi_setopt(multi->curl, CURLMOPT_TIMERFUNCTION, timeout_wanted));
    must(curl_multi_setopt(multi->curl, CURLMOPT_TIMERDATA, multi));
    must(curl_multi_setopt(multi->curl, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX));
    /* By default four times the transfers of the moment: idle servers would lose their connections. */
    must(curl_multi_setopt(multi->curl, CURLMOPT_MAXCONNECTS, (long)IDLE_CONNECTIONS_MAX));
    return multi;
}

bool pl__multi_take_place(struct pl_multi *multi)
{
    if (multi->client_count == MULTI_CLIENTS_MAX)
        return false;
    multi->client_count++;
    return true;
}

void pl__multi_give_back(struct pl_multi *multi)
{
    assert(multi->client_count > 0);
    multi->client_count--;
}

void pl__multi_add(struct pl_multi *multi, CURL *easy)
{
    assert(!multi->busy && !multi->closing);
    multi->transfer_count++;
    multi->busy = true;
    must(curl_multi_add_handle(multi->curl, easy));
    multi->busy = false;
}

void pl__multi_remove(struct pl_multi *multi, CURL *easy)
{
    assert(!multi->busy && multi->transfer_count > 0);
    multi->transfer_count--;
    multi->busy = true;
    must(curl_multi_remove_handle(multi->curl, easy));
    multi->busy = false;
}

static void handle_closed(uv_handle_t *handle)
{
    struct pl_multi *multi = handle->data;

    if (--multi->handle_count == 0)
        free(multi);
}

void pl__multi_free(struct pl_multi *multi)
{
    assert(!multi->busy && multi->transfer_count == 0);
    multi->closing = true;
    curl_multi_cleanup(multi->curl); /* takes its sockets out by socket_wanted() */
    uv_close((uv_handle_t *)&multi->timer, handle_closed);
    uv_close((uv_handle_t *)&multi->soon, handle_closed);
}
