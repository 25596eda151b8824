/* SPDX-License-Identifier: Apache-2.0 */
#include "whole_file.h"
#include "world.h"

#include <stdio.h>

#include "base/yaml.h"

struct refused_widget {
    const char *spec;
    const char *causes; /* NULL: accepted */
};

#define NOT_CHECKED ",FieldValueInvalid@<nil>"

/* As kube-apiserver 1.36.3 answered to the same definition. */
static const struct refused_widget widgets[] = {
    {"\"word\":\"ab\"", NULL},
    {"", "FieldValueRequired@spec.word" NOT_CHECKED},
    {"\"word\":null", "FieldValueRequired@spec.word" NOT_CHECKED},
    {"\"word\":\"a\"", "FieldValueInvalid@spec.word"},
    {"\"word\":\"abcdef\"", "FieldValueTooLong@spec.word" NOT_CHECKED},
    {"\"word\":\"AB\"", "FieldValueInvalid@spec.word"},
    {"\"word\":5", "FieldValueTypeInvalid@spec.word" NOT_CHECKED},
    {"\"word\":\"ab\",\"replicas\":-1", "FieldValueInvalid@spec.replicas,FieldValueInvalid@.spec.replicas"},
    {"\"word\":\"ab\",\"replicas\":101", "FieldValueInvalid@spec.replicas,FieldValueInvalid@spec"},
    {"\"word\":\"ab\",\"replicas\":60,\"type\":\"B\"", NULL},
    {"\"word\":\"ab\",\"replicas\":60", "FieldValueInvalid@spec"},
    {"\"word\":\"ab\",\"type\":\"C\"", "FieldValueNotSupported@spec.type" NOT_CHECKED},
    {"\"word\":\"ab\",\"many\":\"30%\"", NULL},
    {"\"word\":\"ab\",\"many\":3", NULL},
    {"\"word\":\"ab\",\"many\":true", "FieldValueTypeInvalid@spec.many" NOT_CHECKED},
    {"\"word\":\"ab\",\"list\":[]", "FieldValueInvalid@spec.list"},
    {"\"word\":\"ab\",\"list\":[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"c\"}]",
     "FieldValueTooMany@spec.list" NOT_CHECKED},
    {"\"word\":\"ab\",\"list\":[{\"name\":\"a\"},{\"name\":\"a\"}]", "FieldValueDuplicate@spec.list[1]"},
    {"\"word\":\"ab\",\"list\":[{}]", "FieldValueRequired@spec.list[0].name" NOT_CHECKED},
    {"\"word\":\"ab\",\"map\":{\"a\":1}", "FieldValueTypeInvalid@spec.map.a" NOT_CHECKED},
    {"\"word\":\"ab\",\"map\":{\"a\":\"1\",\"b\":\"2\"}", "FieldValueInvalid@spec.map"},
    {"\"word\":\"ab\",\"flag\":\"true\"", "FieldValueTypeInvalid@spec.flag" NOT_CHECKED},
    {"\"word\":\"ab\",\"flag\":null", NULL},
    {"\"word\":\"ab\",\"maybe\":null", NULL},
    {"\"word\":\"ab\",\"free\":{\"anything\":[1,null,{\"b\":2}]}", NULL},
};

static void values_are_checked_by_the_schema(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_widgets(world);
    for (size_t i = 0; i < ARRAY_SIZE(widgets); i++) {
        int status = make_widget(world, "w", widgets[i].spec);
        const char *expected = widgets[i].causes ? widgets[i].causes : "";
        if (status != (widgets[i].causes ? 422 : 201) || strcmp(causes(world), expected) != 0)
            fail_msg("{%s}: %d '%s': %s", widgets[i].spec, status, causes(world), message(world));
        ask(world, "DELETE", WIDGETS "/w", NULL);
    }
}

static void defaults_are_filled_in_and_unknown_fields_dropped(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_widgets(world);
    assert_int_equal(make_widget(world, "w", "\"word\":\"ab\",\"list\":[{\"name\":\"x\"}],\"foo\":1"), 201);
    CLEANUP_FREE char *spec = json_print_sorted(json_get(world->body, "spec"));
    assert_string_equal(spec, "{\"list\":[{\"name\":\"x\",\"v\":7}],\"nested\":{\"a\":3},\"replicas\":1,"
                              "\"type\":\"A\",\"word\":\"ab\"}");
    assert_string_equal(world->response.warning, "unknown field \"spec.foo\"");
    CLEANUP_FREE char *body =
        xstrdup("{\"apiVersion\":\"ex.io/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"v\"},\"bar\":2,"
                "\"spec\":{\"word\":\"ab\",\"foo\":1}}");
    assert_int_equal(ask(world, "POST", WIDGETS "?fieldValidation=Strict", body), 400);
    assert_string_equal(message(world),
                        "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: "
                        "unknown field \"bar\", unknown field \"spec.foo\"");
}

static void a_transition_rule_sees_the_old_value(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_widgets(world);
    make_widget(world, "w", "\"word\":\"ab\"");
    assert_int_equal(patch(world, WIDGETS "/w", MERGE, "{\"spec\":{\"fixed\":\"a\"}}"), 200);
    assert_int_equal(patch(world, WIDGETS "/w", MERGE, "{\"spec\":{\"fixed\":\"b\"}}"), 422);
    assert_string_equal(
        message(world),
        "Widget.ex.io \"w\" is invalid: spec.fixed: Invalid value: \"b\": fixed is immutable");
}

static void status_and_spec_are_written_apart(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_widgets(world);
    make_widget(world, "w", "\"word\":\"ab\"");
    assert_int_equal(patch(world, WIDGETS "/w/status", MERGE,
                           "{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"replicas\":9},\"status\":{"
                           "\"replicas\":2}}"),
                     200);
    assert_null(json_path(world->body, "metadata", "labels", NULL));
    assert_int_equal(json_int64_or(json_get(world->body, "spec"), "replicas", 0), 1);
    assert_int_equal(json_int64_or(json_get(world->body, "metadata"), "generation", 0), 1);
    assert_int_equal(
        patch(world, WIDGETS "/w", MERGE, "{\"spec\":{\"replicas\":3},\"status\":{\"replicas\":77}}"), 200);
    assert_int_equal(json_int64_or(json_get(world->body, "status"), "replicas", 0), 2);
    assert_int_equal(json_int64_or(json_get(world->body, "metadata"), "generation", 0), 2);
}

static void scale_reads_and_writes_its_paths(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_widgets(world);
    make_widget(world, "w", "\"word\":\"ab\",\"replicas\":5");
    patch(world, WIDGETS "/w/status", MERGE, "{\"status\":{\"replicas\":4,\"selector\":\"app=w\"}}");
    assert_int_equal(ask(world, "GET", WIDGETS "/w/scale", NULL), 200);
    assert_string_equal(json_str(world->body, "apiVersion"), "autoscaling/v1");
    assert_int_equal(json_int64_or(json_get(world->body, "spec"), "replicas", 0), 5);
    assert_int_equal(json_int64_or(json_get(world->body, "status"), "replicas", 0), 4);
    assert_string_equal(json_path_str(world->body, "status", "selector", NULL), "app=w");
    assert_int_equal(patch(world, WIDGETS "/w/scale", MERGE, "{\"spec\":{\"replicas\":0}}"), 200);
    assert_int_equal(patch(world, WIDGETS "/w/scale", MERGE, "{\"spec\":{\"replicas\":-1}}"), 422);
    assert_string_equal(causes(world), "FieldValueInvalid@spec.replicas,FieldValueInvalid@.spec.replicas");
    assert_int_equal(patch(world, WIDGETS "/w/scale", MERGE,
                           "{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"replicas\":3}}"),
                     409);
    assert_int_equal(patch(world, WIDGETS "/w/scale", JSON_PATCH,
                           "[{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":7}]"),
                     422); /* nothing to replace: zero is left out of a Scale */
    ask(world, "GET", WIDGETS "/w", NULL);
    assert_int_equal(json_int64_or(json_get(world->body, "spec"), "replicas", 9), 0);
    assert_int_equal(ask(world, "PUT", WIDGETS "/w/scale",
                         "{\"apiVersion\":\"autoscaling/"
                         "v1\",\"kind\":\"Scale\",\"metadata\":{\"name\":\"w\"},\"spec\":{\"replicas\":2}}"),
                     200);
    ask(world, "GET", WIDGETS "/w", NULL);
    assert_int_equal(json_int64_or(json_get(world->body, "spec"), "replicas", 9), 2);
}

static const char *first_cell(struct world *world, int index)
{
    const cJSON *row = json_get(world->body, "rows")->child;
    const cJSON *cell = cJSON_GetArrayItem(json_get(row, "cells"), index);
    return cJSON_IsString(cell) ? cell->valuestring : cJSON_IsNull(cell) ? "null" : "?";
}

static void the_server_prints_the_columns(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_widgets(world);
    make_widget(world, "w", "\"word\":\"ab\"");
    pass(world, 3 * 3600);
    const struct kubesim_request request = {
        .method = "GET",
        .path = WIDGETS,
        .accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"};
    assert_int_equal(ask_raw(world, &request), 200);
    assert_string_equal(json_str(world->body, "kind"), "Table");
    assert_int_equal(cJSON_GetArraySize(json_get(world->body, "columnDefinitions")), 4);
    assert_string_equal(first_cell(world, 0), "w");
    assert_string_equal(first_cell(world, 1), "null");
    assert_string_equal(first_cell(world, 2), "ab");
    assert_string_equal(first_cell(world, 3), "3h");
    const struct kubesim_request partial = {
        .method = "GET",
        .path = WIDGETS "/w",
        .accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"};
    assert_int_equal(ask_raw(world, &partial), 200);
    assert_string_equal(json_str(world->body, "kind"), "PartialObjectMetadata");
    assert_null(json_get(world->body, "spec"));
}

/* definition: openAPIV3Schema of a kind Thing. */
static int define(struct world *world, const char *schema)
{
    CLEANUP_FREE char *body = xasprintf("{\"apiVersion\":\"apiextensions.k8s.io/"
                                        "v1\",\"kind\":\"CustomResourceDefinition\",\"metadata\":{\"name\":"
                                        "\"things.ex.io\"},\"spec\":{\"group\":\"ex.io\",\"scope\":"
                                        "\"Cluster\",\"names\":{\"kind\":\"Thing\",\"plural\":\"things\"},"
                                        "\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,"
                                        "\"schema\":{\"openAPIV3Schema\":%s}}]}}",
                                        schema);
    return ask(world, "POST", DEFINITIONS, body);
}

static void a_definition_that_cannot_be_evaluated_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *schema;
        int status;
        const char *words;
    } rows[] = {
        {"{\"type\":\"object\"}", 201, ""},
        {"{\"type\":\"object\",\"x-kubernetes-validations\":[{\"rule\":\"self.frobnicate()\"}]}", 501,
         "frobnicate"},
        {"{\"type\":\"object\",\"x-kubernetes-validations\":[{\"rule\":\"self.a ==\"}]}", 501, "self.a =="},
        {"{\"type\":\"object\",\"x-kubernetes-validations\":[{\"rule\":\"nobody == 1\"}]}", 501, "nobody"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"pattern\":\"(?i)x\"}}}", 501,
         "(?i)x"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"strong\"}}}", 422, "strong"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/x\"}}}", 422, "$ref"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        WORLD world = world_make();
        int status = define(world, rows[i].schema);
        if (status != rows[i].status || !strstr(message(world), rows[i].words))
            fail_msg("%s: %d: %s", rows[i].schema, status, message(world));
    }
}

#define THING "{\"apiVersion\":\"ex.io/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"%s\"}}"

static void of_metadata_a_definition_may_bound_the_name(void **state)
{
    (void)state;
    WORLD world = world_make();
    assert_int_equal(define(world, "{\"type\":\"object\",\"properties\":{\"metadata\":{\"type\":\"object\","
                                   "\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":3}}}}}"),
                     201);
    CLEANUP_FREE char *fits = xasprintf(THING, "abc");
    CLEANUP_FREE char *too_long = xasprintf(THING, "abcd");
    assert_int_equal(ask(world, "POST", "/apis/ex.io/v1/things", fits), 201);
    assert_int_equal(ask(world, "POST", "/apis/ex.io/v1/things", too_long), 422);
    assert_string_equal(
        message(world),
        "Thing.ex.io \"abcd\" is invalid: metadata.name: Too long: may not be more than 3 bytes");
}

static void a_definition_is_served_at_once_and_gone_at_once(void **state)
{
    (void)state;
    WORLD world = world_make();
    assert_int_equal(ask(world, "GET", "/apis/ex.io/v1/things", NULL), 404);
    assert_int_equal(define(world, "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\"}}}"),
                     201);
    CLEANUP_FREE char *conditions = json_print(json_path(world->body, "status", "conditions", NULL));
    assert_non_null(strstr(conditions, "Established"));
    assert_int_equal(ask(world, "POST", "/apis/ex.io/v1/things",
                         "{\"apiVersion\":\"ex.io/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"t\"}}"),
                     201);
    TOLD told;
    assert_int_equal(watch(world, &told, "/apis/ex.io/v1/things?watch=true"), 200);
    assert_int_equal(ask(world, "DELETE", DEFINITIONS "/things.ex.io", NULL), 200);
    assert_string_equal(buf_text(&told.lines), "ADDED t\nDELETED t\n");
    assert_true(told.ended);
    assert_int_equal(ask(world, "GET", "/apis/ex.io/v1/things", NULL), 404);
    assert_int_equal(define(world, "{\"type\":\"object\"}"), 201);
    assert_int_equal(ask(world, "GET", "/apis/ex.io/v1/things", NULL), 200);
    assert_null(json_get(world->body, "items")->child);
}

static void a_changed_definition_keeps_the_objects(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_widgets(world);
    make_widget(world, "w", "\"word\":\"ab\"");
    assert_int_equal(patch(world, DEFINITIONS "/widgets.ex.io", JSON_PATCH,
                           "[{\"op\":\"replace\",\"path\":\"/spec/versions/0/schema/openAPIV3Schema/"
                           "properties/spec/properties/"
                           "word/maxLength\",\"value\":9}]"),
                     200);
    assert_int_equal(ask(world, "GET", WIDGETS "/w", NULL), 200);
    assert_int_equal(make_widget(world, "v", "\"word\":\"abcdefgh\""), 201);
}

static void more_than_one_served_version_is_not_modelled(void **state)
{
    (void)state;
    WORLD world = world_make();
    assert_int_equal(ask(world, "POST", DEFINITIONS,
                         "{\"apiVersion\":\"apiextensions.k8s.io/"
                         "v1\",\"kind\":\"CustomResourceDefinition\",\"metadata\":{\"name\":"
                         "\"things.ex.io\"},\"spec\":{\"group\":\"ex.io\",\"scope\":\"Cluster\",\"names\":{"
                         "\"kind\":\"Thing\",\"plural\":"
                         "\"things\"},\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,"
                         "\"schema\":{\"openAPIV3Schema\":"
                         "{\"type\":\"object\"}}},{\"name\":\"v2\",\"served\":true,\"storage\":false,"
                         "\"schema\":{\"openAPIV3Schema\":"
                         "{\"type\":\"object\"}}}]}}"),
                     501);
}

/* --- neoset's own definition
 * --------------------------------------------------------------------------------------- */

static cJSON *read_yaml(const char *path)
{
    size_t length = 0;
    CLEANUP_FREE char *text = whole_file(path, &length);
    cJSON *tree = NULL;
    assert_int_equal(yaml_parse_one(text, length, path, &tree, NULL), 0);
    return tree;
}

#define GADGETS "/apis/ex.io/v1/namespaces/default/gadgets"

/* A definition may bound metadata.name, and fill in a list without items. */
static void a_name_is_bounded_and_an_empty_list_is_a_default(void **state)
{
    (void)state;
    WORLD world = world_make();
    assert_int_equal(
        ask(world, "POST", DEFINITIONS,
            "{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","
            "\"metadata\":{\"name\":\"gadgets.ex.io\"},\"spec\":{\"group\":\"ex.io\",\"scope\":"
            "\"Namespaced\",\"names\":{\"kind\":\"Gadget\",\"plural\":\"gadgets\"},\"versions\":[{"
            "\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":"
            "\"object\",\"properties\":{\"metadata\":{\"type\":\"object\",\"properties\":{\"name\":{"
            "\"type\":\"string\",\"maxLength\":5,\"pattern\":\"^[a-z]+$\"}}},\"spec\":{\"type\":"
            "\"object\",\"default\":{},\"properties\":{\"list\":{\"type\":\"array\",\"default\":[],"
            "\"items\":{\"type\":\"string\"}}}}}}}}]}}"),
        201);
    static const char *const names[] = {"sixsix", "a.b", "five"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        CLEANUP_FREE char *body = xasprintf(
            "{\"apiVersion\":\"ex.io/v1\",\"kind\":\"Gadget\",\"metadata\":{\"name\":\"%s\"}}", names[i]);
        assert_int_equal(ask(world, "POST", GADGETS, body), i < 2 ? 422 : 201);
        if (i < 2)
            assert_true(str_ends_with(causes(world), "@metadata.name"));
    }
    assert_true(cJSON_IsArray(json_path(world->body, "spec", "list", NULL)));
}

static void post_yaml(struct world *world, const char *url, const char *file)
{
    CLEANUP_JSON cJSON *tree = read_yaml(file);
    CLEANUP_FREE char *body = json_print(tree);
    if (ask(world, "POST", url, body) != 201)
        fail_msg("%s: %d %s", file, world->response.status, message(world));
}

#define NEOSETS "/apis/apps.neo.io/v1alpha1/namespaces/default/neosets"

static void the_definition_of_neosets_and_its_example_are_taken(void **state)
{
    (void)state;
    WORLD world = world_make();
    post_yaml(world, DEFINITIONS "?fieldValidation=Strict", "deploy/crd.yaml");
    static const char example[] =
        "{\"apiVersion\":\"apps.neo.io/"
        "v1alpha1\",\"kind\":\"NeoSet\",\"metadata\":{\"name\":\"mysql\"},\"spec\":{\"replicas\":5,"
        "\"serviceName\":\"mysql-headless\",\"selector\":{\"matchLabels\":{\"app\":\"mysql\"}},\"template\":{"
        "\"metadata\":{\"labels\":"
        "{\"app\":\"mysql\"}},\"spec\":{\"containers\":[{\"name\":\"mysql\",\"image\":\"mysql:8.1\","
        "\"ports\":[{\"containerPort\":3306}],"
        "\"readinessProbe\":{\"tcpSocket\":{\"port\":3306},\"initialDelaySeconds\":10,\"periodSeconds\":5}}]}"
        "},"
        "\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"data\"},\"spec\":{\"accessModes\":["
        "\"ReadWriteOnce\"],\"resources\":"
        "{\"requests\":{\"storage\":\"50Gi\"}}}}],\"updateStrategy\":{\"type\":\"InPlace\",\"partition\":4,"
        "\"maxUnavailable\":1,"
        "\"inPlaceUpdateStrategy\":{\"readiness\":\"Probe\",\"readinessTimeoutSeconds\":300},\"pause\":false}"
        ","
        "\"revisionHistoryLimit\":10}}";
    assert_int_equal(ask(world, "POST", NEOSETS "?fieldValidation=Strict", example), 201);
    static const struct {
        const char *body;
        int status;
    } changes[] = {
        {"{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"mysql\",\"image\":\"mysql:8.2\"}]}}}"
         "}",
         200},
        {"{\"spec\":{\"replicas\":-1}}", 422},
        {"{\"spec\":{\"serviceName\":\"other\"}}", 422},
        {"{\"spec\":{\"selector\":{\"matchLabels\":{\"app\":\"x\"}}}}", 422},
        {"{\"spec\":{\"updateStrategy\":{\"maxUnavailable\":\"101%\"}}}", 422},
        {"{\"spec\":{\"updateStrategy\":{\"maxUnavailable\":\"30%\"}}}", 200},
        {"{\"spec\":{\"template\":{\"spec\":{\"restartPolicy\":\"Never\"}}}}", 422},
    };
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
        if (patch(world, NEOSETS "/mysql", MERGE, changes[i].body) != changes[i].status)
            fail_msg("%s: %d %s", changes[i].body, world->response.status, message(world));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_checked_by_the_schema),
        cmocka_unit_test(defaults_are_filled_in_and_unknown_fields_dropped),
        cmocka_unit_test(a_transition_rule_sees_the_old_value),
        cmocka_unit_test(status_and_spec_are_written_apart),
        cmocka_unit_test(scale_reads_and_writes_its_paths),
        cmocka_unit_test(the_server_prints_the_columns),
        cmocka_unit_test(a_definition_that_cannot_be_evaluated_is_refused),
        cmocka_unit_test(of_metadata_a_definition_may_bound_the_name),
        cmocka_unit_test(a_definition_is_served_at_once_and_gone_at_once),
        cmocka_unit_test(a_changed_definition_keeps_the_objects),
        cmocka_unit_test(more_than_one_served_version_is_not_modelled),
        cmocka_unit_test(a_name_is_bounded_and_an_empty_list_is_a_default),
        cmocka_unit_test(the_definition_of_neosets_and_its_example_are_taken),
    };
    return cmocka_run_group_tests_name("kubesim custom resources", tests, NULL, NULL);
}
