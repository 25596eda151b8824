/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/apply_parts.h"
#include "kube/object.h"

/* --- asking --------------------------------------------------------------------------------------------- */

void apply_forget_kinds(struct apply *apply)
{
    json_delete(apply->groups);
    apply->groups = json_new_object();
}

/* What the server has of this apiVersion; NULL: nothing. */
static int find_group(struct apply *apply, const char *version, const cJSON **ret, struct error **err)
{
    const cJSON *known = json_get(apply->groups, version);
    if (!known) {
        cJSON *list = NULL;
        CLEANUP_ERROR struct error *own = NULL;
        CLEANUP_FREE char *encoded = NULL;
        const char *slash = strchr(version, '/');
        if (slash) {
            CLEANUP_FREE char *group = xstrndup(version, (size_t)(slash - version));
            CLEANUP_FREE char *one = kube_percent_encode(group);
            CLEANUP_FREE char *other = kube_percent_encode(slash + 1);
            encoded = xasprintf("%s/%s", one, other);
        } else {
            encoded = kube_percent_encode(version);
        }
        CLEANUP_FREE char *path = xasprintf("%s%s", slash ? "/apis/" : "/api/", encoded);
        CLEANUP_FREE char *what = xasprintf("the server's resources of %.200s", version);
        int r = ctl_get(apply->wanted->server, path, what, &list, &own);
        if (r < 0 && r != -ERROR_NOT_FOUND && r != -ERROR_UNSUPPORTED) {
            if (err)
                *err = STEAL(own);
            return r;
        }
        json_set_item(apply->groups, version, r == 0 ? list : cJSON_CreateNull());
        known = json_get(apply->groups, version);
    }
    *ret = cJSON_IsNull(known) ? NULL : known;
    return 0;
}

/* The resource of a kind, not one of its subresources ("deployments/scale" has kind Scale). */
static const cJSON *find_resource(const cJSON *group, const char *kind)
{
    const cJSON *resource = NULL;
    cJSON_ArrayForEach (resource, json_get(group, "resources")) {
        const char *name = json_str(resource, "name");
        if (name && *name && !strchr(name, '/') && str_equal(json_str(resource, "kind"), kind))
            return resource;
    }
    return NULL;
}

/* --- definitions among the items ------------------------------------------------------------------------ */

static bool defines(const cJSON *definition, const char *version, const char *kind)
{
    const cJSON *spec = json_get(definition, "spec");
    const char *group = json_str(spec, "group");
    size_t length = group ? strlen(group) : 0;
    if (!str_equal(json_str(definition, "kind"), "CustomResourceDefinition") || !group ||
        !str_equal(json_path_str(spec, "names", "kind", NULL), kind) ||
        strncmp(version, group, length) != 0 || version[length] != '/')
        return false;
    const cJSON *served = NULL;
    cJSON_ArrayForEach (served, json_get(spec, "versions"))
        if (str_equal(json_str(served, "name"), version + length + 1))
            return true;
    return false;
}

static bool is_defined_here(const struct apply *apply, const char *version, const char *kind)
{
    for (size_t i = 0; i < apply->count; i++)
        if (!apply->items[i].is_written && defines(apply->items[i].manifest->object, version, kind))
            return true;
    return false;
}

/* --- an item -------------------------------------------------------------------------------------------- */

static int intern(struct apply_item *item, const char *version, const cJSON *resource, struct error **err)
{
    const char *slash = strchr(version, '/');
    CLEANUP_FREE char *group = slash ? xstrndup(version, (size_t)(slash - version)) : xstrdup("");
    struct kube_resource_info info = {.kind = json_str(resource, "kind"),
                                      .group = group,
                                      .version = slash ? slash + 1 : version,
                                      .plural = json_str(resource, "name"),
                                      .namespaced = json_bool_or(resource, "namespaced", false)};
    if (kube_resource_intern(&info, &item->resource) < 0)
        return error_set(err, ERROR_TOO_LARGE, "more than %d kinds: give them in several runs",
                         KUBE_OTHERS_MAX);
    item->is_known = true;
    item->comes_first = item->resource == KUBE_DEFINITION ||
                        (str_equal(info.kind, "Namespace") && !*group && !info.namespaced);
    return 0;
}

/* The namespace is written into the object, so that what is sent says where it goes. */
static int settle_namespace(const struct apply *apply, struct apply_item *item, struct error **err)
{
    const struct ctl_apply *wanted = apply->wanted;
    cJSON *metadata = json_get(item->manifest->object, "metadata");
    const char *own = kube_object_namespace(item->manifest->object);
    item->name = kube_object_name(item->manifest->object);
    if (!kube_resource_info(item->resource)->namespaced) {
        json_remove(metadata, "namespace"); /* as kubectl does: it would mean nothing */
        item->namespace = NULL;
        return 0;
    }
    if (own && option_is_given(wanted->options, "namespace") && !str_equal(own, wanted->server->namespace)) {
        CLEANUP_FREE char *text = manifest_text(item->manifest);
        return error_set(err, ERROR_INVALID, "%s is not in namespace %s: leave -n away, or say -n %s", text,
                         wanted->server->namespace, own);
    }
    if (!own)
        json_set_str(metadata, "namespace", wanted->server->namespace);
    item->namespace = kube_object_namespace(item->manifest->object);
    return 0;
}

static int find_kind(struct apply *apply, struct apply_item *item, struct error **err)
{
    const char *version = json_str(item->manifest->object, "apiVersion");
    const char *kind = json_str(item->manifest->object, "kind");
    const cJSON *group = NULL;
    int r = find_group(apply, version, &group, err);
    if (r < 0)
        return r;
    const cJSON *resource = find_resource(group, kind);
    if (!resource && is_defined_here(apply, version, kind)) {
        item->is_untried = true;
        return 0;
    }
    if (!resource) {
        CLEANUP_FREE char *text = manifest_text(item->manifest);
        return error_set(
            err, ERROR_INVALID,
            "%s: the server has no %s in %s%s: is its definition missing (`kubectl api-resources` "
            "lists what there is), or the apiVersion of another Kubernetes?",
            text, kind, version, group ? "" : ", and nothing else of it");
    }
    r = intern(item, version, resource, err);
    return r < 0 ? r : settle_namespace(apply, item, err);
}

int apply_find_kinds(struct apply *apply, struct error **err)
{
    for (size_t i = 0; i < apply->count; i++) {
        int r = apply->items[i].is_known ? 0 : find_kind(apply, &apply->items[i], err);
        if (r < 0)
            return r;
    }
    return 0;
}
