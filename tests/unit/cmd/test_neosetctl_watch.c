/* SPDX-License-Identifier: Apache-2.0
 *
 * What `neosetctl status` says first, and how it, `status -w` and `why` end: with the real program against
 * the simulated API server over HTTP. */
#include "ctl_stage.h"

#include "base/time_text.h"
#include "journal/journal.h"

#include <time.h>

/* --- status -w ------------------------------------------------------------------------------------------ */

#define AT_REST                                                                                              \
    "{'status':{'observedGeneration':9,'phase':'Completed','updateRevisionName':'a','currentRevisionName':'" \
    "a',"                                                                                                    \
    "'message':'all is well.'}}"
#define UNDER_WAY                                                                                            \
    "{'status':{'observedGeneration':0,'phase':'RollingOut','updateRevisionName':'b','currentRevisionName':" \
    "'a','message':'it rolls.'}}"

#define FAILED_BY_NOW                                                                                        \
    "{'status':{'observedGeneration':9,'phase':'Failed','updateRevisionName':'b','currentRevisionName':'a'," \
    "'message':'mysql-1 does not come up.'}}"
#define FAILED_BEFORE                                                                                        \
    "{'status':{'observedGeneration':1,'phase':'Failed','updateRevisionName':'b','currentRevisionName':'a'," \
    "'message':'mysql-1 does not come up.'}}"

static void make_watched(struct stage *stage, const char *status)
{
    make_set(stage, "default", "mysql");
    stage_write(stage, "PATCH", SETS "/mysql", "{'spec':{'replicas':0}}");
    stage_write(stage, "PATCH", SETS "/mysql/status", status);
}

/* Somebody else changes the status in a moment. */
static pid_t change_soon(const struct stage *stage, const char *method, const char *status)
{
    pid_t pid = fork();
    if (pid == 0) {
        usleep(1500 * 1000);
        if (str_equal(method, "DELETE"))
            request(stage, "DELETE", SETS "/mysql", "application/json", "{}");
        else
            stage_write(stage, "PATCH", SETS "/mysql/status", status);
        _exit(0);
    }
    return pid;
}

static void a_watch_appends_a_line_for_each_change_and_ends(void **state)
{
    struct stage *stage = *state;
    start_server(stage, "503,verb=get,resource=neosets,nth=2", true);
    make_watched(stage, UNDER_WAY);
    pid_t other = change_soon(stage, "PATCH", AT_REST);
    expect_run(stage, "status mysql -w", 0,
               "Z NeoSet mysql in default: changed, and no controller has seen that yet\n", "503");
    waitpid(other, NULL, 0);
    assert_non_null(strstr(stage->run.errors, "; trying again\n"));
    const char *second = strchr(stage->run.output, '\n');
    assert_non_null(second);
    assert_non_null(
        strstr(second, "Z NeoSet mysql in default: Completed, 0 of 0 updated, 0 ready: all is well.\n"));
    assert_null(strchr(stage->run.output, '\x1b'));
    expect_run(stage, "status mysql -w", 0, "Completed", NULL);
    expect_run(stage, "status mysql -w -o json", 64, "", "-w shows the picture");
}

static void a_watch_is_redrawn_in_place_on_a_terminal(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, true);
    make_watched(stage, UNDER_WAY);
    pid_t other = change_soon(stage, "PATCH", AT_REST);
    stage->run.columns = 80;
    stage->run.environment[3] = "NO_COLOR=1";
    stage->run.environment[4] = "TERM=xterm";
    const struct program_run *ended = stage_run(stage, "neosetctl", "status mysql -w");
    waitpid(other, NULL, 0);
    assert_int_equal(ended->exit_code, 0);
    const char *first =
        strstr(ended->output, "NeoSet mysql in default: changed, and no controller has seen that yet");
    assert_non_null(first);
    const char *last = strstr(first, "NeoSet mysql in default: Completed");
    assert_non_null(last);
    /* Up over the frame before, and each line cleared to its end; no colours. */
    assert_non_null(strstr(first, "A\r"));
    assert_non_null(strstr(last, "\x1b[K"));
    assert_null(strstr(ended->output, "\x1b[3"));
    stage->run.columns = 0;
}

static int lines_of(const char *text)
{
    int rows = 0;
    for (; *text; text++)
        rows += *text == '\n';
    return rows;
}

static void a_watch_draws_nothing_over_on_a_terminal_that_cannot(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, true);
    make_watched(stage, UNDER_WAY);
    pid_t other = change_soon(stage, "PATCH", AT_REST);
    stage->run.columns = 200;
    stage->run.environment[3] = "TERM=dumb";
    const struct program_run *ended = stage_run(stage, "neosetctl", "status mysql -w");
    waitpid(other, NULL, 0);
    assert_int_equal(ended->exit_code, 0);
    assert_null(strchr(ended->output, '\x1b'));
    assert_non_null(strstr(ended->output, "Z NeoSet mysql in default: changed, and no controller has"));
    assert_non_null(strstr(ended->output, "Z NeoSet mysql in default: Completed, 0 of 0 updated"));
    stage->run.columns = 0;
}

static void a_watch_on_a_low_terminal_says_first_why_it_waits(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, true);
    make_watched(stage, FAILED_BY_NOW);
    stage->run.columns = 100;
    stage->run.rows = 4;
    stage->run.environment[3] = "NO_COLOR=1";
    stage->run.environment[4] = "TERM=xterm";
    const struct program_run *ended = stage_run(stage, "neosetctl", "status mysql -w");
    assert_int_equal(ended->exit_code, 3);
    const char *first = strchr(ended->output, '\n');
    assert_non_null(first);
    CLEANUP_FREE char *line = xstrndup(ended->output, (size_t)(first - ended->output));
    if (!strstr(line, "Failed, 0 of 0 updated, 0 ready, stage 0: mysql-1 does not come up."))
        fail_msg("first is: %s", line);
    /* No more than the terminal takes, with the cursor below. */
    assert_true(lines_of(ended->output) <= 3);
    stage->run.columns = 0;
    stage->run.rows = 0;
}

static void a_watch_takes_the_journal_too(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, true);
    make_two_revisions(stage);
    CLEANUP_FREE char *words = xasprintf("status mysql -w --journal %s/controller.db", stage->folder);
    stage->run.columns = 200;
    const struct program_run *ended = stage_run(stage, "neosetctl", words);
    assert_int_equal(ended->exit_code, 0);
    if (!strstr(ended->output, "no controller is running on "))
        fail_msg("%s", ended->output);
    stage->run.columns = 0;
}

static void a_watch_of_a_set_that_goes_away_says_so(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, true);
    make_watched(stage, UNDER_WAY);
    pid_t other = change_soon(stage, "DELETE", NULL);
    expect_run(stage, "status mysql -w", 1,
               "Z NeoSet mysql in default: ", "no NeoSet mysql in namespace default");
    waitpid(other, NULL, 0);
}

/* --- a rollout that failed ------------------------------------------------------------------------------ */

static void a_failed_rollout_ends_with_its_own_exit_code(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, true);
    make_watched(stage, UNDER_WAY);
    pid_t other = change_soon(stage, "PATCH", FAILED_BY_NOW);
    expect_run(stage, "status mysql -w", 3,
               "Failed, 0 of 0 updated, 0 ready, stage 0: mysql-1 does not come up.\n", NULL);
    waitpid(other, NULL, 0);
    expect_run(stage, "status mysql", 3, "NeoSet mysql in default: Failed", NULL);
    expect_run(stage, "status mysql -o json", 3, "\"phase\":\"Failed\"", NULL);
    expect_run(stage, "why mysql", 3, "because mysql-1 does not come up.\n", NULL);
    expect_run(stage, "get mysql", 0, "Failed", NULL);
    expect_run(stage, "status --help", 0, "  3   status, status -w, why: the rollout has failed\n", NULL);
    expect_run(stage, "pause --help", 0, "  2   refused: nothing was written\n  64  wrong usage\n", NULL);
}

/* What failed was the rollout before: the new spec has not been looked at. */
static void a_failure_of_an_older_spec_is_none(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, true);
    make_watched(stage, FAILED_BEFORE);
    pid_t other = change_soon(stage, "PATCH", AT_REST);
    expect_run(stage, "status mysql", 0, "Failed", NULL);
    expect_run(stage, "why mysql", 0, "no controller has seen its newest spec", NULL);
    expect_run(stage, "status mysql -w", 0, "Completed", NULL);
    waitpid(other, NULL, 0);
}

/* --- the controller is away ----------------------------------------------------------------------------- */

#define LEASES(namespace) "/apis/coordination.k8s.io/v1/namespaces/" namespace "/leases"

static void make_lease(const struct stage *stage, const char *path, const char *holder, int age_s,
                       const char *annotations)
{
    char at[TIME_TEXT_SIZE];
    time_format_micros(((int64_t)time(NULL) - age_s) * US_PER_S, at);
    CLEANUP_FREE char *body = xasprintf(
        "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"neoset\","
        "\"annotations\":{%s}},\"spec\":{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":30,"
        "\"renewTime\":\"%s\"}}",
        annotations, holder, at);
    assert_int_equal(request(stage, "POST", path, "application/json", body), 201);
}

#define HEAD "\"apps.neo.io/journal-head\":\"x\""
static const char away[] = "No neoset-controller is at work: it was last seen at ";

static void an_old_lease_is_told_first(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, true);
    make_watched(stage, UNDER_WAY);
    /* Somebody else's of this name. */
    make_lease(stage, LEASES("kube-system"), "x_1", 1000, "");
    expect_run(stage, "status mysql", 0,
               "NeoSet mysql in default: changed, and no controller has seen that yet", NULL);
    assert_true(str_starts_with(stage->run.output, "NeoSet mysql"));
    make_lease(stage, LEASES("default"), "neoset-0_12ab", 16 * 60, HEAD);
    expect_run(stage, "status mysql", 0, " as neoset-0 (renewing Lease default/neoset, every 5 s), 16m",
               NULL);
    assert_non_null(strstr(stage->run.output, "s ago. What follows is as it left it.\n"));
    assert_true(str_starts_with(stage->run.output, away));
    assert_non_null(
        strstr(stage->run.output, "\nNext: kubectl get lease,pods -n default   (start neoset-controller"));
    expect_run(stage, "why mysql", 0,
               "stands where it stands because no neoset-controller is at work: ", NULL);
    /* Another one is at work: which of them has this set is not known. */
    make_lease(stage, LEASES("kube-public"), "neoset-1_34cd", 5, HEAD);
    expect_run(stage, "status mysql", 0,
               "NeoSet mysql in default: changed, and no controller has seen that yet", NULL);
    assert_true(str_starts_with(stage->run.output, "NeoSet mysql"));
}

static void a_lease_that_was_given_back_is_told_at_once(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, true);
    make_watched(stage, AT_REST);
    make_lease(stage, LEASES("default"), "", 5, HEAD);
    expect_run(stage, "status mysql", 0,
               "No neoset-controller is at work: it was stopped, and was last seen at ", NULL);
    pid_t other = change_soon(stage, "PATCH", UNDER_WAY);
    expect_run(stage, "status mysql -w", 0, "Z no neoset-controller is at work: it was stopped", NULL);
    waitpid(other, NULL, 0);
}

/* A journal that this process writes, as a controller would that was started with --no-lease; leads: else it
 * has not got its Lease. */
static struct journal *hold_journal(struct env *env, const char *path, bool leads)
{
    struct journal *journal = NULL;
    struct journal_options options = {.path = path, .identity = "host-1", .version = "1"};
    assert_int_equal(journal_open(env, &options, &journal, NULL), 0);
    if (leads) {
        journal_set_epoch(journal, journal_epoch(journal) + 1);
        journal_append(journal, &(struct journal_entry){.kind = JOURNAL_EPOCH, .reason = "host-1"});
        journal_commit(journal);
        env_sim_run_for(env, US_PER_S);
    }
    return journal;
}

static void a_live_journal_is_believed_before_the_lease_of_another(void **state)
{
    static const struct {
        const char *holder, *says;
    } leases[] = {
        {"", "it was stopped, and was last seen at "},
        {"neoset-0_12ab", "it was last seen at "},
    };
    struct stage *stage = *state;
    CLEANUP_FREE char *path = xasprintf("%s/live.db", stage->folder);
    CLEANUP_FREE char *status = xasprintf("status mysql --journal %s", path);
    CLEANUP_FREE char *why = xasprintf("why mysql --journal %s", path);
    CLEANUP_FREE char *watch = xasprintf("status mysql -w --journal %s", path);
    CLEANUP_ENV struct env *env = env_sim_make(3);
    for (size_t i = 0; i < ARRAY_SIZE(leases); i++) {
        start_server(stage, NULL, true);
        make_watched(stage, UNDER_WAY);
        make_lease(stage, LEASES("default"), leases[i].holder, 16 * 60, HEAD);
        struct journal *journal = hold_journal(env, path, true);
        expect_run(stage, status, 0, "  controller at work is host-1 (pid ", NULL);
        assert_true(str_starts_with(stage->run.output, "NeoSet mysql"));
        CLEANUP_FREE char *other =
            xasprintf(": it holds the lock of %s, and that is believed. The Lease is of another: %s", path,
                      leases[i].says);
        if (!strstr(stage->run.output, other) || strstr(stage->run.output, "no neoset-controller"))
            fail_msg("%s", stage->run.output);
        expect_run(stage, why, 0, other, NULL);
        assert_null(strstr(stage->run.output, "no neoset-controller is at work"));
        assert_null(strstr(stage->run.output, "is neoset-controller running?"));
        pid_t changer = change_soon(stage, "PATCH", AT_REST);
        expect_run(stage, watch, 0, "Z NeoSet mysql in default: ", NULL);
        assert_null(strstr(stage->run.output, "no neoset-controller"));
        waitpid(changer, NULL, 0);
        journal_close(journal, "done");
        /* And nobody holds it any more. */
        expect_run(stage, status, 0, "No neoset-controller is at work: ", NULL);
        stage_end(&stage->server);
    }
}

/* The caller's. */
static char *head_annotation(struct journal *journal)
{
    CLEANUP_FREE char *head = journal_head_text(journal);
    CLEANUP_JSON cJSON *text = cJSON_CreateString(head);
    CLEANUP_FREE char *quoted = json_print(text);
    return xasprintf("\"apps.neo.io/journal-head\":%s", quoted);
}

/* Its process is there, and it does nothing: it cannot renew the Lease, or has let it go. */
static void a_live_journal_whose_own_lease_is_over_is_not_believed(void **state)
{
    struct stage *stage = *state;
    enum { TEN_YEARS_S = 315360000 }; /* whatever this machine's clock says: later than the journal's */
    CLEANUP_FREE char *path = xasprintf("%s/live.db", stage->folder);
    CLEANUP_FREE char *status = xasprintf("status mysql --journal %s", path);
    CLEANUP_ENV struct env *env = env_sim_make(3);
    struct journal *journal = hold_journal(env, path, true);
    start_server(stage, NULL, true);
    make_watched(stage, UNDER_WAY);
    CLEANUP_FREE char *annotation = head_annotation(journal);
    make_lease(stage, LEASES("default"), "", -TEN_YEARS_S, annotation);
    expect_run(stage, status, 0, " and does not renew its Lease: ", NULL);
    assert_true(str_starts_with(stage->run.output, "No neoset-controller is at work: it was stopped, "));
    journal_close(journal, "done");
}

/* It was started again on its own journal, and the Lease is still as the run before has left it. */
static void a_live_journal_is_believed_before_its_own_older_lease_only_if_it_has_led(void **state)
{
    static const struct {
        bool leads;
        const char *says, *first;
    } table[] = {
        {false,
         " and waits for its Lease, and does nothing until it has it: ", "No neoset-controller is at work: "},
        {true, ", and that is believed. The Lease is of an earlier run: it was last seen at ",
         "NeoSet mysql"},
    };
    struct stage *stage = *state;
    int age_s = (int)time(NULL) - 86400; /* of 1970: earlier than the journal, whatever its clock says */
    CLEANUP_ENV struct env *env = env_sim_make(3);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_FREE char *path = xasprintf("%s/live-%zu.db", stage->folder, i);
        CLEANUP_FREE char *status = xasprintf("status mysql --journal %s", path);
        /* The run before led in any case. */
        struct journal *before = hold_journal(env, path, true);
        journal_close(before, "done");
        struct journal *journal = hold_journal(env, path, table[i].leads);
        CLEANUP_FREE char *annotation = head_annotation(journal);
        start_server(stage, NULL, true);
        make_watched(stage, UNDER_WAY);
        make_lease(stage, LEASES("default"), "neoset-0_12ab", age_s, annotation);
        expect_run(stage, status, 0, table[i].says, NULL);
        if (!str_starts_with(stage->run.output, table[i].first))
            fail_msg("not \"%s\" first: %s", table[i].first, stage->run.output);
        journal_close(journal, "done");
        stage_end(&stage->server);
    }
}

static void a_lease_that_may_not_be_read_is_no_matter(void **state)
{
    struct stage *stage = *state;
    start_server(stage, "403,verb=list,resource=leases", true);
    make_watched(stage, UNDER_WAY);
    expect_run(stage, "status mysql", 0,
               "NeoSet mysql in default: changed, and no controller has seen that yet", NULL);
}

/* --- what is re-created --------------------------------------------------------------------------------- */

static void the_field_that_forces_a_recreation_is_named(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, true);
    make_two_revisions(stage);
    stage_write(
        stage, "PATCH", SETS "/mysql",
        "{'spec':{'template':{'spec':{'containers':[{'name':'c','image':'i:2','env':[{'name':'A','value':'"
        "1'}]"
        "}]}}}}");
    converge(stage);
    static const char wanted[] = "pods are re-created: spec.containers[c].env changes\n";
    expect_run(stage, "status mysql", 0, wanted, NULL);
    expect_run(stage, "why mysql", 0, wanted, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        stage_test(a_watch_appends_a_line_for_each_change_and_ends),
        stage_test(a_watch_is_redrawn_in_place_on_a_terminal),
        stage_test(a_watch_draws_nothing_over_on_a_terminal_that_cannot),
        stage_test(a_watch_on_a_low_terminal_says_first_why_it_waits),
        stage_test(a_watch_takes_the_journal_too),
        stage_test(a_watch_of_a_set_that_goes_away_says_so),
        stage_test(a_failed_rollout_ends_with_its_own_exit_code),
        stage_test(a_failure_of_an_older_spec_is_none),
        stage_test(an_old_lease_is_told_first),
        stage_test(a_lease_that_was_given_back_is_told_at_once),
        stage_test(a_live_journal_is_believed_before_the_lease_of_another),
        stage_test(a_live_journal_whose_own_lease_is_over_is_not_believed),
        stage_test(a_live_journal_is_believed_before_its_own_older_lease_only_if_it_has_led),
        stage_test(a_lease_that_may_not_be_read_is_no_matter),
        stage_test(the_field_that_forces_a_recreation_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
