/* SPDX-License-Identifier: Apache-2.0
 *
 * A larger storage request in a claim template: which claims are raised, in which order, and what people
 * read. */
#include "fake_set.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

#define TEMPLATES(name, size)                                                                                \
    "[{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"storageClassName\":\"std\",\"resources\":{"          \
    "\"requests\":{\"storage\":\"" size "\"}}}}]"
static const char *const smaller = TEMPLATES("data", "1Gi");
static const char *const larger = TEMPLATES("data", "2Gi");

static cJSON *claim(const struct fake *fake, const char *name)
{
    cJSON *object = NULL;
    cJSON_ArrayForEach (object, fake->claims) {
        if (str_equal(json_path_str(object, "metadata", "name", NULL), name))
            return object;
    }
    return NULL;
}

static const char *request(const struct fake *fake, const char *name)
{
    return growth_request(claim(fake, name));
}

/* As a storage controller writes it: the phase, what the volume has, and how far its growth is. */
static void set_status(struct fake *fake, const char *name, const char *capacity, const char *allocated,
                       const char *state)
{
    cJSON *object = claim(fake, name);
    assert_non_null(object);
    cJSON *status = json_new_object();
    json_add_str(status, "phase", capacity ? "Bound" : "Pending");
    if (capacity)
        json_add_str(json_add_object(status, "capacity"), "storage", capacity);
    if (allocated)
        json_add_str(json_add_object(status, "allocatedResources"), "storage", allocated);
    if (state)
        json_add_str(json_add_object(status, "allocatedResourceStatuses"), "storage", state);
    json_set_item(object, "status", status);
    CLEANUP_FREE char *version = xasprintf("%lld", (long long)++fake->serial);
    json_set_str(json_get(object, "metadata"), "resourceVersion", version);
}

static void bind_all(struct fake *fake, const char *capacity)
{
    const cJSON *object = NULL;
    cJSON_ArrayForEach (object, fake->claims)
        set_status(fake, json_path_str(object, "metadata", "name", NULL), capacity, NULL, NULL);
}

/* A running set with bound claims of 1Gi. */
static struct fake *make_running(int replicas)
{
    struct fake *fake = fake_make(replicas, "db:1");
    fake_edit(fake, smaller, "volumeClaimTemplates", NULL);
    fake_run(fake, 4 * replicas + 4);
    assert_int_equal(fake_number(fake, "availableReplicas"), replicas);
    bind_all(fake, "1Gi");
    fake_settle(fake);
    return fake;
}

static const char *volumes_reason(const struct fake *fake)
{
    const cJSON *condition = NULL;
    cJSON_ArrayForEach (condition, json_path(fake->set, "status", "conditions", NULL)) {
        if (str_equal(json_str(condition, "type"), "VolumesConverged"))
            return json_str(condition, "reason");
    }
    return NULL;
}

static const char *volumes_message(const struct fake *fake)
{
    const cJSON *condition = NULL;
    cJSON_ArrayForEach (condition, json_path(fake->set, "status", "conditions", NULL)) {
        if (str_equal(json_str(condition, "type"), "VolumesConverged"))
            return json_str(condition, "message");
    }
    return "";
}

static void a_set_at_rest_says_that_its_volumes_are_large_enough(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(2);
    assert_true(fake_condition_is(fake, "VolumesConverged", "True"));
    int writes = fake->counts.writes + fake->counts.status_writes;
    fake_settle(fake);
    assert_int_equal(fake->counts.writes + fake->counts.status_writes, writes);
    CLEANUP_FAKE struct fake *without = fake_make(1, "db:1");
    fake_run(without, 10);
    assert_null(volumes_reason(without));
}

static void one_claim_grows_alone_then_the_others(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(3);
    int pods_made = fake->counts.creates, deleted = fake->counts.deletes;
    fake_edit(fake, larger, "volumeClaimTemplates", NULL);
    fake_settle(fake);
    assert_string_equal(request(fake, "data-db-0"), "2Gi");
    assert_string_equal(request(fake, "data-db-1"), "1Gi");
    assert_string_equal(request(fake, "data-db-2"), "1Gi");
    assert_string_equal(volumes_reason(fake), "Growing");
    assert_non_null(strstr(fake->events, "VolumesGrow\n"));
    assert_non_null(strstr(fake->waits, "grow db\n"));
    set_status(fake, "data-db-0", "1Gi", "2Gi", "ControllerResizeInProgress");
    fake_settle(fake);
    assert_string_equal(request(fake, "data-db-1"), "1Gi");
    set_status(fake, "data-db-0", "1Gi", "2Gi", "NodeResizePending");
    fake_settle(fake);
    assert_string_equal(request(fake, "data-db-1"), "2Gi");
    assert_string_equal(request(fake, "data-db-2"), "2Gi");
    assert_string_equal(volumes_reason(fake), "Resizing");
    assert_string_equal(volumes_message(fake),
                        "0 of 3 claims are as large as their templates say; data-db-0: its node resizes the "
                        "file system (when a pod uses it).");
    assert_string_equal(fake_text(fake, "message"), volumes_message(fake));
    bind_all(fake, "2Gi");
    fake_settle(fake);
    assert_true(fake_condition_is(fake, "VolumesConverged", "True"));
    assert_null(strstr(fake->waits, "grow"));
    assert_int_equal(fake->counts.creates, pods_made);
    assert_int_equal(fake->counts.deletes, deleted);
    assert_non_null(strstr(fake->operations, "resize->data 2Gi\n"));
}

/* Nobody resizes: acceptance is all that there is to see. */
static void nobody_answers_and_the_others_follow_after_a_while(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(2);
    fake_edit(fake, larger, "volumeClaimTemplates", NULL);
    fake_settle(fake);
    assert_string_equal(request(fake, "data-db-1"), "1Gi");
    assert_true(fake->wake_boot_us < INT64_MAX);
    fake->wait_expired = "grow";
    fake_settle(fake);
    assert_string_equal(request(fake, "data-db-1"), "2Gi");
}

static void a_size_that_the_storage_cannot_have_stops_at_the_first_claim(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(3);
    fake_edit(fake, larger, "volumeClaimTemplates", NULL);
    fake_settle(fake);
    set_status(fake, "data-db-0", "1Gi", "2Gi", "ControllerResizeInfeasible");
    fake->wait_expired = "grow";
    fake_settle(fake);
    assert_string_equal(request(fake, "data-db-1"), "1Gi");
    assert_string_equal(volumes_reason(fake), "Infeasible");
    assert_non_null(strstr(fake_text(fake, "message"), "data-db-0 asks for 2Gi"));
    assert_non_null(strstr(fake->events, "VolumeGrowthFailed\n"));
    assert_true(fake_condition_is(fake, "Stalled", "True"));
}

static void claims_of_ordinals_that_were_scaled_away_grow_too(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(3);
    fake_scale(fake, 1);
    fake_run(fake, 10);
    assert_null(fake_pod(fake, "db-2"));
    fake_edit(fake, larger, "volumeClaimTemplates", NULL);
    fake_settle(fake);
    set_status(fake, "data-db-0", "2Gi", NULL, NULL);
    fake_settle(fake);
    assert_string_equal(request(fake, "data-db-2"), "2Gi");
    /* Their file systems grow when a pod uses them: that is not waited for. */
    set_status(fake, "data-db-1", "1Gi", "2Gi", "NodeResizePending");
    set_status(fake, "data-db-2", "1Gi", "2Gi", "NodeResizePending");
    fake_settle(fake);
    assert_true(fake_condition_is(fake, "VolumesConverged", "True"));
}

static void a_claim_that_is_larger_is_left_alone(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(2);
    json_set_str(json_path(claim(fake, "data-db-0"), "spec", "resources", "requests", NULL), "storage",
                 "5Gi");
    set_status(fake, "data-db-0", "5Gi", NULL, NULL);
    fake_edit(fake, larger, "volumeClaimTemplates", NULL);
    fake_settle(fake);
    assert_string_equal(request(fake, "data-db-0"), "5Gi");
    assert_string_equal(request(fake, "data-db-1"), "2Gi");
}

static void claims_of_others_are_not_touched(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(1);
    static const char *const names[] = {"data-db-7", "xdata-db-0", "data-xdb-0", "data-db-007"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        cJSON *other = json_copy(claim(fake, "data-db-0"));
        json_set_str(json_get(other, "metadata"), "name", names[i]);
        json_append_item(fake->claims, other);
    }
    cJSON *owner = json_new_object();
    json_add_str(owner, "kind", "Backup");
    json_add_str(owner, "uid", "someone");
    json_add_bool(owner, "controller", true);
    json_append_item(json_add_array(json_get(claim(fake, "data-db-7"), "metadata"), "ownerReferences"),
                     owner);
    fake_edit(fake, larger, "volumeClaimTemplates", NULL);
    fake_settle(fake);
    set_status(fake, "data-db-0", "2Gi", NULL, NULL);
    fake_settle(fake);
    assert_string_equal(request(fake, "data-db-0"), "2Gi");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        assert_string_equal(request(fake, names[i]), "1Gi");
    assert_true(fake_condition_is(fake, "VolumesConverged", "True"));
}

static void a_claim_without_a_volume_is_named_and_holds_up_nobody(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(3);
    set_status(fake, "data-db-0", NULL, NULL, NULL);
    fake_edit(fake, larger, "volumeClaimTemplates", NULL);
    fake_settle(fake);
    assert_string_equal(request(fake, "data-db-1"), "2Gi");
    set_status(fake, "data-db-1", "2Gi", NULL, NULL);
    fake_settle(fake);
    assert_string_equal(request(fake, "data-db-0"), "1Gi");
    assert_string_equal(request(fake, "data-db-2"), "2Gi");
    assert_string_equal(volumes_reason(fake), "ClaimNotBound");
    assert_non_null(strstr(volumes_message(fake), "data-db-0"));
}

/* "data-web" of db and "data" of web-db both name a claim data-web-db-1. */
static void a_claim_that_another_set_may_have_named_is_left_alone_unless_our_pod_uses_it(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = fake_make(2, "db:1");
    fake_edit(fake, TEMPLATES("data-web", "1Gi"), "volumeClaimTemplates", NULL);
    fake_run(fake, 12);
    bind_all(fake, "1Gi");
    fake_scale(fake, 1);
    fake_run(fake, 10);
    fake->rival = json_copy(fake->set);
    json_set_str(json_get(fake->rival, "metadata"), "name", "web-db");
    cJSON *template = json_path(fake->rival, "spec", "volumeClaimTemplates", NULL)->child;
    json_set_str(json_get(template, "metadata"), "name", "data");
    fake_edit(fake, TEMPLATES("data-web", "2Gi"), "volumeClaimTemplates", NULL);
    fake_settle(fake);
    assert_string_equal(request(fake, "data-web-db-0"), "2Gi");
    set_status(fake, "data-web-db-0", "2Gi", NULL, NULL);
    fake_settle(fake);
    assert_string_equal(request(fake, "data-web-db-1"), "1Gi");
    assert_string_equal(volumes_reason(fake), "ClaimAmbiguous");
    assert_non_null(strstr(volumes_message(fake), "web-db"));
}

static void a_pause_does_not_hold_volumes(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(1);
    fake_pause(fake, true);
    fake_edit(fake, larger, "volumeClaimTemplates", NULL);
    fake_settle(fake);
    assert_string_equal(request(fake, "data-db-0"), "2Gi");
}

/* Report 31. */
static void a_server_that_refuses_is_quoted(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(2);
    fake->refuse_growth = 403;
    fake_edit(fake, larger, "volumeClaimTemplates", NULL);
    fake_settle(fake);
    assert_string_equal(request(fake, "data-db-0"), "1Gi");
    assert_string_equal(request(fake, "data-db-1"), "1Gi");
    assert_string_equal(volumes_reason(fake), "Refused");
    assert_non_null(strstr(volumes_message(fake), "refused by the test"));
    int writes = fake->counts.writes;
    fake_settle(fake);
    assert_int_equal(fake->counts.writes, writes); /* not again and again */
    fake->refuse_growth = 0;
    fake_run(fake, 120);
    assert_string_equal(request(fake, "data-db-0"), "2Gi");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_at_rest_says_that_its_volumes_are_large_enough),
        cmocka_unit_test(one_claim_grows_alone_then_the_others),
        cmocka_unit_test(nobody_answers_and_the_others_follow_after_a_while),
        cmocka_unit_test(a_size_that_the_storage_cannot_have_stops_at_the_first_claim),
        cmocka_unit_test(claims_of_ordinals_that_were_scaled_away_grow_too),
        cmocka_unit_test(a_claim_that_is_larger_is_left_alone),
        cmocka_unit_test(claims_of_others_are_not_touched),
        cmocka_unit_test(a_claim_without_a_volume_is_named_and_holds_up_nobody),
        cmocka_unit_test(a_claim_that_another_set_may_have_named_is_left_alone_unless_our_pod_uses_it),
        cmocka_unit_test(a_pause_does_not_hold_volumes),
        cmocka_unit_test(a_server_that_refuses_is_quoted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
