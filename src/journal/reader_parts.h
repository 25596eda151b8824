/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader from inside: what its parts share. Only src/journal includes this. */
#pragma once

#include "base/json.h"
#include "journal/arena.h"
#include "journal/place.h"
#include "journal/reader.h"
#include "journal/row.h"

#include <sqlite3.h>

enum { READER_PAGE_ROWS = 1000, READER_PARAMETERS_MAX = 16 };

struct nonce; /* of a run, as far as it was looked up */

/* The newest schema that we know. */
enum { READER_SCHEMA_NEWEST = 1 };

/* A failure while reading, as a sentence. */
int reader_fail(struct journal_reader *reader, int sqlite_code, struct error **err);

/* Reads the identity and the head anew, in the caller's transaction. */
int reader_read_meta(struct journal_reader *reader, struct error **err);

/* A query that is put together: text and parameters. */
struct query {
    struct buf sql;
    struct {
        bool is_text;
        int64_t number;
        const char *text;
    } parameters[READER_PARAMETERS_MAX];
    int count;
};
#define QUERY_INIT                                                                                           \
    {                                                                                                        \
        .sql = BUF_INIT(16 << 10)                                                                            \
    }
void query_add(struct query *query, const char *sql);
/* Adds "condition ?n": the text must end where the parameter goes. text NULL binds NULL. */
void query_add_number(struct query *query, const char *sql, int64_t number);
void query_add_text(struct query *query, const char *sql, const char *text);
void query_done(struct query *query);
int query_prepare(struct journal_reader *reader, const struct query *query, sqlite3_stmt **ret,
                  struct error **err);
/* Steps until done or page rows; visit copies what it needs. The statement is finalized. */
typedef void query_visit(void *context, sqlite3_stmt *statement);
int query_run(struct journal_reader *reader, const struct query *query, query_visit *visit, void *context,
              struct error **err);

#define READER_OPERATION_COLUMNS                                                                             \
    "id, kind, object, namespace, name, come_from, go_to, begun_us, ended_us, outcome, steps, attempts"

/* Queries that are asked for every row of a page: prepared once. Parameters are numbers. */
#define READER_KEPT(X)                                                                                       \
    X(OUTCOME,                                                                                               \
      "SELECT " ROW_COLUMNS(                                                                                 \
          "") " FROM entry WHERE step = ?1 AND (kind = 'applied'"                                            \
              " OR kind = 'rejected' OR kind = 'overtaken' OR kind = 'not_sent' OR kind = 'absent')"         \
              " AND seq <= ?2")                                                                              \
    X(UNKNOWNS, "SELECT count(*), max(at_us) FROM entry WHERE operation = ?1 AND kind = 'unknown'"           \
                " AND +step = ?2 AND seq > ?2 AND seq <= ?3")                                                \
    X(HAS_BODY, "SELECT 1 FROM body WHERE step = ?1")                                                        \
    X(OPEN_WAIT, "SELECT spent_us, since_us FROM open_wait WHERE wait = ?1")                                 \
    X(WAIT_ENDS, "SELECT " ROW_COLUMNS("") " FROM entry WHERE operation = ?1 AND kind = 'wait_end'"          \
                                           " AND seq > ?2 AND seq <= ?3 ORDER BY seq")                       \
    X(FREE_WAIT_ENDS,                                                                                        \
      "SELECT " ROW_COLUMNS("") " FROM entry WHERE operation IS NULL"                                        \
                                " AND kind = 'wait_end' AND seq > ?2 AND seq <= ?3 ORDER BY seq")            \
    X(OPERATION, "SELECT " READER_OPERATION_COLUMNS " FROM operation WHERE id = ?1")                         \
    X(COUNTS,                                                                                                \
      "SELECT count(*) FILTER (WHERE kind = 'intent'),"                                                      \
      " count(*) FILTER (WHERE kind = 'intent' OR kind = 'unknown') FROM entry WHERE operation = ?1")

enum reader_kept {
#define X(name, sql) READER_##name,
    READER_KEPT(X)
#undef X
        READER_KEPT_COUNT,
};
struct journal_reader {
    struct place place;
    sqlite3 *db;
    struct journal_meta meta;
    char *journal_id;
    char *notice;
    int64_t data_version; /* PRAGMA data_version at the snapshot */
    int64_t head_run;
    int64_t head_mono_us;
    bool had_wal_file; /* beside the file when it was opened */
    bool had_wal;      /* and not empty */
    struct nonce *nonces;
    sqlite3_stmt *kept[READER_KEPT_COUNT];
};

/* Steps until done or until visit has enough (false); the statement is reset. */
typedef bool kept_visit(void *context, sqlite3_stmt *statement);
int kept_run(struct journal_reader *reader, enum reader_kept kept, const int64_t *numbers, int count,
             kept_visit *visit, void *context, struct error **err);
/* Around the queries of one page: one moment, and one lock. Ended before anything is handed out. */
int reader_begin(struct journal_reader *reader, struct error **err);
void reader_end(struct journal_reader *reader);

/* The number at key in an entry's detail, or 0. Ours begin with it: a look at the text saves a parse a row.
 */
int64_t reader_detail_number(const char *detail, const char *key);

/* Entries copied out of a statement. */
struct page {
    struct arena arena;
    struct journal_entry *entries;
    size_t count;
    size_t room;
    bool unsound;        /* a row could not be read */
    int64_t unsound_seq; /* of the first such row */
};
void page_clear(struct page *page);
void page_done(struct page *page);
/* Copies *entry with its texts into the arena. */
struct journal_entry page_copy(struct arena *arena, const struct journal_entry *entry);
/* query_visit: columns 0.. are ROW_COLUMNS. */
void page_visit(void *page, sqlite3_stmt *statement);

/* One page of entries that fit the filter, after (or, newest first, before) the cursor. At most rows. */
struct entry_cursor {
    struct journal_entry_filter filter;
    const char *action; /* also: this action */
    int64_t low;        /* seq > low */
    int64_t high;       /* seq <= high */
    int64_t left;       /* of the limit */
    bool done;
};
int entry_cursor_begin(struct journal_reader *reader, const struct journal_entry_filter *filter,
                       struct entry_cursor *ret, struct error **err);
int entry_cursor_next(struct journal_reader *reader, struct entry_cursor *cursor, struct page *page,
                      struct error **err);

/* The nonce of a run, or NULL when its start was pruned and is known no more. The reader's. */
int reader_nonce(struct journal_reader *reader, int64_t run, const char **ret, struct error **err);
void reader_nonces_free(struct journal_reader *reader);
