/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/place.h"

#include "journal/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { HEADER_SIZE = 100, HEADER_APPLICATION_ID_AT = 68 };

static void fill_neighbours(struct place *place)
{
    CLEANUP_FREE char *copy = xstrdup(place->path);
    place->folder = xstrdup(dirname(copy));
    place->lock_path = lock_path_make(place->path);
    place->wal_path = xasprintf("%s-wal", place->path);
    place->shm_path = xasprintf("%s-shm", place->path);
    place->ballast_path = xasprintf("%s-ballast", place->path);
}

/* Durable names: a file's entry in its folder must survive a power cut as well. */
static void sync_folder(const char *folder)
{
    CLEANUP_CLOSE int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        (void)fsync(fd);
}

/* For this user alone; the folder around it must be there: what is missing above is a typing error. */
static int make_folder(const char *folder, struct error **err)
{
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return error_set_errno(err, errno, "journal: folder %s (make it, or choose another journal file)",
                               folder);
    CLEANUP_FREE char *copy = xstrdup(folder);
    sync_folder(dirname(copy));
    return 0;
}

static int resolve_new(const char *path, bool for_writing, struct place *ret, struct error **err)
{
    CLEANUP_FREE char *folder_copy = xstrdup(path);
    CLEANUP_FREE char *name_copy = xstrdup(path);
    const char *folder = dirname(folder_copy);
    const char *name = basename(name_copy);
    char real[PATH_MAX];
    bool is_there = realpath(folder, real) != NULL;
    if (!is_there && errno == ENOENT && for_writing) {
        int result = make_folder(folder, err);
        if (result < 0)
            return result;
        is_there = realpath(folder, real) != NULL;
    }
    if (!is_there && !for_writing)
        return error_set_errno(err, errno, "journal %s", path);
    if (!is_there)
        return error_set_errno(err, errno, "journal: folder %s (make it, or choose another journal file)",
                               folder);
    ret->path = xasprintf("%s/%s", strcmp(real, "/") == 0 ? "" : real, name);
    struct stat status;
    if (lstat(ret->path, &status) == 0 && S_ISLNK(status.st_mode))
        return error_set(err, ERROR_INVALID, "journal: %s is a symbolic link to nothing", path);
    return 0;
}

static int resolve(const char *path, bool for_writing, struct place *ret, struct error **err)
{
    if (!path || !path[0])
        return error_set(err, ERROR_INVALID, "journal: no file name given (--journal FILE)");
    char real[PATH_MAX];
    if (realpath(path, real)) {
        ret->path = xstrdup(real);
        return 0;
    }
    if (errno != ENOENT)
        return error_set_errno(err, errno, "journal %s", path);
    return resolve_new(path, for_writing, ret, err);
}

/* Another process may make it in the same moment: the lock, taken later, says whose turn it is. */
static int create(struct place *place, struct error **err)
{
    CLEANUP_CLOSE int fd = open(place->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_set_errno(err, errno, "journal %s: cannot make it", place->path);
    sync_folder(place->folder);
    place->is_new = true;
    return 0;
}

int place_find(const char *path, bool for_writing, struct place *ret, struct error **err)
{
    *ret = (struct place){.fd = -1};
    int result = resolve(path, for_writing, ret, err);
    if (result < 0)
        return result;
    fill_neighbours(ret);
    struct stat status;
    if (stat(ret->path, &status) != 0) {
        if (errno == ENOENT && for_writing)
            return create(ret, err);
        return error_set_errno(err, errno, "journal %s", path);
    }
    if (S_ISDIR(status.st_mode))
        return error_set(err, ERROR_INVALID,
                         "journal %s is a directory: name a file in it, such as %s/journal.db", path, path);
    if (!S_ISREG(status.st_mode))
        return error_set(err, ERROR_INVALID, "journal %s is not a regular file", path);
    if (access(ret->path, for_writing ? R_OK | W_OK : R_OK) != 0)
        return error_set_errno(err, errno, "journal %s: cannot %s it", path, for_writing ? "write" : "read");
    if (for_writing && access(ret->folder, W_OK | X_OK) != 0)
        return error_set_errno(err, errno, "journal: folder %s: cannot make files in it", ret->folder);
    ret->is_new = status.st_size == 0;
    return 0;
}

const char *place_unsafe_file_system(long type)
{
    static const struct {
        unsigned long type;
        const char *name;
    } unsafe[] = {
        {0x6969, "NFS"},        {0x517b, "SMB"},        {0xff534d42, "CIFS"}, {0xfe534d42, "SMB 2"},
        {0x65735546, "FUSE"},   {0x01021997, "9p"},     {0x00c36400, "Ceph"}, {0x5346414f, "AFS"},
        {0x73757245, "Coda"},   {0x0bd00bd0, "Lustre"}, {0x01161970, "GFS2"}, {0x7461636f, "OCFS2"},
        {0x786f4256, "vboxsf"}, {0x564c, "NCP"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(unsafe); i++)
        if (unsafe[i].type == ((unsigned long)type & 0xffffffffUL))
            return unsafe[i].name;
    return NULL;
}

int place_check_file_system(const struct place *place, struct error **err)
{
    struct statfs status;
    if (statfs(place->folder, &status) != 0)
        return error_set_errno(err, errno, "journal: folder %s", place->folder);
    const char *name = place_unsafe_file_system((long)status.f_type);
    if (!name)
        return 0;
    return error_set(
        err, ERROR_UNSUPPORTED,
        "journal %s lies on a network file system (%s), where locks and shared memory cannot be trusted: "
        "use a local disk (a ReadWriteOncePod volume), or --journal-unsafe-fs at your own risk",
        place->path, name);
}

/* The modes of what others could read. Never by descriptor: see the header's first comment. */
static void tighten_modes(const struct place *place)
{
    const char *const paths[] = {place->path, place->wal_path, place->shm_path, place->lock_path};
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        struct stat status;
        if (lstat(paths[i], &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & 0177) != 0)
            (void)chmod(paths[i], 0600);
    }
}

/* A power cut while the file was made: SQLite's rollback journal says that there were no pages before. */
static bool is_interrupted_creation(const struct place *place)
{
    CLEANUP_FREE char *path = xasprintf("%s-journal", place->path);
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    static const uint8_t magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    static const uint8_t no_pages[4] = {0};
    uint8_t header[20];
    return fd >= 0 && pread(fd, header, sizeof(header), 0) == sizeof(header) &&
           memcmp(header, magic, sizeof(magic)) == 0 && memcmp(header + 16, no_pages, sizeof(no_pages)) == 0;
}

int place_check_empty(const struct place *place, struct error **err)
{
    struct stat status;
    if (stat(place->wal_path, &status) != 0 || status.st_size == 0)
        return 0;
    return error_set(
        err, ERROR_CORRUPT,
        "journal %s is empty, but its -wal is not: somebody truncated it; restore a backup, or move both "
        "away to begin a new history",
        place->path);
}

int place_check_header(struct place *place, struct error **err)
{
    tighten_modes(place);
    /* Looked at anew: before we had the lock, somebody may have filled it. */
    struct stat status;
    if (stat(place->path, &status) != 0)
        return error_set_errno(err, errno, "journal %s", place->path);
    place->is_new = status.st_size == 0;
    if (place->is_new)
        return place_check_empty(place, err);
    if (is_interrupted_creation(place))
        return 0;
    place->fd = open(place->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (place->fd < 0)
        return error_set_errno(err, errno, "journal %s", place->path);
    uint8_t header[HEADER_SIZE];
    ssize_t length = pread(place->fd, header, sizeof(header), 0);
    if (length < 0)
        return error_set_errno(err, errno, "journal %s: cannot read it", place->path);
    if (length < HEADER_SIZE || memcmp(header, "SQLite format 3", 16) != 0)
        return error_set(
            err, ERROR_UNSUPPORTED,
            "%s is not a journal (not even a SQLite file): choose another journal file; it was left as it is",
            place->path);
    const uint8_t *at = header + HEADER_APPLICATION_ID_AT;
    uint32_t id = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    if (id != PLACE_APPLICATION_ID)
        return error_set(
            err, ERROR_UNSUPPORTED,
            "%s is another application's SQLite file: choose another journal file; it was left as it is",
            place->path);
    return 0;
}

static const char *path_of(const struct place *place, int file)
{
    const char *const paths[PLACE_FILES] = {place->path, place->wal_path, place->lock_path};
    return paths[file];
}

struct place_files place_look(const struct place *place)
{
    struct place_files look = {0};
    for (int i = 0; i < PLACE_FILES; i++) {
        struct stat status;
        if (stat(path_of(place, i), &status) != 0)
            continue;
        look.files[i].device = status.st_dev;
        look.files[i].inode = status.st_ino;
    }
    return look;
}

const char *place_changed(const struct place *place, const struct place_files *before)
{
    struct place_files now = place_look(place);
    for (int i = 0; i < PLACE_FILES; i++)
        if (now.files[i].inode != before->files[i].inode || now.files[i].device != before->files[i].device)
            return path_of(place, i);
    return NULL;
}

void place_done(struct place *place)
{
    cleanup_close_fd(&place->fd);
    free(place->path);
    free(place->folder);
    free(place->lock_path);
    free(place->wal_path);
    free(place->shm_path);
    free(place->ballast_path);
    *place = (struct place){.fd = -1};
}
