# A crash-looping image is "ready" for a moment each round. It must not count as done: the stage stays, the others keep serving
# (kubernetes 18568, kubectl 738).

Given three pods
neoset db timeout=5
wait_until settled db 3
from_now
When the image is one that crashes after a second
set_image db app:crash
Then only the canary ever has it
wait_until 60 pod_waits_with db-2 CrashLoopBackOff
stays 3 status_is db doneOrdinals '[]'
check images_are db app:v1 app:v1 app:crash
check always_ready db 2
When the image becomes a good one
set_image db app:v2
Then it completes
wait_until 120 completed db
