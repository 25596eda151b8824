/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/audit.h"
#include "kubesim/fault.h"
#include "kubesim/kinds.h"
#include "kubesim/quotas.h"
#include "kubesim/schema.h"
#include "kubesim/volumes.h"
#include "kubesim/watch.h"

enum { HISTORY_DEFAULT = 10000, FIRST_VERSION = 100 };

struct kubesim *kubesim_make(const struct kubesim_options *options)
{
    PRE(options->now_us && options->random);
    struct kubesim *sim = xcalloc(1, sizeof(*sim));
    sim->options = *options;
    if (sim->options.history_max == 0)
        sim->options.history_max = HISTORY_DEFAULT;
    if (sim->options.bookmark_us == 0)
        sim->options.bookmark_us = 60 * US_PER_S;
    sim->git_version = xstrdup(options->git_version ? options->git_version
                               : options->newer     ? "v1.37.2+kubesim"
                                                    : "v1.36.3+kubesim");
    sim->resource_version = sim->history.forgotten = FIRST_VERSION;
    sim->sets_due_us = sim->volumes_due_us = sim->quotas_due_us = INT64_MAX;
    sim->gc = (struct gc){.off = options->gc_off, .delay_us = options->gc_delay_us, .due_us = INT64_MAX};
    kinds_add_builtin(sim);
    namespaces_make_initial(sim);
    return sim;
}

void kubesim_free(struct kubesim *sim)
{
    if (!sim)
        return;
    while (sim->watches)
        kubesim_watch_close(sim->watches);
    snapshot_free(STEAL(sim->snapshot));
    store_done(sim);
    gc_done(sim);
    revisions_done(sim);
    volumes_done(sim);
    statefulsets_done(sim);
    for (size_t i = 0; i < sim->kind_count; i++)
        kind_free(sim->kinds[i]);
    schema_set_free(sim->schemas);
    fault_list_free(sim->faults);
    free(sim->git_version);
    free(sim);
}

void kubesim_answer_newer(struct kubesim *sim)
{
    sim->options.newer = true;
    if (!sim->options.git_version)
        str_replace(&sim->git_version, "v1.37.2+kubesim");
}

void kubesim_keep_managed_fields(struct kubesim *sim)
{
    sim->options.no_managed_fields = false;
}

const char *verb_name(enum verb verb)
{
    static const char *const names[] = {
        "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "get"};
    return names[verb];
}

/* --- routing
 * -------------------------------------------------------------------------------------------------- */

static bool group_is_served(const struct call *call)
{
    for (size_t i = 0; i < call->sim->kind_count; i++)
        if (!call->sim->kinds[i]->undefined && strcmp(call->sim->kinds[i]->group, call->group) == 0)
            return true;
    return false;
}

static int refuse_no_resource(struct call *call)
{
    const char *plural = call->resource ? call->resource : "";
    if (strcmp(plural, "watch") == 0)
        return refuse_not_modelled(call, "watching by path (use ?watch=true)");
    if (call->group && kind_is_left_out(call->group, plural))
        return refuse_not_modelled(call, "%s%s%s (the real server has it)", plural, *call->group ? "." : "",
                                   call->group);
    if (call->group && !group_is_served(call))
        return refuse_unknown_path(call);
    return refuse(call, 404, "NotFound", "the server could not find the requested resource");
}

static int refuse_method(struct call *call)
{
    return refuse(call, 405, "MethodNotAllowed",
                  "the server does not allow this method on the requested resource");
}

/* The part behind /api/v1 or /apis/GROUP/VERSION: [namespaces/NS/]RESOURCE[/NAME[/SUBRESOURCE]]. */
static int route_resource(struct call *call, size_t at)
{
    const struct path *path = &call->path;
    size_t left = path->segment_count - at;
    const char *const *segment = &path->segments[at];
    if (left >= 3 && strcmp(segment[0], "namespaces") == 0 && strcmp(segment[2], "status") != 0 &&
        strcmp(segment[2], "finalize") != 0) {
        call->namespace = segment[1];
        segment += 2;
        left -= 2;
    }
    call->resource = segment[0];
    call->name = left > 1 ? segment[1] : NULL;
    call->subresource = left > 2 ? segment[2] : NULL;
    call->kind = kind_find(call->sim, call->group, call->resource);
    if (left > 3)
        return refuse_no_resource(call);
    bool namespaced = call->kind && call->kind->flags & KIND_NAMESPACED;
    if (!call->kind || call->kind->undefined || strcmp(call->kind->version, call->api_version) != 0 ||
        (call->namespace && !namespaced))
        return refuse_no_resource(call);
    if (namespaced && !call->namespace && call->name)
        return refuse_no_resource(call);
    return 0;
}

static enum verb verb_of(const struct call *call)
{
    const char *method = call->request->method;
    bool named = call->name != NULL;
    if (strcmp(method, "GET") == 0)
        return named ? VERB_GET : path_parameter_true(&call->path, "watch") ? VERB_WATCH : VERB_LIST;
    if (strcmp(method, "POST") == 0)
        return VERB_CREATE;
    if (strcmp(method, "PUT") == 0 && named)
        return VERB_UPDATE;
    if (strcmp(method, "PATCH") == 0 && named)
        return VERB_PATCH;
    if (strcmp(method, "DELETE") == 0)
        return named ? VERB_DELETE : VERB_DELETE_COLLECTION;
    return VERB_OTHER;
}

static int read_dry_run(struct call *call)
{
    const char *value = path_parameter(&call->path, "dryRun");
    if (!value || !*value)
        return 0;
    if (strcmp(value, "All") != 0) {
        const char *kind = call->verb == VERB_CREATE   ? "CreateOptions"
                           : call->verb == VERB_UPDATE ? "UpdateOptions"
                           : call->verb == VERB_PATCH  ? "PatchOptions"
                                                       : "DeleteOptions";
        CLEANUP_FREE char *shown = xasprintf("[\"%s\"]", value);
        return refuse_options(call, kind, "dryRun", CAUSE_NOT_SUPPORTED, shown, "supported values: \"All\"");
    }
    call->dry_run = true;
    return 0;
}

/* fieldManager, or what stands before the slash of the user agent. */
static void set_field_manager(struct call *call)
{
    const char *given = path_parameter(&call->path, "fieldManager");
    if (given && *given) {
        call->field_manager = given;
        return;
    }
    const char *agent = call->request->user_agent ? call->request->user_agent : "unknown";
    call->own_field_manager = xstrndup(agent, MIN(strcspn(agent, "/"), 128));
    call->field_manager = call->own_field_manager;
}

/* Fills kind, verb and names of a resource path; leaves kind NULL for everything else. */
static int route(struct call *call)
{
    const struct path *path = &call->path;
    bool core = path->segment_count >= 3 && strcmp(path->segments[0], "api") == 0;
    bool grouped = path->segment_count >= 4 && strcmp(path->segments[0], "apis") == 0;
    call->verb = VERB_OTHER;
    set_field_manager(call);
    if (!core && !grouped)
        return 0;
    call->group = grouped ? path->segments[1] : "";
    call->api_version = path->segments[grouped ? 2 : 1];
    if (route_resource(call, grouped ? 3 : 2) < 0)
        return -1;
    call->verb = verb_of(call);
    return call->verb == VERB_OTHER ? refuse_method(call) : read_dry_run(call);
}

/* --- dispatch
 * ------------------------------------------------------------------------------------------------- */

static int dispatch_pod_subresource(struct call *call)
{
    static const char *const left_out[] = {
        "attach", "ephemeralcontainers", "exec", "log", "portforward", "proxy", "resize"};
    if (strcmp(call->subresource, "eviction") == 0)
        return call->verb == VERB_CREATE ? write_evict(call) : refuse_method(call);
    if (strcmp(call->subresource, "binding") == 0)
        return call->verb == VERB_CREATE ? write_bind(call) : refuse_method(call);
    for (size_t i = 0; i < ARRAY_SIZE(left_out); i++)
        if (strcmp(left_out[i], call->subresource) == 0)
            return refuse_not_modelled(call, "pods/%s", call->subresource);
    return refuse_no_resource(call);
}

static int dispatch_subresource(struct call *call)
{
    const struct kind *kind = call->kind;
    if (strcmp(call->subresource, "status") == 0 && kind->flags & KIND_STATUS) {
        if (call->verb == VERB_GET)
            return read_get(call);
        if (call->verb == VERB_UPDATE)
            return write_update(call);
        return call->verb == VERB_PATCH ? write_patch(call) : refuse_method(call);
    }
    if (strcmp(call->subresource, "scale") == 0 && kind->flags & KIND_SCALE) {
        if (call->verb == VERB_GET)
            return scale_get(call);
        return call->verb == VERB_UPDATE || call->verb == VERB_PATCH ? scale_write(call)
                                                                     : refuse_method(call);
    }
    if (kind->hooks == &pod_hooks)
        return dispatch_pod_subresource(call);
    if (strcmp(call->subresource, "finalize") == 0 || strcmp(call->subresource, "token") == 0 ||
        strcmp(call->subresource, "proxy") == 0)
        return refuse_not_modelled(call, "%s/%s", kind->plural, call->subresource);
    return refuse_no_resource(call);
}

static int dispatch(struct call *call)
{
    if (!call->kind)
        return discovery_answer(call);
    if (call->kind->flags & KIND_REVIEW)
        return call->verb == VERB_CREATE && !call->name ? review_create(call) : refuse_method(call);
    if (call->subresource)
        return dispatch_subresource(call);
    switch (call->verb) {
    case VERB_GET:
        return read_get(call);
    case VERB_LIST:
        return read_list(call);
    case VERB_CREATE:
        if (call->name || (call->kind->flags & KIND_NAMESPACED && !call->namespace))
            return refuse_method(call);
        return write_create(call);
    case VERB_UPDATE:
        return write_update(call);
    case VERB_PATCH:
        return write_patch(call);
    case VERB_DELETE:
        return write_delete(call);
    case VERB_DELETE_COLLECTION:
        return write_delete_collection(call);
    case VERB_WATCH:
        return refuse_bad_request(call, "a watch was handed in as a plain request");
    case VERB_OTHER:
        break;
    }
    return refuse_method(call);
}

/* --- one request
 * ---------------------------------------------------------------------------------------------- */

static void call_begin(struct call *call, struct kubesim *sim, const struct kubesim_request *request,
                       struct kubesim_response *response)
{
    *response = (struct kubesim_response){.disposition = KUBESIM_ANSWERED};
    *call = (struct call){.sim = sim, .request = request, .response = response, .field_manager = ""};
    response->audit_id = audit_id_of(call);
    sim->current = call;
    sim->counts.requests++;
}

static void call_end(struct call *call)
{
    call->sim->current = NULL;
    json_delete(call->body);
    path_done(&call->path);
    free(call->own_field_manager);
    free(call->own_name);
    free(call->problem);
}

static int begin_routing(struct call *call)
{
    CLEANUP_ERROR struct error *err = NULL;
    if (path_parse(call->request->path, &call->path, &err) < 0)
        return refuse_bad_request(call, "%s", error_text(err));
    return route(call);
}

/* What a fault does instead of, or around, the execution. True: the request is not to be executed (now). */
static bool fault_before(struct call *call, const struct fault_effect *effect)
{
    struct kubesim_response *response = call->response;
    switch (effect->action) {
    case FAULT_STATUS:
        fault_answer(call, effect);
        return true;
    case FAULT_DROP:
        response->disposition = KUBESIM_LOST;
        return true;
    case FAULT_LATE:
        response->disposition = KUBESIM_HELD;
        response->delay_us = effect->amount_us;
        return true;
    case FAULT_LOST:
        response->disposition = KUBESIM_LOST;
        return false;
    case FAULT_SLOW:
        response->delay_us = effect->amount_us;
        return false;
    case FAULT_GONE:
        if (call->verb == VERB_WATCH)
            return false;
        refuse(call, 410, "Expired", "The resourceVersion for the provided list is too old.");
        return true;
    case FAULT_STALE:
        call->stale_by = effect->count;
        return false;
    case FAULT_CUT:
    case FAULT_FREEZE:
    case FAULT_NONE:
        return false;
    }
    UNREACHABLE();
}

void kubesim_handle(struct kubesim *sim, const struct kubesim_request *request, struct kubesim_response *ret)
{
    struct call call;
    call_begin(&call, sim, request, ret);
    int64_t received_us = sim_now_us(sim);
    bool executed = true;
    if (begin_routing(&call) == 0) {
        struct fault_effect effect = faults_meet(&call);
        executed = !fault_before(&call, &effect);
        if (executed)
            dispatch(&call);
    }
    if (ret->disposition != KUBESIM_HELD && (executed || ret->status > 0))
        audit_write(&call, received_us);
    call_end(&call);
    POST(ret->disposition != KUBESIM_ANSWERED || (ret->status >= 100 && ret->body));
}

struct kubesim_watch *kubesim_watch_open(struct kubesim *sim, const struct kubesim_request *request,
                                         const struct kubesim_watch_callbacks *callbacks, void *context,
                                         struct kubesim_response *ret)
{
    struct call call;
    call_begin(&call, sim, request, ret);
    int64_t received_us = sim_now_us(sim);
    struct kubesim_watch *watch = NULL;
    if (begin_routing(&call) == 0) {
        struct fault_effect effect = faults_meet(&call);
        if (!fault_before(&call, &effect))
            watch = watch_open(&call, &effect, callbacks, context);
    }
    if (ret->disposition != KUBESIM_HELD && ret->status > 0)
        audit_write(&call, received_us);
    call_end(&call);
    return watch;
}

bool kubesim_is_watch(const struct kubesim_request *request)
{
    struct path path;
    if (strcmp(request->method, "GET") != 0 || path_parse(request->path, &path, NULL) < 0)
        return false;
    bool core = path.segment_count >= 3 && strcmp(path.segments[0], "api") == 0;
    bool grouped = path.segment_count >= 4 && strcmp(path.segments[0], "apis") == 0;
    size_t at = grouped ? 3 : 2;
    size_t left = path.segment_count - MIN(at, path.segment_count);
    if (left >= 3 && strcmp(path.segments[at], "namespaces") == 0)
        left -= 2;
    bool watch = (core || grouped) && left == 1 && path_parameter_true(&path, "watch");
    path_done(&path);
    return watch;
}

void kubesim_response_done(struct kubesim_response *response)
{
    free(STEAL(response->body));
    free(STEAL(response->audit_id));
    free(STEAL(response->warning));
}

/* --- time
 * ------------------------------------------------------------------------------------------------------ */

void kubesim_tick(struct kubesim *sim)
{
    gc_tick(sim);
    statefulsets_tick(sim);
    volumes_tick(sim);
    quotas_tick(sim);
    watches_tick(sim, sim_now_us(sim));
}

int64_t kubesim_next_tick_us(const struct kubesim *sim)
{
    int64_t due_us = MIN(sim->gc.off ? INT64_MAX : sim->gc.due_us, watches_next_us(sim));
    return MIN(MIN(due_us, sim->sets_due_us), MIN(sim->volumes_due_us, sim->quotas_due_us));
}

int64_t kubesim_now_us(const struct kubesim *sim)
{
    return sim_now_us(sim);
}

struct kubesim_counts kubesim_count(const struct kubesim *sim)
{
    struct kubesim_counts counts = sim->counts;
    counts.resource_version = (uint64_t)sim->resource_version;
    return counts;
}
