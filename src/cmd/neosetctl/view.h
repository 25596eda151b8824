/* SPDX-License-Identifier: Apache-2.0
 *
 * What people want to know of a NeoSet, its pods and its revisions, read from the server's objects. Pure: no
 * request, no clock. Strings are borrowed from the trees unless said otherwise. */
#pragma once

#include "base/json.h"

struct set_view {
    const char *namespace;
    const char *name;
    const char *uid;
    const char *version;
    int64_t generation;
    int64_t observed_generation;
    int64_t created_us; /* -1: unknown */
    bool is_deleting;
    bool has_status;
    int64_t wanted; /* spec.replicas */
    int64_t first_ordinal;
    int64_t replicas, ready, updated, available; /* of status */
    const char *phase;                           /* "-" without status, as the following */
    const char *current_image, *target_image;
    const char *stable_revision, *target_revision; /* names, or "-" */
    const char *message;                           /* "" when there is none */
    const cJSON *proven;                           /* names of revisions that were stable; array or NULL */
    const cJSON *done_ordinals;                    /* of the pods that count as done; array or NULL */
    int64_t fence;                                 /* spec.updateStrategy.partition */
    int64_t stage;                                 /* status.currentPartition, at least the fence */
    int64_t budget;                                /* effective, or what the spec says */
    bool is_paused;
    bool is_adopting;        /* it takes a StatefulSet's pods over, and that is not finished */
    const cJSON *conditions; /* array or NULL */
    bool is_rolling;         /* target and stable differ, or it is on its way back to stable */
    bool is_way_back;
    /* From elsewhere, where it is known: of the controller, as neosetctl_leader.h says; and why pods are
     * re-created instead of patched, with the first field that forces it. */
    bool is_led;
    const char *away, *away_next; /* NULL */
    const char *away_journal;     /* the id of the journal of whoever is away, or NULL */
    int64_t seen_us;              /* 0 */
    const char *recreates;        /* NULL */
    const char *waited_for;       /* status.currentUpdatePod, "" when there is none */
    int64_t patience_us;          /* inPlaceUpdateStrategy.readinessTimeoutSeconds */
};
void set_view_make(const cJSON *object, struct set_view *ret);
/* The controller has seen its newest spec. */
bool set_view_is_observed(const struct set_view *set);
/* Its rollout has failed: with the spec that it has now it will hardly go on. */
bool set_view_has_failed(const struct set_view *set);
/* As a labelSelector query, the caller's; NULL when the set's selector cannot be read. */
char *set_view_selector(const cJSON *object);

enum pod_version { POD_ON_TARGET, POD_ON_STABLE, POD_ON_OTHER };

/* What people see of a pod at one glance. X(NAME, text, sign in a picture). */
#define POD_STATES(X)                                                                                        \
    X(DONE, "done", '#')                                                                                     \
    X(UPDATING, "updating", 'u')                                                                             \
    X(BROKEN, "broken", '!')                                                                                 \
    X(STARTING, "not ready", 's')                                                                            \
    X(WAITING, "waiting", '.')                                                                               \
    X(HELD, "held back", '-')                                                                                \
    X(MISSING, "missing", '_')                                                                               \
    X(TERMINATING, "terminating", 't')                                                                       \
    X(FOREIGN, "not taken over", 'o')                                                                        \
    X(EXTRA, "not wanted", 'x')
enum pod_state {
#define X(name, text, sign) POD_##name,
    POD_STATES(X)
#undef X
        POD_STATE_COUNT,
};

struct pod_view {
    const char *name; /* in memory when the pod is missing */
    char *memory;
    int64_t ordinal;
    bool is_missing;
    bool is_ready;
    bool is_terminating;
    enum pod_version version;
    const char *revision; /* "-": none */
    char *images;         /* "mysql:8.1" or "mysql=mysql:8.1, exporter=exporter:2"; "-" */
    int64_t restarts;
    const char *crashing; /* a container in a crash loop, or NULL */
    char *waits_for;      /* a phrase, "" when nothing is waited for */
    bool is_trouble;      /* what it waits for will not come by itself */
    enum pod_state state;
    int64_t since_us; /* what is waited for began; 0: unknown, or nothing is waited for */
    int64_t until_us; /* its time is over then; 0: it has none */
};

struct pod_views {
    struct pod_view *items; /* highest ordinal first */
    size_t count;
};
/* The set's pods among objects (an array), and those that are missing. now_us: for ages. */
void pod_views_make(const struct set_view *set, const cJSON *objects, int64_t now_us, struct pod_views *ret);
void pod_views_done(struct pod_views *pods);
/* The pod that the rollout waits for: the one that the controller names, else the one that is in the way
 * most; NULL: none. */
const struct pod_view *pod_views_waited_for(const struct set_view *set, const struct pod_views *pods);

struct revision_view {
    const char *name;
    int64_t number;
    int64_t created_us;
    char *images;
    int64_t pods; /* that run it */
};
struct revision_views {
    struct revision_view *items; /* newest first */
    size_t count;
};
/* The set's revisions among objects (an array). */
void revision_views_make(const struct set_view *set, const cJSON *objects, const struct pod_views *pods,
                         struct revision_views *ret);
void revision_views_done(struct revision_views *revisions);

/* What the journals that people named tell of controllers: paths, borrowed; NULL: there is none of these. */
struct journals_view {
    const char *dead; /* nobody writes it (or it is a copy) */
    const char *live; /* a controller writes it, and what the Lease says of one that is away is of another */
};

/* "No neoset-controller is at work: ...", without a full stop, in words that stay the same as long as it is
 * so; the caller's. NULL: one is, or nothing is known. journals NULL: none was named. */
char *set_view_away(const struct set_view *set, const struct journals_view *journals);
/* The command that shows why the first container in a crash loop ended; the caller's. NULL: there is none. */
char *pod_view_logs(const struct set_view *set, const struct pod_view *pod);
/* The command that helps most in this state, the caller's. journals: as above. */
char *set_view_next(const struct set_view *set, const struct pod_views *pods,
                    const struct journals_view *journals);
