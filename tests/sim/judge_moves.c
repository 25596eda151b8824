/* SPDX-License-Identifier: Apache-2.0 */
#include "judge_parts.h"

void judge_move(struct judge *judge, struct seen_set *set, int ordinal, const struct kubesim_change *change,
                const struct seen_key *key)
{
    (void)judge, (void)set, (void)ordinal, (void)change, (void)key;
}
