/* SPDX-License-Identifier: Apache-2.0
 *
 * One table makes the parser, --help, the man page and the completions. */
#include "cmd/audit_options.h"
#include "cmd/neosetctl/options.h"
#include "cmd/state_path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { ARGUMENTS_MAX = 32 };

static const char *no_variable(const char *name)
{
    (void)name;
    return NULL;
}

static const char *some_variables(const char *name)
{
    if (str_equal(name, "TRY_FILE"))
        return "from-variable";
    return str_equal(name, "TRY_FORMAT") ? "nonsense" : NULL;
}

enum { GO, STOP, MAKE_TEA, MAKE_COFFEE };
static const struct option_command try_commands[] = {
    [GO] = {.name = "go", .arguments = "PLACE", .help = "goes", .arguments_min = 1, .arguments_max = 2},
    [STOP] = {.name = "stop", .help = "stops"},
    [MAKE_TEA] = {.name = "make tea", .arguments = "CUP", .help = "makes tea", .arguments_max = 1},
    [MAKE_COFFEE] = {.name = "make coffee", .help = "makes coffee"},
    {0},
};
static const struct option_spec try_options[] = {
    {.name = "file",
     .letter = 'f',
     .value = "FILE",
     .help = "a file",
     .variable = "TRY_FILE",
     .repeats = true},
    {.name = "namespace", .letter = 'n', .value = "NS", .help = "a namespace", .fallback = "default"},
    {.name = "all", .letter = 'A', .help = "all"},
    {.name = "output", .letter = 'o', .value = "FORMAT", .help = "a format", .choices = "table|json"},
    {.name = "speed", .value = "N", .help = "how fast", .commands = UINT64_C(1) << GO},
    {.name = "as", .value = "USER", .help = "for whom", .commands = ~(UINT64_C(1) << STOP)},
    {.name = "as", .value = "END", .help = "how it ended", .commands = UINT64_C(1) << STOP},
    {.name = "format",
     .value = "F",
     .help = "another",
     .choices = "a|b",
     .variable = "TRY_FORMAT",
     .is_hidden = true,
     .commands = UINT64_C(1) << GO},
    {0},
};
static const struct option_exit try_exits[] = {
    {0, "done", 0}, {3, "went astray", UINT64_C(1) << GO}, {64, "usage", 0}, {0}};
static const struct option_example try_examples[] = {{"go", "Go there", "try go there"}, {0}};
static const struct option_program try = {.name = "try",
                                          .summary = "tries",
                                          .examples = try_examples,
                                          .commands = try_commands,
                                          .options = try_options,
                                          .exits = try_exits,
                                          .usage_exit = 64};

/* Words of a command line. The words must outlive the options: they are kept until the next call. */
static int parse(const struct option_program *program, const char *line, option_variable *variable,
                 struct options **ret, struct error **err)
{
    static char *memory;
    static char *argv[ARGUMENTS_MAX];
    free(memory);
    memory = xasprintf("%s %s", program->name, line);
    int argc = 0;
    for (char *word = strtok(memory, " "); word && argc < ARGUMENTS_MAX - 1; word = strtok(NULL, " "))
        argv[argc++] = strcmp(word, "''") == 0 ? word + 2 : word;
    argv[argc] = NULL;
    return option_parse(program, argc, argv, variable ? variable : no_variable, ret, err);
}

static struct options *parsed(const char *line)
{
    struct options *options = NULL;
    struct error *err = NULL;
    if (parse(&try, line, NULL, &options, &err) < 0)
        fail_msg("%s: %s", line, error_text(err));
    return options;
}

static void reads_options_in_every_spelling_and_order(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "go there --namespace prod -A -o json",
        "--namespace=prod go -A there -o=json",
        "-n prod -Aojson go there",
        "-An prod go there -ojson",
        "go -nprod there --all --output json",
        "go -n=prod --all=true -ojson there",
        "go -n x -n prod -A -o json -- there",
    };
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        CLEANUP_OPTIONS struct options *options = parsed(lines[i]);
        assert_null(option_answer(options));
        assert_int_equal(option_command_index(options), GO);
        assert_string_equal(option_command_name(options), "go");
        assert_string_equal(option_text(options, "namespace"), "prod");
        assert_string_equal(option_text(options, "output"), "json");
        assert_true(option_flag(options, "all"));
        assert_int_equal(option_argument_count(options), 1);
        assert_string_equal(option_argument(options, 0), "there");
        assert_null(option_argument(options, 1));
    }
}

static void repeated_options_are_a_list(void **state)
{
    (void)state;
    CLEANUP_OPTIONS struct options *options = parsed("go x --file a -f b --file=c");
    assert_int_equal(option_count(options, "file"), 3);
    assert_string_equal(option_text_at(options, "file", 0), "a");
    assert_string_equal(option_text_at(options, "file", 2), "c");
    assert_string_equal(option_text(options, "file"), "c");
}

static void defaults_come_from_the_variable_then_from_the_table(void **state)
{
    (void)state;
    CLEANUP_OPTIONS struct options *plain = parsed("stop");
    assert_int_equal(option_count(plain, "file"), 0);
    assert_null(option_text(plain, "file"));
    assert_string_equal(option_text(plain, "namespace"), "default");
    assert_false(option_is_given(plain, "namespace"));
    assert_false(option_flag(plain, "all"));
    CLEANUP_OPTIONS struct options *options = NULL;
    assert_int_equal(parse(&try, "stop", some_variables, &options, NULL), 0);
    assert_int_equal(option_count(options, "file"), 1);
    assert_string_equal(option_text_at(options, "file", 0), "from-variable");
    CLEANUP_OPTIONS struct options *given = NULL;
    assert_int_equal(parse(&try, "stop -f mine", some_variables, &given, NULL), 0);
    assert_int_equal(option_count(given, "file"), 1);
    assert_string_equal(option_text(given, "file"), "mine");
    CLEANUP_ERROR struct error *err = NULL;
    CLEANUP_OPTIONS struct options *bad = NULL;
    assert_int_equal(parse(&try, "go x", some_variables, &bad, &err), -ERROR_USAGE);
    assert_non_null(strstr(error_text(err), "TRY_FORMAT"));
}

static void wrong_usage_is_a_sentence_with_the_way_out(void **state)
{
    (void)state;
    static const struct {
        const char *line, *says;
    } table[] = {
        {"go x --namespce prod", "did you mean --namespace?"},
        {"go x --nmaespace=prod", "did you mean --namespace?"},
        {"go x --fil a", "did you mean --file?"},
        {"go x --wholly-unknown", "`try --help` lists them"},
        {"go x -z", "unknown option -z"},
        {"og", "did you mean go?"},
        {"stpo", "did you mean stop?"},
        {"fly", "`try --help` lists them"},
        {"go", "go needs PLACE"},
        {"go a b c", "c is too much"},
        {"go ''", "go: PLACE is empty: is the variable set that it comes from?"},
        {"stop here", "stop takes no argument, but there is here"},
        {"go x --namespace", "--namespace needs a value: --namespace NS"},
        {"go x -n", "-n needs a value"},
        {"go x --namespace --all", "--namespace needs a value"},
        {"go x --output xml", "one of table|json"},
        {"go x -o", "-o needs a value"},
        {"go x -o tabl", "--output cannot be \"tabl\""},
        {"go x --all=maybe", "--all takes no value"},
        {"stop --speed 3", "--speed is not an option of stop"},
        {"--all", "no command is given"},
        {"make -A", "no command is given: `try make --help` lists them"},
        {"make cofee", "unknown command make cofee: did you mean make coffee?"},
        {"make go", "unknown command make go: `try make --help` lists them"},
        {"mak tea", "unknown command mak"},
        {"make coffee cup", "make coffee takes no argument"},
        {"make tea --speed 3", "--speed is not an option of make tea"},
        {"completion", "completion bash|zsh"},
        {"completion fish", "completion bash|zsh"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_OPTIONS struct options *options = NULL;
        CLEANUP_ERROR struct error *err = NULL;
        assert_int_equal(parse(&try, table[i].line, NULL, &options, &err), -ERROR_USAGE);
        assert_null(options);
        if (!strstr(error_text(err), table[i].says))
            fail_msg("%s: says \"%s\", not \"%s\"", table[i].line, error_text(err), table[i].says);
    }
}

static void a_command_may_be_of_two_words(void **state)
{
    (void)state;
    static const char *const lines[] = {"make tea mug", "make -n x tea mug", "-A make tea mug"};
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        CLEANUP_OPTIONS struct options *options = parsed(lines[i]);
        assert_int_equal(option_command_index(options), MAKE_TEA);
        assert_string_equal(option_command_name(options), "make tea");
        assert_string_equal(option_argument(options, 0), "mug");
    }
    static const char *const family[] = {"make", "make --help"};
    for (size_t i = 0; i < ARRAY_SIZE(family); i++) {
        CLEANUP_OPTIONS struct options *options = parsed(family[i]);
        assert_non_null(strstr(option_answer(options), "make tea CUP"));
        assert_non_null(strstr(option_answer(options), "make coffee"));
        assert_null(strstr(option_answer(options), "goes"));
    }
    CLEANUP_OPTIONS struct options *one = parsed("make tea --help");
    assert_non_null(strstr(option_answer(one), "try make tea CUP [options]"));
}

static void an_option_may_mean_something_else_to_a_command(void **state)
{
    (void)state;
    static const char *const lines[] = {"stop --as x", "--as x stop", "go here --as x", "--as x go here"};
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        CLEANUP_OPTIONS struct options *options = parsed(lines[i]);
        assert_string_equal(option_text(options, "as"), "x");
    }
    CLEANUP_OPTIONS struct options *stop = parsed("stop --help");
    assert_non_null(strstr(option_answer(stop), "how it ended"));
    assert_null(strstr(option_answer(stop), "for whom"));
    CLEANUP_OPTIONS struct options *go = parsed("go --help");
    assert_non_null(strstr(option_answer(go), "for whom"));
    assert_null(strstr(option_answer(go), "how it ended"));
}

static void a_value_may_begin_with_a_dash(void **state)
{
    (void)state;
    CLEANUP_OPTIONS struct options *options = parsed("go x --file -2h -f --odd --file=--all");
    assert_string_equal(option_text_at(options, "file", 0), "-2h");
    assert_string_equal(option_text_at(options, "file", 1), "--odd");
    assert_string_equal(option_text_at(options, "file", 2), "--all");
}

static void numbers_are_whole_and_bounded(void **state)
{
    (void)state;
    static const char *const bad[] = {"go x --speed=-1", "go x --speed 1x", "go x --speed 1001",
                                      "go x --speed=", "go x --speed 99999999999999999999"};
    int64_t number = 7;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP_OPTIONS struct options *options = parsed(bad[i]);
        assert_int_equal(option_number(options, "speed", 1000, &number, NULL), -ERROR_USAGE);
        assert_int_equal(number, 7);
    }
    CLEANUP_OPTIONS struct options *good = parsed("go x --speed 1000");
    assert_int_equal(option_number(good, "speed", 1000, &number, NULL), 0);
    assert_int_equal(number, 1000);
    CLEANUP_OPTIONS struct options *none = parsed("go x");
    number = 7;
    assert_int_equal(option_number(none, "speed", 1000, &number, NULL), 0);
    assert_int_equal(number, 7);
}

static void help_comes_with_examples_first(void **state)
{
    (void)state;
    static const char *const lines[] = {"", "--help", "-h", "help", "go --help --nothing-else-matters=no"};
    for (size_t i = 0; i < 4; i++) {
        CLEANUP_OPTIONS struct options *options = parsed(lines[i]);
        const char *text = option_answer(options);
        assert_non_null(text);
        const char *examples = strstr(text, "Examples:");
        const char *usage = strstr(text, "Usage:");
        assert_non_null(examples);
        assert_non_null(usage);
        assert_true(examples < usage);
        assert_non_null(strstr(text, "-n, --namespace NS"));
        assert_non_null(strstr(text, "(default default)"));
        assert_null(strstr(text, "--format"));
    }
    CLEANUP_OPTIONS struct options *command = parsed("stop --help");
    assert_non_null(strstr(option_answer(command), "try stop [options]"));
    assert_null(strstr(option_answer(command), "--speed"));
    assert_null(strstr(option_answer(command), "try go there"));
    assert_null(strstr(option_answer(command), "went astray"));
    CLEANUP_OPTIONS struct options *other = parsed("help go");
    assert_non_null(strstr(option_answer(other), "--speed"));
    assert_non_null(strstr(option_answer(other), "  3   went astray\n"));
    CLEANUP_OPTIONS struct options *version = parsed("--version");
    assert_true(str_starts_with(option_answer(version), "try "));
}

/* --- of the programs
 * ---------------------------------------------------------------------------------------- */

static const struct option_program *const programs[] = {&audit_program, &neosetctl_program};

static void help_fits_into_a_hundred_columns_and_is_aligned(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
        for (int c = -1; c < 0 || programs[i]->commands[c].name; c++) {
            CLEANUP_FREE char *text = option_help_text(programs[i], c < 0 ? NULL : &programs[i]->commands[c]);
            for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
                if (strlen(line) > 100 && !strstr(line, programs[i]->name))
                    fail_msg("too long: %s", line);
        }
    }
}

/* Columns are an API: they are written down, and the golden files hold the output to it. */
static void the_columns_of_an_export_are_documented(void **state)
{
    (void)state;
    static const char *const kinds[] = {"entries", "operations", "steps"};
    const char *more = NULL;
    for (int i = 0; audit_program.commands[i].name; i++)
        if (str_equal(audit_program.commands[i].name, "export"))
            more = audit_program.commands[i].more;
    assert_non_null(more);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        CLEANUP_FREE char *path = xasprintf("tests/golden/audit/export-%s.csv", kinds[i]);
        FILE *file = fopen(path, "re");
        assert_non_null(file);
        char line[1024] = "";
        assert_non_null(fgets(line, sizeof line, file));
        fclose(file);
        CLEANUP_BUF struct buf wanted = BUF_INIT(4096);
        buf_addf(&wanted, "%s: ", kinds[i]);
        for (const char *at = line; *at && *at != '\r'; at++) {
            if (*at == ',')
                buf_add_text(&wanted, ", ");
            else if (*at != '"')
                buf_add_char(&wanted, *at);
        }
        if (!strstr(more, buf_text(&wanted)))
            fail_msg("not documented: %s", buf_text(&wanted));
    }
}

static int shell(const char *script, const char *input, char *output, size_t size)
{
    char file[] = "/tmp/neoset-option-XXXXXX";
    int fd = mkstemp(file);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, input, strlen(input)), (ssize_t)strlen(input));
    close(fd);
    CLEANUP_FREE char *command = xasprintf("FILE=%s bash -c '%s' 2>&1", file, script);
    FILE *pipe = popen(command, "re");
    assert_non_null(pipe);
    size_t length = fread(output, 1, size - 1, pipe);
    output[length] = '\0';
    int status = pclose(pipe);
    unlink(file);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void bash_completes_commands_options_and_choices(void **state)
{
    (void)state;
    CLEANUP_FREE char *text = option_completion_text(&audit_program, "bash");
    static const struct {
        const char *words, *wanted; /* a word of the answer */
    } table[] = {
        {"neoset-audit ti", "timeline"},
        {"neoset-audit list --outp", "--output"},
        {"neoset-audit list --output = ya", "yaml"},
        {"neoset-audit list --output =", "table wide json jsonl csv yaml name"},
        {"neoset-audit list -o js", "json jsonl"},
        {"neoset-audit verify --qu", "--quick"},
        {"neoset-audit verify --fol", ""},
        {"neoset-audit completion z", "zsh"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_FREE char *script =
            xasprintf("source $FILE; COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); "
                      "_neoset_audit; echo -n ${COMPREPLY[*]}",
                      table[i].words);
        char output[4096];
        assert_int_equal(shell(script, text, output, sizeof output), 0);
        if (strcmp(output, table[i].wanted) != 0)
            fail_msg("%s completes to \"%s\", not \"%s\"", table[i].words, output, table[i].wanted);
    }
}

static void bash_completes_commands_of_two_words(void **state)
{
    (void)state;
    CLEANUP_FREE char *text = option_completion_text(&try, "bash");
    static const struct {
        const char *words, *wanted;
    } table[] = {{"try m", "make"},          {"try make \"\"", "tea coffee"},
                 {"try make t", "tea"},      {"try make tea --name", "--namespace"},
                 {"try make tea --spe", ""}, {"try go --spe", "--speed"}};
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_FREE char *script =
            xasprintf("source $FILE; COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - "
                      "1)); _try; echo -n ${COMPREPLY[*]}",
                      table[i].words);
        char output[4096];
        assert_int_equal(shell(script, text, output, sizeof output), 0);
        if (strcmp(output, table[i].wanted) != 0)
            fail_msg("%s completes to \"%s\", not \"%s\"", table[i].words, output, table[i].wanted);
    }
    CLEANUP_FREE char *zsh = option_completion_text(&try, "zsh");
    assert_non_null(strstr(zsh, "(make) _describe command commands_make"));
}

static void zsh_and_man_take_what_is_made(void **state)
{
    (void)state;
    char output[8192];
    for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
        CLEANUP_FREE char *zsh = option_completion_text(programs[i], "zsh");
        assert_true(str_starts_with(zsh, "#compdef "));
        if (shell("command -v zsh", "", output, sizeof output) == 0)
            assert_int_equal(shell("zsh -n $FILE", zsh, output, sizeof output), 0);
        CLEANUP_FREE char *man = option_man_text(programs[i]);
        assert_true(str_starts_with(man, ".TH "));
        assert_non_null(strstr(man, ".SH EXIT STATUS"));
        if (shell("command -v groff", "", output, sizeof output) == 0) {
            assert_int_equal(shell("groff -man -Tascii -ww -z $FILE", man, output, sizeof output), 0);
            assert_string_equal(output, "");
        }
    }
    assert_null(option_completion_text(&audit_program, "tcsh"));
}

static void timeouts_are_read_as_kubectl_reads_them(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int64_t wanted_us; /* -1: refused */
    } table[] = {
        {"get", 30000000},
        {"get --request-timeout 5s", 5000000},
        {"get --request-timeout 7", 7000000},
        {"get --request-timeout 1m", 60000000},
        {"get --request-timeout 0", 600000000},
        {"get --request-timeout 10h", 600000000},
        {"get --request-timeout soon", -1},
        {"get --request-timeout=", -1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_OPTIONS struct options *options = NULL;
        assert_int_equal(parse(&neosetctl_program, table[i].line, NULL, &options, NULL), 0);
        int64_t timeout_us = -1;
        int r = neosetctl_timeout(options, &timeout_us, NULL);
        assert_int_equal(r, table[i].wanted_us < 0 ? -ERROR_USAGE : 0);
        assert_int_equal(timeout_us, table[i].wanted_us);
    }
}

static const char *state_variable(const char *name)
{
    return str_equal(name, "XDG_STATE_HOME") ? "/xdg" : (str_equal(name, "HOME") ? "/home/me" : NULL);
}
static const char *home_variable(const char *name)
{
    return str_equal(name, "HOME") ? "/home/me" : NULL;
}
static const char *relative_variable(const char *name)
{
    return str_equal(name, "XDG_STATE_HOME") ? "state" : home_variable(name);
}
static const char *systemd_variable(const char *name)
{
    return str_equal(name, "STATE_DIRECTORY") ? "/var/lib/a:/var/lib/b" : NULL;
}

static void journals_have_a_place_of_their_own(void **state)
{
    (void)state;
    const struct {
        option_variable *variable;
        bool is_root;
        const char *controller, *user;
    } table[] = {
        {state_variable, false, "/xdg/neoset/journal.db", "/xdg/neoset/x.db"},
        {home_variable, false, "/home/me/.local/state/neoset/journal.db",
         "/home/me/.local/state/neoset/x.db"},
        {relative_variable, false, "/home/me/.local/state/neoset/journal.db",
         "/home/me/.local/state/neoset/x.db"},
        {home_variable, true, "/var/lib/neoset/journal.db", "/home/me/.local/state/neoset/x.db"},
        {systemd_variable, true, "/var/lib/a/journal.db", NULL},
        {no_variable, false, NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_FREE char *controller = state_path_controller(table[i].variable, table[i].is_root);
        CLEANUP_FREE char *user = state_path_user(table[i].variable, "x.db");
        assert_true(str_equal(controller, table[i].controller));
        assert_true(str_equal(user, table[i].user));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_options_in_every_spelling_and_order),
        cmocka_unit_test(repeated_options_are_a_list),
        cmocka_unit_test(defaults_come_from_the_variable_then_from_the_table),
        cmocka_unit_test(wrong_usage_is_a_sentence_with_the_way_out),
        cmocka_unit_test(a_command_may_be_of_two_words),
        cmocka_unit_test(an_option_may_mean_something_else_to_a_command),
        cmocka_unit_test(a_value_may_begin_with_a_dash),
        cmocka_unit_test(numbers_are_whole_and_bounded),
        cmocka_unit_test(help_comes_with_examples_first),
        cmocka_unit_test(help_fits_into_a_hundred_columns_and_is_aligned),
        cmocka_unit_test(the_columns_of_an_export_are_documented),
        cmocka_unit_test(bash_completes_commands_options_and_choices),
        cmocka_unit_test(bash_completes_commands_of_two_words),
        cmocka_unit_test(zsh_and_man_take_what_is_made),
        cmocka_unit_test(timeouts_are_read_as_kubectl_reads_them),
        cmocka_unit_test(journals_have_a_place_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
