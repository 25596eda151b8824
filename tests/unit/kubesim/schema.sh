#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The cases of tests/schema against kubesim: what the definition of NeoSet takes, refuses and fills in, field by field at its
# bounds and beyond. Skipped, with a word, where kubectl or jq is missing.
set -u
cd "$(dirname "$0")/../../.." || exit 1
build=${NEOSET_BUILD:-build/gcc}
# shellcheck source=../../lib/kubectl.sh
. tests/lib/kubectl.sh

kubectl=$(find_kubectl)
if [ -z "$kubectl" ] || ! command -v jq >/dev/null; then
    echo "no kubectl or no jq here: nothing was tried"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
scratch=$(mktemp -d "${TMPDIR:-/tmp}/neoset-schema.XXXXXX")
export HOME=$scratch KUBECONFIG=$scratch/kubeconfig KUBECTL=$kubectl
"$build/kubesim" --kubeconfig-out "$KUBECONFIG" >"$scratch/address" 2>"$scratch/errors" &
server=$!
finish() {
    kill -TERM "$server" 2>/dev/null
    wait "$server" 2>/dev/null
    rm -rf "$scratch"
}
trap finish EXIT
for _ in $(seq 100); do
    [ -s "$KUBECONFIG" ] && break
    sleep 0.1
done
tests/schema/run
