# A template in which more than images changes cannot be patched in place: pods are made anew within the same stage and budget,
# and an event names the first field that forced it.

Given three pods on app:v1
neoset db
wait_until settled db 3
uids=$(uids db)
from_now
When the image and a variable change
edit db image=app:v2 'template.spec.containers.0.env=[{"name":"LEVEL","value":"2"}]'
wait_until completed db
Then every pod was made anew, one at a time, and an event says why
check images_are db app:v2 app:v2 app:v2
check is "2 2 2" "$(pods db 'map(.spec.containers[0].env[0].value) | join(" ")')"
check restarts_are db 0 0 0
check always_ready db 2
check not is "$uids" "$(uids db)"
wait_until event_says 'env'
