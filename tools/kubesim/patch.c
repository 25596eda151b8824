/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/patch.h"

#include "kubesim/apply.h"
#include "kubesim/decode.h"
#include "kubesim/schema_check.h"

enum patch_type { PATCH_JSON, PATCH_MERGE, PATCH_STRATEGIC, PATCH_APPLY };

static int patch_type_of(struct call *call, enum patch_type *ret)
{
    static const struct {
        const char *name;
        enum patch_type type;
    } types[] = {{"application/json-patch+json", PATCH_JSON},
                 {"application/merge-patch+json", PATCH_MERGE},
                 {"application/strategic-merge-patch+json", PATCH_STRATEGIC},
                 {"application/apply-patch+yaml", PATCH_APPLY}};
    const char *content_type = call->request->content_type ? call->request->content_type : "";
    size_t length = strcspn(content_type, "; ");
    bool custom = call->kind->flags & KIND_CUSTOM;
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        if (strlen(types[i].name) != length || strncasecmp(types[i].name, content_type, length) != 0)
            continue;
        if (custom && types[i].type == PATCH_STRATEGIC)
            break;
        *ret = types[i].type;
        return 0;
    }
    refuse(call, 415, "UnsupportedMediaType", "%s",
           custom ? "the body of the request was in an unknown format - accepted media types include: "
                    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
                  : "415: Unsupported Media Type");
    refusal_set_kind(call, NULL);
    return -1;
}

static int apply_patch(struct call *call, enum patch_type type, cJSON **target)
{
    CLEANUP_ERROR struct error *err = NULL;
    const cJSON *patch = call->body;
    if (type != PATCH_JSON && !cJSON_IsObject(patch))
        return refuse_bad_request(call,
                                  "error decoding patch: json: cannot unmarshal array into Go value of type "
                                  "map[string]interface {}");
    int result = 0;
    if (type == PATCH_MERGE)
        patch_merge(*target, patch);
    else if (type == PATCH_STRATEGIC)
        result = patch_strategic(call->kind->schema, *target, patch, &err);
    else
        result = patch_json(target, patch, &err);
    if (result == -ERROR_REFUSED) {
        /* Not to be told from a bug: the real answer has no details either. */
        refuse(call, 422, "Invalid", "the server rejected our request due to an error in our request");
        refusal_set_kind(call, NULL);
        return -1;
    }
    if (result < 0 && type == PATCH_STRATEGIC)
        return refuse(call, 500, "", "%s", error_text(err));
    if (result < 0)
        return refuse_bad_request(call, "%s", error_text(err));
    if (!cJSON_IsObject(*target))
        return refuse_bad_request(call, "the patched document is no object");
    return 0;
}

/* What of the root a patch may have changed, as in schema_check.h: only what it names. The directives of a
 * strategic patch, and the paths of a JSON patch, name more than their keys say. */
static const cJSON *touched_by(enum patch_type type, const cJSON *patch)
{
    const cJSON *member;
    cJSON_ArrayForEach (member, patch)
        if (type == PATCH_JSON || member->string[0] == '$')
            return NULL;
    return patch;
}

/* A patch whose result does not decode is a 422 about the patch, where a body would be a 400. */
static int decode_builtin(struct call *call, cJSON *patched, const cJSON *touched)
{
    CLEANUP_ERROR struct error *err = NULL;
    CLEANUP_CAUSES struct causes causes = {0};
    const struct schema *schema = call->kind->schema;
    if (schema_check_types(schema, patched, touched, &err) == 0 &&
        schema_check_types(schema_member(schema, "metadata"), json_get(patched, "metadata"), NULL, &err) == 0)
        return decode_checked(call, call->kind, patched, touched);
    causes_add_node(&causes, CAUSE_INVALID, "patch", call->body, "%s", error_text(err));
    return refuse_invalid(call, &(struct kind){.group = (char *)"", .name = (char *)""}, "", &causes);
}

/* The schema of a custom kind may be another one than when the object was stored. */
static int decode_patched(struct call *call, enum patch_type type, cJSON *patched)
{
    return call->kind->flags & KIND_CUSTOM ? decode_finish(call, call->kind, patched)
                                           : decode_builtin(call, patched, touched_by(type, call->body));
}

int write_patch(struct call *call)
{
    enum patch_type type = PATCH_MERGE;
    if (patch_type_of(call, &type) < 0 || decode_body(call) < 0)
        return -1;
    if (type == PATCH_APPLY)
        return write_apply(call);
    if (path_parameter(&call->path, "force"))
        return refuse_options(call, "PatchOptions", "force", CAUSE_FORBIDDEN, NULL,
                              "may not be specified for non-apply patch");
    struct object *old = store_find(call->kind, call->namespace, call->name);
    if (!old)
        return refuse_not_found(call, call->kind, call->name);
    CLEANUP_JSON cJSON *patched = json_copy(object_tree(old));
    if (apply_patch(call, type, &patched) < 0 || decode_patched(call, type, patched) < 0)
        return -1;
    struct version *version = NULL;
    if (update_object(call, call->kind, old, STEAL(patched), &version) < 0)
        return -1;
    answer_version(call, 200, call->kind, version);
    return 0;
}
