/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/list.h"

#include "kube/answer.h"

/* A list that the server forgot in the middle of it - a chunk came too late, or its history was compacted -
 * is begun anew so often; the last time it is asked for in one piece, of which nothing can be forgotten. */
enum { CHUNKS_MAX = 10000, ANEW_MAX = 3 };

struct kube_list {
    struct kube_client *client;
    enum kube_resource resource;
    char *namespace, *selector;
    int64_t timeout_us;
    struct kube_call *call;
    cJSON *items;
    int chunks, anew;
    kube_list_done *done;
    void *context;
};

static void list_free(struct kube_list *list)
{
    json_delete(list->items);
    free(list->namespace);
    free(list->selector);
    free(list);
}

static void take_items(cJSON *all, const cJSON *items)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, items)
        json_append_item(all, json_copy(item));
}

static void ask(struct kube_list *list, const char *next);

static void begin_anew(struct kube_list *list)
{
    list->anew++;
    list->chunks = 0;
    json_delete(list->items);
    list->items = json_new_array();
    ask(list, NULL);
}

static void answered(void *context, const struct kube_answer *answer)
{
    struct kube_list *list = context;
    list->call = NULL;
    const cJSON *items = json_get(answer->body, "items");
    bool is_list = answer->outcome == KUBE_OK && cJSON_IsArray(items);
    if (is_list)
        take_items(list->items, items);
    const char *next = is_list ? json_path_str(answer->body, "metadata", "continue", NULL) : NULL;
    bool has_more = next && *next;
    if (answer->http == 410 && list->chunks > 0 && list->anew < ANEW_MAX) {
        begin_anew(list);
        return;
    }
    if (has_more && ++list->chunks < CHUNKS_MAX) {
        ask(list, next);
        return;
    }
    struct kube_decoded endless = {0};
    if (has_more)
        kube_decode_none(KUBE_NO_ANSWER, ERROR_TOO_LARGE, "the list has no end", &endless);
    list->done(list->context, is_list && !has_more ? STEAL(list->items) : NULL,
               has_more ? &endless.answer : answer);
    kube_decoded_done(&endless);
    list_free(list);
}

static void ask(struct kube_list *list, const char *next)
{
    CLEANUP_FREE char *path = kube_path(list->resource, list->namespace, NULL, NULL);
    if (list->anew < ANEW_MAX)
        kube_path_add_query(&path, "limit", "500");
    if (list->selector)
        kube_path_add_query(&path, "labelSelector", list->selector);
    if (next)
        kube_path_add_query(&path, "continue", next);
    list->call = kube_get(list->client, path, list->timeout_us, answered, list);
}

struct kube_list *kube_list_start(struct kube_client *client, enum kube_resource resource,
                                  const char *namespace, const char *selector, int64_t timeout_us,
                                  kube_list_done *done, void *context)
{
    struct kube_list *list = xcalloc(1, sizeof(*list));
    *list = (struct kube_list){.client = client,
                               .resource = resource,
                               .namespace = xstrdup_or_null(namespace),
                               .selector = xstrdup_or_null(selector),
                               .timeout_us = timeout_us,
                               .items = json_new_array(),
                               .done = done,
                               .context = context};
    ask(list, NULL);
    return list;
}

void kube_list_cancel(struct kube_list **list)
{
    if (!*list)
        return;
    kube_call_cancel((*list)->client, &(*list)->call);
    list_free(STEAL(*list));
}
