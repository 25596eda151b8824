/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/intern.h"

#include <uthash.h>

struct interned {
    UT_hash_handle hh;
    uint32_t count;
    char text[];
};

struct intern {
    struct interned *table;
};

struct intern *intern_make(void)
{
    return xcalloc(1, sizeof(struct intern));
}

void intern_free(struct intern *pool)
{
    if (!pool)
        return;
    ENSURE(pool->table == NULL);
    free(pool);
}

const char *intern_get(struct intern *pool, const char *text)
{
    if (!text)
        return NULL;
    size_t length = strlen(text);
    struct interned *found = NULL;
    HASH_FIND(hh, pool->table, text, length, found);
    if (!found) {
        found = xmalloc(sizeof(*found) + length + 1);
        found->count = 0;
        memcpy(found->text, text, length + 1);
        HASH_ADD_KEYPTR(hh, pool->table, found->text, length, found);
    }
    ENSURE(found->count < UINT32_MAX);
    found->count++;
    return found->text;
}

void intern_put(struct intern *pool, const char *text)
{
    if (!text)
        return;
    struct interned *found = NULL;
    HASH_FIND(hh, pool->table, text, strlen(text), found);
    PRE(found && found->text == text && found->count > 0);
    if (--found->count > 0)
        return;
    HASH_DEL(pool->table, found);
    free(found);
}

size_t intern_count(const struct intern *pool)
{
    return HASH_COUNT(pool->table);
}
