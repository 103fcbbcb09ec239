/* proto/exec_credential.h - what a credential plugin is told and what it answers.
 *
 * client.authentication.k8s.io/v1 and v1beta1: JSON in an environment variable, JSON on standard
 * output. Certificates in it are plain PEM, unlike those of a kubeconfig. */
#ifndef PL_PROTO_EXEC_CREDENTIAL_H
#define PL_PROTO_EXEC_CREDENTIAL_H

#include "proto/kubeconfig.h"

struct pl_exec_credential {
    struct pl_str token;
    struct pl_str client_cert_pem, client_key_pem;
    int64_t expires_ms; /* 0: never */
};

/* The value of KUBERNETES_EXEC_INFO. */
struct pl_str pl__exec_info(struct pl_arena *arena, const struct pl_kube_config *config);

/* Reads what the plugin printed. 0, or -1 with an error that never quotes it. */
int pl__exec_credential_parse(struct pl_arena *arena, struct pl_str text, struct pl_str source,
                              struct pl_str api_version, struct pl_exec_credential *credential,
                              struct pl_error **err);

#endif
