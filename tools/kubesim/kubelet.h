/* SPDX-License-Identifier: Apache-2.0
 *
 * A kubelet without containers: what nodes say about their pods, told as a real one tells it. Pod events go
 * in; status patches, bindings and final deletions come out, at the moments of the caller's clock. One serial
 * worker a pod, as in kubelet 1.36: a status is posted when a sync begins; kill, pull and start happen inside
 * the sync, and nothing is posted in between; the next sync waits until the containers were listed again
 * (once a second, or right after a sync that started something); readiness gates are read when a sync begins.
 * It never reads a clock, never does I/O, knows no API server, and calls back only from kubelet_tick().
 * Fronts: kubelet_attach.h (inside kubesim), kubelet_client.h (any API server).
 *
 * What a pod goes through is its behaviour: a comma-separated list of the words below, from the annotation
 * kubesim.neo.io/behaviour of the pod (read again with each event), else the default; images add to it.
 *
 *   word         image                 what happens
 *   ok                                 nothing special
 *   slow-stop                          ignores SIGTERM: each stop takes the whole grace period
 *   slow-pull    *slow*                a pull takes slow_pull_us
 *   fail-pull    tag none*             ErrImagePull, ImagePullBackOff
 *   crash        tag crash*            exits with 3 after crash_after_us, again and again
 *   never-ready  tag unready*          the readiness probe fails
 *   same-digest                        all images of a repository have one digest (also tags "X" and "Xsame")
 *   rename                             the reported image is another tag of the digest
 *   evict                              the node takes its place evict_after_us after it started
 *   node-lost                          the node says nothing any more; Ready falls lost_after_us later
 *   pending                            no node takes it
 *   old                                a kubelet of 1.33: no observedGeneration anywhere
 *                tag done*             exits with 0 after crash_after_us
 *
 * A container whose command begins with /neoset-prefetch cannot start: exit code 128, StartError. */
#pragma once

#include "base/json.h"

struct kubelet;

/* A digest that the caller wants an image to have; all others get a hash of their name. */
struct kubelet_digest {
    const char *image;  /* as in the spec */
    const char *digest; /* "sha256:..." */
};

/* The order of two events of one relist is a race in the real kubelet: one sync more, or none. */
enum kubelet_race { KUBELET_RACE_SEEDED, KUBELET_RACE_SEPARATE, KUBELET_RACE_MERGED };

/* What comes out. Strings are borrowed for the call. The callbacks must not call into the kubelet. */
struct kubelet_callbacks {
    /* The status members that a kubelet owns, as a strategic merge patch of /status: foreign conditions stay.
     */
    void (*patch_status)(void *context, const char *namespace, const char *name, const char *uid,
                         const cJSON *status);
    /* The pod has ended: to be deleted with grace period 0 and this uid. */
    void (*delete_pod)(void *context, const char *namespace, const char *name, const char *uid);
    /* A pod without a node belongs to this one now. NULL: a scheduler does it, such pods are left alone. */
    void (*bind_pod)(void *context, const char *namespace, const char *name, const char *uid,
                     const char *node);
};

/* Zero means the default, which is fast: a restart takes about half a second. kubelet_options_real() has the
 * durations of a real node. Times are microseconds. */
struct kubelet_options {
    struct kubelet_callbacks callbacks;
    void *context;
    uint64_t seed;
    const char
        *behaviour; /* of pods without the annotation; NULL: ok. Must pass kubelet_behaviour_is_known() */
    const char *node_prefix; /* nodes are PREFIX-0 ...; NULL: "kubesim-node" */
    unsigned node_count;     /* 1 */
    bool all_nodes;          /* takes pods of every node, not only of its own */
    int jitter_percent;      /* each duration is longer by a random part of so much; 50. Below 0: none */
    int64_t relist_us;       /* between two lists of all containers; 200 ms (a real one: 1 s) */
    int64_t relist_phase_us; /* lists are at phase + k * relist_us */
    int64_t sandbox_us;      /* 20 ms */
    int64_t start_us;        /* 20 ms */
    int64_t stop_us;         /* 60 ms; never more than the grace period */
    int64_t pull_us;         /* of an image that the node does not have; 50 ms */
    int64_t slow_pull_us;    /* 3 s */
    int64_t init_us;         /* how long an init container runs; 100 ms */
    int64_t probe_us;        /* a readiness probe; 20 ms */
    int64_t startup_us;      /* a startup probe; 100 ms */
    int64_t crash_after_us;  /* 1 s */
    int64_t evict_after_us;  /* 2 s */
    int64_t lost_after_us;   /* 40 s */
    int64_t backoff_us;      /* 10 s, doubled up to 30 times as much */
    int64_t post_us;         /* a status on its way; what comes in meanwhile waits for it; 1 ms */
    enum kubelet_race race;
    const struct kubelet_digest *digests; /* copied */
    size_t digest_count;
};

/* The durations of a real node with a warm image store. */
void kubelet_options_real(struct kubelet_options *options);
/* True for a comma-separated list of the words above. */
bool kubelet_behaviour_is_known(const char *behaviour);
/* The words, separated by ", ": for a sentence to a user. */
const char *kubelet_behaviour_words(void);
/* The same table for people, with examples: what an image makes a pod go through. For --help. */
const char *kubelet_behaviour_help(void);

/* From now on pods without the annotation behave so; pods that are there when their next event comes. Once
 * old it stays old: a kubelet that was put back leaves its observedGeneration in every pod, for ever. False:
 * a word is not known. */
bool kubelet_set_behaviour(struct kubelet *kubelet, const char *behaviour);

/* options is copied. start_us: the caller's clock now (microseconds since 1970). */
struct kubelet *kubelet_make(const struct kubelet_options *options, int64_t start_us);
void kubelet_free(struct kubelet *kubelet);

/* A pod as the API server has it now, at now_us: from a list, an ADDED or a MODIFIED. Borrowed. A pod that
 * already has a status with containers when it is first seen is taken over as it is (a kubelet that
 * restarts). */
void kubelet_pod(struct kubelet *kubelet, const cJSON *pod, int64_t now_us);
/* The object is gone. pod: its last state. */
void kubelet_pod_deleted(struct kubelet *kubelet, const cJSON *pod, int64_t now_us);
/* A full list begins and ends: pods that were not given in between are gone. */
void kubelet_list_begin(struct kubelet *kubelet);
void kubelet_list_end(struct kubelet *kubelet, int64_t now_us);

/* Does everything that is due by now_us, in the order of its moments; callbacks come from here only. */
void kubelet_tick(struct kubelet *kubelet, int64_t now_us);
/* When kubelet_tick() has something to do next; INT64_MAX: nothing. */
int64_t kubelet_next_us(const struct kubelet *kubelet);

/* A container ends from outside, with exit code 137. False when no such container runs. */
bool kubelet_kill_container(struct kubelet *kubelet, const char *namespace, const char *pod,
                            const char *container, int64_t now_us);

/* What runs, whatever was posted of it: for the judges of simulations. */
struct kubelet_truth {
    const char *name;  /* of the container */
    const char *image; /* as in the spec that it was started from; NULL: it never was */
    bool running;
    bool ready;        /* as its probe has it */
    unsigned replaced; /* how often a sync stopped it because its spec had changed */
    int restarts;
};
/* The containers of a pod (without init containers that end); 0: the pod is not known here. Strings live
 * until the next call of anything else. */
size_t kubelet_see_truth(const struct kubelet *kubelet, const char *uid, struct kubelet_truth *ret,
                         size_t room);

/* Nodes that it plays: name (owned by the kubelet) and a Node object to register (the caller's). */
unsigned kubelet_node_count(const struct kubelet *kubelet);
const char *kubelet_node_name(const struct kubelet *kubelet, unsigned index);
cJSON *kubelet_node_object(const struct kubelet *kubelet, unsigned index, int64_t now_us);
size_t kubelet_pod_count(const struct kubelet *kubelet);

DEFINE_CLEANUP(cleanup_kubelet, struct kubelet, kubelet_free);
#define CLEANUP_KUBELET __attribute__((cleanup(cleanup_kubelet)))
