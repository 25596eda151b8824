/* SPDX-License-Identifier: Apache-2.0
 *
 * The claims of a set: what each may become is asked with dry runs, then they are grown, then watched. */
#include "volume/converge_parts.h"

#include "base/plant.h"
#include "volume/probe.h"

/* The first answer of a class's storage controller is awaited for so long (volume.md, Converge 4). */
#define FIRST_ANSWER_US (30 * US_PER_S)

static const struct volume_item *claim_now(const struct converge *converge)
{
    ENSURE(converge->claim < converge->decision.claims.count);
    return &converge->decision.claims.items[converge->claim];
}

/* --- what they may become ------------------------------------------------------------------------------- */

static bool is_probed(const struct converge *converge, const struct volume_item *claim)
{
    return str_equal(json_str(converge->probed, claim->name), claim->to);
}

size_t next_to_probe(const struct converge *converge)
{
    const struct volume_items *claims = &converge->decision.claims;
    size_t i = 0;
    while (i < claims->count && is_probed(converge, &claims->items[i]))
        i++;
    return i;
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
    converge_ask(converge, ret, "PATCH", claim->name, KUBE_MERGE, body);
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

/* --- growing -------------------------------------------------------------------------------------------- */

static void await_answer(struct converge *converge, const char *claim, const char *class)
{
    str_replace(&converge->first_claim, claim);
    str_replace(&converge->first_class, class);
    converge->first_boot_us = converge->look->boot_us;
}

/* --- who else grows them -------------------------------------------------------------------------------- */

static void note_raised(struct converge *converge, const char *claim, const char *uid)
{
    json_set_str(converge->raised, claim, uid ? uid : "");
}

/* It was asked for its size by this run, and asks for another one again: whoever does that would be answered
 * for ever, and would answer. */
static bool is_contested(const struct converge *converge, const struct volume_item *claim)
{
    const char *raised = json_str(converge->raised, claim->name);
    return raised && str_equal(raised, claim->uid ? claim->uid : "") && !PLANT("claims-are-fought-over");
}

static char *contested_text(const struct volume_item *claim)
{
    return xasprintf(
        "this command has set it to %s, and somebody has set it to %s since: another command, or "
        "another tool, is at the same claims",
        claim->to, claim->from ? claim->from : "nothing");
}

const struct volume_item *find_contested(const struct converge *converge)
{
    const struct volume_items *claims = &converge->decision.claims;
    for (size_t i = 0; i < claims->count; i++)
        if (is_contested(converge, &claims->items[i]))
            return &claims->items[i];
    return NULL;
}

void refuse_contested(struct converge *converge, const struct volume_item *claim)
{
    CLEANUP_FREE char *text = contested_text(claim);
    converge_end(
        converge, ERROR_FAILED,
        xasprintf("StatefulSet %s: claim %s is left to others: %s. StatefulSet %s is as it was: agree on "
                  "the sizes, and run it again",
                  converge->name, claim->name, text, converge->name));
}

bool yields_lagging(struct converge *converge, const struct volume_item *claim)
{
    if (!is_contested(converge, claim))
        return false;
    CLEANUP_FREE char *text = contested_text(claim);
    json_set_str(converge->refused_claims, claim->name, text);
    return true;
}

void caught_up(struct converge *converge)
{
    converge->grown++;
    note_raised(converge, kube_object_name(converge->object), kube_object_uid(converge->object));
}

/* --- grown ---------------------------------------------------------------------------------------------- */

/* One after the other; of each class the first alone, until its storage controller has answered. */
void claim_grown(struct converge *converge)
{
    const struct volume_item *claim = claim_now(converge);
    converge->grown++;
    note_raised(converge, claim->name, claim->uid);
    const char *class = claim->class ? claim->class : "";
    if (!json_get(converge->answered, class)) {
        await_answer(converge, claim->name, class);
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

struct step_request *grow_step(const struct converge *converge)
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

/* --- what became of it ---------------------------------------------------------------------------------- */

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
    return !is_bound || growth == GROWTH_DONE ||
           ((growth == GROWTH_NODE || growth == GROWTH_NODE_FAILED) && !is_used(set, claim));
}

const cJSON *find_growing(const struct converge *converge, int64_t since_us, int *ret_count, enum growth *ret)
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

char *infeasible_text(const struct converge *converge, const cJSON *claim)
{
    const char *capacity = json_path_str(claim, "status", "capacity", "storage", NULL);
    CLEANUP_FREE char *said = growth_said(claim, NULL, 0);
    return xasprintf(
        "infeasible: claim %s asks for %s and has %s: its storage cannot become that large%s%s. StatefulSet "
        "%s is as it was. Declare a size that is possible, above %s, and lead the claims back with: "
        "neosetctl resize recover -n %s -f FILE",
        kube_object_name(claim), growth_request(claim), capacity ? capacity : "less",
        said ? ", it says: " : "", said ? said : "", converge->name, capacity ? capacity : "what it has",
        converge->namespace);
}

char *growth_state(struct converge *converge, const cJSON *claim, enum growth growth, int64_t since_us)
{
    /* What goes well takes a second or two: Events are read of what does not. */
    if (since_us >= ASKS_AFTER_US)
        str_replace(&converge->asks_about, kube_object_name(claim));
    CLEANUP_FREE char *said = growth_said(claim, converge->look->events, converge_server_us(converge));
    return said ? xasprintf("%s; it said: %s", growth_text(growth), said) : xstrdup(growth_text(growth));
}

static const char *class_of(const cJSON *claim)
{
    const char *class = volume_class_of(claim);
    return class ? class : "";
}

/* What an earlier run asked for, and nobody has answered: it is the first of its class still, or each run
 * that is broken off would take the next one for that, until all were asked for and none had grown. */
static void take_first_of_before(struct converge *converge)
{
    const cJSON *claim = NULL;
    if (converge->first_claim || converge->options.plans_only || converge->options.recovers)
        return;
    cJSON_ArrayForEach (claim, converge->look->claims) {
        enum growth growth = growth_of(claim, 0);
        bool is_asked = volume_is_claim_of(claim, converge->look->set) && !kube_object_is_deleting(claim) &&
                        !is_as_large_as_it_gets(converge->look->set, claim, growth);
        if (is_asked && !growth_is_answered(growth) && !json_get(converge->answered, class_of(claim))) {
            await_answer(converge, kube_object_name(claim), class_of(claim));
            return;
        }
    }
}

bool first_is_awaited(struct converge *converge)
{
    take_first_of_before(converge);
    if (!converge->first_claim)
        return false;
    int64_t waited_us = converge->look->boot_us - converge->first_boot_us;
    const cJSON *claim = kube_object_find(converge->look->claims, converge->first_claim);
    enum growth growth = claim ? growth_of(claim, waited_us) : GROWTH_DONE;
    if (!growth_is_answered(growth) && waited_us < FIRST_ANSWER_US) {
        CLEANUP_FREE char *state = growth_state(converge, claim, growth, waited_us);
        converge_wait(converge, POLL_US,
                      xasprintf("claim %s, the first of its class: %s", converge->first_claim, state));
        return true;
    }
    json_set_item(converge->answered, converge->first_class, json_new_int64(1));
    free(STEAL(converge->first_claim));
    free(STEAL(converge->first_class));
    return false;
}
