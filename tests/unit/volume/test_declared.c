/* SPDX-License-Identifier: Apache-2.0
 *
 * What the resize script is told of a StatefulSet. */
#include "base/yaml.h"
#include "volume/declared.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SET_HEAD "kind: StatefulSet\napiVersion: apps/v1\nmetadata: {name: db, namespace: n}\nspec:\n"
#define POD_TEMPLATE "  template: {spec: {containers: [{name: db, image: x}]}}\n"

static int declare(const char *yaml, char **ret, struct error **err)
{
    CLEANUP_JSON cJSON *set = NULL;
    CLEANUP_JSON cJSON *array = json_new_array();
    assert_int_equal(yaml_parse_one(yaml, strlen(yaml), "test", &set, NULL), 0);
    int r = volume_declared_add(array, set, err);
    if (r == 0)
        *ret = volume_declared_text(array);
    return r;
}

static void it_says_what_is_judged_and_nothing_else(void **state)
{
    (void)state;
    CLEANUP_FREE char *text = NULL;
    assert_int_equal(
        declare(SET_HEAD
                "  serviceName: db\n  replicas: 0\n  podManagementPolicy: Parallel\n  minReadySeconds: 3\n"
                "  selector: {matchLabels: {app: db}}\n" POD_TEMPLATE "  volumeClaimTemplates:\n"
                "  - metadata: {name: data, labels: {a: b}, creationTimestamp: null}\n"
                "    spec: {accessModes: [ReadWriteOnce], storageClassName: \"\", volumeName: null, "
                "resources: {requests: {storage: 1.5Gi}}}\n"
                "    status: {phase: Pending}\n",
                &text, NULL),
        0);
    assert_string_equal(
        text,
        "[{\"name\":\"db\",\"podManagementPolicy\":\"Parallel\",\"replicas\":0,\"selector\":"
        "{\"matchLabels\":{\"app\":\"db\"}},\"serviceName\":\"db\",\"volumeClaimTemplates\":[{\"metadata\":"
        "{\"labels\":{\"a\":\"b\"},\"name\":\"data\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],"
        "\"resources\":{\"requests\":{\"storage\":\"1.5Gi\"}},\"storageClassName\":\"\"}}]}]");
}

static void what_means_the_same_is_the_same_bytes(void **state)
{
    (void)state;
    CLEANUP_FREE char *one = NULL;
    CLEANUP_FREE char *other = NULL;
    assert_int_equal(declare(SET_HEAD POD_TEMPLATE
                             "  serviceName: db\n  volumeClaimTemplates: [{metadata: {name: a},"
                             " spec: {resources: {requests: {storage: 1Gi}}}}]",
                             &one, NULL),
                     0);
    assert_int_equal(
        declare("spec:\n  volumeClaimTemplates: [{spec: {resources: {requests: {storage: 1Gi}}}, "
                "metadata: {name: a}}]\n  serviceName: db\n  template: {other: 1}\nmetadata: {name: db}",
                &other, NULL),
        0);
    assert_string_equal(one, other);
}

#define WITH_SIZE(size)                                                                                      \
    SET_HEAD                                                                                                 \
    "  volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: {storage: " size "}}}}]"

static void sizes_are_read_as_the_server_reads_them(void **state)
{
    (void)state;
    static const char *const good[] = {"10", "\"10\"", "1e3", "1.5Gi", "12E", "100m"};
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        CLEANUP_FREE char *yaml = xasprintf(WITH_SIZE("%s"), good[i]);
        CLEANUP_FREE char *text = NULL;
        assert_int_equal(declare(yaml, &text, NULL), 0);
    }
    static const char *const bad[] = {"\"\"",  "0",   "-1Gi",
                                      "10GiB", "ten", "[1]",
                                      "true",  "0.0", "9999999999999999999999999999999999999999"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP_FREE char *yaml = xasprintf(WITH_SIZE("%s"), bad[i]);
        CLEANUP_FREE char *text = NULL;
        CLEANUP_ERROR struct error *err = NULL;
        int r = declare(yaml, &text, &err);
        if (r != -ERROR_INVALID || !strstr(error_text(err), "StatefulSet db") ||
            !strstr(error_text(err), "volumeClaimTemplate data"))
            fail_msg("%s: %d \"%s\"", bad[i], r, error_text(err));
    }
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *says;
    } table[] = {
        {"spec: {volumeClaimTemplates: []}", "a StatefulSet has no metadata.name"},
        {SET_HEAD "  replicas: 1", "StatefulSet db has no volumeClaimTemplates"},
        {SET_HEAD "  volumeClaimTemplates: [{spec: {}}]", "volumeClaimTemplate 0 has no metadata.name"},
        {SET_HEAD "  volumeClaimTemplates: [{metadata: {name: data}}]",
         "volumeClaimTemplate data has no spec.resources.requests.storage"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_FREE char *text = NULL;
        CLEANUP_ERROR struct error *err = NULL;
        assert_int_equal(declare(table[i].yaml, &text, &err), -ERROR_INVALID);
        assert_non_null(strstr(error_text(err), table[i].says));
    }
}

/* One field after the other is of another type. */
static void a_field_of_another_type_is_named(void **state)
{
    (void)state;
#define WITH_TEMPLATE(template) SET_HEAD "  volumeClaimTemplates: [" template "]"
    static const struct {
        const char *yaml, *says;
    } table[] = {
        {"kind: StatefulSet\nmetadata: {name: db}\nspec: [1]",
         "StatefulSet db: spec is a list, where a map is expected"},
        {SET_HEAD "  serviceName: 5",
         "StatefulSet db: spec.serviceName is a number, where text is expected: quote it"},
        {SET_HEAD "  serviceName: {a: b}", "spec.serviceName is a map, where text is expected"},
        {SET_HEAD "  podManagementPolicy: true",
         "spec.podManagementPolicy is true or false, where text is expected: quote it"},
        {SET_HEAD "  replicas: three", "spec.replicas is text, where a whole number is expected"},
        {SET_HEAD "  replicas: \"3\"", "spec.replicas is text, where a whole number is expected"},
        {SET_HEAD "  replicas: 1.5", "spec.replicas is a number, where a whole number is expected"},
        {SET_HEAD "  replicas: -1", "spec.replicas is a number, where a whole number is expected"},
        {SET_HEAD "  selector: app=db", "spec.selector is text, where a map is expected"},
        {SET_HEAD "  volumeClaimTemplates: {data: 1Gi}",
         "spec.volumeClaimTemplates is a map, where a list is expected"},
        {SET_HEAD "  volumeClaimTemplates: data",
         "spec.volumeClaimTemplates is text, where a list is expected"},
        {WITH_TEMPLATE("data"), "StatefulSet db: volumeClaimTemplate 0 is text, where a map is expected"},
        {WITH_TEMPLATE("{metadata: {name: 7}}"),
         "volumeClaimTemplate 0: metadata.name is a number, where text is expected: quote it"},
        {WITH_TEMPLATE("{metadata: data}"),
         "volumeClaimTemplate 0: metadata is text, where a map is expected"},
        {WITH_TEMPLATE("{metadata: {name: data, labels: {tier: 1}}}"),
         "StatefulSet db: volumeClaimTemplate data: metadata.labels.tier is a number, where text is "
         "expected: quote it"},
        {WITH_TEMPLATE("{metadata: {name: data, annotations: [a]}}"),
         "metadata.annotations is a list, where a map is expected"},
        {WITH_TEMPLATE("{metadata: {name: data}, spec: 1Gi}"),
         "volumeClaimTemplate data: spec is text, where a map is expected"},
        {WITH_TEMPLATE("{metadata: {name: data}, spec: {storageClassName: [std]}}"),
         "spec.storageClassName is a list, where text is expected"},
        {WITH_TEMPLATE("{metadata: {name: data}, spec: {accessModes: ReadWriteOnce}}"),
         "spec.accessModes is text, where a list is expected"},
        {WITH_TEMPLATE("{metadata: {name: data}, spec: {accessModes: [a, 1]}}"),
         "spec.accessModes[1] is a number, where text is expected: quote it"},
        {WITH_TEMPLATE("{metadata: {name: data}, spec: {resources: 1Gi}}"),
         "spec.resources is text, where a map is expected"},
        {WITH_TEMPLATE("{metadata: {name: data}, spec: {resources: {requests: 1Gi}}}"),
         "spec.resources.requests is text, where a map is expected"},
        {WITH_TEMPLATE("{metadata: {name: data}, spec: {resources: {requests: {storage: [1Gi]}}}}"),
         "volumeClaimTemplate data"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_FREE char *text = NULL;
        CLEANUP_ERROR struct error *err = NULL;
        assert_int_equal(declare(table[i].yaml, &text, &err), -ERROR_INVALID);
        if (!strstr(error_text(err), table[i].says))
            fail_msg("\"%s\", not \"%s\"", error_text(err), table[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_says_what_is_judged_and_nothing_else),
        cmocka_unit_test(what_means_the_same_is_the_same_bytes),
        cmocka_unit_test(sizes_are_read_as_the_server_reads_them),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(a_field_of_another_type_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
