#!/usr/bin/env bash
# cluster.sh - a cluster on this machine: one ZooKeeper server and brokers 1, 2, 3 ... on it, to try things out.
#
#   ./scripts/cluster.sh up [N]         start ZooKeeper and N brokers (3); installs and builds what is missing
#   ./scripts/cluster.sh status         who runs, on which port, who is the controller
#   ./scripts/cluster.sh kill ID        SIGKILL to a broker, as a crash would
#   ./scripts/cluster.sh stop ID        stop it cleanly: its partitions are led by others first
#   ./scripts/cluster.sh restart ID     start it again (stops it cleanly if it runs)
#   ./scripts/cluster.sh logs ID [-f]   its log, the last 100 lines; -f follows
#   ./scripts/cluster.sh down [--delete]  stop everything; --delete removes the data as well
#
# ID is a broker's number or "zookeeper". Broker N listens on port 9091 + N. `up` with a larger N adds brokers.
#
# Environment: KAFKAD_PORT (9092) port of broker 1, KAFKAD_ZOOKEEPER_PORT (2181), KAFKAD_CLUSTER (./cluster) the folder,
# KAFKAD_BIN a folder with a kafkad that is built already, ZOOKEEPER_HOME (/usr/share/zookeeper).
set -euo pipefail
. "$(dirname "$0")/lib.sh"

port=${KAFKAD_PORT:-9092}
zk_port=${KAFKAD_ZOOKEEPER_PORT:-2181}
folder=${KAFKAD_CLUSTER:-$root/cluster}
bin=${KAFKAD_BIN:-$root/build/bin}
zk_home=${ZOOKEEPER_HOME:-/usr/share/zookeeper}
zk=127.0.0.1:$zk_port

usage() { sed -n '2,16s/^# \{0,1\}//p' "$0"; }

# ---- one process: a folder with its pid file and its output ----

folder_of() { if [ "$1" = zookeeper ]; then echo "$folder/zookeeper"; else echo "$folder/broker-$1"; fi; }
output_of() { echo "$(folder_of "$1")/output"; }
port_of() { if [ "$1" = zookeeper ]; then echo "$zk_port"; else echo $((port + $1 - 1)); fi; }

# Sets pid. Is the process of the pid file alive, and what we started?
running() {
  local file name=kafkad
  file=$(folder_of "$1")/pid
  [ "$1" = zookeeper ] && name=java
  [ -f "$file" ] && pid=$(cat "$file") && [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null &&
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$name" ]
}

known() { [ -d "$(folder_of "$1")" ] || die "there is no $1 in $folder (cluster.sh up makes one; cluster.sh status lists them)"; }

brokers() { # their numbers, in order
  [ -d "$folder" ] || return 0
  find "$folder" -maxdepth 1 -name 'broker-*' -printf '%f\n' | sed 's/^broker-//' | sort -n
}

# wait_for ID SECONDS CONDITION...: until it is true; ends the script when the process has gone or it takes too long
wait_for() {
  local id=$1 tries=$(($2 * 10))
  shift 2
  for _ in $(seq $tries); do
    "$@" && return 0
    if ! running "$id"; then
      tail -20 "$(output_of "$id")" >&2
      die "$id did not start; its output is $(output_of "$id")"
    fi
    sleep 0.1
  done
  die "$id is not up; its output is $(output_of "$id")"
}

launch() { # launch ID COMMAND...: in the background, the output to its file
  local id=$1
  shift
  [ ! -s "$(output_of "$id")" ] || mv "$(output_of "$id")" "$(output_of "$id").before" # of its last life
  setsid "$@" >>"$(output_of "$id")" 2>&1 </dev/null &
  echo $! >"$(folder_of "$id")/pid"
  disown
  # a moment long it is still this shell, or the script that becomes java
  local starting=$!
  for _ in $(seq 200); do
    running "$id" && return 0
    kill -0 "$starting" 2>/dev/null || return 0 # wait_for tells
    sleep 0.05
  done
}

stop_one() {
  running "$1" || return 0
  kill -TERM "$pid"
  for _ in $(seq 600); do
    kill -0 "$pid" 2>/dev/null || { rm -f "$(folder_of "$1")/pid"; return 0; }
    sleep 0.1
  done
  die "$1 (process $pid) has not stopped within a minute; its output is $(output_of "$1")"
}

# ---- ZooKeeper ----

zookeeper_answers() { # it takes connections
  (exec 3<>"/dev/tcp/127.0.0.1/$zk_port" && printf srvr >&3 && grep -q '^Mode' <&3) 2>/dev/null
}

start_zookeeper() {
  local at
  at=$(folder_of zookeeper)
  running zookeeper && return 0
  [ -x "$zk_home/bin/zkServer.sh" ] || die "no ZooKeeper in $zk_home (apt-get install zookeeper, or set ZOOKEEPER_HOME)"
  mkdir -p "$at/data"
  cat >"$at/zoo.cfg" <<P
tickTime=1000
dataDir=$at/data
clientPort=$zk_port
clientPortAddress=127.0.0.1
admin.enableServer=false
4lw.commands.whitelist=srvr,ruok
maxClientCnxns=0
P
  say "starting ZooKeeper on $zk"
  # zkServer.sh start-foreground ends in exec java: the pid is ZooKeeper's own
  launch zookeeper env ZOO_LOG_DIR="$at" JMXDISABLE=true SERVER_JVMFLAGS="-Xmx256m" \
    "$zk_home/bin/zkServer.sh" start-foreground "$at/zoo.cfg"
  wait_for zookeeper 60 zookeeper_answers
}

# ---- brokers ----

min() { if [ "$1" -lt "$2" ]; then echo "$1"; else echo "$2"; fi; }

# Settings of broker $1 in a cluster of $2. They are written once: what is changed by hand stays.
write_settings() {
  local at copies
  at=$(folder_of "$1")
  copies=$(min 3 "$2")
  [ -f "$at/server.properties" ] && return 0
  mkdir -p "$at/logs"
  cat >"$at/server.properties" <<P
broker.id=$1
listeners=PLAINTEXT://127.0.0.1:$(port_of "$1")
log.dirs=$at/logs
zookeeper.connect=$zk
# a crash is noticed after this time; 18000 is the default, and right for servers that are far apart
zookeeper.session.timeout.ms=6000
num.partitions=3
default.replication.factor=$copies
min.insync.replicas=$(min 2 "$copies")
offsets.topic.replication.factor=$copies
transaction.state.log.replication.factor=$copies
transaction.state.log.min.isr=$(min 2 "$copies")
P
}

started() { grep -q 'KafkaServer id=[0-9]*\] started' "$(output_of "$1")"; }

start_broker() {
  running "$1" && return 0
  launch "$1" "$bin/kafkad" "$(folder_of "$1")/server.properties"
}

# ---- commands ----

up() {
  local n=${1:-3} id
  [[ $n =~ ^[1-9][0-9]?$ ]] || die "up takes a number of brokers from 1 to 99, not '$n'"
  if [ -z "${KAFKAD_BIN:-}" ]; then
    install_packages core
    install_packages cluster
    build_release
  fi
  [ -x "$bin/kafkad" ] || die "no kafkad in $bin"
  start_zookeeper
  say "starting brokers 1 to $n"
  for id in $(seq "$n"); do
    write_settings "$id" "$n"
    start_broker "$id"
  done
  for id in $(seq "$n"); do
    wait_for "$id" 60 started "$id"
  done
  status
  cat <<T

Try:
  $bin/kafka-topics --bootstrap-server 127.0.0.1:$port --create --topic hello --partitions 3
  $bin/kafka-topics --bootstrap-server 127.0.0.1:$port --describe --topic hello
  ./scripts/cluster.sh kill 1
T
}

# What ZooKeeper knows; nothing when it cannot be asked.
ask_zookeeper() { [ -x "$bin/zookeeper-shell" ] && timeout 10 "$bin/zookeeper-shell" "$zk" "$@" 2>/dev/null || true; }

status() {
  local id state registered='' controller=''
  [ -d "$folder" ] || { echo "no cluster in $folder"; return 0; }
  if running zookeeper; then
    registered=$(ask_zookeeper ls /brokers/ids | tail -1 | tr -d '[],')
    controller=$(ask_zookeeper get /controller | sed -n 's/.*"brokerid":\([0-9]*\).*/\1/p')
    state="process $pid"
  else
    state="not running"
  fi
  printf '%-10s %-16s %s\n' zookeeper "$zk" "$state"
  for id in $(brokers); do
    state="not running"
    running "$id" && state="process $pid"
    [[ " $registered " == *" $id "* ]] && state="$state, registered"
    [ "$controller" = "$id" ] && state="$state, controller"
    printf '%-10s %-16s %s\n' "broker $id" "127.0.0.1:$(port_of "$id")" "$state"
  done
}

down() {
  local id
  for id in $(brokers); do
    running "$id" && kill -TERM "$pid"
  done
  for id in $(brokers); do
    stop_one "$id"
  done
  [ -d "$(folder_of zookeeper)" ] && stop_one zookeeper
  if [ "${1:-}" = --delete ]; then
    rm -rf "$folder"/broker-* "$folder/zookeeper"
    rmdir "$folder" 2>/dev/null || true
    echo "stopped, and the data deleted"
  else
    echo "stopped; the data is in $folder"
  fi
}

kill_one() {
  running "$1" || die "$1 does not run"
  kill -KILL "$pid"
  rm -f "$(folder_of "$1")/pid"
  echo "$1 (process $pid) was killed"
}

restart() {
  stop_one "$1"
  if [ "$1" = zookeeper ]; then
    start_zookeeper
  else
    start_broker "$1"
    wait_for "$1" 60 started "$1"
  fi
  running "$1" && echo "$1 runs (process $pid)"
}

one() { # the ID of a command
  [ $# = 1 ] && [ -n "$1" ] || { usage >&2; exit 1; }
  known "$1"
}

command=${1:-}
[ $# -gt 0 ] && shift
case $command in
  up) [ $# -le 1 ] || { usage >&2; exit 1; }; up "$@" ;;
  status) status ;;
  down) [ $# = 0 ] || [ "$*" = --delete ] || { usage >&2; exit 1; }; down "$@" ;;
  kill) one "$@"; kill_one "$1" ;;
  stop) one "$@"; stop_one "$1"; echo "$1 is stopped" ;;
  restart) one "$@"; restart "$1" ;;
  logs)
    one "${1:-}"
    [ "${2:-}" = -f ] && exec tail -n 100 -F "$(output_of "$1")"
    tail -n 100 "$(output_of "$1")"
    ;;
  -h | --help | help) usage ;;
  *) usage >&2; exit 1 ;;
esac
