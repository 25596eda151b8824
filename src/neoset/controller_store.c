/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/controller_store.h"

#include "kube/object.h"

static char *key_of(const char *namespace, const char *name)
{
    return xasprintf("%s/%s", namespace ? namespace : "", name);
}

static void tell_changed(struct store *store, struct set_group *group)
{
    store->changed(store->context, group);
}

/* Older than what we have, by the server's ordering. */
static bool is_older(const char *version, const char *than)
{
    return neoset_version_compare(version, than) < 0;
}

/* --- groups --------------------------------------------------------------------------------------------- */

struct set_group *store_find_key(const struct store *store, const char *key)
{
    struct set_group *group = NULL;
    HASH_FIND_STR(store->groups, key, group);
    return group;
}

struct set_group *store_find_group(const struct store *store, const char *namespace, const char *name)
{
    CLEANUP_FREE char *key = key_of(namespace, name);
    return store_find_key(store, key);
}

struct set_group *store_need_group(struct store *store, const char *namespace, const char *name)
{
    struct set_group *group = store_find_group(store, namespace, name);
    if (group)
        return group;
    group = xcalloc(1, sizeof(*group));
    group->key = key_of(namespace, name);
    group->namespace = xstrdup(namespace ? namespace : "");
    group->name = xstrdup(name);
    HASH_ADD_KEYPTR(hh, store->groups, group->key, strlen(group->key), group);
    return group;
}

static void group_free(struct store *store, struct set_group *group)
{
    store->dropped(store->context, group);
    for (size_t i = 0; i < group->pod_count; i++)
        pod_fact_free(group->pods[i].fact);
    free(group->pods);
    for (size_t i = 0; i < group->prefetch_count; i++)
        pod_fact_free(group->prefetches[i].fact);
    free(group->prefetches);
    neoset_fact_free(group->set);
    neoset_memory_free(group->memory);
    for (size_t i = 0; i < GONE_UIDS; i++)
        free(group->gone_uids[i]);
    free(group->key);
    free(group->namespace);
    free(group->name);
    free(group);
}

void store_drop_if_empty(struct store *store, struct set_group *group)
{
    if (group->set || group->pod_count > 0 || group->prefetch_count > 0 || group->turn)
        return;
    HASH_DEL(store->groups, group);
    group_free(store, group);
}

/* --- selectors ------------------------------------------------------------------------------------------ */

static struct selector_slot *find_selector(const struct store *store, const struct set_group *group)
{
    if (!group->set || !group->set->selector_text)
        return NULL;
    CLEANUP_FREE char *key = key_of(group->namespace, group->set->selector_text);
    struct selector_slot *slot = NULL;
    HASH_FIND_STR(store->selectors, key, slot);
    return slot;
}

const char *store_find_same_selector(const struct store *store, const struct set_group *group)
{
    const struct selector_slot *slot = find_selector(store, group);
    for (size_t i = 0; slot && i < slot->count; i++)
        if (slot->items[i] != group)
            return slot->items[i]->name;
    return NULL;
}

static void tell_selector(struct store *store, const struct selector_slot *slot)
{
    for (size_t i = 0; slot->count > 1 && i < slot->count; i++)
        tell_changed(store, slot->items[i]);
}

static void link_selector(struct store *store, struct set_group *group)
{
    if (!group->set->selector_text)
        return;
    struct selector_slot *slot = find_selector(store, group);
    if (!slot) {
        slot = xcalloc(1, sizeof(*slot));
        slot->key = key_of(group->namespace, group->set->selector_text);
        HASH_ADD_KEYPTR(hh, store->selectors, slot->key, strlen(slot->key), slot);
    }
    if (slot->count == slot->room) {
        slot->room = MAX(2 * slot->room, (size_t)1);
        slot->items = xreallocarray(slot->items, slot->room, sizeof(struct set_group *));
    }
    slot->items[slot->count++] = group;
    tell_selector(store, slot);
}

static void selector_free(struct selector_slot *slot)
{
    free(slot->items);
    free(slot->key);
    free(slot);
}

static void unlink_selector(struct store *store, const struct set_group *group)
{
    struct selector_slot *slot = find_selector(store, group);
    if (!slot)
        return;
    tell_selector(store, slot);
    for (size_t i = 0; i < slot->count; i++)
        if (slot->items[i] == group)
            slot->items[i] = slot->items[--slot->count];
    if (slot->count > 0)
        return;
    HASH_DEL(store->selectors, slot);
    selector_free(slot);
}

/* --- sets ----------------------------------------------------------------------------------------------- */

static void take_set(struct store *store, const cJSON *object, uint32_t mark, int64_t wall_us,
                     int64_t boot_us)
{
    struct neoset_fact *fact = neoset_fact_make(store->pool, object);
    if (!fact)
        return;
    struct set_group *group = store_need_group(store, fact->namespace, fact->name);
    if (mark || !group->set)
        group->set_mark = mark;
    if (group->set && is_older(fact->version, group->set->version)) {
        neoset_fact_free(fact);
        return;
    }
    bool is_new = !group->set || !str_equal(group->set->uid, fact->uid);
    store->set_count += group->set == NULL;
    bool same_selector = group->set && str_equal(group->set->selector_text, fact->selector_text);
    if (!same_selector)
        unlink_selector(store, group);
    neoset_fact_free(group->set);
    group->set = fact;
    if (!same_selector)
        link_selector(store, group);
    if (is_new) {
        neoset_memory_free(group->memory);
        group->memory = neoset_memory_make();
        for (size_t i = 0; i < group->pod_count; i++)
            neoset_observe_pod(group->memory, group->pods[i].fact, wall_us, boot_us);
        for (size_t i = 0; i < group->prefetch_count; i++)
            neoset_observe_prefetch(group->memory, group->prefetches[i].fact, boot_us);
    }
    tell_changed(store, group);
}

static void remove_set(struct store *store, struct set_group *group)
{
    if (!group->set)
        return;
    unlink_selector(store, group);
    neoset_fact_free(STEAL(group->set));
    store->set_count--;
    tell_changed(store, group);
    store_drop_if_empty(store, group);
}

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

static struct pod_slot *insert_pod(struct store *store, struct set_group *group, int ordinal)
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

static void remove_pod(struct store *store, struct set_group *group, struct pod_slot *slot)
{
    if (group->memory)
        neoset_forget_pod(group->memory, slot->fact->ordinal);
    pod_fact_free(slot->fact);
    size_t place = (size_t)(slot - group->pods);
    memmove(slot, slot + 1, (group->pod_count - place - 1) * sizeof(*slot));
    group->pod_count--;
    store->pod_count--;
    tell_changed(store, group);
    store_drop_if_empty(store, group);
}

static void note_gone(struct set_group *group, const char *uid)
{
    str_replace(&group->gone_uids[group->next_gone], uid);
    group->next_gone = (group->next_gone + 1) % GONE_UIDS;
}

static bool is_known_gone(const struct set_group *group, const char *uid)
{
    for (size_t i = 0; i < GONE_UIDS; i++)
        if (group->gone_uids[i] && str_equal(group->gone_uids[i], uid))
            return true;
    return false;
}

/* --- pods that fetch images --------------------------------------------------------------------------- */

/* The group that such a pod's name belongs to; NULL: it is not such a name, or there is no group. */
static struct set_group *group_of_prefetch(const struct store *store, const char *namespace, const char *name)
{
    size_t length = 0;
    if (!name || !neoset_split_prefetch_name(name, &length))
        return NULL;
    CLEANUP_FREE char *set_name = xstrndup(name, length);
    return store_find_group(store, namespace, set_name);
}

static struct pod_slot *prefetch_slot(const struct set_group *group, const char *name)
{
    for (size_t i = 0; i < group->prefetch_count; i++)
        if (str_equal(group->prefetches[i].fact->name, name))
            return &group->prefetches[i];
    return NULL;
}

static void remove_prefetch(struct store *store, struct set_group *group, struct pod_slot *slot)
{
    pod_fact_free(slot->fact);
    *slot = group->prefetches[--group->prefetch_count];
    tell_changed(store, group);
    store_drop_if_empty(store, group);
}

/* Whoever made it without our label, it is not one of ours. */
static bool is_labelled(const cJSON *object)
{
    return json_path_str(object, "metadata", "labels", NEOSET_PREFETCH_LABEL, NULL) != NULL;
}

static void take_prefetch(struct store *store, const cJSON *object, uint32_t mark, int64_t boot_us)
{
    const char *name = kube_object_name(object);
    size_t length = 0;
    ENSURE(neoset_split_prefetch_name(name, &length));
    CLEANUP_FREE char *set_name = xstrndup(name, length);
    if (!is_labelled(object)) {
        struct set_group *known = store_find_group(store, kube_object_namespace(object), set_name);
        struct pod_slot *lost = known ? prefetch_slot(known, name) : NULL;
        if (lost)
            remove_prefetch(store, known, lost);
        return;
    }
    struct set_group *group = store_need_group(store, kube_object_namespace(object), set_name);
    struct pod_slot *slot = prefetch_slot(group, name);
    if (slot && mark)
        slot->mark = mark;
    if ((slot && is_older(kube_object_version(object), slot->fact->version)) ||
        is_known_gone(group, kube_object_uid(object)))
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
    tell_changed(store, group);
}

/* --- pods of sets ------------------------------------------------------------------------------------- */

/* The group that a pod's name belongs to, and its ordinal; NULL: the name does not parse. */
static struct set_group *group_of_pod(struct store *store, const char *namespace, const char *name, bool make,
                                      int *ret_ordinal)
{
    size_t length = 0;
    if (!name || !neoset_split_pod_name(name, &length, ret_ordinal))
        return NULL;
    CLEANUP_FREE char *set_name = xstrndup(name, length);
    return make ? store_need_group(store, namespace, set_name) : store_find_group(store, namespace, set_name);
}

static void take_pod(struct store *store, const cJSON *object, uint32_t mark, int64_t wall_us,
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
    if (slot && mark)
        slot->mark = mark;
    if ((slot && is_older(kube_object_version(object), slot->fact->version)) ||
        is_known_gone(group, kube_object_uid(object)))
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
    tell_changed(store, group);
}

/* --- claims --------------------------------------------------------------------------------------------- */

static void tell_claim_changed(struct store *store, const char *namespace, const char *claim_name)
{
    size_t position = 0;
    char *set_name = NULL;
    while ((set_name = neoset_claim_next_set(claim_name, &position)) != NULL) {
        struct set_group *group = store_find_group(store, namespace, set_name);
        if (group && group->set)
            tell_changed(store, group);
        free(set_name);
    }
}

static struct claim_slot *find_claim(const struct store *store, const char *namespace, const char *name)
{
    CLEANUP_FREE char *key = key_of(namespace, name);
    struct claim_slot *slot = NULL;
    HASH_FIND_STR(store->claims, key, slot);
    return slot;
}

const struct claim_fact *store_find_claim(const struct store *store, const char *namespace, const char *name)
{
    const struct claim_slot *slot = find_claim(store, namespace, name);
    return slot ? slot->fact : NULL;
}

static void take_claim(struct store *store, const cJSON *object, uint32_t mark)
{
    struct claim_fact *fact = claim_fact_make(store->pool, object);
    if (!fact)
        return;
    struct claim_slot *slot = find_claim(store, fact->namespace, fact->name);
    if (slot && mark)
        slot->mark = mark;
    if (slot && is_older(fact->version, slot->fact->version)) {
        claim_fact_free(fact);
        return;
    }
    if (slot) {
        claim_fact_free(slot->fact);
    } else {
        slot = xcalloc(1, sizeof(*slot));
        slot->key = key_of(fact->namespace, fact->name);
        slot->mark = mark;
        HASH_ADD_KEYPTR(hh, store->claims, slot->key, strlen(slot->key), slot);
    }
    slot->fact = fact;
    tell_claim_changed(store, fact->namespace, fact->name);
}

static void claim_slot_free(struct claim_slot *slot)
{
    claim_fact_free(slot->fact);
    free(slot->key);
    free(slot);
}

static void remove_claim(struct store *store, struct claim_slot *slot)
{
    HASH_DEL(store->claims, slot); /* NOLINT(clang-analyzer-unix.Malloc): does not follow uthash */
    tell_claim_changed(store, slot->fact->namespace, slot->fact->name);
    claim_slot_free(slot);
}

/* --- revisions ------------------------------------------------------------------------------------------ */

static struct owner_slot *find_owner(const struct store *store, const char *uid)
{
    struct owner_slot *owner = NULL;
    HASH_FIND_STR(store->owners, uid, owner);
    return owner;
}

const struct owner_slot *store_find_revisions(const struct store *store, const char *uid)
{
    return find_owner(store, uid);
}

const struct owner_slot *store_find_orphans(const struct store *store, const char *namespace)
{
    CLEANUP_FREE char *key = xasprintf("/%s", namespace);
    return find_owner(store, key);
}

/* No uid begins with a slash. The caller's. */
static char *owner_key(const struct revision_fact *fact)
{
    return fact->owner_uid ? xstrdup(fact->owner_uid)
                           : xasprintf("/%s", fact->namespace ? fact->namespace : "");
}

static void link_owner(struct store *store, struct revision_slot *slot)
{
    CLEANUP_FREE char *key = owner_key(slot->fact);
    struct owner_slot *owner = find_owner(store, key);
    if (!owner) {
        owner = xcalloc(1, sizeof(*owner));
        owner->uid = STEAL(key);
        HASH_ADD_KEYPTR(hh, store->owners, owner->uid, strlen(owner->uid), owner);
    }
    if (owner->count == owner->room) {
        owner->room = MAX(2 * owner->room, (size_t)4);
        owner->items = xreallocarray(owner->items, owner->room, sizeof(struct revision_slot *));
    }
    owner->items[owner->count++] = slot;
}

static void owner_free(struct owner_slot *owner)
{
    free(owner->items);
    free(owner->uid);
    free(owner);
}

static void unlink_owner(struct store *store, const struct revision_slot *slot)
{
    CLEANUP_FREE char *key = owner_key(slot->fact);
    struct owner_slot *owner = find_owner(store, key);
    ENSURE(owner != NULL);
    for (size_t i = 0; i < owner->count; i++)
        if (owner->items[i] == slot)
            owner->items[i] = owner->items[--owner->count];
    if (owner->count > 0)
        return;
    HASH_DEL(store->owners, owner);
    owner_free(owner);
}

static struct revision_slot *find_revision(const struct store *store, const char *namespace, const char *name)
{
    CLEANUP_FREE char *key = key_of(namespace, name);
    struct revision_slot *slot = NULL;
    HASH_FIND_STR(store->revisions, key, slot);
    return slot;
}

static void tell_revision_changed(struct store *store, const struct revision_slot *slot)
{
    struct set_group *group =
        slot->set_name ? store_find_group(store, slot->fact->namespace, slot->set_name) : NULL;
    if (group && group->set)
        tell_changed(store, group);
}

/* "db-5f6d8c" → "db": whom an orphan may have belonged to; the caller's, or NULL. */
static char *set_of_revision(const char *name)
{
    const char *dash = strrchr(name, '-');
    return dash && dash > name ? xstrndup(name, (size_t)(dash - name)) : NULL;
}

static void revision_slot_free(struct revision_slot *slot)
{
    revision_fact_free(slot->fact);
    free(slot->set_name);
    free(slot->key);
    free(slot);
}

static void remove_revision(struct store *store, struct revision_slot *slot)
{
    HASH_DEL(store->revisions, slot);
    unlink_owner(store, slot);
    tell_revision_changed(store, slot);
    revision_slot_free(slot);
}

/* Only what a NeoSet controls, and orphans: StatefulSets and DaemonSets keep thousands of others. */
static void take_revision(struct store *store, const cJSON *object, uint32_t mark)
{
    const cJSON *controller = kube_object_controller(object);
    bool is_ours = !controller || (str_equal(json_str(controller, "kind"), "NeoSet") &&
                                   json_str(controller, "uid") && json_str(controller, "name"));
    const char *name = kube_object_name(object);
    if (!name)
        return;
    struct revision_slot *slot = find_revision(store, kube_object_namespace(object), name);
    if (slot && mark)
        slot->mark = mark;
    if (slot && is_older(kube_object_version(object), slot->fact->version))
        return;
    if (slot)
        remove_revision(store, slot);
    if (!is_ours)
        return;
    struct revision_fact *fact = revision_fact_make(store->pool, object);
    ENSURE(fact && (fact->owner_uid || !controller));
    slot = xcalloc(1, sizeof(*slot));
    slot->key = key_of(fact->namespace, fact->name);
    slot->fact = fact;
    slot->set_name = controller ? xstrdup(json_str(controller, "name")) : set_of_revision(name);
    slot->mark = mark;
    HASH_ADD_KEYPTR(hh, store->revisions, slot->key, strlen(slot->key), slot);
    link_owner(store, slot);
    tell_revision_changed(store, slot);
}

/* --- all kinds ------------------------------------------------------------------------------------------ */

void store_take(struct store *store, enum kube_resource resource, const cJSON *object, uint32_t mark,
                int64_t wall_us, int64_t boot_us)
{
    if (resource == KUBE_NEOSET)
        take_set(store, object, mark, wall_us, boot_us);
    else if (resource == KUBE_POD)
        take_pod(store, object, mark, wall_us, boot_us);
    else if (resource == KUBE_CLAIM)
        take_claim(store, object, mark);
    else if (resource == KUBE_REVISION)
        take_revision(store, object, mark);
}

static bool is_known_pod(const struct store *store, const char *namespace, const char *name)
{
    size_t length = 0;
    int ordinal = -1;
    const struct set_group *group = group_of_prefetch(store, namespace, name);
    if (group)
        return prefetch_slot(group, name) != NULL;
    if (!neoset_split_pod_name(name, &length, &ordinal))
        return false;
    CLEANUP_FREE char *set_name = xstrndup(name, length);
    group = store_find_group(store, namespace, set_name);
    return group && pod_slot(group, ordinal);
}

static bool is_known(const struct store *store, enum kube_resource resource, const cJSON *object)
{
    const char *namespace = kube_object_namespace(object), *name = kube_object_name(object);
    const struct set_group *group = NULL;
    switch (resource) {
    case KUBE_NEOSET:
        group = store_find_group(store, namespace, name);
        return group && group->set;
    case KUBE_CLAIM:
        return find_claim(store, namespace, name) != NULL;
    case KUBE_REVISION:
        return find_revision(store, namespace, name) != NULL;
    case KUBE_POD:
        return is_known_pod(store, namespace, name);
    default:
        return false;
    }
}

void store_take_answer(struct store *store, enum kube_resource resource, const cJSON *object,
                       const char *watch_version, int64_t wall_us, int64_t boot_us)
{
    const char *version = kube_object_version(object);
    if (!kube_object_name(object))
        return;
    bool is_passed =
        version && watch_version && (str_equal(version, watch_version) || is_older(version, watch_version));
    if (is_passed && !is_known(store, resource, object))
        return;
    store_take(store, resource, object, 0, wall_us, boot_us);
}

/* Also when it is not there: an answer or a line that is older may still come. */
static void remember_gone(struct set_group *group, const char *uid)
{
    if (!uid || is_known_gone(group, uid))
        return;
    note_gone(group, uid);
}

/* uid NULL: whatever has the name. */
static void drop_pod(struct store *store, const char *namespace, const char *name, const char *uid)
{
    int ordinal = -1;
    struct set_group *prefetching = group_of_prefetch(store, namespace, name);
    struct set_group *group =
        prefetching ? prefetching : group_of_pod(store, namespace, name, false, &ordinal);
    if (!group)
        return;
    struct pod_slot *slot = prefetching ? prefetch_slot(group, name) : pod_slot(group, ordinal);
    remember_gone(group, uid ? uid : slot ? slot->fact->uid : NULL);
    if (!slot || (uid && !str_equal(slot->fact->uid, uid)))
        return;
    if (prefetching)
        remove_prefetch(store, group, slot);
    else
        remove_pod(store, group, slot);
}

void store_drop(struct store *store, enum kube_resource resource, const cJSON *last_state)
{
    const char *namespace = kube_object_namespace(last_state);
    const char *name = kube_object_name(last_state);
    const char *uid = kube_object_uid(last_state);
    if (!name)
        return;
    if (resource == KUBE_NEOSET) {
        struct set_group *group = store_find_group(store, namespace, name);
        if (group && group->set && str_equal(group->set->uid, uid))
            remove_set(store, group);
    } else if (resource == KUBE_POD) {
        drop_pod(store, namespace, name, uid);
    } else if (resource == KUBE_CLAIM) {
        struct claim_slot *slot = find_claim(store, namespace, name);
        if (slot && str_equal(slot->fact->uid, uid))
            remove_claim(store, slot);
    } else if (resource == KUBE_REVISION) {
        struct revision_slot *slot = find_revision(store, namespace, name);
        if (slot && str_equal(slot->fact->uid, uid))
            remove_revision(store, slot);
    }
}

void store_drop_name(struct store *store, enum kube_resource resource, const char *namespace,
                     const char *name)
{
    if (resource == KUBE_POD) {
        drop_pod(store, namespace, name, NULL);
    } else if (resource == KUBE_NEOSET) {
        struct set_group *group = store_find_group(store, namespace, name);
        if (group)
            remove_set(store, group);
    } else if (resource == KUBE_CLAIM) {
        struct claim_slot *slot = find_claim(store, namespace, name);
        if (slot)
            remove_claim(store, slot);
    } else if (resource == KUBE_REVISION) {
        struct revision_slot *slot = find_revision(store, namespace, name);
        if (slot)
            remove_revision(store, slot);
    }
}

static bool is_swept(uint32_t seen, uint32_t mark, const char *version, const char *list_version)
{
    return seen != mark && !(list_version && is_older(list_version, version));
}

static void sweep_sets(struct store *store, uint32_t mark, const char *list_version)
{
    struct set_group *group = NULL, *next = NULL;
    HASH_ITER (hh, store->groups, group, next) {
        if (group->set && is_swept(group->set_mark, mark, group->set->version, list_version))
            remove_set(store, group);
    }
}

static void sweep_pods(struct store *store, uint32_t mark, const char *list_version)
{
    struct set_group *group = NULL, *next = NULL;
    HASH_ITER (hh, store->groups, group, next) {
        /* From the end: the group goes with its last pod when there is no set. */
        size_t pods = group->pod_count;
        for (size_t i = group->prefetch_count; i > 0; i--) {
            bool is_last = pods == 0 && group->prefetch_count == 1;
            if (is_swept(group->prefetches[i - 1].mark, mark, group->prefetches[i - 1].fact->version,
                         list_version))
                remove_prefetch(store, group, &group->prefetches[i - 1]);
            if (is_last)
                break;
        }
        for (size_t i = pods; i > 0; i--)
            if (is_swept(group->pods[i - 1].mark, mark, group->pods[i - 1].fact->version, list_version))
                remove_pod(store, group, &group->pods[i - 1]);
    }
}

void store_sweep(struct store *store, enum kube_resource resource, uint32_t mark, const char *list_version)
{
    if (resource == KUBE_NEOSET) {
        sweep_sets(store, mark, list_version);
    } else if (resource == KUBE_POD) {
        sweep_pods(store, mark, list_version);
    } else if (resource == KUBE_CLAIM) {
        struct claim_slot *slot = NULL, *next = NULL;
        HASH_ITER (hh, store->claims, slot, next) {
            if (is_swept(slot->mark, mark, slot->fact->version, list_version))
                remove_claim(store, slot);
        }
    } else if (resource == KUBE_REVISION) {
        struct revision_slot *slot = NULL, *next = NULL;
        HASH_ITER (hh, store->revisions, slot, next) {
            if (is_swept(slot->mark, mark, slot->fact->version, list_version))
                remove_revision(store, slot);
        }
    }
}

struct store *store_make(void (*changed)(void *context, struct set_group *group),
                         void (*dropped)(void *context, struct set_group *group), void *context)
{
    struct store *store = xcalloc(1, sizeof(*store));
    store->pool = intern_make();
    store->changed = changed;
    store->dropped = dropped;
    store->context = context;
    return store;
}

static void free_selectors(struct store *store)
{
    struct selector_slot *slot = store->selectors, *next = NULL;
    HASH_CLEAR(hh, store->selectors);
    for (; slot; slot = next) {
        next = slot->hh.next;
        selector_free(slot);
    }
}

static void free_groups(struct store *store)
{
    struct set_group *group = store->groups, *next = NULL;
    HASH_CLEAR(hh, store->groups);
    for (; group; group = next) {
        next = group->hh.next;
        group_free(store, group);
    }
}

static void free_claims(struct store *store)
{
    struct claim_slot *slot = store->claims, *next = NULL;
    HASH_CLEAR(hh, store->claims);
    for (; slot; slot = next) {
        next = slot->hh.next;
        claim_slot_free(slot);
    }
}

static void free_revisions(struct store *store)
{
    struct owner_slot *owner = store->owners, *next_owner = NULL;
    HASH_CLEAR(hh, store->owners);
    for (; owner; owner = next_owner) {
        next_owner = owner->hh.next;
        owner_free(owner);
    }
    struct revision_slot *slot = store->revisions, *next = NULL;
    HASH_CLEAR(hh, store->revisions);
    for (; slot; slot = next) {
        next = slot->hh.next;
        revision_slot_free(slot);
    }
}

void store_free(struct store *store)
{
    if (!store)
        return;
    free_selectors(store);
    free_groups(store);
    free_claims(store);
    free_revisions(store);
    intern_free(store->pool);
    free(store);
}
