# A set that shrinks in the middle of a rollout, the canary itself goes: the rollout goes on with those that are left (kubernetes
# KEP-961's own list of tests).

Given five pods, the canary on app:v2
neoset db replicas=5
wait_until settled db 5
set_image db app:v2
wait_until images_are db app:v1 app:v1 app:v1 app:v1 app:v2

When two fewer are asked for
scale db 3
Then the highest two go, and the rest is updated
wait_until completed db
wait_until pods_are db "0 1 2"
check images_are db app:v2 app:v2 app:v2
check status_is db doneOrdinals '[0,1,2]'
