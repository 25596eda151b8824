/* SPDX-License-Identifier: Apache-2.0
 *
 * neosetctl adopt: a StatefulSet becomes a NeoSet and a StatefulSet again, with the real programs against the
 * simulated API server, which runs the StatefulSet and its pods. The same pods all the time, none restarted,
 * also when the command is killed at any edge of any of its steps and run again. */
#include "set_stage.h"

#define NEOSETS "/apis/apps.neo.io/v1alpha1/namespaces/default/neosets"

/* --- processes ------------------------------------------------------------------------------------------ */

/* faults: NULL: none. */
static void start_server(struct stage *stage, const char *faults)
{
    CLEANUP_FREE char *audit_log = audit_log_of(stage);
    stage_serve(stage,
                (const char *const[]){"--crd", "deploy/crd.yaml", "--statefulsets", "--kubelet", "ok",
                                      "--audit-log", audit_log, faults ? "--faults" : NULL, faults, NULL});
}

static void start_controller(struct stage *stage)
{
    CLEANUP_FREE char *journal = xasprintf("%s/controller.db", stage->folder);
    CLEANUP_FREE char *log = xasprintf("%s/controller.log", stage->folder);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    stage->controller =
        stage_spawn((const char *const[]){"neoset-controller", "--kubeconfig", stage->kubeconfig, "--journal",
                                          journal, "--no-lease", "--listen", "none", NULL},
                    fd, fd);
    close(fd);
}

static bool neoset_is_complete(const struct stage *stage)
{
    CLEANUP_JSON cJSON *set = stage_get(stage, NEOSETS "/db");
    return str_equal(json_path_str(set, "status", "phase", NULL), "Completed") &&
           json_int64_or(json_get(set, "status"), "updatedAvailableReplicas", -1) == REPLICAS &&
           json_int64_or(json_get(set, "status"), "observedGeneration", -1) ==
               json_int64_or(json_get(set, "metadata"), "generation", -2);
}

/* --- the stage ------------------------------------------------------------------------------------------ */

/* Pods become old enough to be handed over: five seconds. */
static void make_statefulset(struct stage *stage)
{
    stage_write(
        stage, "POST", SETS,
        "{'metadata':{'name':'db','labels':{'app':'db','app.kubernetes.io/instance':'x'}},'spec':{'replicas':"
        "3,'serviceName':'db','podManagementPolicy':'Parallel','selector':{'matchLabels':{'app':'db'}},"
        "'template':{'metadata':{'labels':{'app':'db'}},'spec':{'containers':[{'name':'db','image':"
        "'mysql:8.0','env':[{'name':'A','value':'<1&2>'}]}]}},'volumeClaimTemplates':[{'metadata':{'name':"
        "'data'},'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}}}]}}");
    wait_until(stage, "three ready pods", set_is_ready);
}

static int setup_with(void **state, const char *faults)
{
    stage_setup(state);
    start_server(*state, faults);
    start_controller(*state);
    make_statefulset(*state);
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, NULL);
}

/* The plan's dry run of the delete is the first, and well; the one before the delete itself takes long, on
 * both ways. */
static int setup_with_late_proofs(void **state)
{
    return setup_with(state, "late=3s,verb=delete,resource=statefulsets,nth=2;"
                             "late=3s,verb=delete,resource=neosets,nth=2");
}

#define ADOPT "adopt statefulset/db --yes --timeout 60s"
#define BACK "adopt --undo db --yes --timeout 60s"

/* --- there and back ------------------------------------------------------------------------------------- */

static void a_statefulset_becomes_a_neoset_and_back_without_a_restart(void **state)
{
    struct stage *stage = *state;
    wait_for_old_pods();
    CLEANUP_FREE char *before = pods_text(stage, false);
    struct stat status;
    expect_run(stage, "adopt statefulset/db --dry-run", 0, "create NeoSet db, paused", NULL);
    expect_run(stage, "adopt statefulset/db --dry-run -o yaml", 0, "kind: NeoSet\nmetadata:\n  name: db\n",
               NULL);
    expect_run(stage, "adopt statefulset/db", 2, NULL, "--yes agrees beforehand");
    assert_int_not_equal(stat(stage->journal, &status), 0);
    expect_run(stage, ADOPT, 0, "the same 3 pods, none restarted", NULL);
    assert_pods(stage, before, "NeoSet");
    CLEANUP_JSON cJSON *neoset = stage_get(stage, NEOSETS "/db");
    assert_false(json_bool_or(json_path(neoset, "spec", "updateStrategy", NULL), "pause", true));
    assert_null(json_path(neoset, "metadata", "annotations", "apps.neo.io/adopts", NULL));
    assert_null(stage_get(stage, SETS "/db"));
    expect_run(stage, "adopt statefulset/db", 0, "adopted already", NULL);
    expect_run(stage, "history db -o csv", 0, "1,", NULL);
    assert_null(strstr(stage->run.output, "-kept-"));
    expect_run(stage, "adopt --undo db --dry-run", 0, "create StatefulSet db from the kept manifest", NULL);
    expect_run(stage, BACK, 0, "the same 3 pods, none restarted", NULL);
    assert_pods(stage, before, "StatefulSet");
    assert_null(stage_get(stage, NEOSETS "/db"));
    let_pass(1500); /* its controller would restart a pod that carries anything else */
    assert_pods(stage, before, "StatefulSet");
    expect_run(stage, "adopt --undo db", 0,
               "statefulset/db has its pods: there is no NeoSet db to be taken back\n", NULL);
    expect_run(stage, "adopt --undo db --dry-run", 0, "there is no NeoSet db to be taken back\n", NULL);
    expect_run(stage, "adopt --undo other", 1, NULL, "no NeoSet other in namespace default, nor a manifest");
    expect_run(stage, "continue", 0, "", "nothing is half done");
    assert_history(stage);
}

static void after_its_first_rollout_there_is_no_way_back(void **state)
{
    struct stage *stage = *state;
    wait_for_old_pods();
    expect_run(stage, ADOPT, 0, NULL, NULL);
    stage_write(
        stage, "PATCH", NEOSETS "/db",
        "{'spec':{'template':{'spec':{'containers':[{'name':'db','image':'mysql:8.1','env':[{'name':'A',"
        "'value':'<1&2>'}]}]}},'updateStrategy':{'maxUnavailable':3}}}");
    wait_until(stage, "rolled", neoset_is_complete);
    expect_run(stage, BACK, 2, "", "a rollout has begun (`neosetctl undo db`");
    expect_run(stage, "undo db", 0, NULL, NULL);
    let_pass(200);
    wait_until(stage, "rolled back", neoset_is_complete);
    CLEANUP_FREE char *before = pods_text(stage, false);
    expect_run(stage, BACK, 0, "statefulset/db has its pods again", NULL);
    assert_pods(stage, before, "StatefulSet");
}

static void what_changed_since_goes_back_with_it(void **state)
{
    struct stage *stage = *state;
    wait_for_old_pods();
    expect_run(stage, ADOPT, 0, NULL, NULL);
    stage_write(stage, "PATCH", NEOSETS "/db", "{'spec':{'replicas':2}}");
    expect_run(stage, BACK, 0, "{\"replicas\":2}", NULL);
    CLEANUP_JSON cJSON *set = stage_get(stage, SETS "/db");
    assert_int_equal(json_int64_or(json_get(set, "spec"), "replicas", -1), 2);
    assert_string_equal(json_path_str(set, "metadata", "labels", "app.kubernetes.io/instance", NULL), "x");
}

/* --- refusals ------------------------------------------------------------------------------------------- */

static void what_cannot_be_carried_over_is_named_and_nothing_is_written(void **state)
{
    struct stage *stage = *state;
    static const struct {
        const char *patch, *words[3];
    } table[] = {
        {"{'spec':{'updateStrategy':{'type':'OnDelete','rollingUpdate':null}},'metadata':{'finalizers':['a.b/"
         "c'],"
         "'ownerReferences':[{'apiVersion':'v1','kind':'Operator','name':'boss','uid':'1'}]}}",
         {"spec.updateStrategy.type: OnDelete", "metadata.finalizers: a.b/c", "it belongs to Operator boss"}},
    };
    CLEANUP_FREE char *before = pods_text(stage, true);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        stage_write(stage, "PATCH", SETS "/db", table[i].patch);
        for (size_t k = 0; k < ARRAY_SIZE(table[i].words); k++)
            expect_run(stage, ADOPT, 2, "", table[i].words[k]);
    }
    struct stat status;
    assert_int_not_equal(stat(stage->journal, &status), 0);
    assert_null(stage_get(stage, NEOSETS "/db"));
    CLEANUP_FREE char *after = pods_text(stage, true);
    assert_string_equal(after, before);
}

static void wrong_words_name_the_right_ones(void **state)
{
    struct stage *stage = *state;
    expect_run(stage, "adopt db", 64, NULL, "neosetctl adopt statefulset/NAME");
    expect_run(stage, "adopt pod/db-0", 64, NULL, "what is adopted is a StatefulSet");
    expect_run(stage, "adopt statefulset/db -o yaml", 64, NULL, "goes with --dry-run");
    expect_run(stage, "adopt statefulset/db --timeout soon", 64, NULL, "--timeout");
    expect_run(stage, "adopt statefulset/nobody --dry-run", 1, NULL, "no StatefulSet nobody");
    expect_run(stage, "adopt --undo nobody --yes", 1, NULL, "no NeoSet nobody");
}

/* Without anybody who would take them over, the pods stay where they are. */
static void without_a_controller_the_statefulset_keeps_its_pods(void **state)
{
    struct stage *stage = *state;
    stage_end(&stage->controller);
    wait_for_old_pods();
    CLEANUP_FREE char *before = pods_text(stage, false);
    expect_run(stage, "adopt statefulset/db --yes --timeout 3s", 1, NULL,
               "neoset-controller has not seen NeoSet db");
    assert_non_null(strstr(stage->run.errors,
                           "`neosetctl adopt statefulset/db -n default` goes on, `neosetctl "
                           "continue -n default` shows where it stands and the way back"));
    assert_pods(stage, before, "StatefulSet");
    expect_run(stage, "continue", 1, "db in namespace default: the adoption of StatefulSet is not finished\n",
               "1 adoption is not gone on with: on or back is yours to say");
    expect_said(stage,
                "  stands     NeoSet db is made, and paused; the StatefulSet still has its pods (3)\n");
    expect_said(stage,
                "  go on      neosetctl adopt statefulset/db -n default\n             neoset-controller "
                "must have seen the NeoSet (is it running?); then the StatefulSet's manifest is kept");
    expect_said(stage,
                "  go back    neosetctl adopt --undo db -n default\n             NeoSet db is deleted; the "
                "StatefulSet and its pods are not touched\n");
    expect_run(stage, "status db", 0, "db-2  other  not taken over", NULL);
    assert_non_null(strstr(stage->run.output, "  StatefulSet db still has it\n"));
    expect_run(stage, "continue --dry-run", 0, "db in namespace default: the adoption of StatefulSet", NULL);
    expect_run(stage, "continue -A -o csv", 0,
               "\"neosetctl adopt statefulset/db -n default\",\"neosetctl adopt --undo db -n default\"",
               NULL);
    /* The way back from there: the NeoSet goes, with what it made. */
    start_controller(stage);
    let_pass(1000);
    expect_run(stage, BACK, 0, "it had no pods yet", NULL);
    let_pass(1500);
    assert_pods(stage, before, "StatefulSet");
}

/* What keeps a StatefulSet that is gone; adopted: of which NeoSet that was to be, as an annotation. */
static void keep(const struct stage *stage, const char *name, const char *adopted)
{
    CLEANUP_FREE char *body = xasprintf(
        "{'metadata':{'name':'%s-kept','labels':{'apps.neo.io/resize-of':'uid-of-%s'},'annotations':{%s}},"
        "'revision':1,'data':{'apiVersion':'apps/"
        "v1','kind':'StatefulSet','metadata':{'name':'%s','namespace':"
        "'default','uid':'uid-of-%s'},'spec':{'replicas':0,'serviceName':'db','selector':{'matchLabels':{'"
        "app':"
        "'%s'}},'template':{'metadata':{'labels':{'app':'%s'}},'spec':{'containers':[{'name':'db','image':"
        "'mysql:8.0'}]}}}}}",
        name, name, adopted, name, name, name, name);
    stage_write(stage, "POST", REVISIONS, body);
}

static void who_asks_again_in_a_gap_is_told_where_it_stands_and_how_to_go_on(void **state)
{
    struct stage *stage = *state;
    keep(stage, "gap", "'apps.neo.io/adopted-by':'gap'");
    expect_run(stage, "continue", 1,
               "gap in namespace default: the adoption of StatefulSet is not finished\n",
               "is not gone on with");
    expect_said(stage,
                "  stands     the pods belong to nobody, and run on: neither set is there; the manifest is "
                "kept (ControllerRevision gap-kept)\n");
    expect_said(stage,
                "             NeoSet gap is made from the kept manifest, and neoset-controller takes the "
                "pods over\n");
    expect_said(stage, "             StatefulSet gap is made again from it, and takes the pods over\n");
    expect_run(stage, "adopt statefulset/gap --dry-run", 0,
               "has begun: it is gone on with\n  the StatefulSet is gone, its pods are nobody's and run on",
               NULL);
    expect_said(stage, "  go on: neosetctl adopt statefulset/gap -n default\n");
    expect_said(stage, "  go back: neosetctl adopt --undo gap -n default\n");
    expect_run(stage, "adopt statefulset/gap", 2, "go back: ", "--yes agrees beforehand");
    /* Gone for another reason. */
    keep(stage, "grown", "");
    expect_run(
        stage, "adopt statefulset/grown --yes", 2, "",
        "because its volumes grow, and is to be made again: first `neosetctl continue -n default`, then");
    expect_run(stage, "continue --dry-run", 0,
               "grown in namespace default: growing the volumes of StatefulSet is not finished\n", NULL);
    expect_said(stage,
                "  stands     its volumes are half grown: its claims are asked to grow; the StatefulSet is "
                "deleted, its pods run on and are nobody's\n");
    expect_said(stage,
                "  go on      neosetctl continue -n default\n             it is made again from the kept "
                "manifest with the larger sizes, and takes its pods over\n");
    expect_said(stage, "  go back    none: a volume never shrinks");
}

/* --- other people in the middle of it ------------------------------------------------------------------- */

static bool set_is_gone(const struct stage *stage)
{
    CLEANUP_JSON cJSON *set = stage_get(stage, SETS "/db");
    return set == NULL;
}

static bool pods_are_the_neosets(const struct stage *stage)
{
    CLEANUP_FREE char *pods = pods_text(stage, true);
    return strstr(pods, "db-0 ") && !strstr(pods, "StatefulSet") && !strstr(pods, "nobody");
}

/* The NeoSet is there and waits. */
static void begin(struct stage *stage)
{
    stage_end(&stage->controller);
    wait_for_old_pods();
    expect_run(stage, "adopt statefulset/db --yes --timeout 1s", 1, NULL,
               "neoset-controller has not seen NeoSet db");
}

static void what_still_names_the_statefulset_that_is_gone_names_it_no_more(void **state)
{
    struct stage *stage = *state;
    CLEANUP_FREE char *before = pods_text(stage, false);
    begin(stage);
    CLEANUP_JSON cJSON *set = stage_get(stage, SETS "/db");
    CLEANUP_JSON cJSON *neoset = stage_get(stage, NEOSETS "/db");
    stage_write(stage, "DELETE", SETS "/db", "{'kind':'DeleteOptions','propagationPolicy':'Orphan'}");
    wait_until(stage, "the StatefulSet is gone", set_is_gone);
    start_controller(stage);
    wait_until(stage, "its pods are the NeoSet's", pods_are_the_neosets);
    CLEANUP_FREE char *patch = xasprintf(
        "{'metadata':{'ownerReferences':[{'apiVersion':'apps.neo.io/v1alpha1','kind':'NeoSet','name':'db',"
        "'uid':'%s','controller':true},{'apiVersion':'apps/"
        "v1','kind':'StatefulSet','name':'db','uid':'%s'}]}}",
        json_path_str(neoset, "metadata", "uid", NULL), json_path_str(set, "metadata", "uid", NULL));
    stage_write(stage, "PATCH", PODS "/db-1", patch);
    expect_run(stage, ADOPT, 0, "db-1 still named the StatefulSet that is gone", NULL);
    assert_pods(stage, before, "NeoSet");
    /* Nobody kept the manifest: somebody else deleted the StatefulSet. */
    expect_run(stage, BACK, 2, "", "there is no manifest of a StatefulSet db to go back to");
}

static void a_statefulset_that_goes_with_its_pods_is_an_alarm(void **state)
{
    struct stage *stage = *state;
    begin(stage);
    stage_write(stage, "PATCH", SETS "/db", "{'metadata':{'finalizers':['a.b/c']}}");
    stage_write(stage, "DELETE", SETS "/db", "{'kind':'DeleteOptions','propagationPolicy':'Background'}");
    expect_run(stage, "adopt statefulset/db --yes --timeout 5s", 1, NULL,
               "ALARM: StatefulSet db is being deleted together");
    /* Nothing was kept: nobody says that there is a way back. */
    expect_run(
        stage, "continue", 1,
        "  stands     ALARM: the StatefulSet is being deleted together with its pods: those that still "
        "name it may die; nobody kept its manifest\n",
        "is not gone on with");
    expect_said(stage,
                "             when it is gone, neoset-controller takes over the pods that are left, and "
                "makes those that are not\n");
    expect_said(stage, "  go back    none: nobody kept the StatefulSet's manifest\n");
    expect_run(stage, "adopt statefulset/db --dry-run", 0,
               "  ALARM: the StatefulSet is being deleted together", NULL);
    assert_null(strstr(stage->run.output, "go back"));
    stage_write(stage, "PATCH", SETS "/db", "{'metadata':{'finalizers':null}}");
    wait_until(stage, "the StatefulSet is gone", set_is_gone);
    expect_run(stage, "continue", 1, "  stands     the StatefulSet is gone, ", "is not gone on with");
    expect_said(stage, "  go back    none: nobody kept the StatefulSet's manifest\n");
    expect_run(stage, "adopt statefulset/db --dry-run", 0, "the StatefulSet is gone, NeoSet db takes", NULL);
    assert_null(strstr(stage->run.output, "go back"));
    expect_run(stage, "adopt statefulset/db --dry-run -o yaml", 0, "kind: NeoSet\nmetadata:\n  name: db\n",
               NULL);
}

static void a_statefulset_that_changes_meanwhile_is_followed(void **state)
{
    struct stage *stage = *state;
    begin(stage);
    stage_write(stage, "PATCH", SETS "/db", "{'spec':{'minReadySeconds':1,'revisionHistoryLimit':4}}");
    start_controller(stage);
    expect_run(stage, ADOPT, 0, "NeoSet db follows a change of StatefulSet db", NULL);
    CLEANUP_JSON cJSON *neoset = stage_get(stage, NEOSETS "/db");
    assert_int_equal(json_int64_or(json_get(neoset, "spec"), "minReadySeconds", -1), 1);
    assert_int_equal(json_int64_or(json_get(neoset, "spec"), "revisionHistoryLimit", -1), 4);
}

static void assert_dry_deletes(const struct stage *stage, const char *resource, int count)
{
    CLEANUP_FREE char *audit_log = audit_log_of(stage);
    CLEANUP_FREE char *command = xasprintf("test $(grep 'neo-x-dry-delete-' '%s' | grep -c '/%s/db') = %d",
                                           audit_log, resource, count);
    assert_int_equal(system(command), 0);
}

/* Of a pod that was born meanwhile the collector may not know yet. */
static void pods_that_were_looked_at_long_ago_are_looked_at_again(void **state)
{
    struct stage *stage = *state;
    wait_for_old_pods();
    /* The plan's, the late one, the one that is acted on. */
    expect_run(stage, ADOPT, 0, "the same 3 pods, none restarted", NULL);
    assert_dry_deletes(stage, "statefulsets", 3);
    expect_run(stage, BACK, 0, "the same 3 pods, none restarted", NULL);
    assert_dry_deletes(stage, "neosets", 3);
    assert_history(stage);
}

static void a_neoset_that_was_there_before_is_not_touched(void **state)
{
    struct stage *stage = *state;
    stage_write(
        stage, "POST", NEOSETS,
        "{'apiVersion':'apps.neo.io/v1alpha1','kind':'NeoSet','metadata':{'name':'db'},'spec':{'replicas':0,"
        "'selector':{'matchLabels':{'app':'other'}},'template':{'metadata':{'labels':{'app':'other'}},'spec':"
        "{'containers':[{'name':'c','image':'i:1'}]}}}}");
    expect_run(stage, ADOPT, 2, "", "there is a NeoSet db beside StatefulSet db");
}

/* --- killed at each edge -------------------------------------------------------------------------------- */

struct edge_count {
    int died, lived;
};

/* Killed there, if it comes by; then run again, to the end. */
static void kill_and_go_on(struct stage *stage, const char *program, const char *words, const char *edge,
                           const char *kind, struct edge_count *count)
{
    CLEANUP_FREE char *crash = xasprintf("NEOSET_CRASH=%s:%s", edge, kind);
    stage->run.environment[3] = crash;
    stage_run(stage, program, words);
    bool died = stage->run.exit_code == -1;
    if (!died && stage->run.exit_code != 0)
        fail_msg("%s %s: exit %d: %s %s", edge, kind, stage->run.exit_code, stage->run.output,
                 stage->run.errors);
    if (died) {
        /* And once more, as soon as it looks at what it left. */
        CLEANUP_FREE char *again = xasprintf("NEOSET_CRASH=recover:%s", kind);
        stage->run.environment[3] = again;
        stage_run(stage, program, words);
    }
    stage->run.environment[3] = NULL;
    count->died += died;
    count->lived += !died;
    if (died && stage->run.exit_code != 0) {
        stage_run(stage, "neosetctl", words);
        if (stage->run.exit_code != 0)
            fail_msg("after %s %s: exit %d: %s %s", edge, kind, stage->run.exit_code, stage->run.output,
                     stage->run.errors);
    }
}

static void killed_at_any_edge_it_is_gone_on_with(void **state)
{
    static const char *const edges[] = {"intent-commit", "send", "answer", "outcome", "done"};
    static const char *const there[] = {"create-neoset", "create-revision", "orphan-delete", "patch"};
    static const char *const back[] = {"orphan-delete", "delete", "patch", "create-statefulset"};
    struct stage *stage = *state;
    CLEANUP_FREE char *program = crash_program();
    if (!program)
        skip();
    struct edge_count count = {0};
    wait_for_old_pods();
    CLEANUP_FREE char *before = pods_text(stage, false);
    for (size_t i = 0; i < ARRAY_SIZE(edges); i++) {
        for (size_t k = 0; k < ARRAY_SIZE(there); k++) {
            print_message("    %s: %s, %s\n", edges[i], there[k], back[k]);
            kill_and_go_on(stage, program, ADOPT, edges[i], there[k], &count);
            assert_pods(stage, before, "NeoSet");
            kill_and_go_on(stage, program, BACK, edges[i], back[k], &count);
            assert_pods(stage, before, "StatefulSet");
            assert_history(stage);
        }
    }
    print_message("    killed %d times, %d ran through\n", count.died, count.lived);
    assert_true(count.died >= (int)(ARRAY_SIZE(edges) * ARRAY_SIZE(there) * 2 * 9 / 10));
}

#define stage_test(function) cmocka_unit_test_setup_teardown(function, setup, stage_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        stage_test(a_statefulset_becomes_a_neoset_and_back_without_a_restart),
        stage_test(after_its_first_rollout_there_is_no_way_back),
        stage_test(what_changed_since_goes_back_with_it),
        stage_test(what_cannot_be_carried_over_is_named_and_nothing_is_written),
        stage_test(wrong_words_name_the_right_ones),
        stage_test(without_a_controller_the_statefulset_keeps_its_pods),
        stage_test(who_asks_again_in_a_gap_is_told_where_it_stands_and_how_to_go_on),
        stage_test(what_still_names_the_statefulset_that_is_gone_names_it_no_more),
        stage_test(a_statefulset_that_goes_with_its_pods_is_an_alarm),
        stage_test(a_statefulset_that_changes_meanwhile_is_followed),
        cmocka_unit_test_setup_teardown(pods_that_were_looked_at_long_ago_are_looked_at_again,
                                        setup_with_late_proofs, stage_teardown),
        stage_test(a_neoset_that_was_there_before_is_not_touched),
        stage_test(killed_at_any_edge_it_is_gone_on_with),
    };
    return cmocka_run_group_tests_name("adopt", tests, NULL, NULL);
}
