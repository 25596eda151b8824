/* SPDX-License-Identifier: Apache-2.0 */
#include "live_program.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOG_MAX = 16 << 20, STOP_TIMEOUT_MS = 20000 };

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static char *path_of(const char *name)
{
    static const char *const ours[] = {"neoset-controller", "neoset-audit", "neosetctl", "kubesim"};
    const char *build = getenv("NEOSET_BUILD");
    for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
        if (strcmp(name, ours[i]) == 0)
            return xasprintf("%s/%s", build ? build : "build/gcc", name);
    return xstrdup(name);
}

void live_start(struct live_program *program, const char *const *argv)
{
    *program = (struct live_program){.log = BUF_INIT(LOG_MAX), .log_fd = -1};
    CLEANUP_FREE char *path = path_of(argv[0]);
    int fds[2];
    ENSURE(pipe2(fds, O_CLOEXEC) == 0);
    program->pid = fork();
    ENSURE(program->pid >= 0);
    if (program->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
        dup2(fds[1], STDOUT_FILENO);
        dup2(fds[1], STDERR_FILENO);
        signal(SIGPIPE, SIG_DFL);
        execvp(path, (char *const *)argv);
        _exit(127);
    }
    close(fds[1]);
    program->log_fd = fds[0];
}

/* Reads what has come, waiting at most so long; false: nothing comes any more. */
static bool take(struct live_program *program, int64_t wait_ms)
{
    if (program->log_fd < 0)
        return false;
    struct pollfd ready = {.fd = program->log_fd, .events = POLLIN};
    if (poll(&ready, 1, (int)MAX(wait_ms, 0)) <= 0)
        return true;
    char bytes[65536];
    ssize_t got = read(program->log_fd, bytes, sizeof(bytes));
    if (got > 0)
        return buf_add(&program->log, bytes, (size_t)got) == 0;
    close(program->log_fd);
    program->log_fd = -1;
    return false;
}

static void reap(struct live_program *program, int options)
{
    int status = 0;
    if (program->pid == 0 || waitpid(program->pid, &status, options) != program->pid)
        return;
    program->pid = 0;
    program->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool live_says(struct live_program *program, const char *words, int timeout_ms)
{
    int64_t end_ms = now_ms() + timeout_ms;
    while (!strstr(live_log(program), words) && now_ms() < end_ms)
        if (!take(program, end_ms - now_ms()))
            break;
    return strstr(live_log(program), words) != NULL;
}

bool live_goes_on(struct live_program *program, int duration_ms)
{
    int64_t end_ms = now_ms() + duration_ms;
    while (now_ms() < end_ms)
        if (!take(program, end_ms - now_ms()))
            break;
    reap(program, WNOHANG);
    return program->pid != 0 && program->log_fd >= 0;
}

bool live_ends(struct live_program *program, int timeout_ms)
{
    int64_t end_ms = now_ms() + timeout_ms;
    while (take(program, end_ms - now_ms()))
        if (now_ms() >= end_ms)
            return false;
    reap(program, 0);
    return true;
}

const char *live_log(struct live_program *program)
{
    return buf_text(&program->log);
}

size_t live_count(struct live_program *program, const char *words)
{
    size_t count = 0;
    const char *at = live_log(program);
    while ((at = strstr(at, words))) {
        count++;
        at += strcspn(at, "\n");
    }
    return count;
}

long live_peak_kib(const struct live_program *program)
{
    CLEANUP_FREE char *path = xasprintf("/proc/%d/status", (int)program->pid);
    FILE *file = fopen(path, "re");
    char line[256];
    long kib = -1;
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    if (file)
        fclose(file);
    return kib;
}

int live_stop(struct live_program *program)
{
    if (program->pid > 0)
        kill(program->pid, SIGTERM);
    if (!live_ends(program, STOP_TIMEOUT_MS)) {
        kill(program->pid, SIGKILL);
        reap(program, 0);
    }
    if (program->log_fd >= 0)
        close(program->log_fd);
    buf_done(&program->log);
    return program->exit_code;
}
