/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal's figures, each beside what it is compared with, in one run:
 *   journal_bench append [ENTRIES]       entries a second through journal_append, everything on, against the
 * same rows by plain SQLite group commit (256 a transaction, FULL), interleaved journal_bench make FILE
 * ENTRIES      writes a journal, its entries 30 s apart on the wall clock journal_bench open FILE
 * journal_open() as it is, and with a WAL of 16 MB left behind journal_bench verify FILE            verify
 * --quick journal_bench all FOLDER [ENTRIES]   all of it; leaves FOLDER/journal.db for other benches Scratch
 * files lie in the current folder (append) or beside FILE. */
#include "journal_workload.h"

#include "env/env.h"
#include "journal/journal.h"
#include "journal/migrate.h"
#include "journal/row.h"
#include "journal/verify.h"

#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 256, ROUNDS = 20, WAL_BYTES = 16 << 20, APPEND_ENTRIES = 400000, FULL_ENTRIES = 1000000 };
#define ENTRY_EVERY_US 30000000LL
#define FIRST_AT_US 1735689600000000LL /* 2025-01-01 */

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

_Noreturn static void fail(const char *what, const char *text)
{
    fprintf(stderr, "journal_bench: %s: %s\n", what, text);
    exit(1);
}

static void remove_journal(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-ballast", "-journal", ".lock"};
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        CLEANUP_FREE char *name = xasprintf("%s%s", path, ends[i]);
        (void)unlink(name);
    }
    CLEANUP_FREE char *lock = xstrndup(path, strlen(path) - 3);
    CLEANUP_FREE char *name = xasprintf("%s.lock", lock);
    (void)unlink(name);
}

/* --- the journal ------------------------------------------------------------------------------ */

struct writing {
    struct env *env;
    struct journal *journal;
    struct workload workload;
    int64_t left;
    int64_t batch;
    int in_flight;
    int64_t operation;
    int64_t step;
    int64_t wall_us; /* 0: the real clock */
};

static struct writing *clock_of;

static int64_t slow_wall_us(struct env *env)
{
    (void)env;
    return clock_of->wall_us;
}

static void append_one(struct writing *writing)
{
    struct journal_entry entry;
    const char *body = NULL;
    int64_t operation = 0;
    int64_t step = 0;
    struct journal *journal = writing->journal;
    workload_next(&writing->workload, &entry, &body, &operation, &step);
    bool ill = writing->workload.number / WORKLOAD_ENTRIES % 50 == 7;
    writing->wall_us += writing->wall_us ? ENTRY_EVERY_US : 0;
    entry.operation = entry.kind == JOURNAL_BEGIN ? 0 : writing->operation;
    if (entry.kind == JOURNAL_END && ill)
        entry.action = "failed";
    if (entry.kind == JOURNAL_BEGIN) {
        writing->operation = journal_append(journal, &entry);
    } else if (entry.kind == JOURNAL_INTENT) {
        writing->step = journal_append_intent(journal, &entry, body, WORKLOAD_BODY_BYTES, true);
    } else if (entry.kind == JOURNAL_WAIT_BEGIN) {
        journal_wait_begin(journal, entry.operation, entry.action, entry.object, entry.namespace, entry.name,
                           300000000, NULL);
    } else if (entry.kind == JOURNAL_WAIT_END) {
        journal_wait_end(journal,
                         journal_wait_find(journal, entry.action, entry.object, entry.namespace, entry.name),
                         "done");
    } else {
        entry.step = entry.kind == JOURNAL_APPLIED ? writing->step : 0;
        journal_append(journal, &entry);
    }
    writing->left--;
}

static void on_durable(void *context);

static void append_batch(struct writing *writing)
{
    for (int64_t i = 0; i < writing->batch && writing->left > 0; i++)
        append_one(writing);
    writing->in_flight++;
    journal_when_durable(writing->journal, journal_next_seq(writing->journal) - 1, on_durable, writing);
    journal_commit(writing->journal);
}

static void on_durable(void *context)
{
    struct writing *writing = context;
    writing->in_flight--;
    if (writing->left > 0)
        append_batch(writing);
    else if (writing->in_flight == 0)
        env_stop(writing->env);
}

static void open_or_fail(struct env *env, const char *path, struct journal **ret)
{
    struct error *err = NULL;
    struct journal_options options = {.path = path, .identity = "bench", .version = "bench"};
    if (journal_open(env, &options, ret, &err) < 0)
        fail("open", error_text(err));
}

static void on_health(void *context)
{
    const struct writing *writing = context;
    if (journal_health(writing->journal) == JOURNAL_DEAD)
        fail("journal", journal_problem(writing->journal));
}

/* Seconds for so many entries. Two batches are under way: one with the worker, one being filled. */
static double write_journal(struct writing *writing, const char *path, int64_t entries, int64_t batch)
{
    writing->left = entries;
    writing->batch = batch;
    if (!writing->journal)
        open_or_fail(writing->env, path, &writing->journal);
    journal_on_health(writing->journal, on_health, writing);
    double begin = now_s();
    append_batch(writing);
    append_batch(writing);
    env_run(writing->env);
    return now_s() - begin;
}

/* --- plain SQLite ----------------------------------------------------------------------------- */

/* The same rows in the same tables, by a program that only groups its commits: without secondary indexes,
 * triggers and hashes, without the loop. */
enum plain_statement {
    PLAIN_ENTRY,
    PLAIN_BODY,
    PLAIN_OPERATION_BEGIN,
    PLAIN_OPERATION_END,
    PLAIN_STEP_OPEN,
    PLAIN_STEP_CLOSE,
    PLAIN_WAIT_OPEN,
    PLAIN_WAIT_CLOSE,
    PLAIN_STATEMENT_COUNT,
};

static const char *const plain_sql[PLAIN_STATEMENT_COUNT] = {
    [PLAIN_ENTRY] =
        "INSERT INTO entry VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,"
        "?21,?22)",
    [PLAIN_BODY] = "INSERT INTO body VALUES (?1, ?2, ?3)",
    [PLAIN_OPERATION_BEGIN] =
        "INSERT INTO operation (id, kind, object, namespace, name, come_from, go_to, begun_us)"
        " VALUES (?1, ?2, ?3, ?4, ?5, 'mysql:8.0', 'mysql:8.1', 1)",
    [PLAIN_OPERATION_END] =
        "UPDATE operation SET ended_us = 2, outcome = ?2, steps = 12, attempts = 12 WHERE id = ?1",
    [PLAIN_STEP_OPEN] = "INSERT INTO open_step (step, object, namespace, name, blocks, last_at_us)"
                        " VALUES (?1, ?2, ?3, ?4, 0, 1)",
    [PLAIN_STEP_CLOSE] = "DELETE FROM open_step WHERE step = ?1",
    [PLAIN_WAIT_OPEN] =
        "INSERT INTO open_wait (wait, object, namespace, name, action, budget_us, spent_us, since_us)"
        " VALUES (?1, ?2, ?3, ?4, 'ready', 300000000, 0, 1)",
    [PLAIN_WAIT_CLOSE] = "DELETE FROM open_wait WHERE wait = ?1",
};

struct plain {
    sqlite3 *db;
    sqlite3_stmt *statements[PLAIN_STATEMENT_COUNT];
    struct workload workload;
    int64_t operation;
    int64_t wait;
};

static void execute(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail(sql, sqlite3_errmsg(db));
}

static int drop_one(void *context, int columns, char **values, char **names)
{
    (void)names;
    struct buf *sql = context;
    return columns == 2 ? buf_addf(sql, "DROP %s %s;", values[0], values[1]) : 1;
}

static void open_plain(struct plain *plain, const char *path)
{
    if (sqlite3_open(path, &plain->db) != SQLITE_OK)
        fail("open", path);
    execute(plain->db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=2000;"
                       "PRAGMA journal_size_limit=16777216");
    struct migrations migrations = migrations_embedded();
    for (int i = 0; i < migrations.count; i++)
        execute(plain->db, migrations.sql[i]);
    CLEANUP_BUF struct buf sql = BUF_INIT(1 << 16);
    if (sqlite3_exec(
            plain->db,
            "SELECT type, name FROM sqlite_schema WHERE type IN ('index', 'trigger') AND sql NOT NULL",
            drop_one, &sql, NULL) != SQLITE_OK)
        fail("schema", sqlite3_errmsg(plain->db));
    execute(plain->db, buf_text(&sql));
    for (int i = 0; i < PLAIN_STATEMENT_COUNT; i++)
        if (sqlite3_prepare_v2(plain->db, plain_sql[i], -1, &plain->statements[i], NULL) != SQLITE_OK)
            fail(plain_sql[i], sqlite3_errmsg(plain->db));
}

static void step_once(struct plain *plain, enum plain_statement statement)
{
    if (sqlite3_step(plain->statements[statement]) != SQLITE_DONE)
        fail(plain_sql[statement], sqlite3_errmsg(plain->db));
    sqlite3_reset(plain->statements[statement]);
}

/* Numbers and texts in the order of the parameters: 'n' int64_t, 's' const char *. */
static void run_plain(struct plain *plain, enum plain_statement statement, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    for (int i = 0; format[i]; i++) {
        if (format[i] == 'n')
            sqlite3_bind_int64(plain->statements[statement], i + 1, va_arg(args, int64_t));
        else
            sqlite3_bind_text(plain->statements[statement], i + 1, va_arg(args, const char *), -1,
                              SQLITE_STATIC);
    }
    va_end(args);
    step_once(plain, statement);
}

static void insert_derived(struct plain *plain, const struct journal_entry *entry, const char *body)
{
    static const uint8_t salt[16] = {1};
    switch (entry->kind) {
    case JOURNAL_BEGIN:
        run_plain(plain, PLAIN_OPERATION_BEGIN, "nssss", entry->seq, entry->action, entry->object,
                  entry->namespace, entry->name);
        break;
    case JOURNAL_END:
        run_plain(plain, PLAIN_OPERATION_END, "ns", entry->operation, entry->action);
        break;
    case JOURNAL_INTENT:
        run_plain(plain, PLAIN_STEP_OPEN, "nsss", entry->seq, entry->object, entry->namespace, entry->name);
        sqlite3_bind_int64(plain->statements[PLAIN_BODY], 1, entry->seq);
        sqlite3_bind_blob(plain->statements[PLAIN_BODY], 2, salt, sizeof(salt), SQLITE_STATIC);
        sqlite3_bind_blob(plain->statements[PLAIN_BODY], 3, body, WORKLOAD_BODY_BYTES, SQLITE_STATIC);
        step_once(plain, PLAIN_BODY);
        break;
    case JOURNAL_APPLIED:
        run_plain(plain, PLAIN_STEP_CLOSE, "n", entry->step);
        break;
    case JOURNAL_WAIT_BEGIN:
        plain->wait = entry->seq;
        run_plain(plain, PLAIN_WAIT_OPEN, "nsss", entry->seq, entry->object, entry->namespace, entry->name);
        break;
    case JOURNAL_WAIT_END:
        run_plain(plain, PLAIN_WAIT_CLOSE, "n", plain->wait);
        break;
    default:
        break;
    }
}

static void insert_plain(struct plain *plain)
{
    static const uint8_t noise[SHA256_SIZE] = {1};
    struct journal_entry entry;
    const char *body = NULL;
    int64_t operation = 0;
    int64_t step = 0;
    int64_t seq = plain->workload.number + 2;
    workload_next(&plain->workload, &entry, &body, &operation, &step);
    entry.seq = seq;
    entry.run = 1;
    entry.epoch = 1;
    entry.at_us = FIRST_AT_US + seq;
    entry.mono_us = seq;
    entry.operation = operation + 2;
    entry.step = body ? seq : step < 0 ? 0 : step + 2;
    entry.digest = body ? noise : NULL;
    entry.hash = noise;
    row_bind(plain->statements[PLAIN_ENTRY], &entry);
    step_once(plain, PLAIN_ENTRY);
    insert_derived(plain, &entry, body);
}

static double write_plain(struct plain *plain, int64_t entries)
{
    double begin = now_s();
    for (int64_t i = 0; i < entries; i++) {
        if (i % BATCH == 0)
            execute(plain->db, "BEGIN IMMEDIATE");
        insert_plain(plain);
        if (i % BATCH == BATCH - 1 || i == entries - 1)
            execute(plain->db, "COMMIT");
    }
    return now_s() - begin;
}

static void close_plain(struct plain *plain)
{
    for (int i = 0; i < PLAIN_STATEMENT_COUNT; i++)
        sqlite3_finalize(plain->statements[i]);
    sqlite3_close(plain->db);
}

/* --- figures ---------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Many short rounds, one beside the other: a neighbour on the disk troubles both. The ratio is the median of
 * the rounds'. */
static void bench_append(int64_t entries)
{
    static const char journal_path[] = "bench-append.db";
    static const char plain_path[] = "bench-plain.db";
    struct writing writing = {.env = env_real_make()};
    struct plain plain = {0};
    double journal_s = 0;
    double plain_s = 0;
    double journal_cpu_s = 0;
    double plain_cpu_s = 0;
    double ratios[ROUNDS];
    remove_journal(journal_path);
    remove_journal(plain_path);
    open_or_fail(writing.env, journal_path, &writing.journal);
    open_plain(&plain, plain_path);
    for (int round = 0; round < ROUNDS; round++) {
        double cpu = cpu_s();
        double plain_round_s = write_plain(&plain, entries / ROUNDS);
        plain_cpu_s += cpu_s() - cpu;
        cpu = cpu_s();
        double journal_round_s = write_journal(&writing, journal_path, entries / ROUNDS, BATCH);
        journal_cpu_s += cpu_s() - cpu;
        ratios[round] = plain_round_s / journal_round_s;
        plain_s += plain_round_s;
        journal_s += journal_round_s;
    }
    qsort(ratios, ROUNDS, sizeof(ratios[0]), by_size);
    double ratio = (ratios[ROUNDS / 2 - 1] + ratios[ROUNDS / 2]) / 2;
    printf("journal append, all on      %8.0f entries/s  %5.1f us CPU an entry\n",
           (double)entries / journal_s, journal_cpu_s * 1e6 / (double)entries);
    printf("plain SQLite group commit   %8.0f entries/s  %5.1f us CPU an entry\n", (double)entries / plain_s,
           plain_cpu_s * 1e6 / (double)entries);
    printf("ratio                       %8.2f            goal >= 0.5: %s\n", ratio,
           ratio >= 0.5 ? "reached" : "MISSED");
    journal_close(writing.journal, "bench");
    close_plain(&plain);
    env_free(writing.env);
    remove_journal(journal_path);
    remove_journal(plain_path);
}

static void bench_make(const char *path, int64_t entries)
{
    struct writing writing = {.env = env_real_make(), .wall_us = FIRST_AT_US};
    struct env_ops ops = *writing.env->ops;
    remove_journal(path);
    clock_of = &writing;
    ops.wall_us = slow_wall_us;
    writing.env->ops = &ops;
    double took_s = write_journal(&writing, path, entries, 2048);
    journal_close(writing.journal, "made");
    env_free(writing.env);
    struct stat status;
    if (stat(path, &status) != 0)
        fail("stat", path);
    printf("made %lld entries in %.1f s, %.0f bytes an entry\n", (long long)entries, took_s,
           (double)status.st_size / (double)entries);
}

static double time_open(struct env *env, const char *path, bool leave_wal)
{
    struct journal *journal = NULL;
    double begin = now_s();
    open_or_fail(env, path, &journal);
    double took_s = now_s() - begin;
    if (!leave_wal) {
        journal_close(journal, "bench");
        return took_s;
    }
    /* A reader that stays in one snapshot keeps the WAL from being used anew. */
    sqlite3 *reader = NULL;
    if (sqlite3_open_v2(path, &reader, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
        fail("open", path);
    execute(reader, "BEGIN; SELECT * FROM meta");
    struct writing writing = {.env = env, .journal = journal};
    struct journal_metrics metrics;
    do {
        write_journal(&writing, path, 400, 40);
        journal_metrics_get(journal, &metrics);
    } while (metrics.wal_bytes < WAL_BYTES);
    journal_close(journal, NULL);
    execute(reader, "COMMIT");
    sqlite3_close(reader);
    return took_s;
}

static void bench_open(const char *path)
{
    struct env *env = env_real_make();
    double clean_s = time_open(env, path, false);
    (void)time_open(env, path, true);
    double wal_s = time_open(env, path, false);
    printf("journal_open                %8.1f ms\n", clean_s * 1e3);
    printf("journal_open, WAL of 16 MB  %8.1f ms         goal < 200 (to the first decision): %s\n",
           wal_s * 1e3, wal_s < 0.2 ? "reached" : "MISSED");
    env_free(env);
}

static void bench_verify(const char *path)
{
    struct journal_reader *reader = NULL;
    struct error *err = NULL;
    struct journal_verify_options options = {.quick = true};
    struct journal_verify_result result;
    double begin = now_s();
    if (journal_reader_open(path, &reader, &err) < 0 || journal_verify(reader, &options, &result, &err) < 0)
        fail("verify", error_text(err));
    double took_s = now_s() - begin;
    printf("verify --quick, %lld entries, %lld bodies  %.2f s, %zu findings%s   goal < 3 s a million: %s\n",
           (long long)result.entries, (long long)result.bodies, took_s, result.finding_count,
           result.finding_count ? result.findings[0].text : "",
           took_s < 3.0 * (double)result.entries / 1e6 ? "reached" : "MISSED");
    journal_verify_result_done(&result);
    journal_reader_close(reader);
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "append";
    int64_t number = count > 3 ? strtoll(arguments[3], NULL, 10) : FULL_ENTRIES;
    if (strcmp(what, "append") == 0) {
        bench_append(count > 2 ? strtoll(arguments[2], NULL, 10) : APPEND_ENTRIES);
    } else if (strcmp(what, "make") == 0 && count > 2) {
        bench_make(arguments[2], number);
    } else if (strcmp(what, "open") == 0 && count > 2) {
        bench_open(arguments[2]);
    } else if (strcmp(what, "verify") == 0 && count > 2) {
        bench_verify(arguments[2]);
    } else if (strcmp(what, "all") == 0 && count > 2) {
        CLEANUP_FREE char *path = xasprintf("%s/journal.db", arguments[2]);
        bench_append(APPEND_ENTRIES);
        bench_make(path, number);
        bench_verify(path);
        bench_open(path);
    } else {
        fprintf(stderr,
                "usage: journal_bench append [ENTRIES] | make FILE ENTRIES | open FILE | verify FILE |\n"
                "       all FOLDER [ENTRIES]\n");
        return 64;
    }
    return 0;
}
