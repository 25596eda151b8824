/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/story.h"

/* Makes room for one more pointer: lists here double. */
#define GROW(list, count)                                                                                    \
    (((count) & ((count)-1)) == 0 ? xreallocarray((list), (count) ? (count)*2 : 1, sizeof *(list))           \
                                  : (void *)(list))

static bool keep_operation(void *context, const struct journal_operation_record *operation)
{
    struct story *story = context;
    story->operation = record_copy_operation(operation);
    return false;
}

static bool keep_entry(void *context, const struct journal_entry *entry)
{
    struct story *story = context;
    story->entries = GROW(story->entries, story->entry_count);
    story->entries[story->entry_count++] = record_copy_entry(entry);
    return true;
}

static bool keep_wait(void *context, const struct journal_wait_record *wait)
{
    struct story *story = context;
    story->parts = GROW(story->parts, story->part_count);
    struct journal_wait_record *copy = record_copy_wait(wait);
    story->parts[story->part_count++] = (struct story_part){.seq = wait->begin.seq, .wait = copy};
    return true;
}

/* Runs come newest first: those after the operation's last entry are none of its business, the one that began
 * it is the last that is. */
static bool keep_run(void *context, const struct journal_run_record *run)
{
    struct story *story = context;
    const struct journal_entry *last = story->entries[story->entry_count - 1];
    bool is_over = story->operation->ended_us != 0;
    if (is_over && run->run > last->seq)
        return true;
    story->runs = GROW(story->runs, story->run_count);
    story->runs[story->run_count++] = record_copy_run(run);
    return run->run > story->entries[0]->run;
}

static int compare_parts(const void *a, const void *b)
{
    int64_t left = ((const struct story_part *)a)->seq;
    int64_t right = ((const struct story_part *)b)->seq;
    return (left > right) - (left < right);
}

static int read_rows(struct story *story, int64_t operation, struct error **err)
{
    struct journal_reader *reader = story->journal->reader;
    struct journal_operation_filter one = {.id = operation};
    int r = journal_read_operations(reader, &one, keep_operation, story, err);
    if (r == 0 && !story->operation)
        return error_set(err, ERROR_NOT_FOUND, "no operation %lld: `neoset-audit list` shows those there are",
                         (long long)operation);
    struct journal_entry_filter entries = {.operation = operation};
    if (r == 0)
        r = journal_read_entries(reader, &entries, keep_entry, story, err);
    if (r == 0 && story->entry_count == 0)
        return error_set(err, ERROR_NOT_FOUND,
                         "operation %lld has no entries any more: retention removed them",
                         (long long)operation);
    struct journal_wait_filter waits = {.operation = operation};
    if (r == 0)
        r = journal_read_waits(reader, &waits, keep_wait, story, err);
    if (r == 0)
        r = journal_read_runs(reader, 0, keep_run, story, err);
    return r;
}

static struct story_part *find_part(const struct story *story, int64_t seq)
{
    struct story_part wanted = {.seq = seq};
    if (story->part_count == 0)
        return NULL;
    return bsearch(&wanted, story->parts, story->part_count, sizeof wanted, compare_parts);
}

/* --- steps ---------------------------------------------------------------------------------------------- */

static void add_step(struct story *story, const struct journal_entry *intent)
{
    const struct journal_run_record *run = story_run(story, intent->run);
    struct journal_step_record *step = xcalloc(1, sizeof *step);
    char *key = xasprintf("%s-%lld", run && run->nonce ? run->nonce : "?", (long long)intent->seq);
    *step = (struct journal_step_record){
        .intent = *intent, .key = key, .attempts = 1, .last_at_us = intent->at_us};
    story->parts = GROW(story->parts, story->part_count);
    story->parts[story->part_count++] = (struct story_part){.seq = intent->seq, .step = step, .key = key};
}

static void add_to_step(const struct story *story, const struct journal_entry *entry)
{
    struct story_part *part = find_part(story, entry->step);
    struct journal_step_record *step = part ? part->step : NULL;
    if (!step)
        return;
    step->last_at_us = entry->at_us;
    if (entry->kind == JOURNAL_UNKNOWN) {
        step->attempts++;
    } else if (journal_kind_is_outcome(entry->kind)) {
        step->has_outcome = true;
        step->outcome = *entry;
        step->attempts = MAX(entry->attempt, step->attempts);
    }
}

/* The entries say all of it: no need to ask the journal for each step. */
static void make_steps(struct story *story)
{
    const struct journal_meta *meta = story->journal->meta;
    for (size_t i = 0; i < story->entry_count; i++)
        if (story->entries[i]->kind == JOURNAL_INTENT)
            add_step(story, story->entries[i]);
    if (story->part_count > 1)
        qsort(story->parts, story->part_count, sizeof *story->parts, compare_parts);
    for (size_t i = 0; i < story->entry_count; i++)
        if (story->entries[i]->step != 0 && story->entries[i]->kind != JOURNAL_INTENT)
            add_to_step(story, story->entries[i]);
    for (size_t i = 0; i < story->part_count; i++) {
        struct journal_step_record *step = story->parts[i].step;
        if (step)
            step->in_flight = !step->has_outcome && step->attempts == 1 && meta->lives &&
                              step->intent.run == meta->newest_run;
    }
}

static void order_runs(struct story *story)
{
    for (size_t i = 0; i < story->run_count / 2; i++) {
        struct journal_run_record *run = story->runs[i];
        story->runs[i] = story->runs[story->run_count - 1 - i];
        story->runs[story->run_count - 1 - i] = run;
    }
}

/* A later run never begins before the last entry of the one before, whatever the wall clock said. */
static void place_runs(struct story *story)
{
    story->run_base_us = xcalloc(story->run_count + 1, sizeof *story->run_base_us);
    int64_t last_us = INT64_MIN;
    for (size_t i = 0; i < story->run_count; i++) {
        const struct journal_run_record *run = story->runs[i];
        story->run_base_us[i] = MAX(run->begun_us, last_us);
        last_us = story->run_base_us[i];
        for (size_t j = 0; j < story->entry_count; j++)
            if (story->entries[j]->run == run->run)
                last_us = MAX(last_us, story->run_base_us[i] + story->entries[j]->mono_us);
    }
}

static void place_parts(struct story *story)
{
    story->begin_us = story_position_us(story, story->entries[0]);
    story->end_us = story->begin_us;
    for (size_t i = 0; i < story->entry_count; i++)
        story->end_us = MAX(story->end_us, story_position_us(story, story->entries[i]));
    if (story->operation->ended_us == 0)
        story->end_us = MAX(story->end_us, story->audit->now_us);
    for (size_t i = 0; i < story->part_count; i++) {
        struct story_part *part = &story->parts[i];
        const struct journal_entry *begin = part->step ? &part->step->intent : &part->wait->begin;
        const struct journal_entry *end = NULL;
        if (part->step && part->step->has_outcome)
            end = &part->step->outcome;
        if (part->wait && part->wait->has_end)
            end = &part->wait->end;
        part->is_open = end == NULL;
        part->begin_us = story_position_us(story, begin);
        part->end_us = end ? MAX(story_position_us(story, end), part->begin_us) : story->end_us;
    }
}

/* --- which entries belong to which part ------------------------------------------------------------- */

/* A wait is known by what it waits for and the object: at most one such is open at a time. */
static bool is_of_wait(const struct journal_wait_record *wait, const struct journal_entry *entry)
{
    return str_equal(entry->action, wait->begin.action) && str_equal(entry->object, wait->begin.object) &&
           str_equal(entry->namespace, wait->begin.namespace) && str_equal(entry->name, wait->begin.name);
}

/* The part of an entry; open[0 .. *count) are the waits that are open at it. */
static struct story_part *part_of(const struct story *story, const struct journal_entry *entry,
                                  struct story_part **open, size_t *count)
{
    switch (entry->kind) {
    case JOURNAL_WAIT_BEGIN: {
        struct story_part *part = find_part(story, entry->seq);
        if (part && part->wait)
            open[(*count)++] = part;
        return part;
    }
    case JOURNAL_WAIT_HOLD:
    case JOURNAL_WAIT_GO:
    case JOURNAL_WAIT_END:
        for (size_t i = 0; i < *count; i++) {
            struct story_part *part = open[i];
            if (!is_of_wait(part->wait, entry))
                continue;
            if (entry->kind == JOURNAL_WAIT_END)
                open[i] = open[--*count];
            return part;
        }
        return NULL;
    default:
        return entry->step != 0 ? find_part(story, entry->step) : NULL;
    }
}

static void link_entries(struct story *story)
{
    size_t none = story->entry_count;
    story->next_entry = xcalloc(none + 1, sizeof *story->next_entry);
    story->is_loose = xcalloc(none + 1, sizeof *story->is_loose);
    size_t *last = xcalloc(story->part_count + 1, sizeof *last);
    struct story_part **open = xcalloc(story->part_count + 1, sizeof(struct story_part *));
    size_t open_count = 0;
    for (size_t i = 0; i < story->part_count; i++)
        story->parts[i].first_entry = none;
    for (size_t i = 0; i < none; i++) {
        struct story_part *part = part_of(story, story->entries[i], open, &open_count);
        story->next_entry[i] = none;
        story->is_loose[i] = part == NULL;
        if (!part)
            continue;
        size_t *slot = &last[part - story->parts];
        if (part->first_entry == none)
            part->first_entry = i;
        else
            story->next_entry[*slot] = i;
        *slot = i;
    }
    free(open);
    free(last);
}

int story_read(struct audit *audit, const struct audit_journal *journal, int64_t operation, struct story *ret,
               struct error **err)
{
    *ret = (struct story){.audit = audit, .journal = journal};
    int r = read_rows(ret, operation, err);
    if (r < 0)
        return r;
    order_runs(ret);
    make_steps(ret);
    link_entries(ret);
    place_runs(ret);
    place_parts(ret);
    return 0;
}

void story_done(struct story *story)
{
    free(story->operation);
    for (size_t i = 0; i < story->entry_count; i++)
        free(story->entries[i]);
    free(story->entries);
    free(story->next_entry);
    free(story->is_loose);
    for (size_t i = 0; i < story->run_count; i++)
        free(story->runs[i]);
    free(story->runs);
    free(story->run_base_us);
    for (size_t i = 0; i < story->part_count; i++) {
        free(story->parts[i].step);
        free(story->parts[i].key);
        free(story->parts[i].wait);
    }
    free(story->parts);
    *story = (struct story){0};
}

int64_t story_position_us(const struct story *story, const struct journal_entry *entry)
{
    PRE(entry);
    for (size_t i = story->run_count; i-- > 0;)
        if (story->runs[i]->run == entry->run)
            return story->run_base_us[i] + entry->mono_us;
    return entry->at_us;
}

const struct journal_run_record *story_run(const struct story *story, int64_t run)
{
    for (size_t i = 0; i < story->run_count; i++)
        if (story->runs[i]->run == run)
            return story->runs[i];
    return NULL;
}

const char *story_part_outcome(const struct story_part *part)
{
    if (part->step)
        return part->step->has_outcome ? journal_kind_text(part->step->outcome.kind)
                                       : (part->step->in_flight ? "in flight" : "in doubt");
    if (part->wait->has_end)
        return part->wait->outcome ? part->wait->outcome : "ended";
    return part->wait->held ? "held" : "waiting";
}
