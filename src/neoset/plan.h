/* SPDX-License-Identifier: Apache-2.0
 *
 * One turn of one NeoSet: a snapshot in, a decision out. Pure: no I/O, no clock, no memory of its own; the
 * same snapshot gives the same decision. Never writes, never waits: to wait is to say when to be asked again.
 *
 * How the loop uses it, for one set:
 *   each object that a watch or an answer delivers → a fact; a pod also → neoset_observe_pod()
 *   each outcome of a step                        → neoset_note_outcome(), and its object → a fact, at once
 *   neoset_observe_time(), then
 *   neoset_plan() → submit decision.steps in their order (a conflict or refusal by the gateway is no error:
 * ask again when something changed) → gateway_settle_unwanted() → write decision.status_patch as an exempt
 * write when it is not NULL → journal waits, ends of operations, events → a timer for wake_boot_us. Rules:
 * "One turn, in this order" of the design; what is decided is in status before the writes that it allows: a
 * turn that changes a deciding field makes an `advance` step and leaves the writes that need it to the turn
 * that sees it. */
#pragma once

#include "control/step.h"
#include "neoset/fact.h"
#include "neoset/memory.h"

/* A step that is open on one object. */
struct neoset_open_step {
    bool in_doubt; /* it was sent and not answered; planned again it is sent again. When unsure: true */
    bool lowers_availability;
};

/* A wait that the journal knows. */
struct neoset_wait_view {
    int64_t spent_us;
    bool held;
    bool expired; /* journal_wait_has_spent() the budget */
};

struct neoset_snapshot {
    int64_t wall_us;
    int64_t boot_us;
    /* Sets, pods, claims and revisions were listed from the server in this run, and their watches stream.
     * While it is false nothing is decided. not_fresh: a sentence or NULL. */
    bool fresh;
    const char *not_fresh;
    /* The loop makes a dry-run create of decision.probe_pod; false: templates are not tried before a rollout.
     */
    bool can_probe;
    /* An exempt status write of this set is under way: `advance` steps wait for its answer, or they would
     * only collide. */
    bool status_write_open;
    const char *parked; /* a step of this set that nobody can decide for now, in words; or NULL */
    bool journal_went_back;
    const char *same_selector; /* the name of another set with this one's selector; NULL: none */
    const struct neoset_fact *set;
    /* Every pod of the set's namespace whose name is <set>-<ordinal>, whoever owns it; in any order. */
    const struct pod_fact *const *pods;
    size_t pod_count;
    /* Every pod of the set's namespace whose name is <set>-prefetch-<hash>, whoever owns it. */
    const struct pod_fact *const *prefetches;
    size_t prefetch_count;
    /* Every claim of the namespace whose name the set may have given, whoever owns it; in any order. Only of
     * a set with claim templates. */
    const struct claim_fact *const *claims;
    size_t claim_count;
    /* Other sets of the namespace that may have given one of these its name; in any order. */
    const struct neoset_fact *const *rivals;
    size_t rival_count;
    /* Every revision that the set's uid controls; in any order. */
    const struct revision_fact *const *revisions;
    size_t revision_count;
    /* Revisions of the namespace that nobody controls. */
    const struct revision_fact *const *orphans;
    size_t orphan_count;
    /* Revisions of the set that were deleted lately; some may be NULL. */
    const struct revision_fact *const *lost;
    size_t lost_count;
    /* The set was just read from the API server, not from a watch: what is adopted is not given to a set that
     * is gone. */
    bool set_was_read;
    const struct neoset_memory *memory;

    /* Look-ups; all get context. */
    const struct claim_fact *(*claim)(void *context,
                                      const char *name); /* in the set's namespace; NULL: absent */
    /* False: no step is open on the object (submitted, under way, or in doubt). */
    bool (*open_step)(void *context, enum kube_resource resource, const char *name,
                      struct neoset_open_step *ret);
    /* gateway_lowers_availability() of this set. */
    bool (*availability_in_doubt)(void *context);
    bool has_waits; /* some wait of this set may be open */
    /* False: no such wait is open. May be NULL. */
    bool (*wait)(void *context, const char *action, enum kube_resource resource, const char *name,
                 int64_t budget_us, struct neoset_wait_view *ret);
    void *context;
};

struct neoset_event {
    int after_step; /* index into decision.steps: emit when that step was applied; -1: emit now, once per text
                     */
    bool warning;
    const char *reason; /* static, e.g. "RolloutStarted" */
    char *note;
    enum kube_resource resource; /* what it regards */
    char *name;
    char *uid;
};

/* A wait that should be open; every wait of this set that the journal has open and that is not here is ended
 * "dropped", or "done" when it is in decision.waits_done. */
struct neoset_wait {
    const char *action; /* static: "ready", "retry", "retried-1" ..., "prefetch" */
    enum kube_resource resource;
    char *name;
    int64_t budget_us;
    char *reason;
    bool held;
};

struct neoset_operation_end {
    bool before_steps; /* to be ended before this turn's steps are submitted, which belong to the next one */
    const char *kind;  /* static: "rollout", "scale", "repair", "create" */
    const char *outcome; /* static: "completed" */
    char *reason;
};

struct neoset_decision {
    struct step_request **steps; /* in the order to submit; owned until taken (set the slot to NULL) */
    size_t step_count;
    cJSON *status;       /* as it should be, the lists of ordinals apart; for tests and for people */
    cJSON *status_patch; /* {"status":{...}}: merge patch of descriptive fields only; NULL: nothing changed */
    char *described;     /* what it says, as neoset_described_text() has it */
    struct neoset_event *events;
    size_t event_count;
    struct neoset_wait *waits;
    size_t wait_count;
    struct neoset_wait *waits_done; /* waits that succeeded: action, resource, name */
    size_t wait_done_count;
    struct neoset_operation_end *ends; /* operations of this set to end when they are open */
    size_t end_count;
    cJSON *probe_pod; /* a pod of the new target for a dry-run create; NULL: none wanted. The answer goes to
                         neoset_note_probe() */
    char *probe_revision;
    bool read_set;       /* read the set from the API server, then ask again with set_was_read */
    char *read_revision; /* read this revision from the API server, tell neoset_note_lookup(); NULL: none */
    bool retention_settled; /* for neoset_note_retention() with the set's generation */
    int64_t wake_boot_us;   /* ask again at this time even if nothing happens; INT64_MAX: no need */
};

void neoset_plan(const struct neoset_snapshot *snapshot, struct neoset_decision *ret);
void neoset_decision_done(struct neoset_decision *decision);
