/* SPDX-License-Identifier: Apache-2.0
 *
 * A consistent copy beside a living writer, with SQLite's backup API from a connection that only reads. */
#include "journal/failure.h"
#include "journal/reader_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <unistd.h>

enum { PAGES_AT_ONCE = 2048 };

static int fail(sqlite3 *db, int code, const char *target, struct error **err)
{
    return failure_set(err, db, code, "backup %s", target);
}

/* One read transaction of the source for all of it: else each commit of the controller would begin the copy
 * anew. */
static int copy(struct journal_reader *reader, sqlite3 *to, const char *target,
                void (*progress)(void *context, int done, int total), void *context, struct error **err)
{
    int code = sqlite3_exec(reader->db, "BEGIN; SELECT count(*) FROM meta", NULL, NULL, NULL);
    if (code != SQLITE_OK)
        return reader_fail(reader, code, err);
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", reader->db, "main");
    if (!backup) {
        int result = fail(to, sqlite3_extended_errcode(to), target, err);
        (void)sqlite3_exec(reader->db, "COMMIT", NULL, NULL, NULL);
        return result;
    }
    do {
        code = sqlite3_backup_step(backup, PAGES_AT_ONCE);
        int total = sqlite3_backup_pagecount(backup);
        if (progress && (code == SQLITE_OK || code == SQLITE_DONE))
            progress(context, total - sqlite3_backup_remaining(backup), total);
    } while (code == SQLITE_OK);
    int end = sqlite3_backup_finish(backup);
    (void)sqlite3_exec(reader->db, "COMMIT", NULL, NULL, NULL);
    if (code == SQLITE_DONE)
        code = end;
    return code == SQLITE_OK ? 0 : fail(to, code, target, err);
}

static int check_mode(void *context, int columns, char **values, char **names)
{
    (void)names;
    *(bool *)context = columns == 1 && str_equal(values[0], "delete");
    return 0;
}

/* One file that needs no -wal and no -shm. */
static int make_single(sqlite3 *db, const char *target, struct error **err)
{
    bool single = false;
    int code = sqlite3_exec(db, "PRAGMA journal_mode=DELETE", check_mode, &single, NULL);
    if (code != SQLITE_OK)
        return fail(db, code, target, err);
    if (!single)
        return error_set(err, ERROR_FAILED, "backup %s: the copy could not be made a single file", target);
    return 0;
}

static int fill(struct journal_reader *reader, const char *target,
                void (*progress)(void *context, int done, int total), void *context, struct error **err)
{
    sqlite3 *db = NULL;
    CLEANUP_FREE char *real = realpath(target, NULL);
    if (!real)
        return error_set_errno(err, errno, "backup %s", target);
    int code = sqlite3_open_v2(real, &db,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW, NULL);
    int result = code == SQLITE_OK ? 0 : fail(db, code, target, err);
    /* It counts once it is whole and synced; until then nobody relies on it. */
    if (result == 0)
        (void)sqlite3_exec(db, "PRAGMA synchronous=OFF; PRAGMA journal_mode=MEMORY", NULL, NULL, NULL);
    if (result == 0)
        result = copy(reader, db, target, progress, context, err);
    if (result == 0)
        result = make_single(db, target, err);
    code = sqlite3_close(db);
    if (result == 0 && code != SQLITE_OK)
        result = fail(NULL, code, target, err);
    return result;
}

static int make_durable(int fd, const char *target, struct error **err)
{
    if (fsync(fd) != 0)
        return error_set_errno(err, errno, "backup %s", target);
    CLEANUP_FREE char *copy_of = xstrdup(target);
    CLEANUP_CLOSE int folder = open(dirname(copy_of), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0)
        (void)fsync(folder);
    return 0;
}

int journal_backup(struct journal_reader *reader, const char *target,
                   void (*progress)(void *context, int done, int total), void *context, struct error **err)
{
    CLEANUP_CLOSE int fd = open(target, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EEXIST)
        return error_set(err, ERROR_EXISTS, "backup %s: there is something already; nothing was overwritten",
                         target);
    if (fd < 0)
        return error_set_errno(err, errno, "backup %s", target);
    int result = fill(reader, target, progress, context, err);
    if (result == 0)
        result = make_durable(fd, target, err);
    if (result < 0)
        (void)unlink(target);
    return result;
}
