/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hex.h"

char *hex_encode(const uint8_t *bytes, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    char *text = xmalloc(2 * length + 1);
    for (size_t i = 0; i < length; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[2 * length] = '\0';
    return text;
}

int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

bool hex_decode(const char *text, uint8_t *bytes, size_t length)
{
    if (strlen(text) != 2 * length)
        return false;
    for (size_t i = 0; i < length; i++) {
        int high = hex_value(text[2 * i]);
        int low = hex_value(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}
