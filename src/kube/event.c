/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/event.h"

#include "kube/object.h"

static const char *const types[] = {
    [KUBE_EVENT_ADDED] = "ADDED",       [KUBE_EVENT_MODIFIED] = "MODIFIED", [KUBE_EVENT_DELETED] = "DELETED",
    [KUBE_EVENT_BOOKMARK] = "BOOKMARK", [KUBE_EVENT_ERROR] = "ERROR",
};

static bool begins_with(const char *line, size_t length, const char *text)
{
    return length >= strlen(text) && memcmp(line, text, strlen(text)) == 0;
}

cJSON *kube_event_peek(const char *line, size_t length)
{
    static const char *const path[] = {"object", "metadata", NULL};
    static const struct json_omission managed = {.parent = "metadata", .key = "managedFields", .depth = 3};
    /* As servers write it; written in any other way it is read as a whole. */
    if (!begins_with(line, length, "{\"type\":\"MODIFIED\"") &&
        !begins_with(line, length, "{\"type\":\"ADDED\""))
        return NULL;
    cJSON *object = NULL;
    return json_parse_part(line, length, path, &managed, &object, NULL) < 0 ? NULL : object;
}

bool kube_event_guess_version(const char *line, size_t length, char *version, size_t room)
{
    static const char key[] = "\"resourceVersion\":\"";
    const char *found = memmem(line, length, key, strlen(key));
    if (!found)
        return false;
    const char *begin = found + strlen(key);
    const char *end = memchr(begin, '"', (size_t)(line + length - begin));
    if (!end || (size_t)(end - begin) >= room)
        return false;
    memcpy(version, begin, (size_t)(end - begin));
    version[end - begin] = '\0';
    return true;
}

int kube_event_parse(const char *line, size_t length, struct kube_event *ret, struct error **err)
{
    CLEANUP_JSON cJSON *tree = NULL;
    int result = kube_object_parse_unmanaged(line, length, 2, &tree, err);
    if (result < 0)
        return result;
    const char *type = json_str(tree, "type");
    size_t i = 0;
    while (i < ARRAY_SIZE(types) && !str_equal(type, types[i]))
        i++;
    if (i == ARRAY_SIZE(types))
        return error_set(err, ERROR_INVALID, "its type is none that we know");
    struct kube_event event = {.type = (enum kube_event_type)i, .object = json_get(tree, "object")};
    if (!cJSON_IsObject(event.object))
        return error_set(err, ERROR_INVALID, "it has no object");
    if (event.type != KUBE_EVENT_ERROR) {
        event.version = kube_object_version(event.object);
        if (!event.version)
            return error_set(err, ERROR_INVALID, "its object has no resourceVersion");
    }
    event.tree = STEAL(tree);
    *ret = event;
    return 0;
}

void kube_event_done(struct kube_event *event)
{
    json_delete(event->tree);
    *event = (struct kube_event){0};
}
