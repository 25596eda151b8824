/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/probe.h"

static enum probe_verdict judge_refusal(const struct kube_answer *answer)
{
    switch (answer->http) {
    case 403:
        return PROBE_REFUSED;
    case 404:
    case 409:
        return PROBE_MOVED;
    case 422:
        if (kube_answer_has_cause_field(answer, "metadata.uid"))
            return PROBE_MOVED;
        return kube_answer_has_cause_field(answer, "spec") ? PROBE_NOT_BOUND : PROBE_BAD_SIZE;
    default:
        return answer->http == 400 ? PROBE_BAD_SIZE : PROBE_LATER;
    }
}

enum probe_verdict probe_judge(const struct kube_answer *answer)
{
    if (answer->outcome == KUBE_OK)
        return PROBE_WELL;
    return answer->outcome == KUBE_REFUSED ? judge_refusal(answer) : PROBE_LATER;
}

enum probe_verdict probe_why(int same, int more, bool class_is_known)
{
    if (same == 403)
        return PROBE_PERMISSION;
    if (more != 403 || class_is_known)
        return PROBE_QUOTA;
    return PROBE_EITHER;
}

const char *probe_text(enum probe_verdict verdict)
{
    switch (verdict) {
    case PROBE_WELL:
        return "it may grow";
    case PROBE_REFUSED:
        return "the server refuses";
    case PROBE_MOVED:
        return "it changed meanwhile";
    case PROBE_LATER:
        return "the server cannot say now";
    case PROBE_NOT_BOUND:
        return "it is not bound, and only a bound claim can grow";
    case PROBE_BAD_SIZE:
        return "the server does not take its size";
    case PROBE_PERMISSION:
        return "you may not patch it: you need `patch persistentvolumeclaims`";
    case PROBE_QUOTA:
        return "a quota or a limit range has no room for it: make room, and run it again";
    case PROBE_EITHER:
        return "its storage class lets no volume grow, or a quota is used up (you may not read storage "
               "classes, "
               "so that nobody can tell)";
    }
    UNREACHABLE();
}
