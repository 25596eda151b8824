# A pod is out of service before its image is changed, and back only afterwards, in the order of the server (kruise 2276, where
# a stale cache let the drain be skipped; kruise 2274, where the gate opened too early).

Given three pods on app:v1
neoset db
wait_until settled db 3
from_now
When the image changes
set_image db app:v2
wait_until completed db
Then each pod went through these states in order
for pod in db-0 db-1 db-2; do
    check is "False app:v1, False app:v2, True app:v2" "$(pod_events | jq -r --arg pod "$pod" '
        select(.object.metadata.name == $pod) | .object
        | "\(.status.conditions[]? | select(.type == "apps.neo.io/in-place-ready") | .status) \(.spec.containers[0].image)"' |
        uniq | paste -sd , | sed 's/,/, /g')"
done
