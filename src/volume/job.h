/* SPDX-License-Identifier: Apache-2.0
 *
 * The Job that runs the resize script in a cluster before the workloads roll out, for appliers that try every
 * object before they apply any (Flux), with the identity that it runs as and what lets it reach the API
 * server where nothing may leave. The same input gives the same bytes; the Job's name has a hash of its pod
 * spec, so that it runs again exactly when a declared volume (or the script) changes. Pure. */
#pragma once

#include "base/json.h"

/* kubectl and jq, by digest: the same bytes everywhere, whatever becomes of the tag. */
#define VOLUME_JOB_IMAGE                                                                                     \
    "docker.io/alpine/k8s:1.34.12@sha256:d50424976a0a888d2531f13035dce45c004ec2b6f877f233005ba35c0d61be5d"
/* The names that others rely on: the Job's before its hash, and that of its ServiceAccount, Role,
 * RoleBinding and NetworkPolicy in the default unit; the label that each of its pods carries, with that name;
 * its container. */
#define VOLUME_JOB_NAME "sts-volume-resize"
#define VOLUME_JOB_LABEL "forge.dev/job-name"
#define VOLUME_JOB_CONTAINER "resize"

/* All borrowed. */
struct volume_job {
    const char *namespace; /* of the StatefulSets and of all that is made */
    const char *unit;      /* the delivery unit, part of the names; NULL, "" or "base": the default one */
    const char *image;     /* NULL: VOLUME_JOB_IMAGE */
    const cJSON *declared; /* as volume_declared_add() makes it: at least one set */
    const cJSON *labels;   /* name to value, for the metadata of every object, never for a pod; NULL: none */
    const cJSON *secrets;  /* names of pull Secrets of the namespace, an array; NULL: none */
};

/* The objects in the order in which they are to be applied, an array, the caller's. -ERROR_INVALID: what
 * cannot be a name, a label or an image, by name. */
int volume_job_build(const struct volume_job *job, cJSON **ret, struct error **err);
