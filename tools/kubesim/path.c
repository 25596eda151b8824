/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/path.h"

#include "base/sha256.h"

enum { PATH_LENGTH_MAX = 64 * 1024 };

/* Decodes length bytes of text into out, NUL-terminated; false on a bad escape or a NUL byte. */
static bool decode(const char *text, size_t length, bool plus_is_space, char *out)
{
    for (size_t i = 0; i < length; i++) {
        char byte = text[i];
        if (byte == '+' && plus_is_space)
            byte = ' ';
        if (byte == '%') {
            if (length - i < 3)
                return false;
            int high = hex_value(text[i + 1]);
            int low = hex_value(text[i + 2]);
            if (high < 0 || low < 0 || (high == 0 && low == 0))
                return false;
            byte = (char)(high * 16 + low);
            i += 2;
        }
        *out++ = byte;
    }
    *out = '\0';
    return true;
}

static int add_parameter(struct path *path, const char *text, size_t length, char **out, struct error **err)
{
    if (length == 0)
        return 0;
    if (path->parameter_count == QUERY_PARAMETERS_MAX)
        return error_set(err, ERROR_INVALID, "more than %d query parameters", QUERY_PARAMETERS_MAX);
    const char *equals = memchr(text, '=', length);
    size_t name_length = equals ? (size_t)(equals - text) : length;
    char *name = *out;
    if (!decode(text, name_length, true, name))
        return error_set(err, ERROR_INVALID, "a query parameter's name is badly escaped");
    char *value = name + strlen(name) + 1;
    value[0] = '\0';
    if (equals && !decode(equals + 1, length - name_length - 1, true, value))
        return error_set(err, ERROR_INVALID, "the query parameter %s is badly escaped", name);
    *out = value + strlen(value) + 1;
    path->parameters[path->parameter_count].name = name;
    path->parameters[path->parameter_count].value = value;
    path->parameter_count++;
    return 0;
}

static int add_segment(struct path *path, const char *text, size_t length, char **out, struct error **err)
{
    if (length == 0)
        return 0;
    if (path->segment_count == PATH_SEGMENTS_MAX)
        return error_set(err, ERROR_INVALID, "the path has more than %d segments", PATH_SEGMENTS_MAX);
    if (!decode(text, length, false, *out))
        return error_set(err, ERROR_INVALID, "the path is badly escaped");
    path->segments[path->segment_count++] = *out;
    *out += strlen(*out) + 1;
    return 0;
}

int path_parse(const char *encoded, struct path *ret, struct error **err)
{
    size_t length = strlen(encoded);
    if (encoded[0] != '/' || length > PATH_LENGTH_MAX)
        return error_set(err, ERROR_INVALID, "the path must begin with / and be shorter than %d bytes",
                         PATH_LENGTH_MAX);
    struct path path = {.text = xmalloc(2 * length + 2)};
    char *out = path.text;
    const char *query = strchrnul(encoded, '?');
    int result = 0;
    for (const char *at = encoded + 1; at <= query && result == 0;) {
        const char *end = memchr(at, '/', (size_t)(query - at));
        end = end ? end : query;
        result = add_segment(&path, at, (size_t)(end - at), &out, err);
        at = end + 1;
    }
    for (const char *at = query; *at && result == 0;) {
        const char *end = strchrnul(at + 1, '&');
        result = add_parameter(&path, at + 1, (size_t)(end - at - 1), &out, err);
        at = end;
    }
    if (result < 0) {
        path_done(&path);
        return result;
    }
    *ret = path;
    return 0;
}

void path_done(struct path *path)
{
    free(STEAL(path->text));
}

const char *path_parameter(const struct path *path, const char *name)
{
    for (size_t i = 0; i < path->parameter_count; i++)
        if (strcmp(path->parameters[i].name, name) == 0)
            return path->parameters[i].value;
    return NULL;
}

bool path_parameter_true(const struct path *path, const char *name)
{
    const char *value = path_parameter(path, name);
    return value && (strcmp(value, "true") == 0 || strcmp(value, "1") == 0);
}

char *path_join(const struct path *path)
{
    CLEANUP_BUF struct buf text = BUF_INIT(2 * PATH_LENGTH_MAX);
    for (size_t i = 0; i < path->segment_count; i++) {
        buf_add_char(&text, '/');
        buf_add_text(&text, path->segments[i]);
    }
    return buf_take(&text);
}
