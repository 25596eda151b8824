#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The resize script over the table of cases that volume_decide() runs over, too, and what goes wrong on its way: under
# dash and busybox sh, with the real jq and a kubectl of ours. Ends with "N passed, N failed".
# Usage: script_cases.sh [--kubesim] [PATTERN]   (part of a case's name)
# The shells take the cases in turns; EACH_SHELL=1: each takes all of them. What goes wrong is tried under each.
# --kubesim: the table alone, with the kubectl of this machine and kubesim as the server.
set -u
top=$(cd "$(dirname "$0")/../../.." && pwd)
build=$(cd "${NEOSET_BUILD:-$top/build/gcc}" && pwd)
cases=$top/tests/volume/cases
server=fake
if [ "${1:-}" = --kubesim ]; then
    server=kubesim
    shift
fi
pattern=${1:-}
work=$(mktemp -d "${TMPDIR:-/tmp}/neoset-script.XXXXXX")
trap 'rm -rf "$work"' EXIT
"$top/tools/embed-script" "$top/src/volume/resize.sh" >"$work/resize.sh"
passed=0
failed=0
skipped=0

ok() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "FAIL $1: $2"
    sed 's/^/    /' "$run/out" "$run/err"
}

shells=()
for shell in dash "busybox sh"; do
    if command -v "${shell%% *}" >/dev/null; then shells+=("$shell"); else skipped=$((skipped + 1)); fi
done

# What kubectl answers from, and what the script is told: made of a case. A set is quiet unless the case says otherwise.
prepare() { # case-file
    # Where we may not read the classes, the server may.
    jq -c --slurpfile fixture "$cases/fixture.json" '{classes: (.classes // $fixture[0].classes), looks: 0,
        claims: [(.claims // [])[] | . as $claim | .metadata += {uid: "uid-\($claim.metadata.name)", resourceVersion: "7"}],
        sets: (if .live then {(.set): {apiVersion: "apps/v1", kind: "StatefulSet",
            metadata: {name: .set, namespace: .namespace, uid: "uid-set", resourceVersion: "100", generation: 3},
            spec: (.spec + .live),
            status: ({observedGeneration: 3, replicas: ((.spec + .live).replicas // 1), readyReplicas: ((.spec + .live).replicas // 1)}
                + (.liveStatus // {}))}} else {} end)}' "$1" >"$run/state.json"
    jq '{apiVersion: "apps/v1", kind: "StatefulSet", metadata: {name: .set}, spec: (.spec + .declared)}' "$1" >"$run/set.json"
    declared=$(jq -c '[{name: .metadata.name} + (.spec | {serviceName, podManagementPolicy, selector, replicas,
        volumeClaimTemplates: [(.volumeClaimTemplates // [])[] | {metadata: ((.metadata // {}) | {name, labels, annotations}), spec}]})]
        | walk(if type == "object" then with_entries(select(.value != null)) else . end)' "$run/set.json")
    namespace=$(jq -r '.namespace // ""' "$1")
    : >"$run/writes"
    : >"$run/calls"
}

run_script() { # shell
    code=0
    # shellcheck disable=SC2086 # a shell may be two words
    PATH=$build/fake:$PATH FAKE_STATE=$run RESIZE_QUIET_SECONDS=${quiet:-0} RESIZE_TIMEOUT_SECONDS=${timeout:-2} \
        RESIZE_NAMESPACE=$namespace RESIZE_DECLARED=$declared TMPDIR=$run HOME=$run timeout 60 $1 "$work/resize.sh" >"$run/out" 2>"$run/err" || code=$?
}

judge_case() { # shell case-file
    local name wanted
    name="$(jq -r .name "$2") ($1)"
    wanted=$(jq -r '.expect | if has("exit") then .exit | tostring
        else {nothing: 0, grow: 0, "bad-input": 1, "not-bound": 1}[.outcome] // 2 | tostring end' "$2")
    [ "$code" = "$wanted" ] || { bad "$name" "exit code $code, not $wanted"; return; }
    [ ! -e "$run/unexpected" ] || { bad "$name" "an unexpected request"; return; }
    if [ "$code" != 0 ]; then
        [ ! -s "$run/writes" ] || { bad "$name" "written: $(cat "$run/writes")"; return; }
        while read -r item; do
            grep -qF -- "$item" "$run/err" || { bad "$name" "$item is not named"; return; }
        done < <(jq -r 'if .expect.difference then empty else .expect.items[].name end' "$2")
    else
        jq -e -n --arg server "$server" --slurpfile writes "$run/writes" --slurpfile case "$2" "$(sed '/^# account /,$d' "$top/src/volume/resize.jq")"'
            # A server has a spelling of its own.
            def is_size($text): . == $text or ($server == "kubesim" and (size | {nano, negative}) == ($text | size | {nano, negative}));
            $case[0] as $case |
            [$writes[] | select(.patch) | {name: .patch, to: .size}] as $patched |
            ($case.expect.items | map(.name)) as $names |
            (if $case.expect.outcome == "grow" or $case.expect.difference
             then ($patched | map(.name)) == $names and ($case.expect.items | all(. as $item | .to == null or ($patched | any(.name == $item.name and (.to | is_size($item.to))))))
                and ([$writes[] | select(.delete) | .delete] == [$case.set])
             else $writes == [] end)' >/dev/null || { bad "$name" "written: $(tr '\n' ' ' <"$run/writes")"; return; }
    fi
    ok
}

# --- the real kubectl against kubesim -----------------------------------------------------------------------------------

sim_pid=
end_sim() {
    [ -z "$sim_pid" ] || { kill "$sim_pid" && wait "$sim_pid"; } 2>/dev/null
    sim_pid=
}
trap 'end_sim; rm -rf "$work"' EXIT

send() { # method path [type]: JSON on stdin
    curl -sS -o "$run/answer" -w '%{http_code}' -X "$1" -H "Content-Type: application/${3:-json}" --data-binary @- "$address$2" | grep -q '^2'
}

# The case as objects of a server: 1, the server would not have some of it.
load() { # case-file
    local case=$1 claim own
    namespace=$(jq -r .namespace "$case")
    "$build/kubesim" --kubeconfig-out "$run/kubeconfig" >"$run/address" 2>"$run/sim.log" &
    sim_pid=$!
    until [ -s "$run/address" ]; do sleep 0.02; done
    address=http://$(grep -o '127.0.0.1:[0-9]*' "$run/address" | head -n 1)
    jq -c --slurpfile fixture "$cases/fixture.json" '(.classes // $fixture[0].classes)[]' "$case" >"$run/classes"
    while read -r claim; do send POST /apis/storage.k8s.io/v1/storageclasses <<<"$claim" || return 1; done <"$run/classes"
    for own in $(jq -r '[.namespace, (.claims // [])[].metadata.namespace] | map(select(.)) | unique[]' "$case"); do
        send POST /api/v1/namespaces <<<"{\"metadata\":{\"name\":\"$own\"}}" || return 1
    done
    if jq -e .live "$case" >/dev/null; then
        jq '{metadata: {name: .set}, spec: (.spec + .live)}' "$case" | send POST "/apis/apps/v1/namespaces/$namespace/statefulsets" || return 1
        jq --argjson generation "$(jq .metadata.generation "$run/answer")" '((.spec + .live).replicas // 1) as $replicas
            | {status: ({observedGeneration: $generation, replicas: $replicas, readyReplicas: $replicas} + (.liveStatus // {}))}' "$case" |
            send PATCH "/apis/apps/v1/namespaces/$namespace/statefulsets/$(jq -r .set "$case")/status" merge-patch+json || return 1
    fi
    jq -c '.namespace as $namespace | (.claims // [])[] | .metadata.namespace |= (. // $namespace)' "$case" >"$run/claims"
    while read -r claim; do
        own=/api/v1/namespaces/$(jq -r .metadata.namespace <<<"$claim")/persistentvolumeclaims
        jq 'if .metadata.deletionTimestamp then .metadata.finalizers = ["example.com/hold"] | del(.metadata.deletionTimestamp) else . end | del(.status)' <<<"$claim" |
            send POST "$own" || return 1
        jq '{status: (.status // {})}' <<<"$claim" | send PATCH "$own/$(jq -r .metadata.name <<<"$claim")/status" merge-patch+json || return 1
        ! jq -e .metadata.deletionTimestamp <<<"$claim" >/dev/null || send DELETE "$own/$(jq -r .metadata.name <<<"$claim")" <<<'{}' || return 1
    done <"$run/claims"
}

look() { # all that could have been written: "kind name version size"
    {
        curl -sS "$address/apis/apps/v1/statefulsets"
        curl -sS "$address/api/v1/persistentvolumeclaims"
    } | jq -r '.items[] | "\(.kind // "x") \(.metadata.namespace)/\(.metadata.name) \(.metadata.resourceVersion) \(.spec.resources.requests.storage // "-")"'
}

# What was written, in the words of the fake one.
compare_looks() {
    while read -r _ name version size; do
        if ! grep -q " $name $version " "$run/before"; then jq -cn --arg name "${name#*/}" --arg size "$size" '{patch: $name, size: $size}'; fi
    done <"$run/after" >"$run/writes"
    while read -r _ name _ size; do
        if [ "$size" = - ] && ! grep -q " $name [0-9]* -" "$run/after"; then jq -cn --arg name "${name#*/}" '{delete: $name}'; fi
    done <"$run/before" >>"$run/writes"
}

run_case_on_kubesim() { # shell case-file
    declared=
    prepare "$2"
    if ! load "$2"; then
        skipped=$((skipped + 1))
        echo "skipped, no server would have it: $(jq -r .name "$2"): $(jq -r '.message // .' "$run/answer" 2>/dev/null | head -c 200)"
        end_sim
        return
    fi
    look >"$run/before"
    code=0
    # shellcheck disable=SC2086
    KUBECONFIG=$run/kubeconfig RESIZE_QUIET_SECONDS=0 RESIZE_TIMEOUT_SECONDS=5 RESIZE_NAMESPACE=$namespace RESIZE_DECLARED=$declared \
        TMPDIR=$run timeout 120 $1 "$work/resize.sh" >"$run/out" 2>"$run/err" || code=$?
    look >"$run/after"
    end_sim
    compare_looks
    judge_case "$1" "$2"
}

run_table() {
    local file name index shell chosen
    for file in "$cases"/*.json; do
        [ "${file##*/}" != fixture.json ] || continue
        jq -c --slurpfile fixture "$cases/fixture.json" '.[] | $fixture[0] + .' "$file"
    done | jq -c 'select(.expect | if has("exit") then .exit != null else true end)' >"$work/cases"
    index=0
    while read -r line; do
        index=$((index + 1))
        name=$(jq -r .name <<<"$line")
        [[ $name == *"$pattern"* ]] || continue
        chosen=("${shells[@]}")
        [ -n "${EACH_SHELL:-}" ] || chosen=("${shells[index % ${#shells[@]}]}")
        for shell in "${chosen[@]}"; do
            run=$work/$index-${shell%% *}
            mkdir "$run"
            printf '%s\n' "$line" >"$run/case.json"
            if [ "$server" = kubesim ]; then
                run_case_on_kubesim "$shell" "$run/case.json" </dev/null
                continue
            fi
            prepare "$run/case.json"
            run_script "$shell" </dev/null
            judge_case "$shell" "$run/case.json"
        done
    done <"$work/cases"
}

# --- what goes wrong on the way ---------------------------------------------------------------------------------------

scene() { # name jq-filter-of-the-fixture: prepared for each shell in turn
    jq -c "$2" "$cases/fixture.json" >"$work/scene.json"
    run=$work/scene-$1-${shell%% *}
    mkdir -p "$run"
    prepare "$work/scene.json"
}
expect() { # name exit words writes-as-one-line
    local got
    got=$(jq -r 'to_entries | map(if .key == "patch" then "grow " + .value elif .key == "delete" then "delete " + .value else empty end) | join(" ")' "$run/writes" | paste -sd ' ')
    if [ "$code" != "$2" ]; then
        bad "$1 ($shell)" "exit code $code, not $2"
    elif ! grep -qF -- "$3" "$run/out" "$run/err"; then
        bad "$1 ($shell)" "does not say: $3"
    elif [ "$got" != "$4" ]; then
        bad "$1 ($shell)" "written: $got; not: $4"
    elif [ -e "$run/unexpected" ]; then
        bad "$1 ($shell)" "an unexpected request"
    else
        ok
    fi
}
BOTH="grow data-db-0 grow data-db-1"

run_scenes() {
    local all=.
    scene quota "$all"; FAKE_FAULTS=quota run_script "$shell"
    expect "a quota without room is tried again" 1 "cannot be as large as 2Gi for now" ""
    scene quota-full "$all"; FAKE_FAULTS=quota-full run_script "$shell"
    expect "a quota used up to the byte is no class" 1 "cannot grow to 2Gi" ""
    scene forbidden "$all"; FAKE_FAULTS=forbidden run_script "$shell"
    expect "no permission to write claims" 1 "cannot be written at all" ""
    scene flapping "$all"; FAKE_FAULTS=flapping run_script "$shell"
    expect "a set whose status is written all the time is deleted by its newest state" 0 "gone" "$BOTH delete db"
    scene changes "$all"; FAKE_FAULTS=changes run_script "$shell"
    expect "a set that changes is not deleted" 1 "is not quiet" "$BOTH"
    scene unready '.liveStatus += {readyReplicas: 1}'; run_script "$shell"
    expect "a set that is not ready grows and waits" 1 "1 of 2 pods are ready" "$BOTH"
    scene stale '.liveStatus += {observedGeneration: 2}'; run_script "$shell"
    expect "a set whose controller is behind waits" 1 "is not quiet" "$BOTH"
    scene half "$all"; FAKE_FAULTS=lost-data-db-1 run_script "$shell"
    expect "stopped between two claims" 1 "claim data-db-1 was not grown" "grow data-db-0"
    run_script "$shell"
    expect "and gone on with" 0 "gone, the next apply creates it" "$BOTH delete db"
    scene born "$all"; FAKE_FAULTS=born run_script "$shell"
    expect "a claim that was born meanwhile grows too" 0 "claim data-db-9: 1Gi -> 2Gi" "$BOTH grow data-db-9 delete db"
    # Report 37.
    scene collector "$all"; FAKE_FAULTS=collector-off run_script "$shell"
    expect "a collector that is off is waited for, not for ever" 1 "it waits for orphan" "$BOTH delete db"
    jq -c '.looks = 1' "$run/state.json" >"$run/new" && mv "$run/new" "$run/state.json"
    run_script "$shell"
    expect "and the same again waits on, without a second delete" 0 "gone" "$BOTH delete db"
    # Report 35: an old kubectl that knows no orphaning killed pods. What the server answers counts.
    scene not-orphan "$all"; FAKE_FAULTS=not-orphan run_script "$shell"
    expect "a server that would not orphan is found out before anything is written" 1 "would not leave its pods behind" ""
    scene infeasible '.claims[0].spec.resources.requests.storage = "2Gi" | .claims[0].status += {allocatedResources: {storage: "2Gi"},
        allocatedResourceStatuses: {storage: "ControllerResizeInfeasible"}}'; run_script "$shell"
    expect "a size that the driver refuses stops it before the delete" 1 "cannot become 2Gi, its driver says" "grow data-db-1"
    scene infeasible-late "$all"; FAKE_FAULTS=infeasible-late run_script "$shell"
    expect "and when the driver says so a moment later" 1 "cannot become 2Gi, its driver says" "$BOTH"
    scene canary '.live += {updateStrategy: {type: "RollingUpdate", rollingUpdate: {partition: 1}}} | .liveStatus.updateRevision = "db-2"'; run_script "$shell"
    expect "a canary that its partition holds" 2 "a canary is held" ""
    scene replicas '.live += {replicas: 3}'; run_script "$shell"
    expect "more replicas than are declared" 2 "it runs 3 replicas and 2 are declared" ""
    scene defaulted '.live += {replicas: 1} | .declared += {replicas: null}'; run_script "$shell"
    expect "replicas that are not declared are one" 0 "gone" "$BOTH delete db"
    scene restarted '.live += {template: {metadata: {annotations: {"kubectl.kubernetes.io/restartedAt": "x"}}}}'; run_script "$shell"
    expect "a restart by hand is told" 0 "the next apply restarts them" "$BOTH delete db"
    for field in '{serviceName: "other"}' '{podManagementPolicy: "Parallel"}' '{selector: {matchLabels: {app: "other"}}}'; do
        scene immutable ".live += $field"; run_script "$shell"
        expect "another immutable field: $field" 2 "immutable field other than its volume sizes: spec.$(grep -o '[a-zA-Z]*' <<<"$field" | head -n 1)" ""
    done
    scene same-fields '.live += {serviceName: "db", podManagementPolicy: "OrderedReady", selector: {matchLabels: {app: "db"}, matchExpressions: []}}'; run_script "$shell"
    expect "defaults are no difference" 0 "gone" "$BOTH delete db"
    scene capacity '.live.volumeClaimTemplates[0].spec.resources.requests.storage = "9Gi"'; run_script "$shell"
    expect "a growth that failed names the way back" 2 "resize recover" ""

    # Where a Job runs it: kubectl is told of the account, and of nothing that somebody else told it of.
    for host in 10.96.0.1 fd00::1; do
        scene pod "$all"; KUBERNETES_SERVICE_HOST=$host KUBERNETES_SERVICE_PORT=443 run_script "$shell"
        expect "in a pod, the server at $host" 0 "gone" "$BOTH delete db"
    done
    scene told "$all"; KUBECONFIG=/nowhere run_script "$shell"
    expect "a kubeconfig that is given stays" 0 "gone" "$BOTH delete db"

    # A refusal of one set holds up all of them.
    scene two "$all"
    jq -c '.sets.web = (.sets.db | .metadata.name = "web" | .spec.volumeClaimTemplates[0].spec.resources.requests.storage = "5Gi")' "$run/state.json" >"$run/new"
    mv "$run/new" "$run/state.json"
    declared=$(jq -c '. + [.[0] | .name = "web"]' <<<"$declared")
    run_script "$shell"
    expect "one of two sets shrinks" 2 "StatefulSet web: a volume cannot shrink: data 5Gi -> 2Gi" ""

    # What only sh and jq call 2 must not end the Job for good.
    scene input "$all"; declared='{not json'; run_script "$shell"
    expect "a value that is not JSON" 1 "RESIZE_DECLARED is not what" ""
    scene input "$all"; declared='[]'; run_script "$shell"
    expect "an empty value" 1 "RESIZE_DECLARED is not what" ""
    scene input "$all"; declared='[{"name":"../db"}]'; run_script "$shell"
    expect "a name that is a path" 1 "RESIZE_DECLARED is not what" ""
    scene input "$all"; declared=; run_script "$shell"
    expect "no value" 1 "RESIZE_DECLARED is not set" ""
    scene input "$all"; namespace=; run_script "$shell"
    expect "no namespace" 1 "RESIZE_NAMESPACE is not set" ""
    scene input "$all"; namespace='../../x'; run_script "$shell"
    expect "a namespace that is a path" 1 "RESIZE_NAMESPACE is no namespace" ""
    scene nowhere 'del(.live)'; FAKE_FAULTS=no-namespace run_script "$shell"
    expect "a namespace that is not there" 1 "there is no namespace $namespace" ""
    scene nowhere 'del(.live)'; FAKE_FAULTS="no-namespace blind" run_script "$shell"
    expect "whose being there may not be asked is believed" 0 "it is not there: the next apply creates it" ""
    for at in 0 1 2 3 4 5 6 7 8 9; do
        scene "down-$at" "$all"; FAKE_FAULTS="no-server-$at" run_script "$shell"
        # A proof is tried again by itself; after everything else the same again goes on.
        case $code in
        0) expect "the server away at request $at, which is sent again" 0 "gone" "$BOTH delete db" ;;
        1)
            ok
            run_script "$shell"
            expect "and gone on with after request $at" 0 "gone" "$BOTH delete db"
            ;;
        *) bad "the server away at request $at ($shell)" "exit code $code" ;;
        esac
    done
}

# Slips of the shell and of jq, put into the script: exit code 2 of theirs becomes 1.
run_slips() {
    local slip
    for slip in '. /nowhere/at/all' 'echo "$not_set"' 'jq . /nowhere/at/all' 'exit 2' ': >/nowhere/at/all' '}' 'kubectl_that_is_not_there' 'sh -c "exit 2"'; do
        run=$work/slip-${shell%% *}
        mkdir -p "$run"
        awk -v slip="$slip" '/^read_all$/ { print slip } { print }' "$work/resize.sh" >"$run/resize.sh"
        prepare "$cases/fixture.json"
        code=0
        # shellcheck disable=SC2086
        PATH=$build/fake:$PATH FAKE_STATE=$run RESIZE_QUIET_SECONDS=0 RESIZE_NAMESPACE=ns RESIZE_DECLARED=$declared TMPDIR=$run \
            timeout 60 $shell "$run/resize.sh" >"$run/out" 2>"$run/err" || code=$?
        if [ "$code" = 0 ] || [ "$code" = 2 ]; then bad "the slip $slip ($shell)" "exit code $code"; else ok; fi
        if ls "$run"/tmp.* >/dev/null 2>&1; then bad "the slip $slip ($shell)" "temporary files stay"; else ok; fi
    done
}

# The sizes of jq are those of the reference implementation.
run_quantities() {
    local table=$top/tests/volume/quantity.tsv
    run=$work/quantities
    mkdir -p "$run"
    : >"$run/out"
    {
        sed '/^# account /,$d' "$top/src/volume/resize.jq"
        cat <<'EOQ'
inputs | select(startswith("parse\t") or startswith("compare\t")) | split("\t") | . as $row
| if .[0] == "parse" then ($row[1] | fromjson) as $text | ($text | size) as $size
    # A server takes the blanks around a size in JSON away; the table is of the bare text.
    | if ($text | test("\\A\\s|\\s\\z")) then "ok"
      elif $row[2] != "ok" then if $size.nano == null then "ok" else "\($row): \($size)" end
      else ($row[3] | ltrimstr("-") | split(".")) as $parts
        | if $size.nano == ($parts[0] + (($parts[1] // "") + "000000000")[0:9] | strip) and $size.negative == ($row[3] | startswith("-"))
          then "ok" else "\($row): \($size)" end
      end
  else ($row[1] | size) as $a | ($row[2] | size) as $b
    | if $a.negative or $b.negative then "ok"
      elif (if less($a.nano; $b.nano) then "-1" elif less($b.nano; $a.nano) then "1" else "0" end) == $row[3] then "ok"
      else "\($row)" end
  end
EOQ
    } >"$run/program.jq"
    jq -nRr -f "$run/program.jq" "$table" >"$run/rows" 2>"$run/err"
    passed=$((passed + $(grep -c '^ok$' "$run/rows")))
    grep -v '^ok$' "$run/rows" >"$run/out"
    if [ -s "$run/out" ] || [ -s "$run/err" ] || [ "$(grep -c '^ok$' "$run/rows")" -lt 100 ]; then bad "sizes" "not as in quantity.tsv"; fi
}

run_table
if [ -z "$pattern" ] && [ "$server" = fake ]; then
    for shell in "${shells[@]}"; do
        run_scenes
        run_slips
    done
    [ ! -e "$top/tests/volume/quantity.tsv" ] || run_quantities
fi
if [ "$skipped" -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ "$failed" -eq 0 ]
