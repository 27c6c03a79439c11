#!/bin/sh
# Runs a command in the pool of up.sh, or a shell: in.sh condor_status
cd "$(dirname "$0")/../.." && exec go run ./ci/realpool in "$@"
