/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/internal.h"

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
    if (journal->is_slow)
        return "the disk of the journal is slow: a commit takes longer than a third of the renew deadline; "
               "nothing new "
               "is sent until it is done";
    return "";
}

static void tell(void *context)
{
    struct journal *journal = context;
    journal->health_timer = NULL;
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
