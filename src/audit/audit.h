/* SPDX-License-Identifier: Apache-2.0
 *
 * Presenting what journals hold: each command of neoset-audit is a function here. Several journals are read
 * as one history: merged by time, never re-ordered inside a file, ids shown as `<first digits of
 * journal_id>:<seq>`. Data goes to one output; remarks for people go to a callback; nothing here reads a
 * clock, waits, or touches a journal file but through src/journal. No read transaction is held while output
 * is written (the reader sees to that). */
#pragma once

#include "audit/sheet.h"
#include "journal/reader.h"
#include "journal/verify.h"

enum { AUDIT_JOURNALS_MAX = 32 };

struct audit_journal {
    struct journal_reader *reader;
    const struct journal_meta *meta;
    char prefix[33]; /* of its ids: the first four digits of journal_id, more where those are not unique */
};

/* A remark for people (a plain copy, nothing found): a sentence. */
typedef void audit_notice(void *context, const char *sentence);

struct audit {
    struct audit_journal journals[AUDIT_JOURNALS_MAX];
    size_t count;
    struct out *out;
    struct sheet_look look;
    int64_t now_us;
    audit_notice *notice;
    void *context;
};

/* Opens the files; a journal that is given twice (the same file, or an older copy) is read once, the longer
 * one. Errors: as journal_reader_open; -ERROR_FORKED when two files share an id and differ. audit is undone
 * by audit_close in any case. */
int audit_open(struct audit *audit, const char *const *paths, size_t count, struct error **err);
void audit_close(struct audit *audit);
void audit_say(const struct audit *audit, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Of its budget. The journal counts an open wait up to its newest entry; while a controller runs, time goes
 * on from there. */
int64_t audit_wait_spent_us(const struct audit *audit, const struct audit_journal *journal,
                            const struct journal_wait_record *wait);

/* "5 -> 6"; "5, unchanged" of an operation that was begun for what was so already; "" when it names neither.
 * The caller's, not escaped. */
char *audit_change_text(const struct journal_operation_record *operation);

/* What to show; zero and NULL mean any. Strings are borrowed. */
struct audit_filter {
    const char *object; /* --for KIND/NAME, the kind in the journal's spelling: "NeoSet" */
    const char *name;
    const char *namespace;
    const char *kind;    /* of operations: "rollout"; of entries: "intent"; of steps: "update-in-place" */
    const char *outcome; /* "open" means: none yet */
    int64_t since_us;
    int64_t until_us;
    int64_t limit;
};
/* "neo/mysql", "Pod/mysql-3" into object and name (both in *ret_memory, the caller's). -ERROR_USAGE. */
int audit_parse_for(const char *text, struct audit_filter *filter, char **ret_memory, struct error **err);

/* An operation as people name it: "17", "a1b2:17", "operation/17". -ERROR_USAGE; -ERROR_NOT_FOUND when no
 * journal has it. With several journals a bare number must be in only one of them. */
int audit_find_operation(struct audit *audit, const char *text, struct audit_journal **ret_journal,
                         int64_t *ret_id, struct error **err);

/* The commands. Each returns 0, also when the reader of the output went away, or a negative code. */
int audit_list(struct audit *audit, const struct audit_filter *filter, struct error **err);
int audit_show(struct audit *audit, const char *operation, struct error **err);
/* operation NULL: those that the filter finds, oldest first; without any filter the newest one. width:
 * columns of the picture. */
int audit_timeline(struct audit *audit, const char *operation, const struct audit_filter *filter,
                   struct error **err);
int audit_export_entries(struct audit *audit, const struct audit_filter *filter, struct error **err);
int audit_export_operations(struct audit *audit, const struct audit_filter *filter, struct error **err);
int audit_export_steps(struct audit *audit, const struct audit_filter *filter, struct error **err);
/* *ret_found: in-doubt steps of at least older_than_us (those under way are shown and not counted). */
int audit_in_doubt(struct audit *audit, const struct audit_filter *filter, int64_t older_than_us,
                   int64_t *ret_found, struct error **err);
int audit_runs(struct audit *audit, const struct audit_filter *filter, struct error **err);
struct audit_verify_options {
    bool is_quick;                    /* without SQLite's own check */
    const struct journal_head *heads; /* of any of the journals */
    size_t head_count;
    void (*progress)(void *context, const char *stage, int64_t done, int64_t total); /* NULL: none */
    void *context;
};
/* *ret_is_intact: nothing was found. */
int audit_verify(struct audit *audit, const struct audit_verify_options *options, bool *ret_is_intact,
                 struct error **err);
/* Of the one journal given. */
int audit_backup(struct audit *audit, const char *target, struct error **err);

struct audit_tail_options {
    int64_t last;            /* begin with so many of the newest entries; -1: with those after the cursor */
    const char *cursor_text; /* what *ret_cursor was at the end of the call before; NULL: none */
    /* Follow: waits a moment and says whether to go on; NULL: do not follow. */
    bool (*wait)(void *context);
    /* Entries up to here were handed to the output: write it down. May be NULL. */
    int (*keep_cursor)(void *context, const char *cursor_text, struct error **err);
    void *context;
};
int audit_tail(struct audit *audit, const struct audit_filter *filter,
               const struct audit_tail_options *options, struct error **err);
