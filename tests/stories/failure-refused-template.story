# A template that the server refuses: its words are shown, no pod is touched, nothing loops hot; a good template ends it.

Given three pods
neoset db
wait_until settled db 3
uids=$(uids db)
from_now
When the template is one that the server refuses
edit db image=app:v2 template.spec.dnsPolicy=Nonsense
wait_until message_says db 'dnsPolicy|Nonsense'
Then no pod is touched
stays 3 images_are db app:v1 app:v1 app:v1
check always_ready db 3
check uids_are db "$uids"
When the template is a good one
edit db image=app:v2 template.spec.dnsPolicy=ClusterFirst
Then it completes, in place
wait_until completed db
check uids_are db "$uids"
