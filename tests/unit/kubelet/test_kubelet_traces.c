/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated kubelet tells the stories of a real one (tests/replay/traces): the same patches at the same
 * moments, under virtual time, give the same distinct states in the same order, each within TOLERANCE_US of
 * its time (a real kubelet looks at its containers once a second). What differs from node to node is given
 * for each trace: when in the second containers are listed, and how long a stop takes. A state that stands
 * for less than BRIEF_US need not be on both sides: the real one's status writes overtake each other there.
 */
#include "../../replay/trace.h"
#include "kubelet_world.h"
#include "whole_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { TOLERANCE_US = 1100000, BRIEF_US = 30000, STATES_MAX = 100, IDS_MAX = 32, STEPS_MAX = 32 };

struct story {
    const char *name;
    int phase_ms;
    enum kubelet_race race;
    int stop_ms;
    uint64_t seed;
    int tolerance_ms; /* 0: TOLERANCE_US. Back-off retries come up to half of the wait later */
    int end_ms;       /* compared up to here; 0: all */
};

static const struct story stories[] = {
    {.name = "bad-tag-then-back", .phase_ms = 850, .stop_ms = 100, .seed = 1, .tolerance_ms = 5000},
    /* The machine was busy: the first probe took a second. */
    {.name = "bad-tag-then-good", .phase_ms = 897, .stop_ms = 100, .tolerance_ms = 1500},
    {.name = "crashing-then-good", .phase_ms = 354, .stop_ms = 700, .seed = 3, .tolerance_ms = 2000},
    {.name = "flip-after-300ms", .phase_ms = 610, .stop_ms = 450},
    {.name = "flip-at-once", .phase_ms = 918, .stop_ms = 100},
    {.name = "gate-bad-tag-then-back", .phase_ms = 700, .stop_ms = 100, .seed = 3},
    /* The one probe of the third container that was made failed, by chance. */
    {.name = "gate-crash-loop", .phase_ms = 842, .stop_ms = 1000, .end_ms = 20000, .tolerance_ms = 2000},
    {.name = "gate-flip-at-once", .phase_ms = 226, .stop_ms = 700},
    {.name = "gate-ordinary", .phase_ms = 783, .stop_ms = 950},
    {.name = "gate-same-digest", .phase_ms = 808, .stop_ms = 900},
    {.name = "gate-slow-pull-no-probe", .phase_ms = 7, .race = KUBELET_RACE_MERGED, .stop_ms = 100},
    {.name = "gate-slow-pull-probe", .phase_ms = 275, .stop_ms = 500},
    {.name = "gate-startup-probe", .phase_ms = 740, .stop_ms = 900},
    {.name = "image-written-in-full", .phase_ms = 449, .stop_ms = 600},
    {.name = "init-image-changed-too", .phase_ms = 990, .stop_ms = 600},
    {.name = "never-ready-then-good", .phase_ms = 170, .stop_ms = 400},
    {.name = "no-probe", .phase_ms = 524, .stop_ms = 1300},
    {.name = "ordinary", .phase_ms = 327, .stop_ms = 80},
    {.name = "patched-while-creating", .phase_ms = 700, .stop_ms = 2000},
    {.name = "same-digest", .phase_ms = 595, .stop_ms = 800},
    {.name = "sidecar-init-image", .phase_ms = 460, .stop_ms = 300},
    {.name = "slow-pull-exec-probe", .phase_ms = 101, .stop_ms = 700},
    {.name = "slow-pull-no-gate", .phase_ms = 921, .race = KUBELET_RACE_MERGED, .stop_ms = 800},
    {.name = "slow-to-stop", .phase_ms = 364, .stop_ms = 6000},
    {.name = "startup-probe", .phase_ms = 476, .stop_ms = 900},
    {.name = "two-containers-one-changed", .phase_ms = 848, .stop_ms = 850, .seed = 1},
};

/* --- states
 * ---------------------------------------------------------------------------------------------------- */

struct state {
    int64_t at_us;
    char *text;
};

/* Container IDs and image IDs by the order in which they came up: c0, c1 ... */
struct names {
    char *items[IDS_MAX];
    size_t count;
};

struct states {
    struct state items[STATES_MAX];
    size_t count;
    struct names containers;
    struct names images;
};

static size_t number_of(struct names *names, const char *text)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], text) == 0)
            return i;
    assert_true(names->count < IDS_MAX);
    names->items[names->count] = xstrdup(text);
    return names->count++;
}

static void add_id(struct buf *text, char letter, struct names *names, const char *id)
{
    if (id && *id)
        buf_addf(text, "%c%zu ", letter, number_of(names, id));
    else
        buf_addf(text, "- ");
}

static void add_run_state(struct buf *text, struct states *states, const cJSON *state)
{
    const cJSON *item = state ? state->child : NULL;
    if (!item) {
        buf_addf(text, "-");
        return;
    }
    const char *reason = json_str(item, "reason");
    buf_addf(text, "%s%s%s", item->string, reason ? ":" : "", reason ? reason : "");
    if (json_get(item, "exitCode"))
        buf_addf(text, "=%lld ", (long long)json_int64_or(item, "exitCode", 0));
    if (json_get(item, "containerID"))
        add_id(text, 'c', &states->containers, json_str(item, "containerID"));
}

static void add_containers(struct buf *text, struct states *states, const cJSON *list)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, list) {
        buf_addf(text, " %s[", json_str(item, "name"));
        add_id(text, 'c', &states->containers, json_str(item, "containerID"));
        add_id(text, 'i', &states->images, json_str(item, "imageID"));
        buf_addf(text, "%s restarts %lld%s%s ", json_str(item, "image"),
                 (long long)json_int64_or(item, "restartCount", 0),
                 json_bool_or(item, "ready", false) ? " ready" : "",
                 json_bool_or(item, "started", false) ? " started" : "");
        add_run_state(text, states, json_get(item, "state"));
        buf_addf(text, " last ");
        add_run_state(text, states, json_get(item, "lastState"));
        buf_addf(text, "]");
    }
}

static void add_conditions(struct buf *text, const cJSON *conditions)
{
    static const char *const types[] = {
        "PodReadyToStartContainers", "Initialized",  "Ready",
        "ContainersReady",           "PodScheduled", "apps.neo.io/in-place-ready"};
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        const cJSON *item;
        cJSON_ArrayForEach (item, conditions) {
            if (!str_equal(json_str(item, "type"), types[i]))
                continue;
            const char *reason = json_str(item, "reason");
            buf_addf(text, " %s=%s%s%s", types[i], json_str(item, "status"), reason ? ":" : "",
                     reason ? reason : "");
            if (i < 5)
                buf_addf(text, "@%lld", (long long)json_int64_or(item, "observedGeneration", 0));
        }
    }
}

static void add_state(struct states *states, int64_t at_us, int64_t generation, const cJSON *status)
{
    CLEANUP_BUF struct buf text = BUF_INIT(65536);
    buf_addf(&text, "g%lld seen %lld %s", (long long)generation,
             (long long)json_int64_or(status, "observedGeneration", 0), json_str(status, "phase"));
    add_containers(&text, states, json_get(status, "initContainerStatuses"));
    add_containers(&text, states, json_get(status, "containerStatuses"));
    add_conditions(&text, json_get(status, "conditions"));
    if (states->count && strcmp(states->items[states->count - 1].text, buf_text(&text)) == 0)
        return;
    assert_true(states->count < STATES_MAX);
    states->items[states->count++] = (struct state){.at_us = at_us, .text = buf_take(&text)};
}

static void states_done(struct states *states)
{
    for (size_t i = 0; i < states->count; i++)
        free(states->items[i].text);
    struct names *const names[] = {&states->containers, &states->images};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        for (size_t j = 0; j < names[i]->count; j++)
            free(names[i]->items[j]);
}

/* --- the recording
 * --------------------------------------------------------------------------------------------- */

/* What was done to the pod, at the moment at which the watch showed it. */
struct deed {
    int64_t at_us;
    char *list; /* "containers" ... of an image; NULL: the gate */
    char *container;
    char *value;
};

struct recording {
    struct states states;
    struct deed deeds[STEPS_MAX];
    size_t deed_count;
    cJSON *first; /* the first version of the pod */
    int64_t end_us;
};

static void add_deed(struct recording *recording, int64_t at_us, const char *list, const char *container,
                     const char *value)
{
    assert_true(recording->deed_count < STEPS_MAX);
    recording->deeds[recording->deed_count++] = (struct deed){.at_us = at_us,
                                                              .list = xstrdup_or_null(list),
                                                              .container = xstrdup_or_null(container),
                                                              .value = xstrdup(value)};
}

static const char *gate_of(const cJSON *pod)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, json_get(pod, "conditions"))
        if (str_equal(json_str(item, "type"), "apps.neo.io/in-place-ready"))
            return json_str(item, "status");
    return NULL;
}

static void note_images(struct recording *recording, int64_t at_us, const char *list, const cJSON *images,
                        const cJSON *before)
{
    const cJSON *image;
    cJSON_ArrayForEach (image, images)
        if (!str_equal(json_str(before, image->string), image->valuestring))
            add_deed(recording, at_us, list, image->string, image->valuestring);
}

static int64_t time_of(const cJSON *event)
{
    const cJSON *t = json_get(event, "t");
    assert_non_null(t);
    /* A fraction that a double cannot hold keeps its text. */
    double seconds = cJSON_IsRaw(t) ? strtod(t->valuestring, NULL) : t->valuedouble;
    return (int64_t)(seconds * 1e6 + 0.5);
}

static void record(struct recording *recording, const cJSON *event, cJSON **before, int64_t end_us)
{
    const cJSON *pod = json_get(event, "pod");
    int64_t at_us = time_of(event);
    if (!pod || (end_us && at_us > end_us))
        return;
    if (!recording->first)
        recording->first = json_copy(pod);
    add_state(&recording->states, at_us, json_int64_or(pod, "generation", 0), pod);
    if (*before) {
        note_images(recording, at_us, "containers", json_get(pod, "images"), json_get(*before, "images"));
        note_images(recording, at_us, "initContainers", json_get(pod, "initImages"),
                    json_get(*before, "initImages"));
        const char *gate = gate_of(pod);
        if (gate && !str_equal(gate, gate_of(*before)))
            add_deed(recording, at_us, NULL, NULL, gate);
    }
    json_delete(*before);
    *before = json_copy(pod);
    recording->end_us = at_us;
}

static void recording_read(struct recording *recording, const struct story *story)
{
    CLEANUP_FREE char *path = xasprintf("tests/replay/traces/%s.jsonl", story->name);
    CLEANUP_FREE char *text = whole_file(path, NULL);
    CLEANUP_JSON cJSON *before = NULL;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        CLEANUP_JSON cJSON *event = NULL;
        assert_int_equal(json_parse(line, strlen(line), &event, NULL), 0);
        record(recording, event, &before, story->end_ms * US_PER_MS);
    }
}

static void recording_done(struct recording *recording)
{
    states_done(&recording->states);
    for (size_t i = 0; i < recording->deed_count; i++) {
        free(recording->deeds[i].list);
        free(recording->deeds[i].container);
        free(recording->deeds[i].value);
    }
    json_delete(recording->first);
}

/* --- the model's telling
 * --------------------------------------------------------------------------------------- */

static int64_t grace_s(const char *story)
{
    return strcmp(story, "slow-to-stop") == 0 ? 6 : 2;
}

static void add_probe(cJSON *container, const char *key, int64_t period_s)
{
    cJSON *probe = json_add_object(container, key);
    json_append_str(json_add_array(json_add_object(probe, "exec"), "command"), "true");
    json_add_int64(probe, "periodSeconds", period_s);
    json_add_int64(probe, "failureThreshold", 10);
}

static cJSON *containers_of(const cJSON *images, const char *story, bool init)
{
    cJSON *list = json_new_array();
    const cJSON *image;
    cJSON_ArrayForEach (image, images) {
        cJSON *container = json_new_object();
        json_add_str(container, "name", image->string);
        json_add_str(container, "image", image->valuestring);
        bool probed = !init && !str_ends_with(story, "no-probe") && strcmp(story, "slow-pull-no-gate") != 0;
        if (probed)
            add_probe(container, "readinessProbe", 1);
        if (!init && str_ends_with(story, "startup-probe"))
            add_probe(container, "startupProbe", 3);
        if (init && str_starts_with(story, "sidecar"))
            json_add_str(container, "restartPolicy", "Always");
        json_append_item(list, container);
    }
    return list;
}

static char *pod_of(const struct recording *recording, const char *story)
{
    CLEANUP_JSON cJSON *pod = json_new_object();
    json_add_str(pod, "apiVersion", "v1");
    json_add_str(pod, "kind", "Pod");
    json_add_str(json_add_object(pod, "metadata"), "name", "p");
    cJSON *spec = json_add_object(pod, "spec");
    json_add_str(spec, "nodeName", "kubesim-node-0");
    json_add_int64(spec, "terminationGracePeriodSeconds", grace_s(story));
    if (str_starts_with(story, "gate-")) {
        cJSON *gate = json_new_object();
        json_add_str(gate, "conditionType", "apps.neo.io/in-place-ready");
        json_append_item(json_add_array(spec, "readinessGates"), gate);
    }
    json_add_item(spec, "containers", containers_of(json_get(recording->first, "images"), story, false));
    const cJSON *inits = json_get(recording->first, "initImages");
    if (inits && inits->child)
        json_add_item(spec, "initContainers", containers_of(inits, story, true));
    return json_print(pod);
}

/* How long creating took is the recording's: it is not what the story is about. */
static struct kubelet_options options_of(const struct story *story, const struct recording *recording)
{
    struct kubelet_options options = {.seed = story->seed, .jitter_percent = -1, .race = story->race};
    kubelet_options_real(&options);
    if (options.race == KUBELET_RACE_SEEDED)
        options.race = KUBELET_RACE_SEPARATE;
    const struct state *states = recording->states.items;
    options.relist_phase_us = story->phase_ms * US_PER_MS;
    size_t ready = 0;
    while (strstr(states[ready].text, "PodReadyToStartContainers=False"))
        ready++;
    options.sandbox_us = states[ready].at_us - states[0].at_us;
    options.start_us = 80 * US_PER_MS;
    options.probe_us = 40 * US_PER_MS;
    options.pull_us = 1;
    options.stop_us = story->stop_ms * US_PER_MS;
    if (strcmp(story->name, "two-containers-one-changed") == 0)
        options.jitter_percent = 300;
    return options;
}

static void do_deed(struct world *world, const struct deed *deed)
{
    if (deed->list)
        world_set_image(world, "p", deed->list, deed->container, deed->value);
    else
        world_set_gate(world, "p", deed->value);
}

static struct world *tell(const struct story *story, const struct recording *recording)
{
    const struct kubelet_options options = options_of(story, recording);
    struct world *world = world_make(&options);
    world_run_until(world, recording->states.items[0].at_us - US_PER_MS);
    CLEANUP_FREE char *pod = pod_of(recording, story->name);
    world_create_pod(world, pod);
    for (size_t i = 0; i < recording->deed_count; i++) {
        world_run_until(world, recording->deeds[i].at_us);
        do_deed(world, &recording->deeds[i]);
    }
    world_run_until(world, recording->end_us + TOLERANCE_US);
    return world;
}

static void states_of_world(struct states *states, const struct world *world)
{
    for (size_t i = 0; i < world->seen_count; i++) {
        const cJSON *pod = world->seen[i].pod;
        const cJSON *status = json_get(pod, "status");
        if (json_get(status, "containerStatuses"))
            add_state(states, world->seen[i].at_us, json_int64_or(json_get(pod, "metadata"), "generation", 0),
                      status);
    }
}

/* --- comparing
 * ------------------------------------------------------------------------------------------------- */

static bool is_brief(const struct states *states, size_t index)
{
    return index + 1 < states->count &&
           states->items[index + 1].at_us - states->items[index].at_us < BRIEF_US;
}

static bool same_state(const struct state *a, const struct state *b, int64_t tolerance_us)
{
    return strcmp(a->text, b->text) == 0 && llabs(a->at_us - b->at_us) <= tolerance_us;
}

/* Both to the end, brief states of either side apart. What the model says after the recording's end does not
 * count. */
static bool same_order(const struct states *told, size_t i, const struct states *recorded, size_t j,
                       int64_t tolerance_us)
{
    if (j == recorded->count)
        return i == told->count || told->items[i].at_us >= recorded->items[j - 1].at_us;
    if (i < told->count && same_state(&told->items[i], &recorded->items[j], tolerance_us) &&
        same_order(told, i + 1, recorded, j + 1, tolerance_us))
        return true;
    if (i < told->count && is_brief(told, i) && same_order(told, i + 1, recorded, j, tolerance_us))
        return true;
    return is_brief(recorded, j) && same_order(told, i, recorded, j + 1, tolerance_us);
}

static void print_states(const char *who, const struct states *states)
{
    for (size_t i = 0; i < states->count; i++)
        fprintf(stderr, "%-8s %7.3f %s\n", who, (double)states->items[i].at_us / 1e6, states->items[i].text);
}

static void tells_the_story(void **state)
{
    const struct story *story = *state;
    struct recording recording = {0};
    struct states told = {0};
    recording_read(&recording, story);
    struct world *world = tell(story, &recording);
    states_of_world(&told, world);
    int64_t tolerance_us = story->tolerance_ms ? story->tolerance_ms * US_PER_MS : TOLERANCE_US;
    bool same = same_order(&told, 0, &recording.states, 0, tolerance_us);
    if (!same) {
        print_states("recorded", &recording.states);
        print_states("told", &told);
    }
    world_free(world);
    states_done(&told);
    recording_done(&recording);
    assert_true(same);
}

/* --- the completion rule on the told story
 * -------------------------------------------------------------------- */

/* What expected.tsv says of a patch: seconds, "never", or NULL when it says nothing. */
static char *expectation_of(const char *table, const char *story, int64_t generation)
{
    CLEANUP_FREE char *key = xasprintf("%s\t%lld\t", story, (long long)generation);
    for (const char *line = table; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (str_starts_with(line, key))
            return xstrndup(line + strlen(key), strcspn(line + strlen(key), "\t\n"));
    }
    return NULL;
}

static bool is_done_as_expected(const struct trace_patch *patch, const char *expected, int64_t tolerance_us)
{
    if (strcmp(expected, "never") == 0)
        return patch->done_us < 0;
    int64_t expected_us = (int64_t)(strtod(expected, NULL) * 1e6);
    return patch->done_us >= 0 && llabs(patch->done_us - expected_us) <= tolerance_us;
}

static void is_judged_as_the_recorded_one(void **state)
{
    const struct story *story = *state;
    struct recording recording = {0};
    recording_read(&recording, story);
    struct world *world = tell(story, &recording);
    size_t length;
    CLEANUP_FREE char *text = world_trace(world, "p", &length);
    struct trace_result result;
    assert_int_equal(trace_play(story->name, text, length, trace_rule_completion, NULL, &result, NULL), 0);
    CLEANUP_FREE char *table = whole_file("tests/replay/traces/expected.tsv", NULL);
    int64_t tolerance_us = story->tolerance_ms ? story->tolerance_ms * US_PER_MS : TOLERANCE_US;
    for (size_t i = 0; i < result.patch_count; i++) {
        CLEANUP_FREE char *expected = expectation_of(table, story->name, result.patches[i].generation);
        if (expected && !is_done_as_expected(&result.patches[i], expected, tolerance_us))
            fail_msg("%s, generation %lld: expected %s, done at %.3f", story->name,
                     (long long)result.patches[i].generation, expected,
                     (double)result.patches[i].done_us / 1e6);
    }
    world_free(world);
    recording_done(&recording);
}

int main(void)
{
    enum { STORIES = ARRAY_SIZE(stories) };
    struct CMUnitTest tests[2 * STORIES];
    char *names[STORIES];
    for (size_t i = 0; i < STORIES; i++) {
        names[i] = xasprintf("%s, judged", stories[i].name);
        tests[2 * i] = (struct CMUnitTest){
            .name = stories[i].name, .test_func = tells_the_story, .initial_state = (void *)&stories[i]};
        tests[2 * i + 1] = (struct CMUnitTest){.name = names[i],
                                               .test_func = is_judged_as_the_recorded_one,
                                               .initial_state = (void *)&stories[i]};
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (size_t i = 0; i < STORIES; i++)
        free(names[i]);
    return failed;
}
