/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/open_set.h"

#include <uthash.h>

/* One thing that is open, with its strings behind it in the same allocation. */
struct item {
    int64_t seq;
    UT_hash_handle by_seq;
    UT_hash_handle by_object;
    union {
        struct journal_open_step step;
        struct journal_open_operation operation;
        struct open_wait wait;
    };
    size_t key_length;
    char *key; /* action, object, namespace, name, each with its NUL: no text can imitate another key */
    char *at;  /* where the next string goes */
    char text[];
};

struct table {
    struct item *by_seq;
    struct item *by_object;
};

struct open_set {
    struct table steps;
    struct table operations;
    struct table waits;
};

enum { KEY_PARTS = 4 };

static size_t size_of(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static const char *keep(struct item *item, const char *text)
{
    if (!text)
        return NULL;
    size_t size = strlen(text) + 1;
    memcpy(item->at, text, size);
    const char *kept = item->at;
    item->at += size;
    return kept;
}

static size_t fill_key(char *key, const char *const parts[KEY_PARTS])
{
    char *at = key;
    for (int i = 0; i < KEY_PARTS; i++) {
        size_t size = strlen(parts[i]) + 1;
        memcpy(at, parts[i], size);
        at += size;
    }
    return (size_t)(at - key);
}

static size_t key_size(const char *const parts[KEY_PARTS])
{
    size_t size = 0;
    for (int i = 0; i < KEY_PARTS; i++)
        size += strlen(parts[i]) + 1;
    return size;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static struct item *find_on(const struct table *table, const char *action, const char *object,
                            const char *namespace, const char *name)
{
    const char *const parts[KEY_PARTS] = {or_empty(action), or_empty(object), or_empty(namespace),
                                          or_empty(name)};
    size_t size = key_size(parts);
    char small[512];
    char *key = size <= sizeof(small) ? small : xmalloc(size);
    fill_key(key, parts);
    struct item *item = NULL;
    HASH_FIND(by_object, table->by_object, key, size, item);
    if (key != small)
        free(key);
    return item;
}

static struct item *find(const struct table *table, int64_t seq)
{
    struct item *item = NULL;
    HASH_FIND(by_seq, table->by_seq, &seq, sizeof(seq), item);
    return item;
}

static struct item *add(struct table *table, int64_t seq, size_t text_size, const char *action,
                        const char *object, const char *namespace, const char *name)
{
    const char *const parts[KEY_PARTS] = {or_empty(action), or_empty(object), or_empty(namespace),
                                          or_empty(name)};
    PRE(seq > 0);
    PRE(!find(table, seq) && !find_on(table, action, object, namespace, name));
    size_t size = key_size(parts);
    struct item *item = xcalloc(1, sizeof(*item) + size + text_size);
    item->seq = seq;
    item->key = item->text;
    item->key_length = fill_key(item->key, parts);
    item->at = item->text + size;
    HASH_ADD(by_seq, table->by_seq, seq, sizeof(item->seq), item);
    HASH_ADD_KEYPTR(by_object, table->by_object, item->key, item->key_length, item);
    return item;
}

static void remove_item(struct table *table, int64_t seq)
{
    struct item *item = find(table, seq);
    PRE(item);
    HASH_DELETE(by_seq, table->by_seq, item);
    HASH_DELETE(by_object, table->by_object, item);
    free(item);
}

static void clear(struct table *table)
{
    struct item *item = NULL;
    struct item *next = NULL;
    HASH_ITER (by_seq, table->by_seq, item, next)
        remove_item(table, item->seq);
}

struct open_set *open_set_make(void)
{
    return xcalloc(1, sizeof(struct open_set));
}

void open_set_free(struct open_set *set)
{
    if (!set)
        return;
    clear(&set->steps);
    clear(&set->operations);
    clear(&set->waits);
    free(set);
}

/* --- steps ------------------------------------------------------------------------------------ */

/* In the key of a step only this of its kind counts. */
static const char *step_key_action(bool blocks)
{
    return blocks ? JOURNAL_ACTION_BLOCK : "";
}

struct journal_open_step *open_set_add_step(struct open_set *set, const struct journal_open_step *step)
{
    size_t text_size = size_of(step->nonce) + size_of(step->action) + size_of(step->object) +
                       size_of(step->namespace) + size_of(step->name) + size_of(step->uid) +
                       size_of(step->version) + size_of(step->detail);
    bool blocks = str_equal(step->action, JOURNAL_ACTION_BLOCK);
    struct item *item = add(&set->steps, step->seq, text_size, step_key_action(blocks), step->object,
                            step->namespace, step->name);
    struct journal_open_step *copy = &item->step;
    *copy = *step;
    copy->nonce = keep(item, step->nonce);
    copy->action = keep(item, step->action);
    copy->object = keep(item, step->object);
    copy->namespace = keep(item, step->namespace);
    copy->name = keep(item, step->name);
    copy->uid = keep(item, step->uid);
    copy->version = keep(item, step->version);
    copy->detail = keep(item, step->detail);
    return copy;
}

struct journal_open_step *open_set_step(const struct open_set *set, int64_t seq)
{
    struct item *item = find(&set->steps, seq);
    return item ? &item->step : NULL;
}

struct journal_open_step *open_set_step_on(const struct open_set *set, const char *object,
                                           const char *namespace, const char *name)
{
    struct item *item = find_on(&set->steps, step_key_action(false), object, namespace, name);
    return item ? &item->step : NULL;
}

void open_set_remove_step(struct open_set *set, int64_t seq)
{
    remove_item(&set->steps, seq);
}

void open_set_each_step(const struct open_set *set, void (*each)(void *, const struct journal_open_step *),
                        void *context)
{
    struct item *item = NULL;
    struct item *next = NULL;
    HASH_ITER (by_seq, set->steps.by_seq, item, next)
        each(context, &item->step);
}

int open_set_step_count(const struct open_set *set)
{
    return (int)HASH_CNT(by_seq, set->steps.by_seq);
}

/* --- operations ------------------------------------------------------------------------------- */

struct journal_open_operation *open_set_add_operation(struct open_set *set,
                                                      const struct journal_open_operation *operation)
{
    size_t text_size = size_of(operation->action) + size_of(operation->object) +
                       size_of(operation->namespace) + size_of(operation->name) +
                       size_of(operation->come_from) + size_of(operation->go_to);
    struct item *item = add(&set->operations, operation->seq, text_size, operation->action, operation->object,
                            operation->namespace, operation->name);
    struct journal_open_operation *copy = &item->operation;
    *copy = *operation;
    copy->action = keep(item, operation->action);
    copy->object = keep(item, operation->object);
    copy->namespace = keep(item, operation->namespace);
    copy->name = keep(item, operation->name);
    copy->come_from = keep(item, operation->come_from);
    copy->go_to = keep(item, operation->go_to);
    return copy;
}

struct journal_open_operation *open_set_operation(const struct open_set *set, int64_t seq)
{
    struct item *item = find(&set->operations, seq);
    return item ? &item->operation : NULL;
}

struct journal_open_operation *open_set_operation_on(const struct open_set *set, const char *action,
                                                     const char *object, const char *namespace,
                                                     const char *name)
{
    struct item *item = find_on(&set->operations, action, object, namespace, name);
    return item ? &item->operation : NULL;
}

void open_set_remove_operation(struct open_set *set, int64_t seq)
{
    remove_item(&set->operations, seq);
}

void open_set_each_operation(const struct open_set *set,
                             void (*each)(void *, const struct journal_open_operation *), void *context)
{
    struct item *item = NULL;
    struct item *next = NULL;
    HASH_ITER (by_seq, set->operations.by_seq, item, next)
        each(context, &item->operation);
}

int open_set_operation_count(const struct open_set *set)
{
    return (int)HASH_CNT(by_seq, set->operations.by_seq);
}

/* --- waits ------------------------------------------------------------------------------------ */

struct open_wait *open_set_add_wait(struct open_set *set, const struct open_wait *wait)
{
    size_t text_size =
        size_of(wait->action) + size_of(wait->object) + size_of(wait->namespace) + size_of(wait->name);
    struct item *item =
        add(&set->waits, wait->seq, text_size, wait->action, wait->object, wait->namespace, wait->name);
    struct open_wait *copy = &item->wait;
    *copy = *wait;
    copy->action = keep(item, wait->action);
    copy->object = keep(item, wait->object);
    copy->namespace = keep(item, wait->namespace);
    copy->name = keep(item, wait->name);
    return copy;
}

struct open_wait *open_set_wait(const struct open_set *set, int64_t seq)
{
    struct item *item = find(&set->waits, seq);
    return item ? &item->wait : NULL;
}

struct open_wait *open_set_wait_on(const struct open_set *set, const char *action, const char *object,
                                   const char *namespace, const char *name)
{
    struct item *item = find_on(&set->waits, action, object, namespace, name);
    return item ? &item->wait : NULL;
}

void open_set_remove_wait(struct open_set *set, int64_t seq)
{
    remove_item(&set->waits, seq);
}

void open_set_each_wait(const struct open_set *set, void (*each)(void *, const struct open_wait *),
                        void *context)
{
    struct item *item = NULL;
    struct item *next = NULL;
    HASH_ITER (by_seq, set->waits.by_seq, item, next)
        each(context, &item->wait);
}

int open_set_wait_count(const struct open_set *set)
{
    return (int)HASH_CNT(by_seq, set->waits.by_seq);
}

int64_t open_set_lowest(const struct open_set *set)
{
    int64_t lowest = INT64_MAX;
    const struct table *const tables[] = {&set->steps, &set->operations, &set->waits};
    /* Seqs only rise and the tables keep the order of adding: the first is the lowest. */
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
        if (tables[i]->by_seq && tables[i]->by_seq->seq < lowest)
            lowest = tables[i]->by_seq->seq;
    return lowest;
}
