/* SPDX-License-Identifier: Apache-2.0
 *
 * --help, the man page, the completions and --version, from the same table as the parser. */
#include "cmd/option.h"
#include "version.h"

enum { TEXT_COLUMNS = 100, LEFT_COLUMN_MAX = 34 };

/* commands: a mask, 0: all. command NULL: the whole program. */
static bool is_of(const struct option_program *program, uint64_t commands,
                  const struct option_command *command)
{
    return !command || commands == 0 || (commands & (UINT64_C(1) << (command - program->commands))) != 0;
}

static bool applies(const struct option_program *program, const struct option_spec *spec,
                    const struct option_command *command)
{
    return !spec->is_hidden && is_of(program, spec->commands, command);
}

/* "-n, --namespace NS" */
static char *option_shape(const struct option_spec *spec)
{
    CLEANUP_FREE char *letter = spec->letter ? xasprintf("-%c, ", spec->letter) : xstrdup("    ");
    return xasprintf("%s--%s%s%s", letter, spec->name, spec->value ? " " : "",
                     spec->value ? spec->value : "");
}

/* The help sentence with what follows from the table: choices, repeats, default. */
static char *option_sentence(const struct option_spec *spec)
{
    struct buf text = BUF_INIT(OPTION_TEXT_MAX);
    buf_add_text(&text, spec->help);
    if (spec->choices)
        buf_addf(&text, ": %s", spec->choices);
    if (spec->repeats)
        buf_add_text(&text, "; may be repeated");
    const char *fallback = spec->fallback_text ? spec->fallback_text : spec->fallback;
    if (spec->variable && fallback)
        buf_addf(&text, " (default $%s, else %s)", spec->variable, fallback);
    else if (spec->variable)
        buf_addf(&text, " (default $%s)", spec->variable);
    else if (fallback)
        buf_addf(&text, " (default %s)", fallback);
    return buf_take(&text);
}

/* Appends text as words in lines of TEXT_COLUMNS, each but the first behind indent spaces; column is where
 * the first begins. '\n' in text begins a new line. */
static void add_wrapped(struct buf *out, const char *text, size_t indent, size_t column)
{
    bool at_start = true;
    while (*text) {
        size_t word = strcspn(text, " \n");
        if (!at_start && column + 1 + word > TEXT_COLUMNS) {
            buf_addf(out, "\n%*s", (int)indent, "");
            column = indent;
            at_start = true;
        }
        if (!at_start && word > 0) {
            buf_add_char(out, ' ');
            column++;
        }
        buf_add(out, text, word);
        column += word;
        at_start = at_start && word == 0;
        text += word;
        if (*text == '\n') {
            buf_addf(out, "\n%*s", (int)indent, "");
            column = indent;
            at_start = true;
        }
        if (*text)
            text++;
    }
    buf_add_char(out, '\n');
}

/* "  left    right ...", the right part aligned at width and wrapped. */
static void add_row(struct buf *out, const char *left, size_t width, const char *right)
{
    size_t length = strlen(left);
    buf_addf(out, "  %s", left);
    if (length > width) {
        buf_add_char(out, '\n');
        length = 0;
        buf_add_text(out, "  ");
    }
    buf_addf(out, "%*s", (int)(width - length + 2), "");
    add_wrapped(out, right, width + 4, width + 4);
}

static void add_examples(struct buf *out, const struct option_program *program,
                         const struct option_command *command)
{
    bool any = false;
    for (const struct option_example *example = program->examples; example && example->line; example++) {
        if (command && !str_equal(example->command, command->name))
            continue;
        buf_addf(out, "%s  # %s\n  %s\n", any ? "\n" : "\nExamples:\n", example->what, example->line);
        any = true;
    }
}

/* family NULL: all of them. */
static void add_commands(struct buf *out, const struct option_program *program, const char *family)
{
    CLEANUP_BUF struct buf left = BUF_INIT(OPTION_TEXT_MAX);
    size_t width = 0;
    for (const struct option_command *command = program->commands; command->name; command++)
        if (option_in_family(command, family))
            width =
                MAX(width, strlen(command->name) + (command->arguments ? strlen(command->arguments) + 1 : 0));
    buf_add_text(out, "\nCommands:\n");
    for (const struct option_command *command = program->commands; command->name; command++) {
        if (!option_in_family(command, family))
            continue;
        buf_clear(&left);
        buf_addf(&left, "%s%s%s", command->name, command->arguments ? " " : "",
                 command->arguments ? command->arguments : "");
        add_row(out, buf_text(&left), width, command->help);
    }
    buf_addf(out, "\n`%s %s --help` shows a command with its options;\n", program->name,
             family ? buf_text(&left) : "COMMAND");
    buf_addf(out, "`source <(%s completion bash)` lets Tab complete them (zsh: the same).\n", program->name);
}

static void add_options(struct buf *out, const struct option_program *program,
                        const struct option_command *command)
{
    size_t width = 0;
    for (const struct option_spec *spec = program->options; spec && spec->name; spec++) {
        CLEANUP_FREE char *shape = option_shape(spec);
        if (applies(program, spec, command) && strlen(shape) <= LEFT_COLUMN_MAX)
            width = MAX(width, strlen(shape));
    }
    width = MAX(width, strlen("    --version"));
    buf_add_text(out, "\nOptions:\n");
    for (const struct option_spec *spec = program->options; spec && spec->name; spec++) {
        if (!applies(program, spec, command))
            continue;
        CLEANUP_FREE char *shape = option_shape(spec);
        CLEANUP_FREE char *sentence = option_sentence(spec);
        add_row(out, shape, width, sentence);
    }
    add_row(out, "-h, --help", width, "show this help");
    add_row(out, "    --version", width, "show the version");
}

static void add_exits(struct buf *out, const struct option_program *program,
                      const struct option_command *command)
{
    if (!program->exits)
        return;
    buf_add_text(out, "\nExit codes:\n");
    for (const struct option_exit *code = program->exits; code->what; code++)
        if (is_of(program, code->commands, command))
            buf_addf(out, "  %-3d %s\n", code->code, code->what);
}

char *option_help_text(const struct option_program *program, const struct option_command *command)
{
    struct buf out = BUF_INIT(OPTION_TEXT_MAX);
    if (command)
        buf_addf(&out, "%s %s: %s\n", program->name, command->name, command->help);
    else
        buf_addf(&out, "%s: %s\n", program->name, program->summary);
    add_examples(&out, program, command);
    const char *arguments = command ? command->arguments : program->arguments;
    buf_addf(&out, "\nUsage:\n  %s%s%s%s%s [options]\n", program->name,
             command || program->commands ? " " : "",
             command ? command->name : (program->commands ? "COMMAND" : ""), arguments ? " " : "",
             arguments ? arguments : "");
    const char *more = command ? command->more : program->description;
    if (more) {
        buf_add_char(&out, '\n');
        add_wrapped(&out, more, 0, 0);
    }
    if (!command && program->commands)
        add_commands(&out, program, NULL);
    add_options(&out, program, command);
    add_exits(&out, program, command);
    ENSURE(!out.overflowed);
    return buf_take(&out);
}

char *option_family_text(const struct option_program *program, const char *family)
{
    struct buf out = BUF_INIT(OPTION_TEXT_MAX);
    buf_addf(&out, "%s %s: a family of commands\n\nUsage:\n  %s %s COMMAND [options]\n", program->name,
             family, program->name, family);
    add_commands(&out, program, family);
    ENSURE(!out.overflowed);
    return buf_take(&out);
}

char *option_version_text(const struct option_program *program)
{
    const char *details = program->details ? program->details() : NULL;
    return xasprintf("%s %s\n%s%s", program->name, NEOSET_VERSION, details ? details : "",
                     details ? "\n" : "");
}

/* --- man page --------------------------------------------------------------------------------------- */

/* roff: backslash, hyphen and a leading control character are escaped. */
static void man_add(struct buf *out, const char *text)
{
    bool at_line_start = out->length == 0 || out->data[out->length - 1] == '\n';
    for (; *text; text++) {
        if (at_line_start && (*text == '.' || *text == '\''))
            buf_add_text(out, "\\&");
        if (*text == '\\')
            buf_add_text(out, "\\e");
        else if (*text == '-')
            buf_add_text(out, "\\-");
        else
            buf_add_char(out, *text);
        at_line_start = *text == '\n';
    }
}

static void man_add_entry(struct buf *out, const char *head, const char *text)
{
    buf_add_text(out, ".TP\n\\fB");
    man_add(out, head);
    buf_add_text(out, "\\fR\n");
    man_add(out, text);
    buf_add_char(out, '\n');
}

static void man_add_paragraphs(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\n') {
            buf_add_text(out, "\n.PP\n");
            continue;
        }
        const char one[] = {*text, '\0'};
        man_add(out, one);
    }
    buf_add_char(out, '\n');
}

static void man_add_commands(struct buf *out, const struct option_program *program)
{
    buf_add_text(out, ".SH COMMANDS\n");
    for (const struct option_command *command = program->commands; command->name; command++) {
        CLEANUP_FREE char *head = xasprintf("%s%s%s", command->name, command->arguments ? " " : "",
                                            command->arguments ? command->arguments : "");
        man_add_entry(out, head, command->help);
        if (command->more) {
            buf_add_text(out, ".IP\n");
            man_add_paragraphs(out, command->more);
        }
    }
    man_add_entry(out, "completion bash|zsh",
                  "what lets the shell complete commands and options, to be sourced");
}

/* " Of: list, show." for an option that not every command takes. */
static char *man_sentence(const struct option_program *program, const struct option_spec *spec)
{
    CLEANUP_FREE char *sentence = option_sentence(spec);
    struct buf text = BUF_INIT(OPTION_TEXT_MAX);
    buf_addf(&text, "%s.", sentence);
    if (program->commands && spec->commands != 0) {
        const char *separator = " Of: ";
        for (const struct option_command *command = program->commands; command->name; command++) {
            if (!applies(program, spec, command))
                continue;
            buf_addf(&text, "%s%s", separator, command->name);
            separator = ", ";
        }
        buf_add_char(&text, '.');
    }
    return buf_take(&text);
}

static void man_add_options(struct buf *out, const struct option_program *program)
{
    buf_add_text(out, ".SH OPTIONS\n");
    for (const struct option_spec *spec = program->options; spec && spec->name; spec++) {
        if (spec->is_hidden)
            continue;
        CLEANUP_FREE char *shape = option_shape(spec);
        CLEANUP_FREE char *sentence = man_sentence(program, spec);
        man_add_entry(out, shape + strspn(shape, " "), sentence);
    }
    man_add_entry(out, "-h, --help", "show help, for a command behind its name.");
    man_add_entry(out, "--version", "show the version.");
}

static void man_add_examples(struct buf *out, const struct option_program *program)
{
    if (!program->examples)
        return;
    buf_add_text(out, ".SH EXAMPLES\n");
    for (const struct option_example *example = program->examples; example->line; example++) {
        buf_add_text(out, ".PP\n");
        man_add(out, example->what);
        buf_add_text(out, str_ends_with(example->what, "?") ? "\n" : ":\n");
        buf_add_text(out, ".PP\n.nf\n    ");
        man_add(out, example->line);
        buf_add_text(out, "\n.fi\n");
    }
}

static void man_add_environment(struct buf *out, const struct option_program *program)
{
    bool any = false;
    for (const struct option_spec *spec = program->options; spec && spec->name; spec++) {
        if (!spec->variable || spec->is_hidden)
            continue;
        if (!any)
            buf_add_text(out, ".SH ENVIRONMENT\n");
        any = true;
        CLEANUP_FREE char *sentence = xasprintf("the default of --%s.", spec->name);
        man_add_entry(out, spec->variable, sentence);
    }
}

char *option_man_text(const struct option_program *program)
{
    struct buf out = BUF_INIT(OPTION_TEXT_MAX);
    CLEANUP_FREE char *title = xstrdup(program->name);
    for (char *at = title; *at; at++)
        if (*at >= 'a' && *at <= 'z')
            *at = (char)(*at - 'a' + 'A');
    buf_add_text(&out, ".TH ");
    man_add(&out, title);
    buf_addf(&out, " 1 \"\" \"neoset %s\"\n.SH NAME\n", NEOSET_VERSION);
    man_add(&out, program->name);
    buf_add_text(&out, " \\- ");
    man_add(&out, program->summary);
    buf_add_text(&out, "\n.SH SYNOPSIS\n\\fB");
    man_add(&out, program->name);
    buf_addf(&out, "\\fR %s%s[\\fIoptions\\fR]\n", program->commands ? "\\fICOMMAND\\fR " : "",
             program->arguments ? "[\\fIargument\\fR ...] " : "");
    if (program->description) {
        buf_add_text(&out, ".SH DESCRIPTION\n");
        man_add_paragraphs(&out, program->description);
    }
    if (program->commands)
        man_add_commands(&out, program);
    man_add_options(&out, program);
    man_add_examples(&out, program);
    man_add_environment(&out, program);
    if (program->exits) {
        buf_add_text(&out, ".SH EXIT STATUS\n");
        for (const struct option_exit *code = program->exits; code->what; code++) {
            CLEANUP_FREE char *number = xasprintf("%d", code->code);
            man_add_entry(&out, number, code->what);
        }
    }
    if (program->see_also) {
        buf_add_text(&out, ".SH SEE ALSO\n");
        man_add(&out, program->see_also);
        buf_add_char(&out, '\n');
    }
    ENSURE(!out.overflowed);
    return buf_take(&out);
}

/* --- completions ------------------------------------------------------------------------------------ */

/* A shell function's name: what is not a letter or digit becomes '_'. */
static char *shell_name(const char *name)
{
    char *copy = xstrdup(name);
    for (char *at = copy; *at; at++)
        if (!((*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9')))
            *at = '_';
    return copy;
}

static void add_long_names(struct buf *out, const struct option_program *program,
                           const struct option_command *command)
{
    for (const struct option_spec *spec = program->options; spec && spec->name; spec++)
        if (applies(program, spec, command))
            buf_addf(out, "--%s ", spec->name);
    buf_add_text(out, "--help --version");
}

/* case labels of one option: "--output|-o" */
static void bash_add_label(struct buf *out, const struct option_spec *spec)
{
    buf_addf(out, "    --%s", spec->name);
    if (spec->letter)
        buf_addf(out, "|-%c", spec->letter);
    buf_add_text(out, ") ");
}

static void bash_add_values(struct buf *out, const struct option_program *program)
{
    buf_add_text(out, "    case \"$previous\" in\n");
    for (const struct option_spec *spec = program->options; spec && spec->name; spec++) {
        if (spec->is_hidden || !spec->value)
            continue;
        bash_add_label(out, spec);
        if (spec->choices) {
            CLEANUP_FREE char *words = xstrdup(spec->choices);
            for (char *at = words; *at; at++)
                if (*at == '|')
                    *at = ' ';
            buf_addf(out, "COMPREPLY=($(compgen -W \"%s\" -- \"$word\")); return ;;\n", words);
        } else if (spec->is_file) {
            buf_add_text(out, "COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n");
        } else {
            buf_add_text(out, "return ;;\n");
        }
    }
    buf_add_text(out, "    esac\n");
}

/* "resize" of "resize plan", the caller's; NULL: the command is of one word. */
static char *family_of(const struct option_command *command)
{
    const char *blank = strchr(command->name, ' ');
    return blank ? xstrndup(command->name, (size_t)(blank - command->name)) : NULL;
}

/* It is the first of its family in the table: where the family is named. */
static bool leads_family(const struct option_program *program, const struct option_command *command)
{
    CLEANUP_FREE char *family = family_of(command);
    for (const struct option_command *other = program->commands; family && other < command; other++)
        if (option_in_family(other, family))
            return false;
    return family != NULL;
}

/* The words that begin a command, each followed by separator. */
static void add_first_words(struct buf *out, const struct option_program *program, const char *separator)
{
    for (const struct option_command *command = program->commands; command->name; command++) {
        CLEANUP_FREE char *family = family_of(command);
        if (!family || leads_family(program, command))
            buf_addf(out, "%s%s", family ? family : command->name, separator);
    }
}

static void bash_add_families(struct buf *out, const struct option_program *program)
{
    for (const struct option_command *command = program->commands; command->name; command++) {
        if (!leads_family(program, command))
            continue;
        CLEANUP_FREE char *family = family_of(command);
        buf_addf(out, "    %s) words=\"", family);
        for (const struct option_command *other = command; other->name; other++)
            if (option_in_family(other, family))
                buf_addf(out, "%s ", option_second_word(other, family));
        buf_add_text(out, "\" ;;\n");
    }
}

static void bash_add_commands(struct buf *out, const struct option_program *program)
{
    buf_add_text(out, "    case \"$command\" in\n");
    for (const struct option_command *command = program->commands; command->name; command++) {
        buf_addf(out, "    '%s') options=\"", command->name);
        add_long_names(out, program, command);
        buf_addf(out, "\"%s ;;\n", command->is_file ? "; files=1" : "");
    }
    bash_add_families(out, program);
    buf_add_text(out, "    completion) words=\"bash zsh\" ;;\n    '') words=\"");
    add_first_words(out, program, " ");
    buf_add_text(out, "completion help\" ;;\n    esac\n");
}

/* Finds the command, of one word or of two, that has been typed already. */
static void bash_add_search(struct buf *out, const struct option_program *program)
{
    buf_add_text(out, "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                      "        case \"${command:+$command }${COMP_WORDS[i]}\" in\n        ");
    for (const struct option_command *command = program->commands; command->name; command++)
        buf_addf(out, "'%s'|", command->name);
    for (const struct option_command *command = program->commands; command->name; command++) {
        CLEANUP_FREE char *family = family_of(command);
        if (leads_family(program, command))
            buf_addf(out, "%s|", family);
    }
    buf_add_text(out,
                 "completion) command=${command:+$command }${COMP_WORDS[i]} ;;\n        esac\n    done\n");
}

static char *bash_text(const struct option_program *program)
{
    struct buf out = BUF_INIT(OPTION_TEXT_MAX);
    CLEANUP_FREE char *function = shell_name(program->name);
    buf_addf(&out,
             "# bash completion of %s: source <(%s completion bash)\n"
             "_%s()\n{\n"
             "    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
             "    local command='' options='' words='' files='' i\n"
             "    COMPREPLY=()\n"
             "    # bash splits --name=value at the =\n"
             "    if [[ $word == = ]]; then word=''; elif [[ $previous == = ]]; then "
             "previous=${COMP_WORDS[COMP_CWORD-2]}; fi\n",
             program->name, program->name, function);
    bash_add_values(&out, program);
    if (program->commands)
        bash_add_search(&out, program);
    buf_add_text(&out, "    options=\"");
    add_long_names(&out, program, NULL);
    buf_add_text(&out, "\"\n");
    if (program->commands)
        bash_add_commands(&out, program);
    buf_addf(&out,
             "    if [[ $word == -* ]]; then\n"
             "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
             "    elif [[ -n $files ]]; then\n"
             "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
             "    else\n"
             "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
             "    fi\n}\n"
             "complete -F _%s %s\n",
             function, program->name);
    ENSURE(!out.overflowed);
    return buf_take(&out);
}

/* Inside a double-free zsh word in single quotes: brackets, colons and quotes are special. */
static void zsh_add_help(struct buf *out, const char *help)
{
    for (; *help; help++) {
        if (*help == '\'')
            buf_add_text(out, "'\\''");
        else if (*help == '[' || *help == ']' || *help == ':' || *help == '\\')
            buf_addf(out, "\\%c", *help);
        else
            buf_add_char(out, *help);
    }
}

static void zsh_add_option(struct buf *out, const struct option_spec *spec)
{
    const char *many = spec->repeats ? "*" : "";
    if (spec->letter && spec->value)
        buf_addf(out, "    '%s'{-%c+,--%s=}'[", many, spec->letter, spec->name);
    else if (spec->letter)
        buf_addf(out, "    '%s'{-%c,--%s}'[", many, spec->letter, spec->name);
    else
        buf_addf(out, "    '%s--%s%s[", many, spec->name, spec->value ? "=" : "");
    zsh_add_help(out, spec->help);
    buf_add_char(out, ']');
    if (spec->value) {
        buf_add_char(out, ':');
        zsh_add_help(out, spec->value);
        buf_add_char(out, ':');
        if (spec->choices) {
            buf_add_char(out, '(');
            for (const char *at = spec->choices; *at; at++)
                buf_add_char(out, *at == '|' ? ' ' : *at);
            buf_add_char(out, ')');
        } else if (spec->is_file) {
            buf_add_text(out, "_files");
        }
    }
    buf_add_text(out, "' \\\n");
}

static void zsh_add_row(struct buf *out, const char *name, const char *help)
{
    buf_addf(out, "        '%s:", name);
    zsh_add_help(out, help);
    buf_add_text(out, "'\n");
}

/* The first words, and for each family an array of its second ones. */
static void zsh_add_commands(struct buf *out, const struct option_program *program)
{
    buf_add_text(out, "    local -a commands=(\n");
    for (const struct option_command *command = program->commands; command->name; command++) {
        CLEANUP_FREE char *family = family_of(command);
        if (!family || leads_family(program, command))
            zsh_add_row(out, family ? family : command->name,
                        family ? "a family of commands" : command->help);
    }
    buf_add_text(out, "        'completion:print the completions of a shell'\n    )\n");
    for (const struct option_command *command = program->commands; command->name; command++) {
        CLEANUP_FREE char *family = family_of(command);
        if (!leads_family(program, command))
            continue;
        buf_addf(out, "    local -a commands_%s=(\n", family);
        for (const struct option_command *other = command; other->name; other++)
            if (option_in_family(other, family))
                zsh_add_row(out, option_second_word(other, family), other->help);
        buf_add_text(out, "    )\n");
    }
}

/* What may stand behind the first word: of a family its commands, else a file. */
static void zsh_add_second(struct buf *out, const struct option_program *program)
{
    buf_add_text(out, " '2:argument:{case $words[2] in ");
    for (const struct option_command *command = program->commands; command->name; command++) {
        CLEANUP_FREE char *family = family_of(command);
        if (leads_family(program, command))
            buf_addf(out, "(%s) _describe command commands_%s ;; ", family, family);
    }
    buf_add_text(out, "(*) _files ;; esac}'");
}

static char *zsh_text(const struct option_program *program)
{
    struct buf out = BUF_INIT(OPTION_TEXT_MAX);
    CLEANUP_FREE char *function = shell_name(program->name);
    buf_addf(&out, "#compdef %s\n_%s()\n{\n", program->name, function);
    if (program->commands)
        zsh_add_commands(&out, program);
    buf_add_text(&out, "    _arguments -s \\\n");
    for (const struct option_spec *spec = program->options; spec && spec->name; spec++)
        if (!spec->is_hidden)
            zsh_add_option(&out, spec);
    buf_add_text(&out, "    '(-h --help)'{-h,--help}'[show this help]' '--version[show the version]'");
    if (program->commands) {
        buf_add_text(&out, " '1:command:{_describe command commands}'");
        zsh_add_second(&out, program);
        buf_add_text(&out, " '*:argument:_files'");
    }
    buf_addf(&out, "\n}\ncompdef _%s %s\n", function, program->name);
    ENSURE(!out.overflowed);
    return buf_take(&out);
}

char *option_completion_text(const struct option_program *program, const char *shell)
{
    if (str_equal(shell, "bash"))
        return bash_text(program);
    if (str_equal(shell, "zsh"))
        return zsh_text(program);
    return NULL;
}
