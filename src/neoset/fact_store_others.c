/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/fact_store_parts.h"

#include "kube/object.h"

/* --- claims --------------------------------------------------------------------------------------------- */

static void tell_claim_changed(struct fact_store *store, const char *namespace, const char *claim_name)
{
    size_t position = 0;
    char *set_name = NULL;
    while ((set_name = neoset_claim_next_set(claim_name, &position)) != NULL) {
        struct set_group *group = fact_store_find_group(store, namespace, set_name);
        if (group && group->set)
            fact_store_tell_changed(store, group);
        free(set_name);
    }
}

const struct claimant_slot *fact_store_find_claims(const struct fact_store *store, const char *namespace,
                                                   const char *set_name)
{
    CLEANUP_FREE char *key = fact_store_group_key(namespace, set_name);
    struct claimant_slot *claimant = NULL;
    HASH_FIND_STR(store->claimants, key, claimant);
    return claimant;
}

static void link_claimant(struct fact_store *store, const char *set_name, struct claim_slot *slot)
{
    CLEANUP_FREE char *key = fact_store_group_key(slot->fact->namespace, set_name);
    struct claimant_slot *claimant = NULL;
    HASH_FIND_STR(store->claimants, key, claimant);
    if (!claimant) {
        claimant = xcalloc(1, sizeof(*claimant));
        claimant->key = STEAL(key);
        HASH_ADD_KEYPTR(hh, store->claimants, claimant->key, strlen(claimant->key), claimant);
    }
    if (claimant->count == claimant->room) {
        claimant->room = MAX(2 * claimant->room, (size_t)1);
        claimant->items = xreallocarray(claimant->items, claimant->room, sizeof(struct claim_slot *));
    }
    claimant->items[claimant->count++] = slot;
}

static void claimant_free(struct claimant_slot *claimant)
{
    free(claimant->items);
    free(claimant->key);
    free(claimant);
}

static void unlink_claimant(struct fact_store *store, const char *set_name, const struct claim_slot *slot)
{
    CLEANUP_FREE char *key = fact_store_group_key(slot->fact->namespace, set_name);
    struct claimant_slot *claimant = NULL;
    HASH_FIND_STR(store->claimants, key, claimant);
    ENSURE(claimant != NULL);
    for (size_t i = 0; i < claimant->count; i++)
        if (claimant->items[i] == slot)
            claimant->items[i] = claimant->items[--claimant->count];
    if (claimant->count > 0)
        return;
    HASH_DEL(store->claimants, claimant);
    claimant_free(claimant);
}

/* Each set that may have given the claim its name learns of it, or forgets it. */
static void index_claim(struct fact_store *store, struct claim_slot *slot, bool is_there)
{
    size_t position = 0;
    char *set_name = NULL;
    while ((set_name = neoset_claim_next_set(slot->fact->name, &position)) != NULL) {
        if (is_there)
            link_claimant(store, set_name, slot);
        else
            unlink_claimant(store, set_name, slot);
        free(set_name);
    }
}

struct claim_slot *fact_store_find_claim_slot(const struct fact_store *store, const char *namespace,
                                              const char *name)
{
    CLEANUP_FREE char *key = fact_store_group_key(namespace, name);
    struct claim_slot *slot = NULL;
    HASH_FIND_STR(store->claims, key, slot);
    return slot;
}

const struct claim_fact *fact_store_find_claim(const struct fact_store *store, const char *namespace,
                                               const char *name)
{
    const struct claim_slot *slot = fact_store_find_claim_slot(store, namespace, name);
    return slot ? slot->fact : NULL;
}

void fact_store_take_claim(struct fact_store *store, const cJSON *object, uint32_t mark)
{
    const char *name = kube_object_name(object);
    if (!name)
        return;
    struct claim_slot *slot = fact_store_find_claim_slot(store, kube_object_namespace(object), name);
    if (slot && mark)
        slot->mark = mark;
    if (slot && fact_store_is_known(object, slot->fact->uid, slot->fact->version))
        return;
    struct claim_fact *fact = claim_fact_make(store->pool, object);
    ENSURE(fact != NULL);
    if (slot) {
        claim_fact_free(slot->fact); /* the new one has the same name */
    } else {
        slot = xcalloc(1, sizeof(*slot));
        slot->key = fact_store_group_key(fact->namespace, fact->name);
        slot->mark = mark;
        HASH_ADD_KEYPTR(hh, store->claims, slot->key, strlen(slot->key), slot);
    }
    bool is_new = !slot->fact;
    slot->fact = fact;
    if (is_new)
        index_claim(store, slot, true);
    tell_claim_changed(store, fact->namespace, fact->name);
}

static void claim_slot_free(struct claim_slot *slot)
{
    claim_fact_free(slot->fact);
    free(slot->key);
    free(slot);
}

void fact_store_remove_claim(struct fact_store *store, struct claim_slot *slot)
{
    index_claim(store, slot, false);
    HASH_DEL(store->claims, slot); /* NOLINT(clang-analyzer-unix.Malloc): does not follow uthash */
    tell_claim_changed(store, slot->fact->namespace, slot->fact->name);
    claim_slot_free(slot);
}

void fact_store_free_claims(struct fact_store *store)
{
    struct claimant_slot *claimant = store->claimants, *next_claimant = NULL;
    HASH_CLEAR(hh, store->claimants);
    for (; claimant; claimant = next_claimant) {
        next_claimant = claimant->hh.next;
        claimant_free(claimant);
    }
    struct claim_slot *slot = store->claims, *next = NULL;
    HASH_CLEAR(hh, store->claims);
    for (; slot; slot = next) {
        next = slot->hh.next;
        claim_slot_free(slot);
    }
}

/* --- revisions ------------------------------------------------------------------------------------------ */

static struct owner_slot *find_owner(const struct fact_store *store, const char *uid)
{
    struct owner_slot *owner = NULL;
    HASH_FIND_STR(store->owners, uid, owner);
    return owner;
}

const struct owner_slot *fact_store_find_revisions(const struct fact_store *store, const char *uid)
{
    return find_owner(store, uid);
}

const struct owner_slot *fact_store_find_orphans(const struct fact_store *store, const char *namespace)
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

static void link_owner(struct fact_store *store, struct revision_slot *slot)
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

static void unlink_owner(struct fact_store *store, const struct revision_slot *slot)
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

struct revision_slot *fact_store_find_revision_slot(const struct fact_store *store, const char *namespace,
                                                    const char *name)
{
    CLEANUP_FREE char *key = fact_store_group_key(namespace, name);
    struct revision_slot *slot = NULL;
    HASH_FIND_STR(store->revisions, key, slot);
    return slot;
}

static void tell_revision_changed(struct fact_store *store, const struct revision_slot *slot)
{
    struct set_group *group =
        slot->set_name ? fact_store_find_group(store, slot->fact->namespace, slot->set_name) : NULL;
    if (group && group->set)
        fact_store_tell_changed(store, group);
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

void fact_store_remove_revision(struct fact_store *store, struct revision_slot *slot)
{
    HASH_DEL(store->revisions, slot);
    unlink_owner(store, slot);
    tell_revision_changed(store, slot);
    revision_slot_free(slot);
}

void fact_store_lose_revision(struct fact_store *store, struct revision_slot *slot)
{
    struct set_group *group =
        slot->set_name ? fact_store_find_group(store, slot->fact->namespace, slot->set_name) : NULL;
    HASH_DEL(store->revisions, slot);
    unlink_owner(store, slot);
    if (group && group->set && str_equal(slot->fact->owner_uid, group->set->uid)) {
        struct revision_fact **place = &group->lost[group->next_lost++ % LOST_REVISIONS];
        revision_fact_free(*place);
        *place = STEAL(slot->fact);
        fact_store_tell_changed(store, group);
    }
    revision_slot_free(slot);
}

/* Only what a NeoSet controls, and orphans: StatefulSets and DaemonSets keep thousands of others. */
void fact_store_take_revision(struct fact_store *store, const cJSON *object, uint32_t mark)
{
    const cJSON *controller = kube_object_controller(object);
    bool is_ours = !controller || (str_equal(json_str(controller, "kind"), "NeoSet") &&
                                   json_str(controller, "uid") && json_str(controller, "name"));
    const char *name = kube_object_name(object);
    if (!name)
        return;
    struct revision_slot *slot = fact_store_find_revision_slot(store, kube_object_namespace(object), name);
    if (slot && mark)
        slot->mark = mark;
    if (slot && fact_store_is_known(object, slot->fact->uid, slot->fact->version))
        return;
    if (slot)
        fact_store_remove_revision(store, slot);
    if (!is_ours)
        return;
    struct revision_fact *fact = revision_fact_make(store->pool, object);
    ENSURE(fact && (fact->owner_uid || !controller));
    slot = xcalloc(1, sizeof(*slot));
    slot->key = fact_store_group_key(fact->namespace, fact->name);
    slot->fact = fact;
    slot->set_name = controller ? xstrdup(json_str(controller, "name")) : set_of_revision(name);
    slot->mark = mark;
    HASH_ADD_KEYPTR(hh, store->revisions, slot->key, strlen(slot->key), slot);
    link_owner(store, slot);
    tell_revision_changed(store, slot);
}

void fact_store_free_revisions(struct fact_store *store)
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
