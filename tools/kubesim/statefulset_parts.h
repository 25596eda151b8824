/* SPDX-License-Identifier: Apache-2.0
 *
 * What kube-controller-manager does with StatefulSets, in the order of its own code
 * (stateful_set_control.go): revisions, orphans, pods in order or in parallel, partition and OnDelete,
 * retention of claims, status. Writes as a client does, never hit by a fault. Off unless asked for
 * (kubesim_run_statefulsets). statefulset_controller.c syncs sets, statefulset_revisions.c knows what their
 * pods run, statefulset_pods.c makes and deletes them. Not modelled: maxUnavailable above 1 (such a set is
 * left alone and its status says so). */
#pragma once

#include "kubesim/actor.h"

enum { SET_REPLICAS_MAX = 1000 };

/* One set in one sync. */
struct set {
    struct kubesim *sim;
    const cJSON *object; /* a copy */
    const char *namespace;
    const char *name;
    const char *uid;
    const cJSON *spec;
    struct selector *selector;
    int64_t replicas, start, partition;
    bool ordered, on_delete, dying;
    cJSON *history;                /* its revisions, copies, oldest first */
    const cJSON *current, *update; /* of them */
    struct version **pods;         /* held, by index; NULL: none */
    cJSON *condemned;              /* copies of those that are too many, lowest ordinal first */
    int64_t retry_us;              /* when to look again though nothing changes; INT64_MAX: never */
    int64_t there, ready, available, on_current, updated; /* for status */
};

extern const struct actor statefulset_actor;

bool set_owns(const struct set *set, const cJSON *object);
cJSON *set_owner_reference(const struct set *set);
/* Makes an orphan the set's. */
void set_adopt(const struct set *set, const char *root, const char *plural, const cJSON *object);
const cJSON *set_controller_of(const cJSON *object);

/* Fills history, current and update; makes, adopts and renumbers revisions. -1: the server refused. */
int set_find_revisions(struct set *set);
/* Deletes the oldest that nothing needs beyond revisionHistoryLimit. */
void set_truncate_history(const struct set *set);
/* The pod template of a revision; owned by it. */
const cJSON *set_template_of(const cJSON *revision);

/* The pod at an index as it was when it was collected, or NULL. */
static inline const cJSON *set_pod(const struct set *set, int64_t index)
{
    return set->pods[index] ? version_tree(set->pods[index]) : NULL;
}
/* Fills pods and condemned; adopts orphans. */
void set_collect_pods(struct set *set);
void set_count_pods(struct set *set);
/* Creates, deletes and updates what is due, one step further. */
void set_work_on_pods(struct set *set);
