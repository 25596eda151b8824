/* SPDX-License-Identifier: Apache-2.0
 *
 * The reflector against a server that misbehaves: streams, cut, malformed, silent and endless. */
#include "watch_owner.h"

/* --- streams --- */

static void events_reach_the_owner_wherever_they_are_cut(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    static const char text[] = LINE("ADDED", "b", "11")
        LINE("MODIFIED", "a", "12") "\r\n\n" LINE("BOOKMARK", "", "13") LINE("DELETED", "b", "14");
    model_data(owner->model, call, text);
    expect(owner, "+b +a -b");
    for (size_t i = 0; i < sizeof(text) - 1; i++)
        env_sim_http_data(call, text + i, 1);
    model_settle(owner->model);
    expect(owner, "+b +a -b");
    env_sim_http_end(call);
}

/* Of what is known nothing but its metadata is read: what follows may be anything. Other kinds of lines are.
 */
static void what_is_known_is_not_read(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    owner->known_version = "12";
    model_data(owner->model, call,
               LINE("ADDED", "b",
                    "11") "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\","
                          "\"resourceVersion\":\"12\"},\"spec\":[[[}\n" LINE("DELETED", "b", "12"));
    expect(owner, "+b =a -b");
    env_sim_run_for(owner->model->env, 60 * US_PER_S);
    model_data(owner->model, call, LINE("MODIFIED", "c", "12"));
    env_sim_http_end(call);
    expect(owner, "=c");
    call = resumed(owner, "12");
    /* The guess was right, the object is another one. */
    model_data(owner->model, call, LINE("MODIFIED", "d", "12"));
    expect(owner, "=d +d");
    env_sim_http_end(call);
    env_sim_http_end(resumed(owner, "12"));
    assert_true(kube_watch_is_fresh(owner->watch));
}

static void a_stream_is_bounded_at_random_between_five_and_ten_minutes(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    int least = 10000;
    int most = 0;
    for (int i = 0; i < 200; i++) {
        CLEANUP_FREE char *seconds = query(call, "timeoutSeconds");
        assert_non_null(seconds);
        least = MIN(least, atoi(seconds));
        most = MAX(most, atoi(seconds));
        env_sim_run_for(owner->model->env, 6 * US_PER_S);
        env_sim_http_end(call);
        call = resumed(owner, "10");
    }
    assert_in_range(least, 300, 320);
    assert_in_range(most, 580, 600);
    env_sim_http_end(call);
}

static void a_normal_end_goes_on_at_the_last_version_at_once(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    model_data(owner->model, call, LINE("ADDED", "b", "11"));
    env_sim_run_for(owner->model->env, 60 * US_PER_S);
    env_sim_http_end(call);
    int64_t before_us = env_boot_us(owner->model->env);
    call = resumed(owner, "11");
    assert_true(env_boot_us(owner->model->env) == before_us);
    env_sim_run_for(owner->model->env, 60 * US_PER_S);
    model_data(owner->model, call, LINE("BOOKMARK", "", "99"));
    env_sim_http_end(call);
    env_sim_http_end(resumed(owner, "99"));
    expect(owner, "+b");
    assert_true(kube_watch_is_fresh(owner->watch));
}

static void streams_that_end_at_once_are_not_reopened_in_a_hot_loop(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    int64_t before_us = env_boot_us(owner->model->env);
    for (int i = 0; i < 20; i++) {
        env_sim_http_end(call);
        call = resumed(owner, "10");
    }
    assert_true(env_boot_us(owner->model->env) - before_us > 60 * US_PER_S);
    env_sim_http_end(call);
}

static void too_old_as_a_status_lists_again(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    env_sim_run_for(owner->model->env, 60 * US_PER_S);
    env_sim_http_end(call);
    model_answer(owner->model, model_next(owner->model), 410, STATUS(410, "Expired"));
    relisted(owner);
    env_sim_http_end(resumed(owner, "20"));
    expect(owner, "LISTING begin +b end FRESH");
}

static void too_old_inside_the_stream_lists_again(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    model_data(owner->model, call,
               LINE("ADDED", "c", "11") ERROR_LINE(410, "Expired") LINE("ADDED", "d", "12"));
    assert_true(call->client_gone);
    env_sim_http_cut(call);
    relisted(owner);
    env_sim_http_end(resumed(owner, "20"));
    expect(owner, "+c LISTING begin +b end FRESH");
}

/* A server that says "too old" to the version that it has just given. */
static void too_old_for_ever_backs_off(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    int64_t before_us = env_boot_us(owner->model->env);
    for (int i = 0; i < 20; i++) {
        model_data(owner->model, call, LINE("ADDED", "c", "11") ERROR_LINE(410, "Expired"));
        env_sim_http_cut(call);
        relisted(owner);
        call = resumed(owner, "20");
    }
    assert_true(env_boot_us(owner->model->env) - before_us > 60 * US_PER_S);
    env_sim_http_end(call);
}

static void another_error_inside_the_stream_is_told_and_lists_again(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    model_data(owner->model, call, ERROR_LINE(500, "InternalError"));
    env_sim_http_cut(call);
    expect(owner, "STALE");
    assert_non_null(strstr(owner->reason, "cannot watch pods in namespace db: 500 InternalError"));
    relisted(owner);
    env_sim_http_end(resumed(owner, "20"));
    expect(owner, "begin +b end FRESH");
}

static void too_many_requests_inside_the_stream_goes_on_later(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    int64_t before_us = env_boot_us(owner->model->env);
    model_data(
        owner->model, call,
        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":429,\"reason\":\"TooManyRequests\","
        "\"details\":{\"retryAfterSeconds\":7}}}\n");
    env_sim_http_cut(call);
    env_sim_http_end(resumed(owner, "10"));
    assert_true(env_boot_us(owner->model->env) - before_us >= 7 * US_PER_S);
    expect(owner, "STALE FRESH");
}

static void a_malformed_line_is_told_and_lists_again_later(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    static const char *const lines[] = {"garbage\n", "{\"type\":\"ADDED\",\"object\":{}}\n",
                                        "{\"type\":\"NEW\"}\n", "\xFF\xFE\n"};
    int64_t before_us = env_boot_us(owner->model->env);
    for (int i = 0; i < 12; i++) {
        model_data(owner->model, call, LINE("ADDED", "c", "11"));
        model_data(owner->model, call, lines[(size_t)i % ARRAY_SIZE(lines)]);
        assert_true(call->client_gone);
        env_sim_http_cut(call);
        expect(owner, "+c STALE");
        assert_non_null(strstr(owner->reason, "malformed watch line"));
        relisted(owner);
        call = resumed(owner, "20");
        expect(owner, "begin +b end FRESH");
    }
    assert_true(env_boot_us(owner->model->env) - before_us > 20 * US_PER_S);
    env_sim_http_end(call);
}

static void what_cannot_be_read_names_its_object(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    static const struct {
        const char *line;
        const char *says;
    } cases[] = {
        {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"mysql-4\",\"namespace\":\"db\"}}}\n",
         "its object has no resourceVersion (db/mysql-4; what lies between this program and the API server "
         "may "
         "have damaged it; else look at the object with kubectl get pods)"},
        {"{\"type\" : \"ADDED\", \"object\" : { \"metadata\" : { \"name\" : \"only\"}, \"a\": tru}}\n",
         "(only; "},
        {"garbage\n", "(its name did not come; "},
        {"{\"metadata\":{\"name\":\"a\\u001b[2J\"\n", "(its name did not come; "},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        model_data(owner->model, call, cases[i].line);
        env_sim_http_cut(call);
        if (!strstr(owner->reason, cases[i].says))
            fail_msg("it says: %s", owner->reason);
        relisted(owner);
        call = resumed(owner, "20");
    }
    env_sim_http_end(call);
}

/* Not "cannot watch", "watching again", "cannot watch" each half a minute. */
static void trouble_stands_until_a_stream_has_lived(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    model_data(owner->model, call, "garbage\n");
    env_sim_http_cut(call);
    expect(owner, "STALE");
    CLEANUP_FREE char *trouble = xstrdup(owner->reason);
    for (int i = 0; i < 3; i++) {
        relisted(owner);
        call = resumed(owner, "20");
        expect(owner, "begin +b end FRESH");
        assert_true(kube_watch_is_fresh(owner->watch));
        assert_string_equal(owner->reason, trouble);
        if (i == 2)
            break;
        model_data(owner->model, call, "garbage\n");
        env_sim_http_cut(call);
        expect(owner, "STALE");
        assert_string_equal(owner->reason, trouble);
    }
    env_sim_run_for(owner->model->env, 4 * US_PER_S);
    expect(owner, "");
    env_sim_run_for(owner->model->env, 2 * US_PER_S);
    expect(owner, "FRESH");
    assert_string_equal(owner->reason, "");
    env_sim_http_end(call);
}

static void a_nul_in_an_annotation_does_not_blind_the_watch(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    model_data(owner->model, call,
               "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"11\","
               "\"annotations\":{"
               "\"a\":\"\\u0000\"}}}}\n");
    expect(owner, "+x");
    env_sim_http_end(call);
}

/* Sends an object whose annotation is so large, in pieces. */
static void send_large(struct owner *owner, struct env_sim_call *call, size_t bytes)
{
    enum { PIECE = 256 * 1024 };
    static char piece[PIECE];
    memset(piece, 'x', PIECE);
    model_data(owner->model, call,
               "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"large\",\"resourceVersion\":\"11\","
               "\"annotations\":{\"a\":\"");
    for (size_t sent = 0; sent < bytes && !call->client_gone; sent += PIECE) {
        env_sim_http_data(call, piece, PIECE);
        model_settle(owner->model);
    }
}

static void a_large_object_is_taken_and_a_larger_one_is_refused(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    send_large(owner, call, 5 * 1024 * 1024);
    model_data(owner->model, call, "\"}}}}\n");
    expect(owner, "+large");
    send_large(owner, call, 10 * 1024 * 1024);
    assert_true(call->client_gone);
    env_sim_http_cut(call);
    expect(owner, "STALE");
    assert_string_equal(owner->reason,
                        "cannot watch pods in namespace db: an object is larger than 8 MiB (large; make it "
                        "smaller or delete it: until then nothing newer of the pods is seen)");
    relisted(owner);
    env_sim_http_end(resumed(owner, "20"));
}

static void a_lost_connection_goes_on_at_the_last_version(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    model_data(owner->model, call, LINE("ADDED", "b", "11") "{\"type\":\"ADD");
    env_sim_run_for(owner->model->env, 60 * US_PER_S);
    env_sim_http_cut(call);
    call = resumed(owner, "11");
    expect(owner, "+b STALE FRESH");
    model_data(owner->model, call, LINE("ADDED", "c", "12"));
    expect(owner, "+c");
    env_sim_http_end(call);
}

/* --- frozen streams --- */

static void a_stream_that_froze_is_noticed_and_gets_a_fresh_connection(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    for (int i = 0; i < 5; i++) { /* about one bookmark a minute, as servers do */
        env_sim_run_for(owner->model->env, 60 * US_PER_S);
        model_data(owner->model, call, LINE("BOOKMARK", "", "12"));
        assert_false(call->client_gone);
    }
    env_sim_http_end(call);
    call = resumed(owner, "12");
    assert_false(model_how(owner->model)->fresh_connection);
    model_data(owner->model, call, LINE("BOOKMARK", "", "12"));
    env_sim_run_for(owner->model->env, 89 * US_PER_S);
    expect(owner, "");
    env_sim_http_freeze(call);
    env_sim_run_for(owner->model->env, 2 * US_PER_S);
    expect(owner, "STALE");
    call = resumed(owner, "12");
    assert_true(model_how(owner->model)->fresh_connection);
    expect(owner, "FRESH");
    env_sim_run_for(owner->model->env, 6 * US_PER_S);
    env_sim_http_end(call);
    env_sim_http_end(resumed(owner, "12"));
    assert_false(model_how(owner->model)->fresh_connection);
}

/* A proxy may keep a connection alive with blank lines while what is behind it is gone. */
static void blank_lines_are_no_life(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    model_data(owner->model, call, LINE("BOOKMARK", "", "12"));
    for (int i = 0; i < 9 && !call->client_gone; i++) {
        env_sim_run_for(owner->model->env, 9 * US_PER_S);
        model_data(owner->model, call, i % 2 ? "\n" : "\r\n \r\n");
    }
    expect(owner, "");
    env_sim_run_for(owner->model->env, 10 * US_PER_S);
    expect(owner, "STALE");
    assert_true(call->client_gone);
    assert_string_equal(owner->reason, "cannot watch pods in namespace db: the server has fallen silent");
    env_sim_http_freeze(call);
    env_sim_http_end(resumed(owner, "12"));
}

static void the_first_stream_is_noticed_to_freeze_as_well(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    model_data(owner->model, call, LINE("BOOKMARK", "", "10"));
    env_sim_run_for(owner->model->env, 40 * US_PER_S);
    model_data(owner->model, call, LINE("ADDED", "b", "11"));
    env_sim_run_for(owner->model->env, 89 * US_PER_S);
    expect(owner, "+b");
    env_sim_run_for(owner->model->env, 2 * US_PER_S);
    expect(owner, "STALE");
    assert_string_equal(owner->reason, "cannot watch pods in namespace db: the server has fallen silent");
    assert_true(call->client_gone);
    env_sim_http_freeze(call);
    env_sim_http_end(resumed(owner, "11"));
    assert_true(model_how(owner->model)->fresh_connection);
}

/* The storage behind the server was restored from a backup: it waits for a version that it will not have for
 * long. */
static void a_stream_without_a_single_line_lists_again(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    model_data(owner->model, call, LINE("BOOKMARK", "", "9000"));
    env_sim_http_end(call);
    call = resumed(owner, "9000");
    env_sim_run_for(owner->model->env, 91 * US_PER_S);
    env_sim_http_freeze(call);
    expect(owner, "STALE");
    relisted(owner);
    relisted(owner); /* 20 is older than 9000: onto nothing */
    env_sim_http_end(resumed(owner, "20"));
    expect(owner, "begin +b BACK begin +b end FRESH");
}

/* Without bookmarks silence proves nothing: the stream is renewed, and nobody is alarmed. */
static void a_quiet_stream_is_no_alarm(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    env_sim_run_for(owner->model->env, 89 * US_PER_S);
    assert_false(call->client_gone);
    env_sim_run_for(owner->model->env, 2 * US_PER_S);
    assert_true(call->client_gone);
    env_sim_http_freeze(call);
    env_sim_http_end(resumed(owner, "10"));
    assert_true(model_how(owner->model)->fresh_connection);
    expect(owner, "");
    assert_true(kube_watch_is_fresh(owner->watch));
}

static void a_watch_that_is_not_answered_is_tried_on_a_fresh_connection(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    env_sim_run_for(owner->model->env, 60 * US_PER_S);
    env_sim_http_end(call);
    call = model_next(owner->model);
    env_sim_run_for(owner->model->env, 39 * US_PER_S);
    expect(owner, "");
    env_sim_run_for(owner->model->env, 2 * US_PER_S);
    expect(owner, "STALE");
    assert_string_equal(owner->reason, "cannot watch pods in namespace db: the server does not answer");
    assert_true(call->client_gone);
    env_sim_http_freeze(call);
    env_sim_http_end(resumed(owner, "10"));
    assert_true(model_how(owner->model)->fresh_connection);
    expect(owner, "FRESH");
}

static void a_stream_outlives_its_time_by_a_little_only(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    CLEANUP_FREE char *seconds = query(call, "timeoutSeconds");
    int64_t end_us = env_boot_us(owner->model->env) + (atoi(seconds) + 29) * US_PER_S;
    while (env_boot_us(owner->model->env) + 30 * US_PER_S < end_us) {
        env_sim_run_for(owner->model->env, 30 * US_PER_S);
        model_data(owner->model, call, LINE("BOOKMARK", "", "12"));
    }
    env_sim_run_until(owner->model->env, end_us);
    assert_false(call->client_gone);
    env_sim_run_for(owner->model->env, 2 * US_PER_S);
    assert_true(call->client_gone);
    env_sim_http_freeze(call);
    env_sim_http_end(resumed(owner, "12"));
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, make, unmake)
    const struct CMUnitTest tests[] = {
        TEST(events_reach_the_owner_wherever_they_are_cut),
        TEST(what_is_known_is_not_read),
        TEST(a_stream_is_bounded_at_random_between_five_and_ten_minutes),
        TEST(a_normal_end_goes_on_at_the_last_version_at_once),
        TEST(streams_that_end_at_once_are_not_reopened_in_a_hot_loop),
        TEST(too_old_as_a_status_lists_again),
        TEST(too_old_inside_the_stream_lists_again),
        TEST(too_old_for_ever_backs_off),
        TEST(another_error_inside_the_stream_is_told_and_lists_again),
        TEST(too_many_requests_inside_the_stream_goes_on_later),
        TEST(a_malformed_line_is_told_and_lists_again_later),
        TEST(what_cannot_be_read_names_its_object),
        TEST(trouble_stands_until_a_stream_has_lived),
        TEST(a_nul_in_an_annotation_does_not_blind_the_watch),
        TEST(a_large_object_is_taken_and_a_larger_one_is_refused),
        TEST(a_lost_connection_goes_on_at_the_last_version),
        TEST(a_stream_that_froze_is_noticed_and_gets_a_fresh_connection),
        TEST(blank_lines_are_no_life),
        TEST(the_first_stream_is_noticed_to_freeze_as_well),
        TEST(a_stream_without_a_single_line_lists_again),
        TEST(a_quiet_stream_is_no_alarm),
        TEST(a_watch_that_is_not_answered_is_tried_on_a_fresh_connection),
        TEST(a_stream_outlives_its_time_by_a_little_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
