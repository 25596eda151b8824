/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl_picture.h"

void ctl_picture_done(struct ctl_picture *picture)
{
    pod_views_done(&picture->pods);
    json_delete(picture->object);
    json_delete(picture->pod_objects);
    *picture = (struct ctl_picture){0};
}

int ctl_picture_read(struct ctl_server *server, const char *name, struct ctl_picture *ret, struct error **err)
{
    *ret = (struct ctl_picture){0};
    int r = ctl_get_set(server, name, &ret->object, err);
    if (r < 0)
        return r;
    set_view_make(ret->object, &ret->set);
    CLEANUP_FREE char *selector = set_view_selector(ret->object);
    CLEANUP_FREE char *what = xasprintf("pods in namespace %s", server->namespace);
    r = ctl_list(server, KUBE_POD, server->namespace, selector, what, &ret->pod_objects, err);
    if (r < 0)
        return r;
    ret->at_us = env_wall_us(server->env);
    pod_views_make(&ret->set, ret->pod_objects, ret->at_us, &ret->pods);
    return 0;
}
