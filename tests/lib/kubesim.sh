# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For tests that put a real kubectl to kubesim, run from the top of the tree with $build set.

# shellcheck source=kubectl.sh
. tests/lib/kubectl.sh

# Ends the test with a word where one of these programs is missing. Sets $kubectl.
need() {
    local program path
    kubectl=$(find_kubectl)
    for program in "$@"; do
        path=$(command -v "$program")
        [ "$program" != kubectl ] || path=$kubectl
        [ -z "$path" ] || continue
        echo "no $program here: nothing was tried"
        echo "0 passed, 0 failed, 1 skipped"
        exit 0
    done
}

# kubesim with these options, until this script ends: $server is its process, $scratch a folder for this test with the
# kubeconfig ($KUBECONFIG), what kubesim says ("address", "errors", "audit"), and as a home.
start_kubesim() {
    if [ ! -x "$build/kubesim" ]; then
        echo "$build/kubesim is not built: make tests"
        echo "0 passed, 1 failed"
        exit 1
    fi
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/neoset-kubectl.XXXXXX")
    export HOME=$scratch KUBECONFIG=$scratch/kubeconfig
    "$build/kubesim" --kubeconfig-out "$KUBECONFIG" --audit-log "$scratch/audit" "$@" >"$scratch/address" 2>"$scratch/errors" &
    server=$!
    trap stop_kubesim EXIT
    local i
    for ((i = 0; i < 100; i++)); do
        [ -s "$KUBECONFIG" ] && return
        sleep 0.1
    done
    echo "kubesim does not start: $(head -3 "$scratch/errors")"
    echo "0 passed, 1 failed"
    exit 1
}

stop_kubesim() {
    kill -TERM "$server" 2>/dev/null
    wait "$server" 2>/dev/null
    rm -rf "$scratch"
}
