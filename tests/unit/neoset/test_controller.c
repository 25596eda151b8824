/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole controller - watches, lease, turns, gateway, journal - against kubesim and its kubelet in virtual
 * time: rollouts, kills at any moment, lost answers, late requests, stolen leases, a journal that went back.
 */
#include "controller_scene.h"

/* --- stories -------------------------------------------------------------------------------------------- */

static void a_set_is_created_and_rolled(void **state)
{
    struct scene *scene = *state;
    start_idle_set(scene, 5, 2);
    assert_restarts(scene, 5, 0);
    set_image(scene, "mysql:8.1");
    wait_for(scene, "Completed", "mysql:8.1", 5, 120 * US_PER_S);
    assert_restarts(scene, 5, 1);
    pass(scene, US_PER_S);
    assert_history_agrees(scene);
    assert_nothing_is_open(scene);
    assert_string_equal(
        sql(scene, "SELECT group_concat(kind || ' ' || outcome, ', ') FROM operation WHERE kind = 'rollout'"),
        "rollout completed");
    /* Each pod was waited for, and came; and the image, once for the one node. */
    assert_string_equal(sql(scene, "SELECT count(*) FROM entry WHERE kind = 'wait_end' AND "
                                   "detail ->> 'outcome' = 'done'"),
                        "6");
}

static void with_nothing_changed_nothing_is_written(void **state)
{
    struct scene *scene = *state;
    start_idle_set(scene, 3, 1);
    pass(scene, 5 * US_PER_S);
    uint64_t before = kubesim_count(sim_server_kubesim(scene->server)).writes;
    pass(scene, 600 * US_PER_S);
    assert_int_equal(kubesim_count(sim_server_kubesim(scene->server)).writes, before);
    /* Also not by a restart. */
    stop_program(scene, &scene->program);
    start(scene);
    pass(scene, 60 * US_PER_S);
    assert_int_equal(kubesim_count(sim_server_kubesim(scene->server)).writes, before);
}

/* One rollout with a kill at a moment of its own; returns false when the rollout was over before. */
static bool roll_with_a_kill_after(int64_t kill_us, const char *faults)
{
    void *state = NULL;
    setup(&state);
    struct scene *scene = state;
    start_idle_set(scene, 3, 2);
    if (faults)
        assert_int_equal(kubesim_fault_add(sim_server_kubesim(scene->server), faults, NULL), 0);
    set_image(scene, "mysql:8.1");
    pass(scene, kill_us);
    bool over = set_has(scene, "Completed", "mysql:8.1", 3);
    kill_program(&scene->program);
    pass(scene, 20 * US_PER_MS);
    start(scene);
    wait_for(scene, "Completed", "mysql:8.1", 3, 240 * US_PER_S);
    assert_restarts(scene, 3, 1);
    pass(scene, 20 * US_PER_S);
    assert_history_agrees(scene);
    assert_nothing_is_open(scene);
    teardown(&state);
    return !over;
}

/* Around the moments where something is sent: every half millisecond at the start, then coarser. */
static void killed_at_any_moment_it_finishes_and_nothing_is_done_twice(void **state)
{
    (void)state;
    int kills = 0;
    for (int64_t at_us = 0; at_us < 20 * US_PER_MS; at_us += 500)
        kills += roll_with_a_kill_after(at_us, NULL);
    for (int64_t at_us = 20 * US_PER_MS; at_us < 500 * US_PER_MS; at_us += 7 * US_PER_MS + 300)
        kills += roll_with_a_kill_after(at_us, NULL);
    for (int64_t at_us = 10 * US_PER_S; at_us < 12 * US_PER_S; at_us += 23 * US_PER_MS)
        kills += roll_with_a_kill_after(at_us, NULL);
    print_message("    %d kills\n", kills);
    assert_true(kills > 100);
}

static const char *const fault_specs[] = {
    "lost,verb=patch,resource=pods,times=2",
    "lost,verb=patch,resource=pods/status,times=3",
    "lost,verb=patch,resource=neosets/status,times=2",
    "lost,verb=create,resource=controllerrevisions",
    "drop,verb=patch,resource=pods,times=2",
    "late=3s,verb=patch,resource=pods",
    "late=12s,verb=patch,resource=pods",
    "late=3s,verb=patch,resource=pods/status,nth=2",
    "late=3s,verb=patch,resource=neosets/status",
    "409,verb=patch,resource=pods,times=2",
    "429,retry=2,verb=patch,resource=pods,times=2",
    "429,retry=2,times=5",
    "500,verb=patch,resource=pods,times=2",
    "503,verb=patch,resource=pods/status,times=4",
    "slow=4s,verb=patch,resource=pods",
    "cut=3,resource=pods;freeze=5,resource=neosets",
    "gone,resource=pods",
};

static void whatever_becomes_of_answers_it_finishes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(fault_specs); i++) {
        print_message("    %s\n", fault_specs[i]);
        (void)roll_with_a_kill_after(40 * US_PER_S, fault_specs[i]);
    }
}

static void whatever_becomes_of_answers_and_killed_in_between_it_finishes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(fault_specs); i++)
        for (int64_t at_us = 3 * US_PER_MS; at_us < 200 * US_PER_MS; at_us += 67 * US_PER_MS)
            (void)roll_with_a_kill_after(at_us, fault_specs[i]);
}

static void a_set_that_is_deleted_in_mid_rollout_leaves_nothing_open(void **state)
{
    struct scene *scene = *state;
    start_idle_set(scene, 3, 1);
    set_image(scene, "mysql:8.1");
    pass(scene, 120 * US_PER_MS);
    assert_int_equal(sim_server_ask(scene->server, "DELETE", SET_PATH, NULL, NULL, NULL), 200);
    pass(scene, 60 * US_PER_S);
    assert_nothing_is_open(scene);
    assert_history_agrees(scene);
}

static void a_set_that_is_deleted_while_nobody_looks_leaves_nothing_open(void **state)
{
    struct scene *scene = *state;
    start_idle_set(scene, 3, 1);
    assert_int_equal(
        kubesim_fault_add(sim_server_kubesim(scene->server), "drop,verb=patch,resource=pods", NULL), 0);
    set_image(scene, "mysql:8.1");
    pass(scene, 120 * US_PER_MS);
    kill_program(&scene->program);
    assert_int_equal(sim_server_ask(scene->server, "DELETE", SET_PATH, NULL, NULL, NULL), 200);
    pass(scene, US_PER_S);
    start(scene);
    pass(scene, 60 * US_PER_S);
    assert_nothing_is_open(scene);
    assert_history_agrees(scene);
}

static void of_two_controllers_one_writes(void **state)
{
    struct scene *scene = *state;
    scene->with_lease = true;
    create_set(scene, 3, 1, "mysql:8.0");
    start(scene);
    pass(scene, US_PER_S);
    struct program second;
    CLEANUP_FREE char *path = xasprintf("%s/second.db", scene->files.folder);
    start_program(scene, &second, path, "pod-1");
    wait_for(scene, "Idle", "mysql:8.0", 3, 60 * US_PER_S);
    assert_string_equal(journal_fixture_sql(path, "SELECT count(*) FROM entry WHERE kind = 'intent'"), "0");
    /* The first one goes; the second one waits its lease out, and one horizon: another journal wrote before.
     */
    kill_program(&scene->program);
    set_image(scene, "mysql:8.1");
    pass(scene, 25 * US_PER_S);
    assert_string_equal(journal_fixture_sql(path, "SELECT count(*) FROM entry WHERE kind = 'intent'"), "0");
    wait_for(scene, "Completed", "mysql:8.1", 3, 120 * US_PER_S);
    assert_restarts(scene, 3, 1);
    CLEANUP_JSON cJSON *lease = sim_server_get(scene->server, LEASE_PATH);
    assert_true(str_starts_with(json_path_str(lease, "spec", "holderIdentity", NULL), "pod-1_"));
    assert_string_equal(journal_fixture_sql(path, "SELECT reason FROM entry WHERE kind = 'note'"),
                        "the journal was replaced: the lease names another journal");
    kill_program(&second);
}

static void a_restart_need_not_wait_for_its_own_lease(void **state)
{
    struct scene *scene = *state;
    scene->with_lease = true;
    start_idle_set(scene, 1, 1);
    kill_program(&scene->program);
    set_image(scene, "mysql:8.1");
    start(scene);
    pass(scene, 100 * US_PER_MS);
    assert_string_equal(
        sql(scene,
            "SELECT count(*) > 0 FROM entry WHERE kind = 'intent' AND run = (SELECT max(run) FROM entry)"),
        "1");
}

static void a_stolen_lease_stops_the_writes(void **state)
{
    struct scene *scene = *state;
    scene->with_lease = true;
    start_idle_set(scene, 3, 1);
    merge(scene, LEASE_PATH, "{\"spec\":{\"holderIdentity\":\"thief\"}}");
    pass(scene, 6 * US_PER_S);
    size_t before = sim_server_write_count(scene->server);
    set_image(scene, "mysql:8.1");
    pass(scene, 20 * US_PER_S);
    assert_int_equal(sim_server_write_count(scene->server), before + 1); /* the person's own */
    /* The thief never renews. */
    wait_for(scene, "Completed", "mysql:8.1", 3, 120 * US_PER_S);
}

/* Also when it is killed before it leads again: the time that another one had is not its own. */
static void who_does_not_lead_lets_its_deadlines_stand_still(void **state)
{
    struct scene *scene = *state;
    scene->with_lease = true;
    start_idle_set(scene, 3, 1);
    set_image(scene, "mysql:none");
    pass(scene, 30 * US_PER_S);
    assert_string_equal(sql(scene, "SELECT count(*) FROM entry WHERE kind = 'wait_begin'"), "1");
    assert_string_equal(sql(scene, "SELECT count(*) FROM entry WHERE kind = 'wait_hold'"), "0");
    merge(scene, LEASE_PATH, "{\"spec\":{\"holderIdentity\":\"thief\"}}");
    pass(scene, 6 * US_PER_S);
    kill_program(&scene->program);
    assert_string_equal(sql(scene, "SELECT reason FROM entry WHERE kind = 'wait_hold'"),
                        "this controller does not lead");
}

static void copy_file(const char *from, const char *to)
{
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_non_null(in);
    assert_non_null(out);
    char bytes[65536];
    size_t length = 0;
    while ((length = fread(bytes, 1, sizeof(bytes), in)) > 0)
        assert_int_equal(fwrite(bytes, 1, length, out), length);
    fclose(in);
    fclose(out);
}

static void a_journal_that_went_back_is_not_believed(void **state)
{
    struct scene *scene = *state;
    scene->with_lease = true;
    start_idle_set(scene, 3, 1);
    stop_program(scene, &scene->program);
    CLEANUP_FREE char *backup = xasprintf("%s/backup.db", scene->files.folder);
    copy_file(scene->files.path, backup);
    start(scene);
    set_image(scene, "mysql:8.1");
    wait_for(scene, "Completed", "mysql:8.1", 3, 120 * US_PER_S);
    stop_program(scene, &scene->program);
    CLEANUP_FREE char *log = xasprintf("%s-wal", scene->files.path);
    unlink(log);
    copy_file(backup, scene->files.path);
    start(scene);
    set_image(scene, "mysql:8.2");
    wait_for(scene, "Completed", "mysql:8.2", 3, 120 * US_PER_S);
    assert_string_equal(sql(scene, "SELECT reason FROM entry WHERE kind = 'note'"),
                        "the journal went back: the lease names a later entry");
    CLEANUP_BUF struct buf metrics = BUF_INIT(1 << 20);
    controller_write_metrics(scene->program.controller, &metrics);
    assert_non_null(strstr(buf_text(&metrics), "neoset_journal_went_back 1"));
    assert_true(set_condition_is(scene, "JournalWentBack", "True"));
    stop_program(scene, &scene->program);
    start(scene);
    pass(scene, 60 * US_PER_S);
    assert_true(set_condition_is(scene, "JournalWentBack", "False"));
    assert_restarts(scene, 3, 2);
}

static void sigterm_finishes_what_is_under_way_and_gives_the_lease_back(void **state)
{
    struct scene *scene = *state;
    scene->with_lease = true;
    start_idle_set(scene, 3, 1);
    set_image(scene, "mysql:8.1");
    pass(scene, 10 * US_PER_S + 300 * US_PER_MS);
    stop_program(scene, &scene->program);
    CLEANUP_JSON cJSON *lease = sim_server_get(scene->server, LEASE_PATH);
    assert_string_equal(json_path_str(lease, "spec", "holderIdentity", NULL), "");
    assert_string_equal(sql(scene, "SELECT count(*) FROM open_step"), "0");
    assert_string_equal(sql(scene, "SELECT reason FROM entry WHERE kind = 'stop'"), "stopped as asked");
    start(scene);
    wait_for(scene, "Completed", "mysql:8.1", 3, 120 * US_PER_S);
    assert_restarts(scene, 3, 1);
    pass(scene, US_PER_S);
    assert_history_agrees(scene);
}

static void once_ends_when_everything_is_as_it_should_be(void **state)
{
    struct scene *scene = *state;
    scene->once = true;
    create_set(scene, 3, 1, "mysql:8.0");
    start(scene);
    pass(scene, 60 * US_PER_S);
    assert_int_equal(scene->program.ended, 1);
    assert_int_equal(scene->program.exit_code, 0);
    assert_true(set_has(scene, "Idle", "mysql:8.0", 3));
}

static void no_server(void *context, const struct env_sim_call *call, struct env_sim_route *route)
{
    const struct scene *scene = context;
    latency(NULL, call, route);
    if (scene->server_is_away)
        route->fate = ENV_SIM_REFUSE;
}

static void once_does_not_wait_for_a_server_for_ever(void **state)
{
    struct scene *scene = *state;
    scene->once = true;
    scene->server_is_away = true;
    env_sim_on_route(scene->world, no_server, scene);
    start(scene);
    pass(scene, 110 * US_PER_S);
    assert_int_equal(scene->program.ended, 0);
    pass(scene, 30 * US_PER_S);
    assert_int_equal(scene->program.ended, 1);
    assert_int_equal(scene->program.exit_code, 1);
    assert_non_null(strstr(scene->program.said, "--once gives up"));
    assert_non_null(strstr(scene->program.said, "cannot list"));
}

static void expect_once_gave_up(struct scene *scene, const char *words)
{
    pass(scene, 110 * US_PER_S);
    assert_int_equal(scene->program.ended, 0);
    pass(scene, 30 * US_PER_S);
    assert_int_equal(scene->program.ended, 1);
    assert_int_equal(scene->program.exit_code, 1);
    assert_non_null(strstr(scene->program.said, "--once gives up"));
    assert_non_null(strstr(scene->program.said, words));
}

/* May not read it, may not make it; or somebody else holds it, and lives. */
static void once_does_not_wait_for_a_lease_for_ever(void **state)
{
    static const struct {
        const char *fault, *words;
    } table[] = {
        {"403,verb=get,resource=leases,times=1000", "cannot read the lease neo/neoset"},
        {"403,verb=create,resource=leases,times=1000", "cannot write the lease neo/neoset"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        setup(state);
        struct scene *scene = *state;
        scene->once = scene->with_lease = true;
        create_set(scene, 3, 1, "mysql:8.0");
        assert_int_equal(kubesim_fault_add(sim_server_kubesim(scene->server), table[i].fault, NULL), 0);
        start(scene);
        expect_once_gave_up(scene, table[i].words);
        teardown(state);
    }
}

/* Another controller leads. */
static void start_holder(struct scene *scene, struct program *first)
{
    scene->with_lease = true;
    create_set(scene, 3, 1, "mysql:8.0");
    CLEANUP_FREE char *path = xasprintf("%s/first.db", scene->files.folder);
    start_program(scene, first, path, "pod-1");
    pass(scene, 5 * US_PER_S);
}

static void once_does_not_wait_for_a_holder_that_lives_for_ever(void **state)
{
    struct scene *scene = *state;
    struct program first;
    start_holder(scene, &first);
    scene->once = true;
    start(scene);
    expect_once_gave_up(scene, "is held by pod-1_");
    kill_program(&first);
}

/* Its lease is over soon. */
static void once_waits_for_the_lease_of_a_holder_that_died(void **state)
{
    struct scene *scene = *state;
    struct program first;
    start_holder(scene, &first);
    kill_program(&first);
    scene->once = true;
    start(scene);
    pass(scene, 200 * US_PER_S);
    assert_int_equal(scene->program.ended, 1);
    assert_int_equal(scene->program.exit_code, 0);
}

/* Away for a while is no reason. */
static void once_goes_on_when_the_server_comes_back(void **state)
{
    struct scene *scene = *state;
    scene->once = true;
    create_set(scene, 3, 1, "mysql:8.0");
    env_sim_on_route(scene->world, no_server, scene);
    scene->server_is_away = true;
    start(scene);
    pass(scene, 80 * US_PER_S);
    assert_int_equal(scene->program.ended, 0);
    scene->server_is_away = false;
    pass(scene, 180 * US_PER_S);
    assert_int_equal(scene->program.ended, 1);
    assert_int_equal(scene->program.exit_code, 0);
    assert_true(set_has(scene, "Idle", "mysql:8.0", 3));
}

static void without_the_definition_it_says_so_and_waits(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(
        sim_server_ask(scene->server, "DELETE",
                       "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/neosets.apps.neo.io", NULL,
                       NULL, NULL),
        200);
    pass(scene, US_PER_S);
    start(scene);
    pass(scene, 5 * US_PER_S);
    assert_non_null(strstr(scene->program.said, "definition"));
    const char *why = NULL;
    assert_false(controller_is_ready(scene->program.controller, &why));
    assert_non_null(strstr(why, "definition"));
    sim_server_apply_file(scene->server, "deploy/crd.yaml");
    create_set(scene, 1, 1, "mysql:8.0");
    wait_for(scene, "Idle", "mysql:8.0", 1, 120 * US_PER_S);
    assert_true(controller_is_ready(scene->program.controller, &why));
}

static int64_t stuck(void *context)
{
    (void)context;
    return 60 * US_PER_S;
}

static void a_stuck_disk_lets_the_lease_go_and_comes_back(void **state)
{
    struct scene *scene = *state;
    scene->with_lease = true;
    start_idle_set(scene, 3, 1);
    pass(scene, 10 * US_PER_S);
    env_sim_on_work(scene->program.env, stuck, NULL);
    set_image(scene, "mysql:8.1");
    pass(scene, 7 * US_PER_S);
    const char *why = NULL;
    assert_false(controller_is_ready(scene->program.controller, &why));
    env_sim_on_work(scene->program.env, NULL, NULL);
    pass(scene, 13 * US_PER_S);
    CLEANUP_JSON cJSON *lease = sim_server_get(scene->server, LEASE_PATH);
    assert_string_equal(json_path_str(lease, "spec", "holderIdentity", NULL), "");
    wait_for(scene, "Completed", "mysql:8.1", 3, 180 * US_PER_S);
    assert_restarts(scene, 3, 1);
    assert_true(controller_is_ready(scene->program.controller, &why));
    pass(scene, US_PER_S);
    assert_history_agrees(scene);
}

static void scaling_ends_its_operations(void **state)
{
    struct scene *scene = *state;
    start_idle_set(scene, 3, 1);
    patch_set(scene, "{\"spec\":{\"replicas\":5}}");
    pass(scene, 10 * US_PER_S);
    patch_set(scene, "{\"spec\":{\"replicas\":2}}");
    pass(scene, 60 * US_PER_S);
    assert_true(set_has(scene, "Idle", "mysql:8.0", 2));
    assert_nothing_is_open(scene);
    assert_history_agrees(scene);
}

/* The server keeps a revision's data byte for byte, and cannot update one that was not posted as its own
 * encoder spells it: going back would be refused for ever. */
static void a_template_with_special_characters_is_gone_back_to(void **state)
{
    struct scene *scene = *state;
    create_set(scene, 2, 1, "mysql:8.0");
    patch_set(scene, "{\"spec\":{\"template\":{\"metadata\":{\"annotations\":{\"z/note\":\"a\xe2\x80\xa8"
                     "b\xe2\x80\xa9\","
                     "\"a/note\":\"1 \\\\u003c "
                     "\\\"2\\\"\"}},\"spec\":{\"containers\":[{\"name\":\"mysql\",\"image\":\"mysql:8.0\","
                     "\"command\":[\"sh\",\"-c\",\"a && b <c >d\"],"
                     "\"readinessProbe\":{\"tcpSocket\":{\"port\":3306}}}]}}}}");
    start(scene);
    wait_for(scene, "Idle", "mysql:8.0", 2, 60 * US_PER_S);
    set_image(scene, "mysql:8.1");
    wait_for(scene, "Completed", "mysql:8.1", 2, 120 * US_PER_S);
    set_image(scene, "mysql:8.0");
    wait_for(scene, "Completed", "mysql:8.0", 2, 120 * US_PER_S);
    assert_string_equal(sql(scene, "SELECT count(*) FROM entry WHERE kind = 'rejected'"), "0");
    CLEANUP_JSON cJSON *list =
        sim_server_get(scene->server, "/apis/apps/v1/namespaces/default/controllerrevisions");
    assert_int_equal(cJSON_GetArraySize(json_get(list, "items")), 2);
}

/* A startup probe's hold is known only to the run that saw the container start; what status says was done
 * stays done for the next one. */
static void a_restart_takes_no_pod_out_of_the_count(void **state)
{
    struct scene *scene = *state;
    create_set(scene, 3, 1, "mysql:8.0");
    patch_set(scene,
              "{\"spec\":{\"minReadySeconds\":3,\"template\":{\"spec\":{\"containers\":[{\"name\":\"mysql\","
              "\"image\":\"mysql:8.0\",\"readinessProbe\":{\"tcpSocket\":{\"port\":3306}},"
              "\"startupProbe\":{\"periodSeconds\":1,\"tcpSocket\":{\"port\":3306}}}]}}}}");
    start(scene);
    wait_for(scene, "Idle", "mysql:8.0", 3, 120 * US_PER_S);
    set_image(scene, "mysql:8.1");
    wait_for(scene, "Completed", "mysql:8.1", 3, 240 * US_PER_S);
    pass(scene, 60 * US_PER_S);
    uint64_t before = kubesim_count(sim_server_kubesim(scene->server)).writes;
    kill_program(&scene->program);
    start(scene);
    pass(scene, 60 * US_PER_S);
    assert_int_equal(kubesim_count(sim_server_kubesim(scene->server)).writes, before);
}

int main(void)
{
    use_memory_for_journals();
    const struct CMUnitTest tests[] = {
        scene_test(a_set_is_created_and_rolled),
        scene_test(with_nothing_changed_nothing_is_written),
        cmocka_unit_test(killed_at_any_moment_it_finishes_and_nothing_is_done_twice),
        cmocka_unit_test(whatever_becomes_of_answers_it_finishes),
        cmocka_unit_test(whatever_becomes_of_answers_and_killed_in_between_it_finishes),
        scene_test(a_set_that_is_deleted_in_mid_rollout_leaves_nothing_open),
        scene_test(a_set_that_is_deleted_while_nobody_looks_leaves_nothing_open),
        scene_test(of_two_controllers_one_writes),
        scene_test(a_restart_need_not_wait_for_its_own_lease),
        scene_test(a_stolen_lease_stops_the_writes),
        scene_test(who_does_not_lead_lets_its_deadlines_stand_still),
        scene_test(a_journal_that_went_back_is_not_believed),
        scene_test(sigterm_finishes_what_is_under_way_and_gives_the_lease_back),
        scene_test(once_ends_when_everything_is_as_it_should_be),
        scene_test(once_does_not_wait_for_a_server_for_ever),
        cmocka_unit_test(once_does_not_wait_for_a_lease_for_ever),
        scene_test(once_does_not_wait_for_a_holder_that_lives_for_ever),
        scene_test(once_waits_for_the_lease_of_a_holder_that_died),
        scene_test(once_goes_on_when_the_server_comes_back),
        scene_test(without_the_definition_it_says_so_and_waits),
        scene_test(a_stuck_disk_lets_the_lease_go_and_comes_back),
        scene_test(scaling_ends_its_operations),
        scene_test(a_restart_takes_no_pod_out_of_the_count),
        scene_test(a_template_with_special_characters_is_gone_back_to),
    };
    return cmocka_run_group_tests_name("controller", tests, NULL, NULL);
}
