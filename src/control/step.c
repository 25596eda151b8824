/* SPDX-License-Identifier: Apache-2.0 */
#include "control/step.h"

static const struct step_kind_info kinds[STEP_KIND_COUNT] = {
#define X(name, text_, method_, content_type_, keep_, stamp_, resolve_)                                      \
    [STEP_##name] = {.text = text_,                                                                          \
                     .method = method_,                                                                      \
                     .content_type = content_type_,                                                          \
                     .keep_body = keep_,                                                                     \
                     .stamp = stamp_,                                                                        \
                     .resolve = resolve_},
    STEP_KINDS(X)
#undef X
};

const struct step_kind_info *step_kind_info(enum step_kind kind)
{
    PRE(kind < STEP_KIND_COUNT);
    return &kinds[kind];
}

bool step_posts(enum step_kind kind)
{
    return strcmp(step_kind_info(kind)->method, "POST") == 0;
}

bool step_creates(enum step_kind kind)
{
    return step_posts(kind) || kind == STEP_APPLY_NEW;
}

int step_kind_of_text(const char *text)
{
    for (int kind = 0; kind < STEP_KIND_COUNT; kind++)
        if (str_equal(kinds[kind].text, text))
            return kind;
    return -1;
}

static bool is_among(const char *const *words, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (str_equal(words[i], text))
            return true;
    return false;
}

bool step_is_operation_kind(const char *text)
{
    static const char *const words[] = {
#define X(word) word,
        OPERATION_KINDS(X)
#undef X
    };
    return is_among(words, ARRAY_SIZE(words), text);
}

bool step_is_operation_outcome(const char *text)
{
    static const char *const words[] = {
#define X(word) word,
        OPERATION_OUTCOMES(X)
#undef X
    };
    return is_among(words, ARRAY_SIZE(words), text);
}

/* --- stamps --------------------------------------------------------------------------------------------- */

void step_stamp_annotation(cJSON *body, const char *key)
{
    cJSON *metadata = json_ensure_object(body, "metadata");
    json_set_str(json_ensure_object(metadata, "annotations"), STEP_ANNOTATION, key);
}

/* text with member "step" = key when it is a JSON object; NULL when it is not. The caller's. */
static char *with_step_member(const char *text, const char *key)
{
    CLEANUP_JSON cJSON *tree = NULL;
    if (json_parse(text, strlen(text), &tree, NULL) < 0 || !cJSON_IsObject(tree))
        return NULL;
    json_set_str(tree, "step", key);
    return json_print(tree);
}

void step_stamp_in_place(cJSON *body, const char *key)
{
    step_stamp_annotation(body, key);
    cJSON *annotations = json_path(body, "metadata", "annotations", NULL);
    const char *state = json_str(annotations, STEP_STATE_ANNOTATION);
    if (!state)
        return;
    CLEANUP_FREE char *stamped = with_step_member(state, key);
    /* The plan wrote the annotation: anything but an object is its bug, not bad input. */
    ENSURE(stamped != NULL);
    json_set_str(annotations, STEP_STATE_ANNOTATION, stamped);
}

void step_stamp_gate(cJSON *body, const char *key)
{
    cJSON *condition = NULL;
    cJSON_ArrayForEach (condition, json_path(body, "status", "conditions", NULL)) {
        if (!str_equal(json_str(condition, "type"), STEP_GATE_CONDITION))
            continue;
        const char *message = json_str(condition, "message");
        CLEANUP_FREE char *stamped = message ? with_step_member(message, key) : NULL;
        if (!stamped)
            stamped =
                message && *message ? xasprintf("%s (step %s)", message, key) : xasprintf("step %s", key);
        json_set_str(condition, "message", stamped);
        return;
    }
    UNREACHABLE(); /* a gate step without the gate's condition */
}

void step_stamp_none(cJSON *body, const char *key)
{
    (void)body;
    (void)key;
}

/* --- requests ------------------------------------------------------------------------------------------- */

struct step_request *step_request_make(enum step_kind kind, enum kube_resource resource,
                                       const char *namespace, const char *name)
{
    PRE(kind < STEP_KIND_COUNT && name && *name);
    struct step_request *request = xcalloc(1, sizeof(*request));
    request->kind = kind;
    request->resource = resource;
    request->namespace = xstrdup_or_null(namespace);
    request->name = xstrdup(name);
    return request;
}

void step_request_free(struct step_request *request)
{
    if (!request)
        return;
    char *const texts[] = {
        request->namespace,      request->name,          request->subresource,   request->uid,
        request->version,        request->fingerprint,   request->reason,        request->operation_kind,
        request->come_from,      request->go_to,         request->failed_before, request->operation_namespace,
        request->operation_name, request->field_manager,
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        free(texts[i]);
    json_delete(request->body);
    free(request);
}
