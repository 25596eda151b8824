/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/internal.h"
#include "journal/lock.h"

enum journal_health journal_health(const struct journal *journal)
{
    if (journal->is_dead)
        return JOURNAL_DEAD;
    if (journal->is_full)
        return JOURNAL_FULL;
    return journal->is_slow ? JOURNAL_SLOW : JOURNAL_WELL;
}

const char *journal_problem(const struct journal *journal)
{
    if (journal->problem && (journal->is_dead || journal->is_full))
        return journal->problem;
    if (journal->is_slow && journal->lock_problem)
        return journal->lock_problem;
    if (journal->is_slow)
        return "the disk of the journal is slow: a commit takes longer than a third of the renew deadline; "
               "nothing new "
               "is sent until it is done";
    return "";
}

static void tell_kept_warning(struct journal *journal)
{
    CLEANUP_FREE char *sentence = journal->on_warning ? STEAL(journal->kept_warning) : NULL;
    if (sentence)
        journal->on_warning(journal->on_warning_context, sentence);
}

static void tell(void *context)
{
    struct journal *journal = context;
    journal->health_timer = NULL;
    tell_kept_warning(journal);
    enum journal_health health = journal_health(journal);
    if (health == journal->told)
        return;
    journal->told = health;
    if (journal->on_health)
        journal->on_health(journal->on_health_context);
}

void health_changed(struct journal *journal)
{
    if (journal_health(journal) != journal->told && !journal->health_timer)
        journal->health_timer = env_timer_start(journal->env, 0, tell, journal);
}

void health_set_dead(struct journal *journal, const char *format, ...)
{
    if (journal->is_dead)
        return;
    va_list args;
    va_start(args, format);
    char *text = xvasprintf(format, args);
    va_end(args);
    free(journal->problem);
    journal->problem = text;
    journal->is_dead = true;
    health_changed(journal);
}

void journal_on_health(struct journal *journal, env_callback *changed, void *context)
{
    journal->on_health = changed;
    journal->on_health_context = context;
}

void journal_on_warning(struct journal *journal, journal_warning *warning, void *context)
{
    journal->on_warning = warning;
    journal->on_warning_context = context;
    if (warning && journal->kept_warning && !journal->health_timer)
        journal->health_timer = env_timer_start(journal->env, 0, tell, journal);
}

void health_warn(struct journal *journal, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *sentence = xvasprintf(format, args);
    va_end(args);
    if (journal->on_warning)
        journal->on_warning(journal->on_warning_context, sentence);
    else
        str_replace(&journal->kept_warning, sentence);
}

void health_note_locked(struct journal *journal)
{
    if (journal->locked_by)
        return;
    journal->locked_by = lock_writer_text(journal->place.shm_path);
    journal->lock_problem = xasprintf(
        "journal %s is locked for writing by %s (a sqlite3 shell without -readonly?): nothing new is "
        "sent until it lets go; end it, and read the journal with neoset-audit or sqlite3 -readonly",
        journal->place.path, journal->locked_by);
}

void health_note_unlocked(struct journal *journal)
{
    free(STEAL(journal->locked_by));
    free(STEAL(journal->lock_problem));
}

/* Once a step of growth: it grows as long as a reader keeps an old state of the file. */
void health_note_wal(struct journal *journal, int64_t bytes)
{
    if (bytes < journal->options.wal_warn_bytes / 2)
        journal->wal_warn_bytes = journal->options.wal_warn_bytes;
    if (bytes < journal->wal_warn_bytes)
        return;
    while (journal->wal_warn_bytes <= bytes)
        journal->wal_warn_bytes *= 2;
    health_warn(
        journal,
        "%s has grown to %lld MiB: somebody has been reading the journal in one go for long, and what "
        "is written meanwhile piles up there; find and end that reader (fuser %s)",
        journal->place.wal_path, (long long)(bytes >> 20), journal->place.shm_path);
}
