/* base/planted.h - mistakes on purpose, for `make sim-planted`.
 *
 * A check that nobody has seen fail proves nothing. Each name below stands at one place in the sources where
 * it takes a safeguard away; the simulator has to notice (tests/sim/planted.txt says what each one does,
 * docs/internals/simulation.md how they are run). All are 0, and gone after compiling, unless
 * tools/sim-planted.sh builds with one of them.
 *
 *     if (!d->resuming && !PL_PLANTED(RECORD_FORGOTTEN)) */
#ifndef PL_BASE_PLANTED_H
#define PL_BASE_PLANTED_H

#ifdef PL_PLANTED_HEADER
#include PL_PLANTED_HEADER /* one line: #define PL_PLANT_NAME 1 */
#endif

#ifndef PL_PLANT_QUORUM_UNCHECKED
#define PL_PLANT_QUORUM_UNCHECKED 0
#endif
#ifndef PL_PLANT_RECORD_FORGOTTEN
#define PL_PLANT_RECORD_FORGOTTEN 0
#endif
#ifndef PL_PLANT_MARK_FORGOTTEN
#define PL_PLANT_MARK_FORGOTTEN 0
#endif
#ifndef PL_PLANT_ETCD_VIEW_STALE
#define PL_PLANT_ETCD_VIEW_STALE 0
#endif
#ifndef PL_PLANT_UID_UNCHECKED
#define PL_PLANT_UID_UNCHECKED 0
#endif
#ifndef PL_PLANT_VERSION_UNCHECKED
#define PL_PLANT_VERSION_UNCHECKED 0
#endif
#ifndef PL_PLANT_HOOK_BEFORE_MEMBER
#define PL_PLANT_HOOK_BEFORE_MEMBER 0
#endif
#ifndef PL_PLANT_OTHER_HOOKS_IGNORED
#define PL_PLANT_OTHER_HOOKS_IGNORED 0
#endif
#ifndef PL_PLANT_DRAIN_IGNORED
#define PL_PLANT_DRAIN_IGNORED 0
#endif
#ifndef PL_PLANT_ORPHAN_MISTAKEN
#define PL_PLANT_ORPHAN_MISTAKEN 0
#endif
#ifndef PL_PLANT_LEADERSHIP_KEPT
#define PL_PLANT_LEADERSHIP_KEPT 0
#endif
#ifndef PL_PLANT_LEARNER_COUNTED
#define PL_PLANT_LEARNER_COUNTED 0
#endif
#ifndef PL_PLANT_DELETING_IGNORED
#define PL_PLANT_DELETING_IGNORED 0
#endif
#ifndef PL_PLANT_LAST_ONE_REMEDIATED
#define PL_PLANT_LAST_ONE_REMEDIATED 0
#endif
#ifndef PL_PLANT_RETRIES_LOST
#define PL_PLANT_RETRIES_LOST 0
#endif
#ifndef PL_PLANT_MAX_RETRY_IGNORED
#define PL_PLANT_MAX_RETRY_IGNORED 0
#endif
#ifndef PL_PLANT_RETRY_PERIOD_IGNORED
#define PL_PLANT_RETRY_PERIOD_IGNORED 0
#endif
#ifndef PL_PLANT_RECORD_DROPPED
#define PL_PLANT_RECORD_DROPPED 0
#endif
#ifndef PL_PLANT_FINALIZER_EARLY
#define PL_PLANT_FINALIZER_EARLY 0
#endif
#ifndef PL_PLANT_LEADER_UNCHECKED
#define PL_PLANT_LEADER_UNCHECKED 0
#endif
#ifndef PL_PLANT_PAUSE_IGNORED
#define PL_PLANT_PAUSE_IGNORED 0
#endif
#ifndef PL_PLANT_IN_FLIGHT_UNCHECKED
#define PL_PLANT_IN_FLIGHT_UNCHECKED 0
#endif

#define PL_PLANTED(name) PL_PLANT_##name

#endif
