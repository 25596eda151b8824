/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a journal lies: its real path, the files beside it, whether that is a place for one, and what the
 * first 100 bytes say, so that a file that is not ours is never touched. Looks with stat() and one descriptor
 * that stays open: closing any descriptor of the file drops SQLite's locks. */
#pragma once

#include "base/error.h"

struct place {
    char *path; /* absolute, without symbolic links */
    char *folder;
    char *lock_path;
    char *wal_path;
    char *shm_path;
    char *ballast_path;
    bool is_new; /* no file yet, or an empty one */
    int fd;      /* -1, or the descriptor of the look at the header: closed last */
};

/* "neoj": tells file(1) and us that a SQLite file is a journal. */
enum { PLACE_APPLICATION_ID = 0x6e656f6a };

/* for_writing: makes the file (mode 0600) when it is not there. Fills *ret, which place_done() releases. */
int place_find(const char *path, bool for_writing, struct place *ret, struct error **err);
/* Not on a network file system (NFS, CIFS, FUSE ...): locks and shared memory do not work there. */
int place_check_file_system(const struct place *place, struct error **err);
/* The name of a file system, by statfs() type, on which a journal must not lie; NULL: it may. */
const char *place_unsafe_file_system(long type);
/* Refuses what is no SQLite file or another application's, without opening it as a database. Makes mode 0600
 * of a laxer one. for_writing only. */
int place_check_header(struct place *place, struct error **err);
/* Of an empty file: refuses one that was cut to nothing beside its -wal. -ERROR_CORRUPT. */
int place_check_empty(const struct place *place, struct error **err);
/* Which files lie under our names now: compared before each commit, since an open file can be moved or
 * removed without a word. */
enum { PLACE_FILES = 3 };
struct place_files {
    struct {
        uint64_t device;
        uint64_t inode;   /* 0: none */
    } files[PLACE_FILES]; /* the journal, its -wal, its lock */
};
struct place_files place_look(const struct place *place);
/* NULL: they are the same; else the path of one that is not. */
const char *place_changed(const struct place *place, const struct place_files *before);
void place_done(struct place *place);
