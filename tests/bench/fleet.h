/* tests/bench/fleet.h - made-up clusters, the same bytes every time.
 *
 * Machines are what Cluster API v1.12 leaves in an API server after a quiet week: three field
 * managers' managedFields, v1beta2 conditions of a healthy control plane Machine, and the
 * deprecated v1beta1 ones. */
#ifndef PL_BENCH_FLEET_H
#define PL_BENCH_FLEET_H

#include "base/buf.h"

enum fleet_role { FLEET_CONTROL_PLANE, FLEET_WORKER };

/* A MachineList as the API server sends it: one line. Every tenth is a control plane Machine. */
void fleet_machine_list(struct pl_buf *b, int machine_count);

/* One Machine, and the managedFields of one (an array). */
void fleet_machine(struct pl_buf *b, enum fleet_role role, int number, bool managed_fields);
void fleet_managed_fields(struct pl_buf *b, enum fleet_role role);

/* A Snapshot, one line: a healthy control plane of three Machines, with its Nodes, Pods and etcd. */
void fleet_snapshot(struct pl_buf *b, int number);

/* The same JSON with kubectl's indentation of four. */
void fleet_indent(struct pl_buf *b, struct pl_str json);

/* The same JSON as YAML in block style, as kubectl -o yaml writes it. */
void fleet_yaml(struct pl_buf *b, struct pl_str json);

#endif
