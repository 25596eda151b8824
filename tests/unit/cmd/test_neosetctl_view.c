/* SPDX-License-Identifier: Apache-2.0
 *
 * What neosetctl makes of the server's objects and of the controller's journal: pods and what they wait for,
 * the next command, the reports. */
#include "set_objects.h"

#include "cmd/neosetctl/report.h"

static void says_what_a_pod_waits_for(void **state)
{
    (void)state;
    static const struct {
        const char *metadata, *status, *wanted;
        bool is_trouble;
    } table[] = {
        {"", READY_POD, "", false},
        {",'deletionTimestamp':'2026-11-30T07:58:00Z'", READY_POD,
         "terminating, for 2m00s beyond its grace period", false},
        {"", "'phase':'Failed','reason':'Evicted','message':'The node was low on memory.'",
         "Failed: Evicted: The node was low on memory.", true},
        {"",
         "'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False','reason':'Unschedulable',"
         "'message':'0/3 nodes are available'}]",
         "no node for it: Unschedulable: 0/3 nodes are available", true},
        {"",
         "'phase':'Running','containerStatuses':[{'name':'mysql','state':{'waiting':{'reason':'"
         "ImagePullBackOff',"
         "'message':'Back-off pulling image\\nsecond line'}}}]",
         "container mysql: ImagePullBackOff: Back-off pulling image", true},
        {"",
         "'phase':'Pending','containerStatuses':[{'name':'mysql','state':{'waiting':{'reason':'"
         "ContainerCreating'}}}]",
         "container mysql: ContainerCreating", false},
        {"",
         "'phase':'Running','containerStatuses':[{'name':'mysql','state':{'terminated':{'exitCode':137,"
         "'reason':'OOMKilled'}}}]",
         "container mysql ended with exit code 137: OOMKilled", true},
        {"",
         "'phase':'Running','containerStatuses':[{'name':'mysql','ready':false,'started':true,'state':{'"
         "running':{}}}]",
         "container mysql runs and is not ready yet", false},
        {"",
         "'phase':'Running','containerStatuses':[{'name':'mysql','ready':false,'started':false,'state':{'"
         "running':{}}}]",
         "container mysql runs and is not started yet", false},
        {"",
         "'phase':'Running','initContainerStatuses':[{'name':'init','state':{'terminated':{'exitCode':0}}}],"
         "'containerStatuses':[{'name':'mysql','ready':true,'state':{'running':{}}}],"
         "'conditions':[{'type':'apps.neo.io/"
         "in-place-ready','status':'False','reason':'Updating','message':'step x'}]",
         "its gate is closed: Updating: step x", false},
        {"",
         "'phase':'Running','initContainerStatuses':[{'name':'init','state':{'terminated':{'exitCode':2,"
         "'reason':'Error'}}}]",
         "container init ended with exit code 2: Error", true},
        {"",
         "'phase':'Running','conditions':[{'type':'Ready','status':'False','reason':'ReadinessGatesNotReady'}"
         "]",
         "not ready: ReadinessGatesNotReady", false},
        {"", "", "not ready yet", false},
    };
    CLEANUP_JSON cJSON *object = set_of("'partition':0", ROLLING);
    struct set_view set;
    set_view_make(object, &set);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_JSON cJSON *pods = json_new_array();
        json_append_item(pods, pod_of(2, "new", "mysql:8.1", table[i].metadata, table[i].status));
        struct pod_views views;
        pod_views_make(&set, pods, NOW_US, &views);
        assert_int_equal(views.count, 3);
        assert_string_equal(views.items[0].name, "mysql-2");
        assert_string_equal(views.items[0].waits_for, table[i].wanted);
        assert_int_equal(views.items[0].is_trouble, table[i].is_trouble);
        assert_true(views.items[1].is_missing);
        assert_string_equal(views.items[2].name, "mysql-0");
        pod_views_done(&views);
    }
}

static void says_why_an_old_pod_is_still_old(void **state)
{
    (void)state;
    static const struct {
        const char *strategy, *wanted;
    } table[] = {
        {"'partition':2", "held back by partition 2"},
        {"'partition':0,'pause':true", "to be updated; the set is paused"},
        {"'partition':0", "its turn comes when stage 1 is done"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_JSON cJSON *object = set_of(table[i].strategy, ROLLING);
        CLEANUP_JSON cJSON *pods = three_pods(READY_POD);
        struct set_view set;
        struct pod_views views;
        set_view_make(object, &set);
        pod_views_make(&set, pods, NOW_US, &views);
        assert_string_equal(views.items[2].waits_for, table[i].wanted);
        pod_views_done(&views);
    }
}

static void a_pod_that_is_ready_and_not_proven_is_waited_for(void **state)
{
    (void)state;
    static const struct {
        const char *done, *waits_for, *next;
    } table[] = {
        {",'doneOrdinals':[2,1]", "", "kubectl patch neo/mysql -n prod"},
        {",'doneOrdinals':[2]", "ready; it must stay so for some seconds to count as done",
         "neosetctl status mysql -n prod"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_FREE char *status = xasprintf("%s%s", ROLLING, table[i].done);
        CLEANUP_JSON cJSON *object = set_of("'partition':1", status);
        CLEANUP_JSON cJSON *pods = three_pods(READY_POD);
        struct set_view set;
        struct pod_views views;
        set_view_make(object, &set);
        set.updated = 2;
        pod_views_make(&set, pods, NOW_US, &views);
        assert_string_equal(views.items[1].waits_for, table[i].waits_for);
        CLEANUP_FREE char *next = set_view_next(&set, &views, NULL);
        assert_true(str_starts_with(next, table[i].next));
        pod_views_done(&views);
    }
}

static void a_pod_beyond_the_wanted_ones_is_to_be_deleted(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *object = set_of("'partition':0", ROLLING ",'doneOrdinals':[]");
    CLEANUP_JSON cJSON *pods = three_pods(READY_POD);
    struct set_view set;
    struct pod_views views;
    set_view_make(object, &set);
    set.wanted = 2;
    pod_views_make(&set, pods, NOW_US, &views);
    assert_string_equal(views.items[0].waits_for, "not one of the 2 wanted: to be deleted");
    pod_views_done(&views);
}

static void pods_of_others_are_not_shown(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *object = set_of("'partition':0", ROLLING);
    CLEANUP_JSON cJSON *pods = three_pods(READY_POD);
    json_append_item(pods,
                     tree_of("{'metadata':{'name':'mysql-9','ownerReferences':[{'kind':'NeoSet','uid':'u2',"
                             "'controller':true}]}}"));
    json_append_item(pods, tree_of("{'metadata':{'name':'orphan'}}"));
    json_append_item(pods, tree_of("{}"));
    struct set_view set;
    struct pod_views views;
    set_view_make(object, &set);
    pod_views_make(&set, pods, NOW_US, &views);
    assert_int_equal(views.count, 3);
    pod_views_done(&views);
}

static void names_the_command_that_helps(void **state)
{
    (void)state;
    static const char broken[] = "'phase':'Running','containerStatuses':[{'name':'mysql','state':{'waiting':{"
                                 "'reason':'CrashLoopBackOff'}}}]";
    static const struct {
        const char *strategy, *status, *pod, *wanted;
    } table[] = {
        {"", "", READY_POD, "kubectl get lease -A"},
        {"", "'observedGeneration':1,'phase':'Completed'", READY_POD, "kubectl get lease -A"},
        {"'pause':true", ROLLING, broken, "neosetctl resume mysql -n prod"},
        {"", ROLLING, broken, "kubectl describe pod mysql-1 -n prod"},
        {"", ROLLING, READY_POD, "neosetctl status mysql -n prod"},
        {"'partition':2", ROLLING, READY_POD,
         "kubectl patch neo/mysql -n prod --type merge -p "
         "'{\"spec\":{\"updateStrategy\":{\"partition\":0}}}'"},
        {"", COMPLETED, READY_POD, "neosetctl history mysql -n prod"},
        {"", COMPLETED, "'phase':'Running'", "neosetctl status mysql -n prod"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_JSON cJSON *object = set_of(table[i].strategy, table[i].status);
        CLEANUP_JSON cJSON *pods = three_pods(table[i].pod);
        struct set_view set;
        struct pod_views views;
        set_view_make(object, &set);
        pod_views_make(&set, pods, NOW_US, &views);
        CLEANUP_FREE char *next = set_view_next(&set, &views, NULL);
        if (!str_starts_with(next, table[i].wanted))
            fail_msg("%zu: %s", i, next);
        pod_views_done(&views);
    }
}

static void malformed_objects_are_shown_as_far_as_they_go(void **state)
{
    (void)state;
    static const char *const objects[] = {
        "{}",
        "[]",
        "null",
        "{'metadata':[],'spec':7,'status':'x'}",
        "{'metadata':{'name':7},'spec':{'replicas':'three','updateStrategy':[]},'status':{'phase':{}}}",
        "{'metadata':{'name':7},'status':{'phase':{},'conditions':{}}}",
        "{'metadata':{'uid':'u1','name':'x'},'spec':{'replicas':-5,'selector':7}}",
        "{'metadata':{'uid':'u1','name':'x'},'spec':{'replicas':2000000000}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
        CLEANUP_JSON cJSON *object = tree_of("%s", objects[i]);
        CLEANUP_JSON cJSON *pods =
            tree_of("[{},7,{'metadata':{'name':'x','ownerReferences':[{'uid':'u1','controller':"
                    "true}]},'spec':[],'status':[]}]");
        struct set_view set;
        struct pod_views views;
        struct revision_views revisions;
        set_view_make(object, &set);
        pod_views_make(&set, pods, NOW_US, &views);
        revision_views_make(&set, pods, &views, &revisions);
        struct out out;
        out_init(&out, -1);
        struct sheet_look look = {.format = SHEET_TABLE, .columns = 100};
        assert_int_equal(ctl_report_status(&out, &look, &set, &views, NOW_US, NULL, NULL), 0);
        ctl_report_history(&out, &look, &set, &revisions, NOW_US);
        assert_int_equal(ctl_report_why(&out, &look, &set, &views, NOW_US, NULL, NULL), 0);
        out_done(&out);
        revision_views_done(&revisions);
        pod_views_done(&views);
        free(set_view_selector(object));
    }
}

/* --- reports
 * ------------------------------------------------------------------------------------------------ */

static void expect_report(struct history *history, const char *name)
{
    assert_int_equal(out_flush(&history->out, NULL), 0);
    CLEANUP_FREE char *path = xasprintf("../neosetctl/%s", name);
    expect_golden(history, history_take(history), path);
}

static void reports_are_as_agreed(void **state)
{
    struct history *history = *state;
    static const char broken[] = "'phase':'Running','containerStatuses':[{'name':'mysql','state':{'waiting':{"
                                 "'reason':'ImagePullBackOff','message':'manifest \\u001b[31munknown'}}}]";
    CLEANUP_JSON cJSON *object = set_of("'partition':0,'maxUnavailable':1", ROLLING);
    CLEANUP_JSON cJSON *sets = json_new_array();
    json_append_item(sets, json_copy(object));
    json_append_item(sets, set_of("", COMPLETED));
    CLEANUP_JSON cJSON *pods = three_pods(broken);
    CLEANUP_JSON cJSON *objects = json_new_array();
    for (int i = 1; i <= 2; i++)
        json_append_item(
            objects,
            tree_of("{'metadata':{'name':'mysql-%s','creationTimestamp':'2026-11-30T0%d:00:00Z',%s},"
                    "'revision':%d,'data':{'spec':{'template':{'spec':{'containers':["
                    "{'name':'mysql','image':'mysql:8.%d'},{'name':'exporter','image':'exporter:2'}]}}}}}",
                    i == 1 ? "old" : "new", 4 + i, owner, i, i - 1));
    struct set_view set;
    struct pod_views views;
    struct revision_views revisions;
    set_view_make(object, &set);
    pod_views_make(&set, pods, NOW_US, &views);
    revision_views_make(&set, objects, &views, &revisions);
    static const struct {
        const char *name;
        enum sheet_format format;
    } formats[] = {{"table", SHEET_TABLE}, {"json", SHEET_JSON}, {"csv", SHEET_CSV}, {"name", SHEET_NAME}};
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
        struct sheet_look look = {.format = formats[i].format, .columns = 100};
        CLEANUP_FREE char *get = xasprintf("get.%s", formats[i].name);
        CLEANUP_FREE char *status = xasprintf("status.%s", formats[i].name);
        CLEANUP_FREE char *list = xasprintf("history.%s", formats[i].name);
        CLEANUP_FREE char *why = xasprintf("why.%s", formats[i].name);
        assert_int_equal(ctl_report_sets(&history->out, &look, sets, NOW_US, true), 2);
        expect_report(history, get);
        assert_int_equal(ctl_report_status(&history->out, &look, &set, &views, NOW_US, NULL, NULL), 0);
        expect_report(history, status);
        ctl_report_history(&history->out, &look, &set, &revisions, NOW_US);
        expect_report(history, list);
        assert_int_equal(ctl_report_why(&history->out, &look, &set, &views, NOW_US, NULL, NULL), 0);
        expect_report(history, why);
    }
    revision_views_done(&revisions);
    pod_views_done(&views);
}

static void why_tells_what_the_journal_knows(void **state)
{
    struct history *history = *state;
    CLEANUP_JSON cJSON *object = tree_of("{'metadata':{'name':'clickhouse','namespace':'prod','uid':'u1','"
                                         "generation':1},'spec':{'replicas':0},"
                                         "'status':{'observedGeneration':1,'phase':'RollingOut'}}");
    struct set_view set;
    struct pod_views views = {0};
    set_view_make(object, &set);
    struct sheet_look look = {.format = SHEET_TABLE, .columns = 100};
    assert_int_equal(ctl_report_why(&history->out, &look, &set, &views, NOW_US, &history->audit, NULL), 0);
    expect_report(history, "why-journal.table");
}

#define history_test(function) cmocka_unit_test_setup_teardown(function, history_make, history_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_a_pod_waits_for),
        cmocka_unit_test(says_why_an_old_pod_is_still_old),
        cmocka_unit_test(a_pod_that_is_ready_and_not_proven_is_waited_for),
        cmocka_unit_test(a_pod_beyond_the_wanted_ones_is_to_be_deleted),
        cmocka_unit_test(pods_of_others_are_not_shown),
        cmocka_unit_test(names_the_command_that_helps),
        cmocka_unit_test(malformed_objects_are_shown_as_far_as_they_go),
        history_test(reports_are_as_agreed),
        history_test(why_tells_what_the_journal_knows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
