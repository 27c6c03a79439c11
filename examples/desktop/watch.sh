#!/bin/sh
# Runs work.sub under desktop.conf and plays the owner of the machine:
#   at 10 s  one key press     -> the job is suspended, and continues 6 s later
#   at 20 s  13 s of typing    -> suspended, preempted, the slot goes to its owner
#   then quiet                 -> the job starts again and finishes
# Usage: sh examples/desktop/watch.sh
cd "$(dirname "$0")/../.." || exit 2
keyboard=examples/desktop/keyboard
: >>"$keyboard"
(
	sleep 10
	touch "$keyboard"
	sleep 10
	i=0
	while [ "$i" -lt 13 ]; do
		touch "$keyboard"
		sleep 1
		i=$((i + 1))
	done
) &
owner=$!
command -v condor_ep >/dev/null || condor_ep() { go run ./bin/condor_ep "$@"; } # which shows every status but 0 as 1
condor_ep run -config examples/desktop/desktop.conf examples/desktop/work.sub
status=$?
kill "$owner" 2>/dev/null
rm -f "$keyboard"
exit "$status"
