/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/prove.h"

#include "kube/object.h"

enum { FIELDS_MAX = 4096 };

static const struct {
    const char *text;
    bool is_refused;
} verdicts[] = {
#define X(name, text_, refused) [PROVE_##name] = {.text = text_, .is_refused = refused},
    PROVE_VERDICTS(X)
#undef X
};

bool prove_is_refused(enum prove_verdict verdict)
{
    return verdicts[verdict].is_refused;
}

const char *prove_text(enum prove_verdict verdict)
{
    return verdicts[verdict].text;
}

/* 1.36 and older refuse the spec as a whole, 1.37 each field. */
static bool is_immutable(const struct kube_cause *cause)
{
    static const char *const fields[] = {"spec.selector", "spec.serviceName", "spec.podManagementPolicy",
                                         "spec.volumeClaimTemplates"};
    if (str_equal(cause->reason, "FieldValueForbidden"))
        return str_equal(cause->field, "spec");
    if (!str_equal(cause->reason, "FieldValueInvalid"))
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (str_equal(cause->field, fields[i]))
            return true;
    return false;
}

static bool any_cause(const struct kube_answer *answer, bool (*is_it)(const struct kube_cause *cause))
{
    for (size_t i = 0; i < answer->cause_count; i++)
        if (is_it(&answer->causes[i]))
            return true;
    return false;
}

static bool is_manager_conflict(const struct kube_cause *cause)
{
    return str_equal(cause->reason, "FieldManagerConflict");
}

/* What the three have in common. */
static enum prove_verdict judge_refusal(const struct kube_answer *answer)
{
    switch (answer->http) {
    case 403:
        return PROVE_FORBIDDEN;
    case 404:
        return PROVE_MOVED;
    case 409:
        return any_cause(answer, is_manager_conflict) ? PROVE_MANAGERS : PROVE_MOVED;
    case 422:
        if (kube_answer_has_cause_field(answer, "metadata.uid"))
            return PROVE_ANOTHER;
        return any_cause(answer, is_immutable) ? PROVE_OTHER_IMMUTABLE : PROVE_BAD_MANIFEST;
    case 500:
        return kube_answer_is_unreadable(answer) ? PROVE_UNREADABLE : PROVE_LATER;
    default:
        return answer->http == 400 || answer->http == 413 || answer->http == 415 ? PROVE_BAD_MANIFEST
                                                                                 : PROVE_LATER;
    }
}

static enum prove_verdict judge(const struct kube_answer *answer)
{
    if (answer->outcome == KUBE_OK)
        return answer->body ? PROVE_WELL : PROVE_LATER;
    return answer->outcome == KUBE_REFUSED ? judge_refusal(answer) : PROVE_LATER;
}

enum prove_verdict prove_apply(const struct kube_answer *answer)
{
    return judge(answer);
}

/* A quota for as many sets as there are lets none be added for the trial; the set itself frees its place by
 * going first (measured: the re-creation passes). Only its sentence tells it from other refusals. */
static bool is_count_quota(const struct kube_answer *answer)
{
    return answer->outcome == KUBE_REFUSED && answer->http == 403 &&
           strstr(answer->message, "exceeded quota") && strstr(answer->message, "count/statefulsets.apps=");
}

enum prove_verdict prove_create(const struct kube_answer *answer)
{
    if (is_count_quota(answer))
        return PROVE_WELL;
    if (answer->outcome == KUBE_REFUSED && answer->http == 409)
        return PROVE_TAKEN;
    return judge(answer);
}

enum prove_verdict prove_delete(const struct kube_answer *answer, const char *uid)
{
    enum prove_verdict verdict = judge(answer);
    if (verdict != PROVE_WELL)
        return verdict;
    if (!str_equal(json_str(answer->body, "kind"), "StatefulSet") ||
        !kube_object_has_finalizer(answer->body, "orphan"))
        return PROVE_NOT_ORPHANED;
    return str_equal(kube_object_uid(answer->body), uid) ? PROVE_WELL : PROVE_ANOTHER;
}

char *prove_fields(const struct kube_answer *answer)
{
    struct buf text = BUF_INIT(FIELDS_MAX);
    for (size_t i = 0; i < answer->cause_count; i++) {
        const char *field = answer->causes[i].field;
        bool again = !field || !*field;
        for (size_t k = 0; k < i && !again; k++)
            again = str_equal(answer->causes[k].field, field);
        if (!again)
            buf_addf(&text, "%s%s", text.length > 0 ? ", " : "", field);
    }
    return buf_take(&text);
}
