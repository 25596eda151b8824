/* SPDX-License-Identifier: Apache-2.0 */
#include "base/yaml_scalar.h"

#include "base/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

static cJSON *or_die(cJSON *node)
{
    ENSURE(node);
    return node;
}

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* ^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$ */
static bool looks_like_float(const char *at)
{
    if (*at == '-' || *at == '+')
        at++;
    size_t before = strspn(at, "0123456789");
    at += before;
    if (*at == '.') {
        at++;
        size_t after = strspn(at, "0123456789");
        at += after;
        if (before == 0 && after == 0)
            return false;
    } else if (before == 0) {
        return false;
    }
    if (*at == 'e' || *at == 'E') {
        at++;
        if (*at == '-' || *at == '+')
            at++;
        size_t exponent = strspn(at, "0123456789");
        if (exponent == 0)
            return false;
        at += exponent;
    }
    return *at == '\0';
}

static char *without_underscores(const char *text)
{
    char *plain = xstrdup(text);
    char *to = plain;
    for (const char *from = plain; *from; from++)
        if (*from != '_')
            *to++ = *from;
    *to = '\0';
    return plain;
}

/* As Go's ParseInt and ParseUint with base 0: 0x, 0o, 0b, a leading 0 for octal; a sign only within int64. */
static cJSON *integer_node(const char *plain)
{
    const char *digits = plain;
    bool negative = *digits == '-';
    bool sign = negative || *digits == '+';
    if (sign)
        digits++;
    int base = 10;
    if (digits[0] == '0' && digits[1]) {
        base = 8;
        char mark = (char)(digits[1] | 0x20);
        if (mark == 'x' || mark == 'b' || mark == 'o') {
            base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
            digits += 2;
        }
    }
    /* strtoull takes signs, blanks and, with some C libraries, a second prefix of its own. */
    const char *known = base == 16 ? "0123456789abcdefABCDEF" : "0123456789";
    if (digits[0] == '\0' || digits[strspn(digits, known)] != '\0')
        return NULL;
    char *end;
    errno = 0;
    unsigned long long size = strtoull(digits, &end, base);
    if (errno || *end)
        return NULL;
    if (size <= INT64_MAX)
        return json_new_int64(negative ? -(int64_t)size : (int64_t)size);
    if (negative && size == (uint64_t)INT64_MAX + 1)
        return json_new_int64(INT64_MIN);
    if (sign)
        return NULL;
    CLEANUP_FREE char *text = xasprintf("%llu", size);
    return or_die(cJSON_CreateRaw(text));
}

/* The fewest significant digits that read back as value. */
static int shortest_precision(double value, char *text, size_t size)
{
    for (int precision = 0; precision < 16; precision++) {
        snprintf(text, size, "%.*e", precision, value);
        if (strtod(text, NULL) == value)
            return precision;
    }
    snprintf(text, size, "%.16e", value);
    return 16;
}

/* As Go prints it in JSON: an exponent below 1e-6 and from 1e21 on, without a leading zero; else the shortest
 * digits, filled up with zeros. */
static cJSON *float_node(double value)
{
    PRE(isfinite(value));
    if (value == floor(value) && fabs(value) < 1e15)
        return json_new_int64((int64_t)value);
    char text[64];
    int precision = shortest_precision(value, text, sizeof(text));
    char *mark = strchr(text, 'e');
    int exponent = (int)strtol(mark + 1, NULL, 10);
    if (fabs(value) < 1e-6 || fabs(value) >= 1e21) {
        snprintf(mark, sizeof(text) - (size_t)(mark - text), "e%+d", exponent);
    } else if (exponent <= precision) {
        snprintf(text, sizeof(text), "%.*f", precision - exponent, value);
    } else {
        char digits[32];
        size_t length = 0;
        for (const char *at = text; at < mark; at++)
            if (*at != '.')
                digits[length++] = *at;
        digits[length] = '\0';
        snprintf(text, sizeof(text), "%s%.*s", digits, exponent - precision, "00000000000000000000");
    }
    return or_die(cJSON_CreateRaw(text));
}

char *yaml_float_key(const char *text)
{
    CLEANUP_FREE char *plain = without_underscores(text);
    float value = strtof(plain, NULL);
    if (!isfinite(value))
        return xstrdup(text);
    char digits[32];
    int precision = 0;
    do
        snprintf(digits, sizeof(digits), "%.*e", precision, (double)value);
    while (strtof(digits, NULL) != value && ++precision < 9);
    int exponent = (int)strtol(strchr(digits, 'e') + 1, NULL, 10);
    if (exponent < -4 || exponent >= 6)
        return xstrdup(digits);
    return xasprintf("%.*f", MAX(0, precision - exponent), (double)value);
}

static cJSON *number_node(const char *text, enum yaml_kind *ret_kind)
{
    /* A leading dot is read without the tolerance for underscores. */
    CLEANUP_FREE char *plain = text[0] == '.' ? xstrdup(text) : without_underscores(text);
    cJSON *node = text[0] == '.' ? NULL : integer_node(plain);
    if (node) {
        *ret_kind = YAML_INT;
        return node;
    }
    if (!looks_like_float(plain))
        return NULL;
    double value = strtod(plain, NULL);
    if (!isfinite(value))
        return NULL; /* 1e400 is text */
    *ret_kind = YAML_FLOAT;
    return float_node(value);
}

cJSON *yaml_resolve(const char *text, enum yaml_kind *ret_kind)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {"y",  "Y",  "yes",  "Yes",  "YES",  "on",
                                        "On", "ON", "true", "True", "TRUE", NULL};
    static const char *const falses[] = {"n",   "N",   "no",    "No",    "NO",    "off",
                                         "Off", "OFF", "false", "False", "FALSE", NULL};
    static const char *const infinite[] = {".inf",  ".Inf",  ".INF", "+.inf", "+.Inf", "+.INF", "-.inf",
                                           "-.Inf", "-.INF", ".nan", ".NaN",  ".NAN",  NULL};
    *ret_kind = YAML_NULL;
    if (is_one_of(text, nulls))
        return or_die(cJSON_CreateNull());
    *ret_kind = YAML_BOOL;
    if (is_one_of(text, trues) || is_one_of(text, falses))
        return or_die(cJSON_CreateBool(is_one_of(text, trues)));
    *ret_kind = YAML_FLOAT;
    if (is_one_of(text, infinite))
        return NULL;
    if (is_digit(text[0]) || strchr("+-.", text[0])) {
        cJSON *node = number_node(text, ret_kind);
        if (node)
            return node;
    }
    *ret_kind = YAML_TEXT;
    return json_new_str(text);
}

static int base64_value(char digit)
{
    if (digit >= 'A' && digit <= 'Z')
        return digit - 'A';
    if (digit >= 'a' && digit <= 'z')
        return digit - 'a' + 26;
    if (is_digit(digit))
        return digit - '0' + 52;
    return digit == '+' ? 62 : digit == '/' ? 63 : -1;
}

static bool is_text(const char *bytes, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t sequence = utf8_sequence_length(bytes + at, length - at);
        if (sequence == 0 || bytes[at] == '\0')
            return false;
        at += sequence;
    }
    return true;
}

char *yaml_decode_binary(const char *text)
{
    CLEANUP_FREE char *bytes = xmalloc(strlen(text) + 1);
    size_t length = 0;
    size_t digits = 0;
    size_t padding = 0;
    unsigned group = 0;
    for (; *text; text++) {
        if (strchr(" \t\r\n", *text))
            continue;
        int value = base64_value(*text);
        if (*text == '=')
            padding++;
        else if (value < 0 || padding > 0)
            return NULL;
        else
            group = group << 6 | (unsigned)value;
        if (*text == '=')
            group <<= 6;
        if (++digits % 4 == 0) {
            bytes[length++] = (char)(group >> 16 & 0xFF);
            bytes[length++] = (char)(group >> 8 & 0xFF);
            bytes[length++] = (char)(group & 0xFF);
            group = 0;
        }
    }
    if (digits % 4 != 0 || padding > 2)
        return NULL;
    length -= padding;
    if (!is_text(bytes, length))
        return NULL;
    return xmemdup0(bytes, length);
}
