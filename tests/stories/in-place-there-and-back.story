# A, then a bad B, then A again, while B is still being pulled: the image that the pod started from is the one that it ends
# with, and who compares with the state before the second patch waits for ever (openkruise agents 773).

Given three pods on app:v1
neoset db
wait_until settled db 3
uids=$(uids db)
When the image becomes a bad one, and app:v1 again when the canary has it
set_image db app:none
wait_until pod_waits_with db-2 'ErrImagePull|ImagePullBackOff'
set_image db app:v1
Then it completes with the same pods
wait_until completed db
check images_are db app:v1 app:v1 app:v1
check uids_are db "$uids"

When that happens so fast that the kubelet may not have seen it
set_image db app:v2
wait_until pod_is db-2 .spec.containers[0].image app:v2
set_image db app:v1
Then it completes as well
wait_until completed db
check images_are db app:v1 app:v1 app:v1
check uids_are db "$uids"
