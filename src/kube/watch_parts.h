/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a watch, as they know each other: watch.c keeps its state and decides what is tried next,
 * watch_list.c lists page by page, watch_stream.c reads the stream line by line. Only watch*.c includes this.
 */
#pragma once

#include "base/time_text.h"
#include "kube/call.h"
#include "kube/list_split.h"
#include "kube/object.h"
#include "kube/watch.h"

/* A server that refuses the same so often in a row may do so because of the token or version that we send. */
enum { WATCH_REFUSALS_MAX = 3 };

#define WATCH_TOO_LARGE "an object is larger than 8 MiB"

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

/* --- watch.c --- */

/* Every callback from below runs between these two, because the owner may stop us in the callbacks that we
 * make meanwhile. After that nothing is reported or started any more. */
void watch_enter(struct kube_watch *watch);
void watch_leave(struct kube_watch *watch);

void watch_set_state(struct kube_watch *watch, enum kube_watch_state state, const char *reason);
/* The stream is answered. One that breaks at once, again and again, is no news each time. */
void watch_set_fresh(struct kube_watch *watch);
/* STALE, because of what the list or watch (verb) was answered. */
void watch_set_stale(struct kube_watch *watch, const char *verb, const struct kube_answer *answer);
/* Gives up what is arriving, for a reason of our own. */
void watch_give_up(struct kube_watch *watch, const char *verb, const char *problem);
/* The same for one object that cannot be taken: which, as far as its bytes tell, and the way out. */
void watch_give_up_object(struct kube_watch *watch, const char *verb, const char *problem, const char *bytes,
                          size_t length, bool is_too_large);

/* The next try begins a list from its first page. */
void watch_want_list(struct kube_watch *watch);
void watch_schedule(struct kube_watch *watch, int64_t delay_us);
/* After a back-off, or as late as the server asked for; -1: it did not. */
void watch_try_later(struct kube_watch *watch, int64_t retry_after_us);
/* A stream that lived so long proves that the server is well: the back-off begins anew. */
#define WATCH_GOOD_STREAM_US (5 * US_PER_S)

/* Of a request: what both ask for. */
void watch_add_selectors(const struct kube_watch *watch, char **path);
const char *watch_accept(const struct kube_watch *watch, bool list);

/* --- the others --- */

/* Asks for the next page; its answer schedules what comes then. */
void watch_start_page(struct kube_watch *watch);
/* Streams from watch->version; its end schedules what comes then. */
void watch_start_stream(struct kube_watch *watch);
