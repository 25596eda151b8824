/* SPDX-License-Identifier: Apache-2.0
 *
 * A kubelet's writes as requests: method, path, content type, body. Shared by its fronts. Pure. */
#pragma once

#include "kubesim/kubelet.h"

struct kubelet_write {
    const char *method;
    const char *content_type;
    char *path;
    char *body;
};

/* Each is freed with kubelet_write_done(). */
void kubelet_write_status(struct kubelet_write *write, const char *namespace, const char *name,
                          const char *uid, const cJSON *status);
void kubelet_write_delete(struct kubelet_write *write, const char *namespace, const char *name,
                          const char *uid);
void kubelet_write_bind(struct kubelet_write *write, const char *namespace, const char *name, const char *uid,
                        const char *node);
/* POST of a Node. */
void kubelet_write_node(struct kubelet_write *write, const cJSON *node);
void kubelet_write_done(struct kubelet_write *write);
