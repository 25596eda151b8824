/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a set stands where it stands: the one cause that weighs most, what else is known, from the cluster and
 * from the controller's journal. */
#include "audit/escape.h"
#include "base/time_text.h"
#include "cmd/neosetctl/report.h"

#include <inttypes.h>
#include <stdio.h>

enum { REFUSALS_SHOWN_MAX = 3 };

/* --- findings --- */

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

void findings_done(struct findings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        free(findings->texts[i]);
    free(findings->doubt);
    *findings = (struct findings){0};
}

void ctl_add_findings(struct buf *text, const struct sheet_look *look, const struct findings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        ctl_add_field(text, look, findings->sources[i], findings->texts[i]);
    if (findings->left_out > 0)
        buf_addf(text, "  ... and %" PRId64 " more\n", findings->left_out);
}

/* --- from the cluster --- */

static void find_in_set(const struct set_view *set, struct findings *findings)
{
    if (set->away && !findings->journals.live)
        find(findings, "controller", "%s", set->away);
    if (set->is_deleting)
        find(findings, "set", "the set is being deleted");
    const char *question = findings->journals.live ? "" : ": is neoset-controller running?";
    if (!set->has_status)
        find(findings, "set", "no controller has looked at the set yet%s", question);
    else if (set->observed_generation < set->generation)
        find(findings, "set",
             "the controller has not seen generation %" PRId64 " of the set yet (it saw %" PRId64 ")%s",
             set->generation, set->observed_generation, question);
    CLEANUP_FREE char *outdated = ctl_outdated_text(set);
    if (outdated)
        find(findings, "before", "%s", outdated);
    else if (*set->message)
        find(findings, "status", "%s", set->message);
    if (set->is_adopting)
        find(findings, "set",
             "its adoption is not finished: `neosetctl continue -n %s` shows how to go on, or back",
             set->namespace);
    if (set->recreates && set->is_rolling && !set->is_way_back)
        find(findings, "revision", "pods are re-created: %s", set->recreates);
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

/* Those that are in the way one by one, those that only stand in line together. */
static bool stands_in_line(const struct pod_view *pod)
{
    return pod->state == POD_WAITING || pod->state == POD_HELD;
}

static void find_line(const struct set_view *set, const struct pod_views *pods, enum pod_state state,
                      const char *what, struct findings *findings)
{
    int64_t count = 0;
    const struct pod_view *first = NULL;
    for (size_t i = 0; i < pods->count; i++) {
        if (pods->items[i].state != state)
            continue;
        first = first ? first : &pods->items[i];
        count++;
    }
    if (count == 1)
        find(findings, "pod", "%s: %s", first->name, *first->waits_for ? first->waits_for : what);
    else if (count > 1)
        find(findings, "pods", "%" PRId64 " of %" PRId64 " %s", count, set->wanted, what);
}

static void find_in_pods(const struct set_view *set, const struct pod_views *pods, int64_t now_us,
                         struct findings *findings)
{
    for (int trouble = 1; trouble >= 0; trouble--) {
        for (size_t i = 0; i < pods->count; i++) {
            const struct pod_view *pod = &pods->items[i];
            if (pod->is_trouble != (trouble == 1) || !*pod->waits_for || stands_in_line(pod))
                continue;
            CLEANUP_FREE char *times = ctl_times_text(set, pod, now_us);
            find(findings, "pod", "%s: %s%s%s", pod->name, pod->waits_for, *times ? "; " : "", times);
            CLEANUP_FREE char *logs = pod_view_logs(set, pod);
            if (logs)
                find(findings, "its log", "%s", logs);
        }
    }
    find_line(set, pods, POD_WAITING, "wait for their turn", findings);
    CLEANUP_FREE char *held = xasprintf("are held back by partition %" PRId64, set->fence);
    find_line(set, pods, POD_HELD, held, findings);
}

/* --- from the journal --- */

struct note {
    int64_t step;
    int64_t at_us;
    char *reason;
};

/* What one journal says of the set's open operations. */
struct journal_search {
    struct audit *audit;
    const struct audit_journal *journal;
    const struct set_view *set;
    struct findings *findings;
    int64_t operations[FINDINGS_MAX];
    size_t count;
    struct note refusals[REFUSALS_SHOWN_MAX];
    size_t refusal_count;
    const struct note *refusal; /* whose intent is being read */
    int64_t doubt_step;         /* whose last unknown outcome is looked for */
    char *doubt_reason;
};

static bool note_open_operation(void *context, const struct journal_operation_record *operation)
{
    struct journal_search *search = context;
    if (search->count == FINDINGS_MAX)
        return false;
    search->operations[search->count++] = operation->id;
    char age[TIME_TEXT_SIZE];
    duration_format(MAX(search->audit->now_us - operation->begun_us, 0), age);
    CLEANUP_FREE char *change = audit_change_text(operation);
    find(search->findings, "journal", "operation %" PRId64 ", %s%s%s, is open for %s", operation->id,
         operation->kind, *change ? " " : "", change, age);
    return true;
}

static bool note_wait(void *context, const struct journal_wait_record *wait)
{
    struct journal_search *search = context;
    static const char tally[] = "retried-";
    if (str_starts_with(wait->begin.action, tally)) {
        /* No wait, but how often it was tried: it stays open as a count. */
        find(search->findings, "journal", "%s/%s was made anew %s time(s), because it did not come up",
             wait->begin.object, wait->begin.name, wait->begin.action + strlen(tally));
        return true;
    }
    char spent[TIME_TEXT_SIZE];
    char budget[TIME_TEXT_SIZE];
    duration_format(audit_wait_spent_us(search->audit, search->journal, wait), spent);
    duration_format(MAX(wait->budget_us, 0), budget);
    /* Of one that is gone only what it wrote down is known. */
    const char *as_of = search->journal->meta->lives ? "" : " at the newest entry";
    find(search->findings, "journal", "waits for %s of %s/%s: %s of %s spent%s%s%s%s", wait->begin.action,
         wait->begin.object, wait->begin.name, spent, budget, as_of, wait->held ? ", on hold" : "",
         wait->begin.reason ? ": " : "", wait->begin.reason ? wait->begin.reason : "");
    return true;
}

static bool note_unknown(void *context, const struct journal_entry *entry)
{
    struct journal_search *search = context;
    if (entry->step != search->doubt_step)
        return true;
    search->doubt_reason = xstrdup_or_null(entry->reason);
    return false;
}

/* A step whose fate nobody knows: what the last answer was, and what will become of it. */
static void tell_doubt(struct journal_search *search, const struct journal_step_record *step, const char *age)
{
    struct journal_entry_filter filter = {.operation = step->intent.operation,
                                          .kinds = JOURNAL_KIND_BIT(JOURNAL_UNKNOWN),
                                          .newest_first = true};
    search->doubt_step = step->intent.seq;
    search->doubt_reason = NULL;
    /* The sentence is worth having without the reason too. */
    (void)journal_read_entries(search->journal->reader, &filter, note_unknown, search, NULL);
    const char *reason = search->doubt_reason ? search->doubt_reason : "no answer was seen";
    find(search->findings, "journal", "step %s (%s of %s/%s) is in doubt for %s, sent %d time%s: %s",
         step->key, step->intent.action, step->intent.object, step->intent.name, age, step->attempts,
         step->attempts == 1 ? "" : "s", reason);
    if (!search->findings->doubt)
        search->findings->doubt = xasprintf(
            "nobody knows yet whether %s of %s/%s was done, for %s; until that is settled nothing else "
            "is written to it",
            step->intent.action, step->intent.object, step->intent.name, age);
    free(search->doubt_reason);
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
    if (step->in_flight)
        find(search->findings, "journal", "step %s (%s of %s/%s) is under way for %s", step->key,
             step->intent.action, step->intent.object, step->intent.name, age);
    else
        tell_doubt(search, step, age);
    return true;
}

static bool note_refusal(void *context, const struct journal_entry *entry)
{
    struct journal_search *search = context;
    if (search->refusal_count == REFUSALS_SHOWN_MAX)
        return false;
    search->refusals[search->refusal_count++] = (struct note){
        .step = entry->step,
        .at_us = entry->at_us,
        .reason = entry->reason && *entry->reason ? xstrdup(entry->reason) : xasprintf("%d", entry->http)};
    return true;
}

static bool tell_refusal(void *context, const struct journal_entry *intent)
{
    struct journal_search *search = context;
    char age[TIME_TEXT_SIZE];
    duration_format(MAX(search->audit->now_us - search->refusal->at_us, 0), age);
    find(search->findings, "journal", "the server refused %s of %s/%s %s ago: %s", intent->action,
         intent->object, intent->name, age, search->refusal->reason);
    return true;
}

/* The newest refusals of one operation, newest first. */
static int find_refusals(struct journal_search *search, int64_t operation, struct error **err)
{
    struct journal_reader *reader = search->journal->reader;
    struct journal_entry_filter filter = {.operation = operation,
                                          .kinds = JOURNAL_KIND_BIT(JOURNAL_REJECTED),
                                          .newest_first = true,
                                          .limit = REFUSALS_SHOWN_MAX};
    search->refusal_count = 0;
    int r = journal_read_entries(reader, &filter, note_refusal, search, err);
    for (size_t i = 0; i < search->refusal_count; i++) {
        search->refusal = &search->refusals[i];
        if (r == 0)
            r = journal_read_entry(reader, search->refusal->step, tell_refusal, search, err);
        free(search->refusals[i].reason);
    }
    return r;
}

static int search_journal(struct journal_search *search, struct error **err)
{
    struct journal_reader *reader = search->journal->reader;
    struct journal_operation_filter open = {.object = "NeoSet",
                                            .namespace = search->set->namespace,
                                            .name = search->set->name,
                                            .outcome = "open",
                                            .oldest_first = true};
    int r = journal_read_operations(reader, &open, note_open_operation, search, err);
    for (size_t i = 0; r == 0 && i < search->count; i++) {
        struct journal_wait_filter waits = {.operation = search->operations[i], .open_only = true};
        r = journal_read_waits(reader, &waits, note_wait, search, err);
        if (r == 0)
            r = find_refusals(search, search->operations[i], err);
    }
    return r < 0 ? r : journal_read_open_steps(reader, note_step, search, err);
}

/* What is told of the controller that holds a journal's lock, while the Lease says that none is at work. */
enum holder {
    HOLDER_LOST,  /* the Lease is this very run's: it has stopped renewing it, and does nothing */
    HOLDER_WAITS, /* the Lease is of an earlier run on this journal, and this one has not led yet */
    HOLDER_LEADS, /* it has led without the Lease: --no-lease, or with another one */
};

static bool note_one(void *context, const struct journal_entry *entry)
{
    (void)entry;
    *(bool *)context = true;
    return false;
}

/* Whoever leads writes this entry first, with a Lease and without one. What cannot be read, or was removed by
 * retention, is not held against it. */
static bool has_led(const struct journal_search *search, const struct journal_run_record *run)
{
    struct journal_entry_filter filter = {
        .after_seq = run->run, .kinds = JOURNAL_KIND_BIT(JOURNAL_EPOCH), .newest_first = true, .limit = 1};
    bool found = false;
    int r = journal_read_entries(search->journal->reader, &filter, note_one, &found, NULL);
    return r < 0 || found || search->journal->meta->pruned_seq > run->run;
}

static bool lease_is_of_journal(const struct journal_search *search)
{
    return str_equal(search->set->away_journal, search->journal->meta->journal_id);
}

static enum holder judge_holder(const struct journal_search *search, const struct journal_run_record *run)
{
    if (!search->set->away || !lease_is_of_journal(search))
        return HOLDER_LEADS;
    if (run->begun_us <= search->set->seen_us)
        return HOLDER_LOST;
    return has_led(search, run) ? HOLDER_LEADS : HOLDER_WAITS;
}

static void tell_holder(struct journal_search *search, const struct journal_run_record *run,
                        enum holder holder)
{
    const struct set_view *set = search->set;
    const char *path = search->journal->meta->path;
    const char *host = run->identity && *run->identity ? run->identity : "-";
    char since[TIME_TEXT_SIZE];
    time_format_seconds(run->begun_us, since);
    if (holder == HOLDER_LEADS)
        search->findings->journals.live = path;
    if (!set->away)
        return;
    if (holder == HOLDER_LOST)
        find(search->findings, "controller",
             "%s runs on %s (pid %" PRId64
             ", since %s) and does not renew its Lease: it cannot reach the API "
             "server, or cannot write its journal",
             host, path, run->pid, since);
    else if (holder == HOLDER_WAITS)
        find(search->findings, "controller",
             "%s runs on %s (pid %" PRId64
             ", since %s) and waits for its Lease, and does nothing until it has it: it cannot reach the API "
             "server, or may not write the Lease",
             host, path, run->pid, since);
    else
        find(search->findings, "controller",
             "at work is %s (pid %" PRId64 ", since %s): it holds the lock of %s, and that is believed. The "
             "Lease is of %s: %s",
             host, run->pid, since, path, lease_is_of_journal(search) ? "an earlier run" : "another",
             set->away);
}

static bool judge_run(void *context, const struct journal_run_record *run)
{
    struct journal_search *search = context;
    tell_holder(search, run, judge_holder(search, run));
    return false;
}

int ctl_find_controller(struct audit *audit, const struct set_view *set, struct findings *findings,
                        struct error **err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < audit->count; i++) {
        struct journal_search search = {
            .audit = audit, .journal = &audit->journals[i], .set = set, .findings = findings};
        if (search.journal->meta->lives)
            r = journal_read_runs(search.journal->reader, 1, judge_run, &search, err);
        else
            findings->journals.dead = search.journal->meta->path;
    }
    return r;
}

/* What it says of waits was so then. */
static void tell_dead(const struct audit *audit, const struct journal_meta *meta, struct findings *findings)
{
    char at[TIME_TEXT_SIZE];
    char age[TIME_TEXT_SIZE];
    time_format_seconds(meta->head_at_us, at);
    duration_format(MAX(audit->now_us - meta->head_at_us, 0), age);
    find(findings, "journal",
         "no controller is running on %s (unless that is a copy); its newest entry is of %s (%s ago)",
         meta->path, at, age);
}

int ctl_find_in_journal(struct audit *audit, const struct set_view *set, struct findings *findings,
                        struct error **err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < audit->count; i++) {
        const struct journal_meta *meta = audit->journals[i].meta;
        if (!meta->lives)
            tell_dead(audit, meta, findings);
        struct journal_search search = {
            .audit = audit, .journal = &audit->journals[i], .set = set, .findings = findings};
        r = search_journal(&search, err);
    }
    return r;
}

/* --- the cause --- */

static int64_t held_back(const struct set_view *set, const struct pod_views *pods)
{
    int64_t count = 0;
    for (size_t i = 0; i < pods->count; i++)
        count += pods->items[i].state == POD_HELD;
    return set->is_rolling ? count : 0;
}

static char *cause_in_set(const struct set_view *set, const struct journals_view *journals)
{
    if (set->is_deleting)
        return xstrdup(set->is_adopting ? "it is on its way back to a StatefulSet, and that is not finished"
                                        : "it is being deleted");
    if (set->away && !journals->live)
        return set_view_away(set, journals);
    if (!set->has_status)
        return xstrdup("no controller has looked at it yet");
    if (set->observed_generation < set->generation)
        return xasprintf("no controller has seen its newest spec (generation %" PRId64 ") yet",
                         set->generation);
    if (set->is_adopting)
        return xstrdup("its adoption is not finished: a StatefulSet has its pods, or nobody has them yet");
    return NULL;
}

/* Without a full stop: it stands inside a sentence. */
static char *without_stop(const char *sentence)
{
    size_t length = strlen(sentence);
    return xstrndup(sentence, length - (length > 0 && sentence[length - 1] == '.'));
}

/* What stays as it is until a person does something. */
static char *cause_that_stays(const struct set_view *set, const struct pod_views *pods)
{
    const struct pod_view *pod = pod_views_waited_for(set, pods);
    if (set->is_paused && set->is_rolling)
        return xstrdup("it is paused: no update is started");
    if (str_equal(set->phase, "Failed") && *set->message)
        return without_stop(set->message);
    if (pod && pod->is_trouble)
        return xasprintf("%s does not come up: %s", pod->name, pod->waits_for);
    return NULL;
}

static char *cause_that_passes(const struct set_view *set, const struct pod_views *pods)
{
    const struct pod_view *pod = pod_views_waited_for(set, pods);
    int64_t held = held_back(set, pods);
    if (pod && *set->message && !set->is_paused)
        return without_stop(set->message);
    if (pod)
        return xasprintf("%s is waited for: %s", pod->name,
                         *pod->waits_for ? pod->waits_for : "it is updated");
    /* Before the first of the others is touched (its image is fetched, say) nothing is done yet. */
    if (held > 0 && set->updated + held < set->wanted && *set->message && !set->is_paused)
        return without_stop(set->message);
    if (held > 0)
        return xasprintf("partition %" PRId64 " holds back %" PRId64 " pod%s, and all others are done",
                         set->fence, held, held == 1 ? "" : "s");
    return set->is_rolling && *set->message ? without_stop(set->message) : NULL;
}

/* One sentence; the caller's. */
static char *cause_of(const struct set_view *set, const struct pod_views *pods,
                      const struct findings *findings)
{
    CLEANUP_FREE char *cause = cause_in_set(set, &findings->journals);
    if (!cause && findings->doubt)
        cause = xstrdup(findings->doubt);
    if (!cause)
        cause = cause_that_stays(set, pods);
    /* Last, because a copy of a journal looks the same. */
    bool waits = set->is_rolling || pod_views_waited_for(set, pods);
    if (!cause && findings->journals.dead && waits && held_back(set, pods) == 0)
        cause = set_view_away(set, &findings->journals);
    if (!cause)
        cause = cause_that_passes(set, pods);
    if (cause)
        return xasprintf("%s in %s stands where it stands because %s.", set->name, set->namespace, cause);
    return xasprintf("%s in %s does not stand still: nothing is waited for%s.", set->name, set->namespace,
                     set->is_paused ? " (but it is paused: no update would be started)" : "");
}

/* --- the whole --- */

enum { WHY_SOURCE, WHY_TEXT, WHY_COLUMNS };
static const struct sheet_column why_columns[WHY_COLUMNS] = {
    [WHY_SOURCE] = {"source", "SOURCE", SHEET_TEXT, IN_ALL, 1, 0},
    [WHY_TEXT] = {"text", "TEXT", SHEET_TEXT, IN_ALL, 2, 0},
};

static void why_rows(struct out *out, const struct sheet_look *look, const struct findings *findings,
                     const char *cause, const char *next)
{
    struct sheet *sheet = sheet_begin(out, look, why_columns, WHY_COLUMNS);
    struct sheet_cell first[WHY_COLUMNS] = {cell_text("cause"), cell_text(cause)};
    bool goes_on = sheet_row(sheet, first);
    for (size_t i = 0; goes_on && i < findings->count; i++) {
        struct sheet_cell cells[WHY_COLUMNS] = {cell_text(findings->sources[i]),
                                                cell_text(findings->texts[i])};
        goes_on = sheet_row(sheet, cells);
    }
    struct sheet_cell last[WHY_COLUMNS] = {cell_text("next"), cell_text(next)};
    if (goes_on)
        sheet_row(sheet, last);
    sheet_end(sheet);
}

int ctl_report_why(struct out *out, const struct sheet_look *look, const struct set_view *set,
                   const struct pod_views *pods, int64_t now_us, struct audit *journal, struct error **err)
{
    CLEANUP_FREE struct findings *findings = xcalloc(1, sizeof *findings);
    int r = journal ? ctl_find_controller(journal, set, findings, err) : 0;
    find_in_set(set, findings);
    find_in_pods(set, pods, now_us, findings);
    if (r == 0 && journal)
        r = ctl_find_in_journal(journal, set, findings, err);
    CLEANUP_FREE char *next = set_view_next(set, pods, &findings->journals);
    CLEANUP_FREE char *cause = cause_of(set, pods, findings);
    if (r == 0 && ctl_is_text(look)) {
        ctl_add_wrapped(&out->text, look, 0, cause);
        buf_add_char(&out->text, '\n');
        ctl_add_head(&out->text, look, set);
        ctl_add_findings(&out->text, look, findings);
        ctl_add_next(&out->text, look, next);
    } else if (r == 0) {
        why_rows(out, look, findings, cause, next);
    }
    findings_done(findings);
    return r;
}
