/* SPDX-License-Identifier: Apache-2.0
 *
 * How one pod is updated: gate, drain, grace, one patch, witness, and what is made anew instead. */
#include "fake_set.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

#define US 1000000

static struct fake *make_running(int replicas, const char *image)
{
    struct fake *fake = fake_make(replicas, image);
    fake_run(fake, 4 * replicas + 4);
    assert_int_equal(fake_number(fake, "availableReplicas"), replicas);
    return fake;
}

static const cJSON *gate_of(const struct fake *fake, const char *pod)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, json_path(fake_pod(fake, pod), "status", "conditions", NULL)) {
        if (str_equal(json_str(item, "type"), NEOSET_GATE))
            return item;
    }
    return NULL;
}

static bool gate_is(const struct fake *fake, const char *pod, const char *status)
{
    return str_equal(json_str(gate_of(fake, pod), "status"), status);
}

static cJSON *state_of(const struct fake *fake, const char *pod)
{
    cJSON *tree = NULL;
    const char *text =
        json_path_str(fake_pod(fake, pod), "metadata", "annotations", NEOSET_STATE_ANNOTATION, NULL);
    assert_non_null(text);
    assert_int_equal(json_parse(text, strlen(text), &tree, NULL), 0);
    return tree;
}

static void second(struct fake *fake)
{
    fake->boot_us += US;
    fake_sync(fake);
}

/* Until so many drains, patches or whatever the counter counts happened. */
static void run_until_count(struct fake *fake, const int *counter, int wanted)
{
    for (int turn = 0; turn < 400 && *counter < wanted; turn++) {
        if (fake_turn(fake) == 0)
            second(fake);
    }
    assert_true(*counter >= wanted);
}

static void a_new_pod_has_our_gate_and_gets_into_service(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(1, "db:1");
    const cJSON *gates = json_path(fake_pod(fake, "db-0"), "spec", "readinessGates", NULL);
    assert_int_equal(cJSON_GetArraySize(gates), 1);
    assert_string_equal(json_str(gates->child, "conditionType"), NEOSET_GATE);
    assert_true(gate_is(fake, "db-0", "True"));
}

static void the_order_is_drain_patch_open(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(2, "db:1");
    const char *uid = json_path_str(fake_pod(fake, "db-1"), "metadata", "uid", NULL);
    CLEANUP_FREE char *old_uid = xstrdup(uid);
    fake_set_image(fake, "db:2");
    run_until_count(fake, &fake->counts.drains, 1);
    assert_true(gate_is(fake, "db-1", "False"));
    assert_string_equal(fake_image(fake, "db-1"), "db:1");
    /* Ready is still True: the patch waits until it is seen False. */
    fake_settle(fake);
    assert_int_equal(fake->counts.patches, 0);
    second(fake);
    fake_turn(fake);
    assert_int_equal(fake->counts.patches, 1);
    assert_string_equal(fake_image(fake, "db-1"), "db:2");
    assert_string_equal(fake_revision(fake, "db-1"), fake_text(fake, "updateRevisionName"));
    /* The gate opens when the kubelet has seen it, not before. */
    fake_settle(fake);
    assert_true(gate_is(fake, "db-1", "False"));
    second(fake);
    fake_settle(fake);
    assert_true(gate_is(fake, "db-1", "True"));
    fake_run(fake, 3);
    assert_string_equal(json_path_str(fake_pod(fake, "db-1"), "metadata", "uid", NULL), old_uid);
}

static void the_annotation_tells_what_was_before(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(1, "db:1");
    const cJSON *statuses = json_path(fake_pod(fake, "db-0"), "status", "containerStatuses", NULL);
    CLEANUP_FREE char *old_id = xstrdup(json_str(statuses->child, "containerID"));
    fake_set_image(fake, "db:2");
    run_until_count(fake, &fake->counts.patches, 1);
    CLEANUP_JSON cJSON *tree = state_of(fake, "db-0");
    assert_string_equal(json_str(tree, "target"), fake_text(fake, "updateRevisionName"));
    assert_non_null(json_str(tree, "step"));
    assert_string_equal(json_str(tree, "step"), json_path_str(fake_pod(fake, "db-0"), "metadata",
                                                              "annotations", NEOSET_STEP_ANNOTATION, NULL));
    assert_true(json_bool_or(tree, "drained", false));
    const cJSON *before = json_path(tree, "containers", "main", NULL);
    assert_string_equal(json_str(before, "image"), "db:1");
    assert_string_equal(json_str(before, "containerID"), old_id);
    assert_true(json_bool_or(before, "settled", false));
}

static void the_opened_gate_names_the_containers_of_its_moment(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(1, "db:1");
    fake_set_image(fake, "db:2");
    int opens = fake->counts.opens;
    run_until_count(fake, &fake->counts.opens, opens + 1);
    const char *message = json_str(gate_of(fake, "db-0"), "message");
    CLEANUP_JSON cJSON *tree = NULL;
    assert_int_equal(json_parse(message, strlen(message), &tree, NULL), 0);
    CLEANUP_JSON cJSON *update = state_of(fake, "db-0");
    assert_string_equal(json_str(tree, "update"), json_str(update, "step"));
    const cJSON *statuses = json_path(fake_pod(fake, "db-0"), "status", "containerStatuses", NULL);
    assert_string_equal(json_path_str(tree, "containers", "main", NULL),
                        json_str(statuses->child, "containerID"));
}

static void the_grace_period_passes_between_drain_and_patch(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(2, "db:1");
    fake_edit(fake, "20", "updateStrategy", "inPlaceUpdateStrategy", "gracePeriodSeconds", NULL);
    fake_set_image(fake, "db:2");
    run_until_count(fake, &fake->counts.drains, 1);
    fake_run(fake, 18);
    assert_int_equal(fake->counts.patches, 0);
    fake_run(fake, 5);
    assert_int_equal(fake->counts.patches, 1);
}

static void a_ready_that_does_not_follow_the_gate_is_waited_for_ten_seconds(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(2, "db:1");
    fake_set_image(fake, "db:2");
    run_until_count(fake, &fake->counts.drains, 1);
    fake->no_kubelet = true;
    fake_run(fake, 8);
    assert_int_equal(fake->counts.patches, 0);
    fake_run(fake, 3);
    assert_int_equal(fake->counts.patches, 1);
}

/* As an adopted pod: made by someone else, without our gate. */
static void remove_gate(struct fake *fake, const char *name)
{
    cJSON *pod = fake_pod(fake, name);
    json_remove(json_get(pod, "spec"), "readinessGates");
    json_set_str(json_get(pod, "metadata"), "resourceVersion", "7000001");
}

static void a_pod_without_the_gate_is_patched_without_a_drain_and_gets_the_record(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(1, "db:1");
    remove_gate(fake, "db-0");
    json_remove(json_get(fake_pod(fake, "db-0"), "status"), "conditions");
    fake_run(fake, 3);
    fake_set_image(fake, "db:2");
    fake_run(fake, 2);
    assert_non_null(strstr(fake_text(fake, "message"), "in service: it has not the readiness gate"));
    assert_true(fake_run_until(fake, "Completed", 60));
    assert_int_equal(fake->counts.drains, 0);
    assert_int_equal(fake->counts.patches, 1);
    assert_true(gate_is(fake, "db-0", "True"));
    assert_non_null(strstr(json_str(gate_of(fake, "db-0"), "message"), "update"));
}

/* Its container died by itself around its last update: no record and no content tells which one runs. */
static void leave_unproven(struct fake *fake, const char *name)
{
    remove_gate(fake, name);
    CLEANUP_FREE char *text = xasprintf(
        "{\"at\":\"2026-11-30T07:00:00Z\",\"containers\":{\"main\":{\"containerID\":\"containerd://before\","
        "\"image\":\"db:0\",\"settled\":false}},\"drained\":false,\"restarts\":0,\"target\":\"%s\","
        "\"step\":\"other-1\"}",
        fake_revision(fake, name));
    json_set_str(json_get(json_get(fake_pod(fake, name), "metadata"), "annotations"), NEOSET_STATE_ANNOTATION,
                 text);
}

static void a_pod_that_serves_and_is_never_proven_is_updated_after_its_deadline(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(3, "db:1");
    remove_gate(fake, "db-2");
    fake_set_image(fake, "db:2");
    run_until_count(fake, &fake->counts.patches, 1);
    fake_run(fake, 3);
    leave_unproven(fake, "db-2");
    fake_run(fake, 3);
    assert_int_equal(fake_number(fake, "availableReplicas"), 2);
    fake_set_image(fake, "db:3");
    fake_run(fake, 280);
    assert_int_equal(fake->counts.patches, 1);
    assert_non_null(
        strstr(fake_text(fake, "message"), "db-2 to be available: its last update is not proven"));
    /* A new run has to see for itself. */
    fake_restart(fake);
    fake_run(fake, 100);
    assert_int_equal(fake->counts.patches, 1);
    /* With another one away it waits on, and says what a person can do. */
    fake->no_kubelet = true;
    cJSON *other = fake_pod(fake, "db-0");
    cJSON *condition = NULL;
    cJSON_ArrayForEach (condition, json_path(other, "status", "conditions", NULL))
        if (str_equal(json_str(condition, "type"), "Ready"))
            json_set_str(condition, "status", "False");
    json_set_str(json_get(other, "metadata"), "resourceVersion", "7000002");
    fake_run(fake, 220);
    assert_int_equal(fake->counts.patches, 1);
    assert_non_null(
        strstr(fake_text(fake, "message"), "raise it, or kubectl delete pod db-2 -n default makes"));
    fake->no_kubelet = false;
    assert_true(fake_run_until(fake, "Completed", 120));
    assert_int_equal(fake->counts.patches, 4);
    assert_int_equal(fake->counts.deletes, 0);
    assert_int_equal(fake_number(fake, "availableReplicas"), 3);
}

/* What it was to run is not fetched any more, and that it cannot be had is no failure. */
static void a_fence_that_is_raised_holds_one_that_is_never_proven_too(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = fake_make(3, "db:1");
    fake->node = "node-a";
    fake_run(fake, 16);
    remove_gate(fake, "db-2");
    fake_set_image(fake, "db:2");
    run_until_count(fake, &fake->counts.patches, 1);
    fake_run(fake, 3);
    leave_unproven(fake, "db-2");
    fake_run(fake, 3);
    fake_set_image(fake, "db:none");
    fake_run(fake, 320);
    assert_non_null(strstr(fake->waits, "prefetch "));
    fake_set_fence(fake, 3);
    fake->wait_expired = "prefetch";
    fake_run(fake, 3);
    assert_null(strstr(fake->waits, "prefetch "));
    assert_int_equal(cJSON_GetArraySize(fake->prefetches), 0);
    assert_string_not_equal(fake_text(fake, "phase"), "Failed");
    assert_int_equal(fake->counts.patches, 1);
}

static void another_field_means_a_new_pod_and_the_event_names_it(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(2, "db:1");
    fake_edit(fake, "[{\"name\":\"main\",\"image\":\"db:2\",\"env\":[{\"name\":\"A\",\"value\":\"1\"}]}]",
              "template", "spec", "containers", NULL);
    assert_true(fake_run_until(fake, "Completed", 100));
    assert_int_equal(fake->counts.patches, 0);
    assert_int_equal(fake->counts.deletes, 2);
    assert_non_null(strstr(fake->events, "Recreating"));
    assert_string_equal(fake_image(fake, "db-0"), "db:2");
}

static void an_init_image_means_a_new_pod(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = fake_make(1, "db:1");
    fake_edit(fake, "[{\"name\":\"init\",\"image\":\"tool:1\"}]", "template", "spec", "initContainers", NULL);
    fake_run(fake, 10);
    fake_edit(fake, "[{\"name\":\"init\",\"image\":\"tool:2\"}]", "template", "spec", "initContainers", NULL);
    assert_true(fake_run_until(fake, "Completed", 100));
    assert_int_equal(fake->counts.patches, 0);
    assert_int_equal(fake->counts.deletes, 1);
}

static void recreate_always_makes_pods_anew_one_after_another(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(3, "db:1");
    fake_edit(fake, "\"Recreate\"", "updateStrategy", "type", NULL);
    fake_set_image(fake, "db:2");
    assert_true(fake_run_until(fake, "Completed", 200));
    assert_int_equal(fake->counts.patches, 0);
    assert_int_equal(fake->counts.deletes, 3);
}

static void labels_change_without_a_drain_or_a_restart(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(3, "db:1");
    fake_edit(fake, "{\"app\":\"db\",\"tier\":\"back\"}", "template", "metadata", "labels", NULL);
    int drains = fake->counts.drains;
    assert_true(fake_run_until(fake, "Completed", 60));
    assert_int_equal(fake->counts.drains, drains);
    assert_int_equal(fake->counts.patches, 3);
    assert_int_equal(fake->counts.deletes, 0);
    assert_string_equal(json_path_str(fake_pod(fake, "db-0"), "metadata", "labels", "tier", NULL), "back");
    /* A key that the new template has not any more goes; one that somebody else put there stays. */
    json_set_str(json_path(fake_pod(fake, "db-0"), "metadata", "labels", NULL), "own", "mine");
    fake_edit(fake, "{\"app\":\"db\"}", "template", "metadata", "labels", NULL);
    assert_true(fake_run_until(fake, "Completed", 60));
    assert_null(json_path_str(fake_pod(fake, "db-0"), "metadata", "labels", "tier", NULL));
    assert_string_equal(json_path_str(fake_pod(fake, "db-0"), "metadata", "labels", "own", NULL), "mine");
}

static void restarted_at_means_a_new_pod(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(1, "db:1");
    fake_edit(fake, "{\"kubectl.kubernetes.io/restartedAt\":\"now\"}", "template", "metadata", "annotations",
              NULL);
    assert_true(fake_run_until(fake, "Completed", 60));
    assert_int_equal(fake->counts.deletes, 1);
}

static void a_refused_patch_opens_the_gate_and_is_told(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(2, "db:1");
    fake->refuse_patches = 403;
    fake_set_image(fake, "db:2");
    fake_run(fake, 4);
    assert_true(gate_is(fake, "db-1", "True"));
    assert_non_null(strstr(fake_text(fake, "message"), "refused by the test"));
    assert_true(fake_condition_is(fake, "Stalled", "True"));
    int attempts = fake->counts.patches;
    fake_run(fake, 120);
    /* With patience: 5 s, 10 s, 20 s ... */
    assert_in_range(fake->counts.patches - attempts, 2, 6);
    fake->refuse_patches = 0;
    fake_run(fake, 400);
    assert_string_equal(fake_image(fake, "db-0"), "db:2");
}

static void an_immutable_field_means_a_new_pod(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(1, "db:1");
    fake->refuse_patches = 422;
    fake_set_image(fake, "db:2");
    assert_true(fake_run_until(fake, "Completed", 100));
    assert_int_equal(fake->counts.deletes, 1);
}

static void a_template_that_the_server_refuses_touches_nothing(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(2, "db:1");
    fake->probe_refused = true;
    fake_set_image(fake, "db:2");
    for (int i = 0; i < 5; i++)
        fake_turn(fake);
    assert_int_equal(fake->counts.drains, 0);
    assert_non_null(strstr(fake_text(fake, "message"), "Nothing was touched"));
    assert_true(fake_condition_is(fake, "Stalled", "True"));
    fake->probe_refused = false;
    fake->boot_us += 400LL * US;
    assert_true(fake_run_until(fake, "Completed", 100));
}

static void a_flip_keeps_the_oldest_baseline(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(1, "db:1");
    fake_set_image(fake, "db:none");
    run_until_count(fake, &fake->counts.patches, 1);
    fake_set_image(fake, "db:1");
    run_until_count(fake, &fake->counts.patches, 2);
    CLEANUP_JSON cJSON *tree = state_of(fake, "db-0");
    const cJSON *before = json_path(tree, "containers", "main", NULL);
    assert_string_equal(json_str(before, "image"), "db:1");
    assert_int_equal(cJSON_GetArraySize(json_get(before, "tried")), 1);
    assert_string_equal(json_str(json_get(before, "tried")->child, "image"), "db:none");
    fake_run(fake, 30);
    assert_int_equal(fake_number(fake, "availableReplicas"), 1);
}

static void an_old_kubelet_is_never_patched_over_an_unfinished_change(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = fake_make(1, "db:1");
    fake->old_kubelet = true;
    fake_run(fake, 8);
    fake_set_image(fake, "db:none");
    run_until_count(fake, &fake->counts.patches, 1);
    fake_run(fake, 3);
    fake_set_image(fake, "db:2");
    fake_run(fake, 60);
    assert_int_equal(fake->counts.patches, 1);
    assert_int_equal(fake->counts.deletes, 1);
    assert_int_equal(fake_number(fake, "availableReplicas"), 1);
}

static void a_set_that_is_being_deleted_gets_gates_and_status_only(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(2, "db:1");
    fake_set_image(fake, "db:2");
    run_until_count(fake, &fake->counts.drains, 1);
    json_set_str(json_get(fake->set, "metadata"), "deletionTimestamp", "2027-01-15T08:00:00Z");
    fake_delete_pod(fake, "db-0");
    int creates = fake->counts.creates;
    fake_run(fake, 20);
    assert_true(gate_is(fake, "db-1", "True"));
    assert_int_equal(fake->counts.patches, 0);
    assert_int_equal(fake->counts.creates, creates);
    assert_string_equal(fake_text(fake, "message"), "the set is being deleted.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_pod_has_our_gate_and_gets_into_service),
        cmocka_unit_test(the_order_is_drain_patch_open),
        cmocka_unit_test(the_annotation_tells_what_was_before),
        cmocka_unit_test(the_opened_gate_names_the_containers_of_its_moment),
        cmocka_unit_test(the_grace_period_passes_between_drain_and_patch),
        cmocka_unit_test(a_ready_that_does_not_follow_the_gate_is_waited_for_ten_seconds),
        cmocka_unit_test(a_pod_without_the_gate_is_patched_without_a_drain_and_gets_the_record),
        cmocka_unit_test(a_pod_that_serves_and_is_never_proven_is_updated_after_its_deadline),
        cmocka_unit_test(a_fence_that_is_raised_holds_one_that_is_never_proven_too),
        cmocka_unit_test(another_field_means_a_new_pod_and_the_event_names_it),
        cmocka_unit_test(an_init_image_means_a_new_pod),
        cmocka_unit_test(recreate_always_makes_pods_anew_one_after_another),
        cmocka_unit_test(labels_change_without_a_drain_or_a_restart),
        cmocka_unit_test(restarted_at_means_a_new_pod),
        cmocka_unit_test(a_refused_patch_opens_the_gate_and_is_told),
        cmocka_unit_test(an_immutable_field_means_a_new_pod),
        cmocka_unit_test(a_template_that_the_server_refuses_touches_nothing),
        cmocka_unit_test(a_flip_keeps_the_oldest_baseline),
        cmocka_unit_test(an_old_kubelet_is_never_patched_over_an_unfinished_change),
        cmocka_unit_test(a_set_that_is_being_deleted_gets_gates_and_status_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
