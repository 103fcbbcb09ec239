/* loop/kube_auth.h - who we are to one API server, at this moment.
 *
 * Holds the current bearer token (or basic credentials) as a header line and the current certificates,
 * and renews both: a token file is read again when the copy is 50 s old and after a 401, certificate
 * files when they have changed, a plugin is run when what it gave has expired and after a 401. A failed
 * renewal of a file keeps what was there. Nothing is asked of anybody for a plain http server. */
#ifndef PL_LOOP_KUBE_AUTH_H
#define PL_LOOP_KUBE_AUTH_H

#include "loop/files.h"
#include "loop/kube_exec.h"
#include "loop/kube_tls.h"
#include "loop/loop.h"

enum { KUBE_AUTH_ERROR_BYTES = 512 };

struct pl_kube_auth {
    struct pl_loop *loop;
    const struct pl_kube_config *config;
    bool https;
    struct pl_kube_tls *tls;   /* the current set; a new pointer means new connections */
    struct pl_kube_tls *given; /* the first one, which the configuration's certificates are in */
    char *header;              /* "Authorization: ...", or NULL */
    uint64_t generation;       /* counts renewals, so that a late 401 does not void a new token */
    bool stale;                /* there was a 401: renew before the next request */
    char error[KUBE_AUTH_ERROR_BYTES];

    bool token_read; /* the file, at least once */
    uint64_t token_read_ms;

    uint64_t files_checked_ms;
    bool recheck;                 /* now, whatever their age */
    struct pl_file_mark marks[3]; /* of CA, certificate, key */

    struct pl_exec_run *run; /* the plugin, while it runs */
    uint32_t exec_timeout_ms;
    bool exec_have, exec_failed;
    int64_t exec_expires_ms;
    uint64_t exec_ended_ms;
    void *user;
    void (*changed)(void *user);
};

enum pl_kube_auth_state {
    KUBE_AUTH_READY,
    KUBE_AUTH_WAIT,   /* `changed` will be called */
    KUBE_AUTH_FAILED, /* `error` says why */
};

/* Checks the certificates and keeps them: from then on the configuration's `_pem` fields point to our
 * copy, so that there is only one for each of hundreds of servers. `changed` is called from the loop when a plugin has ended. */
int pl__kube_auth_init(struct pl_kube_auth *auth, struct pl_loop *loop,
                       struct pl_kube_config *config, bool https, void *user,
                       void (*changed)(void *user), struct pl_arena *arena, struct pl_error **err);

/* To be called before each request: sees to it that header and tls are fit to be used. */
enum pl_kube_auth_state pl__kube_auth_prepare(struct pl_kube_auth *auth);

/* A request that was sent with this generation was answered 401. */
void pl__kube_auth_refused(struct pl_kube_auth *auth, uint64_t generation);

/* A handshake failed: look at the certificate files before the next one. */
void pl__kube_auth_recheck(struct pl_kube_auth *auth);

void pl__kube_auth_release(struct pl_kube_auth *auth);

#endif
