/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/actor.h"

static int deliver(struct kubesim *sim, const struct actor *actor, const char *method, const char *type,
                   cJSON *body, const char *path)
{
    CLEANUP_FREE char *text = body ? json_print(body) : NULL;
    json_delete(body);
    struct kubesim_response response;
    kubesim_handle(sim,
                   &(struct kubesim_request){.method = method,
                                             .path = path,
                                             .content_type = type,
                                             .user_agent = actor->manager,
                                             .user = actor->user,
                                             .body = text,
                                             .body_length = text ? strlen(text) : 0,
                                             .no_faults = true},
                   &response);
    int status = response.status;
    kubesim_response_done(&response);
    return status;
}

int actor_ask(struct kubesim *sim, const struct actor *actor, const char *method, const char *type,
              cJSON *body, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *path = xvasprintf(format, args);
    va_end(args);
    return deliver(sim, actor, method, type, body, path);
}

/* FNV-1a: the same words about the same object are one Event. */
static uint64_t digest(uint64_t start, const char *text)
{
    for (; *text; text++)
        start = (start ^ (uint8_t)*text) * 0x100000001B3u;
    return start;
}

static cJSON *new_event(const struct actor *actor, const cJSON *about, const char *type, const char *reason,
                        const char *message, const char *now)
{
    static const char *const copied[] = {"namespace", "name", "uid", "resourceVersion"};
    cJSON *event = json_new_object();
    cJSON *object = json_add_object(event, "involvedObject");
    json_add_str(object, "kind", json_str(about, "kind"));
    json_add_str(object, "apiVersion", json_str(about, "apiVersion"));
    for (size_t i = 0; i < ARRAY_SIZE(copied); i++)
        json_add_str(object, copied[i], meta_str(about, copied[i]));
    json_add_str(event, "reason", reason);
    json_add_str(event, "message", message);
    json_add_str(event, "type", type);
    json_add_str(event, "firstTimestamp", now);
    json_add_str(event, "lastTimestamp", now);
    json_add_int64(event, "count", 1);
    json_add_str(json_add_object(event, "source"), "component", actor->manager);
    json_add_str(event, "reportingComponent", actor->manager);
    return event;
}

void actor_note(struct kubesim *sim, const struct actor *actor, const cJSON *about, const char *type,
                const char *reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *message = xvasprintf(format, args);
    va_end(args);
    char now[TIME_TEXT_SIZE];
    sim_time_text(sim, now);
    uint64_t hash = digest(digest(digest(0xCBF29CE484222325u, meta_str(about, "uid")), reason), message);
    CLEANUP_FREE char *name = xasprintf("%s.%016llx", meta_str(about, "name"), (unsigned long long)hash);
    const char *namespace = meta_str(about, "namespace");
    const struct object *old = store_find(kind_find(sim, "", "events"), namespace, name);
    cJSON *event = old ? json_new_object() : new_event(actor, about, type, reason, message, now);
    if (old) {
        json_add_str(event, "lastTimestamp", now);
        json_add_int64(event, "count", json_int64_or(object_tree(old), "count", 0) + 1);
        (void)actor_ask(sim, actor, "PATCH", MERGE_TYPE, event, "/api/v1/namespaces/%s/events/%s", namespace,
                        name);
        return;
    }
    json_add_str(json_add_object(event, "metadata"), "name", name);
    (void)actor_ask(sim, actor, "POST", JSON_TYPE, event, "/api/v1/namespaces/%s/events", namespace);
}
