/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole controller fetches images before it touches a pod: a bad tag takes nothing down, a slow registry
 * prolongs no outage, and nothing is left behind, wherever it is killed. */
#include "controller_scene.h"

#include "neoset/fact.h"

#define SLOW_PULL_US (20 * US_PER_S)

/* A world whose slow registry is very slow. */
static int setup_slow(void **state)
{
    struct scene *scene = xcalloc(1, sizeof(*scene));
    journal_fixture_setup(&scene->files);
    scene->world = scene->files.env;
    env_sim_on_route(scene->world, latency, NULL);
    scene->server = sim_server_make(
        scene->world, &(struct kubelet_options){.seed = 1, .slow_pull_us = SLOW_PULL_US, .node_count = 2});
    sim_server_apply_file(scene->server, "deploy/crd.yaml");
    *state = scene;
    return 0;
}

static void choose(struct scene *scene, const char *prefetch, int timeout_s)
{
    CLEANUP_FREE char *text = xasprintf("{\"spec\":{\"updateStrategy\":{\"inPlaceUpdateStrategy\":{"
                                        "\"prefetch\":\"%s\",\"readinessTimeoutSeconds\":%d}}}}",
                                        prefetch, timeout_s);
    patch_set(scene, text);
}

static struct scene *begin(void **state, int replicas, const char *prefetch, int timeout_s)
{
    struct scene *scene = *state;
    create_set(scene, replicas, 1, "mysql:8.0");
    choose(scene, prefetch, timeout_s);
    start(scene);
    wait_for(scene, "Idle", "mysql:8.0", replicas, 60 * US_PER_S);
    pass(scene, 5 * US_PER_S);
    return scene;
}

/* How many pods that fetch there are. */
static int fetching(struct scene *scene)
{
    CLEANUP_JSON cJSON *list = sim_server_get(scene->server, PODS_PATH);
    int count = 0;
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, json_get(list, "items")) {
        size_t length = 0;
        count += neoset_split_prefetch_name(json_path_str(pod, "metadata", "name", NULL), &length);
    }
    return count;
}

static int ready(struct scene *scene)
{
    CLEANUP_JSON cJSON *list = sim_server_get(scene->server, PODS_PATH);
    int count = 0;
    const cJSON *pod = NULL, *condition = NULL;
    cJSON_ArrayForEach (pod, json_get(list, "items"))
        cJSON_ArrayForEach (condition, json_path(pod, "status", "conditions", NULL))
            count += str_equal(json_str(condition, "type"), "Ready") &&
                     str_equal(json_str(condition, "status"), "True");
    return count;
}

/* Time passes, and at least so many pods serve all the while; how long fewer than all did. */
static int64_t serve(struct scene *scene, int64_t duration_us, int replicas, int at_least)
{
    int64_t down_us = 0;
    for (int64_t at_us = 0; at_us < duration_us; at_us += 20 * US_PER_MS) {
        pass(scene, 20 * US_PER_MS);
        int count = ready(scene);
        assert_true(count >= at_least);
        down_us += count < replicas ? 20 * US_PER_MS : 0;
    }
    return down_us;
}

static bool message_has(struct scene *scene, const char *words)
{
    CLEANUP_JSON cJSON *set = sim_server_get(scene->server, SET_PATH);
    const char *message = json_path_str(set, "status", "message", NULL);
    return message && strstr(message, words);
}

static bool phase_is(struct scene *scene, const char *phase)
{
    CLEANUP_JSON cJSON *set = sim_server_get(scene->server, SET_PATH);
    return str_equal(json_path_str(set, "status", "phase", NULL), phase);
}

static void assert_all_is_clean(struct scene *scene)
{
    pass(scene, 20 * US_PER_S);
    assert_int_equal(fetching(scene), 0);
    assert_history_agrees(scene);
    assert_nothing_is_open(scene);
}

/* --- what it is for ------------------------------------------------------------------------------------- */

static void a_bad_tag_never_takes_a_pod_down(void **state)
{
    struct scene *scene = begin(state, 3, "IfPossible", 20);
    set_image(scene, "mysql:none");
    assert_int_equal(serve(scene, 15 * US_PER_S, 3, 3), 0);
    assert_true(phase_is(scene, "Canary"));
    assert_int_equal(serve(scene, 120 * US_PER_S, 3, 3), 0);
    assert_true(phase_is(scene, "Failed"));
    assert_true(message_has(scene, "mysql-2 was not touched"));
    assert_true(message_has(scene, "not found"));
    assert_restarts(scene, 3, 0);
    /* It stands still, and costs nothing but what the kubelet says. */
    uint64_t before = sim_server_write_count(scene->server);
    pass(scene, 600 * US_PER_S);
    uint64_t ours = 0;
    for (size_t i = before; i < sim_server_write_count(scene->server); i++)
        ours += str_starts_with(sim_server_write(scene->server, i)->audit_id, "neo-");
    assert_int_equal(ours, 0);
    set_image(scene, "mysql:8.1");
    wait_for(scene, "Completed", "mysql:8.1", 3, 120 * US_PER_S);
    assert_restarts(scene, 3, 1);
    assert_all_is_clean(scene);
}

static int64_t outage_us(const char *prefetch, const char *image)
{
    void *state = NULL;
    setup_slow(&state);
    struct scene *scene = begin(&state, 2, prefetch, 300);
    set_image(scene, image);
    int64_t down_us = serve(scene, 120 * US_PER_S, 2, 1);
    assert_true(set_has(scene, "Completed", image, 2));
    assert_restarts(scene, 2, 1);
    assert_all_is_clean(scene);
    teardown(&state);
    return down_us;
}

static void a_slow_registry_does_not_prolong_the_outage(void **state)
{
    (void)state;
    int64_t plain_us = outage_us("IfPossible", "mysql:8.1");
    int64_t slow_us = outage_us("IfPossible", "mysql-slow:8.1");
    int64_t without_us = outage_us("Never", "mysql-slow:8.1");
    print_message("    down for %lld ms; from a slow registry %lld ms; without prefetch %lld ms\n",
                  (long long)plain_us / 1000, (long long)slow_us / 1000, (long long)without_us / 1000);
    assert_true(slow_us < plain_us + US_PER_S);
    assert_true(without_us > SLOW_PULL_US);
}

static void each_node_is_asked_once(void **state)
{
    struct scene *scene = begin(state, 5, "Required", 60);
    patch_set(scene, "{\"spec\":{\"updateStrategy\":{\"maxUnavailable\":2}}}");
    set_image(scene, "mysql:8.1");
    wait_for(scene, "Completed", "mysql:8.1", 5, 120 * US_PER_S);
    assert_all_is_clean(scene);
    assert_string_equal(sql(scene, "SELECT count(*) FROM entry WHERE kind = 'intent' AND action = "
                                   "'create-pod' AND reason LIKE '%: fetch mysql:8.1 to node %'"),
                        "2");
    assert_string_equal(
        sql(scene, "SELECT group_concat(kind || ' ' || outcome, ', ') FROM operation WHERE kind = 'rollout'"),
        "rollout completed");
}

/* --- the three ways ------------------------------------------------------------------------------------- */

static void a_quota_is_no_hindrance_where_it_need_not_be(void **state)
{
    struct scene *scene = begin(state, 3, "IfPossible", 60);
    assert_int_equal(kubesim_fault_add(sim_server_kubesim(scene->server),
                                       "403,verb=create,resource=pods,nth=2,times=99", NULL),
                     0);
    set_image(scene, "mysql:8.1");
    wait_for(scene, "Completed", "mysql:8.1", 3, 120 * US_PER_S);
    assert_all_is_clean(scene);
    CLEANUP_JSON cJSON *events = sim_server_get(scene->server, "/api/v1/namespaces/default/events");
    int told = 0;
    const cJSON *event = NULL;
    cJSON_ArrayForEach (event, json_get(events, "items"))
        told += str_equal(json_str(event, "reason"), "PrefetchSkipped");
    assert_in_range(told, 1, 2); /* one a node */
}

static void a_quota_is_one_where_it_is_required(void **state)
{
    struct scene *scene = begin(state, 3, "Required", 30);
    assert_int_equal(kubesim_fault_add(sim_server_kubesim(scene->server),
                                       "403,verb=create,resource=pods,nth=2,times=6", NULL),
                     0);
    set_image(scene, "mysql:8.1");
    assert_int_equal(serve(scene, 10 * US_PER_S, 3, 3), 0);
    assert_true(message_has(scene, "prefetch is Required"));
    assert_int_equal(serve(scene, 100 * US_PER_S, 3, 3), 0);
    assert_true(phase_is(scene, "Failed"));
    assert_restarts(scene, 3, 0);
    wait_for(scene, "Completed", "mysql:8.1", 3, 900 * US_PER_S); /* it was raised */
    assert_restarts(scene, 3, 1);
    assert_all_is_clean(scene);
}

static void never_is_as_it_was(void **state)
{
    struct scene *scene = begin(state, 3, "Never", 60);
    set_image(scene, "mysql:none");
    pass(scene, 10 * US_PER_S);
    assert_int_equal(ready(scene), 2);
    set_image(scene, "mysql:8.1");
    wait_for(scene, "Completed", "mysql:8.1", 3, 240 * US_PER_S);
    assert_all_is_clean(scene);
}

/* --- edges ---------------------------------------------------------------------------------------------- */

static void its_deadline_goes_on_over_a_restart(void **state)
{
    struct scene *scene = begin(state, 3, "IfPossible", 90);
    set_image(scene, "mysql:none");
    pass(scene, 60 * US_PER_S);
    kill_program(&scene->program);
    pass(scene, 5 * US_PER_S);
    start(scene);
    pass(scene, 50 * US_PER_S); /* not within a minute of a start */
    assert_false(phase_is(scene, "Failed"));
    pass(scene, 30 * US_PER_S);
    assert_true(phase_is(scene, "Failed"));
    assert_restarts(scene, 3, 0);
    kill_program(&scene->program);
    set_image(scene, "mysql:8.0"); /* nobody is there to see it */
    start(scene);
    wait_for(scene, "Completed", "mysql:8.0", 3, 60 * US_PER_S);
    assert_restarts(scene, 3, 0);
    assert_all_is_clean(scene);
}

/* Whoever deleted the set while nobody looked. */
static void what_a_deleted_set_left_is_removed_at_start(void **state)
{
    struct scene *scene = begin(state, 2, "IfPossible", 60);
    set_image(scene, "mysql:none");
    pass(scene, 5 * US_PER_S);
    assert_int_equal(fetching(scene), 1);
    kill_program(&scene->program);
    assert_int_equal(sim_server_ask(scene->server, "DELETE", SET_PATH, "application/json",
                                    "{\"propagationPolicy\":\"Orphan\"}", NULL),
                     200);
    pass(scene, 20 * US_PER_S);
    assert_int_equal(fetching(scene), 1);
    start(scene);
    pass(scene, 20 * US_PER_S);
    assert_int_equal(fetching(scene), 0);
    assert_int_equal(ready(scene), 2);
    assert_nothing_is_open(scene);
}

static void a_set_that_is_deleted_leaves_nothing(void **state)
{
    static const char *const policies[] = {"Background", "Foreground", "Orphan"};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
        void *at = NULL;
        setup(&at);
        struct scene *scene = begin(&at, 2, "IfPossible", 60);
        set_image(scene, "mysql:none");
        pass(scene, 5 * US_PER_S);
        assert_int_equal(fetching(scene), 1);
        CLEANUP_FREE char *body = xasprintf("{\"propagationPolicy\":\"%s\"}", policies[i]);
        assert_int_equal(sim_server_ask(scene->server, "DELETE", SET_PATH, "application/json", body, NULL),
                         200);
        pass(scene, 60 * US_PER_S);
        if (fetching(scene) != 0)
            fail_msg("%s: %d pods are left", policies[i], fetching(scene));
        assert_nothing_is_open(scene);
        teardown(&at);
    }
}

/* A bad tag, then a good one, with a kill at each moment; false when it was over before. */
static bool mend_with_a_kill_after(int64_t kill_us, const char *prefetch)
{
    void *state = NULL;
    setup(&state);
    struct scene *scene = begin(&state, 2, prefetch, 60);
    set_image(scene, "mysql:none");
    pass(scene, kill_us / 2);
    set_image(scene, "mysql:8.1");
    pass(scene, kill_us - kill_us / 2);
    bool over = set_has(scene, "Completed", "mysql:8.1", 2);
    kill_program(&scene->program);
    pass(scene, 20 * US_PER_MS);
    start(scene);
    wait_for(scene, "Completed", "mysql:8.1", 2, 240 * US_PER_S);
    assert_restarts(scene, 2, 1);
    assert_all_is_clean(scene);
    teardown(&state);
    return !over;
}

static void killed_at_any_moment_nothing_is_left_behind(void **state)
{
    (void)state;
    int kills = 0;
    for (int64_t at_us = 0; at_us < 40 * US_PER_MS; at_us += 700)
        kills += mend_with_a_kill_after(at_us, at_us % 1400 ? "IfPossible" : "Required");
    for (int64_t at_us = 40 * US_PER_MS; at_us < 1200 * US_PER_MS; at_us += 11 * US_PER_MS + 300)
        kills += mend_with_a_kill_after(at_us, "IfPossible");
    print_message("    %d kills\n", kills);
    assert_true(kills > 100);
}

static void answers_that_are_lost_or_late_leave_nothing_behind(void **state)
{
    (void)state;
    static const char *const faults[] = {
        "lost,verb=create,resource=pods,nth=2,times=2",
        "drop,verb=create,resource=pods,nth=2,times=2",
        "late=3s,verb=create,resource=pods,nth=2",
        "late=14s,verb=create,resource=pods,nth=2",
        "lost,verb=delete,resource=pods,times=2",
        "drop,verb=delete,resource=pods,times=2",
        "late=3s,verb=delete,resource=pods",
        "500,verb=create,resource=pods,nth=2,times=3",
        "409,verb=create,resource=pods,nth=2",
        "500,verb=delete,resource=pods,times=3",
        "freeze=1s,verb=watch,resource=pods",
        "429,verb=create,resource=pods,nth=2,times=2",
    };
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        void *at = NULL;
        setup(&at);
        struct scene *scene = begin(&at, 2, "Required", 120);
        assert_int_equal(kubesim_fault_add(sim_server_kubesim(scene->server), faults[i], NULL), 0);
        set_image(scene, "mysql:none");
        pass(scene, 2 * US_PER_S);
        set_image(scene, "mysql:8.1");
        wait_for(scene, "Completed", "mysql:8.1", 2, 400 * US_PER_S);
        assert_restarts(scene, 2, 1);
        assert_all_is_clean(scene);
        teardown(&at);
    }
}

int main(void)
{
    use_memory_for_journals();
    const struct CMUnitTest tests[] = {
        scene_test(a_bad_tag_never_takes_a_pod_down),
        cmocka_unit_test(a_slow_registry_does_not_prolong_the_outage),
        cmocka_unit_test_setup_teardown(each_node_is_asked_once, setup_slow, teardown),
        scene_test(a_quota_is_no_hindrance_where_it_need_not_be),
        scene_test(a_quota_is_one_where_it_is_required),
        scene_test(never_is_as_it_was),
        scene_test(its_deadline_goes_on_over_a_restart),
        scene_test(what_a_deleted_set_left_is_removed_at_start),
        cmocka_unit_test(a_set_that_is_deleted_leaves_nothing),
        cmocka_unit_test(killed_at_any_moment_nothing_is_left_behind),
        cmocka_unit_test(answers_that_are_lost_or_late_leave_nothing_behind),
    };
    return cmocka_run_group_tests_name("prefetch of the controller", tests, NULL, NULL);
}
