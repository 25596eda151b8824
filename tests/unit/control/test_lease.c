/* SPDX-License-Identifier: Apache-2.0
 *
 * The Lease in virtual time: one writer, epochs that only rise, a journal's head that is noticed. */
#include "control/lease.h"

#include "../../lib/journal_fixture.h"

#include "base/time_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* One Lease on a server, and one who wants it. */
struct world {
    struct journal_fixture journal;
    struct env *env;
    struct kube_client *client;
    struct exempt *exempt;
    struct lease *lease;
    cJSON *object; /* NULL: there is none */
    int version;
    bool down;              /* the server never answers */
    bool writes_hang;       /* nor does it to writes */
    const char *write_page; /* what something else answers 200 with, in the server's place, to writes */
    const char *read_page;  /* to reads */
    int reads, writes;
    int gained, lost, reported;
    enum journal_head_verdict head;
    bool given_back;
    char why[128];
    char said[256]; /* the newest report */
};

/* --- the server ----------------------------------------------------------------------------------------- */

static void answer_object(struct env_sim_call *call, int status, const cJSON *object)
{
    CLEANUP_FREE char *text = json_print(object);
    env_sim_http_answer(call, status, NULL, 0, text, strlen(text));
}

static void answer_status(struct env_sim_call *call, int status, const char *reason)
{
    CLEANUP_FREE char *text = xasprintf(
        "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"m\",\"reason\":\"%s\",\"code\":%d}",
        reason, status);
    env_sim_http_answer(call, status, NULL, 0, text, strlen(text));
}

static void answer_page(struct env_sim_call *call, const char *page)
{
    env_sim_http_answer(call, 200, NULL, 0, page, strlen(page));
}

static void merge(cJSON *target, const cJSON *patch)
{
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, patch) {
        if (cJSON_IsObject(member))
            merge(json_ensure_object(target, member->string), member);
        else
            json_set_item(target, member->string, json_copy(member));
    }
}

static void stamp_version(struct world *world)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", ++world->version);
    json_set_str(json_ensure_object(world->object, "metadata"), "resourceVersion", text);
}

static void take_write(struct world *world, struct env_sim_call *call)
{
    CLEANUP_JSON cJSON *body = NULL;
    assert_int_equal(json_parse(call->body, call->body_length, &body, NULL), 0);
    assert_true(str_starts_with(env_sim_http_header(call, "Audit-ID"), "neo-x-lease-"));
    assert_int_equal(call->pool, HTTP_POOL_LEASE);
    world->writes++;
    if (strcmp(call->method, "POST") == 0) {
        if (world->object) {
            answer_status(call, 409, "AlreadyExists");
            return;
        }
        world->object = json_copy(body);
        json_set_str(json_ensure_object(world->object, "metadata"), "uid", "lease-uid");
    } else {
        const char *guard = json_path_str(body, "metadata", "resourceVersion", NULL);
        assert_non_null(guard);
        if (!world->object ||
            !str_equal(guard, json_path_str(world->object, "metadata", "resourceVersion", NULL))) {
            answer_status(call, world->object ? 409 : 404, world->object ? "Conflict" : "NotFound");
            return;
        }
        merge(world->object, body);
    }
    stamp_version(world);
    answer_object(call, 200, world->object);
}

static void arrive(void *context, struct env_sim_call *call)
{
    struct world *world = context;
    if (world->down || (world->writes_hang && strcmp(call->method, "GET") != 0)) {
        env_sim_http_freeze(call);
    } else if (strcmp(call->method, "GET") == 0 ? world->read_page : world->write_page) {
        answer_page(call, strcmp(call->method, "GET") == 0 ? world->read_page : world->write_page);
    } else if (strcmp(call->method, "GET") == 0) {
        world->reads++;
        if (world->object)
            answer_object(call, 200, world->object);
        else
            answer_status(call, 404, "NotFound");
    } else {
        take_write(world, call);
    }
}

/* --- who wants it --------------------------------------------------------------------------------------- */

static void gained(void *context, enum journal_head_verdict head)
{
    struct world *world = context;
    world->gained++;
    world->head = head;
}

static void lost(void *context, const char *why)
{
    struct world *world = context;
    world->lost++;
    snprintf(world->why, sizeof(world->why), "%s", why);
}

static void reported(void *context, bool is_trouble, const char *sentence)
{
    struct world *world = context;
    assert_int_equal(is_trouble, str_starts_with(sentence, "cannot "));
    world->reported++;
    snprintf(world->said, sizeof(world->said), "%s", sentence);
}

static void given_back(void *context)
{
    struct world *world = context;
    world->given_back = true;
}

static void start(struct world *world)
{
    struct kube_config *config = xcalloc(1, sizeof(*config));
    config->server.base_url = xstrdup("http://sim");
    config->namespace = xstrdup("default");
    world->client = kube_client_make(world->env, config);
    journal_fixture_open(&world->journal);
    world->exempt = exempt_make(
        &(struct exempt_options){.env = world->env, .client = world->client, .field_manager = "neoset"});
    world->lease = lease_start(&(struct lease_options){.env = world->env,
                                                       .client = world->client,
                                                       .exempt = world->exempt,
                                                       .journal = world->journal.journal,
                                                       .namespace = "neo",
                                                       .name = "neoset",
                                                       .identity = "pod-0",
                                                       .gained = gained,
                                                       .lost = lost,
                                                       .report = reported,
                                                       .context = world});
}

static void end(struct world *world)
{
    lease_free(world->lease);
    exempt_free(world->exempt);
    kube_client_free(world->client);
}

static int setup(void **state)
{
    static const struct env_sim_http_ops ops = {.request = arrive};
    struct world *world = xcalloc(1, sizeof(*world));
    journal_fixture_setup(&world->journal);
    world->env = world->journal.env;
    world->version = 100;
    env_sim_http(world->env, &ops, world);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    if (world->lease)
        end(world);
    journal_fixture_teardown(&world->journal);
    json_delete(world->object);
    free(world);
    return 0;
}

static void pass(struct world *world, int64_t duration_us)
{
    env_sim_run_for(world->env, duration_us);
}

static const char *holder(const struct world *world)
{
    return json_path_str(world->object, "spec", "holderIdentity", NULL);
}

static int64_t transitions(const struct world *world)
{
    return json_int64_or(json_get(world->object, "spec"), "leaseTransitions", -1);
}

/* Somebody else's Lease, never renewed unless the test does it. */
static void put_lease(struct world *world, const char *holder_identity, int64_t transition_count,
                      const char *head)
{
    CLEANUP_FREE char *text =
        xasprintf("{\"kind\":\"Lease\",\"metadata\":{\"name\":\"neoset\",\"namespace\":\"neo\",\"uid\":"
                  "\"lease-uid\",\"annotations\":{}},"
                  "\"spec\":{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":30,"
                  "\"leaseTransitions\":%lld,\"renewTime\":\"2020-01-01T00:00:00.000000Z\"}}",
                  holder_identity, (long long)transition_count);
    json_delete(world->object);
    world->object = NULL;
    assert_int_equal(json_parse(text, strlen(text), &world->object, NULL), 0);
    if (head)
        json_set_str(json_path(world->object, "metadata", "annotations", NULL), LEASE_HEAD_ANNOTATION, head);
    stamp_version(world);
}

static void renew_for_other(struct world *world)
{
    json_set_str(json_get(world->object, "spec"), "renewTime", "later");
    stamp_version(world);
}

/* --- stories -------------------------------------------------------------------------------------------- */

static void where_there_is_none_it_is_made_and_an_epoch_begins(void **state)
{
    struct world *world = *state;
    start(world);
    assert_false(lease_is_ours(world->lease));
    pass(world, US_PER_S);
    assert_int_equal(world->gained, 1);
    assert_true(lease_is_ours(world->lease));
    CLEANUP_FREE char *identity = xasprintf("pod-0_%s", journal_nonce(world->journal.journal));
    assert_string_equal(holder(world), identity);
    assert_int_equal(transitions(world), 1);
    journal_fixture_settle(&world->journal);
    assert_string_equal(
        journal_fixture_sql(world->journal.path, "SELECT epoch FROM entry WHERE kind = 'epoch'"), "1");
    assert_string_equal(
        journal_fixture_sql(world->journal.path, "SELECT reason FROM entry WHERE kind = 'epoch'"), identity);
}

static void it_is_renewed_every_five_seconds_with_the_journals_head(void **state)
{
    struct world *world = *state;
    start(world);
    pass(world, 61 * US_PER_S);
    assert_in_range(world->writes, 11, 14);
    assert_int_equal(world->gained, 1);
    assert_int_equal(world->lost, 0);
    const char *head = json_path_str(world->object, "metadata", "annotations", LEASE_HEAD_ANNOTATION, NULL);
    assert_non_null(head);
    assert_int_equal(journal_check_head(world->journal.journal, head), JOURNAL_HEAD_GOES_ON);
    assert_true(lease_left_us(world->lease) > 20 * US_PER_S);
}

static void another_holder_is_waited_for_as_long_as_it_renews(void **state)
{
    struct world *world = *state;
    put_lease(world, "pod-1_ffff", 7, NULL);
    start(world);
    for (int i = 0; i < 20; i++) {
        pass(world, 10 * US_PER_S);
        renew_for_other(world);
    }
    assert_int_equal(world->gained, 0);
    assert_true(world->reported > 0);
    /* Its clock does not matter: only that we see it unchanged for its whole length. */
    pass(world, 28 * US_PER_S);
    assert_int_equal(world->gained, 0);
    pass(world, 10 * US_PER_S);
    assert_int_equal(world->gained, 1);
    assert_int_equal(transitions(world), 8);
    assert_int_equal(journal_epoch(world->journal.journal), 8);
}

static void a_lease_that_was_given_back_is_taken_at_once(void **state)
{
    struct world *world = *state;
    put_lease(world, "", 3, NULL);
    start(world);
    pass(world, US_PER_S);
    assert_int_equal(world->gained, 1);
    assert_int_equal(journal_epoch(world->journal.journal), 4);
}

static void our_own_dead_run_need_not_be_waited_for(void **state)
{
    struct world *world = *state;
    start(world);
    pass(world, US_PER_S);
    int64_t first = journal_epoch(world->journal.journal);
    end(world);
    journal_fixture_crash(&world->journal);
    start(world);
    pass(world, US_PER_S);
    assert_int_equal(world->gained, 2);
    assert_true(journal_epoch(world->journal.journal) > first);
}

static void the_epoch_rises_though_somebody_deleted_the_lease(void **state)
{
    struct world *world = *state;
    put_lease(world, "", 41, NULL);
    start(world);
    pass(world, US_PER_S);
    assert_int_equal(journal_epoch(world->journal.journal), 42);
    json_delete(world->object);
    world->object = NULL;
    pass(world, 10 * US_PER_S);
    assert_int_equal(world->lost, 1);
    assert_int_equal(world->gained, 2);
    assert_int_equal(journal_epoch(world->journal.journal), 43);
    assert_int_equal(transitions(world), 43);
}

#define OTHER_LEASE                                                                                          \
    "{\"kind\":\"Lease\",\"metadata\":{\"name\":\"other\",\"namespace\":\"neo\",\"uid\":\"u\","              \
    "\"resourceVersion\":\"9\"},\"spec\":{\"holderIdentity\":\"\"}}"

static void a_page_that_says_yes_gives_no_lease(void **state)
{
    struct world *world = *state;
    static const char *const pages[] = {"<html>Please log in</html>", "{}", "", OTHER_LEASE};
    static const char *const says[] = {
        "the answer is a web page",
        "the answer is not Lease/neo/neoset as the API server would send it",
        "the answer is not JSON",
        "the answer is not Lease/neo/neoset as the API server would send it",
    };
    start(world);
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
        world->write_page = pages[i];
        world->said[0] = '\0';
        pass(world, 10 * US_PER_S);
        assert_int_equal(world->gained, 0);
        assert_non_null(strstr(world->said, "cannot write the lease neo/neoset: "));
        assert_non_null(strstr(world->said, says[i]));
    }
    world->write_page = NULL;
    pass(world, 10 * US_PER_S);
    assert_int_equal(world->gained, 1);
}

static void a_page_that_says_yes_renews_nothing(void **state)
{
    struct world *world = *state;
    start(world);
    pass(world, 6 * US_PER_S);
    assert_true(lease_is_ours(world->lease));
    world->write_page = OTHER_LEASE;
    pass(world, 20 * US_PER_S);
    assert_false(lease_is_ours(world->lease));
    assert_int_equal(world->lost, 1);
}

static void a_page_that_is_read_says_nothing_of_the_holder(void **state)
{
    struct world *world = *state;
    put_lease(world, "pod-1_ffff", 7, NULL);
    static const char *const pages[] = {"<html>Please log in</html>", "{}", OTHER_LEASE};
    start(world);
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
        world->read_page = pages[i];
        pass(world, 10 * US_PER_S);
        assert_int_equal(world->writes, 0);
        assert_non_null(strstr(world->said, "cannot read the lease neo/neoset: "));
    }
}

static void without_renewals_it_is_over_after_fifteen_seconds(void **state)
{
    struct world *world = *state;
    start(world);
    pass(world, 6 * US_PER_S);
    assert_true(lease_is_ours(world->lease));
    world->down = true;
    pass(world, 13 * US_PER_S);
    assert_true(lease_is_ours(world->lease));
    assert_int_equal(world->lost, 0);
    pass(world, 2 * US_PER_S);
    assert_false(lease_is_ours(world->lease));
    assert_int_equal(world->lost, 1);
    assert_int_equal(lease_left_us(world->lease), 0);
    /* Nobody took it meanwhile: it is ours again, in a new epoch. */
    int64_t before = journal_epoch(world->journal.journal);
    world->down = false;
    pass(world, 20 * US_PER_S);
    assert_int_equal(world->gained, 2);
    assert_true(journal_epoch(world->journal.journal) > before);
}

static void what_left_before_the_deadline_is_dead_before_another_may_start(void **state)
{
    struct world *world = *state;
    start(world);
    pass(world, US_PER_S);
    world->down = true;
    int64_t last_ours_us = 0, left_us = 0;
    while (lease_is_ours(world->lease)) {
        last_ours_us = env_boot_us(world->env);
        left_us = lease_left_us(world->lease);
        pass(world, 100 * US_PER_MS);
    }
    assert_true(last_ours_us > 0);
    /* A write of at most 10 s that leaves at the last moment ends before the 30 s are over. */
    assert_true(left_us > 10 * US_PER_S);
}

static void a_stolen_lease_is_noticed_at_the_next_renewal(void **state)
{
    struct world *world = *state;
    start(world);
    pass(world, US_PER_S);
    put_lease(world, "thief_1", 9, NULL);
    pass(world, 6 * US_PER_S);
    assert_int_equal(world->lost, 1);
    assert_false(lease_is_ours(world->lease));
    assert_string_equal(holder(world), "thief_1");
}

static void a_change_by_a_person_does_not_cost_the_lease(void **state)
{
    struct world *world = *state;
    start(world);
    pass(world, US_PER_S);
    json_set_str(json_ensure_object(json_get(world->object, "metadata"), "labels"), "a", "b");
    stamp_version(world);
    pass(world, 30 * US_PER_S);
    assert_int_equal(world->lost, 0);
    assert_true(lease_is_ours(world->lease));
    assert_string_equal(json_path_str(world->object, "metadata", "labels", "a", NULL), "b");
}

static void it_is_given_back_on_the_way_out(void **state)
{
    struct world *world = *state;
    start(world);
    pass(world, US_PER_S);
    lease_give_back(world->lease, given_back, world);
    assert_false(lease_is_ours(world->lease));
    pass(world, US_PER_S);
    assert_true(world->given_back);
    assert_string_equal(holder(world), "");
    assert_int_equal(world->lost, 0);
}

static void giving_back_does_not_wait_for_a_dead_server(void **state)
{
    struct world *world = *state;
    start(world);
    pass(world, US_PER_S);
    world->down = true;
    lease_give_back(world->lease, given_back, world);
    pass(world, 4 * US_PER_S);
    assert_true(world->given_back);
}

static void a_stuck_disk_lets_it_go_until_the_disk_is_well(void **state)
{
    struct world *world = *state;
    start(world);
    pass(world, US_PER_S);
    lease_let_go(world->lease, "the disk is stuck");
    assert_int_equal(world->lost, 1);
    assert_string_equal(world->why, "the disk is stuck");
    pass(world, 60 * US_PER_S);
    assert_string_equal(holder(world), "");
    assert_int_equal(world->gained, 1);
    lease_resume(world->lease);
    pass(world, US_PER_S);
    assert_int_equal(world->gained, 2);
    assert_true(lease_is_ours(world->lease));
}

/* The disk is well again before the Lease's last write is answered, whichever that was. */
static void let_go_and_resumed_while_a_write_hangs_it_leads_again(void **state)
{
    struct world *world = *state;
    world->writes_hang = true;
    start(world);
    pass(world, US_PER_S); /* the taking hangs */
    lease_let_go(world->lease, "the disk is stuck");
    lease_resume(world->lease);
    world->writes_hang = false;
    pass(world, 60 * US_PER_S);
    assert_int_equal(world->gained, 1);
    world->writes_hang = true; /* the release hangs */
    lease_let_go(world->lease, "the disk is stuck");
    pass(world, 500 * US_PER_MS);
    lease_resume(world->lease);
    world->writes_hang = false;
    pass(world, 60 * US_PER_S);
    assert_int_equal(world->gained, 2);
    assert_true(lease_is_ours(world->lease));
}

static void the_head_of_the_journal_is_judged_before_it_is_replaced(void **state)
{
    struct world *world = *state;
    /* A first life publishes its head; then entries are added that it knows too. */
    start(world);
    pass(world, 20 * US_PER_S);
    CLEANUP_FREE char *published =
        xstrdup(json_path_str(world->object, "metadata", "annotations", LEASE_HEAD_ANNOTATION, NULL));
    end(world);
    world->lease = NULL;
    journal_fixture_crash(&world->journal);
    static const struct {
        const char *name;
        const char *change; /* of the published head; NULL: as it is */
        enum journal_head_verdict verdict;
    } cases[] = {
        {"as published", NULL, JOURNAL_HEAD_GOES_ON},
        {"a later entry", "\"seq\":999999", JOURNAL_HEAD_WENT_BACK},
        {"another hash", "\"hash\":\"ab\"", JOURNAL_HEAD_UNREADABLE},
        {"another journal", "\"journal_id\":\"00000000000000000000000000000000\"", JOURNAL_HEAD_REPLACED},
        {"rubbish", "rubbish", JOURNAL_HEAD_UNREADABLE},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_JSON cJSON *head = NULL;
        assert_int_equal(json_parse(published, strlen(published), &head, NULL), 0);
        CLEANUP_FREE char *change = cases[i].change ? xasprintf("{%s}", cases[i].change) : xstrdup("{}");
        CLEANUP_JSON cJSON *patch = NULL;
        if (json_parse(change, strlen(change), &patch, NULL) == 0)
            merge(head, patch);
        CLEANUP_FREE char *text = patch ? json_print(head) : xstrdup("rubbish");
        put_lease(world, "", 50, text);
        start(world);
        pass(world, US_PER_S);
        if (world->head != cases[i].verdict)
            fail_msg("%s: verdict %d, not %d", cases[i].name, world->head, cases[i].verdict);
        end(world);
        world->lease = NULL;
        journal_fixture_crash(&world->journal);
    }
}

#define lease_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        lease_test(where_there_is_none_it_is_made_and_an_epoch_begins),
        lease_test(it_is_renewed_every_five_seconds_with_the_journals_head),
        lease_test(another_holder_is_waited_for_as_long_as_it_renews),
        lease_test(a_lease_that_was_given_back_is_taken_at_once),
        lease_test(our_own_dead_run_need_not_be_waited_for),
        lease_test(the_epoch_rises_though_somebody_deleted_the_lease),
        lease_test(a_page_that_says_yes_gives_no_lease),
        lease_test(a_page_that_says_yes_renews_nothing),
        lease_test(a_page_that_is_read_says_nothing_of_the_holder),
        lease_test(without_renewals_it_is_over_after_fifteen_seconds),
        lease_test(what_left_before_the_deadline_is_dead_before_another_may_start),
        lease_test(a_stolen_lease_is_noticed_at_the_next_renewal),
        lease_test(a_change_by_a_person_does_not_cost_the_lease),
        lease_test(it_is_given_back_on_the_way_out),
        lease_test(giving_back_does_not_wait_for_a_dead_server),
        lease_test(a_stuck_disk_lets_it_go_until_the_disk_is_well),
        lease_test(let_go_and_resumed_while_a_write_hangs_it_leads_again),
        lease_test(the_head_of_the_journal_is_judged_before_it_is_replaced),
    };
    return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
