/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>

static const char *const code_texts[] = {[ERROR_NONE] = "no error",
#define X(name, text) [ERROR_##name] = text,
                                         ERROR_CODES(X)
#undef X
};

static int set_text(struct error **err, enum error_code code, char *text)
{
    PRE(code != ERROR_NONE);
    if (!err) {
        free(text);
        return -(int)code;
    }
    PRE(*err == NULL);
    struct error *made = xmalloc(sizeof(*made));
    made->code = code;
    made->text = text;
    *err = made;
    return -(int)code;
}

int error_set(struct error **err, enum error_code code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = xvasprintf(format, args);
    va_end(args);
    return set_text(err, code, text);
}

int error_wrap(struct error **err, int result, const char *format, ...)
{
    PRE(result < 0);
    if (!err || !*err)
        return result;
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *context = xvasprintf(format, args);
    va_end(args);
    char *joined = xasprintf("%s: %s", context, (*err)->text);
    free((*err)->text);
    (*err)->text = joined;
    return result;
}

static enum error_code code_of_errno(int errno_value)
{
    switch (errno_value) {
    case ENOENT:
        return ERROR_NOT_FOUND;
    case EEXIST:
        return ERROR_EXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
        return ERROR_FORBIDDEN;
    case ENOSPC:
    case EDQUOT:
        return ERROR_NO_SPACE;
    case ETIMEDOUT:
        return ERROR_TIMED_OUT;
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return ERROR_UNREACHABLE;
    case EFBIG:
    case E2BIG:
        return ERROR_TOO_LARGE;
    default:
        return ERROR_FAILED;
    }
}

int error_set_errno(struct error **err, int errno_value, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *context = xvasprintf(format, args);
    va_end(args);
    return set_text(err, code_of_errno(errno_value), xasprintf("%s: %s", context, strerror(errno_value)));
}

const char *error_code_text(enum error_code code)
{
    PRE((size_t)code < ARRAY_SIZE(code_texts));
    return code_texts[code];
}

const char *error_text(const struct error *err)
{
    return err ? err->text : "";
}

void error_free(struct error *err)
{
    if (!err)
        return;
    free(err->text);
    free(err);
}
