/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/open_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

/* The journal with its lock, the loop, connections, a plug-in's pipes, and room to tell what is wrong. */
enum { LEAST = 64, OF_USE = 4096 };

void standard_files_ensure(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            /* The lowest free number is this one. The wrong way round, so that its use still fails. */
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int open_files_ensure(const char *program, struct error **err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 0; /* nobody limits it */
    rlim_t wanted = MIN(limit.rlim_max, (rlim_t)OF_USE);
    struct rlimit raised = {.rlim_cur = wanted, .rlim_max = limit.rlim_max};
    if (limit.rlim_cur < wanted && setrlimit(RLIMIT_NOFILE, &raised) == 0)
        limit = raised;
    if (limit.rlim_cur >= LEAST)
        return 0;
    return error_set(
        err, ERROR_REFUSED,
        "only %llu files may be open at a time, and %s needs %d: raise the limit (ulimit -n 1024; "
        "LimitNOFILE= of a systemd unit)",
        (unsigned long long)limit.rlim_cur, program, LEAST);
}
