/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether one may write what converge writes besides the set and its claims, asked before it writes anything:
 * a set that was deleted while its manifest may not be dropped, or a pod not be let go, stays half done. A
 * dry run of that very write is asked for, not a review: it knows of roles for some names only, of quotas and
 * of admission. What is to be changed or dropped is not there yet: "not found" is said to those alone who
 * may. */
#include "volume/converge_parts.h"

#include "control/preconditions.h"

#include <inttypes.h>

static const struct {
    const char *method;
    enum kube_resource resource;
    const char *permission;
} rights[] = {
    {"POST", KUBE_REVISION, "create controllerrevisions.apps"},
    {"PATCH", KUBE_REVISION, "patch controllerrevisions.apps"},
    {"DELETE", KUBE_REVISION, "delete controllerrevisions.apps"},
    {"PATCH", KUBE_POD, "patch pods"},
    /* The ordinary apply is a patch of the set, too. */
    {"PATCH", KUBE_STATEFULSET, "patch statefulsets.apps"},
};

bool has_rights_to_prove(const struct converge *converge)
{
    size_t count = ARRAY_SIZE(rights) - (converge->has_manifest ? 1 : 0);
    return converge->decision.recreate && converge->right < count;
}

const char *right_permission(const struct converge *converge)
{
    return rights[converge->right].permission;
}

static cJSON *body_of(const struct converge *converge)
{
    const char *method = rights[converge->right].method;
    if (strcmp(method, "POST") == 0)
        return keep_object(converge->manifest);
    if (strcmp(method, "DELETE") == 0)
        return preconditions_orphan_delete(converge->proof_uid, converge->proof_version, true);
    return json_new_object();
}

/* A role may be for some names only: the first pod's is one of those that may have to be let go. */
static char *name_of(const struct converge *converge, enum kube_resource resource)
{
    if (resource == KUBE_STATEFULSET)
        return xstrdup(converge->name);
    if (resource == KUBE_REVISION)
        return keep_name(converge->manifest);
    int64_t start = json_int64_or(json_path(converge->manifest, "spec", "ordinals", NULL), "start", 0);
    return xasprintf("%s-%" PRId64, converge->name, start);
}

void ask_right(struct converge *converge, struct exempt_request *ret)
{
    const char *method = rights[converge->right].method;
    enum kube_resource resource = rights[converge->right].resource;
    bool is_patch = strcmp(method, "PATCH") == 0;
    CLEANUP_FREE char *name = name_of(converge, resource);
    converge_ask(converge, ret, method, strcmp(method, "POST") == 0 ? NULL : name,
                 is_patch ? KUBE_MERGE : KUBE_JSON, body_of(converge));
    ret->resource = resource;
    if (strcmp(method, "DELETE") == 0)
        ret->kind = EXEMPT_DRY_DELETE;
}

/* Who may not is told so before a webhook is asked. */
static bool is_by_webhook(const struct kube_answer *answer)
{
    return answer->http == 403 && str_starts_with(answer->message, "admission webhook ");
}

/* Who may not is told so before anything else is looked at. That a pod is there, and a webhook of its own
 * knows no dry runs or has something against it, says nothing of the right. */
static bool is_about_the_pod(const struct kube_answer *answer)
{
    return answer->http == 400 || answer->http == 422 || is_by_webhook(answer);
}

enum prove_verdict judge_right(const struct converge *converge, const struct kube_answer *answer)
{
    bool is_pod = rights[converge->right].resource == KUBE_POD;
    bool is_allowed = answer->outcome == KUBE_REFUSED &&
                      (answer->http == 404 || answer->http == 409 || (is_pod && is_about_the_pod(answer)));
    return is_allowed ? PROVE_WELL : prove_apply(answer);
}
