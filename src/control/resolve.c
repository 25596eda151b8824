/* SPDX-License-Identifier: Apache-2.0 */
#include "control/resolve.h"

#include "kube/object.h"

#include <ctype.h>

const char *step_key_on(const cJSON *object)
{
    return json_path_str(object, "metadata", "annotations", STEP_ANNOTATION, NULL);
}

bool step_is_contained(const cJSON *wanted, const cJSON *object)
{
    if (!wanted)
        return true;
    if (cJSON_IsObject(wanted)) {
        const cJSON *member = NULL;
        cJSON_ArrayForEach (member, wanted) {
            const cJSON *there = json_get(object, member->string);
            /* In a merge patch null means: absent. */
            if (cJSON_IsNull(member) ? there && !cJSON_IsNull(there) : !step_is_contained(member, there))
                return false;
        }
        return cJSON_IsObject(object);
    }
    if (cJSON_IsArray(wanted)) {
        if (!cJSON_IsArray(object) || cJSON_GetArraySize(wanted) != cJSON_GetArraySize(object))
            return false;
        const cJSON *there = object->child;
        for (const cJSON *item = wanted->child; item; item = item->next, there = there->next)
            if (!step_is_contained(item, there))
                return false;
        return true;
    }
    return object && json_equal(wanted, object);
}

bool step_text_names_key(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *at = text; at && (at = strstr(at, key)); at += length)
        if (!isdigit((unsigned char)at[length]) && (at == text || !isxdigit((unsigned char)at[-1])))
            return true;
    return false;
}

static const char *uid_of(const cJSON *object)
{
    return json_path_str(object, "metadata", "uid", NULL);
}

static const char *version_of(const cJSON *object)
{
    return json_path_str(object, "metadata", "resourceVersion", NULL);
}

static bool is_another(const struct step_doubt *doubt, const cJSON *object)
{
    return !object || !str_equal(uid_of(object), doubt->uid);
}

/* The version is still the one that we sent: the step may still arrive. Else it never can. */
static enum step_verdict open_or_absent(const struct step_doubt *doubt, const cJSON *object)
{
    return str_equal(version_of(object), doubt->version) ? STEP_OPEN : STEP_ABSENT;
}

/* The same owner controls it, and where pods are concerned it is of the same revision. */
static bool is_of_our_owner(const struct step_doubt *doubt, const cJSON *object)
{
    if (!doubt->owner || !str_equal(kube_object_controller_uid(object), doubt->owner))
        return false;
    const char *wanted = kube_object_label(doubt->sent, KUBE_REVISION_LABEL);
    return !wanted || str_equal(wanted, kube_object_label(object, KUBE_REVISION_LABEL));
}

static enum step_verdict resolve_create(const struct step_doubt *doubt, const cJSON *object, bool as_wanted)
{
    if (!object)
        return doubt->horizon_passed ? STEP_ABSENT : STEP_OPEN;
    if (str_equal(step_key_on(object), doubt->key))
        return STEP_APPLIED;
    return as_wanted ? STEP_OVERTAKEN : STEP_REJECTED;
}

enum step_verdict step_resolve_create(const struct step_doubt *doubt, const cJSON *object)
{
    return resolve_create(doubt, object, object && is_of_our_owner(doubt, object));
}

/* Claims and revisions: an object with equal content is as good as ours, whoever made it. */
enum step_verdict step_resolve_create_shared(const struct step_doubt *doubt, const cJSON *object)
{
    bool as_wanted = false;
    if (object && doubt->sent)
        as_wanted = step_is_contained(json_get(doubt->sent, "spec"), json_get(object, "spec")) &&
                    step_is_contained(json_get(doubt->sent, "data"), json_get(object, "data"));
    else if (object)
        as_wanted = str_equal(kube_object_controller_uid(object), doubt->owner);
    return resolve_create(doubt, object, as_wanted);
}

/* A StatefulSet that is made again: one that is there under its name is another's, or the old one on its way
 * out (409, "object is being deleted"). Either way whoever wanted it looks again. */
enum step_verdict step_resolve_recreate(const struct step_doubt *doubt, const cJSON *object)
{
    return resolve_create(doubt, object, true);
}

enum step_verdict step_resolve_patch(const struct step_doubt *doubt, const cJSON *object)
{
    if (is_another(doubt, object))
        return STEP_OVERTAKEN;
    if (str_equal(step_key_on(object), doubt->key))
        return STEP_APPLIED;
    return open_or_absent(doubt, object);
}

static const char *storage_of(const cJSON *claim)
{
    return json_path_str(claim, "spec", "resources", "requests", "storage", NULL);
}

/* A claim that asks for as much already, by somebody else's hand, is as wanted. */
enum step_verdict step_resolve_grow(const struct step_doubt *doubt, const cJSON *object)
{
    enum step_verdict verdict = step_resolve_patch(doubt, object);
    bool as_wanted = storage_of(doubt->sent) && str_equal(storage_of(doubt->sent), storage_of(object));
    return verdict == STEP_ABSENT && as_wanted ? STEP_OVERTAKEN : verdict;
}

/* The last write of a re-creation takes the key of the one before off the set, and leaves none. */
enum step_verdict step_resolve_managers(const struct step_doubt *doubt, const cJSON *object)
{
    if (is_another(doubt, object))
        return STEP_OVERTAKEN;
    return step_key_on(object) ? open_or_absent(doubt, object) : STEP_APPLIED;
}

enum step_verdict step_resolve_gate(const struct step_doubt *doubt, const cJSON *object)
{
    if (is_another(doubt, object))
        return STEP_OVERTAKEN;
    const cJSON *condition = NULL;
    cJSON_ArrayForEach (condition, json_path(object, "status", "conditions", NULL)) {
        if (str_equal(json_str(condition, "type"), STEP_GATE_CONDITION) &&
            step_text_names_key(json_str(condition, "message"), doubt->key))
            return STEP_APPLIED;
    }
    return open_or_absent(doubt, object);
}

/* Status carries no key: the value tells. An equal value at the very version that we sent is as good: the
 * patch would change nothing. */
enum step_verdict step_resolve_advance(const struct step_doubt *doubt, const cJSON *object)
{
    if (is_another(doubt, object))
        return STEP_OVERTAKEN;
    const cJSON *wanted = json_get(doubt->sent, "status");
    if (wanted && step_is_contained(wanted, json_get(object, "status")))
        return STEP_APPLIED;
    return open_or_absent(doubt, object);
}

/* The version that it was sent for is still there: it may arrive, or has changed nothing. Another one may be
 * its work: whoever wanted it tries again, and finds that nothing is left to do. */
enum step_verdict step_resolve_apply(const struct step_doubt *doubt, const cJSON *object)
{
    return is_another(doubt, object) ? STEP_OVERTAKEN : open_or_absent(doubt, object);
}

enum step_verdict step_resolve_apply_new(const struct step_doubt *doubt, const cJSON *object)
{
    if (object)
        return STEP_OVERTAKEN;
    return doubt->horizon_passed ? STEP_ABSENT : STEP_OPEN;
}

enum step_verdict step_resolve_delete(const struct step_doubt *doubt, const cJSON *object)
{
    if (is_another(doubt, object))
        return STEP_OVERTAKEN;
    if (json_path_str(object, "metadata", "deletionTimestamp", NULL))
        return STEP_APPLIED;
    return open_or_absent(doubt, object);
}

/* Terminating without the finalizer: the collector has orphaned what it owned and another finalizer holds it,
 * or somebody's plain delete took the finalizer off and what it owned dies with it. The object does not tell:
 * who sent the step looks at what it owned, and nothing is sent again. */
enum step_verdict step_resolve_orphan_delete(const struct step_doubt *doubt, const cJSON *object)
{
    if (is_another(doubt, object))
        return STEP_OVERTAKEN;
    if (json_path_str(object, "metadata", "deletionTimestamp", NULL))
        return kube_object_has_finalizer(object, "orphan") ? STEP_APPLIED : STEP_OPEN;
    return open_or_absent(doubt, object);
}
