/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller's parts, as they know each other. Only controller*.c includes this. */
#pragma once

#include "base/time_text.h"
#include "control/event.h"
#include "control/gateway.h"
#include "control/loop.h"
#include "kube/watch.h"
#include "neoset/controller.h"
#include "neoset/fact_store.h"
#include "neoset/plan.h"

enum { WATCHED_SETS, WATCHED_PODS, WATCHED_CLAIMS, WATCHED_REVISIONS, WATCHED_COUNT };

struct asked;
struct kept_manifest;

struct watched {
    struct controller *controller;
    enum kube_resource resource;
    struct kube_watch *watch;
    uint32_t mark; /* of the newest list */
    bool listed;   /* a full list ended in this run */
    bool fresh;
    int64_t went_back; /* times */
    char *trouble;     /* why it is not fresh, or NULL */
};

/* A GET that brings an answer's object that did not come with it. */
struct refresh {
    struct controller *controller;
    enum kube_resource resource;
    char *namespace;
    char *name;
    char *group_key;
    char *known; /* the resourceVersion that was known when it was asked, or NULL */
    struct kube_call *call;
    unsigned attempt;
    bool given_up; /* the turn goes on without it; it is asked again all the same */
    struct env_timer *timer;
    struct refresh *prev, *next;
};

/* An event to emit when its step was applied. */
struct after_event {
    enum kube_resource step_resource;
    char *step_name;
    char *fingerprint;
    bool warning;
    char *reason;
    char *note;
    enum kube_resource resource;
    char *name;
    char *uid;
    struct after_event *prev, *next;
};

struct known_wait {
    char *action;
    enum kube_resource resource;
    char *name;
    bool wanted; /* of the turn under way */
    struct known_wait *prev, *next;
};

/* What turns remember of one set. */
struct turn {
    char *set_uid; /* of the set that the rest is about */
    bool looked_for_waits;
    bool told_went_back;
    bool set_was_read;   /* from the API server, for the next turn */
    int refreshing;      /* GETs whose answer the next turn needs */
    uint64_t status_ask; /* the status write under way; 0: none */
    unsigned status_failures;
    int64_t status_not_before_boot_us;
    char *status_sent; /* the last one, as neoset_described_text() has it */
    int64_t status_sent_boot_us;
    bool status_kept;   /* its answer shows it */
    char *status_phase; /* in it */
    int64_t status_generation;
    uint64_t probe_ask; /* the dry run under way; 0: none */
    unsigned probe_failures;
    int64_t probe_not_before_boot_us;
    unsigned orphans_tried; /* pods that fetched for a set that is gone: attempts to delete them */
    int64_t orphans_not_before_boot_us;
    struct after_event *after;
    struct known_wait *waits;
    char **said; /* events of the turn before that were emitted at once */
    size_t said_count;
    bool quiet;
    bool stuck; /* quiet, but not as it should be */
    char *message;
    char *phase; /* of the last turn */
};

struct controller {
    struct controller_options options;
    struct env *env;
    struct kube_client *client;
    struct journal *journal;
    struct exempt *exempt;
    struct event_recorder *recorder;
    struct gateway *gateway;
    struct lease *lease; /* NULL: without */
    struct loop *loop;
    struct fact_store *store;
    struct watched watched[WATCHED_COUNT];
    struct kept_manifest *kept; /* of StatefulSets that somebody took from their pods */
    struct refresh *refreshes;
    uint64_t asks;       /* so far: their numbers */
    struct asked *asked; /* exempt writes that are not answered */
    bool leads;
    bool recovering;
    bool recovered;
    bool went_back;
    bool stopping;
    bool ended;
    int64_t first_boot_us; /* everything was listed: the first observation of this run; 0: not yet */
    int64_t turns;
    struct env_timer *stuck_disk; /* the journal is slow since: let the lease go then */
    struct env_timer *once_timer;
    struct env_timer *once_patience; /* something cannot be watched, or the lease is not ours, since */
    env_callback *stopped;
    void *stopped_context;
    char *why_not_ready;
    char *reported;      /* the last sentence, not to say it over and over */
    char *lease_trouble; /* why the lease is not ours; NULL: it is, or nobody knows yet */
};

/* controller.c */
void controller_report(struct controller *controller, enum report_level level, const char *object,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));
bool controller_may_plan(const struct controller *controller);
void controller_wake_all(struct controller *controller);
/* Reads an object whose answer did not bring it, then wakes the group. */
void controller_refresh(struct controller *controller, enum kube_resource resource, const char *namespace,
                        const char *name, struct set_group *group);
/* Nobody waits for these answers any more: the group's turn is over. */
void controller_forget_refreshes(struct controller *controller, const struct set_group *group);
void controller_check_once(struct controller *controller);
/* --once waits neither for a server nor for a lease for ever. */
void controller_check_patience(struct controller *controller);
struct turn *controller_turn_of(struct set_group *group);

/* controller_watch.c */
void controller_start_watches(struct controller *controller);
/* Each collection was listed once; and is what is known of all of them the newest? */
bool controller_has_listed(const struct controller *controller);
bool controller_is_fresh(const struct controller *controller, const char **ret_why);
/* Why one of them cannot be listed or watched, or NULL. */
const char *controller_watch_trouble(const struct controller *controller);
/* An answer brought the newest state of an object. */
void controller_take_answer(struct controller *controller, enum kube_resource resource, const cJSON *object);

/* controller_kept.c */
/* A ControllerRevision was seen, with the mark of the newest list, or is gone; what keeps no manifest is
 * passed over. */
void kept_seen(struct controller *controller, const cJSON *revision, uint32_t mark);
void kept_gone(struct controller *controller, const cJSON *revision);
/* A list of ControllerRevisions ended: what it did not show is gone. */
void kept_sweep(struct controller *controller, uint32_t mark);
/* The gateway woke the operation of this StatefulSet. */
void kept_wake(struct controller *controller, const char *namespace, const char *name);
/* Before gateway_free(). */
void kept_free_all(struct controller *controller);

/* controller_turn.c */
void controller_handle(void *context, const char *key);
/* After a step: facts, memory, events; wakes its set. */
void controller_step_done(void *context, const struct step_outcome *outcome);
void turn_free(struct turn *turn);

/* controller_follow.c: what a decision asks the API server for beside its steps */
void follow_status(struct controller *controller, struct set_group *group, struct neoset_decision *decision);
/* What has to be read from the API server before the next turn. */
void follow_reads(struct controller *controller, struct set_group *group,
                  const struct neoset_decision *decision);
void follow_probe(struct controller *controller, struct set_group *group, const cJSON *pod,
                  const char *revision);
/* After exempt_free(): no answer comes any more. */
void follow_forget_asked(struct controller *controller);

/* controller_waits.c */
/* Nobody sees what becomes of what is waited for, or may act on it: the set's waits stand still until its
 * next turn. why: for people. */
void follow_stand_still(struct controller *controller, struct set_group *group, const char *why);
bool follow_has_waits(struct controller *controller, struct set_group *group);
void follow_waits(struct controller *controller, struct set_group *group,
                  const struct neoset_decision *decision);
/* Nothing is waited for any more. */
void follow_drop_waits(struct controller *controller, struct set_group *group);
void follow_forget_waits(struct turn *turn);

/* controller_ends.c */
/* Some operations end before the turn's steps are submitted, which belong to the next ones. */
void follow_ends(struct controller *controller, struct set_group *group,
                 const struct neoset_decision *decision, bool before_steps);
void follow_set_gone(struct controller *controller, struct set_group *group);

/* controller_events.c */
/* Emits what is due now; what belongs to a step is kept until that was applied. */
void follow_events(struct controller *controller, struct set_group *group,
                   const struct neoset_decision *decision);
void follow_step_event(struct controller *controller, struct set_group *group,
                       const struct neoset_event *event, const struct step_request *step);
void follow_step_outcome(struct controller *controller, struct set_group *group,
                         const struct step_outcome *outcome);
void follow_forget_events(struct turn *turn);
