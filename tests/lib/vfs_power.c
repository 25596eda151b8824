/* SPDX-License-Identifier: Apache-2.0 */
#include "vfs_power.h"

#include "base/alloc.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

enum { SECTOR = 512 };

/* A change that no sync has made durable. */
struct change {
    bool truncates;
    int64_t offset; /* of a write; or the new size */
    int64_t length;
    uint8_t *bytes;
};

/* What the platter knows of one path. */
struct platter {
    char *path;
    uint8_t *bytes;
    int64_t size;
    int64_t room;
    bool exists;     /* durably in its folder */
    bool is_created; /* since the last sync of the folder */
    bool is_deleted; /* since then; what it was is still here */
    struct change *changes;
    size_t count;
    size_t changes_room;
    struct platter *prev;
    struct platter *next;
};

struct power_file {
    sqlite3_file base;
    struct platter *platter; /* NULL: a temporary file */
    sqlite3_file *real;
};

static sqlite3_vfs *under;
static struct platter *platters;
static int64_t calls;
static int64_t cut_at;
static bool is_off;
static bool is_lying;
static uint64_t random_state;

static uint64_t random_below(uint64_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % bound;
}

/* True when the power is off: now, or since before. */
static bool goes_off(void)
{
    if (!is_off && ++calls == cut_at)
        is_off = true;
    return is_off;
}

/* --- the platter ------------------------------------------------------------------------------ */

static void resize(struct platter *platter, int64_t size)
{
    if (size > platter->room) {
        platter->room = MAX(2 * platter->room, size);
        platter->bytes = xreallocarray(platter->bytes, (size_t)platter->room, 1);
    }
    if (size > platter->size) {
        memset(platter->bytes + platter->size, 0, (size_t)(size - platter->size));
    }
    platter->size = size;
}

static void apply_range(struct platter *platter, const struct change *change, int64_t from, int64_t to)
{
    if (to > platter->size)
        resize(platter, to);
    memcpy(platter->bytes + from, change->bytes + (from - change->offset), (size_t)(to - from));
}

static void apply(struct platter *platter, const struct change *change)
{
    if (change->truncates)
        resize(platter, MIN(platter->size, change->offset));
    else
        apply_range(platter, change, change->offset, change->offset + change->length);
}

/* Some sectors of it reached the disk. */
static void apply_torn(struct platter *platter, const struct change *change)
{
    int64_t end = change->offset + change->length;
    for (int64_t at = change->offset; at < end;) {
        int64_t next = MIN(end, (at / SECTOR + 1) * SECTOR);
        if (random_below(2))
            apply_range(platter, change, at, next);
        at = next;
    }
}

static void drop_changes(struct platter *platter)
{
    for (size_t i = 0; i < platter->count; i++)
        free(platter->changes[i].bytes);
    free(STEAL(platter->changes));
    platter->count = 0;
    platter->changes_room = 0;
}

static void add_change(struct platter *platter, struct change change)
{
    if (platter->count == platter->changes_room) {
        platter->changes_room = platter->changes_room ? 2 * platter->changes_room : 64;
        platter->changes = xreallocarray(platter->changes, platter->changes_room, sizeof(*platter->changes));
    }
    platter->changes[platter->count++] = change;
}

static void sync_folder(void)
{
    struct platter *platter = NULL;
    DL_FOREACH (platters, platter) {
        if (platter->is_created)
            platter->exists = true;
        if (platter->is_deleted)
            platter->exists = false;
        platter->is_created = false;
        platter->is_deleted = false;
    }
}

static void sync_platter(struct platter *platter)
{
    for (size_t i = 0; i < platter->count; i++)
        apply(platter, &platter->changes[i]);
    drop_changes(platter);
    /* SQLite syncs the folder with the first sync of a file that it has made. */
    if (platter->is_created)
        sync_folder();
}

static void load(struct platter *platter)
{
    int fd = open(platter->path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    platter->exists = fd >= 0;
    if (fd < 0)
        return;
    ENSURE(fstat(fd, &status) == 0);
    resize(platter, status.st_size);
    if (status.st_size > 0)
        ENSURE(pread(fd, platter->bytes, (size_t)status.st_size, 0) == status.st_size);
    close(fd);
}

static struct platter *platter_of(const char *path)
{
    struct platter *platter = NULL;
    DL_FOREACH (platters, platter)
        if (str_equal(platter->path, path))
            return platter;
    platter = xcalloc(1, sizeof(*platter));
    platter->path = xstrdup(path);
    load(platter);
    DL_APPEND(platters, platter);
    return platter;
}

static void forget_all(void)
{
    while (platters) {
        struct platter *platter = platters;
        DL_DELETE(platters, platter);
        drop_changes(platter);
        free(platter->bytes);
        free(platter->path);
        free(platter);
    }
}

/* --- files ------------------------------------------------------------------------------------ */

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct power_file *)file)->real;
}

static struct platter *platter_under(sqlite3_file *file)
{
    return ((struct power_file *)file)->platter;
}

static int power_close(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

static int power_read(sqlite3_file *file, void *bytes, int length, sqlite3_int64 offset)
{
    if (is_off)
        return SQLITE_IOERR_READ;
    return real_of(file)->pMethods->xRead(real_of(file), bytes, length, offset);
}

static int power_write(sqlite3_file *file, const void *bytes, int length, sqlite3_int64 offset)
{
    struct platter *platter = platter_under(file);
    bool was_off = is_off;
    bool off = goes_off();
    /* What is being written when the power goes may reach the disk as well. */
    if (platter && !was_off)
        add_change(platter,
                   (struct change){.offset = offset, .length = length, .bytes = xmalloc((size_t)length)});
    if (platter && !was_off)
        memcpy(platter->changes[platter->count - 1].bytes, bytes, (size_t)length);
    if (off)
        return SQLITE_IOERR_WRITE;
    return real_of(file)->pMethods->xWrite(real_of(file), bytes, length, offset);
}

static int power_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct platter *platter = platter_under(file);
    if (goes_off())
        return SQLITE_IOERR_TRUNCATE;
    if (platter)
        add_change(platter, (struct change){.truncates = true, .offset = size});
    return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int power_sync(sqlite3_file *file, int flags)
{
    (void)flags;
    struct platter *platter = platter_under(file);
    if (goes_off())
        return SQLITE_IOERR_FSYNC;
    if (platter && !is_lying)
        sync_platter(platter);
    /* The platter is what counts: the real disk need not be waited for. */
    return SQLITE_OK;
}

static int power_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), ret);
}

static int power_lock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int power_unlock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int power_check_lock(sqlite3_file *file, int *ret)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), ret);
}

static int power_control(sqlite3_file *file, int operation, void *argument)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), operation, argument);
}

static int power_sector_size(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int power_characteristics(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int power_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **ret)
{
    return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, ret);
}

static int power_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    return real_of(file)->pMethods->xShmLock(real_of(file), offset, count, flags);
}

static void power_shm_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int power_shm_unmap(sqlite3_file *file, int remove)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = power_close,
    .xRead = power_read,
    .xWrite = power_write,
    .xTruncate = power_truncate,
    .xSync = power_sync,
    .xFileSize = power_size,
    .xLock = power_lock,
    .xUnlock = power_unlock,
    .xCheckReservedLock = power_check_lock,
    .xFileControl = power_control,
    .xSectorSize = power_sector_size,
    .xDeviceCharacteristics = power_characteristics,
    .xShmMap = power_shm_map,
    .xShmLock = power_shm_lock,
    .xShmBarrier = power_shm_barrier,
    .xShmUnmap = power_shm_unmap,
};

static int power_open(sqlite3_vfs *self, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
    (void)self;
    struct power_file *opened = (struct power_file *)file;
    opened->base.pMethods = NULL;
    opened->real = (sqlite3_file *)(void *)(opened + 1);
    opened->platter = NULL;
    bool creates = name && (flags & SQLITE_OPEN_CREATE) && access(name, F_OK) != 0;
    if (creates ? goes_off() : is_off)
        return SQLITE_CANTOPEN;
    opened->platter = name ? platter_of(name) : NULL;
    int code = under->xOpen(under, name, opened->real, flags, ret_flags);
    if (code == SQLITE_OK && creates) {
        opened->platter->is_created = true;
        opened->platter->is_deleted = false;
        resize(opened->platter, 0);
    }
    if (opened->real->pMethods)
        opened->base.pMethods = &methods;
    return code;
}

static int power_delete(sqlite3_vfs *self, const char *name, int with_folder)
{
    (void)self;
    if (goes_off())
        return SQLITE_IOERR_DELETE;
    struct platter *platter = platter_of(name);
    if (platter->is_created)
        platter->is_created = false; /* never durably there */
    else
        platter->is_deleted = platter->exists;
    if (with_folder)
        sync_folder();
    return under->xDelete(under, name, with_folder);
}

static sqlite3_vfs vfs;

void vfs_power_register(void)
{
    if (under)
        return;
    under = sqlite3_vfs_find(NULL);
    ENSURE(under);
    vfs = *under;
    vfs.zName = VFS_POWER_NAME;
    vfs.pNext = NULL;
    vfs.szOsFile = (int)sizeof(struct power_file) + under->szOsFile;
    vfs.xOpen = power_open;
    vfs.xDelete = power_delete;
    ENSURE(sqlite3_vfs_register(&vfs, 0) == SQLITE_OK);
}

void vfs_power_begin(int64_t k, uint64_t seed)
{
    forget_all();
    calls = 0;
    cut_at = k;
    is_off = false;
    is_lying = false;
    random_state = seed * 0x9e3779b97f4a7c15ULL + 0x2545f4914f6cdd1dULL;
}

void vfs_power_set_lying(bool lies)
{
    is_lying = lies;
}

int64_t vfs_power_calls(void)
{
    return calls;
}

bool vfs_power_is_off(void)
{
    return is_off;
}

/* The changes since the last sync: each lost, kept or torn, in any order. */
static void survive(struct platter *platter)
{
    for (size_t i = platter->count; i > 1; i--) {
        size_t j = (size_t)random_below(i);
        struct change change = platter->changes[i - 1];
        platter->changes[i - 1] = platter->changes[j];
        platter->changes[j] = change;
    }
    for (size_t i = 0; i < platter->count; i++) {
        uint64_t fate = random_below(3);
        if (fate == 0)
            continue;
        if (fate == 1 || platter->changes[i].truncates)
            apply(platter, &platter->changes[i]);
        else
            apply_torn(platter, &platter->changes[i]);
    }
    drop_changes(platter);
    if (platter->is_created)
        platter->exists = random_below(2);
    if (platter->is_deleted)
        platter->exists = random_below(2);
}

static void put(const struct platter *platter)
{
    if (!platter->exists) {
        (void)unlink(platter->path);
        return;
    }
    int fd = open(platter->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ENSURE(fd >= 0);
    if (platter->size > 0)
        ENSURE(pwrite(fd, platter->bytes, (size_t)platter->size, 0) == platter->size);
    close(fd);
    CLEANUP_FREE char *shm = xasprintf("%s-shm", platter->path);
    (void)unlink(shm);
}

void vfs_power_restore(void)
{
    struct platter *platter = NULL;
    DL_FOREACH (platters, platter) {
        survive(platter);
        put(platter);
    }
    forget_all();
    is_off = false;
    cut_at = 0;
}
