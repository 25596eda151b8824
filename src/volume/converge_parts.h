/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of converge as they know each other: converge.c is the machine, converge_before.c what comes
 * before the set goes, with its dry runs in converge_prove.c and converge_rights.c and its claims in
 * converge_claims.c,
 * converge_after.c what comes then. Only these include this. */
#pragma once

#include "base/time_text.h"
#include "kube/object.h"
#include "volume/converge.h"
#include "volume/decide.h"
#include "volume/grow.h"
#include "volume/keep.h"
#include "volume/prove.h"
#include "volume/quiet.h"
#include "volume/recreate.h"

#include <inttypes.h>

/* Each bounds something that could go round for ever. */
enum { CONFLICTS_MAX = 10, RESTARTS_MAX = 3, UNREADABLE_MAX = 2, LATER_MAX = 5, TRIAL_NAMES_MAX = 10 };

/* What is waited for is looked at again after so long, where nothing says better. */
#define POLL_US (500 * US_PER_MS)
/* A growth that takes longer is asked about. */
#define ASKS_AFTER_US (5 * US_PER_S)

struct converge {
    struct converge_options options;
    char *namespace, *name, *field_manager;
    cJSON *desired;    /* NULL: what was begun is finished */
    bool has_manifest; /* desired is one; else it is the live set with wanted_sizes */
    char *wanted_sizes;
    const struct converge_look *look;
    const cJSON *kept;   /* of the look: the set's manifest, or NULL */
    const cJSON *object; /* of the look: what the step of this stage is about */
    enum converge_stage stage;
    int64_t wait_us; /* LOOK */

    struct volume_decision decision;
    bool is_decided;

    /* The proof. */
    char *proven_uid;   /* of the set that the dry runs of this run were well for */
    bool is_last_proof; /* the one right before the delete */
    cJSON *manifest;    /* of the newest proof: the set as it will be made again, with the declared sizes */
    char *proof_uid, *proof_version;
    size_t right; /* the one that is asked for */
    int trial_names, unreadable, later;
    int64_t server_ahead_us; /* the server's clock against our boot clock, which nobody sets; 0: not known */

    /* The claims. */
    size_t claim;      /* the one that is probed or grown, among the decision's */
    int probe_step;    /* 0: the size; 1: the same size; 2: one byte more */
    int probe_same;    /* the HTTP status of 1 */
    char *probe_words; /* of the refusal of 0 */
    cJSON *probed;     /* claim: the size that it may have */
    char *first_claim; /* the first of its class to grow: what its controller makes of it is awaited */
    char *first_class;
    int64_t first_boot_us;
    char *asks_about;      /* the claim that is waited for, and does not get on; NULL: none */
    cJSON *answered;       /* classes whose controller has answered */
    cJSON *raised;         /* claims that this run has asked for their size: name, uid */
    cJSON *refused_claims; /* that the set made again would have larger, and may not grow: name, words */
    int grown;

    /* The delete, and what comes then. */
    char *forestalled; /* uid of the kept manifest with which no delete can come any more */
    cJSON *picture;    /* the pods before */
    int conflicts, restarts;
    int outdated;                                 /* looks that were too old by the time of the delete */
    bool went;                                    /* it was deleted in this run */
    bool was_made;                                /* and made again */
    bool is_complete;                             /* nothing is left but to drop what is kept */
    const char *owner_uid;                        /* RELEASE; of the look */
    char *made_of, *sizes;                        /* "data=1Gi (uid ...)" and "data=2Gi", for the journal */
    int64_t file_system_boot_us, unready_boot_us; /* since when it is waited for; 0: not */

    bool has_written;
    char *account; /* of the plan, in one line */
    char *told;    /* what should be said at the end besides */
    char *why;     /* it ends with this and code when the kept manifest is dropped */
    enum error_code code;
    char *phrase;
    cJSON *body; /* of the question under way */
    char *ask_name;
};

/* converge.c */
void converge_go(struct converge *converge, enum converge_stage stage);
/* Reads the cluster again after wait_us; takes phrase over. */
void converge_wait(struct converge *converge, int64_t wait_us, char *phrase);
/* Takes phrase over. */
void converge_end(struct converge *converge, enum error_code code, char *phrase);
/* The same, once a manifest that is kept of the set that is still there has been dropped. */
void converge_end_after_drop(struct converge *converge, enum error_code code, char *why);
/* To be said at the end. */
void converge_note(struct converge *converge, const char *format, ...) __attribute__((format(printf, 2, 3)));
void converge_ask_later(struct converge *converge, const struct kube_answer *answer);
const struct volume_decision *converge_decide(struct converge *converge, const cJSON *declared);
void converge_choose(struct converge *converge);
/* "; you need the permission ..." for the stage, when it was refused with 403, else ""; the caller's. */
char *converge_permission_hint(const struct converge *converge, int http);
/* object NULL: a create; reason is taken over. */
struct step_request *converge_step(const struct converge *converge, enum step_kind kind,
                                   enum kube_resource resource, const char *name, const cJSON *object,
                                   char *reason);

/* A dry run on the set, with this body, which is taken over; borrowed by *ret until the next. */
void converge_ask(struct converge *converge, struct exempt_request *ret, const char *method, const char *name,
                  const char *content_type, cJSON *body);

/* converge_before.c */
void choose_before(struct converge *converge);
/* The server's clock at the look. */
int64_t converge_server_us(const struct converge *converge);
/* What the decision demands, with this look. */
void choose_growing(struct converge *converge);
/* Nothing is left to be done with the set: the file systems are waited for, if they are; then the end. */
void choose_done(struct converge *converge);
struct step_request *step_before(struct converge *converge);

/* converge_prove.c */
void begin_proof(struct converge *converge, bool is_last);
void ask_proof(struct converge *converge, struct exempt_request *ret);
void take_proof(struct converge *converge, const struct kube_answer *answer, int64_t boot_us);

/* converge_rights.c */
bool has_rights_to_prove(const struct converge *converge);
void ask_right(struct converge *converge, struct exempt_request *ret);
enum prove_verdict judge_right(const struct converge *converge, const struct kube_answer *answer);
/* What the one that is asked for is called; static. */
const char *right_permission(const struct converge *converge);

/* converge_claims.c */
/* The next that is not probed, or count. */
size_t next_to_probe(const struct converge *converge);
void ask_probe(struct converge *converge, struct exempt_request *ret);
void take_probe(struct converge *converge, const struct kube_answer *answer);
struct step_request *grow_step(const struct converge *converge);
void claim_grown(struct converge *converge);
void claim_rejected(struct converge *converge, const struct converge_outcome *outcome);
/* A claim that this run had set to its size, and somebody else to another since; NULL: none. */
const struct volume_item *find_contested(const struct converge *converge);
/* The end: two that want different sizes must not answer each other for ever. */
void refuse_contested(struct converge *converge, const struct volume_item *claim);
/* The same of a claim that was made meanwhile: true: it is left alone, and told of at the end. */
bool yields_lagging(struct converge *converge, const struct volume_item *claim);
/* The claim of the stage is as large as the set says. */
void caught_up(struct converge *converge);
/* The claims that this run grew first: true while their class's storage controller has yet to say what it
 * makes of it; it waits then. */
bool first_is_awaited(struct converge *converge);
/* The first of the set's claims that has not what it asks for; NULL: all have. *ret_count: how many. */
const cJSON *find_growing(const struct converge *converge, int64_t since_us, int *ret_count,
                          enum growth *ret);
/* "nobody takes it up ...; what the storage controller says of it"; since_us: how long that is waited for.
 * The caller's. */
char *growth_state(struct converge *converge, const cJSON *claim, enum growth growth, int64_t since_us);
char *infeasible_text(const struct converge *converge, const cJSON *claim);

/* converge_after.c */
void choose_leaving(struct converge *converge);
void choose_gap(struct converge *converge);
void choose_after(struct converge *converge);
struct step_request *step_after(struct converge *converge);
