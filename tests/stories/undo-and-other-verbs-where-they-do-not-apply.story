# Verbs that do not apply say so and change nothing; an abort always wins, and what grows afterwards is on the old version. An abort
# without a rollout once scaled the stable version to 0, and a scale-up after an abort revived the canary (argo-rollouts 1292, 4461,
# 4973).

Given three pods, and no rollout
neoset db
wait_until settled db 3
before=$(get neoset db '.spec')
When a person wants to go back
check not neosetctl undo db
Then nothing changed
check is "$before" "$(get neoset db '.spec')"
check pods_are db "0 1 2"

When a rollout is taken back at its canary, and the set grows
set_image db app:v2
wait_until pod_is db-2 .spec.containers[0].image app:v2
neosetctl undo db
scale db 5
Then everything is on the old version
wait_until completed db
wait_until ready_are db 5
check images_are db app:v1 app:v1 app:v1 app:v1 app:v1

When a person goes back once more
before=$(get neoset db '.spec')
check not neosetctl undo db
Then what was taken back stays so
check is "$before" "$(get neoset db '.spec')"
check is "[\"$(status db currentRevisionName)\"]" "$(get neoset db '.status.provenRevisionNames | tojson')"

When a person pauses and resumes
before=$(get neoset db '.spec')
neosetctl pause db
check is true "$(get neoset db .spec.updateStrategy.pause)"
neosetctl resume db
Then no other field changed
check is "$before" "$(get neoset db '.spec')"
