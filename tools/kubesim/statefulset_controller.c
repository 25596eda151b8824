/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/statefulset_parts.h"

#include "kubesim/kinds.h"

#include <uthash.h>

#define LOOK_AFTER_US (20 * US_PER_MS)
/* Status comes behind what it tells of: 0.1 to 0.2 s were measured. */
#define STATUS_LAG_US (150 * US_PER_MS)

const struct actor statefulset_actor = {.manager = "kube-controller-manager",
                                        .user = "system:serviceaccount:kube-system:statefulset-controller"};

/* Since when the status of a set is not the one that it should be. */
struct set_note {
    char *uid;
    int64_t due_us; /* INT64_MAX: it is */
    bool seen;
    UT_hash_handle hh;
};

void statefulsets_look_soon(struct kubesim *sim)
{
    if (sim->options.statefulsets)
        sim->sets_due_us = MIN(sim->sets_due_us, sim_now_us(sim) + LOOK_AFTER_US);
}

void kubesim_run_statefulsets(struct kubesim *sim)
{
    sim->options.statefulsets = true;
    statefulsets_look_soon(sim);
}

static void forget(struct kubesim *sim, struct set_note *note)
{
    HASH_DEL(sim->set_notes, note);
    free(note->uid);
    free(note);
}

void statefulsets_done(struct kubesim *sim)
{
    struct set_note *note;
    struct set_note *next;
    HASH_ITER (hh, sim->set_notes, note, next)
        forget(sim, note);
}

static struct set_note *note_of(struct kubesim *sim, const char *uid)
{
    struct set_note *note = NULL;
    HASH_FIND_STR(sim->set_notes, uid, note);
    if (note)
        return note;
    note = xcalloc(1, sizeof(*note));
    note->uid = xstrdup(uid);
    note->due_us = INT64_MAX;
    HASH_ADD_KEYPTR(hh, sim->set_notes, note->uid, strlen(note->uid), note);
    return note;
}

/* --- owners --------------------------------------------------------------------------------------------- */

const cJSON *set_controller_of(const cJSON *object)
{
    const cJSON *owner = NULL;
    cJSON_ArrayForEach (owner, json_path(object, "metadata", "ownerReferences", NULL))
        if (json_bool_or(owner, "controller", false))
            return owner;
    return NULL;
}

bool set_owns(const struct set *set, const cJSON *object)
{
    return str_equal(json_str(set_controller_of(object), "uid"), set->uid);
}

cJSON *set_owner_reference(const struct set *set)
{
    cJSON *owner = json_new_object();
    json_add_str(owner, "apiVersion", "apps/v1");
    json_add_str(owner, "kind", "StatefulSet");
    json_add_str(owner, "name", set->name);
    json_add_str(owner, "uid", set->uid);
    json_add_bool(owner, "controller", true);
    json_add_bool(owner, "blockOwnerDeletion", true);
    return owner;
}

void set_adopt(const struct set *set, const char *root, const char *plural, const cJSON *object)
{
    cJSON *patch = json_new_object();
    cJSON *metadata = json_add_object(patch, "metadata");
    json_add_str(metadata, "uid", meta_str(object, "uid"));
    cJSON *owners = json_add_array(metadata, "ownerReferences");
    const cJSON *owner = NULL;
    cJSON_ArrayForEach (owner, json_path(object, "metadata", "ownerReferences", NULL))
        json_append_item(owners, json_copy(owner));
    json_append_item(owners, set_owner_reference(set));
    (void)actor_ask(set->sim, &statefulset_actor, "PATCH", MERGE_TYPE, patch, "%s/namespaces/%s/%s/%s", root,
                    set->namespace, plural, meta_str(object, "name"));
}

/* --- status --------------------------------------------------------------------------------------------- */

/* Zeros are left out, but for these. */
static void put_number(cJSON *status, const char *key, int64_t number)
{
    bool always = strcmp(key, "replicas") == 0 || strcmp(key, "availableReplicas") == 0 ||
                  strcmp(key, "collisionCount") == 0;
    if (number != 0 || always)
        json_add_int64(status, key, number);
}

/* The current revision becomes the updated one when every pod runs that and is ready; with OnDelete only in
 * 1.37. */
static bool is_update_complete(const struct set *set)
{
    return (!set->on_delete || set->sim->options.newer) && set->updated == set->replicas &&
           set->ready == set->replicas && set->there == set->replicas;
}

/* The caller's. */
static cJSON *wanted_status(const struct set *set)
{
    bool complete = is_update_complete(set);
    cJSON *status = json_new_object();
    put_number(status, "observedGeneration",
               json_int64_or(json_get(set->object, "metadata"), "generation", 0));
    put_number(status, "replicas", set->there);
    put_number(status, "readyReplicas", set->ready);
    put_number(status, "currentReplicas", complete ? set->updated : set->on_current);
    put_number(status, "updatedReplicas", set->updated);
    json_add_str(status, "currentRevision", meta_str(complete ? set->update : set->current, "name"));
    json_add_str(status, "updateRevision", meta_str(set->update, "name"));
    put_number(status, "collisionCount", 0);
    put_number(status, "availableReplicas", set->available);
    return status;
}

static void write_status(const struct set *set, cJSON *status)
{
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, json_get(set->object, "status"))
        if (!json_get(status, member->string))
            json_add_item(status, member->string, cJSON_CreateNull());
    cJSON *patch = json_new_object();
    json_add_item(patch, "status", status);
    (void)actor_ask(set->sim, &statefulset_actor, "PATCH", MERGE_TYPE, patch,
                    "/apis/apps/v1/namespaces/%s/statefulsets/%s/status", set->namespace, set->name);
}

/* Not at once: a status that has to change does so a while after it first had to. */
static void settle_status(struct set *set, struct set_note *note)
{
    CLEANUP_JSON cJSON *status = wanted_status(set);
    if (json_equal(status, json_get(set->object, "status"))) {
        note->due_us = INT64_MAX;
        return;
    }
    if (note->due_us == INT64_MAX)
        note->due_us = sim_now_us(set->sim) + STATUS_LAG_US;
    if (note->due_us <= sim_now_us(set->sim)) {
        write_status(set, STEAL(status));
        note->due_us = INT64_MAX;
    }
    set->retry_us = MIN(set->retry_us, note->due_us);
}

/* --- one set -------------------------------------------------------------------------------------------- */

static const char *why_not_modelled(const struct set *set)
{
    const cJSON *most = json_path(set->spec, "updateStrategy", "rollingUpdate", "maxUnavailable", NULL);
    int64_t number = 1;
    if (most && (!json_node_int64(most, &number) || number != 1))
        return "kubesim does not run StatefulSets with a maxUnavailable other than 1";
    return set->replicas > SET_REPLICAS_MAX ? "kubesim does not run StatefulSets of more than 1000 replicas"
                                            : NULL;
}

static void say_not_modelled(const struct set *set, const char *why)
{
    if (json_path(set->object, "status", "conditions", NULL))
        return;
    cJSON *patch = json_new_object();
    cJSON *condition = json_new_object();
    json_add_str(condition, "type", "KubesimModels");
    json_add_str(condition, "status", "False");
    json_add_str(condition, "message", why);
    json_append_item(json_add_array(json_add_object(patch, "status"), "conditions"), condition);
    (void)actor_ask(set->sim, &statefulset_actor, "PATCH", MERGE_TYPE, patch,
                    "/apis/apps/v1/namespaces/%s/statefulsets/%s/status", set->namespace, set->name);
}

static void run(struct set *set)
{
    struct set_note *note = note_of(set->sim, set->uid);
    note->seen = true;
    if (set_find_revisions(set) < 0) {
        set->retry_us = sim_now_us(set->sim) + US_PER_S;
        return;
    }
    set_collect_pods(set);
    set_count_pods(set);
    if (!set->dying)
        set_work_on_pods(set);
    settle_status(set, note);
    if (!set->dying)
        set_truncate_history(set);
}

static void set_done(struct set *set)
{
    for (int64_t i = 0; set->pods && i < set->replicas; i++)
        version_release(set->pods[i]);
    free(set->pods);
    json_delete(set->condemned);
    json_delete(set->history);
    selector_free(set->selector);
}

static int64_t sync(struct kubesim *sim, const cJSON *object)
{
    struct set set = {.sim = sim,
                      .object = object,
                      .namespace = meta_str(object, "namespace"),
                      .name = meta_str(object, "name"),
                      .uid = meta_str(object, "uid"),
                      .spec = json_get(object, "spec"),
                      .dying = meta_is_deleting(object),
                      .retry_us = INT64_MAX};
    const cJSON *strategy = json_get(set.spec, "updateStrategy");
    set.replicas = json_int64_or(set.spec, "replicas", 1);
    set.start = json_int64_or(json_get(set.spec, "ordinals"), "start", 0);
    set.partition = json_int64_or(json_get(strategy, "rollingUpdate"), "partition", 0);
    set.on_delete = str_equal(json_str(strategy, "type"), "OnDelete");
    set.ordered = !str_equal(json_str(set.spec, "podManagementPolicy"), "Parallel");
    /* 1.36 leaves the status of a set that is being deleted as it is, 1.37 goes on counting. */
    if ((set.dying && !sim->options.newer) ||
        selector_from_tree(json_get(set.spec, "selector"), &set.selector, NULL) < 0)
        return INT64_MAX;
    const char *why = why_not_modelled(&set);
    if (why)
        say_not_modelled(&set, why);
    else
        run(&set);
    set_done(&set);
    return set.retry_us;
}

static void forget_unseen(struct kubesim *sim)
{
    struct set_note *note;
    struct set_note *next;
    HASH_ITER (hh, sim->set_notes, note, next) {
        if (!note->seen)
            forget(sim, note);
        else
            note->seen = false;
    }
}

void statefulsets_tick(struct kubesim *sim)
{
    if (sim->sets_due_us > sim_now_us(sim))
        return;
    sim->sets_due_us = INT64_MAX;
    const struct kind *kind = kind_find(sim, "apps", "statefulsets");
    CLEANUP_JSON cJSON *copies = json_new_array();
    for (size_t i = 0; i < kind->object_count; i++)
        json_append_item(copies, json_copy(object_tree(kind->objects[i])));
    const cJSON *object = NULL;
    cJSON_ArrayForEach (object, copies) {
        int64_t retry_us = sync(sim, object);
        sim->sets_due_us = MIN(sim->sets_due_us, retry_us);
    }
    forget_unseen(sim);
}
