/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/steps.h"
#include "audit/records.h"

#include <uthash.h>

/* An outcome is looked for so many entries behind a page's last intent; then it is looked up. */
enum { PAGE_STEPS = 1000, LOOK_AHEAD_ENTRIES = 2000 };

struct pending {
    int64_t seq;
    struct journal_entry *intent;
    struct journal_entry *outcome; /* NULL: not come by */
    int unknowns;
};

struct run_nonce {
    int64_t run;
    char *nonce;
    UT_hash_handle hh;
};

struct assembly {
    const struct audit_journal *journal;
    journal_step_each *each;
    void *context;
    struct run_nonce *nonces;
    struct pending page[PAGE_STEPS];
    size_t count;
    size_t open;
    bool is_stopped;
};

/* --- keys ----------------------------------------------------------------------------------------------- */

static bool keep_nonce(void *context, const struct journal_run_record *run)
{
    struct assembly *assembly = context;
    struct run_nonce *item = xcalloc(1, sizeof *item);
    item->run = run->run;
    item->nonce = xstrdup(run->nonce ? run->nonce : "?");
    HASH_ADD(hh, assembly->nonces, run, sizeof item->run, item);
    return true;
}

static void forget_nonces(struct assembly *assembly)
{
    struct run_nonce *item = assembly->nonces;
    HASH_CLEAR(hh, assembly->nonces);
    while (item) {
        struct run_nonce *next = item->hh.next;
        free(item->nonce);
        free(item);
        item = next;
    }
}

static char *key_of(const struct assembly *assembly, const struct journal_entry *intent)
{
    struct run_nonce *item = NULL;
    HASH_FIND(hh, assembly->nonces, &intent->run, sizeof intent->run, item);
    return xasprintf("%s-%lld", item ? item->nonce : "?", (long long)intent->seq);
}

/* --- a page --------------------------------------------------------------------------------------------- */

static bool take_intent(void *context, const struct journal_entry *entry)
{
    struct assembly *assembly = context;
    ENSURE(assembly->count < PAGE_STEPS);
    assembly->page[assembly->count++] =
        (struct pending){.seq = entry->seq, .intent = record_copy_entry(entry)};
    assembly->open++;
    return true;
}

static int compare(const void *a, const void *b)
{
    int64_t left = ((const struct pending *)a)->seq;
    int64_t right = ((const struct pending *)b)->seq;
    return (left > right) - (left < right);
}

static bool take_answer(void *context, const struct journal_entry *entry)
{
    struct assembly *assembly = context;
    struct pending wanted = {.seq = entry->step};
    struct pending *pending = bsearch(&wanted, assembly->page, assembly->count, sizeof wanted, compare);
    if (pending && entry->kind == JOURNAL_UNKNOWN) {
        pending->unknowns++;
    } else if (pending && !pending->outcome) {
        pending->outcome = record_copy_entry(entry);
        assembly->open--;
    }
    return assembly->open > 0;
}

static int read_answers(struct assembly *assembly, struct error **err)
{
    struct journal_entry_filter answers = {.after_seq = assembly->page[0].seq,
                                           .through_seq =
                                               assembly->page[assembly->count - 1].seq + LOOK_AHEAD_ENTRIES};
    answers.through_seq = MIN(answers.through_seq, assembly->journal->meta->head_seq);
    answers.kinds = JOURNAL_KIND_BIT(JOURNAL_UNKNOWN);
    for (int kind = 0; kind < JOURNAL_KIND_COUNT; kind++)
        if (journal_kind_is_outcome((enum journal_kind)kind))
            answers.kinds |= JOURNAL_KIND_BIT(kind);
    return journal_read_entries(assembly->journal->reader, &answers, take_answer, assembly, err);
}

static bool pass_on(void *context, const struct journal_step_record *step)
{
    struct assembly *assembly = context;
    if (!assembly->each(assembly->context, step))
        assembly->is_stopped = true;
    return false;
}

/* One without an outcome is still open, or that came late: the journal is asked for it. */
static int hand_out(struct assembly *assembly, const struct pending *pending, struct error **err)
{
    if (!pending->outcome) {
        struct journal_step_filter one = {.step = pending->seq};
        return journal_read_steps(assembly->journal->reader, &one, pass_on, assembly, err);
    }
    CLEANUP_FREE char *key = key_of(assembly, pending->intent);
    struct journal_step_record step = {.intent = *pending->intent,
                                       .has_outcome = true,
                                       .outcome = *pending->outcome,
                                       .key = key,
                                       .attempts = MAX(pending->outcome->attempt, pending->unknowns + 1),
                                       .last_at_us = pending->outcome->at_us};
    pass_on(assembly, &step);
    return 0;
}

static int hand_out_page(struct assembly *assembly, struct error **err)
{
    int r = 0;
    for (size_t i = 0; i < assembly->count; i++) {
        if (r == 0 && !assembly->is_stopped)
            r = hand_out(assembly, &assembly->page[i], err);
        free(assembly->page[i].intent);
        free(assembly->page[i].outcome);
    }
    assembly->count = 0;
    assembly->open = 0;
    return r;
}

int steps_read(const struct audit_journal *journal, int64_t after_seq, int64_t since_us, int64_t until_us,
               int64_t limit, journal_step_each *each, void *context, struct error **err)
{
    CLEANUP_FREE struct assembly *assembly = xcalloc(1, sizeof *assembly);
    assembly->journal = journal;
    assembly->each = each;
    assembly->context = context;
    struct journal_entry_filter intents = {.after_seq = after_seq,
                                           .since_us = since_us,
                                           .until_us = until_us,
                                           .kinds = JOURNAL_KIND_BIT(JOURNAL_INTENT)};
    int64_t left = limit > 0 ? limit : INT64_MAX;
    int r = journal_read_runs(journal->reader, 0, keep_nonce, assembly, err);
    while (r == 0 && left > 0 && !assembly->is_stopped) {
        intents.limit = MIN(left, (int64_t)PAGE_STEPS);
        r = journal_read_entries(journal->reader, &intents, take_intent, assembly, err);
        bool is_last = (int64_t)assembly->count < intents.limit;
        left -= (int64_t)assembly->count;
        if (assembly->count > 0)
            intents.after_seq = assembly->page[assembly->count - 1].seq;
        if (r == 0 && assembly->count > 0)
            r = read_answers(assembly, err);
        assembly->is_stopped = assembly->is_stopped || r < 0;
        int r2 = hand_out_page(assembly, r == 0 ? err : NULL);
        r = r < 0 ? r : r2;
        if (is_last)
            break;
    }
    forget_nonces(assembly);
    return r;
}
