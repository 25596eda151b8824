/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/chain.h"

#include <stdio.h>

enum { DOMAIN_ENTRY = 'E', DOMAIN_JOURNAL = 'J', LENGTH_NULL = -1 };

struct chain {
    struct sha256 *hash;
    uint8_t *bytes; /* the row as it is hashed: one call of SHA-256 a row is twice as fast as one a column */
    size_t length;
    size_t room;
};

struct chain *chain_make(void)
{
    struct chain *chain = xcalloc(1, sizeof(*chain));
    chain->hash = sha256_make();
    return chain;
}

void chain_free(struct chain *chain)
{
    if (!chain)
        return;
    sha256_free(chain->hash);
    free(chain->bytes);
    free(chain);
}

static void put_bytes(struct chain *chain, const void *bytes, size_t length)
{
    if (chain->room - chain->length < length) {
        chain->room = 2 * chain->room + length + 1024;
        chain->bytes = xreallocarray(chain->bytes, chain->room, 1);
    }
    memcpy(chain->bytes + chain->length, bytes, length);
    chain->length += length;
}

static void put_length(struct chain *chain, int64_t length)
{
    PRE(length >= LENGTH_NULL && length < UINT32_MAX);
    uint32_t number = (uint32_t)length;
    uint8_t bytes[4] = {(uint8_t)(number >> 24), (uint8_t)(number >> 16), (uint8_t)(number >> 8),
                        (uint8_t)number};
    put_bytes(chain, bytes, sizeof(bytes));
}

static void put_number(struct chain *chain, int64_t value)
{
    uint64_t number = (uint64_t)value;
    uint8_t bytes[8];
    for (int i = 7; i >= 0; i--, number >>= 8)
        bytes[i] = (uint8_t)number;
    put_length(chain, sizeof(bytes));
    put_bytes(chain, bytes, sizeof(bytes));
}

/* Columns that are NULL in the file are zero in the struct. */
static void put_number_or_null(struct chain *chain, int64_t value)
{
    if (value == 0)
        put_length(chain, LENGTH_NULL);
    else
        put_number(chain, value);
}

static void put_blob(struct chain *chain, const void *bytes, size_t length)
{
    put_length(chain, bytes ? (int64_t)length : LENGTH_NULL);
    if (bytes)
        put_bytes(chain, bytes, length);
}

static void put_text(struct chain *chain, const char *text)
{
    put_blob(chain, text, text ? strlen(text) : 0);
}

static void put_form_1(struct chain *chain, const struct journal_entry *entry)
{
    static const uint8_t domain = DOMAIN_ENTRY;
    put_bytes(chain, &domain, 1);
    put_number(chain, entry->seq);
    put_number(chain, entry->form);
    put_text(chain, journal_kind_text(entry->kind));
    put_number(chain, entry->run);
    put_number(chain, entry->epoch);
    put_number(chain, entry->at_us);
    put_number(chain, entry->mono_us);
    put_number_or_null(chain, entry->operation);
    put_number_or_null(chain, entry->step);
    put_number_or_null(chain, entry->attempt);
    put_text(chain, entry->action);
    put_text(chain, entry->object);
    put_text(chain, entry->namespace);
    put_text(chain, entry->name);
    put_text(chain, entry->uid);
    put_text(chain, entry->version);
    put_number_or_null(chain, entry->http);
    put_text(chain, entry->audit_id);
    put_blob(chain, entry->digest, SHA256_SIZE);
    put_text(chain, entry->reason);
    put_text(chain, entry->detail);
}

bool chain_hash(struct chain *chain, const struct journal_entry *entry,
                const uint8_t before[static SHA256_SIZE], uint8_t ret_hash[static SHA256_SIZE])
{
    if (entry->form != 1)
        return false;
    chain->length = 0;
    put_form_1(chain, entry);
    put_bytes(chain, before, SHA256_SIZE);
    sha256_begin(chain->hash);
    sha256_add(chain->hash, chain->bytes, chain->length);
    sha256_end(chain->hash, ret_hash);
    return true;
}

void chain_genesis(const char *journal_id, int64_t created_us, uint8_t ret_hash[static SHA256_SIZE])
{
    CLEANUP_FREE char *text = xasprintf("%c%s:%lld", DOMAIN_JOURNAL, journal_id, (long long)created_us);
    sha256_once(text, strlen(text), ret_hash);
}

void chain_digest(struct chain *chain, const uint8_t salt[static CHAIN_SALT_SIZE], const void *body,
                  size_t length, uint8_t ret_digest[static SHA256_SIZE])
{
    sha256_begin(chain->hash);
    sha256_add(chain->hash, salt, CHAIN_SALT_SIZE);
    sha256_add(chain->hash, body, length);
    sha256_end(chain->hash, ret_digest);
}
