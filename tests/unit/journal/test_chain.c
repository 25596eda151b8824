/* SPDX-License-Identifier: Apache-2.0
 *
 * The hash of a row, form 1: what it is to the byte, for ever, and that no column escapes it. */
#include "journal/chain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const uint8_t digest[SHA256_SIZE] = {1, 2, 3};

static const struct journal_entry full = {
    .seq = 7,
    .form = 1,
    .kind = JOURNAL_INTENT,
    .run = 1,
    .epoch = 3,
    .at_us = 1796022000000000,
    .mono_us = 1000,
    .operation = 6,
    .step = 7,
    .attempt = 2,
    .action = "patch",
    .object = "Pod",
    .namespace = "db",
    .name = "mysql-4",
    .uid = "u",
    .version = "1042",
    .http = 200,
    .audit_id = "neo-1",
    .digest = digest,
    .reason = "image",
    .detail = "{}",
};

static char *hash_of(const struct journal_entry *entry, const uint8_t *before)
{
    uint8_t hash[SHA256_SIZE];
    struct chain *chain = chain_make();
    assert_true(chain_hash(chain, entry, before, hash));
    chain_free(chain);
    return hex_encode(hash, sizeof(hash));
}

/* Made independently of this program, from the words in chain.h. */
static void form_1_is_this_to_the_byte(void **state)
{
    (void)state;
    uint8_t before[SHA256_SIZE];
    memset(before, 0xab, sizeof(before));
    CLEANUP_FREE char *hash = hash_of(&full, before);
    assert_string_equal(hash, "e0dedcfcfa42511b89090e892e40ece5fdc6c623f9c1bcd130b39f5372f0b76b");
    struct journal_entry bare = {.seq = 1, .form = 1, .kind = JOURNAL_NOTE, .run = 1, .at_us = -1};
    CLEANUP_FREE char *bare_hash = hash_of(&bare, before);
    assert_string_equal(bare_hash, "994f1a640925dde1db1ce74bd8423aa65971b11e204cb2781f1125390cddcb92");
}

static void the_chain_begins_with_the_journals_identity(void **state)
{
    (void)state;
    uint8_t genesis[SHA256_SIZE];
    chain_genesis("0123456789abcdef0123456789abcdef", 1796022000000000, genesis);
    CLEANUP_FREE char *hash = hex_encode(genesis, sizeof(genesis));
    assert_string_equal(hash, "5e2d66f62d65b49df913de2d9597bb7954a26cad6e5ed10d71441568896882a8");
}

static void no_column_escapes(void **state)
{
    (void)state;
    static const uint8_t other_digest[SHA256_SIZE] = {9};
    uint8_t before[SHA256_SIZE] = {0};
    uint8_t other_before[SHA256_SIZE] = {1};
    struct journal_entry rows[24];
    size_t count = 0;
#define CHANGED(assignment)                                                                                  \
    do {                                                                                                     \
        rows[count] = full;                                                                                  \
        rows[count++].assignment;                                                                            \
    } while (0)
    CHANGED(seq = 8);
    CHANGED(kind = JOURNAL_NOTE);
    CHANGED(run = 2);
    CHANGED(epoch = 4);
    CHANGED(at_us = 5);
    CHANGED(mono_us = 5);
    CHANGED(operation = 5);
    CHANGED(step = 5);
    CHANGED(attempt = 5);
    CHANGED(action = "x");
    CHANGED(object = "x");
    CHANGED(namespace = "x");
    CHANGED(name = "x");
    CHANGED(uid = "x");
    CHANGED(version = "x");
    CHANGED(http = 201);
    CHANGED(audit_id = "x");
    CHANGED(digest = other_digest);
    CHANGED(reason = "x");
    CHANGED(detail = "x");
    CHANGED(reason = NULL);
    CHANGED(reason = "");
#undef CHANGED
    CLEANUP_FREE char *base = hash_of(&full, before);
    CLEANUP_FREE char *after_another = hash_of(&full, other_before);
    assert_string_not_equal(base, after_another);
    for (size_t i = 0; i < count; i++) {
        CLEANUP_FREE char *hash = hash_of(&rows[i], before);
        if (str_equal(base, hash))
            fail_msg("change %zu does not change the hash", i);
    }
    /* NULL is not empty. */
    CLEANUP_FREE char *null = hash_of(&rows[count - 2], before);
    CLEANUP_FREE char *empty = hash_of(&rows[count - 1], before);
    assert_string_not_equal(null, empty);
}

static void what_moves_from_one_column_to_the_next_changes_the_hash(void **state)
{
    (void)state;
    uint8_t before[SHA256_SIZE] = {0};
    struct journal_entry left = full;
    struct journal_entry right = full;
    left.action = "ab";
    left.object = "c";
    right.action = "a";
    right.object = "bc";
    CLEANUP_FREE char *left_hash = hash_of(&left, before);
    CLEANUP_FREE char *right_hash = hash_of(&right, before);
    assert_string_not_equal(left_hash, right_hash);
}

static void a_form_that_is_none_is_not_hashed(void **state)
{
    (void)state;
    uint8_t before[SHA256_SIZE] = {0};
    uint8_t hash[SHA256_SIZE];
    struct journal_entry entry = full;
    entry.form = 2;
    struct chain *chain = chain_make();
    assert_false(chain_hash(chain, &entry, before, hash));
    chain_free(chain);
}

static void kinds_have_the_words_of_the_file(void **state)
{
    (void)state;
    for (int kind = 0; kind < JOURNAL_KIND_COUNT; kind++)
        assert_int_equal(journal_kind_of_text(journal_kind_text((enum journal_kind)kind)), kind);
    assert_int_equal(journal_kind_of_text("reverted"), -1);
    assert_int_equal(journal_kind_of_text(NULL), -1);
    assert_true(journal_kind_is_outcome(JOURNAL_NOT_SENT));
    assert_false(journal_kind_is_outcome(JOURNAL_UNKNOWN));
    assert_false(journal_kind_is_outcome(JOURNAL_LATE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(form_1_is_this_to_the_byte),
        cmocka_unit_test(the_chain_begins_with_the_journals_identity),
        cmocka_unit_test(no_column_escapes),
        cmocka_unit_test(what_moves_from_one_column_to_the_next_changes_the_hash),
        cmocka_unit_test(a_form_that_is_none_is_not_hashed),
        cmocka_unit_test(kinds_have_the_words_of_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
