# The seed's table: five replicas, a budget of two, no fence. One pod goes first and alone; when it has proven itself the
# stage opens by the budget, 4 -> 2 -> 0. No pod is replaced, each restarts once.

Given five pods on app:v1
neoset db replicas=5 maxUnavailable=2
wait_until settled db 5
uids=$(uids db)
from_now

When the image becomes app:v2
set_image db app:v2

Then the canary, db-4, goes first and alone
wait_until phase_is db Canary
wait_until images_are db app:v1 app:v1 app:v1 app:v1 app:v2
check status_is db currentPartition 4

And the stage opens to two, then to none
wait_until completed db
wait_until stages_were db 0 4 2 0
check status_is db updatedReplicas 5
check status_is db currentImage app:v2

And the pods are the same, restarted once, and never were more than two away
check uids_are db "$uids"
check restarts_are db 1 1 1 1 1
check always_ready db 3
