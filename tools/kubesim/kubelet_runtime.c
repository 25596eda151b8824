/* SPDX-License-Identifier: Apache-2.0
 *
 * What a sync does to containers (kubelet 1.36, computePodActions and SyncPod): the sandbox, then one init
 * container a sync, then all changed containers killed one after another, then what does not run pulled and
 * started one after another. Decisions are made by what the last list of containers saw. */
#include "kubesim/kubelet_parts.h"

static unsigned behaviour_of(const struct pod *pod, const struct image *image)
{
    return pod->current->behaviour | (image ? image->behaviour : 0);
}

bool container_restarts(const struct pod_spec *spec, const struct container_spec *container,
                        const struct instance *instance)
{
    if (instance->state == RUN_NONE)
        return true;
    if (instance->state == RUN_RUNNING)
        return false;
    if (container->is_sidecar)
        return true;
    if (container->is_init)
        return instance->exit_code != 0 && spec->restart != RESTART_NEVER;
    return spec->restart == RESTART_ALWAYS ||
           (spec->restart == RESTART_ON_FAILURE && instance->exit_code != 0);
}

/* --- the plan --- */

static void add_step(struct pod *pod, enum step_kind kind, size_t container)
{
    ENSURE(pod->step_count < 2 * pod->container_count + 1);
    pod->steps[pod->step_count++] = (struct step){.kind = kind, .container = container};
}

static bool image_changed(const struct pod *pod, size_t index)
{
    const struct instance *seen = &pod->containers[index].seen_now;
    return seen->state == RUN_RUNNING && strcmp(seen->image->name, pod->sync->containers[index].image) != 0;
}

static bool any_main_seen(const struct pod *pod)
{
    for (size_t i = pod->sync->init_count; i < pod->container_count; i++)
        if (pod->containers[i].seen_now.state != RUN_NONE)
            return true;
    return false;
}

/* Plans the next init container, if one is due. True when the main containers may run. */
static bool plan_init(struct pod *pod)
{
    bool initialized = any_main_seen(pod);
    for (size_t i = 0; i < pod->sync->init_count; i++) {
        const struct container_spec *spec = &pod->sync->containers[i];
        const struct instance *seen = &pod->containers[i].seen_now;
        if (spec->is_sidecar) {
            if (image_changed(pod, i))
                add_step(pod, STEP_KILL, i);
            if (image_changed(pod, i) || container_restarts(pod->sync, spec, seen))
                add_step(pod, STEP_START, i);
            if (!initialized && (seen->state != RUN_RUNNING || !prober_is_started(pod, i)))
                return false;
        } else if (!initialized && (seen->state != RUN_EXITED || seen->exit_code != 0)) {
            if (container_restarts(pod->sync, spec, seen))
                add_step(pod, STEP_START, i);
            return false;
        }
    }
    return true;
}

void runtime_plan(struct kubelet *kubelet, struct pod *pod)
{
    (void)kubelet;
    pod->step_count = 0;
    pod->step = 0;
    pod->phase = PHASE_BEGIN;
    pod->sync_started_something = false;
    pod->sync_failed = false;
    pod->retry_us = 0;
    const struct pod_spec *spec = pod->sync;
    if (!pod->seen_sandbox) {
        add_step(pod, STEP_SANDBOX, 0);
        if (spec->init_count) {
            add_step(pod, STEP_START, 0);
            return;
        }
    } else if (!plan_init(pod)) {
        return;
    }
    for (size_t i = spec->init_count; i < pod->container_count; i++)
        if (image_changed(pod, i))
            add_step(pod, STEP_KILL, i);
    for (size_t i = spec->init_count; i < pod->container_count; i++)
        if (image_changed(pod, i) ||
            container_restarts(spec, &spec->containers[i], &pod->containers[i].seen_now))
            add_step(pod, STEP_START, i);
}

/* --- back-off (client-go's flowcontrol) --- */

static struct backoff *backoff_find(struct backoff *backoffs, const struct image *image)
{
    for (size_t i = 0; i < BACKOFFS_MAX; i++)
        if (backoffs[i].image == image)
            return &backoffs[i];
    return NULL;
}

static bool backoff_expired(const struct kubelet *kubelet, const struct backoff *entry, int64_t event_us)
{
    return event_us - entry->updated_us > 2 * 30 * kubelet->options.backoff_us;
}

/* When the wait that began with an event at event_us is over; 0: there is none. */
static int64_t backoff_until_us(const struct kubelet *kubelet, struct backoff *backoffs,
                                const struct image *image, int64_t event_us)
{
    const struct backoff *entry = backoff_find(backoffs, image);
    if (!entry || backoff_expired(kubelet, entry, event_us) || kubelet->now_us - event_us >= entry->delay_us)
        return 0;
    return event_us + entry->delay_us;
}

static void backoff_next(const struct kubelet *kubelet, struct backoff *backoffs, const struct image *image,
                         int64_t event_us)
{
    struct backoff *entry = backoff_find(backoffs, image);
    if (entry && !backoff_expired(kubelet, entry, event_us)) {
        entry->delay_us = MIN(2 * entry->delay_us, 30 * kubelet->options.backoff_us);
    } else {
        if (!entry)
            entry = backoff_find(backoffs, NULL);
        for (size_t i = 0; !entry && i < BACKOFFS_MAX; i++)
            if (!entry || backoffs[i].updated_us < entry->updated_us)
                entry = &backoffs[i];
        entry->image = image;
        entry->delay_us = kubelet->options.backoff_us;
    }
    entry->updated_us = kubelet->now_us;
}

/* --- steps --- */

static void failed(struct pod *pod, struct container *container, const char *reason, int64_t retry_us)
{
    container->reason = reason;
    pod->sync_failed = true;
    if (retry_us && (!pod->retry_us || retry_us < pod->retry_us))
        pod->retry_us = retry_us;
}

static int64_t stop_us(struct kubelet *kubelet, const struct pod *pod, const struct container *container,
                       int64_t grace_us)
{
    int64_t needed_us = kubelet_vary(kubelet, kubelet->options.stop_us);
    bool slow = behaviour_of(pod, container->now.image) & BEHAVE_SLOW_STOP;
    return slow ? grace_us : MIN(needed_us, grace_us);
}

void container_exit(struct kubelet *kubelet, struct pod *pod, struct container *container, int exit_code,
                    const char *reason)
{
    container->now.state = RUN_EXITED;
    container->now.finished_us = kubelet->now_us;
    container->now.exit_code = exit_code;
    container->now.exit_reason = reason;
    container->exit_due_us = NEVER;
    prober_container_ended(kubelet, pod, container);
    pod_changed(kubelet, pod);
}

static void killed(struct kubelet *kubelet, struct pod *pod, struct container *container, int64_t took_us,
                   int64_t grace_us)
{
    if (container->now.state != RUN_RUNNING)
        return;
    if (took_us >= grace_us)
        container_exit(kubelet, pod, container, 137, "Error");
    else
        container_exit(kubelet, pod, container, 0, "Completed");
}

static void plan_exit(struct kubelet *kubelet, struct pod *pod, size_t index)
{
    struct container *container = &pod->containers[index];
    const struct container_spec *spec = &pod->sync->containers[index];
    unsigned behaviour = behaviour_of(pod, container->now.image);
    if (behaviour & BEHAVE_CRASH && !(spec->is_init && !spec->is_sidecar)) {
        container->exit_code = 3;
        container->exit_due_us = kubelet->now_us + kubelet_vary(kubelet, kubelet->options.crash_after_us);
    } else if (spec->is_init && !spec->is_sidecar) {
        container->exit_code = 0;
        container->exit_due_us = kubelet->now_us + kubelet_vary(kubelet, kubelet->options.init_us);
    } else if (behaviour & BEHAVE_DONE) {
        container->exit_code = 0;
        container->exit_due_us = kubelet->now_us + kubelet_vary(kubelet, kubelet->options.crash_after_us);
    }
}

static void started(struct kubelet *kubelet, struct pod *pod, size_t index)
{
    struct container *container = &pod->containers[index];
    const struct container_spec *spec = &pod->sync->containers[index];
    struct instance instance = {
        .state = RUN_RUNNING,
        .image = image_get(kubelet, spec->image, pod->current->behaviour),
        .restarts = container->now.state == RUN_NONE ? 0 : container->now.restarts + 1,
        .started_us = kubelet->now_us,
    };
    for (size_t i = 0; i < sizeof(instance.id); i += sizeof(uint64_t)) {
        uint64_t random = kubelet_random(kubelet);
        memcpy(instance.id + i, &random, sizeof(random));
    }
    if (container->now.state != RUN_NONE)
        container->last = container->now;
    container->now = instance;
    container->reason = NULL;
    pod->sync_started_something = true;
    if (spec->cannot_start)
        container_exit(kubelet, pod, container, 128, "StartError");
    else
        plan_exit(kubelet, pod, index);
    pod_changed(kubelet, pod);
    bool first_main = !spec->is_init && pod->evict_due_us == NEVER && !pod->is_evicted;
    if (first_main && pod->current->behaviour & BEHAVE_EVICT)
        pod->evict_due_us = kubelet->now_us + kubelet_vary(kubelet, kubelet->options.evict_after_us);
}

/* The back-offs that stand before a start. False: not now. */
static bool may_start(struct kubelet *kubelet, struct pod *pod, size_t index, const struct image *image)
{
    struct container *container = &pod->containers[index];
    const struct instance *dead = &container->seen_now;
    if (dead->state != RUN_EXITED)
        dead = &container->seen_last;
    if (dead->state == RUN_EXITED) {
        int64_t until_us = backoff_until_us(kubelet, container->restart_backoffs, image, dead->finished_us);
        if (until_us) {
            failed(pod, container, "CrashLoopBackOff", until_us);
            return false;
        }
        backoff_next(kubelet, container->restart_backoffs, image, dead->finished_us);
    }
    const struct backoff *pull = backoff_find(container->pull_backoffs, image);
    int64_t until_us =
        pull ? backoff_until_us(kubelet, container->pull_backoffs, image, pull->updated_us) : 0;
    if (until_us && !image->is_present) {
        failed(pod, container, "ImagePullBackOff", until_us);
        return false;
    }
    return true;
}

/* Goes on with the start of a container; true: the step is over. */
static bool start_go_on(struct kubelet *kubelet, struct pod *pod, size_t index)
{
    struct container *container = &pod->containers[index];
    struct image *image = image_get(kubelet, pod->sync->containers[index].image, pod->current->behaviour);
    unsigned behaviour = behaviour_of(pod, image);
    if (pod->phase == PHASE_BEGIN) {
        if (!may_start(kubelet, pod, index, image))
            return true;
        if (!image->is_present) {
            bool slow = behaviour & BEHAVE_SLOW_PULL;
            int64_t pull_us = slow ? kubelet->options.slow_pull_us : kubelet->options.pull_us;
            pod->phase = PHASE_PULLING;
            pod->worker_due_us = kubelet->now_us + kubelet_vary(kubelet, pull_us);
            return false;
        }
    }
    if (pod->phase == PHASE_PULLING && behaviour & BEHAVE_FAIL_PULL) {
        backoff_next(kubelet, container->pull_backoffs, image, kubelet->now_us);
        failed(pod, container, "ErrImagePull", 0);
        return true;
    }
    if (pod->phase != PHASE_STARTING) {
        image->is_present = true;
        pod->phase = PHASE_STARTING;
        pod->worker_due_us = kubelet->now_us + kubelet_vary(kubelet, kubelet->options.start_us);
        return false;
    }
    started(kubelet, pod, index);
    return true;
}

static bool kill_go_on(struct kubelet *kubelet, struct pod *pod, size_t index)
{
    struct container *container = &pod->containers[index];
    if (pod->phase == PHASE_BEGIN && container->now.state == RUN_RUNNING) {
        pod->phase = PHASE_RUNNING;
        pod->kill_us = stop_us(kubelet, pod, container, pod->sync->grace_us);
        pod->worker_due_us = kubelet->now_us + pod->kill_us;
        return false;
    }
    container->replaced += container->now.state == RUN_RUNNING;
    killed(kubelet, pod, container, pod->kill_us, pod->sync->grace_us);
    return true;
}

static bool sandbox_go_on(struct kubelet *kubelet, struct pod *pod)
{
    if (pod->phase == PHASE_BEGIN) {
        pod->phase = PHASE_RUNNING;
        pod->worker_due_us = kubelet->now_us + kubelet_vary(kubelet, kubelet->options.sandbox_us);
        return false;
    }
    pod->has_sandbox = true;
    pod->sync_started_something = true;
    pod_changed(kubelet, pod);
    status_set_sandbox(kubelet, pod);
    return true;
}

bool runtime_go_on(struct kubelet *kubelet, struct pod *pod)
{
    while (pod->step < pod->step_count) {
        const struct step *step = &pod->steps[pod->step];
        bool over = false;
        switch (step->kind) {
        case STEP_SANDBOX:
            over = sandbox_go_on(kubelet, pod);
            break;
        case STEP_KILL:
            over = kill_go_on(kubelet, pod, step->container);
            break;
        case STEP_START:
            over = start_go_on(kubelet, pod, step->container);
            break;
        }
        if (!over)
            return false;
        pod->step++;
        pod->phase = PHASE_BEGIN;
    }
    return true;
}

/* --- for good --- */

static int64_t end_grace_us(const struct pod *pod)
{
    if (pod->current->is_deleting)
        return pod->current->deletion_grace_us;
    return pod->is_evicted ? 0 : pod->current->grace_us;
}

int64_t runtime_stop_all_us(struct kubelet *kubelet, struct pod *pod)
{
    int64_t longest_us = 0;
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct container *container = &pod->containers[i];
        if (container->now.state == RUN_RUNNING)
            longest_us = MAX(longest_us, stop_us(kubelet, pod, container, end_grace_us(pod)));
    }
    return longest_us;
}

void runtime_stopped_all(struct kubelet *kubelet, struct pod *pod)
{
    for (size_t i = 0; i < pod->container_count; i++) {
        struct container *container = &pod->containers[i];
        killed(kubelet, pod, container, pod->kill_us, end_grace_us(pod));
        container->seen_now = container->now;
        container->seen_last = container->last;
    }
    pod->pleg_due_us = NEVER;
}
