/* SPDX-License-Identifier: Apache-2.0
 *
 * The gateway on the simulated world: what is durable before what leaves, what is not sent, operations, and
 * stopping. */
#include "scene.h"

/* --- before and after ----------------------------------------------------------------------------------- */

static void the_intent_is_on_disk_before_the_request_leaves(void **state)
{
    struct scene *scene = *state;
    env_sim_on_work(scene->env, scene_slow_disk, NULL);
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    scene_expect_none_for(scene, 1900 * US_PER_MS);
    (void)scene_expect(scene, "PATCH", "/api/v1/namespaces/db/pods/mysql-4?");
    assert_string_equal(scene_sql(scene, "SELECT count(*) FROM entry WHERE kind = 'intent'"), "1");
}

static void a_write_carries_its_key_its_preconditions_and_its_timeout(void **state)
{
    struct scene *scene = *state;
    struct env_sim_call *call = scene_send(scene, scene_patch("mysql-4", "b"));
    assert_true(call->once);
    assert_non_null(strstr(call->path, "timeout=10s"));
    assert_non_null(strstr(call->path, "fieldManager=neoset"));
    assert_string_equal(env_sim_http_header(call, "Content-Type"), "application/strategic-merge-patch+json");
    CLEANUP_JSON cJSON *body = NULL;
    assert_int_equal(json_parse(call->body, call->body_length, &body, NULL), 0);
    assert_string_equal(json_path_str(body, "metadata", "uid", NULL), "u1");
    assert_string_equal(json_path_str(body, "metadata", "resourceVersion", NULL), "10");
    assert_string_equal(json_path_str(body, "metadata", "annotations", "apps.neo.io/step", NULL),
                        key_of_call(call));
    assert_string_equal(json_path_str(body, "spec", "image", NULL), "b");
    char key[64];
    snprintf(key, sizeof(key), "%s-%s", journal_nonce(scene->journal.journal),
             scene_sql(scene, "SELECT seq FROM entry WHERE kind = 'intent'"));
    assert_string_equal(key_of_call(call), key);
}

static void a_delete_carries_both_preconditions_in_its_body(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_delete("mysql-4")), 0);
    struct env_sim_call *call = scene_expect(scene, "DELETE", "/pods/mysql-4?timeout=10s");
    assert_null(strstr(call->path, "propagationPolicy"));
    CLEANUP_JSON cJSON *body = NULL;
    assert_int_equal(json_parse(call->body, call->body_length, &body, NULL), 0);
    assert_string_equal(json_str(body, "kind"), "DeleteOptions");
    assert_string_equal(json_path_str(body, "preconditions", "uid", NULL), "u1");
    assert_string_equal(json_path_str(body, "preconditions", "resourceVersion", NULL), "10");
}

static void an_applied_step_is_journaled_with_what_became_of_the_object(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    assert_true(gateway_is_open(scene->gateway, KUBE_POD, "db", "mysql-4"));
    struct env_sim_call *call = scene_expect(scene, "PATCH", NULL);
    scene_answer(scene, call, 200, pod_text("u1", "11", key_of_call(call)));
    assert_told(scene, 0, JOURNAL_APPLIED);
    assert_true(scene->told[0].has_object);
    assert_false(gateway_is_open(scene->gateway, KUBE_POD, "db", "mysql-4"));
    assert_history(scene, "begin intent applied");
    assert_string_equal(
        scene_sql(scene, "SELECT uid || ' ' || version || ' ' || http FROM entry WHERE kind = 'applied'"),
        "u1 11 200");
}

static void a_finished_delete_is_applied_without_an_object(void **state)
{
    struct scene *scene = *state;
    scene_answer(scene, scene_send(scene, scene_delete("mysql-4")), 200,
                 "{\"kind\":\"Status\",\"status\":\"Success\",\"metadata\":{}}");
    assert_told(scene, 0, JOURNAL_APPLIED);
    assert_false(scene->told[0].has_object);
}

static void an_object_has_one_open_step_at_most(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    assert_int_equal(scene_submit(scene, scene_delete("mysql-4")), -ERROR_CONFLICT);
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), -ERROR_CONFLICT);
    assert_int_equal(scene_submit(scene, scene_create("mysql-5", "a")), 0);
    (void)scene_expect(scene, "PATCH", NULL);
    (void)scene_expect(scene, "POST", NULL);
    scene_expect_none_for(scene, US_PER_S);
}

static void what_is_under_way_is_bounded(void **state)
{
    struct scene *scene = *state;
    size_t accepted = 0;
    for (; !gateway_is_busy(scene->gateway); accepted++) {
        CLEANUP_FREE char *pod = xasprintf("mysql-%zu", accepted);
        assert_true(accepted < CALLS_MAX);
        assert_int_equal(scene_submit(scene, scene_create(pod, "a")), 0);
    }
    assert_int_equal(scene_submit(scene, scene_create("one-too-many-0", "a")), -ERROR_REFUSED);
    assert_false(gateway_is_open(scene->gateway, KUBE_POD, "db", "one-too-many-0"));
    /* An answer makes room; so does one that leaves the step in doubt: it may stay so for long. */
    scene_answer(scene, scene_expect(scene, "POST", NULL), 201, OBJECT("Pod", "db", "mysql-0", "u1"));
    assert_false(gateway_is_busy(scene->gateway));
    assert_int_equal(scene_submit(scene, scene_delete("other-0")), 0);
    assert_true(gateway_is_busy(scene->gateway));
    scene_cut(scene, scene_expect(scene, "POST", NULL));
    assert_false(gateway_is_busy(scene->gateway));
}

/* --- not sent, not now ---------------------------------------------------------------------------------- */

static void what_provably_never_left_is_not_sent(void **state)
{
    struct scene *scene = *state;
    scene->refuse = true;
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    scene_settle(scene);
    assert_told(scene, 0, JOURNAL_NOT_SENT);
    assert_history(scene, "begin intent not_sent");
}

static void an_unreachable_server_is_not_asked_for_every_step(void **state)
{
    struct scene *scene = *state;
    scene->refuse = true;
    int intents = 0;
    for (int i = 0; i < 6000; i++) {
        intents += scene_submit(scene, scene_patch("mysql-4", "b")) == 0;
        env_sim_run_for(scene->env, 10 * US_PER_MS);
    }
    assert_in_range(intents, 3, 40);
    assert_true(scene->resumed > 0);
}

static void a_lost_lease_keeps_the_bytes_here(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    scene->leads = false;
    scene_expect_none_for(scene, US_PER_S);
    assert_told(scene, 0, JOURNAL_NOT_SENT);
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), -ERROR_REFUSED);
    assert_history(scene, "begin intent not_sent");
}

static void an_attempt_that_stays_here_does_not_undo_one_that_left(void **state)
{
    struct scene *scene = *state;
    scene_leave_open(scene);
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    scene->leads = false;
    scene_expect_none_for(scene, US_PER_S);
    assert_true(gateway_is_open(scene->gateway, KUBE_POD, "db", "mysql-4"));
    assert_history(scene, "begin intent unknown");
    /* The second attempt never left: its number is used when it does. */
    scene->leads = true;
    struct env_sim_call *call = scene_send(scene, scene_patch("mysql-4", "b"));
    assert_true(str_ends_with(env_sim_http_header(call, "Audit-ID"), "-2"));
    assert_history(scene, "begin intent unknown");
}

static int64_t stuck_disk(void *context)
{
    (void)context;
    return 8 * US_PER_S;
}

static void a_slow_disk_stops_new_intents(void **state)
{
    struct scene *scene = *state;
    env_sim_on_work(scene->env, stuck_disk, NULL);
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    env_sim_run_for(scene->env, 6 * US_PER_S);
    assert_int_equal(journal_health(scene->journal.journal), JOURNAL_SLOW);
    assert_int_equal(scene_submit(scene, scene_create("mysql-5", "a")), -ERROR_REFUSED);
    env_sim_on_work(scene->env, NULL, NULL);
    (void)scene_expect(scene, "PATCH", NULL);
    scene_settle(scene);
    assert_true(scene->resumed > 0);
    assert_int_equal(scene_submit(scene, scene_create("mysql-5", "a")), 0);
}

static void after_a_replaced_journal_all_writes_wait_one_horizon(void **state)
{
    struct scene *scene = *state;
    gateway_hold_horizon(scene->gateway);
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), -ERROR_REFUSED);
    env_sim_run_for(scene->env, 14 * US_PER_S);
    assert_int_equal(scene->resumed, 0);
    env_sim_run_for(scene->env, 2 * US_PER_S);
    assert_int_equal(scene->resumed, 1);
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
}

static int64_t long_stuck_disk(void *context)
{
    (void)context;
    return 20 * US_PER_S;
}

/* The disk was full, or stuck: what has become of the world meanwhile nobody looked at. */
static void what_was_decided_too_long_ago_is_not_sent(void **state)
{
    struct scene *scene = *state;
    env_sim_on_work(scene->env, long_stuck_disk, NULL);
    assert_int_equal(scene_submit(scene, scene_create("mysql-4", "a")), 0);
    env_sim_run_for(scene->env, US_PER_S);
    env_sim_on_work(scene->env, NULL, NULL);
    scene_expect_none_for(scene, 60 * US_PER_S);
    assert_told(scene, 0, JOURNAL_NOT_SENT);
    assert_history(scene, "begin intent not_sent");
    assert_string_equal(scene_sql(scene, "SELECT reason FROM entry WHERE kind = 'not_sent'"),
                        "decided too long ago");
    (void)scene_send(scene, scene_create("mysql-4", "a"));
}

static void what_was_asked_for_again_too_long_ago_is_not_sent_again(void **state)
{
    struct scene *scene = *state;
    scene_leave_open(scene);
    env_sim_on_work(scene->env, long_stuck_disk, NULL);
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    env_sim_run_for(scene->env, US_PER_S);
    env_sim_on_work(scene->env, NULL, NULL);
    scene_expect_none_for(scene, 20 * US_PER_S);
    assert_int_equal(scene->woken, 2);
    assert_true(gateway_is_open(scene->gateway, KUBE_POD, "db", "mysql-4"));
    (void)scene_send(scene, scene_patch("mysql-4", "b"));
}

static void a_freed_gateway_leaves_nothing_with_the_journal(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    gateway_free(STEAL(scene->gateway));
    scene_expect_none_for(scene, US_PER_S);
    assert_history(scene, "begin intent");
}

/* --- operations ----------------------------------------------------------------------------------------- */

static void an_operation_begins_with_its_first_intent_and_ends_after_its_last_step(void **state)
{
    struct scene *scene = *state;
    gateway_end_operation(scene->gateway, "rollout", KUBE_NEOSET, "db", "mysql", "completed", NULL);
    assert_history(scene, "");
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    gateway_end_operation(scene->gateway, "rollout", KUBE_NEOSET, "db", "mysql", "completed", "all there");
    assert_history(scene, "begin intent");
    scene_answer(scene, scene_expect(scene, "PATCH", NULL), 200, pod_text("u1", "11", NULL));
    assert_history(scene, "begin intent applied end");
    assert_string_equal(
        scene_sql(scene, "SELECT kind || ' ' || outcome || ' ' || come_from || ' ' || go_to FROM operation"),
        "rollout completed mysql-1 mysql-2");
}

static void another_target_supersedes_the_operation(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    struct step_request *next = scene_create("mysql-5", "a");
    str_replace(&next->go_to, "mysql-3");
    assert_int_equal(scene_submit(scene, next), -ERROR_REFUSED);
    scene_answer(scene, scene_expect(scene, "PATCH", NULL), 200, pod_text("u1", "11", NULL));
    next = scene_create("mysql-5", "a");
    str_replace(&next->go_to, "mysql-3");
    assert_int_equal(scene_submit(scene, next), 0);
    assert_history(scene, "begin intent applied end begin intent");
    assert_string_equal(scene_sql(scene, "SELECT outcome FROM operation ORDER BY id LIMIT 1"), "superseded");
}

/* A repair, a clean-up: one operation, however many steps it takes, and none waits for another. */
static void an_operation_without_a_goal_in_words_is_one(void **state)
{
    struct scene *scene = *state;
    struct step_request *first = scene_create("mysql-4", "a");
    struct step_request *second = scene_create("mysql-5", "a");
    str_replace(&first->go_to, NULL);
    str_replace(&second->go_to, NULL);
    assert_int_equal(scene_submit(scene, first), 0);
    assert_int_equal(scene_submit(scene, second), 0);
    assert_history(scene, "begin intent intent");
}

static void an_operation_that_had_failed_stays_failed_when_another_takes_its_place(void **state)
{
    struct scene *scene = *state;
    scene_answer(scene, scene_send(scene, scene_patch("mysql-4", "b")), 200, pod_text("u1", "11", NULL));
    struct step_request *next = scene_create("mysql-5", "a");
    str_replace(&next->go_to, "mysql-3");
    next->failed_before = xstrdup("it did not come up");
    assert_int_equal(scene_submit(scene, next), 0);
    assert_string_equal(scene_sql(scene, "SELECT action || ': ' || reason FROM entry WHERE kind = 'end'"),
                        "failed: it did not come up");
    assert_string_equal(scene_sql(scene, "SELECT outcome FROM operation ORDER BY id LIMIT 1"), "failed");
}

/* --- stopping ------------------------------------------------------------------------------------------- */

static void set_flag(void *context)
{
    bool *flag = context;
    *flag = true;
}

static void stopping_waits_for_answers(void **state)
{
    struct scene *scene = *state;
    bool stopped = false;
    struct env_sim_call *call = scene_send(scene, scene_patch("mysql-4", "b"));
    gateway_stop(scene->gateway, 5 * US_PER_S, set_flag, &stopped);
    scene_expect_none_for(scene, US_PER_S);
    assert_false(stopped);
    assert_int_equal(scene_submit(scene, scene_create("mysql-5", "a")), -ERROR_REFUSED);
    scene_answer(scene, call, 200, pod_text("u1", "11", NULL));
    assert_true(stopped);
    assert_history(scene, "begin intent applied");
}

static void stopping_sends_nothing_that_has_not_left(void **state)
{
    struct scene *scene = *state;
    bool stopped = false;
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    gateway_stop(scene->gateway, 5 * US_PER_S, set_flag, &stopped);
    scene_expect_none_for(scene, US_PER_S);
    assert_true(stopped);
    assert_history(scene, "begin intent not_sent");
}

static void stopping_does_not_wait_for_ever(void **state)
{
    struct scene *scene = *state;
    bool stopped = false;
    (void)scene_send(scene, scene_patch("mysql-4", "b"));
    gateway_stop(scene->gateway, 5 * US_PER_S, set_flag, &stopped);
    env_sim_run_for(scene->env, 5 * US_PER_S);
    assert_true(stopped);
    assert_true(gateway_is_open(scene->gateway, KUBE_POD, "db", "mysql-4"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scene_test(the_intent_is_on_disk_before_the_request_leaves),
        scene_test(a_write_carries_its_key_its_preconditions_and_its_timeout),
        scene_test(a_delete_carries_both_preconditions_in_its_body),
        scene_test(an_applied_step_is_journaled_with_what_became_of_the_object),
        scene_test(a_finished_delete_is_applied_without_an_object),
        scene_test(an_object_has_one_open_step_at_most),
        scene_test(what_is_under_way_is_bounded),
        scene_test(what_provably_never_left_is_not_sent),
        scene_test(an_unreachable_server_is_not_asked_for_every_step),
        scene_test(a_lost_lease_keeps_the_bytes_here),
        scene_test(an_attempt_that_stays_here_does_not_undo_one_that_left),
        scene_test(a_slow_disk_stops_new_intents),
        scene_test(after_a_replaced_journal_all_writes_wait_one_horizon),
        scene_test(what_was_decided_too_long_ago_is_not_sent),
        scene_test(what_was_asked_for_again_too_long_ago_is_not_sent_again),
        scene_test(a_freed_gateway_leaves_nothing_with_the_journal),
        scene_test(an_operation_begins_with_its_first_intent_and_ends_after_its_last_step),
        scene_test(another_target_supersedes_the_operation),
        scene_test(an_operation_without_a_goal_in_words_is_one),
        scene_test(an_operation_that_had_failed_stays_failed_when_another_takes_its_place),
        scene_test(stopping_waits_for_answers),
        scene_test(stopping_sends_nothing_that_has_not_left),
        scene_test(stopping_does_not_wait_for_ever),
    };
    return cmocka_run_group_tests_name("gateway", tests, NULL, NULL);
}
