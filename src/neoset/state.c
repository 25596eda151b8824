/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/state.h"

#include "base/time_text.h"

struct in_place_state *in_place_state_make(struct intern *pool, const char *target, int64_t at_us)
{
    struct in_place_state *state = xcalloc(1, sizeof(*state));
    state->pool = pool;
    state->target = intern_get(pool, target);
    state->at_us = at_us;
    return state;
}

void in_place_state_free(struct in_place_state *state)
{
    if (!state)
        return;
    for (size_t i = 0; i < state->container_count; i++) {
        struct container_baseline *baseline = &state->containers[i];
        intern_put(state->pool, baseline->name);
        intern_put(state->pool, baseline->image);
        intern_put(state->pool, baseline->image_id);
        free(baseline->container_id);
        for (size_t trial = 0; trial < baseline->trial_count; trial++) {
            intern_put(state->pool, baseline->trials[trial].image);
            intern_put(state->pool, baseline->trials[trial].image_id);
        }
        free(baseline->trials);
    }
    free(state->containers);
    intern_put(state->pool, state->target);
    free(state->step);
    free(state->witness);
    free(state);
}

const struct container_baseline *in_place_state_container(const struct in_place_state *state,
                                                          const char *name)
{
    for (size_t i = 0; state && i < state->container_count; i++)
        if (str_equal(state->containers[i].name, name))
            return &state->containers[i];
    return NULL;
}

/* "" and "none" stand for nothing. */
static const char *something(const char *text)
{
    return text && *text && !str_equal(text, "none") ? text : NULL;
}

struct container_baseline *in_place_state_add(struct in_place_state *state, const char *name,
                                              const char *image, const char *container_id,
                                              const char *image_id, bool settled)
{
    PRE(state->container_count < UINT8_MAX);
    state->containers =
        xreallocarray(state->containers, (size_t)state->container_count + 1, sizeof(*state->containers));
    struct container_baseline *baseline = &state->containers[state->container_count++];
    *baseline = (struct container_baseline){
        .name = intern_get(state->pool, name),
        .image = intern_get(state->pool, image),
        .image_id = intern_get(state->pool, something(image_id)),
        .container_id = xstrdup_or_null(something(container_id)),
        .settled = settled,
    };
    return baseline;
}

void container_baseline_try(struct in_place_state *state, struct container_baseline *baseline,
                            const char *image, const char *image_id, bool never_ran)
{
    image_id = something(image_id);
    for (size_t i = 0; i < baseline->trial_count; i++) {
        struct image_trial *trial = &baseline->trials[i];
        if (!str_equal(trial->image, image))
            continue;
        if (image_id) {
            intern_put(state->pool, trial->image_id);
            trial->image_id = intern_get(state->pool, image_id);
            trial->never_ran = false;
        }
        return;
    }
    /* Past the bound the oldest knowledge is lost on the safe side: an unknown image counts as equal. */
    if (baseline->trial_count >= STATE_TRIALS_MAX) {
        struct image_trial *last = &baseline->trials[baseline->trial_count - 1];
        intern_put(state->pool, last->image_id);
        *last = (struct image_trial){.image = last->image};
        return;
    }
    baseline->trials =
        xreallocarray(baseline->trials, (size_t)baseline->trial_count + 1, sizeof(*baseline->trials));
    baseline->trials[baseline->trial_count++] = (struct image_trial){
        .image = intern_get(state->pool, image),
        .image_id = intern_get(state->pool, image_id),
        .never_ran = never_ran && !image_id,
    };
}

static void parse_container(struct in_place_state *state, const cJSON *node)
{
    const char *image = json_str(node, "image");
    if (!image || state->container_count == UINT8_MAX)
        return;
    struct container_baseline *baseline =
        in_place_state_add(state, node->string, image, json_str(node, "containerID"),
                           json_str(node, "imageID"), json_bool_or(node, "settled", false));
    const cJSON *trial = NULL;
    cJSON_ArrayForEach (trial, json_get(node, "tried")) {
        const char *tried = json_str(trial, "image");
        if (tried)
            container_baseline_try(state, baseline, tried, json_str(trial, "imageID"),
                                   json_bool_or(trial, "neverRan", false));
    }
}

struct in_place_state *in_place_state_parse(struct intern *pool, const char *text)
{
    CLEANUP_JSON cJSON *tree = NULL;
    size_t length = text ? strlen(text) : 0;
    if (length == 0 || length > STATE_TEXT_MAX || json_parse(text, length, &tree, NULL) < 0)
        return NULL;
    const char *target = json_str(tree, "target");
    if (!target)
        return NULL;
    int64_t at_us = 0;
    const char *at = json_str(tree, "at");
    if (at && time_parse_rfc3339(at, &at_us, NULL) < 0)
        at_us = 0;
    struct in_place_state *state = in_place_state_make(pool, target, at_us);
    state->step = xstrdup_or_null(json_str(tree, "step"));
    state->witness = xstrdup_or_null(json_str(tree, "witness"));
    state->drained = json_bool_or(tree, "drained", false);
    int64_t restarts = json_int64_or(tree, "restarts", 0);
    state->restarts = restarts > 0 && restarts <= INT32_MAX ? (int)restarts : 0;
    const cJSON *node = NULL;
    cJSON_ArrayForEach (node, json_get(tree, "containers")) {
        if (node->string && !in_place_state_container(state, node->string))
            parse_container(state, node);
    }
    return state;
}

static cJSON *container_json(const struct container_baseline *baseline)
{
    cJSON *node = json_new_object();
    json_add_str(node, "image", baseline->image);
    json_add_str(node, "containerID", baseline->container_id ? baseline->container_id : "none");
    if (baseline->image_id)
        json_add_str(node, "imageID", baseline->image_id);
    json_add_bool(node, "settled", baseline->settled);
    if (baseline->trial_count == 0)
        return node;
    cJSON *tried = json_add_array(node, "tried");
    for (size_t i = 0; i < baseline->trial_count; i++) {
        cJSON *trial = json_new_object();
        json_add_str(trial, "image", baseline->trials[i].image);
        if (baseline->trials[i].image_id)
            json_add_str(trial, "imageID", baseline->trials[i].image_id);
        if (baseline->trials[i].never_ran)
            json_add_bool(trial, "neverRan", true);
        json_append_item(tried, trial);
    }
    return node;
}

char *in_place_state_print(const struct in_place_state *state)
{
    CLEANUP_JSON cJSON *tree = json_new_object();
    json_add_str(tree, "target", state->target);
    char at[TIME_TEXT_SIZE];
    time_format_seconds(state->at_us, at);
    json_add_str(tree, "at", at);
    json_add_bool(tree, "drained", state->drained);
    json_add_int64(tree, "restarts", state->restarts);
    if (state->witness)
        json_add_str(tree, "witness", state->witness);
    cJSON *containers = json_add_object(tree, "containers");
    for (size_t i = 0; i < state->container_count; i++)
        json_add_item(containers, state->containers[i].name, container_json(&state->containers[i]));
    return json_print_sorted(tree);
}

bool gate_message_parse(const char *text, struct gate_message *ret)
{
    *ret = (struct gate_message){0};
    size_t length = text ? strlen(text) : 0;
    if (length == 0 || length > STATE_TEXT_MAX || json_parse(text, length, &ret->tree, NULL) < 0)
        return false;
    ret->step = json_str(ret->tree, "step");
    ret->update = json_str(ret->tree, "update");
    ret->target = json_str(ret->tree, "target");
    ret->containers = json_get(ret->tree, "containers");
    return cJSON_IsObject(ret->tree);
}

void gate_message_done(struct gate_message *message)
{
    json_delete(message->tree);
    *message = (struct gate_message){0};
}
