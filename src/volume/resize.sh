#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes StatefulSets whose declared volumes grew ready for the next apply: their claims are grown, then the set itself is
# deleted with its pods left behind, so that the apply re-creates it with the larger volumeClaimTemplates and it takes its
# pods over. Needs POSIX sh, kubectl and jq, and may do no more than get and delete these StatefulSets and get, list and
# patch claims. Everything is decided and proven by dry runs before anything is written; stopped anywhere, the same again
# goes on.
#
# RESIZE_NAMESPACE         the namespace of all of them
# RESIZE_DECLARED          what they should be, as `neosetctl resize declared` prints it
# RESIZE_TIMEOUT_SECONDS   how long to wait for a deleted set to be gone (300)
# RESIZE_QUIET_SECONDS     how long a set must have been quiet before it is deleted (6)
#
# Exit codes: 0 the next apply can come; 2 refused, nothing was written, and it stays so until a person acts; 1 anything
# else: to be tried again.
set -eu

timeout_seconds=${RESIZE_TIMEOUT_SECONDS:-300}
quiet_seconds=${RESIZE_QUIET_SECONDS:-6}
deletes_max=10 # of one set, each from a newer state of it
rounds_max=5   # of growing claims that were born meanwhile

# --- how it ends ------------------------------------------------------------------------------------------------------

# sh and jq have a 2 of their own, for slips: only refuse() may end with it, because a Job never tries again after it.
refused=
work=
finish() {
    code=$?
    trap - EXIT
    [ -z "$work" ] || rm -rf "$work"
    if [ "$code" = 2 ] && [ -z "$refused" ]; then code=1; fi
    exit "$code"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

say() { printf '%s\n' "$*"; }
complain() { printf 'resize: %s\n' "$*" >&2; }
fail() {
    complain "$*"
    exit 1
}
refuse() {
    complain "refused, nothing was written"
    refused=yes
    exit 2
}

# --- asking the server ------------------------------------------------------------------------------------------------

ask() { kubectl --namespace "$RESIZE_NAMESPACE" --request-timeout=30s "$@" </dev/null; }

# With a time limit kubectl no longer finds the account of the pod that it runs in, and asks localhost instead
# (kubernetes/kubernetes#93474): it is told where that is.
use_account_of_pod() {
    if [ -z "${KUBERNETES_SERVICE_HOST:-}" ] || [ -n "${KUBECONFIG:-}" ] || [ -e "${HOME:-}/.kube/config" ]; then return 0; fi
    jq -n --arg account /var/run/secrets/kubernetes.io/serviceaccount '
        ($ENV.KUBERNETES_SERVICE_HOST | if contains(":") then "[\(.)]" else . end) as $host
        | {apiVersion: "v1", kind: "Config", "current-context": "pod", contexts: [{name: "pod", context: {cluster: "pod", user: "pod"}}],
            clusters: [{name: "pod", cluster: {server: "https://\($host):\($ENV.KUBERNETES_SERVICE_PORT)",
                "certificate-authority": "\($account)/ca.crt"}}],
            users: [{name: "pod", user: {tokenFile: "\($account)/token"}}]}' >"$work/kubeconfig" ||
        fail "there is no place for temporary files"
    export KUBECONFIG="$work/kubeconfig"
}

# The set, or an empty file: there is none. Anything else is an error.
read_set() { # name file
    ask get "statefulsets.apps/$1" --ignore-not-found -o json >"$2" || fail "StatefulSet $1 cannot be read"
}

read_claims() { ask get persistentvolumeclaims -o json >"$work/claims" || fail "the claims cannot be listed"; }

judgement='
@resize.jq@
'

# What is to be done: $work/plan, lines that begin with a word; see there.
judge() {
    cat "$work"/live.* >"$work/lives"
    jq -nr --slurpfile claims "$work/claims" --slurpfile lives "$work/lives" "$judgement" >"$work/plan" ||
        fail "RESIZE_DECLARED and the cluster cannot be compared"
}
tab=$(printf '\t')
plan() { sed -n "s/^$1$tab//p" "$work/plan"; } # the lines of a word
has() { grep -q "^$1$tab" "$work/plan"; }
complain_of() { plan "$1" | while read -r line; do complain "$line"; done; }

read_all() {
    read_claims
    rm -f "$work"/live.*
    number=1000 # so that the shell lists them in their order
    while read -r name; do
        number=$((number + 1))
        read_set "$name" "$work/live.$number"
        [ -s "$work/live.$number" ] || printf 'null\n' >"$work/live.$number"
    done <"$work/names"
    judge
}

# A namespace that was mistyped has nothing to grow either: asked for only when no set is there. Who may not read it, as in
# a Job, is believed.
check_namespace() {
    ! grep -q '{' "$work/lives" || return 0
    ask get "namespaces/$RESIZE_NAMESPACE" --ignore-not-found -o name >"$work/answer" 2>"$work/error" || return 0
    [ -s "$work/answer" ] || fail "there is no namespace $RESIZE_NAMESPACE: set RESIZE_NAMESPACE to the sets' own, or make it"
}

# --- claims -----------------------------------------------------------------------------------------------------------

patch_claim() { # name body [more arguments]
    claim=$1
    body=$2
    shift 2
    ask patch persistentvolumeclaim "$claim" --type=merge -p "$body" --field-manager=sts-volume-resize -o name "$@" >/dev/null 2>"$work/error"
}
why() { tr '\n' ' ' <"$work/error"; }

# May this claim grow? A 403 has many meanings. The same size tells whether we may write at all, one byte more whether the
# class or the amount is in the way; the class is taken for the reason only when the server says so, too, because a quota
# that is used up to the byte looks alike.
probe_claim() { # name from to and the patches to the same size, the target, one byte more
    patch_claim "$1" "$5" --dry-run=server && return 0
    said=$(why)
    if ! patch_claim "$1" "$4" --dry-run=server; then
        complain "claim $1 cannot be written at all: $(why)"
    elif patch_claim "$1" "$6" --dry-run=server; then
        complain "claim $1 cannot be as large as $3 for now: $said"
    elif grep -q 'must support resize' "$work/error"; then
        complain "claim $1 ($2 -> $3): the claim's storage class does not allow volume expansion: set allowVolumeExpansion: true in it, or declare the old size"
        return 2
    else
        complain "claim $1 cannot grow to $3: $said"
    fi
    return 1
}

grow_claims() {
    while IFS=$tab read -r name from to same target more; do
        patch_claim "$name" "$target" ||
            fail "claim $name was not grown, those named above were; the same again goes on: $(why)"
        say "claim $name: $from -> $to"
    done <"$work/grow"
}

# --- the set ----------------------------------------------------------------------------------------------------------

# The only maker of a body of a delete, of a StatefulSet, in jq. Nothing may be in the query: a body silences it, and without
# the policy in the body the pods would be deleted, too.
orphan='def orphan(more): {kind: "DeleteOptions", apiVersion: "v1", propagationPolicy: "Orphan",
    preconditions: (.metadata | {uid, resourceVersion})} + more;'

# The answer is the object with the finalizer orphan, else it was another kind of delete.
delete() { # name
    ask delete --raw "/apis/apps/v1/namespaces/$RESIZE_NAMESPACE/statefulsets/$1" -f "$work/body" >"$work/answer" 2>"$work/error"
}
is_orphaning() { jq -e '.kind == "StatefulSet" and (.metadata.finalizers // [] | index("orphan") != null)' "$work/answer" >/dev/null 2>&1; }

# Its status may be written at any moment: tried again from the newer state.
prove_delete() { # name
    tries=0
    while [ "$tries" -lt "$deletes_max" ]; do
        tries=$((tries + 1))
        read_set "$1" "$work/set"
        [ -s "$work/set" ] || fail "StatefulSet $1 is gone, nothing was written; the same again looks anew"
        jq "$orphan"'orphan({dryRun: ["All"]})' "$work/set" >"$work/body" || fail "StatefulSet $1 cannot be read"
        if delete "$1"; then
            is_orphaning || fail "StatefulSet $1: the server would not leave its pods behind: nothing was written"
            return 0
        fi
    done
    fail "StatefulSet $1 cannot be deleted, nothing was written: $(why)"
}

# Made, ready and not on its way to anything, since pods that were born a moment ago would be lost: the delete of this very
# state is in $work/body. Else $work/body is empty.
read_quiet() { # name uid generation
    read_set "$1" "$work/set"
    jq --arg uid "$2" --argjson generation "$3" "$orphan"'(.spec.replicas // 1) as $replicas |
        select(.metadata.uid == $uid and (.metadata.generation // 0) == $generation and
            (.status.observedGeneration // 0) == $generation and
            (.status.replicas // 0) == $replicas and (.status.readyReplicas // 0) == $replicas) | orphan({})' \
        "$work/set" >"$work/body" || fail "StatefulSet $1 cannot be read"
    [ -s "$work/body" ]
}
how_far() { jq -r '"\(.status.readyReplicas // 0) of \(.spec.replicas // 1) pods are ready"' "$work/set"; }

check_quiet() {
    while IFS=$tab read -r name uid generation; do
        read_quiet "$name" "$uid" "$generation" ||
            fail "StatefulSet $name is not quiet: $(how_far); its claims are grown, the same again goes on"
    done <"$work/sets"
}

delete_set() { # name uid generation
    tries=0
    while [ "$tries" -lt "$deletes_max" ]; do
        tries=$((tries + 1))
        read_quiet "$1" "$2" "$3" || fail "StatefulSet $1 changed meanwhile: its claims are grown, the same again goes on"
        if delete "$1"; then
            is_orphaning || fail "StatefulSet $1: ALARM: the server did not leave its pods behind: look at them now"
            say "StatefulSet $1: deleted, its pods run on"
            return 0
        fi
        sleep 1
    done
    fail "StatefulSet $1 was not deleted; its claims are grown, the same again goes on: $(why)"
}

wait_gone() { # name uid
    waited=0
    while :; do
        read_set "$1" "$work/set"
        if [ ! -s "$work/set" ] || [ "$(jq -r .metadata.uid "$work/set" || :)" != "$2" ]; then
            say "StatefulSet $1: gone, the next apply creates it and it takes its pods over"
            return 0
        fi
        [ "$waited" -lt "$timeout_seconds" ] ||
            fail "StatefulSet $1 is not gone after $timeout_seconds s: it waits for $(jq -r '.metadata.finalizers // [] | join(", ")' "$work/set"); the same again goes on waiting"
        waited=$((waited + 1))
        sleep 1
    done
}

# A size that a driver will never reach must not become the set's. Its answer may come a moment after the growth.
stop_at_infeasible() {
    has infeasible || return 0
    complain_of infeasible
    fail "the StatefulSets are as they were: declare less, \`neosetctl resize recover\` leads back"
}

# --- the whole --------------------------------------------------------------------------------------------------------

command -v kubectl >/dev/null || fail "kubectl is not there"
command -v jq >/dev/null || fail "jq is not there"
[ -n "${RESIZE_NAMESPACE:-}" ] || fail "RESIZE_NAMESPACE is not set: the namespace of the StatefulSets"
[ -n "${RESIZE_DECLARED:-}" ] || fail "RESIZE_DECLARED is not set: \`neosetctl resize declared -f FILE\` prints it"
work=$(mktemp -d) || fail "there is no place for temporary files"
use_account_of_pod

# Names become parts of a path: nothing else may be in them.
jq -rn '$ENV.RESIZE_DECLARED | fromjson | if type == "array" and length > 0 then .[] else error("it is no array of sets") end |
    .name | if type == "string" and test("\\A[a-z0-9]([-a-z0-9.]*[a-z0-9])?\\z") then . else error("a name is missing or no name") end' \
    >"$work/names" 2>"$work/error" || fail "RESIZE_DECLARED is not what \`neosetctl resize declared\` prints: $(why)"
case $RESIZE_NAMESPACE in
-* | *- | *[!-a-z0-9]*) fail "RESIZE_NAMESPACE is no namespace: $RESIZE_NAMESPACE" ;;
esac

read_all
check_namespace
# Refusals and what may pass are all told before it ends with either.
complain_of refused
! has refused || refuse
plan account
plan claim >"$work/grow"
is_refused=
is_held=
while IFS=$tab read -r name from to same target more; do
    verdict=0
    probe_claim "$name" "$from" "$to" "$same" "$target" "$more" || verdict=$?
    case $verdict in
    0) ;;
    2) is_refused=yes ;;
    *) is_held=yes ;;
    esac
done <"$work/grow"
[ -z "$is_refused" ] || refuse
complain_of unbound
complain_of fault
if [ -n "$is_held" ] || has unbound || has fault; then fail "nothing was written"; fi
plan set >"$work/sets"
plan gone >"$work/gone"
while IFS=$tab read -r name uid generation; do prove_delete "$name"; done <"$work/sets"

# A pod that was born meanwhile made its claim from the small template: looked at again until none is.
round=0
while [ -s "$work/grow" ]; do
    round=$((round + 1))
    [ "$round" -le "$rounds_max" ] || fail "small claims appear again and again: the same again goes on"
    grow_claims
    read_all
    plan claim >"$work/grow"
    plan set >"$work/sets"
done
stop_at_infeasible
if [ -s "$work/sets" ]; then
    check_quiet
    sleep "$quiet_seconds"
    check_quiet
    read_all
    ! has claim || fail "claims were created meanwhile: the same again grows them"
    stop_at_infeasible
fi
while IFS=$tab read -r name uid generation; do
    delete_set "$name" "$uid" "$generation"
    printf '%s\t%s\n' "$name" "$uid" >>"$work/gone"
done <"$work/sets"
while IFS=$tab read -r name uid; do
    wait_gone "$name" "$uid"
done <"$work/gone"
