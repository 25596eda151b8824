/* SPDX-License-Identifier: Apache-2.0
 *
 * neosetctl continue: several sets that cannot be ended, each with its reason, and what an interrupted
 * command was asked to do, done. */
#include "converge_stage.h"

static int setup(void **state)
{
    return setup_with(state, 1, NULL);
}

static int teardown(void **state)
{
    return stage_teardown(state);
}

/* --- several -------------------------------------------------------------------------------------------- */

/* What is kept of a set that is gone, which the server does not take again without an image. */
static void keep(const struct stage *stage, const char *name, const char *image)
{
    CLEANUP_FREE char *body = xasprintf(
        "{'metadata':{'name':'%s-kept','labels':{'apps.neo.io/resize-of':'uid-of-%s'}},'revision':1,'data':{"
        "'apiVersion':'apps/v1','kind':'StatefulSet','metadata':{'name':'%s','namespace':'default','uid':"
        "'uid-of-%s'},'spec':{'replicas':0,'serviceName':'db','selector':{'matchLabels':{'app':'%s'}},"
        "'template':{'metadata':{'labels':{'app':'%s'}},'spec':{'containers':[{'name':'db','image':'%s'}]}}}}"
        "}",
        name, name, name, name, name, name, image);
    stage_write(stage, "POST", REVISIONS, body);
}

static void of_several_that_cannot_be_ended_each_is_told(void **state)
{
    struct stage *stage = *state;
    static const char *const names[] = {"first", "second", "third"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        keep(stage, names[i], "");
    keep(stage, "well", "mysql:8.0");
    expect_run(stage, "continue" IN_TIME, 1, "StatefulSet well", "StatefulSet first: the server refuses");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        CLEANUP_FREE char *words = xasprintf("neosetctl: StatefulSet %s: the server refuses", names[i]);
        const char *found = strstr(stage->run.errors, words);
        if (!found || strstr(found + 1, words))
            fail_msg("not once \"%s\" in: %s", words, stage->run.errors);
    }
    CLEANUP_JSON cJSON *well = stage_get(stage, SETS "/well");
    assert_non_null(well);
}

/* The first takes all the time: of the rest nothing is known, and that is told. */
static void those_that_the_time_was_not_enough_for_are_counted(void **state)
{
    struct stage *stage = *state;
    keep(stage, "db", "mysql:8.0"); /* it is there, with its old sizes, and is ended; the claims are not */
    keep(stage, "other", "mysql:8.0");
    keep(stage, "third", "mysql:8.0");
    expect_run(stage, "continue --timeout 1ms", 1, NULL, "2 others were not begun");
}

/* --- what was asked for --------------------------------------------------------------------------------- */

static void set_resizer(const struct stage *stage, const char *how)
{
    CLEANUP_FREE char *body = xasprintf("{'metadata':{'annotations':{'kubesim.neo.io/resizer':'%s'}}}", how);
    stage_write(stage, "PATCH", CLASSES "/std", body);
}

static bool set_is_gone(const struct stage *stage)
{
    CLEANUP_JSON cJSON *set = stage_get(stage, SETS "/db");
    return set == NULL;
}

static int count_of_size(const struct stage *stage, const char *size)
{
    CLEANUP_JSON cJSON *list = stage_get(stage, CLAIMS);
    const cJSON *claim = NULL;
    int count = 0;
    cJSON_ArrayForEach (claim, json_get(list, "items"))
        count += str_equal(json_path_str(claim, "status", "capacity", "storage", NULL), size);
    return count;
}

static void file_systems_that_were_to_be_waited_for_are(void **state)
{
    struct stage *stage = *state;
    wait_for_old_pods();
    CLEANUP_FREE char *pods = pods_text(stage, false);
    set_resizer(stage, "node-pending");
    expect_resize(stage, "converge", " --wait-for-filesystem --timeout 10s", 1, "made again",
                  "claims do not have their size yet");
    expect_run(stage, "continue --dry-run", 0, "half grown to data=2Gi", NULL);
    expect_run(stage, "continue --timeout 2s", 1, NULL, "claims do not have their size yet");
    assert_int_equal(count_of_size(stage, "2Gi"), 0);
    set_resizer(stage, "ok");
    expect_run(stage, "continue" IN_TIME, 0, "half grown to data=2Gi", NULL);
    assert_int_equal(count_of_size(stage, "2Gi"), REPLICAS);
    assert_converged(stage, pods, "2Gi");
    expect_run(stage, "continue", 0, "", "nothing is half done");
    assert_history(stage);
}

/* The way back, too: forwards there would be none. */
static void a_way_back_that_was_begun_is_gone_on_with(void **state)
{
    struct stage *stage = *state;
    wait_for_old_pods();
    write_manifest(stage, 1, TOO_LARGE, THREE);
    expect_resize(stage, "converge", IN_TIME, 1, NULL, "neosetctl resize recover -n default -f FILE");
    if (!strstr(stage->run.errors, "exceeds the largest volume"))
        fail_msg("not what the resizer said: %s", stage->run.errors);
    set_resizer(stage, "never");
    write_manifest(stage, 1, "3Gi", THREE);
    expect_resize(stage, "recover", " --timeout 2s", 1, "data-db-0: " TOO_LARGE " -> 3Gi", "goes on");
    expect_run(stage, "continue --dry-run", 0,
               "its volumes are half led back to data=3Gi: the StatefulSet is there, and has its pods\n",
               NULL);
    assert_non_null(strstr(stage->run.output, "  claims that ask for too much are asked for less, then "));
    assert_non_null(strstr(stage->run.output, "  go back    none: this is the way back already\n"));
    set_resizer(stage, "ok");
    expect_run(stage, "continue" IN_TIME, 0, "half led back to data=3Gi, it is gone on with", NULL);
    assert_non_null(strstr(stage->run.output, "the same 3 pods, none restarted"));
    expect_run(stage, "continue", 0, "", "nothing is half done");
    assert_history(stage);
}

/* The journal knows of it, and the cluster no more. */
static void what_somebody_deleted_is_only_closed(void **state)
{
    struct stage *stage = *state;
    set_resizer(stage, "never");
    expect_resize(stage, "converge", " --timeout 1s", 1, NULL, "goes on");
    stage_write(stage, "PATCH", SETS "/db", "{'metadata':{'finalizers':['a.b/c']}}");
    stage_write(stage, "DELETE", SETS "/db", "{'kind':'DeleteOptions','propagationPolicy':'Background'}");
    expect_run(
        stage, "continue --dry-run", 0,
        "its volumes are half grown to data=2Gi: its claims are asked to grow; ALARM: the StatefulSet is "
        "being deleted together with its pods: those that still name it may die; nobody kept its "
        "manifest\n",
        NULL);
    stage_write(stage, "PATCH", SETS "/db", "{'metadata':{'finalizers':null}}");
    wait_until(stage, "the set is gone", set_is_gone);
    expect_run(stage, "continue --dry-run", 0,
               "its volumes are half grown to data=2Gi: the StatefulSet is not there, and nobody kept its "
               "manifest\n",
               NULL);
    assert_non_null(strstr(stage->run.output, "  there is nothing to go on with: it is only closed\n"));
    expect_run(stage, "continue" IN_TIME, 0, "there is no StatefulSet db", NULL);
    expect_run(stage, "continue", 0, "", "nothing is half done");
}

static void a_set_made_again_is_told_by_its_sizes(void **state)
{
    static const struct {
        const char *kept, *stands, *next;
    } table[] = {
        {"1024Mi", "its volumes are half grown: the StatefulSet is made again with its new sizes, its ",
         "  it is seen that it has its pods, then the kept manifest is deleted\n"},
        {"2Gi", "its volumes are half grown: somebody made the StatefulSet again without its new sizes, its ",
         "  the kept manifest is deleted, and it begins anew: claims that are too small grow, "},
    };
    struct stage *stage = *state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_FREE char *body = xasprintf(
            "{'metadata':{'name':'db-kept','labels':{'apps.neo.io/resize-of':'u0'}},'revision':1,'data':{"
            "'apiVersion':'apps/v1','kind':'StatefulSet','metadata':{'name':'db','namespace':'default'},"
            "'spec':{'volumeClaimTemplates':[{'metadata':{'name':'data'},'spec':{'resources':{'requests':{"
            "'storage':'%s'}}}}]}}}",
            table[i].kept);
        stage_write(stage, "POST", REVISIONS, body);
        expect_run(stage, "continue --dry-run", 0, table[i].stands, NULL);
        if (!strstr(stage->run.output, table[i].next))
            fail_msg("not \"%s\" in: %s", table[i].next, stage->run.output);
        stage_write(stage, "DELETE", REVISIONS "/db-kept", "{}");
    }
    /* What is on its way out itself keeps nothing. */
    keep(stage, "grown", "mysql:8.0");
    stage_write(stage, "PATCH", REVISIONS "/grown-kept", "{'metadata':{'finalizers':['a.b/c']}}");
    stage_write(stage, "DELETE", REVISIONS "/grown-kept", "{}");
    expect_run(stage, "continue", 0, "", "nothing is half done");
}

/* --- a terminal that is closed -------------------------------------------------------------------------- */

/* Sends the signal to a converge that waits for its young pods; more: how it is started. */
static void signal_converge(const struct stage *stage, const char *how, const char *signal, const char *after)
{
    CLEANUP_FREE char *line = command(stage, "converge", IN_TIME);
    CLEANUP_FREE char *path = program_path("neosetctl");
    CLEANUP_FREE char *script =
        xasprintf("exec >%s/out 2>&1; %s %s '%s' %s --kubeconfig %s & for i in $(seq 100); do grep "
                  "-q waiting: %s/out && break; sleep 0.05; done; kill -%s $!; wait $!; %s",
                  stage->folder, how, stage->state_variable, path, line, stage->kubeconfig, stage->folder,
                  signal, after);
    if (system(script) != 0) {
        CLEANUP_FREE char *show = xasprintf("cat %s/out", stage->folder);
        (void)!system(show);
        fail_msg("after SIG%s: not \"%s\"", signal, after);
    }
}

static void a_terminal_that_is_closed_leaves_it_to_be_gone_on_with(void **state)
{
    struct stage *stage = *state;
    CLEANUP_FREE char *pods = pods_text(stage, false);
    signal_converge(stage, "env", "HUP", "test $? -eq 1");
    CLEANUP_FREE char *grep =
        xasprintf("grep -q 'interrupted: .*neosetctl continue -n default' %s/out", stage->folder);
    assert_int_equal(system(grep), 0);
    CLEANUP_FREE char *runs = xasprintf("runs --journal %s", stage->journal);
    program_run(&stage->run, "neoset-audit", runs);
    if (!strstr(stage->run.output, "interrupted"))
        fail_msg("the journal does not say so: %s", stage->run.output);
    wait_for_old_pods();
    expect_run(stage, "continue" IN_TIME, 0, "the same 3 pods, none restarted", NULL);
    assert_converged(stage, pods, "2Gi");
    assert_history(stage);
}

static void who_was_told_to_outlive_the_terminal_does(void **state)
{
    struct stage *stage = *state;
    CLEANUP_FREE char *pods = pods_text(stage, false);
    signal_converge(stage, "nohup env", "HUP", "test $? -eq 0");
    assert_converged(stage, pods, "2Gi");
    assert_history(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(of_several_that_cannot_be_ended_each_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(those_that_the_time_was_not_enough_for_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(file_systems_that_were_to_be_waited_for_are, setup, teardown),
        cmocka_unit_test_setup_teardown(a_way_back_that_was_begun_is_gone_on_with, setup, teardown),
        cmocka_unit_test_setup_teardown(what_somebody_deleted_is_only_closed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_set_made_again_is_told_by_its_sizes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_terminal_that_is_closed_leaves_it_to_be_gone_on_with, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(who_was_told_to_outlive_the_terminal_does, setup, teardown),
    };
    return cmocka_run_group_tests_name("continue", tests, NULL, NULL);
}
