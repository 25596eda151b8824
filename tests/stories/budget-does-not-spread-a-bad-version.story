# A bad version that passes its canary by luck, or is let go: never more than the budget of pods may be unavailable on it (the rule that
# keeps a bad version from eating all pods, as CloneSet has it).
needs behaviours

Given five pods with a budget of two, and two that fall ill
neoset db replicas=5 maxUnavailable=2 timeout=3 behaviour=ok
wait_until settled db 5
behave db-0 never-ready
behave db-1 never-ready
wait_until status_is db readyReplicas 3
pause_for 4
from_now
When the image cannot be pulled
set_image db app:none
pause_for 10
Then no healthy pod is taken, and at most two pods are on the bad image
check always_ready db 2
check matches '^[0-2]$' "$(pods db 'map(select(.spec.containers[0].image == "app:none")) | length')"
When the image is a good one
behave db-0 ok
behave db-1 ok
set_image db app:v2
Then everything completes
wait_until 120 completed db
