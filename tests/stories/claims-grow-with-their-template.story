# A larger storage request raises every claim, also of an ordinal that was scaled away, one alone first; no pod notices. A claim
# that is larger already stays as it is. Reports of other controllers: claims that were forgotten, pods that were made anew.
needs claims storage-by-hand

class=grows-$namespace
request_is() { object_is claim "$1" .spec.resources.requests.storage "$2"; }
# volume CLAIM SIZE: its volume has that size
volume() { patch claim "$1" "{\"status\":{\"phase\":\"Bound\",\"capacity\":{\"storage\":\"$2\"}}}" status; }

Given a set of two with volumes, a third one scaled away
must "create the class" POST /apis/storage.k8s.io/v1/storageclasses "{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"StorageClass\",\"metadata\":{\"name\":\"$class\"},\"provisioner\":\"by.hand\",\"allowVolumeExpansion\":true}"
neoset db "volumeClaimTemplates=[{\"metadata\":{\"name\":\"data\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"storageClassName\":\"$class\",\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}]"
wait_until settled db 3
for ordinal in 0 1 2; do volume "data-db-$ordinal" 1Gi; done
scale db 2
wait_until settled db 2
wait_until condition_is db VolumesConverged True
pods=$(uids db)
from_now
When its template asks for 2Gi
edit db volumeClaimTemplates.0.spec.resources.requests.storage=2Gi
Then one claim asks for it, and the others wait for what its storage says
wait_until request_is data-db-0 2Gi
wait_until condition_is db VolumesConverged False
check request_is data-db-1 1Gi
check request_is data-db-2 1Gi
When that one has grown
volume data-db-0 2Gi
Then the others follow, the one that was scaled away too
wait_until request_is data-db-1 2Gi
wait_until request_is data-db-2 2Gi
And when all have grown, the set says so
volume data-db-1 2Gi
volume data-db-2 2Gi
wait_until condition_is db VolumesConverged True
check uids_are db "$pods"
check restarts_are db 0 0
check always_ready db 2
When a smaller size is asked for
Then the server refuses it
check refused PATCH "$(path_of neoset db)" '[{"op":"replace","path":"/spec/volumeClaimTemplates/0/spec/resources/requests/storage","value":"1Gi"}]' application/json-patch+json
