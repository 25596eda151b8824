/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/watch.h"

#include "kubesim/fault.h"
#include "kubesim/form.h"
#include "kubesim/table.h"

struct kubesim_watch {
    struct kubesim_watch *next;
    struct kubesim *sim;
    struct kind *kind;
    char *prefix; /* of the keys in view */
    struct selector *labels;
    struct selector *fields;
    enum form form;
    char *include;
    struct kubesim_watch_callbacks callbacks;
    void *context;
    int64_t from; /* changes up to this version are not told */
    bool bookmarks;
    int64_t bookmark_us; /* the next one */
    int64_t end_us;
    int64_t lines_left; /* until a fault acts; -1: never */
    int64_t fault_us;   /* when it acts by time; INT64_MAX: never */
    bool freeze;        /* what it does: freeze, else cut */
    bool frozen;
    bool ended;
    bool columns_told;
};

static void end(struct kubesim_watch *watch, bool clean)
{
    if (watch->ended)
        return;
    watch->ended = true;
    watch->callbacks.on_end(watch->context, clean);
}

static void strike(struct kubesim_watch *watch)
{
    watch->lines_left = -1;
    watch->fault_us = INT64_MAX;
    if (watch->freeze)
        watch->frozen = true;
    else
        end(watch, false);
}

static void told(struct kubesim_watch *watch)
{
    if (watch->lines_left > 0 && --watch->lines_left == 0)
        strike(watch);
}

static void tell(struct kubesim_watch *watch, const char *type, const char *object)
{
    if (watch->ended || watch->frozen)
        return;
    CLEANUP_BUF struct buf line = BUF_INIT(ANSWER_MAX);
    buf_addf(&line, "{\"type\":\"%s\",\"object\":", type);
    buf_add_text(&line, object);
    buf_add_text(&line, "}\n");
    watch->callbacks.on_line(watch->context, buf_text(&line), line.length);
    told(watch);
}

static void tell_version(struct kubesim_watch *watch, const char *type, struct version *version)
{
    if (watch->ended || watch->frozen)
        return;
    if (watch->form == FORM_PLAIN && watch->callbacks.on_version) {
        watch->callbacks.on_version(watch->context, type, version);
        told(watch);
        return;
    }
    if (watch->form == FORM_PLAIN) {
        tell(watch, type, version_text(version));
        return;
    }
    CLEANUP_FREE char *text =
        form_text(watch->sim, watch->kind, watch->form, watch->include, version, !watch->columns_told);
    watch->columns_told = true;
    tell(watch, type, text);
}

static bool in_view(const struct kubesim_watch *watch, struct version *version)
{
    if (!watch->labels && !watch->fields)
        return true;
    const cJSON *tree = version_tree(version);
    return selector_match_labels(watch->labels, json_path(tree, "metadata", "labels", NULL)) &&
           selector_match_fields(watch->fields, tree);
}

/* An object that leaves the selection is told as deleted, one that enters it as added. */
static void tell_change(struct kubesim_watch *watch, const struct change *change)
{
    if (change->kind != watch->kind || change->version->number <= watch->from ||
        !str_starts_with(change->key, watch->prefix))
        return;
    bool before = change->before && in_view(watch, change->before);
    bool now = change->type != CHANGE_DELETED && in_view(watch, change->version);
    if (before && now)
        tell_version(watch, "MODIFIED", change->version);
    else if (now)
        tell_version(watch, "ADDED", change->version);
    else if (before)
        tell_version(watch, "DELETED", change->version);
}

void watches_notify(struct kubesim *sim, const struct change *change)
{
    for (struct kubesim_watch *watch = sim->watches; watch; watch = watch->next)
        tell_change(watch, change);
}

static void tell_bookmark(struct kubesim_watch *watch, bool initial_end)
{
    /* Who waits for a version that there never was hears nothing, bookmarks neither (measured). */
    if (watch->from > watch->sim->resource_version)
        return;
    CLEANUP_JSON cJSON *object = json_new_object();
    CLEANUP_FREE char *api_version = kind_api_version(watch->kind);
    CLEANUP_FREE char *number = xasprintf("%lld", (long long)watch->sim->resource_version);
    bool partial = watch->form == FORM_METADATA;
    json_add_str(object, "kind", partial ? "PartialObjectMetadata" : watch->kind->name);
    json_add_str(object, "apiVersion", partial ? "meta.k8s.io/v1" : api_version);
    cJSON *meta = json_add_object(object, "metadata");
    json_add_str(meta, "resourceVersion", number);
    if (initial_end)
        json_add_str(json_add_object(meta, "annotations"), "k8s.io/initial-events-end", "true");
    CLEANUP_JSON cJSON *table = NULL;
    if (watch->form == FORM_TABLE) {
        table = table_make(watch->kind, false);
        json_set_item(table, "metadata", json_copy(meta));
    }
    CLEANUP_FREE char *text = json_print(table ? table : object);
    tell(watch, "BOOKMARK", text);
}

static void tell_expired(struct kubesim_watch *watch, int64_t from)
{
    CLEANUP_JSON cJSON *status = json_new_object();
    CLEANUP_FREE char *message = xasprintf("too old resource version: %lld (%lld)", (long long)from,
                                           (long long)watch->sim->history.forgotten + 1);
    json_add_str(status, "kind", "Status");
    json_add_str(status, "apiVersion", "v1");
    json_add_object(status, "metadata");
    json_add_str(status, "status", "Failure");
    json_add_str(status, "message", message);
    json_add_str(status, "reason", "Expired");
    json_add_int64(status, "code", 410);
    CLEANUP_FREE char *text = json_print(status);
    tell(watch, "ERROR", text);
    end(watch, true);
}

static void tell_present(struct kubesim_watch *watch)
{
    for (size_t i = store_lower_bound(watch->kind, watch->prefix); i < watch->kind->object_count; i++) {
        const struct object *object = watch->kind->objects[i];
        if (!str_starts_with(object->key, watch->prefix))
            break;
        if (in_view(watch, object->version))
            tell_version(watch, "ADDED", object->version);
    }
}

/* From where the client stands: everything there is, or what came after its version. */
static void catch_up(struct kubesim_watch *watch, const char *from, bool initial_events)
{
    const struct history *history = &watch->sim->history;
    int64_t number = from ? strtoll(from, NULL, 10) : 0;
    if (number == 0 || initial_events) {
        tell_present(watch);
        watch->from = watch->sim->resource_version;
        if (initial_events && watch->bookmarks)
            tell_bookmark(watch, true);
        return;
    }
    if (number < history->forgotten) {
        tell_expired(watch, number);
        return;
    }
    watch->from = number;
    for (size_t i = 0; i < history->count; i++)
        tell_change(watch, &history->changes[(history->first + i) % history->room]);
    watch->from = MAX(number, watch->sim->resource_version);
}

static int check_parameters(struct call *call, bool *ret_initial)
{
    const char *from = path_parameter(&call->path, "resourceVersion");
    if (check_list_options(call, true) < 0)
        return -1;
    *ret_initial = path_parameter_true(&call->path, "sendInitialEvents");
    if (from && from[strspn(from, "0123456789")])
        return refuse(
            call, 500, "",
            "resourceVersion: Invalid value: \"%s\": strconv.ParseUint: parsing \"%s\": invalid syntax", from,
            from);
    return 0;
}

static int64_t random_timeout_us(const struct kubesim *sim)
{
    uint32_t random;
    sim->options.random(sim->options.context, &random, sizeof(random));
    return (1800 + random % 1800) * US_PER_S;
}

/* From time to time, and once more two seconds before the end. */
static int64_t next_bookmark_us(const struct kubesim_watch *watch, int64_t now_us)
{
    int64_t last_us = watch->end_us - 2 * US_PER_S;
    if (!watch->bookmarks || now_us >= last_us)
        return INT64_MAX;
    return MIN(now_us + watch->sim->options.bookmark_us, last_us);
}

static void set_times(struct kubesim_watch *watch, const struct call *call, const struct fault_effect *effect)
{
    struct kubesim *sim = watch->sim;
    int64_t now_us = sim_now_us(sim);
    const char *timeout = path_parameter(&call->path, "timeoutSeconds");
    int64_t timeout_s = timeout ? strtoll(timeout, NULL, 10) : 0;
    watch->end_us =
        now_us + (timeout_s > 0 ? MIN(timeout_s, 86400 * 365) * US_PER_S : random_timeout_us(sim));
    watch->bookmarks = path_parameter_true(&call->path, "allowWatchBookmarks");
    watch->bookmark_us = next_bookmark_us(watch, now_us);
    watch->lines_left = -1;
    watch->fault_us = INT64_MAX;
    if (effect->action != FAULT_CUT && effect->action != FAULT_FREEZE)
        return;
    watch->freeze = effect->action == FAULT_FREEZE;
    if (effect->amount_us >= 0)
        watch->fault_us = now_us + effect->amount_us;
    else if (effect->count > 0)
        watch->lines_left = effect->count;
    else
        watch->fault_us = now_us;
}

struct kubesim_watch *watch_open(struct call *call, const struct fault_effect *effect,
                                 const struct kubesim_watch_callbacks *callbacks, void *context)
{
    struct kubesim *sim = call->sim;
    enum form form;
    bool initial;
    CLEANUP_SELECTOR struct selector *labels = NULL;
    CLEANUP_SELECTOR struct selector *fields = NULL;
    if (check_parameters(call, &initial) < 0 || form_of(call, &form) < 0 ||
        read_selectors(call, &labels, &fields) < 0)
        return NULL;
    if (sim->watch_count == WATCHES_MAX) {
        refuse(call, 429, "TooManyRequests", "kubesim holds at most %d watches", WATCHES_MAX);
        return NULL;
    }
    struct kubesim_watch *watch = xcalloc(1, sizeof(*watch));
    *watch =
        (struct kubesim_watch){.sim = sim,
                               .kind = call->kind,
                               .labels = STEAL(labels),
                               .fields = STEAL(fields),
                               .form = form,
                               .include = xstrdup_or_null(path_parameter(&call->path, "includeObject")),
                               .callbacks = *callbacks,
                               .context = context,
                               .prefix = call->namespace ? xasprintf("%s/", call->namespace) : xstrdup("")};
    set_times(watch, call, effect);
    watch->next = sim->watches;
    sim->watches = watch;
    sim->watch_count++;
    call->response->status = 200;
    if (watch->fault_us <= sim_now_us(sim))
        strike(watch);
    const char *from = path_parameter(&call->path, "resourceVersion");
    if (effect->action == FAULT_GONE)
        tell_expired(watch, from ? strtoll(from, NULL, 10) : 0);
    else
        catch_up(watch, from, initial);
    return watch;
}

void kubesim_watch_close(struct kubesim_watch *watch)
{
    if (!watch)
        return;
    struct kubesim_watch **slot = &watch->sim->watches;
    while (*slot != watch)
        slot = &(*slot)->next;
    *slot = watch->next;
    watch->sim->watch_count--;
    selector_free(watch->labels);
    selector_free(watch->fields);
    free(watch->include);
    free(watch->prefix);
    free(watch);
}

void watches_cut(struct kubesim *sim)
{
    for (struct kubesim_watch *watch = sim->watches; watch; watch = watch->next)
        end(watch, false);
}

void watches_end_kind(struct kubesim *sim, const struct kind *kind)
{
    for (struct kubesim_watch *watch = sim->watches; watch; watch = watch->next)
        if (watch->kind == kind)
            end(watch, true);
}

void watches_tick(struct kubesim *sim, int64_t now_us)
{
    for (struct kubesim_watch *watch = sim->watches; watch; watch = watch->next) {
        if (watch->fault_us <= now_us)
            strike(watch);
        if (watch->bookmark_us <= now_us) {
            tell_bookmark(watch, false);
            watch->bookmark_us = next_bookmark_us(watch, now_us);
        }
        if (watch->end_us <= now_us && !watch->frozen)
            end(watch, true);
    }
}

int64_t watches_next_us(const struct kubesim *sim)
{
    int64_t next_us = INT64_MAX;
    for (const struct kubesim_watch *watch = sim->watches; watch; watch = watch->next) {
        if (watch->ended)
            continue;
        next_us = MIN(next_us, MIN(watch->fault_us, watch->bookmark_us));
        if (!watch->frozen)
            next_us = MIN(next_us, watch->end_us);
    }
    return next_us;
}
