/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/decode.h"

#include "base/yaml.h"
#include "kubesim/schema_check.h"

static bool has_media_type(const char *content_type, const char *media_type)
{
    size_t length = content_type ? strcspn(content_type, "; ") : 0;
    return length == strlen(media_type) && strncasecmp(content_type, media_type, length) == 0;
}

int decode_body(struct call *call)
{
    const struct kubesim_request *request = call->request;
    const char *type = request->content_type;
    if (!request->body || request->body_length == 0)
        return refuse_bad_request(call, "the request has no body");
    if (request->body_length > BODY_MAX)
        return refuse(call, 413, "RequestEntityTooLarge", "limit is %d", BODY_MAX);
    if (has_media_type(type, "application/vnd.kubernetes.protobuf") ||
        has_media_type(type, "application/cbor"))
        return refuse(call, 415, "UnsupportedMediaType",
                      "kubesim does not model %s: send application/json or application/yaml", type);
    bool yaml =
        has_media_type(type, "application/yaml") || has_media_type(type, "application/apply-patch+yaml");
    if (call->verb != VERB_PATCH && type && *type && !has_media_type(type, "application/json") && !yaml)
        return refuse(call, 415, "UnsupportedMediaType",
                      "the body of the request was in an unknown format - accepted media types include: "
                      "application/json, application/yaml, application/vnd.kubernetes.protobuf");
    CLEANUP_ERROR struct error *err = NULL;
    int result = json_parse(request->body, request->body_length, &call->body, &err);
    if (result < 0 && yaml) {
        error_free(STEAL(err));
        result = yaml_parse_one(request->body, request->body_length, "body", &call->body, &err);
    }
    if (result < 0)
        return refuse_bad_request(call, "%s: %s",
                                  call->verb == VERB_PATCH ? "error decoding the body"
                                                           : "couldn't get version/kind; json parse error",
                                  error_text(err));
    return 0;
}

static int check_type(struct call *call, const struct kind *kind, cJSON *object)
{
    if (!cJSON_IsObject(object))
        return refuse_bad_request(call, "the body must be an object of kind %s", kind->name);
    CLEANUP_FREE char *expected = kind_api_version(kind);
    const char *name = json_str(object, "kind");
    const char *api_version = json_str(object, "apiVersion");
    if (kind->flags & KIND_CUSTOM && (!name || !api_version))
        return refuse_bad_request(call, "Object '%s' is missing in the body", name ? "apiVersion" : "Kind");
    if (kind->flags & KIND_CUSTOM && strcmp(api_version, expected) != 0)
        return refuse_bad_request(
            call, "the API version in the data (%s) does not match the expected API version (%s)",
            api_version, expected);
    if ((api_version && strcmp(api_version, expected) != 0) || (name && strcmp(name, kind->name) != 0))
        return refuse_bad_request(
            call,
            "%s in version \"%s\" cannot be handled as a %s: no kind \"%s\" is registered for "
            "version \"%s\"",
            name ? name : "", api_version ? api_version : "", kind->name, name ? name : "",
            api_version ? api_version : "");
    json_set_str(object, "kind", kind->name);
    json_set_str(object, "apiVersion", expected);
    return 0;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* fieldValidation: Strict refuses, Warn (the default) warns, Ignore says nothing. */
static int report_unknown(struct call *call, const struct kind *kind, struct unknown_fields *unknown)
{
    if (unknown->count == 0)
        return 0;
    const char *mode = path_parameter(&call->path, "fieldValidation");
    if (str_equal(mode, "Ignore"))
        return 0;
    CLEANUP_BUF struct buf list = BUF_INIT(64 * 1024);
    qsort(unknown->paths, unknown->count, sizeof(unknown->paths[0]), compare_texts);
    for (size_t i = 0; i < unknown->count; i++)
        buf_addf(&list, "%sunknown field \"%s\"", i ? ", " : "", unknown->paths[i]);
    if (str_equal(mode, "Strict"))
        return refuse_bad_request(call,
                                  "%s in version \"%s\" cannot be handled as a %s: strict decoding error: %s",
                                  kind->name, kind->version, kind->name, buf_text(&list));
    str_replace(&call->response->warning, buf_text(&list));
    return 0;
}

static const struct schema *meta_schema(const struct kubesim *sim)
{
    return schema_set_find(sim->schemas, "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
}

/* metadata is decoded by the same type for every kind. */
static int check_meta(struct call *call, const struct kind *kind, const cJSON *meta)
{
    CLEANUP_ERROR struct error *err = NULL;
    if (!meta || cJSON_IsNull(meta))
        return 0;
    int result = cJSON_IsObject(meta) ? schema_check_types(meta_schema(call->sim), meta, NULL, &err)
                                      : error_set(&err, ERROR_INVALID, "metadata is no object");
    if (result < 0)
        return refuse_bad_request(call, "%s in version \"%s\" cannot be handled as a %s: metadata: %s",
                                  kind->name, kind->version, kind->name, error_text(err));
    return 0;
}

static int check_values(struct call *call, const struct kind *kind, const cJSON *object)
{
    CLEANUP_ERROR struct error *err = NULL;
    if (check_meta(call, kind, json_get(object, "metadata")) < 0)
        return -1;
    if (!(kind->flags & KIND_CUSTOM) && schema_check_types(kind->schema, object, NULL, &err) < 0)
        return refuse_bad_request(call, "%s in version \"%s\" cannot be handled as a %s: %s", kind->name,
                                  kind->version, kind->name, error_text(err));
    return 0;
}

static void complete_meta(struct call *call, cJSON *object, struct unknown_fields *unknown)
{
    cJSON *meta = json_get(object, "metadata");
    if (!meta || cJSON_IsNull(meta)) {
        json_set_item(object, "metadata", json_new_object());
        return;
    }
    schema_normalize(meta_schema(call->sim), meta, NULL);
    CLEANUP_UNKNOWN struct unknown_fields found = {0};
    schema_prune(meta_schema(call->sim), meta, NULL, &found);
    for (size_t i = 0; i < found.count && unknown->count < UNKNOWN_FIELDS_MAX; i++)
        unknown->paths[unknown->count++] = xasprintf("metadata.%s", found.paths[i]);
}

/* What was checked; touched: as in schema_check.h. */
static int complete(struct call *call, const struct kind *kind, cJSON *object, const cJSON *touched)
{
    CLEANUP_UNKNOWN struct unknown_fields unknown = {0};
    complete_meta(call, object, &unknown);
    if (!(kind->flags & KIND_CUSTOM))
        schema_normalize(kind->schema, object, touched);
    schema_prune(kind->schema, object, touched, &unknown);
    schema_set_defaults(kind->schema, object, touched);
    if (report_unknown(call, kind, &unknown) < 0)
        return -1;
    if (kind->hooks && kind->hooks->set_defaults)
        kind->hooks->set_defaults(call, object);
    return 0;
}

int decode_finish(struct call *call, const struct kind *kind, cJSON *object)
{
    if (check_type(call, kind, object) < 0 || check_values(call, kind, object) < 0)
        return -1;
    return complete(call, kind, object, NULL);
}

int decode_checked(struct call *call, const struct kind *kind, cJSON *object, const cJSON *touched)
{
    return check_type(call, kind, object) < 0 ? -1 : complete(call, kind, object, touched);
}

int decode_object(struct call *call, const struct kind *kind)
{
    int result = decode_body(call);
    return result < 0 ? result : decode_finish(call, kind, call->body);
}

/* --- metadata
 * ------------------------------------------------------------------------------------------------- */

static bool is_lower_alphanumeric(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
}

/* RFC 1123 label or subdomain. */
static bool is_dns_name(const char *name, size_t length, bool dots, size_t length_max)
{
    if (length == 0 || length > length_max || !is_lower_alphanumeric(name[0]) ||
        !is_lower_alphanumeric(name[length - 1]))
        return false;
    for (size_t i = 0; i < length; i++) {
        bool after_dot = dots && i > 0 && name[i - 1] == '.';
        if (after_dot && !is_lower_alphanumeric(name[i]))
            return false;
        bool before_dot = dots && name[i] == '.' && name[i - 1] == '-';
        if (before_dot || !(is_lower_alphanumeric(name[i]) || name[i] == '-' || (dots && name[i] == '.')))
            return false;
    }
    return true;
}

static bool is_qualified_part(const char *text, size_t length)
{
    if (length == 0 || length > 63)
        return false;
    for (size_t i = 0; i < length; i++) {
        char lower = (char)(text[i] | 0x20);
        bool alphanumeric = (lower >= 'a' && lower <= 'z') || (text[i] >= '0' && text[i] <= '9');
        bool inner = i > 0 && i + 1 < length && (text[i] == '-' || text[i] == '_' || text[i] == '.');
        if (!alphanumeric && !inner)
            return false;
    }
    return true;
}

static bool is_qualified_name(const char *text)
{
    const char *slash = strchr(text, '/');
    if (slash && !is_dns_name(text, (size_t)(slash - text), true, 253))
        return false;
    const char *part = slash ? slash + 1 : text;
    return is_qualified_part(part, strlen(part));
}

static void validate_labels(const cJSON *labels, struct causes *causes)
{
    const cJSON *label;
    cJSON_ArrayForEach (label, labels) {
        if (!is_qualified_name(label->string)) {
            CLEANUP_FREE char *shown = xasprintf("\"%s\"", label->string);
            causes_add(
                causes, CAUSE_INVALID, "metadata.labels", shown,
                "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
                "with "
                "an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
                "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')");
        }
        if (*label->valuestring && !is_qualified_part(label->valuestring, strlen(label->valuestring)))
            causes_add_node(
                causes, CAUSE_INVALID, "metadata.labels", label,
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
                "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value', "
                " "
                "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')");
    }
}

static void validate_owners(const cJSON *owners, struct causes *causes)
{
    const char *const needed[] = {"apiVersion", "kind", "name", "uid"};
    int index = 0;
    int controllers = 0;
    const cJSON *owner;
    cJSON_ArrayForEach (owner, owners) {
        for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
            const char *value = json_str(owner, needed[i]);
            if (value && *value)
                continue;
            CLEANUP_FREE char *field = xasprintf("metadata.ownerReferences[%d].%s", index, needed[i]);
            causes_add(causes, CAUSE_INVALID, field, "\"\"", "must not be empty");
        }
        controllers += json_bool_or(owner, "controller", false);
        index++;
    }
    if (controllers > 1)
        causes_add_node(causes, CAUSE_INVALID, "metadata.ownerReferences", owners,
                        "Only one reference can have Controller set to true");
}

static void validate_unchanged(const cJSON *object, const cJSON *old, const char *key, struct causes *causes)
{
    const cJSON *value = json_path(object, "metadata", key, NULL);
    if (json_equal(value, json_path(old, "metadata", key, NULL)))
        return;
    CLEANUP_FREE char *field = xasprintf("metadata.%s", key);
    causes_add_node(causes, CAUSE_INVALID, field, value, "field is immutable");
}

static void validate_new_finalizers(const cJSON *object, const cJSON *old, struct causes *causes)
{
    if (!meta_is_deleting(old))
        return;
    CLEANUP_BUF struct buf added = BUF_INIT(16 * 1024);
    const cJSON *finalizer;
    cJSON_ArrayForEach (finalizer, json_path(object, "metadata", "finalizers", NULL))
        if (!meta_has_finalizer(old, finalizer->valuestring))
            buf_addf(&added, "%s\"%s\"", added.length ? ", " : "", finalizer->valuestring);
    if (added.length)
        causes_add(causes, CAUSE_FORBIDDEN, "metadata.finalizers", NULL,
                   "no new finalizers can be added if the object is being deleted, found new finalizers "
                   "[]string{%s}",
                   buf_text(&added));
}

static void validate_name(const struct kind *kind, const char *name, struct causes *causes)
{
    bool role = str_equal(kind->group, "rbac.authorization.k8s.io");
    bool label = strcmp(kind->plural, "services") == 0 || strcmp(kind->plural, "namespaces") == 0;
    if (role)
        return;
    dns_name_validate(name, !label, "metadata.name", causes);
}

void dns_name_validate(const char *name, bool dots, const char *field, struct causes *causes)
{
    if (is_dns_name(name, strlen(name), dots, dots ? 253 : 63))
        return;
    CLEANUP_FREE char *shown = xasprintf("\"%s\"", name);
    causes_add(
        causes, CAUSE_INVALID, field, shown, "%s",
        !dots ? "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
                "must "
                "start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for "
                "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
              : "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
                "'.', "
                "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
                "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')");
}

void meta_validate(const struct kind *kind, const cJSON *object, const cJSON *old, struct causes *causes)
{
    const cJSON *meta = json_get(object, "metadata");
    if (!old)
        validate_name(kind, json_str(meta, "name"), causes);
    validate_labels(json_get(meta, "labels"), causes);
    validate_owners(json_get(meta, "ownerReferences"), causes);
    const cJSON *finalizer;
    cJSON_ArrayForEach (finalizer, json_get(meta, "finalizers"))
        if (!is_qualified_name(finalizer->valuestring))
            causes_add_node(causes, CAUSE_INVALID, "metadata.finalizers", finalizer,
                            "name part must be valid");
    if (!old)
        return;
    static const char *const fixed[] = {
        "name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"};
    for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
        validate_unchanged(object, old, fixed[i], causes);
    validate_new_finalizers(object, old, causes);
}
