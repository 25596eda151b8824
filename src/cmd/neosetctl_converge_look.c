/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl_converge_parts.h"

#include "cmd/neosetctl_owners.h"
#include "volume/keep.h"

/* *ret NULL: there is none. */
static int get_set(const struct ctl_converge *wanted, cJSON **ret, struct error **err)
{
    CLEANUP_FREE char *path = kube_path(KUBE_STATEFULSET, wanted->namespace, wanted->name, NULL);
    CLEANUP_FREE char *what = xasprintf("StatefulSet %s in namespace %s", wanted->name, wanted->namespace);
    CLEANUP_ERROR struct error *own = NULL;
    int r = ctl_get(wanted->server, path, what, ret, &own);
    if (r == -ERROR_NOT_FOUND)
        return 0;
    if (r < 0 && err)
        *err = STEAL(own);
    return r;
}

static int list(const struct ctl_converge *wanted, enum kube_resource resource, cJSON **ret,
                struct error **err)
{
    CLEANUP_FREE char *what =
        xasprintf("%ss in namespace %s", kube_resource_info(resource)->kind, wanted->namespace);
    return ctl_list(wanted->server, resource, wanted->namespace, NULL, what, ret, err);
}

/* Who may not read them, or has none, goes on without: the server's own admission is asked. */
static int list_if_readable(const struct ctl_converge *wanted, enum kube_resource resource, cJSON **ret,
                            struct error **err)
{
    CLEANUP_ERROR struct error *own = NULL;
    const struct kube_resource_info *info = kube_resource_info(resource);
    int r = ctl_list(wanted->server, resource, info->namespaced ? wanted->namespace : NULL, NULL,
                     info->plural, ret, &own);
    if (r == -ERROR_FORBIDDEN || r == -ERROR_UNSUPPORTED || r == -ERROR_NOT_FOUND)
        return 0;
    if (r < 0 && err)
        *err = STEAL(own);
    return r;
}

/* What hardly changes while a run lasts; what of it counts, the server checks at each write. */
static int survey(const struct ctl_converge *wanted, struct converge_sight *sight, struct error **err)
{
    if (sight->is_surveyed)
        return 0;
    int r = list(wanted, KUBE_STATEFULSET, &sight->sets, err);
    if (r == 0)
        r = list_if_readable(wanted, KUBE_CLASS, &sight->classes, err);
    if (r == 0)
        r = list_if_readable(wanted, KUBE_QUOTA, &sight->quotas, err);
    sight->is_surveyed = r == 0;
    return r;
}

static void forget(struct converge_sight *sight)
{
    cJSON **const trees[] = {&sight->set, &sight->revisions, &sight->pods, &sight->claims,
                             &sight->gone_owners};
    for (size_t i = 0; i < ARRAY_SIZE(trees); i++)
        json_delete(STEAL(*trees[i]));
    sight->look = (struct converge_look){0};
}

void converge_sight_done(struct converge_sight *sight)
{
    forget(sight);
    json_delete(STEAL(sight->sets));
    json_delete(STEAL(sight->classes));
    json_delete(STEAL(sight->quotas));
}

int converge_sight_read(const struct ctl_converge *wanted, struct converge_sight *sight, struct error **err)
{
    struct env *env = wanted->server->env;
    forget(sight);
    int r = get_set(wanted, &sight->set, err);
    if (r == 0)
        r = list(wanted, KUBE_REVISION, &sight->revisions, err);
    /* On its way out with its finalizer nothing else counts. */
    bool is_leaving = kube_object_is_deleting(sight->set) && kube_object_has_finalizer(sight->set, "orphan");
    if (r == 0 && !is_leaving)
        r = list(wanted, KUBE_POD, &sight->pods, err);
    if (r == 0 && !is_leaving && sight->set)
        r = list(wanted, KUBE_CLAIM, &sight->claims, err);
    if (r == 0 && sight->set && !is_leaving)
        r = survey(wanted, sight, err);
    if (r == 0 && !sight->set)
        sight->gone_owners = ctl_find_gone_owners(
            wanted->server, keep_manifest(converge_find_kept(sight->revisions, wanted->name, NULL)));
    sight->look = (struct converge_look){.set = sight->set,
                                         .revisions = sight->revisions,
                                         .pods = sight->pods,
                                         .claims = sight->claims,
                                         .sets = sight->sets,
                                         .classes = sight->classes,
                                         .quotas = sight->quotas,
                                         .gone_owners = sight->gone_owners,
                                         .wall_us = env_wall_us(env),
                                         .boot_us = env_boot_us(env)};
    return r;
}
