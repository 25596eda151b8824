/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps in doubt that stay open: sent again while they are wanted, made impossible when they are not. */
#include "scene.h"

/* --- open and still wanted ------------------------------------------------------------------------------ */

static void the_same_bytes_are_sent_again_under_the_next_attempt(void **state)
{
    struct scene *scene = *state;
    scene_leave_open(scene);
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    struct env_sim_call *call = scene_expect(scene, "PATCH", NULL);
    assert_sent_again(scene, call);
    assert_true(str_ends_with(env_sim_http_header(call, "Audit-ID"), "-2"));
    scene_answer(scene, call, 200, pod_text("u1", "11", NULL));
    assert_history(scene, "begin intent unknown applied");
    assert_string_equal(scene_sql(scene, "SELECT group_concat(attempt, ' ') FROM entry WHERE step > 0"),
                        "1 1 2");
}

static void the_unknown_entry_is_on_disk_before_the_next_attempt_leaves(void **state)
{
    struct scene *scene = *state;
    scene_leave_open(scene);
    journal_fixture_settle(&scene->journal);
    env_sim_on_work(scene->env, scene_slow_disk, NULL);
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    scene_expect_none_for(scene, 1900 * US_PER_MS);
    (void)scene_expect(scene, "PATCH", NULL);
    assert_string_equal(scene_sql(scene, "SELECT count(*) FROM entry WHERE kind = 'unknown'"), "1");
}

static void another_step_does_not_pass_as_the_open_one(void **state)
{
    struct scene *scene = *state;
    scene_leave_open(scene);
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "c")), -ERROR_CONFLICT);
    struct step_request *moved = scene_patch("mysql-4", "b");
    str_replace(&moved->version, "11");
    assert_int_equal(scene_submit(scene, moved), -ERROR_CONFLICT);
}

/* What is called the same, and is to be made with another body: no version stands in its way. */
static void a_create_with_other_bytes_does_not_pass_as_the_open_one(void **state)
{
    struct scene *scene = *state;
    scene_cut(scene, scene_send(scene, scene_create("mysql-4", "a")));
    scene_show_none(scene);
    assert_int_equal(scene_submit(scene, scene_create("mysql-4", "b")), -ERROR_CONFLICT);
    assert_int_equal(scene_submit(scene, scene_create("mysql-4", "a")), 0);
    struct env_sim_call *call = scene_expect(scene, "POST", NULL);
    assert_sent_again(scene, call);
}

static void in_doubt_nothing_else_takes_availability_away(void **state)
{
    struct scene *scene = *state;
    scene_leave_open(scene);
    assert_true(gateway_lowers_availability(scene->gateway, KUBE_NEOSET, "db", "mysql"));
    assert_int_equal(scene_submit(scene, scene_patch("mysql-3", "b")), -ERROR_CONFLICT);
    assert_int_equal(scene_submit(scene, scene_create("mysql-5", "a")), 0);
}

/* Plays a server that never takes the update and shows the pod as it was, until the step is closed; the time
 * that it took. */
static int64_t refuse_until_closed(struct scene *scene)
{
    int64_t begin_us = env_boot_us(scene->env);
    int woken = scene->woken;
    while (gateway_is_open(scene->gateway, KUBE_POD, "db", "mysql-4")) {
        if (env_boot_us(scene->env) - begin_us > 300 * US_PER_S)
            fail_msg("it is open after five minutes");
        if (scene->woken != woken) {
            woken = scene->woken;
            (void)scene_submit(scene, scene_patch("mysql-4", "b"));
        }
        struct env_sim_call *call = scene_next(scene);
        if (strcmp(call->method, "GET") == 0)
            scene_answer(scene, call, 200, pod_text("u1", "10", NULL));
        else
            scene_answer(scene, call, 422, STATUS_OF(422, "Invalid"));
    }
    return env_boot_us(scene->env) - begin_us;
}

static void a_refusal_is_believed_once_the_lost_attempt_cannot_land_any_more(void **state)
{
    struct scene *scene = *state;
    scene_leave_open(scene);
    int64_t took_us = refuse_until_closed(scene);
    assert_in_range(took_us, 15 * US_PER_S - 1, 90 * US_PER_S);
    assert_told(scene, scene->told_count - 1, JOURNAL_REJECTED);
    assert_int_equal(scene->told[scene->told_count - 1].http, 422);
    assert_string_equal(scene->told[scene->told_count - 1].reason, "Invalid");
}

static void a_refusal_after_a_restart_is_believed_too(void **state)
{
    struct scene *scene = *state;
    (void)scene_send(scene, scene_patch("mysql-4", "b"));
    scene_restart(scene);
    assert_in_range(refuse_until_closed(scene), 15 * US_PER_S - 1, 90 * US_PER_S);
    assert_string_equal(scene_sql(scene, "SELECT http FROM entry WHERE kind = 'rejected'"), "422");
}

static void a_server_that_never_answers_is_not_hammered(void **state)
{
    struct scene *scene = *state;
    int attempts = 0;
    int64_t end_us = env_boot_us(scene->env) + 60 * US_PER_S;
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    while (env_boot_us(scene->env) < end_us) {
        struct env_sim_call *call = scene_next(scene);
        if (strcmp(call->method, "GET") == 0) {
            scene_answer(scene, call, 200, pod_text("u1", "10", NULL));
            (void)scene_submit(scene, scene_patch("mysql-4", "b"));
        } else {
            attempts++;
            scene_answer(scene, call, 503, STATUS_OF(503, "ServiceUnavailable"));
        }
    }
    assert_in_range(attempts, 3, 40);
}

/* --- open and no longer wanted -------------------------------------------------------------------------- */

static void what_is_no_longer_wanted_is_made_impossible_first(void **state)
{
    struct scene *scene = *state;
    scene_leave_open(scene);
    scene_settle_unwanted(scene);
    scene_show(scene, pod_text("u1", "10", NULL));
    struct env_sim_call *block = scene_expect(scene, "PATCH", "/pods/mysql-4?");
    assert_string_equal(env_sim_http_header(block, "Content-Type"), "application/merge-patch+json");
    CLEANUP_JSON cJSON *body = NULL;
    assert_int_equal(json_parse(block->body, block->body_length, &body, NULL), 0);
    assert_string_equal(json_path_str(body, "metadata", "resourceVersion", NULL), "10");
    assert_null(json_get(body, "spec"));
    scene_answer(scene, block, 200, pod_text("u1", "11", key_of_call(block)));
    scene_show(scene, pod_text("u1", "11", NULL));
    assert_told(scene, scene->told_count - 1, JOURNAL_ABSENT);
    assert_history(scene, "begin intent intent applied absent");
    assert_string_equal(
        scene_sql(scene, "SELECT action FROM entry WHERE kind = 'intent' ORDER BY seq DESC LIMIT 1"),
        "block");
}

static void a_step_that_arrives_before_its_block_is_applied(void **state)
{
    struct scene *scene = *state;
    struct env_sim_call *call = scene_send(scene, scene_patch("mysql-4", "b"));
    scene_cut(scene, call);
    scene_show(scene, pod_text("u1", "10", NULL));
    scene_settle_unwanted(scene);
    scene_show(scene, pod_text("u1", "10", NULL));
    scene_answer(scene, scene_expect(scene, "PATCH", NULL), 409, CONFLICT);
    /* The block is in doubt: its object is read, then the step's. */
    scene_show(scene, pod_text("u1", "11", scene->key));
    scene_show(scene, pod_text("u1", "11", scene->key));
    assert_told(scene, scene->told_count - 1, JOURNAL_APPLIED);
    assert_history(scene, "begin intent intent absent applied");
}

static void a_block_that_is_lost_is_sent_again_by_itself(void **state)
{
    struct scene *scene = *state;
    scene_leave_open(scene);
    scene_settle_unwanted(scene);
    scene_show(scene, pod_text("u1", "10", NULL));
    scene_cut(scene, scene_expect(scene, "PATCH", NULL));
    scene_show(scene, pod_text("u1", "10", NULL));
    struct env_sim_call *block = scene_expect(scene, "PATCH", NULL);
    assert_true(str_ends_with(env_sim_http_header(block, "Audit-ID"), "-2"));
    scene_answer(scene, block, 200, pod_text("u1", "11", key_of_call(block)));
    scene_show(scene, pod_text("u1", "11", NULL));
    assert_told(scene, scene->told_count - 1, JOURNAL_ABSENT);
    assert_history(scene, "begin intent intent unknown applied absent");
}

/* The server refuses every block for ten minutes of the world: how many came. */
static int count_refused_blocks(struct scene *scene)
{
    int blocks = 0, woken = -1;
    int64_t end_us = env_boot_us(scene->env) + 600 * US_PER_S;
    while (env_boot_us(scene->env) < end_us) {
        if (scene->woken != woken) {
            woken = scene->woken;
            scene_settle_unwanted(scene);
        }
        struct env_sim_call *call = scene_next(scene);
        bool reads = strcmp(call->method, "GET") == 0;
        blocks += !reads;
        scene_answer(scene, call, reads ? 200 : 403,
                     reads ? pod_text("u1", "10", NULL) : STATUS_OF(403, "Forbidden"));
    }
    return blocks;
}

static void a_refused_block_backs_off(void **state)
{
    struct scene *scene = *state;
    scene_leave_open(scene);
    assert_in_range(count_refused_blocks(scene), 4, 12);
    struct gateway_metrics metrics;
    gateway_metrics_get(scene->gateway, &metrics);
    assert_int_equal(metrics.parked, 1);
    /* Meanwhile it can be wanted again. */
    (void)scene_send(scene, scene_patch("mysql-4", "b"));
}

/* Creates until nothing more may be under way; the first of them, of other-0. */
static struct env_sim_call *fill_up(struct scene *scene)
{
    for (int i = 0; !gateway_is_busy(scene->gateway); i++) {
        CLEANUP_FREE char *pod = xasprintf("other-%d", i);
        assert_int_equal(scene_submit(scene, scene_create(pod, "a")), 0);
    }
    return scene_expect(scene, "POST", NULL);
}

static void what_is_sent_again_counts_as_under_way(void **state)
{
    struct scene *scene = *state;
    scene_leave_open(scene);
    struct env_sim_call *first = fill_up(scene);
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), -ERROR_REFUSED);
    /* Refused is not unwanted. */
    scene_settle_unwanted(scene);
    scene_answer(scene, first, 201, OBJECT("Pod", "db", "other-0", "u9"));
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
}

static void no_block_leaves_while_too_much_is_under_way(void **state)
{
    struct scene *scene = *state;
    scene_leave_open(scene);
    scene_settle_unwanted(scene);
    struct env_sim_call *reading = scene_expect(scene, "GET", NULL);
    struct env_sim_call *first = fill_up(scene);
    scene_answer(scene, reading, 200, pod_text("u1", "10", NULL));
    env_sim_run_for(scene->env, US_PER_S);
    while (scene->taken < scene->arrived)
        assert_string_equal(scene->calls[scene->taken++]->method, "POST");
    scene_answer(scene, first, 201, OBJECT("Pod", "db", "other-0", "u9"));
    scene_settle_unwanted(scene);
    scene_show(scene, pod_text("u1", "10", NULL));
    (void)scene_expect(scene, "PATCH", NULL);
}

static void a_create_that_is_no_longer_wanted_waits_for_its_horizon(void **state)
{
    struct scene *scene = *state;
    scene_cut(scene, scene_send(scene, scene_create("mysql-4", "a")));
    scene_show_none(scene);
    scene_settle_unwanted(scene);
    scene_expect_none_for(scene, 14 * US_PER_S);
    scene_show_none(scene);
    assert_told(scene, scene->told_count - 1, JOURNAL_ABSENT);
    assert_history(scene, "begin intent absent");
}

static void what_was_never_executed_needs_no_block(void **state)
{
    struct scene *scene = *state;
    scene_answer(scene, scene_send(scene, scene_patch("mysql-4", "b")), 429,
                 STATUS_OF(429, "TooManyRequests"));
    env_sim_run_for(scene->env, US_PER_S);
    scene_settle_unwanted(scene);
    assert_told(scene, scene->told_count - 1, JOURNAL_REJECTED);
    scene_expect_none_for(scene, US_PER_S);
}

static void retry_after_is_honoured(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    struct http_header header = {"Retry-After", "7"};
    const char *body = STATUS_OF(429, "TooManyRequests");
    env_sim_http_answer(scene_expect(scene, "PATCH", NULL), 429, &header, 1, body, strlen(body));
    env_sim_run_for(scene->env, 6900 * US_PER_MS);
    assert_int_equal(scene->woken, 0);
    env_sim_run_for(scene->env, 2 * US_PER_S);
    assert_int_equal(scene->woken, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scene_test(the_same_bytes_are_sent_again_under_the_next_attempt),
        scene_test(the_unknown_entry_is_on_disk_before_the_next_attempt_leaves),
        scene_test(another_step_does_not_pass_as_the_open_one),
        scene_test(a_create_with_other_bytes_does_not_pass_as_the_open_one),
        scene_test(in_doubt_nothing_else_takes_availability_away),
        scene_test(a_refusal_is_believed_once_the_lost_attempt_cannot_land_any_more),
        scene_test(a_refusal_after_a_restart_is_believed_too),
        scene_test(a_server_that_never_answers_is_not_hammered),
        scene_test(what_is_no_longer_wanted_is_made_impossible_first),
        scene_test(a_step_that_arrives_before_its_block_is_applied),
        scene_test(a_block_that_is_lost_is_sent_again_by_itself),
        scene_test(a_refused_block_backs_off),
        scene_test(what_is_sent_again_counts_as_under_way),
        scene_test(no_block_leaves_while_too_much_is_under_way),
        scene_test(a_create_that_is_no_longer_wanted_waits_for_its_horizon),
        scene_test(what_was_never_executed_needs_no_block),
        scene_test(retry_after_is_honoured),
    };
    return cmocka_run_group_tests_name("gateway doubt", tests, NULL, NULL);
}
