# Someone closes the gate of a pod that is not being updated: it is opened again, or the pod would never serve (openkruise 996 is why
# there is a gate and not a hand on Ready).

Given three pods
neoset db
wait_until settled db 3
When the gate of one is closed, and the set is paused as well
edit db pause=true
must "closing the gate" PATCH "$(path_of pod db-1 status)" '{"status":{"conditions":[{"type":"apps.neo.io/in-place-ready","status":"False","reason":"Person"}]}}' \
    application/strategic-merge-patch+json
Then it is opened
wait_until pod_is db-1 '.status.conditions[] | select(.type == "apps.neo.io/in-place-ready") | .status' True
wait_until ready_are db 3
