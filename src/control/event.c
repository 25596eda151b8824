/* SPDX-License-Identifier: Apache-2.0 */
#include "control/event.h"

#include "base/sha256.h"
#include "base/time_text.h"
#include "base/utf8.h"
#include "control/step.h"
#include "kube/manifest.h"

#include <uthash.h>

/* Distinct events remembered; the oldest gives way. */
enum { EVENTS_MAX = 512, UNDER_WAY_MAX = 4, NOTE_MAX = 1000 };
#define AGAIN_US (10 * US_PER_S)
/* A count older than this begins a new Event: the server forgets them after an hour. */
#define FRESH_US (600 * US_PER_S)

struct event {
    struct event_recorder *recorder;
    UT_hash_handle hh; /* by identity, in order of insertion */
    char *identity;    /* object, reason, note */
    enum kube_resource resource;
    char *namespace;
    char *name;
    char *uid;
    bool warning;
    char *reason;
    char *note;
    char *event_name;
    int64_t first_wall_us;
    int64_t last_wall_us;
    int64_t sent_boot_us; /* of the last write */
    int count;
    int count_sent; /* 0: the Event is not made yet */
    bool under_way;
    bool creating; /* what is under way makes it */
};

struct event_recorder {
    struct env *env;
    struct exempt *exempt;
    char *component;
    char *instance;
    struct event *events;
    struct env_timer *timer;
    unsigned under_way;
};

static void pump(void *context);

static void event_free(struct event *event)
{
    char *const texts[] = {event->identity, event->namespace, event->name,      event->uid,
                           event->reason,   event->note,      event->event_name};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        free(texts[i]);
    free(event);
}

struct event_recorder *event_recorder_make(struct env *env, struct exempt *exempt, const char *component,
                                           const char *instance)
{
    struct event_recorder *recorder = xcalloc(1, sizeof(*recorder));
    recorder->env = env;
    recorder->exempt = exempt;
    recorder->component = xstrdup(component);
    recorder->instance = xstrdup(instance);
    return recorder;
}

void event_recorder_free(struct event_recorder *recorder)
{
    if (!recorder)
        return;
    env_timer_cancel(recorder->env, &recorder->timer);
    struct event *event = NULL, *next = NULL;
    HASH_ITER (hh, recorder->events, event, next) {
        HASH_DEL(recorder->events, event);
        event_free(event);
    }
    free(recorder->component);
    free(recorder->instance);
    free(recorder);
}

/* --- the object ----------------------------------------------------------------------------------------- */

static cJSON *event_body(const struct event_recorder *recorder, const struct event *event)
{
    char first[TIME_TEXT_SIZE], last[TIME_TEXT_SIZE];
    time_format_seconds(event->first_wall_us, first);
    time_format_seconds(event->last_wall_us, last);
    cJSON *body =
        kube_manifest(KUBE_EVENT, event->namespace ? event->namespace : "default", event->event_name);
    cJSON *about = json_add_object(body, "involvedObject");
    kube_add_type(about, event->resource);
    json_add_str(about, "name", event->name);
    if (event->namespace)
        json_add_str(about, "namespace", event->namespace);
    if (event->uid)
        json_add_str(about, "uid", event->uid);
    json_add_str(body, "type", event->warning ? "Warning" : "Normal");
    json_add_str(body, "reason", event->reason);
    json_add_str(body, "message", event->note);
    json_add_str(body, "firstTimestamp", first);
    json_add_str(body, "lastTimestamp", last);
    json_add_int64(body, "count", event->count);
    json_add_str(json_add_object(body, "source"), "component", recorder->component);
    json_add_str(body, "reportingComponent", recorder->component);
    json_add_str(body, "reportingInstance", recorder->instance);
    return body;
}

static cJSON *count_body(const struct event *event)
{
    char last[TIME_TEXT_SIZE];
    time_format_seconds(event->last_wall_us, last);
    cJSON *body = json_new_object();
    json_add_int64(body, "count", event->count);
    json_add_str(body, "lastTimestamp", last);
    return body;
}

/* --- sending -------------------------------------------------------------------------------------------- */

static void wake(struct event_recorder *recorder, int64_t delay_us)
{
    env_timer_cancel(recorder->env, &recorder->timer);
    recorder->timer = env_timer_start(recorder->env, delay_us, pump, recorder);
}

static void sent(void *context, const struct kube_answer *answer)
{
    struct event *event = context;
    struct event_recorder *recorder = event->recorder;
    event->under_way = false;
    recorder->under_way--;
    if (answer->http == 404 && !event->creating)
        event->count_sent = 0; /* the server forgot it: the next one is made anew */
    wake(recorder, 0);
}

static void send_event(struct event_recorder *recorder, struct event *event)
{
    bool is_new = event->count_sent == 0;
    if (is_new) {
        uint8_t noise[8];
        env_random(recorder->env, noise, sizeof(noise));
        CLEANUP_FREE char *suffix = hex_encode(noise, sizeof(noise));
        free(event->event_name);
        event->event_name = xasprintf("%.200s.%s", event->name, suffix);
    }
    CLEANUP_JSON cJSON *body = is_new ? event_body(recorder, event) : count_body(event);
    event->count_sent = event->count;
    event->sent_boot_us = env_boot_us(recorder->env);
    event->under_way = true;
    event->creating = is_new;
    recorder->under_way++;
    exempt_write(recorder->exempt,
                 &(struct exempt_request){.kind = EXEMPT_EVENT,
                                          .method = is_new ? "POST" : "PATCH",
                                          .resource = KUBE_EVENT,
                                          .namespace = event->namespace ? event->namespace : "default",
                                          .name = is_new ? NULL : event->event_name,
                                          .content_type = is_new ? KUBE_JSON : KUBE_MERGE,
                                          .body = body,
                                          .timeout_us = 10 * US_PER_S},
                 sent, event);
}

static void pump(void *context)
{
    struct event_recorder *recorder = context;
    recorder->timer = NULL;
    int64_t now_us = env_boot_us(recorder->env);
    int64_t next_us = INT64_MAX;
    struct event *event = NULL, *next = NULL;
    HASH_ITER (hh, recorder->events, event, next) {
        if (recorder->under_way >= UNDER_WAY_MAX)
            return; /* an answer wakes us */
        if (event->under_way || event->count == event->count_sent)
            continue;
        int64_t due_us = event->count_sent == 0 ? now_us : event->sent_boot_us + AGAIN_US;
        if (due_us <= now_us)
            send_event(recorder, event);
        else
            next_us = MIN(next_us, due_us);
    }
    if (next_us != INT64_MAX)
        wake(recorder, next_us - now_us);
}

/* --- recording ------------------------------------------------------------------------------------------ */

static void drop_oldest(struct event_recorder *recorder)
{
    struct event *event = NULL, *next = NULL;
    HASH_ITER (hh, recorder->events, event, next) {
        if (event->under_way)
            continue;
        HASH_DEL(recorder->events, event);
        event_free(event);
        return;
    }
}

/* At most max bytes of text, never half a character; the caller's. */
static char *cut_text(const char *text, size_t max)
{
    size_t length = strlen(text), kept = 0;
    while (kept < length) {
        size_t step = utf8_sequence_length((const uint8_t *)text + kept, length - kept);
        if (kept + MAX(step, 1) > max)
            break;
        kept += MAX(step, 1);
    }
    return xstrndup(text, kept);
}

static struct event *event_of(struct event_recorder *recorder, const struct event_subject *subject,
                              bool warning, const char *reason, const char *note)
{
    CLEANUP_FREE char *short_note = cut_text(note, NOTE_MAX);
    CLEANUP_FREE char *identity = xasprintf("%s/%s/%s/%s/%s/%s", kube_resource_info(subject->resource)->kind,
                                            subject->namespace ? subject->namespace : "", subject->name,
                                            subject->uid ? subject->uid : "", reason, short_note);
    struct event *event = NULL;
    HASH_FIND_STR(recorder->events, identity, event);
    if (event)
        return event;
    if (HASH_COUNT(recorder->events) >= EVENTS_MAX)
        drop_oldest(recorder);
    event = xcalloc(1, sizeof(*event));
    event->recorder = recorder;
    event->identity = STEAL(identity);
    event->resource = subject->resource;
    event->namespace = xstrdup_or_null(subject->namespace);
    event->name = xstrdup(subject->name);
    event->uid = xstrdup_or_null(subject->uid);
    event->warning = warning;
    event->reason = xstrdup(reason);
    event->note = STEAL(short_note);
    HASH_ADD_KEYPTR(hh, recorder->events, event->identity, strlen(event->identity), event);
    return event;
}

void event_record(struct event_recorder *recorder, const struct event_subject *subject, bool warning,
                  const char *reason, const char *note)
{
    PRE(reason && note && subject->name);
    struct event *event = event_of(recorder, subject, warning, reason, note);
    int64_t wall_us = env_wall_us(recorder->env);
    if (!event->under_way && event->count_sent > 0 && wall_us - event->last_wall_us > FRESH_US)
        event->count = event->count_sent = 0;
    if (event->count == 0)
        event->first_wall_us = wall_us;
    event->last_wall_us = wall_us;
    event->count++;
    /* The timer may be set for when a count is due: what nobody has seen yet does not wait for that. */
    if (!recorder->timer || event->count_sent == 0)
        wake(recorder, 0);
}
