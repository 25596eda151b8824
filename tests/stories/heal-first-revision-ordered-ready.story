# The very first image of a set is bad, so pod 0 never came up and nothing was ever healthy. A corrected template must reach
# it without a hand (kubernetes 67250, 60164; leader-worker-set 567).

Given a set of three whose first image cannot be pulled
neoset db image=app:none podManagementPolicy=OrderedReady
wait_until pod_waits_with db-0 'ErrImagePull|ImagePullBackOff'
check pods_are db "0"

When the image becomes a good one
set_image db app:v2

Then the set comes up
wait_until settled db 3
check images_are db app:v2 app:v2 app:v2
