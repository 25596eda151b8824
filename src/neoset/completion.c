/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/completion.h"

#include "base/plant.h"
#include "base/time_text.h"
#include "neoset/kubelet_reason.h"

/* A new container answers by the old one's startup probe for up to a period. */
#define STARTUP_SLACK_US (10 * US_PER_S)

char *completion_normal_image(const char *image)
{
    static const char *const prefixes[] = {"docker.io/library/", "docker.io/"};
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
        if (str_starts_with(image, prefixes[i])) {
            image += strlen(prefixes[i]);
            break;
        }
    }
    const char *slash = strrchr(image, '/');
    bool tagged = strchr(image, '@') || strchr(slash ? slash : image, ':');
    return xasprintf("%s%s", image, tagged ? "" : ":latest");
}

static bool same_image(const char *a, const char *b)
{
    if (!a || !b)
        return false;
    CLEANUP_FREE char *normal_a = completion_normal_image(a);
    CLEANUP_FREE char *normal_b = completion_normal_image(b);
    return str_equal(normal_a, normal_b);
}

/* It has reported something: containers, or the Ready condition, which nobody else writes. */
static bool has_reported(const struct pod_fact *pod)
{
    for (size_t i = 0; i < pod->container_count; i++)
        if (pod->containers[i].container_id)
            return true;
    return pod->ready != IS_UNKNOWN;
}

bool completion_is_old_kubelet(const struct pod_fact *pod)
{
    return pod->observed_generation == 0 && has_reported(pod);
}

bool completion_is_seen(const struct pod_fact *pod)
{
    if (pod->observed_generation == 0)
        return completion_is_old_kubelet(pod);
    /* A larger one is of a history that was taken back: the storage was restored from a copy. */
    return pod->observed_generation == pod->generation;
}

cJSON *completion_witness(const struct pod_fact *pod)
{
    cJSON *containers = json_new_object();
    for (size_t i = 0; pod->state && i < pod->state->container_count; i++) {
        const char *name = pod->state->containers[i].name;
        const struct container_fact *container = pod_fact_container(pod, name);
        json_add_str(containers, name,
                     container && container->container_id ? container->container_id : "none");
    }
    return containers;
}

/* --- 3: the last container ------------------------------------------------------------------------------ */

static bool is_witnessed(const struct pod_fact *pod, const struct container_fact *container)
{
    if (!pod->witnessed || completion_is_old_kubelet(pod))
        return false;
    uint64_t hash = text_hash64(container->container_id);
    for (size_t i = 0; i < pod->witness_count; i++)
        if (pod->witness[i] == hash)
            return false;
    return true;
}

/* witnessed: the condition belongs to this update, so it was written after 1 held. */
static bool is_shaken(const struct pod_fact *pod)
{
    return pod->has_gate && pod->state->drained && pod->witnessed && pod->gate == IS_TRUE &&
           pod->ready == IS_TRUE && !completion_is_old_kubelet(pod);
}

static bool can_shake(const struct pod_fact *pod)
{
    return pod->has_gate && pod->state->drained && !completion_is_old_kubelet(pod) && !pod->foreign_gate_down;
}

/* Every image that this container may run instead of the spec's is known to be another one. */
static bool others_differ(const struct container_baseline *baseline, const struct container_fact *container)
{
    if (!str_equal(baseline->image, container->spec_image) &&
        (!baseline->image_id || str_equal(baseline->image_id, container->image_id)))
        return false;
    for (size_t i = 0; i < baseline->trial_count; i++) {
        const struct image_trial *trial = &baseline->trials[i];
        if (trial->never_ran || str_equal(trial->image, container->spec_image))
            continue;
        if (!trial->image_id || str_equal(trial->image_id, container->image_id))
            return false;
    }
    return true;
}

static bool has_right_content(const struct container_baseline *baseline,
                              const struct container_fact *container)
{
    const char *running = container->image_id;
    if (!running || !container->spec_image)
        return false;
    const char *digest = strchr(container->spec_image, '@');
    if (digest && digest[1] && str_ends_with(running, digest + 1))
        return true;
    if (same_image(container->image, container->spec_image) && others_differ(baseline, container))
        return true;
    return baseline->trial_count == 0 && baseline->settled && baseline->image_id &&
           !str_equal(baseline->image, container->spec_image) && !str_equal(baseline->image_id, running);
}

static bool is_last(const struct pod_fact *pod, const struct container_baseline *baseline,
                    const struct container_fact *container)
{
    if (PLANT("completion-by-image-id"))
        return !str_equal(baseline->image_id, container->image_id);
    return PLANT("completion-by-new-container") || is_witnessed(pod, container) || is_shaken(pod) ||
           (!can_shake(pod) && has_right_content(baseline, container));
}

/* --- one container -------------------------------------------------------------------------------------- */

static bool is_unchanged(const struct container_baseline *baseline, const struct container_fact *container)
{
    return baseline->container_id && str_equal(baseline->container_id, container->container_id) &&
           str_equal(baseline->image, container->spec_image);
}

/* 4; sets *again_boot_us when only time is missing. */
static bool has_started_up(const struct container_fact *container, const struct pod_observation *observation,
                           int64_t boot_us, int64_t *again_boot_us)
{
    if (container->startup_period_s == 0)
        return true;
    const struct container_observation *seen = pod_observation_container(observation, container->name);
    if (!seen || seen->container_id != text_hash64(container->container_id))
        return false;
    if (seen->seen_not_started)
        return true;
    int64_t enough_us = seen->first_boot_us + container->startup_period_s * US_PER_S + STARTUP_SLACK_US;
    if (boot_us >= enough_us)
        return true;
    *again_boot_us = MIN(*again_boot_us, enough_us);
    return false;
}

static enum completion_wait judge_container(const struct pod_fact *pod,
                                            const struct container_baseline *baseline,
                                            const struct pod_observation *observation, int64_t boot_us,
                                            int64_t *again_boot_us)
{
    const struct container_fact *container = pod_fact_container(pod, baseline->name);
    if (!container || container->state != CONTAINER_RUNNING || !container->started || !container->ready ||
        !container->container_id)
        return COMPLETION_CONTAINER;
    if (is_unchanged(baseline, container))
        return COMPLETION_NOTHING;
    if (PLANT("completion-by-waiting") && observation && observation->ready_boot_us != NEOSET_NEVER)
        return COMPLETION_NOTHING;
    if (baseline->container_id && str_equal(baseline->container_id, container->container_id))
        return COMPLETION_CONTAINER;
    if (!is_last(pod, baseline, container))
        return COMPLETION_PROOF;
    if (!has_started_up(container, observation, boot_us, again_boot_us))
        return COMPLETION_STARTUP;
    return COMPLETION_NOTHING;
}

void completion_judge(const struct pod_fact *pod, const struct pod_observation *observation, int64_t boot_us,
                      struct completion *ret)
{
    *ret = (struct completion){.seen = completion_is_seen(pod), .again_boot_us = INT64_MAX};
    if (!pod->state) {
        ret->done = true;
        return;
    }
    if (!ret->seen) {
        ret->waiting = COMPLETION_KUBELET;
        return;
    }
    for (size_t i = 0; i < pod->state->container_count; i++) {
        const struct container_baseline *baseline = &pod->state->containers[i];
        enum completion_wait waiting =
            judge_container(pod, baseline, observation, boot_us, &ret->again_boot_us);
        if (waiting == COMPLETION_NOTHING || ret->waiting != COMPLETION_NOTHING)
            continue;
        ret->waiting = waiting;
        ret->container = baseline->name;
    }
    ret->done = ret->waiting == COMPLETION_NOTHING;
    if (ret->done)
        ret->again_boot_us = INT64_MAX;
}

/* --- what to write down --------------------------------------------------------------------------------- */

static bool pull_failed(const struct container_fact *container)
{
    return container->state == CONTAINER_WAITING && kubelet_reason_is_pull(container->reason);
}

/* The image that the spec asked for until now: which one it is, or that it never ran, where that is sure. A
 * waiting reason can be left over from the image before: it counts only for the first change of a settled
 * container. */
static void try_current_image(struct in_place_state *state, struct container_baseline *baseline,
                              const struct pod_fact *pod, const struct container_fact *container)
{
    if (!container->spec_image || str_equal(container->spec_image, baseline->image))
        return;
    bool another = container->container_id && !str_equal(container->container_id, baseline->container_id);
    bool runs_it = another && same_image(container->image, container->spec_image);
    bool never_ran = !another && baseline->trial_count == 0 && baseline->settled &&
                     pod->observed_generation == pod->generation && pull_failed(container);
    container_baseline_try(state, baseline, container->spec_image, runs_it ? container->image_id : NULL,
                           never_ran);
}

static void carry_over(struct in_place_state *state, const struct pod_fact *pod,
                       const struct container_baseline *old)
{
    struct container_baseline *baseline =
        in_place_state_add(state, old->name, old->image, old->container_id, old->image_id, old->settled);
    for (size_t i = 0; i < old->trial_count; i++)
        container_baseline_try(state, baseline, old->trials[i].image, old->trials[i].image_id,
                               old->trials[i].never_ran);
    const struct container_fact *container = pod_fact_container(pod, old->name);
    if (container)
        try_current_image(state, baseline, pod, container);
}

static bool is_container_proven(const struct pod_fact *pod, const struct container_baseline *baseline,
                                const struct pod_observation *seen, int64_t boot_us)
{
    int64_t again_us = 0;
    return completion_is_seen(pod) &&
           judge_container(pod, baseline, seen, boot_us, &again_us) == COMPLETION_NOTHING;
}

/* Of a pod without a node that no kubelet spoke of there is nothing to tell apart: whatever runs will run
 * what it says by then (the patch names the resourceVersion that was read: it never lands behind a binding
 * unseen). */
static bool was_begun(const struct pod_fact *pod)
{
    for (size_t i = 0; i < pod->container_count; i++)
        if (pod->containers[i].state != CONTAINER_UNKNOWN)
            return true;
    return pod->node != NULL;
}

struct in_place_state *completion_baselines(const struct pod_fact *pod, bool proven,
                                            const struct pod_observation *seen, int64_t boot_us,
                                            const char *target, const struct image_change *changes,
                                            size_t change_count, int64_t wall_us)
{
    struct in_place_state *state = in_place_state_make(pod->pool, target, wall_us);
    state->drained = pod->has_gate && pod->gate == IS_FALSE;
    state->restarts = pod_fact_restarts(pod);
    if (!was_begun(pod))
        return state;
    for (size_t i = 0; pod->state && !proven && i < pod->state->container_count; i++)
        /* Anybody may have written the annotation: what the pod does not have is left out, and so its size is
         * bounded. */
        if (pod_fact_container(pod, pod->state->containers[i].name) &&
            !is_container_proven(pod, &pod->state->containers[i], seen, boot_us))
            carry_over(state, pod, &pod->state->containers[i]);
    if (change_count == 0 && state->container_count > 0 && pod->witnessed)
        state->witness = xstrdup(pod->state->witness ? pod->state->witness : pod->state->step);
    for (size_t i = 0; i < change_count; i++) {
        const struct container_fact *container = pod_fact_container(pod, changes[i].container);
        if (!container || in_place_state_container(state, changes[i].container))
            continue;
        bool settled = pod->observed_generation > 0 && pod->observed_generation == pod->generation &&
                       container->state == CONTAINER_RUNNING;
        in_place_state_add(state, container->name, container->spec_image ? container->spec_image : "",
                           container->container_id, container->image_id, settled);
    }
    return state;
}
