/* SPDX-License-Identifier: Apache-2.0
 *
 * What clients ask before they ask for objects: versions, groups, resources, health. */
#include "kubesim/openapi.h"

static int not_found(struct call *call)
{
    return refuse_unknown_path(call);
}

static void answer_word(struct call *call, const char *word)
{
    answer_text(call, 200, "text/plain; charset=utf-8", xstrdup(word), strlen(word));
}

static int answer_version_info(struct call *call)
{
    const char *version = call->sim->git_version;
    const char *major = version + (*version == 'v');
    const char *minor = major + strcspn(major, ".");
    minor += *minor == '.';
    CLEANUP_FREE char *major_text = xstrndup(major, strspn(major, "0123456789"));
    CLEANUP_FREE char *minor_text = xstrndup(minor, strspn(minor, "0123456789"));
    cJSON *info = json_new_object();
    json_add_str(info, "major", major_text);
    json_add_str(info, "minor", minor_text);
    json_add_str(info, "gitVersion", version);
    json_add_str(info, "gitCommit", "");
    json_add_str(info, "gitTreeState", "clean");
    json_add_str(info, "buildDate", "1970-01-01T00:00:00Z");
    json_add_str(info, "goVersion", "none");
    json_add_str(info, "compiler", "cc");
    json_add_str(info, "platform", "linux/amd64");
    answer_tree(call, 200, info);
    return 0;
}

static cJSON *group_version(const char *group, const char *version)
{
    CLEANUP_FREE char *text = xasprintf("%s/%s", group, version);
    cJSON *node = json_new_object();
    json_add_str(node, "groupVersion", text);
    json_add_str(node, "version", version);
    return node;
}

/* The APIGroup of a group, or NULL when no kind of it is served. */
static cJSON *make_group(const struct kubesim *sim, const char *group)
{
    cJSON *node = NULL;
    for (size_t i = 0; i < sim->kind_count; i++) {
        const struct kind *kind = sim->kinds[i];
        if (kind->undefined || strcmp(kind->group, group) != 0)
            continue;
        if (!node) {
            node = json_new_object();
            json_add_str(node, "name", group);
            json_add_array(node, "versions");
            json_add_item(node, "preferredVersion", group_version(group, kind->version));
        }
        bool there = false;
        const cJSON *version;
        cJSON_ArrayForEach (version, json_get(node, "versions"))
            there = there || str_equal(json_str(version, "version"), kind->version);
        if (!there)
            json_append_item(json_get(node, "versions"), group_version(group, kind->version));
    }
    return node;
}

static int answer_groups(struct call *call)
{
    const struct kubesim *sim = call->sim;
    cJSON *list = json_new_object();
    json_add_str(list, "kind", "APIGroupList");
    json_add_str(list, "apiVersion", "v1");
    cJSON *groups = json_add_array(list, "groups");
    for (size_t i = 0; i < sim->kind_count; i++) {
        const char *group = sim->kinds[i]->group;
        bool seen = !*group || sim->kinds[i]->undefined;
        for (const cJSON *earlier = groups->child; earlier && !seen; earlier = earlier->next)
            seen = str_equal(json_str(earlier, "name"), group);
        if (!seen)
            json_append_item(groups, make_group(sim, group));
    }
    answer_tree(call, 200, list);
    return 0;
}

static int answer_group(struct call *call, const char *group)
{
    cJSON *node = make_group(call->sim, group);
    if (!node)
        return not_found(call);
    json_add_str(node, "kind", "APIGroup");
    json_add_str(node, "apiVersion", "v1");
    answer_tree(call, 200, node);
    return 0;
}

static void add_words(cJSON *node, const char *key, char **words)
{
    if (!words)
        return;
    cJSON *list = json_add_array(node, key);
    for (; *words; words++)
        json_append_str(list, *words);
}

static void add_resource(cJSON *list, const struct kind *kind)
{
    static const char *const verbs[] = {"create", "delete", "deletecollection", "get",
                                        "list",   "patch",  "update",           "watch"};
    cJSON *resource = json_new_object();
    json_add_str(resource, "name", kind->plural);
    json_add_str(resource, "singularName", kind->singular);
    json_add_item(resource, "namespaced", cJSON_CreateBool((kind->flags & KIND_NAMESPACED) != 0));
    json_add_str(resource, "kind", kind->name);
    cJSON *list_of_verbs = json_add_array(resource, "verbs");
    if (kind->flags & KIND_REVIEW)
        json_append_str(list_of_verbs, "create");
    else
        for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
            json_append_str(list_of_verbs, verbs[i]);
    add_words(resource, "shortNames", kind->short_names);
    add_words(resource, "categories", kind->categories);
    json_append_item(list, resource);
}

static void add_subresource(cJSON *list, const struct kind *kind, const char *name, const char *shown_kind,
                            const char *group, const char *version, const char *verb)
{
    CLEANUP_FREE char *full = xasprintf("%s/%s", kind->plural, name);
    cJSON *resource = json_new_object();
    json_add_str(resource, "name", full);
    json_add_str(resource, "singularName", "");
    json_add_item(resource, "namespaced", cJSON_CreateBool((kind->flags & KIND_NAMESPACED) != 0));
    if (group) {
        json_add_str(resource, "group", group);
        json_add_str(resource, "version", version);
    }
    json_add_str(resource, "kind", shown_kind);
    cJSON *verbs = json_add_array(resource, "verbs");
    if (verb) {
        json_append_str(verbs, verb);
    } else {
        json_append_str(verbs, "get");
        json_append_str(verbs, "patch");
        json_append_str(verbs, "update");
    }
    json_append_item(list, resource);
}

static int answer_resources(struct call *call, const char *group, const char *version)
{
    cJSON *list = json_new_object();
    json_add_str(list, "kind", "APIResourceList");
    json_add_str(list, "apiVersion", "v1");
    CLEANUP_FREE char *name = *group ? xasprintf("%s/%s", group, version) : xstrdup(version);
    json_add_str(list, "groupVersion", name);
    cJSON *resources = json_add_array(list, "resources");
    for (size_t i = 0; i < call->sim->kind_count; i++) {
        const struct kind *kind = call->sim->kinds[i];
        if (kind->undefined || strcmp(kind->group, group) != 0 || strcmp(kind->version, version) != 0)
            continue;
        add_resource(resources, kind);
        if (kind->flags & KIND_STATUS)
            add_subresource(resources, kind, "status", kind->name, NULL, NULL, NULL);
        if (kind->flags & KIND_SCALE)
            add_subresource(resources, kind, "scale", "Scale", "autoscaling", "v1", NULL);
        if (strcmp(kind->plural, "pods") == 0) {
            add_subresource(resources, kind, "eviction", "Eviction", "policy", "v1", "create");
            add_subresource(resources, kind, "binding", "Binding", NULL, NULL, "create");
        }
    }
    if (!resources->child) {
        json_delete(list);
        return not_found(call);
    }
    answer_tree(call, 200, list);
    return 0;
}

static int answer_core(struct call *call)
{
    cJSON *versions = json_new_object();
    json_add_str(versions, "kind", "APIVersions");
    json_append_str(json_add_array(versions, "versions"), "v1");
    cJSON *addresses = json_add_array(versions, "serverAddressByClientCIDRs");
    cJSON *address = json_new_object();
    json_add_str(address, "clientCIDR", "0.0.0.0/0");
    json_add_str(address, "serverAddress", "127.0.0.1");
    json_append_item(addresses, address);
    answer_tree(call, 200, versions);
    return 0;
}

int discovery_answer(struct call *call)
{
    const struct path *path = &call->path;
    const char *const *segments = path->segments;
    if (strcmp(call->request->method, "GET") != 0)
        return refuse(call, 405, "MethodNotAllowed",
                      "the server does not allow this method on the requested resource");
    const char *first = path->segment_count ? segments[0] : "";
    if (strcmp(first, "version") == 0 && path->segment_count == 1)
        return answer_version_info(call);
    if (strcmp(first, "healthz") == 0 || strcmp(first, "readyz") == 0 || strcmp(first, "livez") == 0) {
        answer_word(call, "ok");
        return 0;
    }
    if (strcmp(first, "openapi") == 0)
        return openapi_answer(call);
    if (strcmp(first, "api") == 0)
        return path->segment_count == 1 ? answer_core(call) : answer_resources(call, "", segments[1]);
    if (strcmp(first, "apis") != 0)
        return not_found(call);
    if (path->segment_count == 1)
        return answer_groups(call);
    if (path->segment_count == 2)
        return answer_group(call, segments[1]);
    return answer_resources(call, segments[1], segments[2]);
}
