/* SPDX-License-Identifier: Apache-2.0
 *
 * Where many of one kind are in one namespace, what is there of them is read in one list: 300 reads cost the
 * server as much as the 300 dry runs that follow, six lists next to nothing. A namespace that holds many
 * others is not read through for the sake of a few. */
#include "cmd/neosetctl/apply_parts.h"
#include "kube/object.h"

enum {
    WANTED_MIN = 8,   /* fewer are asked for one by one */
    PAGE = 500,       /* objects a request */
    STRANGERS_PER = 3 /* objects of others that are read for each that is wanted; a page in any case */
};

/* --- who is looked for where ---------------------------------------------------------------------------- */

/* Items of one kind and namespace, by name. */
struct group {
    struct apply_item **items;
    size_t count;
};

static int by_place(const struct apply_item *one, const struct apply_item *other)
{
    if (one->resource != other->resource)
        return one->resource < other->resource ? -1 : 1;
    return strcmp(one->namespace ? one->namespace : "", other->namespace ? other->namespace : "");
}

static int by_place_and_name(const void *one, const void *other)
{
    const struct apply_item *const *a = one;
    const struct apply_item *const *b = other;
    int order = by_place(*a, *b);
    return order != 0 ? order : strcmp((*a)->name, (*b)->name);
}

static int by_name(const void *name, const void *item)
{
    const struct apply_item *const *a = item;
    return strcmp(name, (*a)->name);
}

static struct apply_item *find(const struct group *group, const char *name)
{
    struct apply_item *const *found =
        name ? bsearch(name, group->items, group->count, sizeof(struct apply_item *), by_name) : NULL;
    return found ? *found : NULL;
}

/* --- a list --------------------------------------------------------------------------------------------- */

/* The items of a list do not say what they are. */
static void name_kind(cJSON *object, enum kube_resource resource)
{
    const struct kube_resource_info *info = kube_resource_info(resource);
    CLEANUP_FREE char *version = xasprintf("%s%s%s", info->group, *info->group ? "/" : "", info->version);
    if (!json_get(object, "kind"))
        json_add_str(object, "kind", info->kind);
    if (!json_get(object, "apiVersion"))
        json_add_str(object, "apiVersion", version);
}

/* Gives each object of the page that is wanted to its item. */
static void take_page(const struct group *group, cJSON *objects)
{
    for (cJSON *object = objects ? objects->child : NULL, *next = NULL; object; object = next) {
        next = object->next;
        struct apply_item *item = find(group, kube_object_name(object));
        if (!item || item->is_looked_at)
            continue;
        item->live = cJSON_DetachItemViaPointer(objects, object);
        item->is_looked_at = true;
        name_kind(item->live, item->resource);
    }
}

static int read_page(struct apply *apply, const struct apply_item *any, const char *token, cJSON **ret,
                     struct error **err)
{
    const char *plural = kube_resource_info(any->resource)->plural;
    CLEANUP_FREE char *base = kube_path(any->resource, any->namespace, NULL, NULL);
    CLEANUP_FREE char *encoded = token ? kube_percent_encode(token) : NULL;
    CLEANUP_FREE char *path =
        xasprintf("%s?limit=%d%s%s", base, PAGE, encoded ? "&continue=" : "", encoded ? encoded : "");
    return ctl_get(apply->wanted->server, path, plural, ret, err);
}

/* Who may not list, and who has too many others there, asks one by one. */
static int read_list(struct apply *apply, const struct group *group, struct error **err)
{
    size_t room = MAX((size_t)PAGE, group->count * (1 + STRANGERS_PER));
    CLEANUP_FREE char *token = NULL;
    for (size_t read = 0; read < room;) {
        CLEANUP_JSON cJSON *list = NULL;
        CLEANUP_ERROR struct error *own = NULL;
        int r = read_page(apply, group->items[0], token, &list, &own);
        if (r == -ERROR_UNREACHABLE || r == -ERROR_UNAUTHORIZED) {
            if (err)
                *err = STEAL(own);
            return r;
        }
        cJSON *objects = json_get(list, "items");
        if (r < 0 || !cJSON_IsArray(objects))
            return 0;
        read += (size_t)cJSON_GetArraySize(objects);
        take_page(group, objects);
        str_replace(&token, json_path_str(list, "metadata", "continue", NULL));
        if (!token || !*token) {
            for (size_t i = 0; i < group->count; i++)
                group->items[i]->is_looked_at = true;
            return 0;
        }
    }
    return 0;
}

int apply_read_lists(struct apply *apply, struct error **err)
{
    CLEANUP_FREE struct apply_item **items = xcalloc(apply->count, sizeof *items);
    size_t count = 0;
    int r = 0;
    for (size_t i = 0; i < apply->count; i++)
        if (apply_can_be_tried(&apply->items[i]))
            items[count++] = &apply->items[i];
    qsort(items, count, sizeof *items, by_place_and_name);
    for (size_t begin = 0, end; r == 0 && begin < count; begin = end) {
        for (end = begin + 1; end < count && by_place(items[begin], items[end]) == 0;)
            end++;
        if (end - begin >= WANTED_MIN)
            r = read_list(apply, &(struct group){items + begin, end - begin}, err);
    }
    return r;
}
