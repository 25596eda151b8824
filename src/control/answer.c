/* SPDX-License-Identifier: Apache-2.0 */
#include "control/answer.h"

/* A Status of the API server itself: a page of some proxy between us and it says nothing. */
static bool is_status(const struct kube_answer *answer)
{
    return str_equal(json_str(answer->body, "kind"), "Status");
}

static bool is_create(enum step_kind kind)
{
    return strcmp(step_kind_info(kind)->method, "POST") == 0;
}

static enum answer_class classify_refusal(enum step_kind kind, const struct kube_answer *answer)
{
    int http = answer->http;
    switch (http) {
    case 401:
    case 429:
        return ANSWER_AGAIN;
    case 404:
        return is_create(kind) ? ANSWER_REJECTED : ANSWER_ECHO;
    case 408:
        return ANSWER_UNKNOWN;
    case 409:
        return ANSWER_ECHO;
    case 422:
        return kube_answer_has_cause_field(answer, "metadata.uid") ? ANSWER_ECHO : ANSWER_REJECTED;
    case 500:
        /* The server could not read the manifest: nothing was written. */
        return is_status(answer) && !*answer->reason ? ANSWER_REJECTED : ANSWER_UNKNOWN;
    default:
        return http >= 500 ? ANSWER_UNKNOWN : ANSWER_REJECTED;
    }
}

enum answer_class answer_classify(enum step_kind kind, const struct kube_answer *answer)
{
    switch (answer->outcome) {
    case KUBE_OK:
        return ANSWER_APPLIED;
    case KUBE_REFUSED:
        return classify_refusal(kind, answer);
    case KUBE_NO_ANSWER:
        return ANSWER_UNKNOWN;
    case KUBE_NOT_SENT:
        return ANSWER_NOT_SENT;
    }
    UNREACHABLE();
}
