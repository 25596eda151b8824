# Changed resources are no image: the pod is made anew (A-3 and C-11 of kruise).

Given three pods
neoset db 'template.spec.containers.0.resources={"requests":{"cpu":"10m"}}'
wait_until settled db 3
uids=$(uids db)
When they are to have more
edit db template.spec.containers.0.resources.requests.cpu=20m
wait_until completed db
Then the pods are other ones, one at a time
for uid in $uids; do check not matches "$uid" "$(uids db)"; done
check is "20m 20m 20m" "$(pods db 'map(.spec.containers[0].resources.requests.cpu) | join(" ")')"
