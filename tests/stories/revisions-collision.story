# The name of a new revision is taken by another one: a collision is counted and another name is found (kubernetes does it so).

Given the name of the first revision of a set, taken by something else
neoset db
wait_until settled db 3
taken=$(status db currentRevisionName)
delete neoset db foreground
wait_until gone neoset db
wait_until pods_are db ""
create revision "{\"apiVersion\":\"apps/v1\",\"kind\":\"ControllerRevision\",\"metadata\":{\"name\":\"$taken\"},\"revision\":1,\"data\":{\"other\":\"thing\"}}"
When the set is made again
neoset db
wait_until settled db 3
Then it has another revision, and the stranger is untouched
check not status_is db currentRevisionName "$taken"
check status_is db collisionCount 1
check is thing "$(get revision "$taken" .data.other)"
