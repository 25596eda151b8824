/* SPDX-License-Identifier: Apache-2.0
 *
 * The owner of a watch, on a server that the test plays by hand: writes down as text what it is told. */
#pragma once

#include "kube/watch.h"

#include "base/time_text.h"

#include "model.h"

/* What the owner of a watch was told, as text: "begin a b end FRESH +c -d" ... */
struct owner {
    struct model *model;
    struct kube_client *client;
    struct kube_watch *watch;
    char log[8192];
    char reason[512]; /* of the newest state */
    unsigned states;
    const char *known_version; /* an object of this version is known already; NULL: none is */
    const char *stop_at;       /* the word in whose callback the watch is stopped; NULL: never */
};

static inline void note(struct owner *owner, const char *word, const char *rest)
{
    size_t at = strlen(owner->log);
    snprintf(owner->log + at, sizeof(owner->log) - at, "%s%s%s", at ? " " : "", word, rest);
    if (str_equal(owner->stop_at, word)) {
        owner->stop_at = NULL;
        kube_watch_stop(STEAL(owner->watch));
    }
}

static inline void on_list_begin(void *context)
{
    note(context, "begin", "");
}

static inline void on_list_end(void *context)
{
    note(context, "end", "");
}

static inline const char *name_of(const cJSON *object)
{
    const char *name = json_path_str(object, "metadata", "name", NULL);
    return name ? name : "?";
}

static inline void on_object(void *context, const cJSON *object)
{
    note(context, "+", name_of(object));
}

static inline bool on_may_know(void *context, const char *version)
{
    const struct owner *owner = context;
    return owner->known_version && str_equal(version, owner->known_version);
}

static inline bool on_knows(void *context, const cJSON *object)
{
    note(context, "=", name_of(object));
    return !str_equal(name_of(object), "d");
}

static inline void on_deleted(void *context, const cJSON *object)
{
    note(context, "-", name_of(object));
}

static inline void on_state(void *context, enum kube_watch_state state, const char *reason)
{
    static const char *const words[] = {"LISTING", "FRESH", "STALE"};
    struct owner *owner = context;
    owner->states++;
    snprintf(owner->reason, sizeof(owner->reason), "%s", reason ? reason : "");
    note(owner, words[state], "");
}

static inline void on_went_back(void *context)
{
    note(context, "BACK", "");
}

static const struct kube_watch_callbacks owner_callbacks = {.went_back = on_went_back,
                                                            .list_begin = on_list_begin,
                                                            .list_end = on_list_end,
                                                            .object = on_object,
                                                            .may_know = on_may_know,
                                                            .knows = on_knows,
                                                            .deleted = on_deleted,
                                                            .state = on_state};

static inline int make(void **state)
{
    struct owner *owner = xcalloc(1, sizeof(*owner));
    owner->model = model_make(11);
    owner->client = kube_client_make(owner->model->env, kube_config_of_url("http://api"));
    *state = owner;
    return 0;
}

static inline int unmake(void **state)
{
    struct owner *owner = *state;
    kube_watch_stop(owner->watch);
    kube_client_free(owner->client);
    model_free(owner->model);
    free(owner);
    return 0;
}

static inline void start_spec(struct owner *owner, const struct kube_watch_spec *spec)
{
    owner->watch = kube_watch_start(owner->client, spec, &owner_callbacks, owner);
}

static inline void start(struct owner *owner)
{
    start_spec(owner, &(struct kube_watch_spec){.resource = KUBE_POD, .namespace = "db"});
}

/* What was told since the last look. */
static inline void expect(struct owner *owner, const char *log)
{
    assert_string_equal(owner->log, log);
    owner->log[0] = '\0';
}

#define OBJECT(name, version) "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}}"
#define LINE(type, name, version) "{\"type\":\"" type "\",\"object\":" OBJECT(name, version) "}\n"
#define LIST(version, more, items)                                                                           \
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" version               \
    "\",\"continue\":\"" more "\"},\"items\":[" items "]}"
#define BOOKMARK(version)                                                                                    \
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"" version "\"}}}\n"
#define ERROR_LINE(code, reason) "{\"type\":\"ERROR\",\"object\":" STATUS(code, reason) "}\n"

/* The value of a query parameter, still encoded; the caller's. NULL when absent. */
static inline char *query(const struct env_sim_call *call, const char *name)
{
    CLEANUP_FREE char *wanted = xasprintf("%s=", name);
    const char *at = strchr(call->path, '?');
    while (at) {
        at++;
        const char *end = strchr(at, '&');
        if (str_starts_with(at, wanted))
            return xstrndup(at + strlen(wanted), (end ? (size_t)(end - at) : strlen(at)) - strlen(wanted));
        at = end;
    }
    return NULL;
}

static inline bool query_is(const struct env_sim_call *call, const char *name, const char *value)
{
    CLEANUP_FREE char *found = query(call, name);
    return str_equal(found, value);
}

static inline void has_query(const struct env_sim_call *call, const char *name, const char *value)
{
    if (!query_is(call, name, value))
        print_error("%s in %s\n", name, call->path);
    assert_true(query_is(call, name, value));
}

/* The watch has listed one object "a" at version 10 and streams. */
static inline struct env_sim_call *stream(struct owner *owner)
{
    start(owner);
    model_answer(owner->model, model_next(owner->model), 200, LIST("10", "", OBJECT("a", "9")));
    struct env_sim_call *call = model_next(owner->model);
    has_query(call, "watch", "true");
    env_sim_http_begin(call, 200, NULL, 0);
    model_settle(owner->model);
    expect(owner, "LISTING begin +a end FRESH");
    assert_true(kube_watch_is_fresh(owner->watch));
    return call;
}

/* The next request is a watch that goes on at this version; it is answered. */
static inline struct env_sim_call *resumed(struct owner *owner, const char *version)
{
    struct env_sim_call *call = model_next(owner->model);
    has_query(call, "watch", "true");
    has_query(call, "resourceVersion", version);
    env_sim_http_begin(call, 200, NULL, 0);
    model_settle(owner->model);
    return call;
}

/* The next request is a list from the beginning; it is answered with one object "b" at version 20. */
static inline void relisted(struct owner *owner)
{
    struct env_sim_call *call = model_next(owner->model);
    has_query(call, "watch", NULL);
    has_query(call, "continue", NULL);
    has_query(call, "resourceVersion", NULL);
    model_answer(owner->model, call, 200, LIST("20", "", OBJECT("b", "19")));
}
