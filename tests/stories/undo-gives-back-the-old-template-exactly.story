# Going back gives the old template, and nothing of the new one is left: a volume of another kind once stayed behind (kubernetes
# 91675, 55072; kruise 410, 632). The set has no new revision, the old one has a higher number.

Given three pods, one of which has the new template with another volume
neoset db 'template.spec.volumes=[{"name":"cache","emptyDir":{}}]'
wait_until settled db 3
first=$(status db currentRevisionName)
old=$(get neoset db '.spec.template')
edit db image=app:v2 'template.spec.volumes=[{"name":"cache","configMap":{"name":"cache","optional":true}}]'
wait_until completed db
When a person goes back
neosetctl undo db
wait_until completed db
Then the template is the old one to the byte
check is "$old" "$(get neoset db '.spec.template')"
check status_is db currentRevisionName "$first"
check revisions_are db 2
check status_is db currentRevision 3
check is "null null null" "$(pods db 'map([.spec.volumes[] | select(.name == "cache")][0].configMap | tostring) | join(" ")')"
