/* SPDX-License-Identifier: Apache-2.0
 *
 * From the delete on: the set goes, is made again from what was kept in the cluster, and takes its pods over.
 * Nothing of it needs what an earlier run remembered. */
#include "volume/converge_parts.h"

#include "base/plant.h"
#include "base/time_text.h"
#include "volume/verify.h"

#define LEAVING_POLL_US (100 * US_PER_MS)
#define ADOPTION_POLL_US (250 * US_PER_MS)

/* --- it never went -------------------------------------------------------------------------------------- */

static struct step_request *forestall_step(const struct converge *converge)
{
    struct step_request *request = converge_step(
        converge, STEP_PATCH, KUBE_STATEFULSET, converge->name, converge->object,
        xasprintf("a delete of StatefulSet %s that may be under way is made impossible", converge->name));
    request->body = json_new_object();
    return request;
}

/* --- on its way out ------------------------------------------------------------------------------------- */

/* Somebody scales the set that is going: the server says 200, and the set that is made again must know. */
static bool is_scaled_meanwhile(const cJSON *kept, const cJSON *set)
{
    CLEANUP_JSON cJSON *again = keep_recreation(kept);
    if (PLANT("scaling-on-its-way-out-is-lost"))
        return false;
    return json_int64_or(json_get(again, "spec"), "replicas", 1) !=
           json_int64_or(json_get(set, "spec"), "replicas", 1);
}

static bool anything_names(const struct converge *converge, const char *uid)
{
    const struct converge_look *look = converge->look;
    return quiet_count_owned(look->pods, uid) > 0 || quiet_count_owned(look->claims, uid) > 0;
}

void choose_leaving(struct converge *converge)
{
    const cJSON *set = converge->look->set;
    const char *name = converge->name;
    bool is_orphaning = kube_object_has_finalizer(set, "orphan");
    CLEANUP_FREE char *finalizers = kube_object_finalizers_text(set);
    if (!is_orphaning && anything_names(converge, kube_object_uid(set))) {
        converge_end(
            converge, ERROR_FAILED,
            xasprintf("ALARM: StatefulSet %s is being deleted together with its pods, not by this command: "
                      "they still name it and may die. %s%s",
                      name, converge->kept ? "Its manifest is kept as ControllerRevision " : "",
                      converge->kept ? kube_object_name(converge->kept) : ""));
        return;
    }
    if (converge->options.plans_only) {
        converge_end(converge, ERROR_FAILED,
                     xasprintf("StatefulSet %s is on its way out (finalizers: %s)", name, finalizers));
        return;
    }
    if (converge->kept && keep_is_of(converge->kept, set) && is_scaled_meanwhile(converge->kept, set)) {
        converge->object = converge->kept;
        converge_go(converge, CONVERGE_NOTE);
        return;
    }
    converge_wait(converge, LEAVING_POLL_US,
                  xasprintf("StatefulSet %s is on its way out (finalizers: %s)", name, finalizers));
}

static struct step_request *note_step(const struct converge *converge)
{
    int64_t replicas = json_int64_or(json_get(converge->look->set, "spec"), "replicas", 1);
    struct step_request *request = converge_step(
        converge, STEP_PATCH, KUBE_REVISION, kube_object_name(converge->object), converge->object,
        xasprintf("StatefulSet %s was scaled to %" PRId64 " meanwhile: noted", converge->name, replicas));
    CLEANUP_FREE char *text = xasprintf("{\"replicas\":%" PRId64 "}", replicas);
    request->body = json_new_object();
    json_add_str(json_add_object(json_add_object(request->body, "metadata"), "annotations"), KEEP_RETURN,
                 text);
    return request;
}

/* --- gone ----------------------------------------------------------------------------------------------- */

static const char *kept_uid(const struct converge *converge)
{
    return kube_object_label(converge->kept, KEEP_LABEL);
}

/* A pod that names a set that is gone is let go first. */
static bool choose_release(struct converge *converge)
{
    converge->object = verify_find_dead_owner(converge->look->pods, "StatefulSet", converge->name,
                                              kept_uid(converge), &converge->owner_uid);
    if (converge->object)
        converge_go(converge, CONVERGE_RELEASE);
    return converge->object != NULL;
}

static struct step_request *release_step(const struct converge *converge)
{
    const char *name = kube_object_name(converge->object);
    struct step_request *request =
        converge_step(converge, STEP_RELEASE, KUBE_POD, name, converge->object,
                      xasprintf("%s still named the StatefulSet that is gone: it names it no more", name));
    request->body = verify_release_patch(converge->owner_uid);
    return request;
}

static void take_kept(struct converge *converge)
{
    const cJSON *manifest = keep_manifest(converge->kept);
    if (!converge->sizes)
        converge->sizes = recreate_sizes_text(manifest);
    if (!converge->picture)
        converge->picture = keep_pods(converge->kept);
}

void choose_gap(struct converge *converge)
{
    if (!converge->kept || (!converge->went && PLANT("a-gap-of-others-is-left"))) {
        converge_end(
            converge, converge->went ? ERROR_FAILED : ERROR_NONE,
            converge->went
                ? xasprintf("ALARM: StatefulSet %s is gone, and so is its kept manifest: somebody deleted "
                            "it. Apply the manifest of StatefulSet %s again, with as many replicas as it has "
                            "pods",
                            converge->name, converge->name)
                : xasprintf("there is no StatefulSet %s in namespace %s: nothing to converge", converge->name,
                            converge->namespace));
        return;
    }
    take_kept(converge);
    if (converge->options.plans_only)
        converge_end(
            converge, ERROR_FAILED,
            xasprintf(
                "StatefulSet %s is gone and not made again yet: `neosetctl continue -n %s` goes on with it",
                converge->name, converge->namespace));
    else if (!choose_release(converge))
        converge_go(converge, CONVERGE_MAKE);
}

/* An owner that is gone would have the set collected, and its pods with it. */
static void drop_gone_owners(cJSON *body, const cJSON *gone_owners)
{
    cJSON *owners = json_path(body, "metadata", "ownerReferences", NULL);
    const cJSON *gone = NULL;
    cJSON_ArrayForEach (gone, gone_owners) {
        cJSON *owner = owners ? owners->child : NULL;
        while (owner) {
            cJSON *next = owner->next;
            if (cJSON_IsString(gone) && str_equal(json_str(owner, "uid"), gone->valuestring))
                cJSON_Delete(cJSON_DetachItemViaPointer(owners, owner));
            owner = next;
        }
    }
    if (owners && !owners->child)
        json_remove(json_get(body, "metadata"), "ownerReferences");
}

static struct step_request *make_step(struct converge *converge)
{
    const char *missing = NULL;
    cJSON *body = recreate_body(converge->kept, converge->look->revisions, &missing);
    if (!body) {
        /* Better a set that would update a pod that is lost below the partition than none. */
        body = keep_recreation(converge->kept);
        converge_note(converge,
                      "revision %s is gone: pods that are lost below the partition come back on the newest",
                      missing);
    }
    drop_gone_owners(body, converge->look->gone_owners);
    if (converge->has_manifest)
        recreate_raise_sizes(body, converge->desired);
    struct step_request *request =
        converge_step(converge, STEP_CREATE_STATEFULSET, KUBE_STATEFULSET, converge->name, NULL,
                      xasprintf("StatefulSet %s made again", converge->name));
    request->body = body;
    return request;
}

/* --- there again ---------------------------------------------------------------------------------------- */

static struct step_request *drop_step(const struct converge *converge)
{
    return converge_step(converge, STEP_DELETE, KUBE_REVISION, kube_object_name(converge->object),
                         converge->object,
                         xasprintf("kept manifest %s dropped", kube_object_name(converge->object)));
}

static struct step_request *second_step(const struct converge *converge)
{
    struct step_request *request = converge_step(
        converge, STEP_RESTORE_TEMPLATE, KUBE_STATEFULSET, converge->name, converge->look->set,
        xasprintf("StatefulSet %s: its newest template and its partition are back", converge->name));
    request->body = recreate_second(converge->look->set, converge->kept, converge->look->revisions);
    return request;
}

static struct step_request *managers_step(const struct converge *converge)
{
    struct step_request *request = converge_step(
        converge, STEP_RESTORE_MANAGERS, KUBE_STATEFULSET, converge->name, converge->look->set,
        xasprintf("StatefulSet %s: its fields belong to whom they belonged before", converge->name));
    request->body = recreate_managers(converge->kept);
    return request;
}

static struct step_request *clean_step(const struct converge *converge)
{
    struct step_request *request =
        converge_step(converge, STEP_RESTORE_MANAGERS, KUBE_STATEFULSET, converge->name, converge->look->set,
                      xasprintf("StatefulSet %s: the mark of a step is taken off", converge->name));
    request->body = recreate_clean(converge->look->set);
    return request;
}

static bool is_seen(const cJSON *set)
{
    return json_int64_or(json_get(set, "status"), "observedGeneration", 0) >= kube_object_generation(set) &&
           json_path_str(set, "status", "updateRevision", NULL);
}

/* A pod of before that is alive, and not the new set's; NULL: none. */
static const cJSON *find_stray(const struct converge *converge)
{
    const cJSON *pod = NULL;
    const char *uid = kube_object_uid(converge->look->set);
    cJSON_ArrayForEach (pod, converge->look->pods) {
        const char *name = kube_object_name(pod);
        const cJSON *before = name ? json_get(converge->picture, name) : NULL;
        if (before && !kube_object_is_deleting(pod) &&
            str_equal(json_str(before, "uid"), kube_object_uid(pod)) &&
            !kube_object_is_controlled_by(pod, uid))
            return pod;
    }
    return NULL;
}

/* What the new set's controller has not done yet; the caller's. NULL: nothing. */
static char *not_adopted(const struct converge *converge)
{
    const cJSON *set = converge->look->set;
    const cJSON *stray = find_stray(converge);
    if (PLANT("adoption-is-not-awaited"))
        return NULL;
    if (!is_seen(set))
        return xasprintf("the controller of StatefulSets has not seen %s yet", converge->name);
    if (stray)
        return xasprintf("StatefulSet %s has not taken %s over yet", converge->name, kube_object_name(stray));
    const char *revision = json_path_str(set, "status", "updateRevision", NULL);
    const cJSON *object = kube_object_find(converge->look->revisions, revision);
    if (object && !kube_object_is_controlled_by(object, kube_object_uid(set)))
        return xasprintf("StatefulSet %s has not taken revision %s over yet", converge->name, revision);
    if (quiet_count_owned(converge->look->claims, kept_uid(converge)) > 0)
        return xasprintf("claims still name the StatefulSet %s that is gone", converge->name);
    return NULL;
}

/* A claim that a pod made while the old template was there. */
static const struct volume_item *find_lagging(const struct converge *converge)
{
    const struct volume_items *lagging = &converge->decision.lagging;
    for (size_t i = 0; i < lagging->count; i++)
        if (!json_get(converge->refused_claims, lagging->items[i].name))
            return &lagging->items[i];
    return NULL;
}

static struct step_request *catch_up_step(const struct converge *converge)
{
    const struct volume_item *claim = find_lagging(converge);
    ENSURE(claim);
    struct step_request *request = converge_step(converge, STEP_GROW_CLAIM, KUBE_CLAIM, claim->name,
                                                 kube_object_find(converge->look->claims, claim->name),
                                                 xasprintf("claim %s, made meanwhile: %s -> %s", claim->name,
                                                           claim->from ? claim->from : "nothing", claim->to));
    request->body = growth_patch(claim->to);
    return request;
}

static void tell_pods(struct converge *converge)
{
    const char *uid = kube_object_uid(converge->look->set);
    CLEANUP_JSON cJSON *pods = json_new_array();
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, converge->look->pods)
        if (kube_object_is_controlled_by(pod, uid) && !kube_object_is_deleting(pod))
            json_append_item(pods, json_copy(pod));
    CLEANUP_FREE char *same = verify_compare(converge->picture, pods);
    converge_note(converge, "%s", same);
}

/* What was begun is; is it what this run wants, too? File systems are waited for by looking. */
static bool is_all_that_is_wanted(struct converge *converge)
{
    if (converge->options.waits_for_file_system || (!converge->has_manifest && converge->wanted_sizes))
        return false;
    return !converge->has_manifest || converge_decide(converge, converge->desired)->outcome == VOLUME_NOTHING;
}

/* Of the claims that still lag, the first that may not grow, and why; what became of others since does not
 * matter. NULL: there is none. The caller's. */
static char *lagging_text(const struct converge *converge)
{
    const struct volume_items *lagging = &converge->decision.lagging;
    const char *first = NULL;
    int others = 0;
    for (size_t i = 0; i < lagging->count; i++) {
        if (!json_get(converge->refused_claims, lagging->items[i].name))
            continue;
        others += first != NULL;
        first = first ? first : lagging->items[i].name;
    }
    if (!first)
        return NULL;
    CLEANUP_FREE char *more = others > 0 ? xasprintf(" and %d more", others) : xstrdup("");
    return xasprintf("claim %s%s may not grow: %s", first, more, json_str(converge->refused_claims, first));
}

/* What is kept stays: it says to whoever comes next that this is not done. Whoever makes abandoned sets again
 * has nobody to say so to, and is done when the set is there. */
static bool is_refused_lagging(struct converge *converge)
{
    CLEANUP_FREE char *text = lagging_text(converge);
    if (!text)
        return false;
    if (converge->options.never_deletes) {
        converge_note(converge, "%s", text);
        return false;
    }
    converge_end(
        converge, ERROR_FAILED,
        xasprintf("StatefulSet %s has its sizes, and %s: mend that, and run it again", converge->name, text));
    return true;
}

/* What only what is kept knows, and what the create could not bring: the newest template of a canary, and
 * whose the fields are. True: there is something of it to do. */
static bool choose_restoring(struct converge *converge)
{
    const cJSON *set = converge->look->set;
    const cJSON *kept = converge->kept;
    bool is_half = recreate_is_half(set, kept);
    converge->object = set;
    if (is_half && !(is_seen(set) && json_path_str(set, "status", "currentRevision", NULL)))
        converge_wait(converge, ADOPTION_POLL_US,
                      xasprintf("the controller of StatefulSets has not seen %s yet", converge->name));
    else if (is_half)
        converge_go(converge, CONVERGE_SECOND);
    else if (recreate_needs_managers(set, kept))
        converge_go(converge, CONVERGE_MANAGERS);
    else
        return false;
    return true;
}

/* The set has the declared sizes: whoever made it, it is completed and seen to. */
static void choose_completing(struct converge *converge)
{
    const cJSON *kept = converge->kept;
    if (choose_restoring(converge) || choose_release(converge))
        return;
    const struct volume_item *lagging = find_lagging(converge);
    while (lagging && yields_lagging(converge, lagging))
        lagging = find_lagging(converge);
    if (lagging && kube_object_find(converge->look->claims, lagging->name)) {
        converge->object = kube_object_find(converge->look->claims, lagging->name);
        converge_go(converge, CONVERGE_CATCH_UP);
        return;
    }
    char *phrase = not_adopted(converge);
    if (phrase) {
        converge_wait(converge, ADOPTION_POLL_US, phrase);
        return;
    }
    if (is_refused_lagging(converge))
        return;
    tell_pods(converge);
    converge->is_complete = is_all_that_is_wanted(converge);
    converge->object = kept;
    converge_go(converge, CONVERGE_DROP);
}

/* Somebody made it again with the old sizes: all begins anew, with what was wanted. */
static void start_over(struct converge *converge)
{
    if (converge->options.never_deletes) {
        converge->object = converge->kept;
        converge->code = ERROR_NONE;
        converge->why = xasprintf(
            "StatefulSet %s was made again with its old sizes by somebody else: it stays so", converge->name);
        converge_go(converge, CONVERGE_DROP);
        return;
    }
    if (++converge->restarts > RESTARTS_MAX) {
        converge_end(
            converge, ERROR_FAILED,
            xasprintf(
                "StatefulSet %s was made again with its old sizes %d times by somebody else (its uid is "
                "now %s): who does that?",
                converge->name, RESTARTS_MAX, kube_object_uid(converge->look->set)));
        return;
    }
    if (!converge->has_manifest && !converge->wanted_sizes)
        converge->wanted_sizes = recreate_sizes_text(keep_manifest(converge->kept));
    converge->object = converge->kept;
    converge_go(converge, CONVERGE_DROP);
}

void choose_after(struct converge *converge)
{
    take_kept(converge);
    if (converge->options.plans_only) {
        converge_end(converge, ERROR_FAILED,
                     xasprintf("StatefulSet %s was made again and not looked after yet: `neosetctl continue "
                               "-n %s` goes on with it",
                               converge->name, converge->namespace));
        return;
    }
    /* A command made this set, be it from a manifest that was kept before this one (its create was long on
     * its way): whatever sizes it has, nothing that is kept may go before the set is whole. */
    if (kube_object_annotation(converge->look->set, STEP_ANNOTATION) && choose_restoring(converge))
        return;
    /* What was begun is ended first; what is wanted besides comes when nothing is kept any more. */
    CLEANUP_JSON cJSON *begun = keep_recreation(converge->kept);
    recreate_raise_sizes(begun, converge->look->set);
    const struct volume_decision *decision = converge_decide(converge, begun);
    if (decision->outcome == VOLUME_NOTHING) {
        choose_completing(converge);
    } else if (decision->outcome == VOLUME_GROW || decision->outcome == VOLUME_NOT_BOUND) {
        start_over(converge);
    } else {
        converge->object = converge->kept;
        converge->code = ERROR_FAILED;
        free(converge->why);
        converge->why = volume_decision_text(decision);
        converge_go(converge, CONVERGE_DROP);
    }
}

struct step_request *step_after(struct converge *converge)
{
    switch (converge->stage) {
    case CONVERGE_FORESTALL:
        return forestall_step(converge);
    case CONVERGE_CLEAN:
        return clean_step(converge);
    case CONVERGE_NOTE:
        return note_step(converge);
    case CONVERGE_RELEASE:
        return release_step(converge);
    case CONVERGE_MAKE:
        return make_step(converge);
    case CONVERGE_SECOND:
        return second_step(converge);
    case CONVERGE_MANAGERS:
        return managers_step(converge);
    case CONVERGE_CATCH_UP:
        return catch_up_step(converge);
    default:
        ENSURE(converge->stage == CONVERGE_DROP);
        return drop_step(converge);
    }
}
