/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"
#include "kubesim/form.h"
#include "kubesim/table.h"

int read_selectors(struct call *call, struct selector **ret_labels, struct selector **ret_fields)
{
    CLEANUP_ERROR struct error *err = NULL;
    if (selector_parse_labels(path_parameter(&call->path, "labelSelector"), ret_labels, &err) < 0)
        return refuse_bad_request(call, "%s", error_text(err));
    int result = selector_parse_fields(path_parameter(&call->path, "fieldSelector"), call->kind->fields,
                                       ret_fields, &err);
    if (result == -ERROR_UNSUPPORTED)
        return refuse_bad_request(call, "field label not supported: %s", error_text(err));
    if (result < 0)
        return refuse_bad_request(call, "%s", error_text(err));
    return 0;
}

void answer_version(struct call *call, int http, const struct kind *kind, struct version *version)
{
    enum form form;
    if (form_of(call, &form) == 0) {
        const char *include = path_parameter(&call->path, "includeObject");
        char *text = form_text(call->sim, kind, form, include, version, true);
        answer_text(call, http, "application/json", text, strlen(text));
    }
    version_unref(version);
}

int read_get(struct call *call)
{
    struct object *object = store_find(call->kind, call->namespace, call->name);
    if (!object)
        return refuse_not_found(call, call->kind, call->name);
    answer_version(call, 200, call->kind, version_ref(object->version));
    return 0;
}

/* --- lists: a page of a state that may be an older one
 * ---------------------------------------------------------- */

struct entry {
    const char *key;
    struct version *version; /* referenced */
};
struct snapshot {
    struct entry *entries; /* sorted by key */
    size_t count;
};

static void snapshot_done(struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->count; i++)
        version_unref(snapshot->entries[i].version);
    free(STEAL(snapshot->entries));
    snapshot->count = 0;
}
#define CLEANUP_SNAPSHOT __attribute__((cleanup(snapshot_done)))

static size_t snapshot_position(const struct snapshot *snapshot, const char *key)
{
    size_t low = 0;
    size_t high = snapshot->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(snapshot->entries[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Undoes one change that is younger than the wanted state. The room for one more entry is there. */
static void snapshot_undo(struct snapshot *snapshot, const struct change *change)
{
    size_t at = snapshot_position(snapshot, change->key);
    bool there = at < snapshot->count && strcmp(snapshot->entries[at].key, change->key) == 0;
    if (there && change->type == CHANGE_ADDED) {
        version_unref(snapshot->entries[at].version);
        memmove(&snapshot->entries[at], &snapshot->entries[at + 1],
                (snapshot->count - at - 1) * sizeof(snapshot->entries[0]));
        snapshot->count--;
    } else if (there) {
        version_unref(snapshot->entries[at].version);
        snapshot->entries[at].version = version_ref(change->before);
    } else if (change->type == CHANGE_DELETED) {
        memmove(&snapshot->entries[at + 1], &snapshot->entries[at],
                (snapshot->count - at) * sizeof(snapshot->entries[0]));
        snapshot->entries[at] = (struct entry){.key = change->key, .version = version_ref(change->before)};
        snapshot->count++;
    }
}

/* The objects of a kind as they were at version number; false when the history does not reach back. */
static bool snapshot_take(const struct kubesim *sim, const struct kind *kind, int64_t number,
                          struct snapshot *ret)
{
    const struct history *history = &sim->history;
    if (number < history->forgotten)
        return false;
    struct snapshot snapshot = {0};
    snapshot.entries = xcalloc(kind->object_count + history->count + 1, sizeof(snapshot.entries[0]));
    for (size_t i = 0; i < kind->object_count; i++)
        snapshot.entries[snapshot.count++] =
            (struct entry){.key = kind->objects[i]->key, .version = version_ref(kind->objects[i]->version)};
    for (size_t i = history->count; i-- > 0;) {
        const struct change *change = &history->changes[(history->first + i) % history->room];
        if (change->version->number <= number)
            break;
        if (change->kind == kind)
            snapshot_undo(&snapshot, change);
    }
    *ret = snapshot;
    return true;
}

/* What a list is asked for. */
struct page {
    int64_t number; /* the state */
    char *start;    /* the first key, or NULL */
    int64_t limit;  /* 0: all */
};

static int refuse_expired(struct call *call)
{
    return refuse(
        call, 410, "Expired",
        "The provided continue parameter is too old to display a consistent list result. You can start a new "
        "list without the continue parameter.");
}

/* The token is opaque to clients: "number:key" in hexadecimal. */
static int read_continue(struct call *call, const char *token, struct page *page)
{
    size_t length = strlen(token) / 2;
    CLEANUP_FREE char *text = xcalloc(1, length + 1);
    char *colon = NULL;
    if (strlen(token) % 2 || !hex_decode(token, (uint8_t *)text, length) || !(colon = strchr(text, ':')))
        return refuse_bad_request(call, "invalid continue token: continue key is not valid");
    page->number = strtoll(text, NULL, 10);
    page->start = xstrdup(colon + 1);
    return 0;
}

static int refuse_too_large(struct call *call, long long wanted)
{
    refuse(call, 504, "Timeout", "Timeout: Too large resource version: %lld, current: %lld", wanted,
           (long long)call->sim->resource_version);
    refusal_add_cause(call, "ResourceVersionTooLarge", "Too large resource version", NULL);
    refusal_set_retry(call, 1);
    return -1;
}

int check_list_options(struct call *call, bool watch)
{
    const char *version = path_parameter(&call->path, "resourceVersion");
    const char *match = path_parameter(&call->path, "resourceVersionMatch");
    bool initial = path_parameter(&call->path, "sendInitialEvents") != NULL;
    bool matched = match && *match;
    static const char field[] = "resourceVersionMatch";
    const char *problem = NULL;
    if (initial && !watch)
        return refuse_options(call, "ListOptions", "sendInitialEvents", CAUSE_FORBIDDEN, NULL,
                              "sendInitialEvents is forbidden for list");
    if (initial && !str_equal(match, "NotOlderThan"))
        problem = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
    else if (watch && matched && !initial)
        problem = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
    else if (!watch && matched && (!version || !*version))
        problem = "resourceVersionMatch is forbidden unless resourceVersion is provided";
    else if (str_equal(match, "Exact") && str_equal(version, "0"))
        problem = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
    if (problem)
        return refuse_options(call, "ListOptions", field, CAUSE_FORBIDDEN, NULL, problem);
    if (!matched || strcmp(match, "Exact") == 0 || strcmp(match, "NotOlderThan") == 0)
        return 0;
    CLEANUP_FREE char *shown = xasprintf("\"%s\"", match);
    return refuse_options(call, "ListOptions", field, CAUSE_NOT_SUPPORTED, shown,
                          "supported values: \"Exact\", \"NotOlderThan\", \"\"");
}

static int read_page(struct call *call, struct page *page)
{
    const char *limit = path_parameter(&call->path, "limit");
    const char *token = path_parameter(&call->path, "continue");
    const char *version = path_parameter(&call->path, "resourceVersion");
    const char *match = path_parameter(&call->path, "resourceVersionMatch");
    *page = (struct page){.number = call->sim->resource_version,
                          .limit = limit ? MAX(0, strtoll(limit, NULL, 10)) : 0};
    if (call->stale_by > 0)
        page->number = MAX(page->number - call->stale_by, call->sim->history.forgotten);
    if (token && *token) {
        if (version && *version && strcmp(version, "0") != 0)
            return refuse_bad_request(call, "specifying resource version is not allowed when using continue");
        return read_continue(call, token, page);
    }
    if (!version || !*version || strcmp(version, "0") == 0)
        return 0;
    char *end;
    long long wanted = strtoll(version, &end, 10);
    if (*end || wanted < 0)
        return refuse_bad_request(call,
                                  "invalid resource version: resourceVersion: Invalid value: \"%s\": "
                                  "strconv.ParseUint: parsing \"%s\": invalid syntax",
                                  version, version);
    if (wanted > call->sim->resource_version)
        return refuse_too_large(call, wanted);
    if (str_equal(match, "Exact"))
        page->number = wanted;
    return 0;
}

/* kind and apiVersion come first in the text of every version; lists of built-in kinds have items without
 * them. */
static size_t type_prefix_length(const struct kind *kind)
{
    CLEANUP_FREE char *api_version = kind_api_version(kind);
    return strlen("{\"kind\":\"\",\"apiVersion\":\"\",") + strlen(kind->name) + strlen(api_version) - 1;
}

struct list_out {
    struct buf text;
    cJSON *table;
    size_t count;
};

static void add_item(struct call *call, enum form form, struct list_out *out, struct version *version)
{
    const struct kind *kind = call->kind;
    const char *include = path_parameter(&call->path, "includeObject");
    if (form == FORM_TABLE) {
        table_add_row(call->sim, kind, out->table, version_tree(version), include);
    } else {
        if (out->count)
            buf_add_char(&out->text, ',');
        if (form == FORM_METADATA) {
            CLEANUP_FREE char *item = form_text(call->sim, kind, form, include, version, false);
            buf_add_text(&out->text, item);
        } else if (kind->flags & KIND_CUSTOM) {
            buf_add_text(&out->text, version_text(version));
        } else {
            buf_add_char(&out->text, '{');
            buf_add_text(&out->text, version_text(version) + type_prefix_length(kind) + 1);
        }
    }
    out->count++;
}

static cJSON *list_metadata(bool custom, const struct page *page, const char *next, size_t remaining,
                            bool selected)
{
    cJSON *meta = json_new_object();
    CLEANUP_FREE char *number = xasprintf("%lld", (long long)page->number);
    json_add_str(meta, "resourceVersion", number);
    if (!next && custom)
        json_add_str(meta, "continue", "");
    if (!next)
        return meta;
    CLEANUP_FREE char *token = xasprintf("%lld:%s", (long long)page->number, next);
    CLEANUP_FREE char *hex = hex_encode((const uint8_t *)token, strlen(token));
    json_add_str(meta, "continue", hex);
    if (!selected)
        json_add_int64(meta, "remainingItemCount", (int64_t)remaining);
    return meta;
}

static void answer_list(struct call *call, enum form form, struct list_out *out, cJSON *meta)
{
    if (form == FORM_TABLE) {
        json_set_item(out->table, "metadata", meta);
        answer_tree(call, 200, STEAL(out->table));
        return;
    }
    CLEANUP_FREE char *meta_text = json_print(meta);
    json_delete(meta);
    CLEANUP_FREE char *api_version = kind_api_version(call->kind);
    CLEANUP_BUF struct buf text = BUF_INIT(ANSWER_MAX);
    if (form == FORM_METADATA)
        buf_addf(&text, "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\"");
    else
        buf_addf(&text, "{\"kind\":\"%s\",\"apiVersion\":\"%s\"", call->kind->list_name, api_version);
    buf_addf(&text, ",\"metadata\":%s,\"items\":[", meta_text);
    buf_add(&text, buf_text(&out->text), out->text.length);
    buf_add_text(&text, "]}");
    size_t length = text.length;
    answer_text(call, 200, "application/json", buf_take(&text), length);
}

/* Walks the snapshot from its start and fills out; *ret_next is the key that the next page begins with. */
static size_t fill_page(struct call *call, enum form form, const struct snapshot *snapshot,
                        const struct page *page, const struct selector *labels, const struct selector *fields,
                        struct list_out *out, const char **ret_next)
{
    CLEANUP_FREE char *prefix = call->namespace ? xasprintf("%s/", call->namespace) : xstrdup("");
    size_t remaining = 0;
    *ret_next = NULL;
    for (size_t i = snapshot_position(snapshot, page->start ? page->start : prefix); i < snapshot->count;
         i++) {
        const struct entry *entry = &snapshot->entries[i];
        if (!str_starts_with(entry->key, prefix))
            break;
        if (labels || fields) {
            const cJSON *tree = version_tree(entry->version);
            if (!selector_match_labels(labels, json_path(tree, "metadata", "labels", NULL)) ||
                !selector_match_fields(fields, tree))
                continue;
        }
        if (page->limit > 0 && out->count == (size_t)page->limit) {
            *ret_next = *ret_next ? *ret_next : entry->key;
            remaining++;
        } else {
            add_item(call, form, out, entry->version);
        }
    }
    return remaining;
}

int read_list(struct call *call)
{
    enum form form;
    CLEANUP_SELECTOR struct selector *labels = NULL;
    CLEANUP_SELECTOR struct selector *fields = NULL;
    struct page page;
    if (check_list_options(call, false) < 0 || form_of(call, &form) < 0 ||
        read_selectors(call, &labels, &fields) < 0 || read_page(call, &page) < 0)
        return -1;
    CLEANUP_FREE __attribute__((unused)) char *start = page.start;
    CLEANUP_SNAPSHOT struct snapshot snapshot = {0};
    if (!snapshot_take(call->sim, call->kind, page.number, &snapshot))
        return refuse_expired(call);
    struct list_out out = {.text = BUF_INIT(ANSWER_MAX)};
    if (form == FORM_TABLE)
        out.table = table_make(call->kind, true);
    const char *next;
    size_t remaining = fill_page(call, form, &snapshot, &page, labels, fields, &out, &next);
    answer_list(call, form, &out,
                list_metadata(form == FORM_PLAIN && call->kind->flags & KIND_CUSTOM, &page, next, remaining,
                              labels || fields));
    buf_done(&out.text);
    return 0;
}
