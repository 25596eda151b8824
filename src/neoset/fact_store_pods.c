/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/fact_store_parts.h"

#include "kube/object.h"

/* --- pods ----------------------------------------------------------------------------------------------- */

/* The first place whose ordinal is not below. */
static size_t pod_place(const struct set_group *group, int ordinal)
{
    size_t low = 0, high = group->pod_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (group->pods[middle].fact->ordinal < ordinal)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct pod_slot *pod_slot(const struct set_group *group, int ordinal)
{
    size_t place = pod_place(group, ordinal);
    return place < group->pod_count && group->pods[place].fact->ordinal == ordinal ? &group->pods[place]
                                                                                   : NULL;
}

static struct pod_slot *insert_pod(struct fact_store *store, struct set_group *group, int ordinal)
{
    size_t place = pod_place(group, ordinal);
    if (group->pod_count == group->pod_room) {
        group->pod_room = MAX(group->pod_room + group->pod_room / 2, (size_t)4);
        group->pods = xreallocarray(group->pods, group->pod_room, sizeof(*group->pods));
    }
    memmove(group->pods + place + 1, group->pods + place, (group->pod_count - place) * sizeof(*group->pods));
    group->pod_count++;
    store->pod_count++;
    group->pods[place] = (struct pod_slot){0};
    return &group->pods[place];
}

static void remove_pod(struct fact_store *store, struct set_group *group, struct pod_slot *slot)
{
    if (group->memory)
        neoset_forget_pod(group->memory, slot->fact->ordinal);
    pod_fact_free(slot->fact);
    size_t place = (size_t)(slot - group->pods);
    memmove(slot, slot + 1, (group->pod_count - place - 1) * sizeof(*slot));
    group->pod_count--;
    store->pod_count--;
    fact_store_tell_changed(store, group);
    fact_store_drop_if_empty(store, group);
}

static bool is_known_gone(const struct set_group *group, const char *uid)
{
    for (size_t i = 0; i < GONE_UIDS; i++)
        if (group->gone_uids[i] && str_equal(group->gone_uids[i], uid))
            return true;
    return false;
}

static void note_gone(struct set_group *group, const char *uid)
{
    if (!uid || is_known_gone(group, uid))
        return;
    str_replace(&group->gone_uids[group->next_gone], uid);
    group->next_gone = (group->next_gone + 1) % GONE_UIDS;
}

/* Whether object is to be taken: slot (NULL: none yet) does not have this state or a newer one, and it was
 * not seen to be gone. Either way the slot was seen by the list mark (0: by none). */
static bool brings_news(const struct set_group *group, struct pod_slot *slot, const cJSON *object,
                        uint32_t mark)
{
    if (slot && mark)
        slot->mark = mark;
    bool is_known = slot && fact_store_is_known(object, slot->fact->uid, slot->fact->version);
    return !is_known && !is_known_gone(group, kube_object_uid(object));
}

/* --- pods that fetch images --------------------------------------------------------------------------- */

/* The group that such a pod's name belongs to; NULL: it is not such a name, or there is no group. */
static struct set_group *group_of_prefetch(const struct fact_store *store, const char *namespace,
                                           const char *name)
{
    size_t length = 0;
    if (!name || !neoset_split_prefetch_name(name, &length))
        return NULL;
    CLEANUP_FREE char *set_name = xstrndup(name, length);
    return fact_store_find_group(store, namespace, set_name);
}

static struct pod_slot *prefetch_slot(const struct set_group *group, const char *name)
{
    for (size_t i = 0; i < group->prefetch_count; i++)
        if (str_equal(group->prefetches[i].fact->name, name))
            return &group->prefetches[i];
    return NULL;
}

static void remove_prefetch(struct fact_store *store, struct set_group *group, struct pod_slot *slot)
{
    pod_fact_free(slot->fact);
    *slot = group->prefetches[--group->prefetch_count];
    fact_store_tell_changed(store, group);
    fact_store_drop_if_empty(store, group);
}

/* Whoever made it without our label, it is not one of ours. */
static bool is_labelled(const cJSON *object)
{
    return json_path_str(object, "metadata", "labels", NEOSET_PREFETCH_LABEL, NULL) != NULL;
}

static void take_prefetch(struct fact_store *store, const cJSON *object, uint32_t mark, int64_t boot_us)
{
    const char *name = kube_object_name(object);
    size_t length = 0;
    ENSURE(neoset_split_prefetch_name(name, &length));
    CLEANUP_FREE char *set_name = xstrndup(name, length);
    if (!is_labelled(object)) {
        struct set_group *known = fact_store_find_group(store, kube_object_namespace(object), set_name);
        struct pod_slot *lost = known ? prefetch_slot(known, name) : NULL;
        if (lost)
            remove_prefetch(store, known, lost);
        return;
    }
    struct set_group *group = fact_store_need_group(store, kube_object_namespace(object), set_name);
    struct pod_slot *slot = prefetch_slot(group, name);
    if (!brings_news(group, slot, object, mark))
        return;
    struct pod_fact *fact = pod_fact_make(store->pool, object);
    ENSURE(fact != NULL);
    if (slot) {
        pod_fact_free(slot->fact);
    } else {
        group->prefetches =
            xreallocarray(group->prefetches, group->prefetch_count + 1, sizeof(*group->prefetches));
        slot = &group->prefetches[group->prefetch_count++];
        slot->mark = mark;
    }
    slot->fact = fact;
    if (group->memory)
        neoset_observe_prefetch(group->memory, fact, boot_us);
    fact_store_tell_changed(store, group);
}

/* --- pods of sets ------------------------------------------------------------------------------------- */

/* The group that a pod's name belongs to, and its ordinal; NULL: the name does not parse. */
static struct set_group *group_of_pod(struct fact_store *store, const char *namespace, const char *name,
                                      bool make, int *ret_ordinal)
{
    size_t length = 0;
    if (!name || !neoset_split_pod_name(name, &length, ret_ordinal))
        return NULL;
    CLEANUP_FREE char *set_name = xstrndup(name, length);
    return make ? fact_store_need_group(store, namespace, set_name)
                : fact_store_find_group(store, namespace, set_name);
}

void fact_store_take_pod(struct fact_store *store, const cJSON *object, uint32_t mark, int64_t wall_us,
                         int64_t boot_us)
{
    int ordinal = -1;
    const char *name = kube_object_name(object);
    size_t length = 0;
    if (name && neoset_split_prefetch_name(name, &length)) {
        take_prefetch(store, object, mark, boot_us);
        return;
    }
    if (!name || !neoset_split_pod_name(name, &length, &ordinal))
        return;
    struct set_group *group = group_of_pod(store, kube_object_namespace(object), name, true, &ordinal);
    struct pod_slot *slot = pod_slot(group, ordinal);
    if (!brings_news(group, slot, object, mark))
        return;
    struct pod_fact *fact = pod_fact_make(store->pool, object);
    ENSURE(fact && fact->ordinal == ordinal);
    if (slot) {
        if (group->memory && !str_equal(slot->fact->uid, fact->uid))
            neoset_forget_pod(group->memory, fact->ordinal);
        pod_fact_free(slot->fact);
    } else {
        slot = insert_pod(store, group, ordinal);
        slot->mark = mark;
    }
    slot->fact = fact;
    if (group->memory)
        neoset_observe_pod(group->memory, fact, wall_us, boot_us);
    fact_store_tell_changed(store, group);
}

/* Of a set's pods only; NULL: none has this name. */
static const struct pod_slot *find_pod(const struct fact_store *store, const char *namespace,
                                       const char *name)
{
    size_t length = 0;
    int ordinal = -1;
    if (!name || !neoset_split_pod_name(name, &length, &ordinal))
        return NULL;
    CLEANUP_FREE char *set_name = xstrndup(name, length);
    const struct set_group *group = fact_store_find_group(store, namespace, set_name);
    return group ? pod_slot(group, ordinal) : NULL;
}

/* Pods that fetch images are few. */
bool fact_store_knows_pod_state(const struct fact_store *store, const cJSON *object)
{
    const struct pod_slot *slot = find_pod(store, kube_object_namespace(object), kube_object_name(object));
    return slot && fact_store_is_known(object, slot->fact->uid, slot->fact->version);
}

const char *fact_store_pod_version(const struct fact_store *store, const char *namespace, const char *name)
{
    const struct set_group *group = group_of_prefetch(store, namespace, name);
    const struct pod_slot *slot = group ? prefetch_slot(group, name) : find_pod(store, namespace, name);
    return slot ? slot->fact->version : NULL;
}

/* uid NULL: whatever has the name. */
void fact_store_drop_pod(struct fact_store *store, const char *namespace, const char *name, const char *uid)
{
    int ordinal = -1;
    struct set_group *prefetching = group_of_prefetch(store, namespace, name);
    struct set_group *group =
        prefetching ? prefetching : group_of_pod(store, namespace, name, false, &ordinal);
    if (!group)
        return;
    struct pod_slot *slot = prefetching ? prefetch_slot(group, name) : pod_slot(group, ordinal);
    note_gone(group, uid ? uid : slot ? slot->fact->uid : NULL);
    if (!slot || (uid && !str_equal(slot->fact->uid, uid)))
        return;
    if (prefetching)
        remove_prefetch(store, group, slot);
    else
        remove_pod(store, group, slot);
}

void fact_store_sweep_pods(struct fact_store *store, uint32_t mark, const char *list_version)
{
    struct set_group *group = NULL, *next = NULL;
    HASH_ITER (hh, store->groups, group, next) {
        /* From the end: the group goes with its last pod when there is no set. */
        size_t pods = group->pod_count;
        for (size_t i = group->prefetch_count; i > 0; i--) {
            bool is_last = pods == 0 && group->prefetch_count == 1;
            if (fact_store_is_swept(group->prefetches[i - 1].mark, mark,
                                    group->prefetches[i - 1].fact->version, list_version))
                remove_prefetch(store, group, &group->prefetches[i - 1]);
            if (is_last)
                break;
        }
        for (size_t i = pods; i > 0; i--)
            if (fact_store_is_swept(group->pods[i - 1].mark, mark, group->pods[i - 1].fact->version,
                                    list_version))
                remove_pod(store, group, &group->pods[i - 1]);
    }
}
