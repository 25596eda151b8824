/* SPDX-License-Identifier: Apache-2.0
 *
 * metadata.managedFields: who owns which field. Every write moves ownership; an apply (apply.c) asks about
 * it. Entries are kept as the server prints them; the sets inside are field_set.h's. */
#pragma once

#include "kubesim/model.h"

/* After a create (old NULL) or an update of object by the call's field manager: the fields that changed are
 * its own now and nobody else's. Nothing changed: nothing is touched. A list in object that differs from
 * old's (someone patched metadata.managedFields, or posted it) is where it starts from; [{}] forgets all
 * owners. */
void managed_record_update(struct call *call, const struct kind *kind, const cJSON *old, cJSON *object);

/* The entry of a manager, or NULL. subresource: "" for none. */
cJSON *managed_find(const cJSON *object, const char *manager, const char *operation, const char *subresource);
/* Puts a manager's set in place (taken), with the time of the call; an empty set drops the entry. */
void managed_put(struct call *call, const struct kind *kind, cJSON *object, const char *manager,
                 const char *operation, const char *subresource, cJSON *set);
/* Drops entries whose set is empty, and an empty list. */
void managed_tidy(cJSON *object);
/* What the server owns by itself is nobody's: name, uid, versions, managedFields, and status or everything
 * but it. */
void managed_strip(const struct call *call, const struct kind *kind, cJSON *set);
