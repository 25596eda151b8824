/* SPDX-License-Identifier: Apache-2.0
 *
 * neosetctl resize converge for people who may do all but one thing, each thing in turn, and when what was
 * proven is refused after all: a sentence that names the object and the way out, and nothing is lost. */
#include "converge_stage.h"

#define DENIED(verb, resource, user) "403,verb=" verb ",resource=" resource ",user=" user ",times=0;"
/* The claims are probed first: three dry runs, then three patches. */
#define LATER(verb, resource, nth, user)                                                                     \
    "403,verb=" verb ",resource=" resource ",nth=" nth ",user=" user ",times=0;"

static int setup(void **state)
{
    static const char *const options[] = {
        "--faults",
        DENIED("get", "statefulsets", "u-get-set") DENIED("list", "pods", "u-list-pods")
            DENIED("list", "persistentvolumeclaims", "u-list-claims") DENIED("list", "controllerrevisions",
                                                                             "u-list-revisions")
                DENIED("list", "statefulsets", "u-list-sets") DENIED("patch", "statefulsets", "u-patch-set")
                    DENIED("create", "statefulsets", "u-create-set")
                        DENIED("delete", "statefulsets", "u-delete-set")
                            DENIED("patch", "persistentvolumeclaims", "u-patch-claim")
                                LATER("patch", "persistentvolumeclaims", "5", "u-second-claim")
                                    DENIED("create", "controllerrevisions", "u-keep")
                                        LATER("create", "controllerrevisions", "2", "u-keep-later")
                                            DENIED("patch", "controllerrevisions", "u-note")
                                                DENIED("patch", "pods", "u-release")
                                                    LATER("patch", "statefulsets", "3", "u-managers")
                                                        DENIED("delete", "controllerrevisions", "u-drop"),
        NULL};
    return setup_with(state, 1, options);
}

static int teardown(void **state)
{
    return stage_teardown(state);
}

#define CAN_I(what) "`kubectl auth can-i " what " -n default` tells"
#define GOES_ON "nothing is lost: when that is mended, `neosetctl continue -n default` goes on"

/* In the order in which they get further and further. */
static const struct {
    const char *user;
    int exit_code;
    const char *names; /* the object, or the kind of those */
    const char *way_out;
} denied[] = {
    {"u-get-set", 2, "StatefulSet db in namespace default", "kubectl auth can-i"},
    {"u-list-pods", 2, "Pods in namespace default", "kubectl auth can-i"},
    {"u-list-claims", 2, "PersistentVolumeClaims in namespace default", "kubectl auth can-i"},
    {"u-list-revisions", 2, "ControllerRevisions in namespace default", "kubectl auth can-i"},
    {"u-list-sets", 2, "StatefulSets in namespace default", "kubectl auth can-i"},
    {"u-patch-set", 2, "StatefulSet db", CAN_I("patch statefulsets.apps")},
    {"u-create-set", 2, "StatefulSet db", CAN_I("create statefulsets.apps")},
    {"u-delete-set", 2, "StatefulSet db", CAN_I("delete statefulsets.apps")},
    {"u-keep", 2, "StatefulSet db", CAN_I("create controllerrevisions.apps")},
    {"u-note", 2, "StatefulSet db", CAN_I("patch controllerrevisions.apps")},
    {"u-drop", 2, "StatefulSet db", CAN_I("delete controllerrevisions.apps")},
    {"u-release", 2, "StatefulSet db", CAN_I("patch pods")},
    {"u-patch-claim", 2, "claim data-db-0", "you need `patch persistentvolumeclaims`"},
    {"u-second-claim", 1, "claim data-db-1 may not grow from 1Gi to 2Gi",
     "1 claims are grown and stay so; StatefulSet db is as it was: mend that, and run it again"},
    /* Taken away meanwhile. */
    {"u-keep-later", 1, "StatefulSet db", CAN_I("create controllerrevisions.apps") "; " GOES_ON},
    {"u-managers", 1, "StatefulSet db", CAN_I("patch statefulsets.apps") "; " GOES_ON},
    {"u-drop", 1, "StatefulSet db", CAN_I("delete controllerrevisions.apps") "; " GOES_ON},
};

static bool pods_are_owned(const struct stage *stage)
{
    return count_owned(stage, "StatefulSet") == REPLICAS;
}

static void what_one_may_not_is_told_and_nothing_is_lost(void **state)
{
    struct stage *stage = *state;
    wait_for_old_pods();
    CLEANUP_FREE char *pods = pods_text(stage, false);
    CLEANUP_FREE char *before = set_text(stage);
    for (size_t i = 0; i < ARRAY_SIZE(denied); i++) {
        CLEANUP_FREE char *more = xasprintf(IN_TIME " --as %s", denied[i].user);
        expect_resize(stage, "converge", more, denied[i].exit_code, NULL, denied[i].names);
        if (!strstr(stage->run.errors, denied[i].way_out))
            fail_msg("%s: no way out in: %s", denied[i].user, stage->run.errors);
        /* Who is stopped right after the set was made again does not see it take its pods over. */
        wait_until(stage, "the pods are the set's", pods_are_owned);
        assert_pods(stage, pods, "StatefulSet");
        CLEANUP_FREE char *claims = claims_text(stage);
        if (denied[i].exit_code == 2) { /* refused: nothing was written */
            CLEANUP_FREE char *after = set_text(stage);
            assert_string_equal(after, before);
            assert_string_equal(claims, "data-db-0 1Gi\ndata-db-1 1Gi\ndata-db-2 1Gi\n");
        }
    }
    expect_run(stage, "continue" IN_TIME, 0, NULL, NULL);
    assert_converged(stage, pods, "2Gi");
    expect_resize(stage, "converge", IN_TIME, 0, "nothing to converge", NULL);
    assert_history(stage);
}

/* It was there when the plan was made. */
static void a_class_that_is_gone_since_the_plan_is_named(void **state)
{
    struct stage *stage = *state;
    wait_for_old_pods();
    CLEANUP_FREE char *before = set_text(stage);
    expect_resize(stage, "plan", "", 0, "data-db-1  std    1Gi   2Gi", NULL);
    stage_write(stage, "DELETE", CLASSES "/std", "{}");
    expect_resize(stage, "converge", IN_TIME, 2, NULL, "data-db-0");
    assert_non_null(strstr(stage->run.errors, "std"));
    CLEANUP_FREE char *after = set_text(stage);
    CLEANUP_FREE char *claims = claims_text(stage);
    assert_string_equal(after, before);
    assert_string_equal(claims, "data-db-0 1Gi\ndata-db-1 1Gi\ndata-db-2 1Gi\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_one_may_not_is_told_and_nothing_is_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(a_class_that_is_gone_since_the_plan_is_named, setup, teardown),
    };
    return cmocka_run_group_tests_name("converge, denied", tests, NULL, NULL);
}
