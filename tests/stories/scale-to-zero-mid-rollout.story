# Scaled to 0 in the middle of a rollout: zero pods are never "complete", so the stable image is not forgotten. StatefulSet
# declares the rollout complete and starts everything on the unverified version (kubernetes 121534).

Given three pods fenced at 2, the highest on app:v2
neoset db partition=2
wait_until settled db 3
stable=$(status db currentRevisionName)
set_image db app:v2
wait_until status_is db doneOrdinals '[2]'

When the set is scaled to 0 and back
scale db 0
wait_until pods_are db ""
pause_for 1
check status_is db currentRevisionName "$stable"
check not phase_is db Completed
scale db 3
wait_until ready_are db 3

Then the pods below the fence are on the stable image
wait_until images_are db app:v1 app:v1 app:v2

When the fence goes
edit db partition=0
wait_until completed db
check images_are db app:v2 app:v2 app:v2
