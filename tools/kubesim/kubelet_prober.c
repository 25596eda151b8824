/* SPDX-License-Identifier: Apache-2.0
 *
 * Probes (kubelet 1.36, prober/worker.go). They look at the status that was shown last, not at the
 * containers: so a new container inherits what its startup probe said of the old one until the prober looks
 * again, once a period. Only what can change something is played: a probe that goes on succeeding makes no
 * event. */
#include "kubesim/kubelet_parts.h"

static bool same_id(const uint8_t a[static 32], const uint8_t b[static 32])
{
    return memcmp(a, b, 32) == 0;
}

static bool never_ready(const struct pod *pod, const struct container *container)
{
    unsigned behaviour = pod->current->behaviour;
    if (container->now.image)
        behaviour |= container->now.image->behaviour;
    return behaviour & BEHAVE_NEVER_READY;
}

static bool has_readiness(const struct pod *pod, size_t index)
{
    return pod->current->containers[index].has_readiness || never_ready(pod, &pod->containers[index]);
}

bool prober_is_started(const struct pod *pod, size_t index)
{
    const struct container *container = &pod->containers[index];
    if (container->seen_now.state != RUN_RUNNING)
        return false;
    if (container->is_startup_probed && same_id(container->startup_id, container->seen_now.id))
        return container->startup;
    return container->shown.is_started || !pod->current->containers[index].has_startup;
}

bool prober_is_ready(const struct pod *pod, size_t index)
{
    const struct container *container = &pod->containers[index];
    if (!prober_is_started(pod, index))
        return false;
    if (container->is_probed && same_id(container->probed_id, container->seen_now.id) && container->readiness)
        return true;
    return !has_readiness(pod, index);
}

/* --- what the status shows anew --- */

static void look_at_readiness(struct kubelet *kubelet, struct pod *pod, size_t index)
{
    struct container *container = &pod->containers[index];
    const struct container_spec *spec = &pod->current->containers[index];
    const struct shown_container *shown = &container->shown;
    if (shown->now.state == RUN_EXITED && container->readiness && container->unready_due_us == NEVER) {
        int64_t period_us = spec->has_readiness ? spec->readiness_period_us : US_PER_S;
        container->unready_due_us =
            kubelet->now_us + (int64_t)(kubelet_random(kubelet) % (uint64_t)period_us);
    }
    if (shown->now.state != RUN_RUNNING || !shown->is_started || shown->is_ready ||
        !has_readiness(pod, index))
        return;
    if (!container->is_probed || !same_id(container->probed_id, shown->now.id)) {
        container->is_probed = true;
        memcpy(container->probed_id, shown->now.id, sizeof(container->probed_id));
        container->readiness = false;
        container->unready_due_us = NEVER;
        pod_trigger(kubelet, pod);
    }
    if (!never_ready(pod, container) && container->ready_due_us == NEVER) {
        int64_t from_us = MAX(kubelet->now_us, shown->now.started_us + spec->readiness_delay_us);
        container->ready_due_us = from_us + kubelet_vary(kubelet, kubelet->options.probe_us);
    }
}

static void look_at_startup(struct kubelet *kubelet, struct pod *pod, size_t index)
{
    struct container *container = &pod->containers[index];
    const struct container_spec *spec = &pod->current->containers[index];
    if (!spec->has_startup || container->shown.now.state != RUN_RUNNING ||
        container->startup_tick_us != NEVER)
        return;
    bool known = container->is_startup_probed && same_id(container->startup_id, container->shown.now.id);
    if (known && (container->startup || container->startup_due_us != NEVER))
        return;
    int64_t period_us = spec->startup_period_us;
    int64_t turns = (kubelet->now_us - pod->start_us) / period_us + 1;
    container->startup_tick_us = pod->start_us + turns * period_us;
}

void prober_look(struct kubelet *kubelet, struct pod *pod)
{
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct container_spec *spec = &pod->current->containers[i];
        if (spec->is_init && !spec->is_sidecar)
            continue;
        look_at_readiness(kubelet, pod, i);
        look_at_startup(kubelet, pod, i);
    }
}

void prober_container_ended(struct kubelet *kubelet, struct pod *pod, struct container *container)
{
    const struct container_spec *spec = &pod->current->containers[container - pod->containers];
    container->ready_due_us = NEVER;
    container->startup_due_us = NEVER;
    /* A connection that is refused is a failure; an exec that finds no container is an error, no result. */
    if (spec->has_readiness && !spec->readiness_is_exec && container->readiness)
        container->unready_due_us = kubelet->now_us + spec->readiness_failures * spec->readiness_period_us;
}

/* --- what is due --- */

static bool runs_as(const struct container *container, const uint8_t id[static 32])
{
    return container->now.state == RUN_RUNNING && same_id(container->now.id, id);
}

static void end_readiness_probe(struct kubelet *kubelet, struct pod *pod, struct container *container)
{
    container->ready_due_us = NEVER;
    if (!runs_as(container, container->probed_id) || never_ready(pod, container))
        return;
    container->readiness = true;
    status_set_ready(kubelet, pod, container, true);
    pod_trigger(kubelet, pod);
}

static void find_unready(struct kubelet *kubelet, struct pod *pod, struct container *container)
{
    container->unready_due_us = NEVER;
    if (container->now.state == RUN_RUNNING || !container->readiness)
        return;
    container->readiness = false;
    status_set_ready(kubelet, pod, container, false);
    pod_trigger(kubelet, pod);
}

static void tick_startup(struct kubelet *kubelet, struct pod *pod, struct container *container)
{
    container->startup_tick_us = NEVER;
    if (container->shown.now.state != RUN_RUNNING)
        return;
    bool was_started = container->shown.is_started;
    if (!container->is_startup_probed || !same_id(container->startup_id, container->shown.now.id)) {
        container->is_startup_probed = true;
        memcpy(container->startup_id, container->shown.now.id, sizeof(container->startup_id));
        container->startup = false;
        status_set_started(kubelet, pod, container, false);
        pod_trigger(kubelet, pod);
    }
    if (was_started)
        look_at_startup(kubelet, pod, (size_t)(container - pod->containers));
    else if (!container->startup)
        container->startup_due_us = kubelet->now_us + kubelet_vary(kubelet, kubelet->options.startup_us);
}

static void end_startup_probe(struct kubelet *kubelet, struct pod *pod, struct container *container)
{
    container->startup_due_us = NEVER;
    if (!runs_as(container, container->startup_id))
        return;
    container->startup = true;
    status_set_started(kubelet, pod, container, true);
    pod_trigger(kubelet, pod);
}

static bool is_due(const struct kubelet *kubelet, int64_t timer_us)
{
    return timer_us != NEVER && timer_us <= kubelet->now_us;
}

bool prober_run(struct kubelet *kubelet, struct pod *pod, struct container *container)
{
    if (is_due(kubelet, container->ready_due_us))
        end_readiness_probe(kubelet, pod, container);
    else if (is_due(kubelet, container->startup_due_us))
        end_startup_probe(kubelet, pod, container);
    else if (is_due(kubelet, container->startup_tick_us))
        tick_startup(kubelet, pod, container);
    else if (is_due(kubelet, container->unready_due_us))
        find_unready(kubelet, pod, container);
    else
        return false;
    return true;
}
