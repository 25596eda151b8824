/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory and the small words every module uses: allocation that aborts, cleanup attributes, assertions.
 * Allocation failure ends the process at once; the journal makes that safe. Nothing here logs or does I/O. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Each returns memory owned by the caller and never NULL. Sizes are bytes; products are checked for overflow.
 */
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xreallocarray(void *old, size_t count, size_t size);
char *xstrdup(const char *text);
/* NULL stays NULL. */
char *xstrdup_or_null(const char *text);
char *xstrndup(const char *text, size_t length_max);
char *xmemdup0(const void *bytes, size_t length);
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *xvasprintf(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

/* What was freed goes back to the system, as far as the C library can: after a burst. Takes milliseconds. */
void memory_give_back(void);

/* Replaces *slot by a copy of text (or NULL), frees what was there. */
void str_replace(char **slot, const char *text);
/* NULL equals NULL only. */
bool str_equal(const char *a, const char *b);
bool str_starts_with(const char *text, const char *prefix);
bool str_ends_with(const char *text, const char *suffix);
/* Holds a byte below U+0020 or U+007F: a line break could smuggle something into a header. */
bool str_has_control_character(const char *text);

/* Ends the process with a sentence on stderr: for broken invariants, never for bad input. */
_Noreturn void die_invariant(const char *what, const char *file, int line);

/* Assertions stay on in production. PRE: what the caller owes; POST: what we owe; ENSURE: in between. */
#define PRE(condition) ((condition) ? (void)0 : die_invariant("PRE " #condition, __FILE__, __LINE__))
#define POST(condition) ((condition) ? (void)0 : die_invariant("POST " #condition, __FILE__, __LINE__))
#define ENSURE(condition) ((condition) ? (void)0 : die_invariant(#condition, __FILE__, __LINE__))
#define UNREACHABLE() die_invariant("unreachable", __FILE__, __LINE__)
/* a implies b */
#define ERGO(a, b) (!(a) || (b))

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* Hands a pointer over: the variable is NULL afterwards. */
#define STEAL(pointer)                                                                                       \
    ({                                                                                                       \
        __typeof__(pointer) stolen_ = (pointer);                                                             \
        (pointer) = NULL;                                                                                    \
        stolen_;                                                                                             \
    })

void cleanup_free_pointer(void *slot);
void cleanup_close_fd(const int *fd);
#define CLEANUP_FREE __attribute__((cleanup(cleanup_free_pointer)))
#define CLEANUP_CLOSE __attribute__((cleanup(cleanup_close_fd)))
/* Defines the cleanup function for a type whose destructor is `type_free(type *)`. */
#define DEFINE_CLEANUP(function, type, destroy)                                                              \
    static inline void function(type **slot)                                                                 \
    {                                                                                                        \
        if (*slot)                                                                                           \
            destroy(*slot);                                                                                  \
    }                                                                                                        \
    struct cleanup_needs_semicolon_
