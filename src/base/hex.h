/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes as hexadecimal digits, and back. */
#pragma once

#include "base/alloc.h"

/* Lower-case hexadecimal of length bytes; the result is the caller's. */
char *hex_encode(const uint8_t *bytes, size_t length);
/* 0-15, or -1 when digit is no hexadecimal digit. */
int hex_value(char digit);
/* Exactly length bytes from 2*length hexadecimal digits; false when text is anything else. */
bool hex_decode(const char *text, uint8_t *bytes, size_t length);
