/* SPDX-License-Identifier: Apache-2.0 */
#include "journal_workload.h"

#include <stdio.h>

enum { SETS = 1000, PODS = 5 };

/* b: begin, i: intent, a: applied (of the newest intent), w: wait_begin, e: wait_end, z: end. */
static const char shape[WORKLOAD_ENTRIES + 1] = "biaiaweiaiaweiaiaweiaweiaiaweiaweiaiawez";

static void fill_names(struct workload *workload, int64_t operation, int place)
{
    int64_t set = operation % SETS;
    snprintf(workload->name, sizeof(workload->name), "mysql-cluster-%03lld", (long long)set);
    snprintf(workload->pod, sizeof(workload->pod), "%s-%d", workload->name, place % PODS);
    snprintf(workload->version, sizeof(workload->version), "%lld", 1000000LL + workload->number);
}

static void fill_intent(struct workload *workload, struct journal_entry *entry, const char **ret_body)
{
    if (!workload->body[0]) {
        memset(workload->body, 'x', WORKLOAD_BODY_BYTES);
        memcpy(workload->body, "{\"spec\":{\"image\":\"", 18);
        memcpy(workload->body + WORKLOAD_BODY_BYTES - 3, "\"}}", 3);
    }
    snprintf(workload->detail, sizeof(workload->detail),
             "{\"fingerprint\":\"image %s\",\"owner\":\"rollout\"}", workload->version);
    snprintf(workload->audit_id, sizeof(workload->audit_id), "neo-0123456789abcdef-%lld-1",
             (long long)workload->number);
    entry->kind = JOURNAL_INTENT;
    entry->action = "update-in-place";
    entry->object = "Pod";
    entry->name = workload->pod;
    entry->uid = "4b5e1c3a-77aa-4d00-8000-00000000beef";
    entry->version = workload->version;
    entry->audit_id = workload->audit_id;
    entry->reason = "image mysql:8.0 -> mysql:8.1";
    entry->detail = workload->detail;
    *ret_body = workload->body;
}

void workload_next(struct workload *workload, struct journal_entry *ret, const char **ret_body,
                   int64_t *ret_operation, int64_t *ret_step)
{
    int64_t operation = workload->number / WORKLOAD_ENTRIES;
    int place = (int)(workload->number % WORKLOAD_ENTRIES);
    fill_names(workload, operation, place);
    *ret = (struct journal_entry){.namespace = "databases", .form = 1};
    *ret_body = NULL;
    *ret_operation = operation * WORKLOAD_ENTRIES;
    *ret_step = -1;
    switch (shape[place]) {
    case 'b':
        ret->kind = JOURNAL_BEGIN;
        ret->action = "rollout";
        ret->object = "NeoSet";
        ret->name = workload->name;
        ret->detail = "{\"from\":\"mysql:8.0\",\"to\":\"mysql:8.1\"}";
        break;
    case 'i':
        fill_intent(workload, ret, ret_body);
        break;
    case 'a':
        *ret = (struct journal_entry){.kind = JOURNAL_APPLIED,
                                      .http = 200,
                                      .attempt = 1,
                                      .uid = "4b5e1c3a-77aa-4d00-8000-00000000beef",
                                      .version = workload->version,
                                      .form = 1};
        *ret_step = workload->number - 1;
        break;
    case 'w':
    case 'e':
        ret->kind = shape[place] == 'w' ? JOURNAL_WAIT_BEGIN : JOURNAL_WAIT_END;
        ret->action = "ready";
        ret->object = "Pod";
        snprintf(workload->pod, sizeof(workload->pod), "%s-0", workload->name);
        ret->name = workload->pod;
        ret->detail = "{\"budget_us\":300000000}";
        break;
    default:
        *ret = (struct journal_entry){.kind = JOURNAL_END, .action = "completed", .form = 1};
        break;
    }
    workload->number++;
}
