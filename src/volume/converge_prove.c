/* SPDX-License-Identifier: Apache-2.0
 *
 * The dry runs of everything that converge is going to write to the set, before it writes anything: the
 * ordinary apply, the set made again, the delete; and whether somebody else's sizes would be taken over. */
#include "volume/converge_parts.h"

#include "base/plant.h"
#include "control/preconditions.h"

/* --- what is proven ------------------------------------------------------------------------------------- */

/* Who set which field of the set, besides what its controller reports of it; the caller's. */
static cJSON *managers_of(const cJSON *metadata)
{
    cJSON *managers = json_new_array();
    const cJSON *entry = NULL;
    cJSON_ArrayForEach (entry, json_get(metadata, "managedFields"))
        if (!str_equal(json_str(entry, "subresource"), "status"))
            json_append_item(managers, json_copy(entry));
    return managers;
}

/* The caller's. */
static cJSON *lasting_metadata(const cJSON *set)
{
    const cJSON *metadata = json_get(set, "metadata");
    cJSON *lasting = json_copy(metadata);
    json_remove(lasting, "resourceVersion");
    json_set_item(lasting, "managedFields", managers_of(metadata));
    return lasting;
}

/* The proof's answer is the set of the look: nothing but its status differs. A dry run has the version of
 * what is there, and one that would change the spec another generation. */
static bool is_seen_set(const struct converge *converge, const cJSON *answered)
{
    CLEANUP_JSON cJSON *seen = lasting_metadata(converge->look->set);
    CLEANUP_JSON cJSON *proven = lasting_metadata(answered);
    return json_equal(seen, proven);
}

static bool has_other_version(const struct converge *converge, const cJSON *answered)
{
    const char *version = kube_object_version(answered);
    return version && !str_equal(version, kube_object_version(converge->look->set));
}

/* The set as it will be: as it is, with the declared sizes. Anything else that the manifest changes is for
 * the next apply: a set made again with another template would take it for the revision that its pods had,
 * and give it to those below its partition. answered: of the proof, or NULL. Where its version is another, it
 * is the set of the look with a newer status, and what the delete is guarded with. */
static void take_manifest(struct converge *converge, const cJSON *answered)
{
    const cJSON *live = converge->look->set;
    const cJSON *newest = answered && has_other_version(converge, answered) ? answered : live;
    json_delete(converge->manifest);
    converge->manifest = json_copy(newest);
    json_set_item(converge->manifest, "spec", json_copy(json_get(live, "spec")));
    recreate_put_sizes(converge->manifest, converge->desired);
    if (PLANT("template-as-declared"))
        json_set_item(json_get(converge->manifest, "spec"), "template",
                      json_copy(json_path(converge->desired, "spec", "template", NULL)));
    if (PLANT("replicas-as-declared"))
        json_set_item(json_get(converge->manifest, "spec"), "replicas",
                      json_new_int64(json_int64_or(json_get(converge->desired, "spec"), "replicas", 1)));
    str_replace(&converge->proof_uid, kube_object_uid(newest));
    str_replace(&converge->proof_version, kube_object_version(newest));
}

/* Without a manifest the live set is what will be made again: nobody is to own a field for that. */
void begin_proof(struct converge *converge, bool is_last)
{
    converge->is_last_proof = is_last;
    converge->right = 0;
    if (converge->has_manifest) {
        converge_go(converge, CONVERGE_PROVE_APPLY);
    } else {
        take_manifest(converge, NULL);
        converge_go(converge, CONVERGE_PROVE_CREATE);
    }
}

/* --- questions and answers ------------------------------------------------------------------------------ */

/* body is taken over. */
static void ask_apply(struct converge *converge, cJSON *body, struct exempt_request *ret)
{
    converge_ask(converge, ret, "PATCH", converge->name, KUBE_APPLY, body);
    ret->field_manager =
        converge->field_manager ? converge->field_manager : recreate_applier(converge->look->set);
    ret->is_forced = converge->options.is_forced;
}

void ask_proof(struct converge *converge, struct exempt_request *ret)
{
    switch (converge->stage) {
    case CONVERGE_PROVE_APPLY:
        ask_apply(converge, recreate_swapped(converge->desired, converge->look->set), ret);
        return;
    case CONVERGE_PROVE_RIGHTS:
        ask_right(converge, ret);
        return;
    case CONVERGE_PROVE_SIZES:
        ask_apply(converge, json_copy(converge->desired), ret);
        return;
    case CONVERGE_PROVE_CREATE:
        converge_ask(converge, ret, "POST", NULL, KUBE_JSON,
                     recreate_trial(converge->manifest, converge->trial_names));
        return;
    default:
        ENSURE(converge->stage == CONVERGE_PROVE_DELETE);
        converge_ask(converge, ret, "DELETE", converge->name, KUBE_JSON,
                     preconditions_orphan_delete(converge->proof_uid, converge->proof_version, true));
        ret->kind = EXEMPT_DRY_DELETE;
    }
}

/* Of what the server calls the spec as a whole, which field it is. */
static char *changed_fields(const struct converge *converge)
{
    static const char *const fields[] = {"selector", "serviceName", "podManagementPolicy"};
    CLEANUP_BUF struct buf text = BUF_INIT(256);
    const cJSON *declared = json_get(converge->desired, "spec");
    const cJSON *live = json_get(converge->look->set, "spec");
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        const cJSON *node = json_get(declared, fields[i]);
        const cJSON *was = json_get(live, fields[i]);
        if (node ? !was || !json_equal(node, was)
                 : was != NULL && strcmp(fields[i], "podManagementPolicy") != 0)
            buf_addf(&text, "%sspec.%s", text.length > 0 ? ", " : "", fields[i]);
    }
    return xstrdup(buf_text(&text));
}

static void refuse_proof(struct converge *converge, enum prove_verdict verdict,
                         const struct kube_answer *answer)
{
    CLEANUP_FREE char *fields = prove_fields(answer);
    if (verdict == PROVE_OTHER_IMMUTABLE && str_equal(fields, "spec")) {
        free(fields);
        fields = changed_fields(converge);
    }
    enum error_code code = verdict == PROVE_BAD_MANIFEST || verdict == PROVE_UNREADABLE ? ERROR_INVALID
                           : verdict == PROVE_FORBIDDEN                                 ? ERROR_FORBIDDEN
                                                                                        : ERROR_REFUSED;
    const char *hint = verdict == PROVE_MANAGERS ? " (--force-conflicts takes them over)" : "";
    CLEANUP_FREE char *permission = converge_permission_hint(converge, answer->http);
    converge_end(converge, code,
                 xasprintf("StatefulSet %s, a dry run (it %s): %s%s%s%s: %s%s", converge->name,
                           converge_stage_text(converge->stage), prove_text(verdict), *fields ? ": " : "",
                           fields, hint, answer->summary, permission));
}

/* A set that was scaled since its pods were looked at has pods that are too young for the delete; one that
 * was labelled would be made again without. Its status may move all the time. A version that moved under a
 * dry run that changes something is one that cannot be told: it is looked at anew. */
static bool has_moved(const struct converge *converge, const cJSON *answered)
{
    return has_other_version(converge, answered) && !is_seen_set(converge, answered);
}

/* Sizes that another manager applied are declared under this one's name only when that was asked for. The
 * proof of the apply has the live sizes in it, on which all agree. */
static bool asks_for_owners(const struct converge *converge)
{
    return converge->has_manifest && converge->field_manager && !converge->options.is_forced;
}

/* Before that nothing is: a server that cannot say is asked for all of it again. Where nothing has to grow,
 * the pods are next: they are judged by a look that is younger than all these questions. */
static void fully_proven(struct converge *converge)
{
    converge->later = 0;
    str_replace(&converge->proven_uid, converge->proof_uid);
    if (converge->decision.claims.count > 0)
        choose_growing(converge);
    else
        converge_wait(converge, 0, NULL);
}

/* The first proof asks for more than the one right before the delete. */
static void go_on_proving(struct converge *converge)
{
    if (has_rights_to_prove(converge))
        converge_go(converge, CONVERGE_PROVE_RIGHTS);
    else if (asks_for_owners(converge))
        converge_go(converge, CONVERGE_PROVE_SIZES);
    else
        fully_proven(converge);
}

/* How often the server could not say counts until all is proven: the questions before that one are asked, and
 * answered, each time anew. */
static void proven(struct converge *converge, const struct kube_answer *answer, int64_t boot_us)
{
    switch (converge->stage) {
    case CONVERGE_PROVE_APPLY:
        take_manifest(converge, answer->body);
        converge_go(converge, CONVERGE_PROVE_CREATE);
        return;
    case CONVERGE_PROVE_CREATE:
        if (kube_object_created_us(answer->body) > 0)
            converge->server_ahead_us = kube_object_created_us(answer->body) - boot_us;
        converge_go(converge, CONVERGE_PROVE_DELETE);
        return;
    case CONVERGE_PROVE_RIGHTS:
        converge->right++;
        go_on_proving(converge);
        return;
    case CONVERGE_PROVE_SIZES:
        fully_proven(converge);
        return;
    default:
        if (!converge->is_last_proof)
            go_on_proving(converge);
        else if (quiet_is_outdated(converge->look->pods_boot_us, boot_us, &converge->outdated))
            converge_wait(converge, 0, NULL);
        else
            converge_go(converge, CONVERGE_KEEP);
    }
}

/* The server looks for conflicts before it looks at what is immutable: any other refusal was to be expected.
 */
static enum prove_verdict judge_sizes(const struct kube_answer *answer)
{
    enum prove_verdict verdict = prove_apply(answer);
    return verdict == PROVE_MANAGERS || verdict == PROVE_LATER ? verdict : PROVE_WELL;
}

static enum prove_verdict judge_proof(const struct converge *converge, const struct kube_answer *answer)
{
    if (converge->stage == CONVERGE_PROVE_APPLY)
        return prove_apply(answer);
    if (converge->stage == CONVERGE_PROVE_RIGHTS)
        return judge_right(converge, answer);
    if (converge->stage == CONVERGE_PROVE_SIZES)
        return judge_sizes(answer);
    if (converge->stage == CONVERGE_PROVE_CREATE)
        return prove_create(answer);
    return prove_delete(answer, converge->proof_uid);
}

void take_proof(struct converge *converge, const struct kube_answer *answer, int64_t boot_us)
{
    enum prove_verdict verdict = judge_proof(converge, answer);
    bool once_more = verdict == PROVE_UNREADABLE && ++converge->unreadable < UNREADABLE_MAX;
    if (verdict == PROVE_WELL && converge->stage == CONVERGE_PROVE_APPLY && has_moved(converge, answer->body))
        verdict = PROVE_MOVED;
    if (verdict == PROVE_WELL)
        proven(converge, answer, boot_us);
    else if (verdict == PROVE_LATER || once_more)
        converge_ask_later(converge, answer);
    else if (verdict == PROVE_TAKEN && ++converge->trial_names < TRIAL_NAMES_MAX)
        converge_wait(converge, 0, NULL);
    else if ((verdict == PROVE_MOVED || verdict == PROVE_ANOTHER) && ++converge->conflicts < CONFLICTS_MAX)
        converge_wait(converge, 0, NULL);
    else
        refuse_proof(converge, verdict, answer);
}
