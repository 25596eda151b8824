/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of `adopt`, as they know each other: neosetctl_adopt.c goes there, neosetctl_adopt_back.c back,
 * neosetctl_adopt_look.c reads the cluster and makes the steps. Only these include this. */
#pragma once

#include "cmd/neosetctl/adopt.h"
#include "cmd/neosetctl/session.h"
#include "control/preconditions.h"
#include "kube/object.h"
#include "neoset/migration.h"
#include "volume/keep.h"
#include "volume/quiet.h"
#include "volume/verify.h"

/* One run of the command. */
struct adoption {
    const struct ctl_adopt *wanted;
    struct ctl_session session;
    bool is_proven; /* the dry runs of this run were well, and the person agreed */
    int64_t
        server_ahead_us; /* its clock against our boot clock, which nobody sets, from an answer; 0: none */
    int conflicts;       /* orphan deletes that met a newer version */
    int outdated;        /* pictures of the pods that were too old by the time of the delete */
    bool has_written;
    bool is_over;    /* the plan found nothing left to be done */
    char *waits_for; /* what was said last */
    cJSON *seen;     /* the pods as they were before the owner went: name to {uid, restarts} */
};

/* What is in the cluster now. */
struct sight {
    cJSON *set;           /* the StatefulSet, or NULL */
    cJSON *neo;           /* the NeoSet, or NULL */
    cJSON *pods;          /* an array: all that match the selector */
    int64_t pods_boot_us; /* when they were asked for */
    cJSON *revisions;     /* an array: all of the namespace */
    const cJSON
        *kept; /* among revisions: the newest manifest of a set of this name that was handed over, or NULL */
};
int sight_read(const struct adoption *adoption, struct sight *ret, struct error **err);
void sight_done(struct sight *sight);
/* By name; NULL. */
const cJSON *sight_revision(const struct sight *sight, const char *name);

/* What a turn says: again, or it is over. */
enum turn_end { TURN_AGAIN, TURN_WAIT, TURN_DONE };

/* Says a line, at once. */
void adoption_say(const struct adoption *adoption, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Notes what is waited for, said once; takes phrase over. */
enum turn_end adoption_wait(struct adoption *adoption, char *phrase);
int64_t adoption_server_us(const struct adoption *adoption);
/* What owner and its pods are waited for before it may go, all on revision (NULL: any); the caller's. NULL:
 * nothing. */
char *adoption_not_quiet(const struct adoption *adoption, const cJSON *owner, const struct sight *sight,
                         const char *revision);
/* So much time went by since the pods were read that the owner may not go by what they were then. */
bool adoption_is_outdated(struct adoption *adoption, const struct sight *sight);
/* Pods as they are now, to be compared with at the end. */
void adoption_remember(struct adoption *adoption, const cJSON *pods);

/* A request of this operation; object NULL: a create. reason is taken over. */
struct step_request *adoption_step(const struct adoption *adoption, enum step_kind kind,
                                   enum kube_resource resource, const char *name, const cJSON *object,
                                   const char *fingerprint, char *reason);
/* Sends it; *ret says whether the cluster is to be looked at anew before anything else. */
int adoption_send(struct adoption *adoption, struct step_request *request, bool *ret_again,
                  struct error **err);

/* Dry runs. The answers are the caller's; clock: what the server calls now is taken from a create's answer.
 */
int adoption_try_create(struct adoption *adoption, enum kube_resource resource, const cJSON *object,
                        cJSON **ret, struct error **err);
/* The orphan delete of object: its answer is object with the finalizer. -ERROR_CONFLICT: it moved. */
int adoption_try_delete(struct adoption *adoption, enum kube_resource resource, const cJSON *object,
                        cJSON **ret, struct error **err);
/* Owner references of pods to what is gone are taken off: whoever has them dies with the next look of the
 * collector. kind: of the owner; uid NULL: any of this name. *ret_any: one was. */
int adoption_release(struct adoption *adoption, const struct sight *sight, const char *kind, const char *uid,
                     bool *ret_any, struct error **err);

/* The ways. */
int adoption_plan_there(struct adoption *adoption, struct error **err);
int adoption_turn_there(struct adoption *adoption, enum turn_end *ret, struct error **err);
int adoption_plan_back(struct adoption *adoption, struct error **err);
int adoption_turn_back(struct adoption *adoption, enum turn_end *ret, struct error **err);

/* The rows of a plan, for people. */
struct plan_row {
    const char *what;
    char *how; /* taken over */
};
void adoption_show(const struct adoption *adoption, struct plan_row *rows, size_t count);
