#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A real kubectl grows the volumes of a StatefulSet on the program kubesim: the way that people go by hand, with the
# collector slow and a driver that has a largest volume. Skipped, with a word, where kubectl is missing.
set -u
cd "$(dirname "$0")/../../.." || exit 1
build=${NEOSET_BUILD:-build/gcc}
# shellcheck source=../../lib/kubesim.sh
. tests/lib/kubesim.sh
need kubectl
start_kubesim --generation 1.37 --statefulsets --volumes --kubelet ok --gc-delay 2

passed=0 failed=0
check() { # what expected got
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $1: expected '$2', got '$3'"
    fi
}
k() { timeout 60 "$kubectl" "$@" 2>&1; }
# until WORDS COMMAND...: its output becomes that within 20 seconds.
until_says() {
    local words=$1 output='' tries=0
    shift
    while output=$(k "$@"); [ "$output" != "$words" ] && [ $tries -lt 100 ]; do
        tries=$((tries + 1))
        sleep 0.2
    done
    check "kubectl $*" "$words" "$output"
}
manifest() { # size
    cat <<END
{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "default"}, "spec": {
 "replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
 "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c", "image": "db:1"}]}},
 "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"storageClassName": "std",
  "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "$1"}}}}]}}
END
}
grow() { k patch pvc "$1" --type merge -p "{\"spec\": {\"resources\": {\"requests\": {\"storage\": \"$2\"}}}}"; }

k apply -f - >"$scratch/out" <<'END'
{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "std",
 "annotations": {"kubesim.neo.io/resizer": "max=5Gi"}}, "provisioner": "x.y/z", "allowVolumeExpansion": true}
END
manifest 1Gi | k apply --server-side -f - >"$scratch/out"
until_says 2 get sts db -o 'jsonpath={.status.readyReplicas}'
until_says 'Bound Bound' get pvc -o 'jsonpath={.items[*].status.phase}'
pods=$(k get pods -o 'jsonpath={.items[*].metadata.uid}')

manifest 2Gi | k apply --server-side -f - >"$scratch/refusal"
check 'the refusal names the field' 1 "$(grep -c 'spec.volumeClaimTemplates: Invalid value: .*field is immutable' "$scratch/refusal")"
grow data-db-0 2Gi >"$scratch/out"
grow data-db-1 10Gi >"$scratch/out"
until_says ControllerResizeInfeasible get pvc data-db-1 -o 'jsonpath={.status.allocatedResourceStatuses.storage}'
grow data-db-1 2Gi >"$scratch/out"
until_says '2Gi 2Gi' get pvc -o 'jsonpath={.items[*].status.capacity.storage}'

k delete sts db --cascade=orphan --wait=false >"$scratch/out"
check 'the slow collector' '["orphan"]' "$(k get sts db -o 'jsonpath={.metadata.finalizers}')"
until_says '' get sts db --ignore-not-found
manifest 2Gi | k apply --server-side -f - >"$scratch/out"
until_says 2 get sts db -o 'jsonpath={.status.readyReplicas}'
check 'the pods' "$pods" "$(k get pods -o 'jsonpath={.items[*].metadata.uid}')"
check 'one revision' 1 "$(k get controllerrevisions -o name | wc -l)"

for option in --generation=1.38 --gc-delay=soon --gc-blind=-1; do
    "$build/kubesim" "$option" >"$scratch/out" 2>&1
    check "$option" 64 $?
done

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
