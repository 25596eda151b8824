/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/belonging.h"

#include <uthash.h>

/* An operation's begin entry or a step's intent. */
struct known {
    int64_t seq;
    bool is_object;
    bool is_in_namespace;
    UT_hash_handle hh;
};

struct belonging {
    const struct audit_journal *journal;
    const struct audit_filter *filter;
    struct known *known;
};

/* A look-up under way. */
struct look_up {
    const struct audit_filter *filter;
    struct known *known;
};

struct belonging *belonging_make(const struct audit_journal *journal, const struct audit_filter *filter)
{
    struct belonging *belonging = xcalloc(1, sizeof *belonging);
    *belonging = (struct belonging){.journal = journal, .filter = filter};
    return belonging;
}

void belonging_free(struct belonging *belonging)
{
    if (!belonging)
        return;
    /* Without their table they are still a list. */
    struct known *known = belonging->known;
    HASH_CLEAR(hh, belonging->known);
    while (known) {
        struct known *next = known->hh.next;
        free(known);
        known = next;
    }
    free(belonging);
}

static bool is_in_namespace(const struct audit_filter *filter, const char *namespace)
{
    return !filter->namespace || str_equal(filter->namespace, namespace ? namespace : "");
}

static bool is_object(const struct audit_filter *filter, const struct journal_entry *entry)
{
    return str_equal(filter->object, entry->object) && str_equal(filter->name, entry->name) &&
           is_in_namespace(filter, entry->namespace);
}

static bool take(void *context, const struct journal_entry *entry)
{
    struct look_up *look_up = context;
    look_up->known->is_object = is_object(look_up->filter, entry);
    look_up->known->is_in_namespace = is_in_namespace(look_up->filter, entry->namespace);
    return false;
}

/* An entry that retention removed is of no object. */
static int look_up(struct belonging *belonging, int64_t seq, const struct known **ret, struct error **err)
{
    struct known *known = NULL;
    HASH_FIND(hh, belonging->known, &seq, sizeof seq, known);
    if (!known) {
        known = xcalloc(1, sizeof *known);
        known->seq = seq;
        struct look_up wanted = {.filter = belonging->filter, .known = known};
        CLEANUP_ERROR struct error *own = NULL;
        int r = journal_read_entry(belonging->journal->reader, seq, take, &wanted, &own);
        if (r < 0 && r != -ERROR_NOT_FOUND) {
            free(known);
            if (err)
                *err = STEAL(own);
            return r;
        }
        HASH_ADD(hh, belonging->known, seq, sizeof known->seq, known);
    }
    *ret = known;
    return 0;
}

int belonging_check(struct belonging *belonging, const struct journal_entry *entry, bool *ret,
                    struct error **err)
{
    const struct audit_filter *filter = belonging->filter;
    *ret = true;
    if (!filter->object && !filter->namespace)
        return 0;
    if (filter->object && entry->object && is_object(filter, entry))
        return 0;
    const int64_t names[] = {entry->operation, entry->step};
    bool in_namespace =
        entry->operation == 0 && entry->namespace && is_in_namespace(filter, entry->namespace);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const struct known *known = NULL;
        int r = names[i] ? look_up(belonging, names[i], &known, err) : 0;
        if (r < 0)
            return r;
        if (known && known->is_object)
            return 0;
        in_namespace = in_namespace || (i == 0 && known && known->is_in_namespace);
    }
    *ret = !filter->object && in_namespace;
    return 0;
}
