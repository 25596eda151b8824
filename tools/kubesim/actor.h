/* SPDX-License-Identifier: Apache-2.0
 *
 * How a controller of the cluster that kubesim plays asks the server: as a client does, never hit by a fault.
 */
#pragma once

#include "kubesim/model.h"

#define JSON_TYPE "application/json"
#define MERGE_TYPE "application/merge-patch+json"

/* Who it is: its field manager, and its user in the audit log. */
struct actor {
    const char *manager;
    const char *user;
};

/* Sends one request; body (taken) may be NULL. Returns the HTTP status. */
int actor_ask(struct kubesim *sim, const struct actor *actor, const char *method, const char *type,
              cJSON *body, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* An Event of an actor about an object; the same words again raise the count of the one that is there.
 * Notes nothing when the namespace is going. */
void actor_note(struct kubesim *sim, const struct actor *actor, const cJSON *about, const char *type,
                const char *reason, const char *format, ...) __attribute__((format(printf, 6, 7)));
