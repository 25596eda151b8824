# A pod below the fence is deleted and lingers, the others are updated meanwhile, and when it is gone at last it must come back
# on the old image. StatefulSet once took a failed create for a completed rollout, and brought it back on the new one
# (kubernetes 119685, repaired by 120731).
needs behaviours

Given three pods, pod 0 below the fence and held by a finalizer
neoset db partition=1
wait_until settled db 3
stable=$(status db currentRevisionName)
patch pod db-0 '{"metadata":{"finalizers":["example.com/held"]}}'

When pod 0 is deleted, lingers, and the image changes
delete pod db-0
set_image db app:v2
wait_until terminating pod db-0
pause_for 3

Then nothing is complete while it lingers
check status_is db currentRevisionName "$stable"

When it is let go
patch pod db-0 '{"metadata":{"finalizers":null}}'
Then it comes back on the old image, and the others run the new one
wait_until ready_are db 3
wait_until images_are db app:v1 app:v2 app:v2
check status_is db currentRevisionName "$stable"
check never_ran db-0 app:v2
