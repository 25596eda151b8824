/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run does with the steps of the runs before it: those that are open, and those that turn up late. */
#include "scene.h"

/* --- recovery ------------------------------------------------------------------------------------------- */

static void a_restart_asks_the_server_about_what_is_in_doubt(void **state)
{
    struct scene *scene = *state;
    (void)scene_send(scene, scene_patch("mysql-4", "b"));
    scene_restart(scene);
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), -ERROR_CONFLICT);
    assert_false(scene->recovered);
    scene_show(scene, pod_text("u1", "11", scene->key));
    assert_true(scene->recovered);
    assert_int_equal(scene->woken, 1);
    assert_history(scene, "begin intent applied");
}

static void a_restart_sends_the_very_bytes_that_the_journal_kept(void **state)
{
    struct scene *scene = *state;
    (void)scene_send(scene, scene_patch("mysql-4", "b"));
    scene_restart(scene);
    scene_show(scene, pod_text("u1", "10", NULL));
    assert_true(scene->recovered);
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    struct env_sim_call *call = scene_expect(scene, "PATCH", NULL);
    assert_sent_again(scene, call);
    assert_true(str_ends_with(env_sim_http_header(call, "Audit-ID"), "-2"));
    assert_history(scene, "begin intent unknown");
}

static void a_create_is_made_again_byte_for_byte_after_a_restart(void **state)
{
    struct scene *scene = *state;
    (void)scene_send(scene, scene_create("mysql-4", "a"));
    scene_restart(scene);
    scene_show_none(scene);
    assert_int_equal(scene_submit(scene, scene_create("mysql-4", "other")), -ERROR_CONFLICT);
    assert_int_equal(scene_submit(scene, scene_create("mysql-4", "a")), 0);
    struct env_sim_call *call = scene_expect(scene, "POST", NULL);
    assert_sent_again(scene, call);
}

static void a_create_that_cannot_be_made_again_ends_at_the_horizon(void **state)
{
    struct scene *scene = *state;
    (void)scene_send(scene, scene_create("mysql-4", "a"));
    scene_restart(scene);
    scene_show_none(scene);
    scene_settle_unwanted(scene);
    scene_expect_none_for(scene, 14 * US_PER_S);
    scene_show_none(scene);
    assert_history(scene, "begin intent absent");
    assert_int_equal(scene_submit(scene, scene_create("mysql-4", "other")), 0);
}

static void a_journal_that_went_back_is_not_believed(void **state)
{
    struct scene *scene = *state;
    (void)scene_send(scene, scene_delete("mysql-4"));
    scene_crash(scene);
    scene_start(scene);
    gateway_recover(scene->gateway, true, scene_recovered, scene);
    scene_expect_none_for(scene, US_PER_S);
    assert_true(scene->recovered);
    assert_history(scene, "begin intent overtaken");
}

static void a_restart_in_the_middle_of_a_block_finishes_it(void **state)
{
    struct scene *scene = *state;
    scene_leave_open(scene);
    scene_settle_unwanted(scene);
    scene_show(scene, pod_text("u1", "10", NULL));
    (void)scene_expect(scene, "PATCH", NULL);
    scene_restart(scene);
    /* Both are read; the block goes out again by itself. */
    scene_show(scene, pod_text("u1", "10", NULL));
    scene_show(scene, pod_text("u1", "10", NULL));
    struct env_sim_call *block = scene_expect(scene, "PATCH", NULL);
    assert_true(str_ends_with(env_sim_http_header(block, "Audit-ID"), "-2"));
    scene_answer(scene, block, 200, pod_text("u1", "11", key_of_call(block)));
    scene_settle_unwanted(scene);
    scene_show(scene, pod_text("u1", "11", NULL));
    assert_history(scene, "begin intent intent unknown applied absent");
    assert_false(gateway_is_open(scene->gateway, KUBE_POD, "db", "mysql-4"));
}

/* --- late ------------------------------------------------------------------------------------------- */

static void a_closed_step_that_turns_up_is_journaled_as_late_once(void **state)
{
    struct scene *scene = *state;
    struct env_sim_call *call = scene_send(scene, scene_create("mysql-4", "a"));
    scene_cut(scene, call);
    scene_show_none(scene);
    scene_settle_unwanted(scene);
    scene_show_none(scene);
    gateway_observe_key(scene->gateway, "0123456789abcdef-7");
    gateway_observe_key(scene->gateway, scene->key);
    gateway_observe_key(scene->gateway, scene->key);
    assert_history(scene, "begin intent absent late");
}

/* A step that is closed as kind; its key. */
static void close_step(struct scene *scene, const char *pod, int status, const char *body, char *key,
                       size_t size)
{
    struct env_sim_call *call = scene_send(scene, scene_create(pod, "a"));
    snprintf(key, size, "%s", scene->key);
    scene_answer(scene, call, status, body);
}

/* journal.md, In doubt, rule 6: whichever run closed it. */
static void a_step_that_an_ended_run_closed_is_late_too(void **state)
{
    struct scene *scene = *state;
    char rejected[128], applied[128], stranger[128];
    close_step(scene, "mysql-4", 403, STATUS_OF(403, "Forbidden"), rejected, sizeof(rejected));
    close_step(scene, "mysql-5", 201, OBJECT("Pod", "db", "mysql-5", "u5"), applied, sizeof(applied));
    snprintf(stranger, sizeof(stranger), "0123456789abcdef%s", strchr(rejected, '-'));
    assert_history(scene, "begin intent rejected intent applied");
    for (int restarts = 0; restarts < 3; restarts++) {
        scene_restart(scene);
        for (int seen = 0; seen < 2; seen++) {
            gateway_observe_key(scene->gateway, stranger);
            gateway_observe_key(scene->gateway, applied);
            gateway_observe_key(scene->gateway, rejected);
            gateway_observe_key(scene->gateway, rejected);
            env_sim_run_for(scene->env, US_PER_S);
        }
        assert_history(scene, "begin intent rejected intent applied late");
    }
    struct gateway_metrics metrics;
    gateway_metrics_get(scene->gateway, &metrics);
    assert_int_equal(metrics.late, 0); /* it was the first of the three */
}

static void what_is_no_key_of_ours_asks_nothing(void **state)
{
    struct scene *scene = *state;
    char key[128];
    close_step(scene, "mysql-4", 403, STATUS_OF(403, "Forbidden"), key, sizeof(key));
    journal_fixture_settle(&scene->journal);
    scene_restart(scene);
    const char *dash = strchr(key, '-');
    char no_keys[6][160];
    snprintf(no_keys[0], sizeof(no_keys[0]), "%s ", key);
    snprintf(no_keys[1], sizeof(no_keys[1]), "%.*s", (int)(dash - key), key);
    snprintf(no_keys[2], sizeof(no_keys[2]), "%.*s-", (int)(dash - key), key);
    snprintf(no_keys[3], sizeof(no_keys[3]), "%.*s--%s", (int)(dash - key), key, dash + 1);
    snprintf(no_keys[4], sizeof(no_keys[4]), "%.*s-99999999999999999999999%s", (int)(dash - key), key,
             dash + 1);
    snprintf(no_keys[5], sizeof(no_keys[5]), "x%s", key + 1);
    for (size_t i = 0; i < ARRAY_SIZE(no_keys); i++)
        gateway_observe_key(scene->gateway, no_keys[i]);
    gateway_observe_key(scene->gateway, "");
    env_sim_run_for(scene->env, US_PER_S);
    assert_history(scene, "begin intent rejected");
}

/* After a restart every pod of a large cluster shows a key. */
static void many_keys_of_ended_runs_are_asked_about_within_bounds(void **state)
{
    struct scene *scene = *state;
    char key[128];
    for (int i = 0; i < 100; i++) {
        journal_fixture_note(&scene->journal, "a row");
    }
    close_step(scene, "mysql-4", 403, STATUS_OF(403, "Forbidden"), key, sizeof(key));
    journal_fixture_settle(&scene->journal);
    scene_restart(scene);
    for (int i = 0; i < 100000; i++) {
        char text[64];
        snprintf(text, sizeof(text), "%016x-%d", i, 1 + i % 100);
        gateway_observe_key(scene->gateway, text);
    }
    gateway_observe_key(scene->gateway, key); /* there is no room for it now */
    env_sim_run_for(scene->env, 60 * US_PER_S);
    gateway_observe_key(scene->gateway, key);
    env_sim_run_for(scene->env, 60 * US_PER_S);
    assert_history(scene, "begin intent rejected late");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scene_test(a_closed_step_that_turns_up_is_journaled_as_late_once),
        scene_test(a_step_that_an_ended_run_closed_is_late_too),
        scene_test(what_is_no_key_of_ours_asks_nothing),
        scene_test(many_keys_of_ended_runs_are_asked_about_within_bounds),
        scene_test(a_restart_asks_the_server_about_what_is_in_doubt),
        scene_test(a_restart_sends_the_very_bytes_that_the_journal_kept),
        scene_test(a_create_is_made_again_byte_for_byte_after_a_restart),
        scene_test(a_create_that_cannot_be_made_again_ends_at_the_horizon),
        scene_test(a_journal_that_went_back_is_not_believed),
        scene_test(a_restart_in_the_middle_of_a_block_finishes_it),
    };
    return cmocka_run_group_tests_name("gateway recovery", tests, NULL, NULL);
}
