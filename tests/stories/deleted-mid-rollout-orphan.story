# A set is deleted in the middle of its rollout, its pods are left behind: they run on, and a set of that name and template takes
# them over and finishes the rollout.

Given three pods in the middle of a rollout
neoset db
wait_until settled db 3
uids=$(uids db)
set_image db app:v2
wait_until pod_is db-2 .spec.containers[0].image app:v2
When the set is deleted without its pods
delete neoset db orphan
wait_until gone neoset db
Then the pods run on
stays 2 uids_are db "$uids"
When the set is made again, with the new template
neoset db image=app:v2
Then it takes them over and finishes
wait_until 120 settled db 3
check images_are db app:v2 app:v2 app:v2
check uids_are db "$uids"
