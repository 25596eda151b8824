/* SPDX-License-Identifier: Apache-2.0
 *
 * Until the set is deleted: the proofs, the claims, the quiet, the kept manifest, the delete. */
#include "volume/converge_parts.h"

#include "base/plant.h"
#include "base/time_text.h"
#include "control/preconditions.h"
#include "volume/probe.h"
#include "volume/prove.h"
#include "volume/quiet.h"
#include "volume/quota.h"
#include "volume/recover.h"
#include "volume/verify.h"

#define POLL_US (500 * US_PER_MS)
/* The first answer of a class's storage controller is awaited for so long (volume.md, Converge 4). */
#define FIRST_ANSWER_US (30 * US_PER_S)
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

/* A pod of the set may use the claim now. */
static bool is_used(const cJSON *set, const cJSON *claim)
{
    const cJSON *spec = json_get(set, "spec");
    int64_t start = json_int64_or(json_get(spec, "ordinals"), "start", 0);
    int64_t index = strtoll(strrchr(kube_object_name(claim), '-') + 1, NULL, 10) - start;
    return index >= 0 && index < json_int64_or(spec, "replicas", 1);
}

/* It has what it asks for, or will have it when a pod uses it: without a volume it gets one of the right
 * size, and the file system of one that no pod uses grows when one does. */
static bool is_as_large_as_it_gets(const cJSON *set, const cJSON *claim, enum growth growth)
{
    bool is_bound = str_equal(json_path_str(claim, "status", "phase", NULL), "Bound");
    return !is_bound || growth == GROWTH_DONE || (growth == GROWTH_NODE && !is_used(set, claim));
}

/* The first of the set's claims that has not what it asks for; NULL: all have. *ret_count: how many. */
static const cJSON *find_growing(const struct converge *converge, int64_t since_us, int *ret_count,
                                 enum growth *ret)
{
    const cJSON *found = NULL;
    const cJSON *claim = NULL;
    *ret_count = 0;
    cJSON_ArrayForEach (claim, converge->look->claims) {
        if (kube_object_is_deleting(claim) || !volume_is_claim_of(claim, converge->look->set))
            continue;
        enum growth growth = growth_of(claim, since_us);
        if (is_as_large_as_it_gets(converge->look->set, claim, growth))
            continue;
        (*ret_count)++;
        if (!found || growth == GROWTH_INFEASIBLE) {
            found = claim;
            *ret = growth;
        }
    }
    return found;
}

static char *infeasible_text(const struct converge *converge, const cJSON *claim)
{
    const char *capacity = json_path_str(claim, "status", "capacity", "storage", NULL);
    return xasprintf(
        "infeasible: claim %s asks for %s and has %s: its storage cannot become that large. StatefulSet "
        "%s is as it was. Declare a size that is possible, above %s, and lead the claims back with: "
        "neosetctl resize recover -n %s -f FILE",
        kube_object_name(claim), growth_request(claim), capacity ? capacity : "less", converge->name,
        capacity ? capacity : "what it has", converge->namespace);
}

static char *growing_text(const cJSON *claim, int count, enum growth growth)
{
    const char *name = kube_object_name(claim), *state = growth_text(growth);
    if (count == 1)
        return xasprintf("claim %s does not have its size yet: %s", name, state);
    return xasprintf("%d claims do not have their size yet; %s: %s", count, name, state);
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
        converge_wait(converge, POLL_US, growing_text(claim, count, growth));
}

/* --- which is next -------------------------------------------------------------------------------------- */

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
        .now_us = converge->look->wall_us + converge->ahead_us});
}

/* The claims that this run grew first: has their class's storage controller said what it makes of it? */
static bool first_is_awaited(struct converge *converge)
{
    if (!converge->first_claim)
        return false;
    int64_t waited_us = converge->look->boot_us - converge->first_boot_us;
    const cJSON *claim = kube_object_find(converge->look->claims, converge->first_claim);
    enum growth growth = claim ? growth_of(claim, waited_us) : GROWTH_DONE;
    if (!growth_is_answered(growth) && waited_us < FIRST_ANSWER_US) {
        converge_wait(
            converge, POLL_US,
            xasprintf("claim %s, the first of its class: %s", converge->first_claim, growth_text(growth)));
        return true;
    }
    json_set_item(converge->answered, converge->first_class, json_new_int64(1));
    free(STEAL(converge->first_claim));
    free(STEAL(converge->first_class));
    return false;
}

static bool is_probed(const struct converge *converge, const struct volume_item *claim)
{
    return str_equal(json_str(converge->probed, claim->name), claim->to);
}

/* The next that is not probed, or count. */
static size_t next_to_probe(const struct converge *converge)
{
    const struct volume_items *claims = &converge->decision.claims;
    size_t i = 0;
    while (i < claims->count && is_probed(converge, &claims->items[i]))
        i++;
    return i;
}

static bool is_fully_proven(const struct converge *converge)
{
    if (PLANT("grows-before-the-proof") && converge->decision.claims.count > 0)
        return true;
    return str_equal(converge->proven_uid, kube_object_uid(converge->look->set));
}

/* The set as it will be: what the server makes of the manifest, with the declared sizes. */
static void take_manifest(struct converge *converge, const cJSON *answered)
{
    json_delete(converge->manifest);
    converge->manifest = json_copy(answered);
    recreate_put_sizes(converge->manifest, converge->desired);
    if (PLANT("template-as-declared"))
        json_set_item(json_get(converge->manifest, "spec"), "template",
                      json_copy(json_path(converge->desired, "spec", "template", NULL)));
    if (PLANT("replicas-as-declared"))
        json_set_item(json_get(converge->manifest, "spec"), "replicas",
                      json_new_int64(json_int64_or(json_get(converge->desired, "spec"), "replicas", 1)));
    str_replace(&converge->proof_uid, kube_object_uid(answered));
    str_replace(&converge->proof_version, kube_object_version(answered));
}

/* Without a manifest the live set is what will be made again: nobody is to own a field for that. */
static void begin_proof(struct converge *converge, bool is_last)
{
    converge->is_last_proof = is_last;
    if (converge->has_manifest) {
        converge_go(converge, CONVERGE_PROVE_APPLY);
    } else {
        take_manifest(converge, converge->look->set);
        converge_go(converge, CONVERGE_PROVE_CREATE);
    }
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

/* What the decision demands, with this look. */
static void choose_growing(struct converge *converge)
{
    const struct volume_items *claims = &converge->decision.claims;
    if (!is_fully_proven(converge)) {
        begin_proof(converge, false);
        return;
    }
    converge->claim = next_to_probe(converge);
    converge->probe_step = 0;
    CLEANUP_FREE char *shortage = quota_shortage(converge->look->quotas, claims);
    if (converge->claim < claims->count) {
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

/* --- the proofs ----------------------------------------------------------------------------------------- */

static void ask(struct converge *converge, struct exempt_request *ret, const char *method, const char *name,
                const char *content_type, cJSON *body)
{
    json_delete(converge->body);
    converge->body = body;
    str_replace(&converge->ask_name, name);
    *ret = (struct exempt_request){.kind = EXEMPT_DRY_RUN,
                                   .method = method,
                                   .resource = KUBE_STATEFULSET,
                                   .namespace = converge->namespace,
                                   .name = converge->ask_name,
                                   .content_type = content_type,
                                   .body = converge->body};
}

void ask_proof(struct converge *converge, struct exempt_request *ret)
{
    switch (converge->stage) {
    case CONVERGE_PROVE_APPLY:
        ask(converge, ret, "PATCH", converge->name, KUBE_APPLY,
            recreate_swapped(converge->desired, converge->look->set));
        ret->field_manager =
            converge->field_manager ? converge->field_manager : recreate_applier(converge->look->set);
        ret->is_forced = converge->options.is_forced;
        return;
    case CONVERGE_PROVE_CREATE:
        ask(converge, ret, "POST", NULL, KUBE_JSON,
            recreate_trial(converge->manifest, converge->trial_names));
        return;
    default:
        ENSURE(converge->stage == CONVERGE_PROVE_DELETE);
        ask(converge, ret, "DELETE", converge->name, KUBE_JSON,
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

/* A set that was scaled since its pods were looked at has pods that are too young for the delete. Its status
 * may move all the time: where its generation is the same, nobody has changed what it wants. */
static bool has_moved(const struct converge *converge, const cJSON *answered)
{
    const cJSON *seen = converge->look->set;
    return converge->is_last_proof && !str_equal(kube_object_version(answered), kube_object_version(seen)) &&
           kube_object_generation(answered) != kube_object_generation(seen);
}

static void proven(struct converge *converge, const struct kube_answer *answer, int64_t wall_us)
{
    converge->later = 0;
    switch (converge->stage) {
    case CONVERGE_PROVE_APPLY:
        take_manifest(converge, answer->body);
        converge_go(converge, CONVERGE_PROVE_CREATE);
        return;
    case CONVERGE_PROVE_CREATE:
        if (kube_object_created_us(answer->body) > 0)
            converge->ahead_us = kube_object_created_us(answer->body) - wall_us;
        converge_go(converge, CONVERGE_PROVE_DELETE);
        return;
    default:
        str_replace(&converge->proven_uid, converge->proof_uid);
        if (converge->is_last_proof)
            converge_go(converge, CONVERGE_KEEP);
        else
            choose_growing(converge);
    }
}

static enum prove_verdict judge_proof(const struct converge *converge, const struct kube_answer *answer)
{
    if (converge->stage == CONVERGE_PROVE_APPLY)
        return prove_apply(answer);
    if (converge->stage == CONVERGE_PROVE_CREATE)
        return prove_create(answer);
    return prove_delete(answer, converge->proof_uid);
}

void take_proof(struct converge *converge, const struct kube_answer *answer, int64_t wall_us)
{
    enum prove_verdict verdict = judge_proof(converge, answer);
    bool once_more = verdict == PROVE_UNREADABLE && ++converge->unreadable < UNREADABLE_MAX;
    if (verdict == PROVE_WELL && converge->stage == CONVERGE_PROVE_APPLY && has_moved(converge, answer->body))
        verdict = PROVE_MOVED;
    if (verdict == PROVE_WELL)
        proven(converge, answer, wall_us);
    else if (verdict == PROVE_LATER || once_more)
        converge_ask_later(converge, answer);
    else if (verdict == PROVE_TAKEN && ++converge->trial_names < TRIAL_NAMES_MAX)
        converge_wait(converge, 0, NULL);
    else if ((verdict == PROVE_MOVED || verdict == PROVE_ANOTHER) && ++converge->conflicts < CONFLICTS_MAX)
        converge_wait(converge, 0, NULL);
    else
        refuse_proof(converge, verdict, answer);
}

/* --- the claims ----------------------------------------------------------------------------------------- */

static const struct volume_item *claim_now(const struct converge *converge)
{
    ENSURE(converge->claim < converge->decision.claims.count);
    return &converge->decision.claims.items[converge->claim];
}

/* "1 byte more" than from, exactly; the caller's. */
static char *one_byte_more(const struct volume_item *claim)
{
    struct quantity more = claim->from_size;
    more.nano += 1000000000;
    more.format = QUANTITY_DECIMAL;
    return quantity_exact_text(&more);
}

void ask_probe(struct converge *converge, struct exempt_request *ret)
{
    const struct volume_item *claim = claim_now(converge);
    CLEANUP_FREE char *more = converge->probe_step == 2 ? one_byte_more(claim) : NULL;
    const char *size = more ? more : converge->probe_step == 1 && claim->from ? claim->from : claim->to;
    cJSON *body = growth_patch(size);
    if (claim->uid)
        json_set_str(json_ensure_object(body, "metadata"), "uid", claim->uid);
    ask(converge, ret, "PATCH", claim->name, KUBE_MERGE, body);
    ret->resource = KUBE_CLAIM;
}

static void refuse_probe(struct converge *converge, enum probe_verdict verdict, const char *words)
{
    const struct volume_item *claim = claim_now(converge);
    enum error_code code = verdict == PROBE_PERMISSION ? ERROR_FORBIDDEN
                           : verdict == PROBE_BAD_SIZE ? ERROR_INVALID
                                                       : ERROR_FAILED;
    const char *written = converge->has_written ? "what was grown stays grown" : "nothing was written";
    converge_end(converge, code,
                 xasprintf("StatefulSet %s: claim %s cannot grow from %s to %s: %s: %s (%s)", converge->name,
                           claim->name, claim->from ? claim->from : "nothing", claim->to, probe_text(verdict),
                           words, written));
}

void take_probe(struct converge *converge, const struct kube_answer *answer)
{
    enum probe_verdict verdict = probe_judge(answer);
    if (verdict == PROBE_LATER) {
        converge_ask_later(converge, answer);
    } else if (converge->probe_step == 1) {
        converge->probe_same = answer->http;
        converge->probe_step = 2;
    } else if (converge->probe_step == 2) {
        refuse_probe(converge, probe_why(converge->probe_same, answer->http, converge->look->classes != NULL),
                     converge->probe_words);
    } else if (verdict == PROBE_REFUSED) {
        str_replace(&converge->probe_words, answer->summary);
        converge->probe_step = 1;
    } else if (verdict == PROBE_WELL) {
        json_set_str(converge->probed, claim_now(converge)->name, claim_now(converge)->to);
        choose_growing(converge);
    } else if (verdict == PROBE_MOVED && ++converge->conflicts < CONFLICTS_MAX) {
        converge_wait(converge, 0, NULL);
    } else {
        refuse_probe(converge, verdict, answer->summary);
    }
}

/* One after the other; of each class the first alone, until its storage controller has answered. */
void claim_grown(struct converge *converge)
{
    const struct volume_item *claim = claim_now(converge);
    converge->grown++;
    const char *class = claim->class ? claim->class : "";
    if (!json_get(converge->answered, class)) {
        str_replace(&converge->first_claim, claim->name);
        str_replace(&converge->first_class, class);
        converge->first_boot_us = converge->look->boot_us;
        converge_wait(converge, 0, NULL);
    } else if (++converge->claim == converge->decision.claims.count) {
        converge_wait(converge, 0, NULL);
    }
}

/* Each probe can pass and the sum not: a quota. */
void claim_rejected(struct converge *converge, const struct converge_outcome *outcome)
{
    const char *words = outcome->summary ? outcome->summary : "";
    if (converge->stage == CONVERGE_CATCH_UP) {
        const char *name = kube_object_name(converge->object);
        json_set_str(converge->refused_claims, name, words);
        converge_note(converge, "claim %s was made meanwhile and may not grow: %s", name, words);
        converge_wait(converge, 0, NULL);
        return;
    }
    const struct volume_item *claim = claim_now(converge);
    converge_end(
        converge, ERROR_FAILED,
        xasprintf(
            "StatefulSet %s: claim %s may not grow from %s to %s although its dry run was well: %s. A "
            "quota may have no room for all of them, or its storage class lets no volume grow any more. %d "
            "claims are grown and stay so; StatefulSet %s is as it was: mend that, and run it again",
            converge->name, claim->name, claim->from ? claim->from : "nothing", claim->to, words,
            converge->grown, converge->name));
}

static struct step_request *grow_step(const struct converge *converge)
{
    const struct volume_item *claim = claim_now(converge);
    struct step_request *request = converge_step(
        converge, STEP_GROW_CLAIM, KUBE_CLAIM, claim->name,
        kube_object_find(converge->look->claims, claim->name),
        xasprintf("claim %s: %s -> %s", claim->name, claim->from ? claim->from : "nothing", claim->to));
    free(request->fingerprint);
    request->fingerprint = xasprintf("grow %s", claim->to);
    request->body = growth_patch(claim->to);
    return request;
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
