/* SPDX-License-Identifier: Apache-2.0
 *
 * A journal in a folder of its own, on a simulated environment: the words that tests of the journal speak. */
#pragma once

#include "env_sim.h"

#include "journal/journal.h"

struct journal_fixture {
    char *folder;
    char *path;
    struct env *env;
    struct journal *journal;
    struct journal_options options;
};

/* For tests that wait for no real disk: from now on folders lie in memory, where there is enough of it. */
void journal_fixture_use_memory(void);
/* A new folder below TMPDIR and a simulated environment; no journal yet. */
void journal_fixture_setup(struct journal_fixture *fixture);
/* Closes as by a crash, frees the environment, removes the folder. */
void journal_fixture_teardown(struct journal_fixture *fixture);
/* The same for cmocka: *state becomes a fixture; with its journal open; and is freed. */
int journal_fixture_make(void **state);
int journal_fixture_make_open(void **state);
int journal_fixture_free(void **state);
/* Opens with fixture->options; must succeed. */
void journal_fixture_open(struct journal_fixture *fixture);
/* Must fail; the error is the caller's. */
struct error *journal_fixture_open_failing(struct journal_fixture *fixture);
void journal_fixture_crash(struct journal_fixture *fixture);
void journal_fixture_stop(struct journal_fixture *fixture);
/* Stop and open again; crash and open again. */
void journal_fixture_restart(struct journal_fixture *fixture);
/* Commits and runs the environment until all that was appended is durable (or nothing happens any more). */
void journal_fixture_settle(struct journal_fixture *fixture);
/* What does not verify in the file; the caller's. NULL: it all does. */
char *journal_fixture_verify(const struct journal_fixture *fixture);

/* An operation on "NeoSet" db/mysql; a step on a pod of it; an outcome. */
int64_t journal_fixture_begin(struct journal_fixture *fixture, const char *action);
int64_t journal_fixture_intent(struct journal_fixture *fixture, int64_t operation, const char *pod);
int64_t journal_fixture_intent_with_body(struct journal_fixture *fixture, int64_t operation, const char *pod,
                                         const char *body, bool keep);
int64_t journal_fixture_outcome(struct journal_fixture *fixture, enum journal_kind kind, int64_t step);
int64_t journal_fixture_end(struct journal_fixture *fixture, int64_t operation, const char *outcome);
int64_t journal_fixture_note(struct journal_fixture *fixture, const char *reason);

/* Runs sql on the closed or open file through a connection of its own; must succeed. writable without any of
 * our settings: as a stranger would. Returns the first column of the first row, or "" (static storage). */
const char *journal_fixture_sql(const char *path, const char *sql);
/* The same; the extended result code, and what SQLite said of it. */
int journal_fixture_sql_code(const char *path, const char *sql);
const char *journal_fixture_sql_words(void);
