/* SPDX-License-Identifier: Apache-2.0
 *
 * Identity, claims, order of creation and removal, pods that end, names that belong to others. */
#include "fake_set.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

static const char *const claim_templates = "[{\"metadata\":{\"name\":\"data\",\"labels\":{\"a\":\"b\"}},"
                                           "\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],"
                                           "\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}]";

static struct fake *make_running(int replicas, const char *image)
{
    struct fake *fake = fake_make(replicas, image);
    fake_run(fake, 4 * replicas + 4);
    assert_int_equal(fake_number(fake, "availableReplicas"), replicas);
    return fake;
}

static const char *text_at(const cJSON *object, const char *a, const char *b, const char *c)
{
    return json_path_str(object, a, b, c, NULL);
}

static void a_pod_has_its_name_its_labels_and_its_host(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = fake_make(1, "db:1");
    fake_edit(fake, claim_templates, "volumeClaimTemplates", NULL);
    fake_edit(fake, "[{\"name\":\"data\",\"emptyDir\":{}},{\"name\":\"tmp\",\"emptyDir\":{}}]", "template",
              "spec", "volumes", NULL);
    fake_run(fake, 5);
    const cJSON *pod = fake_pod(fake, "db-0");
    assert_non_null(pod);
    assert_string_equal(text_at(pod, "metadata", "labels", "app"), "db");
    assert_string_equal(text_at(pod, "metadata", "labels", NEOSET_REVISION_LABEL),
                        fake_text(fake, "updateRevisionName"));
    assert_string_equal(text_at(pod, "metadata", "labels", NEOSET_INDEX_LABEL), "0");
    assert_string_equal(text_at(pod, "metadata", "labels", NEOSET_POD_NAME_LABEL), "db-0");
    assert_non_null(text_at(pod, "metadata", "annotations", NEOSET_STEP_ANNOTATION));
    const cJSON *owner = json_path(pod, "metadata", "ownerReferences", NULL)->child;
    assert_string_equal(json_str(owner, "uid"), "set-uid");
    assert_string_equal(json_str(owner, "kind"), "NeoSet");
    assert_true(json_bool_or(owner, "controller", false) && json_bool_or(owner, "blockOwnerDeletion", false));
    assert_string_equal(json_path_str(pod, "spec", "hostname", NULL), "db-0");
    assert_string_equal(json_path_str(pod, "spec", "subdomain", NULL), "db");
    /* The claim takes the place of the pod volume of its name. */
    const cJSON *volumes = json_path(pod, "spec", "volumes", NULL);
    assert_int_equal(cJSON_GetArraySize(volumes), 2);
    assert_string_equal(json_path_str(volumes->child, "persistentVolumeClaim", "claimName", NULL),
                        "data-db-0");
    assert_string_equal(json_str(volumes->child->next, "name"), "tmp");
}

static void claims_come_before_their_pod(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = fake_make(2, "db:1");
    fake_edit(fake, claim_templates, "volumeClaimTemplates", NULL);
    while (cJSON_GetArraySize(fake->claims) == 0)
        fake_turn(fake);
    assert_int_equal(cJSON_GetArraySize(fake->pods), 0);
    fake_run(fake, 15);
    assert_int_equal(cJSON_GetArraySize(fake->claims), 2);
    assert_int_equal(cJSON_GetArraySize(fake->pods), 2);
    const cJSON *claim = fake->claims->child;
    assert_string_equal(json_path_str(claim, "metadata", "name", NULL), "data-db-0");
    assert_string_equal(json_path_str(claim, "metadata", "labels", "app", NULL), "db");
    assert_string_equal(json_path_str(claim, "metadata", "labels", "a", NULL), "b");
    assert_string_equal(json_path_str(claim, "spec", "resources", "requests", "storage", NULL), "1Gi");
    assert_null(json_path(claim, "metadata", "ownerReferences", NULL));
}

static void a_claim_outlives_its_pod_and_is_taken_again(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = fake_make(2, "db:1");
    fake_edit(fake, claim_templates, "volumeClaimTemplates", NULL);
    fake_run(fake, 15);
    CLEANUP_FREE char *uid = xstrdup(json_path_str(fake->claims->child, "metadata", "uid", NULL));
    fake_scale(fake, 0);
    fake_run(fake, 15);
    assert_int_equal(cJSON_GetArraySize(fake->claims), 2);
    fake_scale(fake, 2);
    fake_run(fake, 15);
    assert_string_equal(json_path_str(fake->claims->child, "metadata", "uid", NULL), uid);
}

static void a_terminating_claim_is_waited_for_and_its_pod_is_not_deleted(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = fake_make(2, "db:1");
    fake_edit(fake, claim_templates, "volumeClaimTemplates", NULL);
    fake_run(fake, 15);
    cJSON *claim = fake->claims->child->next;
    json_set_str(json_get(claim, "metadata"), "deletionTimestamp", "2027-01-15T08:00:00Z");
    /* An update that would re-create the pod: its data would go. */
    fake_edit(fake, "\"Recreate\"", "updateStrategy", "type", NULL);
    fake_set_image(fake, "db:2");
    fake_run(fake, 30);
    assert_int_equal(fake->counts.deletes, 0);
    assert_non_null(strstr(fake_text(fake, "message"), "data-db-1"));
    assert_true(fake_condition_is(fake, "Stalled", "True"));
    /* The pod is gone for another reason: it waits until the old claim is gone. */
    fake_delete_pod(fake, "db-1");
    fake_run(fake, 10);
    assert_null(fake_pod(fake, "db-1"));
    assert_non_null(strstr(fake_text(fake, "message"), "data-db-1"));
    json_delete(cJSON_DetachItemViaPointer(fake->claims, claim));
    fake_run(fake, 10);
    assert_non_null(fake_pod(fake, "db-1"));
    assert_int_equal(cJSON_GetArraySize(fake->claims), 2);
}

static void a_pending_pod_gets_its_vanished_claim_again(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = fake_make(1, "db:1");
    fake_edit(fake, claim_templates, "volumeClaimTemplates", NULL);
    fake->no_kubelet = true;
    fake_run(fake, 3);
    assert_string_equal(json_path_str(fake_pod(fake, "db-0"), "status", "phase", NULL), "Pending");
    json_delete(cJSON_DetachItemFromArray(fake->claims, 0));
    fake_run(fake, 1);
    assert_int_equal(cJSON_GetArraySize(fake->claims), 1);
}

static void claims_go_with_the_set_when_asked_for(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = fake_make(1, "db:1");
    fake_edit(fake, claim_templates, "volumeClaimTemplates", NULL);
    fake_edit(fake, "{\"whenDeleted\":\"Delete\"}", "persistentVolumeClaimRetentionPolicy", NULL);
    fake_run(fake, 5);
    const cJSON *owner = json_path(fake->claims->child, "metadata", "ownerReferences", NULL)->child;
    assert_string_equal(json_str(owner, "uid"), "set-uid");
    assert_false(json_bool_or(owner, "controller", false));
}

/* --- order ---------------------------------------------------------------------------------------------- */

static void ordered_creation_halts_while_a_lower_pod_is_not_available(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = fake_make(3, "db:unready");
    fake_run(fake, 30);
    assert_int_equal(cJSON_GetArraySize(fake->pods), 1);
    assert_string_equal(fake_text(fake, "message"), "db-1 is created once db-0 is available.");
}

static void parallel_creation_doubles(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = fake_make(9, "db:unready");
    fake_edit(fake, "\"Parallel\"", "podManagementPolicy", NULL);
    int last = 0;
    while (last < 9) {
        fake_turn(fake);
        int now = cJSON_GetArraySize(fake->pods);
        assert_true(now <= MAX(2 * last, 1));
        last = now;
    }
}

static void a_healthy_lower_pod_that_died_comes_back_while_a_higher_one_is_down(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(3, "db:1");
    json_set_item(json_path(fake_pod(fake, "db-2"), "test-runtime", "main", NULL), "asked",
                  json_new_str("x"));
    fake_delete_pod(fake, "db-0");
    fake_run(fake, 45);
    assert_non_null(fake_pod(fake, "db-0"));
    assert_int_equal(fake_number(fake, "availableReplicas"), 3);
}

/* In order, and db-0 is broken: it is mended when the canary is up, which was taken down and is above one
 * that is missing, and which itself waits for db-0. Somebody has to be first. */
static void a_pod_that_was_taken_down_waits_for_none_that_waits_for_a_broken_one(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(3, "db:1");
    fake_set_image(fake, "db:unready");
    fake_run(fake, 30);
    assert_string_equal(fake_image(fake, "db-2"), "db:unready");
    /* db-0 broke on the same version, before the set was scaled out. */
    cJSON *db_0 = fake_pod(fake, "db-0");
    json_set_str(json_path(db_0, "spec", "containers", NULL)->child, "image", "db:unready");
    json_set_str(json_path(db_0, "metadata", "labels", NULL), "controller-revision-hash",
                 fake_revision(fake, "db-2"));
    cJSON *left = json_path(fake->set, "status", "leftStableOrdinals", NULL);
    json_append_item(left, cJSON_CreateNumber(0));
    fake_run(fake, 3);
    fake_delete_pod(fake, "db-1");
    fake_delete_pod(fake, "db-2");
    fake_set_image(fake, "db:2");
    fake_run(fake, 600);
    assert_int_equal(fake_number(fake, "availableReplicas"), 3);
    assert_string_equal(fake_image(fake, "db-0"), "db:2");
}

static void scaling_down_takes_the_highest_one_at_a_time(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(5, "db:1");
    fake_scale(fake, 2);
    fake_settle(fake);
    assert_int_equal(fake->counts.deletes, 1);
    assert_non_null(text_at(fake_pod(fake, "db-4"), "metadata", "deletionTimestamp", NULL));
    fake_run(fake, 1);
    assert_null(fake_pod(fake, "db-4"));
    assert_non_null(text_at(fake_pod(fake, "db-3"), "metadata", "deletionTimestamp", NULL));
    fake_run(fake, 10);
    assert_int_equal(cJSON_GetArraySize(fake->pods), 2);
    assert_int_equal(fake_number(fake, "availableReplicas"), 2);
}

static void scaling_down_halts_while_a_lower_pod_is_down_but_not_for_the_victim(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(4, "db:1");
    /* db-1 breaks for good, as does the victim db-3. */
    static const char *const broken[] = {"db-1", "db-3"};
    for (size_t i = 0; i < 2; i++)
        json_set_str(json_path(fake_pod(fake, broken[i]), "spec", "containers", NULL)->child, "image",
                     "db:unready");
    fake_run(fake, 3);
    fake_scale(fake, 2);
    fake_run(fake, 10);
    assert_int_equal(cJSON_GetArraySize(fake->pods), 4);
    json_set_str(json_path(fake_pod(fake, "db-1"), "spec", "containers", NULL)->child, "image", "db:1");
    fake_run(fake, 60);
    assert_int_equal(cJSON_GetArraySize(fake->pods), 2);
}

static void parallel_scaling_down_takes_all_at_once(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(5, "db:1");
    fake_edit(fake, "\"Parallel\"", "podManagementPolicy", NULL);
    fake_scale(fake, 1);
    fake_turn(fake);
    assert_int_equal(fake->counts.deletes, 4);
}

/* --- mending -------------------------------------------------------------------------------------------- */

static void end_pod(struct fake *fake, const char *name, const char *phase)
{
    cJSON *pod = fake_pod(fake, name);
    json_set_str(json_get(pod, "status"), "phase", phase);
    json_set_str(json_get(pod, "status"), "reason", "Evicted");
    fake->no_kubelet = true;
}

static void a_pod_that_ended_is_made_anew_with_patience(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(2, "db:1");
    end_pod(fake, "db-1", "Failed");
    fake_settle(fake);
    assert_int_equal(fake->counts.deletes, 1);
    fake->no_kubelet = false;
    fake_run(fake, 3);
    end_pod(fake, "db-1", "Succeeded");
    fake_run(fake, 2);
    assert_int_equal(fake->counts.deletes, 1);
    assert_non_null(strstr(fake_text(fake, "message"), "Evicted"));
    fake_run(fake, 20);
    assert_int_equal(fake->counts.deletes, 2);
    assert_non_null(strstr(fake->events, "PodEnded"));
}

static void a_pod_of_someone_else_is_left_alone_and_named(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = fake_make(2, "db:1");
    cJSON *pod = NULL;
    const char *text =
        "{\"metadata\":{\"name\":\"db-0\",\"namespace\":\"default\",\"uid\":\"u\",\"resourceVersion\":"
        "\"5\",\"ownerReferences\":[{\"controller\":true,\"uid\":\"someone\",\"kind\":\"Job\",\"name\":"
        "\"backup\"}]},"
        "\"spec\":{\"containers\":[]}}";
    assert_int_equal(json_parse(text, strlen(text), &pod, NULL), 0);
    json_append_item(fake->pods, pod);
    fake->no_kubelet = true;
    fake_run(fake, 5);
    assert_int_equal(fake->counts.creates, 0);
    assert_int_equal(fake->counts.deletes, 0);
    assert_non_null(strstr(fake_text(fake, "message"), "db-0 belongs to Job backup"));
    assert_true(fake_condition_is(fake, "Stalled", "True"));
}

static void a_terminating_pod_is_never_doubled(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(2, "db:1");
    fake_delete_pod(fake, "db-1");
    fake->no_kubelet = true;
    int creates = fake->counts.creates;
    fake_run(fake, 120);
    assert_int_equal(fake->counts.creates, creates);
    assert_non_null(strstr(fake_text(fake, "message"), "--force"));
}

/* --- revisions ------------------------------------------------------------------------------------------ */

static void history_is_cut_to_its_limit_and_keeps_what_is_used(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(2, "db:1");
    fake_edit(fake, "2", "revisionHistoryLimit", NULL);
    for (int i = 2; i < 9; i++) {
        CLEANUP_FREE char *image = xasprintf("db:%d", i);
        fake_set_image(fake, image);
        assert_true(fake_run_until(fake, "Completed", 100));
    }
    assert_int_equal(cJSON_GetArraySize(fake->revisions), 3);
    fake_edit(fake, "0", "revisionHistoryLimit", NULL);
    fake_run(fake, 3);
    assert_int_equal(cJSON_GetArraySize(fake->revisions), 1);
}

static void history_is_cut_while_nothing_moves(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(2, "db:1");
    fake_edit(fake, "1", "revisionHistoryLimit", NULL);
    fake_set_fence(fake, 2);
    for (int i = 2; i < 9; i++) {
        CLEANUP_FREE char *image = xasprintf("db:%d", i);
        fake_set_image(fake, image);
        fake_run(fake, 2);
    }
    /* stable, target, and one more. */
    assert_int_equal(cJSON_GetArraySize(fake->revisions), 3);
}

/* http 0: the conflict was looked into, and the look found an object that is not ours. */
static void expect_counted_around(int http)
{
    CLEANUP_FAKE struct fake *fake = make_running(1, "db:1");
    fake_set_image(fake, "db:2");
    struct neoset_fact *fact = neoset_fact_make(fake->pool, fake->set);
    CLEANUP_FREE char *name = revision_name("db", fact->template_digest, 0);
    neoset_fact_free(fact);
    /* Someone else has it: the create is answered with a conflict. */
    struct step_outcome outcome = {.step_kind = STEP_CREATE_REVISION,
                                   .target = {KUBE_REVISION, "default", name},
                                   .fingerprint = "",
                                   .kind = JOURNAL_REJECTED,
                                   .http = http,
                                   .summary = "",
                                   .reason = "AlreadyExists"};
    neoset_note_outcome(fake->memory, &outcome, fake->boot_us);
    assert_true(fake_run_until(fake, "Completed", 100));
    assert_int_equal(fake_number(fake, "collisionCount"), 1);
    assert_string_not_equal(fake_text(fake, "updateRevisionName"), name);
}

static void a_name_that_is_taken_is_counted_around(void **state)
{
    (void)state;
    expect_counted_around(409);
    expect_counted_around(0);
}

static void a_spec_that_slipped_past_the_schema_is_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *value, *key, *below, *words;
    } cases[] = {
        {"-3", "replicas", NULL, "spec.replicas"},
        {"\"many\"", "replicas", NULL, "spec.replicas"},
        {"2147483647", "replicas", NULL, "spec.replicas"},
        {"{}", "selector", NULL, "spec.selector"},
        {"{\"matchLabels\":{\"app\":\"web\"}}", "selector", NULL, "spec.selector"},
        {"[]", "selector", NULL, "spec.selector"},
        {"null", "template", NULL, "containers"},
        {"{\"spec\":{\"containers\":[{}]}}", "template", NULL, "container"},
        {"\"Sometimes\"", "updateStrategy", "type", "spec.updateStrategy.type"},
        {"\"150%\"", "updateStrategy", "maxUnavailable", "maxUnavailable"},
        {"0", "updateStrategy", "maxUnavailable", "maxUnavailable"},
        {"-1", "updateStrategy", "partition", "partition"},
        {"[{\"metadata\":{}}]", "volumeClaimTemplates", NULL, "volumeClaimTemplates"},
        {"\"x\"", "podManagementPolicy", NULL, "podManagementPolicy"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FAKE struct fake *fake = make_running(2, "db:1");
        int writes = fake->counts.writes;
        if (cases[i].below)
            fake_edit(fake, cases[i].value, cases[i].key, cases[i].below, NULL);
        else
            fake_edit(fake, cases[i].value, cases[i].key, NULL);
        fake_run(fake, 3);
        assert_int_equal(fake->counts.writes, writes);
        if (!strstr(fake_text(fake, "message"), cases[i].words))
            fail_msg("%s: %s", cases[i].value, fake_text(fake, "message"));
        assert_true(fake_condition_is(fake, "Stalled", "True"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_has_its_name_its_labels_and_its_host),
        cmocka_unit_test(claims_come_before_their_pod),
        cmocka_unit_test(a_claim_outlives_its_pod_and_is_taken_again),
        cmocka_unit_test(a_terminating_claim_is_waited_for_and_its_pod_is_not_deleted),
        cmocka_unit_test(a_pending_pod_gets_its_vanished_claim_again),
        cmocka_unit_test(claims_go_with_the_set_when_asked_for),
        cmocka_unit_test(ordered_creation_halts_while_a_lower_pod_is_not_available),
        cmocka_unit_test(parallel_creation_doubles),
        cmocka_unit_test(a_healthy_lower_pod_that_died_comes_back_while_a_higher_one_is_down),
        cmocka_unit_test(a_pod_that_was_taken_down_waits_for_none_that_waits_for_a_broken_one),
        cmocka_unit_test(scaling_down_takes_the_highest_one_at_a_time),
        cmocka_unit_test(scaling_down_halts_while_a_lower_pod_is_down_but_not_for_the_victim),
        cmocka_unit_test(parallel_scaling_down_takes_all_at_once),
        cmocka_unit_test(a_pod_that_ended_is_made_anew_with_patience),
        cmocka_unit_test(a_pod_of_someone_else_is_left_alone_and_named),
        cmocka_unit_test(a_terminating_pod_is_never_doubled),
        cmocka_unit_test(history_is_cut_to_its_limit_and_keeps_what_is_used),
        cmocka_unit_test(history_is_cut_while_nothing_moves),
        cmocka_unit_test(a_name_that_is_taken_is_counted_around),
        cmocka_unit_test(a_spec_that_slipped_past_the_schema_is_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
