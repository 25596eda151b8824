/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/model.h"

const char *meta_str(const cJSON *object, const char *key)
{
    return json_str(json_get(object, "metadata"), key);
}

cJSON *meta_of(cJSON *object)
{
    return json_ensure_object(object, "metadata");
}

bool meta_is_deleting(const cJSON *object)
{
    return meta_str(object, "deletionTimestamp") != NULL;
}

size_t meta_finalizer_count(const cJSON *object)
{
    return (size_t)cJSON_GetArraySize(json_path(object, "metadata", "finalizers", NULL));
}

static int finalizer_index(const cJSON *object, const char *finalizer)
{
    int index = 0;
    const cJSON *item;
    cJSON_ArrayForEach (item, json_path(object, "metadata", "finalizers", NULL)) {
        if (cJSON_IsString(item) && strcmp(item->valuestring, finalizer) == 0)
            return index;
        index++;
    }
    return -1;
}

bool meta_has_finalizer(const cJSON *object, const char *finalizer)
{
    return finalizer_index(object, finalizer) >= 0;
}

void meta_add_finalizer(cJSON *object, const char *finalizer)
{
    if (meta_has_finalizer(object, finalizer))
        return;
    cJSON *meta = meta_of(object);
    if (!cJSON_IsArray(json_get(meta, "finalizers")))
        json_set_item(meta, "finalizers", json_new_array());
    json_append_str(json_get(meta, "finalizers"), finalizer);
}

void meta_remove_finalizer(cJSON *object, const char *finalizer)
{
    int index = finalizer_index(object, finalizer);
    if (index < 0)
        return;
    cJSON *meta = meta_of(object);
    cJSON_DeleteItemFromArray(json_get(meta, "finalizers"), index);
    if (cJSON_GetArraySize(json_get(meta, "finalizers")) == 0)
        json_remove(meta, "finalizers");
}

void meta_raise_generation(cJSON *object)
{
    cJSON *meta = meta_of(object);
    json_set_item(meta, "generation", json_new_int64(json_int64_or(meta, "generation", 0) + 1));
}

int64_t sim_now_us(const struct kubesim *sim)
{
    return sim->options.now_us(sim->options.context);
}

void sim_time_text(const struct kubesim *sim, char text[static TIME_TEXT_SIZE])
{
    time_format_seconds(sim_now_us(sim), text);
}

void tree_copy_member(cJSON *to, const cJSON *from, const char *key)
{
    const cJSON *member = json_get(from, key);
    if (member)
        json_set_item(to, key, json_copy(member));
    else
        json_remove(to, key);
}

void tree_insert(cJSON *array, int index, cJSON *item)
{
    cJSON *behind = json_new_array();
    while (cJSON_GetArraySize(array) > index)
        json_append_item(behind, cJSON_DetachItemFromArray(array, index));
    json_append_item(array, item);
    while (behind->child)
        json_append_item(array, cJSON_DetachItemFromArray(behind, 0));
    cJSON_Delete(behind);
}
