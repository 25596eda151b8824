/* SPDX-License-Identifier: Apache-2.0
 *
 * The kubelet's reasons in words that a person understands at night. */
#include "neoset/kubelet_reason.h"
#include "neoset/plan_model.h"

#include "base/time_text.h"

#define STEADY_RUN_US (30 * US_PER_S)

/* "40s" of "... back-off 40s restarting failed container ..."; "" when it is not told. The caller's. */
static char *backoff_time(const char *trouble)
{
    static const char words[] = "back-off ";
    const char *at = trouble ? strstr(trouble, words) : NULL;
    if (!at)
        return xstrdup("");
    at += strlen(words);
    bool is_time = *at >= '0' && *at <= '9';
    return is_time ? xstrndup(at, strcspn(at, " ")) : xstrdup("");
}

/* "exit code 3, OOMKilled", as trouble begins; "" when it is not told. The caller's. */
static char *how_it_ended(const char *trouble)
{
    if (!trouble || !str_starts_with(trouble, "exit code"))
        return xstrdup("");
    return xstrndup(trouble, strcspn(trouble, ";"));
}

/* No container was started since we patched the pod: what is counted is the one before. */
static bool has_not_run_since(const struct slot *slot, const struct container_fact *container)
{
    const struct in_place_state *state = slot->pod->state;
    const struct container_baseline *baseline =
        state ? in_place_state_container(state, container->name) : NULL;
    return baseline && !slot->proven && baseline->container_id &&
           str_equal(baseline->container_id, container->container_id);
}

static char *crash_words(const struct slot *slot, const struct container_fact *container, const char *trouble)
{
    CLEANUP_FREE char *time = backoff_time(trouble);
    CLEANUP_FREE char *ended = how_it_ended(trouble);
    if (has_not_run_since(slot, container))
        return xasprintf(
            "the kubelet waits%s%s before it starts container %s with the new image, because the one "
            "before it kept ending (CrashLoopBackOff)",
            *time ? " up to " : "", time, container->name);
    return xasprintf("container %s keeps ending%s%s%s; the kubelet waits%s%s before it starts it again "
                     "(CrashLoopBackOff)",
                     container->name, *ended ? " (" : "", ended, *ended ? ")" : "", *time ? " up to " : "",
                     time);
}

/* In a crash loop a container runs, is even ready, ends, and waits, again and again: the words stay the same
 * until one of its runs is longer. */
static char *words_between(struct plan *plan, const struct slot *slot)
{
    const char *trouble = NULL;
    const struct container_fact *container =
        slot->live ? neoset_memory_crash(plan->at->memory, slot->pod, &trouble) : NULL;
    if (!container)
        return xstrdup("");
    int64_t until_us = container->started_us + STEADY_RUN_US;
    bool is_young = container->state == CONTAINER_RUNNING && plan->at->wall_us < until_us;
    if (!is_young && container->state != CONTAINER_TERMINATED)
        return xstrdup("");
    if (is_young)
        plan_wake(plan, plan->at->boot_us + until_us - plan->at->wall_us);
    return crash_words(slot, container, trouble);
}

char *slot_trouble(struct plan *plan, const struct slot *slot)
{
    const struct container_fact *container = slot->broken_by;
    if (!container)
        return words_between(plan, slot);
    const char *image = container->spec_image ? container->spec_image : "its image";
    const char *told = container->trouble ? container->trouble : "";
    if (kubelet_reason_is_pull(container->reason))
        return xasprintf("%s of container %s cannot be pulled (%s)%s%s", image, container->name,
                         container->reason, *told ? ": " : "", told);
    if (str_equal(container->reason, "CrashLoopBackOff"))
        return crash_words(slot, container, container->trouble);
    return xasprintf("container %s cannot be started (%s)%s%s", container->name, container->reason,
                     *told ? ": " : "", told);
}
