/* SPDX-License-Identifier: Apache-2.0
 *
 * The objects that -f FILE|DIR|- names, as kubectl reads them: YAML or JSON, documents in their order, the
 * files of a folder (*.yaml, *.yml, *.json, not of folders in it) by name, a List as its items. Bounded in
 * size and number. Judges no more than that each is an object with a kind and a name; talks to no server. */
#pragma once

#include "base/json.h"
#include "cmd/option.h"

struct manifest {
    cJSON *object;
    char *origin; /* "db.yaml, line 12", for messages */
};

struct manifests {
    struct manifest *items;
    size_t count;
    size_t room;
};

/* What the repeated option --filename names. Errors: -ERROR_USAGE: it is not given; -ERROR_INVALID,
 * -ERROR_TOO_LARGE and those of files, with the file, the line and the object. Nothing is returned then. */
int manifests_read(const struct options *options, struct manifests *ret, struct error **err);
void manifests_done(struct manifests *manifests);
#define CLEANUP_MANIFESTS __attribute__((cleanup(manifests_done)))

/* Refuses two objects of one group, kind, namespace and name. To be asked when those that name no namespace
 * have been given one. */
int manifests_check_unique(const struct manifests *manifests, struct error **err);

/* "StatefulSet db (db.yaml, line 12)", with the namespace that it names; the caller's. */
char *manifest_text(const struct manifest *manifest);
