"""A group of three kinds of members - the C library (kafka-verifiable-consumer), kcat (librdkafka), python3-kafka - on
three brokers, whose coordinator is killed, stopped, paused and moved while they read: each record is read, what was
committed never goes back, and in the end all is committed."""
import json
import random
import signal
import subprocess
import sys
import threading
import unittest

import groupwire as g
import harness
import kwire
from cluster import Cluster, History
from harness import until

OFFSETS = "__consumer_offsets"
PARTITIONS = 6
WAIT = 3 * harness.DEADLINE

PYTHON_MEMBER = """
import sys, kafka
c = kafka.KafkaConsumer("t", bootstrap_servers=sys.argv[1].split(","), group_id="g", auto_offset_reset="earliest",
                        session_timeout_ms=10000, heartbeat_interval_ms=300, auto_commit_interval_ms=200,
                        metadata_max_age_ms=1000, reconnect_backoff_max_ms=200, request_timeout_ms=11000)
while True:
    for records in c.poll(200).values():
        for r in records:
            print(r.partition, r.offset, flush=True)
"""


class Member:
    """A program that prints a line for what it reads; parse(line) gives (partition, first, end) or None."""

    def __init__(self, name, args, parse):
        self.name, self.parse, self.read = name, parse, set()
        self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        universal_newlines=True)
        self.errors = []
        self.threads = [threading.Thread(target=self._read, daemon=True),
                        threading.Thread(target=lambda: self.errors.extend(self.process.stderr), daemon=True)]
        for t in self.threads:
            t.start()

    def _read(self):
        for line in self.process.stdout:
            got = self.parse(line)
            for p, first, end in got or ():
                self.read.update((p, o) for o in range(first, end))

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for t in self.threads:
            t.join(10)
        for pipe in (self.process.stdout, self.process.stderr):
            pipe.close()


def plain(line):
    p, offset = map(int, line.split())
    return [(p, offset, offset + 1)]


def verifiable(line):
    event = json.loads(line)
    if event["name"] != "records_consumed":
        return None
    return [(p["partition"], p["minOffset"], p["maxOffset"] + 1) for p in event["partitions"] if p["count"]]


def members(brokers):
    # Who waits for a broker that sleeps gives up before its session ends.
    fast = ["socket.timeout.ms=4000", "session.timeout.ms=10000", "heartbeat.interval.ms=300", "auto.commit.interval.ms=200",
            "topic.metadata.refresh.interval.ms=1000", "reconnect.backoff.max.ms=200", "auto.offset.reset=earliest"]
    return [Member("C library", [harness.bin_dir() + "/kafka-verifiable-consumer", "--bootstrap-server", brokers,
                                 "--topic", "t", "--group-id", "g", "--session-timeout", "10000"], verifiable),
            Member("kcat", ["kcat", "-b", brokers, "-q", "-u", "-f", "%p %o\\n"] +
                   [x for setting in fast for x in ("-X", setting)] + ["-G", "g", "t"], plain),
            Member("python3-kafka", [sys.executable, "-c", PYTHON_MEMBER, brokers], plain)]


class Watch:
    """Reads the committed offsets all the time: they never go back."""

    def __init__(self, cluster):
        self.cluster, self.committed, self.wrong, self.stopping = cluster, {}, [], False
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self):
        while not self.stopping:
            try:
                self._look()
            except (OSError, kwire.Closed, IndexError, KeyError):
                pass

    def _look(self):
        with self.cluster.conn(random.choice(self.cluster.running()), timeout=3) as k:  # one may be asleep
            error, node, _, _ = g.find(k, "g")
        if error or node not in self.cluster.running():
            return
        with self.cluster.conn(node, timeout=3) as k:
            while not self.stopping:
                error, found = g.fetch(k, "g", {"t": range(PARTITIONS)})
                if error:
                    return
                for (_, p), (offset, _, _, e) in found.items():
                    if e == 0 and offset < self.committed.get(p, -1):
                        self.wrong.append("partition %d: %d is committed, %d was" % (p, offset, self.committed[p]))
                    if e == 0:
                        self.committed[p] = offset

    def stop(self):
        self.stopping = True
        self.thread.join(30)


class GroupOnCluster(unittest.TestCase):
    def coordinator(self, c):
        def found():
            try:
                with c.conn(random.choice(c.running()), timeout=3) as k:  # one may be asleep
                    error, node, _, _ = g.find(k, "g")
            except OSError:
                return None
            return node if error == 0 and node in c.running() else None
        return until("a coordinator", found)

    def faults(self, c):
        def killed(i):
            c.broker(i).kill()
            yield
            c.broker(i).start()

        def stopped(i):
            c.broker(i).stop()
            yield
            c.broker(i).start()

        def paused(i):
            c.broker(i).process.send_signal(signal.SIGSTOP)
            others = [x for x in c.running() if x != i]

            def another():
                with c.conn(others[0]) as k:
                    error, node, _, _ = g.find(k, "g")
                return error == 0 and node in others
            until("another coordinator", another)
            yield
            c.broker(i).process.send_signal(signal.SIGCONT)

        def moved(i):
            others = [x for x in c.running() if x != i]
            p = g.partition_of("g", 5)
            for replicas in (others, sorted(c.running())):
                c.on_controller("AlterPartitionReassignments", 0, timeout_ms=30000, topics=[
                    {"name": OFFSETS, "partitions": [{"partition_index": p, "replicas": replicas}]}])
                until("it is moved", lambda: len(c.metadata(1, [OFFSETS])["topics"][0]["partitions"]) == 5 and
                      sorted(c.state(OFFSETS, p)["isr"]) == sorted(replicas))
            yield
        return killed, stopped, paused, moved

    def test_the_coordinator_comes_and_goes(self):
        with Cluster(3, overrides={"offsets.topic.num.partitions": "5"}) as c:
            c.create_topic("t", partitions=PARTITIONS)
            self.coordinator(c)
            c.wait_isr(OFFSETS, 5, 3)
            group = members(",".join(c.broker(i).address for i in (1, 2, 3)))
            watch = Watch(c)
            try:
                with History(c, "t", PARTITIONS, pause=0.01) as h:
                    self.run_faults(c, h, group, watch)
                h.check()
                self.wait_all(c, group, watch, {p: len(c.log_of("t", p)) for p in range(PARTITIONS)})
            except BaseException:
                sys.stderr.write("committed: %s\n" % watch.committed)
                with c.conn(self.coordinator(c)) as k:
                    sys.stderr.write("group: %s\n" % g.describe(k, "g"))
                for m in group:
                    sys.stderr.write("---- %s, %d read, status %s\n%s\n" % (m.name, len(m.read), m.process.poll(),
                                                                           "".join(m.errors[-20:])))
                raise
            finally:
                watch.stop()
                for m in group:
                    m.end()
            self.assertEqual(watch.wrong, [])

    def run_faults(self, c, h, group, watch):
        until("all members read", lambda: all(m.read for m in group), WAIT)
        for fault in self.faults(c):
            h.grow(50)
            before, read = dict(watch.committed), sum(len(m.read) for m in group)
            steps = fault(self.coordinator(c))
            next(steps)
            h.grow(50)
            until("it is read on without that broker", lambda: sum(len(m.read) for m in group) > read + 50, WAIT)
            until("it is committed on", lambda: all(watch.committed.get(p, -1) > before.get(p, -1)
                                                   for p in range(PARTITIONS)), WAIT)
            next(steps, None)
            c.wait_isr(OFFSETS, 5, 3)
            c.wait_isr("t", PARTITIONS, 3)

    def wait_all(self, c, group, watch, ends):
        want = {(p, o) for p, end in ends.items() for o in range(end)}
        until("all is read", lambda: not want - set().union(*(m.read for m in group)), WAIT)
        until("all is committed", lambda: watch.committed == ends, WAIT)


if __name__ == "__main__":
    harness.main()
