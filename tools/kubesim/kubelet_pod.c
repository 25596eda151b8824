/* SPDX-License-Identifier: Apache-2.0
 *
 * What comes in: pods as the API server has them. */
#include "kubesim/kubelet_parts.h"

enum { BIND_DELAY_US = 1000 };

void pod_free(struct pod *pod)
{
    pod_spec_unref(pod->current);
    pod_spec_unref(pod->pending);
    pod_spec_unref(pod->sync);
    pod_spec_unref(pod->shown_spec);
    for (enum condition_type type = 0; type < CONDITION_COUNT; type++)
        free(pod->conditions[type].message);
    free(pod->containers);
    free(pod->steps);
    free(pod->uid);
    free(pod->namespace);
    free(pod->name);
    free(pod->node);
    free(pod->ip);
    free(pod);
}

static void pod_forget(struct kubelet *kubelet, struct pod *pod)
{
    HASH_DEL(kubelet->pods, pod);
    heap_remove(kubelet, pod);
    pod_free(pod);
}

static struct pod *pod_add(struct kubelet *kubelet, const cJSON *object, const char *uid)
{
    const char *namespace = json_path_str(object, "metadata", "namespace", NULL);
    const char *name = json_path_str(object, "metadata", "name", NULL);
    struct pod *pod = xcalloc(1, sizeof(*pod));
    pod->uid = xstrdup(uid);
    pod->namespace = xstrdup(namespace ? namespace : "default");
    pod->name = xstrdup(name ? name : "");
    pod->current = pod_spec_read(object, kubelet->default_behaviour);
    pod->container_count = pod->current->container_count;
    pod->containers = xcalloc(MAX(pod->container_count, 1), sizeof(*pod->containers));
    pod->steps = xcalloc(2 * pod->container_count + 1, sizeof(*pod->steps));
    pod->next_us = INT64_MAX;
    HASH_ADD_KEYPTR(hh, kubelet->pods, pod->uid, strlen(pod->uid), pod);
    heap_add(kubelet, pod);
    return pod;
}

/* A pod that names its node belongs to us when the node does; else it may be bound to one of ours. */
static void place(struct kubelet *kubelet, struct pod *pod, const cJSON *object)
{
    const char *node = json_path_str(object, "spec", "nodeName", NULL);
    if (!node || !*node) {
        bool may = kubelet->options.callbacks.bind_pod && !(pod->current->behaviour & BEHAVE_PENDING) &&
                   !pod->current->is_deleting;
        if (may && pod->bind_due_us == NEVER)
            pod->bind_due_us = kubelet->now_us + BIND_DELAY_US;
        return;
    }
    pod->bind_due_us = NEVER;
    pod->node = xstrdup(node);
    for (unsigned i = 0; i < kubelet->node_count; i++) {
        if (strcmp(kubelet->nodes[i], node) == 0) {
            pod->is_ours = true;
            pod->node_index = i;
        }
    }
    pod->is_ours = pod->is_ours || kubelet->options.all_nodes;
    if (!pod->is_ours)
        return;
    status_adopt(kubelet, pod, object);
    unsigned number = ++kubelet->next_ip;
    if (!pod->ip)
        pod->ip = xasprintf("10.%u.%u.%u", 128 + number / 62500, number / 250 % 250, number % 250 + 2);
}

/* The kubelet syncs a pod whose Ready does not follow from its gates (NeedToReconcilePodReadiness). */
static bool ready_is_stale(const struct pod *pod, const cJSON *object)
{
    const struct pod_spec *spec = pod->current;
    const cJSON *status = json_get(object, "status");
    const cJSON *item;
    const cJSON *condition = NULL;
    cJSON_ArrayForEach (item, json_get(status, "conditions"))
        if (str_equal(json_str(item, "type"), "Ready"))
            condition = item;
    if (!spec->gate_count || !condition)
        return false;
    bool *ready = xcalloc(spec->container_count, sizeof(*ready));
    for (size_t i = 0; i < spec->container_count; i++) {
        const cJSON *list =
            json_get(status, i < spec->init_count ? "initContainerStatuses" : "containerStatuses");
        cJSON_ArrayForEach (item, list)
            if (str_equal(json_str(item, "name"), spec->containers[i].name))
                ready[i] = json_bool_or(item, "ready", false);
    }
    const char *reason;
    CLEANUP_FREE char *message = NULL;
    bool is_ready = ready_condition(spec, ready, &reason, &message);
    free(ready);
    const char *shown = json_str(condition, "message");
    return str_equal(json_str(condition, "status"), "True") != is_ready ||
           strcmp(shown ? shown : "", message ? message : "") != 0;
}

/* The node's kubelet is gone: nothing that it had in hand will happen. */
static void silence(struct pod *pod)
{
    int64_t *const timers[] = {&pod->worker_due_us,  &pod->relist_due_us, &pod->pleg_due_us,
                               &pod->requeue_due_us, &pod->evict_due_us,  &pod->post_due_us};
    for (size_t i = 0; i < ARRAY_SIZE(timers); i++)
        *timers[i] = NEVER;
    for (size_t i = 0; i < pod->container_count; i++) {
        struct container *container = &pod->containers[i];
        container->exit_due_us = NEVER;
        container->ready_due_us = NEVER;
        container->unready_due_us = NEVER;
        container->startup_tick_us = NEVER;
        container->startup_due_us = NEVER;
    }
    pod_spec_unref(STEAL(pod->pending));
    pod->step_count = 0;
    if (pod->worker < WORKER_GONE)
        pod->worker = WORKER_IDLE;
}

static void follow_lost(struct kubelet *kubelet, struct pod *pod, bool was_lost)
{
    bool lost = pod->current->behaviour & BEHAVE_NODE_LOST;
    if (lost && !was_lost) {
        silence(pod);
        pod->lost_due_us = kubelet->now_us + kubelet->options.lost_after_us;
    } else if (!lost && was_lost) {
        pod->lost_due_us = NEVER;
        pod_trigger(kubelet, pod);
    }
}

static bool phase_is_final(const cJSON *object)
{
    const char *phase = json_path_str(object, "status", "phase", NULL);
    return str_equal(phase, "Succeeded") || str_equal(phase, "Failed");
}

/* Whether a change of the object is one of the spec in the kubelet's sense: it syncs then. */
static bool is_update(const struct pod_spec *before, const struct pod_spec *after)
{
    return before->generation != after->generation || before->meta_hash != after->meta_hash ||
           before->is_deleting != after->is_deleting || before->deletion_grace_us != after->deletion_grace_us;
}

static void begin(struct kubelet *kubelet, struct pod *pod, const cJSON *object)
{
    if (phase_is_final(object))
        pod->worker = WORKER_GONE;
    pod_trigger(kubelet, pod);
    follow_lost(kubelet, pod, false);
}

/* A storage that was restored from a copy gives numbers out again. The kubelet compares what it posted with
 * what it is shown. */
static void follow_version(struct kubelet *kubelet, struct pod *pod, const cJSON *object)
{
    const char *text = json_path_str(object, "metadata", "resourceVersion", NULL);
    int64_t version = text ? strtoll(text, NULL, 10) : 0;
    if (pod->is_ours && version < pod->version)
        status_set_forgotten(kubelet, pod);
    pod->version = version;
}

void kubelet_pod(struct kubelet *kubelet, const cJSON *object, int64_t now_us)
{
    kubelet->now_us = MAX(kubelet->now_us, now_us);
    const char *uid = json_path_str(object, "metadata", "uid", NULL);
    if (!uid || !json_get(json_get(object, "spec"), "containers"))
        return;
    struct pod *pod;
    HASH_FIND_STR(kubelet->pods, uid, pod);
    struct pod_spec *before = NULL;
    if (!pod) {
        pod = pod_add(kubelet, object, uid);
    } else {
        before = pod->current;
        pod->current = pod_spec_read(object, kubelet->default_behaviour);
        ENSURE(pod->current->container_count == pod->container_count);
    }
    pod->is_listed = true;
    bool was_bound = pod->node;
    if (!pod->node)
        place(kubelet, pod, object);
    if (pod->is_ours && !was_bound) {
        begin(kubelet, pod, object);
    } else if (pod->is_ours && before) {
        follow_lost(kubelet, pod, before->behaviour & BEHAVE_NODE_LOST);
        if (is_update(before, pod->current) || ready_is_stale(pod, object))
            pod_trigger(kubelet, pod);
    }
    bool lost = pod->current->behaviour & BEHAVE_NODE_LOST;
    if (pod->is_ours && pod->worker == WORKER_GONE && pod->current->is_deleting && !lost) {
        pod->worker = WORKER_FINISHING;
        pod->worker_due_us = kubelet->now_us;
    }
    pod_spec_unref(before);
    follow_version(kubelet, pod, object);
    pod_schedule(kubelet, pod);
}

void kubelet_pod_deleted(struct kubelet *kubelet, const cJSON *object, int64_t now_us)
{
    kubelet->now_us = MAX(kubelet->now_us, now_us);
    const char *uid = json_path_str(object, "metadata", "uid", NULL);
    struct pod *pod = NULL;
    if (uid)
        HASH_FIND_STR(kubelet->pods, uid, pod);
    if (pod)
        pod_forget(kubelet, pod);
}

void kubelet_list_begin(struct kubelet *kubelet)
{
    for (struct pod *pod = kubelet->pods; pod; pod = pod->hh.next)
        pod->is_listed = false;
}

void kubelet_list_end(struct kubelet *kubelet, int64_t now_us)
{
    kubelet->now_us = MAX(kubelet->now_us, now_us);
    struct pod *pod, *next;
    HASH_ITER (hh, kubelet->pods, pod, next) {
        if (!pod->is_listed)
            pod_forget(kubelet, pod);
        else if (pod->is_ours && pod->posted_hash)
            status_set_forgotten(kubelet, pod); /* numbers that went back may have overtaken what it knew */
    }
}
