# With prefetch a bad tag never takes a pod down: the image is fetched to the node first, fails there, and no pod is touched. None of the
# peers waits for the image; a kubelet kills the old container before it pulls (kubernetes 91667).

Given three pods on app:v1, whose images are fetched first
neoset db prefetch=IfPossible timeout=5
wait_until settled db 3
before=$(list pod '[.[] | select(.metadata.labels.app == "db") | .metadata.resourceVersion] | join(" ")')
from_now
When the image becomes one that cannot be pulled
set_image db app:none
Then the set is Failed and says so, and no pod was written
wait_until 120 phase_is db Failed
check message_says db 'app:none'
check is "$before" "$(list pod '[.[] | select(.metadata.labels.app == "db") | .metadata.resourceVersion] | join(" ")')"
check always_ready db 3
When the image becomes a good one
set_image db app:v2
Then it completes, and the pods that fetched are gone
wait_until 120 completed db
check restarts_are db 1 1 1
wait_until list_is pod 'length' 3
