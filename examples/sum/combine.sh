#!/bin/sh
# Adds up the files *.count of this directory. Each has a line "FIRST LAST
# COUNT"; together they must cover 1 to 2000000 without a gap.
set -eu
cat ./*.count | sort -n | awk '
$1 != next_first + 0 && NR > 1 || NR == 1 && $1 != 1 { print "gap before " $1 > "/dev/stderr"; bad = 1; exit 1 }
{ total += $3; next_first = $2 + 1; last = $2 }
END {
	if (bad) exit 1
	if (last != 2000000) { print "nothing after " last + 0 > "/dev/stderr"; exit 1 }
	print total " primes up to " last
}'
