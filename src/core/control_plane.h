/* core/control_plane.h - finds what belongs to a KubeadmControlPlane and judges all of it. */
#ifndef PL_CORE_CONTROL_PLANE_H
#define PL_CORE_CONTROL_PLANE_H

#include "core/pass.h"

/* Gathers Cluster, workload and Machines. 0, or -1 when there are too many Machines. */
int pl__control_plane_gather(struct pl_pass *p, const struct pl_kcp *kcp,
                             struct pl_control_plane *cp, struct pl_error **err);

/* Judges all conditions of the control plane and its Machines; fills `deletion` when it is being
 * deleted (then `*deletes`). */
void pl__control_plane_judge(struct pl_pass *p, struct pl_control_plane *cp,
                             struct pl_deletion *deletion, bool *deletes);

#endif
