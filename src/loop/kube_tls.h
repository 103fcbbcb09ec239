/* loop/kube_tls.h - the certificates that a connection is made with.
 *
 * One set never changes; when certificates are renewed a new set is made, and connections made with
 * the old one keep it until they are gone. */
#ifndef PL_LOOP_KUBE_TLS_H
#define PL_LOOP_KUBE_TLS_H

#include <stdint.h>

#include "base/error.h"

struct pl_kube_tls {
    uint32_t references;
    struct pl_str ca_pem;            /* empty: the system's */
    struct pl_str cert_pem, key_pem; /* empty: none */
    struct pl_arena arena;           /* holds the above, wiped at the end */
};

/* Checks what it is given: certificates that can be read, a key that is not encrypted and belongs to
 * its certificate. NULL with an error that quotes nothing of them. The caller has one reference. */
struct pl_kube_tls *pl__kube_tls_new(struct pl_str ca_pem, struct pl_str cert_pem,
                                     struct pl_str key_pem, struct pl_arena *arena,
                                     struct pl_error **err);

struct pl_kube_tls *pl__kube_tls_ref(struct pl_kube_tls *tls);
void pl__kube_tls_unref(struct pl_kube_tls *tls);

/* A certificate of our own for a server that was given none: EC P-256, self-signed, for localhost,
 * in PEM, in the arena. 0, or -1 when there is no randomness. */
int pl__tls_self_signed(struct pl_arena *arena, struct pl_str *cert_pem, struct pl_str *key_pem,
                        struct pl_error **err);

/* 0 when certificate and key are PEM and belong together. */
int pl__tls_check_pair(struct pl_str cert_pem, struct pl_str key_pem, struct pl_arena *arena,
                       struct pl_error **err);

#endif
