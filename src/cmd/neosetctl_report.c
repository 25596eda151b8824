/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl_report.h"
#include "audit/escape.h"
#include "base/time_text.h"

#include <inttypes.h>
#include <stdio.h>

enum { FINDINGS_MAX = 200, FINDING_BYTES_MAX = 64 * 1024 };

static bool is_text(const struct sheet_look *look)
{
    return look->format == SHEET_TABLE || look->format == SHEET_WIDE;
}

static enum sheet_tone tone_of_phase(const char *phase)
{
    if (str_equal(phase, "Completed") || str_equal(phase, "Idle"))
        return TONE_GOOD;
    return str_equal(phase, "Failed") ? TONE_BAD : TONE_WARN;
}

/* --- get
 * ---------------------------------------------------------------------------------------------------- */

enum {
    SET_NAME,
    SET_NAMESPACE,
    SET_WANTED,
    SET_REPLICAS,
    SET_READY,
    SET_UPDATED,
    SET_AVAILABLE,
    SET_PHASE,
    SET_CURRENT,
    SET_TARGET,
    SET_FENCE,
    SET_STAGE,
    SET_PAUSED,
    SET_AGE,
    SET_MESSAGE,
    SET_COLUMNS
};

static const struct sheet_column set_columns[SET_COLUMNS] = {
    [SET_NAME] = {"name", "NAME", SHEET_TEXT, IN_ALL, 2, false},
    [SET_NAMESPACE] = {"namespace", "NAMESPACE", SHEET_TEXT, IN_ALL, 1, false},
    [SET_WANTED] = {"wanted", "WANTED", SHEET_NUMBER, IN_WIDE | IN_DATA, 3, false},
    [SET_REPLICAS] = {"replicas", "REPLICAS", SHEET_NUMBER, IN_ALL, 4, false},
    [SET_READY] = {"ready", "READY", SHEET_NUMBER, IN_ALL, 5, false},
    [SET_UPDATED] = {"updated", "UPDATED", SHEET_NUMBER, IN_ALL, 6, false},
    [SET_AVAILABLE] = {"available", "AVAILABLE", SHEET_NUMBER, IN_WIDE | IN_DATA, 7, false},
    [SET_PHASE] = {"phase", "PHASE", SHEET_TEXT, IN_ALL, 8, false},
    [SET_CURRENT] = {"current_image", "CURRENT", SHEET_TEXT, IN_ALL, 9, true},
    [SET_TARGET] = {"target_image", "TARGET", SHEET_TEXT, IN_ALL, 10, true},
    [SET_FENCE] = {"fence", "FENCE", SHEET_NUMBER, IN_WIDE | IN_DATA, 11, false},
    [SET_STAGE] = {"stage", "STAGE", SHEET_NUMBER, IN_WIDE | IN_DATA, 12, false},
    [SET_PAUSED] = {"paused", "PAUSED", SHEET_BOOL, IN_WIDE | IN_DATA, 13, false},
    [SET_AGE] = {"age_s", "AGE", SHEET_DURATION, IN_ALL, 14, false},
    [SET_MESSAGE] = {"message", "MESSAGE", SHEET_TEXT, IN_WIDE | IN_DATA, 15, true},
};

static void set_cells(const struct set_view *set, int64_t now_us, struct sheet_cell *cells)
{
    cells[SET_NAME] = cell_text(set->name);
    cells[SET_NAMESPACE] = cell_text(set->namespace);
    cells[SET_WANTED] = cell_number(set->wanted);
    cells[SET_REPLICAS] = cell_number(set->replicas);
    cells[SET_READY] = cell_number(set->ready);
    cells[SET_UPDATED] = cell_number(set->updated);
    cells[SET_AVAILABLE] = cell_number(set->available);
    cells[SET_PHASE] = cell_text(set->phase);
    cells[SET_PHASE].tone = tone_of_phase(set->phase);
    cells[SET_CURRENT] = cell_text(set->current_image);
    cells[SET_TARGET] = cell_text(set->target_image);
    cells[SET_FENCE] = cell_number(set->fence);
    cells[SET_STAGE] = cell_number(set->stage);
    cells[SET_PAUSED] = cell_number(set->is_paused);
    cells[SET_AGE] = set->created_us < 0 ? cell_null() : cell_number(MAX(now_us - set->created_us, 0));
    cells[SET_MESSAGE] = cell_text(set->message);
}

int64_t ctl_report_sets(struct out *out, const struct sheet_look *look, const cJSON *objects, int64_t now_us,
                        bool has_namespaces)
{
    struct sheet_column columns[SET_COLUMNS];
    memcpy(columns, set_columns, sizeof columns);
    if (!has_namespaces)
        columns[SET_NAMESPACE].where = IN_DATA;
    struct sheet *sheet = sheet_begin(out, look, columns, SET_COLUMNS);
    const cJSON *object = NULL;
    cJSON_ArrayForEach (object, objects) {
        struct set_view set;
        struct sheet_cell cells[SET_COLUMNS];
        set_view_make(object, &set);
        set_cells(&set, now_us, cells);
        if (!sheet_row(sheet, cells))
            break;
    }
    return sheet_end(sheet);
}

/* --- status
 * ------------------------------------------------------------------------------------------------- */

enum {
    POD_NAME,
    POD_ORDINAL,
    POD_REVISION,
    POD_VERSION,
    POD_IMAGES,
    POD_READY,
    POD_RESTARTS,
    POD_WAITS_FOR,
    POD_TROUBLE,
    POD_COLUMNS
};

static const struct sheet_column pod_columns[POD_COLUMNS] = {
    [POD_NAME] = {"pod", "POD", SHEET_TEXT, IN_ALL, 1, false},
    [POD_ORDINAL] = {"ordinal", "ORDINAL", SHEET_NUMBER, IN_WIDE | IN_DATA, 2, false},
    [POD_REVISION] = {"revision", "REVISION", SHEET_TEXT, IN_ALL, 3, false},
    [POD_VERSION] = {"is", "IS", SHEET_TEXT, IN_ALL, 4, false},
    [POD_IMAGES] = {"images", "IMAGE", SHEET_TEXT, IN_ALL, 5, true},
    [POD_READY] = {"ready", "READY", SHEET_BOOL, IN_ALL, 6, false},
    [POD_RESTARTS] = {"restarts", "RESTARTS", SHEET_NUMBER, IN_ALL, 7, false},
    [POD_WAITS_FOR] = {"waits_for", "WAITS FOR", SHEET_TEXT, IN_ALL, 8, true},
    [POD_TROUBLE] = {"trouble", "TROUBLE", SHEET_BOOL, IN_DATA, 9, false},
};

static const char *version_text(const struct set_view *set, const struct pod_view *pod)
{
    if (pod->is_missing)
        return "missing";
    if (pod->version == POD_ON_TARGET)
        return str_equal(set->target_revision, set->stable_revision) ? "stable" : "target";
    return pod->version == POD_ON_STABLE ? "stable" : "other";
}

static void pod_cells(const struct set_view *set, const struct pod_view *pod, struct sheet_cell *cells)
{
    enum sheet_tone tone = pod->is_trouble ? TONE_BAD : TONE_WARN;
    cells[POD_NAME] = cell_text(pod->name);
    cells[POD_ORDINAL] = cell_number(pod->ordinal);
    cells[POD_REVISION] = cell_text(pod->revision);
    cells[POD_VERSION] = cell_text(version_text(set, pod));
    cells[POD_IMAGES] = cell_text(pod->images);
    cells[POD_READY] = cell_number(pod->is_ready);
    cells[POD_READY].tone = pod->is_ready ? TONE_GOOD : tone;
    cells[POD_RESTARTS] = cell_number(pod->restarts);
    cells[POD_WAITS_FOR] = cell_text(pod->waits_for);
    cells[POD_WAITS_FOR].tone = pod->is_ready ? TONE_NONE : tone;
    cells[POD_TROUBLE] = cell_number(pod->is_trouble);
}

/* "  fence      4"; the text is escaped. */
static void add_field(struct buf *text, const char *name, const char *value)
{
    buf_addf(text, "  %-10s ", name);
    escape_plain(text, *value ? value : "-");
    buf_add_char(text, '\n');
}

static const char *phase_text(const struct set_view *set)
{
    if (set->is_deleting)
        return "being deleted";
    return set->has_status ? set->phase : "not looked at yet";
}

static void add_head(struct buf *text, const struct sheet_look *look, const struct set_view *set)
{
    CLEANUP_FREE char *title = xasprintf("NeoSet %s in %s: ", set->name, set->namespace);
    CLEANUP_FREE char *counts = xasprintf(", %" PRId64 " of %" PRId64 " updated, %" PRId64 " ready",
                                          set->updated, set->wanted, set->ready);
    escape_plain(text, title);
    buf_add_text(text, sheet_tone_on(look, tone_of_phase(set->phase)));
    escape_plain(text, phase_text(set));
    buf_add_text(text, sheet_tone_off(look, tone_of_phase(set->phase)));
    buf_addf(text, "%s\n", counts);
}

static void add_summary(struct buf *text, const struct set_view *set)
{
    bool is_rolling = !str_equal(set->stable_revision, set->target_revision);
    CLEANUP_FREE char *revision = is_rolling
                                      ? xasprintf("%s -> %s", set->stable_revision, set->target_revision)
                                      : xstrdup(set->target_revision);
    CLEANUP_FREE char *image = is_rolling ? xasprintf("%s -> %s", set->current_image, set->target_image)
                                          : xstrdup(set->target_image);
    CLEANUP_FREE char *fence =
        set->fence > 0
            ? xasprintf("partition %" PRId64 ": pods with a lower ordinal are held back", set->fence)
            : xstrdup("none (partition 0): no pod is held back");
    CLEANUP_FREE char *stage = xasprintf("%" PRId64 " (opened so far: ordinals from it on)", set->stage);
    CLEANUP_FREE char *budget = xasprintf("%" PRId64 " may be unavailable", set->budget);
    add_field(text, "revision", revision);
    add_field(text, "image", image);
    add_field(text, "fence", fence);
    if (is_rolling)
        add_field(text, "stage", stage);
    add_field(text, "budget", budget);
    if (set->is_paused)
        add_field(text, "paused", "yes: no update is started");
    add_field(text, "message", set->message);
}

static void add_next(struct buf *text, const char *next)
{
    buf_add_text(text, "\nNext: ");
    escape_plain(text, next);
    buf_add_char(text, '\n');
}

static void add_pods(struct out *out, const struct sheet_look *look, const struct set_view *set,
                     const struct pod_views *pods)
{
    struct sheet *sheet = sheet_begin(out, look, pod_columns, POD_COLUMNS);
    for (size_t i = 0; i < pods->count; i++) {
        struct sheet_cell cells[POD_COLUMNS];
        pod_cells(set, &pods->items[i], cells);
        if (!sheet_row(sheet, cells))
            break;
    }
    sheet_end(sheet);
}

/* {"set": {...}, "pods": [...]}; YAML takes the same text. */
static void status_document(struct out *out, const struct sheet_look *look, const struct set_view *set,
                            const struct pod_views *pods)
{
    struct sheet_cell cells[MAX((int)SET_COLUMNS, (int)POD_COLUMNS)] = {0};
    set_cells(set, set->created_us, cells);
    cells[SET_AGE] = cell_null();
    buf_add_text(&out->text, "{\"set\": ");
    sheet_add_json_row(&out->text, look, set_columns, SET_COLUMNS, cells);
    CLEANUP_FREE char *next = set_view_next(set, pods, NULL);
    buf_add_text(&out->text, ",\n \"next\": ");
    escape_json(&out->text, next);
    buf_add_text(&out->text, ",\n \"pods\": [");
    for (size_t i = 0; i < pods->count; i++) {
        pod_cells(set, &pods->items[i], cells);
        buf_add_text(&out->text, i > 0 ? ",\n  " : "\n  ");
        sheet_add_json_row(&out->text, look, pod_columns, POD_COLUMNS, cells);
    }
    buf_add_text(&out->text, pods->count > 0 ? "\n ]}\n" : "]}\n");
}

void ctl_report_status(struct out *out, const struct sheet_look *look, const struct set_view *set,
                       const struct pod_views *pods)
{
    if (look->format == SHEET_JSON || look->format == SHEET_YAML) {
        status_document(out, look, set, pods);
        return;
    }
    if (!is_text(look)) {
        add_pods(out, look, set, pods);
        return;
    }
    add_head(&out->text, look, set);
    add_summary(&out->text, set);
    buf_add_char(&out->text, '\n');
    add_pods(out, look, set, pods);
    CLEANUP_FREE char *next = set_view_next(set, pods, NULL);
    add_next(&out->text, next);
}

/* --- history
 * ------------------------------------------------------------------------------------------------ */

enum {
    REVISION_NUMBER,
    REVISION_NAME,
    REVISION_IMAGES,
    REVISION_IS,
    REVISION_PODS,
    REVISION_AGE,
    REVISION_COLUMNS
};

static const struct sheet_column revision_columns[REVISION_COLUMNS] = {
    [REVISION_NUMBER] = {"revision", "REVISION", SHEET_NUMBER, IN_ALL, 1, false},
    [REVISION_NAME] = {"name", "NAME", SHEET_TEXT, IN_ALL, 2, false},
    [REVISION_IMAGES] = {"images", "IMAGES", SHEET_TEXT, IN_ALL, 3, true},
    [REVISION_IS] = {"is", "IS", SHEET_TEXT, IN_ALL, 4, false},
    [REVISION_PODS] = {"pods", "PODS", SHEET_NUMBER, IN_ALL, 5, false},
    [REVISION_AGE] = {"age_s", "AGE", SHEET_DURATION, IN_ALL, 6, false},
};

void ctl_report_history(struct out *out, const struct sheet_look *look, const struct set_view *set,
                        const struct revision_views *revisions, int64_t now_us)
{
    struct sheet *sheet = sheet_begin(out, look, revision_columns, REVISION_COLUMNS);
    for (size_t i = 0; i < revisions->count; i++) {
        const struct revision_view *revision = &revisions->items[i];
        bool is_stable = str_equal(revision->name, set->stable_revision);
        bool is_target = str_equal(revision->name, set->target_revision);
        struct sheet_cell cells[REVISION_COLUMNS] = {
            [REVISION_NUMBER] = cell_number(revision->number),
            [REVISION_NAME] = cell_text(revision->name),
            [REVISION_IMAGES] = cell_text(revision->images),
            [REVISION_IS] = cell_text(is_stable ? "stable" : (is_target ? "target" : NULL)),
            [REVISION_PODS] = cell_number(revision->pods),
            [REVISION_AGE] =
                revision->created_us < 0 ? cell_null() : cell_number(MAX(now_us - revision->created_us, 0)),
        };
        if (!sheet_row(sheet, cells))
            break;
    }
    sheet_end(sheet);
}

/* --- why
 * ---------------------------------------------------------------------------------------------------- */

/* What was found, in the order of weight, from where. */
struct findings {
    char *texts[FINDINGS_MAX];
    const char *sources[FINDINGS_MAX]; /* "status", "condition", "pod", "journal" */
    size_t count;
    int64_t left_out;
};

static void find(struct findings *findings, const char *source, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void find(struct findings *findings, const char *source, const char *format, ...)
{
    if (findings->count == FINDINGS_MAX) {
        findings->left_out++;
        return;
    }
    va_list args;
    va_start(args, format);
    findings->sources[findings->count] = source;
    findings->texts[findings->count++] = xvasprintf(format, args);
    va_end(args);
}

static void find_in_set(const struct set_view *set, struct findings *findings)
{
    if (set->is_deleting)
        find(findings, "set", "the set is being deleted");
    if (!set->has_status)
        find(findings, "set", "no controller has looked at the set yet: is neoset-controller running?");
    else if (set->observed_generation < set->generation)
        find(findings, "set",
             "the controller has not seen generation %" PRId64 " of the set yet (it saw %" PRId64
             "): is neoset-controller running?",
             set->generation, set->observed_generation);
    if (*set->message)
        find(findings, "status", "%s", set->message);
    if (set->is_paused && !*set->message)
        find(findings, "set", "the set is paused: no update is started");
    const cJSON *condition = NULL;
    cJSON_ArrayForEach (condition, set->conditions) {
        const char *type = json_str(condition, "type");
        const char *status = json_str(condition, "status");
        const char *reason = json_str(condition, "reason");
        const char *message = json_str(condition, "message");
        bool is_bad = str_equal(type, "Stalled") ? str_equal(status, "True") : str_equal(status, "False");
        bool is_said = message && str_equal(message, set->message);
        if (type && is_bad && !is_said)
            find(findings, "condition", "%s is %s: %s%s%s", type, status, reason ? reason : "no reason given",
                 message && *message ? ": " : "", message ? message : "");
    }
}

static void find_in_pods(const struct pod_views *pods, struct findings *findings)
{
    for (int trouble = 1; trouble >= 0; trouble--) {
        for (size_t i = 0; i < pods->count; i++) {
            const struct pod_view *pod = &pods->items[i];
            if (pod->is_trouble == (trouble == 1) && *pod->waits_for)
                find(findings, "pod", "%s: %s", pod->name, pod->waits_for);
        }
    }
}

/* Which operations of the journal are the set's, and still open. */
struct journal_search {
    struct audit *audit;
    const struct audit_journal *journal;
    const struct set_view *set;
    struct findings *findings;
    int64_t operations[FINDINGS_MAX];
    size_t count;
};

static bool note_open_operation(void *context, const struct journal_operation_record *operation)
{
    struct journal_search *search = context;
    if (search->count == FINDINGS_MAX)
        return false;
    search->operations[search->count++] = operation->id;
    char age[TIME_TEXT_SIZE];
    duration_format(MAX(search->audit->now_us - operation->begun_us, 0), age);
    find(search->findings, "journal", "operation %" PRId64 ", %s %s -> %s, is open for %s", operation->id,
         operation->kind, *operation->come_from ? operation->come_from : "-",
         *operation->go_to ? operation->go_to : "-", age);
    return true;
}

static bool note_wait(void *context, const struct journal_wait_record *wait)
{
    struct journal_search *search = context;
    char spent[TIME_TEXT_SIZE];
    char budget[TIME_TEXT_SIZE];
    duration_format(audit_wait_spent_us(search->audit, search->journal, wait), spent);
    duration_format(MAX(wait->budget_us, 0), budget);
    find(search->findings, "journal", "waits for %s of %s/%s: %s of %s spent%s%s%s", wait->begin.action,
         wait->begin.object, wait->begin.name, spent, budget, wait->held ? ", on hold" : "",
         wait->begin.reason ? ": " : "", wait->begin.reason ? wait->begin.reason : "");
    return true;
}

static bool note_step(void *context, const struct journal_step_record *step)
{
    struct journal_search *search = context;
    bool is_ours = false;
    for (size_t i = 0; i < search->count && !is_ours; i++)
        is_ours = step->intent.operation == search->operations[i];
    if (!is_ours)
        return true;
    char age[TIME_TEXT_SIZE];
    duration_format(MAX(search->audit->now_us - step->intent.at_us, 0), age);
    find(search->findings, "journal", "step %s (%s of %s/%s) is %s for %s, sent %d time%s", step->key,
         step->intent.action, step->intent.object, step->intent.name,
         step->in_flight ? "under way" : "in doubt", age, step->attempts, step->attempts == 1 ? "" : "s");
    return true;
}

/* The path of one that no controller writes, or NULL. */
static const char *find_dead_journal(const struct audit *audit, struct findings *findings)
{
    const char *dead = NULL;
    for (size_t i = 0; i < audit->count; i++) {
        const struct journal_meta *meta = audit->journals[i].meta;
        if (meta->lives)
            continue;
        dead = meta->path;
        find(findings, "journal", "no controller is running on %s (unless that is a copy)", meta->path);
    }
    return dead;
}

static int find_in_journal(struct audit *audit, const struct set_view *set, struct findings *findings,
                           struct error **err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < audit->count; i++) {
        struct journal_search search = {
            .audit = audit, .journal = &audit->journals[i], .set = set, .findings = findings};
        struct journal_reader *reader = audit->journals[i].reader;
        struct journal_operation_filter open = {.object = "NeoSet",
                                                .namespace = set->namespace,
                                                .name = set->name,
                                                .outcome = "open",
                                                .oldest_first = true};
        r = journal_read_operations(reader, &open, note_open_operation, &search, err);
        for (size_t j = 0; r == 0 && j < search.count; j++) {
            struct journal_wait_filter waits = {.operation = search.operations[j], .open_only = true};
            r = journal_read_waits(reader, &waits, note_wait, &search, err);
        }
        if (r == 0)
            r = journal_read_open_steps(reader, note_step, &search, err);
    }
    return r;
}

enum { WHY_SOURCE, WHY_TEXT, WHY_COLUMNS };
static const struct sheet_column why_columns[WHY_COLUMNS] = {
    [WHY_SOURCE] = {"source", "SOURCE", SHEET_TEXT, IN_ALL, 1, false},
    [WHY_TEXT] = {"text", "TEXT", SHEET_TEXT, IN_ALL, 2, false},
};

static void why_rows(struct out *out, const struct sheet_look *look, const struct findings *findings,
                     const char *next)
{
    struct sheet *sheet = sheet_begin(out, look, why_columns, WHY_COLUMNS);
    bool goes_on = true;
    for (size_t i = 0; goes_on && i < findings->count; i++) {
        struct sheet_cell cells[WHY_COLUMNS] = {cell_text(findings->sources[i]),
                                                cell_text(findings->texts[i])};
        goes_on = sheet_row(sheet, cells);
    }
    struct sheet_cell cells[WHY_COLUMNS] = {cell_text("next"), cell_text(next)};
    if (goes_on)
        sheet_row(sheet, cells);
    sheet_end(sheet);
}

int ctl_report_why(struct out *out, const struct sheet_look *look, const struct set_view *set,
                   const struct pod_views *pods, struct audit *journal, struct error **err)
{
    CLEANUP_FREE struct findings *findings = xcalloc(1, sizeof *findings);
    const char *dead_journal = journal ? find_dead_journal(journal, findings) : NULL;
    CLEANUP_FREE char *next = set_view_next(set, pods, dead_journal);
    find_in_set(set, findings);
    find_in_pods(pods, findings);
    int r = journal ? find_in_journal(journal, set, findings, err) : 0;
    if (r == 0 && is_text(look)) {
        add_head(&out->text, look, set);
        for (size_t i = 0; i < findings->count; i++)
            add_field(&out->text, findings->sources[i], findings->texts[i]);
        if (findings->left_out > 0)
            buf_addf(&out->text, "  ... and %" PRId64 " more\n", findings->left_out);
        if (findings->count == 0)
            buf_add_text(&out->text, "  nothing is waited for\n");
        add_next(&out->text, next);
    } else if (r == 0) {
        why_rows(out, look, findings, next);
    }
    for (size_t i = 0; i < findings->count; i++)
        free(findings->texts[i]);
    return r;
}
