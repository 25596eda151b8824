/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/converge.h"

#include "base/time_text.h"
#include "cmd/neosetctl/session.h"
#include "kube/resource.h"
#include "volume/decide.h"
#include "volume/drive.h"

/* How often a wait that goes on is said again. */
#define SAY_AGAIN_US (15 * US_PER_S)

struct run {
    const struct ctl_converge *wanted;
    struct ctl_session session;
    struct drive *drive;
    int64_t began_us;
    bool plans_only;
    bool needs_gateway; /* the drive waits for one */
    bool is_ended;
    enum error_code code; /* of the end */
    char *sentence;
    char *waits_for; /* what was said last */
    int64_t waits_since_us, said_us;
    bool was_ill; /* the journal, when it was asked last */
};

/* --- saying --------------------------------------------------------------------------------------------- */

static void say(const struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(const struct run *run, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *line = xvasprintf(format, args);
    va_end(args);
    out_say(run->wanted->out, line);
}

/* Each wait once, and again when it takes long, with how long. */
static void say_wait(struct run *run, const char *phrase)
{
    int64_t now_us = env_boot_us(run->wanted->server->env);
    if (!str_equal(phrase, run->waits_for)) {
        str_replace(&run->waits_for, phrase);
        run->waits_since_us = run->said_us = now_us;
        if (phrase)
            say(run, "waiting: %s", phrase);
    } else if (phrase && now_us - run->said_us >= SAY_AGAIN_US) {
        char since[TIME_TEXT_SIZE];
        duration_format(now_us - run->waits_since_us, since);
        run->said_us = now_us;
        say(run, "waiting: %s (for %s)", phrase, since);
    }
}

/* Why the journal takes nothing: without it nothing is sent, whatever else is waited for. NULL: it is well.
 */
static const char *journal_trouble(const struct run *run)
{
    const struct journal *journal = run->session.journal;
    return journal && journal_health(journal) != JOURNAL_WELL ? journal_problem(journal) : NULL;
}

static void say_journal(struct run *run)
{
    const char *trouble = journal_trouble(run);
    if (trouble || run->was_ill)
        say_wait(run, trouble);
    run->was_ill = trouble;
}

static bool has_written(const struct run *run)
{
    const struct converge *converge = drive_converge(run->drive);
    return converge && converge_has_written(converge);
}

static int out_of_time(const struct run *run, struct error **err)
{
    const struct ctl_converge *wanted = run->wanted;
    const char *why = run->session.is_interrupted ? "interrupted" : "out of time";
    const char *trouble = journal_trouble(run);
    const char *what = trouble          ? trouble
                       : run->waits_for ? run->waits_for
                                        : "nothing is known to be in the way";
    if (!has_written(run))
        return error_set(err, ERROR_TIMED_OUT, "%s, nothing was written: %s", why, what);
    return error_set(err, ERROR_TIMED_OUT, "%s: %s; nothing is lost: `neosetctl continue -n %s` goes on", why,
                     what, wanted->namespace);
}

/* A full disk is waited for, a dead journal is not: it takes nothing any more. Where it was deleted, and
 * nothing is kept in the cluster yet, only the command that began it knows what was wanted. */
static int journal_died(const struct run *run, struct error **err)
{
    return error_set(
        err, ERROR_FAILED,
        "StatefulSet %s in namespace %s: your journal takes nothing any more, so nothing more is "
        "written: %s; then `neosetctl continue -n %s`, or the command that began it, goes on",
        run->wanted->name, run->wanted->namespace, journal_problem(run->session.journal),
        run->wanted->namespace);
}

/* --- what the drive says -------------------------------------------------------------------------------- */

static bool looks(void *context, const char *phrase)
{
    struct run *run = context;
    const char *trouble = journal_trouble(run);
    say_wait(run, trouble ? trouble : phrase);
    return true;
}

static void applied(void *context, const char *reason)
{
    say(context, "%s", reason);
}

static void needs_gateway(void *context)
{
    struct run *run = context;
    run->needs_gateway = true;
    env_stop(run->wanted->server->env);
}

static void has_ended(void *context, enum error_code code, const char *sentence)
{
    struct run *run = context;
    run->is_ended = true;
    run->code = code;
    run->sentence = xstrdup(sentence);
    env_stop(run->wanted->server->env);
}

/* --- turns ---------------------------------------------------------------------------------------------- */

/* Another set's growth that this user began and did not end. */
static void note_other(void *context, const struct journal_open_operation *operation)
{
    const struct run *run = context;
    const struct ctl_converge *wanted = run->wanted;
    bool is_own =
        str_equal(operation->name, wanted->name) && str_equal(operation->namespace, wanted->namespace);
    if (str_equal(operation->action, CONVERGE_OPERATION) && !is_own)
        say(run,
            "note: growing the volumes of StatefulSet %s in namespace %s was begun and not ended: `neosetctl "
            "continue -n %s` goes on",
            operation->name, operation->namespace, operation->namespace);
}

/* The journal is made before the first write, and not for a refusal. */
static int open_session(struct run *run, struct error **err)
{
    const struct ctl_converge *wanted = run->wanted;
    struct kube_ref object = run->session.object;
    int64_t limit_us = MAX(1, wanted->limit_us - (env_boot_us(wanted->server->env) - run->began_us));
    ctl_session_close(&run->session, CONVERGE_OPERATION, NULL, NULL);
    int r = ctl_session_open(&run->session, wanted->server, &object, limit_us, err);
    if (r == 0)
        journal_open_operations_each(run->session.journal, note_other, run);
    return r;
}

static int give_gateway(struct run *run, struct error **err)
{
    int r = open_session(run, err);
    run->needs_gateway = false;
    if (r == 0)
        drive_take_gateway(run->drive, run->session.gateway, run->session.journal);
    return r;
}

/* "Refused" is said of what was not begun. */
static int ended(const struct run *run, struct error **err)
{
    if (run->code == ERROR_NONE)
        return 0;
    bool is_refusal =
        run->code == ERROR_REFUSED || run->code == ERROR_INVALID || run->code == ERROR_FORBIDDEN;
    return error_set(err, is_refusal && has_written(run) ? ERROR_FAILED : run->code, "%s", run->sentence);
}

static int run_until_ended(struct run *run, struct error **err)
{
    int r = 0;
    while (r == 0 && !run->is_ended) {
        if (ctl_session_is_over(&run->session))
            return out_of_time(run, err);
        if (run->session.journal && journal_health(run->session.journal) == JOURNAL_DEAD)
            return journal_died(run, err);
        say_journal(run);
        if (run->session.is_woken) {
            run->session.is_woken = false;
            drive_wake(run->drive);
        } else if (run->needs_gateway) {
            r = give_gateway(run, err);
        } else {
            env_run(run->wanted->server->env);
        }
    }
    return r < 0 ? r : ended(run, err);
}

/* --- the whole ------------------------------------------------------------------------------------------ */

static struct drive *start_drive(struct run *run)
{
    const struct ctl_converge *wanted = run->wanted;
    return drive_start(
        &(struct drive_options){.env = wanted->server->env,
                                .client = wanted->server->client,
                                .writer = "neosetctl",
                                .timeout_us = wanted->server->timeout_us,
                                .converge = {.namespace = wanted->namespace,
                                             .name = wanted->name,
                                             .desired = wanted->desired,
                                             .sizes = wanted->sizes,
                                             .field_manager = wanted->field_manager,
                                             .is_forced = wanted->is_forced,
                                             .unready_will_do = wanted->unready_will_do,
                                             .waits_for_file_system = wanted->waits_for_file_system,
                                             .recovers = wanted->recovers,
                                             .plans_only = run->plans_only},
                                .come_from = wanted->come_from,
                                .gateway = run->session.gateway,
                                .journal = run->session.journal,
                                .needs_gateway = needs_gateway,
                                .looks = looks,
                                .applied = applied,
                                .ended = has_ended,
                                .context = run});
}

/* Where there is a journal, what an earlier run left in doubt is taken up before anything is looked at. */
static int run_drive(struct run *run, const struct ctl_converge *wanted, bool plans_only, struct error **err)
{
    struct kube_ref object = {KUBE_STATEFULSET, wanted->namespace, wanted->name};
    *run = (struct run){
        .wanted = wanted, .began_us = env_boot_us(wanted->server->env), .plans_only = plans_only};
    ctl_session_open_dry(&run->session, wanted->server, &object, wanted->limit_us);
    CLEANUP_FREE char *journal = ctl_session_find_journal();
    int r = !plans_only && journal ? open_session(run, err) : 0;
    if (r < 0)
        return r;
    run->drive = start_drive(run);
    return run_until_ended(run, err);
}

static void finish(struct run *run, bool is_done)
{
    drive_free(run->drive);
    /* Not done: it stays open in the journal, to be gone on with. */
    ctl_session_close(&run->session, CONVERGE_OPERATION, is_done ? "completed" : NULL, NULL);
    free(run->sentence);
    free(run->waits_for);
}

/* A name that was mistyped has nothing to converge either: refused, as apply refuses it. Who may not read the
 * namespace is believed; what was begun is over with its namespace. */
static int check_namespace(const struct run *run, struct error **err)
{
    const char *name = run->wanted->namespace;
    CLEANUP_FREE char *escaped = kube_percent_encode(name);
    CLEANUP_FREE char *path = xasprintf("/api/v1/namespaces/%s", escaped);
    CLEANUP_FREE char *what = xasprintf("namespace %s", name);
    CLEANUP_JSON cJSON *namespace = NULL;
    if (!run->wanted->desired || has_written(run) ||
        ctl_get(run->wanted->server, path, what, &namespace, NULL) != -ERROR_NOT_FOUND)
        return 0;
    return error_set(
        err, ERROR_REFUSED,
        "StatefulSet %s: there is no namespace %s: name the set's own, or make it (kubectl create "
        "namespace %s)",
        run->wanted->name, name, name);
}

int ctl_converge(const struct ctl_converge *wanted, struct error **err)
{
    struct run run;
    int r = run_drive(&run, wanted, false, err);
    r = r == 0 ? check_namespace(&run, err) : r;
    if (r == 0)
        say(&run, "%s", run.sentence);
    finish(&run, r == 0);
    return r;
}

/* --- the plan ------------------------------------------------------------------------------------------- */

static void show_plan(const struct ctl_converge *wanted, const struct volume_decision *decision)
{
    static const struct sheet_column columns[] = {
        {.name = "claim", .title = "CLAIM", .type = SHEET_TEXT, .where = IN_ALL},
        {.name = "class", .title = "CLASS", .type = SHEET_TEXT, .where = IN_ALL},
        {.name = "from", .title = "FROM", .type = SHEET_TEXT, .where = IN_ALL},
        {.name = "to", .title = "TO", .type = SHEET_TEXT, .where = IN_ALL},
    };
    struct sheet *sheet = sheet_begin(wanted->out, wanted->look, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < decision->claims.count; i++) {
        const struct volume_item *claim = &decision->claims.items[i];
        struct sheet_cell cells[] = {cell_text(claim->name), cell_text(claim->class), cell_text(claim->from),
                                     cell_text(claim->to)};
        sheet_row(sheet, cells);
    }
    sheet_end(sheet);
}

int ctl_converge_check(const struct ctl_converge *wanted, struct error **err)
{
    struct run run;
    int r = run_drive(&run, wanted, true, err);
    finish(&run, false);
    return r;
}

int ctl_converge_plan(const struct ctl_converge *wanted, struct error **err)
{
    struct run run;
    int r = run_drive(&run, wanted, true, err);
    r = r == 0 ? check_namespace(&run, err) : r;
    const struct converge *converge = run.drive ? drive_converge(run.drive) : NULL;
    const struct volume_decision *decision = converge ? converge_decision(converge) : NULL;
    if (decision && wanted->look->format == SHEET_JSON) {
        CLEANUP_JSON cJSON *tree = volume_decision_json(decision);
        CLEANUP_FREE char *text = json_print(tree);
        buf_add_text(&wanted->out->text, text);
        buf_add_char(&wanted->out->text, '\n');
        (void)out_flush(wanted->out, NULL);
    } else if (r == 0) {
        if (decision && decision->claims.count > 0)
            show_plan(wanted, decision);
        say(&run, "%s", run.sentence);
    }
    finish(&run, false);
    return r;
}
