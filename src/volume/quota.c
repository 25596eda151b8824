/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/quota.h"

#include "kube/object.h"

enum { TEXT_MAX = 1 << 16 };

static const char storage[] = "requests.storage";
static const char of_class[] = ".storageclass.storage.k8s.io/requests.storage";

/* What the claims need more, those of one class or (NULL) all. */
static struct quantity growth_of_class(const struct volume_items *claims, const char *class,
                                       size_t class_length)
{
    struct quantity sum = {.format = QUANTITY_BINARY};
    for (size_t i = 0; i < claims->count; i++) {
        const struct volume_item *claim = &claims->items[i];
        bool counts = !class || (claim->class && strlen(claim->class) == class_length &&
                                 memcmp(claim->class, class, class_length) == 0);
        if (counts && quantity_compare(&claim->to_size, &claim->from_size) > 0)
            sum.nano += claim->to_size.nano - claim->from_size.nano;
    }
    return sum;
}

static bool read(const cJSON *status, const char *part, const char *name, struct quantity *ret)
{
    CLEANUP_FREE char *text = NULL;
    const cJSON *node = json_get(json_get(status, part), name);
    return node && quantity_read(node, ret, &text, NULL) == 0;
}

static void look_at(const cJSON *quota, const char *name, const struct quantity *needed, struct buf *text)
{
    struct quantity hard, used;
    const cJSON *status = json_get(quota, "status");
    if (needed->nano == 0 || !read(status, "hard", name, &hard) || !read(status, "used", name, &used) ||
        hard.negative || used.negative)
        return;
    struct quantity left = hard;
    left.nano = hard.nano > used.nano ? hard.nano - used.nano : 0;
    if (quantity_compare(needed, &left) <= 0)
        return;
    CLEANUP_FREE char *left_text = quantity_exact_text(&left);
    CLEANUP_FREE char *needed_text = quantity_exact_text(needed);
    buf_addf(text, "%squota %s has %s bytes of %s left, the claims need %s more",
             text->length > 0 ? "; " : "", kube_object_name(quota), left_text, name, needed_text);
}

static bool has_scopes(const cJSON *quota)
{
    const cJSON *spec = json_get(quota, "spec");
    const cJSON *scopes = json_get(spec, "scopes");
    return json_get(spec, "scopeSelector") || (scopes && scopes->child);
}

char *quota_shortage(const cJSON *quotas, const struct volume_items *claims)
{
    struct buf text = BUF_INIT(TEXT_MAX);
    const cJSON *quota = NULL;
    cJSON_ArrayForEach (quota, quotas) {
        const cJSON *limit = NULL;
        if (!kube_object_name(quota) || has_scopes(quota))
            continue;
        cJSON_ArrayForEach (limit, json_path(quota, "status", "hard", NULL)) {
            const char *name = limit->string;
            bool is_of_class = str_ends_with(name, of_class);
            if (!is_of_class && strcmp(name, storage) != 0)
                continue;
            size_t length = is_of_class ? strlen(name) - strlen(of_class) : 0;
            struct quantity needed = growth_of_class(claims, is_of_class ? name : NULL, length);
            look_at(quota, name, &needed, &text);
        }
    }
    if (text.length > 0)
        return buf_take(&text);
    buf_done(&text);
    return NULL;
}
