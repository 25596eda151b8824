/* SPDX-License-Identifier: Apache-2.0
 *
 * What the simulated kubelet does with pods, behaviour by behaviour, under virtual time. */
#include "kubelet_world.h"

#include "kube/object.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

static const struct kubelet_options plain = {.seed = 7};

/* A pod of one container "m"; more goes into the metadata and into the spec (each "" or ",..."). */
static void create(struct world *world, const char *name, const char *image, const char *meta,
                   const char *spec)
{
    CLEANUP_FREE char *body = xasprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\"%s},\"spec\":{\"containers\":"
        "[{\"name\":\"m\",\"image\":\"%s\"}],\"terminationGracePeriodSeconds\":5%s}}",
        name, meta, image, spec);
    world_create_pod(world, body);
}

static void create_behaving(struct world *world, const char *name, const char *image, const char *behaviour)
{
    CLEANUP_FREE char *meta = xasprintf(",\"annotations\":{\"kubesim.neo.io/behaviour\":\"%s\"}", behaviour);
    create(world, name, image, meta, "");
}

static const char gate[] = ",\"readinessGates\":[{\"conditionType\":\"apps.neo.io/in-place-ready\"}]";

static int64_t now_us(const struct world *world)
{
    return world->now_us - WORLD_EPOCH_US;
}

static void run_for(struct world *world, int64_t duration_us)
{
    world_run_until(world, now_us(world) + duration_us);
}

static bool is_ready(struct world *world, const char *name)
{
    CLEANUP_JSON cJSON *pod = world_pod(world, name);
    return str_equal(world_condition_status(pod, "Ready"), "True");
}

static char *container_text(struct world *world, const char *name, const char *key)
{
    CLEANUP_JSON cJSON *pod = world_pod(world, name);
    return xstrdup_or_null(json_str(world_container(pod), key));
}

static int64_t restarts(struct world *world, const char *name)
{
    CLEANUP_JSON cJSON *pod = world_pod(world, name);
    return json_int64_or(world_container(pod), "restartCount", -1);
}

static char *waiting_reason(struct world *world, const char *name)
{
    CLEANUP_JSON cJSON *pod = world_pod(world, name);
    return xstrdup_or_null(json_path_str(world_container(pod), "state", "waiting", "reason", NULL));
}

static char *phase(struct world *world, const char *name)
{
    CLEANUP_JSON cJSON *pod = world_pod(world, name);
    return xstrdup_or_null(json_path_str(pod, "status", "phase", NULL));
}

static void assert_text(char *owned, const char *expected)
{
    assert_non_null(owned);
    assert_string_equal(owned, expected);
    free(owned);
}

static void remove_pod(struct world *world, const char *name)
{
    CLEANUP_FREE char *path = xasprintf("/api/v1/namespaces/default/pods/%s", name);
    assert_int_equal(world_ask(world, "DELETE", path, NULL, NULL, NULL), 200);
}

static bool exists(struct world *world, const char *name)
{
    CLEANUP_JSON cJSON *pod = world_pod(world, name);
    return pod != NULL;
}

/* --- the ordinary life
 * ------------------------------------------------------------------------------------------ */

static void a_created_pod_is_bound_runs_and_becomes_ready(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create(world, "p", "app:v1", "", "");
    run_for(world, US_PER_S);
    CLEANUP_JSON cJSON *pod = world_pod(world, "p");
    assert_string_equal(json_path_str(pod, "spec", "nodeName", NULL), "kubesim-node-0");
    assert_string_equal(json_path_str(pod, "status", "phase", NULL), "Running");
    static const char *const types[] = {"PodScheduled", "PodReadyToStartContainers", "Initialized",
                                        "ContainersReady", "Ready"};
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        const cJSON *condition = kube_object_condition(pod, types[i]);
        assert_string_equal(json_str(condition, "status"), "True");
        assert_non_null(json_str(condition, "lastTransitionTime"));
        assert_int_equal(json_int64_or(condition, "observedGeneration", 0), 1);
    }
    assert_int_equal(json_int64_or(json_get(pod, "status"), "observedGeneration", 0), 1);
    assert_non_null(json_path_str(pod, "status", "podIP", NULL));
    assert_non_null(json_path_str(pod, "status", "hostIP", NULL));
    assert_non_null(json_path_str(pod, "status", "startTime", NULL));
    assert_string_equal(json_str(world_container(pod), "image"), "docker.io/library/app:v1");
    assert_true(str_starts_with(json_str(world_container(pod), "imageID"), "sha256:"));
    world_free(world);
}

static void a_changed_image_restarts_the_container_in_place(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create(world, "p", "app:v1", "", "");
    run_for(world, US_PER_S);
    CLEANUP_JSON cJSON *before = world_pod(world, "p");
    world_set_image(world, "p", "containers", "m", "app:v2");
    run_for(world, 2 * US_PER_S);
    CLEANUP_JSON cJSON *after = world_pod(world, "p");
    static const char *const kept[] = {"podIP", "hostIP", "startTime"};
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
        assert_string_equal(json_path_str(before, "status", kept[i], NULL),
                            json_path_str(after, "status", kept[i], NULL));
    const cJSON *old = world_container(before);
    const cJSON *new = world_container(after);
    assert_string_not_equal(json_str(old, "containerID"), json_str(new, "containerID"));
    assert_string_not_equal(json_str(old, "imageID"), json_str(new, "imageID"));
    assert_int_equal(json_int64_or(new, "restartCount", 0), 1);
    assert_string_equal(json_path_str(new, "lastState", "terminated", "containerID", NULL),
                        json_str(old, "containerID"));
    assert_int_equal(json_int64_or(json_get(after, "status"), "observedGeneration", 0), 2);
    world_free(world);
}

static void a_deleted_pod_goes_when_its_containers_have_stopped(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create(world, "p", "app:v1", "", "");
    run_for(world, US_PER_S);
    remove_pod(world, "p");
    assert_true(exists(world, "p"));
    run_for(world, 2 * US_PER_S);
    assert_false(exists(world, "p"));
    assert_int_equal(kubelet_pod_count(kubelet_attach_kubelet(world->kubelet)), 0);
    world_free(world);
}

static void a_deletion_waits_for_the_grace_period_of_a_slow_pod_and_no_longer(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create_behaving(world, "p", "app:v1", "slow-stop");
    run_for(world, US_PER_S);
    remove_pod(world, "p");
    run_for(world, 4500 * US_PER_MS);
    assert_true(exists(world, "p"));
    run_for(world, 1500 * US_PER_MS);
    assert_false(exists(world, "p"));
    world_free(world);
}

static void a_pod_deleted_while_its_image_is_pulled_goes_after_the_pull(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create(world, "p", "registry.example/slow:v1", "", "");
    run_for(world, 500 * US_PER_MS);
    remove_pod(world, "p");
    run_for(world, US_PER_S);
    assert_true(exists(world, "p"));
    run_for(world, 10 * US_PER_S);
    assert_false(exists(world, "p"));
    world_free(world);
}

static void a_pod_of_another_name_and_uid_after_a_deletion_is_a_new_one(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create(world, "p", "app:v1", "", "");
    run_for(world, US_PER_S);
    char *first = container_text(world, "p", "containerID");
    remove_pod(world, "p");
    run_for(world, 2 * US_PER_S);
    create(world, "p", "app:v1", "", "");
    run_for(world, US_PER_S);
    char *second = container_text(world, "p", "containerID");
    assert_string_not_equal(first, second);
    assert_int_equal(restarts(world, "p"), 0);
    free(first);
    free(second);
    world_free(world);
}

static void a_container_killed_from_outside_comes_back(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create(world, "p", "app:v1", "", "");
    run_for(world, US_PER_S);
    struct kubelet *kubelet = kubelet_attach_kubelet(world->kubelet);
    assert_true(kubelet_kill_container(kubelet, "default", "p", "m", world->now_us));
    assert_false(kubelet_kill_container(kubelet, "default", "p", "none", world->now_us));
    run_for(world, US_PER_S);
    assert_int_equal(restarts(world, "p"), 1);
    assert_true(is_ready(world, "p"));
    world_free(world);
}

/* --- the gate
 * --------------------------------------------------------------------------------------------------- */

static void a_missing_gate_keeps_ready_false(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create(world, "p", "app:v1", "", gate);
    run_for(world, 5 * US_PER_S);
    CLEANUP_JSON cJSON *pod = world_pod(world, "p");
    assert_string_equal(world_condition_status(pod, "Ready"), "False");
    assert_string_equal(json_str(kube_object_condition(pod, "Ready"), "reason"), "ReadinessGatesNotReady");
    assert_string_equal(world_condition_status(pod, "ContainersReady"), "True");
    world_free(world);
}

static void ready_follows_the_gate_within_two_seconds(void **state)
{
    (void)state;
    struct kubelet_options real = plain;
    kubelet_options_real(&real);
    real.pull_us = US_PER_MS;
    for (int turn = 0; turn < 20; turn++) {
        real.relist_phase_us = turn * 50 * US_PER_MS;
        struct world *world = world_make(&real);
        create(world, "p", "app:v1", "", gate);
        run_for(world, 5 * US_PER_S + turn * 37 * US_PER_MS);
        static const char *const statuses[] = {"True", "False", "True"};
        for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
            world_set_gate(world, "p", statuses[i]);
            run_for(world, 2100 * US_PER_MS);
            assert_int_equal(is_ready(world, "p"), str_equal(statuses[i], "True"));
        }
        world_free(world);
    }
}

static void foreign_conditions_stay(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create(world, "p", "app:v1", "", gate);
    run_for(world, US_PER_S);
    world_patch(world, "p", "/status",
                "{\"status\":{\"conditions\":[{\"type\":\"example.org/"
                "mine\",\"status\":\"True\",\"message\":\"hi\"}]}}");
    world_set_gate(world, "p", "True");
    world_set_image(world, "p", "containers", "m", "app:v2");
    run_for(world, 3 * US_PER_S);
    CLEANUP_JSON cJSON *pod = world_pod(world, "p");
    assert_string_equal(json_str(kube_object_condition(pod, "example.org/mine"), "message"), "hi");
    assert_string_equal(world_condition_status(pod, "apps.neo.io/in-place-ready"), "True");
    assert_string_equal(world_condition_status(pod, "Ready"), "True");
    world_free(world);
}

/* --- behaviours
 * ------------------------------------------------------------------------------------------------- */

static void a_missing_image_stops_the_old_container_first(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create(world, "p", "app:v1", "", "");
    run_for(world, US_PER_S);
    char *id = container_text(world, "p", "containerID");
    world_set_image(world, "p", "containers", "m", "app:none");
    run_for(world, 600 * US_PER_MS);
    assert_text(waiting_reason(world, "p"), "ErrImagePull");
    assert_false(is_ready(world, "p"));
    assert_text(container_text(world, "p", "containerID"), id);
    assert_int_equal(restarts(world, "p"), 0);
    free(id);
    world_set_image(world, "p", "containers", "m", "app:v2");
    run_for(world, 3 * US_PER_S);
    assert_true(is_ready(world, "p"));
    assert_int_equal(restarts(world, "p"), 1);
    world_free(world);
}

static void fail_pull_as_a_behaviour_leaves_a_new_pod_pending(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create_behaving(world, "p", "app:v1", "fail-pull");
    run_for(world, 15 * US_PER_S);
    assert_text(phase(world, "p"), "Pending");
    char *reason = waiting_reason(world, "p");
    assert_true(str_equal(reason, "ErrImagePull") || str_equal(reason, "ImagePullBackOff"));
    free(reason);
    world_free(world);
}

/* Back-offs are 10 s, 20 s ..., each counted from the end of the container, and end up to half later. */
static void a_crashing_container_waits_longer_each_time(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create(world, "p", "app:crash", "", "");
    run_for(world, 4 * US_PER_S);
    assert_int_equal(restarts(world, "p"), 1);
    run_for(world, 8 * US_PER_S);
    assert_int_equal(restarts(world, "p"), 1);
    run_for(world, 9 * US_PER_S);
    assert_int_equal(restarts(world, "p"), 2);
    run_for(world, 13 * US_PER_S);
    assert_int_equal(restarts(world, "p"), 2);
    assert_text(waiting_reason(world, "p"), "CrashLoopBackOff");
    run_for(world, 20 * US_PER_S);
    assert_int_equal(restarts(world, "p"), 3);
    world_free(world);
}

static void a_new_image_starts_at_once_and_going_back_waits(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create(world, "p", "app:crash", "", "");
    run_for(world, 6 * US_PER_S);
    assert_int_equal(restarts(world, "p"), 1);
    assert_false(is_ready(world, "p"));
    world_set_image(world, "p", "containers", "m", "app:v2");
    run_for(world, US_PER_S);
    assert_true(is_ready(world, "p"));
    world_set_image(world, "p", "containers", "m", "app:crash");
    run_for(world, 4 * US_PER_S);
    /* Going back to an image that was started lately waits. */
    world_set_image(world, "p", "containers", "m", "app:v2");
    run_for(world, 3 * US_PER_S);
    assert_false(is_ready(world, "p"));
    run_for(world, 15 * US_PER_S);
    assert_true(is_ready(world, "p"));
    world_free(world);
}

static void a_pod_that_never_becomes_ready_runs_nevertheless(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create_behaving(world, "p", "app:v1", "never-ready");
    create(world, "q", "app:unready", "", "");
    run_for(world, 10 * US_PER_S);
    assert_text(phase(world, "p"), "Running");
    assert_false(is_ready(world, "p"));
    assert_false(is_ready(world, "q"));
    world_free(world);
}

static void same_digest_and_rename_show_in_the_status(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create_behaving(world, "p", "app:v1", "same-digest");
    create_behaving(world, "q", "app:v1", "rename");
    run_for(world, US_PER_S);
    char *id = container_text(world, "p", "imageID");
    assert_text(container_text(world, "q", "image"), "docker.io/library/app:renamed");
    world_set_image(world, "p", "containers", "m", "app:v2");
    run_for(world, 2 * US_PER_S);
    assert_int_equal(restarts(world, "p"), 1);
    assert_text(container_text(world, "p", "imageID"), id);
    free(id);
    world_free(world);
}

static void a_given_digest_is_reported(void **state)
{
    (void)state;
    const struct kubelet_digest digests[] = {{"app:v1", "sha256:11"}, {"app:v2", "sha256:22"}};
    struct kubelet_options options = plain;
    options.digests = digests;
    options.digest_count = ARRAY_SIZE(digests);
    struct world *world = world_make(&options);
    create(world, "p", "app:v2", "", "");
    run_for(world, US_PER_S);
    assert_text(container_text(world, "p", "imageID"), "sha256:22");
    world_free(world);
}

static void an_evicted_pod_fails_and_stays(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create_behaving(world, "p", "app:v1", "evict");
    run_for(world, US_PER_S);
    assert_text(phase(world, "p"), "Running");
    run_for(world, 5 * US_PER_S);
    CLEANUP_JSON cJSON *pod = world_pod(world, "p");
    assert_string_equal(json_path_str(pod, "status", "phase", NULL), "Failed");
    assert_string_equal(json_path_str(pod, "status", "reason", NULL), "Evicted");
    remove_pod(world, "p");
    run_for(world, US_PER_S);
    assert_false(exists(world, "p"));
    world_free(world);
}

static void a_lost_node_says_nothing_and_its_pods_stay_terminating(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create(world, "p", "app:v1", "", "");
    run_for(world, US_PER_S);
    world_patch(world, "p", "",
                "{\"metadata\":{\"annotations\":{\"kubesim.neo.io/behaviour\":\"node-lost\"}}}");
    world_set_image(world, "p", "containers", "m", "app:v2");
    run_for(world, 30 * US_PER_S);
    assert_int_equal(restarts(world, "p"), 0);
    assert_true(is_ready(world, "p"));
    run_for(world, 15 * US_PER_S);
    assert_false(is_ready(world, "p"));
    remove_pod(world, "p");
    run_for(world, 100 * US_PER_S);
    assert_true(exists(world, "p"));
    world_patch(world, "p", "", "{\"metadata\":{\"annotations\":{\"kubesim.neo.io/behaviour\":\"ok\"}}}");
    run_for(world, 10 * US_PER_S);
    assert_false(exists(world, "p"));
    world_free(world);
}

static void a_pending_pod_gets_no_node(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create_behaving(world, "p", "app:v1", "pending");
    run_for(world, 10 * US_PER_S);
    CLEANUP_JSON cJSON *pod = world_pod(world, "p");
    assert_null(json_path_str(pod, "spec", "nodeName", NULL));
    assert_string_equal(json_path_str(pod, "status", "phase", NULL), "Pending");
    world_patch(world, "p", "", "{\"metadata\":{\"annotations\":{\"kubesim.neo.io/behaviour\":\"ok\"}}}");
    run_for(world, 2 * US_PER_S);
    assert_true(is_ready(world, "p"));
    world_free(world);
}

static void an_old_kubelet_reports_no_generation(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create_behaving(world, "p", "app:v1", "old");
    run_for(world, US_PER_S);
    CLEANUP_JSON cJSON *pod = world_pod(world, "p");
    assert_true(str_equal(world_condition_status(pod, "Ready"), "True"));
    assert_null(json_path(pod, "status", "observedGeneration", NULL));
    assert_null(json_get(kube_object_condition(pod, "Ready"), "observedGeneration"));
    world_free(world);
}

static void words_are_a_list_and_unknown_ones_are_told(void **state)
{
    (void)state;
    assert_true(kubelet_behaviour_is_known("ok"));
    assert_true(kubelet_behaviour_is_known("slow-stop,old"));
    assert_false(kubelet_behaviour_is_known("slow-stop,odl"));
    assert_false(kubelet_behaviour_is_known(""));
    assert_non_null(strstr(kubelet_behaviour_words(), "node-lost"));
}

/* --- other pods
 * ------------------------------------------------------------------------------------------------- */

static void init_containers_run_one_after_another_then_the_rest(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create(world, "p", "app:v1", "",
           ",\"initContainers\":[{\"name\":\"a\",\"image\":\"app:i\"},{\"name\":\"s\",\"image\":\"app:s\","
           "\"restartPolicy\":\"Always\"},{\"name\":\"b\",\"image\":\"app:i\"}]");
    run_for(world, 3 * US_PER_S);
    CLEANUP_JSON cJSON *pod = world_pod(world, "p");
    assert_string_equal(world_condition_status(pod, "Initialized"), "True");
    assert_string_equal(world_condition_status(pod, "Ready"), "True");
    const cJSON *inits = json_path(pod, "status", "initContainerStatuses", NULL);
    static const char *const states[] = {"terminated", "running", "terminated"};
    for (int i = 0; i < 3; i++)
        assert_non_null(json_path(cJSON_GetArrayItem(inits, i), "state", states[i], NULL));
    world_free(world);
}

static void a_throw_away_pod_tells_whether_an_image_is_there(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    static const char *const images[] = {"app:v1", "app:none"};
    for (size_t i = 0; i < ARRAY_SIZE(images); i++) {
        CLEANUP_FREE char *body = xasprintf("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":"
                                            "\"f%zu\"},\"spec\":{\"restartPolicy\":"
                                            "\"Never\",\"nodeName\":\"kubesim-node-0\",\"containers\":[{"
                                            "\"name\":\"m\",\"image\":\"%s\",\"command\":"
                                            "[\"/neoset-prefetch\"]}]}}",
                                            i, images[i]);
        world_create_pod(world, body);
    }
    run_for(world, 2 * US_PER_S);
    CLEANUP_JSON cJSON *found = world_pod(world, "f0");
    const cJSON *terminated = json_path(world_container(found), "state", "terminated", NULL);
    assert_string_equal(json_str(terminated, "reason"), "StartError");
    assert_int_equal(json_int64_or(terminated, "exitCode", 0), 128);
    assert_true(str_starts_with(json_str(world_container(found), "imageID"), "sha256:"));
    assert_string_equal(json_path_str(found, "status", "phase", NULL), "Failed");
    CLEANUP_JSON cJSON *missing = world_pod(world, "f1");
    assert_string_equal(json_str(world_container(missing), "imageID"), "");
    assert_non_null(json_path(world_container(missing), "state", "waiting", NULL));
    world_free(world);
}

static void a_pod_of_a_node_of_somebody_else_is_left_alone(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create(world, "p", "app:v1", "", ",\"nodeName\":\"elsewhere\"");
    run_for(world, 5 * US_PER_S);
    CLEANUP_JSON cJSON *pod = world_pod(world, "p");
    assert_null(json_path(pod, "status", "containerStatuses", NULL));
    world_free(world);
}

static void a_kubelet_that_starts_again_takes_over_what_runs(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create(world, "p", "app:v1", "", "");
    create(world, "q", "app:v1", "", "");
    run_for(world, US_PER_S);
    char *id = container_text(world, "p", "containerID");
    kubelet_attach_free(world->kubelet);
    world_set_image(world, "q", "containers", "m", "app:v2");
    world->now_us += 10 * US_PER_S;
    world->kubelet = kubelet_attach_make(world->sim, &plain, world->now_us, NULL, NULL);
    run_for(world, 3 * US_PER_S);
    assert_text(container_text(world, "p", "containerID"), id);
    assert_int_equal(restarts(world, "p"), 0);
    assert_true(is_ready(world, "p"));
    assert_int_equal(restarts(world, "q"), 1);
    assert_text(container_text(world, "q", "image"), "docker.io/library/app:v2");
    free(id);
    world_free(world);
}

static void a_watch_that_ends_is_opened_again_and_nothing_is_missed(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create(world, "p", "app:v1", "", "");
    create(world, "q", "app:v1", "", "");
    /* A server ends its watches after an hour at the latest. */
    run_for(world, 2 * 3600 * US_PER_S);
    remove_pod(world, "q");
    world_set_image(world, "p", "containers", "m", "app:v2");
    run_for(world, 5 * US_PER_S);
    assert_int_equal(restarts(world, "p"), 1);
    assert_false(exists(world, "q"));
    world_free(world);
}

static void nothing_is_written_when_nothing_changes(void **state)
{
    (void)state;
    struct world *world = world_make(&plain);
    create(world, "p", "app:v1", "", gate);
    run_for(world, 10 * US_PER_S);
    uint64_t before = kubesim_count(world->sim).writes;
    run_for(world, 600 * US_PER_S);
    assert_int_equal(kubesim_count(world->sim).writes, before);
    world_free(world);
}

static void two_runs_of_one_seed_are_the_same(void **state)
{
    (void)state;
    char *texts[2];
    size_t length;
    for (size_t i = 0; i < 2; i++) {
        struct world *world = world_make(&plain);
        create(world, "p", "app:crash", "", gate);
        run_for(world, 40 * US_PER_S);
        world_set_image(world, "p", "containers", "m", "app:v2");
        run_for(world, 10 * US_PER_S);
        texts[i] = world_trace(world, "p", &length);
        world_free(world);
    }
    assert_string_equal(texts[0], texts[1]);
    free(texts[0]);
    free(texts[1]);
}

/* The model alone, with a front that only counts: 10,000 pods come, are rolled and go. */

struct counts {
    size_t statuses;
    size_t deletions;
};

static void count_status(void *context, const char *namespace, const char *name, const char *uid,
                         const cJSON *status)
{
    (void)namespace, (void)name, (void)uid, (void)status;
    ((struct counts *)context)->statuses++;
}

static void count_deletion(void *context, const char *namespace, const char *name, const char *uid)
{
    (void)namespace, (void)name, (void)uid;
    ((struct counts *)context)->deletions++;
}

static cJSON *numbered_pod(unsigned number, int64_t generation, const char *image, bool deleting)
{
    CLEANUP_FREE char *text = xasprintf(
        "{\"metadata\":{\"uid\":\"u%u\",\"name\":\"p%u\",\"namespace\":\"d\",\"generation\":%lld%s},\"spec\":"
        "{"
        "\"nodeName\":\"kubesim-node-0\",\"containers\":[{\"name\":\"m\",\"image\":\"%s\"}]}}",
        number, number, (long long)generation,
        deleting ? ",\"deletionTimestamp\":\"2026-11-30T07:00:00Z\",\"deletionGracePeriodSeconds\":1" : "",
        image);
    cJSON *tree = NULL;
    assert_int_equal(json_parse(text, strlen(text), &tree, NULL), 0);
    return tree;
}

static void give_all(struct kubelet *kubelet, unsigned count, int64_t generation, const char *image,
                     bool deleting, int64_t at_us)
{
    for (unsigned i = 0; i < count; i++) {
        CLEANUP_JSON cJSON *pod = numbered_pod(i, generation, image, deleting);
        kubelet_pod(kubelet, pod, at_us);
    }
}

static void ten_thousand_pods_are_no_matter(void **state)
{
    (void)state;
    enum { PODS = 10000 };
    struct counts counts = {0};
    struct kubelet_options options = plain;
    options.callbacks =
        (struct kubelet_callbacks){.patch_status = count_status, .delete_pod = count_deletion};
    options.context = &counts;
    int64_t at_us = WORLD_EPOCH_US;
    struct kubelet *kubelet = kubelet_make(&options, at_us);
    clock_t started = clock();
    give_all(kubelet, PODS, 1, "app:v1", false, at_us);
    kubelet_tick(kubelet, at_us += 5 * US_PER_S);
    assert_int_equal(kubelet_next_us(kubelet), INT64_MAX);
    size_t after_creation = counts.statuses;
    assert_true(after_creation >= 2 * PODS);
    give_all(kubelet, PODS, 2, "app:v2", false, at_us);
    kubelet_tick(kubelet, at_us += 5 * US_PER_S);
    assert_true(counts.statuses >= after_creation + 2 * PODS);
    give_all(kubelet, PODS, 3, "app:v2", true, at_us);
    kubelet_tick(kubelet, at_us += 5 * US_PER_S);
    assert_int_equal(counts.deletions, PODS);
    kubelet_list_begin(kubelet);
    kubelet_list_end(kubelet, at_us);
    assert_int_equal(kubelet_pod_count(kubelet), 0);
    print_message("10,000 pods created, rolled and deleted: %.0f ms of CPU\n",
                  1000.0 * (double)(clock() - started) / CLOCKS_PER_SEC);
    kubelet_free(kubelet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_created_pod_is_bound_runs_and_becomes_ready),
        cmocka_unit_test(a_changed_image_restarts_the_container_in_place),
        cmocka_unit_test(a_deleted_pod_goes_when_its_containers_have_stopped),
        cmocka_unit_test(a_deletion_waits_for_the_grace_period_of_a_slow_pod_and_no_longer),
        cmocka_unit_test(a_pod_deleted_while_its_image_is_pulled_goes_after_the_pull),
        cmocka_unit_test(a_pod_of_another_name_and_uid_after_a_deletion_is_a_new_one),
        cmocka_unit_test(a_container_killed_from_outside_comes_back),
        cmocka_unit_test(a_missing_gate_keeps_ready_false),
        cmocka_unit_test(ready_follows_the_gate_within_two_seconds),
        cmocka_unit_test(foreign_conditions_stay),
        cmocka_unit_test(a_missing_image_stops_the_old_container_first),
        cmocka_unit_test(fail_pull_as_a_behaviour_leaves_a_new_pod_pending),
        cmocka_unit_test(a_crashing_container_waits_longer_each_time),
        cmocka_unit_test(a_new_image_starts_at_once_and_going_back_waits),
        cmocka_unit_test(a_pod_that_never_becomes_ready_runs_nevertheless),
        cmocka_unit_test(same_digest_and_rename_show_in_the_status),
        cmocka_unit_test(a_given_digest_is_reported),
        cmocka_unit_test(an_evicted_pod_fails_and_stays),
        cmocka_unit_test(a_lost_node_says_nothing_and_its_pods_stay_terminating),
        cmocka_unit_test(a_pending_pod_gets_no_node),
        cmocka_unit_test(an_old_kubelet_reports_no_generation),
        cmocka_unit_test(words_are_a_list_and_unknown_ones_are_told),
        cmocka_unit_test(init_containers_run_one_after_another_then_the_rest),
        cmocka_unit_test(a_throw_away_pod_tells_whether_an_image_is_there),
        cmocka_unit_test(a_pod_of_a_node_of_somebody_else_is_left_alone),
        cmocka_unit_test(a_kubelet_that_starts_again_takes_over_what_runs),
        cmocka_unit_test(a_watch_that_ends_is_opened_again_and_nothing_is_missed),
        cmocka_unit_test(nothing_is_written_when_nothing_changes),
        cmocka_unit_test(two_runs_of_one_seed_are_the_same),
        cmocka_unit_test(ten_thousand_pods_are_no_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
