/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/continue.h"
#include "cmd/neosetctl/continue_resize.h"
#include "cmd/neosetctl/report.h"

#include "audit/escape.h"
#include "kube/object.h"
#include "neoset/migration.h"
#include "volume/keep.h"
#include "volume/recreate.h"

#include <inttypes.h>

/* One namespace, or all. */
struct half_done {
    cJSON *neosets;
    cJSON *sets;
    cJSON *kept;
};

static const cJSON *find(const cJSON *list, const char *namespace, const char *name)
{
    const cJSON *object = NULL;
    cJSON_ArrayForEach (object, list)
        if (str_equal(kube_object_namespace(object), namespace) && str_equal(kube_object_name(object), name))
            return object;
    return NULL;
}

/* The manifest that was handed over to the NeoSet of this name; NULL: there is none. */
static const cJSON *find_handed_over(const struct half_done *all, const char *namespace, const char *name)
{
    const cJSON *kept = NULL;
    cJSON_ArrayForEach (kept, all->kept)
        if (str_equal(kube_object_namespace(kept), namespace) && !kube_object_is_deleting(kept) &&
            str_equal(kube_object_annotation(kept, KEEP_ADOPTED_BY), name) && keep_manifest(kept))
            return kept;
    return NULL;
}

static int read_all(struct ctl_server *server, struct half_done *ret, struct error **err)
{
    const char *namespace = server->all_namespaces ? NULL : server->namespace;
    *ret = (struct half_done){0};
    CLEANUP_ERROR struct error *own = NULL;
    int r = ctl_list(server, KUBE_NEOSET, namespace, NULL, "NeoSets", &ret->neosets, &own);
    if (r == -ERROR_UNSUPPORTED)
        r = 0; /* a cluster without NeoSets; volumes may grow there */
    if (r < 0 && err)
        *err = STEAL(own);
    if (r == 0)
        r = ctl_list(server, KUBE_STATEFULSET, namespace, NULL, "StatefulSets", &ret->sets, err);
    if (r == 0)
        r = ctl_list(server, KUBE_REVISION, namespace, KEEP_LABEL, "ControllerRevisions", &ret->kept, err);
    return r;
}

/* --- what is shown of each ------------------------------------------------------------------------------ */

/* Where it stands, what is done next, and the two ways: each a command and what that does. Strings are its
 * own, but for the first three. */
struct half {
    const char *namespace, *name;
    const char *what; /* "the adoption of StatefulSet" */
    char *stands, *next;
    char *on;
    char *back;      /* NULL: there is no way back */
    char *back_does; /* or why there is none */
};
struct halves {
    struct half *items;
    size_t count;
};

static void halves_done(struct halves *halves)
{
    for (size_t i = 0; i < halves->count; i++) {
        struct half *half = &halves->items[i];
        free(half->stands);
        free(half->next);
        free(half->on);
        free(half->back);
        free(half->back_does);
    }
    free(halves->items);
    *halves = (struct halves){0};
}

static void add(struct halves *halves, struct half half)
{
    halves->items = xreallocarray(halves->items, halves->count + 1, sizeof *halves->items);
    halves->items[halves->count++] = half;
}

/* stands, next and back_does are taken over. back_does NULL: there is no way back, as nothing is kept. */
static void add_adoption(struct halves *halves, const cJSON *object, const char *name, char *stands,
                         char *next, char *back_does)
{
    const char *namespace = kube_object_namespace(object);
    add(halves, (struct half){
                    .namespace = namespace,
                    .name = name,
                    .what = "the adoption of StatefulSet",
                    .stands = stands,
                    .next = next,
                    .on = xasprintf("neosetctl adopt statefulset/%s -n %s", name, namespace),
                    .back = back_does ? xasprintf("neosetctl adopt --undo %s -n %s", name, namespace) : NULL,
                    .back_does = back_does ? back_does
                                           : xstrdup("none: nobody kept the StatefulSet's "
                                                     "manifest")});
}

static int64_t pods_of(const cJSON *set)
{
    return json_int64_or(json_get(set, "status"), "replicas", 0);
}

/* NULL: there is no way back. */
static char *back_to_set(const char *name, const cJSON *kept)
{
    if (!kept)
        return NULL;
    return xasprintf(
        "NeoSet %s goes, its pods left behind; StatefulSet %s is made again, as it was, and takes "
        "them over; none is restarted",
        name, name);
}

/* --- adoptions ------------------------------------------------------------------------------------------ */

static void add_waiting(struct halves *halves, const cJSON *neoset, const cJSON *set)
{
    const char *name = kube_object_name(neoset);
    bool is_seen =
        json_int64_or(json_get(neoset, "status"), "observedGeneration", 0) >= kube_object_generation(neoset);
    add_adoption(
        halves, neoset, name,
        xasprintf("NeoSet %s is made, and paused; the StatefulSet still has its pods (%" PRId64 ")", name,
                  pods_of(set)),
        xasprintf("%sthe StatefulSet's manifest is kept in the cluster, then it is deleted with its "
                  "pods left behind, and neoset-controller takes them over",
                  is_seen ? "" : "neoset-controller must have seen the NeoSet (is it running?); then "),
        xasprintf("NeoSet %s is deleted; the StatefulSet and its pods are not touched", name));
}

/* It went with its pods, or leaves them behind: somebody else may have deleted it. */
static void add_leaving(struct halves *halves, const cJSON *neoset, const cJSON *set, const cJSON *kept)
{
    const char *name = kube_object_name(neoset);
    add_adoption(halves, neoset, name, xstrdup(keep_leaving_phrase(set, kept)),
                 xstrdup(kube_object_has_finalizer(set, "orphan")
                             ? "when it is gone, neoset-controller takes its pods over"
                             : "when it is gone, neoset-controller takes over the pods that are left, and "
                               "makes those that are not"),
                 back_to_set(name, kept));
}

static void add_taken_over(struct halves *halves, const cJSON *neoset, const cJSON *kept, bool is_gone)
{
    const char *name = kube_object_name(neoset);
    const cJSON *message = json_get(json_get(neoset, "status"), "message");
    const char *says = cJSON_IsString(message) ? message->valuestring : "";
    add_adoption(
        halves, neoset, name,
        xasprintf("the StatefulSet is gone, its pods run on; the pods are being taken over: NeoSet %s "
                  "has %" PRId64 " of %" PRId64 "%s%s",
                  name, pods_of(neoset), json_int64_or(json_get(neoset, "spec"), "replicas", 1),
                  *says ? "; it says: " : "", says),
        xstrdup(is_gone ? "neoset-controller takes over what is missing; then the NeoSet is let go (it "
                          "is paused until then)"
                        : "it is noted that the StatefulSet is gone, so that neoset-controller may "
                          "take its pods; then the NeoSet is let go (it is paused until then)"),
        back_to_set(name, kept));
}

/* A NeoSet that waits for pods, or takes them over. */
static void add_neosets(struct halves *halves, const struct half_done *all)
{
    const cJSON *neoset = NULL;
    cJSON_ArrayForEach (neoset, all->neosets) {
        bool is_gone = false;
        CLEANUP_FREE char *adopts = migration_adopts(neoset, &is_gone);
        const char *name = kube_object_name(neoset);
        const cJSON *set = find(all->sets, kube_object_namespace(neoset), name);
        const cJSON *kept = find_handed_over(all, kube_object_namespace(neoset), name);
        if (kube_object_is_deleting(neoset) && kept)
            add_adoption(
                halves, neoset, name,
                xstrdup("it goes back: the NeoSet is on its way out, its manifest as a StatefulSet is "
                        "kept"),
                xstrdup("only back: the NeoSet cannot be kept any more"),
                xasprintf("when the NeoSet is gone, StatefulSet %s is made again, as it was, and takes "
                          "its pods over",
                          name));
        else if (adopts && set && kube_object_is_deleting(set))
            add_leaving(halves, neoset, set, kept);
        else if (adopts && set)
            add_waiting(halves, neoset, set);
        else if (adopts)
            add_taken_over(halves, neoset, kept, is_gone);
    }
}

/* A manifest whose NeoSet is not there: the way back was begun, or somebody deleted the NeoSet. */
static void add_kept(struct halves *halves, const struct half_done *all)
{
    const cJSON *kept = NULL;
    cJSON_ArrayForEach (kept, all->kept) {
        const char *name = kube_object_annotation(kept, KEEP_ADOPTED_BY);
        const char *namespace = kube_object_namespace(kept);
        if (!name || !keep_manifest(kept) || find(all->neosets, namespace, name))
            continue;
        const char *object = kube_object_name(kept);
        if (find(all->sets, namespace, name))
            add_adoption(
                halves, kept, name,
                xasprintf("it goes back: the StatefulSet is there again, its manifest is still kept "
                          "(ControllerRevision %s)",
                          object),
                xstrdup("only if you want the NeoSet after all: the adoption begins anew"),
                xstrdup("when the StatefulSet has its pods, the kept manifest is deleted; that is all"));
        else
            add_adoption(
                halves, kept, name,
                xasprintf("the pods belong to nobody, and run on: neither set is there; the manifest is kept "
                          "(ControllerRevision %s)",
                          object),
                xasprintf(
                    "NeoSet %s is made from the kept manifest, and neoset-controller takes the pods over",
                    name),
                xasprintf("StatefulSet %s is made again from it, and takes the pods over", name));
    }
}

/* --- growing volumes ------------------------------------------------------------------------------------ */

/* Where it stands, and what comes next. Strings, the caller's. */
struct phase {
    char *stands, *next;
};

/* The set that was made again has what was to be: else somebody else made it, from a manifest of before. */
static bool has_sizes_of(const cJSON *set, const cJSON *kept)
{
    CLEANUP_JSON cJSON *begun = keep_recreation(kept);
    CLEANUP_JSON cJSON *raised = json_copy(set);
    recreate_raise_sizes(raised, begun);
    CLEANUP_FREE char *has = recreate_sizes_text(set);
    CLEANUP_FREE char *wanted = recreate_sizes_text(raised);
    return str_equal(has, wanted);
}

static struct phase phase_of_gone(const cJSON *kept, bool recovers)
{
    if (!kept)
        return (struct phase){xstrdup("the StatefulSet is not there, and nobody kept its manifest"),
                              xstrdup("there is nothing to go on with: it is only closed")};
    return (struct phase){
        xasprintf("its claims are asked %s; the StatefulSet is deleted, its pods run on and are nobody's",
                  recovers ? "for less" : "to grow"),
        xasprintf("it is made again from the kept manifest with the %s sizes, and takes its pods over",
                  recovers ? "smaller" : "larger")};
}

static struct phase phase_of_leaving(const cJSON *set, const cJSON *kept, bool recovers)
{
    return (struct phase){
        xasprintf("its claims are asked %s; %s", recovers ? "for less" : "to grow",
                  keep_leaving_phrase(set, kept)),
        kept ? xasprintf("it is made again from the kept manifest with the %s sizes, and takes over the pods "
                         "that it left behind",
                         recovers ? "smaller" : "larger")
             : xstrdup("when it is gone, there is nothing to go on with: it is only closed")};
}

static struct phase phase_of_made_again(const cJSON *set, const cJSON *kept, const char *begins)
{
    if (has_sizes_of(set, kept))
        return (struct phase){
            xstrdup("the StatefulSet is made again with its new sizes, its manifest is still kept"),
            xstrdup("it is seen that it has its pods, then the kept manifest is deleted")};
    return (struct phase){
        xstrdup("somebody made the StatefulSet again without its new sizes, its manifest is still kept"),
        xasprintf("the kept manifest is deleted, and it begins anew: %s", begins)};
}

static struct phase phase_of(const struct half_done *all, const struct half_resized *one)
{
    const cJSON *set = find(all->sets, one->namespace, one->name);
    const cJSON *kept = keep_find_growing(all->kept, one->namespace, one->name, set);
    bool recovers = one->goal.recovers;
    const char *begins =
        recovers
            ? "claims that ask for too much are asked for less, then the StatefulSet is deleted with its "
              "pods left behind and made again with these sizes, if it has not got them yet"
            : "claims that are too small grow, then the StatefulSet is deleted with its pods left behind "
              "and made again with the larger sizes, if it has not got them yet";
    if (!set)
        return phase_of_gone(kept, recovers);
    if (kube_object_is_deleting(set))
        return phase_of_leaving(set, kept, recovers);
    if (kept && !keep_is_of(kept, set))
        return phase_of_made_again(set, kept, begins);
    return (struct phase){xstrdup("the StatefulSet is there, and has its pods"), xstrdup(begins)};
}

/* There is one way only. */
static void add_resizes(struct halves *halves, const struct half_done *all,
                        const struct half_resizes *resizes)
{
    for (size_t i = 0; i < resizes->count; i++) {
        const struct half_resized *one = &resizes->items[i];
        struct phase phase = phase_of(all, one);
        CLEANUP_FREE char *half = half_resized_text(one);
        add(halves,
            (struct half){.namespace = one->namespace,
                          .name = one->name,
                          .what = "growing the volumes of StatefulSet",
                          .stands = xasprintf("%s: %s", half, phase.stands),
                          .next = phase.next,
                          .on = xasprintf("neosetctl continue -n %s", one->namespace),
                          .back_does = xstrdup(
                              one->goal.recovers
                                  ? "none: this is the way back already"
                                  : "none: a volume never shrinks (`neosetctl resize recover -f FILE` asks "
                                    "for less where the storage cannot give as much)")});
        free(phase.stands);
    }
}

/* --- showing -------------------------------------------------------------------------------------------- */

static void show_for_people(struct out *out, const struct sheet_look *look, const struct halves *halves)
{
    for (size_t i = 0; i < halves->count; i++) {
        const struct half *half = &halves->items[i];
        CLEANUP_FREE char *title =
            xasprintf("%s in namespace %s: %s is not finished", half->name, half->namespace, half->what);
        if (i > 0)
            buf_add_char(&out->text, '\n');
        escape_plain(&out->text, title);
        buf_add_char(&out->text, '\n');
        ctl_add_field(&out->text, look, "stands", half->stands);
        ctl_add_command(&out->text, "go on", half->on);
        ctl_add_field(&out->text, look, "", half->next);
        if (half->back)
            ctl_add_command(&out->text, "go back", half->back);
        ctl_add_field(&out->text, look, half->back ? "" : "go back", half->back_does);
    }
}

static void show_for_programs(struct out *out, const struct sheet_look *look, const struct halves *halves)
{
    static const struct sheet_column columns[] = {
        {.name = "namespace", .title = "NAMESPACE", .type = SHEET_TEXT, .where = IN_ALL},
        {.name = "name", .title = "NAME", .type = SHEET_TEXT, .where = IN_ALL},
        {.name = "stands", .title = "STANDS", .type = SHEET_TEXT, .where = IN_ALL},
        {.name = "go_on", .title = "GO ON", .type = SHEET_TEXT, .where = IN_ALL},
        {.name = "go_back", .title = "GO BACK", .type = SHEET_TEXT, .where = IN_ALL},
        {.name = "next", .title = "NEXT", .type = SHEET_TEXT, .where = IN_ALL},
    };
    struct sheet *sheet = sheet_begin(out, look, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < halves->count; i++) {
        const struct half *half = &halves->items[i];
        struct sheet_cell cells[] = {cell_text(half->namespace), cell_text(half->name),
                                     cell_text(half->stands),    cell_text(half->on),
                                     cell_text(half->back),      cell_text(half->next)};
        sheet_row(sheet, cells);
    }
    sheet_end(sheet);
}

int ctl_continue(struct ctl_server *server, struct out *out, const struct sheet_look *look,
                 int64_t *ret_count, struct error **err)
{
    struct half_done all;
    struct half_resizes resizes = {0};
    struct halves halves = {0};
    int r = read_all(server, &all, err);
    if (r == 0)
        r = half_resizes_find(server, &resizes, err);
    if (r == 0) {
        add_neosets(&halves, &all);
        add_kept(&halves, &all);
        add_resizes(&halves, &all, &resizes);
        *ret_count = (int64_t)halves.count;
        if (ctl_is_text(look))
            show_for_people(out, look, &halves);
        else
            show_for_programs(out, look, &halves);
    }
    halves_done(&halves);
    json_delete(all.neosets);
    json_delete(all.sets);
    json_delete(all.kept);
    half_resizes_done(&resizes);
    return r;
}
