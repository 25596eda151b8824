/* SPDX-License-Identifier: Apache-2.0
 *
 * What the rows say is open, recomputed from them alone, and compared with the derived tables (derived.c
 * keeps those). Memory grows with what is open, not with the history. */
#include "base/json.h"
#include "journal/verify_parts.h"

#include <uthash.h>

struct open_thing {
    int64_t seq;
    UT_hash_handle hh;
    char *kind; /* operation: kind; wait: what for */
    char *object;
    char *namespace;
    char *name;
    /* operation */
    char *come_from;
    char *go_to;
    char *outcome; /* ended: to be compared with its row */
    int64_t begun_us;
    int64_t ended_us;
    int64_t steps;
    int64_t attempts;
    /* step */
    int64_t operation;
    bool blocks;
    int64_t unknowns;
    int64_t last_at_us;
    /* wait */
    int64_t budget_us;
    int64_t spent_us;
    int64_t since_us;
    bool held;
};

struct recomputed {
    struct open_thing *steps;
    struct open_thing *operations;
    struct open_thing *waits;
    struct open_thing *ended; /* operations */
    int64_t operation_count;
};

struct recomputed *recomputed_make(void)
{
    return xcalloc(1, sizeof(struct recomputed));
}

static void thing_free(struct open_thing *thing)
{
    free(thing->kind);
    free(thing->object);
    free(thing->namespace);
    free(thing->name);
    free(thing->come_from);
    free(thing->go_to);
    free(thing->outcome);
    free(thing);
}

static void clear(struct open_thing **things)
{
    struct open_thing *thing = NULL;
    struct open_thing *next = NULL;
    HASH_ITER (hh, *things, thing, next) {
        HASH_DEL(*things, thing);
        thing_free(thing);
    }
}

void recomputed_free(struct recomputed *recomputed)
{
    if (!recomputed)
        return;
    clear(&recomputed->steps);
    clear(&recomputed->operations);
    clear(&recomputed->waits);
    clear(&recomputed->ended);
    free(recomputed);
}

static struct open_thing *find(struct open_thing *things, int64_t seq)
{
    struct open_thing *thing = NULL;
    HASH_FIND(hh, things, &seq, sizeof(seq), thing);
    return thing;
}

static struct open_thing *add(struct open_thing **things, const struct journal_entry *entry)
{
    struct open_thing *thing = xcalloc(1, sizeof(*thing));
    thing->seq = entry->seq;
    thing->kind = xstrdup(entry->action ? entry->action : "");
    thing->object = xstrdup(entry->object ? entry->object : "");
    thing->namespace = xstrdup(entry->namespace ? entry->namespace : "");
    thing->name = xstrdup(entry->name ? entry->name : "");
    HASH_ADD(hh, *things, seq, sizeof(thing->seq), thing);
    return thing;
}

static void drop(struct open_thing **things, struct open_thing *thing)
{
    HASH_DEL(*things, thing);
    thing_free(thing);
}

/* --- details ---------------------------------------------------------------------------------- */

static char *text_or_empty(const cJSON *tree, const char *key)
{
    const char *text = json_str(tree, key);
    return xstrdup(text ? text : "");
}

/* --- one row more ----------------------------------------------------------------------------- */

/* What began before the history does is closed in it, or was never open: retention sees to that. */
static bool is_before_history(const struct verifier *verifier, int64_t seq)
{
    return seq > 0 && seq <= verifier->begins_after;
}

static void check_operation(struct verifier *verifier, const struct journal_entry *entry)
{
    if (entry->operation && !find(verifier->recomputed->operations, entry->operation) &&
        !is_before_history(verifier, entry->operation))
        verify_find(verifier, entry->seq, "entry %lld belongs to operation %lld, which is not open then",
                    (long long)entry->seq, (long long)entry->operation);
}

static void begin_operation(struct verifier *verifier, const struct journal_entry *entry)
{
    CLEANUP_JSON cJSON *detail = NULL;
    if (entry->detail && json_parse(entry->detail, strlen(entry->detail), &detail, NULL) < 0)
        detail = NULL;
    struct open_thing *operation = add(&verifier->recomputed->operations, entry);
    operation->come_from = text_or_empty(detail, "from");
    operation->go_to = text_or_empty(detail, "to");
    operation->begun_us = entry->at_us;
    verifier->recomputed->operation_count++;
}

static void end_operation(struct verifier *verifier, const struct journal_entry *entry)
{
    struct recomputed *recomputed = verifier->recomputed;
    struct open_thing *operation = find(recomputed->operations, entry->operation);
    if (!operation) {
        if (!is_before_history(verifier, entry->operation))
            verify_find(verifier, entry->seq, "entry %lld ends operation %lld, which is not open",
                        (long long)entry->seq, (long long)entry->operation);
        return;
    }
    HASH_DEL(recomputed->operations, operation);
    operation->outcome = xstrdup(entry->action ? entry->action : "");
    operation->ended_us = entry->at_us;
    HASH_ADD(hh, recomputed->ended, seq, sizeof(operation->seq), operation);
}

static void count_sending(struct verifier *verifier, int64_t operation_seq, bool is_step)
{
    struct open_thing *operation = find(verifier->recomputed->operations, operation_seq);
    if (!operation)
        return;
    operation->attempts++;
    operation->steps += is_step;
}

static void open_step(struct verifier *verifier, const struct journal_entry *entry)
{
    check_operation(verifier, entry);
    struct open_thing *step = add(&verifier->recomputed->steps, entry);
    step->operation = entry->operation;
    step->blocks = str_equal(entry->action, JOURNAL_ACTION_BLOCK);
    step->last_at_us = entry->at_us;
    count_sending(verifier, entry->operation, true);
}

static struct open_thing *step_of(struct verifier *verifier, const struct journal_entry *entry)
{
    struct open_thing *step = find(verifier->recomputed->steps, entry->step);
    if (!step && !is_before_history(verifier, entry->step))
        verify_find(
            verifier, entry->seq,
            "entry %lld (%s) is about step %lld, which is not open: it has an outcome already, or no intent",
            (long long)entry->seq, journal_kind_text(entry->kind), (long long)entry->step);
    if (step && entry->operation != step->operation)
        verify_find(verifier, entry->seq, "entry %lld names operation %lld, its step is of operation %lld",
                    (long long)entry->seq, (long long)entry->operation, (long long)step->operation);
    return step;
}

static void note_unknown(struct verifier *verifier, const struct journal_entry *entry)
{
    struct open_thing *step = step_of(verifier, entry);
    if (!step)
        return;
    step->unknowns++;
    step->last_at_us = entry->at_us;
    count_sending(verifier, entry->operation, false);
}

static void close_step(struct verifier *verifier, const struct journal_entry *entry)
{
    struct open_thing *step = step_of(verifier, entry);
    if (step)
        drop(&verifier->recomputed->steps, step);
}

static void note_late(struct verifier *verifier, const struct journal_entry *entry)
{
    if (entry->step >= entry->seq || find(verifier->recomputed->steps, entry->step))
        verify_find(verifier, entry->seq, "entry %lld says that step %lld came late, but that is not closed",
                    (long long)entry->seq, (long long)entry->step);
}

static void open_wait(struct verifier *verifier, const struct journal_entry *entry)
{
    struct open_thing *wait = add(&verifier->recomputed->waits, entry);
    wait->budget_us = reader_detail_number(entry->detail, "budget_us");
    wait->since_us = entry->mono_us;
}

static void move_wait(struct verifier *verifier, const struct journal_entry *entry)
{
    struct recomputed *recomputed = verifier->recomputed;
    int64_t seq = reader_detail_number(entry->detail, "wait");
    struct open_thing *wait = find(recomputed->waits, seq);
    if (!wait) {
        if (!is_before_history(verifier, seq))
            verify_find(verifier, entry->seq, "entry %lld is about wait %lld, which is not open",
                        (long long)entry->seq, (long long)seq);
        return;
    }
    if (entry->kind == JOURNAL_WAIT_END) {
        drop(&recomputed->waits, wait);
        return;
    }
    bool holds = entry->kind == JOURNAL_WAIT_HOLD;
    if (wait->held == holds)
        verify_find(verifier, entry->seq, "entry %lld: wait %lld was %s already", (long long)entry->seq,
                    (long long)seq, holds ? "on hold" : "going on");
    if (holds && !wait->held)
        wait->spent_us += entry->mono_us - wait->since_us;
    wait->held = holds;
    wait->since_us = entry->mono_us;
}

/* The time between two runs counts by the wall clock, never negative, not while held. */
static void begin_run(struct verifier *verifier, const struct journal_entry *entry)
{
    int64_t gap_us = verifier->run ? MAX((int64_t)0, entry->at_us - verifier->at_us) : 0;
    struct open_thing *wait = NULL;
    struct open_thing *next = NULL;
    HASH_ITER (hh, verifier->recomputed->waits, wait, next) {
        if (wait->held)
            continue;
        wait->spent_us += verifier->mono_us - wait->since_us + gap_us;
        wait->since_us = 0;
    }
}

void recomputed_add(struct verifier *verifier, const struct journal_entry *entry)
{
    switch (entry->kind) {
    case JOURNAL_START:
        begin_run(verifier, entry);
        break;
    case JOURNAL_BEGIN:
        begin_operation(verifier, entry);
        break;
    case JOURNAL_END:
        end_operation(verifier, entry);
        break;
    case JOURNAL_INTENT:
        open_step(verifier, entry);
        break;
    case JOURNAL_APPLIED:
    case JOURNAL_REJECTED:
    case JOURNAL_OVERTAKEN:
    case JOURNAL_NOT_SENT:
    case JOURNAL_ABSENT:
        close_step(verifier, entry);
        break;
    case JOURNAL_UNKNOWN:
        note_unknown(verifier, entry);
        break;
    case JOURNAL_LATE:
        note_late(verifier, entry);
        break;
    case JOURNAL_WAIT_BEGIN:
        open_wait(verifier, entry);
        break;
    case JOURNAL_WAIT_HOLD:
    case JOURNAL_WAIT_GO:
    case JOURNAL_WAIT_END:
        move_wait(verifier, entry);
        break;
    default:
        break;
    }
}

/* --- against the tables ----------------------------------------------------------------------- */

static bool same_text(sqlite3_stmt *statement, int column, const char *text)
{
    return str_equal((const char *)sqlite3_column_text(statement, column), text);
}

/* Columns 1-4: kind or action, object, namespace, name. */
static bool same_names(sqlite3_stmt *statement, const struct open_thing *thing)
{
    return same_text(statement, 1, thing->kind) && same_text(statement, 2, thing->object) &&
           same_text(statement, 3, thing->namespace) && same_text(statement, 4, thing->name);
}

struct row_visit {
    struct verifier *verifier;
    const struct open_thing *thing; /* that this row must equal; NULL: looked up by column 0 */
    int64_t rows;
};

static bool same_operation(sqlite3_stmt *statement, const struct open_thing *operation)
{
    bool same = same_names(statement, operation) && same_text(statement, 5, operation->come_from) &&
                same_text(statement, 6, operation->go_to) &&
                sqlite3_column_int64(statement, 7) == operation->begun_us;
    if (!operation->outcome)
        return same && sqlite3_column_type(statement, 8) == SQLITE_NULL;
    return same && sqlite3_column_int64(statement, 8) == operation->ended_us &&
           same_text(statement, 9, operation->outcome) &&
           sqlite3_column_int64(statement, 10) == operation->steps &&
           sqlite3_column_int64(statement, 11) == operation->attempts;
}

static void visit_operation(void *context, sqlite3_stmt *statement)
{
    struct row_visit *visit = context;
    int64_t seq = sqlite3_column_int64(statement, 0);
    const struct open_thing *operation =
        visit->thing ? visit->thing : find(visit->verifier->recomputed->operations, seq);
    visit->rows++;
    if (!operation || !same_operation(statement, operation))
        verify_find(visit->verifier, seq, "the list of operations says of %lld what its entries do not say",
                    (long long)seq);
}

static bool visit_ended(void *context, sqlite3_stmt *statement)
{
    visit_operation(context, statement);
    return true;
}

static void visit_number(void *context, sqlite3_stmt *statement)
{
    *(int64_t *)context = sqlite3_column_int64(statement, 0);
}

static int read_number(struct verifier *verifier, const char *sql, int64_t *ret, struct error **err)
{
    struct query query = QUERY_INIT;
    query_add(&query, sql);
    int result = query_run(verifier->reader, &query, visit_number, ret, err);
    query_done(&query);
    return result;
}

static int check_one_ended(struct verifier *verifier, const struct open_thing *operation, struct error **err)
{
    struct row_visit visit = {.verifier = verifier, .thing = operation};
    int result = kept_run(verifier->reader, READER_OPERATION, &operation->seq, 1, visit_ended, &visit, err);
    if (result < 0 || visit.rows == 1)
        return result;
    /* Retention may have taken it since. */
    int64_t pruned_seq = 0;
    result = read_number(verifier, "SELECT pruned_seq FROM meta", &pruned_seq, err);
    if (result == 0 && operation->seq > pruned_seq)
        verify_find(verifier, operation->seq, "operation %lld is missing in the list of operations",
                    (long long)operation->seq);
    return result;
}

int recomputed_check_ended(struct verifier *verifier, struct error **err)
{
    struct open_thing *operation = NULL;
    struct open_thing *next = NULL;
    int result = 0;
    HASH_ITER (hh, verifier->recomputed->ended, operation, next) {
        if (result == 0)
            result = check_one_ended(verifier, operation, err);
        drop(&verifier->recomputed->ended, operation);
    }
    return result;
}

static void visit_step(void *context, sqlite3_stmt *statement)
{
    struct row_visit *visit = context;
    int64_t seq = sqlite3_column_int64(statement, 0);
    const struct open_thing *step = find(visit->verifier->recomputed->steps, seq);
    visit->rows++;
    bool same = step && same_text(statement, 1, step->object) && same_text(statement, 2, step->namespace) &&
                same_text(statement, 3, step->name) && sqlite3_column_int(statement, 4) == step->blocks &&
                sqlite3_column_int64(statement, 5) == step->unknowns &&
                sqlite3_column_int64(statement, 6) == step->last_at_us;
    if (!same)
        verify_find(visit->verifier, seq, "the list of open steps says of %lld what its entries do not say",
                    (long long)seq);
}

static void visit_wait(void *context, sqlite3_stmt *statement)
{
    struct row_visit *visit = context;
    int64_t seq = sqlite3_column_int64(statement, 0);
    const struct open_thing *wait = find(visit->verifier->recomputed->waits, seq);
    visit->rows++;
    bool same = wait && same_names(statement, wait) &&
                sqlite3_column_int64(statement, 5) == wait->budget_us &&
                sqlite3_column_int64(statement, 6) == wait->spent_us &&
                (sqlite3_column_type(statement, 7) == SQLITE_NULL) == wait->held &&
                (wait->held || sqlite3_column_int64(statement, 7) == wait->since_us);
    if (!same)
        verify_find(visit->verifier, seq, "the list of open waits says of %lld what its entries do not say",
                    (long long)seq);
}

/* Every row fits (visit says which does not), and there are as many as there should be. */
static int check_table(struct verifier *verifier, const char *sql, query_visit *visit_row, unsigned expected,
                       const char *what, struct error **err)
{
    struct row_visit visit = {.verifier = verifier};
    struct query query = QUERY_INIT;
    query_add(&query, sql);
    int result = query_run(verifier->reader, &query, visit_row, &visit, err);
    query_done(&query);
    if (result == 0 && visit.rows != (int64_t)expected)
        verify_find(verifier, 0, "the list of %s has %lld rows, the entries say %u", what,
                    (long long)visit.rows, expected);
    return result;
}

int recomputed_check_open(struct verifier *verifier, struct error **err)
{
    const struct recomputed *recomputed = verifier->recomputed;
    int result =
        check_table(verifier, "SELECT " READER_OPERATION_COLUMNS " FROM operation WHERE ended_us IS NULL",
                    visit_operation, HASH_COUNT(recomputed->operations), "open operations", err);
    if (result == 0)
        result = check_table(
            verifier, "SELECT step, object, namespace, name, blocks, unknowns, last_at_us FROM open_step",
            visit_step, HASH_COUNT(recomputed->steps), "open steps", err);
    if (result == 0)
        result = check_table(
            verifier,
            "SELECT wait, action, object, namespace, name, budget_us, spent_us, since_us FROM open_wait",
            visit_wait, HASH_COUNT(recomputed->waits), "open waits", err);
    int64_t count = 0;
    if (result == 0)
        result = read_number(
            verifier, "SELECT count(*) FROM operation WHERE id > (SELECT pruned_seq FROM meta)", &count, err);
    if (result == 0 && count != recomputed->operation_count)
        verify_find(verifier, 0, "the list of operations has %lld rows, the entries say %lld",
                    (long long)count, (long long)recomputed->operation_count);
    return result;
}
