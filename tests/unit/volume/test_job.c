/* SPDX-License-Identifier: Apache-2.0
 *
 * The Job that runs the resize script, and its identity: tests/golden/volume/job.yaml, with the script and
 * the hash left out. */
#include "base/yaml.h"
#include "cmd/neosetctl/yaml.h"
#include "env/file.h"
#include "kube/object.h"
#include "volume/declared.h"
#include "volume/job.h"
#include "volume/script.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { TEXT_MAX = 1 << 20 };

#define SETS                                                                                                 \
    "- {kind: StatefulSet, metadata: {name: db}, spec: {replicas: 3, serviceName: db, selector: "            \
    "{matchLabels: {app: "                                                                                   \
    "db}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], "            \
    "storageClassName: std, resources: {requests: {storage: 2Gi}}}}]}}\n"                                    \
    "- {kind: StatefulSet, metadata: {name: queue}, spec: {volumeClaimTemplates: [{metadata: {name: log}, "  \
    "spec: "                                                                                                 \
    "{accessModes: [ReadWriteOnce], resources: {requests: {storage: 10G}}}}]}}\n"

struct setting {
    struct volume_job job;
    cJSON *declared;
    cJSON *labels;
    cJSON *secrets;
};

static cJSON *from_yaml(const char *text)
{
    cJSON *tree = NULL;
    assert_int_equal(yaml_parse_one(text, strlen(text), "test", &tree, NULL), 0);
    return tree;
}

static int make(void **state)
{
    struct setting *setting = xcalloc(1, sizeof *setting);
    CLEANUP_JSON cJSON *sets = from_yaml(SETS);
    const cJSON *set = NULL;
    setting->declared = json_new_array();
    cJSON_ArrayForEach (set, sets)
        assert_int_equal(volume_declared_add(setting->declared, set, NULL), 0);
    setting->labels = from_yaml("{team: data, example.com/env: prod}");
    setting->secrets = from_yaml("[registry, other.registry]");
    setting->job = (struct volume_job){.namespace = "prod",
                                       .unit = "eu",
                                       .declared = setting->declared,
                                       .labels = setting->labels,
                                       .secrets = setting->secrets};
    *state = setting;
    return 0;
}

static int unmake(void **state)
{
    struct setting *setting = *state;
    json_delete(setting->declared);
    json_delete(setting->labels);
    json_delete(setting->secrets);
    free(setting);
    return 0;
}

static cJSON *build(const struct setting *setting)
{
    cJSON *objects = NULL;
    assert_int_equal(volume_job_build(&setting->job, &objects, NULL), 0);
    return objects;
}

static cJSON *job_of(const cJSON *objects)
{
    return cJSON_GetArrayItem(objects, cJSON_GetArraySize(objects) - 1);
}

static cJSON *container_of(const cJSON *objects)
{
    return json_path(job_of(objects), "spec", "template", "spec", "containers", NULL)->child;
}

static void they_are_as_the_golden_file(void **state)
{
    CLEANUP_JSON cJSON *objects = build(*state);
    CLEANUP_BUF struct buf wanted = BUF_INIT(TEXT_MAX);
    CLEANUP_BUF struct buf text = BUF_INIT(TEXT_MAX);
    cJSON *command = json_get(container_of(objects), "command");
    assert_string_equal(cJSON_GetArrayItem(command, 2)->valuestring, volume_script_text());
    cJSON_ReplaceItemInArray(command, 2, json_new_str("THE SCRIPT"));
    const char *name = kube_object_name(job_of(objects));
    assert_true(str_starts_with(name, "sts-volume-resize-eu-"));
    assert_int_equal(strspn(name + strlen("sts-volume-resize-eu-"), "0123456789abcdef"), 10);
    assert_int_equal(strlen(name), strlen("sts-volume-resize-eu-") + 10);
    json_set_str(json_get(job_of(objects), "metadata"), "name", "sts-volume-resize-eu-HASH");
    const cJSON *object = NULL;
    cJSON_ArrayForEach (object, objects) {
        buf_add_text(&text, "---\n");
        ctl_yaml_print(&text, object);
    }
    assert_int_equal(real_read_file(NULL, "tests/golden/volume/job.yaml", &wanted, NULL), 0);
    assert_string_equal(buf_text(&text), buf_text(&wanted));
}

static char *text_of(const struct setting *setting)
{
    CLEANUP_JSON cJSON *objects = build(setting);
    return json_print(objects);
}

static char *name_of(const struct setting *setting)
{
    CLEANUP_JSON cJSON *objects = build(setting);
    return xstrdup(kube_object_name(job_of(objects)));
}

static void the_same_input_gives_the_same_bytes(void **state)
{
    CLEANUP_FREE char *one = text_of(*state);
    CLEANUP_FREE char *other = text_of(*state);
    assert_string_equal(one, other);
}

/* A Job's spec cannot be changed: what changes it makes another Job, and nothing else does. */
static void its_name_follows_its_pod_spec(void **state)
{
    struct setting *setting = *state;
    CLEANUP_FREE char *before = name_of(setting);
    json_set_str(setting->labels, "team", "other");
    json_append_str(setting->secrets, "third");
    CLEANUP_FREE char *relabelled = name_of(setting);
    assert_string_equal(before, relabelled);
    setting->job.image = "mirror/k8s:1";
    CLEANUP_FREE char *mirrored = name_of(setting);
    assert_string_not_equal(before, mirrored);
    setting->job.image = NULL;
    json_set_str(json_path(setting->declared->child, "volumeClaimTemplates", NULL)->child, "grown", "yes");
    CLEANUP_FREE char *grown = name_of(setting);
    assert_string_not_equal(before, grown);
}

static void the_default_unit_has_no_part_in_names(void **state)
{
    struct setting *setting = *state;
    static const char *const units[] = {NULL, "", "base"};
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        setting->job.unit = units[i];
        CLEANUP_JSON cJSON *objects = build(setting);
        assert_string_equal(kube_object_name(objects->child), VOLUME_JOB_NAME);
    }
}

static void without_labels_and_secrets_there_are_none(void **state)
{
    struct setting *setting = *state;
    setting->job.labels = NULL;
    setting->job.secrets = NULL;
    CLEANUP_JSON cJSON *objects = build(setting);
    assert_null(json_path(objects->child, "metadata", "labels", NULL));
    assert_null(json_get(objects->child, "imagePullSecrets"));
    assert_string_equal(kube_object_label(job_of(objects), VOLUME_JOB_LABEL), "sts-volume-resize-eu");
}

/* What an option says is wrong usage. */
static void expect_refusal(const struct setting *setting, enum error_code code, const char *says)
{
    cJSON *objects = NULL;
    CLEANUP_ERROR struct error *err = NULL;
    assert_int_equal(volume_job_build(&setting->job, &objects, &err), -(int)code);
    assert_null(objects);
    if (!strstr(error_text(err), says))
        fail_msg("says \"%s\", not \"%s\"", error_text(err), says);
}

static void what_cannot_be_a_name_is_refused(void **state)
{
    struct setting *setting = *state;
    static const char *const namespaces[] = {"", "Prod", "a/b", "-a", "a-", "a.b"};
    for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++) {
        setting->job.namespace = namespaces[i];
        expect_refusal(setting, ERROR_INVALID, "cannot be a namespace's name");
    }
    setting->job.namespace = "prod";
    static const char *const units[] = {"Eu", "e_u", "e.u", "eu-", "a-unit-of-thirty-five-letters-x-yz"};
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        setting->job.unit = units[i];
        if (strlen(units[i]) == 34)
            json_delete(build(setting)); /* the longest that fits */
        else
            expect_refusal(setting, ERROR_USAGE, "--unit");
    }
    setting->job.unit = "a-unit-of-thirty-five-letters-x-yzz";
    expect_refusal(setting, ERROR_USAGE, "at most 34");
    setting->job.unit = NULL;
    setting->job.image = "two words";
    expect_refusal(setting, ERROR_USAGE, "--image");
    setting->job.image = NULL;
    json_append_str(setting->secrets, "Not A Name");
    expect_refusal(setting, ERROR_USAGE, "--pull-secret Not A Name");
}

static void what_cannot_be_a_label_is_refused(void **state)
{
    struct setting *setting = *state;
    static const char *const labels[] = {"{\"\": a}",           "{a/b/c: d}",  "{-a: b}",
                                         "{a: \"b c\"}",        "{a: \"-b\"}", "{/a: b}",
                                         "{Example_.com/a: b}", "{a/: b}",     "{forge.dev/job-name: x}"};
    for (size_t i = 0; i < ARRAY_SIZE(labels); i++) {
        CLEANUP_JSON cJSON *own = from_yaml(labels[i]);
        setting->job.labels = own;
        expect_refusal(setting, ERROR_USAGE, "--label");
    }
    CLEANUP_JSON cJSON *good = from_yaml("{a: \"\", example.com/a_B.c: D-e}");
    setting->job.labels = good;
    json_delete(build(setting));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(they_are_as_the_golden_file, make, unmake),
        cmocka_unit_test_setup_teardown(the_same_input_gives_the_same_bytes, make, unmake),
        cmocka_unit_test_setup_teardown(its_name_follows_its_pod_spec, make, unmake),
        cmocka_unit_test_setup_teardown(the_default_unit_has_no_part_in_names, make, unmake),
        cmocka_unit_test_setup_teardown(without_labels_and_secrets_there_are_none, make, unmake),
        cmocka_unit_test_setup_teardown(what_cannot_be_a_name_is_refused, make, unmake),
        cmocka_unit_test_setup_teardown(what_cannot_be_a_label_is_refused, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
