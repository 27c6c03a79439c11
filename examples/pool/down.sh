#!/bin/sh
# Ends the pool of up.sh. Its logs and its jobs' files go with it.
cd "$(dirname "$0")/../.." && exec go run ./ci/realpool down "$@"
