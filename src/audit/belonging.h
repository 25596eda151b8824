/* SPDX-License-Identifier: Apache-2.0
 *
 * Does an entry have to do with an object, or with a namespace? An outcome names its step and its operation,
 * not their objects: those are looked up once and remembered. For reading in order of seq, whatever the
 * object. */
#pragma once

#include "audit/audit.h"

struct belonging;

/* filter and journal must outlive it. */
struct belonging *belonging_make(const struct audit_journal *journal, const struct audit_filter *filter);
void belonging_free(struct belonging *belonging);
/* *ret: the entry is of the filter's object (its operation, or a step or wait that targets it) and namespace.
 */
int belonging_check(struct belonging *belonging, const struct journal_entry *entry, bool *ret,
                    struct error **err);
