# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Stories on kubesim over HTTP, in real time: each story has a server of its own (so it may have faults of its own) with a
# kubelet inside, and the real controller.
SERVER_HAS="faults behaviours claims storage-by-hand audit clock"

open_server() { :; }
close_server() { :; }

open_story() {
    local faults=()
    if [ -n "${FAULTS:-}" ]; then faults=(--faults "$FAULTS"); fi
    audit_log=$folder/audit.log
    "$build/kubesim" --listen 127.0.0.1:0 --kubeconfig-out "$folder/kubeconfig" --audit-log "$audit_log" --kubelet ok \
        --crd "$top/deploy/crd.yaml" "${faults[@]}" >"$folder/kubesim.log" 2>&1 &
    background+=($!)
    disown $!
    wait_for 20 "kubesim" test -s "$folder/kubeconfig"
    namespace=default
    server_url=$(sed -n 's/^ *server: *"\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$folder/kubeconfig")
    server_call=(curl)
    person_kubeconfig=$folder/kubeconfig controller_kubeconfig=$folder/kubeconfig
    person=(--as person) # its steps are in a journal of its own
    lease=default/neoset
}
end_world() { :; }
close_story() { :; }
audit_of_story() { jq -c 'select(.user.username != "person")' "$audit_log"; }
