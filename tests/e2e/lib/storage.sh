# shellcheck shell=bash
# Storage for the real node: a CSI driver whose volumes are files with XFS on loop devices, with the provisioner and the
# resizer that clusters run. Sourced after node.sh.
#
#   storage_may_run                  says why not and fails, where it may not (exit 77 is for the caller)
#   start_storage LARGEST POOL       after start_node: bytes that one volume, and that all together may have
#   stop_storage                     before stop_node

E2E_CSI_DRIVER=loop.neo.test # tools/csi/driver

storage_may_run() {
    local dir why=''
    "$E2E_DIR/tools/deps" storage || return 1
    dir=$(mktemp -d "${TMPDIR:-/tmp}/neoset-loop.XXXXXX")
    mkdir "$dir/mounted"
    truncate -s 512M "$dir/volume"
    mkfs.xfs -q "$dir/volume"
    # The mount, and its loop device with it, is gone with the namespace.
    unshare --mount --propagation private mount -t xfs -o loop "$dir/volume" "$dir/mounted" 2>"$dir/error" || why=$(cat "$dir/error")
    rm -rf "$dir"
    [ -z "$why" ] && return 0
    say "e2e: no storage here, a file with XFS cannot be mounted on a loop device: $why"
    return 1
}

start_driver() { # largest pool
    start_in_node csi-loop "$E2E_CSI/csi-loop" -endpoint="$E2E_CSI_SOCKET" -data="$E2E_STATE/csi" -largest="$1" -pool="$2" \
        -register="$E2E_STATE/kubelet/plugins_registry/$E2E_CSI_DRIVER.sock"
    wait_ready csi-loop driver_is_registered
}
driver_is_registered() {
    [[ " $(in_network kubectl get csinode node-1 -o 'jsonpath={.spec.drivers[*].name}') " == *" $E2E_CSI_DRIVER "* ]]
}

start_resizer() {
    start_process csi-resizer "$E2E_CSI/csi-resizer" --csi-address="$E2E_CSI_SOCKET" --kubeconfig="$E2E_STATE/admin.kubeconfig" \
        --leader-election=false --handle-volume-inuse-error=false --retry-interval-start=1s --retry-interval-max=5s -v=4
}

start_storage() {
    E2E_CSI=$("$E2E_DIR/tools/build" csi-loop csi-provisioner csi-resizer) || return 1
    E2E_CSI_SOCKET=$E2E_STATE/kubelet/plugins/$E2E_CSI_DRIVER/csi.sock
    start_driver "$1" "$2" || return 1
    in_network kubectl apply -f - >/dev/null <<EOF
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: $E2E_CSI_DRIVER}
spec: {attachRequired: false, podInfoOnMount: false, fsGroupPolicy: None, volumeLifecycleModes: [Persistent]}
EOF
    start_process csi-provisioner "$E2E_CSI/csi-provisioner" --csi-address="$E2E_CSI_SOCKET" \
        --kubeconfig="$E2E_STATE/admin.kubeconfig" --leader-election=false --default-fstype=xfs -v=3
    start_resizer
}

stop_storage() {
    local name
    [ -n "${E2E_STATE:-}" ] || return 0
    for name in csi-resizer csi-provisioner csi-loop; do end_process "$name"; done
}
