/* SPDX-License-Identifier: Apache-2.0 */
#include "trace.h"

#include "base/time_text.h"

#include <math.h>

/* Wall clock of the moment when the pod was created. */
#define CREATED_US (1800000000 * US_PER_S)
enum { STARTUP_PERIOD_S = 3 };

struct play {
    struct trace_result *result;
    trace_rule *rule;
    void *context;
    struct intern *pool;
    struct neoset_memory *memory;
    bool has_gate;
    bool has_startup_probe;
    struct pod_fact *last; /* the newest version */
    cJSON *last_object;    /* the same as the server would show it */
    char *state;           /* the annotation, stamped; NULL before the first patch */
    char *witness;         /* the message of our condition; NULL: none for this update */
    struct trace_patch *current;
    bool gate_was_closed; /* since the current patch: it may open now */
    int64_t again_us;
};

/* A number that is no integer keeps its text (base/json.h). */
static int64_t to_us(const cJSON *event)
{
    const cJSON *t = json_get(event, "t");
    if (cJSON_IsRaw(t))
        return (int64_t)llround(strtod(t->valuestring, NULL) * 1e6);
    return cJSON_IsNumber(t) ? (int64_t)llround(t->valuedouble * 1e6) : 0;
}

/* --- from a line of the trace to an object of the server
 * ---------------------------------------------------- */

static void add_containers(cJSON *spec, const char *key, const cJSON *images, bool startup_probe)
{
    cJSON *list = json_add_array(spec, key);
    const cJSON *image = NULL;
    cJSON_ArrayForEach (image, images) {
        cJSON *container = json_new_object();
        json_add_str(container, "name", image->string);
        json_add_str(container, "image", cJSON_IsString(image) ? image->valuestring : "");
        if (startup_probe)
            json_add_int64(json_add_object(container, "startupProbe"), "periodSeconds", STARTUP_PERIOD_S);
        json_append_item(list, container);
    }
}

static void copy_member(cJSON *to, const cJSON *from, const char *key)
{
    const cJSON *value = json_get(from, key);
    if (value && !cJSON_IsNull(value))
        json_set_item(to, key, json_copy(value));
}

static const cJSON *condition_of(const cJSON *pod, const char *type)
{
    const cJSON *condition = NULL;
    cJSON_ArrayForEach (condition, json_get(pod, "conditions")) {
        if (str_equal(json_str(condition, "type"), type))
            return condition;
    }
    return NULL;
}

/* Our condition with our message: a pod without a gate gets it too, as a record. */
static void put_condition(cJSON *status, const char *message)
{
    cJSON *conditions = json_get(status, "conditions");
    cJSON *condition = NULL, *found = NULL;
    cJSON_ArrayForEach (condition, conditions) {
        if (str_equal(json_str(condition, "type"), NEOSET_GATE))
            found = condition;
    }
    if (!found) {
        found = json_new_object();
        json_add_str(found, "type", NEOSET_GATE);
        json_add_str(found, "status", "True");
        json_append_item(conditions, found);
    }
    json_set_str(found, "message", message);
}

static cJSON *make_object(const struct play *play, const cJSON *pod)
{
    cJSON *object = json_new_object();
    cJSON *metadata = json_add_object(object, "metadata");
    json_add_str(metadata, "name", "trace-0");
    json_add_str(metadata, "namespace", "default");
    json_add_str(metadata, "uid", "one-pod-a-trace");
    copy_member(metadata, pod, "resourceVersion");
    copy_member(metadata, pod, "generation");
    copy_member(metadata, pod, "deletionTimestamp");
    if (play->state)
        json_add_str(json_add_object(metadata, "annotations"), NEOSET_STATE_ANNOTATION, play->state);
    cJSON *spec = json_add_object(object, "spec");
    add_containers(spec, "containers", json_get(pod, "images"), play->has_startup_probe);
    if (play->has_gate) {
        cJSON *gate = json_new_object();
        json_add_str(gate, "conditionType", NEOSET_GATE);
        json_append_item(json_add_array(spec, "readinessGates"), gate);
    }
    cJSON *status = json_add_object(object, "status");
    static const char *const members[] = {"phase", "observedGeneration", "containerStatuses",
                                          "initContainerStatuses", "conditions"};
    for (size_t i = 0; i < ARRAY_SIZE(members); i++)
        copy_member(status, pod, members[i]);
    if (!json_get(status, "conditions"))
        json_add_array(status, "conditions");
    if (play->witness)
        put_condition(status, play->witness);
    return object;
}

/* --- what the controller writes
 * ----------------------------------------------------------------------------- */

/* The patch of this generation was made on the version before. */
static void apply_patch(struct play *play, struct trace_patch *patch, const cJSON *images, int64_t at_us)
{
    struct image_change changes[UINT8_MAX];
    size_t count = 0;
    const cJSON *image = NULL;
    cJSON_ArrayForEach (image, images) {
        const struct container_fact *container = pod_fact_container(play->last, image->string);
        bool changed =
            container && cJSON_IsString(image) && !str_equal(container->spec_image, image->valuestring);
        if (changed && count < ARRAY_SIZE(changes))
            changes[count++] = (struct image_change){image->string, image->valuestring};
    }
    bool proven = !play->current || play->current->done_us >= 0;
    CLEANUP_FREE char *target = xasprintf("revision-%lld", (long long)patch->generation);
    const struct pod_observation *seen = neoset_memory_pod(play->memory, 0, play->last->uid);
    struct in_place_state *state =
        completion_baselines(play->last, proven, seen, at_us, target, changes, count, CREATED_US);
    CLEANUP_FREE char *text = in_place_state_print(state);
    in_place_state_free(state);
    CLEANUP_JSON cJSON *tree = NULL;
    ENSURE(json_parse(text, strlen(text), &tree, NULL) == 0);
    json_add_str(tree, "step", target);
    free(play->state);
    play->state = json_print(tree);
    free(STEAL(play->witness));
    play->gate_was_closed = play->last->gate != IS_TRUE;
    play->current = patch;
    patch->applied = true;
}

static char *make_witness(const struct play *play, const struct pod_fact *pod)
{
    CLEANUP_JSON cJSON *message = json_new_object();
    CLEANUP_FREE char *update = xasprintf("revision-%lld", (long long)play->current->generation);
    json_add_str(message, "step", "the-gate-itself");
    json_add_str(message, "update", update);
    cJSON *containers = json_add_object(message, "containers");
    for (size_t i = 0; i < pod->state->container_count; i++) {
        const char *name = pod->state->containers[i].name;
        const struct container_fact *container = pod_fact_container(pod, name);
        json_add_str(containers, name,
                     container && container->container_id ? container->container_id : "none");
    }
    return json_print(message);
}

/* With a gate, the version in which it opens after the kubelet saw the spec; else the first that it saw. The
 * write changes nothing but the condition, so the containers of that version are those that were read. */
static bool writes_witness(const struct play *play, const struct pod_fact *pod)
{
    if (!play->current || play->witness || !pod->state || pod->observed_generation < pod->generation)
        return false;
    return !play->has_gate || (play->gate_was_closed && pod->gate == IS_TRUE);
}

/* --- playing
 * ------------------------------------------------------------------------------------------------ */

static void judge(struct play *play, int64_t at_us)
{
    play->again_us = INT64_MAX;
    if (!play->current || play->current->done_us >= 0)
        return;
    const struct pod_observation *observation = neoset_memory_pod(play->memory, 0, play->last->uid);
    if (play->rule(play->context, play->last, observation, at_us, &play->again_us))
        play->current->done_us = at_us;
}

static void take_version(struct play *play, const cJSON *pod, int64_t at_us)
{
    json_delete(play->last_object);
    pod_fact_free(play->last);
    play->last_object = make_object(play, pod);
    play->last = pod_fact_make(play->pool, play->last_object);
    if (writes_witness(play, play->last)) {
        play->witness = make_witness(play, play->last);
        put_condition(json_get(play->last_object, "status"), play->witness);
        pod_fact_free(play->last);
        play->last = pod_fact_make(play->pool, play->last_object);
    }
    if (play->last->gate != IS_TRUE)
        play->gate_was_closed = true;
    neoset_observe_pod(play->memory, play->last, CREATED_US + at_us, at_us);
}

static void play_pod(struct play *play, const cJSON *pod, int64_t at_us)
{
    /* What time alone proves may be proven before this version. */
    if (play->again_us < at_us)
        judge(play, play->again_us);
    int64_t generation = json_int64_or(pod, "generation", 0);
    for (size_t i = 0; play->last && i < play->result->patch_count; i++) {
        struct trace_patch *patch = &play->result->patches[i];
        if (!patch->applied && patch->generation <= generation && play->last->generation < patch->generation)
            apply_patch(play, patch, json_get(pod, "images"), at_us);
    }
    take_version(play, pod, at_us);
    judge(play, at_us);
}

static int add_patch(struct trace_result *result, const cJSON *event, struct error **err)
{
    int64_t generation = 0;
    if (!json_int64(event, "generation", &generation))
        return error_set(err, ERROR_INVALID, "a patch without a generation");
    if (result->patch_count == TRACE_PATCHES_MAX)
        return error_set(err, ERROR_TOO_LARGE, "more than %d patches", TRACE_PATCHES_MAX);
    result->patches[result->patch_count++] = (struct trace_patch){.generation = generation, .done_us = -1};
    return 0;
}

/* Calls each with every line that is an event. */
static int each_event(const char *text, size_t length, struct play *play,
                      int (*each)(struct play *play, const cJSON *event, struct error **err),
                      struct error **err)
{
    size_t number = 0;
    const char *end = text + length;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t line = (size_t)((newline ? newline : end) - text);
        CLEANUP_JSON cJSON *event = NULL;
        number++;
        int result = line ? json_parse(text, line, &event, err) : 0;
        if (result == 0 && event)
            result = each(play, event, err);
        if (result < 0)
            return error_wrap(err, result, "line %zu", number);
        text += line + (newline != NULL);
    }
    return 0;
}

/* The patches first: a line may tell of a patch after the version that it made. */
static int first_pass(struct play *play, const cJSON *event, struct error **err)
{
    if (condition_of(json_get(event, "pod"), NEOSET_GATE))
        play->has_gate = true;
    return json_get(event, "patched") ? add_patch(play->result, event, err) : 0;
}

static int second_pass(struct play *play, const cJSON *event, struct error **err)
{
    (void)err;
    const cJSON *pod = json_get(event, "pod");
    if (cJSON_IsObject(pod))
        play_pod(play, pod, to_us(event));
    return 0;
}

bool trace_rule_completion(void *context, const struct pod_fact *pod,
                           const struct pod_observation *observation, int64_t at_us, int64_t *ret_again_us)
{
    (void)context;
    struct completion completion;
    completion_judge(pod, observation, at_us, &completion);
    *ret_again_us = completion.again_boot_us;
    return completion.done;
}

int trace_play(const char *name, const char *text, size_t length, trace_rule *rule, void *context,
               struct trace_result *ret, struct error **err)
{
    *ret = (struct trace_result){0};
    struct play play = {
        .result = ret,
        .rule = rule,
        .context = context,
        .pool = intern_make(),
        .memory = neoset_memory_make(),
        .has_gate = str_starts_with(name, "gate-"),
        .has_startup_probe = str_ends_with(name, "startup-probe"),
        .again_us = INT64_MAX,
    };
    int result = each_event(text, length, &play, first_pass, err);
    if (result == 0)
        result = each_event(text, length, &play, second_pass, err);
    json_delete(play.last_object);
    pod_fact_free(play.last);
    neoset_memory_free(play.memory);
    intern_free(play.pool);
    free(play.state);
    free(play.witness);
    return result;
}
