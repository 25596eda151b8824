/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/out.h"

#include "audit/escape.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

enum { OUT_PIECE_BYTES = 256 * 1024, OUT_TEXT_MAX = 64 * 1024 * 1024 };

void out_init(struct out *out, int fd)
{
    *out = (struct out){.fd = fd, .text = BUF_INIT(OUT_TEXT_MAX)};
}

static void write_all(struct out *out)
{
    const char *at = out->text.data;
    size_t left = out->text.length;
    while (left > 0 && !out->closed && out->problem == 0) {
        ssize_t n = write(out->fd, at, left);
        if (n >= 0) {
            at += n;
            left -= (size_t)n;
        } else if (errno == EAGAIN) {
            /* Somebody handed us a pipe that does not block: wait for room. */
            struct pollfd room = {.fd = out->fd, .events = POLLOUT};
            (void)poll(&room, 1, -1);
        } else if (errno == EPIPE) {
            out->closed = true;
        } else if (errno != EINTR) {
            out->problem = errno;
        }
    }
    buf_clear(&out->text);
}

bool out_row(struct out *out)
{
    if (out->text.length >= OUT_PIECE_BYTES)
        write_all(out);
    return !out->closed && out->problem == 0;
}

int out_flush(struct out *out, struct error **err)
{
    bool overflowed = out->text.overflowed;
    write_all(out);
    if (out->problem != 0)
        return error_set_errno(err, out->problem, "cannot write the output");
    if (overflowed)
        return error_set(err, ERROR_TOO_LARGE, "a row of the output is larger than %d MiB",
                         OUT_TEXT_MAX / (1024 * 1024));
    return 0;
}

void out_say(struct out *out, const char *line)
{
    escape_plain(&out->text, line);
    buf_add_char(&out->text, '\n');
    (void)out_flush(out, NULL);
}

void out_done(struct out *out)
{
    buf_done(&out->text);
}
