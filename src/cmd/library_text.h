/* SPDX-License-Identifier: Apache-2.0
 *
 * What --version says of the library that the journal depends on. */
#pragma once

/* "SQLite 3.40.1 (affected by the WAL-reset bug: ...)"; static storage. */
const char *library_text(void);
