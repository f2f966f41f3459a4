#!/usr/bin/env bash
# quickstart.sh - from a fresh Debian machine to a running broker that took a real file and gave it back.
#
#   ./scripts/quickstart.sh          build, start one broker, round trip; leaves the broker running
#   ./scripts/quickstart.sh --once   the same, and ends the broker afterwards
#   ./scripts/quickstart.sh --stop   ends the broker; its data stays, and the next run goes on with it
#
# Environment: KAFKAD_PORT (9092), KAFKAD_DATA (./data): the broker's port and folder; --stop needs
# the KAFKAD_DATA of the start.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

port=${KAFKAD_PORT:-9092}
data=${KAFKAD_DATA:-$root/data}
pid_file=$data/kafkad.pid
server_log=$data/kafkad.out
topic=quickstart
at=127.0.0.1:$port
bin=$root/build/bin

usage() { sed -n '2,9s/^# \{0,1\}//p' "$0"; }

# Is the process of the pid file alive, and ours (kafkad)?
running() {
  [ -f "$pid_file" ] && pid=$(cat "$pid_file") && [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null &&
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = kafkad ]
}

stop_broker() {
  running || { rm -f "$pid_file"; return 0; }
  kill -TERM "$pid"
  for _ in $(seq 300); do
    kill -0 "$pid" 2>/dev/null || { rm -f "$pid_file"; return 0; }
    sleep 0.1
  done
  die "the broker (process $pid) has not stopped within 30 s; see $server_log"
}

need_port() { ! in_use "$port" || die "port $port is in use by another program: set KAFKAD_PORT to a free one"; }

start_broker() {
  need_port
  mkdir -p "$data/logs"
  cat >"$data/server.properties" <<P
broker.id=0
listeners=PLAINTEXT://127.0.0.1:$port
log.dirs=$data/logs
P
  : >"$server_log"
  "$bin/kafkad" "$data/server.properties" >>"$server_log" 2>&1 </dev/null &
  pid=$!
  disown
  echo "$pid" >"$pid_file"
  for _ in $(seq 300); do
    grep -q 'KafkaServer id=[0-9]*\] started' "$server_log" && return 0
    if ! kill -0 "$pid" 2>/dev/null; then
      rm -f "$pid_file"
      cat "$server_log" >&2
      ! grep -qi 'address already in use' "$server_log" || die "port $port is in use: set KAFKAD_PORT to a free one"
      die "the broker did not start"
    fi
    sleep 0.1
  done
  die "the broker is not up after 30 s; see $server_log"
}

[ $# -le 1 ] || wrong "one argument at most, not '$*'"
once=no
case "${1:-}" in
  "") ;;
  --once) once=yes ;;
  --stop)
    running || die "no broker of $data runs (KAFKAD_DATA names the folder it was started with)"
    stop_broker
    echo "stopped"
    exit 0
    ;;
  -h | --help) usage; exit 0 ;;
  *) wrong "unknown argument '$1'" ;;
esac

running || need_port # before a build that takes minutes
install_packages core
build_release

if running; then
  say "a broker of this folder is running already (process $pid): using it"
else
  say "starting a broker on $at, data in $data"
  start_broker
fi
[ $once = yes ] && trap 'stop_broker' EXIT

file=$root/LICENSE
lines=$(wc -l <"$file")
back=$(mktemp)

say "creating topic $topic"
"$bin/kafka-topics" --bootstrap-server "$at" --create --if-not-exists --topic "$topic" --partitions 1 --replication-factor 1
from=$("$bin/kafka-get-offsets" --bootstrap-server "$at" --topic "$topic" | cut -d: -f3)

say "producing $file, a record a line ($lines records from offset $from)"
"$bin/kafka-console-producer" --bootstrap-server "$at" --topic "$topic" <"$file"

say "consuming it back"
"$bin/kafka-console-consumer" --bootstrap-server "$at" --topic "$topic" --partition 0 --offset "$from" \
  --max-messages "$lines" --timeout-ms 20000 >"$back"

if ! cmp "$file" "$back"; then
  die "what came back differs from $file; it is in $back"
fi
rm -f "$back"
say "right: $(wc -c <"$file") bytes in, the same bytes out"
if [ $once = no ]; then
  stop="./scripts/quickstart.sh --stop"
  [ "$data" = "$root/data" ] || stop="KAFKAD_DATA=$data $stop"
  cat <<T

The broker runs on (process $(cat "$pid_file"), log in $server_log). Try:
  build/bin/kafka-topics --bootstrap-server $at --list
  build/bin/kafka-console-producer --bootstrap-server $at --topic $topic
  build/bin/kafka-console-consumer --bootstrap-server $at --topic $topic --partition 0 --offset earliest
  $stop
T
fi
