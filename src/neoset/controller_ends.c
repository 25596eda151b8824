/* SPDX-License-Identifier: Apache-2.0
 *
 * The ends: of operations, and of what is left when a set was deleted. */
#include "neoset/controller_parts.h"

void follow_ends(struct controller *controller, struct set_group *group,
                 const struct neoset_decision *decision, bool before_steps)
{
    for (size_t i = 0; i < decision->end_count; i++) {
        const struct neoset_operation_end *operation_end = &decision->ends[i];
        if (operation_end->before_steps != before_steps)
            continue;
        gateway_end_operation(controller->gateway, operation_end->kind, KUBE_NEOSET, group->namespace,
                              group->name, operation_end->outcome, operation_end->reason);
    }
}

struct end_search {
    const struct set_group *group;
    char **kinds;
    size_t count;
};

static void take_open_operation(void *context, const struct journal_open_operation *operation)
{
    struct end_search *search = context;
    if (!str_equal(operation->object, "NeoSet") || !str_equal(operation->name, search->group->name) ||
        !str_equal(operation->namespace ? operation->namespace : "", search->group->namespace))
        return;
    search->kinds = xreallocarray(search->kinds, search->count + 1, sizeof(char *));
    search->kinds[search->count++] = xstrdup(operation->action);
}

static void done_search(struct end_search *search)
{
    for (size_t i = 0; i < search->count; i++)
        free(search->kinds[i]);
    free(search->kinds);
    *search = (struct end_search){.group = search->group};
}

static bool has_orphaned_prefetches(const struct set_group *group)
{
    for (size_t i = 0; i < group->prefetch_count; i++)
        if (!group->prefetches[i].fact->owner_uid && !group->prefetches[i].fact->deleting)
            return true;
    return false;
}

/* The set was deleted and what it owned was not: pods that fetched for it are of no use to anyone. */
static void drop_orphaned_prefetches(struct controller *controller, const struct set_group *group)
{
    const char *why = NULL;
    struct turn *turn = group->turn;
    int64_t now_us = env_boot_us(controller->env);
    if (!has_orphaned_prefetches(group) || !controller_is_fresh(controller, &why))
        return;
    if (now_us < turn->orphans_not_before_boot_us) {
        loop_wake_at(controller->loop, group->key, turn->orphans_not_before_boot_us);
        return;
    }
    /* One that the server refuses is asked again, but not at once. */
    turn->orphans_not_before_boot_us = now_us + kube_backoff_us(controller->env, turn->orphans_tried++, -1);
    for (size_t i = 0; i < group->prefetch_count; i++) {
        const struct pod_fact *pod = group->prefetches[i].fact;
        if (pod->owner_uid || pod->deleting || !pod->uid || !pod->version)
            continue;
        struct step_request *step = step_request_make(STEP_DELETE, KUBE_POD, group->namespace, pod->name);
        step->uid = xstrdup(pod->uid);
        step->version = xstrdup(pod->version);
        step->fingerprint = xstrdup("prefetch/done");
        step->reason = xasprintf("%s: its NeoSet is gone", pod->name);
        step->operation_kind = xstrdup("cleanup");
        step->operation_resource = KUBE_NEOSET;
        step->operation_namespace = xstrdup(group->namespace);
        step->operation_name = xstrdup(group->name);
        (void)gateway_submit(controller->gateway, step, controller_step_done, controller);
    }
}

/* The set was deleted: nothing of it is wanted any more. Its operations end when their open steps are closed.
 */
void follow_set_gone(struct controller *controller, struct set_group *group)
{
    struct turn *turn = controller_turn_of(group);
    drop_orphaned_prefetches(controller, group);
    gateway_settle_unwanted(controller->gateway, KUBE_NEOSET, group->namespace, group->name);
    follow_drop_waits(controller, group);
    struct end_search search = {.group = group};
    journal_open_operations_each(controller->journal, take_open_operation, &search);
    for (size_t i = 0; i < search.count; i++)
        gateway_end_operation(controller->gateway, search.kinds[i], KUBE_NEOSET, group->namespace,
                              group->name, "cancelled", "the NeoSet was deleted");
    done_search(&search);
    journal_open_operations_each(controller->journal, take_open_operation, &search);
    bool is_over = search.count == 0 && !has_orphaned_prefetches(group);
    done_search(&search);
    if (!is_over)
        return;
    controller_forget_refreshes(controller, group);
    turn_free(turn);
    group->turn = NULL;
    fact_store_drop_if_empty(controller->store, group);
}
