/* SPDX-License-Identifier: Apache-2.0
 *
 * The operations of the gateway's steps: opened by their first intent, ended when no step of them is open any
 * more. */
#include "control/gateway_parts.h"

#include <utlist.h>

static bool has_flights(const struct workload *workload, int64_t operation)
{
    for (const struct flight *flight = workload ? workload->flights : NULL; flight;
         flight = flight->workload_next)
        if (flight->operation == operation)
            return true;
    return false;
}

static void append_end(struct gateway *gateway, int64_t operation, const char *outcome, const char *reason)
{
    PRE(step_is_operation_outcome(outcome));
    journal_append(gateway->options.journal,
                   &(struct journal_entry){
                       .kind = JOURNAL_END, .operation = operation, .action = outcome, .reason = reason});
    journal_commit_soon(gateway->options.journal);
}

static struct pending_end *find_pending_end(const struct gateway *gateway, int64_t operation)
{
    struct pending_end *end = NULL;
    DL_FOREACH (gateway->pending_ends, end) {
        if (end->operation == operation)
            return end;
    }
    return NULL;
}

void gateway_drop_pending_end(struct gateway *gateway, struct pending_end *end)
{
    DL_DELETE(gateway->pending_ends, end);
    free(end->outcome);
    free(end->reason);
    free(end);
}

static void end_operation(struct gateway *gateway, const struct workload *workload, int64_t operation,
                          const char *outcome, const char *reason)
{
    if (!has_flights(workload, operation)) {
        append_end(gateway, operation, outcome, reason);
        return;
    }
    struct pending_end *end = find_pending_end(gateway, operation);
    if (!end) {
        end = xcalloc(1, sizeof(*end));
        end->operation = operation;
        DL_APPEND(gateway->pending_ends, end);
    }
    str_replace(&end->outcome, outcome);
    str_replace(&end->reason, reason);
}

void gateway_end_pending(struct gateway *gateway, const struct workload *workload, int64_t operation)
{
    struct pending_end *end = find_pending_end(gateway, operation);
    if (!end || has_flights(workload, operation))
        return;
    append_end(gateway, operation, end->outcome, end->reason);
    gateway_drop_pending_end(gateway, end);
}

void gateway_end_operation(struct gateway *gateway, const char *kind, enum kube_resource resource,
                           const char *namespace, const char *name, const char *outcome, const char *reason)
{
    const struct journal_open_operation *operation = journal_open_operation_find(
        gateway->options.journal, kind, kube_resource_info(resource)->kind, namespace, name);
    if (operation)
        end_operation(gateway, gateway_find_workload(gateway, resource, namespace, name), operation->seq,
                      outcome, reason);
}

/* What has no goal in words (a repair, a clean-up) is stored with an empty one. */
static bool has_goal(const struct journal_open_operation *open, const struct step_request *request)
{
    return str_equal(open->go_to ? open->go_to : "", request->go_to ? request->go_to : "");
}

int64_t gateway_take_operation(struct gateway *gateway, const struct step_request *request)
{
    struct journal *journal = gateway->options.journal;
    const char *object = kube_resource_info(request->operation_resource)->kind;
    const struct journal_open_operation *open = journal_open_operation_find(
        journal, request->operation_kind, object, request->operation_namespace, request->operation_name);
    if (open && has_goal(open, request)) {
        struct pending_end *end = find_pending_end(gateway, open->seq);
        if (end)
            gateway_drop_pending_end(gateway, end);
        return open->seq;
    }
    if (open) {
        const struct workload *workload = gateway_find_workload(
            gateway, request->operation_resource, request->operation_namespace, request->operation_name);
        if (has_flights(workload, open->seq))
            return 0;
        append_end(gateway, open->seq, request->failed_before ? "failed" : "superseded",
                   request->failed_before);
    }
    CLEANUP_JSON cJSON *detail = json_new_object();
    json_add_str(detail, JOURNAL_DETAIL_FROM, request->come_from ? request->come_from : "");
    json_add_str(detail, JOURNAL_DETAIL_TO, request->go_to ? request->go_to : "");
    CLEANUP_FREE char *detail_text = json_print(detail);
    return journal_append(journal, &(struct journal_entry){.kind = JOURNAL_BEGIN,
                                                           .action = request->operation_kind,
                                                           .object = object,
                                                           .namespace = request->operation_namespace,
                                                           .name = request->operation_name,
                                                           .detail = detail_text});
}
