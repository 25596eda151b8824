/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/model.h"

void answer_text(struct call *call, int http, const char *content_type, char *text, size_t length)
{
    struct kubesim_response *response = call->response;
    free(response->body);
    response->status = http;
    response->content_type = content_type;
    response->body = text;
    response->body_length = length;
}

void answer_tree(struct call *call, int http, cJSON *tree)
{
    char *text = json_print(tree);
    json_delete(tree);
    answer_text(call, http, "application/json", text, strlen(text));
}

char *kind_api_version(const struct kind *kind)
{
    return *kind->group ? xasprintf("%s/%s", kind->group, kind->version) : xstrdup(kind->version);
}

char *kind_qualified_resource(const struct kind *kind)
{
    return *kind->group ? xasprintf("%s.%s", kind->plural, kind->group) : xstrdup(kind->plural);
}

char *kind_qualified_name(const struct kind *kind)
{
    return *kind->group ? xasprintf("%s.%s", kind->name, kind->group) : xstrdup(kind->name);
}

static cJSON *make_status(struct call *call, int http, const char *reason, const char *message)
{
    cJSON *status = json_new_object();
    json_add_str(status, "kind", "Status");
    json_add_str(status, "apiVersion", "v1");
    json_add_object(status, "metadata");
    json_add_str(status, "status", "Failure");
    json_add_str(status, "message", message);
    if (*reason)
        json_add_str(status, "reason", reason);
    json_add_int64(status, "code", http);
    str_replace(&call->problem, message);
    return status;
}

static void add_details(cJSON *status, const char *name, const char *group, const char *kind)
{
    cJSON *details = json_new_object();
    if (name && *name)
        json_add_str(details, "name", name);
    if (group && *group)
        json_add_str(details, "group", group);
    if (kind && *kind)
        json_add_str(details, "kind", kind);
    cJSON *code = cJSON_DetachItemFromObjectCaseSensitive(status, "code");
    json_set_item(status, "details", details);
    json_add_item(status, "code", code);
}

int refuse(struct call *call, int http, const char *reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *message = xvasprintf(format, args);
    va_end(args);
    answer_tree(call, http, make_status(call, http, reason, message));
    return -1;
}

static int refuse_with_details(struct call *call, const struct kind *kind, const char *name, int http,
                               const char *reason, const char *message)
{
    cJSON *status = make_status(call, http, reason, message);
    add_details(status, name, kind->group, kind->plural);
    answer_tree(call, http, status);
    return -1;
}

int refuse_object(struct call *call, const struct kind *kind, const char *name, int http, const char *reason,
                  const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *message = xvasprintf(format, args);
    va_end(args);
    return refuse_with_details(call, kind, name, http, reason, message);
}

int refuse_options(struct call *call, const char *kind, const char *field, enum cause_type type,
                   const char *value, const char *detail)
{
    CLEANUP_CAUSES struct causes causes = {0};
    causes_add(&causes, type, field, value, "%s", detail);
    struct kind options = {.group = (char *)"meta.k8s.io", .name = (char *)kind};
    return refuse_invalid(call, &options, "", &causes);
}

int refuse_bad_request(struct call *call, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *message = xvasprintf(format, args);
    va_end(args);
    return refuse(call, 400, "BadRequest", "%s", message);
}

int refuse_unknown_path(struct call *call)
{
    static const char text[] = "404 page not found\n";
    str_replace(&call->problem, "404 page not found");
    answer_text(call, 404, "text/plain; charset=utf-8", xstrdup(text), sizeof(text) - 1);
    return -1;
}

int refuse_not_modelled(struct call *call, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *message = xvasprintf(format, args);
    va_end(args);
    return refuse(call, 501, "NotImplemented", "kubesim does not model this: %s", message);
}

int refuse_not_found(struct call *call, const struct kind *kind, const char *name)
{
    CLEANUP_FREE char *resource = kind_qualified_resource(kind);
    return refuse_object(call, kind, name, 404, "NotFound", "%s \"%s\" not found", resource, name);
}

int refuse_conflict(struct call *call, const struct kind *kind, const char *name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *message = xvasprintf(format, args);
    va_end(args);
    CLEANUP_FREE char *resource = kind_qualified_resource(kind);
    return refuse_object(call, kind, name, 409, "Conflict", "Operation cannot be fulfilled on %s \"%s\": %s",
                         resource, name, message);
}

/* The Status of the answer, to be changed and given back with answer_tree(). */
static cJSON *take_status(struct call *call)
{
    cJSON *status = NULL;
    ENSURE(json_parse(call->response->body, call->response->body_length, &status, NULL) == 0);
    if (!json_get(status, "details"))
        add_details(status, NULL, NULL, NULL);
    return status;
}

void refusal_set_kind(struct call *call, const char *kind)
{
    cJSON *status = take_status(call);
    if (kind)
        json_set_str(json_get(status, "details"), "kind", kind);
    answer_tree(call, call->response->status, status);
}

void refusal_set_retry(struct call *call, int retry_after_s)
{
    cJSON *status = take_status(call);
    json_set_item(json_get(status, "details"), "retryAfterSeconds", json_new_int64(retry_after_s));
    answer_tree(call, call->response->status, status);
    call->response->retry_after_s = retry_after_s;
}

void refusal_add_cause(struct call *call, const char *reason, const char *message, const char *field)
{
    cJSON *status = take_status(call);
    cJSON *details = json_get(status, "details");
    cJSON *list = json_get(details, "causes");
    if (!list)
        list = json_add_array(details, "causes");
    cJSON *cause = json_new_object();
    json_add_str(cause, "reason", reason);
    json_add_str(cause, "message", message);
    if (field)
        json_add_str(cause, "field", field);
    json_append_item(list, cause);
    answer_tree(call, call->response->status, status);
}

static const char *cause_reason(enum cause_type type)
{
    switch (type) {
    case CAUSE_INVALID:
        return "FieldValueInvalid";
    case CAUSE_REQUIRED:
        return "FieldValueRequired";
    case CAUSE_FORBIDDEN:
        return "FieldValueForbidden";
    case CAUSE_NOT_SUPPORTED:
        return "FieldValueNotSupported";
    case CAUSE_DUPLICATE:
        return "FieldValueDuplicate";
    case CAUSE_TYPE_INVALID:
        return "FieldValueTypeInvalid";
    case CAUSE_TOO_LONG:
        return "FieldValueTooLong";
    case CAUSE_TOO_MANY:
        return "FieldValueTooMany";
    case CAUSE_NOT_FOUND:
        return "FieldValueNotFound";
    }
    UNREACHABLE();
}

static const char *cause_word(enum cause_type type)
{
    switch (type) {
    case CAUSE_REQUIRED:
        return "Required value";
    case CAUSE_FORBIDDEN:
        return "Forbidden";
    case CAUSE_NOT_SUPPORTED:
        return "Unsupported value";
    case CAUSE_DUPLICATE:
        return "Duplicate value";
    case CAUSE_TOO_LONG:
        return "Too long";
    case CAUSE_TOO_MANY:
        return "Too many";
    case CAUSE_NOT_FOUND:
        return "Not found";
    case CAUSE_INVALID:
    case CAUSE_TYPE_INVALID:
        return "Invalid value";
    }
    UNREACHABLE();
}

static void add_cause(struct causes *causes, enum cause_type type, const char *field, const char *value,
                      const char *detail)
{
    if (causes->count == CAUSES_MAX)
        return;
    struct cause *cause = &causes->items[causes->count++];
    cause->type = type;
    cause->field = xstrdup(field);
    cause->message = xasprintf("%s%s%s%s%s", cause_word(type), value ? ": " : "", value ? value : "",
                               *detail ? ": " : "", detail);
}

void causes_add(struct causes *causes, enum cause_type type, const char *field, const char *value,
                const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *detail = xvasprintf(format, args);
    va_end(args);
    add_cause(causes, type, field, value, detail);
}

void causes_add_node(struct causes *causes, enum cause_type type, const char *field, const cJSON *value,
                     const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *detail = xvasprintf(format, args);
    va_end(args);
    CLEANUP_FREE char *text = value ? json_print(value) : xstrdup("null");
    add_cause(causes, type, field, text, detail);
}

void causes_done(struct causes *causes)
{
    for (size_t i = 0; i < causes->count; i++) {
        free(causes->items[i].field);
        free(causes->items[i].message);
    }
    causes->count = 0;
}

static bool is_repeated(const struct causes *causes, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(causes->items[i].field, causes->items[index].field) == 0 &&
            strcmp(causes->items[i].message, causes->items[index].message) == 0)
            return true;
    return false;
}

/* "field: message", or "[a: b, c: d]" when there are several; equal ones are named once. */
static char *causes_sentence(const struct causes *causes)
{
    CLEANUP_BUF struct buf text = BUF_INIT(BODY_MAX);
    size_t named = 0;
    for (size_t i = 0; i < causes->count; i++) {
        if (is_repeated(causes, i))
            continue;
        buf_addf(&text, "%s%s: %s", named ? ", " : "", causes->items[i].field, causes->items[i].message);
        named++;
    }
    return named > 1 ? xasprintf("[%s]", buf_text(&text)) : buf_take(&text);
}

int refuse_invalid(struct call *call, const struct kind *kind, const char *name, const struct causes *causes)
{
    if (causes->count == 0)
        return 0;
    CLEANUP_FREE char *qualified = kind_qualified_name(kind);
    CLEANUP_FREE char *sentence = causes_sentence(causes);
    CLEANUP_FREE char *message = xasprintf("%s \"%s\" is invalid: %s", qualified, name, sentence);
    cJSON *status = make_status(call, 422, "Invalid", message);
    add_details(status, name, kind->group, kind->name);
    cJSON *list = json_add_array(json_get(status, "details"), "causes");
    for (size_t i = 0; i < causes->count; i++) {
        cJSON *cause = json_new_object();
        json_add_str(cause, "reason", cause_reason(causes->items[i].type));
        json_add_str(cause, "message", causes->items[i].message);
        json_add_str(cause, "field", causes->items[i].field);
        json_append_item(list, cause);
    }
    answer_tree(call, 422, status);
    return -1;
}
