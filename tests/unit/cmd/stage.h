/* SPDX-License-Identifier: Apache-2.0
 *
 * Where neosetctl is run: a kubesim as a process of its own, a folder for all that is written, and the real
 * programs one after another, with what they said last. */
#pragma once

#include "../audit/history.h"
#include "program.h"

#include "base/json.h"

#include <sys/prctl.h>
#include <sys/stat.h>

#define JSON_TYPE "application/json"
#define MERGE_TYPE "application/merge-patch+json"
#define REVISIONS "/apis/apps/v1/namespaces/default/controllerrevisions"

struct stage {
    char *folder;
    char *kubeconfig;
    char *state_variable; /* XDG_STATE_HOME=... */
    char *journal;        /* neosetctl's own */
    pid_t server;
    pid_t controller;
    uint16_t port;
    struct program_run run;
};

/* --- processes ------------------------------------------------------------------------------------------ */

/* Starts a program that goes on; argv[0] is its name among those that were built. */
static inline pid_t stage_spawn(const char *const *argv, int output, int errors)
{
    CLEANUP_FREE char *path = program_path(argv[0]);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(output, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    execv(path, (char *const *)argv);
    _exit(127);
}

static inline void stage_end(pid_t *pid)
{
    if (*pid <= 0)
        return;
    kill(*pid, SIGKILL);
    waitpid(*pid, NULL, 0);
    *pid = 0;
}

/* A kubesim; options are its own, ended by NULL. */
static inline void stage_serve(struct stage *stage, const char *const *options)
{
    const char *argv[16] = {"kubesim", "--kubeconfig-out", stage->kubeconfig};
    for (size_t i = 0; options[i]; i++) {
        assert_true(i + 4 < ARRAY_SIZE(argv));
        argv[i + 3] = options[i];
    }
    int output[2];
    assert_int_equal(pipe2(output, O_CLOEXEC), 0);
    stage->server = stage_spawn(argv, output[1], STDERR_FILENO);
    close(output[1]);
    stage->port = program_read_port(output[0]);
    if (stage->port == 0)
        fail_msg("kubesim did not say where it listens");
}

/* --- the server ----------------------------------------------------------------------------------------- */

/* One request of somebody else's; the status. ret_answer: the body's text, the caller's; NULL: not wanted. */
static inline int stage_ask(const struct stage *stage, const char *method, const char *path, const char *type,
                            const char *body, char **ret_answer)
{
    int status = program_ask(stage->port, method, path, type, body, ret_answer);
    assert_true(status > 0);
    return status;
}

/* The object or list at path, or NULL; the caller's. */
static inline cJSON *stage_get(const struct stage *stage, const char *path)
{
    CLEANUP_FREE char *text = NULL;
    if (stage_ask(stage, "GET", path, JSON_TYPE, "", &text) != 200)
        return NULL;
    cJSON *tree = NULL;
    assert_int_equal(json_parse(text, strlen(text), &tree, NULL), 0);
    return tree;
}

/* body with ' for "; a PATCH is merged. It must be taken. */
static inline void stage_write(const struct stage *stage, const char *method, const char *path,
                               const char *body)
{
    CLEANUP_FREE char *text = program_quoted(body);
    CLEANUP_FREE char *answer = NULL;
    const char *type = strcmp(method, "PATCH") == 0 ? MERGE_TYPE : JSON_TYPE;
    int status = stage_ask(stage, method, path, type, text, &answer);
    if (status != 200 && status != 201)
        fail_msg("%s %s: %d %s", method, path, status, answer);
}

/* --- life ----------------------------------------------------------------------------------------------- */

/* Nothing is running on it yet. */
static inline int stage_setup(void **state)
{
    struct stage *stage = xcalloc(1, sizeof *stage);
    stage->folder = xstrdup("/tmp/neoset-ctl-XXXXXX");
    assert_non_null(mkdtemp(stage->folder));
    stage->kubeconfig = xasprintf("%s/kubeconfig", stage->folder);
    stage->state_variable = xasprintf("XDG_STATE_HOME=%s", stage->folder);
    stage->journal = xasprintf("%s/neoset/neosetctl.db", stage->folder);
    stage->run.environment[0] = stage->state_variable;
    stage->run.environment[1] = "NEOSET_JOURNAL";
    stage->run.environment[2] = "KUBECONFIG";
    *state = stage;
    return 0;
}

static inline int stage_teardown(void **state)
{
    struct stage *stage = *state;
    stage_end(&stage->controller);
    stage_end(&stage->server);
    CLEANUP_FREE char *command = xasprintf("rm -rf '%s'", stage->folder);
    assert_int_equal(system(command), 0);
    program_run_done(&stage->run);
    free(stage->folder);
    free(stage->kubeconfig);
    free(stage->state_variable);
    free(stage->journal);
    free(stage);
    return 0;
}

/* --- what is said --------------------------------------------------------------------------------------- */

/* The program against this server, as a user would type it; how it ended. */
static inline const struct program_run *stage_run(struct stage *stage, const char *program, const char *words)
{
    CLEANUP_FREE char *line = xasprintf("%s --kubeconfig %s", words, stage->kubeconfig);
    program_run(&stage->run, program, line);
    return &stage->run;
}

/* neosetctl says output and errors among what else it says; output NULL: whatever, errors NULL: nothing. */
static inline void expect_run(struct stage *stage, const char *words, int exit_code, const char *output,
                              const char *errors)
{
    const struct program_run *ended = stage_run(stage, "neosetctl", words);
    if (ended->exit_code != exit_code || (output && !strstr(ended->output, output)) ||
        (errors ? !strstr(ended->errors, errors) : ended->errors[0] != '\0'))
        fail_msg("%s: exit %d, out: %s err: %s", words, ended->exit_code, ended->output, ended->errors);
}

/* What was said last has these words, too. */
static inline void expect_said(const struct stage *stage, const char *words)
{
    if (!strstr(stage->run.output, words))
        fail_msg("no \"%s\" in: %s", words, stage->run.output);
}

/* "../gcc-crash/neosetctl"; NULL when it was not built. The caller's. */
static inline char *crash_program(void)
{
    CLEANUP_FREE char *own = program_path("");
    own[strlen(own) - 1] = '\0';
    const char *base = strrchr(own, '/');
    char *name = xasprintf("../%s-crash/neosetctl", base ? base + 1 : own);
    CLEANUP_FREE char *path = program_path(name);
    if (access(path, X_OK) == 0)
        return name;
    free(name);
    return NULL;
}
