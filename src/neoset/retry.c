/* SPDX-License-Identifier: Apache-2.0
 *
 * A moved pod that ran out of time is deleted and made anew on the target: at most three times for an ordinal
 * and a target, with back-off, never a pod that was proven. The journal counts: the wait "retry" is the
 * back-off before the next one, and the wait "retried-N" stays open once N of them were made; both go when
 * the ordinal is done, the target changes, or a person pauses the set. */
#include "neoset/plan_model.h"

#include "base/time_text.h"

enum { RETRIES_MAX = 3 };
#define RETRY_FIRST_US (10 * US_PER_S)

static const char wait_retry[] = "retry";
static const char *const wait_retried[RETRIES_MAX] = {"retried-1", "retried-2", "retried-3"};

static int64_t backoff_us(int used)
{
    return RETRY_FIRST_US << used;
}

static bool find_wait(const struct plan *plan, const char *action, const char *pod, int64_t budget_us,
                      struct neoset_wait_view *ret)
{
    *ret = (struct neoset_wait_view){0};
    return plan->at->has_waits && plan->at->wait &&
           plan->at->wait(plan->at->context, action, KUBE_POD, pod, budget_us, ret);
}

static int retries_used(const struct plan *plan, const char *pod)
{
    struct neoset_wait_view view;
    for (int n = RETRIES_MAX; n > 0; n--)
        if (find_wait(plan, wait_retried[n - 1], pod, 0, &view))
            return n;
    return 0;
}

bool plan_keep_retries(struct plan *plan, const struct slot *slot)
{
    /* Tries of another target do not count: what is not asked for in this turn is dropped. */
    if (!plan->at->has_waits || !str_equal(plan->now.target, plan->next.target))
        return false;
    CLEANUP_FREE char *pod = slot_name(plan, slot);
    int used = retries_used(plan, pod);
    struct neoset_wait_view view;
    bool is_going = find_wait(plan, wait_retry, pod, backoff_us(MIN(used, RETRIES_MAX - 1)), &view);
    if (is_going && !slot->live) {
        is_going = false; /* the pod is away: this retry was made */
        used = MIN(used + 1, RETRIES_MAX);
    }
    if (is_going)
        plan_want_wait(plan, wait_retry, pod, backoff_us(MIN(used, RETRIES_MAX - 1)),
                       "before it is made anew");
    if (used > 0)
        plan_want_wait(plan, wait_retried[used - 1], pod, 0, "so often was it made anew");
    return used > 0;
}

static void delete_pod(struct plan *plan, const struct slot *slot, int number, const char *failed_text)
{
    const struct pod_fact *pod = slot->pod;
    char *claim = NULL;
    if (plan_claim_is_going(plan, slot->ordinal, &claim)) {
        plan_say(plan, SAY_FAILED,
                 "%s is not made anew: its claim %s is being deleted, and the data would go.", pod->name,
                 claim);
        free(claim);
        return;
    }
    struct step_request *request =
        plan_request(plan, STEP_DELETE, KUBE_POD, pod->name, pod->uid, pod->version, "rollout");
    request->fingerprint = xasprintf("retry/%s/%d", plan->next.target, number);
    request->reason =
        xasprintf("%s: make it anew, try %d of %d (%s)", pod->name, number, RETRIES_MAX, failed_text);
    request->lowers_availability = true;
    int step = plan_emit(plan, request);
    if (step >= 0)
        plan_event(plan, step, true, "Retrying", slot, "%s is made anew, try %d of %d: %s.", pod->name,
                   number, RETRIES_MAX, failed_text);
}

void plan_retry(struct plan *plan, const struct slot *slot, const char *failed_text)
{
    const char *name = slot->pod->name;
    int used = retries_used(plan, name);
    /* One that was patched and proven, or that people fenced off, is theirs. */
    if ((slot->pod->state && slot->proven) || slot->index < plan_fence(plan)) {
        plan_say(plan, SAY_FAILED,
                 "%s. No other pod is updated until it comes up, or another template is applied.",
                 failed_text);
        return;
    }
    if (used == RETRIES_MAX) {
        plan->gave_up = true;
        plan_say(plan, SAY_FAILED,
                 "%s. It was made anew %d times in vain. Apply another template or undo (neosetctl undo %s "
                 "-n %s); "
                 "to try the same again, set spec.updateStrategy.pause to true and back.",
                 failed_text, RETRIES_MAX, plan->set->name, plan->set->namespace);
        return;
    }
    plan_say(plan, SAY_FAILED,
             "%s. It is made anew after %lld s (try %d of %d); no other pod is updated meanwhile.",
             failed_text, (long long)(backoff_us(used) / US_PER_S), used + 1, RETRIES_MAX);
    struct neoset_wait_view view;
    if (!find_wait(plan, wait_retry, name, backoff_us(used), &view)) {
        plan_want_wait(plan, wait_retry, name, backoff_us(used), "before it is made anew");
        plan_wake(plan, plan->at->boot_us + backoff_us(used));
        return;
    }
    if (!view.expired)
        plan_wake(plan, plan->at->boot_us + MAX(backoff_us(used) - view.spent_us, US_PER_S));
    else if (!plan->pod_write_open)
        delete_pod(plan, slot, used + 1, failed_text);
}
