/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/resize_job.h"
#include "cmd/manifest.h"
#include "cmd/neosetctl/yaml.h"
#include "kube/object.h"
#include "volume/declared.h"
#include "volume/job.h"
#include "volume/script.h"

static bool is_set(const cJSON *object)
{
    const char *version = json_str(object, "apiVersion");
    return str_equal(json_str(object, "kind"), "StatefulSet") && version && str_starts_with(version, "apps/");
}

/* What is of another type is not left out without a word. */
static bool has_templates(const cJSON *set)
{
    const cJSON *spec = json_get(set, "spec");
    const cJSON *templates = json_get(spec, "volumeClaimTemplates");
    bool is_unsaid = !templates || cJSON_IsNull(templates) ||
                     (cJSON_IsArray(templates) && cJSON_GetArraySize(templates) == 0);
    return !is_unsaid || (spec && !cJSON_IsObject(spec) && !cJSON_IsNull(spec));
}

/* The StatefulSets among manifests that have claim templates, as the script is told of them. What else -f
 * brings is passed over: it is mostly the whole of an application. */
static int declare(const struct ctl_resize *run, const struct manifests *manifests, cJSON *ret_array,
                   struct error **err)
{
    for (size_t i = 0; i < manifests->count; i++) {
        const struct manifest *manifest = &manifests->items[i];
        if (!is_set(manifest->object))
            continue;
        if (!has_templates(manifest->object)) {
            CLEANUP_FREE char *text = manifest_text(manifest);
            CLEANUP_FREE char *sentence =
                xasprintf("%s has no volumeClaimTemplates: nothing of it can grow, it is left out", text);
            run->say(run->context, sentence);
            continue;
        }
        int r = volume_declared_add(ret_array, manifest->object, err);
        if (r < 0)
            return error_wrap(err, r, "%s", manifest->origin);
    }
    if (cJSON_GetArraySize(ret_array) > 0)
        return 0;
    return error_set(
        err, ERROR_INVALID,
        "no StatefulSet with volumeClaimTemplates is among the %zu object%s of -f: there is nothing "
        "to grow",
        manifests->count, manifests->count == 1 ? "" : "s");
}

static int read_declared(const struct ctl_resize *run, struct manifests *ret_manifests, cJSON *ret_array,
                         struct error **err)
{
    int r = manifests_read(run->options, ret_manifests, err);
    if (r == 0)
        r = manifests_check_unique(ret_manifests, err);
    return r < 0 ? r : declare(run, ret_manifests, ret_array, err);
}

int ctl_resize_declared(const struct ctl_resize *run, struct error **err)
{
    CLEANUP_MANIFESTS struct manifests manifests = {0};
    CLEANUP_JSON cJSON *declared = json_new_array();
    int r = read_declared(run, &manifests, declared, err);
    if (r < 0)
        return r;
    CLEANUP_FREE char *text = volume_declared_text(declared);
    buf_add_text(&run->out->text, text);
    buf_add_char(&run->out->text, '\n');
    return 0;
}

int ctl_resize_script(const struct ctl_resize *run, struct error **err)
{
    (void)err;
    buf_add_text(&run->out->text, volume_script_text());
    return 0;
}

/* --- the Job -------------------------------------------------------------------------------------------- */

/* A Job is in one namespace, and so is all that it may touch: the one that the sets name, or -n for those
 * that name none. Never the kubeconfig's: the same files are to give the same Job everywhere. */
static int find_namespace(const struct ctl_resize *run, const struct manifests *manifests, const char **ret,
                          struct error **err)
{
    const char *given = option_text(run->options, "namespace");
    const struct manifest *first = NULL;
    *ret = given;
    for (size_t i = 0; i < manifests->count; i++) {
        const struct manifest *manifest = &manifests->items[i];
        const char *own = kube_object_namespace(manifest->object);
        if (!has_templates(manifest->object))
            continue;
        CLEANUP_FREE char *text = manifest_text(manifest);
        if (!own && !given)
            return error_set(err, ERROR_INVALID, "%s names no namespace: say it with -n", text);
        if (own && *ret && !str_equal(own, *ret))
            return error_set(err, ERROR_INVALID,
                             "%s is not in namespace %s%s%s: one Job is for one namespace", text, *ret,
                             first ? ", as is the one of " : "", first ? first->origin : "");
        if (own && !*ret)
            first = manifest;
        *ret = own ? own : *ret;
    }
    return 0;
}

static int read_labels(const struct options *options, cJSON *ret_labels, struct error **err)
{
    for (int i = 0; i < option_count(options, "label"); i++) {
        const char *text = option_text_at(options, "label", i);
        const char *equals = strchr(text, '=');
        if (!equals)
            return error_set(err, ERROR_USAGE, "--label %.80s needs a value: --label NAME=VALUE", text);
        CLEANUP_FREE char *name = xstrndup(text, (size_t)(equals - text));
        json_set_str(ret_labels, name, equals + 1);
    }
    return 0;
}

static void print_objects(struct buf *out, const cJSON *objects)
{
    const char *separator = "";
    const cJSON *object = NULL;
    cJSON_ArrayForEach (object, objects) {
        buf_add_text(out, separator);
        ctl_yaml_print(out, object);
        separator = "---\n";
    }
}

int ctl_resize_job(const struct ctl_resize *run, struct error **err)
{
    CLEANUP_MANIFESTS struct manifests manifests = {0};
    CLEANUP_JSON cJSON *declared = json_new_array();
    CLEANUP_JSON cJSON *labels = json_new_object();
    CLEANUP_JSON cJSON *secrets = json_new_array();
    CLEANUP_JSON cJSON *objects = NULL;
    struct volume_job job = {.unit = option_text(run->options, "unit"),
                             .image = option_text(run->options, "image"),
                             .declared = declared,
                             .labels = labels,
                             .secrets = secrets};
    for (int i = 0; i < option_count(run->options, "pull-secret"); i++)
        json_append_str(secrets, option_text_at(run->options, "pull-secret", i));
    int r = read_labels(run->options, labels, err);
    if (r == 0)
        r = read_declared(run, &manifests, declared, err);
    if (r == 0)
        r = find_namespace(run, &manifests, &job.namespace, err);
    if (r == 0)
        r = volume_job_build(&job, &objects, err);
    if (r == 0)
        print_objects(&run->out->text, objects);
    return r;
}
