/* loop/kube_config.h - parts of pl__kube_config_load() (kube.h) that others need, too. */
#ifndef PL_LOOP_KUBE_CONFIG_H
#define PL_LOOP_KUBE_CONFIG_H

#include "proto/kubeconfig.h"

/* Fills the `_pem` fields from the files that the `_file` fields name, which stay. */
int pl__kube_config_read_files(struct pl_arena *arena, struct pl_kube_config *config,
                               struct pl_error **err);

/* What a Pod finds: the service's address in the environment, the rest in `directory`. */
int pl__kube_config_in_cluster(struct pl_arena *arena, const char *directory,
                               struct pl_kube_config *config, struct pl_error **err);

#endif
