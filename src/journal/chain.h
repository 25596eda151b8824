/* SPDX-License-Identifier: Apache-2.0
 *
 * The hash chain (journal.md, "Tamper evidence"): each entry's hash covers every column of its form and the
 * hash of the entry before. Knows rows, not files. */
#pragma once

#include "journal/entry.h"

/* The list of columns that is hashed. A new hashed column is a new form; old rows verify by theirs for ever.
 *
 * Form 1: one byte 'E', then each of seq, form, kind, run, epoch, at_us, mono_us, operation, step, attempt,
 * action, object, namespace, name, uid, version, http, audit_id, digest, reason, detail as a 4-byte
 * big-endian length and that many bytes (NULL: length 0xffffffff and none; integers: 8 bytes, big-endian
 * two's complement), then the 32 bytes of the hash of the row before. */
enum { CHAIN_FORM_NEWEST = 1 };

struct chain; /* a reusable context: one a thread */
struct chain *chain_make(void);
void chain_free(struct chain *chain);
/* Hash of the row, given the hash of the row before. false: the form is none that we know. */
bool chain_hash(struct chain *chain, const struct journal_entry *entry,
                const uint8_t before[static SHA256_SIZE], uint8_t ret_hash[static SHA256_SIZE]);
/* What stands before the first row: binds the chain to the journal's identity. */
void chain_genesis(const char *journal_id, int64_t created_us, uint8_t ret_hash[static SHA256_SIZE]);
/* SHA-256(salt || body): provable while the salt is kept, not to be guessed after. */
enum { CHAIN_SALT_SIZE = 16 };
void chain_digest(struct chain *chain, const uint8_t salt[static CHAIN_SALT_SIZE], const void *body,
                  size_t length, uint8_t ret_digest[static SHA256_SIZE]);
