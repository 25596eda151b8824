/* SPDX-License-Identifier: Apache-2.0
 *
 * Time as text: RFC 3339 in UTC, and durations for people. Times are microseconds since 1970 (int64). Never
 * reads a clock: that is src/env's. */
#pragma once

#include "base/error.h"

enum { TIME_TEXT_SIZE = 32 };
#define US_PER_S 1000000LL
#define US_PER_MS 1000LL

/* "2026-11-30T07:38:15Z": what Kubernetes' metav1.Time takes. */
void time_format_seconds(int64_t at_us, char text[static TIME_TEXT_SIZE]);
/* "2026-11-30T07:38:15.123456Z": metav1.MicroTime, and every listing (fixed width). */
void time_format_micros(int64_t at_us, char text[static TIME_TEXT_SIZE]);
/* Any RFC 3339 time, with or without a fraction, with Z or an offset. */
int time_parse_rfc3339(const char *text, int64_t *ret_at_us, struct error **err);
/* "2h45m", "300ms", "1.5s", "2m", "7d": a sum of numbers with units ms, s, m, h, d. Not negative. */
int duration_parse(const char *text, int64_t *ret_us, struct error **err);
/* "850ms", "4.2s", "3m10s", "2h05m", "3d4h": for people, at most 12 characters. */
void duration_format(int64_t duration_us, char text[static TIME_TEXT_SIZE]);
