/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands still says so, and costs nothing: servers that take a write and do not keep it, strangers who
 * write into the status, steps that nobody can decide. */
#include "controller_scene.h"

#define DEFINITION_PATH "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/neosets.apps.neo.io"

/* Without it each retry of a rollout would write more, and other writes would meet the faults. */
static void fetch_nothing(struct scene *scene)
{
    patch_set(scene, "{\"spec\":{\"updateStrategy\":{\"inPlaceUpdateStrategy\":{\"prefetch\":\"Never\"}}}}");
}

static const cJSON *condition(const cJSON *set, const char *type)
{
    const cJSON *found = NULL;
    cJSON_ArrayForEach (found, json_path(set, "status", "conditions", NULL)) {
        if (str_equal(json_str(found, "type"), type))
            return found;
    }
    return NULL;
}

static void assert_condition(struct scene *scene, const char *type, const char *status, const char *words)
{
    CLEANUP_JSON cJSON *set = sim_server_get(scene->server, SET_PATH);
    const cJSON *found = condition(set, type);
    if (!found)
        fail_msg("no condition %s", type);
    const char *message = json_str(found, "message");
    assert_string_equal(json_str(found, "status"), status);
    if (!strstr(message ? message : "", words))
        fail_msg("%s says '%s', not '%s'", type, message ? message : "", words);
}

/* --- a server that does not keep what it takes ---------------------------------------------------------- */

/* The definition of an older version, without this field of status. */
static void forget_field(struct scene *scene, const char *field)
{
    CLEANUP_FREE char *text = xasprintf("[{\"op\":\"remove\",\"path\":\"/spec/versions/0/schema/"
                                        "openAPIV3Schema/properties/status/properties/%s\"}]",
                                        field);
    assert_int_equal(
        sim_server_ask(scene->server, "PATCH", DEFINITION_PATH, "application/json-patch+json", text, NULL),
        200);
}

static void a_field_that_the_definition_lacks_is_named_and_not_written_over_and_over(void **state)
{
    (void)state;
    static const char *const fields[] = {"currentRevisionName", "currentRevisionProven", "updateRevisionName",
                                         "currentPartition",    "doneOrdinals",          "leftStableOrdinals",
                                         "collisionCount"};
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        void *at = NULL;
        setup(&at);
        struct scene *scene = at;
        forget_field(scene, fields[i]);
        create_set(scene, 3, 1, "mysql:8.0");
        fetch_nothing(scene);
        start(scene);
        pass(scene, 30 * US_PER_S);
        set_image(scene, "mysql:8.1");
        pass(scene, 30 * US_PER_S);
        size_t before = sim_server_write_count(scene->server);
        pass(scene, 600 * US_PER_S);
        size_t writes = sim_server_write_count(scene->server) - before;
        print_message("    without status.%s: %zu writes in ten minutes\n", fields[i], writes);
        assert_in_range(writes, 0, 12);
        /* Nothing ever collided: that field stays what it was. */
        if (!str_equal(fields[i], "collisionCount"))
            assert_condition(scene, "Stalled", "True", fields[i]);
        teardown(&at);
    }
}

/* It only helps an undo to choose: no write is spent on it, and nothing stalls. */
static void a_definition_without_the_names_of_proven_revisions_costs_no_write(void **state)
{
    struct scene *scene = *state;
    forget_field(scene, "provenRevisionNames");
    start_idle_set(scene, 3, 1);
    set_image(scene, "mysql:8.1");
    wait_for(scene, "Completed", "mysql:8.1", 3, 420 * US_PER_S);
    pass(scene, 60 * US_PER_S);
    size_t before = sim_server_write_count(scene->server);
    pass(scene, 600 * US_PER_S);
    assert_int_equal(sim_server_write_count(scene->server), before);
    assert_condition(scene, "Stalled", "False", "");
    CLEANUP_JSON cJSON *set = sim_server_get(scene->server, SET_PATH);
    assert_null(json_path(set, "status", "provenRevisionNames", NULL));
}

static void when_the_definition_is_brought_up_to_date_the_rollout_goes_on(void **state)
{
    struct scene *scene = *state;
    forget_field(scene, "leftStableOrdinals");
    start_idle_set(scene, 3, 1);
    set_image(scene, "mysql:8.1");
    pass(scene, 60 * US_PER_S);
    assert_condition(scene, "Stalled", "True", "deploy/crd.yaml");
    assert_restarts(scene, 3, 0);
    assert_int_equal(sim_server_ask(scene->server, "PATCH", DEFINITION_PATH, "application/json-patch+json",
                                    "[{\"op\":\"add\",\"path\":\"/spec/versions/0/schema/openAPIV3Schema/"
                                    "properties/status/properties/leftStableOrdinals\",\"value\":{"
                                    "\"type\":\"array\",\"items\":{\"type\":\"integer\"}}}]",
                                    NULL),
                     200);
    wait_for(scene, "Completed", "mysql:8.1", 3, 420 * US_PER_S);
    assert_condition(scene, "Stalled", "False", "");
}

/* --- strangers ------------------------------------------------------------------------------------------ */

static void a_status_that_a_stranger_overwrote_is_put_right_soon(void **state)
{
    struct scene *scene = *state;
    start_idle_set(scene, 3, 1);
    pass(scene, 60 * US_PER_S);
    static const char *const texts[] = {
        "{\"status\":{\"readyReplicas\":7,\"message\":\"mine\"}}",
        "{\"status\":{\"phase\":\"RollingOut\"}}",
        "{\"status\":{\"currentPartition\":1,\"leftStableOrdinals\":[0,1]}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        merge(scene, SET_PATH "/status", texts[i]);
        pass(scene, 3 * US_PER_S);
        CLEANUP_JSON cJSON *set = sim_server_get(scene->server, SET_PATH);
        const cJSON *status = json_get(set, "status");
        assert_int_equal(json_int64_or(status, "readyReplicas", -1), 3);
        assert_string_equal(json_str(status, "phase"), "Idle");
        assert_string_equal(json_str(status, "message"), "all 3 pods run mysql:8.0.");
    }
    assert_restarts(scene, 3, 0);
}

/* Its status write is answered when it is gone; the one of the name that comes after it is served at once. */
static void a_set_that_is_made_again_while_a_status_write_is_under_way_is_served(void **state)
{
    struct scene *scene = *state;
    start_idle_set(scene, 3, 1);
    /* A step stays open, so that the set's turn lives on; and a status write is held up for 4 s. */
    assert_int_equal(kubesim_fault_add(sim_server_kubesim(scene->server),
                                       "late=4s,verb=patch,resource=pods/status;"
                                       "late=4s,verb=patch,resource=neosets/status,nth=3",
                                       NULL),
                     0);
    set_image(scene, "mysql:8.1");
    pass(scene, 500 * US_PER_MS);
    assert_int_equal(sim_server_ask(scene->server, "DELETE", SET_PATH, NULL, NULL, NULL), 200);
    pass(scene, 3 * US_PER_S);
    create_set(scene, 2, 1, "mysql:8.2");
    wait_for(scene, "Idle", "mysql:8.2", 2, 120 * US_PER_S);
    CLEANUP_JSON cJSON *set = sim_server_get(scene->server, SET_PATH);
    assert_int_equal(json_int64_or(json_get(set, "status"), "observedGeneration", 0), 1);
}

/* --- steps that nobody can decide ----------------------------------------------------------------------- */

static void a_step_that_cannot_be_read_is_shown_until_it_can(void **state)
{
    struct scene *scene = *state;
    create_set(scene, 3, 1, "mysql:8.0");
    fetch_nothing(scene);
    start(scene);
    wait_for(scene, "Idle", "mysql:8.0", 3, 60 * US_PER_S);
    assert_int_equal(kubesim_fault_add(sim_server_kubesim(scene->server),
                                       "lost,verb=patch,resource=pods;500,verb=get,resource=pods,times=9",
                                       NULL),
                     0);
    set_image(scene, "mysql:8.1");
    pass(scene, 36 * US_PER_S);
    assert_condition(scene, "Stalled", "True", "gate of Pod mysql-2");
    wait_for(scene, "Completed", "mysql:8.1", 3, 600 * US_PER_S);
    assert_condition(scene, "Stalled", "False", "");
    assert_restarts(scene, 3, 1);
    assert_history_agrees(scene);
}

/* What neosetctl settle writes. */
static void settle(struct scene *scene, const char *path, const char *verdict)
{
    CLEANUP_FREE char *audit_id = xstrdup(sql(
        scene, "SELECT audit_id FROM entry WHERE kind = 'intent' AND seq IN (SELECT step FROM open_step)"));
    assert_true(str_starts_with(audit_id, "neo-") && str_ends_with(audit_id, "-1"));
    CLEANUP_FREE char *text = xasprintf("{\"metadata\":{\"annotations\":{\"apps.neo.io/settle\":\"%.*s=%s; "
                                        "ann@laptop: I saw it\"}}}",
                                        (int)strlen(audit_id) - 6, audit_id + 4, verdict);
    merge(scene, path, text);
}

static void a_person_settles_a_parked_step_and_the_journal_says_who_and_why(void **state)
{
    (void)state;
    static const char *const verdicts[] = {"absent", "applied"};
    for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++) {
        void *at = NULL;
        setup(&at);
        struct scene *scene = at;
        create_set(scene, 3, 1, "mysql:8.0");
        start(scene);
        wait_for(scene, "Idle", "mysql:8.0", 3, 60 * US_PER_S);
        assert_int_equal(
            kubesim_fault_add(sim_server_kubesim(scene->server),
                              "drop,verb=patch,resource=pods;500,verb=get,resource=pods,times=12", NULL),
            0);
        set_image(scene, "mysql:8.1");
        for (int s = 0; s < 120 && !set_condition_is(scene, "Stalled", "True"); s++)
            pass(scene, US_PER_S);
        assert_condition(scene, "Stalled", "True", "neosetctl settle pod/mysql-2 -n default --step ");
        settle(scene, PODS_PATH "/mysql-2", verdicts[i]);
        wait_for(scene, "Completed", "mysql:8.1", 3, 600 * US_PER_S);
        CLEANUP_FREE char *query =
            xasprintf("SELECT count(*) FROM entry WHERE kind = '%s' AND reason = 'settled by a person: "
                      "ann@laptop: I saw it'",
                      verdicts[i]);
        assert_string_equal(sql(scene, query), "1");
        teardown(&at);
    }
}

int main(void)
{
    use_memory_for_journals();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_that_the_definition_lacks_is_named_and_not_written_over_and_over),
        scene_test(a_definition_without_the_names_of_proven_revisions_costs_no_write),
        scene_test(when_the_definition_is_brought_up_to_date_the_rollout_goes_on),
        scene_test(a_set_that_is_made_again_while_a_status_write_is_under_way_is_served),
        scene_test(a_step_that_cannot_be_read_is_shown_until_it_can),
        cmocka_unit_test(a_person_settles_a_parked_step_and_the_journal_says_who_and_why),
        scene_test(a_status_that_a_stranger_overwrote_is_put_right_soon),
    };
    return cmocka_run_group_tests_name("stalls", tests, NULL, NULL);
}
