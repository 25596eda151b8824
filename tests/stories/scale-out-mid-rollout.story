# A set that grows in the middle of a rollout: new pods come up on the stable image and are updated in their turn, so an
# unproven version is never mixed in by scaling (cloud-on-k8s 1619 is the opposite complaint; we say it in the status).

Given three pods, fenced after the last one, which runs app:v2
neoset db partition=2
wait_until settled db 3
set_image db app:v2
wait_until status_is db doneOrdinals '[2]'

When two more are asked for
scale db 5

Then they come up on the stable image, and are updated at or above the fence
wait_until ready_are db 5
wait_until images_are db app:v1 app:v1 app:v2 app:v2 app:v2

When the fence is taken down
edit db partition=0
Then everything completes
wait_until completed db
check images_are db app:v2 app:v2 app:v2 app:v2 app:v2
