/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/template.h"

#include "base/plant.h"

#include "neoset/defaults.h"

/* --- the first field that differs
 * --------------------------------------------------------------------------- */

static char *find_difference(const cJSON *a, const cJSON *b, const char *path);

static char *path_of_member(const char *path, const cJSON *member, size_t index)
{
    if (member->string)
        return xasprintf("%s%s%s", path, *path ? "." : "", member->string);
    const char *name = json_str(member, "name");
    return name ? xasprintf("%s[%s]", path, name) : xasprintf("%s[%zu]", path, index);
}

static char *find_in_object(const cJSON *a, const cJSON *b, const char *path)
{
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, a) {
        CLEANUP_FREE char *below = path_of_member(path, member, 0);
        char *found = find_difference(member, json_get(b, member->string), below);
        if (found)
            return found;
    }
    cJSON_ArrayForEach (member, b) {
        if (!json_get(a, member->string))
            return path_of_member(path, member, 0);
    }
    return NULL;
}

static char *find_in_array(const cJSON *a, const cJSON *b, const char *path)
{
    size_t index = 0;
    const cJSON *other = b->child;
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, a) {
        CLEANUP_FREE char *below = path_of_member(path, item, index++);
        char *found = find_difference(item, other, below);
        if (found)
            return found;
        other = other ? other->next : NULL;
    }
    return other ? path_of_member(path, other, index) : NULL;
}

/* Depth is bounded by the parser. */
static char *find_difference(const cJSON *a, const cJSON *b, const char *path)
{
    if (a && b && cJSON_IsObject(a) && cJSON_IsObject(b))
        return find_in_object(a, b, path);
    if (a && b && cJSON_IsArray(a) && cJSON_IsArray(b))
        return find_in_array(a, b, path);
    bool equal = a && b ? json_equal(a, b) : a == b;
    return equal ? NULL : xstrdup(*path ? path : "spec");
}

/* --- metadata
 * ----------------------------------------------------------------------------------------------- */

/* The keys whose value is another one, with the new value, or null where it is gone. */
static cJSON *changed_keys(const cJSON *from, const cJSON *to)
{
    cJSON *changed = json_new_object();
    const cJSON *member = NULL;
    /* A revision that we did not make may hold anything. */
    from = cJSON_IsObject(from) ? from : NULL;
    to = cJSON_IsObject(to) ? to : NULL;
    cJSON_ArrayForEach (member, from) {
        if (!json_get(to, member->string) && !PLANT("removed-keys-stay"))
            json_add_item(changed, member->string, cJSON_CreateNull());
    }
    cJSON_ArrayForEach (member, to) {
        const cJSON *old = json_get(from, member->string);
        if (!old || !json_equal(old, member))
            json_add_item(changed, member->string, json_copy(member));
    }
    return changed;
}

/* An annotation that everyone reads as "restart me". */
static bool means_restart(const char *key)
{
    return str_equal(key, "kubectl.kubernetes.io/restartedAt") || str_starts_with(key, "checksum/");
}

/* fieldPath is metadata.<list> or metadata.<list>['key'] of a changed key. */
static bool path_takes(const char *field_path, const char *list, const cJSON *changed)
{
    CLEANUP_FREE char *whole = xasprintf("metadata.%s", list);
    if (!changed || !str_starts_with(field_path, whole))
        return false;
    const char *rest = field_path + strlen(whole);
    if (!*rest)
        return changed->child != NULL;
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, changed) {
        CLEANUP_FREE char *subscript = xasprintf("['%s']", member->string);
        if (str_equal(rest, subscript))
            return true;
    }
    return false;
}

/* A fieldRef anywhere below node takes a changed key. */
static bool downward_takes(const cJSON *node, const char *list, const cJSON *changed)
{
    const char *field_path = json_path_str(node, "fieldRef", "fieldPath", NULL);
    if (field_path && path_takes(field_path, list, changed))
        return true;
    const cJSON *child = NULL;
    cJSON_ArrayForEach (child, node) {
        if (downward_takes(child, list, changed))
            return true;
    }
    return false;
}

static void diff_metadata(struct template_diff *diff, const cJSON *from, const cJSON *to)
{
    diff->labels =
        changed_keys(json_path(from, "metadata", "labels", NULL), json_path(to, "metadata", "labels", NULL));
    diff->annotations = changed_keys(json_path(from, "metadata", "annotations", NULL),
                                     json_path(to, "metadata", "annotations", NULL));
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, diff->annotations) {
        if (!diff->recreate && means_restart(member->string))
            diff->recreate = xasprintf("metadata.annotations[%s]", member->string);
    }
    const struct {
        const char *list;
        const cJSON *changed;
    } lists[] = {{"labels", diff->labels}, {"annotations", diff->annotations}};
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        if (!diff->recreate && downward_takes(json_get(to, "spec"), lists[i].list, lists[i].changed))
            diff->recreate = xasprintf("metadata.%s (taken by the downward API)", lists[i].list);
}

/* --- images
 * ------------------------------------------------------------------------------------------------- */

/* Takes the images of both out, where the containers are the same by name and place. */
static void diff_images(struct template_diff *diff, cJSON *from, cJSON *to)
{
    cJSON *new_container = json_path(to, "spec", "containers", NULL);
    new_container = new_container ? new_container->child : NULL;
    cJSON *container = NULL;
    cJSON_ArrayForEach (container, json_path(from, "spec", "containers", NULL)) {
        const char *name = json_str(container, "name");
        const char *image = json_str(container, "image"), *new_image = json_str(new_container, "image");
        if (name && str_equal(name, json_str(new_container, "name")) && image && new_image) {
            if (!str_equal(image, new_image)) {
                diff->images = xreallocarray(diff->images, diff->image_count + 1, sizeof(*diff->images));
                diff->images[diff->image_count++] =
                    (struct image_difference){xstrdup(name), xstrdup(image), xstrdup(new_image)};
            }
            json_remove(container, "image");
            json_remove(new_container, "image");
        }
        new_container = new_container ? new_container->next : NULL;
    }
}

static void drop_metadata_maps(cJSON *template)
{
    cJSON *metadata = json_get(template, "metadata");
    json_remove(metadata, "labels");
    json_remove(metadata, "annotations");
    if (metadata && !metadata->child)
        json_remove(template, "metadata");
}

/* What is not JSON is as good as nothing. */
static cJSON *parse(const char *text)
{
    cJSON *tree = NULL;
    return json_parse(text, strlen(text), &tree, NULL) < 0 ? json_new_object() : tree;
}

static const char *pull_policy(const cJSON *container)
{
    const char *written = json_str(container, "imagePullPolicy");
    return written && *written ? written : defaults_pull_policy(json_str(container, "image"));
}

/* Which policy goes without saying depends on the image: one that stays what it is would look changed when
 * only one of the two images says it. */
static void drop_same_policies(cJSON *from, cJSON *to)
{
    cJSON *container = NULL;
    cJSON *other = json_path(to, "spec", "containers", NULL);
    other = other ? other->child : NULL;
    cJSON_ArrayForEach (container, json_path(from, "spec", "containers", NULL)) {
        const char *policy = pull_policy(container);
        if (policy && str_equal(policy, pull_policy(other))) {
            json_remove(container, "imagePullPolicy");
            json_remove(other, "imagePullPolicy");
        }
        other = other ? other->next : NULL;
    }
}

/* The ordinary update, which is asked about again and again: nothing but images differs as it is written, so
 * that nothing else does once it is normalised. */
static bool diff_written(const char *from, const char *to, struct template_diff *ret)
{
    CLEANUP_JSON cJSON *old = parse(from);
    CLEANUP_JSON cJSON *new = parse(to);
    diff_images(ret, old, new);
    if (!json_equal(old, new)) {
        template_diff_done(ret);
        return false;
    }
    ret->labels = json_new_object();
    ret->annotations = json_new_object();
    return true;
}

void template_diff_make(const char *from, const char *to, struct template_diff *ret)
{
    *ret = (struct template_diff){0};
    if (diff_written(from, to, ret))
        return;
    CLEANUP_JSON cJSON *old_written = parse(from);
    CLEANUP_JSON cJSON *new_written = parse(to);
    drop_same_policies(old_written, new_written);
    CLEANUP_JSON cJSON *old = defaults_normalise_template(old_written);
    CLEANUP_JSON cJSON *new = defaults_normalise_template(new_written);
    diff_metadata(ret, old, new);
    drop_metadata_maps(old);
    drop_metadata_maps(new);
    diff_images(ret, old, new);
    char *field = find_difference(old, new, "");
    if (field) {
        free(ret->recreate);
        ret->recreate = field;
    }
}

void template_diff_done(struct template_diff *diff)
{
    for (size_t i = 0; i < diff->image_count; i++) {
        free(diff->images[i].container);
        free(diff->images[i].from);
        free(diff->images[i].to);
    }
    free(diff->images);
    json_delete(diff->labels);
    json_delete(diff->annotations);
    free(diff->recreate);
    *diff = (struct template_diff){0};
}

bool template_diff_is_metadata(const struct template_diff *diff)
{
    return !diff->recreate && diff->image_count == 0;
}

char *template_diff_text(const struct template_diff *diff)
{
    if (diff->image_count > 0) {
        const struct image_difference *first = &diff->images[0];
        return xasprintf("image %s -> %s%s", first->from, first->to,
                         diff->image_count > 1 ? " and others" : "");
    }
    if (diff->recreate)
        return xstrdup(diff->recreate);
    return xstrdup("labels and annotations");
}
