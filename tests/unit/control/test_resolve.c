/* SPDX-License-Identifier: Apache-2.0
 *
 * The resolvers, row by row as the table of journal.md has them; the stamps that they look for; the
 * preconditions. */
#include "control/answer.h"
#include "control/preconditions.h"
#include "control/resolve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define KEY "0123456789abcdef-7"

static cJSON *parse(const char *text)
{
    cJSON *tree = NULL;
    if (text && json_parse(text, strlen(text), &tree, NULL) < 0)
        fail_msg("not JSON: %s", text);
    return tree;
}

#define META(uid, version, more)                                                                             \
    "\"metadata\":{\"uid\":\"" uid "\",\"resourceVersion\":\"" version "\"" more "}"
#define STEP(key) ",\"annotations\":{\"apps.neo.io/step\":\"" key "\"}"
#define OWNED(uid) ",\"ownerReferences\":[{\"kind\":\"NeoSet\",\"uid\":\"" uid "\",\"controller\":true}]"
#define REVISION(name) ",\"labels\":{\"controller-revision-hash\":\"" name "\"}"
#define SPEC(size) "\"spec\":{\"resources\":{\"requests\":{\"storage\":\"" size "\"}}}"
#define STORAGE(size) "{" SPEC(size) "}"
#define GATE(message)                                                                                        \
    "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"message\":\"" KEY                                     \
    "\"},{\"type\":\"apps.neo.io/in-place-ready\","                                                          \
    "\"message\":\"" message "\"}]}"

static const struct row {
    const char *name;
    enum step_kind kind;
    bool horizon_passed;
    const char *owner;
    const char *sent;   /* NULL: not kept */
    const char *object; /* NULL: 404 */
    enum step_verdict verdict;
} rows[] = {
    /* create */
    {"create: our key", STEP_CREATE_POD, false, "s1", NULL, "{" META("u9", "1", STEP(KEY)) "}", STEP_APPLIED},
    {"create: our key, terminating already", STEP_CREATE_POD, false, "s1", NULL,
     "{" META("u9", "1", STEP(KEY) ",\"deletionTimestamp\":\"x\"") "}", STEP_APPLIED},
    {"create: 404 before the horizon", STEP_CREATE_POD, false, "s1", NULL, NULL, STEP_OPEN},
    {"create: 404 after the horizon", STEP_CREATE_POD, true, "s1", NULL, NULL, STEP_ABSENT},
    {"create: the same pod of our owner, another key", STEP_CREATE_POD, false, "s1",
     "{\"metadata\":{\"labels\":{\"controller-revision-hash\":\"r1\"}}}",
     "{" META("u9", "1", OWNED("s1") REVISION("r1")) "}", STEP_OVERTAKEN},
    {"create: our owner, another revision", STEP_CREATE_POD, false, "s1",
     "{\"metadata\":{\"labels\":{\"controller-revision-hash\":\"r1\"}}}",
     "{" META("u9", "1", OWNED("s1") REVISION("r2")) "}", STEP_REJECTED},
    {"create: another owner's", STEP_CREATE_POD, false, "s1", "{}", "{" META("u9", "1", OWNED("s2")) "}",
     STEP_REJECTED},
    {"create: nobody's", STEP_CREATE_POD, false, "s1", "{}", "{" META("u9", "1", "") "}", STEP_REJECTED},
    {"create: a key that only begins like ours", STEP_CREATE_POD, false, "s1", "{}",
     "{" META("u9", "1", STEP(KEY "1")) "}", STEP_REJECTED},
    /* server-side apply: only a 2xx says that it was applied */
    {"apply: the version that was sent", STEP_APPLY, false, NULL, NULL, "{" META("u1", "10", "") "}",
     STEP_OPEN},
    {"apply: the version moved", STEP_APPLY, false, NULL, NULL, "{" META("u1", "11", "") "}", STEP_ABSENT},
    {"apply: another uid", STEP_APPLY, false, NULL, NULL, "{" META("u2", "10", "") "}", STEP_OVERTAKEN},
    {"apply: gone", STEP_APPLY, false, NULL, NULL, NULL, STEP_OVERTAKEN},
    {"apply of what is not there: 404 before the horizon", STEP_APPLY_NEW, false, NULL, NULL, NULL,
     STEP_OPEN},
    {"apply of what is not there: 404 after the horizon", STEP_APPLY_NEW, true, NULL, NULL, NULL,
     STEP_ABSENT},
    {"apply of what is not there: it is there", STEP_APPLY_NEW, false, NULL, NULL,
     "{" META("u9", "1", "") "}", STEP_OVERTAKEN},
    /* create of what may be anyone's */
    {"claim: our key", STEP_CREATE_CLAIM, false, NULL, NULL, "{" META("u9", "1", STEP(KEY)) "}",
     STEP_APPLIED},
    {"claim: equal content, whoever made it", STEP_CREATE_CLAIM, false, NULL,
     "{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}",
     "{" META(
         "u9", "1",
         "") ",\"spec\":{\"volumeMode\":\"Filesystem\",\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}",
     STEP_OVERTAKEN},
    {"claim: another size", STEP_CREATE_CLAIM, false, NULL,
     "{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}",
     "{" META("u9", "1", "") ",\"spec\":{\"resources\":{\"requests\":{\"storage\":\"2Gi\"}}}}",
     STEP_REJECTED},
    {"claim: 404", STEP_CREATE_CLAIM, false, NULL, NULL, NULL, STEP_OPEN},
    {"revision: equal data", STEP_CREATE_REVISION, false, "s1", "{\"data\":{\"a\":[1,{\"b\":true}]}}",
     "{" META("u9", "1", "") ",\"data\":{\"a\":[1,{\"b\":true}]}}", STEP_OVERTAKEN},
    {"revision: other data", STEP_CREATE_REVISION, false, "s1", "{\"data\":{\"a\":[1]}}",
     "{" META("u9", "1", "") ",\"data\":{\"a\":[1,2]}}", STEP_REJECTED},
    {"revision: the bytes are gone, the owner is ours", STEP_CREATE_REVISION, false, "s1", NULL,
     "{" META("u9", "1", OWNED("s1")) "}", STEP_OVERTAKEN},
    /* patch */
    {"patch: our key", STEP_PATCH, false, NULL, NULL, "{" META("u1", "12", STEP(KEY)) "}", STEP_APPLIED},
    {"patch: another uid", STEP_PATCH, false, NULL, NULL, "{" META("u2", "10", STEP(KEY)) "}",
     STEP_OVERTAKEN},
    {"patch: gone", STEP_PATCH, false, NULL, NULL, NULL, STEP_OVERTAKEN},
    {"patch: gone, also after the horizon", STEP_PATCH, true, NULL, NULL, NULL, STEP_OVERTAKEN},
    {"patch: the version is the one sent", STEP_PATCH, false, NULL, NULL, "{" META("u1", "10", "") "}",
     STEP_OPEN},
    {"patch: the version moved without the key", STEP_PATCH, false, NULL, NULL,
     "{" META("u1", "12", STEP("ffff-1")) "}", STEP_ABSENT},
    {"update in place: our key", STEP_UPDATE_IN_PLACE, false, NULL, NULL, "{" META("u1", "12", STEP(KEY)) "}",
     STEP_APPLIED},
    {"update in place: as wanted but not by us", STEP_UPDATE_IN_PLACE, false, NULL,
     "{\"spec\":{\"image\":\"b\"}}", "{" META("u1", "12", "") ",\"spec\":{\"image\":\"b\"}}", STEP_ABSENT},
    {"block: our key", STEP_BLOCK, false, NULL, NULL, "{" META("u1", "12", STEP(KEY)) "}", STEP_APPLIED},
    /* gate */
    {"gate: our key in its message", STEP_GATE, false, NULL, NULL,
     "{" META("u1", "12", "") "," GATE("{\\\"step\\\":\\\"" KEY "\\\"}") "}", STEP_APPLIED},
    {"gate: a longer key", STEP_GATE, false, NULL, NULL,
     "{" META("u1", "12", "") "," GATE("{\\\"step\\\":\\\"" KEY "5\\\"}") "}", STEP_ABSENT},
    {"gate: the version is the one sent", STEP_GATE, false, NULL, NULL,
     "{" META("u1", "10", "") "," GATE("") "}", STEP_OPEN},
    {"gate: another uid", STEP_GATE, false, NULL, NULL, "{" META("u2", "12", "") "}", STEP_OVERTAKEN},
    /* advance: the value */
    {"advance: the value is there", STEP_ADVANCE, false, NULL,
     "{\"status\":{\"currentPartition\":0,\"doneOrdinals\":[4]}}",
     "{" META("u1", "12",
              "") ",\"status\":{\"currentPartition\":0,\"doneOrdinals\":[4],\"phase\":\"Canary\"}}",
     STEP_APPLIED},
    {"advance: one more ordinal is another value", STEP_ADVANCE, false, NULL,
     "{\"status\":{\"doneOrdinals\":[4]}}", "{" META("u1", "12", "") ",\"status\":{\"doneOrdinals\":[3,4]}}",
     STEP_ABSENT},
    {"advance: null is absence", STEP_ADVANCE, false, NULL, "{\"status\":{\"message\":null}}",
     "{" META("u1", "12", "") ",\"status\":{}}", STEP_APPLIED},
    {"advance: the version is the one sent", STEP_ADVANCE, false, NULL,
     "{\"status\":{\"currentPartition\":0}}",
     "{" META("u1", "10", "") ",\"status\":{\"currentPartition\":4}}", STEP_OPEN},
    {"advance: no status at all", STEP_ADVANCE, false, NULL, "{\"status\":{\"currentPartition\":0}}",
     "{" META("u1", "10", "") "}", STEP_OPEN},
    {"advance: another set of the same name", STEP_ADVANCE, false, NULL,
     "{\"status\":{\"currentPartition\":0}}",
     "{" META("u2", "12", "") ",\"status\":{\"currentPartition\":0}}", STEP_OVERTAKEN},
    {"advance: the bytes are gone", STEP_ADVANCE, false, NULL, NULL,
     "{" META("u1", "12", "") ",\"status\":{}}", STEP_ABSENT},
    /* delete */
    {"delete: terminating", STEP_DELETE, false, NULL, NULL,
     "{" META("u1", "12", ",\"deletionTimestamp\":\"x\"") "}", STEP_APPLIED},
    {"delete: gone: nobody knows by whom", STEP_DELETE, false, NULL, NULL, NULL, STEP_OVERTAKEN},
    {"delete: another uid", STEP_DELETE, false, NULL, NULL,
     "{" META("u2", "12", ",\"deletionTimestamp\":\"x\"") "}", STEP_OVERTAKEN},
    {"delete: there, not terminating", STEP_DELETE, false, NULL, NULL, "{" META("u1", "10", "") "}",
     STEP_OPEN},
    {"delete: moved on, its version can never hold again", STEP_DELETE, false, NULL, NULL,
     "{" META("u1", "12", "") "}", STEP_ABSENT},
    /* orphan delete */
    {"orphan delete: under way", STEP_ORPHAN_DELETE, false, NULL, NULL,
     "{" META("u1", "11", ",\"deletionTimestamp\":\"x\",\"finalizers\":[\"a/b\",\"orphan\"]") "}",
     STEP_APPLIED},
    {"orphan delete: terminating without the finalizer: nobody knows by this alone", STEP_ORPHAN_DELETE,
     false, NULL, NULL, "{" META("u1", "11", ",\"deletionTimestamp\":\"x\",\"finalizers\":[\"a/b\"]") "}",
     STEP_OPEN},
    {"orphan delete: gone", STEP_ORPHAN_DELETE, false, NULL, NULL, NULL, STEP_OVERTAKEN},
    {"orphan delete: another uid", STEP_ORPHAN_DELETE, false, NULL, NULL,
     "{" META("u2", "11", ",\"deletionTimestamp\":\"x\",\"finalizers\":[\"orphan\"]") "}", STEP_OVERTAKEN},
    {"orphan delete: there, not terminating", STEP_ORPHAN_DELETE, false, NULL, NULL,
     "{" META("u1", "10", "") "}", STEP_OPEN},
    {"orphan delete: moved on, its version can never hold again", STEP_ORPHAN_DELETE, false, NULL, NULL,
     "{" META("u1", "11", "") "}", STEP_ABSENT},
    /* create: of a StatefulSet, of a NeoSet */
    {"create of a set: our key", STEP_CREATE_NEOSET, false, NULL, NULL, "{" META("u9", "1", STEP(KEY)) "}",
     STEP_APPLIED},
    {"create of a set: somebody else's", STEP_CREATE_NEOSET, false, NULL, "{}", "{" META("u9", "1", "") "}",
     STEP_REJECTED},
    {"create of a set again: somebody else did", STEP_CREATE_STATEFULSET, false, NULL, NULL,
     "{" META("u9", "1", "") "}", STEP_OVERTAKEN},
    {"create of a set: it is still going", STEP_CREATE_STATEFULSET, false, NULL, NULL,
     "{" META("u9", "1", ",\"deletionTimestamp\":\"x\"") "}", STEP_OVERTAKEN},
    {"grow: our key", STEP_GROW_CLAIM, false, NULL, NULL, "{" META("u1", "11", STEP(KEY)) "}", STEP_APPLIED},
    {"grow: the version that was sent", STEP_GROW_CLAIM, false, NULL, STORAGE("2Gi"),
     "{" META("u1", "10", "") "," SPEC("1Gi") "}", STEP_OPEN},
    {"grow: it moved", STEP_GROW_CLAIM, false, NULL, STORAGE("2Gi"),
     "{" META("u1", "11", "") "," SPEC("1Gi") "}", STEP_ABSENT},
    {"grow: somebody else did it", STEP_GROW_CLAIM, false, NULL, STORAGE("2Gi"),
     "{" META("u1", "11", "") "," SPEC("2Gi") "}", STEP_OVERTAKEN},
    {"grow: gone", STEP_GROW_CLAIM, false, NULL, STORAGE("2Gi"), NULL, STEP_OVERTAKEN},
    {"managers: the key before is still there", STEP_RESTORE_MANAGERS, false, NULL, NULL,
     "{" META("u1", "10", STEP("0123456789abcdef-6")) "}", STEP_OPEN},
    {"managers: it moved, and the key is still there", STEP_RESTORE_MANAGERS, false, NULL, NULL,
     "{" META("u1", "11", STEP("0123456789abcdef-6")) "}", STEP_ABSENT},
    {"managers: no key any more", STEP_RESTORE_MANAGERS, false, NULL, NULL, "{" META("u1", "11", "") "}",
     STEP_APPLIED},
    {"managers: another set", STEP_RESTORE_MANAGERS, false, NULL, NULL, "{" META("u2", "9", "") "}",
     STEP_OVERTAKEN},
    {"create of a set: 404", STEP_CREATE_STATEFULSET, false, NULL, NULL, NULL, STEP_OPEN},
};

static void each_row_of_the_table_has_its_verdict(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct row *row = &rows[i];
        CLEANUP_JSON cJSON *sent = parse(row->sent);
        CLEANUP_JSON cJSON *object = parse(row->object);
        bool creates = strcmp(step_kind_info(row->kind)->method, "POST") == 0;
        struct step_doubt doubt = {
            .kind = row->kind,
            .key = KEY,
            .uid = creates ? NULL : "u1",
            .version = creates ? NULL : "10",
            .sent = sent,
            .owner = row->owner,
            .horizon_passed = row->horizon_passed,
        };
        enum step_verdict verdict = step_kind_info(row->kind)->resolve(&doubt, object);
        if (verdict != row->verdict)
            fail_msg("%s: %d, not %d", row->name, verdict, row->verdict);
    }
}

static void every_kind_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int kind = 0; kind < STEP_KIND_COUNT; kind++) {
        const struct step_kind_info *info = step_kind_info((enum step_kind)kind);
        assert_int_equal(step_kind_of_text(info->text), kind);
        assert_non_null(info->resolve);
        assert_non_null(info->stamp);
        /* What holds a pod template may carry passwords: digest only. */
        bool holds_template = strcmp(info->method, "POST") == 0 || kind == STEP_RESTORE_TEMPLATE ||
                              strcmp(info->content_type, KUBE_APPLY) == 0;
        assert_int_equal(info->keep_body, !holds_template);
    }
    assert_int_equal(step_kind_of_text("no such kind"), -1);
    assert_int_equal(step_kind_of_text(NULL), -1);
}

/* --- stamps --------------------------------------------------------------------------------------------- */

static struct step_request *request_of(enum step_kind kind, const char *body)
{
    struct step_request *request = step_request_make(kind, KUBE_POD, "db", "mysql-4");
    if (!step_creates(kind)) {
        request->uid = xstrdup("u1");
        request->version = xstrdup("10");
    }
    request->body = parse(body);
    return request;
}

static cJSON *bytes_of(enum step_kind kind, const char *body)
{
    struct step_request *request = request_of(kind, body);
    CLEANUP_FREE char *bytes = preconditions_make_bytes(request, KEY);
    assert_int_equal(preconditions_check(kind, "mysql-4", bytes, strlen(bytes), NULL), 0);
    step_request_free(request);
    return parse(bytes);
}

static void the_key_of_an_update_is_also_in_its_state_annotation(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *body = bytes_of(
        STEP_UPDATE_IN_PLACE,
        "{\"metadata\":{\"annotations\":{\"apps.neo.io/in-place-state\":\"{\\\"target\\\":\\\"r2\\\"}\"}}}");
    const cJSON *annotations = json_path(body, "metadata", "annotations", NULL);
    assert_string_equal(json_str(annotations, "apps.neo.io/step"), KEY);
    assert_string_equal(json_str(annotations, "apps.neo.io/in-place-state"),
                        "{\"target\":\"r2\",\"step\":\"" KEY "\"}");
}

static void the_key_of_a_gate_is_in_the_message_of_its_condition(void **state)
{
    (void)state;
    static const struct {
        const char *message;
        const char *stamped;
    } cases[] = {
        {"{\\\"containers\\\":{}}", "{\"containers\":{},\"step\":\"" KEY "\"}"},
        {"words", "words (step " KEY ")"},
        {"", "step " KEY},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *text = xasprintf(
            "{\"status\":{\"conditions\":[{\"type\":\"apps.neo.io/in-place-ready\",\"message\":\"%s\"}]}}",
            cases[i].message);
        CLEANUP_JSON cJSON *body = bytes_of(STEP_GATE, text);
        const cJSON *condition = json_path(body, "status", "conditions", NULL)->child;
        assert_string_equal(json_str(condition, "message"), cases[i].stamped);
        assert_null(json_path(body, "metadata", "annotations", NULL));
        /* And the resolver finds it again. */
        struct step_doubt doubt = {.kind = STEP_GATE, .key = KEY, .uid = "u1", .version = "10"};
        assert_int_equal(step_resolve_gate(&doubt, body), STEP_APPLIED);
    }
}

static void status_is_not_stamped(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *body = bytes_of(STEP_ADVANCE, "{\"status\":{\"currentPartition\":0}}");
    CLEANUP_FREE char *text = json_print_sorted(body);
    assert_null(strstr(text, KEY));
}

static void a_delete_keeps_its_propagation_policy_beside_the_preconditions(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *body = bytes_of(STEP_DELETE, "{\"propagationPolicy\":\"Background\"}");
    CLEANUP_FREE char *text = json_print_sorted(body);
    assert_string_equal(
        text,
        "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"resourceVersion\":\"10\","
        "\"uid\":\"u1\"},\"propagationPolicy\":\"Background\"}");
}

static void an_orphan_delete_says_all_in_its_body(void **state)
{
    (void)state;
    struct step_request *request = step_request_make(STEP_ORPHAN_DELETE, KUBE_STATEFULSET, "db", "mysql");
    request->uid = xstrdup("u1");
    request->version = xstrdup("10");
    CLEANUP_FREE char *bytes = preconditions_make_bytes(request, KEY);
    step_request_free(request);
    CLEANUP_JSON cJSON *body = parse(bytes);
    CLEANUP_FREE char *text = json_print_sorted(body);
    assert_string_equal(
        text,
        "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"resourceVersion\":\"10\","
        "\"uid\":\"u1\"},\"propagationPolicy\":\"Orphan\"}");
    CLEANUP_JSON cJSON *dry = preconditions_orphan_delete("u1", "10", true);
    assert_int_equal(preconditions_check_orphan_delete(dry, true, NULL), 0);
    assert_true(preconditions_check_orphan_delete(dry, false, NULL) < 0);
    assert_true(preconditions_check_orphan_delete(body, true, NULL) < 0);
}

/* --- preconditions -------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum step_kind kind;
    const char *bytes;
    bool leaves;
} preconditions[] = {
    {"a patch with both", STEP_PATCH, "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"1\"}}", true},
    {"a patch without a uid", STEP_PATCH, "{\"metadata\":{\"resourceVersion\":\"1\"}}", false},
    {"a patch with an empty uid", STEP_PATCH, "{\"metadata\":{\"uid\":\"\",\"resourceVersion\":\"1\"}}",
     false},
    {"a patch without a version", STEP_PATCH, "{\"metadata\":{\"uid\":\"u\"}}", false},
    {"a patch with version \"\"", STEP_PATCH, "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"\"}}",
     false},
    {"a patch with version \"0\"", STEP_PATCH, "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"0\"}}",
     false},
    {"a patch with a number for a version", STEP_PATCH,
     "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":1}}", false},
    {"a patch with version null", STEP_PATCH, "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":null}}",
     false},
    {"an advance without a version", STEP_ADVANCE, "{\"metadata\":{\"uid\":\"u\"},\"status\":{}}", false},
    {"a JSON patch", STEP_PATCH, "[{\"op\":\"test\"}]", false},
    {"a delete with both", STEP_DELETE,
     "{\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"1\"}}", true},
    {"a delete without preconditions", STEP_DELETE, "{\"kind\":\"DeleteOptions\"}", false},
    {"a delete with a uid alone", STEP_DELETE,
     "{\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"u\"}}", false},
    {"a delete whose body is something else", STEP_DELETE,
     "{\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"1\"}}", false},
#define BOTH "\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"1\"}"
    {"an orphan delete", STEP_ORPHAN_DELETE, "{" BOTH ",\"propagationPolicy\":\"Orphan\"}", true},
    {"an orphan delete without a policy: what it owns would die", STEP_ORPHAN_DELETE, "{" BOTH "}", false},
    {"an orphan delete with another policy", STEP_ORPHAN_DELETE,
     "{" BOTH ",\"propagationPolicy\":\"Background\"}", false},
    {"an orphan delete with a misspelt member", STEP_ORPHAN_DELETE,
     "{" BOTH ",\"propagationPolicy\":\"Orphan\",\"propagationpolicy\":\"Orphan\"}", false},
    {"an orphan delete that is a dry run", STEP_ORPHAN_DELETE,
     "{" BOTH ",\"propagationPolicy\":\"Orphan\",\"dryRun\":[\"All\"]}", false},
    {"an orphan delete without its version", STEP_ORPHAN_DELETE,
     "{\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"u\"},\"propagationPolicy\":\"Orphan\"}",
     false},
#undef BOTH
    {"a create with its name", STEP_CREATE_POD, "{\"metadata\":{\"name\":\"mysql-4\"}}", true},
    {"a create with another name", STEP_CREATE_POD, "{\"metadata\":{\"name\":\"mysql-5\"}}", false},
    {"a create with generateName", STEP_CREATE_POD, "{\"metadata\":{\"generateName\":\"mysql-\"}}", false},
    {"a create with both names", STEP_CREATE_POD,
     "{\"metadata\":{\"name\":\"mysql-4\",\"generateName\":\"m\"}}", false},
    {"a create with a version", STEP_CREATE_POD,
     "{\"metadata\":{\"name\":\"mysql-4\",\"resourceVersion\":\"1\"}}", false},
    {"what is not JSON", STEP_PATCH, "{\"metadata\":", false},
};

static void a_write_without_its_preconditions_does_not_leave(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(preconditions); i++) {
        const char *bytes = preconditions[i].bytes;
        CLEANUP_ERROR struct error *err = NULL;
        int result = preconditions_check(preconditions[i].kind, "mysql-4", bytes, strlen(bytes), &err);
        if ((result == 0) != preconditions[i].leaves)
            fail_msg("%s: %d (%s)", preconditions[i].name, result, error_text(err));
    }
}

/* --- answers -------------------------------------------------------------------------------------------- */

static const struct answer_target pod = {.resource = KUBE_POD, .namespace = "db", .name = "mysql-4"};

static void a_missing_answer_is_not_a_refusal(void **state)
{
    (void)state;
    struct kube_answer answer = {.outcome = KUBE_NO_ANSWER, .reason = "", .message = ""};
    assert_int_equal(answer_classify(STEP_PATCH, &pod, &answer), ANSWER_UNKNOWN);
    answer.outcome = KUBE_NOT_SENT;
    assert_int_equal(answer_classify(STEP_PATCH, &pod, &answer), ANSWER_NOT_SENT);
}

static void no_status_line_of_a_refusal_counts_as_applied(void **state)
{
    (void)state;
    for (int kind = 0; kind < STEP_KIND_COUNT; kind++) {
        for (int http = 300; http < 600; http++) {
            struct kube_answer answer = {.outcome = KUBE_REFUSED, .http = http, .reason = "", .message = ""};
            enum answer_class class = answer_classify((enum step_kind)kind, &pod, &answer);
            assert_int_not_equal(class, ANSWER_APPLIED);
            assert_int_not_equal(class, ANSWER_NOT_SENT);
            if (http >= 500)
                assert_int_equal(class, ANSWER_UNKNOWN);
        }
    }
}

static void only_words_of_the_list_are_those_of_operations(void **state)
{
    (void)state;
    assert_true(step_is_operation_kind("rollout") && step_is_operation_kind("settle"));
    assert_false(step_is_operation_kind("rollouts") || step_is_operation_kind("completed"));
    assert_false(step_is_operation_kind("") || step_is_operation_kind(NULL));
    assert_true(step_is_operation_outcome("completed") && step_is_operation_outcome("cancelled"));
    assert_false(step_is_operation_outcome("open") || step_is_operation_outcome(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_of_the_table_has_its_verdict),
        cmocka_unit_test(every_kind_has_a_name_of_its_own),
        cmocka_unit_test(only_words_of_the_list_are_those_of_operations),
        cmocka_unit_test(the_key_of_an_update_is_also_in_its_state_annotation),
        cmocka_unit_test(the_key_of_a_gate_is_in_the_message_of_its_condition),
        cmocka_unit_test(status_is_not_stamped),
        cmocka_unit_test(a_delete_keeps_its_propagation_policy_beside_the_preconditions),
        cmocka_unit_test(an_orphan_delete_says_all_in_its_body),
        cmocka_unit_test(a_write_without_its_preconditions_does_not_leave),
        cmocka_unit_test(a_missing_answer_is_not_a_refusal),
        cmocka_unit_test(no_status_line_of_a_refusal_counts_as_applied),
    };
    return cmocka_run_group_tests_name("steps", tests, NULL, NULL);
}
