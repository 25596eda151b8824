/* SPDX-License-Identifier: Apache-2.0
 *
 * The two small texts that we keep on a pod, decoded: the annotation that says what an in-place update must
 * still prove, and the message of our readiness gate that names the containers of its moment. Format only:
 * what they mean is in completion.h. */
#pragma once

#include "base/json.h"
#include "neoset/intern.h"

enum { STATE_TRIALS_MAX = 32, STATE_TEXT_MAX = 64 * 1024 };

/* An image that an unfinished update asked for meanwhile. */
struct image_trial {
    const char *image;    /* pool */
    const char *image_id; /* pool; NULL: not known */
    bool never_ran;
};

/* One container whose change is not proven yet, with what it was before the oldest such change. */
struct container_baseline {
    const char *name;     /* pool */
    const char *image;    /* of the live spec; pool */
    const char *image_id; /* pool; NULL: none or unknown */
    char *container_id;   /* NULL: none */
    bool settled;         /* observedGeneration was generation, and it was running */
    uint8_t trial_count;
    struct image_trial *trials;
};

struct in_place_state {
    struct intern *pool;
    char *step; /* key of the step that wrote it; NULL in a plan's own text, before it is stamped */
    /* Key of the earlier update whose record on our condition still counts: no image changed since. NULL. */
    char *witness;
    const char *target; /* revision name; pool */
    int64_t at_us;      /* wall */
    int restarts;       /* of all containers, summed, at that moment */
    bool drained;       /* our gate was False in the version that was patched */
    uint8_t container_count;
    struct container_baseline *containers;
};

/* An empty state for a target; the caller's. */
struct in_place_state *in_place_state_make(struct intern *pool, const char *target, int64_t at_us);
/* NULL when text is not such an annotation. The caller's. */
struct in_place_state *in_place_state_parse(struct intern *pool, const char *text);
/* Compact JSON with sorted keys, without the step (the stamp puts it in), the caller's. */
char *in_place_state_print(const struct in_place_state *state);
void in_place_state_free(struct in_place_state *state);
const struct container_baseline *in_place_state_container(const struct in_place_state *state,
                                                          const char *name);
/* A new baseline at the end; container_id and image_id may be NULL. There are never more than 255. */
struct container_baseline *in_place_state_add(struct in_place_state *state, const char *name,
                                              const char *image, const char *container_id,
                                              const char *image_id, bool settled);
/* Remembers a meanwhile asked-for image; a known imageID or "never ran" is kept over a later "unknown". */
void container_baseline_try(struct in_place_state *state, struct container_baseline *baseline,
                            const char *image, const char *image_id, bool never_ran);

/* {"containers":{"mysql":"containerd://...","log":"none"},"step":KEY,"update":KEY}: what the message of our
 * condition says. update is the key of the in-place update whose spec the kubelet had seen at that version.
 * {"target":REVISION}: why it is False. */
struct gate_message {
    cJSON *tree;
    const char *step;        /* the write itself; NULL before it is stamped; borrowed from tree */
    const char *update;      /* NULL: it belongs to no update */
    const char *target;      /* the revision that the pod was taken out of service for; NULL */
    const cJSON *containers; /* object: name → containerID or "none"; NULL */
};
/* False when text is not one of ours; gate_message_done() in any case. */
bool gate_message_parse(const char *text, struct gate_message *ret);
void gate_message_done(struct gate_message *message);
