/* SPDX-License-Identifier: Apache-2.0
 *
 * The one error convention: a function that can fail returns int, 0 or a negative code, and takes
 * `struct error **err` as its last parameter. On success *err is untouched; on failure it holds a code and a
 * sentence that says what happened and, where we know it, what to do. Outcomes that callers branch on have
 * codes of their own; everything else is ERROR_FAILED. err may be NULL when the caller only wants the code.
 * The library never prints errors: only src/cmd does. */
#pragma once

#include "base/alloc.h"

#define ERROR_CODES(X)                                                                                       \
    X(FAILED, "failed")                                                                                      \
    X(INVALID, "invalid input")                                                                              \
    X(USAGE, "wrong usage")                                                                                  \
    X(NOT_FOUND, "not found")                                                                                \
    X(EXISTS, "already exists")                                                                              \
    X(CONFLICT, "conflict")                                                                                  \
    X(GONE, "gone")                                                                                          \
    X(REFUSED, "refused")                                                                                    \
    X(FORBIDDEN, "forbidden")                                                                                \
    X(UNAUTHORIZED, "unauthorized")                                                                          \
    X(UNREACHABLE, "unreachable")                                                                            \
    X(TIMED_OUT, "timed out")                                                                                \
    X(CANCELLED, "cancelled")                                                                                \
    X(TOO_LARGE, "too large")                                                                                \
    X(NO_SPACE, "no space left")                                                                             \
    X(LOCKED, "locked by another process")                                                                   \
    X(UNSUPPORTED, "not supported")                                                                          \
    X(CORRUPT, "corrupt")                                                                                    \
    X(FORKED, "history forked")

enum error_code {
    ERROR_NONE = 0,
#define X(name, text) ERROR_##name,
    ERROR_CODES(X)
#undef X
};

struct error {
    enum error_code code;
    char *text; /* one sentence or less, no trailing newline */
};

/* Makes *err (which must be NULL when err is given) and returns -code. */
int error_set(struct error **err, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts "context: " in front of *err's text; returns result unchanged (a negative code). */
int error_wrap(struct error **err, int result, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* As error_set, with the text of errno_value behind a colon; ENOENT, EACCES, ENOSPC ... choose the code. */
int error_set_errno(struct error **err, int errno_value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
const char *error_code_text(enum error_code code);
/* The sentence, or "" when err is NULL. Never NULL. */
const char *error_text(const struct error *err);
void error_free(struct error *err);

DEFINE_CLEANUP(cleanup_error, struct error, error_free);
#define CLEANUP_ERROR __attribute__((cleanup(cleanup_error)))
