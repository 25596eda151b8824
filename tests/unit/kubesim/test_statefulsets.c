/* SPDX-License-Identifier: Apache-2.0
 *
 * StatefulSets as kubesim runs them, where handing one over depends on it: pods, revisions, orphans. */
#include "world.h"

#define SET(replicas, image, more)                                                                           \
    "{\"apiVersion\":\"apps/"                                                                                \
    "v1\",\"kind\":\"StatefulSet\",\"metadata\":{\"name\":\"db\"},\"spec\":{\"replicas\":" replicas          \
    ",\"serviceName\":\"db\",\"podManagementPolicy\":\"Parallel\",\"selector\":{\"matchLabels\":{\"app\":"   \
    "\"db\"}},"                                                                                              \
    "\"template\":{\"metadata\":{\"labels\":{\"app\":\"db\"}},\"spec\":{\"containers\":[{\"name\":\"c\","    \
    "\"image\":\"" image "\"}]}}" more "}}"

static struct world *make(void)
{
    struct world *world = xcalloc(1, sizeof(*world));
    struct kubesim_options options = world_options(world);
    options.statefulsets = true;
    return world_make_with(&options, world);
}

static void settle(struct world *world)
{
    for (int i = 0; i < 20; i++)
        pass(world, 1);
}

static void make_ready(struct world *world, int replicas)
{
    for (int i = 0; i < replicas; i++) {
        CLEANUP_FREE char *path = xasprintf(PODS "/db-%d/status", i);
        assert_int_equal(patch(world, path, MERGE,
                               "{\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\","
                               "\"status\":\"True\"}]}}"),
                         200);
    }
    settle(world);
}

static const char *text_of(struct world *world, const char *path, const char *a, const char *b, const char *c)
{
    assert_int_equal(ask(world, "GET", path, NULL), 200);
    const char *text = json_path_str(world->body, a, b, c, NULL);
    return text ? text : "";
}

static int count(struct world *world, const char *path)
{
    assert_int_equal(ask(world, "GET", path, NULL), 200);
    return cJSON_GetArraySize(json_get(world->body, "items"));
}

static void a_set_gets_its_pods_claims_and_revision(void **state)
{
    (void)state;
    WORLD world = make();
    assert_int_equal(ask(world, "POST", SETS,
                         SET("3", "i:1",
                             ",\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"data\"},\"spec\":"
                             "{\"accessModes\":[\"ReadWriteOnce\"],\"resources\":{\"requests\":{"
                             "\"storage\":\"1Gi\"}}}}]")),
                     201);
    settle(world);
    make_ready(world, 3);
    assert_int_equal(count(world, PODS), 3);
    assert_int_equal(count(world, CLAIMS), 3);
    assert_int_equal(count(world, REVISIONS), 1);
    assert_int_equal(ask(world, "GET", SETS "/db", NULL), 200);
    assert_int_equal(json_int64_or(json_get(world->body, "status"), "readyReplicas", -1), 3);
    uint64_t writes = kubesim_count(world->sim).writes;
    settle(world);
    assert_int_equal(kubesim_count(world->sim).writes, writes);
}

/* A label is all that tells it what a pod runs, and the newest of equal revisions is the one to run. */
static void a_pod_under_another_label_is_made_anew(void **state)
{
    (void)state;
    static const char *const cases[] = {"label", "revision"};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        WORLD world = make();
        assert_int_equal(ask(world, "POST", SETS, SET("1", "i:1", "")), 201);
        settle(world);
        make_ready(world, 1);
        CLEANUP_FREE char *before = now_of(world, PODS "/db-0", "uid");
        if (i == 0) {
            patch(world, PODS "/db-0", MERGE,
                  "{\"metadata\":{\"labels\":{\"controller-revision-hash\":\"other\"}}}");
        } else {
            assert_int_equal(ask(world, "GET", REVISIONS, NULL), 200);
            CLEANUP_JSON cJSON *copy = json_copy(json_get(world->body, "items")->child);
            json_set_item(copy, "metadata", json_new_object());
            json_set_str(json_get(copy, "metadata"), "name", "db-left-over");
            json_set_str(json_ensure_object(json_get(copy, "metadata"), "labels"), "app", "db");
            json_set_item(copy, "revision", json_new_int64(2));
            CLEANUP_FREE char *text = json_print(copy);
            assert_int_equal(ask(world, "POST", REVISIONS, text), 201);
        }
        settle(world);
        assert_int_equal(ask(world, "GET", PODS "/db-0", NULL), 200);
        bool is_another = !str_equal(meta(world, "uid"), before) || meta(world, "deletionTimestamp");
        if (!is_another)
            fail_msg("the other %s was not noticed", cases[i]);
    }
}

static void orphans_are_taken_over_as_they_are(void **state)
{
    (void)state;
    WORLD world = make();
    assert_int_equal(ask(world, "POST", SETS, SET("2", "i:1", "")), 201);
    settle(world);
    make_ready(world, 2);
    CLEANUP_FREE char *before = now_of(world, PODS "/db-1", "uid");
    assert_int_equal(
        ask(world, "DELETE", SETS "/db", "{\"kind\":\"DeleteOptions\",\"propagationPolicy\":\"Orphan\"}"),
        200);
    settle(world);
    assert_int_equal(ask(world, "GET", SETS "/db", NULL), 404);
    assert_int_equal(ask(world, "GET", PODS "/db-1", NULL), 200);
    assert_null(json_path(world->body, "metadata", "ownerReferences", NULL));
    assert_int_equal(ask(world, "POST", SETS, SET("2", "i:1", "")), 201);
    settle(world);
    assert_int_equal(count(world, REVISIONS), 1);
    assert_string_equal(text_of(world, PODS "/db-1", "metadata", "uid", NULL), before);
    assert_non_null(json_path(world->body, "metadata", "ownerReferences", NULL));
}

static void what_is_not_modelled_says_so(void **state)
{
    (void)state;
    WORLD world = make();
    assert_int_equal(
        ask(world, "POST", SETS,
            SET("1", "i:1",
                ",\"updateStrategy\":{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"maxUnavailable\":2}}")),
        201);
    settle(world);
    assert_int_equal(count(world, PODS), 0);
    assert_int_equal(ask(world, "GET", SETS "/db", NULL), 200);
    const cJSON *conditions = json_path(world->body, "status", "conditions", NULL);
    assert_string_equal(json_str(conditions->child, "type"), "KubesimModels");
}

#define MOUNTING                                                                                             \
    "{\"apiVersion\":\"apps/"                                                                                \
    "v1\",\"kind\":\"StatefulSet\",\"metadata\":{\"name\":\"db\"},\"spec\":{\"serviceName\":"                \
    "\"db\",\"selector\":{\"matchLabels\":{\"app\":\"db\"}},\"template\":{\"metadata\":{\"labels\":{"        \
    "\"app\":\"db\"}},"                                                                                      \
    "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i:1\",\"volumeMounts\":[{\"name\":\"%s\","        \
    "\"mountPath\":"                                                                                         \
    "\"/d\"}]}]}},\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"data\"},\"spec\":{\"accessModes\":["   \
    "\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}]}}"

/* As the real server: what a claim template brings may be mounted. */
static void a_template_may_mount_what_its_claims_bring(void **state)
{
    (void)state;
    WORLD world = world_make();
    CLEANUP_FREE char *good = xasprintf(MOUNTING, "data");
    CLEANUP_FREE char *bad = xasprintf(MOUNTING, "logs");
    assert_int_equal(ask(world, "POST", SETS, bad), 422);
    assert_int_equal(ask(world, "POST", SETS, good), 201);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_gets_its_pods_claims_and_revision),
        cmocka_unit_test(a_pod_under_another_label_is_made_anew),
        cmocka_unit_test(orphans_are_taken_over_as_they_are),
        cmocka_unit_test(what_is_not_modelled_says_so),
        cmocka_unit_test(a_template_may_mount_what_its_claims_bring),
    };
    return cmocka_run_group_tests_name("statefulsets", tests, NULL, NULL);
}
