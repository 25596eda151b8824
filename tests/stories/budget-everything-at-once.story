# A budget of everything: the canary still goes alone, then all others at once.

Given four pods
neoset db replicas=4 maxUnavailable=100% podManagementPolicy=Parallel
wait_until settled db 4
from_now
When the image changes
set_image db app:v2
wait_until completed db
Then the stage went 3, then 0
wait_until stages_were db 0 3 0
check restarts_are db 1 1 1 1
