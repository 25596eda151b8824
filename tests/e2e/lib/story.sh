# shellcheck shell=bash
# What the end-to-end stories share: checks that count, the controller as a process, questions to the cluster.
# Sourced after common.sh; `state` is the cluster's state directory.

# shellcheck disable=SC2154 # top is the caller's
build=${NEOSET_BUILD:-$top/build/gcc}
passed=0 failed=0

check() { # what expected actual
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        say "FAILED $1: expected '$2', got '$3'"
    fi
}
await() { # seconds what command...
    if wait_for "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        say "FAILED $2; status: $(in_network kubectl get neo mysql -o jsonpath='{.status}' 2>&1 || true)"
    fi
}
add_counts() { # "N passed, N failed", a runner's last line; one that ends with anything else has failed
    [[ $1 =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed ]] || BASH_REMATCH=('' 0 1)
    passed=$((passed + BASH_REMATCH[1]))
    failed=$((failed + BASH_REMATCH[2]))
}
run_stories() {
    local story begin
    for story in "$@"; do
        begin=$EPOCHREALTIME
        "$story"
        say "story: ${story#story_}: $(seconds_since "$begin") s"
    done
}
report() {
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}
# Named to on_exit first, so it runs last.
keep_logs_of_failure() {
    if [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]; then
        rm -rf "$state"
    else
        say "e2e: logs and journal are kept in $state"
    fi
}

# --- the controller -----------------------------------------------------------------------------------------------
# start_controller [PROGRAM]
start_controller() {
    journal=$state/journal.db
    start_process controller "${1:-$build/neoset-controller}" --kubeconfig "$state/controller.kubeconfig" \
        --journal "$journal" --lease neoset-system/neoset --listen none
}
# The same built with crash points: it ends itself (SIGKILL) where NEOSET_CRASH=EDGE:KIND says.
start_controller_that_dies_at() {
    NEOSET_CRASH=$1 start_controller "$build-crash/neoset-controller"
}
kill_controller() { end_process controller 0; }
stop_controller() { end_process controller 20; }
controller_is_ready() { tail -n 20 "$state/log/controller.log" | grep -q 'listed [1-9]'; }

# --- questions ----------------------------------------------------------------------------------------------------
status() { in_network kubectl get neo mysql -o "jsonpath={.status.$1}"; }
status_is() { [ "$(status "$1")" = "$2" ]; }
pods_are() { [ "$(in_network kubectl get pods -l app=mysql -o name | wc -l)" = "$1" ]; }
images() { in_network kubectl get pods -l app=mysql -o jsonpath='{range .items[*]}{.spec.containers[0].image}{"\n"}{end}' | sort -u; }
pod_image_is() { [ "$(in_network kubectl get pod "$1" -o jsonpath='{.spec.containers[0].image}')" = "$2" ]; }
uids() { in_network kubectl get pods -l app=mysql -o jsonpath='{range .items[*]}{.metadata.name} {.metadata.uid}{"\n"}{end}' | sort; }
# Writes of the controller that the server saw, without the Lease's renewals.
writes() { jq -r 'select(.objectRef.resource != "leases") | .auditID' "$E2E_AUDIT_LOG" | wc -l; }
set_image() {
    in_network kubectl patch neo mysql --type=json \
        -p "[{\"op\":\"replace\",\"path\":\"/spec/template/spec/containers/0/image\",\"value\":\"$1\"}]" >/dev/null
}
