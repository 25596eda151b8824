/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/migration.h"

#include "base/buf.h"
#include "kube/manifest.h"
#include "kube/object.h"
#include "neoset/defaults.h"
#include "neoset/fact.h"
#include "neoset/revision.h"
#include "volume/keep.h"

#include <inttypes.h>

enum { TEXT_MAX = 1 << 20, NAME_BYTES_MAX = 52, COLLISIONS_MAX = 20, REFUSALS_MAX = 200 };

/* --- lists ---------------------------------------------------------------------------------------------- */

static void add(struct migration_list *list, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct migration_list *list, const char *format, ...)
{
    if (list->count >= REFUSALS_MAX)
        return;
    va_list args;
    va_start(args, format);
    list->items = xreallocarray(list->items, list->count + 1, sizeof(*list->items));
    list->items[list->count++] = xvasprintf(format, args);
    va_end(args);
}

void migration_list_done(struct migration_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct migration_list){0};
}

char *migration_list_text(const struct migration_list *list)
{
    struct buf text = BUF_INIT(TEXT_MAX);
    for (size_t i = 0; i < list->count; i++)
        buf_addf(&text, "%s%s", i > 0 ? "; " : "", list->items[i]);
    return buf_take(&text);
}

/* --- what cannot be carried over ------------------------------------------------------------------------ */

static bool is_absent(const cJSON *node)
{
    return !node || cJSON_IsNull(node) || ((cJSON_IsObject(node) || cJSON_IsArray(node)) && !node->child);
}

/* Every member of object that is not in known (ended by NULL) and says something. */
static void refuse_unknown(const cJSON *object, const char *path, const char *const *known,
                           struct migration_list *ret)
{
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, object) {
        size_t i = 0;
        while (known[i] && strcmp(known[i], member->string) != 0)
            i++;
        if (!known[i] && !is_absent(member))
            add(ret, "%s.%s: a NeoSet has no such field", path, member->string);
    }
}

static void refuse_metadata(const cJSON *statefulset, struct migration_list *ret)
{
    const cJSON *metadata = json_get(statefulset, "metadata");
    const char *name = kube_object_name(statefulset);
    if (strchr(name, '.'))
        add(ret, "metadata.name: %s has a dot, which the name of a NeoSet must not have", name);
    if (strlen(name) > NAME_BYTES_MAX)
        add(ret, "metadata.name: %s is longer than the %d characters of a NeoSet's name", name,
            NAME_BYTES_MAX);
    const cJSON *owner = NULL;
    cJSON_ArrayForEach (owner, json_get(metadata, "ownerReferences"))
        add(ret, "metadata.ownerReferences: it belongs to %s %s, which would make it again",
            json_str(owner, "kind") ? json_str(owner, "kind") : "?",
            json_str(owner, "name") ? json_str(owner, "name") : "?");
    const cJSON *finalizer = NULL;
    cJSON_ArrayForEach (finalizer, json_get(metadata, "finalizers"))
        if (cJSON_IsString(finalizer))
            add(ret, "metadata.finalizers: %s would hold it when it is to go", finalizer->valuestring);
}

static void refuse_strategy(const cJSON *strategy, struct migration_list *ret)
{
    static const char *const members[] = {"type", "rollingUpdate", NULL};
    static const char *const rolling[] = {"partition", "maxUnavailable", NULL};
    const char *type = json_str(strategy, "type");
    if (type && strcmp(type, "RollingUpdate") != 0)
        add(ret,
            "spec.updateStrategy.type: %s is not known to a NeoSet (spec.updateStrategy.pause holds updates "
            "back): set RollingUpdate first",
            type);
    refuse_unknown(strategy, "spec.updateStrategy", members, ret);
    refuse_unknown(json_get(strategy, "rollingUpdate"), "spec.updateStrategy.rollingUpdate", rolling, ret);
}

static void refuse_claim(const cJSON *claim, int index, struct migration_list *ret)
{
    static const char *const members[] = {"apiVersion", "kind", "metadata", "spec", "status", NULL};
    static const char *const metadata[] = {"name", "labels", "annotations", "creationTimestamp", NULL};
    static const char *const spec[] = {"accessModes", "selector",      "resources",
                                       "volumeName",  "volumeMode",    "storageClassName",
                                       "dataSource",  "dataSourceRef", "volumeAttributesClassName",
                                       NULL};
    static const char *const resources[] = {"requests", "limits", NULL};
    static const char *const amounts[] = {"storage", NULL};
    const char *name = json_path_str(claim, "metadata", "name", NULL);
    CLEANUP_FREE char *path = name ? xasprintf("spec.volumeClaimTemplates[%s]", name)
                                   : xasprintf("spec.volumeClaimTemplates[%d]", index);
    const cJSON *node = json_get(claim, "spec");
    refuse_unknown(claim, path, members, ret);
    CLEANUP_FREE char *in_metadata = xasprintf("%s.metadata", path);
    refuse_unknown(json_get(claim, "metadata"), in_metadata, metadata, ret);
    CLEANUP_FREE char *in_spec = xasprintf("%s.spec", path);
    refuse_unknown(node, in_spec, spec, ret);
    CLEANUP_FREE char *in_resources = xasprintf("%s.spec.resources", path);
    refuse_unknown(json_get(node, "resources"), in_resources, resources, ret);
    for (size_t i = 0; resources[i]; i++) {
        CLEANUP_FREE char *in_amounts = xasprintf("%s.%s", in_resources, resources[i]);
        refuse_unknown(json_path(node, "resources", resources[i], NULL), in_amounts, amounts, ret);
    }
}

static void refuse_template(const cJSON *template, struct migration_list *ret)
{
    static const char *const members[] = {"metadata", "spec", NULL};
    static const char *const lost[] = {"finalizers", "ownerReferences"};
    refuse_unknown(template, "spec.template", members, ret);
    for (size_t i = 0; i < ARRAY_SIZE(lost); i++)
        if (!is_absent(json_path(template, "metadata", lost[i], NULL)))
            add(ret, "spec.template.metadata.%s: the pods of a NeoSet get none", lost[i]);
}

void migration_refuse(const cJSON *statefulset, struct migration_list *ret)
{
    static const char *const members[] = {"replicas",        "selector",
                                          "template",        "volumeClaimTemplates",
                                          "serviceName",     "podManagementPolicy",
                                          "updateStrategy",  "revisionHistoryLimit",
                                          "minReadySeconds", "persistentVolumeClaimRetentionPolicy",
                                          "ordinals",        NULL};
    static const char *const retention[] = {"whenDeleted", "whenScaled", NULL};
    static const char *const ordinals[] = {"start", NULL};
    const cJSON *spec = json_get(statefulset, "spec");
    *ret = (struct migration_list){0};
    refuse_metadata(statefulset, ret);
    refuse_unknown(spec, "spec", members, ret);
    if (json_int64_or(spec, "replicas", 1) > NEOSET_REPLICAS_MAX)
        add(ret, "spec.replicas: a NeoSet has at most %d", NEOSET_REPLICAS_MAX);
    refuse_template(json_get(spec, "template"), ret);
    int index = 0;
    const cJSON *claim = NULL;
    cJSON_ArrayForEach (claim, json_get(spec, "volumeClaimTemplates"))
        refuse_claim(claim, index++, ret);
    refuse_strategy(json_get(spec, "updateStrategy"), ret);
    refuse_unknown(json_get(spec, "persistentVolumeClaimRetentionPolicy"),
                   "spec.persistentVolumeClaimRetentionPolicy", retention, ret);
    refuse_unknown(json_get(spec, "ordinals"), "spec.ordinals", ordinals, ret);
}

/* --- labels of those who deploy ------------------------------------------------------------------------- */

/* Who tracks by them takes what carries them, and is not in his repository, away. */
static const char *const tracking_labels[] = {"app.kubernetes.io/instance", "argocd.argoproj.io/instance"};

static bool is_tracking(const char *label)
{
    for (size_t i = 0; i < ARRAY_SIZE(tracking_labels); i++)
        if (strcmp(tracking_labels[i], label) == 0)
            return true;
    return false;
}

void migration_notes(const cJSON *statefulset, struct migration_list *ret)
{
    *ret = (struct migration_list){0};
    const char *manager = kube_object_label(statefulset, "app.kubernetes.io/managed-by");
    const char *name = kube_object_name(statefulset);
    if (manager)
        add(ret, "%s manages it: what is deployed next must hold the NeoSet, not the StatefulSet", manager);
    else
        add(ret,
            "what deploys it (a chart, a repository) must hold the NeoSet from now on, not the StatefulSet");
    add(ret, "an autoscaler that names StatefulSet %s must name NeoSet %s", name, name);
    const cJSON *label = NULL;
    cJSON_ArrayForEach (label, json_path(statefulset, "metadata", "labels", NULL))
        if (is_tracking(label->string))
            add(ret, "the label %s is not carried over: who tracks by it might take the NeoSet away",
                label->string);
}

/* --- the NeoSet ----------------------------------------------------------------------------------------- */

static void copy_member(const cJSON *from, cJSON *to, const char *key)
{
    const cJSON *node = json_get(from, key);
    if (node && !cJSON_IsNull(node))
        json_set_item(to, key, json_copy(node));
}

static cJSON *claims_of(const cJSON *spec)
{
    cJSON *claims = json_new_array();
    const cJSON *claim = NULL;
    cJSON_ArrayForEach (claim, json_get(spec, "volumeClaimTemplates")) {
        cJSON *copy = json_copy(claim);
        json_remove(copy, "status");
        json_remove(json_get(copy, "metadata"), "creationTimestamp");
        json_append_item(claims, copy);
    }
    return claims;
}

static cJSON *strategy_of(const cJSON *spec)
{
    cJSON *strategy = json_new_object();
    const cJSON *rolling = json_path(spec, "updateStrategy", "rollingUpdate", NULL);
    json_add_str(strategy, "type", "InPlace");
    copy_member(rolling, strategy, "partition");
    copy_member(rolling, strategy, "maxUnavailable");
    /* Nothing moves before every pod is seen to be its own and on its revision. */
    json_add_bool(strategy, "pause", true);
    return strategy;
}

static cJSON *template_of(const cJSON *spec)
{
    cJSON *template = json_copy(json_get(spec, "template"));
    json_remove(json_get(template, "metadata"), "creationTimestamp");
    return template;
}

static cJSON *spec_of(const cJSON *statefulset)
{
    static const char *const same[] = {"replicas",
                                       "selector",
                                       "serviceName",
                                       "podManagementPolicy",
                                       "minReadySeconds",
                                       "ordinals",
                                       "persistentVolumeClaimRetentionPolicy",
                                       "revisionHistoryLimit"};
    const cJSON *from = json_get(statefulset, "spec");
    cJSON *spec = json_new_object();
    for (size_t i = 0; i < ARRAY_SIZE(same); i++)
        copy_member(from, spec, same[i]);
    json_add_item(spec, "template", template_of(from));
    json_add_item(spec, "volumeClaimTemplates", claims_of(from));
    json_add_item(spec, "updateStrategy", strategy_of(from));
    return spec;
}

cJSON *migration_neoset(const cJSON *statefulset)
{
    cJSON *neoset =
        kube_manifest(KUBE_NEOSET, kube_object_namespace(statefulset), kube_object_name(statefulset));
    cJSON *metadata = json_get(neoset, "metadata");
    cJSON *labels = json_new_object();
    const cJSON *label = NULL;
    cJSON_ArrayForEach (label, json_path(statefulset, "metadata", "labels", NULL))
        if (!is_tracking(label->string))
            json_add_item(labels, label->string, json_copy(label));
    if (labels->child)
        json_add_item(metadata, "labels", labels);
    else
        json_delete(labels);
    json_add_str(json_add_object(metadata, "annotations"), NEOSET_ADOPTS_ANNOTATION,
                 kube_object_uid(statefulset));
    json_add_item(neoset, "spec", spec_of(statefulset));
    return neoset;
}

char *migration_adopts(const cJSON *neoset, bool *ret_is_gone)
{
    const char *text = kube_object_annotation(neoset, NEOSET_ADOPTS_ANNOTATION);
    *ret_is_gone = text && str_ends_with(text, NEOSET_ADOPTS_GONE);
    size_t length = text ? strlen(text) - (*ret_is_gone ? strlen(NEOSET_ADOPTS_GONE) : 0) : 0;
    return text ? xstrndup(text, length) : NULL;
}

char *migration_adopts_gone(const char *uid)
{
    return xasprintf("%s%s", uid, NEOSET_ADOPTS_GONE);
}

static void add_not_kept(const cJSON *sent, const cJSON *kept, const char *path, struct migration_list *ret)
{
    if (cJSON_IsObject(sent)) {
        const cJSON *member = NULL;
        cJSON_ArrayForEach (member, sent) {
            CLEANUP_FREE char *below = xasprintf("%s.%s", path, member->string);
            if (!is_absent(member))
                add_not_kept(member, json_get(kept, member->string), below, ret);
        }
    } else if (cJSON_IsArray(sent) && cJSON_GetArraySize(sent) == cJSON_GetArraySize(kept)) {
        const cJSON *there = kept->child;
        int index = 0;
        for (const cJSON *item = sent->child; item; item = item->next, there = there->next, index++) {
            CLEANUP_FREE char *below = xasprintf("%s[%d]", path, index);
            add_not_kept(item, there, below, ret);
        }
    } else if (!kept || !json_equal(sent, kept)) {
        add(ret, "%s: the server does not keep it: is the definition (deploy/crd.yaml) of this version?",
            path);
    }
}

void migration_not_kept(const cJSON *sent, const cJSON *answered, struct migration_list *ret)
{
    *ret = (struct migration_list){0};
    add_not_kept(json_get(sent, "spec"), json_get(answered, "spec"), "spec", ret);
}

/* What from has and to has not becomes null; the server's defaults in from do not count. */
cJSON *migration_neoset_patch(const cJSON *neoset, const cJSON *statefulset)
{
    CLEANUP_JSON cJSON *wanted = spec_of(statefulset);
    const cJSON *spec = json_get(neoset, "spec");
    CLEANUP_JSON cJSON *patch = json_new_object();
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, wanted) {
        struct migration_list differs = {0};
        add_not_kept(member, json_get(spec, member->string), member->string, &differs);
        bool is_template = strcmp(member->string, "template") == 0;
        char ours[65], theirs[65];
        defaults_digest_template(json_get(wanted, "template"), ours);
        defaults_digest_template(json_get(spec, "template"), theirs);
        if (is_template ? strcmp(ours, theirs) != 0 : differs.count > 0)
            json_add_item(patch, member->string, json_copy(member));
        migration_list_done(&differs);
    }
    if (!patch->child)
        return NULL;
    cJSON *body = json_new_object();
    json_add_item(body, "spec", STEAL(patch));
    return body;
}

static void digest_of_revision(const cJSON *revision, char digest[static 65])
{
    CLEANUP_JSON cJSON *template = json_copy(json_path(revision, "data", "spec", "template", NULL));
    json_remove(template, "$patch");
    defaults_digest_template(template, digest);
}

bool migration_means(const cJSON *revision, const cJSON *set)
{
    char ours[65], theirs[65];
    if (!json_path(revision, "data", "spec", "template", NULL))
        return false;
    digest_of_revision(revision, ours);
    defaults_digest_template(json_path(set, "spec", "template", NULL), theirs);
    return strcmp(ours, theirs) == 0;
}

/* --- what is kept --------------------------------------------------------------------------------------- */

cJSON *migration_kept(const cJSON *statefulset, const cJSON *neoset)
{
    cJSON *kept = keep_object(statefulset);
    cJSON *metadata = json_get(kept, "metadata");
    json_add_str(json_add_object(metadata, "annotations"), KEEP_ADOPTED_BY, kube_object_name(statefulset));
    if (neoset) {
        /* No controller's: it only goes with the NeoSet when that is deleted with all it has. */
        cJSON *owner =
            kube_owner_reference(KUBE_NEOSET, kube_object_name(neoset), kube_object_uid(neoset), false);
        json_append_item(json_add_array(metadata, "ownerReferences"), owner);
    }
    return kept;
}

/* --- the way back --------------------------------------------------------------------------------------- */

static const char *size_of(const cJSON *claim)
{
    return json_path_str(claim, "spec", "resources", "requests", "storage", NULL);
}

/* The manifest's claim templates with the NeoSet's sizes; NULL: no size differs. */
static cJSON *grown_claims(const cJSON *neoset, const cJSON *manifest)
{
    CLEANUP_JSON cJSON *claims = json_copy(json_path(manifest, "spec", "volumeClaimTemplates", NULL));
    bool any = false;
    cJSON *claim = NULL;
    cJSON_ArrayForEach (claim, claims) {
        const cJSON *now = NULL;
        cJSON_ArrayForEach (now, json_path(neoset, "spec", "volumeClaimTemplates", NULL)) {
            bool same_name = str_equal(json_path_str(now, "metadata", "name", NULL),
                                       json_path_str(claim, "metadata", "name", NULL));
            if (!same_name || !size_of(now) || str_equal(size_of(now), size_of(claim)))
                continue;
            any = true;
            cJSON *requests = json_path(claim, "spec", "resources", "requests", NULL);
            if (cJSON_IsObject(requests))
                json_set_str(requests, "storage", size_of(now));
        }
    }
    return any ? STEAL(claims) : NULL;
}

cJSON *migration_return(const cJSON *neoset, const cJSON *manifest)
{
    CLEANUP_JSON cJSON *patch = json_new_object();
    int64_t replicas = json_int64_or(json_get(neoset, "spec"), "replicas", 1);
    if (replicas != json_int64_or(json_get(manifest, "spec"), "replicas", 1))
        json_add_int64(patch, "replicas", replicas);
    cJSON *claims = grown_claims(neoset, manifest);
    if (claims)
        json_add_item(patch, "volumeClaimTemplates", claims);
    return patch->child ? STEAL(patch) : NULL;
}

void migration_refuse_return(const cJSON *neoset, const cJSON *manifest, struct migration_list *ret)
{
    char ours[65], theirs[65];
    *ret = (struct migration_list){0};
    defaults_digest_template(json_path(neoset, "spec", "template", NULL), ours);
    defaults_digest_template(json_path(manifest, "spec", "template", NULL), theirs);
    const char *name = kube_object_name(neoset);
    if (strcmp(ours, theirs) != 0)
        add(ret,
            "the pod template is not the StatefulSet's any more: a rollout has begun (`neosetctl undo %s` "
            "goes "
            "back to it, if it is still in the history)",
            name);
    int64_t start = json_int64_or(json_path(neoset, "spec", "ordinals", NULL), "start", 0);
    int64_t was = json_int64_or(json_path(manifest, "spec", "ordinals", NULL), "start", 0);
    if (start != was)
        add(ret, "spec.ordinals.start was %" PRId64 " and is %" PRId64 ": its pods have other names", was,
            start);
    if (kube_object_is_deleting(neoset))
        add(ret, "NeoSet %s is being deleted", name);
}

bool migration_is_left_over(const cJSON *revision, const char *name)
{
    if (kube_object_controller(revision) || !kube_object_name(revision) ||
        !json_path(revision, "data", "spec", "template", NULL))
        return false;
    char digest[65];
    digest_of_revision(revision, digest);
    for (int collisions = 0; collisions < COLLISIONS_MAX; collisions++) {
        CLEANUP_FREE char *own = revision_name(name, digest, collisions);
        if (str_equal(own, kube_object_name(revision)))
            return true;
    }
    return false;
}
