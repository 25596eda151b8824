# A pod of someone else has the name that the set needs: it is not touched, the status says so, and when it is gone the set goes on
# (two pods of one name never exist).

Given a pod db-1 that belongs to nobody here
create pod '{"metadata":{"name":"db-1","labels":{"app":"other"}},"spec":{"terminationGracePeriodSeconds":1,"containers":[{"name":"app","image":"other:v1"}]}}'
uid=$(get pod db-1 .metadata.uid)
When a set needs that name
neoset db
Then it says what is in the way and leaves it alone
wait_until message_says db db-1
stays 3 pod_is db-1 .metadata.uid "$uid"
When it goes
delete pod db-1
Then the set is complete
wait_until settled db 3
