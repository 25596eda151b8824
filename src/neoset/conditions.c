/* SPDX-License-Identifier: Apache-2.0
 *
 * Conditions in the form that kubectl wait and others read. Those of others are left alone. */
#include "neoset/plan_model.h"

#include "base/time_text.h"

struct wanted_condition {
    const char *type;
    const char *status;
    const char *reason;
    char *message;
};

static const cJSON *find_condition(const cJSON *conditions, const char *type)
{
    const cJSON *condition = NULL;
    cJSON_ArrayForEach (condition, conditions) {
        if (str_equal(json_str(condition, "type"), type))
            return condition;
    }
    return NULL;
}

/* The time of a condition moves only with its status. */
static void add_condition(struct plan *plan, cJSON *list, const cJSON *old_list,
                          struct wanted_condition *wanted)
{
    const cJSON *old = find_condition(old_list, wanted->type);
    const char *since = json_str(old, "lastTransitionTime");
    char now[TIME_TEXT_SIZE];
    time_format_seconds(plan->at->wall_us, now);
    bool same = since && str_equal(json_str(old, "status"), wanted->status);
    cJSON *condition = json_new_object();
    /* In the order of their names, in which they are printed to be compared. */
    json_add_str(condition, "lastTransitionTime", same ? since : now);
    json_add_str(condition, "message", wanted->message);
    json_add_int64(condition, "observedGeneration", plan->set->generation);
    json_add_str(condition, "reason", wanted->reason);
    json_add_str(condition, "status", wanted->status);
    json_add_str(condition, "type", wanted->type);
    json_append_item(list, condition);
    free(wanted->message);
}

static struct wanted_condition available(const struct plan *plan)
{
    bool enough = plan->available >= MAX(plan->spec->replicas - plan->spec->budget, 0);
    return (struct wanted_condition){
        "Available", enough ? "True" : "False", enough ? "MinimumAvailable" : "TooFewAvailable",
        xasprintf("%d of %d pods are available", plan->available, plan->spec->replicas)};
}

static struct wanted_condition progressing(const struct plan *plan)
{
    struct wanted_condition wanted = {"Progressing", "True", "Creating", NULL};
    if (plan->set->problem || plan->failed) {
        wanted.status = "False";
        wanted.reason = plan->failed ? "DeadlineExceeded" : "InvalidSpec";
    } else if (plan->spec->pause) {
        wanted.status = "Unknown";
        wanted.reason = "Paused";
    } else if (plan->active) {
        wanted.reason = plan->phase;
    } else if (plan->complete) {
        wanted.reason = "Complete";
    }
    wanted.message = xasprintf("%zu of %d pods are done", plan->next.done.count, plan->spec->replicas);
    return wanted;
}

static struct wanted_condition stalled(const struct plan *plan)
{
    struct wanted_condition wanted = {"Stalled", "True", "Blocked", NULL};
    switch (plan->weight) {
    case SAY_FAILED:
        wanted.reason = "DeadlineExceeded";
        break;
    case SAY_IN_DOUBT:
        wanted.reason = "StepInDoubt";
        break;
    case SAY_REFUSED:
        wanted.reason = "Refused";
        break;
    case SAY_INVALID:
        wanted.reason = plan->set->problem ? "InvalidSpec" : "Deleting";
        break;
    case SAY_BLOCKED:
        break;
    case SAY_NOTHING:
    case SAY_STEADY:
    case SAY_HELD:
    case SAY_CREATING:
    case SAY_UPDATING:
    case SAY_PAUSED:
        wanted.status = "False";
        wanted.reason = "NothingInTheWay";
        break;
    }
    if (plan->set->deleting && !plan->set->problem)
        wanted.status = "False";
    bool stands = str_equal(wanted.status, "True");
    wanted.message = xstrdup(stands && plan->message ? plan->message : "");
    return wanted;
}

static struct wanted_condition volumes(const struct plan *plan)
{
    bool converged = str_equal(plan->volumes, VOLUMES_CONVERGED);
    return (struct wanted_condition){"VolumesConverged", converged ? "True" : "False", plan->volumes,
                                     xstrdup(plan->volumes_text)};
}

/* A condition that is there only where it is, or was, true. message: taken over. */
static void add_exception(struct plan *plan, cJSON *list, const cJSON *old_list, const char *type,
                          const char *reason, char *message)
{
    if (!message && !find_condition(old_list, type))
        return;
    struct wanted_condition wanted = {type, message ? "True" : "False", message ? reason : "NothingInTheWay",
                                      message ? message : xstrdup("")};
    add_condition(plan, list, old_list, &wanted);
}

static void add_exceptions(struct plan *plan, cJSON *list, const cJSON *old_list)
{
    const struct neoset_snapshot *at = plan->at;
    char *went_back =
        at->journal_went_back
            ? xstrdup("the controller's journal is older than the cluster, or a copy: its open steps were "
                      "closed, and only the cluster is believed")
            : NULL;
    add_exception(plan, list, old_list, "JournalWentBack", "JournalWentBack", went_back);
    char *shared = at->same_selector
                       ? xasprintf("NeoSet %s has the same selector: what goes by it cannot tell their pods "
                                   "apart. Each keeps to the pods of its name; give each a label of its own",
                                   at->same_selector)
                       : NULL;
    add_exception(plan, list, old_list, "SelectorShared", "SelectorShared", shared);
}

/* However many there are: each is compared with our own few only. */
static void add_others(cJSON *list, const cJSON *old_list)
{
    CLEANUP_JSON cJSON *others = json_new_array();
    const cJSON *other = NULL;
    cJSON_ArrayForEach (other, old_list)
        if (!find_condition(list, json_str(other, "type")))
            json_append_item(others, json_copy(other));
    while (others->child)
        json_append_item(list, cJSON_DetachItemViaPointer(others, others->child));
}

cJSON *plan_conditions(struct plan *plan)
{
    CLEANUP_JSON cJSON *old = NULL;
    if (plan->set->conditions)
        ENSURE(json_parse(plan->set->conditions, strlen(plan->set->conditions), &old, NULL) == 0);
    cJSON *list = json_new_array();
    struct wanted_condition wanted[] = {available(plan), progressing(plan), stalled(plan)};
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
        add_condition(plan, list, old, &wanted[i]);
    if (plan->volumes) {
        struct wanted_condition wanted_volumes = volumes(plan);
        add_condition(plan, list, old, &wanted_volumes);
    }
    add_exceptions(plan, list, old);
    add_others(list, old);
    return list;
}
