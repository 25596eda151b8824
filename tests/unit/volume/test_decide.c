/* SPDX-License-Identifier: Apache-2.0
 *
 * What the table of cases does not hold: the account as text and as JSON, the guards of a plan, objects of
 * strange shapes. */
#include "volume/decide.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static cJSON *parse(const char *text)
{
    cJSON *tree = NULL;
    CLEANUP_ERROR struct error *err = NULL;
    if (json_parse(text, strlen(text), &tree, &err) < 0)
        fail_msg("%s: %s", text, error_text(err));
    return tree;
}

static cJSON *make_set(const char *templates)
{
    CLEANUP_FREE char *text = xasprintf("{\"metadata\":{\"name\":\"db\",\"namespace\":\"ns\"},"
                                        "\"spec\":{\"volumeClaimTemplates\":%s}}",
                                        templates);
    return parse(text);
}

#define TEMPLATE(name, size)                                                                                 \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"resources\":{\"requests\":{\"storage\":\"" size       \
    "\"}}}}"
#define CLAIM(name, size)                                                                                    \
    "{\"metadata\":{\"name\":\"" name "\",\"uid\":\"u-" name "\",\"resourceVersion\":\"7\"},"                \
    "\"spec\":{\"storageClassName\":\"std\",\"resources\":{\"requests\":{\"storage\":\"" size "\"}}},"       \
    "\"status\":{\"phase\":\"Bound\"}}"

static void decide(const char *live_text, const char *desired_text, const char *claims_text,
                   struct volume_decision *ret)
{
    CLEANUP_JSON cJSON *live = live_text ? make_set(live_text) : NULL;
    CLEANUP_JSON cJSON *desired = make_set(desired_text);
    CLEANUP_JSON cJSON *claims = parse(claims_text);
    volume_decide(&(struct volume_input){.desired = desired, .live = live, .claims = claims}, ret);
}

static void expect_text(const char *live, const char *desired, const char *claims, const char *wanted)
{
    CLEANUP_VOLUME_DECISION struct volume_decision decision = {0};
    decide(live, desired, claims, &decision);
    CLEANUP_FREE char *text = volume_decision_text(&decision);
    assert_string_equal(text, wanted);
}

static void the_account_is_one_line(void **state)
{
    (void)state;
    expect_text(NULL, "[" TEMPLATE("data", "1Gi") "]", "[]", "StatefulSet/ns/db: no volume grows");
    expect_text(
        "[" TEMPLATE("data", "1Gi") "]", "[" TEMPLATE("data", "2Gi") "]",
        "[" CLAIM("data-db-0", "1Gi") "," CLAIM("data-db-1", "1Gi") "]",
        "StatefulSet/ns/db: data 1Gi -> 2Gi; 2 claims grow, then the StatefulSet is re-created around "
        "its pods");
    expect_text(
        "[" TEMPLATE("data", "1Gi") "," TEMPLATE("logs", "3G") "]",
        "[" TEMPLATE("data", "2048Mi") "," TEMPLATE("logs", "4e9") "]", "[" CLAIM("data-db-0", "1Gi") "]",
        "StatefulSet/ns/db: data 1Gi -> 2048Mi, logs 3G -> 4e9; 1 claim grows, then the StatefulSet is "
        "re-created around its pods");
    expect_text(
        "[" TEMPLATE("data", "2Gi") "]", "[" TEMPLATE("data", "2Gi") "]", "[" CLAIM("data-db-0", "1Gi") "]",
        "StatefulSet/ns/db: no volume grows; 1 claim is smaller than its template says: data-db-0 1Gi "
        "-> 2Gi");
    expect_text("[" TEMPLATE("data", "2Gi") "," TEMPLATE("logs", "5") "]",
                "[" TEMPLATE("data", "1Gi") "," TEMPLATE("logs", "4") "]", "[]",
                "StatefulSet/ns/db: a volume cannot shrink: data 2Gi (2147483648 bytes) -> 1Gi (1073741824 "
                "bytes); logs 5 -> 4");
    expect_text(
        "[" TEMPLATE("data", "1Gi") "]", "[" TEMPLATE("data", "0") "]", "[]",
        "StatefulSet/ns/db: the manifest cannot be used: data spec.resources.requests.storage: the size "
        "0 is not greater than 0");
}

static void a_line_break_in_a_name_makes_no_second_line(void **state)
{
    (void)state;
    CLEANUP_VOLUME_DECISION struct volume_decision decision = {0};
    decide("[" TEMPLATE("da\\nta", "1Gi") "]", "[" TEMPLATE("da\\u001bta", "1Gi") "]", "[]", &decision);
    CLEANUP_FREE char *text = volume_decision_text(&decision);
    assert_false(str_has_control_character(text));
    assert_int_equal(decision.refused.count, 2);
}

static void json_holds_all_of_it(void **state)
{
    (void)state;
    CLEANUP_VOLUME_DECISION struct volume_decision plan = {0};
    decide("[" TEMPLATE("data", "1Gi") "]", "[" TEMPLATE("data", "2Gi") "]",
           "[" CLAIM("data-db-0", "1Gi") "]", &plan);
    CLEANUP_JSON cJSON *tree = volume_decision_json(&plan);
    CLEANUP_JSON cJSON *wanted = parse(
        "{\"namespace\":\"ns\",\"name\":\"db\",\"outcome\":\"grow\",\"reason\":\"volumes "
        "grow\",\"recreate\":true,"
        "\"recoverable\":false,\"grown\":[{\"name\":\"data\",\"from\":\"1Gi\",\"to\":\"2Gi\"}],\"claims\":[{"
        "\"name\":\"data-db-0\",\"template\":\"data\",\"storageClassName\":\"std\",\"from\":\"1Gi\",\"to\":"
        "\"2Gi\"}],\"refused\":[],\"lagging\":[],\"terminating\":[]}");
    assert_true(json_equal(tree, wanted));
    CLEANUP_VOLUME_DECISION struct volume_decision refusal = {0};
    decide("[" TEMPLATE("data", "2Gi") "]", "[" TEMPLATE("data", "1Gi") "]", "[]", &refusal);
    CLEANUP_JSON cJSON *refused = volume_decision_json(&refusal);
    assert_string_equal(json_str(refused, "reason"), "a volume cannot shrink");
    assert_int_equal(cJSON_GetArraySize(json_get(refused, "refused")), 1);
    assert_int_equal(cJSON_GetArraySize(json_get(refused, "claims")), 0);
}

/* A write of a claim is guarded by what was read. */
static void a_plan_carries_the_guards(void **state)
{
    (void)state;
    CLEANUP_VOLUME_DECISION struct volume_decision plan = {0};
    decide("[" TEMPLATE("data", "1Gi") "]", "[" TEMPLATE("data", "2Gi") "]",
           "[" CLAIM("data-db-0", "1Gi") "]", &plan);
    assert_int_equal(plan.claims.count, 1);
    const struct volume_item *claim = &plan.claims.items[0];
    assert_string_equal(claim->uid, "u-data-db-0");
    assert_string_equal(claim->version, "7");
    assert_string_equal(claim->class, "std");
    assert_string_equal(claim->template, "data");
    assert_int_equal(quantity_compare(&claim->to_size, &plan.grown.items[0].to_size), 0);
    assert_true(quantity_compare(&claim->from_size, &claim->to_size) < 0);
}

/* Of a set whose templates may change: each claim for itself, whatever the live templates say. */
static void claims_are_decided_one_by_one(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *set = make_set("[" TEMPLATE("data", "2Gi") "," TEMPLATE("logs", "1Gi") "]");
    CLEANUP_JSON cJSON *claims = parse("[" CLAIM("data-db-9", "1Gi") "," CLAIM("data-db-0", "1Gi") "," CLAIM(
        "logs-db-0", "1Gi") ","
                            "{\"metadata\":{\"name\":\"data-db-1\"},\"spec\":{\"storageClassName\":\"std\"},"
                            "\"status\":{\"phase\":"
                            "\"Pending\"}}]");
    CLEANUP_VOLUME_DECISION struct volume_decision decision = {0};
    volume_decide_claims(&(struct volume_input){.desired = set, .claims = claims}, &decision);
    assert_int_equal(decision.outcome, VOLUME_NOT_BOUND);
    assert_int_equal(decision.refused.count, 1);
    assert_string_equal(decision.refused.items[0].name, "data-db-1");
    assert_int_equal(decision.claims.count, 2);
    assert_string_equal(decision.claims.items[0].name, "data-db-0");
    assert_string_equal(decision.claims.items[1].name, "data-db-9");
    assert_false(decision.recreate);
    CLEANUP_JSON cJSON *bound = parse("[" CLAIM("data-db-0", "1Gi") "]");
    CLEANUP_VOLUME_DECISION struct volume_decision plan = {0};
    volume_decide_claims(&(struct volume_input){.desired = set, .claims = bound}, &plan);
    assert_int_equal(plan.outcome, VOLUME_GROW);
    CLEANUP_FREE char *words = volume_decision_words(&plan);
    assert_string_equal(words, "1 claim grows");
    CLEANUP_JSON cJSON *none = parse("[" CLAIM("data-db-0", "2Gi") "]");
    CLEANUP_VOLUME_DECISION struct volume_decision rest = {0};
    volume_decide_claims(&(struct volume_input){.desired = set, .claims = none}, &rest);
    assert_int_equal(rest.outcome, VOLUME_NOTHING);
    CLEANUP_JSON cJSON *bad_set = make_set("[" TEMPLATE("data", "2GB") "]");
    CLEANUP_VOLUME_DECISION struct volume_decision bad = {0};
    volume_decide_claims(&(struct volume_input){.desired = bad_set, .claims = bound}, &bad);
    assert_int_equal(bad.outcome, VOLUME_BAD_INPUT);
    assert_int_equal(bad.claims.count, 0);
}

/* Whoever may write an object must not end the process. */
static void objects_of_strange_shapes(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "null",
        "[]",
        "1",
        "\"text\"",
        "{}",
        "{\"metadata\":7,\"spec\":[]}",
        "{\"metadata\":{\"name\":7,\"namespace\":\"ns\"},\"spec\":{\"volumeClaimTemplates\":7}}",
        "{\"metadata\":{\"name\":\"db\",\"namespace\":\"ns\"},\"spec\":{\"volumeClaimTemplates\":[null,1,{}]}"
        "}",
        "{\"metadata\":{\"name\":\"db\",\"namespace\":\"ns\"},\"spec\":{\"volumeClaimTemplates\":[{"
        "\"metadata\":{"
        "\"name\":\"data\"},\"spec\":[]}]}}",
        "[null,1,[],{},{\"metadata\":[]},{\"metadata\":{\"name\":\"data-db-0\",\"ownerReferences\":7,"
        "\"annotations\":[1]},\"spec\":7,\"status\":[]}]",
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        for (size_t j = 0; j < ARRAY_SIZE(rows); j++) {
            CLEANUP_JSON cJSON *a = parse(rows[i]);
            CLEANUP_JSON cJSON *b = parse(rows[j]);
            CLEANUP_VOLUME_DECISION struct volume_decision decision = {0};
            volume_decide(&(struct volume_input){a, b, b, b, b, b}, &decision);
            CLEANUP_FREE char *text = volume_decision_text(&decision);
            CLEANUP_JSON cJSON *tree = volume_decision_json(&decision);
            assert_non_null(tree);
            assert_true(strlen(text) > 0);
        }
}

static void each_outcome_has_words(void **state)
{
    (void)state;
    for (int i = VOLUME_NOTHING; i <= VOLUME_OTHER_IMMUTABLE; i++) {
        assert_true(strlen(volume_outcome_word((enum volume_outcome)i)) > 0);
        assert_true(strlen(volume_outcome_reason((enum volume_outcome)i)) > 0);
    }
    assert_true(volume_outcome_is_refused(VOLUME_OTHER_IMMUTABLE));
    assert_false(volume_outcome_is_refused(VOLUME_NOT_BOUND));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_account_is_one_line),
        cmocka_unit_test(a_line_break_in_a_name_makes_no_second_line),
        cmocka_unit_test(json_holds_all_of_it),
        cmocka_unit_test(a_plan_carries_the_guards),
        cmocka_unit_test(claims_are_decided_one_by_one),
        cmocka_unit_test(objects_of_strange_shapes),
        cmocka_unit_test(each_outcome_has_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
