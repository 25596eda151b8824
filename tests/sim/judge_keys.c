/* SPDX-License-Identifier: Apache-2.0
 *
 * What leaves the controllers, against what their journals have on disk (11): an intent before each sending,
 * an `unknown` and a reading before each further one. */
#include "judge_parts.h"

#include <stdio.h>
#include <unistd.h>

/* --- the journal's file --------------------------------------------------------------------------------- */

static struct reader *open_reader(struct judge *judge, int program)
{
    struct reader *reader = &judge->readers[program];
    if (reader->db)
        return reader;
    const char *path = judge->world->programs[program].journal_path;
    int code = sqlite3_open_v2(path, &reader->db, SQLITE_OPEN_READWRITE, NULL);
    int keep = 1;
    if (code == SQLITE_OK)
        sqlite3_file_control(reader->db, "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
    sqlite3_exec(reader->db, "PRAGMA wal_autocheckpoint=0", NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_prepare_v3(
            reader->db, "SELECT mono_us, action, name FROM entry WHERE seq = ?1 AND kind = 'intent'", -1,
            SQLITE_PREPARE_PERSISTENT, &reader->intent, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_prepare_v3(
            reader->db, "SELECT count(*) FROM entry WHERE seq > ?1 AND step = ?1 AND kind = 'unknown'", -1,
            SQLITE_PREPARE_PERSISTENT, &reader->unknowns, NULL);
    if (code != SQLITE_OK)
        report_break(judge->report, INVARIANT_NONE_OF_THEM, "the journal cannot be read: %s",
                     sqlite3_errmsg(reader->db));
    return reader;
}

void judge_close_reader(struct judge *judge, int program)
{
    struct reader *reader = &judge->readers[program];
    sqlite3_finalize(reader->intent);
    sqlite3_finalize(reader->unknowns);
    sqlite3_close(reader->db);
    *reader = (struct reader){0};
}

/* What the journals have open, for the story of a set that stands still. */
void judge_tell_open(struct judge *judge)
{
    static const char sql[] =
        "SELECT 'step ' || s.step || ' ' || e.action || ' ' || s.object || ' ' || s.name || ', unknowns ' ||"
        " s.unknowns FROM open_step s CROSS JOIN entry e ON e.seq = s.step UNION ALL "
        "SELECT 'operation ' || id || ' ' || kind || ' ' || name FROM operation WHERE ended_us IS NULL UNION "
        "ALL "
        "SELECT 'wait ' || wait || ' ' || action || ' ' || name || ', budget ' || budget_us || ', spent ' ||"
        " spent_us || ' since ' || coalesce(since_us, 'held') FROM open_wait";
    for (int i = 0; i < judge->world->program_count; i++) {
        if (access(judge->world->programs[i].journal_path, R_OK) != 0)
            continue;
        struct reader *reader = open_reader(judge, i);
        sqlite3_stmt *statement = NULL;
        if (sqlite3_prepare_v2(reader->db, sql, -1, &statement, NULL) != SQLITE_OK)
            return;
        while (sqlite3_step(statement) == SQLITE_ROW)
            report_tell(judge->report, "journal %d has open: %s", i,
                        (const char *)sqlite3_column_text(statement, 0));
        sqlite3_finalize(statement);
    }
}

/* --- keys ----------------------------------------------------------------------------------------------- */

/* "neo-<nonce>-<seq>-<attempt>" */
static bool split(const char *audit_id, char key[static 64], int64_t *ret_seq, int *ret_attempt)
{
    if (!audit_id || !str_starts_with(audit_id, "neo-") || str_starts_with(audit_id, "neo-x-"))
        return false;
    const char *last = strrchr(audit_id, '-');
    size_t length = (size_t)(last - audit_id) - 4;
    if (last < audit_id + 5 || length >= 64)
        return false;
    memcpy(key, audit_id + 4, length);
    key[length] = '\0';
    const char *seq = strrchr(key, '-');
    if (!seq)
        return false;
    *ret_seq = strtoll(seq + 1, NULL, 10);
    *ret_attempt = (int)strtol(last + 1, NULL, 10);
    return true;
}

struct seen_key *judge_key_of(struct judge *judge, const char *audit_id)
{
    char text[64];
    int64_t seq = 0;
    int attempt = 0;
    struct seen_key *key = NULL;
    if (split(audit_id, text, &seq, &attempt))
        HASH_FIND_STR(judge->keys, text, key);
    return key;
}

/* The program whose run it is, now or earlier. */
static int program_of(const struct judge *judge, const char *key)
{
    for (unsigned i = 0; i < judge->run_count; i++)
        if (str_starts_with(key, judge->runs[i].nonce))
            return judge->runs[i].program;
    return 0;
}

static struct seen_key *first_seen(struct judge *judge, const char *text, int64_t seq, const char *method,
                                   const char *path)
{
    int index = program_of(judge, text);
    struct reader *reader = open_reader(judge, index);
    sqlite3_bind_int64(reader->intent, 1, seq);
    if (sqlite3_step(reader->intent) != SQLITE_ROW)
        judge_break(judge, 11, "%s %s leaves without its intent on disk (step %s)", method, path, text);
    struct seen_key *key = xcalloc(1, sizeof(*key));
    snprintf(key->key, sizeof(key->key), "%s", text);
    const struct program *program = &judge->world->programs[index];
    key->program = index;
    bool this_run = program->journal && str_starts_with(text, journal_nonce(program->journal));
    key->decided_us = this_run ? program->started_us + sqlite3_column_int64(reader->intent, 0) : NEVER_US;
    snprintf(key->action, sizeof(key->action), "%s", (const char *)sqlite3_column_text(reader->intent, 1));
    snprintf(key->name, sizeof(key->name), "%s", (const char *)sqlite3_column_text(reader->intent, 2));
    sqlite3_reset(reader->intent);
    HASH_ADD_STR(judge->keys, key, key);
    return key;
}

static void sent_again(struct judge *judge, const struct seen_key *key, int64_t seq, int attempt)
{
    struct reader *reader = open_reader(judge, program_of(judge, key->key));
    sqlite3_bind_int64(reader->unknowns, 1, seq);
    int unknowns = sqlite3_step(reader->unknowns) == SQLITE_ROW ? sqlite3_column_int(reader->unknowns, 0) : 0;
    sqlite3_reset(reader->unknowns);
    if (unknowns < attempt - 1)
        judge_break(
            judge, 11,
            "step %s (%s %s) is sent again as attempt %d, and only %d entries on disk close earlier ones",
            key->key, key->action, key->name, attempt, unknowns);
    bool refused = key->last_status == 401 || key->last_status == 429;
    if (!refused && !key->read_since)
        judge_break(judge, 11,
                    "step %s (%s %s) is sent again without asking the server what became of it (%d)",
                    key->key, key->action, key->name, key->last_status);
}

/* A GET resolves what is in doubt on its object. */
static void note_reading(struct judge *judge, const char *path)
{
    size_t length = strcspn(path, "?");
    for (struct seen_key *key = judge->keys; key; key = key->hh.next) {
        size_t name = strlen(key->name);
        if (name < length && strncmp(path + length - name, key->name, name) == 0 &&
            path[length - name - 1] == '/')
            key->read_since = true;
    }
}

/* When an exempt write was sent: it may be held back. */
static void note_exempt(struct judge *judge, const char *audit_id)
{
    if (!str_starts_with(audit_id, "neo-x-status"))
        return;
    struct seen_key *key = NULL;
    HASH_FIND_STR(judge->keys, audit_id, key);
    if (!key) {
        key = xcalloc(1, sizeof(*key));
        snprintf(key->key, sizeof(key->key), "%s", audit_id);
        HASH_ADD_STR(judge->keys, key, key);
    }
    key->decided_us = judge_now_us(judge);
}

int64_t judge_sent_us(struct judge *judge, const char *audit_id)
{
    const struct seen_key *key = NULL;
    HASH_FIND_STR(judge->keys, audit_id, key);
    return key ? key->decided_us : judge_now_us(judge);
}

void judge_take_request(struct judge *judge, const struct env_sim_call *call)
{
    int64_t now_us = judge_now_us(judge);
    report_mix(judge->report, &now_us, sizeof(now_us));
    report_mix_text(judge->report, call->method);
    report_mix_text(judge->report, call->path);
    if (strcmp(call->method, "GET") == 0) {
        note_reading(judge, call->path);
        return;
    }
    const char *audit_id = env_sim_http_header(call, "Audit-ID");
    if (!audit_id || !str_starts_with(audit_id, "neo-"))
        judge_break(judge, 11, "%s %s leaves without a key", call->method, call->path);
    if (judge->quiet && !str_starts_with(audit_id, "neo-x-lease")) {
        judge->report->idle_writes++;
        judge_break(judge, 6, "nothing has changed, and yet %s %s is sent (%s)", call->method, call->path,
                    audit_id);
    }
    char text[64];
    int64_t seq = 0;
    int attempt = 0;
    if (!split(audit_id, text, &seq, &attempt)) {
        note_exempt(judge, audit_id);
        return; /* judged by what it changes */
    }
    struct seen_key *key = NULL;
    HASH_FIND_STR(judge->keys, text, key);
    if (key && attempt > key->attempts)
        sent_again(judge, key, seq, attempt);
    if (!key)
        key = first_seen(judge, text, seq, call->method, call->path);
    key->attempts = attempt;
    key->last_status = 0;
    key->read_since = false;
    judge->world->programs[key->program].steps++;
    if (judge->world->draw->is_resize)
        judge_take_resize_step(judge, key, call);
}

void judge_take_answer(struct judge *judge, const struct env_sim_call *call, int status, bool told)
{
    struct seen_key *key = judge_key_of(judge, env_sim_http_header(call, "Audit-ID"));
    if (key && status >= 200 && status < 300) {
        key->accepted = true;
        if (strcmp(call->method, "DELETE") == 0)
            judge_note_delete(judge, key);
    }
    if (key && told && !call->client_gone)
        key->last_status = status;
    if (!told)
        report_tell(judge->report, "  %s %s: %d, and nobody is told", call->method, call->path, status);
    else if (status >= 400 && strcmp(call->method, "GET") != 0)
        report_tell(judge->report, "  %s %s is answered %d", call->method, call->path, status);
}
