/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/continue_resize.h"

#include "cmd/neosetctl/converge.h"
#include "cmd/neosetctl/session.h"
#include "journal/reader.h"
#include "kube/object.h"
#include "volume/converge.h"
#include "volume/keep.h"

enum { RESIZES_MAX = 1000 };

static const struct half_resizes none;

void half_resizes_done(struct half_resizes *resizes)
{
    for (size_t i = 0; i < resizes->count; i++) {
        free(resizes->items[i].namespace);
        free(resizes->items[i].name);
        converge_goal_done(&resizes->items[i].goal);
        free(resizes->items[i].come_from);
    }
    free(resizes->items);
    *resizes = none;
}

/* --- finding -------------------------------------------------------------------------------------------- */

/* Made when it is not there; NULL: there are too many. */
static struct half_resized *need(struct half_resizes *resizes, const char *namespace, const char *name)
{
    for (size_t i = 0; i < resizes->count; i++)
        if (str_equal(resizes->items[i].namespace, namespace) && str_equal(resizes->items[i].name, name))
            return &resizes->items[i];
    if (resizes->count == RESIZES_MAX)
        return NULL;
    resizes->items = xreallocarray(resizes->items, resizes->count + 1, sizeof(*resizes->items));
    resizes->items[resizes->count] =
        (struct half_resized){.namespace = xstrdup(namespace), .name = xstrdup(name)};
    return &resizes->items[resizes->count++];
}

static int find_kept(struct half_resizes *resizes, struct ctl_server *server, struct error **err)
{
    CLEANUP_JSON cJSON *kept = NULL;
    int r = ctl_list(server, KUBE_REVISION, server->all_namespaces ? NULL : server->namespace, KEEP_LABEL,
                     "ControllerRevisions", &kept, err);
    const cJSON *revision = NULL;
    cJSON_ArrayForEach (revision, kept) {
        const char *namespace = kube_object_namespace(revision);
        const char *name = kube_object_name(keep_growing(revision));
        if (namespace && name)
            (void)need(resizes, namespace, name);
    }
    return r;
}

static bool take_operation(void *context, const struct journal_operation_record *operation)
{
    struct half_resized *found = need(context, operation->namespace, operation->name);
    if (found && !found->goal.sizes) {
        converge_goal_read(operation->go_to, &found->goal);
        found->come_from = xstrdup(operation->come_from);
    }
    return true;
}

static int find_journaled(struct half_resizes *resizes, const struct ctl_server *server, struct error **err)
{
    CLEANUP_FREE char *path = ctl_session_find_journal();
    CLEANUP_JOURNAL_READER struct journal_reader *reader = NULL;
    CLEANUP_ERROR struct error *own = NULL;
    if (!path)
        return 0;
    int r = journal_reader_open(path, &reader, &own);
    if (r == -ERROR_NOT_FOUND)
        return 0; /* nothing was ever written with it */
    struct journal_operation_filter filter = {.kind = CONVERGE_OPERATION,
                                              .object = kube_resource_info(KUBE_STATEFULSET)->kind,
                                              .namespace = server->all_namespaces ? NULL : server->namespace,
                                              .outcome = "open"};
    if (r == 0)
        r = journal_read_operations(reader, &filter, take_operation, resizes, &own);
    return r < 0 ? ctl_session_journal_unusable(own, err) : 0;
}

int half_resizes_find(struct ctl_server *server, struct half_resizes *ret, struct error **err)
{
    *ret = none;
    int r = find_kept(ret, server, err);
    return r == 0 ? find_journaled(ret, server, err) : r;
}

/* --- ending --------------------------------------------------------------------------------------------- */

char *half_resized_text(const struct half_resized *one)
{
    const char *sizes = one->goal.sizes;
    return xasprintf("its volumes are half %s%s%s", one->goal.recovers ? "led back" : "grown",
                     sizes ? " to " : "", sizes ? sizes : "");
}

static void say(struct out *out, const struct half_resized *one)
{
    CLEANUP_FREE char *half = half_resized_text(one);
    CLEANUP_FREE char *line =
        xasprintf("StatefulSet %s in namespace %s: %s, it is gone on with", one->name, one->namespace, half);
    out_say(out, line);
}

static int end_one(const struct half_resized *one, const struct half_resizes_end *how, struct error **err)
{
    say(how->out, one);
    return ctl_converge(&(struct ctl_converge){.server = how->server,
                                               .out = how->out,
                                               .look = how->look,
                                               .namespace = one->namespace,
                                               .name = one->name,
                                               .sizes = one->goal.sizes,
                                               .waits_for_file_system = one->goal.waits_for_file_system,
                                               .unready_will_do = one->goal.unready_will_do,
                                               .recovers = one->goal.recovers,
                                               .come_from = one->come_from,
                                               .limit_us = how->limit_us},
                        err);
}

/* Says how many were not begun. */
static void count_rest(size_t rest, struct error **err)
{
    CLEANUP_ERROR struct error *first = STEAL(*err);
    error_set(err, ERROR_TIMED_OUT, "%s (%zu other%s not begun)", error_text(first), rest,
              rest == 1 ? " was" : "s were");
}

int half_resizes_end(const struct half_resizes *resizes, const struct half_resizes_end *how,
                     struct error **err)
{
    int result = 0;
    CLEANUP_ERROR struct error *newest = NULL;
    for (size_t i = 0; i < resizes->count && result != -ERROR_TIMED_OUT; i++) {
        CLEANUP_ERROR struct error *own = NULL;
        int r = end_one(&resizes->items[i], how, &own);
        if (r == 0)
            continue;
        if (newest)
            how->say(how->context, error_text(newest));
        error_free(newest);
        newest = STEAL(own);
        result = r;
        if (r == -ERROR_TIMED_OUT && i + 1 < resizes->count)
            count_rest(resizes->count - i - 1, &newest);
    }
    if (result < 0 && err)
        *err = STEAL(newest);
    return result;
}
