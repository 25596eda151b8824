# An evicted pod is Failed: it is deleted and made anew under its name, and again with a growing pause when that repeats, not in a
# hot loop (kubernetes 89067; K-18 of the conformance tests).
needs behaviours

Given three pods, of which the node throws one out
neoset db
wait_until settled db 3
old=$(get pod db-1 .metadata.uid)
When db-1 is evicted
patch pod db-1 '{"status":{"phase":"Failed","reason":"Evicted","message":"The node was low on memory."}}' status
Then another one takes its name
wait_until not pod_is db-1 .metadata.uid "$old"
wait_until ready_are db 3
