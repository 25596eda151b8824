/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/undo.h"

#include "kube/object.h"
#include "neoset/fact.h"
#include "neoset/template.h"

#include <inttypes.h>

enum { NUMBERS_SHOWN_MAX = 20 };

/* What is chosen from: the facts of the set and of its own revisions, oldest first. */
struct choice {
    struct intern *pool;
    struct neoset_fact *set;
    struct revision_fact **revisions;
    size_t count;
    const cJSON *proven; /* status.provenRevisionNames, as far back as it goes; NULL: it does not tell */
};

static int compare_numbers(const void *a, const void *b)
{
    const struct revision_fact *const *left = a;
    const struct revision_fact *const *right = b;
    if ((*left)->number != (*right)->number)
        return (*left)->number < (*right)->number ? -1 : 1;
    return strcmp((*left)->name, (*right)->name);
}

static void choice_make(const cJSON *set, const cJSON *revisions, struct choice *ret)
{
    *ret = (struct choice){.pool = intern_make()};
    ret->set = neoset_fact_make(ret->pool, set);
    const cJSON *proven = json_path(set, "status", "provenRevisionNames", NULL);
    ret->proven = cJSON_IsArray(proven) ? proven : NULL;
    ret->revisions = xcalloc((size_t)cJSON_GetArraySize(revisions) + 1, sizeof(*ret->revisions));
    const cJSON *object = NULL;
    cJSON_ArrayForEach (object, revisions) {
        const char *uid = kube_object_uid(set);
        if (!uid || !kube_object_is_controlled_by(object, uid) || kube_object_is_deleting(object))
            continue;
        struct revision_fact *revision = revision_fact_make(ret->pool, object);
        if (revision)
            ret->revisions[ret->count++] = revision;
    }
    qsort(ret->revisions, ret->count, sizeof(struct revision_fact *), compare_numbers);
}

static void choice_done(struct choice *choice)
{
    for (size_t i = 0; i < choice->count; i++)
        revision_fact_free(choice->revisions[i]);
    free(choice->revisions);
    neoset_fact_free(choice->set);
    intern_free(choice->pool);
}

static bool is_elsewhere(const struct choice *choice, const struct revision_fact *revision)
{
    return revision->template_text && !str_equal(revision->template_digest, choice->set->template_digest);
}

/* "1, 2 and 4"; the caller's. */
static char *numbers_of(const struct choice *choice)
{
    struct buf text = BUF_INIT(4096);
    size_t first = choice->count > NUMBERS_SHOWN_MAX ? choice->count - NUMBERS_SHOWN_MAX : 0;
    for (size_t i = first; i < choice->count; i++)
        buf_addf(&text, "%s%" PRId64, i == first ? "" : (i + 1 == choice->count ? " and " : ", "),
                 choice->revisions[i]->number);
    return buf_take(&text);
}

static int find_number(const struct choice *choice, int64_t number, const struct revision_fact **ret,
                       struct error **err)
{
    for (size_t i = 0; i < choice->count; i++)
        if (choice->revisions[i]->number == number)
            *ret = choice->revisions[i];
    if (*ret && (*ret)->template_text)
        return 0;
    const struct neoset_fact *set = choice->set;
    if (*ret)
        return error_set(err, ERROR_REFUSED, "revision %" PRId64 " (%s) of NeoSet %s holds no pod template",
                         number, (*ret)->name, set->name);
    if (choice->count == 0)
        return error_set(err, ERROR_REFUSED, "NeoSet %s has no revision %" PRId64 ", nor any other",
                         set->name, number);
    CLEANUP_FREE char *numbers = numbers_of(choice);
    return error_set(err, ERROR_REFUSED,
                     "NeoSet %s has no revision %" PRId64 ": there %s %s (`neosetctl history %s -n %s`)",
                     set->name, number, choice->count == 1 ? "is only" : "are", numbers, set->name,
                     set->namespace);
}

/* Every pod ran it once, and was available. */
static bool is_proven(const struct choice *choice, const struct revision_fact *revision)
{
    const struct neoset_deciding *deciding = &choice->set->deciding;
    return (deciding->stable_proven && str_equal(revision->name, deciding->stable)) ||
           json_has_str(choice->proven, revision->name);
}

/* The revision of the set's template, when every pod ran that once and another one is stable: the set goes
 * back to it already, whether a controller has seen that or not. Asked twice, an undo must become neither a
 * redo nor the step to what failed. NULL: it is not so. */
static const struct revision_fact *find_way_back(const struct choice *choice)
{
    const char *stable = choice->set->deciding.stable;
    const struct revision_fact *found = NULL;
    for (size_t i = 0; i < choice->count; i++) {
        const struct revision_fact *revision = choice->revisions[i];
        if (!revision->template_text || is_elsewhere(choice, revision))
            continue;
        if (!stable || str_equal(revision->name, stable))
            return NULL;
        found = is_proven(choice, revision) ? revision : found;
    }
    return found;
}

/* What every pod ran before, or is on its way back to. */
static bool is_under_way(const struct choice *choice, const char *phase)
{
    const struct neoset_deciding *deciding = &choice->set->deciding;
    return deciding->left.count > 0 ||
           (deciding->stable && deciding->target && !str_equal(deciding->stable, deciding->target)) ||
           str_equal(phase, "RollingOut") || str_equal(phase, "Canary");
}

/* The stable revision, when the set means another one, or is going there already; else NULL. */
static const struct revision_fact *find_stable(const struct choice *choice, const char *phase)
{
    for (size_t i = 0; i < choice->count; i++) {
        const struct revision_fact *revision = choice->revisions[i];
        if (str_equal(revision->name, choice->set->deciding.stable) && is_proven(choice, revision) &&
            revision->template_text && (is_elsewhere(choice, revision) || is_under_way(choice, phase)))
            return revision;
    }
    return NULL;
}

/* newest: that differs from the set's template; none of these was stable, as far as is known: the list begins
 * with the first status that a controller which keeps it has written, or with what survived of a status that
 * was removed. */
static int refuse_unproven(const struct choice *choice, const struct revision_fact *newest,
                           struct error **err)
{
    const struct neoset_fact *set = choice->set;
    const char *why = choice->proven ? "none of the others was seen stable, with all pods on it and "
                                       "available, since its status lists those"
                                     : "its status does not tell which of the others were stable";
    return error_set(err, ERROR_REFUSED,
                     "NeoSet %s has no earlier revision that is safe to go back to: %s "
                     "(`neosetctl history %s -n %s`). If revision %" PRId64
                     " (%s) is meant: neosetctl undo %s -n %s --to-revision %" PRId64,
                     set->name, why, set->name, set->namespace, newest->number, newest->name, set->name,
                     set->namespace, newest->number);
}

static int find_earlier(const struct choice *choice, const char *phase, const struct revision_fact **ret,
                        const char **ret_why, struct error **err)
{
    const struct revision_fact *newest = NULL;
    *ret = find_way_back(choice);
    *ret_why = *ret ? "one that was stable" : "the stable revision";
    if (!*ret)
        *ret = find_stable(choice, phase);
    for (size_t i = choice->count; !*ret && i > 0; i--) {
        const struct revision_fact *revision = choice->revisions[i - 1];
        if (!is_elsewhere(choice, revision))
            continue;
        newest = newest ? newest : revision;
        if (!is_proven(choice, revision))
            continue;
        *ret = revision;
        *ret_why = revision == newest ? "the one before" : "the newest other one that was stable";
    }
    if (*ret)
        return 0;
    if (newest)
        return refuse_unproven(choice, newest, err);
    return error_set(err, ERROR_REFUSED,
                     "NeoSet %s has no earlier revision to go back to (`neosetctl history %s -n %s`)",
                     choice->set->name, choice->set->name, choice->set->namespace);
}

static void describe(const struct choice *choice, const struct revision_fact *to, struct ctl_undo *ret)
{
    const struct neoset_fact *set = choice->set;
    ret->number = to->number;
    ret->name = xstrdup(to->name);
    ret->template_text = xstrdup(to->template_text);
    ret->digest = xstrdup(to->template_digest);
    ret->seen_digest = xstrdup(set->template_digest);
    ret->is_there = str_equal(to->template_digest, set->template_digest);
    ret->is_paused = set->spec.pause;
    ret->is_unproven = choice->proven && !is_proven(choice, to);
    for (size_t i = 0; i < choice->count; i++)
        if (choice->revisions[i]->template_text &&
            str_equal(choice->revisions[i]->template_digest, set->template_digest))
            ret->from_number = choice->revisions[i]->number;
    struct template_diff diff;
    template_diff_make(set->template_text, to->template_text, &diff);
    CLEANUP_FREE char *text = template_diff_text(&diff);
    bool has_both = diff.image_count > 0 && diff.recreate;
    ret->change = has_both ? xasprintf("%s, and %s", text, diff.recreate) : STEAL(text);
    ret->recreates = diff.recreate != NULL || set->spec.strategy == NEOSET_RECREATE;
    template_diff_done(&diff);
}

int ctl_undo_choose(const cJSON *set, const cJSON *revisions, int64_t number, struct ctl_undo *ret,
                    struct error **err)
{
    *ret = (struct ctl_undo){.choice = "as asked"};
    struct choice choice;
    choice_make(set, revisions, &choice);
    const struct revision_fact *to = NULL;
    int r;
    if (!choice.set || !choice.set->template_text)
        r = error_set(err, ERROR_INVALID, "the NeoSet has no pod template that can be read");
    else if (choice.set->deleting)
        r = error_set(err, ERROR_REFUSED, "NeoSet %s is being deleted", choice.set->name);
    else if (number > 0)
        r = find_number(&choice, number, &to, err);
    else
        r = find_earlier(&choice, json_path_str(set, "status", "phase", NULL), &to, &ret->choice, err);
    if (r == 0)
        describe(&choice, to, ret);
    choice_done(&choice);
    return r;
}

void ctl_undo_done(struct ctl_undo *undo)
{
    free(undo->name);
    free(undo->template_text);
    free(undo->digest);
    free(undo->seen_digest);
    free(undo->change);
    *undo = (struct ctl_undo){0};
}

static bool means(const cJSON *set, const char *digest)
{
    struct intern *pool = intern_make();
    struct neoset_fact *fact = neoset_fact_make(pool, set);
    bool same = fact && fact->template_text && str_equal(fact->template_digest, digest);
    neoset_fact_free(fact);
    intern_free(pool);
    return same;
}

bool ctl_undo_is_done(const struct ctl_undo *undo, const cJSON *set)
{
    return means(set, undo->digest);
}

bool ctl_undo_is_as_seen(const struct ctl_undo *undo, const cJSON *set)
{
    return means(set, undo->seen_digest);
}

/* Members of `to` that `from` has not so, and null for those that it has too many. Depth is bounded by the
 * parser. */
static cJSON *merge_patch(const cJSON *from, const cJSON *to)
{
    cJSON *patch = json_new_object();
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, to) {
        const cJSON *old = json_get(from, member->string);
        if (old && json_equal(old, member))
            continue;
        json_set_item(patch, member->string,
                      cJSON_IsObject(old) && cJSON_IsObject(member) ? merge_patch(old, member)
                                                                    : json_copy(member));
    }
    cJSON_ArrayForEach (member, from) {
        if (!json_get(to, member->string))
            json_set_item(patch, member->string, cJSON_CreateNull());
    }
    return patch;
}

cJSON *ctl_undo_patch(const struct ctl_undo *undo, const cJSON *set)
{
    CLEANUP_JSON cJSON *template = NULL;
    ENSURE(json_parse(undo->template_text, strlen(undo->template_text), &template, NULL) == 0);
    cJSON *patch = json_new_object();
    cJSON *spec = json_add_object(patch, "spec");
    json_add_item(spec, "template", merge_patch(json_path(set, "spec", "template", NULL), template));
    return patch;
}
