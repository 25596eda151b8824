/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/revision.h"

#include "base/sha256.h"
#include "kube/manifest.h"
#include "kube/object.h"
#include "neoset/body.h"

char *revision_name(const char *set_name, const char *template_digest, int collision_count)
{
    /* No vowels, and no digit that looks like a letter. */
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    CLEANUP_FREE char *text = xasprintf("%s/%d", template_digest, collision_count);
    uint8_t digest[SHA256_SIZE];
    sha256_once(text, strlen(text), digest);
    char hash[REVISION_HASH_LENGTH + 1] = {0};
    for (size_t i = 0; i < REVISION_HASH_LENGTH; i++)
        hash[i] = letters[digest[i] % (sizeof(letters) - 1)];
    return xasprintf("%.*s-%s", REVISION_NAME_MAX - REVISION_HASH_LENGTH - 1, set_name, hash);
}

cJSON *revision_object(const struct neoset_fact *set, const char *name, int64_t number)
{
    PRE(set->template_text);
    return revision_object_of(set, set->template_text, name, number);
}

cJSON *revision_object_of(const struct neoset_fact *set, const char *template_text, const char *name,
                          int64_t number)
{
    cJSON *object = kube_manifest(KUBE_REVISION, set->namespace, name);
    cJSON *metadata = json_get(object, "metadata");
    CLEANUP_JSON cJSON *template = NULL;
    ENSURE(json_parse(template_text, strlen(template_text), &template, NULL) == 0);
    const cJSON *labels = json_path(template, "metadata", "labels", NULL);
    json_add_item(metadata, "labels", cJSON_IsObject(labels) ? json_copy(labels) : json_new_object());
    json_append_item(json_add_array(metadata, "ownerReferences"), body_owner_set(set, true));
    json_set_str(template, "$patch", "replace");
    CLEANUP_JSON cJSON *data = json_new_object();
    json_add_item(json_add_object(data, "spec"), "template", STEAL(template));
    json_add_item(object, "data", kube_object_raw(data));
    json_add_int64(object, "revision", number);
    return object;
}

const struct revision_fact *revision_find(const struct revision_fact *const *revisions, size_t count,
                                          const char *name)
{
    for (size_t i = 0; name && i < count; i++)
        if (str_equal(revisions[i]->name, name))
            return revisions[i];
    return NULL;
}

const struct revision_fact *revision_find_equal(const struct revision_fact *const *revisions, size_t count,
                                                const char *template_digest)
{
    const struct revision_fact *found = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct revision_fact *revision = revisions[i];
        if (!revision->template_text || revision->deleting ||
            !str_equal(revision->template_digest, template_digest))
            continue;
        if (!found || revision->number > found->number)
            found = revision;
    }
    return found;
}

int64_t revision_highest(const struct revision_fact *const *revisions, size_t count)
{
    int64_t highest = 0;
    for (size_t i = 0; i < count; i++)
        highest = MAX(highest, revisions[i]->number);
    return highest;
}

const struct revision_fact *revision_to_cut(const struct revision_fact *const *revisions, size_t count,
                                            int limit, bool (*is_used)(void *context, const char *name),
                                            void *context)
{
    const struct revision_fact *oldest = NULL;
    size_t unused = 0;
    for (size_t i = 0; i < count; i++) {
        const struct revision_fact *revision = revisions[i];
        if (revision->deleting || is_used(context, revision->name))
            continue;
        unused++;
        if (!oldest || revision->number < oldest->number ||
            (revision->number == oldest->number && strcmp(revision->name, oldest->name) < 0))
            oldest = revision;
    }
    return unused > (size_t)limit ? oldest : NULL;
}
