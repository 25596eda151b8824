/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/option.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum { OPTION_USES_MAX = 1024, SUGGEST_WORD_MAX = 64 };

/* One use of an option, in the order given. value is NULL for a flag that is on, "" for one that is off. */
struct option_use {
    const struct option_spec *spec;
    const char *value;
};

struct options {
    const struct option_program *program;
    option_variable *variable;
    int command;
    const char *family; /* the first word of a command of two, as long as the second is awaited */
    struct option_use uses[OPTION_USES_MAX];
    int use_count;
    const char *arguments[OPTION_ARGUMENTS_MAX];
    int argument_count;
    char *answer;
};

/* Walks argv. */
struct reader {
    struct options *options;
    int argc;
    char *const *argv;
    int next;
    bool only_arguments; /* after `--` */
    bool wants_help;
    bool wants_version;
    bool wants_man;
};

/* Every program understands these. */
static const struct option_spec common_options[] = {
    {.name = "help", .letter = 'h', .help = "show this help"},
    {.name = "version", .help = "show the version"},
    {.name = "help-man", .help = "print the man page", .is_hidden = true},
    {0},
};

static const char *process_variable(const char *name)
{
    return getenv(name);
}

static const struct option_spec *find_in(const struct option_spec *table, const char *name, size_t length)
{
    for (const struct option_spec *spec = table; spec && spec->name; spec++)
        if (strlen(spec->name) == length && memcmp(spec->name, name, length) == 0)
            return spec;
    return NULL;
}

static bool applies(const struct option_spec *spec, int command)
{
    return spec->commands == 0 || command < 0 || (spec->commands & (UINT64_C(1) << command)) != 0;
}

/* Of several with this name the one that the command takes, else the first; NULL: there is none. */
static const struct option_spec *find_for(const struct options *options, const char *name)
{
    const struct option_spec *first = find_in(options->program->options, name, strlen(name));
    for (const struct option_spec *spec = first; spec && spec->name; spec++)
        if (str_equal(spec->name, name) && applies(spec, options->command))
            return spec;
    return first;
}

static const struct option_spec *find_letter_in(const struct option_spec *table, char letter)
{
    for (const struct option_spec *spec = table; spec && spec->name; spec++)
        if (spec->letter && spec->letter == letter)
            return spec;
    return NULL;
}

/* --- suggestions ------------------------------------------------------------------------------------ */

/* Edit distance with adjacent swaps counted as one, of words of at most SUGGEST_WORD_MAX bytes. */
static int edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int rows[3][SUGGEST_WORD_MAX + 1];
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = (int)j;
    for (size_t i = 1; i <= a_length; i++) {
        int *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = (int)i;
        for (size_t j = 1; j <= b_length; j++) {
            int best = MIN(above[j], row[j - 1]) + 1;
            best = MIN(best, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = MIN(best, above2[j - 2] + 1);
            row[j] = best;
        }
    }
    return rows[a_length % 3][b_length];
}

const char *option_suggest(const char *word, const char *const *names)
{
    size_t length = strlen(word);
    if (length == 0 || length > SUGGEST_WORD_MAX)
        return NULL;
    const char *best = NULL;
    int best_distance = length < 4 ? 2 : 3;
    for (; *names; names++) {
        size_t name_length = strlen(*names);
        if (name_length > SUGGEST_WORD_MAX)
            continue;
        int distance = edit_distance(word, length, *names, name_length);
        if (length >= 3 && str_starts_with(*names, word))
            distance = MIN(distance, 1);
        if (distance < best_distance) {
            best_distance = distance;
            best = *names;
        }
    }
    return best;
}

/* The known long name nearest to the unknown one; NULL when none is near. */
static const char *nearest_option(const struct option_program *program, const char *name)
{
    const char *names[256];
    size_t count = 0;
    const struct option_spec *tables[] = {program->options, common_options};
    for (size_t t = 0; t < ARRAY_SIZE(tables); t++)
        for (const struct option_spec *spec = tables[t]; spec && spec->name; spec++)
            if (!spec->is_hidden && count < ARRAY_SIZE(names) - 1)
                names[count++] = spec->name;
    names[count] = NULL;
    return option_suggest(name, names);
}

static int unknown_option(const struct option_program *program, const char *shown, const char *name,
                          struct error **err)
{
    const char *near = name ? nearest_option(program, name) : NULL;
    if (near)
        return error_set(err, ERROR_USAGE, "unknown option %s: did you mean --%s?", shown, near);
    return error_set(err, ERROR_USAGE, "unknown option %s: `%s --help` lists them", shown, program->name);
}

static int unknown_command(const struct option_program *program, const char *family, const char *word,
                           struct error **err)
{
    const char *names[OPTION_COMMANDS_MAX + 1];
    size_t count = 0;
    for (const struct option_command *command = program->commands; command->name; command++)
        if (option_in_family(command, family))
            names[count++] = option_second_word(command, family);
    names[count] = NULL;
    const char *near = option_suggest(word, names);
    const char *of = family ? family : "";
    const char *blank = family ? " " : "";
    if (near)
        return error_set(err, ERROR_USAGE, "unknown command %s%s%s: did you mean %s%s%s?", of, blank, word,
                         of, blank, near);
    return error_set(err, ERROR_USAGE, "unknown command %s%s%s: `%s%s%s --help` lists them", of, blank, word,
                     program->name, blank, of);
}

bool option_in_family(const struct option_command *command, const char *family)
{
    size_t length = family ? strlen(family) : 0;
    return !family || (strncmp(command->name, family, length) == 0 && command->name[length] == ' ');
}

const char *option_second_word(const struct option_command *command, const char *family)
{
    return family ? command->name + strlen(family) + 1 : command->name;
}

static bool is_family(const struct option_program *program, const char *word)
{
    for (const struct option_command *command = program->commands; command->name; command++)
        if (option_in_family(command, word))
            return true;
    return false;
}

static int find_command(const struct option_program *program, const char *family, const char *word)
{
    for (int i = 0; program->commands[i].name; i++)
        if (option_in_family(&program->commands[i], family) &&
            str_equal(option_second_word(&program->commands[i], family), word))
            return i;
    return -1;
}

/* --- reading ---------------------------------------------------------------------------------------- */

static bool is_one_of(const char *choices, const char *value)
{
    size_t length = strlen(value);
    for (const char *at = choices; length > 0;) {
        size_t word = strcspn(at, "|");
        if (word == length && memcmp(at, value, word) == 0)
            return true;
        if (at[word] == '\0')
            return false;
        at += word + 1;
    }
    return false;
}

static int check_choice(const struct option_spec *spec, const char *value, const char *source,
                        struct error **err)
{
    if (!spec->choices || is_one_of(spec->choices, value))
        return 0;
    return error_set(err, ERROR_USAGE, "%s%s cannot be \"%s\": it is one of %s", source ? "" : "--",
                     source ? source : spec->name, value, spec->choices);
}

static int add_use(struct reader *reader, const struct option_spec *spec, const char *value,
                   struct error **err)
{
    struct options *options = reader->options;
    if (options->use_count == OPTION_USES_MAX)
        return error_set(err, ERROR_USAGE, "too many options: more than %d", OPTION_USES_MAX);
    if (spec->value) {
        int r = check_choice(spec, value, NULL, err);
        if (r < 0)
            return r;
    }
    options->uses[options->use_count++] = (struct option_use){.spec = spec, .value = value};
    return 0;
}

/* `--name=text` of a flag: true and false only. */
static int add_flag_with_value(struct reader *reader, const struct option_spec *spec, const char *text,
                               struct error **err)
{
    if (str_equal(text, "true"))
        return add_use(reader, spec, NULL, err);
    if (str_equal(text, "false"))
        return add_use(reader, spec, "", err);
    return error_set(err, ERROR_USAGE, "--%s takes no value (or =true, =false), not \"%s\"", spec->name,
                     text);
}

/* The next argument is the value, unless it is plainly another option of ours. */
static int take_value(struct reader *reader, const struct option_spec *spec, const char *shown,
                      const char **ret, struct error **err)
{
    const struct option_program *program = reader->options->program;
    if (reader->next < reader->argc) {
        const char *value = reader->argv[reader->next];
        bool is_option = str_starts_with(value, "--") && value[2] != '\0' &&
                         find_in(program->options, value + 2, strcspn(value + 2, "="));
        if (!is_option) {
            reader->next++;
            *ret = value;
            return 0;
        }
    }
    return error_set(err, ERROR_USAGE, "%s needs a value: %s %s", shown, shown, spec->value);
}

static void note_common(struct reader *reader, const struct option_spec *spec)
{
    reader->wants_help = reader->wants_help || spec == &common_options[0];
    reader->wants_version = reader->wants_version || spec == &common_options[1];
    reader->wants_man = reader->wants_man || spec == &common_options[2];
}

static int read_long(struct reader *reader, const char *argument, struct error **err)
{
    const struct option_program *program = reader->options->program;
    const char *name = argument + 2;
    size_t length = strcspn(name, "=");
    const char *text = name[length] == '=' ? name + length + 1 : NULL;
    CLEANUP_FREE char *word = xstrndup(name, length);
    CLEANUP_FREE char *shown = xasprintf("--%s", word);
    const struct option_spec *spec = find_in(program->options, name, length);
    if (!spec) {
        spec = find_in(common_options, name, length);
        if (!spec)
            return unknown_option(program, shown, word, err);
        note_common(reader, spec);
        return 0;
    }
    if (!spec->value)
        return text ? add_flag_with_value(reader, spec, text, err) : add_use(reader, spec, NULL, err);
    if (!text) {
        int r = take_value(reader, spec, shown, &text, err);
        if (r < 0)
            return r;
    }
    return add_use(reader, spec, text, err);
}

/* `-A`, `-n NS`, `-nNS`, `-n=NS`, `-An NS`. */
static int read_letters(struct reader *reader, const char *argument, struct error **err)
{
    const struct option_program *program = reader->options->program;
    for (const char *at = argument + 1; *at; at++) {
        const char shown[] = {'-', *at, '\0'};
        const struct option_spec *spec = find_letter_in(program->options, *at);
        if (!spec) {
            spec = find_letter_in(common_options, *at);
            if (!spec)
                return unknown_option(program, strlen(argument) > 2 ? argument : shown,
                                      strlen(argument) > 3 ? argument + 1 : NULL, err);
            note_common(reader, spec);
            continue;
        }
        int r;
        if (!spec->value) {
            r = add_use(reader, spec, NULL, err);
            if (r < 0)
                return r;
            continue;
        }
        const char *text = at[1] == '=' ? at + 2 : at + 1;
        if (at[1] == '\0') {
            r = take_value(reader, spec, shown, &text, err);
            if (r < 0)
                return r;
        }
        return add_use(reader, spec, text, err);
    }
    return 0;
}

static int read_word(struct reader *reader, const char *argument, struct error **err)
{
    struct options *options = reader->options;
    const struct option_program *program = options->program;
    bool names_command = program->commands && options->command < 0;
    if (names_command && str_equal(argument, "help")) {
        reader->wants_help = true;
        return 0;
    }
    if (names_command && (options->family || !str_equal(argument, "completion"))) {
        options->command = find_command(program, options->family, argument);
        if (options->command >= 0)
            return 0;
        if (options->argument_count == 0 && !options->family && is_family(program, argument)) {
            options->family = argument;
            return 0;
        }
        if (options->argument_count == 0)
            return unknown_command(program, options->family, argument, err);
    }
    if (options->argument_count == OPTION_ARGUMENTS_MAX)
        return error_set(err, ERROR_USAGE, "too many arguments: more than %d", OPTION_ARGUMENTS_MAX);
    options->arguments[options->argument_count++] = argument;
    return 0;
}

static int read_all(struct reader *reader, struct error **err)
{
    while (reader->next < reader->argc) {
        const char *argument = reader->argv[reader->next++];
        int r = 0;
        if (reader->only_arguments || argument[0] != '-' || argument[1] == '\0')
            r = read_word(reader, argument, err);
        else if (str_equal(argument, "--"))
            reader->only_arguments = true;
        else if (argument[1] == '-')
            r = read_long(reader, argument, err);
        else
            r = read_letters(reader, argument, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* --- after reading ---------------------------------------------------------------------------------- */

static const struct option_command *command_of(const struct options *options)
{
    return options->command < 0 ? NULL : &options->program->commands[options->command];
}

/* An option that stood before its command was taken for the first of its name. */
static void find_again(struct options *options)
{
    for (int i = 0; i < options->use_count; i++) {
        const struct option_spec *spec = find_for(options, options->uses[i].spec->name);
        ENSURE(!spec->value == !options->uses[i].spec->value &&
               str_equal(spec->choices, options->uses[i].spec->choices));
        options->uses[i].spec = spec;
    }
}

static int check_applies(const struct options *options, struct error **err)
{
    for (int i = 0; i < options->use_count; i++) {
        const struct option_spec *spec = options->uses[i].spec;
        if (!applies(spec, options->command))
            return error_set(err, ERROR_USAGE, "--%s is not an option of %s: `%s %s --help` lists them",
                             spec->name, command_of(options)->name, options->program->name,
                             command_of(options)->name);
    }
    for (const struct option_spec *spec = options->program->options; spec && spec->name; spec++) {
        const char *value = spec->variable && spec->choices && applies(spec, options->command)
                                ? options->variable(spec->variable)
                                : NULL;
        int r = value && *value ? check_choice(spec, value, spec->variable, err) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

static int check_arguments(const struct options *options, struct error **err)
{
    const struct option_program *program = options->program;
    const struct option_command *command = command_of(options);
    const char *name = command ? command->name : program->name;
    const char *shape = command ? command->arguments : program->arguments;
    int max = command ? command->arguments_max : program->arguments_max;
    int min = command ? command->arguments_min : 0;
    if (options->argument_count < min)
        return error_set(err, ERROR_USAGE, "%s needs %s", name, shape ? shape : "an argument");
    if (options->argument_count > max && max == 0)
        return error_set(err, ERROR_USAGE, "%s takes no argument, but there is %s", name,
                         options->arguments[0]);
    if (options->argument_count > max)
        return error_set(err, ERROR_USAGE, "%s takes no more than %s: %s is too much", name,
                         shape ? shape : "its arguments", options->arguments[max]);
    for (int i = 0; i < options->argument_count; i++)
        if (!*options->arguments[i])
            return error_set(err, ERROR_USAGE, "%s: %s is empty: is the variable set that it comes from?",
                             name, shape ? shape : "an argument");
    return 0;
}

static int answer_completion(struct options *options, struct error **err)
{
    const char *shell = options->argument_count > 1 ? options->arguments[1] : "";
    options->answer = option_completion_text(options->program, shell);
    if (!options->answer)
        return error_set(err, ERROR_USAGE, "completion needs a shell: %s completion bash|zsh",
                         options->program->name);
    return 0;
}

/* True when the command line asked for a text; it is in options->answer then, or *ret_result is an error. */
static bool answer(struct reader *reader, int *ret_result, struct error **err)
{
    struct options *options = reader->options;
    const struct option_program *program = options->program;
    *ret_result = 0;
    if (reader->wants_man)
        options->answer = option_man_text(program);
    else if (reader->wants_help)
        options->answer = options->command < 0 && options->family
                              ? option_family_text(program, options->family)
                              : option_help_text(program, command_of(options));
    else if (reader->wants_version)
        options->answer = option_version_text(program);
    else if (options->command < 0 && options->argument_count > 0 &&
             str_equal(options->arguments[0], "completion"))
        *ret_result = answer_completion(options, err);
    else if (program->commands && options->command < 0 && options->use_count == 0)
        options->answer =
            options->family ? option_family_text(program, options->family) : option_help_text(program, NULL);
    else
        return false;
    return true;
}

int option_parse(const struct option_program *program, int argc, char *const *argv, option_variable *variable,
                 struct options **ret, struct error **err)
{
    CLEANUP_OPTIONS struct options *options = xcalloc(1, sizeof *options);
    options->program = program;
    options->variable = variable ? variable : process_variable;
    options->command = -1;
    struct reader reader = {.options = options, .argc = argc, .argv = argv, .next = 1};
    int r = read_all(&reader, err);
    if (r < 0)
        return r;
    if (!answer(&reader, &r, err)) {
        if (program->commands && options->command < 0)
            return error_set(err, ERROR_USAGE, "no command is given: `%s%s%s --help` lists them",
                             program->name, options->family ? " " : "",
                             options->family ? options->family : "");
        find_again(options);
        r = check_applies(options, err);
        if (r == 0)
            r = check_arguments(options, err);
    }
    if (r < 0)
        return r;
    *ret = STEAL(options);
    return 0;
}

void option_free(struct options *options)
{
    if (!options)
        return;
    free(options->answer);
    free(options);
}

struct options *option_main(const struct option_program *program, int argc, char *const *argv, int *ret_exit)
{
    CLEANUP_ERROR struct error *err = NULL;
    CLEANUP_OPTIONS struct options *options = NULL;
    int r = option_parse(program, argc, argv, NULL, &options, &err);
    if (r < 0) {
        fprintf(stderr, "%s: %s\n", program->name, error_text(err));
        *ret_exit = program->usage_exit;
        return NULL;
    }
    ENSURE(options);
    if (!options->answer)
        return STEAL(options);
    /* cppcheck-suppress nullPointer ; it takes STEAL for the way on */
    bool is_written = fputs(options->answer, stdout) >= 0; /* a long text meets the disk here already */
    is_written = fflush(stdout) == 0 && is_written;
    if (!is_written && errno != EPIPE) {
        fprintf(stderr, "%s: cannot write to stdout: %s\n", program->name, strerror(errno));
        *ret_exit = 1;
        return NULL;
    }
    *ret_exit = 0;
    return NULL;
}

/* --- what was said ---------------------------------------------------------------------------------- */

const char *option_answer(const struct options *options)
{
    return options->answer;
}

int option_command_index(const struct options *options)
{
    return options->command;
}

const char *option_command_name(const struct options *options)
{
    return options->command < 0 ? NULL : command_of(options)->name;
}

int option_argument_count(const struct options *options)
{
    return options->argument_count;
}

const char *option_argument(const struct options *options, int index)
{
    PRE(index >= 0);
    return index < options->argument_count ? options->arguments[index] : NULL;
}

static const struct option_spec *spec_of(const struct options *options, const char *name)
{
    const struct option_spec *spec = find_for(options, name);
    PRE(spec != NULL);
    return spec;
}

static const char *default_of(const struct options *options, const struct option_spec *spec)
{
    const char *value = spec->variable ? options->variable(spec->variable) : NULL;
    return value && *value ? value : spec->fallback;
}

bool option_flag(const struct options *options, const char *name)
{
    const struct option_spec *spec = spec_of(options, name);
    PRE(!spec->value);
    for (int i = options->use_count; i-- > 0;)
        if (options->uses[i].spec == spec)
            return options->uses[i].value == NULL;
    return false;
}

bool option_is_given(const struct options *options, const char *name)
{
    const struct option_spec *spec = spec_of(options, name);
    for (int i = 0; i < options->use_count; i++)
        if (options->uses[i].spec == spec)
            return true;
    return false;
}

const char *option_text(const struct options *options, const char *name)
{
    const struct option_spec *spec = spec_of(options, name);
    PRE(spec->value);
    for (int i = options->use_count; i-- > 0;)
        if (options->uses[i].spec == spec)
            return options->uses[i].value;
    return default_of(options, spec);
}

int option_count(const struct options *options, const char *name)
{
    const struct option_spec *spec = spec_of(options, name);
    PRE(spec->value);
    int count = 0;
    for (int i = 0; i < options->use_count; i++)
        count += options->uses[i].spec == spec;
    return count > 0 ? count : default_of(options, spec) != NULL;
}

const char *option_text_at(const struct options *options, const char *name, int index)
{
    PRE(index >= 0 && index < option_count(options, name));
    const struct option_spec *spec = spec_of(options, name);
    for (int i = 0; i < options->use_count; i++)
        if (options->uses[i].spec == spec && index-- == 0)
            return options->uses[i].value;
    return default_of(options, spec);
}

int option_number(const struct options *options, const char *name, int64_t max, int64_t *ret,
                  struct error **err)
{
    const char *text = option_text(options, name);
    if (!text)
        return 0;
    char *end = NULL;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number > max)
        return error_set(err, ERROR_USAGE, "--%s needs a whole number of 0 to %" PRId64 ", not \"%s\"", name,
                         max, text);
    *ret = number;
    return 0;
}
