#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# neoset-audit at a million entries: listings by object, by time and by operation (goal: under 50 ms each for up to 10,000
# rows), and the CSV export against the sqlite3 shell (goal: at least half its speed), side by side in one run. Each figure
# is the best of ROUNDS, start of the process included.
# Usage: tests/bench/audit_bench.sh [--build DIR] [--journal FILE] [--entries N]
# Without --journal one is made in a temporary folder (half a minute).
set -eu
build=build/gcc
journal=
entries=1000000
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=$2 ;;
    --journal) journal=$2 ;;
    --entries) entries=$2 ;;
    *)
        echo "usage: $0 [--build DIR] [--journal FILE] [--entries N]" >&2
        exit 64
        ;;
    esac
    shift 2
done
audit=$build/neoset-audit
scratch=$(mktemp -d "${TMPDIR:-/tmp}/neoset-audit-bench-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
if [ -z "$journal" ]; then
    journal=$scratch/journal.db
    "$build/tests/bench/journal_bench" make "$journal" "$entries" >/dev/null
fi
ROUNDS=${ROUNDS:-5}
bad=0

# Best of ROUNDS of "$@" in microseconds, into $best; its rows into $rows. Output goes to a file, as it would.
best_of() {
    local round start took
    best=
    for ((round = 0; round < ROUNDS; round++)); do
        start=$(date +%s%N)
        "$@" >"$scratch/out" 2>"$scratch/err"
        took=$((($(date +%s%N) - start) / 1000))
        if [ -z "$best" ] || [ "$took" -lt "$best" ]; then best=$took; fi
    done
    rows=$(wc -l <"$scratch/out")
}

# figure NAME LIMIT-IN-MS COMMAND...
figure() {
    local name=$1 limit=$2 verdict=met
    shift 2
    best_of "$@"
    if [ "$best" -ge $((limit * 1000)) ]; then
        verdict="MISSED"
        bad=1
    fi
    printf '%-58s %8d %6d.%d ms  %-10s %s\n' "$name" "$rows" $((best / 1000)) $((best / 100 % 10)) "< $limit ms" "$verdict"
}

run() {
    "$audit" "$@" --journal "$journal"
}

# Something in the middle of the history to ask for.
id=$(run list --limit 1 -o name)
object=$(run list --limit 1 -o csv --csv-raw | sed -n '2s/.*"NeoSet","[^"]*","\([^"]*\)".*/\1/p')
day=$(run list --limit 1 -o csv --csv-raw | sed -n '2s/^[^"]*"\([^T]*\)T.*/\1/p')
before=$(date -u -d "$day - 4 days" +%F)
pod=$(run export steps --for "NeoSet/$object" --limit 1 -o csv --csv-raw | sed -n '2s/.*"Pod","[^"]*","\([^"]*\)".*/\1/p')

printf '%-58s %8s %11s  %-10s %s\n' "figure" "rows" "best of $ROUNDS" "goal" ""
figure "list, the newest 50" 50 run list --limit 50
figure "list, 10,000 rows" 50 run list --limit 10000
figure "list by object" 50 run list --for "NeoSet/$object"
figure "list by pod" 50 run list --for "pod/$pod"
figure "list by time" 50 run list --since "$before" --until "$day"
figure "list by outcome" 50 run list --outcome failed
figure "one operation: show" 50 run show "$id"
figure "one operation: timeline" 50 run timeline "$id"
figure "timeline of a pod" 50 run timeline --for "pod/$pod"
figure "entries by time, 10,000 rows" 50 run export entries --since "$before" --limit 10000
figure "entries by object" 50 run export entries --for "NeoSet/$object"
figure "steps by object" 50 run export steps --for "NeoSet/$object"
figure "steps by time, 10,000 rows" 50 run export steps --since "$before" --limit 10000
figure "in-doubt" 50 run in-doubt
figure "runs" 50 run runs

# Both in turns, so that a busy neighbour hits both.
ours=
shell=
for ((round = 0; round < ROUNDS; round++)); do
    start=$(date +%s%N)
    run export entries >"$scratch/ours.csv"
    middle=$(date +%s%N)
    sqlite3 -readonly -csv "$journal" 'SELECT * FROM entry' >"$scratch/shell.csv"
    end=$(date +%s%N)
    if [ -z "$ours" ] || [ $((middle - start)) -lt "$ours" ]; then ours=$((middle - start)); fi
    if [ -z "$shell" ] || [ $((end - middle)) -lt "$shell" ]; then shell=$((end - middle)); fi
done
ratio=$((100 * shell / ours))
verdict=met
if [ "$ratio" -lt 50 ]; then
    verdict=MISSED
    bad=1
fi
rows=$(run export entries -o name | wc -l)
printf '%-58s %8d %6d ms\n' "CSV export, neoset-audit" "$rows" $((ours / 1000000))
printf '%-58s %8d %6d ms\n' "CSV export, sqlite3 -readonly -csv" "$rows" $((shell / 1000000))
printf '%-58s %8s %5d.%02dx     %-10s %s\n' "  speed against the sqlite3 shell" "" $((ratio / 100)) $((ratio % 100)) ">= 0.5x" "$verdict"
exit $bad
