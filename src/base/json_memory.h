/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the nodes and texts of cJSON trees live. A tree that is read or copied takes its blocks from a few
 * large chunks; a chunk goes back when the last of its blocks is freed. cJSON itself, whose hooks these are
 * from before main(), gets blocks of their own: trees may be changed and mixed as ever, and cJSON_Delete()
 * frees either kind. No locks: two threads never share a tree. Only json*.c includes this. */
#pragma once

#include "base/alloc.h"

struct json_chunk;

/* What one builder of a tree takes blocks from; it may free blocks meanwhile. */
struct json_memory {
    struct json_chunk *chunk; /* the newest; held until json_memory_done() */
    size_t next_size;         /* bytes, of the next one */
};

/* expected: bytes that the tree will need, a guess. */
void json_memory_begin(struct json_memory *memory, size_t expected);
/* A block, aligned for a cJSON node and not cleared; freed by cJSON_Delete() or cJSON_free(). */
void *json_memory_take(struct json_memory *memory, size_t size);
/* No block is taken any more; those that were taken live on. */
void json_memory_done(struct json_memory *memory);
