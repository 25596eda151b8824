/* SPDX-License-Identifier: Apache-2.0
 *
 * Until the set is deleted: which is next of the proofs (converge_prove.c), the claims (converge_claims.c)
 * and the quiet, then the kept manifest and the delete. */
#include "volume/converge_parts.h"

#include "base/plant.h"
#include "volume/quota.h"
#include "volume/recover.h"
#include "volume/verify.h"

/* An unready pod is waited for so long before it is overlooked: growing may be what heals it. */
#define HEAL_US (180 * US_PER_S)

/* --- ends ----------------------------------------------------------------------------------------------- */

static enum error_code code_of_outcome(enum volume_outcome outcome)
{
    if (outcome == VOLUME_BAD_INPUT)
        return ERROR_INVALID;
    return volume_outcome_is_refused(outcome) ? ERROR_REFUSED : ERROR_FAILED;
}

static char *done_text(const struct converge *converge)
{
    const char *told = converge->told ? converge->told : "";
    const char *colon = *told ? ": " : "";
    if (!converge->has_written)
        return xasprintf("StatefulSet %s: nothing to converge%s%s", converge->name, colon, told);
    return xasprintf("StatefulSet %s converged to %s%s%s%s%s", converge->name,
                     converge->sizes ? converge->sizes : "its sizes",
                     converge->grown > 0 ? ", claims grown" : "", converge->was_made ? ", made again" : "",
                     colon, told);
}

/* Of a step that forestalled a delete. Where a manifest is kept of a set of this name, for whomever, who
 * keeps it does that. */
static bool is_marked(const struct converge *converge)
{
    const struct converge_look *look = converge->look;
    const cJSON *revision = NULL;
    cJSON_ArrayForEach (revision, look->revisions)
        if (str_equal(kube_object_name(keep_manifest(revision)), converge->name))
            return false;
    return look->set && !converge->options.plans_only && kube_object_annotation(look->set, STEP_ANNOTATION);
}

static void wait_for_size(struct converge *converge, const cJSON *claim, int count, enum growth growth)
{
    int64_t since_us = converge->look->boot_us - converge->file_system_boot_us;
    const char *name = kube_object_name(claim);
    CLEANUP_FREE char *state = growth_state(converge, claim, growth, since_us);
    converge_wait(converge, POLL_US,
                  count == 1 ? xasprintf("claim %s does not have its size yet: %s", name, state)
                             : xasprintf("%d claims do not have their size yet; %s: %s", count, name, state));
}

void choose_done(struct converge *converge)
{
    if (is_marked(converge)) {
        converge_go(converge, CONVERGE_CLEAN);
        return;
    }
    int count = 0;
    enum growth growth = GROWTH_DONE;
    int64_t now_us = converge->look->boot_us;
    if (converge->file_system_boot_us == 0)
        converge->file_system_boot_us = now_us;
    const cJSON *claim = NULL;
    if (converge->options.waits_for_file_system && converge->look->set)
        claim = find_growing(converge, now_us - converge->file_system_boot_us, &count, &growth);
    if (!claim)
        converge_end(converge, ERROR_NONE, done_text(converge));
    else if (growth == GROWTH_INFEASIBLE)
        converge_end(converge, ERROR_FAILED, infeasible_text(converge, claim));
    else
        wait_for_size(converge, claim, count, growth);
}

/* --- which is next -------------------------------------------------------------------------------------- */

/* Our wall clock may be off, or be set meanwhile. */
int64_t converge_server_us(const struct converge *converge)
{
    return converge->server_ahead_us ? converge->look->boot_us + converge->server_ahead_us
                                     : converge->look->wall_us;
}

static char *not_quiet(const struct converge *converge, bool unready_will_do)
{
    const cJSON *set = converge->look->set;
    const cJSON *strategy = json_path(set, "spec", "updateStrategy", NULL);
    bool on_delete = str_equal(json_str(strategy, "type"), "OnDelete");
    return quiet_phrase(&(struct quiet_wish){
        .set = set,
        .pods = converge->look->pods,
        .revision = on_delete ? NULL : json_path_str(set, "status", "updateRevision", NULL),
        .partition = json_int64_or(json_get(strategy, "rollingUpdate"), "partition", 0),
        .unready_will_do = unready_will_do,
        .now_us = converge_server_us(converge)});
}

static bool is_fully_proven(const struct converge *converge)
{
    if (PLANT("grows-before-the-proof") && converge->decision.claims.count > 0)
        return true;
    return str_equal(converge->proven_uid, kube_object_uid(converge->look->set));
}

static void choose_quiet(struct converge *converge)
{
    bool is_waiting_for_ready = false;
    int64_t now_us = converge->look->boot_us;
    char *phrase = not_quiet(converge, false);
    if (phrase && converge->options.unready_will_do) {
        char *without = not_quiet(converge, true);
        is_waiting_for_ready = !without;
        free(without);
    }
    if (!is_waiting_for_ready)
        converge->unready_boot_us = 0;
    else if (converge->unready_boot_us == 0)
        converge->unready_boot_us = now_us;
    bool is_healed_enough = is_waiting_for_ready && now_us - converge->unready_boot_us >= HEAL_US;
    if (phrase && !is_healed_enough) {
        converge_wait(converge, POLL_US, phrase);
        return;
    }
    free(phrase);
    begin_proof(converge, true);
}

static void refuse_shortage(struct converge *converge, const char *shortage)
{
    converge_end(converge, ERROR_FAILED,
                 xasprintf("StatefulSet %s: %s: make room, and run it again (%s)", converge->name, shortage,
                           converge->has_written ? "what was grown stays grown" : "nothing was written"));
}

void choose_growing(struct converge *converge)
{
    const struct volume_items *claims = &converge->decision.claims;
    if (!is_fully_proven(converge)) {
        begin_proof(converge, false);
        return;
    }
    converge->claim = next_to_probe(converge);
    converge->probe_step = 0;
    CLEANUP_FREE char *shortage = quota_shortage(converge->look->quotas, claims);
    const struct volume_item *contested = find_contested(converge);
    if (contested) {
        refuse_contested(converge, contested);
    } else if (converge->claim < claims->count) {
        converge_go(converge, CONVERGE_PROBE);
    } else if (shortage) {
        refuse_shortage(converge, shortage);
    } else if (converge->options.plans_only) {
        converge_end(converge, ERROR_NONE, xstrdup(converge->account));
    } else if (claims->count > 0) {
        converge->claim = 0;
        converge_go(converge, CONVERGE_GROW);
    } else if (converge->decision.recreate) {
        choose_quiet(converge);
    } else {
        choose_done(converge);
    }
}

static void refuse(struct converge *converge)
{
    converge_end(converge, code_of_outcome(converge->decision.outcome),
                 volume_decision_text(&converge->decision));
}

/* What is wanted of the set as it is now; false: nothing. */
static bool take_desired(struct converge *converge)
{
    if (converge->has_manifest)
        return true;
    json_delete(STEAL(converge->desired));
    if (!converge->wanted_sizes)
        return false;
    converge->desired = keep_as_new(converge->look->set);
    if (!recreate_take_sizes(converge->desired, converge->wanted_sizes))
        json_delete(STEAL(converge->desired));
    return converge->desired != NULL;
}

/* false: there is no way back, and it has ended. */
static bool lead_back(struct converge *converge)
{
    char *refusal = NULL;
    recover_decide(converge->look->set, converge->desired, converge->look->claims, &converge->decision,
                   &refusal);
    if (!refusal)
        return true;
    converge_end(converge, ERROR_REFUSED, xasprintf("StatefulSet %s: %s", converge->name, refusal));
    free(refusal);
    return false;
}

static char *account_of(const struct converge *converge)
{
    if (!converge->options.recovers)
        return volume_decision_text(&converge->decision);
    return xasprintf("StatefulSet/%s/%s: back to %s; %zu claims change%s", converge->namespace,
                     converge->name, converge->sizes, converge->decision.claims.count,
                     converge->decision.recreate ? ", then it is re-created" : "");
}

void choose_before(struct converge *converge)
{
    int count = 0;
    enum growth growth = GROWTH_DONE;
    const cJSON *set = converge->look->set;
    if (!take_desired(converge)) {
        choose_done(converge);
        return;
    }
    const struct volume_decision *decision = converge_decide(converge, converge->desired);
    bool recovers = converge->options.recovers || PLANT("recovers-unasked");
    if (recovers && !lead_back(converge))
        return;
    if (decision->outcome == VOLUME_NOTHING) {
        choose_done(converge);
        return;
    }
    if (decision->outcome != VOLUME_GROW) {
        refuse(converge);
        return;
    }
    free(converge->account);
    converge->account = account_of(converge);
    CLEANUP_FREE char *sizes = recreate_sizes_text(set);
    free(converge->made_of);
    converge->made_of = xasprintf("%s (uid %s)", sizes, kube_object_uid(set));
    const cJSON *claim = find_growing(converge, 0, &count, &growth);
    bool is_led_back = converge->options.recovers && decision->claims.count > 0;
    if (claim && growth == GROWTH_INFEASIBLE && !is_led_back)
        converge_end(converge, ERROR_FAILED, infeasible_text(converge, claim));
    else if (!first_is_awaited(converge))
        choose_growing(converge);
}

/* --- the manifest and the delete ------------------------------------------------------------------------ */

static cJSON *pods_of(const struct converge *converge, const char *uid)
{
    cJSON *pods = json_new_array();
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, converge->look->pods)
        if (kube_object_is_controlled_by(pod, uid))
            json_append_item(pods, json_copy(pod));
    return pods;
}

static struct step_request *keep_step(struct converge *converge)
{
    CLEANUP_FREE char *name = keep_name(converge->manifest);
    CLEANUP_JSON cJSON *pods = pods_of(converge, converge->proof_uid);
    json_delete(converge->picture);
    converge->picture = verify_picture(pods);
    struct step_request *request = converge_step(
        converge, STEP_CREATE_REVISION, KUBE_REVISION, name, NULL,
        xasprintf("manifest of StatefulSet %s kept as ControllerRevision %s", converge->name, name));
    request->body = keep_object(converge->manifest);
    keep_put_pods(request->body, converge->picture);
    return request;
}

/* Guarded with what the proof that was kept says: a scale in between, made again from an older manifest,
 * would kill pods. */
static struct step_request *delete_step(const struct converge *converge)
{
    struct step_request *request =
        converge_step(converge, STEP_ORPHAN_DELETE, KUBE_STATEFULSET, converge->name, NULL,
                      xasprintf("StatefulSet %s deleted, its pods left behind", converge->name));
    request->uid = xstrdup(converge->proof_uid);
    request->version = xstrdup(converge->proof_version);
    return request;
}

struct step_request *step_before(struct converge *converge)
{
    if (converge->stage == CONVERGE_GROW)
        return grow_step(converge);
    return converge->stage == CONVERGE_KEEP ? keep_step(converge) : delete_step(converge);
}
