/* SPDX-License-Identifier: Apache-2.0
 *
 * The words spoken with a credential plug-in (client.authentication.k8s.io): what it is told, what it
 * answers. Pure. Only credential.c uses this. */
#pragma once

#include "kube/config.h"

/* What a plug-in handed out; the strings are the owner's. */
struct kube_plugin_answer {
    char *token;           /* NULL: none */
    char *certificate_pem; /* NULL: none; key_pem comes with it */
    char *key_pem;
    int64_t expires_us; /* wall clock; INT64_MAX: not said */
};

/* "KUBERNETES_EXEC_INFO=..."; the caller's. */
char *kube_plugin_info(const struct kube_config *config);
/* Reads the plug-in's stdout. No message repeats any of it. */
int kube_plugin_parse(const struct kube_exec_plugin *plugin, const char *output, size_t length,
                      struct kube_plugin_answer *ret, struct error **err);
void kube_plugin_answer_done(struct kube_plugin_answer *answer);
