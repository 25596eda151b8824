/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/resize_converge.h"

#include "base/time_text.h"
#include "cmd/manifest.h"
#include "cmd/neosetctl/converge.h"
#include "kube/object.h"

/* The StatefulSets of -f, each with its namespace. */
struct sets {
    struct manifests manifests;
    struct ctl_converge common;
    cJSON **items; /* among the manifests */
    size_t count;
};

static bool is_set(const cJSON *object)
{
    return str_equal(json_str(object, "kind"), "StatefulSet") &&
           str_equal(json_str(object, "apiVersion"), "apps/v1");
}

static int read_options(const struct ctl_resize *run, struct ctl_converge *ret, struct error **err)
{
    *ret = (struct ctl_converge){.server = run->server,
                                 .out = run->out,
                                 .look = run->look,
                                 .field_manager = option_text(run->options, "field-manager"),
                                 .is_forced = option_flag(run->options, "force-conflicts"),
                                 .unready_will_do = option_flag(run->options, "allow-degraded"),
                                 .waits_for_file_system = option_flag(run->options, "wait-for-filesystem")};
    int r = duration_parse(option_text(run->options, "timeout"), &ret->limit_us, err);
    return r == -ERROR_INVALID ? error_wrap(err, -ERROR_USAGE, "--timeout") : r;
}

static int read_sets(const struct ctl_resize *run, struct sets *ret, struct error **err)
{
    *ret = (struct sets){0};
    int r = read_options(run, &ret->common, err);
    if (r == 0)
        r = manifests_read(run->options, &ret->manifests, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < ret->manifests.count; i++) {
        cJSON *object = ret->manifests.items[i].object;
        if (!is_set(object))
            continue;
        if (!kube_object_namespace(object))
            json_set_str(json_ensure_object(object, "metadata"), "namespace", run->server->namespace);
        ret->items = xreallocarray(ret->items, ret->count + 1, sizeof(cJSON *));
        ret->items[ret->count++] = object;
    }
    r = manifests_check_unique(&ret->manifests, err);
    if (r == 0 && ret->count == 0)
        return error_set(err, ERROR_INVALID,
                         "no StatefulSet (apps/v1) is among the %zu object%s of -f: there is nothing to grow",
                         ret->manifests.count, ret->manifests.count == 1 ? "" : "s");
    return r;
}

static void sets_done(struct sets *sets)
{
    manifests_done(&sets->manifests);
    free(sets->items);
}

static struct ctl_converge converge_of(const struct sets *sets, size_t i)
{
    struct ctl_converge one = sets->common;
    one.desired = sets->items[i];
    one.namespace = kube_object_namespace(sets->items[i]);
    one.name = kube_object_name(sets->items[i]);
    return one;
}

int ctl_resize_plan(const struct ctl_resize *run, struct error **err)
{
    struct sets sets;
    int r = read_sets(run, &sets, err);
    for (size_t i = 0; r == 0 && i < sets.count; i++) {
        struct ctl_converge one = converge_of(&sets, i);
        r = ctl_converge_plan(&one, err);
    }
    sets_done(&sets);
    return r;
}

static int converge_all(const struct ctl_resize *run, bool recovers, struct error **err)
{
    struct sets sets;
    int r = read_sets(run, &sets, err);
    sets.common.recovers = recovers;
    /* One that is refused keeps all of them from being begun. */
    for (size_t i = 0; r == 0 && sets.count > 1 && i < sets.count; i++) {
        struct ctl_converge one = converge_of(&sets, i);
        r = ctl_converge_check(&one, err);
    }
    for (size_t i = 0; r == 0 && i < sets.count; i++) {
        struct ctl_converge one = converge_of(&sets, i);
        r = ctl_converge(&one, err);
    }
    sets_done(&sets);
    return r;
}

int ctl_resize_converge(const struct ctl_resize *run, struct error **err)
{
    return converge_all(run, false, err);
}

int ctl_resize_recover(const struct ctl_resize *run, struct error **err)
{
    return converge_all(run, true, err);
}
