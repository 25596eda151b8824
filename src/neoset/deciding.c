/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of ordinals, and the fields of status that decide. */
#include "neoset/fact.h"

/* Where ordinal is, or where it belongs. */
static size_t find(const struct ordinals *list, int ordinal)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->items[middle] < ordinal)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool ordinals_has(const struct ordinals *list, int ordinal)
{
    size_t at = find(list, ordinal);
    return at < list->count && list->items[at] == ordinal;
}

void ordinals_add(struct ordinals *list, int ordinal)
{
    size_t at = find(list, ordinal);
    if (at < list->count && list->items[at] == ordinal)
        return;
    list->items = xreallocarray(list->items, list->count + 1, sizeof(*list->items));
    memmove(list->items + at + 1, list->items + at, (list->count - at) * sizeof(*list->items));
    list->items[at] = ordinal;
    list->count++;
}

void ordinals_remove(struct ordinals *list, int ordinal)
{
    size_t at = find(list, ordinal);
    if (at == list->count || list->items[at] != ordinal)
        return;
    memmove(list->items + at, list->items + at + 1, (list->count - at - 1) * sizeof(*list->items));
    list->count--;
}

void ordinals_copy(struct ordinals *to, const struct ordinals *from)
{
    *to = (struct ordinals){.count = from->count};
    if (from->count == 0)
        return;
    to->items = xreallocarray(NULL, from->count, sizeof(*to->items));
    memcpy(to->items, from->items, from->count * sizeof(*to->items));
}

bool ordinals_equal(const struct ordinals *a, const struct ordinals *b)
{
    return a->count == b->count &&
           (a->count == 0 || memcmp(a->items, b->items, a->count * sizeof(*a->items)) == 0);
}

void ordinals_done(struct ordinals *list)
{
    free(list->items);
    *list = (struct ordinals){0};
}

void neoset_deciding_copy(struct neoset_deciding *to, const struct neoset_deciding *from)
{
    *to = *from;
    to->stable = xstrdup_or_null(from->stable);
    to->target = xstrdup_or_null(from->target);
    to->current_image = xstrdup_or_null(from->current_image);
    to->target_image = xstrdup_or_null(from->target_image);
    ordinals_copy(&to->done, &from->done);
    ordinals_copy(&to->left, &from->left);
}

bool neoset_deciding_equal(const struct neoset_deciding *a, const struct neoset_deciding *b)
{
    return a->present == b->present && str_equal(a->stable, b->stable) &&
           a->stable_proven == b->stable_proven && str_equal(a->target, b->target) && a->stage == b->stage &&
           a->collision_count == b->collision_count && ordinals_equal(&a->done, &b->done) &&
           ordinals_equal(&a->left, &b->left) && str_equal(a->current_image, b->current_image) &&
           str_equal(a->target_image, b->target_image);
}

void neoset_deciding_done(struct neoset_deciding *deciding)
{
    free(deciding->stable);
    free(deciding->target);
    free(deciding->current_image);
    free(deciding->target_image);
    ordinals_done(&deciding->done);
    ordinals_done(&deciding->left);
    *deciding = (struct neoset_deciding){0};
}

static void add_ordinals(cJSON *object, const char *key, const struct ordinals *list)
{
    cJSON *array = json_add_array(object, key);
    for (size_t i = 0; i < list->count; i++)
        json_append_int64(array, list->items[i]);
}

cJSON *neoset_deciding_json(const struct neoset_deciding *deciding)
{
    cJSON *status = json_new_object();
    json_add_str(status, "currentRevisionName", deciding->stable ? deciding->stable : "");
    json_add_bool(status, "currentRevisionProven", deciding->stable_proven);
    json_add_str(status, "updateRevisionName", deciding->target ? deciding->target : "");
    json_add_int64(status, "currentPartition", deciding->stage);
    json_add_int64(status, "collisionCount", deciding->collision_count);
    add_ordinals(status, "doneOrdinals", &deciding->done);
    add_ordinals(status, "leftStableOrdinals", &deciding->left);
    json_add_str(status, "currentImage", deciding->current_image ? deciding->current_image : "");
    json_add_str(status, "targetImage", deciding->target_image ? deciding->target_image : "");
    return status;
}
