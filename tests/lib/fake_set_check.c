/* SPDX-License-Identifier: Apache-2.0
 *
 * The invariants of a rollout, asked before each write. */
#include "fake_set_parts.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

static int replicas_of(const struct fake *fake)
{
    return (int)json_int64_or(json_get(fake->set, "spec"), "replicas", 1);
}

int fake_ordinal_of(const char *pod)
{
    size_t length = 0;
    int ordinal = -1;
    assert_true(neoset_split_pod_name(pod, &length, &ordinal));
    return ordinal;
}

static int start_of(const struct fake *fake)
{
    return (int)json_int64_or(json_path(fake->set, "spec", "ordinals", NULL), "start", 0);
}

static int fence_of(const struct fake *fake)
{
    return (int)json_int64_or(json_path(fake->set, "spec", "updateStrategy", NULL), "partition", 0);
}

static int budget_of(const struct fake *fake)
{
    return (int)json_int64_or(json_path(fake->set, "spec", "updateStrategy", NULL), "maxUnavailable", 1);
}

static bool list_has(const struct fake *fake, const char *key, int ordinal)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, json_path(fake->set, "status", key, NULL)) {
        int64_t number = -1;
        if (json_node_int64(item, &number) && number == ordinal)
            return true;
    }
    return false;
}

static int serving(const struct fake *fake)
{
    int count = 0;
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, fake->pods) {
        const char *name = json_path_str(pod, "metadata", "name", NULL);
        count += kube_object_condition_is_true(pod, "Ready") && !kube_object_is_deleting(pod) &&
                 fake_ordinal_of(name) < start_of(fake) + replicas_of(fake);
    }
    return count;
}

/* Of the ordinals that were moved to the target, or are on the way, those that do not serve; but for one. */
static int moved_and_down(const struct fake *fake, const char *but)
{
    const char *target = fake_text(fake, "updateRevisionName");
    int down = 0;
    for (int i = start_of(fake); i < start_of(fake) + replicas_of(fake); i++) {
        CLEANUP_FREE char *name = xasprintf("db-%d", i);
        const cJSON *pod = fake_pod(fake, name);
        bool moved = list_has(fake, "leftStableOrdinals", i) && !str_equal(name, but);
        bool draining =
            pod && str_equal(json_str(kube_object_condition(pod, NEOSET_GATE), "status"), "False");
        bool there = pod && (str_equal(fake_label(pod), target) || draining || kube_object_is_deleting(pod));
        down += moved && (!pod || (there && !kube_object_condition_is_true(pod, "Ready")));
    }
    return down;
}

/* A write that moves a pod to the target: what is stored allows it, and enough pods are left. */
void fake_check_moves(struct fake *fake, const struct step_request *step, const cJSON *pod)
{
    const char *target = fake_text(fake, "updateRevisionName");
    int ordinal = fake_ordinal_of(step->name);
    assert_string_not_equal(fake_label(pod), target);
    assert_true(ordinal - start_of(fake) >= fence_of(fake));
    assert_true(list_has(fake, "leftStableOrdinals", ordinal));
    assert_false(json_bool_or(json_path(fake->set, "spec", "updateStrategy", NULL), "pause", false));
    bool begins = kube_object_condition_is_true(pod, "Ready") &&
                  !str_equal(json_str(kube_object_condition(pod, NEOSET_GATE), "status"), "False");
    if (begins && step->lowers_availability && serving(fake) - 1 < replicas_of(fake) - budget_of(fake))
        fail_msg("%s: only %d pods serve, and there must be %d", step->reason, serving(fake),
                 replicas_of(fake) - budget_of(fake));
    if (begins && step->lowers_availability && moved_and_down(fake, step->name) >= budget_of(fake))
        fail_msg("%s: %d moved pods are down already", step->reason, moved_and_down(fake, step->name));
    bool done = list_has(fake, "doneOrdinals", ordinal);
    assert_false(done);
}

/* Once a pod and change of target. */
void fake_check_once(struct fake *fake, const struct step_request *step)
{
    if (step->kind == STEP_GATE)
        return;
    CLEANUP_FREE char *line =
        xasprintf("%s/%d/%s\n", step->uid, fake->target_changes, step_kind_info(step->kind)->text);
    if (strstr(fake->patched, line))
        fail_msg("%s: %s a second time for one target", step->name, step_kind_info(step->kind)->text);
    char *all = xasprintf("%s%s", fake->patched, line);
    free(fake->patched);
    fake->patched = all;
}

bool fake_is_move(const struct step_request *step)
{
    if (step->resource != KUBE_POD)
        return false;
    return step->kind == STEP_UPDATE_IN_PLACE || (step->kind == STEP_DELETE && step->lowers_availability) ||
           (step->kind == STEP_GATE && step->lowers_availability);
}

/* A created pod runs stable, unless what is stored says that its ordinal left it. */
void fake_check_create(struct fake *fake, const struct step_request *step)
{
    assert_null(fake_find(fake->pods, step->name));
    int ordinal = fake_ordinal_of(step->name);
    bool proven = json_bool_or(json_get(fake->set, "status"), "currentRevisionProven", false);
    bool target = ordinal - start_of(fake) >= fence_of(fake) &&
                  (!proven || list_has(fake, "leftStableOrdinals", ordinal));
    assert_string_equal(fake_label(step->body),
                        fake_text(fake, target ? "updateRevisionName" : "currentRevisionName"));
    assert_int_equal(kube_object_condition_is_true(step->body, NEOSET_GATE), 0);
}
