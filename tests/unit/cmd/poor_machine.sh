#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs on a machine that gives them little: few open files, a disk that takes seconds to sync. One clear sentence each.
set -u
cd "$(dirname "$0")/../../.." || exit 1
build=${NEOSET_BUILD:-build/gcc}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/neoset-poor.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
passed=0
failed=0

# is WHAT WANTED GOT
is() {
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s: wanted "%s", got "%s"\n' "$1" "$2" "$3"
    fi
}
# says WHAT WORDS FILE
says() { is "$1" "$2" "$(grep -oF -m 1 -- "$2" "$3")"; }

cat >"$scratch/kubeconfig" <<'END'
apiVersion: v1
kind: Config
current-context: nobody
contexts: [{name: nobody, context: {cluster: nobody, user: nobody}}]
clusters: [{name: nobody, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: nobody, user: {}}]
END
controller=("$build/neoset-controller" --once --no-lease --listen none --kubeconfig "$scratch/kubeconfig")

for few in 12 63; do
    (ulimit -n "$few" && exec "${controller[@]}" --journal "$scratch/few.db") >"$scratch/log" 2>&1
    is "neoset-controller with $few files" 1 $?
    says "neoset-controller with $few files" "only $few files may be open at a time, and neoset-controller needs 64: raise the limit (ulimit -n 1024" "$scratch/log"
    is "and says no more" 1 "$(wc -l <"$scratch/log")"
done
(ulimit -n 12 && exec "$build/neosetctl" get --kubeconfig "$scratch/kubeconfig") >"$scratch/log" 2>&1
is "neosetctl with 12 files" 1 $?
says "neosetctl with 12 files" "neosetctl needs 64" "$scratch/log"
# A soft limit is no obstacle: it is raised.
(ulimit -Sn 12 && exec timeout 5 "${controller[@]}" --journal "$scratch/soft.db") >"$scratch/log" 2>&1
says "neoset-controller with a soft limit of 12" "opens the journal $scratch/soft.db" "$scratch/log"
says "and goes on" "Connection refused" "$scratch/log"

# A stream that was closed is none that a connection or a lock may take the number of.
mkdir "$scratch/state"
ctl=(env "XDG_STATE_HOME=$scratch/state" "$build/neosetctl" resize plan --timeout 2s --kubeconfig "$scratch/kubeconfig" -f)
"${ctl[@]}" - <&- >"$scratch/log" 2>&1
is "neosetctl without an input" 2 $?
says "neosetctl without an input" "neosetctl: there is no object in -" "$scratch/log"
"$build/neosetctl" resize script >&- 2>"$scratch/log"
is "neosetctl without an output" 1 $?
says "neosetctl without an output" "cannot write the output: Bad file descriptor" "$scratch/log"
"$build/neosetctl" get --kubeconfig "$scratch/kubeconfig" <&- >&- 2>"$scratch/log"
is "neosetctl with neither" 1 $?
says "neosetctl with neither" "Connection refused" "$scratch/log"
"$build/neoset-audit" verify --journal "$scratch/soft.db" >&- 2>"$scratch/log"
is "neoset-audit without an output" 1 $?
says "neoset-audit without an output" "cannot write the output: Bad file descriptor" "$scratch/log"

# A sync of two seconds. A sanitizer does not let anything be loaded before itself.
if ! nm -D "$build/neoset-controller" 2>/dev/null | grep -q __asan; then
    printf '#include <unistd.h>\n#include <sys/syscall.h>\nint fdatasync(int fd) { usleep(2100000); return (int)syscall(SYS_fdatasync, fd); }\nint fsync(int fd) { return fdatasync(fd); }\n' >"$scratch/slow.c"
    "${CC:-cc}" -shared -fPIC -o "$scratch/slow.so" "$scratch/slow.c"
    LD_PRELOAD=$scratch/slow.so timeout 60 "${controller[@]}" --journal "$scratch/slow.db" >"$scratch/log" 2>&1 &
    slow=$!
    for _ in $(seq 20); do
        grep -q "opens the journal" "$scratch/log" && break
        sleep 0.1
    done
    says "a slow disk, before it waits" "opens the journal $scratch/slow.db" "$scratch/log"
    for _ in $(seq 300); do
        grep -q "slow to sync" "$scratch/log" && break
        sleep 0.1
    done
    says "a slow disk, afterwards" "its disk is slow to sync, and each step waits for that" "$scratch/log"
    kill -9 "$slow" 2>/dev/null
    wait "$slow" 2>/dev/null
fi

echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
