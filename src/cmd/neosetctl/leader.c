/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/leader.h"

#include "base/time_text.h"
#include "control/lease.h"
#include "journal/verify.h"
#include "kube/object.h"

static const char lease_name[] = "neoset";
/* Where deploy/controller.yaml puts it, for those who may not list Leases everywhere. */
static const char usual_namespace[] = "neoset-system";

enum { LEASE_LENGTHS = 2, LENGTH_DEFAULT_S = 30, LENGTH_MAX_S = 3600 };

static int64_t renewed_us(const cJSON *lease)
{
    const char *text = json_path_str(lease, "spec", "renewTime", NULL);
    int64_t at_us = 0;
    return text && time_parse_rfc3339(text, &at_us, NULL) == 0 ? at_us : 0;
}

static int64_t length_us(const cJSON *lease)
{
    int64_t seconds = json_int64_or(json_get(lease, "spec"), "leaseDurationSeconds", LENGTH_DEFAULT_S);
    return MIN(MAX(seconds, 1), (int64_t)LENGTH_MAX_S) * US_PER_S;
}

/* The caller's, or NULL. */
static char *journal_of(const cJSON *lease)
{
    struct journal_head head;
    const char *text = kube_object_annotation(lease, LEASE_HEAD_ANNOTATION);
    if (journal_head_parse_json(text, &head, NULL) < 0)
        return NULL;
    return xstrndup(head.journal_id, sizeof head.journal_id);
}

/* The one that was renewed last: of several controllers, each with namespaces of its own, any may be ours. */
static const cJSON *newest(const cJSON *leases)
{
    const cJSON *found = NULL;
    const cJSON *lease = NULL;
    cJSON_ArrayForEach (lease, leases)
        if (str_equal(kube_object_name(lease), lease_name) && kube_object_namespace(lease) &&
            kube_object_annotation(lease, LEASE_HEAD_ANNOTATION) && renewed_us(lease) > 0 &&
            (!found || renewed_us(lease) > renewed_us(found)))
            found = lease;
    return found;
}

void ctl_leader_make(const cJSON *leases, int64_t now_us, struct ctl_leader *ret)
{
    *ret = (struct ctl_leader){0};
    const cJSON *lease = newest(leases);
    if (!lease)
        return;
    const char *holder = json_path_str(lease, "spec", "holderIdentity", NULL);
    const char *namespace = kube_object_namespace(lease);
    bool is_held = holder && *holder;
    ret->seen_us = renewed_us(lease);
    ret->is_here = is_held && now_us - ret->seen_us <= LEASE_LENGTHS * length_us(lease);
    if (ret->is_here)
        return;
    ret->journal = journal_of(lease);
    char at[TIME_TEXT_SIZE];
    time_format_seconds(ret->seen_us, at);
    /* Behind the name of the pod or host stands the run's nonce. */
    const char *end = is_held ? strrchr(holder, '_') : NULL;
    int length = (int)MIN(end ? (size_t)(end - holder) : strlen(is_held ? holder : ""), (size_t)253);
    ret->away = is_held ? xasprintf("it was last seen at %s as %.*s (renewing Lease %s/%s, every 5 s)", at,
                                    length, holder, namespace, lease_name)
                        : xasprintf("it was stopped, and was last seen at %s (Lease %s/%s)", at, namespace,
                                    lease_name);
    ret->next = xasprintf(
        "kubectl get lease,pods -n %s   (start neoset-controller again: it goes on where it was)", namespace);
}

static int list_leases(struct ctl_server *server, const char *namespace, cJSON **ret)
{
    CLEANUP_FREE char *path = kube_path(KUBE_LEASE, namespace, NULL, NULL);
    kube_path_add_query(&path, "fieldSelector", "metadata.name=neoset");
    /* From the server's cache: every node of a large cluster has a Lease. */
    kube_path_add_query(&path, "resourceVersion", "0");
    return ctl_get(server, path, "Leases", ret, NULL);
}

void ctl_leader_read(struct ctl_server *server, struct ctl_leader *ret)
{
    CLEANUP_JSON cJSON *list = NULL;
    if (list_leases(server, NULL, &list) == -ERROR_FORBIDDEN)
        (void)list_leases(server, usual_namespace, &list);
    ctl_leader_make(json_get(list, "items"), env_wall_us(server->env), ret);
}

void ctl_leader_done(struct ctl_leader *leader)
{
    free(leader->away);
    free(leader->next);
    free(leader->journal);
    *leader = (struct ctl_leader){0};
}
