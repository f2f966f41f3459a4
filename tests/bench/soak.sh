#!/usr/bin/env bash
# soak.sh - 1 GB a minute through one broker, beside a reader and retention, for some minutes. Prints its memory,
# descriptors and size on disk as it goes, and latencies at the start and the end: none of them may grow.
#
#   tests/bench/soak.sh [MINUTES (10)] [BIN DIR (build/bin)]
set -euo pipefail
cd "$(dirname "$0")/../.."
minutes=${1:-10} bin=${2:-build/bin} work=$(mktemp -d -p "${TMPDIR:-/var/tmp}" kafkad-soak-XXXXXX)
rate=17400 # records of 1000 bytes a second: a little over 1 GB a minute
"$bin/kafkad" --override listeners=PLAINTEXT://127.0.0.1:0 --override "log.dirs=$work/data" \
    --override log.retention.check.interval.ms=5000 --override log.segment.delete.delay.ms=1000 2> "$work/broker.log" &
broker=$! reader=
trap 'kill $broker $reader 2> /dev/null; wait; rm -rf "$work"' EXIT
until grep -q '\] started$' "$work/broker.log"; do
    kill -0 $broker || { cat "$work/broker.log"; exit 1; }
    sleep 0.1
done
address=127.0.0.1:$(sed -n 's/.*listening on PLAINTEXT:.*:\([0-9]*\)$/\1/p' "$work/broker.log")
"$bin/kafka-topics" --bootstrap-server "$address" --create --topic load --partitions 8 \
    --config retention.bytes=200000000 --config segment.bytes=50000000 > /dev/null
"$bin/kafka-topics" --bootstrap-server "$address" --create --topic latency > /dev/null

latency() {
    echo "latency $1: $("$bin/kafka-e2e-latency" "$address" latency 300 1 100 | tail -2 | paste -sd' ')"
}
sample() {
    printf '%s  %6d kB  %4d descriptors  %5d MB on disk\n' "$(date +%T)" \
        "$(awk '/VmRSS/ {print $2}' /proc/$broker/status)" "$(ls /proc/$broker/fd | wc -l)" \
        "$(du -sm "$work/data" | cut -f1)"
}
sample
"$bin/kafka-consumer-perf-test" --bootstrap-server "$address" --topic load --messages $((rate * 60 * minutes)) \
    --timeout 30000 > "$work/reader.txt" 2>&1 &
reader=$!
"$bin/kafka-producer-perf-test" --topic load --num-records $((rate * 60 * minutes)) --record-size 1000 \
    --throughput $rate --producer-props "bootstrap.servers=$address" acks=all > "$work/writer.txt" 2>&1 &
writer=$!
sleep 10
latency 'at the start'
for ((i = 0; i < minutes * 4 - 2; i++)); do
    sample
    sleep 15
done
latency 'at the end  '
wait $writer
sample
tail -1 "$work/writer.txt"
wait $reader || true
tail -1 "$work/reader.txt"
reader=
kill -TERM $broker
wait $broker
