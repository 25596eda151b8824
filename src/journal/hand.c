/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/hand.h"

#include <pthread.h>

enum ticket_state { TICKET_WAITS, TICKET_RUNS, TICKET_FINISHED, TICKET_WITHDRAWN };

/* One job. Outlives the hand when it was taken back: the environment still holds it, and calls once more. */
struct ticket {
    struct hand *hand; /* NULL: taken back. Loop only */
    env_callback *job;
    env_callback *done;
    void *context;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum ticket_state state; /* guarded by mutex */
};

struct hand {
    struct env *env;
    struct ticket *out; /* NULL: the store is the loop's */
};

struct hand *hand_make(struct env *env)
{
    struct hand *hand = xcalloc(1, sizeof(*hand));
    hand->env = env;
    return hand;
}

void hand_free(struct hand *hand)
{
    if (!hand)
        return;
    PRE(!hand->out);
    free(hand);
}

bool hand_is_out(const struct hand *hand)
{
    return hand->out != NULL;
}

static void ticket_free(struct ticket *ticket)
{
    pthread_cond_destroy(&ticket->changed);
    pthread_mutex_destroy(&ticket->mutex);
    free(ticket);
}

/* On the worker. */
static void run_job(void *context)
{
    struct ticket *ticket = context;
    pthread_mutex_lock(&ticket->mutex);
    if (ticket->state == TICKET_WITHDRAWN) {
        pthread_mutex_unlock(&ticket->mutex);
        return;
    }
    ENSURE(ticket->state == TICKET_WAITS);
    ticket->state = TICKET_RUNS;
    pthread_mutex_unlock(&ticket->mutex);
    ticket->job(ticket->context);
    pthread_mutex_lock(&ticket->mutex);
    ticket->state = TICKET_FINISHED;
    pthread_cond_broadcast(&ticket->changed);
    pthread_mutex_unlock(&ticket->mutex);
}

/* On the loop. */
static void on_done(void *context)
{
    struct ticket *ticket = context;
    struct hand *hand = ticket->hand;
    if (!hand) {
        ticket_free(ticket);
        return;
    }
    ENSURE(hand->out == ticket && ticket->state == TICKET_FINISHED);
    hand->out = NULL;
    env_callback *done = ticket->done;
    void *owner = ticket->context;
    ticket_free(ticket);
    done(owner);
}

/* The environment ends first. */
static void on_dropped(void *context)
{
    struct ticket *ticket = context;
    if (!ticket->hand)
        ticket_free(ticket);
}

void hand_give(struct hand *hand, env_callback *job, env_callback *done, void *context)
{
    PRE(!hand->out);
    struct ticket *ticket = xcalloc(1, sizeof(*ticket));
    ticket->hand = hand;
    ticket->job = job;
    ticket->done = done;
    ticket->context = context;
    ENSURE(pthread_mutex_init(&ticket->mutex, NULL) == 0 && pthread_cond_init(&ticket->changed, NULL) == 0);
    hand->out = ticket;
    env_work_or_drop(hand->env, run_job, on_done, on_dropped, ticket);
}

bool hand_take_back(struct hand *hand)
{
    struct ticket *ticket = STEAL(hand->out);
    if (!ticket)
        return false;
    pthread_mutex_lock(&ticket->mutex);
    while (ticket->state == TICKET_RUNS)
        pthread_cond_wait(&ticket->changed, &ticket->mutex);
    bool finished = ticket->state == TICKET_FINISHED;
    if (!finished)
        ticket->state = TICKET_WITHDRAWN;
    pthread_mutex_unlock(&ticket->mutex);
    ticket->hand = NULL;
    return finished;
}

void hand_hold(struct hand *hand)
{
    struct ticket *ticket = hand->out;
    if (!ticket)
        return;
    pthread_mutex_lock(&ticket->mutex);
    while (ticket->state == TICKET_RUNS)
        pthread_cond_wait(&ticket->changed, &ticket->mutex);
    /* The mutex stays ours: a job that waits cannot begin. */
}

void hand_release(struct hand *hand)
{
    if (hand->out)
        pthread_mutex_unlock(&hand->out->mutex);
}
