/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the real programs, with pipes or on a terminal of their own, and catches what they say. */
#pragma once

#include "base/buf.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROGRAM_OUTPUT_MAX = 16 * 1024 * 1024, PROGRAM_ARGUMENTS_MAX = 64, PROGRAM_TIMEOUT_MS = 60000 };

struct program_run {
    const char *environment[8]; /* "NAME=value", "NAME" removes; ended by NULL */
    unsigned short columns;     /* of the terminal; 0: stdout and stderr are pipes */
    int exit_code;              /* -1: ended by a signal */
    char *output;
    char *errors; /* on a terminal: "" (both are one) */
};

static inline void program_run_done(struct program_run *run)
{
    free(run->output);
    free(run->errors);
    run->output = run->errors = NULL;
}

static inline char *program_path(const char *name)
{
    const char *build = getenv("NEOSET_BUILD");
    return xasprintf("%s/%s", build ? build : "build/gcc", name);
}

static inline void program_child(const struct program_run *run, char *path, char *line)
{
    char *argv[PROGRAM_ARGUMENTS_MAX] = {path};
    int argc = 1;
    for (char *word = strtok(line, " "); word && argc < PROGRAM_ARGUMENTS_MAX - 1; word = strtok(NULL, " "))
        argv[argc++] = word;
    for (size_t i = 0; run->environment[i]; i++) {
        if (strchr(run->environment[i], '='))
            putenv((char *)run->environment[i]);
        else
            unsetenv(run->environment[i]);
    }
    signal(SIGPIPE, SIG_DFL);
    execv(path, argv);
    _exit(127);
}

static inline bool program_take(int fd, struct buf *text)
{
    char piece[65536];
    ssize_t n = read(fd, piece, sizeof piece);
    if (n <= 0)
        return false;
    buf_add(text, piece, (size_t)n);
    return true;
}

/* line: the arguments, separated by single spaces. */
static inline void program_run(struct program_run *run, const char *name, const char *line)
{
    CLEANUP_FREE char *path = program_path(name);
    CLEANUP_FREE char *words = xstrdup(line);
    int fds[2] = {-1, -1};
    pid_t pid;
    if (run->columns > 0) {
        struct winsize size = {.ws_row = 24, .ws_col = run->columns};
        pid = forkpty(&fds[0], NULL, NULL, &size);
        if (pid == 0)
            program_child(run, path, words);
    } else {
        int output[2];
        int errors[2];
        ENSURE(pipe2(output, O_CLOEXEC) == 0 && pipe2(errors, O_CLOEXEC) == 0);
        pid = fork();
        if (pid == 0) {
            dup2(output[1], STDOUT_FILENO);
            dup2(errors[1], STDERR_FILENO);
            program_child(run, path, words);
        }
        close(output[1]);
        close(errors[1]);
        fds[0] = output[0];
        fds[1] = errors[0];
    }
    ENSURE(pid > 0);
    struct buf texts[2] = {BUF_INIT(PROGRAM_OUTPUT_MAX), BUF_INIT(PROGRAM_OUTPUT_MAX)};
    while (fds[0] >= 0 || fds[1] >= 0) {
        struct pollfd ready[2] = {{.fd = fds[0], .events = POLLIN}, {.fd = fds[1], .events = POLLIN}};
        if (poll(ready, 2, PROGRAM_TIMEOUT_MS) <= 0)
            kill(pid, SIGKILL);
        for (int i = 0; i < 2; i++) {
            if (fds[i] >= 0 && ready[i].revents != 0 && !program_take(fds[i], &texts[i])) {
                close(fds[i]);
                fds[i] = -1;
            }
        }
    }
    int status = 0;
    waitpid(pid, &status, 0);
    run->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    program_run_done(run);
    run->output = buf_take(&texts[0]);
    run->errors = buf_take(&texts[1]);
}
