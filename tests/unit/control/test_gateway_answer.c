/* A Status of the API server without a reason. */
#define WORDS_500(words) "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"" words "\",\"code\":500}"
/* SPDX-License-Identifier: Apache-2.0
 *
 * What the gateway makes of each answer (journal.md, "In doubt", rule 3) and of what is read afterwards. */
#include "scene.h"

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
    {"500 for a manifest that cannot be read is rejected", PATCHES, 500,
     WORDS_500(
         "failed to create typed patch object (a/db; apps/v1, Kind=StatefulSet): .x: field not declared"),
     CLOSED, JOURNAL_REJECTED},
    {"500 for a version on a create is rejected", CREATES, 500,
     WORDS_500("resourceVersion should not be set on objects to be created"), CLOSED, JOURNAL_REJECTED},
    {"500 of a store that died is unknown", PATCHES, 500,
     WORDS_500("rpc error: code = Unavailable desc = error reading from server: EOF"), READ, 0},
    {"500 of a store that is slow is unknown", CREATES, 500, WORDS_500("etcdserver: request timed out"), READ,
     0},
    {"500 at the end of the server's patience is unknown", PATCHES, 500,
     WORDS_500("context deadline exceeded"), READ, 0},
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
    scene_cut_after(scene, scene_send(scene, scene_patch("mysql-4", "b")), 200, "{\"kind\":\"Po");
    assert_told(scene, 0, JOURNAL_APPLIED);
    assert_false(scene->told[0].has_object);
    scene_cut_after(scene, scene_send(scene, scene_delete("mysql-5")), 200, "");
    assert_told(scene, 1, JOURNAL_APPLIED);
}

static void a_cut_page_of_a_proxy_settles_nothing(void **state)
{
    struct scene *scene = *state;
    scene_cut_after(scene, scene_send(scene, scene_patch("mysql-4", "b")), 200, "<html>Please l");
    assert_told(scene, 0, JOURNAL_UNKNOWN);
    (void)scene_expect(scene, "GET", NULL);
}

static void a_yes_that_is_not_the_servers_is_resolved_by_reading(void **state)
{
    struct scene *scene = *state;
    struct env_sim_call *call = scene_send(scene, scene_patch("mysql-4", "b"));
    scene_answer(scene, call, 200, "{}");
    assert_told(scene, 0, JOURNAL_UNKNOWN);
    /* What is read may come from the same place: neither a page nor another object says anything. */
    scene_show(scene, "<html>Please log in</html>");
    scene_show(scene, "{}");
    scene_show(scene, OBJECT("Pod", "db", "mysql-5", "u9"));
    scene_show(scene, SUCCESS("mysql-4", "u1"));
    assert_int_equal(scene->told_count, 1);
    scene_show(scene, pod_text("u1", "10", NULL));
    assert_int_equal(scene_submit(scene, scene_patch("mysql-4", "b")), 0);
    call = scene_expect(scene, "PATCH", NULL);
    scene_answer(scene, call, 200, pod_text("u1", "11", scene->key));
    assert_told(scene, 1, JOURNAL_APPLIED);
    assert_history(scene, "begin intent unknown applied");
    assert_string_equal(scene_sql(scene, "SELECT http || ' ' || reason FROM entry WHERE kind = 'unknown'"),
                        "200 200, but the answer is not Pod/db/mysql-4 as the API server would send it: "
                        "something else answers in its place (a proxy?)");
}

static void a_lost_answer_is_unknown_and_read(void **state)
{
    struct scene *scene = *state;
    struct env_sim_call *call = scene_send(scene, scene_patch("mysql-4", "b"));
    scene_cut(scene, call);
    assert_told(scene, 0, JOURNAL_UNKNOWN);
    scene_show(scene, pod_text("u1", "11", scene->key));
    assert_told(scene, 1, JOURNAL_APPLIED);
    assert_history(scene, "begin intent applied");
    assert_string_equal(scene_sql(scene, "SELECT http IS NULL FROM entry WHERE kind = 'applied'"), "1");
}

static void the_echo_of_an_earlier_delivery_is_never_rejected(void **state)
{
    struct scene *scene = *state;
    struct env_sim_call *call = scene_send(scene, scene_create("mysql-4", "a"));
    scene_answer(scene, call, 409, STATUS_OF(409, "AlreadyExists"));
    scene_show(scene, pod_text("u9", "5", scene->key));
    assert_told(scene, 1, JOURNAL_APPLIED);
}

static void a_refusal_after_an_unanswered_attempt_settles_nothing(void **state)
{
    struct scene *scene = *state;
    struct env_sim_call *call = scene_send(scene, scene_patch("mysql-4", "b"));
    scene_cut(scene, call);
    scene_show(scene, pod_text("u1", "10", NULL));
    scene_answer(scene, scene_send(scene, scene_patch("mysql-4", "b")), 403, STATUS_OF(403, "Forbidden"));
    assert_true(gateway_is_open(scene->gateway, KUBE_POD, "db", "mysql-4"));
    scene_show(scene, pod_text("u1", "11", scene->key));
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
        struct env_sim_call *call = scene_send(scene, scene_patch("mysql-4", "b"));
        scene_answer(scene, call, 409, CONFLICT);
        scene_answer(scene, scene_expect(scene, "GET", NULL), test->status,
                     test->status == 404
                         ? NOT_FOUND
                         : pod_text(test->uid, test->version, test->with_key ? scene->key : NULL));
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
    scene_cut(scene, scene_send(scene, scene_patch("mysql-4", "b")));
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
    scene_show_none(scene);
    assert_told(scene, 1, JOURNAL_OVERTAKEN);
}

static void a_person_can_settle_a_step(void **state)
{
    struct scene *scene = *state;
    struct env_sim_call *call = scene_send(scene, scene_patch("mysql-4", "b"));
    char text[512];
    snprintf(text, sizeof(text),
             "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"mysql-4\",\"namespace\":\"db\",\"uid\":\"u1\","
             "\"resourceVersion\":\"10\",\"annotations\":{"
             "\"apps.neo.io/settle\":\"%s=absent; I looked\"}}}",
             key_of_call(call));
    scene_cut(scene, call);
    scene_show(scene, text);
    assert_told(scene, 1, JOURNAL_ABSENT);
    assert_string_equal(scene_sql(scene, "SELECT reason FROM entry WHERE kind = 'absent'"),
                        "settled by a person: I looked");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    };
    return cmocka_run_group_tests_name("gateway answer", tests, NULL, NULL);
}
