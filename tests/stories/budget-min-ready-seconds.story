# A pod that is ready, but not yet for minReadySeconds, is not available and spends the budget. Ignored, availability once fell
# from five to none (kubernetes 112307, 119234, 112066, 136831).

Given three pods that must be ready for four seconds
neoset db minReadySeconds=4
wait_until settled db 3
from_now
When the image changes
set_image db app:v2
wait_until completed db
Then at each moment two were available, as the controller says
check is 2 "$(set_events db | jq -s 'map(.object.status.availableReplicas) | min')"
And the pods started at least four seconds apart
check is true "$(list pod '[.[].status.containerStatuses[0].state.running.startedAt | fromdate] | sort | [.[1] - .[0], .[2] - .[1]] | all(. >= 4)')"
