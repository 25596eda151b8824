/* SPDX-License-Identifier: Apache-2.0 */
#include "control/loop.h"

/* Keys a turn: what is left is handled in the next one, after the events that came meanwhile. */
enum { TURN_KEYS_MAX = 256 };

struct loop {
    struct env *env;
    struct journal *journal;
    loop_handle *handle;
    bool (*has_room)(void *context); /* NULL: always */
    void *context;
    struct queue *queue;
    struct env_timer *timer;
    int64_t timer_due_us;
    bool in_turn;
};

static void run_turn(void *context);

struct loop *loop_make(struct env *env, struct journal *journal, loop_handle *handle, void *context)
{
    struct loop *loop = xcalloc(1, sizeof(*loop));
    loop->env = env;
    loop->journal = journal;
    loop->handle = handle;
    loop->context = context;
    loop->queue = queue_make();
    return loop;
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    env_timer_cancel(loop->env, &loop->timer);
    queue_free(loop->queue);
    free(loop);
}

static bool has_room(const struct loop *loop)
{
    return !loop->has_room || loop->has_room(loop->context);
}

static void set_timer(struct loop *loop)
{
    int64_t next_us = queue_next_us(loop->queue);
    if (loop->in_turn || (loop->timer && loop->timer_due_us <= next_us) || !has_room(loop))
        return;
    env_timer_cancel(loop->env, &loop->timer);
    if (next_us == INT64_MAX)
        return;
    loop->timer_due_us = next_us;
    loop->timer = env_timer_start(loop->env, MAX(0, next_us - env_boot_us(loop->env)), run_turn, loop);
}

static void run_turn(void *context)
{
    struct loop *loop = context;
    loop->timer = NULL;
    loop->in_turn = true;
    /* Only what was due when the turn began: a key that keeps waking itself cannot starve the loop. */
    int64_t now_us = env_boot_us(loop->env);
    char *due[TURN_KEYS_MAX];
    size_t count = 0;
    while (count < TURN_KEYS_MAX && (due[count] = queue_take_due(loop->queue, now_us)) != NULL)
        count++;
    for (size_t i = 0; i < count; i++) {
        if (has_room(loop))
            loop->handle(loop->context, due[i]);
        else
            queue_add(loop->queue, due[i], now_us);
        free(due[i]);
    }
    journal_commit(loop->journal);
    loop->in_turn = false;
    set_timer(loop);
}

void loop_wake(struct loop *loop, const char *key)
{
    loop_wake_at(loop, key, env_boot_us(loop->env));
}

void loop_wake_at(struct loop *loop, const char *key, int64_t boot_us)
{
    queue_add(loop->queue, key, boot_us);
    set_timer(loop);
}

void loop_forget(struct loop *loop, const char *key)
{
    queue_remove(loop->queue, key);
}

size_t loop_waiting(const struct loop *loop)
{
    return queue_count(loop->queue);
}

void loop_set_room(struct loop *loop, bool (*room)(void *context))
{
    loop->has_room = room;
}

void loop_go_on(struct loop *loop)
{
    set_timer(loop);
}
