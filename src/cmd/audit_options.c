/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/audit_options.h"
#include "audit/when.h"
#include "cmd/library_text.h"

#define COMMANDS(X)                                                                                          \
    X(LIST)                                                                                                  \
    X(SHOW)                                                                                                  \
    X(TIMELINE)                                                                                              \
    X(EXPORT)                                                                                                \
    X(IN_DOUBT)                                                                                              \
    X(RUNS)                                                                                                  \
    X(VERIFY)                                                                                                \
    X(BACKUP)                                                                                                \
    X(TAIL)

enum {
#define X(name) INDEX_##name,
    COMMANDS(X)
#undef X
};

#define OF(name) (UINT64_C(1) << INDEX_##name)
#define ROWS (OF(LIST) | OF(TIMELINE) | OF(EXPORT) | OF(IN_DOUBT) | OF(TAIL))
#define SHOWN (~OF(BACKUP))

static const struct option_command commands[] = {
    [INDEX_LIST] = {.name = "list", .help = "operations, newest first"},
    [INDEX_SHOW] = {.name = "show",
                    .arguments = "OP",
                    .help = "one operation: every step with its before and after, waits, attempts, runs",
                    .arguments_min = 1,
                    .arguments_max = 1},
    [INDEX_TIMELINE] =
        {.name = "timeline",
         .arguments = "[OP]",
         .help = "operations on a time axis: a bar for each step and each wait, restarts marked",
         .more = "Without OP: those that the filters find (the ten newest), oldest first; without filters "
                 "the newest one.",
         .arguments_max = 1},
    [INDEX_EXPORT] = {.name = "export",
                      .arguments = "[entries|operations|steps]",
                      .help = "the history as CSV or JSON lines, oldest first",
                      .more = "A text that a spreadsheet may take for a formula gets a leading ' "
                              "(not with --csv-raw); control characters are escaped. Times are "
                              "texts, durations seconds; what is not there is empty or "
                              "null.\nColumns are stable, new ones are added at the end:\nentries: "
                              "seq, at, kind, run, epoch, mono_us, operation, step, attempt, action, "
                              "object, namespace, name, uid, version, http, audit_id, reason, "
                              "detail, digest, hash, form, journal\noperations: id, begun, ended, "
                              "kind, object, namespace, name, from, to, outcome, duration_s, steps, "
                              "attempts, retries, journal\nsteps: step, key, state, operation, run, "
                              "action, object, namespace, name, uid, version, begun, ended, "
                              "duration_s, outcome, http, attempts, reason, outcome_reason, "
                              "version_after, digest, age_s, journal",
                      .arguments_max = 1},
    [INDEX_IN_DOUBT] =
        {.name = "in-doubt",
         .help = "steps of which nobody knows whether the server did them; those under way are marked"},
    [INDEX_RUNS] = {.name = "runs", .help = "starts of the controller, with how each ended"},
    [INDEX_VERIFY] =
        {.name = "verify",
         .help = "the hash chain, what is derived from it, SQLite's own check",
         .more =
             "A tail that was cut off cannot be seen in the file alone: give the newest head that was "
             "published with --head: the Lease's annotation apps.neo.io/journal-head as it is, or what an "
             "earlier verify printed."},
    [INDEX_BACKUP] = {.name = "backup",
                      .arguments = "FILE",
                      .help = "a consistent copy, also while the controller writes",
                      .more = "A plain copy of a live file shows old rows: this does not.",
                      .arguments_min = 1,
                      .arguments_max = 1,
                      .is_file = true},
    [INDEX_TAIL] =
        {.name = "tail",
         .help = "the newest entries; -f: and those to come",
         .more =
             "With --cursor-file each entry is delivered once over many calls, the first call begins with "
             "the oldest one."},
    {0},
};

static const struct option_spec specs[] = {
    {.name = "journal",
     .value = "FILE",
     .help = "the journal to read; several are read as one history",
     .variable = "NEOSET_JOURNAL",
     .fallback_text = "the controller's default",
     .repeats = true,
     .is_file = true},
    {.name = "output",
     .letter = 'o',
     .value = "FORMAT",
     .help = "how to show it",
     .choices = SHEET_FORMATS,
     .fallback_text = "table, export: csv",
     .commands = SHOWN},
    {.name = "for",
     .value = "KIND/NAME",
     .help = "what has to do with this object, as in NeoSet/mysql or pod/mysql-3",
     .commands = ROWS},
    {.name = "namespace", .letter = 'n', .value = "NS", .help = "only this namespace", .commands = ROWS},
    {.name = "all-namespaces", .letter = 'A', .help = "all namespaces (as without -n)", .commands = ROWS},
    {.name = "kind",
     .value = "KIND",
     .help = "operations (rollout, scale ...), steps (update-in-place ...) or entries (intent,applied ...) "
             "of this kind",
     .commands = ROWS},
    {.name = "outcome",
     .value = "OUTCOME",
     .help =
         "operations (completed, failed ...) or steps (applied, rejected ...) that ended so; open: not yet",
     .commands = OF(LIST) | OF(TIMELINE) | OF(EXPORT)},
    {.name = "since",
     .value = "TIME",
     .help = "from this time on: 2026-11-30T07:38:15Z, 2026-11-30 (UTC), -2h, today, yesterday",
     .commands = (ROWS | OF(RUNS)) & ~OF(IN_DOUBT)},
    {.name = "until",
     .value = "TIME",
     .help = "before this time",
     .commands = (ROWS | OF(RUNS)) & ~OF(IN_DOUBT)},
    {.name = "limit",
     .value = "N",
     .help = "at most N rows; 0: all",
     .commands = (ROWS | OF(RUNS)) & ~OF(TAIL)},
    {.name = "check", .help = "exit with 5 when a step is in doubt", .commands = OF(IN_DOUBT)},
    {.name = "older-than",
     .value = "AGE",
     .help = "only steps of at least this age, as in 30s",
     .commands = OF(IN_DOUBT)},
    {.name = "quick", .help = "leave out SQLite's own check", .commands = OF(VERIFY)},
    {.name = "head",
     .value = "ID:SEQ:HASH",
     .help = "a head that was published (or the Lease's annotation): the journal must contain it",
     .commands = OF(VERIFY),
     .repeats = true},
    {.name = "follow", .letter = 'f', .help = "go on with entries as they come", .commands = OF(TAIL)},
    {.name = "last",
     .value = "N",
     .help = "begin with the N newest entries",
     .fallback_text = "10",
     .commands = OF(TAIL)},
    {.name = "cursor-file",
     .value = "FILE",
     .help = "remember there what was delivered",
     .commands = OF(TAIL),
     .is_file = true},
    {.name = "csv-raw", .help = "no leading ' in CSV: for machines, not for spreadsheets", .commands = SHOWN},
    {.name = "local", .help = "times in the local zone instead of UTC", .commands = SHOWN},
    {.name = "color",
     .value = "WHEN",
     .help = "colours",
     .fallback = "auto",
     .choices = "auto|always|never",
     .commands = SHOWN},
    {.name = "width",
     .value = "COLUMNS",
     .help = "width of the timeline, and of tables on a terminal",
     .fallback_text = "the terminal's, else 100",
     .commands = SHOWN},
    {0},
};

static const struct option_example examples[] = {
    {"list", "What happened in the last two hours", "neoset-audit list --journal journal.db --since -2h"},
    {"list", "All rollouts of one set that failed",
     "neoset-audit list --for NeoSet/mysql -n prod --kind rollout --outcome failed"},
    {"show", "One of them in every detail", "neoset-audit show 1234"},
    {"timeline", "The same as a picture", "neoset-audit timeline 1234"},
    {"timeline", "What was done to one pod", "neoset-audit timeline --for pod/mysql-3 -n prod"},
    {"export", "For a spreadsheet", "neoset-audit export operations --since 2026-11-01 > november.csv"},
    {"export", "Every entry, for a program", "neoset-audit export entries -o jsonl > history.jsonl"},
    {"in-doubt", "For monitoring: is anything in doubt for longer than a minute?",
     "neoset-audit in-doubt --check --older-than 1m"},
    {"verify", "Was the history tampered with, or cut off?", "neoset-audit verify --head ID:SEQ:HASH"},
    {"backup", "A copy that can be read anywhere", "neoset-audit backup /backup/journal.db"},
    {"tail", "Ship new entries every minute, each once",
     "neoset-audit tail -o jsonl --cursor-file /var/lib/ship/cursor"},
    {0},
};

static const struct option_exit exits[] = {
    {AUDIT_EXIT_DONE, "done", 0},
    {AUDIT_EXIT_FAILED, "failure (the journal cannot be read, the output cannot be written)", 0},
    {AUDIT_EXIT_USAGE, "wrong usage", 0},
    {AUDIT_EXIT_NOT_FOUND,
     "not found: no such operation (show, timeline), nothing about such an object (timeline)",
     OF(SHOW) | OF(TIMELINE)},
    {AUDIT_EXIT_BROKEN, "verification failed: the journal was changed, went back, or forked", 0},
    {AUDIT_EXIT_IN_DOUBT, "steps are in doubt (in-doubt --check)", OF(IN_DOUBT)},
    {0},
};

const struct option_program audit_program = {
    .name = "neoset-audit",
    .summary = "what neoset's controller did, when, why and how long it took",
    .description =
        "Reads one or more journals, read-only, also while the controller writes, and also from a copy or a "
        "read-only "
        "mount.\nSeveral --journal are read as one history, merged by time; ids are then shown as <first "
        "digits of the "
        "journal's id>:<number>.\nThe same reads what a person did with neosetctl: --journal "
        "~/.local/state/neoset/neosetctl.db (in $XDG_STATE_HOME, where that is set).\nTimes are in UTC. Data "
        "goes to stdout, everything else to stderr.",
    .examples = examples,
    .commands = commands,
    .options = specs,
    .exits = exits,
    .usage_exit = AUDIT_EXIT_USAGE,
    .details = library_text,
    .see_also = "neoset-controller(1), neosetctl(1)",
};

static bool takes(const struct options *options, const char *name)
{
    uint64_t bit = UINT64_C(1) << option_command_index(options);
    for (const struct option_spec *spec = specs; spec->name; spec++)
        if (str_equal(spec->name, name))
            return spec->commands == 0 || (spec->commands & bit) != 0;
    UNREACHABLE();
}

static int filter_times(const struct options *options, int64_t now_us, struct audit_filter *ret,
                        struct error **err)
{
    const char *since = option_text(options, "since");
    const char *until = option_text(options, "until");
    int r = since ? when_parse(since, now_us, &ret->since_us, err) : 0;
    if (r < 0)
        return error_wrap(err, r, "--since");
    r = until ? when_parse(until, now_us, &ret->until_us, err) : 0;
    if (r < 0)
        return error_wrap(err, r, "--until");
    if (ret->since_us != 0 && ret->until_us != 0 && ret->since_us >= ret->until_us)
        return error_set(err, ERROR_USAGE, "--since %s is not before --until %s", since, until);
    return 0;
}

int audit_options_filter(const struct options *options, int64_t now_us, struct audit_filter *ret,
                         char **ret_memory, struct error **err)
{
    *ret = (struct audit_filter){0};
    if (takes(options, "namespace"))
        ret->namespace = option_text(options, "namespace");
    if (ret->namespace && !*ret->namespace)
        return error_set(err, ERROR_USAGE, "--namespace \"\": give a name, or --all-namespaces");
    if (ret->namespace && option_flag(options, "all-namespaces"))
        return error_set(err, ERROR_USAGE,
                         "--namespace and --all-namespaces contradict each other: give one of them");
    if (takes(options, "kind"))
        ret->kind = option_text(options, "kind");
    if (takes(options, "outcome"))
        ret->outcome = option_text(options, "outcome");
    int r = takes(options, "since") ? filter_times(options, now_us, ret, err) : 0;
    if (r == 0 && takes(options, "limit"))
        r = option_number(options, "limit", INT64_C(1000000000), &ret->limit, err);
    if (r == 0 && takes(options, "for") && option_text(options, "for"))
        r = audit_parse_for(option_text(options, "for"), ret, ret_memory, err);
    return r;
}

int audit_exit_of(int result)
{
    switch (result) {
    case 0:
        return AUDIT_EXIT_DONE;
    case -ERROR_USAGE:
        return AUDIT_EXIT_USAGE;
    case -ERROR_NOT_FOUND:
        return AUDIT_EXIT_NOT_FOUND;
    case -ERROR_FORKED:
        return AUDIT_EXIT_BROKEN;
    default:
        return AUDIT_EXIT_FAILED;
    }
}
