/* SPDX-License-Identifier: Apache-2.0 */
#include "env/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int real_read_file(struct env *env, const char *path, struct buf *ret, struct error **err)
{
    PRE(path && ret);
    (void)env;
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot open %s", path);
    char block[16384];
    for (;;) {
        ssize_t got = read(fd, block, sizeof(block));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set_errno(err, errno, "cannot read %s", path);
        if (got == 0)
            return 0;
        if (buf_add(ret, block, (size_t)got) < 0)
            return error_set(err, ERROR_TOO_LARGE, "%s is larger than %zu bytes", path, ret->max);
    }
}

static int write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t put = write(fd, bytes, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -errno;
        bytes += put;
        length -= (size_t)put;
    }
    return 0;
}

/* The content and the mode reach the disk under the temporary name. Returns 0 or -errno. */
static int fill_temporary(int fd, unsigned mode, const void *bytes, size_t length)
{
    if (fchmod(fd, (mode_t)mode) < 0)
        return -errno;
    int result = write_all(fd, bytes, length);
    if (result < 0)
        return result;
    return fsync(fd) < 0 ? -errno : 0;
}

static int sync_folder_of(const char *path)
{
    CLEANUP_FREE char *copy = xstrdup(path);
    CLEANUP_CLOSE int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int real_write_file(struct env *env, const char *path, unsigned mode, const void *bytes, size_t length,
                    struct error **err)
{
    PRE(path && (bytes || length == 0));
    (void)env;
    CLEANUP_FREE char *temporary = xasprintf("%s.XXXXXX", path);
    CLEANUP_CLOSE int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot write beside %s", path);
    int result = fill_temporary(fd, mode, bytes, length);
    if (result == 0 && rename(temporary, path) < 0)
        result = -errno;
    if (result < 0) {
        unlink(temporary);
        return error_set_errno(err, -result, "cannot write %s", path);
    }
    result = sync_folder_of(path);
    if (result < 0)
        return error_set_errno(err, -result, "cannot sync the folder of %s", path);
    return 0;
}
