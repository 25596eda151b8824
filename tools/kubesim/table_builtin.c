/* SPDX-License-Identifier: Apache-2.0
 *
 * Columns and cells of the built-in kinds, as the real server prints them. */
#include "kubesim/table.h"

static void add_text(cJSON *cells, const char *text, const char *fallback)
{
    json_append_str(cells, text && *text ? text : fallback);
}

static void add_name(cJSON *cells, const cJSON *object)
{
    add_text(cells, meta_str(object, "name"), "");
}

static void add_age(const struct kubesim *sim, cJSON *cells, const cJSON *object)
{
    CLEANUP_FREE char *age = table_age(sim, meta_str(object, "creationTimestamp"));
    json_append_str(cells, age);
}

/* --- pods
 * ------------------------------------------------------------------------------------------------------- */

struct pod_summary {
    int ready;
    int total;
    int64_t restarts;
    char *reason;
    char *last_restart; /* finishedAt of the youngest */
};

/* A waiting or terminated reason of one container, else NULL; the caller's. */
static char *container_reason(const cJSON *status)
{
    const char *waiting = json_path_str(status, "state", "waiting", "reason", NULL);
    const cJSON *terminated = json_path(status, "state", "terminated", NULL);
    const char *reason = json_str(terminated, "reason");
    if (waiting && *waiting)
        return xstrdup(waiting);
    if (reason && *reason)
        return xstrdup(reason);
    if (!terminated)
        return NULL;
    int64_t signal = json_int64_or(terminated, "signal", 0);
    return signal ? xasprintf("Signal:%lld", (long long)signal)
                  : xasprintf("ExitCode:%lld", (long long)json_int64_or(terminated, "exitCode", 0));
}

static void note_restart(struct pod_summary *summary, const cJSON *status)
{
    summary->restarts += json_int64_or(status, "restartCount", 0);
    const char *finished = json_path_str(status, "lastState", "terminated", "finishedAt", NULL);
    if (finished && (!summary->last_restart || strcmp(finished, summary->last_restart) > 0))
        str_replace(&summary->last_restart, finished);
}

/* True while an init container is still in the way. */
static bool summarize_init(const cJSON *pod, struct pod_summary *summary)
{
    int index = 0;
    int total = cJSON_GetArraySize(json_path(pod, "spec", "initContainers", NULL));
    const cJSON *status;
    cJSON_ArrayForEach (status, json_path(pod, "status", "initContainerStatuses", NULL)) {
        note_restart(summary, status);
        const cJSON *spec = cJSON_GetArrayItem(json_path(pod, "spec", "initContainers", NULL), index);
        bool sidecar = str_equal(json_str(spec, "restartPolicy"), "Always");
        const cJSON *terminated = json_path(status, "state", "terminated", NULL);
        index++;
        if ((terminated && json_int64_or(terminated, "exitCode", 0) == 0) ||
            (sidecar && json_bool_or(status, "started", false))) {
            summary->total += sidecar;
            summary->ready += sidecar && json_bool_or(status, "ready", false);
            continue;
        }
        CLEANUP_FREE char *reason = container_reason(status);
        bool plain = !reason || strcmp(reason, "PodInitializing") == 0;
        free(summary->reason);
        summary->reason = plain ? xasprintf("Init:%d/%d", index - 1, total) : xasprintf("Init:%s", reason);
        return true;
    }
    return false;
}

static void summarize_containers(const cJSON *pod, struct pod_summary *summary)
{
    bool running = false;
    const cJSON *list = json_path(pod, "status", "containerStatuses", NULL);
    for (const cJSON *status = list && list->child ? list->child->prev : NULL; status;
         status = status == list->child ? NULL : status->prev) {
        note_restart(summary, status);
        CLEANUP_FREE char *reason = container_reason(status);
        if (reason) {
            free(summary->reason);
            summary->reason = STEAL(reason);
        } else if (json_path(status, "state", "running", NULL) && json_bool_or(status, "ready", false)) {
            running = true;
            summary->ready++;
        }
    }
    if (str_equal(summary->reason, "Completed") && running)
        str_replace(&summary->reason, "Running");
}

static void summarize_pod(const cJSON *pod, struct pod_summary *summary)
{
    const char *reason = json_path_str(pod, "status", "reason", NULL);
    const char *phase = json_path_str(pod, "status", "phase", NULL);
    summary->total = cJSON_GetArraySize(json_path(pod, "spec", "containers", NULL));
    summary->reason = xstrdup(reason && *reason ? reason : phase ? phase : "Unknown");
    if (!summarize_init(pod, summary))
        summarize_containers(pod, summary);
    if (meta_is_deleting(pod))
        str_replace(&summary->reason, str_equal(reason, "NodeLost") ? "Unknown" : "Terminating");
}

static void add_gates(cJSON *cells, const cJSON *pod)
{
    int total = 0;
    int open = 0;
    const cJSON *gate;
    cJSON_ArrayForEach (gate, json_path(pod, "spec", "readinessGates", NULL)) {
        total++;
        const cJSON *condition;
        cJSON_ArrayForEach (condition, json_path(pod, "status", "conditions", NULL))
            if (str_equal(json_str(condition, "type"), json_str(gate, "conditionType")))
                open += str_equal(json_str(condition, "status"), "True");
    }
    CLEANUP_FREE char *text = total ? xasprintf("%d/%d", open, total) : xstrdup("<none>");
    json_append_str(cells, text);
}

static void pod_cells(const struct kubesim *sim, const cJSON *pod, cJSON *cells)
{
    struct pod_summary summary = {0};
    summarize_pod(pod, &summary);
    CLEANUP_FREE char *ready = xasprintf("%d/%d", summary.ready, summary.total);
    CLEANUP_FREE char *ago = summary.last_restart ? table_age(sim, summary.last_restart) : NULL;
    CLEANUP_FREE char *restarts = summary.restarts && ago
                                      ? xasprintf("%lld (%s ago)", (long long)summary.restarts, ago)
                                      : xasprintf("%lld", (long long)summary.restarts);
    add_name(cells, pod);
    json_append_str(cells, ready);
    json_append_str(cells, summary.reason);
    json_append_str(cells, restarts);
    add_age(sim, cells, pod);
    add_text(cells, json_path_str(pod, "status", "podIP", NULL), "<none>");
    add_text(cells, json_path_str(pod, "spec", "nodeName", NULL), "<none>");
    add_text(cells, json_path_str(pod, "status", "nominatedNodeName", NULL), "<none>");
    add_gates(cells, pod);
    free(summary.reason);
    free(summary.last_restart);
}

/* --- the others
 * ------------------------------------------------------------------------------------------------- */

static void add_access_modes(cJSON *cells, const cJSON *modes)
{
    static const struct {
        const char *mode;
        const char *shown;
    } names[] = {{"ReadWriteOnce", "RWO"},
                 {"ReadOnlyMany", "ROX"},
                 {"ReadWriteMany", "RWX"},
                 {"ReadWriteOncePod", "RWOP"}};
    CLEANUP_BUF struct buf text = BUF_INIT(256);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const cJSON *mode;
        cJSON_ArrayForEach (mode, modes)
            if (cJSON_IsString(mode) && strcmp(mode->valuestring, names[i].mode) == 0)
                buf_addf(&text, "%s%s", text.length ? "," : "", names[i].shown);
    }
    json_append_str(cells, buf_text(&text));
}

static void claim_cells(const struct kubesim *sim, const cJSON *claim, cJSON *cells)
{
    add_name(cells, claim);
    const char *phase = json_path_str(claim, "status", "phase", NULL);
    add_text(cells, meta_is_deleting(claim) ? "Terminating" : phase, "");
    const char *volume = json_path_str(claim, "spec", "volumeName", NULL);
    add_text(cells, volume, "");
    add_text(cells, volume ? json_path_str(claim, "status", "capacity", "storage", NULL) : NULL, "");
    add_access_modes(cells, volume ? json_path(claim, "status", "accessModes", NULL) : NULL);
    add_text(cells, json_path_str(claim, "spec", "storageClassName", NULL), "");
    add_text(cells, json_path_str(claim, "spec", "volumeAttributesClassName", NULL), "<unset>");
    add_age(sim, cells, claim);
    add_text(cells, json_path_str(claim, "spec", "volumeMode", NULL), "<unset>");
}

/* Component and host, or the reporting ones; the caller's. */
static char *event_source(const cJSON *event)
{
    const char *component = json_path_str(event, "source", "component", NULL);
    const char *host = json_path_str(event, "source", "host", NULL);
    const char *instance = json_str(event, "reportingInstance");
    if (!component || !*component)
        component = json_str(event, "reportingComponent");
    if (!host || !*host)
        host = instance;
    return host && *host ? xasprintf("%s, %s", component ? component : "", host)
                         : xstrdup(component ? component : "");
}

static void event_cells(const struct kubesim *sim, const cJSON *event, cJSON *cells)
{
    const char *last = json_str(event, "lastTimestamp");
    const char *time = json_str(event, "eventTime");
    const char *seen = last ? last : time ? time : meta_str(event, "creationTimestamp");
    CLEANUP_FREE char *age = table_age(sim, seen);
    CLEANUP_FREE char *kind = xstrdup_or_null(json_path_str(event, "involvedObject", "kind", NULL));
    for (char *at = kind; at && *at; at++)
        *at = (char)(*at >= 'A' && *at <= 'Z' ? *at | 0x20 : *at);
    const char *name = json_path_str(event, "involvedObject", "name", NULL);
    CLEANUP_FREE char *object = xasprintf("%s/%s", kind ? kind : "", name ? name : "");
    CLEANUP_FREE char *first =
        table_age(sim, json_str(event, "firstTimestamp") ? json_str(event, "firstTimestamp") : seen);
    json_append_str(cells, age);
    add_text(cells, json_str(event, "type"), "");
    add_text(cells, json_str(event, "reason"), "");
    json_append_str(cells, object);
    add_text(cells, json_path_str(event, "involvedObject", "fieldPath", NULL), "");
    CLEANUP_FREE char *source = event_source(event);
    json_append_str(cells, source);
    add_text(cells, json_str(event, "message"), "");
    json_append_str(cells, first);
    json_append_int64(cells, json_int64_or(event, "count", 1));
    add_name(cells, event);
}

static void namespace_cells(const struct kubesim *sim, const cJSON *object, cJSON *cells)
{
    add_name(cells, object);
    add_text(cells, json_path_str(object, "status", "phase", NULL), "");
    add_age(sim, cells, object);
}

static void revision_cells(const struct kubesim *sim, const cJSON *revision, cJSON *cells)
{
    CLEANUP_FREE char *controller = xstrdup("<none>");
    const cJSON *owner;
    cJSON_ArrayForEach (owner, json_path(revision, "metadata", "ownerReferences", NULL)) {
        if (!json_bool_or(owner, "controller", false))
            continue;
        CLEANUP_FREE char *group = xstrdup(json_str(owner, "apiVersion"));
        char *slash = strchr(group, '/');
        CLEANUP_FREE char *kind = xstrdup(json_str(owner, "kind"));
        for (char *at = kind; *at; at++)
            *at = (char)(*at >= 'A' && *at <= 'Z' ? *at | 0x20 : *at);
        if (slash)
            *slash = '\0';
        free(controller);
        controller = slash ? xasprintf("%s.%s/%s", kind, group, json_str(owner, "name"))
                           : xasprintf("%s/%s", kind, json_str(owner, "name"));
    }
    add_name(cells, revision);
    json_append_str(cells, controller);
    json_append_int64(cells, json_int64_or(revision, "revision", 0));
    add_age(sim, cells, revision);
}

static void lease_cells(const struct kubesim *sim, const cJSON *lease, cJSON *cells)
{
    add_name(cells, lease);
    add_text(cells, json_path_str(lease, "spec", "holderIdentity", NULL), "");
    add_age(sim, cells, lease);
}

static void definition_cells(const struct kubesim *sim, const cJSON *definition, cJSON *cells)
{
    (void)sim;
    add_name(cells, definition);
    add_text(cells, meta_str(definition, "creationTimestamp"), "");
}

static void set_cells(const struct kubesim *sim, const cJSON *set, cJSON *cells)
{
    CLEANUP_FREE char *ready =
        xasprintf("%lld/%lld", (long long)json_int64_or(json_get(set, "status"), "readyReplicas", 0),
                  (long long)json_int64_or(json_get(set, "spec"), "replicas", 0));
    CLEANUP_BUF struct buf names = BUF_INIT(64 * 1024);
    CLEANUP_BUF struct buf images = BUF_INIT(64 * 1024);
    const cJSON *container;
    cJSON_ArrayForEach (container, json_path(set, "spec", "template", "spec", "containers", NULL)) {
        buf_addf(&names, "%s%s", names.length ? "," : "", json_str(container, "name"));
        buf_addf(&images, "%s%s", images.length ? "," : "", json_str(container, "image"));
    }
    add_name(cells, set);
    json_append_str(cells, ready);
    add_age(sim, cells, set);
    json_append_str(cells, buf_text(&names));
    json_append_str(cells, buf_text(&images));
}

static void config_cells(const struct kubesim *sim, const cJSON *object, cJSON *cells)
{
    int count =
        cJSON_GetArraySize(json_get(object, "data")) + cJSON_GetArraySize(json_get(object, "binaryData"));
    add_name(cells, object);
    json_append_int64(cells, count);
    add_age(sim, cells, object);
}

static void secret_cells(const struct kubesim *sim, const cJSON *secret, cJSON *cells)
{
    add_name(cells, secret);
    add_text(cells, json_str(secret, "type"), "");
    json_append_int64(cells, cJSON_GetArraySize(json_get(secret, "data")));
    add_age(sim, cells, secret);
}

static void service_cells(const struct kubesim *sim, const cJSON *service, cJSON *cells)
{
    CLEANUP_BUF struct buf ports = BUF_INIT(16 * 1024);
    const cJSON *port;
    cJSON_ArrayForEach (port, json_path(service, "spec", "ports", NULL))
        buf_addf(&ports, "%s%lld/%s", ports.length ? "," : "", (long long)json_int64_or(port, "port", 0),
                 json_str(port, "protocol"));
    add_name(cells, service);
    add_text(cells, json_path_str(service, "spec", "type", NULL), "");
    add_text(cells, json_path_str(service, "spec", "clusterIP", NULL), "<none>");
    json_append_str(cells, "<none>");
    add_text(cells, buf_text(&ports), "<none>");
    add_age(sim, cells, service);
}

static void node_cells(const struct kubesim *sim, const cJSON *node, cJSON *cells)
{
    const char *ready = "Unknown";
    const cJSON *condition;
    cJSON_ArrayForEach (condition, json_path(node, "status", "conditions", NULL))
        if (str_equal(json_str(condition, "type"), "Ready"))
            ready = str_equal(json_str(condition, "status"), "True") ? "Ready" : "NotReady";
    add_name(cells, node);
    json_append_str(cells, ready);
    json_append_str(cells, "<none>");
    add_age(sim, cells, node);
    add_text(cells, json_path_str(node, "status", "nodeInfo", "kubeletVersion", NULL), "");
}

static void class_cells(const struct kubesim *sim, const cJSON *class, cJSON *cells)
{
    add_name(cells, class);
    add_text(cells, json_str(class, "provisioner"), "");
    add_text(cells, json_str(class, "reclaimPolicy"), "");
    add_text(cells, json_str(class, "volumeBindingMode"), "");
    json_append_str(cells, json_bool_or(class, "allowVolumeExpansion", false) ? "true" : "false");
    add_age(sim, cells, class);
}

static void plain_cells(const struct kubesim *sim, const cJSON *object, cJSON *cells)
{
    add_name(cells, object);
    add_age(sim, cells, object);
}

static const struct table_builtin builtins[] = {
    {"pods",
     "Name|string;Ready|string;Status|string;Restarts|string;Age|string;IP|string*;Node|string*;"
     "Nominated Node|string*;Readiness Gates|string*",
     pod_cells},
    {"persistentvolumeclaims",
     "Name|string;Status|string;Volume|string;Capacity|string;Access Modes|string;StorageClass|string;"
     "VolumeAttributesClass|string;Age|string;VolumeMode|string*",
     claim_cells},
    {"events",
     "Last "
     "Seen|string;Type|string;Reason|string;Object|string;Subobject|string*;Source|string*;Message|string;"
     "First Seen|string*;Count|string*;Name|string*",
     event_cells},
    {"namespaces", "Name|string;Status|string;Age|string", namespace_cells},
    {"controllerrevisions", "Name|string;Controller|string;Revision|string;Age|string", revision_cells},
    {"leases", "Name|string;Holder|string;Age|string", lease_cells},
    {"customresourcedefinitions", "Name|string;Created At|date", definition_cells},
    {"statefulsets", "Name|string;Ready|string;Age|string;Containers|string*;Images|string*", set_cells},
    {"configmaps", "Name|string;Data|string;Age|string", config_cells},
    {"secrets", "Name|string;Type|string;Data|string;Age|string", secret_cells},
    {"services", "Name|string;Type|string;Cluster-IP|string;External-IP|string;Port(s)|string;Age|string",
     service_cells},
    {"nodes", "Name|string;Status|string;Roles|string;Age|string;Version|string", node_cells},
    {"storageclasses",
     "Name|string;Provisioner|string;ReclaimPolicy|string;VolumeBindingMode|string;AllowVolumeExpansion|"
     "string;"
     "Age|string",
     class_cells},
    {NULL, "Name|string;Age|string", plain_cells},
};

const struct table_builtin *table_builtin_find(const struct kind *kind)
{
    const struct table_builtin *builtin = builtins;
    while (builtin->plural && strcmp(builtin->plural, kind->plural) != 0)
        builtin++;
    return builtin;
}
