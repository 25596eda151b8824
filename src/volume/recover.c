/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/recover.h"

#include "kube/object.h"

enum { REFUSAL_MAX = 1 << 16 };

/* One claim against the size that its template declares. */
struct candidate {
    const cJSON *claim;
    const cJSON *template;
    struct quantity request, capacity, declared;
    char *request_text, *capacity_text, *declared_text;
};

static void candidate_done(struct candidate *candidate)
{
    free(candidate->request_text);
    free(candidate->capacity_text);
    free(candidate->declared_text);
}

static const cJSON *template_of(const cJSON *set, const cJSON *claim)
{
    const cJSON *template = NULL;
    cJSON_ArrayForEach (template, json_path(set, "spec", "volumeClaimTemplates", NULL)) {
        CLEANUP_FREE char *prefix = xasprintf("%s-%s-", kube_object_name(template), kube_object_name(set));
        const char *name = kube_object_name(claim);
        if (str_starts_with(name, prefix) && !strchr(name + strlen(prefix), '-'))
            return template;
    }
    return NULL;
}

static bool read_size(const cJSON *resources, const char *part, struct quantity *ret, char **ret_text)
{
    const cJSON *node = part ? json_path(resources, part, "storage", NULL) : json_get(resources, "storage");
    return node && quantity_read(node, ret, ret_text, NULL) == 0;
}

/* false: not a claim of the set that can be compared. */
static bool look_at(const cJSON *set, const cJSON *desired, const cJSON *claim, struct candidate *ret)
{
    *ret = (struct candidate){.claim = claim};
    if (!kube_object_name(claim) || kube_object_is_deleting(claim) || !volume_is_claim_of(claim, set))
        return false;
    ret->template = template_of(desired, claim);
    return ret->template &&
           read_size(json_path(claim, "spec", "resources", NULL), "requests", &ret->request,
                     &ret->request_text) &&
           read_size(json_path(claim, "status", "capacity", NULL), NULL, &ret->capacity,
                     &ret->capacity_text) &&
           read_size(json_path(ret->template, "spec", "resources", NULL), "requests", &ret->declared,
                     &ret->declared_text);
}

static void add_claim(const struct candidate *candidate, struct volume_items *claims)
{
    struct volume_item *item = volume_items_add(claims, kube_object_name(candidate->claim));
    item->template = xstrdup(kube_object_name(candidate->template));
    item->class = xstrdup_or_null(json_path_str(candidate->claim, "spec", "storageClassName", NULL));
    item->from = xstrdup(candidate->request_text);
    item->to = xstrdup(candidate->declared_text);
    item->from_size = candidate->request;
    item->to_size = candidate->declared;
    item->uid = xstrdup_or_null(kube_object_uid(candidate->claim));
    item->version = xstrdup_or_null(kube_object_version(candidate->claim));
}

void recover_decide(const cJSON *set, const cJSON *desired, const cJSON *claims,
                    struct volume_decision *decision, char **ret_refusal)
{
    CLEANUP_BUF struct buf refusal = BUF_INIT(REFUSAL_MAX);
    bool shrinks = decision->outcome == VOLUME_SHRINK;
    *ret_refusal = NULL;
    if (!shrinks && decision->outcome != VOLUME_NOTHING && decision->outcome != VOLUME_GROW)
        return;
    const cJSON *claim = NULL;
    cJSON_ArrayForEach (claim, claims) {
        struct candidate candidate;
        bool is_ours = look_at(set, desired, claim, &candidate);
        int above = is_ours ? quantity_compare(&candidate.request, &candidate.declared) : 0;
        if (above > 0 && quantity_compare(&candidate.capacity, &candidate.declared) >= 0)
            buf_addf(&refusal, "%s%s has %s and asks for %s", refusal.length > 0 ? "; " : "",
                     kube_object_name(claim), candidate.capacity_text, candidate.request_text);
        else if (above > 0 || (above < 0 && shrinks))
            add_claim(&candidate, &decision->claims);
        candidate_done(&candidate);
    }
    volume_items_sort(&decision->claims);
    if (refusal.length > 0) {
        *ret_refusal = xasprintf("no way back to smaller volumes: %s; declare more than any of them has",
                                 buf_text(&refusal));
        return;
    }
    decision->recreate |= shrinks;
    if (shrinks || decision->claims.count > 0)
        decision->outcome = VOLUME_GROW;
}
