/* SPDX-License-Identifier: Apache-2.0
 *
 * The resources that neoset speaks of, and their paths. Everything is percent-encoded; nothing has a fixed
 * size. */
#pragma once

#include "base/error.h"

/* X(name, kind, group, version, plural, namespaced) */
#define KUBE_RESOURCES(X)                                                                                    \
    X(NEOSET, "NeoSet", "apps.neo.io", "v1alpha1", "neosets", true)                                          \
    X(POD, "Pod", "", "v1", "pods", true)                                                                    \
    X(CLAIM, "PersistentVolumeClaim", "", "v1", "persistentvolumeclaims", true)                              \
    X(EVENT, "Event", "", "v1", "events", true)                                                              \
    X(REVISION, "ControllerRevision", "apps", "v1", "controllerrevisions", true)                             \
    X(STATEFULSET, "StatefulSet", "apps", "v1", "statefulsets", true)                                        \
    X(CLASS, "StorageClass", "storage.k8s.io", "v1", "storageclasses", false)                                \
    X(QUOTA, "ResourceQuota", "", "v1", "resourcequotas", true)                                              \
    X(LEASE, "Lease", "coordination.k8s.io", "v1", "leases", true)                                           \
    X(DEFINITION, "CustomResourceDefinition", "apiextensions.k8s.io", "v1", "customresourcedefinitions",     \
      false)                                                                                                 \
    X(SELF_REVIEW, "SelfSubjectAccessReview", "authorization.k8s.io", "v1", "selfsubjectaccessreviews", false)

enum kube_resource {
#define X(name, kind, group, version, plural, namespaced) KUBE_##name,
    KUBE_RESOURCES(X)
#undef X
        KUBE_RESOURCE_COUNT,
};

struct kube_resource_info {
    const char *kind;
    const char *group; /* "" for the core group */
    const char *version;
    const char *plural;
    bool namespaced;
};

const struct kube_resource_info *kube_resource_info(enum kube_resource resource);
/* By kind, plural, singular or kubectl's short name ("neo", "po", "pvc", "sts" ...), in any case;
 * -ERROR_NOT_FOUND. */
int kube_resource_by_name(const char *name, enum kube_resource *ret);
enum { KUBE_OTHERS_MAX = 1024 };
/* A resource that is not in the table above, as a server's discovery names it (a user's manifest may be of
 * any kind). The same kind and group are the same resource for as long as the process lives: its info, its
 * paths and kube_resource_by_name know it from now on. This list of names only grows, and nothing else is
 * kept beside it: the one thing here that changes. -ERROR_TOO_LARGE: more than KUBE_OTHERS_MAX. */
int kube_resource_intern(const struct kube_resource_info *info, enum kube_resource *ret);
/* "apps/v1/deployments/namespaced", from which kube_resource_of_text makes the same resource again in another
 * process, with its kind; the caller's. -ERROR_INVALID: text is none. */
char *kube_resource_text(enum kube_resource resource);
int kube_resource_of_text(const char *text, const char *kind, enum kube_resource *ret);

/* "apps/v1", or "v1" for the core group; the caller's. */
char *kube_resource_api_version(enum kube_resource resource);

/* "/apis/apps/v1", or "/api/v1" for the core group: where its group and version answer discovery; the
 * caller's. */
char *kube_resource_root(enum kube_resource resource);

/* One object, by name. Strings are borrowed. */
struct kube_ref {
    enum kube_resource resource;
    const char *namespace; /* NULL or "" for cluster-scoped */
    const char *name;
};

/* "/apis/apps/v1/namespaces/NS/controllerrevisions[/NAME[/SUBRESOURCE]]"; namespace NULL or "": all
 * namespaces (only without a name). A name must not be empty: an empty one would address the whole
 * collection. The caller's. */
char *kube_path(enum kube_resource resource, const char *namespace, const char *name,
                const char *subresource);
/* Appends ?name=value or &name=value, encoded, to *path. */
void kube_path_add_query(char **path, const char *name, const char *value);
/* RFC 3986 unreserved characters stay; the caller's. */
char *kube_percent_encode(const char *text);
