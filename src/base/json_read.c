/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_read.h"

#include "base/hex.h"
#include "base/utf8.h"

/* So many digits of a whole number are exact in a double, and printed exactly. */
enum { EXACT_DIGITS_MAX = 15 };

struct reading {
    const uint8_t *text;
    size_t length;
    size_t at;
    int depth;
    int depth_max;
    struct error **err;
};

static int bad(struct reading *reading, const char *what)
{
    return error_set(reading->err, ERROR_INVALID, "not valid JSON at byte %zu: %s", reading->at, what);
}

static uint8_t peek(const struct reading *reading)
{
    return reading->at < reading->length ? reading->text[reading->at] : 0;
}

static void skip_space(struct reading *reading)
{
    for (;;) {
        uint8_t byte = peek(reading);
        if (byte != ' ' && byte != '\t' && byte != '\r' && byte != '\n')
            return;
        reading->at++;
    }
}

static cJSON *or_die(cJSON *node)
{
    ENSURE(node);
    return node;
}

/* --- strings -------------------------------------------------------------------------------------------- */

static bool hex4(const uint8_t *digits, unsigned *ret)
{
    *ret = 0;
    for (int i = 0; i < 4; i++) {
        int value = hex_value((char)digits[i]);
        if (value < 0)
            return false;
        *ret = *ret << 4 | (unsigned)value;
    }
    return true;
}

static int check_escape(struct reading *reading)
{
    reading->at++;
    if (peek(reading) != 'u') {
        if (peek(reading) == 0 || !strchr("\"\\/bfnrt", peek(reading)))
            return bad(reading, "unknown escape");
        reading->at++;
        return 0;
    }
    unsigned code;
    if (reading->length - reading->at < 5 || !hex4(reading->text + reading->at + 1, &code))
        return bad(reading, "broken \\u escape");
    if (code == 0)
        return bad(reading, "\\u0000 in a string");
    reading->at += 5;
    if (code >= 0xDC00 && code <= 0xDFFF)
        return bad(reading, "lone surrogate");
    if (code < 0xD800 || code > 0xDBFF)
        return 0;
    const uint8_t *second = reading->text + reading->at;
    unsigned low;
    if (reading->length - reading->at < 6 || second[0] != '\\' || second[1] != 'u' ||
        !hex4(second + 2, &low) || low < 0xDC00 || low > 0xDFFF)
        return bad(reading, "lone surrogate");
    reading->at += 6;
    return 0;
}

/* Most of what is read: bytes of a string that stand for themselves. */
static void skip_plain(struct reading *reading)
{
    const uint8_t *at = reading->text + reading->at;
    const uint8_t *end = reading->text + reading->length;
    while (at < end && *at >= 0x20 && *at < 0x80 && *at != '"' && *at != '\\')
        at++;
    reading->at = (size_t)(at - reading->text);
}

/* Up to the closing quote. */
static int check_string(struct reading *reading, bool *ret_escaped)
{
    *ret_escaped = false;
    for (skip_plain(reading); reading->at < reading->length; skip_plain(reading)) {
        uint8_t byte = reading->text[reading->at];
        if (byte == '"')
            return 0;
        if (byte < 0x20)
            return bad(reading, "control character in a string");
        if (byte == '\\') {
            *ret_escaped = true;
            int result = check_escape(reading);
            if (result < 0)
                return result;
            continue;
        }
        size_t sequence = utf8_sequence_length(reading->text + reading->at, reading->length - reading->at);
        if (sequence == 0)
            return bad(reading, "invalid UTF-8");
        reading->at += sequence;
    }
    return bad(reading, "unfinished string");
}

static char *put_code(char *to, unsigned code)
{
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint8_t leads[] = {0, 0xC0, 0xE0, 0xF0};
    *to++ = (char)(leads[more] | code >> (6 * more));
    while (more-- > 0)
        *to++ = (char)(0x80 | (code >> (6 * more) & 0x3F));
    return to;
}

/* In place, of text that was checked: no escape is shorter than what it stands for. */
static void unescape(char *text)
{
    static const char letters[][2] = {{'b', '\b'}, {'f', '\f'}, {'n', '\n'}, {'r', '\r'}, {'t', '\t'}};
    char *to = text;
    for (const char *at = text; *at;) {
        if (*at != '\\') {
            *to++ = *at++;
            continue;
        }
        unsigned code = (uint8_t)at[1], low = 0;
        at += 2;
        if (code == 'u') {
            hex4((const uint8_t *)at, &code);
            at += 4;
            if (code >= 0xD800 && code <= 0xDBFF) {
                hex4((const uint8_t *)at + 2, &low);
                code = 0x10000 + ((code & 0x3FF) << 10 | (low & 0x3FF));
                at += 6;
            }
        } else {
            for (size_t i = 0; i < ARRAY_SIZE(letters); i++)
                code = code == (unsigned)letters[i][0] ? (unsigned)letters[i][1] : code;
        }
        to = put_code(to, code);
    }
    *to = '\0';
}

/* From its first quote on; NULL: refused. */
static char *read_string(struct reading *reading)
{
    const char *begin = (const char *)reading->text + ++reading->at;
    bool escaped;
    if (check_string(reading, &escaped) < 0)
        return NULL;
    size_t length = (size_t)((const char *)reading->text + reading->at++ - begin);
    char *text = xmalloc(length + 1);
    memcpy(text, begin, length);
    text[length] = '\0';
    if (escaped)
        unescape(text);
    return text;
}

static cJSON *read_string_node(struct reading *reading)
{
    char *text = read_string(reading);
    if (!text)
        return NULL;
    cJSON *node = or_die(cJSON_CreateNull());
    node->type = cJSON_String;
    node->valuestring = text;
    return node;
}

/* --- numbers and words ---------------------------------------------------------------------------------- */

static size_t skip_digits(struct reading *reading)
{
    size_t begin = reading->at;
    while (peek(reading) >= '0' && peek(reading) <= '9')
        reading->at++;
    return reading->at - begin;
}

static cJSON *number_node(const char *text, size_t length, bool plain)
{
    if (!plain) {
        CLEANUP_FREE char *literal = xstrndup(text, length);
        return or_die(cJSON_CreateRaw(literal));
    }
    int64_t number = 0;
    for (size_t i = *text == '-'; i < length; i++)
        number = number * 10 + (text[i] - '0');
    return or_die(cJSON_CreateNumber((double)(*text == '-' ? -number : number)));
}

/* The fraction and the exponent, where they are; 1: there was one, 0: none; negative: broken. */
static int skip_fraction(struct reading *reading)
{
    size_t begin = reading->at;
    if (peek(reading) == '.') {
        reading->at++;
        if (skip_digits(reading) == 0)
            return -ERROR_INVALID;
    }
    if (peek(reading) == 'e' || peek(reading) == 'E') {
        reading->at++;
        if (peek(reading) == '+' || peek(reading) == '-')
            reading->at++;
        if (skip_digits(reading) == 0)
            return -ERROR_INVALID;
    }
    return reading->at > begin;
}

/* A plain integer of few digits is exact in a double; all else keeps its text. */
static cJSON *read_number(struct reading *reading)
{
    size_t begin = reading->at;
    bool negative = peek(reading) == '-';
    reading->at += negative;
    bool zero = peek(reading) == '0';
    size_t digits = skip_digits(reading);
    int fraction = digits == 0 || (zero && digits > 1) ? -ERROR_INVALID : skip_fraction(reading);
    if (fraction < 0) {
        bad(reading, "broken number");
        return NULL;
    }
    bool plain = !fraction && digits <= EXACT_DIGITS_MAX && !(zero && negative);
    return number_node((const char *)reading->text + begin, reading->at - begin, plain);
}

static cJSON *read_word(struct reading *reading)
{
    static const struct {
        const char *word;
        int type;
    } words[] = {{"true", cJSON_True}, {"false", cJSON_False}, {"null", cJSON_NULL}};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        size_t length = strlen(words[i].word);
        if (reading->length - reading->at < length ||
            memcmp(reading->text + reading->at, words[i].word, length) != 0)
            continue;
        reading->at += length;
        cJSON *node = or_die(cJSON_CreateNull());
        node->type = words[i].type;
        return node;
    }
    bad(reading, "unknown word");
    return NULL;
}

/* --- containers ----------------------------------------------------------------------------------------- */

static cJSON *read_value(struct reading *reading);

static cJSON *read_member(struct reading *reading)
{
    skip_space(reading);
    if (peek(reading) != '"') {
        bad(reading, "a member name is missing");
        return NULL;
    }
    CLEANUP_FREE char *key = read_string(reading);
    if (!key)
        return NULL;
    skip_space(reading);
    if (peek(reading) != ':') {
        bad(reading, "':' is missing");
        return NULL;
    }
    reading->at++;
    cJSON *node = read_value(reading);
    if (node)
        node->string = STEAL(key);
    return node;
}

/* cJSON's list: the first child's prev is the last one. */
static void append(cJSON *container, cJSON *node)
{
    cJSON *first = container->child;
    if (!first) {
        container->child = node->prev = node;
        return;
    }
    node->prev = first->prev;
    first->prev->next = node;
    first->prev = node;
}

/* From its first bracket on. */
static int read_items(struct reading *reading, cJSON *container, uint8_t end)
{
    reading->at++;
    skip_space(reading);
    if (peek(reading) == end) {
        reading->at++;
        return 0;
    }
    for (;;) {
        cJSON *node = end == '}' ? read_member(reading) : read_value(reading);
        if (!node)
            return -ERROR_INVALID;
        append(container, node);
        skip_space(reading);
        uint8_t next = peek(reading);
        if (next != ',' && next != end)
            return bad(reading, "',' or an end is missing");
        reading->at++;
        if (next == end)
            return 0;
    }
}

static cJSON *read_container(struct reading *reading, uint8_t end)
{
    if (++reading->depth > reading->depth_max) {
        bad(reading, "nested too deeply");
        return NULL;
    }
    cJSON *container = or_die(end == '}' ? cJSON_CreateObject() : cJSON_CreateArray());
    if (read_items(reading, container, end) < 0) {
        cJSON_Delete(container);
        return NULL;
    }
    reading->depth--;
    return container;
}

static cJSON *read_value(struct reading *reading)
{
    skip_space(reading);
    switch (peek(reading)) {
    case '{':
        return read_container(reading, '}');
    case '[':
        return read_container(reading, ']');
    case '"':
        return read_string_node(reading);
    case 't':
    case 'f':
    case 'n':
        return read_word(reading);
    case 0:
        bad(reading, reading->at < reading->length ? "a zero byte" : "it ends too early");
        return NULL;
    default:
        return read_number(reading);
    }
}

cJSON *json_read(const char *text, size_t length, int depth_max, struct error **err)
{
    PRE(text && depth_max > 0);
    struct reading reading = {
        .text = (const uint8_t *)text, .length = length, .depth_max = depth_max, .err = err};
    cJSON *tree = read_value(&reading);
    skip_space(&reading);
    if (!tree || reading.at == length)
        return tree;
    bad(&reading, "bytes after its end");
    cJSON_Delete(tree);
    return NULL;
}
