/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the judge share: the sets, pods and keys as the server and the wire have shown them, with
 * enough of their past to be fair. A controller decides by what it has been told; so a rule is broken only if
 * it was broken at every moment between a little before the decision and the write (see judge_since_us()). */
#pragma once

#include "judge.h"

#include "base/json.h"
#include "base/time_text.h"

#include <sqlite3.h>
#include <uthash.h>

enum { SPECS_MAX = 64, STATUSES_MAX = 256, NAME_MAX_HERE = 96, TRUTHS_MAX = 4 };

/* Part of a NeoSet's spec from some moment on. */
struct seen_spec {
    int64_t at_us;
    bool there; /* and not being deleted */
    int replicas, start, budget, fence, min_ready_s, timeout_s, grace_s, history;
    bool pause, recreate;
    int64_t generation;
};

/* The deciding part of its status from some moment on. */
struct seen_status {
    int64_t at_us;
    bool present;
    char stable[NAME_MAX_HERE], target[NAME_MAX_HERE];
    bool proven;
    int stage;
    uint32_t done, left; /* bits by ordinal */
    bool by_us;
    int epoch; /* rises with each change of target */
};

struct seen_pod {
    bool there;
    char uid[48], name[NAME_MAX_HERE], revision[NAME_MAX_HERE];
    bool ours, deleting, ended, has_gate, ready, is_old;
    int gate; /* -1: False, 0: absent, 1: True */
    int64_t generation, observed;
    int64_t created_us;
    bool serving;           /* ready, and in service as far as we are concerned */
    int64_t served_us;      /* since, or until, now */
    int64_t there_us;       /* when it was there last */
    int64_t ready_since_us; /* ALWAYS_US: it is not Ready */
    int64_t ready_us;       /* when Ready was True last */
    int64_t up_us;          /* the same, whoever it belongs to: since then, while it is so */
    bool up;
    int64_t good_until_us;  /* it was in service up to then, and not we took it out */
    bool lost_by_us;        /* our own write took it out of service */
    int64_t scaled_away_us; /* when it was decided to delete it, in service, as no part of the set any more */
    int64_t error_us;       /* last time a container waited with an error; NEVER_US */
    bool error_now;
    int64_t unready_since_us;
    bool unfinished; /* patched by us, and not called done since */
    bool stacked;    /* patched by us once more while it was that */
    int64_t gate_false_since_us;
    int64_t seen_since_us; /* the kubelet has seen its generation since; NEVER_US */
    /* Moves by us. */
    int moved_epoch;
    bool moved_available;
    int patched_epoch, deleted_epoch; /* of this uid */
    int64_t moved_us;                 /* last patch or creation that put it on its revision */
    char deleted_uid[48];             /* the last one that we deleted */
    bool waits, scheduled;
    int64_t waited_us;   /* moved, and not in service, while time counts */
    int64_t believed_us; /* the same for one whose watch may be silent: it may not know yet that the pod is
                            gone */
    /* Its status is what a restored storage shows again: its kubelet has not spoken since, or says still what
     * it did by a spec of the other history. */
    bool restored;
    /* Done. */
    int64_t done_generation; /* 0: not done */
    unsigned replaced_when_done[TRUTHS_MAX];
};
#define NEVER_US (INT64_MIN / 4)
#define ALWAYS_US (INT64_MAX / 4)

enum { STABLE_NAMES_MAX = 64 };

struct seen_set {
    int index;
    bool there;
    char uid[48];
    int64_t born_us;
    struct seen_spec specs[SPECS_MAX]; /* a ring */
    unsigned spec_count;
    struct seen_status statuses[STATUSES_MAX]; /* a ring */
    unsigned status_count;
    int epoch;
    uint32_t done_ever;                                 /* in this epoch */
    bool was_proven;                                    /* stable was complete once */
    bool proven_at_epoch;                               /* when this epoch began */
    char stable_names[STABLE_NAMES_MAX][NAME_MAX_HERE]; /* revisions that were stable and proven */
    int stable_name_count;
    struct seen_pod pods[POD_ORDINALS_MAX];
    int phase; /* hash of its text */
    char phase_text[32];
    int64_t failed_since_us;
    int given_up_epoch; /* it was Failed in this one, or a pod of it had waited for so long that it may be */
    int64_t unhealthy_since_us;
    int prefetches;      /* pods that fetch images for it */
    int64_t fetching_us; /* for so long there was one, while time counts */
};

/* A step, by its key. */
struct seen_key {
    char key[64]; /* <nonce>-<seq> */
    int64_t decided_us;
    int program;
    char action[24];
    char name[NAME_MAX_HERE];
    int attempts;
    int last_status; /* of the last attempt: as answered; 0: nobody was told */
    bool read_since;
    bool accepted;
    UT_hash_handle hh;
};

struct reader {
    sqlite3 *db;
    sqlite3_stmt *intent, *unknowns;
};

enum { RUNS_MAX = 128 };
struct seen_run {
    char nonce[24];
    int program;
};

/* A number of replicas that others asked for, from some moment on. */
struct wanted_replicas {
    int64_t at_us;
    int number;
};
enum { WANTED_MAX = 64 };

/* The StatefulSet of a world of one. */
struct seen_statefulset {
    bool there;
    char uid[48];
    struct wanted_replicas wanted[WANTED_MAX]; /* a ring */
    unsigned wanted_count;
    bool wanted_while_dying;             /* the newest was asked of a set that was on its way out */
    int64_t gone_us;                     /* when it last went */
    cJSON *template;                     /* of pods, as others want it; NULL before */
    char *sizes;                         /* of its claims, before somebody raised them */
    char canary_revision[NAME_MAX_HERE]; /* of what is below the partition */
    bool recovers;                       /* somebody leads claims back */
    cJSON *asked; /* sizes that a run has asked a claim for: "<nonce> <uid>", how many; NULL: none */
    int64_t born_us[POD_ORDINALS_MAX]; /* its pods, by index */
    /* The command of a user was to be refused, and nothing was begun. */
    bool refuses[USERS_MAX];
};

struct judge {
    struct world *world;
    struct seen_statefulset statefulset;
    struct seen_run runs[RUNS_MAX];
    unsigned run_count;
    struct report *report;
    struct seen_set sets[SETS_MAX];
    struct seen_key *keys;
    struct reader readers[PROGRAMS_MAX];
    int64_t blind_until_us; /* watches may be silent or old up to then */
    int64_t disturbed_us;   /* last time something was done to controllers or the network */
    int64_t started_us;     /* the last start of a controller */
    bool fault_pending;     /* one that was drawn may still hit */
    bool journal_lost;
    int64_t rewound_us; /* since then the journal knows of what the server has forgotten; 0: never */
    unsigned thefts;    /* of the lease */
    bool clock_jumped;
    bool healed;
    bool quiet;
    bool changed;
    int64_t looked_us;
    uint64_t state_hash;
};

/* judge.c */
int64_t judge_now_us(const struct judge *judge);
/* A controller that decided then may have known no more than what was so at this moment. */
int64_t judge_since_us(const struct judge *judge, int64_t decided_us);
struct seen_set *judge_set_of(struct judge *judge, const char *name);
const struct seen_spec *seen_spec_now(const struct seen_set *set);
const struct seen_status *seen_status_now(const struct seen_set *set);
/* The entries that were in force at some moment since then, newest first: *at begins at 0; NULL: no more. */
const struct seen_spec *seen_spec_since(const struct seen_set *set, int64_t since_us, unsigned *at);
const struct seen_status *seen_status_since(const struct seen_set *set, int64_t since_us, unsigned *at);
/* What was in force at that moment, as a controller knew it that was told of what others did since since_us.
 */
const struct seen_status *seen_status_at(const struct seen_set *set, int64_t at_us, int64_t since_us);

/* judge_keys.c */
struct seen_key *judge_key_of(struct judge *judge, const char *audit_id);
/* When that exempt write was sent. */
int64_t judge_sent_us(struct judge *judge, const char *audit_id);
void judge_close_reader(struct judge *judge, int program);

/* judge_pods.c */
void judge_take_pod(struct judge *judge, const struct kubesim_change *change);
bool seen_pod_is_serving(const struct seen_pod *pod);
/* What runs is what its spec asks for, by the kubelet's own books. */
bool judge_runs_its_spec(struct judge *judge, const struct seen_pod *pod, const cJSON *tree);
/* Nothing that the kubelet reports proves the update of a container: the image before has the same digest,
 * and the kubelet is too old to say more; or it reports another name of the image - two tags of one digest -,
 * and is too old, or the controller first saw the update when this container was there already. */
bool judge_is_beyond_proof(const struct seen_pod *pod, const cJSON *tree);
/* A container was started last from another image than the spec names now. */
bool judge_runs_another(struct judge *judge, const struct seen_pod *pod, const cJSON *tree);
const cJSON *judge_pod_tree(struct judge *judge, const char *name);
/* The server's own tree of an object in "default", or NULL; borrowed until the server changes it. */
const cJSON *judge_find(struct judge *judge, const char *group, const char *plural, const char *name);

/* judge_template.c */
void judge_equals_template(struct judge *judge, const struct seen_set *set, const cJSON *pod,
                           const char *revision);

/* Two revisions say the same, by meaning. */
bool judge_same_template(const cJSON *a, const cJSON *b);

/* judge_moves.c */
/* A write of ours to a pod of the set; before: as it was. */
void judge_move(struct judge *judge, struct seen_set *set, int ordinal, const struct kubesim_change *change,
                const struct seen_key *key);
/* A DELETE of ours was accepted; it may have been of no effect. */
void judge_note_delete(struct judge *judge, const struct seen_key *key);

/* judge_resize.c */
void judge_take_statefulset(struct judge *judge, const struct kubesim_change *change);
void judge_take_claim(struct judge *judge, const struct kubesim_change *change);
void judge_take_set_pod(struct judge *judge, const struct kubesim_change *change);
/* A step leaves; its body as it is. */
void judge_take_resize_step(struct judge *judge, const struct seen_key *key, const struct env_sim_call *call);

/* judge_sets.c */
void judge_take_set(struct judge *judge, const struct kubesim_change *change);
/* The shortest of all that its spec has said: a controller may know an older spec. */
int judge_least_timeout_s(const struct seen_set *set);
/* What was done and decided so far may be done and decided anew. */
void judge_begin_epoch(struct seen_set *set);
void judge_take_revision(struct judge *judge, const struct kubesim_change *change);

/* judge_time.c */
void judge_look_at_time(struct judge *judge);
/* Time that passed counts by what was so until now: before anything changes. */
void judge_pass_time(struct judge *judge);
