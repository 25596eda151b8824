/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects that nobody should write: fields of a set at and beyond their bounds where the schema did not look,
 * objects of half a megabyte, a thousand conditions, names at their limit, a selector that matches the world,
 * a template that the server refuses. A condition names what is wrong; nothing crashes, nothing loops,
 * nothing else is touched. */
#include "controller_scene.h"

#include "kubesim/patch.h"

#define DEFINITION_PATH "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/neosets.apps.neo.io"

static long entries(struct scene *scene)
{
    return atol(sql(scene, "SELECT count(*) FROM entry"));
}

/* The definition takes everything. */
static void forget_the_schema(struct scene *scene)
{
    assert_int_equal(
        sim_server_ask(scene->server, "PATCH", DEFINITION_PATH, "application/json-patch+json",
                       "[{\"op\":\"replace\",\"path\":\"/spec/versions/0/schema/openAPIV3Schema\",\"value\":{"
                       "\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true}},"
                       "{\"op\":\"remove\",\"path\":\"/spec/versions/0/subresources/scale\"}]",
                       NULL),
        200);
}

/* A set that is in order but for a merge patch of its spec, with ' for "; the caller's. */
static cJSON *set_but(const char *name, const char *patch)
{
    CLEANUP_FREE char *text = xasprintf(
        "{\"apiVersion\":\"apps.neo.io/"
        "v1alpha1\",\"kind\":\"NeoSet\",\"metadata\":{\"name\":\"%s\"},\"spec\":{"
        "\"selector\":{\"matchLabels\":{\"app\":\"%s\"}},\"podManagementPolicy\":\"Parallel\",\"template\":{"
        "\"metadata\":{\"labels\":{\"app\":\"%s\"}},\"spec\":{\"containers\":[{\"name\":\"m\",\"image\":"
        "\"app:v1\""
        "}]}}}}",
        name, name, name);
    CLEANUP_FREE char *change = xstrdup(patch);
    for (char *at = change; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    cJSON *set = NULL;
    CLEANUP_JSON cJSON *tree = NULL;
    assert_int_equal(json_parse(text, strlen(text), &set, NULL), 0);
    if (json_parse(change, strlen(change), &tree, NULL) < 0)
        fail_msg("%s", change);
    patch_merge(json_get(set, "spec"), tree);
    return set;
}

static void post(struct scene *scene, const cJSON *set)
{
    CLEANUP_FREE char *text = json_print(set);
    CLEANUP_JSON cJSON *answer = NULL;
    int status = sim_server_ask(scene->server, "POST", SETS_PATH, "application/json", text, &answer);
    if (status != 201)
        fail_msg("%d %s: %.2000s", status, json_str(answer, "message"), text);
}

static cJSON *set_named(struct scene *scene, const char *name)
{
    CLEANUP_FREE char *path = xasprintf(SETS_PATH "/%s", name);
    return sim_server_get(scene->server, path);
}

static const cJSON *condition_of(const cJSON *set, const char *type)
{
    const cJSON *condition = NULL;
    cJSON_ArrayForEach (condition, json_path(set, "status", "conditions", NULL))
        if (str_equal(json_str(condition, "type"), type))
            return condition;
    return NULL;
}

/* --- fields beyond their bounds ------------------------------------------------------------------------- */

static const struct {
    const char *patch, *words; /* words NULL: it is taken as it is */
} beyond[] = {
    {"{'replicas':-1}", "spec.replicas must be an integer"},
    {"{'replicas':1.5}", "spec.replicas must be an integer"},
    {"{'replicas':'3'}", "spec.replicas must be an integer"},
    {"{'replicas':100001}", "spec.replicas must be at most 100000"},
    {"{'replicas':9223372036854775807}", "spec.replicas must be an integer"},
    {"{'replicas':0}", NULL},
    {"{'ordinals':{'start':-1}}", "spec.ordinals.start must be an integer"},
    {"{'ordinals':{'start':2147483647}}", "spec.ordinals.start is too large"},
    {"{'ordinals':{'start':2000000000}}", NULL},
    {"{'ordinals':[7]}", "spec.ordinals must be an object"},
    {"{'minReadySeconds':-1}", "spec.minReadySeconds must be an integer"},
    {"{'minReadySeconds':2147483648}", "spec.minReadySeconds must be an integer"},
    {"{'minReadySeconds':2147483647}", NULL},
    {"{'revisionHistoryLimit':-1}", "spec.revisionHistoryLimit must be an integer"},
    {"{'revisionHistoryLimit':2147483647}", NULL},
    {"{'podManagementPolicy':'Serial'}", "spec.podManagementPolicy must be OrderedReady or Parallel"},
    {"{'podManagementPolicy':7}", "spec.podManagementPolicy must be OrderedReady or Parallel"},
    {"{'persistentVolumeClaimRetentionPolicy':'Delete'}",
     "spec.persistentVolumeClaimRetentionPolicy must be an object"},
    {"{'persistentVolumeClaimRetentionPolicy':{'whenDeleted':'Keep'}}",
     "whenDeleted must be Retain or Delete"},
    {"{'persistentVolumeClaimRetentionPolicy':{'whenScaled':1}}", "whenScaled must be Retain or Delete"},
    {"{'serviceName':7}", "spec.serviceName must be a text"},
    {"{'selector':7}", "spec.selector is empty"},
    {"{'selector':{'matchLabels':null}}", "spec.selector is empty"},
    {"{'selector':{'matchLabels':{'app':'other'}}}", "spec.selector does not match the labels"},
    {"{'selector':{'matchExpressions':[{'key':'app','operator':'Like'}]}}", "spec.selector cannot be read"},
    {"{'selector':{'matchExpressions':{'key':'app'}}}", "spec.selector cannot be read"},
    {"{'template':7}", "spec.template.spec.containers is empty"},
    {"{'template':{'metadata':'x'}}", "spec.selector does not match the labels"},
    {"{'template':{'spec':{'containers':{}}}}", "spec.template.spec.containers is empty"},
    {"{'template':{'spec':{'containers':[7]}}}", "has no name or no image"},
    {"{'template':{'spec':{'containers':[{'name':'m','image':7}]}}}", "has no name or no image"},
    {"{'template':{'spec':{'containers':[{'name':'m','image':'i'},{'name':'m','image':'i'}]}}}",
     "are named m"},
    {"{'template':{'spec':{'restartPolicy':'Never'}}}", "restartPolicy must be Always"},
    {"{'volumeClaimTemplates':{'a':1}}", "spec.volumeClaimTemplates must be a list"},
    {"{'volumeClaimTemplates':[{'metadata':{}}]}", "has no name"},
    {"{'volumeClaimTemplates':[{'metadata':{'name':'d'}},{'metadata':{'name':'d'}}]}", "are named d"},
    {"{'updateStrategy':'InPlace'}", "spec.updateStrategy must be an object"},
    {"{'updateStrategy':{'type':'Rolling'}}", "spec.updateStrategy.type must be InPlace or Recreate"},
    {"{'updateStrategy':{'partition':-1}}", "spec.updateStrategy.partition must be an integer"},
    {"{'updateStrategy':{'partition':2147483647}}", NULL},
    {"{'updateStrategy':{'partition':2147483648}}", "spec.updateStrategy.partition must be an integer"},
    {"{'updateStrategy':{'maxUnavailable':0}}", "maxUnavailable must be a number of at least 1"},
    {"{'updateStrategy':{'maxUnavailable':'0%'}}", "maxUnavailable must be a number of at least 1"},
    {"{'updateStrategy':{'maxUnavailable':'101%'}}", "maxUnavailable must be a number of at least 1"},
    {"{'updateStrategy':{'maxUnavailable':'-5%'}}", "maxUnavailable must be a number of at least 1"},
    {"{'updateStrategy':{'maxUnavailable':[]}}", "maxUnavailable must be a number of at least 1"},
    {"{'updateStrategy':{'maxUnavailable':2147483647}}", NULL},
    {"{'updateStrategy':{'pause':'yes'}}", "spec.updateStrategy.pause must be true or false"},
    {"{'updateStrategy':{'inPlaceUpdateStrategy':[]}}", "inPlaceUpdateStrategy must be an object"},
    {"{'updateStrategy':{'inPlaceUpdateStrategy':{'readiness':'Maybe'}}}",
     "readiness must be Probe or Ready"},
    {"{'updateStrategy':{'inPlaceUpdateStrategy':{'readinessTimeoutSeconds':0}}}",
     "readinessTimeoutSeconds must be an integer"},
    {"{'updateStrategy':{'inPlaceUpdateStrategy':{'readinessTimeoutSeconds':2147483647}}}", NULL},
    {"{'updateStrategy':{'inPlaceUpdateStrategy':{'readinessTimeoutSeconds':1e300}}}",
     "readinessTimeoutSeconds must be an integer"},
    {"{'updateStrategy':{'inPlaceUpdateStrategy':{'gracePeriodSeconds':-1}}}",
     "gracePeriodSeconds must be an"},
    {"{'updateStrategy':{'inPlaceUpdateStrategy':{'gracePeriodSeconds':86400}}}", NULL},
    {"{'updateStrategy':{'inPlaceUpdateStrategy':{'gracePeriodSeconds':86401}}}",
     "gracePeriodSeconds must be an integer from 0 to 86400"},
    {"{'updateStrategy':{'inPlaceUpdateStrategy':{'prefetch':'Always'}}}",
     "prefetch must be IfPossible, Never"},
};

static void assert_judged(struct scene *scene, size_t i, const char *name)
{
    CLEANUP_JSON cJSON *set = set_named(scene, name);
    const cJSON *stalled = condition_of(set, "Stalled");
    const char *phase = json_path_str(set, "status", "phase", NULL);
    bool is_invalid = str_equal(json_str(stalled, "reason"), "InvalidSpec");
    if (!beyond[i].words) {
        if (is_invalid || str_equal(phase, "Failed"))
            fail_msg("%s: %s", beyond[i].patch, json_path_str(set, "status", "message", NULL));
        return;
    }
    const char *words = json_str(stalled, "message");
    CLEANUP_FREE char *pod_path = xasprintf(PODS_PATH "/%s-0", name);
    CLEANUP_JSON cJSON *pod = sim_server_get(scene->server, pod_path);
    if (!is_invalid || !str_equal(phase, "Failed") || !words || !strstr(words, beyond[i].words) || pod)
        fail_msg("%s: phase %s, Stalled: %s, pod: %d", beyond[i].patch, phase, words, pod != NULL);
}

static void what_the_schema_let_through_is_named_and_not_acted_on(void **state)
{
    struct scene *scene = *state;
    forget_the_schema(scene);
    for (size_t i = 0; i < ARRAY_SIZE(beyond); i++) {
        CLEANUP_FREE char *name = xasprintf("s%zu", i);
        CLEANUP_JSON cJSON *set = set_but(name, beyond[i].patch);
        post(scene, set);
    }
    start(scene);
    pass(scene, 60 * US_PER_S);
    for (size_t i = 0; i < ARRAY_SIZE(beyond); i++) {
        CLEANUP_FREE char *name = xasprintf("s%zu", i);
        assert_judged(scene, i, name);
    }
    long before = entries(scene);
    size_t writes = sim_server_write_count(scene->server);
    pass(scene, 300 * US_PER_S);
    assert_int_equal(entries(scene), before);
    assert_int_equal(sim_server_write_count(scene->server), writes);
}

/* Every field with every kind of value: whatever becomes of it, the others are served. */
static void any_value_of_any_field_is_survived(void **state)
{
    static const char *const fields[] = {"replicas",
                                         "selector",
                                         "template",
                                         "volumeClaimTemplates",
                                         "serviceName",
                                         "podManagementPolicy",
                                         "minReadySeconds",
                                         "ordinals",
                                         "persistentVolumeClaimRetentionPolicy",
                                         "revisionHistoryLimit",
                                         "updateStrategy",
                                         "updateStrategy':{'inPlaceUpdateStrategy"};
    static const char *const values[] = {"[]",
                                         "{}",
                                         "[{}]",
                                         "''",
                                         "'\\u001b[31m'",
                                         "true",
                                         "1e99",
                                         "-1e99",
                                         "0.1",
                                         "null",
                                         "[[[[[[[[]]]]]]]]",
                                         "{'a':{'a':[]}}",
                                         "'x'",
                                         "18446744073709551616"};
    struct scene *scene = *state;
    forget_the_schema(scene);
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        for (size_t k = 0; k < ARRAY_SIZE(values); k++) {
            CLEANUP_FREE char *name = xasprintf("s%zu-%zu", i, k);
            CLEANUP_FREE char *patch =
                xasprintf("{'%s':%s}%s", fields[i], values[k], strchr(fields[i], '{') ? "}" : "");
            CLEANUP_JSON cJSON *set = set_but(name, patch);
            post(scene, set);
        }
    create_set(scene, 3, 1, "mysql:8.0");
    start(scene);
    wait_for(scene, "Idle", "mysql:8.0", 3, 60 * US_PER_S);
    set_image(scene, "mysql:8.1");
    wait_for(scene, "Completed", "mysql:8.1", 3, 120 * US_PER_S);
    pass(scene, 60 * US_PER_S);
    long before = entries(scene);
    pass(scene, 120 * US_PER_S);
    assert_in_range(entries(scene) - before, 0, 40);
}

/* --- large ---------------------------------------------------------------------------------------------- */

enum { HALF_A_MEGABYTE = 512 * 1024, CONDITIONS = 1000 };

static char *letters(size_t count)
{
    char *text = xmalloc(count + 1);
    memset(text, 'x', count);
    text[count] = '\0';
    return text;
}

/* In the set, in its revisions, in each of its pods. */
static void a_template_of_half_a_megabyte_is_rolled(void **state)
{
    struct scene *scene = *state;
    create_set(scene, 3, 1, "mysql:8.0");
    CLEANUP_FREE char *text = letters(HALF_A_MEGABYTE);
    CLEANUP_FREE char *patch = xasprintf(
        "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"mysql\",\"image\":\"mysql:8.0\","
        "\"readinessProbe\":{\"tcpSocket\":{\"port\":3306}},\"env\":[{\"name\":\"A\",\"value\":\"%s\"}]}]}}}"
        "}",
        text);
    patch_set(scene, patch);
    start(scene);
    wait_for(scene, "Idle", "mysql:8.0", 3, 60 * US_PER_S);
    set_image(scene, "mysql:8.1");
    wait_for(scene, "Completed", "mysql:8.1", 3, 120 * US_PER_S);
    assert_restarts(scene, 3, 1);
    pass(scene, US_PER_S);
    assert_nothing_is_open(scene);
    assert_history_agrees(scene);
}

/* Somebody else's: they stay, and cost nothing. */
static void a_thousand_conditions_stay_as_they_are(void **state)
{
    struct scene *scene = *state;
    create_set(scene, 3, 1, "mysql:8.0");
    CLEANUP_JSON cJSON *patch = json_new_object();
    cJSON *list = json_add_array(json_add_object(patch, "status"), "conditions");
    for (int i = 0; i < CONDITIONS; i++) {
        cJSON *condition = json_new_object();
        CLEANUP_FREE char *type = xasprintf("Other%d", i);
        json_add_str(condition, "type", type);
        json_add_str(condition, "status", "Unknown");
        json_append_item(list, condition);
    }
    CLEANUP_FREE char *text = json_print(patch);
    assert_int_equal(sim_server_ask(scene->server, "PATCH", SET_PATH "/status",
                                    "application/merge-patch+json", text, NULL),
                     200);
    start(scene);
    pass(scene, 30 * US_PER_S); /* to look costs more than the controller does */
    wait_for(scene, "Idle", "mysql:8.0", 3, 60 * US_PER_S);
    CLEANUP_JSON cJSON *pod_patch = json_new_object();
    json_add_item(json_add_object(pod_patch, "status"), "conditions", json_copy(list));
    CLEANUP_FREE char *pod_text = json_print(pod_patch);
    assert_int_equal(sim_server_ask(scene->server, "PATCH", PODS_PATH "/mysql-1/status",
                                    "application/strategic-merge-patch+json", pod_text, NULL),
                     200);
    set_image(scene, "mysql:8.1");
    pass(scene, 60 * US_PER_S);
    wait_for(scene, "Completed", "mysql:8.1", 3, 120 * US_PER_S);
    CLEANUP_JSON cJSON *set = set_named(scene, "mysql");
    assert_true(cJSON_GetArraySize(json_path(set, "status", "conditions", NULL)) >= CONDITIONS + 3);
    assert_non_null(condition_of(set, "Other999"));
    long before = entries(scene);
    pass(scene, 120 * US_PER_S);
    assert_int_equal(entries(scene), before);
}

/* --- names ---------------------------------------------------------------------------------------------- */

/* Of 63 characters a pod's name, its hostname and its revision label may be. */
static void names_at_their_limit_are_rolled_and_one_more_is_told(void **state)
{
    struct scene *scene = *state;
    forget_the_schema(scene);
    CLEANUP_FREE char *longest = letters(52);
    CLEANUP_FREE char *fits = letters(61);
    CLEANUP_FREE char *too_long = letters(62);
    const char *const names[] = {longest, fits, too_long};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        CLEANUP_JSON cJSON *set =
            set_but(names[i], i == 0 ? "{'replicas':2,'ordinals':{'start':1999999999}}" : "{'replicas':2}");
        post(scene, set);
    }
    start(scene);
    pass(scene, 60 * US_PER_S);
    for (size_t i = 0; i < 2; i++) {
        CLEANUP_FREE char *path = xasprintf(SETS_PATH "/%s", names[i]);
        assert_int_equal(
            sim_server_ask(
                scene->server, "PATCH", path, "application/json-patch+json",
                "[{\"op\":\"replace\",\"path\":\"/spec/template/spec/containers/0/image\",\"value\":"
                "\"app:v2\"}]",
                NULL),
            200);
    }
    pass(scene, 120 * US_PER_S);
    for (size_t i = 0; i < 2; i++) {
        CLEANUP_JSON cJSON *set = set_named(scene, names[i]);
        if (!str_equal(json_path_str(set, "status", "phase", NULL), "Completed"))
            fail_msg("%s: %s", names[i], json_path_str(set, "status", "message", NULL));
        assert_true(strlen(json_path_str(set, "status", "updateRevisionName", NULL)) <= 63);
    }
    CLEANUP_FREE char *last = xasprintf(PODS_PATH "/%s-2000000000", longest);
    CLEANUP_JSON cJSON *pod = sim_server_get(scene->server, last);
    assert_non_null(pod);
    CLEANUP_JSON cJSON *told = set_named(scene, too_long);
    assert_non_null(strstr(json_path_str(told, "status", "message", NULL), "has more than 63 characters"));
}

/* --- a selector that matches the world ------------------------------------------------------------------ */

/* Pods of other names and of other owners are nobody's business, however many match. */
static void a_selector_that_matches_the_world_takes_nothing(void **state)
{
    struct scene *scene = *state;
    create_set(scene, 2, 1, "mysql:8.0");
    CLEANUP_JSON cJSON *greedy = set_but(
        "greedy",
        "{'selector':{'matchLabels':null,'matchExpressions':[{'key':'never','operator':'DoesNotExist'}]}}");
    post(scene, greedy);
    assert_int_equal(
        sim_server_ask(
            scene->server, "POST", PODS_PATH, "application/json",
            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"alone\",\"labels\":{\"a\":"
            "\"b\"}},\"spec\":{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\"}]}}",
            NULL),
        201);
    start(scene);
    wait_for(scene, "Idle", "mysql:8.0", 2, 60 * US_PER_S);
    set_image(scene, "mysql:8.1");
    wait_for(scene, "Completed", "mysql:8.1", 2, 120 * US_PER_S);
    CLEANUP_JSON cJSON *alone = sim_server_get(scene->server, PODS_PATH "/alone");
    assert_null(json_path(alone, "metadata", "ownerReferences", NULL));
    CLEANUP_JSON cJSON *set = set_named(scene, "greedy");
    assert_int_equal(json_int64_or(json_get(set, "status"), "replicas", -1), 1);
    long before = entries(scene);
    pass(scene, 120 * US_PER_S);
    assert_int_equal(entries(scene), before);
}

/* --- a template that the server refuses ----------------------------------------------------------------- */

/* No pod of it was ever there: the first revision. */
static void a_first_template_that_is_refused_is_told_and_tried_with_patience(void **state)
{
    struct scene *scene = *state;
    CLEANUP_JSON cJSON *set = set_but("mysql", "{'template':{'spec':{'dnsPolicy':'Nonsense'}}}");
    post(scene, set);
    start(scene);
    pass(scene, 60 * US_PER_S);
    CLEANUP_JSON cJSON *told = set_named(scene, "mysql");
    const char *words = json_path_str(told, "status", "message", NULL);
    if (!words || !strstr(words, "dnsPolicy"))
        fail_msg("%s", words);
    assert_true(set_condition_is(scene, "Stalled", "True"));
    size_t writes = sim_server_write_count(scene->server);
    long before = entries(scene);
    pass(scene, 600 * US_PER_S);
    assert_in_range(entries(scene) - before, 0, 20);
    assert_in_range(sim_server_write_count(scene->server) - writes, 0, 20);
    patch_set(scene, "{\"spec\":{\"template\":{\"spec\":{\"dnsPolicy\":\"ClusterFirst\"}}}}");
    wait_for(scene, "Completed", "app:v1", 1, 400 * US_PER_S);
}

int main(void)
{
    use_memory_for_journals();
    const struct CMUnitTest tests[] = {
        scene_test(what_the_schema_let_through_is_named_and_not_acted_on),
        scene_test(any_value_of_any_field_is_survived),
        scene_test(a_template_of_half_a_megabyte_is_rolled),
        scene_test(a_thousand_conditions_stay_as_they_are),
        scene_test(names_at_their_limit_are_rolled_and_one_more_is_told),
        scene_test(a_selector_that_matches_the_world_takes_nothing),
        scene_test(a_first_template_that_is_refused_is_told_and_tried_with_patience),
    };
    return cmocka_run_group_tests_name("input", tests, NULL, NULL);
}
