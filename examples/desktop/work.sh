#!/bin/sh
# Counts twelve seconds of work; says so when it is asked to leave.
trap 'echo "asked to leave after $n seconds of work"; exit 143' TERM
n=0
while [ "$n" -lt 12 ]; do
	sleep 1
	n=$((n + 1))
	echo "second $n"
done
