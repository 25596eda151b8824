/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that cannot be used, each refused with a sentence that says what to do, by the writer and by the
 * reader. */
#include "journal_fixture.h"
#include "vfs_fault.h"

#include "journal/library.h"
#include "journal/place.h"
#include "journal/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int setup(void **state)
{
    vfs_fault_register();
    return journal_fixture_make(state);
}

static int teardown(void **state)
{
    vfs_fault_reset();
    return journal_fixture_free(state);
}

static void writer_refuses(struct journal_fixture *fixture, enum error_code code, const char *words)
{
    CLEANUP_ERROR struct error *err = journal_fixture_open_failing(fixture);
    if (err->code != code || !strstr(err->text, words))
        fail_msg("writer: expected %s \"%s\", got %s \"%s\"", error_code_text(code), words,
                 error_code_text(err->code), err->text);
}

static void reader_refuses(struct journal_fixture *fixture, enum error_code code, const char *words)
{
    CLEANUP_ERROR struct error *err = NULL;
    struct journal_reader *reader = NULL;
    int result = journal_reader_open(fixture->options.path, &reader, &err);
    journal_reader_close(reader);
    if (result != -(int)code || !strstr(error_text(err), words))
        fail_msg("reader: expected %s \"%s\", got %d \"%s\"", error_code_text(code), words, -result,
                 error_text(err));
}

static void reader_reads(const char *path, int64_t head_seq)
{
    CLEANUP_ERROR struct error *err = NULL;
    CLEANUP_JOURNAL_READER struct journal_reader *reader = NULL;
    if (journal_reader_open(path, &reader, &err) < 0)
        fail_msg("reader: %s", error_text(err));
    assert_int_equal(journal_reader_meta(reader)->head_seq, head_seq);
}

static void write_bytes(const char *path, const void *bytes, size_t length)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, length), length);
    close(fd);
}

static char *digest_of_folder_file(const char *path)
{
    struct buf content = BUF_INIT(64 << 20);
    char part[65536];
    ssize_t length = 0;
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    while ((length = read(fd, part, sizeof(part))) > 0)
        assert_int_equal(buf_add(&content, part, (size_t)length), 0);
    close(fd);
    uint8_t digest[SHA256_SIZE];
    sha256_once(buf_text(&content), content.length, digest);
    buf_done(&content);
    return hex_encode(digest, sizeof(digest));
}

/* --- what is there ---------------------------------------------------------------------------- */

static void a_directory_is_refused(void **state)
{
    struct journal_fixture *fixture = *state;
    fixture->options.path = fixture->folder;
    writer_refuses(fixture, ERROR_INVALID, "is a directory: name a file in it");
    reader_refuses(fixture, ERROR_INVALID, "is a directory");
}

static void a_missing_folder_is_named(void **state)
{
    struct journal_fixture *fixture = *state;
    CLEANUP_FREE char *path = xasprintf("%s/nowhere/deeper/journal.db", fixture->folder);
    fixture->options.path = path;
    writer_refuses(fixture, ERROR_NOT_FOUND, "nowhere");
    reader_refuses(fixture, ERROR_NOT_FOUND, "nowhere");
}

static void its_own_folder_is_made_by_the_writer_only(void **state)
{
    struct journal_fixture *fixture = *state;
    CLEANUP_FREE char *folder = xasprintf("%s/new", fixture->folder);
    CLEANUP_FREE char *path = xasprintf("%s/journal.db", folder);
    free(fixture->path);
    fixture->path = STEAL(path);
    fixture->options.path = fixture->path;
    reader_refuses(fixture, ERROR_NOT_FOUND, "new");
    assert_int_equal(access(folder, F_OK), -1);
    journal_fixture_open(fixture);
    struct stat status;
    assert_int_equal(stat(folder, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    reader_reads(fixture->path, 1);
    journal_fixture_crash(fixture);
}

static void a_missing_file_is_made_by_the_writer_only(void **state)
{
    struct journal_fixture *fixture = *state;
    reader_refuses(fixture, ERROR_NOT_FOUND, "journal.db");
    assert_int_equal(access(fixture->path, F_OK), -1);
    journal_fixture_open(fixture);
    journal_fixture_crash(fixture);
    reader_reads(fixture->path, 1);
}

static void no_name_is_refused(void **state)
{
    struct journal_fixture *fixture = *state;
    fixture->options.path = "";
    writer_refuses(fixture, ERROR_INVALID, "--journal FILE");
}

static void a_file_that_is_no_database_is_refused_and_left_as_it_is(void **state)
{
    struct journal_fixture *fixture = *state;
    char text[5000];
    memset(text, 'x', sizeof(text));
    write_bytes(fixture->path, text, sizeof(text));
    CLEANUP_FREE char *before = digest_of_folder_file(fixture->path);
    writer_refuses(fixture, ERROR_UNSUPPORTED, "not even a SQLite file");
    reader_refuses(fixture, ERROR_INVALID, "not a journal");
    CLEANUP_FREE char *after = digest_of_folder_file(fixture->path);
    assert_string_equal(before, after);
}

static void another_applications_database_is_refused_and_left_as_it_is(void **state)
{
    struct journal_fixture *fixture = *state;
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(fixture->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA journal_mode=WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    CLEANUP_FREE char *before = digest_of_folder_file(fixture->path);
    writer_refuses(fixture, ERROR_UNSUPPORTED, "another application's");
    reader_refuses(fixture, ERROR_UNSUPPORTED, "another application's");
    CLEANUP_FREE char *after = digest_of_folder_file(fixture->path);
    assert_string_equal(before, after);
}

static void a_newer_file_is_refused_by_the_writer_and_read_while_it_is_compatible(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_open(fixture);
    journal_fixture_crash(fixture);
    journal_fixture_sql(fixture->path, "PRAGMA user_version = 99");
    writer_refuses(fixture, ERROR_UNSUPPORTED, "written by a newer neoset (schema 99");
    reader_reads(fixture->path, 1);
    journal_fixture_sql(fixture->path, "UPDATE meta SET min_reader = 99");
    reader_refuses(fixture, ERROR_UNSUPPORTED, "use that version's programs");
}

static void a_file_cut_short_is_refused(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_open(fixture);
    journal_fixture_stop(fixture);
    assert_int_equal(truncate(fixture->path, 8192), 0);
    CLEANUP_ERROR struct error *err = journal_fixture_open_failing(fixture);
    assert_int_equal(err->code, ERROR_CORRUPT);
    assert_non_null(strstr(err->text, "cut short or damaged: restore a backup"));
    assert_non_null(strstr(err->text, "to begin a new history"));
    reader_refuses(fixture, ERROR_CORRUPT, "restore a backup");
    assert_int_equal(truncate(fixture->path, 50), 0);
    writer_refuses(fixture, ERROR_UNSUPPORTED, "not even a SQLite file");
}

static void a_file_cut_to_nothing_beside_its_wal_is_refused(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_open(fixture);
    journal_fixture_crash(fixture);
    assert_int_equal(truncate(fixture->path, 0), 0);
    writer_refuses(fixture, ERROR_CORRUPT, "somebody truncated it");
    reader_refuses(fixture, ERROR_CORRUPT, "somebody truncated it");
}

static void an_empty_file_becomes_a_journal(void **state)
{
    struct journal_fixture *fixture = *state;
    write_bytes(fixture->path, "", 0);
    journal_fixture_open(fixture);
    journal_fixture_stop(fixture);
    reader_reads(fixture->path, 2);
}

static void a_changed_last_row_is_found_at_start(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_open(fixture);
    journal_fixture_note(fixture, "true");
    journal_fixture_settle(fixture);
    journal_fixture_crash(fixture);
    journal_fixture_sql(fixture->path,
                        "DROP TRIGGER entry_no_update; UPDATE entry SET reason = 'false' WHERE seq = 2");
    writer_refuses(fixture, ERROR_CORRUPT, "entry 2 was changed after it was written");
}

static void a_symbolic_link_is_the_file_that_it_leads_to(void **state)
{
    struct journal_fixture *fixture = *state;
    CLEANUP_FREE char *link = xasprintf("%s/link.db", fixture->folder);
    journal_fixture_open(fixture);
    assert_int_equal(symlink(fixture->path, link), 0);
    struct journal_fixture second = *fixture;
    second.journal = NULL;
    second.options.path = link;
    writer_refuses(&second, ERROR_LOCKED, "in use");
    journal_fixture_crash(fixture);
    CLEANUP_FREE char *dangling = xasprintf("%s/dangling.db", fixture->folder);
    assert_int_equal(symlink("/nowhere/at/all", dangling), 0);
    fixture->options.path = dangling;
    writer_refuses(fixture, ERROR_INVALID, "symbolic link to nothing");
}

static void a_laxer_mode_is_made_0600(void **state)
{
    struct journal_fixture *fixture = *state;
    struct stat status;
    journal_fixture_open(fixture);
    journal_fixture_stop(fixture);
    assert_int_equal(chmod(fixture->path, 0664), 0);
    journal_fixture_open(fixture);
    assert_int_equal(stat(fixture->path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
}

/* The folder and the file of a first use, made by several at once: whoever comes second finds them there. */
static void several_that_make_one_journal_at_once_all_find_it(void **state)
{
    struct journal_fixture *fixture = *state;
    enum { ROUNDS = 200, MANY = 4 };
    for (int round = 0; round < ROUNDS; round++) {
        CLEANUP_FREE char *path = xasprintf("%s/first-%d/journal.db", fixture->folder, round);
        int gate[2];
        assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
        pid_t pids[MANY];
        for (int i = 0; i < MANY; i++) {
            pids[i] = fork();
            if (pids[i] > 0)
                continue;
            char byte;
            close(gate[1]);
            (void)!read(gate[0], &byte, 1); /* until all are there */
            struct place place;
            struct error *err = NULL;
            if (place_find(path, true, &place, &err) < 0) {
                fprintf(stderr, "%s\n", error_text(err));
                _exit(1);
            }
            _exit(0);
        }
        close(gate[0]);
        close(gate[1]);
        for (int i = 0; i < MANY; i++) {
            int status = 0;
            assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
            assert_int_equal(status, 0);
        }
    }
}

static void network_file_systems_are_known_by_their_number(void **state)
{
    (void)state;
    assert_string_equal(place_unsafe_file_system(0x6969), "NFS");
    assert_string_equal(place_unsafe_file_system(0x65735546), "FUSE");
    assert_string_equal(place_unsafe_file_system((long)0xff534d42), "CIFS");
    assert_string_equal(place_unsafe_file_system((long)(int)0xfe534d42), "SMB 2");
    assert_string_equal(place_unsafe_file_system(0x01021997), "9p");
    assert_string_equal(place_unsafe_file_system(0x00c36400), "Ceph");
    assert_null(place_unsafe_file_system(0xef53));     /* ext4 */
    assert_null(place_unsafe_file_system(0x01021994)); /* tmpfs */
    assert_null(place_unsafe_file_system(0x58465342)); /* XFS */
}

/* --- permissions: as somebody who is not root ------------------------------------------------- */

/* Runs body in a child without root's rights; its assertions end the child with 1. */
static void as_nobody(struct journal_fixture *fixture, void (*body)(struct journal_fixture *fixture))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(2);
        body(fixture);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void must(bool condition, const char *text)
{
    if (condition)
        return;
    fprintf(stderr, "not so: %s\n", text);
    _exit(1);
}

static void check_no_permission(struct journal_fixture *fixture)
{
    struct journal *journal = NULL;
    struct journal_reader *reader = NULL;
    struct error *err = NULL;
    must(journal_open(fixture->env, &fixture->options, &journal, &err) == -ERROR_FORBIDDEN, error_text(err));
    error_free(err);
    err = NULL;
    must(journal_reader_open(fixture->path, &reader, &err) == -ERROR_FORBIDDEN, error_text(err));
    error_free(err);
}

static void without_permission_the_file_is_named(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_open(fixture);
    journal_fixture_stop(fixture);
    assert_int_equal(chmod(fixture->path, 0), 0);
    assert_int_equal(chmod(fixture->folder, 0755), 0);
    as_nobody(fixture, check_no_permission);
}

static void reader_must_refuse(const struct journal_fixture *fixture, const char *words)
{
    struct journal_reader *reader = NULL;
    struct error *err = NULL;
    must(journal_reader_open(fixture->path, &reader, &err) < 0, "opens");
    must(strstr(error_text(err), words) != NULL, error_text(err));
    error_free(err);
}

static void check_unreadable_wal(struct journal_fixture *fixture)
{
    reader_must_refuse(fixture, "-wal cannot be read");
}

static void an_unreadable_wal_is_said(void **state)
{
    struct journal_fixture *fixture = *state;
    CLEANUP_FREE char *wal = xasprintf("%s-wal", fixture->path);
    CLEANUP_FREE char *shm = xasprintf("%s-shm", fixture->path);
    journal_fixture_open(fixture);
    journal_fixture_note(fixture, "x");
    journal_fixture_settle(fixture);
    journal_fixture_crash(fixture);
    assert_int_equal(chmod(fixture->folder, 0755), 0);
    assert_int_equal(chmod(fixture->path, 0644), 0);
    assert_int_equal(chmod(shm, 0644), 0);
    assert_int_equal(chmod(wal, 0), 0);
    as_nobody(fixture, check_unreadable_wal);
}

static void check_read_only_folder(struct journal_fixture *fixture)
{
    reader_must_refuse(fixture, "-shm is missing and cannot be made");
}

static void check_reads_all(struct journal_fixture *fixture)
{
    struct journal_reader *reader = NULL;
    struct error *err = NULL;
    must(journal_reader_open(fixture->path, &reader, &err) == 0, error_text(err));
    must(journal_reader_meta(reader)->head_seq == 2, "both rows");
    journal_reader_close(reader);
}

static void a_read_only_folder_is_read_with_its_neighbours_and_explained_without(void **state)
{
    struct journal_fixture *fixture = *state;
    CLEANUP_FREE char *wal = xasprintf("%s-wal", fixture->path);
    CLEANUP_FREE char *shm = xasprintf("%s-shm", fixture->path);
    journal_fixture_open(fixture);
    journal_fixture_note(fixture, "in the wal only");
    journal_fixture_settle(fixture);
    journal_fixture_crash(fixture);
    const char *const files[] = {fixture->path, wal, shm};
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        assert_int_equal(chmod(files[i], 0444), 0);
    assert_int_equal(chmod(fixture->folder, 0555), 0);
    as_nobody(fixture, check_reads_all);
    assert_int_equal(chmod(fixture->folder, 0755), 0);
    assert_int_equal(unlink(shm), 0);
    assert_int_equal(chmod(fixture->folder, 0555), 0);
    as_nobody(fixture, check_read_only_folder);
    assert_int_equal(chmod(fixture->folder, 0755), 0);
}

/* --- the lock --------------------------------------------------------------------------------- */

static void a_second_controller_is_refused_and_told_who_holds_it(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_open(fixture);
    struct journal_fixture second = *fixture;
    second.journal = NULL;
    CLEANUP_FREE char *words = xasprintf("is in use by process %ld on tester", (long)getpid());
    writer_refuses(&second, ERROR_LOCKED, words);
    journal_fixture_stop(fixture);
    journal_fixture_open(&second);
    journal_fixture_crash(&second);
}

static void check_locked(struct journal_fixture *fixture)
{
    struct journal *journal = NULL;
    struct error *err = NULL;
    must(journal_open(fixture->env, &fixture->options, &journal, &err) == -ERROR_LOCKED, error_text(err));
    error_free(err);
}

static void open_and_die(struct journal_fixture *fixture)
{
    struct journal *journal = NULL;
    must(journal_open(fixture->env, &fixture->options, &journal, NULL) == 0, "opens");
}

static void the_lock_holds_against_another_process_and_dies_with_it(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_open(fixture);
    assert_int_equal(chmod(fixture->folder, 0777), 0);
    pid_t child = fork();
    if (child == 0) {
        check_locked(fixture);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    journal_fixture_crash(fixture);
    child = fork();
    if (child == 0) {
        open_and_die(fixture); /* without closing anything */
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    journal_fixture_open(fixture);
}

/* After a kill a reader may recover the write-ahead log first, and nobody else gets at the file meanwhile. */
static void who_has_the_file_for_a_moment_is_waited_for(void **state)
{
    struct journal_fixture *fixture = *state;
    int ends[2];
    journal_fixture_open(fixture);
    journal_fixture_crash(fixture);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        sqlite3 *db = NULL;
        must(sqlite3_open(fixture->options.path, &db) == SQLITE_OK, "open");
        must(sqlite3_exec(db, "PRAGMA locking_mode=EXCLUSIVE; BEGIN IMMEDIATE; COMMIT", NULL, NULL, NULL) ==
                 SQLITE_OK,
             sqlite3_errmsg(db));
        must(write(ends[1], "x", 1) == 1, "write");
        usleep(500 * 1000);
        _exit(0);
    }
    char byte;
    assert_int_equal(read(ends[0], &byte, 1), 1);
    journal_fixture_open(fixture);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void a_child_process_does_not_inherit_the_lock(void **state)
{
    struct journal_fixture *fixture = *state;
    int ends[2];
    journal_fixture_open(fixture);
    assert_int_equal(pipe2(ends, 0), 0);
    pid_t child = fork();
    if (child == 0) {
        /* As a chart renderer would be started: exec, alive until we close our end. */
        close(ends[1]);
        dup2(ends[0], STDIN_FILENO);
        execlp("cat", "cat", (char *)NULL);
        _exit(2);
    }
    close(ends[0]);
    /* Until it has executed: its descriptors are closed then, as /proc shows. */
    CLEANUP_FREE char *proc = xasprintf("/proc/%ld/comm", (long)child);
    char name[16] = "";
    for (int i = 0; i < 10000 && strncmp(name, "cat", 3) != 0; i++) {
        FILE *file = fopen(proc, "r");
        assert_non_null(file);
        assert_non_null(fgets(name, sizeof(name), file));
        fclose(file);
        usleep(1000);
    }
    journal_fixture_crash(fixture);
    journal_fixture_open(fixture);
    close(ends[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* --- a full disk ------------------------------------------------------------------------------ */

static void no_space_at_start_gives_up_the_ballast_and_says_so(void **state)
{
    struct journal_fixture *fixture = *state;
    CLEANUP_FREE char *ballast = xasprintf("%s-ballast", fixture->path);
    journal_fixture_open(fixture);
    journal_fixture_crash(fixture);
    assert_int_equal(access(ballast, F_OK), 0);
    fixture->options.vfs = VFS_FAULT_NAME;
    vfs_fault_set_full(true);
    CLEANUP_FREE char *words = xasprintf("free 32 MiB in the file system of %s ", fixture->folder);
    writer_refuses(fixture, ERROR_NO_SPACE, words);
    assert_int_equal(access(ballast, F_OK), -1);
    writer_refuses(fixture, ERROR_NO_SPACE, words);
    vfs_fault_set_full(false);
    journal_fixture_open(fixture);
    assert_int_equal(access(ballast, F_OK), 0);
}

static void without_shared_memory_on_a_full_disk_the_writer_says_so(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_open(fixture);
    journal_fixture_crash(fixture);
    fixture->options.vfs = VFS_FAULT_NAME;
    vfs_fault_arm(VFS_FAULT_SHM, 1, true, SQLITE_IOERR_SHMSIZE);
    writer_refuses(fixture, ERROR_NO_SPACE, "full");
}

static void without_shared_memory_on_a_full_disk_the_reader_says_so(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_open(fixture);
    journal_fixture_crash(fixture);
    vfs_fault_set_default(true);
    vfs_fault_arm(VFS_FAULT_SHM, 1, true, SQLITE_IOERR_SHMSIZE);
    reader_refuses(fixture, ERROR_NO_SPACE, "its -shm is missing and the disk is full");
    vfs_fault_set_default(false);
}

/* On a real file system that is really full: 0 done, 77 may not mount here. */
static void check_full_file_system(struct journal_fixture *fixture)
{
    CLEANUP_FREE char *path = xasprintf("%s/full/journal.db", fixture->folder);
    CLEANUP_FREE char *folder = xasprintf("%s/full", fixture->folder);
    CLEANUP_FREE char *filler = xasprintf("%s/filler", folder);
    CLEANUP_FREE char *shm = xasprintf("%s-shm", path);
    if (mkdir(folder, 0700) != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", folder, "tmpfs", 0, "size=4m") != 0)
        _exit(77);
    fixture->options.path = path;
    struct journal *journal = NULL;
    struct error *err = NULL;
    must(journal_open(fixture->env, &fixture->options, &journal, &err) == 0, error_text(err));
    int fd = open(filler, O_WRONLY | O_CREAT, 0600);
    static char block[65536];
    for (size_t size = sizeof(block); size >= 1; size /= 2)
        while (write(fd, block, size) == (ssize_t)size)
            continue;
    close(fd);
    for (int i = 0; i < 2000; i++)
        journal_append(journal,
                       &(struct journal_entry){.kind = JOURNAL_NOTE, .reason = "a row that finds no room"});
    int64_t newest = journal_next_seq(journal) - 1;
    journal_commit(journal);
    env_sim_run_for(fixture->env, 1000000);
    must(journal_health(journal) == JOURNAL_FULL, "full is noticed");
    must(journal_durable_seq(journal) < newest, "nothing is claimed");
    must(unlink(filler) == 0, "room");
    env_sim_run_for(fixture->env, 20000000);
    must(journal_health(journal) == JOURNAL_WELL, journal_problem(journal));
    must(journal_durable_seq(journal) == newest, "it carried on");
    journal_close(journal, NULL);
    must(unlink(shm) == 0, "shm");
    fd = open(filler, O_WRONLY | O_CREAT, 0600);
    for (size_t size = sizeof(block); size >= 1; size /= 2)
        while (write(fd, block, size) == (ssize_t)size)
            continue;
    close(fd);
    struct journal_reader *reader = NULL;
    must(journal_reader_open(path, &reader, &err) == -ERROR_NO_SPACE, error_text(err));
    must(strstr(error_text(err), "its -shm is missing and the disk is full") != NULL, error_text(err));
    error_free(err);
    err = NULL;
    must(journal_open(fixture->env, &fixture->options, &journal, &err) == -ERROR_NO_SPACE, error_text(err));
    error_free(err);
}

static void run_in_child(struct journal_fixture *fixture, void (*check)(struct journal_fixture *fixture))
{
    if (geteuid() != 0)
        skip();
    pid_t child = fork();
    if (child == 0) {
        check(fixture);
        fflush(NULL);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_file_system_that_is_really_full_is_survived(void **state)
{
    run_in_child(*state, check_full_file_system);
}

/* --- a first opening that was interrupted ----------------------------------------------------- */

static const char unbegun[] = "holds nothing yet: its first opening was interrupted";

static void fill(const char *folder, int64_t but)
{
    static char block[4096];
    CLEANUP_FREE char *room = xasprintf("%s/room", folder);
    CLEANUP_FREE char *filler = xasprintf("%s/filler", folder);
    int fd = open(room, O_WRONLY | O_CREAT, 0600);
    must(posix_fallocate(fd, 0, but) == 0, "room");
    close(fd);
    fd = open(filler, O_WRONLY | O_CREAT, 0600);
    while (write(fd, block, sizeof(block)) == sizeof(block))
        continue;
    close(fd);
    must(unlink(room) == 0, "room");
}

/* What is read of it, as often as one likes: a look may leave an empty -wal. true: that there is none yet;
 * false: its schema is there, and nothing else. */
static bool is_unbegun(const char *path)
{
    int result = 0;
    for (int i = 0; i < 2; i++) {
        CLEANUP_JOURNAL_READER struct journal_reader *reader = NULL;
        CLEANUP_ERROR struct error *err = NULL;
        int now = journal_reader_open(path, &reader, &err);
        must(now == 0 || (now == -ERROR_NOT_FOUND && strstr(error_text(err), unbegun)), error_text(err));
        must(i == 0 || now == result, "it is not twice the same");
        must(now < 0 || journal_reader_meta(reader)->head_seq == 0, "there is something in it");
        result = now;
    }
    return result < 0;
}

/* With so much room, then with more. true: it was too little for a journal to begin. */
static bool open_with_room(struct journal_fixture *fixture, const char *folder, int64_t bytes)
{
    CLEANUP_FREE char *path = xasprintf("%s/%lld.db", folder, (long long)bytes);
    CLEANUP_FREE char *filler = xasprintf("%s/filler", folder);
    CLEANUP_FREE char *clear = xasprintf("rm -f %s/*", folder);
    CLEANUP_ERROR struct error *err = NULL;
    struct journal_reader *reader = NULL;
    struct journal *journal = NULL;
    bool was_unbegun = false;
    fill(folder, bytes);
    fixture->options.path = path;
    int result = journal_open(fixture->env, &fixture->options, &journal, &err);
    must(unlink(filler) == 0, "filler");
    if (result < 0) {
        must(result == -ERROR_NO_SPACE, error_text(err));
        was_unbegun = is_unbegun(path);
        error_free(STEAL(err));
        must(journal_open(fixture->env, &fixture->options, &journal, &err) == 0, error_text(err));
        must(journal_reader_open(path, &reader, &err) == 0, error_text(err));
        journal_reader_close(reader);
    }
    journal_close(journal, NULL);
    must(system(clear) == 0, "clear");
    return was_unbegun;
}

static void check_little_room(struct journal_fixture *fixture)
{
    CLEANUP_FREE char *folder = xasprintf("%s/little", fixture->folder);
    if (mkdir(folder, 0700) != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", folder, "tmpfs", 0, "size=1m") != 0)
        _exit(77);
    int failed = 0;
    for (int64_t bytes = 4096; bytes <= 512 * 1024; bytes += 4096)
        failed += open_with_room(fixture, folder, bytes);
    printf("    %d amounts of room were too little\n", failed);
    must(failed > 10, "room for the first opening was found too soon");
}

static void a_first_opening_without_room_is_no_journal_yet_and_is_gone_on_with(void **state)
{
    run_in_child(*state, check_little_room);
}

/* The same by hand: our mark, and no schema. */
static void a_mark_of_ours_alone_is_no_journal_yet(void **state)
{
    struct journal_fixture *fixture = *state;
    CLEANUP_FREE char *sql = xasprintf("PRAGMA application_id=%d", PLACE_APPLICATION_ID);
    write_bytes(fixture->path, "", 0);
    journal_fixture_sql(fixture->path, sql);
    reader_refuses(fixture, ERROR_NOT_FOUND, unbegun);
    journal_fixture_open(fixture);
}

static void an_empty_file_is_no_journal_yet(void **state)
{
    struct journal_fixture *fixture = *state;
    write_bytes(fixture->path, "", 0);
    reader_refuses(fixture, ERROR_NOT_FOUND, unbegun);
}

static void without_shared_memory_the_file_is_refused(void **state)
{
    struct journal_fixture *fixture = *state;
    fixture->options.vfs = VFS_FAULT_NAME;
    vfs_fault_arm(VFS_FAULT_SHM, 1, true, SQLITE_IOERR_SHMMAP);
    struct error *err = journal_fixture_open_failing(fixture);
    error_free(err);
}

static bool take_entry(void *context, const struct journal_entry *entry)
{
    (void)entry;
    (*(int *)context)++;
    return true;
}

static void an_entry_that_cannot_be_read_is_named(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_open(fixture);
    journal_fixture_stop(fixture);
    journal_fixture_sql(fixture->path,
                        "DROP TRIGGER entry_no_update; UPDATE entry SET hash = x'00' WHERE seq = 1");
    CLEANUP_JOURNAL_READER struct journal_reader *reader = NULL;
    struct error *err = NULL;
    int count = 0;
    if (journal_reader_open(fixture->path, &reader, &err) == 0)
        assert_int_equal(journal_read_entries(reader, &(struct journal_entry_filter){.limit = 10}, take_entry,
                                              &count, &err),
                         -ERROR_CORRUPT);
    if (!strstr(error_text(err), "entry 1 cannot be read: it is damaged, or a newer neoset wrote it"))
        fail_msg("%s", error_text(err));
    error_free(err);
}

/* --- copies ----------------------------------------------------------------------------------- */

static void copy_file(const char *from, const char *to)
{
    CLEANUP_FREE char *command = xasprintf("cp '%s' '%s'", from, to);
    assert_int_equal(system(command), 0);
}

static void a_plain_copy_of_a_living_file_is_noticed(void **state)
{
    struct journal_fixture *fixture = *state;
    CLEANUP_FREE char *folder = xasprintf("%s/copy", fixture->folder);
    CLEANUP_FREE char *copy = xasprintf("%s/copy.db", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    journal_fixture_open(fixture);
    journal_fixture_stop(fixture);
    journal_fixture_open(fixture);
    journal_fixture_crash(fixture); /* its start entry is in the wal */
    copy_file(fixture->path, copy);
    /* It ends cleanly, with the run before: the copy does not show that there was another. */
    CLEANUP_JOURNAL_READER struct journal_reader *short_of = NULL;
    assert_int_equal(journal_reader_open(copy, &short_of, NULL), 0);
    assert_non_null(journal_reader_meta(short_of)->notice);
    assert_non_null(strstr(journal_reader_meta(short_of)->notice, "plain copy"));
    assert_false(journal_reader_meta(short_of)->lives);
    /* At its own place, with its -wal, nothing is missing. */
    CLEANUP_JOURNAL_READER struct journal_reader *in_place = NULL;
    assert_int_equal(journal_reader_open(fixture->path, &in_place, NULL), 0);
    assert_null(journal_reader_meta(in_place)->notice);
    /* Now in the middle of a run. */
    journal_fixture_sql(fixture->path, "PRAGMA wal_checkpoint(TRUNCATE)");
    CLEANUP_FREE char *second = xasprintf("%s/second.db", folder);
    copy_file(fixture->path, second);
    CLEANUP_JOURNAL_READER struct journal_reader *torn = NULL;
    assert_int_equal(journal_reader_open(second, &torn, NULL), 0);
    assert_non_null(journal_reader_meta(torn)->notice);
    assert_non_null(strstr(journal_reader_meta(torn)->notice, "plain copy"));
    /* At its own place too, when the run did not end and its -wal holds nothing. */
    CLEANUP_JOURNAL_READER struct journal_reader *unended = NULL;
    assert_int_equal(journal_reader_open(fixture->path, &unended, NULL), 0);
    assert_non_null(strstr(journal_reader_meta(unended)->notice, "newest rows may be missing"));
}

/* Of a first run everything is in the -wal: without it there is not even a mark of ours. */
static void a_plain_copy_of_a_first_run_is_told_from_another_applications_file(void **state)
{
    struct journal_fixture *fixture = *state;
    CLEANUP_FREE char *copy = xasprintf("%s/copy.db", fixture->folder);
    journal_fixture_open(fixture);
    copy_file(fixture->path, copy);
    struct journal_reader *reader = NULL;
    struct error *err = NULL;
    assert_int_equal(journal_reader_open(copy, &reader, &err), -ERROR_UNSUPPORTED);
    if (!strstr(error_text(err), "a copy without its -wal"))
        fail_msg("%s", error_text(err));
    error_free(err);
}

static void a_backup_is_whole(void **state)
{
    struct journal_fixture *fixture = *state;
    CLEANUP_FREE char *copy = xasprintf("%s/backup.db", fixture->folder);
    journal_fixture_open(fixture);
    CLEANUP_JOURNAL_READER struct journal_reader *reader = NULL;
    CLEANUP_JOURNAL_READER struct journal_reader *backup = NULL;
    assert_int_equal(journal_reader_open(fixture->path, &reader, NULL), 0);
    assert_null(journal_reader_meta(reader)->notice);
    assert_int_equal(journal_backup(reader, copy, NULL, NULL, NULL), 0);
    assert_int_equal(journal_reader_open(copy, &backup, NULL), 0);
    assert_null(journal_reader_meta(backup)->notice);
}

static void the_library_says_whether_it_has_the_wal_reset_bug(void **state)
{
    (void)state;
    assert_true(library_is_affected(3040001));
    assert_true(library_is_affected(3051002));
    assert_true(library_is_affected(3044005));
    assert_true(library_is_affected(3050006));
    assert_false(library_is_affected(3044006));
    assert_false(library_is_affected(3050007));
    assert_false(library_is_affected(3051003));
    assert_false(library_is_affected(3053000));
    assert_false(library_is_affected(3006023));
    char text[JOURNAL_LIBRARY_TEXT_SIZE];
    journal_library_text(text);
    assert_non_null(strstr(text, sqlite3_libversion()));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_directory_is_refused),
        TEST(a_missing_folder_is_named),
        TEST(its_own_folder_is_made_by_the_writer_only),
        TEST(a_missing_file_is_made_by_the_writer_only),
        TEST(no_name_is_refused),
        TEST(a_file_that_is_no_database_is_refused_and_left_as_it_is),
        TEST(another_applications_database_is_refused_and_left_as_it_is),
        TEST(a_newer_file_is_refused_by_the_writer_and_read_while_it_is_compatible),
        TEST(a_file_cut_short_is_refused),
        TEST(a_file_cut_to_nothing_beside_its_wal_is_refused),
        TEST(an_empty_file_becomes_a_journal),
        TEST(a_changed_last_row_is_found_at_start),
        TEST(a_symbolic_link_is_the_file_that_it_leads_to),
        TEST(a_laxer_mode_is_made_0600),
        TEST(several_that_make_one_journal_at_once_all_find_it),
        TEST(network_file_systems_are_known_by_their_number),
        TEST(without_permission_the_file_is_named),
        TEST(an_unreadable_wal_is_said),
        TEST(a_read_only_folder_is_read_with_its_neighbours_and_explained_without),
        TEST(a_second_controller_is_refused_and_told_who_holds_it),
        TEST(the_lock_holds_against_another_process_and_dies_with_it),
        TEST(who_has_the_file_for_a_moment_is_waited_for),
        TEST(a_child_process_does_not_inherit_the_lock),
        TEST(no_space_at_start_gives_up_the_ballast_and_says_so),
        TEST(without_shared_memory_on_a_full_disk_the_writer_says_so),
        TEST(without_shared_memory_on_a_full_disk_the_reader_says_so),
        TEST(a_file_system_that_is_really_full_is_survived),
        TEST(a_first_opening_without_room_is_no_journal_yet_and_is_gone_on_with),
        TEST(a_mark_of_ours_alone_is_no_journal_yet),
        TEST(an_empty_file_is_no_journal_yet),
        TEST(without_shared_memory_the_file_is_refused),
        TEST(an_entry_that_cannot_be_read_is_named),
        TEST(a_plain_copy_of_a_living_file_is_noticed),
        TEST(a_plain_copy_of_a_first_run_is_told_from_another_applications_file),
        TEST(a_backup_is_whole),
        TEST(the_library_says_whether_it_has_the_wal_reset_bug),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
