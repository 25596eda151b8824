/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

struct refused_create {
    const char *what;
    const char *path;
    const char *body;
    int status;
    const char *reason;
    const char *causes;
};

#define CONTAINERS "\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"i\"}]}"
#define POD_HEAD "\"apiVersion\":\"v1\",\"kind\":\"Pod\""

static const struct refused_create refused[] = {
    {"no name", PODS, "{" POD_HEAD ",\"metadata\":{}," CONTAINERS "}", 422, "Invalid",
     "FieldValueRequired@metadata.name"},
    {"a bad name", PODS, "{" POD_HEAD ",\"metadata\":{\"name\":\"A_b\"}," CONTAINERS "}", 422, "Invalid",
     "FieldValueInvalid@metadata.name"},
    {"another namespace in the body", PODS,
     "{" POD_HEAD ",\"metadata\":{\"name\":\"p\",\"namespace\":\"x\"}," CONTAINERS "}", 400, "BadRequest",
     ""},
    {"a namespace that is not there", "/api/v1/namespaces/none/pods",
     "{" POD_HEAD ",\"metadata\":{\"name\":\"p\"}," CONTAINERS "}", 404, "NotFound", ""},
    {"a resourceVersion", PODS,
     "{" POD_HEAD ",\"metadata\":{\"name\":\"p\",\"resourceVersion\":\"5\"}," CONTAINERS "}", 500, "", ""},
    {"another kind", PODS, "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"p\"}}", 400,
     "BadRequest", ""},
    {"junk", PODS, "{\"a", 400, "BadRequest", ""},
    {"no object", PODS, "[]", 400, "BadRequest", ""},
    {"a wrong type", PODS, "{" POD_HEAD ",\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":\"x\"}}",
     400, "BadRequest", ""},
    {"a bad quantity", PODS,
     "{" POD_HEAD
     ",\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"i\",\"resources\":"
     "{\"requests\":{\"cpu\":\"x\"}}}]}}",
     400, "BadRequest", ""},
    {"an unknown field, strict", PODS "?fieldValidation=Strict",
     "{" POD_HEAD ",\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"i\","
     "\"imagee\":\"x\"}]}}",
     400, "BadRequest", ""},
    {"no containers", PODS, "{" POD_HEAD ",\"metadata\":{\"name\":\"p\"},\"spec\":{}}", 422, "Invalid",
     "FieldValueRequired@spec.containers"},
    {"no image", PODS,
     "{" POD_HEAD ",\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"a\"}]}}", 422,
     "Invalid", "FieldValueRequired@spec.containers[0].image"},
    {"two containers of one name", PODS,
     "{" POD_HEAD ",\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"i\"},"
     "{\"name\":\"a\",\"image\":"
     "\"i\"}]}}",
     422, "Invalid", "FieldValueDuplicate@spec.containers[1].name"},
    {"an unknown restart policy", PODS,
     "{" POD_HEAD ",\"metadata\":{\"name\":\"p\"},\"spec\":{\"restartPolicy\":\"X\",\"containers\":[{"
     "\"name\":\"a\",\"image\":\"i\"}]}}",
     422, "Invalid", "FieldValueNotSupported@spec.restartPolicy"},
    {"a bad label", PODS,
     "{" POD_HEAD ",\"metadata\":{\"name\":\"p\",\"labels\":{\"a\":\"b c\"}}," CONTAINERS "}", 422, "Invalid",
     "FieldValueInvalid@metadata.labels"},
    {"a label that is no string", PODS,
     "{" POD_HEAD ",\"metadata\":{\"name\":\"p\",\"labels\":{\"a\":5}}," CONTAINERS "}", 400, "BadRequest",
     ""},
    {"an owner without uid", PODS,
     "{" POD_HEAD ",\"metadata\":{\"name\":\"p\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"X\","
     "\"name\":\"x\",\"uid\":"
     "\"\"}]}," CONTAINERS "}",
     422, "Invalid", "FieldValueInvalid@metadata.ownerReferences[0].uid"},
    {"a dryRun that is none", PODS "?dryRun=yes",
     "{" POD_HEAD ",\"metadata\":{\"name\":\"p\"}," CONTAINERS "}", 422, "Invalid",
     "FieldValueNotSupported@dryRun"},
    {"a POST without its namespace", "/api/v1/pods",
     "{" POD_HEAD ",\"metadata\":{\"name\":\"p\"}," CONTAINERS "}", 405, "MethodNotAllowed", ""},
};

static void a_create_is_refused_as_by_the_real_server(void **state)
{
    (void)state;
    WORLD world = world_make();
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        const struct refused_create *row = &refused[i];
        int status = ask(world, "POST", row->path, row->body);
        if (status != row->status || strcmp(reason(world), row->reason) != 0 ||
            strcmp(causes(world), row->causes) != 0)
            fail_msg("%s: %d '%s' '%s': %s", row->what, status, reason(world), causes(world), message(world));
        assert_int_equal(ask(world, "GET", PODS "/p", NULL), 404);
    }
}

static void a_new_pod_is_completed(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_pod(world, "p", NULL);
    const cJSON *pod = world->body;
    assert_string_equal(json_path_str(pod, "status", "phase", NULL), "Pending");
    assert_string_equal(json_path_str(pod, "status", "qosClass", NULL), "BestEffort");
    assert_int_equal(json_int64_or(json_get(pod, "metadata"), "generation", 0), 1);
    assert_int_equal(json_int64_or(json_get(pod, "spec"), "terminationGracePeriodSeconds", 0), 30);
    assert_string_equal(json_path_str(pod, "spec", "restartPolicy", NULL), "Always");
    const cJSON *container = json_path(pod, "spec", "containers", NULL)->child;
    assert_string_equal(json_str(container, "imagePullPolicy"), "IfNotPresent");
    assert_string_equal(json_str(container, "terminationMessagePath"), "/dev/termination-log");
    assert_string_equal(meta(world, "creationTimestamp"), "2027-01-15T08:00:00Z");
}

static void the_generation_rises_with_the_spec_only(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_pod(world, "p", "n1");
    patch(world, PODS "/p", MERGE, "{\"metadata\":{\"labels\":{\"x\":\"y\"}}}");
    assert_int_equal(json_int64_or(json_get(world->body, "metadata"), "generation", 0), 1);
    patch(world, PODS "/p/status", STRATEGIC,
          "{\"status\":{\"phase\":\"Running\",\"observedGeneration\":1}}");
    assert_int_equal(json_int64_or(json_get(world->body, "metadata"), "generation", 0), 1);
    patch(world, PODS "/p", STRATEGIC, "{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"i:2\"}]}}");
    assert_int_equal(json_int64_or(json_get(world->body, "metadata"), "generation", 0), 2);
    assert_int_equal(json_int64_or(json_get(world->body, "status"), "observedGeneration", 0), 1);
}

static void only_images_of_a_pod_can_be_changed(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        int status;
        const char *causes;
    } rows[] = {
        {"{\"spec\":{\"containers\":[{\"name\":\"b\",\"image\":\"j:2\"}]}}", 200, ""},
        {"{\"spec\":{\"tolerations\":[{\"key\":\"k\",\"operator\":\"Exists\"}]}}", 200, ""},
        {"{\"spec\":{\"activeDeadlineSeconds\":60}}", 200, ""},
        {"{\"spec\":{\"activeDeadlineSeconds\":90}}", 422, "FieldValueForbidden@spec"},
        {"{\"spec\":{\"restartPolicy\":\"Never\"}}", 422, "FieldValueForbidden@spec"},
        {"{\"spec\":{\"containers\":[{\"name\":\"a\",\"env\":[{\"name\":\"x\",\"value\":\"y\"}]}]}}", 422,
         "FieldValueForbidden@spec"},
        {"{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"y\"}]}}", 422,
         "FieldValueForbidden@spec.containers"},
        {"{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"\"}]}}", 422,
         "FieldValueRequired@spec.containers[0].image"},
    };
    WORLD world = world_make();
    make_pod(world, "p", "n1");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int status = patch(world, PODS "/p", STRATEGIC, rows[i].body);
        if (status != rows[i].status || strcmp(causes(world), rows[i].causes) != 0)
            fail_msg("%s: %d '%s': %s", rows[i].body, status, causes(world), message(world));
    }
}

static void pod_status_keeps_the_spec_and_takes_metadata(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_pod(world, "p", "n1");
    patch(world, PODS "/p/status", STRATEGIC,
          "{\"metadata\":{\"labels\":{\"x\":\"y\"}},\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":"
          "\"zzz\"}]},"
          "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}");
    assert_string_equal(json_str(json_path(world->body, "spec", "containers", NULL)->child, "image"), "i:1");
    assert_string_equal(json_path_str(world->body, "metadata", "labels", "x", NULL), "y");
    patch(world, PODS "/p/status", STRATEGIC,
          "{\"status\":{\"conditions\":[{\"type\":\"Gate\",\"status\":\"False\"}]}}");
    assert_int_equal(cJSON_GetArraySize(json_path(world->body, "status", "conditions", NULL)), 2);
    patch(world, PODS "/p", MERGE, "{\"status\":{\"phase\":\"Failed\"}}");
    assert_string_equal(json_path_str(world->body, "status", "phase", NULL), "Pending");
}

static void a_dry_run_stores_nothing(void **state)
{
    (void)state;
    WORLD world = world_make();
    uint64_t before = kubesim_count(world->sim).resource_version;
    assert_int_equal(ask(world, "POST", CONFIGMAPS "?dryRun=All",
                         "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"}}"),
                     201);
    assert_non_null(meta(world, "uid"));
    assert_null(meta(world, "resourceVersion"));
    make_config(world, "d", "");
    assert_int_equal(patch(world, CONFIGMAPS "/d?dryRun=All", MERGE, "{\"data\":{\"a\":\"b\"}}"), 200);
    assert_string_equal(json_path_str(world->body, "data", "a", NULL), "b");
    assert_int_equal(ask(world, "DELETE", CONFIGMAPS "/d?dryRun=All", NULL), 200);
    assert_int_equal(ask(world, "GET", CONFIGMAPS "/d", NULL), 200);
    assert_null(json_get(world->body, "data"));
    assert_int_equal(kubesim_count(world->sim).resource_version, before + 1);
}

/* The real server lies once: its dry run never reaches the place that refuses a version on create. */
static void a_dry_run_create_overlooks_a_version(void **state)
{
    (void)state;
    WORLD world = world_make();
    static const char body[] = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\","
                               "\"resourceVersion\":\"5\"}}";
    assert_int_equal(ask(world, "POST", CONFIGMAPS "?dryRun=All", body), 201);
    assert_int_equal(ask(world, "POST", CONFIGMAPS, body), 500);
    assert_string_equal(reason(world), "");
    assert_string_equal(message(world), "resourceVersion should not be set on objects to be created");
}

static void unknown_fields_are_dropped_with_a_warning(void **state)
{
    (void)state;
    WORLD world = world_make();
    assert_int_equal(
        ask(world, "POST", CONFIGMAPS,
            "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"},\"foo\":1}"),
        201);
    assert_null(json_get(world->body, "foo"));
    assert_string_equal(world->response.warning, "unknown field \"foo\"");
}

static void a_generated_name_is_new_each_time(void **state)
{
    (void)state;
    WORLD world = world_make();
    static const char body[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"generateName\":\"c-\"}}";
    assert_int_equal(ask(world, "POST", CONFIGMAPS, body), 201);
    CLEANUP_FREE char *first = xstrdup(meta(world, "name"));
    assert_int_equal(strlen(first), 7);
    assert_int_equal(ask(world, "POST", CONFIGMAPS, body), 201);
    assert_string_not_equal(first, meta(world, "name"));
}

static void an_exists_conflict_names_the_object(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_config(world, "c", "");
    assert_int_equal(ask(world, "POST", CONFIGMAPS,
                         "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"}}"),
                     409);
    assert_string_equal(reason(world), "AlreadyExists");
    assert_string_equal(message(world), "configmaps \"c\" already exists");
}

static void what_is_not_modelled_is_said_so(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "/apis/apps/v1/namespaces/default/deployments",
        "/apis/batch/v1/jobs",
        "/api/v1/namespaces/default/endpoints",
        "/apis/networking.k8s.io/v1/networkpolicies",
        PODS "/p/log",
        PODS "/p/exec",
        "/openapi/v2",
        "/api/v1/watch/pods",
    };
    WORLD world = world_make();
    make_pod(world, "p", NULL);
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        if (ask(world, "GET", paths[i], NULL) != 501)
            fail_msg("%s: %d", paths[i], world->response.status);
        assert_string_equal(reason(world), "NotImplemented");
        assert_true(str_starts_with(message(world), "kubesim does not model this: "));
    }
}

static void what_nobody_serves_is_404(void **state)
{
    (void)state;
    WORLD world = world_make();
    assert_int_equal(ask(world, "GET", "/apis/foo.io/v1/bars", NULL), 404);
    assert_string_equal(world->response.body, "404 page not found\n");
    assert_int_equal(ask(world, "GET", "/api/v1/namespaces/default/foos", NULL), 404);
    assert_string_equal(message(world), "the server could not find the requested resource");
    assert_int_equal(ask(world, "GET", "/apis/apps/v2/statefulsets", NULL), 404);
    assert_int_equal(ask(world, "PUT", PODS, "{}"), 405);
    assert_int_equal(ask(world, "BREW", PODS, NULL), 405);
}

static void protobuf_and_huge_bodies_are_turned_away(void **state)
{
    (void)state;
    WORLD world = world_make();
    assert_int_equal(ask_as(world, "POST", PODS, "application/vnd.kubernetes.protobuf", "k8s"), 415);
    size_t length = 9 * 1024 * 1024;
    char *body = xmalloc(length + 1);
    memset(body, ' ', length);
    body[length] = '\0';
    assert_int_equal(ask(world, "POST", PODS, body), 413);
    free(body);
    assert_int_equal(ask_as(world, "PATCH", PODS "/p", "application/json", "{}"), 415);
    const struct kubesim_request request = {.method = "GET", .path = PODS, .accept = "text/html"};
    assert_int_equal(ask_raw(world, &request), 406);
}

static void bad_paths_are_answered(void **state)
{
    (void)state;
    WORLD world = world_make();
    assert_int_equal(ask(world, "GET", "api", NULL), 400);
    assert_int_equal(ask(world, "GET", "/api/v1/pods?x=%zz", NULL), 400);
    assert_int_equal(ask(world, "GET", "/api/v1/pods?x=%00", NULL), 400);
    assert_int_equal(ask(world, "GET", "/a/b/c/d/e/f/g/h/i/j/k/l/m/n", NULL), 400);
    assert_int_equal(ask(world, "GET", "//api//v1//pods/?limit=1", NULL), 200);
}

static void a_namespace_that_goes_takes_its_objects_along(void **state)
{
    (void)state;
    WORLD world = world_make();
    ask(world, "POST", "/api/v1/namespaces",
        "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"n\"}}");
    assert_string_equal(json_path_str(world->body, "metadata", "labels", "kubernetes.io/metadata.name", NULL),
                        "n");
    static const char body[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\",\"finalizers\":"
        "[\"example.com/hold\"]}}";
    assert_int_equal(ask(world, "POST", "/api/v1/namespaces/n/configmaps", body), 201);
    assert_int_equal(ask(world, "DELETE", "/api/v1/namespaces/n", NULL), 200);
    assert_string_equal(json_path_str(world->body, "status", "phase", NULL), "Terminating");
    pass(world, 1);
    assert_int_equal(ask(world, "POST", "/api/v1/namespaces/n/configmaps",
                         "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"d\"}}"),
                     403);
    assert_string_equal(causes(world), "NamespaceTerminating@metadata.namespace");
    patch(world, "/api/v1/namespaces/n/configmaps/c", MERGE, "{\"metadata\":{\"finalizers\":null}}");
    pass(world, 1);
    assert_int_equal(ask(world, "GET", "/api/v1/namespaces/n", NULL), 404);
}

static void a_pod_is_bound_once(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_pod(world, "p", NULL);
    static const char body[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"p\"},\"target\":{\"kind\":"
        "\"Node\",\"name\":\"n1\"}}";
    assert_int_equal(ask(world, "POST", PODS "/p/binding", body), 201);
    assert_int_equal(ask(world, "POST", PODS "/p/binding", body), 409);
    assert_int_equal(ask(world, "GET", PODS "/p", NULL), 200);
    assert_string_equal(json_path_str(world->body, "spec", "nodeName", NULL), "n1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_create_is_refused_as_by_the_real_server),
        cmocka_unit_test(a_new_pod_is_completed),
        cmocka_unit_test(the_generation_rises_with_the_spec_only),
        cmocka_unit_test(only_images_of_a_pod_can_be_changed),
        cmocka_unit_test(pod_status_keeps_the_spec_and_takes_metadata),
        cmocka_unit_test(a_dry_run_stores_nothing),
        cmocka_unit_test(a_dry_run_create_overlooks_a_version),
        cmocka_unit_test(unknown_fields_are_dropped_with_a_warning),
        cmocka_unit_test(a_generated_name_is_new_each_time),
        cmocka_unit_test(an_exists_conflict_names_the_object),
        cmocka_unit_test(what_is_not_modelled_is_said_so),
        cmocka_unit_test(what_nobody_serves_is_404),
        cmocka_unit_test(protobuf_and_huge_bodies_are_turned_away),
        cmocka_unit_test(bad_paths_are_answered),
        cmocka_unit_test(a_namespace_that_goes_takes_its_objects_along),
        cmocka_unit_test(a_pod_is_bound_once),
    };
    return cmocka_run_group_tests_name("kubesim writes", tests, NULL, NULL);
}
