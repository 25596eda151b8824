# A node is lost: its pod stays Terminating, and is never doubled, since it may still run somewhere. The message says when a person
# may force it, and then it comes back (kubernetes 74689, 54368, 128970; kruise 204).
needs behaviours

Given three pods, one on a node that falls silent
neoset db behaviour=ok
wait_until settled db 3
old=$(get pod db-1 .metadata.uid)
behave db-1 node-lost
When it is deleted
delete pod db-1
wait_until terminating pod db-1
Then it stays, there is no second one, and the message names it
stays 5 pod_is db-1 .metadata.uid "$old"
wait_until message_says db db-1
When a person forces it
delete pod db-1 now
Then it comes back
wait_until not pod_is db-1 .metadata.uid "$old"
wait_until ready_are db 3
