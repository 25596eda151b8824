/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes as Kubernetes writes them ("10Gi", "1e3", "1.5G"), exact: a sign and an unsigned 128-bit count of
 * nano-units. Grammar, rounding and cap are those of apimachinery's resource.Quantity: what is finer than a
 * nano-unit is rounded away from zero, a value with a binary suffix is capped at 2^63-1 units. Larger than
 * 2^128-1 nano-units is refused. Never uses a double or int64 arithmetic; never shows a size in another
 * spelling than the user's, unless asked for the server's. */
#pragma once

#include "base/json.h"

/* The family of suffixes that a quantity was written with, and is echoed in. */
enum quantity_format { QUANTITY_DECIMAL, QUANTITY_BINARY, QUANTITY_EXPONENT };

struct quantity {
    unsigned __int128 nano; /* the absolute value, in nano-units (of bytes, for a size) */
    bool negative;          /* never with nano 0 */
    enum quantity_format format;
};

/* The whole text must be a quantity: no blanks around it. -ERROR_INVALID: it is none; -ERROR_TOO_LARGE: it is
 * one, beyond what fits. Text without a digit ("-", "e3", "Ki") is 0, as it is for the server. */
int quantity_parse(const char *text, size_t length, struct quantity *ret, struct error **err);
/* Of a JSON value as the server reads one: a string (blanks around it do not count) or a number. ret_text is
 * its own spelling, the caller's; it is set on failure too, unless the value is neither. */
int quantity_read(const cJSON *node, struct quantity *ret, char **ret_text, struct error **err);

/* Less than 0, 0, or greater than 0. */
int quantity_compare(const struct quantity *a, const struct quantity *b);
/* -1, 0 or 1. */
int quantity_sign(const struct quantity *quantity);
/* The exact value in units as a plain decimal number without needless zeros, "-107374182.4"; the caller's. */
char *quantity_exact_text(const struct quantity *quantity);
/* How a server that read text echoes it ("1Gi" for "1024Mi", but "007Gi" for "007Gi"), or NULL when text is
 * no quantity that fits; the caller's. Blanks around it do not count. */
char *quantity_echo(const char *text);
