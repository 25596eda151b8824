/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/words.h"

#include "control/step.h"

static const char *const operation_kinds[] = {
#define X(text) text,
    OPERATION_KINDS(X)
#undef X
};
static const char *const operation_outcomes[] = {
#define X(text) text,
    OPERATION_OUTCOMES(X)
#undef X
        "open",
};
/* Not by control/step.c: it would bring the network's libraries along. */
static const char *const step_kinds[] = {
#define X(name, text, method, content_type, keep, stamp, resolve) text,
    STEP_KINDS(X)
#undef X
};

struct words {
    const char *const *items;
    size_t count;
};

static bool has_word(const struct words *words, const char *word)
{
    for (size_t i = 0; i < words->count; i++)
        if (str_equal(words->items[i], word))
            return true;
    return false;
}

static int refuse(const char *word, const char *what, const struct words *words, struct error **err)
{
    CLEANUP_BUF struct buf names = BUF_INIT(4096);
    for (size_t i = 0; i < words->count; i++)
        buf_addf(&names, "%s%s", i > 0 ? ", " : "", words->items[i]);
    return error_set(err, ERROR_USAGE, "%s \"%s\": there are %s", what, word, buf_text(&names));
}

static bool note_found(void *context, const struct journal_operation_record *operation)
{
    (void)operation;
    bool *found = context;
    *found = true;
    return false;
}

static int look_for(const struct audit *audit, const struct journal_operation_filter *filter, bool *ret,
                    struct error **err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && !*ret && i < audit->count; i++)
        r = journal_read_operations(audit->journals[i].reader, filter, note_found, ret, err);
    return r;
}

static bool note_step(void *context, const struct journal_step_record *step)
{
    (void)step;
    bool *found = context;
    *found = true;
    return false;
}

static int look_for_step(const struct audit *audit, const struct journal_step_filter *filter, bool *ret,
                         struct error **err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && !*ret && i < audit->count; i++)
        r = journal_read_steps(audit->journals[i].reader, filter, note_step, ret, err);
    return r;
}

/* A word that this program does not know is let pass where a journal of a newer one has it. */
static int check_operations(const struct audit *audit, const struct audit_filter *filter, struct error **err)
{
    const struct words kinds = {operation_kinds, ARRAY_SIZE(operation_kinds)};
    const struct words outcomes = {operation_outcomes, ARRAY_SIZE(operation_outcomes)};
    bool found = !filter->kind || has_word(&kinds, filter->kind);
    int r = found ? 0
                  : look_for(audit, &(struct journal_operation_filter){.kind = filter->kind, .limit = 1},
                             &found, err);
    if (r < 0)
        return r;
    if (!found)
        return refuse(filter->kind, "no operation is of kind", &kinds, err);
    found = !filter->outcome || has_word(&outcomes, filter->outcome);
    r = found ? 0
              : look_for(audit, &(struct journal_operation_filter){.outcome = filter->outcome, .limit = 1},
                         &found, err);
    if (r == 0 && !found)
        return refuse(filter->outcome, "no operation has the outcome", &outcomes, err);
    return r;
}

static int check_steps(const struct audit *audit, const struct audit_filter *filter, struct error **err)
{
    const struct words kinds = {step_kinds, ARRAY_SIZE(step_kinds)};
    const char *items[JOURNAL_KIND_COUNT + 1];
    struct words outcomes = {items, 0};
    for (int i = 0; i < JOURNAL_KIND_COUNT; i++)
        if (journal_kind_is_outcome((enum journal_kind)i))
            items[outcomes.count++] = journal_kind_text((enum journal_kind)i);
    items[outcomes.count++] = "open";
    bool found = !filter->kind || has_word(&kinds, filter->kind);
    int r = found ? 0
                  : look_for_step(audit, &(struct journal_step_filter){.action = filter->kind, .limit = 1},
                                  &found, err);
    if (r < 0)
        return r;
    if (!found)
        return refuse(filter->kind, "no step is of kind", &kinds, err);
    if (filter->outcome && !has_word(&outcomes, filter->outcome))
        return refuse(filter->outcome, "no step has the outcome", &outcomes, err);
    return 0;
}

int audit_check_words(const struct audit *audit, enum record_kind kind, const struct audit_filter *filter,
                      struct error **err)
{
    PRE(kind != RECORD_ENTRY);
    return kind == RECORD_OPERATION ? check_operations(audit, filter, err) : check_steps(audit, filter, err);
}
