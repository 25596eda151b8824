#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The cases of tests/schema against kubesim: what the definition of NeoSet takes, refuses and fills in, field by field at its
# bounds and beyond. Skipped, with a word, where kubectl or jq is missing.
set -u
cd "$(dirname "$0")/../../.." || exit 1
build=${NEOSET_BUILD:-build/gcc}
# shellcheck source=../../lib/kubesim.sh
. tests/lib/kubesim.sh
need kubectl jq
start_kubesim --kubelet ok
export KUBECTL=$kubectl
tests/schema/run
