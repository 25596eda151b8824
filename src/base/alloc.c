/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"

#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdio.h>
#include <unistd.h>

_Noreturn void die_invariant(const char *what, const char *file, int line)
{
    fprintf(stderr, "neoset: broken invariant: %s (%s:%d); the journal holds what was under way\n", what,
            file, line);
    abort();
}

static void *or_abort(void *memory)
{
    if (!memory) {
        static const char text[] = "neoset: out of memory; the journal holds what was under way\n";
        (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
        abort();
    }
    return memory;
}

void *xmalloc(size_t size)
{
    return or_abort(malloc(size ? size : 1));
}

void *xcalloc(size_t count, size_t size)
{
    return or_abort(calloc(count ? count : 1, size ? size : 1));
}

void *xreallocarray(void *old, size_t count, size_t size)
{
    return or_abort(reallocarray(old, count ? count : 1, size ? size : 1));
}

char *xstrdup(const char *text)
{
    PRE(text);
    return or_abort(strdup(text));
}

char *xstrdup_or_null(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

char *xstrndup(const char *text, size_t length_max)
{
    PRE(text);
    return or_abort(strndup(text, length_max));
}

char *xmemdup0(const void *bytes, size_t length)
{
    PRE(bytes || length == 0);
    char *copy = xmalloc(length + 1);
    if (length)
        memcpy(copy, bytes, length);
    copy[length] = '\0';
    return copy;
}

char *xvasprintf(const char *format, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    return or_abort(text);
}

char *xasprintf(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = xvasprintf(format, args);
    va_end(args);
    return text;
}

void memory_give_back(void)
{
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}

void str_replace(char **slot, const char *text)
{
    PRE(slot);
    if (str_equal(*slot, text))
        return;
    char *old = *slot;
    *slot = xstrdup_or_null(text);
    free(old);
}

bool str_equal(const char *a, const char *b)
{
    if (!a || !b)
        return a == b;
    return strcmp(a, b) == 0;
}

bool str_starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool str_ends_with(const char *text, const char *suffix)
{
    size_t length = strlen(text);
    size_t tail = strlen(suffix);
    return length >= tail && memcmp(text + length - tail, suffix, tail) == 0;
}

bool str_has_control_character(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7F)
            return true;
    return false;
}

void cleanup_free_pointer(void *slot)
{
    free(*(void **)slot);
}

void cleanup_close_fd(const int *fd)
{
    if (*fd >= 0) {
        int saved = errno;
        close(*fd);
        errno = saved;
    }
}
