/* SPDX-License-Identifier: Apache-2.0
 *
 * What every write of a step must carry (journal.md, "In doubt", rule 2), made and checked in one place. A
 * patch: metadata.uid and a real metadata.resourceVersion in its body. A delete: both as preconditions in its
 * DeleteOptions body (a body silences the query, so nothing of it may stand there). A create: the fixed name,
 * and neither uid nor version. Knows bytes, sends nothing. */
#pragma once

#include "control/step.h"

/* "" and "0" mean unconditional on core kinds. */
bool preconditions_version_is_real(const char *version);
/* The exact bytes of the step: request's body with preconditions and key in it (of a delete it may hold
 * propagationPolicy and gracePeriodSeconds); the caller's. */
char *preconditions_make_bytes(const struct step_request *request, const char *key);
/* 0, or -ERROR_INVALID with
 * what is missing. Reads the bytes, not what they were made from. */
int preconditions_check(enum step_kind kind, const char *name, const char *bytes, size_t length,
                        struct error **err);

/* The one place that makes the body of an orphan delete (volume.md, Converge 6): a DELETE's query is silenced
 * by its body, so that what counts stands here and nowhere else. The caller's. */
cJSON *preconditions_orphan_delete(const char *uid, const char *version, bool dry_run);
/* 0, or -ERROR_INVALID: it is not exactly such a body. */
int preconditions_check_orphan_delete(const cJSON *body, bool dry_run, struct error **err);
