/* SPDX-License-Identifier: Apache-2.0
 *
 * A set that takes the pods of a StatefulSet over, as `neosetctl adopt` makes it: while that is there it is
 * left alone, then its pods come over as they are. kubesim runs the StatefulSet. */
#include "controller_scene.h"

#define STATEFULSETS_PATH "/apis/apps/v1/namespaces/default/statefulsets"
#define MERGE "application/merge-patch+json"

#define SPEC                                                                                                 \
    "\"replicas\":3,\"serviceName\":\"mysql\",\"podManagementPolicy\":\"Parallel\",\"selector\":{"           \
    "\"matchLabels\":{\"app\":\"mysql\"}},\"template\":{\"metadata\":{\"labels\":{\"app\":\"mysql\"}},"      \
    "\"spec\":{"                                                                                             \
    "\"containers\":[{\"name\":\"mysql\",\"image\":\"mysql:8.0\"}]}}"

static void person(struct scene *scene, const char *method, const char *path, const char *type,
                   const char *body)
{
    CLEANUP_JSON cJSON *answer = NULL;
    int status = sim_server_ask(scene->server, method, path, type, body, &answer);
    if (status != 200 && status != 201)
        fail_msg("%s %s: %d %s", method, path, status, json_str(answer, "message"));
}

static bool is_of(struct scene *scene, int ordinal, const char *kind)
{
    CLEANUP_FREE char *path = xasprintf(PODS_PATH "/mysql-%d", ordinal);
    CLEANUP_JSON cJSON *pod = sim_server_get(scene->server, path);
    const cJSON *owners = json_path(pod, "metadata", "ownerReferences", NULL);
    return cJSON_GetArraySize(owners) == 1 && str_equal(json_str(owners->child, "kind"), kind);
}

static void make_both(struct scene *scene)
{
    kubesim_run_statefulsets(sim_server_kubesim(scene->server));
    person(scene, "POST", STATEFULSETS_PATH, "application/json",
           "{\"metadata\":{\"name\":\"mysql\"},\"spec\":{" SPEC "}}");
    pass(scene, 20 * US_PER_S);
    start(scene);
    CLEANUP_JSON cJSON *set = sim_server_get(scene->server, STATEFULSETS_PATH "/mysql");
    CLEANUP_FREE char *text = xasprintf(
        "{\"apiVersion\":\"apps.neo.io/v1alpha1\",\"kind\":\"NeoSet\",\"metadata\":{\"name\":\"mysql\","
        "\"annotations\":{\"apps.neo.io/adopts\":\"%s\"}},\"spec\":{" SPEC
        ",\"updateStrategy\":{\"pause\":true}}}",
        json_path_str(set, "metadata", "uid", NULL));
    person(scene, "POST", SETS_PATH, "application/json", text);
    pass(scene, 10 * US_PER_S);
}

static void while_the_statefulset_has_its_pods_it_is_left_alone(void **state)
{
    struct scene *scene = *state;
    make_both(scene);
    CLEANUP_JSON cJSON *set = sim_server_get(scene->server, SET_PATH);
    const char *message = json_path_str(set, "status", "message", NULL);
    if (!strstr(message, "belongs to StatefulSet mysql, which is being adopted"))
        fail_msg("%s", message);
    /* A pod that goes meanwhile comes back as the StatefulSet's. */
    person(scene, "DELETE", PODS_PATH "/mysql-1", NULL, NULL);
    pass(scene, 60 * US_PER_S);
    for (int i = 0; i < 3; i++)
        assert_true(is_of(scene, i, "StatefulSet"));
}

static void once_it_is_gone_its_pods_come_over_as_they_are(void **state)
{
    struct scene *scene = *state;
    make_both(scene);
    person(scene, "DELETE", STATEFULSETS_PATH "/mysql", "application/json",
           "{\"kind\":\"DeleteOptions\",\"propagationPolicy\":\"Orphan\"}");
    pass(scene, 10 * US_PER_S);
    for (int i = 0; i < 3; i++)
        assert_true(is_of(scene, i, "NeoSet"));
    assert_restarts(scene, 3, 0);
    person(scene, "DELETE", PODS_PATH "/mysql-1", NULL, NULL);
    pass(scene, 60 * US_PER_S);
    assert_null(sim_server_get(scene->server, PODS_PATH "/mysql-1"));
    person(scene, "PATCH", SET_PATH, MERGE,
           "{\"metadata\":{\"annotations\":{\"apps.neo.io/adopts\":\"x,gone\"}}}");
    pass(scene, 60 * US_PER_S);
    assert_true(is_of(scene, 1, "NeoSet"));
}

int main(void)
{
    use_memory_for_journals();
    const struct CMUnitTest tests[] = {
        scene_test(while_the_statefulset_has_its_pods_it_is_left_alone),
        scene_test(once_it_is_gone_its_pods_come_over_as_they_are),
    };
    return cmocka_run_group_tests_name("migration of a controller", tests, NULL, NULL);
}
