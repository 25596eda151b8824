# Faults: lost,verb=create,resource=pods,nth=2;lost,verb=patch,resource=pods/,nth=1;late=1s,verb=patch,resource=pods/,nth=3
# Answers get lost and a write lands late: each is asked after, and none is done twice (the oracle looks at the end).
needs faults

Given three pods, while an answer is lost
neoset db
wait_until settled db 3
uids=$(uids db)
When the image changes, while answers are lost and late
set_image db app:v2
wait_until completed db
Then the pods are the same, each restarted once
check uids_are db "$uids"
check restarts_are db 1 1 1
