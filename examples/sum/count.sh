#!/bin/sh
# Counts primes: $1 is a file with lines "FIRST LAST", $2 gets lines
# "FIRST LAST COUNT". Trial division, so there is something to do.
set -eu
awk '
NF == 2 {
	count = 0
	for (n = $1; n <= $2; n++) {
		prime = n == 2 || n > 2 && n % 2
		for (d = 3; prime && d * d <= n; d += 2)
			if (n % d == 0) prime = 0
		count += prime > 0
	}
	print $1, $2, count
	total += count
}
END { print "counted " total " primes" > "/dev/stderr" }
' "$1" > "$2"
