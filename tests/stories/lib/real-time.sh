# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What servers that live in real time share: the clock, and the controller as a process of the story's own.

SERVER_HAS+=" one-life"
story_began_us=${EPOCHREALTIME/./}
now_ms() { now_ms=$(((${EPOCHREALTIME/./} - story_began_us) / 1000)); } # into the variable of its name: no process for that
pause_for() { sleep "$1"; }

journal=$folder/journal.db
[ ! -x "$build-crash/neoset-controller" ] || SERVER_HAS+=" crash-points" # another build of it
# start_controller [EDGE:KIND]: of the build with crash points, it ends itself there.
start_controller() {
    local program=$build/neoset-controller
    [ -z "${1:-}" ] || program=$build-crash/neoset-controller
    NEOSET_CRASH=${1:-} exec_in_network "$program" --kubeconfig "$controller_kubeconfig" --journal "$journal" -n "$namespace" \
        --lease "$lease" --listen none >>"$folder/controller.log" 2>&1 &
    controller=$!
    background+=("$controller")
}
controller_lives() { kill -0 "$controller" 2>/dev/null; }
kill_controller() {
    kill -KILL "$controller" 2>/dev/null || true
    { wait "$controller" || true; } 2>/dev/null
}
# It starts no new step, waits for answers and ends.
stop_controller() {
    local code=0
    kill -TERM "$controller" 2>/dev/null || true
    { wait "$controller" || code=$?; } 2>/dev/null
    [ "$code" -eq 0 ] || fail "the controller ended with $code"
}
lost_events() { :; }
come_to_rest() { :; } # a controller that dies in a story is started again by the story
