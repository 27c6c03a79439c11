#!/bin/sh
# A job that wants eleven variables of a thousand equal characters each in its
# environment, V1 of ones to V11 of Bs, and says whether they are.
bad=0
check() {
	eval value="\$$1"
	rest=$(printf %s "$value" | tr -d "$2")
	if [ "${#value}" != 1000 ] || [ -n "$rest" ]; then
		echo "$1 has ${#value} characters, of which ${#rest} are not $2"
		bad=1
	fi
}
check V1 1; check V2 2; check V3 3; check V4 4; check V5 5; check V6 6
check V7 7; check V8 8; check V9 9; check V10 A; check V11 B
[ $bad = 0 ] && echo SUCCESS
exit $bad
