# Faults: cut=4,resource=pods;cut=6,resource=pods;cut=3,resource=neosets;gone,verb=watch,resource=pods,nth=3
# Watches break and are too old to be resumed. A sync that waits for an event that never comes, as for its own status write
# (kubernetes 141250), would stand still.
needs faults

Given three pods
neoset db
wait_until settled db 3
When the image changes, while watches break
set_image db app:v2
Then it completes
wait_until completed db
check restarts_are db 1 1 1
