/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl_adopt_parts.h"

#include "audit/escape.h"
#include "base/time_text.h"
#include "neoset/selector.h"

#include <inttypes.h>

/* --- reading -------------------------------------------------------------------------------------------- */

/* *ret NULL: there is none. */
static int get(const struct adoption *adoption, enum kube_resource resource, cJSON **ret, struct error **err)
{
    struct ctl_server *server = adoption->wanted->server;
    const char *name = adoption->wanted->name;
    CLEANUP_FREE char *path = kube_path(resource, server->namespace, name, NULL);
    CLEANUP_FREE char *what =
        xasprintf("%s %s in namespace %s", kube_resource_info(resource)->kind, name, server->namespace);
    CLEANUP_ERROR struct error *own = NULL;
    int r = ctl_get(server, path, what, ret, &own);
    if (r == -ERROR_NOT_FOUND)
        return 0;
    if (r < 0 && err)
        *err = STEAL(own);
    return r;
}

static const cJSON *find_kept(const struct sight *sight, const char *name)
{
    const cJSON *found = NULL;
    const cJSON *revision = NULL;
    cJSON_ArrayForEach (revision, sight->revisions) {
        if (!kube_object_label(revision, MIGRATION_KEPT_LABEL) || kube_object_is_deleting(revision) ||
            !str_equal(kube_object_annotation(revision, MIGRATION_ADOPTED_BY), name) ||
            !migration_manifest(revision))
            continue;
        bool is_of_set =
            str_equal(kube_object_label(revision, MIGRATION_KEPT_LABEL), kube_object_uid(sight->set));
        if (!found || is_of_set || kube_object_created_us(revision) > kube_object_created_us(found))
            found = revision;
        if (is_of_set)
            break;
    }
    return found;
}

int sight_read(const struct adoption *adoption, struct sight *ret, struct error **err)
{
    struct ctl_server *server = adoption->wanted->server;
    *ret = (struct sight){0};
    int r = get(adoption, KUBE_STATEFULSET, &ret->set, err);
    if (r == 0)
        r = get(adoption, KUBE_NEOSET, &ret->neo, err);
    if (r == 0)
        r = ctl_list(server, KUBE_REVISION, server->namespace, NULL, "ControllerRevisions", &ret->revisions,
                     err);
    if (r < 0)
        return r;
    ret->kept = find_kept(ret, adoption->wanted->name);
    const cJSON *owner = ret->set ? ret->set : (ret->neo ? ret->neo : migration_manifest(ret->kept));
    CLEANUP_FREE char *selector = selector_print(json_path(owner, "spec", "selector", NULL));
    if (!selector) {
        ret->pods = json_new_array();
        return 0;
    }
    return ctl_list(server, KUBE_POD, server->namespace, selector, "pods", &ret->pods, err);
}

void sight_done(struct sight *sight)
{
    json_delete(sight->set);
    json_delete(sight->neo);
    json_delete(sight->pods);
    json_delete(sight->revisions);
    *sight = (struct sight){0};
}

const cJSON *sight_revision(const struct sight *sight, const char *name)
{
    const cJSON *revision = NULL;
    cJSON_ArrayForEach (revision, sight->revisions)
        if (name && str_equal(kube_object_name(revision), name))
            return revision;
    return NULL;
}

/* --- saying --------------------------------------------------------------------------------------------- */

void adoption_say(const struct adoption *adoption, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *line = xvasprintf(format, args);
    va_end(args);
    escape_plain(&adoption->wanted->out->text, line);
    buf_add_char(&adoption->wanted->out->text, '\n');
    (void)out_flush(adoption->wanted->out, NULL);
}

enum turn_end adoption_wait(struct adoption *adoption, char *phrase)
{
    if (!str_equal(phrase, adoption->waits_for))
        adoption_say(adoption, "waiting: %s", phrase);
    free(adoption->waits_for);
    adoption->waits_for = phrase;
    return TURN_WAIT;
}

int64_t adoption_server_us(const struct adoption *adoption)
{
    return env_wall_us(adoption->wanted->server->env) + adoption->server_ahead_us;
}

static int64_t restarts_of(const cJSON *pod)
{
    int64_t restarts = 0;
    const cJSON *status = NULL;
    cJSON_ArrayForEach (status, json_path(pod, "status", "containerStatuses", NULL))
        restarts += json_int64_or(status, "restartCount", 0);
    return restarts;
}

void adoption_remember(struct adoption *adoption, const cJSON *pods)
{
    json_delete(adoption->seen);
    adoption->seen = json_new_object();
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, pods) {
        if (!kube_object_name(pod) || !kube_object_uid(pod))
            continue;
        cJSON *seen = json_new_object();
        json_add_str(seen, "uid", kube_object_uid(pod));
        json_add_int64(seen, "restarts", restarts_of(pod));
        json_set_item(adoption->seen, kube_object_name(pod), seen);
    }
}

char *adoption_compare(const struct adoption *adoption, const cJSON *pods)
{
    int same = 0;
    const cJSON *pod = NULL;
    struct buf others = BUF_INIT(1 << 16);
    cJSON_ArrayForEach (pod, pods) {
        const char *name = kube_object_name(pod);
        const cJSON *seen = name ? json_get(adoption->seen, name) : NULL;
        if (seen && !str_equal(json_str(seen, "uid"), kube_object_uid(pod)))
            buf_addf(&others, "; %s was made anew meanwhile", name);
        else if (seen && restarts_of(pod) != json_int64_or(seen, "restarts", 0))
            buf_addf(&others, "; a container of %s restarted meanwhile", name);
        else
            same++;
    }
    char *text = adoption->seen && others.length == 0
                     ? xasprintf("the same %d pods, none restarted", same)
                     : xasprintf("%d pods%s", cJSON_GetArraySize(pods), buf_text(&others));
    buf_done(&others);
    return text;
}

void adoption_show(const struct adoption *adoption, struct plan_row *rows, size_t count)
{
    static const struct sheet_column columns[] = {
        {.name = "what", .title = "WHAT", .type = SHEET_TEXT, .where = IN_ALL},
        {.name = "how", .title = "HOW", .type = SHEET_TEXT, .where = IN_ALL},
    };
    struct sheet *sheet =
        sheet_begin(adoption->wanted->out, adoption->wanted->look, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < count; i++) {
        struct sheet_cell cells[] = {cell_text(rows[i].what), cell_text(rows[i].how)};
        if (rows[i].how)
            sheet_row(sheet, cells);
        free(rows[i].how);
    }
    sheet_end(sheet);
    (void)out_flush(adoption->wanted->out, NULL);
}

/* --- steps ---------------------------------------------------------------------------------------------- */

struct step_request *adoption_step(const struct adoption *adoption, enum step_kind kind,
                                   enum kube_resource resource, const char *name, const cJSON *object,
                                   const char *fingerprint, char *reason)
{
    const struct ctl_adopt *wanted = adoption->wanted;
    struct step_request *request = step_request_make(kind, resource, wanted->server->namespace, name);
    request->uid = xstrdup_or_null(object ? kube_object_uid(object) : NULL);
    request->version = xstrdup_or_null(object ? kube_object_version(object) : NULL);
    request->fingerprint = xstrdup(fingerprint);
    request->reason = reason;
    request->operation_kind = xstrdup("adopt");
    request->operation_resource = KUBE_NEOSET;
    request->operation_namespace = xstrdup(wanted->server->namespace);
    request->operation_name = xstrdup(wanted->name);
    request->come_from = xasprintf("%s %s", wanted->goes_back ? "NeoSet" : "StatefulSet", wanted->name);
    request->go_to = xasprintf("%s %s", wanted->goes_back ? "StatefulSet" : "NeoSet", wanted->name);
    return request;
}

int adoption_send(struct adoption *adoption, struct step_request *request, bool *ret_again,
                  struct error **err)
{
    CLEANUP_FREE char *reason = xstrdup(request->reason);
    *ret_again = false;
    adoption->has_written = true;
    int r = ctl_session_step(&adoption->session, request, ret_again, err);
    if (r == 0 && !*ret_again)
        adoption_say(adoption, "%s", reason);
    return r;
}

int adoption_release(struct adoption *adoption, const struct sight *sight, const char *kind, const char *uid,
                     bool *ret_any, struct error **err)
{
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, sight->pods) {
        const cJSON *owner = NULL;
        const cJSON *found = NULL;
        cJSON_ArrayForEach (owner, json_path(pod, "metadata", "ownerReferences", NULL))
            if (str_equal(json_str(owner, "kind"), kind) &&
                (uid ? str_equal(json_str(owner, "uid"), uid)
                     : str_equal(json_str(owner, "name"), adoption->wanted->name)))
                found = owner;
        if (!found || kube_object_is_deleting(pod))
            continue;
        struct step_request *request =
            adoption_step(adoption, STEP_RELEASE, KUBE_POD, kube_object_name(pod), pod, "release",
                          xasprintf("%s still named the %s that is gone: it names it no more",
                                    kube_object_name(pod), kind));
        request->body = json_new_object();
        cJSON *gone = json_new_object();
        json_add_str(gone, "$patch", "delete");
        json_add_str(gone, "uid", json_str(found, "uid"));
        json_append_item(json_add_array(json_add_object(request->body, "metadata"), "ownerReferences"), gone);
        bool again = false;
        *ret_any = true;
        int r = adoption_send(adoption, request, &again, err);
        if (r < 0 || again)
            return r;
    }
    return 0;
}

/* --- dry runs ------------------------------------------------------------------------------------------- */

bool adoption_has_finalizer(const cJSON *object, const char *name)
{
    const cJSON *finalizer = NULL;
    cJSON_ArrayForEach (finalizer, json_path(object, "metadata", "finalizers", NULL))
        if (cJSON_IsString(finalizer) && str_equal(finalizer->valuestring, name))
            return true;
    return false;
}

char *adoption_finalizers(const cJSON *object)
{
    struct buf text = BUF_INIT(1 << 16);
    const cJSON *finalizer = NULL;
    cJSON_ArrayForEach (finalizer, json_path(object, "metadata", "finalizers", NULL))
        if (cJSON_IsString(finalizer))
            buf_addf(&text, "%s%s", text.length > 0 ? ", " : "", finalizer->valuestring);
    return buf_take(&text);
}

int adoption_try_create(struct adoption *adoption, enum kube_resource resource, const cJSON *object,
                        cJSON **ret, struct error **err)
{
    struct ctl_server *server = adoption->wanted->server;
    struct exempt_request request = {.kind = EXEMPT_DRY_RUN,
                                     .method = "POST",
                                     .resource = resource,
                                     .namespace = server->namespace,
                                     .content_type = KUBE_JSON,
                                     .body = object,
                                     .timeout_us = server->timeout_us};
    int r = ctl_session_dry_run(&adoption->session, &request, ret, err);
    if (r < 0)
        return error_wrap(err, r, "a dry run of creating %s %s", kube_resource_info(resource)->kind,
                          adoption->wanted->name);
    int64_t created_us = kube_object_created_us(*ret);
    if (created_us > 0)
        adoption->server_ahead_us = created_us - env_wall_us(server->env);
    return 0;
}

int adoption_try_delete(struct adoption *adoption, enum kube_resource resource, const cJSON *object,
                        cJSON **ret, struct error **err)
{
    struct ctl_server *server = adoption->wanted->server;
    const char *kind = kube_resource_info(resource)->kind;
    CLEANUP_JSON cJSON *body =
        preconditions_orphan_delete(kube_object_uid(object), kube_object_version(object), true);
    struct exempt_request request = {.kind = EXEMPT_DRY_DELETE,
                                     .method = "DELETE",
                                     .resource = resource,
                                     .namespace = server->namespace,
                                     .name = adoption->wanted->name,
                                     .content_type = KUBE_JSON,
                                     .body = body,
                                     .timeout_us = server->timeout_us};
    int r = ctl_session_dry_run(&adoption->session, &request, ret, err);
    if (r < 0)
        return error_wrap(err, r, "a dry run of deleting %s %s with its pods left behind", kind,
                          adoption->wanted->name);
    if (adoption_has_finalizer(*ret, "orphan") && str_equal(kube_object_uid(*ret), kube_object_uid(object)))
        return 0;
    json_delete(STEAL(*ret));
    return error_set(
        err, ERROR_REFUSED,
        "a dry run of deleting %s %s shows that its pods would not be left behind: nothing is written", kind,
        adoption->wanted->name);
}
