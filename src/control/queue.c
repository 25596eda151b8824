/* SPDX-License-Identifier: Apache-2.0 */
#include "control/queue.h"

#include <uthash.h>

/* A binary heap over (due, order of adding), and a hash to find a key in it. */
struct item {
    char *key;
    int64_t due_us;
    uint64_t order;
    size_t place; /* in the heap */
    UT_hash_handle hh;
};

struct queue {
    struct item *by_key;
    struct item **heap;
    size_t count;
    size_t room;
    uint64_t next_order;
};

struct queue *queue_make(void)
{
    return xcalloc(1, sizeof(struct queue));
}

static void item_free(struct item *item)
{
    free(item->key);
    free(item);
}

void queue_free(struct queue *queue)
{
    if (!queue)
        return;
    HASH_CLEAR(hh, queue->by_key);
    for (size_t i = 0; i < queue->count; i++)
        item_free(queue->heap[i]);
    free(queue->heap);
    free(queue);
}

static bool is_before(const struct item *a, const struct item *b)
{
    return a->due_us != b->due_us ? a->due_us < b->due_us : a->order < b->order;
}

static void put(struct queue *queue, size_t place, struct item *item)
{
    queue->heap[place] = item;
    item->place = place;
}

static void rise(struct queue *queue, struct item *item)
{
    size_t place = item->place;
    while (place > 0 && is_before(item, queue->heap[(place - 1) / 2])) {
        put(queue, place, queue->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put(queue, place, item);
}

static void sink(struct queue *queue, struct item *item)
{
    size_t place = item->place;
    for (;;) {
        size_t child = 2 * place + 1;
        if (child >= queue->count)
            break;
        if (child + 1 < queue->count && is_before(queue->heap[child + 1], queue->heap[child]))
            child++;
        if (!is_before(queue->heap[child], item))
            break;
        put(queue, place, queue->heap[child]);
        place = child;
    }
    put(queue, place, item);
}

static void take_out(struct queue *queue, struct item *item)
{
    struct item *last = queue->heap[--queue->count];
    HASH_DELETE(hh, queue->by_key, item);
    if (last == item)
        return;
    put(queue, item->place, last);
    rise(queue, last);
    sink(queue, last);
}

void queue_add(struct queue *queue, const char *key, int64_t due_us)
{
    struct item *item = NULL;
    HASH_FIND_STR(queue->by_key, key, item);
    if (item) {
        if (due_us < item->due_us) {
            item->due_us = due_us;
            rise(queue, item);
        }
        return;
    }
    if (queue->count == queue->room) {
        queue->room = MAX(2 * queue->room, (size_t)16);
        queue->heap = xreallocarray(queue->heap, queue->room, sizeof(struct item *));
    }
    item = xcalloc(1, sizeof(*item));
    item->key = xstrdup(key);
    item->due_us = due_us;
    item->order = queue->next_order++;
    item->place = queue->count++;
    HASH_ADD_KEYPTR(hh, queue->by_key, item->key, strlen(item->key), item);
    rise(queue, item);
}

void queue_remove(struct queue *queue, const char *key)
{
    struct item *item = NULL;
    HASH_FIND_STR(queue->by_key, key, item);
    if (!item)
        return;
    take_out(queue, item);
    item_free(item);
}

char *queue_take_due(struct queue *queue, int64_t now_us)
{
    if (queue->count == 0 || queue->heap[0]->due_us > now_us)
        return NULL;
    struct item *item = queue->heap[0];
    take_out(queue, item);
    char *key = STEAL(item->key);
    item_free(item);
    return key;
}

int64_t queue_next_us(const struct queue *queue)
{
    return queue->count > 0 ? queue->heap[0]->due_us : INT64_MAX;
}

size_t queue_count(const struct queue *queue)
{
    return queue->count;
}
