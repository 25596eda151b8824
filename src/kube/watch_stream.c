/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/watch_parts.h"

#include "kube/event.h"

#include <ctype.h>
#include <stdio.h>

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

enum { LINE_ROOM_KEPT = 64 * 1024, VERSION_ROOM = 32 };

static char *stream_path(const struct kube_watch *watch, unsigned seconds)
{
    char timeout[16];
    snprintf(timeout, sizeof(timeout), "%u", seconds);
    char *path = kube_path(watch->resource, watch->namespace, NULL, NULL);
    watch_add_selectors(watch, &path);
    kube_path_add_query(&path, "watch", "true");
    kube_path_add_query(&path, "allowWatchBookmarks", "true");
    kube_path_add_query(&path, "resourceVersion", watch->version);
    kube_path_add_query(&path, "timeoutSeconds", timeout);
    return path;
}

/* The watch repeats what the answers to our own writes have brought: that is seen before all of it is read.
 */
static bool is_repeated(struct kube_watch *watch, const char *line, size_t length)
{
    char guess[VERSION_ROOM];
    const struct kube_watch_callbacks *callbacks = &watch->callbacks;
    if (!callbacks->may_know || !kube_event_guess_version(line, length, guess, sizeof(guess)) ||
        !callbacks->may_know(watch->context, guess))
        return false;
    CLEANUP_JSON cJSON *object = kube_event_peek(line, length);
    const char *version = object ? kube_object_version(object) : NULL;
    if (!version || !callbacks->knows(watch->context, object))
        return false;
    watch->line_seen = true;
    str_replace(&watch->version, version);
    return true;
}

/* One event. False: the stream ends here, watch->broken or watch->last says why. */
static bool on_line(struct kube_watch *watch, const char *line, size_t length)
{
    struct kube_event event;
    CLEANUP_ERROR struct error *problem = NULL;
    if (is_repeated(watch, line, length))
        return !watch->stopped;
    if (kube_event_parse(line, length, &event, &problem) < 0) {
        CLEANUP_FREE char *sentence = xasprintf("malformed watch line: %s", error_text(problem));
        watch_give_up_object(watch, "watch", sentence, line, length, false);
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
                watch_give_up_object(watch, "watch", WATCH_TOO_LARGE, buf_text(&watch->line),
                                     watch->line.length, true);
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
    watch_enter(watch);
    if (has_content(bytes, length))
        watch->heard_us = env_boot_us(watch->env);
    bool more = take_lines(watch, bytes, length);
    watch_leave(watch);
    return more;
}

static void on_stream_status(void *context)
{
    struct kube_watch *watch = context;
    watch_enter(watch);
    watch->stream_began_us = env_boot_us(watch->env);
    watch->heard_us = watch->stream_began_us;
    watch->fresh_connection = false;
    watch_set_fresh(watch);
    watch_leave(watch);
}

/* Resumes at the last version: at once when the stream has lived, else after a back-off. */
static void resume(struct kube_watch *watch, bool lived)
{
    if (lived)
        watch_schedule(watch, 0);
    else
        watch_try_later(watch, -1);
}

static void after_error_line(struct kube_watch *watch)
{
    const struct kube_answer *answer = &watch->last.answer;
    /* Too old is ordinary: the list that follows says so by its state. */
    if (answer->code != ERROR_GONE)
        watch_set_stale(watch, "watch", answer);
    if (answer->http != 429)
        watch_want_list(watch);
    watch_try_later(watch, answer->retry_after_us);
}

/* The stream was cut. */
static void after_loss(struct kube_watch *watch, const struct kube_answer *answer, bool lived)
{
    watch_set_stale(watch, "watch", answer);
    resume(watch, lived);
}

static void after_refusal(struct kube_watch *watch, const struct kube_answer *answer)
{
    if (answer->code != ERROR_GONE)
        watch_set_stale(watch, "watch", answer);
    /* Too old; the definition is gone; a version that this server does not understand (400, 422, or a 500).
     */
    if (answer->code == ERROR_GONE || answer->code == ERROR_NOT_FOUND || answer->code == ERROR_INVALID ||
        (answer->http >= 500 && watch->failures >= WATCH_REFUSALS_MAX))
        watch_want_list(watch);
    watch_try_later(watch, answer->retry_after_us);
}

static bool has_lived(const struct kube_watch *watch)
{
    return watch->stream_began_us > 0 &&
           env_boot_us(watch->env) - watch->stream_began_us >= WATCH_GOOD_STREAM_US;
}

static void on_stream_done(void *context, const struct kube_answer *answer)
{
    struct kube_watch *watch = context;
    watch_enter(watch);
    watch->call = NULL;
    env_timer_cancel(watch->env, &watch->timer);
    env_timer_cancel(watch->env, &watch->proves);
    bool answered = watch->stream_began_us > 0;
    bool lived = has_lived(watch);
    if (lived)
        watch->failures = 0;
    if (watch->broken) {
        watch_set_state(watch, KUBE_WATCH_STALE, watch->broken);
        watch_want_list(watch);
        watch_try_later(watch, -1);
    } else if (watch->last.tree) {
        after_error_line(watch);
    } else if (answered && answer->outcome == KUBE_OK && !answer->body_cut) {
        resume(watch, lived);
    } else if (answered) {
        after_loss(watch, answer, lived);
    } else {
        after_refusal(watch, answer);
    }
    watch_leave(watch);
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
        watch_give_up(watch, "watch",
                      answered ? "the server has fallen silent" : "the server does not answer");
        watch_set_state(watch, KUBE_WATCH_STALE, watch->broken);
    }
    /* One that does send them, and has not sent a single line, may wait for a version that it never had: its
     * storage was restored from a backup (measured: 200, and then nothing for ever). */
    if (answered && watch->bookmarks_seen && !watch->line_seen)
        watch_want_list(watch);
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
    watch_enter(watch);
    if (watch->stream_began_us > 0 && left_us > 0)
        be_patient(watch, left_us);
    else
        abandon_stream(watch);
    watch_leave(watch);
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

void watch_start_stream(struct kube_watch *watch)
{
    unsigned seconds = stream_seconds(watch);
    CLEANUP_FREE char *path = stream_path(watch, seconds);
    struct kube_request request = {
        .method = "GET",
        .path = path,
        .accept = watch_accept(watch, false),
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
