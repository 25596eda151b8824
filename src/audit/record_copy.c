/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader's rows live during a callback only; these copies keep the strings behind the struct, in one
 * allocation. */
#include "audit/records.h"

/* Where the next string of a copy goes; text NULL: only the room is summed up. */
struct packer {
    char *at;
    size_t room;
};

static void pack(struct packer *packer, const char **slot, const char *text)
{
    if (!text)
        return;
    size_t length = strlen(text) + 1;
    packer->room += length;
    if (packer->at) {
        *slot = memcpy(packer->at, text, length);
        packer->at += length;
    }
}

static void pack_bytes(struct packer *packer, const uint8_t **slot, const uint8_t *bytes)
{
    if (!bytes)
        return;
    packer->room += SHA256_SIZE;
    if (packer->at) {
        *slot = memcpy(packer->at, bytes, SHA256_SIZE);
        packer->at += SHA256_SIZE;
    }
}

static void pack_entry(struct packer *packer, struct journal_entry *copy, const struct journal_entry *entry)
{
    pack(packer, &copy->action, entry->action);
    pack(packer, &copy->object, entry->object);
    pack(packer, &copy->namespace, entry->namespace);
    pack(packer, &copy->name, entry->name);
    pack(packer, &copy->uid, entry->uid);
    pack(packer, &copy->version, entry->version);
    pack(packer, &copy->audit_id, entry->audit_id);
    pack(packer, &copy->reason, entry->reason);
    pack(packer, &copy->detail, entry->detail);
    pack_bytes(packer, &copy->digest, entry->digest);
    pack_bytes(packer, &copy->hash, entry->hash);
}

static void pack_operation(struct packer *packer, struct journal_operation_record *copy,
                           const struct journal_operation_record *operation)
{
    pack(packer, &copy->kind, operation->kind);
    pack(packer, &copy->object, operation->object);
    pack(packer, &copy->namespace, operation->namespace);
    pack(packer, &copy->name, operation->name);
    pack(packer, &copy->come_from, operation->come_from);
    pack(packer, &copy->go_to, operation->go_to);
    pack(packer, &copy->outcome, operation->outcome);
}

static void pack_step(struct packer *packer, struct journal_step_record *copy,
                      const struct journal_step_record *step)
{
    pack_entry(packer, &copy->intent, &step->intent);
    if (step->has_outcome)
        pack_entry(packer, &copy->outcome, &step->outcome);
    pack(packer, &copy->key, step->key);
}

static void pack_wait(struct packer *packer, struct journal_wait_record *copy,
                      const struct journal_wait_record *wait)
{
    pack_entry(packer, &copy->begin, &wait->begin);
    if (wait->has_end)
        pack_entry(packer, &copy->end, &wait->end);
    pack(packer, &copy->outcome, wait->outcome);
}

static void pack_run(struct packer *packer, struct journal_run_record *copy,
                     const struct journal_run_record *run)
{
    pack(packer, &copy->nonce, run->nonce);
    pack(packer, &copy->identity, run->identity);
    pack(packer, &copy->version, run->version);
    pack(packer, &copy->stop_reason, run->stop_reason);
}

#define DEFINE_COPY(type, name)                                                                              \
    struct type *record_copy_##name(const struct type *original)                                             \
    {                                                                                                        \
        struct type scratch = *original;                                                                     \
        struct packer measure = {0};                                                                         \
        pack_##name(&measure, &scratch, original);                                                           \
        struct type *copy = xmalloc(sizeof *copy + measure.room);                                            \
        *copy = *original;                                                                                   \
        struct packer packer = {.at = (char *)(copy + 1)};                                                   \
        pack_##name(&packer, copy, original);                                                                \
        POST(packer.room == measure.room);                                                                   \
        return copy;                                                                                         \
    }

DEFINE_COPY(journal_entry, entry)
DEFINE_COPY(journal_operation_record, operation)
DEFINE_COPY(journal_step_record, step)
DEFINE_COPY(journal_wait_record, wait)
DEFINE_COPY(journal_run_record, run)
