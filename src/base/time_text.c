/* SPDX-License-Identifier: Apache-2.0 */
#include "base/time_text.h"

#include <ctype.h>
#include <stdio.h>

/* A hundred years. */
#define DURATION_MAX_US (36500LL * 86400 * US_PER_S)
#define DAYS_SHOWN_MAX 9999999LL

/* Days since 1970-01-01 of a proleptic Gregorian date (Howard Hinnant's days_from_civil). */
static int64_t days_of_date(int64_t year, unsigned month, unsigned day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    unsigned year_of_era = (unsigned)(year - era * 400);
    unsigned day_of_year = (153 * (month + (month > 2 ? -3U : 9U)) + 2) / 5 + day - 1;
    unsigned day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + (int64_t)day_of_era - 719468;
}

static void date_of_days(int64_t days, int64_t *year, unsigned *month, unsigned *day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    unsigned day_of_era = (unsigned)(days - era * 146097);
    unsigned year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    unsigned shifted_month = (5 * day_of_year + 2) / 153;
    *day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    *month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
    *year = (int64_t)year_of_era + era * 400 + (*month <= 2);
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Exactly so many digits, then the mark; returns the place behind it. */
static char *put_number(char *to, unsigned number, int digits, char mark)
{
    for (int i = digits; i-- > 0; number /= 10)
        to[i] = (char)('0' + number % 10);
    to[digits] = mark;
    return to + digits + 1;
}

static void format(int64_t at_us, bool micros, char text[static TIME_TEXT_SIZE])
{
    int64_t seconds = floor_div(at_us, US_PER_S);
    int64_t fraction =
        at_us % US_PER_S + (at_us % US_PER_S < 0 ? US_PER_S : 0); /* seconds * US_PER_S may overflow */
    int64_t days = floor_div(seconds, 86400);
    int64_t year;
    unsigned month;
    unsigned day;
    date_of_days(days, &year, &month, &day);
    /* Four digits of year is all that RFC 3339 has. */
    if (year < 0 || year > 9999)
        year = year < 0 ? 0 : 9999;
    unsigned second = (unsigned)(seconds - days * 86400);
    char *to = put_number(text, (unsigned)year, 4, '-');
    to = put_number(to, month, 2, '-');
    to = put_number(to, day, 2, 'T');
    to = put_number(to, second / 3600, 2, ':');
    to = put_number(to, second / 60 % 60, 2, ':');
    to = put_number(to, second % 60, 2, micros ? '.' : 'Z');
    if (micros)
        to = put_number(to, (unsigned)fraction, 6, 'Z');
    *to = '\0';
}

void time_format_seconds(int64_t at_us, char text[static TIME_TEXT_SIZE])
{
    format(at_us, false, text);
}

void time_format_micros(int64_t at_us, char text[static TIME_TEXT_SIZE])
{
    format(at_us, true, text);
}

/* Exactly `digits` decimal digits at *text, which is moved past them. */
static bool take_number(const char **text, int digits, unsigned *ret)
{
    unsigned value = 0;
    for (int i = 0; i < digits; i++, (*text)++) {
        if (!isdigit((unsigned char)**text))
            return false;
        value = value * 10 + (unsigned)(**text - '0');
    }
    *ret = value;
    return true;
}

static bool take_char(const char **text, char wanted)
{
    if (**text != wanted)
        return false;
    (*text)++;
    return true;
}

static bool take_fraction(const char **text, int64_t *ret_us)
{
    *ret_us = 0;
    if (**text != '.')
        return true;
    (*text)++;
    if (!isdigit((unsigned char)**text))
        return false;
    int64_t unit = 100000;
    for (; isdigit((unsigned char)**text); (*text)++, unit /= 10)
        *ret_us += (**text - '0') * unit;
    return true;
}

static bool take_offset(const char **text, int64_t *ret_seconds)
{
    *ret_seconds = 0;
    if (**text == 'Z' || **text == 'z') {
        (*text)++;
        return true;
    }
    int sign = **text == '-' ? -1 : 1;
    if (**text != '+' && **text != '-')
        return false;
    (*text)++;
    unsigned hours;
    unsigned minutes;
    if (!take_number(text, 2, &hours) || !take_char(text, ':') || !take_number(text, 2, &minutes) ||
        hours > 23 || minutes > 59)
        return false;
    *ret_seconds = sign * (int64_t)(hours * 3600 + minutes * 60);
    return true;
}

static unsigned days_in_month(unsigned year, unsigned month)
{
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap ? 1U : 0U);
}

int time_parse_rfc3339(const char *text, int64_t *ret_at_us, struct error **err)
{
    PRE(text && ret_at_us);
    const char *at = text;
    unsigned year;
    unsigned month;
    unsigned day;
    unsigned hour;
    unsigned minute;
    unsigned second;
    int64_t fraction;
    int64_t offset;
    bool good = take_number(&at, 4, &year) && take_char(&at, '-') && take_number(&at, 2, &month) &&
                take_char(&at, '-') && take_number(&at, 2, &day) &&
                (*at == 'T' || *at == 't' || *at == ' ') && at++ && take_number(&at, 2, &hour) &&
                take_char(&at, ':') && take_number(&at, 2, &minute) && take_char(&at, ':') &&
                take_number(&at, 2, &second) && take_fraction(&at, &fraction) && take_offset(&at, &offset) &&
                *at == '\0';
    /* 60 is a leap second. */
    good = good && month >= 1 && month <= 12 && day >= 1 && day <= days_in_month(year, month) && hour <= 23 &&
           minute <= 59 && second <= 60;
    if (!good)
        return error_set(err, ERROR_INVALID, "'%.40s' is not a time like 2026-01-31T15:04:05Z", text);
    int64_t seconds = days_of_date(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset;
    *ret_at_us = seconds * US_PER_S + fraction;
    return 0;
}

static int64_t unit_us(const char **text)
{
    static const struct {
        const char *name;
        int64_t us;
    } units[] = {{"ms", US_PER_MS},      {"us", 1},
                 {"s", US_PER_S},        {"m", 60 * US_PER_S},
                 {"h", 3600 * US_PER_S}, {"d", 86400 * US_PER_S}};
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        if (str_starts_with(*text, units[i].name)) {
            *text += strlen(units[i].name);
            return units[i].us;
        }
    }
    return 0;
}

int duration_parse(const char *text, int64_t *ret_us, struct error **err)
{
    PRE(text && ret_us);
    int64_t sum = 0;
    const char *at = text;
    bool good = *at != '\0';
    while (good && *at) {
        int64_t whole = 0;
        int64_t fraction_us = 0;
        good = isdigit((unsigned char)*at);
        for (; isdigit((unsigned char)*at) && whole < 100000000000LL; at++)
            whole = whole * 10 + (*at - '0');
        good = good && take_fraction(&at, &fraction_us);
        int64_t unit = good ? unit_us(&at) : 0;
        good = good && unit > 0 && whole <= DURATION_MAX_US / unit;
        if (good)
            sum += whole * unit + fraction_us * unit / US_PER_S;
        good = good && sum <= DURATION_MAX_US;
    }
    if (!good)
        return error_set(err, ERROR_INVALID, "'%.40s' is not a duration like 90s, 5m, 2h30m or 7d", text);
    *ret_us = sum;
    return 0;
}

void duration_format(int64_t duration_us, char text[static TIME_TEXT_SIZE])
{
    const char *sign = duration_us < 0 ? "-" : "";
    /* Days have seven digits at most, which also keeps the smallest number of all from overflowing. */
    duration_us =
        MAX(-DAYS_SHOWN_MAX * 86400 * US_PER_S, MIN(duration_us, DAYS_SHOWN_MAX * 86400 * US_PER_S));
    int64_t us = duration_us < 0 ? -duration_us : duration_us;
    int64_t seconds = us / US_PER_S;
    if (us < US_PER_S)
        snprintf(text, TIME_TEXT_SIZE, "%s%dms", sign, (int)(us / US_PER_MS));
    else if (seconds < 60)
        snprintf(text, TIME_TEXT_SIZE, "%s%d.%ds", sign, (int)seconds, (int)(us / 100000 % 10));
    else if (seconds < 3600)
        snprintf(text, TIME_TEXT_SIZE, "%s%dm%02ds", sign, (int)(seconds / 60), (int)(seconds % 60));
    else if (seconds < 86400)
        snprintf(text, TIME_TEXT_SIZE, "%s%dh%02dm", sign, (int)(seconds / 3600), (int)(seconds / 60 % 60));
    else
        snprintf(text, TIME_TEXT_SIZE, "%s%dd%dh", sign, (int)(seconds / 86400), (int)(seconds / 3600 % 24));
}
