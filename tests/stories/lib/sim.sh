# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Stories in virtual time: controller, kubesim and kubelet are one process (sim.c), the world of the simulation. Time passes
# only in pause_for, so that a story of minutes takes a second.
SERVER_HAS="faults behaviours claims storage-by-hand audit"
[ -n "${CRASH_AT:-}" ] || SERVER_HAS+=" one-life" # of the controller: what it remembers while it lives

# With CRASH_AT the controller dies at that edge of each of its writes: a build with crash points.
story_sim=$build${CRASH_AT:+-crash}/story-sim

open_server() { [ -x "$story_sim" ] || die "no $story_sim: make tests${CRASH_AT:+ VARIANT=crash}"; }
close_server() { :; }

open_story() {
    local arguments=("$folder")
    [ -z "${FAULTS:-}" ] || arguments+=("$FAULTS")
    coproc sim { cd "$top" && exec "$story_sim" "${arguments[@]}" 2>"$folder/sim.log"; }
    # The shell closes its own when the process ends; these stay, and an answer that never comes is an end of file.
    exec {sim_in}>&"${sim[1]}" {sim_out}<&"${sim[0]}"
    background+=("$sim_PID")
    wait_for 20 "the simulator" test -s "$folder/kubeconfig"
    namespace=default
    server_url=$(sed -n 's/^ *server: *//p' "$folder/kubeconfig")
    server_call=(curl)
    person=(--as person) # its steps are in a journal of its own
    person_kubeconfig=$folder/kubeconfig audit_log=$folder/audit.log journal=$folder/journal.db
    now_ms=0 poll_seconds=1
    [ -z "${CRASH_AT:-}" ] || soon_seconds=1 poll_seconds=2 # with so many deaths all takes longer
    [ -z "${PLANT:-}" ] || { tell_sim "plant $PLANT" && [ "$answer" = planted ] || fail "$answer"; }
    [ -z "${CRASH_AT:-}" ] || { tell_sim "die-at $CRASH_AT" && [ "$answer" = "it will" ] || fail "$answer"; }
}
end_world() { # a sanitizer has its word at the end
    tell_sim deaths && echo "$answer" >"$folder/deaths"
    tell_sim end
    wait "$sim_PID" || fail "the simulator ends with $?: $(head -n 5 "$folder/sim.log")"
}
close_story() { :; }
audit_of_story() { jq -c 'select(.user.username != "person")' "$audit_log"; }

tell_sim() { # command: its answer is in `answer`
    echo "$1" >&"$sim_in" && read -r -t 60 answer <&"$sim_out" || fail "the simulator has ended: $(tail -n 5 "$folder/sim.log")"
}
now_ms() { :; } # the variable is what the simulator said last
pause_for() { # seconds, with a fraction
    tell_sim "run ${1}e3"
    now_ms=$answer
}
# The story may be over while the controller is dead.
come_to_rest() { [ -z "${CRASH_AT:-}" ] || pause_for 60; }
# Events go with the controller that dies before it wrote them; why it did something is in the journal.
lost_events() { [ -z "${CRASH_AT:-}" ] || "$build/neoset-audit" export -o jsonl --journal "$journal" | jq -r '.reason // empty'; }
start_controller() { tell_sim start; }
kill_controller() { tell_sim kill; }
stop_controller() {
    tell_sim stop
    [ "$answer" = stopped ] || fail "the controller did not stop"
}
