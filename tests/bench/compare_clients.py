"""The client library beside librdkafka: same broker, same run, same settings; produce and consume, small and large records,
with and without lz4; then the size of the two libraries. Prints a table; each row is the best of three runs, CPU and memory
(the most it held) are the client's own.

    python3 tests/bench/compare_clients.py [megabytes for each run, 200] [--json FILE]     # needs librdkafka-dev at build time
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

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


def stripped_size(path):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "library")
        subprocess.run(["strip", "-o", out, path], check=True)
        return os.path.getsize(out)


def library_sizes():
    """{client: bytes of its shared library, without symbols}"""
    own = os.path.join(os.path.dirname(harness.bin_dir()), "lib", "libkafkad-client.so")
    others = glob.glob("/usr/lib/*/librdkafka.so.1") + glob.glob("/usr/lib/librdkafka.so.1")
    return {name: stripped_size(os.path.realpath(path))
            for name, path in [("kafkad-client", own)] + [("librdkafka", p) for p in others[:1]] if os.path.exists(path)}


def arguments():
    a = argparse.ArgumentParser(description="The client library beside librdkafka.")
    a.add_argument("megabytes", nargs="?", type=int, default=200, help="of records in each run (a quarter at 100 bytes)")
    a.add_argument("--json", metavar="FILE", help="the rows, too, and the sizes of the libraries")
    return a.parse_args()


def main():
    args = arguments()
    megabytes, rows = args.megabytes, []
    if not os.path.exists(os.path.join(harness.bin_dir(), "tests", "bench_rdkafka")):
        sys.exit("compare_clients: bench_rdkafka was not built: install librdkafka-dev, then run cmake and the build again")
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
                        rows.append(dict(r, what=what, record=size, codec=codec))
                        print("%-8s %6d %5s %-12s %8.1f %10.0f %9.2f %6d" % (what, size, codec, r["client"], r["mb_s"],
                                                                            r["records_s"], r["cpu_s_per_gb"], r["rss_mb"]))
                        sys.stdout.flush()
    sizes = library_sizes()
    for name, n in sizes.items():
        print("%s: %.2f MB of shared library, without symbols" % (name, n / 1e6))
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"rows": rows, "library_bytes": sizes}, f, indent=1)


if __name__ == "__main__":
    main()
