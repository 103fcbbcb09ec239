/* What can be broken, as a table, and how its annotation is read. What each does is done where the thing is that
 * breaks: machine.c, node.c, etcd.c, and the front that asks pl__fleet_gate(). */
#include "fleet/internal.h"

enum {
    ON_MACHINE = FAULT_ON_MACHINE | FAULT_ON_NODE,
    ON_MEMBER = ON_MACHINE | FAULT_ON_POD,
    SLOW_MS_DEFAULT = 2000,
    SLOW_MS_MAX = 60 * 1000,
};

/* clang-format off */
#define A_POD "etcd, kube-apiserver, kube-controller-manager or kube-scheduler"
const struct pl_fleet_fault pl__fleet_faults[] = {
    { "pod-crash", ON_MEMBER, FAULT_NEEDS_PODS, A_POD, "the Pod's container ends again and again (CrashLoopBackOff)", "it runs" },
    { "pod-pending", ON_MEMBER, FAULT_NEEDS_PODS, A_POD, "the Pod waits for its container", "it runs" },
    { "pod-gone", ON_MEMBER, FAULT_NEEDS_PODS, A_POD, "the Pod is deleted and does not come back", "the kubelet makes it again" },
    { "kubelet-down", ON_MACHINE, 0, NULL, "the kubelet is silent: its Node turns Unknown, tainted unreachable", "the Node is Ready again" },
    { "node-gone", ON_MACHINE, 0, NULL, "the Node is deleted", "the kubelet registers it again" },
    { "etcd-stop", ON_MEMBER, FAULT_NEEDS_MEMBER, NULL, "the etcd process is stopped (SIGSTOP): it connects and says nothing, and its Pod is not ready", "it goes on" },
    { "etcd-kill", ON_MEMBER, FAULT_NEEDS_MEMBER, NULL, "the etcd process is killed and stays down", "it is started on its data" },
    { "etcd-nospace", ON_MEMBER, FAULT_NEEDS_MEMBER, NULL, "the member raises alarm NOSPACE", "the alarm is cleared" },
    { "etcd-learner", ON_MEMBER, FAULT_NEEDS_MEMBER, NULL, "the member is removed and joins again as a learner", "it is promoted" },
    { "etcd-ghost", FAULT_ON_CLUSTER, 0, NULL, "a member joins that has no Machine", "it is removed" },
    { "network-cut", ON_MACHINE | FAULT_ON_CLUSTER, 0, NULL, "nothing comes through, to the machine or to the cluster's API server", "everything is as before" },
    { "network-slow", ON_MACHINE | FAULT_ON_CLUSTER, 0, "milliseconds, 2000 if not said and 60000 at most", "every answer is late", "everything is as before" },
    { "bad-certificate", ON_MEMBER | FAULT_ON_CLUSTER, FAULT_NEEDS_MEMBER, NULL, "etcd shows a certificate of a stranger", "it has its own again" },
    { "nodes-refused", FAULT_ON_CLUSTER, 0, NULL, "the cluster's API server refuses to list Nodes; what was read before counts for two minutes", "it lists them" },
    { "unhealthy", FAULT_ON_MACHINE, 0, NULL, "the health check finds the Machine unhealthy", "it finds it healthy" },
};
/* clang-format on */
const size_t pl__fleet_fault_count = sizeof pl__fleet_faults / sizeof pl__fleet_faults[0];

/* The rows that are a flag and nothing else; in the order of the table. */
enum { ROW_POD_CRASH, ROW_POD_PENDING, ROW_POD_GONE, ROW_FLAGS };
static const uint32_t row_flags[] = {
    FAULT_KUBELET_DOWN,    FAULT_NODE_GONE,     FAULT_ETCD_STOP,
    FAULT_ETCD_KILL,       FAULT_ETCD_NOSPACE,  FAULT_ETCD_LEARNER,
    FAULT_ETCD_GHOST,      FAULT_NETWORK_CUT,   0, /* network-slow has a number */
    FAULT_BAD_CERTIFICATE, FAULT_NODES_REFUSED, FAULT_UNHEALTHY,
};
_Static_assert(sizeof row_flags / sizeof row_flags[0] + ROW_FLAGS ==
                   sizeof pl__fleet_faults / sizeof pl__fleet_faults[0],
               "a row each");

static struct pl_str trim(struct pl_str s)
{
    while (s.len && s.ptr[0] == ' ')
        s = (struct pl_str){ s.ptr + 1, s.len - 1 };
    while (s.len && s.ptr[s.len - 1] == ' ')
        s.len--;
    return s;
}

/* What stands before the separator; the rest stays in `*text`. */
static struct pl_str split(struct pl_str *text, char separator)
{
    struct pl_str first = *text;

    for (size_t i = 0; i < text->len; i++) {
        if (text->ptr[i] != separator)
            continue;
        first.len = i;
        *text = (struct pl_str){ text->ptr + i + 1, text->len - i - 1 };
        return trim(first);
    }
    *text = (struct pl_str){ "", 0 };
    return trim(first);
}

static int component_find(struct pl_str name)
{
    for (int i = 0; i < POD_COUNT; i++) {
        struct pl_str known = pl__static_pods[i];
        known.len--; /* its '-' */
        if (pl__str_equal(name, known))
            return i;
    }
    return -1;
}

static bool pod_fault_add(struct fault_set *set, size_t row, struct pl_str detail, unsigned on,
                          enum component pod)
{
    int component = detail.len ? component_find(detail) : on == FAULT_ON_POD ? (int)pod : 0;

    if (component < 0 || (on == FAULT_ON_POD && component != (int)pod))
        return false;
    uint8_t *bits = row == ROW_POD_CRASH     ? &set->pod_crash
                    : row == ROW_POD_PENDING ? &set->pod_pending
                                             : &set->pod_gone;
    *bits = (uint8_t)(*bits | 1 << component);
    return true;
}

static bool word_add(struct fault_set *set, struct pl_str word, unsigned on, enum component pod)
{
    struct pl_str detail = word, name = split(&detail, ':');
    uint64_t slow_ms = SLOW_MS_DEFAULT;
    size_t row = 0;

    detail = trim(detail);
    while (row < pl__fleet_fault_count && !pl__str_equal(name, pl__str(pl__fleet_faults[row].name)))
        row++;
    if (row == pl__fleet_fault_count || !(pl__fleet_faults[row].on & on))
        return false;
    if (row < ROW_FLAGS)
        return pod_fault_add(set, row, detail, on, pod);
    if (row_flags[row - ROW_FLAGS]) {
        /* What is said of the etcd of a machine can be put on its etcd Pod, and on no other. */
        if (detail.len || (on == FAULT_ON_POD && pod != POD_ETCD))
            return false;
        set->flags |= row_flags[row - ROW_FLAGS];
        return true;
    }
    if (detail.len && (!pl__str_to_u64(detail, &slow_ms) || slow_ms > SLOW_MS_MAX))
        return false;
    if (slow_ms > set->slow_ms)
        set->slow_ms = (uint32_t)slow_ms;
    return true;
}

void pl__faults_add(struct fault_set *set, struct pl_str annotation, unsigned on,
                    enum component pod)
{
    while (annotation.len) {
        struct pl_str word = split(&annotation, ',');
        if (word.len)
            word_add(set, word, on, pod);
    }
}

bool pl__fleet_fault_check(struct pl_str annotation, unsigned on, struct pl_str *word)
{
    while (annotation.len) {
        struct fault_set set = { 0 };
        *word = split(&annotation, ',');
        if (word->len == 0)
            continue;
        /* Which Pod it is nobody has said: any of them will do. */
        if (!word_add(&set, *word, on, POD_API_SERVER) && !word_add(&set, *word, on, POD_ETCD) &&
            !word_add(&set, *word, on, POD_CONTROLLER_MANAGER) &&
            !word_add(&set, *word, on, POD_SCHEDULER))
            return false;
    }
    return true;
}
