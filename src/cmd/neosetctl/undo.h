/* SPDX-License-Identifier: Apache-2.0
 *
 * `undo`: which revision a set goes back to, and the patch that writes its pod template back. Pure: what it
 * decides is written by neosetctl_write.h. The data of a revision is the pod template only (neoset.md,
 * "Revisions"), so nothing else of the spec changes. */
#pragma once

#include "base/json.h"

struct ctl_undo {
    int64_t from_number; /* of the template that the set has now; 0: it has no revision (yet) */
    int64_t number;
    char *name;
    char *template_text; /* compact JSON */
    char *digest;        /* of its meaning */
    char *seen_digest;   /* of the template that the set had when this was decided */
    char *change;        /* "image mysql:8.1 -> mysql:8.0", or the field that forces a re-creation */
    const char *choice;  /* why this one: "the stable revision", ... */
    bool recreates;      /* pods are made anew, not patched */
    bool is_paused;
    bool is_unproven; /* status tells which revisions were stable once, and not this one */
    bool is_there;    /* the set means this template already: nothing is to be written */
};

/* revisions: ControllerRevisions (an array), those of others are passed over. number 0: that of the set's
 * template itself when it was stable once and another one is (it goes back already); else the stable revision
 * when the set's template is another one or a rollout is under way, else the newest that differs from the
 * set's template and was stable once: what failed is never gone back to unasked. Errors: -ERROR_REFUSED, with
 * a sentence: no earlier revision, none that was stable, no such number, a set that is being deleted;
 * -ERROR_INVALID: the set cannot be read. *ret is undone by ctl_undo_done in any case. */
int ctl_undo_choose(const cJSON *set, const cJSON *revisions, int64_t number, struct ctl_undo *ret,
                    struct error **err);
void ctl_undo_done(struct ctl_undo *undo);

/* Does the set mean the template of undo? Else: does it still mean the one that undo was decided on? */
bool ctl_undo_is_done(const struct ctl_undo *undo, const cJSON *set);
bool ctl_undo_is_as_seen(const struct ctl_undo *undo, const cJSON *set);
/* A merge patch (RFC 7386) for the set, with spec.template only; the caller's. */
cJSON *ctl_undo_patch(const struct ctl_undo *undo, const cJSON *set);
