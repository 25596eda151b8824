# The image and the number of pods change in one write (argo-rollouts' own list: spec and replicas at the same time).

Given three pods
neoset db
wait_until settled db 3
When five pods of app:v2 are asked for
edit db image=app:v2 replicas=5
Then that is what comes
wait_until completed db
wait_until ready_are db 5
check images_are db app:v2 app:v2 app:v2 app:v2 app:v2
