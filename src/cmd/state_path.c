/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/state_path.h"

static const char *process_variable(const char *name)
{
    return getenv(name);
}

static const char *value_of(option_variable *variable, const char *name)
{
    const char *value = variable ? variable(name) : process_variable(name);
    return value && *value ? value : NULL;
}

char *state_path_controller(option_variable *variable, bool is_root)
{
    const char *folders = value_of(variable, "STATE_DIRECTORY");
    /* systemd gives a list; the first one is ours. */
    if (folders)
        return xasprintf("%.*s/journal.db", (int)strcspn(folders, ":"), folders);
    if (is_root)
        return xstrdup("/var/lib/neoset/journal.db");
    return state_path_user(variable, "journal.db");
}

char *state_path_user(option_variable *variable, const char *file)
{
    const char *state = value_of(variable, "XDG_STATE_HOME");
    /* The rules of XDG: a relative path counts as unset. */
    if (state && state[0] == '/')
        return xasprintf("%s/neoset/%s", state, file);
    const char *home = value_of(variable, "HOME");
    return home ? xasprintf("%s/.local/state/neoset/%s", home, file) : NULL;
}
