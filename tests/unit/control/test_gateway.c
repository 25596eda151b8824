/* SPDX-License-Identifier: Apache-2.0
 *
 * The gateway on the simulated world: what is durable before what leaves, and each answer of rule 3. */
#include "scene.h"

/* --- before and after ----------------------------------------------------------------------------------- */

static int64_t slow_disk(void *context)
{
    (void)context;
    return 2 * US_PER_S;
}

static void the_intent_is_on_disk_before_the_request_leaves(void **state)
{
    struct scene *scene = *state;
    env_sim_on_work(scene->env, slow_disk, NULL);
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    scene_expect_none_for(scene, 1900 * US_PER_MS);
    (void)scene_expect(scene, "PATCH", "/api/v1/namespaces/db/pods/mysql-4?");
    assert_string_equal(scene_sql(scene, "SELECT count(*) FROM entry WHERE kind = 'intent'"), "1");
}

static void a_write_carries_its_key_its_preconditions_and_its_timeout(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    struct env_sim_call *call = scene_expect(scene, "PATCH", NULL);
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
    assert_int_equal(scene_submit(scene, scene_delete("mysql-4")), 0);
    scene_answer(scene, scene_expect(scene, "DELETE", NULL), 200,
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

/* --- rule 3 --------------------------------------------------------------------------------------------- */

enum then { CLOSED, READ, LATER };
static const struct answer_case {
    const char *name;
    enum { PATCHES, GATES, DELETES, CREATES } step;
    int status;
    const char *body;
    enum then then;
    enum journal_kind kind; /* when closed */
} answers[] = {
    {"200 is applied", PATCHES, 200, OBJECT("Pod", "db", "mysql-4", "u1"), CLOSED, JOURNAL_APPLIED},
    {"201 is applied", CREATES, 201, OBJECT("Pod", "db", "mysql-4", "u7"), CLOSED, JOURNAL_APPLIED},
    {"200 with the object is an applied delete", DELETES, 200, OBJECT("Pod", "db", "mysql-4", "u1"), CLOSED,
     JOURNAL_APPLIED},
    {"200 with a success of this name is an applied delete", DELETES, 200, SUCCESS("mysql-4", "u1"), CLOSED,
     JOURNAL_APPLIED},
    {"200 of a status is applied by the object", GATES, 200, OBJECT("Pod", "db", "mysql-4", "u1"), CLOSED,
     JOURNAL_APPLIED},
    {"200 of a proxy's page asks the resolver", PATCHES, 200, "<html>Please log in</html>", READ, 0},
    {"200 of a proxy's page to a create asks the resolver", CREATES, 200, "<html></html>", READ, 0},
    {"200 of a proxy's page to a delete asks the resolver", DELETES, 200, "<html></html>", READ, 0},
    {"200 of a proxy's page to a status asks the resolver", GATES, 200, "<html></html>", READ, 0},
    {"200 without a body asks the resolver", PATCHES, 200, "", READ, 0},
    {"200 with half an object, said to be whole, asks the resolver", PATCHES, 200, "{\"kind\":\"Po", READ, 0},
    {"200 with any JSON asks the resolver", PATCHES, 200, "{}", READ, 0},
    {"200 with a list asks the resolver", PATCHES, 200, "[]", READ, 0},
    {"200 of another kind asks the resolver", PATCHES, 200,
     OBJECT("PersistentVolumeClaim", "db", "mysql-4", "u1"), READ, 0},
    {"200 of another name asks the resolver", PATCHES, 200, OBJECT("Pod", "db", "mysql-5", "u1"), READ, 0},
    {"200 of another namespace asks the resolver", PATCHES, 200, OBJECT("Pod", "x", "mysql-4", "u1"), READ,
     0},
    {"200 of another uid asks the resolver", PATCHES, 200, OBJECT("Pod", "db", "mysql-4", "u2"), READ, 0},
    {"201 of another name asks the resolver", CREATES, 201, OBJECT("Pod", "db", "mysql-5", "u1"), READ, 0},
    {"200 with a Status asks the resolver", PATCHES, 200, SUCCESS("mysql-4", "u1"), READ, 0},
    {"200 with a success of another name asks the resolver", DELETES, 200, SUCCESS("mysql-5", "u1"), READ, 0},
    {"200 with a success of another uid asks the resolver", DELETES, 200, SUCCESS("mysql-4", "u2"), READ, 0},
    {"200 with a failure asks the resolver", DELETES, 200, NOT_FOUND, READ, 0},
    {"3xx is rejected", PATCHES, 307, "", CLOSED, JOURNAL_REJECTED},
    {"400 is rejected", PATCHES, 400, STATUS_OF(400, "BadRequest"), CLOSED, JOURNAL_REJECTED},
    {"403 is rejected", PATCHES, 403, STATUS_OF(403, "Forbidden"), CLOSED, JOURNAL_REJECTED},
    {"413 is rejected", PATCHES, 413, "", CLOSED, JOURNAL_REJECTED},
    {"415 is rejected", PATCHES, 415, STATUS_OF(415, "UnsupportedMediaType"), CLOSED, JOURNAL_REJECTED},
    {"422 is rejected", PATCHES, 422, STATUS_OF(422, "Invalid"), CLOSED, JOURNAL_REJECTED},
    {"404 to a create is rejected", CREATES, 404, NOT_FOUND, CLOSED, JOURNAL_REJECTED},
    {"500 without a reason is rejected", PATCHES, 500,
     "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"m\",\"code\":500}", CLOSED, JOURNAL_REJECTED},
    {"500 with a reason is unknown", PATCHES, 500, STATUS_OF(500, "InternalError"), READ, 0},
    {"500 of a proxy is unknown", PATCHES, 500, "<html>oops</html>", READ, 0},
    {"502 is unknown", PATCHES, 502, "", READ, 0},
    {"503 is unknown", PATCHES, 503, STATUS_OF(503, "ServiceUnavailable"), READ, 0},
    {"504 is unknown", PATCHES, 504, STATUS_OF(504, "Timeout"), READ, 0},
    {"408 is unknown", PATCHES, 408, "", READ, 0},
    {"409 asks the resolver", PATCHES, 409, CONFLICT, READ, 0},
    {"409 to a create asks the resolver", CREATES, 409, STATUS_OF(409, "AlreadyExists"), READ, 0},
    {"404 to a patch asks the resolver", PATCHES, 404, NOT_FOUND, READ, 0},
    {"404 to a delete asks the resolver", DELETES, 404, NOT_FOUND, READ, 0},
    {"422 for the uid asks the resolver", PATCHES, 422, WRONG_UID, READ, 0},
    {"401 is sent again", PATCHES, 401, STATUS_OF(401, "Unauthorized"), LATER, 0},
    {"429 is sent again", PATCHES, 429, STATUS_OF(429, "TooManyRequests"), LATER, 0},
};

static void run_answer_case(const struct answer_case *test)
{
    void *state = NULL;
    scene_setup(&state);
    struct scene *scene = state;
    struct step_request *request = test->step == PATCHES   ? scene_patch("mysql-4", "b")
                                   : test->step == GATES   ? scene_gate("mysql-4")
                                   : test->step == DELETES ? scene_delete("mysql-4")
                                                           : scene_create("mysql-4", "a");
    assert_int_equal(scene_submit(scene, request), 0);
    scene_answer(scene, scene_next(scene), test->status, test->body);
    if (test->then == CLOSED) {
        assert_told(scene, 0, test->kind);
        assert_false(gateway_is_open(scene->gateway, KUBE_POD, "db", "mysql-4"));
        scene_expect_none_for(scene, US_PER_S);
    } else {
        assert_told(scene, 0, JOURNAL_UNKNOWN);
        assert_true(gateway_is_open(scene->gateway, KUBE_POD, "db", "mysql-4"));
        if (test->then == READ) {
            (void)scene_expect(scene, "GET", "/api/v1/namespaces/db/pods/mysql-4");
        } else {
            env_sim_run_for(scene->env, US_PER_S);
            assert_int_equal(scene->woken, 1);
            assert_int_equal(scene_submit(scene, test->step == PATCHES ? scene_patch("mysql-4", "b") : NULL),
                             0);
            (void)scene_expect(scene, "PATCH", NULL);
        }
    }
    scene_teardown(&state);
}

static void each_answer_means_what_rule_3_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        print_message("    %s\n", answers[i].name);
        run_answer_case(&answers[i]);
    }
}

/* The server began to say yes: the connection died over the rest. */
static void a_cut_body_is_applied_all_the_same(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    scene_cut_after(scene, scene_expect(scene, "PATCH", NULL), 200, "{\"kind\":\"Po");
    assert_told(scene, 0, JOURNAL_APPLIED);
    assert_false(scene->told[0].has_object);
    assert_int_equal(scene_submit(scene, scene_delete("mysql-5")), 0);
    scene_cut_after(scene, scene_expect(scene, "DELETE", NULL), 200, "");
    assert_told(scene, 1, JOURNAL_APPLIED);
}

static void a_cut_page_of_a_proxy_settles_nothing(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    scene_cut_after(scene, scene_expect(scene, "PATCH", NULL), 200, "<html>Please l");
    assert_told(scene, 0, JOURNAL_UNKNOWN);
    (void)scene_expect(scene, "GET", NULL);
}

static void a_yes_that_is_not_the_servers_is_resolved_by_reading(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    struct env_sim_call *call = scene_expect(scene, "PATCH", NULL);
    char key[128];
    snprintf(key, sizeof(key), "%s", key_of_call(call));
    scene_answer(scene, call, 200, "{}");
    assert_told(scene, 0, JOURNAL_UNKNOWN);
    /* What is read may come from the same place: neither a page nor another object says anything. */
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, "<html>Please log in</html>");
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, "{}");
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, OBJECT("Pod", "db", "mysql-5", "u9"));
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, SUCCESS("mysql-4", "u1"));
    assert_int_equal(scene->told_count, 1);
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, pod_text("u1", "10", NULL));
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    call = scene_expect(scene, "PATCH", NULL);
    scene_answer(scene, call, 200, pod_text("u1", "11", key));
    assert_told(scene, 1, JOURNAL_APPLIED);
    assert_history(scene, "begin intent unknown applied");
    assert_string_equal(scene_sql(scene, "SELECT http || ' ' || reason FROM entry WHERE kind = 'unknown'"),
                        "200 200, but the answer is not Pod/db/mysql-4 as the API server would send it: "
                        "something else answers in its place (a proxy?)");
}

static void a_lost_answer_is_unknown_and_read(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    struct env_sim_call *call = scene_expect(scene, "PATCH", NULL);
    char key[128];
    snprintf(key, sizeof(key), "%s", key_of_call(call));
    scene_cut(scene, call);
    assert_told(scene, 0, JOURNAL_UNKNOWN);
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, pod_text("u1", "11", key));
    assert_told(scene, 1, JOURNAL_APPLIED);
    assert_history(scene, "begin intent applied");
    assert_string_equal(scene_sql(scene, "SELECT http IS NULL FROM entry WHERE kind = 'applied'"), "1");
}

static void the_echo_of_an_earlier_delivery_is_never_rejected(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_create("mysql-4", "a")), 0);
    struct env_sim_call *call = scene_expect(scene, "POST", NULL);
    char key[128];
    snprintf(key, sizeof(key), "%s", key_of_call(call));
    scene_answer(scene, call, 409, STATUS_OF(409, "AlreadyExists"));
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, pod_text("u9", "5", key));
    assert_told(scene, 1, JOURNAL_APPLIED);
}

static void a_refusal_after_an_unanswered_attempt_settles_nothing(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    struct env_sim_call *call = scene_expect(scene, "PATCH", NULL);
    char key[128];
    snprintf(key, sizeof(key), "%s", key_of_call(call));
    scene_cut(scene, call);
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, pod_text("u1", "10", NULL));
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    scene_answer(scene, scene_expect(scene, "PATCH", NULL), 403, STATUS_OF(403, "Forbidden"));
    assert_true(gateway_is_open(scene->gateway, KUBE_POD, "db", "mysql-4"));
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, pod_text("u1", "11", key));
    assert_told(scene, scene->told_count - 1, JOURNAL_APPLIED);
}

/* --- verdicts ------------------------------------------------------------------------------------------- */

static const struct verdict_case {
    const char *name;
    int status;
    const char *uid;
    const char *version;
    bool with_key;
    enum journal_kind kind; /* JOURNAL_UNKNOWN: open */
} verdicts[] = {
    {"our key: applied", 200, "u1", "11", true, JOURNAL_APPLIED},
    {"another uid: overtaken", 200, "u2", "11", false, JOURNAL_OVERTAKEN},
    {"gone: overtaken", 404, "", "", false, JOURNAL_OVERTAKEN},
    {"moved without our key: absent", 200, "u1", "12", false, JOURNAL_ABSENT},
    {"the version that we sent: open", 200, "u1", "10", false, JOURNAL_UNKNOWN},
};

static void what_is_read_gives_the_verdict(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++) {
        const struct verdict_case *test = &verdicts[i];
        print_message("    %s\n", test->name);
        void *inner = NULL;
        scene_setup(&inner);
        struct scene *scene = inner;
        assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
        struct env_sim_call *call = scene_expect(scene, "PATCH", NULL);
        char key[128];
        snprintf(key, sizeof(key), "%s", key_of_call(call));
        scene_answer(scene, call, 409, CONFLICT);
        scene_answer(scene, scene_expect(scene, "GET", NULL), test->status,
                     test->status == 404 ? NOT_FOUND
                                         : pod_text(test->uid, test->version, test->with_key ? key : NULL));
        if (test->kind == JOURNAL_UNKNOWN)
            assert_true(gateway_is_open(scene->gateway, KUBE_POD, "db", "mysql-4"));
        else
            assert_told(scene, 1, test->kind);
        scene_teardown(&inner);
    }
}

static void a_read_that_fails_is_tried_again(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    scene_cut(scene, scene_expect(scene, "PATCH", NULL));
    struct gateway_metrics metrics;
    for (int i = 0; i < 5; i++) {
        gateway_metrics_get(scene->gateway, &metrics);
        assert_int_equal(metrics.parked, 0);
        scene_answer(scene, scene_expect(scene, "GET", NULL), 403, STATUS_OF(403, "Forbidden"));
    }
    gateway_metrics_get(scene->gateway, &metrics);
    assert_int_equal(metrics.parked, 1);
    /* The journal shows it as what it is: neoset-audit in-doubt finds it. */
    assert_history(scene, "begin intent unknown");
    /* A page of a proxy is not the server's word that the object is gone. */
    scene_answer(scene, scene_expect(scene, "GET", NULL), 404, "404 page not found");
    scene_answer(scene, scene_expect(scene, "GET", NULL), 404, NOT_FOUND);
    assert_told(scene, 1, JOURNAL_OVERTAKEN);
}

static void a_person_can_settle_a_step(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    struct env_sim_call *call = scene_expect(scene, "PATCH", NULL);
    char text[512];
    snprintf(text, sizeof(text),
             "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"mysql-4\",\"namespace\":\"db\",\"uid\":\"u1\","
             "\"resourceVersion\":\"10\",\"annotations\":{"
             "\"apps.neo.io/settle\":\"%s=absent; I looked\"}}}",
             key_of_call(call));
    scene_cut(scene, call);
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, text);
    assert_told(scene, 1, JOURNAL_ABSENT);
    assert_string_equal(scene_sql(scene, "SELECT reason FROM entry WHERE kind = 'absent'"),
                        "settled by a person: I looked");
}

/* --- open and still wanted ------------------------------------------------------------------------------ */

/* Leaves an update of mysql-4 in doubt and open; the bytes of its first attempt are copied. */
static void leave_open(struct scene *scene, char *bytes, size_t size)
{
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    struct env_sim_call *call = scene_expect(scene, "PATCH", NULL);
    snprintf(bytes, size, "%.*s", (int)call->body_length, call->body);
    scene_cut(scene, call);
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, pod_text("u1", "10", NULL));
    assert_int_equal(scene->woken, 1);
}

static void the_same_bytes_are_sent_again_under_the_next_attempt(void **state)
{
    struct scene *scene = *state;
    char bytes[1024];
    leave_open(scene, bytes, sizeof(bytes));
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    struct env_sim_call *call = scene_expect(scene, "PATCH", NULL);
    assert_int_equal(call->body_length, strlen(bytes));
    assert_memory_equal(call->body, bytes, call->body_length);
    assert_true(str_ends_with(env_sim_http_header(call, "Audit-ID"), "-2"));
    scene_answer(scene, call, 200, pod_text("u1", "11", NULL));
    assert_history(scene, "begin intent unknown applied");
    assert_string_equal(scene_sql(scene, "SELECT group_concat(attempt, ' ') FROM entry WHERE step > 0"),
                        "1 1 2");
}

static void the_unknown_entry_is_on_disk_before_the_next_attempt_leaves(void **state)
{
    struct scene *scene = *state;
    char bytes[1024];
    leave_open(scene, bytes, sizeof(bytes));
    journal_fixture_settle(&scene->journal);
    env_sim_on_work(scene->env, slow_disk, NULL);
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    scene_expect_none_for(scene, 1900 * US_PER_MS);
    (void)scene_expect(scene, "PATCH", NULL);
    assert_string_equal(scene_sql(scene, "SELECT count(*) FROM entry WHERE kind = 'unknown'"), "1");
}

static void another_step_does_not_pass_as_the_open_one(void **state)
{
    struct scene *scene = *state;
    char bytes[1024];
    leave_open(scene, bytes, sizeof(bytes));
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "c")), -ERROR_CONFLICT);
    struct step_request *moved = scene_patch("mysql-4", "b");
    str_replace(&moved->version, "11");
    assert_int_equal(scene_submit(scene, moved), -ERROR_CONFLICT);
}

static void in_doubt_nothing_else_takes_availability_away(void **state)
{
    struct scene *scene = *state;
    char bytes[1024];
    leave_open(scene, bytes, sizeof(bytes));
    assert_true(gateway_lowers_availability(scene->gateway, KUBE_NEOSET, "db", "mysql"));
    assert_int_equal(scene_submit(scene, scene_patch("mysql-3", "b")), -ERROR_CONFLICT);
    assert_int_equal(scene_submit(scene, scene_create("mysql-5", "a")), 0);
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
    char bytes[1024];
    leave_open(scene, bytes, sizeof(bytes));
    scene_settle_unwanted(scene);
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, pod_text("u1", "10", NULL));
    struct env_sim_call *block = scene_expect(scene, "PATCH", "/pods/mysql-4?");
    assert_string_equal(env_sim_http_header(block, "Content-Type"), "application/merge-patch+json");
    CLEANUP_JSON cJSON *body = NULL;
    assert_int_equal(json_parse(block->body, block->body_length, &body, NULL), 0);
    assert_string_equal(json_path_str(body, "metadata", "resourceVersion", NULL), "10");
    assert_null(json_get(body, "spec"));
    scene_answer(scene, block, 200, pod_text("u1", "11", key_of_call(block)));
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, pod_text("u1", "11", NULL));
    assert_told(scene, scene->told_count - 1, JOURNAL_ABSENT);
    assert_history(scene, "begin intent intent applied absent");
    assert_string_equal(
        scene_sql(scene, "SELECT action FROM entry WHERE kind = 'intent' ORDER BY seq DESC LIMIT 1"),
        "block");
}

static void a_step_that_arrives_before_its_block_is_applied(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    struct env_sim_call *call = scene_expect(scene, "PATCH", NULL);
    char key[128];
    snprintf(key, sizeof(key), "%s", key_of_call(call));
    scene_cut(scene, call);
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, pod_text("u1", "10", NULL));
    scene_settle_unwanted(scene);
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, pod_text("u1", "10", NULL));
    scene_answer(scene, scene_expect(scene, "PATCH", NULL), 409, CONFLICT);
    /* The block is in doubt: its object is read, then the step's. */
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, pod_text("u1", "11", key));
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, pod_text("u1", "11", key));
    assert_told(scene, scene->told_count - 1, JOURNAL_APPLIED);
    assert_history(scene, "begin intent intent absent applied");
}

static void a_block_that_is_lost_is_sent_again_by_itself(void **state)
{
    struct scene *scene = *state;
    char bytes[1024];
    leave_open(scene, bytes, sizeof(bytes));
    scene_settle_unwanted(scene);
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, pod_text("u1", "10", NULL));
    scene_cut(scene, scene_expect(scene, "PATCH", NULL));
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, pod_text("u1", "10", NULL));
    struct env_sim_call *block = scene_expect(scene, "PATCH", NULL);
    assert_true(str_ends_with(env_sim_http_header(block, "Audit-ID"), "-2"));
    scene_answer(scene, block, 200, pod_text("u1", "11", key_of_call(block)));
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, pod_text("u1", "11", NULL));
    assert_told(scene, scene->told_count - 1, JOURNAL_ABSENT);
    assert_history(scene, "begin intent intent unknown applied absent");
}

static void a_create_that_is_no_longer_wanted_waits_for_its_horizon(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_create("mysql-4", "a")), 0);
    scene_cut(scene, scene_expect(scene, "POST", NULL));
    scene_answer(scene, scene_expect(scene, "GET", NULL), 404, NOT_FOUND);
    scene_settle_unwanted(scene);
    scene_expect_none_for(scene, 14 * US_PER_S);
    scene_answer(scene, scene_expect(scene, "GET", NULL), 404, NOT_FOUND);
    assert_told(scene, scene->told_count - 1, JOURNAL_ABSENT);
    assert_history(scene, "begin intent absent");
}

static void what_was_never_executed_needs_no_block(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    scene_answer(scene, scene_expect(scene, "PATCH", NULL), 429, STATUS_OF(429, "TooManyRequests"));
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

static void a_closed_step_that_turns_up_is_journaled_as_late_once(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_create("mysql-4", "a")), 0);
    struct env_sim_call *call = scene_expect(scene, "POST", NULL);
    char key[128];
    snprintf(key, sizeof(key), "%s", key_of_call(call));
    scene_cut(scene, call);
    scene_answer(scene, scene_expect(scene, "GET", NULL), 404, NOT_FOUND);
    scene_settle_unwanted(scene);
    scene_answer(scene, scene_expect(scene, "GET", NULL), 404, NOT_FOUND);
    gateway_observe_key(scene->gateway, "0123456789abcdef-7");
    gateway_observe_key(scene->gateway, key);
    gateway_observe_key(scene->gateway, key);
    assert_history(scene, "begin intent absent late");
}

/* A step that is closed as kind; its key. */
static void close_step(struct scene *scene, const char *pod, int status, const char *body, char *key,
                       size_t size)
{
    assert_int_equal(scene_submit(scene, scene_create(pod, "a")), 0);
    struct env_sim_call *call = scene_expect(scene, "POST", NULL);
    snprintf(key, size, "%s", key_of_call(call));
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
    char bytes[1024];
    leave_open(scene, bytes, sizeof(bytes));
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    scene->leads = false;
    scene_expect_none_for(scene, US_PER_S);
    assert_true(gateway_is_open(scene->gateway, KUBE_POD, "db", "mysql-4"));
    assert_history(scene, "begin intent unknown");
    /* The second attempt never left: its number is used when it does. */
    scene->leads = true;
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    struct env_sim_call *call = scene_expect(scene, "PATCH", NULL);
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
}

/* --- recovery ------------------------------------------------------------------------------------------- */

static void a_restart_asks_the_server_about_what_is_in_doubt(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    char key[128];
    snprintf(key, sizeof(key), "%s", key_of_call(scene_expect(scene, "PATCH", NULL)));
    scene_restart(scene);
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), -ERROR_CONFLICT);
    assert_false(scene->recovered);
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, pod_text("u1", "11", key));
    assert_true(scene->recovered);
    assert_int_equal(scene->woken, 1);
    assert_history(scene, "begin intent applied");
}

static void a_restart_sends_the_very_bytes_that_the_journal_kept(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    struct env_sim_call *call = scene_expect(scene, "PATCH", NULL);
    char bytes[1024];
    snprintf(bytes, sizeof(bytes), "%.*s", (int)call->body_length, call->body);
    scene_restart(scene);
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, pod_text("u1", "10", NULL));
    assert_true(scene->recovered);
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    call = scene_expect(scene, "PATCH", NULL);
    assert_int_equal(call->body_length, strlen(bytes));
    assert_memory_equal(call->body, bytes, call->body_length);
    assert_true(str_ends_with(env_sim_http_header(call, "Audit-ID"), "-2"));
    assert_history(scene, "begin intent unknown");
}

static void a_create_is_made_again_byte_for_byte_after_a_restart(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_create("mysql-4", "a")), 0);
    struct env_sim_call *call = scene_expect(scene, "POST", NULL);
    char bytes[1024];
    snprintf(bytes, sizeof(bytes), "%.*s", (int)call->body_length, call->body);
    scene_restart(scene);
    scene_answer(scene, scene_expect(scene, "GET", NULL), 404, NOT_FOUND);
    assert_int_equal(scene_submit(scene, scene_create("mysql-4", "other")), -ERROR_CONFLICT);
    assert_int_equal(scene_submit(scene, scene_create("mysql-4", "a")), 0);
    call = scene_expect(scene, "POST", NULL);
    assert_int_equal(call->body_length, strlen(bytes));
    assert_memory_equal(call->body, bytes, call->body_length);
}

static void a_create_that_cannot_be_made_again_ends_at_the_horizon(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_create("mysql-4", "a")), 0);
    (void)scene_expect(scene, "POST", NULL);
    scene_restart(scene);
    scene_answer(scene, scene_expect(scene, "GET", NULL), 404, NOT_FOUND);
    scene_settle_unwanted(scene);
    scene_expect_none_for(scene, 14 * US_PER_S);
    scene_answer(scene, scene_expect(scene, "GET", NULL), 404, NOT_FOUND);
    assert_history(scene, "begin intent absent");
    assert_int_equal(scene_submit(scene, scene_create("mysql-4", "other")), 0);
}

static void a_journal_that_went_back_is_not_believed(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(scene_submit(scene, scene_delete("mysql-4")), 0);
    (void)scene_expect(scene, "DELETE", NULL);
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
    char bytes[1024];
    leave_open(scene, bytes, sizeof(bytes));
    scene_settle_unwanted(scene);
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, pod_text("u1", "10", NULL));
    (void)scene_expect(scene, "PATCH", NULL);
    scene_restart(scene);
    /* Both are read; the block goes out again by itself. */
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, pod_text("u1", "10", NULL));
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, pod_text("u1", "10", NULL));
    struct env_sim_call *block = scene_expect(scene, "PATCH", NULL);
    assert_true(str_ends_with(env_sim_http_header(block, "Audit-ID"), "-2"));
    scene_answer(scene, block, 200, pod_text("u1", "11", key_of_call(block)));
    scene_settle_unwanted(scene);
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, pod_text("u1", "11", NULL));
    assert_history(scene, "begin intent intent unknown applied absent");
    assert_false(gateway_is_open(scene->gateway, KUBE_POD, "db", "mysql-4"));
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
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    struct env_sim_call *call = scene_expect(scene, "PATCH", NULL);
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
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    (void)scene_expect(scene, "PATCH", NULL);
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
        cmocka_unit_test(each_answer_means_what_rule_3_says),
        scene_test(a_cut_body_is_applied_all_the_same),
        scene_test(a_cut_page_of_a_proxy_settles_nothing),
        scene_test(a_yes_that_is_not_the_servers_is_resolved_by_reading),
        scene_test(a_lost_answer_is_unknown_and_read),
        scene_test(the_echo_of_an_earlier_delivery_is_never_rejected),
        scene_test(a_refusal_after_an_unanswered_attempt_settles_nothing),
        cmocka_unit_test(what_is_read_gives_the_verdict),
        scene_test(a_read_that_fails_is_tried_again),
        scene_test(a_person_can_settle_a_step),
        scene_test(the_same_bytes_are_sent_again_under_the_next_attempt),
        scene_test(the_unknown_entry_is_on_disk_before_the_next_attempt_leaves),
        scene_test(another_step_does_not_pass_as_the_open_one),
        scene_test(in_doubt_nothing_else_takes_availability_away),
        scene_test(a_server_that_never_answers_is_not_hammered),
        scene_test(what_is_no_longer_wanted_is_made_impossible_first),
        scene_test(a_step_that_arrives_before_its_block_is_applied),
        scene_test(a_block_that_is_lost_is_sent_again_by_itself),
        scene_test(a_create_that_is_no_longer_wanted_waits_for_its_horizon),
        scene_test(what_was_never_executed_needs_no_block),
        scene_test(retry_after_is_honoured),
        scene_test(a_closed_step_that_turns_up_is_journaled_as_late_once),
        scene_test(a_step_that_an_ended_run_closed_is_late_too),
        scene_test(what_is_no_key_of_ours_asks_nothing),
        scene_test(many_keys_of_ended_runs_are_asked_about_within_bounds),
        scene_test(what_provably_never_left_is_not_sent),
        scene_test(an_unreachable_server_is_not_asked_for_every_step),
        scene_test(a_lost_lease_keeps_the_bytes_here),
        scene_test(an_attempt_that_stays_here_does_not_undo_one_that_left),
        scene_test(a_slow_disk_stops_new_intents),
        scene_test(after_a_replaced_journal_all_writes_wait_one_horizon),
        scene_test(an_operation_begins_with_its_first_intent_and_ends_after_its_last_step),
        scene_test(another_target_supersedes_the_operation),
        scene_test(a_restart_asks_the_server_about_what_is_in_doubt),
        scene_test(a_restart_sends_the_very_bytes_that_the_journal_kept),
        scene_test(a_create_is_made_again_byte_for_byte_after_a_restart),
        scene_test(a_create_that_cannot_be_made_again_ends_at_the_horizon),
        scene_test(a_journal_that_went_back_is_not_believed),
        scene_test(a_restart_in_the_middle_of_a_block_finishes_it),
        scene_test(stopping_waits_for_answers),
        scene_test(stopping_sends_nothing_that_has_not_left),
        scene_test(stopping_does_not_wait_for_ever),
    };
    return cmocka_run_group_tests_name("gateway", tests, NULL, NULL);
}
