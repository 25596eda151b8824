# Two sets with one selector: both say so, neither takes a pod of the other, nothing is fought over (kubernetes 96218's sisters; the
# rule of every controller).

Given a set of two
neoset db replicas=2
wait_until settled db 2
uids=$(uids db)
When another set selects the same pods
create neoset "$(manifest web replicas=2 'selector={"matchLabels":{"app":"db"}}' label.app=db)"
Then each has its own pods
wait_until ready_are web 2
check is "db-0 db-1 web-0 web-1" "$(list pod 'map(.metadata.name) | sort | join(" ")')"
check is "db db web web" "$(list pod 'sort_by(.metadata.name) | map(.metadata.ownerReferences[0].name) | join(" ")')"
stays 3 list_is pod 'sort_by(.metadata.name) | map(select(.metadata.name | startswith("db"))) | map(.metadata.uid) | join(" ")' "$uids"
And both say so
wait_until condition_is db SelectorShared True
wait_until condition_is web SelectorShared True
