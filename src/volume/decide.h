/* SPDX-License-Identifier: Apache-2.0
 *
 * A StatefulSet whose declared volume sizes grew: can it be brought there, and what does it take? The claims
 * that must grow, and whether the set must be re-created, because its volumeClaimTemplates are immutable; or
 * why not, naming everything that stands in the way. The tests' cases (tests/volume/cases) are the table of
 * the rules. Pure: reads the objects that it is given, asks nobody, writes nothing.
 *
 * It judges the volumeClaimTemplates alone. Whether another immutable field changed too is the API server's
 * to say: whoever acts on a decision asks it by a dry run first. */
#pragma once

#include "volume/quantity.h"

/* X(name, word in tables and JSON, reason for people, is refused: nothing changes until a person acts)
 * The first that applies, in the order of the rules, is the outcome. OTHER_IMMUTABLE is never decided here:
 * it is what the API server's dry run adds. */
#define VOLUME_OUTCOMES(X)                                                                                   \
    X(NOTHING, "nothing", "no volume grows", false)                                                          \
    X(GROW, "grow", "volumes grow", false)                                                                   \
    X(BAD_INPUT, "bad-input", "the manifest cannot be used", false)                                          \
    X(TEMPLATE_CHANGED, "template-changed",                                                                  \
      "a volumeClaimTemplate changed in a way other than a larger storage request", true)                    \
    X(SHRINK, "shrink", "a volume cannot shrink", true)                                                      \
    X(CLAIM_AMBIGUOUS, "claim-ambiguous", "a claim can belong to another StatefulSet, too", true)            \
    X(NOT_EXPANDABLE, "not-expandable", "the claim's storage class does not allow volume expansion", true)   \
    X(NOT_BOUND, "not-bound", "a claim is not bound, and only a bound one can grow", false)                  \
    X(OTHER_IMMUTABLE, "other-immutable",                                                                    \
      "the StatefulSet changes an immutable field other than its volume sizes", true)

enum volume_outcome {
#define X(name, word, reason, refused) VOLUME_##name,
    VOLUME_OUTCOMES(X)
#undef X
};

/* A template, a claim or a set, and what is to become of it or stands in its way. Strings are the item's own;
 * sizes and values are spelled as their authors spelled them. */
struct volume_item {
    char *name;
    char *template; /* of a claim */
    char *class;    /* of a claim: the StorageClass that counts; NULL: it names none */
    char *field;    /* of an offending item: which of its fields ("spec.accessModes"); NULL: the whole */
    char *from;     /* live; NULL: absent */
    char *to;       /* declared; NULL: absent */
    char *problem;  /* of an offending item: what is wrong with it, for people */
    char *uid;      /* of a claim, as it was read: guards a write of it. NULL: the object had none */
    char *version;
    struct quantity from_size; /* where from and to are sizes */
    struct quantity to_size;
};

struct volume_items {
    struct volume_item *items;
    size_t count;
    size_t room;
};

struct volume_decision {
    enum volume_outcome outcome;
    char *namespace; /* NULL: the manifest names none (BAD_INPUT) */
    char *name;
    struct volume_items grown;   /* GROW: templates in the order of the manifest */
    struct volume_items claims;  /* GROW, and see volume_decide_claims(): claims to grow, by name */
    struct volume_items refused; /* neither NOTHING nor GROW: everything in the way */
    struct volume_items lagging; /* NOTHING, GROW: claims below a size that is not being raised (by name): a
                                    finding for people, nobody writes them */
    struct volume_items
        terminating;  /* GROW: claims that would grow if they were not being deleted (by name) */
    bool recreate;    /* GROW: the set must be re-created with the larger templates */
    bool recoverable; /* SHRINK: no volume has reached the smaller size yet, a growth failed:
                         `neosetctl resize recover` leads back */
};

/* What is known. All borrowed, unchanged. Arrays are the items of list answers. */
struct volume_input {
    const cJSON *desired; /* the manifest */
    const cJSON *live;    /* NULL: there is no such StatefulSet */
    const cJSON *claims;  /* PersistentVolumeClaims; those of other namespaces are passed over */
    const cJSON *others;  /* the namespace's StatefulSets, this one or not; of one without spec only the name
                             is  known. NULL: none */
    const cJSON *pods;    /* pods of the namespace: which claims each mounts. NULL: none */
    const cJSON *classes; /* StorageClasses; NULL: unknown, then only a claim without a class is refused */
};

/* Time and memory grow with the number of claims, not faster (but for sorting their names). */
void volume_decide(const struct volume_input *input, struct volume_decision *ret);
/* For a set whose templates may change, as a NeoSet's: what its claims have to do to be as large as its
 * templates say. `live` does not count, nothing is re-created. Each claim stands for itself: `claims` are
 * those that can grow, also when others cannot. The outcome is the first reason why one cannot, and `refused`
 * names all claims that it holds for; GROW or NOTHING when there is none. */
void volume_decide_claims(const struct volume_input *input, struct volume_decision *ret);
void volume_decision_done(struct volume_decision *decision);
#define CLEANUP_VOLUME_DECISION __attribute__((cleanup(volume_decision_done)))

/* The claim's name is one that the set gives to a claim of one of its templates. */
bool volume_is_claim_of(const cJSON *claim, const cJSON *set);

/* The StorageClass of a claim that counts, borrowed: an old annotation outranks the field. NULL: it names
 * none.
 */
const char *volume_class_of(const cJSON *claim);

const char *volume_outcome_word(enum volume_outcome outcome);
const char *volume_outcome_reason(enum volume_outcome outcome);
/* Refused for good: it stays so until a person changes the manifest or the cluster (exit code 2). */
bool volume_outcome_is_refused(enum volume_outcome outcome);

/* The one-line account, without a line break; the caller's. Of a plan: "StatefulSet/ns/db: data 1Gi -> 2Gi; 2
 * claims grow, then it is re-created"; of a refusal: the reason and every offending item with its sizes. */
char *volume_decision_text(const struct volume_decision *decision);
/* The same without the set's name. */
char *volume_decision_words(const struct volume_decision *decision);
/* The whole of it for `-o json`: {namespace, name, outcome, reason, recreate, recoverable, grown, claims,
 * refused, lagging, terminating}; the caller's. */
cJSON *volume_decision_json(const struct volume_decision *decision);

/* Adds an item with a name and nothing else, valid until the next is added. For those who add a reason of
 * their own to `refused`. */
struct volume_item *volume_items_add(struct volume_items *items, const char *name);
/* By name. */
void volume_items_sort(struct volume_items *items);
