# A bad image under OrderedReady, then a good one: the set heals by itself. StatefulSet waits for ever for the pod that
# cannot become ready, until a person deletes it (kubernetes 67250, 60164, 141095).

Given three pods on app:v1
neoset db podManagementPolicy=OrderedReady
wait_until settled db 3
others=$(uids db | cut -d ' ' -f 1,2)
from_now

When the image becomes one that cannot be pulled
set_image db app:none
wait_until pod_waits_with db-2 'ErrImagePull|ImagePullBackOff'

Then the others stay as they are
stays 2 images_are db app:v1 app:v1 app:none

When the image becomes a good one
set_image db app:v2

Then all pods come to it without a hand
wait_until completed db
check images_are db app:v2 app:v2 app:v2
check is "$others" "$(uids db | cut -d ' ' -f 1,2)"
check always_ready db 2
