/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/manifest.h"
#include "kube/object.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const char pod[] =
    "{\"metadata\":{\"name\":\"mysql-0\",\"namespace\":\"db\",\"uid\":\"u1\",\"resourceVersion\":\"00012\","
    "\"generation\":9007199254740993,\"creationTimestamp\":\"2026-11-30T07:38:15Z\","
    "\"deletionTimestamp\":\"2026-11-30T07:38:16.5Z\",\"labels\":{\"app\":\"mysql\",\"empty\":\"\"},"
    "\"annotations\":{\"apps.neo.io/key\":\"k-1\"},\"finalizers\":[\"a\",7,\"apps.neo.io/hook\"],"
    "\"ownerReferences\":[{\"uid\":\"other\",\"controller\":false},{\"uid\":\"set\",\"controller\":true}]},"
    "\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"b\",\"image\":\"i\"}]},"
    "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"},{\"type\":\"Gate\",\"status\":"
    "\"False\"}]}}";

static cJSON *parse(const char *text)
{
    cJSON *tree = NULL;
    assert_int_equal(kube_object_parse(text, strlen(text), &tree, NULL), 0);
    return tree;
}

static void the_common_members_are_read(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *object = parse(pod);
    assert_string_equal(kube_object_name(object), "mysql-0");
    assert_string_equal(kube_object_namespace(object), "db");
    assert_string_equal(kube_object_uid(object), "u1");
    assert_string_equal(kube_object_version(object), "00012");
    assert_true(kube_object_generation(object) == 9007199254740993LL);
    assert_string_equal(kube_object_label(object, "app"), "mysql");
    assert_null(kube_object_label(object, "App"));
    assert_null(kube_object_label(object, "empty"));
    assert_string_equal(kube_object_annotation(object, "apps.neo.io/key"), "k-1");
    assert_true(kube_object_is_deleting(object));
    assert_true(kube_object_created_us(object) == 1796024295000000LL);
    assert_true(kube_object_deleting_us(object) == 1796024296500000LL);
}

static void owners_are_told_from_the_controller(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *object = parse(pod);
    assert_string_equal(json_str(kube_object_controller(object), "uid"), "set");
    assert_true(kube_object_is_controlled_by(object, "set"));
    assert_false(kube_object_is_controlled_by(object, "other"));
    assert_true(kube_object_is_owned_by(object, "other"));
    assert_false(kube_object_is_owned_by(object, "nobody"));
}

static void conditions_are_found(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *object = parse(pod);
    assert_true(kube_object_condition_is_true(object, "Ready"));
    assert_false(kube_object_condition_is_true(object, "Gate"));
    assert_string_equal(json_str(kube_object_condition(object, "Gate"), "status"), "False");
    assert_null(kube_object_condition(object, "Other"));
    assert_false(kube_object_condition_is_true(object, "Other"));
}

/* A server, or someone in between, may send anything. */
static void what_is_not_as_expected_is_absent(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "null",
        "7",
        "[]",
        "{}",
        "{\"metadata\":null}",
        "{\"metadata\":[],\"status\":7}",
        "{\"metadata\":{\"name\":7,\"namespace\":{},\"uid\":\"\",\"resourceVersion\":12,\"generation\":\"x\","
        "\"labels\":[],\"annotations\":7,\"deletionTimestamp\":null,\"creationTimestamp\":\"soon\","
        "\"ownerReferences\":[null,7,{\"controller\":\"true\"}],\"finalizers\":{\"a\":\"f\"}},"
        "\"status\":{\"conditions\":[7,null,{\"type\":7}]}}",
    };
    for (size_t i = 0; i <= ARRAY_SIZE(texts); i++) {
        CLEANUP_JSON cJSON *object = i < ARRAY_SIZE(texts) ? parse(texts[i]) : NULL;
        assert_null(kube_object_name(object));
        assert_null(kube_object_namespace(object));
        assert_null(kube_object_uid(object));
        assert_null(kube_object_version(object));
        assert_null(kube_object_label(object, "a"));
        assert_null(kube_object_annotation(object, "a"));
        assert_true(kube_object_generation(object) == 0);
        assert_false(kube_object_is_deleting(object));
        assert_null(kube_object_controller(object));
        assert_false(kube_object_is_controlled_by(object, "u"));
        assert_false(kube_object_is_owned_by(object, "u"));
        assert_null(kube_object_condition(object, "Ready"));
        assert_true(kube_object_created_us(object) == -1);
    }
}

/* Kubernetes lets "\u0000" pass in annotations; no C string can hold it. One such pod must not blind a watch.
 */
static void a_nul_escape_becomes_a_replacement_character(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *object = parse(
        "{\"metadata\":{\"annotations\":{\"a\":\"x\\u0000y\",\"b\":\"\\\\u0000\",\"c\":\"\\\\\\u0000\"}}}");
    assert_string_equal(kube_object_annotation(object, "a"), "x\xEF\xBF\xBDy");
    assert_string_equal(kube_object_annotation(object, "b"), "\\u0000");
    assert_string_equal(kube_object_annotation(object, "c"), "\\\xEF\xBF\xBD");
    cJSON *tree = NULL;
    assert_true(kube_object_parse("{\"a\":\"\\u000\"}", 12, &tree, NULL) < 0);
    assert_true(kube_object_parse("\\u0000", 6, &tree, NULL) < 0);
    assert_null(tree);
}

/* The server keeps a ControllerRevision's data byte for byte: no one's data may blind the watch of all. */
static void bytes_that_a_server_keeps_do_not_blind_a_watch(void **state)
{
    (void)state;
    static const struct {
        const char *data;
        const char *text; /* of data.a */
    } rows[] = {
        {"\"\\ud800\"", "\xEF\xBF\xBD"},
        {"\"\\uDFFFx\"", "\xEF\xBF\xBDx"},
        {"\"\\ud800\\ud83d\\ude00\"", "\xEF\xBF\xBD\xF0\x9F\x98\x80"},
        {"\"\\ud83d\\n\"", "\xEF\xBF\xBD\n"},
        {"\"\\\\ud800\\ud800\"", "\\ud800\xEF\xBF\xBD"},
        {"\"x\xFFy\xC3\"", "x?y?"},
        {"\"\xC3\xA9\\\"\xED\xA0\x80\"", "\xC3\xA9\"???"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *text =
            xasprintf("{\"data\":{\"a\":%s},\"metadata\":{\"name\":\"r\"}}", rows[i].data);
        CLEANUP_JSON cJSON *object = parse(text);
        assert_string_equal(json_path_str(object, "data", "a", NULL), rows[i].text);
        assert_string_equal(kube_object_name(object), "r");
    }
    CLEANUP_JSON cJSON *digits = parse(
        "{\"a\":1111111111111111111111111111111111111111111111111111111111111111111111111111111111111111}");
    assert_non_null(digits);
}

static void what_is_nested_too_deeply_is_left_out(void **state)
{
    (void)state;
    static const char *const pieces[][2] = {
        {"[", "]"}, {"{\"]}\":", "}"}, {"[{\"a\":[],\"b\":", ",\"c\":{}}]"}};
    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
        CLEANUP_BUF struct buf text = BUF_INIT(1 << 20);
        ENSURE(buf_add_text(&text, "{\"data\":") == 0);
        for (int depth = 0; depth < 9000; depth++)
            ENSURE(buf_add_text(&text, pieces[i][0]) == 0);
        ENSURE(buf_add_text(&text, "1") == 0);
        for (int depth = 0; depth < 9000; depth++)
            ENSURE(buf_add_text(&text, pieces[i][1]) == 0);
        ENSURE(buf_add_text(&text, ",\"metadata\":{\"name\":\"r\"}}") == 0);
        CLEANUP_JSON cJSON *object = parse(buf_text(&text));
        assert_string_equal(kube_object_name(object), "r");
    }
    /* Broken ones stay broken. */
    static const char *const broken[] = {
        "{\"a\":\"\\ud800", "{\"a\":\"\\ud8", "{\"a\":\"\xff", "[[", "]", "}{"};
    for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
        cJSON *tree = NULL;
        CLEANUP_ERROR struct error *err = NULL;
        assert_int_equal(kube_object_parse(broken[i], strlen(broken[i]), &tree, &err), -ERROR_INVALID);
        assert_non_null(err);
    }
}

/* Half of what a watch sends. Whose annotation has the name keeps it; a damaged object loses no more. */
static void the_servers_own_fields_are_left_out_where_asked(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"metadata\":{\"managedFields\":[{\"fieldsV1\":{}}],\"name\":\"a\",\"annotations\":{"
        "\"managedFields\":"
        "\"mine\"}}}",
        "{\"metadata\":{\"managedFields\":[{\"manager\":\"\\ud800\"}],\"name\":\"a\",\"annotations\":{"
        "\"managedFields\":\"mine\"}}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        CLEANUP_JSON cJSON *object = NULL;
        assert_int_equal(kube_object_parse_unmanaged(texts[i], strlen(texts[i]), 1, &object, NULL), 0);
        assert_string_equal(kube_object_name(object), "a");
        assert_string_equal(kube_object_annotation(object, "managedFields"), "mine");
        assert_null(json_path(object, "metadata", "managedFields", NULL));
        CLEANUP_FREE char *line = xasprintf("{\"type\":\"ADDED\",\"object\":%s}", texts[i]);
        CLEANUP_JSON cJSON *event = NULL;
        assert_int_equal(kube_object_parse_unmanaged(line, strlen(line), 2, &event, NULL), 0);
        assert_null(json_path(event, "object", "metadata", "managedFields", NULL));
        assert_string_equal(kube_object_name(json_get(event, "object")), "a");
    }
}

static void versions_are_ordered_as_numbers_of_any_length(void **state)
{
    (void)state;
    assert_int_equal(kube_version_compare("9", "10"), -1);
    assert_int_equal(kube_version_compare("10", "9"), 1);
    assert_int_equal(kube_version_compare("123456789012345678901", "123456789012345678902"), -1);
    assert_int_equal(kube_version_compare("7", "7"), 0);
    assert_int_equal(kube_version_compare("a", "7"), 0);
    assert_int_equal(kube_version_compare(NULL, "7"), 0);
}

static void an_object_is_named_for_people(void **state)
{
    (void)state;
    CLEANUP_FREE char *inside = kube_object_ref_text(KUBE_NEOSET, "default", "mysql");
    CLEANUP_FREE char *outside = kube_object_ref_text(KUBE_DEFINITION, NULL, "neosets.apps.neo.io");
    assert_string_equal(inside, "NeoSet/default/mysql");
    assert_string_equal(outside, "CustomResourceDefinition/neosets.apps.neo.io");
}

static void a_manifest_names_its_kind_and_itself(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *inside = kube_manifest(KUBE_LEASE, "db", "leader");
    CLEANUP_FREE char *text = json_print(inside);
    assert_string_equal(text, "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
                              "\"metadata\":{\"name\":\"leader\",\"namespace\":\"db\"}}");
    CLEANUP_JSON cJSON *outside = kube_manifest(KUBE_DEFINITION, NULL, "neosets.apps.neo.io");
    assert_string_equal(kube_object_name(outside), "neosets.apps.neo.io");
    assert_null(kube_object_namespace(outside));
}

static void an_owner_looks_after_what_it_has_or_only_holds_it(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *holder = kube_owner_reference(KUBE_POD, "mysql-0", "u1", false);
    CLEANUP_JSON cJSON *controller = kube_owner_reference(KUBE_NEOSET, "mysql", "u2", true);
    CLEANUP_FREE char *holds = json_print(holder);
    CLEANUP_FREE char *looks_after = json_print(controller);
    assert_string_equal(holds,
                        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"mysql-0\",\"uid\":\"u1\"}");
    assert_string_equal(looks_after,
                        "{\"apiVersion\":\"apps.neo.io/v1alpha1\",\"kind\":\"NeoSet\",\"name\":\"mysql\","
                        "\"uid\":\"u2\",\"controller\":true,\"blockOwnerDeletion\":true}");
}

static void an_object_is_found_by_its_name_or_not_at_all(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *items = NULL;
    static const char text[] =
        "[{\"metadata\":{}},{\"metadata\":{\"name\":\"a\"}},{\"metadata\":{\"name\":\"b\"}}]";
    assert_int_equal(json_parse(text, strlen(text), &items, NULL), 0);
    assert_string_equal(kube_object_name(kube_object_find(items, "b")), "b");
    assert_null(kube_object_find(items, "c"));
    assert_null(kube_object_find(items, NULL));
    assert_null(kube_object_find(NULL, "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_is_found_by_its_name_or_not_at_all),
        cmocka_unit_test(the_common_members_are_read),
        cmocka_unit_test(owners_are_told_from_the_controller),
        cmocka_unit_test(conditions_are_found),
        cmocka_unit_test(what_is_not_as_expected_is_absent),
        cmocka_unit_test(a_nul_escape_becomes_a_replacement_character),
        cmocka_unit_test(bytes_that_a_server_keeps_do_not_blind_a_watch),
        cmocka_unit_test(what_is_nested_too_deeply_is_left_out),
        cmocka_unit_test(the_servers_own_fields_are_left_out_where_asked),
        cmocka_unit_test(versions_are_ordered_as_numbers_of_any_length),
        cmocka_unit_test(an_object_is_named_for_people),
        cmocka_unit_test(a_manifest_names_its_kind_and_itself),
        cmocka_unit_test(an_owner_looks_after_what_it_has_or_only_holds_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
