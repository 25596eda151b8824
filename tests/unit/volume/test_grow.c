/* SPDX-License-Identifier: Apache-2.0
 *
 * How far a claim is that was asked to grow: what a real node, a real storage driver and external-resizer
 * went through, one state a row, in their order (the time of each state, and what people are told). */
#include "base/time_text.h"
#include "volume/grow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define CONTROLLER_ERROR "ControllerResizeError"
#define NODE_ERROR "NodeResizeError"
#define PENDING "FileSystemResizePending"

static const struct row {
    const char *trace;
    const char *request, *capacity, *allocated; /* NULL: absent */
    const char *state;                          /* allocatedResourceStatuses.storage */
    const char *condition;                      /* one that is True besides Resizing */
    int64_t since_s;
    enum growth growth;
} rows[] = {
    {"online", "1Gi", "1Gi", NULL, NULL, NULL, 0, GROWTH_DONE},
    {"online", "2Gi", "1Gi", NULL, NULL, NULL, 0, GROWTH_UNANSWERED},
    {"online", "2Gi", "1Gi", "2Gi", "ControllerResizeInProgress", NULL, 0, GROWTH_CONTROLLER},
    {"online", "2Gi", "1Gi", "2Gi", "NodeResizePending", PENDING, 0, GROWTH_NODE},
    {"online", "2Gi", "1Gi", "2Gi", "NodeResizeInProgress", PENDING, 5, GROWTH_NODE},
    {"online", "2Gi", "2Gi", "2Gi", NULL, NULL, 5, GROWTH_DONE},
    {"infeasible", "10Gi", "2Gi", "2Gi", NULL, NULL, 0, GROWTH_UNANSWERED},
    {"infeasible", "10Gi", "2Gi", "10Gi", "ControllerResizeInProgress", NULL, 0, GROWTH_CONTROLLER},
    {"infeasible", "10Gi", "2Gi", "10Gi", "ControllerResizeInfeasible", CONTROLLER_ERROR, 0,
     GROWTH_INFEASIBLE},
    /* Stale: of the size that is no longer asked for. */
    {"infeasible, lowered", "3Gi", "2Gi", "10Gi", "ControllerResizeInfeasible", CONTROLLER_ERROR, 0,
     GROWTH_UNANSWERED},
    {"infeasible, lowered", "3Gi", "2Gi", "3Gi", "ControllerResizeInProgress", NULL, 0, GROWTH_CONTROLLER},
    {"infeasible, lowered", "3Gi", "3Gi", "3Gi", NULL, NULL, 5, GROWTH_DONE},
    /* Nothing but events. */
    {"pool full", "10Gi", "2Gi", "10Gi", "ControllerResizeInProgress", NULL, 119, GROWTH_CONTROLLER},
    {"pool full", "10Gi", "2Gi", "10Gi", "ControllerResizeInProgress", NULL, 121, GROWTH_STUCK},
    {"in use", "2Gi", "1Gi", "2Gi", "ControllerResizeInProgress", CONTROLLER_ERROR, 0, GROWTH_INFEASIBLE},
    {"node infeasible", "3Gi", "2Gi", "3Gi", "NodeResizeInfeasible", NODE_ERROR, 0, GROWTH_NODE_FAILED},
    {"node infeasible", "3Gi", "2Gi", "3Gi", "NodeResizePending", NODE_ERROR, 0, GROWTH_NODE_FAILED},
    {"an error of an earlier try", "3Gi", "2Gi", "3Gi", "NodeResizePending", CONTROLLER_ERROR, 0,
     GROWTH_NODE},
    {"node transient", "4Gi", "3Gi", "4Gi", "NodeResizeInProgress", NODE_ERROR, 0, GROWTH_NODE_FAILED},
    {"no resizer", "2Gi", "1Gi", NULL, NULL, NULL, 29, GROWTH_UNANSWERED},
    {"no resizer", "2Gi", "1Gi", NULL, NULL, NULL, 31, GROWTH_NOBODY},
    {"scaled away", "4500Mi", "4Gi", "4500Mi", "NodeResizePending", PENDING, 900, GROWTH_NODE},
    {"rounded up by the driver", "15000Mi", "16Gi", "15000Mi", NULL, NULL, 0, GROWTH_DONE},
    {"another spelling", "2Gi", "1Gi", "2048Mi", "ControllerResizeInfeasible", NULL, 0, GROWTH_INFEASIBLE},
    {"older servers have no states", "2Gi", "1Gi", "2Gi", NULL, PENDING, 0, GROWTH_NODE},
};

static void put_size(cJSON *parent, const char *key, const char *size)
{
    if (size)
        json_add_str(json_add_object(parent, key), "storage", size);
}

static cJSON *claim_of(const struct row *row)
{
    cJSON *claim = growth_patch(row->request);
    cJSON *status = json_add_object(claim, "status");
    put_size(status, "capacity", row->capacity);
    put_size(status, "allocatedResources", row->allocated);
    put_size(status, "allocatedResourceStatuses", row->state);
    cJSON *conditions = json_add_array(status, "conditions");
    const char *types[] = {"Resizing", row->condition};
    for (size_t i = 0; i < ARRAY_SIZE(types) && types[i]; i++) {
        cJSON *condition = json_new_object();
        json_add_str(condition, "type", types[i]);
        json_add_str(condition, "status", "True");
        json_append_item(conditions, condition);
    }
    return claim;
}

/* Trace b3, trace b4, trace b7, trace b10, trace b11. */
static void each_state_of_a_growth_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_JSON cJSON *claim = claim_of(&rows[i]);
        enum growth growth = growth_of(claim, rows[i].since_s * US_PER_S);
        if (growth != rows[i].growth)
            fail_msg("row %zu, %s: %s, not %s", i, rows[i].trace, growth_text(growth),
                     growth_text(rows[i].growth));
    }
}

/* Only what a storage controller has said, or a node after it, lets the others follow. */
static void silence_is_no_answer(void **state)
{
    (void)state;
    assert_false(growth_is_answered(GROWTH_UNANSWERED));
    assert_false(growth_is_answered(GROWTH_CONTROLLER));
    assert_false(growth_is_answered(GROWTH_NOBODY));
    assert_false(growth_is_answered(GROWTH_STUCK));
    assert_true(growth_is_answered(GROWTH_NODE));
    assert_true(growth_is_answered(GROWTH_DONE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_state_of_a_growth_is_told),
        cmocka_unit_test(silence_is_no_answer),
    };
    return cmocka_run_group_tests_name("grow", tests, NULL, NULL);
}
