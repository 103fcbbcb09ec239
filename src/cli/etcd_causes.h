/* cli/etcd_causes.h - what usually lies behind a hop that fails, and what to do: a table. */
#ifndef PL_CLI_ETCD_CAUSES_H
#define PL_CLI_ETCD_CAUSES_H

#include "base/str.h"

/* The legs of the way to etcd, in the order they are gone. */
enum pl_trace_hop {
    TRACE_MANAGEMENT,
    TRACE_CLUSTER,
    TRACE_KUBECONFIG,
    TRACE_WORKLOAD,
    TRACE_PERMISSION,
    TRACE_CA,
    TRACE_NODES,
    TRACE_CONNECT,
    TRACE_KUBELET,
    TRACE_TLS,
    TRACE_GRPC,
    TRACE_HOP_COUNT,
};

/* "management API". */
const char *pl__trace_hop_name(enum pl_trace_hop hop);

struct pl_trace_cause {
    enum pl_trace_hop hop;
    const char *sign; /* what the error contains, in lower case; "": any */
    const char *cause;
    const char *remedy;
};

/* The first row of this hop whose sign the error has, whatever its case; NULL: none. */
const struct pl_trace_cause *pl__trace_cause(enum pl_trace_hop hop, struct pl_str error);

/* All rows, for the test that each can be met. */
const struct pl_trace_cause *pl__trace_causes(size_t *count);

#endif
