/* SPDX-License-Identifier: Apache-2.0
 *
 * When two pod templates mean the same: key order, null and absent, empty and absent, and values that the API
 * server would have put in by itself do not count. The table of those values is in defaults.c. A template is
 * never changed by this: only its copy that is compared is. */
#pragma once

#include "base/json.h"

/* A copy of a pod template without everything that says nothing; the caller's. */
cJSON *defaults_normalise_template(const cJSON *template);
/* The imagePullPolicy of a container of this image that says none: Always for an image without tag and digest
 * or tagged latest, else IfNotPresent. NULL: without an image it has none. */
const char *defaults_pull_policy(const char *image);
/* Hexadecimal SHA-256 of what the template means: equal templates have equal digests. */
void defaults_digest_template(const cJSON *template, char digest[static 65]);
