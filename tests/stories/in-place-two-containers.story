# Two containers, and only one image changes: the other container runs on (cloneset's own tests C-2 and C-3 as far as they apply).
needs behaviours

Given three pods of two containers
neoset db 'template.spec.containers.1={"name":"side","image":"side:v1"}'
wait_until settled db 3
When the image of the second changes
edit db template.spec.containers.1.image=side:v2
wait_until completed db
Then only that one restarted
check is "app 0 side 1" "$(get pod db-2 '[.status.containerStatuses | sort_by(.name)[] | "\(.name) \(.restartCount)"] | join(" ")')"
