# Faults: 409,verb=patch,resource=pods/,nth=1,times=4;409,verb=patch,resource=pods/status,name=db-1,nth=1,times=2
# Patches of pods are answered 409 again and again. A conflict means: read that pod again and decide again, no Failed and no
# flood of events (kruise 1351, 2399).
needs faults

Given three pods on app:v1, and a server on which writes conflict
neoset db
wait_until settled db 3
When the image changes
set_image db app:v2
wait_until completed db
Then each container restarted once, and nothing failed
check restarts_are db 1 1 1
check is "" "$(set_events db | jq -r 'select(.object.status.phase == "Failed") | .object.status.message' | head -n 1)"
