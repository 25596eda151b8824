/* SPDX-License-Identifier: Apache-2.0
 *
 * The hooks of the built-in kinds: what the real server does for each beside the general rules. */
#pragma once

#include "kubesim/model.h"

extern const struct kind_hooks pod_hooks;
extern const struct kind_hooks claim_hooks;
extern const struct kind_hooks event_hooks;
extern const struct kind_hooks namespace_hooks;
extern const struct kind_hooks service_hooks;
extern const struct kind_hooks secret_hooks;
extern const struct kind_hooks statefulset_hooks;
extern const struct kind_hooks revision_hooks;
extern const struct kind_hooks lease_hooks;
extern const struct kind_hooks class_hooks;
extern const struct kind_hooks definition_hooks;

/* Adds causes for the spec of a new claim, or of a claim template, at the given field path. */
void claim_spec_validate(const cJSON *spec, const char *field, struct causes *causes);
/* As the server compares them: 1Gi and 1024Mi are the same. */
bool statefulset_spec_equal(const cJSON *a, const cJSON *b);
/* Fills in a pod spec as the server does; also for templates. */
void pod_spec_set_defaults(cJSON *spec, bool template);
/* What the admission plug-ins Priority and DefaultTolerationSeconds add to a new pod; nobody owns it. */
void pod_spec_admit(cJSON *spec);
/* Adds causes for a pod spec at the given field path. */
void pod_spec_validate(const cJSON *spec, const char *field, struct causes *causes);

/* Frees what is remembered about controller revisions. */
void revisions_done(struct kubesim *sim);

/* Grace of a pod's deletion: the asked one (-1: none asked), cut to 0 where nothing has to be stopped. */
int64_t pod_deletion_grace_s(const cJSON *pod, int64_t asked_s);

/* What names a claim's class: the beta annotation outranks the spec. NULL: none. */
const char *claim_class_name(const cJSON *claim);
/* A living pod on a node names it. */
bool claim_is_used(const struct kubesim *sim, const cJSON *claim);

/* Every namespace has the service account and config map that the real controllers put there? Only "default"
 * and "kube-system" exist from the start. */
void namespaces_make_initial(struct kubesim *sim);
/* Removes what is in namespaces that go, then these. True when something is left to do. */
bool namespaces_tick(struct kubesim *sim);
/* Takes kubernetes.io/pvc-protection from claims that are being deleted and that no living pod mounts. */
bool claims_tick(struct kubesim *sim);
