/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl_resize_job.h"
#include "cmd/manifest.h"
#include "kube/object.h"
#include "volume/declared.h"

static bool is_set(const cJSON *object)
{
    const char *version = json_str(object, "apiVersion");
    return str_equal(json_str(object, "kind"), "StatefulSet") && version && str_starts_with(version, "apps/");
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
        if (cJSON_GetArraySize(json_path(manifest->object, "spec", "volumeClaimTemplates", NULL)) == 0) {
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
        "no StatefulSet with volumeClaimTemplates is among the %zu objects of -f: there is nothing "
        "to grow",
        manifests->count);
}

int ctl_resize_declared(const struct ctl_resize *run, struct error **err)
{
    CLEANUP_MANIFESTS struct manifests manifests = {0};
    CLEANUP_JSON cJSON *declared = json_new_array();
    int r = manifests_read(run->options, &manifests, err);
    if (r == 0)
        r = manifests_check_unique(&manifests, err);
    if (r == 0)
        r = declare(run, &manifests, declared, err);
    if (r < 0)
        return r;
    CLEANUP_FREE char *text = volume_declared_text(declared);
    buf_add_text(&run->out->text, text);
    buf_add_char(&run->out->text, '\n');
    return 0;
}
