/* SPDX-License-Identifier: Apache-2.0
 *
 * One NeoSet on a cluster of a few hundred lines, for tests of plans: objects as JSON, every write answered
 * at once, a kubelet that posts status only when a sync begins, a clock that the test moves. Each write is
 * checked against the invariants of a rollout before it is done. Fails the test (cmocka) when one is broken.
 */
#pragma once

#include "neoset/plan.h"
#include "neoset/revision.h"

enum { FAKE_PODS_MAX = 64 };

struct fake_counts {
    int writes; /* steps */
    int prefetches, prefetch_deletes;
    int advances, creates, deletes, patches, drains, opens, revisions;
    int status_writes;
};

struct fake {
    int64_t boot_us;
    cJSON *set;
    cJSON *pods;       /* array */
    cJSON *prefetches; /* array: pods that fetch images */
    cJSON *claims;     /* array */
    cJSON *revisions;  /* array */
    cJSON *rival;      /* another set of the namespace, which may have named one of the claims; NULL: none */
    int64_t serial;    /* resourceVersions, uids, container ids, step keys */
    struct intern *pool;
    struct neoset_memory *memory;
    struct fake_counts counts;
    int64_t wake_boot_us;
    cJSON *status; /* what the last turn wants */
    bool can_probe;
    bool probe_refused;    /* dry-run creates are refused */
    int refuse_patches;    /* HTTP status for in-place patches; 0: they are accepted */
    int refuse_growth;     /* HTTP status for larger claims; 0: they are accepted */
    int refuse_prefetches; /* HTTP status for creates of pods that fetch images; 0: they are accepted */
    const char *node;      /* that every pod is bound to; NULL: none, and nothing is fetched */
    bool no_kubelet;       /* nothing syncs */
    const char
        *wait_expired;    /* the wait of this pod ran out; "prefetch", "grow": every wait of that action */
    char *waits;          /* action and name of each that the last turn wants, one a line; "held" behind it */
    const char *open_pod; /* a step of this pod is in doubt */
    bool old_kubelet;     /* reports no observedGeneration */
    char *events;         /* reasons, one a line */
    char *operations;     /* "kind->to" of each step, one a line, repeated ones left out */
    char *last;           /* the reason of the last step */
    int target_changes;   /* so far */
    char *patched;        /* "uid/change of target/kind" of each patch and delete, one a line: never twice */
};

/* A set of so many replicas with image, named "db" in "default"; nothing is there yet. */
struct fake *fake_make(int replicas, const char *image);
void fake_free(struct fake *fake);
DEFINE_CLEANUP(cleanup_fake, struct fake, fake_free);
#define CLEANUP_FAKE __attribute__((cleanup(cleanup_fake)))

/* Edits of spec by a person: the generation rises. value is JSON text. */
void fake_edit(struct fake *fake, const char *value, ...) __attribute__((sentinel));
void fake_set_image(struct fake *fake, const char *image);
void fake_set_fence(struct fake *fake, int partition);
void fake_set_budget(struct fake *fake, int max_unavailable);
void fake_scale(struct fake *fake, int replicas);
void fake_pause(struct fake *fake, bool pause);
/* The set's memory is lost, as with a restart. */
void fake_restart(struct fake *fake);
void fake_delete_pod(struct fake *fake, const char *name);
/* Someone removed the whole status; someone deleted one of the revisions (index modulo their number). */
void fake_lose_status(struct fake *fake);
void fake_delete_revision(struct fake *fake, unsigned index);
cJSON *fake_pod(const struct fake *fake, const char *name);
const char *fake_image(const struct fake *fake, const char *pod);
const char *fake_revision(const struct fake *fake, const char *pod);

/* One turn: plan, and do what it says. Returns how many steps it made. */
int fake_turn(struct fake *fake);
/* Turns until one writes nothing (at most 200). */
void fake_settle(struct fake *fake);
/* The kubelets sync every pod once. */
void fake_sync(struct fake *fake);
/* seconds times: settle, a second passes, sync. */
void fake_run(struct fake *fake, int seconds);
/* Runs until status.phase is phase and nothing is to be written, at most so many seconds; whether it came. */
bool fake_run_until(struct fake *fake, const char *phase, int seconds);

/* Of the stored status. */
const char *fake_text(const struct fake *fake, const char *key);
int64_t fake_number(const struct fake *fake, const char *key);
bool fake_condition_is(const struct fake *fake, const char *type, const char *status);
