/* SPDX-License-Identifier: Apache-2.0
 *
 * The completion rule where no trace goes: proof by content, kubelets that report no generation, startup
 * probes that had their time, and what an update writes down over an unfinished one. */
#include "neoset/completion.h"

#include "pool.h"

#include <stdio.h>

#define US 1000000LL

/* A pod with one container "m"; what a case does not say is as after a finished update. */
struct story {
    const char *spec_image;
    const char *image; /* reported */
    const char *image_id;
    const char *id;
    const char *state;   /* the annotation's containers, JSON */
    const char *message; /* of our condition, or NULL: there is none */
    const char *witness; /* the annotation's, or NULL */
    int generation, observed;
    bool gate, ready, container_ready, foreign, startup, drained, waiting;
};

static struct pod_fact *pod_of(const struct story *story)
{
    CLEANUP_JSON cJSON *object = json_new_object();
    cJSON *metadata = json_add_object(object, "metadata");
    json_add_str(metadata, "name", "db-0");
    json_add_str(metadata, "uid", "u");
    json_add_int64(metadata, "generation", story->generation);
    if (story->state) {
        CLEANUP_FREE char *witness =
            story->witness ? xasprintf("\"witness\":\"%s\",", story->witness) : xstrdup("");
        CLEANUP_FREE char *text =
            xasprintf("{\"step\":\"k-1\",\"target\":\"t\",\"drained\":%s,%s\"containers\":{\"m\":%s}}",
                      story->drained ? "true" : "false", witness, story->state);
        json_add_str(json_add_object(metadata, "annotations"), NEOSET_STATE_ANNOTATION, text);
    }
    cJSON *spec = json_add_object(object, "spec");
    cJSON *container = json_new_object();
    json_add_str(container, "name", "m");
    json_add_str(container, "image", story->spec_image);
    if (story->startup)
        json_add_int64(json_add_object(container, "startupProbe"), "periodSeconds", 5);
    json_append_item(json_add_array(spec, "containers"), container);
    cJSON *gates = json_add_array(spec, "readinessGates");
    if (story->gate) {
        cJSON *gate = json_new_object();
        json_add_str(gate, "conditionType", NEOSET_GATE);
        json_append_item(gates, gate);
    }
    if (story->foreign) {
        cJSON *gate = json_new_object();
        json_add_str(gate, "conditionType", "example.com/lb");
        json_append_item(gates, gate);
    }
    cJSON *status = json_add_object(object, "status");
    if (story->observed)
        json_add_int64(status, "observedGeneration", story->observed);
    CLEANUP_FREE char *conditions =
        xasprintf("[{\"type\":\"Ready\",\"status\":\"%s\"}]", story->ready ? "True" : "False");
    cJSON *list = NULL;
    assert_int_equal(json_parse(conditions, strlen(conditions), &list, NULL), 0);
    json_add_item(status, "conditions", list);
    if (story->message) {
        cJSON *condition = json_new_object();
        json_add_str(condition, "type", NEOSET_GATE);
        json_add_str(condition, "status", "True");
        json_add_str(condition, "message", story->message);
        json_append_item(list, condition);
    }
    cJSON *report = json_new_object();
    json_add_str(report, "name", "m");
    json_add_str(report, "image", story->image ? story->image : "");
    json_add_str(report, "imageID", story->image_id ? story->image_id : "");
    if (story->id)
        json_add_str(report, "containerID", story->id);
    json_add_bool(report, "ready", story->container_ready);
    json_add_bool(report, "started", story->container_ready);
    cJSON *running = json_add_object(report, "state");
    if (story->waiting)
        json_add_str(json_add_object(running, "waiting"), "reason", "ErrImagePull");
    else
        json_add_object(running, "running");
    json_append_item(json_add_array(status, "containerStatuses"), report);
    struct pod_fact *pod = pod_fact_make(pool, object);
    assert_non_null(pod);
    return pod;
}

static bool is_done(const struct story *story)
{
    struct pod_fact *pod = pod_of(story);
    struct completion completion;
    completion_judge(pod, NULL, 0, &completion);
    pod_fact_free(pod);
    return completion.done;
}

static const struct story finished = {
    .spec_image = "app:2",
    .image = "docker.io/library/app:2",
    .image_id = "sha256:two",
    .id = "c://new",
    .state = "{\"image\":\"app:1\",\"containerID\":\"c://old\",\"imageID\":\"sha256:one\",\"settled\":true}",
    .generation = 2,
    .observed = 2,
    .ready = true,
    .container_ready = true,
};

/* --- proofs --------------------------------------------------------------------------------------------- */

static void a_pod_without_the_annotation_has_nothing_to_prove(void **state)
{
    (void)state;
    struct story story = finished;
    story.state = NULL;
    assert_true(is_done(&story));
}

static void the_witness_of_another_update_does_not_count(void **state)
{
    (void)state;
    struct story story = finished;
    story.gate = story.drained = true;
    story.ready = false; /* no handshake */
    story.message = "{\"update\":\"k-0\",\"containers\":{\"m\":\"c://old\"}}";
    assert_false(is_done(&story));
    story.message = "{\"update\":\"k-1\",\"containers\":{\"m\":\"c://old\"}}";
    assert_true(is_done(&story));
    story.message = "{\"update\":\"k-1\",\"containers\":{\"m\":\"none\"}}";
    assert_true(is_done(&story));
    story.message = "{\"update\":\"k-1\",\"containers\":{\"m\":\"c://new\"}}";
    assert_false(is_done(&story));
    story.message = "by hand";
    assert_false(is_done(&story));
}

static void the_handshake_needs_a_drain_a_gate_and_ready(void **state)
{
    (void)state;
    struct story story = finished;
    story.gate = story.drained = true;
    story.image = "other:name"; /* no content either */
    story.message = "{\"update\":\"k-1\",\"containers\":{\"m\":\"c://new\"}}";
    assert_true(is_done(&story));
    story.ready = false;
    assert_false(is_done(&story));
    story.ready = true;
    story.message = NULL;
    assert_false(is_done(&story));
}

static void the_generation_must_have_been_seen(void **state)
{
    (void)state;
    struct story story = finished;
    assert_true(is_done(&story));
    story.observed = 1;
    assert_false(is_done(&story));
    /* Restored from a copy, the spec is an older one than its kubelet speaks of. */
    story.observed = 3;
    assert_false(is_done(&story));
}

static void content_is_the_name_and_a_different_image_before(void **state)
{
    (void)state;
    struct story story = finished;
    assert_true(is_done(&story));
    /* The same digest under another tag: nothing tells the old container from the new. */
    story.image_id = "sha256:one";
    assert_false(is_done(&story));
    /* Not known counts as equal. */
    story = finished;
    story.state = "{\"image\":\"app:1\",\"containerID\":\"c://old\",\"settled\":true}";
    assert_false(is_done(&story));
    /* An image that was asked for between, and of which nothing is known. */
    story.state =
        "{\"image\":\"app:1\",\"containerID\":\"c://old\",\"imageID\":\"sha256:one\",\"settled\":true,"
        "\"tried\":[{\"image\":\"app:x\"}]}";
    assert_false(is_done(&story));
    story.state =
        "{\"image\":\"app:1\",\"containerID\":\"c://old\",\"imageID\":\"sha256:one\",\"settled\":true,"
        "\"tried\":[{\"image\":\"app:x\",\"imageID\":\"sha256:x\"}]}";
    assert_true(is_done(&story));
    story.state =
        "{\"image\":\"app:1\",\"containerID\":\"c://old\",\"imageID\":\"sha256:one\",\"settled\":true,"
        "\"tried\":[{\"image\":\"app:x\",\"neverRan\":true}]}";
    assert_true(is_done(&story));
}

static void content_is_another_digest_after_a_single_change_of_a_settled_container(void **state)
{
    (void)state;
    struct story story = finished;
    story.image = "mirror.example/app@sha256:zz"; /* the runtime calls it something else */
    assert_true(is_done(&story));
    story.state =
        "{\"image\":\"app:1\",\"containerID\":\"c://old\",\"imageID\":\"sha256:one\",\"settled\":false}";
    assert_false(is_done(&story));
}

static void content_is_a_digest_in_the_spec(void **state)
{
    (void)state;
    struct story story = finished;
    story.spec_image = "app@sha256:two";
    story.image = "whatever";
    story.state = "{\"image\":\"app:1\",\"containerID\":\"c://old\",\"settled\":false}";
    story.image_id = "docker.io/library/app@sha256:two";
    assert_true(is_done(&story));
    story.image_id = "docker.io/library/app@sha256:three";
    assert_false(is_done(&story));
}

static void content_does_not_count_where_a_handshake_can_come(void **state)
{
    (void)state;
    struct story story = finished;
    story.gate = story.drained = true;
    assert_false(is_done(&story));
    story.foreign = true; /* a gate of someone else holds Ready down */
    story.ready = false;
    assert_true(is_done(&story));
}

static void an_old_kubelet_is_judged_by_content_only(void **state)
{
    (void)state;
    struct story story = finished;
    story.observed = 0;
    story.gate = story.drained = true;
    assert_true(is_done(&story));
    story.image_id = "sha256:one";
    story.message = "{\"update\":\"k-1\",\"containers\":{\"m\":\"c://old\"}}";
    assert_false(is_done(&story));
}

static void the_old_container_with_the_old_image_is_done(void **state)
{
    (void)state;
    struct story story = finished;
    story.id = "c://old";
    assert_false(is_done(&story));
    story.spec_image = "app:1";
    assert_true(is_done(&story));
    story.container_ready = false;
    assert_false(is_done(&story));
}

static void image_names_are_compared_as_people_mean_them(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"app", "app:latest"},
        {"docker.io/library/app:1", "app:1"},
        {"docker.io/user/app", "user/app:latest"},
        {"registry.example:5000/app", "registry.example:5000/app:latest"},
        {"app@sha256:1", "app@sha256:1"},
        {"quay.io/a/b:2", "quay.io/a/b:2"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
        CLEANUP_FREE char *normal = completion_normal_image(pairs[i][0]);
        assert_string_equal(normal, pairs[i][1]);
    }
}

/* --- the startup probe ---------------------------------------------------------------------------------- */

static void a_startup_probe_may_have_its_time_instead(void **state)
{
    (void)state;
    struct story story = finished;
    story.startup = true;
    struct pod_fact *pod = pod_of(&story);
    struct neoset_memory *memory = neoset_memory_make();
    struct completion completion;
    neoset_observe_pod(memory, pod, 0, 100 * US);
    const struct pod_observation *seen = neoset_memory_pod(memory, 0, "u");
    completion_judge(pod, seen, 101 * US, &completion);
    assert_false(completion.done);
    assert_int_equal(completion.waiting, COMPLETION_STARTUP);
    assert_int_equal(completion.again_boot_us, 115 * US);
    completion_judge(pod, seen, 115 * US, &completion);
    assert_true(completion.done);
    /* And a turn finds that out by itself. */
    neoset_observe_time(memory, (const struct pod_fact *const *)&pod, 1, 0, 116 * US);
    assert_true(seen->proven_step != 0);
    neoset_memory_free(memory);
    pod_fact_free(pod);
}

/* --- baselines ------------------------------------------------------------------------------------------ */

static void a_first_update_writes_down_what_runs(void **state)
{
    (void)state;
    struct story story = finished;
    story.state = NULL;
    struct pod_fact *pod = pod_of(&story);
    struct image_change change = {"m", "app:3"};
    struct in_place_state *baselines = completion_baselines(pod, true, NULL, 0, "t2", &change, 1, 5 * US);
    assert_int_equal(baselines->container_count, 1);
    assert_string_equal(baselines->containers[0].image, "app:2");
    assert_string_equal(baselines->containers[0].container_id, "c://new");
    assert_string_equal(baselines->containers[0].image_id, "sha256:two");
    assert_true(baselines->containers[0].settled);
    assert_false(baselines->drained);
    in_place_state_free(baselines);
    pod_fact_free(pod);
}

static void an_update_over_an_unfinished_one_keeps_the_oldest(void **state)
{
    (void)state;
    struct story story = finished;
    story.container_ready = false;
    struct pod_fact *pod = pod_of(&story);
    struct image_change change = {"m", "app:3"};
    struct in_place_state *baselines = completion_baselines(pod, false, NULL, 0, "t2", &change, 1, 5 * US);
    const struct container_baseline *baseline = in_place_state_container(baselines, "m");
    assert_string_equal(baseline->image, "app:1");
    assert_string_equal(baseline->container_id, "c://old");
    /* It runs the image between, and which that is is known. */
    assert_int_equal(baseline->trial_count, 1);
    assert_string_equal(baseline->trials[0].image, "app:2");
    assert_string_equal(baseline->trials[0].image_id, "sha256:two");
    in_place_state_free(baselines);
    pod_fact_free(pod);
}

/* Others write the pod just then, and our record comes late: what it names is what was there at first. */
static void a_witness_is_of_the_first_version_that_was_seen(void **state)
{
    (void)state;
    struct neoset_memory *memory = neoset_memory_make();
    struct story story = finished;
    story.image_id = "sha256:one"; /* content proves nothing */
    static const struct {
        int observed;
        const char *id, *named;
    } versions[] = {
        {0, "c://before", NULL}, /* of a kubelet that does not say what it has seen, and is upgraded */
        {1, "c://before", NULL},
        {2, "c://old", "c://old"},
        {2, "c://new", "c://old"}};
    for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
        story.observed = versions[i].observed;
        story.id = versions[i].id;
        struct pod_fact *pod = pod_of(&story);
        neoset_observe_pod(memory, pod, 5 * US, 5 * US);
        const struct pod_observation *seen = neoset_memory_pod(memory, 0, pod->uid);
        const char *named = json_str(seen->update->witness, "m");
        assert_true(str_equal(named, versions[i].named));
        pod_fact_free(pod);
    }
    /* It is on the pod: nobody has to remember it. */
    story.message = "{\"update\":\"k-1\",\"containers\":{\"m\":\"c://old\"}}";
    struct pod_fact *pod = pod_of(&story);
    neoset_observe_pod(memory, pod, 5 * US, 5 * US);
    assert_null(neoset_memory_pod(memory, 0, pod->uid)->update); /* proven by it */
    pod_fact_free(pod);
    neoset_memory_free(memory);
}

/* Its images stay: what our condition said of them then is as true as before. */
static void labels_over_an_unfinished_update_keep_its_record(void **state)
{
    (void)state;
    struct story story = finished;
    story.image_id = "sha256:one"; /* content proves nothing */
    story.message = "{\"update\":\"k-1\",\"containers\":{\"m\":\"c://old\"}}";
    assert_true(is_done(&story));
    story.container_ready = false;
    struct pod_fact *pod = pod_of(&story);
    struct in_place_state *baselines = completion_baselines(pod, false, NULL, 0, "t2", NULL, 0, 5 * US);
    assert_string_equal(baselines->witness, "k-1");
    in_place_state_free(baselines);
    struct image_change change = {"m", "app:3"};
    baselines = completion_baselines(pod, false, NULL, 0, "t2", &change, 1, 5 * US);
    assert_null(baselines->witness);
    in_place_state_free(baselines);
    pod_fact_free(pod);
    story.container_ready = true;
    story.message = "{\"update\":\"k-0\",\"containers\":{\"m\":\"c://old\"}}";
    assert_false(is_done(&story));
    story.witness = "k-0";
    assert_true(is_done(&story));
    story.message = "{\"update\":\"k-0\",\"containers\":{\"m\":\"c://new\"}}";
    assert_false(is_done(&story));
}

/* Nothing could have run yet: there is nothing to be told apart from what will. */
static void a_pod_that_no_node_has_yet_has_no_baselines(void **state)
{
    (void)state;
    struct story story = finished;
    struct pod_fact *pod = pod_of(&story);
    struct pod_fact unbound = *pod;
    unbound.node = NULL;
    for (size_t i = 0; i < unbound.container_count; i++)
        unbound.containers[i].state = CONTAINER_UNKNOWN;
    struct image_change change = {"m", "app:3"};
    struct in_place_state *baselines =
        completion_baselines(&unbound, false, NULL, 0, "t2", &change, 1, 5 * US);
    assert_int_equal(baselines->container_count, 0);
    in_place_state_free(baselines);
    pod_fact_free(pod);
}

/* Another container may keep the update unfinished: this one is where it should be. */
static void a_container_that_is_proven_begins_anew(void **state)
{
    (void)state;
    struct story story = finished;
    struct pod_fact *pod = pod_of(&story);
    struct image_change change = {"m", "app:3"};
    struct in_place_state *baselines = completion_baselines(pod, false, NULL, 0, "t2", &change, 1, 5 * US);
    const struct container_baseline *baseline = in_place_state_container(baselines, "m");
    assert_string_equal(baseline->image, "app:2");
    assert_string_equal(baseline->container_id, "c://new");
    assert_int_equal(baseline->trial_count, 0);
    in_place_state_free(baselines);
    pod_fact_free(pod);
}

static void a_pull_that_failed_at_first_means_it_never_ran(void **state)
{
    (void)state;
    struct story story = finished;
    story.id = "c://old";
    story.waiting = true;
    story.container_ready = false;
    struct pod_fact *pod = pod_of(&story);
    struct in_place_state *baselines = completion_baselines(pod, false, NULL, 0, "t2", NULL, 0, 5 * US);
    assert_true(baselines->containers[0].trials[0].never_ran);
    in_place_state_free(baselines);
    pod_fact_free(pod);
    /* The kubelet has not seen it: nobody knows. */
    story.observed = 1;
    pod = pod_of(&story);
    baselines = completion_baselines(pod, false, NULL, 0, "t2", NULL, 0, 5 * US);
    assert_false(baselines->containers[0].trials[0].never_ran);
    in_place_state_free(baselines);
    pod_fact_free(pod);
}

/* --- the two texts -------------------------------------------------------------------------------------- */

static void the_annotation_reads_as_it_was_written(void **state)
{
    (void)state;
    struct in_place_state *first = in_place_state_make(pool, "db-abc", 1800000000 * US);
    first->drained = true;
    first->restarts = 3;
    struct container_baseline *baseline = in_place_state_add(first, "m", "app:1", "c://1", "sha256:1", true);
    container_baseline_try(first, baseline, "app:2", NULL, false);
    container_baseline_try(first, baseline, "app:2", "sha256:2", false);
    container_baseline_try(first, baseline, "app:3", NULL, true);
    in_place_state_add(first, "n", "other:1", NULL, NULL, false);
    CLEANUP_FREE char *text = in_place_state_print(first);
    struct in_place_state *second = in_place_state_parse(pool, text);
    CLEANUP_FREE char *again = in_place_state_print(second);
    assert_string_equal(text, again);
    assert_int_equal(second->containers[0].trial_count, 2);
    assert_string_equal(second->containers[0].trials[0].image_id, "sha256:2");
    assert_true(second->containers[0].trials[1].never_ran);
    assert_null(second->containers[1].container_id);
    assert_int_equal(second->at_us, 1800000000 * US);
    in_place_state_free(first);
    in_place_state_free(second);
}

static void an_annotation_that_is_not_ours_is_none(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "{", "[]", "null", "{}", "{\"target\":1}", "true", "\"x\""};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        assert_null(in_place_state_parse(pool, texts[i]));
    assert_null(in_place_state_parse(pool, NULL));
    /* Members of another type are left out. */
    struct in_place_state *state_of_others = in_place_state_parse(
        pool,
        "{\"target\":\"t\",\"at\":7,\"step\":[],\"containers\":{\"a\":1,\"b\":{\"image\":2},\"c\":{\"image\":"
        "\"i\",\"tried\":{\"x\":1}}},\"restarts\":-4}");
    assert_non_null(state_of_others);
    assert_int_equal(state_of_others->container_count, 1);
    assert_int_equal(state_of_others->restarts, 0);
    in_place_state_free(state_of_others);
}

static void the_list_of_tried_images_is_bounded_on_the_safe_side(void **state)
{
    (void)state;
    struct in_place_state *long_story = in_place_state_make(pool, "t", 0);
    struct container_baseline *baseline =
        in_place_state_add(long_story, "m", "app:0", "c://1", "sha256:0", true);
    for (int i = 1; i < 100; i++) {
        CLEANUP_FREE char *image = xasprintf("app:%d", i);
        container_baseline_try(long_story, baseline, image, image, false);
    }
    assert_int_equal(baseline->trial_count, STATE_TRIALS_MAX);
    assert_null(baseline->trials[STATE_TRIALS_MAX - 1].image_id);
    in_place_state_free(long_story);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_pool, free_pool)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_pod_without_the_annotation_has_nothing_to_prove),
        TEST(the_witness_of_another_update_does_not_count),
        TEST(the_handshake_needs_a_drain_a_gate_and_ready),
        TEST(the_generation_must_have_been_seen),
        TEST(content_is_the_name_and_a_different_image_before),
        TEST(content_is_another_digest_after_a_single_change_of_a_settled_container),
        TEST(content_is_a_digest_in_the_spec),
        TEST(content_does_not_count_where_a_handshake_can_come),
        TEST(an_old_kubelet_is_judged_by_content_only),
        TEST(the_old_container_with_the_old_image_is_done),
        TEST(image_names_are_compared_as_people_mean_them),
        TEST(a_startup_probe_may_have_its_time_instead),
        TEST(a_first_update_writes_down_what_runs),
        TEST(an_update_over_an_unfinished_one_keeps_the_oldest),
        TEST(a_container_that_is_proven_begins_anew),
        TEST(a_witness_is_of_the_first_version_that_was_seen),
        TEST(labels_over_an_unfinished_update_keep_its_record),
        TEST(a_pod_that_no_node_has_yet_has_no_baselines),
        TEST(a_pull_that_failed_at_first_means_it_never_ran),
        TEST(the_annotation_reads_as_it_was_written),
        TEST(an_annotation_that_is_not_ours_is_none),
        TEST(the_list_of_tried_images_is_bounded_on_the_safe_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
