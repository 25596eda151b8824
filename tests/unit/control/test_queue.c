/* SPDX-License-Identifier: Apache-2.0 */
#include "control/loop.h"
#include "control/queue.h"

#include "../../lib/journal_fixture.h"

#include "base/time_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void assert_takes(struct queue *queue, int64_t now_us, const char *wanted)
{
    CLEANUP_FREE char *key = queue_take_due(queue, now_us);
    if (wanted)
        assert_string_equal(key, wanted);
    else
        assert_null(key);
}

static void keys_come_when_they_are_due_and_once(void **state)
{
    (void)state;
    struct queue *queue = queue_make();
    assert_true(queue_next_us(queue) == INT64_MAX);
    queue_add(queue, "b", 20);
    queue_add(queue, "a", 10);
    queue_add(queue, "b", 30);
    queue_add(queue, "c", 10);
    assert_int_equal(queue_count(queue), 3);
    assert_int_equal(queue_next_us(queue), 10);
    assert_takes(queue, 9, NULL);
    assert_takes(queue, 10, "a");
    assert_takes(queue, 10, "c");
    assert_takes(queue, 19, NULL);
    assert_takes(queue, 25, "b");
    assert_takes(queue, 100, NULL);
    queue_free(queue);
}

static void the_earlier_time_counts(void **state)
{
    (void)state;
    struct queue *queue = queue_make();
    queue_add(queue, "x", 50);
    queue_add(queue, "y", 40);
    queue_add(queue, "x", 5);
    assert_takes(queue, 5, "x");
    queue_remove(queue, "y");
    queue_remove(queue, "nobody");
    assert_int_equal(queue_count(queue), 0);
    queue_free(queue);
}

static void a_thousand_keys_come_in_order(void **state)
{
    (void)state;
    struct queue *queue = queue_make();
    for (unsigned i = 0; i < 1000; i++) {
        char key[16];
        snprintf(key, sizeof(key), "%u", i);
        queue_add(queue, key, (i * 7919) % 1000);
        if (i % 3 == 0)
            queue_remove(queue, key);
    }
    int64_t before = -1;
    size_t count = 0;
    for (;;) {
        int64_t next = queue_next_us(queue);
        CLEANUP_FREE char *key = queue_take_due(queue, INT64_MAX - 1);
        if (!key)
            break;
        assert_true(next >= before);
        before = next;
        count++;
    }
    assert_int_equal(count, 666);
    queue_free(queue);
}

struct handled {
    struct loop *loop;
    struct journal_fixture *journal;
    char order[256];
    bool wakes_itself;
    size_t room; /* bytes of order: no more keys after that */
};

static void handle(void *context, const char *key)
{
    struct handled *handled = context;
    size_t length = strlen(handled->order);
    snprintf(handled->order + length, sizeof(handled->order) - length, "%s ", key);
    if (handled->journal)
        journal_fixture_note(handled->journal, key);
    if (handled->wakes_itself && length < 200)
        loop_wake(handled->loop, key);
}

static void a_turn_handles_each_key_once_and_commits_once(void **state)
{
    (void)state;
    struct journal_fixture journal;
    journal_fixture_setup(&journal);
    journal_fixture_open(&journal);
    struct handled handled = {.journal = &journal};
    handled.loop = loop_make(journal.env, journal.journal, handle, &handled);
    struct journal_metrics before, after;
    journal_metrics_get(journal.journal, &before);
    loop_wake(handled.loop, "a");
    loop_wake(handled.loop, "b");
    loop_wake(handled.loop, "a");
    assert_string_equal(handled.order, "");
    env_sim_run_for(journal.env, 0);
    assert_string_equal(handled.order, "a b ");
    env_sim_run_for(journal.env, US_PER_S);
    journal_metrics_get(journal.journal, &after);
    assert_int_equal(after.commits - before.commits, 1);
    loop_free(handled.loop);
    journal_fixture_teardown(&journal);
}

static void a_key_that_wakes_itself_does_not_starve_the_others(void **state)
{
    (void)state;
    struct journal_fixture journal;
    journal_fixture_setup(&journal);
    journal_fixture_open(&journal);
    struct handled handled = {.wakes_itself = true};
    handled.loop = loop_make(journal.env, journal.journal, handle, &handled);
    loop_wake(handled.loop, "a");
    loop_wake(handled.loop, "b");
    loop_wake_at(handled.loop, "later", env_boot_us(journal.env) + US_PER_S);
    assert_true(env_sim_step(journal.env));
    assert_string_equal(handled.order, "a b ");
    while (strlen(handled.order) < 200)
        assert_true(env_sim_step(journal.env));
    assert_null(strstr(handled.order, "later"));
    handled.wakes_itself = false;
    handled.order[0] = '\0';
    env_sim_run_for(journal.env, 2 * US_PER_S);
    assert_non_null(strstr(handled.order, "later"));
    assert_int_equal(loop_waiting(handled.loop), 0);
    loop_free(handled.loop);
    journal_fixture_teardown(&journal);
}

static bool has_room(void *context)
{
    const struct handled *handled = context;
    return strlen(handled->order) < handled->room;
}

static void keys_wait_for_room(void **state)
{
    (void)state;
    struct journal_fixture journal;
    journal_fixture_setup(&journal);
    journal_fixture_open(&journal);
    struct handled handled = {.room = strlen("a b ")};
    handled.loop = loop_make(journal.env, journal.journal, handle, &handled);
    loop_set_room(handled.loop, has_room);
    loop_wake(handled.loop, "a");
    loop_wake(handled.loop, "b");
    loop_wake(handled.loop, "c");
    env_sim_run_for(journal.env, US_PER_S);
    assert_string_equal(handled.order, "a b ");
    assert_int_equal(loop_waiting(handled.loop), 1);
    /* Nothing runs idle meanwhile, and another wake does not let it pass. */
    loop_wake(handled.loop, "a");
    assert_int_equal(env_sim_next_us(journal.env), INT64_MAX);
    handled.room = SIZE_MAX;
    loop_go_on(handled.loop);
    env_sim_run_for(journal.env, 0);
    assert_string_equal(handled.order, "a b c a ");
    loop_free(handled.loop);
    journal_fixture_teardown(&journal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_come_when_they_are_due_and_once),
        cmocka_unit_test(the_earlier_time_counts),
        cmocka_unit_test(a_thousand_keys_come_in_order),
        cmocka_unit_test(a_turn_handles_each_key_once_and_commits_once),
        cmocka_unit_test(a_key_that_wakes_itself_does_not_starve_the_others),
        cmocka_unit_test(keys_wait_for_room),
    };
    return cmocka_run_group_tests_name("queue and loop", tests, NULL, NULL);
}
