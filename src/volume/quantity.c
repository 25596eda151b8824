/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/quantity.h"

typedef unsigned __int128 nano;

#define NANO_PER_UNIT ((nano)1000000000)
#define NANO_MAX (~(nano)0)
/* What a value with a binary suffix is capped at. */
#define BINARY_MAX ((nano)INT64_MAX)

enum {
    NANO_DIGITS = 9,
    EXPONENT_MAX = 1 << 30, /* beyond any text: larger ones mean as much */
    SHOWN_MAX = 64,         /* characters of a wrong text in a message */
    PRINT_MAX = 64,
};

struct suffix {
    const char *text;
    enum quantity_format format;
    int exponent; /* of 10; of 2 when binary */
};

static const struct suffix suffixes[] = {
    {"n", QUANTITY_DECIMAL, -9}, {"u", QUANTITY_DECIMAL, -6}, {"m", QUANTITY_DECIMAL, -3},
    {"", QUANTITY_DECIMAL, 0},   {"k", QUANTITY_DECIMAL, 3},  {"M", QUANTITY_DECIMAL, 6},
    {"G", QUANTITY_DECIMAL, 9},  {"T", QUANTITY_DECIMAL, 12}, {"P", QUANTITY_DECIMAL, 15},
    {"E", QUANTITY_DECIMAL, 18}, {"Ki", QUANTITY_BINARY, 10}, {"Mi", QUANTITY_BINARY, 20},
    {"Gi", QUANTITY_BINARY, 30}, {"Ti", QUANTITY_BINARY, 40}, {"Pi", QUANTITY_BINARY, 50},
    {"Ei", QUANTITY_BINARY, 60},
};

/* A text taken apart: [sign] whole [. fraction] suffix. */
struct parts {
    bool negative;
    const char *whole; /* without leading zeros, may be empty */
    size_t whole_length;
    const char *fraction;
    size_t fraction_length;
    enum quantity_format format;
    int64_t exponent;
};

/* --- taking apart --------------------------------------------------------------------------------------- */

static size_t digits_at(const char *text, size_t length)
{
    size_t count = 0;
    while (count < length && text[count] >= '0' && text[count] <= '9')
        count++;
    return count;
}

/* "e3", "E-06": the server reads the number into 64 bits; what does not fit there is no exponent. */
static bool read_exponent(const char *text, size_t length, int64_t *ret)
{
    if (length == 0 || (text[0] != 'e' && text[0] != 'E'))
        return false;
    size_t at = 1;
    bool negative = at < length && text[at] == '-';
    if (at < length && (text[at] == '-' || text[at] == '+'))
        at++;
    size_t count = digits_at(text + at, length - at);
    if (count == 0 || at + count != length)
        return false;
    int64_t value = 0;
    for (; at < length; at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, text[at] - '0', &value))
            return false;
    value = MIN(value, EXPONENT_MAX);
    *ret = negative ? -value : value;
    return true;
}

static bool read_suffix(const char *text, size_t length, struct parts *parts)
{
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
        if (strlen(suffixes[i].text) == length && memcmp(suffixes[i].text, text, length) == 0) {
            parts->format = suffixes[i].format;
            parts->exponent = suffixes[i].exponent;
            return true;
        }
    parts->format = QUANTITY_EXPONENT;
    return read_exponent(text, length, &parts->exponent);
}

static bool take_apart(const char *text, size_t length, struct parts *parts)
{
    *parts = (struct parts){.fraction = text};
    if (length == 0)
        return false;
    size_t at = text[0] == '-' || text[0] == '+' ? 1 : 0;
    parts->negative = text[0] == '-';
    while (at < length && text[at] == '0')
        at++;
    parts->whole = text + at;
    parts->whole_length = digits_at(text + at, length - at);
    at += parts->whole_length;
    if (at < length && text[at] == '.') {
        at++;
        parts->fraction = text + at;
        parts->fraction_length = digits_at(text + at, length - at);
        at += parts->fraction_length;
    }
    return read_suffix(text + at, length - at, parts);
}

static char digit_of(const struct parts *parts, size_t index)
{
    return index < parts->whole_length ? parts->whole[index] : parts->fraction[index - parts->whole_length];
}

/* --- the value ------------------------------------------------------------------------------------------ */

/* All digits as one number, times 10^(exponent - digits of the fraction), in nano-units: digits beyond a
 * nano-unit only round. False: it does not fit. */
static bool decimal_nano(const struct parts *parts, nano *ret)
{
    size_t count = parts->whole_length + parts->fraction_length;
    int64_t shift = NANO_DIGITS + parts->exponent - (int64_t)parts->fraction_length;
    int64_t kept = shift < 0 ? (int64_t)count + shift : (int64_t)count;
    nano value = 0;
    bool rest = false;
    for (size_t i = 0; i < count; i++) {
        unsigned digit = (unsigned)(digit_of(parts, i) - '0');
        if ((int64_t)i >= kept)
            rest = rest || digit != 0;
        else if (__builtin_mul_overflow(value, (nano)10, &value) ||
                 __builtin_add_overflow(value, (nano)digit, &value))
            return false;
    }
    for (; shift > 0 && value != 0; shift--)
        if (__builtin_mul_overflow(value, (nano)10, &value))
            return false;
    *ret = value;
    return !rest || !__builtin_add_overflow(value, (nano)1, ret);
}

/* The whole part fits 63 bits, or the value is capped anyway. The fraction is multiplied digit by digit from
 * its end, as on paper: what stays behind the point only rounds. */
static nano binary_nano(const struct parts *parts)
{
    nano whole = 0;
    for (size_t i = 0; i < parts->whole_length && whole <= BINARY_MAX; i++)
        whole = whole * 10 + (unsigned)(parts->whole[i] - '0');
    if (whole > BINARY_MAX || (whole << parts->exponent) > BINARY_MAX)
        return BINARY_MAX * NANO_PER_UNIT;

    nano factor = NANO_PER_UNIT << parts->exponent;
    nano carry = 0;
    bool rest = false;
    for (size_t i = parts->fraction_length; i-- > 0;) {
        carry += factor * (unsigned)(parts->fraction[i] - '0');
        rest = rest || carry % 10 != 0;
        carry /= 10;
    }
    nano value = (whole << parts->exponent) * NANO_PER_UNIT + carry + (rest ? 1 : 0);
    return MIN(value, BINARY_MAX * NANO_PER_UNIT);
}

static char *shown(const char *text, size_t length)
{
    char *copy =
        xasprintf("%.*s%s", (int)MIN(length, (size_t)SHOWN_MAX), text, length > SHOWN_MAX ? "..." : "");
    for (char *at = copy; *at; at++)
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f)
            *at = '?';
    return copy;
}

int quantity_parse(const char *text, size_t length, struct quantity *ret, struct error **err)
{
    struct parts parts;
    if (!take_apart(text, length, &parts)) {
        CLEANUP_FREE char *wrong = shown(text, length);
        return error_set(
            err, ERROR_INVALID,
            "\"%s\" is no size: it must be a number with one of the suffixes Ki, Mi, Gi, Ti, Pi, "
            "Ei, k, M, G, T, P, E or none, as in 10Gi",
            wrong);
    }
    nano value = 0;
    if (parts.format == QUANTITY_BINARY) {
        value = binary_nano(&parts);
    } else if (!decimal_nano(&parts, &value)) {
        CLEANUP_FREE char *wrong = shown(text, length);
        return error_set(err, ERROR_TOO_LARGE,
                         "the size %s is too large: no volume has more than 3.4e29 bytes", wrong);
    }
    *ret = (struct quantity){value, parts.negative && value != 0, parts.format};
    return 0;
}

/* The text within the blanks; *ret_length is its length. */
static const char *without_blanks(const char *text, size_t *ret_length)
{
    const char *begin = text + strspn(text, " ");
    size_t length = strlen(begin);
    while (length > 0 && begin[length - 1] == ' ')
        length--;
    *ret_length = length;
    return begin;
}

int quantity_read(const cJSON *node, struct quantity *ret, char **ret_text, struct error **err)
{
    *ret_text = NULL;
    if (!cJSON_IsString(node) && !cJSON_IsNumber(node) && !cJSON_IsRaw(node))
        return error_set(err, ERROR_INVALID, "a size must be a text or a number");
    *ret_text = cJSON_IsString(node) ? xstrdup(node->valuestring) : json_print(node);
    size_t length;
    const char *begin = without_blanks(*ret_text, &length);
    return quantity_parse(begin, length, ret, err);
}

/* --- comparing and printing ----------------------------------------------------------------------------- */

int quantity_sign(const struct quantity *quantity)
{
    return quantity->nano == 0 ? 0 : quantity->negative ? -1 : 1;
}

int quantity_compare(const struct quantity *a, const struct quantity *b)
{
    if (quantity_sign(a) != quantity_sign(b))
        return quantity_sign(a) - quantity_sign(b);
    if (a->nano == b->nano)
        return 0;
    return (a->nano < b->nano) != a->negative ? -1 : 1;
}

/* Decimal digits into the end of text; where they begin. */
static char *print_digits(nano value, char text[static PRINT_MAX])
{
    char *at = text + PRINT_MAX - 1;
    *at = '\0';
    do {
        *--at = (char)('0' + (int)(value % 10));
        value /= 10;
    } while (value != 0);
    return at;
}

char *quantity_exact_text(const struct quantity *quantity)
{
    char whole_text[PRINT_MAX], fraction_text[PRINT_MAX];
    const char *sign = quantity->negative ? "-" : "";
    const char *whole = print_digits(quantity->nano / NANO_PER_UNIT, whole_text);
    nano rest = quantity->nano % NANO_PER_UNIT;
    if (rest == 0)
        return xasprintf("%s%s", sign, whole);
    /* One more digit in front keeps the zeros behind the point. */
    char *fraction = print_digits(NANO_PER_UNIT + rest, fraction_text) + 1;
    for (size_t length = strlen(fraction); fraction[length - 1] == '0'; length--)
        fraction[length - 1] = '\0';
    return xasprintf("%s%s.%s", sign, whole, fraction);
}

/* --- the server's spelling ------------------------------------------------------------------------------ */

static const char *suffix_text(enum quantity_format format, int exponent)
{
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
        if (suffixes[i].format == format && suffixes[i].exponent == exponent)
            return suffixes[i].text;
    return NULL;
}

/* apimachinery keeps a text that its fast way finds to be in order, and only then: few digits, a power that
 * has a suffix, no zeros that a larger suffix would swallow. */
static bool is_echoed_as_it_is(const struct parts *parts)
{
    enum { FAST_DIGITS_DECIMAL = 18, FAST_DIGITS_BINARY = 14, EIGHT = 8 };
    size_t count = parts->whole_length + parts->fraction_length;
    if (parts->whole_length == 0)
        return false;
    if (parts->format == QUANTITY_BINARY) {
        if (parts->fraction_length > 0 || (int64_t)count > FAST_DIGITS_BINARY - parts->exponent * 3 / 10)
            return false;
        nano value = 0;
        for (size_t i = 0; i < count; i++)
            value = value * 10 + (unsigned)(digit_of(parts, i) - '0');
        return value % EIGHT != 0;
    }
    int64_t scale = parts->exponent - (int64_t)parts->fraction_length;
    if (count > FAST_DIGITS_DECIMAL || scale < -NANO_DIGITS || scale % 3 != 0)
        return false;
    return count < 3 || digit_of(parts, count - 1) != '0' || digit_of(parts, count - 2) != '0' ||
           digit_of(parts, count - 3) != '0';
}

/* The largest power of 1000 that leaves an integer. */
static char *echo_decimal(const struct quantity *quantity)
{
    char text[PRINT_MAX];
    nano value = quantity->nano;
    int exponent = -NANO_DIGITS;
    for (; value % 1000 == 0; exponent += 3)
        value /= 1000;
    const char *sign = quantity->negative ? "-" : "";
    const char *digits = print_digits(value, text);
    const char *suffix =
        quantity->format == QUANTITY_EXPONENT ? NULL : suffix_text(QUANTITY_DECIMAL, exponent);
    if (suffix || exponent == 0)
        return xasprintf("%s%s%s", sign, digits, suffix ? suffix : "");
    return xasprintf("%s%se%d", sign, digits, exponent);
}

static char *echo_binary(const struct quantity *quantity)
{
    char text[PRINT_MAX];
    nano value = quantity->nano / NANO_PER_UNIT;
    int exponent = 0;
    for (; value % 1024 == 0; exponent += 10)
        value /= 1024;
    const char *suffix = exponent == 0 ? "" : suffix_text(QUANTITY_BINARY, exponent);
    ENSURE(suffix); /* capped at 2^63-1 */
    return xasprintf("%s%s%s", quantity->negative ? "-" : "", print_digits(value, text), suffix);
}

char *quantity_echo(const char *text)
{
    struct parts parts;
    struct quantity quantity;
    size_t length;
    const char *begin = without_blanks(text, &length);
    if (!take_apart(begin, length, &parts) || quantity_parse(begin, length, &quantity, NULL) < 0)
        return NULL;
    if (quantity.nano == 0)
        return xstrdup("0");
    if (is_echoed_as_it_is(&parts))
        return xstrndup(begin, length);
    bool shown_decimal = quantity.format != QUANTITY_BINARY || quantity.nano < 1024 * NANO_PER_UNIT ||
                         quantity.nano % NANO_PER_UNIT != 0;
    if (quantity.format == QUANTITY_BINARY && shown_decimal)
        quantity.format = QUANTITY_DECIMAL;
    return shown_decimal ? echo_decimal(&quantity) : echo_binary(&quantity);
}
