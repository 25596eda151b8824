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

static cJSON *delete_body(const struct step_request *request)
{
    cJSON *body = request->body ? json_copy(request->body) : json_new_object();
    json_set_str(body, "apiVersion", "v1");
    json_set_str(body, "kind", "DeleteOptions");
    cJSON *preconditions = json_ensure_object(body, "preconditions");
    if (PLANT("deletes-without-grace"))
        json_add_int64(body, "gracePeriodSeconds", 0);
    json_set_str(preconditions, "uid", request->uid);
    json_set_str(preconditions, "resourceVersion", request->version);
    return body;
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
    else if (is_method(request->kind, "PATCH"))
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
    if (is_method(kind, "PATCH"))
        return check_pair(json_get(body, "metadata"), "a patch", err);
    if (is_method(kind, "DELETE")) {
        if (!str_equal(json_str(body, "kind"), "DeleteOptions"))
            return error_set(err, ERROR_INVALID, "a delete without DeleteOptions does not leave");
        return check_pair(json_get(body, "preconditions"), "a delete", err);
    }
    ENSURE(is_method(kind, "POST"));
    return check_create(body, name, err);
}
