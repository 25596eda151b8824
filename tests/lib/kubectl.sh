# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Finds a kubectl for those that source this: NEOSET_KUBECTL, kubectl in PATH, or one that the end-to-end tests built into
# their cache; "" where there is none.
find_kubectl() {
    local candidate
    for candidate in "${NEOSET_KUBECTL:-}" "$(command -v kubectl)" \
        "${NEOSET_TOOLS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/neoset/tools}"/*/kubectl; do
        if [ -x "$candidate" ]; then
            echo "$candidate"
            return
        fi
    done
}
