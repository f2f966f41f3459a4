#!/usr/bin/env bash
# cluster.sh - a cluster on this machine: one ZooKeeper server and brokers 1, 2, 3 ... on it, to try things out.
#
#   ./scripts/cluster.sh up [N]         start ZooKeeper and N brokers (3); installs and builds what is missing
#   ./scripts/cluster.sh status         who runs, on which port, who is the controller
#   ./scripts/cluster.sh wait           until every partition is led by a broker that runs, 60 seconds at most
#   ./scripts/cluster.sh kill ID        SIGKILL to a broker, as a crash would
#   ./scripts/cluster.sh stop ID        stop it cleanly: its partitions are led by others first
#   ./scripts/cluster.sh restart ID     start it again (stops it cleanly if it runs)
#   ./scripts/cluster.sh logs ID [-f]   its log, the last 100 lines; -f follows
#   ./scripts/cluster.sh down [--delete]  stop everything; --delete removes the data as well
#
# ID is a broker's number or "zookeeper". Broker N listens on port 9091 + N. `up` with a larger N adds brokers.
#
# Environment: KAFKAD_PORT (9092) port of broker 1, KAFKAD_ZOOKEEPER_PORT (2181), KAFKAD_CLUSTER (./cluster) the folder,
# KAFKAD_BIN a folder with a kafkad that is built already, ZOOKEEPER_HOME (/usr/share/zookeeper). The folder remembers the
# others from its first `up` on.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

folder=${KAFKAD_CLUSTER:-$root/cluster}

# Sets port, zk_port, bin, zk_home, zk: what the folder remembers; else the environment, which may name other programs later.
settle() {
  port='' zk_port='' bin='' zk_home=''
  # shellcheck disable=SC1091
  [ ! -f "$folder/environment" ] || . "$folder/environment"
  port=${port:-${KAFKAD_PORT:-9092}}
  zk_port=${zk_port:-${KAFKAD_ZOOKEEPER_PORT:-2181}}
  bin=${KAFKAD_BIN:-${bin:-$root/build/bin}}
  zk_home=${ZOOKEEPER_HOME:-${zk_home:-/usr/share/zookeeper}}
  zk=127.0.0.1:$zk_port
}

remember() {
  mkdir -p "$folder"
  printf '%s=%q\n' port "$port" zk_port "$zk_port" bin "$bin" zk_home "$zk_home" >"$folder/environment"
}

usage() { sed -n '2,18s/^# \{0,1\}//p' "$0"; }

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
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$name" ] && ! gone
}

gone() { ! kill -0 "$pid" 2>/dev/null || grep -q '^State:.Z' "/proc/$pid/status" 2>/dev/null; } # the process pid

# need_port ID: nobody else may have it. ZooKeeper's would be another cluster, which the brokers would join.
need_port() {
  running "$1" && return 0
  in_use "$(port_of "$1")" || return 0
  local variable=KAFKAD_PORT
  [ "$1" != zookeeper ] || variable=KAFKAD_ZOOKEEPER_PORT
  [ ! -f "$(folder_of "$1")/pid" ] && [ ! -f "$folder/environment" ] ||
    die "port $(port_of "$1") of $1 is in use by another program; for other ports: cluster.sh down --delete, then set $variable"
  die "port $(port_of "$1") ($1) is in use: set $variable to a free one"
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
      ! grep -qi 'address already in use' "$(output_of "$id")" ||
        die "$id did not start: port $(port_of "$id") is in use (KAFKAD_PORT, KAFKAD_ZOOKEEPER_PORT)"
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
    gone && { rm -f "$(folder_of "$1")/pid"; return 0; }
    sleep 0.1
  done
  die "$1 (process $pid) has not stopped within a minute; its output is $(output_of "$1")"
}

# ---- ZooKeeper ----

# It serves. While it starts it may take a connection and never answer on it: another try finds out.
zookeeper_answers() {
  timeout -k 1 2 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1" && printf srvr >&3 && grep -q "^Mode" <&3' - "$zk_port" 2>/dev/null
}

start_zookeeper() {
  local at
  at=$(folder_of zookeeper)
  running zookeeper && return 0
  need_port zookeeper
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
P
}

started() { grep -q 'KafkaServer id=[0-9]*\] started' "$(output_of "$1")"; }

start_broker() {
  running "$1" && return 0
  need_port "$1"
  launch "$1" "$bin/kafkad" "$(folder_of "$1")/server.properties"
}

# ---- commands ----

up() {
  local n=${1:-3} id
  [[ $n =~ ^[1-9][0-9]?$ ]] || wrong "up takes a number of brokers from 1 to 99, not '$n'"
  if [ "${KAFKAD_PORT:-$port}" != "$port" ] || [ "${KAFKAD_ZOOKEEPER_PORT:-$zk_port}" != "$zk_port" ]; then
    die "the cluster in $folder has the ports $port and $zk_port (ZooKeeper); for others: cluster.sh down --delete, or another KAFKAD_CLUSTER"
  fi
  for id in zookeeper $(seq "$n"); do
    need_port "$id" # all of them, before anything is started
  done
  if [ -z "${KAFKAD_BIN:-}" ]; then
    install_packages core
    install_packages cluster
    build_release
  fi
  [ -x "$bin/kafkad" ] || die "no kafkad in $bin"
  remember
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
  local self=./scripts/cluster.sh
  [ "$folder" = "$root/cluster" ] || self="KAFKAD_CLUSTER=$folder $self"
  cat <<T

Try:
  $bin/kafka-topics --bootstrap-server 127.0.0.1:$port --create --topic hello --partitions 3
  $bin/kafka-topics --bootstrap-server 127.0.0.1:$port --describe --topic hello
  $self kill 1
  $self wait
T
}

# What ZooKeeper knows. A node that is not there is no failure; 5 seconds are long for this machine.
ask_zookeeper() {
  local answer
  if answer=$(timeout -k 1 5 "$bin/zookeeper-shell" "$zk" "$@" 2>&1); then
    tail -1 <<<"$answer"
  else
    [[ $answer == *"does not exist"* ]]
  fi
}

status() {
  local id state registered='' controller='' unknown=''
  [ -d "$folder" ] || { echo "no cluster in $folder"; return 0; }
  state="not running"
  if running zookeeper; then
    state="process $pid"
    if [ ! -x "$bin/zookeeper-shell" ]; then
      unknown="there is no zookeeper-shell in $bin to ask"
    elif registered=$(ask_zookeeper ls /brokers/ids) && controller=$(ask_zookeeper get /controller); then
      registered=$(tr -d '[],' <<<"$registered")
      controller=$(sed -n 's/.*"brokerid":\([0-9]*\).*/\1/p' <<<"$controller")
    else
      state="$state, does not answer"
      unknown="ZooKeeper on $zk cannot be reached"
    fi
  fi
  printf '%-10s %-16s %s\n' zookeeper "$zk" "$state"
  for id in $(brokers); do
    state="not running"
    if running "$id"; then
      state="process $pid"
      in_use "$(port_of "$id")" || state="$state, takes no connections"
    fi
    [[ " $registered " == *" $id "* ]] && state="$state, registered"
    [ "$controller" = "$id" ] && state="$state, controller"
    printf '%-10s %-16s %s\n' "broker $id" "127.0.0.1:$(port_of "$id")" "$state"
  done
  [ -z "$unknown" ] || echo "$unknown: who is registered, and who is the controller, is not known"
}

# Partitions that no running broker leads, as broker $2 sees it; $1: who runs, " 1 2 ". Fails when it does not answer.
leaderless() {
  timeout -k 1 10 "$bin/kafka-topics" --bootstrap-server "127.0.0.1:$(port_of "$2")" --describe |
    awk -v running="$1" -F'\t' '/Partition: / { for (i = 1; i <= NF; i++) if ($i ~ /^Leader: /) {
      sub(/^Leader: /, "", $i); if (!index(running, " " $i " ")) print } }'
}

# A broker that was killed is taken for alive until its session is over, also by kafka-topics: who runs is known here.
wait_leaders() {
  local id running=' ' lacking='' end=$((SECONDS + 60))
  [ -x "$bin/kafka-topics" ] || die "no kafka-topics in $bin"
  for id in $(brokers); do
    running "$id" && running="$running$id "
  done
  [ "$running" != ' ' ] || die "no broker of $folder runs"
  while [ $SECONDS -lt $end ]; do
    for id in $running; do
      lacking=$(leaderless "$running" "$id" 2>&1) || lacking="broker $id does not answer"$'\n'$lacking
      [ -z "$lacking" ] || break
    done
    [ -n "$lacking" ] || { echo "every partition has a leader that runs (brokers${running% })"; return 0; }
    sleep 0.3
  done
  printf '%s\n' "$lacking" | head -20 >&2
  die "there are partitions without a running leader after 60 s (brokers that run:${running% })"
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
    rm -rf "$folder"/broker-* "$folder/zookeeper" "$folder/environment"
    rmdir "$folder" 2>/dev/null || true
    echo "stopped, and the data deleted"
  else
    echo "stopped; the data is in $folder"
  fi
}

kill_one() {
  running "$1" || die "$1 does not run"
  kill -KILL "$pid"
  for _ in $(seq 100); do # its ports are free then
    gone && break
    sleep 0.05
  done
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

one() { # COMMAND ID...: the ID of a command
  [ $# -gt 1 ] && [ -n "$2" ] || wrong "$1 needs the number of a broker, or zookeeper"
  [ $# = 2 ] || wrong "$1 takes one ID, not '${*:2}'"
  [[ $2 =~ ^[0-9]+$ || $2 = zookeeper ]] || wrong "'$2' is neither the number of a broker nor zookeeper"
  known "$2"
}

none() { [ $# = 1 ] || wrong "$1 takes no argument, not '${*:2}'"; }

settle
[ $# -gt 0 ] || wrong "no command given"
command=$1
shift
case $command in
  up) [ $# -le 1 ] || wrong "up takes one number, not '$*'"; up "$@" ;;
  status) none status "$@"; status ;;
  wait) none wait "$@"; wait_leaders ;;
  down) [ $# = 0 ] || [ "$*" = --delete ] || wrong "down takes --delete or nothing, not '$*'"; down "$@" ;;
  kill) one kill "$@"; kill_one "$1" ;;
  stop) one stop "$@"; stop_one "$1"; echo "$1 is stopped" ;;
  restart) one restart "$@"; restart "$1" ;;
  logs)
    one logs "${1:-}"
    case "${*:2}" in
      '') tail -n 100 "$(output_of "$1")" ;;
      -f) exec tail -n 100 -F "$(output_of "$1")" ;;
      *) wrong "logs ID takes -f or nothing, not '${*:2}'" ;;
    esac
    ;;
  -h | --help | help) usage ;;
  *) wrong "unknown command '$command'" ;;
esac
