/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/apply.h"
#include "base/sha256.h"
#include "base/time_text.h"
#include "cmd/neosetctl/apply_parts.h"
#include "journal/reader.h"
#include "kube/object.h"

enum { TRIES_MAX = 20 };
#define ESTABLISHED_WAIT_US (30 * US_PER_S)
#define ESTABLISHED_POLL_US (200 * US_PER_MS)

/* --- before anything is written ------------------------------------------------------------------------- */

static int read_options(struct apply *apply, struct error **err)
{
    const struct options *options = apply->wanted->options;
    apply->field_manager = option_text(options, "field-manager");
    apply->is_forced = option_flag(options, "force-conflicts");
    apply->is_dry = option_flag(options, "dry-run");
    if (!apply->field_manager)
        apply->field_manager = "neosetctl";
    if (!*apply->field_manager)
        return error_set(err, ERROR_USAGE, "--field-manager is empty: it names who owns the fields");
    int r = duration_parse(option_text(options, "timeout"), &apply->limit_us, err);
    return r == -ERROR_INVALID ? error_wrap(err, -ERROR_USAGE, "--timeout") : r;
}

static int read_items(struct apply *apply, struct error **err)
{
    int r = manifests_read(apply->wanted->options, &apply->manifests, err);
    if (r < 0)
        return r;
    apply->count = apply->manifests.count;
    apply->items = xcalloc(apply->count, sizeof *apply->items);
    for (size_t i = 0; i < apply->count; i++)
        apply->items[i].manifest = &apply->manifests.items[i];
    apply_forget_kinds(apply);
    r = apply_find_kinds(apply, err);
    return r < 0 ? r : manifests_check_unique(&apply->manifests, err);
}

/* Its Namespace is among the items, and not there yet: nothing in it can be tried. */
static bool is_in_new_namespace(const struct apply *apply, const struct apply_item *item)
{
    for (size_t i = 0; item->namespace && i < apply->count; i++) {
        const struct apply_item *other = &apply->items[i];
        if (other->comes_first && other->result == APPLY_CREATED && !other->is_written &&
            other->resource != KUBE_DEFINITION && str_equal(other->name, item->namespace))
            return true;
    }
    return false;
}

static int try_all(struct apply *apply, struct error **err)
{
    for (size_t i = 0; i < apply->count; i++)
        apply->items[i].is_untried = !apply->items[i].comes_first;
    int r = apply_try(apply, err);
    for (size_t i = 0; i < apply->count; i++) {
        struct apply_item *item = &apply->items[i];
        item->is_untried = !item->is_known || is_in_new_namespace(apply, item);
    }
    return r < 0 ? r : apply_try(apply, err);
}

static int tell_refusals(const struct apply *apply, const char *rest, struct error **err)
{
    size_t refused = 0;
    for (size_t i = 0; i < apply->count; i++) {
        const struct apply_item *item = &apply->items[i];
        if (item->result != APPLY_REFUSED)
            continue;
        CLEANUP_FREE char *what = manifest_text(item->manifest);
        CLEANUP_FREE char *sentence = xasprintf("%s: %s", what, item->problem);
        apply->wanted->say(apply->wanted->context, sentence);
        refused++;
    }
    if (refused == 0)
        return 0;
    if (apply->count == 1)
        return error_set(err, ERROR_REFUSED, "the one object is refused, so %s", rest);
    return error_set(err, ERROR_REFUSED, "%zu of %zu objects are refused, so %s", refused, apply->count,
                     rest);
}

/* --- the table ------------------------------------------------------------------------------------------ */

static const char *word_of(const struct apply_item *item)
{
    switch (item->result) {
    case APPLY_CREATED:
        return "created";
    case APPLY_CHANGED:
        return "configured";
    case APPLY_UNCHANGED:
        return "unchanged";
    case APPLY_GROWS:
        return "converged";
    case APPLY_WAITING:
    case APPLY_REFUSED:
        break;
    }
    return "not tried";
}

static enum sheet_tone tone_of(const struct apply_item *item)
{
    return item->result == APPLY_UNCHANGED ? TONE_DIM : item->result == APPLY_WAITING ? TONE_WARN : TONE_GOOD;
}

/* "deployment.apps/web", as kubectl says it; the caller's. */
static char *object_text(const struct apply_item *item)
{
    const char *kind = json_str(item->manifest->object, "kind");
    const char *version = json_str(item->manifest->object, "apiVersion");
    const char *slash = strchr(version, '/');
    char *text = xasprintf("%s%s%.*s/%s", kind, slash ? "." : "", slash ? (int)(slash - version) : 0, version,
                           kube_object_name(item->manifest->object));
    for (char *at = text; *at && *at != '.' && *at != '/'; at++)
        if (*at >= 'A' && *at <= 'Z')
            *at = (char)(*at - 'A' + 'a');
    return text;
}

static void show(const struct apply *apply)
{
    static const struct sheet_column columns[] = {
        {.name = "object", .title = "OBJECT", .type = SHEET_TEXT, .where = IN_ALL, .place = 1},
        {.name = "namespace", .title = "NAMESPACE", .type = SHEET_TEXT, .where = IN_ALL, .place = 2},
        {.name = "result", .title = "RESULT", .type = SHEET_TEXT, .where = IN_ALL, .place = 3},
    };
    struct sheet *sheet = sheet_begin(apply->wanted->out, apply->wanted->look, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < apply->count; i++) {
        const struct apply_item *item = &apply->items[i];
        bool is_told = item->is_written || item->result == APPLY_UNCHANGED ||
                       (apply->is_dry && item->result != APPLY_REFUSED);
        if (!is_told)
            continue;
        CLEANUP_FREE char *object = object_text(item);
        struct sheet_cell cells[] = {cell_text(object), cell_text(item->namespace), cell_text(word_of(item))};
        cells[2].tone = tone_of(item);
        sheet_row(sheet, cells);
    }
    (void)sheet_end(sheet);
}

/* --- writing -------------------------------------------------------------------------------------------- */

/* What is asked, without saying it: to know it again. Of a Secret nothing that could be guessed at. */
static char *fingerprint_of(const struct apply *apply, const struct apply_item *item)
{
    if (str_equal(json_str(item->manifest->object, "kind"), "Secret")) {
        uint8_t bytes[8];
        env_random(apply->wanted->server->env, bytes, sizeof bytes);
        CLEANUP_FREE char *text = hex_encode(bytes, sizeof bytes);
        return xasprintf("apply=%s", text);
    }
    CLEANUP_FREE char *text = json_print_sorted(item->manifest->object);
    uint8_t digest[SHA256_SIZE];
    sha256_once(text, strlen(text), digest);
    CLEANUP_FREE char *hash = hex_encode(digest, SHA256_SIZE / 2);
    return xasprintf("apply=%s", hash);
}

static struct step_request *make_step(const struct apply *apply, const struct apply_item *item)
{
    enum step_kind kind = item->uid ? STEP_APPLY : STEP_APPLY_NEW;
    struct step_request *request = step_request_make(kind, item->resource, item->namespace, item->name);
    request->uid = xstrdup_or_null(item->uid);
    request->version = xstrdup_or_null(item->version);
    request->body = json_copy(item->manifest->object);
    request->field_manager = xstrdup(apply->field_manager);
    request->is_forced = apply->is_forced;
    request->fingerprint = fingerprint_of(apply, item);
    request->reason = xasprintf("%s: apply as %s", item->name, apply->field_manager);
    request->operation_kind = xstrdup("apply");
    request->operation_resource = item->resource;
    request->operation_namespace = xstrdup_or_null(item->namespace);
    request->operation_name = xstrdup(item->name);
    return request;
}

/* What an earlier run began is settled by now, or open and said so; this run says what is wanted. */
static void end_old_operation(void *context, const struct journal_open_operation *operation)
{
    struct gateway *gateway = context;
    enum kube_resource resource;
    const char *namespace = operation->namespace && *operation->namespace ? operation->namespace : NULL;
    if (str_equal(operation->action, "apply") && kube_resource_by_name(operation->object, &resource) == 0 &&
        !gateway_is_open(gateway, resource, namespace, operation->name))
        gateway_end_operation(gateway, "apply", resource, namespace, operation->name, "superseded",
                              "another apply came after it");
}

static int open_session(struct apply *apply, const struct apply_item *item, struct error **err)
{
    struct kube_ref object = {item->resource, item->namespace, item->name};
    if (apply->has_session) {
        apply->session.object = object;
        return 0;
    }
    apply->has_session = true;
    int r = ctl_session_open(&apply->session, apply->wanted->server, &object, apply->limit_us, err);
    if (r == 0)
        journal_open_operations_each(apply->session.journal, end_old_operation, apply->session.gateway);
    return r;
}

static void close_session(struct apply *apply)
{
    if (apply->has_session)
        ctl_session_close(&apply->session, "apply", NULL, NULL);
    apply->has_session = false;
}

static void end_operation(struct apply *apply, const struct apply_item *item, const char *outcome,
                          const char *reason)
{
    if (apply->session.gateway)
        gateway_end_operation(apply->session.gateway, "apply", item->resource, item->namespace, item->name,
                              outcome, reason);
}

/* Until it is as wanted. An object that moved between the trial and the write is tried anew. */
static int write_item(struct apply *apply, struct apply_item *item, struct error **err)
{
    enum apply_result first = item->result;
    int r = open_session(apply, item, err);
    for (int tries = 0; r == 0 && tries < TRIES_MAX; tries++) {
        bool again = false;
        r = ctl_session_step(&apply->session, make_step(apply, item), &again, err);
        if (r == 0 && again)
            r = apply_try_one(apply, item, err);
        if (r == 0 && (!again || item->result == APPLY_UNCHANGED)) {
            item->result = first;
            item->is_written = true;
            end_operation(apply, item, "completed", NULL);
            return 0;
        }
        if (r == 0 && item->result == APPLY_REFUSED)
            r = error_set(err, ERROR_FAILED, "%s", item->problem);
        else if (r == 0 && item->result == APPLY_GROWS)
            r = error_set(err, ERROR_FAILED,
                          "its volumeClaimTemplates were changed by somebody else meanwhile");
    }
    if (r == 0)
        r = error_set(err, ERROR_FAILED, "somebody else changes it all the time");
    if (apply->session.is_closed)
        end_operation(apply, item, "failed", error_text(err ? *err : NULL));
    return r;
}

/* Converged, it is applied once more: what the running one had not, and the manifest has. */
static int grow_item(struct apply *apply, struct apply_item *item, struct error **err)
{
    close_session(apply);
    int r = apply_converge(apply, item, err);
    if (r == 0)
        r = open_session(apply, item, err);
    if (r == 0)
        r = apply_try_one(apply, item, err);
    if (r == 0 && item->result == APPLY_CHANGED)
        r = write_item(apply, item, err);
    else if (r == 0 && item->result != APPLY_UNCHANGED)
        r = error_set(err, ERROR_FAILED, "%s",
                      item->problem ? item->problem : "somebody else changed it meanwhile");
    if (r == 0) {
        item->result = APPLY_GROWS;
        item->is_written = true;
    }
    return r;
}

static int write_one(struct apply *apply, struct apply_item *item, struct error **err)
{
    if (item->result == APPLY_UNCHANGED)
        return 0;
    CLEANUP_ERROR struct error *own = NULL;
    int r = item->result == APPLY_GROWS ? grow_item(apply, item, &own) : write_item(apply, item, &own);
    if (r == 0)
        return 0;
    CLEANUP_FREE char *what = manifest_text(item->manifest);
    /* "Refused" is said of what was not begun. */
    return error_set(err, r == -ERROR_TIMED_OUT ? ERROR_TIMED_OUT : ERROR_FAILED,
                     "%s: %s; what is in the table was done, the same command goes on", what,
                     error_text(own));
}

static int write_all(struct apply *apply, bool first, struct error **err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < apply->count; i++)
        if (apply->items[i].comes_first == first && apply->items[i].result != APPLY_WAITING)
            r = write_one(apply, &apply->items[i], err);
    return r;
}

/* --- what came with what others need -------------------------------------------------------------------- */

static int wait_established(struct apply *apply, const struct apply_item *item, struct error **err)
{
    struct ctl_server *server = apply->wanted->server;
    CLEANUP_FREE char *path = kube_path(item->resource, NULL, item->name, NULL);
    int64_t until_us = env_boot_us(server->env) + ESTABLISHED_WAIT_US;
    for (;;) {
        CLEANUP_JSON cJSON *definition = NULL;
        int r = ctl_get(server, path, item->name, &definition, err);
        if (r < 0 || kube_object_condition_is_true(definition, "Established"))
            return r;
        if (env_boot_us(server->env) >= until_us || ctl_session_is_over(&apply->session))
            return error_set(
                err, ERROR_FAILED,
                "definition %s is not established: `kubectl describe crd %s` tells why; the same "
                "command goes on",
                item->name, item->name);
        ctl_session_pause(&apply->session, ESTABLISHED_POLL_US);
    }
}

/* The server knows a new kind a moment after its definition is established. */
static int find_new_kinds(struct apply *apply, struct error **err)
{
    int64_t until_us = env_boot_us(apply->wanted->server->env) + ESTABLISHED_WAIT_US;
    for (;;) {
        CLEANUP_ERROR struct error *own = NULL;
        apply_forget_kinds(apply);
        int r = apply_find_kinds(apply, &own);
        bool is_late =
            env_boot_us(apply->wanted->server->env) >= until_us || ctl_session_is_over(&apply->session);
        if (r == -ERROR_INVALID && !is_late) {
            ctl_session_pause(&apply->session, ESTABLISHED_POLL_US);
            continue;
        }
        if (r < 0 && err)
            *err = STEAL(own);
        return r;
    }
}

static bool has_untried(const struct apply *apply)
{
    for (size_t i = 0; i < apply->count; i++)
        if (apply->items[i].is_untried)
            return true;
    return false;
}

static int try_the_rest(struct apply *apply, struct error **err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < apply->count; i++)
        if (apply->items[i].resource == KUBE_DEFINITION && apply->items[i].is_written)
            r = wait_established(apply, &apply->items[i], err);
    if (r == 0)
        r = find_new_kinds(apply, err);
    for (size_t i = 0; i < apply->count; i++)
        apply->items[i].is_untried = false;
    if (r == 0)
        r = apply_try(apply, err);
    if (r == 0)
        r = tell_refusals(apply, "what others need was applied and nothing else; the same command goes on",
                          err);
    return r == -ERROR_REFUSED || r == -ERROR_INVALID ? -ERROR_FAILED : r;
}

/* --- the whole ------------------------------------------------------------------------------------------ */

static int prepare(struct apply *apply, struct error **err)
{
    int r = read_options(apply, err);
    if (r == 0)
        r = read_items(apply, err);
    if (r < 0)
        return r;
    struct kube_ref nothing = {0};
    ctl_session_open_dry(&apply->session, apply->wanted->server, &nothing, apply->limit_us);
    apply->has_session = true;
    r = try_all(apply, err);
    if (r == 0)
        r = apply_check_growth(apply, err);
    if (r == 0)
        r = tell_refusals(apply, "nothing was written", err);
    close_session(apply);
    return r;
}

static bool note_open_step(void *context, const struct journal_step_record *step)
{
    bool *is_open = context;
    (void)step;
    *is_open = true;
    return false;
}

/* Looked at without writing: what cannot be read is left to opening it, which says why. */
static bool something_is_in_doubt(void)
{
    CLEANUP_FREE char *path = ctl_session_find_journal();
    CLEANUP_JOURNAL_READER struct journal_reader *reader = NULL;
    bool is_open = false;
    if (!path)
        return false;
    return journal_reader_open(path, &reader, NULL) < 0 ||
           journal_read_open_steps(reader, note_open_step, &is_open, NULL) < 0 || is_open;
}

/* One whose kind is known: there always is, since an unknown kind has its definition among the items. */
static const struct apply_item *some_item(const struct apply *apply)
{
    size_t i = 0;
    while (i + 1 < apply->count && !apply->items[i].is_known)
        i++;
    return &apply->items[i];
}

static int write_everything(struct apply *apply, struct error **err)
{
    int r = 0;
    /* What an earlier command left in doubt is settled, also where nothing is to be written any more. */
    if (something_is_in_doubt() || has_untried(apply))
        r = open_session(apply, some_item(apply), err);
    if (r == 0)
        r = write_all(apply, true, err);
    if (r == 0 && has_untried(apply))
        r = try_the_rest(apply, err);
    if (r == 0)
        r = write_all(apply, false, err);
    close_session(apply);
    return r;
}

int ctl_apply(const struct ctl_apply *wanted, struct error **err)
{
    struct apply apply = {.wanted = wanted};
    int r = prepare(&apply, err);
    if (r == 0 && !apply.is_dry)
        r = write_everything(&apply, err);
    if (apply.count > 0)
        show(&apply);
    if (r == 0 && apply.is_dry)
        wanted->say(wanted->context, "nothing was written (--dry-run)");
    for (size_t i = 0; i < apply.count; i++) {
        json_delete(apply.items[i].live);
        free(apply.items[i].uid);
        free(apply.items[i].version);
        free(apply.items[i].problem);
    }
    free(apply.items);
    json_delete(apply.groups);
    json_delete(apply.kept);
    manifests_done(&apply.manifests);
    return r;
}
