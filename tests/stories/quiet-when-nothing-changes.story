# Nothing changed, so nothing is written, also after a restart of the controller; mutated pods (a webhook's label, a sidecar's
# annotation) do not make it roll for ever (kubernetes 61998, 56355; openshift origin 17435).
needs audit

Given three pods after a rollout, to which others have added labels
neoset db
wait_until settled db 3
set_image db app:v2
wait_until completed db
for pod in db-0 db-1 db-2; do patch pod "$pod" '{"metadata":{"labels":{"injected":"yes"},"annotations":{"sidecar":"1"}}}'; done
pause_for 2
before=$(writes)
When nothing happens
pause_for 5
Then nothing is written
check is "$before" "$(writes)"
When the controller is killed and starts again
kill_controller
start_controller
pause_for 8
Then nothing is written either
check is "$before" "$(writes)"
