# shellcheck shell=bash
# A real node: kubelet, containerd and runc in namespaces of their own, with the control plane in the same
# network. Sourced after common.sh, pki.sh and control-plane.sh.
#
#   node_may_run                  says why not and fails, where it may not (exit 77 is for the caller)
#   start_node STATE_DIR          as start_control_plane, then the node `node-1`, Ready, with the images in it
#   stop_node                     ends all of it, the control plane too
#   in_network COMMAND...         (common.sh) kubectl, the controller: they reach the server only in there
#   in_node COMMAND...            in all namespaces of the node: ctr, a look at its processes
#   start_containerd, start_kubelet; end_process NAME     to restart a part under test

E2E_NODE_IP=10.99.0.1

node_may_run() {
    local why='' probe controller
    if [ "$(id -u)" != 0 ]; then
        why="not root"
    elif ! unshare --net --mount --pid --fork --mount-proc \
        sh -c 'mount -t tmpfs tmpfs /run && ip link add b0 type bridge && ip link add v0 type veth peer name v1' \
        >/dev/null 2>&1; then
        why="no namespaces, mounts or bridges may be made here"
    else
        for controller in /sys/fs/cgroup /sys/fs/cgroup/memory /sys/fs/cgroup/cpu /sys/fs/cgroup/pids; do
            # Version 2 has its files at the top, version 1 one hierarchy a controller.
            [ -e "$controller/cgroup.procs" ] || continue
            probe=$controller/neoset-probe-$$
            if mkdir "$probe" 2>/dev/null; then rmdir "$probe"; else why="no cgroup can be made in $controller"; fi
        done
        [ -e /sys/fs/cgroup/cgroup.procs ] || [ -e /sys/fs/cgroup/memory/cgroup.procs ] || why="no cgroups are mounted"
    fi
    [ -z "$why" ] && return 0
    say "e2e: a real node may not run here: $why"
    return 1
}

in_node() { nsenter --target "$E2E_HOLDER" --net --mount --pid -- "$@"; }

# nsenter and unshare fork to enter a pid namespace: the program is their only child.
child_of() { # pid
    local child='' tries=100
    while [ -z "$child" ] && [ "$tries" -gt 0 ]; do
        read -r child _ <"/proc/$1/task/$1/children" || sleep 0.02
        tries=$((tries - 1))
    done
    echo "$child"
}

start_in_node() { # name command...
    local name=$1
    shift
    setsid nsenter --target "$E2E_HOLDER" --net --mount --pid -- "$@" </dev/null >>"$E2E_STATE/log/$name.log" 2>&1 &
    disown $!
    record_process "$name" "$(child_of $!)"
}

start_holder() {
    local ready=$E2E_STATE/pid/holder-is-ready
    mkdir -p "$E2E_STATE/log" "$E2E_STATE/pid"
    setsid unshare --net --mount --pid --fork --mount-proc --propagation private \
        "$E2E_DIR/lib/holder" "$ready" "$E2E_NODE_IP" "$E2E_SERVICE_IP" </dev/null >>"$E2E_STATE/log/holder.log" 2>&1 &
    disown $!
    E2E_HOLDER=$(child_of $!)
    [ -n "$E2E_HOLDER" ] || die "the node's namespaces could not be made, see $E2E_STATE/log/holder.log"
    record_process holder "$E2E_HOLDER"
    wait_ready holder test -e "$ready"
    rm -f "$ready"
}

# Two nodes on one machine must not share the cgroups of their containers.
node_cgroup() { echo "neoset-e2e-$E2E_HOLDER"; }

remove_cgroups() {
    local dir tries=100
    for dir in /sys/fs/cgroup/"$(node_cgroup)" /sys/fs/cgroup/*/"$(node_cgroup)"; do
        # A killed process leaves its cgroup a moment after its end.
        while [ -d "$dir" ] && [ "$tries" -gt 0 ]; do
            find "$dir" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.05
            tries=$((tries - 1))
        done
    done
}

# overlayfs cannot lie on every file system (not on another overlayfs): then layers are copied.
snapshotter() {
    local dir=$E2E_STATE/overlay-probe
    mkdir -p "$dir/lower" "$dir/upper" "$dir/work" "$dir/merged"
    if unshare --mount mount -t overlay overlay \
        -o "lowerdir=$dir/lower,upperdir=$dir/upper,workdir=$dir/work" "$dir/merged" 2>/dev/null; then
        echo overlayfs
    else
        echo native
    fi
    rm -rf "$dir"
}

fill_in() { # template result
    sed -e "s|@STATE@|$E2E_STATE|g; s|@CGROUP@|$(node_cgroup)|g; s|@NODE_IP@|$E2E_NODE_IP|g" \
        -e "s|@RUNC@|$(command -v runc)|g; s|@SNAPSHOTTER@|$3|g" "$E2E_DIR/conf/$1" >"$2"
}

start_containerd() {
    start_in_node containerd "$E2E_TOOLS/containerd" --config "$E2E_STATE/containerd.toml"
    wait_ready containerd node_ctr version
}

node_ctr() { in_node "$E2E_TOOLS/ctr" --address /run/containerd.sock --namespace k8s.io "$@"; }

start_kubelet() {
    start_in_node kubelet "$E2E_TOOLS/kubelet" --config="$E2E_STATE/kubelet.yaml" \
        --kubeconfig="$E2E_STATE/kubelet.kubeconfig" --root-dir="$E2E_STATE/kubelet" \
        --hostname-override=node-1 --node-ip="$E2E_NODE_IP" --v=2
    wait_ready kubelet node_ready
}

node_ready() {
    in_network kubectl wait --for=condition=Ready node/node-1 --timeout=1s
}

start_node() {
    local begin programs=(kubelet containerd containerd-shim-runc-v2 ctr)
    "$E2E_DIR/tools/deps" node || return 1
    "$E2E_DIR/tools/build" --version "$E2E_VERSION" "${programs[@]}" >/dev/null || return 1
    case $(realpath -m "$1")/ in
    /run/* | /var/lib/* | /var/log/*) die "the node hides $1: choose a directory elsewhere" ;;
    esac
    mkdir -p "$1"
    E2E_STATE=$(cd "$1" && pwd)
    [ ! -e "$E2E_STATE/env" ] || die "$E2E_STATE has a cluster already: end it and remove the directory first"
    begin=$EPOCHREALTIME
    start_holder || return 1
    export E2E_NODES=real
    run_control_plane "$E2E_STATE" || return 1

    mkdir -p "$E2E_STATE/cni" "$E2E_STATE/certs.d"
    cp "$E2E_DIR/conf/cni.conflist" "$E2E_STATE/cni/e2e.conflist"
    fill_in containerd.toml "$E2E_STATE/containerd.toml" "$(snapshotter)"
    fill_in kubelet.yaml "$E2E_STATE/kubelet.yaml" ''
    "$E2E_DIR/images" "$E2E_STATE/images.tar" ${NEOSET_E2E_JOB_IMAGE:+"$E2E_TOOLS/kubectl"}
    start_containerd || return 1
    node_ctr images import "$E2E_STATE/images.tar" >"$E2E_STATE/log/import.log" 2>&1 ||
        die "the images could not be imported, see $E2E_STATE/log/import.log"
    start_kubelet || return 1
    say "node ready in $(seconds_since "$begin") s, control plane included"
}

stop_node() {
    [ -n "${E2E_STATE:-}" ] || return 0
    # Its death is the end of kubelet, containerd, shims and containers, all at once.
    end_process holder 0
    end_process kubelet
    end_process containerd
    stop_control_plane
    if [ -n "${E2E_HOLDER:-}" ]; then remove_cgroups; fi
}
