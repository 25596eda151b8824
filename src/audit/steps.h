/* SPDX-License-Identifier: Apache-2.0
 *
 * Many steps of one journal, put together from pages of entries: an outcome nearly always lies close behind
 * its intent, so that hardly a step needs a look-up of its own. For steps by time, or all; those of an
 * operation or an object are journal_read_steps()'s. */
#pragma once

#include "audit/audit.h"

/* Steps whose intents lie behind after_seq and in [since_us, until_us) (0: open), in order of their intents;
 * at most limit (0: all). has_body is not filled in. Stops when each returns false. */
int steps_read(const struct audit_journal *journal, int64_t after_seq, int64_t since_us, int64_t until_us,
               int64_t limit, journal_step_each *each, void *context, struct error **err);
