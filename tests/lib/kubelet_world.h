/* SPDX-License-Identifier: Apache-2.0
 *
 * A kubelet attached to an API server model, under virtual time, with everything that a watch of pods
 * delivers written down: what the tests of the kubelet stand on. */
#pragma once

#include "base/time_text.h"
#include "kubesim/kubelet_attach.h"

/* 2026-11-30T07:00:00Z: whole seconds, so that a phase of the lists is one of the second. */
#define WORLD_EPOCH_US (1796022000LL * US_PER_S)
enum { WORLD_SEEN_MAX = 20000 };

struct seen {
    int64_t at_us; /* since the epoch of the world */
    char type[10]; /* ADDED ... */
    cJSON *pod;
};

struct world {
    int64_t now_us;
    uint64_t random;
    struct kubesim *sim;
    struct kubelet_attach *kubelet;
    struct kubesim_watch *watch;
    struct seen *seen;
    size_t seen_count;
};

struct world *world_make(const struct kubelet_options *options);
void world_free(struct world *world);
/* at_us: since the epoch. */
void world_run_until(struct world *world, int64_t at_us);
/* A request and its answer's status; body may be NULL. */
int world_ask(struct world *world, const char *method, const char *path, const char *content_type,
              const char *body, cJSON **ret_body);
void world_create_pod(struct world *world, const char *body);
void world_patch(struct world *world, const char *pod, const char *subresource, const char *body);
void world_set_image(struct world *world, const char *pod, const char *list, const char *container,
                     const char *image);
void world_set_gate(struct world *world, const char *pod, const char *status);
/* The pod now, or NULL when there is none; the caller's. */
cJSON *world_pod(struct world *world, const char *pod);
const char *world_condition_status(const cJSON *pod, const char *type);
/* The first main container's status. */
const cJSON *world_container(const cJSON *pod);
/* Everything that was seen of a pod as a trace (tests/replay/traces/README.md); the caller's. */
char *world_trace(const struct world *world, const char *pod, size_t *ret_length);
