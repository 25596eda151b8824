# Who waits for a rollout in a pipeline must hear that it failed, and not wait for ever (kubectl rollout status ends with 1 after
# the progress deadline; helm 8674).
needs clock behaviours

Given three pods at rest
neoset db timeout=2
wait_until settled db 3
check status_ends db
When the image is one that crashes
set_image db app:crash
# No deadline is held to be over within a minute of the first sight of a pod.
wait_until 120 phase_is db Failed
Then status, why and the wait for it end with a code of their own
check neosetctl_ends_with 3 status db -w
check neosetctl_ends_with 3 status db
check neosetctl_ends_with 3 why db
When a good template is applied
set_image db app:v2
wait_until 120 completed db
Then nothing has failed any more
check status_ends db
check neosetctl_ends_with 0 why db
