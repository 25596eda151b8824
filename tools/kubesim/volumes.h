/* SPDX-License-Identifier: Apache-2.0
 *
 * What a cluster does about volumes: a provisioner and binder that gives each claim of a dynamic class a
 * volume, and a resizer (external-resizer v2.3 and the kubelet's part of it) that grows volumes in the steps
 * that were recorded of the real ones. Off unless asked for (kubesim_run_volumes). How the resizer behaves is
 * an annotation, kubesim.neo.io/resizer, of the claim or else of its class, which may change at any time:
 *
 *   ok                 the volume grows, also under a running pod (the default)
 *   never              no resizer runs: nothing but the Event ExternalExpanding
 *   max=5Gi            a larger size is infeasible: ControllerResizeInfeasible and ControllerResizeError
 *   pool-full          ResourceExhausted, for ever: Events only
 *   slow               DeadlineExceeded three times, ten seconds each (Events only), then it is done
 *   in-use             only a volume that no pod uses can grow: ControllerResizeError
 *   node-pending       the storage grows, the node never looks: NodeResizePending
 *   node-infeasible    the file system cannot: NodeResizeInfeasible for a moment, again and again
 *   node-transient     the node fails once (NodeResizeError), then it is done
 *
 * Never deletes a claim, never shrinks a volume. Not modelled: volumes made by hand (a claim without a class
 * stays Pending), snapshots, VolumeAttributesClass. */
#pragma once

#include "kubesim/actor.h"

enum volume_behaviour {
    VOLUME_OK,
    VOLUME_NEVER,
    VOLUME_MAX,
    VOLUME_POOL_FULL,
    VOLUME_SLOW,
    VOLUME_IN_USE,
    VOLUME_NODE_PENDING,
    VOLUME_NODE_INFEASIBLE,
    VOLUME_NODE_TRANSIENT,
    VOLUME_UNKNOWN,
};

/* What is due for a claim next. */
enum volume_step {
    VOLUME_STEP_NONE,
    VOLUME_STEP_BIND,
    VOLUME_STEP_TELL,       /* that somebody else should resize it */
    VOLUME_STEP_BEGIN,      /* allocatedResources := request */
    VOLUME_STEP_CONTROLLER, /* the storage grows, or not */
    VOLUME_STEP_NODE_BEGIN,
    VOLUME_STEP_NODE_END,
    VOLUME_STEP_NODE_BACK, /* the resizer takes an infeasible one up again */
};

/* One claim under way; lives from one look to the next. */
struct volume_work {
    const cJSON *claim; /* a copy of its state */
    enum volume_behaviour behaviour;
    const char *behaviour_text; /* "max=5Gi" */
    bool used;                  /* by a pod on a node */
    unsigned tries;             /* of this step so far */
};

/* The annotation of the claim, else of its class; *ret_text is borrowed from one of them ("ok" without). */
enum volume_behaviour volume_behaviour_of(const cJSON *claim, const cJSON *class, const char **ret_text);

/* What comes next for a bound claim, and how long it takes from when it was due to come. */
enum volume_step volume_resize_step(const struct volume_work *work);
int64_t volume_step_delay_us(enum volume_step step, const struct volume_work *work);
/* Does a step of the resizer: writes status, Events, the volume. */
void volume_resize(struct kubesim *sim, const struct volume_work *work, enum volume_step step);

/* Something changed that volumes depend on; do what is due. */
void volumes_look_soon(struct kubesim *sim, const struct kind *kind);
void volumes_tick(struct kubesim *sim);
void volumes_done(struct kubesim *sim);
