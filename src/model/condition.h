/* model/condition.h - a condition of an API object, and the types of conditions we know. */
#ifndef PL_MODEL_CONDITION_H
#define PL_MODEL_CONDITION_H

#include "base/json.h"

/* X(enumerator, name, polarity). Ours come first; the rest we only read. */
#define PL_CONDITION_TYPES(X)                                       \
    X(API_SERVER_POD, "APIServerPodHealthy", false)                 \
    X(CONTROLLER_MANAGER_POD, "ControllerManagerPodHealthy", false) \
    X(SCHEDULER_POD, "SchedulerPodHealthy", false)                  \
    X(ETCD_POD, "EtcdPodHealthy", false)                            \
    X(ETCD_MEMBER, "EtcdMemberHealthy", false)                      \
    X(ETCD_CLUSTER, "EtcdClusterHealthy", false)                    \
    X(COMPONENTS, "ControlPlaneComponentsHealthy", false)           \
    X(DELETING, "Deleting", true)                                   \
    X(REMEDIATING, "Remediating", true)                             \
    X(OWNER_REMEDIATED, "OwnerRemediated", false)                   \
    X(HEALTH_CHECK, "HealthCheckSucceeded", false)                  \
    X(INITIALIZED, "Initialized", false)                            \
    X(READY, "Ready", false)                                        \
    X(AVAILABLE, "Available", false)                                \
    X(UP_TO_DATE, "UpToDate", false)                                \
    X(POD_SCHEDULED, "PodScheduled", false)

enum pl_condition_type {
#define X(enumerator, name, negative) COND_##enumerator,
    PL_CONDITION_TYPES(X)
#undef X
        COND_COUNT,
    COND_UNKNOWN_TYPE = COND_COUNT,
};

/* The four static Pods of a control plane Machine, then its etcd member: what feeds the control
 * plane's two health conditions. They are the first enumerators, in the order of the messages. */
enum { POD_COUNT = 4, MACHINE_COND_COUNT = 5 };

struct pl_condition {
    struct pl_str reason;
    struct pl_str message;
    int64_t last_transition_ms;
    int64_t observed_generation; /* 0: none; real ones start at 1 */
    uint8_t type;                /* enum pl_condition_type */
    uint8_t status;              /* enum pl_status */
};

struct pl_conditions {
    struct pl_condition *items;
    uint32_t count;
    bool present;
};

/* A list of these; conditions of other types are dropped while reading. */
extern const struct pl_shape pl__condition_shape;

const char *pl__condition_type_name(enum pl_condition_type type);
bool pl__condition_type_negative(enum pl_condition_type type);

/* The condition of that type, or NULL. */
const struct pl_condition *pl__condition_find(const struct pl_conditions *list,
                                              enum pl_condition_type type);

/* Whether it is there with that status. A missing one is neither True nor False. */
static inline bool pl__condition_is(const struct pl_conditions *list, enum pl_condition_type type,
                                    enum pl_status status)
{
    const struct pl_condition *c = pl__condition_find(list, type);
    return c && c->status == status;
}

#endif
