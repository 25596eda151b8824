/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits as budgets (journal.md, "Waiting is journaled too"). */
#include "journal/internal.h"

#include "base/time_text.h"

#include <stdio.h>

/* Of a run: a clock step or a long downtime must not turn healthy objects into failures. */
#define GRACE_US (60 * US_PER_S)

static struct open_wait *must_find(const struct journal *journal, int64_t wait)
{
    struct open_wait *found = open_set_wait(journal->open, wait);
    PRE(found);
    return found;
}

static int64_t spent_at(const struct open_wait *wait, int64_t mono_us)
{
    return wait->spent_us + (wait->held ? 0 : MAX((int64_t)0, mono_us - wait->since_mono_us));
}

int64_t journal_wait_begin(struct journal *journal, int64_t operation, const char *action, const char *object,
                           const char *namespace, const char *name, int64_t budget_us, const char *reason)
{
    PRE(action && object && name && budget_us >= 0);
    const struct open_wait *found = open_set_wait_on(journal->open, action, object, namespace, name);
    if (found)
        return found->seq;
    char detail[64];
    snprintf(detail, sizeof(detail), "{\"budget_us\":%lld}", (long long)budget_us);
    struct batch_row *row = journal_append_row(journal, &(struct journal_entry){
                                                            .kind = JOURNAL_WAIT_BEGIN,
                                                            .operation = operation,
                                                            .action = action,
                                                            .object = object,
                                                            .namespace = namespace,
                                                            .name = name,
                                                            .reason = reason,
                                                            .detail = detail,
                                                        });
    row->effect.budget_us = budget_us;
    int64_t seq = row->entry.seq;
    open_set_add_wait(journal->open, &(struct open_wait){
                                         .seq = seq,
                                         .operation = operation,
                                         .action = action,
                                         .object = object,
                                         .namespace = namespace,
                                         .name = name,
                                         .budget_us = budget_us,
                                         .since_mono_us = row->entry.mono_us,
                                     });
    journal_append_checkpoint(journal);
    return seq;
}

/* A row about an open wait. detail is the row's own object: {"wait":...,"spent_us":...} and what is added. */
static struct batch_row *append_about(struct journal *journal, enum journal_kind kind,
                                      const struct open_wait *wait, const char *reason, const char *outcome)
{
    int64_t mono_us = journal_mono_us(journal);
    int64_t spent_us = spent_at(wait, mono_us);
    CLEANUP_JSON cJSON *outcome_json = outcome ? json_new_str(outcome) : NULL;
    CLEANUP_FREE char *outcome_text = outcome ? json_print(outcome_json) : NULL;
    CLEANUP_FREE char *detail =
        xasprintf("{\"wait\":%lld,\"spent_us\":%lld%s%s}", (long long)wait->seq, (long long)spent_us,
                  outcome ? ",\"outcome\":" : "", outcome ? outcome_text : "");
    struct journal_entry entry = {
        .kind = kind,
        .operation = wait->operation,
        .action = wait->action,
        .object = wait->object,
        .namespace = wait->namespace,
        .name = wait->name,
        .reason = reason,
        .detail = detail,
    };
    struct batch_row *row = journal_append_row_at(journal, &entry, mono_us);
    row->effect.wait = wait->seq;
    row->effect.spent_us = spent_us;
    return row;
}

void journal_wait_hold(struct journal *journal, int64_t seq, const char *reason)
{
    struct open_wait *wait = must_find(journal, seq);
    if (wait->held)
        return;
    const struct batch_row *row = append_about(journal, JOURNAL_WAIT_HOLD, wait, reason, NULL);
    wait->spent_us = row->effect.spent_us;
    wait->held = true;
    journal_append_checkpoint(journal);
}

void journal_wait_go(struct journal *journal, int64_t seq)
{
    struct open_wait *wait = must_find(journal, seq);
    if (!wait->held)
        return;
    const struct batch_row *row = append_about(journal, JOURNAL_WAIT_GO, wait, NULL, NULL);
    wait->since_mono_us = row->entry.mono_us;
    wait->held = false;
    journal_append_checkpoint(journal);
}

void journal_wait_end(struct journal *journal, int64_t seq, const char *outcome)
{
    PRE(outcome);
    const struct open_wait *wait = must_find(journal, seq);
    append_about(journal, JOURNAL_WAIT_END, wait, NULL, outcome);
    open_set_remove_wait(journal->open, seq);
    journal_append_checkpoint(journal);
}

int64_t journal_wait_find(const struct journal *journal, const char *action, const char *object,
                          const char *namespace, const char *name)
{
    const struct open_wait *wait = open_set_wait_on(journal->open, action, object, namespace, name);
    return wait ? wait->seq : 0;
}

int64_t journal_wait_spent_us(const struct journal *journal, int64_t wait)
{
    return spent_at(must_find(journal, wait), journal_mono_us(journal));
}

bool journal_wait_is_held(const struct journal *journal, int64_t wait)
{
    return must_find(journal, wait)->held;
}

bool journal_wait_has_spent(const struct journal *journal, int64_t seq, int64_t budget_us,
                            int64_t first_seen_boot_us)
{
    const struct open_wait *wait = must_find(journal, seq);
    if (wait->held || env_boot_us(journal->env) - first_seen_boot_us < GRACE_US)
        return false;
    return spent_at(wait, journal_mono_us(journal)) >= budget_us;
}

struct wait_visit {
    void (*each)(void *context, int64_t wait, const char *action, const char *object, const char *namespace,
                 const char *name);
    void *context;
};

static void visit_wait(void *context, const struct open_wait *wait)
{
    const struct wait_visit *visit = context;
    visit->each(visit->context, wait->seq, wait->action, wait->object, wait->namespace, wait->name);
}

void journal_open_waits_each(const struct journal *journal,
                             void (*each)(void *context, int64_t wait, const char *action, const char *object,
                                          const char *namespace, const char *name),
                             void *context)
{
    struct wait_visit visit = {.each = each, .context = context};
    open_set_each_wait(journal->open, visit_wait, &visit);
}
