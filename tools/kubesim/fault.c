/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/fault.h"

#include <errno.h>
#include <fnmatch.h>

enum { FAULTS_MAX = 256 };

struct fault {
    struct fault_effect effect;
    char *verb;     /* of verb_name(), "write", or NULL: what the action is made for */
    char *resource; /* globs; NULL: any */
    char *subresource;
    char *name;
    char *namespace;
    char *user;
    int64_t nth;   /* the first matching request that is hit, from 1 */
    int64_t times; /* how many from there on; 0: all */
    int64_t seen;
};

struct fault_list {
    struct fault *faults[FAULTS_MAX];
    size_t count;
    unsigned hits;
};

static void fault_free(struct fault *fault)
{
    if (!fault)
        return;
    free(fault->verb);
    free(fault->resource);
    free(fault->subresource);
    free(fault->name);
    free(fault->namespace);
    free(fault->user);
    free(fault);
}
DEFINE_CLEANUP(cleanup_fault, struct fault, fault_free);

void fault_list_free(struct fault_list *list)
{
    for (size_t i = 0; list && i < list->count; i++)
        fault_free(list->faults[i]);
    free(list);
}

static int parse_number(const char *text, int64_t max, int64_t *ret, struct error **err)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno || *end || end == text || number < 0 || number > max)
        return error_set(err, ERROR_USAGE, "'%s' is no number from 0 to %lld", text, (long long)max);
    *ret = number;
    return 0;
}

/* "3" is a count, "3s" a time. */
static int parse_amount(struct fault *fault, const char *text, bool time_only, struct error **err)
{
    if (!time_only && text[strspn(text, "0123456789")] == '\0')
        return parse_number(text, 1000000000, &fault->effect.count, err);
    CLEANUP_ERROR struct error *problem = NULL;
    if (duration_parse(text, &fault->effect.amount_us, &problem) < 0)
        return error_set(err, ERROR_USAGE, "%s", error_text(problem));
    return 0;
}

static int parse_action(struct fault *fault, const char *word, const char *value, struct error **err)
{
    static const struct {
        const char *name;
        enum fault_action action;
        bool needs_time;
        bool takes_amount;
    } actions[] = {
        {"lost", FAULT_LOST, false, false}, {"drop", FAULT_DROP, false, false},
        {"late", FAULT_LATE, true, true},   {"slow", FAULT_SLOW, true, true},
        {"cut", FAULT_CUT, false, true},    {"freeze", FAULT_FREEZE, false, true},
        {"gone", FAULT_GONE, false, false}, {"stale", FAULT_STALE, false, true},
    };
    fault->effect.amount_us = -1;
    for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
        if (strcmp(actions[i].name, word) != 0)
            continue;
        fault->effect.action = actions[i].action;
        if (value && !actions[i].takes_amount)
            return error_set(err, ERROR_USAGE, "'%s' takes no value", word);
        if (!value && (actions[i].needs_time || actions[i].action == FAULT_STALE))
            return error_set(err, ERROR_USAGE, "'%s' needs a value, as in %s=%s", word, word,
                             actions[i].needs_time ? "3s" : "5");
        return value ? parse_amount(fault, value, actions[i].needs_time, err) : 0;
    }
    int64_t status;
    if (value || strlen(word) != 3 || parse_number(word, 599, &status, NULL) < 0 || status < 400)
        return error_set(err, ERROR_USAGE,
                         "'%s' is no fault: a status from 400 to 599, lost, drop, late=TIME, "
                         "slow=TIME, cut, freeze, gone or stale=N",
                         word);
    fault->effect.action = FAULT_STATUS;
    fault->effect.status = (int)status;
    return 0;
}

static int parse_match(struct fault *fault, const char *key, const char *value, struct error **err)
{
    int64_t retry = 0;
    if (strcmp(key, "verb") == 0) {
        static const char *const verbs[] = {"get",    "list",  "watch",  "create",
                                            "update", "patch", "delete", "deletecollection",
                                            "write",  "any"};
        for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
            if (strcmp(verbs[i], value) == 0) {
                str_replace(&fault->verb, value);
                return 0;
            }
        }
        return error_set(err, ERROR_USAGE,
                         "verb=%s: get, list, watch, create, update, patch, delete, "
                         "deletecollection, write or any",
                         value);
    }
    if (strcmp(key, "resource") == 0) {
        const char *slash = strchr(value, '/');
        free(fault->resource);
        fault->resource = xstrndup(value, slash ? (size_t)(slash - value) : strlen(value));
        str_replace(&fault->subresource, slash ? slash + 1 : NULL);
        return 0;
    }
    if (strcmp(key, "name") == 0)
        str_replace(&fault->name, value);
    else if (strcmp(key, "namespace") == 0)
        str_replace(&fault->namespace, value);
    else if (strcmp(key, "user") == 0)
        str_replace(&fault->user, value);
    else if (strcmp(key, "nth") == 0)
        return parse_number(value, INT64_MAX, &fault->nth, err);
    else if (strcmp(key, "times") == 0)
        return parse_number(value, INT64_MAX, &fault->times, err);
    else if (strcmp(key, "retry") == 0) {
        int result = parse_number(value, 86400, &retry, err);
        if (result == 0)
            fault->effect.retry_after_s = (int)retry;
        return result;
    } else
        return error_set(
            err, ERROR_USAGE,
            "'%s' is no part of a fault: verb, resource, name, namespace, user, nth, times or retry", key);
    return 0;
}

static int parse_fault(const char *text, size_t length, struct fault **ret, struct error **err)
{
    __attribute__((cleanup(cleanup_fault))) struct fault *fault = xcalloc(1, sizeof(*fault));
    fault->nth = 1;
    fault->times = 1;
    bool first = true;
    for (size_t at = 0; at < length || first;) {
        size_t word_length = strcspn(text + at, ",;");
        CLEANUP_FREE char *word = xstrndup(text + at, word_length);
        char *value = strchr(word, '=');
        if (value)
            *value++ = '\0';
        const char *name = word + strspn(word, " ");
        int result = first   ? parse_action(fault, name, value, err)
                     : value ? parse_match(fault, name, value, err)
                             : error_set(err, ERROR_USAGE, "'%s' needs a value", name);
        if (result < 0)
            return result;
        first = false;
        at += word_length + 1;
    }
    fault->nth = MAX(fault->nth, 1);
    *ret = STEAL(fault);
    return 0;
}

int kubesim_fault_add(struct kubesim *sim, const char *spec, struct error **err)
{
    if (!sim->faults)
        sim->faults = xcalloc(1, sizeof(*sim->faults));
    for (const char *at = spec; *at;) {
        size_t length = strcspn(at, ";");
        if (sim->faults->count == FAULTS_MAX)
            return error_set(err, ERROR_USAGE, "more than %d faults", FAULTS_MAX);
        struct fault *fault;
        int result = length ? parse_fault(at, length, &fault, err) : 0;
        if (result < 0)
            return error_wrap(err, result, "fault '%.*s'", (int)length, at);
        if (length)
            sim->faults->faults[sim->faults->count++] = fault;
        at += length + (at[length] == ';');
    }
    return 0;
}

void kubesim_fault_clear(struct kubesim *sim)
{
    for (size_t i = 0; sim->faults && i < sim->faults->count; i++)
        fault_free(sim->faults->faults[i]);
    if (sim->faults)
        sim->faults->count = 0;
}

unsigned kubesim_fault_hits(const struct kubesim *sim)
{
    return sim->faults ? sim->faults->hits : 0;
}

const char *kubesim_fault_help(void)
{
    return "A fault is ACTION[,KEY=VALUE]..., several are parted by ';'. ACTION says what happens:\n"
           "  409 422 429 500 503 404 ...  this status instead of an execution (retry=S adds Retry-After)\n"
           "  lost                         executed, but the connection ends without an answer\n"
           "  drop                         not executed, the connection ends without an answer\n"
           "  late=TIME                    executed TIME later, whether the client still waits or not\n"
           "  slow=TIME                    executed at once, answered TIME later\n"
           "  cut[=N|TIME]                 a watch ends after N events or TIME (0)\n"
           "  freeze[=N|TIME]              a watch stays open and says nothing more after N events or TIME "
           "(0)\n"
           "  gone                         a watch or list is told that its version is too old (410)\n"
           "  stale=N                      a list shows the state of N changes ago\n"
           "KEYs say which requests are hit: verb (get list watch create update patch delete "
           "deletecollection write\n"
           "any; unless given, what the action is made for: writes, watches, lists), resource (pods, "
           "neosets/status,\n"
           "pods/ for the pods themselves),\n"
           "name, namespace and user (globs), nth (the first one hit, from 1), times (how many from there; "
           "1; 0: all).\n"
           "  409,verb=patch,resource=pods,nth=2         the second patch of a pod conflicts\n"
           "  lost,verb=create,resource=pods,name=db-3   pod db-3 is created, nobody is told\n"
           "  late=3s,verb=patch,resource=pods           the next pod patch lands after three seconds\n"
           "  freeze=10,resource=pods;stale=5            a pod watch goes silent, the list after it is old\n"
           "  429,retry=2,times=0                        every write is turned away\n";
}

/* --- meeting a request
 * ---------------------------------------------------------------------------------------- */

static bool is_write(enum verb verb)
{
    return verb == VERB_CREATE || verb == VERB_UPDATE || verb == VERB_PATCH || verb == VERB_DELETE ||
           verb == VERB_DELETE_COLLECTION;
}

static bool matches_verb(const struct fault *fault, const struct call *call)
{
    if (!fault->verb) {
        switch (fault->effect.action) {
        case FAULT_CUT:
        case FAULT_FREEZE:
            return call->verb == VERB_WATCH;
        case FAULT_GONE:
            return call->verb == VERB_WATCH || call->verb == VERB_LIST;
        case FAULT_STALE:
            return call->verb == VERB_LIST;
        default:
            return is_write(call->verb);
        }
    }
    if (strcmp(fault->verb, "any") == 0)
        return true;
    return strcmp(fault->verb, "write") == 0 ? is_write(call->verb)
                                             : strcmp(fault->verb, verb_name(call->verb)) == 0;
}

static bool matches_glob(const char *glob, const char *text)
{
    return !glob || fnmatch(glob, text ? text : "", 0) == 0;
}

static bool matches(const struct fault *fault, const struct call *call)
{
    const char *name = call->name ? call->name : call->own_name;
    return matches_verb(fault, call) && matches_glob(fault->resource, call->resource) &&
           (!fault->subresource ||
            str_equal(fault->subresource, call->subresource ? call->subresource : "")) &&
           matches_glob(fault->name, name) && matches_glob(fault->namespace, call->namespace) &&
           matches_glob(fault->user, call->request->user ? call->request->user : "kubesim");
}

/* A create's name is in its body only; reading it is worth it only where a fault asks for a name. */
static void read_name_early(struct call *call)
{
    CLEANUP_JSON cJSON *body = NULL;
    const struct kubesim_request *request = call->request;
    if (call->verb != VERB_CREATE || call->own_name || !request->body)
        return;
    if (json_parse(request->body, request->body_length, &body, NULL) == 0)
        call->own_name = xstrdup_or_null(meta_str(body, "name"));
}

struct fault_effect faults_meet(struct call *call)
{
    struct fault_effect effect = {.action = FAULT_NONE};
    struct fault_list *list = call->sim->faults;
    if (call->request->no_faults || !list || list->count == 0)
        return effect;
    read_name_early(call);
    for (size_t i = 0; i < list->count; i++) {
        struct fault *fault = list->faults[i];
        if (!matches(fault, call))
            continue;
        fault->seen++;
        bool due =
            fault->seen >= fault->nth && (fault->times == 0 || fault->seen < fault->nth + fault->times);
        if (due && effect.action == FAULT_NONE)
            effect = fault->effect;
    }
    if (effect.action != FAULT_NONE)
        list->hits++;
    return effect;
}

int fault_answer(struct call *call, const struct fault_effect *effect)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {{400, "BadRequest"},    {401, "Unauthorized"},
                   {403, "Forbidden"},     {404, "NotFound"},
                   {409, "Conflict"},      {410, "Expired"},
                   {422, "Invalid"},       {429, "TooManyRequests"},
                   {500, "InternalError"}, {503, "ServiceUnavailable"},
                   {504, "Timeout"}};
    const char *reason = "";
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
        if (reasons[i].status == effect->status)
            reason = reasons[i].reason;
    call->response->retry_after_s = effect->retry_after_s ? effect->retry_after_s : effect->status == 429;
    if (call->kind && call->name)
        return refuse_object(call, call->kind, call->name, effect->status, reason,
                             "kubesim: a fault that was asked for");
    return refuse(call, effect->status, reason, "kubesim: a fault that was asked for");
}
