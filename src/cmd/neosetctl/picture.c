/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/picture.h"

#include "kube/object.h"
#include "neoset/fact.h"
#include "neoset/template.h"
#include "volume/keep.h"

void ctl_picture_done(struct ctl_picture *picture)
{
    pod_views_done(&picture->pods);
    ctl_leader_done(&picture->leader);
    free(picture->recreates);
    json_delete(picture->object);
    json_delete(picture->pod_objects);
    *picture = (struct ctl_picture){0};
}

char *ctl_picture_recreates(const struct set_view *set, const cJSON *revisions)
{
    struct intern *pool = intern_make();
    struct revision_fact *from = revision_fact_make(pool, kube_object_find(revisions, set->stable_revision));
    struct revision_fact *to = revision_fact_make(pool, kube_object_find(revisions, set->target_revision));
    char *why = NULL;
    if (from && to && from->template_text && to->template_text) {
        struct template_diff diff;
        template_diff_make(from->template_text, to->template_text, &diff);
        why = diff.recreate ? xasprintf("%s changes", diff.recreate) : NULL;
        template_diff_done(&diff);
    }
    revision_fact_free(from);
    revision_fact_free(to);
    intern_free(pool);
    return why;
}

/* A NeoSet that goes while the manifest of a StatefulSet is kept for it is on its way back to that. */
static bool is_kept(const cJSON *revisions, const char *name)
{
    const cJSON *revision = NULL;
    cJSON_ArrayForEach (revision, revisions)
        if (kube_object_label(revision, KEEP_LABEL) &&
            str_equal(kube_object_annotation(revision, KEEP_ADOPTED_BY), name))
            return true;
    return false;
}

/* What is worth a look at the revisions, where they may be read. */
static void look_at_revisions(struct ctl_server *server, struct ctl_picture *picture)
{
    struct set_view *set = &picture->set;
    CLEANUP_JSON cJSON *revisions = NULL;
    if ((!set->is_rolling && !set->is_deleting) ||
        ctl_list(server, KUBE_REVISION, server->namespace, NULL, "ControllerRevisions", &revisions, NULL) < 0)
        return;
    set->is_adopting |= set->is_deleting && is_kept(revisions, set->name);
    if (set->is_rolling && !set->recreates)
        set->recreates = picture->recreates = ctl_picture_recreates(set, revisions);
}

static void look_at_leader(struct ctl_server *server, struct ctl_picture *picture)
{
    ctl_leader_read(server, &picture->leader);
    picture->set.is_led = picture->leader.is_here;
    picture->set.away = picture->leader.away;
    picture->set.away_next = picture->leader.next;
    picture->set.away_journal = picture->leader.journal;
    picture->set.seen_us = picture->leader.seen_us;
}

int ctl_picture_read(struct ctl_server *server, const char *name, struct ctl_picture *ret, struct error **err)
{
    *ret = (struct ctl_picture){0};
    int r = ctl_get_set(server, name, &ret->object, err);
    if (r < 0)
        return r;
    set_view_make(ret->object, &ret->set);
    CLEANUP_FREE char *selector = set_view_selector(ret->object);
    CLEANUP_FREE char *what = xasprintf("pods in namespace %s", server->namespace);
    r = ctl_list(server, KUBE_POD, server->namespace, selector, what, &ret->pod_objects, err);
    if (r < 0)
        return r;
    look_at_revisions(server, ret);
    look_at_leader(server, ret);
    ret->at_us = env_wall_us(server->env);
    pod_views_make(&ret->set, ret->pod_objects, ret->at_us, &ret->pods);
    return 0;
}
