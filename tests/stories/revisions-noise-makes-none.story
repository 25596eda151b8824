# Noise makes no revision and no write: fields written out with their defaults, another order of the keys, nulls, a label of the
# set. An upgrade that wrote a null less restarted every workload (kubernetes 134773; argo-rollouts 4696).
needs behaviours

Given three pods
neoset db
wait_until settled db 3
pause_for 2
before=$(list pod '[.[].metadata.resourceVersion] | join(" ")')
When the template is written with defaults and in another order
json_patch neoset db '[{"op":"replace","path":"/spec/template","value":{
    "spec":{"restartPolicy":"Always","dnsPolicy":"ClusterFirst","schedulerName":"default-scheduler","securityContext":{},
        "containers":[{"image":"app:v1","terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",
            "imagePullPolicy":"IfNotPresent","resources":{},"name":"app"}],"terminationGracePeriodSeconds":1},
    "metadata":{"creationTimestamp":null,"labels":{"app":"db"}}}}]'
patch neoset db '{"metadata":{"labels":{"team":"a"},"annotations":{"note":"b"}}}'
wait_until ready_are db 3
pause_for 3
Then there is one revision, and no pod was written
check revisions_are db 1
check is "$before" "$(list pod '[.[].metadata.resourceVersion] | join(" ")')"
When the controller is started anew
kill_controller
start_controller
pause_for 5
Then that is still so
check revisions_are db 1
check is "$before" "$(list pod '[.[].metadata.resourceVersion] | join(" ")')"
