/* loop/kube.h - one Kubernetes API server, over HTTP/2 on the loop.
 *
 * Requests are multiplexed on one connection; past 90 open streams a second one is opened. Everything
 * has a deadline: connecting (30 s, `connect_timeout_ms`), each request, and a silent peer (dead within
 * 45 s: TCP user timeout plus a small request of our own when nothing came for 30 s). TLS is verified
 * unless the kubeconfig says otherwise; credentials go only to https. The answer to every request is
 * exactly one call of its `done`, and never from within pl__kube_send(). */
#ifndef PL_LOOP_KUBE_H
#define PL_LOOP_KUBE_H

#include "loop/loop.h"
#include "proto/kubeconfig.h"

struct pl_kube;

struct pl_kube_options {
    double qps; /* requests per second, watches included; 0: no limit */
    double burst;
    uint32_t connect_timeout_ms; /* 0: 30 s */
    const char *user_agent;      /* NULL: plimsoll/VERSION */
    uint32_t silence_ms;         /* nothing came for so long: ask; 0: 30 s */
    uint32_t probe_timeout_ms;   /* no answer to that for so long: dead; 0: 10 s */
    uint32_t streams_max;        /* on one connection; 0: 90 */
    uint32_t exec_timeout_ms;    /* for a credential plugin; 0: 60 s */
};

/* Why there was no HTTP answer. */
enum pl_kube_failure {
    KUBE_OK = 0,      /* there was one: look at `status` */
    KUBE_UNREACHABLE, /* refused, no route, name not found */
    KUBE_TIMEOUT,     /* the deadline passed */
    KUBE_TLS,         /* certificate or handshake */
    KUBE_CREDENTIALS, /* token file, exec plugin, client certificate */
    KUBE_CUT,         /* the connection broke in the middle */
    KUBE_CANCELLED,   /* pl__kube_cancel() or pl__kube_close() */
    KUBE_TOO_LARGE,   /* more than `body_max` */
};

struct pl_kube_answer {
    enum pl_kube_failure failure;
    struct pl_str error; /* for people, no credentials in it */
    int status;          /* HTTP; 0 without an answer */
    int retry_after_s;   /* -1: none */
    struct pl_str content_type;
    struct pl_str body; /* whole; of a stream only when the status is not 200 */
};

struct pl_kube_request {
    const char *method;       /* "GET", "PATCH", ... */
    const char *path;         /* "/api/v1/nodes?watch=true&..." behind the server's prefix */
    const char *content_type; /* of the body; NULL: application/json */
    const char *accept;       /* NULL: application/json */
    struct pl_str body;       /* copied */
    uint32_t timeout_ms;      /* whole request; a stream: until the headers; 0: 30 s. Counted from
                                 when the rate limit lets it go. */
    bool stream;              /* deliver bytes as they come, to `chunk` */
    size_t body_max;          /* 0: 64 MiB; decompressed; a stream that is 200 has no limit */
    /* A stream: bytes in the order they came, in pieces of any size. */
    void (*chunk)(void *user, const char *bytes, size_t size);
    /* Exactly once, last. What it is given lives for the call only. */
    void (*done)(void *user, const struct pl_kube_answer *answer);
    void *user;
};

/* Opens nothing yet: connecting comes with the first request. The config is copied. 0, or -1 when it
 * cannot work (bad PEM, bad URL). */
int pl__kube_open(struct pl_loop *loop, const struct pl_kube_config *config,
                  const struct pl_kube_options *options, struct pl_arena *arena,
                  struct pl_kube **kube, struct pl_error **err);

/* Sends, or queues behind the rate limit. The id is never 0. */
uint64_t pl__kube_send(struct pl_kube *kube, const struct pl_kube_request *request);

/* Its `done` comes with KUBE_CANCELLED, from the loop. Unknown ids are ignored. */
void pl__kube_cancel(struct pl_kube *kube, uint64_t id);

/* Cancels what is open (each `done` still comes) and frees it afterwards. */
void pl__kube_close(struct pl_kube *kube);

/* Counters for metrics: requests by method, host and status code. */
struct pl_kube_count {
    const char *method;
    int status; /* 0: no answer */
    uint64_t count;
};
const struct pl_kube_count *pl__kube_counts(const struct pl_kube *kube, size_t *count);
const char *pl__kube_host(const struct pl_kube *kube);

/* Finds the configuration the way kubectl does: `path` if given, $KUBECONFIG (several files merged,
 * the first value wins), ~/.kube/config, in-cluster. Reads files it names. */
int pl__kube_config_load(struct pl_arena *arena, const char *path, const char *context,
                         struct pl_kube_config *config, struct pl_error **err);

#endif
