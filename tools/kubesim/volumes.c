/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/volumes.h"

#include "kubesim/kinds.h"

#include <uthash.h>

static const struct actor binder = {.manager = "kube-controller-manager",
                                    .user = "system:serviceaccount:kube-system:persistent-volume-binder"};

/* When a claim's next step comes. */
struct volume_timer {
    char *uid;
    char *asked; /* the size and behaviour that tries are counted for */
    enum volume_step step;
    unsigned tries;
    int64_t due_us;
    bool seen; /* in this look */
    UT_hash_handle hh;
};

void volumes_look_soon(struct kubesim *sim, const struct kind *kind)
{
    if (sim->options.volumes &&
        (kind->hooks == &claim_hooks || kind->hooks == &class_hooks || kind->hooks == &pod_hooks))
        sim->volumes_due_us = MIN(sim->volumes_due_us, sim_now_us(sim));
}

void kubesim_run_volumes(struct kubesim *sim)
{
    sim->options.volumes = true;
    sim->volumes_due_us = sim_now_us(sim);
}

const char *kubesim_volumes_help(void)
{
    return "With --volumes a claim whose class has a provisioner is bound, and a larger request is met as "
           "the\n"
           "annotation kubesim.neo.io/resizer of the claim, or else of its class, says (it may change at "
           "any\n"
           "time; a fault that heals is found by the next try):\n"
           "  ok                grows within five seconds, also under a running pod (without the "
           "annotation)\n"
           "  never             no resizer: nothing but the Event ExternalExpanding\n"
           "  max=SIZE          a larger one is infeasible: ControllerResizeInfeasible, "
           "ControllerResizeError\n"
           "  pool-full         Events only, again and again\n"
           "  slow              half a minute, Events only, then it is done\n"
           "  in-use            only when no pod uses it: ControllerResizeError\n"
           "  node-pending      the node never looks: NodeResizePending\n"
           "  node-infeasible   the file system cannot: NodeResizeError\n"
           "  node-transient    the node fails once\n"
           "Example:\n"
           "  kubectl annotate storageclass std kubesim.neo.io/resizer=max=5Gi\n";
}

static void forget(struct kubesim *sim, struct volume_timer *timer)
{
    HASH_DEL(sim->volume_timers, timer);
    free(timer->uid);
    free(timer->asked);
    free(timer);
}

void volumes_done(struct kubesim *sim)
{
    struct volume_timer *timer;
    struct volume_timer *next;
    HASH_ITER (hh, sim->volume_timers, timer, next)
        forget(sim, timer);
}

static struct volume_timer *timer_of(struct kubesim *sim, const char *uid)
{
    struct volume_timer *timer = NULL;
    HASH_FIND_STR(sim->volume_timers, uid, timer);
    if (timer)
        return timer;
    timer = xcalloc(1, sizeof(*timer));
    timer->uid = xstrdup(uid);
    HASH_ADD_KEYPTR(hh, sim->volume_timers, timer->uid, strlen(timer->uid), timer);
    return timer;
}

/* --- binding -------------------------------------------------------------------------------------------- */

static const cJSON *class_of(const struct kubesim *sim, const cJSON *claim)
{
    const char *name = claim_class_name(claim);
    const struct kind *classes = kind_find(sim, "storage.k8s.io", "storageclasses");
    const struct object *class = name && *name ? store_find(classes, NULL, name) : NULL;
    return class ? object_tree(class) : NULL;
}

static bool can_bind(const cJSON *class, bool used)
{
    const char *provisioner = json_str(class, "provisioner");
    bool waits = str_equal(json_str(class, "volumeBindingMode"), "WaitForFirstConsumer");
    return class && !str_equal(provisioner, "kubernetes.io/no-provisioner") && (used || !waits);
}

static cJSON *new_volume(const cJSON *claim, const cJSON *class, const char *name)
{
    static const char *const copied[] = {"accessModes", "volumeMode"};
    cJSON *volume = json_new_object();
    cJSON *metadata = json_add_object(volume, "metadata");
    json_add_str(metadata, "name", name);
    json_add_str(json_add_object(metadata, "annotations"), "pv.kubernetes.io/provisioned-by",
                 json_str(class, "provisioner"));
    cJSON *spec = json_add_object(volume, "spec");
    json_add_item(spec, "capacity", json_copy(json_path(claim, "spec", "resources", "requests", NULL)));
    for (size_t i = 0; i < ARRAY_SIZE(copied); i++)
        tree_copy_member(spec, json_get(claim, "spec"), copied[i]);
    cJSON *reference = json_add_object(spec, "claimRef");
    json_add_str(reference, "kind", "PersistentVolumeClaim");
    json_add_str(reference, "apiVersion", "v1");
    json_add_str(reference, "namespace", meta_str(claim, "namespace"));
    json_add_str(reference, "name", meta_str(claim, "name"));
    json_add_str(reference, "uid", meta_str(claim, "uid"));
    cJSON *csi = json_add_object(spec, "csi");
    json_add_str(csi, "driver", json_str(class, "provisioner"));
    json_add_str(csi, "volumeHandle", name);
    json_add_str(spec, "storageClassName", meta_str(class, "name"));
    json_add_str(spec, "persistentVolumeReclaimPolicy", json_str(class, "reclaimPolicy"));
    return volume;
}

static void write_bound(struct kubesim *sim, const cJSON *claim, const cJSON *class, const char *volume)
{
    static const char path[] = "/api/v1/namespaces/%s/persistentvolumeclaims/%s%s";
    cJSON *patch = json_new_object();
    cJSON *annotations = json_add_object(json_add_object(patch, "metadata"), "annotations");
    json_add_str(annotations, "pv.kubernetes.io/bind-completed", "yes");
    json_add_str(annotations, "pv.kubernetes.io/bound-by-controller", "yes");
    json_add_str(annotations, "volume.kubernetes.io/storage-provisioner", json_str(class, "provisioner"));
    json_add_str(json_add_object(patch, "spec"), "volumeName", volume);
    (void)actor_ask(sim, &binder, "PATCH", MERGE_TYPE, patch, path, meta_str(claim, "namespace"),
                    meta_str(claim, "name"), "");
    cJSON *status = json_new_object();
    cJSON *part = json_add_object(status, "status");
    json_add_str(part, "phase", "Bound");
    json_add_item(part, "accessModes", json_copy(json_path(claim, "spec", "accessModes", NULL)));
    json_add_item(part, "capacity", json_copy(json_path(claim, "spec", "resources", "requests", NULL)));
    (void)actor_ask(sim, &binder, "PATCH", MERGE_TYPE, status, path, meta_str(claim, "namespace"),
                    meta_str(claim, "name"), "/status");
}

static void bind(struct kubesim *sim, const cJSON *claim, const cJSON *class)
{
    CLEANUP_FREE char *name = xasprintf("pvc-%s", meta_str(claim, "uid"));
    (void)actor_ask(sim, &binder, "POST", JSON_TYPE, new_volume(claim, class, name),
                    "/api/v1/persistentvolumes");
    cJSON *status = json_new_object();
    json_add_str(json_add_object(status, "status"), "phase", "Bound");
    (void)actor_ask(sim, &binder, "PATCH", MERGE_TYPE, status, "/api/v1/persistentvolumes/%s/status", name);
    write_bound(sim, claim, class, name);
}

/* A volume whose claim is gone goes too, or is kept as Released, as its class asked. */
static void reclaim(struct kubesim *sim, const cJSON *volume)
{
    const cJSON *reference = json_path(volume, "spec", "claimRef", NULL);
    const char *namespace = json_str(reference, "namespace");
    const char *claim_name = json_str(reference, "name");
    bool released = str_equal(json_path_str(volume, "status", "phase", NULL), "Released");
    if (!namespace || !claim_name || released || meta_is_deleting(volume))
        return;
    const struct object *claim =
        store_find(kind_find(sim, "", "persistentvolumeclaims"), namespace, claim_name);
    if (claim && str_equal(meta_str(object_tree(claim), "uid"), json_str(reference, "uid")))
        return;
    CLEANUP_FREE char *name = xstrdup(meta_str(volume, "name"));
    if (str_equal(json_path_str(volume, "spec", "persistentVolumeReclaimPolicy", NULL), "Delete")) {
        (void)actor_ask(sim, &binder, "DELETE", NULL, NULL, "/api/v1/persistentvolumes/%s", name);
        return;
    }
    cJSON *status = json_new_object();
    json_add_str(json_add_object(status, "status"), "phase", "Released");
    (void)actor_ask(sim, &binder, "PATCH", MERGE_TYPE, status, "/api/v1/persistentvolumes/%s/status", name);
}

/* --- looking -------------------------------------------------------------------------------------------- */

/* 1.37 says of each claim whether a pod names it. */
static void note_use(struct kubesim *sim, const cJSON *claim, bool used)
{
    const cJSON *condition = NULL;
    cJSON *conditions = json_new_array();
    const cJSON *present = NULL;
    cJSON_ArrayForEach (condition, json_path(claim, "status", "conditions", NULL)) {
        if (str_equal(json_str(condition, "type"), "Unused"))
            present = condition;
        else
            json_append_item(conditions, json_copy(condition));
    }
    if (str_equal(json_str(present, "status"), used ? "False" : "True")) {
        json_delete(conditions);
        return;
    }
    char now[TIME_TEXT_SIZE];
    sim_time_text(sim, now);
    cJSON *next = json_new_object();
    json_add_str(next, "type", "Unused");
    json_add_str(next, "status", used ? "False" : "True");
    json_add_item(next, "lastProbeTime", cJSON_CreateNull());
    json_add_str(next, "lastTransitionTime", now);
    json_add_str(next, "reason", used ? "PodUsingPVC" : "NoPodsUsingPVC");
    json_add_str(next, "message",
                 used ? "A pod is currently referencing this PVC"
                      : "No pods are currently referencing this PVC");
    json_append_item(conditions, next);
    cJSON *patch = json_new_object();
    json_add_item(json_add_object(patch, "status"), "conditions", conditions);
    (void)actor_ask(sim, &binder, "PATCH", MERGE_TYPE, patch,
                    "/api/v1/namespaces/%s/persistentvolumeclaims/%s/status", meta_str(claim, "namespace"),
                    meta_str(claim, "name"));
}

/* Another size, behaviour or step than at the last look starts the clock anew. */
static void set_timer(struct kubesim *sim, struct volume_timer *timer, struct volume_work *work,
                      enum volume_step bind_step)
{
    CLEANUP_FREE char *asked =
        xasprintf("%s %s", json_path_str(work->claim, "spec", "resources", "requests", "storage", NULL),
                  work->behaviour_text);
    if (!str_equal(timer->asked, asked)) {
        str_replace(&timer->asked, asked);
        timer->step = VOLUME_STEP_NONE;
        timer->tries = 0;
    }
    work->tries = timer->tries;
    enum volume_step step = bind_step != VOLUME_STEP_NONE ? bind_step : volume_resize_step(work);
    if (step == timer->step)
        return;
    timer->step = step;
    timer->tries = work->tries = step == VOLUME_STEP_NONE ? timer->tries : 0;
    timer->due_us = sim_now_us(sim) + volume_step_delay_us(step, work);
}

static void look_at(struct kubesim *sim, const cJSON *claim)
{
    const cJSON *class = class_of(sim, claim);
    const char *phase = json_path_str(claim, "status", "phase", NULL);
    bool used = claim_is_used(sim, claim);
    struct volume_work work = {.claim = claim, .used = used};
    work.behaviour = volume_behaviour_of(claim, class, &work.behaviour_text);
    struct volume_timer *timer = timer_of(sim, meta_str(claim, "uid"));
    timer->seen = true;
    enum volume_step bind_step = VOLUME_STEP_NONE;
    if (str_equal(phase, "Pending") && can_bind(class, used))
        bind_step = VOLUME_STEP_BIND;
    if (!str_equal(phase, "Bound") && bind_step == VOLUME_STEP_NONE) {
        timer->step = VOLUME_STEP_NONE; /* the pod that it waited for is gone, or its class is */
        return;
    }
    set_timer(sim, timer, &work, bind_step);
    if (sim->options.newer && str_equal(phase, "Bound"))
        note_use(sim, claim, used);
    if (timer->step == VOLUME_STEP_NONE || timer->due_us > sim_now_us(sim))
        return;
    if (timer->step == VOLUME_STEP_BIND)
        bind(sim, claim, class);
    else
        volume_resize(sim, &work, timer->step);
    timer->tries++;
    timer->due_us =
        sim_now_us(sim) + volume_step_delay_us(timer->step, &(struct volume_work){.behaviour = work.behaviour,
                                                                                  .tries = timer->tries});
}

static void forget_unseen(struct kubesim *sim)
{
    struct volume_timer *timer;
    struct volume_timer *next;
    HASH_ITER (hh, sim->volume_timers, timer, next) {
        if (!timer->seen) {
            forget(sim, timer);
            continue;
        }
        timer->seen = false;
        if (timer->step != VOLUME_STEP_NONE)
            sim->volumes_due_us = MIN(sim->volumes_due_us, timer->due_us);
    }
}

/* Each object as it is now: what is done to one changes the list. */
static void each_of(struct kubesim *sim, const struct kind *kind,
                    void (*visit)(struct kubesim *sim, const cJSON *tree))
{
    size_t count = kind->object_count;
    CLEANUP_FREE struct version **versions = xcalloc(count, sizeof(*versions));
    for (size_t i = 0; i < count; i++)
        versions[i] = version_hold(kind->objects[i]->version);
    for (size_t i = 0; i < count; i++)
        visit(sim, version_tree(versions[i]));
    for (size_t i = 0; i < count; i++)
        version_release(versions[i]);
}

void volumes_tick(struct kubesim *sim)
{
    if (sim->volumes_due_us > sim_now_us(sim))
        return;
    sim->volumes_due_us = INT64_MAX;
    each_of(sim, kind_find(sim, "", "persistentvolumes"), reclaim);
    each_of(sim, kind_find(sim, "", "persistentvolumeclaims"), look_at);
    forget_unseen(sim);
}
