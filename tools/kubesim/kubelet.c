/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/kubelet_parts.h"

#define OR_DEFAULT(field, value) ((field) = (field) ? (field) : (value))

enum { BIND_AGAIN_US = 2000000 };

void kubelet_options_real(struct kubelet_options *options)
{
    options->relist_us = US_PER_S;
    options->sandbox_us = 60 * US_PER_MS;
    options->start_us = 100 * US_PER_MS;
    options->stop_us = 500 * US_PER_MS;
    options->pull_us = 2 * US_PER_S;
    options->slow_pull_us = 15 * US_PER_S;
    options->init_us = 500 * US_PER_MS;
    options->probe_us = 30 * US_PER_MS;
    options->startup_us = 2 * US_PER_S;
    options->crash_after_us = US_PER_S;
    options->evict_after_us = 10 * US_PER_S;
    options->lost_after_us = 40 * US_PER_S;
    options->backoff_us = 10 * US_PER_S;
    options->post_us = 5 * US_PER_MS;
}

static void set_defaults(struct kubelet_options *options)
{
    OR_DEFAULT(options->node_prefix, "kubesim-node");
    OR_DEFAULT(options->node_count, 1);
    OR_DEFAULT(options->jitter_percent, 50);
    OR_DEFAULT(options->relist_us, 200 * US_PER_MS);
    OR_DEFAULT(options->sandbox_us, 20 * US_PER_MS);
    OR_DEFAULT(options->start_us, 20 * US_PER_MS);
    OR_DEFAULT(options->stop_us, 60 * US_PER_MS);
    OR_DEFAULT(options->pull_us, 50 * US_PER_MS);
    OR_DEFAULT(options->slow_pull_us, 3 * US_PER_S);
    OR_DEFAULT(options->init_us, 100 * US_PER_MS);
    OR_DEFAULT(options->probe_us, 20 * US_PER_MS);
    OR_DEFAULT(options->startup_us, 100 * US_PER_MS);
    OR_DEFAULT(options->crash_after_us, US_PER_S);
    OR_DEFAULT(options->evict_after_us, 2 * US_PER_S);
    OR_DEFAULT(options->lost_after_us, 40 * US_PER_S);
    OR_DEFAULT(options->backoff_us, 10 * US_PER_S);
    OR_DEFAULT(options->post_us, US_PER_MS);
}

struct kubelet *kubelet_make(const struct kubelet_options *options, int64_t start_us)
{
    PRE(options->callbacks.patch_status && options->callbacks.delete_pod);
    struct kubelet *kubelet = xcalloc(1, sizeof(*kubelet));
    kubelet->options = *options;
    set_defaults(&kubelet->options);
    if (options->behaviour)
        PRE(behaviour_read(options->behaviour, &kubelet->default_behaviour));
    kubelet->options.behaviour = NULL;
    kubelet->random = options->seed;
    kubelet->now_us = start_us;
    struct kubelet_digest *digests = xcalloc(MAX(options->digest_count, 1), sizeof(*digests));
    for (size_t i = 0; i < options->digest_count; i++) {
        digests[i].image = xstrdup(options->digests[i].image);
        digests[i].digest = xstrdup(options->digests[i].digest);
    }
    kubelet->options.digests = digests;
    kubelet->node_count = kubelet->options.node_count;
    kubelet->nodes = xcalloc(kubelet->node_count, sizeof(*kubelet->nodes));
    for (unsigned i = 0; i < kubelet->node_count; i++)
        kubelet->nodes[i] = xasprintf("%s-%u", kubelet->options.node_prefix, i);
    kubelet->options.node_prefix = NULL;
    return kubelet;
}

void kubelet_free(struct kubelet *kubelet)
{
    if (!kubelet)
        return;
    struct pod *pod = kubelet->pods;
    HASH_CLEAR(hh, kubelet->pods);
    while (pod) {
        struct pod *next = pod->hh.next;
        pod_free(pod);
        pod = next;
    }
    images_free(kubelet);
    for (unsigned i = 0; i < kubelet->node_count; i++)
        free(kubelet->nodes[i]);
    free(kubelet->nodes);
    for (size_t i = 0; i < kubelet->options.digest_count; i++) {
        free((char *)kubelet->options.digests[i].image);
        free((char *)kubelet->options.digests[i].digest);
    }
    free((struct kubelet_digest *)kubelet->options.digests);
    free(kubelet->heap);
    free(kubelet);
}

/* --- numbers and times --- */

/* SplitMix64. */
uint64_t kubelet_random(struct kubelet *kubelet)
{
    uint64_t z = kubelet->random += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

int64_t kubelet_vary(struct kubelet *kubelet, int64_t duration_us)
{
    int64_t range_us = duration_us * kubelet->options.jitter_percent / 100;
    if (range_us <= 0)
        return duration_us;
    return duration_us + (int64_t)(kubelet_random(kubelet) % (uint64_t)range_us);
}

int64_t kubelet_last_list_us(const struct kubelet *kubelet)
{
    int64_t since_us = kubelet->now_us - kubelet->options.relist_phase_us;
    return kubelet->now_us - since_us % kubelet->options.relist_us;
}

int64_t kubelet_next_list_us(const struct kubelet *kubelet, int64_t after_us)
{
    int64_t since_us = after_us - kubelet->options.relist_phase_us;
    return after_us - since_us % kubelet->options.relist_us + kubelet->options.relist_us;
}

/* --- the heap of pods by next_us --- */

static bool heap_before(const struct pod *a, const struct pod *b)
{
    return a->next_us < b->next_us;
}

static void heap_place(struct kubelet *kubelet, size_t index, struct pod *pod)
{
    kubelet->heap[index] = pod;
    pod->heap_index = index;
}

static void heap_sift(struct kubelet *kubelet, size_t index)
{
    struct pod *pod = kubelet->heap[index];
    while (index > 0 && heap_before(pod, kubelet->heap[(index - 1) / 2])) {
        heap_place(kubelet, index, kubelet->heap[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    for (;;) {
        size_t child = 2 * index + 1;
        if (child >= kubelet->heap_count)
            break;
        if (child + 1 < kubelet->heap_count && heap_before(kubelet->heap[child + 1], kubelet->heap[child]))
            child++;
        if (!heap_before(kubelet->heap[child], pod))
            break;
        heap_place(kubelet, index, kubelet->heap[child]);
        index = child;
    }
    heap_place(kubelet, index, pod);
}

void heap_add(struct kubelet *kubelet, struct pod *pod)
{
    if (kubelet->heap_count == kubelet->heap_room) {
        kubelet->heap_room = MAX(64, 2 * kubelet->heap_room);
        kubelet->heap = xreallocarray(kubelet->heap, kubelet->heap_room, sizeof(struct pod *));
    }
    heap_place(kubelet, kubelet->heap_count++, pod);
    heap_sift(kubelet, pod->heap_index);
}

void heap_remove(struct kubelet *kubelet, struct pod *pod)
{
    size_t index = pod->heap_index;
    struct pod *last = kubelet->heap[--kubelet->heap_count];
    if (last == pod)
        return;
    heap_place(kubelet, index, last);
    heap_sift(kubelet, index);
}

static void earlier(int64_t *next_us, int64_t timer_us)
{
    if (timer_us != NEVER && timer_us < *next_us)
        *next_us = timer_us;
}

void pod_schedule(struct kubelet *kubelet, struct pod *pod)
{
    int64_t next_us = INT64_MAX;
    earlier(&next_us, pod->worker_due_us);
    earlier(&next_us, pod->relist_due_us);
    earlier(&next_us, pod->pleg_due_us);
    earlier(&next_us, pod->requeue_due_us);
    earlier(&next_us, pod->bind_due_us);
    earlier(&next_us, pod->evict_due_us);
    earlier(&next_us, pod->lost_due_us);
    earlier(&next_us, pod->post_due_us);
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct container *container = &pod->containers[i];
        earlier(&next_us, container->exit_due_us);
        earlier(&next_us, container->ready_due_us);
        earlier(&next_us, container->unready_due_us);
        earlier(&next_us, container->startup_tick_us);
        earlier(&next_us, container->startup_due_us);
    }
    pod->next_us = next_us;
    heap_sift(kubelet, pod->heap_index);
}

/* --- time --- */

static bool take_due(const struct kubelet *kubelet, int64_t *timer_us)
{
    if (*timer_us == NEVER || *timer_us > kubelet->now_us)
        return false;
    *timer_us = NEVER;
    return true;
}

static void bind(struct kubelet *kubelet, struct pod *pod)
{
    const char *node = kubelet->nodes[kubelet->next_node++ % kubelet->node_count];
    pod->bind_due_us = kubelet->now_us + BIND_AGAIN_US;
    kubelet->options.callbacks.bind_pod(kubelet->options.context, pod->namespace, pod->name, pod->uid, node);
}

static void evict(struct kubelet *kubelet, struct pod *pod)
{
    pod->is_evicted = true;
    pod_trigger(kubelet, pod);
}

/* Containers end and probes answer. False: nothing is due. */
static bool run_containers(struct kubelet *kubelet, struct pod *pod)
{
    for (size_t i = 0; i < pod->container_count; i++) {
        struct container *container = &pod->containers[i];
        if (take_due(kubelet, &container->exit_due_us)) {
            const char *reason = container->exit_code ? "Error" : "Completed";
            container_exit(kubelet, pod, container, container->exit_code, reason);
            return true;
        }
        if (prober_run(kubelet, pod, container))
            return true;
    }
    return false;
}

/* One thing that is due, of several at one moment in this order: lists come before the syncs that wait for
 * them. */
static void run_one(struct kubelet *kubelet, struct pod *pod)
{
    if (take_due(kubelet, &pod->bind_due_us))
        bind(kubelet, pod);
    else if (take_due(kubelet, &pod->relist_due_us))
        pod_relist(kubelet, pod, true);
    else if (take_due(kubelet, &pod->pleg_due_us))
        pod_relist(kubelet, pod, false);
    else if (take_due(kubelet, &pod->requeue_due_us))
        pod_trigger(kubelet, pod);
    else if (take_due(kubelet, &pod->evict_due_us))
        evict(kubelet, pod);
    else if (take_due(kubelet, &pod->lost_due_us))
        status_set_lost(kubelet, pod);
    else if (run_containers(kubelet, pod))
        return;
    else if (pod->post_due_us != NEVER && pod->post_due_us <= kubelet->now_us)
        status_post(kubelet, pod);
    else if (pod->worker_due_us != NEVER && pod->worker_due_us <= kubelet->now_us)
        pod_worker_run(kubelet, pod);
    else
        UNREACHABLE();
}

void kubelet_tick(struct kubelet *kubelet, int64_t now_us)
{
    while (kubelet->heap_count && kubelet->heap[0]->next_us <= now_us) {
        struct pod *pod = kubelet->heap[0];
        kubelet->now_us = MAX(kubelet->now_us, pod->next_us);
        run_one(kubelet, pod);
        pod_schedule(kubelet, pod);
    }
    kubelet->now_us = MAX(kubelet->now_us, now_us);
}

int64_t kubelet_next_us(const struct kubelet *kubelet)
{
    return kubelet->heap_count ? kubelet->heap[0]->next_us : INT64_MAX;
}

bool kubelet_kill_container(struct kubelet *kubelet, const char *namespace, const char *name,
                            const char *container, int64_t now_us)
{
    kubelet->now_us = MAX(kubelet->now_us, now_us);
    for (struct pod *pod = kubelet->pods; pod; pod = pod->hh.next) {
        if (strcmp(pod->namespace, namespace) != 0 || strcmp(pod->name, name) != 0)
            continue;
        for (size_t i = 0; i < pod->container_count; i++) {
            if (strcmp(pod->current->containers[i].name, container) != 0 ||
                pod->containers[i].now.state != RUN_RUNNING)
                continue;
            container_exit(kubelet, pod, &pod->containers[i], 137, "Error");
            pod_schedule(kubelet, pod);
            return true;
        }
    }
    return false;
}

/* --- nodes --- */

unsigned kubelet_node_count(const struct kubelet *kubelet)
{
    return kubelet->node_count;
}

const char *kubelet_node_name(const struct kubelet *kubelet, unsigned index)
{
    PRE(index < kubelet->node_count);
    return kubelet->nodes[index];
}

cJSON *kubelet_node_object(const struct kubelet *kubelet, unsigned index, int64_t now_us)
{
    const char *name = kubelet_node_name(kubelet, index);
    char now[TIME_TEXT_SIZE];
    time_format_seconds(now_us, now);
    cJSON *node = json_new_object();
    json_add_str(node, "apiVersion", "v1");
    json_add_str(node, "kind", "Node");
    cJSON *meta = json_add_object(node, "metadata");
    json_add_str(meta, "name", name);
    json_add_str(json_add_object(meta, "labels"), "kubernetes.io/hostname", name);
    cJSON *status = json_add_object(node, "status");
    static const char *const resources[] = {"capacity", "allocatable"};
    for (size_t i = 0; i < ARRAY_SIZE(resources); i++) {
        cJSON *resource = json_add_object(status, resources[i]);
        json_add_str(resource, "cpu", "1k");
        json_add_str(resource, "memory", "1Ti");
        json_add_str(resource, "pods", "100k");
    }
    cJSON *ready = json_new_object();
    json_add_str(ready, "type", "Ready");
    json_add_str(ready, "status", "True");
    json_add_str(ready, "reason", "KubeletReady");
    json_add_str(ready, "message", "played by kubesim");
    json_add_str(ready, "lastHeartbeatTime", now);
    json_add_str(ready, "lastTransitionTime", now);
    json_append_item(json_add_array(status, "conditions"), ready);
    return node;
}

size_t kubelet_pod_count(const struct kubelet *kubelet)
{
    return HASH_COUNT(kubelet->pods);
}
