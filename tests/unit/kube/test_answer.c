/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/answer.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define CLEANUP_DECODED __attribute__((cleanup(kube_decoded_done)))

static struct kube_decoded decode_http(const struct http_answer *http, enum kube_decode_mode mode)
{
    struct kube_decoded decoded;
    kube_decode(http, mode, &decoded);
    return decoded;
}

static struct kube_decoded decode(int status, const char *body, enum kube_decode_mode mode)
{
    struct http_answer http = {.outcome = HTTP_ANSWERED,
                               .status = status,
                               .body_whole = true,
                               .body = body,
                               .body_length = strlen(body),
                               .retry_after_us = -1};
    return decode_http(&http, mode);
}

static void every_status_has_its_code(void **state)
{
    (void)state;
    static const struct {
        int http;
        const char *reason;
        enum error_code code;
    } cases[] = {
        {301, "", ERROR_REFUSED},
        {400, "BadRequest", ERROR_INVALID},
        {401, "Unauthorized", ERROR_UNAUTHORIZED},
        {403, "Forbidden", ERROR_FORBIDDEN},
        {404, "NotFound", ERROR_NOT_FOUND},
        {405, "MethodNotAllowed", ERROR_UNSUPPORTED},
        {406, "NotAcceptable", ERROR_UNSUPPORTED},
        {408, "", ERROR_TIMED_OUT},
        {409, "AlreadyExists", ERROR_EXISTS},
        {409, "Conflict", ERROR_CONFLICT},
        {409, "", ERROR_CONFLICT},
        {410, "Expired", ERROR_GONE},
        {413, "RequestEntityTooLarge", ERROR_TOO_LARGE},
        {415, "UnsupportedMediaType", ERROR_UNSUPPORTED},
        {418, "", ERROR_FAILED},
        {422, "Invalid", ERROR_INVALID},
        {429, "TooManyRequests", ERROR_REFUSED},
        {500, "InternalError", ERROR_FAILED},
        {502, "", ERROR_UNREACHABLE},
        {503, "ServiceUnavailable", ERROR_UNREACHABLE},
        {504, "Timeout", ERROR_TIMED_OUT},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *body = xasprintf("{\"kind\":\"Status\",\"reason\":\"%s\"}", cases[i].reason);
        CLEANUP_DECODED struct kube_decoded decoded = decode(cases[i].http, body, KUBE_DECODE_WRITE);
        assert_int_equal(decoded.answer.outcome, KUBE_REFUSED);
        assert_int_equal(decoded.answer.http, cases[i].http);
        assert_int_equal(decoded.answer.code, cases[i].code);
        assert_string_equal(decoded.answer.reason, cases[i].reason);
    }
}

/* A dry run is asked for what the object would be, and by whom its fields would be managed. */
static void the_answer_to_a_dry_run_is_read_whole(void **state)
{
    (void)state;
    const char *body = "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"managedFields\":[{}]}}";
    CLEANUP_DECODED struct kube_decoded asked = decode(200, body, KUBE_DECODE_ASK);
    assert_non_null(json_path(asked.answer.body, "metadata", "managedFields", NULL));
    CLEANUP_DECODED struct kube_decoded written = decode(200, body, KUBE_DECODE_WRITE);
    assert_string_equal(json_path_str(written.answer.body, "metadata", "name", NULL), "a");
    assert_null(json_path(written.answer.body, "metadata", "managedFields", NULL));
}

static void a_status_gives_reason_message_causes_and_waiting_time(void **state)
{
    (void)state;
    CLEANUP_DECODED struct kube_decoded decoded = decode(
        409,
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"Apply failed with 1 "
        "conflict\",\"reason\":\"Conflict\",\"details\":{\"retryAfterSeconds\":2,\"causes\":[{\"reason\":"
        "\"FieldManagerConflict\",\"message\":\"conflict with \\\"x\\\"\",\"field\":\".spec.replicas\"},7]},"
        "\"code\":409}",
        KUBE_DECODE_WRITE);
    const struct kube_answer *answer = &decoded.answer;
    assert_string_equal(answer->reason, "Conflict");
    assert_string_equal(answer->message, "Apply failed with 1 conflict");
    assert_int_equal(answer->cause_count, 2);
    assert_string_equal(answer->causes[0].reason, "FieldManagerConflict");
    assert_string_equal(answer->causes[0].field, ".spec.replicas");
    assert_string_equal(answer->causes[1].field, "");
    assert_true(kube_answer_has_cause_field(answer, ".spec.replicas"));
    assert_false(kube_answer_has_cause_field(answer, "metadata.uid"));
    assert_true(answer->retry_after_us == 2000000);
    assert_string_equal(answer->summary,
                        "409 Conflict: .spec.replicas (FieldManagerConflict): Apply failed with 1 "
                        "conflict");
}

static void causes_are_bounded(void **state)
{
    (void)state;
    CLEANUP_BUF struct buf body = BUF_INIT(1000000);
    buf_add_text(&body, "{\"kind\":\"Status\",\"reason\":\"Invalid\",\"details\":{\"causes\":[{}");
    for (int i = 0; i < 1000; i++)
        buf_add_text(&body, ",{\"field\":\"spec.a\",\"reason\":\"FieldValueInvalid\"}");
    buf_add_text(&body, "]}}");
    CLEANUP_DECODED struct kube_decoded decoded = decode(422, buf_text(&body), KUBE_DECODE_WRITE);
    assert_int_equal(decoded.answer.cause_count, KUBE_CAUSES_MAX);
    assert_true(strlen(decoded.answer.summary) < KUBE_SUMMARY_SIZE);
}

/* Each body is what a server answers to a manifest that holds "hunter2". */
static void no_summary_and_no_sentence_repeats_a_value(void **state)
{
    (void)state;
    static const struct {
        int http;
        const char *body;
    } cases[] = {
        {422, "{\"kind\":\"Status\",\"reason\":\"Invalid\",\"message\":\"Pod \\\"x\\\" is invalid: "
              "spec.containers[0].env[0].value: Invalid value: \\\"hunter2\\\": must be short\",\"details\":{"
              "\"causes\":[{\"reason\":\"FieldValueInvalid\",\"message\":\"Invalid value: \\\"hunter2\\\": "
              "must be "
              "short\",\"field\":\"spec.containers[0].env[0].value\"}]}}"},
        {422, "{\"kind\":\"Status\",\"reason\":\"Invalid\",\"message\":\"Pod \\\"x\\\" is invalid: spec: "
              "Forbidden: pod "
              "updates may not change fields other than ...\\n{\\\"Value\\\": \\\"hunter2\\\"}\"}"},
        {400, "{\"kind\":\"Status\",\"reason\":\"BadRequest\",\"message\":\"json: cannot unmarshal hunter2 "
              "into Go "
              "struct field\"}"},
        {500, "{\"kind\":\"Status\",\"message\":\".spec.replicas: expected numeric, got &value{hunter2}\"}"},
        {404, "<html>hunter2</html>"},
        {418, "{\"kind\":\"Status\",\"reason\":\"SomethingNew\",\"message\":\"hunter2\"}"},
        {403, "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"pods \\\"x\\\" is forbidden: "
              "no\\nhunter2\"}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_DECODED struct kube_decoded decoded = decode(cases[i].http, cases[i].body, KUBE_DECODE_WRITE);
        CLEANUP_FREE char *sentence = kube_answer_sentence(&decoded.answer, "creating a pod");
        assert_null(strstr(decoded.answer.summary, "hunter2"));
        assert_null(strstr(sentence, "hunter2"));
        assert_null(strchr(decoded.answer.summary, '\n'));
    }
}

static void a_summary_says_what_a_history_needs(void **state)
{
    (void)state;
    static const struct {
        int http;
        const char *body;
        const char *summary;
    } cases[] = {
        {422,
         "{\"kind\":\"Status\",\"reason\":\"Invalid\",\"message\":\"m\",\"details\":{\"causes\":[{\"reason\":"
         "\"FieldValueInvalid\",\"field\":\"metadata.uid\"},{\"field\":\"spec\"},{\"reason\":\"Odd\"}]}}",
         "422 Invalid: metadata.uid (FieldValueInvalid), spec, Odd"},
        {404, "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"message\":\"pods \\\"x\\\" not found\"}",
         "404 NotFound: pods \"x\" not found"},
        {404, "404 page not found\n", "404"},
        {503, "", "503"},
        {200, "{}", "200"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_DECODED struct kube_decoded decoded = decode(cases[i].http, cases[i].body, KUBE_DECODE_WRITE);
        assert_string_equal(decoded.answer.summary, cases[i].summary);
    }
}

static void a_summary_is_cut_between_characters(void **state)
{
    (void)state;
    for (int pad = 0; pad < 4; pad++) {
        CLEANUP_BUF struct buf body = BUF_INIT(10000);
        buf_add_text(&body, "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"message\":\"");
        for (int i = 0; i < pad; i++)
            buf_add_char(&body, 'x');
        for (int i = 0; i < 200; i++)
            buf_add_text(&body, "\xE2\x82\xAC");
        buf_add_text(&body, "\"}");
        CLEANUP_DECODED struct kube_decoded decoded = decode(404, buf_text(&body), KUBE_DECODE_WRITE);
        const char *summary = decoded.answer.summary;
        size_t length = strlen(summary);
        assert_true(length > 250 && length <= 256);
        assert_string_equal(summary + length - 3, "\xE2\x82\xAC");
    }
}

static void control_characters_do_not_reach_a_summary(void **state)
{
    (void)state;
    CLEANUP_DECODED struct kube_decoded decoded =
        decode(404, "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"message\":\"a\\u001b[2Jb\\u007fc\\rd\"}",
               KUBE_DECODE_READ);
    assert_string_equal(decoded.answer.summary, "404 NotFound: a [2Jb c");
}

/* A summary goes into the journal and into Kubernetes as JSON: it is text, whatever a proxy may say. */
static void a_summary_is_text(void **state)
{
    (void)state;
    struct http_answer http = {.outcome = HTTP_NO_ANSWER,
                               .code = ERROR_INVALID,
                               .problem = "not HTTP: \xFF\xC3\xA9\xC2\x9B[2J \xE2\x82"};
    CLEANUP_DECODED struct kube_decoded decoded = decode_http(&http, KUBE_DECODE_WRITE);
    assert_string_equal(decoded.answer.summary, "no answer: not HTTP: ?\xC3\xA9 [2J ??");
}

static void a_read_needs_its_body_and_a_write_does_not(void **state)
{
    (void)state;
    struct http_answer cut = {.outcome = HTTP_ANSWERED,
                              .status = 200,
                              .body = "{\"a\":",
                              .body_length = 5,
                              .retry_after_us = -1,
                              .problem = "the connection was cut",
                              .code = ERROR_UNREACHABLE};
    CLEANUP_DECODED struct kube_decoded cut_read = decode_http(&cut, KUBE_DECODE_READ);
    assert_int_equal(cut_read.answer.outcome, KUBE_NO_ANSWER);
    assert_int_equal(cut_read.answer.code, ERROR_UNREACHABLE);
    assert_true(cut_read.answer.body_cut);
    assert_string_equal(cut_read.answer.summary, "no answer: the connection was cut");
    CLEANUP_DECODED struct kube_decoded cut_write = decode_http(&cut, KUBE_DECODE_WRITE);
    assert_int_equal(cut_write.answer.outcome, KUBE_OK);
    assert_true(cut_write.answer.body_cut);
    assert_null(cut_write.answer.body);
    assert_null(cut_write.answer.stranger);
    cut.body = "<html>Plea";
    cut.body_length = strlen(cut.body);
    CLEANUP_DECODED struct kube_decoded cut_page = decode_http(&cut, KUBE_DECODE_WRITE);
    assert_non_null(cut_page.answer.stranger);
    CLEANUP_DECODED struct kube_decoded odd_read = decode(200, "no JSON", KUBE_DECODE_READ);
    assert_int_equal(odd_read.answer.outcome, KUBE_NO_ANSWER);
    assert_int_equal(odd_read.answer.code, ERROR_CORRUPT);
    CLEANUP_DECODED struct kube_decoded odd_write = decode(201, "no JSON", KUBE_DECODE_WRITE);
    assert_int_equal(odd_write.answer.outcome, KUBE_OK);
    assert_true(odd_write.answer.body_cut);
}

static void a_request_that_was_not_answered_says_why(void **state)
{
    (void)state;
    struct http_answer none = {.outcome = HTTP_NOT_SENT,
                               .retry_after_us = -1,
                               .problem = "cannot connect to 10.0.0.1:6443: Connection refused",
                               .code = ERROR_UNREACHABLE};
    CLEANUP_DECODED struct kube_decoded decoded = decode_http(&none, KUBE_DECODE_WRITE);
    assert_int_equal(decoded.answer.outcome, KUBE_NOT_SENT);
    assert_int_equal(decoded.answer.http, 0);
    assert_int_equal(decoded.answer.code, ERROR_UNREACHABLE);
    CLEANUP_FREE char *sentence = kube_answer_sentence(&decoded.answer, "reading pods");
    assert_string_equal(sentence,
                        "reading pods: not sent: cannot connect to 10.0.0.1:6443: Connection refused");
}

static void a_sentence_says_what_to_do(void **state)
{
    (void)state;
    static const struct {
        int http;
        const char *body;
        const char *holds;
    } cases[] = {
        {401, "{\"kind\":\"Status\",\"reason\":\"Unauthorized\",\"message\":\"Unauthorized\"}",
         "log in again"},
        {403,
         "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"pods is forbidden: User \\\"x\\\" "
         "cannot list "
         "resource \\\"pods\\\"\"}",
         "cannot list resource \"pods\""},
        {404, "404 page not found", "is its definition installed?"},
        {429, "{\"kind\":\"Status\",\"reason\":\"TooManyRequests\"}", "try again"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_DECODED struct kube_decoded decoded = decode(cases[i].http, cases[i].body, KUBE_DECODE_READ);
        CLEANUP_FREE char *sentence = kube_answer_sentence(&decoded.answer, "reading pods");
        assert_true(str_starts_with(sentence, "reading pods: "));
        assert_non_null(strstr(sentence, cases[i].holds));
    }
    /* An object that is not there is no missing definition. */
    CLEANUP_DECODED struct kube_decoded decoded = decode(
        404, "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"details\":{\"name\":\"x\"}}", KUBE_DECODE_READ);
    CLEANUP_FREE char *sentence = kube_answer_sentence(&decoded.answer, "reading x");
    assert_null(strstr(sentence, "definition"));
}

/* Who answers is no API server, or speaks another protocol: neither a permission nor a definition helps. */
static void an_answer_of_a_stranger_says_so(void **state)
{
    (void)state;
    static const struct {
        int http;
        const char *body;
        const char *holds;
    } cases[] = {
        {200, "<!DOCTYPE html><html>hunter2</html>", "a web page"},
        {200, "\n  <html>hunter2</html>", "a web page"},
        {200, "hunter2", "is not JSON"},
        {200, "", "is not JSON"},
        {403, "<html>hunter2</html>", "a web page"},
        {404, "<html>hunter2</html>", "a web page"},
        {503, "<html>hunter2</html>", "a web page"},
        {301, "", "redirect"},
        {302, "<a href=\"https://hunter2\">", "redirect"},
        {400, "Client sent an HTTP request to an HTTPS server.\n", "https://"},
        {400, "<html><title>400 The plain HTTP request was sent to HTTPS port</title>", "https://"},
        {400, "<p>Reason: You're speaking plain HTTP to an SSL-enabled server port.", "https://"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_DECODED struct kube_decoded decoded = decode(cases[i].http, cases[i].body, KUBE_DECODE_READ);
        CLEANUP_FREE char *sentence = kube_answer_sentence(&decoded.answer, "reading pods");
        assert_non_null(decoded.answer.stranger);
        if (!strstr(sentence, cases[i].holds) || !strstr(sentence, "kubeconfig"))
            fail_msg("%zu: %s", i, sentence);
        assert_null(strstr(sentence, "hunter2"));
        assert_null(strstr(sentence, "definition"));
        assert_null(strstr(sentence, "grant"));
    }
    CLEANUP_DECODED struct kube_decoded decoded = decode(404, "404 page not found\n", KUBE_DECODE_READ);
    assert_null(decoded.answer.stranger);
}

static void an_error_line_of_a_watch_is_a_status(void **state)
{
    (void)state;
    static const struct {
        const char *status;
        int http;
        enum error_code code;
    } cases[] = {
        {"{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}", 410, ERROR_GONE},
        {"{\"kind\":\"Status\"}", 500, ERROR_FAILED},
        {"{\"code\":-7}", 500, ERROR_FAILED},
        {"{\"code\":99999999999999999999}", 500, ERROR_FAILED},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        cJSON *tree = NULL;
        assert_int_equal(json_parse(cases[i].status, strlen(cases[i].status), &tree, NULL), 0);
        CLEANUP_DECODED struct kube_decoded decoded;
        kube_decode_status(tree, &decoded);
        assert_int_equal(decoded.answer.http, cases[i].http);
        assert_int_equal(decoded.answer.code, cases[i].code);
    }
}

static void words_of_several_lines_become_one(void **state)
{
    (void)state;
    static const struct {
        const char *message; /* as in JSON */
        const char *words;
    } cases[] = {
        {"Apply failed with 1 conflict: conflict with \\\"a\\\": .data.x",
         "Apply failed with 1 conflict: conflict with \"a\": .data.x"},
        {"Apply failed with 3 conflicts: conflicts with \\\"a\\\":\\n- .data.x\\n- .data.y\\nconflicts with "
         "\\\"b\\\" using v1:\\n- .data.z",
         "Apply failed with 3 conflicts: conflicts with \"a\": .data.x, .data.y; conflicts with \"b\" using "
         "v1: "
         ".data.z"},
        {"\\n- x", ", x"},
        {"", "409 Conflict"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *body =
            xasprintf("{\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"%s\"}", cases[i].message);
        CLEANUP_DECODED struct kube_decoded decoded = decode(409, body, KUBE_DECODE_WRITE);
        CLEANUP_FREE char *words = kube_answer_words(&decoded.answer);
        assert_string_equal(words, cases[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_code),
        cmocka_unit_test(the_answer_to_a_dry_run_is_read_whole),
        cmocka_unit_test(a_status_gives_reason_message_causes_and_waiting_time),
        cmocka_unit_test(causes_are_bounded),
        cmocka_unit_test(no_summary_and_no_sentence_repeats_a_value),
        cmocka_unit_test(a_summary_says_what_a_history_needs),
        cmocka_unit_test(a_summary_is_cut_between_characters),
        cmocka_unit_test(words_of_several_lines_become_one),
        cmocka_unit_test(control_characters_do_not_reach_a_summary),
        cmocka_unit_test(a_summary_is_text),
        cmocka_unit_test(a_read_needs_its_body_and_a_write_does_not),
        cmocka_unit_test(a_request_that_was_not_answered_says_why),
        cmocka_unit_test(a_sentence_says_what_to_do),
        cmocka_unit_test(an_answer_of_a_stranger_says_so),
        cmocka_unit_test(an_error_line_of_a_watch_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
