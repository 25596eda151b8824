# Revisions without an owner that match, revisions of someone else, and rubbish of that name lie about: the set takes what is its own,
# leaves the rest, and goes on (kubernetes 84982, repaired by 86801).

Given a set whose revisions were left behind, and others beside them
neoset db
wait_until settled db 3
set_image db app:v2
wait_until completed db
uids=$(uids db)
first=$(list revision 'map(select(.revision == 1))[0].metadata.name')
delete neoset db orphan
wait_until gone neoset db
create configmap '{"metadata":{"name":"other"}}'
create revision "{\"apiVersion\":\"apps/v1\",\"kind\":\"ControllerRevision\",\"metadata\":{\"name\":\"db-foreign\",\"labels\":{\"app\":\"db\"},
    \"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"other\",\"controller\":true,\"uid\":\"$(get configmap other .metadata.uid)\"}]},\"revision\":7,\"data\":{\"spec\":{}}}"
create revision '{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"db-rubbish","labels":{"app":"db"}},"revision":9,"data":{"nothing":true}}'
When the set is made again with its first image
neoset db
Then it comes to that image in place, with the same pods
wait_until 120 settled db 3
wait_until images_are db app:v1 app:v1 app:v1
check uids_are db "$uids"
And what belongs to others is untouched
check is other "$(get revision db-foreign .metadata.ownerReferences[0].name)"
