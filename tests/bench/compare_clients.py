"""The client library beside librdkafka: same broker, same run, same settings; produce and consume, small and large records,
with and without lz4. Prints a table; each cell is the best of three runs, CPU is the client's own.

    python3 tests/bench/compare_clients.py [megabytes for each run, 200]      # needs librdkafka-dev at build time
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import harness

SAME = {"produce": {"acks": "all", "enable.idempotence": "true", "linger.ms": "5", "batch.size": "131072"},
        "consume": {"fetch.max.bytes": "52428800", "fetch.min.bytes": "1"}}
# Buffers for sending: librdkafka leaves their size to the system.
OWN = {("bench_client", "consume"): {"max.partition.fetch.bytes": "1048576"},
       ("bench_client", "produce"): {"send.buffer.bytes": "-1"},
       ("bench_rdkafka", "consume"): {"fetch.message.max.bytes": "1048576", "check.crcs": "true"},
       ("bench_rdkafka", "produce"): {"queue.buffering.max.messages": "1000000", "queue.buffering.max.kbytes": "32768"}}


def run(program, what, broker, topic, records, size, settings):
    conf = dict(SAME[what], **OWN.get((program, what), {}), **settings)
    args = [os.path.join(harness.bin_dir(), "tests", program), what, broker.address, topic, str(records), str(size)]
    out = subprocess.run(args + ["%s=%s" % kv for kv in conf.items()], stdout=subprocess.PIPE, check=True, timeout=300)
    return json.loads(out.stdout)


def main():
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print("%-8s %6s %5s %-12s %8s %10s %9s %6s" % ("", "record", "codec", "client", "MB/s", "records/s", "CPU s/GB", "MB"))
    with harness.Broker(overrides={"num.partitions": "4", "log.flush.interval.messages": "9223372036854775807"}) as b:
        for size in (100, 1000, 10000):
            for codec in ("none", "lz4"):
                records = megabytes * 1000000 // size // (4 if size == 100 else 1)
                for what in ("produce", "consume"):
                    for program in ("bench_client", "bench_rdkafka"):
                        settings = {"compression.type": codec} if what == "produce" else {}
                        topic = "t-%d-%s" % (size, codec)
                        r = max((run(program, what, b, topic, records, size, settings) for _ in range(3)),
                                key=lambda x: x["mb_s"])
                        print("%-8s %6d %5s %-12s %8.1f %10.0f %9.2f %6d" % (what, size, codec, r["client"], r["mb_s"],
                                                                            r["records_s"], r["cpu_s_per_gb"], r["rss_mb"]))
                        sys.stdout.flush()


if __name__ == "__main__":
    main()
