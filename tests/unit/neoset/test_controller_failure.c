/* SPDX-License-Identifier: Apache-2.0
 *
 * Updates that do not come up: the deadline, the words, the retries and their end, and what clears it. */
#include "controller_scene.h"

#include "kube/object.h"

static char *uid_of(struct scene *scene, const char *pod_path)
{
    CLEANUP_JSON cJSON *pod = sim_server_get(scene->server, pod_path);
    return xstrdup_or_null(json_path_str(pod, "metadata", "uid", NULL));
}

static char *status_text(struct scene *scene, const char *key)
{
    CLEANUP_JSON cJSON *set = sim_server_get(scene->server, SET_PATH);
    const char *text = json_path_str(set, "status", key, NULL);
    return xstrdup(text ? text : "");
}

static void assert_says(struct scene *scene, const char *words)
{
    CLEANUP_FREE char *message = status_text(scene, "message");
    if (!strstr(message, words))
        fail_msg("the message is '%s', without '%s'", message, words);
}

/* A running set whose next template cannot come up in its 20 s. */
static void run_and_break(struct scene *scene, const char *image)
{
    create_set(scene, 3, 1, "mysql:8.0");
    patch_set(scene,
              "{\"spec\":{\"updateStrategy\":{\"inPlaceUpdateStrategy\":{\"readinessTimeoutSeconds\":20,"
              "\"prefetch\":\"Never\"}},\"template\":{\"spec\":{\"terminationGracePeriodSeconds\":10}}}}");
    start(scene);
    wait_for(scene, "Idle", "mysql:8.0", 3, 60 * US_PER_S);
    pass(scene, 90 * US_PER_S);
    set_image(scene, image);
}

/* How many pods named mysql-2 there were, from the journal. */
static int made_anew(struct scene *scene)
{
    return atoi(sql(scene,
                    "SELECT count(*) FROM entry WHERE kind = 'applied' AND step IN (SELECT seq FROM entry "
                    "WHERE kind = 'intent' AND action = 'delete' AND object = 'Pod')"));
}

static void it_is_tried_three_times_and_then_stands_still_with_the_way_out(void **state)
{
    struct scene *scene = *state;
    run_and_break(scene, "mysql:none1");
    CLEANUP_FREE char *first = uid_of(scene, PODS_PATH "/mysql-2");
    pass(scene, 25 * US_PER_S);
    CLEANUP_FREE char *phase = status_text(scene, "phase");
    assert_string_equal(phase, "Canary"); /* 20 s, and 10 s for the one before to stop */
    pass(scene, 8 * US_PER_S);
    CLEANUP_FREE char *failed = status_text(scene, "phase");
    assert_string_equal(failed, "Failed");
    assert_says(scene,
                "mysql-2 is updated, and does not come up: mysql:none1 of container mysql cannot be pulled");
    assert_says(scene, "made anew after 10 s (try 1 of 3)");
    CLEANUP_FREE char *same = uid_of(scene, PODS_PATH "/mysql-2");
    assert_string_equal(same, first);
    pass(scene, 300 * US_PER_S);
    assert_int_equal(made_anew(scene), 3);
    assert_says(scene, "It was made anew 3 times in vain");
    assert_says(scene, "neosetctl undo mysql -n default");
    assert_string_equal(sql(scene, "SELECT outcome FROM operation WHERE kind = 'rollout'"), "failed");
    CLEANUP_FREE char *last = uid_of(scene, PODS_PATH "/mysql-2");
    assert_string_not_equal(last, first);
    pass(scene, 600 * US_PER_S);
    assert_int_equal(made_anew(scene), 3);
    /* The others never noticed. */
    CLEANUP_JSON cJSON *set = sim_server_get(scene->server, SET_PATH);
    assert_int_equal(json_int64_or(json_get(set, "status"), "readyReplicas", 0), 2);
    assert_true(set_condition_is(scene, "Stalled", "True"));
    /* A good template heals it without a person deleting a pod. */
    set_image(scene, "mysql:8.1");
    wait_for(scene, "Completed", "mysql:8.1", 3, 240 * US_PER_S);
    pass(scene, US_PER_S);
    assert_nothing_is_open(scene);
    assert_history_agrees(scene);
}

static void neither_restarts_nor_kills_give_it_more_time_or_more_tries(void **state)
{
    struct scene *scene = *state;
    run_and_break(scene, "mysql:none1");
    for (int i = 0; i < 30; i++) {
        pass(scene, 25 * US_PER_S + i * 700 * US_PER_MS);
        kill_program(&scene->program);
        pass(scene, 2 * US_PER_S);
        start(scene);
        pass(scene, 62 * US_PER_S); /* no wait ends within 60 s of a start */
    }
    pass(scene, 400 * US_PER_S);
    assert_int_equal(made_anew(scene), 3);
    assert_says(scene, "in vain");
    set_image(scene, "mysql:8.0");
    wait_for(scene, "Completed", "mysql:8.0", 3, 240 * US_PER_S);
    pass(scene, US_PER_S);
    assert_nothing_is_open(scene);
    assert_history_agrees(scene);
}

static void pause_and_resume_try_it_again_from_the_start(void **state)
{
    struct scene *scene = *state;
    run_and_break(scene, "mysql:none1");
    pass(scene, 400 * US_PER_S);
    assert_int_equal(made_anew(scene), 3);
    patch_set(scene, "{\"spec\":{\"updateStrategy\":{\"pause\":true}}}");
    pass(scene, 120 * US_PER_S);
    CLEANUP_FREE char *paused = status_text(scene, "phase");
    assert_string_equal(paused, "Paused");
    assert_int_equal(made_anew(scene), 3);
    patch_set(scene, "{\"spec\":{\"updateStrategy\":{\"pause\":false}}}");
    pass(scene, 10 * US_PER_S);
    CLEANUP_FREE char *phase = status_text(scene, "phase");
    assert_string_equal(phase, "Canary");
    pass(scene, 400 * US_PER_S);
    assert_int_equal(made_anew(scene), 6);
}

static void a_pause_makes_the_deadline_stand_still(void **state)
{
    struct scene *scene = *state;
    run_and_break(scene, "mysql:none1");
    pass(scene, 15 * US_PER_S);
    patch_set(scene, "{\"spec\":{\"updateStrategy\":{\"pause\":true}}}");
    pass(scene, 300 * US_PER_S);
    patch_set(scene, "{\"spec\":{\"updateStrategy\":{\"pause\":false}}}");
    pass(scene, 10 * US_PER_S);
    CLEANUP_FREE char *phase = status_text(scene, "phase");
    assert_string_equal(phase, "Canary");
    pass(scene, 10 * US_PER_S);
    CLEANUP_FREE char *failed = status_text(scene, "phase");
    assert_string_equal(failed, "Failed");
}

/* Nobody sees what becomes of the pod: that is not the pod's fault. */
static void without_a_watch_the_deadline_stands_still(void **state)
{
    struct scene *scene = *state;
    /* 15 s after the patch the stream ends, and there is no other for ten minutes. */
    assert_int_equal(kubesim_fault_add(sim_server_kubesim(scene->server),
                                       "cut=107s,resource=pods;500,verb=watch,resource=pods,nth=2,times=500;"
                                       "500,verb=list,resource=pods,nth=2,times=500",
                                       NULL),
                     0);
    run_and_break(scene, "mysql:none1");
    pass(scene, 600 * US_PER_S);
    /* By the journal: so much of its time was spent. */
    CLEANUP_FREE char *spent =
        xstrdup(sql(scene, "SELECT detail ->> 'spent_us' FROM entry WHERE kind = 'wait_hold' LIMIT 1"));
    assert_in_range(atoll(spent), 14 * US_PER_S, 30 * US_PER_S);
    assert_string_equal(sql(scene,
                            "SELECT count(*) FROM entry WHERE kind = 'wait_end' AND action = 'ready' AND "
                            "detail ->> 'outcome' = 'dropped' AND seq < (SELECT min(seq) FROM entry WHERE "
                            "kind = 'wait_begin' AND action = 'retry')"),
                        "0");
}

static void more_time_is_granted_to_a_pod_that_already_waits(void **state)
{
    struct scene *scene = *state;
    run_and_break(scene, "mysql:none1");
    pass(scene, 25 * US_PER_S);
    patch_set(
        scene,
        "{\"spec\":{\"updateStrategy\":{\"inPlaceUpdateStrategy\":{\"readinessTimeoutSeconds\":200}}}}");
    pass(scene, 100 * US_PER_S);
    CLEANUP_FREE char *phase = status_text(scene, "phase");
    assert_string_equal(phase, "Canary");
}

static void a_crash_loop_is_told_in_words_and_a_way_back_heals_it(void **state)
{
    struct scene *scene = *state;
    run_and_break(scene, "mysql:crash1");
    pass(scene, 40 * US_PER_S);
    assert_says(scene, "container mysql keeps ending (exit code 3)");
    set_image(scene, "mysql:8.0");
    wait_for(scene, "Completed", "mysql:8.0", 3, 600 * US_PER_S);
    pass(scene, US_PER_S);
    assert_nothing_is_open(scene);
}

static void behave(struct scene *scene, const char *pod_path, const char *behaviour)
{
    CLEANUP_FREE char *text =
        xasprintf("{\"metadata\":{\"annotations\":{\"kubesim.neo.io/behaviour\":\"%s\"}}}", behaviour);
    merge(scene, pod_path, text);
}

/* How often the message changed, looked at ten times a second. */
static int changes_of_message(struct scene *scene, int seconds)
{
    int changes = 0;
    CLEANUP_FREE char *last = status_text(scene, "message");
    for (int i = 0; i < seconds * 10; i++) {
        pass(scene, 100 * US_PER_MS);
        CLEANUP_FREE char *message = status_text(scene, "message");
        changes += strcmp(message, last) != 0;
        str_replace(&last, message);
    }
    return changes;
}

/* It runs, ends, waits and runs again: the sentence is the same all the time, but for the kubelet's back-off
 * where that is told: it grows five times. */
static void a_crash_loop_says_the_same_in_each_of_its_rounds(void **state)
{
    struct scene *scene = *state;
    run_and_break(scene, "mysql:8.1");
    behave(scene, PODS_PATH "/mysql-2", "crash");
    patch_set(
        scene,
        "{\"spec\":{\"updateStrategy\":{\"inPlaceUpdateStrategy\":{\"readinessTimeoutSeconds\":3600}}}}");
    pass(scene, 45 * US_PER_S);
    assert_says(scene, "container mysql keeps ending (exit code 3)");
    assert_in_range(changes_of_message(scene, 600), 0, 5);
    assert_says(scene, "container mysql keeps ending (exit code 3)");
    /* It is over when a run is longer. */
    behave(scene, PODS_PATH "/mysql-2", "ok");
    pass(scene, 340 * US_PER_S);
    assert_says(scene, "mysql-2 is ready; it counts as available when it stays so for its window");
    wait_for(scene, "Completed", "mysql:8.1", 3, 600 * US_PER_S);
}

static void kill_container(struct scene *scene)
{
    int64_t now_us = kubesim_now_us(sim_server_kubesim(scene->server));
    kubelet_kill_container(sim_server_kubelet(scene->server), "default", "mysql-2", "mysql", now_us);
}

/* Between two of its ends it is ready, and the words stay for a while: they are true at both times. */
static void a_pod_that_keeps_ending_is_not_called_unready_while_it_is_ready(void **state)
{
    struct scene *scene = *state;
    int told = 0;
    create_set(scene, 3, 1, "mysql:8.0");
    start(scene);
    wait_for(scene, "Idle", "mysql:8.0", 3, 60 * US_PER_S);
    pass(scene, 90 * US_PER_S);
    for (int tenth = 0; tenth < 1500; tenth++) {
        if (tenth % 200 == 0)
            kill_container(scene);
        pass(scene, 100 * US_PER_MS);
        CLEANUP_FREE char *message = status_text(scene, "message");
        CLEANUP_JSON cJSON *pod = sim_server_get(scene->server, PODS_PATH "/mysql-2");
        const cJSON *ready = kube_object_condition(pod, "Ready");
        bool is_ready = str_equal(json_str(ready, "status"), "True");
        bool keeps_ending = strstr(message, "keeps ending") != NULL;
        if (is_ready && keeps_ending && strstr(message, "is not ready"))
            fail_msg("%s", message);
        told += is_ready && keeps_ending && strstr(message, "mysql-2 does not stay up: ");
    }
    assert_true(told > 0);
}

static void a_pod_that_comes_up_after_all_clears_it(void **state)
{
    struct scene *scene = *state;
    run_and_break(scene, "mysql:8.0");
    behave(scene, PODS_PATH "/mysql-2", "never-ready");
    set_image(scene, "mysql:8.1");
    pass(scene, 36 * US_PER_S);
    CLEANUP_FREE char *phase = status_text(scene, "phase");
    assert_string_equal(phase, "Failed");
    behave(scene, PODS_PATH "/mysql-2", "ok");
    wait_for(scene, "Completed", "mysql:8.1", 3, 240 * US_PER_S);
    assert_int_equal(made_anew(scene), 0);
    assert_restarts(scene, 3, 1);
    pass(scene, US_PER_S);
    assert_nothing_is_open(scene);
}

/* Its template fits no node: the pod that was made for it waits for ever, and another template frees it at
 * once. */
static void a_pending_pod_of_a_template_that_was_given_up_is_replaced_at_once(void **state)
{
    struct scene *scene = *state;
    create_set(scene, 3, 1, "mysql:8.0");
    patch_set(scene, "{\"spec\":{\"updateStrategy\":{\"type\":\"Recreate\"}}}");
    start(scene);
    wait_for(scene, "Idle", "mysql:8.0", 3, 60 * US_PER_S);
    patch_set(scene, "{\"spec\":{\"template\":{\"metadata\":{\"annotations\":{\"kubesim.neo.io/behaviour\":"
                     "\"pending\"}}}}}");
    pass(scene, 30 * US_PER_S);
    CLEANUP_JSON cJSON *pending = sim_server_get(scene->server, PODS_PATH "/mysql-2");
    assert_null(json_path_str(pending, "spec", "nodeName", NULL));
    patch_set(scene, "{\"spec\":{\"template\":{\"metadata\":{\"annotations\":null}}}}");
    wait_for(scene, "Completed", "mysql:8.0", 3, 30 * US_PER_S);
    pass(scene, US_PER_S);
    assert_nothing_is_open(scene);
    assert_history_agrees(scene);
}

/* Killed twice while it waits: the third run still knows when its time is over, though nothing happens. */
static void a_deadline_is_kept_by_runs_in_which_nothing_happens(void **state)
{
    struct scene *scene = *state;
    run_and_break(scene, "mysql:none1");
    pass(scene, 10 * US_PER_S);
    for (int i = 0; i < 2; i++) {
        kill_program(&scene->program);
        pass(scene, 5 * US_PER_S);
        start(scene);
        pass(scene, 5 * US_PER_S);
    }
    pass(scene, 70 * US_PER_S);
    CLEANUP_FREE char *phase = status_text(scene, "phase");
    assert_string_equal(phase, "Failed");
}

/* Both are outside of the range, and neither will ever be available. */
static void broken_pods_that_are_scaled_away_do_not_wait_for_each_other(void **state)
{
    struct scene *scene = *state;
    create_set(scene, 1, 1, "mysql:8.0");
    patch_set(scene, "{\"spec\":{\"podManagementPolicy\":\"OrderedReady\"}}");
    start(scene);
    wait_for(scene, "Idle", "mysql:8.0", 1, 60 * US_PER_S);
    patch_set(scene, "{\"spec\":{\"podManagementPolicy\":\"Parallel\"}}");
    patch_set(scene, "{\"spec\":{\"replicas\":3}}");
    wait_for(scene, "Idle", "mysql:8.0", 3, 60 * US_PER_S);
    behave(scene, PODS_PATH "/mysql-1", "never-ready");
    behave(scene, PODS_PATH "/mysql-2", "never-ready");
    pass(scene, 10 * US_PER_S);
    patch_set(scene, "{\"spec\":{\"podManagementPolicy\":\"OrderedReady\",\"replicas\":1}}");
    wait_for(scene, "Idle", "mysql:8.0", 1, 120 * US_PER_S);
    pass(scene, US_PER_S);
    assert_nothing_is_open(scene);
}

/* The pod of the target before does not go: what was tried for it says nothing of the next one. */
static void tries_of_another_target_do_not_count(void **state)
{
    struct scene *scene = *state;
    run_and_break(scene, "mysql:none1");
    behave(scene, PODS_PATH "/mysql-2", "node-lost");
    pass(scene, 60 * US_PER_S); /* deleted for its first retry, and terminating for ever */
    assert_int_equal(made_anew(scene), 1);
    set_image(scene, "mysql:8.1");
    pass(scene, 5 * US_PER_S);
    CLEANUP_FREE char *phase = status_text(scene, "phase");
    assert_string_equal(phase, "Canary");
}

/* --- history -------------------------------------------------------------------------------------------- */

static const char outcome_of_broken[] =
    "SELECT outcome FROM operation WHERE kind = 'rollout' AND go_to LIKE 'mysql:none%'";

static void assert_history_says_failed(struct scene *scene)
{
    assert_string_equal(sql(scene, outcome_of_broken), "failed");
    const char *why = sql(scene, "SELECT reason FROM entry WHERE kind = 'end' AND action = 'failed'");
    if (!strstr(why, "does not come up: mysql:none1 of container mysql cannot be pulled"))
        fail_msg("history says '%s'", why);
    assert_string_equal(sql(scene, "SELECT count(*) FROM operation WHERE outcome = 'failed'"), "1");
    assert_history_agrees(scene);
}

static void one_that_failed_and_was_taken_back_stays_failed_in_history(void **state)
{
    struct scene *scene = *state;
    run_and_break(scene, "mysql:none1");
    pass(scene, 40 * US_PER_S);
    set_image(scene, "mysql:8.0");
    wait_for(scene, "Completed", "mysql:8.0", 3, 240 * US_PER_S);
    assert_history_says_failed(scene);
}

static void one_that_failed_and_was_replaced_by_a_new_template_stays_failed_in_history(void **state)
{
    struct scene *scene = *state;
    run_and_break(scene, "mysql:none1");
    pass(scene, 40 * US_PER_S);
    set_image(scene, "mysql:8.1");
    wait_for(scene, "Completed", "mysql:8.1", 3, 240 * US_PER_S);
    assert_history_says_failed(scene);
}

static void one_that_had_time_left_is_superseded(void **state)
{
    struct scene *scene = *state;
    run_and_break(scene, "mysql:none1");
    pass(scene, 10 * US_PER_S);
    set_image(scene, "mysql:8.1");
    wait_for(scene, "Completed", "mysql:8.1", 3, 240 * US_PER_S);
    assert_string_equal(sql(scene, outcome_of_broken), "superseded");
    assert_string_equal(sql(scene, "SELECT count(*) FROM operation WHERE outcome = 'failed'"), "0");
}

/* --- volumes -------------------------------------------------------------------------------------------- */

static int count_events(struct scene *scene, const char *reason)
{
    CLEANUP_JSON cJSON *list = sim_server_get(scene->server, "/api/v1/namespaces/default/events");
    int count = 0;
    const cJSON *event = NULL;
    cJSON_ArrayForEach (event, json_get(list, "items"))
        if (str_equal(json_str(event, "reason"), reason))
            count += (int)json_int64_or(event, "count", 1);
    return count;
}

static void create_on_storage(struct scene *scene, const char *path, const char *text)
{
    assert_int_equal(sim_server_ask(scene->server, "POST", path, "application/json", text, NULL), 201);
}

/* Report 32: however long it stands still, and whatever moves meanwhile. */
static void a_volume_that_cannot_grow_is_one_event(void **state)
{
    struct scene *scene = *state;
    kubesim_run_volumes(sim_server_kubesim(scene->server));
    create_on_storage(
        scene, "/apis/storage.k8s.io/v1/storageclasses",
        "{\"metadata\":{\"name\":\"std\",\"annotations\":{\"kubesim.neo.io/resizer\":\"max=5Gi\"}},"
        "\"provisioner\":\"x\",\"allowVolumeExpansion\":true}");
    create_on_storage(
        scene, SETS_PATH,
        "{\"apiVersion\":\"apps.neo.io/"
        "v1alpha1\",\"kind\":\"NeoSet\",\"metadata\":{\"name\":\"mysql\"},\"spec\":{"
        "\"replicas\":2,\"serviceName\":\"mysql\",\"selector\":{\"matchLabels\":{\"app\":\"mysql\"}},"
        "\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"data\"},\"spec\":{\"accessModes\":["
        "\"ReadWriteOnce\"],"
        "\"storageClassName\":\"std\",\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}],"
        "\"template\":{\"metadata\":{\"labels\":{\"app\":\"mysql\"}},\"spec\":{\"containers\":[{\"name\":"
        "\"mysql\",\"image\":\"mysql:8.0\"}]}}}}");
    start(scene);
    wait_for(scene, "Idle", "mysql:8.0", 2, 60 * US_PER_S);
    CLEANUP_JSON cJSON *set = sim_server_get(scene->server, SET_PATH);
    cJSON *template = json_path(set, "spec", "volumeClaimTemplates", NULL)->child;
    json_set_str(json_path(template, "spec", "resources", "requests", NULL), "storage", "10Gi");
    CLEANUP_FREE char *larger = json_print(set);
    merge(scene, SET_PATH, larger);
    pass(scene, 60 * US_PER_S);
    assert_true(set_condition_is(scene, "VolumesConverged", "False"));
    assert_int_equal(count_events(scene, "VolumeGrowthFailed"), 1);
    for (int i = 0; i < 60; i++) {
        CLEANUP_FREE char *label = xasprintf("{\"metadata\":{\"labels\":{\"i\":\"%d\"}}}", i);
        patch_set(scene, label);
        pass(scene, 60 * US_PER_S);
    }
    assert_int_equal(count_events(scene, "VolumeGrowthFailed"), 1);
}

int main(void)
{
    use_memory_for_journals();
    const struct CMUnitTest tests[] = {
        scene_test(it_is_tried_three_times_and_then_stands_still_with_the_way_out),
        scene_test(neither_restarts_nor_kills_give_it_more_time_or_more_tries),
        scene_test(pause_and_resume_try_it_again_from_the_start),
        scene_test(a_pause_makes_the_deadline_stand_still),
        scene_test(without_a_watch_the_deadline_stands_still),
        scene_test(more_time_is_granted_to_a_pod_that_already_waits),
        scene_test(a_crash_loop_says_the_same_in_each_of_its_rounds),
        scene_test(a_pod_that_keeps_ending_is_not_called_unready_while_it_is_ready),
        scene_test(a_crash_loop_is_told_in_words_and_a_way_back_heals_it),
        scene_test(a_deadline_is_kept_by_runs_in_which_nothing_happens),
        scene_test(broken_pods_that_are_scaled_away_do_not_wait_for_each_other),
        scene_test(tries_of_another_target_do_not_count),
        scene_test(a_pending_pod_of_a_template_that_was_given_up_is_replaced_at_once),
        scene_test(a_pod_that_comes_up_after_all_clears_it),
        scene_test(one_that_failed_and_was_taken_back_stays_failed_in_history),
        scene_test(one_that_failed_and_was_replaced_by_a_new_template_stays_failed_in_history),
        scene_test(one_that_had_time_left_is_superseded),
        scene_test(a_volume_that_cannot_grow_is_one_event),
    };
    return cmocka_run_group_tests_name("failure", tests, NULL, NULL);
}
