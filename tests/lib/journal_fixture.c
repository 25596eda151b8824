/* SPDX-License-Identifier: Apache-2.0 */
#include "journal_fixture.h"

#include "journal/verify.h"

#include <dirent.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

void journal_fixture_use_memory(void)
{
    struct statvfs space;
    if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0 && statvfs("/dev/shm", &space) == 0 &&
        space.f_bavail * space.f_frsize > 256ULL << 20)
        setenv("TMPDIR", "/dev/shm", 1);
}

void journal_fixture_setup(struct journal_fixture *fixture)
{
    const char *base = getenv("TMPDIR");
    *fixture = (struct journal_fixture){0};
    fixture->folder = xasprintf("%s/neoset-journal-XXXXXX", base && base[0] ? base : "/tmp");
    ENSURE(mkdtemp(fixture->folder));
    fixture->path = xasprintf("%s/journal.db", fixture->folder);
    fixture->env = env_sim_make(1);
    fixture->options = (struct journal_options){
        .path = fixture->path,
        .identity = "tester",
        .version = "1.0",
    };
}

static void remove_folder(const char *folder)
{
    DIR *listing = opendir(folder);
    ENSURE(listing);
    const struct dirent *item = NULL;
    while ((item = readdir(listing)) != NULL) {
        CLEANUP_FREE char *path = xasprintf("%s/%s", folder, item->d_name);
        if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0 && unlink(path) != 0)
            remove_folder(path);
    }
    closedir(listing);
    rmdir(folder);
}

void journal_fixture_teardown(struct journal_fixture *fixture)
{
    journal_fixture_crash(fixture);
    env_free(fixture->env);
    remove_folder(fixture->folder);
    free(fixture->folder);
    free(fixture->path);
    *fixture = (struct journal_fixture){0};
}

int journal_fixture_make(void **state)
{
    struct journal_fixture *fixture = xcalloc(1, sizeof(*fixture));
    journal_fixture_setup(fixture);
    *state = fixture;
    return 0;
}

int journal_fixture_make_open(void **state)
{
    journal_fixture_make(state);
    journal_fixture_open(*state);
    return 0;
}

int journal_fixture_free(void **state)
{
    journal_fixture_teardown(*state);
    free(*state);
    return 0;
}

void journal_fixture_open(struct journal_fixture *fixture)
{
    struct error *err = NULL;
    if (journal_open(fixture->env, &fixture->options, &fixture->journal, &err) < 0) {
        fprintf(stderr, "journal_open: %s\n", error_text(err));
        abort();
    }
}

struct error *journal_fixture_open_failing(struct journal_fixture *fixture)
{
    struct error *err = NULL;
    ENSURE(journal_open(fixture->env, &fixture->options, &fixture->journal, &err) < 0);
    ENSURE(err && fixture->journal == NULL);
    return err;
}

void journal_fixture_crash(struct journal_fixture *fixture)
{
    journal_close(STEAL(fixture->journal), NULL);
}

void journal_fixture_stop(struct journal_fixture *fixture)
{
    journal_close(STEAL(fixture->journal), "stopped by the test");
}

void journal_fixture_restart(struct journal_fixture *fixture)
{
    journal_fixture_crash(fixture);
    journal_fixture_open(fixture);
}

void journal_fixture_settle(struct journal_fixture *fixture)
{
    journal_commit(fixture->journal);
    int64_t newest = journal_next_seq(fixture->journal) - 1;
    for (int steps = 0; journal_durable_seq(fixture->journal) < newest && steps < 100000; steps++)
        if (!env_sim_step(fixture->env))
            break;
}

int64_t journal_fixture_begin(struct journal_fixture *fixture, const char *action)
{
    return journal_append(fixture->journal, &(struct journal_entry){
                                                .kind = JOURNAL_BEGIN,
                                                .action = action,
                                                .object = "NeoSet",
                                                .namespace = "db",
                                                .name = "mysql",
                                                .detail = "{\"from\":\"mysql:8.0\",\"to\":\"mysql:8.1\"}",
                                            });
}

int64_t journal_fixture_intent_with_body(struct journal_fixture *fixture, int64_t operation, const char *pod,
                                         const char *body, bool keep)
{
    struct journal_entry entry = {
        .kind = JOURNAL_INTENT,
        .operation = operation,
        .action = "patch",
        .object = "Pod",
        .namespace = "db",
        .name = pod,
        .uid = "4b5e1c3a-0000-4000-8000-000000000001",
        .version = "1042",
        .detail = "{\"fingerprint\":\"image\"}",
    };
    return journal_append_intent(fixture->journal, &entry, body, body ? strlen(body) : 0, keep);
}

int64_t journal_fixture_intent(struct journal_fixture *fixture, int64_t operation, const char *pod)
{
    return journal_fixture_intent_with_body(fixture, operation, pod, "{\"spec\":{\"image\":\"mysql:8.1\"}}",
                                            true);
}

int64_t journal_fixture_outcome(struct journal_fixture *fixture, enum journal_kind kind, int64_t step)
{
    return journal_append(fixture->journal, &(struct journal_entry){.kind = kind, .step = step, .http = 200});
}

int64_t journal_fixture_end(struct journal_fixture *fixture, int64_t operation, const char *outcome)
{
    return journal_append(
        fixture->journal,
        &(struct journal_entry){.kind = JOURNAL_END, .operation = operation, .action = outcome});
}

int64_t journal_fixture_note(struct journal_fixture *fixture, const char *reason)
{
    return journal_append(fixture->journal, &(struct journal_entry){.kind = JOURNAL_NOTE, .reason = reason});
}

static char answer[4096];

static int keep_first(void *context, int columns, char **values, char **names)
{
    (void)names;
    bool *kept = context;
    if (!*kept && columns > 0)
        snprintf(answer, sizeof(answer), "%s", values[0] ? values[0] : "NULL");
    *kept = true;
    return 0;
}

int journal_fixture_sql_code(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    bool kept = false;
    answer[0] = '\0';
    ENSURE(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK);
    sqlite3_busy_timeout(db, 2000);
    sqlite3_extended_result_codes(db, 1);
    int keep = 1;
    sqlite3_file_control(db, "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
    char *text = NULL;
    int code = sqlite3_exec(db, sql, keep_first, &kept, &text);
    if (code != SQLITE_OK)
        snprintf(answer, sizeof(answer), "%s", text ? text : "");
    sqlite3_free(text);
    sqlite3_close(db);
    return code;
}

const char *journal_fixture_sql(const char *path, const char *sql)
{
    int code = journal_fixture_sql_code(path, sql);
    if (code != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", sql, answer);
        abort();
    }
    return answer;
}

const char *journal_fixture_sql_words(void)
{
    return answer;
}

char *journal_fixture_verify(const struct journal_fixture *fixture)
{
    CLEANUP_JOURNAL_READER struct journal_reader *reader = NULL;
    CLEANUP_ERROR struct error *err = NULL;
    struct journal_verify_options options = {0};
    struct journal_verify_result result;
    if (journal_reader_open(fixture->path, &reader, &err) < 0 ||
        journal_verify(reader, &options, &result, &err) < 0)
        return xstrdup(error_text(err));
    char *problem = result.finding_count ? xstrdup(result.findings[0].text) : NULL;
    journal_verify_result_done(&result);
    return problem;
}
