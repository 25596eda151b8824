/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/quantity.h"

typedef unsigned __int128 wide;

#define WIDE_MAX (~(wide)0)

/* value * factor; false when it does not fit. */
static bool multiply(wide *value, wide factor)
{
    if (factor != 0 && *value > WIDE_MAX / factor)
        return false;
    *value *= factor;
    return true;
}

static bool power_of_ten(int exponent, wide *ret)
{
    wide value = 1;
    for (int i = 0; i < exponent; i++)
        if (!multiply(&value, 10))
            return false;
    *ret = value;
    return true;
}

/* What a suffix means: a decimal exponent relative to 1, or a power of 1024. */
static bool read_suffix(const char *text, int *decimal, int *binary)
{
    static const char *const binaries[] = {"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    static const struct {
        const char *name;
        int exponent;
    } decimals[] = {{"n", -9}, {"u", -6}, {"m", -3}, {"", 0},   {"k", 3},
                    {"M", 6},  {"G", 9},  {"T", 12}, {"P", 15}, {"E", 18}};
    *decimal = *binary = 0;
    for (size_t i = 0; i < ARRAY_SIZE(binaries); i++) {
        if (strcmp(text, binaries[i]) == 0) {
            *binary = (int)i + 1;
            return true;
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(decimals); i++) {
        if (strcmp(text, decimals[i].name) == 0) {
            *decimal = decimals[i].exponent;
            return true;
        }
    }
    if ((*text != 'e' && *text != 'E') || !text[1])
        return false;
    char *end;
    long exponent = strtol(text + 1, &end, 10);
    *decimal = (int)exponent;
    return !*end && exponent >= -30 && exponent <= 30;
}

/* digits * 10^exponent in nano, rounded up. */
static bool scale_decimal(wide digits, int exponent, wide *ret)
{
    wide power;
    exponent += 9;
    if (exponent >= 0) {
        if (!power_of_ten(exponent, &power))
            return digits == 0;
        *ret = digits;
        return multiply(ret, power);
    }
    if (!power_of_ten(-exponent, &power)) {
        *ret = digits > 0;
        return true;
    }
    *ret = digits / power + (digits % power != 0);
    return true;
}

bool quantity_parse(const char *text, struct quantity *ret)
{
    if (!text)
        return false;
    struct quantity quantity = {.negative = *text == '-'};
    text += *text == '-' || *text == '+';
    wide digits = 0;
    int fraction = 0;
    bool dot = false;
    size_t count = 0;
    for (; (*text >= '0' && *text <= '9') || (*text == '.' && !dot); text++) {
        if (*text == '.') {
            dot = true;
            continue;
        }
        if (!multiply(&digits, 10))
            return false;
        digits += (unsigned)(*text - '0');
        fraction += dot;
        count++;
    }
    int decimal;
    int binary;
    if (count == 0 || !read_suffix(text, &decimal, &binary))
        return false;
    const wide binary_max = (wide)INT64_MAX * 1000000000;
    bool fits = true;
    for (int i = 0; i < binary && fits; i++)
        fits = multiply(&digits, 1024);
    fits = fits && scale_decimal(digits, decimal - fraction, &quantity.nano);
    if (!fits && !binary)
        return false;
    if (binary && (!fits || quantity.nano > binary_max))
        quantity.nano = binary_max;
    quantity.negative = quantity.negative && quantity.nano != 0;
    *ret = quantity;
    return true;
}

bool quantity_from_node(const cJSON *node, struct quantity *ret)
{
    if (cJSON_IsString(node))
        return quantity_parse(node->valuestring, ret);
    if (!cJSON_IsNumber(node) && !cJSON_IsRaw(node))
        return false;
    CLEANUP_FREE char *text = json_print(node);
    return quantity_parse(text, ret);
}

/* An integer as text; 128 bits have no printf. The caller's. */
static char *wide_text(wide value)
{
    char digits[48];
    size_t at = sizeof(digits) - 1;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + (int)(value % 10));
        value /= 10;
    } while (value > 0);
    return xstrdup(&digits[at]);
}

static char *decimal_text(const struct quantity *quantity, bool exponents)
{
    static const char *const suffixes[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
    static const char *const powers[] = {"e-9", "e-6", "e-3", "", "e3", "e6", "e9", "e12", "e15", "e18"};
    wide value = quantity->nano;
    size_t step = 0;
    for (; step + 1 < ARRAY_SIZE(suffixes) && value % 1000 == 0 && (value > 0 || step < 3); step++)
        value /= 1000;
    CLEANUP_FREE char *digits = wide_text(value);
    return xasprintf("%s%s%s", quantity->negative ? "-" : "", digits,
                     exponents ? powers[step] : suffixes[step]);
}

static char *binary_text(const struct quantity *quantity)
{
    static const char *const suffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    const wide unit = 1000000000;
    wide value = quantity->nano / unit + (quantity->nano % unit != 0);
    if (value < 1024)
        return decimal_text(quantity, false);
    size_t step = 0;
    for (; step + 1 < ARRAY_SIZE(suffixes) && value % 1024 == 0; step++)
        value /= 1024;
    CLEANUP_FREE char *digits = wide_text(value);
    return xasprintf("%s%s%s", quantity->negative ? "-" : "", digits, suffixes[step]);
}

char *quantity_canonical(const cJSON *node)
{
    struct quantity quantity;
    if (!quantity_from_node(node, &quantity))
        return NULL;
    if (!cJSON_IsString(node))
        return decimal_text(&quantity, false);
    const char *text = node->valuestring;
    if (strchr(text, 'i'))
        return binary_text(&quantity);
    const char *exponent = strpbrk(text, "eE");
    return decimal_text(&quantity, exponent && exponent[1]);
}

int quantity_compare(const struct quantity *a, const struct quantity *b)
{
    if (a->negative != b->negative)
        return a->negative ? -1 : 1;
    int order = a->nano < b->nano ? -1 : a->nano > b->nano;
    return a->negative ? -order : order;
}

int quantity_sign(const struct quantity *quantity)
{
    return quantity->negative ? -1 : quantity->nano != 0;
}

bool quantity_integer(const struct quantity *quantity, int64_t *ret)
{
    const wide unit = 1000000000;
    if (quantity->nano % unit != 0 || quantity->nano / unit > INT64_MAX)
        return false;
    int64_t value = (int64_t)(quantity->nano / unit);
    *ret = quantity->negative ? -value : value;
    return true;
}
