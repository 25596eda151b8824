/* SPDX-License-Identifier: Apache-2.0
 *
 * What we remember of the cluster: one small struct an object, read once from its JSON, never changed
 * afterwards. Whatever the object looks like, reading it never fails for another reason than a missing name:
 * what is malformed is left out, and a NeoSet whose spec cannot be used says so in `problem`. No I/O, no
 * clock, nothing is decided here.
 *
 * Facts borrow shared strings from the pool that they were made with: free every fact before the pool. */
#pragma once

#include "base/json.h"
#include "control/step.h"
#include "kube/object.h"
#include "neoset/intern.h"
#include "neoset/state.h"
#include "volume/grow.h"
#include "volume/quantity.h"

/* What the gateway stamps is what is read here. */
#define NEOSET_GATE STEP_GATE_CONDITION
#define NEOSET_STATE_ANNOTATION STEP_STATE_ANNOTATION
#define NEOSET_STEP_ANNOTATION STEP_ANNOTATION
/* Of a set that takes the pods of a StatefulSet over (`neosetctl adopt`): the uid of that, with this behind
 * it once it is gone. */
#define NEOSET_ADOPTS_ANNOTATION "apps.neo.io/adopts"
#define NEOSET_ADOPTS_GONE ",gone"
#define NEOSET_REVISION_LABEL KUBE_REVISION_LABEL
#define NEOSET_INDEX_LABEL "apps.kubernetes.io/pod-index"
#define NEOSET_PREFETCH_LABEL "apps.neo.io/prefetch-for"
#define NEOSET_POD_NAME_LABEL "statefulset.kubernetes.io/pod-name"

enum { NEOSET_REPLICAS_MAX = 100000 };

/* A pod that fetches images: "<set>-prefetch-<so many of these letters>". */
#define NEOSET_PREFETCH_INFIX "-prefetch-"
#define NEOSET_PREFETCH_LETTERS "bcdfghjklmnpqrstvwxz"
enum { NEOSET_PREFETCH_HASH_LENGTH = 10 };

/* --- the set -------------------------------------------------------------------------------------------- */

enum neoset_strategy { NEOSET_IN_PLACE, NEOSET_RECREATE };
enum neoset_readiness { NEOSET_PROBE, NEOSET_READY };
enum neoset_management { NEOSET_ORDERED_READY, NEOSET_PARALLEL };
enum neoset_prefetch { NEOSET_PREFETCH_IF_POSSIBLE, NEOSET_PREFETCH_NEVER, NEOSET_PREFETCH_REQUIRED };

struct neoset_spec {
    int replicas;
    int start; /* ordinals.start */
    enum neoset_management management;
    int min_ready_seconds;
    int history_limit;
    enum neoset_strategy strategy;
    int partition; /* the fence, an index */
    int budget;    /* effective: at least 1; a percentage of replicas is rounded down */
    enum neoset_readiness readiness;
    int64_t readiness_timeout_seconds;
    int64_t grace_period_seconds; /* after the drain, before the patch */
    enum neoset_prefetch prefetch;
    bool pause;
    bool delete_claims_with_set; /* persistentVolumeClaimRetentionPolicy.whenDeleted: Delete */
    bool delete_claims_scaled;   /* .whenScaled: Delete */
};

struct claim_template {
    char *name;
    char *text; /* the whole template as compact JSON */
    char *size; /* its storage request as it came, or NULL: it has none, or one that is no size */
    struct quantity size_value;
};

/* A sorted list of ordinals without repetition. */
struct ordinals {
    int *items;
    size_t count;
};
bool ordinals_has(const struct ordinals *list, int ordinal);
/* Keeps the order; does nothing when it is there. */
void ordinals_add(struct ordinals *list, int ordinal);
void ordinals_remove(struct ordinals *list, int ordinal);
void ordinals_copy(struct ordinals *to, const struct ordinals *from);
bool ordinals_equal(const struct ordinals *a, const struct ordinals *b);
void ordinals_done(struct ordinals *list);

/* The fields of status that decide: written only by `advance` steps. */
struct neoset_deciding {
    bool present;       /* there was a status with them */
    char *stable;       /* currentRevisionName, or NULL */
    bool stable_proven; /* currentRevisionProven: stable was complete once */
    char *target;       /* updateRevisionName, or NULL */
    int stage;          /* currentPartition */
    int collision_count;
    struct ordinals done; /* doneOrdinals */
    struct ordinals left; /* leftStableOrdinals */
    char *current_image;  /* or NULL */
    char *target_image;   /* or NULL */
};
void neoset_deciding_copy(struct neoset_deciding *to, const struct neoset_deciding *from);
bool neoset_deciding_equal(const struct neoset_deciding *a, const struct neoset_deciding *b);
void neoset_deciding_done(struct neoset_deciding *deciding);
/* The members of status, for an `advance` step; the caller's. */
cJSON *neoset_deciding_json(const struct neoset_deciding *deciding);
/* The descriptive members of a status, compact and sorted; the caller's. Everything else in status is left
 * alone. */
char *neoset_described_text(const cJSON *status);

/* Of status.provenRevisionNames so many are kept; a name of an object is no longer. */
enum { NEOSET_PROVEN_MAX = 100, NEOSET_PROVEN_NAME_MAX = 253 };

struct neoset_fact {
    struct intern *pool;
    char *namespace;
    char *name;
    char *uid;
    char *version; /* resourceVersion */
    int64_t generation;
    bool deleting;
    bool waits_for_pods; /* it takes a StatefulSet's pods over, and that still has them: none is made
                            meanwhile */
    char *problem;       /* a sentence: why the spec cannot be used; NULL: it can */
    struct neoset_spec spec;
    char *service_name;       /* "" when absent */
    char *selector_text;      /* for status.labelSelector: "app=mysql,tier in (a,b)" */
    char *match_labels;       /* selector.matchLabels as compact JSON, or NULL */
    char *selector;           /* spec.selector as compact JSON, or NULL */
    char *template_text;      /* spec.template as compact JSON, as it came, or NULL */
    char template_digest[65]; /* of its meaning: equal templates have equal digests */
    char *first_image;        /* the first container's, or "" */
    struct claim_template *claim_templates;
    size_t claim_template_count;
    struct neoset_deciding deciding; /* of status */
    char *described;                 /* the descriptive fields of status, compact and sorted */
    char *conditions;                /* status.conditions, compact JSON array, or NULL */
    char *proven;                    /* status.provenRevisionNames, as far as kept, the same */
    char *last_update;               /* status.lastUpdateTime, or NULL */
    char *failure;                   /* status.message while status.phase is Failed, or NULL */
    int64_t failed_revision;         /* status.currentRevision then: the number of what did not come up */
};

/* NULL when object has no name. The caller's. */
struct neoset_fact *neoset_fact_make(struct intern *pool, const cJSON *object);
/* Brings fact to a newer state of its object; false, and nothing happened: the spec may be another one. The
 * server moves metadata.generation with every change of spec, and only then. */
bool neoset_fact_renew(struct neoset_fact *fact, const cJSON *object);
void neoset_fact_free(struct neoset_fact *fact);

/* --- a pod ---------------------------------------------------------------------------------------------- */

enum container_state { CONTAINER_UNKNOWN, CONTAINER_WAITING, CONTAINER_RUNNING, CONTAINER_TERMINATED };

struct container_fact {
    const char *name;         /* pool */
    const char *spec_image;   /* of the live spec; pool */
    const char *image;        /* reported; pool; NULL: not reported */
    const char *image_id;     /* pool; NULL: none */
    const char *container_id; /* the pod's block; NULL: none yet */
    const char *reason;       /* of waiting or terminated; pool; NULL */
    const char *trouble;      /* while it waits: the kubelet's words, how it ended before; its block; NULL */
    int64_t started_us;       /* running since, wall; 0 */
    int restart_count;
    int startup_period_s; /* of its startup probe; 0: it has none */
    uint8_t state;        /* enum container_state */
    uint8_t pull_policy;  /* enum pull_policy: of the live spec */
    bool ready;
    bool started;
    bool sidecar; /* a restartable init container */
};

enum pull_policy { PULL_UNSAID, PULL_IF_NOT_PRESENT, PULL_ALWAYS, PULL_NEVER };

enum pod_phase { POD_PHASE_NONE, POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED };
enum tristate { IS_UNKNOWN, IS_FALSE, IS_TRUE };

struct pod_fact {
    struct intern *pool;
    const char *namespace; /* pool */
    const char *name;      /* the pod's block, as uid, version and step */
    const char *uid;
    const char *version;     /* resourceVersion */
    const char *step;        /* apps.neo.io/step; NULL */
    const char *owner_uid;   /* of the controller reference; pool; NULL: an orphan */
    const char *owner;       /* "StatefulSet db": its controller; pool; NULL: an orphan */
    const char *labels;      /* those that say nothing of this one pod, as labels_print() has them; pool */
    const char *revision;    /* controller-revision-hash; pool; NULL */
    const char *node;        /* pool; NULL: not bound */
    const char *reason;      /* status.reason, e.g. "Evicted"; pool; NULL */
    const char *words;       /* of a prefetch pod: what its kubelet says of an image that it cannot get; the
                                pod's block; NULL */
    const char *drained_for; /* the revision that our False condition was written for; pool; NULL: it is
                                not False, or does not say */
    int64_t generation;
    int64_t observed_generation; /* 0: not reported */
    int64_t created_us;          /* wall */
    int64_t ready_changed_us;    /* lastTransitionTime of Ready, wall; 0 */
    int64_t deletion_us;         /* deletionTimestamp: when its grace is over, wall; 0: not terminating */
    int64_t gate_changed_us;     /* of our gate, wall; 0 */
    int ordinal;                 /* -1: the name does not parse */
    int grace_seconds;           /* terminationGracePeriodSeconds */
    uint8_t phase;               /* enum pod_phase */
    uint8_t ready;               /* enum tristate: the Ready condition */
    uint8_t scheduled;
    uint8_t gate;           /* the status of our condition; IS_UNKNOWN: it is not there */
    bool has_gate;          /* our gate is among spec.readinessGates */
    bool foreign_gate_down; /* another readiness gate of the spec is not True */
    bool deleting;
    bool witnessed; /* our condition names the update of the state annotation: `witness` counts */
    uint8_t container_count;
    uint8_t witness_count;
    struct container_fact *containers; /* spec.containers in their order, then sidecars */
    const uint64_t *witness;           /* text_hash64() of the containerIDs that our condition names */
    struct in_place_state *state;      /* the state annotation; NULL: none or unreadable */
};

/* NULL when object has no name. The caller's. */
struct pod_fact *pod_fact_make(struct intern *pool, const cJSON *object);
void pod_fact_free(struct pod_fact *fact);
const struct container_fact *pod_fact_container(const struct pod_fact *pod, const char *name);
/* Every container, sidecars too, is `ready`. */
bool pod_fact_probes_ready(const struct pod_fact *pod);
/* Restarts of all containers, summed. */
int pod_fact_restarts(const struct pod_fact *pod);
/* A 64-bit digest for comparing texts that are kept nowhere; never 0. */
uint64_t text_hash64(const char *text);

/* --- claims and revisions ------------------------------------------------------------------------------- */

struct claim_fact {
    struct intern *pool;
    const char *namespace; /* pool */
    char *name;
    char *uid;
    char *version;
    bool deleting;
    const char *controller_uid;    /* owner with controller: true; pool; NULL */
    const char *set_owner_uid;     /* uid of an owner of kind NeoSet; pool; NULL */
    const char *pod_owner_uid;     /* uid of an owner of kind Pod; pool; NULL */
    char *request;                 /* resources.requests.storage as it came, or NULL */
    struct quantity request_value; /* 0 when there is none */
    const char *class;             /* that counts for a growth; pool; NULL */
    const char *phase;             /* pool; NULL */
    uint8_t growth;                /* enum growth: how far its volume is */
};
struct claim_fact *claim_fact_make(struct intern *pool, const cJSON *object);
void claim_fact_free(struct claim_fact *fact);

struct revision_fact {
    struct intern *pool;
    const char *namespace; /* pool */
    char *name;
    char *uid;
    char *version;
    int64_t number; /* .revision */
    int64_t created_us;
    bool deleting;
    const char *owner_uid; /* pool; NULL: an orphan */
    const char *labels;    /* of an orphan, as labels_print() has them; pool; else NULL */
    char *
        template_text; /* data.spec.template as compact JSON without "$patch"; NULL: data is something else */
    char template_digest[65];
    char *first_image;
    char *first_container; /* its name */
};
struct revision_fact *revision_fact_make(struct intern *pool, const cJSON *object);
void revision_fact_free(struct revision_fact *fact);

/* --- names and versions --------------------------------------------------------------------------------- */

/* "mysql-3" → length of "mysql" and 3; false when the name does not end in a canonical ordinal. */
bool neoset_split_pod_name(const char *pod_name, size_t *ret_set_length, int *ret_ordinal);
/* "mysql-prefetch-bcdfghjklm" → length of "mysql". The hash is of NEOSET_PREFETCH_LETTERS: never an ordinal.
 */
bool neoset_split_prefetch_name(const char *pod_name, size_t *ret_set_length);
/* Names of sets that a claim "data-my-sql-3" may belong to, one call each: "my-sql", "sql". *position starts
 * at 0; NULL: no more. The caller frees. */
char *neoset_claim_next_set(const char *claim_name, size_t *position);
