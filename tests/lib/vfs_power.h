/* SPDX-License-Identifier: Apache-2.0
 *
 * A disk whose power can be cut: a SQLite VFS above the default one (public API only). Files are real; beside
 * them it keeps what is durable of each, and the writes, truncations, creations and deletions since the last
 * sync. At the cut each of those is lost, kept, or torn at 512-byte sectors, in any order, as the seed says.
 * Calls that change the disk are counted; the power goes off instead of the k-th. From then on every call
 * fails, until it is on again. One for the process, one folder at a time, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define VFS_POWER_NAME "power"

void vfs_power_register(void);
/* All is durable as it lies on the disk now; the power goes off at the k-th call from here (0: never). */
void vfs_power_begin(int64_t k, uint64_t seed);
/* A disk that lies: syncs answer OK and make nothing durable. Until the next vfs_power_begin(). */
void vfs_power_set_lying(bool lies);
/* Calls counted since vfs_power_begin(). */
int64_t vfs_power_calls(void);
bool vfs_power_is_off(void);
/* After a cut, when all files are closed: puts what survived on the disk. What was mapped as shared memory is
 * gone. */
void vfs_power_restore(void);
