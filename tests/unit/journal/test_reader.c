/* SPDX-License-Identifier: Apache-2.0
 *
 * The read side: filters, records, snapshots; beside a living writer. */
#include "journal_fixture.h"

#include "base/time_text.h"
#include "journal/reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <sys/stat.h>

struct scene {
    struct journal_fixture fixture;
    struct journal_reader *reader;
    /* the story: a finished rollout, and an open scale in the second run */
    int64_t rollout, step, unknown_step, applied, wait, end;
    int64_t second_run, scale, open_step, doubtful_step, held_wait;
    int64_t between_us; /* wall time between the runs */
};

static void first_run(struct scene *scene)
{
    struct journal_fixture *fixture = &scene->fixture;
    journal_fixture_open(fixture);
    scene->rollout = journal_fixture_begin(fixture, "rollout");
    scene->step = journal_fixture_intent(fixture, scene->rollout, "mysql-4");
    scene->wait = journal_wait_begin(fixture->journal, scene->rollout, "ready", "Pod", "db", "mysql-4",
                                     300 * US_PER_S, "image mysql:8.1");
    journal_fixture_settle(fixture);
    env_sim_run_for(fixture->env, 10 * US_PER_S);
    scene->applied = journal_fixture_outcome(fixture, JOURNAL_APPLIED, scene->step);
    scene->unknown_step = journal_fixture_intent_with_body(fixture, scene->rollout, "mysql-3", "{}", false);
    journal_fixture_outcome(fixture, JOURNAL_UNKNOWN, scene->unknown_step);
    journal_fixture_outcome(fixture, JOURNAL_OVERTAKEN, scene->unknown_step);
    journal_wait_end(fixture->journal, scene->wait, "done");
    scene->end = journal_fixture_end(fixture, scene->rollout, "completed");
    journal_fixture_settle(fixture);
    journal_fixture_crash(fixture);
}

static void second_run(struct scene *scene)
{
    struct journal_fixture *fixture = &scene->fixture;
    env_sim_run_for(fixture->env, 3600 * US_PER_S);
    scene->between_us = env_wall_us(fixture->env);
    env_sim_run_for(fixture->env, 3600 * US_PER_S);
    journal_fixture_open(fixture);
    scene->second_run = journal_run(fixture->journal);
    scene->scale = journal_fixture_begin(fixture, "scale");
    scene->open_step = journal_fixture_intent(fixture, scene->scale, "mysql-4");
    scene->doubtful_step = journal_fixture_intent(fixture, scene->scale, "mysql-2");
    journal_fixture_outcome(fixture, JOURNAL_UNKNOWN, scene->doubtful_step);
    scene->held_wait = journal_wait_begin(fixture->journal, scene->scale, "ready", "Pod", "db", "mysql-2",
                                          60 * US_PER_S, "scaled");
    env_sim_run_for(fixture->env, 20 * US_PER_S);
    journal_wait_hold(fixture->journal, scene->held_wait, "paused");
    journal_fixture_settle(fixture);
}

static void open_reader(struct scene *scene)
{
    struct error *err = NULL;
    if (journal_reader_open(scene->fixture.path, &scene->reader, &err) < 0)
        fail_msg("%s", error_text(err));
}

static int setup(void **state)
{
    struct scene *scene = xcalloc(1, sizeof(*scene));
    journal_fixture_setup(&scene->fixture);
    first_run(scene);
    second_run(scene);
    open_reader(scene);
    *state = scene;
    return 0;
}

static int teardown(void **state)
{
    struct scene *scene = *state;
    journal_reader_close(scene->reader);
    journal_fixture_teardown(&scene->fixture);
    free(scene);
    return 0;
}

/* --- collecting ------------------------------------------------------------------------------- */

struct collected {
    char text[4096];
    int count;
    int stop_after;
    struct journal_step_record step;
    struct journal_wait_record wait;
    struct journal_run_record runs[8];
    struct journal_operation_record operation;
};

static bool add_entry(void *context, const struct journal_entry *entry)
{
    struct collected *collected = context;
    size_t length = strlen(collected->text);
    if (length < sizeof(collected->text) - 64)
        snprintf(collected->text + length, sizeof(collected->text) - length, "%s%s", length ? " " : "",
                 journal_kind_text(entry->kind));
    collected->count++;
    return collected->count != collected->stop_after;
}

static struct collected entries(struct scene *scene, struct journal_entry_filter filter)
{
    struct collected collected = {0};
    struct error *err = NULL;
    if (journal_read_entries(scene->reader, &filter, add_entry, &collected, &err) < 0)
        fail_msg("%s", error_text(err));
    return collected;
}

static bool add_operation(void *context, const struct journal_operation_record *operation)
{
    struct collected *collected = context;
    size_t length = strlen(collected->text);
    snprintf(collected->text + length, sizeof(collected->text) - length, "%s%s:%s:%d/%d", length ? " " : "",
             operation->kind, operation->outcome ? operation->outcome : "-", operation->steps,
             operation->attempts);
    collected->operation = *operation;
    collected->count++;
    return true;
}

static struct collected operations(struct scene *scene, struct journal_operation_filter filter)
{
    struct collected collected = {0};
    struct error *err = NULL;
    if (journal_read_operations(scene->reader, &filter, add_operation, &collected, &err) < 0)
        fail_msg("%s", error_text(err));
    return collected;
}

static bool add_step(void *context, const struct journal_step_record *step)
{
    struct collected *collected = context;
    size_t length = strlen(collected->text);
    snprintf(collected->text + length, sizeof(collected->text) - length, "%s%s:%s:%d%s%s", length ? " " : "",
             step->intent.name, step->has_outcome ? journal_kind_text(step->outcome.kind) : "-",
             step->attempts, step->in_flight ? ":flight" : "", step->has_body ? ":body" : "");
    collected->step = *step;
    collected->count++;
    return true;
}

static struct collected steps(struct scene *scene, struct journal_step_filter filter)
{
    struct collected collected = {0};
    struct error *err = NULL;
    if (journal_read_steps(scene->reader, &filter, add_step, &collected, &err) < 0)
        fail_msg("%s", error_text(err));
    return collected;
}

static bool add_wait(void *context, const struct journal_wait_record *wait)
{
    struct collected *collected = context;
    size_t length = strlen(collected->text);
    snprintf(collected->text + length, sizeof(collected->text) - length, "%s%s:%s:%lld/%lld%s",
             length ? " " : "", wait->begin.name, wait->outcome ? wait->outcome : "-",
             (long long)(wait->spent_us / US_PER_S), (long long)(wait->budget_us / US_PER_S),
             wait->held ? ":held" : "");
    collected->count++;
    return true;
}

static struct collected waits(struct scene *scene, struct journal_wait_filter filter)
{
    struct collected collected = {0};
    struct error *err = NULL;
    if (journal_read_waits(scene->reader, &filter, add_wait, &collected, &err) < 0)
        fail_msg("%s", error_text(err));
    return collected;
}

/* --- entries ---------------------------------------------------------------------------------- */

static void entries_come_in_order_of_seq(void **state)
{
    struct scene *scene = *state;
    assert_string_equal(
        entries(scene, (struct journal_entry_filter){0}).text,
        "start begin intent wait_begin applied intent unknown overtaken wait_end end start begin intent "
        "intent unknown wait_begin wait_hold");
}

static void entries_are_filtered_by_range_operation_kind_and_limit(void **state)
{
    struct scene *scene = *state;
    assert_string_equal(
        entries(scene, (struct journal_entry_filter){.after_seq = scene->applied, .through_seq = scene->end})
            .text,
        "intent unknown overtaken wait_end end");
    assert_string_equal(entries(scene, (struct journal_entry_filter){.operation = scene->rollout}).text,
                        "begin intent wait_begin applied intent unknown overtaken wait_end end");
    assert_string_equal(
        entries(scene, (struct journal_entry_filter){.kinds = JOURNAL_KIND_BIT(JOURNAL_START) |
                                                              JOURNAL_KIND_BIT(JOURNAL_END)})
            .text,
        "start end start");
    assert_string_equal(entries(scene, (struct journal_entry_filter){.limit = 3}).text, "start begin intent");
    assert_string_equal(entries(scene, (struct journal_entry_filter){.limit = 3, .newest_first = true}).text,
                        "wait_hold wait_begin unknown");
    assert_string_equal(
        entries(scene, (struct journal_entry_filter){.operation = scene->scale,
                                                     .kinds = JOURNAL_KIND_BIT(JOURNAL_INTENT)})
            .text,
        "intent intent");
}

static void entries_are_filtered_by_time(void **state)
{
    struct scene *scene = *state;
    assert_string_equal(entries(scene, (struct journal_entry_filter){.since_us = scene->between_us}).text,
                        "start begin intent intent unknown wait_begin wait_hold");
    assert_int_equal(entries(scene, (struct journal_entry_filter){.until_us = scene->between_us}).count, 10);
    assert_int_equal(entries(scene, (struct journal_entry_filter){.since_us = scene->between_us,
                                                                  .until_us = scene->between_us + 1})
                         .count,
                     0);
    assert_string_equal(entries(scene, (struct journal_entry_filter){.since_us = scene->between_us,
                                                                     .operation = scene->rollout})
                            .text,
                        "");
}

static void entries_are_filtered_by_what_they_name(void **state)
{
    struct scene *scene = *state;
    struct journal_entry_filter filter = {.object = "Pod", .namespace = "db", .name = "mysql-4"};
    assert_string_equal(entries(scene, filter).text, "intent wait_begin intent");
    filter.namespace = NULL;
    assert_string_equal(entries(scene, filter).text, "intent wait_begin intent");
    filter.namespace = "";
    assert_string_equal(entries(scene, filter).text, "");
    assert_string_equal(entries(scene, (struct journal_entry_filter){.name = "mysql"}).text, "begin begin");
    assert_string_equal(entries(scene, (struct journal_entry_filter){.name = "mysql", .object = "Pod"}).text,
                        "");
}

static void a_callback_that_has_enough_stops(void **state)
{
    struct scene *scene = *state;
    struct collected collected = {.stop_after = 2};
    assert_int_equal(
        journal_read_entries(scene->reader, &(struct journal_entry_filter){0}, add_entry, &collected, NULL),
        0);
    assert_string_equal(collected.text, "start begin");
}

static bool copy_kind(void *context, const struct journal_entry *entry)
{
    *(int *)context = (int)entry->kind;
    return true;
}

static void one_entry_is_found_or_explained(void **state)
{
    struct scene *scene = *state;
    int kind = -1;
    CLEANUP_ERROR struct error *err = NULL;
    assert_int_equal(journal_read_entry(scene->reader, scene->applied, copy_kind, &kind, NULL), 0);
    assert_int_equal(kind, JOURNAL_APPLIED);
    assert_int_equal(journal_read_entry(scene->reader, 9999, copy_kind, &kind, &err), -ERROR_NOT_FOUND);
    assert_non_null(strstr(error_text(err), "has no entry 9999 (the newest is 17)"));
    assert_int_equal(journal_read_entry(scene->reader, 0, copy_kind, &kind, NULL), -ERROR_NOT_FOUND);
    assert_int_equal(journal_read_entry(scene->reader, -5, copy_kind, &kind, NULL), -ERROR_NOT_FOUND);
}

/* --- operations, steps, waits, runs ----------------------------------------------------------- */

static void operations_come_newest_first_and_open_ones_are_counted(void **state)
{
    struct scene *scene = *state;
    assert_string_equal(operations(scene, (struct journal_operation_filter){0}).text,
                        "scale:-:2/3 rollout:completed:2/3");
    assert_string_equal(operations(scene, (struct journal_operation_filter){.oldest_first = true}).text,
                        "rollout:completed:2/3 scale:-:2/3");
    assert_string_equal(operations(scene, (struct journal_operation_filter){.limit = 1}).text, "scale:-:2/3");
    struct collected one = operations(scene, (struct journal_operation_filter){.id = scene->rollout});
    assert_string_equal(one.text, "rollout:completed:2/3");
    assert_int_equal(one.operation.id, scene->rollout);
    assert_int_equal(operations(scene, (struct journal_operation_filter){.id = scene->step}).count, 0);
    assert_int_equal(operations(scene, (struct journal_operation_filter){.id = 12345}).count, 0);
}

static void operations_are_filtered(void **state)
{
    static const struct {
        struct journal_operation_filter filter;
        const char *expected;
    } cases[] = {
        {{.kind = "scale"}, "scale:-:2/3"},
        {{.kind = "resize"}, ""},
        {{.outcome = "open"}, "scale:-:2/3"},
        {{.outcome = "completed"}, "rollout:completed:2/3"},
        {{.outcome = "failed"}, ""},
        {{.namespace = "db"}, "scale:-:2/3 rollout:completed:2/3"},
        {{.namespace = "other"}, ""},
        {{.namespace = ""}, ""},
        {{.name = "mysql", .object = "NeoSet"}, "scale:-:2/3 rollout:completed:2/3"},
        {{.name = "mysql", .object = "NeoSet", .namespace = "db", .outcome = "completed"},
         "rollout:completed:2/3"},
        {{.name = "mysql", .object = "StatefulSet"}, ""},
    };
    struct scene *scene = *state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_string_equal(operations(scene, cases[i].filter).text, cases[i].expected);
    assert_string_equal(
        operations(scene, (struct journal_operation_filter){.since_us = scene->between_us}).text,
        "scale:-:2/3");
    assert_string_equal(
        operations(scene, (struct journal_operation_filter){.until_us = scene->between_us}).text,
        "rollout:completed:2/3");
}

static void steps_come_with_how_they_ended(void **state)
{
    struct scene *scene = *state;
    assert_string_equal(
        steps(scene, (struct journal_step_filter){0}).text,
        "mysql-4:applied:1:body mysql-3:overtaken:2 mysql-4:-:1:flight:body mysql-2:-:2:body");
    assert_string_equal(steps(scene, (struct journal_step_filter){.operation = scene->rollout}).text,
                        "mysql-4:applied:1:body mysql-3:overtaken:2");
    assert_string_equal(
        steps(scene, (struct journal_step_filter){.object = "Pod", .namespace = "db", .name = "mysql-4"})
            .text,
        "mysql-4:applied:1:body mysql-4:-:1:flight:body");
    assert_string_equal(steps(scene, (struct journal_step_filter){.action = "delete"}).text, "");
    assert_string_equal(steps(scene, (struct journal_step_filter){.since_us = scene->between_us}).text,
                        "mysql-4:-:1:flight:body mysql-2:-:2:body");
    struct collected one = steps(scene, (struct journal_step_filter){.step = scene->unknown_step});
    assert_string_equal(one.text, "mysql-3:overtaken:2");
    assert_int_equal(steps(scene, (struct journal_step_filter){.step = scene->applied}).count, 0);
}

static bool check_key(void *context, const struct journal_step_record *step)
{
    const struct scene *scene = context;
    CLEANUP_FREE char *expected =
        xasprintf("%s-%lld", journal_nonce(scene->fixture.journal), (long long)step->intent.seq);
    assert_string_equal(step->key, expected);
    return true;
}

static void a_steps_key_is_its_runs_nonce_and_its_seq(void **state)
{
    struct scene *scene = *state;
    struct journal_step_filter filter = {.operation = scene->scale};
    assert_int_equal(journal_read_steps(scene->reader, &filter, check_key, scene, NULL), 0);
}

static void open_steps_of_the_living_run_are_in_flight_until_an_answer_is_unknown(void **state)
{
    struct scene *scene = *state;
    struct collected living = {0};
    assert_int_equal(journal_read_open_steps(scene->reader, add_step, &living, NULL), 0);
    assert_string_equal(living.text, "mysql-4:-:1:flight:body mysql-2:-:2:body");
    journal_fixture_crash(&scene->fixture);
    bool moved = true;
    assert_int_equal(journal_reader_refresh(scene->reader, &moved, NULL), 0);
    struct collected dead = {0};
    assert_int_equal(journal_read_open_steps(scene->reader, add_step, &dead, NULL), 0);
    assert_string_equal(dead.text, "mysql-4:-:1:body mysql-2:-:2:body");
}

static void waits_come_with_budget_and_what_was_spent(void **state)
{
    struct scene *scene = *state;
    assert_string_equal(waits(scene, (struct journal_wait_filter){0}).text,
                        "mysql-4:done:10/300 mysql-2:-:20/60:held");
    assert_string_equal(waits(scene, (struct journal_wait_filter){.open_only = true}).text,
                        "mysql-2:-:20/60:held");
    assert_string_equal(waits(scene, (struct journal_wait_filter){.operation = scene->rollout}).text,
                        "mysql-4:done:10/300");
    assert_string_equal(
        waits(scene, (struct journal_wait_filter){.object = "Pod", .namespace = "db", .name = "mysql-2"})
            .text,
        "mysql-2:-:20/60:held");
    assert_string_equal(waits(scene, (struct journal_wait_filter){.limit = 1}).text, "mysql-4:done:10/300");
    /* A wait that goes on counts up to the newest entry. */
    journal_wait_go(scene->fixture.journal, scene->held_wait);
    env_sim_run_for(scene->fixture.env, 5 * US_PER_S);
    journal_fixture_note(&scene->fixture, "x");
    journal_fixture_settle(&scene->fixture);
    bool moved = false;
    assert_int_equal(journal_reader_refresh(scene->reader, &moved, NULL), 0);
    assert_true(moved);
    assert_string_equal(waits(scene, (struct journal_wait_filter){.open_only = true}).text,
                        "mysql-2:-:25/60");
}

static bool add_run(void *context, const struct journal_run_record *run)
{
    static const char *const ends[] = {"lives", "stopped", "died"};
    struct collected *collected = context;
    size_t length = strlen(collected->text);
    snprintf(collected->text + length, sizeof(collected->text) - length, "%s%lld:%s:%s:%s:%lld:%d%s%s",
             length ? " " : "", (long long)run->run, run->identity, run->version, ends[run->end],
             (long long)run->last_seq, run->open_steps, run->stop_reason ? ":" : "",
             run->stop_reason ? run->stop_reason : "");
    collected->count++;
    return true;
}

static void runs_say_how_each_ended(void **state)
{
    struct scene *scene = *state;
    struct collected runs = {0};
    assert_int_equal(journal_read_runs(scene->reader, 0, add_run, &runs, NULL), 0);
    assert_string_equal(runs.text, "11:tester:1.0:lives:17:2 1:tester:1.0:died:10:0");
    journal_fixture_stop(&scene->fixture);
    bool moved = false;
    assert_int_equal(journal_reader_refresh(scene->reader, &moved, NULL), 0);
    runs = (struct collected){0};
    assert_int_equal(journal_read_runs(scene->reader, 0, add_run, &runs, NULL), 0);
    assert_string_equal(runs.text, "11:tester:1.0:stopped:18:2:stopped by the test 1:tester:1.0:died:10:0");
    runs = (struct collected){0};
    assert_int_equal(journal_read_runs(scene->reader, 1, add_run, &runs, NULL), 0);
    assert_int_equal(runs.count, 1);
}

/* --- snapshots -------------------------------------------------------------------------------- */

static void a_snapshot_stays_what_it_was_until_it_is_refreshed(void **state)
{
    struct scene *scene = *state;
    const struct journal_meta *meta = journal_reader_meta(scene->reader);
    int64_t head = meta->head_seq;
    int count = entries(scene, (struct journal_entry_filter){0}).count;
    bool moved = true;
    assert_int_equal(journal_reader_refresh(scene->reader, &moved, NULL), 0);
    assert_false(moved);
    journal_fixture_note(&scene->fixture, "later");
    journal_fixture_outcome(&scene->fixture, JOURNAL_APPLIED, scene->open_step);
    journal_fixture_settle(&scene->fixture);
    assert_int_equal(entries(scene, (struct journal_entry_filter){0}).count, count);
    assert_int_equal(meta->head_seq, head);
    /* An outcome after the snapshot is not part of it. */
    assert_string_equal(steps(scene, (struct journal_step_filter){.step = scene->open_step}).text,
                        "mysql-4:-:1:flight:body");
    assert_int_equal(journal_reader_refresh(scene->reader, &moved, NULL), 0);
    assert_true(moved);
    assert_int_equal(meta->head_seq, head + 2);
    assert_int_equal(entries(scene, (struct journal_entry_filter){.after_seq = head}).count, 2);
}

static void the_meta_says_what_the_file_is(void **state)
{
    struct scene *scene = *state;
    const struct journal_meta *meta = journal_reader_meta(scene->reader);
    assert_string_equal(meta->journal_id, journal_id(scene->fixture.journal));
    assert_int_equal(meta->user_version, 1);
    assert_int_equal(meta->newest_run, scene->second_run);
    assert_true(meta->lives);
    assert_null(meta->notice);
    assert_int_equal(meta->head_at_us, env_wall_us(scene->fixture.env));
}

struct writing_reader {
    struct scene *scene;
    int seen;
    int64_t wal_bytes_max;
};

/* While a row is handed out the writer goes on, and its log is used anew: no read transaction is open. */
static bool write_between(void *context, const struct journal_entry *entry)
{
    struct writing_reader *writing = context;
    (void)entry;
    if (writing->seen++ % 100 == 0) {
        for (int i = 0; i < 300; i++)
            journal_fixture_note(&writing->scene->fixture, "written while somebody reads");
        journal_fixture_settle(&writing->scene->fixture);
        env_sim_run_for(writing->scene->fixture.env, 1);
    }
    struct journal_metrics metrics;
    journal_metrics_get(writing->scene->fixture.journal, &metrics);
    writing->wal_bytes_max = MAX(writing->wal_bytes_max, metrics.wal_bytes);
    return true;
}

static void no_read_transaction_is_open_while_rows_are_handed_out(void **state)
{
    struct scene *scene = *state;
    for (int i = 0; i < 20000; i++)
        journal_fixture_note(&scene->fixture, "a row to read");
    journal_fixture_settle(&scene->fixture);
    bool moved = false;
    assert_int_equal(journal_reader_refresh(scene->reader, &moved, NULL), 0);
    int64_t head = journal_reader_meta(scene->reader)->head_seq;
    struct writing_reader writing = {.scene = scene};
    struct error *err = NULL;
    assert_int_equal(
        journal_read_entries(scene->reader, &(struct journal_entry_filter){0}, write_between, &writing, &err),
        0);
    assert_int_equal(writing.seen, head);
    assert_true(writing.wal_bytes_max < 32 << 20);
}

static void more_rows_than_a_page_are_all_read(void **state)
{
    struct scene *scene = *state;
    for (int i = 0; i < 3500; i++) {
        int64_t operation = journal_fixture_begin(&scene->fixture, "repair");
        journal_fixture_end(&scene->fixture, operation, i % 10 ? "completed" : "failed");
        env_sim_run_for(scene->fixture.env, US_PER_S);
    }
    journal_fixture_settle(&scene->fixture);
    bool moved = false;
    assert_int_equal(journal_reader_refresh(scene->reader, &moved, NULL), 0);
    struct journal_operation_filter all = {.kind = "repair"};
    CLEANUP_FREE struct collected *collected = xcalloc(1, sizeof(*collected));
    assert_int_equal(journal_read_entries(scene->reader, &(struct journal_entry_filter){.newest_first = true},
                                          add_entry, collected, NULL),
                     0);
    assert_int_equal(collected->count, 17 + 7000);
    /* The texts do not fit: only the counts matter. */
    for (int pass = 0; pass < 3; pass++) {
        int expected = pass == 2 ? 350 : 3500;
        all.oldest_first = pass == 1;
        all.outcome = pass == 2 ? "failed" : NULL;
        int rows = 0;
        for (int64_t since_us = 0, step = 0; step < 2; step++, since_us = scene->between_us) {
            memset(collected, 0, sizeof(*collected));
            all.since_us = since_us;
            assert_int_equal(journal_read_operations(scene->reader, &all, add_operation, collected, NULL), 0);
            rows = collected->count;
            assert_int_equal(rows, expected);
        }
    }
}

static void a_clock_that_went_back_reorders_nothing(void **state)
{
    struct scene *scene = *state;
    struct journal_fixture *fixture = &scene->fixture;
    int64_t before = journal_next_seq(fixture->journal) - 1;
    int64_t since_us = env_wall_us(fixture->env);
    env_sim_run_for(fixture->env, 100 * US_PER_S);
    journal_fixture_note(fixture, "ahead");
    env_sim_jump_wall(fixture->env, -3600 * US_PER_S);
    journal_append(fixture->journal, &(struct journal_entry){.kind = JOURNAL_EPOCH});
    env_sim_jump_wall(fixture->env, 7200 * US_PER_S);
    journal_fixture_note(fixture, "ahead again");
    journal_fixture_settle(fixture);
    bool moved = false;
    assert_int_equal(journal_reader_refresh(scene->reader, &moved, NULL), 0);
    assert_string_equal(entries(scene, (struct journal_entry_filter){.after_seq = before}).text,
                        "note epoch note note"); /* the last of them is the clock's */
    /* By time the one from the past is left out. */
    assert_string_equal(
        entries(scene, (struct journal_entry_filter){.after_seq = before, .since_us = since_us + 1}).text,
        "note note note");
}

static void by_time_must_equal_sql(struct scene *scene, int64_t since_us, int64_t until_us)
{
    CLEANUP_FREE struct collected *collected = xcalloc(1, sizeof(*collected));
    struct journal_entry_filter filter = {.since_us = since_us, .until_us = until_us};
    assert_int_equal(journal_read_entries(scene->reader, &filter, add_entry, collected, NULL), 0);
    CLEANUP_FREE char *sql = xasprintf("SELECT count(*) FROM entry WHERE at_us >= %lld AND at_us < %lld",
                                       (long long)since_us, (long long)(until_us ? until_us : INT64_MAX));
    assert_int_equal(collected->count, strtoll(journal_fixture_sql(scene->fixture.path, sql), NULL, 10));
}

static void write_for(struct scene *scene, int rows)
{
    for (int i = 0; i < rows; i++) {
        env_sim_jump_wall(scene->fixture.env, 1000);
        journal_fixture_note(&scene->fixture, "x");
    }
    journal_fixture_settle(&scene->fixture);
}

/* So many rows that the bounds are not read from the rows asked for but from the others, where that is
 * allowed. */
static void times_are_exact_on_a_long_history_also_where_the_clock_went_back(void **state)
{
    struct scene *scene = *state;
    bool moved = false;
    int64_t begin_us = env_wall_us(scene->fixture.env);
    write_for(scene, 130000);
    int64_t end_us = env_wall_us(scene->fixture.env);
    for (int pass = 0; pass < 2; pass++) {
        assert_int_equal(journal_reader_refresh(scene->reader, &moved, NULL), 0);
        for (int part = 0; part <= 10; part++) {
            int64_t at_us = begin_us + (end_us - begin_us) / 10 * part;
            by_time_must_equal_sql(scene, at_us, 0);
            by_time_must_equal_sql(scene, 1, at_us);
            by_time_must_equal_sql(scene, at_us - 55 * US_PER_S, at_us + 5 * US_PER_S);
        }
        by_time_must_equal_sql(scene, 1, 0);
        by_time_must_equal_sql(scene, INT64_MAX - 1, 0);
        /* Now with sixty thousand rows that lie an hour before the others, by their clock. */
        if (pass == 0) {
            env_sim_jump_wall(scene->fixture.env, -3600 * US_PER_S);
            write_for(scene, 60000);
            env_sim_jump_wall(scene->fixture.env, 7200 * US_PER_S);
            write_for(scene, 10);
        }
    }
}

/* --- backup ----------------------------------------------------------------------------------- */

static void a_backup_is_one_whole_file_that_reader_and_writer_take(void **state)
{
    struct scene *scene = *state;
    CLEANUP_FREE char *copy = xasprintf("%s/backup", scene->fixture.folder);
    CLEANUP_ERROR struct error *err = NULL;
    if (journal_backup(scene->reader, copy, NULL, NULL, &err) < 0)
        fail_msg("%s", error_text(err));
    struct stat status;
    assert_int_equal(stat(copy, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    CLEANUP_FREE char *wal = xasprintf("%s-wal", copy);
    assert_int_equal(stat(wal, &status), -1);
    struct journal_reader *reader = NULL;
    assert_int_equal(journal_reader_open(copy, &reader, NULL), 0);
    assert_int_equal(journal_reader_meta(reader)->head_seq, 17);
    assert_null(journal_reader_meta(reader)->notice);
    assert_false(journal_reader_meta(reader)->lives);
    journal_reader_close(reader);
    assert_int_equal(stat(wal, &status), -1); /* reading left nothing behind */
    struct journal_fixture second = scene->fixture;
    second.journal = NULL;
    second.options.path = copy;
    journal_fixture_open(&second);
    assert_int_equal(journal_run(second.journal), 18);
    assert_non_null(journal_open_step_find(second.journal, scene->open_step));
    journal_fixture_crash(&second);
}

static void a_backup_overwrites_nothing(void **state)
{
    struct scene *scene = *state;
    CLEANUP_ERROR struct error *err = NULL;
    assert_int_equal(journal_backup(scene->reader, scene->fixture.path, NULL, NULL, &err), -ERROR_EXISTS);
    assert_non_null(strstr(error_text(err), "nothing was overwritten"));
    CLEANUP_ERROR struct error *missing = NULL;
    assert_int_equal(journal_backup(scene->reader, "/nowhere/at/all", NULL, NULL, &missing),
                     -ERROR_NOT_FOUND);
}

struct disturbance {
    struct scene *scene;
    int calls;
};

static void write_during_backup(void *context, int done, int total)
{
    struct disturbance *disturbance = context;
    assert_true(done <= total);
    if (disturbance->calls++ < 50) {
        for (int i = 0; i < 200; i++)
            journal_fixture_note(&disturbance->scene->fixture, "written during the backup");
        journal_fixture_settle(&disturbance->scene->fixture);
    }
}

static void a_backup_beside_a_writer_is_of_one_moment(void **state)
{
    struct scene *scene = *state;
    CLEANUP_FREE char *copy = xasprintf("%s/backup", scene->fixture.folder);
    for (int i = 0; i < 60000; i++)
        journal_fixture_note(&scene->fixture,
                             "enough pages for several steps of the copy, and then some more text");
    journal_fixture_settle(&scene->fixture);
    env_sim_run_for(scene->fixture.env, US_PER_S);
    int64_t head = journal_durable_seq(scene->fixture.journal);
    struct disturbance disturbance = {.scene = scene};
    CLEANUP_ERROR struct error *err = NULL;
    if (journal_backup(scene->reader, copy, write_during_backup, &disturbance, &err) < 0)
        fail_msg("%s", error_text(err));
    assert_in_range(disturbance.calls, 2, 49); /* it ended, though the source changed at each step */
    struct journal_reader *reader = NULL;
    assert_int_equal(journal_reader_open(copy, &reader, NULL), 0);
    assert_int_equal(journal_reader_meta(reader)->head_seq, head);
    journal_reader_close(reader);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

/* Whoever reads makes no folder: where there is none, there is no journal. */
static void what_is_not_there_is_named_as_it_was_given(void **state)
{
    (void)state;
    static const char *const paths[] = {"/nowhere/journal.db", "/tmp/nowhere-journal.db"};
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        CLEANUP_ERROR struct error *err = NULL;
        struct journal_reader *reader = NULL;
        CLEANUP_FREE char *wanted = xasprintf("journal %s: No such file or directory", paths[i]);
        assert_int_equal(journal_reader_open(paths[i], &reader, &err), -ERROR_NOT_FOUND);
        assert_string_equal(error_text(err), wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(entries_come_in_order_of_seq),
        TEST(entries_are_filtered_by_range_operation_kind_and_limit),
        TEST(entries_are_filtered_by_time),
        TEST(entries_are_filtered_by_what_they_name),
        TEST(a_callback_that_has_enough_stops),
        TEST(one_entry_is_found_or_explained),
        TEST(operations_come_newest_first_and_open_ones_are_counted),
        TEST(operations_are_filtered),
        TEST(steps_come_with_how_they_ended),
        TEST(a_steps_key_is_its_runs_nonce_and_its_seq),
        TEST(open_steps_of_the_living_run_are_in_flight_until_an_answer_is_unknown),
        TEST(waits_come_with_budget_and_what_was_spent),
        TEST(runs_say_how_each_ended),
        TEST(a_snapshot_stays_what_it_was_until_it_is_refreshed),
        TEST(the_meta_says_what_the_file_is),
        TEST(no_read_transaction_is_open_while_rows_are_handed_out),
        TEST(more_rows_than_a_page_are_all_read),
        TEST(a_clock_that_went_back_reorders_nothing),
        TEST(times_are_exact_on_a_long_history_also_where_the_clock_went_back),
        TEST(a_backup_is_one_whole_file_that_reader_and_writer_take),
        TEST(a_backup_overwrites_nothing),
        TEST(what_is_not_there_is_named_as_it_was_given),
        TEST(a_backup_beside_a_writer_is_of_one_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
