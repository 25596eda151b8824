/* SPDX-License-Identifier: Apache-2.0
 *
 * What a person types next, in the state that a set is in. */
#include "cmd/neosetctl/view.h"

#include <inttypes.h>

static const struct pod_view *first_trouble(const struct pod_views *pods)
{
    for (size_t i = 0; i < pods->count; i++)
        if (pods->items[i].is_trouble)
            return &pods->items[i];
    return NULL;
}

/* Pods that the partition lets through, or all: does one of them still wait for something? */
static bool is_moving(const struct set_view *set, const struct pod_views *pods, int64_t fence)
{
    for (size_t i = 0; i < pods->count; i++)
        if (pods->items[i].ordinal - set->first_ordinal >= fence && *pods->items[i].waits_for)
            return true;
    return false;
}

char *set_view_away(const struct set_view *set, const struct journals_view *journals)
{
    const struct journals_view none = {0};
    journals = journals ? journals : &none;
    /* A lock that is held is seen on this machine, now; a Lease may be left over from somebody else. */
    if (journals->live)
        return NULL;
    if (set->away)
        return xasprintf("no neoset-controller is at work: %s", set->away);
    /* One that is at work elsewhere has another journal: this one is a copy. */
    if (journals->dead && !set->is_led)
        return xasprintf("no neoset-controller is at work on %s (unless that is a copy)", journals->dead);
    return NULL;
}

char *pod_view_logs(const struct set_view *set, const struct pod_view *pod)
{
    if (!pod->crashing || pod->is_terminating)
        return NULL;
    return xasprintf("kubectl logs --previous -c %s %s -n %s", pod->crashing, pod->name, set->namespace);
}

static char *next_of_trouble(const struct set_view *set, const struct pod_view *pod)
{
    CLEANUP_FREE char *logs = pod_view_logs(set, pod);
    return logs ? xasprintf("%s   (what it said before it ended)", logs)
                : xasprintf("kubectl describe pod %s -n %s", pod->name, set->namespace);
}

static char *next_of_away(const struct set_view *set, const struct journals_view *journals)
{
    if (set->away_next)
        return xstrdup(set->away_next);
    return xasprintf("neoset-audit runs --journal %s   (how did the controller end? start it again)",
                     journals->dead);
}

static char *next_of_unseen(const struct set_view *set, const struct journals_view *journals)
{
    if (journals && journals->live)
        return xasprintf("neosetctl status %s -n %s -w   (it is seen in a moment, if the controller may see "
                         "namespace %s)",
                         set->name, set->namespace, set->namespace);
    return xasprintf("kubectl get lease -A   (is a neoset-controller running, and may it see namespace %s?)",
                     set->namespace);
}

char *set_view_next(const struct set_view *set, const struct pod_views *pods,
                    const struct journals_view *journals)
{
    const struct pod_view *trouble = first_trouble(pods);
    bool is_rolling = set->is_rolling;
    bool is_held = is_rolling && set->fence > 0 && set->updated >= set->wanted - set->fence &&
                   !is_moving(set, pods, set->fence);
    if (set->is_deleting && set->is_adopting)
        return xasprintf("neosetctl continue -n %s   (it is on its way back to a StatefulSet)",
                         set->namespace);
    if (set->is_deleting)
        return xasprintf("kubectl get neo/%s -n %s -o yaml   (who holds a finalizer?)", set->name,
                         set->namespace);
    CLEANUP_FREE char *away = set_view_away(set, journals);
    if (away)
        return next_of_away(set, journals);
    if (!set_view_is_observed(set))
        return next_of_unseen(set, journals);
    if (set->is_adopting)
        return xasprintf("neosetctl continue -n %s   (its adoption is not finished: how to go on, or back)",
                         set->namespace);
    if (set->is_paused)
        return xasprintf("neosetctl resume %s -n %s", set->name, set->namespace);
    if (str_equal(set->phase, "Failed") && is_rolling && !set->is_way_back)
        return xasprintf("neosetctl undo %s -n %s   (back to the stable revision; or apply a good template)",
                         set->name, set->namespace);
    if (trouble)
        return next_of_trouble(set, trouble);
    if (str_equal(set->phase, "Failed"))
        return xasprintf("kubectl edit neo/%s -n %s   (what the message names is to be mended in the spec)",
                         set->name, set->namespace);
    if (is_held)
        return xasprintf("kubectl patch neo/%s -n %s --type merge -p "
                         "'{\"spec\":{\"updateStrategy\":{\"partition\":0}}}'   (lets the other pods follow)",
                         set->name, set->namespace);
    if (is_rolling || is_moving(set, pods, 0))
        return xasprintf("neosetctl status %s -n %s -w", set->name, set->namespace);
    return xasprintf("neosetctl history %s -n %s", set->name, set->namespace);
}
