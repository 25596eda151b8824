/* SPDX-License-Identifier: Apache-2.0
 *
 * neoset-audit itself: exit codes, what goes where, colours on a terminal only, quiet ends. */
#include "../audit/history.h"
#include "program.h"

struct stage {
    struct history history;
    struct program_run run;
    char *line;
};

static int setup(void **state)
{
    struct stage *stage = xcalloc(1, sizeof *stage);
    history_setup(&stage->history);
    stage->run.environment[0] = "NEOSET_JOURNAL";
    stage->run.environment[1] = "LC_ALL=C.UTF-8";
    *state = stage;
    return 0;
}

static int teardown(void **state)
{
    struct stage *stage = *state;
    program_run_done(&stage->run);
    free(stage->line);
    history_teardown(&stage->history);
    free(stage);
    return 0;
}

/* JOURNAL in words stands for the fixture's file, FOLDER for its folder. */
static struct program_run *run(struct stage *stage, const char *words)
{
    CLEANUP_BUF struct buf line = BUF_INIT(65536);
    for (const char *at = words; *at;) {
        if (str_starts_with(at, "JOURNAL")) {
            buf_add_text(&line, stage->history.fixture.path);
            at += strlen("JOURNAL");
        } else if (str_starts_with(at, "FOLDER")) {
            buf_add_text(&line, stage->history.fixture.folder);
            at += strlen("FOLDER");
        } else {
            buf_add_char(&line, *at++);
        }
    }
    program_run(&stage->run, "neoset-audit", buf_text(&line));
    return &stage->run;
}

static void exit_codes_are_those_that_scripts_rely_on(void **state)
{
    struct stage *stage = *state;
    static const struct {
        const char *words;
        int exit_code;
        const char *says; /* on stderr; NULL: nothing */
    } table[] = {
        {"list --journal JOURNAL", 0, NULL},
        {"show 2 --journal JOURNAL", 0, NULL},
        {"timeline 2 --journal JOURNAL", 0, NULL},
        {"export --journal JOURNAL", 0, NULL},
        {"export steps -o jsonl --journal JOURNAL", 0, NULL},
        {"runs --journal JOURNAL", 0, NULL},
        {"verify --quick --journal JOURNAL", 0, NULL},
        {"verify --journal JOURNAL", 0, NULL},
        {"tail --journal JOURNAL", 0, NULL},
        {"in-doubt --journal JOURNAL", 0, NULL},
        {"backup FOLDER/copy.db --journal JOURNAL", 0, "holds a copy of"},
        {"list --journal FOLDER/copy.db", 0, NULL},
        {"list --kind resize --journal JOURNAL", 0, "no operations"},
        {"", 0, NULL},
        {"--help", 0, NULL},
        {"--version", 0, NULL},
        {"backup FOLDER/copy.db --journal JOURNAL", 1, "something already"},
        {"backup FOLDER/none/copy.db --journal JOURNAL", 1, "none/copy.db"},
        {"list --journal FOLDER/none.db", 1, "none.db"},
        {"list --journal FOLDER", 1, "FOLDER"},
        {"list --journal /etc/passwd", 1, "not a journal"},
        {"tail --cursor-file FOLDER/none/cursor --journal JOURNAL", 1, "cannot write in the folder "},
        {"tail --cursor-file JOURNAL/cursor --journal JOURNAL", 1, "the cursor file"},
        {"list --nonsense --journal JOURNAL", 2, "--nonsense"},
        {"lst --journal JOURNAL", 2, "did you mean list?"},
        {"list --since whenever --journal JOURNAL", 2, "--since"},
        {"list --since today --until yesterday --journal JOURNAL", 2, "not before"},
        {"list --for mysql --journal JOURNAL", 2, "KIND/NAME"},
        {"list -A -n prod --journal JOURNAL", 2, "contradict"},
        {"list --namespace= --journal JOURNAL", 2, "give a name, or --all-namespaces"},
        {"list --kind rollouts --journal JOURNAL", 2,
         "no operation is of kind \"rollouts\": there are rollout, "},
        {"list --kind update-in-place --journal JOURNAL", 2, "undo, settle"},
        {"list --outcome done --journal JOURNAL", 2,
         "no operation has the outcome \"done\": there are completed, failed, superseded, cancelled, open"},
        {"timeline --outcome done --journal JOURNAL", 2, "superseded"},
        {"export operations --kind x --journal JOURNAL", 2, "no operation is of kind"},
        {"export steps --kind rollout --journal JOURNAL", 2,
         "no step is of kind \"rollout\": there are create-pod, "},
        {"export steps --outcome completed --journal JOURNAL", 2, "overtaken"},
        {"in-doubt --kind deletes --journal JOURNAL", 2, "orphan-delete"},
        {"in-doubt --kind delete --journal JOURNAL", 0, "no step is in doubt"},
        {"show --journal JOURNAL", 2, "needs OP"},
        {"show two --journal JOURNAL", 2, "two"},
        {"export pods --journal JOURNAL", 2, "pods"},
        {"in-doubt --older-than soon --journal JOURNAL", 2, "--older-than"},
        {"verify --head nonsense --journal JOURNAL", 2, "--head"},
        {"show 999 --journal JOURNAL", 3, "no operation 999"},
        {"timeline --for pod/nobody --journal JOURNAL", 3, "Pod/nobody"},
        {"verify --quick --head 00000000000000000000000000000000:1:"
         "0000000000000000000000000000000000000000000000000000000000000000 --journal JOURNAL",
         4, NULL},
        {"verify --quick --head {\"journal_id\":\"00000000000000000000000000000000\",\"seq\":1,\"hash\":"
         "\"0000000000000000000000000000000000000000000000000000000000000000\"} --journal JOURNAL",
         4, NULL},
        {"verify --head {\"seq\":1} --journal JOURNAL", 2, "--head"},
        {"in-doubt --check --journal JOURNAL", 5, NULL},
        {"in-doubt --check --older-than 1s --journal JOURNAL", 5, NULL},
        {"in-doubt --check --for pod/nobody --journal JOURNAL", 0, "no step is in doubt"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        const struct program_run *ended = run(stage, table[i].words);
        if (ended->exit_code != table[i].exit_code)
            fail_msg("%s: exit %d, not %d; says: %s", table[i].words, ended->exit_code, table[i].exit_code,
                     ended->errors);
        bool is_quiet = ended->errors[0] == '\0';
        const char *says = table[i].says;
        if (says && str_equal(says, "FOLDER"))
            says = stage->history.fixture.folder;
        if (says ? !strstr(ended->errors, says) : !is_quiet)
            fail_msg("%s: says: %s", table[i].words, ended->errors);
        if (table[i].exit_code != 0 && table[i].exit_code < 4 && ended->output[0] != '\0')
            fail_msg("%s: data beside the error: %s", table[i].words, ended->output);
    }
}

/* A program that is newer than this one wrote them. */
static void a_kind_that_a_journal_has_is_no_typing_error(void **state)
{
    struct stage *stage = *state;
    struct journal_fixture *fixture = &stage->history.fixture;
    journal_fixture_open(fixture);
    int64_t operation = history_begin(&stage->history, "hibernate", "mysql", "{}");
    history_intent(&stage->history, operation, "freeze", "mysql-9", "for the night");
    journal_fixture_stop(fixture);
    static const char *const lines[] = {"list --kind hibernate --journal JOURNAL",
                                        "export steps --kind freeze --journal JOURNAL",
                                        "in-doubt --kind freeze --journal JOURNAL"};
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        const struct program_run *ended = run(stage, lines[i]);
        assert_int_equal(ended->exit_code, 0);
        assert_non_null(strstr(ended->output, "mysql"));
    }
    assert_int_equal(run(stage, "export steps --kind freezes --journal JOURNAL")->exit_code, 2);
}

static void a_fork_ends_with_four(void **state)
{
    struct stage *stage = *state;
    struct journal_fixture *fixture = &stage->history.fixture;
    run(stage, "backup FOLDER/fork.db --journal JOURNAL");
    journal_fixture_open(fixture);
    journal_fixture_note(fixture, "here");
    journal_fixture_stop(fixture);
    CLEANUP_FREE char *copy = xasprintf("%s/fork.db", fixture->folder);
    struct journal_options options = fixture->options;
    options.path = copy;
    assert_int_equal(journal_open(fixture->env, &options, &fixture->journal, NULL), 0);
    journal_fixture_stop(fixture);
    const struct program_run *ended = run(stage, "list --journal JOURNAL --journal FOLDER/fork.db");
    assert_int_equal(ended->exit_code, 4);
    assert_non_null(strstr(ended->errors, "differ from entry 20 on"));
}

static void the_journal_may_be_named_by_the_environment(void **state)
{
    struct stage *stage = *state;
    CLEANUP_FREE char *variable = xasprintf("NEOSET_JOURNAL=%s", stage->history.fixture.path);
    stage->run.environment[0] = variable;
    assert_int_equal(run(stage, "list -o name")->exit_code, 0);
    assert_string_equal(stage->run.output, "18\n14\n2\n");
    stage->run.environment[0] = "NEOSET_JOURNAL";
    stage->run.environment[2] = "XDG_STATE_HOME=/nowhere";
    stage->run.environment[3] = "STATE_DIRECTORY=/nowhere";
    assert_int_equal(run(stage, "list")->exit_code, 1);
    assert_non_null(strstr(stage->run.errors, "NEOSET_JOURNAL"));
    assert_non_null(strstr(stage->run.errors, "/nowhere"));
}

static void help_without_arguments_begins_with_examples(void **state)
{
    struct stage *stage = *state;
    const char *text = run(stage, "")->output;
    assert_non_null(strstr(text, "Examples:"));
    assert_true(strstr(text, "Examples:") < strstr(text, "Usage:"));
    assert_non_null(strstr(text, "Exit codes:"));
}

static void colours_appear_on_a_terminal_only(void **state)
{
    struct stage *stage = *state;
    static const struct {
        unsigned short columns;
        const char *variable, *words;
        bool has_color;
    } table[] = {
        {120, "TERM=xterm", "list --journal JOURNAL", true},
        {120, "TERM=xterm", "timeline 2 --journal JOURNAL", true},
        {120, "TERM=xterm", "show 2 --journal JOURNAL", true},
        {120, "TERM=xterm", "list --color never --journal JOURNAL", false},
        {120, "TERM=dumb", "list --journal JOURNAL", false},
        {120, "TERM", "list --journal JOURNAL", false},
        {120, "NO_COLOR=1", "list --journal JOURNAL", false},
        {0, "TERM=xterm", "list --journal JOURNAL", false},
        {0, "TERM=xterm", "list --color always --journal JOURNAL", true},
        {120, "TERM=xterm", "list -o csv --journal JOURNAL", false},
        {120, "TERM=xterm", "export -o jsonl --journal JOURNAL", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        stage->run.columns = table[i].columns;
        bool is_no_color = str_starts_with(table[i].variable, "NO_COLOR");
        stage->run.environment[2] = is_no_color ? "TERM=xterm" : table[i].variable;
        stage->run.environment[3] = is_no_color ? table[i].variable : "NO_COLOR";
        const struct program_run *ended = run(stage, table[i].words);
        assert_int_equal(ended->exit_code, 0);
        if ((strchr(ended->output, '\x1b') != NULL) != table[i].has_color)
            fail_msg("%s with %s: %s", table[i].words, table[i].variable, ended->output);
    }
}

static void tables_fit_the_terminal_and_only_the_terminal(void **state)
{
    struct stage *stage = *state;
    stage->run.environment[2] = "TERM=dumb";
    stage->run.columns = 100;
    CLEANUP_FREE char *text = xstrdup(run(stage, "list --journal JOURNAL")->output);
    assert_non_null(strstr(text, "\xe2\x80\xa6"));
    for (char *line = strtok(text, "\r\n"); line; line = strtok(NULL, "\r\n"))
        assert_true(text_width(line) <= 100);
    stage->run.columns = 0;
    assert_null(strstr(run(stage, "list --journal JOURNAL")->output, "\xe2\x80\xa6"));
    assert_non_null(strstr(stage->run.output, "NeoSet/clickhouse"));
}

static void local_time_is_for_those_who_ask(void **state)
{
    struct stage *stage = *state;
    stage->run.environment[2] = "TZ=NST+3:30";
    assert_non_null(strstr(run(stage, "list --journal JOURNAL")->output, "2026-11-30T07:00:00.000000Z"));
    assert_non_null(
        strstr(run(stage, "list --local --journal JOURNAL")->output, "2026-11-30T03:30:00.000000-03:30"));
}

/* What the command line says, to the letter. */
static void expect_shell(const char *line, const char *wanted)
{
    FILE *pipe = popen(line, "re");
    assert_non_null(pipe);
    char output[256] = "";
    size_t length = fread(output, 1, sizeof output - 1, pipe);
    output[length] = '\0';
    pclose(pipe);
    assert_string_equal(output, wanted);
}

static void a_pipe_that_is_closed_ends_it_quietly(void **state)
{
    struct stage *stage = *state;
    CLEANUP_FREE char *program = program_path("neoset-audit");
    CLEANUP_FREE char *command =
        xasprintf("set -o pipefail; { %s export --journal %s; echo $? >&2; } 2>&1 >/dev/full | "
                  "tail -n 1; %s export --journal %s | true; echo ${PIPESTATUS[0]}",
                  program, stage->history.fixture.path, program, stage->history.fixture.path);
    CLEANUP_FREE char *shell = xasprintf("bash -c '%s'", command);
    /* A full disk is a failure, a reader who went away is none. */
    expect_shell(shell, "1\n0\n");
}

static void a_file_size_limit_and_a_full_disk_are_failures_in_words(void **state)
{
    struct stage *stage = *state;
    CLEANUP_FREE char *program = program_path("neoset-audit");
    /* Each limit ends a program by a signal, or is not noticed in the midst of a long text, unless we care.
     */
    CLEANUP_FREE char *shell = xasprintf(
        "bash -c 'ulimit -c 0; (ulimit -f 1; %s backup %s/limited.db --journal %s 2>&1 | grep -c limited.db; "
        "echo ${PIPESTATUS[0]}); ls %s | grep -c limited; %s --help 2>/dev/null >/dev/full; echo $?; "
        "%s list --help 2>/dev/null >/dev/full; echo $?'",
        program, stage->history.fixture.folder, stage->history.fixture.path, stage->history.fixture.folder,
        program, program);
    expect_shell(shell, "1\n1\n0\n1\n1\n");
}

static void a_cursor_file_is_private_and_written_whole(void **state)
{
    struct stage *stage = *state;
    assert_int_equal(run(stage, "tail -o name --cursor-file FOLDER/cursor --journal JOURNAL")->exit_code, 0);
    assert_non_null(strstr(stage->run.output, "1\n2\n3\n"));
    assert_int_equal(run(stage, "tail -o name --cursor-file FOLDER/cursor --journal JOURNAL")->exit_code, 0);
    assert_string_equal(stage->run.output, "");
    CLEANUP_FREE char *path = xasprintf("%s/cursor", stage->history.fixture.folder);
    CLEANUP_FREE char *text = history_read_file(path);
    assert_int_equal(strlen(text), 32 + 1 + 2 + 1 + 64 + 1);
    CLEANUP_FREE char *command = xasprintf("stat -c %%a %s", path);
    expect_shell(command, "600\n");
}

/* The program with stdout in a pipe; the test holds the other end and reads when it likes. */
static pid_t start(const struct stage *stage, const char *command, const char *option, int *ret_fd)
{
    CLEANUP_FREE char *path = program_path("neoset-audit");
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl(path, path, command, option, "--journal", stage->history.fixture.path, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    *ret_fd = ends[0];
    return pid;
}

static int end_of(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void tail_follows_until_it_is_interrupted(void **state)
{
    struct stage *stage = *state;
    struct journal_fixture *fixture = &stage->history.fixture;
    journal_fixture_open(fixture);
    int fd;
    pid_t pid = start(stage, "tail", "-fo=name", &fd);
    journal_fixture_note(fixture, "while it follows");
    journal_fixture_settle(fixture);
    CLEANUP_BUF struct buf text = BUF_INIT(65536);
    while (!strstr(buf_text(&text), "\n21\n"))
        assert_true(program_take(fd, &text));
    kill(pid, SIGINT);
    assert_int_equal(end_of(pid), 0);
    close(fd);
    pid = start(stage, "tail", "-fo=name", &fd);
    close(fd);
    assert_int_equal(end_of(pid), 0);
    journal_fixture_stop(fixture);
}

/* Its output stands still after the first pieces; two thousand commits of the writer go on beside it. */
static void an_export_that_nobody_reads_does_not_make_the_wal_grow(void **state)
{
    enum { NOTES_BEFORE = 4000, COMMITS = 2000, NOTES_A_COMMIT = 8 };
    struct stage *stage = *state;
    struct journal_fixture *fixture = &stage->history.fixture;
    char words[600];
    memset(words, 'x', sizeof words - 1);
    words[sizeof words - 1] = '\0';
    journal_fixture_open(fixture);
    for (int i = 0; i < NOTES_BEFORE; i++)
        journal_fixture_note(fixture, words);
    journal_fixture_settle(fixture);
    int fd;
    pid_t pid = start(stage, "export", "-o=jsonl", &fd);
    CLEANUP_BUF struct buf text = BUF_INIT(PROGRAM_OUTPUT_MAX);
    assert_true(program_take(fd, &text));
    int64_t wal_bytes_max = 0;
    for (int i = 0; i < COMMITS; i++) {
        for (int j = 0; j < NOTES_A_COMMIT; j++)
            journal_fixture_note(fixture, words);
        journal_fixture_settle(fixture);
        struct journal_metrics metrics;
        journal_metrics_get(fixture->journal, &metrics);
        wal_bytes_max = MAX(wal_bytes_max, metrics.wal_bytes);
    }
    assert_true(wal_bytes_max > 1000000);
    assert_true(wal_bytes_max < 32 * 1024 * 1024);
    while (program_take(fd, &text))
        ;
    close(fd);
    assert_int_equal(end_of(pid), 0);
    size_t lines = 0;
    for (const char *at = buf_text(&text); *at; at++)
        lines += *at == '\n';
    /* All that was there when it began. */
    assert_in_range(lines, NOTES_BEFORE, NOTES_BEFORE + 30);
    journal_fixture_stop(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(exit_codes_are_those_that_scripts_rely_on, setup, teardown),
        cmocka_unit_test_setup_teardown(a_kind_that_a_journal_has_is_no_typing_error, setup, teardown),
        cmocka_unit_test_setup_teardown(a_fork_ends_with_four, setup, teardown),
        cmocka_unit_test_setup_teardown(the_journal_may_be_named_by_the_environment, setup, teardown),
        cmocka_unit_test_setup_teardown(help_without_arguments_begins_with_examples, setup, teardown),
        cmocka_unit_test_setup_teardown(colours_appear_on_a_terminal_only, setup, teardown),
        cmocka_unit_test_setup_teardown(tables_fit_the_terminal_and_only_the_terminal, setup, teardown),
        cmocka_unit_test_setup_teardown(local_time_is_for_those_who_ask, setup, teardown),
        cmocka_unit_test_setup_teardown(a_pipe_that_is_closed_ends_it_quietly, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_size_limit_and_a_full_disk_are_failures_in_words, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(tail_follows_until_it_is_interrupted, setup, teardown),
        cmocka_unit_test_setup_teardown(an_export_that_nobody_reads_does_not_make_the_wal_grow, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_cursor_file_is_private_and_written_whole, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
