#!/usr/bin/env bash
# chaos.sh - clusters in network namespaces under faults of every kind, with a checker of what clients were told.
#
#   ./scripts/chaos.sh MINUTES [--seed N]     the same seed makes the same plan of faults
#   ./scripts/chaos.sh 10 --only kill,cut     only these kinds
#   ./scripts/chaos.sh --help                 all options
#
# Needs root, network namespaces, /dev/net/tun and a ZooKeeper. Uses the programs of $KAFKAD_BIN_DIR, else builds a
# release. Exit status 1: something promised did not hold; the artifacts' place is printed. 2: asked wrongly. 77: this
# machine has no namespaces.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
case "${1:-}" in -h | --help) exec python3 -B tests/chaos/run.py --help ;; esac
# what is asked wrongly is told before a build of minutes
! command -v python3 >/dev/null || /usr/bin/env python3 -B tests/chaos/run.py --check "$@"
if [ -z "${KAFKAD_BIN_DIR:-}" ]; then
  install_packages all
  build_release with-tests
  export KAFKAD_BIN_DIR=$root/build/bin
fi
exec /usr/bin/env python3 -B tests/chaos/run.py "$@"
