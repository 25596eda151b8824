/* SPDX-License-Identifier: Apache-2.0
 *
 * Before a pod is taken out of service for new images, they are fetched to its node: once per node and set of
 * images, by a pod that is deleted as soon as it has found them. A broken pod is not waited for: there is
 * nothing to protect, and it is to heal soon. */
#include "neoset/prefetch.h"

#include "base/sha256.h"
#include "base/time_text.h"
#include "neoset/plan_model.h"

static const char wait_prefetch[] = "prefetch";
/* Nobody runs the image meanwhile: the node may remove it again. */
#define FOUND_FOR_US (600 * US_PER_S)
/* A kubelet that lives answers within this. */
#define UNSEEN_US (60 * US_PER_S)
/* A pod that ended without an answer is made again no sooner. */
#define ENDED_FOR_US (30 * US_PER_S)
/* A refusal of the server counts so long after it may be asked again. */
#define REFUSED_FOR_US (60 * US_PER_S)
/* Its time is up, but the journal still grants some (shortly after a start). */
#define EXPIRY_AGAIN_US (5 * US_PER_S)
enum { WORDS_MAX = 300, TAKEN_MAX = 3 };

/* --- such a pod ----------------------------------------------------------------------------------------- */

/* A kubelet pulls before it makes anything: these come after. */
static bool is_after_pull(const char *reason)
{
    static const char *const reasons[] = {
        "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreCreateHookError",
        "PreStartHookError",          "PostStartHookError",   "CrashLoopBackOff"};
    for (size_t i = 0; reason && i < ARRAY_SIZE(reasons); i++)
        if (str_equal(reasons[i], reason))
            return true;
    return false;
}

static bool has_image(const struct container_fact *container)
{
    switch ((enum container_state)container->state) {
    case CONTAINER_RUNNING: /* the image has a command of that name */
        return true;
    case CONTAINER_TERMINATED:
        return container->image_id && !str_equal(container->reason, "ContainerStatusUnknown");
    case CONTAINER_WAITING:
        return is_after_pull(container->reason);
    case CONTAINER_UNKNOWN:
        return false;
    }
    UNREACHABLE();
}

enum prefetch_state prefetch_judge(const struct pod_fact *pod)
{
    bool found = pod->container_count > 0, seen = false;
    for (size_t i = 0; i < pod->container_count; i++) {
        found = found && has_image(&pod->containers[i]);
        seen = seen || pod->containers[i].state != CONTAINER_UNKNOWN;
    }
    if (found)
        return PREFETCH_FOUND;
    if (pod->phase == POD_FAILED || pod->phase == POD_SUCCEEDED)
        return PREFETCH_ENDED;
    return seen ? PREFETCH_UNDER_WAY : PREFETCH_UNSEEN;
}

char *prefetch_name(const struct neoset_fact *set, const char *node, const struct prefetch_image *images,
                    size_t count)
{
    struct sha256 *hash = sha256_make();
    sha256_begin(hash);
    sha256_add(hash, set->uid, strlen(set->uid) + 1);
    sha256_add(hash, node, strlen(node) + 1);
    for (size_t i = 0; i < count; i++) {
        uint8_t policy = (uint8_t)images[i].policy;
        sha256_add(hash, images[i].container, strlen(images[i].container) + 1);
        sha256_add(hash, images[i].image, strlen(images[i].image) + 1);
        sha256_add(hash, &policy, sizeof(policy));
    }
    uint8_t digest[SHA256_SIZE];
    sha256_end(hash, digest);
    sha256_free(hash);
    static const char letters[] = NEOSET_PREFETCH_LETTERS;
    char text[NEOSET_PREFETCH_HASH_LENGTH + 1] = {0};
    for (size_t i = 0; i < NEOSET_PREFETCH_HASH_LENGTH; i++)
        text[i] = letters[digest[i] % strlen(letters)];
    return xasprintf("%s" NEOSET_PREFETCH_INFIX "%s", set->name, text);
}

/* --- what an update needs ------------------------------------------------------------------------------- */

struct need {
    char *name; /* of the pod that fetches it */
    const char *node;
    struct template_diff diff;
    struct prefetch_image *images; /* as diff has them */
    const struct pod_fact *pod;    /* that is named so, whoever owns it; NULL */
    const char *words;             /* of the registry, or NULL */
};

static void need_done(struct need *need)
{
    free(need->name);
    free(need->images);
    template_diff_done(&need->diff);
}

static const struct pod_fact *find_pod(const struct plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->at->prefetch_count; i++)
        if (str_equal(plan->at->prefetches[i]->name, name))
            return plan->at->prefetches[i];
    return NULL;
}

/* One without an owner was left by a set of this name that is gone: all of them carry our label. */
static bool is_ours(const struct plan *plan, const struct pod_fact *pod)
{
    return !pod->owner_uid || str_equal(pod->owner_uid, plan->set->uid);
}

/* False: its update fetches nothing, or nobody asks for it. need_done() in any case. */
static bool need_make(const struct plan *plan, const struct slot *slot, struct need *ret)
{
    *ret = (struct need){0};
    const struct pod_fact *pod = slot->pod;
    if (plan->spec->prefetch == NEOSET_PREFETCH_NEVER || !slot->live || !pod->node ||
        !plan_image_changes(plan, slot, &ret->diff))
        return false;
    ret->node = pod->node;
    ret->images = xcalloc(ret->diff.image_count, sizeof(*ret->images));
    for (size_t i = 0; i < ret->diff.image_count; i++) {
        const struct image_difference *change = &ret->diff.images[i];
        const struct container_fact *container = pod_fact_container(pod, change->container);
        /* The live pod's own policy: a patch of the image leaves it as it is. */
        enum pull_policy policy = container ? (enum pull_policy)container->pull_policy : PULL_UNSAID;
        ret->images[i] = (struct prefetch_image){change->container, change->to, policy};
    }
    ret->name = prefetch_name(plan->set, pod->node, ret->images, ret->diff.image_count);
    ret->pod = find_pod(plan, ret->name);
    const struct prefetch_observation *seen = neoset_memory_prefetch(plan->at->memory, ret->name);
    ret->words = seen ? seen->words : NULL;
    return true;
}

/* "mysql:8.1", "mysql:8.1 and 2 more"; the caller's. */
static char *images_text(const struct need *need)
{
    if (need->diff.image_count == 1)
        return xstrdup(need->images[0].image);
    return xasprintf("%s and %zu more", need->images[0].image, need->diff.image_count - 1);
}

/* A pod that was moved already runs these images there. */
static bool runs_on_node(const struct plan *plan, const char *node)
{
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct slot *slot = &plan->slots[i];
        if (slot->live && slot->on_target && slot->proven && str_equal(slot->pod->node, node))
            return true;
    }
    return false;
}

static bool is_met(const struct plan *plan, const struct need *need)
{
    const struct prefetch_observation *seen = neoset_memory_prefetch(plan->at->memory, need->name);
    if (seen && seen->found_boot_us != NEOSET_NEVER && plan->at->boot_us < seen->found_boot_us + FOUND_FOR_US)
        return true;
    bool found = need->pod && is_ours(plan, need->pod) && prefetch_judge(need->pod) == PREFETCH_FOUND;
    return found || runs_on_node(plan, need->node);
}

/* Why the pod that fetches cannot do its work, whatever the registry says; the caller's, or NULL. */
static char *hindrance(struct plan *plan, const struct need *need)
{
    const struct pod_fact *pod = need->pod;
    if (!pod) {
        const struct refusal *refusal =
            neoset_memory_refusal(plan->at->memory, KUBE_POD, need->name, STEP_CREATE_POD);
        /* A name that is taken is soon seen, unless somebody else's pod has it. */
        bool taken = refusal && refusal->http == 409 && refusal->count < TAKEN_MAX;
        if (!refusal || taken || plan->at->boot_us >= refusal->again_boot_us + REFUSED_FOR_US)
            return NULL;
        return xasprintf("the API server refuses the pod that fetches it: %s",
                         *refusal->words ? refusal->words : "no reason given");
    }
    if (!is_ours(plan, pod))
        return xasprintf("the pod %s belongs to someone else", pod->name);
    enum prefetch_state state = prefetch_judge(pod);
    if (state == PREFETCH_ENDED)
        return xasprintf("the pod that fetches it ended: %s", pod->reason ? pod->reason : "no reason given");
    if (state != PREFETCH_UNSEEN || pod->deleting)
        return NULL;
    int64_t left_us = pod->created_us + UNSEEN_US - plan->at->wall_us;
    if (left_us <= 0)
        return xstrdup("the node does not take up the pod that fetches it");
    plan_wake(plan, plan->at->boot_us + left_us);
    return NULL;
}

/* --- waiting -------------------------------------------------------------------------------------------- */

static int64_t budget_us(const struct plan *plan)
{
    return plan->spec->readiness_timeout_seconds * US_PER_S;
}

static bool look_up_wait(const struct plan *plan, const struct need *need, struct neoset_wait_view *ret)
{
    *ret = (struct neoset_wait_view){0};
    return plan->at->has_waits && plan->at->wait &&
           plan->at->wait(plan->at->context, wait_prefetch, KUBE_POD, need->name, budget_us(plan), ret);
}

/* stands: its time stands still. */
static void wait_for(struct plan *plan, const struct need *need, bool stands)
{
    CLEANUP_FREE char *images = images_text(need);
    plan_add_wait(&plan->out->waits, &plan->out->wait_count,
                  (struct neoset_wait){
                      .action = wait_prefetch,
                      .resource = KUBE_POD,
                      .name = need->name,
                      .budget_us = budget_us(plan),
                      .reason = xasprintf("until %s is on node %s", images, need->node),
                      .held = plan->spec->pause || stands,
                  });
}

static void tell_failed(struct plan *plan, const struct slot *slot, const struct need *need, const char *why)
{
    CLEANUP_FREE char *images = images_text(need);
    const char *words = why ? why : need->words ? need->words : "its pull did not end";
    plan->failed = true;
    plan->gave_up = true;
    plan_say(plan, why ? SAY_REFUSED : SAY_FAILED,
             "%s was not touched: %s could not be fetched to node %s within %lld s: %.*s. Push the image, or "
             "apply another template.",
             slot->pod->name, images, need->node, (long long)(budget_us(plan) / US_PER_S), WORDS_MAX, words);
    plan_event(plan, -1, true, "PrefetchFailed", slot, "%s could not be fetched to node %s: %.*s.", images,
               need->node, WORDS_MAX, words);
}

static void tell_waiting(struct plan *plan, const struct slot *slot, const struct need *need, const char *why)
{
    CLEANUP_FREE char *images = images_text(need);
    if (why)
        plan_say(plan, SAY_REFUSED,
                 "%s is not updated: %s cannot be fetched to node %s, and prefetch is Required: %.*s.",
                 slot->pod->name, images, need->node, WORDS_MAX, why);
    else if (need->words)
        plan_say(plan, SAY_BLOCKED, "%s is updated once %s is on node %s; so far: %.*s.", slot->pod->name,
                 images, need->node, WORDS_MAX, need->words);
    else
        plan_say(plan, SAY_UPDATING, "%s is updated once %s is on node %s.", slot->pod->name, images,
                 need->node);
}

static void create(struct plan *plan, const struct slot *slot, const struct need *need)
{
    CLEANUP_FREE char *images = images_text(need);
    struct step_request *request =
        plan_request(plan, STEP_CREATE_POD, KUBE_POD, need->name, NULL, NULL, "rollout");
    request->body = body_prefetch(plan->set, plan->target->template_text, need->name, need->node,
                                  need->images, need->diff.image_count);
    request->fingerprint = xstrdup("prefetch/fetch");
    request->reason = xasprintf("%s: fetch %s to node %s first", slot->pod->name, images, need->node);
    plan_emit(plan, request);
}

/* --- the pods there are --------------------------------------------------------------------------------- */

/* What is stored names this target: it is not about to change. */
static bool is_under_way(const struct plan *plan)
{
    return plan->active && plan->target && plan->wanted == plan->target && !plan->set->deleting &&
           !plan->set->problem && plan->now.present && str_equal(plan->now.target, plan->next.target);
}

/* It may be moved as it is now, and is not on the way. */
static bool is_candidate(const struct plan *plan, const struct slot *slot)
{
    int lowest = slot->past_proof ? plan_fence(plan) : plan_stage(plan, plan->next.stage);
    bool fits = slot->in_range && slot->live && !slot->on_target && !slot->broken &&
                (slot->proven || slot->past_proof) && slot->index >= lowest;
    bool begun = fits && ((slot->pod->has_gate && slot->pod->gate == IS_FALSE &&
                           str_equal(slot->pod->drained_for, plan->target->name)) ||
                          (slot->is_open && slot->open.lowers_availability));
    return fits && !begun;
}

/* Nobody fetches them, and nothing hinders: the pod that they are for has to come back into service first. */
static bool is_put_off(const struct plan *plan, const struct need *need, const char *why)
{
    struct neoset_open_step open;
    return !need->pod && !why && !plan->at->open_step(plan->at->context, KUBE_POD, need->name, &open);
}

/* Goes on waiting for this pod, or for the one to be made; false: there is nothing to wait for any more. */
static bool keep(struct plan *plan, const struct slot *slot, const struct need *need)
{
    struct neoset_wait_view view;
    bool waited = look_up_wait(plan, need, &view);
    if (is_met(plan, need)) {
        if (waited)
            plan_add_wait(
                &plan->out->waits_done, &plan->out->wait_done_count,
                (struct neoset_wait){.action = wait_prefetch, .resource = KUBE_POD, .name = need->name});
        return false;
    }
    CLEANUP_FREE char *why = hindrance(plan, need);
    bool is_hindrance = why && plan->spec->prefetch == NEOSET_PREFETCH_REQUIRED;
    if (why && !is_hindrance)
        return true; /* until the update has begun without it */
    if (!waited && !need->pod)
        return false;
    if (waited && view.expired && plan->spec->pause)
        return false; /* a pause ends what failed */
    wait_for(plan, need, is_put_off(plan, need, why));
    if (waited && view.expired) {
        tell_failed(plan, slot, need, why);
        if (!need->pod) /* it may be let in one day */
            create(plan, slot, need);
        return true;
    }
    if (waited && !view.held)
        plan_wake(plan, plan->at->boot_us + MAX(budget_us(plan) - view.spent_us, EXPIRY_AGAIN_US));
    tell_waiting(plan, slot, need, why);
    return true;
}

/* kept: one flag a pod of the snapshot. */
static void keep_wanted(struct plan *plan, bool *kept)
{
    size_t left = plan->at->prefetch_count;
    bool is_first = plan->at->has_waits; /* what the next pod needs is waited for without a pod, too */
    for (size_t i = plan->slot_count; i-- > 0 && (left > 0 || is_first);) {
        const struct slot *slot = &plan->slots[i];
        struct need need = {0};
        if (is_candidate(plan, slot) && need_make(plan, slot, &need)) {
            bool wanted = (need.pod || is_first) && keep(plan, slot, &need);
            is_first = false;
            for (size_t k = 0; wanted && k < plan->at->prefetch_count; k++) {
                left -= plan->at->prefetches[k] == need.pod && !kept[k];
                kept[k] = kept[k] || plan->at->prefetches[k] == need.pod;
            }
        }
        need_done(&need);
    }
}

static void drop(struct plan *plan, const struct pod_fact *pod, const char *why)
{
    struct step_request *request = plan_request(plan, STEP_DELETE, KUBE_POD, pod->name, pod->uid,
                                                pod->version, plan->active ? "rollout" : "cleanup");
    request->fingerprint = xstrdup("prefetch/done");
    request->reason = xasprintf("%s: %s", pod->name, why);
    plan_emit(plan, request);
}

void plan_prefetch(struct plan *plan)
{
    const struct neoset_snapshot *at = plan->at;
    CLEANUP_FREE bool *kept = xcalloc(at->prefetch_count + 1, sizeof(*kept));
    if (is_under_way(plan))
        keep_wanted(plan, kept);
    for (size_t i = 0; i < at->prefetch_count; i++) {
        const struct pod_fact *pod = at->prefetches[i];
        if (!is_ours(plan, pod) || pod->deleting)
            continue;
        enum prefetch_state state = prefetch_judge(pod);
        int64_t again_us = at->boot_us + pod->created_us + ENDED_FOR_US - at->wall_us;
        bool retries = state == PREFETCH_ENDED && plan->spec->prefetch == NEOSET_PREFETCH_REQUIRED;
        if (state == PREFETCH_FOUND)
            drop(plan, pod, "its images are on the node");
        else if (!kept[i])
            drop(plan, pod, "its images are not asked for any more");
        else if (retries && again_us <= at->boot_us)
            drop(plan, pod, "it ended without an answer; try again");
        else if (retries)
            plan_wake(plan, again_us);
    }
}

/* --- the next one --------------------------------------------------------------------------------------- */

/* Those that the budget lets follow at once are fetched beside it. */
static void fetch_ahead(struct plan *plan, const struct slot *first)
{
    int room = plan->canary_due ? 0 : plan->spec->budget - plan->unavailable - 1;
    for (size_t i = (size_t)(first - plan->slots); i-- > 0 && room > 0;) {
        const struct slot *slot = &plan->slots[i];
        struct need need = {0};
        if (is_candidate(plan, slot) && slot->available) {
            room--;
            if (need_make(plan, slot, &need) && !need.pod && !is_met(plan, &need)) {
                CLEANUP_FREE char *why = hindrance(plan, &need);
                if (!why)
                    create(plan, slot, &need);
            }
        }
        need_done(&need);
    }
}

static void fetch(struct plan *plan, const struct slot *slot, const struct need *need, const char *why)
{
    if (!is_under_way(plan))
        return;
    tell_waiting(plan, slot, need, why);
    if (!need->pod) {
        create(plan, slot, need);
        wait_for(plan, need, false);
    }
    fetch_ahead(plan, slot);
}

bool plan_fetch(struct plan *plan, const struct slot *slot, bool begin)
{
    struct need need;
    bool ready = !need_make(plan, slot, &need) || is_met(plan, &need);
    CLEANUP_FREE char *why = ready ? NULL : hindrance(plan, &need);
    if (why && plan->spec->prefetch == NEOSET_PREFETCH_IF_POSSIBLE) {
        CLEANUP_FREE char *images = images_text(&need);
        if (begin)
            plan_event(plan, -1, true, "PrefetchSkipped", slot,
                       "%s is not fetched to node %s before the update: %.*s.", images, need.node, WORDS_MAX,
                       why);
        ready = true;
    }
    if (!ready && begin)
        fetch(plan, slot, &need, why);
    need_done(&need);
    return ready;
}
