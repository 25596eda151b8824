# Paused, no update starts; updates that run are finished. Resumed, it goes on. StatefulSet has no pause (kubernetes 49890).

Given three pods
neoset db
wait_until settled db 3
When the set is paused and the image changes
edit db pause=true
wait_until phase_is db Paused
set_image db app:v2
wait_until revisions_are db 2
Then nothing moves
stays 3 images_are db app:v1 app:v1 app:v1
When it is resumed, and paused again when the canary is on its way
edit db pause=false
wait_until pod_is db-2 .spec.containers[0].image app:v2
edit db pause=true
Then the canary is finished, and the others stay
wait_until pod_ready db-2
wait_until status_is db doneOrdinals '[2]'
stays 2 images_are db app:v1 app:v1 app:v2
When it is resumed
edit db pause=false
Then it completes
wait_until completed db
