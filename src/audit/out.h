/* SPDX-License-Identifier: Apache-2.0
 *
 * Data on its way to stdout: collected in memory, written in large pieces, the first failure remembered. A
 * reader who went away (EPIPE) is not an error: everything after it is dropped and the command may stop.
 * Nothing that holds a read transaction calls this. */
#pragma once

#include "base/buf.h"

struct out {
    int fd;          /* borrowed */
    struct buf text; /* not yet written */
    bool closed;     /* the reader went away */
    int problem;     /* errno of the first failure that is one; 0 */
};

/* The text may grow to a row of at most 64 MiB before it is written. */
void out_init(struct out *out, int fd);
/* Writes when enough has come together; call it between rows. False: stop, nobody reads or writing failed. */
bool out_row(struct out *out);
/* Writes all. 0, also when the reader went away; else -ERROR_NO_SPACE, -ERROR_FAILED. */
int out_flush(struct out *out, struct error **err);
/* A line for people, escaped and written at once. What fails is remembered. */
void out_say(struct out *out, const char *line);
void out_done(struct out *out);
