# A new version that no node takes, taken back: only the pod that waits is touched, the last good ones are left alone (kruise 376).
needs behaviours

Given three pods, to be recreated
neoset db type=Recreate behaviour=ok timeout=5
wait_until settled db 3
others=$(uids db | cut -d ' ' -f 1,2)
When the new template fits no node
edit db image=app:v2 behaviour=pending
wait_until pod_is db-2 .spec.containers[0].image app:v2
stays 2 images_are db app:v1 app:v1 app:v2
When a person takes it back
neosetctl undo db
wait_until completed db
Then the other pods are the ones that they were
check images_are db app:v1 app:v1 app:v1
check is "$others" "$(uids db | cut -d ' ' -f 1,2)"
