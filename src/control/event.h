/* SPDX-License-Identifier: Apache-2.0
 *
 * Events for people: counted, few, and never in anybody's way. An event that says the same of the same object
 * again raises a count instead of making a new one, at most once in 10 s; the queue is bounded; failures are
 * forgotten. Nothing decides by them. */
#pragma once

#include "control/exempt.h"

struct event_recorder;

struct event_recorder *event_recorder_make(struct env *env, struct exempt *exempt, const char *component,
                                           const char *instance);
/* After exempt_free(), so that nothing is under way. */
void event_recorder_free(struct event_recorder *recorder);

struct event_subject {
    enum kube_resource resource;
    const char *namespace;
    const char *name;
    const char *uid; /* or NULL */
};
/* Everything is borrowed. reason is one CamelCase word; note a sentence, cut at 1,000 bytes. */
void event_record(struct event_recorder *recorder, const struct event_subject *subject, bool warning,
                  const char *reason, const char *note);
