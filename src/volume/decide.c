/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/decide_parts.h"

#include "base/plant.h"
#include "kube/object.h"

/* What has been read so far. */
struct deciding {
    const struct volume_input *input;
    struct volume_decision *decision;
    struct volume_templates declared;
    struct volume_templates live;
    bool are_all_raised; /* claims of every template, whatever the live one says */
};

/* Takes the items; false when there are none. */
static bool refuse(struct volume_decision *decision, enum volume_outcome outcome, struct volume_items *items)
{
    if (items->count == 0)
        return false;
    volume_items_done(&decision->refused);
    decision->refused = *items;
    *items = (struct volume_items){0};
    decision->outcome = outcome;
    return true;
}

static void add_identity(const struct volume_decision *decision, struct volume_items *bad)
{
    if (!decision->name) {
        struct volume_item *item = volume_items_add(bad, "StatefulSet");
        item->field = xstrdup("metadata.name");
        item->problem = xstrdup("the name is missing");
    }
    if (!decision->namespace) {
        struct volume_item *item = volume_items_add(bad, decision->name ? decision->name : "StatefulSet");
        item->field = xstrdup("metadata.namespace");
        item->problem = xstrdup("the namespace is missing: a claim of the same name may exist in any");
    }
}

static void read_declared(struct deciding *deciding, struct volume_items *bad)
{
    add_identity(deciding->decision, bad);
    volume_templates_read(deciding->input->desired, true, &deciding->declared, bad);
}

/* --- the rules, each true when it is the outcome -------------------------------------------------------- */

/* There is nothing that is immutable yet. Sizes that cannot be used are the server's to refuse. */
static bool is_created(const struct deciding *deciding)
{
    deciding->decision->outcome = VOLUME_NOTHING;
    return !deciding->input->live;
}

static bool is_bad_input(struct deciding *deciding)
{
    CLEANUP_VOLUME_ITEMS struct volume_items bad = {0};
    read_declared(deciding, &bad);
    volume_templates_read(deciding->input->live, false, &deciding->live, &bad);
    return refuse(deciding->decision, VOLUME_BAD_INPUT, &bad);
}

static bool are_other_templates(const struct deciding *deciding)
{
    CLEANUP_VOLUME_ITEMS struct volume_items changed = {0};
    volume_templates_compare_names(&deciding->live, &deciding->declared, &changed);
    return refuse(deciding->decision, VOLUME_TEMPLATE_CHANGED, &changed);
}

/* From here on templates stand side by side. */
static bool are_templates_changed(const struct deciding *deciding)
{
    CLEANUP_VOLUME_ITEMS struct volume_items changed = {0};
    ENSURE(deciding->live.count == deciding->declared.count);
    for (size_t i = 0; i < deciding->live.count; i++)
        volume_template_compare(&deciding->live.items[i], &deciding->declared.items[i], &changed);
    return refuse(deciding->decision, VOLUME_TEMPLATE_CHANGED, &changed);
}

/* Adds each template whose size went that way: -1 smaller, 1 larger. */
static void add_resized(const struct deciding *deciding, int direction, struct volume_items *items)
{
    for (size_t i = 0; i < deciding->live.count; i++) {
        const struct volume_template *live = &deciding->live.items[i],
                                     *declared = &deciding->declared.items[i];
        int order = quantity_compare(&declared->size, &live->size);
        if (direction < 0 && i > 0 && PLANT("later-templates-may-shrink"))
            continue;
        if ((order > 0) - (order < 0) != direction)
            continue;
        struct volume_item *item = volume_items_add(items, declared->name);
        item->from = xstrdup(live->text);
        item->from_size = live->size;
        item->to = xstrdup(declared->text);
        item->to_size = declared->size;
    }
}

static bool is_shrink(const struct deciding *deciding)
{
    CLEANUP_VOLUME_ITEMS struct volume_items smaller = {0};
    add_resized(deciding, -1, &smaller);
    bool recoverable = smaller.count > 0;
    for (size_t i = 0; i < smaller.count && recoverable; i++)
        recoverable =
            volume_claims_are_all_below(deciding->input, smaller.items[i].name, &smaller.items[i].to_size);
    deciding->decision->recoverable = recoverable;
    return refuse(deciding->decision, VOLUME_SHRINK, &smaller);
}

/* Claims of templates that grow, and as a finding of those that do not. */
static void survey(const struct deciding *deciding, struct claim_survey *ret)
{
    const struct volume_templates *declared = &deciding->declared;
    CLEANUP_FREE struct claim_target *targets = xcalloc(MAX(declared->count, (size_t)1), sizeof(*targets));
    for (size_t i = 0; i < declared->count; i++) {
        bool grows = deciding->are_all_raised ||
                     (deciding->input->live &&
                      quantity_compare(&declared->items[i].size, &deciding->live.items[i].size) > 0);
        targets[i] = (struct claim_target){&declared->items[i], grows};
    }
    volume_survey_claims(deciding->input, targets, declared->count, ret);
}

/* A claim stands in the way. */
static bool are_claims_refused(struct volume_decision *decision, struct claim_survey *found)
{
    return refuse(decision, VOLUME_BAD_INPUT, &found->unreadable) ||
           refuse(decision, VOLUME_CLAIM_AMBIGUOUS, &found->ambiguous) ||
           refuse(decision, VOLUME_NOT_EXPANDABLE, &found->not_expandable) ||
           refuse(decision, VOLUME_NOT_BOUND, &found->not_bound);
}

static void decide_claims(const struct deciding *deciding)
{
    struct volume_decision *decision = deciding->decision;
    CLEANUP_CLAIM_SURVEY struct claim_survey found = {0};
    survey(deciding, &found);
    add_resized(deciding, 1, &decision->grown);
    if (are_claims_refused(decision, &found)) {
        volume_items_done(&decision->grown);
        return;
    }
    decision->outcome = decision->grown.count > 0 ? VOLUME_GROW : VOLUME_NOTHING;
    decision->recreate = decision->outcome == VOLUME_GROW;
    decision->claims = found.grow;
    decision->terminating = found.terminating;
    decision->lagging = found.lagging;
    found.grow = found.terminating = found.lagging = (struct volume_items){0};
}

/* A set that is made anew finds its old claims, perhaps smaller than it says. */
static void find_lagging(struct deciding *deciding)
{
    CLEANUP_VOLUME_ITEMS struct volume_items bad = {0};
    CLEANUP_CLAIM_SURVEY struct claim_survey found = {0};
    read_declared(deciding, &bad);
    if (bad.count > 0)
        return;
    survey(deciding, &found);
    deciding->decision->lagging = found.lagging;
    found.lagging = (struct volume_items){0};
}

static struct deciding begin(const struct volume_input *input, struct volume_decision *ret)
{
    PRE(input->desired);
    *ret = (struct volume_decision){.namespace = xstrdup_or_null(kube_object_namespace(input->desired)),
                                    .name = xstrdup_or_null(kube_object_name(input->desired))};
    return (struct deciding){.input = input, .decision = ret};
}

void volume_decide_claims(const struct volume_input *input, struct volume_decision *ret)
{
    struct deciding deciding = begin(input, ret);
    deciding.are_all_raised = true;
    CLEANUP_VOLUME_ITEMS struct volume_items bad = {0};
    CLEANUP_CLAIM_SURVEY struct claim_survey found = {0};
    read_declared(&deciding, &bad);
    if (!refuse(ret, VOLUME_BAD_INPUT, &bad)) {
        survey(&deciding, &found);
        ret->claims = found.grow;
        ret->terminating = found.terminating;
        found.grow = found.terminating = (struct volume_items){0};
        if (!are_claims_refused(ret, &found))
            ret->outcome = ret->claims.count > 0 ? VOLUME_GROW : VOLUME_NOTHING;
    }
    volume_templates_done(&deciding.declared);
}

void volume_decide(const struct volume_input *input, struct volume_decision *ret)
{
    struct deciding deciding = begin(input, ret);
    if (is_created(&deciding))
        find_lagging(&deciding);
    else if (!is_bad_input(&deciding) && !are_other_templates(&deciding) &&
             !are_templates_changed(&deciding) && !is_shrink(&deciding))
        decide_claims(&deciding);
    volume_templates_done(&deciding.declared);
    volume_templates_done(&deciding.live);
}

void volume_decision_done(struct volume_decision *decision)
{
    free(decision->namespace);
    free(decision->name);
    volume_items_done(&decision->grown);
    volume_items_done(&decision->claims);
    volume_items_done(&decision->refused);
    volume_items_done(&decision->lagging);
    volume_items_done(&decision->terminating);
    *decision = (struct volume_decision){0};
}
