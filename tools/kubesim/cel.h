/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of CEL that validation rules of custom resources use: field access, arithmetic, comparison, logic,
 * ?:, in, has(), the list macros, size(), the string functions, quantities. A rule outside of it does not
 * compile, with a sentence: it is never taken as true. Evaluation is bounded. */
#pragma once

#include "base/json.h"

struct cel_rule;

/* One item of x-kubernetes-validations. */
int cel_rule_compile(const cJSON *item, struct cel_rule **ret, struct error **err);
void cel_rule_free(struct cel_rule *rule);
/* True when the rule mentions oldSelf: it is looked at only on updates, where both exist. */
bool cel_rule_is_transition(const struct cel_rule *rule);
/* 1: holds, 0: does not, -ERROR_FAILED: evaluation failed (err has CEL's words). old_self may be NULL. */
int cel_rule_holds(const struct cel_rule *rule, const cJSON *self, const cJSON *old_self, struct error **err);
/* The message when it does not hold: messageExpression, message, or "failed rule: ..."; the caller's. */
char *cel_rule_message(const struct cel_rule *rule, const cJSON *self, const cJSON *old_self);
/* fieldPath (".replicas") or NULL; reason ("FieldValueInvalid" ...) or NULL. */
const char *cel_rule_field(const struct cel_rule *rule);
const char *cel_rule_reason(const struct cel_rule *rule);
