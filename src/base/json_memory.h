/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the nodes and texts of cJSON trees live. A tree that is read or copied takes a block for each node,
 * with its texts, from a few large chunks; a chunk goes back when the last of its blocks is freed. cJSON
 * itself, whose hooks these are from before main(), gets blocks of their own: trees may be changed and mixed
 * as ever, and cJSON_Delete() frees either kind. No locks: two threads never share a tree. Only json*.c
 * includes this. */
#pragma once

#include "base/alloc.h"

#include <cjson/cJSON.h>

struct json_chunk;

/* What one builder of a tree takes blocks from; it may free blocks meanwhile. */
struct json_memory {
    struct json_chunk *chunk; /* the newest; held until json_memory_done() */
    size_t next_size;         /* bytes, of the next one */
};

/* expected: bytes that the tree will need, a guess. */
void json_memory_begin(struct json_memory *memory, size_t expected);
/* A node without neighbours and its texts in one block: string has room for key_size bytes and valuestring
 * for text_size, both not cleared, or is NULL for 0. cJSON_Delete() frees it; a container has no text. */
cJSON *json_memory_take_node(struct json_memory *memory, int type, size_t key_size, size_t text_size);
/* No block is taken any more; those that were taken live on. */
void json_memory_done(struct json_memory *memory);
