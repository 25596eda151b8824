/* SPDX-License-Identifier: Apache-2.0
 *
 * The recorded stories of a real kubelet: the completion rule tells each of them right, and the simpler rules
 * that others use do not. */
#include "../../replay/trace.h"
#include "whole_file.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

static const char folder[] = "tests/replay/traces";
enum { TOLERANCE_US = 6000 };

static void play(const char *name, trace_rule *rule, struct trace_result *ret)
{
    CLEANUP_FREE char *path = xasprintf("%s/%s.jsonl", folder, name);
    size_t length = 0;
    CLEANUP_FREE char *text = whole_file(path, &length);
    assert_int_equal(trace_play(name, text, length, rule, NULL, ret, NULL), 0);
}

static int64_t done_of(const struct trace_result *result, int64_t generation)
{
    for (size_t i = 0; i < result->patch_count; i++)
        if (result->patches[i].generation == generation)
            return result->patches[i].done_us;
    fail_msg("no patch of generation %lld", (long long)generation);
    return -1;
}

struct verdicts {
    int right, early, late;
};

/* Plays every row of the table by a rule. */
static struct verdicts judge(trace_rule *rule, bool tell)
{
    struct verdicts verdicts = {0};
    CLEANUP_FREE char *path = xasprintf("%s/expected.tsv", folder);
    CLEANUP_FREE char *table = whole_file(path, NULL);
    char *lines = NULL;
    for (char *line = strtok_r(table, "\n", &lines); line; line = strtok_r(NULL, "\n", &lines)) {
        char *fields = NULL;
        const char *name = strtok_r(line, "\t", &fields);
        const char *generation = strtok_r(NULL, "\t", &fields);
        const char *time = strtok_r(NULL, "\t", &fields);
        if (str_equal(name, "trace"))
            continue;
        struct trace_result result;
        play(name, rule, &result);
        int64_t got = done_of(&result, strtoll(generation, NULL, 10));
        int64_t want = str_equal(time, "never") ? INT64_MAX : (int64_t)(strtod(time, NULL) * 1e6);
        int64_t said = got < 0 ? INT64_MAX : got;
        bool right =
            said == want || (said != INT64_MAX && want != INT64_MAX && llabs(said - want) <= TOLERANCE_US);
        if (tell && !right)
            print_error("%s %s: wanted %s, got %lld us\n", name, generation, time, (long long)got);
        verdicts.right += right;
        verdicts.early += !right && said < want;
        verdicts.late += !right && said > want;
    }
    return verdicts;
}

static void every_trace_is_told_right(void **state)
{
    (void)state;
    struct verdicts verdicts = judge(trace_rule_completion, true);
    assert_int_equal(verdicts.right, 30);
    assert_int_equal(verdicts.early + verdicts.late, 0);
}

/* --- what others do
 * ----------------------------------------------------------------------------------------- */

static bool all_ready(const struct pod_fact *pod)
{
    return pod->observed_generation >= pod->generation && pod_fact_probes_ready(pod);
}

/* Another imageID than before. */
static bool rule_image_id(void *context, const struct pod_fact *pod,
                          const struct pod_observation *observation, int64_t at_us, int64_t *ret_again_us)
{
    (void)context, (void)observation, (void)at_us;
    *ret_again_us = INT64_MAX;
    bool changed = pod->state != NULL;
    for (size_t i = 0; pod->state && i < pod->state->container_count; i++) {
        const struct container_baseline *baseline = &pod->state->containers[i];
        const struct container_fact *container = pod_fact_container(pod, baseline->name);
        changed = changed && container && container->image_id &&
                  !str_equal(container->image_id, baseline->image_id);
    }
    return changed && all_ready(pod);
}

/* Seen by the kubelet, running and ready for the grace period and ten seconds. */
static bool rule_waiting(void *context, const struct pod_fact *pod, const struct pod_observation *observation,
                         int64_t at_us, int64_t *ret_again_us)
{
    (void)context;
    *ret_again_us = INT64_MAX;
    if (!pod->state || !all_ready(pod) || !observation)
        return false;
    int64_t enough = observation->probes_boot_us + 12 * 1000000;
    *ret_again_us = enough;
    return at_us >= enough;
}

/* The kubelet has seen it, and it is Ready. */
static bool rule_ready(void *context, const struct pod_fact *pod, const struct pod_observation *observation,
                       int64_t at_us, int64_t *ret_again_us)
{
    (void)context, (void)observation, (void)at_us;
    *ret_again_us = INT64_MAX;
    return pod->state && all_ready(pod) && pod->ready == IS_TRUE;
}

/* A new container, and the kubelet has seen it. */
static bool rule_new_container(void *context, const struct pod_fact *pod,
                               const struct pod_observation *observation, int64_t at_us,
                               int64_t *ret_again_us)
{
    (void)context, (void)observation, (void)at_us;
    *ret_again_us = INT64_MAX;
    bool changed = pod->state != NULL;
    for (size_t i = 0; pod->state && i < pod->state->container_count; i++) {
        const struct container_baseline *baseline = &pod->state->containers[i];
        const struct container_fact *container = pod_fact_container(pod, baseline->name);
        changed = changed && container && container->container_id &&
                  !str_equal(container->container_id, baseline->container_id);
    }
    return changed && all_ready(pod);
}

static void the_image_id_alone_gets_a_third_wrong(void **state)
{
    (void)state;
    struct verdicts verdicts = judge(rule_image_id, false);
    assert_true(verdicts.early + verdicts.late >= 9);
    struct trace_result result;
    play("same-digest", rule_image_id, &result);
    assert_int_equal(done_of(&result, 2), -1);
    play("bad-tag-then-back", rule_image_id, &result);
    assert_int_equal(done_of(&result, 3), -1);
}

static void waiting_proves_nothing(void **state)
{
    (void)state;
    struct verdicts verdicts = judge(rule_waiting, false);
    assert_true(verdicts.early >= 1);
    struct trace_result result;
    play("slow-pull-no-gate", rule_waiting, &result);
    /* It is dead from the first to the sixteenth second. */
    assert_true(done_of(&result, 2) > 0 && done_of(&result, 2) < 16000000);
}

static void ready_alone_proves_nothing(void **state)
{
    (void)state;
    assert_true(judge(rule_ready, false).early >= 10);
}

static void a_new_container_alone_proves_nothing(void **state)
{
    (void)state;
    struct verdicts verdicts = judge(rule_new_container, false);
    assert_true(verdicts.early >= 3);
    struct trace_result result;
    play("flip-after-300ms", rule_new_container, &result);
    assert_int_equal(done_of(&result, 3), 3200000);
}

static void a_broken_line_is_an_error_with_its_number(void **state)
{
    (void)state;
    struct trace_result result;
    CLEANUP_ERROR struct error *err = NULL;
    static const char text[] = "{\"t\":1,\"note\":\"x\"}\n{\"t\":\n";
    assert_true(trace_play("x", text, sizeof(text) - 1, trace_rule_completion, NULL, &result, &err) < 0);
    assert_non_null(strstr(error_text(err), "line 2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_trace_is_told_right),
        cmocka_unit_test(the_image_id_alone_gets_a_third_wrong),
        cmocka_unit_test(waiting_proves_nothing),
        cmocka_unit_test(ready_alone_proves_nothing),
        cmocka_unit_test(a_new_container_alone_proves_nothing),
        cmocka_unit_test(a_broken_line_is_an_error_with_its_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
