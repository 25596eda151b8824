/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/adopt_parts.h"

#include "base/time_text.h"
#include "cmd/neosetctl/yaml.h"
#include "kube/manifest.h"

#include <inttypes.h>

#define POLL_US (200 * US_PER_MS)
/* A StatefulSet that moves between proof and delete is looked at anew so often. */
enum { CONFLICTS_MAX = 10 };

/* --- before the StatefulSet goes ------------------------------------------------------------------------ */

static int refuse_taken(const struct adoption *adoption, const struct sight *sight, struct error **err)
{
    const char *name = adoption->wanted->name;
    const char *adopts = kube_object_annotation(sight->neo, NEOSET_ADOPTS_ANNOTATION);
    if (!adopts)
        return error_set(
            err, ERROR_REFUSED,
            "there is a NeoSet %s beside StatefulSet %s, and it is not from an adoption: delete one of "
            "them, or go on with the NeoSet alone",
            name, name);
    return error_set(
        err, ERROR_REFUSED,
        "NeoSet %s was made for another StatefulSet of this name (uid %s), somebody made it anew since "
        "(uid %s): `neosetctl adopt --undo %s` takes the NeoSet away",
        name, adopts, kube_object_uid(sight->set), name);
}

/* Everything that can be said from the objects alone. */
static int check(const struct adoption *adoption, const struct sight *sight, struct error **err)
{
    const char *name = adoption->wanted->name;
    bool is_gone = false;
    CLEANUP_FREE char *adopts = migration_adopts(sight->neo, &is_gone);
    if (sight->neo && (is_gone || !str_equal(adopts, kube_object_uid(sight->set))))
        return refuse_taken(adoption, sight, err);
    if (kube_object_is_deleting(sight->neo))
        return error_set(err, ERROR_REFUSED, "NeoSet %s is being deleted: wait until it is gone", name);
    struct migration_list refusals;
    migration_refuse(sight->set, &refusals);
    CLEANUP_FREE char *text = migration_list_text(&refusals);
    size_t count = refusals.count;
    migration_list_done(&refusals);
    if (count > 0)
        return error_set(err, ERROR_REFUSED, "StatefulSet %s cannot become a NeoSet: %s", name, text);
    return 0;
}

/* What the pods carry means what the NeoSet says: nothing will be restarted. */
static int check_revision(const struct adoption *adoption, const struct sight *sight, const cJSON *neoset,
                          struct error **err)
{
    const char *revision = json_path_str(sight->set, "status", "updateRevision", NULL);
    const cJSON *object = sight_revision(sight, revision);
    if (object && migration_means(object, neoset))
        return 0;
    return error_set(
        err, ERROR_REFUSED,
        "StatefulSet %s: the revision %s that its pods are to run %s, so that it is not known whether "
        "they would have to be restarted: is kube-controller-manager running?",
        adoption->wanted->name, revision ? revision : "(none)",
        object ? "holds another template than the set" : "is not there");
}

/* The NeoSet that would be created, as the server takes it. */
static int prove_neoset(struct adoption *adoption, const struct sight *sight, struct error **err)
{
    CLEANUP_JSON cJSON *neoset = migration_neoset(sight->set);
    CLEANUP_JSON cJSON *answered = NULL;
    if (sight->neo)
        return check_revision(adoption, sight, sight->neo, err);
    int r = adoption_try_create(adoption, KUBE_NEOSET, neoset, &answered, err);
    if (r < 0)
        return r;
    struct migration_list lost;
    migration_not_kept(neoset, answered, &lost);
    CLEANUP_FREE char *text = migration_list_text(&lost);
    size_t count = lost.count;
    migration_list_done(&lost);
    if (count > 0)
        return error_set(err, ERROR_REFUSED, "StatefulSet %s cannot become a NeoSet: %s",
                         adoption->wanted->name, text);
    return check_revision(adoption, sight, answered, err);
}

/* NULL: quiet. */
static char *set_not_quiet(const struct adoption *adoption, const struct sight *sight)
{
    return adoption_not_quiet(adoption, sight->set, sight,
                              json_path_str(sight->set, "status", "updateRevision", NULL));
}

/* --- its steps ------------------------------------------------------------------------------------------ */

static int create_neoset(struct adoption *adoption, const cJSON *statefulset, struct error **err)
{
    const char *name = adoption->wanted->name;
    struct step_request *request =
        adoption_step(adoption, STEP_CREATE_NEOSET, KUBE_NEOSET, name, NULL, "create-neoset",
                      xasprintf("NeoSet %s created, paused", name));
    request->body = migration_neoset(statefulset);
    bool again = false;
    return adoption_send(adoption, request, &again, err);
}

static int drop_kept(struct adoption *adoption, const cJSON *kept, struct error **err)
{
    bool again = false;
    return adoption_send(
        adoption,
        adoption_step(adoption, STEP_DELETE, KUBE_REVISION, kube_object_name(kept), kept, "drop-kept",
                      xasprintf("manifest %s dropped: a newer one is kept", kube_object_name(kept))),
        &again, err);
}

static int keep_statefulset(struct adoption *adoption, const cJSON *proof, const cJSON *neoset,
                            bool *ret_again, struct error **err)
{
    CLEANUP_FREE char *name = keep_name(proof);
    struct step_request *request = adoption_step(
        adoption, STEP_CREATE_REVISION, KUBE_REVISION, name, NULL, "keep",
        xasprintf("manifest of StatefulSet %s kept as ControllerRevision %s", adoption->wanted->name, name));
    request->body = migration_kept(proof, neoset);
    return adoption_send(adoption, request, ret_again, err);
}

static int orphan_delete(struct adoption *adoption, const struct sight *sight, const cJSON *proof,
                         struct error **err)
{
    const char *name = adoption->wanted->name;
    struct step_request *request =
        adoption_step(adoption, STEP_ORPHAN_DELETE, KUBE_STATEFULSET, name, proof, "orphan-delete",
                      xasprintf("StatefulSet %s deleted, its pods left behind", name));
    bool again = false;
    adoption_remember(adoption, sight->pods);
    int r = adoption_send(adoption, request, &again, err);
    if (r < 0 || !again)
        return r;
    if (++adoption->conflicts >= CONFLICTS_MAX)
        return error_set(err, ERROR_CONFLICT,
                         "StatefulSet %s keeps changing: it was looked at anew %d times; who writes to it?",
                         name, CONFLICTS_MAX);
    return 0;
}

/* Proof, kept manifest and delete, without a pause between them. A version that moves meanwhile ends it, and
 * so does an answer that takes long: the next turn drops the manifest before anything else is decided. */
static int let_go(struct adoption *adoption, const struct sight *sight, struct error **err)
{
    CLEANUP_JSON cJSON *proof = NULL;
    bool again = false;
    int r = prove_neoset(adoption, sight, err);
    if (r == 0)
        r = adoption_try_delete(adoption, KUBE_STATEFULSET, sight->set, &proof, err);
    if (r == -ERROR_CONFLICT) {
        if (err)
            error_free(STEAL(*err));
        return 0;
    }
    if (r == 0 && adoption_is_outdated(adoption, sight))
        return 0;
    if (r == 0)
        r = keep_statefulset(adoption, proof, sight->neo, &again, err);
    if (r < 0 || again || adoption_is_outdated(adoption, sight))
        return r;
    return orphan_delete(adoption, sight, proof, err);
}

static int patch_neoset(struct adoption *adoption, const struct sight *sight, cJSON *body, struct error **err)
{
    const char *name = adoption->wanted->name;
    struct step_request *request =
        adoption_step(adoption, STEP_PATCH, KUBE_NEOSET, name, sight->neo, "follow",
                      xasprintf("NeoSet %s follows a change of StatefulSet %s", name, name));
    request->body = body;
    bool again = false;
    return adoption_send(adoption, request, &again, err);
}

static int before(struct adoption *adoption, const struct sight *sight, enum turn_end *ret,
                  struct error **err)
{
    struct kube_ref ref = {KUBE_STATEFULSET, adoption->wanted->server->namespace, adoption->wanted->name};
    /* A delete of an earlier run that may still arrive: it is made impossible before anything is decided. */
    if (gateway_is_open(adoption->session.gateway, ref.resource, ref.namespace, ref.name))
        return ctl_session_settle(&adoption->session, &ref, err);
    int r = check(adoption, sight, err);
    if (r < 0)
        return r;
    if (sight->kept && keep_is_of(sight->kept, sight->set))
        return drop_kept(adoption, sight->kept, err);
    char *phrase = set_not_quiet(adoption, sight);
    if (phrase) {
        *ret = adoption_wait(adoption, phrase);
        return 0;
    }
    if (!sight->neo)
        return create_neoset(adoption, sight->set, err);
    cJSON *patch = migration_neoset_patch(sight->neo, sight->set);
    if (patch)
        return patch_neoset(adoption, sight, patch, err);
    int64_t seen = json_int64_or(json_get(sight->neo, "status"), "observedGeneration", 0);
    if (seen < kube_object_generation(sight->neo)) {
        *ret =
            adoption_wait(adoption, xasprintf("neoset-controller has not seen NeoSet %s yet (is it running?)",
                                              adoption->wanted->name));
        return 0;
    }
    return let_go(adoption, sight, err);
}

/* --- while it goes, and afterwards -----------------------------------------------------------------------
 */

static int leaving(struct adoption *adoption, const struct sight *sight, enum turn_end *ret,
                   struct error **err)
{
    const char *name = adoption->wanted->name;
    int owned = quiet_count_owned(sight->pods, kube_object_uid(sight->set));
    CLEANUP_FREE char *finalizers = kube_object_finalizers_text(sight->set);
    if (!kube_object_has_finalizer(sight->set, "orphan") && owned > 0)
        return error_set(
            err, ERROR_FAILED,
            "ALARM: StatefulSet %s is being deleted together with its pods, not by this command: %d of "
            "them still name it and may die. %s%s",
            name, owned, sight->kept ? "Its manifest is kept as ControllerRevision " : "",
            sight->kept ? kube_object_name(sight->kept) : "");
    *ret = adoption_wait(adoption,
                         xasprintf("StatefulSet %s is on its way out (finalizers: %s)", name, finalizers));
    return 0;
}

static int finish(struct adoption *adoption, const struct sight *sight, struct error **err)
{
    const char *name = adoption->wanted->name;
    CLEANUP_FREE char *same = verify_compare(adoption->seen, sight->pods);
    struct step_request *request =
        adoption_step(adoption, STEP_PATCH, KUBE_NEOSET, name, sight->neo, "finish",
                      xasprintf("NeoSet %s owns them: %s; let go", name, same));
    request->body = json_new_object();
    cJSON *annotations = json_add_object(json_add_object(request->body, "metadata"), "annotations");
    json_add_item(annotations, NEOSET_ADOPTS_ANNOTATION, cJSON_CreateNull());
    cJSON *strategy = json_add_object(json_add_object(request->body, "spec"), "updateStrategy");
    json_add_bool(strategy, "pause", false);
    bool again = false;
    return adoption_send(adoption, request, &again, err);
}

/* From now on the controller makes what is missing. */
static int note_gone(struct adoption *adoption, const struct sight *sight, const char *uid,
                     struct error **err)
{
    const char *name = adoption->wanted->name;
    CLEANUP_FREE char *value = migration_adopts_gone(uid);
    struct step_request *request =
        adoption_step(adoption, STEP_PATCH, KUBE_NEOSET, name, sight->neo, "gone",
                      xasprintf("StatefulSet %s is gone; NeoSet %s may take its pods", name, name));
    request->body = json_new_object();
    cJSON *annotations = json_add_object(json_add_object(request->body, "metadata"), "annotations");
    json_add_str(annotations, NEOSET_ADOPTS_ANNOTATION, value);
    bool again = false;
    return adoption_send(adoption, request, &again, err);
}

static int arriving(struct adoption *adoption, const struct sight *sight, enum turn_end *ret,
                    struct error **err)
{
    bool is_gone = false;
    CLEANUP_FREE char *adopts = migration_adopts(sight->neo, &is_gone);
    bool any = false;
    int r = adoption_release(adoption, sight, "StatefulSet", adopts, &any, err);
    if (r < 0 || any)
        return r;
    if (!is_gone)
        return note_gone(adoption, sight, adopts, err);
    const char *target = json_path_str(sight->neo, "status", "updateRevisionName", NULL);
    char *phrase = target ? adoption_not_quiet(adoption, sight->neo, sight, target)
                          : xstrdup("the set has no revision yet");
    if (!phrase)
        return finish(adoption, sight, err);
    const cJSON *stalled = kube_object_condition(sight->neo, "Stalled");
    const char *words = str_equal(json_str(stalled, "status"), "True") ? json_str(stalled, "message") : NULL;
    *ret = adoption_wait(adoption, xasprintf("neoset-controller takes the pods over: %s%s%s", phrase,
                                             words ? "; it says: " : "", words ? words : ""));
    free(phrase);
    return 0;
}

static int nothing_there(const struct adoption *adoption, const struct sight *sight, struct error **err)
{
    const char *name = adoption->wanted->name;
    const char *namespace = adoption->wanted->server->namespace;
    /* Its volumes grow, and nobody has made it again yet. */
    if (!sight->neo && keep_find_growing(sight->revisions, NULL, name, NULL))
        return error_set(
            err, ERROR_REFUSED,
            "StatefulSet %s in namespace %s is deleted with its pods left behind, because its "
            "volumes grow, and is to be made again: first `neosetctl continue -n %s`, then adopt it",
            name, namespace, namespace);
    if (sight->neo)
        return error_set(err, ERROR_NOT_FOUND, "no StatefulSet %s in namespace %s; there is a NeoSet %s",
                         name, namespace, name);
    return error_set(
        err, ERROR_NOT_FOUND,
        "no StatefulSet %s in namespace %s: `kubectl get statefulsets -A` lists all that you may see", name,
        namespace);
}

static void say_adopted(const struct adoption *adoption)
{
    const char *name = adoption->wanted->name;
    adoption_say(
        adoption,
        adoption->has_written
            ? "neoset/%s adopted; until its first rollout the way back is: neosetctl adopt --undo %s -n %s"
            : "neoset/%s has been adopted already; the way back is: neosetctl adopt --undo %s -n %s",
        name, name, adoption->wanted->server->namespace);
}

/* Nothing is left to do: it is the NeoSet's, and says so. */
static bool is_adopted(const struct sight *sight)
{
    return !sight->set && sight->neo && sight->kept && !kube_object_is_deleting(sight->neo) &&
           !kube_object_annotation(sight->neo, NEOSET_ADOPTS_ANNOTATION);
}

int adoption_turn_there(struct adoption *adoption, enum turn_end *ret, struct error **err)
{
    const char *name = adoption->wanted->name;
    struct sight sight;
    *ret = TURN_AGAIN;
    int r = sight_read(adoption, &sight, err);
    if (r < 0) {
        sight_done(&sight);
        return r;
    }
    if (sight.set && !kube_object_is_deleting(sight.set)) {
        r = before(adoption, &sight, ret, err);
    } else if (sight.set) {
        r = leaving(adoption, &sight, ret, err);
    } else if (sight.neo && !kube_object_is_deleting(sight.neo) &&
               kube_object_annotation(sight.neo, NEOSET_ADOPTS_ANNOTATION)) {
        r = arriving(adoption, &sight, ret, err);
    } else if (!sight.neo && sight.kept) {
        r = create_neoset(adoption, keep_manifest(sight.kept), err);
    } else if (!sight.kept && !(sight.neo && adoption->has_written)) {
        r = nothing_there(adoption, &sight, err);
    } else if (kube_object_is_deleting(sight.neo)) {
        r = error_set(err, ERROR_REFUSED,
                      "NeoSet %s is being deleted: `neosetctl adopt --undo %s` goes on with that", name,
                      name);
    } else {
        say_adopted(adoption);
        *ret = TURN_DONE;
    }
    sight_done(&sight);
    return r;
}

/* --- the plan ------------------------------------------------------------------------------------------- */

static void show_there(const struct adoption *adoption, const struct sight *sight)
{
    const char *name = adoption->wanted->name;
    const cJSON *set = sight->set;
    char *phrase = set_not_quiet(adoption, sight);
    CLEANUP_FREE char *kept = keep_name(set);
    struct migration_list notes;
    migration_notes(set, &notes);
    struct plan_row rows[16] = {
        {"statefulset", xasprintf("%s, uid %s, %" PRId64 " pods on revision %s", name, kube_object_uid(set),
                                  json_int64_or(json_get(set, "spec"), "replicas", 1),
                                  json_path_str(set, "status", "updateRevision", NULL))},
        {"proven",
         xstrdup("the server takes the NeoSet; the pods run what it says; the delete leaves them behind")},
        {"quiet", phrase ? xasprintf("not yet: %s", phrase) : xstrdup("yes")},
        {"1", sight->neo ? xasprintf("NeoSet %s is there, paused", name)
                         : xasprintf("create NeoSet %s, paused", name)},
        {"2", xasprintf("keep its manifest as ControllerRevision %s", kept)},
        {"3", xasprintf("delete StatefulSet %s, its pods left behind", name)},
        {"4", xstrdup("neoset-controller adopts pods, claims and revisions")},
        {"5", xasprintf("let NeoSet %s go", name)},
        {"way back", xasprintf("neosetctl adopt --undo %s -n %s", name, adoption->wanted->server->namespace)},
    };
    size_t count = 9;
    for (size_t i = 0; i < notes.count && count < ARRAY_SIZE(rows); i++)
        rows[count++] = (struct plan_row){"note", xstrdup(notes.items[i])};
    adoption_show(adoption, rows, count);
    migration_list_done(&notes);
    free(phrase);
}

/* The NeoSet of the adoption; the caller's. Where the StatefulSet is gone and nobody kept it: as it is there.
 */
static cJSON *neoset_of(const struct sight *sight)
{
    const cJSON *set = sight->set ? sight->set : keep_manifest(sight->kept);
    if (set)
        return migration_neoset(set);
    const cJSON *neo = sight->neo;
    cJSON *neoset = kube_manifest(KUBE_NEOSET, kube_object_namespace(neo), kube_object_name(neo));
    const cJSON *labels = json_path(neo, "metadata", "labels", NULL);
    if (labels)
        json_add_item(json_get(neoset, "metadata"), "labels", json_copy(labels));
    json_add_item(neoset, "spec", json_copy(json_get(neo, "spec")));
    return neoset;
}

/* As it will be when the adoption is over: for a repository. */
static void show_yaml(const struct adoption *adoption, cJSON *object)
{
    cJSON *metadata = json_get(object, "metadata");
    json_remove(json_get(metadata, "annotations"), NEOSET_ADOPTS_ANNOTATION);
    if (cJSON_GetArraySize(json_get(metadata, "annotations")) == 0)
        json_remove(metadata, "annotations");
    json_remove(json_path(object, "spec", "updateStrategy", NULL), "pause");
    ctl_yaml_print(&adoption->wanted->out->text, object);
    (void)out_flush(adoption->wanted->out, NULL);
}

/* In the middle of it: what is there, what comes next, and the way back, where a manifest is kept. */
static void say_begun(const struct adoption *adoption, const struct sight *sight)
{
    const char *name = adoption->wanted->name;
    const char *namespace = adoption->wanted->server->namespace;
    CLEANUP_FREE char *stands =
        sight->set ? xstrdup(keep_leaving_phrase(sight->set, sight->kept))
        : sight->neo
            ? xasprintf("the StatefulSet is gone, NeoSet %s takes its pods over", name)
            : xasprintf("the StatefulSet is gone, its pods are nobody's and run on, and NeoSet %s is not "
                        "there: it is made from the kept manifest",
                        name);
    adoption_say(adoption, "the adoption of StatefulSet %s has begun: it is gone on with", name);
    adoption_say(adoption, "  %s", stands);
    if (adoption->wanted->is_dry)
        adoption_say(adoption, "  go on: neosetctl adopt statefulset/%s -n %s", name, namespace);
    if (sight->kept)
        adoption_say(adoption, "  go back: neosetctl adopt --undo %s -n %s", name, namespace);
}

int adoption_plan_there(struct adoption *adoption, struct error **err)
{
    struct sight sight;
    CLEANUP_JSON cJSON *proof = NULL;
    int r = sight_read(adoption, &sight, err);
    /* In the middle of it: the plan was agreed on before. */
    bool is_begun = r == 0 && (!sight.set || kube_object_is_deleting(sight.set)) &&
                    (sight.kept || kube_object_annotation(sight.neo, NEOSET_ADOPTS_ANNOTATION));
    if (r == 0 && !is_begun && !sight.set)
        r = nothing_there(adoption, &sight, err);
    if (r == 0 && !is_begun)
        r = check(adoption, &sight, err);
    if (r == 0 && !is_begun)
        r = prove_neoset(adoption, &sight, err);
    if (r == 0 && !is_begun)
        r = adoption_try_delete(adoption, KUBE_STATEFULSET, sight.set, &proof, err);
    if (r == 0 && adoption->wanted->is_yaml) {
        CLEANUP_JSON cJSON *neoset = neoset_of(&sight);
        show_yaml(adoption, neoset);
    } else if (r == 0 && is_adopted(&sight)) {
        adoption->is_over = true;
        if (adoption->wanted->is_dry)
            say_adopted(adoption);
    } else if (r == 0 && is_begun) {
        say_begun(adoption, &sight);
    } else if (r == 0) {
        show_there(adoption, &sight);
    }
    sight_done(&sight);
    return r;
}

/* --- the whole ------------------------------------------------------------------------------------------ */

static int out_of_time(const struct adoption *adoption, struct error **err)
{
    const struct ctl_adopt *wanted = adoption->wanted;
    const char *why = adoption->session.is_interrupted ? "interrupted" : "out of time";
    const char *what = adoption->waits_for ? adoption->waits_for : "nothing is known to be in the way";
    if (!adoption->has_written)
        return error_set(err, ERROR_TIMED_OUT, "%s, nothing was written: %s", why, what);
    /* Whether there is a way back depends on what others did meanwhile: `continue` looks. */
    return error_set(
        err, ERROR_TIMED_OUT,
        "%s: %s; nothing is lost: `neosetctl adopt %s%s -n %s` goes on, `neosetctl continue -n %s` "
        "shows where it stands and the way back",
        why, what, wanted->goes_back ? "--undo " : "statefulset/", wanted->name, wanted->server->namespace,
        wanted->server->namespace);
}

static int run_turns(struct adoption *adoption, struct error **err)
{
    for (;;) {
        enum turn_end end = TURN_AGAIN;
        CLEANUP_ERROR struct error *own = NULL;
        if (ctl_session_is_over(&adoption->session))
            return out_of_time(adoption, err);
        int r = adoption->wanted->goes_back ? adoption_turn_back(adoption, &end, &own)
                                            : adoption_turn_there(adoption, &end, &own);
        if (r == -ERROR_TIMED_OUT && ctl_session_is_over(&adoption->session))
            return out_of_time(adoption, err);
        if (r < 0) {
            if (err)
                *err = STEAL(own);
            /* "Refused" is said of what was not begun. */
            return adoption->has_written ? -ERROR_FAILED : r;
        }
        if (end == TURN_DONE)
            return 0;
        if (end == TURN_WAIT)
            ctl_session_pause(&adoption->session, POLL_US);
    }
}

/* The plan is made without a journal: it stores nothing. */
static int plan(struct adoption *adoption, struct error **err)
{
    const struct ctl_adopt *wanted = adoption->wanted;
    struct kube_ref object = {KUBE_NEOSET, wanted->server->namespace, wanted->name};
    ctl_session_open_dry(&adoption->session, wanted->server, &object, wanted->limit_us);
    int r = -ERROR_CONFLICT;
    /* What moves between being read and the dry run is read again. */
    for (int tries = 0; r == -ERROR_CONFLICT && tries < CONFLICTS_MAX; tries++) {
        if (err)
            error_free(STEAL(*err));
        r = wanted->goes_back ? adoption_plan_back(adoption, err) : adoption_plan_there(adoption, err);
    }
    ctl_session_close(&adoption->session, "adopt", NULL, NULL);
    return r;
}

int ctl_adopt(const struct ctl_adopt *wanted, struct error **err)
{
    struct adoption adoption = {.wanted = wanted};
    struct kube_ref object = {KUBE_NEOSET, wanted->server->namespace, wanted->name};
    int r = plan(&adoption, err);
    if (r < 0 || wanted->is_dry)
        return r;
    CLEANUP_FREE char *question =
        wanted->goes_back ? xasprintf("Give the pods of NeoSet %s back to a StatefulSet?", wanted->name)
                          : xasprintf("Turn StatefulSet %s into a NeoSet?", wanted->name);
    if (!adoption.is_over && !wanted->confirm(wanted->context, question))
        return error_set(err, ERROR_REFUSED,
                         "nothing was written: it was not agreed to (--yes agrees beforehand)");
    r = ctl_session_open(&adoption.session, wanted->server, &object, wanted->limit_us, err);
    if (r == 0)
        r = run_turns(&adoption, err);
    /* Not done: it stays open in the journal, to be gone on with. */
    ctl_session_close(&adoption.session, "adopt", r == 0 ? "completed" : NULL, NULL);
    free(adoption.waits_for);
    json_delete(adoption.seen);
    return r;
}
