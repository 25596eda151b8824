/* SPDX-License-Identifier: Apache-2.0
 *
 * `settle`: a person's word on a step that nobody else can decide (journal.md, "In doubt"), written as the
 * annotation apps.neo.io/settle on the object that the step is about. The controller reads it there and
 * journals it with who and why. Decides nothing about the step itself. */
#pragma once

#include "audit/audit.h"
#include "cmd/neosetctl/write.h"

struct ctl_settle {
    const char *object; /* KIND/NAME */
    const char *key;    /* <nonce>-<seq>, as the condition and `neosetctl why` show it */
    const char *as;     /* "applied" or "absent" */
    const char *reason;
};

/* "pod/mysql-2": the resource and the name, which points into text. Errors: -ERROR_USAGE, with the kinds that
 * there are. */
int ctl_object_parse(const char *text, enum kube_resource *ret_resource, const char **ret_name,
                     struct error **err);
/* 0, or -ERROR_USAGE: not a key, no reason, a reason with a line break. */
int ctl_settle_check(const struct ctl_settle *settle, struct error **err);
/* The journals have an open step of this key, and it was written to this object; none named: whatever it is.
 * Errors: -ERROR_REFUSED, with the command that lists what is in doubt; as the journal's reader. */
int ctl_settle_find(struct audit *journals, const char *namespace, const struct ctl_settle *settle,
                    struct error **err);
/* The annotation's text; the caller's. */
char *ctl_settle_text(const struct ctl_settle *settle);
/* Errors: as ctl_settle_check and ctl_write. */
int ctl_settle(struct ctl_server *server, const struct ctl_settle *settle, enum ctl_written *ret,
               struct error **err);
