/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/reader_parts.h"

#include <uthash.h>

/* --- nonces ----------------------------------------------------------------------------------- */

struct nonce {
    int64_t run;
    char *text; /* NULL: not known any more */
    UT_hash_handle hh;
};

static void visit_detail(void *context, sqlite3_stmt *statement)
{
    char **detail = context;
    str_replace(detail, (const char *)sqlite3_column_text(statement, 0));
}

static int read_detail(struct journal_reader *reader, const char *sql, int64_t run, char **ret,
                       struct error **err)
{
    struct query query = QUERY_INIT;
    query_add_number(&query, sql, run);
    int result = query_run(reader, &query, visit_detail, ret, err);
    query_done(&query);
    return result;
}

int reader_nonce(struct journal_reader *reader, int64_t run, const char **ret, struct error **err)
{
    struct nonce *nonce = NULL;
    HASH_FIND(hh, reader->nonces, &run, sizeof(run), nonce);
    if (nonce) {
        *ret = nonce->text;
        return 0;
    }
    CLEANUP_FREE char *detail = NULL;
    int result =
        read_detail(reader, "SELECT detail FROM entry WHERE kind = 'start' AND seq = ", run, &detail, err);
    /* The start was pruned: the checkpoint that the history begins with repeats it. */
    if (result == 0 && !detail)
        result = read_detail(reader,
                             "SELECT detail FROM entry WHERE seq = (SELECT pruned_seq + 1 FROM meta)"
                             " AND kind = 'checkpoint' AND run = ",
                             run, &detail, err);
    if (result < 0)
        return result;
    CLEANUP_JSON cJSON *tree = NULL;
    if (detail && json_parse(detail, strlen(detail), &tree, NULL) < 0)
        tree = NULL;
    nonce = xcalloc(1, sizeof(*nonce));
    nonce->run = run;
    nonce->text = xstrdup_or_null(json_str(tree, "nonce"));
    HASH_ADD(hh, reader->nonces, run, sizeof(nonce->run), nonce);
    *ret = nonce->text;
    return 0;
}

void reader_nonces_free(struct journal_reader *reader)
{
    struct nonce *nonce = NULL;
    struct nonce *next = NULL;
    HASH_ITER (hh, reader->nonces, nonce, next) {
        HASH_DEL(reader->nonces, nonce);
        free(nonce->text);
        free(nonce);
    }
}

/* --- steps ------------------------------------------------------------------------------------ */

struct step_visit {
    struct arena *arena;
    struct journal_step_record *step;
    int unknowns;
    int64_t unknown_at_us;
};

static bool visit_outcome(void *context, sqlite3_stmt *statement)
{
    struct step_visit *visit = context;
    struct journal_entry outcome;
    if (!row_read(statement, 0, &outcome))
        return true;
    visit->step->has_outcome = true;
    visit->step->outcome = page_copy(visit->arena, &outcome);
    return true;
}

static bool visit_unknowns(void *context, sqlite3_stmt *statement)
{
    struct step_visit *visit = context;
    visit->unknowns = sqlite3_column_int(statement, 0);
    visit->unknown_at_us = sqlite3_column_int64(statement, 1);
    return true;
}

static bool visit_has_body(void *context, sqlite3_stmt *statement)
{
    struct step_visit *visit = context;
    (void)statement;
    visit->step->has_body = true;
    return true;
}

static int read_outcome(struct journal_reader *reader, struct step_visit *visit, struct error **err)
{
    const int64_t numbers[] = {visit->step->intent.seq, reader->meta.head_seq};
    return kept_run(reader, READER_OUTCOME, numbers, ARRAY_SIZE(numbers), visit_outcome, visit, err);
}

static int read_unknowns(struct journal_reader *reader, struct step_visit *visit, struct error **err)
{
    const struct journal_entry *intent = &visit->step->intent;
    const int64_t numbers[] = {intent->operation, intent->seq, reader->meta.head_seq};
    return kept_run(reader, READER_UNKNOWNS, numbers, ARRAY_SIZE(numbers), visit_unknowns, visit, err);
}

static int read_has_body(struct journal_reader *reader, struct step_visit *visit, struct error **err)
{
    return kept_run(reader, READER_HAS_BODY, &visit->step->intent.seq, 1, visit_has_body, visit, err);
}

static int complete(struct journal_reader *reader, struct arena *arena, struct journal_step_record *step,
                    struct error **err)
{
    struct step_visit visit = {.arena = arena, .step = step};
    const char *nonce = NULL;
    int result = reader_nonce(reader, step->intent.run, &nonce, err);
    if (result == 0)
        result = read_outcome(reader, &visit, err);
    if (result == 0 && (!step->has_outcome || step->outcome.attempt == 0))
        result = read_unknowns(reader, &visit, err);
    if (result == 0 && step->intent.digest)
        result = read_has_body(reader, &visit, err);
    if (result < 0)
        return result;
    CLEANUP_FREE char *key = xasprintf("%s-%lld", nonce ? nonce : "?", (long long)step->intent.seq);
    step->key = arena_copy_text(arena, key);
    step->attempts = step->has_outcome && step->outcome.attempt ? step->outcome.attempt : visit.unknowns + 1;
    step->last_at_us = step->intent.at_us;
    if (visit.unknowns)
        step->last_at_us = visit.unknown_at_us;
    if (step->has_outcome)
        step->last_at_us = step->outcome.at_us;
    step->in_flight = !step->has_outcome && visit.unknowns == 0 && reader->meta.lives &&
                      step->intent.run == reader->meta.newest_run;
    return 0;
}

/* In the transaction that the page was read in; ended here. The steps are the caller's. */
static int complete_page(struct journal_reader *reader, struct page *page, struct journal_step_record **ret,
                         struct error **err)
{
    struct journal_step_record *steps = xcalloc(page->count + 1, sizeof(*steps));
    int result = 0;
    for (size_t i = 0; result == 0 && i < page->count; i++) {
        steps[i].intent = page->entries[i];
        result = complete(reader, &page->arena, &steps[i], err);
    }
    reader_end(reader);
    if (result == 0)
        *ret = steps;
    else
        free(steps);
    return result;
}

/* No statement and no transaction is open while a callback runs. */
static int hand_out(struct journal_reader *reader, struct page *page, journal_step_each *each, void *context,
                    bool *ret_more, struct error **err)
{
    CLEANUP_FREE struct journal_step_record *steps = NULL;
    int result = complete_page(reader, page, &steps, err);
    bool more = result == 0 && page->count > 0;
    for (size_t i = 0; more && i < page->count; i++)
        more = each(context, &steps[i]);
    *ret_more = more;
    return result;
}

int journal_read_steps(struct journal_reader *reader, const struct journal_step_filter *filter,
                       journal_step_each *each, void *context, struct error **err)
{
    struct journal_entry_filter entries = {
        .after_seq = filter->step > 0 ? filter->step - 1 : filter->after_seq,
        .through_seq = filter->step,
        .operation = filter->operation,
        .since_us = filter->since_us,
        .until_us = filter->until_us,
        .kinds = JOURNAL_KIND_BIT(JOURNAL_INTENT),
        .object = filter->object,
        .namespace = filter->namespace,
        .name = filter->name,
        .limit = filter->limit,
    };
    struct entry_cursor cursor;
    struct page page = {0};
    bool more = true;
    int result = entry_cursor_begin(reader, &entries, &cursor, err);
    if (result == 0)
        cursor.action = filter->action;
    while (result == 0 && more) {
        result = reader_begin(reader, err);
        if (result == 0)
            result = entry_cursor_next(reader, &cursor, &page, err);
        if (result == 0)
            result = hand_out(reader, &page, each, context, &more, err);
    }
    reader_end(reader);
    page_done(&page);
    return result;
}

static int read_open_page(struct journal_reader *reader, int64_t after, struct page *page, struct error **err)
{
    page_clear(page);
    struct query query = QUERY_INIT;
    query_add(&query,
              "SELECT " ROW_COLUMNS("e.") " FROM open_step AS o CROSS JOIN entry AS e ON e.seq = o.step");
    query_add_number(&query, " WHERE o.step > ", after);
    query_add_number(&query, " AND o.step <= ", reader->meta.head_seq);
    query_add_number(&query, " ORDER BY o.step LIMIT ", READER_PAGE_ROWS);
    int result = query_run(reader, &query, page_visit, page, err);
    query_done(&query);
    return result;
}

int journal_read_open_steps(struct journal_reader *reader, journal_step_each *each, void *context,
                            struct error **err)
{
    struct page page = {0};
    int64_t after = 0;
    bool more = true;
    int result = 0;
    while (result == 0 && more) {
        result = reader_begin(reader, err);
        if (result == 0)
            result = read_open_page(reader, after, &page, err);
        if (result == 0 && page.count > 0)
            after = page.entries[page.count - 1].seq;
        if (result == 0)
            result = hand_out(reader, &page, each, context, &more, err);
    }
    reader_end(reader);
    page_done(&page);
    return result;
}
