/* loop/etcd_cert.h - what we show to the etcd of one cluster, and whom we trust there.
 *
 * A client certificate made in memory and signed by the CA of Secret <cluster>-etcd, as Cluster API
 * does it: CN cluster-api.x-k8s.io, for clients, with an EC key of ours that is made with it. Nothing is
 * written anywhere, the CA's key is not kept, and no error quotes any of it. Ours lives for a day at
 * most, so whoever holds one asks pl__etcd_cert_renew_at_ms() and mints anew. */
#ifndef PL_LOOP_ETCD_CERT_H
#define PL_LOOP_ETCD_CERT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct pl_etcd_cert;

/* `ca_pem` is tls.crt: all of its certificates are trusted, and the one that belongs to `key_pem`
 * (tls.key: RSA or EC, PKCS#1, SEC1 or PKCS#8) signs. 0, or -1 when they cannot be used. */
int pl__etcd_cert_mint(struct pl_str ca_pem, struct pl_str key_pem, int64_t now_ms,
                       struct pl_arena *arena, struct pl_etcd_cert **out, struct pl_error **err);

/* Connections made with it keep what they need. NULL is fine. */
void pl__etcd_cert_free(struct pl_etcd_cert *cert);

/* When half of its life is over. */
int64_t pl__etcd_cert_renew_at_ms(const struct pl_etcd_cert *cert);

/* Whether it was made from these very bytes. */
bool pl__etcd_cert_is_from(const struct pl_etcd_cert *cert, struct pl_str ca_pem,
                           struct pl_str key_pem);

/* For loop/etcd_tls.c: the SSL_CTX, owned by the certificate. */
struct ssl_ctx_st *pl__etcd_cert_ssl_ctx(const struct pl_etcd_cert *cert);

#endif
