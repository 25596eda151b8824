# shellcheck shell=bash
# What every part of the real cluster shares: messages, free ports, processes that are known by pid and
# start time, bounded waiting, and clean-up on every exit. Sourced, never run; callers use `set -euo pipefail`.
#
# A cluster is one state directory (E2E_STATE): pid/NAME, log/NAME.log, the kubeconfigs and `env`.

# shellcheck disable=SC2034 # read by the other files of this folder
E2E_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
E2E_WAIT_SECONDS=${NEOSET_E2E_WAIT_SECONDS:-60}

say() { printf '%s\n' "$*" >&2; }
die() { say "e2e: $*"; exit 1; }

# Seconds with a fraction since an earlier $EPOCHREALTIME.
seconds_since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }'; }

# on_exit COMMAND... runs it when the script ends, however it ends, the last one named first.
E2E_ON_EXIT=()
on_exit() {
    E2E_ON_EXIT=("$(printf '%q ' "$@")" "${E2E_ON_EXIT[@]}")
    trap run_on_exit EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
}
run_on_exit() {
    local code=$? command
    trap '' HUP INT TERM # a second Ctrl-C must not leave half a cluster behind
    set +e
    for command in "${E2E_ON_EXIT[@]}"; do eval "$command"; done
    exit "$code"
}

# free_ports N prints N ports nobody listens on. They lie below the ephemeral range, so no outgoing
# connection of another program takes one between this look and the bind.
free_ports() {
    local n=$1 port seen=" "
    while [ "$n" -gt 0 ]; do
        port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
        case $seen in *" $port "*) continue ;; esac
        if ! in_network bash -c "exec 3<>/dev/tcp/127.0.0.1/$port" 2>/dev/null; then
            seen="$seen$port "
            echo "$port"
            n=$((n - 1))
        fi
    done
}

# in_network COMMAND... runs it in the cluster's network: the node's namespace, or here where there is none.
in_network() {
    if [ -n "${E2E_HOLDER:-}" ]; then
        nsenter --net="/proc/$E2E_HOLDER/ns/net" -- "$@"
    else
        "$@"
    fi
}

# exec_in_network PROGRAM... & - the same for the background: $! is the program itself, to be killed by.
exec_in_network() {
    if [ -n "${E2E_HOLDER:-}" ]; then set -- nsenter --net="/proc/$E2E_HOLDER/ns/net" -- "$@"; fi
    exec "$@"
}

# Field 22 of /proc/PID/stat: with the pid it names a process for good, also after the pid was reused.
process_start() { sed 's/^.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20; }

process_pid() { # name: its pid, if it lives
    local pid start state threads
    read -r pid start 2>/dev/null <"$E2E_STATE/pid/$1" || return 1
    [ "$(process_start "$pid")" = "$start" ] || return 1
    read -r state _ < <(sed 's/^.*) //' "/proc/$pid/stat" 2>/dev/null) || return 1
    # A zombie is dead when its last thread is: until then its ports may still be bound.
    threads=("/proc/$pid/task/"*)
    [ "$state" != Z ] || [ ${#threads[@]} -gt 1 ] || return 1
    echo "$pid"
}

record_process() { # name pid
    mkdir -p "$E2E_STATE/pid"
    echo "$2 $(process_start "$2")" >"$E2E_STATE/pid/$1"
}

# start_process NAME COMMAND... starts it in the cluster's network, apart from the terminal, and records it.
start_process() {
    local name=$1
    shift
    mkdir -p "$E2E_STATE/log"
    exec_in_network setsid "$@" </dev/null >>"$E2E_STATE/log/$name.log" 2>&1 &
    disown $! # or bash comments on its death
    record_process "$name" $!
}

# end_process NAME [SECONDS] asks, waits, then kills; 0 kills at once. No such process is no error.
end_process() {
    local name=$1 pid tries=$((${2:-10} * 20))
    if pid=$(process_pid "$name"); then
        [ "$tries" -eq 0 ] || kill -TERM "$pid" 2>/dev/null || true
        while [ "$tries" -gt 0 ] && process_pid "$name" >/dev/null; do
            sleep 0.05
            tries=$((tries - 1))
        done
        if process_pid "$name" >/dev/null; then kill -KILL "$pid" 2>/dev/null || true; fi
        while process_pid "$name" >/dev/null; do sleep 0.02; done
    fi
    rm -f "$E2E_STATE/pid/$name"
    return 0
}

# wait_for SECONDS WHAT COMMAND... until the command succeeds; says what never came.
wait_for() {
    local seconds=$1 what=$2 end
    shift 2
    end=$((SECONDS + seconds))
    until "$@" >/dev/null 2>&1; do
        if [ "$SECONDS" -ge "$end" ]; then
            say "e2e: $what did not come within $seconds s"
            return 1
        fi
        sleep 0.1
    done
}

# wait_ready NAME COMMAND... as above, for a program we started: a dead one is not waited for.
wait_ready() {
    local name=$1 end=$((SECONDS + E2E_WAIT_SECONDS))
    shift
    until "$@" >/dev/null 2>&1; do
        if ! process_pid "$name" >/dev/null || [ "$SECONDS" -ge "$end" ]; then
            say "e2e: $name is not ready; the end of $E2E_STATE/log/$name.log:"
            tail -n 15 "$E2E_STATE/log/$name.log" >&2
            return 1
        fi
        sleep 0.05
    done
}
