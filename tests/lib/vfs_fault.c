/* SPDX-License-Identifier: Apache-2.0 */
#include "vfs_fault.h"

#include "base/alloc.h"

#include <pthread.h>
#include <sqlite3.h>
#include <unistd.h>

struct fault_file {
    sqlite3_file base;
    sqlite3_file *real; /* behind this struct, in the same memory */
};

static struct {
    pthread_mutex_t mutex;
    unsigned kinds;
    int64_t left; /* until the failing call; <= 0: it has come */
    bool armed;
    bool sticky;
    int code;
    int64_t calls;
    int64_t failures;
    bool full;
    int64_t sync_delay_us;
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static sqlite3_vfs *under;

/* SQLITE_OK, or what this call is to answer instead of doing its work. */
static int fault(enum vfs_fault_kind kind, int natural_code)
{
    int code = SQLITE_OK;
    pthread_mutex_lock(&state.mutex);
    if (state.full && kind == VFS_FAULT_WRITE)
        code = SQLITE_FULL;
    if (state.armed && (state.kinds & (unsigned)kind)) {
        state.calls++;
        state.left--;
        if (state.left == 0 || (state.left < 0 && state.sticky)) {
            code = state.code ? state.code : natural_code;
            state.failures++;
        }
    }
    pthread_mutex_unlock(&state.mutex);
    return code;
}

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct fault_file *)file)->real;
}

static int fault_close(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

static int fault_read(sqlite3_file *file, void *bytes, int length, sqlite3_int64 offset)
{
    int code = fault(VFS_FAULT_READ, SQLITE_IOERR_READ);
    return code ? code : real_of(file)->pMethods->xRead(real_of(file), bytes, length, offset);
}

static int fault_write(sqlite3_file *file, const void *bytes, int length, sqlite3_int64 offset)
{
    int code = fault(VFS_FAULT_WRITE, SQLITE_IOERR_WRITE);
    return code ? code : real_of(file)->pMethods->xWrite(real_of(file), bytes, length, offset);
}

static int fault_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    int code = fault(VFS_FAULT_TRUNCATE, SQLITE_IOERR_TRUNCATE);
    return code ? code : real_of(file)->pMethods->xTruncate(real_of(file), size);
}

/* A failed sync has written nevertheless: that is how a row of a failed commit comes back. */
static int fault_sync(sqlite3_file *file, int flags)
{
    pthread_mutex_lock(&state.mutex);
    int64_t delay_us = state.sync_delay_us;
    pthread_mutex_unlock(&state.mutex);
    if (delay_us > 0)
        usleep((useconds_t)delay_us);
    int code = fault(VFS_FAULT_SYNC, SQLITE_IOERR_FSYNC);
    int real = real_of(file)->pMethods->xSync(real_of(file), flags);
    return code ? code : real;
}

static int fault_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), ret);
}

static int fault_lock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int fault_unlock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int fault_check_lock(sqlite3_file *file, int *ret)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), ret);
}

static int fault_control(sqlite3_file *file, int operation, void *argument)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), operation, argument);
}

static int fault_sector_size(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int fault_characteristics(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int fault_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **ret)
{
    int code = fault(VFS_FAULT_SHM, SQLITE_IOERR_SHMMAP);
    return code ? code : real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, ret);
}

static int fault_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    return real_of(file)->pMethods->xShmLock(real_of(file), offset, count, flags);
}

static void fault_shm_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int fault_shm_unmap(sqlite3_file *file, int remove)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = fault_close,
    .xRead = fault_read,
    .xWrite = fault_write,
    .xTruncate = fault_truncate,
    .xSync = fault_sync,
    .xFileSize = fault_size,
    .xLock = fault_lock,
    .xUnlock = fault_unlock,
    .xCheckReservedLock = fault_check_lock,
    .xFileControl = fault_control,
    .xSectorSize = fault_sector_size,
    .xDeviceCharacteristics = fault_characteristics,
    .xShmMap = fault_shm_map,
    .xShmLock = fault_shm_lock,
    .xShmBarrier = fault_shm_barrier,
    .xShmUnmap = fault_shm_unmap,
};

static int fault_open(sqlite3_vfs *self, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
    (void)self;
    struct fault_file *opened = (struct fault_file *)file;
    opened->base.pMethods = NULL;
    opened->real = (sqlite3_file *)(void *)(opened + 1);
    int code = fault(VFS_FAULT_OPEN, SQLITE_CANTOPEN);
    if (code)
        return code;
    code = under->xOpen(under, name, opened->real, flags, ret_flags);
    if (opened->real->pMethods)
        opened->base.pMethods = &methods;
    return code;
}

static int fault_delete(sqlite3_vfs *self, const char *name, int sync_folder)
{
    (void)self;
    int code = fault(VFS_FAULT_DELETE, SQLITE_IOERR_DELETE);
    return code ? code : under->xDelete(under, name, sync_folder);
}

static sqlite3_vfs vfs;

void vfs_fault_set_default(bool is_default)
{
    ENSURE(sqlite3_vfs_register(is_default ? &vfs : under, 1) == SQLITE_OK);
}

void vfs_fault_register(void)
{
    vfs_fault_reset();
    if (under)
        return;
    under = sqlite3_vfs_find(NULL);
    ENSURE(under);
    vfs = *under;
    vfs.zName = VFS_FAULT_NAME;
    vfs.pNext = NULL;
    vfs.szOsFile = (int)sizeof(struct fault_file) + under->szOsFile;
    vfs.xOpen = fault_open;
    vfs.xDelete = fault_delete;
    ENSURE(sqlite3_vfs_register(&vfs, 0) == SQLITE_OK);
}

void vfs_fault_reset(void)
{
    pthread_mutex_lock(&state.mutex);
    state.armed = false;
    state.full = false;
    state.sync_delay_us = 0;
    state.calls = 0;
    state.failures = 0;
    pthread_mutex_unlock(&state.mutex);
}

void vfs_fault_arm(unsigned kinds, int64_t k, bool sticky, int code)
{
    pthread_mutex_lock(&state.mutex);
    state.kinds = kinds;
    state.left = k;
    state.sticky = sticky;
    state.code = code;
    state.armed = true;
    state.calls = 0;
    state.failures = 0;
    pthread_mutex_unlock(&state.mutex);
}

int64_t vfs_fault_calls(void)
{
    pthread_mutex_lock(&state.mutex);
    int64_t calls = state.calls;
    pthread_mutex_unlock(&state.mutex);
    return calls;
}

int64_t vfs_fault_failures(void)
{
    pthread_mutex_lock(&state.mutex);
    int64_t failures = state.failures;
    pthread_mutex_unlock(&state.mutex);
    return failures;
}

void vfs_fault_set_full(bool full)
{
    pthread_mutex_lock(&state.mutex);
    state.full = full;
    pthread_mutex_unlock(&state.mutex);
}

void vfs_fault_set_sync_delay_us(int64_t delay_us)
{
    pthread_mutex_lock(&state.mutex);
    state.sync_delay_us = delay_us;
    pthread_mutex_unlock(&state.mutex);
}
