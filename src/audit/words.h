/* SPDX-License-Identifier: Apache-2.0
 *
 * The words that --kind and --outcome may be, for each kind of record: a typing error must not look like an
 * empty history. Prints nothing. */
#pragma once

#include "audit/records.h"

/* Of operations and steps; entries: record_entry_kinds(). An operation's word, or a step's kind, that this
 * version does not know is good when a journal has it: another version may have written that. -ERROR_USAGE
 * names the words. */
int audit_check_words(const struct audit *audit, enum record_kind kind, const struct audit_filter *filter,
                      struct error **err);
