/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "journal/reader_parts.h"

struct run_visit {
    struct journal_entry last;
    int open_steps;
    bool found;
};

static int run_at(const struct journal_reader *reader, const struct run_visit *visit,
                  struct journal_run_record *run)
{
    run->last_us = visit->last.at_us;
    run->last_seq = visit->last.seq;
    run->epoch = visit->last.epoch;
    run->open_steps = visit->open_steps;
    if (visit->last.kind == JOURNAL_STOP) {
        run->end = JOURNAL_RUN_STOPPED;
        run->stop_reason = visit->last.reason ? visit->last.reason : "";
    } else if (reader->meta.lives && run->run == reader->meta.newest_run) {
        run->end = JOURNAL_RUN_LIVES;
    } else {
        run->end = JOURNAL_RUN_DIED;
    }
    return 0;
}

static void visit_count(void *context, sqlite3_stmt *statement)
{
    int *count = context;
    *count = sqlite3_column_int(statement, 0);
}

static int count_open_steps(struct journal_reader *reader, int64_t run, int *ret, struct error **err)
{
    struct query query = QUERY_INIT;
    query_add_number(
        &query,
        "SELECT count(*) FROM open_step AS o CROSS JOIN entry AS e ON e.seq = o.step WHERE e.run = ", run);
    int result = query_run(reader, &query, visit_count, ret, err);
    query_done(&query);
    return result;
}

static int read_one(struct journal_reader *reader, int64_t seq, struct page *page, struct error **err)
{
    page_clear(page);
    struct query query = QUERY_INIT;
    query_add_number(&query, "SELECT " ROW_COLUMNS("") " FROM entry WHERE seq = ", seq);
    int result = query_run(reader, &query, page_visit, page, err);
    query_done(&query);
    return result;
}

/* first: the run's start entry, or the checkpoint that stands for a pruned one. last_seq: its newest entry.
 */
static int hand_out(struct journal_reader *reader, const struct journal_entry *first, int64_t last_seq,
                    journal_run_each *each, void *context, bool *ret_more, struct error **err)
{
    struct page page = {0};
    struct run_visit visit = {0};
    int result = read_one(reader, last_seq, &page, err);
    if (result == 0)
        result = count_open_steps(reader, first->run, &visit.open_steps, err);
    if (result < 0 || page.count == 0) {
        page_done(&page);
        return result;
    }
    visit.last = page.entries[0];
    CLEANUP_JSON cJSON *detail = NULL;
    if (first->detail && json_parse(first->detail, strlen(first->detail), &detail, NULL) < 0)
        detail = NULL;
    struct journal_run_record run = {
        .run = first->run,
        .nonce = json_str(detail, "nonce"),
        .identity = json_str(detail, "identity"),
        .version = json_str(detail, "version"),
        .pid = json_int64_or(detail, "pid", 0),
        .begun_us = first->at_us,
    };
    run_at(reader, &visit, &run);
    *ret_more = each(context, &run);
    page_done(&page);
    return 0;
}

/* Newest starts below `before`. */
static int read_starts(struct journal_reader *reader, int64_t before, struct page *page, struct error **err)
{
    page_clear(page);
    struct query query = QUERY_INIT;
    query_add(&query, "SELECT " ROW_COLUMNS("") " FROM entry WHERE kind = 'start'");
    query_add_number(&query, " AND seq < ", before);
    query_add_number(&query, " AND seq > ", reader->meta.pruned_seq);
    query_add_number(&query, " ORDER BY seq DESC LIMIT ", READER_PAGE_ROWS);
    int result = query_run(reader, &query, page_visit, page, err);
    query_done(&query);
    return result;
}

/* The run that was under way where the pruned range ends. */
static int hand_out_cut(struct journal_reader *reader, int64_t last_seq, journal_run_each *each,
                        void *context, struct error **err)
{
    struct page page = {0};
    bool ignored = false;
    int result = read_one(reader, reader->meta.pruned_seq + 1, &page, err);
    if (result == 0 && page.count == 1 && page.entries[0].kind != JOURNAL_START)
        result = hand_out(reader, &page.entries[0], last_seq, each, context, &ignored, err);
    page_done(&page);
    return result;
}

int journal_read_runs(struct journal_reader *reader, int64_t limit, journal_run_each *each, void *context,
                      struct error **err)
{
    struct page page = {0};
    int64_t last_seq = reader->meta.head_seq;
    int64_t left = limit > 0 ? limit : INT64_MAX;
    bool more = true;
    bool all = false;
    int result = 0;
    while (result == 0 && more && !all && left > 0) {
        result = read_starts(reader, last_seq + 1, &page, err);
        all = page.count < READER_PAGE_ROWS;
        for (size_t i = 0; result == 0 && more && left > 0 && i < page.count; i++, left--) {
            result = hand_out(reader, &page.entries[i], last_seq, each, context, &more, err);
            last_seq = page.entries[i].seq - 1;
        }
    }
    page_done(&page);
    if (result == 0 && more && left > 0 && last_seq > reader->meta.pruned_seq)
        result = hand_out_cut(reader, last_seq, each, context, err);
    return result;
}
