/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/form.h"

#include "kubesim/table.h"

static bool is_json_range(const char *range, size_t length)
{
    static const char *const names[] = {"application/json", "*/*", "application/*"};
    size_t type_length = strcspn(range, ";, ");
    type_length = MIN(type_length, length);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strlen(names[i]) == type_length && strncasecmp(range, names[i], type_length) == 0)
            return true;
    return false;
}

static enum form range_form(const char *range, size_t length)
{
    CLEANUP_FREE char *text = xstrndup(range, length);
    const char *as = strstr(text, "as=");
    if (!as)
        return FORM_PLAIN;
    if (str_starts_with(as, "as=Table"))
        return FORM_TABLE;
    return str_starts_with(as, "as=PartialObjectMetadata") ? FORM_METADATA : FORM_PLAIN;
}

int form_of(struct call *call, enum form *ret)
{
    const char *accept = call->request->accept;
    *ret = FORM_PLAIN;
    if (!accept || !*accept)
        return 0;
    for (const char *at = accept; *at;) {
        at += strspn(at, ", ");
        size_t length = strcspn(at, ",");
        if (is_json_range(at, length)) {
            *ret = range_form(at, length);
            return 0;
        }
        at += length;
    }
    return refuse(
        call, 406, "NotAcceptable",
        "406: Not Acceptable\n\nAvailable representations: application/json, application/json;stream=watch");
}

cJSON *form_metadata(const cJSON *object)
{
    cJSON *partial = json_new_object();
    json_add_str(partial, "kind", "PartialObjectMetadata");
    json_add_str(partial, "apiVersion", "meta.k8s.io/v1");
    tree_copy_member(partial, object, "metadata");
    return partial;
}

char *form_text(const struct kubesim *sim, const struct kind *kind, enum form form, const char *include,
                struct version *version, bool columns)
{
    if (form == FORM_PLAIN) {
        const char *text = version_text(version);
        return xmemdup0(text, version->text_length);
    }
    CLEANUP_JSON cJSON *tree = NULL;
    if (form == FORM_METADATA) {
        tree = form_metadata(version_tree(version));
    } else {
        tree = table_make(kind, columns);
        cJSON *meta = json_new_object();
        tree_copy_member(meta, json_get(version_tree(version), "metadata"), "resourceVersion");
        json_set_item(tree, "metadata", meta);
        table_add_row(sim, kind, tree, version_tree(version), include);
    }
    return json_print(tree);
}
