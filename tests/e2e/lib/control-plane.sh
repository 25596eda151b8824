# shellcheck shell=bash
# A real control plane on loopback: etcd, kube-apiserver, kube-controller-manager, with RBAC and an audit log.
# Sourced after common.sh and pki.sh.
#
#   start_control_plane STATE_DIR     sets and exports E2E_STATE, E2E_TOOLS, E2E_SERVER, KUBECONFIG, PATH
#   stop_control_plane                ends everything that was started; the logs stay
#   use_cluster STATE_DIR             the same settings for a cluster that another process started
#   start_etcd, start_api_server, start_controller_manager, start_scheduler; end_process NAME
#                                     one by one, to restart a part under test

E2E_VERSION=${NEOSET_E2E_KUBERNETES:-1.36.3}
E2E_SERVICE_IP=10.96.0.1 # of the API server, for pods: the first of the range

use_cluster() {
    E2E_STATE=$(cd "$1" 2>/dev/null && pwd) || die "no cluster in '$1'"
    [ -f "$E2E_STATE/env" ] || die "no cluster in '$E2E_STATE'"
    # shellcheck disable=SC1091 # written by start_control_plane
    . "$E2E_STATE/env"
}

write_env() {
    cat >"$E2E_STATE/env" <<EOF
export E2E_STATE='$E2E_STATE'
export E2E_TOOLS='$E2E_TOOLS'
export E2E_NODES='$E2E_NODES'
export E2E_HOLDER='${E2E_HOLDER:-}'
export E2E_SERVER='$E2E_SERVER'
export E2E_ETCD='$E2E_ETCD'
export E2E_AUDIT_LOG='$E2E_STATE/log/audit.log'
export KUBECONFIG='$E2E_STATE/admin.kubeconfig'
export PATH='$E2E_TOOLS':"\$PATH"
EOF
}

start_etcd() {
    # The data is thrown away with the cluster: no fsync, or the disk decides how fast the tests are.
    start_process etcd "$E2E_TOOLS/etcd" --name=e2e --data-dir="$E2E_STATE/etcd" --unsafe-no-fsync \
        --log-level=warn --listen-client-urls="$E2E_ETCD" --advertise-client-urls="$E2E_ETCD" \
        --listen-peer-urls="$E2E_ETCD_PEER" --initial-advertise-peer-urls="$E2E_ETCD_PEER" \
        --initial-cluster="e2e=$E2E_ETCD_PEER"
}

start_api_server() {
    local pki=$E2E_STATE/pki admission=() address=127.0.0.1
    # A pod that no kubelet runs needs no token, and must not wait for its namespace to get an account.
    [ "$E2E_NODES" = real ] || admission=(--disable-admission-plugins=ServiceAccount)
    # Pods have a loopback of their own. The node's network leads nowhere else.
    [ "$E2E_NODES" = simulated ] || address=0.0.0.0
    start_process kube-apiserver "$E2E_TOOLS/kube-apiserver" --etcd-servers="$E2E_ETCD" \
        --bind-address="$address" --advertise-address=127.0.0.1 --secure-port="${E2E_SERVER##*:}" \
        --tls-cert-file="$pki/server.crt" --tls-private-key-file="$pki/server.key" \
        --client-ca-file="$pki/ca.crt" --authorization-mode=Node,RBAC \
        --service-account-issuer=https://kubernetes.default.svc \
        --service-account-key-file="$pki/accounts.pub" --service-account-signing-key-file="$pki/accounts.key" \
        --service-cluster-ip-range=10.96.0.0/16 --endpoint-reconciler-type=none "${admission[@]}" \
        --kubelet-preferred-address-types=InternalIP \
        --audit-policy-file="$E2E_DIR/conf/audit-policy.yaml" --audit-log-path="$E2E_STATE/log/audit.log" \
        --audit-log-mode=blocking --audit-log-maxsize=4096 # an answer is not sent before its line is written
}

api_server_ready() { # one request, no kubectl: it answers in milliseconds
    in_network curl -fsS --max-time 2 --noproxy '*' --cacert "$E2E_STATE/pki/ca.crt" \
        --cert "$E2E_STATE/pki/admin.crt" --key "$E2E_STATE/pki/admin.key" "$E2E_SERVER/readyz"
}

start_controller_manager() {
    local controllers='*'
    # Simulated nodes renew no lease; their pods would be tainted away.
    [ "$E2E_NODES" = real ] || controllers='*,-node-lifecycle-controller'
    start_process kube-controller-manager "$E2E_TOOLS/kube-controller-manager" \
        --kubeconfig="$E2E_STATE/controller-manager.kubeconfig" --controllers="$controllers" \
        --leader-elect=false --secure-port=0 --kube-api-qps=200 --kube-api-burst=400 \
        --service-account-private-key-file="$E2E_STATE/pki/accounts.key" \
        --root-ca-file="$E2E_STATE/pki/ca.crt"
}

# The default account is the work of the controller manager: when it is there, the other loops run too.
controller_manager_ready() {
    in_network "$E2E_TOOLS/kubectl" --kubeconfig="$E2E_STATE/admin.kubeconfig" get serviceaccount default
}

start_scheduler() {
    start_process kube-scheduler "$E2E_TOOLS/kube-scheduler" \
        --kubeconfig="$E2E_STATE/scheduler.kubeconfig" --leader-elect=false --secure-port=0
}

make_credentials() {
    local pki=$E2E_STATE/pki user
    make_ca || die "no CA, see $pki/openssl.log"
    openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$pki/accounts.key" 2>>"$pki/openssl.log"
    openssl pkey -in "$pki/accounts.key" -pubout -out "$pki/accounts.pub"
    make_certificate server kube-apiserver '' \
        "IP:127.0.0.1, DNS:localhost, DNS:kubernetes.default.svc, IP:$E2E_SERVICE_IP"
    # Users of the cluster. Only the controller's and the person's writes are audited; the controller has no right until
    # bind_controller.
    for user in "admin admin system:masters" "person person system:masters" "kubesim kubesim system:masters" \
        "controller neoset-controller" "kubelet system:node:node-1 system:nodes" \
        "controller-manager system:kube-controller-manager system:masters" \
        "scheduler system:kube-scheduler"; do
        # shellcheck disable=SC2086 # a list of words
        set -- $user
        make_user "$1" "$2" "${3:-}"
    done
}

# bind_controller CLUSTERROLE gives the controller's user what its role in deploy/ allows, and no more.
bind_controller() {
    in_network kubectl create clusterrolebinding neoset-controller-e2e --clusterrole="$1" --user=neoset-controller
}

start_control_plane() {
    # Not what an earlier cluster left in the environment.
    E2E_HOLDER='' E2E_NODES=simulated
    run_control_plane "$1"
}

run_control_plane() {
    local begin ports programs=(kubectl etcd kube-apiserver kube-controller-manager)
    [ -z "${NEOSET_E2E_SCHEDULER:-}" ] || programs+=(kube-scheduler)
    "$E2E_DIR/tools/deps" control-plane || return 1
    E2E_TOOLS=$("$E2E_DIR/tools/build" --version "$E2E_VERSION" "${programs[@]}") || return 1
    mkdir -p "$1"
    E2E_STATE=$(cd "$1" && pwd)
    if [ -e "$E2E_STATE/env" ]; then die "$E2E_STATE has a cluster already: end it and remove the directory first"; fi
    begin=$EPOCHREALTIME
    mapfile -t ports < <(free_ports 3)
    # Where pods are real, the port of the Service `kubernetes`, whose address is the node's own: no proxy is needed.
    [ "$E2E_NODES" = simulated ] || ports[0]=443
    E2E_SERVER=https://127.0.0.1:${ports[0]}
    E2E_ETCD=http://127.0.0.1:${ports[1]}
    E2E_ETCD_PEER=http://127.0.0.1:${ports[2]}
    write_env
    # shellcheck disable=SC1091 # written the line above
    . "$E2E_STATE/env"
    start_etcd # it comes up while the keys are made
    make_credentials
    start_api_server
    wait_ready kube-apiserver api_server_ready || return 1
    start_controller_manager
    [ -z "${NEOSET_E2E_SCHEDULER:-}" ] || start_scheduler
    wait_ready kube-controller-manager controller_manager_ready || return 1
    say "control plane $E2E_VERSION ready in $(seconds_since "$begin") s ($E2E_STATE)"
}

stop_control_plane() {
    local name
    [ -n "${E2E_STATE:-}" ] || return 0
    # Clients first, so that the API server does not wait for their watches.
    for name in kube-scheduler kube-controller-manager kube-apiserver etcd; do end_process "$name"; done
}
