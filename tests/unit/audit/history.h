/* SPDX-License-Identifier: Apache-2.0
 *
 * A history to look at, and the audit's commands looking at it: a journal with a rollout through a crash, a
 * refused scale, a step in doubt, written through the journal's own writer under virtual time. Output is
 * caught in memory and compared with tests/golden (GOLDEN_UPDATE=1 writes those files anew). */
#pragma once

#include "../../lib/journal_fixture.h"

#include "audit/audit.h"
#include "audit/escape.h"
#include "base/time_text.h"

#include <fcntl.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* When the audit looks: an hour after the simulation began. */
#define LOOK_AT_US 1796025600000000LL

struct history {
    struct journal_fixture fixture;
    struct audit audit;
    struct out out;
    int output; /* a file in memory */
    char *notices;
    int64_t rollout, failed, open; /* operations */
};

static inline void history_pass(struct history *history, int64_t duration_us)
{
    journal_fixture_settle(&history->fixture);
    env_sim_run_for(history->fixture.env, duration_us);
}

static inline int64_t history_begin(struct history *history, const char *kind, const char *name,
                                    const char *detail)
{
    return journal_append(history->fixture.journal, &(struct journal_entry){.kind = JOURNAL_BEGIN,
                                                                            .action = kind,
                                                                            .object = "NeoSet",
                                                                            .namespace = "prod",
                                                                            .name = name,
                                                                            .detail = detail});
}

static inline int64_t history_intent(struct history *history, int64_t operation, const char *action,
                                     const char *pod, const char *reason)
{
    struct journal_entry entry = {.kind = JOURNAL_INTENT,
                                  .operation = operation,
                                  .attempt = 1,
                                  .action = action,
                                  .object = "Pod",
                                  .namespace = "prod",
                                  .name = pod,
                                  .uid = "4b5e1c3a-0000-4000-8000-000000000001",
                                  .version = "1042",
                                  .reason = reason,
                                  .detail = "{\"fingerprint\":\"image\"}"};
    static const char body[] = "{\"spec\":{\"containers\":[{\"name\":\"mysql\",\"image\":\"mysql:8.1\"}]}}";
    return journal_append_intent(history->fixture.journal, &entry, body, sizeof body - 1, true);
}

static inline void history_answer(struct history *history, enum journal_kind kind, int64_t operation,
                                  int64_t step, int attempt, int http, const char *reason)
{
    journal_append(history->fixture.journal, &(struct journal_entry){.kind = kind,
                                                                     .operation = operation,
                                                                     .step = step,
                                                                     .attempt = attempt,
                                                                     .http = http,
                                                                     .version = http == 200 ? "1043" : NULL,
                                                                     .reason = reason});
}

static inline void history_end(struct history *history, int64_t operation, const char *outcome,
                               const char *reason)
{
    journal_append(history->fixture.journal,
                   &(struct journal_entry){
                       .kind = JOURNAL_END, .operation = operation, .action = outcome, .reason = reason});
}

/* mysql-4 in place, a wait with a pause, mysql-3 through a crash; completed. */
static inline void history_roll(struct history *history)
{
    struct journal *journal = history->fixture.journal;
    int64_t rollout =
        history_begin(history, "rollout", "mysql", "{\"from\":\"mysql:8.0\",\"to\":\"mysql:8.1\"}");
    history->rollout = rollout;
    int64_t first = history_intent(history, rollout, "update-in-place", "mysql-4",
                                   "mysql-4: image mysql:8.0 -> mysql:8.1");
    history_pass(history, 120 * US_PER_MS);
    history_answer(history, JOURNAL_APPLIED, rollout, first, 1, 200, NULL);
    int64_t wait = journal_wait_begin(journal, rollout, "ready", "Pod", "prod", "mysql-4", 300 * US_PER_S,
                                      "until it is available");
    history_pass(history, 4 * US_PER_S);
    journal_wait_hold(journal, wait, "paused");
    history_pass(history, 6 * US_PER_S);
    journal_wait_go(journal, wait);
    history_pass(history, 8 * US_PER_S);
    journal_wait_end(journal, wait, "done");
    int64_t second = history_intent(history, rollout, "update-in-place", "mysql-3",
                                    "mysql-3: image mysql:8.0 -> mysql:8.1");
    history_pass(history, 900 * US_PER_MS);
    journal_fixture_crash(&history->fixture);
    env_sim_run_for(history->fixture.env, 5 * US_PER_S);
    journal_fixture_open(&history->fixture);
    history_answer(history, JOURNAL_UNKNOWN, rollout, second, 1, 0,
                   "no answer: the controller was restarted");
    history_pass(history, 80 * US_PER_MS);
    history_answer(history, JOURNAL_APPLIED, rollout, second, 2, 200, NULL);
    history_pass(history, 20 * US_PER_MS);
    history_end(history, rollout, "completed", NULL);
    history_pass(history, 60 * US_PER_S);
}

/* A refused create, with a server's text that is not to be trusted; and an update that nobody knows the fate
 * of. */
static inline void history_fail_and_hang(struct history *history)
{
    history->failed = history_begin(history, "scale", "=cmd|calc", "{\"from\":\"3\",\"to\":\"+5\"}");
    int64_t create = history_intent(history, history->failed, "create-pod", "=cmd|calc-3", "ordinal 3");
    history_pass(history, 30 * US_PER_MS);
    history_answer(history, JOURNAL_REJECTED, history->failed, create, 1, 422,
                   "Invalid: \"spec\"\x1b[31m,\r\nDROP\xff\xe2\x80\xae.exe");
    history_end(history, history->failed, "failed", "the server refuses the pod");
    history_pass(history, 10 * US_PER_S);
    history->open = history_begin(history, "rollout", "clickhouse", "{\"from\":\"ch:1\",\"to\":\"ch:2\"}");
    history_intent(history, history->open, "update-in-place", "clickhouse-0",
                   "clickhouse-0: image ch:1 -> ch:2");
    history_pass(history, 2 * US_PER_S);
}

static inline void history_say(void *context, const char *sentence)
{
    struct history *history = context;
    char *all = xasprintf("%s%s\n", history->notices, sentence);
    free(history->notices);
    history->notices = all;
}

static inline void history_catch(struct history *history)
{
    history->output = memfd_create("output", MFD_CLOEXEC);
    out_init(&history->out, history->output);
    history->notices = xstrdup("");
    history->audit.out = &history->out;
    history->audit.now_us = LOOK_AT_US;
    history->audit.notice = history_say;
    history->audit.context = history;
    history->audit.look = (struct sheet_look){.format = SHEET_TABLE, .columns = 100};
}

/* The journal is closed as by a crash and opened for reading. */
static inline void history_setup(struct history *history)
{
    *history = (struct history){0};
    setlocale(LC_CTYPE, "C.UTF-8");
    journal_fixture_setup(&history->fixture);
    journal_fixture_open(&history->fixture);
    history_roll(history);
    history_fail_and_hang(history);
    journal_fixture_crash(&history->fixture);
    history_catch(history);
    const char *path = history->fixture.path;
    struct error *err = NULL;
    if (audit_open(&history->audit, &path, 1, &err) < 0)
        fail_msg("%s", error_text(err));
}

static inline void history_teardown(struct history *history)
{
    audit_close(&history->audit);
    out_done(&history->out);
    close(history->output);
    free(history->notices);
    journal_fixture_teardown(&history->fixture);
}

/* The same for cmocka: *state becomes a history, and is freed. */
static inline int history_make(void **state)
{
    struct history *history = xcalloc(1, sizeof *history);
    history_setup(history);
    *state = history;
    return 0;
}

static inline int history_free(void **state)
{
    history_teardown(*state);
    free(*state);
    return 0;
}

/* What was written so far, the caller's; the output is empty afterwards. */
static inline char *history_take(struct history *history)
{
    off_t length = lseek(history->output, 0, SEEK_CUR);
    char *text = xcalloc((size_t)length + 1, 1);
    assert_int_equal(pread(history->output, text, (size_t)length, 0), length);
    assert_int_equal(ftruncate(history->output, 0), 0);
    lseek(history->output, 0, SEEK_SET);
    return text;
}

static inline size_t hex_run(const char *text)
{
    return strspn(text, "0123456789abcdef");
}

/* Is the number at text the pid? By what stands before it: small numbers are everywhere. */
static inline bool is_pid(const struct buf *out, const char *text, const char *pid)
{
    static const char *const before[] = {"\"pid\":", "pid\"\":", "pid", "pid:", "\"1.0\",", "1.0"};
    size_t length = strlen(pid);
    if (strncmp(text, pid, length) != 0 || (text[length] >= '0' && text[length] <= '9'))
        return false;
    CLEANUP_FREE char *start = xstrndup(buf_text(out), out->length);
    size_t end = out->length;
    while (end > 0 && start[end - 1] == ' ')
        start[--end] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(before); i++)
        if (str_ends_with(start, before[i]))
            return true;
    return false;
}

/* "PID" behind one space at most: a column's width depends on it. */
static inline void add_pid(struct buf *out)
{
    while (out->length > 1 && out->data[out->length - 1] == ' ' && out->data[out->length - 2] == ' ')
        out->data[--out->length] = '\0';
    buf_add_text(out, "PID");
}

/* What differs from machine to machine: the folder of the fixture, the pid, SQLite's version, and the hashes
 * over them. */
static inline char *history_normalise(const struct history *history, const char *text)
{
    CLEANUP_BUF struct buf out = BUF_INIT((size_t)16 * 1024 * 1024);
    CLEANUP_FREE char *pid = xasprintf("%d", (int)getpid());
    char library[JOURNAL_LIBRARY_TEXT_SIZE];
    journal_library_text(library);
    size_t version = strcspn(library, " ");
    while (*text) {
        if (str_starts_with(text, history->fixture.folder)) {
            buf_add_text(&out, "FOLDER");
            text += strlen(history->fixture.folder);
        } else if (is_pid(&out, text, pid)) {
            add_pid(&out);
            text += strlen(pid);
        } else if (str_starts_with(text, "PID")) {
            add_pid(&out);
            text += 3;
        } else if (strncmp(text, library, version) == 0) {
            buf_add_text(&out, "LIBRARY");
            text += str_starts_with(text, library) ? strlen(library) : version;
        } else if (hex_run(text) == 64 || hex_run(text) == 32 || hex_run(text) == 16) {
            /* Hashes, journal ids, nonces: as long as they were. */
            size_t digits = hex_run(text);
            for (size_t i = 0; i < digits; i++)
                buf_add_char(&out, "0123456789abcdef"[digits == 64 ? 15 : digits / 2 - 8]);
            text += digits;
        } else {
            buf_add_char(&out, *text++);
        }
    }
    return buf_take(&out);
}

static inline char *history_read_file(const char *path)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    off_t length = lseek(fd, 0, SEEK_END);
    char *text = xcalloc((size_t)length + 1, 1);
    assert_int_equal(pread(fd, text, (size_t)length, 0), length);
    return text;
}

/* Takes text over. */
static inline void expect_golden(const struct history *history, char *taken, const char *name)
{
    CLEANUP_FREE char *raw = taken;
    CLEANUP_FREE char *text = history_normalise(history, raw);
    CLEANUP_FREE char *path = xasprintf("tests/golden/audit/%s", name);
    if (getenv("GOLDEN_UPDATE")) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(text, file);
        fclose(file);
        return;
    }
    CLEANUP_FREE char *wanted = history_read_file(path);
    if (!wanted)
        fail_msg("%s is missing: GOLDEN_UPDATE=1 writes it", path);
    if (strcmp(wanted, text) != 0)
        fail_msg("%s differs; this came:\n%s", path, text);
}
