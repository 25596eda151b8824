/* SPDX-License-Identifier: Apache-2.0
 *
 * A real program that goes on running while a test looks at it: what it says on stderr, how much memory it
 * has, whether it still lives. Ends what it started. */
#pragma once

#include "base/buf.h"

#include <sys/types.h>

struct live_program {
    pid_t pid; /* 0: it has ended and is reaped */
    int log_fd;
    struct buf log; /* all that it said on stdout and stderr */
    int exit_code;  /* once it has ended; -1: by a signal */
};

/* argv ends with NULL; argv[0] without a slash is one of our programs in $NEOSET_BUILD, else it is looked up
 * in PATH. */
void live_start(struct live_program *program, const char *const *argv);
/* Reads on until the log holds words, the program ends or timeout_ms are over: does the log hold them? */
bool live_says(struct live_program *program, const char *words, int timeout_ms);
/* Reads on for so long; false: it ended. */
bool live_goes_on(struct live_program *program, int duration_ms);
/* Reads on until it ends by itself; false: it did not within timeout_ms. */
bool live_ends(struct live_program *program, int timeout_ms);
const char *live_log(struct live_program *program);
/* How many lines of the log hold words. */
size_t live_count(struct live_program *program, const char *words);
/* Its greatest resident memory so far. */
long live_peak_kib(const struct live_program *program);
/* SIGTERM, and SIGKILL when that does not help; frees. The exit code, -1: a signal ended it. */
int live_stop(struct live_program *program);
