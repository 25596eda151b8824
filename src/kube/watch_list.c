/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/watch_parts.h"

#include <stdio.h>

/* The server cuts a read at 60 s (--request-timeout); a page that takes longer never comes. */
#define PAGE_TIMEOUT_US (90 * US_PER_S)
#define PAGE_IDLE_US (30 * US_PER_S)
#define MISSING_RETRY_US (5 * US_PER_S)

enum { PAGES_MAX = 100000 };

/* resourceVersion is left out: a list from whatever a cache holds could go back in time. */
static char *page_path(const struct kube_watch *watch)
{
    char limit[16];
    snprintf(limit, sizeof(limit), "%u", watch->page_limit);
    char *path = kube_path(watch->resource, watch->namespace, NULL, NULL);
    watch_add_selectors(watch, &path);
    kube_path_add_query(&path, "limit", limit);
    if (watch->continue_token)
        kube_path_add_query(&path, "continue", watch->continue_token);
    return path;
}

static bool on_item(void *context, const char *text, size_t length)
{
    struct kube_watch *watch = context;
    CLEANUP_JSON cJSON *object = NULL;
    CLEANUP_ERROR struct error *problem = NULL;
    if (kube_object_parse_unmanaged(text, length, 1, &object, &problem) < 0) {
        CLEANUP_FREE char *sentence = xasprintf("an object is %s", error_text(problem));
        watch_give_up_object(watch, "list", sentence, text, length, false);
        return false;
    }
    watch->callbacks.object(watch->context, object);
    return !watch->stopped;
}

static void on_page_status(void *context)
{
    struct kube_watch *watch = context;
    watch_enter(watch);
    list_split_done(&watch->page);
    list_split_begin(&watch->page, on_item, watch);
    if (!watch->continue_token) {
        watch->pages = 0;
        str_replace(&watch->list_version, NULL);
        watch->callbacks.list_begin(watch->context);
    }
    watch_leave(watch);
}

/* What the page is instead; bytes: those that were no List's, NULL when it ended too early. */
static const char *no_list(const struct kube_watch *watch, const char *bytes, size_t length)
{
    const struct buf *kept = &watch->page.envelope;
    const char *stranger = kept->length > 0 || !bytes ? kube_stranger_of_body(buf_text(kept), kept->length)
                                                      : kube_stranger_of_body(bytes, length);
    return stranger ? stranger : "the answer is not a List";
}

static bool on_page_data(void *context, const char *bytes, size_t length)
{
    struct kube_watch *watch = context;
    watch_enter(watch);
    int result = list_split_feed(&watch->page, bytes, length);
    if (result == -ERROR_TOO_LARGE)
        watch_give_up_object(watch, "list", WATCH_TOO_LARGE, buf_text(&watch->page.element),
                             watch->page.element.length, true);
    else if (result == -ERROR_INVALID)
        watch_give_up(watch, "list", no_list(watch, bytes, length));
    watch_leave(watch);
    return result == 0;
}

/* What the page says besides its objects. */
static int read_envelope(struct kube_watch *watch, char **ret_version, char **ret_continue)
{
    CLEANUP_JSON cJSON *envelope = NULL;
    size_t length;
    if (!watch->page.complete)
        return -ERROR_INVALID;
    const char *text = list_split_envelope(&watch->page, &length);
    if (kube_object_parse(text, length, &envelope, NULL) < 0)
        return -ERROR_INVALID;
    const char *version = json_path_str(envelope, "metadata", "resourceVersion", NULL);
    const char *more = json_path_str(envelope, "metadata", "continue", NULL);
    if (!version || !*version)
        return -ERROR_INVALID;
    *ret_version = xstrdup(version);
    *ret_continue = more && *more ? xstrdup(more) : NULL;
    return 0;
}

/* A list that asks for no resourceVersion shows the newest state: it cannot be older than what was seen
 * before. */
static bool is_of_the_past(const struct kube_watch *watch)
{
    return watch->version && kube_version_compare(watch->list_version, watch->version) < 0;
}

static void end_list(struct kube_watch *watch)
{
    if (is_of_the_past(watch) && watch->callbacks.went_back) {
        str_replace(&watch->version, NULL);
        watch->callbacks.went_back(watch->context);
        return;
    }
    watch->relist = false;
    free(watch->version);
    watch->version = STEAL(watch->list_version);
    watch->callbacks.list_end(watch->context);
}

static void next_page(struct kube_watch *watch)
{
    CLEANUP_FREE char *version = NULL;
    CLEANUP_FREE char *more = NULL;
    if (read_envelope(watch, &version, &more) < 0 || ++watch->pages > PAGES_MAX) {
        watch_give_up(watch, "list",
                      watch->pages > PAGES_MAX ? "the list has no end" : no_list(watch, NULL, 0));
        watch_set_state(watch, KUBE_WATCH_STALE, watch->broken);
        watch_want_list(watch);
        watch_try_later(watch, -1);
        return;
    }
    /* The list is a picture of the moment that its first page names. */
    if (!watch->list_version)
        watch->list_version = STEAL(version);
    str_replace(&watch->continue_token, more);
    if (!watch->continue_token)
        end_list(watch);
    watch_schedule(watch, 0);
}

/* In the middle of a list the next try takes up where this one failed, unless the server does not take the
 * token. */
static void after_bad_page(struct kube_watch *watch, const struct kube_answer *answer)
{
    /* A token that is older than what the server keeps is ordinary. */
    if (answer->code != ERROR_GONE || !watch->continue_token)
        watch_set_stale(watch, "list", answer);
    if (answer->http >= 400 && answer->http != 429 &&
        (answer->http < 500 || watch->failures >= WATCH_REFUSALS_MAX))
        watch_want_list(watch);
    if (answer->http == 404)
        watch_schedule(watch, MISSING_RETRY_US);
    else
        watch_try_later(watch, answer->retry_after_us);
}

static void on_page_done(void *context, const struct kube_answer *answer)
{
    struct kube_watch *watch = context;
    watch_enter(watch);
    watch->call = NULL;
    if (watch->broken) {
        watch_set_state(watch, KUBE_WATCH_STALE, watch->broken);
        watch_want_list(watch);
        watch_try_later(watch, -1);
    } else if (answer->outcome == KUBE_OK && !answer->body_cut) {
        next_page(watch);
    } else {
        after_bad_page(watch, answer);
    }
    list_split_done(&watch->page);
    watch_leave(watch);
}

void watch_start_page(struct kube_watch *watch)
{
    CLEANUP_FREE char *path = page_path(watch);
    struct kube_request request = {
        .method = "GET",
        .path = path,
        .accept = watch_accept(watch, true),
        .pool = HTTP_POOL_REQUEST,
        .timeout_us = PAGE_TIMEOUT_US,
        .idle_timeout_us = PAGE_IDLE_US,
        .on_status = on_page_status,
        .on_data = on_page_data,
    };
    watch->call = kube_call_start(watch->client, &request, on_page_done, watch);
}
