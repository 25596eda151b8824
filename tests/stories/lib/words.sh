# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The words that stories are told in. Sourced by `one`, after the server's file. They speak to the API server alone, so a
# story is the same on every server; only `pause_for` and the controller's words belong to the server.
#
# A word that asks ("phase_is db Completed") returns 0 or 1 and leaves what it saw in `seen`. Two words use them:
#   wait_until [SECONDS] QUESTION...    until it is so; the story fails when the time is over
#   check QUESTION...                   it is so now
#   stays SECONDS QUESTION...           it is so now, and all that time

WAIT_SECONDS=${STORY_WAIT_SECONDS:-60} poll_seconds=${poll_seconds:-0.4} soon_seconds=${soon_seconds:-0.2}
step='(before the first step)' seen='' problem=''

Given() { step="Given $*"; tell "$step"; }
When() { step="When $*"; tell "$step"; }
Then() { step="Then $*"; tell "$step"; }
And() { step="And $*"; tell "$step"; }
tell() {
    now_ms
    printf '%6d.%d s  %s\n' $((now_ms / 1000)) $((now_ms / 100 % 10)) "$*"
}

# needs WHAT...: the story is skipped where the server has not got it.
needs() {
    local what
    for what in "$@"; do
        case " $SERVER_HAS " in *" $what "*) ;; *) skip_story "$SERVER has no $what" ;; esac
    done
}
skip_story() {
    echo "skipped: $*"
    exit 77
}
fail() {
    problem=$*
    exit 1
}

# --- the API server ---------------------------------------------------------------------------------------------
path_of() { # kind [name] [subresource]
    local base
    case $1 in
    neoset) base=/apis/apps.neo.io/v1alpha1/namespaces/$namespace/neosets ;;
    pod) base=/api/v1/namespaces/$namespace/pods ;;
    claim) base=/api/v1/namespaces/$namespace/persistentvolumeclaims ;;
    event) base=/api/v1/namespaces/$namespace/events ;;
    service-account) base=/api/v1/namespaces/$namespace/serviceaccounts ;;
    service) base=/api/v1/namespaces/$namespace/services ;;
    configmap) base=/api/v1/namespaces/$namespace/configmaps ;;
    revision) base=/apis/apps/v1/namespaces/$namespace/controllerrevisions ;;
    statefulset) base=/apis/apps/v1/namespaces/$namespace/statefulsets ;;
    *) fail "no kind named $1" ;;
    esac
    echo "$base${2:+/$2}${3:+/$3}"
}
# api METHOD PATH [BODY [CONTENT-TYPE]]: the answer's body; fails unless it is 2xx, then the body says why.
api() {
    local arguments=(-sS --noproxy '*' --max-time 20 --fail-with-body -X "$1")
    [ $# -lt 3 ] || arguments+=(--data-binary "$3" -H "Content-Type: ${4:-application/json}")
    in_network "${server_call[@]}" "${arguments[@]}" "$server_url$2"
}
must() { # what api's arguments
    local what=$1 answer
    shift
    answer=$(api "$@") || fail "$what: $(jq -r '.message // .' <<<"$answer" 2>/dev/null || echo "no answer")"
}
get() { api GET "$(path_of "$1" "$2")" | jq -rcS "${3:-.}"; }
list() { api GET "$(path_of "$1")" | jq -rc ".items | ${2:-.}"; }
patch() { must "patch $1 $2" PATCH "$(path_of "$1" "$2" "${4:-}")" "$3" application/merge-patch+json; }
json_patch() { must "patch $1 $2" PATCH "$(path_of "$1" "$2" "${4:-}")" "$3" application/json-patch+json; }
create() { must "create $1" POST "$(path_of "$1")" "$2"; }
# delete KIND NAME [background|orphan|foreground|now]; now: as `kubectl delete --force --grace-period=0`
delete() {
    local options='{"propagationPolicy":"Background"}'
    case ${3:-background} in
    orphan) options='{"propagationPolicy":"Orphan"}' ;;
    foreground) options='{"propagationPolicy":"Foreground"}' ;;
    now) options='{"gracePeriodSeconds":0}' ;;
    esac
    must "delete $1 $2" DELETE "$(path_of "$1" "$2")" "$options"
}

# --- sets -------------------------------------------------------------------------------------------------------
# Fields are written as PATH=VALUE below .spec; a value is JSON, or else a string; a dot in a name is written \. . Short:
short_path() {
    case $1 in
    image) echo template.spec.containers.0.image ;;
    partition | maxUnavailable | pause | type) echo "updateStrategy.$1" ;;
    timeout) echo updateStrategy.inPlaceUpdateStrategy.readinessTimeoutSeconds ;;
    grace) echo updateStrategy.inPlaceUpdateStrategy.gracePeriodSeconds ;;
    prefetch) echo updateStrategy.inPlaceUpdateStrategy.prefetch ;;
    readiness) echo updateStrategy.inPlaceUpdateStrategy.readiness ;;
    behaviour) echo 'template.metadata.annotations.kubesim\.neo\.io/behaviour' ;;
    label.*) echo "template.metadata.labels.${1#label.}" ;;
    annotation.*) echo "template.metadata.annotations.${1#annotation.}" ;;
    *) echo "$1" ;;
    esac
}
# shellcheck disable=SC2016 # jq's own variables
jq_words='def steps: gsub("\\\\[.]"; "\u0001") | split(".") | map(gsub("\u0001"; ".") | if test("^[0-9]+$") then tonumber else . end);
    def value: . as $text | try fromjson catch $text;
    def pointer: "/spec/" + (map(tostring | gsub("~"; "~0") | gsub("/"; "~1")) | join("/"));'

fields() { # PATH=VALUE... as a JSON list of [path, value]
    local field out=()
    for field in "$@"; do
        case $field in
        *=*) out+=("$(short_path "${field%%=*}")" "${field#*=}") ;;
        *) out+=("$field" "") ;;
        esac
    done
    jq -nc '$ARGS.positional | [range(0; length; 2) as $i | .[$i : $i + 2]]' --args "${out[@]}"
}
manifest() { # name [PATH=VALUE...]
    jq -nc --arg name "$1" --argjson fields "$(fields "${@:2}")" --argjson pod "$pod_defaults" "$jq_words"'
        reduce $fields[] as [$path, $text] ({
            apiVersion: "apps.neo.io/v1alpha1", kind: "NeoSet", metadata: {$name},
            spec: {replicas: 3, serviceName: $name, selector: {matchLabels: {app: $name}},
                template: {metadata: {labels: {app: $name}}, spec: ({terminationGracePeriodSeconds: 1,
                    containers: [{name: "app", image: "app:v1"} + $pod.container]} + $pod.spec)},
                updateStrategy: {inPlaceUpdateStrategy: {readinessTimeoutSeconds: 60, prefetch: "Never"}}}};
            setpath(["spec"] + ($path | steps); $text | value))'
}
# neoset NAME [PATH=VALUE...]: creates a set of three app:v1; claim=NAME gives it a claim template. Without prefetch: most stories
# are about what happens to a pod that gets a bad image.
neoset() {
    local name=$1 arguments=() argument
    shift
    for argument in "$@"; do
        case $argument in
        claim=*) arguments+=("volumeClaimTemplates=[{\"metadata\":{\"name\":\"${argument#*=}\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}]") ;;
        *) arguments+=("$argument") ;;
        esac
    done
    create neoset "$(manifest "$name" "${arguments[@]}")"
}
# edit NAME PATH=VALUE...: all in one write; -PATH takes a field away.
edit() {
    local name=$1 field patch='' one
    shift
    for field in "$@"; do
        if [[ $field = -* ]]; then
            one=$(jq -nc --arg path "$(short_path "${field#-}")" "$jq_words"'{op: "remove", path: ($path | steps | pointer)}')
        else
            one=$(jq -nc --arg path "$(short_path "${field%%=*}")" --arg text "${field#*=}" \
                "$jq_words"'{op: "add", path: ($path | steps | pointer), value: ($text | value)}')
        fi
        patch+=${patch:+,}$one
    done
    json_patch neoset "$name" "[$patch]"
}
set_image() { edit "$1" image="$2"; }
scale() { edit "$1" replicas="$2"; }
refused() { # api's arguments: the server says no, and `seen` is how
    if seen=$(api "$@" 2>&1); then return 1; fi
}
neosetctl() { in_network "$build/neosetctl" "${person[@]}" --kubeconfig "$person_kubeconfig" -n "$namespace" "$@"; }

# --- what happens to pods ----------------------------------------------------------------------------------------
# behave POD WORDS: how the simulated kubelet treats it from now on (tools/kubesim/kubelet.h).
behave() { patch pod "$1" "{\"metadata\":{\"annotations\":{\"kubesim.neo.io/behaviour\":\"$2\"}}}"; }

# --- questions ---------------------------------------------------------------------------------------------------
is() { # expected actual
    seen=$2
    [ "$1" = "$2" ]
}
matches() { # regular-expression actual
    seen=$2
    [[ $2 =~ $1 ]]
}
status() { get neoset "$1" ".status.$2"; }
status_is() { is "$3" "$(status "$1" "$2")"; }
phase_is() { status_is "$1" phase "$2"; }
message_says() { matches "$2" "$(status "$1" message)"; }
condition_is() { is "$3" "$(get neoset "$1" ".status.conditions[]? | select(.type == \"$2\") | .status")"; }
# The controller has seen the last edit, and all pods are ready.
ready_are() {
    is "$2 of $2, observed" "$(get neoset "$1" '"\(.status.readyReplicas) of \(.spec.replicas), \(
        if .status.observedGeneration == .metadata.generation then "observed" else "not observed" end)"')"
}
ready_are_not() { not status_is "$1" readyReplicas "$2"; }
completed() { # the last template is on every pod, and proven
    is "Completed, observed" "$(get neoset "$1" '"\(.status.phase), \(
        if .status.observedGeneration == .metadata.generation then "observed" else "not observed" end)"')"
}
settled() { # nothing is left to do: as `completed`, or a new set that is complete for the first time
    matches "^(Completed|Idle), observed, (.*) of \2$" "$(get neoset "$1" '"\(.status.phase), \(
        if .status.observedGeneration == .metadata.generation then "observed" else "not observed" end), \(
        .status.readyReplicas) of \(.spec.replicas)"')" && [ "${BASH_REMATCH[0]}" = "$seen" ]
}
# pods NAME [JQ]: of one set, by ordinal
pods() {
    api GET "$(path_of pod)?labelSelector=app%3D$1" |
        jq -rc '[.items[] | . + {ordinal: (.metadata.name | capture("-(?<n>[0-9]+)$").n | tonumber)}] | sort_by(.ordinal) | '"${2:-.}"
}
pods_are() { is "$2" "$(pods "$1" 'map(.ordinal) | join(" ")')"; }
images_are() { is "${*:2}" "$(pods "$1" 'map(.spec.containers[0].image) | join(" ")')"; }
restarts_are() { is "${*:2}" "$(pods "$1" 'map(.status.containerStatuses[0].restartCount) | join(" ")')"; }
uids() { pods "$1" 'map(.metadata.uid) | join(" ")'; }
uids_are() { is "${*:2}" "$(uids "$1")"; }
object_is() { is "$4" "$(get "$1" "$2" "$3" 2>/dev/null)"; } # kind name jq value
list_is() { is "$3" "$(list "$1" "$2")"; }                    # kind jq value
pod_is() { object_is pod "$@"; }
pod_waits_with() { # pod reason: of its first container; reasons are parted by |
    matches "^($2)$" "$(get pod "$1" '.status.containerStatuses[0].state.waiting.reason' 2>/dev/null)"
}
pod_ready() { pod_is "$1" '.status.conditions[]? | select(.type == "Ready") | .status' "${2:-True}"; }
terminating() { get "$1" "$2" '.metadata.deletionTimestamp != null' | grep -qx true; }
orphaned_all() { is 0 "$(list pod 'map(.metadata.ownerReferences // [] | length) | add')"; }
neosetctl_ends_with() { # exit code, words: within ten seconds
    local code=$1
    shift
    in_network timeout 10 "$build/neosetctl" "${person[@]}" --kubeconfig "$person_kubeconfig" -n "$namespace" "$@" >"$folder/status" 2>&1
    is "$code" "$?"
}
status_ends() { neosetctl_ends_with 0 status "$1" -w; } # the command that waits for a rollout has nothing to wait for
exists() { api GET "$(path_of "$1" "$2")" >/dev/null 2>&1; }
gone() { ! exists "$1" "$2"; }
claims_are() { is "$*" "$(list claim 'map(select(.metadata.deletionTimestamp == null) | .metadata.name) | sort | join(" ")')"; }
revisions_are() { is "$2" "$(list revision "map(select(.metadata.ownerReferences[0].name == \"$1\")) | length")"; }
revision_of() { get pod "$1" '.metadata.labels["controller-revision-hash"]'; }
event_says() { matches "$1" "$(list event 'map("\(.reason): \(.message)") | join("\n")'; lost_events)"; }

check() {
    "$@" || fail "not so: $*; seen: $seen"
}
not() {
    if "$@"; then return 1; fi
}
wait_until() {
    local seconds=$WAIT_SECONDS end tries=0
    if [[ $1 =~ ^[0-9]+$ ]]; then
        seconds=$1
        shift
    fi
    now_ms
    end=$((now_ms + seconds * 1000))
    until "$@"; do
        now_ms
        [ "$now_ms" -lt "$end" ] || fail "not within $seconds s: $*; seen last: $seen"
        # What comes soon is seen soon; for what takes long a second does not matter.
        if [ "$((tries++))" -lt 10 ]; then pause_for "$soon_seconds"; else pause_for "$poll_seconds"; fi
    done
}
stays() {
    local end
    now_ms
    end=$((now_ms + $1 * 1000))
    while check "${@:2}" && now_ms && [ "$now_ms" -lt "$end" ]; do pause_for 0.4; done
}

# --- what was seen on the way -----------------------------------------------------------------------------------
# Everything since the story began, or since the last `from_now`: the server tells each state, none is missed between two looks.
watch_everything() { # by `one`, when the server is there
    local kind version
    for kind in pod neoset; do
        version=$(api GET "$(path_of "$kind")" | jq -r .metadata.resourceVersion)
        exec_in_network "${server_call[@]}" -sS --noproxy '*' -N "$server_url$(path_of "$kind")?watch=1&resourceVersion=$version" \
            >"$folder/$kind.watch" 2>/dev/null &
        background+=($!)
        disown $!
    done
    from_now
}
from_now() { pods_seen=$(($(wc -l <"$folder/pod.watch") + 1)) sets_seen=$(($(wc -l <"$folder/neoset.watch") + 1)); }
pod_events() { tail -n "+$pods_seen" "$folder/pod.watch"; }
set_events() { tail -n "+$sets_seen" "$folder/neoset.watch" | jq -c --arg name "$1" 'select(.object.metadata.name == $name)'; }

# The states that a field of the status went through: fields_were NAME FIELD VALUE...
fields_were() { is "${*:3}" "$(set_events "$1" | jq -c ".object.status.$2" | uniq | jq -sr 'map(select(. != null)) | join(" ")')"; }
stages_were() { fields_were "$1" currentPartition "${@:2}"; }
# always_ready NAME N: at each moment at least N of its pods were ready and not terminating.
always_ready() {
    seen=$(jq -nr --arg app "$1" --argjson from "$pods_seen" '
        def ready: .metadata.deletionTimestamp == null and any(.status.conditions[]?; .type == "Ready" and .status == "True");
        [foreach inputs as $event ({line: 0, pods: {}};
            .line += 1
            | if $event.object.metadata.labels.app != $app then .
              elif $event.type == "DELETED" then del(.pods[$event.object.metadata.name])
              else .pods[$event.object.metadata.name] = ($event.object | ready) end;
            if .line >= $from - 1 then [.pods[] | select(.)] | length else empty end)]
        | "\(min) of \(length) states"' "$folder/pod.watch")
    [ "${seen%% *}" -ge "$2" ]
}
# The images that a pod of this name had, one after another, whatever its uid.
images_were() { is "${*:2}" "$(pod_events | jq -r --arg pod "$1" 'select(.object.metadata.name == $pod and .type != "DELETED") | .object.spec.containers[0].image' | uniq | paste -sd ' ')"; }
first_with_is() { # image pod: the first pod that had it
    is "$2" "$(pod_events | jq -r --arg image "$1" 'select(.object.spec.containers[0].image == $image) | .object.metadata.name' | head -n 1)"
}
never_ran() { # pod image
    is "" "$(pod_events | jq -r --arg pod "$1" --arg image "$2" \
        'select(.object.metadata.name == $pod and any(.object.spec.containers[]; .image == $image)) | $image' | head -n 1)"
}
# How many pods of this name there were: `lived POD REGULAR-EXPRESSION`.
lived() { matches "$2" "$(lives_of "$1")"; }
lives_of() { pod_events | jq -r --arg pod "$1" 'select(.object.metadata.name == $pod) | .object.metadata.uid' | sort -u | wc -l; }

# writes: how many of the controller's writes the server accepted (those to its lease and those that only report apart).
# Only where there is an audit log.
writes() { audit_of_story | jq -r 'select((.auditID | startswith("neo-")) and .responseStatus.code < 300
    and .objectRef.resource != "leases") | .auditID' | wc -l; }
