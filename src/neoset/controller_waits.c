/* SPDX-License-Identifier: Apache-2.0
 *
 * The waits of a set, as the journal has them: begun, held, let go and ended as decisions want them. */
#include "neoset/controller_parts.h"

#include <utlist.h>

static void known_wait_free(struct turn *turn, struct known_wait *wait)
{
    DL_DELETE(turn->waits, wait);
    free(wait->action);
    free(wait->name);
    free(wait);
}

static struct known_wait *know_wait(struct turn *turn, const char *action, enum kube_resource resource,
                                    const char *name)
{
    struct known_wait *wait = NULL;
    DL_FOREACH (turn->waits, wait) {
        if (wait->resource == resource && strcmp(wait->action, action) == 0 && strcmp(wait->name, name) == 0)
            return wait;
    }
    wait = xcalloc(1, sizeof(*wait));
    wait->action = xstrdup(action);
    wait->resource = resource;
    wait->name = xstrdup(name);
    DL_APPEND(turn->waits, wait);
    return wait;
}

struct wait_search {
    struct set_group *group;
};

/* Waits of earlier runs: those of the set itself, and of pods that are named after it. */
static void take_open_wait(void *context, int64_t seq, const char *action, const char *object,
                           const char *namespace, const char *name)
{
    const struct wait_search *search = context;
    struct set_group *group = search->group;
    enum kube_resource resource;
    (void)seq;
    if (!str_equal(namespace ? namespace : "", group->namespace) ||
        kube_resource_by_name(object, &resource) < 0)
        return;
    size_t length = 0;
    int ordinal = -1;
    bool of_set = resource == KUBE_NEOSET && strcmp(name, group->name) == 0;
    bool of_pod = resource == KUBE_POD && neoset_split_pod_name(name, &length, &ordinal) &&
                  length == strlen(group->name) && strncmp(name, group->name, length) == 0;
    bool of_prefetch = resource == KUBE_POD && neoset_split_prefetch_name(name, &length) &&
                       length == strlen(group->name) && strncmp(name, group->name, length) == 0;
    if (of_set || of_pod || of_prefetch)
        know_wait(group->turn, action, resource, name);
}

static int64_t find_wait(const struct controller *controller, const struct set_group *group,
                         const char *action, enum kube_resource resource, const char *name)
{
    return journal_wait_find(controller->journal, action, kube_resource_info(resource)->kind,
                             group->namespace, name);
}

static void keep_wait(struct controller *controller, struct set_group *group,
                      const struct neoset_wait *wanted)
{
    struct journal *journal = controller->journal;
    const char *kind = kube_resource_info(wanted->resource)->kind;
    int64_t wait = find_wait(controller, group, wanted->action, wanted->resource, wanted->name);
    if (!wait) {
        const struct journal_open_operation *operation =
            journal_open_operation_find(journal, "rollout", "NeoSet", group->namespace, group->name);
        wait = journal_wait_begin(journal, operation ? operation->seq : 0, wanted->action, kind,
                                  group->namespace, wanted->name, wanted->budget_us, wanted->reason);
    }
    if (wanted->held && !journal_wait_is_held(journal, wait))
        journal_wait_hold(journal, wait, wanted->reason);
    else if (!wanted->held && journal_wait_is_held(journal, wait))
        journal_wait_go(journal, wait);
    know_wait(group->turn, wanted->action, wanted->resource, wanted->name)->wanted = true;
}

static void end_wait(struct controller *controller, struct set_group *group, struct known_wait *known,
                     const char *outcome)
{
    int64_t wait = find_wait(controller, group, known->action, known->resource, known->name);
    if (wait)
        journal_wait_end(controller->journal, wait, outcome);
    known_wait_free(group->turn, known);
}

static bool is_done(const struct neoset_decision *decision, const struct known_wait *known)
{
    for (size_t i = 0; i < decision->wait_done_count; i++) {
        const struct neoset_wait *done = &decision->waits_done[i];
        if (done->resource == known->resource && strcmp(done->action, known->action) == 0 &&
            strcmp(done->name, known->name) == 0)
            return true;
    }
    return false;
}

static void look_for_waits(struct controller *controller, struct set_group *group)
{
    struct turn *turn = group->turn;
    if (turn->looked_for_waits)
        return;
    turn->looked_for_waits = true;
    struct wait_search search = {.group = group};
    journal_open_waits_each(controller->journal, take_open_wait, &search);
}

void follow_stand_still(struct controller *controller, struct set_group *group, const char *why)
{
    look_for_waits(controller, group);
    const struct known_wait *known = NULL;
    DL_FOREACH (controller_turn_of(group)->waits, known) {
        int64_t wait = find_wait(controller, group, known->action, known->resource, known->name);
        if (wait && !journal_wait_is_held(controller->journal, wait))
            journal_wait_hold(controller->journal, wait, why);
    }
}

bool follow_has_waits(struct controller *controller, struct set_group *group)
{
    look_for_waits(controller, group);
    return controller_turn_of(group)->waits != NULL;
}

void follow_waits(struct controller *controller, struct set_group *group,
                  const struct neoset_decision *decision)
{
    struct turn *turn = group->turn;
    look_for_waits(controller, group);
    struct known_wait *known = NULL, *next = NULL;
    DL_FOREACH (turn->waits, known) {
        known->wanted = false;
    }
    for (size_t i = 0; i < decision->wait_count; i++)
        keep_wait(controller, group, &decision->waits[i]);
    DL_FOREACH_SAFE (turn->waits, known, next) {
        if (!known->wanted)
            end_wait(controller, group, known, is_done(decision, known) ? "done" : "dropped");
    }
}

void follow_drop_waits(struct controller *controller, struct set_group *group)
{
    look_for_waits(controller, group);
    struct known_wait *known = NULL, *next = NULL;
    DL_FOREACH_SAFE (controller_turn_of(group)->waits, known, next) {
        end_wait(controller, group, known, "dropped");
    }
}

void follow_forget_waits(struct turn *turn)
{
    struct known_wait *known = NULL, *next = NULL;
    DL_FOREACH_SAFE (turn->waits, known, next) {
        known_wait_free(turn, known);
    }
}
