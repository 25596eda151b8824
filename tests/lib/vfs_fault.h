/* SPDX-License-Identifier: Apache-2.0
 *
 * A disk that fails on demand: a SQLite VFS above the default one (public API only). Calls that can fail are
 * counted; the k-th fails, once or from then on; a failed sync may have written after all; the disk may be
 * full or slow. One for the process; its state may be changed from another thread between calls. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define VFS_FAULT_NAME "fault"

/* Which calls are counted (and may fail). */
enum vfs_fault_kind {
    VFS_FAULT_NONE = 0,
    VFS_FAULT_WRITE = 1,
    VFS_FAULT_SYNC = 2,
    VFS_FAULT_READ = 4,
    VFS_FAULT_TRUNCATE = 8,
    VFS_FAULT_OPEN = 16,
    VFS_FAULT_SHM = 32, /* map */
    VFS_FAULT_DELETE = 64,
    VFS_FAULT_ALL = 127,
};

/* Registers it (again: resets it). */
void vfs_fault_register(void);
void vfs_fault_reset(void);
/* Also under connections that name no VFS (the reader's). */
void vfs_fault_set_default(bool is_default);
/* From now on: the k-th call (1 is the next) of these kinds fails; sticky: and every one after it. code 0:
 * the I/O error of the call; else this result, e.g. SQLITE_FULL. */
void vfs_fault_arm(unsigned kinds, int64_t k, bool sticky, int code);
/* Calls of the armed kinds since vfs_fault_arm(). */
int64_t vfs_fault_calls(void);
/* How many have failed. */
int64_t vfs_fault_failures(void);
/* Every write answers SQLITE_FULL while it is so. */
void vfs_fault_set_full(bool full);
/* Each sync takes so long (really), microseconds. */
void vfs_fault_set_sync_delay_us(int64_t delay_us);
