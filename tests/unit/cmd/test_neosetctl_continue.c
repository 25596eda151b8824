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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(of_several_that_cannot_be_ended_each_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(those_that_the_time_was_not_enough_for_are_counted, setup, teardown),
    };
    return cmocka_run_group_tests_name("continue", tests, NULL, NULL);
}
