/* SPDX-License-Identifier: Apache-2.0
 *
 * The storage as it was, and back to it: what a restore of etcd from a backup does. */
#include "kubesim/model.h"
#include "kubesim/watch.h"

struct kept_object {
    struct kind *kind;
    char *key;
    struct version *version;
};

struct snapshot {
    struct kept_object *objects; /* by kind, and there by key */
    size_t count;
    int64_t resource_version;
};

void snapshot_free(struct snapshot *snapshot)
{
    if (!snapshot)
        return;
    for (size_t i = 0; i < snapshot->count; i++) {
        free(snapshot->objects[i].key);
        version_unref(snapshot->objects[i].version);
    }
    free(snapshot->objects);
    free(snapshot);
}

void kubesim_snapshot(struct kubesim *sim)
{
    struct snapshot *snapshot = xcalloc(1, sizeof(*snapshot));
    size_t room = 0;
    for (size_t i = 0; i < sim->kind_count; i++)
        room += sim->kinds[i]->object_count;
    snapshot->objects = xcalloc(room, sizeof(snapshot->objects[0]));
    snapshot->resource_version = sim->resource_version;
    for (size_t i = 0; i < sim->kind_count; i++)
        for (size_t k = 0; k < sim->kinds[i]->object_count; k++) {
            const struct object *object = sim->kinds[i]->objects[k];
            snapshot->objects[snapshot->count++] = (struct kept_object){
                .kind = sim->kinds[i], .key = xstrdup(object->key), .version = version_ref(object->version)};
        }
    snapshot_free(sim->snapshot);
    sim->snapshot = snapshot;
}

static const struct kept_object *find(const struct snapshot *snapshot, const struct kind *kind,
                                      const char *key)
{
    for (size_t i = 0; i < snapshot->count; i++)
        if (snapshot->objects[i].kind == kind && strcmp(snapshot->objects[i].key, key) == 0)
            return &snapshot->objects[i];
    return NULL;
}

static void drop_younger(struct kubesim *sim, struct kind *kind)
{
    for (size_t i = kind->object_count; i-- > 0;)
        if (!find(sim->snapshot, kind, kind->objects[i]->key))
            store_reset(sim, kind, kind->objects[i]->key, NULL);
}

bool kubesim_rewind(struct kubesim *sim)
{
    struct snapshot *snapshot = sim->snapshot;
    if (!snapshot)
        return false;
    for (size_t i = 0; i < sim->kind_count; i++)
        drop_younger(sim, sim->kinds[i]);
    for (size_t i = 0; i < snapshot->count; i++)
        store_reset(sim, snapshot->objects[i].kind, snapshot->objects[i].key, snapshot->objects[i].version);
    kubesim_compact(sim);
    sim->resource_version = sim->history.forgotten = snapshot->resource_version;
    watches_cut(sim);
    return true;
}
