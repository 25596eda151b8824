/* SPDX-License-Identifier: Apache-2.0
 *
 * The gateway's parts, as they know each other: a flight is one open step on its way from intent to outcome.
 * gateway.c takes steps in, hands them over and closes them, flight_index.c finds them, flight.c hears the
 * answer, doubt.c reads the cluster, block.c makes what is no longer wanted impossible, recover.c takes over
 * what ended runs left open, late.c knows closed keys that may still turn up. Only src/control/gateway's
 * files include this. */
#pragma once

#include "base/time_text.h"
#include "control/answer.h"
#include "control/crash.h"
#include "control/gateway.h"
#include "control/resolve.h"

#include <uthash.h>

/*   INTENT --durable--> SENT --answer--> (closed)
 *     ^                  | 401, 429: PAUSE --> OPEN
 *     |                  | in doubt: PAUSE --> READING --verdict--> (closed) | OPEN
 *     |                                           ^                           |
 *     |                                           +--- every 30 s ------------+
 *   UNKNOWN (its `unknown` entry becomes durable) <-- submitted again --------+
 *                                         BLOCKING <-- no longer wanted ------+  */
enum flight_state {
    FLIGHT_INTENT,   /* waits until its intent is durable */
    FLIGHT_SENT,     /* with the transport */
    FLIGHT_PAUSE,    /* backs off before it is read, or before it may be sent again */
    FLIGHT_READING,  /* a GET of its object is under way */
    FLIGHT_OPEN,     /* may still arrive: the plans say whether it is still wanted */
    FLIGHT_UNKNOWN,  /* waits until the entry that closes its last attempt is durable */
    FLIGHT_BLOCKING, /* a block step is on its way to make it impossible */
};

/* The object of operations (a NeoSet) with the flights of its steps. */
struct workload {
    UT_hash_handle hh;
    char *key;              /* "NeoSet/<namespace>/<name>" */
    struct flight *flights; /* oldest first */
};

struct flight {
    struct gateway *gateway;
    struct flight *prev, *next; /* in gateway.flights, oldest first */
    struct workload *workload;  /* NULL: its operation's object is not known any more */
    struct flight *workload_prev, *workload_next;
    UT_hash_handle hh; /* in gateway.by_object by object_key; not of blocks */
    char *object_key;
    enum flight_state state;

    int64_t step;      /* seq of the intent */
    int64_t operation; /* seq of the begin */
    char *key;         /* <nonce>-<seq> */
    enum step_kind kind;
    enum kube_resource resource;
    char *namespace;
    char *name;
    char *subresource;
    char *uid;
    char *version;
    char *fingerprint;
    char *owner; /* uid of the controller in a create's body */
    char *body;  /* the exact bytes; NULL when they were not kept over a restart */
    enum kube_resource operation_resource;
    char *operation_namespace;
    char *operation_name; /* NULL: not known any more */
    bool lowers_availability;
    char *field_manager; /* NULL: the gateway's */
    bool is_forced;

    int unknowns;                /* `unknown` entries; the attempt under way is this + 1 */
    bool attempt_is_open;        /* that attempt may have left, and no `unknown` entry closes it yet */
    int64_t newest_seq;          /* its intent, or its newest `unknown` entry */
    bool under_way;              /* counted as such: from its intent to the answer */
    bool left;                   /* the attempt under way may have left */
    bool unanswered;             /* some attempt may have left and nobody knows what became of it */
    bool refused;                /* the newest attempt: answered, and definitely not executed */
    int64_t decided_boot_us;     /* when it was asked for last */
    int64_t left_boot_us;        /* the last moment an attempt may have left */
    int64_t unanswered_boot_us;  /* the last moment an unanswered attempt of this run may have left */
    int64_t read_boot_us;        /* when the newest reading was begun */
    bool in_doubt;               /* fell in doubt at least once */
    bool recovered;              /* an ended run left it open */
    bool undecided;              /* gateway_recover waits for its first verdict */
    bool parked;                 /* cannot be decided for now: a person may have to */
    unsigned reads_failed;       /* in a row */
    unsigned blocks_refused;     /* in a row */
    int64_t block_after_boot_us; /* no block before this moment */
    bool block_wanted;           /* if still open after this reading, make it impossible */
    int64_t open_since_boot_us;

    int last_http;     /* of the last answer, 0: none */
    char *last_reason; /* the Status reason */
    char *last_summary;

    struct env_timer *timer;
    struct kube_call *call;
    step_done *done; /* NULL: recovered, or a block */
    void *context;

    struct flight *blocks; /* a block: what it makes impossible; NULL when that is closed already */
    struct flight *block;  /* its block under way */
};

struct closed_key {
    char *key;
    int64_t step;
    int64_t operation;
    UT_hash_handle hh; /* in order of insertion */
};
enum {
    CLOSED_KEYS_MAX = 4096,
    /* Keys of ended runs that were asked about: each is asked about once, while its place is its own. */
    ASKED_PLACES = 16384,
    QUESTIONS_MAX = 16384,
    LATE_NEWEST = 256,
};

/* What late.c asks the journal. */
struct late {
    bool forgot;                    /* a key of this run: the table does not know them all any more */
    uint64_t *asked;                /* ASKED_PLACES of them, or NULL */
    struct journal_look *questions; /* not asked yet, the newest last; or NULL */
    size_t count;
    size_t room;
    bool asking;
    int64_t newest[LATE_NEWEST]; /* steps whose `late` entry was appended last, round about */
    size_t newest_at;
};

struct pending_end {
    int64_t operation;
    char *outcome;
    char *reason;
    struct pending_end *prev, *next;
};

struct gateway {
    struct gateway_options options;
    struct flight *flights;
    struct flight *by_object;
    struct workload *workloads;
    struct closed_key *closed_keys;
    struct late late;
    struct pending_end *pending_ends;
    struct done_edge *done_edges; /* in a build with crash points */
    int under_way;                /* flights between intent and answer */
    int64_t made_boot_us;         /* no attempt of an ended run left after this */
    int64_t hold_until_boot_us;
    unsigned not_sent_in_a_row;
    struct env_timer *hold_timer;
    env_callback *recovered;
    void *recovered_context;
    struct env_timer *recover_timer;
    bool stopping;
    struct env_timer *stop_timer;
    env_callback *stopped;
    void *stopped_context;
    struct gateway_metrics metrics;
};

#define WRITE_TIMEOUT_US (10 * US_PER_S)
#define READ_TIMEOUT_US (10 * US_PER_S)
/* After the last moment an attempt can have left, no create of it lands any more (journal.md, rule 5). */
#define HORIZON_US (15 * US_PER_S)
/* An open step that nobody submits again or gives up is read again so often. */
#define REREAD_US (30 * US_PER_S)
/* What is undecided for so long, or was read in vain so often, is shown as parked. */
#define PARK_AFTER_US (60 * US_PER_S)
enum { PARK_AFTER_READS = 5 };
/* Steps under way at a time: enough to keep eight connections and each commit busy, so few that none waits
 * for others until its time is over, and below what an API server lets wait (max-mutating-requests-inflight
 * is 200). */
enum { UNDER_WAY_MAX = 64 };

/* gateway.c */
struct flight *flight_make(struct gateway *gateway, enum step_kind kind, enum kube_resource resource,
                           const char *namespace, const char *name);
/* Appends the outcome, tells who waits, frees the flight. kind is an outcome; object may be NULL. http 0:
 * found by reading. */
void flight_close(struct flight *flight, enum journal_kind kind, int http, const cJSON *object,
                  const char *reason);
void flight_tell(struct flight *flight, enum journal_kind kind, int http, const cJSON *object);
void flight_wake_operation(const struct flight *flight);
/* Nothing new may be sent now: stopping, journal not well, not leading, or a hold. */
bool gateway_may_send(const struct gateway *gateway);
/* It may, and not too much is under way: what every write asks, the first attempt as well as the next. */
bool gateway_has_room(const struct gateway *gateway);
void gateway_hold_until(struct gateway *gateway, int64_t until_boot_us);
/* Appends the intent (the bytes are in flight->body already or made here) and waits for it to be durable. */
void flight_append_intent(struct flight *flight, const struct step_request *request);

/* It counts as under way, or not any more. */
void flight_set_under_way(struct flight *flight, bool under_way);
/* Checks the preconditions in the very bytes and gives them to the transport. */
void flight_hand_over(struct flight *flight, bool (*before_send)(void *context), kube_done *done);

/* flight_index.c */
/* "Pod/<namespace>/<name>"; the caller's. */
char *gateway_object_key(enum kube_resource resource, const char *namespace, const char *name);
/* The open step of this object, but for blocks; NULL: none is. */
struct flight *gateway_find_flight(const struct gateway *gateway, enum kube_resource resource,
                                   const char *namespace, const char *name);
struct workload *gateway_find_workload(const struct gateway *gateway, enum kube_resource resource,
                                       const char *namespace, const char *name);
/* Puts the flight under the object of its operation, and takes it away again. */
void flight_join_workload(struct flight *flight, enum kube_resource resource, const char *namespace,
                          const char *name);
void flight_leave_workload(struct flight *flight);

/* operation.c */
/* The operation that the step belongs to: the open one, or a new one. 0: not now, the one before is not
 * closed. */
int64_t gateway_take_operation(struct gateway *gateway, const struct step_request *request);
/* Ends it if that was put off and nothing of it is open any more. */
void gateway_end_pending(struct gateway *gateway, const struct workload *workload, int64_t operation);
void gateway_drop_pending_end(struct gateway *gateway, struct pending_end *end);

/* flight.c */
/* Once its intent (or the `unknown` of its last attempt) is durable: sends it. */
void flight_send_when_durable(struct flight *flight, int64_t seq);
/* Closes the attempt that may have left by an `unknown` entry; nothing when that was done. */
void flight_close_attempt(struct flight *flight);
/* The number of the newest attempt that may have left. */
int flight_newest_attempt(const struct flight *flight);
/* It cannot be decided for now: shown by metric, and in the journal as what it is. */
void flight_park(struct flight *flight);
/* Closes the last attempt, then sends the same bytes again. */
void flight_send_again(struct flight *flight);

/* The object that it writes, as it is read: without precondition. */
static inline struct answer_target flight_target(const struct flight *flight)
{
    return (struct answer_target){
        .resource = flight->resource, .namespace = flight->namespace, .name = flight->name};
}

/* edge.c; nothing in a build without crash points */
#ifdef NEOSET_CRASH_POINTS
/* Its bytes leave now; it ends when its answer comes, if it is to end there. */
void flight_pass_answer_edge(struct flight *flight);
void flight_end_at_answer_edge(const struct flight *flight);
/* Its outcome is appended as seq: the edge is passed when that is durable. */
void flight_watch_done_edge(struct flight *flight, int64_t seq);
void gateway_forget_done_edges(struct gateway *gateway);
#else
static inline void flight_pass_answer_edge(struct flight *flight)
{
    (void)flight;
}
static inline void flight_end_at_answer_edge(const struct flight *flight)
{
    (void)flight;
}
static inline void flight_watch_done_edge(struct flight *flight, int64_t seq)
{
    (void)flight;
    (void)seq;
}
static inline void gateway_forget_done_edges(struct gateway *gateway)
{
    (void)gateway;
}
#endif

/* doubt.c */
/* Reads the object after delay_us and gives the verdict. */
void flight_read(struct flight *flight, int64_t delay_us);
/* The verdict is open: a block is sent again, anything else waits for the plans. */
void flight_set_open(struct flight *flight);
/* After this moment no attempt of it can arrive any more. */
int64_t flight_horizon_boot_us(const struct flight *flight);

/* block.c */
/* Makes an open step impossible, or waits for its horizon. */
void flight_give_up(struct flight *flight);
/* A block ended: kind is its outcome. */
void flight_block_ended(struct flight *blocked, enum journal_kind kind);

/* recover.c */
/* A recovered step has its first verdict, or is parked; NULL: look whether all have. */
void gateway_note_decided(struct gateway *gateway, struct flight *decided);

/* late.c */
void gateway_remember_closed(struct gateway *gateway, const struct flight *flight);
void gateway_forget_closed(struct gateway *gateway);

/* gateway.c, stopping */
void gateway_check_stopped(struct gateway *gateway);
