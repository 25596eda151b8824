/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/watch_parts.h"

enum { LINE_MAX_BYTES = LIST_ITEM_MAX, PAGE_LIMIT = 500 };

static void next_try(void *context);

void watch_enter(struct kube_watch *watch)
{
    watch->entered++;
}

static void watch_free(struct kube_watch *watch)
{
    kube_call_cancel(watch->client, &watch->call);
    env_timer_cancel(watch->env, &watch->timer);
    env_timer_cancel(watch->env, &watch->proves);
    free(watch->trouble);
    list_split_done(&watch->page);
    buf_done(&watch->line);
    kube_decoded_done(&watch->last);
    free(watch->namespace);
    free(watch->label_selector);
    free(watch->field_selector);
    free(watch->reason);
    free(watch->version);
    free(watch->list_version);
    free(watch->continue_token);
    free(watch->broken);
    free(watch);
}

void watch_leave(struct kube_watch *watch)
{
    ENSURE(watch->entered > 0);
    if (--watch->entered == 0 && watch->stopped)
        watch_free(watch);
}

void watch_set_state(struct kube_watch *watch, enum kube_watch_state state, const char *reason)
{
    if (watch->stopped || (watch->reported && watch->state == state && str_equal(watch->reason, reason)))
        return;
    watch->reported = true;
    watch->state = state;
    str_replace(&watch->reason, reason);
    if (state == KUBE_WATCH_STALE)
        str_replace(&watch->trouble, reason);
    if (watch->callbacks.state)
        watch->callbacks.state(watch->context, state, watch->reason);
}

static void on_proven(void *context)
{
    struct kube_watch *watch = context;
    watch->proves = NULL;
    watch_enter(watch);
    str_replace(&watch->trouble, NULL);
    watch_set_state(watch, KUBE_WATCH_FRESH, NULL);
    watch_leave(watch);
}

void watch_set_fresh(struct kube_watch *watch)
{
    env_timer_cancel(watch->env, &watch->proves);
    if (watch->trouble)
        watch->proves = env_timer_start(watch->env, WATCH_GOOD_STREAM_US, on_proven, watch);
    watch_set_state(watch, KUBE_WATCH_FRESH, watch->trouble);
}

void watch_schedule(struct kube_watch *watch, int64_t delay_us)
{
    if (watch->stopped)
        return;
    ENSURE(!watch->call && !watch->timer);
    watch->timer = env_timer_start(watch->env, delay_us, next_try, watch);
}

void watch_try_later(struct kube_watch *watch, int64_t retry_after_us)
{
    watch_schedule(watch, kube_backoff_us(watch->env, watch->failures++, retry_after_us));
}

void watch_want_list(struct kube_watch *watch)
{
    watch->relist = true;
    str_replace(&watch->continue_token, NULL);
}

static const char *plural(const struct kube_watch *watch)
{
    return kube_resource_info(watch->resource)->plural;
}

/* "pods in namespace default", for messages; the caller's. */
static char *what(const struct kube_watch *watch)
{
    return watch->namespace ? xasprintf("%s in namespace %s", plural(watch), watch->namespace)
                            : xasprintf("%s in all namespaces", plural(watch));
}

/* Why a list or watch (verb) did not work, in words. */
static char *refusal(const struct kube_watch *watch, const char *verb, const struct kube_answer *answer)
{
    CLEANUP_FREE char *collection = what(watch);
    CLEANUP_FREE char *version = kube_resource_api_version(watch->resource);
    CLEANUP_FREE char *asked = xasprintf("cannot %s %s", verb, collection);
    if (answer->stranger)
        return kube_answer_sentence(answer, asked);
    if (answer->http == 404 && watch->resource == KUBE_NEOSET)
        return xstrdup("the NeoSet definition is not installed: kubectl apply -f deploy/crd.yaml; waiting");
    if (answer->http == 404)
        return xasprintf("the server has no %s (%s); waiting", plural(watch), version);
    if (answer->http == 403)
        return xasprintf("no permission to %s %s (%s): %s", verb, collection, version, answer->summary);
    return kube_answer_sentence(answer, asked);
}

void watch_set_stale(struct kube_watch *watch, const char *verb, const struct kube_answer *answer)
{
    CLEANUP_FREE char *reason = refusal(watch, verb, answer);
    watch_set_state(watch, KUBE_WATCH_STALE, reason);
}

void watch_give_up(struct kube_watch *watch, const char *verb, const char *problem)
{
    CLEANUP_FREE char *collection = what(watch);
    free(watch->broken);
    watch->broken = xasprintf("cannot %s %s: %s", verb, collection, problem);
}

void watch_give_up_object(struct kube_watch *watch, const char *verb, const char *problem, const char *bytes,
                          size_t length, bool is_too_large)
{
    CLEANUP_FREE char *name = kube_object_guess_name(bytes, length);
    const char *shown = name ? name : "its name did not come";
    CLEANUP_FREE char *sentence =
        is_too_large
            ? xasprintf("%s (%s; make it smaller or delete it: until then nothing newer of the %s is seen)",
                        problem, shown, plural(watch))
            : xasprintf("%s (%s; what lies between this program and the API server may have damaged it; else "
                        "look at the object with kubectl get %s)",
                        problem, shown, plural(watch));
    watch_give_up(watch, verb, sentence);
}

void watch_add_selectors(const struct kube_watch *watch, char **path)
{
    if (watch->label_selector)
        kube_path_add_query(path, "labelSelector", watch->label_selector);
    if (watch->field_selector)
        kube_path_add_query(path, "fieldSelector", watch->field_selector);
}

const char *watch_accept(const struct kube_watch *watch, bool list)
{
    if (!watch->metadata_only)
        return NULL;
    return list ? "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
                : "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
}

static void next_try(void *context)
{
    struct kube_watch *watch = context;
    watch->timer = NULL;
    watch_enter(watch);
    str_replace(&watch->broken, NULL);
    if (!watch->relist) {
        watch_start_stream(watch);
    } else {
        /* While a list keeps failing, its reason stands. */
        if (!watch->continue_token && watch->state != KUBE_WATCH_STALE)
            watch_set_state(watch, KUBE_WATCH_LISTING, NULL);
        if (!watch->stopped)
            watch_start_page(watch);
    }
    watch_leave(watch);
}

struct kube_watch *kube_watch_start(struct kube_client *client, const struct kube_watch_spec *spec,
                                    const struct kube_watch_callbacks *callbacks, void *context)
{
    PRE(client && spec && callbacks);
    PRE(callbacks->list_begin && callbacks->list_end && callbacks->object && callbacks->deleted);
    struct kube_watch *watch = xcalloc(1, sizeof(*watch));
    watch->client = client;
    watch->env = kube_client_env(client);
    watch->resource = spec->resource;
    watch->namespace = spec->namespace && *spec->namespace ? xstrdup(spec->namespace) : NULL;
    watch->label_selector = xstrdup_or_null(spec->label_selector);
    watch->field_selector = xstrdup_or_null(spec->field_selector);
    watch->page_limit = spec->page_limit ? spec->page_limit : PAGE_LIMIT;
    watch->metadata_only = spec->metadata_only;
    watch->callbacks = *callbacks;
    watch->context = context;
    watch->state = KUBE_WATCH_LISTING;
    watch->line = BUF_INIT(LINE_MAX_BYTES);
    watch_want_list(watch);
    watch_schedule(watch, 0);
    return watch;
}

void kube_watch_stop(struct kube_watch *watch)
{
    if (!watch)
        return;
    PRE(!watch->stopped);
    watch->stopped = true;
    kube_call_cancel(watch->client, &watch->call);
    env_timer_cancel(watch->env, &watch->timer);
    env_timer_cancel(watch->env, &watch->proves);
    if (watch->entered == 0)
        watch_free(watch);
}

const char *kube_watch_version(const struct kube_watch *watch)
{
    return watch->version;
}

bool kube_watch_is_fresh(const struct kube_watch *watch)
{
    return watch->state == KUBE_WATCH_FRESH && watch->reported;
}
