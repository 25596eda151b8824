/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/openapi.h"

#include "kubesim/definitions.h"
#include "kubesim/schema.h"

static char *group_path(const struct kind *kind)
{
    return *kind->group ? xasprintf("apis/%s/%s", kind->group, kind->version)
                        : xasprintf("api/%s", kind->version);
}

static int answer_index(struct call *call)
{
    cJSON *index = json_new_object();
    cJSON *paths = json_add_object(index, "paths");
    for (size_t i = 0; i < call->sim->kind_count; i++) {
        const struct kind *kind = call->sim->kinds[i];
        CLEANUP_FREE char *path = group_path(kind);
        if (kind->undefined || json_get(paths, path))
            continue;
        /* The number changes whenever anything does: caches of clients never show an old definition. */
        CLEANUP_FREE char *url =
            xasprintf("/openapi/v3/%s?hash=%lld", path, (long long)call->sim->resource_version);
        json_add_str(json_add_object(paths, path), "serverRelativeURL", url);
    }
    answer_tree(call, 200, index);
    return 0;
}

static cJSON *type_of(const struct kind *kind)
{
    cJSON *type = json_new_object();
    json_add_str(type, "group", kind->group);
    json_add_str(type, "kind", kind->name);
    json_add_str(type, "version", kind->version);
    return type;
}

/* What the path of one object can do, as far as clients look: that PATCH takes fieldValidation. */
static void add_path(cJSON *paths, const struct kind *kind)
{
    static const char *const parameters[] = {"dryRun", "fieldManager", "fieldValidation", "force"};
    CLEANUP_FREE char *group = group_path(kind);
    CLEANUP_FREE char *path =
        xasprintf("/%s/%s%s/{name}", group, kind->flags & KIND_NAMESPACED ? "namespaces/{namespace}/" : "",
                  kind->plural);
    cJSON *patch = json_add_object(json_add_object(paths, path), "patch");
    cJSON *list = json_add_array(patch, "parameters");
    for (size_t i = 0; i < ARRAY_SIZE(parameters); i++) {
        cJSON *parameter = json_new_object();
        json_add_str(parameter, "name", parameters[i]);
        json_add_str(parameter, "in", "query");
        json_add_str(json_add_object(parameter, "schema"), "type", "string");
        json_append_item(list, parameter);
    }
    json_add_str(patch, "x-kubernetes-action", "patch");
    json_add_item(patch, "x-kubernetes-group-version-kind", type_of(kind));
}

static void add_builtin(void *context, const char *name, const char *json)
{
    cJSON *schemas = context;
    cJSON *tree = NULL;
    ENSURE(json_parse(json, strlen(json), &tree, NULL) == 0);
    json_add_item(schemas, name, tree);
}

static void add_custom(const struct kubesim *sim, cJSON *schemas, const struct kind *kind)
{
    const cJSON *schema = definition_schema(sim, kind);
    if (!schema)
        return;
    cJSON *copy = json_copy(schema);
    cJSON *properties = json_ensure_object(copy, "properties");
    cJSON *meta = json_new_object();
    json_add_str(meta, "$ref", "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    json_set_item(properties, "metadata", meta);
    cJSON *types = json_new_array();
    json_append_item(types, type_of(kind));
    json_set_item(copy, "x-kubernetes-group-version-kind", types);
    CLEANUP_FREE char *name = xasprintf("%s.%s.%s", kind->group, kind->version, kind->name);
    json_set_item(schemas, name, copy);
}

static int answer_document(struct call *call, const char *wanted)
{
    cJSON *document = json_new_object();
    json_add_str(document, "openapi", "3.0.0");
    cJSON *info = json_add_object(document, "info");
    json_add_str(info, "title", "Kubernetes");
    json_add_str(info, "version", call->sim->git_version);
    cJSON *paths = json_add_object(document, "paths");
    cJSON *schemas = json_add_object(json_add_object(document, "components"), "schemas");
    schema_visit_builtin(add_builtin, schemas);
    for (size_t i = 0; i < call->sim->kind_count; i++) {
        const struct kind *kind = call->sim->kinds[i];
        CLEANUP_FREE char *path = group_path(kind);
        if (kind->undefined || strcmp(path, wanted) != 0)
            continue;
        add_path(paths, kind);
        if (kind->flags & KIND_CUSTOM)
            add_custom(call->sim, schemas, kind);
    }
    if (!paths->child) {
        json_delete(document);
        return refuse(call, 404, "NotFound", "the server could not find the requested resource");
    }
    answer_tree(call, 200, document);
    return 0;
}

int openapi_answer(struct call *call)
{
    const struct path *path = &call->path;
    if (path->segment_count < 2 || strcmp(path->segments[1], "v3") != 0)
        return refuse_not_modelled(call, "OpenAPI v2 (v3 is served)");
    if (path->segment_count == 2)
        return answer_index(call);
    CLEANUP_FREE char *joined = path_join(path);
    return answer_document(call, joined + strlen("/openapi/v3/"));
}
