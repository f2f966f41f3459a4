"""Workloads of scripts/perf.sh with three brokers on a real ZooKeeper (tests/integration/cluster.py starts them).

CPU is that of all brokers. The floor of a record that three replicas keep: three appends and two fetches.
"""
import os
import re
import signal
import statistics
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "integration"))

ZOOKEEPER = os.path.join(os.environ.get("ZOOKEEPER_HOME", "/usr/share/zookeeper"), "bin", "zkServer.sh")
SESSION_MS = 2000


class Target:
    """The brokers of a cluster as what perf.Run drives."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.address = ",".join("127.0.0.1:%d" % cluster.broker(i).port for i in cluster.running())
        self.pids = [cluster.broker(i).process.pid for i in cluster.running()]


def start(args, folder, session_ms=SESSION_MS):
    os.environ["KAFKAD_BIN_DIR"] = os.path.abspath(args.bin)
    os.environ["TMPDIR"] = folder
    import tempfile
    tempfile.tempdir = folder
    import cluster
    return cluster.Cluster(3, tick_ms=max(250, session_ms // 20),  # ZooKeeper grants 20 ticks at most
                           overrides={"zookeeper.session.timeout.ms": str(session_ms),
                                      "replica.lag.time.max.ms": "10000"})


def with_cluster(work, **how):
    """work(args, folder, cluster) -> rows; none without ZooKeeper."""
    def run(args, folder):
        if not os.path.exists(ZOOKEEPER):
            print("left out: no ZooKeeper at %s" % ZOOKEEPER, file=sys.stderr)
            return []
        with start(args, folder, **how) as c:
            rows = work(args, folder, c)
            for row in rows:
                row.setdefault("rss_mb", max(rss_mb(c, i) for i in c.running()))
            return rows
    return run


def rss_mb(c, i):
    with open("/proc/%d/status" % c.broker(i).process.pid) as f:
        return int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1)) / 1024


def produce(name, perf, floors, size, **how):
    def work(args, folder, c):
        c.create_topic("perf", partitions=3, replication=3)
        c.wait_isr("perf", 3, 3)
        run = perf.Run(args, Target(c))
        row = run.produce("perf", size(args), props=["acks=all"] + how.get("props", []),
                          throughput=how.get("throughput", -1))
        floor = 3 * floors["produce"]["cpu_s_per_gb"] + 2 * floors["fetch"]["cpu_s_per_gb"]
        row.update(workload=name, cpu_ratio_floor=row["cpu_s_per_gb"] / floor)
        if "throughput" in how:  # says nothing at a trickle
            row["cpu_s_per_gb"] = row["cpu_ratio_floor"] = None
        return [row]
    return with_cluster(work)


def led(c, i, topic, n):
    """How many of the topic's partitions have a live leader, as broker i knows."""
    part = c.metadata(i, [topic])["topics"][0]["partitions"]
    return sum(p["leader_id"] in c.running() for p in part) if len(part) == n else 0


def wait_led(c, topic, n):
    from harness import until
    for i in c.running():
        until("broker %d knows leaders of all" % i, lambda i=i: led(c, i, topic, n) == n, 120)


def wait_in_sync(c, topic, n):
    """All replicas of all partitions are in sync, as the controller knows: no leader can be missed then."""
    from harness import until
    k = c.controller
    until("all are in sync", lambda: sum(
        len(p["isr_nodes"]) == 3 for p in c.metadata(k, [topic])["topics"][0]["partitions"]) == n, 120)


def create(n):
    """From the request to leaders of all partitions known to all brokers."""
    def work(args, folder, c):
        begin = time.monotonic()
        c.create_topic("wide", partitions=n, replication=3)
        wait_led(c, "wide", n)
        created = time.monotonic()
        c.on_controller("DeleteTopics", 5, topic_names=["wide"], timeout_ms=60000)
        with c.zk.client() as z:
            from harness import until
            until("it is deleted", lambda: not z.stat("/brokers/topics/wide"), 120)
        return [{"workload": "cluster-create-%d" % n, "create_ms": (created - begin) * 1000,
                 "delete_ms": (time.monotonic() - created) * 1000}]
    return with_cluster(work)


class Lines:
    """When a line first comes up in the output of any broker, from now on."""

    def __init__(self, c):
        self.c = c
        self.at = {i: len(c.broker(i).lines) for i in c.running()}

    def wait(self, pattern, deadline=60):
        from harness import until

        def found():
            for i in self.at:
                for line in self.c.broker(i).lines[self.at[i]:]:
                    if re.search(pattern, line):
                        return time.monotonic()
            return None
        return until("a line %s" % pattern, found, deadline)


def controller_failover(n):
    """kill -9 of the controller, which leads a third of n partitions: from the election of the next one to leaders of
    all partitions, known to all brokers."""
    def work(args, folder, c):
        c.create_topic("wide", partitions=n, replication=3)
        wait_led(c, "wide", n)
        wait_in_sync(c, "wide", n)
        lines = Lines(c)
        c.broker(c.controller).kill()
        elected = lines.wait(r"\] elected, epoch")
        over = lines.wait(r"\] has taken over")
        wait_led(c, "wide", n)
        return [{"workload": "controller-failover-%d" % n, "taken_over_ms": (over - elected) * 1000,
                 "all_led_ms": (time.monotonic() - elected) * 1000}]
    return with_cluster(work)


class Acks:
    """A producer of one partition with acks=all, one record at a time, at whichever broker leads; notes the longest
    time between two acknowledged records."""

    def __init__(self, c, topic):
        self.c, self.topic = c, topic
        self.last, self.longest, self.stopping = None, 0.0, False
        self.errors = []
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _leader(self):
        for i in self.c.running():
            try:
                p = self.c.metadata(i, [self.topic])["topics"][0]["partitions"][0]
                if p["leader_id"] in self.c.running():
                    return p["leader_id"]
            except (OSError, IndexError, EOFError):
                pass
        return None

    def _run(self):
        import kwire
        k = None
        while not self.stopping:
            try:
                if k is None:
                    leader = self._leader()
                    if leader is None:
                        time.sleep(0.005)
                        continue
                    k = kwire.Conn(self.c.broker(leader).port, timeout=2)
                a = kwire.produce(k, 9, [(self.topic, 0, kwire.simple_batch(b"x"))], acks=-1, timeout_ms=1500)[0]
                error = a["error_code"]
            except (OSError, kwire.Closed) as e:
                error = repr(e)
            now = time.monotonic()
            if error:
                self.errors.append((now, error))
                if k:
                    k.close()
                k = None
                continue
            if self.last is not None:
                self.longest = max(self.longest, now - self.last)
            self.last = now
            time.sleep(0.001)

    def next_ack(self, deadline=60):
        """When the next record was acknowledged."""
        from harness import until
        begin = time.monotonic()
        return until("a record is acknowledged", lambda: self.last if (self.last or 0) > begin else None, deadline)

    def stop(self):
        self.stopping = True
        self.thread.join(10)


def stops(times, stop):
    """One partition under Acks; each time, stop(c, acks, leader) gives the milliseconds it took. All of them, sorted."""
    def work(args, folder, c):
        c.create_topic("t", partitions=1, replication=3)
        c.wait_isr("t", 1, 3)
        took = []
        for _ in range(times):
            acks = Acks(c, "t")
            acks.next_ack()
            leader = c.leader("t", 0)
            took.append(stop(c, acks, leader))
            acks.stop()
            c.broker(leader).start()
            c.wait_isr("t", 1, 3)
        return sorted(took)
    return work


def leader_failover(times):
    """kill -9 of a leader: from the moment the controller notices to the next record with acks=all."""
    def kill(c, acks, leader):
        lines = Lines(c)
        c.broker(leader).kill()
        noticed = lines.wait(r"broker %d (died|is gone|went)|\] elected, epoch" % leader)
        return (acks.next_ack() - noticed) * 1000
    return percentiles("leader-failover", stops(times, kill))


def controlled_stop(times):
    """Clean stop of a leader: the longest time between two acknowledged records."""
    def stop(c, acks, leader):
        acks.longest = 0.0
        c.broker(leader).stop()
        acks.next_ack()
        if acks.longest > 0.3:
            print("stop of %d took %.0f ms: %s" % (leader, acks.longest * 1000, acks.errors[-5:]), file=sys.stderr)
        return acks.longest * 1000
    return percentiles("controlled-stop", stops(times, stop))


def percentiles(name, work):
    def figures(args, folder, c):
        took = work(args, folder, c)
        return [{"workload": name, "p50_ms": statistics.median(took), "p99_ms": took[-1]}]
    return with_cluster(figures)


def paused_follower(perf, seconds):
    """SIGSTOP of a follower under a steady load with acks=all: until it leaves the ISR (replica.lag.time.max.ms is 10 s),
    the latency of a record before, until then and after; then SIGCONT: how fast it is back, and what it fetched."""
    def work(args, folder, c):
        c.create_topic("t", partitions=1, replication=3)
        c.wait_isr("t", 1, 3)
        acks = Acks(c, "t")
        acks.next_ack()

        def longest(wait):
            acks.longest = 0.0
            wait()
            return acks.longest * 1000
        before = longest(lambda: time.sleep(seconds))
        paused = next(i for i in c.running() if i not in (c.leader("t", 0), c.controller))
        c.broker(paused).process.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        until_out = longest(lambda: (c.wait_state("t", 0, lambda s: paused not in s["isr"]), acks.next_ack()))
        left_ms = (time.monotonic() - begin) * 1000
        after = longest(lambda: time.sleep(seconds))
        acks.stop()
        run = perf.Run(args, Target(c))
        mb = 256
        run.produce("t", mb, props=["acks=all"])
        begin = time.monotonic()
        c.broker(paused).process.send_signal(signal.SIGCONT)
        c.wait_isr("t", 1, 3)
        back_s = time.monotonic() - begin
        return [{"workload": "paused-follower", "left_isr_ms": left_ms, "longest_ack_before_ms": before,
                 "longest_ack_until_out_ms": until_out, "longest_ack_after_ms": after, "back_in_isr_ms": back_s * 1000,
                 "caught_up_mb_s": mb / back_s}]
    return with_cluster(work, session_ms=60000)  # it is still a member


def workloads(perf, floors):
    """name -> function(args, folder); floors is filled by the time they run."""
    return [
        ("produce-acksall-rf3-1k", produce("produce-acksall-rf3-1k", perf, floors, lambda a: 512 if a.quick else 2048)),
        ("latency-acksall-rf3-1k", produce("latency-acksall-rf3-1k", perf, floors, lambda a: 5 if a.quick else 20,
                                           throughput=1000, props=["linger.ms=0"])),
        ("cluster-create-1000", create(1000)),
        ("cluster-create-10000", create(10000)),
        ("controller-failover-10000", controller_failover(10000)),
        ("leader-failover", leader_failover(5)),
        ("controlled-stop", controlled_stop(12)),
        ("paused-follower", paused_follower(perf, 3)),
    ]
