/* SPDX-License-Identifier: Apache-2.0 */
#include "control/exempt.h"

#include "control/answer.h"
#include "control/preconditions.h"
#include "kube/object.h"

#include <stdio.h>
#include <utlist.h>

static const struct exempt_kind_info {
    const char *text;
    const char *methods;
    enum http_pool pool;
} kinds[EXEMPT_KIND_COUNT] = {
#define X(name, text_, methods_, pool_) [EXEMPT_##name] = {.text = text_, .methods = methods_, .pool = pool_},
    EXEMPT_KINDS(X)
#undef X
};

/* The members of status that a later decision reads. */
static const char *const deciding_fields[] = {
    "currentRevisionName", "currentRevisionProven", "updateRevisionName",
    "currentPartition",    "collisionCount",        "doneOrdinals",
    "leftStableOrdinals",  "currentImage",          "targetImage",
};

struct exempt_call {
    struct exempt *exempt;
    struct kube_call *call;
    kube_done *done;
    void *context;
    bool asks_leader;
    enum kube_resource resource;
    char *namespace;
    char *name;
    char *uid; /* precondition in the body, or NULL */
    struct exempt_call *prev, *next;
};

struct exempt {
    struct exempt_options options;
    struct exempt_call *calls;
    int64_t next_number;
    int64_t counts[EXEMPT_KIND_COUNT];
};

static void exempt_call_free(struct exempt_call *call)
{
    free(call->namespace);
    free(call->name);
    free(call->uid);
    free(call);
}

struct exempt *exempt_make(const struct exempt_options *options)
{
    PRE(options->env && options->client && options->field_manager);
    struct exempt *exempt = xcalloc(1, sizeof(*exempt));
    exempt->options = *options;
    /* Goes on over restarts, near enough: two runs never share a number unless the clock is set back. */
    exempt->next_number = env_wall_us(options->env);
    return exempt;
}

void exempt_free(struct exempt *exempt)
{
    if (!exempt)
        return;
    struct exempt_call *call = NULL, *next = NULL;
    DL_FOREACH_SAFE (exempt->calls, call, next) {
        kube_call_cancel(exempt->options.client, &call->call);
        exempt_call_free(call);
    }
    free(exempt);
}

const char *exempt_kind_text(enum exempt_kind kind)
{
    PRE(kind < EXEMPT_KIND_COUNT);
    return kinds[kind].text;
}

int64_t exempt_count(const struct exempt *exempt, enum exempt_kind kind)
{
    PRE(kind < EXEMPT_KIND_COUNT);
    return exempt->counts[kind];
}

bool exempt_has_deciding_field(enum kube_resource resource, const cJSON *status)
{
    if (resource != KUBE_NEOSET)
        return true; /* nothing of other kinds is known to describe only: a pod's status holds the gate */
    for (size_t i = 0; i < ARRAY_SIZE(deciding_fields); i++)
        if (json_get(status, deciding_fields[i]))
            return true;
    return false;
}

/* --- what each kind may be ------------------------------------------------------------------------------ */

/* Metadata may hold the precondition, and nothing that it would change. */
static bool has_only_status(const cJSON *body)
{
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, body) {
        if (strcmp(member->string, "status") != 0 && strcmp(member->string, "metadata") != 0)
            return false;
    }
    cJSON_ArrayForEach (member, json_get(body, "metadata")) {
        if (strcmp(member->string, "resourceVersion") != 0)
            return false;
    }
    return cJSON_IsObject(json_get(body, "status"));
}

static bool is_allowed(const struct exempt_request *request)
{
    bool on_object = request->subresource == NULL;
    switch (request->kind) {
    case EXEMPT_STATUS:
        return str_equal(request->subresource, "status") && request->name && has_only_status(request->body) &&
               !exempt_has_deciding_field(request->resource, json_get(request->body, "status"));
    case EXEMPT_EVENT:
        return request->resource == KUBE_EVENT && on_object;
    case EXEMPT_LEASE:
        return request->resource == KUBE_LEASE && on_object;
    case EXEMPT_DRY_RUN:
        /* The query is added here. Not for a delete: its body would silence the query. */
        return true;
    case EXEMPT_DRY_DELETE:
        return on_object && request->name &&
               preconditions_check_orphan_delete(request->body, true, NULL) == 0;
    case EXEMPT_REVIEW:
        return request->resource == KUBE_SELF_REVIEW && on_object;
    case EXEMPT_KIND_COUNT:
        break;
    }
    UNREACHABLE();
}

static bool is_method_of_kind(const struct exempt_request *request)
{
    const char *methods = kinds[request->kind].methods;
    return strstr(methods, request->method) != NULL;
}

/* --- sending -------------------------------------------------------------------------------------------- */

static bool may_leave(void *context)
{
    const struct exempt_call *call = context;
    const struct exempt_options *options = &call->exempt->options;
    return !call->asks_leader || !options->may_write || options->may_write(options->context);
}

/* Who asked must not take a proxy's page for a lease that is held or a template that was accepted: what the
 * API server did not answer is no answer. */
static void tell(const struct exempt_call *call, const struct kube_answer *answer)
{
    struct answer_target target = {
        .resource = call->resource, .namespace = call->namespace, .name = call->name, .uid = call->uid};
    if (!answer_is_foreign(answer, &target)) {
        call->done(call->context, answer);
        return;
    }
    CLEANUP_FREE char *sentence = answer_foreign_sentence(answer, &target);
    struct kube_answer none = *answer;
    none.outcome = KUBE_NO_ANSWER;
    none.code = ERROR_CORRUPT;
    none.body = NULL;
    none.message = sentence;
    snprintf(none.summary, sizeof(none.summary), "%s", sentence);
    call->done(call->context, &none);
}

static void write_done(void *context, const struct kube_answer *answer)
{
    struct exempt_call *call = context;
    DL_DELETE(call->exempt->calls, call);
    call->call = NULL;
    if (call->done)
        tell(call, answer);
    exempt_call_free(call);
}

static char *write_path(const struct exempt *exempt, const struct exempt_request *request)
{
    char *path = kube_path(request->resource, request->namespace, request->name, request->subresource);
    kube_path_add_query(&path, "timeout", "10s");
    if (request->kind == EXEMPT_DRY_DELETE)
        return path;
    kube_path_add_query(&path, "fieldManager",
                        request->field_manager ? request->field_manager : exempt->options.field_manager);
    if (request->is_forced)
        kube_path_add_query(&path, "force", "true");
    if (request->kind == EXEMPT_DRY_RUN)
        kube_path_add_query(&path, "dryRun", "All");
    return path;
}

void exempt_write(struct exempt *exempt, const struct exempt_request *request, kube_done *done, void *context)
{
    PRE(request->kind < EXEMPT_KIND_COUNT && request->timeout_us > 0);
    PRE(is_method_of_kind(request));
    PRE(is_allowed(request));
    struct exempt_call *call = xcalloc(1, sizeof(*call));
    call->exempt = exempt;
    call->done = done;
    call->context = context;
    const char *name = request->name ? request->name : kube_object_name(request->body);
    call->resource = request->resource;
    call->namespace = xstrdup_or_null(request->namespace);
    call->name = xstrdup_or_null(name);
    call->uid = xstrdup_or_null(kube_object_uid(request->body));
    call->asks_leader = request->kind == EXEMPT_STATUS || request->kind == EXEMPT_EVENT;
    DL_APPEND(exempt->calls, call);
    exempt->counts[request->kind]++;
    CLEANUP_FREE char *path = write_path(exempt, request);
    CLEANUP_FREE char *body = json_print(request->body);
    CLEANUP_FREE char *audit_id =
        xasprintf("neo-x-%s-%lld", kinds[request->kind].text, (long long)exempt->next_number++);
    struct kube_client *client = exempt->options.client;
    call->call = kube_write(
        client, kube_permit_issue(client),
        &(struct kube_write){.method = request->method,
                             .path = path,
                             .content_type = request->content_type,
                             .body = body,
                             .body_length = strlen(body),
                             .audit_id = audit_id,
                             .pool = kinds[request->kind].pool,
                             .timeout_us = request->timeout_us,
                             .is_dry = request->kind == EXEMPT_DRY_RUN || request->kind == EXEMPT_DRY_DELETE,
                             .before_send = may_leave},
        write_done, call);
}
