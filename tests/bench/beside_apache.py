#!/usr/bin/env python3
"""beside_apache.py - memory and processor time of kafkad beside Apache Kafka, each as the one broker on a ZooKeeper of its
own, with the same server.properties, the same clients (kafkad's) and the same work.

    tests/bench/beside_apache.py [--gb 2] [--bin build/bin] [--codec none] [--record-size 1000]

Apache's broker runs as its start script runs it (1 GB of heap, G1). Fetches it from Maven as the tests of tests/mixed do; where
it is not to be had, says so in one line and ends with 77. Nothing passes or fails."""
import argparse
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "mixed"))
# what kafka-server-start.sh and kafka-run-class.sh of Apache Kafka 3.9 say
APACHE_JVM = ["-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
              "-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15", "-Djava.awt.headless=true"]
TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def wait_idle(pid):
    """Until it takes next to no time of the processor: what a start leaves to the background is done."""
    used = processor_seconds(pid)
    for _ in range(60):
        time.sleep(0.5)
        before, used = used, processor_seconds(pid)
        if used - before <= 0.01:
            return


def work(apache, kind, args):
    """The figures of one kind."""
    import kwire
    with apache.Mixed({1: kind}, start=False, overrides={"min.insync.replicas": 1}) as c:
        b = c.brokers[1]
        b.jvm = APACHE_JVM
        for name in ("num.network.threads", "num.io.threads", "background.threads", "log.cleaner.dedupe.buffer.size"):
            del b.overrides[name]  # the defaults
        started = time.monotonic()
        c.start_all()
        figures = {"start, s": time.monotonic() - started}
        wait_idle(b.pid)
        figures["RSS idle, MB"] = b.rss_kb() / 1024
        with c.conn() as k:
            kwire.create_topic(k, "load", 4)
        records = int(args.gb * 1e9 / args.record_size)

        def measured(name, *command):
            before, began = processor_seconds(b.pid), time.monotonic()
            p = subprocess.run([os.path.join(args.bin, command[0]), *command[1:]], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
            if p.returncode:
                raise SystemExit("%s: %s" % (command[0], p.stdout.decode()[-500:]))
            figures[name + ", MB/s"] = args.gb * 1000 / (time.monotonic() - began)
            figures[name + ", CPU s/GB"] = (processor_seconds(b.pid) - before) / args.gb
        measured("produce", "kafka-producer-perf-test", "--topic", "load", "--num-records", str(records), "--record-size",
                 str(args.record_size), "--throughput", "-1", "--producer-props", "bootstrap.servers=" + b.address, "acks=all",
                 "compression.type=" + args.codec)
        measured("consume", "kafka-consumer-perf-test", "--bootstrap-server", b.address, "--topic", "load", "--messages",
                 str(records), "--timeout", "60000")
        figures["RSS after, MB"] = b.rss_kb() / 1024
        figures["RSS peak, MB"] = b.status_kb("VmHWM") / 1024
        return figures


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--gb", type=float, default=2)
    p.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
    p.add_argument("--codec", default="none")
    p.add_argument("--record-size", type=int, default=1000)
    args = p.parse_args()
    os.environ["KAFKAD_BIN_DIR"] = os.path.abspath(args.bin)
    import apache
    import prepare
    try:
        apache.jars()
    except prepare.Skip as e:
        print("SKIPPED beside_apache: %s" % e)
        return 77
    found = {kind: work(apache, kind, args) for kind in ("kafkad", "apache")}
    print("%-22s %10s %10s %8s" % ("%g GB of %d bytes" % (args.gb, args.record_size), "kafkad", "Apache", "ratio"))
    for name, own in found["kafkad"].items():
        peer = found["apache"][name]
        print("%-22s %10.2f %10.2f %8.3f" % (name, own, peer, own / peer if peer else 0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
