/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

size_t utf8_sequence_length(const void *text, size_t available)
{
    const uint8_t *bytes = text;
    if (available == 0)
        return 0;
    uint8_t first = bytes[0];
    if (first < 0x80)
        return 1;
    size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || available < length)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((bytes[i] & 0xC0) != 0x80)
            return 0;
    bool overlong = (first == 0xE0 && bytes[1] < 0xA0) || (first == 0xF0 && bytes[1] < 0x90);
    bool surrogate = first == 0xED && bytes[1] >= 0xA0;
    bool too_high = first == 0xF4 && bytes[1] >= 0x90;
    return overlong || surrogate || too_high ? 0 : length;
}
