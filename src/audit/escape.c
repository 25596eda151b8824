/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/escape.h"
#include "base/json.h"

#include <wchar.h>

enum style { STYLE_PLAIN, STYLE_JSON, STYLE_CSV, STYLE_COUNT };

/* Bytes that end a run which is copied as it is. */
#define CONTROL 1U
#define QUOTE 2U
#define BACKSLASH 4U
#define HIGH 8U

static const unsigned char byte_classes[256] = {
    [0x00 ... 0x1f] = CONTROL, ['"'] = QUOTE, ['\\'] = BACKSLASH, [0x7f] = CONTROL, [0x80 ... 0xff] = HIGH,
};

static const unsigned style_stops[STYLE_COUNT] = {
    [STYLE_PLAIN] = CONTROL | HIGH,
    [STYLE_JSON] = CONTROL | HIGH | QUOTE | BACKSLASH,
    [STYLE_CSV] = CONTROL | HIGH | QUOTE,
};

/* Length of the valid UTF-8 sequence at bytes and its character; 0 when it is not valid. Stops at NUL by
 * itself: a NUL is no continuation byte. */
static size_t decode(const unsigned char *bytes, uint32_t *ret)
{
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = bytes[0];
    size_t length = 0;
    uint32_t character = first;
    if (first < 0x80) {
        length = 1;
    } else if (first >= 0xc2 && first < 0xe0) {
        length = 2;
        character = first & 0x1fU;
    } else if (first >= 0xe0 && first < 0xf0) {
        length = 3;
        character = first & 0x0fU;
    } else if (first >= 0xf0 && first < 0xf5) {
        length = 4;
        character = first & 0x07U;
    }
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
        character = character << 6 | (bytes[i] & 0x3fU);
    }
    if (length == 0 || character < smallest[length] || character > 0x10ffff ||
        (character >= 0xd800 && character < 0xe000))
        return 0;
    *ret = character;
    return length;
}

/* C1 and what changes the direction or the order of what is shown. */
static bool is_unsafe(uint32_t character)
{
    return (character >= 0x80 && character < 0xa0) || character == 0x061c || character == 0x200e ||
           character == 0x200f || (character >= 0x2028 && character <= 0x202e) ||
           (character >= 0x2066 && character <= 0x2069) || character == 0xfeff ||
           (character >= 0xe0000 && character < 0xe0080);
}

static void add_control(struct buf *out, unsigned char byte, enum style style)
{
    switch (byte) {
    case '\n':
        buf_add_text(out, "\\n");
        return;
    case '\t':
        buf_add_text(out, "\\t");
        return;
    case '\r':
        buf_add_text(out, "\\r");
        return;
    default:
        buf_addf(out, style == STYLE_JSON ? "\\u%04x" : "\\x%02x", byte);
    }
}

static void add_unsafe(struct buf *out, uint32_t character, enum style style)
{
    if (character <= 0xffff)
        buf_addf(out, "\\u%04x", character);
    else if (style == STYLE_JSON)
        buf_addf(out, "\\u%04x\\u%04x", 0xd800 + ((character - 0x10000) >> 10), 0xdc00 + (character & 0x3ff));
    else
        buf_addf(out, "\\U%08x", character);
}

/* Adds the sequence at *at as it is or escaped, and returns its length. */
static size_t add_high(struct buf *out, const char *at, enum style style)
{
    uint32_t character;
    size_t length = decode((const unsigned char *)at, &character);
    if (length == 0) {
        if (style == STYLE_JSON)
            buf_add_text(out, "\\ufffd");
        else
            buf_addf(out, "\\x%02x", (unsigned char)*at);
        return 1;
    }
    if (is_unsafe(character))
        add_unsafe(out, character, style);
    else
        buf_add(out, at, length);
    return length;
}

static void escape(struct buf *out, const char *text, enum style style)
{
    for (;;) {
        const char *run = text;
        while (*text && !(byte_classes[(unsigned char)*text] & style_stops[style]))
            text++;
        buf_add(out, run, (size_t)(text - run));
        unsigned char byte = (unsigned char)*text;
        if (byte == 0)
            return;
        switch (byte_classes[byte]) {
        case CONTROL:
            add_control(out, byte, style);
            text++;
            break;
        case HIGH:
            text += add_high(out, text, style);
            break;
        default:
            buf_add(out, style == STYLE_CSV ? "\"\"" : byte == '"' ? "\\\"" : "\\\\", 2);
            text++;
        }
    }
}

void escape_plain(struct buf *out, const char *text)
{
    escape(out, text, STYLE_PLAIN);
}

void escape_json(struct buf *out, const char *text)
{
    buf_add_char(out, '"');
    escape(out, text, STYLE_JSON);
    buf_add_char(out, '"');
}

void escape_json_text(struct buf *out, const char *text)
{
    cJSON *tree = NULL;
    if (json_parse(text, strlen(text), &tree, NULL) < 0) {
        escape_json(out, text);
        return;
    }
    json_delete(tree);
    /* It is valid: high characters occur only inside strings, C0 only as space between tokens. */
    for (const char *at = text; *at;) {
        unsigned char byte = (unsigned char)*at;
        if (byte >= 0x80) {
            at += add_high(out, at, STYLE_JSON);
            continue;
        }
        if (byte == 0x7f)
            buf_add_text(out, "\\u007f");
        else if (byte >= 0x20)
            buf_add_char(out, (char)byte);
        at++;
    }
}

/* The first character that is not blank decides; blank is a space, also one that does not break. */
static bool is_formula(const char *text)
{
    while (*text == ' ' || (text[0] == '\xc2' && text[1] == '\xa0'))
        text += *text == ' ' ? 1 : 2;
    switch (*text) {
    case '=':
    case '+':
    case '-':
    case '@':
    case '\t':
    case '\r':
    case '\n':
    case '\'':
        return true;
    case '\xef': /* full width: = + - @ */
        return text[1] == '\xbc' &&
               (text[2] == '\x9d' || text[2] == '\x8b' || text[2] == '\x8d' || text[2] == '\xa0');
    default:
        return false;
    }
}

void escape_csv(struct buf *out, const char *text, bool raw)
{
    buf_add_char(out, '"');
    if (!raw && is_formula(text))
        buf_add_char(out, '\'');
    escape(out, text, STYLE_CSV);
    buf_add_char(out, '"');
}

/* Length in bytes and columns of the character at text. */
static size_t measure(const char *text, size_t *ret_columns)
{
    uint32_t character;
    size_t length = (unsigned char)*text < 0x80 ? 0 : decode((const unsigned char *)text, &character);
    if (length == 0) {
        *ret_columns = 1;
        return 1;
    }
    int columns = wcwidth((wchar_t)character);
    *ret_columns = columns < 0 ? 1 : (size_t)columns;
    return length;
}

size_t text_width(const char *text)
{
    size_t width = 0;
    while (*text) {
        size_t columns;
        text += measure(text, &columns);
        width += columns;
    }
    return width;
}

size_t text_fit(const char *text, size_t width)
{
    const char *at = text;
    while (*at) {
        size_t columns;
        size_t length = measure(at, &columns);
        if (columns > width)
            break;
        width -= columns;
        at += length;
    }
    return (size_t)(at - text);
}
