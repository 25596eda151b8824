/* SPDX-License-Identifier: Apache-2.0
 *
 * The sheets: which columns entries, operations, steps, waits and runs have. Names and order of the data
 * columns are an API (golden tests hold them): new ones go at the end. */
#include "audit/parts.h"

#include <stdio.h>

#define COLUMN(key, heading, kind, shown, at, narrows)                                                       \
    {                                                                                                        \
        .name = (key), .title = (heading), .type = (kind), .where = (shown), .place = (at),                  \
        .narrow = (narrows)                                                                                  \
    }
#define DATA(key, kind) COLUMN(key, key, kind, IN_DATA, 0, 0)

void audit_row_done(struct audit_row *row)
{
    free(row->object);
    row->object = NULL;
}

enum sheet_tone audit_tone_of(const char *outcome)
{
    static const char *const good[] = {"completed", "applied", "done", "lives", "stopped"};
    static const char *const bad[] = {"failed", "rejected", "expired", "died", "in_doubt"};
    if (!outcome)
        return TONE_WARN;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        if (str_equal(outcome, good[i]))
            return TONE_GOOD;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (str_equal(outcome, bad[i]))
            return TONE_BAD;
    return TONE_WARN;
}

static bool is_table(const struct audit *audit)
{
    return audit->look.format == SHEET_TABLE || audit->look.format == SHEET_WIDE;
}

/* "NeoSet/mysql", made for tables only. */
static struct sheet_cell object_cell(const struct audit *audit, struct audit_row *row, const char *object,
                                     const char *name)
{
    if (!is_table(audit) || !object)
        return cell_null();
    free(row->object);
    row->object = xasprintf("%s/%s", object, name ? name : "");
    return cell_text(row->object);
}

static struct sheet_cell cell_with_tone(struct sheet_cell cell, enum sheet_tone tone)
{
    cell.tone = tone;
    return cell;
}

static struct sheet_cell journal_cell(const struct audit_journal *journal)
{
    return cell_text(journal->meta->journal_id);
}

/* --- entries ---------------------------------------------------------------------------------------- */

enum {
    ENTRY_SEQ,
    ENTRY_AT,
    ENTRY_KIND,
    ENTRY_RUN,
    ENTRY_EPOCH,
    ENTRY_MONO,
    ENTRY_OPERATION,
    ENTRY_STEP,
    ENTRY_ATTEMPT,
    ENTRY_ACTION,
    ENTRY_OBJECT,
    ENTRY_NAMESPACE,
    ENTRY_NAME,
    ENTRY_UID,
    ENTRY_VERSION,
    ENTRY_HTTP,
    ENTRY_AUDIT_ID,
    ENTRY_REASON,
    ENTRY_DETAIL,
    ENTRY_DIGEST,
    ENTRY_HASH,
    ENTRY_FORM,
    ENTRY_JOURNAL,
    ENTRY_WHAT,
    ENTRY_COLUMNS
};

static const struct sheet_column entry_columns[ENTRY_COLUMNS] = {
    [ENTRY_SEQ] = COLUMN("seq", "SEQ", SHEET_ID, IN_ALL, 1, 0),
    [ENTRY_AT] = COLUMN("at", "AT", SHEET_TIME, IN_ALL, 2, 0),
    [ENTRY_KIND] = COLUMN("kind", "KIND", SHEET_TEXT, IN_ALL, 3, 0),
    [ENTRY_RUN] = COLUMN("run", "RUN", SHEET_ID, IN_WIDE | IN_DATA, 4, 0),
    [ENTRY_EPOCH] = COLUMN("epoch", "EPOCH", SHEET_NUMBER, IN_WIDE | IN_DATA, 5, 0),
    [ENTRY_MONO] = DATA("mono_us", SHEET_NUMBER),
    [ENTRY_OPERATION] = COLUMN("operation", "OPERATION", SHEET_ID, IN_ALL, 6, 0),
    [ENTRY_STEP] = COLUMN("step", "STEP", SHEET_ID, IN_ALL, 7, 0),
    [ENTRY_ATTEMPT] = COLUMN("attempt", "ATTEMPT", SHEET_NUMBER, IN_WIDE | IN_DATA, 8, 0),
    [ENTRY_ACTION] = COLUMN("action", "ACTION", SHEET_TEXT, IN_ALL, 9, NARROW_CUT),
    [ENTRY_OBJECT] = DATA("object", SHEET_TEXT),
    [ENTRY_NAMESPACE] = COLUMN("namespace", "NAMESPACE", SHEET_TEXT, IN_ALL, 10, NARROW_CUT),
    [ENTRY_NAME] = DATA("name", SHEET_TEXT),
    [ENTRY_UID] = COLUMN("uid", "UID", SHEET_TEXT, IN_WIDE | IN_DATA, 12, 0),
    [ENTRY_VERSION] = COLUMN("version", "VERSION", SHEET_TEXT, IN_WIDE | IN_DATA, 13, 0),
    [ENTRY_HTTP] = COLUMN("http", "HTTP", SHEET_NUMBER, IN_ALL, 14, 0),
    [ENTRY_AUDIT_ID] = COLUMN("audit_id", "AUDIT-ID", SHEET_TEXT, IN_WIDE | IN_DATA, 15, 0),
    [ENTRY_REASON] = COLUMN("reason", "REASON", SHEET_TEXT, IN_ALL, 16, NARROW_CUT),
    [ENTRY_DETAIL] = COLUMN("detail", "DETAIL", SHEET_DETAIL, IN_WIDE | IN_DATA, 17, NARROW_CUT),
    [ENTRY_DIGEST] = DATA("digest", SHEET_BYTES),
    [ENTRY_HASH] = DATA("hash", SHEET_BYTES),
    [ENTRY_FORM] = DATA("form", SHEET_NUMBER),
    [ENTRY_JOURNAL] = DATA("journal", SHEET_TEXT),
    [ENTRY_WHAT] = COLUMN("what", "OBJECT", SHEET_TEXT, IN_TABLES, 11, NARROW_CUT),
};
const struct audit_sheet audit_entry_sheet = {entry_columns, ENTRY_COLUMNS};

static enum sheet_tone tone_of_kind(enum journal_kind kind)
{
    if (kind == JOURNAL_APPLIED)
        return TONE_GOOD;
    if (kind == JOURNAL_REJECTED)
        return TONE_BAD;
    return journal_kind_is_outcome(kind) || kind == JOURNAL_UNKNOWN || kind == JOURNAL_LATE ? TONE_WARN
                                                                                            : TONE_NONE;
}

void audit_row_of_entry(const struct audit *audit, const struct audit_journal *journal,
                        const struct journal_entry *entry, struct audit_row *row)
{
    struct sheet_cell *cells = row->cells;
    cells[ENTRY_SEQ] = audit_id_cell(audit, journal, entry->seq, &row->ids[0]);
    cells[ENTRY_AT] = cell_number(entry->at_us);
    cells[ENTRY_KIND] = cell_with_tone(cell_text(journal_kind_text(entry->kind)), tone_of_kind(entry->kind));
    cells[ENTRY_RUN] = audit_id_cell(audit, journal, entry->run, &row->ids[1]);
    cells[ENTRY_EPOCH] = cell_number(entry->epoch);
    cells[ENTRY_MONO] = cell_number(entry->mono_us);
    cells[ENTRY_OPERATION] = audit_id_cell(audit, journal, entry->operation, &row->ids[2]);
    cells[ENTRY_STEP] = audit_id_cell(audit, journal, entry->step, &row->ids[3]);
    cells[ENTRY_ATTEMPT] = cell_number_or_null(entry->attempt);
    cells[ENTRY_ACTION] = cell_text(entry->action);
    cells[ENTRY_OBJECT] = cell_text(entry->object);
    cells[ENTRY_NAMESPACE] = cell_text(entry->namespace);
    cells[ENTRY_NAME] = cell_text(entry->name);
    cells[ENTRY_UID] = cell_text(entry->uid);
    cells[ENTRY_VERSION] = cell_text(entry->version);
    cells[ENTRY_HTTP] = cell_number_or_null(entry->http);
    cells[ENTRY_AUDIT_ID] = cell_text(entry->audit_id);
    cells[ENTRY_REASON] = cell_text(entry->reason);
    cells[ENTRY_DETAIL] = cell_text(entry->detail);
    cells[ENTRY_DIGEST] = cell_bytes(entry->digest, SHA256_SIZE);
    cells[ENTRY_HASH] = cell_bytes(entry->hash, SHA256_SIZE);
    cells[ENTRY_FORM] = cell_number(entry->form);
    cells[ENTRY_JOURNAL] = journal_cell(journal);
    cells[ENTRY_WHAT] = object_cell(audit, row, entry->object, entry->name);
}

/* --- operations ------------------------------------------------------------------------------------- */

enum {
    OP_ID,
    OP_BEGUN,
    OP_ENDED,
    OP_KIND,
    OP_OBJECT,
    OP_NAMESPACE,
    OP_NAME,
    OP_FROM,
    OP_TO,
    OP_OUTCOME,
    OP_DURATION,
    OP_STEPS,
    OP_ATTEMPTS,
    OP_RETRIES,
    OP_JOURNAL,
    OP_WHAT,
    OP_TOOK,
    OP_COLUMNS
};

static const struct sheet_column operation_columns[OP_COLUMNS] = {
    [OP_ID] = COLUMN("id", "ID", SHEET_ID, IN_ALL, 1, 0),
    [OP_BEGUN] = COLUMN("begun", "BEGUN", SHEET_TIME, IN_ALL, 2, 0),
    [OP_ENDED] = COLUMN("ended", "ENDED", SHEET_TIME, IN_WIDE | IN_DATA, 3, 0),
    [OP_KIND] = COLUMN("kind", "KIND", SHEET_TEXT, IN_ALL, 6, NARROW_DROP(1)),
    [OP_OBJECT] = DATA("object", SHEET_TEXT),
    [OP_NAMESPACE] = COLUMN("namespace", "NAMESPACE", SHEET_TEXT, IN_ALL, 4, NARROW_CUT | NARROW_DROP(3)),
    [OP_NAME] = DATA("name", SHEET_TEXT),
    [OP_FROM] = COLUMN("from", "FROM", SHEET_TEXT, IN_ALL, 7, NARROW_CUT_FRONT),
    [OP_TO] = COLUMN("to", "TO", SHEET_TEXT, IN_ALL, 8, NARROW_CUT_FRONT),
    [OP_OUTCOME] = COLUMN("outcome", "OUTCOME", SHEET_TEXT, IN_ALL, 9, 0),
    [OP_DURATION] = DATA("duration_s", SHEET_DURATION),
    [OP_STEPS] = COLUMN("steps", "STEPS", SHEET_NUMBER, IN_ALL, 11, NARROW_DROP(4)),
    [OP_ATTEMPTS] = COLUMN("attempts", "ATTEMPTS", SHEET_NUMBER, IN_WIDE | IN_DATA, 12, 0),
    [OP_RETRIES] = COLUMN("retries", "RETRIES", SHEET_NUMBER, IN_ALL, 13, NARROW_DROP(5)),
    [OP_JOURNAL] = COLUMN("journal", "JOURNAL", SHEET_TEXT, IN_WIDE | IN_DATA, 14, 0),
    [OP_WHAT] = COLUMN("what", "OBJECT", SHEET_TEXT, IN_TABLES, 5, NARROW_CUT_FRONT),
    /* An open operation is as old as it is. */
    [OP_TOOK] = COLUMN("took", "TOOK", SHEET_DURATION, IN_TABLES, 10, NARROW_DROP(2)),
};
static bool is_unchanged(const struct journal_operation_record *operation)
{
    return *operation->go_to && str_equal(operation->come_from, operation->go_to);
}

char *audit_change_text(const struct journal_operation_record *operation)
{
    if (is_unchanged(operation))
        return xasprintf("%s, unchanged", operation->go_to);
    if (!*operation->come_from && !*operation->go_to)
        return xstrdup("");
    return xasprintf("%s -> %s", *operation->come_from ? operation->come_from : "-",
                     *operation->go_to ? operation->go_to : "-");
}

const struct audit_sheet audit_operation_sheet = {operation_columns, OP_COLUMNS};

void audit_row_of_operation(const struct audit *audit, const struct audit_journal *journal,
                            const struct journal_operation_record *operation, struct audit_row *row)
{
    struct sheet_cell *cells = row->cells;
    bool is_open = operation->ended_us == 0;
    const char *outcome = operation->outcome ? operation->outcome : "open";
    int64_t until_us = is_open ? MAX(audit->now_us, operation->begun_us) : operation->ended_us;
    cells[OP_ID] = audit_id_cell(audit, journal, operation->id, &row->ids[0]);
    cells[OP_BEGUN] = cell_number(operation->begun_us);
    cells[OP_ENDED] = cell_number_or_null(operation->ended_us);
    cells[OP_KIND] = cell_text(operation->kind);
    cells[OP_OBJECT] = cell_text(operation->object);
    cells[OP_NAMESPACE] = cell_text(operation->namespace);
    cells[OP_NAME] = cell_text(operation->name);
    cells[OP_FROM] = cell_text(operation->come_from);
    bool is_for_people = audit->look.format == SHEET_TABLE || audit->look.format == SHEET_WIDE;
    bool says_unchanged = is_for_people && is_unchanged(operation);
    cells[OP_TO] = cell_text(says_unchanged ? "unchanged" : operation->go_to);
    cells[OP_OUTCOME] = cell_with_tone(cell_text(outcome), audit_tone_of(operation->outcome));
    cells[OP_DURATION] = is_open ? cell_null() : cell_number(operation->ended_us - operation->begun_us);
    cells[OP_STEPS] = cell_number(operation->steps);
    cells[OP_ATTEMPTS] = cell_number(operation->attempts);
    cells[OP_RETRIES] = cell_number(MAX(operation->attempts - operation->steps, 0));
    cells[OP_JOURNAL] = journal_cell(journal);
    cells[OP_WHAT] = object_cell(audit, row, operation->object, operation->name);
    cells[OP_TOOK] = cell_number(until_us - operation->begun_us);
}

/* --- steps ------------------------------------------------------------------------------------------ */

enum {
    STEP_ID,
    STEP_KEY,
    STEP_STATE,
    STEP_OPERATION,
    STEP_RUN,
    STEP_ACTION,
    STEP_OBJECT,
    STEP_NAMESPACE,
    STEP_NAME,
    STEP_UID,
    STEP_VERSION,
    STEP_BEGUN,
    STEP_ENDED,
    STEP_DURATION,
    STEP_OUTCOME,
    STEP_HTTP,
    STEP_ATTEMPTS,
    STEP_REASON,
    STEP_OUTCOME_REASON,
    STEP_VERSION_AFTER,
    STEP_DIGEST,
    STEP_AGE,
    STEP_JOURNAL,
    STEP_WHAT,
    STEP_COLUMNS
};

static const struct sheet_column step_columns[STEP_COLUMNS] = {
    [STEP_ID] = COLUMN("step", "STEP", SHEET_ID, IN_ALL, 1, 0),
    [STEP_KEY] = COLUMN("key", "KEY", SHEET_TEXT, IN_WIDE | IN_DATA, 14, 0),
    [STEP_STATE] = COLUMN("state", "STATE", SHEET_TEXT, IN_ALL, 3, 0),
    [STEP_OPERATION] = COLUMN("operation", "OPERATION", SHEET_ID, IN_ALL, 2, 0),
    [STEP_RUN] = COLUMN("run", "RUN", SHEET_ID, IN_WIDE | IN_DATA, 15, 0),
    [STEP_ACTION] = COLUMN("action", "ACTION", SHEET_TEXT, IN_ALL, 5, 0),
    [STEP_OBJECT] = DATA("object", SHEET_TEXT),
    [STEP_NAMESPACE] = COLUMN("namespace", "NAMESPACE", SHEET_TEXT, IN_ALL, 6, NARROW_CUT),
    [STEP_NAME] = DATA("name", SHEET_TEXT),
    [STEP_UID] = COLUMN("uid", "UID", SHEET_TEXT, IN_WIDE | IN_DATA, 16, 0),
    [STEP_VERSION] = COLUMN("version", "VERSION", SHEET_TEXT, IN_WIDE | IN_DATA, 17, 0),
    [STEP_BEGUN] = COLUMN("begun", "BEGUN", SHEET_TIME, IN_ALL, 4, 0),
    [STEP_ENDED] = COLUMN("ended", "ENDED", SHEET_TIME, IN_WIDE | IN_DATA, 18, 0),
    [STEP_DURATION] = DATA("duration_s", SHEET_DURATION),
    [STEP_OUTCOME] = COLUMN("outcome", "OUTCOME", SHEET_TEXT, IN_ALL, 8, 0),
    [STEP_HTTP] = COLUMN("http", "HTTP", SHEET_NUMBER, IN_ALL, 9, 0),
    [STEP_ATTEMPTS] = COLUMN("attempts", "ATTEMPTS", SHEET_NUMBER, IN_ALL, 10, 0),
    [STEP_REASON] = COLUMN("reason", "REASON", SHEET_TEXT, IN_ALL, 12, NARROW_CUT),
    [STEP_OUTCOME_REASON] = COLUMN("outcome_reason", "ANSWER", SHEET_TEXT, IN_WIDE | IN_DATA, 13, NARROW_CUT),
    [STEP_VERSION_AFTER] = DATA("version_after", SHEET_TEXT),
    [STEP_DIGEST] = DATA("digest", SHEET_BYTES),
    [STEP_AGE] = COLUMN("age_s", "AGE", SHEET_DURATION, IN_WIDE | IN_DATA, 11, 0),
    [STEP_JOURNAL] = DATA("journal", SHEET_TEXT),
    [STEP_WHAT] = COLUMN("what", "OBJECT", SHEET_TEXT, IN_TABLES, 7, NARROW_CUT),
};
const struct audit_sheet audit_step_sheet = {step_columns, STEP_COLUMNS};

struct audit_sheet audit_open_step_sheet(struct sheet_column memory[static AUDIT_COLUMNS_MAX])
{
    memcpy(memory, step_columns, sizeof step_columns);
    memory[STEP_KEY].where = IN_ALL;
    memory[STEP_AGE].where = IN_ALL;
    memory[STEP_OUTCOME].where = IN_DATA;
    memory[STEP_HTTP].where = IN_DATA;
    return (struct audit_sheet){memory, STEP_COLUMNS};
}

const char *audit_step_state(const struct journal_step_record *step)
{
    if (step->has_outcome)
        return "closed";
    return step->in_flight ? "in_flight" : "in_doubt";
}

void audit_row_of_step(const struct audit *audit, const struct audit_journal *journal,
                       const struct journal_step_record *step, struct audit_row *row)
{
    const struct journal_entry *intent = &step->intent;
    const struct journal_entry *outcome = step->has_outcome ? &step->outcome : NULL;
    struct sheet_cell *cells = row->cells;
    const char *state = audit_step_state(step);
    cells[STEP_ID] = audit_id_cell(audit, journal, intent->seq, &row->ids[0]);
    cells[STEP_KEY] = cell_text(step->key);
    cells[STEP_STATE] = cell_with_tone(cell_text(state), outcome ? TONE_NONE : audit_tone_of(state));
    cells[STEP_OPERATION] = audit_id_cell(audit, journal, intent->operation, &row->ids[1]);
    cells[STEP_RUN] = audit_id_cell(audit, journal, intent->run, &row->ids[2]);
    cells[STEP_ACTION] = cell_text(intent->action);
    cells[STEP_OBJECT] = cell_text(intent->object);
    cells[STEP_NAMESPACE] = cell_text(intent->namespace);
    cells[STEP_NAME] = cell_text(intent->name);
    cells[STEP_UID] = cell_text(intent->uid);
    cells[STEP_VERSION] = cell_text(intent->version);
    cells[STEP_BEGUN] = cell_number(intent->at_us);
    cells[STEP_ENDED] = cell_number_or_null(outcome ? outcome->at_us : 0);
    cells[STEP_DURATION] = outcome ? cell_number(outcome->at_us - intent->at_us) : cell_null();
    cells[STEP_OUTCOME] = cell_text(outcome ? journal_kind_text(outcome->kind) : NULL);
    cells[STEP_OUTCOME].tone = outcome ? tone_of_kind(outcome->kind) : TONE_NONE;
    cells[STEP_HTTP] = cell_number_or_null(outcome ? outcome->http : 0);
    cells[STEP_ATTEMPTS] = cell_number(step->attempts);
    cells[STEP_REASON] = cell_text(intent->reason);
    cells[STEP_OUTCOME_REASON] = cell_text(outcome ? outcome->reason : NULL);
    cells[STEP_VERSION_AFTER] = cell_text(outcome ? outcome->version : NULL);
    cells[STEP_DIGEST] = cell_bytes(intent->digest, SHA256_SIZE);
    cells[STEP_AGE] = outcome ? cell_null() : cell_number(MAX(audit->now_us - intent->at_us, 0));
    cells[STEP_JOURNAL] = journal_cell(journal);
    cells[STEP_WHAT] = object_cell(audit, row, intent->object, intent->name);
}

/* --- waits ------------------------------------------------------------------------------------------ */

enum {
    WAIT_ID,
    WAIT_OPERATION,
    WAIT_FOR,
    WAIT_OBJECT,
    WAIT_NAMESPACE,
    WAIT_NAME,
    WAIT_BEGUN,
    WAIT_ENDED,
    WAIT_DURATION,
    WAIT_OUTCOME,
    WAIT_BUDGET,
    WAIT_SPENT,
    WAIT_HELD,
    WAIT_REASON,
    WAIT_JOURNAL,
    WAIT_COLUMNS
};

static const struct sheet_column wait_columns[WAIT_COLUMNS] = {
    [WAIT_ID] = DATA("wait", SHEET_ID),
    [WAIT_OPERATION] = DATA("operation", SHEET_ID),
    [WAIT_FOR] = DATA("for", SHEET_TEXT),
    [WAIT_OBJECT] = DATA("object", SHEET_TEXT),
    [WAIT_NAMESPACE] = DATA("namespace", SHEET_TEXT),
    [WAIT_NAME] = DATA("name", SHEET_TEXT),
    [WAIT_BEGUN] = DATA("begun", SHEET_TIME),
    [WAIT_ENDED] = DATA("ended", SHEET_TIME),
    [WAIT_DURATION] = DATA("duration_s", SHEET_DURATION),
    [WAIT_OUTCOME] = DATA("outcome", SHEET_TEXT),
    [WAIT_BUDGET] = DATA("budget_s", SHEET_DURATION),
    [WAIT_SPENT] = DATA("spent_s", SHEET_DURATION),
    [WAIT_HELD] = DATA("held", SHEET_BOOL),
    [WAIT_REASON] = DATA("reason", SHEET_TEXT),
    [WAIT_JOURNAL] = DATA("journal", SHEET_TEXT),
};
const struct audit_sheet audit_wait_sheet = {wait_columns, WAIT_COLUMNS};

int64_t audit_wait_spent_us(const struct audit *audit, const struct audit_journal *journal,
                            const struct journal_wait_record *wait)
{
    bool is_running = !wait->has_end && !wait->held && journal->meta->lives;
    int64_t since_us = is_running ? MAX(audit->now_us - journal->meta->head_at_us, INT64_C(0)) : 0;
    return MAX(wait->spent_us, INT64_C(0)) + since_us;
}

void audit_row_of_wait(const struct audit *audit, const struct audit_journal *journal,
                       const struct journal_wait_record *wait, struct audit_row *row)
{
    const struct journal_entry *begin = &wait->begin;
    struct sheet_cell *cells = row->cells;
    cells[WAIT_ID] = audit_id_cell(audit, journal, begin->seq, &row->ids[0]);
    cells[WAIT_OPERATION] = audit_id_cell(audit, journal, begin->operation, &row->ids[1]);
    cells[WAIT_FOR] = cell_text(begin->action);
    cells[WAIT_OBJECT] = cell_text(begin->object);
    cells[WAIT_NAMESPACE] = cell_text(begin->namespace);
    cells[WAIT_NAME] = cell_text(begin->name);
    cells[WAIT_BEGUN] = cell_number(begin->at_us);
    cells[WAIT_ENDED] = cell_number_or_null(wait->has_end ? wait->end.at_us : 0);
    cells[WAIT_DURATION] = wait->has_end ? cell_number(wait->end.at_us - begin->at_us) : cell_null();
    cells[WAIT_OUTCOME] = cell_text(wait->outcome);
    cells[WAIT_BUDGET] = cell_number(wait->budget_us);
    cells[WAIT_SPENT] = cell_number(audit_wait_spent_us(audit, journal, wait));
    cells[WAIT_HELD] = cell_number(wait->held);
    cells[WAIT_REASON] = cell_text(begin->reason);
    cells[WAIT_JOURNAL] = journal_cell(journal);
}

/* --- runs ------------------------------------------------------------------------------------------- */

enum {
    RUN_ID,
    RUN_BEGUN,
    RUN_LAST,
    RUN_DURATION,
    RUN_END,
    RUN_STOP_REASON,
    RUN_IDENTITY,
    RUN_VERSION,
    RUN_PID,
    RUN_NONCE,
    RUN_EPOCH,
    RUN_LAST_SEQ,
    RUN_OPEN_STEPS,
    RUN_JOURNAL,
    RUN_COLUMNS
};

static const struct sheet_column run_columns[RUN_COLUMNS] = {
    [RUN_ID] = COLUMN("run", "RUN", SHEET_ID, IN_ALL, 1, 0),
    [RUN_BEGUN] = COLUMN("begun", "BEGUN", SHEET_TIME, IN_ALL, 2, 0),
    [RUN_LAST] = COLUMN("last", "LAST ENTRY", SHEET_TIME, IN_ALL, 3, 0),
    [RUN_DURATION] = COLUMN("duration_s", "LASTED", SHEET_DURATION, IN_ALL, 4, 0),
    [RUN_END] = COLUMN("end", "END", SHEET_TEXT, IN_ALL, 5, 0),
    [RUN_STOP_REASON] = COLUMN("stop_reason", "WHY", SHEET_TEXT, IN_ALL, 6, NARROW_CUT),
    [RUN_IDENTITY] = COLUMN("identity", "WHO", SHEET_TEXT, IN_ALL, 7, NARROW_CUT),
    [RUN_VERSION] = COLUMN("version", "VERSION", SHEET_TEXT, IN_ALL, 8, NARROW_CUT),
    [RUN_PID] = COLUMN("pid", "PID", SHEET_NUMBER, IN_WIDE | IN_DATA, 9, 0),
    [RUN_NONCE] = COLUMN("nonce", "NONCE", SHEET_TEXT, IN_WIDE | IN_DATA, 10, 0),
    [RUN_EPOCH] = COLUMN("epoch", "EPOCH", SHEET_NUMBER, IN_ALL, 11, 0),
    [RUN_LAST_SEQ] = COLUMN("last_seq", "LAST SEQ", SHEET_NUMBER, IN_WIDE | IN_DATA, 12, 0),
    [RUN_OPEN_STEPS] = COLUMN("open_steps", "OPEN STEPS", SHEET_NUMBER, IN_ALL, 13, 0),
    [RUN_JOURNAL] = COLUMN("journal", "JOURNAL", SHEET_TEXT, IN_WIDE | IN_DATA, 14, 0),
};
const struct audit_sheet audit_run_sheet = {run_columns, RUN_COLUMNS};

void audit_row_of_run(const struct audit *audit, const struct audit_journal *journal,
                      const struct journal_run_record *run, struct audit_row *row)
{
    static const char *const ends[] = {
        [JOURNAL_RUN_LIVES] = "lives", [JOURNAL_RUN_STOPPED] = "stopped", [JOURNAL_RUN_DIED] = "died"};
    struct sheet_cell *cells = row->cells;
    cells[RUN_ID] = audit_id_cell(audit, journal, run->run, &row->ids[0]);
    cells[RUN_BEGUN] = cell_number(run->begun_us);
    cells[RUN_LAST] = cell_number(run->last_us);
    cells[RUN_DURATION] = cell_number(run->last_us - run->begun_us);
    cells[RUN_END] = cell_with_tone(cell_text(ends[run->end]), audit_tone_of(ends[run->end]));
    cells[RUN_STOP_REASON] = cell_text(run->stop_reason);
    cells[RUN_IDENTITY] = cell_text(run->identity);
    cells[RUN_VERSION] = cell_text(run->version);
    cells[RUN_PID] = cell_number_or_null(run->pid);
    cells[RUN_NONCE] = cell_text(run->nonce);
    cells[RUN_EPOCH] = cell_number(run->epoch);
    cells[RUN_LAST_SEQ] = cell_number(run->last_seq);
    cells[RUN_OPEN_STEPS] = cell_number(run->open_steps);
    cells[RUN_JOURNAL] = journal_cell(journal);
}
