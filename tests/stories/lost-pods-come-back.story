# Pods that are deleted by hand in the middle of a rollout come back on the revision of their side of the fence (K-11 of the
# conformance tests).

Given four pods, fenced at 2 and updated down to it
neoset db replicas=4 partition=2
wait_until settled db 4
set_image db app:v2
wait_until status_is db doneOrdinals '[2,3]'
When one of each side is deleted
old=$(uids db)
delete pod db-0
delete pod db-3
Then each comes back as it was
wait_until not uids_are db "$old"
wait_until pods_are db "0 1 2 3"
wait_until ready_are db 4
check images_are db app:v1 app:v1 app:v2 app:v2
