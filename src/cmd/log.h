/* SPDX-License-Identifier: Apache-2.0
 *
 * The log of a program: one line an event on stderr, as text or as JSON, times in UTC with microseconds. Only
 * src/cmd logs. Control characters never reach the terminal: names and server texts are others' words. */
#pragma once

#include "base/alloc.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };
enum log_format { LOG_TEXT, LOG_JSON };

struct log {
    enum log_format format;
    enum log_level lowest; /* what is below is not shown */
};

/* "debug", "info", "warning", "error"; false: none of them. */
bool log_level_of_text(const char *text, enum log_level *ret);
/* object ("NeoSet/default/mysql") may be NULL. */
void log_line(const struct log *log, int64_t wall_us, enum log_level level, const char *object,
              const char *sentence);
