/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/write.h"
#include "base/time_text.h"
#include "cmd/neosetctl/session.h"
#include "cmd/neosetctl/undo.h"
#include "cmd/neosetctl/view.h"
#include "kube/object.h"

#include <inttypes.h>

enum { TRIES_MAX = 1000 };

/* One object and what becomes of it. */
struct target {
    struct ctl_session *session;
    struct kube_ref ref;
    const struct ctl_change *wanted;
};

static int get(struct ctl_server *server, const struct kube_ref *ref, cJSON **ret, struct error **err)
{
    if (ref->resource == KUBE_NEOSET)
        return ctl_get_set(server, ref->name, ret, err);
    CLEANUP_FREE char *path = kube_path(ref->resource, ref->namespace, ref->name, NULL);
    const char *kind = kube_resource_info(ref->resource)->kind;
    CLEANUP_FREE char *what = ref->namespace
                                  ? xasprintf("%s %s in namespace %s", kind, ref->name, ref->namespace)
                                  : xasprintf("%s %s", kind, ref->name);
    return ctl_get(server, path, what, ret, err);
}

static int make_request(const struct target *target, const cJSON *object, struct step_request **ret,
                        struct error **err)
{
    const struct kube_ref *ref = &target->ref;
    struct step_request *request = step_request_make(STEP_PATCH, ref->resource, ref->namespace, ref->name);
    request->uid = xstrdup_or_null(kube_object_uid(object));
    request->version = xstrdup_or_null(kube_object_version(object));
    request->operation_kind = xstrdup(target->wanted->kind);
    request->operation_resource = ref->resource;
    request->operation_namespace = xstrdup_or_null(ref->namespace);
    request->operation_name = xstrdup(ref->name);
    int r = target->wanted->fill(target->wanted->context, object, request, err);
    if (r < 0)
        step_request_free(request);
    else
        *ret = request;
    return r;
}

/* Submits until the step is closed. The object is read anew each time: someone else may have changed it. */
static int converge(const struct target *target, enum ctl_written *ret, struct error **err)
{
    struct ctl_session *session = target->session;
    const struct kube_ref *ref = &target->ref;
    bool was_sent = false;
    for (int tries = 0; tries < TRIES_MAX && !ctl_session_is_over(session); tries++) {
        CLEANUP_JSON cJSON *object = NULL;
        int r = get(session->server, ref, &object, err);
        if (r < 0)
            return r;
        bool is_open = gateway_is_open(session->gateway, ref->resource, ref->namespace, ref->name);
        if (!is_open && target->wanted->is_done(target->wanted->context, object)) {
            *ret = was_sent ? CTL_WRITTEN : CTL_ALREADY;
            return 0;
        }
        struct step_request *request = NULL;
        r = make_request(target, object, &request, err);
        if (r < 0)
            return r;
        bool again = false;
        r = ctl_session_step(session, request, &again, err);
        if (r == 0 && !again)
            *ret = CTL_WRITTEN;
        if (r < 0 || !again)
            return r;
        was_sent = true;
    }
    return ctl_session_over(session, err);
}

int ctl_write(struct ctl_server *server, const char *name, const struct ctl_change *change,
              enum ctl_written *ret, struct error **err)
{
    bool in_namespace = kube_resource_info(change->resource)->namespaced;
    struct ctl_session session;
    struct target target = {.session = &session,
                            .ref = {change->resource, in_namespace ? server->namespace : NULL, name},
                            .wanted = change};
    CLEANUP_JSON cJSON *object = NULL;
    int r = get(server, &target.ref, &object, err);
    if (r < 0)
        return r;
    if (change->is_done(change->context, object)) {
        *ret = CTL_ALREADY;
        return 0;
    }
    CLEANUP_ERROR struct error *own = NULL;
    r = ctl_session_open(&session, server, &target.ref, server->timeout_us, &own);
    if (r == 0)
        r = converge(&target, ret, &own);
    const char *outcome = r == 0 ? "completed" : (session.is_closed ? "failed" : "cancelled");
    bool is_open =
        session.gateway && gateway_is_open(session.gateway, target.ref.resource, target.ref.namespace, name);
    ctl_session_close(&session, change->kind, is_open ? NULL : outcome, r == 0 ? NULL : error_text(own));
    if (r < 0 && err)
        *err = STEAL(own);
    return r;
}

/* --- the changes
 * -------------------------------------------------------------------------------------------- */

static bool is_paused_as_wanted(void *context, const cJSON *object)
{
    const bool *is_paused = context;
    struct set_view set;
    set_view_make(object, &set);
    return set.is_paused == *is_paused;
}

static int fill_pause(void *context, const cJSON *object, struct step_request *request, struct error **err)
{
    (void)err;
    const bool *is_paused = context;
    const char *wanted = *is_paused ? "true" : "false";
    struct set_view set;
    set_view_make(object, &set);
    request->body = json_new_object();
    cJSON *strategy = json_add_object(json_add_object(request->body, "spec"), "updateStrategy");
    json_add_bool(strategy, "pause", *is_paused);
    request->fingerprint = xasprintf("pause=%s", wanted);
    request->reason = xasprintf("%s: %s", set.name, *is_paused ? "pause" : "resume");
    request->come_from = xasprintf("pause: %s", set.is_paused ? "true" : "false");
    request->go_to = xasprintf("pause: %s", wanted);
    return 0;
}

int ctl_write_pause(struct ctl_server *server, const char *name, bool is_paused, enum ctl_written *ret,
                    struct error **err)
{
    struct ctl_change change = {
        .kind = "settings", .is_done = is_paused_as_wanted, .fill = fill_pause, .context = &is_paused};
    return ctl_write(server, name, &change, ret, err);
}

static bool is_undone(void *context, const cJSON *set)
{
    return ctl_undo_is_done(context, set);
}

static int fill_undo(void *context, const cJSON *set, struct step_request *request, struct error **err)
{
    const struct ctl_undo *undo = context;
    if (!ctl_undo_is_done(undo, set) && !ctl_undo_is_as_seen(undo, set))
        return error_set(err, ERROR_REFUSED,
                         "somebody gave NeoSet %s another template meanwhile; look at it, "
                         "and say again what you want",
                         request->name);
    request->body = ctl_undo_patch(undo, set);
    request->fingerprint = xasprintf("template=%s", undo->digest);
    request->reason =
        xasprintf("%s: undo to revision %" PRId64 ": %s", request->name, undo->number, undo->change);
    request->come_from =
        undo->from_number > 0 ? xasprintf("revision %" PRId64, undo->from_number) : xstrdup("a new template");
    request->go_to = xasprintf("revision %" PRId64 " (%s)", undo->number, undo->name);
    return 0;
}

int ctl_write_undo(struct ctl_server *server, const char *name, const struct ctl_undo *undo,
                   enum ctl_written *ret, struct error **err)
{
    struct ctl_change change = {
        .kind = "undo", .is_done = is_undone, .fill = fill_undo, .context = (void *)undo};
    return ctl_write(server, name, &change, ret, err);
}
