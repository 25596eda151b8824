/* SPDX-License-Identifier: Apache-2.0
 *
 * neoset-audit: what the controller did, when, why and how long it took. Reads journals, writes nothing but
 * its output, a cursor and a backup. */
#include "audit/audit.h"
#include "audit/escape.h"
#include "base/time_text.h"
#include "cmd/audit_options.h"
#include "cmd/look.h"
#include "cmd/open_files.h"
#include "cmd/state_path.h"
#include "env/file.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    POLL_MS = 200,
    TAIL_LAST_DEFAULT = 10,
    HEADS_MAX = 64,
    CURSOR_BYTES_MAX = 64 * 1024,
    MESSAGE_BYTES_MAX = 64 * 1024,
};

static volatile sig_atomic_t was_interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    was_interrupted = 1;
}

/* Server texts may be in it: what a terminal must not see is escaped. */
static void say(const char *sentence)
{
    CLEANUP_BUF struct buf text = BUF_INIT(MESSAGE_BYTES_MAX);
    /* Its beginning says what is wrong, however long what was typed is. */
    CLEANUP_FREE char *cut = xstrndup(sentence, MESSAGE_BYTES_MAX / 8);
    escape_plain(&text, cut);
    fprintf(stderr, "%s: %s\n", audit_program.name, buf_text(&text));
}

static void notice(void *context, const char *sentence)
{
    (void)context;
    say(sentence);
}

static int64_t wall_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * US_PER_S + now.tv_nsec / 1000;
}

static int look_of(const struct options *options, struct sheet_look *ret, struct error **err)
{
    bool is_export = str_equal(option_command_name(options), "export");
    const char *format = option_text(options, "output");
    struct look_wish wish = {
        .format = format ? format : (is_export ? "csv" : "table"),
        .color = option_text(options, "color"),
        .is_csv_raw = option_flag(options, "csv-raw"),
        .is_local = option_flag(options, "local"),
    };
    int r = option_number(options, "width", LOOK_COLUMNS_MAX, &wish.columns, err);
    if (r == 0)
        look_make(&wish, ret);
    return r;
}

/* --- the journals ----------------------------------------------------------------------------------- */

static int open_journals(const struct options *options, struct audit *audit, struct error **err)
{
    const char *paths[AUDIT_JOURNALS_MAX];
    int count = option_count(options, "journal");
    if (count > AUDIT_JOURNALS_MAX)
        return error_set(err, ERROR_USAGE, "%d journals are too many: at most %d at a time", count,
                         AUDIT_JOURNALS_MAX);
    for (int i = 0; i < count; i++)
        paths[i] = option_text_at(options, "journal", i);
    if (count > 0)
        return audit_open(audit, paths, (size_t)count, err);
    CLEANUP_FREE char *path = state_path_controller(NULL, geteuid() == 0);
    if (!path)
        return error_set(err, ERROR_USAGE, "no journal is given: use --journal FILE or set NEOSET_JOURNAL");
    paths[0] = path;
    int r = audit_open(audit, paths, 1, err);
    return r < 0 ? error_wrap(err, r, "no --journal is given and NEOSET_JOURNAL is not set") : 0;
}

/* --- commands --------------------------------------------------------------------------------------- */

static int run_export(struct audit *audit, const struct options *options, const struct audit_filter *filter,
                      struct error **err)
{
    const char *what = option_argument(options, 0);
    if (!what || str_equal(what, "entries"))
        return audit_export_entries(audit, filter, err);
    if (str_equal(what, "operations"))
        return audit_export_operations(audit, filter, err);
    if (str_equal(what, "steps"))
        return audit_export_steps(audit, filter, err);
    return error_set(err, ERROR_USAGE, "export knows entries, operations and steps, not %s", what);
}

static int run_in_doubt(struct audit *audit, const struct options *options, const struct audit_filter *filter,
                        int *ret_exit, struct error **err)
{
    int64_t older_than_us = 0;
    const char *age = option_text(options, "older-than");
    if (age && duration_parse(age, &older_than_us, err) < 0)
        return error_wrap(err, -ERROR_USAGE, "--older-than");
    int64_t found = 0;
    int r = audit_in_doubt(audit, filter, older_than_us, &found, err);
    if (r == 0 && found > 0 && option_flag(options, "check"))
        *ret_exit = AUDIT_EXIT_IN_DOUBT;
    return r;
}

static void show_progress(void *context, const char *stage, int64_t done, int64_t total)
{
    (void)context;
    fprintf(stderr, "\r%s: %s %3d %%\x1b[K", audit_program.name, stage,
            total > 0 ? (int)(100 * MIN(done, total) / total) : 0);
}

static int run_verify(struct audit *audit, const struct options *options, int *ret_exit, struct error **err)
{
    struct journal_head heads[HEADS_MAX];
    int count = option_count(options, "head");
    if (count > HEADS_MAX)
        return error_set(err, ERROR_USAGE, "%d heads are too many: at most %d at a time", count, HEADS_MAX);
    for (int i = 0; i < count; i++) {
        const char *text = option_text_at(options, "head", i);
        int r = *text == '{' ? journal_head_parse_json(text, &heads[i], err)
                             : journal_head_parse(text, &heads[i], err);
        if (r < 0)
            return error_wrap(err, -ERROR_USAGE, "--head");
    }
    bool has_progress = isatty(STDERR_FILENO) && isatty(STDOUT_FILENO);
    struct audit_verify_options verify = {.is_quick = option_flag(options, "quick"),
                                          .heads = heads,
                                          .head_count = (size_t)count,
                                          .progress = has_progress ? show_progress : NULL};
    bool is_intact = false;
    int r = audit_verify(audit, &verify, &is_intact, err);
    if (has_progress)
        fputs("\r\x1b[K", stderr);
    if ((r == 0 && !is_intact) || r == -ERROR_CORRUPT)
        *ret_exit = AUDIT_EXIT_BROKEN;
    return r;
}

/* Replaced whole or not at all. */
static int write_cursor(void *context, const char *text, struct error **err)
{
    int r = real_write_file(NULL, context, 0600, text, strlen(text), err);
    return r == -ERROR_NOT_FOUND ? -ERROR_FAILED : r; /* a missing folder is no missing operation */
}

/* Before anything is printed: what was delivered and is not written down comes again. */
static int check_cursor_folder(const char *path, struct error **err)
{
    CLEANUP_FREE char *folder = xstrdup(path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder ? 1 : 0] = '\0';
    const char *name = slash ? folder : ".";
    if (access(name, W_OK | X_OK) == 0)
        return 0;
    /* A missing folder is no missing operation. */
    (void)error_set_errno(err, errno, "the cursor file %s: cannot write in the folder %s", path, name);
    return -ERROR_FAILED;
}

/* Until the next look; false when the user had enough or nobody reads any more. */
static bool wait_a_moment(void *context)
{
    (void)context;
    struct pollfd output = {.fd = STDOUT_FILENO};
    int ready = poll(&output, 1, POLL_MS);
    bool nobody_reads = ready > 0 && (output.revents & (POLLERR | POLLHUP)) != 0;
    return !was_interrupted && !nobody_reads;
}

static int run_tail(struct audit *audit, const struct options *options, const struct audit_filter *filter,
                    struct error **err)
{
    struct audit_tail_options tail = {.last = TAIL_LAST_DEFAULT};
    CLEANUP_BUF struct buf text = BUF_INIT(CURSOR_BYTES_MAX);
    const char *path = option_text(options, "cursor-file");
    if (path) {
        CLEANUP_ERROR struct error *own = NULL;
        int r = real_read_file(NULL, path, &text, &own);
        if (r < 0 && r != -ERROR_NOT_FOUND)
            return error_set(err, own->code, "the cursor file: %s", error_text(own));
        tail.cursor_text = r == 0 ? buf_text(&text) : NULL;
        r = check_cursor_folder(path, err);
        if (r < 0)
            return r;
        tail.last = -1;
        tail.keep_cursor = write_cursor;
        tail.context = (void *)path;
    }
    int r = option_number(options, "last", INT64_C(1000000000), &tail.last, err);
    if (r < 0)
        return r;
    if (option_flag(options, "follow")) {
        tail.wait = wait_a_moment;
        /* The only command that ends well when it is interrupted. */
        struct sigaction interrupt = {.sa_handler = on_interrupt};
        sigaction(SIGINT, &interrupt, NULL);
        sigaction(SIGTERM, &interrupt, NULL);
    }
    return audit_tail(audit, filter, &tail, err);
}

static int run_backup(struct audit *audit, const char *target, struct error **err)
{
    int r = audit_backup(audit, target, err);
    if (r < 0)
        return r == -ERROR_NOT_FOUND ? -ERROR_FAILED : r;
    CLEANUP_FREE char *sentence =
        xasprintf("%s holds a copy of %s; `neoset-audit verify --journal %s` checks it", target,
                  audit->journals[0].meta->path, target);
    say(sentence);
    return 0;
}

static int run_command(struct audit *audit, const struct options *options, const struct audit_filter *filter,
                       int *ret_exit, struct error **err)
{
    const char *command = option_command_name(options);
    if (str_equal(command, "list"))
        return audit_list(audit, filter, err);
    if (str_equal(command, "show"))
        return audit_show(audit, option_argument(options, 0), err);
    if (str_equal(command, "timeline"))
        return audit_timeline(audit, option_argument(options, 0), filter, err);
    if (str_equal(command, "export"))
        return run_export(audit, options, filter, err);
    if (str_equal(command, "in-doubt"))
        return run_in_doubt(audit, options, filter, ret_exit, err);
    if (str_equal(command, "runs"))
        return audit_runs(audit, filter, err);
    if (str_equal(command, "verify"))
        return run_verify(audit, options, ret_exit, err);
    if (str_equal(command, "backup"))
        return run_backup(audit, option_argument(options, 0), err);
    ENSURE(str_equal(command, "tail"));
    return run_tail(audit, options, filter, err);
}

static int run(const struct options *options)
{
    CLEANUP_ERROR struct error *err = NULL;
    struct out out;
    out_init(&out, STDOUT_FILENO);
    struct audit audit = {.out = &out, .now_us = wall_us(), .notice = notice};
    struct audit_filter filter;
    CLEANUP_FREE char *memory = NULL;
    int exit_code = AUDIT_EXIT_DONE;
    int r = look_of(options, &audit.look, &err);
    if (r == 0)
        r = audit_options_filter(options, audit.now_us, &filter, &memory, &err);
    if (r == 0) {
        r = open_journals(options, &audit, &err);
        /* A missing file is no missing operation. */
        if (r == -ERROR_NOT_FOUND)
            r = -ERROR_FAILED;
        if (r == 0)
            r = run_command(&audit, options, &filter, &exit_code, &err);
    }
    audit_close(&audit);
    out_done(&out);
    if (r < 0)
        say(error_text(err));
    return exit_code != AUDIT_EXIT_DONE ? exit_code : audit_exit_of(r);
}

int main(int argc, char **argv)
{
    standard_files_ensure();
    umask(077);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file size limit is a full disk, not the end */
    int exit_code = 0;
    CLEANUP_OPTIONS struct options *options = option_main(&audit_program, argc, argv, &exit_code);
    return options ? run(options) : exit_code;
}
