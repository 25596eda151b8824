/* SPDX-License-Identifier: Apache-2.0
 *
 * The way back from a growth that failed (`neosetctl resize recover`): claims that ask for more than their
 * storage can give are asked for less again, above what they have, and the template follows. A volume never
 * shrinks: what has become as large as declared, or larger, is not lowered. Pure. */
#pragma once

#include "volume/decide.h"

/* What it takes to bring set to desired, a smaller size included. decision: what volume_decide() said; where
 * that is a refusal to shrink, or leaves claims above the declared sizes, the claims to lower are added and
 * it becomes GROW (from: what a claim asks for, to: the declared size). *ret_refusal: why there is no way
 * back, naming every claim in the way, the caller's; NULL: there is one. */
void recover_decide(const cJSON *set, const cJSON *desired, const cJSON *claims,
                    struct volume_decision *decision, char **ret_refusal);
