/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/model.h"

struct version *version_ref(struct version *version)
{
    version->references++;
    return version;
}

void version_unref(struct version *version)
{
    if (!version || --version->references > 0)
        return;
    json_delete(version->tree);
    free(version->text);
    free(version);
}

const cJSON *version_tree(struct version *version)
{
    if (!version->tree)
        ENSURE(json_parse(version->text, version->text_length, &version->tree, NULL) == 0);
    return version->tree;
}

const char *version_text(struct version *version)
{
    if (!version->text) {
        version->text = json_print(version->tree);
        version->text_length = strlen(version->text);
    }
    return version->text;
}

/* A superseded version is kept as text only: the history holds thousands of them. */
static void version_shrink(struct version *version)
{
    version->is_past = true;
    if (version->holds > 0 || !version->tree)
        return;
    version_text(version);
    json_delete(STEAL(version->tree));
}

struct version *version_hold(struct version *version)
{
    version->holds++;
    return version_ref(version);
}

void version_release(struct version *version)
{
    if (!version)
        return;
    version->holds--;
    if (version->is_past && version->references > 1)
        version_shrink(version);
    version_unref(version);
}

char *store_key(const char *namespace, const char *name)
{
    return namespace ? xasprintf("%s/%s", namespace, name) : xstrdup(name);
}

size_t store_lower_bound(const struct kind *kind, const char *key)
{
    size_t low = 0;
    size_t high = kind->object_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(kind->objects[middle]->key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct object *find_key(const struct kind *kind, const char *key)
{
    size_t index = store_lower_bound(kind, key);
    if (index < kind->object_count && strcmp(kind->objects[index]->key, key) == 0)
        return kind->objects[index];
    return NULL;
}

struct object *store_find(const struct kind *kind, const char *namespace, const char *name)
{
    CLEANUP_FREE char *key = store_key(kind->flags & KIND_NAMESPACED ? namespace : NULL, name);
    return find_key(kind, key);
}

static struct object *insert(struct kind *kind, const char *key)
{
    if (kind->object_count == kind->object_room) {
        kind->object_room = MAX(kind->object_room * 2, 16);
        kind->objects = xreallocarray(kind->objects, kind->object_room, sizeof(kind->objects[0]));
    }
    size_t index = store_lower_bound(kind, key);
    memmove(&kind->objects[index + 1], &kind->objects[index],
            (kind->object_count - index) * sizeof(kind->objects[0]));
    struct object *object = xcalloc(1, sizeof(*object));
    object->key = xstrdup(key);
    kind->objects[index] = object;
    kind->object_count++;
    return object;
}

static void change_done(struct change *change)
{
    free(STEAL(change->key));
    version_unref(STEAL(change->version));
    version_unref(STEAL(change->before));
}

static void history_forget_first(struct history *history)
{
    struct change *oldest = &history->changes[history->first];
    history->forgotten = oldest->version->number;
    change_done(oldest);
    history->first = (history->first + 1) % history->room;
    history->count--;
}

static void tell_changed(struct kubesim *sim, enum change_type type, const struct kind *kind,
                         struct version *version, struct version *before)
{
    const struct call *call = sim->current;
    const cJSON *tree = version_tree(version);
    struct kubesim_change change = {
        .kind = kind->name,
        .namespace = meta_str(tree, "namespace"),
        .name = meta_str(tree, "name"),
        .before = before ? version_tree(before) : NULL,
        .after = type == CHANGE_DELETED ? NULL : tree,
        .verb = call ? verb_name(call->verb) : NULL,
        .path = call ? call->request->path : NULL,
        .audit_id = call ? call->response->audit_id : NULL,
        .user = call ? call->request->user : NULL,
    };
    sim->options.changed(sim->options.context, &change);
}

/* Appends and tells the watches. Takes before over, references version. */
static void record(struct kubesim *sim, enum change_type type, struct kind *kind, const char *key,
                   struct version *version, struct version *before)
{
    struct history *history = &sim->history;
    if (!history->changes) {
        history->room = sim->options.history_max;
        history->changes = xcalloc(history->room, sizeof(history->changes[0]));
    }
    if (history->count == history->room)
        history_forget_first(history);
    struct change *change = &history->changes[(history->first + history->count) % history->room];
    *change = (struct change){
        .type = type, .kind = kind, .key = xstrdup(key), .version = version_ref(version), .before = before};
    history->count++;
    sim->counts.writes++;
    watches_notify(sim, change);
    if (sim->options.changed)
        tell_changed(sim, type, kind, version, before);
    if (before)
        version_shrink(before);
}

/* kind and apiVersion first: lists of built-in kinds cut them off as text. */
static void put_type_first(const struct kind *kind, cJSON *tree)
{
    cJSON *first = tree->child;
    if (first && first->next && strcmp(first->string, "kind") == 0 &&
        strcmp(first->next->string, "apiVersion") == 0)
        return;
    CLEANUP_FREE char *api_version = kind_api_version(kind);
    json_remove(tree, "kind");
    json_remove(tree, "apiVersion");
    cJSON *rest = tree->child;
    tree->child = NULL;
    json_add_str(tree, "kind", kind->name);
    json_add_str(tree, "apiVersion", api_version);
    if (!rest)
        return;
    cJSON *second = tree->child->next;
    tree->child->prev = rest->prev;
    second->next = rest;
    rest->prev = second;
}

static struct version *make_version(struct kubesim *sim, const struct kind *kind, cJSON *tree)
{
    struct version *version = xcalloc(1, sizeof(*version));
    version->references = 1;
    version->number = ++sim->resource_version;
    version->tree = tree;
    put_type_first(kind, tree);
    CLEANUP_FREE char *text = xasprintf("%lld", (long long)version->number);
    json_set_str(meta_of(tree), "resourceVersion", text);
    return version;
}

struct object *store_put(struct kubesim *sim, struct kind *kind, cJSON *tree)
{
    PRE(meta_str(tree, "name"));
    CLEANUP_FREE char *key =
        store_key(kind->flags & KIND_NAMESPACED ? meta_str(tree, "namespace") : NULL, meta_str(tree, "name"));
    struct object *object = find_key(kind, key);
    enum change_type type = object ? CHANGE_MODIFIED : CHANGE_ADDED;
    if (!object) {
        object = insert(kind, key);
        sim->counts.objects++;
    }
    struct version *before = object->version;
    gc_note(sim, kind, before ? version_tree(before) : NULL, tree);
    object->version = make_version(sim, kind, tree);
    record(sim, type, kind, key, object->version, before);
    if (kind->hooks && kind->hooks->committed)
        kind->hooks->committed(sim, version_tree(object->version), false);
    return object;
}

static void take_out(struct kubesim *sim, struct kind *kind, size_t index)
{
    memmove(&kind->objects[index], &kind->objects[index + 1],
            (kind->object_count - index - 1) * sizeof(kind->objects[0]));
    kind->object_count--;
    sim->counts.objects--;
}

void store_remove(struct kubesim *sim, struct kind *kind, struct object *object, cJSON *tree)
{
    size_t index = store_lower_bound(kind, object->key);
    ENSURE(index < kind->object_count && kind->objects[index] == object);
    take_out(sim, kind, index);
    gc_note(sim, kind, object_tree(object), NULL);
    struct version *last = make_version(sim, kind, tree);
    record(sim, CHANGE_DELETED, kind, object->key, last, object->version);
    if (kind->hooks && kind->hooks->committed)
        kind->hooks->committed(sim, version_tree(last), true);
    version_shrink(last);
    version_unref(last);
    free(object->key);
    free(object);
}

void store_reset(struct kubesim *sim, struct kind *kind, const char *key, struct version *version)
{
    struct object *object = find_key(kind, key);
    struct version *before = object ? object->version : NULL;
    if (before == version)
        return;
    const cJSON *old = before ? version_tree(before) : NULL, *new = version ? version_tree(version) : NULL;
    /* One that was deleted and made anew meanwhile is another object. */
    bool other = old && new && !str_equal(meta_str(old, "uid"), meta_str(new, "uid"));
    if (other)
        gc_note(sim, kind, old, NULL);
    gc_note(sim, kind, other ? NULL : old, new);
    if (!version) {
        take_out(sim, kind, store_lower_bound(kind, key));
        free(object->key);
        free(object);
    } else {
        if (!object) {
            object = insert(kind, key);
            sim->counts.objects++;
        }
        object->version = version_ref(version);
    }
    enum change_type type = !version ? CHANGE_DELETED : before ? CHANGE_MODIFIED : CHANGE_ADDED;
    if (sim->options.changed)
        tell_changed(sim, type, kind, version ? version : before, before);
    version_unref(before);
}

void store_drop_kind(struct kind *kind)
{
    for (size_t i = 0; i < kind->object_count; i++) {
        version_unref(kind->objects[i]->version);
        free(kind->objects[i]->key);
        free(kind->objects[i]);
    }
    free(STEAL(kind->objects));
    kind->object_count = kind->object_room = 0;
}

void kubesim_compact(struct kubesim *sim)
{
    while (sim->history.count > 0)
        history_forget_first(&sim->history);
    sim->history.forgotten = sim->resource_version;
}

void store_done(struct kubesim *sim)
{
    kubesim_compact(sim);
    free(STEAL(sim->history.changes));
    for (size_t i = 0; i < sim->kind_count; i++)
        store_drop_kind(sim->kinds[i]);
}
