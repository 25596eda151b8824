/* SPDX-License-Identifier: Apache-2.0
 *
 * What a seed means: how a world is made, and what people, nodes, the network and the disk do to it, in which
 * order and with which pauses. A pure function of the seed; nothing here knows how it is done. Running a
 * prefix of the operations is running the same seed for a shorter time. */
#pragma once

#include "base/alloc.h"

enum { SETS_MAX = 2, OPERATIONS_MAX = 48, TEXT_MAX = 160, POD_ORDINALS_MAX = 16 };
enum { TEMPLATES_MAX = 3, USERS_MAX = 2 };

/* What may befall a world. set, a, b, c mean what the comment says. */
enum operation_kind {
    DO_IMAGE,       /* image text for container a */
    DO_ENVIRONMENT, /* a value that only a new pod can have */
    DO_LABEL,       /* label "tier" of the template: a = its value, 0 none */
    DO_ANNOTATION,  /* annotation "note" of the template: a = its value, 0 none */
    DO_RESTART,     /* kubectl rollout restart */
    DO_SCALE,       /* to a */
    DO_FENCE,       /* to a */
    DO_PAUSE,       /* a: on or off */
    DO_BUDGET,      /* text as it stands in the spec */
    DO_PATIENCE,    /* readinessTimeoutSeconds a, minReadySeconds b */
    DO_GRACE,       /* gracePeriodSeconds a */
    DO_POLICY,      /* podManagementPolicy text */
    DO_STRATEGY,    /* type text */
    DO_NOISE,       /* an annotation of the NeoSet itself: nothing that concerns a pod */
    DO_DELETE_SET,  /* text: background, orphan or foreground */
    DO_CREATE_SET,  /* again, as it was drawn first */
    DO_DELETE_POD,  /* ordinal a; b: without grace */
    DO_DELETE_CLAIM,
    DO_DELETE_REVISION, /* the a-th */
    DO_EVICT,           /* ordinal a, by the API */
    DO_KILL_CONTAINER,  /* of ordinal a: the first */
    DO_BEHAVE,          /* ordinal a behaves as text says; "": well */
    DO_WEATHER,         /* from now on new pods behave as text says; "": as this world's do */
    DO_LOSE_STATUS,     /* somebody removes the whole status of the set */
    DO_FAULT,           /* text: a fault of kubesim */
    DO_COMPACT,         /* the server forgets its history */
    DO_CRASH,           /* kill -9 after a more events, start again b milliseconds later */
    DO_STOP,            /* SIGTERM, start again b milliseconds later */
    DO_LOSE_JOURNAL,    /* the same as a crash, and the journal is gone */
    DO_BACKUP,          /* a copy of the journal is kept */
    DO_RESTORE,         /* a crash, and the copy takes the journal's place */
    DO_JUMP_CLOCK,      /* the wall clock by a seconds */
    DO_STEAL_LEASE,
    DO_DISK, /* each commit takes a milliseconds from now on */
    /* What draw_more.c draws. */
    DO_RUSTLE,      /* the template is written with its keys in another order */
    DO_DEFAULTS,    /* the template spells out what the server would fill in; a: or not any more */
    DO_READINESS,   /* Probe or Ready: text */
    DO_PREFETCH,    /* text */
    DO_HISTORY,     /* revisionHistoryLimit a */
    DO_ORDINALS,    /* ordinals.start a */
    DO_RETENTION,   /* persistentVolumeClaimRetentionPolicy: bits of a: delete when deleted, when scaled */
    DO_INIT_IMAGE,  /* the image of the init container is text */
    DO_TERMINATION, /* terminationGracePeriodSeconds a */
    DO_SNAPSHOT,    /* a copy of the server's storage is kept */
    DO_REWIND,      /* and takes its place */
    DO_STRANGER,    /* somebody makes a pod: of which kind b says (strangers.h), ordinal a */
    /* What draw_resize.c draws: of worlds of a StatefulSet. Sizes are texts as "data=2Gi,logs=1Gi". */
    DO_CONVERGE,     /* user a runs `resize converge` with these sizes; b: bits of enum converge_flag */
    DO_CONTINUE,     /* user a runs `continue` */
    DO_RECOVER,      /* user a runs `resize recover` with these sizes */
    DO_COMMAND_DIES, /* that of user a, after b more steps have left; text: "EVENTS MS same|continue|never" */
    DO_USER_FORGETS, /* the journal of user a is lost, unless a command of his runs */
    DO_SET_SCALE,    /* to a: by an autoscaler, or by the manifest where that says how many */
    DO_SET_RESTART,  /* kubectl rollout restart, of the a-th time */
    DO_SET_IMAGE,    /* the manifest has image text, and is applied with the sizes that are live */
    DO_SET_AGAIN,    /* another tool applies the manifest as it is */
    DO_SET_BY_HAND,  /* a person makes the set, if it is gone; a: with the sizes declared last */
    DO_SET_HOLD,     /* a: a finalizer of somebody else on the set, or not any more */
    DO_CLAIM_BY_HAND, /* template b of ordinal a is made as large as text by a person */
    DO_STORAGE,       /* the class' resizer behaves as text says (kubesim/volumes.h) */
    DO_CLASS,         /* text: "grows", "fixed" or "gone" */
    DO_QUOTA,         /* requests.storage of the namespace is text; "": no quota */
    DO_COLLECTOR,     /* text: "on", "off", "slow", "blind" */
    OPERATION_KIND_COUNT,
};

struct operation {
    int64_t after_us; /* since the one before */
    enum operation_kind kind;
    int set;
    int a, b;
    char text[TEXT_MAX];
};

struct set_draw {
    int replicas, start, fence, min_ready_s, timeout_s, grace_s, history, containers;
    const char *budget; /* as in the spec */
    const char *policy;
    const char *strategy;
    const char *readiness;
    const char *prefetch;
    bool claims, probes, startup, init;
    bool handed_over; /* it comes after a StatefulSet of its name that left its pods behind */
    bool shares;      /* its selector is that of the first set */
};

/* A world of a StatefulSet whose volumes grow. */
struct resize_draw {
    int templates, replicas, start;
    int partition; /* 0: none */
    bool canary;   /* what is at or above the partition runs a newer version */
    bool newer;    /* the server is a 1.37 */
    bool on_delete, parallel;
    bool declares_replicas; /* the manifest says how many */
    bool with_controller;
    int retention; /* bits, as DO_RETENTION */
};
enum converge_flag { CONVERGE_DEGRADED = 1, CONVERGE_WAITS = 2, CONVERGE_OTHER_SERVICE = 4 };
enum world_kind { WORLDS_ALL, WORLDS_NEOSET, WORLDS_RESIZE };

struct draw {
    uint64_t seed;
    bool is_resize; /* resize says the rest; no NeoSets */
    struct resize_draw resize;
    int set_count;
    struct set_draw sets[SETS_MAX];
    const char *behaviour; /* of all pods; "" */
    int relist_ms, jitter_percent, nodes;
    int64_t network_us;
    int disk_ms;
    bool with_lease;
    bool standby; /* a second controller waits for the lease */
    bool webhook; /* a mutating webhook changes every pod */
    int count;
    struct operation operations[OPERATIONS_MAX];
};

/* A small generator of our own: the same draws everywhere. */
struct dice {
    uint64_t state;
};
uint32_t dice_below(struct dice *dice, uint32_t bound);
bool dice_one_in(struct dice *dice, uint32_t bound);

int64_t dice_pause(struct dice *dice);

/* How often a kind of operation is drawn, beside others. */
struct kind_weight {
    enum operation_kind kind;
    unsigned weight;
};
/* One of these kinds (count of them) by their weights; none that --avoid names. */
enum operation_kind dice_kind(struct dice *dice, const struct kind_weight *kinds, size_t count);
/* Its text. */
void operation_say(struct operation *operation, const char *text);

void draw_make(uint64_t seed, struct draw *ret);
/* Leaves out the operations whose bit is not set; the time that they took stays. */
void draw_keep(struct draw *draw, uint64_t bits);
/* Part of draw_make(): what half of all worlds have beside the rest, by dice of its own. */
void draw_more(struct draw *draw);
/* Part of draw_make(): the world of a seed of which this is true. */
bool draw_is_resize(uint64_t seed);
void draw_resize(struct draw *draw);
char *resize_operation_tell(const struct operation *operation);
/* From now on every world is of this kind. */
void draw_only(enum world_kind kind);
/* From now on no world has any of it (--plain). */
void draw_plain(void);
/* "the image of db becomes db:v2"; the caller's. */
char *operation_tell(const struct operation *operation);
const char *set_name(int set);
/* persistentVolumeClaimRetentionPolicy as JSON. */
const char *retention_text(int bits);
/* Operations that the generator leaves out for the moment (--avoid), by name; false: there is no such name.
 */
bool draw_avoid(const char *name);
/* True while this known trouble is not judged. */
bool draw_tolerates(const char *name);
/* The opposite for what is known to break. */
bool draw_with(const char *name);
const char *operation_kind_name(enum operation_kind kind);
