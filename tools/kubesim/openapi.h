/* SPDX-License-Identifier: Apache-2.0
 *
 * /openapi/v3: as much as kubectl needs to validate and to patch. /openapi/v2 is not modelled. */
#pragma once

#include "kubesim/model.h"

int openapi_answer(struct call *call);
