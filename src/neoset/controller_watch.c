/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller's eyes: the collections that it watches, what they tell the store of facts, and whether what
 * it knows is fresh. */
#include "neoset/controller_parts.h"

#include "kube/object.h"

static const enum kube_resource watched_resources[WATCHED_COUNT] = {
    [WATCHED_SETS] = KUBE_NEOSET,
    [WATCHED_PODS] = KUBE_POD,
    [WATCHED_CLAIMS] = KUBE_CLAIM,
    [WATCHED_REVISIONS] = KUBE_REVISION,
};

bool controller_has_listed(const struct controller *controller)
{
    for (size_t i = 0; i < WATCHED_COUNT; i++)
        if (!controller->watched[i].listed)
            return false;
    return true;
}

bool controller_is_fresh(const struct controller *controller, const char **ret_why)
{
    for (size_t i = 0; i < WATCHED_COUNT; i++) {
        const struct watched *watched = &controller->watched[i];
        if (watched->listed && watched->fresh)
            continue;
        *ret_why = watched->trouble;
        return false;
    }
    return true;
}

const char *controller_watch_trouble(const struct controller *controller)
{
    for (size_t i = 0; i < WATCHED_COUNT; i++)
        if (controller->watched[i].trouble)
            return controller->watched[i].trouble;
    return NULL;
}

/* --- what the watches tell ------------------------------------------------------------------------------ */

void controller_take_answer(struct controller *controller, enum kube_resource resource, const cJSON *object)
{
    const char *version = NULL;
    for (size_t i = 0; i < WATCHED_COUNT; i++)
        if (watched_resources[i] == resource && controller->watched[i].watch)
            version = kube_watch_version(controller->watched[i].watch);
    fact_store_take_answer(controller->store, resource, object, version, env_wall_us(controller->env),
                           env_boot_us(controller->env));
}

static void check_listed(struct controller *controller)
{
    if (!controller_has_listed(controller))
        return;
    if (!controller->first_boot_us) {
        controller->first_boot_us = env_boot_us(controller->env);
        controller_report(controller, REPORT_INFO, NULL, "listed %zu NeoSets and %zu pods",
                          controller->store->set_count, controller->store->pod_count);
    }
    controller_wake_all(controller);
    controller_check_once(controller);
}

static void list_begin(void *context)
{
    struct watched *watched = context;
    watched->mark++;
}

static void list_end(void *context)
{
    struct watched *watched = context;
    fact_store_sweep(watched->controller->store, watched->resource, watched->mark,
                     kube_watch_version(watched->watch));
    if (watched->resource == KUBE_REVISION)
        kept_sweep(watched->controller, watched->mark);
    watched->listed = true;
    check_listed(watched->controller);
}

/* Nothing is planned until it was listed again. */
static void watch_went_back(void *context)
{
    struct watched *watched = context;
    struct controller *controller = watched->controller;
    watched->listed = false;
    watched->went_back++;
    controller_report(controller, REPORT_WARNING, NULL,
                      "the resourceVersions of the %s went back (the server's storage was restored from a "
                      "backup?): what was known of them is forgotten, and they are listed anew",
                      kube_resource_info(watched->resource)->plural);
    fact_store_forget(controller->store, watched->resource);
}

static void observe_key(const struct watched *watched, const cJSON *object)
{
    const char *key = kube_object_annotation(object, STEP_ANNOTATION);
    if (key)
        gateway_observe_key(watched->controller->gateway, key);
}

static bool watch_may_know(void *context, const char *version)
{
    const struct watched *watched = context;
    return fact_store_may_know(watched->controller->store, version);
}

static bool watch_knows(void *context, const cJSON *object)
{
    struct watched *watched = context;
    if (!fact_store_knows(watched->controller->store, watched->resource, object))
        return false;
    observe_key(watched, object);
    return true;
}

static void watch_object(void *context, const cJSON *object)
{
    struct watched *watched = context;
    struct controller *controller = watched->controller;
    fact_store_take(controller->store, watched->resource, object, watched->mark, env_wall_us(controller->env),
                    env_boot_us(controller->env));
    if (watched->resource == KUBE_REVISION)
        kept_seen(controller, object, watched->mark);
    observe_key(watched, object);
}

static void watch_deleted(void *context, const cJSON *last_state)
{
    struct watched *watched = context;
    fact_store_drop(watched->controller->store, watched->resource, last_state);
    if (watched->resource == KUBE_REVISION)
        kept_gone(watched->controller, last_state);
}

static void watch_state(void *context, enum kube_watch_state state, const char *reason)
{
    struct watched *watched = context;
    bool was_fresh = watched->fresh;
    watched->fresh = state == KUBE_WATCH_FRESH;
    if (reason && !str_equal(watched->trouble, reason))
        controller_report(watched->controller, REPORT_WARNING, NULL, "%s", reason);
    if (watched->fresh && !reason && watched->trouble)
        controller_report(watched->controller, REPORT_INFO, NULL, "watching %s again",
                          kube_resource_info(watched->resource)->plural);
    if (reason || watched->fresh)
        str_replace(&watched->trouble, reason);
    controller_check_patience(watched->controller);
    if (watched->fresh != was_fresh)
        controller_wake_all(watched->controller);
}

void controller_start_watches(struct controller *controller)
{
    static const struct kube_watch_callbacks callbacks = {
        .list_begin = list_begin,
        .list_end = list_end,
        .object = watch_object,
        .may_know = watch_may_know,
        .knows = watch_knows,
        .deleted = watch_deleted,
        .went_back = watch_went_back,
        .state = watch_state,
    };
    for (size_t i = 0; i < WATCHED_COUNT; i++) {
        struct watched *watched = &controller->watched[i];
        watched->controller = controller;
        watched->resource = watched_resources[i];
        watched->watch =
            kube_watch_start(controller->client,
                             &(struct kube_watch_spec){.resource = watched->resource,
                                                       .namespace = controller->options.namespace},
                             &callbacks, watched);
    }
}
