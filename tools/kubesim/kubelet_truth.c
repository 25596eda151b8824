/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/kubelet_parts.h"

size_t kubelet_see_truth(const struct kubelet *kubelet, const char *uid, struct kubelet_truth *ret,
                         size_t room)
{
    struct pod *pod = NULL;
    size_t count = 0;
    HASH_FIND_STR(kubelet->pods, uid, pod);
    for (size_t i = 0; pod && i < pod->container_count && count < room; i++) {
        const struct container_spec *spec = &pod->current->containers[i];
        const struct container *container = &pod->containers[i];
        if (spec->is_init && !spec->is_sidecar)
            continue;
        ret[count++] = (struct kubelet_truth){
            .name = spec->name,
            .image = container->now.image ? container->now.image->name : NULL,
            .running = container->now.state == RUN_RUNNING,
            .ready = container->now.state == RUN_RUNNING && prober_is_ready(pod, i),
            .replaced = container->replaced,
            .restarts = container->now.restarts,
        };
    }
    return count;
}

bool kubelet_set_behaviour(struct kubelet *kubelet, const char *behaviour)
{
    unsigned read = 0;
    if (!behaviour_read(behaviour, &read))
        return false;
    kubelet->default_behaviour = read | (kubelet->default_behaviour & BEHAVE_OLD);
    return true;
}
