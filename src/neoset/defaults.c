/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/defaults.h"

#include "base/plant.h"
#include "base/sha256.h"

#include <stdio.h>

/* Paths are without indexes. "C" stands for containers, initContainers and ephemeralContainers of a pod, "P"
 * for the three probes, "H" for the two lifecycle handlers. What the API server (1.36) puts in when a pod
 * template leaves it out, and zero values that it does not print. */
struct default_value {
    const char *path;
    const char *value; /* JSON text */
};

static const struct default_value table[] = {
    {"metadata", "{}"},
    {"metadata.labels", "{}"},
    {"metadata.annotations", "{}"},
    {"spec.restartPolicy", "\"Always\""},
    {"spec.terminationGracePeriodSeconds", "30"},
    {"spec.dnsPolicy", "\"ClusterFirst\""},
    {"spec.schedulerName", "\"default-scheduler\""},
    {"spec.enableServiceLinks", "true"},
    {"spec.securityContext", "{}"},
    {"spec.nodeSelector", "{}"},
    {"spec.affinity", "{}"},
    {"spec.overhead", "{}"},
    {"spec.resources", "{}"},
    {"spec.hostNetwork", "false"},
    {"spec.hostPID", "false"},
    {"spec.hostIPC", "false"},
    {"spec.serviceAccountName", "\"\""},
    {"spec.serviceAccount", "\"\""},
    {"spec.nodeName", "\"\""},
    {"spec.hostname", "\"\""},
    {"spec.subdomain", "\"\""},
    {"spec.priorityClassName", "\"\""},
    {"spec.C.terminationMessagePath", "\"/dev/termination-log\""},
    {"spec.C.terminationMessagePolicy", "\"File\""},
    {"spec.C.workingDir", "\"\""},
    {"spec.C.resources", "{}"},
    {"spec.C.resources.limits", "{}"},
    {"spec.C.resources.requests", "{}"},
    {"spec.C.securityContext.procMount", "\"Default\""},
    {"spec.C.securityContext", "{}"},
    {"spec.C.lifecycle", "{}"},
    {"spec.C.stdin", "false"},
    {"spec.C.stdinOnce", "false"},
    {"spec.C.tty", "false"},
    {"spec.C.ports.protocol", "\"TCP\""},
    {"spec.C.ports.name", "\"\""},
    {"spec.C.ports.hostIP", "\"\""},
    {"spec.C.ports.hostPort", "0"},
    {"spec.C.env.value", "\"\""},
    {"spec.C.env.valueFrom.fieldRef.apiVersion", "\"v1\""},
    {"spec.C.env.valueFrom.resourceFieldRef.divisor", "\"0\""},
    {"spec.C.envFrom.prefix", "\"\""},
    {"spec.C.volumeMounts.readOnly", "false"},
    {"spec.C.volumeMounts.subPath", "\"\""},
    {"spec.C.volumeMounts.subPathExpr", "\"\""},
    {"spec.C.P.timeoutSeconds", "1"},
    {"spec.C.P.periodSeconds", "10"},
    {"spec.C.P.successThreshold", "1"},
    {"spec.C.P.failureThreshold", "3"},
    {"spec.C.P.initialDelaySeconds", "0"},
    {"spec.C.P.httpGet.scheme", "\"HTTP\""},
    {"spec.C.P.httpGet.path", "\"/\""},
    {"spec.C.P.httpGet.host", "\"\""},
    {"spec.C.P.tcpSocket.host", "\"\""},
    {"spec.C.P.grpc.service", "\"\""},
    {"spec.C.lifecycle.H.httpGet.scheme", "\"HTTP\""},
    {"spec.C.lifecycle.H.httpGet.path", "\"/\""},
    {"spec.C.lifecycle.H.httpGet.host", "\"\""},
    {"spec.volumes.secret.defaultMode", "420"},
    {"spec.volumes.configMap.defaultMode", "420"},
    {"spec.volumes.downwardAPI.defaultMode", "420"},
    {"spec.volumes.projected.defaultMode", "420"},
    {"spec.volumes.downwardAPI.items.fieldRef.apiVersion", "\"v1\""},
    {"spec.volumes.downwardAPI.items.resourceFieldRef.divisor", "\"0\""},
    {"spec.volumes.projected.sources.downwardAPI.items.fieldRef.apiVersion", "\"v1\""},
    {"spec.volumes.projected.sources.downwardAPI.items.resourceFieldRef.divisor", "\"0\""},
    {"spec.volumes.projected.sources.serviceAccountToken.expirationSeconds", "3600"},
    {"spec.volumes.hostPath.type", "\"\""},
    {"spec.volumes.nfs.readOnly", "false"},
    {"spec.volumes.persistentVolumeClaim.readOnly", "false"},
    {"spec.volumes.iscsi.iscsiInterface", "\"default\""},
    {"spec.volumes.rbd.pool", "\"rbd\""},
    {"spec.volumes.rbd.user", "\"admin\""},
    {"spec.volumes.rbd.keyring", "\"/etc/ceph/keyring\""},
    {"spec.volumes.azureDisk.cachingMode", "\"ReadWrite\""},
    {"spec.volumes.azureDisk.fsType", "\"ext4\""},
    {"spec.volumes.azureDisk.kind", "\"Shared\""},
    {"spec.volumes.azureDisk.readOnly", "false"},
    {"spec.volumes.scaleIO.storageMode", "\"ThinProvisioned\""},
    {"spec.volumes.scaleIO.fsType", "\"xfs\""},
    {"spec.volumes.ephemeral.volumeClaimTemplate.metadata", "{}"},
    {"spec.volumes.ephemeral.volumeClaimTemplate.spec.volumeMode", "\"Filesystem\""},
};

enum { PATH_MAX_LENGTH = 512 };

/* The key as the table has it. */
static const char *table_key(const char *parent, const char *key)
{
    if (str_equal(parent, "spec") && (str_equal(key, "containers") || str_equal(key, "initContainers") ||
                                      str_equal(key, "ephemeralContainers")))
        return "C";
    if (str_equal(parent, "spec.C") && (str_equal(key, "livenessProbe") || str_equal(key, "readinessProbe") ||
                                        str_equal(key, "startupProbe")))
        return "P";
    if (str_equal(parent, "spec.C.lifecycle") && (str_equal(key, "postStart") || str_equal(key, "preStop")))
        return "H";
    return key;
}

static bool is_default(const char *path, const cJSON *node)
{
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        if (!str_equal(table[i].path, path))
            continue;
        CLEANUP_FREE char *text = json_print(node);
        return str_equal(text, table[i].value);
    }
    return false;
}

/* Null, and lists without items, are not printed by the server at all. */
static bool says_nothing(const cJSON *node)
{
    return cJSON_IsNull(node) || (cJSON_IsArray(node) && !node->child);
}

/* Depth is bounded by the parser. */
static void strip(cJSON *node, const char *path)
{
    cJSON *next = NULL;
    for (cJSON *child = node->child; child; child = next) {
        next = child->next;
        char below[PATH_MAX_LENGTH];
        const char *key = cJSON_IsArray(node) ? NULL : table_key(path, child->string);
        int length = key ? snprintf(below, sizeof(below), "%s%s%s", path, *path ? "." : "", key)
                         : snprintf(below, sizeof(below), "%s", path);
        /* Deeper than any row of the table: compared as it stands. */
        if (length < 0 || (size_t)length >= sizeof(below))
            continue;
        strip(child, below);
        if (key && (says_nothing(child) || is_default(below, child)))
            cJSON_Delete(cJSON_DetachItemViaPointer(node, child));
    }
}

/* --- defaults that depend on other fields ------------------------------------------------------------------
 */

static void remove_if(cJSON *object, const char *key, const char *value)
{
    if (value && str_equal(json_str(object, key), value))
        json_remove(object, key);
}

const char *defaults_pull_policy(const char *image)
{
    if (!image || !*image)
        return NULL;
    const char *slash = strrchr(image, '/');
    const char *tag = strrchr(slash ? slash : image, ':');
    bool digest = strchr(image, '@') != NULL;
    bool latest = !digest && (!tag || str_equal(tag, ":latest"));
    return latest ? "Always" : "IfNotPresent";
}

static void strip_pull_policy(cJSON *container)
{
    remove_if(container, "imagePullPolicy", defaults_pull_policy(json_str(container, "image")));
}

/* A request that is left out is the limit. */
static void strip_requests(cJSON *container)
{
    cJSON *resources = json_get(container, "resources");
    cJSON *requests = json_get(resources, "requests");
    const cJSON *limit = NULL;
    cJSON_ArrayForEach (limit, json_get(resources, "limits")) {
        const cJSON *request = json_get(requests, limit->string);
        if (request && json_equal(request, limit))
            json_remove(requests, limit->string);
    }
    if (requests && !requests->child)
        json_remove(resources, "requests");
}

/* In the host's network a container's port is the host's. */
static void strip_host_ports(cJSON *container)
{
    cJSON *port = NULL;
    cJSON_ArrayForEach (port, json_get(container, "ports")) {
        const cJSON *host = json_get(port, "hostPort");
        if (host && json_equal(host, json_get(port, "containerPort")))
            json_remove(port, "hostPort");
    }
}

static void strip_related(cJSON *template)
{
    cJSON *spec = json_get(template, "spec");
    bool host_network = json_bool_or(spec, "hostNetwork", false);
    remove_if(spec, "serviceAccount", json_str(spec, "serviceAccountName"));
    static const char *const lists[] = {"containers", "initContainers"};
    for (size_t list = 0; list < ARRAY_SIZE(lists); list++) {
        cJSON *container = NULL;
        cJSON_ArrayForEach (container, json_get(spec, lists[list])) {
            strip_pull_policy(container);
            strip_requests(container);
            if (host_network)
                strip_host_ports(container);
        }
    }
}

cJSON *defaults_normalise_template(const cJSON *template)
{
    cJSON *copy = json_copy(template);
    strip_related(copy);
    strip(copy, "");
    return copy;
}

void defaults_digest_template(const cJSON *template, char digest[static 65])
{
    CLEANUP_JSON cJSON *normal = defaults_normalise_template(template);
    CLEANUP_FREE char *text =
        PLANT("noise-makes-revisions") ? json_print(template) : json_print_sorted(normal);
    uint8_t bytes[SHA256_SIZE];
    sha256_once(text, strlen(text), bytes);
    CLEANUP_FREE char *hex = hex_encode(bytes, sizeof(bytes));
    memcpy(digest, hex, 65);
}
