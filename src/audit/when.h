/* SPDX-License-Identifier: Apache-2.0
 *
 * A point in time as people type it: RFC 3339, a date, "-2h", "today". Pure: the clock is handed in. */
#pragma once

#include "base/error.h"

/* "2026-11-30T07:38:15Z" (any RFC 3339 time), "2026-11-30T07:38[:15]" (UTC), "2026-11-30" (its midnight in
 * UTC), "-2h" (that long before now_us; units ms, s, m, h, d), "today", "yesterday" (midnight in UTC), "now".
 */
int when_parse(const char *text, int64_t now_us, int64_t *ret_at_us, struct error **err);
