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

/* --- what was said -------------------------------------------------------------------------------------- */

#define SAID_AT_US (1700000000LL * US_PER_S) /* 2023-11-14T22:13:20Z */

static cJSON *parse(const char *text)
{
    CLEANUP_FREE char *copy = xstrdup(text);
    for (char *at = copy; (at = strchr(at, '\'')); at++)
        *at = '"';
    cJSON *tree = NULL;
    assert_int_equal(json_parse(copy, strlen(copy), &tree, NULL), 0);
    return tree;
}

static void expect_said(const char *conditions, const char *events, const char *words)
{
    CLEANUP_FREE char *text =
        xasprintf("{'metadata':{'name':'data-db-0','uid':'c1'},'status':{'conditions':[%s]}}", conditions);
    CLEANUP_FREE char *list = xasprintf("[%s]", events);
    CLEANUP_JSON cJSON *claim = parse(text);
    CLEANUP_JSON cJSON *tree = parse(list);
    CLEANUP_FREE char *said = growth_said(claim, tree, SAID_AT_US);
    if (words ? !str_equal(said, words) : said != NULL)
        fail_msg("\"%s\", not \"%s\"", said ? said : "(nothing)", words ? words : "(nothing)");
}

#define EVENT(reason, uid, last, message)                                                                    \
    "{'reason':'" reason "','involvedObject':{'uid':'" uid "'},'lastTimestamp':'" last                       \
    "','message':'" message "'}"
#define FAILED(last, message) EVENT("VolumeResizeFailed", "c1", last, message)

static void what_the_resizer_said_last_is_told(void **state)
{
    (void)state;
    expect_said("", "", NULL);
    expect_said("", FAILED("2023-11-14T22:13:00Z", "pool is full"), "pool is full");
    expect_said("", FAILED("2023-11-14T22:13:00Z", "new") "," FAILED("2023-11-14T22:10:00Z", "old"), "new");
    expect_said("", FAILED("2023-11-14T22:10:00Z", "old") "," FAILED("2023-11-14T22:13:00Z", "new"), "new");
    /* Of a growth before; of another claim of that name; of something else. */
    expect_said("", FAILED("2023-11-14T21:40:00Z", "long ago"), NULL);
    expect_said("", EVENT("VolumeResizeFailed", "c0", "2023-11-14T22:13:00Z", "another"), NULL);
    expect_said("", EVENT("Resizing", "c1", "2023-11-14T22:13:00Z", "begins"), NULL);
    expect_said("",
                "{'reason':'VolumeResizeFailed','involvedObject':{'uid':'c1'},'eventTime':"
                "'2023-11-14T22:13:00.5Z','message':'newer kind'}",
                "newer kind");
    expect_said("{'type':'ControllerResizeError','status':'True','message':'cannot be'}",
                FAILED("2023-11-14T22:13:00Z", "pool is full"), "cannot be");
    expect_said("{'type':'NodeResizeError','status':'False','message':'was'}", "", NULL);
    expect_said("", FAILED("2023-11-14T22:13:00Z", "first line\\nsecond"), "first line");
}

static void what_is_said_at_length_is_cut(void **state)
{
    (void)state;
    struct buf message = BUF_INIT(4096);
    for (int i = 0; i < 200; i++)
        buf_add_text(&message, "\xC3\xA9"); /* two bytes each, 256 is between two */
    CLEANUP_FREE char *event = xasprintf("{'reason':'VolumeResizeFailed','involvedObject':{'uid':'c1'},"
                                         "'lastTimestamp':'2023-11-14T22:13:00Z','message':'x%s'}",
                                         buf_text(&message));
    CLEANUP_FREE char *words = xasprintf("x%.254s", buf_text(&message));
    expect_said("", event, words);
    buf_done(&message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_resizer_said_last_is_told),
        cmocka_unit_test(what_is_said_at_length_is_cut),
        cmocka_unit_test(each_state_of_a_growth_is_told),
        cmocka_unit_test(silence_is_no_answer),
    };
    return cmocka_run_group_tests_name("grow", tests, NULL, NULL);
}
