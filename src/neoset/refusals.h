/* SPDX-License-Identifier: Apache-2.0
 *
 * What became of the writes to each object of a set: what the server refused, what it took and did not keep,
 * and how many there were lately. Whatever a server, a webhook or a plan of ours does wrong, a write is not
 * repeated at the speed of the network. Forgets on restart: that costs a few writes. No I/O, no clock. */
#pragma once

#include "control/step.h"

struct refusals;

/* The last writes to one object. */
struct write_history {
    uint32_t applied;        /* hash of what was applied to it last; 0: nothing */
    uint32_t applied_boot_s; /* when */
    uint32_t minute;         /* of the boot clock */
    uint32_t count;          /* outcomes in it */
};

/* What the server refused last of one kind of write to one object. Or took, and did not keep: the very same
 * step was applied, and is wanted again at once (reason REFUSAL_NOT_KEPT): an older definition prunes a
 * field, a webhook takes a change back. */
struct refusal {
    struct refusal *next;
    char *name;
    enum kube_resource resource;
    enum step_kind kind;
    char *fingerprint;
    char *words;  /* the server's, cut */
    char *reason; /* of the Status, e.g. "Invalid"; ""; or REFUSAL_NOT_KEPT */
    int http;
    int count;
    int64_t again_boot_us; /* not before */
};
#define REFUSAL_NOT_KEPT "NotKept"
/* A create found what it wanted: it will be seen. */
#define REFUSAL_OVERTAKEN "Overtaken"

struct refusals *refusals_make(void);
void refusals_free(struct refusals *refusals);
/* Each outcome but JOURNAL_UNKNOWN. of_pod: the history that is kept with the pod's observation; NULL: kept
 * here. */
void refusals_note(struct refusals *refusals, const struct step_outcome *outcome,
                   struct write_history *of_pod, int64_t boot_us);
/* NULL: nothing was refused, or it was made good since. */
const struct refusal *refusals_find(const struct refusals *refusals, enum kube_resource resource,
                                    const char *name, enum step_kind kind);
/* So many writes to the object came to nothing within a minute that the next one waits until
 * *ret_until_boot_us. */
bool refusals_is_flooded(const struct refusals *refusals, enum kube_resource resource, const char *name,
                         const struct write_history *of_pod, int64_t boot_us, int64_t *ret_until_boot_us);
/* base doubled count - 1 times, at most most. */
int64_t refusals_backoff_us(int64_t base, int64_t most, int count);
