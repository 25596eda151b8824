/* SPDX-License-Identifier: Apache-2.0
 *
 * UTF-8, as far as text has to be told from other bytes. Never converts anything. */
#pragma once

#include "base/alloc.h"

/* Length of the valid UTF-8 sequence at text (1-4), or 0. Rejects surrogates and overlong forms. */
size_t utf8_sequence_length(const void *text, size_t available);
