#!/usr/bin/env bash
# perf.sh - measures a broker and the machine's own floor in one run, and prints the ratios.
#
#   ./scripts/perf.sh                 all workloads of one broker
#   ./scripts/perf.sh --quick         the main ones, within 40 s
#   ./scripts/perf.sh --json FILE     also writes the figures as a list of objects
#   ./scripts/perf.sh --only NAME     one workload (may be repeated); --list prints their names
#   ./scripts/perf.sh --override KEY=VALUE    a setting of our broker (may be repeated)
#   ./scripts/perf.sh --peer HOST:PORT --peer-pid PID    the same workloads against another broker
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
. "$(dirname "$0")/lib.sh"
install_packages all
build_release with-tests
exec python3 scripts/perf.py --bin build/bin "$@"
