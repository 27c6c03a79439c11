#!/bin/sh
# A personal pool: HTCondor's own daemons from Debian's packages, with
# execpoint's startd. up.sh -h lists the options. With -install before them,
# root has the packages installed that a bare Debian lacks for it.
cd "$(dirname "$0")/../.." || exit 1
if [ "${1:-}" = -install ]; then
  shift
  missing=
  command -v mmdebstrap >/dev/null || missing="$missing mmdebstrap"
  [ -e /etc/ssl/certs/ca-certificates.crt ] || missing="$missing ca-certificates" # for go's modules
  if [ -n "$missing" ]; then
    echo "installing$missing"
    export DEBIAN_FRONTEND=noninteractive
    log=$(mktemp) || exit 1
    { apt-get -q update && apt-get -q -y install --no-install-recommends $missing; } >"$log" 2>&1 ||
      { tail -n 5 "$log" >&2; echo "up.sh: could not install$missing; are you root on a Debian?" >&2; exit 1; }
    rm -f "$log"
  fi
fi
exec go run ./ci/realpool up "$@"
