#!/usr/bin/env bash
# test.sh - installs what the tests need, builds, and runs them. Arguments go to ctest:
#   ./scripts/test.sh                  everything but the label slow
#   ./scripts/test.sh -L unit          one label: unit, integration, clients, chaos, sim, slow
#   ./scripts/test.sh -R log/          by name
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
. "$(dirname "$0")/lib.sh"

install_packages all
# The clients of other registries want their tools; whoever asks for other tests does not.
clients=no
case "$*" in *-LE*client*) ;; "" | *client*) clients=yes; install_packages clients ;; esac
build_release with-tests
say "testing"
args=("$@")
[ ${#args[@]} = 0 ] && args=(-LE slow)
status=0
# Most tests wait for what they have started: twice as many as processors run at a time.
ctest --test-dir build --output-on-failure --no-tests=error -j"$((2 * $(nproc)))" "${args[@]}" || status=$?
if [ $clients = yes ]; then
  say "clients of other registries, as their last run found"
  KAFKAD_CLIENTS_DIR=build/clients PYTHONPATH=tests/integration python3 -B tests/clients/driver.py --matrix || true
fi
exit $status
