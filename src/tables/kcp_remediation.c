/* The remediation step of a KubeadmControlPlane, semantics.md section 9: the row ids are its numbers.
 * kcp-remediating.md says what is reported; this decides what is done. What refuses is written on the
 * chosen Machine as OwnerRemediated False. A resumed record skips 6 and 7: they were passed before it
 * was written. */
#include "tables/tables.h"

enum {
    NOTHING_TO_DO,
    PICK_DELETING,
    RECORD_BROKEN,
    WAIT_FOR_RECORD,
    RESUMING,
    TOPOLOGY_DIFFERS,
    IN_RETRY_PERIOD,
    MAX_RETRY,
    INITIALIZED,
    ONE_MACHINE,
    PROVISIONING,
    MACHINE_DELETING,
    MEMBERS_UNREADABLE,
    QUORUM_LOST,
    NO_CANDIDATE,
};

static const char *const facts[] = {
    [NOTHING_TO_DO] = "no Machine is to be remediated",
    [PICK_DELETING] = "the chosen Machine is already deleting",
    [RECORD_BROKEN] = "a record of remediation cannot be read",
    [WAIT_FOR_RECORD] = "a remediation in progress has not ended",
    [RESUMING] = "a remediation in progress stopped half way",
    [TOPOLOGY_DIFFERS] = "Cluster topology has another version",
    [IN_RETRY_PERIOD] = "it failed inside the retry period",
    [MAX_RETRY] = "it failed maxRetry times",
    [INITIALIZED] = "the control plane is initialized",
    [ONE_MACHINE] = "there is one Machine, or none",
    [PROVISIONING] = "a healthy Machine is still provisioning",
    [MACHINE_DELETING] = "a Machine is deleting",
    [MEMBERS_UNREADABLE] = "etcd members cannot be read",
    [QUORUM_LOST] = "etcd would lose its quorum",
    [NO_CANDIDATE] = "nobody healthy could take over etcd leadership",
};

uint32_t pl__kcp_remediation_facts(const struct pl_remediation_facts *f)
{
    return (uint32_t)f->nothing << NOTHING_TO_DO | (uint32_t)f->pick_deleting << PICK_DELETING |
           (uint32_t)f->record_broken << RECORD_BROKEN |
           (uint32_t)f->wait_for_record << WAIT_FOR_RECORD | (uint32_t)f->resuming << RESUMING |
           (uint32_t)f->topology_differs << TOPOLOGY_DIFFERS |
           (uint32_t)f->in_retry_period << IN_RETRY_PERIOD |
           (uint32_t)f->max_retry_reached << MAX_RETRY | (uint32_t)f->initialized << INITIALIZED |
           (uint32_t)f->one_machine << ONE_MACHINE | (uint32_t)f->provisioning << PROVISIONING |
           (uint32_t)f->machine_deleting << MACHINE_DELETING |
           (uint32_t)f->members_unreadable << MEMBERS_UNREADABLE |
           (uint32_t)f->quorum_lost << QUORUM_LOST | (uint32_t)f->no_candidate << NO_CANDIDATE;
}

#define CANNOT(message) BOTH(FALSE_, "CannotBeRemediated", "KubeadmControlPlane " message)
#define DEFERRED(message) BOTH(FALSE_, "RemediationDeferred", "KubeadmControlPlane " message)

/* clang-format off */
static const struct pl_rule rules[] = {
    /*                                             none dele brok wait resu topo retr maxr init one  prov dele unre quor cand */
    { "Remediation/2", "nothing to be remediated",
      GUARD(Y),                                    NOTHING,                                                                                                          NEXT_NONE,  LEAVE,     EVERY_PROFILE, REMEDIATION_DONE },
    { "Remediation/4", "the chosen Machine is already deleting",
      GUARD(N, Y),                                 NOTHING,                                                                                                          NEXT_NONE,  LEAVE,     EVERY_PROFILE, REMEDIATION_DONE },
    { "Remediation/5", "a record of remediation cannot be read",
      GUARD(N, N, Y),                              BOTH(FALSE_, "InternalError", MSG_SEE_LOGS),                                                                      NEXT_ERROR, OVERWRITE, EVERY_PROFILE, REMEDIATION_REFUSE },
    { "Remediation/5", "an earlier remediation is still in progress",
      GUARD(N, N, N, Y),                              NOTHING,                                                                                                          NEXT_NONE,  LEAVE,     EVERY_PROFILE, REMEDIATION_DONE },
    { "Remediation/6", "Cluster topology version differs from the KubeadmControlPlane's",
      GUARD(N, N, N, N, N, Y),                        DEFERRED("can't remediate while waiting for a version upgrade to <version> to be propagated from Cluster.spec.topology"), NEXT_NONE, OVERWRITE, EVERY_PROFILE, REMEDIATION_REFUSE },
    { "Remediation/7", "a retry inside retryPeriodSeconds",
      GUARD(N, N, N, N, N, N, Y),                     DEFERRED("can't remediate this machine because the operation already failed in the latest <period> (RetryPeriodSeconds)"), NEXT_NONE, OVERWRITE, EVERY_PROFILE, REMEDIATION_REFUSE },
    { "Remediation/7", "maxRetry is reached",
      GUARD(N, N, N, N, N, N, N, Y),                  CANNOT("can't remediate this machine because the operation already failed <maxRetry> times (MaxRetry)"),          NEXT_NONE,  OVERWRITE, EVERY_PROFILE, REMEDIATION_REFUSE },
    { "Remediation/8", "one Machine or fewer",
      GUARD(N, N, N, N, x, x, x, x, Y, Y),            CANNOT("can't remediate if current replicas are less or equal to 1"),                                             NEXT_NONE,  OVERWRITE, EVERY_PROFILE, REMEDIATION_REFUSE },
    { "Remediation/8", "a healthy Machine still provisioning",
      GUARD(N, N, N, N, x, x, x, x, Y, N, Y),         DEFERRED("waiting for control plane Machine provisioning to complete before triggering remediation"),            NEXT_NONE,  OVERWRITE, EVERY_PROFILE, REMEDIATION_REFUSE },
    { "Remediation/8", "any Machine deleting",
      GUARD(N, N, N, N, x, x, x, x, Y, N, N, Y),      DEFERRED("waiting for control plane Machine deletion to complete before triggering remediation"),                NEXT_NONE,  OVERWRITE, EVERY_PROFILE, REMEDIATION_REFUSE },
    { "Remediation/8", "reading etcd members failed",
      GUARD(N, N, N, N, x, x, x, x, Y, N, N, N, Y),   BOTH(FALSE_, "InternalError", MSG_SEE_LOGS),                                                                      NEXT_ERROR, OVERWRITE, EVERY_PROFILE, REMEDIATION_REFUSE },
    { "Remediation/8", "the members left would not keep quorum",
      GUARD(N, N, N, N, x, x, x, x, Y, N, N, N, N, Y), CANNOT("can't remediate this Machine because this could result in etcd loosing quorum"),                         NEXT_NONE,  OVERWRITE, EVERY_PROFILE, REMEDIATION_REFUSE },
    { "Remediation/8", "no healthy Machine to forward etcd leadership to",
      GUARD(N, N, N, N, x, x, x, x, Y, N, N, N, N, N, Y), CANNOT("can't remediate this Machine because there is no healthy Machine to forward etcd leadership to"),      NEXT_NONE,  OVERWRITE, EVERY_PROFILE, REMEDIATION_REFUSE },
    { "Remediation/9", "all checks passed",
      GUARD(N, N, N, N),                              BOTH(FALSE_, "MachineDeleting", MSG_MACHINE_DELETING),                                                            NEXT_NONE,  OVERWRITE, EVERY_PROFILE, REMEDIATION_GO },
};
/* clang-format on */

/* A record is waited for, resumed, or neither. */
static bool possible(uint32_t f)
{
    return !(f >> WAIT_FOR_RECORD & 1 && f >> RESUMING & 1);
}

const struct pl_table pl__kcp_remediation = {
    .name = "Remediation",
    .kind = "KubeadmControlPlane",
    .summary = "The next remediation step: which Machine would be replaced, or why none is.",
    PL_TABLE_FACTS(facts),
    PL_TABLE_RULES(rules),
    .possible = possible,
};
