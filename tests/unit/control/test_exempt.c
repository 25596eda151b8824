/* SPDX-License-Identifier: Apache-2.0
 *
 * What is written without the journal: only what is in the table, and never a field that decides. */
#include "control/event.h"
#include "control/preconditions.h"
#include "control/step.h"

#include "../../lib/env_sim.h"

#include "base/time_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { CALLS_MAX = 2048 };

struct scene {
    struct env *env;
    struct kube_client *client;
    struct exempt *exempt;
    struct event_recorder *recorder;
    struct env_sim_call *calls[CALLS_MAX];
    size_t arrived;
    size_t taken;
    int answered;
    int last_http;
    enum kube_outcome last_outcome;
    bool leads;
};

static void arrive(void *context, struct env_sim_call *call)
{
    struct scene *scene = context;
    assert_true(scene->arrived < CALLS_MAX);
    scene->calls[scene->arrived++] = call;
}

static bool leads(void *context)
{
    const struct scene *scene = context;
    return scene->leads;
}

static int setup(void **state)
{
    static const struct env_sim_http_ops ops = {.request = arrive};
    struct scene *scene = xcalloc(1, sizeof(*scene));
    scene->env = env_sim_make(1);
    scene->leads = true;
    env_sim_http(scene->env, &ops, scene);
    struct kube_config *config = xcalloc(1, sizeof(*config));
    config->server.base_url = xstrdup("http://sim");
    config->namespace = xstrdup("default");
    scene->client = kube_client_make(scene->env, config);
    scene->exempt = exempt_make(&(struct exempt_options){.env = scene->env,
                                                         .client = scene->client,
                                                         .field_manager = "neoset",
                                                         .may_write = leads,
                                                         .context = scene});
    scene->recorder = event_recorder_make(scene->env, scene->exempt, "neoset-controller", "pod-0");
    *state = scene;
    return 0;
}

static int teardown(void **state)
{
    struct scene *scene = *state;
    exempt_free(scene->exempt);
    event_recorder_free(scene->recorder);
    kube_client_free(scene->client);
    env_free(scene->env);
    free(scene);
    return 0;
}

static struct env_sim_call *next(struct scene *scene)
{
    env_sim_run_for(scene->env, 0);
    assert_true(scene->taken < scene->arrived);
    return scene->calls[scene->taken++];
}

static void answer_with(struct scene *scene, struct env_sim_call *call, int status, const char *text)
{
    env_sim_http_answer(call, status, NULL, 0, text, strlen(text));
    env_sim_run_for(scene->env, 0);
}

static void answer(struct scene *scene, struct env_sim_call *call, int status)
{
    answer_with(scene, call, status, "{}");
}

static void answered(void *context, const struct kube_answer *kube_answer)
{
    struct scene *scene = context;
    scene->answered++;
    scene->last_http = kube_answer->http;
    scene->last_outcome = kube_answer->outcome;
}

/* What it brings; the caller's. */
static cJSON *body_of(const struct env_sim_call *call)
{
    cJSON *body = NULL;
    assert_int_equal(json_parse(call->body, call->body_length, &body, NULL), 0);
    return body;
}

static cJSON *parse(const char *text)
{
    cJSON *tree = NULL;
    assert_int_equal(json_parse(text, strlen(text), &tree, NULL), 0);
    return tree;
}

/* A status of db/mysql. */
static void write_status(struct scene *scene, const char *text, kube_done *done)
{
    CLEANUP_JSON cJSON *body = parse(text);
    exempt_write(scene->exempt,
                 &(struct exempt_request){.kind = EXEMPT_STATUS,
                                          .method = "PATCH",
                                          .resource = KUBE_NEOSET,
                                          .namespace = "db",
                                          .name = "mysql",
                                          .subresource = "status",
                                          .content_type = KUBE_MERGE,
                                          .body = body,
                                          .timeout_us = US_PER_S},
                 done, scene);
}

/* A pod of it, in a dry run. */
static void try_pod(struct scene *scene)
{
    CLEANUP_JSON cJSON *body = parse("{\"metadata\":{\"name\":\"mysql-0\"}}");
    exempt_write(scene->exempt,
                 &(struct exempt_request){.kind = EXEMPT_DRY_RUN,
                                          .method = "POST",
                                          .resource = KUBE_POD,
                                          .namespace = "db",
                                          .content_type = KUBE_JSON,
                                          .body = body,
                                          .timeout_us = US_PER_S},
                 answered, scene);
}

/* --- the table ------------------------------------------------------------------------------------------ */

static void a_status_that_describes_goes_out_under_an_exempt_id(void **state)
{
    struct scene *scene = *state;
    write_status(scene, "{\"status\":{\"phase\":\"Canary\",\"readyReplicas\":3}}", answered);
    struct env_sim_call *call = next(scene);
    assert_string_equal(call->method, "PATCH");
    assert_non_null(strstr(call->path, "/neosets/mysql/status?timeout=10s&fieldManager=neoset"));
    assert_true(str_starts_with(env_sim_http_header(call, "Audit-ID"), "neo-x-status-"));
    assert_true(call->once);
    answer(scene, call, 200);
    assert_int_equal(scene->answered, 1);
    assert_int_equal(exempt_count(scene->exempt, EXEMPT_STATUS), 1);
}

static void ids_do_not_repeat(void **state)
{
    struct scene *scene = *state;
    char before[128] = "";
    for (int i = 0; i < 3; i++) {
        write_status(scene, "{\"status\":{\"phase\":\"Canary\"}}", NULL);
        struct env_sim_call *call = next(scene);
        assert_string_not_equal(env_sim_http_header(call, "Audit-ID"), before);
        snprintf(before, sizeof(before), "%s", env_sim_http_header(call, "Audit-ID"));
        answer(scene, call, 200);
    }
}

static void a_dry_run_says_so_in_the_query(void **state)
{
    struct scene *scene = *state;
    try_pod(scene);
    struct env_sim_call *call = next(scene);
    assert_non_null(strstr(call->path, "dryRun=All"));
    answer(scene, call, 201);
}

static void a_dry_delete_says_so_in_its_body_and_nothing_in_the_query(void **state)
{
    struct scene *scene = *state;
    static const struct {
        const char *text;
        enum kube_outcome outcome;
    } cases[] = {
        {"{\"kind\":\"StatefulSet\",\"metadata\":{\"name\":\"mysql\",\"namespace\":\"db\"}}", KUBE_OK},
        /* What a delete that does not orphan is answered with. */
        {"{\"kind\":\"Status\",\"status\":\"Success\",\"details\":{\"name\":\"mysql\",\"uid\":\"u1\"}}",
         KUBE_NO_ANSWER},
    };
    CLEANUP_JSON cJSON *body = preconditions_orphan_delete("u1", "10", true);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        exempt_write(scene->exempt,
                     &(struct exempt_request){.kind = EXEMPT_DRY_DELETE,
                                              .method = "DELETE",
                                              .resource = KUBE_STATEFULSET,
                                              .namespace = "db",
                                              .name = "mysql",
                                              .content_type = KUBE_JSON,
                                              .body = body,
                                              .timeout_us = US_PER_S},
                     answered, scene);
        struct env_sim_call *call = next(scene);
        assert_string_equal(call->method, "DELETE");
        assert_true(str_ends_with(call->path, "/statefulsets/mysql?timeout=10s"));
        answer_with(scene, call, 200, cases[i].text);
        assert_int_equal(scene->last_outcome, cases[i].outcome);
    }
}

/* A proxy's page accepts no template, whatever its status line says. */
static void a_yes_that_is_not_the_servers_is_no_answer(void **state)
{
    struct scene *scene = *state;
    static const struct {
        const char *text;
        enum kube_outcome outcome;
    } cases[] = {
        {"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"mysql-0\",\"namespace\":\"db\"}}", KUBE_OK},
        {"<html>Please log in</html>", KUBE_NO_ANSWER},
        {"", KUBE_NO_ANSWER},
        {"{}", KUBE_NO_ANSWER},
        {"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"mysql-1\",\"namespace\":\"db\"}}", KUBE_NO_ANSWER},
        {"{\"kind\":\"Status\",\"status\":\"Success\"}", KUBE_NO_ANSWER},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        try_pod(scene);
        answer_with(scene, next(scene), 201, cases[i].text);
        assert_int_equal(scene->answered, i + 1);
        if (scene->last_outcome != cases[i].outcome)
            fail_msg("%s: outcome %d", cases[i].text, scene->last_outcome);
    }
}

static void every_deciding_field_is_known(void **state)
{
    (void)state;
    static const char *const deciding[] = {
        "currentRevisionName", "currentRevisionProven", "updateRevisionName",
        "currentPartition",    "collisionCount",        "doneOrdinals",
        "leftStableOrdinals",  "currentImage",          "targetImage",
    };
    for (size_t i = 0; i < ARRAY_SIZE(deciding); i++) {
        CLEANUP_JSON cJSON *status = json_new_object();
        json_add_str(status, "phase", "Canary");
        assert_false(exempt_has_deciding_field(KUBE_NEOSET, status));
        json_add_str(status, deciding[i], "");
        assert_true(exempt_has_deciding_field(KUBE_NEOSET, status));
    }
    CLEANUP_JSON cJSON *empty = json_new_object();
    assert_true(exempt_has_deciding_field(KUBE_POD, empty));
}

static void who_does_not_lead_describes_nothing(void **state)
{
    struct scene *scene = *state;
    scene->leads = false;
    write_status(scene, "{\"status\":{\"phase\":\"Canary\"}}", answered);
    env_sim_run_for(scene->env, US_PER_S);
    assert_int_equal(scene->arrived, 0);
    assert_int_equal(scene->answered, 1);
}

/* --- Events --------------------------------------------------------------------------------------------- */

static const struct event_subject mysql = {
    .resource = KUBE_NEOSET, .namespace = "db", .name = "mysql", .uid = "u1"};

static void an_event_is_made_once_and_then_counted(void **state)
{
    struct scene *scene = *state;
    event_record(scene->recorder, &mysql, true, "Stalled", "mysql-4 does not become ready");
    struct env_sim_call *call = next(scene);
    assert_string_equal(call->method, "POST");
    assert_non_null(strstr(call->path, "/api/v1/namespaces/db/events?"));
    CLEANUP_JSON cJSON *body = body_of(call);
    assert_string_equal(json_str(body, "type"), "Warning");
    assert_string_equal(json_str(body, "reason"), "Stalled");
    assert_string_equal(json_path_str(body, "involvedObject", "kind", NULL), "NeoSet");
    assert_string_equal(json_path_str(body, "involvedObject", "apiVersion", NULL), "apps.neo.io/v1alpha1");
    assert_string_equal(json_path_str(body, "source", "component", NULL), "neoset-controller");
    answer(scene, call, 201);
    for (int i = 0; i < 100; i++)
        event_record(scene->recorder, &mysql, true, "Stalled", "mysql-4 does not become ready");
    env_sim_run_for(scene->env, 9 * US_PER_S);
    assert_int_equal(scene->arrived, 1);
    env_sim_run_for(scene->env, 2 * US_PER_S);
    call = next(scene);
    assert_string_equal(call->method, "PATCH");
    CLEANUP_JSON cJSON *patch = body_of(call);
    assert_int_equal(json_int64_or(patch, "count", 0), 101);
    answer(scene, call, 200);
    env_sim_run_for(scene->env, 60 * US_PER_S);
    assert_int_equal(scene->arrived, 2);
}

static void a_new_event_does_not_wait_for_the_count_of_another(void **state)
{
    struct scene *scene = *state;
    event_record(scene->recorder, &mysql, false, "Updating", "a");
    answer(scene, next(scene), 201);
    event_record(scene->recorder, &mysql, false, "Updating", "a");
    env_sim_run_for(scene->env, US_PER_S);
    assert_int_equal(scene->arrived, 1);
    event_record(scene->recorder, &mysql, true, "RolloutFailed", "b");
    env_sim_run_for(scene->env, 0);
    assert_int_equal(scene->arrived, 2);
    answer(scene, next(scene), 201);
    /* And the count still comes when it is due. */
    env_sim_run_for(scene->env, 10 * US_PER_S);
    assert_string_equal(next(scene)->method, "PATCH");
}

static void a_forgotten_event_is_made_anew(void **state)
{
    struct scene *scene = *state;
    event_record(scene->recorder, &mysql, false, "Updating", "a");
    answer(scene, next(scene), 201);
    event_record(scene->recorder, &mysql, false, "Updating", "a");
    env_sim_run_for(scene->env, 11 * US_PER_S);
    struct env_sim_call *call = next(scene);
    assert_string_equal(call->method, "PATCH");
    answer(scene, call, 404);
    call = next(scene);
    assert_string_equal(call->method, "POST");
    answer(scene, call, 201);
}

static void failures_and_floods_are_bounded(void **state)
{
    struct scene *scene = *state;
    for (int i = 0; i < 1500; i++) {
        char note[32];
        snprintf(note, sizeof(note), "note %d", i);
        event_record(scene->recorder, &mysql, false, "Updating", note);
    }
    env_sim_run_for(scene->env, 0);
    /* At most four under way, whatever waits. */
    assert_int_equal(scene->arrived, 4);
    while (scene->taken < scene->arrived)
        answer(scene, next(scene), 500);
    assert_in_range(scene->arrived, 400, 600);
}

static void a_long_note_is_cut_between_characters(void **state)
{
    struct scene *scene = *state;
    CLEANUP_BUF struct buf note = BUF_INIT(8192);
    for (int i = 0; i < 1000; i++)
        buf_add_text(&note, "\xe2\x82\xac");
    event_record(scene->recorder, &mysql, false, "Updating", buf_text(&note));
    struct env_sim_call *call = next(scene);
    CLEANUP_JSON cJSON *body = body_of(call);
    assert_int_equal(strlen(json_str(body, "message")), 999);
    answer(scene, call, 201);
}

#define scene_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        scene_test(a_status_that_describes_goes_out_under_an_exempt_id),
        scene_test(ids_do_not_repeat),
        scene_test(a_dry_run_says_so_in_the_query),
        scene_test(a_dry_delete_says_so_in_its_body_and_nothing_in_the_query),
        scene_test(a_yes_that_is_not_the_servers_is_no_answer),
        scene_test(every_deciding_field_is_known),
        scene_test(who_does_not_lead_describes_nothing),
        scene_test(an_event_is_made_once_and_then_counted),
        scene_test(a_new_event_does_not_wait_for_the_count_of_another),
        scene_test(a_forgotten_event_is_made_anew),
        scene_test(failures_and_floods_are_bounded),
        scene_test(a_long_note_is_cut_between_characters),
    };
    return cmocka_run_group_tests_name("exempt writes and Events", tests, NULL, NULL);
}
