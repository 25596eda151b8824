# The stable version is the sick one, and a new version is the cure: it must be able to pass (argo-rollouts 1774, 3110).
needs behaviours

Given three pods on app:v1, all of which fall ill
neoset db timeout=3 behaviour=ok
wait_until settled db 3
behave db-0 never-ready
behave db-1 never-ready
behave db-2 never-ready
wait_until status_is db readyReplicas 0

When a new image is the cure
edit db image=app:v2 behaviour=ok,ok

Then it reaches every pod, though nothing was available
wait_until completed db
check images_are db app:v2 app:v2 app:v2
