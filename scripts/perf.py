#!/usr/bin/env python3
"""Workloads of scripts/perf.sh. Starts a broker, drives it with the bundled perf tools, reads its CPU time from /proc,
and sets every figure against the floor (tests/bench/floor.c) and, with --peer, against another broker.

MB = 2**20 bytes, GB = 2**30. CPU is that of the broker's process alone, user and system."""
import argparse
import json
import os
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import perf_cluster

TICK = os.sysconf("SC_CLK_TCK")
CHUNK = 256 * 1024  # bytes of a batch, and of one step of the floor probe


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def cpu_of(target):
    return sum(cpu_seconds(p) for p in getattr(target, "pids", None) or [target.pid])


def status_mb(pid, key):
    with open(f"/proc/{pid}/status") as f:
        for line in f:
            if line.startswith(key + ":"):
                return int(line.split()[1]) / 1024
    return 0.0


class Broker:
    """A broker of ours in a folder of its own, on a free port."""

    overrides = []  # for each of them

    def __init__(self, bin_dir, folder, extra=()):
        self.folder = folder
        self.log = open(os.path.join(folder, "out"), "w+")
        overrides = ["listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={folder}/logs", "log.retention.check.interval.ms=3600000"]
        cmd = [os.path.join(bin_dir, "kafkad")]
        for o in overrides + Broker.overrides + list(extra):
            cmd += ["--override", o]
        begin = time.monotonic()
        self.process = subprocess.Popen(cmd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.address = None
        for line in self.process.stderr:
            m = re.search(r"listening on \w+://(\S+)", line)
            if m:
                self.address = m.group(1)
            if "] started" in line:
                break
        else:
            raise SystemExit("the broker did not start")
        self.start_ms = (time.monotonic() - begin) * 1000
        self.drain = subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=self.log)

    def running(self):
        return self.process.poll() is None

    def stop(self):
        if not self.running():
            return
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.drain.wait(10)
        self.log.close()


class Peer:
    def __init__(self, address, pid):
        self.address, self.pid, self.start_ms = address, pid, None

    def running(self):
        return True

    def stop(self):
        pass


class Run:
    def __init__(self, args, target):
        self.args, self.target = args, target

    def tool(self, name, *argv, timeout=600):
        done = subprocess.run([os.path.join(self.args.bin, name), *argv], capture_output=True, text=True, timeout=timeout)
        if done.returncode != 0:
            raise SystemExit(f"{name} {' '.join(argv)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def topic(self, name, partitions=1):
        """10,000 partitions can take longer on a slow disk than a request may by default; then the tool asks again, and
        is told that the topic exists."""
        with tempfile.NamedTemporaryFile("w", suffix=".properties") as config:
            config.write("request.timeout.ms=500000\ndefault.api.timeout.ms=500000\n")
            config.flush()
            self.tool("kafka-topics", "--bootstrap-server", self.target.address, "--create", "--topic", name,
                      "--partitions", str(partitions), "--replication-factor", "1", "--command-config", config.name)

    def produce(self, topic, mb, record=1024, throughput=-1, props=()):
        n = max(1, mb * 1024 * 1024 // record)
        before = cpu_of(self.target)
        out = self.tool("kafka-producer-perf-test", "--topic", topic, "--num-records", str(n), "--record-size", str(record),
                        "--throughput", str(throughput), "--producer-props", f"bootstrap.servers={self.target.address}",
                        f"batch.size={CHUNK}", "acks=1", "buffer.memory=67108864", *props,
                        "--latency-decimals", "3")
        cpu = cpu_of(self.target) - before
        last = out.strip().splitlines()[-1]
        m = re.search(r"([\d.]+) records/sec \(([\d.]+) MB/sec\).*?([\d.]+) ms 50th, ([\d.]+) ms 95th, ([\d.]+) ms 99th, "
                      r"([\d.]+) ms 99.9th", last)
        if not m:
            raise SystemExit(f"cannot read: {last}")
        rate, mb_s, p50, _, p99, p999 = map(float, m.groups())
        return {"mb_s": mb_s, "records_s": rate, "p50_ms": p50, "p99_ms": p99, "p999_ms": p999,
                "cpu_s_per_gb": cpu / (n * record / 2**30)}

    def consume(self, topic, mb, record=1024):
        n = mb * 1024 * 1024 // record
        before = cpu_seconds(self.target.pid)
        out = self.tool("kafka-consumer-perf-test", "--bootstrap-server", self.target.address, "--topic", topic,
                        "--messages", str(n), "--hide-header", "--fetch-size", str(4 * 1024 * 1024))
        cpu = cpu_seconds(self.target.pid) - before
        fields = [f.strip() for f in out.strip().splitlines()[-1].split(",")]
        return {"mb_s": float(fields[8]), "records_s": float(fields[9]), "cpu_s_per_gb": cpu / (n * record / 2**30)}


def produce_acks1(run, size):
    run.topic("produce-acks1-1k")
    return run.produce("produce-acks1-1k", size)


def produce_lz4(run, size):
    run.topic("produce-acks1-1k-lz4")
    return run.produce("produce-acks1-1k-lz4", size // 2, props=["compression.type=lz4"])


def produce_acksall(run, size):
    run.topic("produce-acksall-1k")
    return run.produce("produce-acksall-1k", size // 2, props=["acks=all"])


def fetch_cached(run, size):
    run.topic("fetch-cached-1k")
    run.produce("fetch-cached-1k", min(size, 1024))
    return run.consume("fetch-cached-1k", min(size, 1024))


def produce_latency(run, size):
    run.topic("produce-latency")
    return run.produce("produce-latency", 5 if run.args.quick else 20, throughput=1000, props=["linger.ms=0"])


def e2e_latency(run, size):
    if not os.path.exists(os.path.join(run.args.bin, "kafka-e2e-latency")):
        return None
    run.topic("e2e-latency")
    n = 2000 if run.args.quick else 20000
    before = cpu_seconds(run.target.pid)
    out = run.tool("kafka-e2e-latency", run.target.address, "e2e-latency", str(n), "1", "1024", "--latency-decimals",
                   "3")
    cpu = cpu_seconds(run.target.pid) - before
    m = re.search(r"Percentiles: 50th = ([\d.]+), 99th = ([\d.]+), 99.9th = ([\d.]+)", out)
    p50, p99, p999 = map(float, m.groups())
    return {"p50_ms": p50, "p99_ms": p99, "p999_ms": p999, "records_s": None, "cpu_us_per_record": cpu / n * 1e6}


def partitions(n):
    def work(run, size):
        run.topic(f"partitions-{n}", n)
        return run.produce(f"partitions-{n}", size // 2)
    return work


def bench_groups(run, *argv):
    """One run of tests/bench/bench_groups.c, with the broker's CPU seconds meanwhile."""
    before = cpu_seconds(run.target.pid)
    out = run.tool("tests/bench_groups", run.target.address.rsplit(":", 1)[1], *map(str, argv))
    return {**json.loads(out), "cpu_s": cpu_seconds(run.target.pid) - before}


def group_rebalance(n):
    """A generation of n members that all come back at once; and the first one, which waits for
    group.initial.rebalance.delay.ms by its nature."""
    def work(run, size):
        run.topic("bench-groups", 4)
        got = bench_groups(run, "rebalance", n)
        return {"members": n, "rebalance_ms": got["again_ms"], "first_generation_ms": got["first_ms"], "cpu_s": got["cpu_s"]}
    return work


def group_consumers(n):
    """The protocol of KIP-848: n members join and settle, heartbeats at once after each other."""
    def work(run, size):
        run.topic("bench-groups", n)
        return bench_groups(run, "consumers", n)
    return work


def group_commits(run, size):
    run.topic("bench-groups", 4)
    got = bench_groups(run, "commits", 10, 16)
    return {"records_s": got["commits"] / got["seconds"], "cpu_us_per_commit": got["cpu_s"] / got["commits"] * 1e6}


def groups_load(run, size):
    """10,000 groups with 10 offsets each: what they take in memory, and until they are back after a restart."""
    run.topic("bench-groups", 16)
    bench_groups(run, "loaded")
    empty = status_mb(run.target.pid, "VmRSS")
    got = bench_groups(run, "fill", 10000, 10)
    full = status_mb(run.target.pid, "VmRSS")
    if isinstance(run.target, Peer):
        return {"groups_mb": full - empty, "fill_ms": got["fill_ms"]}
    run.target.stop()
    again = Broker(run.args.bin, run.target.folder)
    run.target, first = again, run.target
    loaded = bench_groups(run, "loaded")
    again.stop()
    run.target = first
    if loaded["groups"] < 10000:
        raise SystemExit(f"only {loaded['groups']} groups came back")
    return {"groups_mb": full - empty, "fill_ms": got["fill_ms"], "load_ms": loaded["load_ms"], "restart_ms": again.start_ms}


def connections(n):
    """Latency of one producer beside n connections that do nothing."""
    def work(run, size):
        host, port = run.target.address.rsplit(":", 1)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < n + 100:
            return None
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        run.topic("connections")
        idle = [socket.create_connection((host, int(port))) for _ in range(n)]
        try:
            got = run.produce("connections", 5, throughput=1000, props=["linger.ms=0"])
            got["with_connections_rss_mb"] = status_mb(run.target.pid, "VmRSS")
            return got
        finally:
            for s in idle:
                s.close()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return work


WORKLOADS = [  # name, function, in --quick, floor it is set against
    ("produce-acks1-1k", produce_acks1, True, "produce"),
    ("fetch-cached-1k", fetch_cached, True, "fetch"),
    ("produce-acks1-1k-lz4", produce_lz4, False, "produce"),
    ("produce-acksall-1k", produce_acksall, False, "produce"),
    ("produce-latency-1k", produce_latency, True, None),
    ("e2e-latency", e2e_latency, True, None),
    ("partitions-1000", partitions(1000), False, "produce"),
    ("partitions-10000", partitions(10000), False, "produce"),
    ("connections-5000", connections(5000), False, None),
    ("connections-10000", connections(10000), False, None),
    ("group-rebalance-3", group_rebalance(3), False, None),
    ("group-rebalance-100", group_rebalance(100), False, None),
    ("group-rebalance-1000", group_rebalance(1000), False, None),
    ("group-consumers-100", group_consumers(100), False, None),
    ("group-consumers-1000", group_consumers(1000), False, None),
    ("group-commits", group_commits, False, None),
    ("groups-load-10000", groups_load, False, None),
]


def compaction(args, folder):
    """Rows of tests/bench/bench_compaction.c, which carry their own floor: read all, write what is left."""
    out = subprocess.run([os.path.join(args.bin, "tests/bench_compaction"), folder], check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def starts(partitions, mb):
    """From exec to 'started' with so many partitions and records: after a clean stop, and after kill -9."""
    def work(args, folder):
        sub = tempfile.mkdtemp(dir=folder)
        broker = Broker(args.bin, sub)
        try:
            run = Run(args, broker)
            begin = time.monotonic()
            run.topic("starts", partitions)
            row = {"workload": f"start-{partitions}" + (f"-{mb}mb" if mb else ""), "create_s": time.monotonic() - begin}
            if mb:
                run.produce("starts", mb)
            broker.stop()
            broker = Broker(args.bin, sub)
            row["start_clean_ms"], row["rss_mb"] = broker.start_ms, status_mb(broker.pid, "VmRSS")
            if mb:  # something that no checkpoint covers
                Run(args, broker).produce("starts", max(1, mb // 10))
            broker.process.kill()
            broker.process.wait(60)
            broker = Broker(args.bin, sub)
            row["start_killed_ms"] = broker.start_ms
        finally:
            broker.process.kill()
            broker.process.wait(60)
            shutil.rmtree(sub)
        return [row]
    return work


# with brokers of their own, or none; not in --quick
BENCHES = [("compaction", compaction), ("start-1000", starts(1000, 0)), ("start-10000", starts(10000, 0)),
           ("start-100-10240mb", starts(100, 10240))]
FLOORS = {}  # filled before anything is run
BENCHES += perf_cluster.workloads(sys.modules[__name__], FLOORS)


def floor(args, kind, folder, mb):
    times = []
    for _ in range(1 if args.quick else 3):
        out = subprocess.run([os.path.join(args.bin, "tests/floor"), kind, folder, str(mb), str(CHUNK)], check=True,
                             capture_output=True, text=True).stdout
        times.append(json.loads(out))
    return {k: statistics.median(t[k] for t in times) for k in ("mb_s", "cpu_s_per_gb")}


def cell(v, digits=2):
    return "-" if v is None else f"{v:,.{digits}f}"


OTHERS = ("members", "rebalance_ms", "first_generation_ms", "join_ms", "settled_ms", "cpu_us_per_commit", "groups_mb", "load_ms", "restart_ms",
          "create_ms", "delete_ms", "taken_over_ms", "all_led_ms", "left_isr_ms", "longest_ack_before_ms",
          "longest_ack_until_out_ms", "longest_ack_after_ms", "back_in_isr_ms", "caught_up_mb_s")


def print_others(rows):
    """What a few workloads measure beside the columns of the table."""
    for r in rows:
        found = [f"{k} {cell(r[k])}" for k in OTHERS if r.get(k) is not None]
        if found:
            print(f"{r['workload']}: {', '.join(found)}")


def print_table(rows):
    head = ["workload", "MB/s", "records/s", "p50 ms", "p99 ms", "p99.9 ms", "CPU s/GB", "x floor", "x peer", "RSS MB"]
    keys = ["mb_s", "records_s", "p50_ms", "p99_ms", "p999_ms", "cpu_s_per_gb", "cpu_ratio_floor", "cpu_ratio_peer", "rss_mb"]
    lines = [head]
    for r in rows:
        lines.append([r["workload"]] + [cell(r.get(k), 0 if k in ("mb_s", "records_s") else 3 if k == "cpu_s_per_gb" else 2)
                                        for k in keys])
    widths = [max(len(l[i]) for l in lines) for i in range(len(head))]
    for l in lines:
        print("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(l, widths))))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", default="build/bin")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--json")
    p.add_argument("--only", action="append", default=[])
    p.add_argument("--list", action="store_true")
    p.add_argument("--peer")
    p.add_argument("--peer-pid", type=int)
    p.add_argument("--dir", help="where data goes (default: a temporary folder)")
    p.add_argument("--override", action="append", default=[], help="a broker's setting, key=value")
    args = p.parse_args()
    Broker.overrides = args.override
    if args.list:
        print("\n".join(w[0] for w in WORKLOADS + BENCHES))
        return
    unknown = set(args.only) - {w[0] for w in WORKLOADS + BENCHES}
    if unknown or bool(args.peer) != bool(args.peer_pid):
        p.error(f"no such workload: {', '.join(unknown)}" if unknown else "--peer and --peer-pid go together")
    chosen = [w for w in WORKLOADS if (w[0] in args.only if args.only else w[2] or not args.quick)]
    size = 1024 if args.quick else 4096
    folder = tempfile.mkdtemp(prefix="kafkad-perf-", dir=args.dir)
    rows = []
    try:
        floors = FLOORS
        for kind in ("produce", "fetch"):
            floors[kind] = floor(args, kind, folder, size)
        for kind, f in floors.items():
            rows.append({"workload": f"floor-{kind}", **f})
        for name, work, _, kind in chosen:
            row = {"workload": name}
            for side in ["own"] + (["peer"] if args.peer else []):
                sub = tempfile.mkdtemp(dir=folder)
                target = Broker(args.bin, sub) if side == "own" else Peer(args.peer, args.peer_pid)
                idle = status_mb(target.pid, "VmRSS")
                got = work(Run(args, target), size)
                if got is not None and target.running():
                    got["rss_mb"] = status_mb(target.pid, "VmHWM")
                if got is not None:
                    got["idle_rss_mb"], got["start_ms"] = idle, target.start_ms
                target.stop()
                shutil.rmtree(sub)
                if got is None:
                    break
                row.update(got if side == "own" else {f"peer_{k}": v for k, v in got.items()})
            if len(row) == 1:
                print(f"{name}: left out, its tool is not built", file=sys.stderr)
                continue
            cpu = row.get("cpu_s_per_gb")
            row["cpu_ratio_floor"] = cpu / floors[kind]["cpu_s_per_gb"] if kind and cpu else None
            row["cpu_ratio_peer"] = cpu / row["peer_cpu_s_per_gb"] if cpu and row.get("peer_cpu_s_per_gb") else None
            rows.append(row)
            print(f"{name}: done", file=sys.stderr)
        for name, bench in BENCHES:
            if name in args.only or not (args.only or args.quick):
                rows += bench(args, folder)
                print(f"{name}: done", file=sys.stderr)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print_table(rows)
    print_others(rows)
    for r in rows:
        if "start_clean_ms" in r:
            print(f"\n{r['workload']}: created in {r['create_s']:.1f} s; start after a clean stop {r['start_clean_ms']:.0f} ms, "
                  f"after kill -9 {r['start_killed_ms']:.0f} ms")
        if "with_connections_rss_mb" in r:
            print(f"\n{r['workload']}: RSS with all of them open {r['with_connections_rss_mb']:.0f} MB")
    own = [r for r in rows if r.get("start_ms")]
    if own:
        print(f"\nexec to 'started': {min(r['start_ms'] for r in own):.0f} ms; idle RSS: {min(r['idle_rss_mb'] for r in own):.1f} MB")
    if args.json:
        with open(args.json, "w") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
