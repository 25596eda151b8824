/* SPDX-License-Identifier: Apache-2.0
 *
 * Access reviews: kubesim has no authorization, everybody may everything - or, by option, nobody anything. */
#include "kubesim/decode.h"

int review_create(struct call *call)
{
    if (decode_object(call, call->kind) < 0)
        return -1;
    cJSON *answer = json_copy(call->body);
    cJSON *status = json_new_object();
    if (strcmp(call->kind->name, "SelfSubjectReview") == 0) {
        cJSON *info = json_add_object(status, "userInfo");
        json_add_str(info, "username", call->request->user ? call->request->user : "kubesim");
        json_append_str(json_add_array(info, "groups"), "system:masters");
    } else {
        bool allowed = !call->sim->options.deny_reviews;
        json_add_bool(status, "allowed", allowed);
        if (!allowed)
            json_add_str(status, "reason", "kubesim was told to deny");
    }
    json_set_item(answer, "status", status);
    json_ensure_object(answer, "metadata");
    answer_tree(call, 201, answer);
    return 0;
}
