/* SPDX-License-Identifier: Apache-2.0
 *
 * One serial worker a pod (kubelet 1.36, pod_workers.go). It takes the newest update, waits until the
 * containers were listed after its last sync, posts the status, then works:
 *
 *            trigger            listed               steps done
 *   IDLE ------------> WAITING --------> SYNCING ------------------> IDLE, or WAITING when an update is
 * pending |                 ^                | |                 +-- next step ---+ | the pod is being
 * deleted, or evicted
 *                         v
 *                      KILLING ----------> FINISHING ----------> GONE
 *                              all stopped           listed: final status, deletion
 */
#include "kubesim/kubelet_parts.h"

enum { RELIST_TAKES_US = 2000 };

static bool is_lost(const struct pod *pod)
{
    return pod->current->behaviour & BEHAVE_NODE_LOST;
}

/* When the cache of containers is newer than the last sync. */
static int64_t cache_newer_us(const struct kubelet *kubelet, const struct pod *pod)
{
    if (!pod->last_sync_us || pod->observed_us > pod->last_sync_us ||
        kubelet_last_list_us(kubelet) > pod->last_sync_us)
        return kubelet->now_us;
    return kubelet_next_list_us(kubelet, pod->last_sync_us);
}

static void take(struct kubelet *kubelet, struct pod *pod)
{
    ENSURE(pod->pending);
    pod_spec_unref(pod->sync);
    pod->sync = STEAL(pod->pending);
    pod->worker = WORKER_WAITING;
    pod->worker_due_us = cache_newer_us(kubelet, pod);
}

void pod_trigger(struct kubelet *kubelet, struct pod *pod)
{
    /* What is started already is no new pod: it goes on. */
    bool is_kept_out =
        pod->current->behaviour & BEHAVE_PENDING && !pod->last_sync_us && !pod->current->is_deleting;
    if (!pod->is_ours || is_lost(pod) || is_kept_out || pod->worker >= WORKER_KILLING)
        return;
    pod_spec_unref(pod->pending);
    pod->pending = pod_spec_ref(pod->current);
    if (pod->worker == WORKER_IDLE)
        take(kubelet, pod);
}

void pod_changed(struct kubelet *kubelet, struct pod *pod)
{
    if (pod->pleg_due_us == NEVER)
        pod->pleg_due_us = kubelet_next_list_us(kubelet, kubelet->now_us);
}

static bool same_instance(const struct instance *a, const struct instance *b)
{
    return a->state != RUN_NONE && b->state != RUN_NONE && memcmp(a->id, b->id, sizeof(a->id)) == 0;
}

/* One list's news of a container: how many events it makes. */
static unsigned container_see(struct container *container)
{
    unsigned events = 0;
    if (!same_instance(&container->seen_now, &container->now)) {
        events += container->seen_now.state == RUN_RUNNING;
        events += container->now.state != RUN_NONE;
    } else {
        events += container->seen_now.state != container->now.state;
    }
    container->seen_now = container->now;
    container->seen_last = container->last;
    return events;
}

/* Two events of one list are two updates when the worker is quick enough to take the first before the second.
 */
static bool events_are_separate(struct kubelet *kubelet)
{
    if (kubelet->options.race == KUBELET_RACE_SEEDED)
        return kubelet_random(kubelet) & 1;
    return kubelet->options.race == KUBELET_RACE_SEPARATE;
}

void pod_relist(struct kubelet *kubelet, struct pod *pod, bool alone)
{
    unsigned events = pod->has_sandbox && !pod->seen_sandbox;
    pod->seen_sandbox = pod->has_sandbox;
    for (size_t i = 0; i < pod->container_count; i++)
        events += container_see(&pod->containers[i]);
    pod->pleg_due_us = NEVER;
    if (alone) {
        pod->observed_us = kubelet->now_us;
        if (pod->worker == WORKER_WAITING)
            pod->worker_due_us = cache_newer_us(kubelet, pod);
    }
    if (events)
        pod_trigger(kubelet, pod);
    if (events > 1 && events_are_separate(kubelet))
        pod_trigger(kubelet, pod);
}

/* --- the end of a pod --- */

static bool ended_by_itself(const struct pod *pod)
{
    return str_equal(pod->shown_phase, "Succeeded") || str_equal(pod->shown_phase, "Failed");
}

static void begin_end(struct kubelet *kubelet, struct pod *pod)
{
    status_generate(kubelet, pod, pod->current, false);
    pod->worker = WORKER_KILLING;
    pod->kill_us = runtime_stop_all_us(kubelet, pod);
    pod->worker_due_us = kubelet->now_us + pod->kill_us;
}

static void finish_killing(struct kubelet *kubelet, struct pod *pod)
{
    runtime_stopped_all(kubelet, pod);
    status_generate(kubelet, pod, pod->current, true);
    pod->worker = WORKER_FINISHING;
    pod->worker_due_us = kubelet_next_list_us(kubelet, kubelet->now_us);
}

static void finish(struct kubelet *kubelet, struct pod *pod)
{
    if (pod->post_due_us != NEVER)
        status_post(kubelet, pod);
    pod->worker = WORKER_GONE;
    pod->worker_due_us = NEVER;
    if (pod->current->is_deleting)
        kubelet->options.callbacks.delete_pod(kubelet->options.context, pod->namespace, pod->name, pod->uid);
}

/* --- a sync --- */

/* Until the back-off is over, but not longer than pods are looked at anyway; up to half of it more
 * (wait.Jitter), and a whole turn of the queue at least. */
static int64_t retry_wait_us(struct kubelet *kubelet, const struct pod *pod)
{
    int64_t usual_us = kubelet->options.backoff_us;
    int64_t wait_us = pod->retry_us ? MAX(MIN(pod->retry_us - kubelet->now_us, usual_us), 0) : usual_us;
    wait_us += wait_us / 2 * (int64_t)(kubelet_random(kubelet) % 1000) / 1000;
    return MAX(wait_us, kubelet->options.relist_us);
}

static void end_sync(struct kubelet *kubelet, struct pod *pod)
{
    pod->last_sync_us = kubelet->now_us;
    pod->worker = WORKER_IDLE;
    pod->worker_due_us = NEVER;
    if (pod->sync_started_something && !pod->sync_failed)
        pod->relist_due_us = kubelet->now_us + RELIST_TAKES_US;
    pod->requeue_due_us = NEVER;
    if (pod->sync_failed)
        pod->requeue_due_us = kubelet->now_us + retry_wait_us(kubelet, pod);
    if (pod->pending)
        take(kubelet, pod);
}

static void begin_sync(struct kubelet *kubelet, struct pod *pod)
{
    if (pod->current->is_deleting || pod->is_evicted) {
        begin_end(kubelet, pod);
        return;
    }
    pod->worker = WORKER_SYNCING;
    status_generate(kubelet, pod, pod->sync, false);
    if (ended_by_itself(pod)) {
        pod->worker = WORKER_GONE;
        pod->worker_due_us = NEVER;
        return;
    }
    runtime_plan(kubelet, pod);
    if (runtime_go_on(kubelet, pod))
        end_sync(kubelet, pod);
}

void pod_worker_run(struct kubelet *kubelet, struct pod *pod)
{
    switch (pod->worker) {
    case WORKER_WAITING:
        begin_sync(kubelet, pod);
        break;
    case WORKER_SYNCING:
        if (runtime_go_on(kubelet, pod))
            end_sync(kubelet, pod);
        break;
    case WORKER_KILLING:
        finish_killing(kubelet, pod);
        break;
    case WORKER_FINISHING:
        finish(kubelet, pod);
        break;
    case WORKER_IDLE:
    case WORKER_GONE:
        pod->worker_due_us = NEVER;
        break;
    }
}
