/* SPDX-License-Identifier: Apache-2.0
 *
 * The completion rule against a kubelet that can do what a real one does: random stories of one pod - flips,
 * missing images, other tags of one digest, several containers, with and without our gate, probes, slow stops
 * - and for each update that the rule calls done: what runs is what the spec names, and it goes on running.
 * And each last update is called done in the end. */
#include "../../replay/trace.h"
#include "kubelet_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { STORIES = 250, PATCHES_MAX = 5, POLL_US = 20000 };

struct story {
    uint64_t seed;
    uint64_t random;
    bool gated;
    bool probed;
    bool startup;
    bool two;
    bool open; /* the gate */
    struct world *world;
};

static uint64_t below(struct story *story, uint64_t bound)
{
    story->random = story->random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (story->random >> 33) % bound;
}

/* --- telling
 * ---------------------------------------------------------------------------------------------------- */

static void add_probe(cJSON *container, const char *key, int64_t period_s)
{
    cJSON *probe = json_add_object(container, key);
    json_append_str(json_add_array(json_add_object(probe, "exec"), "command"), "true");
    json_add_int64(probe, "periodSeconds", period_s);
    json_add_int64(probe, "failureThreshold", 100);
}

static char *make_pod(const struct story *story)
{
    CLEANUP_JSON cJSON *pod = json_new_object();
    json_add_str(pod, "apiVersion", "v1");
    json_add_str(pod, "kind", "Pod");
    json_add_str(json_add_object(pod, "metadata"), "name", "p");
    cJSON *spec = json_add_object(pod, "spec");
    json_add_int64(spec, "terminationGracePeriodSeconds", 2);
    if (story->gated) {
        cJSON *gate = json_new_object();
        json_add_str(gate, "conditionType", "apps.neo.io/in-place-ready");
        json_append_item(json_add_array(spec, "readinessGates"), gate);
    }
    cJSON *containers = json_add_array(spec, "containers");
    for (int i = 0; i < 1 + story->two; i++) {
        cJSON *container = json_new_object();
        json_add_str(container, "name", i ? "b" : "a");
        json_add_str(container, "image", "app:v1");
        if (story->probed)
            add_probe(container, "readinessProbe", 1);
        if (story->startup)
            add_probe(container, "startupProbe", 3);
        json_append_item(containers, container);
    }
    return json_print(pod);
}

static struct world *make_world(struct story *story)
{
    struct kubelet_options options = {.seed = story->seed};
    kubelet_options_real(&options);
    options.relist_phase_us = (int64_t)below(story, US_PER_S);
    options.stop_us = 50 * US_PER_MS + (int64_t)below(story, 1500 * US_PER_MS);
    options.pull_us = (int64_t)(below(story, 3) ? 20 * US_PER_MS : 4 * US_PER_S);
    return world_make(&options);
}

static int64_t now_us(const struct story *story)
{
    return story->world->now_us - WORLD_EPOCH_US;
}

static bool generation_is_seen(const cJSON *pod)
{
    return json_int64_or(json_get(pod, "status"), "observedGeneration", 0) >=
           json_int64_or(json_get(pod, "metadata"), "generation", 0);
}

/* What our controller does to the gate while it waits: opens it when the kubelet has seen the spec. */
static void run_for(struct story *story, int64_t duration_us)
{
    int64_t end_us = now_us(story) + duration_us;
    while (now_us(story) < end_us) {
        bool waits = story->gated && !story->open;
        world_run_until(story->world, waits ? MIN(now_us(story) + POLL_US, end_us) : end_us);
        CLEANUP_JSON cJSON *pod = waits ? world_pod(story->world, "p") : NULL;
        if (!waits || !generation_is_seen(pod))
            continue;
        world_set_gate(story->world, "p", "True");
        story->open = true;
    }
}

/* The drain: the gate is closed and Ready is seen False, or ten seconds have passed. */
static void drain(struct story *story)
{
    world_set_gate(story->world, "p", "False");
    story->open = false;
    int64_t end_us = now_us(story) + 10 * US_PER_S;
    for (bool ready = true; ready && now_us(story) < end_us;) {
        world_run_until(story->world, now_us(story) + POLL_US);
        CLEANUP_JSON cJSON *pod = world_pod(story->world, "p");
        ready = str_equal(world_condition_status(pod, "Ready"), "True");
    }
}

static void patch(struct story *story, bool last)
{
    static const char *const images[] = {"app:v1", "app:v2", "app:v2same", "docker.io/library/app:v1",
                                         "app:none"};
    size_t choices = last ? ARRAY_SIZE(images) - 1 : ARRAY_SIZE(images);
    if (story->gated)
        drain(story);
    world_set_image(story->world, "p", "containers", story->two && below(story, 2) ? "b" : "a",
                    images[below(story, choices)]);
    if (!last)
        return;
    /* Nothing that cannot be pulled is left behind. */
    CLEANUP_JSON cJSON *pod = world_pod(story->world, "p");
    const cJSON *container;
    cJSON_ArrayForEach (container, json_path(pod, "spec", "containers", NULL))
        if (str_equal(json_str(container, "image"), "app:none"))
            world_set_image(story->world, "p", "containers", json_str(container, "name"), "app:v2");
}

static void tell(struct story *story)
{
    story->world = make_world(story);
    CLEANUP_FREE char *pod = make_pod(story);
    world_create_pod(story->world, pod);
    run_for(story, 15 * US_PER_S);
    uint64_t patches = 1 + below(story, PATCHES_MAX);
    for (uint64_t i = 0; i < patches; i++) {
        patch(story, i + 1 == patches);
        uint64_t pause = below(story, 3);
        run_for(story, (int64_t)below(story, pause == 0 ? 300000 : pause == 1 ? 3000000 : 12000000));
    }
    run_for(story, 120 * US_PER_S);
}

/* --- judging
 * ---------------------------------------------------------------------------------------------------- */

static const cJSON *status_of(const cJSON *pod, const char *container)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, json_path(pod, "status", "containerStatuses", NULL))
        if (str_equal(json_str(item, "name"), container))
            return item;
    return NULL;
}

/* app:v2same is app:v2, and every spelling of app:v1 is one. */
static bool names_same_content(const char *spec_image, const char *reported)
{
    const char *spec_tag = strrchr(spec_image, ':');
    const char *tag = strrchr(reported, ':');
    return spec_tag && tag && strncmp(spec_tag, tag, 3) == 0;
}

static bool same_containers(const cJSON *a, const cJSON *b)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, json_path(a, "status", "containerStatuses", NULL)) {
        const cJSON *other = status_of(b, json_str(item, "name"));
        if (!str_equal(json_str(item, "containerID"), json_str(other, "containerID")))
            return false;
    }
    return true;
}

/* From the version that was called done to the next change of the spec. NULL: all is well. */
static char *find_fault(const struct story *story, const struct trace_patch *done)
{
    const struct world *world = story->world;
    const cJSON *first = NULL;
    for (size_t i = 0; i < world->seen_count; i++) {
        const cJSON *pod = world->seen[i].pod;
        if (json_int64_or(json_get(pod, "metadata"), "generation", 0) > done->generation)
            break;
        bool at_it = world->seen[i].at_us <= done->done_us;
        if (at_it)
            first = pod;
        else if (first && !same_containers(first, pod))
            return xasprintf("restarted at %.3f", (double)world->seen[i].at_us / 1e6);
    }
    const cJSON *container;
    cJSON_ArrayForEach (container, json_path(first, "spec", "containers", NULL)) {
        const cJSON *status = status_of(first, json_str(container, "name"));
        if (!names_same_content(json_str(container, "image"), json_str(status, "image")))
            return xasprintf("%s runs %s, not %s", json_str(container, "name"), json_str(status, "image"),
                             json_str(container, "image"));
    }
    return NULL;
}

static void judge(const struct story *story, size_t *ret_done, size_t *ret_open)
{
    size_t length;
    CLEANUP_FREE char *text = world_trace(story->world, "p", &length);
    CLEANUP_FREE char *name =
        xasprintf("%sstory-%s", story->gated ? "gate-" : "", story->startup ? "startup-probe" : "plain");
    struct trace_result result;
    CLEANUP_ERROR struct error *err = NULL;
    if (trace_play(name, text, length, trace_rule_completion, NULL, &result, &err) < 0)
        fail_msg("seed %llu: %s", (unsigned long long)story->seed, error_text(err));
    CLEANUP_FREE char *fault = NULL;
    for (size_t i = 0; i < result.patch_count && !fault; i++) {
        if (result.patches[i].done_us < 0)
            continue;
        (*ret_done)++;
        fault = find_fault(story, &result.patches[i]);
        if (fault)
            fprintf(stderr, "%sseed %llu, generation %lld, done at %.3f: %s\n", text,
                    (unsigned long long)story->seed, (long long)result.patches[i].generation,
                    (double)result.patches[i].done_us / 1e6, fault);
    }
    assert_null(fault);
    bool last_is_done = result.patch_count == 0 || result.patches[result.patch_count - 1].done_us >= 0;
    if (!last_is_done && story->gated)
        fprintf(stderr, "%sseed %llu: the last update is never done\n", text,
                (unsigned long long)story->seed);
    assert_true(last_is_done || !story->gated);
    *ret_open += !last_is_done;
}

static void what_is_done_runs_on_and_the_last_update_is_done(void **state)
{
    (void)state;
    size_t done = 0, open = 0;
    for (uint64_t seed = 1; seed <= STORIES; seed++) {
        struct story story = {.seed = seed, .random = seed * 977};
        story.gated = below(&story, 2);
        story.probed = below(&story, 2);
        story.startup = below(&story, 4) == 0;
        story.two = below(&story, 2);
        tell(&story);
        judge(&story, &done, &open);
        world_free(story.world);
    }
    print_message("%d stories, %zu updates called done, %zu of pods without our gate not to be proven\n",
                  STORIES, done, open);
    assert_true(open * 20 <= STORIES);
    assert_true(done >= STORIES);
}

/* That the check can fail: a worse rule is caught. */

static bool rule_seen_and_ready(void *context, const struct pod_fact *pod,
                                const struct pod_observation *observation, int64_t at_us,
                                int64_t *ret_again_us)
{
    (void)context, (void)observation, (void)at_us;
    *ret_again_us = INT64_MAX;
    bool ready = pod->observed_generation >= pod->generation && pod->ready == IS_TRUE;
    return ready;
}

static size_t count_faults(trace_rule *rule)
{
    size_t faults = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct story story = {.seed = seed, .random = seed * 977};
        story.probed = below(&story, 2);
        tell(&story);
        size_t length;
        CLEANUP_FREE char *text = world_trace(story.world, "p", &length);
        struct trace_result result;
        assert_int_equal(trace_play("story-plain", text, length, rule, NULL, &result, NULL), 0);
        for (size_t i = 0; i < result.patch_count; i++) {
            CLEANUP_FREE char *fault =
                result.patches[i].done_us < 0 ? NULL : find_fault(&story, &result.patches[i]);
            faults += fault != NULL;
        }
        world_free(story.world);
    }
    return faults;
}

static void a_rule_by_generation_and_ready_alone_is_caught(void **state)
{
    (void)state;
    assert_true(count_faults(rule_seen_and_ready) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_done_runs_on_and_the_last_update_is_done),
        cmocka_unit_test(a_rule_by_generation_and_ready_alone_is_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
