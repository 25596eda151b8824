# A pod that is down for reasons of its own spends the budget, whatever its ordinal: no healthy pod is taken besides (kubernetes
# 96218, 123911; kruise 1480). It is too early to call it broken here.
needs behaviours

Given three pods, of which pod 0 is not ready for now
neoset db timeout=300 behaviour=ok
wait_until settled db 3
behave db-0 never-ready
wait_until status_is db readyReplicas 2

When the image changes
set_image db app:v2
Then no healthy pod is touched
stays 4 images_are db app:v1 app:v1 app:v1

When pod 0 is well again
behave db-0 ok
Then the rollout goes on
wait_until completed db
check images_are db app:v2 app:v2 app:v2
