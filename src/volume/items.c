/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/decide_parts.h"

struct volume_item *volume_items_add(struct volume_items *items, const char *name)
{
    if (items->count == items->room) {
        items->room = MAX((size_t)8, items->room * 2);
        items->items = xreallocarray(items->items, items->room, sizeof(*items->items));
    }
    struct volume_item *item = &items->items[items->count++];
    *item = (struct volume_item){.name = xstrdup(name)};
    return item;
}

void volume_items_done(struct volume_items *items)
{
    for (size_t i = 0; i < items->count; i++) {
        struct volume_item *item = &items->items[i];
        free(item->name);
        free(item->template);
        free(item->class);
        free(item->field);
        free(item->from);
        free(item->to);
        free(item->problem);
        free(item->uid);
        free(item->version);
    }
    free(items->items);
    *items = (struct volume_items){0};
}

static int by_name(const void *a, const void *b)
{
    const struct volume_item *left = a, *right = b;
    return strcmp(left->name, right->name);
}

/* A server lists objects by name: then there is nothing to do. */
static bool is_sorted(const struct volume_items *items)
{
    for (size_t i = 1; i < items->count; i++)
        if (by_name(&items->items[i - 1], &items->items[i]) > 0)
            return false;
    return true;
}

void volume_items_sort(struct volume_items *items)
{
    if (!is_sorted(items))
        qsort(items->items, items->count, sizeof(*items->items), by_name);
}
