/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/discovery.h"

struct kube_discovery {
    struct kube_client *client;
    struct kube_call *call;
    enum kube_resource resource;
    kube_discover_done *discovered;
    void *context;
};

/* An APIResourceList names the resource. */
static bool is_listed(const cJSON *list, const char *plural)
{
    const cJSON *element;
    cJSON_ArrayForEach (element, json_get(list, "resources"))
        if (str_equal(json_str(element, "name"), plural))
            return true;
    return false;
}

static enum kube_served read_served(const struct kube_answer *answer, enum kube_resource resource)
{
    if (answer->outcome == KUBE_OK)
        return is_listed(answer->body, kube_resource_info(resource)->plural) ? KUBE_SERVED : KUBE_NOT_SERVED;
    return answer->http == 404 && !answer->stranger ? KUBE_NOT_SERVED : KUBE_SERVED_UNKNOWN;
}

static void on_discovered(void *context, const struct kube_answer *answer)
{
    struct kube_discovery *discovery = context;
    enum kube_resource resource = discovery->resource;
    kube_discover_done *done = discovery->discovered;
    void *done_context = discovery->context;
    free(discovery);
    CLEANUP_FREE char *version = kube_resource_api_version(resource);
    CLEANUP_FREE char *sentence = NULL;
    enum kube_served served = read_served(answer, resource);
    if (served == KUBE_SERVED_UNKNOWN) {
        CLEANUP_FREE char *what = xasprintf("cannot ask the server for its resources of %s", version);
        sentence = kube_answer_sentence(answer, what);
    } else if (served == KUBE_NOT_SERVED && resource == KUBE_NEOSET) {
        sentence =
            xasprintf("the server does not know neosets (%s): kubectl apply -f deploy/crd.yaml", version);
    } else if (served == KUBE_NOT_SERVED) {
        sentence = xasprintf("the server has no %s (%s)", kube_resource_info(resource)->plural, version);
    }
    done(done_context, served, sentence);
}

struct kube_discovery *kube_discover(struct kube_client *client, enum kube_resource resource,
                                     int64_t timeout_us, kube_discover_done *done, void *context)
{
    PRE(client && done);
    CLEANUP_FREE char *path = kube_resource_root(resource);
    struct kube_discovery *discovery = xcalloc(1, sizeof(*discovery));
    discovery->client = client;
    discovery->resource = resource;
    discovery->discovered = done;
    discovery->context = context;
    discovery->call = kube_get(client, path, timeout_us, on_discovered, discovery);
    return discovery;
}

void kube_discovery_cancel(struct kube_discovery **slot)
{
    struct kube_discovery *discovery = STEAL(*slot);
    if (!discovery)
        return;
    kube_call_cancel(discovery->client, &discovery->call);
    free(discovery);
}
