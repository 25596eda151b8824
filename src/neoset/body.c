/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/body.h"

#include "base/plant.h"
#include "base/time_text.h"
#include "kube/manifest.h"

char *body_claim_name(const struct neoset_fact *set, const struct claim_template *template, int ordinal)
{
    return xasprintf("%s-%s-%d", template->name, set->name, ordinal);
}

char *body_pod_name(const struct neoset_fact *set, int ordinal)
{
    return xasprintf("%s-%d", set->name, ordinal);
}

cJSON *body_owner_set(const struct neoset_fact *set, bool controller)
{
    return kube_owner_reference(KUBE_NEOSET, set->name, set->uid, controller);
}

cJSON *body_owner_pod(const struct pod_fact *pod)
{
    return kube_owner_reference(KUBE_POD, pod->name, pod->uid, false);
}

cJSON *body_owners(cJSON *adopt, const char *release)
{
    cJSON *body = json_new_object();
    cJSON *owners = json_add_array(json_add_object(body, "metadata"), "ownerReferences");
    if (adopt)
        json_append_item(owners, adopt);
    if (release) {
        cJSON *gone = json_new_object();
        json_add_str(gone, "$patch", "delete");
        json_add_str(gone, "uid", release);
        json_append_item(owners, gone);
    }
    return body;
}

/* The object that text holds, or an empty one. */
static cJSON *parse_object(const char *text)
{
    cJSON *tree = NULL;
    if (text && json_parse(text, strlen(text), &tree, NULL) == 0 && cJSON_IsObject(tree))
        return tree;
    json_delete(tree);
    return json_new_object();
}

/* --- pods ----------------------------------------------------------------------------------------------- */

static void add_identity(cJSON *labels, const struct neoset_fact *set, const char *revision, int ordinal)
{
    CLEANUP_FREE char *pod_name = body_pod_name(set, ordinal);
    CLEANUP_FREE char *index = xasprintf("%d", ordinal);
    json_set_str(labels, NEOSET_REVISION_LABEL, revision);
    json_set_str(labels, NEOSET_INDEX_LABEL, index);
    json_set_str(labels, NEOSET_POD_NAME_LABEL, pod_name);
}

static void add_gate(cJSON *spec)
{
    cJSON *gates = json_get(spec, "readinessGates");
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, gates) {
        if (str_equal(json_str(item, "conditionType"), NEOSET_GATE))
            return;
    }
    if (!cJSON_IsArray(gates)) {
        json_remove(spec, "readinessGates");
        gates = json_add_array(spec, "readinessGates");
    }
    cJSON *gate = json_new_object();
    json_add_str(gate, "conditionType", NEOSET_GATE);
    json_append_item(gates, gate);
}

/* A claim takes the place of a pod volume of its template's name. */
static void add_claim_volumes(cJSON *spec, const struct neoset_fact *set, int ordinal)
{
    if (set->claim_template_count == 0)
        return;
    cJSON *volumes = json_new_array();
    for (size_t i = 0; i < set->claim_template_count; i++) {
        CLEANUP_FREE char *claim = body_claim_name(set, &set->claim_templates[i], ordinal);
        cJSON *volume = json_new_object();
        json_add_str(volume, "name", set->claim_templates[i].name);
        json_add_str(json_add_object(volume, "persistentVolumeClaim"), "claimName", claim);
        json_append_item(volumes, volume);
    }
    const cJSON *own = NULL;
    cJSON_ArrayForEach (own, json_get(spec, "volumes")) {
        bool replaced = false;
        for (size_t i = 0; i < set->claim_template_count; i++)
            replaced = replaced || str_equal(json_str(own, "name"), set->claim_templates[i].name);
        if (!replaced)
            json_append_item(volumes, json_copy(own));
    }
    json_set_item(spec, "volumes", volumes);
}

cJSON *body_pod(const struct neoset_fact *set, const char *template_text, const char *revision, int ordinal,
                const char *name)
{
    CLEANUP_JSON cJSON *template = parse_object(template_text);
    CLEANUP_FREE char *own_name = body_pod_name(set, ordinal);
    cJSON *pod = kube_manifest(KUBE_POD, set->namespace, name ? name : own_name);
    cJSON *metadata = json_get(pod, "metadata");
    static const char *const maps[] = {"labels", "annotations", "finalizers"};
    for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
        const cJSON *value = json_path(template, "metadata", maps[i], NULL);
        if (value && !cJSON_IsNull(value))
            json_add_item(metadata, maps[i], json_copy(value));
    }
    add_identity(json_ensure_object(metadata, "labels"), set, revision, ordinal);
    json_append_item(json_add_array(metadata, "ownerReferences"), body_owner_set(set, true));
    const cJSON *template_spec = json_get(template, "spec");
    cJSON *spec = cJSON_IsObject(template_spec) ? json_copy(template_spec) : json_new_object();
    json_add_item(pod, "spec", spec);
    json_set_str(spec, "hostname", own_name);
    json_remove(spec, "subdomain");
    if (*set->service_name)
        json_add_str(spec, "subdomain", set->service_name);
    add_claim_volumes(spec, set, ordinal);
    if (!PLANT("no-gate-in-new-pods"))
        add_gate(spec);
    return pod;
}

/* --- pods that fetch images --------------------------------------------------------------------------- */

/* What the strictest cluster lets in; a user id of its own, or images of root would not be tried. */
static void add_restrictions(cJSON *pod_spec)
{
    enum { NOBODY = 65534 };
    cJSON *context = json_add_object(pod_spec, "securityContext");
    json_add_bool(context, "runAsNonRoot", true);
    json_add_int64(context, "runAsUser", NOBODY);
    json_add_int64(context, "runAsGroup", NOBODY);
    json_add_str(json_add_object(context, "seccompProfile"), "type", "RuntimeDefault");
}

static void add_fetching_container(cJSON *containers, const struct prefetch_image *image)
{
    static const char *const policies[] = {
        [PULL_IF_NOT_PRESENT] = "IfNotPresent", [PULL_ALWAYS] = "Always", [PULL_NEVER] = "Never"};
    cJSON *container = json_new_object();
    json_append_item(containers, container);
    json_add_str(container, "name", image->container);
    json_add_str(container, "image", image->image);
    if (image->policy != PULL_UNSAID)
        json_add_str(container, "imagePullPolicy", policies[image->policy]);
    json_append_item(json_add_array(container, "command"), json_new_str("/neoset-prefetch"));
    cJSON *context = json_add_object(container, "securityContext");
    json_add_bool(context, "allowPrivilegeEscalation", false);
    json_add_bool(context, "readOnlyRootFilesystem", true);
    json_append_item(json_add_array(json_add_object(context, "capabilities"), "drop"), json_new_str("ALL"));
}

cJSON *body_prefetch(const struct neoset_fact *set, const char *template_text, const char *name,
                     const char *node, const struct prefetch_image *images, size_t count)
{
    CLEANUP_JSON cJSON *template = parse_object(template_text);
    const cJSON *template_spec = json_get(template, "spec");
    cJSON *pod = kube_manifest(KUBE_POD, set->namespace, name);
    cJSON *metadata = json_get(pod, "metadata");
    json_add_str(json_add_object(metadata, "labels"), NEOSET_PREFETCH_LABEL, set->name);
    json_append_item(json_add_array(metadata, "ownerReferences"), body_owner_set(set, true));
    cJSON *spec = json_add_object(pod, "spec");
    json_add_str(spec, "nodeName", node);
    json_add_str(spec, "restartPolicy", "Never");
    json_add_str(spec, "hostname", "prefetch");
    json_add_bool(spec, "automountServiceAccountToken", false);
    json_add_bool(spec, "enableServiceLinks", false);
    json_add_int64(spec, "terminationGracePeriodSeconds", 0);
    /* The account, because pull secrets hang on it. */
    static const char *const kept[] = {"serviceAccountName", "imagePullSecrets"};
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
        const cJSON *value = json_get(template_spec, kept[i]);
        if (value && !cJSON_IsNull(value))
            json_add_item(spec, kept[i], json_copy(value));
    }
    cJSON *toleration = json_new_object();
    json_add_str(toleration, "operator", "Exists");
    json_append_item(json_add_array(spec, "tolerations"), toleration);
    add_restrictions(spec);
    cJSON *containers = json_add_array(spec, "containers");
    for (size_t i = 0; i < count; i++)
        add_fetching_container(containers, &images[i]);
    return pod;
}

/* --- claims --------------------------------------------------------------------------------------------- */

cJSON *body_claim(const struct neoset_fact *set, const struct claim_template *template, int ordinal)
{
    CLEANUP_JSON cJSON *tree = parse_object(template->text);
    CLEANUP_FREE char *name = body_claim_name(set, template, ordinal);
    cJSON *claim = kube_manifest(KUBE_CLAIM, set->namespace, name);
    cJSON *metadata = json_get(claim, "metadata");
    const cJSON *annotations = json_path(tree, "metadata", "annotations", NULL);
    if (cJSON_IsObject(annotations))
        json_add_item(metadata, "annotations", json_copy(annotations));
    const cJSON *labels = json_path(tree, "metadata", "labels", NULL);
    cJSON *all = cJSON_IsObject(labels) ? json_copy(labels) : json_new_object();
    json_add_item(metadata, "labels", all);
    CLEANUP_JSON cJSON *match = parse_object(set->match_labels);
    const cJSON *label = NULL;
    cJSON_ArrayForEach (label, match)
        json_set_item(all, label->string, json_copy(label));
    if (set->spec.delete_claims_with_set)
        json_append_item(json_add_array(metadata, "ownerReferences"), body_owner_set(set, false));
    const cJSON *spec = json_get(tree, "spec");
    json_add_item(claim, "spec", cJSON_IsObject(spec) ? json_copy(spec) : json_new_object());
    return claim;
}

/* --- patches -------------------------------------------------------------------------------------------- */

static char *gate_text(const char *update, const cJSON *witness)
{
    CLEANUP_JSON cJSON *message = json_new_object();
    if (update) {
        json_add_str(message, "update", update);
        json_add_item(message, "containers", json_copy(witness));
    }
    return json_print_sorted(message);
}

static cJSON *gate_body(const struct pod_fact *pod, bool open, const char *reason, const char *message,
                        int64_t wall_us)
{
    char now[TIME_TEXT_SIZE];
    time_format_seconds(wall_us, now);
    cJSON *body = json_new_object();
    cJSON *condition = json_new_object();
    json_append_item(json_add_array(json_add_object(body, "status"), "conditions"), condition);
    json_add_str(condition, "type", NEOSET_GATE);
    json_add_str(condition, "status", open ? "True" : "False");
    json_add_str(condition, "reason", reason);
    json_add_str(condition, "message", message);
    bool changes = pod->gate != (open ? IS_TRUE : IS_FALSE);
    if (changes)
        json_add_str(condition, "lastTransitionTime", now);
    return body;
}

cJSON *body_open_gate(const struct pod_fact *pod, const char *update, const cJSON *witness, int64_t wall_us)
{
    CLEANUP_FREE char *message = gate_text(update, witness);
    return gate_body(pod, true, update ? "Updated" : "InService", message, wall_us);
}

cJSON *body_close_gate(const struct pod_fact *pod, const char *revision, int64_t wall_us)
{
    CLEANUP_JSON cJSON *why = json_new_object();
    json_add_str(why, "target", revision);
    CLEANUP_FREE char *message = json_print_sorted(why);
    return gate_body(pod, false, "Updating", message, wall_us);
}

cJSON *body_update(const struct template_diff *diff, const char *revision, const struct in_place_state *state)
{
    cJSON *body = json_new_object();
    cJSON *metadata = json_add_object(body, "metadata");
    json_add_item(metadata, "labels", json_copy(diff->labels));
    json_set_str(json_get(metadata, "labels"), NEOSET_REVISION_LABEL, revision);
    json_add_item(metadata, "annotations", json_copy(diff->annotations));
    CLEANUP_FREE char *text = in_place_state_print(state);
    json_set_str(json_get(metadata, "annotations"), NEOSET_STATE_ANNOTATION, text);
    if (diff->image_count == 0)
        return body;
    cJSON *containers = json_add_array(json_add_object(body, "spec"), "containers");
    for (size_t i = 0; i < (PLANT("only-first-image-patched") ? 1 : diff->image_count); i++) {
        cJSON *container = json_new_object();
        json_add_str(container, "name", diff->images[i].container);
        json_add_str(container, "image", diff->images[i].to);
        json_append_item(containers, container);
    }
    return body;
}
