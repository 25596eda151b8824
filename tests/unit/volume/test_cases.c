/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of cases (tests/volume/cases, see its README) through volume_decide. */
#include "volume/decide.h"
#include "whole_file.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define CASES "tests/volume/cases"

enum { CASES_MIN = 60 };

static cJSON *fixture;

static cJSON *read_json(const char *name)
{
    CLEANUP_FREE char *path = xasprintf("%s/%s", CASES, name);
    size_t length = 0;
    CLEANUP_FREE char *text = whole_file(path, &length);
    cJSON *tree = NULL;
    CLEANUP_ERROR struct error *err = NULL;
    if (json_parse(text, length, &tree, &err) < 0)
        fail_msg("%s: %s", path, error_text(err));
    return tree;
}

/* --- a case's objects ----------------------------------------------------------------------------------- */

/* The case's own member, or the fixture's. */
static const cJSON *member(const cJSON *test, const char *key)
{
    const cJSON *own = json_get(test, key);
    return own ? own : json_get(fixture, key);
}

static cJSON *make_set(const cJSON *test, const cJSON *own, const cJSON *status)
{
    cJSON *set = json_new_object();
    cJSON *metadata = json_add_object(set, "metadata");
    json_add_str(metadata, "name", member(test, "set")->valuestring);
    if (cJSON_IsString(member(test, "namespace")))
        json_add_str(metadata, "namespace", member(test, "namespace")->valuestring);
    cJSON *spec = json_copy(member(test, "spec"));
    const cJSON *part;
    cJSON_ArrayForEach (part, own)
        json_set_item(spec, part->string, json_copy(part));
    json_add_item(set, "spec", spec);
    if (status)
        json_add_item(set, "status", json_copy(status));
    return set;
}

static const cJSON *null_is_none(const cJSON *node)
{
    return cJSON_IsNull(node) ? NULL : node;
}

static void decide(const cJSON *test, struct volume_decision *ret)
{
    const cJSON *live_own = null_is_none(member(test, "live"));
    CLEANUP_JSON cJSON *desired = make_set(test, member(test, "declared"), NULL);
    CLEANUP_JSON cJSON *live = live_own ? make_set(test, live_own, member(test, "liveStatus")) : NULL;
    CLEANUP_FREE char *before = json_print(member(test, "claims"));
    volume_decide(&(struct volume_input){.desired = desired,
                                         .live = live,
                                         .claims = member(test, "claims"),
                                         .others = member(test, "others"),
                                         .pods = member(test, "pods"),
                                         .classes = null_is_none(member(test, "classes"))},
                  ret);
    CLEANUP_FREE char *after = json_print(member(test, "claims"));
    assert_string_equal(before, after);
}

/* --- what is expected ----------------------------------------------------------------------------------- */

/* A member that the case gives must be there, spelled so. */
static bool is_as_wanted(const cJSON *want, const char *key, const char *got)
{
    const cJSON *node = json_get(want, key);
    return !node || (cJSON_IsNull(node) ? got == NULL : str_equal(node->valuestring, got));
}

static size_t check_items(const char *what, const cJSON *wanted, const struct volume_items *got)
{
    if (!wanted)
        return 0;
    size_t wrong = (size_t)cJSON_GetArraySize(wanted) != got->count;
    const cJSON *want;
    size_t i = 0;
    cJSON_ArrayForEach (want, wanted) {
        if (i == got->count)
            break;
        const struct volume_item *item = &got->items[i++];
        if (!is_as_wanted(want, "name", item->name) || !is_as_wanted(want, "from", item->from) ||
            !is_as_wanted(want, "to", item->to) || !is_as_wanted(want, "field", item->field))
            wrong++;
    }
    if (wrong)
        print_error("  other %s than expected\n", what);
    return wrong;
}

static size_t check_text(const cJSON *wanted, const struct volume_decision *decision)
{
    CLEANUP_FREE char *text = volume_decision_text(decision);
    size_t wrong = 0;
    assert_null(strchr(text, '\n'));
    const cJSON *part;
    cJSON_ArrayForEach (part, wanted)
        if (!strstr(text, part->valuestring)) {
            print_error("  does not say \"%s\"\n", part->valuestring);
            wrong++;
        }
    /* A refusal names every offending item. */
    for (size_t i = 0; i < decision->refused.count; i++)
        wrong += strstr(text, decision->refused.items[i].name) == NULL;
    return wrong;
}

static int exit_of(const struct volume_decision *decision)
{
    if (volume_outcome_is_refused(decision->outcome))
        return 2;
    return decision->outcome == VOLUME_NOTHING || decision->outcome == VOLUME_GROW ? 0 : 1;
}

/* What the script is to do follows from the outcome, unless the case says why not. */
static size_t check_exit(const cJSON *expect, const struct volume_decision *decision)
{
    int64_t wanted = json_int64_or(expect, "exit", -1);
    bool differs = wanted != exit_of(decision);
    bool explained = json_str(expect, "difference") != NULL;
    if (differs != explained)
        print_error("  exit %d, %s\n", exit_of(decision), explained ? "no difference" : "not explained");
    return differs != explained;
}

static size_t check(const cJSON *test)
{
    const cJSON *expect = json_get(test, "expect");
    struct volume_decision decision;
    decide(test, &decision);
    const char *word = volume_outcome_word(decision.outcome);
    bool plan = decision.refused.count == 0;
    size_t wrong = !str_equal(word, json_str(expect, "outcome"));
    if (wrong)
        print_error("  outcome %s\n", word);
    wrong += check_items("items", json_get(expect, "items"), plan ? &decision.claims : &decision.refused);
    wrong += check_items("grown", json_get(expect, "grown"), &decision.grown);
    wrong += check_items("lagging", json_get(expect, "lagging"), &decision.lagging);
    wrong += check_items("terminating", json_get(expect, "terminating"), &decision.terminating);
    wrong += check_text(json_get(expect, "says"), &decision);
    wrong += check_exit(expect, &decision);
    wrong += decision.recreate != (decision.outcome == VOLUME_GROW);
    wrong += json_bool_or(expect, "recoverable", false) != decision.recoverable;
    if (wrong) {
        CLEANUP_JSON cJSON *json = volume_decision_json(&decision);
        CLEANUP_FREE char *text = json_print(json);
        print_error("FAIL %s: %s\n", json_str(test, "name"), text);
    }
    volume_decision_done(&decision);
    return wrong != 0;
}

/* --- the files ------------------------------------------------------------------------------------------ */

static int is_table(const struct dirent *entry)
{
    return str_ends_with(entry->d_name, ".json") && strcmp(entry->d_name, "fixture.json") != 0;
}

static bool is_known(const char *key, const char *const *keys)
{
    for (; *keys; keys++)
        if (strcmp(key, *keys) == 0)
            return true;
    return false;
}

/* A member that nobody reads would be a rule that nobody checks. */
static size_t check_members(const cJSON *test)
{
    static const char *const keys[] = {"name",   "note",       "namespace", "set",    "spec",
                                       "live",   "liveStatus", "declared",  "claims", "classes",
                                       "others", "pods",       "expect",    NULL};
    static const char *const expected[] = {"outcome", "items", "grown",      "lagging",     "terminating",
                                           "says",    "exit",  "difference", "recoverable", NULL};
    size_t wrong = !json_str(test, "name") || !json_get(json_get(test, "expect"), "items") ||
                   !json_get(json_get(test, "expect"), "exit");
    const cJSON *part;
    cJSON_ArrayForEach (part, test)
        wrong += !is_known(part->string, keys);
    cJSON_ArrayForEach (part, json_get(test, "expect"))
        wrong += !is_known(part->string, expected);
    if (wrong)
        print_error("FAIL %s: a member is unknown or missing\n", json_str(test, "name"));
    return wrong;
}

static void every_case_is_decided_as_it_says(void **state)
{
    (void)state;
    struct dirent **entries = NULL;
    int files = scandir(CASES, &entries, is_table, alphasort);
    assert_true(files > 0);
    size_t count = 0, failed = 0;
    for (int i = 0; i < files; i++) {
        CLEANUP_JSON cJSON *tests = read_json(entries[i]->d_name);
        const cJSON *test;
        cJSON_ArrayForEach (test, tests) {
            count++;
            failed += check_members(test) + check(test) > 0;
        }
        free(entries[i]);
    }
    free(entries);
    print_message("%zu cases\n", count);
    assert_int_equal(failed, 0);
    assert_true(count >= CASES_MIN);
}

static int read_fixture(void **state)
{
    (void)state;
    fixture = read_json("fixture.json");
    return 0;
}

static int free_fixture(void **state)
{
    (void)state;
    json_delete(fixture);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_case_is_decided_as_it_says)};
    return cmocka_run_group_tests(tests, read_fixture, free_fixture);
}
