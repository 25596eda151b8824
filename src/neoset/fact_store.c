/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/fact_store_parts.h"

#include "kube/object.h"

char *fact_store_group_key(const char *namespace, const char *name)
{
    return xasprintf("%s/%s", namespace ? namespace : "", name);
}

void fact_store_tell_changed(struct fact_store *store, struct set_group *group)
{
    store->changed(store->context, group);
}

/* The mark of no list: nothing was seen in it. */
#define NO_LIST UINT32_MAX

/* Older than what we have, by the server's ordering. */
bool fact_store_is_older(const char *version, const char *than)
{
    return kube_version_compare(version, than) < 0;
}

bool fact_store_is_known(const cJSON *object, const char *known_uid, const char *known_version)
{
    const char *version = kube_object_version(object);
    bool is_same =
        version && str_equal(version, known_version) && str_equal(kube_object_uid(object), known_uid);
    return is_same || fact_store_is_older(version, known_version);
}

/* --- groups --------------------------------------------------------------------------------------------- */

struct set_group *fact_store_find_key(const struct fact_store *store, const char *key)
{
    struct set_group *group = NULL;
    HASH_FIND_STR(store->groups, key, group);
    return group;
}

struct set_group *fact_store_find_group(const struct fact_store *store, const char *namespace,
                                        const char *name)
{
    CLEANUP_FREE char *key = fact_store_group_key(namespace, name);
    return fact_store_find_key(store, key);
}

struct set_group *fact_store_need_group(struct fact_store *store, const char *namespace, const char *name)
{
    struct set_group *group = fact_store_find_group(store, namespace, name);
    if (group)
        return group;
    group = xcalloc(1, sizeof(*group));
    group->key = fact_store_group_key(namespace, name);
    group->namespace = xstrdup(namespace ? namespace : "");
    group->name = xstrdup(name);
    HASH_ADD_KEYPTR(hh, store->groups, group->key, strlen(group->key), group);
    return group;
}

static void group_free(struct fact_store *store, struct set_group *group)
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
    for (size_t i = 0; i < LOST_REVISIONS; i++)
        revision_fact_free(group->lost[i]);
    free(group->key);
    free(group->namespace);
    free(group->name);
    free(group);
}

void fact_store_drop_if_empty(struct fact_store *store, struct set_group *group)
{
    if (group->set || group->pod_count > 0 || group->prefetch_count > 0 || group->turn)
        return;
    HASH_DEL(store->groups, group);
    group_free(store, group);
}

/* --- selectors ------------------------------------------------------------------------------------------ */

static struct selector_slot *find_selector(const struct fact_store *store, const struct set_group *group)
{
    if (!group->set || !group->set->selector_text)
        return NULL;
    CLEANUP_FREE char *key = fact_store_group_key(group->namespace, group->set->selector_text);
    struct selector_slot *slot = NULL;
    HASH_FIND_STR(store->selectors, key, slot);
    return slot;
}

const char *fact_store_find_same_selector(const struct fact_store *store, const struct set_group *group)
{
    const struct selector_slot *slot = find_selector(store, group);
    for (size_t i = 0; slot && i < slot->count; i++)
        if (slot->items[i] != group)
            return slot->items[i]->name;
    return NULL;
}

static void tell_selector(struct fact_store *store, const struct selector_slot *slot)
{
    for (size_t i = 0; slot->count > 1 && i < slot->count; i++)
        fact_store_tell_changed(store, slot->items[i]);
}

static void link_selector(struct fact_store *store, struct set_group *group)
{
    if (!group->set->selector_text)
        return;
    struct selector_slot *slot = find_selector(store, group);
    if (!slot) {
        slot = xcalloc(1, sizeof(*slot));
        slot->key = fact_store_group_key(group->namespace, group->set->selector_text);
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

static void unlink_selector(struct fact_store *store, const struct set_group *group)
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

/* Another set than the one before, of the name or of the spec. */
static void replace_set(struct fact_store *store, struct set_group *group, struct neoset_fact *fact,
                        int64_t wall_us, int64_t boot_us)
{
    bool is_new = !group->set || !str_equal(group->set->uid, fact->uid);
    store->set_count += group->set == NULL;
    bool same_selector = group->set && str_equal(group->set->selector_text, fact->selector_text);
    if (!same_selector)
        unlink_selector(store, group);
    neoset_fact_free(group->set);
    group->set = fact;
    if (!same_selector)
        link_selector(store, group);
    if (!is_new)
        return;
    neoset_memory_free(group->memory);
    group->memory = neoset_memory_make();
    for (size_t i = 0; i < group->pod_count; i++)
        neoset_observe_pod(group->memory, group->pods[i].fact, wall_us, boot_us);
    for (size_t i = 0; i < group->prefetch_count; i++)
        neoset_observe_prefetch(group->memory, group->prefetches[i].fact, boot_us);
}

static void take_set(struct fact_store *store, const cJSON *object, uint32_t mark, int64_t wall_us,
                     int64_t boot_us)
{
    const char *name = kube_object_name(object), *namespace = kube_object_namespace(object);
    if (!name || !namespace)
        return;
    struct set_group *group = fact_store_need_group(store, namespace, name);
    if (mark || !group->set)
        group->set_mark = mark;
    if (group->set && fact_store_is_known(object, group->set->uid, group->set->version))
        return;
    if (!group->set || !neoset_fact_renew(group->set, object))
        replace_set(store, group, neoset_fact_make(store->pool, object), wall_us, boot_us);
    fact_store_tell_changed(store, group);
}

static void remove_set(struct fact_store *store, struct set_group *group)
{
    if (!group->set)
        return;
    unlink_selector(store, group);
    neoset_fact_free(STEAL(group->set));
    store->set_count--;
    fact_store_tell_changed(store, group);
    fact_store_drop_if_empty(store, group);
}

/* --- all kinds ------------------------------------------------------------------------------------------ */

bool fact_store_may_know(const struct fact_store *store, const char *version)
{
    uint64_t hash = text_hash64(version);
    return store->answered[hash % ANSWERED_PLACES] == hash;
}

static void remember_answer(struct fact_store *store, const char *version)
{
    uint64_t hash = text_hash64(version);
    store->answered[hash % ANSWERED_PLACES] = hash;
}

bool fact_store_knows(const struct fact_store *store, enum kube_resource resource, const cJSON *object)
{
    if (resource == KUBE_POD)
        return fact_store_knows_pod_state(store, object);
    const char *namespace = kube_object_namespace(object), *name = kube_object_name(object);
    const struct set_group *group =
        resource == KUBE_NEOSET && namespace && name ? fact_store_find_group(store, namespace, name) : NULL;
    return group && group->set && fact_store_is_known(object, group->set->uid, group->set->version);
}

void fact_store_take(struct fact_store *store, enum kube_resource resource, const cJSON *object,
                     uint32_t mark, int64_t wall_us, int64_t boot_us)
{
    if (resource == KUBE_NEOSET)
        take_set(store, object, mark, wall_us, boot_us);
    else if (resource == KUBE_POD)
        fact_store_take_pod(store, object, mark, wall_us, boot_us);
    else if (resource == KUBE_CLAIM)
        fact_store_take_claim(store, object, mark);
    else if (resource == KUBE_REVISION)
        fact_store_take_revision(store, object, mark);
}

const char *fact_store_version(const struct fact_store *store, enum kube_resource resource,
                               const char *namespace, const char *name)
{
    const struct set_group *group = NULL;
    const struct claim_slot *claim = NULL;
    const struct revision_slot *revision = NULL;
    switch (resource) {
    case KUBE_NEOSET:
        group = fact_store_find_group(store, namespace, name);
        return group && group->set ? group->set->version : NULL;
    case KUBE_CLAIM:
        claim = fact_store_find_claim_slot(store, namespace, name);
        return claim ? claim->fact->version : NULL;
    case KUBE_REVISION:
        revision = fact_store_find_revision_slot(store, namespace, name);
        return revision ? revision->fact->version : NULL;
    case KUBE_POD:
        return fact_store_pod_version(store, namespace, name);
    default:
        return NULL;
    }
}

void fact_store_take_answer(struct fact_store *store, enum kube_resource resource, const cJSON *object,
                            const char *watch_version, int64_t wall_us, int64_t boot_us)
{
    const char *version = kube_object_version(object);
    if (!kube_object_name(object))
        return;
    bool is_passed = version && watch_version &&
                     (str_equal(version, watch_version) || fact_store_is_older(version, watch_version));
    if (is_passed &&
        !fact_store_version(store, resource, kube_object_namespace(object), kube_object_name(object)))
        return;
    if (version)
        remember_answer(store, version);
    fact_store_take(store, resource, object, 0, wall_us, boot_us);
}

void fact_store_drop(struct fact_store *store, enum kube_resource resource, const cJSON *last_state)
{
    const char *namespace = kube_object_namespace(last_state);
    const char *name = kube_object_name(last_state);
    const char *uid = kube_object_uid(last_state);
    if (!name)
        return;
    if (resource == KUBE_NEOSET) {
        struct set_group *group = fact_store_find_group(store, namespace, name);
        if (group && group->set && str_equal(group->set->uid, uid))
            remove_set(store, group);
    } else if (resource == KUBE_POD) {
        fact_store_drop_pod(store, namespace, name, uid);
    } else if (resource == KUBE_CLAIM) {
        struct claim_slot *slot = fact_store_find_claim_slot(store, namespace, name);
        if (slot && str_equal(slot->fact->uid, uid))
            fact_store_remove_claim(store, slot);
    } else if (resource == KUBE_REVISION) {
        struct revision_slot *slot = fact_store_find_revision_slot(store, namespace, name);
        if (slot && str_equal(slot->fact->uid, uid))
            fact_store_lose_revision(store, slot);
    }
}

void fact_store_drop_name(struct fact_store *store, enum kube_resource resource, const char *namespace,
                          const char *name, const char *version)
{
    if (!str_equal(fact_store_version(store, resource, namespace, name), version))
        return;
    if (resource == KUBE_POD) {
        fact_store_drop_pod(store, namespace, name, NULL);
    } else if (resource == KUBE_NEOSET) {
        struct set_group *group = fact_store_find_group(store, namespace, name);
        if (group)
            remove_set(store, group);
    } else if (resource == KUBE_CLAIM) {
        struct claim_slot *slot = fact_store_find_claim_slot(store, namespace, name);
        if (slot)
            fact_store_remove_claim(store, slot);
    } else if (resource == KUBE_REVISION) {
        struct revision_slot *slot = fact_store_find_revision_slot(store, namespace, name);
        if (slot)
            fact_store_lose_revision(store, slot);
    }
}

bool fact_store_is_swept(uint32_t seen, uint32_t mark, const char *version, const char *list_version)
{
    return seen != mark && !(list_version && fact_store_is_older(list_version, version));
}

static void sweep_sets(struct fact_store *store, uint32_t mark, const char *list_version)
{
    struct set_group *group = NULL, *next = NULL;
    HASH_ITER (hh, store->groups, group, next) {
        if (group->set && fact_store_is_swept(group->set_mark, mark, group->set->version, list_version))
            remove_set(store, group);
    }
}

void fact_store_sweep(struct fact_store *store, enum kube_resource resource, uint32_t mark,
                      const char *list_version)
{
    if (resource == KUBE_NEOSET) {
        sweep_sets(store, mark, list_version);
    } else if (resource == KUBE_POD) {
        fact_store_sweep_pods(store, mark, list_version);
    } else if (resource == KUBE_CLAIM) {
        struct claim_slot *slot = NULL, *next = NULL;
        HASH_ITER (hh, store->claims, slot, next) {
            if (fact_store_is_swept(slot->mark, mark, slot->fact->version, list_version))
                fact_store_remove_claim(store, slot);
        }
    } else if (resource == KUBE_REVISION) {
        struct revision_slot *slot = NULL, *next = NULL;
        HASH_ITER (hh, store->revisions, slot, next) {
            if (fact_store_is_swept(slot->mark, mark, slot->fact->version, list_version))
                fact_store_lose_revision(store, slot);
        }
    }
}

/* Of groups that are there still. */
static void forget_what_is_gone(struct set_group *group, enum kube_resource resource)
{
    for (size_t i = 0; resource == KUBE_POD && i < GONE_UIDS; i++)
        str_replace(&group->gone_uids[i], NULL);
    for (size_t i = 0; resource == KUBE_REVISION && i < LOST_REVISIONS; i++) {
        revision_fact_free(group->lost[i]);
        group->lost[i] = NULL;
    }
}

void fact_store_forget(struct fact_store *store, enum kube_resource resource)
{
    fact_store_sweep(store, resource, NO_LIST, NULL);
    for (struct set_group *group = store->groups; group; group = group->hh.next)
        forget_what_is_gone(group, resource);
}

struct fact_store *fact_store_make(void (*changed)(void *context, struct set_group *group),
                                   void (*dropped)(void *context, struct set_group *group), void *context)
{
    struct fact_store *store = xcalloc(1, sizeof(*store));
    store->pool = intern_make();
    store->changed = changed;
    store->dropped = dropped;
    store->context = context;
    return store;
}

static void free_selectors(struct fact_store *store)
{
    struct selector_slot *slot = store->selectors, *next = NULL;
    HASH_CLEAR(hh, store->selectors);
    for (; slot; slot = next) {
        next = slot->hh.next;
        selector_free(slot);
    }
}

static void free_groups(struct fact_store *store)
{
    struct set_group *group = store->groups, *next = NULL;
    HASH_CLEAR(hh, store->groups);
    for (; group; group = next) {
        next = group->hh.next;
        group_free(store, group);
    }
}

void fact_store_free(struct fact_store *store)
{
    if (!store)
        return;
    free_selectors(store);
    free_groups(store);
    fact_store_free_claims(store);
    fact_store_free_revisions(store);
    intern_free(store->pool);
    free(store);
}
