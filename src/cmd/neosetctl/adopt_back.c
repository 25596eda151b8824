/* SPDX-License-Identifier: Apache-2.0
 *
 * The way back: the NeoSet goes, its pods left behind, and the StatefulSet that was kept is created again. */
#include "cmd/neosetctl/adopt_parts.h"

#include "base/time_text.h"
#include "cmd/neosetctl/yaml.h"
#include "neoset/fact.h"

#include <inttypes.h>

/* What the pods carried when the StatefulSet had them; its controller would restart any other. */
static const char *old_revision(const struct sight *sight)
{
    return json_path_str(keep_manifest(sight->kept), "status", "updateRevision", NULL);
}

static int nothing_kept(const struct adoption *adoption, const struct sight *sight, struct error **err)
{
    const char *name = adoption->wanted->name;
    const char *namespace = adoption->wanted->server->namespace;
    if (!sight->neo)
        return error_set(err, ERROR_NOT_FOUND,
                         "no NeoSet %s in namespace %s, nor a manifest of a StatefulSet that became one",
                         name, namespace);
    return error_set(
        err, ERROR_REFUSED,
        "NeoSet %s in namespace %s: there is no manifest of a StatefulSet %s to go back to: it was not "
        "adopted, or somebody deleted the ControllerRevision that kept it",
        name, namespace, name);
}

/* --- the NeoSet goes ------------------------------------------------------------------------------------ */

/* The StatefulSet still has its pods: the NeoSet goes with what it made. Its revisions must not stay behind,
 * or the StatefulSet's controller would take them for its own. */
static int drop_neoset(struct adoption *adoption, const struct sight *sight, struct error **err)
{
    const char *name = adoption->wanted->name;
    int owned = quiet_count_owned(sight->pods, kube_object_uid(sight->neo));
    if (owned > 0)
        return error_set(
            err, ERROR_REFUSED,
            "StatefulSet %s and NeoSet %s both have pods (the NeoSet %d): which of them is to stay is a "
            "person's decision; nothing was written",
            name, name, owned);
    struct step_request *request =
        adoption_step(adoption, STEP_DELETE, KUBE_NEOSET, name, sight->neo, "drop-neoset",
                      xasprintf("NeoSet %s deleted: it had no pods yet", name));
    request->body = json_new_object();
    json_add_str(request->body, "propagationPolicy", "Background");
    bool again = false;
    return adoption_send(adoption, request, &again, err);
}

static int check(const struct adoption *adoption, const struct sight *sight, struct error **err)
{
    if (!sight->kept)
        return nothing_kept(adoption, sight, err);
    struct migration_list refusals;
    migration_refuse_return(sight->neo, keep_manifest(sight->kept), &refusals);
    CLEANUP_FREE char *text = migration_list_text(&refusals);
    size_t count = refusals.count;
    migration_list_done(&refusals);
    if (count == 0)
        return 0;
    return error_set(err, ERROR_REFUSED, "NeoSet %s has no way back to a StatefulSet: %s",
                     adoption->wanted->name, text);
}

/* NULL: quiet. An adoption that was not finished has pods that are nobody's yet. */
static char *neo_not_quiet(const struct adoption *adoption, const struct sight *sight)
{
    if (!kube_object_annotation(sight->neo, NEOSET_ADOPTS_ANNOTATION))
        return adoption_not_quiet(adoption, sight->neo, sight,
                                  json_path_str(sight->neo, "status", "updateRevisionName", NULL));
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, sight->pods)
        if (kube_object_is_deleting(pod))
            return xasprintf("%s is terminating", kube_object_name(pod));
    return NULL;
}

/* The text of the annotation that says what has changed since; "" for nothing. The caller's. */
static char *return_text(const struct sight *sight)
{
    CLEANUP_JSON cJSON *patch = migration_return(sight->neo, keep_manifest(sight->kept));
    return patch ? json_print_sorted(patch) : xstrdup("");
}

/* The StatefulSet as it is to be created; the caller's. */
static cJSON *statefulset_of(const struct sight *sight)
{
    CLEANUP_JSON cJSON *kept = json_copy(sight->kept);
    CLEANUP_FREE char *text = sight->neo ? return_text(sight) : NULL;
    if (text)
        json_set_str(json_ensure_object(json_get(kept, "metadata"), "annotations"), KEEP_RETURN, text);
    return keep_recreation(kept);
}

static int prove(struct adoption *adoption, const struct sight *sight, struct error **err)
{
    CLEANUP_JSON cJSON *statefulset = statefulset_of(sight);
    CLEANUP_JSON cJSON *answered = NULL;
    CLEANUP_JSON cJSON *proof = NULL;
    ENSURE(statefulset != NULL);
    int r = adoption_try_create(adoption, KUBE_STATEFULSET, statefulset, &answered, err);
    if (r == 0)
        r = adoption_try_delete(adoption, KUBE_NEOSET, sight->neo, &proof, err);
    return r;
}

static int note_return(struct adoption *adoption, const struct sight *sight, const char *text,
                       struct error **err)
{
    struct step_request *request = adoption_step(
        adoption, STEP_PATCH, KUBE_REVISION, kube_object_name(sight->kept), sight->kept, "return",
        xasprintf("what changed since is kept with the manifest: %s", *text ? text : "nothing"));
    request->body = json_new_object();
    cJSON *annotations = json_add_object(json_add_object(request->body, "metadata"), "annotations");
    json_add_item(annotations, KEEP_RETURN, *text ? json_new_str(text) : cJSON_CreateNull());
    bool again = false;
    return adoption_send(adoption, request, &again, err);
}

static int orphan_delete(struct adoption *adoption, const struct sight *sight, struct error **err)
{
    const char *name = adoption->wanted->name;
    struct step_request *request =
        adoption_step(adoption, STEP_ORPHAN_DELETE, KUBE_NEOSET, name, sight->neo, "orphan-delete",
                      xasprintf("NeoSet %s deleted, its pods left behind", name));
    bool again = false;
    adoption_remember(adoption, sight->pods);
    return adoption_send(adoption, request, &again, err);
}

static int let_go(struct adoption *adoption, const struct sight *sight, enum turn_end *ret,
                  struct error **err)
{
    struct kube_ref ref = {KUBE_NEOSET, adoption->wanted->server->namespace, adoption->wanted->name};
    if (gateway_is_open(adoption->session.gateway, ref.resource, ref.namespace, ref.name))
        return ctl_session_settle(&adoption->session, &ref, err);
    int r = check(adoption, sight, err);
    if (r < 0)
        return r;
    char *phrase = neo_not_quiet(adoption, sight);
    if (phrase) {
        *ret = adoption_wait(adoption, phrase);
        return 0;
    }
    CLEANUP_FREE char *text = return_text(sight);
    const char *noted = kube_object_annotation(sight->kept, KEEP_RETURN);
    if (strcmp(text, noted ? noted : "") != 0)
        return note_return(adoption, sight, text, err);
    r = prove(adoption, sight, err);
    if (r == -ERROR_CONFLICT) {
        if (err)
            error_free(STEAL(*err));
        return 0;
    }
    if (r < 0 || adoption_is_outdated(adoption, sight))
        return r;
    return orphan_delete(adoption, sight, err);
}

static int leaving(struct adoption *adoption, const cJSON *owner, const struct sight *sight,
                   enum turn_end *ret, struct error **err)
{
    const char *kind = json_str(owner, "kind");
    int owned = quiet_count_owned(sight->pods, kube_object_uid(owner));
    CLEANUP_FREE char *finalizers = kube_object_finalizers_text(owner);
    if (!kube_object_has_finalizer(owner, "orphan") && owned > 0)
        return error_set(
            err, ERROR_FAILED,
            "ALARM: %s %s is being deleted together with its pods, not by this command: %d of them still "
            "name it and may die",
            kind, adoption->wanted->name, owned);
    *ret = adoption_wait(adoption, xasprintf("%s %s is on its way out (finalizers: %s)", kind,
                                             adoption->wanted->name, finalizers));
    return 0;
}

/* --- between -------------------------------------------------------------------------------------------- */

/* The NeoSet's own revisions mean what the StatefulSet's do: its controller would take the newer for the one
 * that all pods must run. */
static int drop_left_overs(struct adoption *adoption, const struct sight *sight, bool *ret_any,
                           struct error **err)
{
    const cJSON *revision = NULL;
    cJSON_ArrayForEach (revision, sight->revisions) {
        const char *name = kube_object_name(revision);
        if (!migration_is_left_over(revision, adoption->wanted->name))
            continue;
        *ret_any = true;
        bool again = false;
        int r =
            adoption_send(adoption,
                          adoption_step(adoption, STEP_DELETE, KUBE_REVISION, name, revision, "drop-revision",
                                        xasprintf("revision %s deleted: it was the NeoSet's", name)),
                          &again, err);
        if (r < 0 || again)
            return r;
    }
    return 0;
}

static int relabel(struct adoption *adoption, const struct sight *sight, bool *ret_any, struct error **err)
{
    const char *revision = old_revision(sight);
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, sight->pods) {
        const char *name = kube_object_name(pod);
        if (!revision || kube_object_is_deleting(pod) || kube_object_controller(pod) ||
            str_equal(kube_object_label(pod, NEOSET_REVISION_LABEL), revision))
            continue;
        *ret_any = true;
        struct step_request *request = adoption_step(adoption, STEP_PATCH, KUBE_POD, name, pod, "relabel",
                                                     xasprintf("%s labelled with %s again", name, revision));
        request->body = json_new_object();
        cJSON *labels = json_add_object(json_add_object(request->body, "metadata"), "labels");
        json_add_str(labels, NEOSET_REVISION_LABEL, revision);
        bool again = false;
        int r = adoption_send(adoption, request, &again, err);
        if (r < 0 || again)
            return r;
    }
    return 0;
}

static int create_again(struct adoption *adoption, const struct sight *sight, struct error **err)
{
    const char *name = adoption->wanted->name;
    bool any = false;
    int r = adoption_release(adoption, sight, "NeoSet", NULL, &any, err);
    if (r == 0 && !any)
        r = drop_left_overs(adoption, sight, &any, err);
    if (r == 0 && !any)
        r = relabel(adoption, sight, &any, err);
    if (r < 0 || any)
        return r;
    struct step_request *request =
        adoption_step(adoption, STEP_CREATE_STATEFULSET, KUBE_STATEFULSET, name, NULL, "create-statefulset",
                      xasprintf("StatefulSet %s created again", name));
    request->body = statefulset_of(sight);
    bool again = false;
    return adoption_send(adoption, request, &again, err);
}

/* --- the StatefulSet is there --------------------------------------------------------------------------- */

static bool has_own_fields(const cJSON *set)
{
    const cJSON *entry = NULL;
    cJSON_ArrayForEach (entry, json_path(set, "metadata", "managedFields", NULL))
        if (str_equal(json_str(entry, "manager"), "neosetctl") &&
            str_equal(json_str(entry, "operation"), "Update") && json_path(entry, "fieldsV1", "f:spec", NULL))
            return true;
    return false;
}

/* Who set which field is as before, so that the next apply of its owner changes nothing. */
static int restore_managers(struct adoption *adoption, const struct sight *sight, struct error **err)
{
    const char *name = adoption->wanted->name;
    struct step_request *request =
        adoption_step(adoption, STEP_PATCH, KUBE_STATEFULSET, name, sight->set, "managers",
                      xasprintf("StatefulSet %s: its fields belong to whom they belonged before", name));
    request->body = json_new_object();
    json_add_item(json_add_object(request->body, "metadata"), "managedFields",
                  json_copy(json_path(keep_manifest(sight->kept), "metadata", "managedFields", NULL)));
    bool again = false;
    return adoption_send(adoption, request, &again, err);
}

static int settle_down(struct adoption *adoption, const struct sight *sight, enum turn_end *ret,
                       struct error **err)
{
    const char *name = adoption->wanted->name;
    const cJSON *managers = json_path(keep_manifest(sight->kept), "metadata", "managedFields", NULL);
    if (managers && managers->child && has_own_fields(sight->set))
        return restore_managers(adoption, sight, err);
    const char *update = json_path_str(sight->set, "status", "updateRevision", NULL);
    if (update && old_revision(sight) && !str_equal(update, old_revision(sight)))
        adoption_say(adoption,
                     "ALARM: StatefulSet %s wants revision %s, its pods run %s: they may be restarted", name,
                     update, old_revision(sight));
    char *phrase = adoption_not_quiet(adoption, sight->set, sight, update);
    if (phrase) {
        *ret = adoption_wait(adoption,
                             xasprintf("the StatefulSet's controller takes the pods over: %s", phrase));
        free(phrase);
        return 0;
    }
    CLEANUP_FREE char *same = verify_compare(adoption->seen, sight->pods);
    bool again = false;
    return adoption_send(
        adoption,
        adoption_step(
            adoption, STEP_DELETE, KUBE_REVISION, kube_object_name(sight->kept), sight->kept, "drop-kept",
            xasprintf("StatefulSet %s has them again: %s; the kept manifest is deleted", name, same)),
        &again, err);
}

static void say_back(const struct adoption *adoption)
{
    const char *name = adoption->wanted->name;
    if (adoption->has_written)
        adoption_say(adoption, "statefulset/%s has its pods again", name);
    else
        adoption_say(adoption, "statefulset/%s has its pods: there is no NeoSet %s to be taken back", name,
                     name);
}

static int there_again(struct adoption *adoption, const struct sight *sight, enum turn_end *ret,
                       struct error **err)
{
    if (sight->kept && keep_is_of(sight->kept, sight->set)) {
        /* It never went. */
        bool again = false;
        return adoption_send(adoption,
                             adoption_step(adoption, STEP_DELETE, KUBE_REVISION,
                                           kube_object_name(sight->kept), sight->kept, "drop-kept",
                                           xstrdup("the kept manifest is deleted")),
                             &again, err);
    }
    if (sight->kept)
        return settle_down(adoption, sight, ret, err);
    say_back(adoption);
    *ret = TURN_DONE;
    return 0;
}

int adoption_turn_back(struct adoption *adoption, enum turn_end *ret, struct error **err)
{
    struct sight sight;
    *ret = TURN_AGAIN;
    int r = sight_read(adoption, &sight, err);
    if (r < 0) {
        sight_done(&sight);
        return r;
    }
    if (sight.set && kube_object_is_deleting(sight.set))
        r = leaving(adoption, sight.set, &sight, ret, err);
    else if (sight.neo && kube_object_is_deleting(sight.neo))
        r = leaving(adoption, sight.neo, &sight, ret, err);
    else if (sight.neo && sight.set)
        r = drop_neoset(adoption, &sight, err);
    else if (sight.neo)
        r = let_go(adoption, &sight, ret, err);
    else if (sight.set)
        r = there_again(adoption, &sight, ret, err);
    else if (sight.kept)
        r = create_again(adoption, &sight, err);
    else
        r = nothing_kept(adoption, &sight, err);
    sight_done(&sight);
    return r;
}

/* --- the plan ------------------------------------------------------------------------------------------- */

static void show_back(const struct adoption *adoption, const struct sight *sight)
{
    const char *name = adoption->wanted->name;
    char *phrase = neo_not_quiet(adoption, sight);
    CLEANUP_FREE char *since = return_text(sight);
    struct plan_row rows[] = {
        {"neoset", xasprintf("%s, uid %s, %" PRId64 " pods", name, kube_object_uid(sight->neo),
                             json_int64_or(json_get(sight->neo, "spec"), "replicas", 1))},
        {"kept", xasprintf("ControllerRevision %s", kube_object_name(sight->kept))},
        {"changed since", *since ? xstrdup(since) : NULL},
        {"proven", xstrdup("the server takes the StatefulSet; the delete leaves the pods behind")},
        {"quiet", phrase ? xasprintf("not yet: %s", phrase) : xstrdup("yes")},
        {"1", xasprintf("delete NeoSet %s, its pods left behind", name)},
        {"2", xasprintf("delete its revisions, and label the pods with %s again",
                        old_revision(sight) ? old_revision(sight) : "(unknown)")},
        {"3", xasprintf("create StatefulSet %s from the kept manifest", name)},
        {"4", xstrdup("its controller takes the pods over; the kept manifest is deleted")},
    };
    adoption_show(adoption, rows, ARRAY_SIZE(rows));
    free(phrase);
}

int adoption_plan_back(struct adoption *adoption, struct error **err)
{
    struct sight sight;
    int r = sight_read(adoption, &sight, err);
    bool whole = r == 0 && sight.neo && !sight.set && !kube_object_is_deleting(sight.neo);
    bool is_back = r == 0 && !sight.neo && !sight.kept && sight.set && !kube_object_is_deleting(sight.set);
    if (r == 0 && !is_back && !sight.neo && !sight.kept)
        r = nothing_kept(adoption, &sight, err);
    if (whole)
        r = check(adoption, &sight, err);
    if (r == 0 && whole)
        r = prove(adoption, &sight, err);
    if (r == 0 && adoption->wanted->is_yaml && sight.kept) {
        CLEANUP_JSON cJSON *statefulset = statefulset_of(&sight);
        ctl_yaml_print(&adoption->wanted->out->text, statefulset);
    } else if (is_back) {
        adoption->is_over = true;
        if (adoption->wanted->is_dry)
            say_back(adoption);
    } else if (r == 0 && whole) {
        show_back(adoption, &sight);
    } else if (r == 0) {
        adoption_say(adoption, "the adoption of StatefulSet %s is half done: it is taken back",
                     adoption->wanted->name);
    }
    sight_done(&sight);
    return r;
}
