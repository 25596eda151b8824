/* SPDX-License-Identifier: Apache-2.0
 *
 * Pods that fetch images: a kubelet stops a container before it pulls the next image, so a missing tag takes
 * a database down, and a slow registry keeps it down. A throw-away pod on the node, whose command does not
 * exist, tells whether the image can be had there before anything is touched ("Prefetch" of the design). Here
 * is what such a pod is called and what its status means; never decides about an update, that is prefetch.c's
 * part of the plan (plan_model.h). Pure. */
#pragma once

#include "neoset/body.h"

enum prefetch_state {
    PREFETCH_UNSEEN, /* no kubelet has taken it up */
    PREFETCH_UNDER_WAY,
    PREFETCH_FOUND, /* every image is on the node */
    PREFETCH_ENDED, /* it ended, and tells nothing: evicted, not admitted */
};
/* What its status says. Recorded from kubelet 1.36: an image that is there → terminated, StartError, with an
 * imageID; one that is not → waiting, ErrImagePull or ImagePullBackOff. */
enum prefetch_state prefetch_judge(const struct pod_fact *pod);

/* "<set>-prefetch-<hash>": the same for the same set (uid), node and images; the caller's. */
char *prefetch_name(const struct neoset_fact *set, const char *node, const struct prefetch_image *images,
                    size_t count);
