/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys that are due: each at most once, each with the earliest time that anyone asked for. A pure container:
 * no clock, no callbacks. */
#pragma once

#include "base/alloc.h"

struct queue;

struct queue *queue_make(void);
void queue_free(struct queue *queue);
/* key is due at due_us; when it is in the queue already, at the earlier of both times. */
void queue_add(struct queue *queue, const char *key, int64_t due_us);
/* Forgets a key; nothing when it is not there. */
void queue_remove(struct queue *queue, const char *key);
/* Takes the earliest key that is due at now_us; the caller's; NULL: none is. Keys of one time come in the
 * order in which they were added. */
char *queue_take_due(struct queue *queue, int64_t now_us);
/* When the earliest key is due; INT64_MAX: the queue is empty. */
int64_t queue_next_us(const struct queue *queue);
size_t queue_count(const struct queue *queue);
