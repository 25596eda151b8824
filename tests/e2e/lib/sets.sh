# shellcheck shell=bash
# StatefulSets with claims, in the namespace `shop`, for the tests of growing volumes. Sourced after story.sh; works with and
# without a node.

# Two pods; the claims of both are of a class.
set_of() { # name size class [", more: fields of the container"]
    cat <<EOF_SET
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: $1, namespace: shop}
spec:
  replicas: 2
  serviceName: $1
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: $1}}
  template:
    metadata: {labels: {app: $1}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "app:v1", volumeMounts: [{name: data, mountPath: /d}]${4:-}}]
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], storageClassName: $3, resources: {requests: {storage: $2}}}
EOF_SET
}
make_class() { # name expandable [provisioner]
    printf 'apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: %s}\nprovisioner: %s\nallowVolumeExpansion: %s\n' "$1" "${3:-none.neo.test}" "$2" |
        in_network kubectl apply -f - >/dev/null
}
# Volumes by hand, for a class without a provisioner: folders of the node.
make_volumes() { # class how-many
    local i
    for i in $(seq "$2"); do
        printf -- '---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: %s-%s}\nspec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: %s, hostPath: {path: %s, type: DirectoryOrCreate}}\n' \
            "$1" "$i" "$1" "$E2E_STATE/volumes/$1-$i"
    done | in_network kubectl apply -f - >/dev/null
}
apply_set() { in_network kubectl apply --server-side --field-manager=people -f "$@" >/dev/null; }
make_set() { # as set_of
    set_of "$@" | apply_set -
    await 60 "$1: two ready pods" ready "$1"
}

ready() { [ "$(in_network kubectl get sts -n shop "$1" -o jsonpath='{.status.readyReplicas}')" = 2 ]; }
# name, uid, container and its restarts: what must not change.
pods() {
    in_network kubectl get pods -n shop -l app="$1" -o \
        jsonpath='{range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}{"\n"}{end}' | sort
}
claims() { in_network kubectl get pvc -n shop -l app="$1" -o jsonpath='{range .items[*]}{.metadata.name} {.spec.resources.requests.storage}{"\n"}{end}' | sort; }
grown() { printf 'data-%s-0 %s\ndata-%s-1 %s' "$1" "$2" "$1" "$2"; } # name size: as claims prints it
template_size() { in_network kubectl get sts -n shop "$1" -o jsonpath='{.spec.volumeClaimTemplates[0].spec.resources.requests.storage}'; }
# What a write of anybody would change: of all sets and claims.
versions() { in_network kubectl get sts,pvc -n shop -o jsonpath='{range .items[*]}{.metadata.uid} {.metadata.resourceVersion}{"\n"}{end}'; }

# shellcheck disable=SC2154 # build is story.sh's
ctl() { XDG_STATE_HOME=$E2E_STATE in_network "$build/neosetctl" --kubeconfig "$E2E_STATE/admin.kubeconfig" "$@" 2>>"$E2E_STATE/log/neosetctl.log"; }
