/* SPDX-License-Identifier: Apache-2.0
 *
 * What others ask of a CustomResourceDefinition; its hooks are in kinds.h. */
#pragma once

#include "kubesim/model.h"

/* openAPIV3Schema of a custom kind, owned by the stored definition; NULL when it is gone. */
const cJSON *definition_schema(const struct kubesim *sim, const struct kind *kind);
