/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <stdio.h>
#include <unistd.h>

uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ at[i]) * 0x100000001B3ULL;
    return hash;
}

void report_mix(struct report *report, const void *bytes, size_t length)
{
    report->hash = hash_bytes(report->hash, bytes, length);
}

void report_mix_text(struct report *report, const char *text)
{
    report_mix(report, text ? text : "", text ? strlen(text) + 1 : 1);
}

static void print_line(const char *line)
{
    printf("    %s\n", line);
}

void report_tell(struct report *report, const char *format, ...)
{
    char *line = report->story[report->story_next++ % STORY_LINES];
    int at = snprintf(line, STORY_LINE_MAX, "%10.4f s  ", (double)report->now_us / 1e6);
    va_list args;
    va_start(args, format);
    vsnprintf(line + at, (size_t)(STORY_LINE_MAX - at), format, args);
    va_end(args);
    if (report->aloud)
        print_line(line);
}

bool report_seeks(const struct report *report, int invariant)
{
    return !report->sought || report->sought == invariant || invariant == INVARIANT_NONE_OF_THEM;
}

_Noreturn void report_break(struct report *report, int invariant, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(report->sentence, sizeof(report->sentence), format, args);
    va_end(args);
    if (report_seeks(report, invariant))
        report->invariant = invariant;
    else
        report->finished = true;
    fflush(stdout);
    _exit(0);
}

void report_print_story(const struct report *report)
{
    uint32_t first = report->story_next > STORY_LINES ? report->story_next - STORY_LINES : 0;
    for (uint32_t i = first; i < report->story_next; i++)
        print_line(report->story[i % STORY_LINES]);
}
