# A set is deleted in the middle of its rollout, background: everything of it goes, but its claims, and nothing is made anew.
needs claims

Given three pods in the middle of a rollout
neoset db claim=data
wait_until settled db 3
set_image db app:v2
wait_until pod_is db-2 .spec.containers[0].image app:v2
When the set is deleted
delete neoset db background
Then it and its pods go, and the claims stay
wait_until gone neoset db
wait_until pods_are db ""
stays 2 pods_are db ""
check claims_are data-db-0 data-db-1 data-db-2
