/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/patch.h"

void patch_merge(cJSON *target, const cJSON *patch)
{
    const cJSON *member;
    cJSON_ArrayForEach (member, patch) {
        if (cJSON_IsNull(member)) {
            json_remove(target, member->string);
        } else if (cJSON_IsObject(member)) {
            patch_merge(json_ensure_object(target, member->string), member);
        } else {
            json_set_item(target, member->string, json_copy(member));
        }
    }
}
