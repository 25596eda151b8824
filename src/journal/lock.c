/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* SQLite's WAL-index locks: the byte of the writer (os_unix.c, UNIX_SHM_BASE + WAL_WRITE_LOCK). */
enum { SHM_WRITE_LOCK_BYTE = 120, NAME_MAX_BYTES = 64 };

char *lock_path_make(const char *journal_path)
{
    size_t length = strlen(journal_path);
    if (str_ends_with(journal_path, ".db"))
        length -= strlen(".db");
    return xasprintf("%.*s.lock", (int)length, journal_path);
}

static struct flock whole_file(void)
{
    /* l_pid must be 0 for OFD locks. */
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
}

/* "1234 on mysql-operator-0", or NULL: written by the holder, so made harmless for a message. The caller's.
 */
static char *read_holder(int fd)
{
    char text[256];
    ssize_t length = pread(fd, text, sizeof(text) - 1, 0);
    if (length <= 0)
        return NULL;
    text[length] = '\0';
    text[strcspn(text, "\n")] = '\0';
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || (unsigned char)*at >= 127)
            *at = '?';
    char *space = strchr(text, ' ');
    if (!space || !space[1])
        return xstrndup(text, (size_t)(space ? space - text : length));
    *space = '\0';
    return xasprintf("%s on %s", text, space + 1);
}

static int refuse(int fd, const char *journal_path, struct error **err)
{
    CLEANUP_FREE char *holder = read_holder(fd);
    return error_set(
        err, ERROR_LOCKED,
        "journal %s is in use by process %s: one journal has one writer: wait for that one or stop it, or "
        "choose another journal file",
        journal_path, holder ? holder : "(unknown)");
}

int lock_take(const char *lock_path, const char *journal_path, const char *identity, int *ret_fd,
              struct error **err)
{
    CLEANUP_CLOSE int fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_set_errno(err, errno, "journal: lock file %s", lock_path);
    struct flock lock = whole_file();
    if (fcntl(fd, F_OFD_SETLK, &lock) != 0) {
        if (errno == EAGAIN || errno == EACCES)
            return refuse(fd, journal_path, err);
        return error_set_errno(err, errno, "journal: lock file %s", lock_path);
    }
    /* Only words for a message: a full disk must not keep us from starting. */
    CLEANUP_FREE char *holder = xasprintf("%ld %s\n", (long)getpid(), identity ? identity : "");
    if (ftruncate(fd, 0) == 0 && pwrite(fd, holder, strlen(holder), 0) < 0)
        (void)!ftruncate(fd, 0);
    *ret_fd = fd;
    fd = -1;
    return 0;
}

bool lock_is_held(const char *lock_path)
{
    CLEANUP_CLOSE int fd = open(lock_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    struct flock lock = whole_file();
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* --- who writes ----------------------------------------------------------------------------------------- */

/* A line of /proc/locks: "1: POSIX  ADVISORY  WRITE 1234 08:01:5678 120 120". 0: it is not the lock that is
 * looked for. */
static long pid_of_line(char *line, unsigned long long inode)
{
    enum { NUMBER, KIND, ADVICE, MODE, PID, FILE_OF_IT, FROM, TO, WORDS };
    char *words[WORDS] = {0}, *rest = NULL;
    size_t count = 0;
    for (char *word = strtok_r(line, " \n", &rest); word && count < WORDS;
         word = strtok_r(NULL, " \n", &rest))
        words[count++] = word;
    const char *node = count == WORDS ? strrchr(words[FILE_OF_IT], ':') : NULL;
    if (!node || strtoull(node + 1, NULL, 10) != inode || strcmp(words[MODE], "WRITE") != 0)
        return 0;
    unsigned long long to = str_equal(words[TO], "EOF") ? ULLONG_MAX : strtoull(words[TO], NULL, 10);
    bool is_it = strtoull(words[FROM], NULL, 10) <= SHM_WRITE_LOCK_BYTE && to >= SHM_WRITE_LOCK_BYTE;
    long pid = strtol(words[PID], NULL, 10);
    return is_it && pid > 0 ? pid : 0;
}

static long find_writer(const char *shm_path)
{
    struct stat status;
    FILE *file = stat(shm_path, &status) == 0 ? fopen("/proc/locks", "re") : NULL;
    if (!file)
        return 0;
    char line[256];
    long pid = 0;
    while (!pid && fgets(line, sizeof(line), file))
        pid = pid_of_line(line, (unsigned long long)status.st_ino);
    fclose(file);
    return pid;
}

/* What the process calls itself, made harmless; "" when that cannot be read. */
static void read_name(long pid, char name[static NAME_MAX_BYTES])
{
    CLEANUP_FREE char *path = xasprintf("/proc/%ld/comm", pid);
    FILE *file = fopen(path, "re");
    name[0] = '\0';
    if (!file)
        return;
    if (!fgets(name, NAME_MAX_BYTES, file))
        name[0] = '\0';
    fclose(file);
    name[strcspn(name, "\n")] = '\0';
    for (char *at = name; *at; at++)
        if ((unsigned char)*at < ' ' || (unsigned char)*at >= 127)
            *at = '?';
}

char *lock_writer_text(const char *shm_path)
{
    long pid = find_writer(shm_path);
    if (!pid || pid == (long)getpid())
        return xstrdup("another process");
    char name[NAME_MAX_BYTES];
    read_name(pid, name);
    return *name ? xasprintf("process %ld (%s)", pid, name) : xasprintf("process %ld", pid);
}
