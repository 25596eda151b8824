/* SPDX-License-Identifier: Apache-2.0
 *
 * Rule 6 of "In doubt": a key that turns up on an object although its step was closed as anything but applied
 * gets a `late` entry, once. The keys of this run are known by heart, the oldest are forgotten; for those and
 * for ended runs the journal is asked, a few keys at a time. Everything is bounded: a key that finds no room
 * is asked about when it is seen next. */
#include "control/gateway_parts.h"

#include <ctype.h>

static void forget(struct gateway *gateway, struct closed_key *closed)
{
    HASH_DEL(gateway->closed_keys, closed);
    free(closed->key);
    free(closed);
}

void gateway_remember_closed(struct gateway *gateway, const struct flight *flight)
{
    if (HASH_COUNT(gateway->closed_keys) >= CLOSED_KEYS_MAX) {
        gateway->late.forgot = true;
        forget(gateway, gateway->closed_keys); /* uthash keeps the order of insertion */
    }
    struct closed_key *closed = xcalloc(1, sizeof(*closed));
    closed->key = xstrdup(flight->key);
    closed->step = flight->step;
    closed->operation = flight->operation;
    HASH_ADD_KEYPTR(hh, gateway->closed_keys, closed->key, strlen(closed->key), closed);
}

/* --- the entry ------------------------------------------------------------------------------------------ */

static void append_late(struct gateway *gateway, int64_t step, int64_t operation)
{
    struct late *late = &gateway->late;
    /* The journal does not show yet what was appended just now. */
    for (size_t i = 0; i < LATE_NEWEST; i++)
        if (late->newest[i] == step)
            return;
    late->newest[late->newest_at++ % LATE_NEWEST] = step;
    journal_append(
        gateway->options.journal,
        &(struct journal_entry){.kind = JOURNAL_LATE,
                                .operation = operation,
                                .step = step,
                                .reason = "its key turned up on the object after the step was closed"});
    journal_commit_soon(gateway->options.journal);
    gateway->metrics.late++;
}

/* --- questions to the journal --------------------------------------------------------------------------- */

static void ask(struct gateway *gateway);

static void answered(void *context, const struct journal_look *looks, size_t count)
{
    struct gateway *gateway = context;
    gateway->late.asking = false;
    for (size_t i = 0; i < count; i++)
        if (looks[i].fate == JOURNAL_FATE_CLOSED)
            append_late(gateway, looks[i].step, looks[i].operation);
    ask(gateway);
}

static void ask(struct gateway *gateway)
{
    struct late *late = &gateway->late;
    if (late->asking || late->count == 0)
        return;
    size_t count = MIN(late->count, (size_t)JOURNAL_LOOKS_MAX);
    const struct journal_look *last = late->questions + late->count - count;
    late->asking = journal_look(gateway->options.journal, last, count, answered, gateway);
    if (!late->asking)
        return;
    late->count -= count;
    if (late->count > 0)
        return;
    free(STEAL(late->questions));
    late->room = 0;
}

static void put_question(struct gateway *gateway, uint64_t nonce, int64_t step)
{
    struct late *late = &gateway->late;
    if (late->count == late->room) {
        late->room = MAX(2 * late->room, (size_t)JOURNAL_LOOKS_MAX);
        late->questions = xreallocarray(late->questions, late->room, sizeof(*late->questions));
    }
    late->questions[late->count++] = (struct journal_look){.nonce = nonce, .step = step};
    ask(gateway);
}

/* "0123456789abcdef-42", and nothing else. */
static bool read_key(const char *key, uint64_t *ret_nonce, int64_t *ret_step)
{
    enum { NONCE_DIGITS = 16, STEP_DIGITS_MAX = 18 };
    size_t length = 0;
    while (isxdigit((unsigned char)key[length]))
        length++;
    if (length != NONCE_DIGITS || key[length] != '-')
        return false;
    const char *digits = key + length + 1;
    length = strspn(digits, "0123456789");
    if (length == 0 || length > STEP_DIGITS_MAX || digits[length])
        return false;
    *ret_nonce = strtoull(key, NULL, 16);
    *ret_step = strtoll(digits, NULL, 10);
    return *ret_step > 0;
}

/* Who asks about a key that has its place already is not heard again. */
static bool was_asked(struct late *late, uint64_t nonce, int64_t step)
{
    if (!late->asked)
        late->asked = xcalloc(ASKED_PLACES, sizeof(*late->asked));
    /* Odd: different steps of a run stay different. The nonces are random. */
    uint64_t mark = nonce ^ ((uint64_t)step * 0x9E3779B97F4A7C15ULL);
    uint64_t *place = &late->asked[mark % ASKED_PLACES];
    if (*place == mark)
        return true;
    if (late->count < QUESTIONS_MAX)
        *place = mark;
    return false;
}

static void ask_journal(struct gateway *gateway, const char *key)
{
    struct late *late = &gateway->late;
    const struct journal *journal = gateway->options.journal;
    uint64_t nonce;
    int64_t step;
    if (!read_key(key, &nonce, &step) || step >= journal_next_seq(journal) ||
        journal_open_step_find(journal, step))
        return;
    bool is_of_this_run = strncmp(key, journal_nonce(journal), strlen(journal_nonce(journal))) == 0;
    if (is_of_this_run && !late->forgot)
        return; /* applied, or its late entry is there */
    if (!was_asked(late, nonce, step) && late->count < QUESTIONS_MAX)
        put_question(gateway, nonce, step);
}

void gateway_observe_key(struct gateway *gateway, const char *key)
{
    struct closed_key *closed = NULL;
    HASH_FIND_STR(gateway->closed_keys, key, closed);
    if (!closed) {
        ask_journal(gateway, key);
        return;
    }
    append_late(gateway, closed->step, closed->operation);
    forget(gateway, closed);
}

void gateway_forget_closed(struct gateway *gateway)
{
    struct closed_key *closed = gateway->closed_keys, *next = NULL;
    HASH_CLEAR(hh, gateway->closed_keys);
    for (; closed; closed = next) {
        next = closed->hh.next;
        free(closed->key);
        free(closed);
    }
    journal_look_forget(gateway->options.journal, gateway);
    free(gateway->late.asked);
    free(gateway->late.questions);
}
