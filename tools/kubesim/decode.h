/* SPDX-License-Identifier: Apache-2.0
 *
 * From a request's body to an object of a kind: parsing, type checks, pruning, defaults, in the server's
 * order. */
#pragma once

#include "kubesim/model.h"

/* Any JSON (or YAML, when the content type says so) body into call->body. An empty one is refused. */
int decode_body(struct call *call);
/* The body as an object of kind, in call->body, checked and completed (decode_finish). */
int decode_object(struct call *call, const struct kind *kind);
/* The second half, for objects that come from a patch: checks apiVersion and kind, prunes (fieldValidation of
 * the call), checks types, sets defaults. */
int decode_finish(struct call *call, const struct kind *kind, cJSON *object);
/* The same of an object of a built-in kind whose types were checked. touched: as in schema_check.h. */
int decode_checked(struct call *call, const struct kind *kind, cJSON *object, const cJSON *touched);
/* A cause when name is no DNS label, or with dots no DNS subdomain. */
void dns_name_validate(const char *name, bool dots, const char *field, struct causes *causes);
/* What every metadata must hold to: names, labels, annotations, owners, finalizers. */
void meta_validate(const struct kind *kind, const cJSON *object, const cJSON *old, struct causes *causes);
