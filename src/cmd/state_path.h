/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a program keeps its journal when nobody says so. Only names the place: makes nothing, looks at
 * nothing. */
#pragma once

#include "cmd/option.h"

/* The controller's: $STATE_DIRECTORY/journal.db, or /var/lib/neoset/journal.db as root, else in the user's
 * state folder. variable NULL: the process environment. The caller's; NULL when not even HOME is set. */
char *state_path_controller(option_variable *variable, bool is_root);
/* $XDG_STATE_HOME/neoset/FILE, else ~/.local/state/neoset/FILE. */
char *state_path_user(option_variable *variable, const char *file);
