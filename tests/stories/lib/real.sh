# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Stories on a real kube-apiserver and kube-controller-manager; kubesim's kubelet plays the nodes. One control plane, a
# namespace and a controller a story.
SERVER_HAS="behaviours claims audit policies clock"

open_server() { # once, by `run`
    start_control_plane "$work/cluster"
    prepare_server
    start_process kubelet "$build/kubesim" kubelet --kubeconfig "$E2E_STATE/kubesim.kubeconfig"
}
prepare_server() {
    in_network kubectl apply -f "$top/deploy/crd.yaml" -f "$top/deploy/rbac.yaml" >/dev/null
    wait_for 30 "the definition" in_network kubectl wait --for=condition=Established crd/neosets.apps.neo.io --timeout=1s
    # Established, its storage may still be made ready: 429.
    wait_for 30 "the first list" in_network kubectl get neosets
    bind_controller neoset-controller >/dev/null
}
close_server() {
    end_process kubelet
    stop_control_plane
}

open_story() {
    local pki
    use_cluster "$STORY_CLUSTER"
    pki=$E2E_STATE/pki
    namespace=story-$name
    server_url=$E2E_SERVER
    server_call=(curl --cacert "$pki/ca.crt" --cert "$pki/admin.crt" --key "$pki/admin.key")
    sed "s/namespace: default/namespace: $namespace/" "$E2E_STATE/admin.kubeconfig" >"$folder/kubeconfig"
    person_kubeconfig=$folder/kubeconfig controller_kubeconfig=$E2E_STATE/controller.kubeconfig
    person=() poll_seconds=0.8
    lease=$namespace/neoset audit_log=$E2E_AUDIT_LOG
    must "a namespace" POST /api/v1/namespaces "{\"metadata\":{\"name\":\"$namespace\"}}"
    must "a role" POST "/apis/rbac.authorization.k8s.io/v1/namespaces/$namespace/roles" '{"metadata":{"name":"neoset-controller"},
        "rules":[{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"verbs":["create"]},
        {"apiGroups":["coordination.k8s.io"],"resources":["leases"],"resourceNames":["neoset"],"verbs":["get","patch"]}]}'
    must "its binding" POST "/apis/rbac.authorization.k8s.io/v1/namespaces/$namespace/rolebindings" '{
        "metadata":{"name":"neoset-controller"},"subjects":[{"kind":"User","name":"neoset-controller","apiGroup":"rbac.authorization.k8s.io"}],
        "roleRef":{"kind":"Role","name":"neoset-controller","apiGroup":"rbac.authorization.k8s.io"}}'
}
end_world() { :; }
close_story() { # so that many stories do not fill the node; the namespace controller does it later
    api DELETE "/api/v1/namespaces/$namespace" >/dev/null 2>&1 || true
}
audit_of_story() { jq -c --arg namespace "$namespace" 'select(.objectRef.namespace == $namespace)' "$audit_log"; }

# Every pod that is made in the namespace of the story gets a label, and a second container, as a webhook does it.
admission_policy() {
    local policies=/apis/admissionregistration.k8s.io/v1
    must "a policy" POST $policies/mutatingadmissionpolicies '{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingAdmissionPolicy",
        "metadata":{"name":"'"$namespace"'"},"spec":{"failurePolicy":"Fail","reinvocationPolicy":"Never",
        "matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}],
            "namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"'"$namespace"'"}}},
        "mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"[JSONPatch{op: \"add\", path: \"/metadata/labels/injected\", value: \"injected\"}, JSONPatch{op: \"add\", path: \"/spec/containers/-\", value: Object.spec.containers{name: \"sidecar\", image: \"side:v1\"}}]"}}]}}'
    must "its binding" POST $policies/mutatingadmissionpolicybindings '{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingAdmissionPolicyBinding",
        "metadata":{"name":"'"$namespace"'"},"spec":{"policyName":"'"$namespace"'"}}'
    wait_until policy_works
}
policy_works() { # it is compiled a moment later
    is injected "$(api POST "$(path_of pod)?dryRun=All" '{"metadata":{"name":"try","labels":{"app":"try"}},"spec":{"containers":[{"name":"app","image":"app"}]}}' |
        jq -r .metadata.labels.injected)"
}
