/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run tells whoever started it: it lies in shared memory and outlives the run's process, so that a
 * failed assertion of the product leaves its story too. */
#pragma once

#include "base/alloc.h"

#include <stdint.h>

enum { STORY_LINES = 40, STORY_LINE_MAX = 220, SENTENCE_MAX = 700, STATES_MAX = 1 << 15 };

struct report {
    bool finished;  /* ran to its end */
    int invariant;  /* that is broken, 1 ..; 0: none; INVARIANT_NONE_OF_THEM: the simulator's own trouble */
    int sought;     /* only this one is judged; 0: all */
    int operations; /* done so far */
    char sentence[SENTENCE_MAX];
    uint64_t hash; /* of all changes of the server and all requests, with their times */
    uint64_t events;
    uint64_t changes;
    uint64_t rollouts;    /* that began */
    uint64_t remade;      /* how often a StatefulSet was made again by us */
    uint64_t idle_turns;  /* turns of controllers while nothing changed */
    uint64_t idle_writes; /* and what was written in them */
    bool aloud;           /* the story is printed as it happens */
    int64_t now_us;       /* since the world began; of the story's lines */
    uint32_t story_next;
    char story[STORY_LINES][STORY_LINE_MAX];
    uint32_t state_count;
    uint64_t states[STATES_MAX];
};
enum { INVARIANT_NONE_OF_THEM = 99 };

void report_tell(struct report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Whether this one is judged in this run. */
bool report_seeks(const struct report *report, int invariant);
/* Ends the run's process; as any other end when this one is not judged. */
_Noreturn void report_break(struct report *report, int invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void report_mix(struct report *report, const void *bytes, size_t length);
void report_mix_text(struct report *report, const char *text);
uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length);
void report_print_story(const struct report *report);
