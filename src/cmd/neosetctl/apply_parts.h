/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of `apply`, as they know each other: neosetctl_apply_kinds.c finds out what the objects are,
 * neosetctl_apply_live.c what is there of them, neosetctl_apply_trial.c tries them, neosetctl_apply_grow.c
 * knows what is to be converged, neosetctl_apply.c writes and tells. Only these include this. */
#pragma once

#include "cmd/neosetctl/apply.h"
#include "cmd/neosetctl/session.h"

enum apply_result {
    APPLY_WAITING,   /* not tried yet */
    APPLY_CREATED,   /* not there, and the server takes it */
    APPLY_CHANGED,   /* there, and it would be another afterwards */
    APPLY_UNCHANGED, /* there, as it is wanted */
    APPLY_GROWS,     /* a StatefulSet whose volumes grow: converged, then applied */
    APPLY_REFUSED,
};

/* One object. */
struct apply_item {
    const struct manifest *manifest; /* its object has its namespace in it, once its kind is known */
    bool is_known;                   /* the server knows its kind */
    enum kube_resource resource;
    const char *namespace; /* NULL: cluster-scoped; borrowed from the manifest */
    const char *name;
    bool comes_first; /* a namespace, a definition: what others need */
    bool is_untried;  /* its namespace or its kind comes with this very run */
    enum apply_result result;
    bool is_looked_at; /* live is what a list of the server has of it, for the trial to take; NULL: nothing */
    cJSON *live;
    char *uid; /* of the live object; NULL: there is none */
    char *version;
    char *problem; /* why it is refused, for people */
    bool is_written;
};

struct apply {
    const struct ctl_apply *wanted;
    struct manifests manifests;
    struct apply_item *items;
    size_t count;
    const char *field_manager;
    bool is_forced;
    bool is_dry;
    int64_t limit_us;
    struct ctl_session session;
    bool has_session;
    cJSON
        *kept; /* namespace to the manifests that are kept in it, as far as they were asked for; NULL: none */
    cJSON *groups; /* apiVersion to its APIResourceList, or to null: the server has none */
};

/* Finds the resource and the namespace of each item that has none yet. Errors: -ERROR_INVALID with a sentence
 * that names the object: a kind that neither the server nor a definition among the items knows, a namespace
 * that contradicts -n; those of asking. */
int apply_find_kinds(struct apply *apply, struct error **err);
/* Asks about them anew: a definition has been made. */
void apply_forget_kinds(struct apply *apply);

/* It waits, its kind is known and what it needs is there. */
bool apply_can_be_tried(const struct apply_item *item);
/* What is there of those that can be tried, as far as a few lists tell. Errors: the server cannot be reached.
 */
int apply_read_lists(struct apply *apply, struct error **err);

/* Tries those that wait and can be tried: what becomes of each, without writing. Errors: the server cannot be
 * reached. */
int apply_try(struct apply *apply, struct error **err);
/* Tries this one, whatever it is. */
int apply_try_one(struct apply *apply, struct apply_item *item, struct error **err);

/* Which of those that were tried are to be converged, and whether that would be refused. Errors: the server
 * cannot be reached. */
int apply_check_growth(struct apply *apply, struct error **err);
/* Converges the set, with a session of its own: the journal has one writer, so no other may be open. */
int apply_converge(struct apply *apply, struct apply_item *item, struct error **err);
