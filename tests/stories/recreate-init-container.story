# An init container's new image would be accepted in place and never run: the pod is made anew. The main image alone is changed in
# place, and the init container is not run again.
needs behaviours

Given three pods with an init container
neoset db 'template.spec.initContainers=[{"name":"prepare","image":"prepare:v1"}]'
wait_until settled db 3
uids=$(uids db)
When the main image changes
set_image db app:v2
wait_until completed db
Then it is in place
check uids_are db "$uids"
check restarts_are db 1 1 1
When the image of the init container changes
edit db template.spec.initContainers.0.image=prepare:v2
wait_until completed db
Then the pods are made anew, and ran it
check not uids_are db "$uids"
check is "true true true" "$(pods db 'map(.status.initContainerStatuses[0].image | endswith("prepare:v2") | tostring) | join(" ")')"
wait_until event_says initContainers
