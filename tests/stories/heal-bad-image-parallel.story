# A bad image under Parallel, then a good one, with a budget of two: at most two pods go bad, and all come back. A fix that
# counts the broken pods against the budget waits for itself (kubernetes 137409, kruise 1134).

Given four pods on app:v1, all of which may be made at once
neoset db replicas=4 podManagementPolicy=Parallel maxUnavailable=2
wait_until settled db 4
from_now

When the image becomes one that cannot be pulled
set_image db app:none
wait_until pod_waits_with db-3 'ErrImagePull|ImagePullBackOff'

Then only the canary tried it
stays 2 images_are db app:v1 app:v1 app:v1 app:none

When the image becomes a good one
set_image db app:v2
Then all pods come to it
wait_until completed db
check images_are db app:v2 app:v2 app:v2 app:v2
check always_ready db 2
