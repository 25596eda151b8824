# As the story of OrderedReady, but all pods are there and all are broken: the whole budget is eaten by pods that must be
# healed (kubernetes 137409, repaired in 1.37 by 137666).

Given three pods whose first image cannot be pulled
neoset db image=app:none podManagementPolicy=Parallel
wait_until pod_waits_with db-0 'ErrImagePull|ImagePullBackOff'
wait_until pod_waits_with db-1 'ErrImagePull|ImagePullBackOff'
wait_until pod_waits_with db-2 'ErrImagePull|ImagePullBackOff'

When the image becomes a good one
set_image db app:v2

Then all three recover
wait_until settled db 3
check images_are db app:v2 app:v2 app:v2
