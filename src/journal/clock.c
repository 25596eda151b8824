/* SPDX-License-Identifier: Apache-2.0
 *
 * The wall clock against the boot clock: entries carry both, and where the one jumped while the other went on
 * a `note` says so beside them. Budgets and leases count on the boot clock; only people, retention by age and
 * the gap between two runs read the wall's. */
#include "journal/internal.h"

#include "base/time_text.h"

/* A clock that is being slewed drifts by a thousandth at most; what is beyond that and this is a jump. */
#define JUMP_US (2 * US_PER_S)
enum { SLEW_DIVISOR = 1000 };
/* A clock that never comes to rest does not fill the journal: what it does meanwhile is noted as one jump. */
#define NOTE_EVERY_US (10 * US_PER_S)

static void note_jump(struct journal *journal, int64_t jump_us, const char *since)
{
    CLEANUP_FREE char *detail = xasprintf("{\"jump_us\":%lld}", (long long)jump_us);
    CLEANUP_FREE char *reason = xasprintf(
        "the wall clock jumped %s by %.1f s %s: times before and after do not compare",
        jump_us < 0 ? "back" : "forward", (double)(jump_us < 0 ? -jump_us : jump_us) / US_PER_S, since);
    journal_append_row(journal, &(struct journal_entry){.kind = JOURNAL_NOTE,
                                                        .action = JOURNAL_NOTE_CLOCK_JUMP,
                                                        .reason = reason,
                                                        .detail = detail});
    health_warn(journal, "%s; is the time of this machine kept (timedatectl)?", reason);
}

static void take_bearings(struct journal *journal, int64_t wall_us, int64_t mono_us)
{
    journal->clock_ahead_us = wall_us - mono_us;
    journal->clock_seen_us = mono_us;
}

void clock_begin(struct journal *journal, const struct loaded *last)
{
    take_bearings(journal, journal->start_at_us, 0);
    journal->clock_noted_us = -NOTE_EVERY_US;
    /* Forward is what clocks do between two runs; how far nobody knows. */
    int64_t jump_us = journal->start_at_us - last->at_us;
    if (last->has_last && jump_us < -JUMP_US)
        note_jump(journal, jump_us, "since the run before");
}

void clock_look(struct journal *journal)
{
    int64_t wall_us = env_wall_us(journal->env);
    int64_t mono_us = journal_mono_us(journal);
    int64_t jump_us = wall_us - mono_us - journal->clock_ahead_us;
    int64_t allowed_us = JUMP_US + (mono_us - journal->clock_seen_us) / SLEW_DIVISOR;
    if (jump_us >= -allowed_us && jump_us <= allowed_us) {
        take_bearings(journal, wall_us, mono_us);
    } else if (mono_us - journal->clock_noted_us >= NOTE_EVERY_US) {
        take_bearings(journal, wall_us, mono_us);
        journal->clock_noted_us = mono_us;
        note_jump(journal, jump_us, "while the boot clock went on");
    }
}
