/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/internal.h"

#include "base/time_text.h"

enum {
    TEXT_BYTES_MAX = 64 << 10,  /* of one column */
    REASON_BYTES_MAX = 4 << 10, /* cut, not refused: words */
    DETAIL_BYTES_MAX = 4 << 20,
    BODY_BYTES_MAX = 16 << 20,
    DEAD_BYTES_MAX = 4 << 20,
    PENDING_BYTES_MAX = 256 << 20, /* what may wait in memory for a disk that does not answer */
};
#define CHECKPOINT_EVERY_US (24 * 3600 * US_PER_S)

int64_t journal_mono_us(const struct journal *journal)
{
    return env_boot_us(journal->env) - journal->start_boot_us;
}

int64_t journal_next_seq(const struct journal *journal)
{
    return journal->last_seq + 1;
}

/* --- what the file would refuse --------------------------------------------------------------- */

static void check_size(const char *text, size_t max)
{
    PRE(!text || strlen(text) <= max);
}

static bool is_precondition(const char *version)
{
    return !version || (version[0] && !str_equal(version, "0"));
}

static void check(const struct journal_entry *entry)
{
    PRE(entry->kind < JOURNAL_KIND_COUNT);
    PRE(entry->attempt >= 0 && entry->operation >= 0 && entry->step >= 0);
    PRE(is_precondition(entry->version));
    PRE(entry->http == 0 || (entry->http >= 100 && entry->http <= 599));
    check_size(entry->action, TEXT_BYTES_MAX);
    check_size(entry->object, TEXT_BYTES_MAX);
    check_size(entry->namespace, TEXT_BYTES_MAX);
    check_size(entry->name, TEXT_BYTES_MAX);
    check_size(entry->uid, TEXT_BYTES_MAX);
    check_size(entry->version, TEXT_BYTES_MAX);
    check_size(entry->audit_id, TEXT_BYTES_MAX);
    check_size(entry->detail, DETAIL_BYTES_MAX);
}

/* What a server said is not ours to assert: an answer's "" or "0" is no version, 999 no status. */
static void forgive_answer(struct journal_entry *entry)
{
    if (!is_precondition(entry->version))
        entry->version = NULL;
    if (entry->http < 100 || entry->http > 599)
        entry->http = 0;
}

/* Cuts words at max bytes, not inside a UTF-8 sequence. The caller's, or NULL when they fit. */
static char *cut_reason(const char *reason)
{
    if (!reason || strnlen(reason, REASON_BYTES_MAX + 1) <= REASON_BYTES_MAX)
        return NULL;
    size_t length = REASON_BYTES_MAX;
    while (length > 0 && ((unsigned char)reason[length] & 0xc0) == 0x80)
        length--;
    return xstrndup(reason, length);
}

/* --- rows ------------------------------------------------------------------------------------- */

struct batch_row *journal_append_row(struct journal *journal, const struct journal_entry *entry)
{
    return journal_append_row_at(journal, entry, journal_mono_us(journal));
}

struct batch_row *journal_append_row_at(struct journal *journal, const struct journal_entry *entry,
                                        int64_t mono_us)
{
    struct journal_entry full = *entry;
    CLEANUP_FREE char *reason = cut_reason(entry->reason);
    if (reason)
        full.reason = reason;
    full.seq = journal->last_seq + 1;
    full.form = CHAIN_FORM_NEWEST;
    full.run = entry->kind == JOURNAL_START ? full.seq : journal->run;
    full.epoch = journal->epoch;
    full.hash = NULL;
    full.at_us = env_wall_us(journal->env);
    full.mono_us = mono_us;
    if (entry->kind == JOURNAL_BEGIN)
        full.operation = full.seq;
    if (entry->kind == JOURNAL_INTENT)
        full.step = full.seq;
    check(&full);
    journal->last_seq = full.seq;
    /* Nothing of it will ever be written: the process is about to end. */
    if (journal->is_dead && batch_bytes(journal->pending) > DEAD_BYTES_MAX)
        batch_clear(journal->pending);
    struct batch_row *row = batch_add(journal->pending, &full);
    if (batch_bytes(journal->pending) > PENDING_BYTES_MAX && !journal->is_dead)
        health_set_dead(journal, "journal %s: more than %d MiB wait for the disk", journal->place.path,
                        PENDING_BYTES_MAX >> 20);
    return row;
}

void journal_append_checkpoint(struct journal *journal)
{
    int64_t now_us = env_wall_us(journal->env);
    bool many = journal->last_seq - journal->checkpoint_seq >= JOURNAL_CHECKPOINT_ENTRIES;
    bool old = now_us - journal->checkpoint_at_us >= CHECKPOINT_EVERY_US &&
               journal->last_seq > journal->checkpoint_seq;
    if (!many && !old)
        return;
    /* The range that it closes may be cut off one day, with the run's start entry in it: what is needed of
     * that stands here again. */
    CLEANUP_JSON cJSON *detail = json_new_object();
    json_add_str(detail, "nonce", journal->nonce);
    json_add_str(detail, "identity", journal->identity);
    json_add_str(detail, "version", journal->version);
    CLEANUP_FREE char *text = json_print(detail);
    const struct batch_row *row =
        journal_append_row(journal, &(struct journal_entry){.kind = JOURNAL_CHECKPOINT, .detail = text});
    journal->checkpoint_seq = row->entry.seq;
    journal->checkpoint_at_us = row->entry.at_us;
}

/* --- effects ---------------------------------------------------------------------------------- */

static void open_operation(struct journal *journal, struct batch_row *row)
{
    const struct journal_entry *entry = &row->entry;
    CLEANUP_JSON cJSON *detail = NULL;
    if (entry->detail && json_parse(entry->detail, strlen(entry->detail), &detail, NULL) < 0)
        detail = NULL;
    const char *from = json_str(detail, JOURNAL_DETAIL_FROM);
    const char *to = json_str(detail, JOURNAL_DETAIL_TO);
    row->effect.come_from = batch_copy_text(journal->pending, from ? from : "");
    row->effect.go_to = batch_copy_text(journal->pending, to ? to : "");
    open_set_add_operation(journal->open, &(struct journal_open_operation){
                                              .seq = entry->seq,
                                              .action = entry->action,
                                              .object = entry->object,
                                              .namespace = entry->namespace,
                                              .name = entry->name,
                                              .come_from = row->effect.come_from,
                                              .go_to = row->effect.go_to,
                                              .begun_us = entry->at_us,
                                          });
}

static void open_step(struct journal *journal, const struct batch_row *row)
{
    const struct journal_entry *entry = &row->entry;
    open_set_add_step(journal->open, &(struct journal_open_step){
                                         .seq = entry->seq,
                                         .operation = entry->operation,
                                         .run = entry->run,
                                         .nonce = journal->nonce,
                                         .action = entry->action,
                                         .object = entry->object,
                                         .namespace = entry->namespace,
                                         .name = entry->name,
                                         .uid = entry->uid,
                                         .version = entry->version,
                                         .detail = entry->detail,
                                         .last_at_us = entry->at_us,
                                     });
}

/* An answer's row: what it leaves out is known from its step. */
static void complete_from_step(const struct journal_open_step *step, struct journal_entry *entry)
{
    if (entry->operation == 0)
        entry->operation = step->operation;
    if (entry->attempt == 0)
        entry->attempt = step->unknowns + 1;
}

static struct batch_row *append_answer(struct journal *journal, struct journal_entry entry)
{
    forgive_answer(&entry);
    PRE(entry.step > 0);
    struct journal_open_step *step = open_set_step(journal->open, entry.step);
    if (entry.kind == JOURNAL_LATE) {
        PRE(!step && entry.step <= journal->last_seq);
        return journal_append_row(journal, &entry);
    }
    PRE(step);
    complete_from_step(step, &entry);
    struct batch_row *row = journal_append_row(journal, &entry);
    if (entry.kind == JOURNAL_UNKNOWN) {
        step->unknowns++;
        step->last_at_us = row->entry.at_us;
    } else {
        open_set_remove_step(journal->open, entry.step);
    }
    return row;
}

static struct batch_row *append_intent(struct journal *journal, const struct journal_entry *entry)
{
    PRE(entry->action && entry->object && entry->name);
    PRE(open_set_operation(journal->open, entry->operation));
    struct batch_row *row = journal_append_row(journal, entry);
    open_step(journal, row);
    return row;
}

static struct batch_row *append_end(struct journal *journal, const struct journal_entry *entry)
{
    PRE(entry->action && open_set_operation(journal->open, entry->operation));
    struct batch_row *row = journal_append_row(journal, entry);
    open_set_remove_operation(journal->open, entry->operation);
    return row;
}

static struct batch_row *append_by_kind(struct journal *journal, const struct journal_entry *entry)
{
    switch (entry->kind) {
    case JOURNAL_BEGIN: {
        PRE(entry->action && entry->object && entry->name);
        struct batch_row *row = journal_append_row(journal, entry);
        open_operation(journal, row);
        return row;
    }
    case JOURNAL_END:
        return append_end(journal, entry);
    case JOURNAL_INTENT:
        return append_intent(journal, entry);
    case JOURNAL_APPLIED:
    case JOURNAL_REJECTED:
    case JOURNAL_OVERTAKEN:
    case JOURNAL_NOT_SENT:
    case JOURNAL_ABSENT:
    case JOURNAL_UNKNOWN:
    case JOURNAL_LATE:
        return append_answer(journal, *entry);
    case JOURNAL_EPOCH:
    case JOURNAL_NOTE:
        PRE(entry->step == 0);
        return journal_append_row(journal, entry);
    default:
        /* The others are the journal's own: journal_open, journal_close, journal_wait_*, retention. */
        UNREACHABLE();
    }
}

int64_t journal_append(struct journal *journal, const struct journal_entry *entry)
{
    int64_t seq = append_by_kind(journal, entry)->entry.seq;
    journal_append_checkpoint(journal);
    return seq;
}

/* Random bytes come many at a time: a call to the kernel an intent is dear. None is used twice. */
static void take_salt(struct journal *journal, uint8_t ret_salt[static CHAIN_SALT_SIZE])
{
    if (journal->salts_left == 0) {
        env_random(journal->env, journal->salts, sizeof(journal->salts));
        journal->salts_left = SALT_POOL;
    }
    journal->salts_left--;
    memcpy(ret_salt, journal->salts[journal->salts_left], CHAIN_SALT_SIZE);
    memset(journal->salts[journal->salts_left], 0, CHAIN_SALT_SIZE);
}

int64_t journal_append_intent(struct journal *journal, const struct journal_entry *entry, const void *body,
                              size_t body_length, bool keep)
{
    PRE(entry->kind == JOURNAL_INTENT);
    PRE(body_length <= BODY_BYTES_MAX && ERGO(keep, body));
    struct batch_row *row = append_intent(journal, entry);
    if (body) {
        row->has_salt = true;
        row->keep_body = keep;
        row->body = batch_copy(journal->pending, body, body_length);
        row->body_length = body_length;
        take_salt(journal, row->salt);
    }
    int64_t seq = row->entry.seq;
    journal_append_checkpoint(journal);
    return seq;
}
