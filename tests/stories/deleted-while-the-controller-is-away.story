# The set is deleted while the controller does not run, and another one of its name is made: the pods are the garbage collector's, the
# new set has its own.

Given two pods
neoset db replicas=2
wait_until settled db 2
uids=$(uids db)
When the controller is away, the set is deleted, and made again
kill_controller
delete neoset db
wait_until gone neoset db
wait_until pods_are db ""
neoset db replicas=2 image=app:v2
start_controller
Then it has pods of its own
wait_until settled db 2
check images_are db app:v2 app:v2
check not is "$uids" "$(uids db)"
