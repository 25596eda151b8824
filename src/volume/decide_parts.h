/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the decision share: template.c reads and compares volumeClaimTemplates, claim.c finds the
 * claims of a set, decide.c holds the order of the rules, account.c tells people. Only these include this. */
#pragma once

#include "volume/decide.h"

/* --- templates ------------------------------------------------------------------------------------------ */

struct volume_template {
    const cJSON *node; /* borrowed */
    const char *name;  /* borrowed */
    char *text;        /* the size as it is spelled; NULL: none is there */
    struct quantity size;
};

struct volume_templates {
    struct volume_template *items;
    size_t count;
};

/* Reads spec.volumeClaimTemplates of a StatefulSet. Everything that cannot be used is added to bad: in `to`
 * of the item when the set is the declared one, else in `from`. */
void volume_templates_read(const cJSON *set, bool declared, struct volume_templates *ret,
                           struct volume_items *bad);
void volume_templates_done(struct volume_templates *templates);
#define CLEANUP_VOLUME_TEMPLATES __attribute__((cleanup(volume_templates_done)))

/* Adds to changed: templates that only one of both has, or that stand in another order. */
void volume_templates_compare_names(const struct volume_templates *live,
                                    const struct volume_templates *declared, struct volume_items *changed);
/* Adds to changed: each field but the storage request that differs by the server's meaning. */
void volume_template_compare(const struct volume_template *live, const struct volume_template *declared,
                             struct volume_items *changed);

/* --- claims --------------------------------------------------------------------------------------------- */

/* What claims are held against. */
struct claim_target {
    const struct volume_template *template;
    bool grows; /* claims are raised to the template's size; else those below it are lagging */
};

/* Claims below their targets, each kind by name. */
struct claim_survey {
    struct volume_items grow;           /* to be raised, nothing in the way */
    struct volume_items unreadable;     /* a request that is no size */
    struct volume_items ambiguous;      /* to be raised, if they are ours */
    struct volume_items not_expandable; /* to be raised; their class does not allow it */
    struct volume_items not_bound;      /* to be raised; the server would refuse it */
    struct volume_items terminating;
    struct volume_items lagging;
};

void volume_survey_claims(const struct volume_input *input, const struct claim_target *targets, size_t count,
                          struct claim_survey *ret);
void claim_survey_done(struct claim_survey *survey);
#define CLEANUP_CLAIM_SURVEY __attribute__((cleanup(claim_survey_done)))

/* The set has claims of this template, and none of their volumes has reached size. */
bool volume_claims_are_all_below(const struct volume_input *input, const char *template,
                                 const struct quantity *size);

/* --- items ---------------------------------------------------------------------------------------------- */

void volume_items_done(struct volume_items *items);
#define CLEANUP_VOLUME_ITEMS __attribute__((cleanup(volume_items_done)))
