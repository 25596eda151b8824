/* SPDX-License-Identifier: Apache-2.0
 *
 * One line of a watch, read. Pure. Only src/kube and tests include this. */
#pragma once

#include "base/json.h"

enum kube_event_type {
    KUBE_EVENT_ADDED,
    KUBE_EVENT_MODIFIED,
    KUBE_EVENT_DELETED,
    KUBE_EVENT_BOOKMARK,
    KUBE_EVENT_ERROR, /* object is a Status */
};

struct kube_event {
    enum kube_event_type type;
    cJSON *tree;
    cJSON *object;       /* in tree */
    const char *version; /* of object, in tree; NULL for an error */
};

/* The object of an ADDED or MODIFIED line with its metadata alone (without managedFields), which is a
 * fraction of the work; NULL: another line, or one that kube_event_parse() has to judge. What follows the
 * metadata is not looked at. The caller's. */
cJSON *kube_event_peek(const char *line, size_t length);
/* What is probably its object's resourceVersion, found by a search for the key: a quote inside of a string is
 * escaped, so that no string looks like it. False: none is found, or it does not fit into version. */
bool kube_event_guess_version(const char *line, size_t length, char *version, size_t room);
/* -ERROR_INVALID with a sentence that repeats nothing of the line. kube_event_done frees *ret. */
int kube_event_parse(const char *line, size_t length, struct kube_event *ret, struct error **err);
void kube_event_done(struct kube_event *event);
