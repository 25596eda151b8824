# A slow registry prolongs no outage: the pod serves until the image is on its node.
needs behaviours

Given two pods on app:v1, whose images are fetched first
neoset db replicas=2 prefetch=IfPossible
wait_until settled db 2
from_now
When the image becomes one that takes seconds to pull
set_image db app-slow:v2
wait_until 120 completed db
Then each pod was away for less than the time of a pull
check restarts_are db 1 1
check always_ready db 1
check is true "$(pod_events | jq -s 'map(select(.object.metadata.name == "db-1") | .object.status.conditions[]? | select(.type == "Ready")
    | "\(.status) \(.lastTransitionTime)") | [.[] | select(startswith("False"))[6:]] as $down | [.[] | select(startswith("True"))[5:]] as $up
    | ($up | max | fromdate) - ($down | max | fromdate) <= 2')"
