"""Consumer groups of real clients: kcat (librdkafka) and python3-kafka, alone and in one group; members that crash,
static members, cooperative ones, patterns, new partitions, a broker that restarts. Skipped where they are missing."""
import os
import re
import shutil
import signal
import subprocess
import threading
import unittest

import groupwire as g
import harness
import kwire
from harness import until

try:
    import kafka
    import kafka.structs
except ImportError:
    kafka = None
KCAT = shutil.which("kcat") or shutil.which("kafkacat")
OVERRIDES = dict(g.OVERRIDES, **{"group.min.session.timeout.ms": "500", "group.initial.rebalance.delay.ms": "300"})
FAST = {"session.timeout.ms": "3000", "heartbeat.interval.ms": "200", "auto.offset.reset": "earliest",
        "topic.metadata.refresh.interval.ms": "500", "auto.commit.interval.ms": "200"}


class Kcat:
    """kcat -G as a process; .assigned is what it has, .lines what it read."""

    def __init__(self, broker, group, *topics, **conf):
        args = [KCAT, "-b", broker.address, "-u", "-f", "%t %p %o %s\n"]
        for key, value in dict(FAST, **{k.replace("_", "."): v for k, v in conf.items()}).items():
            args += ["-X", "%s=%s" % (key, value)]
        self.process = subprocess.Popen(args + ["-G", group] + list(topics), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines, self.says, self.assigned, self.rebalances = [], [], None, 0
        self.threads = [threading.Thread(target=f, daemon=True) for f in (self._out, self._err)]
        for t in self.threads:
            t.start()

    def _out(self):
        for raw in self.process.stdout:
            self.lines.append(tuple(raw.decode().split()))

    def _err(self):
        for raw in self.process.stderr:
            line = raw.decode()
            self.says.append(line)
            m = re.search(r"rebalanced(: incremental)?.*?(assigned|assignment|revoked|revoke)\b.*?\)?: (.*)", line)
            if m:
                parts = set(re.findall(r"(\S+) \[(\d+)\]", m.group(3)))
                if "revoke" in m.group(2):
                    self.assigned = (self.assigned or set()) - parts
                else:
                    self.assigned = (self.assigned or set()) | parts if m.group(1) else parts
                self.rebalances += 1

    def end(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        self.process.wait(30)
        for t in self.threads:
            t.join(30)
        self.process.stdout.close()
        self.process.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end(signal.SIGKILL)


@unittest.skipUnless(KCAT and kafka, "kcat and python3-kafka are needed")
class Clients(harness.BrokerTest):
    OVERRIDES = OVERRIDES

    def setUp(self):
        self.c = kwire.Conn(self.broker.port)
        self.t = self.topic("t")
        self.group = self.topic("g")
        g.coordinator(self.c, self.group)
        kwire.create_topic(self.c, self.t, partitions=4)
        self.sent = 0

    def tearDown(self):
        self.c.close()
        super().tearDown()

    def produce(self, n, topic=None):
        for p in range(4):
            values = [b"m%d" % (self.sent + i) for i in range(p, n, 4)]
            if values:
                kwire.produce_one(self.c, topic or self.t, p, kwire.simple_batch(*values))
        self.sent += n

    def consumer(self, version=None, **more):
        conf = dict(bootstrap_servers=self.broker.address, group_id=self.group, api_version=version,
                    auto_offset_reset="earliest", session_timeout_ms=3000, heartbeat_interval_ms=200,
                    enable_auto_commit=False, consumer_timeout_ms=20000, metadata_max_age_ms=500)
        conf.update(more)
        return kafka.KafkaConsumer(self.t, **conf)

    def all_of(self, *numbers):
        return {(self.t, str(p)) for p in numbers}

    def test_python_kafka_with_every_protocol_it_knows(self):
        stem = self.topic("p")
        for version in ((0, 9), (0, 10), (0, 10, 1), (0, 11), (1, 0, 0), (2, 0, 0), (2, 5, 0), None):
            with self.subTest(version=version):
                self.t = self.group = "%s-%s" % (stem, "-".join(map(str, version or ["last"])))
                kwire.create_topic(self.c, self.t, partitions=4)
                self.sent = 0
                self.produce(100)
                c = self.consumer(version)
                self.assertEqual(len({next(c).value for _ in range(100)}), 100)
                c.commit()
                c.close()
                self.produce(4)
                c = self.consumer(version)  # goes on behind what was committed
                self.assertEqual({next(c).value for _ in range(4)}, {b"m%d" % i for i in range(100, 104)})
                self.assertEqual(c.committed(kafka.TopicPartition(self.t, 0)), 25)
                c.close(autocommit=False)
                self.assertEqual(g.state(self.c, self.group), "Empty")

    def test_kcat_members_share_and_take_over(self):
        self.produce(40)
        with Kcat(self.broker, self.group, self.t) as a:
            until("a has all", lambda: a.assigned == self.all_of(0, 1, 2, 3))
            until("a has read all", lambda: len(a.lines) == 40)
            with Kcat(self.broker, self.group, self.t) as b:
                until("they share", lambda: a.assigned and b.assigned and len(a.assigned) == len(b.assigned) == 2 and
                      a.assigned | b.assigned == self.all_of(0, 1, 2, 3))
                self.produce(40)
                until("both read", lambda: len(a.lines) + len(b.lines) == 80)
                self.assertEqual(len(set(a.lines + b.lines)), 80)
                until("all is committed", lambda: {o[0] for o in g.fetch(self.c, self.group, None)[1].values()} == {20})
                b.end(signal.SIGKILL)
            until("a takes over", lambda: a.assigned == self.all_of(0, 1, 2, 3))
            a.end()
        self.assertEqual(g.state(self.c, self.group), "Empty")
        error, committed = g.fetch(self.c, self.group, None)
        self.assertEqual({p: o[0] for (_, p), o in committed.items()}, {p: 20 for p in range(4)})

    def test_cooperative_members(self):
        conf = {"partition_assignment_strategy": "cooperative-sticky"}
        with Kcat(self.broker, self.group, self.t, **conf) as a:
            until("a has all", lambda: a.assigned == self.all_of(0, 1, 2, 3))
            with Kcat(self.broker, self.group, self.t, **conf) as b:
                until("they share", lambda: b.assigned and len(a.assigned) == len(b.assigned) == 2 and
                      not a.assigned & b.assigned)
                self.produce(40)
                until("both read", lambda: len(a.lines) + len(b.lines) == 40)
                b.end()
            until("a takes over", lambda: a.assigned == self.all_of(0, 1, 2, 3))

    def test_a_static_member_restarts_without_a_rebalance(self):
        with Kcat(self.broker, self.group, self.t, group_instance_id="i1", session_timeout_ms="20000") as a, \
                Kcat(self.broker, self.group, self.t, group_instance_id="i2", session_timeout_ms="20000") as b:
            until("they share", lambda: a.assigned and b.assigned and len(a.assigned) == len(b.assigned) == 2)
            share, rebalances = b.assigned, a.rebalances
            generation = self.broker.count_lines(r"group %s: generation" % self.group)
            b.end(signal.SIGKILL)
            with Kcat(self.broker, self.group, self.t, group_instance_id="i2", session_timeout_ms="20000") as b2:
                until("it has its share again", lambda: b2.assigned == share)
                self.produce(40)
                until("both read", lambda: len(a.lines) + len(b2.lines) == 40)
            self.assertEqual(a.rebalances, rebalances)
            self.assertEqual(self.broker.count_lines(r"group %s: generation" % self.group), generation)

    def test_kcat_and_python_in_one_group(self):
        seen, stop = [], threading.Event()

        def read():
            c = self.consumer(enable_auto_commit=True, auto_commit_interval_ms=100, consumer_timeout_ms=100)
            while not stop.is_set():
                for m in c:
                    seen.append(m.value.decode())
            c.close()
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        try:
            with Kcat(self.broker, self.group, self.t, partition_assignment_strategy="range") as a:
                until("they share", lambda: a.assigned and len(a.assigned) == 2)
                until("the group is stable", lambda: g.state(self.c, self.group) == "Stable")
                for _ in range(10):
                    self.produce(40)
                until("all is read", lambda: len(seen) + len(a.lines) >= 400)
                self.assertEqual(sorted(seen + [x[3] for x in a.lines]), sorted("m%d" % i for i in range(400)))
                self.assertGreater(len(seen), 0)
                self.assertGreater(len(a.lines), 0)
                a.end()
            until("python has all", lambda: len(g.describe(self.c, self.group)["members"]) == 1 and
                  g.state(self.c, self.group) == "Stable")
            self.produce(40)
            until("python reads on", lambda: len(seen) + len(a.lines) == 440)
        finally:
            stop.set()
            thread.join(30)

    def test_new_partitions_and_topics_of_a_pattern(self):
        with Kcat(self.broker, self.group, "^%s.*" % re.escape(self.t)) as a:
            until("a has all", lambda: a.assigned == self.all_of(0, 1, 2, 3))
            self.c.call("CreatePartitions", 3, timeout_ms=30000, validate_only=False,
                        topics=[{"name": self.t, "count": 6, "assignments": None}])
            until("the new ones", lambda: a.assigned == self.all_of(0, 1, 2, 3, 4, 5))
            other = self.t + "-more"
            kwire.create_topic(self.c, other)
            until("the new topic", lambda: (other, "0") in a.assigned)
            kwire.produce_one(self.c, other, 0, kwire.simple_batch(b"x"))
            until("it is read", lambda: (other, "0", "0", "x") in a.lines)

    def test_a_group_that_is_described_and_reset_by_tools(self):
        admin = kafka.KafkaAdminClient(bootstrap_servers=self.broker.address)
        self.produce(40)
        with Kcat(self.broker, self.group, self.t) as a:
            until("a has read all", lambda: len(a.lines) == 40)
            until("committed", lambda: sum(o.offset for o in
                                           admin.list_consumer_group_offsets(self.group).values()) == 40)
            d = admin.describe_consumer_groups([self.group])[0]
            self.assertEqual((d.state, d.protocol_type, len(d.members)), ("Stable", "consumer", 1))
            self.assertEqual(d.members[0].client_id, "rdkafka")
            self.assertIn((self.group, "consumer"), admin.list_consumer_groups())
            a.end()
        c = self.consumer()
        c.poll(0)
        admin.close()
        c.close()


class Reader(threading.Thread):
    """A python3-kafka consumer that reads until it is told to stop. (kcat ends when no broker is there.)"""

    def __init__(self, address, group, topic, **conf):
        super().__init__(daemon=True)
        self.seen, self.stop, self.assigned = [], threading.Event(), set()
        self.conf = dict(bootstrap_servers=address, group_id=group, auto_offset_reset="earliest",
                         session_timeout_ms=30000, heartbeat_interval_ms=200, auto_commit_interval_ms=100,
                         reconnect_backoff_max_ms=200, **conf)
        self.topic = topic
        self.start()

    def run(self):
        c = kafka.KafkaConsumer(self.topic, **self.conf)
        while not self.stop.is_set():
            for records in c.poll(100).values():
                self.seen += [r.value.decode() for r in records]
            self.assigned = {p.partition for p in c.assignment()}
        c.close()

    def end(self):
        self.stop.set()
        self.join(30)


@unittest.skipUnless(kafka, "python3-kafka is needed")
class Restart(unittest.TestCase):
    def produce(self, broker, value):
        with kwire.Conn(broker.port) as c:
            for p in range(2):
                kwire.produce_one(c, "t", p, kwire.simple_batch(value))

    def committed(self, broker):
        with kwire.Conn(broker.port) as c:
            return {o[0] for o in g.fetch(c, "g", None)[1].values()}

    def test_members_go_on_after_the_broker_restarts(self):
        port = harness.socket.socket()
        port.bind(("127.0.0.1", 0))
        listeners = "PLAINTEXT://127.0.0.1:%d" % port.getsockname()[1]
        port.close()
        with harness.Broker(overrides=OVERRIDES, listeners=listeners) as broker:
            with kwire.Conn(broker.port) as c:
                g.coordinator(c, "g")
                kwire.create_topic(c, "t", partitions=2)
            readers = [Reader(broker.address, "g", "t") for _ in range(2)]
            try:
                until("they share", lambda: all(len(r.assigned) == 1 for r in readers))
                generations = broker.count_lines(r"group g: generation \d+ with")
                for n, end in enumerate((broker.stop, broker.kill)):
                    self.produce(broker, b"before-%d" % n)
                    until("both read", lambda: all(len(r.seen) == 2 * n + 1 for r in readers))
                    until("both committed", lambda: self.committed(broker) == {2 * n + 1})
                    end()
                    broker.start()
                    self.assertFalse(broker.has_line(r"group g: generation \d+ with"))
                    self.produce(broker, b"after-%d" % n)
                    until("both go on", lambda: all(len(r.seen) == 2 * n + 2 for r in readers))
                self.assertGreater(generations, 0)
                self.assertFalse(broker.has_line(r"group g: generation \d+ with"))  # members and generation are known
                for r in readers:
                    self.assertEqual(r.seen, ["before-0", "after-0", "before-1", "after-1"])
            finally:
                for r in readers:
                    r.end()


if __name__ == "__main__":
    harness.main()
