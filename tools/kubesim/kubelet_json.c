/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"
#include "kubesim/kubelet_parts.h"

static void add_time(cJSON *object, const char *key, int64_t at_us)
{
    char text[TIME_TEXT_SIZE];
    time_format_seconds(at_us, text);
    json_add_str(object, key, text);
}

static char *id_text(const uint8_t id[static 32])
{
    CLEANUP_FREE char *hex = hex_encode(id, 32);
    return xasprintf("containerd://%s", hex);
}

static void add_terminated(cJSON *state, const struct instance *instance)
{
    cJSON *terminated = json_add_object(state, "terminated");
    json_add_int64(terminated, "exitCode", instance->exit_code);
    json_add_str(terminated, "reason", instance->exit_reason);
    add_time(terminated, "startedAt", instance->started_us);
    add_time(terminated, "finishedAt", instance->finished_us);
    CLEANUP_FREE char *id = id_text(instance->id);
    json_add_str(terminated, "containerID", id);
}

static const char *waiting_message(const char *reason, const char *image, char **scratch)
{
    if (strcmp(reason, "ErrImagePull") == 0)
        return *scratch = xasprintf("failed to pull and unpack image \"%s\": not found", image);
    if (strcmp(reason, "ImagePullBackOff") == 0)
        return *scratch = xasprintf("Back-off pulling image \"%s\"", image);
    if (strcmp(reason, "CrashLoopBackOff") == 0)
        return *scratch = xasprintf("back-off restarting failed container");
    return NULL;
}

static void add_states(cJSON *tree, const struct shown_container *shown, const char *image)
{
    const struct instance *last = &shown->last;
    cJSON *state = json_add_object(tree, "state");
    if (shown->waiting) {
        cJSON *waiting = json_add_object(state, "waiting");
        json_add_str(waiting, "reason", shown->waiting);
        CLEANUP_FREE char *scratch = NULL;
        const char *message = waiting_message(shown->waiting, image, &scratch);
        if (message)
            json_add_str(waiting, "message", message);
        if (shown->now.state == RUN_EXITED)
            last = &shown->now;
    } else if (shown->now.state == RUN_RUNNING) {
        add_time(json_add_object(state, "running"), "startedAt", shown->now.started_us);
    } else if (shown->now.state == RUN_EXITED) {
        add_terminated(state, &shown->now);
    }
    cJSON *last_state = json_add_object(tree, "lastState");
    if (last->state == RUN_EXITED)
        add_terminated(last_state, last);
}

static cJSON *container_json(const struct pod *pod, size_t index)
{
    const struct shown_container *shown = &pod->containers[index].shown;
    const struct container_spec *spec = &pod->shown_spec->containers[index];
    cJSON *tree = json_new_object();
    json_add_str(tree, "name", spec->name);
    add_states(tree, shown, spec->image);
    json_add_bool(tree, "ready", shown->is_ready);
    json_add_int64(tree, "restartCount", shown->now.restarts);
    bool exists = shown->now.state != RUN_NONE;
    json_add_str(tree, "image", exists ? shown->now.image->reported : spec->image);
    json_add_str(tree, "imageID", exists ? shown->now.image->image_id : "");
    if (exists) {
        CLEANUP_FREE char *id = id_text(shown->now.id);
        json_add_str(tree, "containerID", id);
    }
    json_add_bool(tree, "started", shown->is_started);
    return tree;
}

static void add_conditions(cJSON *status, const struct pod *pod, bool is_old)
{
    static const char *const names[CONDITION_COUNT] = {"PodReadyToStartContainers", "Initialized", "Ready",
                                                       "ContainersReady", "PodScheduled"};
    cJSON *conditions = json_add_array(status, "conditions");
    for (enum condition_type type = 0; type < CONDITION_COUNT; type++) {
        const struct condition *condition = &pod->conditions[type];
        if (!condition->is_set)
            continue;
        cJSON *item = json_new_object();
        json_add_str(item, "type", names[type]);
        json_add_str(item, "status", condition->is_true ? "True" : "False");
        /* null takes what the API server has from before away. */
        json_add_item(item, "reason",
                      condition->reason ? json_new_str(condition->reason) : cJSON_CreateNull());
        json_add_item(item, "message",
                      condition->message ? json_new_str(condition->message) : cJSON_CreateNull());
        add_time(item, "lastTransitionTime", condition->since_us);
        if (!is_old)
            json_add_int64(item, "observedGeneration", condition->generation);
        json_append_item(conditions, item);
    }
}

static void add_ip(cJSON *status, const char *key, const char *ip)
{
    cJSON *item = json_new_object();
    json_add_str(item, "ip", ip);
    json_append_item(json_add_array(status, key), item);
}

static void add_addresses(cJSON *status, const struct pod *pod)
{
    CLEANUP_FREE char *host = xasprintf("172.18.%u.%u", pod->node_index / 250, pod->node_index % 250 + 2);
    json_add_str(status, "hostIP", host);
    add_ip(status, "hostIPs", host);
    if (!pod->ip)
        return;
    json_add_str(status, "podIP", pod->ip);
    add_ip(status, "podIPs", pod->ip);
}

cJSON *status_json(const struct kubelet *kubelet, const struct pod *pod)
{
    (void)kubelet;
    bool is_old = pod->current->behaviour & BEHAVE_OLD;
    cJSON *status = json_new_object();
    if (!is_old)
        json_add_int64(status, "observedGeneration", pod->shown_generation);
    json_add_str(status, "phase", pod->shown_phase);
    if (pod->is_evicted && str_equal(pod->shown_phase, "Failed")) {
        json_add_str(status, "reason", "Evicted");
        json_add_str(status, "message", "The node was low on resource: memory.");
    }
    add_time(status, "startTime", pod->start_us);
    add_addresses(status, pod);
    add_conditions(status, pod, is_old);
    const struct pod_spec *spec = pod->shown_spec;
    if (spec->init_count) {
        cJSON *inits = json_add_array(status, "initContainerStatuses");
        for (size_t i = 0; i < spec->init_count; i++)
            json_append_item(inits, container_json(pod, i));
    }
    cJSON *mains = json_add_array(status, "containerStatuses");
    for (size_t i = spec->init_count; i < spec->container_count; i++)
        json_append_item(mains, container_json(pod, i));
    return status;
}

/* --- taking over --- */

static void adopt_id(uint8_t id[static 32], const char *text)
{
    const char *hex = strstr(text, "://");
    hex = hex ? hex + 3 : text;
    if (!hex_decode(hex, id, 32))
        sha256_once(hex, strlen(hex), id);
}

static int64_t time_at(const cJSON *object, const char *key)
{
    const char *text = json_str(object, key);
    int64_t at_us = 0;
    if (text && time_parse_rfc3339(text, &at_us, NULL) < 0)
        return 0;
    return at_us;
}

static void adopt_terminated(struct instance *instance, const cJSON *terminated)
{
    instance->state = RUN_EXITED;
    instance->exit_code = (int)json_int64_or(terminated, "exitCode", 0);
    instance->exit_reason = instance->exit_code ? "Error" : "Completed";
    instance->started_us = time_at(terminated, "startedAt");
    instance->finished_us = time_at(terminated, "finishedAt");
    const char *id = json_str(terminated, "containerID");
    if (id)
        adopt_id(instance->id, id);
}

/* The image string that it was started from is not in the status: the spec's when it means the same. */
static const struct image *adopt_image(struct kubelet *kubelet, const struct pod *pod, size_t index,
                                       const char *reported)
{
    const char *wanted = pod->current->containers[index].image;
    CLEANUP_FREE char *normal = image_normalise(wanted);
    bool same = !reported || strcmp(normal, reported) == 0;
    struct image *image = image_get(kubelet, same ? wanted : reported, pod->current->behaviour);
    image->is_present = true;
    return image;
}

static void adopt_container(struct kubelet *kubelet, struct pod *pod, size_t index, const cJSON *tree)
{
    struct container *container = &pod->containers[index];
    const char *id = json_str(tree, "containerID");
    if (!id)
        return;
    struct instance *now = &container->now;
    const cJSON *running = json_path(tree, "state", "running", NULL);
    const cJSON *terminated = json_path(tree, "state", "terminated", NULL);
    const cJSON *last = json_path(tree, "lastState", "terminated", NULL);
    if (running) {
        now->state = RUN_RUNNING;
        now->started_us = time_at(running, "startedAt");
    } else {
        adopt_terminated(now, terminated ? terminated : last);
    }
    adopt_id(now->id, id);
    now->image = adopt_image(kubelet, pod, index, json_str(tree, "image"));
    now->restarts = (int)json_int64_or(tree, "restartCount", 0);
    if (last && (running || terminated)) {
        adopt_terminated(&container->last, last);
        container->last.image = now->image;
    }
    container->seen_now = container->now;
    container->seen_last = container->last;
    container->shown.is_started = json_bool_or(tree, "started", false);
    container->is_startup_probed = container->shown.is_started;
    container->startup = container->shown.is_started;
    memcpy(container->startup_id, now->id, sizeof(now->id));
    container->readiness = json_bool_or(tree, "ready", false);
    container->is_probed = container->readiness;
    memcpy(container->probed_id, now->id, sizeof(now->id));
}

void status_adopt(struct kubelet *kubelet, struct pod *pod, const cJSON *object)
{
    const cJSON *status = json_get(object, "status");
    pod->start_us = time_at(status, "startTime");
    pod->ip = xstrdup_or_null(json_str(status, "podIP"));
    static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};
    for (size_t list = 0; list < ARRAY_SIZE(lists); list++) {
        const cJSON *item;
        cJSON_ArrayForEach (item, json_get(status, lists[list])) {
            const char *name = json_str(item, "name");
            for (size_t i = 0; name && i < pod->container_count; i++)
                if (strcmp(pod->current->containers[i].name, name) == 0)
                    adopt_container(kubelet, pod, i, item);
        }
    }
    for (size_t i = 0; i < pod->container_count; i++)
        pod->has_sandbox = pod->has_sandbox || pod->containers[i].now.state != RUN_NONE;
    pod->seen_sandbox = pod->has_sandbox;
}
