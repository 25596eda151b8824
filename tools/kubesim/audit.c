/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/audit.h"

#include "base/sha256.h"

enum { AUDIT_ID_MAX = 256 };

char *audit_id_of(const struct call *call)
{
    const char *given = call->request->audit_id;
    if (given && *given)
        return xstrndup(given, AUDIT_ID_MAX);
    uint8_t bytes[16];
    call->sim->options.random(call->sim->options.context, bytes, sizeof(bytes));
    return hex_encode(bytes, sizeof(bytes));
}

static void add_object_reference(cJSON *event, const struct call *call)
{
    if (!call->resource)
        return;
    cJSON *reference = json_add_object(event, "objectRef");
    json_add_str(reference, "resource", call->resource);
    if (call->namespace)
        json_add_str(reference, "namespace", call->namespace);
    const char *name = call->name ? call->name : meta_str(call->body, "name");
    if (name)
        json_add_str(reference, "name", name);
    if (*call->group)
        json_add_str(reference, "apiGroup", call->group);
    json_add_str(reference, "apiVersion", call->api_version);
    if (call->subresource)
        json_add_str(reference, "subresource", call->subresource);
}

static void add_response(cJSON *event, const struct call *call)
{
    cJSON *status = json_add_object(event, "responseStatus");
    json_add_object(status, "metadata");
    if (call->problem) {
        json_add_str(status, "status", "Failure");
        json_add_str(status, "message", call->problem);
    }
    json_add_int64(status, "code", call->response->status);
}

void audit_write(struct call *call, int64_t received_us)
{
    const struct kubesim_options *options = &call->sim->options;
    const struct kubesim_request *request = call->request;
    if (!options->audit)
        return;
    bool body = str_equal(call->subresource, "status") && call->body && call->verb != VERB_GET;
    CLEANUP_JSON cJSON *event = json_new_object();
    json_add_str(event, "kind", "Event");
    json_add_str(event, "apiVersion", "audit.k8s.io/v1");
    json_add_str(event, "level", body ? "Request" : "Metadata");
    json_add_str(event, "auditID", call->response->audit_id);
    json_add_str(event, "stage", "ResponseComplete");
    json_add_str(event, "requestURI", request->path);
    json_add_str(event, "verb", verb_name(call->verb));
    json_add_str(json_add_object(event, "user"), "username", request->user ? request->user : "kubesim");
    json_append_str(json_add_array(event, "sourceIPs"), "127.0.0.1");
    if (request->user_agent)
        json_add_str(event, "userAgent", request->user_agent);
    add_object_reference(event, call);
    add_response(event, call);
    if (body)
        json_add_item(event, "requestObject", json_copy(call->body));
    char text[TIME_TEXT_SIZE];
    time_format_micros(received_us, text);
    json_add_str(event, "requestReceivedTimestamp", text);
    time_format_micros(sim_now_us(call->sim), text);
    json_add_str(event, "stageTimestamp", text);
    CLEANUP_FREE char *line = json_print(event);
    options->audit(options->context, line, strlen(line));
}
