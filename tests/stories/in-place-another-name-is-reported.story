# The runtime reports the image under another tag of its digest, or with the registry's name in front: a comparison of names
# waits for ever (kruise 1493, 217; kubeblocks 9352).
needs behaviours

Given three pods whose runtime reports other names
neoset db behaviour=rename,same-digest
wait_until settled db 3

When the image changes
set_image db app:v2

Then it completes, though no pod reports app:v2
wait_until completed db
check restarts_are db 1 1 1
check not is app:v2 "$(get pod db-0 '.status.containerStatuses[0].image')"
