#!/bin/sh
# A personal pool: HTCondor's own daemons from Debian's packages, with
# execpoint's startd. up.sh -h lists the options.
cd "$(dirname "$0")/../.." && exec go run ./ci/realpool up "$@"
