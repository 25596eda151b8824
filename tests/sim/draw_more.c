/* SPDX-License-Identifier: Apache-2.0
 *
 * What half of all worlds have beside what draw.c draws, by dice of its own: the other half means what it
 * always meant. */
#include "draw.h"

#include "strangers.h"

#include "base/time_text.h"

#include <stdio.h>

enum { MORE_MAX = 6 };

static const struct kind_weight weights[] = {
    {DO_RUSTLE, 4},          {DO_DEFAULTS, 4},  {DO_READINESS, 2},  {DO_PREFETCH, 2},    {DO_HISTORY, 3},
    {DO_ORDINALS, 2},        {DO_RETENTION, 3}, {DO_INIT_IMAGE, 2}, {DO_TERMINATION, 2}, {DO_STRANGER, 5},
    {DO_DELETE_REVISION, 3}, {DO_BACKUP, 2},    {DO_RESTORE, 3},    {DO_JUMP_CLOCK, 2},  {DO_STEAL_LEASE, 2},

};

static void draw_operation(struct dice *dice, const struct draw *world, struct operation *ret)
{
    static const char *const prefetches[] = {"Never", "IfPossible", "Required"};
    static const char *const inits[] = {"init:v1", "init:v2", "init:none", "init:v3"};
    static const int jumps[] = {-7200, -30, 30, 7200};
    *ret = (struct operation){.after_us = dice_pause(dice),
                              .kind = dice_kind(dice, weights, ARRAY_SIZE(weights))};
    ret->set = (int)dice_below(dice, (uint32_t)world->set_count);
    ret->a = (int)dice_below(dice, 5);
    ret->b = (int)dice_below(dice, STRANGER_KIND_COUNT);
    switch (ret->kind) {
    case DO_DEFAULTS:
        ret->a = dice_one_in(dice, 3);
        break;
    case DO_READINESS:
        operation_say(ret, ret->a & 1 ? "Ready" : "Probe");
        break;
    case DO_PREFETCH:
        operation_say(ret, prefetches[dice_below(dice, ARRAY_SIZE(prefetches))]);
        break;
    case DO_HISTORY:
    case DO_ORDINALS:
        ret->a = (int)dice_below(dice, 4);
        break;
    case DO_RETENTION:
        ret->a = (int)dice_below(dice, 4);
        break;
    case DO_INIT_IMAGE:
        operation_say(ret, inits[dice_below(dice, ARRAY_SIZE(inits))]);
        break;
    case DO_TERMINATION:
        ret->a = 1 + (int)dice_below(dice, 4);
        break;
    case DO_RESTORE:
        ret->a = (int)dice_below(dice, 20);
        ret->b = (int)dice_below(dice, 2000);
        break;
    case DO_JUMP_CLOCK:
        ret->a = jumps[dice_below(dice, ARRAY_SIZE(jumps))];
        break;
    default:
        break;
    }
}

/* A container starts anew by itself in the moment before its image changes: the kubelet has then seen the new
 * spec, and runs another container of the old one. */
static int draw_race(struct dice *dice, const struct draw *world, struct operation *ret)
{
    int set = (int)dice_below(dice, (uint32_t)world->set_count);
    int highest = world->sets[set].replicas - 1;
    int64_t apart_us = (int64_t)dice_below(dice, 700) * US_PER_MS;
    bool kill_first = dice_one_in(dice, 2);
    ret[0] = (struct operation){
        .after_us = 30 * US_PER_S, .kind = kill_first ? DO_KILL_CONTAINER : DO_IMAGE, .set = set};
    ret[1] = (struct operation){
        .after_us = apart_us, .kind = kill_first ? DO_IMAGE : DO_KILL_CONTAINER, .set = set};
    ret[kill_first ? 0 : 1].a = highest;
    operation_say(&ret[kill_first ? 1 : 0], dice_one_in(dice, 3) ? "db:slow" : "db:v11");
    return 2;
}

static void insert(struct draw *draw, int at, const struct operation *operation)
{
    if (draw->count == OPERATIONS_MAX)
        return;
    memmove(&draw->operations[at + 1], &draw->operations[at],
            sizeof(draw->operations[0]) * (size_t)(draw->count - at));
    draw->operations[at] = *operation;
    draw->count++;
}

/* The storage is kept at some moment, and comes back at a later one. */
static void draw_rewind(struct dice *dice, struct draw *draw)
{
    int at = (int)dice_below(dice, (uint32_t)draw->count + 1);
    int later = at + 1 + (int)dice_below(dice, (uint32_t)(draw->count - at) + 1);
    insert(draw, at, &(struct operation){.after_us = dice_pause(dice), .kind = DO_SNAPSHOT});
    insert(draw, MIN(later, draw->count),
           &(struct operation){.after_us = dice_pause(dice), .kind = DO_REWIND});
}

static bool plain;

void draw_plain(void)
{
    plain = true;
}

void draw_more(struct draw *draw)
{
    struct dice dice = {.state = draw->seed * 0x9FB21C651E98DF25ULL + 11};
    if (plain || dice_one_in(&dice, 2))
        return;
    draw->webhook = dice_one_in(&dice, 4);
    for (int i = 0; i < draw->set_count; i++) {
        draw->sets[i].handed_over = dice_one_in(&dice, 3) && !draw->sets[i].claims;
        draw->sets[i].shares = i > 0 && dice_one_in(&dice, 3);
    }
    if (dice_one_in(&dice, 6))
        draw_rewind(&dice, draw);
    for (int left = (int)dice_below(&dice, MORE_MAX); left > 0; left--) {
        struct operation operations[2];
        int count = 1, at = (int)dice_below(&dice, (uint32_t)draw->count + 1);
        if (dice_one_in(&dice, 4))
            count = draw_race(&dice, draw, operations);
        else
            draw_operation(&dice, draw, &operations[0]);
        for (int i = count; i-- > 0;)
            insert(draw, at, &operations[i]);
    }
}
