/* SPDX-License-Identifier: Apache-2.0
 *
 * Kubeconfig files, read and merged (kubeconfig.c), and one context of them turned into a kube_config
 * (context.c). Only config.c uses this: who else wants a configuration calls kube_config_load(). */
#pragma once

#include "base/json.h"
#include "kube/config.h"

enum { KUBECONFIG_MAX = 8 * 1024 * 1024 }; /* bytes of one file */

struct kubeconfig;

struct kubeconfig *kubeconfig_make(void);
void kubeconfig_free(struct kubeconfig *merged);
DEFINE_CLEANUP(cleanup_kubeconfig, struct kubeconfig, kubeconfig_free);
#define CLEANUP_KUBECONFIG __attribute__((cleanup(cleanup_kubeconfig)))

/* Adds the text of one file (YAML or JSON; empty is fine). What an earlier file has set stays as it is. path
 * is for messages, and its folder is where relative paths inside begin. */
int kubeconfig_add(struct kubeconfig *merged, const char *path, const char *text, size_t length,
                   struct error **err);
/* Nothing was added, or only files that define nothing. */
bool kubeconfig_is_empty(const struct kubeconfig *merged);

enum kubeconfig_section { KUBECONFIG_CLUSTER, KUBECONFIG_USER, KUBECONFIG_CONTEXT, KUBECONFIG_SECTION_COUNT };

/* A named cluster, user or context; everything is borrowed from the merged configuration. */
struct kubeconfig_entry {
    const char *name;
    const cJSON *value; /* an object */
    const char *file;   /* that defines it */
    const char *folder; /* of that file */
};

/* False when there is none of that name. */
bool kubeconfig_find(const struct kubeconfig *merged, enum kubeconfig_section section, const char *name,
                     struct kubeconfig_entry *ret);
/* NULL when no file sets it. */
const char *kubeconfig_current_context(const struct kubeconfig *merged);
/* "a.yaml, b.yaml": where it came from; and the names of a section, at most twenty, "" when there are none.
 * The caller's. */
char *kubeconfig_files_text(const struct kubeconfig *merged);
char *kubeconfig_names_text(const struct kubeconfig *merged, enum kubeconfig_section section);

/* The string at key of an entry's object: *ret borrowed, NULL when absent, null or empty. Anything else than
 * a string is refused. where names the object for the message, e.g. "user 'admin' of /home/a/.kube/config".
 */
int kubeconfig_text(const cJSON *object, const char *key, const char *where, const char **ret,
                    struct error **err);

/* The context that options choose, with its certificate files read. *ret is the caller's. */
int kubeconfig_resolve(const struct kubeconfig *merged, struct env *env,
                       const struct kube_config_options *options, struct kube_config **ret,
                       struct error **err);
