/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/kinds.h"

#include "kubesim/quotas.h"
#include "kubesim/schema.h"
#include "kubesim/table.h"

static const char *const plain_fields[] = {"metadata.name", "metadata.namespace", NULL};
static const char *const pod_fields[] = {"metadata.name",
                                         "metadata.namespace",
                                         "spec.nodeName",
                                         "status.phase",
                                         "spec.restartPolicy",
                                         "spec.schedulerName",
                                         "spec.hostNetwork",
                                         "spec.serviceAccountName",
                                         "status.podIP",
                                         "status.nominatedNodeName",
                                         NULL};
static const char *const event_fields[] = {"metadata.name",
                                           "metadata.namespace",
                                           "involvedObject.kind",
                                           "involvedObject.namespace",
                                           "involvedObject.name",
                                           "involvedObject.uid",
                                           "involvedObject.apiVersion",
                                           "involvedObject.resourceVersion",
                                           "involvedObject.fieldPath",
                                           "reason",
                                           "reportingComponent",
                                           "source",
                                           "type",
                                           NULL};
static const char *const namespace_fields[] = {"metadata.name", "status.phase", NULL};
static const char *const node_fields[] = {"metadata.name", "spec.unschedulable", NULL};
static const char *const secret_fields[] = {"metadata.name", "metadata.namespace", "type", NULL};

struct builtin {
    const char *group;
    const char *version;
    const char *name;
    const char *plural;
    const char *short_name; /* or NULL; two are parted by a comma */
    unsigned flags;
    const struct kind_hooks *hooks;
    const char *const *fields;
    const char *schema;
};

enum {
    N = KIND_NAMESPACED,
    S = KIND_STATUS,
    U = KIND_UNCONDITIONAL_UPDATE,
    D = KIND_RETURNS_DELETED,
    G = KIND_GENERATION,
    C = KIND_CREATE_ON_UPDATE,
};

#define CORE "io.k8s.api.core.v1."
#define RBAC "io.k8s.api.rbac.v1."

static const struct builtin builtins[] = {
    {"", "v1", "Pod", "pods", "po", N | S | U | D | G, &pod_hooks, pod_fields, CORE "Pod"},
    {"", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", N | S | U | D, &claim_hooks,
     plain_fields, CORE "PersistentVolumeClaim"},
    {"", "v1", "PersistentVolume", "persistentvolumes", "pv", S | U | D, NULL, plain_fields,
     CORE "PersistentVolume"},
    {"", "v1", "Event", "events", "ev", N | U | C, &event_hooks, event_fields, CORE "Event"},
    {"", "v1", "Namespace", "namespaces", "ns", S | U, &namespace_hooks, namespace_fields, CORE "Namespace"},
    {"", "v1", "Node", "nodes", "no", S | U, NULL, node_fields, CORE "Node"},
    {"", "v1", "Service", "services", "svc", N | S | U | D, &service_hooks, plain_fields, CORE "Service"},
    {"", "v1", "Secret", "secrets", NULL, N | U, &secret_hooks, secret_fields, CORE "Secret"},
    {"", "v1", "ConfigMap", "configmaps", "cm", N | U, NULL, plain_fields, CORE "ConfigMap"},
    {"", "v1", "ResourceQuota", "resourcequotas", "quota", N | S | U | D, &quota_hooks, plain_fields,
     CORE "ResourceQuota"},
    {"", "v1", "LimitRange", "limitranges", "limits", N | U, &limit_range_hooks, plain_fields,
     CORE "LimitRange"},
    {"", "v1", "ServiceAccount", "serviceaccounts", "sa", N | U | D, NULL, plain_fields,
     CORE "ServiceAccount"},
    {"apps", "v1", "StatefulSet", "statefulsets", "sts", N | S | U | G | KIND_SCALE, &statefulset_hooks,
     plain_fields, "io.k8s.api.apps.v1.StatefulSet"},
    {"apps", "v1", "ControllerRevision", "controllerrevisions", NULL, N | U, &revision_hooks, plain_fields,
     "io.k8s.api.apps.v1.ControllerRevision"},
    {"coordination.k8s.io", "v1", "Lease", "leases", NULL, N | C, &lease_hooks, plain_fields,
     "io.k8s.api.coordination.v1.Lease"},
    {"storage.k8s.io", "v1", "StorageClass", "storageclasses", "sc", U | D, &class_hooks, plain_fields,
     "io.k8s.api.storage.v1.StorageClass"},
    {"rbac.authorization.k8s.io", "v1", "Role", "roles", NULL, N | U, NULL, plain_fields, RBAC "Role"},
    {"rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", NULL, N | U, NULL, plain_fields,
     RBAC "RoleBinding"},
    {"rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", NULL, U, NULL, plain_fields,
     RBAC "ClusterRole"},
    {"rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", NULL, U, NULL,
     plain_fields, RBAC "ClusterRoleBinding"},
    {"apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", "crd,crds", S | G,
     &definition_hooks, plain_fields,
     "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"},
    {"authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", NULL, KIND_REVIEW,
     NULL, plain_fields, "io.k8s.api.authorization.v1.SelfSubjectAccessReview"},
    {"authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", NULL, KIND_REVIEW, NULL,
     plain_fields, "io.k8s.api.authentication.v1.SelfSubjectReview"},
};

/* Groups of the real server that are known and not modelled; "group/plural", or "group/" for all of a group.
 */
static const char *const left_out[] = {
    "/bindings",
    "/componentstatuses",
    "/endpoints",
    "/podtemplates",
    "/replicationcontrollers",
    "apps/daemonsets",
    "apps/deployments",
    "apps/replicasets",
    "admissionregistration.k8s.io/",
    "apiregistration.k8s.io/",
    "authentication.k8s.io/tokenreviews",
    "authorization.k8s.io/",
    "autoscaling/",
    "batch/",
    "certificates.k8s.io/",
    "discovery.k8s.io/",
    "events.k8s.io/",
    "flowcontrol.apiserver.k8s.io/",
    "internal.apiserver.k8s.io/",
    "networking.k8s.io/",
    "node.k8s.io/",
    "policy/",
    "resource.k8s.io/",
    "scheduling.k8s.io/",
    "storage.k8s.io/",
};

bool kind_is_left_out(const char *group, const char *plural)
{
    for (size_t i = 0; i < ARRAY_SIZE(left_out); i++) {
        size_t group_length = strcspn(left_out[i], "/");
        if (strlen(group) != group_length || strncmp(group, left_out[i], group_length) != 0)
            continue;
        const char *name = left_out[i] + group_length + 1;
        if (!*name || strcmp(name, plural) == 0)
            return true;
    }
    return false;
}

static char *lower_case(const char *text)
{
    char *copy = xstrdup(text);
    for (char *at = copy; *at; at++)
        if (*at >= 'A' && *at <= 'Z')
            *at = (char)(*at + 'a' - 'A');
    return copy;
}

static char **split_names(const char *text)
{
    if (!text)
        return NULL;
    char **names = xcalloc(3, sizeof(names[0]));
    size_t length = strcspn(text, ",");
    names[0] = xstrndup(text, length);
    if (text[length])
        names[1] = xstrdup(text + length + 1);
    return names;
}

void kinds_add_builtin(struct kubesim *sim)
{
    sim->schemas = schema_set_builtin();
    for (size_t i = 0; i < ARRAY_SIZE(builtins); i++) {
        const struct builtin *builtin = &builtins[i];
        struct kind *kind = xcalloc(1, sizeof(*kind));
        kind->group = xstrdup(builtin->group);
        kind->version = xstrdup(builtin->version);
        kind->name = xstrdup(builtin->name);
        kind->plural = xstrdup(builtin->plural);
        kind->singular = lower_case(builtin->name);
        kind->list_name = xasprintf("%sList", builtin->name);
        kind->short_names = split_names(builtin->short_name);
        kind->fields = builtin->fields;
        kind->flags = builtin->flags;
        kind->hooks = builtin->hooks;
        kind->schema = schema_set_find(sim->schemas, builtin->schema);
        ENSURE(kind->schema);
        if (strcmp(builtin->plural, "pods") == 0 || strcmp(builtin->plural, "statefulsets") == 0) {
            kind->categories = xcalloc(2, sizeof(kind->categories[0]));
            kind->categories[0] = xstrdup("all");
        }
        kind_add(sim, kind);
    }
}

struct kind *kind_find(const struct kubesim *sim, const char *group, const char *plural)
{
    for (size_t i = 0; i < sim->kind_count; i++)
        if (strcmp(sim->kinds[i]->plural, plural) == 0 && strcmp(sim->kinds[i]->group, group) == 0)
            return sim->kinds[i];
    return NULL;
}

struct kind *kind_find_by_name(const struct kubesim *sim, const char *group, const char *name)
{
    for (size_t i = 0; i < sim->kind_count; i++)
        if (strcmp(sim->kinds[i]->name, name) == 0 && strcmp(sim->kinds[i]->group, group) == 0)
            return sim->kinds[i];
    return NULL;
}

void kind_add(struct kubesim *sim, struct kind *kind)
{
    PRE(sim->kind_count < KINDS_MAX);
    sim->kinds[sim->kind_count++] = kind;
}

static void free_names(char **names)
{
    for (char **name = names; name && *name; name++)
        free(*name);
    free(names);
}

void kind_free(struct kind *kind)
{
    store_drop_kind(kind);
    table_columns_free(kind->columns, kind->column_count);
    schema_set_free(kind->own_schemas);
    free_names(kind->short_names);
    free_names(kind->categories);
    free(kind->group);
    free(kind->version);
    free(kind->name);
    free(kind->plural);
    free(kind->singular);
    free(kind->list_name);
    free(kind->scale_spec_path);
    free(kind->scale_status_path);
    free(kind->scale_selector_path);
    free(kind);
}
