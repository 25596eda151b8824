/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

static void fault(struct world *world, const char *spec)
{
    CLEANUP_ERROR struct error *err = NULL;
    if (kubesim_fault_add(world->sim, spec, &err) < 0)
        fail_msg("%s: %s", spec, error_text(err));
}

static void the_grammar_says_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        const char *words; /* NULL: taken */
    } rows[] = {
        {"", NULL},
        {"409", NULL},
        {"409,verb=patch,resource=pods,nth=2", NULL},
        {"lost,verb=create,resource=pods,name=mysql-3", NULL},
        {"late=3s,verb=patch;slow=250ms,times=0", NULL},
        {"freeze=10,resource=pods;stale=5", NULL},
        {"cut=5s", NULL},
        {"429,retry=2,times=0,user=kube*,namespace=default", NULL},
        {"status,resource=neosets/status", "'status' is no fault"},
        {"399", "'399' is no fault"},
        {"600", "'600' is no fault"},
        {"late", "'late' needs a value, as in late=3s"},
        {"stale", "'stale' needs a value"},
        {"lost=3s", "'lost' takes no value"},
        {"409=3", "'409' is no fault"},
        {"409,verb=frob", "verb=frob"},
        {"409,frob=1", "'frob' is no part of a fault"},
        {"409,nth", "'nth' needs a value"},
        {"409,nth=x", "'x' is no number"},
        {"late=soon", "soon"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        WORLD world = world_make();
        CLEANUP_ERROR struct error *err = NULL;
        int result = kubesim_fault_add(world->sim, rows[i].spec, &err);
        if (rows[i].words ? result != -ERROR_USAGE || !strstr(error_text(err), rows[i].words) : result != 0)
            fail_msg("'%s': %d %s", rows[i].spec, result, error_text(err));
    }
}

static void the_nth_matching_write_is_hit_and_not_executed(void **state)
{
    (void)state;
    static const int statuses[] = {409, 422, 429, 500, 503, 404, 403};
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
        WORLD world = world_make();
        CLEANUP_FREE char *spec = xasprintf("%d,verb=create,resource=configmaps,nth=2", statuses[i]);
        fault(world, spec);
        make_config(world, "a", "");
        assert_int_equal(ask(world, "GET", CONFIGMAPS "/a", NULL), 200);
        static const char body[] =
            "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"b\"}}";
        assert_int_equal(ask(world, "POST", CONFIGMAPS, body), statuses[i]);
        assert_int_equal(ask(world, "GET", CONFIGMAPS "/b", NULL), 404);
        assert_int_equal(ask(world, "POST", CONFIGMAPS, body), 201);
        assert_int_equal(kubesim_fault_hits(world->sim), 1);
    }
}

static void only_what_matches_is_hit(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_widgets(world);
    make_widget(world, "w", "\"word\":\"ab\"");
    fault(world, "503,resource=widgets/status,name=w*,times=0");
    assert_int_equal(patch(world, WIDGETS "/w", MERGE, "{\"spec\":{\"replicas\":2}}"), 200);
    assert_int_equal(patch(world, WIDGETS "/w/status", MERGE, "{\"status\":{}}"), 503);
    assert_int_equal(patch(world, WIDGETS "/w/status", MERGE, "{\"status\":{}}"), 503);
    kubesim_fault_clear(world->sim);
    assert_int_equal(patch(world, WIDGETS "/w/status", MERGE, "{\"status\":{}}"), 200);
}

static void a_create_is_known_by_the_name_in_its_body(void **state)
{
    (void)state;
    WORLD world = world_make();
    fault(world, "lost,verb=create,name=b");
    make_config(world, "a", "");
    assert_int_equal(world->response.disposition, KUBESIM_ANSWERED);
    make_config(world, "b", "");
    assert_int_equal(world->response.disposition, KUBESIM_LOST);
    assert_int_equal(ask(world, "GET", CONFIGMAPS "/b", NULL), 200);
}

static void too_many_requests_say_when_to_come_back(void **state)
{
    (void)state;
    WORLD world = world_make();
    fault(world, "429,retry=7");
    assert_int_equal(ask(world, "DELETE", CONFIGMAPS "/a", NULL), 429);
    assert_string_equal(reason(world), "TooManyRequests");
    assert_int_equal(world->response.retry_after_s, 7);
}

static void a_dropped_request_is_not_executed(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_config(world, "a", "");
    fault(world, "drop,verb=delete");
    ask(world, "DELETE", CONFIGMAPS "/a", NULL);
    assert_int_equal(world->response.disposition, KUBESIM_LOST);
    assert_int_equal(ask(world, "GET", CONFIGMAPS "/a", NULL), 200);
}

/* The transport hands it in again when its time has come, whether the client still waits or not. */
static void a_late_request_is_executed_when_it_is_handed_in_again(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_config(world, "a", "");
    fault(world, "late=3s,verb=delete,times=0");
    struct kubesim_request request = {.method = "DELETE", .path = CONFIGMAPS "/a"};
    ask_raw(world, &request);
    assert_int_equal(world->response.disposition, KUBESIM_HELD);
    assert_int_equal(world->response.delay_us, 3 * US_PER_S);
    assert_null(world->response.body);
    assert_int_equal(ask(world, "GET", CONFIGMAPS "/a", NULL), 200);
    request.no_faults = true;
    assert_int_equal(ask_raw(world, &request), 200);
    assert_int_equal(ask(world, "GET", CONFIGMAPS "/a", NULL), 404);
}

static void a_slow_request_is_executed_at_once(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_config(world, "a", "");
    fault(world, "slow=250ms,verb=any,times=0");
    assert_int_equal(ask(world, "DELETE", CONFIGMAPS "/a", NULL), 200);
    assert_int_equal(world->response.disposition, KUBESIM_ANSWERED);
    assert_int_equal(world->response.delay_us, 250 * US_PER_MS);
    kubesim_fault_clear(world->sim);
    assert_int_equal(ask(world, "GET", CONFIGMAPS "/a", NULL), 404);
}

static void watches_are_cut_frozen_and_gone(void **state)
{
    (void)state;
    WORLD world = world_make();
    fault(world, "cut=2,resource=configmaps;freeze=1,nth=2;freeze=5s,nth=3;cut=5s,nth=4;gone,nth=5");
    TOLD cut;
    TOLD frozen;
    TOLD frozen_later;
    TOLD cut_later;
    TOLD gone;
    watch(world, &cut, CONFIGMAPS "?watch=1&resourceVersion=1000000");
    watch(world, &frozen, CONFIGMAPS "?watch=1&timeoutSeconds=5");
    watch(world, &frozen_later, CONFIGMAPS "?watch=1");
    watch(world, &cut_later, CONFIGMAPS "?watch=1");
    watch(world, &gone, CONFIGMAPS "?watch=1&resourceVersion=1");
    assert_string_equal(buf_text(&gone.lines), "ERROR -\n");
    make_config(world, "a", "");
    make_config(world, "b", "");
    assert_string_equal(buf_text(&frozen.lines), "ADDED a\n");
    assert_string_equal(buf_text(&frozen_later.lines), "ADDED a\nADDED b\n");
    pass(world, 6);
    assert_false(frozen.ended); /* it is silent, also about its end */
    assert_true(cut_later.ended && !cut_later.clean);
    make_config(world, "c", "");
    assert_string_equal(buf_text(&frozen_later.lines), "ADDED a\nADDED b\n");
    assert_false(frozen_later.ended);
    assert_string_equal(buf_text(&cut_later.lines), "ADDED a\nADDED b\n");
}

static void a_watch_is_cut_after_so_many_lines(void **state)
{
    (void)state;
    WORLD world = world_make();
    fault(world, "cut=2");
    TOLD told;
    watch(world, &told, CONFIGMAPS "?watch=1");
    make_config(world, "a", "");
    make_config(world, "b", "");
    make_config(world, "c", "");
    assert_string_equal(buf_text(&told.lines), "ADDED a\nADDED b\n");
    assert_true(told.ended && !told.clean);
}

static void a_stale_list_shows_the_past(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_config(world, "a", "");
    make_config(world, "b", "");
    ask(world, "DELETE", CONFIGMAPS "/a", NULL);
    fault(world, "stale=2");
    ask(world, "GET", CONFIGMAPS, NULL);
    CLEANUP_FREE char *stale = json_print(json_get(world->body, "items"));
    assert_non_null(strstr(stale, "\"name\":\"a\""));
    assert_null(strstr(stale, "\"name\":\"b\""));
    ask(world, "GET", CONFIGMAPS, NULL);
    CLEANUP_FREE char *fresh = json_print(json_get(world->body, "items"));
    assert_null(strstr(fresh, "\"name\":\"a\""));
}

static void a_gone_list_is_410(void **state)
{
    (void)state;
    WORLD world = world_make();
    fault(world, "gone");
    assert_int_equal(ask(world, "GET", CONFIGMAPS, NULL), 410);
    assert_int_equal(ask(world, "GET", CONFIGMAPS, NULL), 200);
}

static void the_help_shows_only_what_is_taken(void **state)
{
    (void)state;
    WORLD world = world_make();
    const char *help = kubesim_fault_help();
    int examples = 0;
    for (const char *line = help; *line; line = strchr(line, '\n') + 1) {
        size_t length = strcspn(line, "\n");
        CLEANUP_FREE char *copy = xstrndup(line, length);
        bool example = str_starts_with(copy, "  ") && strstr(copy, "   ") && strchr(copy, ',') &&
                       strchr(copy, '=') && !strstr(copy, "TIME") && !strstr(copy, "N ");
        if (!example)
            continue;
        copy[2 + strcspn(copy + 2, " ")] = '\0';
        fault(world, copy + 2);
        examples++;
    }
    assert_true(examples >= 4);
}

/* --- the audit log
 * ----------------------------------------------------------------------------------------------------- */

/* The last line of the log; the caller's. */
static cJSON *last_event(struct world *world)
{
    const char *text = buf_text(&world->audit);
    size_t length = world->audit.length;
    assert_true(length > 0);
    const char *start = text + length - 1;
    while (start > text && start[-1] != '\n')
        start--;
    cJSON *event = NULL;
    assert_int_equal(json_parse(start, (size_t)(text + length - 1 - start), &event, NULL), 0);
    return event;
}

static void each_request_is_a_line_of_the_audit_log(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_widgets(world);
    make_widget(world, "w", "\"word\":\"ab\"");
    static const char body[] = "{\"status\":{\"replicas\":2}}";
    const struct kubesim_request request = {.method = "PATCH",
                                            .path = WIDGETS "/w/status?fieldManager=c",
                                            .content_type = MERGE,
                                            .audit_id = "neo-0123456789abcdef-17-2",
                                            .user = "neoset-controller",
                                            .user_agent = "neoset/1",
                                            .body = body,
                                            .body_length = sizeof(body) - 1};
    assert_int_equal(ask_raw(world, &request), 200);
    assert_string_equal(world->response.audit_id, "neo-0123456789abcdef-17-2");
    CLEANUP_JSON cJSON *event = last_event(world);
    assert_string_equal(json_str(event, "kind"), "Event");
    assert_string_equal(json_str(event, "apiVersion"), "audit.k8s.io/v1");
    assert_string_equal(json_str(event, "level"), "Request");
    assert_string_equal(json_str(event, "stage"), "ResponseComplete");
    assert_string_equal(json_str(event, "auditID"), "neo-0123456789abcdef-17-2");
    assert_string_equal(json_str(event, "verb"), "patch");
    assert_string_equal(json_path_str(event, "user", "username", NULL), "neoset-controller");
    CLEANUP_FREE char *reference = json_print(json_get(event, "objectRef"));
    assert_string_equal(
        reference,
        "{\"resource\":\"widgets\",\"namespace\":\"default\",\"name\":\"w\",\"apiGroup\":\"ex.io\","
        "\"apiVersion\":\"v1\",\"subresource\":\"status\"}");
    assert_int_equal(json_int64_or(json_get(event, "responseStatus"), "code", 0), 200);
    CLEANUP_FREE char *object = json_print(json_get(event, "requestObject"));
    assert_string_equal(object, body);
    assert_string_equal(json_str(event, "requestReceivedTimestamp"), "2027-01-15T08:00:00.000000Z");
}

static void refusals_and_lost_answers_are_logged_too(void **state)
{
    (void)state;
    WORLD world = world_make();
    ask(world, "DELETE", CONFIGMAPS "/none", NULL);
    CLEANUP_JSON cJSON *refused = last_event(world);
    assert_int_equal(json_int64_or(json_get(refused, "responseStatus"), "code", 0), 404);
    assert_string_equal(json_str(refused, "level"), "Metadata");
    fault(world, "lost,verb=create");
    make_config(world, "a", "");
    CLEANUP_JSON cJSON *lost = last_event(world);
    assert_int_equal(json_int64_or(json_get(lost, "responseStatus"), "code", 0), 201);
    assert_string_equal(json_path_str(lost, "objectRef", "name", NULL), "a");
    assert_int_equal(strlen(json_str(lost, "auditID")), 32);
}

static void a_held_request_is_logged_when_it_is_executed(void **state)
{
    (void)state;
    WORLD world = world_make();
    fault(world, "late=1s");
    size_t before = world->audit.length;
    struct kubesim_request request = {.method = "DELETE", .path = CONFIGMAPS "/a"};
    ask_raw(world, &request);
    assert_int_equal(world->audit.length, before);
    request.no_faults = true;
    ask_raw(world, &request);
    assert_true(world->audit.length > before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_grammar_says_what_is_wrong),
        cmocka_unit_test(the_nth_matching_write_is_hit_and_not_executed),
        cmocka_unit_test(only_what_matches_is_hit),
        cmocka_unit_test(a_create_is_known_by_the_name_in_its_body),
        cmocka_unit_test(too_many_requests_say_when_to_come_back),
        cmocka_unit_test(a_dropped_request_is_not_executed),
        cmocka_unit_test(a_late_request_is_executed_when_it_is_handed_in_again),
        cmocka_unit_test(a_slow_request_is_executed_at_once),
        cmocka_unit_test(watches_are_cut_frozen_and_gone),
        cmocka_unit_test(a_watch_is_cut_after_so_many_lines),
        cmocka_unit_test(a_stale_list_shows_the_past),
        cmocka_unit_test(a_gone_list_is_410),
        cmocka_unit_test(the_help_shows_only_what_is_taken),
        cmocka_unit_test(each_request_is_a_line_of_the_audit_log),
        cmocka_unit_test(refusals_and_lost_answers_are_logged_too),
        cmocka_unit_test(a_held_request_is_logged_when_it_is_executed),
    };
    return cmocka_run_group_tests_name("kubesim faults and audit", tests, NULL, NULL);
}
