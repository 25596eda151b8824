/* SPDX-License-Identifier: Apache-2.0
 *
 * What the status says (kubelet 1.36, kubelet_pods.go and status/generate.go): made when a sync begins, by
 * what the last list of containers saw; between syncs only probes change single members of it. */
#include "kubesim/kubelet_parts.h"

#include <stdio.h>

enum { MESSAGE_MAX = 4096 };

static void set_condition(struct kubelet *kubelet, struct pod *pod, enum condition_type type, bool is_true,
                          const char *reason, const char *message)
{
    struct condition *condition = &pod->conditions[type];
    if (!condition->is_set || condition->is_true != is_true)
        condition->since_us = kubelet->now_us;
    condition->is_set = true;
    condition->is_true = is_true;
    condition->reason = reason;
    str_replace(&condition->message, message);
    condition->generation = pod->current->generation;
}

/* Sidecars and main containers must be ready; what is not goes into the message. */
static bool containers_ready(const struct pod_spec *spec, const bool *container_ready, char **ret_message)
{
    struct buf names = BUF_INIT(MESSAGE_MAX);
    bool all = true;
    for (size_t i = 0; i < spec->container_count; i++) {
        if ((spec->containers[i].is_init && !spec->containers[i].is_sidecar) || container_ready[i])
            continue;
        buf_addf(&names, "%s%s", all ? "" : " ", spec->containers[i].name);
        all = false;
    }
    *ret_message = all ? NULL : xasprintf("containers with unready status: [%s]", buf_text(&names));
    buf_done(&names);
    return all;
}

static bool gates_ready(const struct pod_spec *spec, char **ret_message)
{
    struct buf text = BUF_INIT(MESSAGE_MAX);
    for (size_t i = 0; i < spec->gate_count; i++) {
        const struct readiness_gate *gate = &spec->gates[i];
        const char *comma = text.length ? ", " : "";
        if (!gate->status)
            buf_addf(&text, "%scorresponding condition of pod readiness gate \"%s\" does not exist.", comma,
                     gate->type);
        else if (strcmp(gate->status, "True") != 0)
            buf_addf(&text, "%sthe status of pod readiness gate \"%s\" is not \"True\", but %s", comma,
                     gate->type, gate->status);
    }
    bool ready = text.length == 0;
    *ret_message = ready ? NULL : buf_take(&text);
    buf_done(&text);
    return ready;
}

bool ready_condition(const struct pod_spec *spec, const bool *container_ready, const char **ret_reason,
                     char **ret_message)
{
    *ret_reason = "ContainersNotReady";
    if (!containers_ready(spec, container_ready, ret_message))
        return false;
    *ret_reason = "ReadinessGatesNotReady";
    if (!gates_ready(spec, ret_message))
        return false;
    *ret_reason = NULL;
    return true;
}

/* Ready and ContainersReady, by the containers as shown and by the gates of the spec as shown. */
static void set_ready_conditions(struct kubelet *kubelet, struct pod *pod)
{
    const struct pod_spec *spec = pod->shown_spec;
    bool *ready = xcalloc(pod->container_count, sizeof(*ready));
    for (size_t i = 0; i < pod->container_count; i++)
        ready[i] = pod->containers[i].shown.is_ready;
    bool failed = str_equal(pod->shown_phase, "Failed");
    if (failed || str_equal(pod->shown_phase, "Succeeded")) {
        const char *why = failed ? "PodFailed" : "PodCompleted";
        set_condition(kubelet, pod, CONDITION_READY, false, why, NULL);
        set_condition(kubelet, pod, CONDITION_CONTAINERS_READY, false, why, NULL);
    } else {
        const char *reason;
        CLEANUP_FREE char *message = NULL;
        CLEANUP_FREE char *unready = NULL;
        bool is_ready = ready_condition(spec, ready, &reason, &message);
        bool all = containers_ready(spec, ready, &unready);
        set_condition(kubelet, pod, CONDITION_READY, is_ready, reason, message);
        set_condition(kubelet, pod, CONDITION_CONTAINERS_READY, all, all ? NULL : "ContainersNotReady",
                      unready);
    }
    free(ready);
}

/* --- containers --- */

static const char *waiting_reason(const struct pod *pod, const struct pod_spec *spec, size_t index,
                                  bool ending)
{
    const struct container *container = &pod->containers[index];
    const struct instance *seen = &container->seen_now;
    if (ending || !container_restarts(spec, &spec->containers[index], seen))
        return NULL;
    if (container->reason)
        return container->reason;
    if (seen->state != RUN_NONE)
        return NULL;
    return spec->init_count ? "PodInitializing" : "ContainerCreating";
}

static void show_container(struct pod *pod, const struct pod_spec *spec, size_t index, bool ending)
{
    struct container *container = &pod->containers[index];
    struct shown_container *shown = &container->shown;
    bool once = spec->containers[index].is_init && !spec->containers[index].is_sidecar;
    /* The prober's answers depend on what was shown so far. */
    bool started = prober_is_started(pod, index);
    bool ready = once ? container->seen_now.state == RUN_EXITED && container->seen_now.exit_code == 0
                      : prober_is_ready(pod, index);
    shown->now = container->seen_now;
    shown->last = container->seen_last;
    shown->waiting = waiting_reason(pod, spec, index, ending);
    shown->is_started = started;
    shown->is_ready = ready;
}

static bool is_initialized(const struct pod *pod, const struct pod_spec *spec)
{
    for (size_t i = spec->init_count; i < pod->container_count; i++)
        if (pod->containers[i].shown.now.state != RUN_NONE)
            return true;
    for (size_t i = 0; i < spec->init_count; i++) {
        const struct shown_container *shown = &pod->containers[i].shown;
        if (spec->containers[i].is_sidecar ? !shown->is_started : !shown->is_ready)
            return false;
    }
    return true;
}

static const char *phase_of(const struct pod *pod, const struct pod_spec *spec, bool ending)
{
    if (pod->is_evicted && ending)
        return "Failed";
    bool running = false, failed = false, restarts = false, waiting = !is_initialized(pod, spec);
    for (size_t i = spec->init_count; i < pod->container_count; i++) {
        const struct instance *now = &pod->containers[i].shown.now;
        running = running || now->state == RUN_RUNNING;
        waiting = waiting || now->state == RUN_NONE;
        failed = failed || (now->state == RUN_EXITED && now->exit_code != 0);
        restarts = restarts || (now->state == RUN_EXITED && !ending &&
                                container_restarts(spec, &spec->containers[i], now));
    }
    if (ending)
        return failed || waiting ? "Failed" : "Succeeded";
    if (waiting)
        return "Pending";
    if (running || restarts)
        return "Running";
    return failed ? "Failed" : "Succeeded";
}

/* At once, or when the one before has arrived: what comes in meanwhile replaces what waits. */
static void post_soon(struct kubelet *kubelet, struct pod *pod)
{
    if (pod->post_due_us == NEVER)
        pod->post_due_us = MAX(kubelet->now_us, pod->posted_us + kubelet->options.post_us);
}

void status_generate(struct kubelet *kubelet, struct pod *pod, struct pod_spec *spec, bool ending)
{
    struct pod_spec *before = pod->shown_spec;
    pod->shown_spec = pod_spec_ref(spec);
    pod_spec_unref(before);
    pod->shown_generation = spec->generation;
    if (!pod->start_us)
        pod->start_us = kubelet->now_us;
    for (size_t i = 0; i < pod->container_count; i++)
        show_container(pod, spec, i, ending);
    pod->shown_phase = phase_of(pod, spec, ending);
    bool initialized = is_initialized(pod, spec);
    set_condition(kubelet, pod, CONDITION_READY_TO_START, pod->seen_sandbox && !ending, NULL, NULL);
    set_condition(kubelet, pod, CONDITION_INITIALIZED, initialized,
                  initialized ? NULL : "ContainersNotInitialized", NULL);
    set_condition(kubelet, pod, CONDITION_SCHEDULED, true, NULL, NULL);
    set_ready_conditions(kubelet, pod);
    for (enum condition_type type = 0; type < CONDITION_COUNT; type++)
        pod->conditions[type].generation = spec->generation;
    post_soon(kubelet, pod);
    if (!ending)
        prober_look(kubelet, pod);
}

void status_set_ready(struct kubelet *kubelet, struct pod *pod, struct container *container, bool ready)
{
    if (container->shown.is_ready == ready || pod->worker >= WORKER_FINISHING)
        return;
    container->shown.is_ready = ready;
    set_ready_conditions(kubelet, pod);
    post_soon(kubelet, pod);
}

void status_set_started(struct kubelet *kubelet, struct pod *pod, struct container *container, bool started)
{
    if (container->shown.is_started == started || pod->worker >= WORKER_FINISHING)
        return;
    container->shown.is_started = started;
    post_soon(kubelet, pod);
}

void status_set_sandbox(struct kubelet *kubelet, struct pod *pod)
{
    set_condition(kubelet, pod, CONDITION_READY_TO_START, true, NULL, NULL);
    pod->conditions[CONDITION_READY_TO_START].generation = pod->shown_generation;
    post_soon(kubelet, pod);
}

void status_set_lost(struct kubelet *kubelet, struct pod *pod)
{
    if (!pod->shown_spec)
        return;
    /* The node controller writes this, in the absence of the kubelet. */
    set_condition(kubelet, pod, CONDITION_READY, false, NULL, NULL);
    pod->conditions[CONDITION_READY].generation = pod->shown_generation;
    post_soon(kubelet, pod);
}

void status_set_forgotten(struct kubelet *kubelet, struct pod *pod)
{
    pod->posted_hash = 0;
    if (pod->shown_spec)
        post_soon(kubelet, pod);
}

/* Only equality matters. */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = 14695981039346656037ULL;
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * 1099511628211ULL;
    return hash;
}

void status_post(struct kubelet *kubelet, struct pod *pod)
{
    pod->post_due_us = NEVER;
    CLEANUP_JSON cJSON *status = status_json(kubelet, pod);
    CLEANUP_FREE char *text = json_print(status);
    uint64_t hash = hash_of(text);
    if (hash == pod->posted_hash)
        return;
    pod->posted_hash = hash;
    pod->posted_us = kubelet->now_us;
    kubelet->options.callbacks.patch_status(kubelet->options.context, pod->namespace, pod->name, pod->uid,
                                            status);
}
