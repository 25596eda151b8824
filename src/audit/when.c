/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/when.h"
#include "base/time_text.h"

#define DAY_US (86400 * US_PER_S)

static int64_t midnight(int64_t at_us)
{
    int64_t rest = at_us % DAY_US;
    return at_us - (rest < 0 ? rest + DAY_US : rest);
}

/* text with suffix is a time: "2026-11-30" with "T00:00:00Z". A space may stand for the T. */
static bool parse_with(const char *text, const char *suffix, int64_t *ret_at_us)
{
    CLEANUP_FREE char *whole = xasprintf("%s%s", text, suffix);
    if (strlen(whole) > 10 && whole[10] == ' ')
        whole[10] = 'T';
    return time_parse_rfc3339(whole, ret_at_us, NULL) == 0;
}

int when_parse(const char *text, int64_t now_us, int64_t *ret_at_us, struct error **err)
{
    if (str_equal(text, "now")) {
        *ret_at_us = now_us;
        return 0;
    }
    if (str_equal(text, "today") || str_equal(text, "yesterday")) {
        *ret_at_us = midnight(now_us) - (text[0] == 'y' ? DAY_US : 0);
        return 0;
    }
    if (text[0] == '-') {
        int64_t ago_us;
        if (duration_parse(text + 1, &ago_us, NULL) == 0) {
            *ret_at_us = now_us - ago_us;
            return 0;
        }
    }
    static const char *const suffixes[] = {"", "T00:00:00Z", ":00Z", "Z"};
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
        if (parse_with(text, suffixes[i], ret_at_us))
            return 0;
    return error_set(err, ERROR_USAGE,
                     "\"%s\" is no time: use 2026-11-30T07:38:15Z, 2026-11-30 (UTC), -2h, today or yesterday",
                     text);
}
