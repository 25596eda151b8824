/* SPDX-License-Identifier: Apache-2.0
 *
 * neosetctl, also `kubectl neoset`: look at NeoSets and steer their rollouts, with the user's own identity.
 */
#include "audit/escape.h"
#include "base/time_text.h"
#include "cmd/look.h"
#include "cmd/neosetctl/adopt.h"
#include "cmd/neosetctl/apply.h"
#include "cmd/neosetctl/continue.h"
#include "cmd/neosetctl/continue_resize.h"
#include "cmd/neosetctl/follow.h"
#include "cmd/neosetctl/options.h"
#include "cmd/neosetctl/picture.h"
#include "cmd/neosetctl/report.h"
#include "cmd/neosetctl/resize.h"
#include "cmd/neosetctl/server.h"
#include "cmd/neosetctl/settle.h"
#include "cmd/neosetctl/undo.h"
#include "cmd/neosetctl/write.h"
#include "cmd/open_files.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MESSAGE_BYTES_MAX = 64 * 1024 };

/* One run of the program. */
struct program {
    const struct option_program *table;
    const struct options *options;
    struct ctl_server server;
    struct sheet_look look;
    struct out out;
    bool has_failed; /* the rollout that was asked about */
};

/* Server texts may be in it: what a terminal must not see is escaped. */
static void say(const struct program *program, const char *sentence)
{
    CLEANUP_BUF struct buf text = BUF_INIT(MESSAGE_BYTES_MAX);
    /* Its beginning says what is wrong, however long what was typed is. */
    CLEANUP_FREE char *cut = xstrndup(sentence, MESSAGE_BYTES_MAX / 8);
    escape_plain(&text, cut);
    fprintf(stderr, "%s: %s\n", program->table->name, buf_text(&text));
}

static void notice(void *context, const char *sentence)
{
    say(context, sentence);
}

/* --- reading
 * ------------------------------------------------------------------------------------------------ */

static int run_get(struct program *program, struct error **err)
{
    struct ctl_server *server = &program->server;
    const char *name = option_argument(program->options, 0);
    CLEANUP_JSON cJSON *objects = NULL;
    if (name && server->all_namespaces)
        return error_set(err, ERROR_USAGE, "a name is in one namespace: give -n instead of -A, or no name");
    if (name) {
        cJSON *object = NULL;
        int r = ctl_get_set(server, name, &object, err);
        if (r < 0)
            return r;
        objects = json_new_array();
        json_append_item(objects, object);
    } else {
        CLEANUP_FREE char *what = server->all_namespaces
                                      ? xstrdup("NeoSets")
                                      : xasprintf("NeoSets in namespace %s", server->namespace);
        int r = ctl_list(server, KUBE_NEOSET, server->all_namespaces ? NULL : server->namespace, NULL, what,
                         &objects, err);
        if (r < 0)
            return r;
    }
    int64_t rows = ctl_report_sets(&program->out, &program->look, objects, env_wall_us(server->env),
                                   server->all_namespaces);
    if (rows == 0 && server->all_namespaces)
        say(program, "there are no NeoSets");
    else if (rows == 0) {
        CLEANUP_FREE char *sentence =
            xasprintf("there are no NeoSets in namespace %s: -A looks everywhere", server->namespace);
        say(program, sentence);
    }
    return 0;
}

/* --- with the controller's journal
 * -------------------------------------------------------------------------- */

/* The journals that --journal or NEOSET_JOURNAL name; audit->count stays 0 without any. */
static int open_journals(struct program *program, struct audit *audit, struct error **err)
{
    const char *paths[AUDIT_JOURNALS_MAX];
    int count = option_count(program->options, "journal");
    if (count > AUDIT_JOURNALS_MAX)
        return error_set(err, ERROR_USAGE, "%d journals are too many: at most %d at a time", count,
                         AUDIT_JOURNALS_MAX);
    for (int i = 0; i < count; i++)
        paths[i] = option_text_at(program->options, "journal", i);
    *audit = (struct audit){.out = &program->out,
                            .look = program->look,
                            .now_us = env_wall_us(program->server.env),
                            .notice = notice,
                            .context = program};
    int r = count > 0 ? audit_open(audit, paths, (size_t)count, err) : 0;
    /* A file that cannot be read is a failure: nobody refused what was asked for. */
    return r == -ERROR_FORBIDDEN || r == -ERROR_INVALID ? -ERROR_FAILED : r;
}

/* The journals when there are any, else NULL. */
static struct audit *some_journals(struct audit *audit)
{
    return audit->count > 0 ? audit : NULL;
}

static int follow_status(struct program *program, struct audit *audit, struct error **err)
{
    if (!ctl_is_text(&program->look))
        return error_set(err, ERROR_USAGE,
                         "-w shows the picture again and again: it goes with -o table or wide");
    struct ctl_follow follow = {.server = &program->server,
                                .name = option_argument(program->options, 0),
                                .out = &program->out,
                                .look = &program->look,
                                .journal = some_journals(audit),
                                .say = notice,
                                .context = program};
    enum ctl_end end;
    int r = ctl_follow(&follow, &end, err);
    program->has_failed = r == 0 && end == CTL_FAILED;
    return r;
}

static int run_status(struct program *program, struct error **err)
{
    struct ctl_picture picture = {0};
    struct audit audit = {0};
    int r = open_journals(program, &audit, err);
    if (r == 0 && option_flag(program->options, "watch")) {
        r = follow_status(program, &audit, err);
    } else if (r == 0) {
        r = ctl_picture_read(&program->server, option_argument(program->options, 0), &picture, err);
        if (r == 0)
            r = ctl_report_status(&program->out, &program->look, &picture.set, &picture.pods, picture.at_us,
                                  some_journals(&audit), err);
        program->has_failed = r == 0 && set_view_has_failed(&picture.set);
    }
    audit_close(&audit);
    ctl_picture_done(&picture);
    return r;
}

static int run_why(struct program *program, struct error **err)
{
    struct ctl_picture picture;
    struct audit audit = {0};
    int r = ctl_picture_read(&program->server, option_argument(program->options, 0), &picture, err);
    if (r == 0)
        r = open_journals(program, &audit, err);
    if (r == 0)
        r = ctl_report_why(&program->out, &program->look, &picture.set, &picture.pods, picture.at_us,
                           some_journals(&audit), err);
    program->has_failed = r == 0 && set_view_has_failed(&picture.set);
    audit_close(&audit);
    ctl_picture_done(&picture);
    return r;
}

static int report_rollouts(struct program *program, const struct set_view *set, struct error **err)
{
    struct audit audit = {0};
    int r = open_journals(program, &audit, err);
    bool is_text = program->look.format == SHEET_TABLE || program->look.format == SHEET_WIDE;
    if (r == 0 && audit.count > 0 && is_text) {
        struct audit_filter filter = {.object = "NeoSet", .name = set->name, .namespace = set->namespace};
        buf_add_text(&program->out.text, "\nIn the journal:\n");
        r = audit_list(&audit, &filter, err);
    }
    audit_close(&audit);
    return r;
}

static int run_history(struct program *program, struct error **err)
{
    struct ctl_server *server = &program->server;
    struct ctl_picture picture;
    CLEANUP_JSON cJSON *objects = NULL;
    CLEANUP_FREE char *what = xasprintf("ControllerRevisions in namespace %s", server->namespace);
    int r = ctl_picture_read(server, option_argument(program->options, 0), &picture, err);
    if (r == 0)
        r = ctl_list(server, KUBE_REVISION, server->namespace, NULL, what, &objects, err);
    if (r == 0) {
        struct revision_views revisions;
        revision_views_make(&picture.set, objects, &picture.pods, &revisions);
        ctl_report_history(&program->out, &program->look, &picture.set, &revisions, env_wall_us(server->env));
        if (revisions.count == 0)
            say(program, "the set has no revisions yet: is neoset-controller running?");
        revision_views_done(&revisions);
        r = report_rollouts(program, &picture.set, err);
    }
    ctl_picture_done(&picture);
    return r;
}

/* --- writing
 * ------------------------------------------------------------------------------------------------ */

static int run_pause(struct program *program, bool is_paused, struct error **err)
{
    const char *name = option_argument(program->options, 0);
    enum ctl_written written = CTL_ALREADY;
    int r = ctl_write_pause(&program->server, name, is_paused, &written, err);
    if (r < 0)
        return r;
    struct buf *text = &program->out.text;
    buf_add_text(text, "neoset/");
    escape_plain(text, name);
    if (written == CTL_WRITTEN)
        buf_add_text(text, is_paused ? " paused\n" : " resumed\n");
    else
        buf_add_text(text, is_paused ? " is paused already\n" : " is not paused\n");
    return 0;
}

static int choose_revision(struct program *program, struct ctl_undo *ret, struct error **err)
{
    struct ctl_server *server = &program->server;
    CLEANUP_JSON cJSON *set = NULL;
    CLEANUP_JSON cJSON *revisions = NULL;
    int64_t number = 0;
    int r = option_number(program->options, "to-revision", INT64_MAX, &number, err);
    if (r < 0)
        return r;
    CLEANUP_FREE char *what = xasprintf("ControllerRevisions in namespace %s", server->namespace);
    r = ctl_get_set(server, option_argument(program->options, 0), &set, err);
    if (r == 0)
        r = ctl_list(server, KUBE_REVISION, server->namespace, NULL, what, &revisions, err);
    return r < 0 ? r : ctl_undo_choose(set, revisions, number, ret, err);
}

static void tell_undo(struct program *program, const struct ctl_undo *undo, bool is_dry)
{
    struct buf *text = &program->out.text;
    const char *name = option_argument(program->options, 0);
    const char *namespace = program->server.namespace;
    CLEANUP_FREE char *done =
        xasprintf("neoset/%s %s revision %" PRId64 " (%s, %s): %s%s", name,
                  is_dry ? "would go back to" : "goes back to", undo->number, undo->name, undo->choice,
                  undo->change, undo->recreates ? "; its pods are made anew for it" : "");
    escape_plain(text, done);
    buf_add_char(text, '\n');
    if (undo->is_unproven)
        buf_addf(text,
                 "revision %" PRId64
                 " was not seen stable, with all pods on it and available, since the status lists those\n",
                 undo->number);
    if (is_dry) {
        buf_add_text(text, "nothing was written (--dry-run)\n");
        return;
    }
    CLEANUP_FREE char *next =
        undo->is_paused ? xasprintf("it is paused, let it go: neosetctl resume %s -n %s", name, namespace)
                        : xasprintf("follow it: neosetctl status %s -n %s -w", name, namespace);
    escape_plain(text, next);
    buf_add_char(text, '\n');
}

static int run_undo(struct program *program, struct error **err)
{
    struct ctl_undo undo = {0};
    enum ctl_written written = CTL_ALREADY;
    const char *name = option_argument(program->options, 0);
    bool is_dry = option_flag(program->options, "dry-run");
    int r = choose_revision(program, &undo, err);
    if (r == 0 && !undo.is_there && !is_dry)
        r = ctl_write_undo(&program->server, name, &undo, &written, err);
    if (r == 0 && ((is_dry && !undo.is_there) || written == CTL_WRITTEN)) {
        tell_undo(program, &undo, is_dry);
    } else if (r == 0) {
        CLEANUP_FREE char *there = xasprintf("neoset/%s has the template of revision %" PRId64
                                             " (%s) already: nothing was written\n",
                                             name, undo.number, undo.name);
        buf_add_text(&program->out.text, there);
        if (!option_text(program->options, "to-revision"))
            buf_addf(&program->out.text, "another one: neosetctl undo %s -n %s --to-revision NUMBER\n", name,
                     program->server.namespace);
    }
    ctl_undo_done(&undo);
    return r;
}

static bool ask(void *context, const char *question)
{
    const struct program *program = context;
    char answer[16] = "";
    if (option_flag(program->options, "yes"))
        return true;
    if (!isatty(STDIN_FILENO))
        return false;
    fprintf(stderr, "%s [y/N] ", question);
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

/* With --undo a NeoSet's name, else statefulset/NAME. */
static int name_to_adopt(const struct program *program, const char **ret, struct error **err)
{
    const char *argument = option_argument(program->options, 0);
    bool goes_back = option_flag(program->options, "undo");
    enum kube_resource resource = goes_back ? KUBE_NEOSET : KUBE_STATEFULSET;
    enum kube_resource wanted = resource;
    *ret = argument;
    if (goes_back && !strchr(argument, '/'))
        return 0;
    if (ctl_object_parse(argument, &resource, ret, NULL) == 0 && resource == wanted)
        return 0;
    return error_set(err, ERROR_USAGE,
                     goes_back
                         ? "--undo takes the name of a NeoSet, not %.80s: neosetctl adopt --undo NAME"
                         : "what is adopted is a StatefulSet, not %.80s: neosetctl adopt statefulset/NAME",
                     argument);
}

static int run_adopt(struct program *program, struct error **err)
{
    struct ctl_adopt adopt = {.server = &program->server,
                              .out = &program->out,
                              .look = &program->look,
                              .is_dry = option_flag(program->options, "dry-run"),
                              .is_yaml = program->look.format == SHEET_YAML,
                              .goes_back = option_flag(program->options, "undo"),
                              .confirm = ask,
                              .context = program};
    int r = name_to_adopt(program, &adopt.name, err);
    if (r == 0 && adopt.is_yaml && !adopt.is_dry)
        r = error_set(err, ERROR_USAGE, "-o yaml shows what would be created: it goes with --dry-run");
    if (r == 0)
        r = duration_parse(option_text(program->options, "timeout"), &adopt.limit_us, err);
    if (r == -ERROR_INVALID)
        r = error_wrap(err, -ERROR_USAGE, "--timeout");
    return r < 0 ? r : ctl_adopt(&adopt, err);
}

/* Volumes that are half grown: there is no way but on. Who wants a list, for a program or --dry-run, gets
 * one. */
static int end_resizes(struct program *program, bool *ret_ended, struct error **err)
{
    struct half_resizes resizes = {0};
    int64_t limit_us = 0;
    if (option_flag(program->options, "dry-run") || !ctl_is_text(&program->look))
        return 0;
    int r = duration_parse(option_text(program->options, "timeout"), &limit_us, err);
    if (r == -ERROR_INVALID)
        return error_wrap(err, -ERROR_USAGE, "--timeout");
    r = half_resizes_find(&program->server, &resizes, err);
    *ret_ended = resizes.count > 0;
    if (r == 0)
        r = half_resizes_end(&resizes,
                             &(struct half_resizes_end){.server = &program->server,
                                                        .out = &program->out,
                                                        .look = &program->look,
                                                        .limit_us = limit_us,
                                                        .say = notice,
                                                        .context = program},
                             err);
    half_resizes_done(&resizes);
    return r;
}

static int run_continue(struct program *program, struct error **err)
{
    int64_t count = 0;
    bool ended = false;
    int r = end_resizes(program, &ended, err);
    if (r == 0)
        r = ctl_continue(&program->server, &program->out, &program->look, &count, err);
    if (r == 0 && count == 0 && !ended)
        say(program, program->server.all_namespaces
                         ? "nothing is half done, as the cluster and your own journal tell it"
                         : "nothing is half done here, as the cluster and your own journal tell it: -A "
                           "looks everywhere");
    bool only_shows = option_flag(program->options, "dry-run") || !ctl_is_text(&program->look);
    if (r == 0 && count > 0 && !only_shows)
        return error_set(err, ERROR_FAILED,
                         "%" PRId64
                         " adoption%s not gone on with: on or back is yours to say, by the commands above",
                         count, count == 1 ? " is" : "s are");
    return r;
}

static int run_apply(struct program *program, struct error **err)
{
    struct ctl_apply apply = {.server = &program->server,
                              .options = program->options,
                              .out = &program->out,
                              .look = &program->look,
                              .say = notice,
                              .context = program};
    return ctl_apply(&apply, err);
}

static int run_resize(struct program *program, struct error **err)
{
    struct ctl_resize resize = {.options = program->options,
                                .server = &program->server,
                                .out = &program->out,
                                .look = &program->look,
                                .say = notice,
                                .context = program};
    return ctl_resize(&resize, err);
}

static int run_settle(struct program *program, struct error **err)
{
    const struct options *options = program->options;
    struct ctl_settle settle = {.object = option_argument(options, 0),
                                .key = option_text(options, "step"),
                                .as = option_text(options, "as"),
                                .reason = option_text(options, "reason")};
    enum ctl_written written = CTL_ALREADY;
    struct audit audit = {0};
    int r = ctl_settle_check(&settle, err);
    if (r == 0)
        r = open_journals(program, &audit, err);
    if (r == 0)
        r = ctl_settle_find(&audit, program->server.namespace, &settle, err);
    if (r == 0)
        r = ctl_settle(&program->server, &settle, &written, err);
    bool is_looked_up = audit.count > 0;
    audit_close(&audit);
    if (r < 0)
        return r;
    CLEANUP_FREE char *done = xasprintf("%s: step %s is %s%s", settle.object, settle.key, settle.as,
                                        written == CTL_WRITTEN ? "" : ": that was said already");
    escape_plain(&program->out.text, done);
    buf_add_text(&program->out.text,
                 "\nneoset-controller takes your word when it reads the object next (within "
                 "30 s)\n");
    if (!is_looked_up)
        buf_add_text(&program->out.text,
                     "whether there is such a step was not looked up: --journal names the "
                     "controller's journal\n");
    return 0;
}

/* --- the program
 * -------------------------------------------------------------------------------------------- */

static int run_command(struct program *program, struct error **err)
{
    const char *command = option_command_name(program->options);
    if (str_equal(command, "get"))
        return run_get(program, err);
    if (str_equal(command, "status"))
        return run_status(program, err);
    if (str_equal(command, "why"))
        return run_why(program, err);
    if (str_equal(command, "history"))
        return run_history(program, err);
    if (str_equal(command, "undo"))
        return run_undo(program, err);
    if (str_equal(command, "continue"))
        return run_continue(program, err);
    if (str_equal(command, "adopt"))
        return run_adopt(program, err);
    if (str_equal(command, "apply"))
        return run_apply(program, err);
    if (str_equal(command, "settle"))
        return run_settle(program, err);
    if (ctl_resize_has(command))
        return run_resize(program, err);
    ENSURE(str_equal(command, "pause") || str_equal(command, "resume"));
    return run_pause(program, str_equal(command, "pause"), err);
}

static int exit_of(const struct program *program, int result)
{
    if (result == 0)
        return program->has_failed ? NEOSETCTL_EXIT_ROLLOUT_FAILED : NEOSETCTL_EXIT_DONE;
    if (result == -ERROR_USAGE)
        return NEOSETCTL_EXIT_USAGE;
    const char *command = option_command_name(program->options);
    bool reads = str_equal(command, "get") || str_equal(command, "status") || str_equal(command, "why") ||
                 str_equal(command, "history") || str_equal(command, "continue");
    bool is_refusal = result == -ERROR_REFUSED || result == -ERROR_FORBIDDEN || result == -ERROR_INVALID;
    return !reads && is_refusal ? NEOSETCTL_EXIT_REFUSED : NEOSETCTL_EXIT_FAILED;
}

static int run(const struct option_program *table, const struct options *options)
{
    struct program program = {.table = table, .options = options};
    CLEANUP_ERROR struct error *err = NULL;
    struct look_wish wish = {.format = option_text(options, "output"),
                             .color = option_text(options, "color")};
    out_init(&program.out, STDOUT_FILENO);
    look_make(&wish, &program.look);
    const char *command = option_command_name(options);
    bool needs_server = !ctl_resize_has(command) || ctl_resize_needs_server(command);
    int r = needs_server ? ctl_server_open(options, &program.server, &err) : 0;
    if (r == 0)
        r = run_command(&program, &err);
    /* Also of what failed on its way: what was done is told. */
    int flushed = out_flush(&program.out, r == 0 ? &err : NULL);
    if (r == 0)
        r = flushed;
    if (r < 0)
        say(&program, error_text(err));
    out_done(&program.out);
    ctl_server_close(&program.server);
    return exit_of(&program, r);
}

int main(int argc, char **argv)
{
    standard_files_ensure();
    umask(077);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file size limit is a full disk, not the end */
    struct option_program table = neosetctl_program;
    if (argc > 0 && str_ends_with(argv[0], "kubectl-neoset"))
        table.name = "kubectl neoset";
    int exit_code = 0;
    CLEANUP_OPTIONS struct options *options = option_main(&table, argc, argv, &exit_code);
    CLEANUP_ERROR struct error *err = NULL;
    if (!options)
        return exit_code;
    if (open_files_ensure(table.name, &err) < 0) {
        fprintf(stderr, "%s: %s\n", table.name, error_text(err));
        return NEOSETCTL_EXIT_FAILED;
    }
    return run(&table, options);
}
