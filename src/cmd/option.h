/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of a program as one table: from it come the parser, --help, the man page and the shell
 * completions, so that they cannot drift apart. Long options in the words of kubectl (`--name value`,
 * `--name=value`, `-n value`, `-nvalue`, flags also `--flag=false`), options and arguments in any order, `--`
 * ends the options. Never acts on what it read. */
#pragma once

#include "base/buf.h"

enum {
    OPTION_COMMANDS_MAX = 64,  /* a mask of commands fits into 64 bits */
    OPTION_ARGUMENTS_MAX = 64, /* arguments that are not options */
    OPTION_TEXT_MAX = 1 << 20, /* bytes of a generated text */
};

struct option_spec {
    const char *name;          /* without the dashes; NULL ends a table */
    char letter;               /* 0: none */
    const char *value;         /* name of its value ("FILE"); NULL: a flag */
    const char *help;          /* one sentence without a full stop */
    const char *fallback;      /* the value when it is not given; NULL: none */
    const char *variable;      /* environment variable that is the default before fallback; NULL: none */
    const char *choices;       /* the values allowed, "table|wide|json"; NULL: any */
    const char *fallback_text; /* how help shows a default that is computed; NULL: fallback */
    uint64_t commands;         /* mask of the commands that take it (1 << index); 0: all. Two that no command
                                  takes both may have one name, and then the same choices */
    bool repeats;              /* each use adds a value; else the last one counts */
    bool is_file;              /* completions offer files */
    bool is_hidden;            /* not in --help, man page and completions */
};

struct option_command {
    const char *name;      /* "get", or of a family two words: "resize plan"; NULL ends a table */
    const char *arguments; /* "[OP]", "FILE"; NULL: none */
    const char *help;      /* one line */
    const char *more;      /* further paragraphs for its own --help; may be NULL */
    int arguments_min;
    int arguments_max;
    bool is_file; /* its arguments are files */
};

struct option_example {
    const char *command; /* whose --help shows it too; NULL: the program's only */
    const char *what;
    const char *line;
};

struct option_exit {
    int code;
    const char *what;  /* NULL ends a table */
    uint64_t commands; /* mask of the commands that end with it; 0: all */
};

struct option_program {
    const char *name;
    const char *summary;                   /* one line: what it is for */
    const char *description;               /* paragraphs, for the man page and --help; may be NULL */
    const struct option_example *examples; /* ended by .line == NULL */
    const struct option_command *commands; /* NULL: the program has no commands */
    const struct option_spec *options;
    const struct option_exit *exits;
    int usage_exit;        /* exit code of wrong usage: 64, or 2 for neoset-audit */
    const char *arguments; /* as of a command, when there are no commands */
    int arguments_max;
    const char *(*details)(void); /* a further line for --version; may be NULL */
    const char *see_also;         /* for the man page; may be NULL */
};

/* What a command line said. */
struct options;

/* How to read an environment variable: NULL or "" count as unset. */
typedef const char *option_variable(const char *name);

/* Reads argv[1..]. variable NULL: the process environment. Errors: -ERROR_USAGE, a sentence that names the
 * argument and suggests the nearest. When the command line asked for a text (help, version, completion, or
 * nothing at all of a program with commands) option_answer() returns it, and nothing else is to be done.
 * Texts borrow from argv. */
int option_parse(const struct option_program *program, int argc, char *const *argv, option_variable *variable,
                 struct options **ret, struct error **err);
void option_free(struct options *options);
/* For main(): parses; prints an answer to stdout, an error to stderr. NULL: end with *ret_exit. */
struct options *option_main(const struct option_program *program, int argc, char *const *argv, int *ret_exit);

/* The text that was asked for instead of running; NULL: run. Owned by options. */
const char *option_answer(const struct options *options);
/* Index in the program's table, -1 for a program without commands. */
int option_command_index(const struct options *options);
const char *option_command_name(const struct options *options);
int option_argument_count(const struct options *options);
/* NULL when there are fewer. */
const char *option_argument(const struct options *options, int index);

/* name must be in the table (an assertion). A flag: */
bool option_flag(const struct options *options, const char *name);
/* The last value given, else the variable, else the fallback, else NULL. Never "" unless given so. */
const char *option_text(const struct options *options, const char *name);
/* Given on the command line (not by variable or fallback). */
bool option_is_given(const struct options *options, const char *name);
/* Of a repeated option; without any use one value from variable or fallback, if any. */
int option_count(const struct options *options, const char *name);
const char *option_text_at(const struct options *options, const char *name, int index);
/* A whole number of 0 ... max, or a usage error that names the option. *ret is untouched when it was not
 * given and has no default. */
int option_number(const struct options *options, const char *name, int64_t max, int64_t *ret,
                  struct error **err);

/* The texts; each is the caller's. command NULL: the whole program. */
char *option_help_text(const struct option_program *program, const struct option_command *command);
/* The commands whose name begins with this word. */
char *option_family_text(const struct option_program *program, const char *family);
char *option_man_text(const struct option_program *program);
/* shell: "bash" or "zsh"; NULL for any other. */
char *option_completion_text(const struct option_program *program, const char *shell);
char *option_version_text(const struct option_program *program);
/* The entry of names (NULL-terminated) nearest to word by edit distance, or NULL when none is near. */
const char *option_suggest(const char *word, const char *const *names);
/* command is one of family ("resize" has "resize plan"); family NULL: any is. And its word behind that. */
bool option_in_family(const struct option_command *command, const char *family);
const char *option_second_word(const struct option_command *command, const char *family);

DEFINE_CLEANUP(cleanup_options, struct options, option_free);
#define CLEANUP_OPTIONS __attribute__((cleanup(cleanup_options)))
