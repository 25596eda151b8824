/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_scan.h"

#include "base/hex.h"
#include "base/utf8.h"

struct scan {
    const uint8_t *text;
    size_t length;
    size_t at;
    size_t copied; /* text before this is in out */
    int depth;
    int depth_max;
    bool marked;
    struct buf *out;
    struct error **err;
};

static int bad(struct scan *scan, const char *what)
{
    return error_set(scan->err, ERROR_INVALID, "not valid JSON at byte %zu: %s", scan->at, what);
}

static uint8_t peek(const struct scan *scan)
{
    return scan->at < scan->length ? scan->text[scan->at] : 0;
}

static void skip_space(struct scan *scan)
{
    for (;;) {
        uint8_t byte = peek(scan);
        if (byte != ' ' && byte != '\t' && byte != '\r' && byte != '\n')
            return;
        scan->at++;
    }
}

/* Copies the text up to the present place. */
static void flush(struct scan *scan)
{
    int result = buf_add(scan->out, scan->text + scan->copied, scan->at - scan->copied);
    ENSURE(result == 0); /* out was made large enough by json_scan */
    scan->copied = scan->at;
}

static bool hex4(const uint8_t *digits, unsigned *ret)
{
    *ret = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t digit = digits[i];
        int value = hex_value((char)digit);
        if (value < 0)
            return false;
        *ret = *ret << 4 | (unsigned)value;
    }
    return true;
}

static int scan_escape(struct scan *scan, bool first)
{
    scan->at++;
    if (peek(scan) != 'u') {
        if (peek(scan) == 0 || !strchr("\"\\/bfnrt", peek(scan)))
            return bad(scan, "unknown escape");
        scan->at++;
        return 0;
    }
    unsigned code;
    if (scan->length - scan->at < 5 || !hex4(scan->text + scan->at + 1, &code))
        return bad(scan, "broken \\u escape");
    if (code == 0)
        return bad(scan, "\\u0000 in a string");
    if (code == 1 && first) {
        /* A genuine string that begins with our mark: doubled. */
        scan->at--;
        flush(scan);
        scan->at++;
        int result = buf_add_text(scan->out, "\\u0001");
        ENSURE(result == 0);
        scan->marked = true;
    }
    scan->at += 5;
    if (code >= 0xDC00 && code <= 0xDFFF)
        return bad(scan, "lone surrogate");
    if (code >= 0xD800 && code <= 0xDBFF) {
        unsigned low;
        if (scan->length - scan->at < 6 || scan->text[scan->at] != '\\' || scan->text[scan->at + 1] != 'u' ||
            !hex4(scan->text + scan->at + 2, &low) || low < 0xDC00 || low > 0xDFFF)
            return bad(scan, "lone surrogate");
        scan->at += 6;
    }
    return 0;
}

/* Most of what is read: bytes of a string that stand for themselves. */
static void skip_plain(struct scan *scan)
{
    const uint8_t *at = scan->text + scan->at;
    const uint8_t *end = scan->text + scan->length;
    while (at < end && *at >= 0x20 && *at < 0x80 && *at != '"' && *at != '\\')
        at++;
    scan->at = (size_t)(at - scan->text);
}

static int scan_string(struct scan *scan)
{
    scan->at++;
    size_t begin = scan->at;
    for (skip_plain(scan); scan->at < scan->length; skip_plain(scan)) {
        uint8_t byte = scan->text[scan->at];
        if (byte == '"') {
            scan->at++;
            return 0;
        }
        if (byte < 0x20)
            return bad(scan, "control character in a string");
        if (byte == '\\') {
            int result = scan_escape(scan, scan->at == begin);
            if (result < 0)
                return result;
            continue;
        }
        size_t sequence = utf8_sequence_length(scan->text + scan->at, scan->length - scan->at);
        if (sequence == 0)
            return bad(scan, "invalid UTF-8");
        scan->at += sequence;
    }
    return bad(scan, "unfinished string");
}

static size_t skip_digits(struct scan *scan)
{
    size_t begin = scan->at;
    while (peek(scan) >= '0' && peek(scan) <= '9')
        scan->at++;
    return scan->at - begin;
}

/* A plain integer of at most 15 digits is exact in a double and printed exactly by cJSON; all else keeps its
 * text. */
static int scan_number(struct scan *scan)
{
    size_t begin = scan->at;
    bool plain = true;
    if (peek(scan) == '-')
        scan->at++;
    bool zero = peek(scan) == '0';
    size_t digits = skip_digits(scan);
    if (digits == 0 || (zero && digits > 1))
        return bad(scan, "broken number");
    if (zero && scan->text[begin] == '-')
        plain = false; /* -0 */
    if (peek(scan) == '.') {
        plain = false;
        scan->at++;
        if (skip_digits(scan) == 0)
            return bad(scan, "broken number");
    }
    if (peek(scan) == 'e' || peek(scan) == 'E') {
        plain = false;
        scan->at++;
        if (peek(scan) == '+' || peek(scan) == '-')
            scan->at++;
        if (skip_digits(scan) == 0)
            return bad(scan, "broken number");
    }
    if (plain && digits <= 15)
        return 0;
    size_t end = scan->at;
    scan->at = begin;
    flush(scan);
    int result = buf_add_text(scan->out, "\"\\u0001#");
    ENSURE(result == 0);
    scan->at = end;
    flush(scan);
    result = buf_add_char(scan->out, '"');
    ENSURE(result == 0);
    scan->marked = true;
    return 0;
}

static int scan_word(struct scan *scan, const char *word)
{
    size_t length = strlen(word);
    if (scan->length - scan->at < length || memcmp(scan->text + scan->at, word, length) != 0)
        return bad(scan, "unknown word");
    scan->at += length;
    return 0;
}

static int scan_value(struct scan *scan);

static int scan_member(struct scan *scan)
{
    skip_space(scan);
    if (peek(scan) != '"')
        return bad(scan, "a member name is missing");
    int result = scan_string(scan);
    if (result < 0)
        return result;
    skip_space(scan);
    if (peek(scan) != ':')
        return bad(scan, "':' is missing");
    scan->at++;
    return scan_value(scan);
}

static int scan_container(struct scan *scan, uint8_t end)
{
    if (++scan->depth > scan->depth_max)
        return bad(scan, "nested too deeply");
    scan->at++;
    skip_space(scan);
    if (peek(scan) == end) {
        scan->at++;
        scan->depth--;
        return 0;
    }
    for (;;) {
        int result = end == '}' ? scan_member(scan) : scan_value(scan);
        if (result < 0)
            return result;
        skip_space(scan);
        uint8_t next = peek(scan);
        if (next != ',' && next != end)
            return bad(scan, "',' or an end is missing");
        scan->at++;
        if (next == end) {
            scan->depth--;
            return 0;
        }
    }
}

static int scan_value(struct scan *scan)
{
    skip_space(scan);
    switch (peek(scan)) {
    case '{':
        return scan_container(scan, '}');
    case '[':
        return scan_container(scan, ']');
    case '"':
        return scan_string(scan);
    case 't':
        return scan_word(scan, "true");
    case 'f':
        return scan_word(scan, "false");
    case 'n':
        return scan_word(scan, "null");
    case 0:
        return bad(scan, scan->at < scan->length ? "a zero byte" : "it ends too early");
    default:
        return scan_number(scan);
    }
}

int json_scan(const char *text, size_t length, int depth_max, struct buf *out, bool *ret_marked,
              struct error **err)
{
    PRE(text && out && ret_marked && depth_max > 0);
    struct scan scan = {
        .text = (const uint8_t *)text, .length = length, .depth_max = depth_max, .out = out, .err = err};
    int result = scan_value(&scan);
    if (result < 0)
        return result;
    skip_space(&scan);
    if (scan.at != length)
        return bad(&scan, "bytes after its end");
    if (scan.marked)
        flush(&scan);
    *ret_marked = scan.marked;
    return 0;
}
