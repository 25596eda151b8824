/* SPDX-License-Identifier: Apache-2.0
 *
 * What every object that we send begins with, and the references between objects. Reading them is object.h's;
 * what an object says beyond that is its maker's. */
#pragma once

#include "base/json.h"
#include "kube/resource.h"

/* apiVersion and kind, which object has not yet. */
void kube_add_type(cJSON *object, enum kube_resource resource);
/* {"apiVersion", "kind", "metadata": {"name", "namespace"}}; namespace NULL: it has none. The caller's. */
cJSON *kube_manifest(enum kube_resource resource, const char *namespace, const char *name);
/* An item of metadata.ownerReferences; the caller's. is_controller: as the one that looks after it, which
 * cannot be deleted in the foreground as long as it is there. */
cJSON *kube_owner_reference(enum kube_resource resource, const char *name, const char *uid,
                            bool is_controller);
