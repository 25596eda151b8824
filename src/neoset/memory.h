/* SPDX-License-Identifier: Apache-2.0
 *
 * What one run has seen of a set's pods over time: since when a pod is ready without a break, what was
 * proven, which container was seen starting, what the server refused. Kept by the loop beside the facts, one
 * a set. Losing it costs patience, never correctness: after a restart it is built again from the objects' own
 * times. No I/O, no clock. */
#pragma once

#include "neoset/fact.h"
#include "neoset/refusals.h"

struct neoset_memory;

struct neoset_memory *neoset_memory_make(void);
void neoset_memory_free(struct neoset_memory *memory);
/* Call for every version of a pod of the set, in the order of its versions, as it arrives. */
void neoset_observe_pod(struct neoset_memory *memory, const struct pod_fact *pod, int64_t wall_us,
                        int64_t boot_us);
/* At the start of each turn: what time alone proves (a startup probe that had its time). */
void neoset_observe_time(struct neoset_memory *memory, const struct pod_fact *const *pods, size_t pod_count,
                         int64_t wall_us, int64_t boot_us);
/* The pod is gone from the server. */
void neoset_forget_pod(struct neoset_memory *memory, int ordinal);
/* The outcome of a step of this set (also JOURNAL_UNKNOWN): refusals are remembered with a back-off. */
void neoset_note_outcome(struct neoset_memory *memory, const struct step_outcome *outcome, int64_t boot_us);
/* The server's answer to a dry-run create of a pod of this revision. words: what the server said, or NULL. */
void neoset_note_probe(struct neoset_memory *memory, const char *revision, bool accepted, const char *words,
                       int64_t boot_us);

/* Call for every version of a pod of the set that fetches images, as it arrives. */
void neoset_observe_prefetch(struct neoset_memory *memory, const struct pod_fact *pod, int64_t boot_us);

/* --- for plans and tests -------------------------------------------------------------------------------- */

/* "Not so": no time. Real times may lie before the boot. */
#define NEOSET_NEVER INT64_MIN

/* A container with a startup probe. Texts are remembered by their text_hash64(). */
struct container_observation {
    uint64_t name;
    uint64_t container_id; /* that the rest is about */
    int64_t first_boot_us; /* first seen */
    bool seen_not_started;
};

/* An update that is not proven yet. */
struct pod_update {
    uint64_t step;         /* by its key */
    int64_t since_boot_us; /* first seen by this run */
    cJSON *witness; /* what its record is to name: the containers of the first version that the kubelet had
                       seen; NULL: there was none yet, or the record is on the pod */
};

struct pod_observation {
    uint64_t uid;
    int ordinal;
    struct write_history writes;
    uint32_t container_count;
    int64_t seen_boot_us;       /* first sight of this uid */
    int64_t ready_boot_us;      /* the Ready condition is True without a break since */
    int64_t probes_boot_us;     /* every container is ready without a break since */
    int64_t not_ready_boot_us;  /* the Ready condition is not True since */
    int64_t gate_false_boot_us; /* our gate is False since */
    int64_t drained_boot_us;    /* our gate is False and the Ready condition is not True since */
    uint64_t proven_step;       /* the update that was proven done, by its key; 0: none */
    int64_t proven_boot_us;     /* when */
    struct pod_update *update;  /* NULL: none is unproven */
    struct container_observation *containers;
};
/* NULL: never seen, or another uid. */
const struct pod_observation *neoset_memory_pod(const struct neoset_memory *memory, int ordinal,
                                                const char *uid);
const struct container_observation *pod_observation_container(const struct pod_observation *pod,
                                                              const char *name);
/* The container of pod that was seen in a crash loop since its last update, and what was told of it then:
 * between two waits it runs for a moment, and tells nothing. NULL: none. */
const struct container_fact *neoset_memory_crash(const struct neoset_memory *memory,
                                                 const struct pod_fact *pod, const char **ret_trouble);

/* See refusals.h. */
const struct refusal *neoset_memory_refusal(const struct neoset_memory *memory, enum kube_resource resource,
                                            const char *name, enum step_kind kind);
bool neoset_memory_is_flooded(const struct neoset_memory *memory, enum kube_resource resource,
                              const char *name, int64_t boot_us, int64_t *ret_until_boot_us);
/* An ordinal's pod that keeps failing is deleted again no earlier than this; 0: at once. */
int64_t neoset_memory_repair_after(const struct neoset_memory *memory, int ordinal);

/* A revision that a pod's label names and that is none of ours, as the API server (no cache) had it. */
enum lookup_state {
    LOOKUP_UNKNOWN, /* not asked yet */
    LOOKUP_ABSENT,
    LOOKUP_FOREIGN, /* somebody else controls it */
    LOOKUP_ORPHAN,
};
void neoset_note_lookup(struct neoset_memory *memory, const char *revision, enum lookup_state state,
                        int64_t boot_us);
/* ret_since_boot_us: first answered so; ret_asked_boot_us: the last time. */
enum lookup_state neoset_memory_lookup(const struct neoset_memory *memory, const char *revision,
                                       int64_t *ret_since_boot_us, int64_t *ret_asked_boot_us);
/* The owners of all claims are as this generation of the spec wants them. */
void neoset_note_retention(struct neoset_memory *memory, int64_t generation);
int64_t neoset_memory_retention(const struct neoset_memory *memory);

/* What was seen of a pod that fetches images, also when it is gone. */
struct prefetch_observation {
    struct prefetch_observation *next;
    char *name;
    int64_t found_boot_us; /* when every image of it was on its node; NEOSET_NEVER */
    char *words;           /* the last that the registry said; NULL */
};
/* NULL: nothing. */
const struct prefetch_observation *neoset_memory_prefetch(const struct neoset_memory *memory,
                                                          const char *name);

enum probe_state { PROBE_UNKNOWN, PROBE_ACCEPTED, PROBE_REFUSED };
/* ret_words and ret_again_boot_us are set when it was refused. */
enum probe_state neoset_memory_probe(const struct neoset_memory *memory, const char *revision,
                                     const char **ret_words, int64_t *ret_again_boot_us);
