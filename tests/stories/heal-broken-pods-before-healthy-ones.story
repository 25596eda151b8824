# One old pod is broken, two are healthy, the budget is one. The broken one is healed first and costs no budget; never are two
# healthy pods down (kubernetes 137409; kubeblocks 9851).
needs behaviours

Given three ready pods, the lowest of which falls ill
neoset db timeout=3 behaviour=ok
wait_until settled db 3
behave db-0 never-ready
wait_until pod_ready db-0 False
wait_until 30 condition_is db Available True
pause_for 4
from_now

When the image becomes a good one
edit db image=app:v2 behaviour=ok,ok

Then the broken pod is the first that moves
wait_until completed db
check first_with_is app:v2 db-0
check images_are db app:v2 app:v2 app:v2
check always_ready db 1
