/* SPDX-License-Identifier: Apache-2.0
 *
 * The small words: allocation and strings, buffers, errors, hashes. */
#include "base/buf.h"
#include "base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- strings --- */

static void strings_compare_and_copy(void **state)
{
    (void)state;
    assert_true(str_equal(NULL, NULL));
    assert_false(str_equal(NULL, ""));
    assert_false(str_equal("a", NULL));
    assert_true(str_equal("ab", "ab"));
    assert_true(str_starts_with("mysql-0", "mysql"));
    assert_false(str_starts_with("my", "mysql"));
    assert_true(str_ends_with("mysql-0", "-0"));
    assert_false(str_ends_with("0", "-0"));
    assert_true(str_ends_with("x", ""));
    assert_true(str_has_control_character("a\nb"));
    assert_true(str_has_control_character("\x7f"));
    assert_false(str_has_control_character("a b \xC3\xA9"));
    assert_false(str_has_control_character(""));
    char *slot = NULL;
    str_replace(&slot, "one");
    str_replace(&slot, slot); /* itself */
    assert_string_equal(slot, "one");
    str_replace(&slot, slot + 1); /* a part of itself */
    assert_string_equal(slot, "ne");
    char *stolen = STEAL(slot);
    assert_null(slot);
    str_replace(&stolen, NULL);
    assert_null(stolen);
    CLEANUP_FREE char *copy = xmemdup0("a\0b", 3);
    assert_memory_equal(copy, "a\0b", 4);
    CLEANUP_FREE char *none = xmemdup0(NULL, 0);
    assert_string_equal(none, "");
}

static void a_broken_invariant_ends_the_process(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        close(STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        ENSURE(1 == 2);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* --- buffers --- */

static void a_buffer_refuses_what_does_not_fit_and_keeps_the_rest(void **state)
{
    (void)state;
    CLEANUP_BUF struct buf buf = BUF_INIT(5);
    assert_string_equal(buf_text(&buf), "");
    assert_int_equal(buf_add_text(&buf, "abc"), 0);
    assert_int_equal(buf_add_text(&buf, "def"), -ERROR_TOO_LARGE);
    assert_true(buf.overflowed);
    assert_string_equal(buf_text(&buf), "abc");
    assert_int_equal(buf_addf(&buf, "%d", 45), 0);
    assert_string_equal(buf_text(&buf), "abc45");
    assert_int_equal(buf_add_char(&buf, 'x'), -ERROR_TOO_LARGE);
    assert_int_equal(buf_add(&buf, NULL, 0), 0);
    buf_clear(&buf);
    assert_false(buf.overflowed);
    assert_int_equal(buf.length, 0);
    assert_string_equal(buf_text(&buf), "");
    assert_int_equal(buf_add(&buf, "a\0b", 3), 0);
    assert_int_equal(buf.length, 3);
}

static void a_buffer_drops_its_front_and_hands_itself_over(void **state)
{
    (void)state;
    CLEANUP_BUF struct buf buf = BUF_INIT(1000);
    buf_drop_front(&buf, 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(buf_addf(&buf, "%02d,", i), 0);
    buf_drop_front(&buf, 297);
    assert_string_equal(buf_text(&buf), "99,");
    CLEANUP_FREE char *taken = buf_take(&buf);
    assert_string_equal(taken, "99,");
    assert_int_equal(buf.length, 0);
    assert_int_equal(buf.max, 1000);
    CLEANUP_FREE char *empty = buf_take(&buf);
    assert_string_equal(empty, "");
}

static void a_buffer_is_cut_and_takes_numbers(void **state)
{
    (void)state;
    CLEANUP_BUF struct buf buf = BUF_INIT(30);
    buf_cut(&buf, 0);
    assert_string_equal(buf_text(&buf), "");
    static const struct {
        int64_t number;
        const char *text;
    } rows[] = {{0, "0"},
                {7, "7"},
                {-10, "-10"},
                {INT64_MAX, "9223372036854775807"},
                {INT64_MIN, "-9223372036854775808"}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        buf_cut(&buf, 0);
        assert_int_equal(buf_add_int64(&buf, rows[i].number), 0);
        assert_string_equal(buf_text(&buf), rows[i].text);
    }
    buf_cut(&buf, 3);
    assert_string_equal(buf_text(&buf), "-92");
    assert_int_equal(buf.length, 3);
}

static void a_buffer_of_no_size_holds_nothing(void **state)
{
    (void)state;
    CLEANUP_BUF struct buf buf = BUF_INIT(0);
    assert_int_equal(buf_add_char(&buf, 'x'), -ERROR_TOO_LARGE);
    assert_int_equal(buf_add_text(&buf, ""), 0);
}

/* --- errors --- */

static void an_error_has_a_code_and_a_sentence_with_context(void **state)
{
    (void)state;
    CLEANUP_ERROR struct error *err = NULL;
    int result = error_set(&err, ERROR_CONFLICT, "pod %s moved", "mysql-0");
    assert_int_equal(result, -ERROR_CONFLICT);
    assert_int_equal(error_wrap(&err, result, "set %s", "mysql"), -ERROR_CONFLICT);
    assert_string_equal(error_text(err), "set mysql: pod mysql-0 moved");
    assert_int_equal(err->code, ERROR_CONFLICT);
    assert_int_equal(error_set(NULL, ERROR_GONE, "x"), -ERROR_GONE);
    assert_int_equal(error_wrap(NULL, -ERROR_GONE, "x"), -ERROR_GONE);
    assert_string_equal(error_text(NULL), "");
    for (int code = ERROR_NONE; code <= ERROR_FORKED; code++)
        assert_true(strlen(error_code_text((enum error_code)code)) > 2);
}

static void errno_chooses_the_code(void **state)
{
    (void)state;
    static const struct {
        int number;
        enum error_code code;
    } rows[] = {{ENOENT, ERROR_NOT_FOUND}, {EEXIST, ERROR_EXISTS},       {EACCES, ERROR_FORBIDDEN},
                {ENOSPC, ERROR_NO_SPACE},  {ETIMEDOUT, ERROR_TIMED_OUT}, {ECONNREFUSED, ERROR_UNREACHABLE},
                {EIO, ERROR_FAILED}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_ERROR struct error *err = NULL;
        assert_int_equal(error_set_errno(&err, rows[i].number, "file %d", 1), -(int)rows[i].code);
        assert_true(str_starts_with(err->text, "file 1: "));
        assert_non_null(strstr(err->text, strerror(rows[i].number)));
    }
}

/* --- hashes --- */

static void digests_are_those_of_the_standard(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *digest;
    } rows[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    struct sha256 *hash = sha256_make();
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        uint8_t digest[SHA256_SIZE];
        size_t length = strlen(rows[i].text);
        sha256_once(rows[i].text, length, digest);
        CLEANUP_FREE char *once = hex_encode(digest, sizeof(digest));
        assert_string_equal(once, rows[i].digest);
        sha256_begin(hash); /* the context is used again and again */
        sha256_add(hash, rows[i].text, length / 2);
        sha256_add(hash, rows[i].text + length / 2, length - length / 2);
        sha256_end(hash, digest);
        CLEANUP_FREE char *parts = hex_encode(digest, sizeof(digest));
        assert_string_equal(parts, rows[i].digest);
    }
    sha256_free(hash);
    sha256_free(NULL);
}

static void hexadecimal_is_read_strictly(void **state)
{
    (void)state;
    uint8_t bytes[2];
    assert_true(hex_decode("0fA9", bytes, 2));
    assert_int_equal(bytes[0], 0x0f);
    assert_int_equal(bytes[1], 0xa9);
    static const char *const bad[] = {"", "0f", "0f0", "0f0f0", "0g00", "0f 0", "-f00", "0x00"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(hex_decode(bad[i], bytes, 2));
}

static void white_space_is_trimmed_from_the_end_only(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{" a b \r\n\t", " a b"}, {"a", "a"}, {" \n ", ""}, {"", ""}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_BUF struct buf buf = BUF_INIT(100);
        assert_int_equal(buf_add_text(&buf, rows[i][0]), 0);
        buf_trim_end(&buf);
        assert_string_equal(buf_text(&buf), rows[i][1]);
        assert_int_equal(buf.length, strlen(rows[i][1]));
    }
    CLEANUP_BUF struct buf empty = BUF_INIT(1);
    buf_trim_end(&empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(white_space_is_trimmed_from_the_end_only),
        cmocka_unit_test(strings_compare_and_copy),
        cmocka_unit_test(a_broken_invariant_ends_the_process),
        cmocka_unit_test(a_buffer_refuses_what_does_not_fit_and_keeps_the_rest),
        cmocka_unit_test(a_buffer_drops_its_front_and_hands_itself_over),
        cmocka_unit_test(a_buffer_is_cut_and_takes_numbers),
        cmocka_unit_test(a_buffer_of_no_size_holds_nothing),
        cmocka_unit_test(an_error_has_a_code_and_a_sentence_with_context),
        cmocka_unit_test(errno_chooses_the_code),
        cmocka_unit_test(digests_are_those_of_the_standard),
        cmocka_unit_test(hexadecimal_is_read_strictly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
