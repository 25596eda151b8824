# The deadline of an update stands still while the set is paused (argo-rollouts 3534, 3843).

Given three pods, which have three seconds to become ready
neoset db timeout=3
wait_until settled db 3
When a bad image is on the canary and the set is paused
set_image db app:none
wait_until pod_is db-2 .spec.containers[0].image app:none
edit db pause=true
wait_until phase_is db Paused
Then it does not fail, however long that takes
stays 8 phase_is db Paused
When it is resumed
edit db pause=false
Then it fails
wait_until 120 phase_is db Failed
