/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/log.h"

#include "audit/escape.h"
#include "base/time_text.h"

#include <stdio.h>

enum { LINE_BYTES_MAX = 16 * 1024 };

static const char *const names[] = {
    [LOG_DEBUG] = "debug",
    [LOG_INFO] = "info",
    [LOG_WARNING] = "warning",
    [LOG_ERROR] = "error",
};

bool log_level_of_text(const char *text, enum log_level *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (str_equal(names[i], text)) {
            *ret = (enum log_level)i;
            return true;
        }
    }
    return false;
}

static void write_json(struct buf *line, const char *time, enum log_level level, const char *object,
                       const char *sentence)
{
    buf_addf(line, "{\"time\":\"%s\",\"level\":\"%s\"", time, names[level]);
    if (object) {
        buf_add_text(line, ",\"object\":");
        escape_json(line, object);
    }
    buf_add_text(line, ",\"message\":");
    escape_json(line, sentence);
    buf_add_text(line, "}\n");
}

static void write_text(struct buf *line, const char *time, enum log_level level, const char *object,
                       const char *sentence)
{
    buf_addf(line, "%s %-7s ", time, names[level]);
    if (object) {
        escape_plain(line, object);
        buf_add_text(line, ": ");
    }
    escape_plain(line, sentence);
    buf_add_char(line, '\n');
}

void log_line(const struct log *log, int64_t wall_us, enum log_level level, const char *object,
              const char *sentence)
{
    if (level < log->lowest)
        return;
    char time[TIME_TEXT_SIZE];
    time_format_micros(wall_us, time);
    CLEANUP_BUF struct buf line = BUF_INIT(LINE_BYTES_MAX);
    /* What is too long loses its end: never the whole line. */
    CLEANUP_FREE char *cut = xstrndup(sentence, LINE_BYTES_MAX / 8);
    if (log->format == LOG_JSON)
        write_json(&line, time, level, object, cut);
    else
        write_text(&line, time, level, object, cut);
    fputs(buf_text(&line), stderr);
    fflush(stderr);
}
