/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading Kubernetes objects: the few members that every kind has. Each getter takes whatever a server may
 * send (NULL, not an object, a member of another type) and answers "absent". Strings are borrowed from the
 * tree. Never changes an object. */
#pragma once

#include "base/json.h"
#include "kube/resource.h"

/* The label of a set's pods that names their revision. */
#define KUBE_REVISION_LABEL "controller-revision-hash"

/* As json_parse, for what API servers send. They hand out some bytes as their writer sent them (the data of a
 * ControllerRevision, annotations), and whoever may write one object must not blind a watch of all: a \u0000,
 * a lone surrogate, and a byte that is not UTF-8 are replaced; what is nested too deeply becomes "". */
int kube_object_parse(const char *text, size_t length, cJSON **ret_tree, struct error **err);
/* The same without the object's metadata.managedFields: about half of it, and of use only to those who apply.
 * depth: of the object, 1 where it is the whole text. */
int kube_object_parse_unmanaged(const char *text, size_t length, int depth, cJSON **ret_tree,
                                struct error **err);

/* Each NULL when absent or empty. */
const char *kube_object_name(const cJSON *object);
const char *kube_object_namespace(const cJSON *object);
const char *kube_object_uid(const cJSON *object);
/* resourceVersion: text, compared for equality only. */
const char *kube_object_version(const cJSON *object);
const char *kube_object_label(const cJSON *object, const char *key);
const char *kube_object_annotation(const cJSON *object, const char *key);
/* 0 when absent. */
int64_t kube_object_generation(const cJSON *object);
/* Has a deletionTimestamp: it is terminating. */
bool kube_object_is_deleting(const cJSON *object);
/* Microseconds since 1970, or -1 when absent. */
int64_t kube_object_created_us(const cJSON *object);
int64_t kube_object_deleting_us(const cJSON *object);

/* metadata.finalizers: has it this one; all, as "a/b, c/d" (the caller's). */
bool kube_object_has_finalizer(const cJSON *object, const char *name);
char *kube_object_finalizers_text(const cJSON *object);

/* The owner reference with controller: true, or NULL. There is at most one. */
const cJSON *kube_object_controller(const cJSON *object);
/* Its uid, or NULL. */
const char *kube_object_controller_uid(const cJSON *object);
bool kube_object_is_controlled_by(const cJSON *object, const char *uid);
/* The one of this name among the items of a list of one namespace; NULL: none, or name is NULL. */
const cJSON *kube_object_find(const cJSON *items, const char *name);
/* Any owner reference with this uid. */
bool kube_object_is_owned_by(const cJSON *object, const char *uid);

/* status.conditions[type], or NULL; and whether its status is "True". */
const cJSON *kube_object_condition(const cJSON *object, const char *type);
bool kube_object_condition_is_true(const cJSON *object, const char *type);

/* tree as data of a ControllerRevision. The API server keeps it as the bytes that were posted and takes them
 * through Go's encoder at every update, which must then find them unchanged (measured on 1.36.3: 422 else,
 * for its number too). So they are posted as that encoder spells them: keys sorted, no blanks, and < > & and
 * two separators escaped. The caller's. */
cJSON *kube_object_raw(const cJSON *tree);

/* "NeoSet/default/mysql", or "Kind/name" without a namespace; the caller's. */
char *kube_object_ref_text(enum kube_resource resource, const char *namespace, const char *name);

/* "namespace/name" or "name" of an object whose JSON may be cut or damaged, for messages; the caller's. NULL:
 * it has none that a Kubernetes object can have. */
char *kube_object_guess_name(const char *text, size_t length);

/* -1, 0, 1: which resourceVersion is older, by the server's documented ordering (numbers of any length);
 * texts that are no numbers are only equal or unordered (0). */
int kube_version_compare(const char *a, const char *b);
