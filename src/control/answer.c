/* SPDX-License-Identifier: Apache-2.0 */
#include "control/answer.h"

#include "kube/object.h"

/* --- whose answer --------------------------------------------------------------------------------------- */

/* NULL and "" are the same. */
static bool same_text(const char *one, const char *other)
{
    return strcmp(one ? one : "", other ? other : "") == 0;
}

/* An answer that leaves it out says nothing against it. */
static bool not_another(const char *wanted, const char *found)
{
    return !wanted || !found || strcmp(wanted, found) == 0;
}

static bool is_success_of(const cJSON *body, const struct answer_target *target)
{
    const cJSON *details = json_get(body, "details");
    return str_equal(json_str(body, "kind"), "Status") && str_equal(json_str(body, "status"), "Success") &&
           not_another(target->name, json_str(details, "name")) &&
           not_another(target->uid, json_str(details, "uid"));
}

/* status is written and answered as the object itself; other subresources have kinds of their own. */
static bool is_kind_of(const cJSON *body, const struct answer_target *target)
{
    const char *kind = json_str(body, "kind");
    if (target->subresource && strcmp(target->subresource, "status") != 0)
        return kind && *kind;
    return str_equal(kind, kube_resource_info(target->resource)->kind);
}

bool answer_is_target(const cJSON *body, const struct answer_target *target)
{
    if (!cJSON_IsObject(body))
        return false;
    if (target->deleted && is_success_of(body, target))
        return true;
    const cJSON *metadata = json_get(body, "metadata");
    return is_kind_of(body, target) &&
           (!target->name || same_text(target->name, json_str(metadata, "name"))) &&
           same_text(target->namespace, json_str(metadata, "namespace")) &&
           (!target->uid || str_equal(target->uid, json_str(metadata, "uid")));
}

bool answer_is_foreign(const struct kube_answer *answer, const struct answer_target *target)
{
    if (answer->outcome != KUBE_OK)
        return false;
    /* CORRUPT: it came whole and is no JSON. What was cut on its way was begun by the server. */
    if (answer->body_cut)
        return answer->code == ERROR_CORRUPT || answer->stranger;
    return !answer_is_target(answer->body, target);
}

char *answer_foreign_sentence(const struct kube_answer *answer, const struct answer_target *target)
{
    if (answer->stranger)
        return xasprintf("%d, but %s", answer->http, answer->stranger);
    CLEANUP_FREE char *ref =
        kube_object_ref_text(target->resource, target->namespace, target->name ? target->name : "");
    return xasprintf(
        "%d, but the answer is not %s as the API server would send it: something else answers in "
        "its place (a proxy?)",
        answer->http, ref);
}

/* --- what it says of a step ----------------------------------------------------------------------------- */

static enum answer_class classify_refusal(enum step_kind kind, const struct kube_answer *answer)
{
    int http = answer->http;
    switch (http) {
    case 401:
    case 429:
        return ANSWER_AGAIN;
    case 404:
        return step_creates(kind) ? ANSWER_REJECTED : ANSWER_ECHO;
    case 408:
        return ANSWER_UNKNOWN;
    case 409:
        return ANSWER_ECHO;
    case 422:
        return kube_answer_has_cause_field(answer, "metadata.uid") ? ANSWER_ECHO : ANSWER_REJECTED;
    case 500:
        return kube_answer_is_unreadable(answer) ? ANSWER_REJECTED : ANSWER_UNKNOWN;
    default:
        return http >= 500 ? ANSWER_UNKNOWN : ANSWER_REJECTED;
    }
}

enum answer_class answer_classify(enum step_kind kind, const struct answer_target *target,
                                  const struct kube_answer *answer)
{
    switch (answer->outcome) {
    case KUBE_OK:
        return answer_is_foreign(answer, target) ? ANSWER_UNKNOWN : ANSWER_APPLIED;
    case KUBE_REFUSED:
        return classify_refusal(kind, answer);
    case KUBE_NO_ANSWER:
        return ANSWER_UNKNOWN;
    case KUBE_NOT_SENT:
        return ANSWER_NOT_SENT;
    }
    UNREACHABLE();
}
