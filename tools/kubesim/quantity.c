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
    for (int i = 0; i < binary; i++)
        if (!multiply(&digits, 1024))
            return false;
    if (!scale_decimal(digits, decimal - fraction, &quantity.nano))
        return false;
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
