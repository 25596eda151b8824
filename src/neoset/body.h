/* SPDX-License-Identifier: Apache-2.0
 *
 * The objects and patches that a NeoSet's plan asks for, as JSON: pods with their identity, claims, the
 * gate's condition, the in-place patch. Nothing is decided here. */
#pragma once

#include "neoset/template.h"

/* An image that has to be on a node, for a container whose pull policy is known or not. */
struct prefetch_image {
    const char *container;
    const char *image;
    enum pull_policy policy;
};

/* "<template>-<set>-<ordinal>"; the caller's. */
char *body_claim_name(const struct neoset_fact *set, const struct claim_template *template, int ordinal);
/* "<set>-<ordinal>"; the caller's. */
char *body_pod_name(const struct neoset_fact *set, int ordinal);
/* A pod of this revision's template (compact JSON); name NULL: its own. */
cJSON *body_pod(const struct neoset_fact *set, const char *template_text, const char *revision, int ordinal,
                const char *name);
cJSON *body_claim(const struct neoset_fact *set, const struct claim_template *template, int ordinal);
/* {"status":{"conditions":[...]}} for our gate. update: the in-place update that it belongs to, and what
 * completion_witness() said of the first version that the kubelet had seen; NULL: none. */
cJSON *body_open_gate(const struct pod_fact *pod, const char *update, const cJSON *witness, int64_t wall_us);
/* The same, False: it is taken out of service to be updated to revision. */
cJSON *body_close_gate(const struct pod_fact *pod, const char *revision, int64_t wall_us);
/* The pod that fetches images to a node: it has one container an image, whose command does not exist. */
cJSON *body_prefetch(const struct neoset_fact *set, const char *template_text, const char *name,
                     const char *node, const struct prefetch_image *images, size_t count);
/* {"metadata":{"ownerReferences":[...]}} as a strategic patch: takes the reference to uid release away (NULL:
 * none), adds adopt (taken over; NULL: none). */
cJSON *body_owners(cJSON *adopt, const char *release);
/* A reference to the set: as a controller of pods and revisions, or as an owner of claims; the caller's. */
cJSON *body_owner_set(const struct neoset_fact *set, bool controller);
cJSON *body_owner_pod(const struct pod_fact *pod);
/* The one patch of an in-place update, without the key. state: what completion_baselines() said. */
cJSON *body_update(const struct template_diff *diff, const char *revision,
                   const struct in_place_state *state);
