/* SPDX-License-Identifier: Apache-2.0
 *
 * The real transport against answers that are cut, frozen, slow, without end, or no HTTP at all. */
#include "hostile_client.h"
#include "hostile_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void begin(struct hostile_scene *scene, hostile_serve *serve, const void *context)
{
    struct hostile_options options = {.serve = serve, .context = (void *)context};
    hostile_scene_begin(scene, &options);
}

/* --- broken answers --- */

static void a_cut_answer_keeps_its_status(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{\"half\":",
        "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n{\"half\":",
        "HTTP/1.1 201 Created\r\nContent-Le",
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
        begin(&scene, hostile_serve_text_once, texts[i]);
        CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.post);
        assert_int_equal(heard.answer.outcome, HTTP_ANSWERED);
        assert_int_equal(heard.answer.status, 201);
        assert_false(heard.answer.body_whole);
        assert_int_equal(heard.answer.code, ERROR_UNREACHABLE);
        assert_non_null(heard.answer.problem);
        assert_int_equal(hostile_request_count(scene.server), 1);
    }
}

static void what_is_not_http_is_no_answer(void **state)
{
    (void)state;
    static const char *const texts[] = {"SSH-2.0-OpenSSH_9.2\r\n",
                                        "HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n",
                                        "HTTP/1.1 abc\r\n\r\n", "\r\n\r\n\r\n"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
        begin(&scene, hostile_serve_text_once, texts[i]);
        CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.post);
        assert_int_equal(heard.answer.outcome, HTTP_NO_ANSWER);
        assert_int_equal(heard.answer.status, 0);
        assert_non_null(strstr(heard.answer.problem, "127.0.0.1"));
    }
}

static void silence_ends_at_the_timeout(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, hostile_serve_nothing, NULL);
    scene.post.timeout_us = 1000000;
    CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.post);
    assert_int_equal(heard.answer.outcome, HTTP_NO_ANSWER);
    assert_int_equal(heard.answer.code, ERROR_TIMED_OUT);
    assert_non_null(strstr(heard.answer.problem, "did not answer within 1 s"));
}

static void serve_frozen_stream(struct hostile_connection *connection, void *context)
{
    (void)context;
    if (!hostile_read_request(connection))
        return;
    hostile_send_text(connection, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n");
    hostile_wait_for_close(connection);
}

static void a_frozen_stream_ends_at_the_idle_timeout(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, serve_frozen_stream, NULL);
    scene.get.timeout_us = 0;
    scene.get.idle_timeout_us = 1000000;
    for (size_t i = 0; i < 2; i++) {
        CLEANUP_HEARD struct heard heard;
        heard_init(&heard, scene.env);
        heard.stream = true;
        heard_ask(&heard, &scene.get);
        assert_int_equal(heard.answer.outcome, HTTP_ANSWERED);
        assert_false(heard.answer.body_whole);
        assert_int_equal(heard.answer.code, ERROR_TIMED_OUT);
        assert_string_equal(buf_text(&heard.streamed), "one\n");
        assert_non_null(strstr(heard.answer.problem, "sent nothing for 1 s"));
        assert_int_equal(hostile_connection_count(scene.server), i + 1);
        scene.get.fresh_connection = true;
    }
}

static void serve_trickle(struct hostile_connection *connection, void *context)
{
    (void)context;
    if (!hostile_read_request(connection))
        return;
    hostile_send_text(connection, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
    while (hostile_send_slowly(connection, "x", 10))
        ;
}

static void a_trickle_is_not_silence_but_ends_at_the_timeout(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, serve_trickle, NULL);
    scene.get.timeout_us = 2000000;
    scene.get.idle_timeout_us = 1000000;
    CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
    assert_int_equal(heard.answer.code, ERROR_TIMED_OUT);
    assert_non_null(strstr(heard.answer.problem, "did not answer within"));
    assert_true(heard.answer.body_length > 0);
}

/* --- without end --- */

static void serve_endless(struct hostile_connection *connection, void *context)
{
    const char *const *texts = context;
    if (!hostile_read_request(connection))
        return;
    hostile_send_text(connection, texts[0]);
    hostile_send_forever(connection, texts[1]);
}

static void an_endless_header_is_cut(void **state)
{
    (void)state;
    const char *const rows[][2] = {
        {"HTTP/1.1 200 OK\r\n", "X-More: and more and more and more and more and more and more and more\r\n"},
        {"HTTP/1.1 200 OK\r\nX-Long: ", "and more and more and more and more and more and more and more "},
        {"", "HTTP/1.1 100 Continue\r\n\r\n"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
        begin(&scene, serve_endless, rows[i]);
        CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
        assert_false(heard.answer.body_whole);
        assert_int_equal(heard.answer.outcome, i == 2 ? HTTP_NO_ANSWER : HTTP_ANSWERED);
        if (i != 1) /* a single line is bounded by libcurl, in its own words */
            assert_int_equal(heard.answer.code, ERROR_TOO_LARGE);
    }
}

static const char *const endless_body[] = {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                                           "10\r\n0123456789abcdef\r\n"};

static void an_endless_body_is_cut_at_its_bound(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, serve_endless, endless_body);
    scene.get.answer_max = 1000;
    CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
    assert_int_equal(heard.answer.outcome, HTTP_ANSWERED);
    assert_int_equal(heard.answer.status, 200);
    assert_int_equal(heard.answer.code, ERROR_TOO_LARGE);
    assert_int_equal(heard.answer.body_length, 1000);
    assert_non_null(strstr(heard.answer.problem, "1000 bytes"));
}

static void a_reader_can_end_an_endless_stream(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, serve_endless, endless_body);
    CLEANUP_HEARD struct heard heard;
    heard_init(&heard, scene.env);
    heard.stream = true;
    heard.end_at_data = true;
    heard_ask(&heard, &scene.get);
    assert_int_equal(heard.answer.code, ERROR_CANCELLED);
    assert_int_equal(heard.data_count, 1);
    assert_int_equal(heard.done_count, 1);
}

/* A gzip body made by hand: 'a', then matches of 258 bytes at distance 1 (13 bits each), fixed Huffman codes.
 */
struct bits {
    struct buf bytes;
    unsigned held;
    unsigned count;
};

static void put_bit(struct bits *bits, unsigned bit)
{
    bits->held |= bit << bits->count;
    if (++bits->count == 8) {
        ENSURE(buf_add_char(&bits->bytes, (char)bits->held) == 0);
        bits->held = 0;
        bits->count = 0;
    }
}

/* Huffman codes go from their highest bit. */
static void put_code(struct bits *bits, unsigned code, int length)
{
    for (int i = length - 1; i >= 0; i--)
        put_bit(bits, code >> i & 1);
}

static void make_bomb(struct buf *ret, int matches)
{
    struct bits bits = {.bytes = BUF_INIT(1 << 20)};
    static const char head[] = {0x1f, (char)0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
    ENSURE(buf_add(&bits.bytes, head, sizeof(head)) == 0);
    put_bit(&bits, 1); /* the last block */
    put_bit(&bits, 1); /* of fixed codes: 01, low bit first */
    put_bit(&bits, 0);
    put_code(&bits, 0x30 + 'a', 8);
    for (int i = 0; i < matches; i++) {
        put_code(&bits, 0xC5, 8); /* length 258 */
        put_code(&bits, 0, 5);    /* distance 1 */
    }
    put_code(&bits, 0, 7); /* end of block */
    while (bits.count)
        put_bit(&bits, 0);
    CLEANUP_FREE char *answer_head = xasprintf(
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n", bits.bytes.length);
    ENSURE(buf_add_text(ret, answer_head) == 0 && buf_add(ret, bits.bytes.data, bits.bytes.length) == 0);
    buf_done(&bits.bytes);
}

static void serve_bytes(struct hostile_connection *connection, void *context)
{
    const struct buf *answer = context;
    while (hostile_read_request(connection))
        if (!hostile_send(connection, answer->data, answer->length))
            return;
}

static void packed_answers_are_bounded_after_unpacking(void **state)
{
    (void)state;
    CLEANUP_BUF struct buf bomb = BUF_INIT(1 << 20);
    make_bomb(&bomb, 100000); /* 162 kB become 26 MB */
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, serve_bytes, &bomb);
    CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
    CLEANUP_FREE char *text = hostile_request(scene.server, 0);
    assert_non_null(strstr(text, "\r\nAccept-Encoding: gzip\r\n"));
    assert_int_equal(heard.answer.code, ERROR_TOO_LARGE);
    assert_int_equal(heard.answer.body_length, scene.get.answer_max);
    assert_int_equal(heard.answer.body[12345], 'a');
}

static void streams_are_never_packed(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, hostile_serve_ok, NULL);
    CLEANUP_HEARD struct heard heard;
    heard_init(&heard, scene.env);
    heard.stream = true;
    heard_ask(&heard, &scene.get);
    CLEANUP_FREE char *text = hostile_request(scene.server, 0);
    assert_null(strcasestr(text, "Accept-Encoding"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_answer_keeps_its_status),
        cmocka_unit_test(what_is_not_http_is_no_answer),
        cmocka_unit_test(silence_ends_at_the_timeout),
        cmocka_unit_test(a_frozen_stream_ends_at_the_idle_timeout),
        cmocka_unit_test(a_trickle_is_not_silence_but_ends_at_the_timeout),
        cmocka_unit_test(an_endless_header_is_cut),
        cmocka_unit_test(an_endless_body_is_cut_at_its_bound),
        cmocka_unit_test(a_reader_can_end_an_endless_stream),
        cmocka_unit_test(packed_answers_are_bounded_after_unpacking),
        cmocka_unit_test(streams_are_never_packed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
