/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl_continue.h"
#include "cmd/neosetctl_continue_resize.h"

#include "kube/object.h"
#include "neoset/migration.h"
#include "volume/keep.h"

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

static bool is_kept(const struct half_done *all, const char *namespace, const char *name)
{
    const cJSON *kept = NULL;
    cJSON_ArrayForEach (kept, all->kept)
        if (str_equal(kube_object_namespace(kept), namespace) &&
            str_equal(kube_object_annotation(kept, KEEP_ADOPTED_BY), name))
            return true;
    return false;
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

static bool row(struct sheet *sheet, const cJSON *object, const char *name, const char *stands)
{
    const char *namespace = kube_object_namespace(object);
    CLEANUP_FREE char *on = xasprintf("neosetctl adopt statefulset/%s -n %s", name, namespace);
    CLEANUP_FREE char *back = xasprintf("neosetctl adopt --undo %s -n %s", name, namespace);
    struct sheet_cell cells[] = {cell_text(namespace), cell_text(name), cell_text(stands), cell_text(on),
                                 cell_text(back)};
    return sheet_row(sheet, cells);
}

/* A NeoSet that waits for pods, or takes them over. */
static void add_neosets(struct sheet *sheet, const struct half_done *all)
{
    const cJSON *neoset = NULL;
    cJSON_ArrayForEach (neoset, all->neosets) {
        bool is_gone = false;
        CLEANUP_FREE char *adopts = migration_adopts(neoset, &is_gone);
        const char *name = kube_object_name(neoset);
        const cJSON *set = find(all->sets, kube_object_namespace(neoset), name);
        if (kube_object_is_deleting(neoset) && is_kept(all, kube_object_namespace(neoset), name))
            row(sheet, neoset, name, "the NeoSet is on its way out");
        else if (adopts && set && kube_object_is_deleting(set))
            row(sheet, neoset, name, "the StatefulSet is on its way out");
        else if (adopts && set)
            row(sheet, neoset, name, "the StatefulSet still has its pods");
        else if (adopts)
            row(sheet, neoset, name, "the pods are being taken over");
    }
}

/* A manifest whose NeoSet is not there: the way back was begun, or somebody deleted the NeoSet. */
static void add_kept(struct sheet *sheet, const struct half_done *all)
{
    const cJSON *kept = NULL;
    cJSON_ArrayForEach (kept, all->kept) {
        const char *name = kube_object_annotation(kept, KEEP_ADOPTED_BY);
        const char *namespace = kube_object_namespace(kept);
        if (!name || !keep_manifest(kept) || find(all->neosets, namespace, name))
            continue;
        row(sheet, kept, name,
            find(all->sets, namespace, name) ? "the StatefulSet is there again, its manifest is still kept"
                                             : "the pods belong to nobody: neither set is there");
    }
}

/* Growing volumes: there is one way only. */
static void add_resizes(struct sheet *sheet, const struct half_resizes *resizes)
{
    for (size_t i = 0; i < resizes->count; i++) {
        const struct half_resized *one = &resizes->items[i];
        const char *sizes = one->goal.sizes;
        CLEANUP_FREE char *stands =
            xasprintf("its volumes are half grown%s%s", sizes ? " to " : "", sizes ? sizes : "");
        CLEANUP_FREE char *on = xasprintf("neosetctl continue -n %s", one->namespace);
        struct sheet_cell cells[] = {cell_text(one->namespace), cell_text(one->name), cell_text(stands),
                                     cell_text(on), cell_text(NULL)};
        sheet_row(sheet, cells);
    }
}

int ctl_continue(struct ctl_server *server, struct out *out, const struct sheet_look *look,
                 int64_t *ret_count, struct error **err)
{
    static const struct sheet_column columns[] = {
        {.name = "namespace", .title = "NAMESPACE", .type = SHEET_TEXT, .where = IN_ALL},
        {.name = "name", .title = "NAME", .type = SHEET_TEXT, .where = IN_ALL},
        {.name = "stands", .title = "STANDS", .type = SHEET_TEXT, .where = IN_ALL},
        {.name = "go_on", .title = "GO ON", .type = SHEET_TEXT, .where = IN_ALL},
        {.name = "go_back", .title = "GO BACK", .type = SHEET_TEXT, .where = IN_ALL},
    };
    struct half_done all;
    struct half_resizes resizes = {0};
    int r = read_all(server, &all, err);
    if (r == 0)
        r = half_resizes_find(server, &resizes, err);
    if (r == 0) {
        struct sheet *sheet = sheet_begin(out, look, columns, ARRAY_SIZE(columns));
        add_neosets(sheet, &all);
        add_kept(sheet, &all);
        add_resizes(sheet, &resizes);
        *ret_count = sheet_end(sheet);
    }
    json_delete(all.neosets);
    json_delete(all.sets);
    json_delete(all.kept);
    half_resizes_done(&resizes);
    return r;
}
