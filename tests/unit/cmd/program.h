/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the real programs, with pipes or on a terminal of their own, and catches what they say. */
#pragma once

#include "base/buf.h"

#include <arpa/inet.h>
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
    unsigned short rows;        /* of the terminal; 0: 24 */
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

/* text with every ' as "; the caller's. */
static inline char *program_quoted(const char *text)
{
    char *quoted = xstrdup(text);
    for (char *at = quoted; (at = strchr(at, '\'')); at++)
        *at = '"';
    return quoted;
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
        struct winsize size = {.ws_row = run->rows > 0 ? run->rows : 24, .ws_col = run->columns};
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

/* The port behind the last colon of the line in which kubesim says where it listens; 0: it said none. Closes
 * fd. */
static inline uint16_t program_read_port(int fd)
{
    char line[256] = "";
    ssize_t n = read(fd, line, sizeof line - 1);
    close(fd);
    const char *colon = n > 0 ? strrchr(line, ':') : NULL;
    return colon ? (uint16_t)atoi(colon + 1) : 0;
}

/* One request of somebody else's to the kubesim on this port; the status, 0: no answer. ret_answer: the
 * body's text, the caller's; NULL: not wanted. */
static inline int program_ask(uint16_t port, const char *method, const char *path, const char *type,
                              const char *body, char **ret_answer)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ENSURE(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    CLEANUP_FREE char *text =
        xasprintf("%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer "
                  "user:other\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n%s",
                  method, path, type, strlen(body), body);
    ENSURE(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    struct buf answer = BUF_INIT(PROGRAM_OUTPUT_MAX);
    while (program_take(fd, &answer))
        ;
    close(fd);
    static const char version[] = "HTTP/1.1 ";
    int status = answer.length > sizeof version ? atoi(buf_text(&answer) + sizeof version - 1) : 0;
    const char *begin = strstr(buf_text(&answer), "\r\n\r\n");
    if (ret_answer)
        *ret_answer = xstrdup(begin ? begin + 4 : "");
    buf_done(&answer);
    return status;
}
