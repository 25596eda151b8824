/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/apply_parts.h"
#include "cmd/neosetctl/converge.h"
#include "kube/object.h"
#include "volume/keep.h"

#include <unistd.h>

static struct ctl_converge converge_of(const struct apply *apply, const struct apply_item *item,
                                       struct out *out)
{
    return (struct ctl_converge){.server = apply->wanted->server,
                                 .out = out,
                                 .look = apply->wanted->look,
                                 .namespace = item->namespace,
                                 .name = item->name,
                                 .desired = item->manifest->object,
                                 .field_manager = apply->field_manager,
                                 .is_forced = apply->is_forced,
                                 .limit_us = apply->limit_us};
}

/* The manifests that are kept in a namespace, asked for once. Who may not read them has begun nothing. */
static int find_kept(struct apply *apply, const char *namespace, const cJSON **ret, struct error **err)
{
    *ret = json_get(apply->kept, namespace);
    if (*ret)
        return 0;
    cJSON *list = NULL;
    CLEANUP_FREE char *what = xasprintf("ControllerRevisions in namespace %s", namespace);
    CLEANUP_ERROR struct error *own = NULL;
    int r = ctl_list(apply->wanted->server, KUBE_REVISION, namespace, KEEP_LABEL, what, &list, &own);
    if (r < 0 && r != -ERROR_FORBIDDEN) {
        if (err)
            *err = STEAL(own);
        return r;
    }
    if (!apply->kept)
        apply->kept = json_new_object();
    json_set_item(apply->kept, namespace, r < 0 ? json_new_array() : list);
    *ret = json_get(apply->kept, namespace);
    return 0;
}

/* Its manifest is kept in the cluster because a re-creation was begun: whoever made it anew from the user's
 * manifest alone would lose what the running one had beside it (replicas, a restart). */
static int is_half_made(struct apply *apply, const struct apply_item *item, bool *ret, struct error **err)
{
    const cJSON *revisions = NULL;
    int r = find_kept(apply, item->namespace, &revisions, err);
    *ret = r == 0 && keep_find_growing(revisions, item->namespace, item->name, NULL);
    return r;
}

/* Converging says what it does: on stderr, because what stdout shows is the table. */
static int check(const struct apply *apply, struct apply_item *item)
{
    struct out progress;
    CLEANUP_ERROR struct error *own = NULL;
    out_init(&progress, STDERR_FILENO);
    struct ctl_converge one = converge_of(apply, item, &progress);
    int r = ctl_converge_check(&one, &own);
    out_done(&progress);
    if (r < 0) {
        str_replace(&item->problem, error_text(own));
        item->result = APPLY_REFUSED;
    }
    return r == -ERROR_UNREACHABLE || r == -ERROR_UNAUTHORIZED ? r : 0;
}

int apply_check_growth(struct apply *apply, struct error **err)
{
    for (size_t i = 0; i < apply->count; i++) {
        struct apply_item *item = &apply->items[i];
        bool is_half = false;
        int r = 0;
        if (item->is_known && item->resource == KUBE_STATEFULSET && item->result != APPLY_WAITING)
            r = is_half_made(apply, item, &is_half, err);
        if (r < 0)
            return r;
        /* In the middle of it: it was proven when it was begun, and is gone on with in any case. */
        if (is_half)
            item->result = APPLY_GROWS;
        else if (item->result == APPLY_GROWS)
            r = check(apply, item);
        if (r < 0)
            return error_set(err, ERROR_UNREACHABLE, "%s", item->problem);
    }
    return 0;
}

int apply_converge(struct apply *apply, struct apply_item *item, struct error **err)
{
    struct out progress;
    out_init(&progress, STDERR_FILENO);
    struct ctl_converge one = converge_of(apply, item, &progress);
    int r = ctl_converge(&one, err);
    (void)out_flush(&progress, NULL);
    out_done(&progress);
    return r;
}
