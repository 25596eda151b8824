/* SPDX-License-Identifier: Apache-2.0
 *
 * The turn: events queue keys; at the end of a turn of the environment's loop every key that is due is
 * handled once, and what the handlers appended is handed to the journal as one commit. A key that its own
 * handling queues again waits for the next turn. */
#pragma once

#include "control/queue.h"
#include "journal/journal.h"

struct loop;

/* Handles one key: observe, plan, submit. Must not block. */
typedef void loop_handle(void *context, const char *key);

struct loop *loop_make(struct env *env, struct journal *journal, loop_handle *handle, void *context);
void loop_free(struct loop *loop);
/* Due in this turn. */
void loop_wake(struct loop *loop, const char *key);
/* Due at boot_us (or earlier, if anybody wants that). */
void loop_wake_at(struct loop *loop, const char *key, int64_t boot_us);
void loop_forget(struct loop *loop, const char *key);
/* Asked before each key: false leaves it and all others in the queue, until loop_go_on(). */
void loop_set_room(struct loop *loop, bool (*has_room)(void *context));
/* There may be room again. */
void loop_go_on(struct loop *loop);
size_t loop_waiting(const struct loop *loop);
