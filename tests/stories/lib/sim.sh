# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Stories in virtual time: controller, kubesim and kubelet are one process (sim.c), the world of the simulation. Time passes
# only in pause_for, so that a story of minutes takes a second.
SERVER_HAS="faults behaviours claims audit"

open_server() { :; }
close_server() { :; }

open_story() {
    local arguments=("$folder")
    [ -z "${FAULTS:-}" ] || arguments+=("$FAULTS")
    coproc sim { cd "$top" && exec "$build/story-sim" "${arguments[@]}" 2>"$folder/sim.log"; }
    # The shell closes its own when the process ends; these stay, and an answer that never comes is an end of file.
    exec {sim_in}>&"${sim[1]}" {sim_out}<&"${sim[0]}"
    background+=("$sim_PID")
    wait_for 20 "the simulator" test -s "$folder/kubeconfig"
    namespace=default
    server_url=$(sed -n 's/^ *server: *//p' "$folder/kubeconfig")
    server_call=(curl)
    person=(--as person) # its steps are in a journal of its own
    person_kubeconfig=$folder/kubeconfig audit_log=$folder/audit.log journal=$folder/journal.db
    clock_ms=0 poll_seconds=1
}
close_story() { :; }
audit_of_story() { jq -c 'select(.user.username != "person")' "$audit_log"; }

tell_sim() { # command: its answer is in `answer`
    echo "$1" >&"$sim_in" && read -r -t 60 answer <&"$sim_out" || fail "the simulator has ended: $(tail -n 5 "$folder/sim.log")"
}
clock() { awk -v ms="$clock_ms" 'BEGIN { print ms / 1000 }'; }
clock_in() { echo $((clock_ms + $1 * 1000)); }
clock_before() { if [ "$clock_ms" -lt "$1" ]; then echo yes; else echo no; fi; }
pause_for() {
    tell_sim "run $(awk -v s="$1" 'BEGIN { print s * 1000 }')"
    clock_ms=$answer
}
start_controller() { tell_sim start; }
kill_controller() { tell_sim kill; }
stop_controller() {
    tell_sim stop
    [ "$answer" = stopped ] || fail "the controller did not stop"
}
