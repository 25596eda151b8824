/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/kinds.h"
#include "kubesim/quotas.h"
#include "kubesim/volumes.h"

#include <uthash.h>

/* Every uid that exists or is named as an owner. */
struct owner {
    char *uid;
    bool exists;
    bool dying;
    bool namespaced;
    char *namespace; /* of the existing one */
    char *kind;
    char *name;
    unsigned dependents;
    UT_hash_handle hh;
};

struct owner_index {
    struct owner *owners;
};

void gc_look_soon(struct kubesim *sim)
{
    sim->gc.due_us = MIN(sim->gc.due_us, sim_now_us(sim) + sim->gc.delay_us);
}

void kubesim_set_gc(struct kubesim *sim, bool on, int64_t delay_us, int64_t blind_us)
{
    sim->gc.off = !on;
    sim->gc.delay_us = delay_us;
    sim->gc.blind_us = blind_us;
    sim->gc.due_us = INT64_MAX;
    if (on)
        gc_look_soon(sim);
}

static struct owner *find_owner(const struct kubesim *sim, const char *uid)
{
    struct owner *owner = NULL;
    if (sim->gc.index && uid)
        HASH_FIND_STR(sim->gc.index->owners, uid, owner);
    return owner;
}

static struct owner *ensure_owner(struct kubesim *sim, const char *uid)
{
    struct owner *owner = find_owner(sim, uid);
    if (owner)
        return owner;
    if (!sim->gc.index)
        sim->gc.index = xcalloc(1, sizeof(*sim->gc.index));
    owner = xcalloc(1, sizeof(*owner));
    owner->uid = xstrdup(uid);
    HASH_ADD_KEYPTR(hh, sim->gc.index->owners, owner->uid, strlen(owner->uid), owner);
    return owner;
}

static void release_owner(struct kubesim *sim, struct owner *owner)
{
    if (owner->exists || owner->dependents > 0)
        return;
    HASH_DEL(sim->gc.index->owners, owner);
    free(owner->uid);
    free(owner->namespace);
    free(owner->kind);
    free(owner->name);
    free(owner);
}

void gc_done(struct kubesim *sim)
{
    struct owner *owner;
    struct owner *next;
    if (!sim->gc.index)
        return;
    HASH_ITER (hh, sim->gc.index->owners, owner, next) {
        owner->exists = false;
        owner->dependents = 0;
        release_owner(sim, owner);
    }
    free(STEAL(sim->gc.index));
}

static bool owner_lives(const struct kubesim *sim, const cJSON *object, const cJSON *reference)
{
    const char *uid = json_str(reference, "uid");
    const struct owner *owner = uid ? find_owner(sim, uid) : NULL;
    /* The collector looks the owner up by kind and name, then compares uids: a wrong name is as good as none.
     */
    return owner && owner->exists && str_equal(owner->kind, json_str(reference, "kind")) &&
           str_equal(owner->name, json_str(reference, "name")) &&
           (!owner->namespaced || str_equal(owner->namespace, meta_str(object, "namespace")));
}

static void count_dependent(struct kubesim *sim, const cJSON *object, bool added)
{
    const cJSON *reference;
    cJSON_ArrayForEach (reference, json_path(object, "metadata", "ownerReferences", NULL)) {
        const char *uid = json_str(reference, "uid");
        if (!uid)
            continue;
        struct owner *owner = ensure_owner(sim, uid);
        if (added) {
            owner->dependents++;
            if (!owner_lives(sim, object, reference))
                gc_look_soon(sim);
        } else {
            owner->dependents -= owner->dependents > 0;
            release_owner(sim, owner);
        }
    }
}

static void note_existence(struct kubesim *sim, const struct kind *kind, const cJSON *object, bool exists)
{
    const char *uid = meta_str(object, "uid");
    if (!uid)
        return;
    struct owner *owner = ensure_owner(sim, uid);
    owner->exists = exists;
    owner->dying = exists && meta_is_deleting(object);
    owner->namespaced = kind->flags & KIND_NAMESPACED;
    str_replace(&owner->namespace, meta_str(object, "namespace"));
    str_replace(&owner->kind, kind->name);
    str_replace(&owner->name, meta_str(object, "name"));
    if (!exists && owner->dependents > 0)
        gc_look_soon(sim);
    release_owner(sim, owner);
}

static void count_dying(unsigned *count, const cJSON *before, const cJSON *after)
{
    *count += (after && meta_is_deleting(after)) - (unsigned)(before && meta_is_deleting(before));
}

static bool has_dying_owner(const struct kubesim *sim, const cJSON *object)
{
    const cJSON *reference;
    cJSON_ArrayForEach (reference, json_path(object, "metadata", "ownerReferences", NULL)) {
        const struct owner *owner = find_owner(sim, json_str(reference, "uid"));
        if (owner && owner->dying)
            return true;
    }
    return false;
}

void gc_note(struct kubesim *sim, struct kind *kind, const cJSON *before, const cJSON *after)
{
    note_existence(sim, kind, after ? after : before, after != NULL);
    statefulsets_look_soon(sim);
    volumes_look_soon(sim, kind);
    quotas_look_soon(sim, kind);
    if (!after || !before) {
        count_dependent(sim, after ? after : before, after != NULL);
    } else if (!json_equal(json_path(before, "metadata", "ownerReferences", NULL),
                           json_path(after, "metadata", "ownerReferences", NULL))) {
        count_dependent(sim, after, true);
        count_dependent(sim, before, false);
    }
    if (kind->hooks == &claim_hooks)
        count_dying(&sim->gc.dying_claims, before, after);
    if (kind->hooks == &namespace_hooks)
        count_dying(&sim->gc.dying_namespaces, before, after);
    bool held = after && meta_is_deleting(after) &&
                (meta_finalizer_count(after) > 0 || kind->hooks == &namespace_hooks);
    bool lets_go =
        !after && (sim->gc.dying_claims > 0 || sim->gc.dying_namespaces > 0 || has_dying_owner(sim, before));
    if (held || lets_go)
        gc_look_soon(sim);
}

/* --- looking
 * ---------------------------------------------------------------------------------------------------- */

/* True when it names owners and none of them exists. */
static bool is_abandoned(const struct kubesim *sim, const cJSON *object)
{
    const cJSON *references = json_path(object, "metadata", "ownerReferences", NULL);
    const cJSON *reference;
    cJSON_ArrayForEach (reference, references)
        if (owner_lives(sim, object, reference))
            return false;
    return cJSON_GetArraySize(references) > 0;
}

static const cJSON *reference_to(const cJSON *object, const char *uid)
{
    const cJSON *reference;
    cJSON_ArrayForEach (reference, json_path(object, "metadata", "ownerReferences", NULL))
        if (str_equal(json_str(reference, "uid"), uid))
            return reference;
    return NULL;
}

static bool is_overlooked(const struct kubesim *sim, const cJSON *object)
{
    int64_t created_us;
    const char *created = meta_str(object, "creationTimestamp");
    return sim->gc.blind_us > 0 && created && time_parse_rfc3339(created, &created_us, NULL) == 0 &&
           sim_now_us(sim) - created_us < sim->gc.blind_us;
}

static void drop_reference(struct kubesim *sim, struct kind *kind, struct object *object, const char *uid)
{
    cJSON *changed = json_copy(object_tree(object));
    cJSON *references = json_path(changed, "metadata", "ownerReferences", NULL);
    cJSON_Delete(cJSON_DetachItemViaPointer(references, (cJSON *)reference_to(changed, uid)));
    if (cJSON_GetArraySize(references) == 0)
        json_remove(meta_of(changed), "ownerReferences");
    store_put(sim, kind, changed);
}

/* Calls work for each dependent of uid; work may remove it. True when one of the calls said so. */
typedef bool dependent_work(struct kubesim *sim, struct kind *kind, struct object *object, const char *uid);
static bool for_each_dependent(struct kubesim *sim, const char *uid, dependent_work *work)
{
    bool any = false;
    for (size_t k = 0; k < sim->kind_count; k++) {
        struct kind *kind = sim->kinds[k];
        for (size_t i = 0; i < kind->object_count;) {
            struct object *object = kind->objects[i];
            if (reference_to(object_tree(object), uid))
                any = work(sim, kind, object, uid) || any;
            i += i < kind->object_count && kind->objects[i] == object;
        }
    }
    return any;
}

static bool orphan_one(struct kubesim *sim, struct kind *kind, struct object *object, const char *uid)
{
    if (!is_overlooked(sim, object_tree(object)))
        drop_reference(sim, kind, object, uid);
    return false;
}

/* True while a dependent that blocks its owner is still there. */
static bool delete_dependent(struct kubesim *sim, struct kind *kind, struct object *object, const char *uid)
{
    bool blocks = json_bool_or(reference_to(object_tree(object), uid), "blockOwnerDeletion", false);
    if (meta_is_deleting(object_tree(object)))
        return blocks;
    /* A dependent that has dependents of its own waits for them in turn. */
    const struct owner *own = find_owner(sim, meta_str(object_tree(object), "uid"));
    bool gone = delete_quietly(sim, kind, object, own && own->dependents > 0 ? "Foreground" : NULL);
    return blocks && !gone;
}

static void release_finalizer(struct kubesim *sim, struct kind *kind, struct object *object,
                              const char *finalizer)
{
    cJSON *changed = json_copy(object_tree(object));
    meta_remove_finalizer(changed, finalizer);
    if (meta_finalizer_count(changed) == 0 &&
        json_int64_or(json_get(changed, "metadata"), "deletionGracePeriodSeconds", 0) == 0)
        store_remove(sim, kind, object, changed);
    else
        store_put(sim, kind, changed);
}

/* Orphan and foreground deletion of one owner. */
static void work_on_deleting(struct kubesim *sim, struct kind *kind, struct object *object)
{
    CLEANUP_FREE char *uid = xstrdup(meta_str(object_tree(object), "uid"));
    if (meta_has_finalizer(object_tree(object), "orphan")) {
        for_each_dependent(sim, uid, orphan_one);
        release_finalizer(sim, kind, object, "orphan");
    } else if (meta_has_finalizer(object_tree(object), "foregroundDeletion")) {
        if (!for_each_dependent(sim, uid, delete_dependent))
            release_finalizer(sim, kind, object, "foregroundDeletion");
    }
}

static void look_at_kind(struct kubesim *sim, struct kind *kind)
{
    for (size_t i = 0; i < kind->object_count;) {
        struct object *object = kind->objects[i];
        const cJSON *tree = object_tree(object);
        if (meta_is_deleting(tree) && meta_finalizer_count(tree) > 0)
            work_on_deleting(sim, kind, object);
        else if (!meta_is_deleting(tree) && is_abandoned(sim, tree))
            delete_quietly(sim, kind, object, NULL);
        i += i < kind->object_count && kind->objects[i] == object;
    }
}

void gc_tick(struct kubesim *sim)
{
    if (sim->gc.off || sim->gc.due_us > sim_now_us(sim))
        return;
    sim->gc.due_us = INT64_MAX;
    for (size_t k = 0; k < sim->kind_count; k++)
        look_at_kind(sim, sim->kinds[k]);
    claims_tick(sim);
    namespaces_tick(sim);
}
