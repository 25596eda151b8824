/* SPDX-License-Identifier: Apache-2.0 */
#include "plants.h"

#include "base/plant.h"

static const struct plant plants[] = {
    {"budget-forgets-terminating", 1, "pods that are terminating do not count as unavailable"},
    {"drained-counts-as-available", 1, "a pod whose gate we have closed still counts as available"},
    {"window-forgets-min-ready", 1, "a pod is available before its minReadySeconds are over"},
    {"no-canary", 2, "a new target is not tried on one pod first"},
    {"healing-without-bound", 2, "broken pods are moved however many moved ones are down"},
    {"patched-until-proven", 3, "a pod on the target is patched again while its update is not proven"},
    {"terminating-is-deleted-again", 3, "a pod that is terminating is deleted again"},
    {"healing-crosses-fence", 4, "broken pods below the fence are healed"},
    {"created-on-target-below-fence", 4, "a missing pod below the fence comes up on the target"},
    {"created-on-unproven-target", 4, "a missing pod that never left stable comes up on the target"},
    {"deletes-without-grace", 5, "pods are deleted with grace period 0 while they run"},
    {"second-name", 5, "a pod that is missing is made under another name"},
    {"status-written-each-turn", 6, "status is written whether it changed or not"},
    {"renumbered-each-turn", 6, "the newest revision gets a higher number each turn"},
    {"gate-written-again", 6, "the gate of a pod in service is written again"},
    {"noise-makes-revisions", 6, "a template that is spelt otherwise is a new version"},
    {"healing-held-to-stage", 7, "broken pods below the stage are not healed"},
    {"open-steps-forgotten", 7, "a controller that starts takes no open step up"},
    {"no-gate-on-new-pod", 7, "the gate of a new pod is never opened"},
    {"history-never-cut", 8, "unused revisions are kept for ever"},
    {"history-cuts-used", 8, "revisions that pods run are cut"},
    {"pause-ignored", 9, "updates are started while the set is paused"},
    {"deadline-runs-in-pause", 9, "deadlines do not stand still in a pause"},
    {"deadline-restarted-by-a-restart", 9, "a deadline begins anew with each start"},
    {"status-ahead", 10, "status counts pods as ready that are not"},
    {"write-before-decision", 10, "a pod is moved before status allows it"},
    {"stable-is-not-named", 10, "the stable revision is not among those to go back to"},
    {"target-is-named", 10, "a target that no pod has proven is among those to go back to"},
    {"stage-falls-over-nothing", 10, "the stage falls when nothing was done yet"},
    {"stage-falls-over-missing", 10, "the stage falls while a pod above it is missing"},
    {"sent-before-durable", 11, "a request leaves before its intent is on disk"},
    {"resent-without-resolving", 11, "what was not answered is sent again without a reading"},
    {"attempts-not-closed", 11, "a step is sent again and its last attempt is not closed"},
    {"no-upkeep-in-pause", 12, "gates stay closed in a pause"},
    {"abandoned-drain-stays", 12, "a pod that was drained and is not updated stays out of service"},
    {"eligibility-from-stable", 13, "what changes is taken from stable, not from what the pod carries"},
    {"only-first-image-patched", 13, "of several changed images only the first is patched"},
    {"removed-keys-stay", 13, "labels and annotations that the new template has not stay"},
    {"no-gate-in-new-pods", 13, "new pods come without our gate"},
    {"completion-by-image-id", 14, "another imageID alone is taken as the proof"},
    {"completion-by-new-container", 14, "another containerID alone is taken as the proof"},
    {"completion-by-waiting", 14, "a pod that is ready again is taken as done"},
    {"done-pods-moved-again", 15, "a pod that is done is moved once more"},
    {"unready-pods-replaced", 15, "a pod that worked and broke is deleted"},
    {"claims-are-fought-over", 16, "two commands that want different sizes answer each other for ever"},
    {"larger-claims-are-led-back", 16, "a claim that is larger than its template is lowered"},
    {"recovers-unasked", 16, "a converge leads claims back that could not grow"},
    {"young-pods-do-not-matter", 17, "a set goes while its pods are younger than the collector's picture"},
    {"canary-in-one-step", 17, "pods below the partition come back on the newest version"},
    {"kept-is-dropped-at-once", 18, "what is kept is dropped while another's delete may arrive"},
    {"template-as-declared", 18, "a restart that the manifest does not know is not kept"},
    {"abandoned-stays-so", 19, "a set whose caller never comes back is not made again"},
    {"a-gap-of-others-is-left", 19, "who finds a set gone that another took says that there is none"},
    {"grows-before-the-proof", 20, "claims grow before the server has agreed to the rest"},
    {"later-templates-may-shrink", 20, "only of the first template a smaller size is refused"},
    {"managers-are-not-given-back", 21, "the fields of the set that was made again are neosetctl's"},
    {"declared-in-our-own-name", 21, "sizes are declared in the name of neosetctl"},
    {"adoption-is-not-awaited", 21, "a command is done before the set has its pods"},
    {"scaling-on-its-way-out-is-lost", 22, "who scales a set on its way out is not heard"},
    {"replicas-as-declared", 22, "the set is made again with the manifest's replicas"},
};

size_t plant_count(void)
{
    return ARRAY_SIZE(plants);
}

const struct plant *plant_at(size_t index)
{
    PRE(index < ARRAY_SIZE(plants));
    return &plants[index];
}

const struct plant *plant_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(plants); i++)
        if (strcmp(plants[i].name, name) == 0)
            return &plants[i];
    return NULL;
}

bool plant_set(const char *name)
{
#ifdef PLANTED
    plant_choose(name);
    return true;
#else
    (void)name;
    return false;
#endif
}
