/* SPDX-License-Identifier: Apache-2.0
 *
 * The head that is published: a restored backup, a second copy, a replaced file are seen before anything is
 * acted on. */
#include "journal_fixture.h"
#include "vfs_fault.h"

#include "journal/verify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void write_rows(struct journal_fixture *fixture, int count)
{
    for (int i = 0; i < count; i++)
        journal_fixture_note(fixture, "x");
    journal_fixture_settle(fixture);
}

static char *published(struct journal_fixture *fixture)
{
    return journal_head_text(fixture->journal);
}

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *command = xvasprintf(format, args);
    va_end(args);
    assert_int_equal(system(command), 0);
}

static void the_head_is_the_newest_durable_entry(void **state)
{
    struct journal_fixture *fixture = *state;
    write_rows(fixture, 3);
    CLEANUP_FREE char *before = published(fixture);
    journal_fixture_note(fixture, "not durable yet");
    CLEANUP_FREE char *after = published(fixture);
    assert_string_equal(before, after);
    struct journal_head head;
    assert_int_equal(journal_head_parse_json(before, &head, NULL), 0);
    assert_int_equal(head.seq, 4);
    assert_string_equal(head.journal_id, journal_id(fixture->journal));
    CLEANUP_FREE char *hash = hex_encode(head.hash, SHA256_SIZE);
    assert_string_equal(
        journal_fixture_sql(fixture->path, "SELECT lower(hex(hash)) FROM entry WHERE seq = 4"), hash);
}

static void a_head_of_this_file_goes_on(void **state)
{
    struct journal_fixture *fixture = *state;
    write_rows(fixture, 3);
    CLEANUP_FREE char *head = published(fixture);
    write_rows(fixture, 3);
    journal_fixture_restart(fixture);
    assert_int_equal(journal_check_head(fixture->journal, head), JOURNAL_HEAD_GOES_ON);
    assert_int_equal(journal_check_head(fixture->journal, NULL), JOURNAL_HEAD_GOES_ON);
    assert_int_equal(journal_check_head(fixture->journal, ""), JOURNAL_HEAD_GOES_ON);
}

static void an_older_copy_that_was_restored_went_back(void **state)
{
    struct journal_fixture *fixture = *state;
    write_rows(fixture, 3);
    journal_fixture_stop(fixture);
    shell("cp '%s' '%s/monday'", fixture->path, fixture->folder);
    journal_fixture_open(fixture);
    write_rows(fixture, 30);
    CLEANUP_FREE char *head = published(fixture);
    journal_fixture_stop(fixture);
    shell("rm -f '%s'-wal '%s'-shm && cp '%s/monday' '%s'", fixture->path, fixture->path, fixture->folder,
          fixture->path);
    journal_fixture_open(fixture);
    assert_int_equal(journal_check_head(fixture->journal, head), JOURNAL_HEAD_WENT_BACK);
    /* And when it has grown past that seq, the rows are others. */
    write_rows(fixture, 50);
    assert_int_equal(journal_check_head(fixture->journal, head), JOURNAL_HEAD_FORKED);
}

static void two_copies_that_both_ran_have_forked(void **state)
{
    struct journal_fixture *fixture = *state;
    write_rows(fixture, 3);
    journal_fixture_stop(fixture);
    struct journal_fixture second;
    journal_fixture_setup(&second);
    shell("cp '%s' '%s'", fixture->path, second.path);
    journal_fixture_open(fixture);
    journal_fixture_open(&second);
    write_rows(fixture, 2);
    write_rows(&second, 4);
    CLEANUP_FREE char *head = published(fixture);
    assert_string_equal(journal_id(fixture->journal), journal_id(second.journal));
    assert_int_equal(journal_check_head(second.journal, head), JOURNAL_HEAD_FORKED);
    CLEANUP_FREE char *longer = published(&second);
    assert_int_equal(journal_check_head(fixture->journal, longer), JOURNAL_HEAD_WENT_BACK);
    journal_fixture_teardown(&second);
}

static void another_file_is_replaced(void **state)
{
    struct journal_fixture *fixture = *state;
    struct journal_fixture second;
    journal_fixture_setup(&second);
    uint8_t noise[3];
    env_random(second.env, noise, sizeof(noise)); /* both worlds have the same seed */
    journal_fixture_open(&second);
    CLEANUP_FREE char *head = published(fixture);
    assert_int_equal(journal_check_head(second.journal, head), JOURNAL_HEAD_REPLACED);
    journal_fixture_teardown(&second);
}

static void what_is_no_head_is_unreadable(void **state)
{
    static const char *const texts[] = {
        "{",
        "[]",
        "{}",
        "null",
        "{\"journal_id\":\"x\",\"seq\":1,\"hash\":\"00\"}",
        "{\"journal_id\":\"0123456789abcdef0123456789abcdef\",\"seq\":-1,\"hash\":"
        "\"0000000000000000000000000000000000000000000000000000000000000000\"}",
        "{\"journal_id\":\"0123456789abcdef0123456789abcdef\",\"seq\":\"1\",\"hash\":"
        "\"0000000000000000000000000000000000000000000000000000000000000000\"}",
        "{\"journal_id\":\"0123456789abcdef0123456789abcdef\",\"seq\":1,\"hash\":\"00\"}"};
    struct journal_fixture *fixture = *state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        assert_int_equal(journal_check_head(fixture->journal, texts[i]), JOURNAL_HEAD_UNREADABLE);
}

static void a_head_can_be_checked_while_a_commit_is_under_way(void **state)
{
    struct journal_fixture *fixture = *state;
    CLEANUP_FREE char *head = published(fixture);
    journal_fixture_note(fixture, "under way");
    journal_commit(fixture->journal);
    assert_int_equal(journal_check_head(fixture->journal, head), JOURNAL_HEAD_GOES_ON);
    journal_fixture_settle(fixture);
}

static void a_head_as_text_is_read_back(void **state)
{
    static const char *const wrong[] = {
        "",
        "x",
        "::",
        "0123456789abcdef0123456789abcdef:1",
        "0123456789abcdef0123456789abcdef:1:00",
        "0123456789abcdef0123456789abcde:1:0000000000000000000000000000000000000000000000000000000000000000",
        "0123456789abcdef0123456789abcdef::0000000000000000000000000000000000000000000000000000000000000000",
        "0123456789abcdef0123456789abcdef:-1:"
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0123456789abcdef0123456789abcdef:1x:"
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0123456789abcdef0123456789abcdeg:1:0000000000000000000000000000000000000000000000000000000000000000",
        "0123456789abcdef0123456789abcdef:1:"
        "0000000000000000000000000000000000000000000000000000000000000000 "};
    struct journal_fixture *fixture = *state;
    write_rows(fixture, 2);
    struct journal_reader *reader = NULL;
    assert_int_equal(journal_reader_open(fixture->path, &reader, NULL), 0);
    CLEANUP_FREE char *text = journal_head_format(journal_reader_meta(reader));
    struct journal_head head;
    assert_int_equal(journal_head_parse(text, &head, NULL), 0);
    assert_int_equal(head.seq, 3);
    assert_memory_equal(head.hash, journal_reader_meta(reader)->head_hash, SHA256_SIZE);
    journal_reader_close(reader);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        CLEANUP_ERROR struct error *err = NULL;
        assert_int_equal(journal_head_parse(wrong[i], &head, &err), -ERROR_INVALID);
        assert_non_null(strstr(error_text(err), "ID:SEQ:HASH"));
    }
}

/* "It forked" closes every open step: only a row that was read may say so. */
static void a_disk_that_does_not_give_the_row_has_not_forked(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_stop(fixture);
    vfs_fault_register();
    fixture->options.vfs = VFS_FAULT_NAME;
    journal_fixture_open(fixture);
    write_rows(fixture, 3000); /* so that an old row is not among the pages that a start reads */
    CLEANUP_FREE char *id = xstrdup(journal_id(fixture->journal));
    CLEANUP_FREE char *head =
        xasprintf("{\"journal_id\":\"%s\",\"seq\":900,\"hash\":\"%s\"}", id,
                  journal_fixture_sql(fixture->path, "SELECT lower(hex(hash)) FROM entry WHERE seq = 900"));
    journal_fixture_restart(fixture);
    vfs_fault_arm(VFS_FAULT_READ, 1, true, 0);
    enum journal_head_verdict verdict = journal_check_head(fixture->journal, head);
    assert_true(vfs_fault_failures() > 0);
    vfs_fault_reset();
    assert_int_equal(verdict, JOURNAL_HEAD_UNREADABLE);
    assert_int_equal(journal_health(fixture->journal), JOURNAL_DEAD);
    assert_non_null(strstr(journal_problem(fixture->journal), "look at the disk"));
}

#define TEST(function)                                                                                       \
    cmocka_unit_test_setup_teardown(function, journal_fixture_make_open, journal_fixture_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_head_is_the_newest_durable_entry),
        TEST(a_head_of_this_file_goes_on),
        TEST(an_older_copy_that_was_restored_went_back),
        TEST(two_copies_that_both_ran_have_forked),
        TEST(another_file_is_replaced),
        TEST(what_is_no_head_is_unreadable),
        TEST(a_disk_that_does_not_give_the_row_has_not_forked),
        TEST(a_head_can_be_checked_while_a_commit_is_under_way),
        TEST(a_head_as_text_is_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
