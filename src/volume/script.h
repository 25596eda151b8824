/* SPDX-License-Identifier: Apache-2.0
 *
 * The resize script, for those who have no neoset where they need it: POSIX sh with kubectl and jq, made of
 * resize.sh and resize.jq at build time. What it reads and how it ends is told in its first lines. */
#pragma once

/* The whole text, ended by a line break; static. */
const char *volume_script_text(void);
