/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/quotas.h"

#include "kubesim/actor.h"
#include "kubesim/kinds.h"
#include "kubesim/quantity.h"

static const struct actor counter = {.manager = "kube-controller-manager",
                                     .user = "system:serviceaccount:kube-system:resourcequota-controller"};

static const char of_class[] = ".storageclass.storage.k8s.io/";

/* Asked at every write, so not by name. */
static const struct kind *kind_with(const struct kubesim *sim, const struct kind_hooks *hooks)
{
    size_t i = 0;
    while (sim->kinds[i]->hooks != hooks)
        i++;
    return sim->kinds[i];
}

/* --- what one object uses of one resource --------------------------------------------------------------- */

enum measure { MEASURE_NONE, MEASURE_COUNT, MEASURE_STORAGE };

/* How a quota's resource is counted over objects of a kind; *ret_class is borrowed from name, NULL: any. */
static enum measure measure_of(const char *name, const struct kind *kind, char **ret_class)
{
    *ret_class = NULL;
    CLEANUP_FREE char *counted = NULL;
    if (str_starts_with(name, "count/")) {
        counted = kind_qualified_resource(kind);
        return strcmp(name + strlen("count/"), counted) == 0 ? MEASURE_COUNT : MEASURE_NONE;
    }
    if (strcmp(name, "pods") == 0)
        return kind->hooks == &pod_hooks ? MEASURE_COUNT : MEASURE_NONE;
    if (kind->hooks != &claim_hooks)
        return MEASURE_NONE;
    const char *class = strstr(name, of_class);
    const char *what = class ? class + strlen(of_class) : name;
    enum measure measure = strcmp(what, "requests.storage") == 0         ? MEASURE_STORAGE
                           : strcmp(what, "persistentvolumeclaims") == 0 ? MEASURE_COUNT
                                                                         : MEASURE_NONE;
    if (class && measure != MEASURE_NONE)
        *ret_class = xstrndup(name, (size_t)(class - name));
    return measure;
}

/* A pod that ended counts for count/pods, but not for pods. */
static bool is_counted(const char *name, const cJSON *object)
{
    const char *phase = json_path_str(object, "status", "phase", NULL);
    bool ended = str_equal(phase, "Succeeded") || str_equal(phase, "Failed");
    return strcmp(name, "pods") != 0 || !ended;
}

static struct quantity usage_of(const char *name, const struct kind *kind, const cJSON *object)
{
    struct quantity none = {0};
    struct quantity size = {0};
    CLEANUP_FREE char *class = NULL;
    enum measure measure = object ? measure_of(name, kind, &class) : MEASURE_NONE;
    if (measure == MEASURE_NONE || (class && !str_equal(claim_class_name(object), class)) ||
        !is_counted(name, object))
        return none;
    const char *request = measure == MEASURE_COUNT
                              ? "1"
                              : json_path_str(object, "spec", "resources", "requests", "storage", NULL);
    return quantity_from_text(request, &size) ? size : none;
}

static struct quantity used_in(const struct kubesim *sim, const char *namespace, const char *name)
{
    struct quantity sum = {0};
    CLEANUP_FREE char *prefix = xasprintf("%s/", namespace);
    for (size_t k = 0; k < sim->kind_count; k++) {
        const struct kind *kind = sim->kinds[k];
        CLEANUP_FREE char *class = NULL;
        if (!(kind->flags & KIND_NAMESPACED) || measure_of(name, kind, &class) == MEASURE_NONE)
            continue;
        for (size_t i = store_lower_bound(kind, prefix); i < kind->object_count; i++) {
            if (!str_starts_with(kind->objects[i]->key, prefix))
                break;
            const struct quantity one = usage_of(name, kind, object_tree(kind->objects[i]));
            quantity_add(&sum, &one);
        }
    }
    return sum;
}

static bool is_storage(const char *name)
{
    return strstr(name, "requests.storage") != NULL;
}

/* --- admission ------------------------------------------------------------------------------------------ */

struct excess {
    struct buf requested;
    struct buf used;
    struct buf limited;
};

static void add_part(struct buf *buf, const char *name, const struct quantity *amount)
{
    CLEANUP_FREE char *text = quantity_text(amount, is_storage(name));
    buf_addf(buf, "%s%s=%s", buf->length ? "," : "", name, text);
}

static void check_one(struct call *call, const struct kind *kind, const cJSON *object, const cJSON *old,
                      const cJSON *hard, struct excess *excess)
{
    const char *name = hard->string;
    struct quantity limit = {0};
    struct quantity wanted = usage_of(name, kind, object);
    const struct quantity before = usage_of(name, kind, old);
    if (quantity_compare(&wanted, &before) <= 0 || !quantity_from_node(hard, &limit))
        return;
    wanted.nano -= before.nano;
    struct quantity used = used_in(call->sim, call->namespace, name);
    struct quantity sum = used;
    quantity_add(&sum, &wanted);
    if (quantity_compare(&sum, &limit) <= 0)
        return;
    add_part(&excess->requested, name, &wanted);
    add_part(&excess->used, name, &used);
    CLEANUP_FREE char *shown = quantity_canonical(hard);
    buf_addf(&excess->limited, "%s%s=%s", excess->limited.length ? "," : "", name, shown);
}

static int refuse_forbidden(struct call *call, const struct kind *kind, const cJSON *object, const char *why)
{
    CLEANUP_FREE char *resource = kind_qualified_resource(kind);
    const char *name = meta_str(object, "name");
    return refuse_object(call, kind, name, 403, "Forbidden", "%s \"%s\" is forbidden: %s", resource, name,
                         why);
}

int quotas_admit(struct call *call, const struct kind *kind, const cJSON *object, const cJSON *old)
{
    const struct kind *quotas = kind_with(call->sim, &quota_hooks);
    if (quotas->object_count == 0 || !call->namespace || kind == quotas || call->subresource)
        return 0;
    CLEANUP_FREE char *prefix = xasprintf("%s/", call->namespace);
    for (size_t i = store_lower_bound(quotas, prefix); i < quotas->object_count; i++) {
        if (!str_starts_with(quotas->objects[i]->key, prefix))
            break;
        const cJSON *quota = object_tree(quotas->objects[i]);
        struct excess excess = {BUF_INIT(65536), BUF_INIT(65536), BUF_INIT(65536)};
        const cJSON *hard = NULL;
        cJSON_ArrayForEach (hard, json_path(quota, "spec", "hard", NULL))
            check_one(call, kind, object, old, hard, &excess);
        CLEANUP_FREE char *why = excess.limited.length
                                     ? xasprintf("exceeded quota: %s, requested: %s, used: %s, limited: %s",
                                                 meta_str(quota, "name"), buf_text(&excess.requested),
                                                 buf_text(&excess.used), buf_text(&excess.limited))
                                     : NULL;
        buf_done(&excess.requested);
        buf_done(&excess.used);
        buf_done(&excess.limited);
        if (why)
            return refuse_forbidden(call, kind, object, why);
    }
    return 0;
}

/* NULL: within the limit. The caller's. */
static char *beyond(const cJSON *item, const cJSON *claim)
{
    const cJSON *request = json_path(claim, "spec", "resources", "requests", "storage", NULL);
    struct quantity wanted = {0};
    (void)quantity_from_node(request, &wanted);
    CLEANUP_FREE char *shown = quantity_canonical(request);
    const char *const bounds[] = {"min", "max"};
    for (size_t i = 0; i < ARRAY_SIZE(bounds); i++) {
        struct quantity bound;
        const cJSON *node = json_path(item, bounds[i], "storage", NULL);
        if (!node || !quantity_from_node(node, &bound))
            continue;
        int order = quantity_compare(&wanted, &bound);
        CLEANUP_FREE char *limit = quantity_canonical(node);
        if (i == 0 ? order < 0 : order > 0)
            return xasprintf("%simum storage usage per PersistentVolumeClaim is %s, but request is %s",
                             bounds[i], limit, shown ? shown : "0");
    }
    return NULL;
}

int limits_admit(struct call *call, const struct kind *kind, const cJSON *object, const cJSON *old)
{
    (void)old;
    const struct kind *ranges = kind_with(call->sim, &limit_range_hooks);
    if (kind->hooks != &claim_hooks || ranges->object_count == 0 || call->subresource)
        return 0;
    CLEANUP_FREE char *prefix = xasprintf("%s/", call->namespace);
    for (size_t i = store_lower_bound(ranges, prefix); i < ranges->object_count; i++) {
        if (!str_starts_with(ranges->objects[i]->key, prefix))
            break;
        const cJSON *item = NULL;
        cJSON_ArrayForEach (item, json_path(object_tree(ranges->objects[i]), "spec", "limits", NULL)) {
            CLEANUP_FREE char *why = beyond(item, object);
            if (why)
                return refuse_forbidden(call, kind, object, why);
        }
    }
    return 0;
}

/* --- what is not modelled is refused -------------------------------------------------------------------- */

static bool is_countable(const char *name)
{
    static const char *const known[] = {"requests.storage", "persistentvolumeclaims", "pods"};
    const char *class = strstr(name, of_class);
    if (class)
        name = class + strlen(of_class);
    for (size_t i = 0; i < ARRAY_SIZE(known) - (class ? 1 : 0); i++)
        if (strcmp(known[i], name) == 0)
            return true;
    return !class && str_starts_with(name, "count/");
}

static int admit_quota(struct call *call, cJSON *object, const cJSON *old)
{
    (void)old;
    const cJSON *spec = json_get(object, "spec");
    const cJSON *hard = NULL;
    cJSON_ArrayForEach (hard, json_get(spec, "hard"))
        if (!is_countable(hard->string))
            return refuse_not_modelled(call, "a quota on %s", hard->string);
    if (json_get(spec, "scopes") || json_get(spec, "scopeSelector"))
        return refuse_not_modelled(call, "scopes of quotas");
    return 0;
}

static int admit_limits(struct call *call, cJSON *object, const cJSON *old)
{
    (void)old;
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, json_path(object, "spec", "limits", NULL)) {
        const char *type = json_str(item, "type");
        if (!str_equal(type, "PersistentVolumeClaim"))
            return refuse_not_modelled(call, "limits on a %s", type ? type : "nothing");
        const cJSON *member = NULL;
        cJSON_ArrayForEach (member, item)
            if (strcmp(member->string, "type") != 0 && strcmp(member->string, "min") != 0 &&
                strcmp(member->string, "max") != 0)
                return refuse_not_modelled(call, "%s of a limit on claims", member->string);
    }
    return 0;
}

const struct kind_hooks quota_hooks = {.admit = admit_quota};
const struct kind_hooks limit_range_hooks = {.admit = admit_limits};

/* --- status --------------------------------------------------------------------------------------------- */

void quotas_look_soon(struct kubesim *sim, const struct kind *kind)
{
    if (kind->hooks == &quota_hooks || kind_with(sim, &quota_hooks)->object_count > 0)
        sim->quotas_due_us = MIN(sim->quotas_due_us, sim_now_us(sim));
}

static void write_status(struct kubesim *sim, const cJSON *quota)
{
    const char *namespace = meta_str(quota, "namespace");
    CLEANUP_JSON cJSON *status = json_new_object();
    const cJSON *hard = json_path(quota, "spec", "hard", NULL);
    json_add_item(status, "hard", hard ? json_copy(hard) : json_new_object());
    cJSON *used = json_add_object(status, "used");
    const cJSON *one = NULL;
    cJSON_ArrayForEach (one, hard) {
        const struct quantity sum = used_in(sim, namespace, one->string);
        CLEANUP_FREE char *text = quantity_text(&sum, is_storage(one->string));
        json_add_str(used, one->string, text);
    }
    if (json_equal(status, json_get(quota, "status")))
        return;
    cJSON *patch = json_new_object();
    json_add_item(patch, "status", STEAL(status));
    (void)actor_ask(sim, &counter, "PATCH", MERGE_TYPE, patch,
                    "/api/v1/namespaces/%s/resourcequotas/%s/status", namespace, meta_str(quota, "name"));
}

void quotas_tick(struct kubesim *sim)
{
    if (sim->quotas_due_us > sim_now_us(sim))
        return;
    const struct kind *quotas = kind_with(sim, &quota_hooks);
    CLEANUP_JSON cJSON *copies = json_new_array();
    for (size_t i = 0; i < quotas->object_count; i++)
        json_append_item(copies, json_copy(object_tree(quotas->objects[i])));
    const cJSON *quota = NULL;
    cJSON_ArrayForEach (quota, copies)
        write_status(sim, quota);
    sim->quotas_due_us = INT64_MAX;
}
