/* SPDX-License-Identifier: Apache-2.0 */
#include "control/preconditions.h"

#include "base/plant.h"

bool preconditions_version_is_real(const char *version)
{
    return version && *version && strcmp(version, "0") != 0;
}

static bool is_method(enum step_kind kind, const char *method)
{
    return strcmp(step_kind_info(kind)->method, method) == 0;
}

static cJSON *delete_options(cJSON *body, const char *uid, const char *version)
{
    json_set_str(body, "apiVersion", "v1");
    json_set_str(body, "kind", "DeleteOptions");
    cJSON *preconditions = json_ensure_object(body, "preconditions");
    if (PLANT("deletes-without-grace"))
        json_add_int64(body, "gracePeriodSeconds", 0);
    json_set_str(preconditions, "uid", uid);
    json_set_str(preconditions, "resourceVersion", version);
    return body;
}

cJSON *preconditions_orphan_delete(const char *uid, const char *version, bool dry_run)
{
    cJSON *body = delete_options(json_new_object(), uid, version);
    json_set_str(body, "propagationPolicy", "Orphan");
    if (dry_run)
        json_append_str(json_add_array(body, "dryRun"), "All");
    return body;
}

static cJSON *delete_body(const struct step_request *request)
{
    if (request->kind == STEP_ORPHAN_DELETE) {
        PRE(request->body == NULL);
        return preconditions_orphan_delete(request->uid, request->version, false);
    }
    return delete_options(request->body ? json_copy(request->body) : json_new_object(), request->uid,
                          request->version);
}

static cJSON *patch_body(const struct step_request *request)
{
    cJSON *body = json_copy(request->body);
    cJSON *metadata = json_ensure_object(body, "metadata");
    json_set_str(metadata, "uid", request->uid);
    json_set_str(metadata, "resourceVersion", request->version);
    return body;
}

char *preconditions_make_bytes(const struct step_request *request, const char *key)
{
    PRE(is_method(request->kind, "DELETE") || cJSON_IsObject(request->body));
    CLEANUP_JSON cJSON *body = NULL;
    if (is_method(request->kind, "DELETE"))
        body = delete_body(request);
    else if (!step_creates(request->kind))
        body = patch_body(request);
    else
        body = json_copy(request->body);
    step_kind_info(request->kind)->stamp(body, key);
    return json_print(body);
}

static int check_pair(const cJSON *holder, const char *what, struct error **err)
{
    const char *uid = json_str(holder, "uid");
    if (!uid || !*uid)
        return error_set(err, ERROR_INVALID, "%s without a uid does not leave", what);
    if (!preconditions_version_is_real(json_str(holder, "resourceVersion")))
        return error_set(err, ERROR_INVALID, "%s without a resourceVersion does not leave", what);
    return 0;
}

/* Every member is known: a misspelt one would be passed over in silence, and what it owns would die. */
int preconditions_check_orphan_delete(const cJSON *body, bool dry_run, struct error **err)
{
    static const char *const members[] = {"apiVersion", "kind", "preconditions", "propagationPolicy",
                                          "dryRun"};
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, body) {
        size_t i = 0;
        while (i < ARRAY_SIZE(members) && strcmp(members[i], member->string) != 0)
            i++;
        if (i == ARRAY_SIZE(members))
            return error_set(err, ERROR_INVALID, "an orphan delete with %s does not leave", member->string);
    }
    const cJSON *dry = json_get(body, "dryRun");
    bool is_dry = cJSON_GetArraySize(dry) == 1 && cJSON_IsString(dry->child) &&
                  strcmp(dry->child->valuestring, "All") == 0;
    if (dry_run ? !is_dry : dry != NULL)
        return error_set(err, ERROR_INVALID, "an orphan delete says in its body whether it is a dry run");
    if (!str_equal(json_str(body, "propagationPolicy"), "Orphan"))
        return error_set(err, ERROR_INVALID,
                         "an orphan delete without propagationPolicy Orphan does not leave");
    if (!str_equal(json_str(body, "kind"), "DeleteOptions"))
        return error_set(err, ERROR_INVALID, "a delete without DeleteOptions does not leave");
    return check_pair(json_get(body, "preconditions"), "a delete", err);
}

static int check_create(const cJSON *body, const char *name, struct error **err)
{
    const cJSON *metadata = json_get(body, "metadata");
    if (!str_equal(json_str(metadata, "name"), name))
        return error_set(err, ERROR_INVALID, "a create whose name is not fixed does not leave");
    if (json_get(metadata, "generateName") || json_get(metadata, "resourceVersion") ||
        json_get(metadata, "uid"))
        return error_set(err, ERROR_INVALID,
                         "a create with generateName, uid or resourceVersion does not leave");
    return 0;
}

int preconditions_check(enum step_kind kind, const char *name, const char *bytes, size_t length,
                        struct error **err)
{
    CLEANUP_JSON cJSON *body = NULL;
    int result = json_parse(bytes, length, &body, err);
    if (result < 0)
        return result;
    if (step_creates(kind))
        return check_create(body, name, err);
    if (is_method(kind, "PATCH"))
        return check_pair(json_get(body, "metadata"), "a patch", err);
    if (kind == STEP_ORPHAN_DELETE)
        return preconditions_check_orphan_delete(body, false, err);
    ENSURE(is_method(kind, "DELETE"));
    if (!str_equal(json_str(body, "kind"), "DeleteOptions"))
        return error_set(err, ERROR_INVALID, "a delete without DeleteOptions does not leave");
    return check_pair(json_get(body, "preconditions"), "a delete", err);
}
