/* SPDX-License-Identifier: Apache-2.0
 *
 * A claim template asks for more: every claim of the set that asks for less is raised, those of ordinals that
 * were scaled away too; which ones, and what may be in the way, says src/volume/decide. Nothing is
 * re-created: a NeoSet's template may change. Of each template one claim goes first, alone: a size that the
 * storage cannot have is a fault of one volume then, not of all. */
#include "neoset/plan_model.h"

#include "base/time_text.h"
#include "volume/decide.h"

static const char wait_grow[] = "grow";
#define FIRST_ANSWER_US (30 * US_PER_S)
#define EXPIRY_AGAIN_US (5 * US_PER_S)
enum { MESSAGE_MAX = 1000 };

/* The claims of one template. */
struct claims {
    const struct claim_template *template;
    size_t asking;                     /* for the size, or more, of a volume that is there */
    bool answered;                     /* the storage made something of one that asks */
    const struct claim_fact *hopeless; /* one that asks for what it cannot have */
};

struct volumes {
    struct plan *plan;
    struct claims *of;                /* of each template */
    size_t count;                     /* claims */
    size_t done;                      /* that are as large as their template says */
    const struct claim_fact *lagging; /* the first by name that asks for less */
    const struct claim_fact *waiting; /* the first by name whose volume is not there yet */
};

/* --- what is there -------------------------------------------------------------------------------------- */

/* Nobody else's, and not about to go with its pod. */
static bool is_ours(const struct plan *plan, const struct claim_fact *claim)
{
    return !claim->controller_uid && !claim->pod_owner_uid && !claim->deleting &&
           (!claim->set_owner_uid || str_equal(claim->set_owner_uid, plan->set->uid));
}

/* By the claim's name, <template>-<set>-<ordinal>; NULL: none of the set's. */
static struct claims *claims_of(const struct volumes *volumes, const char *name, int *ret_ordinal)
{
    const struct neoset_fact *set = volumes->plan->set;
    size_t length = 0, set_length = strlen(set->name);
    if (!neoset_split_pod_name(name, &length, ret_ordinal) || length < set_length + 2 ||
        name[length - set_length - 1] != '-' ||
        strncmp(name + length - set_length, set->name, set_length) != 0)
        return NULL;
    size_t template_length = length - set_length - 1;
    for (size_t i = 0; i < set->claim_template_count; i++) {
        const char *template = set->claim_templates[i].name;
        if (strlen(template) == template_length && strncmp(name, template, template_length) == 0)
            return &volumes->of[i];
    }
    return NULL;
}

/* One without a volume will get one of the right size. Where no pod uses a volume, its file system grows when
 * one does. */
static bool is_large(const struct plan *plan, const struct claim_fact *claim, int ordinal)
{
    int index = ordinal - plan->spec->start;
    bool used = index >= 0 && index < plan->spec->replicas;
    return !str_equal(claim->phase, "Bound") || claim->growth == GROWTH_DONE ||
           (claim->growth == GROWTH_NODE && !used);
}

static const struct claim_fact *first_by_name(const struct claim_fact *a, const struct claim_fact *b)
{
    return !a || strcmp(b->name, a->name) < 0 ? b : a;
}

static void look_at(struct volumes *volumes, const struct claim_fact *claim)
{
    int ordinal = -1;
    struct claims *claims = claims_of(volumes, claim->name, &ordinal);
    if (!claims || !claims->template->size || !is_ours(volumes->plan, claim))
        return;
    volumes->count++;
    bool bound = str_equal(claim->phase, "Bound");
    if (quantity_compare(&claim->request_value, &claims->template->size_value) < 0) {
        volumes->lagging = first_by_name(volumes->lagging, claim);
        return;
    }
    claims->asking += bound;
    claims->answered = claims->answered || (bound && growth_is_answered(claim->growth));
    if (claim->growth == GROWTH_INFEASIBLE)
        claims->hopeless = claim;
    else if (is_large(volumes->plan, claim, ordinal))
        volumes->done++;
    else
        volumes->waiting = first_by_name(volumes->waiting, claim);
}

/* --- asking the decision -------------------------------------------------------------------------------- */

static cJSON *named(const char *name, cJSON **ret_metadata)
{
    cJSON *object = json_new_object();
    *ret_metadata = json_add_object(object, "metadata");
    json_add_str(*ret_metadata, "name", name);
    return object;
}

static cJSON *set_json(const struct neoset_fact *set)
{
    cJSON *metadata = NULL;
    cJSON *object = named(set->name, &metadata);
    json_add_str(metadata, "namespace", set->namespace);
    cJSON *templates = json_add_array(json_add_object(object, "spec"), "volumeClaimTemplates");
    for (size_t i = 0; i < set->claim_template_count; i++) {
        cJSON *template = NULL;
        const char *text = set->claim_templates[i].text;
        if (json_parse(text, strlen(text), &template, NULL) == 0)
            json_append_item(templates, template);
    }
    return object;
}

static cJSON *claim_json(const struct claim_fact *claim)
{
    cJSON *metadata = NULL;
    cJSON *object = named(claim->name, &metadata);
    json_add_str(metadata, "uid", claim->uid ? claim->uid : "");
    json_add_str(metadata, "resourceVersion", claim->version ? claim->version : "");
    cJSON *spec = json_add_object(object, "spec");
    if (claim->class)
        json_add_str(spec, "storageClassName", claim->class);
    if (claim->request)
        json_add_str(json_add_object(json_add_object(spec, "resources"), "requests"), "storage",
                     claim->request);
    if (claim->phase)
        json_add_str(json_add_object(object, "status"), "phase", claim->phase);
    return object;
}

/* The pods of the set, with the claims that their names stand for. */
static void add_pods(const struct plan *plan, cJSON *pods)
{
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct slot *slot = &plan->slots[i];
        if (!slot->ours)
            continue;
        cJSON *metadata = NULL;
        cJSON *pod = named(slot->pod->name, &metadata);
        cJSON *all = json_add_array(json_add_object(pod, "spec"), "volumes");
        for (size_t j = 0; j < plan->set->claim_template_count; j++) {
            CLEANUP_FREE char *name =
                body_claim_name(plan->set, &plan->set->claim_templates[j], slot->ordinal);
            cJSON *volume = json_new_object();
            json_add_str(json_add_object(volume, "persistentVolumeClaim"), "claimName", name);
            json_append_item(all, volume);
        }
        json_append_item(pods, pod);
    }
}

/* Whether classes allow it, the server says when it is asked: a NeoSet's controller does not read them. */
static void decide(const struct plan *plan, struct volume_decision *ret)
{
    const struct neoset_snapshot *at = plan->at;
    CLEANUP_JSON cJSON *desired = set_json(plan->set);
    CLEANUP_JSON cJSON *claims = json_new_array();
    CLEANUP_JSON cJSON *others = json_new_array();
    CLEANUP_JSON cJSON *pods = json_new_array();
    for (size_t i = 0; i < at->claim_count; i++)
        if (is_ours(plan, at->claims[i]))
            json_append_item(claims, claim_json(at->claims[i]));
    for (size_t i = 0; i < at->rival_count; i++)
        json_append_item(others, set_json(at->rivals[i]));
    if (at->rival_count > 0)
        add_pods(plan, pods);
    volume_decide_claims(
        &(struct volume_input){.desired = desired, .claims = claims, .others = others, .pods = pods}, ret);
}

/* --- one alone, then all -------------------------------------------------------------------------------- */

/* Its first claim asks, and its storage has said nothing yet: the others wait a while. */
static bool waits_for_answer(const struct volumes *volumes)
{
    struct plan *plan = volumes->plan;
    bool unanswered = false;
    for (size_t i = 0; i < plan->set->claim_template_count; i++) {
        const struct claims *claims = &volumes->of[i];
        unanswered = unanswered || (claims->asking > 0 && !claims->answered && !claims->hopeless);
    }
    struct neoset_wait_view view = {0};
    bool is_open = plan->at->wait && plan->at->wait(plan->at->context, wait_grow, KUBE_NEOSET,
                                                    plan->set->name, FIRST_ANSWER_US, &view);
    struct neoset_wait wait = {
        .action = wait_grow, .resource = KUBE_NEOSET, .name = plan->set->name, .budget_us = FIRST_ANSWER_US};
    if (!unanswered || !volumes->lagging) {
        if (is_open)
            plan_add_wait(&plan->out->waits_done, &plan->out->wait_done_count, wait);
        return false;
    }
    wait.reason = xstrdup("until the storage says what it makes of the first claim");
    plan_add_wait(&plan->out->waits, &plan->out->wait_count, wait);
    if (view.expired)
        return false;
    plan_wake(plan, plan->at->boot_us + MAX(FIRST_ANSWER_US - view.spent_us, EXPIRY_AGAIN_US));
    return true;
}

/* "data 2Gi, logs 1Gi": the same from the first step of a growth to its last. The caller's. */
static char *sizes_text(const struct neoset_fact *set)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    for (size_t i = 0; i < set->claim_template_count; i++)
        buf_addf(&text, "%s%s %s", i ? ", " : "", set->claim_templates[i].name,
                 set->claim_templates[i].size ? set->claim_templates[i].size : "?");
    return buf_take(&text);
}

static int grow(struct plan *plan, const struct volume_item *claim)
{
    struct step_request *request =
        plan_request(plan, STEP_GROW_CLAIM, KUBE_CLAIM, claim->name, claim->uid, claim->version, "resize");
    request->go_to = sizes_text(plan->set);
    request->body = growth_patch(claim->to);
    request->fingerprint = xasprintf("grow/%s", claim->to);
    request->reason =
        xasprintf("%s: %s -> %s", claim->name, claim->from ? claim->from : "no size", claim->to);
    return plan_emit(plan, request);
}

static bool is_under_way(const struct plan *plan, const char *claim)
{
    struct neoset_open_step open = {0};
    return plan->at->open_step(plan->at->context, KUBE_CLAIM, claim, &open);
}

static void grow_claims(struct volumes *volumes, const struct volume_items *items)
{
    struct plan *plan = volumes->plan;
    bool waits = waits_for_answer(volumes);
    for (size_t i = 0; i < items->count; i++) {
        const struct volume_item *item = &items->items[i];
        int ordinal = -1;
        struct claims *claims = claims_of(volumes, item->name, &ordinal);
        if (!claims || claims->hopeless || (claims->asking > 0 && !claims->answered && waits))
            continue;
        bool is_first = claims->asking == 0;
        int step = grow(plan, item);
        if (!is_first || (step < 0 && !is_under_way(plan, item->name)))
            continue;
        claims->asking++;
        waits = true; /* what the storage makes of it, a later turn sees */
        if (step >= 0)
            plan_event(plan, step, false, "VolumesGrow", NULL,
                       "Growing the claims of template %s to %s, %s first.", item->template, item->to,
                       item->name);
    }
}

/* --- what people read ----------------------------------------------------------------------------------- */

static const char *reason_of(enum volume_outcome outcome)
{
    switch (outcome) {
    case VOLUME_BAD_INPUT:
        return "BadSize";
    case VOLUME_CLAIM_AMBIGUOUS:
        return "ClaimAmbiguous";
    case VOLUME_NOT_EXPANDABLE:
        return "NotExpandable";
    case VOLUME_NOT_BOUND:
        return "ClaimNotBound";
    case VOLUME_NOTHING:
    case VOLUME_GROW:
    case VOLUME_TEMPLATE_CHANGED:
    case VOLUME_SHRINK:
    case VOLUME_OTHER_IMMUTABLE:
        break;
    }
    return NULL;
}

static void tell(struct plan *plan, const char *reason, enum plan_weight weight, char *text)
{
    plan->volumes = reason;
    plan->volumes_text = xasprintf("%.*s.", MESSAGE_MAX, text);
    plan_say(plan, weight, "%s", plan->volumes_text);
    free(text);
}

static const struct claim_fact *hopeless_of(const struct volumes *volumes)
{
    for (size_t i = 0; i < volumes->plan->set->claim_template_count; i++)
        if (volumes->of[i].hopeless)
            return volumes->of[i].hopeless;
    return NULL;
}

/* The server said no to raising the first that lags. */
static const struct refusal *refusal_of(const struct volumes *volumes)
{
    return volumes->lagging ? neoset_memory_refusal(volumes->plan->at->memory, KUBE_CLAIM,
                                                    volumes->lagging->name, STEP_GROW_CLAIM)
                            : NULL;
}

static void tell_progress(struct volumes *volumes)
{
    struct plan *plan = volumes->plan;
    const struct claim_fact *hopeless = hopeless_of(volumes);
    char *progress =
        xasprintf("%zu of %zu claims are as large as their templates say", volumes->done, volumes->count);
    if (hopeless) {
        plan_event(plan, -1, true, "VolumeGrowthFailed", NULL, "%s asks for %s: %s.", hopeless->name,
                   hopeless->request, growth_text(GROWTH_INFEASIBLE));
        tell(
            plan, "Infeasible", SAY_BLOCKED,
            xasprintf("%s asks for %s: %s; no other claim of its template is raised. kubectl describe pvc %s "
                      "-n %s tells more",
                      hopeless->name, hopeless->request, growth_text(GROWTH_INFEASIBLE), hopeless->name,
                      plan->set->namespace));
    } else if (refusal_of(volumes)) {
        tell(plan, "Refused", SAY_NOTHING, /* plan_emit() says it */
             xasprintf("%s; the API server refuses to raise %s: %s", progress, volumes->lagging->name,
                       refusal_of(volumes)->words));
    } else if (volumes->lagging) {
        tell(plan, "Growing", SAY_CREATING,
             xasprintf("%s; %s asks for less", progress, volumes->lagging->name));
    } else if (volumes->waiting) {
        tell(plan, "Resizing", SAY_CREATING,
             xasprintf("%s; %s: %s", progress, volumes->waiting->name,
                       growth_text((enum growth)volumes->waiting->growth)));
    } else {
        tell(plan, VOLUMES_CONVERGED, SAY_NOTHING, xstrdup(progress));
    }
    free(progress);
}

void plan_volumes(struct plan *plan)
{
    const struct neoset_fact *set = plan->set;
    if (set->claim_template_count == 0 || set->waits_for_pods)
        return;
    CLEANUP_FREE struct claims *of = xcalloc(set->claim_template_count, sizeof(*of));
    struct volumes volumes = {.plan = plan, .of = of};
    for (size_t i = 0; i < set->claim_template_count; i++)
        of[i].template = &set->claim_templates[i];
    for (size_t i = 0; i < plan->at->claim_count; i++)
        look_at(&volumes, plan->at->claims[i]);
    CLEANUP_VOLUME_DECISION struct volume_decision decision = {0};
    if (volumes.lagging)
        decide(plan, &decision);
    grow_claims(&volumes, &decision.claims);
    if (decision.refused.count > 0)
        tell(plan, reason_of(decision.outcome), SAY_BLOCKED, volume_decision_words(&decision));
    else
        tell_progress(&volumes);
}
