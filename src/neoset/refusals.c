/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/refusals.h"

#include "base/time_text.h"
#include "neoset/bounded_list.h"
#include "neoset/fact.h"

#define REFUSED_FIRST_US (5 * US_PER_S)
#define REFUSED_MOST_US (300 * US_PER_S)
enum { REFUSALS_MAX = 512, WRITTEN_MAX = 64 };
/* The same step again so much later has a reason of its own: somebody undid it. */
enum { APPLIED_FORGET_S = 60 };
/* No pod, claim or revision needs so many; a set's decisions go by its pods. */
enum { WRITES_A_MINUTE = 60, ADVANCES_A_MINUTE = 6000 };
#define MINUTE_US (60 * US_PER_S)

/* An object that is no pod. */
struct written {
    struct written *next;
    char *name;
    enum kube_resource resource;
    struct write_history history;
};

struct refusals {
    struct refusal *refusals; /* the oldest first */
    size_t refusal_count;
    struct written *written; /* the oldest first */
    size_t written_count;
};

static void free_refusal(struct refusal *refusal)
{
    free(refusal->name);
    free(refusal->fingerprint);
    free(refusal->words);
    free(refusal->reason);
    free(refusal);
}

static void free_written(struct written *written)
{
    free(written->name);
    free(written);
}

struct refusals *refusals_make(void)
{
    return xcalloc(1, sizeof(struct refusals));
}

void refusals_free(struct refusals *refusals)
{
    if (!refusals)
        return;
    struct refusal *refusal = NULL, *next_refusal = NULL;
    LL_FOREACH_SAFE (refusals->refusals, refusal, next_refusal)
        free_refusal(refusal);
    struct written *written = NULL, *next_written = NULL;
    LL_FOREACH_SAFE (refusals->written, written, next_written)
        free_written(written);
    free(refusals);
}

int64_t refusals_backoff_us(int64_t base, int64_t most, int count)
{
    int64_t wait = base;
    for (int i = 1; i < count && wait < most; i++)
        wait *= 2;
    return MIN(wait, most);
}

/* --- refused -------------------------------------------------------------------------------------------- */

static struct refusal *find(const struct refusals *refusals, enum kube_resource resource, const char *name,
                            enum step_kind kind)
{
    struct refusal *refusal = NULL;
    LL_FOREACH (refusals->refusals, refusal) {
        if (refusal->resource == resource && refusal->kind == kind && str_equal(refusal->name, name))
            return refusal;
    }
    return NULL;
}

const struct refusal *refusals_find(const struct refusals *refusals, enum kube_resource resource,
                                    const char *name, enum step_kind kind)
{
    return find(refusals, resource, name, kind);
}

static void drop(struct refusals *refusals, struct refusal *refusal)
{
    LL_DELETE(refusals->refusals, refusal);
    refusals->refusal_count--;
    free_refusal(refusal);
}

static struct refusal *add(struct refusals *refusals, const struct step_outcome *outcome)
{
    struct refusal *refusal = xcalloc(1, sizeof(*refusal));
    refusal->name = xstrdup(outcome->target.name);
    refusal->resource = outcome->target.resource;
    refusal->kind = outcome->step_kind;
    BOUNDED_LIST_APPEND(refusals->refusals, refusals->refusal_count, REFUSALS_MAX, refusal, free_refusal);
    return refusal;
}

static struct refusal *note_refusal(struct refusals *refusals, const struct step_outcome *outcome,
                                    int64_t boot_us)
{
    struct refusal *refusal =
        find(refusals, outcome->target.resource, outcome->target.name, outcome->step_kind);
    if (!refusal)
        refusal = add(refusals, outcome);
    if (!str_equal(refusal->fingerprint, outcome->fingerprint))
        refusal->count = 0;
    /* What a reading found out has no answer of its own: the name of a create is taken, or somebody was
     * faster. */
    refusal->http = outcome->kind == JOURNAL_OVERTAKEN || outcome->http == 0 ? 409 : outcome->http;
    str_replace(&refusal->fingerprint, outcome->fingerprint);
    str_replace(&refusal->words, outcome->summary ? outcome->summary : "");
    bool overtaken = outcome->kind == JOURNAL_OVERTAKEN;
    str_replace(&refusal->reason, overtaken ? REFUSAL_OVERTAKEN : outcome->reason ? outcome->reason : "");
    refusal->count++;
    refusal->again_boot_us = boot_us + refusals_backoff_us(REFUSED_FIRST_US, REFUSED_MOST_US, refusal->count);
    return refusal;
}

/* --- taken, and not kept -------------------------------------------------------------------------------- */

static struct written *find_written(const struct refusals *refusals, enum kube_resource resource,
                                    const char *name)
{
    struct written *written = NULL;
    LL_FOREACH (refusals->written, written) {
        if (written->resource == resource && strcmp(written->name, name) == 0)
            return written;
    }
    return NULL;
}

static struct write_history *need_history(struct refusals *refusals, const struct kube_ref *target)
{
    struct written *written = find_written(refusals, target->resource, target->name);
    if (written)
        return &written->history;
    written = xcalloc(1, sizeof(*written));
    written->name = xstrdup(target->name);
    written->resource = target->resource;
    BOUNDED_LIST_APPEND(refusals->written, refusals->written_count, WRITTEN_MAX, written, free_written);
    return &written->history;
}

static uint32_t hash_of_step(const struct step_outcome *outcome)
{
    CLEANUP_FREE char *text =
        xasprintf("%d %s", (int)outcome->step_kind, outcome->fingerprint ? outcome->fingerprint : "");
    uint64_t hash = text_hash64(text);
    uint32_t folded = (uint32_t)(hash ^ hash >> 32);
    return folded ? folded : 1;
}

/* True when the same was applied to the object just before: the server takes it, and does not keep it. */
static bool is_repeated(const struct refusals *refusals, const struct step_outcome *outcome,
                        struct write_history *history, int64_t boot_us)
{
    uint32_t what = hash_of_step(outcome), now_s = (uint32_t)(boot_us / US_PER_S);
    const struct refusal *refusal =
        find(refusals, outcome->target.resource, outcome->target.name, outcome->step_kind);
    uint32_t patience_s = APPLIED_FORGET_S;
    if (refusal && str_equal(refusal->reason, REFUSAL_NOT_KEPT))
        patience_s +=
            (uint32_t)(refusals_backoff_us(REFUSED_FIRST_US, REFUSED_MOST_US, refusal->count) / US_PER_S);
    bool repeated = history->applied == what && now_s - history->applied_boot_s <= patience_s;
    history->applied = what;
    history->applied_boot_s = now_s;
    return repeated;
}

static void note_not_kept(struct refusals *refusals, const struct step_outcome *outcome, int64_t boot_us)
{
    struct refusal *refusal = note_refusal(refusals, outcome, boot_us);
    refusal->http = 0;
    str_replace(&refusal->reason, REFUSAL_NOT_KEPT);
    str_replace(&refusal->words, "it takes the write and does not keep it");
}

/* --- too many ------------------------------------------------------------------------------------------- */

static void count(struct write_history *history, int64_t boot_us)
{
    uint32_t minute = (uint32_t)(boot_us / MINUTE_US);
    if (history->minute != minute)
        history->count = 0;
    history->minute = minute;
    history->count++;
}

bool refusals_is_flooded(const struct refusals *refusals, enum kube_resource resource, const char *name,
                         const struct write_history *of_pod, int64_t boot_us, int64_t *ret_until_boot_us)
{
    const struct write_history *history = of_pod;
    if (!history) {
        const struct written *written = find_written(refusals, resource, name);
        history = written ? &written->history : NULL;
    }
    uint32_t limit = resource == KUBE_NEOSET ? ADVANCES_A_MINUTE : WRITES_A_MINUTE;
    if (!history || history->minute != (uint32_t)(boot_us / MINUTE_US) || history->count < limit)
        return false;
    *ret_until_boot_us = (boot_us / MINUTE_US + 1) * MINUTE_US;
    return true;
}

/* --- outcomes ------------------------------------------------------------------------------------------- */

void refusals_note(struct refusals *refusals, const struct step_outcome *outcome,
                   struct write_history *of_pod, int64_t boot_us)
{
    struct write_history *history = of_pod ? of_pod : need_history(refusals, &outcome->target);
    bool creates = strcmp(step_kind_info(outcome->step_kind)->method, "POST") == 0;
    count(history, boot_us);
    /* A create that was overtaken found its name taken: asking again at once would be answered the same way.
     */
    if (outcome->kind == JOURNAL_REJECTED || (outcome->kind == JOURNAL_OVERTAKEN && creates)) {
        (void)note_refusal(refusals, outcome, boot_us);
        return;
    }
    if (outcome->kind != JOURNAL_APPLIED)
        return;
    if (!creates && is_repeated(refusals, outcome, history, boot_us)) {
        note_not_kept(refusals, outcome, boot_us);
        return;
    }
    /* Another kind of write that is accepted makes nothing good. */
    struct refusal *refusal =
        find(refusals, outcome->target.resource, outcome->target.name, outcome->step_kind);
    if (refusal)
        drop(refusals, refusal);
}
