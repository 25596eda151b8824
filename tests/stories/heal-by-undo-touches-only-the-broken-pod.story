# Going back kills no good pod: those that never left the old image get no write at all (kruise 376, where a rollback took the
# last good pod instead of the pending one; kubernetes 91675).

Given three pods on app:v1, and a bad image on the highest
neoset db
wait_until settled db 3
others=$(list pod '[.[] | select(.metadata.name != "db-2") | .metadata.resourceVersion] | join(" ")')
first=$(status db currentRevisionName)
set_image db app:none
wait_until pod_waits_with db-2 'ErrImagePull|ImagePullBackOff'

When a person takes it back
neosetctl undo db

Then the pod is healed, the revision is the old one, and the others were not written
wait_until completed db
check images_are db app:v1 app:v1 app:v1
check status_is db updateRevisionName "$first"
check status_is db currentRevisionName "$first"
check is "$others" "$(list pod '[.[] | select(.metadata.name != "db-2") | .metadata.resourceVersion] | join(" ")')"
