/* SPDX-License-Identifier: Apache-2.0
 *
 * Drives converge (converge.h): reads the cluster for it, asks its dry runs, submits its steps to a gateway,
 * waits. One at a time, from the loop; nothing is called back inside a call. Decides nothing, with one
 * exception: while a step on the set itself is in doubt nothing is decided beside it - it is made impossible,
 * or found out, first. Opens and ends nothing: journal, gateway and operation are those of whoever uses it.
 */
#pragma once

#include "control/gateway.h"
#include "volume/converge.h"

struct drive;

struct drive_options {
    struct env *env;
    struct kube_client *client;
    const char *writer; /* field manager of what it writes: "neosetctl" */
    int64_t timeout_us; /* of each reading and each dry run */
    /* Borrowed with its strings and trees while the drive lives. */
    struct converge_options converge;
    /* Where converge.sizes come from: they count for a set whose uid is in this text. NULL: for any. */
    const char *come_from;
    /* NULL: until a first step comes nothing is written, and needs_gateway is called then. */
    struct gateway *gateway;
    struct journal *journal;
    void (*needs_gateway)(void *context);
    /* It will look at the cluster; phrase: what it waits for, or NULL, borrowed. False: it is to end, as
     * ERROR_CANCELLED. NULL: it goes on. */
    bool (*looks)(void *context, const char *phrase);
    /* A step was applied; its reason, borrowed. NULL: nobody listens. */
    void (*applied)(void *context, const char *reason);
    /* The end, as converge has it or because the cluster cannot be read; sentence is borrowed. The drive may
     * be freed in it. */
    void (*ended)(void *context, enum error_code code, const char *sentence);
    void *context;
};

struct drive *drive_start(const struct drive_options *options);
/* The gateway that was needed: recovered already. */
void drive_take_gateway(struct drive *drive, struct gateway *gateway, struct journal *journal);
/* The gateway woke the operation of this set. */
void drive_wake(struct drive *drive);
/* Before its gateway is freed. Cancels what is under way; steps that are open stay so. NULL is fine. */
void drive_free(struct drive *drive);

/* Borrowed; NULL before the first look. */
const struct converge *drive_converge(const struct drive *drive);
