/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of a plan share: the pods of a set as slots, the fields that decide as they are stored and
 * as they should be, and the decision that grows. Private to src/neoset: others see plan.h.
 *
 * The parts, in the order of a turn:
 *   model.c    slots from facts: which pods are there, proven, ready, available, broken
 *   ownership.c  pods and revisions that are taken over or let go
 *   retention.c  who owns the claims; volumes.c: how large they are
 *   target.c   the revision of the template: found, made, numbered; history cut
 *   decide.c   stable, target, stage, done and left ordinals
 *   create.c   missing pods and their claims, failed pods
 *   scale.c    pods outside the range
 *   prefetch.c new images fetched to nodes before pods are touched
 *   rollout.c  which pod next; update.c: how
 *   gate.c     the gate's upkeep
 *   progress.c waits, deadlines, ends of operations; retry.c: a moved pod that ran out of time
 *   trouble.c  the kubelet's reasons in words
 *   status.c   what people read; conditions.c
 *   emit.c     how a decision grows */
#pragma once

#include "neoset/body.h"
#include "neoset/plan.h"
#include "neoset/revision.h"

struct slot {
    int ordinal;
    int index; /* ordinal - start */
    bool in_range;
    const struct pod_fact *pod; /* NULL: missing */
    const struct pod_observation *seen;
    const struct revision_fact *revision; /* that the pod carries; NULL: no such object of ours */
    const char *carries; /* its name, or that of the target or of stable where these mean the same template */
    struct completion completion;
    struct neoset_open_step open;
    bool is_open;                           /* a step is open on the pod's name */
    bool ours;                              /* the set's uid controls it */
    bool failed;                            /* phase Failed or Succeeded */
    bool live;                              /* ours, not terminating, not failed */
    bool was_done;                          /* status says that it was done on the target that it carries */
    bool proven;                            /* live, and no update of it is unfinished */
    bool ready;                             /* as readiness asks, now */
    bool available;                         /* see set_available() */
    int64_t available_boot_us;              /* when its window is over; INT64_MAX: time alone does not help */
    bool broken;                            /* see is_broken() */
    bool unprovable;                        /* see is_unprovable() */
    bool past_proof;                        /* unprovable, and the budget lets it be updated all the same */
    const struct container_fact *broken_by; /* the container that waits with an error, or NULL */
    bool on_target;                         /* ours and labelled with next.target */
    bool moved;                             /* we moved it to the target, or are about to */
    bool chosen; /* its update goes on or starts in this turn: the gate's upkeep keeps off */
};

/* The heaviest reason makes the message. */
enum plan_weight {
    SAY_NOTHING,
    SAY_STEADY,
    SAY_HELD,     /* the fence holds pods back */
    SAY_CREATING, /* pods are being made or taken away */
    SAY_UPDATING, /* an update runs its course */
    SAY_BLOCKED,  /* something that a person may have to mend */
    SAY_PAUSED,
    SAY_FAILED,
    SAY_IN_DOUBT, /* a step that nobody can decide for now */
    SAY_REFUSED,  /* the server refuses a write */
    SAY_INVALID,
};

struct plan {
    const struct neoset_snapshot *at;
    const struct neoset_fact *set;
    const struct neoset_spec *spec;
    struct neoset_decision *out;
    struct slot *slots; /* every ordinal of the range, and every pod outside it; by ordinal */
    size_t slot_count;

    struct neoset_deciding now;         /* as stored */
    struct neoset_deciding next;        /* as they should be */
    bool restoring;                     /* a revision in use was deleted, and is made again */
    bool wanted_is_free;                /* a revision that is adopted or made again means the template */
    const struct revision_fact *wanted; /* means the template; NULL: not made yet */
    const struct revision_fact *target; /* of next.target; NULL */
    const struct revision_fact *stable; /* of next.stable; NULL */
    bool complete;                      /* every pod of the range is on the target and available */
    bool active;           /* a rollout is under way: the target is not stable yet, or pods are elsewhere */
    bool canary_due;       /* nothing was done on this target, and it has to prove itself first */
    bool gave_up;          /* nothing more is tried for it: a person has to do something */
    bool failed;           /* a moved pod ran out of time */
    int available;         /* of the range */
    int unavailable;       /* of the range */
    int moved_unavailable; /* of those that were moved to the target */
    int moved_count;       /* that are not done */
    bool pod_write_open;   /* a write to a pod of the set is unanswered or in doubt */
    bool advancing;        /* an `advance` step is among the steps */
    const struct slot *waited_for; /* for status.currentUpdatePod */
    const char *volumes;           /* reason of VolumesConverged; static; NULL: the set has no claims */
    char *volumes_text;            /* its message */
    const char *phase;             /* static */
    enum plan_weight weight;
    char *message;
};

/* --- model.c -------------------------------------------------------------------------------------------- */

enum { CANARY_WINDOW_S = 10, RESTART_WINDOW_S = 10, RESTART_WINDOW_MOST_S = 300 };

void plan_model_build(struct plan *plan);
/* on_target, moved and the counts, once next is decided. */
void plan_model_count(struct plan *plan);
void plan_model_done(struct plan *plan);
int plan_fence(const struct plan *plan);
/* max(fence, stage), an index. */
int plan_stage(const struct plan *plan, int stage);
/* The pod's name, also of a missing one; the caller's. */
char *slot_name(const struct plan *plan, const struct slot *slot);

/* --- ownership.c, retention.c ----------------------------------------------------------------------------
 */

/* Orphans that match are adopted, what does not match any more is released, a label that names another
 * revision of the same meaning is put right. */
void plan_ownership(struct plan *plan);
void plan_retention(struct plan *plan);
/* The owners of the pod's claims are as the retention policy wants them; else the steps are made. */
bool plan_retain_claims(struct plan *plan, const struct slot *slot);

/* --- volumes.c ------------------------------------------------------------------------------------------ */

/* The reason of VolumesConverged when it is True. */
#define VOLUMES_CONVERGED "AsLargeAsDeclared"
/* Claims below their template's size are raised, one alone first. */
void plan_volumes(struct plan *plan);

/* --- target.c, decide.c --------------------------------------------------------------------------------- */

/* A revision that is in use and was deleted is made again, from what was known of it. */
void plan_restore(struct plan *plan);
void plan_target(struct plan *plan);
void plan_history(struct plan *plan);
void plan_decide(struct plan *plan);
/* Makes the `advance` step when next differs from now. */
void plan_advance(struct plan *plan);
/* Revisions as people call them: the first image, or the name where both have the same image. The caller's.
 */
char *plan_version_text(const struct plan *plan, const struct revision_fact *revision,
                        const struct revision_fact *other);

/* --- create.c, scale.c ---------------------------------------------------------------------------------- */

void plan_create(struct plan *plan);
void plan_scale(struct plan *plan);
/* Which operation the coming and going of this pod belongs to; static. */
const char *plan_operation_of(const struct plan *plan, const struct slot *slot);
/* One of the ordinal's claims is being deleted: its name, the caller's. */
bool plan_claim_is_going(const struct plan *plan, int ordinal, char **ret_name);

/* --- prefetch.c ----------------------------------------------------------------------------------------- */

/* Pods that fetch images are waited for, and deleted when they are done or not wanted. Whether one of them
 * ran out of time. */
void plan_prefetch(struct plan *plan);
/* The images that this slot's update would change are on its node, or are not asked for, or nothing can be
 * done about it and it is no hindrance. Else, with `begin`, what is needed to fetch them is done. */
bool plan_fetch(struct plan *plan, const struct slot *slot, bool begin);

/* --- rollout.c, update.c, gate.c ------------------------------------------------------------------------ */

void plan_rollout(struct plan *plan);
/* The next write of a chosen pod's update. */
void plan_update_pod(struct plan *plan, struct slot *slot);
/* The pod can be patched, and images are among what changes: ret is made, and to be freed in any case. */
bool plan_image_changes(const struct plan *plan, const struct slot *slot, struct template_diff *ret);
/* The difference between what the pod carries and the target is in its labels and annotations only. */
bool plan_is_metadata_update(const struct plan *plan, const struct slot *slot);
void plan_gates(struct plan *plan);

/* --- progress.c, status.c, conditions.c ----------------------------------------------------------------- */

/* What keeps its container from running, in words that a person understands; "" when nothing is known. The
 * caller's. */
char *slot_trouble(struct plan *plan, const struct slot *slot);
/* The moved pod ran out of time: it is deleted and made anew, a few times, with back-off. failed_text: why,
 * as a sentence without its full stop. */
void plan_retry(struct plan *plan, const struct slot *slot, const char *failed_text);
/* Once for each action and name. wait.name is copied, wait.reason taken over. */
void plan_add_wait(struct neoset_wait **list, size_t *count, struct neoset_wait wait);
/* The journal should have this wait open for the pod; once per turn, action and pod. */
void plan_want_wait(struct plan *plan, const char *action, const char *pod, int64_t budget_us,
                    const char *reason);
/* Keeps count of the retries of a moved ordinal, also while its pod is away. True: it was tried again. */
bool plan_keep_retries(struct plan *plan, const struct slot *slot);
/* Waits, and whether one of them ran out. */
void plan_progress(struct plan *plan);
void plan_ends(struct plan *plan);
/* Phase, message and the whole status. */
void plan_status(struct plan *plan);
/* status.conditions as it should be; the caller's. */
cJSON *plan_conditions(struct plan *plan);

/* --- emit.c --------------------------------------------------------------------------------------------- */

/* A request of this set's operation of that kind. uid and version NULL for creates. */
struct step_request *plan_request(const struct plan *plan, enum step_kind kind, enum kube_resource resource,
                                  const char *name, const char *uid, const char *version,
                                  const char *operation);
/* Takes it over. Its index among the steps, or -1: not now (under way already, or refused lately). */
int plan_emit(struct plan *plan, struct step_request *request);
void plan_event(struct plan *plan, int after_step, bool warning, const char *reason, const struct slot *slot,
                const char *format, ...) __attribute__((format(printf, 6, 7)));
void plan_wake(struct plan *plan, int64_t boot_us);
void plan_say(struct plan *plan, enum plan_weight weight, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
