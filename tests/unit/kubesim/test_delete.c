/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#define SET                                                                                                  \
    "{\"apiVersion\":\"apps/"                                                                                \
    "v1\",\"kind\":\"StatefulSet\",\"metadata\":{\"name\":\"db\"},\"spec\":{\"serviceName\":\"db\","         \
    "\"selector\":"                                                                                          \
    "{\"matchLabels\":{\"app\":\"db\"}},\"template\":{\"metadata\":{\"labels\":{\"app\":\"db\"}},\"spec\":{" \
    "\"containers\":[{\"name\":"                                                                             \
    "\"a\",\"image\":\"i\"}]}}}}"

/* A set and a pod that it owns. */
static struct world *world_with_set(void)
{
    struct world *world = world_make();
    assert_int_equal(ask(world, "POST", SETS, SET), 201);
    CLEANUP_FREE char *uid = xstrdup(meta(world, "uid"));
    make_pod(world, "db-0", "n1");
    CLEANUP_FREE char *body = xasprintf("{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"apps/"
                                        "v1\",\"kind\":\"StatefulSet\",\"name\":\"db\",\"uid\":"
                                        "\"%s\",\"controller\":true,\"blockOwnerDeletion\":true}]}}",
                                        uid);
    assert_int_equal(patch(world, PODS "/db-0", MERGE, body), 200);
    return world;
}

static void a_body_silences_the_query(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_config(world, "c", "");
    assert_int_equal(ask(world, "DELETE", CONFIGMAPS "/c?dryRun=All",
                         "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\"}"),
                     200);
    assert_int_equal(ask(world, "GET", CONFIGMAPS "/c", NULL), 404);
    assert_int_equal(ask(world, "POST", SETS, SET), 201);
    assert_int_equal(ask(world, "DELETE", SETS "/db?propagationPolicy=Orphan", "{\"gracePeriodSeconds\":0}"),
                     200);
    assert_string_equal(json_str(world->body, "kind"), "Status");
}

static void a_misspelt_field_of_the_body_is_ignored(void **state)
{
    (void)state;
    WORLD world = world_make();
    assert_int_equal(ask(world, "POST", SETS, SET), 201);
    assert_int_equal(ask(world, "DELETE", SETS "/db", "{\"propagationpolicy\":\"Orphan\"}"), 200);
    assert_string_equal(json_str(world->body, "status"), "Success");
    assert_int_equal(ask(world, "GET", SETS "/db", NULL), 404);
}

static void junk_is_400_and_deletes_nothing(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_config(world, "c", "");
    assert_int_equal(ask(world, "DELETE", CONFIGMAPS "/c", "{junk"), 400);
    assert_int_equal(ask(world, "DELETE", CONFIGMAPS "/c", "{\"kind\":\"Pod\"}"), 400);
    assert_int_equal(ask(world, "DELETE", CONFIGMAPS "/c", "{\"propagationPolicy\":\"Maybe\"}"), 422);
    assert_int_equal(ask(world, "GET", CONFIGMAPS "/c", NULL), 200);
}

static void the_kind_of_the_answer_tells_what_was_done(void **state)
{
    (void)state;
    WORLD world = world_with_set();
    assert_int_equal(
        ask(world, "DELETE", SETS "/db", "{\"propagationPolicy\":\"Orphan\",\"dryRun\":[\"All\"]}"), 200);
    assert_string_equal(json_str(world->body, "kind"), "StatefulSet");
    assert_string_equal(json_path(world->body, "metadata", "finalizers", NULL)->child->valuestring, "orphan");
    assert_int_equal(ask(world, "GET", SETS "/db", NULL), 200);
    assert_null(meta(world, "deletionTimestamp"));
    assert_int_equal(ask(world, "DELETE", SETS "/db", "{\"propagationPolicy\":\"Orphan\"}"), 200);
    assert_string_equal(json_str(world->body, "kind"), "StatefulSet");
    assert_non_null(meta(world, "deletionTimestamp"));
    assert_int_equal(json_int64_or(json_get(world->body, "metadata"), "generation", 0), 2);
}

static void orphaned_pods_live_and_name_no_owner(void **state)
{
    (void)state;
    WORLD world = world_with_set();
    ask(world, "DELETE", SETS "/db", "{\"propagationPolicy\":\"Orphan\"}");
    pass(world, 1);
    assert_int_equal(ask(world, "GET", SETS "/db", NULL), 404);
    assert_int_equal(ask(world, "GET", PODS "/db-0", NULL), 200);
    assert_null(json_path(world->body, "metadata", "ownerReferences", NULL));
    assert_null(meta(world, "deletionTimestamp"));
}

static void a_background_delete_takes_the_pods(void **state)
{
    (void)state;
    WORLD world = world_with_set();
    ask(world, "DELETE", SETS "/db", NULL);
    assert_int_equal(ask(world, "GET", SETS "/db", NULL), 404);
    assert_int_equal(ask(world, "GET", PODS "/db-0", NULL), 200);
    assert_null(meta(world, "deletionTimestamp"));
    pass(world, 1);
    assert_int_equal(ask(world, "GET", PODS "/db-0", NULL), 200);
    assert_non_null(meta(world, "deletionTimestamp"));
}

static void a_foreground_delete_waits_for_the_pods(void **state)
{
    (void)state;
    WORLD world = world_with_set();
    ask(world, "DELETE", SETS "/db", "{\"propagationPolicy\":\"Foreground\"}");
    pass(world, 1);
    assert_int_equal(ask(world, "GET", SETS "/db", NULL), 200);
    ask(world, "DELETE", PODS "/db-0", "{\"gracePeriodSeconds\":0}");
    pass(world, 1);
    assert_int_equal(ask(world, "GET", SETS "/db", NULL), 404);
}

/* kubectl's background delete behind an orphan delete strips the finalizer: the set is gone, its pods are
 * killed. */
static void a_background_delete_undoes_a_pending_orphan_delete(void **state)
{
    (void)state;
    WORLD world = world_with_set();
    kubesim_set_gc(world->sim, false, 0, 0);
    ask(world, "DELETE", SETS "/db", "{\"propagationPolicy\":\"Orphan\"}");
    ask(world, "DELETE", SETS "/db", NULL);
    assert_int_equal(ask(world, "GET", SETS "/db", NULL), 200); /* without a policy nothing changes */
    ask(world, "DELETE", SETS "/db", "{\"propagationPolicy\":\"Background\"}");
    assert_int_equal(ask(world, "GET", SETS "/db", NULL), 404);
    kubesim_set_gc(world->sim, true, 0, 0);
    pass(world, 1);
    ask(world, "GET", PODS "/db-0", NULL);
    assert_non_null(meta(world, "deletionTimestamp"));
}

static void with_the_collector_off_everything_waits(void **state)
{
    (void)state;
    WORLD world = world_with_set();
    kubesim_set_gc(world->sim, false, 0, 0);
    ask(world, "DELETE", SETS "/db", "{\"propagationPolicy\":\"Orphan\"}");
    pass(world, 3600);
    assert_int_equal(ask(world, "GET", SETS "/db", NULL), 200);
    assert_int_equal(kubesim_next_tick_us(world->sim), INT64_MAX);
    kubesim_set_gc(world->sim, true, 5 * US_PER_S, 0);
    pass(world, 4);
    assert_int_equal(ask(world, "GET", SETS "/db", NULL), 200);
    pass(world, 2);
    assert_int_equal(ask(world, "GET", SETS "/db", NULL), 404);
}

/* A collector whose picture is old overlooks fresh pods when it orphans, and kills them afterwards. */
static void fresh_pods_are_lost_to_a_blind_collector(void **state)
{
    (void)state;
    WORLD world = world_with_set();
    kubesim_set_gc(world->sim, true, 0, 5 * US_PER_S);
    ask(world, "DELETE", SETS "/db", "{\"propagationPolicy\":\"Orphan\"}");
    pass(world, 1);
    assert_int_equal(ask(world, "GET", SETS "/db", NULL), 404);
    pass(world, 1);
    ask(world, "GET", PODS "/db-0", NULL);
    assert_non_null(meta(world, "deletionTimestamp"));
}

static void another_finalizer_holds_without_orphan(void **state)
{
    (void)state;
    WORLD world = world_with_set();
    patch(world, SETS "/db", MERGE, "{\"metadata\":{\"finalizers\":[\"example.com/hold\"]}}");
    ask(world, "DELETE", SETS "/db", "{\"propagationPolicy\":\"Orphan\"}");
    assert_int_equal(cJSON_GetArraySize(json_path(world->body, "metadata", "finalizers", NULL)), 2);
    pass(world, 1);
    assert_int_equal(ask(world, "GET", SETS "/db", NULL), 200);
    assert_int_equal(cJSON_GetArraySize(json_path(world->body, "metadata", "finalizers", NULL)), 1);
    assert_int_equal(ask(world, "GET", PODS "/db-0", NULL), 200);
    assert_null(json_path(world->body, "metadata", "ownerReferences", NULL));
}

static void an_object_whose_owner_never_was_is_collected(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_config(
        world, "c",
        ",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"p\",\"uid\":\"u\"}]");
    make_config(world, "o", "");
    CLEANUP_FREE char *uid = xstrdup(meta(world, "uid"));
    CLEANUP_FREE char *wrong_name = xasprintf(
        ",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"x\",\"uid\":\"%s\"}]",
        uid);
    CLEANUP_FREE char *right = xasprintf(
        ",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"o\",\"uid\":\"%s\"}]",
        uid);
    make_config(world, "d", wrong_name);
    make_config(world, "e", right);
    pass(world, 1);
    assert_int_equal(ask(world, "GET", CONFIGMAPS "/c", NULL), 404);
    assert_int_equal(ask(world, "GET", CONFIGMAPS "/d", NULL), 404);
    assert_int_equal(ask(world, "GET", CONFIGMAPS "/e", NULL), 200);
}

static void a_running_pod_stays_for_its_grace(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_pod(world, "p", "n1");
    assert_int_equal(ask(world, "DELETE", PODS "/p", "{\"gracePeriodSeconds\":20}"), 200);
    assert_string_equal(meta(world, "deletionTimestamp"), "2027-01-15T08:00:20Z");
    assert_int_equal(json_int64_or(json_get(world->body, "metadata"), "deletionGracePeriodSeconds", 0), 20);
    pass(world, 60);
    assert_int_equal(ask(world, "DELETE", PODS "/p", NULL), 200); /* again: nothing new */
    assert_int_equal(json_int64_or(json_get(world->body, "metadata"), "deletionGracePeriodSeconds", 0), 20);
    assert_int_equal(ask(world, "DELETE", PODS "/p", "{\"gracePeriodSeconds\":5}"), 200);
    assert_string_equal(meta(world, "deletionTimestamp"), "2027-01-15T08:00:05Z");
    assert_int_equal(ask(world, "DELETE", PODS "/p", "{\"gracePeriodSeconds\":0}"), 200);
    assert_int_equal(ask(world, "GET", PODS "/p", NULL), 404);
}

static void a_pod_that_runs_nowhere_goes_at_once(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_pod(world, "p", NULL);
    assert_int_equal(ask(world, "DELETE", PODS "/p", NULL), 200);
    assert_string_equal(json_str(world->body, "kind"), "Pod");
    assert_int_equal(ask(world, "GET", PODS "/p", NULL), 404);
    make_pod(world, "q", "n1");
    patch(world, PODS "/q/status", STRATEGIC, "{\"status\":{\"phase\":\"Failed\"}}");
    ask(world, "DELETE", PODS "/q", NULL);
    assert_int_equal(ask(world, "GET", PODS "/q", NULL), 404);
}

static void no_finalizer_is_added_to_a_dying_object(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_config(world, "c", ",\"finalizers\":[\"a.io/a\",\"b.io/b\"]");
    ask(world, "DELETE", CONFIGMAPS "/c", NULL);
    assert_int_equal(patch(world, CONFIGMAPS "/c", MERGE,
                           "{\"metadata\":{\"finalizers\":[\"a.io/a\",\"b.io/b\",\"c.io/c\"]}}"),
                     422);
    assert_int_equal(patch(world, CONFIGMAPS "/c", MERGE, "{\"metadata\":{\"finalizers\":[\"b.io/b\"]}}"),
                     200);
    assert_int_equal(patch(world, CONFIGMAPS "/c", MERGE, "{\"metadata\":{\"finalizers\":[]}}"), 200);
    assert_int_equal(ask(world, "GET", CONFIGMAPS "/c", NULL), 404);
}

static void a_collection_is_deleted_by_its_labels(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_config(world, "a", ",\"labels\":{\"x\":\"1\"}");
    make_config(world, "b", ",\"labels\":{\"x\":\"2\"}");
    make_config(world, "c", ",\"labels\":{\"x\":\"1\"}");
    assert_int_equal(ask(world, "DELETE", CONFIGMAPS "?labelSelector=x%3D1", NULL), 200);
    assert_int_equal(cJSON_GetArraySize(json_get(world->body, "items")), 2);
    assert_int_equal(ask(world, "GET", CONFIGMAPS, NULL), 200);
    assert_int_equal(cJSON_GetArraySize(json_get(world->body, "items")), 1);
}

static void an_eviction_deletes(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_pod(world, "p", "n1");
    assert_int_equal(
        ask(world, "POST", PODS "/p/eviction",
            "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"p\"}}"),
        201);
    ask(world, "GET", PODS "/p", NULL);
    assert_non_null(meta(world, "deletionTimestamp"));
}

static void a_claim_stays_while_a_pod_mounts_it(void **state)
{
    (void)state;
    WORLD world = world_make();
    assert_int_equal(
        ask(world, "POST", CLAIMS,
            "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"c\"},"
            "\"spec\":"
            "{\"accessModes\":[\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}"),
        201);
    assert_int_equal(ask(world, "POST", PODS,
                         "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"},\"spec\":{"
                         "\"nodeName\":\"n\","
                         "\"containers\":[{\"name\":\"a\",\"image\":\"i\"}],\"volumes\":[{\"name\":\"d\","
                         "\"persistentVolumeClaim\":"
                         "{\"claimName\":\"c\"}}]}}"),
                     201);
    assert_int_equal(ask(world, "DELETE", CLAIMS "/c", NULL), 200);
    pass(world, 10);
    assert_int_equal(ask(world, "GET", CLAIMS "/c", NULL), 200);
    assert_non_null(meta(world, "deletionTimestamp"));
    ask(world, "DELETE", PODS "/p", "{\"gracePeriodSeconds\":0}");
    pass(world, 1);
    assert_int_equal(ask(world, "GET", CLAIMS "/c", NULL), 404);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_silences_the_query),
        cmocka_unit_test(a_misspelt_field_of_the_body_is_ignored),
        cmocka_unit_test(junk_is_400_and_deletes_nothing),
        cmocka_unit_test(the_kind_of_the_answer_tells_what_was_done),
        cmocka_unit_test(orphaned_pods_live_and_name_no_owner),
        cmocka_unit_test(a_background_delete_takes_the_pods),
        cmocka_unit_test(a_foreground_delete_waits_for_the_pods),
        cmocka_unit_test(a_background_delete_undoes_a_pending_orphan_delete),
        cmocka_unit_test(with_the_collector_off_everything_waits),
        cmocka_unit_test(fresh_pods_are_lost_to_a_blind_collector),
        cmocka_unit_test(another_finalizer_holds_without_orphan),
        cmocka_unit_test(an_object_whose_owner_never_was_is_collected),
        cmocka_unit_test(a_running_pod_stays_for_its_grace),
        cmocka_unit_test(a_pod_that_runs_nowhere_goes_at_once),
        cmocka_unit_test(no_finalizer_is_added_to_a_dying_object),
        cmocka_unit_test(a_collection_is_deleted_by_its_labels),
        cmocka_unit_test(an_eviction_deletes),
        cmocka_unit_test(a_claim_stays_while_a_pod_mounts_it),
    };
    return cmocka_run_group_tests_name("kubesim deletes", tests, NULL, NULL);
}
