#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The real kubectl against kubesim: every command that people and scripts are told they may use. Skipped, with a word,
# where no kubectl is found.
set -u
cd "$(dirname "$0")/../../.." || exit 1
build=${NEOSET_BUILD:-build/gcc}
# shellcheck source=../../lib/kubesim.sh
. tests/lib/kubesim.sh
need kubectl
start_kubesim --kubelet ok

indent() { sed 's/^/    /'; }

passed=0
failed=0
# says WORDS COMMAND...: kubectl succeeds and its output has the words (a pattern of grep -E).
says() {
    local words=$1 output
    shift
    if output=$(timeout 60 "$kubectl" "$@" 2>&1) && grep -qE -- "$words" <<<"$output"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL kubectl $*: no '$words' in:"
        indent <<<"$output"
    fi
}
# fails WORDS COMMAND...: kubectl fails and says so.
fails() {
    local words=$1 output
    shift
    if ! output=$(timeout 60 "$kubectl" "$@" 2>&1) && grep -qE -- "$words" <<<"$output"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL kubectl $*: it did not fail with '$words':"
        indent <<<"$output"
    fi
}

cat >"$scratch/set.yaml" <<END
apiVersion: apps.neo.io/v1alpha1
kind: NeoSet
metadata:
  name: mysql
spec:
  replicas: 5
  serviceName: mysql-headless
  selector: {matchLabels: {app: mysql}}
  template:
    metadata: {labels: {app: mysql}}
    spec:
      containers:
      - name: mysql
        image: mysql:8.1
        ports: [{containerPort: 3306}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec:
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 50Gi}}
  updateStrategy: {type: InPlace, partition: 4, maxUnavailable: 1}
END
sed 's/mysql:8.1/mysql:8.2/' "$scratch/set.yaml" >"$scratch/changed.yaml"
sed 's/replicas: 5/replicaz: 5/' "$scratch/set.yaml" >"$scratch/misspelt.yaml"
cat >"$scratch/pod.yaml" <<END
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
  - {name: web, image: "web:1"}
  - {name: side, image: "side:1"}
END

says 'Server Version' version
says 'created' apply -f deploy/crd.yaml
says 'unchanged' apply -f deploy/crd.yaml
says 'condition met' wait --for condition=established crd/neosets.apps.neo.io --timeout=10s
says 'neosets +neo ' api-resources
says 'service/mysql-headless created' apply -f deploy/example-service.yaml
says 'neoset.apps.neo.io/mysql created \(server dry run\)' apply --dry-run=server -f deploy/example.yaml
says 'created' apply -f "$scratch/set.yaml"
says 'unchanged' apply -f "$scratch/set.yaml"
says 'configured' apply -f "$scratch/changed.yaml"
fails 'unknown field "spec.replicaz"' apply -f "$scratch/misspelt.yaml"
says 'NAME +REPLICAS +READY +UPDATED +PHASE +CURRENT +TARGET +AGE' get neo
says '^mysql ' get neo
says 'image: mysql:8.2' get neo mysql -o yaml
says '^5$' get neo mysql -o 'jsonpath={.spec.replicas}'
says 'scaled' scale neo mysql --replicas=3
says '^3$' get neo mysql -o 'jsonpath={.spec.replicas}'
says 'scaled' scale neo mysql --replicas=0
says '^0$' get neo mysql -o 'jsonpath={.spec.replicas}'
says 'patched' patch neo mysql --type merge -p '{"spec":{"updateStrategy":{"pause":true}}}'
says 'patched' patch neo mysql --type json -p '[{"op":"replace","path":"/spec/updateStrategy/pause","value":false}]'
says 'patched' patch neo mysql --subresource status --type merge -p '{"status":{"phase":"Idle"}}'
says 'annotated' annotate neo mysql note=here
says 'labeled' label neo mysql team=db
says '^mysql ' get neo -l team=db
says 'serverside-applied' apply --server-side --force-conflicts -f "$scratch/set.yaml"
says 'scaled' scale neo mysql --replicas=2
fails 'conflict with "kubectl" with subresource "scale"' apply --server-side -f "$scratch/set.yaml"
says 'serverside-applied' apply --server-side --force-conflicts -f "$scratch/set.yaml"
fails 'is invalid' patch neo mysql --type merge -p '{"spec":{"replicas":-1}}'
says 'condition met' wait --for='jsonpath={.status.phase}=Idle' neo/mysql --timeout=10s

timeout 60 "$kubectl" get pods -w >"$scratch/watch" 2>&1 &
watcher=$!
says 'created' apply -f "$scratch/pod.yaml"
says 'condition met' wait --for condition=Ready pod/web --timeout=30s
says 'web +2/2 +Running' get pods
says 'kubesim-node' get pods -o wide
says 'image updated' set image pod/web web=web:2
says '^web:2$' get pod web -o 'jsonpath={.spec.containers[0].image}'
says '^2$' get pod web -o 'jsonpath={.metadata.generation}'
says 'patched' patch pod web -p '{"spec":{"containers":[{"name":"side","image":"side:2"}]}}'
fails 'may not change fields other than' patch pod web -p '{"spec":{"restartPolicy":"Never"}}'
says 'condition met' wait --for condition=Ready pod/web --timeout=30s
says 'web' get pods --field-selector status.phase=Running
says 'No resources found|LAST SEEN' get events
says 'deleted' delete pod web --grace-period=1
fails 'not found' get pod web
kill "$watcher" 2>/dev/null
wait "$watcher" 2>/dev/null
if grep -qE 'web +2/2 +Running' "$scratch/watch"; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    echo "FAIL kubectl get pods -w:"
    indent <"$scratch/watch"
fi

fails 'the server doesn.t have a resource type' get deployments
says 'deleted' delete neo mysql
says 'deleted' delete -f deploy/crd.yaml
fails 'the server doesn.t have a resource type|could not find the requested resource' get neo
if kill -0 "$server" 2>/dev/null && [ ! -s "$scratch/errors" ] && grep -q '"verb":"patch"' "$scratch/audit"; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    echo "FAIL kubesim itself:"
    indent <"$scratch/errors"
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
