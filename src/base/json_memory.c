/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_memory.h"

/* Where a sanitizer watches, each block is a chunk of its own: it sees what is used after it was freed. */
#if defined(__SANITIZE_ADDRESS__)
#define EACH_ALONE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define EACH_ALONE 1
#endif
#endif
#ifndef EACH_ALONE
#define EACH_ALONE 0
#endif

enum { CHUNK_MIN = 512, CHUNK_MAX = 32 * 1024 };

struct json_chunk {
    size_t live; /* blocks that are not freed; the builder counts as one */
    size_t used;
    size_t size; /* of bytes */
    char bytes[];
};

struct block {
    struct json_chunk *chunk; /* NULL: allocated alone */
    char bytes[];
};

_Static_assert(sizeof(struct json_chunk) % _Alignof(cJSON) == 0, "blocks are aligned for nodes");
_Static_assert(sizeof(struct block) % _Alignof(cJSON) == 0, "what is in them too");

static void chunk_release(struct json_chunk *chunk)
{
    ENSURE(chunk->live > 0);
    if (--chunk->live == 0)
        free(chunk);
}

static struct json_chunk *chunk_make(size_t size)
{
    struct json_chunk *chunk = xmalloc(sizeof(*chunk) + size);
    *chunk = (struct json_chunk){.live = 1, .size = size};
    return chunk;
}

void json_memory_begin(struct json_memory *memory, size_t expected)
{
    *memory = (struct json_memory){.next_size = MIN(MAX(expected, (size_t)CHUNK_MIN), (size_t)CHUNK_MAX)};
}

static size_t block_size(size_t size)
{
    ENSURE(size <= SIZE_MAX / 2);
    return sizeof(struct block) + ((size + _Alignof(cJSON) - 1) & ~(_Alignof(cJSON) - 1));
}

static void begin_chunk(struct json_memory *memory, size_t needed)
{
    json_memory_done(memory);
    memory->chunk = chunk_make(EACH_ALONE ? needed : MAX(memory->next_size, needed));
    memory->next_size = MIN(2 * memory->next_size, (size_t)CHUNK_MAX);
}

/* Aligned for a node and not cleared. */
static inline void *take(struct json_memory *memory, size_t size)
{
    size_t needed = block_size(size);
    if (EACH_ALONE || !memory->chunk || memory->chunk->size - memory->chunk->used < needed)
        begin_chunk(memory, needed);
    struct json_chunk *chunk = memory->chunk;
    struct block *block = (struct block *)(void *)(chunk->bytes + chunk->used);
    block->chunk = chunk;
    chunk->used += needed;
    chunk->live++;
    return block->bytes;
}

cJSON *json_memory_take_node(struct json_memory *memory, int type, size_t key_size, size_t text_size)
{
    ENSURE(key_size <= SIZE_MAX / 8 && text_size <= SIZE_MAX / 8);
    cJSON *node = take(memory, sizeof(*node) + key_size + text_size);
    char *texts = (char *)(node + 1);
    *node = (cJSON){.type = type};
    /* So marked, cJSON_Delete() does not free them by themselves, and a new key takes the old one's place. */
    if (key_size) {
        node->type |= cJSON_StringIsConst;
        node->string = texts;
    }
    if (text_size) {
        node->type |= cJSON_IsReference;
        node->valuestring = texts + key_size;
    }
    return node;
}

void json_memory_done(struct json_memory *memory)
{
    if (memory->chunk)
        chunk_release(STEAL(memory->chunk));
}

/* --- cJSON's hooks -------------------------------------------------------------------------------------- */

static void *take_alone(size_t size)
{
    struct block *block = xmalloc(block_size(size));
    block->chunk = NULL;
    return block->bytes;
}

static void give_back(void *bytes)
{
    if (!bytes)
        return;
    struct block *block = (struct block *)(void *)((char *)bytes - offsetof(struct block, bytes));
    if (block->chunk)
        chunk_release(block->chunk);
    else
        free(block);
}

/* Before anything can have made a tree: blocks of two allocators must not meet. */
__attribute__((constructor)) static void give_hooks(void)
{
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = take_alone, .free_fn = give_back});
}
