/* SPDX-License-Identifier: Apache-2.0
 *
 * When an in-place update is done: proven from one version of the pod, never by waiting. A kubelet posts
 * status only when a sync begins, and kill, pull and start all happen inside it; so "running, ready, seen"
 * may be said of a dead container, and every simpler rule (another imageID, the image's name, a new
 * container) has a recorded counter-example in tests/replay/traces.
 *
 * 1. The kubelet has seen the spec: observedGeneration = generation.
 *
 * 2. Every container of the annotation runs, is started and ready, and is (a) the baseline's with the
 * baseline's image in the spec: nothing had to restart; or (b) another one.
 *
 * 3. Under (b) it is the last one, by one of:
 *
 * - witness: our condition, first written after 1 held, names the containers of that version. It is not among
 * them, so it started from our spec; a change of labels since leaves that so.
 *
 * - handshake: our gate, False when we patched and opened after 1 held, is True and so is Ready: the sync
 * that read it began after the one that restarts containers.
 *
 * - content, where no handshake can come: what runs is what the spec names, and nothing else it might be.
 *
 * 4. A startup probe has been through False, or had the time for it: a new container inherits the old one's
 * results.
 *
 * And what an update must write down so that a later one can still judge it. Pure. */
#pragma once

#include "neoset/fact.h"
#include "neoset/memory.h"

enum completion_wait {
    COMPLETION_NOTHING,   /* done */
    COMPLETION_KUBELET,   /* it has not seen the spec */
    COMPLETION_CONTAINER, /* a container is not running, started and ready, or is still the old one */
    COMPLETION_PROOF,     /* everything looks well, and it may be the container before the last */
    COMPLETION_STARTUP,   /* the startup probe's inherited result */
};

struct completion {
    bool seen; /* 1 holds */
    bool done;
    enum completion_wait waiting;
    const char *container; /* the first that is waited for, or NULL; borrowed from the pod */
    int64_t again_boot_us; /* time alone may change the answer then; INT64_MAX: it cannot */
};

/* observation: of this pod, or NULL. A pod without the annotation has nothing to prove. */
void completion_judge(const struct pod_fact *pod, const struct pod_observation *observation, int64_t boot_us,
                      struct completion *ret);

/* 1 holds. */
bool completion_is_seen(const struct pod_fact *pod);
/* What the record of an update says when it is taken from this version: {"main":"containerd://...",
 * "log":"none"}; the caller's. */
cJSON *completion_witness(const struct pod_fact *pod);
/* The kubelet reports no observedGeneration (1.33 and older) though it reports. */
bool completion_is_old_kubelet(const struct pod_fact *pod);

struct image_change {
    const char *container;
    const char *image;
};

/* What the annotation must say when this version of the pod is patched: for every container whose change is
 * not proven yet, what it was before the oldest such change. proven: the update that the pod carries was
 * proven; else its containers are judged one by one (seen may be NULL: one with a startup probe is not proven
 * then). The caller's. */
struct in_place_state *completion_baselines(const struct pod_fact *pod, bool proven,
                                            const struct pod_observation *seen, int64_t boot_us,
                                            const char *target, const struct image_change *changes,
                                            size_t change_count, int64_t wall_us);

/* Without "docker.io/library/" or "docker.io/", with ":latest" where there is neither tag nor digest; the
 * caller's. */
char *completion_normal_image(const char *image);
