/* SPDX-License-Identifier: Apache-2.0
 *
 * What single kinds do beside the general rules. */
#include "world.h"

#include "kubesim/quantity.h"

/* --- quantities
 * ---------------------------------------------------------------------------------------------------------
 */

static void quantities_are_spelt_as_kubernetes_does(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *canonical; /* NULL: none */
    } rows[] = {
        {"1Gi", "1Gi"},
        {"1024Mi", "1Gi"},
        {"1.5Gi", "1536Mi"},
        {"1536Ki", "1536Ki"},
        {"1000M", "1G"},
        {"0.5", "500m"},
        {"1e3", "1e3"},
        {"100", "100"},
        {"0", "0"},
        {"-1", "-1"},
        {"12E", "12E"},
        {"512Ki", "512Ki"},
        {"0.5Ki", "512"},
        {"1k", "1k"},
        {"1073741824", "1073741824"},
        {"+5", "+5"},
        {"1n", "1n"},
        {"0.1n", "1n"},
        {"9999Pi", "9223372036854775807"},
        {"junk", NULL},
        {"", NULL},
        {"1ki", NULL},
        {"1GiB", NULL},
        {".", "0"},
        {"1.2.3", NULL},
        {"1e", NULL},
        {"--1", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_JSON cJSON *node = json_new_str(rows[i].text);
        CLEANUP_FREE char *text = quantity_canonical(node);
        if (!str_equal(text, rows[i].canonical))
            fail_msg("%s: %s, not %s", rows[i].text, text ? text : "none",
                     rows[i].canonical ? rows[i].canonical : "none");
    }
}

static void quantities_compare_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *a;
        const char *b;
        int order;
    } rows[] = {
        {"1Gi", "1024Mi", 0}, {"1G", "1Gi", -1}, {"1001m", "1", 1},
        {"-1", "0", -1},      {"-2", "-1", -1},  {"9223372036854775807", "9223372036854775806", 1},
        {"1e3", "1k", 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct quantity a;
        struct quantity b;
        assert_true(quantity_from_text(rows[i].a, &a) && quantity_from_text(rows[i].b, &b));
        int order = quantity_compare(&a, &b);
        assert_int_equal((order > 0) - (order < 0), rows[i].order);
    }
}

/* --- claims: the answers of the real server to each way of growing
 * ------------------------------------------------------- */

static void make_class(struct world *world, const char *name, const char *expansion)
{
    CLEANUP_FREE char *body = xasprintf(
        "{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"StorageClass\",\"metadata\":{\"name\":\"%s\"},"
        "\"provisioner\":\"x\"%s%s}",
        name, *expansion ? ",\"allowVolumeExpansion\":" : "", expansion);
    assert_int_equal(ask(world, "POST", CLASSES, body), 201);
}

/* A claim c of a class (NULL: none), bound with 1Gi or pending. */
static void make_claim(struct world *world, const char *class, bool bound)
{
    CLEANUP_FREE char *body = xasprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"c\"},\"spec\":"
        "{\"accessModes\":[\"ReadWriteOnce\"],%s%s%s\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}",
        class ? "\"storageClassName\":\"" : "", class ? class : "", class ? "\"," : "");
    assert_int_equal(ask(world, "POST", CLAIMS, body), 201);
    assert_string_equal(json_path_str(world->body, "status", "phase", NULL), "Pending");
    if (bound)
        assert_int_equal(patch(world, CLAIMS "/c/status", MERGE,
                               "{\"status\":{\"phase\":\"Bound\",\"capacity\":{\"storage\":\"1Gi\"}}}"),
                         200);
}

static void claims_grow_by_the_server_s_rules(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        const char *class;
        bool bound;
        const char *size;
        int status;
        const char *causes;
    } rows[] = {
        {"bound, expandable", "std", true, "2Gi", 200, ""},
        {"unbound", "std", false, "2Gi", 422, "FieldValueForbidden@spec"},
        {"unbound and smaller", "std", false, "500Mi", 422, "FieldValueForbidden@spec"},
        {"class not expandable", "fixed", true, "2Gi", 403, ""},
        {"class without the field", "nil", true, "2Gi", 403, ""},
        {"no class", NULL, true, "2Gi", 403, ""},
        {"empty class", "", true, "2Gi", 403, ""},
        {"class that is not there", "none", true, "2Gi", 403, ""},
        {"same size", "fixed", true, "1Gi", 200, ""},
        {"same size in other words", "fixed", true, "1024Mi", 200, ""},
        {"smaller", "std", true, "500Mi", 422, "FieldValueForbidden@spec.resources.requests.storage"},
        {"zero", "std", true, "0", 422,
         "FieldValueInvalid@spec.resources[storage],FieldValueForbidden@spec.resources.requests.storage"},
        {"negative", "std", true, "-1Gi", 422,
         "FieldValueInvalid@spec.resources[storage],FieldValueForbidden@spec.resources.requests.storage"},
        {"junk", "std", true, "junk", 422, "FieldValueInvalid@patch"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        WORLD world = world_make();
        make_class(world, "std", "true");
        make_class(world, "fixed", "false");
        make_class(world, "nil", "");
        make_claim(world, rows[i].class, rows[i].bound);
        CLEANUP_FREE char *body =
            xasprintf("{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"%s\"}}}}", rows[i].size);
        int status = patch(world, CLAIMS "/c", MERGE, body);
        if (status != rows[i].status || strcmp(causes(world), rows[i].causes) != 0)
            fail_msg("%s: %d '%s': %s", rows[i].what, status, causes(world), message(world));
    }
}

static void a_growth_that_failed_can_be_taken_back_above_the_capacity(void **state)
{
    (void)state;
    static const struct {
        const char *size;
        int status;
    } rows[] = {{"2Gi", 200}, {"1073741825", 200}, {"1Gi", 422}, {"500Mi", 422}, {"5Gi", 200}};
    WORLD world = world_make();
    make_class(world, "std", "true");
    make_claim(world, "std", true);
    assert_int_equal(
        patch(world, CLAIMS "/c", MERGE, "{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"4Gi\"}}}}"),
        200);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *body =
            xasprintf("{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"%s\"}}}}", rows[i].size);
        assert_int_equal(patch(world, CLAIMS "/c", MERGE, body), rows[i].status);
    }
}

static void nothing_else_of_a_claim_changes(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "{\"spec\":{\"accessModes\":[\"ReadWriteMany\"]}}",
        "{\"spec\":{\"storageClassName\":\"fixed\"}}",
        "{\"spec\":{\"resources\":{\"limits\":{\"storage\":\"9Gi\"}}}}",
    };
    WORLD world = world_make();
    make_class(world, "std", "true");
    make_claim(world, "std", true);
    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        assert_int_equal(patch(world, CLAIMS "/c", MERGE, bodies[i]), 422);
        assert_string_equal(causes(world), "FieldValueForbidden@spec");
    }
    assert_int_equal(
        patch(world, CLAIMS "/c", MERGE, "{\"metadata\":{\"annotations\":{\"apps.neo.io/step\":\"k\"}}}"),
        200);
}

static void a_claim_without_class_gets_the_default_one(void **state)
{
    (void)state;
    WORLD world = world_make();
    assert_int_equal(
        ask(world, "POST", CLASSES,
            "{\"apiVersion\":\"storage.k8s.io/"
            "v1\",\"kind\":\"StorageClass\",\"metadata\":{\"name\":\"d\",\"annotations\":"
            "{\"storageclass.kubernetes.io/is-default-class\":\"true\"}},\"provisioner\":\"x\"}"),
        201);
    make_claim(world, NULL, false);
    ask(world, "GET", CLAIMS "/c", NULL);
    assert_string_equal(json_path_str(world->body, "spec", "storageClassName", NULL), "d");
}

/* --- controller revisions
 * ------------------------------------------------------------------------------------------------ */

/* data is immutable as bytes, and every update takes it through the server's encoder (measured). */
static void the_bytes_of_a_revision_decide_whether_it_can_be_updated(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        const char *data;
        int merge;
        int strategic;
        int json;
    } rows[] = {
        {"sorted", "{\"spec\":{\"a\":1,\"b\":{\"x\":1,\"y\":null}}}", 200, 200, 200},
        {"not sorted", "{\"spec\":{\"b\":{\"y\":1,\"x\":2},\"a\":1}}", 200, 422, 200},
        {"with blanks", "{\"spec\": {\"a\":1}}", 422, 422, 422},
        {"with < > &", "{\"spec\":{\"a\":\"x && y > z\"}}", 422, 422, 422},
        {"with < > & escaped", "{\"spec\":{\"a\":\"x \\u0026\\u0026 y \\u003e z\"}}", 200, 200, 200},
        {"blanks in a string", "{\"spec\":{\"a\":\"x \\\" y\"}}", 200, 200, 200},
        {"escaped without need", "{\"spec\":{\"a\":\"\\/\"}}", 200, 422, 200},
    };
    static const char *const types[] = {MERGE, STRATEGIC, JSON_PATCH};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const int expected[] = {rows[i].merge, rows[i].strategic, rows[i].json};
        for (size_t k = 0; k < ARRAY_SIZE(types); k++) {
            WORLD world = world_make();
            CLEANUP_FREE char *body = xasprintf(
                "{\"apiVersion\":\"apps/v1\",\"kind\":\"ControllerRevision\",\"metadata\":{\"name\":\"r\"},"
                "\"data\":%s,\"revision\":1}",
                rows[i].data);
            assert_int_equal(ask(world, "POST", REVISIONS, body), 201);
            const char *change =
                k == 2 ? "[{\"op\":\"replace\",\"path\":\"/revision\",\"value\":2}]" : "{\"revision\":2}";
            int status = patch(world, REVISIONS "/r", types[k], change);
            if (status != expected[k])
                fail_msg("%s, %s: %d: %s", rows[i].what, types[k], status, message(world));
        }
    }
}

static void a_revision_needs_data_and_keeps_it(void **state)
{
    (void)state;
    WORLD world = world_make();
    assert_int_equal(
        ask(world, "POST", REVISIONS,
            "{\"apiVersion\":\"apps/"
            "v1\",\"kind\":\"ControllerRevision\",\"metadata\":{\"name\":\"r\"},\"revision\":1}"),
        422);
    assert_string_equal(causes(world), "FieldValueRequired@data");
    assert_int_equal(
        ask(world, "POST", REVISIONS,
            "{\"apiVersion\":\"apps/"
            "v1\",\"kind\":\"ControllerRevision\",\"metadata\":{\"name\":\"r\"},\"data\":{\"a\":null},"
            "\"revision\":1}"),
        201);
    assert_true(cJSON_IsNull(json_path(world->body, "data", "a", NULL)));
    assert_int_equal(patch(world, REVISIONS "/r", MERGE, "{\"data\":{\"a\":2}}"), 422);
    assert_int_equal(patch(world, REVISIONS "/r", MERGE, "{\"revision\":-1}"), 422);
}

/* --- leases and events
 * --------------------------------------------------------------------------------------------------- */

#define LEASE(rest)                                                                                          \
    "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"l\"" rest        \
    "},\"spec\":{\"holderIdentity\":"                                                                        \
    "\"a\",\"leaseDurationSeconds\":30,\"renewTime\":\"2027-01-15T08:00:00.000000Z\"}}"

static void a_lease_is_put_with_its_version_or_created(void **state)
{
    (void)state;
    WORLD world = world_make();
    assert_int_equal(ask(world, "PUT", LEASES "/l", LEASE(",\"resourceVersion\":\"5\"")), 201);
    assert_int_equal(ask(world, "PUT", LEASES "/l", LEASE("")), 422);
    assert_string_equal(
        message(world),
        "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: "
        "must be specified for an update");
    CLEANUP_FREE char *version = now_of(world, LEASES "/l", "resourceVersion");
    CLEANUP_FREE char *annotated =
        xasprintf(LEASE(",\"annotations\":{\"a\":\"b\"},\"resourceVersion\":\"%s\""), version);
    assert_int_equal(ask(world, "PUT", LEASES "/l", annotated), 200);
    assert_int_equal(ask(world, "PUT", LEASES "/l", annotated), 409);
}

static void times_of_a_lease_have_six_digits(void **state)
{
    (void)state;
    WORLD world = world_make();
    assert_int_equal(ask(world, "POST", LEASES, LEASE("")), 201);
    assert_int_equal(patch(world, LEASES "/l", MERGE, "{\"spec\":{\"renewTime\":\"2027-01-15T08:00:01Z\"}}"),
                     422);
    assert_int_equal(
        patch(world, LEASES "/l", MERGE, "{\"spec\":{\"renewTime\":\"2027-01-15T08:00:01.5Z\"}}"), 422);
    assert_int_equal(
        patch(world, LEASES "/l", MERGE, "{\"spec\":{\"renewTime\":\"2027-01-15T08:00:01.500000Z\"}}"), 200);
    assert_int_equal(patch(world, LEASES "/l", MERGE, "{\"spec\":{\"leaseDurationSeconds\":0}}"), 422);
}

static void events_are_found_by_what_they_are_about(void **state)
{
    (void)state;
    WORLD world = world_make();
    assert_int_equal(ask(world, "POST", EVENTS,
                         "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"e\"},"
                         "\"involvedObject\":{\"kind\":\"NeoSet\","
                         "\"namespace\":\"default\",\"name\":\"mysql\",\"uid\":\"u\"},\"reason\":\"Rolling\","
                         "\"type\":\"Normal\",\"message\":\"m\"}"),
                     201);
    static const struct {
        const char *selector;
        int count;
    } rows[] = {{"involvedObject.name%3Dmysql%2CinvolvedObject.kind%3DNeoSet", 1},
                {"involvedObject.uid%3Du", 1},
                {"involvedObject.name%3Dother", 0},
                {"type%3DNormal", 1},
                {"reason%21%3DRolling", 0}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *path = xasprintf(EVENTS "?fieldSelector=%s", rows[i].selector);
        assert_int_equal(ask(world, "GET", path, NULL), 200);
        assert_int_equal(cJSON_GetArraySize(json_get(world->body, "items")), rows[i].count);
    }
    assert_int_equal(ask(world, "POST", EVENTS,
                         "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"f\"},"
                         "\"involvedObject\":{\"kind\":\"Pod\","
                         "\"namespace\":\"other\",\"name\":\"p\"}}"),
                     422);
}

static void pods_are_found_by_node_and_phase(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_pod(world, "a", "n1");
    make_pod(world, "b", "n2");
    make_pod(world, "c", NULL);
    patch(world, PODS "/a/status", MERGE, "{\"status\":{\"phase\":\"Running\"}}");
    assert_int_equal(
        ask(world, "GET", PODS "?fieldSelector=spec.nodeName%3Dn1%2Cstatus.phase%3DRunning", NULL), 200);
    assert_int_equal(cJSON_GetArraySize(json_get(world->body, "items")), 1);
    assert_int_equal(ask(world, "GET", PODS "?fieldSelector=spec.nodeName%3D", NULL), 200);
    assert_int_equal(cJSON_GetArraySize(json_get(world->body, "items")), 1);
}

/* --- stateful sets
 * ------------------------------------------------------------------------------------------------------- */

#define SET_SPEC                                                                                             \
    "\"serviceName\":\"db\",\"selector\":{\"matchLabels\":{\"app\":\"db\"}},\"template\":{\"metadata\":{"    \
    "\"labels\":{\"app\":\"db\"}},"                                                                          \
    "\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"i\"}]}},\"volumeClaimTemplates\":[{\"metadata\":" \
    "{\"name\":\"data\"},\"spec\":"                                                                          \
    "{\"accessModes\":[\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}]"

static struct world *world_with_set(bool by_field)
{
    struct world *world = xcalloc(1, sizeof(*world));
    struct kubesim_options options = world_options(world);
    options.newer = by_field;
    world_make_with(&options, world);
    assert_int_equal(ask(world, "POST", SETS,
                         "{\"apiVersion\":\"apps/"
                         "v1\",\"kind\":\"StatefulSet\",\"metadata\":{\"name\":\"db\"},\"spec\":{" SET_SPEC
                         "}}"),
                     201);
    return world;
}

static void a_set_is_immutable_in_the_words_of_both_generations(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        const char *as_one;
        const char *by_field;
    } rows[] = {
        {"{\"spec\":{\"replicas\":3}}", "", ""},
        {"{\"spec\":{\"minReadySeconds\":3}}", "", ""},
        {"{\"spec\":{\"serviceName\":\"x\"}}", "FieldValueForbidden@spec",
         "FieldValueInvalid@spec.serviceName"},
        {"{\"spec\":{\"podManagementPolicy\":\"Parallel\"}}", "FieldValueForbidden@spec",
         "FieldValueInvalid@spec.podManagementPolicy"},
        {"{\"spec\":{\"selector\":{\"matchLabels\":{\"app\":\"x\"}}}}",
         "FieldValueInvalid@spec.template.metadata.labels,FieldValueForbidden@spec",
         "FieldValueInvalid@spec.template.metadata.labels,FieldValueInvalid@spec.selector"},
        {"{\"spec\":{\"serviceName\":\"x\",\"volumeClaimTemplates\":[]}}", "FieldValueForbidden@spec",
         "FieldValueInvalid@spec.volumeClaimTemplates,FieldValueInvalid@spec.serviceName"},
        {"{\"spec\":{\"updateStrategy\":{\"type\":\"OnDelete\"}}}",
         "FieldValueInvalid@spec.updateStrategy.rollingUpdate",
         "FieldValueInvalid@spec.updateStrategy.rollingUpdate"},
    };
    for (int by_field = 0; by_field < 2; by_field++) {
        WORLD world = world_with_set(by_field);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
            const char *expected = by_field ? rows[i].by_field : rows[i].as_one;
            int status = patch(world, SETS "/db?dryRun=All", MERGE, rows[i].body);
            if (status != (*expected ? 422 : 200) || strcmp(causes(world), expected) != 0)
                fail_msg("%s: %d '%s': %s", rows[i].body, status, causes(world), message(world));
        }
    }
}

static void a_set_is_scaled_with_a_scale(void **state)
{
    (void)state;
    WORLD world = world_with_set(false);
    assert_int_equal(patch(world, SETS "/db/scale", MERGE, "{\"spec\":{\"replicas\":4}}"), 200);
    assert_string_equal(json_path_str(world->body, "status", "selector", NULL), "app=db");
    assert_int_equal(patch(world, SETS "/db/scale", MERGE, "{\"spec\":{\"replicas\":-1}}"), 422);
    assert_true(str_starts_with(message(world), "Scale.autoscaling \"db\" is invalid"));
    ask(world, "GET", SETS "/db", NULL);
    assert_int_equal(json_int64_or(json_get(world->body, "spec"), "replicas", 0), 4);
    assert_int_equal(json_int64_or(json_get(world->body, "metadata"), "generation", 0), 2);
}

/* --- the others
 * -----------------------------------------------------------------------------------------------------------
 */

static void a_secret_takes_string_data_and_keeps_its_type(void **state)
{
    (void)state;
    WORLD world = world_make();
    static const char path[] = "/api/v1/namespaces/default/secrets";
    assert_int_equal(ask(world, "POST", path,
                         "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"s\"},"
                         "\"stringData\":{\"a\":\"hello\",\"b\":\"hi!\"}}"),
                     201);
    assert_string_equal(json_path_str(world->body, "data", "a", NULL), "aGVsbG8=");
    assert_string_equal(json_path_str(world->body, "data", "b", NULL), "aGkh");
    assert_null(json_get(world->body, "stringData"));
    assert_int_equal(patch(world, "/api/v1/namespaces/default/secrets/s", MERGE, "{\"type\":\"other\"}"),
                     422);
}

static void a_service_keeps_its_address(void **state)
{
    (void)state;
    WORLD world = world_make();
    static const char path[] = "/api/v1/namespaces/default/services";
    assert_int_equal(ask(world, "POST", path,
                         "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"s\"},\"spec\":"
                         "{\"ports\":[{\"port\":80}]}}"),
                     201);
    assert_true(str_starts_with(json_path_str(world->body, "spec", "clusterIP", NULL), "10."));
    assert_int_equal(json_int64_or(json_path(world->body, "spec", "ports", NULL)->child, "targetPort", 0),
                     80);
    assert_int_equal(patch(world, "/api/v1/namespaces/default/services/s", MERGE,
                           "{\"spec\":{\"clusterIP\":\"10.0.0.1\"}}"),
                     422);
}

static void the_table_of_pods_says_what_people_expect(void **state)
{
    (void)state;
    static const struct {
        const char *status;
        const char *cells;
    } rows[] = {
        {"{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"a\",\"ready\":true,\"restartCount\":0,"
         "\"state\":{\"running\":{}}},"
         "{\"name\":\"b\",\"ready\":true,\"restartCount\":0,\"state\":{\"running\":{}}}]}",
         "[\"p\",\"2/2\",\"Running\",\"0\""},
        {"{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"a\",\"ready\":false,\"restartCount\":3,"
         "\"state\":{\"waiting\":"
         "{\"reason\":\"CrashLoopBackOff\"}},\"lastState\":{\"terminated\":{\"exitCode\":3,\"finishedAt\":"
         "\"2027-01-15T07:59:00Z\"}}},"
         "{\"name\":\"b\",\"ready\":true,\"restartCount\":0,\"state\":{\"running\":{}}}]}",
         "[\"p\",\"1/2\",\"CrashLoopBackOff\",\"3 (60s ago)\""},
        {"{\"phase\":\"Pending\",\"containerStatuses\":[{\"name\":\"a\",\"ready\":false,\"restartCount\":0,"
         "\"state\":{\"terminated\":"
         "{\"exitCode\":3}}}]}",
         "[\"p\",\"0/2\",\"ExitCode:3\",\"0\""},
        {"{\"phase\":\"Failed\",\"reason\":\"Evicted\"}", "[\"p\",\"0/2\",\"Evicted\",\"0\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        WORLD world = world_make();
        make_pod(world, "p", "n1");
        CLEANUP_FREE char *body = xasprintf("{\"status\":%s}", rows[i].status);
        assert_int_equal(patch(world, PODS "/p/status", MERGE, body), 200);
        const struct kubesim_request request = {
            .method = "GET", .path = PODS, .accept = "application/json;as=Table"};
        ask_raw(world, &request);
        CLEANUP_FREE char *cells = json_print(json_get(json_get(world->body, "rows")->child, "cells"));
        if (!str_starts_with(cells, rows[i].cells))
            fail_msg("%s: %s", rows[i].status, cells);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantities_are_spelt_as_kubernetes_does),
        cmocka_unit_test(quantities_compare_exactly),
        cmocka_unit_test(claims_grow_by_the_server_s_rules),
        cmocka_unit_test(a_growth_that_failed_can_be_taken_back_above_the_capacity),
        cmocka_unit_test(nothing_else_of_a_claim_changes),
        cmocka_unit_test(a_claim_without_class_gets_the_default_one),
        cmocka_unit_test(the_bytes_of_a_revision_decide_whether_it_can_be_updated),
        cmocka_unit_test(a_revision_needs_data_and_keeps_it),
        cmocka_unit_test(a_lease_is_put_with_its_version_or_created),
        cmocka_unit_test(times_of_a_lease_have_six_digits),
        cmocka_unit_test(events_are_found_by_what_they_are_about),
        cmocka_unit_test(pods_are_found_by_node_and_phase),
        cmocka_unit_test(a_set_is_immutable_in_the_words_of_both_generations),
        cmocka_unit_test(a_set_is_scaled_with_a_scale),
        cmocka_unit_test(a_secret_takes_string_data_and_keeps_its_type),
        cmocka_unit_test(a_service_keeps_its_address),
        cmocka_unit_test(the_table_of_pods_says_what_people_expect),
    };
    return cmocka_run_group_tests_name("kubesim kinds", tests, NULL, NULL);
}
