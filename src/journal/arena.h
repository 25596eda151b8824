/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory for many small texts that are let go together. */
#pragma once

#include "base/alloc.h"

struct arena_chunk;
struct arena {
    struct arena_chunk *chunks; /* newest first */
    size_t bytes;               /* held */
};

/* NULL stays NULL. Aligned for bytes only. */
const void *arena_copy(struct arena *arena, const void *bytes, size_t length);
const char *arena_copy_text(struct arena *arena, const char *text);
/* Takes over what from holds; from is empty afterwards. */
void arena_merge(struct arena *arena, struct arena *from);
/* Forgets all, keeps one chunk for the next use. */
void arena_clear(struct arena *arena);
void arena_done(struct arena *arena);
