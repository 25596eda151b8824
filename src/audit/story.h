/* SPDX-License-Identifier: Apache-2.0
 *
 * All that a journal says of one operation, put in order: its steps and waits with their entries, and the
 * runs of the controller that worked on it. Positions in time are made of the boot clock inside a run, so
 * that a wall clock that was set does not bend the picture. */
#pragma once

#include "audit/parts.h"

/* A step or a wait. */
struct story_part {
    int64_t seq;                      /* of its intent or wait_begin */
    struct journal_step_record *step; /* one of the two */
    struct journal_wait_record *wait;
    int64_t begin_us; /* positions, see story_position_us */
    int64_t end_us;   /* of an open one: the end of the story */
    bool is_open;
    char *key;          /* of the step */
    size_t first_entry; /* its entries: from here by story.next_entry */
};

struct story {
    struct audit *audit;
    const struct audit_journal *journal;
    struct journal_operation_record *operation;
    struct journal_entry **entries; /* in order of seq */
    size_t entry_count;
    size_t *next_entry;               /* of the same part, or entry_count */
    bool *is_loose;                   /* belongs to no part: begin, end, notes */
    struct journal_run_record **runs; /* that wrote of the operation, and those in between; oldest first */
    size_t run_count;
    int64_t *run_base_us;     /* position at which each run began */
    struct story_part *parts; /* in order of seq */
    size_t part_count;
    int64_t begin_us; /* position of its first entry */
    int64_t end_us;   /* of its end; of an open one: now, or its newest entry */
};

/* -ERROR_NOT_FOUND when the journal has no such operation. ret is undone by story_done in any case. */
int story_read(struct audit *audit, const struct audit_journal *journal, int64_t operation, struct story *ret,
               struct error **err);
void story_done(struct story *story);
/* Wall time, corrected by the boot clock; never before an earlier run's entries. */
int64_t story_position_us(const struct story *story, const struct journal_entry *entry);
/* The run that wrote an entry, or NULL when retention removed its start. */
const struct journal_run_record *story_run(const struct story *story, int64_t run);
/* "applied", "done", "in doubt" ... */
const char *story_part_outcome(const struct story_part *part);
