/* SPDX-License-Identifier: Apache-2.0
 *
 * CustomResourceDefinitions: checked, established and served at once. */
#include "kubesim/definitions.h"

#include "kubesim/kinds.h"
#include "kubesim/schema.h"
#include "kubesim/table.h"
#include "kubesim/watch.h"

static const char *const custom_fields[] = {"metadata.name", "metadata.namespace", NULL};

static char *lower_case(const char *text)
{
    char *copy = xstrdup(text);
    for (char *at = copy; *at; at++)
        if (*at >= 'A' && *at <= 'Z')
            *at = (char)(*at + 'a' - 'A');
    return copy;
}

static void set_defaults(struct call *call, cJSON *object)
{
    (void)call;
    cJSON *spec = json_ensure_object(object, "spec");
    cJSON *names = json_ensure_object(spec, "names");
    const char *kind = json_str(names, "kind");
    if (kind && !json_get(names, "singular")) {
        CLEANUP_FREE char *singular = lower_case(kind);
        json_add_str(names, "singular", singular);
    }
    if (kind && !json_get(names, "listKind")) {
        CLEANUP_FREE char *list = xasprintf("%sList", kind);
        json_add_str(names, "listKind", list);
    }
    if (!json_get(spec, "conversion"))
        json_add_str(json_add_object(spec, "conversion"), "strategy", "None");
}

/* The version that is served; NULL when there is none. */
static const cJSON *served_version(const cJSON *definition)
{
    const cJSON *version;
    cJSON_ArrayForEach (version, json_path(definition, "spec", "versions", NULL))
        if (json_bool_or(version, "served", false))
            return version;
    return NULL;
}

static int check_what_is_left_out(struct call *call, const cJSON *object)
{
    int served = 0;
    const cJSON *version;
    cJSON_ArrayForEach (version, json_path(object, "spec", "versions", NULL)) {
        served += json_bool_or(version, "served", false);
        if (cJSON_GetArraySize(json_get(version, "selectableFields")) > 0)
            return refuse_not_modelled(call, "selectableFields of a CustomResourceDefinition");
    }
    if (served > 1)
        return refuse_not_modelled(call, "a CustomResourceDefinition with more than one served version");
    if (!str_equal(json_path_str(object, "spec", "conversion", "strategy", NULL), "None"))
        return refuse_not_modelled(call, "conversion webhooks");
    return 0;
}

/* Everything that serving the kind will need, tried once: what kubesim cannot evaluate is refused here and
 * now. */
static int admit(struct call *call, cJSON *object, const cJSON *old)
{
    (void)old;
    if (str_equal(call->subresource, "status"))
        return 0;
    if (check_what_is_left_out(call, object) < 0)
        return -1;
    const cJSON *version = served_version(object);
    const cJSON *tree = json_path(version, "schema", "openAPIV3Schema", NULL);
    CLEANUP_ERROR struct error *err = NULL;
    struct schema_set *set = NULL;
    const struct schema *root = NULL;
    struct table_column *columns = NULL;
    size_t count = 0;
    int result = tree ? schema_set_custom(tree, NULL, &set, &root, &err) : 0;
    if (result == 0)
        result = table_columns_from_definition(json_get(version, "additionalPrinterColumns"), &columns,
                                               &count, &err);
    table_columns_free(columns, count);
    schema_set_free(set);
    if (result == -ERROR_UNSUPPORTED)
        return refuse_not_modelled(call, "%s", error_text(err));
    if (result < 0) {
        CLEANUP_CAUSES struct causes causes = {0};
        causes_add(&causes, CAUSE_INVALID, "spec.versions[0].schema", NULL, "%s", error_text(err));
        return refuse_invalid(call, call->kind, meta_str(object, "name"), &causes);
    }
    return 0;
}

static void validate(struct call *call, const cJSON *object, const cJSON *old, struct causes *causes)
{
    (void)call;
    const char *group = json_path_str(object, "spec", "group", NULL);
    const char *plural = json_path_str(object, "spec", "names", "plural", NULL);
    const char *scope = json_path_str(object, "spec", "scope", NULL);
    const cJSON *version = served_version(object);
    static const char *const needed[] = {"plural", "kind"};
    for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
        CLEANUP_FREE char *field = xasprintf("spec.names.%s", needed[i]);
        if (!json_path_str(object, "spec", "names", needed[i], NULL))
            causes_add(causes, CAUSE_REQUIRED, field, NULL, "%s", "");
    }
    if (!group)
        causes_add(causes, CAUSE_REQUIRED, "spec.group", NULL, "%s", "");
    if (!str_equal(scope, "Namespaced") && !str_equal(scope, "Cluster"))
        causes_add_node(causes, CAUSE_NOT_SUPPORTED, "spec.scope", json_path(object, "spec", "scope", NULL),
                        "supported values: \"Cluster\", \"Namespaced\"");
    CLEANUP_FREE char *expected = xasprintf("%s.%s", plural ? plural : "", group ? group : "");
    if (!str_equal(meta_str(object, "name"), expected))
        causes_add_node(causes, CAUSE_INVALID, "metadata.name", json_path(object, "metadata", "name", NULL),
                        "must be spec.names.plural+\".\"+spec.group");
    if (!version)
        causes_add(causes, CAUSE_INVALID, "spec.versions", "[]",
                   "must have exactly one version marked as storage version");
    else if (!json_path(version, "schema", "openAPIV3Schema", NULL))
        causes_add(causes, CAUSE_REQUIRED, "spec.versions[0].schema.openAPIV3Schema", NULL,
                   "schemas are required");
    static const char *const fixed[] = {"group", "scope"};
    for (size_t i = 0; old && i < ARRAY_SIZE(fixed); i++) {
        CLEANUP_FREE char *field = xasprintf("spec.%s", fixed[i]);
        const cJSON *value = json_path(object, "spec", fixed[i], NULL);
        if (!json_equal(value, json_path(old, "spec", fixed[i], NULL)))
            causes_add_node(causes, CAUSE_INVALID, field, value, "field is immutable");
    }
}

static void add_condition(const struct kubesim *sim, cJSON *conditions, const char *type, const char *reason,
                          const char *message)
{
    char now[TIME_TEXT_SIZE];
    sim_time_text(sim, now);
    cJSON *condition = json_new_object();
    json_add_str(condition, "lastTransitionTime", now);
    json_add_str(condition, "message", message);
    json_add_str(condition, "reason", reason);
    json_add_str(condition, "status", "True");
    json_add_str(condition, "type", type);
    json_append_item(conditions, condition);
}

static void prepare_create(struct call *call, cJSON *object)
{
    cJSON *status = json_new_object();
    const cJSON *names = json_path(object, "spec", "names", NULL);
    if (names)
        json_add_item(status, "acceptedNames", json_copy(names));
    cJSON *conditions = json_add_array(status, "conditions");
    add_condition(call->sim, conditions, "NamesAccepted", "NoConflicts", "no conflicts found");
    add_condition(call->sim, conditions, "Established", "InitialNamesAccepted",
                  "the initial names have been accepted");
    const char *version = json_str(served_version(object), "name");
    json_append_str(json_add_array(status, "storedVersions"), version ? version : "");
    json_set_item(object, "status", status);
}

static char **copy_names(const cJSON *list)
{
    int count = cJSON_GetArraySize(list);
    if (count == 0)
        return NULL;
    char **names = xcalloc((size_t)count + 1, sizeof(names[0]));
    size_t used = 0;
    const cJSON *name;
    cJSON_ArrayForEach (name, list)
        if (cJSON_IsString(name))
            names[used++] = xstrdup(name->valuestring);
    return names;
}

static void use_columns(struct kind *kind, const cJSON *version)
{
    const cJSON *list = json_get(version, "additionalPrinterColumns");
    CLEANUP_JSON cJSON *age = NULL;
    if (cJSON_GetArraySize(list) == 0) {
        age = json_new_array();
        cJSON *column = json_new_object();
        json_add_str(column, "name", "Age");
        json_add_str(column, "type", "date");
        json_add_str(column, "jsonPath", ".metadata.creationTimestamp");
        json_append_item(age, column);
        list = age;
    }
    ENSURE(table_columns_from_definition(list, &kind->columns, &kind->column_count, NULL) == 0);
}

static void use_subresources(struct kind *kind, const cJSON *version)
{
    const cJSON *subresources = json_get(version, "subresources");
    const cJSON *scale = json_get(subresources, "scale");
    if (json_get(subresources, "status"))
        kind->flags |= KIND_STATUS;
    if (!scale)
        return;
    kind->flags |= KIND_SCALE;
    kind->scale_spec_path = xstrdup_or_null(json_str(scale, "specReplicasPath"));
    kind->scale_status_path = xstrdup_or_null(json_str(scale, "statusReplicasPath"));
    kind->scale_selector_path = xstrdup_or_null(json_str(scale, "labelSelectorPath"));
}

static struct kind *make_kind(const struct kubesim *sim, const cJSON *definition)
{
    const cJSON *spec = json_get(definition, "spec");
    const cJSON *names = json_get(spec, "names");
    const cJSON *version = served_version(definition);
    struct kind *kind = xcalloc(1, sizeof(*kind));
    kind->group = xstrdup(json_str(spec, "group"));
    kind->version = xstrdup(json_str(version, "name"));
    kind->name = xstrdup(json_str(names, "kind"));
    kind->plural = xstrdup(json_str(names, "plural"));
    kind->singular = xstrdup(json_str(names, "singular"));
    kind->list_name = xstrdup(json_str(names, "listKind"));
    kind->short_names = copy_names(json_get(names, "shortNames"));
    kind->categories = copy_names(json_get(names, "categories"));
    kind->fields = custom_fields;
    kind->flags = KIND_CUSTOM | KIND_GENERATION;
    if (str_equal(json_str(spec, "scope"), "Namespaced"))
        kind->flags |= KIND_NAMESPACED;
    const struct schema *meta =
        schema_set_find(sim->schemas, "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    ENSURE(schema_set_custom(json_path(version, "schema", "openAPIV3Schema", NULL), meta, &kind->own_schemas,
                             &kind->schema, NULL) == 0);
    use_subresources(kind, version);
    use_columns(kind, version);
    return kind;
}

static void remove_objects(struct kubesim *sim, struct kind *kind)
{
    while (kind->object_count > 0) {
        struct object *object = kind->objects[kind->object_count - 1];
        store_remove(sim, kind, object, json_copy(object_tree(object)));
    }
    watches_end_kind(sim, kind);
}

/* Takes over what a changed definition says; objects, history and watches keep their kind. */
static void replace_kind(struct kind *kind, struct kind *fresh)
{
    struct kind old = *kind;
    fresh->objects = old.objects;
    fresh->object_count = old.object_count;
    fresh->object_room = old.object_room;
    *kind = *fresh;
    *fresh = old;
    fresh->objects = NULL;
    fresh->object_count = fresh->object_room = 0;
    kind_free(fresh);
}

static void committed(struct kubesim *sim, const cJSON *object, bool removed)
{
    const char *group = json_path_str(object, "spec", "group", NULL);
    const char *plural = json_path_str(object, "spec", "names", "plural", NULL);
    struct kind *kind = kind_find(sim, group, plural);
    if (removed) {
        if (kind) {
            remove_objects(sim, kind);
            kind->undefined = true;
        }
        return;
    }
    struct kind *fresh = make_kind(sim, object);
    if (kind)
        replace_kind(kind, fresh);
    else
        kind_add(sim, fresh);
}

const struct kind_hooks definition_hooks = {.set_defaults = set_defaults,
                                            .admit = admit,
                                            .prepare_create = prepare_create,
                                            .validate = validate,
                                            .committed = committed};

const cJSON *definition_schema(const struct kubesim *sim, const struct kind *kind)
{
    CLEANUP_FREE char *name = xasprintf("%s.%s", kind->plural, kind->group);
    const struct kind *definitions = kind_find(sim, "apiextensions.k8s.io", "customresourcedefinitions");
    const struct object *object = store_find(definitions, NULL, name);
    return object ? json_path(served_version(object_tree(object)), "schema", "openAPIV3Schema", NULL) : NULL;
}
