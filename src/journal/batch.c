/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/batch.h"

#include "journal/arena.h"

enum { ROWS_AT_FIRST = 16 };

struct batch {
    struct arena arena;
    struct batch_row *rows;
    size_t count;
    size_t room;
};

struct batch *batch_make(void)
{
    return xcalloc(1, sizeof(struct batch));
}

void batch_free(struct batch *batch)
{
    if (!batch)
        return;
    arena_done(&batch->arena);
    free(batch->rows);
    free(batch);
}

void batch_clear(struct batch *batch)
{
    arena_clear(&batch->arena);
    batch->count = 0;
}

size_t batch_count(const struct batch *batch)
{
    return batch->count;
}

size_t batch_bytes(const struct batch *batch)
{
    return batch->arena.bytes + batch->room * sizeof(*batch->rows);
}

struct batch_row *batch_row(struct batch *batch, size_t index)
{
    PRE(index < batch->count);
    return &batch->rows[index];
}

const void *batch_copy(struct batch *batch, const void *bytes, size_t length)
{
    return arena_copy(&batch->arena, bytes, length);
}

const char *batch_copy_text(struct batch *batch, const char *text)
{
    return arena_copy_text(&batch->arena, text);
}

static void make_room(struct batch *batch, size_t more)
{
    if (batch->room - batch->count >= more)
        return;
    size_t room = MAX(2 * batch->room, batch->count + MAX(more, (size_t)ROWS_AT_FIRST));
    batch->rows = xreallocarray(batch->rows, room, sizeof(*batch->rows));
    batch->room = room;
}

struct batch_row *batch_add(struct batch *batch, const struct journal_entry *entry)
{
    make_room(batch, 1);
    struct batch_row *row = &batch->rows[batch->count++];
    *row = (struct batch_row){.entry = *entry};
    struct journal_entry *copy = &row->entry;
    copy->action = batch_copy_text(batch, entry->action);
    copy->object = batch_copy_text(batch, entry->object);
    copy->namespace = batch_copy_text(batch, entry->namespace);
    copy->name = batch_copy_text(batch, entry->name);
    copy->uid = batch_copy_text(batch, entry->uid);
    copy->version = batch_copy_text(batch, entry->version);
    copy->audit_id = batch_copy_text(batch, entry->audit_id);
    copy->digest = batch_copy(batch, entry->digest, SHA256_SIZE);
    copy->reason = batch_copy_text(batch, entry->reason);
    copy->detail = batch_copy_text(batch, entry->detail);
    copy->hash = NULL;
    return row;
}

void batch_append_all(struct batch *batch, struct batch **from_slot)
{
    struct batch *from = STEAL(*from_slot);
    if (!from)
        return;
    make_room(batch, from->count);
    if (from->count > 0)
        memcpy(batch->rows + batch->count, from->rows, from->count * sizeof(*from->rows));
    batch->count += from->count;
    arena_merge(&batch->arena, &from->arena);
    batch_free(from);
}
