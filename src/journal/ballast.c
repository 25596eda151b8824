/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/ballast.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Where a file system cannot reserve, bytes are written that it cannot squeeze or leave out. */
static bool fill(int fd)
{
    enum { CHUNK = 1 << 16 };
    CLEANUP_FREE uint32_t *noise = xmalloc(CHUNK);
    uint32_t state = 2463534242U;
    for (int written = 0; written < BALLAST_BYTES; written += CHUNK) {
        for (size_t i = 0; i < CHUNK / sizeof(*noise); i++) {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            noise[i] = state;
        }
        if (pwrite(fd, noise, CHUNK, written) != CHUNK)
            return false;
    }
    return true;
}

static bool reserve(int fd)
{
    if (fallocate(fd, 0, 0, BALLAST_BYTES) == 0)
        return true;
    return (errno == EOPNOTSUPP || errno == ENOSYS) && fill(fd);
}

bool ballast_make(const char *path)
{
    struct stat status;
    if (lstat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == BALLAST_BYTES)
        return true;
    CLEANUP_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return false;
    struct statvfs space;
    if (fstatvfs(fd, &space) == 0 && space.f_bavail * space.f_frsize >= 2ULL * BALLAST_BYTES && reserve(fd))
        return true;
    (void)unlink(path);
    return false;
}

bool ballast_give_up(const char *path)
{
    return unlink(path) == 0;
}
