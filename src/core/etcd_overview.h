/* core/etcd_overview.h - the etcd of one control plane, member by member, as people ask for it.
 *
 * Everything lives in the arena or in the snapshot. Pure, like all of core/. */
#ifndef PL_CORE_ETCD_OVERVIEW_H
#define PL_CORE_ETCD_OVERVIEW_H

#include "core/evaluate.h"

struct pl_etcd_row {
    const struct pl_etcd_member *member;
    struct pl_str label;   /* its name, or its id until it has one */
    struct pl_str machine; /* whose Node has its name; empty: none */
    struct pl_str alarms;  /* "NOSPACE, CORRUPT"; empty: none */
    bool leads;
    enum pl_status healthy; /* EtcdMemberHealthy of the Machine */
};

struct pl_etcd_overview {
    struct pl_str namespace_, cluster, control_plane;
    bool managed;
    const struct pl_etcd_view *view; /* NULL: not observed */
    struct pl_str unknown;           /* why members are not known; empty: they are */
    bool missing;                    /* ... and that is for want of evidence, not an error */
    const struct pl_etcd_row *rows;  /* in the order listed */
    size_t row_count;
    struct pl_quorum quorum;
    /* Where members, Machines and Nodes do not match. */
    const struct pl_str *stray_members, *bare_machines, *bare_nodes;
    size_t stray_member_count, bare_machine_count, bare_node_count;
    const struct pl_etcd_alarm *stray_alarms; /* of members that are gone */
    size_t stray_alarm_count;
    const struct pl_verdict *verdict; /* EtcdClusterHealthy */
};

/* "NOSPACE, CORRUPT": what this member raises, in the arena; empty: nothing. */
struct pl_str pl__etcd_alarms_of(struct pl_arena *arena, const struct pl_etcd_view *etcd,
                                 uint64_t member_id);

/* Of this control plane. 0, or -1 when a bound is passed. */
int pl__etcd_overview(const struct pl_snapshot *s, const struct pl_kcp *kcp,
                      struct pl_evaluate_options options, struct pl_arena *arena,
                      struct pl_etcd_overview *o, struct pl_error **err);

#endif
