/* SPDX-License-Identifier: Apache-2.0
 *
 * Brings a StatefulSet to larger volumes without losing a claim, a pod or the thread (volume.md, Converge):
 * proves by dry runs that it can be done, grows the claims, keeps the manifest in the cluster, deletes the
 * set with its pods left behind, makes it again and checks that it has them. Pure: it is told what is in the
 * cluster and what became of what it asked for, and says what comes next; who reads, sends and waits is its
 * driver's business. Everything that must survive a crash is in the cluster: begun anew it goes on from
 * what it is shown.
 *
 *   LOOK ──> kept, and it never went: FORESTALL ─> LOOK ─> DROP ─> LOOK
 *        ──> nothing of it there: PROVE ─> PROBE ─> GROW ─> LOOK ... quiet ─> PROVE ─> KEEP ─> DELETE ─> LOOK
 *        ──> on its way out: (NOTE) ─> LOOK
 *        ──> gone: RELEASE, MAKE ─> LOOK
 *        ──> there again: SECOND, MANAGERS, RELEASE, CATCH_UP, DROP ─> LOOK ─> END */
#pragma once

#include "control/exempt.h"
#include "control/step.h"
#include "journal/entry.h"

/* X(name, what it does, for people) */
#define CONVERGE_STAGES(X)                                                                                   \
    X(LOOK, "looks at the cluster")                                                                          \
    X(PROVE_APPLY, "proves that the server takes the manifest")                                              \
    X(PROVE_CREATE, "proves that it can be made again")                                                      \
    X(PROVE_DELETE, "proves that its pods would stay")                                                       \
    X(PROVE_RIGHTS, "asks whether all that comes then may be written")                                       \
    X(PROVE_SIZES, "asks whose the sizes are")                                                               \
    X(PROBE, "asks whether each claim may grow")                                                             \
    X(GROW, "grows claims")                                                                                  \
    X(KEEP, "keeps its manifest")                                                                            \
    X(DELETE, "deletes it, its pods left behind")                                                            \
    X(FORESTALL, "makes a delete that may still arrive impossible")                                          \
    X(NOTE, "notes what changed on its way out")                                                             \
    X(RELEASE, "lets pods go that name a set that is gone")                                                  \
    X(MAKE, "makes it again")                                                                                \
    X(SECOND, "gives the canary its template back")                                                          \
    X(MANAGERS, "gives its fields back to whom they belonged")                                               \
    X(CATCH_UP, "grows a claim that was made meanwhile")                                                     \
    X(DROP, "drops the kept manifest")                                                                       \
    X(CLEAN, "takes its own mark off")                                                                       \
    X(END, "is over")

enum converge_stage {
#define X(name, text) CONVERGE_##name,
    CONVERGE_STAGES(X)
#undef X
        CONVERGE_STAGE_COUNT,
};
const char *converge_stage_text(enum converge_stage stage);

/* The kind of its operations in a journal. */
#define CONVERGE_OPERATION "resize"

struct converge;
struct volume_decision;

/* Strings and trees are copied. */
struct converge_options {
    const char *namespace;
    const char *name;
    const cJSON *desired;      /* the manifest, with its namespace; NULL: what was begun is finished */
    const char *sizes;         /* without a manifest: what the set is to be brought to, "data=2Gi", or NULL */
    const char *field_manager; /* of the ordinary apply; NULL: whoever applied the live claim templates */
    bool is_forced;            /* the ordinary apply takes fields of other managers over */
    bool unready_will_do;      /* pods need not be ready (a full disk may be why) */
    bool waits_for_file_system; /* done only when every claim has its size */
    bool recovers;              /* leads back from a growth that failed: claims are lowered, too */
    bool never_deletes;         /* no set is deleted: one that was made again with its old sizes stays so */
    bool plans_only; /* ends before the first write: proofs and probes, and the sentence of the plan */
};
struct converge *converge_make(const struct converge_options *options);
void converge_free(struct converge *converge);

/* The cluster, read after the turn that asked for it. Borrowed until the next one; arrays are the items of
 * lists of the namespace. */
struct converge_look {
    const cJSON *set;       /* NULL: the server says that there is none */
    const cJSON *revisions; /* ControllerRevisions */
    const cJSON *pods;      /* all of these may be NULL while the set is on its way out with its finalizer */
    const cJSON *claims;
    const cJSON *sets;
    const cJSON *classes;     /* NULL: unknown */
    const cJSON *quotas;      /* NULL: unknown */
    const cJSON *events;      /* of the claim that was asked about; NULL: unknown */
    const cJSON *gone_owners; /* uids of owners of the kept set that are not there any more; NULL: none */
    int64_t wall_us;
    int64_t boot_us;
    int64_t pods_boot_us; /* when the pods were asked for */
};
void converge_take_look(struct converge *converge, const struct converge_look *look);

/* What comes next. */
enum converge_next {
    CONVERGE_NEXT_LOOK, /* wait for wait_us (phrase: what for, or NULL), read the cluster, give it */
    CONVERGE_NEXT_ASK,  /* send the dry run, give its answer */
    CONVERGE_NEXT_STEP, /* send the step through the gateway, give its outcome */
    CONVERGE_NEXT_END,
};
struct converge_turn {
    enum converge_next next;
    enum converge_stage stage;
    int64_t wait_us;
    const char *phrase;        /* the machine's, until the next turn. END: the whole in a sentence */
    struct exempt_request ask; /* borrowed from the machine; timeout_us is the driver's */
    struct step_request *step; /* the driver's */
    enum error_code code;      /* END: ERROR_NONE: done; REFUSED: for good; INVALID, FORBIDDEN, FAILED */
};
void converge_next(struct converge *converge, struct converge_turn *ret);

/* boot_us: when it came, by env_boot_us(). */
void converge_take_answer(struct converge *converge, const struct kube_answer *answer, int64_t boot_us);
/* How the step ended. JOURNAL_UNKNOWN: it did not yet, or was not taken: the cluster is looked at anew. */
struct converge_outcome {
    enum journal_kind kind;
    int http;
    const char *summary; /* of a refusal */
    int64_t boot_us;     /* APPLIED: when that was known */
};
void converge_take_outcome(struct converge *converge, const struct converge_outcome *outcome);

/* The step was not sent: the cluster is looked at anew before anything is. */
void converge_look_again(struct converge *converge);

/* Something was written in this run. */
bool converge_has_written(const struct converge *converge);
/* The plan as JSON for `-o json`, and its rows; NULL before the first look. Borrowed. */
const struct volume_decision *converge_decision(const struct converge *converge);
/* The claim of whose growth is waited for in vain: the next look should have its Events. NULL: none. Borrowed
 * until the next turn. */
const char *converge_asks_about(const struct converge *converge);

DEFINE_CLEANUP(cleanup_converge, struct converge, converge_free);
#define CLEANUP_CONVERGE __attribute__((cleanup(cleanup_converge)))
