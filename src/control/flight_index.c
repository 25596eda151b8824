/* SPDX-License-Identifier: Apache-2.0
 *
 * Flights by the object that they write, and by the object of their operation. */
#include "control/gateway_parts.h"

#include <utlist.h>

/* Of nearly all keys: a kind, a namespace and a name. */
enum { LOOKUP_ROOM = 256 };

char *gateway_object_key(enum kube_resource resource, const char *namespace, const char *name)
{
    return xasprintf("%s/%s/%s", kube_resource_info(resource)->kind, namespace ? namespace : "", name);
}

/* A key to look up with, which is done for each pod in each turn: in room where it fits. */
struct lookup {
    char room[LOOKUP_ROOM];
    char *long_key; /* the lookup's */
};

static void lookup_done(struct lookup *lookup)
{
    free(lookup->long_key);
}

static const char *lookup_key(struct lookup *lookup, enum kube_resource resource, const char *namespace,
                              const char *name)
{
    const char *const parts[] = {kube_resource_info(resource)->kind, "/", namespace ? namespace : "", "/",
                                 name};
    char *at = lookup->room;
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        size_t length = strlen(parts[i]);
        if (length >= (size_t)(lookup->room + sizeof(lookup->room) - at)) {
            lookup->long_key = gateway_object_key(resource, namespace, name);
            return lookup->long_key;
        }
        memcpy(at, parts[i], length);
        at += length;
    }
    *at = '\0';
    return lookup->room;
}

struct flight *gateway_find_flight(const struct gateway *gateway, enum kube_resource resource,
                                   const char *namespace, const char *name)
{
    __attribute__((cleanup(lookup_done))) struct lookup lookup;
    lookup.long_key = NULL;
    const char *key = lookup_key(&lookup, resource, namespace, name);
    struct flight *flight = NULL;
    HASH_FIND_STR(gateway->by_object, key, flight);
    return flight;
}

struct workload *gateway_find_workload(const struct gateway *gateway, enum kube_resource resource,
                                       const char *namespace, const char *name)
{
    __attribute__((cleanup(lookup_done))) struct lookup lookup;
    lookup.long_key = NULL;
    const char *key = lookup_key(&lookup, resource, namespace, name);
    struct workload *workload = NULL;
    HASH_FIND_STR(gateway->workloads, key, workload);
    return workload;
}

void flight_join_workload(struct flight *flight, enum kube_resource resource, const char *namespace,
                          const char *name)
{
    struct gateway *gateway = flight->gateway;
    PRE(flight->workload == NULL);
    flight->operation_resource = resource;
    flight->operation_namespace = xstrdup_or_null(namespace);
    flight->operation_name = xstrdup(name);
    struct workload *workload = gateway_find_workload(gateway, resource, namespace, name);
    if (!workload) {
        workload = xcalloc(1, sizeof(*workload));
        workload->key = gateway_object_key(resource, namespace, name);
        HASH_ADD_KEYPTR(hh, gateway->workloads, workload->key, strlen(workload->key), workload);
    }
    DL_APPEND2(workload->flights, flight, workload_prev, workload_next);
    flight->workload = workload;
}

void flight_leave_workload(struct flight *flight)
{
    struct gateway *gateway = flight->gateway;
    struct workload *workload = STEAL(flight->workload);
    if (!workload)
        return;
    DL_DELETE2(workload->flights, flight, workload_prev, workload_next);
    gateway_end_pending(gateway, workload, flight->operation);
    if (workload->flights)
        return;
    HASH_DEL(gateway->workloads, workload);
    free(workload->key);
    free(workload);
}
