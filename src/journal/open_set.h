/* SPDX-License-Identifier: Apache-2.0
 *
 * What is open, in memory: steps, operations, waits, each found by seq and by object. Lists in the order of
 * their seq. Knows no file and no clock. */
#pragma once

#include "journal/journal.h"

struct open_wait {
    int64_t seq;
    int64_t operation; /* 0: none */
    const char *action;
    const char *object;
    const char *namespace;
    const char *name;
    int64_t budget_us;
    int64_t spent_us;      /* up to since_mono_us */
    int64_t since_mono_us; /* boot clock since the start of this run */
    bool held;
};

struct open_set;
struct open_set *open_set_make(void);
void open_set_free(struct open_set *set);

/* Each add copies all strings. The object must not have an open one of its kind: the schema's unique indexes.
 */
struct journal_open_step *open_set_add_step(struct open_set *set, const struct journal_open_step *step);
struct journal_open_operation *open_set_add_operation(struct open_set *set,
                                                      const struct journal_open_operation *operation);
struct open_wait *open_set_add_wait(struct open_set *set, const struct open_wait *wait);

/* By seq, or NULL. */
struct journal_open_step *open_set_step(const struct open_set *set, int64_t seq);
struct journal_open_operation *open_set_operation(const struct open_set *set, int64_t seq);
struct open_wait *open_set_wait(const struct open_set *set, int64_t seq);
/* By what they are about, or NULL. Steps of any kind but `block`. */
struct journal_open_step *open_set_step_on(const struct open_set *set, const char *object,
                                           const char *namespace, const char *name);
struct journal_open_operation *open_set_operation_on(const struct open_set *set, const char *action,
                                                     const char *object, const char *namespace,
                                                     const char *name);
struct open_wait *open_set_wait_on(const struct open_set *set, const char *action, const char *object,
                                   const char *namespace, const char *name);

void open_set_remove_step(struct open_set *set, int64_t seq);
void open_set_remove_operation(struct open_set *set, int64_t seq);
void open_set_remove_wait(struct open_set *set, int64_t seq);

/* The callback may remove what it is given, nothing else. */
void open_set_each_step(const struct open_set *set, void (*each)(void *, const struct journal_open_step *),
                        void *context);
void open_set_each_operation(const struct open_set *set,
                             void (*each)(void *, const struct journal_open_operation *), void *context);
void open_set_each_wait(const struct open_set *set, void (*each)(void *, const struct open_wait *),
                        void *context);
int open_set_step_count(const struct open_set *set);
int open_set_operation_count(const struct open_set *set);
int open_set_wait_count(const struct open_set *set);
/* Lowest seq of anything open, or INT64_MAX: nothing below it is needed. */
int64_t open_set_lowest(const struct open_set *set);
