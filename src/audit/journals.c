/* SPDX-License-Identifier: Apache-2.0
 *
 * Several files as one history: opening, the same journal twice, forks, ids that tell the journals apart. */
#include "audit/parts.h"
#include "kube/resource.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

void audit_say(const struct audit *audit, const char *format, ...)
{
    if (!audit->notice)
        return;
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *sentence = xvasprintf(format, args);
    va_end(args);
    audit->notice(audit->context, sentence);
}

/* --- the same journal twice ------------------------------------------------------------------------- */

struct wanted_hash {
    uint8_t hash[SHA256_SIZE];
    bool is_there;
};

static bool take_hash(void *context, const struct journal_entry *entry)
{
    struct wanted_hash *wanted = context;
    if (entry->hash)
        memcpy(wanted->hash, entry->hash, SHA256_SIZE);
    wanted->is_there = entry->hash != NULL;
    return false;
}

/* The hash of an entry; is_there is false for one that retention removed. */
static int hash_at(const struct audit_journal *journal, int64_t seq, struct wanted_hash *ret,
                   struct error **err)
{
    *ret = (struct wanted_hash){0};
    if (seq == journal->meta->pruned_seq) {
        memcpy(ret->hash, journal->meta->pruned_hash, SHA256_SIZE);
        ret->is_there = true;
        return 0;
    }
    if (seq < journal->meta->pruned_seq)
        return 0;
    CLEANUP_ERROR struct error *own = NULL;
    int r = journal_read_entry(journal->reader, seq, take_hash, ret, &own);
    if (r == -ERROR_NOT_FOUND)
        return 0;
    if (r < 0 && err)
        *err = STEAL(own);
    return r;
}

static int agree_at(const struct audit_journal *a, const struct audit_journal *b, int64_t seq, bool *ret,
                    struct error **err)
{
    struct wanted_hash left;
    struct wanted_hash right;
    int r = hash_at(a, seq, &left, err);
    if (r == 0)
        r = hash_at(b, seq, &right, err);
    if (r == 0)
        *ret = !left.is_there || !right.is_there || memcmp(left.hash, right.hash, SHA256_SIZE) == 0;
    return r;
}

/* Two files of one journal: one continues the other, or they are a fork. The chain makes a binary search
 * possible: once the hashes differ, all later ones do. */
static int check_fork(const struct audit_journal *a, const struct audit_journal *b, struct error **err)
{
    int64_t common = MIN(a->meta->head_seq, b->meta->head_seq);
    bool agrees = true;
    int r = common == 0 ? 0 : agree_at(a, b, common, &agrees, err);
    if (r < 0 || agrees)
        return r;
    int64_t same = MAX(a->meta->pruned_seq, b->meta->pruned_seq);
    int64_t differs = common;
    while (differs - same > 1) {
        int64_t middle = same + (differs - same) / 2;
        r = agree_at(a, b, middle, &agrees, err);
        if (r < 0)
            return r;
        *(agrees ? &same : &differs) = middle;
    }
    return error_set(
        err, ERROR_FORKED,
        "%s and %s are the same journal (%.8s...) and differ from entry %" PRId64
        " on: one of them was restored or copied and written by a second controller; read one at a time",
        a->meta->path, b->meta->path, a->meta->journal_id, differs);
}

/* Drops the shorter of two files of one journal. *ret_dropped: index i is another journal now, or none. */
static int join_same(struct audit *audit, size_t i, bool *ret_dropped, struct error **err)
{
    struct audit_journal *newer = &audit->journals[i];
    *ret_dropped = false;
    for (size_t j = 0; j < i; j++) {
        struct audit_journal *older = &audit->journals[j];
        if (!str_equal(older->meta->journal_id, newer->meta->journal_id))
            continue;
        int r = check_fork(older, newer, err);
        if (r < 0)
            return r;
        bool keeps_older = older->meta->head_seq >= newer->meta->head_seq;
        audit_say(audit, "%s and %s are the same journal: it is read once, from %s", older->meta->path,
                  newer->meta->path, keeps_older ? older->meta->path : newer->meta->path);
        struct audit_journal *dropped = keeps_older ? newer : older;
        journal_reader_close(dropped->reader);
        if (!keeps_older)
            *older = *newer;
        *newer = (struct audit_journal){0};
        audit->count--;
        *ret_dropped = true;
        return 0;
    }
    return 0;
}

/* Four digits, or as many as it takes to tell the journals apart. */
static void set_prefixes(struct audit *audit)
{
    size_t digits = 4;
    for (size_t i = 0; i < audit->count; i++)
        for (size_t j = 0; j < i; j++)
            while (digits < 32 && strncmp(audit->journals[i].meta->journal_id,
                                          audit->journals[j].meta->journal_id, digits) == 0)
                digits++;
    for (size_t i = 0; i < audit->count; i++)
        snprintf(audit->journals[i].prefix, sizeof audit->journals[i].prefix, "%.*s", (int)digits,
                 audit->journals[i].meta->journal_id);
}

int audit_open(struct audit *audit, const char *const *paths, size_t count, struct error **err)
{
    PRE(audit->count == 0);
    if (count > AUDIT_JOURNALS_MAX)
        return error_set(err, ERROR_USAGE, "%zu journals are too many: at most %d at a time", count,
                         AUDIT_JOURNALS_MAX);
    for (size_t i = 0; i < count; i++) {
        struct audit_journal *journal = &audit->journals[audit->count];
        int r = journal_reader_open(paths[i], &journal->reader, err);
        if (r < 0)
            return r;
        journal->meta = journal_reader_meta(journal->reader);
        audit->count++;
        if (journal->meta->notice)
            audit_say(audit, "%s", journal->meta->notice);
        bool is_dropped;
        r = join_same(audit, audit->count - 1, &is_dropped, err);
        if (r < 0)
            return r;
    }
    set_prefixes(audit);
    return 0;
}

void audit_close(struct audit *audit)
{
    for (size_t i = 0; i < audit->count; i++)
        journal_reader_close(audit->journals[i].reader);
    audit->count = 0;
}

/* --- ids -------------------------------------------------------------------------------------------- */

void audit_id_text(const struct audit *audit, const struct audit_journal *journal, int64_t seq,
                   struct id_text *ret)
{
    if (audit->count > 1)
        snprintf(ret->text, sizeof ret->text, "%s:%" PRId64, journal->prefix, seq);
    else
        snprintf(ret->text, sizeof ret->text, "%" PRId64, seq);
}

struct sheet_cell audit_id_cell(const struct audit *audit, const struct audit_journal *journal, int64_t seq,
                                struct id_text *memory)
{
    if (seq == 0 || audit->count == 1)
        return cell_number_or_null(seq);
    audit_id_text(audit, journal, seq, memory);
    return cell_text(memory->text);
}

static bool note_found(void *context, const struct journal_operation_record *operation)
{
    *(bool *)context = operation->id != 0;
    return true;
}

static int parse_seq(const char *text, const char *whole, int64_t *ret, struct error **err)
{
    char *end = NULL;
    errno = 0;
    long long seq = strtoll(text, &end, 10);
    if (text[0] < '1' || text[0] > '9' || *end != '\0' || errno != 0)
        return error_set(err, ERROR_USAGE,
                         "\"%s\" is no operation: give its number, as `neoset-audit list` shows it", whole);
    *ret = seq;
    return 0;
}

int audit_find_operation(struct audit *audit, const char *text, struct audit_journal **ret_journal,
                         int64_t *ret_id, struct error **err)
{
    const char *rest = str_starts_with(text, "operation/") ? text + strlen("operation/") : text;
    size_t prefix = strcspn(rest, ":");
    bool has_prefix = rest[prefix] == ':';
    int64_t id = 0;
    int r = parse_seq(has_prefix ? rest + prefix + 1 : rest, text, &id, err);
    if (r < 0)
        return r;
    struct audit_journal *found = NULL;
    for (size_t i = 0; i < audit->count; i++) {
        struct audit_journal *journal = &audit->journals[i];
        if (has_prefix && (prefix == 0 || strncmp(journal->meta->journal_id, rest, prefix) != 0))
            continue;
        bool is_there = false;
        struct journal_operation_filter one = {.id = id};
        r = journal_read_operations(journal->reader, &one, note_found, &is_there, err);
        if (r < 0)
            return r;
        if (is_there && found)
            return error_set(err, ERROR_USAGE,
                             "operation %s is in more than one journal: say %s:%" PRId64 " or %s:%" PRId64,
                             text, found->prefix, id, journal->prefix, id);
        found = is_there ? journal : found;
    }
    if (!found)
        return error_set(err, ERROR_NOT_FOUND, "no operation %s: `neoset-audit list` shows those there are",
                         text);
    *ret_journal = found;
    *ret_id = id;
    return 0;
}

int audit_parse_for(const char *text, struct audit_filter *filter, char **ret_memory, struct error **err)
{
    const char *slash = strchr(text, '/');
    if (!slash || slash == text || slash[1] == '\0' || strchr(slash + 1, '/'))
        return error_set(err, ERROR_USAGE,
                         "--for needs KIND/NAME, as in NeoSet/mysql or pod/mysql-3, not \"%s\"", text);
    char *memory = xstrdup(text);
    memory[slash - text] = '\0';
    enum kube_resource resource;
    filter->object =
        kube_resource_by_name(memory, &resource) == 0 ? kube_resource_info(resource)->kind : memory;
    filter->name = memory + (slash - text) + 1;
    *ret_memory = memory;
    return 0;
}
