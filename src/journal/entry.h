/* SPDX-License-Identifier: Apache-2.0
 *
 * What one row of the journal is. A run, an operation and a step are their `start`, `begin` and `intent`
 * rows, known by their seq. Rows never change. */
#pragma once

#include "base/alloc.h"
#include "base/sha256.h"

/* X(name, text): the kinds, in the words of the file. */
#define JOURNAL_KINDS(X)                                                                                     \
    X(START, "start")                                                                                        \
    X(EPOCH, "epoch")                                                                                        \
    X(STOP, "stop")                                                                                          \
    X(BEGIN, "begin")                                                                                        \
    X(END, "end")                                                                                            \
    X(INTENT, "intent")                                                                                      \
    X(APPLIED, "applied")                                                                                    \
    X(REJECTED, "rejected")                                                                                  \
    X(OVERTAKEN, "overtaken")                                                                                \
    X(NOT_SENT, "not_sent")                                                                                  \
    X(ABSENT, "absent")                                                                                      \
    X(UNKNOWN, "unknown")                                                                                    \
    X(LATE, "late")                                                                                          \
    X(WAIT_BEGIN, "wait_begin")                                                                              \
    X(WAIT_HOLD, "wait_hold")                                                                                \
    X(WAIT_GO, "wait_go")                                                                                    \
    X(WAIT_END, "wait_end")                                                                                  \
    X(NOTE, "note")                                                                                          \
    X(CHECKPOINT, "checkpoint")                                                                              \
    X(PRUNED, "pruned")

enum journal_kind {
#define X(name, text) JOURNAL_##name,
    JOURNAL_KINDS(X)
#undef X
        JOURNAL_KIND_COUNT,
};

const char *journal_kind_text(enum journal_kind kind);
/* The step kind that makes another step of the same object impossible: the one that may be open beside it. */
#define JOURNAL_ACTION_BLOCK "block"
/* -1 when text is none of them. */
int journal_kind_of_text(const char *text);
/* applied, rejected, overtaken, not_sent, absent: a step has at most one of them. */
bool journal_kind_is_outcome(enum journal_kind kind);

/* One row. Strings are NULL where the column is NULL; who owns them is said by who hands the struct out. */
struct journal_entry {
    int64_t seq;
    int form;
    enum journal_kind kind;
    int64_t run;
    int64_t epoch;
    int64_t at_us;     /* wall, UTC */
    int64_t mono_us;   /* boot clock since the start of the run */
    int64_t operation; /* 0: none */
    int64_t step;      /* 0: none */
    int attempt;       /* 0: none */
    const char *action;
    const char *object;
    const char *namespace;
    const char *name;
    const char *uid;
    const char *version;
    int http; /* 0: none */
    const char *audit_id;
    const uint8_t *digest; /* SHA256_SIZE bytes, or NULL */
    const char *reason;
    const char *detail;  /* JSON text */
    const uint8_t *hash; /* SHA256_SIZE bytes; NULL before it is appended */
};
