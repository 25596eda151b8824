/* SPDX-License-Identifier: Apache-2.0
 *
 * The seed's table of a rollout, field by field, and the rules of fence, stage, budget, pause and targets. */
#include "fake_set.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

static struct fake *make_running(int replicas, const char *image)
{
    struct fake *fake = fake_make(replicas, image);
    fake_run(fake, 4 * replicas + 4);
    assert_int_equal(fake_number(fake, "availableReplicas"), replicas);
    return fake;
}

/* How many pods have this image in their spec. */
static int count_image(const struct fake *fake, const char *image)
{
    int count = 0;
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, fake->pods) {
        count += str_equal(fake_image(fake, json_path_str(pod, "metadata", "name", NULL)), image);
    }
    return count;
}

/* Of db:1, with as many pods of db:2 as the fence lets through, and at rest. */
static struct fake *make_held(int replicas, int fence)
{
    struct fake *fake = make_running(replicas, "db:1");
    fake_set_fence(fake, fence);
    fake_set_image(fake, "db:2");
    fake_run(fake, 80);
    assert_int_equal(count_image(fake, "db:2"), MAX(replicas - fence, 0));
    return fake;
}

static void let_the_rest_follow(struct fake *fake)
{
    fake_set_fence(fake, 0);
    assert_true(fake_run_until(fake, "Completed", 100));
}

static bool has_event(const struct fake *fake, const char *reason)
{
    return strstr(fake->events, reason) != NULL;
}

/* --- the seed ------------------------------------------------------------------------------------------- */

static void a_new_set_comes_up_in_order_and_is_idle(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = fake_make(5, "db:8.0");
    fake_settle(fake);
    assert_int_equal(cJSON_GetArraySize(fake->pods), 1);
    assert_non_null(fake_pod(fake, "db-0"));
    fake_run(fake, 30);
    assert_int_equal(cJSON_GetArraySize(fake->pods), 5);
    assert_string_equal(fake_text(fake, "phase"), "Idle");
    assert_string_equal(fake_text(fake, "currentImage"), "db:8.0");
    assert_string_equal(fake_text(fake, "targetImage"), "db:8.0");
    assert_int_equal(fake_number(fake, "replicas"), 5);
    assert_int_equal(fake_number(fake, "readyReplicas"), 5);
    assert_int_equal(fake_number(fake, "updatedReplicas"), 5);
    assert_int_equal(fake_number(fake, "currentRevision"), 1);
    assert_string_equal(fake_text(fake, "message"), "all 5 pods run db:8.0.");
    assert_true(fake_condition_is(fake, "Available", "True"));
    assert_true(fake_condition_is(fake, "Stalled", "False"));
}

struct row {
    const char *phase;
    const char *current_image;
    const char *target_image;
    int updated;
    int partition;
};

static bool is_row(const struct fake *fake, const struct row *row)
{
    return str_equal(fake_text(fake, "phase"), row->phase) &&
           str_equal(fake_text(fake, "currentImage"), row->current_image) &&
           str_equal(fake_text(fake, "targetImage"), row->target_image) &&
           fake_number(fake, "updatedReplicas") == row->updated &&
           fake_number(fake, "currentPartition") == row->partition;
}

static void the_seed_tells_the_rollout(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(5, "mysql:8.0");
    fake_set_budget(fake, 2);
    fake_run(fake, 2);
    static const struct row rows[] = {
        {"Idle", "mysql:8.0", "mysql:8.0", 5, 0},       {"Canary", "mysql:8.0", "mysql:8.1", 0, 4},
        {"RollingOut", "mysql:8.0", "mysql:8.1", 1, 2}, {"RollingOut", "mysql:8.0", "mysql:8.1", 3, 0},
        {"Completed", "mysql:8.1", "mysql:8.1", 5, 0},
    };
    size_t at = 0;
    assert_true(is_row(fake, &rows[at]));
    fake_set_image(fake, "mysql:8.1");
    int last_partition = 4;
    for (int second = 0; second < 120 && at + 1 < ARRAY_SIZE(rows); second++) {
        fake_settle(fake);
        int partition = (int)fake_number(fake, "currentPartition");
        assert_true(partition == 4 || partition == 2 || partition == 0);
        assert_true(partition <= last_partition);
        last_partition = partition;
        while (at + 1 < ARRAY_SIZE(rows) && is_row(fake, &rows[at + 1]))
            at++;
        fake->boot_us += 1000000;
        fake_sync(fake);
    }
    if (at + 1 < ARRAY_SIZE(rows))
        fail_msg("stopped before row %zu: %s", at + 1, fake_text(fake, "message"));
    assert_int_equal(fake->counts.patches, 5);
    assert_int_equal(fake->counts.deletes, 0);
    assert_int_equal(fake_number(fake, "currentRevision"), 2);
    assert_true(has_event(fake, "RolloutStarted") && has_event(fake, "StageOpened") &&
                has_event(fake, "RolloutCompleted"));
}

static void one_pod_at_a_time_costs_four_steps_a_pod(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(5, "db:1");
    int writes = fake->counts.writes, advances = fake->counts.advances, status = fake->counts.status_writes;
    fake_set_image(fake, "db:2");
    assert_true(fake_run_until(fake, "Completed", 200));
    /* drain, patch, open; and the decisions: the target, the first pod (the template is tried between), one a
     * pod. */
    assert_int_equal(fake->counts.advances - advances, 7);
    assert_int_equal(fake->counts.writes - writes, 1 + 5 * 3 + 7);
    /* What people read follows at most twice a pod here, where every second is looked at. */
    assert_true(fake->counts.status_writes - status <= 5 * 4 + 3);
}

static void roll_out_in_one_operation(struct fake *fake, const char *image)
{
    str_replace(&fake->operations, "");
    fake_set_image(fake, image);
    assert_true(fake_run_until(fake, "Completed", 100));
    CLEANUP_FREE char *expected = xasprintf("rollout->%s\n", image);
    assert_string_equal(fake->operations, expected);
}

static void a_rollout_is_one_operation_from_its_first_step_to_its_last(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(3, "db:1");
    assert_string_equal(fake->operations, "scale->3\n");
    roll_out_in_one_operation(fake, "db:2");
    roll_out_in_one_operation(fake, "db:1");
    /* One that changes no image goes by the revision's name. */
    str_replace(&fake->operations, "");
    fake_edit(fake, "\"fast\"", "template", "spec", "priorityClassName", NULL);
    assert_true(fake_run_until(fake, "Completed", 100));
    CLEANUP_FREE char *expected = xasprintf("rollout->%s\n", fake_text(fake, "updateRevisionName"));
    assert_string_equal(fake->operations, expected);
}

/* Of the words that operations are known by: constant from the first step to the last, also on a way back
 * that a fence stopped half way. */
static void a_way_back_from_half_way_is_one_rollout_named_by_its_images(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_held(5, 2);
    roll_out_in_one_operation(fake, "db:1");
}

/* Nothing moves, so nothing is written and no operation begins. */
static void the_fence_of_a_settled_set_moves_without_a_step(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(5, "db:1");
    fake_set_image(fake, "db:2");
    assert_true(fake_run_until(fake, "Completed", 100));
    str_replace(&fake->operations, "");
    for (int fence = 4; fence >= 0; fence -= 2) {
        fake_set_fence(fake, fence);
        fake_run(fake, 10);
    }
    assert_string_equal(fake->operations, "");
    fake_set_image(fake, "db:3");
    assert_true(fake_run_until(fake, "Completed", 100));
}

static void the_fence_of_a_new_set_moves_without_a_step(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = fake_make(3, "db:1");
    fake_set_fence(fake, 2);
    fake_run(fake, 20);
    assert_int_equal(fake_number(fake, "availableReplicas"), 3);
    str_replace(&fake->operations, "");
    fake_set_fence(fake, 0);
    fake_run(fake, 10);
    assert_string_equal(fake->operations, "");
}

/* --- the fence ------------------------------------------------------------------------------------------ */

static void the_fence_is_never_crossed_and_the_message_says_so(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_held(5, 4);
    assert_string_equal(fake_image(fake, "db-4"), "db:2");
    assert_string_equal(fake_text(fake, "phase"), "Canary");
    assert_int_equal(fake_number(fake, "currentPartition"), 4);
    assert_int_equal(fake_number(fake, "updatedReplicas"), 1);
    assert_int_equal(fake_number(fake, "expectedUpdatedReplicas"), 1);
    assert_string_equal(fake_text(fake, "currentImage"), "db:1");
    assert_string_equal(fake_text(fake, "message"),
                        "4 pods are held back by partition 4: lower spec.updateStrategy.partition to go on.");
}

static void lowering_the_fence_lets_go_at_once(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_held(5, 4);
    fake_set_fence(fake, 3);
    fake_run(fake, 60);
    assert_int_equal(count_image(fake, "db:2"), 2);
    assert_string_equal(fake_text(fake, "phase"), "RollingOut");
    let_the_rest_follow(fake);
}

static void raising_the_fence_rolls_nothing_back(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_held(5, 3);
    fake_set_fence(fake, 5);
    fake_run(fake, 60);
    assert_int_equal(count_image(fake, "db:2"), 2);
    assert_string_equal(
        fake_text(fake, "message"),
        "3 pods are held back by partition 5 (db-3 runs db:2, and 1 more are not on the stable revision): "
        "lower spec.updateStrategy.partition to go on.");
    /* A pod that dies below it comes back on stable; that is the only way down. */
    fake_delete_pod(fake, "db-3");
    fake_run(fake, 20);
    assert_string_equal(fake_image(fake, "db-3"), "db:1");
    let_the_rest_follow(fake);
}

static void a_fence_above_replicas_holds_everything(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_held(3, 7);
    assert_int_equal(count_image(fake, "db:1"), 3);
    assert_int_equal(fake->counts.patches, 0);
    assert_int_equal(fake_number(fake, "currentRevision"), 2);
    assert_string_equal(fake_text(fake, "phase"), "Canary");
}

static void fence_and_stage_are_indexes(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = fake_make(3, "db:1");
    fake_edit(fake, "5", "ordinals", "start", NULL);
    fake_run(fake, 30);
    assert_non_null(fake_pod(fake, "db-5"));
    assert_non_null(fake_pod(fake, "db-7"));
    assert_int_equal(cJSON_GetArraySize(fake->pods), 3);
    fake_edit(fake, "2", "updateStrategy", "partition", NULL);
    fake_set_image(fake, "db:2");
    fake_run(fake, 60);
    assert_string_equal(fake_image(fake, "db-7"), "db:2");
    assert_string_equal(fake_image(fake, "db-6"), "db:1");
    assert_int_equal(fake_number(fake, "currentPartition"), 2);
}

/* --- canary and stage ----------------------------------------------------------------------------------- */

static void a_bad_canary_stays_the_only_one(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(5, "db:1");
    fake_set_budget(fake, 3);
    fake_set_image(fake, "db:unready");
    fake_run(fake, 400);
    assert_int_equal(count_image(fake, "db:unready"), 1);
    assert_string_equal(fake_text(fake, "phase"), "Canary");
    assert_int_equal(fake_number(fake, "currentPartition"), 4);
    assert_int_equal(fake_number(fake, "readyReplicas"), 4);
    assert_int_equal(fake_number(fake, "updatedReplicas"), 0);
}

static void a_canary_that_crashes_is_never_available(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(5, "db:1");
    fake_set_image(fake, "db:crash");
    fake_run(fake, 300);
    assert_int_equal(count_image(fake, "db:crash"), 1);
    assert_string_equal(fake_text(fake, "phase"), "Canary");
}

static void a_canary_is_done_after_ten_quiet_seconds(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(3, "db:1");
    fake_set_image(fake, "db:2");
    while (fake_number(fake, "updatedReplicas") != 1)
        fake_run(fake, 1);
    int64_t proven_us = fake->boot_us;
    while (fake_number(fake, "updatedAvailableReplicas") != 1)
        fake_run(fake, 1);
    int64_t seconds = (fake->boot_us - proven_us) / 1000000;
    assert_true(seconds >= 8 && seconds <= 11);
}

static void a_bad_version_takes_no_more_than_the_budget(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(5, "db:1");
    fake_set_budget(fake, 2);
    fake_set_image(fake, "db:2");
    while (fake_number(fake, "currentPartition") == 4 || fake_number(fake, "updatedReplicas") != 1)
        fake_run(fake, 1);
    /* It was good once; from now on it is not. */
    fake_set_image(fake, "db:unready");
    fake_run(fake, 600);
    assert_true(count_image(fake, "db:unready") <= 2);
    assert_true(fake_number(fake, "readyReplicas") >= 3);
}

static void min_ready_seconds_spend_budget(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(3, "db:1");
    fake_edit(fake, "60", "minReadySeconds", NULL);
    fake_run(fake, 70);
    fake_set_image(fake, "db:2");
    fake_run(fake, 50);
    assert_int_equal(count_image(fake, "db:2"), 1);
    fake_run(fake, 40);
    assert_int_equal(count_image(fake, "db:2"), 2);
    assert_true(fake_run_until(fake, "Completed", 200));
}

static void a_percentage_counts_at_least_one(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(4, "db:1");
    fake_edit(fake, "\"10%\"", "updateStrategy", "maxUnavailable", NULL);
    fake_run(fake, 1);
    assert_int_equal(fake_number(fake, "effectiveMaxUnavailable"), 1);
    fake_edit(fake, "\"74%\"", "updateStrategy", "maxUnavailable", NULL);
    fake_run(fake, 1);
    assert_int_equal(fake_number(fake, "effectiveMaxUnavailable"), 2);
}

/* --- pause ---------------------------------------------------------------------------------------------- */

static void a_pause_starts_nothing_and_finishes_what_runs(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(5, "db:1");
    fake_set_image(fake, "db:2");
    while (fake->counts.patches == 0)
        fake_run(fake, 1);
    fake_pause(fake, true);
    fake_run(fake, 60);
    assert_int_equal(fake->counts.patches, 1);
    assert_string_equal(fake_text(fake, "phase"), "Paused");
    assert_int_equal(fake_number(fake, "updatedReplicas"), 1);
    assert_int_equal(cJSON_GetArraySize(json_path(fake->set, "status", "doneOrdinals", NULL)), 1);
    assert_int_equal(fake_number(fake, "readyReplicas"), 5);
    assert_non_null(strstr(fake_text(fake, "message"), "set spec.updateStrategy.pause to false"));
    fake_pause(fake, false);
    assert_true(fake_run_until(fake, "Completed", 200));
    assert_int_equal(fake->counts.patches, 5);
}

static void a_pause_between_drain_and_patch_opens_the_gate_again(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(3, "db:1");
    fake_set_image(fake, "db:2");
    while (fake->counts.drains == 0)
        fake_turn(fake);
    fake_pause(fake, true);
    fake_run(fake, 10);
    assert_int_equal(fake->counts.patches, 0);
    assert_int_equal(fake_number(fake, "readyReplicas"), 3);
}

static void while_paused_pods_are_replaced_and_scaled(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(3, "db:1");
    fake_pause(fake, true);
    fake_set_image(fake, "db:2");
    fake_scale(fake, 5);
    fake_delete_pod(fake, "db-1");
    fake_run(fake, 40);
    assert_int_equal(fake_number(fake, "readyReplicas"), 5);
    assert_int_equal(count_image(fake, "db:1"), 5);
}

static void an_unpaused_fence_change_goes_on_without_asking(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_held(5, 4);
    fake_pause(fake, true);
    fake_run(fake, 5);
    fake_set_fence(fake, 2);
    fake_pause(fake, false);
    fake_run(fake, 100);
    assert_int_equal(count_image(fake, "db:2"), 3);
}

/* --- targets -------------------------------------------------------------------------------------------- */

static void going_back_to_stable_needs_no_canary_and_spares_who_never_left(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_held(5, 3);
    int revisions = cJSON_GetArraySize(fake->revisions), patches = fake->counts.patches;
    fake_set_image(fake, "db:1");
    fake_settle(fake);
    assert_string_equal(fake_text(fake, "phase"), "RollingOut");
    let_the_rest_follow(fake);
    assert_int_equal(count_image(fake, "db:1"), 5);
    assert_int_equal(fake->counts.patches - patches, 2);
    assert_int_equal(cJSON_GetArraySize(fake->revisions), revisions);
    /* The older object is the newest again. */
    assert_int_equal(fake_number(fake, "currentRevision"), 3);
}

/* Patched back to stable, its pod is being restarted: nobody may read Completed before it is proven. */
static void going_back_is_not_complete_before_the_pod_is_proven_to_be_back(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = fake_make(3, "db:1");
    fake_run(fake, 20);
    fake_set_image(fake, "db:none");
    fake_run(fake, 5);
    assert_string_equal(fake_image(fake, "db-2"), "db:none");
    fake_set_image(fake, "db:1");
    fake->no_kubelet = true;
    fake_run(fake, 15);
    assert_string_equal(fake_image(fake, "db-2"), "db:1");
    assert_string_not_equal(fake_text(fake, "phase"), "Completed");
    assert_string_not_equal(fake_text(fake, "phase"), "Idle");
    fake->no_kubelet = false;
    assert_true(fake_run_until(fake, "Completed", 30));
}

/* Who waits for observedGeneration and updatedReplicas is not told of the old version's pods. */
static void a_status_of_a_new_template_counts_no_pod_of_the_old_one(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = fake_make(3, "db:1");
    assert_true(fake_run_until(fake, "Idle", 60));
    fake_run(fake, 10);
    assert_int_equal(fake_number(fake, "updatedReplicas"), 3);
    fake_set_image(fake, "db:2");
    int told = 0;
    for (int i = 0; i < 200 && count_image(fake, "db:2") < 3; i++) {
        bool is_told = fake_number(fake, "observedGeneration") ==
                       json_int64_or(json_get(fake->set, "metadata"), "generation", 0);
        assert_true(!is_told || fake_number(fake, "updatedReplicas") <= count_image(fake, "db:2"));
        told += is_told;
        if (fake_turn(fake) == 0)
            fake_run(fake, 1);
    }
    assert_true(told > 3);
    assert_true(fake_run_until(fake, "Completed", 60));
}

static void a_new_template_in_mid_rollout_starts_the_stage_again(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(5, "db:1");
    fake_set_image(fake, "db:2");
    while (fake_number(fake, "currentPartition") != 2)
        fake_run(fake, 1);
    fake_set_image(fake, "db:3");
    fake_settle(fake);
    assert_int_equal(fake_number(fake, "currentPartition"), 4);
    assert_string_equal(fake_text(fake, "phase"), "Canary");
    assert_string_equal(fake_text(fake, "currentImage"), "db:1");
    assert_true(fake_run_until(fake, "Completed", 200));
    assert_int_equal(count_image(fake, "db:3"), 5);
}

static void a_bad_template_is_healed_by_a_good_one(void **state)
{
    (void)state;
    for (int parallel = 0; parallel < 2; parallel++) {
        /* Nothing was ever healthy. */
        CLEANUP_FAKE struct fake *fake = fake_make(3, "db:none");
        if (parallel)
            fake_edit(fake, "\"Parallel\"", "podManagementPolicy", NULL);
        fake_run(fake, 20);
        assert_int_equal(fake_number(fake, "readyReplicas"), 0);
        fake_set_image(fake, "db:1");
        fake_run(fake, 60);
        assert_int_equal(fake_number(fake, "availableReplicas"), 3);
        /* And a bad canary of a running set. */
        fake_set_image(fake, "db:none");
        fake_run(fake, 30);
        assert_int_equal(count_image(fake, "db:none"), 1);
        fake_set_image(fake, "db:2");
        assert_true(fake_run_until(fake, "Completed", 200));
    }
}

/* The pod that was taken down spends the budget, and the broken one is mended when it is up again: between
 * them is one that a person deleted, which waits for the broken one. */
static void a_pod_that_was_taken_down_comes_back_beside_a_broken_one_and_a_missing_one(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = fake_make(3, "db:1");
    fake_edit(fake, "\"Recreate\"", "updateStrategy", "type", NULL);
    for (int i = 0; i < 60 && !fake_pod(fake, "db-2"); i++)
        fake_run(fake, 1);
    fake_set_image(fake, "db:none");
    for (int i = 0; i < 60 && fake->counts.deletes == 0; i++)
        fake_run(fake, 1);
    fake_delete_pod(fake, "db-1");
    fake_delete_pod(fake, "db-0");
    fake_run(fake, 5);
    assert_string_equal(fake_image(fake, "db-0"), "db:none");
    assert_null(fake_pod(fake, "db-1"));
    fake_set_image(fake, "db:2");
    fake_run(fake, 120);
    assert_int_equal(fake_number(fake, "availableReplicas"), 3);
    assert_string_equal(fake_image(fake, "db-0"), "db:2");
}

static void a_new_set_has_no_canary(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = fake_make(3, "db:1");
    fake_run(fake, 4);
    fake_set_image(fake, "db:2");
    fake_run(fake, 1);
    assert_string_not_equal(fake_text(fake, "phase"), "Canary");
    fake_run(fake, 60);
    assert_int_equal(count_image(fake, "db:2"), 3);
    assert_int_equal(fake_number(fake, "availableReplicas"), 3);
}

/* --- scaling in mid-rollout ----------------------------------------------------------------------------- */

static void scaling_out_uses_the_stable_image(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_held(5, 4);
    fake_set_fence(fake, 8);
    fake_scale(fake, 8);
    fake_run(fake, 40);
    assert_int_equal(cJSON_GetArraySize(fake->pods), 8);
    assert_int_equal(count_image(fake, "db:1"), 7);
    assert_string_equal(fake_image(fake, "db-7"), "db:1");
    /* Above the fence they are updated in their turn. */
    let_the_rest_follow(fake);
    assert_int_equal(count_image(fake, "db:2"), 8);
}

static void a_moved_pod_that_dies_comes_back_on_the_target(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_held(5, 4);
    fake_delete_pod(fake, "db-4");
    fake_delete_pod(fake, "db-3");
    fake_run(fake, 30);
    assert_string_equal(fake_image(fake, "db-4"), "db:2");
    assert_string_equal(fake_image(fake, "db-3"), "db:1");
}

static void scaling_to_nothing_completes_nothing_and_forgets_nothing(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_held(3, 2);
    fake_scale(fake, 0);
    fake_run(fake, 40);
    assert_int_equal(cJSON_GetArraySize(fake->pods), 0);
    assert_string_equal(fake_text(fake, "currentImage"), "db:1");
    assert_string_not_equal(fake_text(fake, "phase"), "Completed");
    fake_scale(fake, 3);
    fake_run(fake, 60);
    assert_string_equal(fake_image(fake, "db-0"), "db:1");
    assert_string_equal(fake_image(fake, "db-2"), "db:2");
    let_the_rest_follow(fake);
}

static void a_target_that_comes_without_pods_begins_with_a_canary(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(3, "db:1");
    fake_scale(fake, 0);
    fake_run(fake, 30);
    fake_set_image(fake, "db:2");
    fake_run(fake, 5);
    fake_scale(fake, 3);
    fake_run(fake, 12);
    assert_int_equal(fake_number(fake, "currentPartition"), 2);
    assert_true(count_image(fake, "db:2") <= 1);
    assert_true(fake_run_until(fake, "Completed", 200));
}

/* --- time and loss -------------------------------------------------------------------------------------- */

static void a_pod_that_ran_out_of_time_stops_the_rollout_and_is_named(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(3, "db:1");
    fake_set_image(fake, "db:none");
    fake_run(fake, 30);
    fake->wait_expired = "db-2";
    fake_run(fake, 60);
    assert_string_equal(fake_text(fake, "phase"), "Failed");
    assert_non_null(strstr(fake_text(fake, "message"), "db-2"));
    assert_non_null(strstr(fake_text(fake, "message"), "ErrImagePull"));
    assert_true(fake_condition_is(fake, "Stalled", "True"));
    assert_true(has_event(fake, "RolloutFailed"));
    assert_int_equal(count_image(fake, "db:none"), 1);
    fake->wait_expired = NULL;
    fake_set_image(fake, "db:2");
    assert_true(fake_run_until(fake, "Completed", 200));
    assert_true(fake_condition_is(fake, "Stalled", "False"));
}

static void a_lost_status_is_made_up_for_by_the_pods(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_held(5, 4);
    fake_lose_status(fake);
    fake_run(fake, 10);
    assert_string_equal(fake_text(fake, "currentImage"), "db:1");
    assert_string_equal(fake_text(fake, "targetImage"), "db:2");
    let_the_rest_follow(fake);
}

/* Its pods say so themselves: one whose update no kubelet has seen is not proven by being there. */
static void a_lost_status_proves_no_unfinished_update(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(1, "db:1");
    fake_set_image(fake, "db:2");
    while (fake->counts.patches == 0)
        fake_run(fake, 1);
    fake->no_kubelet = true;
    fake_lose_status(fake);
    int opens = fake->counts.opens;
    fake_run(fake, 20);
    assert_int_equal(fake_number(fake, "updatedReplicas"), 0);
    assert_int_equal(fake->counts.opens, opens);
    fake->no_kubelet = false;
    assert_true(fake_run_until(fake, "Completed", 100));
    assert_int_equal(fake_number(fake, "updatedReplicas"), 1);
    assert_int_equal(fake->counts.patches, 1);
}

static void a_deleted_stable_revision_gives_its_place_to_the_target(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_held(3, 2);
    fake_delete_revision(fake, 0);
    fake_run(fake, 5);
    assert_true(has_event(fake, "StableRevisionLost"));
    assert_string_equal(fake_text(fake, "currentRevisionName"), fake_text(fake, "updateRevisionName"));
    let_the_rest_follow(fake);
    /* What a pod ran could not be compared any more: it was made anew. */
    assert_true(fake->counts.deletes > 0);
}

static void nothing_changed_so_nothing_is_written(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(5, "db:1");
    fake_set_image(fake, "db:2");
    assert_true(fake_run_until(fake, "Completed", 200));
    int writes = fake->counts.writes, status_writes = fake->counts.status_writes;
    for (int i = 0; i < 3; i++) {
        fake_restart(fake);
        fake_run(fake, 10);
    }
    /* Key order, null, defaults: the same template. */
    fake_edit(
        fake,
        "{\"containers\":[{\"image\":\"db:2\",\"imagePullPolicy\":\"IfNotPresent\",\"name\":\"main\","
        "\"resources\":{},\"env\":null}],\"terminationGracePeriodSeconds\":2,\"restartPolicy\":\"Always\","
        "\"dnsPolicy\":\"ClusterFirst\",\"volumes\":[]}",
        "template", "spec", NULL);
    fake_run(fake, 5);
    assert_int_equal(fake->counts.writes, writes);
    /* Only the generation was observed. */
    assert_int_equal(fake->counts.status_writes, status_writes + 1);
}

/* The names of those that every pod ran, newest first, as status has them. */
static char *proven_of(const struct fake *fake)
{
    const cJSON *names = json_path(fake->set, "status", "provenRevisionNames", NULL);
    return names ? json_print(names) : xstrdup("none");
}

/* That it costs no write of its own: see test_controller_stalls.c. */
static void status_names_the_revisions_that_every_pod_ran(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(3, "db:1");
    CLEANUP_FREE char *first = xstrdup(fake_text(fake, "currentRevisionName"));
    fake_set_image(fake, "db:2");
    assert_true(fake_run_until(fake, "Completed", 200));
    CLEANUP_FREE char *second = xstrdup(fake_text(fake, "currentRevisionName"));
    CLEANUP_FREE char *both = xasprintf("[\"%s\",\"%s\"]", second, first);
    CLEANUP_FREE char *then = proven_of(fake);
    assert_string_equal(then, both);

    /* A third one is on its way, and taken back. */
    fake_set_image(fake, "db:3");
    fake_run(fake, 8);
    assert_string_equal(fake_text(fake, "currentRevisionName"), second);
    assert_string_not_equal(fake_text(fake, "updateRevisionName"), second);
    fake_set_image(fake, "db:2");
    assert_true(fake_run_until(fake, "Completed", 200));
    assert_int_equal(cJSON_GetArraySize(fake->revisions), 3);
    CLEANUP_FREE char *back = proven_of(fake);
    assert_string_equal(back, both);

    /* What is not kept any more is not named any more, with the next status. */
    fake_edit(fake, "0", "revisionHistoryLimit", NULL);
    fake_run(fake, 5);
    fake_set_image(fake, "db:4");
    assert_true(fake_run_until(fake, "Completed", 200));
    CLEANUP_FREE char *cut = proven_of(fake);
    assert_null(strstr(cut, first));
    assert_non_null(strstr(cut, fake_text(fake, "currentRevisionName")));
}

static void a_step_in_doubt_holds_every_other_update(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(5, "db:1");
    fake_set_budget(fake, 3);
    fake->open_pod = "db-1";
    fake_set_image(fake, "db:2");
    fake_run(fake, 30);
    assert_int_equal(fake->counts.drains, 0);
    fake->open_pod = NULL;
    assert_true(fake_run_until(fake, "Completed", 200));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_way_back_from_half_way_is_one_rollout_named_by_its_images),
        cmocka_unit_test(the_fence_of_a_settled_set_moves_without_a_step),
        cmocka_unit_test(the_fence_of_a_new_set_moves_without_a_step),
        cmocka_unit_test(a_new_set_comes_up_in_order_and_is_idle),
        cmocka_unit_test(the_seed_tells_the_rollout),
        cmocka_unit_test(one_pod_at_a_time_costs_four_steps_a_pod),
        cmocka_unit_test(a_rollout_is_one_operation_from_its_first_step_to_its_last),
        cmocka_unit_test(the_fence_is_never_crossed_and_the_message_says_so),
        cmocka_unit_test(lowering_the_fence_lets_go_at_once),
        cmocka_unit_test(raising_the_fence_rolls_nothing_back),
        cmocka_unit_test(a_fence_above_replicas_holds_everything),
        cmocka_unit_test(fence_and_stage_are_indexes),
        cmocka_unit_test(a_bad_canary_stays_the_only_one),
        cmocka_unit_test(a_canary_that_crashes_is_never_available),
        cmocka_unit_test(a_canary_is_done_after_ten_quiet_seconds),
        cmocka_unit_test(a_bad_version_takes_no_more_than_the_budget),
        cmocka_unit_test(min_ready_seconds_spend_budget),
        cmocka_unit_test(a_percentage_counts_at_least_one),
        cmocka_unit_test(a_pause_starts_nothing_and_finishes_what_runs),
        cmocka_unit_test(a_pause_between_drain_and_patch_opens_the_gate_again),
        cmocka_unit_test(while_paused_pods_are_replaced_and_scaled),
        cmocka_unit_test(an_unpaused_fence_change_goes_on_without_asking),
        cmocka_unit_test(going_back_to_stable_needs_no_canary_and_spares_who_never_left),
        cmocka_unit_test(going_back_is_not_complete_before_the_pod_is_proven_to_be_back),
        cmocka_unit_test(a_status_of_a_new_template_counts_no_pod_of_the_old_one),
        cmocka_unit_test(a_new_template_in_mid_rollout_starts_the_stage_again),
        cmocka_unit_test(a_bad_template_is_healed_by_a_good_one),
        cmocka_unit_test(a_pod_that_was_taken_down_comes_back_beside_a_broken_one_and_a_missing_one),
        cmocka_unit_test(a_new_set_has_no_canary),
        cmocka_unit_test(scaling_out_uses_the_stable_image),
        cmocka_unit_test(a_moved_pod_that_dies_comes_back_on_the_target),
        cmocka_unit_test(scaling_to_nothing_completes_nothing_and_forgets_nothing),
        cmocka_unit_test(a_target_that_comes_without_pods_begins_with_a_canary),
        cmocka_unit_test(a_pod_that_ran_out_of_time_stops_the_rollout_and_is_named),
        cmocka_unit_test(a_lost_status_is_made_up_for_by_the_pods),
        cmocka_unit_test(a_lost_status_proves_no_unfinished_update),
        cmocka_unit_test(a_deleted_stable_revision_gives_its_place_to_the_target),
        cmocka_unit_test(nothing_changed_so_nothing_is_written),
        cmocka_unit_test(status_names_the_revisions_that_every_pod_ran),
        cmocka_unit_test(a_step_in_doubt_holds_every_other_update),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
