/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/statefulset_parts.h"

#include "base/sha256.h"

enum { HASH_LENGTH = 10 };

const cJSON *set_template_of(const cJSON *revision)
{
    return json_path(revision, "data", "spec", "template", NULL);
}

static cJSON *template_data(const struct set *set)
{
    cJSON *data = json_new_object();
    cJSON *template = json_copy(json_get(set->spec, "template"));
    json_set_str(template, "$patch", "replace");
    json_add_item(json_add_object(data, "spec"), "template", template);
    return data;
}

/* As Go's encoder spells it: see revisions.c for what happens to data that is spelt otherwise. */
static char *as_go_spells(const cJSON *data)
{
    CLEANUP_FREE char *text = json_print_sorted(data);
    struct buf spelt = BUF_INIT(16 << 20);
    for (const char *at = text; *at; at++) {
        if (strchr("<>&", *at))
            buf_addf(&spelt, "\\u%04x", (unsigned)*at);
        else
            buf_add_char(&spelt, *at);
    }
    return buf_take(&spelt);
}

static bool is_older(const cJSON *a, const cJSON *b)
{
    int64_t left = json_int64_or(a, "revision", 0);
    int64_t right = json_int64_or(b, "revision", 0);
    int by_time = strcmp(meta_str(a, "creationTimestamp"), meta_str(b, "creationTimestamp"));
    int order = left != right ? (left < right ? -1 : 1) : by_time;
    return order < 0 || (order == 0 && strcmp(meta_str(a, "name"), meta_str(b, "name")) < 0);
}

static void insert_by_age(cJSON *history, cJSON *revision)
{
    int at = 0;
    const cJSON *other = NULL;
    cJSON_ArrayForEach (other, history)
        at += is_older(other, revision);
    tree_insert(history, at, revision);
}

/* Own ones and orphans. */
static void list_revisions(struct set *set)
{
    const struct kind *kind = kind_find(set->sim, "apps", "controllerrevisions");
    set->history = json_new_array();
    CLEANUP_FREE char *prefix = xasprintf("%s/", set->namespace);
    for (size_t i = store_lower_bound(kind, prefix); i < kind->object_count; i++) {
        const cJSON *tree = object_tree(kind->objects[i]);
        if (!str_starts_with(kind->objects[i]->key, prefix))
            break;
        if ((!set_controller_of(tree) || set_owns(set, tree)) && !meta_is_deleting(tree) &&
            selector_match_labels(set->selector, json_path(tree, "metadata", "labels", NULL)))
            insert_by_age(set->history, json_copy(tree));
    }
}

static void adopt_revisions(struct set *set)
{
    const cJSON *revision = NULL;
    cJSON_ArrayForEach (revision, set->history)
        if (!set_controller_of(revision))
            set_adopt(set, "/apis/apps/v1", "controllerrevisions", revision);
}

static cJSON *new_revision(const struct set *set, const char *text, int64_t number)
{
    uint8_t digest[SHA256_SIZE];
    sha256_once(text, strlen(text), digest);
    char hash[HASH_LENGTH + 1];
    for (size_t i = 0; i < HASH_LENGTH; i++)
        hash[i] = "bcdfghjklm2456789"[digest[i] % 17];
    hash[HASH_LENGTH] = '\0';
    CLEANUP_FREE char *name = xasprintf("%s-%s", set->name, hash);
    cJSON *object = json_new_object();
    cJSON *metadata = json_add_object(object, "metadata");
    json_add_str(metadata, "name", name);
    const cJSON *labels = json_path(set->spec, "template", "metadata", "labels", NULL);
    json_add_item(metadata, "labels", labels ? json_copy(labels) : json_new_object());
    json_add_str(json_get(metadata, "labels"), "controller.kubernetes.io/hash", hash);
    json_append_item(json_add_array(metadata, "ownerReferences"), set_owner_reference(set));
    json_add_item(object, "data", json_new_raw(text));
    json_add_int64(object, "revision", number);
    return object;
}

static int create_revision(struct set *set, const cJSON *data, int64_t number)
{
    CLEANUP_FREE char *text = as_go_spells(data);
    cJSON *object = new_revision(set, text, number);
    cJSON *kept = json_copy(object);
    json_set_item(kept, "data", json_copy(data));
    json_append_item(set->history, kept);
    set->update = kept;
    int status = actor_ask(set->sim, &statefulset_actor, "POST", JSON_TYPE, object,
                           "/apis/apps/v1/namespaces/%s/controllerrevisions", set->namespace);
    return status == 201 ? 0 : -1;
}

/* An old revision that is wanted again gets the next number. */
static int renumber(struct set *set, const cJSON *revision, int64_t number)
{
    cJSON *patch = json_new_object();
    json_add_int64(patch, "revision", number);
    int status = actor_ask(set->sim, &statefulset_actor, "PATCH", MERGE_TYPE, patch,
                           "/apis/apps/v1/namespaces/%s/controllerrevisions/%s", set->namespace,
                           meta_str(revision, "name"));
    return status == 200 ? 0 : -1;
}

/* The newest whose data is the template's, whoever made it. */
static int find_update_revision(struct set *set)
{
    CLEANUP_JSON cJSON *data = template_data(set);
    int64_t highest = 0;
    const cJSON *revision = NULL;
    const cJSON *last = NULL;
    cJSON_ArrayForEach (revision, set->history) {
        last = revision;
        highest = json_int64_or(revision, "revision", 0);
        if (json_equal(json_get(revision, "data"), data))
            set->update = revision;
    }
    if (!set->update)
        return create_revision(set, data, highest + 1);
    return set->update == last ? 0 : renumber(set, set->update, highest + 1);
}

int set_find_revisions(struct set *set)
{
    list_revisions(set);
    if (!set->dying)
        adopt_revisions(set);
    if (find_update_revision(set) < 0)
        return -1;
    const char *name = json_path_str(set->object, "status", "currentRevision", NULL);
    const cJSON *revision = NULL;
    set->current = set->update;
    cJSON_ArrayForEach (revision, set->history)
        if (str_equal(meta_str(revision, "name"), name))
            set->current = revision;
    return 0;
}

static bool is_live(const struct set *set, const cJSON *revision)
{
    const char *name = meta_str(revision, "name");
    if (revision == set->current || revision == set->update)
        return true;
    for (int64_t i = 0; i < set->replicas; i++)
        if (set->pods[i] &&
            str_equal(json_path_str(set_pod(set, i), "metadata", "labels", "controller-revision-hash", NULL),
                      name))
            return true;
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, set->condemned)
        if (str_equal(json_path_str(pod, "metadata", "labels", "controller-revision-hash", NULL), name))
            return true;
    return false;
}

void set_truncate_history(const struct set *set)
{
    int64_t dead = 0;
    const cJSON *revision = NULL;
    cJSON_ArrayForEach (revision, set->history)
        dead += !is_live(set, revision);
    int64_t surplus = dead - json_int64_or(set->spec, "revisionHistoryLimit", 10);
    cJSON_ArrayForEach (revision, set->history) {
        if (surplus <= 0)
            return;
        if (is_live(set, revision))
            continue;
        (void)actor_ask(set->sim, &statefulset_actor, "DELETE", NULL, NULL,
                        "/apis/apps/v1/namespaces/%s/controllerrevisions/%s", set->namespace,
                        meta_str(revision, "name"));
        surplus--;
    }
}
