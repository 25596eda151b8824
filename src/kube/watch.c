/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/watch.h"

#include "base/time_text.h"
#include "kube/call.h"
#include "kube/event.h"
#include "kube/list_split.h"
#include "kube/object.h"

#include <ctype.h>
#include <stdio.h>

/* The server cuts a read at 60 s (--request-timeout); a page that takes longer never comes. */
#define PAGE_TIMEOUT_US (90 * US_PER_S)
#define PAGE_IDLE_US (30 * US_PER_S)
/* A watch is answered at once, or after 3 s when the cache is behind; a credential plug-in may take 30 s
 * before. */
#define STATUS_TIMEOUT_US (40 * US_PER_S)
/* timeoutSeconds is random in this range, as client-go's: bounds a hung stream and spreads the reconnects. */
#define STREAM_MIN_S 300
#define STREAM_MAX_S 600
/* The server has ended the stream by then, if it lives. */
#define STREAM_GRACE_US (30 * US_PER_S)
/* Bookmarks come about once a minute (measured: the first 61 s after the beginning). A server that was never
 * heard sending one may be silent because nothing happens: the stream is renewed then, and nobody is alarmed.
 */
#define IDLE_US (90 * US_PER_S)
/* A stream that lived so long proves that the server is well: the back-off begins anew. */
#define GOOD_STREAM_US (5 * US_PER_S)
#define MISSING_RETRY_US (5 * US_PER_S)

#define TOO_LARGE "an object is larger than 8 MiB"

/* A server that refuses the stream so often in a row may do so because of the version that we ask for. */
enum { REFUSALS_MAX = 3 };

enum { LINE_MAX_BYTES = LIST_ITEM_MAX, LINE_ROOM_KEPT = 64 * 1024, PAGES_MAX = 100000, PAGE_LIMIT = 500 };

struct kube_watch {
    struct kube_client *client;
    struct env *env;
    enum kube_resource resource;
    char *namespace;
    char *label_selector;
    char *field_selector;
    unsigned page_limit;
    bool metadata_only;
    struct kube_watch_callbacks callbacks;
    void *context;

    enum kube_watch_state state;
    char *reason; /* of the state as it was reported; NULL: none */
    bool reported;
    char *trouble;            /* the newest, until a stream has lived; NULL: none */
    struct env_timer *proves; /* then the stream has; only while there is trouble */
    struct kube_call *call;
    struct env_timer *timer; /* the next try; or, while there is a stream, our patience with it */
    bool relist;             /* the next try lists */
    unsigned failures;       /* in a row */
    char *version;           /* the stream goes on from here; NULL: list first */
    bool fresh_connection;   /* the last stream fell silent */
    bool bookmarks_seen;     /* this server sends them */

    char *list_version;   /* of the list under way, from its first page */
    char *continue_token; /* of its next page; NULL: the first */
    unsigned pages;
    struct list_split page;

    struct buf line;          /* the beginning of a line whose end has not come */
    int64_t stream_began_us;  /* boot clock; 0: no status line yet */
    int64_t heard_us;         /* boot clock, of the stream's newest byte that is no blank */
    bool line_seen;           /* in this stream */
    struct kube_decoded last; /* an ERROR line that ended the stream */
    char *broken;             /* why we gave the page or stream up ourselves; NULL: we did not */

    unsigned entered; /* callbacks of ours that are running */
    bool stopped;     /* freed by the outermost of them */
};

static void next_try(void *context);

/* Every callback from below runs between enter and leave, because the owner may stop us in the callbacks that
 * we make meanwhile. After that nothing is reported or started any more. */
static void enter(struct kube_watch *watch)
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

static void leave(struct kube_watch *watch)
{
    ENSURE(watch->entered > 0);
    if (--watch->entered == 0 && watch->stopped)
        watch_free(watch);
}

static void set_state(struct kube_watch *watch, enum kube_watch_state state, const char *reason)
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
    enter(watch);
    str_replace(&watch->trouble, NULL);
    set_state(watch, KUBE_WATCH_FRESH, NULL);
    leave(watch);
}

/* The stream is answered. One that breaks at once, again and again, is no news each time. */
static void set_fresh(struct kube_watch *watch)
{
    env_timer_cancel(watch->env, &watch->proves);
    if (watch->trouble)
        watch->proves = env_timer_start(watch->env, GOOD_STREAM_US, on_proven, watch);
    set_state(watch, KUBE_WATCH_FRESH, watch->trouble);
}

static void schedule(struct kube_watch *watch, int64_t delay_us)
{
    if (watch->stopped)
        return;
    ENSURE(!watch->call && !watch->timer);
    watch->timer = env_timer_start(watch->env, delay_us, next_try, watch);
}

static void try_later(struct kube_watch *watch, int64_t retry_after_us)
{
    schedule(watch, kube_backoff_us(watch->env, watch->failures++, retry_after_us));
}

/* The next try begins a list from its first page. */
static void want_list(struct kube_watch *watch)
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

static void set_stale(struct kube_watch *watch, const char *verb, const struct kube_answer *answer)
{
    CLEANUP_FREE char *reason = refusal(watch, verb, answer);
    set_state(watch, KUBE_WATCH_STALE, reason);
}

/* Gives up what is arriving, for a reason of our own. */
static void give_up(struct kube_watch *watch, const char *verb, const char *problem)
{
    CLEANUP_FREE char *collection = what(watch);
    free(watch->broken);
    watch->broken = xasprintf("cannot %s %s: %s", verb, collection, problem);
}

/* The same for one object that cannot be taken: which, as far as its bytes tell, and the way out. */
static void give_up_object(struct kube_watch *watch, const char *verb, const char *problem, const char *bytes,
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
    give_up(watch, verb, sentence);
}

/* --- listing --- */

static void add_selectors(const struct kube_watch *watch, char **path)
{
    if (watch->label_selector)
        kube_path_add_query(path, "labelSelector", watch->label_selector);
    if (watch->field_selector)
        kube_path_add_query(path, "fieldSelector", watch->field_selector);
}

/* resourceVersion is left out: a list from whatever a cache holds could go back in time. */
static char *page_path(const struct kube_watch *watch)
{
    char limit[16];
    snprintf(limit, sizeof(limit), "%u", watch->page_limit);
    char *path = kube_path(watch->resource, watch->namespace, NULL, NULL);
    add_selectors(watch, &path);
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
    if (kube_object_parse(text, length, &object, &problem) < 0) {
        CLEANUP_FREE char *sentence = xasprintf("an object is %s", error_text(problem));
        give_up_object(watch, "list", sentence, text, length, false);
        return false;
    }
    watch->callbacks.object(watch->context, object);
    return !watch->stopped;
}

static void on_page_status(void *context)
{
    struct kube_watch *watch = context;
    enter(watch);
    list_split_done(&watch->page);
    list_split_begin(&watch->page, on_item, watch);
    if (!watch->continue_token) {
        watch->pages = 0;
        str_replace(&watch->list_version, NULL);
        watch->callbacks.list_begin(watch->context);
    }
    leave(watch);
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
    enter(watch);
    int result = list_split_feed(&watch->page, bytes, length);
    if (result == -ERROR_TOO_LARGE)
        give_up_object(watch, "list", TOO_LARGE, buf_text(&watch->page.element), watch->page.element.length,
                       true);
    else if (result == -ERROR_INVALID)
        give_up(watch, "list", no_list(watch, bytes, length));
    leave(watch);
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

static void next_page(struct kube_watch *watch)
{
    CLEANUP_FREE char *version = NULL;
    CLEANUP_FREE char *more = NULL;
    if (read_envelope(watch, &version, &more) < 0 || ++watch->pages > PAGES_MAX) {
        give_up(watch, "list", watch->pages > PAGES_MAX ? "the list has no end" : no_list(watch, NULL, 0));
        set_state(watch, KUBE_WATCH_STALE, watch->broken);
        want_list(watch);
        try_later(watch, -1);
        return;
    }
    /* The list is a picture of the moment that its first page names. */
    if (!watch->list_version)
        watch->list_version = STEAL(version);
    str_replace(&watch->continue_token, more);
    if (!watch->continue_token) {
        watch->relist = false;
        free(watch->version);
        watch->version = STEAL(watch->list_version);
        watch->callbacks.list_end(watch->context);
    }
    schedule(watch, 0);
}

/* In the middle of a list the next try takes up where this one failed, unless the server does not take the
 * token. */
static void after_bad_page(struct kube_watch *watch, const struct kube_answer *answer)
{
    /* A token that is older than what the server keeps is ordinary. */
    if (answer->code != ERROR_GONE || !watch->continue_token)
        set_stale(watch, "list", answer);
    if (answer->http >= 400 && answer->http != 429 && (answer->http < 500 || watch->failures >= REFUSALS_MAX))
        want_list(watch);
    if (answer->http == 404)
        schedule(watch, MISSING_RETRY_US);
    else
        try_later(watch, answer->retry_after_us);
}

static void on_page_done(void *context, const struct kube_answer *answer)
{
    struct kube_watch *watch = context;
    enter(watch);
    watch->call = NULL;
    if (watch->broken) {
        set_state(watch, KUBE_WATCH_STALE, watch->broken);
        want_list(watch);
        try_later(watch, -1);
    } else if (answer->outcome == KUBE_OK && !answer->body_cut) {
        next_page(watch);
    } else {
        after_bad_page(watch, answer);
    }
    list_split_done(&watch->page);
    leave(watch);
}

static const char *accept(const struct kube_watch *watch, bool list)
{
    if (!watch->metadata_only)
        return NULL;
    return list ? "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
                : "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
}

static void start_page(struct kube_watch *watch)
{
    CLEANUP_FREE char *path = page_path(watch);
    struct kube_request request = {
        .method = "GET",
        .path = path,
        .accept = accept(watch, true),
        .pool = HTTP_POOL_REQUEST,
        .timeout_us = PAGE_TIMEOUT_US,
        .idle_timeout_us = PAGE_IDLE_US,
        .on_status = on_page_status,
        .on_data = on_page_data,
    };
    watch->call = kube_call_start(watch->client, &request, on_page_done, watch);
}

/* --- streaming --- */

static char *stream_path(const struct kube_watch *watch, unsigned seconds)
{
    char timeout[16];
    snprintf(timeout, sizeof(timeout), "%u", seconds);
    char *path = kube_path(watch->resource, watch->namespace, NULL, NULL);
    add_selectors(watch, &path);
    kube_path_add_query(&path, "watch", "true");
    kube_path_add_query(&path, "allowWatchBookmarks", "true");
    kube_path_add_query(&path, "resourceVersion", watch->version);
    kube_path_add_query(&path, "timeoutSeconds", timeout);
    return path;
}

/* One event. False: the stream ends here, watch->broken or watch->last says why. */
static bool on_line(struct kube_watch *watch, const char *line, size_t length)
{
    struct kube_event event;
    CLEANUP_ERROR struct error *problem = NULL;
    if (kube_event_parse(line, length, &event, &problem) < 0) {
        CLEANUP_FREE char *sentence = xasprintf("malformed watch line: %s", error_text(problem));
        give_up_object(watch, "watch", sentence, line, length, false);
        return false;
    }
    watch->line_seen = true;
    switch (event.type) {
    case KUBE_EVENT_ADDED:
    case KUBE_EVENT_MODIFIED:
        watch->callbacks.object(watch->context, event.object);
        break;
    case KUBE_EVENT_DELETED:
        watch->callbacks.deleted(watch->context, event.object);
        break;
    case KUBE_EVENT_BOOKMARK:
        watch->bookmarks_seen = true;
        break;
    case KUBE_EVENT_ERROR:
        kube_decoded_done(&watch->last);
        kube_decode_status(json_copy(event.object), &watch->last);
        break;
    }
    bool more = event.type != KUBE_EVENT_ERROR && !watch->stopped;
    if (event.version)
        str_replace(&watch->version, event.version);
    kube_event_done(&event);
    return more;
}

/* One large object must not hold its memory for ever. */
static void clear_line(struct kube_watch *watch)
{
    if (watch->line.room > LINE_ROOM_KEPT)
        buf_done(&watch->line);
    else
        buf_clear(&watch->line);
}

static bool has_content(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isspace((unsigned char)bytes[i]))
            return true;
    return false;
}

/* Every whole line in bytes, the first of them behind what watch->line holds already. */
static bool take_lines(struct kube_watch *watch, const char *bytes, size_t length)
{
    const char *end = bytes + length;
    for (const char *at = bytes; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        const char *line = at;
        size_t line_length = (size_t)(stop - at);
        if (!newline || watch->line.length) {
            if (buf_add(&watch->line, at, line_length) < 0) {
                give_up_object(watch, "watch", TOO_LARGE, buf_text(&watch->line), watch->line.length, true);
                return false;
            }
            line = buf_text(&watch->line);
            line_length = watch->line.length;
        }
        if (!newline)
            return true;
        if (has_content(line, line_length) && !on_line(watch, line, line_length))
            return false;
        clear_line(watch);
        at = newline + 1;
    }
    return true;
}

static bool on_stream_data(void *context, const char *bytes, size_t length)
{
    struct kube_watch *watch = context;
    enter(watch);
    if (has_content(bytes, length))
        watch->heard_us = env_boot_us(watch->env);
    bool more = take_lines(watch, bytes, length);
    leave(watch);
    return more;
}

static void on_stream_status(void *context)
{
    struct kube_watch *watch = context;
    enter(watch);
    watch->stream_began_us = env_boot_us(watch->env);
    watch->heard_us = watch->stream_began_us;
    watch->fresh_connection = false;
    set_fresh(watch);
    leave(watch);
}

/* Resumes at the last version: at once when the stream has lived, else after a back-off. */
static void resume(struct kube_watch *watch, bool lived)
{
    if (lived)
        schedule(watch, 0);
    else
        try_later(watch, -1);
}

static void after_error_line(struct kube_watch *watch)
{
    const struct kube_answer *answer = &watch->last.answer;
    /* Too old is ordinary: the list that follows says so by its state. */
    if (answer->code != ERROR_GONE)
        set_stale(watch, "watch", answer);
    if (answer->http != 429)
        want_list(watch);
    try_later(watch, answer->retry_after_us);
}

/* The stream was cut. */
static void after_loss(struct kube_watch *watch, const struct kube_answer *answer, bool lived)
{
    set_stale(watch, "watch", answer);
    resume(watch, lived);
}

static void after_refusal(struct kube_watch *watch, const struct kube_answer *answer)
{
    if (answer->code != ERROR_GONE)
        set_stale(watch, "watch", answer);
    /* Too old; the definition is gone; a version that this server does not understand (400, 422, or a 500).
     */
    if (answer->code == ERROR_GONE || answer->code == ERROR_NOT_FOUND || answer->code == ERROR_INVALID ||
        (answer->http >= 500 && watch->failures >= REFUSALS_MAX))
        want_list(watch);
    try_later(watch, answer->retry_after_us);
}

static bool has_lived(const struct kube_watch *watch)
{
    return watch->stream_began_us > 0 && env_boot_us(watch->env) - watch->stream_began_us >= GOOD_STREAM_US;
}

static void on_stream_done(void *context, const struct kube_answer *answer)
{
    struct kube_watch *watch = context;
    enter(watch);
    watch->call = NULL;
    env_timer_cancel(watch->env, &watch->timer);
    env_timer_cancel(watch->env, &watch->proves);
    bool answered = watch->stream_began_us > 0;
    bool lived = has_lived(watch);
    if (lived)
        watch->failures = 0;
    if (watch->broken) {
        set_state(watch, KUBE_WATCH_STALE, watch->broken);
        want_list(watch);
        try_later(watch, -1);
    } else if (watch->last.tree) {
        after_error_line(watch);
    } else if (answered && answer->outcome == KUBE_OK && !answer->body_cut) {
        resume(watch, lived);
    } else if (answered) {
        after_loss(watch, answer, lived);
    } else {
        after_refusal(watch, answer);
    }
    leave(watch);
}

/* Nothing comes any more: this stream is given up, the next one gets a fresh connection, for libcurl would
 * put it on the frozen one. */
static void abandon_stream(struct kube_watch *watch)
{
    bool answered = watch->stream_began_us > 0;
    bool lived = has_lived(watch);
    kube_call_cancel(watch->client, &watch->call);
    env_timer_cancel(watch->env, &watch->proves);
    watch->fresh_connection = true;
    /* From a server that sends no bookmarks, silence is no news. */
    if (!answered || watch->bookmarks_seen) {
        give_up(watch, "watch", answered ? "the server has fallen silent" : "the server does not answer");
        set_state(watch, KUBE_WATCH_STALE, watch->broken);
    }
    /* One that does send them, and has not sent a single line, may wait for a version that it never had: its
     * storage was restored from a backup (measured: 200, and then nothing for ever). */
    if (answered && watch->bookmarks_seen && !watch->line_seen)
        want_list(watch);
    if (lived)
        watch->failures = 0;
    resume(watch, lived);
}

static void be_patient(struct kube_watch *watch, int64_t wait_us);

/* No status line has come, or the stream may have fallen silent. */
static void on_patience_end(void *context)
{
    struct kube_watch *watch = context;
    int64_t left_us = watch->heard_us + IDLE_US - env_boot_us(watch->env);
    watch->timer = NULL;
    enter(watch);
    if (watch->stream_began_us > 0 && left_us > 0)
        be_patient(watch, left_us);
    else
        abandon_stream(watch);
    leave(watch);
}

/* Looks again after so long. */
static void be_patient(struct kube_watch *watch, int64_t wait_us)
{
    env_timer_cancel(watch->env, &watch->timer);
    watch->timer = env_timer_start(watch->env, wait_us, on_patience_end, watch);
}

static unsigned stream_seconds(struct kube_watch *watch)
{
    uint32_t random;
    env_random(watch->env, &random, sizeof(random));
    return STREAM_MIN_S + random % (STREAM_MAX_S - STREAM_MIN_S + 1);
}

static void start_stream(struct kube_watch *watch)
{
    unsigned seconds = stream_seconds(watch);
    CLEANUP_FREE char *path = stream_path(watch, seconds);
    struct kube_request request = {
        .method = "GET",
        .path = path,
        .accept = accept(watch, false),
        .pool = HTTP_POOL_WATCH,
        .timeout_us = seconds * US_PER_S + STREAM_GRACE_US,
        .fresh_connection = watch->fresh_connection,
        .on_status = on_stream_status,
        .on_data = on_stream_data,
    };
    clear_line(watch);
    kube_decoded_done(&watch->last);
    watch->stream_began_us = 0;
    watch->line_seen = false;
    watch->call = kube_call_start(watch->client, &request, on_stream_done, watch);
    be_patient(watch, STATUS_TIMEOUT_US);
}

/* --- both --- */

static void next_try(void *context)
{
    struct kube_watch *watch = context;
    watch->timer = NULL;
    enter(watch);
    str_replace(&watch->broken, NULL);
    if (!watch->relist) {
        start_stream(watch);
    } else {
        /* While a list keeps failing, its reason stands. */
        if (!watch->continue_token && watch->state != KUBE_WATCH_STALE)
            set_state(watch, KUBE_WATCH_LISTING, NULL);
        if (!watch->stopped)
            start_page(watch);
    }
    leave(watch);
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
    want_list(watch);
    schedule(watch, 0);
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
