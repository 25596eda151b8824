/* SPDX-License-Identifier: Apache-2.0
 * The reflector against a server that misbehaves in each way that architecture.md, "The kube client", names.
 */
#include "kube/watch.h"

#include "base/time_text.h"

#include "model.h"

/* What the owner of a watch was told, as text: "begin a b end FRESH +c -d" ... */
struct owner {
    struct model *model;
    struct kube_client *client;
    struct kube_watch *watch;
    char log[8192];
    char reason[512]; /* of the newest state */
    unsigned states;
    const char *stop_at; /* the word in whose callback the watch is stopped; NULL: never */
};

static void note(struct owner *owner, const char *word, const char *rest)
{
    size_t at = strlen(owner->log);
    snprintf(owner->log + at, sizeof(owner->log) - at, "%s%s%s", at ? " " : "", word, rest);
    if (str_equal(owner->stop_at, word)) {
        owner->stop_at = NULL;
        kube_watch_stop(STEAL(owner->watch));
    }
}

static void on_list_begin(void *context)
{
    note(context, "begin", "");
}

static void on_list_end(void *context)
{
    note(context, "end", "");
}

static const char *name_of(const cJSON *object)
{
    const char *name = json_path_str(object, "metadata", "name", NULL);
    return name ? name : "?";
}

static void on_object(void *context, const cJSON *object)
{
    note(context, "+", name_of(object));
}

static void on_deleted(void *context, const cJSON *object)
{
    note(context, "-", name_of(object));
}

static void on_state(void *context, enum kube_watch_state state, const char *reason)
{
    static const char *const words[] = {"LISTING", "FRESH", "STALE"};
    struct owner *owner = context;
    owner->states++;
    snprintf(owner->reason, sizeof(owner->reason), "%s", reason ? reason : "");
    note(owner, words[state], "");
}

static const struct kube_watch_callbacks callbacks = {.list_begin = on_list_begin,
                                                      .list_end = on_list_end,
                                                      .object = on_object,
                                                      .deleted = on_deleted,
                                                      .state = on_state};

static int make(void **state)
{
    struct owner *owner = xcalloc(1, sizeof(*owner));
    owner->model = model_make(11);
    owner->client = kube_client_make(owner->model->env, kube_config_of_url("http://api"));
    *state = owner;
    return 0;
}

static int unmake(void **state)
{
    struct owner *owner = *state;
    kube_watch_stop(owner->watch);
    kube_client_free(owner->client);
    model_free(owner->model);
    free(owner);
    return 0;
}

static void start_spec(struct owner *owner, const struct kube_watch_spec *spec)
{
    owner->watch = kube_watch_start(owner->client, spec, &callbacks, owner);
}

static void start(struct owner *owner)
{
    start_spec(owner, &(struct kube_watch_spec){.resource = KUBE_POD, .namespace = "db"});
}

/* What was told since the last look. */
static void expect(struct owner *owner, const char *log)
{
    assert_string_equal(owner->log, log);
    owner->log[0] = '\0';
}

#define OBJECT(name, version) "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}}"
#define LINE(type, name, version) "{\"type\":\"" type "\",\"object\":" OBJECT(name, version) "}\n"
#define LIST(version, more, items)                                                                           \
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" version               \
    "\",\"continue\":\"" more "\"},\"items\":[" items "]}"
#define ERROR_LINE(code, reason) "{\"type\":\"ERROR\",\"object\":" STATUS(code, reason) "}\n"

/* The value of a query parameter, still encoded; the caller's. NULL when absent. */
static char *query(const struct env_sim_call *call, const char *name)
{
    CLEANUP_FREE char *wanted = xasprintf("%s=", name);
    const char *at = strchr(call->path, '?');
    while (at) {
        at++;
        const char *end = strchr(at, '&');
        if (str_starts_with(at, wanted))
            return xstrndup(at + strlen(wanted), (end ? (size_t)(end - at) : strlen(at)) - strlen(wanted));
        at = end;
    }
    return NULL;
}

static bool query_is(const struct env_sim_call *call, const char *name, const char *value)
{
    CLEANUP_FREE char *found = query(call, name);
    return str_equal(found, value);
}

static void has_query(const struct env_sim_call *call, const char *name, const char *value)
{
    if (!query_is(call, name, value))
        print_error("%s in %s\n", name, call->path);
    assert_true(query_is(call, name, value));
}

/* The watch has listed one object "a" at version 10 and streams. */
static struct env_sim_call *stream(struct owner *owner)
{
    start(owner);
    model_answer(owner->model, model_next(owner->model), 200, LIST("10", "", OBJECT("a", "9")));
    struct env_sim_call *call = model_next(owner->model);
    has_query(call, "watch", "true");
    env_sim_http_begin(call, 200, NULL, 0);
    model_settle(owner->model);
    expect(owner, "LISTING begin +a end FRESH");
    assert_true(kube_watch_is_fresh(owner->watch));
    return call;
}

/* The next request is a watch that goes on at this version; it is answered. */
static struct env_sim_call *resumed(struct owner *owner, const char *version)
{
    struct env_sim_call *call = model_next(owner->model);
    has_query(call, "watch", "true");
    has_query(call, "resourceVersion", version);
    env_sim_http_begin(call, 200, NULL, 0);
    model_settle(owner->model);
    return call;
}

/* The next request is a list from the beginning; it is answered with one object "b" at version 20. */
static void relisted(struct owner *owner)
{
    struct env_sim_call *call = model_next(owner->model);
    has_query(call, "watch", NULL);
    has_query(call, "continue", NULL);
    has_query(call, "resourceVersion", NULL);
    model_answer(owner->model, call, 200, LIST("20", "", OBJECT("b", "19")));
}

/* --- lists --- */

static void a_list_comes_in_chunks_and_is_watched_from_its_first_version(void **state)
{
    struct owner *owner = *state;
    struct model *model = owner->model;
    start_spec(owner, &(struct kube_watch_spec){.resource = KUBE_NEOSET,
                                                .label_selector = "a in (b,c)",
                                                .field_selector = "metadata.name=x",
                                                .page_limit = 2});
    assert_string_equal(owner->log, "");
    struct env_sim_call *call = model_next(model);
    assert_int_equal(call->pool, HTTP_POOL_REQUEST);
    assert_true(str_starts_with(call->path, "/apis/apps.neo.io/v1alpha1/neosets?"));
    has_query(call, "limit", "2");
    has_query(call, "continue", NULL);
    has_query(call, "resourceVersion", NULL);
    has_query(call, "labelSelector", "a%20in%20%28b%2Cc%29");
    has_query(call, "fieldSelector", "metadata.name%3Dx");
    model_answer(model, call, 200, LIST("007", "t+1/=", OBJECT("a", "1") "," OBJECT("b", "2")));
    call = model_next(model);
    has_query(call, "limit", "2");
    has_query(call, "continue", "t%2B1%2F%3D");
    has_query(call, "labelSelector", "a%20in%20%28b%2Cc%29");
    model_answer(model, call, 200, LIST("999", "", OBJECT("c", "3")));
    call = model_next(model);
    assert_int_equal(call->pool, HTTP_POOL_WATCH);
    has_query(call, "watch", "true");
    has_query(call, "allowWatchBookmarks", "true");
    has_query(call, "resourceVersion", "007");
    has_query(call, "labelSelector", "a%20in%20%28b%2Cc%29");
    has_query(call, "fieldSelector", "metadata.name%3Dx");
    assert_false(kube_watch_is_fresh(owner->watch));
    env_sim_http_begin(call, 200, NULL, 0);
    model_settle(model);
    expect(owner, "LISTING begin +a +b +c end FRESH");
    env_sim_http_end(call);
}

static void objects_are_handed_over_while_a_page_arrives(void **state)
{
    struct owner *owner = *state;
    struct model *model = owner->model;
    start(owner);
    struct env_sim_call *call = model_next(model);
    env_sim_http_begin(call, 200, NULL, 0);
    model_data(model, call, "{\"items\":[" OBJECT("a", "1") ",{\"metadata\":{\"name\"");
    expect(owner, "LISTING begin +a");
    model_data(model, call, ":\"b\"}}],\"metadata\":{\"resourceVersion\":\"5\"}}");
    env_sim_http_end(call);
    env_sim_http_end(resumed(owner, "5"));
    expect(owner, "+b end FRESH");
}

static void an_expired_continue_token_begins_the_list_again(void **state)
{
    struct owner *owner = *state;
    start(owner);
    model_answer(owner->model, model_next(owner->model), 200, LIST("10", "t", OBJECT("a", "9")));
    struct env_sim_call *call = model_next(owner->model);
    has_query(call, "continue", "t");
    model_answer(owner->model, call, 410, STATUS(410, "Expired"));
    relisted(owner);
    env_sim_http_end(resumed(owner, "20"));
    expect(owner, "LISTING begin +a begin +b end FRESH");
}

static void a_continue_token_that_the_server_does_not_take_begins_the_list_again(void **state)
{
    struct owner *owner = *state;
    static const int statuses[] = {400, 500};
    start(owner);
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
        model_answer(owner->model, model_next(owner->model), 200, LIST("10", "t", OBJECT("a", "9")));
        struct env_sim_call *call = model_next(owner->model);
        for (int times = 0; query_is(call, "continue", "t"); times++) {
            assert_in_range(times, 0, 10);
            model_answer(owner->model, call, statuses[i], STATUS(500, "Odd"));
            call = model_next(owner->model);
        }
        has_query(call, "watch", NULL);
        model_answer(owner->model, call, 503, "");
    }
    relisted(owner);
    env_sim_http_end(resumed(owner, "20"));
}

static void a_page_that_fails_for_a_moment_is_asked_for_again(void **state)
{
    struct owner *owner = *state;
    start(owner);
    model_answer(owner->model, model_next(owner->model), 200, LIST("10", "t", OBJECT("a", "9")));
    model_answer(owner->model, model_next(owner->model), 503, STATUS(503, "ServiceUnavailable"));
    struct env_sim_call *cut = model_next(owner->model);
    has_query(cut, "continue", "t");
    env_sim_http_begin(cut, 200, NULL, 0);
    env_sim_http_data(cut, "{\"items\":[", 10);
    env_sim_http_cut(cut);
    struct env_sim_call *call = model_next(owner->model);
    has_query(call, "continue", "t");
    model_answer(owner->model, call, 200, LIST("11", "", OBJECT("b", "9")));
    env_sim_http_end(resumed(owner, "10"));
    expect(owner, "LISTING begin +a STALE STALE +b end FRESH");
}

static void what_is_no_list_is_refused_with_a_sentence(void **state)
{
    struct owner *owner = *state;
    static const char *const bodies[] = {
        "[]",
        "",
        "<html>",
        "{\"items\":[]}",
        "{\"items\":[7],\"metadata\":{\"resourceVersion\":\"1\"}}",
        "{\"metadata\":{\"resourceVersion\":\"\"},\"items\":[]}",
        "{\"metadata\":{\"resourceVersion\":\"1\"}} x",
    };
    start(owner);
    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        model_answer(owner->model, model_next(owner->model), 200, bodies[i]);
        assert_string_equal(owner->reason, "cannot list pods in namespace db: the answer is not a List");
        assert_false(kube_watch_is_fresh(owner->watch));
    }
    model_answer(owner->model, model_next(owner->model), 200,
                 "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{\"a\":tru}]}");
    assert_non_null(strstr(owner->reason, "an object is not valid JSON"));
    relisted(owner);
    env_sim_http_end(resumed(owner, "20"));
    assert_true(kube_watch_is_fresh(owner->watch));
}

static void a_page_that_never_ends_is_given_up(void **state)
{
    struct owner *owner = *state;
    start(owner);
    struct env_sim_call *call = model_next(owner->model);
    assert_true(model_how(owner->model)->timeout_us <= 120 * US_PER_S);
    env_sim_http_begin(call, 200, NULL, 0);
    env_sim_http_data(call, "{", 1);
    for (int i = 0; i < 100 && !call->client_gone; i++) {
        env_sim_run_for(owner->model->env, 5 * US_PER_S);
        env_sim_http_data(call, " ", 1);
    }
    assert_true(call->client_gone);
    env_sim_http_cut(call);
    assert_non_null(strstr(owner->log, "STALE"));
    relisted(owner);
    env_sim_http_end(resumed(owner, "20"));
}

static void metadata_alone_is_asked_for_where_it_is_enough(void **state)
{
    struct owner *owner = *state;
    start_spec(owner, &(struct kube_watch_spec){.resource = KUBE_POD, .metadata_only = true});
    struct env_sim_call *call = model_next(owner->model);
    assert_true(str_starts_with(env_sim_http_header(call, "Accept"),
                                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"));
    model_answer(owner->model, call, 200, LIST("10", "", ""));
    call = model_next(owner->model);
    assert_true(str_starts_with(env_sim_http_header(call, "Accept"),
                                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"));
    env_sim_http_cut(call);
}

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
    send_large(owner, call, 40 * 1024 * 1024);
    assert_true(call->client_gone);
    env_sim_http_cut(call);
    expect(owner, "STALE");
    assert_string_equal(owner->reason, "cannot watch pods in namespace db: an object is larger than 32 MiB");
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
    env_sim_http_end(resumed(owner, "20"));
    expect(owner, "begin +b end FRESH");
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

/* --- refusals --- */

static void retry_after_is_honoured(void **state)
{
    struct owner *owner = *state;
    start(owner);
    for (int i = 0; i < 3; i++) {
        static const int statuses[] = {429, 503, 500};
        int64_t before_us = env_boot_us(owner->model->env);
        model_answer_retry_after(owner->model, model_next(owner->model), statuses[i], "40");
        model_expect_none_for(owner->model, before_us + 39 * US_PER_S - env_boot_us(owner->model->env));
    }
    relisted(owner);
    struct env_sim_call *call = model_next(owner->model);
    int64_t before_us = env_boot_us(owner->model->env);
    model_answer_retry_after(owner->model, call, 429, "50");
    env_sim_http_end(resumed(owner, "20"));
    assert_true(env_boot_us(owner->model->env) - before_us >= 50 * US_PER_S);
}

static void a_server_that_is_down_is_asked_less_and_less(void **state)
{
    struct owner *owner = *state;
    start(owner);
    int64_t before_us = env_boot_us(owner->model->env);
    unsigned asked = 0;
    while (env_boot_us(owner->model->env) - before_us < 600 * US_PER_S) {
        env_sim_http_cut(model_next(owner->model));
        model_settle(owner->model);
        asked++;
    }
    assert_in_range(asked, 20, 120);
    assert_non_null(strstr(owner->reason, "cannot list pods in namespace db: no answer"));
    relisted(owner);
    env_sim_http_end(resumed(owner, "20"));
    assert_true(kube_watch_is_fresh(owner->watch));
}

static void a_stream_that_has_lived_ends_the_back_off(void **state)
{
    struct owner *owner = *state;
    start(owner);
    for (int i = 0; i < 12; i++)
        model_answer(owner->model, model_next(owner->model), 503, "");
    relisted(owner);
    for (int i = 0; i < 12; i++) {
        struct env_sim_call *call = resumed(owner, "20");
        env_sim_run_for(owner->model->env, 6 * US_PER_S);
        env_sim_http_end(call);
        int64_t before_us = env_boot_us(owner->model->env);
        model_answer(owner->model, model_next(owner->model), 503, "");
        call = model_next(owner->model);
        assert_true(env_boot_us(owner->model->env) - before_us <= US_PER_S / 4);
        env_sim_http_begin(call, 200, NULL, 0);
        env_sim_run_for(owner->model->env, 6 * US_PER_S);
        env_sim_http_end(call);
    }
    env_sim_http_end(resumed(owner, "20"));
}

static void a_missing_definition_is_waited_for(void **state)
{
    struct owner *owner = *state;
    start_spec(owner, &(struct kube_watch_spec){.resource = KUBE_NEOSET});
    int64_t at_us = env_boot_us(owner->model->env);
    for (int i = 0; i < 4; i++) {
        struct env_sim_call *call = model_next(owner->model);
        assert_true(env_boot_us(owner->model->env) == at_us + i * 5 * US_PER_S);
        model_answer(owner->model, call, 404, "404 page not found\n");
    }
    expect(owner, "LISTING STALE");
    assert_string_equal(owner->reason,
                        "the NeoSet definition is not installed: kubectl apply -f deploy/crd.yaml; waiting");
    relisted(owner);
    env_sim_http_end(resumed(owner, "20"));
    expect(owner, "begin +b end FRESH");
}

static void a_definition_that_is_deleted_under_the_watch_is_waited_for(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    env_sim_http_end(call);
    model_answer(owner->model, model_next(owner->model), 404, "404 page not found\n");
    model_answer(owner->model, model_next(owner->model), 404, "404 page not found\n");
    expect(owner, "STALE");
    assert_string_equal(owner->reason, "the server has no pods (v1); waiting");
    relisted(owner);
    env_sim_http_end(resumed(owner, "20"));
}

static void a_missing_permission_is_named(void **state)
{
    struct owner *owner = *state;
    static const char forbidden[] =
        "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"code\":403,\"message\":\"pods is forbidden: User "
        "\\\"x\\\" cannot "
        "list resource \\\"pods\\\" in API group \\\"\\\" in the namespace \\\"db\\\"\"}";
    start(owner);
    model_answer(owner->model, model_next(owner->model), 403, forbidden);
    expect(owner, "LISTING STALE");
    assert_string_equal(owner->reason,
                        "no permission to list pods in namespace db (v1): 403 Forbidden: pods is "
                        "forbidden: User \"x\" cannot list resource \"pods\" in API group \"\" in the "
                        "namespace \"db\"");
    relisted(owner);
    model_answer(owner->model, model_next(owner->model), 403, STATUS(403, "Forbidden"));
    assert_non_null(strstr(owner->reason, "no permission to watch pods in namespace db"));
    env_sim_http_end(resumed(owner, "20"));
    assert_true(kube_watch_is_fresh(owner->watch));
}

static void a_version_that_the_server_does_not_understand_lists_again(void **state)
{
    struct owner *owner = *state;
    env_sim_http_end(stream(owner));
    model_answer(owner->model, model_next(owner->model), 400, STATUS(400, "BadRequest"));
    relisted(owner);
    env_sim_http_end(resumed(owner, "20"));
}

/* Real servers answer a version that is no number with a 500. */
static void a_stream_that_is_refused_again_and_again_lists_again(void **state)
{
    struct owner *owner = *state;
    env_sim_http_end(stream(owner));
    model_settle(owner->model);
    for (int i = 0; i < 3; i++) {
        struct env_sim_call *call = model_next(owner->model);
        has_query(call, "resourceVersion", "10");
        model_answer(owner->model, call, 500, "{\"kind\":\"Status\",\"code\":500}");
    }
    relisted(owner);
    env_sim_http_end(resumed(owner, "20"));
    assert_true(kube_watch_is_fresh(owner->watch));
}

/* --- stopping --- */

static void a_watch_can_be_stopped_in_each_of_its_callbacks(void **state)
{
    struct owner *owner = *state;
    static const char *const words[] = {"LISTING", "begin", "+", "end", "FRESH", "-", "STALE"};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        owner->stop_at = words[i];
        start(owner);
        model_settle(owner->model);
        for (int step = 0; step < 100 && owner->watch; step++) {
            struct env_sim_call *call = model_next(owner->model);
            bool list = !strstr(call->path, "watch=true");
            env_sim_http_begin(call, 200, NULL, 0);
            const char *body =
                list ? LIST("10", "", OBJECT("a", "9")) : LINE("DELETED", "b", "11") "garbage\n";
            env_sim_http_data(call, body, strlen(body));
            env_sim_http_end(call);
            model_settle(owner->model);
        }
        assert_null(owner->watch);
        owner->log[0] = '\0';
        model_expect_none_for(owner->model, 600 * US_PER_S);
        assert_string_equal(owner->log, "");
    }
}

static void a_watch_can_be_stopped_at_any_time(void **state)
{
    struct owner *owner = *state;
    for (int steps = 0; steps < 40; steps++) {
        start(owner);
        for (int i = 0; i < steps; i++) {
            env_sim_step(owner->model->env);
            while (owner->model->taken < owner->model->arrived) {
                struct env_sim_call *call = owner->model->calls[owner->model->taken++];
                bool list = !strstr(call->path, "watch=true");
                const char *body =
                    list ? LIST("10", "", OBJECT("a", "9")) : LINE("ADDED", "b", "11") "{\"type\":\"ADD";
                env_sim_http_answer(call, 200, NULL, 0, body, strlen(body));
            }
        }
        kube_watch_stop(STEAL(owner->watch));
        owner->log[0] = '\0';
        env_sim_run_for(owner->model->env, 100 * US_PER_S);
        while (owner->model->taken < owner->model->arrived)
            env_sim_http_cut(owner->model->calls[owner->model->taken++]);
        env_sim_run_for(owner->model->env, 100 * US_PER_S);
        assert_string_equal(owner->log, "");
    }
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, make, unmake)
    const struct CMUnitTest tests[] = {
        TEST(a_list_comes_in_chunks_and_is_watched_from_its_first_version),
        TEST(objects_are_handed_over_while_a_page_arrives),
        TEST(an_expired_continue_token_begins_the_list_again),
        TEST(a_continue_token_that_the_server_does_not_take_begins_the_list_again),
        TEST(a_page_that_fails_for_a_moment_is_asked_for_again),
        TEST(what_is_no_list_is_refused_with_a_sentence),
        TEST(a_page_that_never_ends_is_given_up),
        TEST(metadata_alone_is_asked_for_where_it_is_enough),
        TEST(events_reach_the_owner_wherever_they_are_cut),
        TEST(a_stream_is_bounded_at_random_between_five_and_ten_minutes),
        TEST(a_normal_end_goes_on_at_the_last_version_at_once),
        TEST(streams_that_end_at_once_are_not_reopened_in_a_hot_loop),
        TEST(too_old_as_a_status_lists_again),
        TEST(too_old_inside_the_stream_lists_again),
        TEST(too_old_for_ever_backs_off),
        TEST(another_error_inside_the_stream_is_told_and_lists_again),
        TEST(too_many_requests_inside_the_stream_goes_on_later),
        TEST(a_malformed_line_is_told_and_lists_again_later),
        TEST(a_nul_in_an_annotation_does_not_blind_the_watch),
        TEST(a_large_object_is_taken_and_a_larger_one_is_refused),
        TEST(a_lost_connection_goes_on_at_the_last_version),
        TEST(a_stream_that_froze_is_noticed_and_gets_a_fresh_connection),
        TEST(the_first_stream_is_noticed_to_freeze_as_well),
        TEST(a_stream_without_a_single_line_lists_again),
        TEST(a_quiet_stream_is_no_alarm),
        TEST(a_watch_that_is_not_answered_is_tried_on_a_fresh_connection),
        TEST(a_stream_outlives_its_time_by_a_little_only),
        TEST(retry_after_is_honoured),
        TEST(a_server_that_is_down_is_asked_less_and_less),
        TEST(a_stream_that_has_lived_ends_the_back_off),
        TEST(a_missing_definition_is_waited_for),
        TEST(a_definition_that_is_deleted_under_the_watch_is_waited_for),
        TEST(a_missing_permission_is_named),
        TEST(a_version_that_the_server_does_not_understand_lists_again),
        TEST(a_stream_that_is_refused_again_and_again_lists_again),
        TEST(a_watch_can_be_stopped_in_each_of_its_callbacks),
        TEST(a_watch_can_be_stopped_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
