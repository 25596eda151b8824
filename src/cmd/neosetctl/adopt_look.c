/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/adopt_parts.h"

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
        if (!kube_object_label(revision, KEEP_LABEL) || kube_object_is_deleting(revision) ||
            !str_equal(kube_object_annotation(revision, KEEP_ADOPTED_BY), name) || !keep_manifest(revision))
            continue;
        bool is_of_set = str_equal(kube_object_label(revision, KEEP_LABEL), kube_object_uid(sight->set));
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
    const cJSON *owner = ret->set ? ret->set : (ret->neo ? ret->neo : keep_manifest(ret->kept));
    CLEANUP_FREE char *selector = selector_print(json_path(owner, "spec", "selector", NULL));
    if (!selector) {
        ret->pods = json_new_array();
        return 0;
    }
    ret->pods_boot_us = env_boot_us(server->env);
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
    return kube_object_find(sight->revisions, name);
}

/* --- saying --------------------------------------------------------------------------------------------- */

void adoption_say(const struct adoption *adoption, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *line = xvasprintf(format, args);
    va_end(args);
    out_say(adoption->wanted->out, line);
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
    struct env *env = adoption->wanted->server->env;
    return adoption->server_ahead_us ? env_boot_us(env) + adoption->server_ahead_us : env_wall_us(env);
}

char *adoption_not_quiet(const struct adoption *adoption, const cJSON *owner, const struct sight *sight,
                         const char *revision)
{
    return quiet_phrase(&(struct quiet_wish){
        .set = owner, .pods = sight->pods, .revision = revision, .now_us = adoption_server_us(adoption)});
}

bool adoption_is_outdated(struct adoption *adoption, const struct sight *sight)
{
    int64_t now_us = env_boot_us(adoption->wanted->server->env);
    return quiet_is_outdated(sight->pods_boot_us, now_us, &adoption->outdated);
}

void adoption_remember(struct adoption *adoption, const cJSON *pods)
{
    json_delete(adoption->seen);
    adoption->seen = verify_picture(pods);
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
    const char *gone = NULL;
    const cJSON *pod = verify_find_dead_owner(sight->pods, kind, adoption->wanted->name, uid, &gone);
    *ret_any = pod != NULL;
    if (!pod)
        return 0;
    struct step_request *request = adoption_step(
        adoption, STEP_RELEASE, KUBE_POD, kube_object_name(pod), pod, "release",
        xasprintf("%s still named the %s that is gone: it names it no more", kube_object_name(pod), kind));
    request->body = verify_release_patch(gone);
    bool again = false;
    return adoption_send(adoption, request, &again, err);
}

/* --- dry runs ------------------------------------------------------------------------------------------- */

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
        adoption->server_ahead_us = created_us - env_boot_us(server->env);
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
    if (kube_object_has_finalizer(*ret, "orphan") &&
        str_equal(kube_object_uid(*ret), kube_object_uid(object)))
        return 0;
    json_delete(STEAL(*ret));
    return error_set(
        err, ERROR_REFUSED,
        "a dry run of deleting %s %s shows that its pods would not be left behind: nothing is written", kind,
        adoption->wanted->name);
}
