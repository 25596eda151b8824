# Lowering the fence lets go; raising it again rolls nothing back and makes no pod anew, also when the controller was away
# (tidb-operator 4739, 784; kubernetes 91675; kruise 410, 632).

Given four pods, updated down to the fence at 1
neoset db replicas=4 partition=3
wait_until settled db 4
uids=$(uids db)
set_image db app:v2
wait_until images_are db app:v1 app:v1 app:v1 app:v2
edit db partition=1
wait_until status_is db doneOrdinals '[1,2,3]'

When the controller is killed, the fence is raised, and it starts again
kill_controller
edit db partition=3
start_controller

Then no pod changes, and the status says so
stays 3 images_are db app:v1 app:v2 app:v2 app:v2
check uids_are db "$uids"
check restarts_are db 0 1 1 1

When the fence goes
edit db partition=0
Then the last one follows
wait_until completed db
check uids_are db "$uids"
