# A new template in the middle of a rollout: it begins again with a canary, and no pod is led through the abandoned one (argo-rollouts
# lists superseded rollouts).
needs behaviours

Given four pods, of which the canary is on app:v2
neoset db replicas=4
wait_until settled db 4
set_image db app:v2
wait_until pod_is db-3 .spec.containers[0].image app:v2
When the image becomes app:v3
set_image db app:v3
wait_until completed db
Then pods that had not begun went there directly
check images_are db app:v3 app:v3 app:v3 app:v3
check never_ran db-0 app:v2
check images_were db-0 app:v1 app:v3
