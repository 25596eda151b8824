/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/arena.h"

/* Less than what makes free() of glibc merge all small pieces first (64 KiB,
 * FASTBIN_CONSOLIDATION_THRESHOLD). */
enum { CHUNK_BYTES = 32 * 1024 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t used;
    size_t room;
    char bytes[];
};

const void *arena_copy(struct arena *arena, const void *bytes, size_t length)
{
    if (!bytes)
        return NULL;
    struct arena_chunk *chunk = arena->chunks;
    if (!chunk || chunk->room - chunk->used < length) {
        size_t room = MAX((size_t)CHUNK_BYTES, length);
        chunk = xmalloc(sizeof(*chunk) + room);
        *chunk = (struct arena_chunk){.next = arena->chunks, .room = room};
        arena->chunks = chunk;
        arena->bytes += sizeof(*chunk) + room;
    }
    char *copy = chunk->bytes + chunk->used;
    memcpy(copy, bytes, length);
    chunk->used += length;
    return copy;
}

const char *arena_copy_text(struct arena *arena, const char *text)
{
    return text ? arena_copy(arena, text, strlen(text) + 1) : NULL;
}

void arena_merge(struct arena *arena, struct arena *from)
{
    struct arena_chunk **last = &arena->chunks;
    while (*last)
        last = &(*last)->next;
    *last = STEAL(from->chunks);
    arena->bytes += from->bytes;
    from->bytes = 0;
}

void arena_clear(struct arena *arena)
{
    while (arena->chunks && arena->chunks->next) {
        struct arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        arena->bytes -= sizeof(*chunk) + chunk->room;
        free(chunk);
    }
    if (arena->chunks)
        arena->chunks->used = 0;
}

void arena_done(struct arena *arena)
{
    arena_clear(arena);
    free(STEAL(arena->chunks));
    arena->bytes = 0;
}
