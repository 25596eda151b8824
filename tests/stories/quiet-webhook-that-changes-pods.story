# An admission policy adds a container and rewrites the registry of every pod: pods never equal their template, and a controller that
# compares the two rolls for ever (kubernetes 61998). Here the live pod is compared with what we wrote.
needs policies behaviours

Given a policy that injects into every pod of this namespace, and three pods
admission_policy
neoset db
wait_until settled db 3
check is "injected injected injected" "$(pods db 'map(.metadata.labels.injected) | join(" ")')"
When the image changes
set_image db app:v2
wait_until 120 completed db
Then it is done once, and nothing is written any more
check restarts_are db 1 1 1
pause_for 2
before=$(list pod '[.[].metadata.resourceVersion] | join(" ")')
stays 5 list_is pod '[.[].metadata.resourceVersion] | join(" ")' "$before"
check revisions_are db 2
